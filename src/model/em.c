#include "model/em.h"

#include "core/random.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { N_START = 12, N_SHORT = 12, N_LONG = 400, SEED = 20 };
static const double converged = 1e-6; /* nat, an observation and a step */

/* Steps until they gain too little; returns the last mean log density. */
static double run_long(const tsr_em_type *type, void *work)
{
    double before = -HUGE_VAL;
    for (int k = 0; k < N_LONG; k++) {
        double now = type->step(work);
        if (now - before < converged)
            return now;
        before = now;
    }
    return before;
}

/* The number of the start that is highest and not yet followed. */
static int best_left(double highest[N_START])
{
    int best = 0;
    for (int i = 1; i < N_START; i++)
        if (highest[i] > highest[best])
            best = i;
    highest[best] = -HUGE_VAL;
    return best;
}

tsr_status tsr_em_run(const tsr_em_type *type, void *work, void *mixture,
                      size_t size, int n_long, tsr_err *err)
{
    char *kept = malloc((N_START + 1) * size), *best = kept;
    gsl_rng *rng = tsr_rng_new(SEED, 0);
    if (kept == NULL || rng == NULL) {
        free(kept);
        if (rng != NULL)
            gsl_rng_free(rng);
        return tsr_fail(err, TSR_E_NOMEM, "no memory to fit a mixture");
    }
    double value[N_START], highest = -HUGE_VAL;
    for (int i = 0; i < N_START; i++) {
        type->start(work, rng);
        for (int k = 0; k < N_SHORT; k++)
            value[i] = type->step(work);
        memcpy(kept + (size_t)(i + 1) * size, mixture, size);
    }
    for (int i = 0; i < n_long && i < N_START; i++) {
        int from = best_left(value);
        memcpy(mixture, kept + (size_t)(from + 1) * size, size);
        double now = run_long(type, work);
        if (i == 0 || now > highest) {
            highest = now;
            memcpy(best, mixture, size);
        }
    }
    memcpy(mixture, best, size);
    free(kept);
    gsl_rng_free(rng);
    return TSR_OK;
}

void tsr_em_spread(const void *work, long n_x,
                   double (*distance2)(const void *work, long i, long j),
                   gsl_rng *rng, double *nearest, int n, long *pick)
{
    for (long i = 0; i < n_x; i++)
        nearest[i] = 1.0;
    for (int k = 0; k < n; k++) {
        double sum = 0.0, below = 0.0;
        for (long i = 0; i < n_x; i++)
            sum += nearest[i];
        double u = gsl_rng_uniform(rng) * sum;
        long at = 0;
        while (at < n_x - 1 && (below += nearest[at]) <= u)
            at++;
        pick[k] = at;
        for (long i = 0; i < n_x; i++) {
            double d2 = distance2(work, i, at);
            if (k == 0 || d2 < nearest[i])
                nearest[i] = d2;
        }
    }
}
