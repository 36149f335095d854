/* The questions of tsr_diagnose, one function each. For
 * src/analysis/diagnose*.c alone. */
#ifndef TSR_ANALYSIS_DIAGNOSE_CHECKS_H
#define TSR_ANALYSIS_DIAGNOSE_CHECKS_H

#include "analysis/diagnose.h"
#include "core/status.h"

/* Chains of one variable compared: which one stands still, which one is apart,
 * do two halves of them tell the same? */

/* The longest run of equal values in a chain. value [n_draw]. */
int tsr_longest_rest(int n_draw, const double *value);

/* How far chain c is from the rest: 0 where its middle 90 % and that of the
 * others overlap; else the gap between the two, in units of the wider one's
 * width (infinite where both have none). Below 0: it lies under them.
 * value [n_chain][n_draw]. NaN: one chain, or out of memory. */
double tsr_chain_gap(int n_chain, int n_draw, const double *value, int c);

/* Kolmogorov and Smirnov's comparison of two halves of the chains (of one
 * chain, of its draws): the first (n + 1) / 2 against the rest. */
typedef struct {
    double distance; /* largest distance of the two distribution functions */
    /* Probability of as much between two sets of as many independent draws as
     * the halves are worth (their ess_bulk, or one a chain where none moves;
     * Stephens 1970 for small ones). NaN where there is no draw. */
    double p;
} tsr_half_compare;

/* Errors: TSR_E_NOMEM. Cost: O(n log n). */
tsr_status tsr_half_compare_make(int n_chain, int n_draw, const double *value,
                                 tsr_half_compare *out, tsr_err *err);

/* Each fills `check`; found is NULL only where memory is out. */
#define TSR_CHECK_FUNCTION(name)                            \
    tsr_status tsr_check_##name(                            \
        tsr_diagnosis *diagnosis, tsr_trace_reader *reader, \
        const tsr_diagnose_options *options, tsr_check *check, tsr_err *err)

/* What a check has before it is asked: no answer, no numbers, no texts. */
void tsr_check_start(tsr_check *check, const char *name, const char *asks);

/* A remedy: "run longer, for example with --set sampler.draws=8000", `factor`
 * times as many. Caller frees; NULL: out of memory, or the options have advice,
 * which then is the diagnosis's, for all checks. */
char *tsr_check_run_longer(tsr_diagnosis *diagnosis,
                           const tsr_diagnose_options *options, double factor);

/* Numbers that are finite, a file that can be read. */
TSR_CHECK_FUNCTION(finite);
/* More than one chain: R-hat of one cannot see what it missed. */
TSR_CHECK_FUNCTION(chains);
/* R-hat of every variable (Vehtari et al. 2021). */
TSR_CHECK_FUNCTION(rhat);
/* Effective sample size, bulk and tail, of every variable. */
TSR_CHECK_FUNCTION(ess);
/* Chains that stand still, and chains apart from the others. */
TSR_CHECK_FUNCTION(stuck);
/* R-hat of the computed curve, at every q. */
TSR_CHECK_FUNCTION(profile);
/* Two halves of the chains, after Viswanath et al. 2017 (Biophys. J. 113,
 * 2344): distributions differ where a Kolmogorov-Smirnov test says so with p
 * below 0.05 and the distance is not small, above 0.3. */
TSR_CHECK_FUNCTION(halves);
/* Arrangements of the domains in two halves of the chains. */
TSR_CHECK_FUNCTION(arrangements);
/* Round trips of replicas between the temperatures. */
TSR_CHECK_FUNCTION(exchange);

#endif
