/* Agreement of models with a map, part by part, and the figures of a report. */
#include "maps/map_view.h"

#include "core/text.h"
#include "core/vec3.h"
#include "maps/density.h"
#include "maps/map_source.h"
#include "molecule/secondary.h"
#include "molecule/topology.h"

#include <gsl/gsl_sort.h>
#include <gsl/gsl_statistics_double.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- parts ----
 *
 * A part is the list of atoms of residues with a mark. The ways to divide a
 * model differ only in which residues they mark. */

/* Appends the part of the residues first .. last, or those with mark
 * [n_residue] 1; mark NULL: all. */
static tsr_status add_component(tsr_components *all, const tsr_atoms *atoms,
                                int first, int last, const int *mark,
                                const char *name, tsr_err *err)
{
    tsr_component *more = tsr_pool_resize(
        &all->pool, all->component, (size_t)all->n + 1, sizeof *all->component);
    int n = 0;
    TSR_TRY(tsr_pool_check(&all->pool, err));
    all->component = more;
    tsr_component *c = &more[all->n++];
    snprintf(c->name, sizeof c->name, "%s", name);
    for (int r = first; r <= last; r++)
        n += mark == NULL || mark[r] ? atoms->residue[r].n_atom : 0;
    tsr_pool_array(&all->pool, c->atom, n);
    TSR_TRY(tsr_pool_check(&all->pool, err));
    c->n = 0;
    for (int r = first; r <= last; r++)
        for (int i = 0; i < atoms->residue[r].n_atom; i++)
            if (mark == NULL || mark[r])
                c->atom[c->n++] = atoms->residue[r].first_atom + i;
    return TSR_OK;
}

/* Number of a residue with its insertion code: "17" or "17A". */
static void number_text(const tsr_file_residue *r, char text[16])
{
    if (r->insertion == ' ')
        snprintf(text, 16, "%d", r->number);
    else
        snprintf(text, 16, "%d%c", r->number, r->insertion);
}

/* Appends the residues first .. last as a part. what: "helix" and so on; NULL:
 * a single residue. */
static tsr_status add_range(tsr_components *all, const tsr_atoms *atoms,
                            int first, int last, const char *what, tsr_err *err)
{
    const tsr_file_residue *a = &atoms->residue[first];
    char name[64], from[16], to[16];
    number_text(a, from);
    number_text(&atoms->residue[last], to);
    if (what == NULL)
        snprintf(name, sizeof name, "%s:%s %s", a->chain, from, a->name);
    else if (first == last)
        snprintf(name, sizeof name, "%s %s:%s", what, a->chain, from);
    else
        snprintf(name, sizeof name, "%s %s:%s-%s", what, a->chain, from, to);
    return add_component(all, atoms, first, last, NULL, name, err);
}

static tsr_status by_residue(const tsr_atoms *atoms, tsr_components *out,
                             tsr_err *err)
{
    for (int r = 0; r < atoms->n_residue; r++)
        TSR_TRY(add_range(out, atoms, r, r, NULL, err));
    return TSR_OK;
}

static tsr_status by_chain(const tsr_atoms *atoms, int *mark,
                           tsr_components *out, tsr_err *err)
{
    for (int r = 0; r < atoms->n_residue; r++) {
        const char *chain = atoms->residue[r].chain;
        int is_known = 0;
        for (int k = 0; k < out->n; k++)
            is_known |= strcmp(out->component[k].name, chain) == 0;
        if (is_known)
            continue;
        for (int k = 0; k < atoms->n_residue; k++)
            mark[k] = strcmp(atoms->residue[k].chain, chain) == 0;
        TSR_TRY(add_component(out, atoms, 0, atoms->n_residue - 1, mark, chain,
                              err));
    }
    return TSR_OK;
}

/* ---- secondary structure ---- */

/* Backbone coordinates of residue r. */
static tsr_backbone find_backbone(const tsr_atoms *atoms, int r,
                                  const double (*xyz)[3])
{
    static const char *const name[] = {"N", "CA", "C", "O"};
    const tsr_file_residue *residue = &atoms->residue[r];
    tsr_backbone b = {.is_proline = strcmp(residue->parent, "PRO") == 0};
    double *const to[] = {b.n, b.ca, b.c, b.o};
    int found = 0;
    for (int i = residue->first_atom; i < residue->first_atom + residue->n_atom;
         i++)
        for (int k = 0; k < 4; k++)
            if (strcmp(atoms->atom[i].name, name[k]) == 0) {
                tsr_vec3_copy(to[k], xyz[i]);
                found |= 1 << k;
            }
    b.has_all = found == 15;
    return b;
}

/* Whether residues r - 1 and r belong to one element of secondary structure. */
static int continues_run(const tsr_atoms *atoms, const tsr_backbone *backbone,
                         const char *kind, int r)
{
    return strcmp(atoms->residue[r].chain, atoms->residue[r - 1].chain) == 0 &&
           kind[r] == kind[r - 1] &&
           backbone[r].has_all == backbone[r - 1].has_all &&
           (!backbone[r].has_all || tsr_backbone_follows(&backbone[r]));
}

/* kind [n_residue] out: secondary structure of each residue. */
static tsr_status find_structure(const tsr_atoms *atoms, const double (*xyz)[3],
                                 tsr_backbone *backbone, char *kind,
                                 tsr_err *err)
{
    int n_backbone = 0;
    for (int r = 0; r < atoms->n_residue; r++) {
        backbone[r] = find_backbone(atoms, r, xyz);
        n_backbone += backbone[r].has_all;
    }
    if (n_backbone == 0)
        return tsr_fail(err, TSR_E_DATA,
                        "'%s' has no protein backbone (N, CA, C, O) to assign "
                        "secondary structure; use --by residue or chain",
                        atoms->path);
    return tsr_secondary_find(atoms->n_residue, backbone, kind, err);
}

static tsr_status by_structure(const tsr_atoms *atoms, const double (*xyz)[3],
                               tsr_components *out, tsr_err *err)
{
    const int n = atoms->n_residue;
    tsr_backbone *backbone;
    char *kind;
    tsr_pool_array(&out->pool, backbone, n);
    tsr_pool_array(&out->pool, kind, n);
    TSR_TRY(tsr_pool_check(&out->pool, err));
    TSR_TRY(find_structure(atoms, xyz, backbone, kind, err));
    for (int first = 0, r = 1; r <= n; r++) {
        if (r < n && continues_run(atoms, backbone, kind, r))
            continue;
        const char *what = kind[first] == TSR_HELIX    ? "helix"
                           : kind[first] == TSR_STRAND ? "strand"
                           : backbone[first].has_all   ? "coil"
                                                       : "other";
        TSR_TRY(add_range(out, atoms, first, r - 1, what, err));
        first = r;
    }
    return TSR_OK;
}

tsr_status tsr_components_make(tsr_component_kind kind, const tsr_atoms *atoms,
                               const double (*xyz)[3], tsr_components *out,
                               tsr_err *err)
{
    int *mark;
    *out = (tsr_components){0};
    tsr_pool_array(&out->pool, mark, atoms->n_residue);
    TSR_TRY(tsr_pool_check(&out->pool, err));
    return kind == TSR_BY_RESIDUE ? by_residue(atoms, out, err)
           : kind == TSR_BY_CHAIN ? by_chain(atoms, mark, out, err)
                                  : by_structure(atoms, xyz, out, err);
}

/* ---- named selections ---- */

/* Fills the members of residues that tsr_range_mark reads. */
static void set_residues(const tsr_atoms *atoms, tsr_residue *r)
{
    for (int i = 0; i < atoms->n_residue; i++) {
        const tsr_file_residue *from = &atoms->residue[i];
        memcpy(r[i].chain, from->chain, sizeof r[i].chain);
        r[i].number = from->number;
        r[i].insertion = from->insertion;
        r[i].chain_first = i;
        if (i > 0 && strcmp(from->chain, from[-1].chain) == 0)
            r[i].chain_first = r[i - 1].chain_first;
    }
}

static tsr_status select_one(const char *text, const tsr_atoms *atoms,
                             const tsr_residue *residue, int *mark,
                             tsr_components *out, tsr_err *err)
{
    char ranges[1024], name[48], shown[TSR_EXCERPT_SIZE];
    const char *equals = strchr(text, '=');
    if (equals == NULL || equals == text || equals[1] == '\0' ||
        strlen(equals) > sizeof ranges ||
        (size_t)(equals - text) >= sizeof name)
        return tsr_fail(err, TSR_E_USAGE,
                        "--select '%s': expected NAME=RANGE,RANGE..., as in "
                        "core=A:1-29,A:60-121",
                        tsr_text_excerpt(text, shown));
    snprintf(name, sizeof name, "%.*s", (int)(equals - text), text);
    snprintf(ranges, sizeof ranges, "%s", equals + 1);
    memset(mark, 0, (size_t)atoms->n_residue * sizeof *mark);
    char *rest = NULL;
    for (char *one = strtok_r(ranges, ",", &rest); one != NULL;
         one = strtok_r(NULL, ",", &rest)) {
        tsr_err why = {.message = ""};
        if (tsr_range_mark(one, atoms->n_residue, residue, mark, &why) !=
            TSR_OK)
            return tsr_fail(err, TSR_E_USAGE, "--select %s: %s", name,
                            why.message);
    }
    return add_component(out, atoms, 0, atoms->n_residue - 1, mark, name, err);
}

tsr_status tsr_components_select(int n, const char *const *text,
                                 const tsr_atoms *atoms, tsr_components *out,
                                 tsr_err *err)
{
    tsr_residue *residue;
    int *mark;
    *out = (tsr_components){0};
    tsr_pool_array(&out->pool, residue, atoms->n_residue);
    tsr_pool_array(&out->pool, mark, atoms->n_residue);
    TSR_TRY(tsr_pool_check(&out->pool, err));
    set_residues(atoms, residue);
    for (int i = 0; i < n; i++)
        TSR_TRY(select_one(text[i], atoms, residue, mark, out, err));
    return TSR_OK;
}

/* ---- the view ----
 *
 * The density of a draw is computed on the map's grid, with all atoms and
 * states. Correlations are then computed over the box, near the model, and near
 * each residue. The density near a residue is that of the whole model, so that
 * density of its neighbours is not missing. */

/* Largest cost of all analysed draws, in evaluations of a Gaussian at a
 * voxel. */
static const double most_work = 2e9;

enum { MOST_PIXELS = 80 };

/* A comparison under way. */
typedef struct {
    const tsr_map_options *o;
    const tsr_map_models *models;
    tsr_map *map;
    tsr_density_engine *engine;
    size_t n_voxel;
    tsr_pool pool;
    float *one;                 /* [n_voxel] density of one conformation */
    float *density;             /* [n_voxel] density of one draw */
    double *mean;               /* [n_voxel] sum over the draws */
    unsigned char *is_near;     /* [n_voxel] 1: near the atoms of the present
                                   correlation */
    size_t *near_voxel, n_near; /* [n_voxel] list of these voxels */
    tsr_map_view *out;
} job;

/* ---- one draw ---- */

static tsr_status add_density(job *j, const double (*xyz)[3], double weight,
                              tsr_err *err)
{
    const tsr_density_options o = {.density = j->one};
    tsr_density_sums sums;
    TSR_TRY(tsr_density_one(j->engine, j->models->atoms->n_atom, xyz,
                            j->models->z, &o, &sums, err));
    for (size_t k = 0; k < j->n_voxel; k++)
        j->density[k] += (float)(weight * (double)j->one[k]);
    return TSR_OK;
}

static void add_voxel(const job *j, size_t k, tsr_map_sums *sum)
{
    tsr_map_sums_add(sum, (double)j->map->value[k], (double)j->density[k]);
}

/* Adds those voxels near an atom that were not added before. */
static void add_near_voxels(job *j, const double x[3], tsr_map_sums *sum)
{
    const double reach = j->out->mask_ang;
    tsr_map_box b = tsr_map_box_about(&j->map->grid, x, reach);
    while (tsr_map_box_next(&b)) {
        if (j->is_near[b.k] || b.square > reach * reach ||
            isnan(j->map->value[b.k]))
            continue;
        j->is_near[b.k] = 1;
        j->near_voxel[j->n_near++] = b.k;
        add_voxel(j, b.k, sum);
    }
}

/* Correlation over the voxels near atoms first .. end - 1 of the conformations
 * xyz [n][n_atom]. */
static double near_cc(job *j, int n, const double (*xyz)[3], int first, int end)
{
    const size_t n_atom = (size_t)j->models->atoms->n_atom;
    tsr_map_sums sum = {0};
    for (size_t c = 0; c < (size_t)n; c++)
        for (int i = first; i < end; i++)
            add_near_voxels(j, xyz[c * n_atom + (size_t)i], &sum);
    while (j->n_near > 0)
        j->is_near[j->near_voxel[--j->n_near]] = 0;
    return tsr_map_cc(&sum);
}

/* Correlations of j->density, the density of the conformations xyz [n][n_atom].
 * value [2 + n_residue] out: box, mask, residues. */
static void correlate(job *j, int n, const double (*xyz)[3], double *value)
{
    const tsr_atoms *atoms = j->models->atoms;
    tsr_map_sums box = {0};
    for (size_t k = 0; k < j->n_voxel; k++)
        if (!isnan(j->map->value[k]))
            add_voxel(j, k, &box);
    value[0] = tsr_map_cc(&box);
    value[1] = near_cc(j, n, xyz, 0, atoms->n_atom);
    for (int r = 0; r < atoms->n_residue; r++) {
        const int first = atoms->residue[r].first_atom;
        value[2 + r] =
            near_cc(j, n, xyz, first, first + atoms->residue[r].n_atom);
    }
}

/* ---- slices ---- */

/* The density level above which the voxels have the volume of the molecule:
 * 1.21 Angstrom^3 a Dalton, and 2 Daltons an electron. NaN when out of
 * memory. */
static double enclosing_level(job *j, const float *density)
{
    const double *step = j->map->grid.step;
    double electrons = 0.0;
    float *sorted = tsr_pool_new(&j->pool, j->n_voxel, sizeof *sorted);
    if (sorted == NULL)
        return (double)NAN;
    for (int i = 0; i < j->models->atoms->n_atom; i++)
        electrons += j->models->z[i];
    memcpy(sorted, density, j->n_voxel * sizeof *sorted);
    const double n = 2.42 * electrons / (step[0] * step[1] * step[2]);
    const size_t at = n < (double)j->n_voxel ? j->n_voxel - 1 - (size_t)n : 0;
    gsl_sort_float(sorted, 1, j->n_voxel);
    return (double)sorted[at];
}

/* Averages the plane of voxels number `at` on the slice's axis, from the voxels
 * `low` on, into pixels of bin x bin voxels. */
static void compute_slice(const job *j, const float *from, int at,
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

/* Index of the first voxel at or beyond x on an axis, from 0 to g->n. */
static int voxel_at(const tsr_map_grid *g, int axis, double x)
{
    const double at = ceil((x - g->origin[axis]) / g->step[axis]);
    return (int)fmax(0.0, fmin(g->n[axis], at));
}

/* Makes a slice through the middle of `box` that covers the box. */
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
    const size_t n_pixel = (size_t)s->n[0] * (size_t)s->n[1] + 1;
    tsr_pool_array(&j->out->pool, s->map, n_pixel);
    tsr_pool_array(&j->out->pool, s->model, n_pixel);
    tsr_pool_array(&j->out->pool, s->start, n_pixel);
    TSR_TRY(tsr_pool_check(&j->out->pool, err));
    compute_slice(j, j->map->value, at, low, bin, s, s->map);
    compute_slice(j, mean, at, low, bin, s, s->model);
    compute_slice(j, start, at, low, bin, s, s->start);
    return TSR_OK;
}

/* The box around the start and the last conformation, with a margin. */
static void find_box(const job *j, double box[2][3])
{
    const tsr_map_models *m = j->models;
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

/* Start, median and interval of one column of the timeline. */
static tsr_map_spread spread_of(const job *j, int column, double *sorted)
{
    const size_t width = 2 + (size_t)j->out->n_residue;
    size_t n = 0;
    tsr_map_spread s = {.start = j->out->timeline[(size_t)column]};
    for (size_t d = 1; d <= (size_t)j->out->n_draw; d++) {
        const double value = j->out->timeline[d * width + (size_t)column];
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
    double *sorted;
    tsr_pool_array(&j->pool, sorted, v->n_draw + 1);
    tsr_pool_array(&v->pool, v->residue, v->n_residue);
    TSR_TRY(tsr_pool_check(&j->pool, err));
    TSR_TRY(tsr_pool_check(&v->pool, err));
    v->box = spread_of(j, 0, sorted);
    v->mask = spread_of(j, 1, sorted);
    for (int r = 0; r < v->n_residue; r++)
        v->residue[r] = spread_of(j, 2 + r, sorted);
    return TSR_OK;
}

/* Stride of the analysed draws: the total cost stays below most_work, but at
 * least 5 draws are analysed. */
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

static tsr_status analyse_draws(job *j, tsr_err *err)
{
    const tsr_map_models *m = j->models;
    const size_t n_atom = (size_t)m->atoms->n_atom;
    const size_t width = 2 + (size_t)j->out->n_residue;
    const double(*xyz)[3] = (const double(*)[3])m->xyz;
    const int every = every_draw(j, m->of_draw[m->n - 1] + 1);
    for (int first = 0, end; first < m->n; first = end) {
        for (end = first + 1;
             end < m->n && m->of_draw[end] == m->of_draw[first];)
            end++;
        if (m->of_draw[first] % every != 0)
            continue;
        memset(j->density, 0, j->n_voxel * sizeof *j->density);
        for (int k = first; k < end; k++)
            TSR_TRY(
                add_density(j, xyz + (size_t)k * n_atom, m->weight[k], err));
        for (size_t k = 0; k < j->n_voxel; k++)
            j->mean[k] += (double)j->density[k];
        j->out->n_draw++;
        correlate(j, end - first, xyz + (size_t)first * n_atom,
                  j->out->timeline + (size_t)j->out->n_draw * width);
    }
    return TSR_OK;
}

/* Analyses draws and start. Afterwards j->one has the density of the start and
 * j->density the mean of the draws. */
static tsr_status analyse(job *j, tsr_err *err)
{
    tsr_map_view *v = j->out;
    const double(*start)[3] = (const double(*)[3])j->models->start;
    double box[2][3];
    TSR_TRY(analyse_draws(j, err));
    memset(j->density, 0, j->n_voxel * sizeof *j->density);
    TSR_TRY(add_density(j, start, 1.0, err));
    correlate(j, 1, start, j->out->timeline);
    TSR_TRY(find_spreads(j, err));
    for (size_t k = 0; k < j->n_voxel; k++)
        j->density[k] = (float)(j->mean[k] / v->n_draw);
    TSR_TRY(tsr_fsc_make(j->map, j->density, &v->pool, &v->mean, err));
    TSR_TRY(tsr_fsc_make(j->map, j->one, &v->pool, &v->start, err));
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
    tsr_map *half[2];
    for (int k = 0; k < 2; k++)
        TSR_TRY(tsr_map_read(o->half[k], (tsr_map_origin)o->origin, NULL,
                             &j->pool, &half[k], err));
    TSR_TRY(tsr_map_check_grid("half-map", half[1], half[0], err));
    return tsr_fsc_make(half[0], half[1]->value, &j->out->pool, &j->out->halves,
                        err);
}

/* ---- making a view ---- */

static tsr_status init_job(job *j, tsr_err *err)
{
    const tsr_map_options *o = j->o;
    const tsr_atoms *atoms = j->models->atoms;
    const tsr_map_start start = {atoms->n_atom,
                                 (const double(*)[3])j->models->start};
    const size_t n_draw = (size_t)j->models->of_draw[j->models->n - 1] + 1;
    tsr_map_source source;
    tsr_blur_table blur;
    TSR_TRY(tsr_map_source_read(o, start, NULL, &j->pool, &source, err));
    j->map = source.map;
    j->n_voxel = tsr_map_n_voxel(&j->map->grid);
    tsr_pool_array(&j->pool, j->one, j->n_voxel);
    tsr_pool_array(&j->pool, j->density, j->n_voxel);
    tsr_pool_array(&j->pool, j->mean, j->n_voxel);
    tsr_pool_array(&j->pool, j->is_near, j->n_voxel);
    tsr_pool_array(&j->pool, j->near_voxel, j->n_voxel);
    tsr_pool_array(&j->out->pool, j->out->timeline,
                   (n_draw + 1) * (2 + (size_t)atoms->n_residue));
    TSR_TRY(tsr_pool_check(&j->pool, err));
    TSR_TRY(tsr_pool_check(&j->out->pool, err));
    TSR_TRY(tsr_blur_make(TSR_BLUR_GAUSSIAN, o->resolution,
                          j->out->sigma_over_r, atoms->n_atom, j->models->z,
                          &blur, err));
    TSR_TRY(tsr_density_reference_new(j->map, &j->engine, err));
    return j->engine->set_blur(j->engine, &blur, err);
}

tsr_status tsr_map_view_make(const tsr_term_options *options,
                             const tsr_map_models *models, double sigma_over_r,
                             tsr_map_view *out, tsr_err *err)
{
    job j = {.o = (const void *)options, .models = models, .out = out};
    *out = (tsr_map_view){.resolution_ang = j.o->resolution,
                          .sigma_over_r = sigma_over_r,
                          .mask_ang = 3.0,
                          .n_residue = models->atoms->n_residue};
    tsr_status status = init_job(&j, err);
    TSR_THEN(status, analyse(&j, err));
    if (status == TSR_OK && j.o->half[0] != NULL)
        status = compare_halves(&j, err);
    tsr_density_free(j.engine);
    tsr_pool_clear(&j.pool);
    if (status != TSR_OK)
        tsr_map_view_clear(out);
    return status;
}

void tsr_map_view_clear(tsr_map_view *view)
{
    tsr_pool_clear(&view->pool);
    *view = (tsr_map_view){.n_draw = 0};
}
