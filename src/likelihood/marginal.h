/* log P(D | X) of one data set, all its nuisances integrated out: scale and
 * background, and the parameters of its noise under their priors.
 *
 * Scale and background in closed form; where the noise model has none, by
 * Laplace's approximation about the best ones, good to O(1 / n) for n points,
 * most of which is the same for every curve. The parameters (two at most) by
 * the trapezoid rule on a grid of one standard deviation about their mode. */
#ifndef TSR_LIKELIHOOD_MARGINAL_H
#define TSR_LIKELIHOOD_MARGINAL_H

#include "likelihood/term_saxs.h"

/* What is left after the integral, drawn from its distribution. */
typedef struct {
    double scale, background;
    double theta[TSR_NOISE_PARAMETERS];
} tsr_nuisance_draw;

/* profile: as the term's matrix takes it. fit: for scratch, its model and
 * weight of [saxs->n]. rng NULL: nothing is drawn. fit->chi2 is that of the
 * profile. -infinity where no positive scale fits. */
double tsr_marginal_log(const tsr_saxs_term *term, const double *profile,
                        tsr_fit *fit, gsl_rng *rng, tsr_nuisance_draw *drawn);

#endif
