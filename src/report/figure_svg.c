/* The picture of a figure, for papers and for pages without scripts: axes,
 * panels and legend are placed here, the strokes are those of svg.h. What lies
 * outside a panel's range is clipped. */
#include "report/figure.h"

#include "core/text.h"
#include "report/svg.h"

#include <math.h>
#include <stdlib.h>

enum {
    LEFT = 84,
    RIGHT = 24,
    TOP = 44,
    BOTTOM = 52,
    GAP = 16,   /* between panels */
    SCALE = 70, /* width of the colour scale of cells */
    LEGEND_ROW = 20,
    STEPS = 64 /* of the colour scale */
};
static const char grid_colour[] = "#e4e4e4", frame_colour[] = "#444";

/* A panel on the page. */
typedef struct {
    const tsr_figure *figure;
    const tsr_panel *panel;
    double top;
} place;

static double at_x(const place *p, double x)
{
    const tsr_figure *f = p->figure;
    return LEFT + (x - f->x0) / (f->x1 - f->x0) * f->width;
}

/* NaN for what has no logarithm. */
static double at_y(const place *p, double y)
{
    const tsr_panel *a = p->panel;
    const double part =
        a->is_log
            ? (y > 0.0 ? log(y / a->y0) / log(a->y1 / a->y0) : (double)NAN)
            : (y - a->y0) / (a->y1 - a->y0);
    return p->top + (1.0 - part) * a->height;
}

static int has_cells(const tsr_panel *panel)
{
    for (int l = 0; l < panel->n_layer; l++)
        if (panel->layer[l].kind == TSR_LAYER_CELLS)
            return 1;
    return 0;
}

/* ---- axes ---- */

static void x_axis(tsr_svg *svg, const place *p, int is_last)
{
    double first, step;
    const tsr_figure *f = p->figure;
    const double bottom = p->top + p->panel->height;
    int n = tsr_figure_ticks(f->x0, f->x1, f->width / 90, &first, &step);
    for (int i = 0; is_last && i < f->n_x_name; i++)
        tsr_svg_text(svg, at_x(p, i + 0.5), bottom + 18.0, 13.0, TSR_SVG_MIDDLE,
                     0, f->x_name[i]);
    if (f->n_x_name > 0)
        return;
    for (int i = 0; i < n; i++) {
        char text[32];
        const double v = first + i * step, x = at_x(p, v);
        tsr_figure_tick_text(v, step, text);
        tsr_svg_line(svg, x, p->top, x, bottom, grid_colour, 1.0);
        if (is_last)
            tsr_svg_text(svg, x, bottom + 18.0, 13.0, TSR_SVG_MIDDLE, 0, text);
    }
}

static void y_tick(tsr_svg *svg, const place *p, double v, double step)
{
    char text[32];
    const double y = at_y(p, v);
    tsr_figure_tick_text(v, step, text);
    tsr_svg_line(svg, LEFT, y, LEFT + p->figure->width, y, grid_colour, 1.0);
    tsr_svg_text(svg, LEFT - 8.0, y + 4.5, 13.0, TSR_SVG_END, 0, text);
}

static void y_axis(tsr_svg *svg, const place *p)
{
    const tsr_panel *a = p->panel;
    if (a->is_log) {
        const int is_fine = log10(a->y1 / a->y0) < 2.3;
        for (int d = (int)floor(log10(a->y0)); d <= log10(a->y1); d++)
            for (int i = 1; i <= 9; i++) {
                const double v = i * pow(10.0, d);
                if (v >= a->y0 && v <= a->y1 &&
                    (i == 1 || (is_fine && (i == 2 || i == 5))))
                    y_tick(svg, p, v, v);
            }
        return;
    }
    double first, step;
    int n =
        tsr_figure_ticks(a->y0, a->y1, a->height < 100 ? 3 : 5, &first, &step);
    if (a->is_count && step < 1.0) {
        first = ceil(a->y0);
        step = 1.0;
        n = (int)(floor(a->y1) - first) + 1;
    }
    for (int i = 0; i < n; i++) {
        y_tick(svg, p, first + i * step, step);
    }
}

static void frame(tsr_svg *svg, const place *p)
{
    const double x[5] = {LEFT, LEFT + p->figure->width, LEFT + p->figure->width,
                         LEFT, LEFT};
    const double low = p->top + p->panel->height;
    const double y[5] = {p->top, p->top, low, low, p->top};
    tsr_svg_stroke(svg, 5, x, y, frame_colour, 1.0, 1.0, NULL);
}

/* ---- layers ---- */

static void cells(tsr_svg *svg, const place *p, const tsr_layer *layer)
{
    const tsr_panel *a = p->panel;
    for (int i = 0; layer->y2 != NULL && i < layer->n; i++) {
        char colour[8];
        const double x = at_x(p, layer->x[i]);
        const double y = at_y(p, layer->y[i] + layer->dy);
        if (!isfinite(layer->y2[i]))
            continue;
        tsr_figure_colour((layer->y2[i] - a->z0) / (a->z1 - a->z0), colour);
        tsr_svg_rect(svg, x, y, at_x(p, layer->x[i] + layer->dx) - x + 0.3,
                     at_y(p, layer->y[i]) - y + 0.3, colour, layer->opacity);
    }
}

static void draw(tsr_svg *svg, const place *p, const tsr_layer *layer,
                 double *x, double *y, double *y2)
{
    const double low = p->top + p->panel->height;
    for (int i = 0; i < layer->n; i++) {
        x[i] = at_x(p, layer->x[i]);
        y[i] = at_y(p, layer->y[i]);
        y2[i] = layer->y2 != NULL ? at_y(p, layer->y2[i]) : 0.0;
        /* a lower end without a logarithm is below the panel */
        if (layer->kind == TSR_LAYER_ERRORS || layer->kind == TSR_LAYER_BAND) {
            y[i] = isnan(y[i]) && !isnan(y2[i]) ? low : y[i];
            y2[i] = isnan(y2[i]) && !isnan(y[i]) ? low : y2[i];
        }
    }
    switch (layer->kind) {
    case TSR_LAYER_BAND:
        tsr_svg_area(svg, layer->n, x, y, y2, layer->colour, layer->opacity);
        break;
    case TSR_LAYER_ERRORS:
        for (int i = 0; i < layer->n; i++)
            if (isfinite(y[i]) && isfinite(y2[i]))
                tsr_svg_line(svg, x[i], y[i], x[i], y2[i], layer->colour, 1.1);
        break;
    case TSR_LAYER_LINE:
        if (layer->n == 1 && isfinite(y[0]))
            tsr_svg_circle(svg, x[0], y[0], 2.4, layer->colour, 1);
        tsr_svg_stroke(svg, layer->n, x, y, layer->colour, 1.6, layer->opacity,
                       NULL);
        break;
    case TSR_LAYER_DASHES:
        tsr_svg_stroke(svg, layer->n, x, y, layer->colour, 1.4, layer->opacity,
                       "5 4");
        break;
    case TSR_LAYER_POINTS:
        for (int i = 0; i < layer->n; i++)
            if (isfinite(x[i]) && isfinite(y[i]))
                tsr_svg_circle(svg, x[i], y[i], 1.9, layer->colour, 1);
        break;
    case TSR_LAYER_CELLS:
        cells(svg, p, layer);
        break;
    }
}

/* ---- legends ---- */

static void legend_mark(tsr_svg *svg, const tsr_layer *l, double x, double y)
{
    const double line_x[2] = {x, x + 22.0}, line_y[2] = {y - 4.5, y - 4.5};
    switch (l->kind) {
    case TSR_LAYER_BAND:
    case TSR_LAYER_CELLS:
        tsr_svg_rect(svg, x, y - 10.0, 22.0, 11.0, l->colour, l->opacity);
        break;
    case TSR_LAYER_POINTS:
        tsr_svg_circle(svg, x + 11.0, y - 4.5, 2.4, l->colour, 1);
        break;
    case TSR_LAYER_ERRORS:
        tsr_svg_line(svg, x + 11.0, y - 11.0, x + 11.0, y + 2.0, l->colour,
                     1.1);
        break;
    default:
        tsr_svg_stroke(svg, 2, line_x, line_y, l->colour, 2.0, l->opacity,
                       l->kind == TSR_LAYER_DASHES ? "5 4" : NULL);
    }
}

/* Labels of the first panel in rows above it; returns how many rows. With svg
 * NULL nothing is drawn. */
static int legend(tsr_svg *svg, const tsr_figure *f, double top)
{
    const tsr_panel *a = &f->panel[0];
    double x = LEFT;
    int row = 0, n = 0;
    for (int l = 0; l < a->n_layer; l++) {
        const char *label = a->layer[l].label;
        if (label == NULL)
            continue;
        const double width = 30.0 + 7.4 * tsr_text_width(label) + 16.0;
        if (n++ > 0 && x + width > LEFT + f->width + RIGHT) {
            x = LEFT;
            row++;
        }
        if (svg != NULL) {
            const double y = top + row * LEGEND_ROW + 4.0;
            legend_mark(svg, &a->layer[l], x, y);
            tsr_svg_text(svg, x + 28.0, y, 13.0, TSR_SVG_START, 0, label);
        }
        x += width;
    }
    return n > 0 ? row + 1 : 0;
}

static void colour_scale(tsr_svg *svg, const place *p)
{
    const tsr_panel *a = p->panel;
    const double left = LEFT + p->figure->width + 14.0;
    double first, step;
    for (int i = 0; i < STEPS; i++) {
        char colour[8];
        tsr_figure_colour((i + 0.5) / STEPS, colour);
        tsr_svg_rect(svg, left, p->top + a->height * (1.0 - (i + 1.0) / STEPS),
                     12.0, (double)a->height / STEPS + 0.3, colour, 1.0);
    }
    int n = tsr_figure_ticks(a->z0, a->z1, 4, &first, &step);
    for (int i = 0; i < n; i++) {
        char text[32];
        const double v = first + i * step;
        tsr_figure_tick_text(v, step, text);
        tsr_svg_text(svg, left + 16.0,
                     p->top + a->height * (a->z1 - v) / (a->z1 - a->z0) + 4.5,
                     12.0, TSR_SVG_START, 0, text);
    }
    if (a->z_title != NULL)
        tsr_svg_text(svg, left + 60.0, p->top + 0.5 * a->height, 13.0,
                     TSR_SVG_MIDDLE, 1, a->z_title);
}

/* ---- the page ---- */

static int longest(const tsr_figure *f)
{
    int n = 5;
    for (int p = 0; p < f->n_panel; p++)
        for (int l = 0; l < f->panel[p].n_layer; l++)
            if (f->panel[p].layer[l].n > n)
                n = f->panel[p].layer[l].n;
    return n;
}

static void draw_panel(tsr_svg *svg, const tsr_figure *f, int k, double top,
                       double *scratch, int room)
{
    const tsr_panel *a = &f->panel[k];
    const place p = {f, a, top};
    char id[96];
    x_axis(svg, &p, k + 1 == f->n_panel);
    y_axis(svg, &p);
    snprintf(id, sizeof id, "clip-%.60s-%d", f->name, k);
    tsr_svg_clip(svg, id, LEFT, top, f->width, a->height);
    for (int l = 0; l < a->n_layer; l++)
        draw(svg, &p, &a->layer[l], scratch, scratch + room,
             scratch + 2 * room);
    tsr_svg_unclip(svg);
    frame(svg, &p);
    if (has_cells(a) && a->z_title != NULL)
        colour_scale(svg, &p);
    tsr_svg_text(svg, 16.0, top + 0.5 * a->height, 14.0, TSR_SVG_MIDDLE, 1,
                 a->y_title);
}

/* As large as `size` where the page is wide enough; a letter is some 0.6 of its
 * height wide. */
static void heading(tsr_svg *svg, const tsr_figure *f, double y, double size,
                    const char *text)
{
    const double room = (f->width + RIGHT) / (0.6 * tsr_text_width(text));
    tsr_svg_text(svg, LEFT, y, fmin(size, room), TSR_SVG_START, 0, text);
}

static tsr_status make(const tsr_figure *f, tsr_svg **out, tsr_err *err)
{
    const int room = longest(f);
    const double head = TOP + (f->subtitle != NULL ? LEGEND_ROW : 0);
    double top = head + legend(NULL, f, head) * LEGEND_ROW;
    double height = top + BOTTOM - GAP;
    int extra = 0;
    for (int k = 0; k < f->n_panel; k++) {
        height += f->panel[k].height + GAP;
        if (has_cells(&f->panel[k]))
            extra = SCALE;
    }
    tsr_svg *svg = tsr_svg_new(LEFT + f->width + RIGHT + extra, (int)height);
    double *scratch = calloc(3 * (size_t)room, sizeof *scratch);
    if (svg == NULL || scratch == NULL) {
        tsr_svg_free(svg);
        free(scratch);
        return tsr_fail(err, TSR_E_NOMEM, "out of memory for figure '%s'",
                        f->name);
    }
    heading(svg, f, 24.0, 16.0, f->title);
    if (f->subtitle != NULL)
        heading(svg, f, 46.0, 13.0, f->subtitle);
    legend(svg, f, head);
    for (int k = 0; k < f->n_panel; k++) {
        draw_panel(svg, f, k, top, scratch, room);
        top += f->panel[k].height + GAP;
    }
    tsr_svg_text(svg, LEFT + 0.5 * f->width, top - GAP + 40.0, 14.0,
                 TSR_SVG_MIDDLE, 0, f->x_title);
    free(scratch);
    *out = svg;
    return TSR_OK;
}

tsr_status tsr_figure_write_svg(const tsr_figure *figure, const char *path,
                                tsr_err *err)
{
    tsr_svg *svg = NULL;
    tsr_status status = make(figure, &svg, err);
    TSR_THEN(status, tsr_svg_write(svg, path, err));
    tsr_svg_free(svg);
    return status;
}

tsr_status tsr_figure_svg_text(const tsr_figure *figure, char **text,
                               tsr_err *err)
{
    tsr_svg *svg = NULL;
    *text = NULL;
    tsr_status status = make(figure, &svg, err);
    TSR_THEN(status, tsr_svg_finish(svg, text, err));
    tsr_svg_free(svg);
    return status;
}
