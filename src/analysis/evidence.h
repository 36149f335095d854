/* The marginal likelihood of a run's model, log Z = log of the mean of the
 * likelihood over the prior, from the temperatures that the run sampled.
 *
 * A ladder whose hottest replica samples the prior is a path from the prior
 * (1 / T = 0) to the posterior (1 / T = 1). From one temperature to the next
 * the ratio of the normalising constants is estimated from the draws at both
 * (stepping stones: Xie et al. 2011, Syst. Biol. 60, 150; each by Bennett's
 * acceptance ratio: Bennett 1976, J. Comput. Phys. 22, 245), and log Z is the
 * sum. Constants that the prior lacks (that of the excluded volume) cancel,
 * since every ratio is between two densities with the same one: log Z is that
 * under the normalised prior. It compares models of the same data: numbers of
 * states, flexible residues, noise models.
 *
 * Scale and background have flat priors. Integrated out they add the same
 * constant to models of the same data; where they are sampled there is no path
 * from the prior, and no log Z. */
#ifndef TSR_ANALYSIS_EVIDENCE_H
#define TSR_ANALYSIS_EVIDENCE_H

#include "core/json.h"
#include "store/trace.h"

typedef struct {
    double log;     /* nat; NaN: not known; that by populations where the
                       ladder does not reach the prior */
    double error;   /* of it, one standard deviation; of a run also how far
                       `population` is from it, where that is more than
                       three errors of the two */
    double barrier; /* sum over neighbours of the share of exchanges that
                       are refused (Syed et al. 2022); NaN: no ladder */
    int n_temp;     /* of the ladder */
    double t_max;   /* its highest temperature */
    double population, population_error; /* the same by the populations that
                                            came from the prior; NaN: none */
    char why_not[160]; /* why the log is not known; "" where it is */
} tsr_evidence;

/* From draws of n_group independent groups, at 1 / T = beta [n_temp] from 1
 * downwards: log_lik [n_group][n_draw][n_temp]. `error` is the jackknife's over
 * the groups, of which it takes two. why_not is set where the hottest draws are
 * not of the prior. */
void tsr_evidence_estimate(int n_group, int n_draw, int n_temp,
                           const double *beta, const double *log_lik,
                           tsr_evidence *evidence);

/* Estimates of n_group independent populations (sampler/sampler.h) as one:
 * log of the mean of exp(log_z); *error: by leaving out one after the other,
 * NaN for a single one. */
double tsr_evidence_pool_groups(int n_group, const double *log_z,
                                double *error);

/* The same of a run. Errors: those of tsr_trace_get. */
tsr_status tsr_evidence_make(tsr_trace_reader *reader, tsr_evidence *evidence,
                             tsr_err *err);

/* "-271.1 +- 0.2 nat; by populations from the prior -271 +- 0.4 nat", or why
 * it is not known; "-271 +- 0.4 nat (by populations from the prior)" where
 * that is all there is; text [TSR_EVIDENCE_TEXT]. */
enum { TSR_EVIDENCE_TEXT = 320 };
const char *tsr_evidence_format(const tsr_evidence *evidence, char *text);

/* What a difference of log evidence, or of the density of points left out,
 * says of two models of the same data. */
typedef enum {
    TSR_GAIN_UNKNOWN,   /* the difference is not known */
    TSR_GAIN_UNDECIDED, /* it lies within two errors, or rests on few draws */
    TSR_GAIN_NONE,      /* the second model is not more than 1 nat above */
    TSR_GAIN_CLEAR      /* it is: the data ask for the second model */
} tsr_gain;

enum { TSR_GAIN_ESS = 100 }; /* fewer effective draws decide nothing */

/* gain: of the second model above the first, nat; error: one standard
 * deviation; ess: the effective draws of the slowest variable of both runs. */
tsr_gain tsr_gain_judge(double gain, double error, double ess);

/* As the member `name` of an object: {"log", "error", "barrier",
 * "temperatures", "t_max"}, null without a ladder, with "note" where the log is
 * null and "population"
 * {"log", "error"} where there were populations. */
void tsr_evidence_put(const tsr_evidence *evidence, const char *name,
                      tsr_json *json);

#endif
