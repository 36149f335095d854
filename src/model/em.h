/* Expectation-maximisation of a mixture from several starts (Dempster, Laird &
 * Rubin 1977; short runs from many starts, long ones from the best: Biernacki,
 * Celeux & Govaert 2003). The starts come from a fixed random stream. */
#ifndef TSR_MODEL_EM_H
#define TSR_MODEL_EM_H

#include "core/status.h"

#include <gsl/gsl_rng.h>
#include <stddef.h>

typedef struct {
    /* A random start into the mixture that `work` knows. */
    void (*start)(void *work, gsl_rng *rng);
    /* One step; returns the mean log density of the observations under the
     * mixture before it. */
    double (*step)(void *work);
} tsr_em_type;

/* mixture: what start and step change, `size` bytes, flat. The n_long best of
 * the starts are followed to their maxima, and the highest is kept. Errors:
 * TSR_E_NOMEM. */
tsr_status tsr_em_run(const tsr_em_type *type, void *work, void *mixture,
                      size_t size, int n_long, tsr_err *err);

/* Picks n of n_x observations, each farther from those before it than chance
 * would have it (k-means++, Arthur & Vassilvitskii 2007). pick [n] out;
 * nearest [n_x] scratch; distance2 of two observations of `work`. */
void tsr_em_spread(const void *work, long n_x,
                   double (*distance2)(const void *work, long i, long j),
                   gsl_rng *rng, double *nearest, int n, long *pick);

#endif
