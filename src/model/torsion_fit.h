/* Mixtures of bivariate von Mises distributions fitted to torsions.
 *
 * The last part of every mixture is uniform and has a weight of at least
 * TSR_UNIFORM_WEIGHT: no torsions are forbidden, and the density is nowhere
 * less than that / 4 pi^2. k_phi and k_psi are at most TSR_MAX_KAPPA (2.6
 * degrees), |lambda| at most 0.98 sqrt(k_phi k_psi): no part collapses onto a
 * few residues, and each has one maximum. */
#ifndef TSR_MODEL_TORSION_FIT_H
#define TSR_MODEL_TORSION_FIT_H

#include "model/mixture_train.h"

#define TSR_UNIFORM_WEIGHT 1e-3
#define TSR_MAX_KAPPA 500.0

/* Observations: phi, psi (rad). Mixtures: tsr_torsion_mixture. */
extern const tsr_mixture_type tsr_mixture_torsion;

#endif
