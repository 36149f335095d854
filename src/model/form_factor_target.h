/* What the refinement of form factors needs of one structure: its profile over
 * all atoms, and the pair sums of which any table makes a profile (DESIGN 3):
 *
 *     I(q) = 2 sum_{t <= s} F_t F_s S_ts + sum_t n_t P_t,
 *     S_ts(q) = sum over pairs of bodies of types t and s of sinc(q r) */
#ifndef TSR_MODEL_FORM_FACTOR_TARGET_H
#define TSR_MODEL_FORM_FACTOR_TARGET_H

#include "io/structure.h"
#include "model/residue.h"

#include <stddef.h>

typedef struct {
    tsr_body_model model;
    int n_type, n_q;
    double dq_inv_ang;
} tsr_target_grid;

/* A target is one array of doubles: atoms [n_q], electrons squared; count
 * [n_type]; pairs [n_type (n_type + 1) / 2][n_q]. */
size_t tsr_target_length(const tsr_target_grid *grid);
double *tsr_target_atoms(const tsr_target_grid *grid, double *target);
double *tsr_target_count(const tsr_target_grid *grid, double *target);
double *tsr_target_pairs(const tsr_target_grid *grid, double *target, int t,
                         int s);

/* Fills a target from the structure's complete residues. Distances go through
 * bins of 0.05 Angstrom, shared between two neighbours, which leaves errors of
 * 1e-4 of I(q) at q = 1/Angstrom. Errors: TSR_E_NOMEM, TSR_E_DATA (no complete
 * residue, or no intensity at some q). */
tsr_status tsr_target_fill(const tsr_target_grid *grid,
                           const tsr_structure *structure, double *target,
                           tsr_err *err);

/* The profile that a table makes of a target.
 * amplitude, self  [n_type][n_q]  in   F and P on the grid
 * profile          [n_q]          out  electrons squared */
void tsr_target_profile(const tsr_target_grid *grid, double *target,
                        const double *amplitude, const double *self,
                        double *profile);

#endif
