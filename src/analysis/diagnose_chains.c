/* The checks that look at chains one by one, or at groups of them: R-hat and
 * effective sample size say that something is wrong, these say where. A check
 * that cannot tell says so, since an unanswered question is not a yes. */
#include "analysis/diagnose_checks.h"

#include "core/text.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

static int is_finite_row(const double *value, size_t n)
{
    for (size_t i = 0; i < n; i++)
        if (!isfinite(value[i]))
            return 0;
    return n > 0;
}

enum { LEAST_DRAWS = 8, MOST_NAMED = 5 };

/* Chains of one variable that stand still or are apart: told in `found`.
 * Returns how many. */
static int look_at_chains(const char *name, int may_rest, int n_chain,
                          int n_draw, const double *value, tsr_words *found,
                          int *n_told)
{
    const double far = 0.5; /* of the middle 90 % */
    int n_bad = 0;
    for (int c = 0; c < n_chain; c++) {
        const double *row = value + (size_t)c * (size_t)n_draw;
        const int rest = tsr_longest_rest(n_draw, row);
        const double gap = tsr_chain_gap(n_chain, n_draw, value, c);
        const int stands =
            !may_rest && 4 * rest >= n_draw && rest >= LEAST_DRAWS;
        if (!stands && !(fabs(gap) > far))
            continue;
        n_bad++;
        if ((*n_told)++ >= MOST_NAMED)
            continue;
        tsr_words_say(found, "%s", *n_told > 1 ? "; " : "");
        if (stands)
            tsr_words_say(found,
                          "%s of chain %d does not change for %d of %d draws",
                          name, c, rest, n_draw);
        else
            tsr_words_say(found,
                          "chain %d has its own %s, %s those of the others", c,
                          name, gap < 0.0 ? "below" : "above");
    }
    return n_bad;
}

TSR_CHECK_FUNCTION(stuck)
{
    enum { N_SHAPE = 2 }; /* of the structure; then how well it fits */
    static const char *const names[] = {"rg", "d_max", "lp", "chi2"};
    tsr_words found;
    int n_bad = 0, n_told = 0, n_seen = 0;
    tsr_status status = TSR_OK;
    tsr_check_start(check, "stuck",
                    "do all chains move, and in the same place?");
    tsr_words_begin(&found);
    for (size_t i = 0; i < sizeof names / sizeof *names && status == TSR_OK;
         i++) {
        int n_chain, n_draw;
        double *value;
        /* d_max may lie within a rigid part, all of it where none moves */
        const int is_shape = i < N_SHAPE;
        const int may_rest =
            is_shape && (options->is_still || strcmp(names[i], "d_max") == 0);
        status =
            tsr_summary_draws(reader, names[i], &n_chain, &n_draw, &value, err);
        if (value != NULL && n_draw >= LEAST_DRAWS &&
            is_finite_row(value, (size_t)n_chain * (size_t)n_draw)) {
            n_seen++;
            n_bad += look_at_chains(names[i], may_rest, n_chain, n_draw, value,
                                    &found, &n_told);
        }
        free(value);
    }
    if (n_seen == 0)
        tsr_words_say(&found, "too few draws to tell (fewer than %d)",
                      LEAST_DRAWS);
    else if (n_bad == 0)
        tsr_words_say(&found,
                      "none stands still, none is apart from the others");
    else if (n_told > MOST_NAMED)
        tsr_words_say(&found, "; and %d more", n_told - MOST_NAMED);
    check->answer = n_seen == 0  ? TSR_CHECK_UNKNOWN
                    : n_bad == 0 ? TSR_CHECK_YES
                                 : TSR_CHECK_NO;
    check->found = tsr_words_end(&found);
    if (n_bad > 0)
        check->remedy = tsr_words_of(
            "give the chains more warm-up (sampler.warmup) or more "
            "temperatures (sampler.temperatures, sampler.t_max); where one "
            "stands still, look at the moves, prior.restraints and "
            "structure.flexible");
    (void)diagnosis;
    return status;
}

static int is_constant(const tsr_diagnosis *diagnosis, const char *name)
{
    const tsr_summary_item *item = tsr_summary_find(diagnosis->summary, name);
    return item != NULL && item->flaw == TSR_FLAW_CONSTANT;
}

TSR_CHECK_FUNCTION(halves)
{
    static const char *const names[] = {"rg", "d_max", "chi2", "lp"};
    const double small = 0.3, rare = 0.05;
    tsr_words found;
    int n_bad = 0, n_seen = 0, n_open = 0;
    double largest = 0.0;
    tsr_status status = TSR_OK;
    tsr_check_start(check, "halves",
                    "do two halves of the chains tell the same?");
    check->limit = small;
    tsr_words_begin(&found);
    for (size_t i = 0; i < sizeof names / sizeof *names && status == TSR_OK;
         i++) {
        int n_chain, n_draw;
        double *value;
        tsr_half_compare half = {(double)NAN, (double)NAN};
        if (is_constant(diagnosis, names[i]))
            continue;
        status =
            tsr_summary_draws(reader, names[i], &n_chain, &n_draw, &value, err);
        if (status == TSR_OK && value != NULL && n_draw >= LEAST_DRAWS)
            status = tsr_half_compare_make(n_chain, n_draw, value, &half, err);
        free(value);
        if (isnan(half.p))
            continue;
        tsr_words_say(&found, "%s%s D = %.3f (p = %.2g)",
                      n_seen++ > 0 ? ", " : "", names[i], half.distance,
                      half.p);
        largest = fmax(largest, half.distance);
        n_bad += half.distance > small && half.p < rare;
        n_open += half.distance > small && !(half.p < rare);
    }
    if (n_seen == 0)
        tsr_words_say(&found, "too few draws to tell");
    else
        tsr_words_say(&found,
                      "; they differ where D is above %g with p below %g",
                      small, rare);
    check->value = n_seen > 0 ? largest : (double)NAN;
    /* far apart, but by too few independent draws to be sure of it */
    check->answer = n_bad > 0                   ? TSR_CHECK_NO
                    : n_seen == 0 || n_open > 0 ? TSR_CHECK_UNKNOWN
                                                : TSR_CHECK_YES;
    check->found = tsr_words_end(&found);
    if (n_bad > 0)
        check->remedy = tsr_check_run_longer(diagnosis, options, 4.0);
    return status;
}

/* The largest difference of a share between the halves, in standard errors for
 * `worth` independent draws in all. */
static double largest_gap(const tsr_arrangements *a, int state, double worth)
{
    double largest = 0.0;
    for (int i = 0; i < a->n; i++) {
        const double *half = a->item[i].half, p = 0.5 * (half[0] + half[1]);
        const double error = sqrt(fmax(p * (1.0 - p), 1e-9) * 4.0 / worth);
        if (a->item[i].state == state)
            largest = fmax(largest, fabs(half[0] - half[1]) / error);
    }
    return largest;
}

/* Of the state whose halves overlap least, the first items being its own. */
static void tell_shares(const tsr_arrangements *a, int state, double overlap,
                        int n_group, tsr_words *found)
{
    int n_told = 0;
    if (state > 0)
        tsr_words_say(found, "state %d: ", state);
    tsr_words_say(found,
                  "%d arrangements of the domains, which overlap by %.2f; "
                  "shares of the largest are",
                  n_group, overlap);
    for (int i = 0; i < a->n; i++)
        if (a->item[i].state == state)
            tsr_words_say(found, "%s %.2f and %.2f", n_told++ > 0 ? "," : "",
                          a->item[i].half[0], a->item[i].half[1]);
}

TSR_CHECK_FUNCTION(arrangements)
{
    const double enough = 0.8, sure = 3.0;
    const tsr_arrangements *a = options->arrangements;
    const tsr_summary_item *rg = tsr_summary_find(diagnosis->summary, "rg");
    int least = 0, i = 0;
    tsr_words found;
    (void)reader, (void)err;
    tsr_check_start(check, "arrangements",
                    "do the halves hold the same structures?");
    check->limit = enough;
    if (a == NULL) {
        check->answer = TSR_CHECK_NOT_ASKED;
        check->found = tsr_words_of("the run has no stored conformations, or "
                                    "no two domains of them move");
        return TSR_OK;
    }
    if (isnan(a->overlap[0])) {
        check->found = tsr_words_of("one chain, so there are no halves");
        return TSR_OK;
    }
    for (int s = 1; s < a->n_state; s++)
        least = a->overlap[s] < a->overlap[least] ? s : least;
    for (int s = 0; s < least; s++) /* its first item */
        i += a->n_group[s] < TSR_MOST_ARRANGEMENTS ? a->n_group[s]
                                                   : TSR_MOST_ARRANGEMENTS;
    const int state = a->item[i].state;
    check->value = a->overlap[least];
    tsr_words_begin(&found);
    tell_shares(a, state, check->value, a->n_group[least], &found);
    check->found = tsr_words_end(&found);
    if (check->value >= enough) {
        check->answer = TSR_CHECK_YES;
    } else if (rg != NULL && rg->value.ess_bulk > 0.0 &&
               largest_gap(a, state,
                           fmin(rg->value.ess_bulk, a->n_seen[least])) > sure) {
        check->answer = TSR_CHECK_NO;
        check->remedy = tsr_words_of(
            "chains stay in the arrangement where they began: give them more "
            "temperatures (sampler.temperatures, sampler.t_max), more warm-up, "
            "or run longer");
    }
    return TSR_OK;
}

/* The last draw of a vector of sample_stats, *value [*n_chain][*n], caller
 * frees; NULL where it is not there or cannot be read. */
static tsr_status get_last(tsr_trace_reader *reader, const char *name,
                           int *n_chain, int *n, double **value, tsr_err *err)
{
    int n_draw;
    *value = NULL;
    if (tsr_trace_shape(reader, TSR_TRACE_SAMPLE_STATS, name, n_chain, &n_draw,
                        n, NULL) != TSR_OK ||
        n_draw < 1 || *n < 1)
        return TSR_OK;
    *value = malloc((size_t)*n_chain * (size_t)*n * sizeof **value);
    TSR_TRY(tsr_allocated(*value, err));
    const tsr_trace_part part = {n_draw - 1, 1, 0, *n};
    if (tsr_trace_get_part(reader, TSR_TRACE_SAMPLE_STATS, name, &part, *value,
                           NULL) != TSR_OK) {
        free(*value);
        *value = NULL;
    }
    return TSR_OK;
}

/* Adds where the ladder is narrowest to what a check found. */
static tsr_status tell_narrowest(tsr_trace_reader *reader, tsr_words *found,
                                 tsr_err *err)
{
    int n_chain, n_pair, n_rung_chain = 0, n_rung = 0, at = 0;
    double *rate, *rung = NULL, least = HUGE_VAL;
    tsr_status status =
        get_last(reader, "exchange_rate", &n_chain, &n_pair, &rate, err);
    TSR_THEN(status, get_last(reader, "ladder_temperature", &n_rung_chain,
                              &n_rung, &rung, err));
    for (int i = 0; rate != NULL && i < n_chain * n_pair; i++)
        if (rate[i] < least) {
            least = rate[i];
            at = i;
        }
    if (isfinite(least)) {
        const int chain = at / n_pair, pair = at % n_pair;
        tsr_words_say(found, "; the rarest exchange is %.2g of those tried",
                      least);
        if (rung != NULL && n_rung == n_pair + 1 && chain < n_rung_chain)
            tsr_words_say(found, ", between T = %.3g and %.3g of chain %d",
                          rung[chain * n_rung + pair],
                          rung[chain * n_rung + pair + 1], chain);
    }
    free(rate);
    free(rung);
    return status;
}

TSR_CHECK_FUNCTION(exchange)
{
    tsr_words found;
    int n_chain, n_draw, n_none = 0;
    double *value = NULL, total = 0.0;
    tsr_check_start(check, "exchange",
                    "do replicas travel between the temperatures?");
    check->limit = 1.0;
    tsr_status status = tsr_summary_draws(reader, "round_trips", &n_chain,
                                          &n_draw, &value, err);
    if (status != TSR_OK)
        return status;
    for (int c = 0; value != NULL && c < n_chain && n_draw > 0; c++) {
        const double *row = value + (size_t)c * (size_t)n_draw;
        total += row[n_draw - 1];
        n_none += !(row[n_draw - 1] >= 1.0);
    }
    if (value == NULL || n_draw == 0) {
        check->found = tsr_words_of("the trace does not say");
    } else if (options->n_temp == 1 || (options->n_temp == 0 && total == 0.0)) {
        check->answer = TSR_CHECK_NOT_ASKED;
        check->found = tsr_words_of("one temperature");
    } else {
        check->value = total / n_chain;
        check->answer = n_none == 0 ? TSR_CHECK_YES : TSR_CHECK_NO;
        tsr_words_begin(&found);
        if (n_none == 0)
            tsr_words_say(&found, "%.0f round trips in all, %.1f a chain",
                          total, total / n_chain);
        else
            tsr_words_say(&found,
                          "no replica of %d of %d chains has been to the "
                          "highest temperature and back",
                          n_none, n_chain);
        status = tell_narrowest(reader, &found, err);
        check->found = tsr_words_end(&found);
        if (n_none > 0)
            check->remedy = tsr_words_of(
                "add temperatures (sampler.temperatures=%d), lower "
                "sampler.t_max, or run longer",
                options->n_temp > 0 ? options->n_temp + 4 : 10);
    }
    free(value);
    (void)diagnosis;
    return status;
}
