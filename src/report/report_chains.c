/* Pictures of convergence. Traces show drift and chains that are caught; ranks
 * show chains that prefer some values, which traces of many draws hide
 * (Vehtari et al. 2021); R-hat by q shows it for the curve itself. */
#include "report/report_sections.h"

#include <gsl/gsl_statistics_double.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { MOST_POINTS = 400, N_BIN = 20 };

/* ---- traces ---- */

/* One line a chain, of every so many draws. */
static tsr_status add_trace_panel(tsr_report *r, tsr_figure *f,
                                  const char *name, int *is_there, tsr_err *err)
{
    double x[MOST_POINTS], y[MOST_POINTS], *value;
    int n_chain, n_draw;
    *is_there = 0;
    tsr_status status =
        tsr_report_scalar(r->trace, name, &n_chain, &n_draw, &value, err);
    if (value == NULL)
        return status;
    *is_there = 1;
    const tsr_summary_item *item =
        tsr_summary_find(r->diagnosis->summary, name);
    const char *unit = item != NULL ? item->unit : NULL;
    char title[48];
    if (unit != NULL)
        snprintf(title, sizeof title, "%s (%.20s)", name,
                 strcmp(unit, "Angstrom") == 0 ? "\xc3\x85" : unit);
    tsr_figure_panel(f, unit != NULL ? title : name, 0, 110);
    const int n = n_draw < MOST_POINTS ? n_draw : MOST_POINTS;
    for (int c = 0; c < n_chain && c < TSR_MOST_CHAINS; c++) {
        char label[32];
        for (int i = 0; i < n; i++) {
            const long d = n > 1 ? (long)i * (n_draw - 1) / (n - 1) : 0;
            x[i] = (double)d;
            y[i] = value[(size_t)c * (size_t)n_draw + (size_t)d];
        }
        snprintf(label, sizeof label, "chain %d", c);
        tsr_figure_layer(f, TSR_LAYER_LINE, label, tsr_report_chain_colour(c),
                         n, x, y, NULL)
            ->opacity = 0.75;
    }
    free(value);
    return TSR_OK;
}

static tsr_status traces(tsr_report *r, tsr_err *err)
{
    static const char *const names[] = {"lp", "chi2", "rg", "d_max"};
    int n_there = 0;
    tsr_status status = TSR_OK;
    tsr_figure f = tsr_figure_new("trace", "Traces", "draw", 700);
    for (size_t i = 0; i < sizeof names / sizeof *names && status == TSR_OK;
         i++) {
        int is_there;
        status = add_trace_panel(r, &f, names[i], &is_there, err);
        n_there += is_there;
    }
    if (status != TSR_OK || n_there == 0) {
        tsr_figure_clear(&f);
        return status;
    }
    tsr_page_words(
        r->page,
        "Traces: each chain, draw by draw%s. Chains that have converged look "
        "like noise around one level, the same for all; a chain that drifts, "
        "stays or keeps a level of its own has not.%s",
        r->diagnosis->n_draw > MOST_POINTS ? ", thinned to 400 draws" : "",
        r->diagnosis->n_chain > TSR_MOST_CHAINS
            ? " The first 10 chains are drawn."
            : "");
    return tsr_page_figure(r->page, f, err);
}

/* ---- ranks ---- */

typedef struct {
    double value;
    size_t at;
} ranked;

static int ascending(const void *left, const void *right)
{
    const double a = ((const ranked *)left)->value;
    const double b = ((const ranked *)right)->value;
    return (a > b) - (a < b);
}

/* count [n_chain][N_BIN]: how many draws of a chain have their rank among all
 * draws in that bin. */
static int count_ranks(int n_chain, int n_draw, const double *value,
                       double *count)
{
    const size_t n = (size_t)n_chain * (size_t)n_draw;
    ranked *item = malloc(n * sizeof *item);
    if (item == NULL)
        return 0;
    for (size_t i = 0; i < n; i++)
        item[i] = (ranked){value[i], i};
    qsort(item, n, sizeof *item, ascending);
    for (size_t i = 0; i < n; i++) {
        const size_t bin = i * N_BIN / n;
        const size_t chain = item[i].at / (size_t)n_draw;
        count[chain * N_BIN + bin] += 1.0;
    }
    free(item);
    return 1;
}

static tsr_status rank_figure(tsr_report *r, const tsr_summary_item *item,
                              int *n_shown, tsr_err *err)
{
    char name[96];
    int n_chain, n_draw;
    double *value, x[2 * N_BIN], y[2 * N_BIN];
    tsr_status status =
        tsr_report_scalar(r->trace, item->name, &n_chain, &n_draw, &value, err);
    if (value == NULL || n_chain < 2 || n_draw < N_BIN) {
        free(value);
        return status;
    }
    double *count = calloc((size_t)n_chain * N_BIN, sizeof *count);
    snprintf(name, sizeof name, "rank-%.60s", item->name);
    tsr_figure f =
        tsr_figure_new(name, item->name, "rank among all draws", 340);
    if (count == NULL || !count_ranks(n_chain, n_draw, value, count)) {
        status = tsr_no_memory(err);
        tsr_figure_clear(&f);
        goto done;
    }
    double highest = 2.0;
    tsr_panel *panel = tsr_figure_panel(&f, "share / even share", 0, 170);
    /* two standard errors of a share that is even, for as many independent
     * draws as a chain is worth */
    const double worth = fmax(1.0, item->value.ess_bulk / n_chain);
    const double error = 2.0 * sqrt((N_BIN - 1) / worth);
    const double end[2] = {0.0, 1.0}, low[2] = {1.0 - error, 1.0 - error};
    const double high[2] = {1.0 + error, 1.0 + error};
    tsr_figure_layer(&f, TSR_LAYER_BAND, "chance", TSR_COLOUR_PRIOR, 2, end,
                     low, high)
        ->opacity = 0.2;
    for (int c = 0; c < n_chain && c < TSR_MOST_CHAINS; c++) {
        for (int b = 0; b < N_BIN; b++) {
            x[2 * b] = (double)b / N_BIN;
            x[2 * b + 1] = (b + 1.0) / N_BIN;
            y[2 * b] = y[2 * b + 1] = count[c * N_BIN + b] * N_BIN / n_draw;
            highest = fmax(highest, y[2 * b]);
        }
        char label[16];
        snprintf(label, sizeof label, "%d", c);
        tsr_figure_layer(&f, TSR_LAYER_LINE, label, tsr_report_chain_colour(c),
                         2 * N_BIN, x, y, NULL)
            ->opacity = 0.8;
    }
    panel->y0 = 0.0; /* a share is not below 0 */
    panel->y1 = 1.08 * highest;
    (*n_shown)++;
    status = tsr_page_figure(r->page, f, err);
done:
    free(count);
    free(value);
    return status;
}

static tsr_status ranks(tsr_report *r, tsr_err *err)
{
    static const char *const names[] = {"lp", "chi2", "rg", "d_max"};
    int n_shown = 0;
    tsr_status status = TSR_OK;
    tsr_page_columns(r->page);
    for (size_t i = 0; i < sizeof names / sizeof *names && status == TSR_OK;
         i++) {
        const tsr_summary_item *item =
            tsr_summary_find(r->diagnosis->summary, names[i]);
        if (item != NULL && item->flaw == TSR_FLAW_NONE)
            status = rank_figure(r, item, &n_shown, err);
    }
    tsr_page_columns_end(r->page);
    if (n_shown > 0)
        tsr_page_words(
            r->page,
            "Rank plots: all draws are put in order, and each chain's share in "
            "20 stretches of that order is counted. Where all chains sample "
            "the same distribution the lines stay around 1, mostly within the "
            "grey band, which is as wide as chance makes it for as many "
            "independent draws (Vehtari et al. 2021). Colours and numbers are "
            "those of the chains.");
    return status;
}

/* ---- acceptance ---- */

/* A sentence on how much of the work a proposal asks for. */
static tsr_status tell_dirty(tsr_report *r, tsr_err *err)
{
    int n_chain, n_draw;
    double *value;
    tsr_status status = tsr_report_scalar(r->trace, "dirty_fraction", &n_chain,
                                          &n_draw, &value, err);
    if (value == NULL)
        return status;
    tsr_page_words(
        r->page,
        "A proposal that the engine was asked for changed "
        "%.1f&nbsp;%% of the distances between bodies on average; "
        "the rest of the curve was kept.",
        100.0 * gsl_stats_mean(value, 1, (size_t)n_chain * (size_t)n_draw));
    free(value);
    return TSR_OK;
}

/* Means over stretches of draws, so that shares of few steps can be read. */
static tsr_status acceptance(tsr_report *r, tsr_err *err)
{
    enum { MOST = 50 };
    double x[MOST], y[MOST], *value;
    int n_chain, n_draw;
    tsr_status status = tsr_report_scalar(r->trace, "acceptance_rate", &n_chain,
                                          &n_draw, &value, err);
    if (value == NULL)
        return status;
    tsr_figure f =
        tsr_figure_new("acceptance", "Accepted proposals", "draw", 700);
    tsr_figure_panel(&f, "accepted (%)", 0, 140);
    const int n = n_draw < MOST ? n_draw : MOST;
    for (int c = 0; c < n_chain && c < TSR_MOST_CHAINS; c++) {
        char label[32];
        for (int i = 0; i < n; i++) {
            const long from = (long)i * n_draw / n;
            const long to = (long)(i + 1) * n_draw / n;
            x[i] = 0.5 * (double)(from + to - 1);
            y[i] = 100.0 * gsl_stats_mean(value + (size_t)c * (size_t)n_draw +
                                              (size_t)from,
                                          1, (size_t)(to - from));
        }
        snprintf(label, sizeof label, "chain %d", c);
        tsr_figure_layer(&f, TSR_LAYER_LINE, label, tsr_report_chain_colour(c),
                         n, x, y, NULL);
    }
    free(value);
    tsr_page_words(r->page,
                   "Accepted proposals of all moves together, averaged over "
                   "stretches of draws. A share that falls towards 0 in one "
                   "chain means that it is caught.");
    status = tsr_page_figure(r->page, f, err);
    return status == TSR_OK ? tell_dirty(r, err) : status;
}

/* ---- R-hat by q ---- */

static int is_known(const tsr_curve_summary *c)
{
    int n = 0;
    for (int k = 0; k < c->n; k++)
        n += isfinite(c->point[k].rhat);
    return n > 0;
}

static tsr_status rhat_by_q(tsr_report *r, const tsr_curve_summary *c,
                            tsr_err *err)
{
    char name[64];
    double highest = 1.0;
    snprintf(name, sizeof name, "rhat-%.40s", c->name);
    tsr_figure f =
        tsr_figure_new(name, "R-hat of the curve by q", "q (1/\xc3\x85)", 700);
    double *y = calloc((size_t)c->n, sizeof *y);
    if (y == NULL) {
        tsr_figure_clear(&f);
        return tsr_no_memory(err);
    }
    for (int k = 0; k < c->n; k++) {
        y[k] = c->point[k].rhat;
        if (isfinite(y[k]))
            highest = fmax(highest, y[k]);
    }
    tsr_panel *panel = tsr_figure_panel(&f, "R-hat", 0, 150);
    tsr_figure_layer(&f, TSR_LAYER_LINE, "R-hat", TSR_COLOUR_DATA, c->n, c->q,
                     y, NULL);
    const double x[2] = {c->q[0], c->q[c->n - 1]};
    const double limit[2] = {r->options->diagnose.rhat,
                             r->options->diagnose.rhat};
    tsr_figure_layer(&f, TSR_LAYER_DASHES, "limit", "#444444", 2, x, limit,
                     NULL);
    panel->y0 = 0.995;
    panel->y1 = fmax(limit[0], highest) + 0.005;
    free(y);
    return tsr_page_figure(r->page, f, err);
}

/* ---- the answer in a line ---- */

static void diagnosis_list(tsr_report *r)
{
    static const char *const shown[] = {"yes", "no", "not known",
                                        "does not apply"};
    static const char *const class_of[] = {"yes", "no", "open", ""};
    const tsr_diagnosis *d = r->diagnosis;
    FILE *out = tsr_page_html(r->page);
    fputs("<table><tr><th>question</th><th>answer</th><th class=\"words\">"
          "found</th></tr>\n",
          out);
    for (int i = 0; i < d->n; i++) {
        const tsr_check *c = &d->check[i];
        fprintf(out,
                "<tr><td>%s</td><td class=\"%s\">%s</td><td "
                "class=\"words\">",
                c->asks, class_of[c->answer], shown[c->answer]);
        tsr_page_text(r->page, c->found);
        fputs("</td></tr>\n", out);
    }
    fputs("</table>\n", out);
}

/* Each remedy once: several questions may share one. */
static void remedies(tsr_report *r)
{
    const tsr_diagnosis *d = r->diagnosis;
    for (int i = 0; i < d->n; i++) {
        int is_new = d->check[i].remedy != NULL;
        for (int k = 0; k < i && is_new; k++)
            is_new = d->check[k].remedy == NULL ||
                     strcmp(d->check[k].remedy, d->check[i].remedy) != 0;
        if (is_new)
            tsr_page_paragraph(r->page, NULL, "&rarr; ", d->check[i].remedy);
    }
    if (d->advice == NULL)
        return;
    fputs("<p>To go on: <code>", tsr_page_html(r->page));
    tsr_page_text(r->page, d->advice);
    fputs("</code></p>\n", tsr_page_html(r->page));
}

void tsr_report_convergence(tsr_report *report)
{
    const tsr_diagnosis *d = report->diagnosis;
    FILE *out = tsr_page_html(report->page);
    fprintf(out, "<details class=\"state %s\"><summary><b>%s</b> ",
            d->is_converged ? "yes" : "no",
            d->is_converged ? "Converged," : "Not shown to have converged:");
    const char *found = "as far as the questions below can tell.";
    for (int i = 0; i < d->n && !d->is_converged; i++)
        if (d->check[i].answer == TSR_CHECK_NO ||
            d->check[i].answer == TSR_CHECK_UNKNOWN) {
            found = d->check[i].found;
            break;
        }
    tsr_page_text(report->page, found);
    fputs("</summary>\n", out);
    diagnosis_list(report);
    remedies(report);
    fprintf(out,
            "<p>The numbers and figures describe the %s. <a href=\"#chains\">"
            "Traces and ranks</a> of the chains are below.</p></details>\n",
            !d->is_converged            ? "draws of this run so far"
            : report->options->is_prior ? "prior"
                                        : "posterior");
}

tsr_status tsr_report_chains(tsr_report *report, tsr_err *err)
{
    tsr_page_section(report->page, "chains", "Convergence");
    fputs("<details><summary>Traces, rank plots, acceptance, moves, R-hat by "
          "q</summary>\n",
          tsr_page_html(report->page));
    tsr_status status = traces(report, err);
    TSR_THEN(status, ranks(report, err));
    TSR_THEN(status, acceptance(report, err));
    TSR_THEN(status, tsr_report_moves(report, err));
    int n_known = 0;
    for (int i = 0; i < report->diagnosis->n_curve; i++)
        n_known += is_known(report->diagnosis->curve[i]);
    if (status == TSR_OK && report->diagnosis->n_curve > 0)
        tsr_page_words(report->page, "%s",
                       n_known > 0
                           ? "R-hat of the computed curve at every q: the "
                             "chains must agree not only on Rg but on the "
                             "whole curve."
                           : "R-hat of the computed curve at every q: too few "
                             "draws, or one chain.");
    for (int i = 0; i < report->diagnosis->n_curve && status == TSR_OK; i++)
        if (is_known(report->diagnosis->curve[i]))
            status = rhat_by_q(report, report->diagnosis->curve[i], err);
    fputs("</details>\n", tsr_page_html(report->page));
    return status;
}
