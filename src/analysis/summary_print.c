/* The table shows a mean to the digits that its own error supports, since
 * further ones would change with another seed; JSON has every digit, for
 * programs. */
#include "analysis/summary.h"

#include "core/json.h"
#include "core/text.h"

#include <errno.h>
#include <math.h>
#include <stddef.h>
#include <string.h>

/* How a column is written for people. */
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
    /* those of the prior: mean, sd, q5, q95, contraction */
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

static tsr_status written(FILE *out, tsr_err *err)
{
    if (fflush(out) != 0 || ferror(out))
        return tsr_fail(err, TSR_E_IO, "cannot write the summary: %s",
                        strerror(errno));
    return TSR_OK;
}

int tsr_summary_decimals(const tsr_convergence *value)
{
    double error = isfinite(value->mcse) ? value->mcse : value->sd / 100.0;

    if (!(error > 0.0))
        return 3;
    int decimals = 1 - (int)floor(log10(error));
    return decimals < 0 ? 0 : decimals > 12 ? 12 : decimals;
}

/* A number that is missing. */
static const char *reason(tsr_summary_flaw flaw)
{
    switch (flaw) {
    case TSR_FLAW_FEW_DRAWS:
        return "few";
    case TSR_FLAW_NOT_FINITE:
        return "nan";
    case TSR_FLAW_UNREADABLE:
        return "damaged";
    default:
        return "-";
    }
}

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

/* Column c of the table: those of the posterior, then those of the prior. */
static void format_cell(char text[CELL], const tsr_summary_item *item, int c)
{
    if (c < N_COLUMN) {
        format_number(text, column(&item->value, c), columns[c].style,
                      tsr_summary_decimals(&item->value), reason(item->flaw));
        return;
    }
    const int of = prior_column[c - N_COLUMN];
    format_number(text, of < 0 ? item->contraction : column(&item->prior, of),
                  of < 0 ? SHARE : LOCATION, tsr_summary_decimals(&item->prior),
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
                tsr_evidence_tell(&summary->evidence, text));
    }
    return written(out, err);
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
    switch (item->flaw) {
    case TSR_FLAW_FEW_DRAWS:
        return "fewer than 4 draws a chain";
    case TSR_FLAW_CONSTANT:
        return "does not vary";
    default:
        return isinf(item->value.rhat)
                   ? "rhat is infinite: chains stand still, each elsewhere"
                   : item->flaw_text;
    }
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
            tsr_json_truth(json, "circular", 1);
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

tsr_status tsr_summary_print_json(const tsr_summary *summary, FILE *out,
                                  tsr_err *err)
{
    tsr_json j = {.out = out};
    tsr_json_object(&j, NULL);
    tsr_summary_put(summary, &j);
    tsr_json_close(&j);
    return written(out, err);
}
