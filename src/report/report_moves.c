/* What the trace counts by move and by temperature: which moves are accepted,
 * how much of the curve each makes the engine compute anew, and how replicas
 * travel. It is where to look when a run is slow. */
#include "report/report_sections.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* Means over all draws of a variable with a named axis; NaN are left out. */
static tsr_status entry_means(tsr_report *r, const char *name, int n,
                              double *mean, tsr_err *err)
{
    int n_chain, n_draw, n_there;
    double *value = NULL;
    tsr_status status = tsr_trace_get(r->trace, TSR_TRACE_SAMPLE_STATS, name,
                                      &n_chain, &n_draw, &n_there, &value, err);
    for (int k = 0; k < n && status == TSR_OK; k++) {
        double sum = 0.0;
        long count = 0;
        for (long i = 0; i < (long)n_chain * n_draw; i++)
            if (isfinite(value[i * n_there + k])) {
                sum += value[i * n_there + k];
                count++;
            }
        mean[k] = count > 0 ? sum / (double)count : (double)NAN;
    }
    free(value);
    return status;
}

/* A table of every such variable: a row an entry. */
static tsr_status named_axis(tsr_report *r, const char *name, tsr_err *err)
{
    int n_chain, n_draw, n, n_label = 0;
    char **label = NULL;
    FILE *out = tsr_page_html(r->page);
    if (tsr_trace_shape(r->trace, TSR_TRACE_SAMPLE_STATS, name, &n_chain,
                        &n_draw, &n, NULL) != TSR_OK ||
        n < 2 ||
        tsr_trace_labels(r->trace, TSR_TRACE_SAMPLE_STATS, name, &n_label,
                         &label, NULL) != TSR_OK ||
        label == NULL || n_label != n) {
        tsr_trace_labels_free(n_label, label);
        return TSR_OK;
    }
    double *mean = calloc((size_t)n, sizeof *mean);
    char *what = tsr_trace_variable_text(r->trace, TSR_TRACE_SAMPLE_STATS, name,
                                         "long_name");
    tsr_status status = tsr_allocated(mean, err);
    TSR_THEN(status, entry_means(r, name, n, mean, err));
    if (status == TSR_OK) {
        fputs("<table><tr><th>", out);
        tsr_page_text(r->page, name);
        fputs("</th><th>mean</th></tr>\n", out);
        for (int k = 0; k < n; k++) {
            fputs("<tr><td>", out);
            tsr_page_text(r->page, label[k]);
            if (isfinite(mean[k]))
                fprintf(out, "</td><td>%.4g</td></tr>\n", mean[k]);
            else
                fputs("</td><td>&ndash;</td></tr>\n", out);
        }
        fputs("</table>\n<p>", out);
        tsr_page_text(r->page, what != NULL ? what : name);
        fputs(", averaged over chains and draws.</p>\n", out);
    }
    free(mean);
    free(what);
    tsr_trace_labels_free(n_label, label);
    return status == TSR_E_NOMEM ? status : TSR_OK;
}

static tsr_status named_axes(tsr_report *r, tsr_err *err)
{
    const char *const *name;
    int n = tsr_trace_variables(r->trace, TSR_TRACE_SAMPLE_STATS, &name);
    for (int i = 0; i < n; i++)
        if (strstr(name[i], "_by_move") == NULL)
            TSR_TRY(named_axis(r, name[i], err));
    return TSR_OK;
}

/* ---- by move ---- */

enum { N_COUNTED = 2 };
static const struct {
    const char *name, *title;
} counted[N_COUNTED] = {{"acceptance_by_move", "accepted (%)"},
                        {"dirty_by_move", "distances changed (%)"}};

/* Bars side by side, over 0 .. n. */
static void add_bars(tsr_figure *f, const char *title, int n,
                     const double *value)
{
    tsr_panel *panel = tsr_figure_panel(f, title, 0, 170);
    double *x = calloc(3 * (size_t)n, sizeof *x);
    double *y = calloc(3 * (size_t)n, sizeof *y);
    double *foot = calloc(3 * (size_t)n, sizeof *foot), top = 0.0;
    for (int k = 0; x != NULL && y != NULL && foot != NULL && k < n; k++) {
        x[3 * k] = k + 0.2;
        x[3 * k + 1] = k + 0.8;
        x[3 * k + 2] = k + 1.0;
        y[3 * k] = y[3 * k + 1] = 100.0 * value[k];
        foot[3 * k + 2] = y[3 * k + 2] = (double)NAN; /* the gap */
        if (isfinite(value[k]))
            top = fmax(top, 100.0 * value[k]);
    }
    if (x != NULL && y != NULL && foot != NULL)
        tsr_figure_layer(f, TSR_LAYER_BAND, NULL, TSR_COLOUR_DATA, 3 * n, x,
                         foot, y);
    else
        f->is_short = 1;
    if (top > 0.0) {
        panel->y0 = 0.0;
        panel->y1 = 1.08 * top;
    }
    free(x);
    free(y);
    free(foot);
}

static void move_table(tsr_report *r, int n, char *const *label,
                       const double *mean, const int *is_there)
{
    FILE *out = tsr_page_html(r->page);
    fputs("<table><tr><th>move</th>", out);
    for (int w = 0; w < N_COUNTED; w++)
        if (is_there[w])
            fprintf(out, "<th>%s</th>", counted[w].title);
    fputs("</tr>\n", out);
    for (int k = 0; k < n; k++) {
        fputs("<tr><td>", out);
        tsr_page_text(r->page, label[k]);
        fputs("</td>", out);
        for (int w = 0; w < N_COUNTED; w++)
            if (is_there[w] && isfinite(mean[w * n + k]))
                fprintf(out, "<td>%.1f</td>", 100.0 * mean[w * n + k]);
            else if (is_there[w])
                fputs("<td>none made</td>", out);
        fputs("</tr>\n", out);
    }
    fputs("</table>\n", out);
}

/* Acceptance of each move, and how much of the work it asks the engine for. */
static tsr_status by_move(tsr_report *r, tsr_err *err)
{
    int n_chain, n_draw, n = 0, n_label = 0, is_there[N_COUNTED] = {0};
    char **label = NULL;
    double *mean = NULL;
    tsr_status status = TSR_OK;
    tsr_figure f = {.n_panel = 0};
    if (tsr_trace_shape(r->trace, TSR_TRACE_SAMPLE_STATS, counted[0].name,
                        &n_chain, &n_draw, &n, NULL) != TSR_OK ||
        tsr_trace_labels(r->trace, TSR_TRACE_SAMPLE_STATS, counted[0].name,
                         &n_label, &label, NULL) != TSR_OK ||
        label == NULL || n_label != n)
        goto done;
    mean = calloc(N_COUNTED * (size_t)n, sizeof *mean);
    f = tsr_figure_new("moves", "Moves", "move", 700);
    if (mean == NULL) {
        status = tsr_no_memory(err);
        goto done;
    }
    tsr_figure_names(&f, n, (const char *const *)label);
    for (int w = 0; w < N_COUNTED; w++) {
        int n_there;
        tsr_err local;
        is_there[w] =
            tsr_trace_shape(r->trace, TSR_TRACE_SAMPLE_STATS, counted[w].name,
                            &n_chain, &n_draw, &n_there, NULL) == TSR_OK &&
            n_there == n &&
            entry_means(r, counted[w].name, n, mean + w * n, &local) == TSR_OK;
        if (!is_there[w])
            continue;
        add_bars(&f, counted[w].title, n, mean + w * n);
    }
    if (f.n_panel == 0)
        goto done;
    status = tsr_page_figure(r->page, f, err);
    f = (tsr_figure){.n_panel = 0}; /* the page took it */
    if (status != TSR_OK)
        goto done;
    move_table(r, n, label, mean, is_there);
    tsr_page_words(r->page,
                   "By move, over all chains and draws: how many proposals "
                   "were accepted%s.",
                   is_there[1] ? ", and how many of the distances between "
                                 "bodies one of them makes dirty, which the "
                                 "engine then computes anew"
                               : "");
done:
    tsr_figure_clear(&f);
    free(mean);
    tsr_trace_labels_free(n_label, label);
    return status;
}

tsr_status tsr_report_moves(tsr_report *report, tsr_err *err)
{
    TSR_TRY(by_move(report, err));
    return named_axes(report, err);
}
