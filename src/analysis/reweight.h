/* Importance weights that turn stored draws into draws given other data:
 * another curve, noise model or range of q.
 *
 * A draw's structure X came with probability P(X) P(D | X); its weight is
 * P(D' | X) / P(D | X), all nuisances integrated out of both
 * (likelihood/term_saxs.h). Scale, background and noise parameters are then
 * drawn anew given X and D'. Other data sets of the run stay and cancel. */
#ifndef TSR_ANALYSIS_REWEIGHT_H
#define TSR_ANALYSIS_REWEIGHT_H

#include "core/log.h"
#include "likelihood/noise.h"
#include "likelihood/term_saxs.h"
#include "scattering/saxs.h"
#include "store/trace.h"

/* The curves I(q) of stored draws, and the data beside which they were drawn:
 * what a trace knows of a data set. */

typedef struct {
    tsr_trace_reader *trace; /* borrowed */
    int data;                /* data set, from 0 */
    int n_chain, n_draw, n;  /* n: points of a curve */
    tsr_saxs saxs;           /* the run's data as the trace holds it; its pool
                                owns all of this */
    double *scale;           /* [n_chain][n_draw] c; of a fixed one, too */
    double *background;      /* [n_chain][n_draw] b */
    const double *in_memory; /* [n_chain][n_draw][n] curves I, borrowed, where
                                there is no trace; else NULL */
    tsr_profile_error error; /* of the run's model, at its q; n 0: none */
    tsr_log *log; /* borrowed; on a terminal it is told how far a pass is; NULL:
                     nobody is */
} tsr_stored_curve;

/* Reads data set `data` of the trace but for its curves; linear: how scale and
 * background were treated in the run. The caller clears it, also after an
 * error. Errors: TSR_E_DATA (no such data set, with how many there are), those
 * of tsr_trace_get. */
tsr_status tsr_stored_curve_open(tsr_trace_reader *trace, int data,
                                 const char *path, const tsr_linear *linear,
                                 tsr_stored_curve *stored, tsr_err *err);
void tsr_stored_curve_clear(tsr_stored_curve *stored);

/* The name of a variable of this data set: `noise_scale_2`. */
void tsr_stored_curve_name(const char *name, int data, size_t size, char *out);

/* A scalar of the draws, *value [n_chain][n_draw], caller frees; NULL where the
 * trace has none. Errors: TSR_E_NOMEM, TSR_E_IO, TSR_E_DATA. */
tsr_status tsr_stored_curve_scalar(const tsr_stored_curve *stored,
                                   tsr_trace_group group, const char *name,
                                   double **value, tsr_err *err);

/* Calls `each` with the curve of every draw, (c I + b - b) / c, [n], chain by
 * chain within blocks of draws; at is its place in [n_chain][n_draw]. Some
 * 32 MiB are in memory. Stops at its first error. Errors: those of
 * tsr_trace_get_part and of `each`; TSR_E_DATA (a scale that is not above 0).
 */
typedef tsr_status (*tsr_curve_callback)(void *context, size_t at,
                                         const double *curve, tsr_err *err);
tsr_status tsr_stored_curve_for_each(const tsr_stored_curve *stored,
                                     tsr_curve_callback each, void *context,
                                     tsr_err *err);

typedef struct {
    tsr_pool pool;
    long n;             /* n_chain n_draw */
    double *log_weight; /* [n] raw: log P(D' | X) - log P(D | X), nat */
    double *scale, *background, *chi2;   /* [n] of the new data */
    double *noise[TSR_NOISE_PARAMETERS]; /* [n] values; NULL: none, or fixed */
    const char *noise_name[TSR_NOISE_PARAMETERS];
    /* Largest difference between the stored log likelihood and the one that the
     * stored curve gives; NaN where there are several data sets. */
    double recovered;
    /* Estimated error of the curve between the run's q, in the new sigma; 0
     * where all its q are the run's. */
    double interpolation;
} tsr_reweight;

/* before: how the run treated its data; its saxs is not used. after: what is
 * asked for, saxs and all. seed: of the nuisances. n_data: of the run.
 * Errors: TSR_E_DATA, where it cannot be done, with the reason and what to do:
 * q outside the run's, the run's q too far apart, draws at another temperature,
 * or a trace that does not give back its own likelihood. */
typedef struct {
    const tsr_stored_curve *stored;
    tsr_data_set before, after;
    int n_data;
    long seed;
} tsr_reweight_options;

tsr_status tsr_reweight_make(const tsr_reweight_options *options,
                             tsr_reweight **out, tsr_err *err);
void tsr_reweight_free(tsr_reweight *reweight);

/* Takes curves at the q of the run to those of other data, [n_to][n_from],
 * caller frees: a natural cubic spline. Errors: TSR_E_DATA (q outside),
 * TSR_E_NOMEM. */
tsr_status tsr_curve_operator(const tsr_saxs *from, const tsr_saxs *to,
                              double **matrix, tsr_err *err);

/* *error of that operator for a smooth curve (at the q of `from`), in units of
 * sigma, in the data's scale c: from the curve at every second point, whose
 * error is 16 times as large. 0 where the q are the same. Errors: TSR_E_DATA
 * (more than 0.3). */
tsr_status tsr_curve_operator_check(const tsr_saxs *from, const tsr_saxs *to,
                                    const double *curve, double c,
                                    double *error, tsr_err *err);

#endif
