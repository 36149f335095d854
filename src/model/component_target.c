#include "model/component_target.h"

#include "core/vec3.h"
#include "model/pair_sums.h"
#include "model/residue_atoms.h"
#include "model/surface.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { MAX_KIND = 24, N_POINT = 200 };
static const double probe = 1.8; /* Angstrom, as FoXS */

/* Atoms by element and hydrogens, their exposed share the weight. */
typedef struct {
    tsr_pair_points points;
    int z[MAX_KIND], n_hydrogen[MAX_KIND];
} atoms;

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
    return tsr_pair_index(t, s) * (size_t)grid->n_q;
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

static int kind_of(atoms *a, const tsr_amino_atom *atom)
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

static int complete(const tsr_structure *structure, int r, tsr_residue_atoms *a)
{
    return tsr_residue_atoms_find(structure, &structure->residue[r], a) == 0 &&
           a->n_missing == 0;
}

static void place_atoms(const tsr_structure *structure, atoms *all)
{
    tsr_pair_points *p = &all->points;
    for (int r = 0; r < structure->n_residue; r++) {
        tsr_residue_atoms a;
        if (!complete(structure, r, &a))
            continue;
        const tsr_amino_info *info = &tsr_amino_table[a.amino];
        for (int i = 0; i < info->n_atom; i++) {
            tsr_vec3_copy(p->xyz[p->n], a.xyz[i]);
            p->kind[p->n++] = kind_of(all, &info->atom[i]);
        }
    }
}

static void place_bodies(const tsr_structure *structure, tsr_body_model model,
                         tsr_pair_points *body)
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
static tsr_status expose(atoms *all, double *radius, tsr_err *err)
{
    tsr_pair_points *p = &all->points;
    double *r = malloc(((size_t)p->n + 1) * sizeof *r), sum = 0.0;
    if (r == NULL)
        return tsr_fail(err, TSR_E_NOMEM, "no memory for a surface");
    for (int i = 0; i < p->n; i++) {
        int k = p->kind[i];
        r[i] = tsr_atom_radius(all->z[k], all->n_hydrogen[k]);
        sum += r[i];
    }
    *radius = sum / p->n;
    tsr_status s = tsr_surface_fraction(p->n, (const double(*)[3])p->xyz, r,
                                        probe, N_POINT, p->weight, err);
    free(r);
    return s;
}

tsr_status tsr_component_shares(const tsr_structure *structure, double *share,
                                tsr_err *err)
{
    atoms all = {0};
    double radius;
    tsr_status s = tsr_pair_points_new(&all.points, structure->n_atom) != 0
                       ? tsr_fail(err, TSR_E_NOMEM, "no memory for atoms")
                       : TSR_OK;
    if (s == TSR_OK) {
        place_atoms(structure, &all);
        s = expose(&all, &radius, err);
    }
    if (s == TSR_OK)
        memcpy(share, all.points.weight, (size_t)all.points.n * sizeof *share);
    tsr_pair_points_clear(&all.points);
    return s;
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
            const double *plain = sum[0] + tsr_pair_index(t, s) * n;
            const double *both = sum[2] + tsr_pair_index(t, s) * n;
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

static void add_up(const tsr_pair_points *p, double *count, double *wet,
                   double *wet2)
{
    for (int i = 0; i < p->n; i++) {
        count[p->kind[i]] += 1.0;
        wet[p->kind[i]] += p->weight[i];
        wet2[p->kind[i]] += p->weight[i] * p->weight[i];
    }
}

static void fill_amplitudes(const tsr_component_grid *grid, const atoms *all,
                            double *amplitude)
{
    size_t n_q = (size_t)grid->n_q, comp = (size_t)all->points.n_kind * n_q;
    for (int t = 0; t < all->points.n_kind; t++)
        for (size_t k = 0; k < n_q; k++) {
            double q = (double)k * grid->dq_inv_ang;
            int z = all->z[t], h = all->n_hydrogen[t];
            double g = tsr_atom_displaced_amplitude(z, h, q);
            double *to = amplitude + (size_t)t * n_q + k;
            to[TSR_SOLUTE * comp] = g + tsr_atom_contrast_amplitude(z, h, q);
            to[TSR_DISPLACED * comp] = g;
            to[TSR_HYDRATION * comp] = tsr_component_water(q);
        }
}

static tsr_status fill_atoms(const tsr_component_grid *grid, const atoms *all,
                             double *partial, tsr_err *err)
{
    const tsr_pair_points *p = &all->points;
    size_t n = (size_t)p->n_kind, n_q = (size_t)grid->n_q;
    size_t n_pair = n * (n + 1) / 2, length = (2 * n_pair + n * n) * n_q;
    double many[3][MAX_KIND] = {{0}};
    double *sum = calloc(length + TSR_N_COMP * n * n_q, sizeof *sum);
    if (sum == NULL)
        return tsr_fail(err, TSR_E_NOMEM, "no memory for pair sums");
    const tsr_pair_sums out = {sum, sum + n_pair * n_q,
                               sum + (n_pair + n * n) * n_q};
    fill_amplitudes(grid, all, sum + length);
    add_up(p, many[0], many[1], many[2]);
    tsr_status s = tsr_pair_sums_add(p, grid->n_q, grid->dq_inv_ang, &out, err);
    if (s == TSR_OK)
        combine(p->n_kind, grid->n_q, sum + length,
                (const double *const[]){out.plain, out.one, out.both},
                (const double *const[]){many[0], many[1], many[2]}, partial);
    free(sum);
    return s;
}

/* The bodies, their exposures, and the sums over their pairs. */
static tsr_status fill_bodies(const tsr_component_grid *grid,
                              const tsr_structure *structure,
                              tsr_pair_points *body, double *target,
                              tsr_err *err)
{
    const tsr_component_layout l = tsr_component_layout_of(grid);
    const tsr_pair_sums out = {target + l.pairs, target + l.wet,
                               target + l.wet2};
    place_bodies(structure, grid->model, body);
    tsr_exposure_estimate(grid->exposure, body->n, body->kind,
                          (const double(*)[3])body->xyz, body->weight);
    add_up(body, target + l.count, target + l.exposed, target + l.exposed2);
    return tsr_pair_sums_add(body, grid->n_q, grid->dq_inv_ang, &out, err);
}

tsr_status tsr_component_target_fill(const tsr_component_grid *grid,
                                     const tsr_structure *structure,
                                     double *target, tsr_err *err)
{
    const tsr_component_layout l = tsr_component_layout_of(grid);
    atoms all = {0};
    tsr_pair_points body = {.n_kind = grid->n_type};
    tsr_status s = TSR_OK;
    memset(target, 0, l.length * sizeof *target);
    if (tsr_pair_points_new(&all.points, structure->n_atom) != 0 ||
        tsr_pair_points_new(&body, 2 * structure->n_residue) != 0)
        s = tsr_fail(err, TSR_E_NOMEM, "no memory for the bodies of '%s'",
                     structure->path);
    if (s == TSR_OK) {
        place_atoms(structure, &all);
        if (all.points.n == 0)
            s = tsr_fail(err, TSR_E_DATA,
                         "'%s': no residue has all its atoms; leave it out",
                         structure->path);
    }
    if (s == TSR_OK)
        s = expose(&all, target + l.radius, err);
    if (s == TSR_OK)
        s = fill_atoms(grid, &all, target + l.atoms, err);
    if (s == TSR_OK)
        s = fill_bodies(grid, structure, &body, target, err);
    tsr_pair_points_clear(&all.points);
    tsr_pair_points_clear(&body);
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
