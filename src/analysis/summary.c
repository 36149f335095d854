/* Summaries of the variables and curves of a trace.
 *
 * One variable is read at a time, or one block of a long vector, so that the
 * trace may be larger than memory. A variable that is damaged or not finite
 * gets a remark, and all others are summarised. */
#include "analysis/summary.h"

#include "core/json.h"
#include "core/parallel.h"
#include "core/text.h"
#include "core/vec3.h"

#include <errno.h>
#include <float.h>
#include <gsl/gsl_sort.h>
#include <gsl/gsl_statistics_double.h>
#include <math.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

double tsr_circular_turn(const char *unit)
{
    static const struct {
        const char *name;
        double turn;
    } known[] = {{"rad", 2.0 * TSR_PI},     {"radian", 2.0 * TSR_PI},
                 {"radians", 2.0 * TSR_PI}, {"deg", 360.0},
                 {"degree", 360.0},         {"degrees", 360.0}};
    for (size_t i = 0; unit != NULL && i < sizeof known / sizeof *known; i++)
        if (strcmp(unit, known[i].name) == 0)
            return known[i].turn;
    return 0.0;
}

/* x plus a multiple of turn, in (-turn/2, turn/2]. */
static double wrap(double x, double turn)
{
    double y = x - turn * floor(x / turn + 0.5);
    return y <= -0.5 * turn ? y + turn : y;
}

tsr_status tsr_circular_make(int n_group, int n_chain, int n_draw, double turn,
                             double *value, tsr_convergence *out, tsr_err *err)
{
    const size_t n = (size_t)n_chain * (size_t)n_draw;
    const double to_rad = 2.0 * TSR_PI / turn;
    double sum_sin = 0.0, sum_cos = 0.0, low = HUGE_VAL, high = -HUGE_VAL;

    for (size_t i = 0; i < n; i++) {
        sum_sin += sin(to_rad * value[i]);
        sum_cos += cos(to_rad * value[i]);
        low = fmin(low, value[i]);
        high = fmax(high, value[i]);
    }
    double mean = atan2(sum_sin, sum_cos) / to_rad;
    /* 1 - R, computed from angles relative to the mean, because R loses digits
     * near 1 */
    double missing = 0.0;
    for (size_t i = 0; i < n && isfinite(mean); i++) {
        value[i] = wrap(value[i] - mean, turn);
        const double half = sin(0.5 * to_rad * value[i]);
        missing += 2.0 * half * half / (double)n;
    }
    TSR_TRY(tsr_convergence_make(n_group, n_chain, n_draw, value, out, err));
    if (isnan(out->mean))
        return TSR_OK;
    if (low >= 0.0 && high > 0.5 * turn && mean < 0.0)
        mean += turn;
    out->mean = mean;
    out->median += mean;
    out->q5 += mean;
    out->q95 += mean;
    if (out->sd > 0.0)
        out->sd =
            sqrt(-2.0 * log1p(-fmin(missing, 1.0 - DBL_EPSILON))) / to_rad;
    return TSR_OK;
}

static const tsr_convergence no_numbers = {
    (double)NAN, (double)NAN, (double)NAN, (double)NAN, (double)NAN,
    (double)NAN, (double)NAN, (double)NAN, (double)NAN, (double)NAN};

/* Appends an item for element k of a variable with n elements. */
static tsr_status new_item(tsr_summary *summary, const char *name,
                           const char *unit, int n, int k,
                           tsr_summary_item **out, tsr_err *err)
{
    tsr_pool *pool = &summary->pool;
    tsr_summary_item *item = tsr_pool_resize(
        pool, summary->item, (size_t)summary->n + 1, sizeof *item);
    TSR_TRY(tsr_pool_check(pool, err));
    summary->item = item;
    *out = item += summary->n++;
    *item = (tsr_summary_item){
        .value = no_numbers,
        .prior = no_numbers,
        .contraction = (double)NAN,
        .name = n == 1 ? tsr_pool_text(pool, name)
                       : tsr_pool_format(pool, "%s[%d]", name, k),
        .unit = tsr_pool_text(pool, unit)};
    return tsr_pool_check(pool, err);
}

/* Whether the values differ by rounding only, like a distance within a rigid
 * part that moves as a whole. */
static int is_rounding(const double *x, size_t n)
{
    double low = x[0], high = x[0];
    for (size_t i = 1; i < n; i++) {
        low = fmin(low, x[i]);
        high = fmax(high, x[i]);
    }
    return high - low <= 1e-13 * fmax(fabs(low), fabs(high));
}

/* Computes an item from its draws, one [n_chain * n_draw], which are
 * overwritten. */
static tsr_status summarise_item(tsr_summary *summary, tsr_summary_item *item,
                                 int n_group, int n_chain, int n_draw,
                                 double *one, tsr_err *err)
{
    const size_t count = (size_t)n_chain * (size_t)n_draw;
    const double turn = tsr_circular_turn(item->unit);
    size_t n_bad = 0;

    item->n_chain = n_chain;
    item->n_draw = n_draw;
    item->is_circular = turn > 0.0;
    for (size_t i = 0; i < count; i++)
        n_bad += isfinite(one[i]) ? 0 : 1;
    if (n_bad > 0) {
        item->flaw = TSR_FLAW_NOT_FINITE;
        item->flaw_text = tsr_pool_format(
            &summary->pool,
            "%zu of %zu draws of %.80s are not finite: no statistics", n_bad,
            count, item->name);
        return tsr_pool_check(&summary->pool, err);
    }
    const int varies = !is_rounding(one, count);
    tsr_status status = item->is_circular
                            ? tsr_circular_make(n_group, n_chain, n_draw, turn,
                                                one, &item->value, err)
                            : tsr_convergence_make(n_group, n_chain, n_draw,
                                                   one, &item->value, err);
    tsr_convergence *v = &item->value;
    if (!varies)
        v->mcse = v->ess_bulk = v->ess_tail = v->rhat = v->rhat_chains =
            (double)NAN;
    if (status == TSR_OK && isnan(v->rhat))
        item->flaw = n_draw < 4 ? TSR_FLAW_FEW_DRAWS : TSR_FLAW_CONSTANT;
    return status;
}

/* Adds one item for each element of a vector, in batches that fit into
 * memory. */
static tsr_status add_entries(tsr_summary *summary, tsr_trace_reader *reader,
                              tsr_trace_group group, const char *name,
                              const char *unit, int n_chain, int n_draw, int n,
                              tsr_err *err)
{
    const size_t rows = (size_t)n_chain * (size_t)n_draw;
    const int batch = tsr_entries_that_fit(n_chain, n_draw, n);
    double *column = malloc(rows * (size_t)batch * sizeof *column);
    int *at = calloc((size_t)batch, sizeof *at);
    tsr_status status =
        column == NULL || at == NULL ? tsr_no_memory(err) : TSR_OK;
    for (int first = 0; first < n && status == TSR_OK; first += batch) {
        const int width = n - first < batch ? n - first : batch;
        for (int k = 0; k < width; k++)
            at[k] = first + k;
        status = tsr_entries_get(reader, group, name, width, at, column, err);
        for (int k = 0; k < width && status == TSR_OK; k++) {
            tsr_summary_item *item;
            status = new_item(summary, name, unit, n, at[k], &item, err);
            TSR_THEN(status,
                     summarise_item(summary, item, tsr_trace_n_group(reader),
                                    n_chain, n_draw, column + (size_t)k * rows,
                                    err));
        }
    }
    free(column);
    free(at);
    return status;
}

static tsr_status add_variable(tsr_summary *summary, tsr_trace_reader *reader,
                               tsr_trace_group group, const char *name,
                               tsr_err *err)
{
    int n_chain, n_draw, n;
    tsr_err local = {.status = TSR_OK};
    tsr_summary_item *item;
    char *unit = NULL;
    tsr_status status =
        tsr_trace_shape(reader, group, name, &n_chain, &n_draw, &n, &local);

    if (status == TSR_OK && (n_chain == 0 || n_draw == 0))
        return TSR_OK;
    if (status == TSR_OK) {
        unit = tsr_trace_variable_text(reader, group, name, "units");
        status = add_entries(summary, reader, group, name, unit, n_chain,
                             n_draw, n, &local);
    }
    /* a damaged variable must not end the summary */
    if (status == TSR_E_IO || status == TSR_E_DATA) {
        status = new_item(summary, name, unit, 1, 0, &item, &local);
        if (status == TSR_OK) {
            item->flaw = TSR_FLAW_UNREADABLE;
            item->flaw_text = tsr_pool_text(&summary->pool, local.message);
            status = tsr_pool_check(&summary->pool, &local);
        }
    }
    free(unit);
    return status == TSR_OK ? TSR_OK
                            : tsr_fail(err, status, "%s", local.message);
}

static int count_read(const tsr_summary *summary)
{
    int n = 0;
    for (int i = 0; i < summary->n; i++)
        n += summary->item[i].flaw != TSR_FLAW_UNREADABLE;
    return n;
}

tsr_status tsr_summary_make(tsr_trace_reader *reader, tsr_summary **out,
                            tsr_err *err)
{
    const char *const *name;
    tsr_status status = TSR_OK;

    *out = NULL;
    tsr_summary *summary = calloc(1, sizeof *summary);
    TSR_TRY(tsr_allocated(summary, err));
    int n = tsr_trace_variables(reader, TSR_TRACE_POSTERIOR, &name);
    for (int i = 0; i < n && status == TSR_OK; i++)
        status =
            add_variable(summary, reader, TSR_TRACE_POSTERIOR, name[i], err);
    if (status == TSR_OK && tsr_trace_has(reader, TSR_TRACE_SAMPLE_STATS, "lp"))
        status =
            add_variable(summary, reader, TSR_TRACE_SAMPLE_STATS, "lp", err);
    if (status == TSR_OK && summary->n == 0)
        status = tsr_fail(err, TSR_E_DATA,
                          "the trace has no draw of the posterior yet: wait "
                          "for the end of warm-up");
    else if (status == TSR_OK && count_read(summary) == 0)
        status = tsr_fail(err, TSR_E_IO, "no variable is readable: %s",
                          summary->item[0].flaw_text);
    TSR_HAND_OVER(status, summary, out, tsr_summary_free);
}

void tsr_summary_free(tsr_summary *summary)
{
    if (summary == NULL)
        return;
    tsr_pool_clear(&summary->pool);
    free(summary);
}

const tsr_summary_item *tsr_summary_find(const tsr_summary *summary,
                                         const char *name)
{
    for (int i = 0; i < summary->n; i++)
        if (strcmp(summary->item[i].name, name) == 0)
            return &summary->item[i];
    return NULL;
}

tsr_status tsr_summary_draws(tsr_trace_reader *reader, const char *name,
                             int *n_chain, int *n_draw, double **value,
                             tsr_err *err)
{
    static const tsr_trace_group group[] = {TSR_TRACE_POSTERIOR,
                                            TSR_TRACE_SAMPLE_STATS};
    int n;
    tsr_status status = TSR_OK;
    tsr_err local;
    *value = NULL;
    for (int g = 0; g < 2 && *value == NULL && status != TSR_E_NOMEM; g++)
        if (tsr_trace_shape(reader, group[g], name, n_chain, n_draw, &n,
                            NULL) == TSR_OK &&
            n == 1 && *n_chain > 0 && *n_draw > 0)
            status = tsr_trace_get(reader, group[g], name, n_chain, n_draw, &n,
                                   value, &local);
    return status == TSR_E_NOMEM ? tsr_fail(err, status, "%s", local.message)
                                 : TSR_OK;
}

const tsr_summary_item *tsr_summary_slowest(const tsr_summary *summary,
                                            double *ess)
{
    const tsr_summary_item *slowest = NULL;
    *ess = 0.0;
    for (int i = 0; i < summary->n; i++) {
        const tsr_convergence *v = &summary->item[i].value;
        const double ess_of_item = fmin(v->ess_bulk, v->ess_tail);
        if (summary->item[i].flaw == TSR_FLAW_NONE && isfinite(ess_of_item) &&
            (slowest == NULL || ess_of_item < *ess)) {
            slowest = &summary->item[i];
            *ess = ess_of_item;
        }
    }
    return slowest;
}

static int is_same_text(const char *a, const char *b)
{
    return a == NULL || b == NULL ? a == b : strcmp(a, b) == 0;
}

tsr_status tsr_summary_add_evidence(tsr_summary *summary,
                                    tsr_trace_reader *reader, tsr_err *err)
{
    tsr_evidence evidence;
    TSR_TRY(tsr_evidence_make(reader, &evidence, err));
    if (evidence.n_temp > 1 || isfinite(evidence.log))
        summary->evidence = evidence;
    return TSR_OK;
}

tsr_status tsr_summary_add_prior(tsr_summary *summary, tsr_trace_reader *prior,
                                 tsr_err *err)
{
    tsr_summary *other = NULL;
    tsr_status status = tsr_summary_make(prior, &other, err);

    for (int i = 0; status == TSR_OK && i < summary->n; i++) {
        tsr_summary_item *item = &summary->item[i];
        const tsr_summary_item *in_prior = tsr_summary_find(other, item->name);
        if (in_prior == NULL || strcmp(item->name, "lp") == 0 ||
            !is_same_text(item->unit, in_prior->unit))
            continue;
        const double share = item->value.sd / in_prior->value.sd;
        item->has_prior = summary->has_prior = 1;
        item->prior = in_prior->value;
        item->contraction =
            in_prior->value.sd > 0.0 ? 1.0 - share * share : (double)NAN;
    }
    if (status == TSR_OK && !summary->has_prior)
        status = tsr_fail(err, TSR_E_DATA,
                          "no variable of the prior run has the name and unit "
                          "of a variable of this run");
    tsr_summary_free(other);
    return status;
}

/* ---- subsets of draws ---- */

/* Draws are stored in compressed blocks, and reading a draw unpacks its whole
 * block. So if fewer than DENSE draws are skipped at a time, reading all draws
 * is faster. most_numbers: size of a block in memory. */
enum { DENSE = 64 };
static const double most_numbers = 4194304.0;

tsr_status tsr_rows_for_each(tsr_trace_reader *reader, tsr_trace_group group,
                             const char *name, int every, int entry_from, int n,
                             tsr_row_callback visit, void *context,
                             tsr_err *err)
{
    int n_chain, n_draw, n_entry;
    TSR_TRY(
        tsr_trace_shape(reader, group, name, &n_chain, &n_draw, &n_entry, err));
    const size_t row = (size_t)n_chain * (size_t)n;
    const int dense = (int)fmax(1.0, floor(most_numbers / (double)row));
    const int width = every >= DENSE ? 1 : dense < n_draw ? dense : n_draw;
    const int step = width == 1 ? every : width;
    double *block = malloc((size_t)width * row * sizeof *block);
    tsr_status status = tsr_allocated(block, err);
    for (int from = 0; from < n_draw && status == TSR_OK; from += step) {
        const int left = n_draw - from, count = left < width ? left : width;
        const tsr_trace_part part = {from, count, entry_from, n};
        status = tsr_trace_get_part(reader, group, name, &part, block, err);
        for (int i = 0; i < n_chain * count && status == TSR_OK; i++)
            if ((from + i % count) % every == 0)
                status = visit(context, i / count, from + i % count,
                               block + (size_t)i * (size_t)n, err);
    }
    free(block);
    return status;
}

static tsr_status store_row(void *context, int chain, int draw, double *row,
                            tsr_err *err)
{
    tsr_thinned *t = context;
    const size_t n = (size_t)t->n;
    const size_t at =
        (size_t)chain * (size_t)t->n_kept + (size_t)(draw / t->every);
    (void)err;
    memcpy(t->value + at * n, row, n * sizeof *row);
    return TSR_OK;
}

tsr_status tsr_thinned_get(tsr_trace_reader *reader, tsr_trace_group group,
                           const char *name, long most, int entry_from, int n,
                           tsr_thinned *out, tsr_err *err)
{
    int n_chain, n_draw, n_entry;
    *out = (tsr_thinned){.n = n, .every = 1};
    if (tsr_trace_shape(reader, group, name, &n_chain, &n_draw, &n_entry,
                        NULL) != TSR_OK ||
        n_chain < 1 || n_draw < 1 || entry_from + n > n_entry)
        return TSR_OK;
    out->every = (int)(((long)n_chain * n_draw + most - 1) / most);
    out->n_chain = n_chain;
    out->n_kept = (n_draw + out->every - 1) / out->every;
    out->value = malloc((size_t)n_chain * (size_t)out->n_kept * (size_t)n *
                        sizeof *out->value);
    TSR_TRY(tsr_allocated(out->value, err));
    return tsr_rows_for_each(reader, group, name, out->every, entry_from, n,
                             store_row, out, err);
}

typedef struct {
    int n, n_draw;
    const int *at;
    size_t rows;
    double *column;
} wanted_columns;

static tsr_status store_columns(void *context, int chain, int draw, double *row,
                                tsr_err *err)
{
    const wanted_columns *c = context;
    double *to = c->column + (size_t)chain * (size_t)c->n_draw + (size_t)draw;
    (void)err;
    for (int k = 0; k < c->n; k++)
        to[(size_t)k * c->rows] = row[c->at[k] - c->at[0]];
    return TSR_OK;
}

int tsr_entries_that_fit(int n_chain, int n_draw, int n)
{
    const double most = 33554432.0, rows = (double)n_chain * n_draw;
    return (int)fmin(n, fmax(1.0, floor(most / rows)));
}

tsr_status tsr_entries_get(tsr_trace_reader *reader, tsr_trace_group group,
                           const char *name, int n, const int *at,
                           double *column, tsr_err *err)
{
    int n_chain, n_draw, n_entry;
    TSR_TRY(
        tsr_trace_shape(reader, group, name, &n_chain, &n_draw, &n_entry, err));
    wanted_columns c = {n, n_draw, at, (size_t)n_chain * (size_t)n_draw,
                        column};
    return tsr_rows_for_each(reader, group, name, 1, at[0],
                             at[n - 1] - at[0] + 1, store_columns, &c, err);
}

/* ---- curves ----
 *
 * A curve is summarised point by point. The curves of a run may exceed memory,
 * so draws are read in blocks. If sorting would take too long, points are left
 * out. */

void tsr_curve_summary_free(tsr_curve_summary *summary)
{
    if (summary == NULL)
        return;
    tsr_pool_clear(&summary->pool);
    free(summary);
}

/* Chooses the points, and reads their q. */
static tsr_status choose_points(tsr_curve_summary *s, tsr_trace_reader *reader,
                                double rows, double most, tsr_err *err)
{
    int n_coord;
    double *coord = NULL;
    const double fits = floor(most / rows);
    s->n = fits >= s->n_point ? s->n_point : (int)fmax(2.0, fits);
    s->n = s->n < s->n_point ? s->n : s->n_point;
    tsr_pool_array(&s->pool, s->at, s->n);
    tsr_pool_array(&s->pool, s->q, s->n);
    tsr_pool_array(&s->pool, s->point, s->n);
    TSR_TRY(tsr_pool_check(&s->pool, err));
    tsr_status status = tsr_trace_coordinates(
        reader, TSR_TRACE_POSTERIOR_PREDICTIVE, s->name, &n_coord, &coord, err);
    for (int i = 0; i < s->n && status == TSR_OK; i++) {
        s->at[i] =
            s->n > 1 ? (int)((long)i * (s->n_point - 1) / (s->n - 1)) : 0;
        s->q[i] =
            coord != NULL && n_coord == s->n_point ? coord[s->at[i]] : s->at[i];
    }
    free(coord);
    return status;
}

/* Points of a curve whose draws are in memory. */
typedef struct {
    int n_group, n_chain, n_draw;
    const double *column;   /* [n][n_chain][n_draw] */
    tsr_convergence *point; /* [n] out */
} points;

static tsr_status summarise_point(void *context, int k, int thread,
                                  tsr_err *err)
{
    const points *p = context;
    const size_t rows = (size_t)p->n_chain * (size_t)p->n_draw;
    (void)thread;
    return tsr_convergence_make(p->n_group, p->n_chain, p->n_draw,
                                p->column + (size_t)k * rows, &p->point[k],
                                err);
}

static tsr_status summarise(tsr_curve_summary *s, tsr_trace_reader *reader,
                            int n_chain, int n_draw, tsr_err *err)
{
    const size_t rows = (size_t)n_chain * (size_t)n_draw;
    const int batch = tsr_entries_that_fit(n_chain, n_draw, s->n);
    /* a thread needs the memory of ten columns */
    const int n_thread =
        tsr_entries_that_fit(n_chain, n_draw, 10 * tsr_parallel_processors()) /
        10;
    double *column = malloc(rows * (size_t)batch * sizeof *column);
    tsr_status status = tsr_allocated(column, err);
    for (int first = 0; first < s->n && status == TSR_OK; first += batch) {
        const int n = s->n - first < batch ? s->n - first : batch;
        status = tsr_entries_get(reader, TSR_TRACE_POSTERIOR_PREDICTIVE,
                                 s->name, n, s->at + first, column, err);
        points p = {tsr_trace_n_group(reader), n_chain, n_draw, column,
                    s->point + first};
        TSR_THEN(status, tsr_parallel_try(n, n_thread > 0 ? n_thread : 1,
                                          summarise_point, &p, err));
        for (int k = 0; k < n && status == TSR_OK; k++)
            s->n_bad += isnan(s->point[first + k].mean);
    }
    free(column);
    return status;
}

tsr_status tsr_curve_summary_make(tsr_trace_reader *reader, const char *name,
                                  double most, tsr_curve_summary **out,
                                  tsr_err *err)
{
    int n_chain, n_draw, n;
    *out = NULL;
    TSR_TRY(tsr_trace_shape(reader, TSR_TRACE_POSTERIOR_PREDICTIVE, name,
                            &n_chain, &n_draw, &n, err));
    if (n_chain == 0 || n_draw == 0 || n == 0)
        return tsr_fail(err, TSR_E_DATA, "'%s' has no draws", name);
    tsr_curve_summary *s = calloc(1, sizeof *s);
    TSR_TRY(tsr_allocated(s, err));
    s->name = tsr_pool_text(&s->pool, name);
    s->n_point = n;
    tsr_status status =
        choose_points(s, reader, (double)n_chain * n_draw, most, err);
    TSR_THEN(status, summarise(s, reader, n_chain, n_draw, err));
    TSR_HAND_OVER(status, s, out, tsr_curve_summary_free);
}

int tsr_curve_summary_worst(const tsr_curve_summary *summary)
{
    int worst = -1;
    for (int i = 0; i < summary->n; i++)
        if (!isnan(summary->point[i].rhat) &&
            (worst < 0 || summary->point[i].rhat > summary->point[worst].rhat))
            worst = i;
    return worst;
}

/* ---- several samples of one molecule ---- */

const double tsr_series_probability[TSR_SERIES_QUANTILES] = {0.025, 0.16, 0.5,
                                                             0.84, 0.975};

/* Reads the weights of state or species number s->n_state, from 0, where there
 * is one. */
static tsr_status add_state(tsr_series *s, tsr_trace_reader *reader,
                            tsr_pool *pool, const char *name, tsr_err *err)
{
    int n_chain, n_draw, n;
    double *value;
    TSR_TRY(tsr_trace_get(reader, TSR_TRACE_POSTERIOR, name, &n_chain, &n_draw,
                          &n, &value, err));
    const size_t rows = (size_t)n_chain * (size_t)n_draw, width = (size_t)n;
    s->n = n;
    s->quantile =
        tsr_pool_resize(pool, s->quantile, (size_t)(s->n_state + 1) * width,
                        sizeof *s->quantile);
    for (size_t i = 0; i < width && s->quantile != NULL && rows > 0; i++) {
        double *to = s->quantile[(size_t)s->n_state * width + i];
        gsl_sort(value + i, width, rows);
        for (int k = 0; k < TSR_SERIES_QUANTILES; k++)
            to[k] = gsl_stats_quantile_from_sorted_data(
                value + i, width, rows, tsr_series_probability[k]);
    }
    s->n_state++;
    s->name =
        tsr_pool_resize(pool, s->name, (size_t)s->n_state, sizeof(*s->name));
    if (s->name != NULL)
        s->name[s->n_state - 1] = tsr_pool_format(
            pool, "%s %d", s->is_species ? "species" : "state", s->n_state);
    free(value);
    return tsr_pool_check(pool, err);
}

tsr_status tsr_series_make(tsr_trace_reader *reader, tsr_pool *pool,
                           tsr_series *out, tsr_err *err)
{
    tsr_series *s = out;
    char name[32] = "fraction_1";
    double *at = NULL;
    int n_at = 0;
    *s = (tsr_series){.is_species =
                          tsr_trace_has(reader, TSR_TRACE_POSTERIOR, name)};
    const char *kind = s->is_species ? "fraction" : "curve_weight";
    snprintf(name, sizeof name, "%s_1", kind);
    while (tsr_trace_has(reader, TSR_TRACE_POSTERIOR, name)) {
        TSR_TRY(add_state(s, reader, pool, name, err));
        snprintf(name, sizeof name, "%s_%d", kind, s->n_state + 1);
    }
    if (s->n == 0)
        return TSR_OK;
    snprintf(name, sizeof name, "%s_1", kind);
    if (s->n > 1)
        TSR_TRY(tsr_trace_coordinates(reader, TSR_TRACE_POSTERIOR, name, &n_at,
                                      &at, err));
    char *unit =
        tsr_trace_variable_text(reader, TSR_TRACE_POSTERIOR, "curve", "units");
    s->is_series =
        s->n > 1 && (unit == NULL || strcmp(unit, TSR_UNIT_OF_ENTRIES) != 0);
    s->unit = unit != NULL ? tsr_pool_text(pool, unit) : NULL;
    tsr_pool_array(pool, s->at, s->n);
    tsr_pool_array(pool, s->label, s->n);
    for (int i = 0; i < s->n && !pool->failed; i++) {
        s->at[i] = at != NULL && n_at == s->n ? at[i] : i;
        s->label[i] = tsr_pool_format(pool, "%.6g", s->at[i]);
    }
    free(unit);
    free(at);
    return tsr_pool_check(pool, err);
}

/* ---- output as text ----
 *
 * The table shows a mean with the digits that its standard error supports,
 * since more digits would change with the seed. JSON has full precision, for
 * programs. */

/* Format of a column. */
typedef enum { LOCATION, COUNT, RHAT, SHARE } column_style;

static const struct {
    const char *name;
    size_t offset;
    column_style style;
} columns[] = {
    {"mean", offsetof(tsr_convergence, mean), LOCATION},
    {"sd", offsetof(tsr_convergence, sd), LOCATION},
    {"median", offsetof(tsr_convergence, median), LOCATION},
    {"q5", offsetof(tsr_convergence, q5), LOCATION},
    {"q95", offsetof(tsr_convergence, q95), LOCATION},
    {"mcse", offsetof(tsr_convergence, mcse), LOCATION},
    {"ess_bulk", offsetof(tsr_convergence, ess_bulk), COUNT},
    {"ess_tail", offsetof(tsr_convergence, ess_tail), COUNT},
    {"rhat", offsetof(tsr_convergence, rhat), RHAT},
};
enum {
    N_COLUMN = sizeof columns / sizeof columns[0],
    /* columns of the prior: mean, sd, q5, q95, contraction */
    N_PRIOR = 5,
    CELL = TSR_SUMMARY_CELL
};
static const int prior_column[N_PRIOR] = {0, 1, 3, 4, -1};
static const char *const prior_name[N_PRIOR] = {
    "prior_mean", "prior_sd", "prior_q5", "prior_q95", "learned"};

static double column(const tsr_convergence *value, int i)
{
    return *(const double *)((const char *)value + columns[i].offset);
}

static tsr_status check_written(FILE *out, tsr_err *err)
{
    if (fflush(out) != 0 || ferror(out))
        return tsr_fail(err, TSR_E_IO, "cannot write the summary: %s",
                        strerror(errno));
    return TSR_OK;
}

int tsr_summary_decimals(const tsr_convergence *value)
{
    double error = isfinite(value->mcse) ? value->mcse : value->sd / 100.0;

    if (!(error > 0.0 && isfinite(error)))
        return 3;
    int decimals = 1 - (int)floor(log10(error));
    return decimals < 0 ? 0 : decimals > 12 ? 12 : decimals;
}

/* Text in place of a missing number in the table, and the note in JSON; NULL:
 * the note is the item's flaw_text. */
static const struct {
    const char *cell, *note;
} flaws[] = {
    [TSR_FLAW_NONE] = {"-", NULL},
    [TSR_FLAW_FEW_DRAWS] = {"few", "fewer than 4 draws per chain"},
    [TSR_FLAW_CONSTANT] = {"-", "constant"},
    [TSR_FLAW_NOT_FINITE] = {"nan", NULL},
    [TSR_FLAW_UNREADABLE] = {"damaged", NULL},
};

void tsr_summary_number(char text[CELL], double x, int decimals)
{
    if (x != 0.0 && (fabs(x) >= 1e9 || fabs(x) < 1e-4))
        snprintf(text, CELL, "%.4g", x);
    else
        snprintf(text, CELL, "%.*f", decimals, x);
}

static void format_number(char text[CELL], double x, column_style style,
                          int decimals, const char *missing)
{
    if (isnan(x))
        snprintf(text, CELL, "%s", missing);
    else if (style == COUNT)
        snprintf(text, CELL, "%.0f", x);
    else if (style == RHAT)
        snprintf(text, CELL, "%.4f", x);
    else if (style == SHARE)
        snprintf(text, CELL, "%.0f %%", 100.0 * x);
    else
        tsr_summary_number(text, x, decimals);
}

/* Formats column c of the table: first the posterior's columns, then the
 * prior's. */
static void format_cell(char text[CELL], const tsr_summary_item *item, int c)
{
    if (c < N_COLUMN) {
        format_number(text, column(&item->value, c), columns[c].style,
                      tsr_summary_decimals(&item->value),
                      flaws[item->flaw].cell);
        return;
    }
    const int k = prior_column[c - N_COLUMN];
    format_number(text, k < 0 ? item->contraction : column(&item->prior, k),
                  k < 0 ? SHARE : LOCATION, tsr_summary_decimals(&item->prior),
                  "-");
}

static const char *column_name(int c)
{
    return c < N_COLUMN ? columns[c].name : prior_name[c - N_COLUMN];
}

static int wider(int width, const char *text)
{
    int n = text != NULL ? tsr_text_width(text) : 0;
    return n > width ? n : width;
}

static void print_row(FILE *out, const tsr_summary_item *item, int name_width,
                      int unit_width, int n_column, const int *width)
{
    char cell[CELL];
    const char *unit = item->unit != NULL ? item->unit : "";
    fprintf(out, "%s%*s  %s%*s", item->name,
            name_width - tsr_text_width(item->name), "", unit,
            unit_width - tsr_text_width(unit), "");
    for (int c = 0; c < n_column; c++) {
        format_cell(cell, item, c);
        fprintf(out, "  %*s", width[c], cell);
    }
    fputc('\n', out);
}

tsr_status tsr_summary_print(const tsr_summary *summary, FILE *out,
                             tsr_err *err)
{
    int name_width = wider(0, "variable"), unit_width = wider(0, "unit");
    const int n_column = summary->has_prior ? N_COLUMN + N_PRIOR : N_COLUMN;
    int width[N_COLUMN + N_PRIOR];
    char cell[CELL];

    for (int c = 0; c < n_column; c++)
        width[c] = wider(0, column_name(c));
    for (int i = 0; i < summary->n; i++) {
        const tsr_summary_item *item = &summary->item[i];
        if (item->is_hidden)
            continue;
        name_width = wider(name_width, item->name);
        unit_width = wider(unit_width, item->unit);
        for (int c = 0; c < n_column; c++) {
            format_cell(cell, item, c);
            width[c] = wider(width[c], cell);
        }
    }
    fprintf(out, "%-*s  %-*s", name_width, "variable", unit_width, "unit");
    for (int c = 0; c < n_column; c++)
        fprintf(out, "  %*s", width[c], column_name(c));
    fputc('\n', out);
    for (int i = 0; i < summary->n; i++)
        if (!summary->item[i].is_hidden)
            print_row(out, &summary->item[i], name_width, unit_width, n_column,
                      width);
    if (summary->evidence.n_temp > 0) {
        char text[TSR_EVIDENCE_TEXT];
        fprintf(out, "\nlog evidence: %s\n",
                tsr_evidence_format(&summary->evidence, text));
    }
    return check_written(out, err);
}

static double least_ess(const tsr_summary_item *item)
{
    double ess = fmin(item->value.ess_bulk, item->value.ess_tail);
    return isnan(ess) ? HUGE_VAL : ess;
}

int tsr_summary_hide_poses(tsr_summary *summary)
{
    static const char *const kind[] = {"pose_", "tail_"};
    int n_hidden = 0;
    for (int k = 0; k < 2; k++) {
        tsr_summary_item *worst = NULL;
        for (int i = 0; i < summary->n; i++) {
            tsr_summary_item *item = &summary->item[i];
            if (strncmp(item->name, kind[k], strlen(kind[k])) != 0 ||
                strstr(item->name, "_distance") != NULL ||
                item->flaw_text != NULL)
                continue;
            item->is_hidden = 1;
            n_hidden++;
            if (worst == NULL || least_ess(item) < least_ess(worst))
                worst = item;
        }
        if (worst != NULL) {
            worst->is_hidden = 0;
            n_hidden--;
        }
    }
    return n_hidden;
}

/* ---- JSON ---- */

static void put_columns(tsr_json *j, const tsr_convergence *value)
{
    for (int c = 0; c < N_COLUMN; c++)
        tsr_json_number(j, columns[c].name, column(value, c));
}

static const char *note_of(const tsr_summary_item *item)
{
    const char *note = flaws[item->flaw].note;
    return note != NULL              ? note
           : isinf(item->value.rhat) ? "rhat is infinite: the chains are "
                                       "constant, each at another value"
                                     : item->flaw_text;
}

void tsr_summary_put(const tsr_summary *summary, tsr_json *json)
{
    for (int i = 0; i < summary->n; i++) {
        const tsr_summary_item *item = &summary->item[i];
        tsr_json_object(json, item->name);
        put_columns(json, &item->value);
        if (isfinite(item->value.rhat_chains))
            tsr_json_number(json, "rhat_chains", item->value.rhat_chains);
        if (item->is_circular)
            tsr_json_boolean(json, "circular", 1);
        if (note_of(item) != NULL)
            tsr_json_text(json, "note", note_of(item));
        if (item->has_prior) {
            tsr_json_object(json, "prior");
            put_columns(json, &item->prior);
            tsr_json_close(json);
            tsr_json_number(json, "contraction", item->contraction);
        }
        tsr_json_close(json);
    }
    if (summary->evidence.n_temp > 0)
        tsr_evidence_put(&summary->evidence, "evidence", json);
}
