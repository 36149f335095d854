/* Debye profiles by fast Fourier transforms. The cost is linear in the number
 * of particles and in the volume of their box, for all q at once.
 *
 *     I_ab(q) = sum_r g_ab(r) sinc(q r) / W(q),   g_ab = IFFT[W A_a A_b* ]
 *
 * A_a is the amplitude on a grid of wave vectors, from particles spread onto a
 * grid in space of spacing h, and W is a window function. The pair function
 * g_ab has values at grid vectors r. Their squared lengths are integers times
 * h^2, so only thousands of distinct distances occur. The sum over distances
 * replaces an average over directions of k, and is exact.
 *
 * The form factors must be as smooth in q as those of atoms. Otherwise g_ab
 * extends beyond the box; with the refined tables of bodies the relative error
 * of I is 1e-3. Spreading: Barnett et al. 2019. */
#ifndef TSR_SCATTERING_GRID_SUM_H
#define TSR_SCATTERING_GRID_SUM_H

#include "scattering/debye.h"

/* Sizes that determine time and memory. The number of modes (grid_sum.c) is
 * that of typical protein atoms; the true number is known only after the form
 * factors have been decomposed. */
typedef struct {
    int n_mode, n_pair;
    double n_spread; /* sum over particles of their modes */
    double n_point;  /* points of the grid */
    double bytes;
} tsr_grid_size;

void tsr_grid_size_of(const tsr_debye_spec *spec, tsr_grid_size *out);

/* Largest q of this method, 1/Angstrom. Beyond it, amplitudes fall below the
 * accuracy of the modes. */
extern const double tsr_grid_q_max;

/* profile [n_pair][n_q] out, as tsr_debye_reference, to 1e-5 of sqrt(I_aa
 * I_bb). The result does not depend on the number of threads. Errors:
 * TSR_E_RANGE (q too large), TSR_E_NOMEM, those of tsr_debye_check and of
 * progress. */
tsr_status tsr_grid_sum(const tsr_debye_spec *spec, int n_thread,
                        const tsr_debye_progress *progress, double *profile,
                        tsr_err *err);

#endif
