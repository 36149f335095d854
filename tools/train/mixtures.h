/* Mixtures trained on observations from structures, with the number of parts
 * chosen on structures held out.
 *
 * Every sixth structure, in the order of the list, is held out; mixtures of all
 * numbers of parts are fitted to the others. The number is the least whose mean
 * log density of what was held out is below the best by no more than 0.002 nat
 * or one standard error of that difference (between structures). A mixture of
 * that many parts is then fitted to all observations. */
#ifndef TSR_TRAIN_MIXTURES_H
#define TSR_TRAIN_MIXTURES_H

#include "core/log.h"
#include "core/status.h"

#include <gsl/gsl_rng.h>
#include <stddef.h>

typedef struct {
    int dim;         /* numbers an observation */
    int least, most; /* parts */
    size_t size;     /* bytes of a mixture */
    /* Fits n_part parts to x [n][dim]; effort: starts that are followed to
     * their maxima. */
    tsr_status (*fit)(long n, const double *x, int n_part, int effort,
                      void *mixture, tsr_err *err);
    /* value [n] out: log density, nat. */
    tsr_status (*evaluate)(const void *mixture, long n, const double *x,
                           double *value, tsr_err *err);
} tsr_mixture_type;

/* Torsions: mixtures of bivariate von Mises distributions (below), of
 * observations phi, psi (rad); a mixture is a tsr_torsion_mixture. */
extern const tsr_mixture_type tsr_mixture_torsion;
#define TSR_UNIFORM_WEIGHT 1e-3 /* least of the part that is uniform */
#define TSR_MAX_KAPPA 500.0

/* Side-chain centres: mixtures of Gaussians (below), of observations in
 * the frame of N-CA-C (Angstrom); a mixture is a tsr_side_mixture. */
extern const tsr_mixture_type tsr_mixture_side;
#define TSR_LEAST_SIDE_SD 0.05 /* Angstrom, in any direction */
#define TSR_BROAD_WEIGHT 1e-3  /* least of the part that is broad */

enum { TSR_MIXTURE_MOST = 24, TSR_MIXTURE_HOLD_OUT = 6 };

typedef struct {
    const char *name; /* for the log */
    const tsr_mixture_type *type;
    long n;
    const double *x; /* [n][dim] */
    const int *file; /* [n] number of the structure, from 0 */
    void *mixture;   /* out, type->size bytes */
    /* out */
    int n_part;
    long n_held_out;
    /* mean log density, nat, of those held out, by number of parts; NaN where
     * there are too few to choose: then n_part is the least */
    double held_out[TSR_MIXTURE_MOST + 1];
} tsr_mixture_task;

/* All tasks, over n_thread threads (0: one a processor), whose number changes
 * nothing. Errors: TSR_E_NOMEM. */
tsr_status tsr_mixture_train(int n_task, tsr_mixture_task *task, int n_thread,
                             tsr_log *log, tsr_err *err);

/* ---- expectation-maximisation, for the fits ----
 *
 * From several starts (Dempster, Laird & Rubin 1977; short runs from many
 * starts, long ones from the best: Biernacki, Celeux & Govaert 2003), which
 * come from a fixed random stream. */

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

/* Shares of n parts in an observation from their log densities, in place;
 * returns the log of the sum of the densities. */
double tsr_em_shares(int n, double *x);

/* Weights of n parts whose last, broader than the others, has at least
 * `least`: the maximum of the likelihood under that bound. share [n]: the sums
 * of shares in n_x observations. weight [n] out. */
void tsr_em_weights(int n, long n_x, const double *share, double least,
                    double *weight);

#endif
