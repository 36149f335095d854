/* How to go on with a run: the one line that run, diagnose, summary, report and
 * solve print alike, and that can be typed as it is. */
#ifndef TSR_ANSWER_ADVICE_H
#define TSR_ANSWER_ADVICE_H

#include "analysis/summary.h"
#include "core/json.h"
#include "session/past_run.h"

typedef struct {
    int is_converged; /* as sampler.until asks, else as runs do without it: */
    char asked[64];   /* "rhat<1.01,ess>400" */
    char worst[160];  /* the variable that is farthest from it, in words */
    long draws;       /* a chain in all that it takes, about */
    double seconds;   /* until then; NaN: not known */
    char *command;    /* "tessera resume runs/x --draws 8000"; NULL: a trace
                         alone cannot go on */
} tsr_advice;

/* For at least twice the draws, or as many as the slowest variable needs; of a
 * run that was stopped before it had what it was asked for, no less than that.
 * summary: of the run. The caller clears it, also after an error. Errors: those
 * of tsr_until_judge. */
tsr_status tsr_advice_make(const tsr_past_run *run, const tsr_summary *summary,
                           tsr_advice *advice, tsr_err *err);
void tsr_advice_clear(tsr_advice *advice);

/* The command and the time, "tessera resume runs/x --draws 8000   (about 12
 * minutes)". Caller frees; NULL: none, or out of memory. */
char *tsr_advice_text(const tsr_advice *advice);

/* "about 12 minutes"; text [32]. "time not known" for NaN. */
const char *tsr_advice_time(double seconds, char text[32]);

/* As the member "advice": {"converged", "asked", "worst", "command", "draws",
 * "seconds"}. */
void tsr_advice_put(const tsr_advice *advice, tsr_json *json);

#endif
