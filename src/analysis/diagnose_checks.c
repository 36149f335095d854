/* The questions that the summary of each variable answers. Those about where
 * chains have been, their halves and their exchanges, are in diagnose_chains.c.
 */
#include "analysis/diagnose_checks.h"

#include "core/text.h"

#include <math.h>
#include <string.h>

void tsr_check_start(tsr_check *check, const char *name, const char *asks)
{
    *check = (tsr_check){.name = name,
                         .asks = asks,
                         .answer = TSR_CHECK_UNKNOWN,
                         .value = (double)NAN,
                         .limit = (double)NAN};
}

/* Is the item one that must converge? What does not vary, and what has no
 * numbers, are other checks' matter. */
static int counts(const tsr_summary_item *item)
{
    return item->flaw == TSR_FLAW_NONE;
}

/* The line that goes on with the run, for all checks; without one
 * "--set sampler.draws=8000", `factor` times as many. */
char *tsr_check_run_longer(tsr_diagnosis *d,
                           const tsr_diagnose_options *options, double factor)
{
    if (options->advice != NULL) {
        if (d->advice == NULL)
            d->advice = strdup(options->advice);
        return NULL;
    }
    const double draws =
        options->draws > 0 ? (double)options->draws : d->n_draw;
    const double most = 1000.0; /* further is guesswork */
    const double times = fmin(most, fmax(2.0, ceil(factor)));
    if (options->warmup > 0)
        return tsr_words_of(
            "run longer, for example with --set sampler.warmup=%.0f "
            "--set sampler.draws=%.0f",
            2.0 * (double)options->warmup, times * draws);
    return tsr_words_of("run longer, for example with --set sampler.draws=%.0f",
                        times * draws);
}

TSR_CHECK_FUNCTION(finite)
{
    tsr_words found;
    int n_bad = 0;
    (void)reader, (void)options, (void)err;
    tsr_check_start(check, "finite", "are all draws numbers?");
    tsr_words_begin(&found);
    for (int i = 0; i < diagnosis->summary->n; i++)
        if (diagnosis->summary->item[i].flaw_text != NULL)
            tsr_words_say(&found, "%s%s", n_bad++ > 0 ? "; " : "",
                          diagnosis->summary->item[i].flaw_text);
    for (int i = 0; i < diagnosis->n_curve; i++)
        if (diagnosis->curve[i]->n_bad > 0)
            tsr_words_say(&found, "%s%s is not finite at %d of %d points",
                          n_bad++ > 0 ? "; " : "", diagnosis->curve[i]->name,
                          diagnosis->curve[i]->n_bad, diagnosis->curve[i]->n);
    if (n_bad == 0)
        tsr_words_say(&found, "all of them");
    check->answer = n_bad == 0 ? TSR_CHECK_YES : TSR_CHECK_NO;
    check->found = tsr_words_end(&found);
    if (n_bad > 0)
        check->remedy =
            tsr_words_of("this should not happen: repeat the run with "
                         "--device reference, and where it stays so, "
                         "report it with config.yaml");
    return TSR_OK;
}

TSR_CHECK_FUNCTION(chains)
{
    (void)reader, (void)options, (void)err;
    tsr_check_start(check, "chains", "are there chains to compare?");
    check->value = diagnosis->n_chain;
    check->limit = 2.0;
    check->answer = diagnosis->n_chain > 1 ? TSR_CHECK_YES : TSR_CHECK_NO;
    check->found =
        tsr_words_of("%d chain%s of %d draws", diagnosis->n_chain,
                     diagnosis->n_chain == 1 ? "" : "s", diagnosis->n_draw);
    if (diagnosis->n_chain < 2)
        check->remedy = tsr_words_of(
            "one chain cannot show what it never found: run at least "
            "two, better four, with --set sampler.chains=4");
    return TSR_OK;
}

TSR_CHECK_FUNCTION(rhat)
{
    const tsr_summary_item *worst = NULL;
    int n_above = 0, n = 0;
    (void)reader, (void)err;
    tsr_check_start(check, "rhat", "do the chains agree on every variable?");
    check->limit = options->rhat;
    for (int i = 0; i < diagnosis->summary->n; i++) {
        const tsr_summary_item *item = &diagnosis->summary->item[i];
        if (!counts(item))
            continue;
        n++;
        n_above += item->value.rhat > options->rhat;
        if (worst == NULL || item->value.rhat > worst->value.rhat)
            worst = item;
    }
    if (worst == NULL) {
        check->found =
            tsr_words_of("no variable has an R-hat: too few draws, or "
                         "nothing varies");
        check->remedy = tsr_check_run_longer(diagnosis, options, 4.0);
        return TSR_OK;
    }
    check->value = worst->value.rhat;
    check->answer = n_above == 0 ? TSR_CHECK_YES : TSR_CHECK_NO;
    check->found =
        n_above == 0
            ? tsr_words_of("the largest R-hat of %d variables is %.4f (%s)", n,
                           worst->value.rhat, worst->name)
            : tsr_words_of(
                  "R-hat is above %g for %d of %d variables, largest for "
                  "%s: %.3f",
                  options->rhat, n_above, n, worst->name, worst->value.rhat);
    if (n_above > 0)
        check->remedy = tsr_check_run_longer(diagnosis, options, 4.0);
    return TSR_OK;
}

TSR_CHECK_FUNCTION(ess)
{
    double least;
    const tsr_summary_item *worst =
        tsr_summary_slowest(diagnosis->summary, &least);
    (void)reader, (void)err;
    tsr_check_start(check, "ess", "are there enough independent draws?");
    check->limit = options->ess;
    if (worst == NULL) {
        check->found =
            tsr_words_of("no variable has an effective sample size: too "
                         "few draws, or nothing varies");
        check->remedy = tsr_check_run_longer(diagnosis, options, 4.0);
        return TSR_OK;
    }
    check->value = least;
    check->answer = least >= options->ess ? TSR_CHECK_YES : TSR_CHECK_NO;
    check->found = tsr_words_of(
        "the least is %.0f of %.0f draws (%s), %.0f are asked for", least,
        (double)worst->n_chain * worst->n_draw, worst->name, options->ess);
    if (least < options->ess)
        check->remedy = tsr_check_run_longer(diagnosis, options,
                                             1.2 * options->ess / least);
    return TSR_OK;
}

TSR_CHECK_FUNCTION(profile)
{
    tsr_words found;
    double largest = 0.0;
    int n_told = 0;
    (void)reader, (void)err;
    tsr_check_start(check, "profile",
                    "do the chains agree on the curve, at every q?");
    check->limit = options->rhat;
    if (diagnosis->n_curve == 0) {
        check->answer = TSR_CHECK_NOT_ASKED;
        check->found = tsr_words_of("the trace has no curve: no data");
        return TSR_OK;
    }
    tsr_words_begin(&found);
    for (int i = 0; i < diagnosis->n_curve; i++) {
        const tsr_curve_summary *c = diagnosis->curve[i];
        const int worst = tsr_curve_summary_worst(c);
        int n_above = 0;
        if (worst < 0)
            continue;
        for (int k = 0; k < c->n; k++)
            n_above += c->point[k].rhat > options->rhat;
        tsr_words_say(
            &found,
            "%s%s: the largest R-hat is %.3f, at q = %.4g; above %g at %d of "
            "%d points",
            n_told++ > 0 ? "; " : "", c->name, c->point[worst].rhat,
            c->q[worst], options->rhat, n_above, c->n);
        largest = fmax(largest, c->point[worst].rhat);
    }
    if (n_told == 0)
        tsr_words_say(&found, "too few draws to tell");
    check->value = n_told > 0 ? largest : (double)NAN;
    check->answer = n_told == 0                ? TSR_CHECK_UNKNOWN
                    : largest <= options->rhat ? TSR_CHECK_YES
                                               : TSR_CHECK_NO;
    check->found = tsr_words_end(&found);
    if (check->answer == TSR_CHECK_NO)
        check->remedy = tsr_check_run_longer(diagnosis, options, 4.0);
    return TSR_OK;
}
