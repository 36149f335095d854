/* Debye profiles as means over directions. The cost is linear in the number of
 * particles and in the number of directions, which grows with (q D)^2:
 *
 *     I_ab(q) = mean over n of Re A_a(q n) A_b(q n)*,
 *     A_a(q n) = sum_i F_i^a(q) exp(i q n r_i)
 *
 * Suited to small q D: small molecules, and the small q of large ones. */
#ifndef TSR_SCATTERING_PLANE_WAVE_H
#define TSR_SCATTERING_PLANE_WAVE_H

#include "core/pool.h"
#include "scattering/debye.h"

/* Number of directions summed over the q of a grid, to which the cost is
 * proportional. Each band of 16 q has the directions of its last q. d_ang:
 * largest distance between two particles. */
double tsr_plane_wave_terms(int n_q, double dq_inv_ang, double d_ang);

/* Number of directions at one q. */
int tsr_plane_wave_directions_of(double q_inv_ang, double d_ang);

/* The directions at one q: out [*n][4], a unit vector and its weight. They
 * cover the upper half of the sphere, because the lower half gives the same
 * values. The weights sum to 1. In memory of the pool. Errors: TSR_E_NOMEM. */
tsr_status tsr_plane_wave_directions(double q_inv_ang, double d_ang,
                                     tsr_pool *pool, int *n, double (**out)[4],
                                     tsr_err *err);

/* profile [n_pair][n_q] out, as tsr_debye_reference, to 1e-5 of sqrt(I_aa
 * I_bb). The result does not depend on the number of threads. Errors:
 * TSR_E_NOMEM, those of tsr_debye_check and of progress. */
tsr_status tsr_plane_wave_sum(const tsr_debye_spec *spec, double d_ang,
                              int n_thread, const tsr_debye_progress *progress,
                              double *profile, tsr_err *err);

/* ---- tables of amplitudes ---- */

/* The amplitude of a rigid group of particles in any direction, from a few
 * table entries.
 *
 *     A_a(q n) = sum_i F_i^a(q) exp(i q n (r_i - c))
 *
 * For fixed q this is a smooth function on the sphere: its spherical harmonics
 * vanish beyond a degree slightly above q R, where R is the largest distance of
 * a particle from c, the centre of the group. Samples on a grid of angles
 * therefore determine the function. A group that was rotated by a matrix M and
 * moved to t has the amplitude exp(i q n t) A(q M^T n): one interpolation in
 * the table and one phase, whatever the number of particles.
 *
 * The sphere is treated as a torus: theta runs around a full circle with A(2 pi
 * - theta, phi) = A(theta, phi + pi), so A has a Fourier series in both angles.
 * The table has twice the number of samples that the series needs, and is
 * divided by the transform of an interpolation kernel of WIDTH points, exp(beta
 * (sqrt(1 - (2x/w)^2) - 1)). A is then the sum of the WIDTH x WIDTH nearest
 * entries times the kernels, to 3e-6 of its largest value (Barnett, Magland &
 * af Klinteberg 2019, SIAM J. Sci. Comput. 41, C479; the torus: Merilees
 * 1973). */

enum {
    TSR_AMPLITUDE_WIDTH = 6,
    TSR_AMPLITUDE_TERMS = 12, /* polynomial terms of each piece of the kernel */
    TSR_AMPLITUDE_BAND = 8    /* number of q in a table */
};

typedef struct {
    int n_comp, n_circle; /* n_circle: samples around a full circle */
    int rows, columns;    /* rows: theta from 0 to pi; columns: phi around the
                             circle; both with additional entries for
                             interpolation at the edges */
    float *value;         /* [rows][columns][BAND][n_comp][2] */
} tsr_amplitude_table;

/* Makes a table for q_k of the spec, k = low to low + BAND - 1; entries beyond
 * the spec's n_q are 0. The positions of the spec are relative to c. n_thread
 * threads do the work. The values are in memory of the pool. Errors:
 * TSR_E_NOMEM, those of tsr_debye_check. */
tsr_status tsr_amplitude_table_make(const tsr_debye_spec *spec, int low,
                                    int n_thread, tsr_pool *pool,
                                    tsr_amplitude_table *out, tsr_err *err);
/* Number of floats in a table whose last q is q_inv_ang, for a group with
 * largest distance `reach_ang` from c. */
double tsr_amplitude_table_size(double q_inv_ang, double reach_ang, int n_comp);

/* Coefficients c of the interpolation kernel. A in a direction is the sum over
 * the WIDTH x WIDTH entries from row and column floor(angle n_circle / 2 pi)
 * on, times the kernels of both angles (read_table of
 * tests/property/test_plane_wave.c, kernels/plane_wave.cl).
 *
 * Let `fraction`, 0 to 1, be the position between entry number WIDTH / 2 - 1
 * and the next. With x = 2 fraction - 1, the kernel at entry j is sum_i c[i][j]
 * T_i(x), with Chebyshev polynomials T_i. */
void tsr_amplitude_kernel(float c[TSR_AMPLITUDE_TERMS][TSR_AMPLITUDE_WIDTH]);

#endif
