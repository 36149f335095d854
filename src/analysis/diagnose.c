/* The questions of `tessera diagnose`, their answers, and the output as text
 * and JSON.
 *
 * A run has converged if no answer is no, and R-hat and effective sample size
 * have the answer yes. */
#include "analysis/diagnose.h"

#include "analysis/convergence.h"
#include "core/json.h"
#include "core/pool.h"
#include "core/text.h"

#include <gsl/gsl_sort.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

/* ---- chains of one variable compared ----
 *
 * Chains that have converged visit the same values. Each function detects one
 * failure: a chain that does not move, and a chain whose middle 90 % lies apart
 * from that of all other chains. */

int tsr_longest_constant_run(int n_draw, const double *value)
{
    int longest = 0, run = 0;
    for (int d = 0; d < n_draw; d++) {
        run = d > 0 && value[d] == value[d - 1] ? run + 1 : 1;
        longest = run > longest ? run : longest;
    }
    return longest;
}

typedef struct {
    double low, high;
} range;

/* The middle 90 % of x [n]. Sorts x. */
static range middle_of(double *x, size_t n)
{
    gsl_sort(x, 1, n);
    return (range){x[(size_t)(0.05 * (double)(n - 1))],
                   x[(size_t)ceil(0.95 * (double)(n - 1))]};
}

double tsr_chain_gap(int n_chain, int n_draw, const double *value, int c)
{
    const size_t row = (size_t)n_draw, n = (size_t)n_chain * row;
    double *copy = n_chain > 1 && n_draw > 0 ? malloc(n * sizeof *copy) : NULL;
    if (copy == NULL)
        return (double)NAN;
    const size_t at = (size_t)c * row;
    memcpy(copy, value + at, row * sizeof *copy);
    memcpy(copy + row, value, at * sizeof *copy);
    memcpy(copy + row + at, value + at + row, (n - at - row) * sizeof *copy);
    const range chain = middle_of(copy, row);
    const range others = middle_of(copy + row, n - row);
    free(copy);
    const double width = fmax(chain.high - chain.low, others.high - others.low);
    const double rounding = 1e-13 * fmax(fabs(chain.high), fabs(chain.low));
    if (chain.low > others.high + rounding)
        return (chain.low - others.high) / width;
    if (chain.high < others.low - rounding)
        return (chain.high - others.low) / width;
    return 0.0;
}

/* ---- questions ---- */

/* A check under way: its result in `check`, and the text of its reason. */
typedef struct {
    tsr_diagnosis *d;
    tsr_trace_reader *reader;
    const tsr_diagnose_options *options;
    tsr_check *check;
    tsr_words found;
} question;

static void answer(question *q, tsr_answer answer, double value)
{
    q->check->answer = answer;
    q->check->value = value;
}

#define remedy(q, ...) \
    ((q)->check->remedy = tsr_pool_format(&(q)->d->pool, __VA_ARGS__))

/* "; " before every entry of a list but the first. */
static const char *separator(int *n_printed)
{
    return (*n_printed)++ > 0 ? "; " : "";
}

/* 1: R-hat of the item counts. Other checks report variables that are constant
 * or lack numbers. */
static int must_converge(const tsr_summary_item *item)
{
    return item->flaw == TSR_FLAW_NONE;
}

/* Recommends a longer run: by the command line that continues the run, once for
 * all checks; without a command line by an option such as "--set
 * sampler.draws=8000", with `factor` times as many draws. */
static void recommend_draws(question *q, double factor)
{
    const tsr_diagnose_options *o = q->options;
    const double most = 1000.0; /* larger factors would be guesswork */
    const double times = fmin(most, fmax(2.0, ceil(factor)));
    const double draws =
        times * (double)(o->draws > 0 ? o->draws : q->d->n_draw);
    if (o->advice != NULL)
        q->d->advice = tsr_pool_text(&q->d->pool, o->advice);
    else if (o->warmup > 0)
        remedy(q,
               "run longer, for example with --set sampler.warmup=%.0f "
               "--set sampler.draws=%.0f",
               2.0 * (double)o->warmup, draws);
    else
        remedy(q, "run longer, for example with --set sampler.draws=%.0f",
               draws);
}

/* Are all draws finite, and is the file readable? */
static tsr_status ask_finite(question *q, tsr_err *err)
{
    const tsr_diagnosis *d = q->d;
    int n_bad = 0;
    (void)err;
    for (int i = 0; i < d->summary->n; i++)
        if (d->summary->item[i].flaw_text != NULL)
            tsr_words_add(&q->found, "%s%s", separator(&n_bad),
                          d->summary->item[i].flaw_text);
    for (int i = 0; i < d->n_curve; i++)
        if (d->curve[i]->n_bad > 0)
            tsr_words_add(&q->found, "%s%s is not finite at %d of %d points",
                          separator(&n_bad), d->curve[i]->name,
                          d->curve[i]->n_bad, d->curve[i]->n);
    if (n_bad == 0)
        tsr_words_add(&q->found, "all of them");
    else
        remedy(q, "this should not happen: repeat the run with --device "
                  "reference; if it happens again, report it with config.yaml");
    answer(q, n_bad == 0 ? TSR_CHECK_YES : TSR_CHECK_NO, (double)NAN);
    return TSR_OK;
}

/* Is there more than one chain? R-hat of a single chain cannot detect a mode
 * that the chain missed. */
static tsr_status ask_chains(question *q, tsr_err *err)
{
    const int n = q->d->n_chain;
    (void)err;
    q->check->limit = 2.0;
    answer(q, n > 1 ? TSR_CHECK_YES : TSR_CHECK_NO, n);
    tsr_words_add(&q->found, "%d chain%s of %d draws", n, n == 1 ? "" : "s",
                  q->d->n_draw);
    if (n < 2)
        remedy(q,
               "a single chain cannot reveal conformations that it missed: run "
               "at least two chains, better four, with --set sampler.chains=4");
    return TSR_OK;
}

/* R-hat of every variable (Vehtari et al. 2021). */
static tsr_status ask_rhat(question *q, tsr_err *err)
{
    const tsr_summary *summary = q->d->summary;
    const double limit = q->check->limit = q->options->rhat;
    const tsr_summary_item *worst = NULL;
    int n_above = 0, n = 0;
    (void)err;
    for (int i = 0; i < summary->n; i++) {
        const tsr_summary_item *item = &summary->item[i];
        if (!must_converge(item))
            continue;
        n++;
        n_above += item->value.rhat > limit;
        if (worst == NULL || item->value.rhat > worst->value.rhat)
            worst = item;
    }
    if (worst == NULL)
        tsr_words_add(&q->found, "no variable has an R-hat: too few draws, or "
                                 "all values are constant");
    else if (n_above == 0)
        tsr_words_add(&q->found,
                      "the largest R-hat of %d variables is %.4f "
                      "(%s)",
                      n, worst->value.rhat, worst->name);
    else
        tsr_words_add(&q->found,
                      "R-hat is above %g for %d of %d variables, largest for "
                      "%s: %.3f",
                      limit, n_above, n, worst->name, worst->value.rhat);
    if (worst != NULL)
        answer(q, n_above == 0 ? TSR_CHECK_YES : TSR_CHECK_NO,
               worst->value.rhat);
    if (worst == NULL || n_above > 0)
        recommend_draws(q, 4.0);
    return TSR_OK;
}

/* Bulk and tail effective sample size of every variable. */
static tsr_status ask_ess(question *q, tsr_err *err)
{
    double least;
    const double limit = q->check->limit = q->options->ess;
    const tsr_summary_item *worst = tsr_summary_slowest(q->d->summary, &least);
    (void)err;
    if (worst == NULL) {
        tsr_words_add(&q->found, "no variable has an effective sample size: "
                                 "too few draws, or all values are constant");
        recommend_draws(q, 4.0);
        return TSR_OK;
    }
    answer(q, least >= limit ? TSR_CHECK_YES : TSR_CHECK_NO, least);
    tsr_words_add(
        &q->found, "the smallest is %.0f of %.0f draws (%s), %.0f are required",
        least, (double)worst->n_chain * worst->n_draw, worst->name, limit);
    if (least < limit)
        recommend_draws(q, 1.2 * limit / least);
    return TSR_OK;
}

/* R-hat of the computed curve at every q. */
static tsr_status ask_profile(question *q, tsr_err *err)
{
    const double limit = q->check->limit = q->options->rhat;
    double largest = 0.0;
    int n_printed = 0;
    (void)err;
    if (q->d->n_curve == 0) {
        answer(q, TSR_CHECK_NOT_ASKED, (double)NAN);
        tsr_words_add(&q->found, "the trace has no curve: the run had no data");
        return TSR_OK;
    }
    for (int i = 0; i < q->d->n_curve; i++) {
        const tsr_curve_summary *c = q->d->curve[i];
        const int worst = tsr_curve_summary_worst(c);
        int n_above = 0;
        if (worst < 0)
            continue;
        for (int k = 0; k < c->n; k++)
            n_above += c->point[k].rhat > limit;
        tsr_words_add(
            &q->found,
            "%s%s: the largest R-hat is %.3f, at q = %.4g; above %g at %d of "
            "%d points",
            separator(&n_printed), c->name, c->point[worst].rhat, c->q[worst],
            limit, n_above, c->n);
        largest = fmax(largest, c->point[worst].rhat);
    }
    if (n_printed == 0)
        tsr_words_add(&q->found, "too few draws");
    else
        answer(q, largest <= limit ? TSR_CHECK_YES : TSR_CHECK_NO, largest);
    if (q->check->answer == TSR_CHECK_NO)
        recommend_draws(q, 4.0);
    return TSR_OK;
}

/* ---- questions about chains ----
 *
 * Checks that compare single chains, or halves of the chains. R-hat and
 * effective sample size show that something is wrong; these checks show in
 * which chains. A check with too few draws has the answer unknown, which does
 * not count as yes. */

static int is_finite_row(const double *value, size_t n)
{
    for (size_t i = 0; i < n; i++)
        if (!isfinite(value[i]))
            return 0;
    return n > 0;
}

enum { LEAST_DRAWS = 8, MOST_NAMED = 5 };

/* Reports in `found` the chains of one variable that stand still or lie apart
 * from all others. may_rest 1: standing still is not reported. Returns the
 * number of such chains. */
static int check_single_chains(const char *name, int may_rest, int n_chain,
                               int n_draw, const double *value,
                               tsr_words *found, int *n_printed)
{
    const double far = 0.5; /* in widths of the middle 90 % */
    int n_bad = 0;
    for (int c = 0; c < n_chain; c++) {
        const double *row = value + (size_t)c * (size_t)n_draw;
        const int rest = tsr_longest_constant_run(n_draw, row);
        const double gap = tsr_chain_gap(n_chain, n_draw, value, c);
        const int is_constant_long =
            !may_rest && 4 * rest >= n_draw && rest >= LEAST_DRAWS;
        if (!is_constant_long && !(fabs(gap) > far))
            continue;
        n_bad++;
        if ((*n_printed)++ >= MOST_NAMED)
            continue;
        tsr_words_add(found, "%s", *n_printed > 1 ? "; " : "");
        if (is_constant_long)
            tsr_words_add(found,
                          "%s of chain %d does not change for %d of %d draws",
                          name, c, rest, n_draw);
        else
            tsr_words_add(found,
                          "chain %d has its own level of %s, %s that of the "
                          "other chains",
                          c, name, gap < 0.0 ? "below" : "above");
    }
    return n_bad;
}

/* Which chains stand still, or lie apart from all others? */
static tsr_status ask_stuck(question *q, tsr_err *err)
{
    /* The first N_SHAPE names describe the structure, the others the fit. */
    enum { N_SHAPE = 2 };
    static const char *const names[] = {"rg", "d_max", "lp", "chi2"};
    int n_bad = 0, n_printed = 0, n_seen = 0;
    tsr_status status = TSR_OK;
    for (size_t i = 0; i < sizeof names / sizeof *names && status == TSR_OK;
         i++) {
        int n_chain, n_draw;
        double *value;
        /* d_max may be a distance within a rigid part, and stays constant
         * then */
        const int may_rest = i < N_SHAPE && (q->options->is_frozen ||
                                             strcmp(names[i], "d_max") == 0);
        status = tsr_summary_draws(q->reader, names[i], &n_chain, &n_draw,
                                   &value, err);
        if (value != NULL && n_draw >= LEAST_DRAWS &&
            is_finite_row(value, (size_t)n_chain * (size_t)n_draw)) {
            n_seen++;
            n_bad += check_single_chains(names[i], may_rest, n_chain, n_draw,
                                         value, &q->found, &n_printed);
        }
        free(value);
    }
    if (n_seen == 0)
        tsr_words_add(&q->found, "too few draws (fewer than %d)", LEAST_DRAWS);
    else if (n_bad == 0)
        tsr_words_add(&q->found,
                      "no chain is stuck, no chain is apart from the others");
    else if (n_printed > MOST_NAMED)
        tsr_words_add(&q->found, "; and %d more", n_printed - MOST_NAMED);
    if (n_seen > 0)
        answer(q, n_bad == 0 ? TSR_CHECK_YES : TSR_CHECK_NO, (double)NAN);
    if (n_bad > 0)
        remedy(
            q,
            "give the chains more warm-up (sampler.warmup) or more "
            "temperatures (sampler.temperatures, sampler.t_max); for a stuck "
            "chain, check the moves, prior.restraints and structure.flexible");
    return status;
}

/* The largest difference of an arrangement's share between the halves, in
 * standard errors for a total of n_independent independent draws. */
static double largest_gap(const tsr_arrangements *a, int state,
                          double n_independent)
{
    double largest = 0.0;
    for (int i = 0; i < a->n; i++) {
        const double *half = a->item[i].half, p = 0.5 * (half[0] + half[1]);
        const double error =
            sqrt(fmax(p * (1.0 - p), 1e-9) * 4.0 / n_independent);
        if (a->item[i].state == state)
            largest = fmax(largest, fabs(half[0] - half[1]) / error);
    }
    return largest;
}

/* Describes the state whose halves overlap least. */
static void print_shares(const tsr_arrangements *a, int state, double overlap,
                         int n_group, tsr_words *found)
{
    int n_printed = 0;
    if (state > 0)
        tsr_words_add(found, "state %d: ", state);
    tsr_words_add(found,
                  "%d arrangements of the domains, with an overlap of %.2f "
                  "between the halves; fractions of the largest are",
                  n_group, overlap);
    for (int i = 0; i < a->n; i++)
        if (a->item[i].state == state)
            tsr_words_add(found, "%s %.2f and %.2f", n_printed++ > 0 ? "," : "",
                          a->item[i].half[0], a->item[i].half[1]);
}

/* Shares of the domains' arrangements in two halves of the chains. */
static tsr_status ask_arrangements(question *q, tsr_err *err)
{
    const double enough = 0.8, sure = 3.0;
    const tsr_arrangements *a = q->options->arrangements;
    const tsr_summary_item *rg = tsr_summary_find(q->d->summary, "rg");
    int least = 0, i = 0;
    (void)err;
    q->check->limit = enough;
    if (a == NULL) {
        answer(q, TSR_CHECK_NOT_ASKED, (double)NAN);
        tsr_words_add(&q->found, "the run stored no conformations, or no two "
                                 "domains move relative to each other");
        return TSR_OK;
    }
    if (isnan(a->overlap[0])) {
        tsr_words_add(&q->found, "a single chain has no two halves of chains");
        return TSR_OK;
    }
    for (int s = 1; s < a->n_state; s++)
        least = a->overlap[s] < a->overlap[least] ? s : least;
    for (int s = 0; s < least; s++) /* index of the state's first item */
        i += a->n_group[s] < TSR_MOST_ARRANGEMENTS ? a->n_group[s]
                                                   : TSR_MOST_ARRANGEMENTS;
    const int state = a->item[i].state;
    const double overlap = q->check->value = a->overlap[least];
    print_shares(a, state, overlap, a->n_group[least], &q->found);
    if (overlap >= enough) {
        q->check->answer = TSR_CHECK_YES;
    } else if (rg != NULL && rg->value.ess_bulk > 0.0 &&
               largest_gap(a, state,
                           fmin(rg->value.ess_bulk, a->n_seen[least])) > sure) {
        q->check->answer = TSR_CHECK_NO;
        remedy(q, "chains stay in the arrangement where they began: use more "
                  "temperatures (sampler.temperatures, sampler.t_max), more "
                  "warm-up, or longer runs");
    }
    return TSR_OK;
}

/* Reads the last draw of a vector of sample_stats: *value [*n_chain][*n], the
 * caller frees it; NULL where the trace lacks the vector or cannot be read. */
static tsr_status read_last_draw(tsr_trace_reader *reader, const char *name,
                                 int *n_chain, int *n, double **value,
                                 tsr_err *err)
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

/* Adds to the reason the pair of temperatures with the fewest exchanges. */
static tsr_status print_rarest_exchange(tsr_trace_reader *reader,
                                        tsr_words *found, tsr_err *err)
{
    int n_chain, n_pair, n_rung_chain = 0, n_rung = 0, at = 0;
    double *rate, *rung = NULL, least = HUGE_VAL;
    tsr_status status =
        read_last_draw(reader, "exchange_rate", &n_chain, &n_pair, &rate, err);
    TSR_THEN(status, read_last_draw(reader, "ladder_temperature", &n_rung_chain,
                                    &n_rung, &rung, err));
    for (int i = 0; rate != NULL && i < n_chain * n_pair; i++)
        if (rate[i] < least) {
            least = rate[i];
            at = i;
        }
    if (isfinite(least)) {
        const int chain = at / n_pair, pair = at % n_pair;
        tsr_words_add(found, "; the smallest exchange rate is %.2g", least);
        if (rung != NULL && n_rung == n_pair + 1 && chain < n_rung_chain)
            tsr_words_add(found, ", between T = %.3g and %.3g of chain %d",
                          rung[chain * n_rung + pair],
                          rung[chain * n_rung + pair + 1], chain);
    }
    free(rate);
    free(rung);
    return status;
}

/* Round trips of replicas between the lowest and the highest temperature. */
static tsr_status ask_exchange(question *q, tsr_err *err)
{
    const int n_temp = q->options->n_temp;
    int n_chain, n_draw, n_none = 0;
    double *value = NULL, total = 0.0;
    q->check->limit = 1.0;
    TSR_TRY(tsr_summary_draws(q->reader, "round_trips", &n_chain, &n_draw,
                              &value, err));
    if (value == NULL) {
        tsr_words_add(&q->found, "not in the trace");
        return TSR_OK;
    }
    for (int c = 0; c < n_chain; c++) {
        const double last = value[(size_t)(c + 1) * (size_t)n_draw - 1];
        total += last;
        n_none += !(last >= 1.0);
    }
    free(value);
    if (n_temp == 1 || (n_temp == 0 && total == 0.0)) {
        answer(q, TSR_CHECK_NOT_ASKED, (double)NAN);
        tsr_words_add(&q->found, "a single temperature");
        return TSR_OK;
    }
    answer(q, n_none == 0 ? TSR_CHECK_YES : TSR_CHECK_NO, total / n_chain);
    if (n_none == 0)
        tsr_words_add(&q->found, "%.0f round trips in total, %.1f per chain",
                      total, total / n_chain);
    else
        tsr_words_add(&q->found,
                      "no replica of %d of %d chains has travelled to the "
                      "highest temperature and back",
                      n_none, n_chain);
    if (n_none > 0)
        remedy(q,
               "add temperatures (sampler.temperatures=%d), lower "
               "sampler.t_max, or run longer",
               n_temp > 0 ? n_temp + 4 : 10);
    return print_rarest_exchange(q->reader, &q->found, err);
}

static const struct {
    const char *name, *asks;
    tsr_status (*ask)(question *q, tsr_err *err);
} questions[TSR_N_CHECK] = {
    {"finite", "are all draws finite numbers?", ask_finite},
    {"chains", "are there chains to compare?", ask_chains},
    {"rhat", "do the chains agree on every variable?", ask_rhat},
    {"ess", "are there enough independent draws?", ask_ess},
    {"stuck", "do all chains move, and in the same region?", ask_stuck},
    {"profile", "do the chains agree on the curve at every q?", ask_profile},
    {"arrangements",
     "do both halves of the chains contain the same structures?",
     ask_arrangements},
    {"exchange", "do replicas travel between the temperatures?", ask_exchange},
};

/* ---- the diagnosis ---- */

/* Largest number of values of one curve that are summarised, which takes some
 * seconds. */
static const double most_numbers = 2e7;

void tsr_diagnosis_free(tsr_diagnosis *diagnosis)
{
    if (diagnosis == NULL)
        return;
    for (int i = 0; i < diagnosis->n_curve; i++)
        tsr_curve_summary_free(diagnosis->curve[i]);
    tsr_pool_clear(&diagnosis->pool);
    free(diagnosis);
}

/* Adds the summary of the expected curve of every data set. */
static tsr_status add_curves(tsr_diagnosis *d, tsr_trace_reader *reader,
                             tsr_err *err)
{
    const char *const *name;
    tsr_status status = TSR_OK;
    int n = tsr_trace_variables(reader, TSR_TRACE_POSTERIOR_PREDICTIVE, &name);
    tsr_pool_array(&d->pool, d->curve, n);
    TSR_TRY(tsr_pool_check(&d->pool, err));
    for (int i = 0; i < n && status == TSR_OK; i++)
        if (strncmp(name[i], "intensity_mean", 14) == 0) {
            status = tsr_curve_summary_make(reader, name[i], most_numbers,
                                            &d->curve[d->n_curve], err);
            d->n_curve += status == TSR_OK;
        }
    return status;
}

static void set_converged(tsr_diagnosis *d)
{
    d->is_converged = 1;
    for (int i = 0; i < d->n; i++) {
        const tsr_check *c = &d->check[i];
        const int is_needed =
            strcmp(c->name, "rhat") == 0 || strcmp(c->name, "ess") == 0;
        if (c->answer == TSR_CHECK_NO ||
            (is_needed && c->answer != TSR_CHECK_YES))
            d->is_converged = 0;
    }
}

tsr_status tsr_diagnose(tsr_trace_reader *reader,
                        const tsr_diagnose_options *options,
                        tsr_diagnosis **out, tsr_err *err)
{
    *out = NULL;
    tsr_diagnosis *d = calloc(1, sizeof *d);
    TSR_TRY(tsr_allocated(d, err));
    d->summary = options->summary;
    tsr_status status = add_curves(d, reader, err);
    for (int i = 0; status == TSR_OK && i < d->summary->n; i++)
        if (d->summary->item[i].n_draw > 0 && d->n_draw == 0) {
            d->n_chain = d->summary->item[i].n_chain;
            d->n_draw = d->summary->item[i].n_draw;
        }
    for (; d->n < TSR_N_CHECK && status == TSR_OK; d->n++) {
        question q = {d, reader, options, &d->check[d->n], {.out = NULL}};
        *q.check = (tsr_check){.name = questions[d->n].name,
                               .asks = questions[d->n].asks,
                               .answer = TSR_CHECK_UNKNOWN,
                               .value = (double)NAN,
                               .limit = (double)NAN};
        tsr_words_begin(&q.found);
        status = questions[d->n].ask(&q, err);
        char *found = tsr_words_end(&q.found);
        q.check->found = tsr_pool_text(&d->pool, found);
        TSR_THEN(status, tsr_allocated(found, err));
        TSR_THEN(status, tsr_pool_check(&d->pool, err));
        free(found);
    }
    if (status != TSR_OK) {
        tsr_diagnosis_free(d);
        return status;
    }
    set_converged(d);
    if (d->is_converged)
        d->advice = NULL;
    *out = d;
    return TSR_OK;
}

/* ---- output: text for users, JSON for programs that wait for convergence
 * ---- */

static const char *const answer_name[] = {
    [TSR_CHECK_YES] = "yes",
    [TSR_CHECK_NO] = "no",
    [TSR_CHECK_UNKNOWN] = "unknown",
    [TSR_CHECK_NOT_ASKED] = "not asked",
};

void tsr_diagnosis_print(const tsr_diagnosis *diagnosis, FILE *out)
{
    enum { INDENT = 9 };
    static const char *const shown[] = {"yes", "NO", "?", "-"};
    int n_no = 0;
    for (int i = 0; i < diagnosis->n; i++) {
        const tsr_check *c = &diagnosis->check[i];
        n_no += c->answer == TSR_CHECK_NO;
        fprintf(out, "  %-*s%s\n", INDENT - 2, shown[c->answer], c->asks);
        tsr_text_wrap(out, 0, INDENT, "", c->found);
        if (c->remedy != NULL) {
            fprintf(out, "%*s-> ", INDENT, "");
            tsr_text_wrap(out, INDENT + 3, INDENT + 3, "", c->remedy);
        }
    }
    if (diagnosis->is_converged)
        fputs("\nconverged, as far as these tests can tell\n", out);
    else if (n_no > 0)
        fprintf(out, "\nnot converged: %d answer%s no\n", n_no,
                n_no == 1 ? " is" : "s are");
    else
        fputs("\nnot shown to have converged: too few draws\n", out);
    if (diagnosis->advice != NULL)
        fprintf(out, "To continue:\n    %s\n", diagnosis->advice);
}

static void put_check(tsr_json *j, const tsr_check *c)
{
    tsr_json_object(j, NULL);
    tsr_json_members(
        j, "name %s asks %s answer %s value %g limit %g found %s remedy %s",
        c->name, c->asks, answer_name[c->answer], c->value, c->limit, c->found,
        c->remedy);
    tsr_json_close(j);
}

static void put_curve(tsr_json *j, const tsr_curve_summary *c)
{
    tsr_json_object(j, c->name);
    tsr_json_numbers(j, "q", c->n, c->q);
    tsr_json_array(j, "rhat");
    for (int k = 0; k < c->n; k++)
        tsr_json_number(j, NULL, c->point[k].rhat);
    tsr_json_close(j);
    tsr_json_array(j, "ess_bulk");
    for (int k = 0; k < c->n; k++)
        tsr_json_number(j, NULL, c->point[k].ess_bulk);
    tsr_json_close(j);
    tsr_json_close(j);
}

void tsr_diagnosis_print_json(const tsr_diagnosis *diagnosis, FILE *out)
{
    const tsr_summary *s = diagnosis->summary;
    tsr_json j = {.out = out};
    tsr_json_object(&j, NULL);
    tsr_json_members(&j, "converged %i n_chain %d n_draw %d advice %s",
                     diagnosis->is_converged, diagnosis->n_chain,
                     diagnosis->n_draw, diagnosis->advice);
    tsr_json_array(&j, "checks");
    for (int i = 0; i < diagnosis->n; i++)
        put_check(&j, &diagnosis->check[i]);
    tsr_json_close(&j);
    tsr_json_object(&j, "variables");
    for (int i = 0; i < s->n; i++) {
        tsr_json_object(&j, s->item[i].name);
        tsr_json_members(&j, "rhat %g ess_bulk %g ess_tail %g",
                         s->item[i].value.rhat, s->item[i].value.ess_bulk,
                         s->item[i].value.ess_tail);
        tsr_json_close(&j);
    }
    tsr_json_close(&j);
    tsr_json_object(&j, "curves");
    for (int i = 0; i < diagnosis->n_curve; i++)
        put_curve(&j, diagnosis->curve[i]);
    tsr_json_close(&j);
    tsr_json_close(&j);
}
