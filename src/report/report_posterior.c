/* The table of all numbers, and a histogram of each variable beside its prior,
 * since the difference between the two is the information in the data. Then the
 * convergence of the chains, and measurements other than curves. */
#include "analysis/summary.h"
#include "likelihood/term.h"
#include "report/report.h"

#include <ctype.h>
#include <gsl/gsl_sort.h>
#include <gsl/gsl_statistics_double.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

/* ---- main variables and nuisance parameters ---- */

/* 1 for variables of the structure, its fit and its states. The others (scale,
 * background, noise, contrast, directions of poses) are nuisance parameters. */
static int is_main(const tsr_summary_item *item)
{
    static const char *const begins[] = {"rg",     "d_max",    "chi2",
                                         "weight", "fraction", "kd"};
    for (size_t i = 0; i < sizeof begins / sizeof *begins; i++)
        if (strncmp(item->name, begins[i], strlen(begins[i])) == 0)
            return 1;
    return strstr(item->name, "_distance") != NULL;
}

/* The descriptive name of a variable, its long_name in the trace up to a
 * semicolon, else its name; text [size] out, returned. */
static const char *readable_name(const tsr_report *report,
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

static const char *cell(tsr_report *r, double x, int decimals,
                        const char *missing)
{
    char text[TSR_SUMMARY_CELL];
    tsr_summary_number(text, x, decimals);
    return isfinite(x) ? tsr_page_escape(r->page, text) : missing;
}

static void add_row(tsr_report *r, const tsr_summary_item *item, int has_prior)
{
    static const char *const missing[] = {[TSR_FLAW_NONE] = "&ndash;",
                                          [TSR_FLAW_FEW_DRAWS] =
                                              "too few draws",
                                          [TSR_FLAW_CONSTANT] = "constant",
                                          [TSR_FLAW_NOT_FINITE] = "NaN",
                                          [TSR_FLAW_UNREADABLE] = "damaged"};
    tsr_page *page = r->page;
    const tsr_convergence *v = &item->value, *prior = &item->prior;
    const char *why = missing[item->flaw], *none = "&ndash;";
    const int n = tsr_summary_decimals(v),
              n_prior = tsr_summary_decimals(prior);
    char title[160], rhat[64], more[160] = "", learned[32] = "&ndash;";
    if (isfinite(v->rhat))
        snprintf(rhat, sizeof rhat, "<span class=\"%s\">%.3f</span>",
                 v->rhat <= r->options->diagnose.rhat ? "yes" : "no", v->rhat);
    else
        snprintf(rhat, sizeof rhat, "%s", isinf(v->rhat) ? "&infin;" : why);
    if (isfinite(item->contraction))
        snprintf(learned, sizeof learned, "%.0f&nbsp;%%",
                 100.0 * item->contraction);
    if (has_prior)
        snprintf(more, sizeof more, "\t%s\t%s\t%s",
                 cell(r, prior->mean, n_prior, none),
                 cell(r, prior->sd, n_prior, none), learned);
    tsr_page_row(
        page, "%s <code>%s</code>\t%s\t%s\t%s\t%s\t%s\t%s\t%s\t%s\t%s\t%s%s",
        tsr_page_escape(page, readable_name(r, item, sizeof title, title)),
        tsr_page_escape(page, item->name),
        tsr_page_escape(page, item->unit != NULL ? item->unit : ""),
        cell(r, v->mean, n, why), cell(r, v->sd, n, why),
        cell(r, v->median, n, why), cell(r, v->q5, n, why),
        cell(r, v->q95, n, why), cell(r, v->mcse, n, why),
        cell(r, v->ess_bulk, 0, why), cell(r, v->ess_tail, 0, why), rhat, more);
}

/* The table of the main variables (of_main 1) or of the others. */
static void add_table(tsr_report *r, int of_main)
{
    const tsr_summary *s = r->diagnosis->summary;
    tsr_page_table(
        r->page, "tight",
        s->has_prior
            ? "variable\tunit\tmean\tsd\tmedian\t5&nbsp;%\t95&nbsp;%\terror of "
              "the mean\tESS bulk\tESS tail\tR-hat\tprior mean\tprior "
              "sd\tlearned"
            : "variable\tunit\tmean\tsd\tmedian\t5&nbsp;%\t95&nbsp;%\terror of "
              "the mean\tESS bulk\tESS tail\tR-hat");
    for (int i = 0; i < s->n; i++)
        if (is_main(&s->item[i]) == of_main)
            add_row(r, &s->item[i], s->has_prior);
    tsr_page_table_end(r->page);
}

tsr_status tsr_report_numbers(tsr_report *report, tsr_err *err)
{
    const tsr_summary *s = report->diagnosis->summary;
    const int n_group = tsr_trace_n_group(report->trace);
    tsr_page_section(report->page, "numbers", "Numbers");
    tsr_page_words(
        report->page,
        "%d chain%s of %d draw%s. 5&nbsp;%% and 95&nbsp;%%: quantiles of the "
        "draws; the value lies between them with probability 0.9. Error of "
        "the mean: Monte Carlo standard error. ESS: effective number of "
        "independent draws. R-hat: 1 if the chains agree.%s",
        report->diagnosis->n_chain, report->diagnosis->n_chain == 1 ? "" : "s",
        report->diagnosis->n_draw, report->diagnosis->n_draw == 1 ? "" : "s",
        s->has_prior ? " <i>Learned</i>: reduction of the prior variance by "
                       "the data."
                     : "");
    add_table(report, 1);
    if (n_group > 0 && n_group < report->diagnosis->n_chain)
        tsr_page_words(report->page,
                       "R-hat compares %d groups of chains; the chains of a "
                       "group started from the same draw of the prior (nested "
                       "R-hat).",
                       n_group);
    for (int i = 0; i < s->n; i++)
        tsr_page_paragraph(report->page, "no", "", s->item[i].flaw_text);
    (void)err;
    return TSR_OK;
}

/* ---- populations in several samples ---- */

/* Medians and intervals of one state over the samples. */
static void add_state(tsr_figure *f, const tsr_series *s, int state,
                      const double *x)
{
    const char *colour = tsr_report_chain_colour(state);
    double *y[TSR_SERIES_QUANTILES] = {NULL};
    for (int q = 0; q < TSR_SERIES_QUANTILES; q++) {
        tsr_pool_array(&f->pool, y[q], s->n);
        for (int i = 0; i < s->n && y[q] != NULL; i++)
            y[q][i] = s->quantile[state * s->n + i][q];
    }
    if (f->pool.failed)
        return;
    tsr_figure_layer(f, TSR_LAYER_ERRORS, NULL, colour, s->n, x, y[0], y[4])
        ->opacity = 0.45;
    tsr_figure_layer(f, TSR_LAYER_ERRORS, NULL, colour, s->n, x, y[1], y[3]);
    if (s->is_series)
        tsr_figure_layer(f, TSR_LAYER_LINE, NULL, colour, s->n, x, y[2], NULL)
            ->opacity = 0.4;
    tsr_figure_layer(f, TSR_LAYER_POINTS, s->name[state], colour, s->n, x, y[2],
                     NULL);
}

static tsr_status series_figure(tsr_report *r, const tsr_series *s,
                                tsr_err *err)
{
    char title[80];
    snprintf(title, sizeof title, "%s%s%s%s",
             s->is_series ? "at" : "curve, as numbered in the table",
             s->is_series && s->unit != NULL ? " (" : "",
             s->is_series && s->unit != NULL ? s->unit : "",
             s->is_series && s->unit != NULL ? ")" : "");
    tsr_figure f = tsr_figure_new(
        "populations",
        s->is_species ? "mass fractions of the species in each sample"
                      : "populations of the states in each sample",
        title, 700);
    double *x = tsr_pool_new(&f.pool, (size_t)s->n, sizeof *x);
    for (int i = 0; i < s->n && x != NULL; i++)
        x[i] = s->is_series ? s->at[i] : i + 1.0;
    f.is_count = !s->is_series;
    tsr_panel *panel = tsr_figure_panel(
        &f, s->is_species ? "mass fraction" : "population", 0, 260);
    panel->y0 = 0.0;
    panel->y1 = 1.0;
    for (int k = 0; k < s->n_state; k++)
        add_state(&f, s, k, x);
    tsr_report_add_margin(&f);
    return tsr_page_figure(r->page, f, err);
}

tsr_status tsr_report_series(tsr_report *report, tsr_err *err)
{
    tsr_report *r = report;
    const tsr_series *s = &r->options->verdict->series;
    if (s->n == 0)
        return TSR_OK;
    tsr_page_section(r->page, "populations", "Populations");
    tsr_page_words(
        r->page,
        "The samples share their %s. Points: medians; lines: central "
        "68 and, pale, 95&nbsp;%% of the draws.",
        s->is_species ? "structure; each has its own mass fractions "
                        "of the species"
                      : "states; each has its own populations of "
                        "them");
    TSR_TRY(series_figure(r, s, err));
    tsr_page_table(r->page, "tight",
                   s->is_species
                       ? "\tsample\tspecies\t2.5&nbsp;%\t16&nbsp;%\tmedian\t"
                         "84&nbsp;%\t97.5&nbsp;%"
                       : "\tsample\tstate\t2.5&nbsp;%\t16&nbsp;%\tmedian\t"
                         "84&nbsp;%\t97.5&nbsp;%");
    for (int i = 0; i < s->n * s->n_state; i++) {
        const int sample = i / s->n_state, state = i % s->n_state;
        const double *q = s->quantile[state * s->n + sample];
        tsr_page_row(
            r->page, "%d\t%s%s%s\t%s\t%.3f\t%.3f\t%.3f\t%.3f\t%.3f", sample + 1,
            tsr_page_escape(r->page, s->label[sample]),
            s->is_series && s->unit != NULL ? " " : "",
            s->is_series && s->unit != NULL ? tsr_page_escape(r->page, s->unit)
                                            : "",
            tsr_page_escape(r->page, s->is_species ? s->name[state]
                                                   : s->name[state] + 6),
            q[0], q[1], q[2], q[3], q[4]);
    }
    tsr_page_table_end(r->page);
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

static tsr_status add_outline(tsr_report *r, tsr_figure *f,
                              tsr_trace_reader *trace,
                              const tsr_summary_item *item, const char *label,
                              const char *colour, int is_prior, int *is_found,
                              tsr_err *err)
{
    double x[TSR_OUTLINE], y[TSR_OUTLINE], zero[TSR_OUTLINE] = {0.0};
    int n_chain, n_draw;
    double *value;
    *is_found = 0;
    tsr_status status =
        tsr_report_scalar(r, trace, item->name, &n_chain, &n_draw, &value, err);
    if (value == NULL)
        return status;
    const int n = tsr_report_outline(
        (size_t)n_chain * (size_t)n_draw,
        is_prior ? item->prior.ess_bulk : item->value.ess_bulk, value, x, y);
    *is_found = n > 0;
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

/* Adds the configured prior density where it is known, else the histogram of a
 * run of the prior. */
static tsr_status add_prior(tsr_report *r, const tsr_summary_item *item,
                            tsr_figure *f, int *is_found, tsr_err *err)
{
    const tsr_report_prior *known = density_of(r, item->name);
    const double zero[TSR_REPORT_DENSITY] = {0.0};
    const int n = TSR_REPORT_DENSITY;
    *is_found = 0;
    if (known == NULL)
        return r->options->prior != NULL && item->has_prior
                   ? add_outline(r, f, r->options->prior, item, "prior",
                                 TSR_COLOUR_PRIOR, 1, is_found, err)
                   : TSR_OK;
    tsr_figure_layer(f, TSR_LAYER_BAND, NULL, TSR_COLOUR_PRIOR, n, known->x,
                     zero, known->y)
        ->opacity = 0.25;
    tsr_figure_layer(f, TSR_LAYER_DASHES, "prior", TSR_COLOUR_PRIOR, n,
                     known->x, known->y, NULL);
    *is_found = 1;
    return TSR_OK;
}

/* Scales prior and posterior to the same height: with equal areas a broad prior
 * would be a line at the bottom beside a narrow posterior. Where the prior is
 * more than 8 times as wide, x is limited to the neighbourhood of the
 * posterior. */
static void scale_to_height(tsr_figure *f)
{
    const double most =
        8.0; /* widest prior shown in full, over the posterior's width */
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

/* The file name of the figure: characters other than letters, digits, _ - .
 * become '-'. */
static void name_figure(const tsr_summary_item *item, char name[96])
{
    snprintf(name, 96, "posterior-%.60s", item->name);
    for (char *c = name; *c != '\0'; c++)
        if (!isalnum((unsigned char)*c) && strchr("_-.", *c) == NULL)
            *c = '-';
}

/* The figure of one scalar; left out where the scalar does not vary. */
static tsr_status add_scalar(tsr_report *r, const tsr_summary_item *item,
                             int *n_shown, tsr_err *err)
{
    char name[96], title[160], axis[160];
    int is_found = 0, has_prior = 0;
    name_figure(item, name);
    const char *unit = item->unit != NULL ? item->unit : "";
    readable_name(r, item, sizeof title, title);
    snprintf(axis, sizeof axis, "%.80s%s%.40s%s", item->name,
             *unit != '\0' ? " (" : "",
             strcmp(unit, "Angstrom") == 0 ? "\xc3\x85" : unit,
             *unit != '\0' ? ")" : "");
    const int is_big = is_main(item);
    const int may_have_prior =
        item->has_prior || density_of(r, item->name) != NULL;
    tsr_figure f = tsr_figure_new(name, title, axis, is_big ? 340 : 200);
    tsr_figure_panel(&f, may_have_prior ? "relative density" : "density", 0,
                     is_big ? 200 : 100);
    tsr_status status = add_prior(r, item, &f, &has_prior, err);
    TSR_THEN(status, add_outline(r, &f, r->trace, item,
                                 r->options->is_prior ? "prior" : "posterior",
                                 TSR_COLOUR_MODEL, 0, &is_found, err));
    if (status == TSR_OK && is_found) {
        (*n_shown)++;
        tsr_report_add_margin(&f);
        if (has_prior)
            scale_to_height(&f);
        return tsr_page_figure(r->page, f, err);
    }
    tsr_figure_clear(&f);
    return status;
}

enum { MOST_FIGURES = 30 };

/* Histograms of the main variables or of the others. *n counts figures over
 * both calls, up to MOST_FIGURES. */
static tsr_status add_histograms(tsr_report *r, int of_main, int *n,
                                 tsr_err *err)
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

/* Nuisance parameters: table and small figures, folded. */
static tsr_status add_nuisance(tsr_report *r, int *n, tsr_err *err)
{
    FILE *out = tsr_page_html(r->page);
    fputs("<details id=\"nuisance\"><summary>Nuisance parameters: scale, "
          "background, noise, contrast, poses, log density</summary>\n",
          out);
    add_table(r, 0);
    tsr_status status = add_histograms(r, 0, n, err);
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
                       "Grey, dashed: prior; solid: posterior. Both are scaled "
                       "to the same height. A prior more than eight times as "
                       "wide as the posterior is shown only around it.");
    tsr_status status = add_histograms(report, 1, &n_shown, err);
    TSR_THEN(status, add_nuisance(report, &n_shown, err));
    if (n_shown == 0)
        tsr_page_words(report->page, "Too few draws for distributions.");
    if (n_shown == MOST_FIGURES)
        tsr_page_words(report->page, "Only the first %d variables are shown.",
                       (int)MOST_FIGURES);
    if (!s->has_prior && !report->options->is_prior)
        tsr_page_words(report->page,
                       "<code>tessera run CONFIG --prior-only --output PRIOR"
                       "</code> and <code>tessera report DIR --prior PRIOR"
                       "</code> add the prior of the structure to these "
                       "figures.");
    return status;
}

/* ---- chains ----
 *
 * Traces show drift and chains trapped in one mode. */

enum { MOST_POINTS = 400 };

/* Variables whose chains are compared in figures. */
static const char *const compared[] = {"lp", "chi2", "rg", "d_max"};
enum { N_COMPARED = sizeof compared / sizeof *compared };

/* Adds a panel with a line for each chain, thinned to MOST_POINTS draws. */
static tsr_status add_trace_panel(tsr_report *r, tsr_figure *f,
                                  const char *name, int *is_found, tsr_err *err)
{
    double x[MOST_POINTS], y[MOST_POINTS], *value;
    int n_chain, n_draw;
    *is_found = 0;
    tsr_status status =
        tsr_report_scalar(r, r->trace, name, &n_chain, &n_draw, &value, err);
    if (value == NULL)
        return status;
    *is_found = 1;
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
    return TSR_OK;
}

static tsr_status add_traces(tsr_report *r, tsr_err *err)
{
    int n_found = 0;
    tsr_status status = TSR_OK;
    tsr_figure f = tsr_figure_new("trace", "Traces", "draw", 700);
    for (int i = 0; i < N_COMPARED && status == TSR_OK; i++) {
        int is_found;
        status = add_trace_panel(r, &f, compared[i], &is_found, err);
        n_found += is_found;
    }
    if (status != TSR_OK || n_found == 0) {
        tsr_figure_clear(&f);
        return status;
    }
    tsr_page_words(
        r->page,
        "Traces: each chain, draw by draw%s. Converged chains fluctuate around "
        "the same level; a chain that drifts, stalls or stays at a level of "
        "its own has not converged.%s",
        r->diagnosis->n_draw > MOST_POINTS ? ", thinned to 400 draws" : "",
        r->diagnosis->n_chain > TSR_MOST_CHAINS
            ? " Only the first 10 chains are shown."
            : "");
    return tsr_page_figure(r->page, f, err);
}

/* ---- convergence checks ---- */

/* Writes a text in which names of variables are replaced by descriptive ones.
 */
static void write_readable(const tsr_report *r, const char *text)
{
    static const char name[] = "abcdefghijklmnopqrstuvwxyz_0123456789";
    while (*text != '\0') {
        char piece[512];
        const size_t n = strspn(text, name);
        const size_t used = n > 0 ? n : strcspn(text, name);
        snprintf(piece, sizeof piece, "%.*s", (int)used, text);
        const tsr_summary_item *item =
            tsr_summary_find(r->diagnosis->summary, piece);
        tsr_page_text(
            r->page,
            item == NULL ? piece : readable_name(r, item, sizeof piece, piece));
        text += used;
    }
}

static void write_checks(tsr_report *r)
{
    static const char *const shown[] = {"yes", "no", "not known",
                                        "does not apply"};
    static const char *const class_of[] = {"yes", "no", "open", ""};
    const tsr_diagnosis *d = r->diagnosis;
    FILE *out = tsr_page_html(r->page);
    fputs("<table><tr><th>check</th><th>passed</th><th class=\"words\">"
          "result</th></tr>\n",
          out);
    for (int i = 0; i < d->n; i++) {
        const tsr_check *c = &d->check[i];
        fprintf(out,
                "<tr><td>%s</td><td class=\"%s\">%s</td><td "
                "class=\"words\">",
                c->asks, class_of[c->answer], shown[c->answer]);
        write_readable(r, c->found);
        fputs("</td></tr>\n", out);
    }
    fputs("</table>\n", out);
}

/* Each remedy once, since several checks may share one. */
static void write_remedies(tsr_report *r)
{
    const tsr_diagnosis *d = r->diagnosis;
    for (int i = 0; i < d->n; i++) {
        int is_new = d->check[i].remedy != NULL;
        for (int k = 0; k < i && is_new; k++)
            is_new = d->check[k].remedy == NULL ||
                     strcmp(d->check[k].remedy, d->check[i].remedy) != 0;
        if (is_new)
            tsr_page_paragraph(r->page, "", "&rarr; ", d->check[i].remedy);
    }
    if (d->advice == NULL)
        return;
    fputs("<p>To continue: <code>", tsr_page_html(r->page));
    tsr_page_text(r->page, d->advice);
    fputs("</code></p>\n", tsr_page_html(r->page));
}

void tsr_report_convergence(tsr_report *report)
{
    const tsr_diagnosis *d = report->diagnosis;
    FILE *out = tsr_page_html(report->page);
    fprintf(out, "<details class=\"state %s\"><summary><b>%s</b> ",
            d->is_converged ? "yes" : "no",
            d->is_converged ? "Converged" : "Convergence not established:");
    const char *found = "according to the checks below.";
    for (int i = 0; i < d->n && !d->is_converged; i++)
        if (d->check[i].answer == TSR_CHECK_NO ||
            d->check[i].answer == TSR_CHECK_UNKNOWN) {
            found = d->check[i].found;
            break;
        }
    write_readable(report, found);
    fputs("</summary>\n", out);
    write_checks(report);
    write_remedies(report);
    fputs("<p>See also the <a href=\"#chains\">traces</a> of the chains.</p>"
          "</details>\n",
          out);
}

tsr_status tsr_report_chains(tsr_report *report, tsr_err *err)
{
    tsr_page_section(report->page, "chains", "Convergence");
    fputs("<details><summary>Traces</summary>\n", tsr_page_html(report->page));
    tsr_status status = add_traces(report, err);
    fputs("</details>\n", tsr_page_html(report->page));
    return status;
}

/* ---- measurements other than curves ----
 *
 * A section for each kind of likelihood term of which the trace has data. Every
 * kind stores the same variables in the trace: measured values, their standard
 * deviations, the value that each draw predicts, and replicates of the data. A
 * new kind of term therefore needs no code here. A measurement of one number is
 * shown as a density of the draws beside the measured value, one of several
 * points as a curve. Scattering curves have their own section (report_fit.c),
 * and so have density maps (report_map.c). */

enum { NAME = 64 };

/* A measurement, and the draws' predictions of it. */
typedef struct {
    const tsr_term_type *type;
    int ordinal; /* number among those of its kind, from 0 */
    int n_point;
    double *observed, *sigma;      /* [n_point] */
    char mean_name[NAME];          /* variable of posterior_predictive */
    tsr_curve_summary *mean;       /* prediction without noise */
    tsr_curve_summary *replicates; /* replicates of the data, with noise */
} measurement;

static void measurement_clear(measurement *m)
{
    free(m->observed);
    free(m->sigma);
    tsr_curve_summary_free(m->mean);
    tsr_curve_summary_free(m->replicates);
}

static void set_variable_name(const measurement *m, const char *what,
                              char name[NAME])
{
    tsr_term_variable(m->type, m->ordinal, what, NAME, name);
}

static tsr_status read_data(const tsr_report *r, measurement *m, tsr_err *err)
{
    char name[NAME];
    int one, n_sigma = 0;
    set_variable_name(m, m->type->observable, name);
    tsr_status status =
        tsr_trace_get(r->trace, TSR_TRACE_OBSERVED_DATA, name, &one, &one,
                      &m->n_point, &m->observed, err);
    set_variable_name(m, "sigma", name);
    TSR_THEN(status, tsr_trace_get(r->trace, TSR_TRACE_CONSTANT_DATA, name,
                                   &one, &one, &n_sigma, &m->sigma, err));
    if (status == TSR_OK && n_sigma != m->n_point)
        status = tsr_fail(err, TSR_E_DATA, "%s: %d numbers of %d", name,
                          n_sigma, m->n_point);
    return status;
}

/* Reads a measurement. *is_found 0: the trace has none of that ordinal, or no
 * draws of it. */
static tsr_status read_measurement(const tsr_report *r, measurement *m,
                                   int *is_found, tsr_err *err)
{
    const double most =
        2e7; /* largest count of numbers to sort, which takes seconds */
    char name[NAME], plain[NAME];
    snprintf(plain, sizeof plain, "%s_mean", m->type->observable);
    set_variable_name(m, plain, m->mean_name);
    set_variable_name(m, m->type->observable, name);
    *is_found =
        tsr_trace_has(r->trace, TSR_TRACE_OBSERVED_DATA, name) &&
        tsr_trace_has(r->trace, TSR_TRACE_POSTERIOR_PREDICTIVE, m->mean_name) &&
        tsr_trace_has(r->trace, TSR_TRACE_POSTERIOR_PREDICTIVE, name) &&
        tsr_trace_n_draw(r->trace, TSR_TRACE_POSTERIOR_PREDICTIVE) > 0;
    if (!*is_found)
        return TSR_OK;
    TSR_TRY(read_data(r, m, err));
    TSR_TRY(
        tsr_curve_summary_make(r->trace, m->mean_name, most, &m->mean, err));
    return tsr_curve_summary_make(r->trace, name, most, &m->replicates, err);
}

/* ---- one number: a row of the table, and a density ---- */

/* "2: A:17, A:203": number and, where known, name. */
static void set_label(const tsr_report *r, const measurement *m,
                      char text[NAME])
{
    const char *known = tsr_report_data_name(r, m->type, m->ordinal);
    snprintf(text, NAME, "%d%s%.40s", m->ordinal + 1,
             known != NULL && *known != '\0' ? ": " : "",
             known != NULL ? known : "");
}

static void table_row(tsr_report *r, const measurement *m)
{
    const tsr_convergence *v = &m->mean->point[0],
                          *seen = &m->replicates->point[0];
    const double number[] = {m->observed[0],
                             m->sigma[0],
                             v->mean,
                             v->sd,
                             v->q5,
                             v->q95,
                             (v->mean - m->observed[0]) / m->sigma[0],
                             seen->q5,
                             seen->q95};
    char name[NAME], cells[512] = "";
    set_label(r, m, name);
    for (size_t i = 0, n = 0; i < sizeof number / sizeof *number; i++)
        n += (size_t)(isfinite(number[i])
                          ? snprintf(cells + n, sizeof cells - n, "\t%.4g",
                                     number[i])
                          : snprintf(cells + n, sizeof cells - n, "\t&ndash;"));
    tsr_page_row(r->page, "%s\t%s%s", tsr_page_escape(r->page, name),
                 m->type->observable_unit != NULL ? m->type->observable_unit
                                                  : "",
                 cells);
}

/* A figure with the file name "distance-2", say. */
static tsr_figure new_figure(const tsr_report *r, const measurement *m,
                             const char *x_title, int width)
{
    char name[NAME], title[2 * NAME], text[NAME];
    snprintf(name, sizeof name, "%.40s-%d", m->type->name, m->ordinal + 1);
    set_label(r, m, text);
    snprintf(title, sizeof title, "%.50s %s", m->type->observable, text);
    return tsr_figure_new(name, title, x_title, width);
}

static void with_unit(const char *what, const char *unit, char text[NAME])
{
    snprintf(text, NAME, "%.30s%s%.20s%s", what, unit != NULL ? " (" : "",
             unit != NULL ? unit : "", unit != NULL ? ")" : "");
}

/* The density of the draws' predictions, with the measured mean and its
 * standard deviation. */
static tsr_status density_figure(tsr_report *r, const measurement *m,
                                 tsr_err *err)
{
    double x[TSR_OUTLINE], y[TSR_OUTLINE], *value = NULL, top = 0.0;
    int n_chain, n_draw, n;
    char title[NAME];
    TSR_TRY(tsr_trace_get(r->trace, TSR_TRACE_POSTERIOR_PREDICTIVE,
                          m->mean_name, &n_chain, &n_draw, &n, &value, err));
    n = tsr_report_outline((size_t)n_chain * (size_t)n_draw,
                           m->mean->point[0].ess_bulk, value, x, y);
    free(value);
    for (int i = 0; i < n; i++)
        top = fmax(top, y[i]);
    if (n == 0)
        return TSR_OK; /* constant: the table is enough */
    with_unit(m->type->observable, m->type->observable_unit, title);
    tsr_figure f = new_figure(r, m, title, 340);
    const double at = m->observed[0], sd = m->sigma[0];
    const double wide[2] = {at - sd, at + sd}, middle[2] = {at, at};
    const double zero[2] = {0.0, 0.0}, high[2] = {top, top}, up[2] = {0.0, top};
    tsr_figure_panel(&f, "density", 0, 200);
    tsr_figure_layer(&f, TSR_LAYER_BAND, NULL, TSR_COLOUR_ERROR, 2, wide, zero,
                     high)
        ->opacity = 0.5;
    tsr_figure_layer(&f, TSR_LAYER_LINE, "measured \xc2\xb1 sd",
                     TSR_COLOUR_DATA, 2, middle, up, NULL);
    tsr_figure_layer(&f, TSR_LAYER_LINE, "draws", TSR_COLOUR_MODEL, n, x, y,
                     NULL);
    tsr_report_add_margin(&f);
    return tsr_page_figure(r->page, f, err);
}

/* ---- several points: a figure over their axis ---- */

/* The measured points with their errors, and mean and central 90 % of the
 * draws' predictions; thinned where there are very many points. */
static tsr_status axis_figure(tsr_report *r, const measurement *m, tsr_err *err)
{
    const tsr_curve_summary *c = m->mean;
    const size_t n = (size_t)c->n;
    char x_title[NAME], y_title[NAME];
    double *low, *high, *from, *to, *data, *mean;
    with_unit(m->type->axis, m->type->axis_unit, x_title);
    with_unit(m->type->observable, m->type->observable_unit, y_title);
    tsr_figure f = new_figure(r, m, x_title, 700);
    double **const array[] = {&low, &high, &from, &to, &data, &mean};
    for (size_t i = 0; i < 6; i++)
        tsr_pool_array(&f.pool, *array[i], n);
    for (size_t k = 0; !f.pool.failed && k < n; k++) {
        const int at = c->at[k];
        data[k] = m->observed[at];
        from[k] = data[k] - m->sigma[at];
        to[k] = data[k] + m->sigma[at];
        mean[k] = c->point[k].mean;
        low[k] = c->point[k].q5;
        high[k] = c->point[k].q95;
    }
    tsr_figure_panel(&f, y_title, m->type->is_curve, 300);
    tsr_figure_layer(&f, TSR_LAYER_ERRORS, NULL, TSR_COLOUR_ERROR, c->n, c->q,
                     from, to);
    tsr_figure_layer(&f, TSR_LAYER_POINTS, "measured", TSR_COLOUR_DATA, c->n,
                     c->q, data, NULL);
    tsr_figure_layer(&f, TSR_LAYER_BAND, "draws, 5 to 95 %", TSR_COLOUR_MODEL,
                     c->n, c->q, low, high)
        ->opacity = 0.35;
    tsr_figure_layer(&f, TSR_LAYER_LINE, "draws, mean", TSR_COLOUR_MODEL, c->n,
                     c->q, mean, NULL);
    return tsr_page_figure(r->page, f, err);
}

/* ---- the section of a kind ---- */

/* A table of the numbers, and a figure of each measurement. */
static tsr_status add_measurements(tsr_report *r, int n,
                                   const measurement *list, tsr_err *err)
{
    const int is_number = list->n_point == 1;
    tsr_status status = TSR_OK;
    if (is_number) {
        tsr_page_words(
            r->page,
            "Measured values with their standard deviations, and the values "
            "predicted by the draws. <i>Deviation</i>: predicted mean less "
            "measured value, in units of the measured sd. <i>New data</i>: "
            "interval that would contain 90&nbsp;%% of new measurements.");
        tsr_page_table(r->page, "tight",
                       "\tunit\tmeasured\tsd\tdraws, mean\tsd\t5&nbsp;%\t"
                       "95&nbsp;%\tdeviation\tnew data, 5&nbsp;%\t95&nbsp;%");
        for (int k = 0; k < n; k++)
            if (list[k].n_point == 1)
                table_row(r, &list[k]);
        tsr_page_table_end(r->page);
        tsr_page_columns(r->page);
    }
    for (int k = 0; k < n && status == TSR_OK; k++)
        status = list[k].n_point == 1 ? density_figure(r, &list[k], err)
                                      : axis_figure(r, &list[k], err);
    if (is_number)
        tsr_page_columns_end(r->page);
    return status;
}

static tsr_status add_section(tsr_report *r, const tsr_term_type *type,
                              tsr_err *err)
{
    measurement *list = NULL;
    tsr_status status = TSR_OK;
    int n = 0;
    for (int is_found = 1; is_found && status == TSR_OK; n += is_found) {
        list = tsr_pool_resize(&r->pool, list, (size_t)n + 1, sizeof *list);
        TSR_TRY(tsr_pool_check(&r->pool, err));
        list[n] = (measurement){.type = type, .ordinal = n};
        status = read_measurement(r, &list[n], &is_found, err);
    }
    if (status == TSR_OK && n > 0) {
        tsr_page_section(r->page, type->name, type->title);
        status = type->is_map && r->options->n_map > 0
                     ? tsr_report_maps(r, type, err)
                     : add_measurements(r, n, list, err);
    }
    for (int k = 0; k < n; k++)
        measurement_clear(&list[k]);
    return status;
}

tsr_status tsr_report_terms(tsr_report *report, tsr_err *err)
{
    for (int k = 0; tsr_term_registry[k] != NULL; k++)
        if (!tsr_term_registry[k]->is_curve)
            TSR_TRY(add_section(report, tsr_term_registry[k], err));
    return TSR_OK;
}
