/* How to continue a run: the command line that run, diagnose, summary, report
 * and solve print, quoted for a shell. */
#ifndef TSR_ANSWER_ADVICE_H
#define TSR_ANSWER_ADVICE_H

#include "analysis/summary.h"
#include "core/json.h"
#include "session/past_run.h"

/* Whether a run has converged, and how to continue it. */
typedef struct {
    int is_converged; /* 1: converged by the criterion `asked` */
    char asked[64];   /* sampler.until, or the default "rhat<1.01,ess>400" */
    char worst[160];  /* the variable farthest from the criterion, in words */
    long draws;       /* total number of draws of a chain that is probably
                         needed */
    double seconds;   /* estimated time until `draws` are made, s; NaN: not
                         known */
    char *command;    /* "tessera resume runs/x --draws 8000"; NULL: the run has
                         no checkpoint */
} tsr_advice;

/* Recommends at least twice the present draws, or as many as the variable
 * farthest from the criterion needs; for a run that was stopped early and has
 * no sampler.until, at least the draws that the configuration asks for. The
 * caller clears advice, also after an error. Errors: those of tsr_until_judge,
 * TSR_E_NOMEM. */
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
