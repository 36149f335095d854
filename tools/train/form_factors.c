/* Trains tables of form factors: amplitudes of atoms, the curve of exposure
 * against neighbours, targets (pair sums of one structure), averages over
 * structures, their refinement, and the evaluation of tables. */
#include "core/pool.h"
#include "core/vec3.h"
#include "molecule/structure.h"
#include "molecule/table_file.h"
#include "scattering/atom_model.h"
#include "scattering/surface.h"
#include "train/train.h"

#include <gsl/gsl_errno.h>
#include <gsl/gsl_linalg.h>
#include <gsl/gsl_multimin.h>
#include <gsl/gsl_sort.h>
#include <gsl/gsl_statistics_double.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

/* ---- atoms ---- */

/* Fraser, MacRae & Suzuki 1978, J. Appl. Cryst. 11, 693, table 1. */
static double displaced_volume(int z)
{
    switch (z) {
    case 1:
        return 5.15;
    case 6:
        return 16.44;
    case 7:
        return 2.49;
    case 8:
        return 9.13;
    case 16:
        return 19.86;
    default:
        return (double)NAN;
    }
}

double tsr_atom_displaced_amplitude(int z, int n_hydrogen, double q_inv_ang)
{
    /* An atom with its hydrogens displaces one volume, as the atomic groups of
     * Svergun et al. 1995 (J. Appl. Cryst. 28, 768) do. */
    double v = displaced_volume(z) + n_hydrogen * displaced_volume(1);
    double g = v * exp(-q_inv_ang * q_inv_ang * cbrt(v * v) / (4.0 * TSR_PI));
    return TSR_WATER_DENSITY * g;
}

double tsr_atom_contrast_amplitude(int z, int n_hydrogen, double q_inv_ang)
{
    double f = tsr_atom_form_factor(z, q_inv_ang);
    if (n_hydrogen > 0)
        f += n_hydrogen * tsr_atom_form_factor(1, q_inv_ang);
    return f - tsr_atom_displaced_amplitude(z, n_hydrogen, q_inv_ang);
}

double tsr_atom_radius(int z, int n_hydrogen)
{
    double v = displaced_volume(z) + n_hydrogen * displaced_volume(1);
    return cbrt(0.75 * v / TSR_PI);
}

double tsr_component_water(double q_inv_ang)
{
    return tsr_atom_contrast_amplitude(8, 2, q_inv_ang);
}

/* ---- exposures ---- */

static const double count_width = 0.1;

double *tsr_exposure_bin(double *bins, double count)
{
    double b = fmin(count / count_width, TSR_EXPOSURE_N_BIN - 1);
    return bins + 2 * (size_t)b;
}

static double bin_centre(int bin)
{
    return (bin + 0.5) * count_width;
}

/* The sum of squared residuals with the best A, but for a constant; *largest:
 * that A. */
static double sum_of_squares(const double *bins, double middle, double width,
                             double *largest)
{
    double curve = 0.0, product = 0.0;
    for (int b = 0; b < TSR_EXPOSURE_N_BIN; b++) {
        double h = 1.0 / (1.0 + exp((bin_centre(b) - middle) / width));
        curve += bins[2 * b] * h * h;
        product += bins[2 * b + 1] * h;
    }
    *largest = curve > 0.0 ? product / curve : 0.0;
    return -*largest * product;
}

/* The same as a function of n0 and log w, for GSL. */
static double cost(const gsl_vector *x, void *bins)
{
    double largest;
    return sum_of_squares(bins, gsl_vector_get(x, 0), exp(gsl_vector_get(x, 1)),
                          &largest);
}

static int minimise(double *bins, gsl_vector *x, gsl_vector *step,
                    gsl_multimin_fminimizer *solver)
{
    enum { MAX_STEP = 500 };
    gsl_multimin_function f = {.f = cost, .n = 2, .params = bins};
    int gsl = gsl_multimin_fminimizer_set(solver, &f, x, step);
    for (int i = 0; i < MAX_STEP && gsl == GSL_SUCCESS; i++) {
        gsl = gsl_multimin_fminimizer_iterate(solver);
        if (gsl == GSL_SUCCESS &&
            gsl_multimin_test_size(gsl_multimin_fminimizer_size(solver),
                                   1e-6) == GSL_SUCCESS)
            return 0;
    }
    return -1;
}

tsr_status tsr_exposure_fit(const double *bins, tsr_exposure_type *type,
                            tsr_err *err)
{
    double own[2 * TSR_EXPOSURE_N_BIN], n = 0.0, sum = 0.0, exposed = 0.0;
    memcpy(own, bins, sizeof own);
    for (int b = 0; b < TSR_EXPOSURE_N_BIN; b++) {
        n += own[2 * b];
        sum += own[2 * b] * bin_centre(b);
        exposed += own[2 * b + 1];
    }
    *type = (tsr_exposure_type){.width = 1.0};
    if (!(exposed > 0.0))
        return TSR_OK;
    gsl_multimin_fminimizer *solver =
        gsl_multimin_fminimizer_alloc(gsl_multimin_fminimizer_nmsimplex2, 2);
    gsl_vector *x = gsl_vector_alloc(2), *step = gsl_vector_alloc(2);
    tsr_status s = TSR_OK;
    if (solver == NULL || x == NULL || step == NULL) {
        s = tsr_fail(err, TSR_E_NOMEM, "no memory to fit exposures");
        goto done;
    }
    gsl_vector_set(x, 0, 0.7 * sum / n);
    gsl_vector_set(x, 1, 0.5);
    gsl_vector_set(step, 0, 2.0);
    gsl_vector_set(step, 1, 0.5);
    if (minimise(own, x, step, solver) != 0) {
        s = tsr_fail(err, TSR_E_NUMERIC,
                     "the fit of exposures to neighbours did not converge; "
                     "give more structures");
        goto done;
    }
    const gsl_vector *best = gsl_multimin_fminimizer_x(solver);
    type->middle = gsl_vector_get(best, 0);
    type->width = exp(gsl_vector_get(best, 1));
    sum_of_squares(own, type->middle, type->width, &type->largest);
done:
    if (solver != NULL)
        gsl_multimin_fminimizer_free(solver);
    gsl_vector_free(x);
    gsl_vector_free(step);
    return s;
}

/* ---- targets ----
 *
 * Sums over pairs of atoms and over pairs of bodies of one structure. A profile
 * is a quadratic form in the amplitudes of kinds (elements with their
 * hydrogens, or body types), with sums of sinc(q r) over pairs as coefficients.
 * The sums of the bodies are stored, so that refinement can try any number of
 * tables without summing over pairs again. Those of the atoms are combined with
 * the known amplitudes at once. `combine` serves both. */

enum { MAX_KIND = 24 };
static const double probe = 1.8; /* Angstrom, as in FoXS */

/* ---- sums over pairs ----
 *
 * Sums of sinc(q r) over pairs of points, by kind. Three sums serve pairs of
 * components with 0, 1 or 2 hydration indices:
 *
 *     0: sum over pairs of kinds t and s of sinc(q r)
 *     1: sum_{i in t} sum_{j in s, j != i} w_j sinc(q r_ij)
 *     2: as 0, of w_i w_j sinc(q r_ij)
 *
 * Distances are binned at 0.05 Angstrom and shared between two neighbouring
 * bins, with errors of 1e-4 of a profile at q = 1/Angstrom. */

static const double bin_width = 0.05; /* Angstrom */

typedef struct {
    int n, n_kind;
    double (*xyz)[3]; /* [n] Angstrom */
    int *kind;        /* [n] */
    double *weight;   /* [n] w, initially 0 */
} pair_points;

static size_t count_pairs(int n)
{
    return tsr_pair_index(n, 0);
}

/* The number of curves of a sum over n kinds with n_hydration weights. */
static size_t count_curves(int n, int n_hydration)
{
    return n_hydration == 1 ? (size_t)(n * n) : count_pairs(n);
}

static void points_new(tsr_pool *pool, pair_points *points, int n_most)
{
    tsr_pool_array(pool, points->xyz, n_most);
    tsr_pool_array(pool, points->kind, n_most);
    tsr_pool_array(pool, points->weight, n_most);
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

/* sum[curve][k] += sum over bins of weight times sinc(q_k r_bin). */
static void sum_bins(const double *bin, size_t n_bin, size_t n_curve, int n_q,
                     const double *sinc, double *sum)
{
    for (size_t p = 0; p < n_curve; p++)
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

/* Adds `weight` to bins b and b + 1 of a row, in shares 1 - share and share. */
static void add_to_bins(double *row, size_t b, double share, double weight)
{
    row[b] += weight * (1.0 - share);
    row[b + 1] += weight * share;
}

static void bin_pairs(const pair_points *p, size_t n_bin, double *const bin[3])
{
    for (int i = 0; i < p->n; i++)
        for (int j = 0; j < i; j++) {
            double at = tsr_vec3_distance(p->xyz[i], p->xyz[j]) / bin_width;
            double wi = p->weight[i], wj = p->weight[j];
            int ki = p->kind[i], kj = p->kind[j];
            size_t b = (size_t)at, pair = tsr_pair_index(ki, kj) * n_bin;
            double share = at - (double)b;
            add_to_bins(bin[0] + pair, b, share, 1.0);
            if (wj != 0.0)
                add_to_bins(bin[1] + (size_t)(ki * p->n_kind + kj) * n_bin, b,
                            share, wj);
            if (wi != 0.0)
                add_to_bins(bin[1] + (size_t)(kj * p->n_kind + ki) * n_bin, b,
                            share, wi);
            if (wi != 0.0 && wj != 0.0)
                add_to_bins(bin[2] + pair, b, share, wi * wj);
        }
}

/* Adds the points to moment [3][n_kind], the sums of 1, w, w^2, and their pairs
 * to the curves sum [3][count_curves][n_q]. With one component, which has no
 * weights, only the first of each. */
static tsr_status sum_points(const tsr_target_grid *grid, const pair_points *p,
                             double *const moment[3], double *const sum[3],
                             tsr_err *err)
{
    const int n_sum = grid->n_comp == 1 ? 1 : 3;
    const size_t n_bin = (size_t)(box_diagonal(p) / bin_width) + 3;
    const size_t n_q = (size_t)grid->n_q;
    tsr_pool pool = {0};
    double *bin[3] = {NULL}, *sinc;
    for (int w = 0; w < n_sum; w++)
        tsr_pool_array(&pool, bin[w], n_bin * count_curves(p->n_kind, w));
    tsr_pool_array(&pool, sinc, n_bin * n_q);
    tsr_status s = tsr_pool_check(&pool, err);
    if (s == TSR_OK)
        bin_pairs(p, n_bin, bin);
    for (size_t b = 0; b < n_bin && s == TSR_OK; b++)
        for (size_t k = 0; k < n_q; k++) {
            double x = (double)k * grid->dq_inv_ang * (double)b * bin_width;
            sinc[b * n_q + k] = x > 0.0 ? sin(x) / x : 1.0;
        }
    for (int w = 0; w < n_sum && s == TSR_OK; w++) {
        sum_bins(bin[w], n_bin, count_curves(p->n_kind, w), grid->n_q, sinc,
                 sum[w]);
        for (int i = 0; i < p->n; i++)
            moment[w][p->kind[i]] += w == 0   ? 1.0
                                     : w == 1 ? p->weight[i]
                                              : p->weight[i] * p->weight[i];
    }
    tsr_pool_clear(&pool);
    return s;
}

/* ---- atoms and bodies ---- */

/* The complete residues of a structure: atoms by element and hydrogens, and
 * bodies by type. */
typedef struct {
    pair_points atom, body;
    int z[MAX_KIND], n_hydrogen[MAX_KIND]; /* of the kinds of atoms */
    double *radius;                        /* [atom.n] Angstrom */
    int *body_of;                          /* [atom.n] */
    double mean_radius;
} molecule;

tsr_target_grid tsr_target_grid_of(const tsr_form_factor_table *table, int n_q,
                                   double dq_inv_ang)
{
    return (tsr_target_grid){table->model, table->n_comp, table->n_type,
                             n_q,          dq_inv_ang,    &table->exposure};
}

tsr_target_layout tsr_target_layout_of(const tsr_target_grid *grid)
{
    const size_t n_q = (size_t)grid->n_q;
    const int n_sum = grid->n_comp == 1 ? 1 : 3;
    tsr_target_layout l = {.radius = count_pairs(grid->n_comp) * n_q};
    l.length = l.radius + 1;
    for (int w = 0; w < 3; w++) {
        l.moment[w] = l.length;
        l.length += (size_t)grid->n_type;
    }
    for (int w = 0; w < 3; w++) {
        l.sum[w] = l.length;
        l.length += w < n_sum ? count_curves(grid->n_type, w) * n_q : 0;
    }
    return l;
}

size_t tsr_target_pair_at(const tsr_target_grid *grid, int t, int s)
{
    return tsr_pair_index(t, s) * (size_t)grid->n_q;
}

static int kind_of(molecule *p, const tsr_amino_atom *atom)
{
    int k = 0;
    while (k < p->atom.n_kind &&
           (p->z[k] != atom->z || p->n_hydrogen[k] != atom->n_hydrogen))
        k++;
    if (k == p->atom.n_kind) {
        p->z[k] = atom->z;
        p->n_hydrogen[k] = atom->n_hydrogen;
        p->atom.n_kind++;
    }
    return k;
}

/* Finds the atoms of a residue; returns 1 where none is missing. */
static int is_complete(const tsr_structure *structure, int residue,
                       tsr_residue_atoms *atoms)
{
    return tsr_residue_atoms_find(structure, &structure->residue[residue],
                                  atoms) == 0 &&
           atoms->n_missing == 0;
}

static tsr_status collect_points(const tsr_structure *structure,
                                 tsr_body_model model, tsr_pool *pool,
                                 molecule *p, tsr_err *err)
{
    pair_points *body = &p->body;
    *p = (molecule){.body.n_kind = tsr_body_n_type(model)};
    points_new(pool, &p->atom, structure->n_atom);
    points_new(pool, body, 2 * structure->n_residue);
    tsr_pool_array(pool, p->radius, structure->n_atom);
    tsr_pool_array(pool, p->body_of, structure->n_atom);
    TSR_TRY(tsr_pool_check(pool, err));
    for (int r = 0; r < structure->n_residue; r++) {
        tsr_residue_atoms a;
        int type[2];
        if (!is_complete(structure, r, &a))
            continue;
        const tsr_amino_info *info = &tsr_amino_table[a.amino];
        for (int i = 0; i < info->n_atom; i++) {
            const tsr_amino_atom *atom = &info->atom[i];
            const int at = p->atom.n++;
            tsr_vec3_copy(p->atom.xyz[at], a.xyz[i]);
            p->atom.kind[at] = kind_of(p, atom);
            p->radius[at] = tsr_atom_radius(atom->z, atom->n_hydrogen);
            p->body_of[at] =
                body->n + tsr_body_of_atom(model, a.amino, atom->name);
        }
        const int n = tsr_body_types(model, a.amino, type);
        for (int b = 0; b < n; b++) {
            tsr_body_centre(model, &a, b, body->xyz[body->n]);
            body->kind[body->n++] = type[b];
        }
    }
    return TSR_OK;
}

/* Sets the weights: exposed share of each atom, and sum over the atoms of each
 * body. */
static tsr_status compute_exposures(molecule *p, tsr_err *err)
{
    double sum = 0.0;
    TSR_TRY(tsr_surface_exposed(p->atom.n, (const double(*)[3])p->atom.xyz,
                                p->radius, probe, p->atom.weight, NULL, err));
    for (int i = 0; i < p->atom.n; i++) {
        sum += p->radius[i];
        p->body.weight[p->body_of[i]] += p->atom.weight[i];
    }
    p->mean_radius = sum / p->atom.n;
    return TSR_OK;
}

tsr_status tsr_target_exposure(const tsr_structure *structure, double *share,
                               tsr_err *err)
{
    tsr_pool pool = {0};
    molecule p;
    tsr_status s = collect_points(structure, TSR_BODIES_ONE, &pool, &p, err);
    TSR_THEN(s, compute_exposures(&p, err));
    if (s == TSR_OK)
        memcpy(share, p.atom.weight, (size_t)p.atom.n * sizeof *share);
    tsr_pool_clear(&pool);
    return s;
}

/* ---- profiles ---- */

/* Amplitudes of the kinds of points, and the sums over their pairs. */
typedef struct {
    int n_comp, n_kind, n_q;
    const double *amplitude;          /* [n_comp][n_kind][n_q] */
    const double *moment[3], *sum[3]; /* as sum_points computes them */
} kinds;

/* Adds to a partial profile the terms of kind t with itself and with the kinds
 * up to t (all kinds, where one index is hydration), in the pair of components
 * (a, b). */
static void combine_kind(const kinds *c, int t, int a, int b, double *partial)
{
    int n_hydration = (a == TSR_HYDRATION) + (b == TSR_HYDRATION), n_q = c->n_q;
    const double *fa = c->amplitude + a * c->n_kind * n_q;
    const double *fb = c->amplitude + b * c->n_kind * n_q;
    const double *at = fa + t * n_q, *bt = fb + t * n_q;
    for (int k = 0; k < n_q; k++)
        partial[k] += c->moment[n_hydration][t] * at[k] * bt[k];
    for (int s = 0; s < c->n_kind && n_hydration == 1; s++) {
        const double *bs = fb + s * n_q;
        const double *one = c->sum[1] + (t * c->n_kind + s) * n_q;
        for (int k = 0; k < n_q; k++)
            partial[k] += at[k] * bs[k] * one[k];
    }
    for (int s = 0; s <= t && n_hydration != 1; s++) {
        const double *as = fa + s * n_q, *bs = fb + s * n_q;
        const double *both =
            c->sum[n_hydration] + tsr_pair_index(t, s) * (size_t)n_q;
        for (int k = 0; k < n_q; k++)
            partial[k] += (at[k] * bs[k] + bt[k] * as[k]) * both[k];
    }
}

/* Partial profiles of kinds: partial [pairs of components][n_q] out. */
static void combine(const kinds *c, double *partial)
{
    memset(partial, 0,
           count_pairs(c->n_comp) * (size_t)c->n_q * sizeof *partial);
    for (int a = 0; a < c->n_comp; a++)
        for (int b = a; b < c->n_comp; b++, partial += c->n_q)
            for (int t = 0; t < c->n_kind; t++)
                combine_kind(c, t, a, b, partial);
}

/* Amplitudes of an atom at one q, `stride` apart: contrast and, with three
 * components, displaced solvent and hydration. */
static void atom_amplitudes(int n_comp, const tsr_amino_atom *atom, double q,
                            size_t stride, double *to)
{
    to[0] = tsr_atom_contrast_amplitude(atom->z, atom->n_hydrogen, q);
    if (n_comp == 1)
        return;
    to[stride] = tsr_atom_displaced_amplitude(atom->z, atom->n_hydrogen, q);
    to[2 * stride] = tsr_component_water(q);
}

static tsr_status compute_atom_profiles(const tsr_target_grid *grid,
                                        const molecule *p, tsr_pool *pool,
                                        double *partial, tsr_err *err)
{
    const int n_kind = p->atom.n_kind, n_comp = grid->n_comp;
    const size_t n_q = (size_t)grid->n_q, comp = (size_t)n_kind * n_q;
    double *amplitude, *moment[3], *sum[3];
    tsr_pool_array(pool, amplitude, (size_t)n_comp * comp);
    for (int w = 0; w < 3; w++) {
        tsr_pool_array(pool, moment[w], n_kind);
        tsr_pool_array(pool, sum[w], count_curves(n_kind, w) * n_q);
    }
    TSR_TRY(tsr_pool_check(pool, err));
    for (int t = 0; t < n_kind; t++)
        for (size_t k = 0; k < n_q; k++) {
            const tsr_amino_atom atom = {.z = p->z[t],
                                         .n_hydrogen = p->n_hydrogen[t]};
            double *to = amplitude + (size_t)t * n_q + k;
            atom_amplitudes(n_comp, &atom, (double)k * grid->dq_inv_ang, comp,
                            to);
            if (n_comp > 1)
                to[TSR_SOLUTE * comp] += to[TSR_DISPLACED * comp];
        }
    TSR_TRY(sum_points(grid, &p->atom, moment, sum, err));
    combine(&(kinds){n_comp,
                     n_kind,
                     grid->n_q,
                     amplitude,
                     {moment[0], moment[1], moment[2]},
                     {sum[0], sum[1], sum[2]}},
            partial);
    return TSR_OK;
}

/* Relative errors divide by I(q), which must be positive with one component. */
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

tsr_status tsr_target_compute(const tsr_target_grid *grid,
                              const tsr_structure *structure, double *target,
                              tsr_err *err)
{
    const tsr_target_layout l = tsr_target_layout_of(grid);
    double *moment[3], *sum[3];
    tsr_pool pool = {0};
    molecule p;
    memset(target, 0, l.length * sizeof *target);
    for (int w = 0; w < 3; w++) {
        moment[w] = target + l.moment[w];
        sum[w] = target + l.sum[w];
    }
    tsr_status s = collect_points(structure, grid->model, &pool, &p, err);
    if (s == TSR_OK && p.atom.n == 0)
        s = tsr_fail(err, TSR_E_DATA,
                     "'%s': no residue has all its atoms; leave it out",
                     structure->path);
    if (grid->n_comp > 1)
        TSR_THEN(s, compute_exposures(&p, err));
    target[l.radius] = p.mean_radius;
    TSR_THEN(s, compute_atom_profiles(grid, &p, &pool, target + l.atoms, err));
    if (grid->n_comp > 1)
        TSR_THEN(s, tsr_exposure_displace(grid->exposure, p.body.n,
                                          (const double(*)[3])p.body.xyz, NULL,
                                          p.body.weight, err));
    TSR_THEN(s, sum_points(grid, &p.body, moment, sum, err));
    TSR_THEN(s, check_intensity(grid, structure->path, target + l.atoms, err));
    tsr_pool_clear(&pool);
    return s;
}

void tsr_target_partials(const tsr_target_grid *grid, const double *target,
                         const double *amplitude, const double *excess,
                         double *partial)
{
    const tsr_target_layout l = tsr_target_layout_of(grid);
    int n_q = grid->n_q;
    kinds c = {grid->n_comp, grid->n_type, n_q, amplitude, {NULL}, {NULL}};
    for (int w = 0; w < 3; w++) {
        c.moment[w] = target + l.moment[w];
        c.sum[w] = target + l.sum[w];
    }
    combine(&c, partial);
    for (int a = 0; a < grid->n_comp && excess != NULL; a++)
        for (int b = a; b < grid->n_comp; b++, partial += n_q) {
            int n_hydration = (a == TSR_HYDRATION) + (b == TSR_HYDRATION);
            for (int t = 0; t < grid->n_type; t++, excess += n_q)
                for (int k = 0; k < n_q; k++)
                    partial[k] += c.moment[n_hydration][t] * excess[k];
        }
}

/* The intensity at one q from partial profiles at steps of `stride`: with three
 * components at G and c2. */
static double intensity_of(const tsr_target_grid *grid, const double *partial,
                           size_t stride, double g, double c2)
{
    return grid->n_comp == 1 ? *partial
                             : tsr_component_intensity(partial, stride, g, c2);
}

/* A list of the parts of a fold, in the order of the files, instead of their
 * sum. */
typedef struct {
    int n;         /* number of parts */
    size_t length; /* length of a part */
    double *part;  /* [n_path][length] */
} part_list;

static void append_part(const void *context, void *parts, const void *part)
{
    part_list *all = parts;
    (void)context;
    memcpy(all->part + (size_t)all->n++ * all->length, part,
           all->length * sizeof(double));
}

/* ---- training ----
 *
 * Averages over the occurrences of a type (docs/forward-model.md) of the
 * amplitudes of its atoms in each component, and of their products, which give
 * the excesses.
 *
 * With three components the averages are those of contrast, displaced solvent
 * and hydration, where the contrast is solute less displaced solvent. The
 * contrast is then equal to a table of one component trained on the same
 * structures, and the solute is the sum of contrast and displaced solvent. */

/* What all threads read: the table's grid, and the amplitudes of all atoms on
 * it, [TSR_N_AMINO][TSR_MAX_RESIDUE_ATOM][n_comp][n_q]. */
typedef struct {
    const tsr_form_factor_table *table;
    double *atom;
} training;

/* Sums over the bodies of one type. */
typedef struct {
    double count, rg2, atoms, radius, exposed, exposed2;
    double bins[2 * TSR_EXPOSURE_N_BIN]; /* tsr_exposure_bin */
    double amplitude[TSR_N_COMP][TSR_TRAIN_N_Q];
    double product[TSR_N_COMP_PAIR][TSR_TRAIN_N_Q];
} type_sum;

/* All members are doubles, so that sums can be added as one array; counts are
 * exact below 2^53. */
typedef struct {
    double used, skipped; /* residues */
    type_sum type[TSR_MAX_TYPE];
} training_sum;

static const double *atom_of(const training *tr, int amino, int atom, int comp)
{
    int i = amino * TSR_MAX_RESIDUE_ATOM + atom;
    return tr->atom + (i * tr->table->n_comp + comp) * tr->table->n_q;
}

static double sinc(double x)
{
    return x < 1e-4 ? 1.0 - x * x / 6.0 : sin(x) / x;
}

/* Adds the products of atoms i and j of a residue, or of an atom with itself (i
 * == j). share [2]: exposed shares of the two. sinc_r [n_q]: sinc(q r) of their
 * distance. */
static void add_pair(const training *tr, int amino, int i, int j,
                     const double share[2], const double *sinc_r, type_sum *sum)
{
    const tsr_form_factor_table *table = tr->table;
    for (int a = 0, pair = 0; a < table->n_comp; a++)
        for (int b = a; b < table->n_comp; b++, pair++) {
            const double *ai = atom_of(tr, amino, i, a);
            const double *aj = atom_of(tr, amino, j, a);
            const double *bi = atom_of(tr, amino, i, b);
            const double *bj = atom_of(tr, amino, j, b);
            double ij = (a == TSR_HYDRATION ? share[0] : 1.0) *
                        (b == TSR_HYDRATION ? share[1] : 1.0);
            double ji = (a == TSR_HYDRATION ? share[1] : 1.0) *
                        (b == TSR_HYDRATION ? share[0] : 1.0);
            for (int k = 0; k < table->n_q; k++)
                sum->product[pair][k] +=
                    i == j
                        ? ij * ai[k] * bj[k]
                        : (ij * ai[k] * bj[k] + ji * aj[k] * bi[k]) * sinc_r[k];
        }
}

/* Adds one body of a residue; share [TSR_MAX_RESIDUE_ATOM]: exposed shares of
 * the atoms, in the order of the table of amino acids. */
static void add_body(const training *tr, const tsr_residue_atoms *atoms,
                     int body, const double centre[3], const double *share,
                     double neighbours, type_sum *sum)
{
    const tsr_form_factor_table *table = tr->table;
    const tsr_amino_info *info = &tsr_amino_table[atoms->amino];
    int index[TSR_MAX_RESIDUE_ATOM], amino = (int)atoms->amino;
    int n = tsr_body_atoms(table->model, atoms->amino, body, index);
    double mass = 0.0, moment = 0.0, exposed = 0.0;
    double sinc_r[TSR_TRAIN_N_Q];
    for (int i = 0; i < n; i++) {
        int ai = index[i];
        double r = tsr_vec3_distance(atoms->xyz[ai], centre);
        double m = tsr_atom_mass(info->atom[ai].z);
        mass += m;
        moment += m * r * r;
        sum->radius +=
            tsr_atom_radius(info->atom[ai].z, info->atom[ai].n_hydrogen);
        exposed += share[ai];
        for (int a = 0; a < table->n_comp; a++) {
            double by = a == TSR_HYDRATION ? share[ai] : 1.0;
            const double *f = atom_of(tr, amino, ai, a);
            for (int k = 0; k < table->n_q; k++)
                sum->amplitude[a][k] +=
                    by * f[k] * sinc(k * table->dq_inv_ang * r);
        }
        for (int j = 0; j <= i; j++) {
            int aj = index[j];
            double d = tsr_vec3_distance(atoms->xyz[ai], atoms->xyz[aj]);
            for (int k = 0; k < table->n_q; k++)
                sinc_r[k] = sinc(k * table->dq_inv_ang * d);
            add_pair(tr, amino, ai, aj, (const double[2]){share[ai], share[aj]},
                     sinc_r, sum);
        }
    }
    sum->count += 1.0;
    sum->rg2 += moment / mass;
    sum->atoms += n;
    sum->exposed += exposed;
    sum->exposed2 += exposed * exposed;
    double *bin = tsr_exposure_bin(sum->bins, neighbours);
    bin[0] += 1.0;
    bin[1] += exposed;
}

static tsr_status add_structure(const tsr_structure *structure,
                                const void *context, void *part, tsr_err *err)
{
    const training *tr = context;
    const tsr_form_factor_table *table = tr->table;
    training_sum *sum = part;
    tsr_pool pool = {0};
    molecule p;
    double *neighbours;
    int atom = 0, body = 0;
    tsr_pool_array(&pool, neighbours, 2 * structure->n_residue);
    tsr_status s = collect_points(structure, table->model, &pool, &p, err);
    if (s == TSR_OK && table->n_comp > 1) {
        tsr_exposure_count(&table->exposure, p.body.n,
                           (const double(*)[3])p.body.xyz, neighbours);
        s = compute_exposures(&p, err);
    }
    for (int r = 0; r < structure->n_residue && s == TSR_OK; r++) {
        tsr_residue_atoms a;
        int type[2];
        if (!is_complete(structure, r, &a)) {
            sum->skipped += 1.0;
            continue;
        }
        sum->used += 1.0;
        const int n = tsr_body_types(table->model, a.amino, type);
        for (int b = 0; b < n; b++, body++)
            add_body(tr, &a, b, p.body.xyz[body], p.atom.weight + atom,
                     neighbours[body], &sum->type[type[b]]);
        atom += tsr_amino_table[a.amino].n_atom;
    }
    tsr_pool_clear(&pool);
    return s;
}

static void add_sums(const void *context, void *total, const void *part)
{
    double *to = total;
    const double *from = part;
    (void)context;
    for (size_t i = 0; i < sizeof(training_sum) / sizeof *to; i++)
        to[i] += from[i];
}

static void tabulate_atoms(const training *tr)
{
    const tsr_form_factor_table *table = tr->table;
    size_t n_q = (size_t)table->n_q, n = (size_t)table->n_comp * n_q;
    for (size_t a = 0; a < TSR_N_AMINO; a++)
        for (size_t i = 0; i < (size_t)tsr_amino_table[a].n_atom; i++)
            for (size_t k = 0; k < n_q; k++)
                atom_amplitudes(table->n_comp, &tsr_amino_table[a].atom[i],
                                (double)k * table->dq_inv_ang, n_q,
                                tr->atom + (a * TSR_MAX_RESIDUE_ATOM + i) * n +
                                    k);
}

/* Amplitudes and excesses of one type from its sums; hydration is that of one
 * wholly exposed atom. */
static void set_means(tsr_form_factor_table *table, int t, const type_sum *sum)
{
    const double by[3] = {1.0 / sum->count,
                          sum->exposed > 0.0 ? 1.0 / sum->exposed : 0.0,
                          sum->exposed2 > 0.0 ? 1.0 / sum->exposed2 : 0.0};
    int n_q = table->n_q, n = table->n_type * n_q;
    for (int k = 0; k < n_q; k++) {
        double mean[TSR_N_COMP];
        double *f = table->amplitude + t * n_q + k;
        double *e = table->excess + t * n_q + k;
        for (int a = 0; a < table->n_comp; a++)
            f[a * n] = mean[a] = sum->amplitude[a][k] * by[a == TSR_HYDRATION];
        for (int a = 0, pair = 0; a < table->n_comp; a++)
            for (int b = a; b < table->n_comp; b++, pair++)
                e[pair * n] =
                    sum->product[pair][k] *
                        by[(a == TSR_HYDRATION) + (b == TSR_HYDRATION)] -
                    mean[a] * mean[b];
        if (table->n_comp == 1)
            continue;
        /* From the contrast to the solute: v = c + d. */
        f[0] += f[n];
        e[0] += 2.0 * e[n] + e[3 * n];
        e[n] += e[3 * n];
        e[2 * n] += e[4 * n];
    }
}

static tsr_status set_type(tsr_form_factor_table *table, int t,
                           const type_sum *sum, tsr_err *err)
{
    if (sum->count == 0.0)
        return tsr_fail(err, TSR_E_DATA,
                        "no complete %s in the training structures; give more "
                        "of them",
                        tsr_body_type_name(table->model, t));
    if (table->n_comp > 1)
        TSR_TRY(tsr_exposure_fit(sum->bins, &table->exposure.type[t], err));
    table->count[t] = (long)sum->count;
    table->rg2[t] = sum->rg2 / sum->count;
    table->atoms[t] = sum->atoms / sum->count;
    table->radius[t] = sum->radius / sum->atoms;
    set_means(table, t, sum);
    return TSR_OK;
}

tsr_status tsr_form_factor_train(tsr_form_factor_table *table, int n_path,
                                 const char *const *path, int n_thread,
                                 tsr_log *log, tsr_err *err)
{
    training tr = {.table = table};
    const tsr_structure_fold_type fold = {.part_size = sizeof(training_sum),
                                          .visit = add_structure,
                                          .add = add_sums,
                                          .context = &tr};
    tsr_pool pool = {0};
    training_sum *sum;
    if (table->n_q < 3 || table->n_q > TSR_TRAIN_N_Q ||
        !(table->dq_inv_ang > 0.0))
        return tsr_fail(err, TSR_E_USAGE,
                        "a q grid of %d points, step %g: 3 to %d and above 0 "
                        "are needed",
                        table->n_q, table->dq_inv_ang, TSR_TRAIN_N_Q);
    tsr_pool_array(&pool, sum, 1);
    tsr_pool_array(&pool, tr.atom,
                   TSR_N_AMINO * TSR_MAX_RESIDUE_ATOM * table->n_comp *
                       table->n_q);
    tsr_status s = tsr_pool_check(&pool, err);
    if (s == TSR_OK) {
        tabulate_atoms(&tr);
        s = tsr_structure_fold(&fold, n_path, path, n_thread, sum, log, err);
    }
    for (int t = 0; t < table->n_type && s == TSR_OK; t++)
        s = set_type(table, t, &sum->type[t], err);
    if (s == TSR_OK) {
        tsr_info(log,
                 "%d structures: %.0f residues used, %.0f left out "
                 "(atoms missing)",
                 n_path, sum->used, sum->skipped);
        table->source = tsr_structure_source(n_path, path, (long)sum->used,
                                             (long)sum->skipped);
        s = tsr_allocated(table->source, err);
    }
    tsr_pool_clear(&pool);
    return s;
}

void tsr_form_factor_unfold(const tsr_form_factor_table *folded,
                            tsr_form_factor_table *table)
{
    size_t n = (size_t)table->n_type * (size_t)table->n_q;
    double *f = table->amplitude, *e = table->excess;
    for (size_t i = 0; i < n; i++) {
        f[i] = folded->amplitude[i] + f[n + i];
        e[i] = folded->excess[i] + 2.0 * e[n + i] - e[3 * n + i];
    }
}

/* ---- refinement ----
 *
 * Changes F and E so that profiles of bodies agree best with those of all atoms
 * (docs/forward-model.md): Gauss-Newton on the relative errors of I(q) over the
 * training structures. The changes are smooth in q (cubic B-splines) and small
 * (a ridge penalty).
 *
 * The contrast c is refined first, as a table of one component, because it
 * alone determines I(q) at c1 = 1 and c2 = 0. It is then fixed, and the changes
 * of displaced solvent d and hydration h are fitted at a few settings of c1 and
 * c2: with x = 1 - G,
 *
 *     I = I_cc + 2 x I_cd + x^2 I_dd + 2 c2 (I_ch + x I_dh) + c2^2 I_hh. */

/* ---- smooth curves ----
 *
 * Least squares for n_curve curves in q at once. Each is a sum of cubic
 * B-splines (knots 0.1 1/Angstrom apart) that is zero at q = 0 and kept small
 * by a ridge penalty. A Gauss-Newton step calls smooth_fit_add at every q but
 * 0, then smooth_fit_step. */

enum { MAX_CURVE = 84 };

/* Distance of the knots, 1/Angstrom, chosen on held-out structures. The choice
 * is not critical: with 0.15 the errors of the two-body table on them rise by
 * less than a fifth. */
static const double knot = 0.1;

typedef struct {
    int n_curve, n_q, n_basis, n_param; /* n_param = n_basis n_curve */
    double *basis;                      /* [n_basis][n_q] */
    double *normal;                     /* [n_param][n_param] */
    /* [n_param]; spline b of curve c is at b n_curve + c */
    double *gradient, *change, *coefficient;
} smooth_fit;

/* The uniform cubic B-spline around 0, knots at the integers. */
static double b_spline(double x)
{
    x = fabs(x);
    if (x >= 2.0)
        return 0.0;
    if (x >= 1.0)
        return (2.0 - x) * (2.0 - x) * (2.0 - x) / 6.0;
    return 2.0 / 3.0 - x * x * (1.0 - 0.5 * x);
}

/* Spline b at q. The factor, which begins as q^2, makes changes zero at q = 0
 * and even in q. */
static double basis_at(int b, double q)
{
    double rise = q * q / (q * q + knot * knot);
    return rise * b_spline(q / knot - (b - 1));
}

/* A fit with curves of zero on q_k = k dq, k < n_q; the pool owns its arrays.
 */
static void smooth_fit_new(tsr_pool *pool, smooth_fit *fit, int n_curve,
                           int n_q, double dq_inv_ang)
{
    double last = (n_q - 1) * dq_inv_ang;
    fit->n_curve = n_curve;
    fit->n_q = n_q;
    fit->n_basis = (int)ceil(last / knot - 1e-9) + 3;
    fit->n_param = fit->n_basis * n_curve;
    tsr_pool_array(pool, fit->basis, fit->n_basis * n_q);
    tsr_pool_array(pool, fit->normal, fit->n_param * fit->n_param);
    tsr_pool_array(pool, fit->gradient, fit->n_param);
    tsr_pool_array(pool, fit->change, fit->n_param);
    tsr_pool_array(pool, fit->coefficient, fit->n_param);
    for (int b = 0; b < fit->n_basis && fit->basis != NULL; b++)
        for (int k = 0; k < n_q; k++)
            fit->basis[b * n_q + k] = basis_at(b, k * dq_inv_ang);
}

/* The value of a curve at any q up to the last of the grid. */
static double smooth_fit_at(const smooth_fit *fit, int curve, double q)
{
    double sum = 0.0;
    for (int b = 0; b < fit->n_basis; b++)
        sum += basis_at(b, q) * fit->coefficient[b * fit->n_curve + curve];
    return sum;
}

/* Adds n_row equations at q_k: residual [n_row], and jacobian [n_row][n_curve],
 * the decrease of the residuals with the values of the curves at q_k. */
static void smooth_fit_add(smooth_fit *fit, int k, int n_row,
                           const double *jacobian, const double *residual)
{
    enum { WIDTH = MAX_CURVE };
    int n = fit->n_curve, n_q = fit->n_q;
    double square[WIDTH][WIDTH] = {{0}}, slope[WIDTH] = {0};
    for (int m = 0; m < n_row; m++) {
        const double *j = jacobian + m * n;
        for (int a = 0; a < n; a++) {
            slope[a] += j[a] * residual[m];
            for (int b = 0; b <= a; b++)
                square[a][b] += j[a] * j[b];
        }
    }
    for (int u = 0; u < fit->n_basis; u++) {
        double bu = fit->basis[u * n_q + k];
        for (int a = 0; a < n && bu != 0.0; a++)
            fit->gradient[u * n + a] += bu * slope[a];
        for (int v = 0; v < fit->n_basis; v++) {
            double w = bu * fit->basis[v * n_q + k];
            if (w == 0.0)
                continue;
            for (int a = 0; a < n; a++)
                for (int b = 0; b < n; b++)
                    fit->normal[(u * n + a) * fit->n_param + v * n + b] +=
                        w * (a >= b ? square[a][b] : square[b][a]);
        }
    }
}

/* Solves the equations with a ridge of `penalty` for each spline, changes the
 * curves, and zeroes the equations. *largest: the largest change of a
 * coefficient. Errors: TSR_E_NUMERIC. */
static tsr_status smooth_fit_step(smooth_fit *fit, double penalty,
                                  double *largest, tsr_err *err)
{
    const size_t n = (size_t)fit->n_param;
    for (size_t i = 0; i < n; i++) {
        fit->normal[i * n + i] += penalty;
        fit->gradient[i] -= penalty * fit->coefficient[i];
    }
    gsl_matrix_view normal = gsl_matrix_view_array(fit->normal, n, n);
    gsl_vector_view gradient = gsl_vector_view_array(fit->gradient, n);
    gsl_vector_view change = gsl_vector_view_array(fit->change, n);
    int gsl = gsl_linalg_cholesky_decomp1(&normal.matrix);
    if (gsl == GSL_SUCCESS)
        gsl = gsl_linalg_cholesky_solve(&normal.matrix, &gradient.vector,
                                        &change.vector);
    if (gsl != GSL_SUCCESS)
        return tsr_fail(err, TSR_E_NUMERIC,
                        "the refinement of form factors has no solution: %s",
                        gsl_strerror(gsl));
    *largest = 0.0;
    for (size_t i = 0; i < n; i++) {
        fit->coefficient[i] += fit->change[i];
        *largest = fmax(*largest, fabs(fit->change[i]));
    }
    memset(fit->normal, 0, n * n * sizeof *fit->normal);
    memset(fit->gradient, 0, n * sizeof *fit->gradient);
    return TSR_OK;
}

/* Ridge penalty for each structure, setting and grid point, chosen on held-out
 * structures. The choice is not critical: with a third or three times of it the
 * errors of the two-body table on them rise by less than a fifth. */
static const double ridge = 0.004;
enum { MAX_ITERATION = 12 };

/* The quantities refined for each type, in blocks. One component: the amplitude
 * F, and the self intensity P = E + F^2 instead of the excess E, so that a
 * change of F does not change the terms of a body with itself. Three
 * components: the amplitudes of displaced solvent and hydration, and the
 * excesses of both with the contrast. */
enum { CONTRAST, SELF, N_ONE };
enum { DISPLACED, HYDRATION, EXCESS_CD, EXCESS_CH, N_THREE, MAX_BLOCK = 4 };

typedef struct {
    const char *what;
    int n_block;
    int stride; /* every stride-th point of the table is fitted */
    double converged;
    int n_setting;
    double setting[6][2]; /* c1, c2 in the range of fits to data */
} refined_kind;

static const refined_kind one_component = {"form factors", N_ONE, 1,
                                           1e-7,           1,     {{1.0, 0.0}}};
/* Every second point of the table is enough for knots 0.1 apart. */
static const refined_kind three_components = {"components",
                                              N_THREE,
                                              2,
                                              1e-6,
                                              6,
                                              {{0.95, 0.0},
                                               {1.05, 0.0},
                                               {1.0, 1.0},
                                               {1.0, 3.0},
                                               {0.97, 2.0},
                                               {1.03, 1.0}}};

typedef struct {
    const refined_kind *kind;
    tsr_form_factor_table *table;
    tsr_target_grid grid;
    tsr_target_layout layout;
    int n_structure;
    part_list target; /* [n_structure][layout.length] */
    double *start;    /* [n_comp + n_pair][n_type][n_q of the table] F, then E,
                         before refinement */
    double *self;     /* [n_type][n_q of the table] P of the contrast, electrons
                         squared */
    double *jacobian; /* [n_structure][n_setting][n_block n_type] at one q */
    double *residual; /* [n_structure][n_setting] */
    double *total;    /* [2][n_type] amplitude of a body at one setting and q:
                         without hydration, and hydration per exposure */
    smooth_fit fit;
} refinement;

static size_t count_values(const tsr_form_factor_table *table)
{
    return (size_t)table->n_type * (size_t)table->n_q;
}

/* Computes the self intensity P of the contrast. */
static void compute_self(refinement *r)
{
    const tsr_form_factor_table *table = r->table;
    size_t n = count_values(table);
    for (size_t i = 0; i < n; i++) {
        const double *f = table->amplitude + i, *e = table->excess + i;
        double c = table->n_comp == 1 ? f[0] : f[0] - f[n];
        r->self[i] =
            c * c + (table->n_comp == 1 ? e[0] : e[0] - 2.0 * e[n] + e[3 * n]);
    }
}

static tsr_status refinement_new(tsr_pool *pool, refinement *r,
                                 tsr_form_factor_table *table, int n_path,
                                 tsr_err *err)
{
    const refined_kind *of =
        table->n_comp == 1 ? &one_component : &three_components;
    const int n_q = (table->n_q - 1) / of->stride + 1;
    const int n_row = n_path * of->n_setting, n_type = table->n_type;
    const size_t n_value = count_values(table);
    const size_t n_f = (size_t)table->n_comp * n_value;
    const size_t n_e = (size_t)table->n_pair * n_value;
    *r = (refinement){
        .kind = of,
        .table = table,
        .grid = tsr_target_grid_of(table, n_q, of->stride * table->dq_inv_ang),
        .n_structure = n_path};
    r->layout = tsr_target_layout_of(&r->grid);
    r->target.length = r->layout.length;
    tsr_pool_array(pool, r->target.part, (size_t)n_path * r->layout.length);
    tsr_pool_array(pool, r->start, n_f + n_e);
    tsr_pool_array(pool, r->self, n_value);
    tsr_pool_array(pool, r->jacobian, n_row * of->n_block * n_type);
    tsr_pool_array(pool, r->residual, n_row);
    tsr_pool_array(pool, r->total, 2 * n_type);
    smooth_fit_new(pool, &r->fit, of->n_block * n_type, n_q,
                   r->grid.dq_inv_ang);
    if (tsr_pool_check(pool, err) != TSR_OK)
        return tsr_fail(err, TSR_E_NOMEM,
                        "no memory to refine on %d structures (%.1f MB each); "
                        "give fewer of them",
                        n_path, 8e-6 * (double)r->layout.length);
    memcpy(r->start, table->amplitude, n_f * sizeof(double));
    memcpy(r->start + n_f, table->excess, n_e * sizeof(double));
    compute_self(r);
    return TSR_OK;
}

static tsr_status compute_target(const tsr_structure *structure,
                                 const void *context, void *part, tsr_err *err)
{
    return tsr_target_compute(context, structure, part, err);
}

/* The units of the changes, which make them comparable for all types. P:
 * itself. Amplitude of the contrast: the square root of P. Amplitudes of
 * displaced solvent and hydration: themselves. Excesses: the square root of P
 * times the amplitude of displaced solvent or hydration. */
static void get_units(const refinement *r, size_t at, double unit[MAX_BLOCK])
{
    size_t n = count_values(r->table);
    double c = sqrt(fmax(r->self[at], 0.0));
    if (r->table->n_comp == 1) {
        unit[CONTRAST] = c;
        unit[SELF] = r->self[at];
        return;
    }
    double d = fabs(r->start[n + at]), h = fabs(r->start[2 * n + at]);
    unit[DISPLACED] = d;
    unit[HYDRATION] = h;
    unit[EXCESS_CD] = c * d;
    unit[EXCESS_CH] = c * h;
}

/* Applies the changes `by` at one type and q of the table. Returns -1 where P
 * would become negative, which the ridge normally prevents. */
static int apply_changes(const refinement *r, size_t at,
                         const double by[MAX_BLOCK])
{
    size_t n = count_values(r->table);
    const double *f0 = r->start + at, *e0 = f0 + (size_t)r->table->n_comp * n;
    double *f = r->table->amplitude + at, *e = r->table->excess + at;
    if (r->table->n_comp == 1) {
        double self = r->self[at] + by[SELF];
        f[0] = f0[0] + by[CONTRAST];
        e[0] = self - f[0] * f[0];
        return self >= 0.0 ? 0 : -1;
    }
    f[TSR_SOLUTE * n] = f0[0] + by[DISPLACED]; /* contrast unchanged */
    f[TSR_DISPLACED * n] = f0[n] + by[DISPLACED];
    f[TSR_HYDRATION * n] = f0[2 * n] + by[HYDRATION];
    /* vv = cc + 2 cd + dd, vd = cd + dd, vh = ch + dh */
    e[0] = e0[0] + 2.0 * by[EXCESS_CD];
    e[n] = e0[n] + by[EXCESS_CD];
    e[2 * n] = e0[2 * n] + by[EXCESS_CH];
    return 0;
}

/* Sets the table to the values before refinement plus the present changes. */
static tsr_status update_table(const refinement *r, tsr_err *err)
{
    const tsr_form_factor_table *table = r->table;
    for (int t = 0; t < table->n_type; t++)
        for (int k = 0; k < table->n_q; k++) {
            size_t at = (size_t)(t * table->n_q + k);
            double by[MAX_BLOCK];
            get_units(r, at, by);
            for (int b = 0; b < r->kind->n_block; b++)
                by[b] *= smooth_fit_at(&r->fit, b * table->n_type + t,
                                       k * table->dq_inv_ang);
            if (apply_changes(r, at, by) != 0)
                return tsr_fail(err, TSR_E_NUMERIC,
                                "the refinement of form factors left its "
                                "range; give more structures, or do not "
                                "refine");
        }
    return TSR_OK;
}

/* Sums over pairs of a body i of type t and any other body j of sinc(q r_ij)
 * times the total amplitude of j, which derivatives by F_t need: field[0] as it
 * is, field[1] with each term times the exposure of i. */
static void compute_fields(const refinement *r, const double *target, int t,
                           int k, double field[2])
{
    const tsr_target_grid *g = &r->grid;
    const tsr_target_layout *l = &r->layout;
    const double *bare = r->total, *per_exposure = r->total + g->n_type;
    size_t at = (size_t)k;
    field[0] = field[1] = 0.0;
    for (int s = 0; s < g->n_type; s++) {
        double twice = s == t ? 2.0 : 1.0;
        size_t pair = tsr_target_pair_at(g, t, s) + at;
        field[0] += twice * bare[s] * target[l->sum[0] + pair];
        if (g->n_comp == 1)
            continue;
        const size_t ts = (size_t)((t * g->n_type + s) * g->n_q) + at;
        const size_t st = (size_t)((s * g->n_type + t) * g->n_q) + at;
        field[0] += per_exposure[s] * target[l->sum[1] + ts];
        field[1] += bare[s] * target[l->sum[1] + st] +
                    twice * per_exposure[s] * target[l->sum[2] + pair];
    }
}

/* Returns the contribution of type t to I, by pairs of its bodies with all
 * bodies and by their self terms. by [MAX_BLOCK] out: derivatives of I by the
 * blocks of type t, in their units. x = 1 - G. */
static double linearise_type(const refinement *r, const double *target, int t,
                             int k, double x, double c2, double by[MAX_BLOCK])
{
    const tsr_form_factor_table *table = r->table;
    const tsr_target_layout *l = &r->layout;
    size_t n = count_values(table);
    size_t at = (size_t)(t * table->n_q + k * r->kind->stride);
    const double *ex = table->excess + at;
    double bare = r->total[t], per_exposure = r->total[table->n_type + t];
    double many = target[l->moment[0] + (size_t)t], field[2], unit[MAX_BLOCK];
    compute_fields(r, target, t, k, field);
    get_units(r, at, unit);
    if (table->n_comp == 1) {
        by[CONTRAST] = 2.0 * field[0] * unit[CONTRAST];
        by[SELF] = many * unit[SELF];
        return bare * field[0] + many * (ex[0] + bare * bare);
    }
    double e = target[l->moment[1] + (size_t)t];
    double e2 = target[l->moment[2] + (size_t)t];
    double cc = ex[0] - 2.0 * ex[n] + ex[3 * n];
    double cd = ex[n] - ex[3 * n], ch = ex[2 * n] - ex[4 * n];
    double by_bare = field[0] + many * bare + e * per_exposure;
    double by_exposed = field[1] + e * bare + e2 * per_exposure;
    by[DISPLACED] = 2.0 * x * unit[DISPLACED] * by_bare;
    by[HYDRATION] = 2.0 * c2 * unit[HYDRATION] * by_exposed;
    by[EXCESS_CD] = 2.0 * x * many * unit[EXCESS_CD];
    by[EXCESS_CH] = 2.0 * c2 * e * unit[EXCESS_CH];
    return bare * by_bare + per_exposure * by_exposed +
           many * (cc + 2.0 * x * cd + x * x * ex[3 * n]) +
           2.0 * c2 * e * (ch + x * ex[4 * n]) + c2 * c2 * e2 * ex[5 * n];
}

/* The residual 1 - I / I_atoms and its derivatives for structure m, setting s
 * and q_k. I is computed with one total amplitude for each body, c + x d + c2 e
 * h. */
static void linearise(refinement *r, int m, int s, int k)
{
    const tsr_form_factor_table *table = r->table;
    const double *target = r->target.part + (size_t)m * r->layout.length;
    int n_type = table->n_type, n_block = r->kind->n_block;
    size_t n = count_values(table);
    double c2 = r->kind->setting[s][1];
    double scale =
        tsr_component_scale(r->kind->setting[s][0], target[r->layout.radius],
                            k * r->grid.dq_inv_ang);
    double atoms = intensity_of(&r->grid, target + r->layout.atoms + k,
                                (size_t)r->grid.n_q, scale, c2);
    int row = m * r->kind->n_setting + s;
    double *j = r->jacobian + row * n_block * n_type, sum = 0.0;
    for (int t = 0; t < n_type; t++) {
        const double *f =
            table->amplitude + t * table->n_q + k * r->kind->stride;
        r->total[t] = table->n_comp == 1 ? f[0] : f[0] - scale * f[n];
        r->total[n_type + t] = table->n_comp == 1 ? 0.0 : c2 * f[2 * n];
    }
    for (int t = 0; t < n_type; t++) {
        double by[MAX_BLOCK];
        sum += linearise_type(r, target, t, k, 1.0 - scale, c2, by);
        for (int b = 0; b < n_block; b++)
            j[b * n_type + t] = by[b] / atoms;
    }
    r->residual[row] = 1.0 - sum / atoms;
}

/* One Gauss-Newton step; *largest: its largest component. */
static tsr_status gauss_newton_step(refinement *r, double *largest,
                                    tsr_err *err)
{
    int n_row = r->n_structure * r->kind->n_setting;
    for (int k = 1; k < r->grid.n_q; k++) {
        for (int m = 0; m < r->n_structure; m++)
            for (int s = 0; s < r->kind->n_setting; s++)
                linearise(r, m, s, k);
        smooth_fit_add(&r->fit, k, n_row, r->jacobian, r->residual);
    }
    double penalty = ridge * n_row * knot / r->grid.dq_inv_ang;
    tsr_status s = smooth_fit_step(&r->fit, penalty, largest, err);
    return s == TSR_OK ? update_table(r, err) : s;
}

static tsr_status iterate(refinement *r, tsr_log *log, tsr_err *err)
{
    double largest = HUGE_VAL;
    int i = 0;
    tsr_status s = TSR_OK;
    for (; i < MAX_ITERATION && largest > r->kind->converged && s == TSR_OK;
         i++)
        s = gauss_newton_step(r, &largest, err);
    if (s == TSR_OK && largest > r->kind->converged)
        return tsr_fail(err, TSR_E_NUMERIC,
                        "the refinement of %s did not converge in %d steps; "
                        "give more structures, or do not refine",
                        r->kind->what, MAX_ITERATION);
    if (s == TSR_OK)
        tsr_info(log, "%s refined in %d steps", r->kind->what, i);
    return s;
}

/* Refines the contrast (one component), or displaced solvent and hydration
 * (three components). */
static tsr_status refine_table(tsr_form_factor_table *table, int n_path,
                               const char *const *path, int n_thread,
                               tsr_log *log, tsr_err *err)
{
    tsr_pool pool = {0};
    refinement r;
    tsr_status s = refinement_new(&pool, &r, table, n_path, err);
    const tsr_structure_fold_type fold = {.part_size =
                                              r.layout.length * sizeof(double),
                                          .visit = compute_target,
                                          .add = append_part,
                                          .context = &r.grid};
    TSR_THEN(s, tsr_structure_fold(&fold, n_path, path, n_thread, &r.target,
                                   log, err));
    TSR_THEN(s, iterate(&r, log, err));
    tsr_pool_clear(&pool);
    return s;
}

tsr_status tsr_form_factor_refine(tsr_form_factor_table *table, int n_path,
                                  const char *const *path, int n_thread,
                                  tsr_log *log, tsr_err *err)
{
    tsr_form_factor_table *contrast = NULL;
    tsr_status s = TSR_OK;
    if (table->n_comp > 1) {
        s = tsr_form_factor_fold(table, &contrast, err);
        TSR_THEN(s, refine_table(contrast, n_path, path, n_thread, log, err));
        if (s == TSR_OK)
            tsr_form_factor_unfold(contrast, table);
        tsr_form_factor_free(contrast);
    }
    TSR_THEN(s, refine_table(table, n_path, path, n_thread, log, err));
    TSR_THEN(s,
             tsr_table_set_heading(&table->source, err,
                                   "refined: on the relative error of I(q) "
                                   "against all atoms\n%s",
                                   table->source != NULL ? table->source : ""));
    return s;
}

/* ---- evaluation ----
 *
 * Errors of tables against all atoms. A target of a structure serves all
 * evaluations with the same bodies and exposure model, so that evaluations that
 * differ in c1, c2 or S(q) need no further sums over pairs. */

enum { N_Q = TSR_ERROR_N_Q };

const double tsr_error_band[TSR_ERROR_N_BAND + 1] = {0.0, 0.1, 0.2, 0.35, 0.5};

static int band_of(int k)
{
    double q = k * TSR_ERROR_DQ + 1e-9;
    int b = 0;
    while (b < TSR_ERROR_N_BAND - 1 && q >= tsr_error_band[b + 1])
        b++;
    return b;
}

void tsr_error_relative(const double *model, const double *atoms, double *error)
{
    double one = 0.0, two = 0.0;
    for (int k = 0; k < N_Q && band_of(k) == 0; k++) {
        double ratio = model[k] / atoms[k];
        one += ratio;
        two += ratio * ratio;
    }
    for (int k = 0; k < N_Q; k++)
        error[k] = one / two * model[k] / atoms[k] - 1.0;
}

static double band_rms(const double *error, int band)
{
    double sum = 0.0;
    int n = 0;
    for (int k = 0; k < N_Q; k++)
        if (band_of(k) == band) {
            sum += error[k] * error[k];
            n++;
        }
    return sqrt(sum / n);
}

tsr_status tsr_error_summarise(int n_structure, const double *error,
                               size_t stride, tsr_error_summary *summary,
                               tsr_err *err)
{
    double *value = malloc((size_t)n_structure * sizeof *value);
    TSR_TRY(tsr_allocated(value, err));
    for (int b = 0; b < TSR_ERROR_N_BAND; b++) {
        for (int m = 0; m < n_structure; m++)
            value[m] = band_rms(error + (size_t)m * stride, b);
        size_t n = (size_t)n_structure;
        gsl_sort(value, 1, n);
        summary->band[b] = gsl_stats_median_from_sorted_data(value, 1, n);
        summary->high[b] =
            gsl_stats_quantile_from_sorted_data(value, 1, n, 0.95);
    }
    for (int k = 0; k < N_Q; k++) {
        for (int m = 0; m < n_structure; m++)
            value[m] = fabs(error[(size_t)m * stride + (size_t)k]);
        summary->curve[k] = gsl_stats_median(value, 1, (size_t)n_structure);
    }
    free(value);
    return TSR_OK;
}

/* The evaluations, and their tables on the grid of the errors. */
typedef struct {
    int n;
    const tsr_evaluation *row; /* [n] */
    double *amplitude;         /* [n][TSR_N_COMP TABLE] */
    double *excess;            /* [n][TSR_N_COMP_PAIR TABLE] */
} evaluation_set;

enum { TABLE = TSR_MAX_TYPE * N_Q };

/* The errors of one evaluation on a target of its table: error [N_Q] out. */
static void compute_error(const evaluation_set *p, int i,
                          const tsr_target_grid *grid, const double *target,
                          double *error)
{
    const tsr_evaluation *row = &p->row[i];
    const tsr_target_layout l = tsr_target_layout_of(grid);
    double partial[TSR_N_COMP_PAIR * N_Q], bodies[N_Q], atoms[N_Q];
    const double *excess = p->excess + (size_t)(i * TSR_N_COMP_PAIR) * TABLE;
    tsr_target_partials(grid, target,
                        p->amplitude + (size_t)(i * TSR_N_COMP) * TABLE,
                        row->with_self ? excess : NULL, partial);
    for (int k = 0; k < N_Q; k++) {
        double g =
            tsr_component_scale(row->c1, target[l.radius], k * TSR_ERROR_DQ);
        bodies[k] = intensity_of(grid, partial + k, N_Q, g, row->c2);
        atoms[k] = intensity_of(grid, target + l.atoms + k, N_Q, g, row->c2);
    }
    tsr_error_relative(bodies, atoms, error);
}

/* 1 where both tables have the same targets. */
static int has_same_target(const tsr_form_factor_table *a,
                           const tsr_form_factor_table *b)
{
    return a == b || (a->n_comp == 1 && b->n_comp == 1 && a->model == b->model);
}

/* Errors of one structure: part [n][N_Q] out. */
static tsr_status evaluate_structure(const tsr_structure *structure,
                                     const void *context, void *part,
                                     tsr_err *err)
{
    const evaluation_set *p = context;
    double *target = NULL;
    tsr_status s = TSR_OK;
    for (int i = 0; i < p->n && s == TSR_OK; i++) {
        const tsr_form_factor_table *table = p->row[i].table;
        const tsr_target_grid grid =
            tsr_target_grid_of(table, N_Q, TSR_ERROR_DQ);
        if (i == 0 || !has_same_target(table, p->row[i - 1].table)) {
            free(target);
            target =
                malloc(tsr_target_layout_of(&grid).length * sizeof *target);
            s = tsr_allocated(target, err);
            TSR_THEN(s, tsr_target_compute(&grid, structure, target, err));
        }
        if (s == TSR_OK)
            compute_error(p, i, &grid, target,
                          (double *)part + (size_t)i * N_Q);
    }
    free(target);
    return s;
}

tsr_status tsr_form_factor_evaluate(int n_path, const char *const *path, int n,
                                    const tsr_evaluation *evaluation,
                                    int n_thread, tsr_log *log,
                                    tsr_error_summary *summary, tsr_err *err)
{
    tsr_pool pool = {0};
    evaluation_set p = {.n = n, .row = evaluation};
    const size_t row = (size_t)n * N_Q;
    part_list all = {.length = row};
    const tsr_structure_fold_type fold = {.part_size = row * sizeof(double),
                                          .visit = evaluate_structure,
                                          .add = append_part,
                                          .context = &p};
    tsr_pool_array(&pool, p.amplitude, n * TSR_N_COMP * TABLE);
    tsr_pool_array(&pool, p.excess, n * TSR_N_COMP_PAIR * TABLE);
    tsr_pool_array(&pool, all.part, (size_t)n_path * row);
    tsr_status s = tsr_pool_check(&pool, err);
    for (int i = 0; i < n && s == TSR_OK; i++)
        s = tsr_form_factor_resample(evaluation[i].table, N_Q, TSR_ERROR_DQ,
                                     p.amplitude + i * TSR_N_COMP * TABLE,
                                     p.excess + i * TSR_N_COMP_PAIR * TABLE,
                                     err);
    TSR_THEN(s,
             tsr_structure_fold(&fold, n_path, path, n_thread, &all, log, err));
    for (int i = 0; i < n && s == TSR_OK; i++)
        s = tsr_error_summarise(n_path, all.part + (size_t)i * N_Q, row,
                                &summary[i], err);
    tsr_pool_clear(&pool);
    return s;
}
