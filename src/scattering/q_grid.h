/* The engine's uniform q grid, and the linear operator from it to the q values
 * of a data set (docs/design.md, section 2).
 *
 * A curve from a particle of diameter D is band-limited: q I(q) holds no
 * wavelength shorter than 2 pi / D, so samples every pi/D determine it. The
 * grid takes a fifth more and four or more beyond q_max; the operator is the
 * regularised least-squares fit of sinc(q r) for all r in [0, D]. */
#ifndef TSR_SCATTERING_Q_GRID_H
#define TSR_SCATTERING_Q_GRID_H

#include "core/pool.h"
#include "scattering/resolution.h"

typedef struct {
    int n_q;
    double dq_inv_ang;
    double band_ang; /* D, bodies' own size included */
} tsr_q_grid;

/* Grid for bodies never more than d_bound_ang apart, data up to q_max. */
tsr_q_grid tsr_q_grid_make(double d_bound_ang, double q_max_inv_ang);

/* matrix [n][n_q] out, caller frees: I(q[k]) = sum_j matrix[k][j] I(j dq).
 * Error: some 1e-5 of I(q); the caller checks it on its own molecule.
 * Errors: TSR_E_NOMEM, TSR_E_INTERNAL, TSR_E_RANGE (q beyond the grid). */
tsr_status tsr_q_operator_new(const tsr_q_grid *grid, int n,
                              const double *q_inv_ang, double **matrix,
                              tsr_err *err);

/* The same with the points smeared by an instrument; the grid must reach
 * tsr_resolution_q_max. An ideal one gives the matrix above. */
tsr_status tsr_q_operator_smeared(const tsr_q_grid *grid,
                                  const tsr_resolution *resolution, int n,
                                  const double *q_inv_ang, double **matrix,
                                  tsr_err *err);

/* to [n] = matrix from [n_q]. */
void tsr_q_operator_apply(const double *matrix, int n, int n_q,
                          const double *from, double *to);

/* The instrument's resolution: each measured point is a weighted mean of the
 * ideal curve at a few q (scattering/resolution.h says of which shape), with
 * weights that add up to 1. A sparse matrix: I_k = sum of weight[j] I(q[j])
 * over first[k] <= j < first[k + 1]. */
typedef struct {
    int n;
    int *first;     /* [n + 1] */
    double *q;      /* [first[n]] 1/Angstrom */
    double *weight; /* [first[n]] */
} tsr_smearing;

/* The integrals over the shapes by Gauss and Legendre's rule, with as many
 * nodes as curves of a molecule of that largest distance need: 1e-6 of I. Its
 * memory is of the pool. Errors: TSR_E_NOMEM. */
tsr_status tsr_smearing_make(const tsr_resolution *resolution, int n,
                             const double *q_inv_ang, double d_max_ang,
                             tsr_pool *pool, tsr_smearing *out, tsr_err *err);

#endif
