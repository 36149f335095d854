/* Densities of side-chain centres: mixtures of Gaussians in the frame of
 * N-CA-C (core/vec3.h, tsr_frame), Angstrom. */
#ifndef TSR_MOLECULE_SIDE_DENSITY_H
#define TSR_MOLECULE_SIDE_DENSITY_H

#include <gsl/gsl_rng.h>

typedef struct {
    double weight; /* of the mixture, the sum is 1 */
    double mean[3];
    double cov[3][3];
} tsr_side_gaussian;

enum { TSR_MAX_SIDE_GAUSSIAN = 12 };

typedef struct {
    long count; /* side chains trained on */
    int n;      /* 0: has no side chain */
    tsr_side_gaussian part[TSR_MAX_SIDE_GAUSSIAN];
} tsr_side_mixture;

typedef struct tsr_side_density tsr_side_density;

/* Prepared for evaluation; copies the mixture. NULL: out of memory. */
tsr_side_density *tsr_side_density_new(const tsr_side_mixture *mixture);
void tsr_side_density_free(tsr_side_density *density);

/* Log density, nat, per Angstrom^3. */
double tsr_side_density_log(const tsr_side_density *density,
                            const double side[3]);

/* An exact draw. */
void tsr_side_density_draw(const tsr_side_density *density, gsl_rng *rng,
                           double side[3]);

#endif
