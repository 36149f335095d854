/* Comparison of runs. Log evidence and LOO are compared between runs of the
 * same data only, overlaps of parameters between all runs. Every sentence
 * follows from numbers in the JSON output. */
#include "answer/comparison.h"

#include "core/text.h"
#include "core/vec3.h"
#include "files/checksum.h"

#include <gsl/gsl_math.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

/* ---- reading ---- */

/* Checksum of all measured values and their coordinates; 0: the run has no
 * data. */
static uint64_t checksum_data(tsr_trace_reader *trace)
{
    const char *const *name;
    uint64_t sum = 0;
    const int n = tsr_trace_variables(trace, TSR_TRACE_OBSERVED_DATA, &name);
    for (int i = 0; i < n; i++) {
        int n_chain, n_draw, n_value = 0, n_coord = 0;
        double *value = NULL, *coord = NULL;
        if (tsr_trace_get(trace, TSR_TRACE_OBSERVED_DATA, name[i], &n_chain,
                          &n_draw, &n_value, &value, NULL) == TSR_OK)
            sum = tsr_checksum(sum, value, (size_t)n_value * sizeof *value);
        if (tsr_trace_coordinates(trace, TSR_TRACE_OBSERVED_DATA, name[i],
                                  &n_coord, &coord, NULL) == TSR_OK &&
            coord != NULL)
            sum = tsr_checksum(sum, coord, (size_t)n_coord * sizeof *coord);
        free(value);
        free(coord);
    }
    return sum;
}

static double *read_constant(tsr_trace_reader *trace, const char *name, int *n)
{
    int n_chain, n_draw;
    double *value = NULL;
    *n = 0;
    (void)tsr_trace_get(trace, TSR_TRACE_CONSTANT_DATA, name, &n_chain, &n_draw,
                        n, &value, NULL);
    return value;
}

/* The model error in percent, from the curves E_j and their reference
 * (docs/statistics.md, The model's own error). */
static double measure_model_error(tsr_trace_reader *trace)
{
    static const char stem[] = "model_error_", of[] = "reference";
    const char *const *name;
    double sum = 0.0, all = 0.0;
    const int n_name =
        tsr_trace_variables(trace, TSR_TRACE_CONSTANT_DATA, &name);
    for (int i = 0; i < n_name; i++) {
        const char *at = strstr(name[i], stem);
        char path[128];
        int n, n_reference;
        if (at == NULL)
            continue;
        at += sizeof stem - 1;
        /* further curves have names that end in _2, _3, ... */
        const char *number = strchr(at, '_');
        snprintf(path, sizeof path, "%.*s%s%s", (int)(at - name[i]), name[i],
                 of, number != NULL ? number : "");
        double *value = read_constant(trace, name[i], &n);
        double *reference = read_constant(trace, path, &n_reference);
        const int is_reference = strcmp(name[i], path) == 0;
        for (int k = 0; k < n && n == n_reference; k++)
            *(is_reference ? &all : &sum) +=
                is_reference ? 1.0 : pow(value[k] / reference[k], 2.0);
        free(value);
        free(reference);
    }
    return all > 0.0 ? 100.0 * sqrt(sum / all) : 0.0;
}

tsr_status tsr_comparison_add(tsr_comparison *comparison, const char *directory,
                              tsr_log *log, tsr_err *err)
{
    tsr_compared *r = &comparison->run[comparison->n++];
    r->directory = directory;
    tsr_status status = tsr_past_run_open(directory, &r->past, log, err);
    TSR_THEN(status,
             tsr_verdict_of_run(&r->past, &r->summary, &r->verdict, err));
    if (status == TSR_OK) {
        r->data = checksum_data(r->past.trace);
        r->model_error = measure_model_error(r->past.trace);
        tsr_comparison_judge(comparison);
    }
    return status == TSR_OK ? status : tsr_wrap(err, status, "'%s'", directory);
}

/* ---- overlap ---- */

/* Overlap of two samples, with bins over the range of both. */
static double overlap_of(size_t n, const double *x, size_t m, const double *y)
{
    enum { N_BIN = 30 };
    double low = HUGE_VAL, high = -HUGE_VAL, sum = 0.0;
    double share[2][N_BIN] = {{0.0}};
    for (size_t i = 0; i < n + m; i++) {
        const double v = i < n ? x[i] : y[i - n];
        low = fmin(low, v);
        high = fmax(high, v);
    }
    if (!(high > low) || !isfinite(high - low))
        return high == low ? 1.0 : (double)NAN;
    for (size_t i = 0; i < n + m; i++) {
        const double v = i < n ? x[i] : y[i - n];
        const int bin =
            (int)fmin(N_BIN - 1, floor(N_BIN * (v - low) / (high - low)));
        share[i >= n][bin] += 1.0 / (double)(i < n ? n : m);
    }
    for (int k = 0; k < N_BIN; k++)
        sum += fmin(share[0][k], share[1][k]);
    return sum;
}

/* Whether a variable measures the size of the structure or the distance of its
 * parts. */
static int is_shape(const char *name)
{
    return strcmp(name, "rg") == 0 || strcmp(name, "d_max") == 0 ||
           ((strncmp(name, "pose_", 5) == 0 ||
             strncmp(name, "tail_", 5) == 0) &&
            strstr(name, "_distance") != NULL);
}

static tsr_status add_overlap(tsr_comparison *c, int a, int b, const char *name,
                              tsr_err *err)
{
    int n_chain, n_draw, m_chain, m_draw;
    double *x = NULL, *y = NULL;
    tsr_overlap *more = tsr_pool_resize(&c->pool, c->overlap,
                                        (size_t)c->n_overlap + 1, sizeof *more);
    TSR_TRY(tsr_allocated(more, err));
    c->overlap = more;
    tsr_status status = tsr_summary_draws(c->run[a].past.trace, name, &n_chain,
                                          &n_draw, &x, err);
    TSR_THEN(status, tsr_summary_draws(c->run[b].past.trace, name, &m_chain,
                                       &m_draw, &y, err));
    if (status == TSR_OK && x != NULL && y != NULL)
        more[c->n_overlap++] =
            (tsr_overlap){a, b, name,
                          overlap_of((size_t)n_chain * (size_t)n_draw, x,
                                     (size_t)m_chain * (size_t)m_draw, y)};
    free(x);
    free(y);
    return status;
}

static tsr_status find_overlaps(tsr_comparison *c, tsr_err *err)
{
    for (int b = 0; b < c->n; b++)
        for (int a = 0; a < b; a++) {
            const tsr_summary *s = c->run[a].summary;
            for (int i = 0; i < s->n; i++)
                if (is_shape(s->item[i].name) &&
                    tsr_summary_find(c->run[b].summary, s->item[i].name) !=
                        NULL)
                    TSR_TRY(add_overlap(c, a, b, s->item[i].name, err));
        }
    return TSR_OK;
}

tsr_status tsr_comparison_make(int n, const char *const *directory,
                               tsr_comparison *out, tsr_log *log, tsr_err *err)
{
    *out = (tsr_comparison){.n = 0};
    for (int i = 0; i < n; i++)
        TSR_TRY(tsr_comparison_add(out, directory[i], log, err));
    return find_overlaps(out, err);
}

void tsr_comparison_clear(tsr_comparison *comparison)
{
    for (int i = 0; i < comparison->n; i++) {
        tsr_verdict_free(comparison->run[i].verdict);
        tsr_summary_free(comparison->run[i].summary);
        tsr_past_run_clear(&comparison->run[i].past);
    }
    tsr_pool_clear(&comparison->pool);
}

/* ---- differences ---- */

static int is_same_data(const tsr_comparison *c, int a, int b)
{
    return c->run[a].data == c->run[b].data && c->run[a].verdict->has_data;
}

tsr_difference tsr_evidence_gain(const tsr_comparison *c, int a, int b)
{
    const tsr_evidence *x = &c->run[a].summary->evidence;
    const tsr_evidence *y = &c->run[b].summary->evidence;
    const int more = c->run[b].verdict->n_state - c->run[a].verdict->n_state;
    const int is_known =
        is_same_data(c, a, b) && x->n_temp > 1 && y->n_temp > 1;
    const double gain = is_known ? y->log - x->log : (double)NAN;
    const double error = is_known ? hypot(x->error, y->error) : (double)NAN;
    const double log_odds = gain - more * M_LN2;
    return (tsr_difference){gain, error, log_odds,
                            tsr_odds_judge(log_odds, error)};
}

tsr_difference tsr_loo_gain(const tsr_comparison *c, int a, int b)
{
    double gain = (double)NAN, error = (double)NAN;
    if (is_same_data(c, a, b))
        (void)tsr_loo_compare(&c->run[a].verdict->loo, &c->run[b].verdict->loo,
                              &gain, &error);
    return (tsr_difference){gain, error, gain, tsr_odds_judge(gain, error)};
}

/* The probability of model i, 1 / sum over k of exp(x_k - x_i), averaged over
 * normal errors of the differences: each difference is divided by sqrt(1 + pi
 * error^2 / 8) (MacKay 1992, Neural Comput. 4, 720; for several models Lu, Ie &
 * Sha 2020, arXiv:2006.07584), then the sum is made 1. */
void tsr_comparison_judge(tsr_comparison *comparison)
{
    tsr_comparison *c = comparison;
    double share[TSR_MOST_COMPARED];
    for (int i = 0; i < c->n; i++) {
        double sum = 0.0;
        c->run[i].is_excluded = 0;
        for (int k = 0; k < c->n; k++) {
            const tsr_difference d = tsr_evidence_gain(c, i, k);
            c->run[i].is_excluded |= d.says == TSR_ODDS_FOR;
            if (d.says != TSR_ODDS_UNKNOWN)
                sum += exp(d.log_odds /
                           sqrt(1.0 + TSR_PI / 8.0 * d.error * d.error));
        }
        share[i] = 1.0 / sum;
    }
    for (int i = 0; i < c->n; i++) {
        double sum = 0.0;
        for (int k = 0; k < c->n; k++)
            if (tsr_evidence_gain(c, i, k).says != TSR_ODDS_UNKNOWN)
                sum += share[k];
        c->run[i].probability = sum > 0.0 ? share[i] / sum : (double)NAN;
    }
}

void tsr_gain_print(FILE *out, int width, double value, double error)
{
    char text[48] = "";
    if (isfinite(value))
        snprintf(text, sizeof text, isfinite(error) ? "%.1f +- %.1f" : "%.3f",
                 value, error);
    fprintf(out, "  %*s", width, text);
}

/* ---- sentences ---- */

/* Reports each run that no other run of the same data exceeds, and whether it
 * excludes all of them. */
static void write_best(const tsr_comparison *c,
                       tsr_difference_function *gain_of, const char *what,
                       tsr_words *w)
{
    for (int b = 0; b < c->n; b++) {
        int is_best = 1, is_clear = 1, nearest = -1;
        tsr_difference least = {.log_odds = HUGE_VAL};
        for (int a = 0; a < c->n; a++) {
            const tsr_difference d = gain_of(c, a, b);
            if (a == b || !isfinite(d.log_odds))
                continue;
            is_clear &= d.says == TSR_ODDS_FOR;
            is_best &= d.log_odds > 0.0 || (d.log_odds == 0.0 && b < a);
            if (d.log_odds < least.log_odds) {
                least = d;
                nearest = a;
            }
        }
        if (nearest < 0 || !is_best)
            continue;
        tsr_words_add(w,
                      "Run %d is the best of its data by %s, %.1f +- %.1f nat "
                      "%s run %d: %s. ",
                      b + 1, what, fabs(least.gain), least.error,
                      least.gain < 0.0 ? "below" : "above", nearest + 1,
                      is_clear ? "the data prefer this run"
                               : "undecided, as the odds, less two errors, are "
                                 "below 20 to 1");
    }
}

/* Finds two curves of runs a and b that cannot come from one structure: curve
 * *i of a and curve *k of b. Returns 0 where there is no such pair. */
static int find_conflict(const tsr_comparison *c, int a, int b, int *i, int *k,
                         double *sigma)
{
    const tsr_verdict *x = c->run[a].verdict, *y = c->run[b].verdict;
    for (*i = 0; *i < x->n_curve; ++*i)
        for (*k = 0; *k < y->n_curve; ++*k)
            if (tsr_verdict_conflict(&x->curve[*i], &y->curve[*k], sigma))
                return 1;
    return 0;
}

static void write_conflicts(const tsr_comparison *c, tsr_words *w)
{
    for (int b = 0; b < c->n; b++)
        for (int a = 0; a < b; a++) {
            int i, k;
            double sigma;
            if (!find_conflict(c, a, b, &i, &k, &sigma))
                continue;
            const tsr_verdict_curve *x = &c->run[a].verdict->curve[i];
            const tsr_verdict_curve *y = &c->run[b].verdict->curve[k];
            tsr_words_add(
                w,
                "The data of runs %d and %d cannot come from one structure: "
                "Guinier's Rg is %.1f +- %.1f Angstrom in %s and %.1f +- %.1f "
                "in %s, %.0f standard deviations apart. ",
                a + 1, b + 1, x->guinier.rg, x->guinier.error, x->name,
                y->guinier.rg, y->guinier.error, y->name, sigma);
        }
}

/* The variable with the least overlap between runs a and b; NULL: they have no
 * variable in common. */
static const tsr_overlap *least_overlap(const tsr_comparison *c, int a, int b)
{
    const tsr_overlap *least = NULL;
    for (int i = 0; i < c->n_overlap; i++) {
        const tsr_overlap *o = &c->overlap[i];
        if (o->a == a && o->b == b && isfinite(o->overlap) &&
            (least == NULL || o->overlap < least->overlap))
            least = o;
    }
    return least;
}

static void write_overlaps(const tsr_comparison *c, tsr_words *w)
{
    for (int b = 0; b < c->n; b++)
        for (int a = 0; a < b; a++) {
            const tsr_overlap *o = least_overlap(c, a, b);
            if (o != NULL)
                tsr_words_add(w,
                              "The ensembles of runs %d and %d %s (smallest "
                              "overlap: %s, %.2f). ",
                              a + 1, b + 1,
                              o->overlap > 0.8   ? "are alike"
                              : o->overlap > 0.3 ? "overlap partly"
                                                 : "hardly overlap",
                              o->variable, o->overlap);
        }
}

/* Names the file that a run shares with others, if any. */
static void name_error_file(const tsr_compared *r, tsr_words *w)
{
    if (r->past.has_config && r->past.config.model_error.file != NULL)
        tsr_words_add(w, " (%s)", r->past.config.model_error.file);
}

/* Runs of the same data whose likelihoods differ in the model's own error. */
static void write_model_errors(const tsr_comparison *c, tsr_words *w)
{
    const double same = 1e-3;
    for (int b = 0; b < c->n; b++)
        for (int a = 0; a < b; a++) {
            const tsr_compared *x = &c->run[a], *y = &c->run[b];
            if (!is_same_data(c, a, b) ||
                fabs(x->model_error - y->model_error) <= same * x->model_error)
                continue;
            tsr_words_add(w,
                          "The model errors of runs %d and %d differ: %.3g %% "
                          "of the intensity",
                          a + 1, b + 1, x->model_error);
            name_error_file(x, w);
            tsr_words_add(w, " and %.3g %%", y->model_error);
            name_error_file(y, w);
            tsr_words_add(w, ". Part of the difference of their log evidence "
                             "is due to this; runs with the same flexible "
                             "residues can share one (model_error.file). ");
        }
}

static void write_convergence(const tsr_comparison *c, tsr_words *w)
{
    for (int i = 0; i < c->n; i++)
        if (!c->run[i].verdict->advice.is_converged)
            tsr_words_add(
                w, "Run %d has not converged: its results may still change. ",
                i + 1);
}

void tsr_comparison_write(const tsr_comparison *comparison, tsr_words *words)
{
    const tsr_comparison *c = comparison;
    tsr_words_begin(words);
    write_conflicts(c, words);
    tsr_words_add(words, "\n");
    write_best(c, tsr_evidence_gain,
               "log evidence and the prior (2^-n for n states)", words);
    tsr_words_add(words, "\n");
    write_best(c, tsr_loo_gain, "expected log predictive density", words);
    tsr_words_add(words, "\n");
    write_model_errors(c, words);
    tsr_words_add(words, "\n");
    write_overlaps(c, words);
    tsr_words_add(words, "\n");
    write_convergence(c, words);
}

/* Whether a parameter is shown in a table of all runs: fits, sizes, distances,
 * contrast, noise and weights are. */
static int is_shown(const char *name)
{
    static const char *const begins[] = {
        "chi2", "distance_chi2", "map_chi2", "rg",        "d_max", "c1",
        "c2",   "noise_scale",   "weight_",  "fraction_", "kd"};
    for (size_t i = 0; i < sizeof begins / sizeof *begins; i++)
        if (strncmp(name, begins[i], strlen(begins[i])) == 0)
            return 1;
    return strstr(name, "_distance") != NULL;
}

const char *tsr_comparison_parameter(const tsr_comparison *comparison, int k)
{
    const tsr_comparison *c = comparison;
    for (int i = 0; i < c->n; i++)
        for (int v = 0; v < c->run[i].summary->n; v++) {
            const char *name = c->run[i].summary->item[v].name;
            int is_new = is_shown(name);
            for (int a = 0; a < i && is_new; a++)
                is_new = tsr_summary_find(c->run[a].summary, name) == NULL;
            if (is_new && k-- == 0)
                return name;
        }
    return NULL;
}

/* ---- JSON ---- */

static void put_run(const tsr_comparison *c, int i, tsr_json *j)
{
    const tsr_compared *r = &c->run[i];
    const tsr_verdict *v = r->verdict;
    const tsr_difference evidence = tsr_evidence_gain(c, 0, i);
    const tsr_difference loo = tsr_loo_gain(c, 0, i);
    const char *name;
    tsr_json_members(
        j,
        "{ directory %s states %d same_data_as_first %i converged %i "
        "model_error_percent %g model_error_file %s",
        r->directory, v->n_state, is_same_data(c, 0, i), v->advice.is_converged,
        r->model_error,
        r->past.has_config ? r->past.config.model_error.file : NULL);
    tsr_evidence_put(&r->summary->evidence, "evidence", j);
    tsr_json_members(j,
                     "evidence_gain %g evidence_gain_error %g probability %g "
                     "excluded %i",
                     evidence.gain, evidence.error, r->probability,
                     r->is_excluded);
    tsr_loo_put(&v->loo, "loo", j);
    tsr_json_members(j, "loo_gain %g loo_gain_error %g", loo.gain, loo.error);
    tsr_json_object(j, "parameters");
    for (int k = 0; (name = tsr_comparison_parameter(c, k)) != NULL; k++) {
        const tsr_summary_item *item = tsr_summary_find(r->summary, name);
        if (item != NULL)
            tsr_verdict_put_interval(j, name, &item->value);
    }
    tsr_json_close(j);
    tsr_json_array(j, "curves");
    for (int k = 0; k < v->n_curve; k++) {
        const tsr_verdict_curve *curve = &v->curve[k];
        tsr_json_members(j,
                         "{ curve %s chi2 %g cormap_p %g rg_guinier_data %g "
                         "rg_guinier_data_error %g }",
                         curve->name, curve->chi2, curve->cormap_p,
                         curve->guinier.rg, curve->guinier.error);
    }
    tsr_json_members(j, "] }");
}

static void put_conflict(tsr_json *j, const tsr_comparison *c, int a, int b)
{
    int i, k;
    double sigma;
    if (find_conflict(c, a, b, &i, &k, &sigma))
        tsr_json_members(j, "{ runs[ %d %d ] standard_deviations %g }", a, b,
                         sigma);
}

tsr_status tsr_comparison_put(const tsr_comparison *comparison, tsr_json *json,
                              tsr_err *err)
{
    const tsr_comparison *c = comparison;
    tsr_json *j = json;
    tsr_words words;
    tsr_comparison_write(c, &words);
    tsr_json_object(j, NULL);
    TSR_TRY(tsr_json_lines(j, "verdict", &words, err));
    tsr_json_array(j, "runs");
    for (int i = 0; i < c->n; i++)
        put_run(c, i, j);
    tsr_json_members(j, "] overlaps[");
    for (int i = 0; i < c->n_overlap; i++)
        tsr_json_members(j, "{ runs[ %d %d ] variable %s overlap %g }",
                         c->overlap[i].a, c->overlap[i].b,
                         c->overlap[i].variable, c->overlap[i].overlap);
    tsr_json_members(j, "] conflicts[");
    for (int b = 0; b < c->n; b++)
        for (int a = 0; a < b; a++)
            put_conflict(j, c, a, b);
    tsr_json_close(j);
    tsr_json_close(j);
    return TSR_OK;
}
