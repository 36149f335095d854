/* Chosen draws as a table: a row a draw, a column for each scalar of the trace.
 */
#include "analysis/export.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

typedef struct {
    const char *name;
    double *value; /* [n_chain][n_draw] */
} column;

typedef struct {
    int n, n_chain, n_draw;
    column *column; /* [n] */
} table;

static void table_clear(table *t)
{
    for (int i = 0; i < t->n; i++)
        free(t->column[i].value);
    free(t->column);
}

/* Adds the scalars of a group that have as many draws as those before. */
static tsr_status add_group(table *t, tsr_trace_reader *trace,
                            tsr_trace_group group, tsr_err *err)
{
    const char *const *name;
    tsr_status status = TSR_OK;
    const int n = tsr_trace_variables(trace, group, &name);
    column *more = realloc(t->column, (size_t)(t->n + n + 1) * sizeof *more);
    TSR_TRY(tsr_allocated(more, err));
    t->column = more;
    for (int i = 0; i < n && status == TSR_OK; i++) {
        int n_chain, n_draw, n_each;
        if (tsr_trace_shape(trace, group, name[i], &n_chain, &n_draw, &n_each,
                            NULL) != TSR_OK ||
            n_each != 1 ||
            (t->n > 0 && (n_chain != t->n_chain || n_draw != t->n_draw)))
            continue;
        t->n_chain = n_chain;
        t->n_draw = n_draw;
        t->column[t->n] = (column){.name = name[i]};
        status = tsr_trace_get(trace, group, name[i], &n_chain, &n_draw,
                               &n_each, &t->column[t->n].value, err);
        t->n += status == TSR_OK;
    }
    return status;
}

static tsr_status choose(const table *t, const tsr_draw_choice *choice,
                         char **is_chosen, long *n_row, tsr_err *err)
{
    const size_t n = (size_t)t->n_chain * (size_t)t->n_draw;
    int *chain = malloc((n + 1) * sizeof *chain);
    long *draw = malloc((n + 1) * sizeof *draw);
    const double *lp = NULL;
    tsr_status status = TSR_OK;
    *is_chosen = malloc(n + 1);
    if (chain == NULL || draw == NULL || *is_chosen == NULL) {
        status = tsr_fail(err, TSR_E_NOMEM, "no memory for %zu draws", n);
    } else {
        for (size_t i = 0; i < n; i++) {
            chain[i] = (int)(i / (size_t)t->n_draw);
            draw[i] = (long)(i % (size_t)t->n_draw);
        }
        for (int i = 0; i < t->n; i++)
            if (strcmp(t->column[i].name, "lp") == 0)
                lp = t->column[i].value;
        *n_row =
            tsr_draw_choice_apply(choice, (int)n, chain, draw, lp, *is_chosen);
        if (*n_row == 0)
            status = tsr_fail(err, TSR_E_DATA,
                              "--draws: none of the %d draws of %d chains is "
                              "meant",
                              t->n_draw, t->n_chain);
    }
    free(chain);
    free(draw);
    return status;
}

tsr_status tsr_export_csv(tsr_trace_reader *trace,
                          const tsr_draw_choice *choice, FILE *out, long *n_row,
                          tsr_err *err)
{
    table t = {.n = 0};
    char *is_chosen = NULL;
    tsr_status status = add_group(&t, trace, TSR_TRACE_POSTERIOR, err);
    TSR_THEN(status, add_group(&t, trace, TSR_TRACE_SAMPLE_STATS, err));
    TSR_THEN(status, choose(&t, choice, &is_chosen, n_row, err));
    if (status == TSR_OK) {
        fputs("chain,draw", out);
        for (int i = 0; i < t.n; i++)
            fprintf(out, ",%s", t.column[i].name);
        fputc('\n', out);
        for (int c = 0; c < t.n_chain; c++)
            for (int d = 0; d < t.n_draw; d++) {
                const size_t at = (size_t)c * (size_t)t.n_draw + (size_t)d;
                if (!is_chosen[at])
                    continue;
                fprintf(out, "%d,%d", c, d);
                for (int i = 0; i < t.n; i++)
                    if (isfinite(t.column[i].value[at]))
                        fprintf(out, ",%.17g", t.column[i].value[at]);
                    else
                        fputc(',', out);
                fputc('\n', out);
            }
    }
    free(is_chosen);
    table_clear(&t);
    return status;
}
