#include "model/form_factor_target.h"

#include "core/vec3.h"
#include "model/form_factor.h"
#include "model/residue_atoms.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { MAX_KIND = 24 };
static const double bin_width = 0.05; /* Angstrom */

/* Points of a few kinds: atoms by element and hydrogens, or bodies by type. */
typedef struct {
    int n, n_kind;
    double (*xyz)[3]; /* [n] */
    int *kind;        /* [n] */
} points;

static size_t pair_index(int t, int s)
{
    return (size_t)(t >= s ? t * (t + 1) / 2 + s : s * (s + 1) / 2 + t);
}

size_t tsr_target_length(const tsr_target_grid *grid)
{
    size_t n_type = (size_t)grid->n_type, n_q = (size_t)grid->n_q;
    return n_q + n_type + n_type * (n_type + 1) / 2 * n_q;
}

double *tsr_target_atoms(const tsr_target_grid *grid, double *target)
{
    (void)grid;
    return target;
}

double *tsr_target_count(const tsr_target_grid *grid, double *target)
{
    return target + grid->n_q;
}

double *tsr_target_pairs(const tsr_target_grid *grid, double *target, int t,
                         int s)
{
    return target + grid->n_q + grid->n_type +
           pair_index(t, s) * (size_t)grid->n_q;
}

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

/* sum [pairs of kinds][n_q], zeroed by the caller. */
static tsr_status pair_sums(const points *p, int n_q, double dq, double *sum,
                            tsr_err *err)
{
    size_t n_bin = (size_t)(box_diagonal(p) / bin_width) + 3;
    size_t n_pair = pair_index(p->n_kind - 1, p->n_kind - 1) + 1;
    double *bin = calloc(n_bin * n_pair, sizeof *bin);
    double *sinc = malloc(n_bin * (size_t)n_q * sizeof *sinc);
    if (bin == NULL || sinc == NULL) {
        free(bin);
        free(sinc);
        return tsr_fail(err, TSR_E_NOMEM, "no memory for %zu distance bins",
                        n_bin * n_pair);
    }
    for (int i = 0; i < p->n; i++)
        for (int j = 0; j < i; j++) {
            double at = tsr_vec3_distance(p->xyz[i], p->xyz[j]) / bin_width;
            size_t b = (size_t)at;
            double share = at - (double)b;
            double *to = bin + pair_index(p->kind[i], p->kind[j]) * n_bin + b;
            to[0] += 1.0 - share;
            to[1] += share;
        }
    for (size_t b = 0; b < n_bin; b++)
        for (int k = 0; k < n_q; k++) {
            double x = k * dq * (double)b * bin_width;
            sinc[b * (size_t)n_q + (size_t)k] = x > 0.0 ? sin(x) / x : 1.0;
        }
    sum_bins(bin, n_bin, n_pair, n_q, sinc, sum);
    free(bin);
    free(sinc);
    return TSR_OK;
}

/* All-atom profile from the pair sums of the kinds. */
static void combine_atoms(const tsr_target_grid *grid, const points *p,
                          int (*kind)[2], const double *sum, double *out)
{
    for (int k = 0; k < grid->n_q; k++) {
        double a[MAX_KIND];
        for (int i = 0; i < p->n_kind; i++)
            a[i] = tsr_atom_contrast_amplitude(kind[i][0], kind[i][1],
                                               k * grid->dq_inv_ang);
        out[k] = 0.0;
        for (int i = 0; i < p->n; i++)
            out[k] += a[p->kind[i]] * a[p->kind[i]];
        for (int i = 0; i < p->n_kind; i++)
            for (int j = 0; j <= i; j++)
                out[k] += 2.0 * a[i] * a[j] *
                          sum[pair_index(i, j) * (size_t)grid->n_q + (size_t)k];
    }
}

static int kind_of(int (*kind)[2], int *n_kind, const tsr_amino_atom *atom)
{
    for (int i = 0; i < *n_kind; i++)
        if (kind[i][0] == atom->z && kind[i][1] == atom->n_hydrogen)
            return i;
    kind[*n_kind][0] = atom->z;
    kind[*n_kind][1] = atom->n_hydrogen;
    return (*n_kind)++;
}

static tsr_status fill_atoms(const tsr_target_grid *grid, const points *p,
                             int (*kind)[2], double *target, tsr_err *err)
{
    size_t n_pair = pair_index(p->n_kind - 1, p->n_kind - 1) + 1;
    double *sum = calloc(n_pair * (size_t)grid->n_q, sizeof *sum);
    if (sum == NULL)
        return tsr_fail(err, TSR_E_NOMEM, "no memory for pair sums");
    tsr_status s = pair_sums(p, grid->n_q, grid->dq_inv_ang, sum, err);
    if (s == TSR_OK)
        combine_atoms(grid, p, kind, sum, tsr_target_atoms(grid, target));
    free(sum);
    return s;
}

static void place(const tsr_structure *structure, const tsr_target_grid *grid,
                  points *atom, int (*kind)[2], points *body, double *count)
{
    for (int r = 0; r < structure->n_residue; r++) {
        tsr_residue_atoms a;
        if (tsr_residue_atoms_find(structure, &structure->residue[r], &a) !=
                0 ||
            a.n_missing > 0)
            continue;
        const tsr_amino_info *info = &tsr_amino_table[a.amino];
        for (int i = 0; i < info->n_atom; i++) {
            tsr_vec3_copy(atom->xyz[atom->n], a.xyz[i]);
            atom->kind[atom->n++] =
                kind_of(kind, &atom->n_kind, &info->atom[i]);
        }
        int type[2];
        int n = tsr_body_types(grid->model, a.amino, type);
        for (int b = 0; b < n; b++) {
            tsr_body_centre(grid->model, &a, b, body->xyz[body->n]);
            body->kind[body->n++] = type[b];
            count[type[b]] += 1.0;
        }
    }
}

tsr_status tsr_target_fill(const tsr_target_grid *grid,
                           const tsr_structure *structure, double *target,
                           tsr_err *err)
{
    int kind[MAX_KIND][2];
    size_t n_atom = (size_t)structure->n_atom + 1;
    size_t n_body = 2 * (size_t)structure->n_residue + 1;
    points atom = {.xyz = malloc(n_atom * sizeof *atom.xyz),
                   .kind = malloc(n_atom * sizeof *atom.kind)};
    points body = {.n_kind = grid->n_type,
                   .xyz = malloc(n_body * sizeof *body.xyz),
                   .kind = malloc(n_body * sizeof *body.kind)};
    tsr_status s = TSR_OK;
    memset(target, 0, tsr_target_length(grid) * sizeof *target);
    if (atom.xyz == NULL || atom.kind == NULL || body.xyz == NULL ||
        body.kind == NULL)
        s = tsr_fail(err, TSR_E_NOMEM, "no memory for the bodies of '%s'",
                     structure->path);
    if (s == TSR_OK) {
        place(structure, grid, &atom, kind, &body,
              tsr_target_count(grid, target));
        if (atom.n == 0)
            s = tsr_fail(err, TSR_E_DATA,
                         "'%s': no residue has all its atoms; leave it out",
                         structure->path);
    }
    if (s == TSR_OK)
        s = fill_atoms(grid, &atom, kind, target, err);
    if (s == TSR_OK)
        s = pair_sums(&body, grid->n_q, grid->dq_inv_ang,
                      tsr_target_pairs(grid, target, 0, 0), err);
    for (int k = 0; k < grid->n_q && s == TSR_OK; k++)
        if (!(tsr_target_atoms(grid, target)[k] > 0.0))
            s = tsr_fail(err, TSR_E_DATA,
                         "'%s': no intensity at q = %g 1/Angstrom; leave it "
                         "out",
                         structure->path, k * grid->dq_inv_ang);
    free(atom.xyz);
    free(atom.kind);
    free(body.xyz);
    free(body.kind);
    return s;
}

void tsr_target_profile(const tsr_target_grid *grid, double *target,
                        const double *amplitude, const double *self,
                        double *profile)
{
    int n_q = grid->n_q;
    const double *count = tsr_target_count(grid, target);
    memset(profile, 0, (size_t)n_q * sizeof *profile);
    for (int t = 0; t < grid->n_type; t++) {
        const double *ft = amplitude + t * n_q;
        for (int k = 0; k < n_q; k++)
            profile[k] += count[t] * self[t * n_q + k];
        for (int s = 0; s <= t; s++) {
            const double *fs = amplitude + s * n_q;
            const double *pairs = tsr_target_pairs(grid, target, t, s);
            for (int k = 0; k < n_q; k++)
                profile[k] += 2.0 * ft[k] * fs[k] * pairs[k];
        }
    }
}
