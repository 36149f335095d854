/* The fit of every data set: the curves of the draws over the data, residuals,
 * and where the points allow it Guinier's and Kratky's plots, by which people
 * who measure SAXS judge size and compactness at a glance. */
#include "report/report_sections.h"

#include "scattering/guinier.h"
#include "scattering/profile_fit.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* One data set, and the curves of the posterior at its points. */
typedef struct {
    int number; /* 1, 2, ... */
    int n;
    double *block;                /* the arrays, one after the other */
    double *q;                    /* [n] 1/Angstrom */
    double *intensity, *sigma;    /* [n] */
    double *mean, *low, *high;    /* [n] expected curve: mean, 5 and 95 % */
    double *seen_low, *seen_high; /* [n] of replicates of the data */
    double *start;                /* [n] of the structure as it was given */
    const tsr_report_start *fit_of_start;  /* NULL: none */
    double *scratch, *scratch2, *scratch3; /* [n] */
    double rg, background; /* posterior means; NaN where there is none */
    char suffix[16];       /* "", "_2" */
    /* Guinier's law, fitted to the data without the background */
    tsr_guinier guinier;
} data_set;

/* Copies of a vector without draws into `to` [n]; 0 where it is not there. */
static int get_vector(tsr_trace_reader *trace, tsr_trace_group group,
                      const char *name, const char *suffix, int n, double *to)
{
    char full[64];
    int n_chain, n_draw, n_there;
    double *value = NULL;
    snprintf(full, sizeof full, "%s%s", name, suffix);
    int is_there = tsr_trace_get(trace, group, full, &n_chain, &n_draw,
                                 &n_there, &value, NULL) == TSR_OK &&
                   n_there == n;
    if (is_there)
        memcpy(to, value, (size_t)n * sizeof *to);
    free(value);
    return is_there;
}

static double mean_of(const tsr_report *r, const char *name, const char *suffix)
{
    char full[64];
    snprintf(full, sizeof full, "%s%s", name, suffix);
    const tsr_summary_item *item =
        tsr_summary_find(r->diagnosis->summary, full);
    return item != NULL ? item->value.mean : (double)NAN;
}

/* Where a curve has been summarised at all points of the data. */
static const tsr_curve_summary *curve_of(const tsr_report *r,
                                         const char *suffix)
{
    char full[64];
    snprintf(full, sizeof full, "intensity_mean%s", suffix);
    for (int i = 0; i < r->diagnosis->n_curve; i++)
        if (strcmp(r->diagnosis->curve[i]->name, full) == 0)
            return r->diagnosis->curve[i];
    return NULL;
}

static void take(const tsr_curve_summary *from, double *mean, double *low,
                 double *high)
{
    for (int k = 0; k < from->n; k++) {
        if (mean != NULL)
            mean[k] = from->point[k].mean;
        low[k] = from->point[k].q5;
        high[k] = from->point[k].q95;
    }
}

/* Reads data set `number`; *is_there 0 where the trace has none, or not all of
 * it. Of very many draws the curves are at some points only, and so is all. */
static tsr_status get_data(tsr_report *r, int number, data_set *d,
                           int *is_there, tsr_err *err)
{
    enum { N_ARRAY = 12 };
    *is_there = 0;
    *d = (data_set){.number = number};
    if (number > 1)
        snprintf(d->suffix, sizeof d->suffix, "_%d", number);
    const tsr_curve_summary *curve = curve_of(r, d->suffix);
    if (curve == NULL)
        return TSR_OK;
    const size_t full = (size_t)curve->n_point;
    d->n = curve->n;
    d->block = calloc(N_ARRAY * full, sizeof *d->block);
    if (d->block == NULL)
        return tsr_fail(err, TSR_E_NOMEM, "no memory for a curve");
    double **array[N_ARRAY] = {&d->q,        &d->intensity, &d->sigma,
                               &d->mean,     &d->low,       &d->high,
                               &d->seen_low, &d->seen_high, &d->start,
                               &d->scratch,  &d->scratch2,  &d->scratch3};
    for (size_t i = 0; i < N_ARRAY; i++)
        *array[i] = d->block + i * full;
    if (!get_vector(r->trace, TSR_TRACE_OBSERVED_DATA, "intensity", d->suffix,
                    curve->n_point, d->intensity) ||
        !get_vector(r->trace, TSR_TRACE_CONSTANT_DATA, "sigma", d->suffix,
                    curve->n_point, d->sigma))
        return TSR_OK;
    for (int k = 0; k < d->n; k++) { /* at[k] >= k */
        d->q[k] = curve->q[k];
        d->intensity[k] = d->intensity[curve->at[k]];
        d->sigma[k] = d->sigma[curve->at[k]];
    }
    take(curve, d->mean, d->low, d->high);
    const tsr_report_options *o = r->options;
    if (number <= o->n_start && o->start[number - 1].n == curve->n_point)
        d->fit_of_start = &o->start[number - 1];
    for (int k = 0; k < d->n && d->fit_of_start != NULL; k++)
        d->start[k] = d->fit_of_start->curve[curve->at[k]];
    d->rg = mean_of(r, "rg", "");
    d->background = mean_of(r, "background", d->suffix);
    *is_there = 1;
    return TSR_OK;
}

/* The band of replicates; where the trace has none it stays empty. */
static tsr_status get_replicates(tsr_report *r, data_set *d, tsr_err *err)
{
    char name[64];
    tsr_curve_summary *seen = NULL;
    tsr_err local;
    int n_chain, n_draw, n;
    snprintf(name, sizeof name, "intensity%s", d->suffix);
    for (int k = 0; k < d->n; k++)
        d->seen_low[k] = d->seen_high[k] = (double)NAN;
    if (tsr_trace_shape(r->trace, TSR_TRACE_POSTERIOR_PREDICTIVE, name,
                        &n_chain, &n_draw, &n, NULL) != TSR_OK)
        return TSR_OK;
    tsr_status status = tsr_curve_summary_make(
        r->trace, name, (double)n_chain * n_draw * d->n, &seen, &local);
    if (status == TSR_OK && seen->n == d->n)
        take(seen, NULL, d->seen_low, d->seen_high);
    tsr_curve_summary_free(seen);
    return status == TSR_E_NOMEM ? tsr_fail(err, status, "%s", local.message)
                                 : TSR_OK;
}

/* ---- fit and residuals ---- */

static tsr_figure fit_figure(data_set *d)
{
    char name[32];
    snprintf(name, sizeof name, "fit%s", d->suffix);
    tsr_figure f = tsr_figure_new(name, "Data and posterior curves",
                                  "q (1/\xc3\x85)", 700);
    const tsr_fit_figure fit = {
        .n = d->n,
        .q = d->q,
        .intensity = d->intensity,
        .sigma = d->sigma,
        .model = d->mean,
        .model_label = "curve, mean",
        .residual_title = "(I \xe2\x88\x92 mean) / \xcf\x83",
        .start = d->fit_of_start != NULL ? d->start : NULL,
        .start_label = "start, as it is",
        .low = d->low,
        .high = d->high,
        .seen_low = d->seen_low,
        .seen_high = d->seen_high};
    tsr_fit_figure_add(&f, &fit, 340);
    return f;
}

/* The structure before anything moved, under the same model of scattering. */
static void start_words(tsr_report *r, const data_set *d)
{
    if (d->fit_of_start == NULL)
        return;
    const tsr_profile_fit *fit = &d->fit_of_start->fit;
    static const char *const at[] = {" (its lower bound)", "",
                                     " (its upper bound)"};
    FILE *out = tsr_page_html(r->page);
    fprintf(out,
            "<p>Dashed: the structure as it was given, by the same model as "
            "the draws, with what the run infers beside the structure at its "
            "best: &chi;&sup2;/N&nbsp;= %.2f, c1&nbsp;= %.3f%s, c2&nbsp;= "
            "%.2f%s",
            fit->chi2, fit->c1, at[fit->c1_at + 1], fit->c2,
            at[fit->c2_at + 1]);
    fputs(".</p>\n", out);
}

static void fit_words(tsr_report *r, data_set *d)
{
    const double poor = 2.0; /* chi-square per point, in units of the noise */
    const double level = fmax(
        1.0, tsr_saxs_noise_make(d->n, d->q, d->intensity, d->sigma).level);
    double chi2 = 0.0;
    int n_inside = 0, n_band = 0;
    for (int k = 0; k < d->n; k++) {
        d->scratch[k] = d->intensity[k] - d->mean[k];
        chi2 += d->scratch[k] * d->scratch[k] / (d->sigma[k] * d->sigma[k]);
        n_band += !isnan(d->seen_low[k]);
        n_inside += d->intensity[k] >= d->seen_low[k] &&
                    d->intensity[k] <= d->seen_high[k];
    }
    tsr_page_words(r->page,
                   "Points: the measured curve with its errors. Line and "
                   "narrow band: the mean and the middle 90&nbsp;%% of the "
                   "curves of the draws. Wide band: where 90&nbsp;%% of new "
                   "measurements would fall. Below: residuals of the mean "
                   "curve in units of the measured error. Drag along q to "
                   "zoom, double click to return.");
    tsr_page_words(r->page,
                   "The mean curve has &chi;&sup2;/N&nbsp;= %.2f over %d "
                   "points.",
                   chi2 / d->n, d->n);
    start_words(r, d);
    if (chi2 / d->n > poor * level * level)
        tsr_page_words(r->page,
                       "<b class=\"no\">The model does not reach these data "
                       "within their noise.</b> Whatever converged below "
                       "describes a model that does not fit: look at what is "
                       "flexible, at <code>structure.states</code>, at the "
                       "background and at the range of q, or at the data.");
    if (n_band > 0)
        tsr_page_words(r->page,
                       "%.0f&nbsp;%% of the measured points lie in the wide "
                       "band; 90&nbsp;%% should.",
                       100.0 * n_inside / n_band);
}

/* ---- Guinier and Kratky ---- */

/* ln(I - b) over q^2, somewhat beyond the range of Guinier's law. */
static tsr_figure guinier_figure(data_set *d)
{
    char name[32];
    const double b = isfinite(d->background) ? d->background : 0.0;
    const double end = 2.0 / d->guinier.rg, limit = 1.3 / d->guinier.rg;
    int n = 0;
    snprintf(name, sizeof name, "guinier%s", d->suffix);
    tsr_figure f = tsr_figure_new(name, "Guinier plot",
                                  "q\xc2\xb2 (1/\xc3\x85\xc2\xb2)", 340);
    tsr_figure_panel(&f, "ln(I \xe2\x88\x92 b)", 0, 260);
    double *x = d->scratch, *y = d->scratch2, *curve = d->scratch3;
    for (int k = 0; k < d->n && d->q[k] < end; k++, n++) {
        const double i = d->intensity[k] - b, m = d->mean[k] - b;
        x[n] = d->q[k] * d->q[k];
        y[n] = i > 0.0 ? log(i) : (double)NAN;
        curve[n] = m > 0.0 ? log(m) : (double)NAN;
    }
    tsr_figure_layer(&f, TSR_LAYER_POINTS, "measured", TSR_COLOUR_DATA, n, x, y,
                     NULL);
    tsr_figure_layer(&f, TSR_LAYER_LINE, "posterior", TSR_COLOUR_MODEL, n, x,
                     curve, NULL);
    const double rg = d->guinier.rg, i0 = log(d->guinier.i0);
    const double lx[2] = {0.0, limit * limit};
    const double ly[2] = {i0, i0 - rg * rg * lx[1] / 3.0};
    tsr_figure_layer(&f, TSR_LAYER_DASHES, "Guinier's law", "#444444", 2, lx,
                     ly, NULL);
    return f;
}

/* (q Rg)^2 I / I(0) over q Rg (Durand et al. 2010, J. Struct. Biol. 169, 45).
 */
static tsr_figure kratky_figure(data_set *d)
{
    char name[32];
    const double b = isfinite(d->background) ? d->background : 0.0;
    snprintf(name, sizeof name, "kratky%s", d->suffix);
    tsr_figure f =
        tsr_figure_new(name, "Dimensionless Kratky plot", "q Rg", 340);
    tsr_panel *panel = tsr_figure_panel(
        &f, "(q Rg)\xc2\xb2 (I \xe2\x88\x92 b) / I(0)", 0, 260);
    double *x = d->scratch, *y = d->scratch2, *curve = d->scratch3;
    double highest = 1.2;
    for (int k = 0; k < d->n; k++) {
        x[k] = d->q[k] * d->guinier.rg;
        const double factor = x[k] * x[k] / d->guinier.i0;
        y[k] = factor * (d->intensity[k] - b);
        curve[k] = factor * (d->mean[k] - b);
        highest = fmax(highest, 1.3 * curve[k]);
    }
    tsr_figure_layer(&f, TSR_LAYER_POINTS, "measured", TSR_COLOUR_DATA, d->n, x,
                     y, NULL);
    tsr_figure_layer(&f, TSR_LAYER_LINE, "posterior", TSR_COLOUR_MODEL, d->n, x,
                     curve, NULL);
    const double peak_x[2] = {sqrt(3.0), sqrt(3.0)};
    const double peak_y[2] = {0.0, 3.0 / exp(1.0)};
    tsr_figure_layer(&f, TSR_LAYER_DASHES,
                     "\xe2\x88\x9a"
                     "3: globular",
                     "#444444", 2, peak_x, peak_y, NULL);
    panel->y0 = -0.1;
    panel->y1 = highest;
    return f;
}

static tsr_status guinier(tsr_report *r, data_set *d, tsr_err *err)
{
    const double b = isfinite(d->background) ? d->background : 0.0;
    TSR_TRY(tsr_guinier_fit(d->n, d->q, d->intensity, d->sigma, b, d->rg,
                            &d->guinier, err));
    if (!isfinite(d->guinier.rg)) {
        tsr_page_words(r->page,
                       "Guinier and Kratky plots are left out: fewer than 5 "
                       "points lie where Guinier's law holds.");
        return TSR_OK;
    }
    tsr_page_columns(r->page);
    tsr_status status = tsr_page_figure(r->page, guinier_figure(d), err);
    TSR_THEN(status, tsr_page_figure(r->page, kratky_figure(d), err));
    tsr_page_columns_end(r->page);
    const tsr_summary_item *rg = tsr_summary_find(r->diagnosis->summary, "rg");
    tsr_page_words(r->page,
                   "Both are of the data less the posterior's mean background "
                   "b. The Guinier fit over %d points (q&nbsp;Rg from %.2f to "
                   "1.3) gives Rg&nbsp;= %.1f&nbsp;&Aring;; it sees the water "
                   "around the molecule. The draws have Rg&nbsp;= "
                   "%.1f&nbsp;&Aring; (5 to 95&nbsp;%%: %.1f to %.1f), of the "
                   "molecule's mass alone. In the Kratky plot a compact "
                   "molecule peaks at q&nbsp;Rg&nbsp;= &radic;3 with 1.1, a "
                   "chain without fold rises to a plateau, and domains on a "
                   "flexible linker lie between.",
                   d->guinier.n, d->guinier.q[0] * d->guinier.rg, d->guinier.rg,
                   rg != NULL ? rg->value.mean : (double)NAN,
                   rg != NULL ? rg->value.q5 : (double)NAN,
                   rg != NULL ? rg->value.q95 : (double)NAN);
    return status;
}

/* What the run knew of the error of its own curves. */
static void model_error_words(tsr_report *r)
{
    char *text = tsr_trace_attribute_text(r->trace, "model_error");
    if (text != NULL && strcmp(text, "none") != 0) {
        fputs("<p>The model's own error: ", tsr_page_html(r->page));
        tsr_page_text(r->page, text);
        fputs(".</p>\n", tsr_page_html(r->page));
    }
    free(text);
}

static void heading(tsr_report *r, int i)
{
    fprintf(tsr_page_html(r->page), "<h3>Data set %d", i + 1);
    const char *name = tsr_report_data_name(r, tsr_term_of_curves(), i);
    if (name != NULL) {
        fputs(": ", tsr_page_html(r->page));
        tsr_page_text(r->page, name);
    }
    fputs("</h3>\n", tsr_page_html(r->page));
}

tsr_status tsr_report_fit(tsr_report *report, tsr_err *err)
{
    tsr_status status = TSR_OK;
    if (report->diagnosis->n_curve > 0)
        tsr_page_section(report->page, "fit", "Fit");
    for (int i = 0; i < report->diagnosis->n_curve && status == TSR_OK; i++) {
        data_set d;
        int is_there;
        status = get_data(report, i + 1, &d, &is_there, err);
        if (status == TSR_OK && is_there) {
            if (report->diagnosis->n_curve > 1)
                heading(report, i);
            status = get_replicates(report, &d, err);
            TSR_THEN(status,
                     tsr_page_figure(report->page, fit_figure(&d), err));
            if (status == TSR_OK) {
                fit_words(report, &d);
                status = guinier(report, &d, err);
            }
        }
        free(d.block);
    }
    if (status == TSR_OK && report->diagnosis->n_curve > 0)
        model_error_words(report);
    return status;
}
