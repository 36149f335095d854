/* Blocks of draws in memory: every column's values, chain by chain, until they
 * go to the trace. */
#include "sampler/record.h"

#include "sampler/column.h"

#include <stdlib.h>
#include <string.h>

/* What the terms tell of a draw, for one chain: threads store at once. */
typedef struct {
    double *theta;
    double **row; /* [3 n_term] expected, replicate, log density */
} scratch;

struct tsr_record {
    const tsr_target *target;
    tsr_parameters *parameters; /* the table, for names */
    int n_chain, capacity;
    tsr_columns columns;
    double **value; /* [n] [n_chain][capacity][n]; NULL: constant */
    tsr_trace_variable *variable; /* [n] */
    scratch *own;                 /* [n_chain] */
    double *packed;               /* for writing part of a block */
};

static int n_term(const tsr_target *target)
{
    return target->likelihood == NULL ? 0 : target->likelihood->n_term;
}

void tsr_record_free(tsr_record *record)
{
    tsr_record *r = record;
    if (r == NULL)
        return;
    for (int v = 0; r->value != NULL && v < r->columns.n; v++)
        free(r->value[v]);
    for (int c = 0; r->own != NULL && c < r->n_chain; c++) {
        for (int d = 0; r->own[c].row != NULL && d < 3 * n_term(r->target); d++)
            free(r->own[c].row[d]);
        free(r->own[c].row);
        free(r->own[c].theta);
    }
    tsr_parameters_free(r->parameters);
    free(r->columns.item);
    free(r->value);
    free(r->variable);
    free(r->own);
    free(r->packed);
    free(r);
}

int tsr_record_capacity(const tsr_record *record)
{
    return record->capacity;
}

int tsr_record_variables(const tsr_record *record,
                         const tsr_trace_variable **variable)
{
    *variable = record->variable;
    return record->columns.n;
}

static int is_warm(tsr_trace_group group)
{
    return group == TSR_TRACE_WARMUP_POSTERIOR ||
           group == TSR_TRACE_WARMUP_SAMPLE_STATS;
}

/* ---- the list of columns ---- */

static tsr_status append(tsr_columns *columns, const tsr_column *column,
                         tsr_err *err)
{
    tsr_columns *c = columns;
    if (c->n == c->room) {
        int room = 2 * c->room + 32;
        tsr_column *more = realloc(c->item, (size_t)room * sizeof *more);
        TSR_TRY(tsr_allocated(more, err));
        c->item = more;
        c->room = room;
    }
    c->item[c->n++] = *column;
    return TSR_OK;
}

tsr_status tsr_columns_add(tsr_columns *columns, tsr_column column,
                           tsr_err *err)
{
    if (column.get == NULL && column.constant == NULL)
        return tsr_fail(err, TSR_E_INTERNAL,
                        "nobody gives the trace's column '%s'", column.name);
    TSR_TRY(append(columns, &column, err));
    const int is_scalar = column.axis.name == NULL;
    if (is_scalar && (column.group == TSR_TRACE_POSTERIOR ||
                      column.group == TSR_TRACE_SAMPLE_STATS)) {
        column.group = column.group == TSR_TRACE_POSTERIOR
                           ? TSR_TRACE_WARMUP_POSTERIOR
                           : TSR_TRACE_WARMUP_SAMPLE_STATS;
        TSR_TRY(append(columns, &column, err));
    }
    return TSR_OK;
}

static tsr_status list(tsr_record *r, tsr_err *err)
{
    TSR_TRY(tsr_chain_columns(r->target, &r->columns, err));
    TSR_TRY(tsr_ladder_columns(r->target, &r->columns, err));
    TSR_TRY(tsr_parameter_columns(r->target, r->parameters, &r->columns, err));
    return tsr_term_columns(r->target, &r->columns, err);
}

/* ---- memory ---- */

static void describe(const tsr_column *c, tsr_trace_variable *variable)
{
    const int has_axis = c->axis.name != NULL;
    *variable =
        (tsr_trace_variable){.group = c->group,
                             .name = c->name,
                             .unit = c->unit,
                             .doc = c->doc != NULL ? c->doc : c->own_doc,
                             .dim = has_axis ? c->dim : NULL,
                             .n = c->axis.n,
                             .coord = c->axis.coord,
                             .coord_unit = c->axis.coord_unit,
                             .coord_label = c->axis.label,
                             .single = has_axis && c->constant == NULL};
}

/* 0: out of memory. */
static int open_columns(tsr_record *r)
{
    const size_t n = (size_t)r->columns.n;
    const size_t n_draw = (size_t)r->n_chain * (size_t)r->capacity;
    size_t widest = 1;
    r->value = calloc(n, sizeof(*r->value));
    r->variable = calloc(n, sizeof *r->variable);
    int complete = r->value != NULL && r->variable != NULL;
    for (size_t v = 0; v < n && complete; v++) {
        const tsr_column *c = &r->columns.item[v];
        const size_t width = (size_t)c->axis.n;
        describe(c, &r->variable[v]);
        widest = width > widest ? width : widest;
        if (c->constant != NULL)
            continue;
        r->value[v] = calloc(n_draw * width, sizeof **r->value);
        complete = r->value[v] != NULL;
    }
    r->packed = calloc(n_draw * widest, sizeof *r->packed);
    return complete && r->packed != NULL;
}

static int open_scratch(tsr_record *r)
{
    const int n = n_term(r->target);
    r->own = calloc((size_t)r->n_chain, sizeof *r->own);
    int complete = r->own != NULL;
    for (int c = 0; c < r->n_chain && complete; c++) {
        scratch *s = &r->own[c];
        s->theta = calloc((size_t)r->parameters->n, sizeof *s->theta);
        s->row = calloc((size_t)(3 * n) + 1, sizeof(*s->row));
        complete = s->theta != NULL && s->row != NULL;
        for (int k = 0; k < 3 * n && complete; k++) {
            const tsr_term *term = r->target->likelihood->term[k % n];
            s->row[k] = calloc((size_t)term->n_point + 1, sizeof **s->row);
            complete = s->row[k] != NULL;
        }
    }
    return complete;
}

tsr_status tsr_record_new(const tsr_target *target, int n_chain, int capacity,
                          tsr_record **out, tsr_err *err)
{
    *out = NULL;
    tsr_record *r = calloc(1, sizeof *r);
    TSR_TRY(tsr_allocated(r, err));
    target = tsr_fine_target(target);
    r->target = target;
    r->n_chain = n_chain;
    r->capacity = capacity;
    r->parameters =
        tsr_parameters_new(target->likelihood, target->contrast,
                           tsr_target_n_state(target), target->infer_weights);
    tsr_status status = tsr_allocated(r->parameters, err);
    TSR_THEN(status, list(r, err));
    if (status == TSR_OK && !(open_columns(r) && open_scratch(r)))
        status = tsr_no_memory(err);
    if (status == TSR_OK)
        *out = r;
    else
        tsr_record_free(r);
    return status;
}

/* ---- draws ---- */

/* Parameters that are integrated out get values; after warm-up the terms'
 * expected values, replicates and log densities. */
static void complete(const tsr_target *target, const tsr_chain_view *view,
                     scratch *s, int warm)
{
    const tsr_likelihood *l = target->likelihood;
    const tsr_point *at = view->point;
    const tsr_prediction states = {NULL, view->n_state, view->state,
                                   view->state_weight};
    memcpy(s->theta, at->theta, (size_t)view->parameters->n * sizeof *s->theta);
    for (int d = 0; d < n_term(target); d++) {
        const tsr_term *term = l->term[d];
        const tsr_term_type *type = term->type;
        double *theta = s->theta + term->first;
        double *mean = s->row[d], *replicate = s->row[l->n_term + d];
        double *pointwise = s->row[2 * l->n_term + d];
        if (type->draw != NULL && term->is_integrated)
            type->draw(term, at->fit[d], 1.0, view->rng, theta);
        if (warm)
            continue;
        const tsr_prediction prediction =
            tsr_likelihood_view_of(l, at, term, states);
        type->predict(term, &prediction, at->fit[d], theta, mean);
        for (int k = 0; k < term->n_point; k++) {
            replicate[k] =
                tsr_term_draw_point(term, theta, k, mean[k], view->rng);
            pointwise[k] =
                tsr_term_log_point(term, at->fit[d], theta, k, mean[k]);
        }
    }
}

static double *cell(const tsr_record *r, int v, int chain, int draw)
{
    size_t n = (size_t)r->columns.item[v].axis.n;
    return r->value[v] +
           ((size_t)chain * (size_t)r->capacity + (size_t)draw) * n;
}

void tsr_record_store(tsr_record *record, const tsr_record_ladder *ladder,
                      int chain_number, int draw, int warm,
                      double acceptance_rate)
{
    tsr_record *r = record;
    scratch *s = &r->own[chain_number];
    const int n = n_term(r->target);
    tsr_chain_view view;
    const tsr_chain *coldest =
        ladder->replica[tsr_ladder_replica(ladder->ladder, 0)];
    if (ladder->fine != NULL)
        tsr_fine_look(ladder->fine, coldest, &view);
    else
        tsr_chain_look(coldest, &view);
    complete(r->target, &view, s, warm);
    const double *const *row = (const double *const *)s->row;
    const tsr_draw now = {.target = r->target,
                          .view = &view,
                          .ladder = ladder->ladder,
                          .replica = ladder->replica,
                          .fine = ladder->fine,
                          .acceptance_rate = acceptance_rate,
                          .theta = s->theta,
                          .mean = row,
                          .replicate = row + n,
                          .pointwise = row + 2 * n};
    for (int v = 0; v < r->columns.n; v++) {
        const tsr_column *c = &r->columns.item[v];
        if (c->get != NULL && is_warm(c->group) == warm)
            c->get(c, &now, cell(r, v, chain_number, draw));
    }
}

tsr_status tsr_record_write(tsr_record *record, tsr_trace *trace, int warm,
                            int n_draw, tsr_err *err)
{
    tsr_record *r = record;
    for (int v = 0; v < r->columns.n && n_draw > 0; v++) {
        const tsr_column *c = &r->columns.item[v];
        if (c->get == NULL || is_warm(c->group) != warm)
            continue;
        size_t row = (size_t)n_draw * (size_t)c->axis.n;
        for (int k = 0; k < r->n_chain; k++)
            memcpy(r->packed + (size_t)k * row, cell(r, v, k, 0),
                   row * sizeof *r->packed);
        tsr_status status = tsr_trace_append(trace, v, n_draw, r->packed, err);
        if (status != TSR_OK)
            return status;
    }
    return TSR_OK;
}

tsr_status tsr_record_write_data(tsr_record *record, tsr_trace *trace,
                                 tsr_err *err)
{
    tsr_record *r = record;
    for (int v = 0; v < r->columns.n; v++) {
        const tsr_column *c = &r->columns.item[v];
        if (c->constant == NULL)
            continue;
        tsr_status status = tsr_trace_put(trace, v, c->constant, err);
        if (status != TSR_OK)
            return status;
    }
    return TSR_OK;
}
