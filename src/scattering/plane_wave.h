/* Debye profiles as means over directions, at a cost linear in the particles
 * and in the number of directions, which grows with (q D)^2:
 *
 *     I_ab(q) = mean over n of Re A_a(q n) A_b(q n)*,
 *     A_a(q n) = sum_i F_i^a(q) exp(i q n r_i)
 *
 * For few q D: small molecules, and the small q of large ones. */
#ifndef TSR_SCATTERING_PLANE_WAVE_H
#define TSR_SCATTERING_PLANE_WAVE_H

#include "core/pool.h"
#include "scattering/debye.h"

/* Directions of all q of a grid, from which the cost follows. d_ang: no two
 * particles are farther apart. */
double tsr_plane_wave_terms(int n_q, double dq_inv_ang, double d_ang);

/* How many directions one q needs. */
int tsr_plane_wave_directions_of(double q_inv_ang, double d_ang);

/* The directions that q needs: out [*n][4], n and its weight, those of the
 * upper half of the sphere, for the lower repeats it; weights add up to 1.
 * They are of the pool. Errors: TSR_E_NOMEM. */
tsr_status tsr_plane_wave_directions(double q_inv_ang, double d_ang,
                                     tsr_pool *pool, int *n, double (**out)[4],
                                     tsr_err *err);

/* profile [n_pair][n_q] out, as tsr_debye_reference's, which it meets to 1e-5
 * of sqrt(I_aa I_bb). The number of threads does not change the result.
 * Errors: TSR_E_NOMEM, those of tsr_debye_check and of progress. */
tsr_status tsr_plane_wave_sum(const tsr_debye_spec *spec, double d_ang,
                              int n_thread, const tsr_debye_progress *progress,
                              double *profile, tsr_err *err);

/* ---- tables ---- */

/* The amplitude of a rigid group in every direction, for a few reads.
 *
 *     A_a(q n) = sum_i F_i^a(q) exp(i q n (r_i - c))
 *
 * is, at one q, a smooth function on the sphere: its spherical harmonics end a
 * little beyond the degree q R, R the largest distance from c. So samples on a
 * grid of angles hold all of it, and a group that has turned by R and is at t
 * has the amplitude exp(i q n t) A(q R' n), whatever its size: a read of the
 * table at another angle and a phase.
 *
 * The sphere is a torus here: theta runs all the way around, and
 * A(2 pi - theta, phi) = A(theta, phi + pi), which has a Fourier series in both
 * angles. The table is sampled twice as densely as that needs, and divided by
 * the transform of a kernel of WIDTH points, exp(beta (sqrt(1 - (2x/w)^2) -
 * 1)): the sum of the WIDTH x WIDTH nearest values times kernels is then A, to
 * 3e-6 of its largest value (Barnett, Magland & af Klinteberg 2019, SIAM J.
 * Sci. Comput. 41, C479; the sphere as a torus: Merilees 1973). */

enum {
    TSR_AMPLITUDE_WIDTH = 6,
    TSR_AMPLITUDE_TERMS = 12, /* of each piece of the kernel */
    TSR_AMPLITUDE_BAND = 8    /* q of a table */
};

typedef struct {
    int n_comp, n_circle; /* points of a whole circle */
    int rows, columns;    /* of theta from 0 to pi, of phi once around, with
                             what a read at the edge needs beyond */
    float *value;         /* [rows][columns][BAND][n_comp][2] */
} tsr_amplitude_table;

/* Of q_k, k = low to low + BAND - 1, those of the spec's; beyond them zeros.
 * spec: places are relative to c. n_thread of them make it. The values are of
 * the pool. Errors: TSR_E_NOMEM, those of tsr_debye_check. */
tsr_status tsr_amplitude_table_make(const tsr_debye_spec *spec, int low,
                                    int n_thread, tsr_pool *pool,
                                    tsr_amplitude_table *out, tsr_err *err);
/* What a table of a group of radius `reach_ang` up to q will have, numbers. */
double tsr_amplitude_table_size(double q_inv_ang, double reach_ang, int n_comp);

/* A in a direction is the sum over the WIDTH x WIDTH values from row and column
 * floor(angle n_circle / 2 pi) on, times the kernels of both angles (read_table
 * of tests/property/test_plane_wave.c, find_places of kernels/plane_wave.cl).
 *
 * The kernel at the WIDTH points of which `place`, 0 to 1, lies between number
 * WIDTH / 2 - 1 and the next: with x = 2 place - 1 piece j is
 * sum_i c[i][j] T_i(x) in Chebyshev's polynomials. c out. */
void tsr_amplitude_kernel(float c[TSR_AMPLITUDE_TERMS][TSR_AMPLITUDE_WIDTH]);

#endif
