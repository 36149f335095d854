/* What was computed and fitted, as a table in the order given and as JSON. A
 * parameter that ends at its bound is marked, since what the fit says of it is
 * then the bound alone. */
#include "commands/profile_report.h"

#include "core/json.h"
#include "core/text.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

void tsr_profile_result_clear(tsr_profile_result *result)
{
    tsr_profile_structure_clear(&result->structure);
    free(result->curve);
    result->curve = NULL;
}

tsr_status tsr_profile_fit_data(const tsr_profile_fit_options *options,
                                const tsr_saxs *saxs, tsr_profile_result *r,
                                tsr_err *err)
{
    tsr_partial_curves curves;
    TSR_TRY(tsr_partial_curves_of(&r->structure.partials, saxs, &curves, err));
    if (r->curve == NULL)
        r->curve = calloc((size_t)saxs->n, sizeof *r->curve);
    tsr_status status = tsr_allocated(r->curve, err);
    TSR_THEN(status, tsr_profile_fit_make(&curves, saxs->intensity, saxs->sigma,
                                          options, &r->fit, r->curve, err));
    tsr_profile_fit_judge(&r->fit, &saxs->noise);
    tsr_partial_curves_clear(&curves);
    return status;
}

/* A model far smaller or larger than what was measured. Its Rg is that of usual
 * contrast and hydration: a fit bends both towards the data, and a monomer
 * whose c2 is at its upper bound passes for a small dimer. Of the models in the
 * data at hand those that fit are within 14 %, monomers of dimers 22 % or more.
 */
tsr_status tsr_profile_check_rg(const tsr_profile_result *r,
                                const tsr_saxs *saxs, tsr_log *log,
                                tsr_err *err)
{
    double rg, i0;
    tsr_status status =
        tsr_contrast_guinier(&r->structure.partials, 1.0, r->structure.usual_c2,
                             r->structure.rg_ang, &rg, &i0, err);
    double ratio = saxs->rg_guinier / rg;
    const char *cause;
    if (status != TSR_OK || !(ratio > 0.0) ||
        (ratio > 1.0 / 1.15 && ratio < 1.15))
        return status;
    if (ratio > 5.0 || ratio < 0.2)
        cause = "a unit of q that is not that of the file (--q-unit), or of "
                "coordinates";
    else if (ratio > 1.0)
        cause = "a larger oligomer or aggregates in the sample, parts that the "
                "model lacks, or a flexible molecule";
    else if (r->structure.n_chain < 2)
        cause = "a molecule that is more compact in solution than this chain "
                "(flexible, or folded otherwise), or repulsion between "
                "particles";
    else
        cause = "a model with more molecules than the particle in solution "
                "(a monomer, or one copy of the asymmetric unit), or "
                "repulsion between particles";
    tsr_warn(log,
             "'%s': Guinier's Rg is %.1f A in the data and %.1f A in the "
             "model%s; likely: %s",
             r->structure.path, saxs->rg_guinier, rg,
             r->n_comp == 3 ? " with usual hydration" : "", cause);
    return TSR_OK;
}

/* ---- the table ---- */

/* The file's name, or the whole path where another's name is the same. */
static const char *name_of(int n, const tsr_profile_result *result, int i)
{
    const char *name = tsr_text_file_name(result[i].structure.path);
    for (int k = 0; k < n; k++)
        if (k != i &&
            strcmp(name, tsr_text_file_name(result[k].structure.path)) == 0)
            return result[i].structure.path;
    return name;
}

static int name_width(int n, const tsr_profile_result *result)
{
    int width = 9;
    for (int i = 0; i < n; i++) {
        int own = tsr_text_width(name_of(n, result, i));
        width = own > width ? own : width;
    }
    return width;
}

static const char *mark(int at)
{
    return at != 0 ? "*" : " ";
}

/* c1 and c2 in units of their own: the mean radius of what an atom displaces,
 * A, and by how much the layer is denser than the buffer, e/A^3. */
static double radius(const tsr_profile_result *r)
{
    return r->n_comp == 3 ? r->fit.c1 * r->structure.radius_ang : (double)NAN;
}

static double contrast(const tsr_profile_result *r)
{
    return r->n_comp == 3 ? r->fit.c2 * r->structure.layer_contrast
                          : (double)NAN;
}

static void print_fits(FILE *out, int n, const tsr_profile_result *result,
                       int width)
{
    int any_bound = 0;
    fprintf(
        out, "%-*s %8s %8s %8s %7s  %6s %6s  %6s %10s %10s %7s %7s %6s %10s\n",
        width, "structure", "chi2/N", "reduced", "CorMap p", "c1", "r0", "c2",
        "layer", "scale", "background", "Rg", "Rg fit", "D_max", "I(0)");
    for (int i = 0; i < n; i++) {
        const tsr_profile_result *r = &result[i];
        const tsr_profile_fit *f = &r->fit;
        char cormap[48];
        fprintf(out, "%-*s %8.3f %8.3f %8s ", width, name_of(n, result, i),
                f->chi2, f->reduced_chi2,
                tsr_cormap_text("", f->cormap_p, cormap));
        if (r->n_comp == 3)
            fprintf(out, "%7.4f%s %6.3f %6.3f%s %6.4f", f->c1, mark(f->c1_at),
                    radius(r), f->c2, mark(f->c2_at), contrast(r));
        else
            fprintf(out, "%7s  %6s %6s  %6s", "-", "-", "-", "-");
        fprintf(out, " %10.4g %10.3g %7.2f %7.2f %6.1f %10.4g\n", f->scale,
                f->background, r->structure.rg_ang, r->rg_guinier,
                r->structure.d_max_ang, r->i0);
        any_bound |= f->c1_at != 0 || f->c2_at != 0;
    }
    fprintf(out,
            "r0: mean radius of what an atom displaces, A; layer: of "
            "hydration, denser than the buffer by so many %s\n",
            result->structure.is_neutron ? "1e-6/A^2" : "e/A^3");
    if (any_bound)
        fputs("*: at its bound; what the fit says of it is the bound alone, "
              "not the data\n",
              out);
}

static void print_models(FILE *out, int n, const tsr_profile_result *result,
                         int width)
{
    fprintf(out, "%-*s %8s %7s %7s %7s %11s %13s\n", width, "structure",
            "bodies", "Rg", "Rg fit", "D_max",
            result->structure.is_neutron ? "I(0), fm^2" : "I(0), e^2",
            "ml/(mg cm)");
    for (int i = 0; i < n; i++) {
        const tsr_profile_structure *s = &result[i].structure;
        fprintf(out, "%-*s %8d %7.2f %7.2f %7.1f %11.5g %13.5g\n", width,
                name_of(n, result, i), s->n_body, s->rg_ang,
                result[i].rg_guinier, s->d_max_ang, result[i].i0,
                result[i].i0 * tsr_profile_absolute(s));
    }
    fputs("ml/(mg cm): I(0) on the absolute scale, 1/cm at 1 mg/ml\n", out);
}

void tsr_profile_print(FILE *out, int n, const tsr_profile_result *result,
                       const tsr_saxs *saxs)
{
    int width = name_width(n, result);
    if (saxs == NULL) {
        print_models(out, n, result, width);
    } else {
        fprintf(out, "data %s: %d points, q %.4g to %.4g 1/A, ",
                tsr_text_file_name(saxs->path), saxs->n, saxs->q[0],
                saxs->q[saxs->n - 1]);
        if (isnan(saxs->rg_guinier))
            fputs("no Guinier range\n", out);
        else
            fprintf(out, "Guinier Rg %.2f A, I(0) %.4g\n", saxs->rg_guinier,
                    saxs->i0_guinier);
        print_fits(out, n, result, width);
    }
    fputs("Rg: of the atoms or bodies, A; Rg fit: Guinier's, of the computed "
          "curve\n",
          out);
}

/* ---- JSON ---- */

static void put_bound(tsr_json *j, const char *key, int at)
{
    tsr_json_text(j, key, at < 0 ? "lower" : at > 0 ? "upper" : NULL);
}

void tsr_profile_put_members(tsr_json *j, const tsr_profile_result *r)
{
    const tsr_profile_fit *f = &r->fit;
    tsr_json_text(j, "structure", r->structure.path);
    tsr_json_integer(j, "n_bodies", r->structure.n_body);
    if (f->n_point > 0) {
        tsr_json_number(j, "chi2", f->chi2);
        tsr_json_number(j, "reduced_chi2", f->reduced_chi2);
        tsr_json_integer(j, "n_points", f->n_point);
        tsr_json_integer(j, "n_parameters", f->n_parameter);
        tsr_json_number(j, "scale", f->scale);
        tsr_json_number(j, "background", f->background);
        tsr_json_number(j, "cormap_p", f->cormap_p);
        tsr_json_integer(j, "longest_run", f->longest_run);
    }
    tsr_json_number(j, "c1", r->n_comp == 3 ? f->c1 : (double)NAN);
    tsr_json_number(j, "c2", r->n_comp == 3 ? f->c2 : (double)NAN);
    put_bound(j, "c1_at_bound", f->c1_at);
    put_bound(j, "c2_at_bound", f->c2_at);
    tsr_json_number(j, "displaced_radius", radius(r));
    tsr_json_number(j, "displaced_volume",
                    r->n_comp == 3 ? pow(f->c1, 3.0) * r->structure.volume
                                   : (double)NAN);
    tsr_json_number(j, "layer_contrast", contrast(r));
    if (r->structure.is_neutron)
        tsr_json_number(j, "match_d2o", r->structure.match_d2o);
    tsr_json_number(j, "mass", r->structure.mass);
    tsr_json_number(j, "cm_per_mg_ml", tsr_profile_absolute(&r->structure));
    tsr_json_number(j, "rg_model", r->structure.rg_ang);
    tsr_json_number(j, "rg_guinier", r->rg_guinier);
    tsr_json_number(j, "d_max", r->structure.d_max_ang);
    tsr_json_number(j, "i0", r->i0);
    tsr_json_text(j, "method", tsr_profile_method_name(r->structure.method));
    tsr_json_number(j, "predicted_seconds", r->structure.predicted_s);
    tsr_json_number(j, "engine_seconds", r->structure.seconds);
}

void tsr_profile_print_json(FILE *out, int n, const tsr_profile_result *result,
                            const tsr_saxs *saxs, const char *bodies,
                            const char *engine,
                            const tsr_profile_ensemble *ensemble)
{
    tsr_json j = {.out = out, .digits = 9};
    tsr_json_object(&j, NULL);
    tsr_json_text(&j, "bodies", bodies);
    tsr_json_text(&j, "engine", engine);
    tsr_json_text(&j, "data", saxs != NULL ? saxs->path : NULL);
    if (saxs != NULL) {
        tsr_json_integer(&j, "n_points", saxs->n);
        tsr_json_number(&j, "rg_data", saxs->rg_guinier);
        tsr_json_number(&j, "i0_data", saxs->i0_guinier);
        tsr_json_number(&j, "noise_by_neighbours", saxs->noise.next);
        tsr_json_truth(&j, "neighbours_share_noise", saxs->noise.is_shared);
    }
    tsr_json_array(&j, "structures");
    for (int i = 0; i < n; i++) {
        tsr_json_object(&j, NULL);
        tsr_profile_put_members(&j, &result[i]);
        tsr_json_close(&j);
    }
    tsr_json_close(&j);
    if (ensemble != NULL)
        tsr_profile_ensemble_put(&j, ensemble);
    tsr_json_close(&j);
}
