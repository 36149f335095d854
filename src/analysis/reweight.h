/* Importance weights that turn stored draws into draws given other data:
 * another curve, noise model or range of q.
 *
 * A draw's structure X was sampled with a density proportional to P(X) P(D |
 * X). Its weight is P(D' | X) / P(D | X), with all nuisance parameters
 * integrated out of both (likelihood/term_saxs.h). Scale, background and noise
 * parameters are then drawn again given X and D'. The likelihoods of all other
 * data sets of the run stay the same and cancel. */
#ifndef TSR_ANALYSIS_REWEIGHT_H
#define TSR_ANALYSIS_REWEIGHT_H

#include "core/log.h"
#include "likelihood/noise.h"
#include "likelihood/term_saxs.h"
#include "scattering/saxs.h"
#include "store/trace.h"

/* A data set of a trace: the data, and the curves I(q) of the stored draws. */
typedef struct {
    tsr_trace_reader *trace; /* borrowed */
    int data;                /* number of the data set, from 0 */
    int n_chain, n_draw, n;  /* n: number of points of a curve */
    tsr_saxs saxs;           /* the run's data as stored in the trace; its pool
                                owns all memory of this structure */
    double *scale;           /* [n_chain][n_draw] scale c of each draw; one
                                value if c was fixed */
    double *background;      /* [n_chain][n_draw] background b, likewise */
    const double *in_memory; /* [n_chain][n_draw][n] curves I in memory,
                                borrowed, if there is no trace; else NULL */
    tsr_profile_error error; /* the run's model error (likelihood/term.h) at the
                                run's q; n 0: no error */
    tsr_log *log; /* borrowed; shows the progress on a terminal; NULL: no
                     progress is shown */
} tsr_stored_curve;

/* Reads data set `data` of the trace except its curves. path: name of the data
 * for messages. linear: how the run treated scale and background. The caller
 * clears `stored`, also after an error. Errors: TSR_E_DATA (no such data set),
 * those of tsr_trace_get. */
tsr_status tsr_stored_curve_open(tsr_trace_reader *trace, int data,
                                 const char *path, const tsr_linear *linear,
                                 tsr_stored_curve *stored, tsr_err *err);
void tsr_stored_curve_clear(tsr_stored_curve *stored);

/* Name of a variable of data set `data` in the trace, such as noise_scale_2. */
void tsr_stored_curve_name(const char *name, int data, size_t size, char *out);

/* Reads a scalar variable: *value [n_chain][n_draw], the caller frees it; NULL
 * where the trace lacks the variable. Errors: those of tsr_trace_get;
 * TSR_E_DATA (another number of draws, or no scalar). */
tsr_status tsr_stored_curve_scalar(const tsr_stored_curve *stored,
                                   tsr_trace_group group, const char *name,
                                   double **value, tsr_err *err);

/* Calls `each` for every draw with its curve I [n] = (y - b) / c, where y is
 * the stored curve c I + b. The order is chain by chain within blocks of draws;
 * `at` is the index in [n_chain][n_draw]. About 32 MiB are in memory. Stops at
 * the first error. Errors: those of tsr_trace_get_part and of `each`;
 * TSR_E_DATA (a scale that is not above 0). */
typedef tsr_status (*tsr_curve_callback)(void *context, size_t at,
                                         const double *curve, tsr_err *err);
tsr_status tsr_stored_curve_for_each(const tsr_stored_curve *stored,
                                     tsr_curve_callback each, void *context,
                                     tsr_err *err);

/* Weights of the stored draws, and their nuisance parameters given the new
 * data. */
typedef struct {
    tsr_pool pool;
    long n;             /* n_chain n_draw */
    double *log_weight; /* [n] not normalised: log P(D' | X) - log P(D | X),
                           nat */
    double *scale, *background, *chi2;   /* [n] for the new data */
    double *noise[TSR_NOISE_PARAMETERS]; /* [n] parameters of the noise for the
                                            new data; NULL: there is no such
                                            parameter, or it is fixed */
    const char *noise_name[TSR_NOISE_PARAMETERS];
    /* Largest difference between a stored log likelihood and that computed from
     * the stored curve, nat; NaN with several data sets, whose likelihoods are
     * stored as a sum only. */
    double recovered;
    /* Estimated interpolation error of the curve, in units of the new sigma; 0
     * where all new q are among the run's. */
    double interpolation;
} tsr_reweight;

/* What is reweighted. before: how the run treated its data (its member saxs is
 * not used). after: the new data and their treatment. n_data: number of data
 * sets of the run. seed: of the draws of the nuisance parameters. */
typedef struct {
    const tsr_stored_curve *stored;
    tsr_data_set before, after;
    int n_data;
    long seed;
} tsr_reweight_options;

/* Computes the weights of all stored draws; the caller frees *out. Errors:
 * TSR_E_DATA, with reason and remedy, where reweighting is impossible: q
 * outside the run's range, the run's q too far apart, draws at another
 * temperature than 1, or stored curves that do not reproduce the stored
 * likelihood; TSR_E_NUMERIC (a draw has no likelihood under the run's own
 * data); TSR_E_NOMEM; those of tsr_stored_curve_for_each. */
tsr_status tsr_reweight_make(const tsr_reweight_options *options,
                             tsr_reweight **out, tsr_err *err);
void tsr_reweight_free(tsr_reweight *reweight);

/* *matrix [to->n][from->n] out: the matrix that interpolates curves from the q
 * of the run to the q of other data by a natural cubic spline; the caller frees
 * it. Errors: TSR_E_DATA (q outside the range), TSR_E_NOMEM. */
tsr_status tsr_curve_operator(const tsr_saxs *from, const tsr_saxs *to,
                              double **matrix, tsr_err *err);

/* Estimates the error of this matrix for a smooth curve [from->n], in units of
 * the new sigma at scale c: *error out. The estimate comes from a spline
 * through every second point, whose error is 16 times as large. *error is 0
 * where all q of `to` occur in `from`. Errors: TSR_E_DATA (more than 0.3, or
 * fewer than 7 q in `from`), TSR_E_NOMEM. */
tsr_status tsr_curve_operator_check(const tsr_saxs *from, const tsr_saxs *to,
                                    const double *curve, double c,
                                    double *error, tsr_err *err);

#endif
