/* The table of all numbers, and a histogram of each variable, with the prior's
 * beside it where a run without data is at hand: only the difference between
 * the two is what the data taught. */
#include "report/report_sections.h"

#include "analysis/summary.h"

#include <ctype.h>
#include <gsl/gsl_sort.h>
#include <gsl/gsl_statistics_double.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

/* ---- what is asked for, and what is only in the way ---- */

/* Of the structure, its fit and its states; the others, scale, background,
 * noise, contrast, directions of poses, are nuisance parameters. */
static int is_main(const tsr_summary_item *item)
{
    static const char *const begins[] = {"rg", "d_max", "chi2", "weight"};
    for (size_t i = 0; i < sizeof begins / sizeof *begins; i++)
        if (strncmp(item->name, begins[i], strlen(begins[i])) == 0)
            return 1;
    return strstr(item->name, "_distance") != NULL;
}

const char *tsr_report_title(const tsr_report *report,
                             const tsr_summary_item *item, size_t size,
                             char *text)
{
    char *doc = tsr_trace_variable_text(report->trace, TSR_TRACE_POSTERIOR,
                                        item->name, "long_name");
    if (doc == NULL)
        doc = tsr_trace_variable_text(report->trace, TSR_TRACE_SAMPLE_STATS,
                                      item->name, "long_name");
    const char *name = doc != NULL ? doc : item->name;
    snprintf(text, size, "%.*s", (int)strcspn(name, ";"), name);
    free(doc);
    return text;
}

/* ---- the tables ---- */

static void cell(FILE *out, double x, int decimals, const char *missing)
{
    char text[TSR_SUMMARY_CELL];
    tsr_summary_number(text, x, decimals);
    fprintf(out, "<td>%s</td>", isfinite(x) ? text : missing);
}

static void prior_cells(FILE *out, const tsr_summary_item *item)
{
    const int decimals = tsr_summary_decimals(&item->prior);
    cell(out, item->prior.mean, decimals, "&ndash;");
    cell(out, item->prior.sd, decimals, "&ndash;");
    if (isfinite(item->contraction))
        fprintf(out, "<td>%.0f&nbsp;%%</td>", 100.0 * item->contraction);
    else
        fputs("<td>&ndash;</td>", out);
}

static void row(tsr_report *r, const tsr_summary_item *item, int has_prior)
{
    static const char *const missing[] = {[TSR_FLAW_NONE] = "&ndash;",
                                          [TSR_FLAW_FEW_DRAWS] =
                                              "too few draws",
                                          [TSR_FLAW_CONSTANT] = "constant",
                                          [TSR_FLAW_NOT_FINITE] = "NaN",
                                          [TSR_FLAW_UNREADABLE] = "damaged"};
    FILE *out = tsr_page_html(r->page);
    const tsr_convergence *v = &item->value;
    const char *why = missing[item->flaw];
    char title[160];
    fputs("<tr><td>", out);
    tsr_page_text(r->page, tsr_report_title(r, item, sizeof title, title));
    fputs(" <code>", out);
    tsr_page_text(r->page, item->name);
    fputs("</code></td><td>", out);
    tsr_page_text(r->page, item->unit != NULL ? item->unit : "");
    fputs("</td>", out);
    const double number[] = {v->mean, v->sd, v->median, v->q5, v->q95, v->mcse};
    for (size_t i = 0; i < sizeof number / sizeof *number; i++)
        cell(out, number[i], tsr_summary_decimals(v), why);
    cell(out, v->ess_bulk, 0, why);
    cell(out, v->ess_tail, 0, why);
    if (isfinite(v->rhat))
        fprintf(out, "<td class=\"%s\">%.3f</td>",
                v->rhat <= r->options->diagnose.rhat ? "yes" : "no", v->rhat);
    else
        fprintf(out, "<td>%s</td>", isinf(v->rhat) ? "&infin;" : why);
    if (has_prior)
        prior_cells(out, item);
    fputs("</tr>\n", out);
}

/* Of the main variables or of the others. */
static void table(tsr_report *r, int of_main)
{
    const tsr_summary *s = r->diagnosis->summary;
    FILE *out = tsr_page_html(r->page);
    fprintf(out,
            "<table class=\"tight\"><tr><th>variable</th><th>unit</th>"
            "<th>mean</th><th>sd</th><th>median</th><th>5&nbsp;%%</th>"
            "<th>95&nbsp;%%</th><th>error of the mean</th><th>ESS bulk</th>"
            "<th>ESS tail</th><th>R-hat</th>%s</tr>\n",
            s->has_prior
                ? "<th>prior mean</th><th>prior sd</th><th>learned</th>"
                : "");
    for (int i = 0; i < s->n; i++)
        if (is_main(&s->item[i]) == of_main)
            row(r, &s->item[i], s->has_prior);
    fputs("</table>\n", out);
}

tsr_status tsr_report_numbers(tsr_report *report, tsr_err *err)
{
    const tsr_summary *s = report->diagnosis->summary;
    const int n_group = tsr_trace_n_group(report->trace);
    tsr_page_section(report->page, "numbers", "Numbers");
    tsr_page_words(
        report->page,
        "%d chain%s of %d draw%s. 5&nbsp;%% and 95&nbsp;%%: the middle "
        "90&nbsp;%% of the draws, where the value lies with probability 0.9. "
        "Error of the mean: of the sampling alone. ESS: how many independent "
        "draws the chains are worth; R-hat: 1 where the chains agree.%s",
        report->diagnosis->n_chain, report->diagnosis->n_chain == 1 ? "" : "s",
        report->diagnosis->n_draw, report->diagnosis->n_draw == 1 ? "" : "s",
        s->has_prior ? " <i>Learned</i>: the part of the prior's variance that "
                       "the data removed."
                     : "");
    table(report, 1);
    if (n_group > 0 && n_group < report->diagnosis->n_chain)
        tsr_page_words(report->page,
                       "R-hat compares %d groups of chains; those of a group "
                       "started from one draw of the prior (nested R-hat).",
                       n_group);
    for (int i = 0; i < s->n; i++)
        tsr_page_paragraph(report->page, "no", "", s->item[i].flaw_text);
    (void)err;
    return TSR_OK;
}

/* ---- distributions ---- */

int tsr_report_outline(size_t n, double ess, double *value, double *x,
                       double *y)
{
    enum { MOST = (TSR_OUTLINE - 2) / 2, LEAST = 6 };
    double count[MOST] = {0.0};
    gsl_sort(value, 1, n);
    const double low = value[(size_t)(0.001 * (double)(n - 1))];
    const double high = value[(size_t)ceil(0.999 * (double)(n - 1))];
    const double quartiles =
        gsl_stats_quantile_from_sorted_data(value, 1, n, 0.75) -
        gsl_stats_quantile_from_sorted_data(value, 1, n, 0.25);
    const double wanted = (high - low) / (2.0 * quartiles) *
                          cbrt(ess < (double)n ? ess : (double)n);
    const int n_bin = (int)fmin(fmax(ceil(wanted), LEAST), MOST);
    const double width = (high - low) / n_bin;
    if (!(width > 0.0))
        return 0;
    for (size_t i = 0; i < n; i++) {
        const double at = fmin(fmax((value[i] - low) / width, 0.0), n_bin - 1);
        count[(int)at] += 1.0;
    }
    x[0] = low;
    y[0] = 0.0;
    for (int b = 0; b < n_bin; b++) {
        x[2 * b + 1] = low + b * width;
        x[2 * b + 2] = low + (b + 1) * width;
        y[2 * b + 1] = y[2 * b + 2] = count[b] / ((double)n * width);
    }
    x[2 * n_bin + 1] = high;
    y[2 * n_bin + 1] = 0.0;
    return 2 * n_bin + 2;
}

static tsr_status add_outline(tsr_figure *f, tsr_trace_reader *trace,
                              const tsr_summary_item *item, const char *label,
                              const char *colour, int is_prior, int *is_there,
                              tsr_err *err)
{
    double x[TSR_OUTLINE], y[TSR_OUTLINE], zero[TSR_OUTLINE] = {0.0};
    int n_chain, n_draw;
    double *value;
    *is_there = 0;
    tsr_status status =
        tsr_report_scalar(trace, item->name, &n_chain, &n_draw, &value, err);
    if (value == NULL)
        return status;
    const int n = tsr_report_outline(
        (size_t)n_chain * (size_t)n_draw,
        is_prior ? item->prior.ess_bulk : item->value.ess_bulk, value, x, y);
    free(value);
    *is_there = n > 0;
    if (n == 0)
        return TSR_OK;
    tsr_figure_layer(f, TSR_LAYER_BAND, NULL, colour, n, x, zero, y)->opacity =
        0.25;
    tsr_figure_layer(f, is_prior ? TSR_LAYER_DASHES : TSR_LAYER_LINE, label,
                     colour, n, x, y, NULL);
    return TSR_OK;
}

void tsr_report_add_margin(tsr_figure *f)
{
    double low = HUGE_VAL, high = -HUGE_VAL;
    for (int l = 0; f->n_panel > 0 && l < f->panel[0].n_layer; l++) {
        const tsr_layer *a = &f->panel[0].layer[l];
        for (int i = 0; i < a->n; i++) {
            low = fmin(low, a->x[i]);
            high = fmax(high, a->x[i]);
        }
    }
    if (low < high) {
        f->x0 = low - 0.04 * (high - low);
        f->x1 = high + 0.04 * (high - low);
    }
}

static const tsr_report_prior *density_of(const tsr_report *r, const char *name)
{
    const tsr_report_options *o = r->options;
    for (int i = 0; i < o->n_density; i++)
        if (strcmp(o->density[i].name, name) == 0)
            return &o->density[i];
    return NULL;
}

/* That of the run of the prior, else as it was configured. */
static tsr_status add_prior(tsr_report *r, const tsr_summary_item *item,
                            tsr_figure *f, int *is_there, tsr_err *err)
{
    const tsr_report_prior *known = density_of(r, item->name);
    const double zero[TSR_REPORT_DENSITY] = {0.0};
    const int n = TSR_REPORT_DENSITY;
    *is_there = 0;
    if (known == NULL)
        return r->options->prior != NULL && item->has_prior
                   ? add_outline(f, r->options->prior, item, "prior",
                                 TSR_COLOUR_PRIOR, 1, is_there, err)
                   : TSR_OK;
    tsr_figure_layer(f, TSR_LAYER_BAND, NULL, TSR_COLOUR_PRIOR, n, known->x,
                     zero, known->y)
        ->opacity = 0.25;
    tsr_figure_layer(f, TSR_LAYER_DASHES, "prior", TSR_COLOUR_PRIOR, n,
                     known->x, known->y, NULL);
    *is_there = 1;
    return TSR_OK;
}

/* Prior and posterior are each drawn as high as the other: by area the prior of
 * what the data determine well would be a line at the foot. Where the
 * posterior is far narrower the picture is of its surroundings. */
static void set_side_by_side(tsr_figure *f)
{
    const double most = 8.0; /* times as wide */
    double low[2] = {HUGE_VAL, HUGE_VAL}, high[2] = {-HUGE_VAL, -HUGE_VAL};
    for (int l = 0; l < f->panel[0].n_layer; l++) {
        tsr_layer *a = &f->panel[0].layer[l];
        const int which = strcmp(a->colour, TSR_COLOUR_PRIOR) != 0;
        double *y = a->y2 != NULL ? a->y2 : a->y, top = 0.0;
        for (int i = 0; i < a->n; i++) {
            top = fmax(top, y[i]);
            low[which] = fmin(low[which], a->x[i]);
            high[which] = fmax(high[which], a->x[i]);
        }
        for (int i = 0; i < a->n && top > 0.0; i++)
            y[i] /= top;
    }
    const double width = high[1] - low[1];
    if (width > 0.0 && high[0] - low[0] > most * width) {
        f->x0 = fmax(fmin(low[0], low[1]), low[1] - 0.4 * most * width);
        f->x1 = fmin(fmax(high[0], high[1]), high[1] + 0.4 * most * width);
    }
}

/* What a file of a figure may be called. */
static void name_figure(const tsr_summary_item *item, char name[96])
{
    snprintf(name, 96, "posterior-%.60s", item->name);
    for (char *c = name; *c != '\0'; c++)
        if (!isalnum((unsigned char)*c) && strchr("_-.", *c) == NULL)
            *c = '-';
}

/* One scalar of the posterior; left out where it does not vary. */
static tsr_status add_scalar(tsr_report *r, const tsr_summary_item *item,
                             int *n_shown, tsr_err *err)
{
    char name[96], title[160], axis[160];
    int is_there = 0, has_prior = 0;
    name_figure(item, name);
    const char *unit = item->unit != NULL ? item->unit : "";
    tsr_report_title(r, item, sizeof title, title);
    snprintf(axis, sizeof axis, "%.80s%s%.40s%s", item->name,
             *unit != '\0' ? " (" : "",
             strcmp(unit, "Angstrom") == 0 ? "\xc3\x85" : unit,
             *unit != '\0' ? ")" : "");
    const int is_big = is_main(item);
    const int asks = item->has_prior || density_of(r, item->name) != NULL;
    tsr_figure f = tsr_figure_new(name, title, axis, is_big ? 340 : 200);
    tsr_figure_panel(&f, asks ? "density / highest" : "density", 0,
                     is_big ? 200 : 100);
    tsr_status status = add_prior(r, item, &f, &has_prior, err);
    TSR_THEN(status, add_outline(&f, r->trace, item,
                                 r->options->is_prior ? "prior" : "posterior",
                                 TSR_COLOUR_MODEL, 0, &is_there, err));
    if (status == TSR_OK && is_there) {
        (*n_shown)++;
        tsr_report_add_margin(&f);
        if (has_prior)
            set_side_by_side(&f);
        return tsr_page_figure(r->page, f, err);
    }
    tsr_figure_clear(&f);
    return status;
}

enum { MOST_FIGURES = 30 };

/* Histograms of the main variables or of the others; *n counts both. */
static tsr_status histograms(tsr_report *r, int of_main, int *n, tsr_err *err)
{
    const tsr_summary *s = r->diagnosis->summary;
    tsr_status status = TSR_OK;
    tsr_page_columns(r->page);
    for (int i = 0; i < s->n && status == TSR_OK && *n < MOST_FIGURES; i++)
        if (is_main(&s->item[i]) == of_main && !s->item[i].is_hidden &&
            (s->item[i].flaw == TSR_FLAW_NONE ||
             s->item[i].flaw == TSR_FLAW_FEW_DRAWS))
            status = add_scalar(r, &s->item[i], n, err);
    tsr_page_columns_end(r->page);
    return status;
}

/* What no reader asks for first: small, and closed until it is wanted. */
static tsr_status nuisance(tsr_report *r, int *n, tsr_err *err)
{
    FILE *out = tsr_page_html(r->page);
    fputs("<details id=\"nuisance\"><summary>Nuisance parameters: scale, "
          "background, noise, contrast, poses, log density</summary>\n",
          out);
    table(r, 0);
    tsr_status status = histograms(r, 0, n, err);
    fputs("</details>\n", out);
    return status;
}

tsr_status tsr_report_posterior(tsr_report *report, tsr_err *err)
{
    const tsr_summary *s = report->diagnosis->summary;
    int n_shown = 0;
    tsr_page_section(report->page, "posterior", "Distributions");
    if (s->has_prior || report->options->n_density > 0)
        tsr_page_words(report->page,
                       "Grey and dashed: the prior, without the data; drawn as "
                       "high as the posterior, and near it where it is more "
                       "than eight times as wide.");
    tsr_status status = histograms(report, 1, &n_shown, err);
    TSR_THEN(status, nuisance(report, &n_shown, err));
    if (n_shown == 0)
        tsr_page_words(report->page, "Too few draws for a distribution.");
    if (n_shown == MOST_FIGURES)
        tsr_page_words(report->page, "The first %d variables are drawn.",
                       (int)MOST_FIGURES);
    if (!s->has_prior && !report->options->is_prior)
        tsr_page_words(report->page,
                       "<code>tessera run CONFIG --prior-only --output PRIOR"
                       "</code> and <code>tessera report DIR --prior PRIOR"
                       "</code> put the structure's prior beside these.");
    return status;
}
