#include "model/form_factor_target.h"

#include "core/vec3.h"
#include "model/form_factor.h"
#include "model/pair_sums.h"
#include "model/residue_atoms.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { MAX_KIND = 24 };

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
           tsr_pair_index(t, s) * (size_t)grid->n_q;
}

/* All-atom profile from the pair sums of the kinds. */
static void combine_atoms(const tsr_target_grid *grid, const tsr_pair_points *p,
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
                out[k] +=
                    2.0 * a[i] * a[j] *
                    sum[tsr_pair_index(i, j) * (size_t)grid->n_q + (size_t)k];
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

static tsr_status fill_atoms(const tsr_target_grid *grid,
                             const tsr_pair_points *p, int (*kind)[2],
                             double *target, tsr_err *err)
{
    size_t n_pair = tsr_pair_index(p->n_kind - 1, p->n_kind - 1) + 1;
    double *sum = calloc(n_pair * (size_t)grid->n_q, sizeof *sum);
    if (sum == NULL)
        return tsr_fail(err, TSR_E_NOMEM, "no memory for pair sums");
    tsr_status s = tsr_pair_sums_add(p, grid->n_q, grid->dq_inv_ang,
                                     &(tsr_pair_sums){.plain = sum}, err);
    if (s == TSR_OK)
        combine_atoms(grid, p, kind, sum, tsr_target_atoms(grid, target));
    free(sum);
    return s;
}

static void place(const tsr_structure *structure, const tsr_target_grid *grid,
                  tsr_pair_points *atom, int (*kind)[2], tsr_pair_points *body,
                  double *count)
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
    int kind[MAX_KIND][2] = {{0}};
    tsr_pair_points atom = {0}, body = {.n_kind = grid->n_type};
    tsr_status s = TSR_OK;
    memset(target, 0, tsr_target_length(grid) * sizeof *target);
    if (tsr_pair_points_new(&atom, structure->n_atom) != 0 ||
        tsr_pair_points_new(&body, 2 * structure->n_residue) != 0)
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
        s = tsr_pair_sums_add(
            &body, grid->n_q, grid->dq_inv_ang,
            &(tsr_pair_sums){.plain = tsr_target_pairs(grid, target, 0, 0)},
            err);
    for (int k = 0; k < grid->n_q && s == TSR_OK; k++)
        if (!(tsr_target_atoms(grid, target)[k] > 0.0))
            s = tsr_fail(err, TSR_E_DATA,
                         "'%s': no intensity at q = %g 1/Angstrom; leave it "
                         "out",
                         structure->path, k * grid->dq_inv_ang);
    tsr_pair_points_clear(&atom);
    tsr_pair_points_clear(&body);
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
