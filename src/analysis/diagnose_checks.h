/* The questions of tsr_diagnose, one function each. For
 * src/analysis/diagnose*.c alone. */
#ifndef TSR_ANALYSIS_DIAGNOSE_CHECKS_H
#define TSR_ANALYSIS_DIAGNOSE_CHECKS_H

#include "analysis/diagnose.h"

/* Each fills `check`; found is NULL only where memory is out. */
#define TSR_CHECK_FUNCTION(name)                            \
    tsr_status tsr_check_##name(                            \
        tsr_diagnosis *diagnosis, tsr_trace_reader *reader, \
        const tsr_diagnose_options *options, tsr_check *check, tsr_err *err)

/* What a check has before it is asked: no answer, no numbers, no texts. */
void tsr_check_start(tsr_check *check, const char *name, const char *asks);

/* A remedy: "run longer, for example with --set sampler.draws=8000", `factor`
 * times as many. Caller frees; NULL: out of memory. */
char *tsr_check_run_longer(const tsr_diagnosis *diagnosis,
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
/* Groups of conformations in two halves of the chains. */
TSR_CHECK_FUNCTION(groups);
/* Round trips of replicas between the temperatures. */
TSR_CHECK_FUNCTION(exchange);

#endif
