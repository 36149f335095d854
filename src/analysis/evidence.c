/* log Z by Bennett's acceptance ratio between neighbours of the ladder.
 *
 * Let a and b be two temperatures with equal numbers of draws, w = (beta_b -
 * beta_a) log L, and g(x) = 1 / (1 + exp(-x)). Then log (Z_b / Z_a) is the
 * number f for which two means are equal: the mean of g(w - f) over the draws
 * at a, and the mean of g(f - w) over the draws at b. The first mean falls with
 * f and the second rises, so bisection finds f.
 *
 * The run has no draws of the prior. So the ratio of the hottest temperature to
 * the prior is estimated from the mean of 1 / L^beta over the draws at this
 * temperature, which is reliable while beta log L hardly varies. */
#include "analysis/evidence.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Draws of all groups at all temperatures. left_out: number of the group whose
 * draws are skipped; -1: no group. */
typedef struct {
    int n_group, n_draw, n_temp, left_out;
    const double *beta, *log_lik;
} path;

/* log L at temperature k of draw i, counted over all groups. */
static double log_lik_at(const path *p, long i, int k)
{
    return p->log_lik[(size_t)i * (size_t)p->n_temp + (size_t)k];
}

/* Advances i to the next draw that is not skipped; start with -1. Returns 0 at
 * the end. */
static int next_draw(const path *p, long *i)
{
    (*i)++;
    if (p->left_out >= 0 && *i / p->n_draw == p->left_out)
        *i += p->n_draw;
    return *i < (long)p->n_group * p->n_draw;
}

/* Mean of g(sign (step log L - f)) at temperature k. */
static double mean_logistic(const path *p, int k, double step, double f,
                            double sign)
{
    double sum = 0.0;
    long n = 0;
    for (long i = -1; next_draw(p, &i); n++)
        sum += 1.0 / (1.0 + exp(-sign * (step * log_lik_at(p, i, k) - f)));
    return sum / (double)n;
}

/* log Z at temperature k minus log Z at the next, hotter temperature k + 1. The
 * draws at k have the higher likelihood, so the result lies between the
 * extremes of w. If some of the hotter draws have log L = -inf, the result may
 * be lower, at most by the log of the number of draws. */
static double log_ratio(const path *p, int k)
{
    const double step = p->beta[k] - p->beta[k + 1];
    double low = HUGE_VAL, high = -HUGE_VAL;
    for (long i = -1; next_draw(p, &i);) {
        const double w[2] = {step * log_lik_at(p, i, k),
                             step * log_lik_at(p, i, k + 1)};
        low = fmin(low, isfinite(w[1]) ? fmin(w[0], w[1]) : w[0]);
        high = fmax(high, fmax(w[0], w[1]));
    }
    low -= log(1.0 + (double)p->n_group * p->n_draw);
    /* above some 1e9, neighbouring doubles differ by more than 1e-6 */
    const double enough = fmax(1e-6, 1e-14 * fmax(fabs(low), fabs(high)));
    while (high - low > enough) {
        const double f = 0.5 * (low + high);
        if (mean_logistic(p, k + 1, step, f, 1.0) >
            mean_logistic(p, k, step, f, -1.0))
            low = f;
        else
            high = f;
    }
    return 0.5 * (low + high);
}

/* log Z of the hottest temperature. *sd out: standard deviation of beta log L
 * at this temperature. */
static double log_hottest(const path *p, double *sd)
{
    const int k = p->n_temp - 1;
    const double beta = p->beta[k];
    double mean = 0.0, square = 0.0, inverse = 0.0;
    long n = 0;
    for (long i = -1; next_draw(p, &i); n++)
        mean += beta * log_lik_at(p, i, k);
    mean /= (double)n;
    for (long i = -1; next_draw(p, &i);) {
        square += pow(beta * log_lik_at(p, i, k) - mean, 2.0);
        inverse += exp(mean - beta * log_lik_at(p, i, k));
    }
    *sd = sqrt(square / (double)n);
    return mean - log(inverse / (double)n);
}

static double log_z(const path *p, double *sd)
{
    double sum = log_hottest(p, sd);
    for (int k = 0; k + 1 < p->n_temp; k++)
        sum += log_ratio(p, k);
    return sum;
}

/* Jackknife error of an estimate: computes the estimate without each group in
 * turn. NaN for one group, or when out of memory. largest [2] out (may be
 * NULL): the group that contributes most to the squared error, and its share.
 */
static double jackknife(int n_group,
                        double (*estimate)(const void *context, int left_out),
                        const void *context, double largest[2])
{
    double mean = 0.0, squares = 0.0, most = 0.0;
    double *without = calloc((size_t)n_group, sizeof *without);
    for (int g = 0; g < n_group && without != NULL; g++) {
        without[g] = estimate(context, g);
        mean += without[g] / n_group;
    }
    for (int g = 0; g < n_group && without != NULL; g++) {
        const double square = (without[g] - mean) * (without[g] - mean);
        squares += square;
        if (largest != NULL && square >= most)
            largest[0] = g;
        most = fmax(most, square);
    }
    if (largest != NULL)
        largest[1] = most / squares;
    const int is_known = n_group > 1 && without != NULL;
    free(without);
    return is_known ? sqrt(squares * (n_group - 1.0) / n_group) : (double)NAN;
}

static double log_z_without(const void *context, int left_out)
{
    path p = *(const path *)context;
    double sd;
    p.left_out = left_out;
    return log_z(&p, &sd);
}

static double log_ratio_without(const void *context, int left_out)
{
    path p = *(const path *)context;
    p.left_out = left_out;
    return log_ratio(&p, 0);
}

static void set_unknown(tsr_evidence *e, const char *text)
{
    e->log = e->error = (double)NAN;
    snprintf(e->why_not, sizeof e->why_not, "%s", text);
}

void tsr_evidence_estimate(int n_group, int n_draw, int n_temp,
                           const double *beta, const double *log_lik,
                           double largest[2], tsr_evidence *evidence)
{
    const double most_sd = 0.5;
    tsr_evidence *e = evidence;
    const path p = {n_group, n_draw, n_temp, -1, beta, log_lik};
    double sd;
    e->log = log_z(&p, &sd);
    e->error = jackknife(n_group, log_z_without, &p, largest);
    e->ladder = e->log;
    e->ladder_error = e->error;
    e->why_not[0] = '\0';
    if (sd < most_sd)
        return;
    e->log = e->error = e->ladder = e->ladder_error = (double)NAN;
    snprintf(e->why_not, sizeof e->why_not,
             "the highest of %d temperatures, %.3g, does not sample the prior: "
             "set sampler.evidence: true, or a higher sampler.t_max",
             n_temp, 1.0 / beta[n_temp - 1]);
}

typedef struct {
    int n;
    const double *log_z; /* [n] */
} estimates;

/* Log of the mean of exp(log_z) without group left_out (-1: of all groups). */
static double log_mean(const void *context, int left_out)
{
    const estimates *e = context;
    double top = -HUGE_VAL, sum = 0.0;
    for (int g = 0; g < e->n; g++)
        top = fmax(top, e->log_z[g]);
    for (int g = 0; g < e->n; g++)
        sum += g == left_out ? 0.0 : exp(e->log_z[g] - top);
    return top + log(sum / (e->n - (left_out >= 0)));
}

double tsr_evidence_pool_groups(int n_group, const double *log_z, double *error)
{
    const estimates all = {n_group, log_z};
    *error = jackknife(n_group, log_mean, &all, NULL);
    return log_mean(&all, -1);
}

/* ---- the evidence of a run ---- */

/* Largest number of draws that are used, and numbers of groups for the
 * jackknife. A group consists of chains, or, if there are few chains, of parts
 * of chains. */
enum { MOST_DRAWS = 16000, LEAST_GROUPS = 4, MOST_GROUPS = 16 };

static int n_group_of(int n_chain)
{
    return n_chain < LEAST_GROUPS  ? LEAST_GROUPS
           : n_chain < MOST_GROUPS ? n_chain
                                   : MOST_GROUPS;
}

/* Copies evenly thinned draws, chain after chain, so that a group consists of
 * successive chains, or of one part of a chain.
 * all    [n_chain][n_draw][width]   in
 * *some  [n_group][*each][width]    out  caller frees; NULL: too few draws */
static tsr_status thin_draws(int n_chain, int n_draw, int width,
                             const double *all, int *each, double **some,
                             tsr_err *err)
{
    const int n_group = n_group_of(n_chain);
    const long total = (long)n_chain * n_draw;
    const size_t row = (size_t)width;
    *each = (int)(total < MOST_DRAWS ? total / n_group : MOST_DRAWS / n_group);
    *some = NULL;
    if (*each < 10)
        return TSR_OK;
    const long n = (long)n_group * *each;
    *some = malloc((size_t)n * row * sizeof **some);
    TSR_TRY(tsr_allocated(*some, err));
    for (long i = 0; i < n; i++) {
        const size_t from = (size_t)((double)i / (double)n * (double)total);
        memcpy(*some + (size_t)i * row, all + from * row, row * sizeof **some);
    }
    return TSR_OK;
}

static tsr_status estimate_by_ladder(int n_chain, int n_draw, int n_temp,
                                     const double *beta, const double *log_lik,
                                     tsr_evidence *e, tsr_err *err)
{
    int each;
    double *some;
    TSR_TRY(thin_draws(n_chain, n_draw, n_temp, log_lik, &each, &some, err));
    if (some == NULL) {
        set_unknown(e, "too few draws");
        return TSR_OK;
    }
    const int n_group = n_group_of(n_chain);
    double largest[2] = {0.0, (double)NAN};
    tsr_evidence_estimate(n_group, each, n_temp, beta, some, largest, e);
    e->largest = largest[1];
    e->first_chain = (int)(largest[0] * n_chain / n_group);
    e->last_chain = (int)ceil((largest[0] + 1.0) * n_chain / n_group) - 1;
    free(some);
    return TSR_OK;
}

/* The reason why draws of the chains cannot be pooled; NULL: all chains have
 * equal temperatures. */
static const char *temperatures_differ(int n_chain, int n_draw, int n_temp,
                                       const double *temperature)
{
    for (long i = 0; i < (long)n_chain * n_draw * n_temp; i++)
        if (temperature[i] != temperature[i % n_temp])
            return "the chains have different temperatures: the run is of an "
                   "older version";
    return NULL;
}

/* Variance of an estimate whose squared error was estimated from n groups. */
static double predictive_variance(double error, int n)
{
    return error * error * (n > 3 ? (n - 1.0) / (n - 3.0) : n);
}

/* If the two estimates differ by more than chance explains, at least one of
 * them missed a part of the posterior. Their difference then is the error. */
void tsr_evidence_combine(int n_ladder, tsr_evidence *evidence)
{
    tsr_evidence *e = evidence;
    const double x = predictive_variance(e->ladder_error, n_ladder);
    const double y = predictive_variance(e->population_error, e->n_population);
    const double apart = fabs(e->ladder - e->population), by = y / (x + y);
    if (!isfinite(apart) || !isfinite(by)) {
        const int has_ladder = isfinite(e->ladder);
        e->log = has_ladder ? e->ladder : e->population;
        e->error = has_ladder         ? e->ladder_error
                   : isfinite(e->log) ? e->population_error
                                      : (double)NAN;
        return;
    }
    e->log = by * e->ladder + (1.0 - by) * e->population;
    e->error =
        apart > 3.0 * sqrt(x + y)
            ? apart
            : hypot(by * e->ladder_error, (1.0 - by) * e->population_error);
}

/* A few populations may agree by chance. Each level of the pass loses 1 - 0.6
 * of the effective sample size (population.c), so its weights have a squared
 * coefficient of variation of 2/3, and for a normal log likelihood the level
 * adds 0.4 to the barrier. With n_replica replicas the variance of log Z is
 * therefore at least 1.65 barrier / n_replica. */
static double least_population_error(double barrier, int n_replica)
{
    return sqrt(1.65 * barrier / n_replica);
}

/* The refused share of exchanges, summed over neighbours. The last draw has the
 * rates since the beginning. */
static tsr_status find_barrier(tsr_trace_reader *reader, tsr_evidence *e,
                               tsr_err *err)
{
    int n_chain, n_draw, n;
    double *rate;
    TSR_TRY(tsr_trace_get(reader, TSR_TRACE_SAMPLE_STATS, "exchange_rate",
                          &n_chain, &n_draw, &n, &rate, err));
    e->barrier = 0.0;
    for (int c = 0; c < n_chain && n_draw > 0; c++)
        for (int k = 0; k < n; k++) {
            const size_t last = (size_t)(c + 1) * (size_t)n_draw - 1;
            e->barrier += (1.0 - rate[last * (size_t)n + (size_t)k]) / n_chain;
        }
    free(rate);
    return TSR_OK;
}

static tsr_status read_populations(tsr_trace_reader *reader, tsr_evidence *e,
                                   tsr_err *err)
{
    const tsr_trace_group constant = TSR_TRACE_CONSTANT_DATA;
    const char name[] = "population_log_evidence";
    int n_chain, n_draw, n;
    double *log_z;
    if (!tsr_trace_has(reader, constant, name))
        return TSR_OK;
    TSR_TRY(tsr_trace_get(reader, constant, name, &n_chain, &n_draw, &n, &log_z,
                          err));
    e->population = tsr_evidence_pool_groups(n, log_z, &e->population_error);
    e->n_population = n;
    free(log_z);
    return TSR_OK;
}

/* If draws are of all atoms, the path has one more step, from the posterior of
 * the bodies to that of all atoms (sampler/all_atom_chain.h), again by
 * Bennett's ratio. Populations sample the model of the bodies before warm-up,
 * so their estimate is not used. */
static tsr_status add_atoms(tsr_trace_reader *reader, tsr_evidence *e,
                            tsr_err *err)
{
    const double beta[] = {1.0, 0.0};
    int n_chain, n_draw, n, each;
    double *gain, *some;
    if (!tsr_trace_has(reader, TSR_TRACE_SAMPLE_STATS, "all_atom_log_ratio"))
        return TSR_OK;
    e->population = e->population_error = (double)NAN;
    TSR_TRY(tsr_trace_get(reader, TSR_TRACE_SAMPLE_STATS, "all_atom_log_ratio",
                          &n_chain, &n_draw, &n, &gain, err));
    const int n_group = n_group_of(n_chain);
    tsr_status status = thin_draws(n_chain, n_draw, n, gain, &each, &some, err);
    free(gain);
    if (status != TSR_OK || some == NULL)
        return status;
    const path p = {n_group, each, n, -1, beta, some};
    e->ladder += log_ratio(&p, 0);
    e->ladder_error =
        hypot(e->ladder_error, jackknife(n_group, log_ratio_without, &p, NULL));
    free(some);
    return TSR_OK;
}

static void finish(int n_ladder, tsr_evidence *e)
{
    tsr_evidence_combine(n_ladder, e);
    if (isfinite(e->log))
        e->why_not[0] = '\0';
}

tsr_status tsr_evidence_make(tsr_trace_reader *reader, tsr_evidence *evidence,
                             tsr_err *err)
{
    const tsr_trace_group stats = TSR_TRACE_SAMPLE_STATS;
    tsr_evidence *e = evidence;
    int n_chain, n_draw, n_temp, of[3];
    double *temperature = NULL, *log_lik = NULL, beta[256];
    *e = (tsr_evidence){.log = (double)NAN,
                        .error = (double)NAN,
                        .barrier = (double)NAN,
                        .ladder = (double)NAN,
                        .ladder_error = (double)NAN,
                        .largest = (double)NAN,
                        .population = (double)NAN,
                        .population_error = (double)NAN,
                        .n_temp = 1,
                        .t_max = 1.0};
    TSR_TRY(read_populations(reader, e, err));
    if (!tsr_trace_has(reader, stats, "ladder_log_lik")) {
        set_unknown(e,
                    "the run had one temperature: sampler.evidence: true, with "
                    "temperatures: auto, adds temperatures up to the prior");
        if (!tsr_trace_has(reader, stats, "all_atom_log_ratio"))
            finish(1, e);
        return TSR_OK;
    }
    tsr_status status =
        tsr_trace_get(reader, stats, "ladder_temperature", &n_chain, &n_draw,
                      &n_temp, &temperature, err);
    TSR_THEN(status, tsr_trace_get(reader, stats, "ladder_log_lik", &of[0],
                                   &of[1], &of[2], &log_lik, err));
    if (status == TSR_OK &&
        (of[0] != n_chain || of[1] != n_draw || of[2] != n_temp ||
         n_chain < 1 || n_draw < 1 || n_temp < 1 || n_temp > 256))
        status = tsr_fail(err, TSR_E_DATA,
                          "the trace is damaged: sizes of ladder_temperature "
                          "and ladder_log_lik");
    TSR_THEN(status, find_barrier(reader, e, err));
    if (status == TSR_OK) {
        char *flat = tsr_trace_attribute_text(reader, "flat_priors");
        const char *other =
            temperatures_differ(n_chain, n_draw, n_temp, temperature);
        e->n_temp = n_temp;
        for (int k = 0; k < n_temp; k++)
            beta[k] = 1.0 / temperature[k];
        e->t_max = temperature[n_temp - 1];
        if (flat != NULL && flat[0] != '\0')
            set_unknown(e, "scale or background is sampled under a flat "
                           "prior, which cannot be normalised");
        else if (other != NULL)
            set_unknown(e, other);
        else
            status = estimate_by_ladder(n_chain, n_draw, n_temp, beta, log_lik,
                                        e, err);
        TSR_THEN(status, add_atoms(reader, e, err));
        if (isfinite(e->population_error))
            e->population_error =
                fmax(e->population_error,
                     least_population_error(e->barrier, n_chain * n_temp));
        finish(n_group_of(n_chain), e);
        free(flat);
    }
    free(temperature);
    free(log_lik);
    return status;
}

/* ---- output ---- */

const char *tsr_evidence_format(const tsr_evidence *evidence, char *text)
{
    const double half = 0.5;
    const tsr_evidence *e = evidence;
    const int decimals = e->error < 0.095 ? 2 : 1;
    if (e->why_not[0] != '\0') {
        snprintf(text, TSR_EVIDENCE_TEXT, "unknown (%s)", e->why_not);
        return text;
    }
    int n = snprintf(text, TSR_EVIDENCE_TEXT, "%.*f +- %.2g nat", decimals,
                     e->log, e->error);
    char *rest = text + n;
    const size_t size = TSR_EVIDENCE_TEXT - (size_t)n;
    if (!isfinite(e->ladder))
        snprintf(rest, size, " (by populations from the prior)");
    else if (isfinite(e->population))
        snprintf(rest, size,
                 " (temperatures %.*f +- %.2g, populations from the prior %.1f "
                 "+- %.2g)",
                 decimals, e->ladder, e->ladder_error, e->population,
                 e->population_error);
    if (isfinite(e->ladder) && e->largest > half) {
        n = (int)strlen(text);
        snprintf(text + n, TSR_EVIDENCE_TEXT - (size_t)n,
                 "; %.0f %% of the squared error from chain",
                 100.0 * e->largest);
        n = (int)strlen(text);
        snprintf(text + n, TSR_EVIDENCE_TEXT - (size_t)n,
                 e->first_chain == e->last_chain ? " %d" : "s %d to %d",
                 e->first_chain, e->last_chain);
    }
    return text;
}

tsr_odds tsr_odds_judge(double log_odds, double error)
{
    const double least = fabs(log_odds) - TSR_ODDS_ERRORS * error;
    return !isfinite(least)                 ? TSR_ODDS_UNKNOWN
           : least < log(TSR_ODDS_DECISIVE) ? TSR_ODDS_UNDECIDED
           : log_odds > 0.0                 ? TSR_ODDS_FOR
                                            : TSR_ODDS_AGAINST;
}

void tsr_evidence_put(const tsr_evidence *evidence, const char *name,
                      tsr_json *json)
{
    const tsr_evidence *e = evidence;
    if (e->n_temp == 0) {
        tsr_json_text(json, name, NULL);
        return;
    }
    tsr_json_object(json, name);
    tsr_json_members(json,
                     "log %g error %g barrier %g temperatures %d t_max %g",
                     e->log, e->error, e->barrier, e->n_temp, e->t_max);
    if (e->why_not[0] != '\0')
        tsr_json_text(json, "note", e->why_not);
    if (isfinite(e->ladder)) {
        tsr_json_object(json, "ladder");
        tsr_json_members(json, "log %g error %g largest_share %g", e->ladder,
                         e->ladder_error, e->largest);
        tsr_json_array(json, "chains");
        tsr_json_number(json, NULL, e->first_chain);
        tsr_json_number(json, NULL, e->last_chain);
        tsr_json_close(json);
        tsr_json_close(json);
    }
    if (isfinite(e->population)) {
        tsr_json_object(json, "population");
        tsr_json_members(json, "log %g error %g", e->population,
                         e->population_error);
        tsr_json_close(json);
    }
    tsr_json_close(json);
}
