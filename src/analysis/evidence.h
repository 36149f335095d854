/* The marginal likelihood of a run's model: log Z, the log of the prior mean of
 * the likelihood, from the temperatures that the run sampled.
 *
 * A ladder whose hottest replica samples the prior is a path from the prior (1
 * / T = 0) to the posterior (1 / T = 1). Between neighbouring temperatures the
 * ratio of the normalising constants is estimated from the draws at both
 * temperatures (stepping stones: Xie et al. 2011, Syst. Biol. 60, 150; each
 * ratio by Bennett 1976, J. Comput. Phys. 22, 245). log Z is the sum of the log
 * ratios. Both densities of a ratio have the same prior, so the unknown
 * constants of the prior, such as that of the excluded volume, cancel: log Z
 * refers to the normalised prior. log Z compares models of the same data, which
 * differ in the number of states, the flexible residues or the noise model.
 *
 * The scale has a flat prior, and the background too where it is configured so.
 * If both are integrated out, a flat prior adds the same constant to log Z of
 * all models of the same data. If a flat prior is sampled, the path does not
 * start at a proper prior, and log Z is not defined. */
#ifndef TSR_ANALYSIS_EVIDENCE_H
#define TSR_ANALYSIS_EVIDENCE_H

#include "core/json.h"
#include "store/trace.h"

/* The log marginal likelihood of a model and its error. */
typedef struct {
    double log;   /* log Z, nat: the mean of `ladder` and `population`, weighted
                     by their precision, or the one that is known; NaN: not
                     known */
    double error; /* standard deviation of log; for a run whose ladder and
                     population differ by more than three standard errors,
                     this difference */
    double ladder, ladder_error; /* log Z from the ladder, and its standard
                                    deviation; NaN: the ladder does not reach
                                    the prior */
    double largest; /* share of ladder_error squared that comes from one group
                       of chains, the one without which the estimate changes
                       most; NaN: not known */
    int first_chain, last_chain; /* this group, from 0 */
    double barrier; /* communication barrier: mean share of refused exchanges,
                       summed over neighbouring temperatures (Syed et al. 2022);
                       NaN: no ladder */
    int n_temp;     /* temperatures of the ladder */
    double t_max;   /* highest temperature of the ladder */
    double population, population_error; /* log Z and its standard deviation
                                            from the populations
                                            (sampler/sampler.h); NaN: no
                                            populations */
    int n_population;
    char why_not[160]; /* reason why log is NaN; "" where log is known */
} tsr_evidence;

/* Estimates log Z from the draws of n_group independent groups.
 * beta     [n_temp]                    in   1 / T, descending from 1
 * log_lik  [n_group][n_draw][n_temp]   in   nat
 * Sets log, error, ladder, ladder_error and why_not of *evidence. The error is
 * a jackknife over the groups, NaN for one group: draws of one group may be
 * correlated in time, and count as what they are worth. largest [2] out: number
 * of the group that contributes most to the squared error, and its share. If
 * the draws at the hottest temperature do not sample the prior, log is NaN and
 * why_not has the reason. */
void tsr_evidence_estimate(int n_group, int n_draw, int n_temp,
                           const double *beta, const double *log_lik,
                           double largest[2], tsr_evidence *evidence);

/* Sets log and error from ladder and population. Each is weighted by the
 * inverse of its squared error times (n - 1) / (n - 3), the second moment of
 * the t distribution of an estimate whose error comes from n groups; n_ladder:
 * groups of the ladder. */
void tsr_evidence_combine(int n_ladder, tsr_evidence *evidence);

/* Pools the estimates of n_group independent populations (sampler/sampler.h):
 * returns the log of the mean of exp(log_z [n_group]). *error out: jackknife
 * over the groups; NaN for one group. */
double tsr_evidence_pool_groups(int n_group, const double *log_z,
                                double *error);

/* The evidence of a run from its trace. If the trace lacks what log Z needs,
 * evidence->why_not has the reason. Errors: those of tsr_trace_get. */
tsr_status tsr_evidence_make(tsr_trace_reader *reader, tsr_evidence *evidence,
                             tsr_err *err);

/* The evidence in words: "-271.1 +- 0.2 nat (temperatures -271.1 +- 0.2,
 * populations from the prior -271.0 +- 0.4)"; if only the populations give an
 * estimate, "-271.0 +- 0.4 nat (by populations from the prior)"; or "unknown"
 * with the reason in brackets. An error that comes mostly from one group of
 * chains is named. text [TSR_EVIDENCE_TEXT] out, returned. */
enum { TSR_EVIDENCE_TEXT = 400 };
const char *tsr_evidence_format(const tsr_evidence *evidence, char *text);

/* Conclusion from the odds of a second model of the same data against a first.
 * Odds of 20 to 1 are strong evidence (Kass & Raftery 1995, J. Am. Stat. Assoc.
 * 90, 773). */
typedef enum {
    TSR_ODDS_UNKNOWN,
    TSR_ODDS_UNDECIDED,
    TSR_ODDS_AGAINST, /* the first model excludes the second */
    TSR_ODDS_FOR      /* the second model excludes the first */
} tsr_odds;

enum {
    TSR_ODDS_DECISIVE = 20, /* odds from which a model is excluded */
    TSR_ODDS_ERRORS = 2     /* standard errors by which they are lessened */
};

/* log_odds, error: log of the odds of the second model and its standard error,
 * nat. */
tsr_odds tsr_odds_judge(double log_odds, double error);

/* Adds the member `name` to an object: {"log", "error", "barrier",
 * "temperatures", "t_max"}; "note" where the log is null; "ladder" {"log",
 * "error", "largest_share", "chains"} and "population" {"log", "error"} where
 * these estimates are known. null where n_temp is 0. */
void tsr_evidence_put(const tsr_evidence *evidence, const char *name,
                      tsr_json *json);

#endif
