#include "analysis/summary.h"

#include "core/text.h"

#include <errno.h>
#include <math.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

static const struct {
    const char *name;
    size_t offset;
} columns[] = {
    {"mean", offsetof(tsr_convergence, mean)},
    {"sd", offsetof(tsr_convergence, sd)},
    {"median", offsetof(tsr_convergence, median)},
    {"q5", offsetof(tsr_convergence, q5)},
    {"q95", offsetof(tsr_convergence, q95)},
    {"mcse", offsetof(tsr_convergence, mcse)},
    {"ess_bulk", offsetof(tsr_convergence, ess_bulk)},
    {"ess_tail", offsetof(tsr_convergence, ess_tail)},
    {"rhat", offsetof(tsr_convergence, rhat)},
};
enum { N_COLUMN = sizeof columns / sizeof columns[0] };

static double column(const tsr_convergence *value, int i)
{
    return *(const double *)((const char *)value + columns[i].offset);
}

/* ---- making ---- */

static tsr_summary_item *new_item(tsr_summary *summary)
{
    size_t n = (size_t)summary->n + 1;
    tsr_summary_item *item = realloc(summary->item, n * sizeof *item);

    if (item == NULL)
        return NULL;
    summary->item = item;
    memset(&item[n - 1], 0, sizeof *item);
    summary->n++;
    return &item[n - 1];
}

static tsr_status no_memory(const char *name, tsr_err *err)
{
    return tsr_fail(err, TSR_E_NOMEM, "no memory to summarise '%s'", name);
}

/* Entry k of n, for which `one` [n_chain * n_draw] is room. */
static tsr_status add_entry(tsr_summary *summary, const char *name,
                            const char *unit, int n_chain, int n_draw, int n,
                            int k, const double *value, double *one,
                            tsr_err *err)
{
    const size_t count = (size_t)n_chain * (size_t)n_draw;
    tsr_summary_item *item = new_item(summary);
    size_t size = strlen(name) + 16;

    if (item == NULL || (item->name = malloc(size)) == NULL ||
        (unit != NULL && (item->unit = strdup(unit)) == NULL))
        return no_memory(name, err);
    if (n == 1)
        snprintf(item->name, size, "%s", name);
    else
        snprintf(item->name, size, "%s[%d]", name, k);
    item->n_chain = n_chain;
    item->n_draw = n_draw;
    for (size_t i = 0; i < count; i++)
        one[i] = value[i * (size_t)n + (size_t)k];
    return tsr_convergence_make(n_chain, n_draw, one, &item->value, err);
}

static tsr_status add_variable(tsr_summary *summary, tsr_trace_reader *reader,
                               tsr_trace_group group, const char *name,
                               tsr_err *err)
{
    int n_chain, n_draw, n;
    double *value = NULL;
    tsr_status status =
        tsr_trace_get(reader, group, name, &n_chain, &n_draw, &n, &value, err);

    if (status != TSR_OK || n_chain == 0 || n_draw == 0) {
        free(value);
        return status;
    }
    char *unit = tsr_trace_variable_text(reader, group, name, "units");
    double *one = malloc((size_t)n_chain * (size_t)n_draw * sizeof *one);
    if (one == NULL)
        status = no_memory(name, err);
    for (int k = 0; k < n && status == TSR_OK; k++)
        status = add_entry(summary, name, unit, n_chain, n_draw, n, k, value,
                           one, err);
    free(one);
    free(unit);
    free(value);
    return status;
}

tsr_status tsr_summary_make(tsr_trace_reader *reader, tsr_summary **out,
                            tsr_err *err)
{
    const char *const *name;
    tsr_status status = TSR_OK;

    *out = NULL;
    tsr_summary *summary = calloc(1, sizeof *summary);
    if (summary == NULL)
        return no_memory("posterior", err);
    int n = tsr_trace_variables(reader, TSR_TRACE_POSTERIOR, &name);
    for (int i = 0; i < n && status == TSR_OK; i++)
        status =
            add_variable(summary, reader, TSR_TRACE_POSTERIOR, name[i], err);
    n = tsr_trace_variables(reader, TSR_TRACE_SAMPLE_STATS, &name);
    for (int i = 0; i < n && status == TSR_OK; i++)
        if (strcmp(name[i], "lp") == 0)
            status = add_variable(summary, reader, TSR_TRACE_SAMPLE_STATS, "lp",
                                  err);
    if (status == TSR_OK && summary->n == 0)
        status = tsr_fail(err, TSR_E_DATA,
                          "the trace has no posterior draw yet: let the run "
                          "finish its warm-up");
    if (status != TSR_OK) {
        tsr_summary_free(summary);
        return status;
    }
    *out = summary;
    return TSR_OK;
}

void tsr_summary_free(tsr_summary *summary)
{
    if (summary == NULL)
        return;
    for (int i = 0; i < summary->n; i++) {
        free(summary->item[i].name);
        free(summary->item[i].unit);
    }
    free(summary->item);
    free(summary);
}

/* ---- printing ---- */

enum { CELL = 24 };

static tsr_status written(FILE *out, tsr_err *err)
{
    if (fflush(out) != 0 || ferror(out))
        return tsr_fail(err, TSR_E_IO, "cannot write the summary: %s",
                        strerror(errno));
    return TSR_OK;
}

/* Decimals that show two digits of the error of the mean. */
static int decimals_for(const tsr_convergence *value)
{
    double error = isfinite(value->mcse) ? value->mcse : value->sd / 100.0;

    if (!(error > 0.0))
        return 3;
    int decimals = 1 - (int)floor(log10(error));
    return decimals < 0 ? 0 : decimals > 12 ? 12 : decimals;
}

static void format_cell(char *text, const tsr_convergence *value, int i)
{
    const double x = column(value, i);
    const size_t at = columns[i].offset;

    if (isnan(x))
        snprintf(text, CELL, "-");
    else if (at == offsetof(tsr_convergence, ess_bulk) ||
             at == offsetof(tsr_convergence, ess_tail))
        snprintf(text, CELL, "%.0f", x);
    else if (at == offsetof(tsr_convergence, rhat))
        snprintf(text, CELL, "%.4f", x);
    else if (x != 0.0 && (fabs(x) >= 1e9 || fabs(x) < 1e-4))
        snprintf(text, CELL, "%.4g", x);
    else
        snprintf(text, CELL, "%.*f", decimals_for(value), x);
}

static int wider(int width, const char *text)
{
    int n = text != NULL ? (int)strlen(text) : 0;
    return n > width ? n : width;
}

tsr_status tsr_summary_print(const tsr_summary *summary, FILE *out,
                             tsr_err *err)
{
    int name_width = wider(0, "variable"), unit_width = wider(0, "unit");
    int width[N_COLUMN];
    char cell[CELL];

    for (int c = 0; c < N_COLUMN; c++)
        width[c] = wider(0, columns[c].name);
    for (int i = 0; i < summary->n; i++) {
        const tsr_summary_item *item = &summary->item[i];
        name_width = wider(name_width, item->name);
        unit_width = wider(unit_width, item->unit);
        for (int c = 0; c < N_COLUMN; c++) {
            format_cell(cell, &item->value, c);
            width[c] = wider(width[c], cell);
        }
    }
    fprintf(out, "%-*s  %-*s", name_width, "variable", unit_width, "unit");
    for (int c = 0; c < N_COLUMN; c++)
        fprintf(out, "  %*s", width[c], columns[c].name);
    fputc('\n', out);
    for (int i = 0; i < summary->n; i++) {
        const tsr_summary_item *item = &summary->item[i];
        fprintf(out, "%-*s  %-*s", name_width, item->name, unit_width,
                item->unit != NULL ? item->unit : "");
        for (int c = 0; c < N_COLUMN; c++) {
            format_cell(cell, &item->value, c);
            fprintf(out, "  %*s", width[c], cell);
        }
        fputc('\n', out);
    }
    return written(out, err);
}

tsr_status tsr_summary_print_json(const tsr_summary *summary, FILE *out,
                                  tsr_err *err)
{
    fputc('{', out);
    for (int i = 0; i < summary->n; i++) {
        fputs(i > 0 ? ",\n " : "\n ", out);
        tsr_text_json(out, summary->item[i].name);
        fputs(": {", out);
        for (int c = 0; c < N_COLUMN; c++) {
            const double x = column(&summary->item[i].value, c);
            fprintf(out, "%s\"%s\": ", c > 0 ? ", " : "", columns[c].name);
            if (isfinite(x))
                fprintf(out, "%.17g", x);
            else
                fputs("null", out);
        }
        fputc('}', out);
    }
    fputs("\n}\n", out);
    return written(out, err);
}
