#include "model/component_target.h"

#include "core/vec3.h"
#include "model/residue_atoms.h"
#include "model/surface.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { MAX_KIND = 24, N_POINT = 200 };
static const double bin_width = 0.05; /* Angstrom */
static const double probe = 1.8;      /* Angstrom, as FoXS */

/* Points of a few kinds with a weight each: atoms by element and hydrogens with
 * their exposed share, bodies by type with their exposure. */
typedef struct {
    int n, n_kind;
    double (*xyz)[3]; /* [n] */
    int *kind;        /* [n] */
    double *weight;   /* [n] */
    int z[MAX_KIND], n_hydrogen[MAX_KIND];
} points;

/* Sums over pairs of kinds: plain and with both weights [n_pair], with the
 * second's weight [n_kind][n_kind]; each [n_q]. */
typedef struct {
    double *plain, *one, *both;
} sums;

static size_t triangle(int t, int s)
{
    return (size_t)(t >= s ? t * (t + 1) / 2 + s : s * (s + 1) / 2 + t);
}

tsr_component_layout tsr_component_layout_of(const tsr_component_grid *grid)
{
    size_t n = (size_t)grid->n_type, n_q = (size_t)grid->n_q;
    tsr_component_layout l = {.radius = TSR_N_COMP_PAIR * n_q};
    l.count = l.radius + 1;
    l.exposed = l.count + n;
    l.exposed2 = l.exposed + n;
    l.pairs = l.exposed2 + n;
    l.wet = l.pairs + n * (n + 1) / 2 * n_q;
    l.wet2 = l.wet + n * n * n_q;
    l.length = l.wet2 + n * (n + 1) / 2 * n_q;
    return l;
}

size_t tsr_component_pair_at(const tsr_component_grid *grid, int t, int s)
{
    return triangle(t, s) * (size_t)grid->n_q;
}

size_t tsr_component_wet_at(const tsr_component_grid *grid, int t, int s)
{
    return ((size_t)t * (size_t)grid->n_type + (size_t)s) * (size_t)grid->n_q;
}

double tsr_component_water(double q_inv_ang)
{
    return tsr_atom_contrast_amplitude(8, 2, q_inv_ang);
}

/* ---- points ---- */

static int points_new(points *p, int n)
{
    size_t size = (size_t)n + 1;
    p->xyz = malloc(size * sizeof *p->xyz);
    p->kind = malloc(size * sizeof *p->kind);
    p->weight = calloc(size, sizeof *p->weight);
    return p->xyz != NULL && p->kind != NULL && p->weight != NULL ? 0 : -1;
}

static void points_free(points *p)
{
    free(p->xyz);
    free(p->kind);
    free(p->weight);
}

static int kind_of(points *p, const tsr_amino_atom *atom)
{
    int k = 0;
    while (k < p->n_kind &&
           (p->z[k] != atom->z || p->n_hydrogen[k] != atom->n_hydrogen))
        k++;
    if (k == p->n_kind) {
        p->z[k] = atom->z;
        p->n_hydrogen[k] = atom->n_hydrogen;
        p->n_kind++;
    }
    return k;
}

static int complete(const tsr_structure *structure, int r, tsr_residue_atoms *a)
{
    return tsr_residue_atoms_find(structure, &structure->residue[r], a) == 0 &&
           a->n_missing == 0;
}

static void place_atoms(const tsr_structure *structure, points *atom)
{
    for (int r = 0; r < structure->n_residue; r++) {
        tsr_residue_atoms a;
        if (!complete(structure, r, &a))
            continue;
        const tsr_amino_info *info = &tsr_amino_table[a.amino];
        for (int i = 0; i < info->n_atom; i++) {
            tsr_vec3_copy(atom->xyz[atom->n], a.xyz[i]);
            atom->kind[atom->n++] = kind_of(atom, &info->atom[i]);
        }
    }
}

static void place_bodies(const tsr_structure *structure, tsr_body_model model,
                         points *body)
{
    for (int r = 0; r < structure->n_residue; r++) {
        tsr_residue_atoms a;
        if (!complete(structure, r, &a))
            continue;
        int type[2];
        int n = tsr_body_types(model, a.amino, type);
        for (int b = 0; b < n; b++) {
            tsr_body_centre(model, &a, b, body->xyz[body->n]);
            body->kind[body->n++] = type[b];
        }
    }
}

/* Weights of the atoms; *radius is their mean radius. */
static tsr_status expose(points *atom, double *radius, tsr_err *err)
{
    double *r = malloc(((size_t)atom->n + 1) * sizeof *r), sum = 0.0;
    if (r == NULL)
        return tsr_fail(err, TSR_E_NOMEM, "no memory for a surface");
    for (int i = 0; i < atom->n; i++) {
        int k = atom->kind[i];
        r[i] = tsr_atom_radius(atom->z[k], atom->n_hydrogen[k]);
        sum += r[i];
    }
    *radius = sum / atom->n;
    tsr_status s = tsr_surface_fraction(atom->n, (const double(*)[3])atom->xyz,
                                        r, probe, N_POINT, atom->weight, err);
    free(r);
    return s;
}

tsr_status tsr_component_shares(const tsr_structure *structure, double *share,
                                tsr_err *err)
{
    points atom = {0};
    double radius;
    tsr_status s = points_new(&atom, structure->n_atom) != 0
                       ? tsr_fail(err, TSR_E_NOMEM, "no memory for atoms")
                       : TSR_OK;
    if (s == TSR_OK) {
        place_atoms(structure, &atom);
        s = expose(&atom, &radius, err);
    }
    if (s == TSR_OK)
        memcpy(share, atom.weight, (size_t)atom.n * sizeof *share);
    points_free(&atom);
    return s;
}

/* ---- pair sums ---- */

static double box_diagonal(const points *p)
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

static void into(double *bins, size_t pair, size_t n_bin, size_t b,
                 double share, double weight)
{
    double *to = bins + pair * n_bin + b;
    to[0] += weight * (1.0 - share);
    to[1] += weight * share;
}

static void fill_bins(const points *p, size_t n_bin, const sums *bins)
{
    for (int i = 0; i < p->n; i++)
        for (int j = 0; j < i; j++) {
            double at = tsr_vec3_distance(p->xyz[i], p->xyz[j]) / bin_width;
            double wi = p->weight[i], wj = p->weight[j];
            int ki = p->kind[i], kj = p->kind[j];
            size_t b = (size_t)at, pair = triangle(ki, kj);
            double share = at - (double)b;
            into(bins->plain, pair, n_bin, b, share, 1.0);
            if (wj != 0.0)
                into(bins->one, (size_t)(ki * p->n_kind + kj), n_bin, b, share,
                     wj);
            if (wi != 0.0)
                into(bins->one, (size_t)(kj * p->n_kind + ki), n_bin, b, share,
                     wi);
            if (wi != 0.0 && wj != 0.0)
                into(bins->both, pair, n_bin, b, share, wi * wj);
        }
}

/* Adds to `out`, zeroed by the caller. */
static tsr_status pair_sums(const points *p, int n_q, double dq,
                            const sums *out, tsr_err *err)
{
    size_t n_bin = (size_t)(box_diagonal(p) / bin_width) + 3;
    size_t n_pair = triangle(p->n_kind - 1, p->n_kind - 1) + 1;
    size_t n_both = (size_t)(p->n_kind * p->n_kind);
    double *bin = calloc(n_bin * (2 * n_pair + n_both), sizeof *bin);
    double *sinc = malloc(n_bin * (size_t)n_q * sizeof *sinc);
    if (bin == NULL || sinc == NULL) {
        free(bin);
        free(sinc);
        return tsr_fail(err, TSR_E_NOMEM, "no memory for %zu distance bins",
                        n_bin * (2 * n_pair + n_both));
    }
    const sums bins = {bin, bin + n_bin * n_pair,
                       bin + n_bin * (n_pair + n_both)};
    fill_bins(p, n_bin, &bins);
    for (size_t b = 0; b < n_bin; b++)
        for (int k = 0; k < n_q; k++) {
            double x = k * dq * (double)b * bin_width;
            sinc[b * (size_t)n_q + (size_t)k] = x > 0.0 ? sin(x) / x : 1.0;
        }
    sum_bins(bins.plain, n_bin, n_pair, n_q, sinc, out->plain);
    sum_bins(bins.one, n_bin, n_both, n_q, sinc, out->one);
    sum_bins(bins.both, n_bin, n_pair, n_q, sinc, out->both);
    free(bin);
    free(sinc);
    return TSR_OK;
}

/* ---- profiles ---- */

/* Partial profiles of kinds: amplitude [TSR_N_COMP][n_kind][n_q]; sum: plain,
 * one, both of `sums`; many [3][n_kind]: sums of 1, weight, weight squared. */
static void combine(int n_kind, int n_q, const double *amplitude,
                    const double *const sum[3], const double *const many[3],
                    double *partial)
{
    size_t n = (size_t)n_q, comp = (size_t)n_kind * n;
    const double *v = amplitude, *g = v + comp, *h = g + comp;
    double *vv = partial, *vg = vv + n, *vh = vg + n, *gg = vh + n,
           *gh = gg + n, *hh = gh + n;
    memset(partial, 0, TSR_N_COMP_PAIR * n * sizeof *partial);
    for (int t = 0; t < n_kind; t++) {
        size_t ot = (size_t)t * n;
        for (size_t k = 0; k < n; k++) {
            double vt = v[ot + k], gt = g[ot + k], ht = h[ot + k];
            vv[k] += many[0][t] * vt * vt;
            vg[k] += many[0][t] * vt * gt;
            gg[k] += many[0][t] * gt * gt;
            vh[k] += many[1][t] * vt * ht;
            gh[k] += many[1][t] * gt * ht;
            hh[k] += many[2][t] * ht * ht;
        }
        for (int s = 0; s < n_kind; s++) {
            size_t os = (size_t)s * n;
            const double *one = sum[1] + (size_t)(t * n_kind + s) * n;
            for (size_t k = 0; k < n; k++) {
                vh[k] += v[ot + k] * h[os + k] * one[k];
                gh[k] += g[ot + k] * h[os + k] * one[k];
            }
            if (s > t)
                continue;
            const double *plain = sum[0] + triangle(t, s) * n;
            const double *both = sum[2] + triangle(t, s) * n;
            for (size_t k = 0; k < n; k++) {
                vv[k] += 2.0 * v[ot + k] * v[os + k] * plain[k];
                vg[k] +=
                    (v[ot + k] * g[os + k] + g[ot + k] * v[os + k]) * plain[k];
                gg[k] += 2.0 * g[ot + k] * g[os + k] * plain[k];
                hh[k] += 2.0 * h[ot + k] * h[os + k] * both[k];
            }
        }
    }
}

static void add_up(const points *p, double *count, double *wet, double *wet2)
{
    for (int i = 0; i < p->n; i++) {
        count[p->kind[i]] += 1.0;
        wet[p->kind[i]] += p->weight[i];
        wet2[p->kind[i]] += p->weight[i] * p->weight[i];
    }
}

static tsr_status fill_atoms(const tsr_component_grid *grid, const points *p,
                             double *partial, tsr_err *err)
{
    size_t n = (size_t)p->n_kind, n_q = (size_t)grid->n_q;
    size_t n_pair = n * (n + 1) / 2, length = (2 * n_pair + n * n) * n_q;
    double count[3][MAX_KIND] = {{0}};
    double *sum = calloc(length + TSR_N_COMP * n * n_q, sizeof *sum);
    if (sum == NULL)
        return tsr_fail(err, TSR_E_NOMEM, "no memory for pair sums");
    const sums out = {sum, sum + n_pair * n_q, sum + (n_pair + n * n) * n_q};
    double *amplitude = sum + length;
    for (size_t t = 0; t < n; t++)
        for (size_t k = 0; k < n_q; k++) {
            double q = (double)k * grid->dq_inv_ang;
            double g =
                tsr_atom_displaced_amplitude(p->z[t], p->n_hydrogen[t], q);
            double *to = amplitude + t * n_q + k;
            to[0] =
                g + tsr_atom_contrast_amplitude(p->z[t], p->n_hydrogen[t], q);
            to[n * n_q] = g;
            to[2 * n * n_q] = tsr_component_water(q);
        }
    add_up(p, count[0], count[1], count[2]);
    tsr_status s = pair_sums(p, grid->n_q, grid->dq_inv_ang, &out, err);
    if (s == TSR_OK)
        combine(p->n_kind, grid->n_q, amplitude,
                (const double *const[]){out.plain, out.one, out.both},
                (const double *const[]){count[0], count[1], count[2]}, partial);
    free(sum);
    return s;
}

tsr_status tsr_component_target_fill(const tsr_component_grid *grid,
                                     const tsr_structure *structure,
                                     double *target, tsr_err *err)
{
    const tsr_component_layout l = tsr_component_layout_of(grid);
    points atom = {0}, body = {.n_kind = grid->n_type};
    tsr_status s = TSR_OK;
    memset(target, 0, l.length * sizeof *target);
    if (points_new(&atom, structure->n_atom) != 0 ||
        points_new(&body, 2 * structure->n_residue) != 0)
        s = tsr_fail(err, TSR_E_NOMEM, "no memory for the bodies of '%s'",
                     structure->path);
    if (s == TSR_OK) {
        place_atoms(structure, &atom);
        place_bodies(structure, grid->model, &body);
        if (atom.n == 0)
            s = tsr_fail(err, TSR_E_DATA,
                         "'%s': no residue has all its atoms; leave it out",
                         structure->path);
    }
    if (s == TSR_OK)
        s = expose(&atom, target + l.radius, err);
    if (s == TSR_OK)
        s = fill_atoms(grid, &atom, target + l.atoms, err);
    if (s == TSR_OK) {
        const sums out = {target + l.pairs, target + l.wet, target + l.wet2};
        tsr_exposure_estimate(grid->exposure, body.n, body.kind,
                              (const double(*)[3])body.xyz, body.weight);
        add_up(&body, target + l.count, target + l.exposed,
               target + l.exposed2);
        s = pair_sums(&body, grid->n_q, grid->dq_inv_ang, &out, err);
    }
    points_free(&atom);
    points_free(&body);
    return s;
}

void tsr_component_target_partials(const tsr_component_grid *grid,
                                   const double *target,
                                   const double *amplitude,
                                   const double *excess, double *partial)
{
    const tsr_component_layout l = tsr_component_layout_of(grid);
    size_t n_q = (size_t)grid->n_q, table = (size_t)grid->n_type * n_q;
    const double *const many[3] = {target + l.count, target + l.exposed,
                                   target + l.exposed2};
    combine(grid->n_type, grid->n_q, amplitude,
            (const double *const[]){target + l.pairs, target + l.wet,
                                    target + l.wet2},
            many, partial);
    for (int a = 0; a < TSR_N_COMP; a++)
        for (int b = a; b < TSR_N_COMP; b++) {
            int wet = (a == TSR_HYDRATION) + (b == TSR_HYDRATION);
            size_t pair = (size_t)tsr_component_pair(a, b);
            for (int t = 0; t < grid->n_type; t++)
                for (size_t k = 0; k < n_q; k++)
                    partial[pair * n_q + k] +=
                        many[wet][t] *
                        excess[pair * table + (size_t)t * n_q + k];
        }
}
