/* Components that only the inferred of c1 and c2 need apart.
 *
 * With C = (1, -G(c1), c2), what does not change is one component: of the three
 * of a coarse spec K = 1 + (c1 is inferred) + (c2 is inferred) are left, in the
 * order rest, displaced solvent, hydration. An engine's work grows with the
 * pairs, K (K + 1) / 2. */
#ifndef TSR_LIKELIHOOD_COARSE_FOLD_H
#define TSR_LIKELIHOOD_COARSE_FOLD_H

#include "scattering/coarse_profile.h"
#include "scattering/contrast_prior.h"

/* Folds what `prior` [TSR_N_CONTRAST] fixes, at its values: form_factor becomes
 * [K][n_type][n_q], self [K (K + 1) / 2][n_q], spec.n_comp K. */
void tsr_coarse_fold(tsr_coarse_spec *spec, const tsr_parameter *prior);

/* C of the K components at one q: c [3] out; power: tsr_component_power there.
 * value [TSR_N_CONTRAST]: c1, c2. Returns K. */
int tsr_coarse_coefficients(const tsr_parameter *prior, const double *value,
                            double power, double *c);

/* sum_ab C_a C_b partial_ab over a, b < n_comp; partial at steps of `stride`.
 */
double tsr_coarse_sum(int n_comp, const double *c, const double *partial,
                      size_t stride);

#endif
