#include "analysis/diagnose_checks.h"

#include "analysis/chain_compare.h"

#include <math.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

/* Texts that grow. A failed allocation leaves text NULL, and it stays so. */
typedef struct {
    FILE *out;
    char *text;
    size_t size;
} words;

static void begin(words *w)
{
    *w = (words){NULL, NULL, 0};
    w->out = open_memstream(&w->text, &w->size);
}

static void say(words *w, const char *format, ...) TSR_PRINTF(2, 3);
static void say(words *w, const char *format, ...)
{
    va_list list;
    va_start(list, format);
    if (w->out != NULL)
        vfprintf(w->out, format, list);
    va_end(list);
}

/* The text, for the caller to free; NULL: out of memory. */
static char *end(words *w)
{
    if (w->out == NULL)
        return NULL;
    if (fclose(w->out) == 0)
        return w->text;
    free(w->text);
    return NULL;
}

static char *text_of(const char *format, ...) TSR_PRINTF(1, 2);
static char *text_of(const char *format, ...)
{
    va_list list;
    words w;
    begin(&w);
    va_start(list, format);
    if (w.out != NULL)
        vfprintf(w.out, format, list);
    va_end(list);
    return end(&w);
}

static void start(tsr_check *check, const char *name, const char *asks)
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

/* "--set sampler.draws=8000", `factor` times as many. */
static char *run_longer(const tsr_diagnosis *d,
                        const tsr_diagnose_options *options, double factor)
{
    const double draws =
        options->draws > 0 ? (double)options->draws : d->n_draw;
    const double most = 1000.0; /* further is not to be foretold */
    const double times = fmin(most, fmax(2.0, ceil(factor)));
    if (options->warmup > 0)
        return text_of("run longer, for example with --set sampler.warmup=%.0f "
                       "--set sampler.draws=%.0f",
                       2.0 * (double)options->warmup, times * draws);
    return text_of("run longer, for example with --set sampler.draws=%.0f",
                   times * draws);
}

TSR_CHECK_FUNCTION(finite)
{
    words found;
    int n_bad = 0;
    (void)reader, (void)options, (void)err;
    start(check, "finite", "are all draws numbers?");
    begin(&found);
    for (int i = 0; i < diagnosis->summary->n; i++)
        if (diagnosis->summary->item[i].flaw_text != NULL)
            say(&found, "%s%s", n_bad++ > 0 ? "; " : "",
                diagnosis->summary->item[i].flaw_text);
    for (int i = 0; i < diagnosis->n_curve; i++)
        if (diagnosis->curve[i]->n_bad > 0)
            say(&found, "%s%s is not finite at %d of %d points",
                n_bad++ > 0 ? "; " : "", diagnosis->curve[i]->name,
                diagnosis->curve[i]->n_bad, diagnosis->curve[i]->n);
    if (n_bad == 0)
        say(&found, "all of them");
    check->answer = n_bad == 0 ? TSR_CHECK_YES : TSR_CHECK_NO;
    check->found = end(&found);
    if (n_bad > 0)
        check->remedy = text_of("this should not happen: repeat the run with "
                                "--device reference, and where it stays so, "
                                "report it with config.yaml");
    return TSR_OK;
}

TSR_CHECK_FUNCTION(chains)
{
    (void)reader, (void)options, (void)err;
    start(check, "chains", "are there chains to compare?");
    check->value = diagnosis->n_chain;
    check->limit = 2.0;
    check->answer = diagnosis->n_chain > 1 ? TSR_CHECK_YES : TSR_CHECK_NO;
    check->found =
        text_of("%d chain%s of %d draws", diagnosis->n_chain,
                diagnosis->n_chain == 1 ? "" : "s", diagnosis->n_draw);
    if (diagnosis->n_chain < 2)
        check->remedy =
            text_of("one chain cannot show what it never found: run at least "
                    "two, better four, with --set sampler.chains=4");
    return TSR_OK;
}

TSR_CHECK_FUNCTION(rhat)
{
    const tsr_summary_item *worst = NULL;
    int n_above = 0, n = 0;
    (void)reader, (void)err;
    start(check, "rhat", "do the chains agree on every variable?");
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
        check->found = text_of("no variable has an R-hat: too few draws, or "
                               "nothing varies");
        check->remedy = run_longer(diagnosis, options, 4.0);
        return TSR_OK;
    }
    check->value = worst->value.rhat;
    check->answer = n_above == 0 ? TSR_CHECK_YES : TSR_CHECK_NO;
    check->found =
        n_above == 0
            ? text_of("the largest R-hat of %d variables is %.4f (%s)", n,
                      worst->value.rhat, worst->name)
            : text_of("R-hat is above %g for %d of %d variables, largest for "
                      "%s: %.3f",
                      options->rhat, n_above, n, worst->name,
                      worst->value.rhat);
    if (n_above > 0)
        check->remedy = run_longer(diagnosis, options, 4.0);
    return TSR_OK;
}

TSR_CHECK_FUNCTION(ess)
{
    const tsr_summary_item *worst = NULL;
    double least = HUGE_VAL;
    (void)reader, (void)err;
    start(check, "ess", "are there enough independent draws?");
    check->limit = options->ess;
    for (int i = 0; i < diagnosis->summary->n; i++) {
        const tsr_summary_item *item = &diagnosis->summary->item[i];
        const double ess = fmin(item->value.ess_bulk, item->value.ess_tail);
        if (counts(item) && ess < least) {
            least = ess;
            worst = item;
        }
    }
    if (worst == NULL) {
        check->found = text_of("no variable has an effective sample size: too "
                               "few draws, or nothing varies");
        check->remedy = run_longer(diagnosis, options, 4.0);
        return TSR_OK;
    }
    check->value = least;
    check->answer = least >= options->ess ? TSR_CHECK_YES : TSR_CHECK_NO;
    check->found = text_of(
        "the least is %.0f of %.0f draws (%s), %.0f are asked for", least,
        (double)worst->n_chain * worst->n_draw, worst->name, options->ess);
    if (least < options->ess)
        check->remedy =
            run_longer(diagnosis, options, 1.2 * options->ess / least);
    return TSR_OK;
}

/* ---- chains ---- */

/* A variable of either group, whole and a number a draw; NULL where it is not
 * there. */
static tsr_status get(tsr_trace_reader *reader, const char *name, int *n_chain,
                      int *n_draw, double **value, tsr_err *err)
{
    static const tsr_trace_group group[] = {TSR_TRACE_POSTERIOR,
                                            TSR_TRACE_SAMPLE_STATS};
    int n;
    *value = NULL;
    for (int g = 0; g < 2; g++) {
        if (tsr_trace_shape(reader, group[g], name, n_chain, n_draw, &n,
                            NULL) != TSR_OK ||
            n != 1)
            continue;
        tsr_err local;
        tsr_status status = tsr_trace_get(reader, group[g], name, n_chain,
                                          n_draw, &n, value, &local);
        /* what is damaged is told by the check of finite numbers */
        return status == TSR_E_NOMEM
                   ? tsr_fail(err, status, "%s", local.message)
                   : TSR_OK;
    }
    return TSR_OK;
}

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
static int look_at_chains(const char *name, int n_chain, int n_draw,
                          const double *value, words *found, int *n_told)
{
    const double far = 0.5; /* of the middle 90 % */
    int n_bad = 0;
    for (int c = 0; c < n_chain; c++) {
        const double *row = value + (size_t)c * (size_t)n_draw;
        const int rest = tsr_longest_rest(n_draw, row);
        const double gap = tsr_chain_gap(n_chain, n_draw, value, c);
        const int stands = 4 * rest >= n_draw && rest >= LEAST_DRAWS;
        if (!stands && !(fabs(gap) > far))
            continue;
        n_bad++;
        if ((*n_told)++ >= MOST_NAMED)
            continue;
        say(found, "%s", *n_told > 1 ? "; " : "");
        if (stands)
            say(found, "%s of chain %d does not change for %d of %d draws",
                name, c, rest, n_draw);
        else
            say(found, "chain %d has its own %s, %s those of the others", c,
                name, gap < 0.0 ? "below" : "above");
    }
    return n_bad;
}

TSR_CHECK_FUNCTION(stuck)
{
    /* the structure, and how well it fits */
    static const char *const names[] = {"rg", "d_max", "lp", "chi2"};
    words found;
    int n_bad = 0, n_told = 0, n_seen = 0;
    tsr_status status = TSR_OK;
    start(check, "stuck", "do all chains move, and in the same place?");
    begin(&found);
    for (size_t i = 0; i < sizeof names / sizeof *names && status == TSR_OK;
         i++) {
        int n_chain, n_draw;
        double *value;
        status = get(reader, names[i], &n_chain, &n_draw, &value, err);
        if (value != NULL && n_draw >= LEAST_DRAWS &&
            is_finite_row(value, (size_t)n_chain * (size_t)n_draw)) {
            n_seen++;
            n_bad += look_at_chains(names[i], n_chain, n_draw, value, &found,
                                    &n_told);
        }
        free(value);
    }
    if (n_seen == 0)
        say(&found, "too few draws to tell (fewer than %d)", LEAST_DRAWS);
    else if (n_bad == 0)
        say(&found, "none stands still, none is apart from the others");
    else if (n_told > MOST_NAMED)
        say(&found, "; and %d more", n_told - MOST_NAMED);
    check->answer = n_seen == 0  ? TSR_CHECK_UNKNOWN
                    : n_bad == 0 ? TSR_CHECK_YES
                                 : TSR_CHECK_NO;
    check->found = end(&found);
    if (n_bad > 0)
        check->remedy = text_of(
            "give the chains more warm-up (sampler.warmup) or more "
            "temperatures (sampler.temperatures, sampler.t_max); where one "
            "stands still, look at the moves, prior.restraints and "
            "structure.flexible");
    (void)diagnosis, (void)options;
    return status;
}

TSR_CHECK_FUNCTION(profile)
{
    words found;
    double largest = 0.0;
    int n_told = 0;
    (void)reader, (void)err;
    start(check, "profile", "do the chains agree on the curve, at every q?");
    check->limit = options->rhat;
    if (diagnosis->n_curve == 0) {
        check->answer = TSR_CHECK_NOT_ASKED;
        check->found = text_of("the trace has no curve: no data");
        return TSR_OK;
    }
    begin(&found);
    for (int i = 0; i < diagnosis->n_curve; i++) {
        const tsr_curve_summary *c = diagnosis->curve[i];
        const int worst = tsr_curve_summary_worst(c);
        int n_above = 0;
        if (worst < 0)
            continue;
        for (int k = 0; k < c->n; k++)
            n_above += c->point[k].rhat > options->rhat;
        say(&found,
            "%s%s: the largest R-hat is %.3f, at q = %.4g; above %g at %d of "
            "%d points",
            n_told++ > 0 ? "; " : "", c->name, c->point[worst].rhat,
            c->q[worst], options->rhat, n_above, c->n);
        largest = fmax(largest, c->point[worst].rhat);
    }
    if (n_told == 0)
        say(&found, "too few draws to tell");
    check->value = n_told > 0 ? largest : (double)NAN;
    check->answer = n_told == 0                ? TSR_CHECK_UNKNOWN
                    : largest <= options->rhat ? TSR_CHECK_YES
                                               : TSR_CHECK_NO;
    check->found = end(&found);
    if (check->answer == TSR_CHECK_NO)
        check->remedy = run_longer(diagnosis, options, 4.0);
    return TSR_OK;
}

TSR_CHECK_FUNCTION(halves)
{
    static const char *const names[] = {"rg", "d_max", "chi2", "lp"};
    const double small = 0.3, rare = 0.05;
    words found;
    int n_bad = 0, n_seen = 0, n_open = 0;
    double largest = 0.0;
    tsr_status status = TSR_OK;
    start(check, "halves", "do two halves of the chains tell the same?");
    check->limit = small;
    begin(&found);
    for (size_t i = 0; i < sizeof names / sizeof *names && status == TSR_OK;
         i++) {
        int n_chain, n_draw;
        double *value;
        tsr_half_compare half = {(double)NAN, (double)NAN};
        status = get(reader, names[i], &n_chain, &n_draw, &value, err);
        if (status == TSR_OK && value != NULL && n_draw >= LEAST_DRAWS)
            status = tsr_half_compare_make(n_chain, n_draw, value, &half, err);
        free(value);
        if (isnan(half.p))
            continue;
        say(&found, "%s%s D = %.3f (p = %.2g)", n_seen++ > 0 ? ", " : "",
            names[i], half.distance, half.p);
        largest = fmax(largest, half.distance);
        n_bad += half.distance > small && half.p < rare;
        n_open += half.distance > small && !(half.p < rare);
    }
    if (n_seen == 0)
        say(&found, "too few draws to tell");
    else
        say(&found, "; they differ where D is above %g with p below %g", small,
            rare);
    check->value = n_seen > 0 ? largest : (double)NAN;
    /* far apart, but by too few independent draws to be sure of it */
    check->answer = n_bad > 0                   ? TSR_CHECK_NO
                    : n_seen == 0 || n_open > 0 ? TSR_CHECK_UNKNOWN
                                                : TSR_CHECK_YES;
    check->found = end(&found);
    if (n_bad > 0)
        check->remedy = run_longer(diagnosis, options, 4.0);
    return status;
}

/* The largest difference of a group's share between the halves, in standard
 * errors for `worth` independent draws in all. */
static double largest_gap(const tsr_shape *shape, double worth)
{
    double largest = 0.0;
    for (int c = 0; c < shape->clusters.k; c++) {
        const double a = shape->half[0][c], b = shape->half[1][c];
        const double p = 0.5 * (a + b);
        const double error = sqrt(fmax(p * (1.0 - p), 1e-9) * 4.0 / worth);
        largest = fmax(largest, fabs(a - b) / error);
    }
    return largest;
}

TSR_CHECK_FUNCTION(groups)
{
    const double enough = 0.8, sure = 3.0;
    const tsr_shape *shape = options->shape;
    const tsr_summary_item *rg = tsr_summary_find(diagnosis->summary, "rg");
    words found;
    (void)reader, (void)err;
    start(check, "groups", "do the halves hold the same structures?");
    check->limit = enough;
    if (shape == NULL) {
        check->answer = TSR_CHECK_NOT_ASKED;
        check->found = text_of("the run has no stored conformations");
        return TSR_OK;
    }
    if (isnan(shape->overlap)) {
        check->found = text_of("one chain, so there are no halves");
        return TSR_OK;
    }
    check->value = shape->overlap;
    if (shape->clusters.k == 1) {
        check->answer = TSR_CHECK_YES;
        check->found = text_of("the conformations are one cloud, without "
                               "groups that a gap divides");
        return TSR_OK;
    }
    begin(&found);
    say(&found, "%d groups, which overlap by %.2f; their shares are",
        shape->clusters.k, shape->overlap);
    for (int c = 0; c < shape->clusters.k; c++)
        say(&found, "%s %.2f and %.2f", c > 0 ? "," : "", shape->half[0][c],
            shape->half[1][c]);
    check->found = end(&found);
    if (shape->overlap >= enough) {
        check->answer = TSR_CHECK_YES;
    } else if (rg != NULL && rg->value.ess_bulk > 0.0 &&
               largest_gap(shape, rg->value.ess_bulk) > sure) {
        check->answer = TSR_CHECK_NO;
        check->remedy = text_of(
            "chains stay in the group where they began: give them more "
            "temperatures (sampler.temperatures, sampler.t_max), more warm-up, "
            "or run longer");
    }
    return TSR_OK;
}

TSR_CHECK_FUNCTION(exchange)
{
    int n_chain, n_draw, n_none = 0;
    double *value = NULL, total = 0.0;
    start(check, "exchange", "do replicas travel between the temperatures?");
    check->limit = 1.0;
    tsr_status status =
        get(reader, "round_trips", &n_chain, &n_draw, &value, err);
    if (status != TSR_OK)
        return status;
    for (int c = 0; value != NULL && c < n_chain && n_draw > 0; c++) {
        const double *row = value + (size_t)c * (size_t)n_draw;
        total += row[n_draw - 1];
        n_none += !(row[n_draw - 1] >= 1.0);
    }
    if (value == NULL || n_draw == 0) {
        check->found = text_of("the trace does not say");
    } else if (options->n_temp == 1 || (options->n_temp == 0 && total == 0.0)) {
        check->answer = TSR_CHECK_NOT_ASKED;
        check->found = text_of("one temperature");
    } else {
        check->value = total / n_chain;
        check->answer = n_none == 0 ? TSR_CHECK_YES : TSR_CHECK_NO;
        check->found =
            n_none == 0
                ? text_of("%.0f round trips in all, %.1f a chain", total,
                          total / n_chain)
                : text_of("no replica of %d of %d chains has been to the "
                          "highest temperature and back",
                          n_none, n_chain);
        if (n_none > 0)
            check->remedy =
                text_of("add temperatures (sampler.temperatures=%d), lower "
                        "sampler.t_max, or run longer",
                        options->n_temp > 0 ? options->n_temp + 4 : 10);
    }
    free(value);
    (void)diagnosis;
    return TSR_OK;
}
