/* Whether the run has converged: the questions that were asked of its chains,
 * and their traces, which show drift and chains that are caught. */
#include "report/report_sections.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { MOST_POINTS = 400 };

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

/* ---- the answer in a line ---- */

/* Text in which variables get their names for readers. */
static void put_readable(const tsr_report *r, const char *text)
{
    static const char name[] = "abcdefghijklmnopqrstuvwxyz_0123456789";
    while (*text != '\0') {
        char piece[512];
        const size_t n = strspn(text, name);
        const size_t used = n > 0 ? n : strcspn(text, name);
        snprintf(piece, sizeof piece, "%.*s", (int)used, text);
        const tsr_summary_item *item =
            tsr_summary_find(r->diagnosis->summary, piece);
        tsr_page_text(r->page,
                      item == NULL
                          ? piece
                          : tsr_report_title(r, item, sizeof piece, piece));
        text += used;
    }
}

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
        put_readable(r, c->found);
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
    put_readable(report, found);
    fputs("</summary>\n", out);
    diagnosis_list(report);
    remedies(report);
    fputs("<p><a href=\"#chains\">Traces</a> of the chains are "
          "below.</p></details>\n",
          out);
}

tsr_status tsr_report_chains(tsr_report *report, tsr_err *err)
{
    tsr_page_section(report->page, "chains", "Convergence");
    fputs("<details><summary>Traces</summary>\n", tsr_page_html(report->page));
    tsr_status status = traces(report, err);
    fputs("</details>\n", tsr_page_html(report->page));
    return status;
}
