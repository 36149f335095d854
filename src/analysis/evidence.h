/* The marginal likelihood of a run's model: log Z, the log of the prior mean of
 * the likelihood, from the temperatures that the run sampled.
 *
 * A ladder whose hottest replica samples the prior is a path from the prior (1
 * / T = 0) to the posterior (1 / T = 1). Between neighbouring temperatures the
 * ratio of the normalising constants is estimated from the draws at both
 * (stepping stones: Xie et al. 2011, Syst. Biol. 60, 150; each ratio by Bennett
 * 1976, J. Comput. Phys. 22, 245). log Z is the sum of the log ratios. Both
 * densities of a ratio have the same prior, so its unknown constants, such as
 * that of the excluded volume, cancel: log Z refers to the normalised prior.
 * log Z compares models of the same data: numbers of states, flexible residues,
 * noise models.
 *
 * Scale and background have flat priors. Integrated out, they add the same
 * constant to all models of the same data. If they are sampled instead, the
 * path does not start at a proper prior, and log Z is not defined. */
#ifndef TSR_ANALYSIS_EVIDENCE_H
#define TSR_ANALYSIS_EVIDENCE_H

#include "core/json.h"
#include "store/trace.h"

/* The log marginal likelihood of a model and its error. */
typedef struct {
    double log;     /* log Z, nat; NaN: not known. Estimated by populations
                       where the ladder does not reach the prior */
    double error;   /* standard deviation of log. For a run, at least the
                       distance to `population` where the two differ by more
                       than three standard errors */
    double barrier; /* communication barrier: refused share of exchanges, summed
                       over neighbours (Syed et al. 2022); NaN: no ladder */
    int n_temp;     /* temperatures of the ladder */
    double t_max;   /* highest temperature of the ladder */
    double population, population_error; /* log Z by the populations that came
                                            from the prior, and its standard
                                            deviation; NaN: no populations */
    char why_not[160]; /* reason why log is NaN; "" where log is known */
} tsr_evidence;

/* Estimates log Z from the draws of n_group independent groups.
 * beta     [n_temp]                    in   1 / T, descending from 1
 * log_lik  [n_group][n_draw][n_temp]   in   nat
 * evidence->error is a jackknife over the groups and needs two of them.
 * evidence->why_not is set where the hottest draws are not from the prior. */
void tsr_evidence_estimate(int n_group, int n_draw, int n_temp,
                           const double *beta, const double *log_lik,
                           tsr_evidence *evidence);

/* Pools the estimates of n_group independent populations (sampler/sampler.h):
 * log of the mean of exp(log_z [n_group]). *error: jackknife; NaN for one
 * group. */
double tsr_evidence_pool_groups(int n_group, const double *log_z,
                                double *error);

/* The evidence of a run. Errors: those of tsr_trace_get. */
tsr_status tsr_evidence_make(tsr_trace_reader *reader, tsr_evidence *evidence,
                             tsr_err *err);

/* The evidence in words: "-271.1 +- 0.2 nat; by populations from the prior -271
 * +- 0.4 nat"; where only populations know it "-271 +- 0.4 nat (by populations
 * from the prior)"; else the reason why it is not known. text
 * [TSR_EVIDENCE_TEXT] out. */
enum { TSR_EVIDENCE_TEXT = 320 };
const char *tsr_evidence_format(const tsr_evidence *evidence, char *text);

/* Conclusion from a difference of log evidence, or of expected log predictive
 * density, between two models of the same data. */
typedef enum {
    TSR_GAIN_UNKNOWN,   /* the difference is not known */
    TSR_GAIN_UNDECIDED, /* within two standard errors, or from too few draws */
    TSR_GAIN_NONE,      /* the second model gains at most 1 nat */
    TSR_GAIN_CLEAR      /* the data ask for the second model */
} tsr_gain;

enum {
    TSR_GAIN_ESS = 100
}; /* fewer effective draws leave the comparison undecided */

/* gain, error: advantage of the second model and its standard deviation, nat.
 * ess: effective draws of the slowest variable of both runs. */
tsr_gain tsr_gain_judge(double gain, double error, double ess);

/* Adds the member `name` to an object: {"log", "error", "barrier",
 * "temperatures", "t_max"}; "note" where the log is null; "population" {"log",
 * "error"} where the run had populations. null without a ladder. */
void tsr_evidence_put(const tsr_evidence *evidence, const char *name,
                      tsr_json *json);

#endif
