/* What tessera profile writes for each structure: its profile, or its fit to
 * data in FoXS's .fit format, which other programs read, with the picture of
 * the fit beside it. Files of one run have names of their own, so that none
 * replaces another. */
#include "commands/profile_report.h"

#include "core/text.h"
#include "files/file.h"
#include "report/figure.h"
#include "scattering/form_factor.h"

#include <gsl/gsl_sort.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

/* What tells a fit of tessera from one of FoXS, in its first line. */
#define FIT_FILE_MARK ", by tessera\n"

/* ---- names ---- */

static const char *ending(const char *path)
{
    const char *slash = strrchr(path, '/'), *dot = strrchr(path, '.');
    return dot == NULL || (slash != NULL && dot < slash) ? path + strlen(path)
                                                         : dot;
}

/* `folder`/stem of `path` + `with`; caller frees. The folder may be NULL, then
 * `path` itself without its ending. */
static char *name_beside(const char *folder, const char *path, const char *with)
{
    const char *from = folder != NULL ? tsr_text_file_name(path) : path;
    int length = (int)(ending(path) - from);
    if (folder != NULL && strcmp(ending(path), ".gz") == 0) /* x.pdb.gz */
        for (int i = length - 1; i > 0; i--)
            if (from[i] == '.') {
                length = i;
                break;
            }
    return tsr_words_of(
        "%s%s%.*s%s", folder != NULL ? folder : "",
        folder != NULL && folder[strlen(folder) - 1] != '/' ? "/" : "", length,
        from, with);
}

static int is_folder(const char *path)
{
    struct stat info;
    size_t n = strlen(path);
    return (n > 0 && path[n - 1] == '/') ||
           (stat(path, &info) == 0 && S_ISDIR(info.st_mode));
}

/* The files of one structure, in the folder `output` or under that name; NULL
 * where memory lacked. Caller frees. */
static void names(const char *output, int each, const char *structure,
                  int is_fit, char **name, char **picture)
{
    const char *with = is_fit ? ".fit" : ".dat";
    *name = each                      ? name_beside(output, structure, with)
            : *ending(output) == '\0' ? name_beside(NULL, output, with)
                                      : strdup(output);
    *picture = *name != NULL ? name_beside(NULL, *name, ".svg") : NULL;
}

static tsr_status check_names(const char *output, int n,
                              const char *const *structure, tsr_err *err)
{
    for (int i = 1; i < n; i++)
        for (int k = 0; k < i; k++)
            if (strcmp(tsr_text_file_name(structure[i]),
                       tsr_text_file_name(structure[k])) == 0)
                return tsr_fail(err, TSR_E_USAGE,
                                "--output '%s': '%s' and '%s' would get the "
                                "same file; rename one",
                                output, structure[k], structure[i]);
    return TSR_OK;
}

/* The files of one structure: fit and picture, or a curve. */
static tsr_status check_targets(const char *output, int each,
                                const char *structure, int is_fit,
                                tsr_file_target target, tsr_err *err)
{
    char *name, *picture;
    names(output, each, structure, is_fit, &name, &picture);
    tsr_status status =
        name == NULL || picture == NULL ? tsr_no_memory(err) : TSR_OK;
    target.begins = is_fit ? "# SAXS profile:" : "# tessera ";
    target.holds = is_fit ? FIT_FILE_MARK : " profile:";
    TSR_THEN(status, tsr_file_check_target(&target, name, err));
    target.begins = "<svg";
    target.holds = TSR_SVG_MARK;
    if (status == TSR_OK && is_fit)
        status = tsr_file_check_target(&target, picture, err);
    free(name);
    free(picture);
    return status;
}

tsr_status tsr_profile_check_output(const char *output, int is_forced, int n,
                                    const char *const *structure,
                                    const char *data, const char *table,
                                    tsr_err *err)
{
    if (output == NULL)
        return TSR_OK;
    int each = is_folder(output);
    const char **input = malloc(((size_t)n + 2) * sizeof *input);
    TSR_TRY(tsr_allocated(input, err));
    input[0] = data;
    input[1] = table;
    for (int i = 0; i < n; i++)
        input[i + 2] = structure[i];
    const tsr_file_target target = {.maker = "profile",
                                    .n_input = n + 2,
                                    .input = input,
                                    .is_forced = is_forced};
    tsr_status status = each ? check_names(output, n, structure, err) : TSR_OK;
    for (int i = 0; i < (each ? n : 1) && status == TSR_OK; i++)
        status = check_targets(output, each, structure[i], data != NULL, target,
                               err);
    free(input);
    return status;
}

/* ---- curves ---- */

/* Columns as named in `heading`: one or more lines, '#' is put before each. */
static void print_table(FILE *out, const char *heading, int n, int n_column,
                        const double *const *column)
{
    for (const char *p = heading; *p != '\0';) {
        int length = (int)strcspn(p, "\n");
        fprintf(out, "# %.*s\n", length, p);
        p += length + (p[length] == '\n');
    }
    for (int k = 0; k < n; k++)
        for (int c = 0; c < n_column; c++)
            fprintf(out, "%.8g%s", column[c][k],
                    c == n_column - 1 ? "\n" : " ");
}

/* Columns: q, I, and in vacuum, excluded volume, hydration. */
static void columns(const tsr_partial_curves *c, double c1, double c2,
                    double *intensity, double *part)
{
    size_t n = (size_t)c->n;
    tsr_contrast_intensity(c, c1, c2, intensity);
    for (size_t k = 0; k < n && c->n_comp == 3; k++) {
        double g = tsr_component_scale(c1, c->radius_ang, c->q[k]);
        part[k] = c->pair[k];
        part[n + k] = g * g * c->pair[3 * n + k];
        part[2 * n + k] = c2 * c2 * c->pair[5 * n + k];
    }
}

static tsr_status write_curve(const tsr_profile_output *o, const char *path,
                              const tsr_profile_result *r, tsr_err *err)
{
    size_t n = (size_t)o->n_q;
    tsr_partial_curves curves = {0};
    double *q = calloc(5 * n, sizeof *q);
    TSR_TRY(tsr_allocated(q, err));
    for (int k = 0; k < o->n_q; k++)
        q[k] = o->q_min + (o->q_max - o->q_min) * k / (o->n_q - 1);
    tsr_status status = tsr_partial_curves_make(&r->structure.partials, o->n_q,
                                                q, &curves, err);
    int n_column = o->with_partials && r->n_comp == 3 ? 5 : 2;
    if (status == TSR_OK) {
        const double *column[5] = {q, q + n, q + 2 * n, q + 3 * n, q + 4 * n};
        char heading[1024];
        snprintf(heading, sizeof heading,
                 "tessera " TSR_VERSION " profile: %.600s\n"
                 "c1 = %.5f, c2 = %.5f, %s is %.6g "
                 "1/cm at 1 mg/ml\n"
                 "q (1/Angstrom) I(q)%s",
                 r->structure.path, r->fit.c1, r->fit.c2,
                 r->structure.is_neutron ? "fm^2 of neutrons; 1 fm^2"
                                         : "electrons squared; 1 e^2",
                 tsr_profile_absolute(&r->structure),
                 n_column == 5 ? " vacuum excluded-volume hydration" : "");
        columns(&curves, r->fit.c1, r->fit.c2, q + n, q + 2 * n);
        tsr_file_writer to = {.out = NULL};
        if (path != NULL)
            status = tsr_file_begin(&to, path, err);
        FILE *out = path != NULL ? to.out : o->out;
        if (status == TSR_OK)
            print_table(out, heading, o->n_q, n_column, column);
        if (path != NULL)
            status = tsr_file_end(&to, status, err);
        else if (ferror(out))
            status = tsr_fail(err, TSR_E_IO, "cannot write the curve");
    }
    tsr_partial_curves_clear(&curves);
    free(q);
    return status;
}

/* ---- fits ---- */

/* Columns q, I_exp, sigma, I_model after three lines that begin with '#', as
 * FoXS's .fit files have them; the model is scale I + background. */
static tsr_status write_fit(const tsr_profile_output *o, const char *path,
                            const tsr_profile_result *r, tsr_err *err)
{
    char note[64]; /* ends the second line */
    const tsr_profile_fit *fit = &r->fit;
    const tsr_saxs *s = o->saxs;
    const double first = s->q[0], last = s->q[s->n - 1];
    tsr_file_writer to;
    TSR_TRY(tsr_file_begin(&to, path, err));
    tsr_profile_bounds_text(fit, note, sizeof note);
    fprintf(to.out,
            "# SAXS profile: number of points = %d, q_min = %.8g, q_max = "
            "%.8g, delta_q = %.8g" FIT_FILE_MARK
            "# offset = %.8g, scaling c = %.8g, c1 = %.5f, c2 = %.5f, Chi^2 = "
            "%.6g%s\n"
            "#  q       exp_intensity   error model_intensity\n",
            s->n, first, last, s->n > 1 ? (last - first) / (s->n - 1) : 0.0,
            fit->background, fit->scale, fit->c1, fit->c2, fit->chi2, note);
    for (int k = 0; k < s->n; k++)
        fprintf(to.out, "%.8f %.8g %.8g %.8g\n", s->q[k], s->intensity[k],
                s->sigma[k], r->curve[k]);
    return tsr_file_end(&to, TSR_OK, err);
}

/* The last two parts of a path: many files are called model.pdb. */
static const char *short_name(const char *path)
{
    int n_slash = 0;
    for (const char *p = path + strlen(path); p > path; p--)
        if (p[-1] == '/' && ++n_slash == 2)
            return p;
    return path;
}

static const char *bound_mark(int at)
{
    return at == 0 ? "" : at < 0 ? " (lower bound)" : " (upper bound)";
}

/* The middle 99 % of the residuals, but no less than noise has. What lies
 * beyond is a stroke at the edge: one bad point would flatten all others. */
static void limit_residuals(tsr_figure *f)
{
    if (f->pool.failed)
        return;
    tsr_panel *panel = &f->panel[1];
    const int n = panel->layer[0].n;
    const double *q = panel->layer[0].x, *r = panel->layer[0].y;
    double *from, *to;
    tsr_pool_array(&f->pool, from, n);
    tsr_pool_array(&f->pool, to, n);
    if (f->pool.failed)
        return;
    for (int k = 0; k < n; k++)
        from[k] = fabs(r[k]);
    gsl_sort(from, 1, (size_t)n);
    panel->y1 = fmax(3.5, 1.15 * from[(int)(0.99 * (n - 1))]);
    panel->y0 = -panel->y1;
    for (int k = 0; k < n; k++) {
        const double edge = copysign(panel->y1, r[k]);
        const int is_beyond = fabs(r[k]) > panel->y1;
        from[k] = is_beyond ? edge : (double)NAN;
        to[k] = is_beyond ? 0.85 * edge : (double)NAN;
    }
    tsr_figure_layer(f, TSR_LAYER_ERRORS, NULL, TSR_COLOUR_DATA, n, q, from,
                     to);
}

static tsr_status write_picture(const tsr_profile_output *o, const char *path,
                                const tsr_profile_result *r, tsr_err *err)
{
    const tsr_profile_fit *fit = &r->fit;
    const tsr_saxs *saxs = o->saxs;
    char title[256], subtitle[256], contrast[96] = "", label[64] = "computed";
    char cormap[48];
    int n_below = 0;
    for (int k = 0; k < saxs->n; k++)
        n_below += saxs->intensity[k] <= 0.0;
    if (n_below > 0)
        snprintf(label, sizeof label,
                 "computed; %d points with I \xe2\x89\xa4 0 not shown",
                 n_below);
    if (r->n_comp == 3)
        snprintf(contrast, sizeof contrast,
                 " \xc2\xb7 c1 %.3f%s \xc2\xb7 c2 %.2f%s", fit->c1,
                 bound_mark(fit->c1_at), fit->c2, bound_mark(fit->c2_at));
    snprintf(title, sizeof title, "%.60s fitted to %.60s",
             short_name(r->structure.path), short_name(saxs->path));
    snprintf(subtitle, sizeof subtitle,
             "\xcf\x87\xc2\xb2/N %.3g, reduced %.3g%s%s", fit->chi2,
             fit->reduced_chi2,
             tsr_cormap_text(" \xc2\xb7 CorMap p ", fit->cormap_p, cormap),
             contrast);
    const tsr_fit_figure picture = {.n = saxs->n,
                                    .q = saxs->q,
                                    .intensity = saxs->intensity,
                                    .sigma = saxs->sigma,
                                    .model = r->curve,
                                    .model_label = label,
                                    .residual_title = "residual / \xcf\x83"};
    tsr_figure f = tsr_figure_new("fit", title, "q (1/\xc3\x85)", 650);
    f.subtitle = tsr_pool_text(&f.pool, subtitle);
    tsr_fit_figure_add(&f, &picture, 360);
    limit_residuals(&f);
    const double last = saxs->q[saxs->n - 1];
    f.x0 = saxs->q[0] < 0.15 * last ? 0.0 : saxs->q[0];
    f.x1 = last + 0.02 * (last - f.x0);
    tsr_status status = tsr_figure_finish(&f, err);
    TSR_THEN(status, tsr_figure_write_svg(&f, path, err));
    tsr_figure_clear(&f);
    return status;
}

static tsr_status write_one(const tsr_profile_output *o, int each,
                            const tsr_profile_result *r, tsr_log *log,
                            tsr_err *err)
{
    char *name, *picture;
    tsr_status status = TSR_OK;
    names(o->path, each, r->structure.path, o->saxs != NULL, &name, &picture);
    if (name == NULL || picture == NULL)
        status = tsr_no_memory(err);
    else if (o->saxs == NULL)
        status = write_curve(o, name, r, err);
    else
        status = write_fit(o, name, r, err);
    if (status == TSR_OK && o->saxs != NULL)
        status = write_picture(o, picture, r, err);
    if (status == TSR_OK && o->saxs != NULL)
        tsr_info(log, "wrote %s and %s", name, picture);
    else if (status == TSR_OK)
        tsr_info(log, "wrote %s", name);
    free(name);
    free(picture);
    return status;
}

tsr_status tsr_profile_write(const tsr_profile_output *output, int n,
                             const tsr_profile_result *result, tsr_log *log,
                             tsr_err *err)
{
    if (output->path == NULL)
        return write_curve(output, NULL, &result[0], err);
    int each = is_folder(output->path);
    if (each && mkdir(output->path, 0777) != 0 && !is_folder(output->path))
        return tsr_fail(err, TSR_E_IO, "cannot make the folder '%s'",
                        output->path);
    for (int i = 0; i < (each ? n : 1); i++)
        TSR_TRY(write_one(output, each, &result[i], log, err));
    return TSR_OK;
}
