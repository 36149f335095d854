/* Builds a figure panel by panel and layer by layer, and draws it as SVG.
 * Ranges and ticks are determined in tsr_figure_finish, after the last layer.
 */
#include "report/figure.h"

#include "core/text.h"
#include "files/file.h"

#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- shapes ----
 *
 * SVG is text: a picture is collected in memory and written at once, so that a
 * file is never incomplete. Coordinates have two decimals of a pixel. */

struct tsr_svg {
    tsr_words words;
};

static const char *const anchor_name[] = {"start", "middle", "end"};

tsr_svg *tsr_svg_new(int width, int height)
{
    tsr_svg *svg = calloc(1, sizeof *svg);
    if (svg == NULL)
        return NULL;
    tsr_words_begin(&svg->words);
    if (svg->words.out == NULL) {
        free(svg);
        return NULL;
    }
    fprintf(svg->words.out,
            "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"%d\" "
            "height=\"%d\" viewBox=\"0 0 %d %d\" font-family=\"Helvetica, "
            "Arial, 'DejaVu Sans', sans-serif\" fill=\"#222\">\n" TSR_SVG_MARK
            "\n"
            "<rect width=\"%d\" height=\"%d\" fill=\"#fff\"/>\n",
            width, height, width, height, width, height);
    return svg;
}

void tsr_svg_free(tsr_svg *svg)
{
    if (svg == NULL)
        return;
    free(tsr_words_end(&svg->words));
    free(svg);
}

void tsr_svg_line(tsr_svg *svg, double x0, double y0, double x1, double y1,
                  const char *colour, double width)
{
    fprintf(svg->words.out,
            "<line x1=\"%.2f\" y1=\"%.2f\" x2=\"%.2f\" y2=\"%.2f\" "
            "stroke=\"%s\" stroke-width=\"%.2f\"/>\n",
            x0, y0, x1, y1, colour, width);
}

/* Path commands: M (move) to the first point of each stretch of finite points,
 * L (line) to the others. */
static void write_path(FILE *out, int n, const double *x, const double *y)
{
    int is_down = 0;
    for (int k = 0; k < n; k++) {
        if (!isfinite(x[k]) || !isfinite(y[k])) {
            is_down = 0;
            continue;
        }
        fprintf(out, "%c%.2f %.2f%s", is_down ? 'L' : 'M', x[k], y[k],
                k % 8 == 7 ? "\n" : " ");
        is_down = 1;
    }
}

void tsr_svg_stroke(tsr_svg *svg, int n, const double *x, const double *y,
                    const char *colour, double width, double opacity,
                    const char *dash)
{
    fputs("<path d=\"", svg->words.out);
    write_path(svg->words.out, n, x, y);
    fprintf(svg->words.out,
            "\" fill=\"none\" stroke=\"%s\" stroke-width=\"%.2f\" "
            "stroke-linejoin=\"round\"",
            colour, width);
    if (opacity < 1.0)
        fprintf(svg->words.out, " stroke-opacity=\"%.3f\"", opacity);
    if (dash != NULL)
        fprintf(svg->words.out, " stroke-dasharray=\"%s\"", dash);
    fputs("/>\n", svg->words.out);
}

/* The area between two lines, y and y2, interrupted where either is not finite.
 */
static void draw_area(tsr_svg *svg, int n, const double *x, const double *y,
                      const double *y2, const char *colour, double opacity)
{
    fputs("<path d=\"", svg->words.out);
    for (int k = 0; k < n;) {
        int end = k;
        while (end < n && isfinite(y[end]) && isfinite(y2[end]))
            end++;
        for (int i = k; i < end; i++)
            fprintf(svg->words.out, "%c%.2f %.2f ", i == k ? 'M' : 'L', x[i],
                    y[i]);
        for (int i = end - 1; i >= k; i--)
            fprintf(svg->words.out, "L%.2f %.2f ", x[i], y2[i]);
        if (end > k)
            fputs("Z\n", svg->words.out);
        k = end > k ? end : k + 1;
    }
    fprintf(svg->words.out, "\" fill=\"%s\" fill-opacity=\"%.3f\"/>\n", colour,
            opacity);
}

void tsr_svg_rect(tsr_svg *svg, double x, double y, double width, double height,
                  const char *colour, double opacity)
{
    fprintf(svg->words.out,
            "<rect x=\"%.2f\" y=\"%.2f\" width=\"%.2f\" height=\"%.2f\" "
            "fill=\"%s\" fill-opacity=\"%.3f\"/>\n",
            x, y, width, height, colour, opacity);
}

static void draw_circle(tsr_svg *svg, double x, double y, double radius,
                        const char *colour)
{
    fprintf(svg->words.out,
            "<circle cx=\"%.2f\" cy=\"%.2f\" r=\"%.2f\" fill=\"%s\" "
            "stroke=\"%s\" stroke-width=\"0.7\"/>\n",
            x, y, radius, colour, colour);
}

void tsr_svg_text(tsr_svg *svg, double x, double y, double size,
                  tsr_svg_anchor anchor, int is_vertical, const char *text)
{
    fprintf(svg->words.out,
            "<text x=\"%.2f\" y=\"%.2f\" font-size=\"%.1f\" "
            "text-anchor=\"%s\"",
            x, y, size, anchor_name[anchor]);
    if (is_vertical)
        fprintf(svg->words.out, " transform=\"rotate(-90 %.2f %.2f)\"", x, y);
    fputc('>', svg->words.out);
    tsr_text_escape(svg->words.out, text);
    fputs("</text>\n", svg->words.out);
}

/* Ends the picture and returns its text from <svg> on, which the caller frees.
 * Nothing can be drawn after this call. Errors: TSR_E_NOMEM. */
static tsr_status finish_svg(tsr_svg *svg, char **text, tsr_err *err)
{
    fputs("</svg>\n", svg->words.out);
    *text = tsr_words_end(&svg->words);
    return tsr_allocated(*text, err);
}

tsr_status tsr_svg_write(tsr_svg *svg, const char *path, tsr_err *err)
{
    char *text;
    tsr_status status = finish_svg(svg, &text, err);
    TSR_THEN(status, tsr_file_replace(path, text, strlen(text), err));
    free(text);
    return status;
}

/* ---- building ---- */

tsr_figure tsr_figure_new(const char *name, const char *title,
                          const char *x_title, int width)
{
    tsr_figure f = {.left = 84, .width = width};
    f.name = tsr_pool_text(&f.pool, name);
    f.title = tsr_pool_text(&f.pool, title);
    f.x_title = tsr_pool_text(&f.pool, x_title);
    return f;
}

void tsr_figure_clear(tsr_figure *figure)
{
    tsr_pool_clear(&figure->pool);
    *figure = (tsr_figure){.n_panel = 0};
}

tsr_panel *tsr_figure_panel(tsr_figure *figure, const char *y_title, int is_log,
                            int height)
{
    tsr_panel *panel =
        tsr_pool_resize(&figure->pool, figure->panel,
                        (size_t)figure->n_panel + 1, sizeof *panel);
    if (panel == NULL)
        return &figure->spare_panel;
    figure->panel = panel;
    panel += figure->n_panel++;
    *panel = (tsr_panel){.is_log = is_log,
                         .height = height,
                         .y_title = tsr_pool_text(&figure->pool, y_title)};
    return panel;
}

void tsr_figure_y_names(tsr_figure *figure, int n, const char *const *name)
{
    tsr_panel *panel = &figure->panel[figure->n_panel - 1];
    tsr_pool_array(&figure->pool, panel->y_name, n);
    for (int i = 0; panel->y_name != NULL && i < n; i++)
        panel->y_name[i] = tsr_pool_text(&figure->pool, name[i]);
    panel->n_y_name = panel->y_name != NULL ? n : 0;
    panel->y0 = 0.0;
    panel->y1 = n;
}

static double *copy_numbers(tsr_figure *figure, int n, const double *x)
{
    double *copy = NULL;
    if (x != NULL)
        tsr_pool_array(&figure->pool, copy, n);
    if (copy != NULL && n > 0)
        memcpy(copy, x, (size_t)n * sizeof *copy);
    return copy;
}

tsr_layer *tsr_figure_layer(tsr_figure *figure, tsr_layer_kind kind,
                            const char *label, const char *colour, int n,
                            const double *x, const double *y, const double *y2)
{
    if (figure->n_panel == 0)
        return &figure->spare_layer; /* no memory for its panel */
    tsr_panel *panel = &figure->panel[figure->n_panel - 1];
    tsr_layer *layer = tsr_pool_resize(
        &figure->pool, panel->layer, (size_t)panel->n_layer + 1, sizeof *layer);
    if (layer == NULL)
        return &figure->spare_layer;
    panel->layer = layer;
    layer += panel->n_layer++;
    *layer = (tsr_layer){.kind = kind,
                         .colour = colour,
                         .opacity = 1.0,
                         .label = tsr_pool_text(&figure->pool, label),
                         .x = copy_numbers(figure, n, x),
                         .y = copy_numbers(figure, n, y),
                         .y2 = copy_numbers(figure, n, y2)};
    layer->n = figure->pool.failed ? 0 : n;
    return layer;
}

void tsr_figure_cells(tsr_figure *figure, int n_x, int n_y, double x0,
                      double dx, double y0, double dy, const double *value)
{
    const size_t n = (size_t)n_x * (size_t)n_y;
    double *x, *y;
    tsr_pool_array(&figure->pool, x, n);
    tsr_pool_array(&figure->pool, y, n);
    for (size_t i = 0; !figure->pool.failed && i < n; i++) {
        const size_t column = i / (size_t)n_y;
        x[i] = x0 + dx * (double)column;
        y[i] = y0 + dy * (double)(i - column * (size_t)n_y);
    }
    tsr_layer *cells = tsr_figure_layer(figure, TSR_LAYER_CELLS, NULL,
                                        "#444444", (int)n, x, y, value);
    cells->dx = dx;
    cells->dy = dy;
}

/* ---- ranges ---- */

typedef struct {
    double low, high;
} range;

static void widen(range *r, double x, int is_log)
{
    if (!isfinite(x) || (is_log && !(x > 0.0)))
        return;
    r->low = fmin(r->low, x);
    r->high = fmax(r->high, x);
}

/* Makes the range at least finite and not empty, also for no number or a single
 * one. */
static void ensure_width(range *r, int is_log)
{
    if (!(r->low <= r->high))
        *r = (range){is_log ? 0.1 : 0.0, 1.0};
    if (r->low < r->high)
        return;
    const double half = 0.5 * fabs(r->low);
    if (is_log)
        *r = (range){r->low / 2.0, r->high * 2.0};
    else if (half > 0.0)
        *r = (range){r->low - half, r->high + half};
    else
        *r = (range){0.0, 1.0};
}

static void add_margin(range *r, int is_log)
{
    const double share = 0.05;
    if (is_log) {
        const double factor = pow(r->high / r->low, share);
        *r = (range){r->low / factor, r->high * factor};
    } else {
        const double margin = share * (r->high - r->low);
        *r = (range){r->low - margin, r->high + margin};
    }
}

static void finish_panel(tsr_panel *panel, range *x)
{
    range y = {HUGE_VAL, -HUGE_VAL}, z = y;
    int has_cells = 0;
    for (int l = 0; l < panel->n_layer; l++) {
        const tsr_layer *layer = &panel->layer[l];
        const int is_cells = layer->kind == TSR_LAYER_CELLS;
        has_cells |= is_cells;
        for (int i = 0; i < layer->n; i++) {
            widen(x, layer->x[i], 0);
            widen(&y, layer->y[i], panel->is_log);
            if (is_cells) {
                widen(x, layer->x[i] + layer->dx, 0);
                widen(&y, layer->y[i] + layer->dy, panel->is_log);
                widen(&z, layer->y2[i], 0);
            } else if (layer->y2 != NULL) {
                widen(&y, layer->y2[i], panel->is_log);
            }
        }
    }
    ensure_width(&y, panel->is_log);
    if (!has_cells)
        add_margin(&y, panel->is_log);
    if (panel->y0 == panel->y1)
        panel->y0 = y.low, panel->y1 = y.high;
    ensure_width(&z, 0);
    if (panel->z0 == panel->z1)
        panel->z0 = z.low, panel->z1 = z.high;
}

tsr_status tsr_figure_finish(tsr_figure *figure, tsr_err *err)
{
    range x = {HUGE_VAL, -HUGE_VAL};
    for (int p = 0; p < figure->n_panel; p++)
        finish_panel(&figure->panel[p], &x);
    ensure_width(&x, 0);
    if (figure->x0 == figure->x1)
        figure->x0 = x.low, figure->x1 = x.high;
    return tsr_pool_check(&figure->pool, err);
}

/* Ticks of an axis: *first and *step, such that about `n` ticks lie in the
 * range. The step is 1, 2 or 5 times a power of ten. Returns the number of
 * ticks. */
static int ticks(double low, double high, int n, double *first, double *step)
{
    const double raw = (high - low) / n;
    const double power = pow(10.0, floor(log10(raw)));
    const double lead = raw / power;
    *step = power * (lead < 1.5   ? 1.0
                     : lead < 3.5 ? 2.0
                     : lead < 7.5 ? 5.0
                                  : 10.0);
    *first = *step * ceil(low / *step - 1e-9);
    return (int)floor((high - *first) / *step + 1e-9) + 1;
}

/* The label of a tick, with the digits that distinguish it from its neighbours.
 */
static void tick_text(double value, double step, char text[32])
{
    const int least = 5, most = 12;
    const double top = fmax(fabs(value), step);
    const int need = (int)floor(log10(top)) - (int)floor(log10(step)) + 1;
    snprintf(text, 32, "%.*g",
             need < least  ? least
             : need > most ? most
                           : need,
             fabs(value) < 1e-9 * step ? 0.0 : value);
}

/* The colour of z in [0, 1], as "#rrggbb", from dark blue over green to yellow:
 * nine points of viridis (van der Walt & Smith 2015), interpolated linearly. */
static void colour_of(double z, char text[8])
{
    static const unsigned char anchor[][3] = {
        {68, 1, 84},    {71, 44, 122},  {59, 81, 139},
        {44, 113, 142}, {33, 144, 141}, {39, 173, 129},
        {92, 200, 99},  {170, 220, 50}, {253, 231, 37}};
    enum { N = sizeof anchor / sizeof *anchor };
    const double at = fmin(fmax(isnan(z) ? 0.0 : z, 0.0), 1.0) * (N - 1);
    const int i = at >= N - 1 ? N - 2 : (int)at;
    int rgb[3];
    for (int k = 0; k < 3; k++)
        rgb[k] = (int)lround(anchor[i][k] +
                             (at - i) * (anchor[i + 1][k] - anchor[i][k]));
    snprintf(text, 8, "#%02x%02x%02x", (unsigned)rgb[0] & 255u,
             (unsigned)rgb[1] & 255u, (unsigned)rgb[2] & 255u);
}

/* ---- the figure of a fit ----
 *
 * Intensities span decades and their errors grow towards large q, so a fit is
 * judged in two panels. The logarithmic one shows whether the curve has the
 * shape of the data. Residuals divided by sigma show whether the differences
 * are noise. */

/* The range of the logarithmic panel: that of the curves and the data. A point
 * below its own sigma does not extend the range downwards. */
static void set_range(const tsr_fit_figure *fit, tsr_panel *panel)
{
    double low = HUGE_VAL, high = 0.0;
    for (int k = 0; k < fit->n; k++) {
        if (fit->model[k] > 0.0)
            low = fmin(low, fit->model[k]);
        if (fit->start != NULL && fit->start[k] > 0.0)
            low = fmin(low, fit->start[k]);
        high = fmax(high, fmax(fit->model[k], fit->intensity[k]));
        if (fit->intensity[k] > fit->sigma[k])
            low = fmin(low, fit->intensity[k]);
    }
    if (low < high) {
        const double margin = pow(high / low, 0.05);
        panel->y0 = low / margin;
        panel->y1 = high * margin;
    }
}

static void add_band(tsr_figure *f, const tsr_fit_figure *fit,
                     const char *label, const char *colour, double opacity,
                     const double *low, const double *high)
{
    if (low == NULL)
        return;
    tsr_figure_layer(f, TSR_LAYER_BAND, label, colour, fit->n, fit->q, low,
                     high)
        ->opacity = opacity;
}

void tsr_fit_figure_add(tsr_figure *f, const tsr_fit_figure *fit, int height)
{
    const int n = fit->n;
    double *low, *high;
    tsr_pool_array(&f->pool, low, n);
    tsr_pool_array(&f->pool, high, n);
    if (f->pool.failed)
        return;
    set_range(fit, tsr_figure_panel(f, "I(q)", 1, height));
    add_band(f, fit, "new data, 5 to 95 %", "#f1c4bb", 0.6, fit->replicate_low,
             fit->replicate_high);
    for (int k = 0; k < n; k++) {
        low[k] = fit->intensity[k] - fit->sigma[k];
        high[k] = fit->intensity[k] + fit->sigma[k];
    }
    tsr_figure_layer(f, TSR_LAYER_ERRORS, NULL, TSR_COLOUR_ERROR, n, fit->q,
                     low, high);
    tsr_figure_layer(f, TSR_LAYER_POINTS, "measured", TSR_COLOUR_DATA, n,
                     fit->q, fit->intensity, NULL);
    add_band(f, fit, "curve, 5 to 95 %", TSR_COLOUR_MODEL, 0.35, fit->low,
             fit->high);
    if (fit->start != NULL)
        tsr_figure_layer(f, TSR_LAYER_DASHES, fit->start_label, "#555555", n,
                         fit->q, fit->start, NULL);
    tsr_figure_layer(f, TSR_LAYER_LINE, fit->model_label, TSR_COLOUR_MODEL, n,
                     fit->q, fit->model, NULL);
    tsr_figure_panel(f, fit->residual_title, 0, 6 * height / 17);
    for (int k = 0; k < n; k++)
        low[k] = (fit->intensity[k] - fit->model[k]) / fit->sigma[k];
    tsr_figure_layer(f, TSR_LAYER_POINTS, NULL, TSR_COLOUR_DATA, n, fit->q, low,
                     NULL);
    const double x[2] = {fit->q[0], fit->q[n - 1]}, zero[2] = {0.0, 0.0};
    tsr_figure_layer(f, TSR_LAYER_LINE, NULL, TSR_COLOUR_MODEL, 2, x, zero,
                     NULL);
}

/* ---- the numbers as CSV ---- */

static const char *const kind_name[] = {
    [TSR_LAYER_BAND] = "band",     [TSR_LAYER_ERRORS] = "errors",
    [TSR_LAYER_LINE] = "line",     [TSR_LAYER_DASHES] = "dashes",
    [TSR_LAYER_POINTS] = "points", [TSR_LAYER_CELLS] = "cells"};

/* Quoted where RFC 4180 requires quotes. */
static void write_csv_text(FILE *out, const char *text)
{
    if (strpbrk(text, ",\"\r\n") == NULL) {
        fputs(text, out);
        return;
    }
    fputc('"', out);
    for (; *text != '\0'; text++) {
        if (*text == '"')
            fputc('"', out);
        fputc(*text, out);
    }
    fputc('"', out);
}

static void write_csv_number(FILE *out, double value)
{
    fputc(',', out);
    if (isfinite(value))
        fprintf(out, "%.9g", value);
}

tsr_status tsr_figure_write_csv(const tsr_figure *figure, const char *path,
                                tsr_err *err)
{
    tsr_file_writer to;
    tsr_status status = tsr_file_begin(&to, path, err);
    FILE *out = to.out;
    TSR_TRY(status);
    fputs("panel,series,mark,x,y,y2\n", out);
    for (int p = 0; p < figure->n_panel; p++)
        for (int k = 0; k < figure->panel[p].n_layer; k++) {
            const tsr_layer *layer = &figure->panel[p].layer[k];
            for (int i = 0; i < layer->n; i++) {
                write_csv_text(out, figure->panel[p].y_title);
                fputc(',', out);
                write_csv_text(out, layer->label != NULL ? layer->label : "");
                fprintf(out, ",%s", kind_name[layer->kind]);
                write_csv_number(out, layer->x[i]);
                write_csv_number(out, layer->y[i]);
                write_csv_number(out, layer->y2 != NULL ? layer->y2[i]
                                                        : (double)NAN);
                fputc('\n', out);
            }
        }
    return tsr_file_end(&to, TSR_OK, err);
}

/* ---- a figure as SVG ----
 *
 * Places axes, panels, legend and layers. What lies outside a panel's range is
 * clipped. Classes and data attributes mark the parts for report.js, which
 * zooms and widens the picture in a page: it makes "ticks" anew, sets the width
 * of "wide" to that of the panel, shifts "beside" (right of the panel), and
 * stretches a "layer" along x. data-place holds the position in pixels.
 */

enum {
    RIGHT = 24,
    TOP = 44,
    BOTTOM = 52,
    GAP = 16,   /* vertical, between panels */
    SCALE = 70, /* width of the colour scale */
    LEGEND_ROW = 20,
    STEPS = 64 /* colours of the colour scale */
};
static const char grid_colour[] = "#e4e4e4", frame_colour[] = "#444";

/* A panel, and its upper edge in the picture, in pixels. */
typedef struct {
    const tsr_figure *figure;
    const tsr_panel *panel;
    double top;
} placed_panel;

static double x_pixel(const placed_panel *p, double x)
{
    const tsr_figure *f = p->figure;
    return f->left + (x - f->x0) / (f->x1 - f->x0) * f->width;
}

/* NaN for y <= 0 in a logarithmic panel. */
static double y_pixel(const placed_panel *p, double y)
{
    const tsr_panel *a = p->panel;
    const double part =
        a->is_log
            ? (y > 0.0 ? log(y / a->y0) / log(a->y1 / a->y0) : (double)NAN)
            : (y - a->y0) / (a->y1 - a->y0);
    return p->top + (1.0 - part) * a->height;
}

/* Opens a group of shapes, up to end_group. format: the attributes of the
 * group. */
static void begin_group(tsr_svg *svg, const char *format, ...) TSR_PRINTF(2, 3);
static void begin_group(tsr_svg *svg, const char *format, ...)
{
    va_list list;
    va_start(list, format);
    fputs("<g ", svg->words.out);
    vfprintf(svg->words.out, format, list);
    fputs(">\n", svg->words.out);
    va_end(list);
}

static void end_group(tsr_svg *svg)
{
    fputs("</g>\n", svg->words.out);
}

/* ---- axes ---- */

static void x_axis(tsr_svg *svg, const placed_panel *p, int is_last)
{
    double first, step;
    const tsr_figure *f = p->figure;
    const double bottom = p->top + p->panel->height;
    int n = ticks(f->x0, f->x1, f->width / 90, &first, &step);
    begin_group(svg, "class=\"ticks\"");
    for (int i = 0; i < n; i++) {
        char text[32];
        const double v = first + i * step, x = x_pixel(p, v);
        if (f->is_count && v != floor(v))
            continue;
        tick_text(v, step, text);
        tsr_svg_line(svg, x, p->top, x, bottom, grid_colour, 1.0);
        if (is_last)
            tsr_svg_text(svg, x, bottom + 18.0, 13.0, TSR_SVG_MIDDLE, 0, text);
    }
    end_group(svg);
}

static void y_tick(tsr_svg *svg, const placed_panel *p, double v, double step)
{
    char text[32];
    const double y = y_pixel(p, v);
    tick_text(v, step, text);
    const double left = p->figure->left;
    fprintf(svg->words.out,
            "<line class=\"wide\" x1=\"%.2f\" y1=\"%.2f\" x2=\"%.2f\" "
            "y2=\"%.2f\" stroke=\"%s\"/>\n",
            left, y, left + p->figure->width, y, grid_colour);
    tsr_svg_text(svg, left - 8.0, y + 4.5, 13.0, TSR_SVG_END, 0, text);
}

static void y_axis(tsr_svg *svg, const placed_panel *p)
{
    const tsr_panel *a = p->panel;
    const double row = (double)a->height / (a->n_y_name + 1);
    const int every = a->n_y_name > 60 ? (a->n_y_name + 39) / 40 : 1;
    for (int i = a->n_y_name - 1; i >= 0; i -= every)
        tsr_svg_text(svg, p->figure->left - 6.0, y_pixel(p, i + 0.5) + 4.0,
                     fmin(12.0, fmax(9.0, row)), TSR_SVG_END, 0, a->y_name[i]);
    if (a->n_y_name > 0)
        return;
    if (a->is_log) {
        const int has_2_and_5 = log10(a->y1 / a->y0) < 2.3;
        for (int d = (int)floor(log10(a->y0)); d <= log10(a->y1); d++)
            for (int i = 1; i <= 9; i++) {
                const double v = i * pow(10.0, d);
                if (v >= a->y0 && v <= a->y1 &&
                    (i == 1 || (has_2_and_5 && (i == 2 || i == 5))))
                    y_tick(svg, p, v, v);
            }
        return;
    }
    double first, step;
    int n = ticks(a->y0, a->y1, a->height < 100 ? 3 : 5, &first, &step);
    if (a->is_count && step < 1.0) {
        first = ceil(a->y0);
        step = 1.0;
        n = (int)(floor(a->y1) - first) + 1;
    }
    for (int i = 0; i < n; i++) {
        y_tick(svg, p, first + i * step, step);
    }
}

static void draw_frame(tsr_svg *svg, const placed_panel *p)
{
    fprintf(svg->words.out,
            "<rect class=\"wide\" x=\"%d\" y=\"%.2f\" width=\"%d\" "
            "height=\"%d\" fill=\"none\" stroke=\"%s\"/>\n",
            p->figure->left, p->top, p->figure->width, p->panel->height,
            frame_colour);
}

/* ---- layers ---- */

static void draw_cells(tsr_svg *svg, const placed_panel *p,
                       const tsr_layer *layer)
{
    const tsr_panel *a = p->panel;
    const double width = layer->dx / (p->figure->x1 - p->figure->x0);
    for (int i = 0; layer->y2 != NULL && i < layer->n; i++) {
        char colour[8];
        const double x = x_pixel(p, layer->x[i]);
        const double y = y_pixel(p, layer->y[i] + layer->dy);
        if (!isfinite(layer->y2[i]))
            continue;
        colour_of((layer->y2[i] - a->z0) / (a->z1 - a->z0), colour);
        const double w = width * p->figure->width + 0.5;
        fprintf(svg->words.out,
                "<path d=\"M%.1f %.1fh%.2fv%.2fh%.2f\" fill=\"%s\" "
                "data-z=\"%.4g\"/>",
                x, y, w, y_pixel(p, layer->y[i]) - y + 0.5, -w, colour,
                layer->y2[i]);
    }
}

static void draw_layer(tsr_svg *svg, const placed_panel *p,
                       const tsr_layer *layer, double *x, double *y, double *y2)
{
    const double low = p->top + p->panel->height;
    for (int i = 0; i < layer->n; i++) {
        x[i] = x_pixel(p, layer->x[i]);
        y[i] = y_pixel(p, layer->y[i]);
        y2[i] = layer->y2 != NULL ? y_pixel(p, layer->y2[i]) : 0.0;
        /* an end that is not positive: draw down to the lower edge of the
         * panel */
        if (layer->kind == TSR_LAYER_ERRORS || layer->kind == TSR_LAYER_BAND) {
            y[i] = isnan(y[i]) && !isnan(y2[i]) ? low : y[i];
            y2[i] = isnan(y2[i]) && !isnan(y[i]) ? low : y2[i];
        }
    }
    const int is_dot = layer->kind == TSR_LAYER_LINE && layer->n == 1;
    fprintf(svg->words.out, "<g class=\"layer %s\" data-label=\"",
            kind_name[is_dot ? TSR_LAYER_POINTS : layer->kind]);
    tsr_text_escape(svg->words.out, layer->label != NULL ? layer->label : "");
    fputs("\">\n", svg->words.out);
    switch (layer->kind) {
    case TSR_LAYER_BAND:
        draw_area(svg, layer->n, x, y, y2, layer->colour, layer->opacity);
        break;
    case TSR_LAYER_ERRORS:
        for (int i = 0; i < layer->n; i++)
            if (isfinite(y[i]) && isfinite(y2[i]))
                tsr_svg_line(svg, x[i], y[i], x[i], y2[i], layer->colour, 1.1);
        break;
    case TSR_LAYER_LINE:
        if (is_dot && isfinite(y[0]))
            draw_circle(svg, x[0], y[0], 2.4, layer->colour);
        else
            tsr_svg_stroke(svg, layer->n, x, y, layer->colour, 1.6,
                           layer->opacity, NULL);
        break;
    case TSR_LAYER_DASHES:
        tsr_svg_stroke(svg, layer->n, x, y, layer->colour, 1.4, layer->opacity,
                       "5 4");
        break;
    case TSR_LAYER_POINTS:
        for (int i = 0; i < layer->n; i++)
            if (isfinite(x[i]) && isfinite(y[i]))
                draw_circle(svg, x[i], y[i], 1.9, layer->colour);
        break;
    case TSR_LAYER_CELLS:
        draw_cells(svg, p, layer);
        break;
    }
    end_group(svg);
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
        draw_circle(svg, x + 11.0, y - 4.5, 2.4, l->colour);
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

/* Draws the legend, the labels of the first panel, in rows from `top`. Returns
 * the number of rows. With svg NULL it only counts them. */
static int legend(tsr_svg *svg, const tsr_figure *f, double top)
{
    const tsr_panel *a = &f->panel[0];
    double x = f->left;
    int row = 0, n = 0;
    for (int l = 0; l < a->n_layer; l++) {
        const char *label = a->layer[l].label;
        if (label == NULL)
            continue;
        const double width = 30.0 + 7.4 * tsr_text_width(label) + 16.0;
        if (n++ > 0 && x + width > f->left + f->width + RIGHT) {
            x = f->left;
            row++;
        }
        if (svg != NULL) {
            const double y = top + row * LEGEND_ROW + 4.0;
            begin_group(svg, "class=\"entry\" data-place=\"%.2f %.2f %.2f\"", x,
                        y, width);
            legend_mark(svg, &a->layer[l], x, y);
            tsr_svg_text(svg, x + 28.0, y, 13.0, TSR_SVG_START, 0, label);
            end_group(svg);
        }
        x += width;
    }
    return n > 0 ? row + 1 : 0;
}

static void colour_scale(tsr_svg *svg, const placed_panel *p)
{
    const tsr_panel *a = p->panel;
    const double left = p->figure->left + p->figure->width + 14.0;
    double first, step;
    begin_group(svg, "class=\"beside\"");
    for (int i = 0; i < STEPS; i++) {
        char colour[8];
        colour_of((i + 0.5) / STEPS, colour);
        tsr_svg_rect(svg, left, p->top + a->height * (1.0 - (i + 1.0) / STEPS),
                     12.0, (double)a->height / STEPS + 0.3, colour, 1.0);
    }
    int n = ticks(a->z0, a->z1, 4, &first, &step);
    for (int i = 0; i < n; i++) {
        char text[32];
        const double v = first + i * step;
        tick_text(v, step, text);
        tsr_svg_text(svg, left + 16.0,
                     p->top + a->height * (a->z1 - v) / (a->z1 - a->z0) + 4.5,
                     12.0, TSR_SVG_START, 0, text);
    }
    if (a->z_title != NULL)
        tsr_svg_text(svg, left + 60.0, p->top + 0.5 * a->height, 13.0,
                     TSR_SVG_MIDDLE, 1, a->z_title);
    end_group(svg);
}

/* ---- the picture ---- */

static int most_points(const tsr_figure *f)
{
    int n = 5;
    for (int p = 0; p < f->n_panel; p++)
        for (int l = 0; l < f->panel[p].n_layer; l++)
            if (f->panel[p].layer[l].n > n)
                n = f->panel[p].layer[l].n;
    return n;
}

static void draw_panel(tsr_svg *svg, const tsr_figure *f, int k, double top,
                       double *scratch, int n_scratch)
{
    const tsr_panel *a = &f->panel[k];
    const placed_panel p = {f, a, top};
    begin_group(svg, "class=\"panel\" data-place=\"%.2f %d %.9g %.9g %d\"", top,
                a->height, a->y0, a->y1, a->is_log);
    x_axis(svg, &p, k + 1 == f->n_panel);
    y_axis(svg, &p);
    fprintf(svg->words.out,
            "<clipPath id=\"clip-%.60s-%d\"><rect class=\"wide\" x=\"%d\" "
            "y=\"%.2f\" width=\"%d\" height=\"%d\"/></clipPath>\n",
            f->name, k, f->left, top, f->width, a->height);
    begin_group(svg, "clip-path=\"url(#clip-%.60s-%d)\"", f->name, k);
    for (int l = 0; l < a->n_layer; l++)
        draw_layer(svg, &p, &a->layer[l], scratch, scratch + n_scratch,
                   scratch + 2 * n_scratch);
    end_group(svg);
    draw_frame(svg, &p);
    if (a->z_title != NULL)
        colour_scale(svg, &p);
    tsr_svg_text(svg, 16.0, top + 0.5 * a->height, 14.0, TSR_SVG_MIDDLE, 1,
                 a->y_title);
    end_group(svg);
}

/* Text of font size `size`, or smaller where it would not fit. A character is
 * about 0.6 times its height wide. */
static void draw_heading(tsr_svg *svg, const tsr_figure *f, double y,
                         double size, const char *text)
{
    const double most = (f->width + RIGHT) / (0.6 * tsr_text_width(text));
    tsr_svg_text(svg, f->left, y, fmin(size, most), TSR_SVG_START, 0, text);
}

static tsr_status draw_figure(const tsr_figure *f, tsr_svg **out, tsr_err *err)
{
    const int n_scratch = most_points(f);
    const double head = TOP + (f->subtitle != NULL ? LEGEND_ROW : 0);
    double top = head + legend(NULL, f, head) * LEGEND_ROW;
    double height = top + BOTTOM - GAP;
    int extra = 0;
    for (int k = 0; k < f->n_panel; k++) {
        height += f->panel[k].height + GAP;
        if (f->panel[k].z_title != NULL)
            extra = SCALE;
    }
    tsr_svg *svg = tsr_svg_new(f->left + f->width + RIGHT + extra, (int)height);
    double *scratch = calloc(3 * (size_t)n_scratch, sizeof *scratch);
    if (svg == NULL || scratch == NULL) {
        tsr_svg_free(svg);
        free(scratch);
        return tsr_fail(err, TSR_E_NOMEM, "out of memory for figure '%s'",
                        f->name);
    }
    begin_group(svg, "class=\"figure\" data-place=\"%d %d %.9g %.9g\"", f->left,
                f->width, f->x0, f->x1);
    draw_heading(svg, f, 24.0, 16.0, f->title);
    if (f->subtitle != NULL)
        draw_heading(svg, f, 46.0, 13.0, f->subtitle);
    legend(svg, f, head);
    begin_group(svg, "class=\"below\"");
    for (int k = 0; k < f->n_panel; k++) {
        draw_panel(svg, f, k, top, scratch, n_scratch);
        top += f->panel[k].height + GAP;
    }
    tsr_svg_text(svg, f->left + 0.5 * f->width, top - GAP + 40.0, 14.0,
                 TSR_SVG_MIDDLE, 0, f->x_title);
    end_group(svg);
    end_group(svg);
    free(scratch);
    *out = svg;
    return TSR_OK;
}

tsr_status tsr_figure_svg_text(const tsr_figure *figure, char **text,
                               tsr_err *err)
{
    tsr_svg *svg = NULL;
    *text = NULL;
    tsr_status status = draw_figure(figure, &svg, err);
    TSR_THEN(status, finish_svg(svg, text, err));
    tsr_svg_free(svg);
    return status;
}

tsr_status tsr_figure_write_svg(const tsr_figure *figure, const char *path,
                                tsr_err *err)
{
    char *text;
    tsr_status status = tsr_figure_svg_text(figure, &text, err);
    TSR_THEN(status, tsr_file_replace(path, text, strlen(text), err));
    free(text);
    return status;
}
