/* Several models as one ensemble: every model of every file, the mean of their
 * partial profiles, and the weights with which that mean fits data best.
 *
 * A mean of profiles is a mean of partial profiles at the same c1 and c2, so
 * that one fit serves an ensemble as it does a structure. Weights by least
 * squares and c1, c2 are found in turns, each at the other's best; by maximum
 * entropy at those of equal weights, from which they depart no more than they
 * must. */
#include "commands/profile_report.h"

#include "core/text.h"
#include "molecule/structure.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

static tsr_status no_memory(tsr_err *err)
{
    return tsr_fail(err, TSR_E_NOMEM, "no memory for the models");
}

/* ---- the models ---- */

static tsr_status grow(tsr_profile_ensemble *e, int more, tsr_err *err)
{
    const size_t n = (size_t)e->n + (size_t)more;
    tsr_profile_result *model = realloc(e->model, n * sizeof *model);
    if (model == NULL)
        return no_memory(err);
    memset(model + e->n, 0, (size_t)more * sizeof *model);
    e->model = model;
    return TSR_OK;
}

/* Every model of a file of all atoms; "x.pdb:3" is its third. */
static tsr_status add_models(tsr_profile_ensemble *e, tsr_profile_maker *maker,
                             const char *path, tsr_err *err)
{
    tsr_atoms *atoms = NULL;
    double(*xyz)[3] = NULL;
    int n = 0;
    TSR_TRY(tsr_atoms_read_models(path, &atoms, &n, &xyz, err));
    tsr_status status = grow(e, n, err);
    for (int m = 0; m < n && status == TSR_OK; m++) {
        char *name = n > 1 ? tsr_words_of("%s:%d", path, m + 1) : strdup(path);
        for (int a = 0; a < atoms->n_atom; a++)
            memcpy(atoms->atom[a].xyz,
                   xyz[(size_t)m * (size_t)atoms->n_atom + (size_t)a],
                   sizeof atoms->atom[a].xyz);
        if (name == NULL)
            status = no_memory(err);
        else
            status = tsr_profile_compute_atoms(maker, name, atoms, e->n == 0,
                                               &e->model[e->n].structure, err);
        e->n++;
        free(name);
    }
    tsr_atoms_free(atoms);
    return status;
}

tsr_status tsr_profile_ensemble_read(tsr_profile_maker *maker,
                                     tsr_profile_bodies bodies, int n_path,
                                     const char *const *path,
                                     tsr_profile_ensemble *e, tsr_err *err)
{
    tsr_status status = TSR_OK;
    for (int i = 0; i < n_path && status == TSR_OK; i++) {
        if (bodies == TSR_PROFILE_ATOMS) {
            status = add_models(e, maker, path[i], err);
            continue;
        }
        status = grow(e, 1, err);
        TSR_THEN(status, tsr_profile_compute(maker, path[i],
                                             &e->model[e->n++].structure, err));
    }
    for (int i = 0; i < e->n && status == TSR_OK; i++)
        e->model[i].n_comp = e->model[i].structure.partials.n_comp;
    if (status == TSR_OK && e->n < 2)
        status = tsr_fail(err, TSR_E_USAGE,
                          "--ensemble: '%s' holds one model; give several "
                          "files, or one with several models",
                          path[0]);
    return status;
}

/* ---- the mean ---- */

/* The finest grid of all, as far as all reach. */
static tsr_q_grid common_grid(const tsr_profile_ensemble *e)
{
    tsr_q_grid grid = e->model[0].structure.partials.grid;
    double top = HUGE_VAL;
    for (int i = 0; i < e->n; i++) {
        const tsr_q_grid *g = &e->model[i].structure.partials.grid;
        top = fmin(top, (g->n_q - 1) * g->dq_inv_ang);
        if (g->dq_inv_ang < grid.dq_inv_ang)
            grid = *g;
    }
    grid.n_q = (int)floor(top / grid.dq_inv_ang + 1e-9) + 1;
    return grid;
}

static void add_numbers(tsr_profile_structure *to,
                        const tsr_profile_structure *s, double w)
{
    to->n_body = s->n_body > to->n_body ? s->n_body : to->n_body;
    to->mass += w * s->mass;
    to->volume += w * s->volume;
    to->radius_ang += w * s->radius_ang;
    to->layer_contrast = s->layer_contrast;
    to->is_neutron = s->is_neutron;
    to->match_d2o += w * s->match_d2o;
    to->usual_c2 = s->usual_c2;
    to->rg_ang += w * s->rg_ang * s->rg_ang;
    to->seconds += s->seconds;
    if (w > 0.0)
        to->d_max_ang = fmax(to->d_max_ang, s->d_max_ang);
    to->partials.radius_ang += w * s->partials.radius_ang;
}

static tsr_status add_partials(tsr_partials *to, const tsr_partials *p,
                               double w, const double *q, tsr_err *err)
{
    tsr_partial_curves curves;
    const size_t n_q = (size_t)to->grid.n_q;
    const size_t n_pair = (size_t)(to->n_comp * (to->n_comp + 1) / 2);
    TSR_TRY(tsr_partial_curves_make(p, to->grid.n_q, q, &curves, err));
    for (size_t k = 0; k < n_pair * n_q; k++)
        to->pair[k] += w * curves.pair[k];
    for (size_t k = 0; k < n_q; k++)
        to->self[k] += w * curves.self[k];
    tsr_partial_curves_clear(&curves);
    return TSR_OK;
}

/* weight [e->n] with the sum 1. */
static tsr_status make_mean(const tsr_profile_ensemble *e, const char *name,
                            const double *weight, tsr_profile_result *out,
                            tsr_err *err)
{
    tsr_profile_structure *s = &out->structure;
    tsr_partials *p = &s->partials;
    tsr_status status = TSR_OK;
    tsr_profile_structure_clear(s);
    p->n_comp = out->n_comp = e->model[0].n_comp;
    p->grid = common_grid(e);
    const size_t n_q = (size_t)p->grid.n_q;
    double *q = calloc(n_q, sizeof *q);
    p->pair =
        calloc((size_t)(p->n_comp * (p->n_comp + 1) / 2) * n_q, sizeof(double));
    p->self = calloc(n_q, sizeof *p->self);
    s->path = strdup(name);
    if (q == NULL || p->pair == NULL || p->self == NULL || s->path == NULL)
        status = no_memory(err);
    for (size_t k = 0; k < n_q && status == TSR_OK; k++)
        q[k] = (double)k * p->grid.dq_inv_ang;
    for (int i = 0; i < e->n && status == TSR_OK; i++) {
        add_numbers(s, &e->model[i].structure, weight[i]);
        if (weight[i] > 0.0)
            status = add_partials(p, &e->model[i].structure.partials, weight[i],
                                  q, err);
    }
    s->rg_ang = sqrt(s->rg_ang);
    free(q);
    return status;
}

/* ---- weights ---- */

static const char *const names[] = {"equal weights", "least squares",
                                    "maximum entropy"};

/* curve [n][n_point] out: I of every model at c1 and c2, electrons squared. */
static tsr_status curves_at(const tsr_profile_ensemble *e, const tsr_saxs *saxs,
                            double c1, double c2, double *curve, tsr_err *err)
{
    for (int i = 0; i < e->n; i++) {
        tsr_partial_curves curves;
        TSR_TRY(tsr_partial_curves_of(&e->model[i].structure.partials, saxs,
                                      &curves, err));
        tsr_contrast_intensity(&curves, c1, c2,
                               curve + (size_t)i * (size_t)saxs->n);
        tsr_partial_curves_clear(&curves);
    }
    return TSR_OK;
}

static tsr_linear linear_of(const tsr_profile_fit_options *options)
{
    return (tsr_linear){1, options->fit_background, 1.0, options->background};
}

static tsr_status weigh_by_squares(tsr_profile_ensemble *e,
                                   const tsr_saxs *saxs,
                                   const tsr_profile_fit_options *options,
                                   double *curve, tsr_err *err)
{
    enum { WAY = TSR_WEIGHTS_SQUARES, MOST_TURNS = 20 };
    const double enough = 1e-5; /* of chi2 */
    const tsr_linear linear = linear_of(options);
    tsr_profile_result *r = &e->mean[WAY];
    double c1 = e->mean[0].fit.c1, c2 = e->mean[0].fit.c2, before = HUGE_VAL;
    tsr_status status = TSR_OK;
    for (int turn = 0; turn < MOST_TURNS && status == TSR_OK; turn++) {
        status = curves_at(e, saxs, c1, c2, curve, err);
        TSR_THEN(status, tsr_ensemble_least_squares(e->n, curve, saxs, &linear,
                                                    e->weight[WAY],
                                                    &e->point[WAY], err));
        TSR_THEN(status, make_mean(e, names[WAY], e->weight[WAY], r, err));
        TSR_THEN(status, tsr_profile_fit_data(options, saxs, r, err));
        if (status != TSR_OK || r->fit.chi2 > (1.0 - enough) * before)
            break;
        before = r->fit.chi2;
        c1 = r->fit.c1;
        c2 = r->fit.c2;
    }
    return status;
}

static tsr_status weigh_by_entropy(tsr_profile_ensemble *e,
                                   const tsr_saxs *saxs,
                                   const tsr_profile_fit_options *options,
                                   double theta, double *curve, tsr_err *err)
{
    enum { WAY = TSR_WEIGHTS_ENTROPY };
    const tsr_linear linear = linear_of(options);
    const tsr_profile_fit *equal = &e->mean[0].fit;
    tsr_profile_fit_options there = *options;
    there.c1[0] = there.c1[1] = equal->c1;
    there.c2[0] = there.c2[1] = equal->c2;
    TSR_TRY(curves_at(e, saxs, equal->c1, equal->c2, curve, err));
    TSR_TRY(tsr_ensemble_maxent(e->n, curve, saxs, &linear, theta,
                                e->weight[WAY], &e->point[WAY], err));
    TSR_TRY(make_mean(e, names[WAY], e->weight[WAY], &e->mean[WAY], err));
    return tsr_profile_fit_data(&there, saxs, &e->mean[WAY], err);
}

tsr_status tsr_profile_ensemble_weigh(tsr_profile_ensemble *e,
                                      const tsr_saxs *saxs,
                                      const tsr_profile_fit_options *options,
                                      double theta, tsr_err *err)
{
    const size_t n = (size_t)e->n;
    double *curve = NULL;
    for (int k = 0; k < TSR_N_WEIGHTS; k++) {
        e->weight[k] = calloc(n, sizeof *e->weight[k]);
        if (e->weight[k] == NULL)
            return no_memory(err);
    }
    for (size_t i = 0; i < n; i++)
        e->weight[0][i] = 1.0 / e->n;
    tsr_status status = make_mean(e, names[0], e->weight[0], &e->mean[0], err);
    e->n_way = 1;
    if (status != TSR_OK || saxs == NULL)
        return status;
    curve = malloc(n * (size_t)saxs->n * sizeof *curve);
    status = curve != NULL
                 ? tsr_profile_fit_data(options, saxs, &e->mean[0], err)
                 : no_memory(err);
    e->point[0] = (tsr_maxent_point){.effective = 1.0};
    TSR_THEN(status, weigh_by_squares(e, saxs, options, curve, err));
    TSR_THEN(status, weigh_by_entropy(e, saxs, options, theta, curve, err));
    e->n_way = TSR_N_WEIGHTS;
    free(curve);
    return status;
}

void tsr_profile_ensemble_clear(tsr_profile_ensemble *e)
{
    for (int i = 0; i < e->n; i++)
        tsr_profile_result_clear(&e->model[i]);
    for (int k = 0; k < TSR_N_WEIGHTS; k++) {
        tsr_profile_result_clear(&e->mean[k]);
        free(e->weight[k]);
    }
    free(e->model);
}

/* ---- what is told ---- */

static int carrying(const tsr_profile_ensemble *e, int way)
{
    const double least = 1e-3;
    int n = 0;
    for (int i = 0; i < e->n; i++)
        n += e->weight[way][i] >= least;
    return n;
}

void tsr_profile_ensemble_print(FILE *out, const tsr_profile_ensemble *e,
                                const tsr_saxs *saxs)
{
    int width = 5;
    fprintf(out, "ensemble of %d models\n", e->n);
    tsr_profile_print(out, e->n_way, e->mean, saxs);
    if (saxs == NULL)
        return;
    fprintf(out,
            "least squares: %d of %d models carry weight\n"
            "maximum entropy: theta %.3g, %.0f %% of the ensemble are used\n",
            carrying(e, TSR_WEIGHTS_SQUARES), e->n,
            e->point[TSR_WEIGHTS_ENTROPY].theta,
            100.0 * e->point[TSR_WEIGHTS_ENTROPY].effective);
    for (int i = 0; i < e->n; i++) {
        const char *name = tsr_text_file_name(e->model[i].structure.path);
        const int own = tsr_text_width(name);
        width = own > width ? own : width;
    }
    fprintf(out, "\n%-*s %8s %7s %14s %16s\n", width, "model", "chi2/N", "Rg",
            "least squares", "maximum entropy");
    for (int i = 0; i < e->n; i++)
        fprintf(out, "%-*s %8.3f %7.2f %14.3f %16.3f\n", width,
                tsr_text_file_name(e->model[i].structure.path),
                e->model[i].fit.chi2, e->model[i].structure.rg_ang,
                e->weight[TSR_WEIGHTS_SQUARES][i],
                e->weight[TSR_WEIGHTS_ENTROPY][i]);
    fputs("chi2/N: of the model alone, with c1, c2 and scale of its own\n",
          out);
}

void tsr_profile_ensemble_put(tsr_json *j, const tsr_profile_ensemble *e)
{
    static const char *const key[TSR_N_WEIGHTS] = {"equal", "least_squares",
                                                   "maximum_entropy"};
    tsr_json_object(j, "ensemble");
    for (int k = 0; k < e->n_way && k < TSR_N_WEIGHTS; k++) {
        tsr_json_object(j, key[k]);
        tsr_profile_put_members(j, &e->mean[k]);
        if (k == TSR_WEIGHTS_ENTROPY)
            tsr_json_number(j, "theta", e->point[k].theta);
        if (k > 0)
            tsr_json_number(j, "effective", e->point[k].effective);
        tsr_json_numbers(j, "weights", e->n, e->weight[k]);
        tsr_json_close(j);
    }
    tsr_json_close(j);
}
