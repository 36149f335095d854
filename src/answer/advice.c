/* How to continue a run. The number of draws is estimated from the variable
 * that is farthest from the convergence criterion, the remaining time from the
 * time that the present draws took. */
#include "answer/advice.h"

#include "core/text.h"
#include "sampler/sampler.h"
#include "session/until.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

void tsr_advice_clear(tsr_advice *advice)
{
    free(advice->command);
    advice->command = NULL;
}

/* Sets the command line. draws 0: `resume` without --draws, which makes as many
 * draws as the run was asked for. */
static tsr_status set_command(const char *directory, long draws, tsr_advice *a,
                              tsr_err *err)
{
    char word[TSR_SHELL_SIZE];
    tsr_text_shell(directory, word);
    a->command = draws > 0 ? tsr_text_format("tessera resume %s --draws %ld",
                                             word, draws)
                           : tsr_text_format("tessera resume %s", word);
    return tsr_allocated(a->command, err);
}

/* If the run was stopped before it had made all draws that it was asked for,
 * and these suffice, `resume` without --draws makes them. */
static tsr_status resume_unfinished(const tsr_past_run *run, tsr_advice *a,
                                    tsr_err *err)
{
    if (run->progress.is_finished || run->draws_requested <= run->n_draw ||
        a->draws > run->draws_requested)
        return set_command(run->directory, a->draws, a, err);
    const double each = a->seconds / (double)(a->draws - run->n_draw);
    if (run->config.sampler.until == NULL)
        a->draws = run->draws_requested;
    a->seconds = each * (double)(a->draws - run->n_draw);
    return set_command(run->directory, 0, a, err);
}

tsr_status tsr_advice_make(const tsr_past_run *run, const tsr_summary *summary,
                           tsr_advice *advice, tsr_err *err)
{
    const tsr_run_progress *progress = &run->progress;
    tsr_until until;
    double far;
    const char *asked = run->has_config ? run->config.sampler.until : NULL;
    if (asked == NULL)
        asked = tsr_sampler_until;
    *advice = (tsr_advice){.seconds = (double)NAN};
    snprintf(advice->asked, sizeof advice->asked, "%s", asked);
    TSR_TRY(tsr_until_parse(asked, &until, err));
    TSR_TRY(tsr_until_judge(&until, run->trace, summary, &far, advice->worst,
                            NULL, err));
    advice->is_converged = far <= 1.0;
    advice->draws = (long)tsr_until_draws(run->n_draw, fmax(far, 2.0));
    if (!run->has_checkpoint)
        return TSR_OK;
    advice->seconds = (double)(advice->draws - run->n_draw) *
                      progress->seconds /
                      fmax((double)(run->n_draw + progress->warmup), 1.0);
    return resume_unfinished(run, advice, err);
}

const char *tsr_advice_time(double seconds, char text[32])
{
    const double minutes = ceil(seconds / 60.0), hours = seconds / 3600.0;
    if (!isfinite(seconds))
        snprintf(text, 32, "unknown time");
    else if (minutes < 2.0)
        snprintf(text, 32, "about a minute");
    else if (minutes < 100.0)
        snprintf(text, 32, "about %.0f minutes", minutes);
    else if (hours < 48.0)
        snprintf(text, 32, "about %.0f hours", ceil(hours));
    else
        snprintf(text, 32, "about %.0f days", ceil(hours / 24.0));
    return text;
}

char *tsr_advice_text(const tsr_advice *advice)
{
    char time[32];
    return advice->command == NULL
               ? NULL
               : tsr_text_format("%s   (%s)", advice->command,
                                 tsr_advice_time(advice->seconds, time));
}

void tsr_advice_put(const tsr_advice *advice, tsr_json *json)
{
    tsr_json_members(json,
                     "advice{ converged %i asked %s worst %s command %s draws "
                     "%ld seconds %g }",
                     advice->is_converged, advice->asked, advice->worst,
                     advice->command, advice->draws, advice->seconds);
}
