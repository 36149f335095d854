/* The fit of every data set: model curves over the data, residuals, a table as
 * in SAXS data banks, and, where the low-q points allow, Guinier and
 * dimensionless Kratky plots, which show size and compactness. */
#include "report/report.h"

#include "core/text.h"
#include "scattering/guinier.h"
#include "scattering/profile_fit.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* One data set, and the model curves at its points: those of the posterior, or
 * without a run that of the starting structure. */
typedef struct {
    int number; /* 1, 2, ... */
    int n; /* number of points shown: all (of.n), or a subset where there are
              very many draws */
    double *q;                 /* [n] 1/Angstrom */
    double *intensity, *sigma; /* [n] */
    double *mean, *low, *high; /* [n] model curve: mean, 5 and 95 % */
    /* [n] replicated data: 5 and 95 % */
    double *replicate_low, *replicate_high;
    double *start; /* [n] curve of the starting structure */
    double *scratch, *scratch2, *scratch3; /* [n] */
    double background;    /* posterior mean or fitted background; 0: none */
    char suffix[16];      /* "", "_2" */
    tsr_verdict_curve of; /* rigid.n_point 0: no curve of the start */
} data_set;

/* The number of data sets. */
static int count_sets(const tsr_report *r)
{
    return r->trace != NULL ? r->diagnosis->n_curve : r->options->n_rigid;
}

/* Copies a vector without draws into `to` [n]. Returns 0 where the trace lacks
 * it. */
static int read_vector(tsr_trace_reader *trace, tsr_trace_group group,
                       const char *name, const char *suffix, int n, double *to)
{
    char full[64];
    int n_chain, n_draw, n_found;
    double *value = NULL;
    snprintf(full, sizeof full, "%s%s", name, suffix);
    int is_found = tsr_trace_get(trace, group, full, &n_chain, &n_draw,
                                 &n_found, &value, NULL) == TSR_OK &&
                   n_found == n;
    if (is_found)
        memcpy(to, value, (size_t)n * sizeof *to);
    free(value);
    return is_found;
}

static double mean_of(const tsr_report *r, const char *name, const char *suffix)
{
    char full[64];
    snprintf(full, sizeof full, "%s%s", name, suffix);
    const tsr_summary_item *item =
        tsr_summary_find(r->diagnosis->summary, full);
    return item != NULL && isfinite(item->value.mean) ? item->value.mean : 0.0;
}

/* The summary of the model curve of a data set over the draws; NULL: none. */
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

static void copy_summary(const tsr_curve_summary *from, double *mean,
                         double *low, double *high)
{
    for (int k = 0; k < from->n; k++) {
        if (mean != NULL)
            mean[k] = from->point[k].mean;
        low[k] = from->point[k].q5;
        high[k] = from->point[k].q95;
    }
}

/* The data set of a report without a run: data, and fit of the starting
 * structure. */
static tsr_status read_rigid(const tsr_report *r, data_set *d, tsr_err *err)
{
    const tsr_report_rigid_fit *from = &r->options->rigid[d->number - 1];
    const size_t size = (size_t)d->n * sizeof *d->q;
    memcpy(d->q, from->saxs->q, size);
    memcpy(d->intensity, from->saxs->intensity, size);
    memcpy(d->sigma, from->saxs->sigma, size);
    memcpy(d->mean, from->curve, size);
    d->background = from->fit->background;
    snprintf(d->of.name, sizeof d->of.name, "%s",
             tsr_text_file_name(from->saxs->path));
    d->of.chi2 = from->fit->chi2;
    d->of.cormap_p = from->fit->cormap_p;
    d->of.noise = tsr_saxs_noise_make(d->n, d->q, d->intensity, d->sigma);
    d->of.guinier_draws.mean = from->rg_guinier;
    return tsr_guinier_fit(d->n, d->q, d->intensity, d->sigma, d->background,
                           from->rg, &d->of.guinier, err);
}

/* Reads data set `number`. *is_found 0: the trace lacks the data set or a part
 * of it. Where curves are summarised at a subset of the points, the data are
 * reduced to this subset. */
static tsr_status read_data(tsr_report *r, int number, data_set *d,
                            int *is_found, tsr_err *err)
{
    enum { N_ARRAY = 12 };
    const tsr_verdict *v = r->options->verdict;
    const double none = (double)NAN;
    *is_found = 0;
    *d = (data_set){
        .number = number,
        .of = {.guinier_draws = {.q5 = none}, .noise_scale = {.mean = none}}};
    if (number > 1)
        snprintf(d->suffix, sizeof d->suffix, "_%d", number);
    const tsr_curve_summary *curve = v != NULL ? curve_of(r, d->suffix) : NULL;
    if (v != NULL && (curve == NULL || number > v->n_curve))
        return TSR_OK;
    if (v != NULL)
        d->of = v->curve[number - 1];
    else
        d->of.n = r->options->rigid[number - 1].saxs->n;
    d->n = curve != NULL ? curve->n : d->of.n;
    const size_t full = (size_t)d->of.n;
    double **array[N_ARRAY] = {
        &d->q,     &d->intensity, &d->sigma,         &d->mean,
        &d->low,   &d->high,      &d->replicate_low, &d->replicate_high,
        &d->start, &d->scratch,   &d->scratch2,      &d->scratch3};
    for (size_t i = 0; i < N_ARRAY; i++)
        tsr_pool_array(&r->pool, *array[i], full);
    TSR_TRY(tsr_pool_check(&r->pool, err));
    *is_found = 1;
    if (curve == NULL)
        return read_rigid(r, d, err);
    *is_found = read_vector(r->trace, TSR_TRACE_OBSERVED_DATA, "intensity",
                            d->suffix, d->of.n, d->intensity) &&
                read_vector(r->trace, TSR_TRACE_CONSTANT_DATA, "sigma",
                            d->suffix, d->of.n, d->sigma);
    if (!read_vector(r->trace, TSR_TRACE_CONSTANT_DATA, "rigid", d->suffix,
                     d->of.n, d->start))
        d->of.rigid.n_point = 0;
    for (int k = 0; k < d->n; k++) { /* in place, since at[k] >= k */
        d->q[k] = curve->q[k];
        d->intensity[k] = d->intensity[curve->at[k]];
        d->sigma[k] = d->sigma[curve->at[k]];
        d->start[k] = d->start[curve->at[k]];
    }
    copy_summary(curve, d->mean, d->low, d->high);
    d->background = mean_of(r, "background", d->suffix);
    return TSR_OK;
}

/* Reads the band of replicated data. It stays NaN where the trace lacks
 * replicates. */
static tsr_status read_replicates(tsr_report *r, data_set *d, tsr_err *err)
{
    char name[64];
    tsr_curve_summary *replicates = NULL;
    tsr_err local;
    int n_chain, n_draw, n;
    snprintf(name, sizeof name, "intensity%s", d->suffix);
    for (int k = 0; k < d->n; k++)
        d->replicate_low[k] = d->replicate_high[k] = (double)NAN;
    if (tsr_trace_shape(r->trace, TSR_TRACE_POSTERIOR_PREDICTIVE, name,
                        &n_chain, &n_draw, &n, NULL) != TSR_OK)
        return TSR_OK;
    tsr_status status = tsr_curve_summary_make(
        r->trace, name, (double)n_chain * n_draw * d->n, &replicates, &local);
    if (status == TSR_OK && replicates->n == d->n)
        copy_summary(replicates, NULL, d->replicate_low, d->replicate_high);
    tsr_curve_summary_free(replicates);
    return status == TSR_E_NOMEM ? tsr_fail(err, status, "%s", local.message)
                                 : TSR_OK;
}

/* ---- fit and residuals ---- */

static tsr_figure fit_figure(const tsr_report *r, data_set *d)
{
    char name[32], title[128] = "Data and fit";
    const int is_run = r->trace != NULL;
    snprintf(name, sizeof name, "fit%s", d->suffix);
    if (count_sets(r) > 1)
        snprintf(title, sizeof title, "%d: %s", d->number, d->of.name);
    tsr_figure f = tsr_figure_new(name, title, "q (1/\xc3\x85)", 700);
    const tsr_fit_figure fit = {
        .n = d->n,
        .q = d->q,
        .intensity = d->intensity,
        .sigma = d->sigma,
        .model = d->mean,
        .model_label = is_run ? "mean curve" : "rigid model",
        .residual_title =
            is_run ? "(I \xe2\x88\x92 mean) / \xcf\x83" : "residual / \xcf\x83",
        .start = d->of.rigid.n_point > 0 ? d->start : NULL,
        .start_label = "starting structure",
        .low = is_run ? d->low : NULL,
        .high = is_run ? d->high : NULL,
        .replicate_low = is_run ? d->replicate_low : NULL,
        .replicate_high = is_run ? d->replicate_high : NULL};
    tsr_fit_figure_add(&f, &fit, 340);
    return f;
}

/* ---- Guinier and Kratky ---- */

/* Guinier plot: ln(I - b) against q^2, somewhat beyond the range of Guinier's
 * law. */
static tsr_figure guinier_figure(data_set *d)
{
    char name[32];
    const double b = d->background;
    const double end = 2.0 / d->of.guinier.rg, limit = 1.3 / d->of.guinier.rg;
    int n = 0;
    snprintf(name, sizeof name, "guinier%s", d->suffix);
    tsr_figure f = tsr_figure_new(name, "Guinier plot",
                                  "q\xc2\xb2 (1/\xc3\x85\xc2\xb2)", 300);
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
    tsr_figure_layer(&f, TSR_LAYER_LINE, "model", TSR_COLOUR_MODEL, n, x, curve,
                     NULL);
    const double rg = d->of.guinier.rg, i0 = log(d->of.guinier.i0);
    const double lx[2] = {0.0, limit * limit};
    const double ly[2] = {i0, i0 - rg * rg * lx[1] / 3.0};
    tsr_figure_layer(&f, TSR_LAYER_DASHES, "Guinier's law", "#444444", 2, lx,
                     ly, NULL);
    return f;
}

/* Dimensionless Kratky plot: (q Rg)^2 I / I(0) against q Rg (Durand et al.
 * 2010, J. Struct. Biol. 169, 45). */
static tsr_figure kratky_figure(data_set *d)
{
    char name[32];
    const double b = d->background;
    snprintf(name, sizeof name, "kratky%s", d->suffix);
    tsr_figure f =
        tsr_figure_new(name, "Dimensionless Kratky plot", "q Rg", 300);
    tsr_panel *panel = tsr_figure_panel(
        &f, "(q Rg)\xc2\xb2 (I \xe2\x88\x92 b) / I(0)", 0, 260);
    double *x = d->scratch, *y = d->scratch2, *curve = d->scratch3;
    double highest = 1.2;
    for (int k = 0; k < d->n; k++) {
        x[k] = d->q[k] * d->of.guinier.rg;
        const double factor = x[k] * x[k] / d->of.guinier.i0;
        y[k] = factor * (d->intensity[k] - b);
        curve[k] = factor * (d->mean[k] - b);
        highest = fmax(highest, 1.3 * curve[k]);
    }
    tsr_figure_layer(&f, TSR_LAYER_POINTS, "measured", TSR_COLOUR_DATA, d->n, x,
                     y, NULL);
    tsr_figure_layer(&f, TSR_LAYER_LINE, "model", TSR_COLOUR_MODEL, d->n, x,
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

static tsr_status add_plots(tsr_report *r, data_set *d, tsr_err *err)
{
    if (!isfinite(d->of.guinier.rg)) {
        tsr_page_words(r->page,
                       "No Guinier and Kratky plots: fewer than 5 points lie "
                       "within the range of Guinier's law.");
        return TSR_OK;
    }
    tsr_status status = tsr_page_figure(r->page, guinier_figure(d), err);
    TSR_THEN(status, tsr_page_figure(r->page, kratky_figure(d), err));
    return status;
}

/* ---- the table of a data set, as in SAXS data banks ---- */

/* Columns: data, model and, after a run, the starting structure. */
static void add_rows(tsr_report *r, data_set *d)
{
    static const char *const bound[] = {" (lower bound)", "", " (upper bound)"};
    const tsr_verdict_curve *c = &d->of;
    const tsr_guinier *g = &c->guinier;
    const tsr_profile_fit *start = c->rigid.n_point > 0 ? &c->rigid : NULL;
    const double none = (double)NAN;
    const tsr_convergence mass[2] = {
        {.mean = 1e-3 *
                 tsr_guinier_mass(g, d->n, d->q, d->intensity, d->background),
         .q5 = none},
        {.mean = 1e-3 * r->options->mass, .q5 = none}};
    tsr_page *page = r->page;
    char text[64], other[64], chi2[32] = "", p[48] = "", start_p[48] = "";
    int n_inside = 0, n_band = 0;
    tsr_page_row(page, "points\t%d", c->n);
    tsr_page_row(page, "q (1/&Aring;)\t%.4f to %.4f", d->q[0], d->q[d->n - 1]);
    if (g->n > 0) {
        tsr_page_row(page, "Rg, Guinier (&Aring;)\t%.2f &plusmn; %.2f\t%s",
                     g->rg, g->error,
                     tsr_report_interval(&c->guinier_draws, text));
        tsr_page_row(page, "I(0), Guinier\t%.4g", g->i0);
        tsr_page_row(page, "q Rg, Guinier\t%.2f to %.2f, %d points",
                     g->q[0] * g->rg, g->q[1] * g->rg, g->n);
    }
    tsr_page_row(page, "Rg, P(r) (&Aring;)\t&ndash;\t%s",
                 tsr_report_interval(&r->rg, text));
    tsr_page_row(page, "D<sub>max</sub>, P(r) (&Aring;)\t&ndash;\t%s",
                 tsr_report_interval(&r->d_max, text));
    tsr_page_row(page, "mass (kDa)\t%s\t%s",
                 tsr_report_interval(&mass[0], text),
                 tsr_report_interval(&mass[1], other));
    if (start != NULL) {
        snprintf(chi2, sizeof chi2, "%.2f", start->chi2);
        (void)tsr_cormap_text("", start->cormap_p, start_p);
    }
    tsr_page_row(page, "&chi;&sup2;/N\t\t%.2f\t%s", c->chi2, chi2);
    tsr_page_row(page, "p, CorMap\t\t%s\t%s",
                 tsr_cormap_text("", c->cormap_p, p), start_p);
    if (start != NULL)
        tsr_page_row(page, "c1, c2\t\t\t%.3f%s, %.2f%s", start->c1,
                     bound[start->c1_at + 1], start->c2,
                     bound[start->c2_at + 1]);
    for (int k = 0; r->trace != NULL && k < d->n; k++) {
        n_band += !isnan(d->replicate_low[k]);
        n_inside += d->intensity[k] >= d->replicate_low[k] &&
                    d->intensity[k] <= d->replicate_high[k];
    }
    if (n_band > 0)
        tsr_page_row(page, "points within the 90&nbsp;%% band\t\t%.0f&nbsp;%%",
                     100.0 * n_inside / n_band);
    if (isfinite(c->noise.next))
        tsr_page_row(page, "noise from neighbouring points (&sigma;)\t%.2f",
                     c->noise.next);
    if (isfinite(c->noise_scale.mean))
        tsr_page_row(page, "error scale (residuals / &sigma;)\t\t%s",
                     tsr_report_interval(&c->noise_scale, text));
}

static void add_numbers(tsr_report *r, data_set *d)
{
    FILE *out = tsr_page_html(r->page);
    char *error = r->trace != NULL
                      ? tsr_trace_attribute_text(r->trace, "model_error")
                      : NULL;
    fputs("<div>", out);
    tsr_page_table(r->page, "data",
                   r->trace != NULL ? "\tdata\tmodel\tstarting<br>structure"
                                    : "\tdata\tmodel");
    add_rows(r, d);
    tsr_page_table_end(r->page);
    fputs("<details><summary>About these numbers</summary>\n", out);
    tsr_page_words(
        r->page,
        "P(r) is computed from the mass distribution of the model; the data "
        "are not transformed. The Guinier fit (q&nbsp;Rg up to 1.3) and the "
        "plots use the data less the background and include the hydration "
        "layer. Mass of the data: from the volume of correlation, for "
        "proteins, accurate to about 20&nbsp;%% (Rambo &amp; Tainer 2013); of "
        "the model: sum of its atoms. Starting structure: the rigid "
        "input, computed with the same forward model. In brackets: central "
        "90&nbsp;%% of the draws.");
    tsr_page_words(r->page, "Kratky plot: a globular particle has a maximum of "
                            "1.1 at q&nbsp;Rg&nbsp;= &radic;3, an unfolded "
                            "chain rises to a plateau, and domains connected "
                            "by a flexible linker lie in between.");
    if (error != NULL && strcmp(error, "none") != 0)
        tsr_page_paragraph(r->page, "", "Model error: ", error);
    fputs("</details></div>\n", out);
    free(error);
}

/* Adds the fit to the first screen, and the table and plots below it. */
static tsr_status add_data_set(tsr_report *r, data_set *d, tsr_err *err)
{
    tsr_status status = TSR_OK;
    if (r->trace != NULL)
        status = read_replicates(r, d, err);
    tsr_page_use_first_screen(r->page, 1);
    TSR_THEN(status, tsr_page_figure(r->page, fit_figure(r, d), err));
    tsr_page_use_first_screen(r->page, 0);
    TSR_TRY(status);
    if (count_sets(r) > 1) {
        fprintf(tsr_page_html(r->page), "<h3>Data set %d: ", d->number);
        tsr_page_text(r->page, d->of.name);
        fputs("</h3>\n", tsr_page_html(r->page));
    }
    tsr_page_columns(r->page);
    add_numbers(r, d);
    status = add_plots(r, d, err);
    tsr_page_columns_end(r->page);
    return status;
}

tsr_status tsr_report_fit(tsr_report *report, tsr_err *err)
{
    const int n = count_sets(report);
    tsr_status status = TSR_OK;
    if (n == 0)
        return TSR_OK;
    tsr_page_column(report->page);
    tsr_page_section(report->page, "fit", "Fit");
    if (n > 1)
        tsr_page_choice(report->page, "fits", "Data set");
    tsr_page_use_first_screen(report->page, 0);
    tsr_page_section(report->page, "data", "Data");
    for (int i = 0; i < n && status == TSR_OK; i++) {
        data_set d;
        int is_found;
        status = read_data(report, i + 1, &d, &is_found, err);
        if (status == TSR_OK && is_found)
            status = add_data_set(report, &d, err);
    }
    tsr_page_use_first_screen(report->page, 1);
    if (n > 1)
        tsr_page_choice_end(report->page);
    fputs("<details><summary>About this figure</summary>\n",
          tsr_page_html(report->page));
    tsr_page_words(
        report->page,
        report->trace != NULL
            ? "Points: measured curve with errors. Line and narrow band: mean "
              "and central 90&nbsp;%% of the curves of the draws. Wide band: "
              "interval for 90&nbsp;%% of new measurements. Dashed: best fit "
              "of the rigid starting structure with the same forward model. "
              "Drag along q to zoom, double-click to reset."
            : "Points: measured curve with errors. Line: fit of the rigid "
              "starting structure. Drag along q to zoom, double-click to "
              "reset.");
    fputs("</details>\n", tsr_page_html(report->page));
    tsr_page_use_first_screen(report->page, 0);
    return status;
}
