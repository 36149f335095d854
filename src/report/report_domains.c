/* Domains and how they lie to each other: histograms, and every
 * conformation's numbers for other programs. */
#include "report/report_sections.h"

#include "analysis/shape.h"
#include "files/file.h"

#include <gsl/gsl_sort.h>
#include <gsl/gsl_statistics_double.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

static const double degree = 57.29577951308232;

/* The numbers of the conformations of one state; to [d->n] out, returns how
 * many. factor: to the unit that is shown. */
static int of_state(const tsr_report *r, int n, const double *value,
                    double factor, int state, double *to)
{
    int count = 0;
    for (int i = 0; i < n; i++)
        if (tsr_report_state(r, i) == state)
            to[count++] = factor * value[i];
    return count;
}

/* A histogram of each state, with mean and middle 90 %, and the start as an
 * upright line. value [n];
 * scratch [n]. */
static tsr_figure histogram(const tsr_report *r, const char *name,
                            const char *title, const char *x_title, int n,
                            const double *value, double factor, double start,
                            double *scratch)
{
    double x[TSR_OUTLINE], y[TSR_OUTLINE], zero[TSR_OUTLINE] = {0.0};
    double top = 0.0;
    const tsr_summary_item *rg = tsr_summary_find(r->diagnosis->summary, "rg");
    const double ess = rg != NULL ? rg->value.ess_bulk : (double)NAN;
    tsr_figure f = tsr_figure_new(name, title, x_title, 300);
    tsr_figure_panel(&f, "density", 0, 160);
    for (int k = 1; k <= r->n_state; k++) {
        const int one = r->n_state == 1;
        const char *colour =
            one ? TSR_COLOUR_MODEL : tsr_report_chain_colour(k - 1);
        char label[64] = "";
        const size_t count = (size_t)of_state(r, n, value, factor, k, scratch);
        const int n_point =
            count > 0 ? tsr_report_outline(count, ess, scratch, x, y) : 0;
        for (int i = 0; i < n_point; i++)
            top = fmax(top, y[i]);
        if (!one)
            snprintf(label, sizeof label, "state %d: ", k);
        if (count > 0)
            snprintf(
                label + strlen(label), sizeof label - strlen(label),
                "%.1f [%.1f, %.1f]", gsl_stats_mean(scratch, 1, count),
                gsl_stats_quantile_from_sorted_data(scratch, 1, count, 0.05),
                gsl_stats_quantile_from_sorted_data(scratch, 1, count, 0.95));
        tsr_figure_layer(&f, TSR_LAYER_BAND, label, colour, n_point, x, zero, y)
            ->opacity = 0.3;
        tsr_figure_layer(&f, TSR_LAYER_LINE, NULL, colour, n_point, x, y, NULL);
    }
    const double at[2] = {start, start}, height[2] = {0.0, top};
    tsr_figure_layer(&f, TSR_LAYER_DASHES, "start", TSR_COLOUR_PRIOR, 2, at,
                     height, NULL);
    tsr_report_add_margin(&f);
    return f;
}

static tsr_status pair(tsr_report *r, const tsr_domains *d,
                       const tsr_domain_pair *p, tsr_err *err)
{
    char name[64], title[64];
    double *scratch = malloc((size_t)d->n * sizeof *scratch);
    TSR_TRY(tsr_allocated(scratch, err));
    tsr_page_columns(r->page);
    snprintf(name, sizeof name, "domains-%d-%d-distance", p->a + 1, p->b + 1);
    snprintf(title, sizeof title, "Domains %d and %d: distance", p->a + 1,
             p->b + 1);
    tsr_status status = tsr_page_figure(
        r->page,
        histogram(r, name, title, "between centres (\xc3\x85)", d->n,
                  p->distance, 1.0, p->start_ang, scratch),
        err);
    snprintf(name, sizeof name, "domains-%d-%d-turn", p->a + 1, p->b + 1);
    snprintf(title, sizeof title, "Domains %d and %d: turn", p->a + 1,
             p->b + 1);
    TSR_THEN(status,
             tsr_page_figure(r->page,
                             histogram(r, name, title,
                                       "turned since the start (degrees)", d->n,
                                       p->turn, degree, 0.0, scratch),
                             err));
    tsr_page_columns_end(r->page);
    free(scratch);
    return status;
}

tsr_status tsr_report_domains(tsr_report *report, const tsr_domains *d,
                              tsr_err *err)
{
    const tsr_model_atoms *model = tsr_frames_atoms(report->options->frames);
    tsr_page *page = report->page;
    if (d->n_pair > 0) {
        tsr_page_words(page,
                       "Domains: parts of %d residues or more that keep their "
                       "shape in all draws. Distances are between the centres "
                       "of their C&alpha; atoms; the turn is the angle by "
                       "which the second has rotated against the first since "
                       "the start, about whatever axis.",
                       (int)TSR_LEAST_DOMAIN);
        fputs("<p>", tsr_page_html(page));
        for (int k = 0; k < d->n_domain; k++) {
            char text[120];
            tsr_domain_name(model, &d->domain[k], sizeof text, text);
            fprintf(tsr_page_html(page), "%sdomain %d: ", k > 0 ? "; " : "",
                    k + 1);
            tsr_page_text(page, text);
        }
        fputs("</p>\n", tsr_page_html(page));
    }
    for (int k = 0; k < d->n_pair; k++)
        TSR_TRY(pair(report, d, &d->pair[k], err));
    return TSR_OK;
}

/* ---- the conformations, a line each ---- */

static void print_rows(const tsr_report *r, const tsr_domains *domains,
                       FILE *out)
{
    const tsr_shape *s = r->options->shape;
    const tsr_drawn_frame *frame;
    tsr_frames_list(r->options->frames, &frame);
    fputs("chain,draw,state", out);
    for (int k = 0; k < domains->n_pair; k++) {
        const int a = domains->pair[k].a + 1, b = domains->pair[k].b + 1;
        fprintf(out, ",distance_%d_%d_angstrom,turn_%d_%d_degree", a, b, a, b);
    }
    fputc('\n', out);
    for (int i = 0; i < s->n; i++) {
        const tsr_drawn_frame *f = &frame[s->at[i]];
        fprintf(out, "%d,%ld,%d", f->chain, f->draw,
                f->state > 0 ? f->state : 1);
        for (int k = 0; k < domains->n_pair; k++)
            fprintf(out, ",%.6g,%.6g", domains->pair[k].distance[i],
                    degree * domains->pair[k].turn[i]);
        fputc('\n', out);
    }
}

tsr_status tsr_report_conformations(tsr_report *report,
                                    const tsr_domains *domains, tsr_err *err)
{
    char path[4096];
    snprintf(path, sizeof path, "%s/conformations.csv", report->folder);
    tsr_file_writer to;
    tsr_status status = tsr_file_begin(&to, path, err);
    if (status == TSR_OK)
        print_rows(report, domains, to.out);
    return tsr_file_end(&to, status, err);
}
