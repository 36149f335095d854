/* How to continue a run: the one command line that run, diagnose, summary,
 * report and solve print alike, ready to be pasted into a shell. */
#ifndef TSR_ANSWER_ADVICE_H
#define TSR_ANSWER_ADVICE_H

#include "analysis/summary.h"
#include "core/json.h"
#include "session/past_run.h"

/* Whether a run has converged, and how to continue it. */
typedef struct {
    int is_converged; /* by the criterion sampler.until, or its default: */
    char asked[64];   /* "rhat<1.01,ess>400" */
    char worst[160];  /* the variable farthest from the criterion, in words */
    long draws;       /* draws of a chain, in all, that are probably needed */
    double seconds;   /* until then; NaN: not known */
    char *command;    /* "tessera resume runs/x --draws 8000"; NULL: a trace
                         without its run's folder */
} tsr_advice;

/* Recommends at least twice the present draws, or as many as the slowest
 * variable needs; for a run stopped early, at least the draws that it was asked
 * for. summary: of the run. The caller clears advice, also after an error.
 * Errors: those of tsr_until_judge, TSR_E_NOMEM. */
tsr_status tsr_advice_make(const tsr_past_run *run, const tsr_summary *summary,
                           tsr_advice *advice, tsr_err *err);
void tsr_advice_clear(tsr_advice *advice);

/* Command and time, "tessera resume runs/x --draws 8000   (about 12 minutes)".
 * Caller frees. NULL: no command, or out of memory. */
char *tsr_advice_text(const tsr_advice *advice);

/* "about 12 minutes", or "time not known" for NaN; text [32] out. */
const char *tsr_advice_time(double seconds, char text[32]);

/* Adds the member "advice" to an object: {"converged", "asked", "worst",
 * "command", "draws", "seconds"}. */
void tsr_advice_put(const tsr_advice *advice, tsr_json *json);

#endif
