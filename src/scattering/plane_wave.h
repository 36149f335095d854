/* Debye profiles as means over directions, at a cost linear in the particles
 * and in the number of directions, which grows with (q D)^2:
 *
 *     I_ab(q) = mean over n of Re A_a(q n) A_b(q n)*,
 *     A_a(q n) = sum_i F_i^a(q) exp(i q n r_i)
 *
 * For few q D: small molecules, and the small q of large ones. */
#ifndef TSR_SCATTERING_PLANE_WAVE_H
#define TSR_SCATTERING_PLANE_WAVE_H

#include "scattering/debye.h"

/* Directions of all q of a grid, from which the cost follows. d_ang: no two
 * particles are farther apart. */
double tsr_plane_wave_terms(int n_q, double dq_inv_ang, double d_ang);

/* profile [n_pair][n_q] out, as tsr_debye_reference's, which it meets to 1e-5
 * of sqrt(I_aa I_bb). The number of threads does not change the result.
 * Errors: TSR_E_NOMEM, those of tsr_debye_check and of progress. */
tsr_status tsr_plane_wave_sum(const tsr_debye_spec *spec, double d_ang,
                              int n_thread, const tsr_debye_progress *progress,
                              double *profile, tsr_err *err);

#endif
