#include "analysis/fit_figure.h"

#include "analysis/svg.h"
#include "core/text.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

enum { WIDTH = 760, HEIGHT = 640, MAX_BARS = 120 };
static const char data_colour[] = "#3b6ea5", bar_colour[] = "#b9cde2",
                  model_colour[] = "#c8321e", grid_colour[] = "#e4e4e4",
                  frame_colour[] = "#444";

/* A panel: pixels of its frame, numbers at its edges. */
typedef struct {
    double left, right, top, bottom;
    double x0, x1, y0, y1;
} panel;

static double at_x(const panel *p, double x)
{
    return p->left + (x - p->x0) / (p->x1 - p->x0) * (p->right - p->left);
}

static double at_y(const panel *p, double y)
{
    return p->bottom - (y - p->y0) / (p->y1 - p->y0) * (p->bottom - p->top);
}

static double clamp(double x, double low, double high)
{
    return x < low ? low : x > high ? high : x;
}

/* 1, 2 or 5 times a power of ten, such that some `n` steps make `range`. */
static double step_of(double range, int n)
{
    double raw = range / n, power = pow(10.0, floor(log10(raw)));
    double lead = raw / power;
    return power * (lead < 1.5   ? 1.0
                    : lead < 3.5 ? 2.0
                    : lead < 7.5 ? 5.0
                                 : 10.0);
}

static void frame(tsr_svg *svg, const panel *p)
{
    tsr_svg_line(svg, p->left, p->top, p->right, p->top, frame_colour, 1.0);
    tsr_svg_line(svg, p->left, p->bottom, p->right, p->bottom, frame_colour,
                 1.0);
    tsr_svg_line(svg, p->left, p->top, p->left, p->bottom, frame_colour, 1.0);
    tsr_svg_line(svg, p->right, p->top, p->right, p->bottom, frame_colour, 1.0);
}

static void q_axis(tsr_svg *svg, const panel *p, int with_numbers)
{
    double step = step_of(p->x1 - p->x0, 7);
    int last = (int)floor(p->x1 / step + 1e-9);
    for (int i = (int)ceil(p->x0 / step - 1e-9); i <= last; i++) {
        char text[32];
        double q = i * step, x = at_x(p, q);
        tsr_svg_line(svg, x, p->top, x, p->bottom, grid_colour, 1.0);
        snprintf(text, sizeof text, "%.6g", q);
        if (with_numbers)
            tsr_svg_text(svg, x, p->bottom + 19.0, 14.0, TSR_SVG_MIDDLE, 0,
                         text);
    }
}

/* Decades, or where there are few of them 1, 2 and 5 of each. */
static void log_axis(tsr_svg *svg, const panel *p)
{
    int is_fine = p->y1 - p->y0 < 1.7;
    for (int d = (int)floor(p->y0); d <= (int)floor(p->y1); d++)
        for (int i = 1; i <= 9; i++) {
            double y = d + log10(i);
            if (y < p->y0 || y > p->y1)
                continue;
            double here = at_y(p, y);
            int is_main = i == 1 || (is_fine && (i == 2 || i == 5));
            tsr_svg_line(svg, p->left, here, is_main ? p->right : p->left + 5.0,
                         here, is_main ? grid_colour : frame_colour, 1.0);
            char text[32];
            snprintf(text, sizeof text, "%.6g", i * pow(10.0, d));
            if (i == 1 && !is_fine)
                tsr_svg_power_of_ten(svg, p->left - 8.0, here + 5.0, 14.0,
                                     TSR_SVG_END, d);
            else if (is_main)
                tsr_svg_text(svg, p->left - 8.0, here + 5.0, 14.0, TSR_SVG_END,
                             0, text);
        }
}

static void residual_axis(tsr_svg *svg, const panel *p)
{
    double step = step_of(p->y1 - p->y0, 5);
    int last = (int)floor(p->y1 / step);
    for (int i = (int)ceil(p->y0 / step); i <= last; i++) {
        char text[32];
        double y = i * step;
        snprintf(text, sizeof text, "%.4g", y);
        tsr_svg_line(svg, p->left, at_y(p, y), p->right, at_y(p, y),
                     grid_colour, 1.0);
        tsr_svg_text(svg, p->left - 8.0, at_y(p, y) + 5.0, 14.0, TSR_SVG_END, 0,
                     text);
    }
}

/* The decades that hold curve and data, but not every stray point: below it
 * ends at a third of the curve's lowest, or the tenth-lowest of the data. */
static void log_range(const tsr_fit_figure *f, panel *p)
{
    double low = (double)INFINITY, high = -(double)INFINITY;
    for (int k = 0; k < f->n; k++) {
        if (f->model[k] > 0.0) {
            low = fmin(low, log10(f->model[k]));
            high = fmax(high, log10(f->model[k]));
        }
        if (f->intensity[k] > 0.0)
            high = fmax(high, log10(f->intensity[k]));
    }
    if (!(low < high))
        low = high - 1.0;
    for (int k = 0; k < f->n; k++)
        if (f->intensity[k] > f->sigma[k])
            low = fmin(low, log10(f->intensity[k]));
    double pad = 0.06 * (high - low) + 0.03;
    p->y0 = low - pad;
    p->y1 = high + pad;
}

static int ascending(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

static void residual_range(const tsr_fit_figure *f, double *scratch, panel *p)
{
    for (int k = 0; k < f->n; k++)
        scratch[k] = fabs((f->intensity[k] - f->model[k]) / f->sigma[k]);
    qsort(scratch, (size_t)f->n, sizeof *scratch, ascending);
    double most = scratch[(int)(0.99 * (f->n - 1))];
    p->y1 = fmax(3.5, 1.15 * most);
    p->y0 = -p->y1;
}

static double log_or_nan(double x)
{
    return x > 0.0 ? log10(x) : (double)NAN;
}

static void draw_curve(tsr_svg *svg, const panel *p, const tsr_fit_figure *f,
                       double *x, double *y)
{
    int every = (f->n + MAX_BARS - 1) / MAX_BARS;
    for (int k = 0; k < f->n; k += every) {
        double low = f->intensity[k] - f->sigma[k];
        double high = log_or_nan(f->intensity[k] + f->sigma[k]);
        if (isnan(high) || high < p->y0)
            continue;
        low = low > 0.0 ? log10(low) : p->y0;
        tsr_svg_line(svg, at_x(p, f->q[k]), at_y(p, clamp(low, p->y0, p->y1)),
                     at_x(p, f->q[k]), at_y(p, clamp(high, p->y0, p->y1)),
                     bar_colour, 1.2);
    }
    for (int k = 0; k < f->n; k++) {
        double i = log_or_nan(f->intensity[k]);
        if (i >= p->y0 && i <= p->y1)
            tsr_svg_circle(svg, at_x(p, f->q[k]), at_y(p, i), 1.9, data_colour,
                           1);
        x[k] = at_x(p, f->q[k]);
        y[k] = at_y(p, log_or_nan(f->model[k]));
    }
    tsr_svg_path(svg, f->n, x, y, model_colour, 2.0);
}

static void draw_residuals(tsr_svg *svg, const panel *p,
                           const tsr_fit_figure *f)
{
    tsr_svg_line(svg, p->left, at_y(p, 0.0), p->right, at_y(p, 0.0),
                 model_colour, 1.6);
    for (int k = 0; k < f->n; k++) {
        double r = (f->intensity[k] - f->model[k]) / f->sigma[k];
        int is_inside = r >= p->y0 && r <= p->y1;
        tsr_svg_circle(svg, at_x(p, f->q[k]), at_y(p, clamp(r, p->y0, p->y1)),
                       is_inside ? 1.9 : 3.0, data_colour, is_inside);
    }
}

static void legend(tsr_svg *svg, const panel *p, const tsr_fit_figure *f)
{
    double x = p->right - 225.0, y = p->top + 26.0;
    int n_below = 0;
    for (int k = 0; k < f->n; k++)
        n_below += f->intensity[k] <= 0.0;
    tsr_svg_line(svg, x + 12.0, y - 12.0, x + 12.0, y + 3.0, bar_colour, 1.2);
    tsr_svg_circle(svg, x + 12.0, y - 4.5, 2.4, data_colour, 1);
    tsr_svg_text(svg, x + 34.0, y, 15.0, TSR_SVG_START, 0, "measured");
    tsr_svg_line(svg, x, y + 17.0, x + 24.0, y + 17.0, model_colour, 2.0);
    tsr_svg_text(svg, x + 34.0, y + 22.0, 15.0, TSR_SVG_START, 0, "computed");
    if (n_below == 0)
        return;
    char text[64];
    snprintf(text, sizeof text, "%d points with I \xe2\x89\xa4 0 not shown",
             n_below);
    tsr_svg_text(svg, x, y + 44.0, 13.0, TSR_SVG_START, 0, text);
}

/* As large as `size` where the page is wide enough; a letter is some 0.6 of its
 * height wide. */
static void heading(tsr_svg *svg, double x, double y, double size,
                    const char *text)
{
    double room = (WIDTH - x - 8.0) / (0.6 * fmax(1.0, tsr_text_width(text)));
    tsr_svg_text(svg, x, y, fmin(size, room), TSR_SVG_START, 0, text);
}

tsr_status tsr_fit_figure_write(const tsr_fit_figure *figure, const char *path,
                                tsr_err *err)
{
    const tsr_fit_figure *f = figure;
    panel top = {.left = 88, .right = WIDTH - 24, .top = 70, .bottom = 430};
    panel low = {.left = 88, .right = WIDTH - 24, .top = 450, .bottom = 580};
    tsr_svg *svg = tsr_svg_new(WIDTH, HEIGHT);
    double *scratch = calloc(2 * (size_t)f->n, sizeof *scratch);
    if (svg == NULL || scratch == NULL) {
        tsr_svg_free(svg);
        free(scratch);
        return tsr_fail(err, TSR_E_NOMEM, "out of memory for a picture");
    }
    double q_top = f->q[f->n - 1];
    top.x0 = low.x0 = f->q[0] < 0.15 * q_top ? 0.0 : f->q[0];
    top.x1 = low.x1 = q_top + 0.02 * (q_top - top.x0);
    log_range(f, &top);
    residual_range(f, scratch, &low);
    heading(svg, top.left, 30.0, 18.0, f->title);
    heading(svg, top.left, 54.0, 14.0, f->subtitle);
    q_axis(svg, &top, 0);
    q_axis(svg, &low, 1);
    log_axis(svg, &top);
    residual_axis(svg, &low);
    draw_curve(svg, &top, f, scratch, scratch + f->n);
    draw_residuals(svg, &low, f);
    legend(svg, &top, f);
    frame(svg, &top);
    frame(svg, &low);
    tsr_svg_text(svg, 26.0, 0.5 * (top.top + top.bottom), 16.0, TSR_SVG_MIDDLE,
                 1, "I(q)");
    tsr_svg_text(svg, 26.0, 0.5 * (low.top + low.bottom), 16.0, TSR_SVG_MIDDLE,
                 1, "residual / \xcf\x83");
    tsr_svg_text(svg, 0.5 * (low.left + low.right), HEIGHT - 14.0, 16.0,
                 TSR_SVG_MIDDLE, 0, "q (1/\xc3\x85)");
    tsr_status status = tsr_svg_write(svg, path, err);
    tsr_svg_free(svg);
    free(scratch);
    return status;
}
