/* Targets: sums over pairs of atoms and over pairs of bodies of one structure.
 *
 * A profile is a quadratic form in the amplitudes of kinds (elements with their
 * hydrogens, or body types), and its coefficients are sums of sinc(q r) over
 * pairs. Those of the bodies are kept, so that refinement tries any number of
 * tables without going through the pairs again; those of the atoms are used at
 * once, for the atoms' amplitudes are known. Both go through `combine`. */
#include "train/form_factor_target.h"
#include "train/form_factor_atoms.h"

#include "core/vec3.h"
#include "scattering/atom_model.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { MAX_KIND = 24 };
static const double probe = 1.8; /* Angstrom, as FoXS */

/* ---- sums over pairs ----
 *
 * Sums of sinc(q r) over pairs of points of a few kinds: of them any amplitudes
 * of the kinds make a profile.
 *
 *     plain_ts(q) = sum over pairs of kinds t and s of sinc(q r)
 *     one_ts(q)   = sum_{i in t} sum_{j in s, j != i} w_j sinc(q r_ij)
 *     both_ts(q)  = as plain, of w_i w_j sinc(q r_ij)
 *
 * Distances go through bins of 0.05 Angstrom, shared between two neighbours,
 * which leaves errors of 1e-4 of a profile at q = 1/Angstrom. */

static const double bin_width = 0.05; /* Angstrom */

typedef struct {
    int n, n_kind;
    double (*xyz)[3]; /* [n] Angstrom */
    int *kind;        /* [n] */
    double *weight;   /* [n] w, zeroes at first */
} pair_points;

/* Number of the pair of kinds, in either order: of n kinds n (n + 1) / 2. */
static size_t pair_index(int t, int s)
{
    return (size_t)(t >= s ? t * (t + 1) / 2 + s : s * (s + 1) / 2 + t);
}

/* Added to, on q_k = k dq: plain and both [pairs of kinds][n_q], one
 * [n_kind][n_kind][n_q]; one and both NULL: not wanted. */
typedef struct {
    double *plain, *one, *both;
} pair_sums;

/* Room for n points: 0, or -1 when out of memory. n and n_kind stay. */
static int points_new(pair_points *points, int n)
{
    size_t size = (size_t)n + 1;
    points->xyz = malloc(size * sizeof *points->xyz);
    points->kind = malloc(size * sizeof *points->kind);
    points->weight = calloc(size, sizeof *points->weight);
    return points->xyz != NULL && points->kind != NULL && points->weight != NULL
               ? 0
               : -1;
}

static void points_clear(pair_points *points)
{
    free(points->xyz);
    free(points->kind);
    free(points->weight);
}

static double box_diagonal(const pair_points *p)
{
    double low[3], high[3];
    tsr_vec3_copy(low, p->xyz[0]);
    tsr_vec3_copy(high, p->xyz[0]);
    for (int i = 1; i < p->n; i++)
        for (int d = 0; d < 3; d++) {
            low[d] = fmin(low[d], p->xyz[i][d]);
            high[d] = fmax(high[d], p->xyz[i][d]);
        }
    return tsr_vec3_distance(low, high);
}

/* sum[pair][k] += over the bins, weight times sinc(q_k r_bin). */
static void sum_bins(const double *bin, size_t n_bin, size_t n_pair, int n_q,
                     const double *sinc, double *sum)
{
    for (size_t p = 0; p < n_pair; p++)
        for (size_t b = 0; b < n_bin; b++) {
            double weight = bin[p * n_bin + b];
            if (weight == 0.0)
                continue;
            const double *from = sinc + b * (size_t)n_q;
            double *to = sum + p * (size_t)n_q;
            for (int k = 0; k < n_q; k++)
                to[k] += weight * from[k];
        }
}

/* Shares `weight` between bins b and b + 1 of a row of bins. */
static void into(double *row, size_t b, double share, double weight)
{
    row[b] += weight * (1.0 - share);
    row[b + 1] += weight * share;
}

static void fill_bins(const pair_points *p, size_t n_bin, const pair_sums *bins)
{
    for (int i = 0; i < p->n; i++)
        for (int j = 0; j < i; j++) {
            double at = tsr_vec3_distance(p->xyz[i], p->xyz[j]) / bin_width;
            double wi = p->weight[i], wj = p->weight[j];
            int ki = p->kind[i], kj = p->kind[j];
            size_t b = (size_t)at, pair = pair_index(ki, kj) * n_bin;
            double share = at - (double)b;
            into(bins->plain + pair, b, share, 1.0);
            if (bins->one == NULL)
                continue;
            size_t ij = (size_t)(ki * p->n_kind + kj) * n_bin;
            size_t ji = (size_t)(kj * p->n_kind + ki) * n_bin;
            if (wj != 0.0)
                into(bins->one + ij, b, share, wj);
            if (wi != 0.0)
                into(bins->one + ji, b, share, wi);
            if (wi != 0.0 && wj != 0.0)
                into(bins->both + pair, b, share, wi * wj);
        }
}

static tsr_status add_pairs(const pair_points *points, int n_q,
                            double dq_inv_ang, const pair_sums *sums,
                            tsr_err *err)
{
    const pair_points *p = points;
    int weighted = sums->one != NULL && sums->both != NULL;
    size_t n_bin = (size_t)(box_diagonal(p) / bin_width) + 3;
    size_t n_pair = pair_index(p->n_kind - 1, p->n_kind - 1) + 1;
    size_t n_one = weighted ? (size_t)(p->n_kind * p->n_kind) : 0;
    size_t n_row = weighted ? 2 * n_pair + n_one : n_pair;
    double *bin = calloc(n_bin * n_row, sizeof *bin);
    double *sinc = malloc(n_bin * (size_t)n_q * sizeof *sinc);
    if (bin == NULL || sinc == NULL) {
        free(bin);
        free(sinc);
        return tsr_fail(err, TSR_E_NOMEM, "no memory for %zu distance bins",
                        n_bin * n_row);
    }
    pair_sums bins = {.plain = bin};
    if (weighted) {
        bins.one = bin + n_bin * n_pair;
        bins.both = bins.one + n_bin * n_one;
    }
    fill_bins(p, n_bin, &bins);
    for (size_t b = 0; b < n_bin; b++)
        for (int k = 0; k < n_q; k++) {
            double x = k * dq_inv_ang * (double)b * bin_width;
            sinc[b * (size_t)n_q + (size_t)k] = x > 0.0 ? sin(x) / x : 1.0;
        }
    sum_bins(bins.plain, n_bin, n_pair, n_q, sinc, sums->plain);
    if (weighted) {
        sum_bins(bins.one, n_bin, n_one, n_q, sinc, sums->one);
        sum_bins(bins.both, n_bin, n_pair, n_q, sinc, sums->both);
    }
    free(bin);
    free(sinc);
    return TSR_OK;
}

/* ---- targets ---- */

/* Atoms by element and hydrogens, their exposed share the weight. */
typedef struct {
    pair_points points;
    int z[MAX_KIND], n_hydrogen[MAX_KIND];
} atom_points;

static size_t pairs_of(int n)
{
    return (size_t)(n * (n + 1) / 2);
}

tsr_target_grid tsr_target_grid_of(const tsr_form_factor_table *table, int n_q,
                                   double dq_inv_ang)
{
    return (tsr_target_grid){table->model, table->n_comp, table->n_type,
                             n_q,          dq_inv_ang,    &table->exposure};
}

tsr_target_layout tsr_target_layout_of(const tsr_target_grid *grid)
{
    size_t n = (size_t)grid->n_type, n_q = (size_t)grid->n_q;
    size_t n_pair = pairs_of(grid->n_type) * n_q;
    int one = grid->n_comp == 1;
    tsr_target_layout l = {.radius = pairs_of(grid->n_comp) * n_q};
    l.count = l.radius + 1;
    l.exposed = l.count + n;
    l.exposed2 = l.exposed + n;
    l.pairs = l.exposed2 + n;
    l.wet = l.pairs + n_pair;
    l.wet2 = l.wet + (one ? 0 : n * n * n_q);
    l.length = l.wet2 + (one ? 0 : n_pair);
    return l;
}

size_t tsr_target_pair_at(const tsr_target_grid *grid, int t, int s)
{
    return pair_index(t, s) * (size_t)grid->n_q;
}

size_t tsr_target_wet_at(const tsr_target_grid *grid, int t, int s)
{
    return ((size_t)t * (size_t)grid->n_type + (size_t)s) * (size_t)grid->n_q;
}

/* ---- points ---- */

static int kind_of(atom_points *a, const tsr_amino_atom *atom)
{
    int k = 0;
    while (k < a->points.n_kind &&
           (a->z[k] != atom->z || a->n_hydrogen[k] != atom->n_hydrogen))
        k++;
    if (k == a->points.n_kind) {
        a->z[k] = atom->z;
        a->n_hydrogen[k] = atom->n_hydrogen;
        a->points.n_kind++;
    }
    return k;
}

int tsr_target_complete(const tsr_structure *structure, int residue,
                        tsr_residue_atoms *atoms)
{
    return tsr_residue_atoms_find(structure, &structure->residue[residue],
                                  atoms) == 0 &&
           atoms->n_missing == 0;
}

static void place_atoms(const tsr_structure *structure, atom_points *all)
{
    pair_points *p = &all->points;
    for (int r = 0; r < structure->n_residue; r++) {
        tsr_residue_atoms a;
        if (!tsr_target_complete(structure, r, &a))
            continue;
        const tsr_amino_info *info = &tsr_amino_table[a.amino];
        for (int i = 0; i < info->n_atom; i++) {
            tsr_vec3_copy(p->xyz[p->n], a.xyz[i]);
            p->kind[p->n++] = kind_of(all, &info->atom[i]);
        }
    }
}

/* share: of the atoms, in their order; NULL: no exposures. */
static void place_bodies(const tsr_structure *structure, tsr_body_model model,
                         const double *share, pair_points *body)
{
    for (int r = 0; r < structure->n_residue; r++) {
        tsr_residue_atoms a;
        if (!tsr_target_complete(structure, r, &a))
            continue;
        int type[2];
        int n = tsr_body_types(model, a.amino, type);
        for (int b = 0; b < n; b++) {
            int index[TSR_MAX_RESIDUE_ATOM];
            int n_atom = tsr_body_atoms(model, a.amino, b, index);
            tsr_body_centre(model, &a, b, body->xyz[body->n]);
            for (int i = 0; i < n_atom && share != NULL; i++)
                body->weight[body->n] += share[index[i]];
            body->kind[body->n++] = type[b];
        }
        if (share != NULL)
            share += tsr_amino_table[a.amino].n_atom;
    }
}

/* Weights of the atoms; *radius is their mean radius. */
static tsr_status expose(atom_points *all, double *radius, tsr_err *err)
{
    pair_points *p = &all->points;
    double *r = malloc(((size_t)p->n + 1) * sizeof *r), sum = 0.0;
    if (r == NULL)
        return tsr_fail(err, TSR_E_NOMEM, "no memory for a surface");
    for (int i = 0; i < p->n; i++) {
        int k = p->kind[i];
        r[i] = tsr_atom_radius(all->z[k], all->n_hydrogen[k]);
        sum += r[i];
    }
    *radius = sum / p->n;
    tsr_status s = tsr_surface_exposed(p->n, (const double(*)[3])p->xyz, r,
                                       probe, p->weight, NULL, err);
    free(r);
    return s;
}

tsr_status tsr_target_shares(const tsr_structure *structure, double *share,
                             tsr_err *err)
{
    atom_points all = {0};
    double radius;
    tsr_status s = points_new(&all.points, structure->n_atom) != 0
                       ? tsr_fail(err, TSR_E_NOMEM, "no memory for atoms")
                       : TSR_OK;
    if (s == TSR_OK) {
        place_atoms(structure, &all);
        s = expose(&all, &radius, err);
    }
    if (s == TSR_OK)
        memcpy(share, all.points.weight, (size_t)all.points.n * sizeof *share);
    points_clear(&all.points);
    return s;
}

/* ---- profiles ---- */

/* Amplitudes of the kinds of points and the sums over their pairs. */
typedef struct {
    int n_comp, n_kind, n_q;
    const double *amplitude; /* [n_comp][n_kind][n_q] */
    /* Sums over points [n_kind] of 1, weight, weight squared, and the sums over
     * pairs above, by how many of a pair of components are
     * hydration. */
    const double *many[3], *sum[3];
} kinds;

/* Adds what kind t, alone and with all kinds, has in the pair of components. */
static void combine_kind(const kinds *c, int t, int a, int b, double *partial)
{
    int wet = (a == TSR_HYDRATION) + (b == TSR_HYDRATION), n_q = c->n_q;
    const double *fa = c->amplitude + a * c->n_kind * n_q;
    const double *fb = c->amplitude + b * c->n_kind * n_q;
    const double *at = fa + t * n_q, *bt = fb + t * n_q;
    for (int k = 0; k < n_q; k++)
        partial[k] += c->many[wet][t] * at[k] * bt[k];
    for (int s = 0; s < c->n_kind && wet == 1; s++) {
        const double *bs = fb + s * n_q;
        const double *one = c->sum[1] + (t * c->n_kind + s) * n_q;
        for (int k = 0; k < n_q; k++)
            partial[k] += at[k] * bs[k] * one[k];
    }
    for (int s = 0; s <= t && wet != 1; s++) {
        const double *as = fa + s * n_q, *bs = fb + s * n_q;
        const double *both = c->sum[wet] + pair_index(t, s) * (size_t)n_q;
        for (int k = 0; k < n_q; k++)
            partial[k] += (at[k] * bs[k] + bt[k] * as[k]) * both[k];
    }
}

/* Partial profiles of kinds, [pairs of components][n_q]. */
static void combine(const kinds *c, double *partial)
{
    memset(partial, 0, pairs_of(c->n_comp) * (size_t)c->n_q * sizeof *partial);
    for (int a = 0; a < c->n_comp; a++)
        for (int b = a; b < c->n_comp; b++, partial += c->n_q)
            for (int t = 0; t < c->n_kind; t++)
                combine_kind(c, t, a, b, partial);
}

static void add_up(const pair_points *p, double *count, double *wet,
                   double *wet2)
{
    for (int i = 0; i < p->n; i++) {
        count[p->kind[i]] += 1.0;
        wet[p->kind[i]] += p->weight[i];
        wet2[p->kind[i]] += p->weight[i] * p->weight[i];
    }
}

static void fill_amplitudes(const tsr_target_grid *grid, const atom_points *all,
                            double *amplitude)
{
    size_t n_q = (size_t)grid->n_q, comp = (size_t)all->points.n_kind * n_q;
    for (int t = 0; t < all->points.n_kind; t++)
        for (size_t k = 0; k < n_q; k++) {
            double q = (double)k * grid->dq_inv_ang;
            int z = all->z[t], h = all->n_hydrogen[t];
            double c = tsr_atom_contrast_amplitude(z, h, q);
            double *to = amplitude + (size_t)t * n_q + k;
            to[0] = c;
            if (grid->n_comp == 1)
                continue;
            double g = tsr_atom_displaced_amplitude(z, h, q);
            to[TSR_SOLUTE * comp] = g + c;
            to[TSR_DISPLACED * comp] = g;
            to[TSR_HYDRATION * comp] = tsr_component_water(q);
        }
}

static tsr_status fill_atoms(const tsr_target_grid *grid,
                             const atom_points *all, double *partial,
                             tsr_err *err)
{
    const pair_points *p = &all->points;
    size_t n = (size_t)p->n_kind, n_q = (size_t)grid->n_q;
    size_t n_pair = pairs_of(p->n_kind), length = (2 * n_pair + n * n) * n_q;
    double many[3][MAX_KIND] = {{0}};
    double *sum = calloc(length + (size_t)grid->n_comp * n * n_q, sizeof *sum);
    if (sum == NULL)
        return tsr_fail(err, TSR_E_NOMEM, "no memory for pair sums");
    pair_sums out = {sum, sum + n_pair * n_q, sum + (n_pair + n * n) * n_q};
    const kinds c = {grid->n_comp,
                     p->n_kind,
                     grid->n_q,
                     sum + length,
                     {many[0], many[1], many[2]},
                     {out.plain, out.one, out.both}};
    if (grid->n_comp == 1)
        out.one = out.both = NULL;
    fill_amplitudes(grid, all, sum + length);
    add_up(p, many[0], many[1], many[2]);
    tsr_status s = add_pairs(p, grid->n_q, grid->dq_inv_ang, &out, err);
    if (s == TSR_OK)
        combine(&c, partial);
    free(sum);
    return s;
}

/* The bodies, their exposures, and the sums over their pairs. */
static tsr_status fill_bodies(const tsr_target_grid *grid,
                              const tsr_structure *structure,
                              const double *share, pair_points *body,
                              double *target, tsr_err *err)
{
    const tsr_target_layout l = tsr_target_layout_of(grid);
    pair_sums out = {.plain = target + l.pairs};
    place_bodies(structure, grid->model, grid->n_comp > 1 ? share : NULL, body);
    if (grid->n_comp > 1) {
        out.one = target + l.wet;
        out.both = target + l.wet2;
        TSR_TRY(tsr_exposure_carry(grid->exposure, body->n,
                                   (const double(*)[3])body->xyz, NULL,
                                   body->weight, err));
    }
    add_up(body, target + l.count, target + l.exposed, target + l.exposed2);
    return add_pairs(body, grid->n_q, grid->dq_inv_ang, &out, err);
}

/* Relative errors of one component are of I(q) itself, which must be there. */
static tsr_status check_intensity(const tsr_target_grid *grid, const char *path,
                                  const double *profile, tsr_err *err)
{
    for (int k = 0; k < grid->n_q && grid->n_comp == 1; k++)
        if (!(profile[k] > 0.0))
            return tsr_fail(err, TSR_E_DATA,
                            "'%s': no intensity at q = %g 1/Angstrom; leave "
                            "it out",
                            path, k * grid->dq_inv_ang);
    return TSR_OK;
}

tsr_status tsr_target_fill(const tsr_target_grid *grid,
                           const tsr_structure *structure, double *target,
                           tsr_err *err)
{
    const tsr_target_layout l = tsr_target_layout_of(grid);
    atom_points all = {0};
    pair_points body = {.n_kind = grid->n_type};
    tsr_status s = TSR_OK;
    memset(target, 0, l.length * sizeof *target);
    if (points_new(&all.points, structure->n_atom) != 0 ||
        points_new(&body, 2 * structure->n_residue) != 0)
        s = tsr_fail(err, TSR_E_NOMEM, "no memory for the bodies of '%s'",
                     structure->path);
    if (s == TSR_OK) {
        place_atoms(structure, &all);
        if (all.points.n == 0)
            s = tsr_fail(err, TSR_E_DATA,
                         "'%s': no residue has all its atoms; leave it out",
                         structure->path);
    }
    if (s == TSR_OK && grid->n_comp > 1)
        s = expose(&all, target + l.radius, err);
    if (s == TSR_OK)
        s = fill_atoms(grid, &all, target + l.atoms, err);
    if (s == TSR_OK)
        s = fill_bodies(grid, structure, all.points.weight, &body, target, err);
    if (s == TSR_OK)
        s = check_intensity(grid, structure->path, target + l.atoms, err);
    points_clear(&all.points);
    points_clear(&body);
    return s;
}

void tsr_target_partials(const tsr_target_grid *grid, const double *target,
                         const double *amplitude, const double *excess,
                         double *partial)
{
    const tsr_target_layout l = tsr_target_layout_of(grid);
    int n_q = grid->n_q;
    const kinds c = {
        grid->n_comp,
        grid->n_type,
        n_q,
        amplitude,
        {target + l.count, target + l.exposed, target + l.exposed2},
        {target + l.pairs, target + l.wet, target + l.wet2}};
    combine(&c, partial);
    for (int a = 0; a < grid->n_comp && excess != NULL; a++)
        for (int b = a; b < grid->n_comp; b++, partial += n_q) {
            int wet = (a == TSR_HYDRATION) + (b == TSR_HYDRATION);
            for (int t = 0; t < grid->n_type; t++, excess += n_q)
                for (int k = 0; k < n_q; k++)
                    partial[k] += c.many[wet][t] * excess[k];
        }
}

double tsr_target_intensity(const tsr_target_grid *grid, const double *partial,
                            size_t stride, double g, double c2)
{
    return grid->n_comp == 1 ? *partial
                             : tsr_component_intensity(partial, stride, g, c2);
}

void tsr_target_keep(const void *context, void *parts, const void *part)
{
    tsr_target_parts *all = parts;
    (void)context;
    memcpy(all->part + (size_t)all->n++ * all->length, part,
           all->length * sizeof(double));
}
