/* The uniform q grid of the engine, and the linear operator from this grid to
 * the q values of a data set (docs/design.md, section 2).
 *
 * The curve of a particle of diameter D is band-limited: q I(q) has no
 * wavelength shorter than 2 pi / D, so samples at intervals of pi / D determine
 * it. The grid is a fifth finer and has at least four points beyond q_max. The
 * operator is a regularised least-squares fit: its weights of the grid points
 * reproduce sinc(q r) for all r in [0, D]. */
#ifndef TSR_SCATTERING_Q_GRID_H
#define TSR_SCATTERING_Q_GRID_H

#include "core/pool.h"
#include "scattering/resolution.h"

typedef struct {
    int n_q;
    double dq_inv_ang;
    double band_ang; /* D, including the size of the bodies; at least 80 */
} tsr_q_grid;

/* Grid for bodies at most d_bound_ang apart and data up to q_max. */
tsr_q_grid tsr_q_grid_make(double d_bound_ang, double q_max_inv_ang);

/* matrix [n][n_q] out, the caller frees it: I(q[k]) = sum_j matrix[k][j] I(j
 * dq). Error: about 1e-5 of I(q); the caller checks it with its own molecule.
 * Errors: TSR_E_NOMEM, TSR_E_INTERNAL, TSR_E_RANGE (q beyond the grid). */
tsr_status tsr_q_operator_new(const tsr_q_grid *grid, int n,
                              const double *q_inv_ang, double **matrix,
                              tsr_err *err);

/* The operator to points smeared by an instrument. The grid must extend to
 * tsr_resolution_q_max. With an ideal instrument the same as
 * tsr_q_operator_new. Errors: those of tsr_q_operator_new. */
tsr_status tsr_q_operator_smeared(const tsr_q_grid *grid,
                                  const tsr_resolution *resolution, int n,
                                  const double *q_inv_ang, double **matrix,
                                  tsr_err *err);

/* Matrix product: to [n] = matrix [n][n_q] times from [n_q]. */
void tsr_q_operator_apply(const double *matrix, int n, int n_q,
                          const double *from, double *to);

/* The instrument's resolution as a sparse matrix: each measured point is a
 * weighted mean of the ideal curve at a few q, I_k = sum of weight[j] I(q[j])
 * over first[k] <= j < first[k + 1]. The weights of a point sum to 1.
 * scattering/resolution.h defines the shapes. */
typedef struct {
    int n;
    int *first;     /* [n + 1] */
    double *q;      /* [first[n]] 1/Angstrom */
    double *weight; /* [first[n]] */
} tsr_smearing;

/* Computes the nodes and weights by Gauss-Legendre rules, with enough nodes for
 * an accuracy of 1e-6 of I for molecules of largest distance d_max_ang. In
 * memory of the pool. Errors: TSR_E_NOMEM. */
tsr_status tsr_smearing_make(const tsr_resolution *resolution, int n,
                             const double *q_inv_ang, double d_max_ang,
                             tsr_pool *pool, tsr_smearing *out, tsr_err *err);

#endif
