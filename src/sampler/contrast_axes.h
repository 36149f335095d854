/* Directions in which c1 and c2 step.
 *
 * Data of one molecule often leave a narrow ridge of both, with correlations of
 * -0.99: steps along the axes creep. In warm-up the covariance is learnt, the
 * late draws counting for more, and steps go along its principal directions and
 * across; afterwards they stay. Lengths are in units of the priors' widths. */
#ifndef TSR_SAMPLER_CONTRAST_AXES_H
#define TSR_SAMPLER_CONTRAST_AXES_H

#include "core/archive.h"
#include "likelihood/contrast_prior.h"

/* Of zeroes: along c1 and c2 themselves. */
typedef struct {
    double n;         /* values seen */
    double mean[2];   /* of c1, c2 */
    double square[3]; /* covariance 00 01 11 */
    double angle;     /* of the first direction */
} tsr_contrast_axes;

/* The length that counts as 1. */
double tsr_contrast_unit(const tsr_contrast_prior *prior);

/* Where both are inferred: takes notice of value [TSR_N_CONTRAST]. */
void tsr_contrast_axes_learn(tsr_contrast_axes *axes,
                             const tsr_contrast_prior *prior,
                             const double *value);

/* Adds a step of `length` in direction `which` to value. Where one of c1 and c2
 * is fixed the other moves (which: TSR_C1, TSR_C2). */
void tsr_contrast_axes_step(const tsr_contrast_axes *axes,
                            const tsr_contrast_prior *prior, int which,
                            double length, double *value);

/* Saves or restores what was learnt. */
void tsr_contrast_axes_archive(tsr_contrast_axes *axes, tsr_archive *archive);

#endif
