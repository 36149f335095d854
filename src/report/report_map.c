/* A density map compared with the draws: slices through the map and the model
 * density, the correlation by residue, and the Fourier shell correlation. The
 * numbers are computed by maps/map_view.h. */
#include "report/report.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* Colours of the starting structure, on the map and on a white background. */
static const char pale[] = "#c4c4c4", start_colour[] = "#8a8a8a";

/* A figure with the file name "map-1-x", say. */
static tsr_figure new_figure(const tsr_report_map *m, const char *what,
                             const char *title, const char *x_title, int width)
{
    char name[64];
    snprintf(name, sizeof name, "map-%d-%s", m->ordinal + 1, what);
    return tsr_figure_new(name, title, x_title, width);
}

/* ---- slices ---- */

typedef struct {
    tsr_pool *pool;
    int n, n_reserved;
    double *x, *y; /* two points and a NaN for each line segment */
} outline;

static void add_point(outline *o, double x, double y)
{
    if (o->n == o->n_reserved) {
        const int n_reserved = 2 * o->n_reserved + 256;
        o->x = tsr_pool_resize(o->pool, o->x, (size_t)n_reserved, sizeof *o->x);
        o->y = tsr_pool_resize(o->pool, o->y, (size_t)n_reserved, sizeof *o->y);
        o->n_reserved = n_reserved;
    }
    if (o->pool->failed)
        return;
    o->x[o->n] = x;
    o->y[o->n++] = y;
}

/* The point where the side from corner a to corner b of a square of pixels
 * crosses the level, in units of the pixel. Returns 0 where the side does not
 * cross. */
static int find_crossing(const double corner[4], int a, int b, double level,
                         double point[2])
{
    static const int at[4][2] = {{0, 0}, {1, 0}, {1, 1}, {0, 1}};
    if ((corner[a] < level) == (corner[b] < level))
        return 0;
    const double t = (level - corner[a]) / (corner[b] - corner[a]);
    for (int c = 0; c < 2; c++)
        point[c] = at[a][c] + t * (at[b][c] - at[a][c]);
    return 1;
}

/* The contour line at `level` by marching squares: one or two straight segments
 * in each square of four pixels. */
static outline find_outline(const tsr_map_slice *s, const float *value,
                            double level, tsr_pool *pool)
{
    outline o = {.pool = pool};
    for (int y = 0; y + 1 < s->n[1]; y++)
        for (int x = 0; x + 1 < s->n[0]; x++) {
            const float *v = value + y * s->n[0] + x;
            const double corner[4] = {(double)v[0], (double)v[1],
                                      (double)v[s->n[0] + 1],
                                      (double)v[s->n[0]]};
            for (int side = 0, n = 0; side < 4; side++) {
                double point[2];
                if (!find_crossing(corner, side, (side + 1) % 4, level, point))
                    continue;
                add_point(&o, s->first[0] + s->step * (x + 0.5 + point[0]),
                          s->first[1] + s->step * (y + 0.5 + point[1]));
                if (++n % 2 == 0)
                    add_point(&o, (double)NAN, (double)NAN);
            }
        }
    return o;
}

/* A solid line, because the segments are shorter than dashes. */
static void add_outline(tsr_figure *f, const tsr_map_slice *s,
                        const char *label, const char *colour,
                        const float *value, double level)
{
    const outline o = find_outline(s, value, level, &f->pool);
    tsr_figure_layer(f, TSR_LAYER_LINE, label, colour, o.n, o.x, o.y, NULL);
}

static tsr_status slice_figure(tsr_report *r, const tsr_report_map *m, int k,
                               tsr_err *err)
{
    static const char *const axis[] = {"x", "y", "z"};
    const tsr_map_slice *s = &m->view.slice[k];
    const int width = 190;
    char title[64], across[16], up[16];
    if (s->n[0] < 2 || s->n[1] < 2)
        return TSR_OK; /* the model lies outside the map */
    snprintf(title, sizeof title, "%s = %.1f \xc3\x85", axis[s->axis],
             s->at_ang);
    snprintf(across, sizeof across, "%s (\xc3\x85)", axis[s->axis == 0]);
    snprintf(up, sizeof up, "%s (\xc3\x85)", axis[s->axis == 2 ? 1 : 2]);
    tsr_figure f = new_figure(m, axis[s->axis], title, across, width);
    tsr_panel *panel =
        tsr_figure_panel(&f, up, 0, (int)(width * (double)s->n[1] / s->n[0]));
    f.x0 = s->first[0];
    f.x1 = s->first[0] + s->step * s->n[0];
    panel->y0 = s->first[1];
    panel->y1 = s->first[1] + s->step * s->n[1];
    double *column;
    tsr_pool_array(&f.pool, column, s->n[0] * s->n[1]);
    for (int i = 0; column != NULL && i < s->n[0] * s->n[1]; i++)
        column[i] = (double)s->map[i % s->n[1] * s->n[0] + i / s->n[1]];
    tsr_figure_cells(&f, s->n[0], s->n[1], s->first[0], s->step, s->first[1],
                     s->step, column);
    add_outline(&f, s, "start", pale, s->start, m->view.start_level);
    add_outline(&f, s, "draws, mean", TSR_COLOUR_MODEL, s->model,
                m->view.level);
    return tsr_page_figure(r->page, f, err);
}

/* ---- by residue ---- */

/* The residue number of the file if it has one chain, else counted from 1. */
static double residue_number(const tsr_report_map *m, int i)
{
    const tsr_file_residue *first = &m->atoms->residue[0];
    const tsr_file_residue *last = &m->atoms->residue[m->atoms->n_residue - 1];
    return strcmp(first->chain, last->chain) == 0 ? m->atoms->residue[i].number
                                                  : i + 1;
}

static tsr_status residue_figure(tsr_report *r, const tsr_report_map *m,
                                 tsr_err *err)
{
    const tsr_map_view *v = &m->view;
    const size_t n = (size_t)v->n_residue;
    const int has_one_chain =
        strcmp(m->atoms->residue[0].chain, m->atoms->residue[n - 1].chain) == 0;
    tsr_figure f = new_figure(
        m, "residues", "Correlation by residue",
        has_one_chain ? "residue" : "residue, numbered from 1 over all chains",
        700);
    double *x, *low, *high, *middle, *start;
    tsr_pool_array(&f.pool, x, n);
    tsr_pool_array(&f.pool, low, n);
    tsr_pool_array(&f.pool, high, n);
    tsr_pool_array(&f.pool, middle, n);
    tsr_pool_array(&f.pool, start, n);
    for (size_t i = 0; !f.pool.failed && i < n; i++) {
        x[i] = residue_number(m, (int)i);
        low[i] = v->residue[i].q5;
        high[i] = v->residue[i].q95;
        middle[i] = v->residue[i].median;
        start[i] = v->residue[i].start;
    }
    tsr_figure_panel(&f, "correlation", 0, 220);
    tsr_figure_layer(&f, TSR_LAYER_BAND, "draws, 5 to 95 %", TSR_COLOUR_MODEL,
                     (int)n, x, low, high)
        ->opacity = 0.35;
    tsr_figure_layer(&f, TSR_LAYER_DASHES, "start", start_colour, (int)n, x,
                     start, NULL);
    tsr_figure_layer(&f, TSR_LAYER_LINE, "draws, median", TSR_COLOUR_MODEL,
                     (int)n, x, middle, NULL);
    return tsr_page_figure(r->page, f, err);
}

/* ---- Fourier shell correlation ---- */

static void add_curve(tsr_figure *f, tsr_layer_kind kind, const char *label,
                      const char *colour, const tsr_fsc *fsc)
{
    if (fsc->n > 0)
        tsr_figure_layer(f, kind, label, colour, fsc->n, fsc->s_inv_ang,
                         fsc->fsc, NULL);
}

static tsr_status fsc_figure(tsr_report *r, const tsr_report_map *m,
                             tsr_err *err)
{
    const tsr_map_view *v = &m->view;
    tsr_figure f = new_figure(m, "fsc", "Fourier shell correlation",
                              "s (1/\xc3\x85)", 700);
    const double level[2] = {0.5, 0.143};
    const double x[2] = {0.0, v->mean.s_inv_ang[v->mean.n - 1]};
    tsr_panel *panel = tsr_figure_panel(&f, "FSC", 0, 240);
    panel->y0 = -0.2;
    panel->y1 = 1.05;
    for (int k = 0; k < 2; k++) {
        const double y[2] = {level[k], level[k]};
        tsr_figure_layer(&f, TSR_LAYER_DASHES, NULL, "#8a8a8a", 2, x, y, NULL);
    }
    add_curve(&f, TSR_LAYER_LINE, "half-maps", TSR_COLOUR_DATA, &v->halves);
    add_curve(&f, TSR_LAYER_DASHES, "map and start", start_colour, &v->start);
    add_curve(&f, TSR_LAYER_LINE, "map and draws", TSR_COLOUR_MODEL, &v->mean);
    return tsr_page_figure(r->page, f, err);
}

/* ---- numbers ---- */

static void add_spread(tsr_page *page, const char *name,
                       const tsr_map_spread *s)
{
    tsr_page_row(
        page, "%s\t%s\t%s\t%s\t%s", name, tsr_page_number(page, 4, s->start),
        tsr_page_number(page, 4, s->median), tsr_page_number(page, 4, s->q5),
        tsr_page_number(page, 4, s->q95));
}

static void add_resolution(tsr_page *page, const char *name, const tsr_fsc *fsc)
{
    if (fsc->n > 0)
        tsr_page_row(
            page, "%s\t%s%.2f\t%s%.2f", name,
            fsc->half_is_at_limit ? "&lt; " : "", 1.0 / fsc->half_inv_ang,
            fsc->low_is_at_limit ? "&lt; " : "", 1.0 / fsc->low_inv_ang);
}

/* A constant of the map's term in the trace; NaN: the trace has none. */
static double read_constant(tsr_report *r, const tsr_report_map *m,
                            const char *what)
{
    char name[64];
    int n_chain, n_draw, n = 0;
    double *value = NULL, first = (double)NAN;
    tsr_term_variable(m->type, m->ordinal, what, sizeof name, name);
    if (tsr_trace_get(r->trace, TSR_TRACE_CONSTANT_DATA, name, &n_chain,
                      &n_draw, &n, &value, NULL) == TSR_OK &&
        n > 0)
        first = value[0];
    free(value);
    return first;
}

/* The correlation as the likelihood computes it: of coarse-grained bodies, with
 * the weights of the voxels. */
static tsr_status read_sampled_correlation(tsr_report *r,
                                           const tsr_report_map *m,
                                           tsr_map_spread *out, tsr_err *err)
{
    char name[64];
    tsr_curve_summary *c = NULL;
    tsr_term_variable(m->type, m->ordinal, "map_correlation_mean", sizeof name,
                      name);
    TSR_TRY(tsr_curve_summary_make(r->trace, name, 2e7, &c, err));
    const tsr_convergence *v = &c->point[0];
    *out = (tsr_map_spread){read_constant(r, m, "rigid"), v->median, v->q5,
                            v->q95};
    tsr_curve_summary_free(c);
    return TSR_OK;
}

static tsr_status add_tables(tsr_report *r, const tsr_report_map *m,
                             tsr_err *err)
{
    tsr_page *page = r->page;
    const tsr_map_view *v = &m->view;
    const double limit = read_constant(r, m, "limit");
    tsr_map_spread bodies;
    TSR_TRY(read_sampled_correlation(r, m, &bodies, err));
    tsr_page_table(
        page, "tight",
        "correlation\tstarting structure\tdraws, median\t5&nbsp;%\t95&nbsp;%");
    add_spread(page, "whole map", &v->box);
    add_spread(page, "around the model", &v->mask);
    add_spread(page, "coarse-grained, as sampled", &bodies);
    tsr_page_table_end(page);
    if (isfinite(limit))
        tsr_page_words(page,
                       "With the noise of this map, the correct structure "
                       "would have a correlation (as sampled) of %.3f.",
                       limit);
    tsr_page_table(
        page, "tight",
        "resolution (&Aring;) where the FSC falls below\t0.5\t0.143");
    add_resolution(page, "map and start", &v->start);
    add_resolution(page, "map and draws", &v->mean);
    add_resolution(page, "half-maps", &v->halves);
    tsr_page_table_end(page);
    return TSR_OK;
}

static void add_heading(tsr_report *r, const tsr_report_map *m)
{
    const char *name = tsr_report_data_name(r, m->type, m->ordinal);
    fprintf(tsr_page_html(r->page), "<h3>Map %d: ", m->ordinal + 1);
    tsr_page_text(r->page, name != NULL ? name : "");
    fputs("</h3>\n", tsr_page_html(r->page));
}

static tsr_status add_map(tsr_report *r, const tsr_report_map *m, tsr_err *err)
{
    const tsr_map_view *v = &m->view;
    tsr_status status = TSR_OK;
    if (r->options->n_map > 1)
        add_heading(r, m);
    tsr_page_words(r->page,
                   "Model densities are of all atoms of %d draw%s and of the "
                   "starting structure, with the side-chain conformations of "
                   "the input, blurred to %g&nbsp;&Aring; with &sigma;/R&nbsp;"
                   "%.3f (mean of the draws). Slices pass through the centre "
                   "of the model. Colour: map; lines: contours of the model "
                   "density that enclose the volume of the molecule.",
                   v->n_draw, v->n_draw == 1 ? "" : "s", v->resolution_ang,
                   v->sigma_over_r);
    tsr_page_columns(r->page);
    for (int k = 0; k < 3 && status == TSR_OK; k++)
        status = slice_figure(r, m, k, err);
    tsr_page_columns_end(r->page);
    TSR_THEN(status, add_tables(r, m, err));
    if (status == TSR_OK && v->n_residue > 1)
        status = residue_figure(r, m, err);
    tsr_page_words(
        r->page,
        "Correlation of the map with the density of the whole model, over the "
        "voxels within %g&nbsp;&Aring; of a residue. A residue with a lower "
        "correlation than its neighbours is misplaced or not resolved in the "
        "map.",
        v->mask_ang);
    if (status == TSR_OK && v->mean.n > 0)
        status = fsc_figure(r, m, err);
    tsr_page_words(
        r->page,
        "Resolution to which map and model agree, for the mean density of the "
        "draws, which is smoother than that of a single draw where draws "
        "differ.%s",
        v->halves.n > 0
            ? " The half-maps agree to the resolution of the data; a model "
              "that agrees with the map beyond it fits noise."
            : "");
    return status;
}

tsr_status tsr_report_maps(tsr_report *report, const tsr_term_type *type,
                           tsr_err *err)
{
    const tsr_report_map *map = report->options->map;
    for (int k = 0; k < report->options->n_map; k++)
        if (map[k].type == type)
            TSR_TRY(add_map(report, &map[k], err));
    return TSR_OK;
}
