/* What was measured beside curves: a section for each kind of likelihood term
 * that the trace has data of.
 *
 * All comes from the trace, where every kind stores alike: the measured values
 * and their standard deviations, what each draw expects, and replicates of the
 * data. So a new kind of term is shown without a line here. Where a measurement
 * is a single number, the draws' values are drawn as a density beside it, which
 * tells at a glance whether the structures meet it; where it has several points
 * they are drawn over its axis. Scattering curves have their own section
 * (report_fit.c); kinds that say that they are density maps are shown by
 * report_map.c. */
#include "report/report_sections.h"

#include "likelihood/term.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { NAME = 64 };

/* A measurement of a kind, and what the draws say of it. */
typedef struct {
    const tsr_term_type *type;
    int ordinal; /* among those of its kind, from 0 */
    int n_point;
    double *observed, *sigma; /* [n_point] */
    char mean_name[NAME];     /* posterior_predictive's variable */
    tsr_curve_summary *mean;  /* what is expected */
    tsr_curve_summary *seen;  /* replicates of the data */
} measurement;

static void clear(measurement *m)
{
    free(m->observed);
    free(m->sigma);
    tsr_curve_summary_free(m->mean);
    tsr_curve_summary_free(m->seen);
}

static void name_of(const measurement *m, const char *what, char name[NAME])
{
    tsr_term_variable(m->type, m->ordinal, what, NAME, name);
}

static int is_in(tsr_trace_reader *trace, tsr_trace_group group,
                 const char *name)
{
    const char *const *there;
    const int n = tsr_trace_variables(trace, group, &there);
    for (int i = 0; i < n; i++)
        if (strcmp(there[i], name) == 0)
            return 1;
    return 0;
}

static tsr_status get_data(const tsr_report *r, measurement *m, tsr_err *err)
{
    char name[NAME];
    int one, n_sigma = 0;
    name_of(m, m->type->observable, name);
    tsr_status status =
        tsr_trace_get(r->trace, TSR_TRACE_OBSERVED_DATA, name, &one, &one,
                      &m->n_point, &m->observed, err);
    name_of(m, "sigma", name);
    TSR_THEN(status, tsr_trace_get(r->trace, TSR_TRACE_CONSTANT_DATA, name,
                                   &one, &one, &n_sigma, &m->sigma, err));
    if (status == TSR_OK && n_sigma != m->n_point)
        status = tsr_fail(err, TSR_E_DATA, "%s: %d numbers of %d", name,
                          n_sigma, m->n_point);
    return status;
}

/* Reads a measurement; *is_there 0 where the trace has none of that ordinal, or
 * no draws of it. */
static tsr_status take(const tsr_report *r, measurement *m, int *is_there,
                       tsr_err *err)
{
    const double most = 2e7; /* numbers that are sorted: some seconds */
    char name[NAME], plain[NAME];
    snprintf(plain, sizeof plain, "%s_mean", m->type->observable);
    name_of(m, plain, m->mean_name);
    name_of(m, m->type->observable, name);
    *is_there = is_in(r->trace, TSR_TRACE_OBSERVED_DATA, name) &&
                is_in(r->trace, TSR_TRACE_POSTERIOR_PREDICTIVE, m->mean_name) &&
                is_in(r->trace, TSR_TRACE_POSTERIOR_PREDICTIVE, name) &&
                tsr_trace_n_draw(r->trace, TSR_TRACE_POSTERIOR_PREDICTIVE) > 0;
    if (!*is_there)
        return TSR_OK;
    TSR_TRY(get_data(r, m, err));
    TSR_TRY(
        tsr_curve_summary_make(r->trace, m->mean_name, most, &m->mean, err));
    return tsr_curve_summary_make(r->trace, name, most, &m->seen, err);
}

/* ---- one number: a row of the table, and a density ---- */

static void table_begin(tsr_report *r)
{
    tsr_page_words(r->page,
                   "What was measured, with its standard deviation, and what "
                   "the draws expect. <i>Off by</i> is how far their mean lies "
                   "from the measured one, in these standard deviations. Of "
                   "new measurements 90&nbsp;%% would fall into <i>new "
                   "data</i>.");
    fputs("<table class=\"tight\"><tr><th></th><th>unit</th><th>measured</th>"
          "<th>sd</th><th>draws, mean</th><th>sd</th><th>5&nbsp;%</th>"
          "<th>95&nbsp;%</th><th>off by</th><th>new data, 5&nbsp;%</th>"
          "<th>95&nbsp;%</th></tr>\n",
          tsr_page_html(r->page));
}

/* "2: A:17, A:203", as far as it is known. */
static void label(const tsr_report *r, const measurement *m, char text[NAME])
{
    const char *known = tsr_report_data_name(r, m->type, m->ordinal);
    snprintf(text, NAME, "%d%s%.40s", m->ordinal + 1,
             known != NULL && *known != '\0' ? ": " : "",
             known != NULL ? known : "");
}

static void table_row(tsr_report *r, const measurement *m)
{
    FILE *out = tsr_page_html(r->page);
    const tsr_convergence *v = &m->mean->point[0], *seen = &m->seen->point[0];
    const double number[] = {m->observed[0],
                             m->sigma[0],
                             v->mean,
                             v->sd,
                             v->q5,
                             v->q95,
                             (v->mean - m->observed[0]) / m->sigma[0],
                             seen->q5,
                             seen->q95};
    char name[NAME];
    label(r, m, name);
    fputs("<tr><td>", out);
    tsr_page_text(r->page, name);
    fputs("</td><td>", out);
    if (m->type->observable_unit != NULL)
        tsr_page_text(r->page, m->type->observable_unit);
    fputs("</td>", out);
    for (size_t i = 0; i < sizeof number / sizeof *number; i++)
        if (isfinite(number[i]))
            fprintf(out, "<td>%.4g</td>", number[i]);
        else
            fputs("<td>&ndash;</td>", out);
    fputs("</tr>\n", out);
}

/* "distance-2", the file of the figure. */
static tsr_figure new_figure(const tsr_report *r, const measurement *m,
                             const char *x_title, int width)
{
    char name[NAME], title[2 * NAME], text[NAME];
    snprintf(name, sizeof name, "%.40s-%d", m->type->name, m->ordinal + 1);
    label(r, m, text);
    snprintf(title, sizeof title, "%.50s %s", m->type->observable, text);
    return tsr_figure_new(name, title, x_title, width);
}

static void with_unit(const char *what, const char *unit, char text[NAME])
{
    snprintf(text, NAME, "%.30s%s%.20s%s", what, unit != NULL ? " (" : "",
             unit != NULL ? unit : "", unit != NULL ? ")" : "");
}

/* The draws' density, over the measured mean and its standard deviation. */
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
        return TSR_OK; /* it does not vary: the table says all */
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

/* The measured points with their errors, and the draws' mean and middle 90 %.
 * Of very many points some are drawn. */
static tsr_status axis_figure(tsr_report *r, const measurement *m, tsr_err *err)
{
    const tsr_curve_summary *c = m->mean;
    const size_t n = (size_t)c->n;
    char x_title[NAME], y_title[NAME];
    double *block = calloc(6 * n + 1, sizeof *block);
    double *low = block, *high = low + n, *from = high + n, *to = from + n;
    double *data = to + n, *mean = data + n;
    TSR_TRY(tsr_allocated(block, err));
    for (size_t k = 0; k < n; k++) {
        const int at = c->at[k];
        data[k] = m->observed[at];
        from[k] = data[k] - m->sigma[at];
        to[k] = data[k] + m->sigma[at];
        mean[k] = c->point[k].mean;
        low[k] = c->point[k].q5;
        high[k] = c->point[k].q95;
    }
    with_unit(m->type->axis, m->type->axis_unit, x_title);
    with_unit(m->type->observable, m->type->observable_unit, y_title);
    tsr_figure f = new_figure(r, m, x_title, 700);
    tsr_figure_panel(&f, y_title, m->type->is_log, 300);
    tsr_figure_layer(&f, TSR_LAYER_ERRORS, NULL, TSR_COLOUR_ERROR, c->n, c->q,
                     from, to);
    tsr_figure_layer(&f, TSR_LAYER_POINTS, "measured", TSR_COLOUR_DATA, c->n,
                     c->q, data, NULL);
    tsr_figure_layer(&f, TSR_LAYER_BAND, "draws, 5 to 95 %", TSR_COLOUR_MODEL,
                     c->n, c->q, low, high)
        ->opacity = 0.35;
    tsr_figure_layer(&f, TSR_LAYER_LINE, "draws, mean", TSR_COLOUR_MODEL, c->n,
                     c->q, mean, NULL);
    free(block);
    return tsr_page_figure(r->page, f, err);
}

/* ---- a kind ---- */

typedef tsr_status visit(tsr_report *report, const measurement *m,
                         tsr_err *err);

/* All measurements of a kind in turn. *n out: how many there are. */
static tsr_status each(tsr_report *r, const tsr_term_type *type, visit *see,
                       int *n, tsr_err *err)
{
    tsr_status status = TSR_OK;
    int is_there = 1;
    for (*n = 0; status == TSR_OK; (*n)++) {
        measurement m = {.type = type, .ordinal = *n};
        status = take(r, &m, &is_there, err);
        if (status == TSR_OK && is_there)
            status = see(r, &m, err);
        clear(&m);
        if (!is_there)
            break;
    }
    return status;
}

static tsr_status see_row(tsr_report *r, const measurement *m, tsr_err *err)
{
    (void)err;
    if (m->n_point == 1)
        table_row(r, m);
    return TSR_OK;
}

static tsr_status see_figure(tsr_report *r, const measurement *m, tsr_err *err)
{
    return m->n_point == 1 ? density_figure(r, m, err) : axis_figure(r, m, err);
}

static tsr_status section(tsr_report *r, const tsr_term_type *type,
                          tsr_err *err)
{
    measurement first = {.type = type};
    int is_there, is_number, n;
    tsr_status status = take(r, &first, &is_there, err);
    is_number = first.n_point == 1;
    clear(&first);
    if (status != TSR_OK || !is_there)
        return status;
    tsr_page_section(r->page, type->name, type->title);
    if (type->map != NULL && r->options->n_map > 0)
        return tsr_report_maps(r, type, err);
    if (is_number) {
        table_begin(r);
        status = each(r, type, see_row, &n, err);
        fputs("</table>\n", tsr_page_html(r->page));
    }
    if (status != TSR_OK)
        return status;
    if (is_number)
        tsr_page_columns(r->page);
    status = each(r, type, see_figure, &n, err);
    if (is_number)
        tsr_page_columns_end(r->page);
    return status;
}

tsr_status tsr_report_terms(tsr_report *report, tsr_err *err)
{
    for (int k = 0; tsr_term_registry[k] != NULL; k++)
        if (!tsr_term_registry[k]->is_curve)
            TSR_TRY(section(report, tsr_term_registry[k], err));
    return TSR_OK;
}
