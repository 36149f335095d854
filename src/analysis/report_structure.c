#include "analysis/report_sections.h"

#include "analysis/export.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* ---- lines ---- */

static tsr_figure *pair_figure(const tsr_shape *s)
{
    double r[TSR_N_PAIR_BIN];
    tsr_figure *f = tsr_figure_new("pair-distances", "P(r) of the draws",
                                   "r (\xc3\x85)", 700);
    if (f == NULL)
        return NULL;
    for (int k = 0; k < TSR_N_PAIR_BIN; k++)
        r[k] = (k + 0.5) * s->pair_width;
    tsr_figure_panel(f, "P(r) (1/\xc3\x85)", 0, 220);
    tsr_layer *band = tsr_figure_layer(
        f, TSR_LAYER_BAND, "5 to 95 % of the draws", TSR_COLOUR_MODEL,
        TSR_N_PAIR_BIN, r, s->pair_low, s->pair_high);
    if (band != NULL)
        band->opacity = 0.3;
    tsr_figure_layer(f, TSR_LAYER_LINE, "mean", TSR_COLOUR_MODEL,
                     TSR_N_PAIR_BIN, r, s->pair_mean, NULL);
    return f;
}

static tsr_figure *mobility_figure(const tsr_shape *s)
{
    tsr_figure *f =
        tsr_figure_new("mobility", "Mobility of the residues",
                       "residue, counted from 1 over all chains", 700);
    double *x = calloc((size_t)s->n_residue, sizeof *x);
    if (f != NULL && x != NULL) {
        for (int r = 0; r < s->n_residue; r++)
            x[r] = r + 1.0;
        tsr_figure_panel(f, "rms deviation (\xc3\x85)", 0, 180);
        tsr_figure_layer(f, TSR_LAYER_LINE, NULL, TSR_COLOUR_DATA, s->n_residue,
                         x, s->rmsf, NULL);
    } else {
        tsr_figure_free(f);
        f = NULL;
    }
    free(x);
    return f;
}

/* ---- maps ---- */

/* Edges of the rows: halfway between neighbours, as residue numbers from 1. */
static double edge(int n, const int *at, int i)
{
    if (i <= 0)
        return at[0] + 0.5;
    if (i >= n)
        return at[n - 1] + 1.5;
    return 0.5 * (at[i - 1] + at[i]) + 1.0;
}

/* Cells of columns across and rows up; value [n_x][n_y]. Unequal steps between
 * rows differ by one residue; the mean step is drawn. */
static void add_cells(tsr_figure *f, int n_x, double x0, double dx,
                      const tsr_shape *s, const double *value)
{
    const int n_y = s->n_row;
    const size_t n = (size_t)n_x * (size_t)n_y;
    double *x = malloc((n + 1) * sizeof *x), *y = malloc((n + 1) * sizeof *y);
    if (x == NULL || y == NULL) {
        f->is_short = 1;
    } else {
        const double low = edge(n_y, s->row, 0);
        const double dy = (edge(n_y, s->row, n_y) - low) / n_y;
        for (size_t i = 0; i < n; i++) {
            const size_t column = i / (size_t)n_y;
            x[i] = x0 + dx * (double)column;
            y[i] = low + dy * (double)(i - column * (size_t)n_y);
        }
        tsr_layer *cells = tsr_figure_layer(f, TSR_LAYER_CELLS, NULL, "#444444",
                                            (int)n, x, y, value);
        if (cells != NULL) {
            cells->dx = dx;
            cells->dy = dy;
        }
    }
    free(x);
    free(y);
}

static tsr_figure *map_figure(const tsr_shape *s, const char *name,
                              const char *title, const char *scale,
                              const double *value)
{
    tsr_figure *f = tsr_figure_new(name, title, "residue", 300);
    if (f == NULL)
        return NULL;
    const double low = edge(s->n_row, s->row, 0);
    const double step = (edge(s->n_row, s->row, s->n_row) - low) / s->n_row;
    tsr_figure_panel(f, "residue", 0, 300);
    add_cells(f, s->n_row, low, step, s, value);
    if (f->n_panel > 0)
        f->panel[0].z_title = strdup(scale);
    return f;
}

/* ---- the timeline ---- */

/* Draws across, residues up, and above them the trace of Rg. */
static tsr_figure *timeline_figure(const tsr_shape *s, const char *name,
                                   const char *title, const char *scale,
                                   const double *value)
{
    tsr_figure *f =
        tsr_figure_new(name, title, "conformation, chain after chain", 640);
    double *x = calloc((size_t)s->n_column, sizeof *x);
    if (f == NULL || x == NULL) {
        tsr_figure_free(f);
        free(x);
        return NULL;
    }
    const double dx = (double)s->n_frame / s->n_column;
    for (int c = 0; c < s->n_column; c++)
        x[c] = (c + 0.5) * dx;
    tsr_figure_panel(f, "Rg of CA (\xc3\x85)", 0, 90);
    tsr_figure_layer(f, TSR_LAYER_LINE, NULL, TSR_COLOUR_DATA, s->n_column, x,
                     s->rg, NULL);
    tsr_figure_panel(f, "residue", 0, 260);
    add_cells(f, s->n_column, 0.0, dx, s, value);
    if (f->n_panel > 1)
        f->panel[1].z_title = strdup(scale);
    free(x);
    return f;
}

/* ---- groups ---- */

/* The draw in the middle of a group, as PDB beside the figures. */
static tsr_status write_middle(tsr_report *r, int c, char *name, size_t size,
                               tsr_err *err)
{
    const tsr_shape *s = r->options->diagnose.shape;
    char path[4096];
    int n_model;
    const int middle = s->at[s->clusters.nearest[c]];
    const tsr_draw_choice choice = {.n = 0};
    const tsr_export_options options = {.format = TSR_MODEL_CIF,
                                        .name = "group",
                                        .state = -1,
                                        .pick = &middle,
                                        .n_pick = 1};
    snprintf(name, size, "group-%d.cif", c + 1);
    snprintf(path, sizeof path, "%s/%s", r->folder, name);
    FILE *out = fopen(path, "w");
    if (out == NULL)
        return tsr_fail(err, TSR_E_IO, "cannot write '%s'", path);
    tsr_status status = tsr_export_models(r->options->frames, &choice, &options,
                                          out, &n_model, err);
    int failed = ferror(out);
    failed |= fclose(out) != 0;
    return status == TSR_OK && failed
               ? tsr_fail(err, TSR_E_IO, "cannot write '%s'", path)
               : status;
}

static tsr_status groups(tsr_report *r, tsr_err *err)
{
    const tsr_shape *s = r->options->diagnose.shape;
    const tsr_drawn_frame *frame;
    FILE *out = tsr_page_html(r->page);
    tsr_status status = TSR_OK;
    tsr_frames_list(r->options->frames, &frame);
    if (s->clusters.k == 1)
        tsr_page_words(r->page,
                       "Groups: none. The conformations are one cloud, without "
                       "a gap that would divide them; below is the draw "
                       "nearest to its middle.");
    else
        tsr_page_words(
            r->page,
            "Groups: %d, by the distances between residues (k-means; mean "
            "silhouette %.2f, where 1 is far apart). <i>Spread</i> is the root "
            "mean square difference of these distances from the group's mean. "
            "The last columns are the group's share in two halves of the "
            "chains, which should agree.",
            s->clusters.k, s->clusters.silhouette);
    fputs("<table><tr><th>group</th><th>share</th><th>spread (&Aring;)</th>"
          "<th>draw nearest to the middle</th><th>file</th><th>first half</th>"
          "<th>second half</th></tr>\n",
          out);
    for (int c = 0; c < s->clusters.k && status == TSR_OK; c++) {
        char name[64];
        const tsr_drawn_frame *f = &frame[s->at[s->clusters.nearest[c]]];
        status = write_middle(r, c, name, sizeof name, err);
        fprintf(out,
                "<tr><td>%d</td><td>%.1f&nbsp;%%</td><td>%.2f</td><td>chain "
                "%d, draw %ld</td><td>report/%s</td>",
                c + 1, 100.0 * s->clusters.size[c] / s->n,
                s->clusters.spread[c], f->chain, f->draw, name);
        for (int h = 0; h < 2; h++)
            if (isnan(s->overlap))
                fputs("<td>&ndash;</td>", out);
            else
                fprintf(out, "<td>%.1f&nbsp;%%</td>", 100.0 * s->half[h][c]);
        fputs("</tr>\n", out);
    }
    fputs("</table>\n", out);
    return status;
}

tsr_status tsr_report_structure(tsr_report *report, tsr_err *err)
{
    const tsr_shape *s = report->options->diagnose.shape;
    tsr_page *page = report->page;
    if (s == NULL) {
        if (report->options->no_frames != NULL) {
            tsr_page_section(page, "structure", "Structure");
            fputs("<p>", tsr_page_html(page));
            tsr_page_text(page, report->options->no_frames);
            fputs("</p>\n", tsr_page_html(page));
        }
        return TSR_OK;
    }
    tsr_page_section(page, "structure", "Structure");
    tsr_page_words(page,
                   "Of %d stored conformations, %d were looked at, by their "
                   "C&alpha; atoms.",
                   s->n_frame, s->n);
    tsr_status status = groups(report, err);
    if (status == TSR_OK)
        status = tsr_page_figure(page, pair_figure(s), err);
    tsr_page_words(page,
                   "Distances between all pairs of C&alpha; atoms: what the "
                   "data allow, without the smoothing of an indirect "
                   "transform.");
    if (status == TSR_OK)
        status = tsr_page_figure(page, mobility_figure(s), err);
    tsr_page_words(page,
                   "How far each residue strays from its mean place when all "
                   "conformations are laid over each other. Where domains move "
                   "against each other, all of them seem mobile: the maps tell "
                   "which distances change.");
    tsr_page_columns(page);
    if (status == TSR_OK)
        status =
            tsr_page_figure(page,
                            map_figure(s, "distance-mean", "Distances, mean",
                                       "mean (\xc3\x85)", s->distance),
                            err);
    if (status == TSR_OK)
        status = tsr_page_figure(page,
                                 map_figure(s, "distance-sd",
                                            "Distances, standard deviation",
                                            "sd (\xc3\x85)", s->distance_sd),
                                 err);
    tsr_page_columns_end(page);
    tsr_page_words(page,
                   "Dark blocks of the second map are parts that keep their "
                   "shape; bright ones between them are pairs of parts that "
                   "move against each other.");
    if (status == TSR_OK)
        status = tsr_report_domains(report, err);
    tsr_page_choice(page, "timeline", "Along the draws:");
    if (status == TSR_OK)
        status = tsr_page_figure(page,
                                 timeline_figure(s, "timeline-change",
                                                 "Timeline: change from start",
                                                 "moved (\xc3\x85)", s->change),
                                 err);
    if (status == TSR_OK)
        status = tsr_page_figure(page,
                                 timeline_figure(s, "timeline-contacts",
                                                 "Timeline: contacts",
                                                 "neighbours", s->contacts),
                                 err);
    if (status == TSR_OK)
        status = tsr_page_figure(
            page,
            timeline_figure(s, "timeline-mobility", "Timeline: local mobility",
                            "changed (\xc3\x85)", s->mobility),
            err);
    tsr_page_choice_end(page);
    tsr_page_words(page,
                   "Each column is a conformation, each row a residue: how far "
                   "it is from the start (laid over it); how many residues "
                   "are within 10&nbsp;&Aring;; or how much its distances to "
                   "six residues on either side have changed since the column "
                   "before. Stripes that differ from chain to chain mean that "
                   "chains sit in different places. Drag to zoom; the trace of "
                   "Rg above follows.");
    return status;
}
