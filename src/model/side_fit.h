/* Mixtures of Gaussians fitted to side-chain centres.
 *
 * No Gaussian is narrower than TSR_LEAST_SIDE_SD in any direction. Where there
 * are two or more, the last is broad: the mean of all, four times their
 * covariance, a weight of at least TSR_BROAD_WEIGHT. What is far from all that
 * was seen is then unlikely, and not by hundreds of nats. */
#ifndef TSR_MODEL_SIDE_FIT_H
#define TSR_MODEL_SIDE_FIT_H

#include "model/mixture_train.h"

#define TSR_LEAST_SIDE_SD 0.05 /* Angstrom */
#define TSR_BROAD_WEIGHT 1e-3

/* Observations: centres in the frame of N-CA-C (Angstrom). Mixtures:
 * tsr_side_mixture. */
extern const tsr_mixture_type tsr_mixture_side;

#endif
