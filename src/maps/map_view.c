/* A draw's density is made on the map's grid, of all its atoms and states; then
 * sums over the box, near the model and near each residue. The density near a
 * residue is of the whole model, so that neighbours do not count as missing. */
#include "maps/map_view.h"

#include "maps/density.h"
#include "maps/map_source.h"
#include "maps/mask.h"

#include <gsl/gsl_sort.h>
#include <gsl/gsl_statistics_double.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

/* What is added up of draws, at most: atoms times voxels that each reaches. */
static const double most_work = 2e9;

enum { MOST_PIXELS = 80 };

typedef struct {
    const tsr_map_options *o;
    const tsr_map_view_models *models;
    tsr_map *map;
    tsr_density_engine *engine;
    unsigned char *z; /* [n_atom] */
    size_t n_voxel;
    float *one;         /* [n_voxel] density of a conformation */
    float *density;     /* of a draw */
    double *mean;       /* of all draws */
    unsigned char *own; /* [n_voxel] 1: counted for the residue, 2: for all */
    double *value;      /* [draws][2 + n_residue] correlations */
    tsr_map_view *out;
} job;

/* ---- one draw ---- */

static tsr_status add_density(job *j, const double (*xyz)[3], double weight,
                              tsr_err *err)
{
    const int first[2] = {0, j->models->atoms->n_atom};
    const tsr_density_batch batch = {
        .n_system = 1, .first = first, .xyz = xyz, .z = j->z};
    const tsr_density_options o = {.density = j->one};
    tsr_density_sums sums;
    TSR_TRY(tsr_density_run(j->engine, &batch, &o, &sums, err));
    for (size_t k = 0; k < j->n_voxel; k++)
        j->density[k] += (float)(weight * (double)j->one[k]);
    return TSR_OK;
}

static void add_voxel(const job *j, size_t k, tsr_map_sums *sum)
{
    tsr_map_sums_add(sum, (double)j->map->value[k], (double)j->density[k]);
}

/* Where the first voxel at or beyond x lies on an axis, within the grid. */
static int voxel_at(const tsr_map_grid *g, int axis, double x)
{
    const double at = ceil((x - g->origin[axis]) / g->step[axis]);
    return (int)fmax(0.0, fmin(g->n[axis], at));
}

/* Voxels near an atom that the residue, or all (`of` 2), has not counted. */
static void add_near(job *j, const double x[3], int of, tsr_map_sums *sum)
{
    const tsr_map_grid *g = &j->map->grid;
    const double reach = j->out->mask_ang;
    int low[3], high[3];
    for (int c = 0; c < 3; c++) {
        low[c] = voxel_at(g, c, x[c] - reach);
        high[c] = voxel_at(g, c, x[c] + reach);
    }
    for (int z = low[2]; z < high[2]; z++)
        for (int y = low[1]; y < high[1]; y++)
            for (int i = low[0]; i < high[0]; i++) {
                const int at[3] = {i, y, z};
                const size_t k = ((size_t)z * (size_t)g->n[1] + (size_t)y) *
                                     (size_t)g->n[0] +
                                 (size_t)i;
                double d2 = 0.0;
                for (int c = 0; c < 3; c++)
                    d2 += pow(g->origin[c] + g->step[c] * at[c] - x[c], 2.0);
                if ((j->own[k] & of) != 0 || d2 > reach * reach ||
                    isnan(j->map->value[k]))
                    continue;
                j->own[k] |= (unsigned char)of;
                if (sum != NULL)
                    add_voxel(j, k, sum);
            }
}

/* A residue is done: its voxels may be another's, too. */
static void forget_near(job *j, const double x[3])
{
    const tsr_map_grid *g = &j->map->grid;
    const double reach = j->out->mask_ang;
    for (int z = voxel_at(g, 2, x[2] - reach); z < voxel_at(g, 2, x[2] + reach);
         z++)
        for (int y = voxel_at(g, 1, x[1] - reach);
             y < voxel_at(g, 1, x[1] + reach); y++)
            for (int i = voxel_at(g, 0, x[0] - reach);
                 i < voxel_at(g, 0, x[0] + reach); i++)
                j->own[((size_t)z * (size_t)g->n[1] + (size_t)y) *
                           (size_t)g->n[0] +
                       (size_t)i] &= 2;
}

/* Correlations of what is in j->density, of conformations [n][n_atom]. */
static void correlate(job *j, int n, const double (*xyz)[3], double *value)
{
    const tsr_atoms *atoms = j->models->atoms;
    const size_t n_atom = (size_t)atoms->n_atom;
    tsr_map_sums box = {0}, mask = {0};
    for (size_t k = 0; k < j->n_voxel; k++)
        if (!isnan(j->map->value[k]))
            add_voxel(j, k, &box);
    memset(j->own, 0, j->n_voxel);
    for (size_t i = 0; i < (size_t)n * n_atom; i++)
        add_near(j, xyz[i], 2, &mask);
    for (int r = 0; r < atoms->n_residue; r++) {
        const tsr_file_residue *residue = &atoms->residue[r];
        const size_t first = (size_t)residue->first_atom;
        const size_t end = first + (size_t)residue->n_atom;
        tsr_map_sums near = {0};
        for (size_t c = 0; c < (size_t)n; c++)
            for (size_t i = first; i < end; i++)
                add_near(j, xyz[c * n_atom + i], 1, &near);
        for (size_t c = 0; c < (size_t)n; c++)
            for (size_t i = first; i < end; i++)
                forget_near(j, xyz[c * n_atom + i]);
        value[2 + r] = tsr_map_cc(&near);
    }
    value[0] = tsr_map_cc(&box);
    value[1] = tsr_map_cc(&mask);
}

/* ---- slices ---- */

/* So many voxels are above it as the molecule takes up: 1.21 Angstrom^3 a
 * Dalton, and two Daltons an electron. */
static double enclosing_level(const job *j, const float *density)
{
    const double *step = j->map->grid.step;
    double electrons = 0.0;
    float *sorted = malloc((j->n_voxel + 1) * sizeof *sorted);
    if (sorted == NULL)
        return (double)NAN;
    for (int i = 0; i < j->models->atoms->n_atom; i++)
        electrons += j->z[i];
    memcpy(sorted, density, j->n_voxel * sizeof *sorted);
    const double n = 2.42 * electrons / (step[0] * step[1] * step[2]);
    const size_t at = n < (double)j->n_voxel ? j->n_voxel - 1 - (size_t)n : 0;
    gsl_sort_float(sorted, 1, j->n_voxel);
    const double level = (double)sorted[at];
    free(sorted);
    return level;
}

/* The map about a place in a plane, in pixels of one or several voxels. */
static void fill_slice(const job *j, const float *from, int at,
                       const int low[2], int bin, const tsr_map_slice *s,
                       float *out)
{
    const tsr_map_grid *g = &j->map->grid;
    const int u = s->axis == 0 ? 1 : 0, v = s->axis == 2 ? 1 : 2;
    const size_t step[3] = {1, (size_t)g->n[0],
                            (size_t)g->n[0] * (size_t)g->n[1]};
    for (int y = 0; y < s->n[1]; y++)
        for (int x = 0; x < s->n[0]; x++) {
            double sum = 0.0;
            for (int k = 0; k < bin * bin; k++)
                sum += (double)
                    from[step[s->axis] * (size_t)at +
                         step[u] * (size_t)(low[0] + x * bin + k % bin) +
                         step[v] * (size_t)(low[1] + y * bin + k / bin)];
            out[y * s->n[0] + x] = (float)(sum / (bin * bin));
        }
}

/* Within reach of the model, through its middle. */
static tsr_status make_slice(const job *j, int axis, const double box[2][3],
                             const float *mean, const float *start,
                             tsr_map_slice *s, tsr_err *err)
{
    const tsr_map_grid *g = &j->map->grid;
    const int other[2] = {axis == 0 ? 1 : 0, axis == 2 ? 1 : 2};
    int low[2], n[2], bin = 1;
    const int at =
        voxel_at(g, axis, 0.5 * (box[0][axis] + box[1][axis])) < g->n[axis]
            ? voxel_at(g, axis, 0.5 * (box[0][axis] + box[1][axis]))
            : g->n[axis] - 1;
    for (int c = 0; c < 2; c++) {
        const int end = voxel_at(g, other[c], box[1][other[c]]);
        low[c] = voxel_at(g, other[c], box[0][other[c]]);
        n[c] = end - low[c];
        while (n[c] / bin > MOST_PIXELS)
            bin++;
    }
    *s = (tsr_map_slice){.axis = axis,
                         .at_ang = g->origin[axis] + g->step[axis] * at,
                         .step = bin * g->step[other[0]]};
    for (int c = 0; c < 2; c++) {
        s->n[c] = n[c] / bin;
        s->first[c] = g->origin[other[c]] + g->step[other[c]] * (low[c] - 0.5);
    }
    const size_t room = (size_t)s->n[0] * (size_t)s->n[1] + 1;
    s->map = calloc(room, sizeof *s->map);
    s->model = calloc(room, sizeof *s->model);
    s->start = calloc(room, sizeof *s->start);
    if (s->map == NULL || s->model == NULL || s->start == NULL)
        return tsr_fail(err, TSR_E_NOMEM, "out of memory for slices");
    fill_slice(j, j->map->value, at, low, bin, s, s->map);
    fill_slice(j, mean, at, low, bin, s, s->model);
    fill_slice(j, start, at, low, bin, s, s->start);
    return TSR_OK;
}

/* The box of the atoms of the start and of the last conformation, with air. */
static void find_box(const job *j, double box[2][3])
{
    const tsr_map_view_models *m = j->models;
    const size_t n_atom = (size_t)m->atoms->n_atom;
    const double air = 2.0 + j->o->resolution;
    for (int c = 0; c < 3; c++) {
        box[0][c] = HUGE_VAL;
        box[1][c] = -HUGE_VAL;
        for (size_t i = 0; i < n_atom; i++) {
            const double last = m->xyz[((size_t)m->n - 1) * n_atom + i][c];
            box[0][c] = fmin(box[0][c], fmin(last, m->start[i][c]) - air);
            box[1][c] = fmax(box[1][c], fmax(last, m->start[i][c]) + air);
        }
    }
}

/* ---- all draws ---- */

static tsr_map_spread spread_of(const job *j, int column, double *sorted)
{
    const size_t width = 2 + (size_t)j->out->n_residue;
    size_t n = 0;
    tsr_map_spread s = {.start = j->value[(size_t)column]};
    for (size_t d = 1; d <= (size_t)j->out->n_draw; d++) {
        const double value = j->value[d * width + (size_t)column];
        if (!isnan(value))
            sorted[n++] = value;
    }
    gsl_sort(sorted, 1, n);
    s.median = s.q5 = s.q95 = (double)NAN;
    if (n > 0) {
        s.median = gsl_stats_quantile_from_sorted_data(sorted, 1, n, 0.5);
        s.q5 = gsl_stats_quantile_from_sorted_data(sorted, 1, n, 0.05);
        s.q95 = gsl_stats_quantile_from_sorted_data(sorted, 1, n, 0.95);
    }
    return s;
}

static tsr_status find_spreads(job *j, tsr_err *err)
{
    tsr_map_view *v = j->out;
    double *sorted = calloc((size_t)v->n_draw + 1, sizeof *sorted);
    v->residue = calloc((size_t)v->n_residue + 1, sizeof *v->residue);
    if (sorted == NULL || v->residue == NULL) {
        free(sorted);
        return tsr_fail(err, TSR_E_NOMEM, "out of memory for correlations");
    }
    v->box = spread_of(j, 0, sorted);
    v->mask = spread_of(j, 1, sorted);
    for (int r = 0; r < v->n_residue; r++)
        v->residue[r] = spread_of(j, 2 + r, sorted);
    free(sorted);
    return TSR_OK;
}

/* Every so many draws, that all together take a while and no more. */
static int every_draw(const job *j, int n_draw)
{
    const double *step = j->map->grid.step;
    const double reach =
        2.0 * TSR_BLUR_REACH * j->out->sigma_over_r * j->o->resolution;
    const double work = j->models->atoms->n_atom * pow(reach, 3.0) /
                            (step[0] * step[1] * step[2]) +
                        10.0 * (double)j->n_voxel;
    const double most = fmax(5.0, most_work / work);
    return (int)ceil(n_draw / fmin(n_draw, most));
}

static tsr_status look_at_draws(job *j, tsr_err *err)
{
    const tsr_map_view_models *m = j->models;
    const size_t n_atom = (size_t)m->atoms->n_atom;
    const size_t width = 2 + (size_t)j->out->n_residue;
    const int every = every_draw(j, m->draw[m->n - 1] + 1);
    for (int first = 0, end; first < m->n; first = end) {
        for (end = first + 1; end < m->n && m->draw[end] == m->draw[first];)
            end++;
        if (m->draw[first] % every != 0)
            continue;
        memset(j->density, 0, j->n_voxel * sizeof *j->density);
        for (int k = first; k < end; k++)
            TSR_TRY(
                add_density(j, m->xyz + (size_t)k * n_atom, m->weight[k], err));
        for (size_t k = 0; k < j->n_voxel; k++)
            j->mean[k] += (double)j->density[k];
        j->out->n_draw++;
        correlate(j, end - first, m->xyz + (size_t)first * n_atom,
                  j->value + (size_t)j->out->n_draw * width);
    }
    return TSR_OK;
}

/* The start's density stays in j->one, the mean of the draws in j->density. */
static tsr_status look(job *j, tsr_err *err)
{
    tsr_map_view *v = j->out;
    double box[2][3];
    TSR_TRY(look_at_draws(j, err));
    memset(j->density, 0, j->n_voxel * sizeof *j->density);
    TSR_TRY(add_density(j, j->models->start, 1.0, err));
    correlate(j, 1, j->models->start, j->value);
    TSR_TRY(find_spreads(j, err));
    for (size_t k = 0; k < j->n_voxel; k++)
        j->density[k] = (float)(j->mean[k] / v->n_draw);
    TSR_TRY(tsr_fsc_make(j->map, j->density, &v->mean, err));
    TSR_TRY(tsr_fsc_make(j->map, j->one, &v->start, err));
    v->level = enclosing_level(j, j->density);
    v->start_level = enclosing_level(j, j->one);
    find_box(j, box);
    for (int c = 0; c < 3; c++)
        TSR_TRY(make_slice(j, c, (const double(*)[3])box, j->density, j->one,
                           &v->slice[c], err));
    return TSR_OK;
}

/* ---- the half-maps ---- */

static tsr_status compare_halves(job *j, tsr_err *err)
{
    const tsr_map_options *o = j->o;
    const tsr_map_start start = {j->models->atoms->n_atom, j->models->start};
    tsr_map *half[2] = {NULL, NULL};
    float *mask = NULL;
    tsr_status status = TSR_OK;
    for (int k = 0; k < 2 && status == TSR_OK; k++)
        status = tsr_map_read(o->half[k], (tsr_map_origin)o->origin, NULL,
                              &half[k], err);
    if (status == TSR_OK)
        status = tsr_map_source_mask(o, half[0], start, NULL, &mask, err);
    if (status == TSR_OK)
        status =
            tsr_fsc_halves_make(half[0], half[1], mask, &j->out->halves, err);
    free(mask);
    tsr_map_free(half[0]);
    tsr_map_free(half[1]);
    return status;
}

/* ---- all of it ---- */

static tsr_status open_job(job *j, tsr_err *err)
{
    const tsr_map_options *o = j->o;
    const tsr_atoms *atoms = j->models->atoms;
    const size_t n_atom = (size_t)atoms->n_atom;
    const tsr_map_start start = {atoms->n_atom, j->models->start};
    const size_t n_draw = (size_t)j->models->draw[j->models->n - 1] + 1;
    tsr_map_source source;
    tsr_blur_table blur;
    TSR_TRY(tsr_map_source_read(o, start, NULL, &source, err));
    j->map = source.map;
    j->n_voxel = tsr_map_n_voxel(&j->map->grid);
    j->z = calloc(n_atom + 1, 1);
    j->one = calloc(j->n_voxel, sizeof *j->one);
    j->density = calloc(j->n_voxel, sizeof *j->density);
    j->mean = calloc(j->n_voxel, sizeof *j->mean);
    j->own = calloc(j->n_voxel, 1);
    j->value =
        calloc((n_draw + 1) * (2 + (size_t)atoms->n_residue), sizeof *j->value);
    int *element = calloc(n_atom + 1, sizeof *element);
    if (j->z == NULL || j->one == NULL || j->density == NULL ||
        j->mean == NULL || j->own == NULL || j->value == NULL ||
        element == NULL) {
        free(element);
        return tsr_fail(err, TSR_E_NOMEM, "out of memory for a map's view");
    }
    for (size_t i = 0; i < n_atom; i++) {
        element[i] = atoms->atom[i].z;
        j->z[i] = (unsigned char)element[i];
    }
    tsr_status status =
        tsr_blur_make(TSR_BLUR_GAUSSIAN, o->resolution, j->out->sigma_over_r,
                      atoms->n_atom, element, &blur, err);
    free(element);
    if (status == TSR_OK)
        status = tsr_density_reference_new(j->map, &j->engine, err);
    return status == TSR_OK ? tsr_density_set_blur(j->engine, &blur, err)
                            : status;
}

tsr_status tsr_map_view_make(const tsr_term_options *options,
                             const tsr_map_view_models *models,
                             double sigma_over_r, tsr_map_view *out,
                             tsr_err *err)
{
    job j = {.o = (const void *)options, .models = models, .out = out};
    *out = (tsr_map_view){.resolution_ang = j.o->resolution,
                          .sigma_over_r = sigma_over_r,
                          .mask_ang = 3.0,
                          .n_residue = models->atoms->n_residue};
    tsr_status status = open_job(&j, err);
    if (status == TSR_OK)
        status = look(&j, err);
    if (status == TSR_OK && j.o->half[0] != NULL)
        status = compare_halves(&j, err);
    tsr_density_free(j.engine);
    tsr_map_free(j.map);
    free(j.z);
    free(j.one);
    free(j.density);
    free(j.mean);
    free(j.own);
    out->timeline = j.value;
    if (status != TSR_OK)
        tsr_map_view_clear(out);
    return status;
}

void tsr_map_view_clear(tsr_map_view *view)
{
    for (int k = 0; k < 3; k++) {
        free(view->slice[k].map);
        free(view->slice[k].model);
        free(view->slice[k].start);
    }
    free(view->residue);
    free(view->timeline);
    tsr_fsc_clear(&view->mean);
    tsr_fsc_clear(&view->start);
    tsr_fsc_halves_clear(&view->halves);
    *view = (tsr_map_view){.n_draw = 0};
}
