/* Statistics of the conformations: P(r), mobility, distances between residues,
 * motion of the domains, and their arrangements. The central draw of each
 * arrangement is also written as a file. */
#include "analysis/export.h"
#include "analysis/shape.h"
#include "files/file.h"
#include "report/report.h"

#include <gsl/gsl_sort.h>
#include <gsl/gsl_statistics_double.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

/* ---- domains ----
 *
 * Histograms of the distances and rotations between domains, and a CSV file of
 * the numbers of every conformation. */

static const double degree = 57.29577951308232;

/* Selects the values [n] that belong to one state, times `factor`, a change of
 * unit. to [n] out; returns their number. */
static int select_state(const tsr_report *r, int n, const double *value,
                        double factor, int state, double *to)
{
    int count = 0;
    for (int i = 0; i < n; i++)
        if (tsr_report_state(r, i) == state)
            to[count++] = factor * value[i];
    return count;
}

/* A histogram for each state, with mean and central 90 % in the label, and the
 * starting structure as a vertical line. value [n]; scratch [n]. */
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
        const size_t count =
            (size_t)select_state(r, n, value, factor, k, scratch);
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

static tsr_status add_domain_pair(tsr_report *r, const tsr_domains *d,
                                  const tsr_domain_pair *p, tsr_err *err)
{
    char name[64], title[64];
    double *scratch;
    tsr_pool_array(&r->pool, scratch, d->n);
    TSR_TRY(tsr_pool_check(&r->pool, err));
    tsr_page_columns(r->page);
    snprintf(name, sizeof name, "domains-%d-%d-distance", p->a + 1, p->b + 1);
    snprintf(title, sizeof title, "Domains %d and %d: distance", p->a + 1,
             p->b + 1);
    tsr_status status = tsr_page_figure(
        r->page,
        histogram(r, name, title, "distance of centres (\xc3\x85)", d->n,
                  p->distance, 1.0, p->start_ang, scratch),
        err);
    snprintf(name, sizeof name, "domains-%d-%d-turn", p->a + 1, p->b + 1);
    snprintf(title, sizeof title, "Domains %d and %d: rotation", p->a + 1,
             p->b + 1);
    TSR_THEN(status,
             tsr_page_figure(r->page,
                             histogram(r, name, title,
                                       "rotation from start (degrees)", d->n,
                                       p->turn, degree, 0.0, scratch),
                             err));
    tsr_page_columns_end(r->page);
    return status;
}

/* Distances and rotations between domains. */
static tsr_status domains_section(tsr_report *report, const tsr_domains *d,
                                  tsr_err *err)
{
    const tsr_model_atoms *model = tsr_frames_atoms(report->options->frames);
    tsr_page *page = report->page;
    if (d->n_pair > 0) {
        tsr_page_words(page,
                       "Domains: parts of %d residues or more that are rigid "
                       "in all draws. Distances are between the centres of "
                       "their C&alpha; atoms. Rotation: angle of the second "
                       "domain relative to the first, compared with the "
                       "starting structure, about any axis.",
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
        TSR_TRY(add_domain_pair(report, d, &d->pair[k], err));
    return TSR_OK;
}

/* ---- numbers of the conformations as CSV ---- */

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

/* Writes conformations.csv beside the figures: chain, draw, state, and domain
 * distances and rotations of every conformation. Errors: TSR_E_IO. */
static tsr_status write_conformations(tsr_report *report,
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

/* ---- P(r) and mobility ---- */

static tsr_figure pair_figure(const tsr_shape *s)
{
    double r[TSR_N_PAIR_BIN];
    tsr_figure f = tsr_figure_new("pair-distances", "P(r) of the draws",
                                  "r (\xc3\x85)", 560);
    for (int k = 0; k < TSR_N_PAIR_BIN; k++)
        r[k] = (k + 0.5) * s->pair_width;
    tsr_figure_panel(&f, "P(r) (1/\xc3\x85)", 0, 220);
    tsr_figure_layer(&f, TSR_LAYER_BAND, "5 to 95 % of the draws",
                     TSR_COLOUR_MODEL, TSR_N_PAIR_BIN, r, s->pair_low,
                     s->pair_high)
        ->opacity = 0.3;
    tsr_figure_layer(&f, TSR_LAYER_LINE, "mean", TSR_COLOUR_MODEL,
                     TSR_N_PAIR_BIN, r, s->pair_mean, NULL);
    return f;
}

/* Root mean square fluctuation of each residue over the draws of one state,
 * about their mean shape: rmsf [n_residue] out, Angstrom. */
static tsr_status compute_rmsf(tsr_report *r, int state, double *rmsf,
                               tsr_err *err)
{
    const tsr_shape *s = r->options->shape;
    const size_t n_residue = (size_t)s->n_residue;
    int n = 0, *at;
    double(*mean)[3];
    float *ca;
    tsr_pool_array(&r->pool, at, s->n);
    tsr_pool_array(&r->pool, mean, n_residue);
    TSR_TRY(tsr_pool_check(&r->pool, err));
    for (int i = 0; i < s->n; i++)
        if (tsr_report_state(r, i) == state)
            at[n++] = s->at[i];
    TSR_TRY(
        tsr_frames_gather_ca(r->options->frames, n, at, &r->pool, &ca, err));
    TSR_TRY(tsr_mean_shape_make(n, s->n_residue, ca, 0, NULL, NULL, mean, rmsf,
                                err));
    for (size_t i = 0; i < n_residue; i++)
        rmsf[i] = sqrt(rmsf[i]);
    return TSR_OK;
}

/* The mobility of the residues, a line for each state. */
static tsr_status add_mobility(tsr_report *r, tsr_err *err)
{
    const tsr_shape *s = r->options->shape;
    tsr_status status = TSR_OK;
    tsr_figure f = tsr_figure_new("mobility", "Mobility of residues",
                                  r->residue_title, 560);
    double *x, *of_state;
    tsr_pool_array(&f.pool, x, s->n_residue);
    tsr_pool_array(&f.pool, of_state, s->n_residue);
    status = tsr_pool_check(&f.pool, err);
    tsr_figure_panel(&f, "rms deviation (\xc3\x85)", 0, 180);
    for (int i = 0; status == TSR_OK && i < s->n_residue; i++)
        x[i] = r->first_residue + i;
    for (int k = 1; k <= r->n_state && status == TSR_OK; k++) {
        char label[32];
        double *rmsf = r->n_state > 1 ? of_state : s->rmsf;
        snprintf(label, sizeof label, "state %d", k);
        if (r->n_state > 1)
            status = compute_rmsf(r, k, rmsf, err);
        tsr_figure_layer(&f, TSR_LAYER_LINE, r->n_state > 1 ? label : NULL,
                         r->n_state > 1 ? tsr_report_chain_colour(k - 1)
                                        : TSR_COLOUR_DATA,
                         s->n_residue, x, rmsf, NULL);
    }
    if (status == TSR_OK)
        return tsr_page_figure(r->page, f, err);
    tsr_figure_clear(&f);
    return status;
}

/* ---- distances ---- */

/* The lower edge of row i, in residues counted from 0: halfway between the
 * residues of neighbouring rows. */
static double edge(int n, const int *at, int i)
{
    if (i <= 0)
        return at[0] - 0.5;
    if (i >= n)
        return at[n - 1] + 0.5;
    return 0.5 * (at[i - 1] + at[i]);
}

/* Distances between the rows. Steps between rows differ by at most one residue,
 * so cells are drawn with the mean step. value [n_row][n_row]. */
static tsr_figure map_figure(tsr_report *report, const char *name,
                             const char *title, const char *scale,
                             const double *value)
{
    const tsr_shape *s = report->options->shape;
    tsr_figure f = tsr_figure_new(name, title, "residue", 300);
    const double low = edge(s->n_row, s->row, 0);
    const double step = (edge(s->n_row, s->row, s->n_row) - low) / s->n_row;
    tsr_figure_panel(&f, "residue", 0, 300)->z_title = scale;
    tsr_figure_cells(&f, s->n_row, s->n_row, report->first_residue + low, step,
                     report->first_residue + low, step, value);
    return f;
}

/* ---- arrangements ---- */

/* Writes the central draw of an arrangement as mmCIF. */
static tsr_status write_central_draw(tsr_report *r, const tsr_arrangement *item,
                                     const char *path, tsr_err *err)
{
    int n_model;
    const tsr_draw_choice choice = {.n = 0};
    const tsr_export_options options = {.format = TSR_MODEL_CIF,
                                        .name = "arrangement",
                                        .state = -1,
                                        .pick = &item->frame,
                                        .n_pick = 1};
    tsr_file_writer to;
    tsr_status status = tsr_file_begin(&to, path, err);
    TSR_THEN(status, tsr_export_models(r->options->frames, &choice, &options,
                                       to.out, &n_model, err));
    return tsr_file_end(&to, status, err);
}

static tsr_status add_arrangements(tsr_report *r, tsr_err *err)
{
    enum { MOST = 32 * TSR_MOST_ARRANGEMENTS };
    const tsr_arrangements *a = r->options->diagnose.arrangements;
    const int n = a != NULL ? a->n : 0;
    char path[4096];
    for (int i = n; i < MOST; i++) { /* remove files of an earlier report */
        snprintf(path, sizeof path, "%s/arrangement-%d.cif", r->folder, i + 1);
        remove(path);
    }
    if (a == NULL)
        tsr_page_words(r->page, "Domain arrangements: one, because no two "
                                "domains move relative to each other.");
    else
        tsr_page_words(
            r->page,
            "Domain arrangements: draws are superposed on domain %d and "
            "clustered; draws of a cluster are less than %g &Aring; apart on "
            "average. <i>Spread</i>: root mean square distance from the "
            "central draw. The error of a share is that between groups of "
            "chains. <i>Interface</i>: residues within 10 &Aring; of a chain "
            "that moves against theirs, in half of the draws or more.",
            a->fixed + 1, a->threshold_ang);
    if (n == 0)
        return TSR_OK;
    tsr_page_table(r->page, "",
                   "arrangement\tshare\terror\tspread (&Aring;)\tcentral draw\t"
                   "file\tinterface");
    for (int i = 0; i < n; i++) {
        const tsr_arrangement *item = &a->item[i];
        char state[32] = "", interface[1024];
        snprintf(path, sizeof path, "%s/arrangement-%d.cif", r->folder, i + 1);
        tsr_domain_name(tsr_frames_atoms(r->options->frames), &item->contact,
                        sizeof interface, interface);
        TSR_TRY(write_central_draw(r, item, path, err));
        if (item->state > 0)
            snprintf(state, sizeof state, ", state %d", item->state);
        tsr_page_row(r->page,
                     "%d\t%.1f&nbsp;%%\t%s%s\t%.2f\tchain %d, draw %ld%s\t<a "
                     "href=\"report/arrangement-%d.cif\" download>"
                     "arrangement-%d.cif</a>\t%s",
                     i + 1, 100.0 * item->share,
                     tsr_page_number(r->page, 1, 100.0 * item->error),
                     isnan(item->error) ? "" : "&nbsp;%", item->spread,
                     item->chain, item->draw, state, i + 1, i + 1,
                     tsr_page_escape(r->page, interface));
    }
    tsr_page_table_end(r->page);
    return TSR_OK;
}

/* Chooses the residue numbers of axes. Where they are not those of the file, a
 * paragraph states which file numbers they correspond to. */
static void number_residues(tsr_report *report)
{
    const tsr_model_atoms *m = tsr_frames_atoms(report->options->frames);
    FILE *out = tsr_page_html(report->page);
    const int most = 30;
    int n_run = 0;
    for (int r = 0, start = 0; r < m->n_residue; r++) {
        const tsr_model_atom *a = &m->atom[m->ca[r]];
        const tsr_model_atom *from = &m->atom[m->ca[start]];
        const int is_last = r + 1 == m->n_residue;
        const tsr_model_atom *next = &m->atom[m->ca[is_last ? r : r + 1]];
        if (!is_last && next->chain == a->chain &&
            next->number == a->number + 1)
            continue;
        if (is_last && n_run == 0) {
            report->first_residue = from->number;
            snprintf(report->residue_title, sizeof report->residue_title,
                     "residue of chain %c", from->chain);
            return;
        }
        if (n_run == 0)
            fputs("<p>Residues are numbered from 1 over all chains: ", out);
        if (n_run < most) {
            char text[96];
            const char tail[2][2] = {{from->insertion, '\0'},
                                     {a->insertion, '\0'}};
            snprintf(text, sizeof text, "%s%d to %d are %c:%d%s to %c:%d%s",
                     n_run > 0 ? "; " : "", start + 1, r + 1, from->chain,
                     from->number, tail[0][0] == ' ' ? "" : tail[0], a->chain,
                     a->number, tail[1][0] == ' ' ? "" : tail[1]);
            tsr_page_text(report->page, text);
        }
        n_run++;
        start = r + 1;
    }
    fputs(n_run > most ? "; and so on.</p>\n" : ".</p>\n", out);
    report->first_residue = 1;
    snprintf(report->residue_title, sizeof report->residue_title,
             "residue, numbered from 1 over all chains");
}

tsr_status tsr_report_structure(tsr_report *report, tsr_err *err)
{
    const tsr_shape *s = report->options->shape;
    tsr_page *page = report->page;
    if (s == NULL) {
        if (report->options->no_frames != NULL) {
            tsr_page_section(page, "structure", "Structure");
            tsr_page_paragraph(page, "", "", report->options->no_frames);
        }
        return TSR_OK;
    }
    tsr_page_section(page, "structure", "Structure");
    tsr_page_words(page,
                   "Of %d stored conformation%s, %d %s analysed by their "
                   "C&alpha; atoms.",
                   s->n_frame, s->n_frame == 1 ? "" : "s", s->n,
                   s->n == 1 ? "was" : "were");
    if (report->n_state > 1)
        tsr_page_words(page,
                       "Each draw is an ensemble of %d states. P(r) is "
                       "weighted by the populations of the states. "
                       "Arrangements, mobility and domains are shown for each "
                       "state. Distance maps give every "
                       "conformation the same weight.",
                       report->n_state);
    number_residues(report);
    if (s->n < 2)
        tsr_page_words(page, "One conformation is too few for mobility, "
                             "standard deviations of distances, and domains.");
    tsr_status status = add_arrangements(report, err);
    tsr_page_columns(page);
    TSR_THEN(status, tsr_page_figure(page, pair_figure(s), err));
    if (status == TSR_OK && s->n > 1)
        status = add_mobility(report, err);
    TSR_THEN(status, tsr_page_figure(page,
                                     map_figure(report, "distance-mean",
                                                "Mean distances",
                                                "mean (\xc3\x85)", s->distance),
                                     err));
    if (status == TSR_OK && s->n > 1)
        status = tsr_page_figure(page,
                                 map_figure(report, "distance-sd",
                                            "Standard deviation of distances",
                                            "sd (\xc3\x85)", s->distance_sd),
                                 err);
    tsr_page_columns_end(page);
    tsr_page_words(
        page, "P(r): distances between all pairs of C&alpha; atoms.%s",
        s->n > 1
            ? " Mobility: root mean square distance of each residue from its "
              "mean position after superposition of all conformations; where "
              "domains move relative to each other, all of them appear mobile. "
              "Standard deviation: dark blocks are rigid, bright blocks "
              "between them are parts that move relative to each other."
            : "");
    TSR_THEN(status, domains_section(report, report->domains, err));
    TSR_THEN(status, write_conformations(report, report->domains, err));
    return status;
}
