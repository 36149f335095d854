/* A figure is collected panel by panel, layer by layer, from the places that
 * have the numbers; ranges and ticks are found when all of it is there. */
#include "report/figure.h"
#include "core/json.h"
#include "files/file.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

static char *copy_text(tsr_figure *figure, const char *text)
{
    char *copy = text != NULL ? strdup(text) : NULL;
    if (text != NULL && copy == NULL)
        figure->is_short = 1;
    return copy;
}

tsr_figure tsr_figure_new(const char *name, const char *title,
                          const char *x_title, int width)
{
    tsr_figure f = {.width = width};
    f.name = copy_text(&f, name);
    f.title = copy_text(&f, title);
    f.x_title = copy_text(&f, x_title);
    return f;
}

static void layer_clear(tsr_layer *layer)
{
    free(layer->label);
    free(layer->x);
    free(layer->y);
    free(layer->y2);
}

void tsr_figure_clear(tsr_figure *figure)
{
    for (int p = 0; p < figure->n_panel; p++) {
        tsr_panel *panel = &figure->panel[p];
        for (int l = 0; l < panel->n_layer; l++)
            layer_clear(&panel->layer[l]);
        free(panel->layer);
        free(panel->y_title);
    }
    for (int i = 0; i < figure->n_x_name; i++)
        free(figure->x_name[i]);
    free(figure->x_name);
    free(figure->panel);
    free(figure->name);
    free(figure->title);
    free(figure->subtitle);
    free(figure->x_title);
    *figure = (tsr_figure){.n_panel = 0};
}

tsr_panel *tsr_figure_panel(tsr_figure *figure, const char *y_title, int is_log,
                            int height)
{
    size_t n = (size_t)figure->n_panel + 1;
    tsr_panel *panel = realloc(figure->panel, n * sizeof *panel);
    if (panel == NULL) {
        figure->is_short = 1;
        return &figure->spare_panel;
    }
    figure->panel = panel;
    panel[n - 1] = (tsr_panel){.is_log = is_log,
                               .height = height,
                               .y_title = copy_text(figure, y_title)};
    figure->n_panel++;
    return &panel[n - 1];
}

void tsr_figure_names(tsr_figure *figure, int n, const char *const *name)
{
    figure->x_name = calloc((size_t)n + 1, sizeof *figure->x_name);
    figure->is_short |= figure->x_name == NULL;
    figure->n_x_name = figure->x_name != NULL ? n : 0;
    for (int i = 0; i < figure->n_x_name; i++)
        figure->x_name[i] = copy_text(figure, name[i]);
    figure->x0 = 0.0;
    figure->x1 = n;
}

static double *copy_numbers(int n, const double *x)
{
    double *copy = malloc(((size_t)n + 1) * sizeof *copy);
    if (copy != NULL && n > 0)
        memcpy(copy, x, (size_t)n * sizeof *copy);
    return copy;
}

tsr_layer *tsr_figure_layer(tsr_figure *figure, tsr_layer_kind kind,
                            const char *label, const char *colour, int n,
                            const double *x, const double *y, const double *y2)
{
    if (figure->n_panel == 0)
        return &figure->spare_layer; /* its panel found no memory */
    tsr_panel *panel = &figure->panel[figure->n_panel - 1];
    size_t room = (size_t)panel->n_layer + 1;
    tsr_layer *layer = realloc(panel->layer, room * sizeof *layer);
    if (layer == NULL) {
        figure->is_short = 1;
        return &figure->spare_layer;
    }
    panel->layer = layer;
    layer += room - 1;
    *layer = (tsr_layer){.kind = kind,
                         .colour = colour,
                         .opacity = 1.0,
                         .n = n,
                         .label = copy_text(figure, label),
                         .x = copy_numbers(n, x),
                         .y = copy_numbers(n, y),
                         .y2 = y2 != NULL ? copy_numbers(n, y2) : NULL};
    panel->n_layer++;
    if (layer->x == NULL || layer->y == NULL ||
        (y2 != NULL && layer->y2 == NULL)) {
        figure->is_short = 1;
        layer->n = 0;
    }
    return layer;
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

/* Something to draw on, also where there is nothing, or one number. */
static void settle(range *r, int is_log)
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

static void add_air(range *r, int is_log)
{
    const double share = 0.05;
    if (is_log) {
        const double factor = pow(r->high / r->low, share);
        *r = (range){r->low / factor, r->high * factor};
    } else {
        const double air = share * (r->high - r->low);
        *r = (range){r->low - air, r->high + air};
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
    settle(&y, panel->is_log);
    if (!has_cells)
        add_air(&y, panel->is_log);
    if (panel->y0 == panel->y1)
        panel->y0 = y.low, panel->y1 = y.high;
    settle(&z, 0);
    if (panel->z0 == panel->z1)
        panel->z0 = z.low, panel->z1 = z.high;
}

tsr_status tsr_figure_finish(tsr_figure *figure, tsr_err *err)
{
    range x = {HUGE_VAL, -HUGE_VAL};
    for (int p = 0; p < figure->n_panel; p++)
        finish_panel(&figure->panel[p], &x);
    settle(&x, 0);
    if (figure->x0 == figure->x1)
        figure->x0 = x.low, figure->x1 = x.high;
    return figure->is_short || figure->n_panel == 0 ? tsr_no_memory(err)
                                                    : TSR_OK;
}

int tsr_figure_ticks(double low, double high, int n, double *first,
                     double *step)
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

void tsr_figure_tick_text(double value, double step, char text[32])
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

void tsr_figure_colour(double z, char text[8])
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

/* Intensities span decades and their errors grow towards large q, so a fit is
 * judged in two panels: on a logarithmic axis, whether the curve has the data's
 * shape, and in residuals by sigma, whether what is left is noise. */

/* The ends of a logarithmic panel: the curve's, and the data's but for points
 * that noise has taken far below it. */
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
        const double air = pow(high / low, 0.05);
        panel->y0 = low / air;
        panel->y1 = high * air;
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
    double *low = calloc(2 * (size_t)n + 1, sizeof *low), *high = low + n;
    if (low == NULL) {
        f->is_short = 1;
        return;
    }
    set_range(fit, tsr_figure_panel(f, "I(q)", 1, height));
    add_band(f, fit, "new data, 5 to 95 %", "#f1c4bb", 0.6, fit->seen_low,
             fit->seen_high);
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
    free(low);
}

/* A figure's numbers for other programs: a table (CSV) beside the picture, and
 * the whole description as JSON, from which report.js makes the interactive
 * figure of the page. */

static const char *const kind_name[] = {
    [TSR_LAYER_BAND] = "band",     [TSR_LAYER_ERRORS] = "errors",
    [TSR_LAYER_LINE] = "line",     [TSR_LAYER_DASHES] = "dashes",
    [TSR_LAYER_POINTS] = "points", [TSR_LAYER_CELLS] = "cells"};

/* Quoted where RFC 4180 asks for it. */
static void put_text(FILE *out, const char *text)
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

static void put_number(FILE *out, double value)
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
    if (status != TSR_OK)
        return status;
    fputs("panel,series,mark,x,y,y2\n", out);
    for (int p = 0; p < figure->n_panel; p++)
        for (int k = 0; k < figure->panel[p].n_layer; k++) {
            const tsr_layer *layer = &figure->panel[p].layer[k];
            for (int i = 0; i < layer->n; i++) {
                put_text(out, figure->panel[p].y_title);
                fputc(',', out);
                put_text(out, layer->label != NULL ? layer->label : "");
                fprintf(out, ",%s", kind_name[layer->kind]);
                put_number(out, layer->x[i]);
                put_number(out, layer->y[i]);
                put_number(out, layer->y2 != NULL ? layer->y2[i] : (double)NAN);
                fputc('\n', out);
            }
        }
    return tsr_file_end(&to, TSR_OK, err);
}

static void put_layer(tsr_json *j, const tsr_layer *layer)
{
    tsr_json_object(j, NULL);
    tsr_json_text(j, "kind", kind_name[layer->kind]);
    tsr_json_text(j, "label", layer->label);
    tsr_json_text(j, "colour", layer->colour);
    tsr_json_number(j, "opacity", layer->opacity);
    tsr_json_number(j, "dx", layer->dx);
    tsr_json_number(j, "dy", layer->dy);
    tsr_json_numbers(j, "x", layer->n, layer->x);
    tsr_json_numbers(j, "y", layer->n, layer->y);
    if (layer->y2 != NULL)
        tsr_json_numbers(j, "z", layer->n, layer->y2);
    tsr_json_close(j);
}

static void put_panel(tsr_json *j, const tsr_panel *panel)
{
    tsr_json_object(j, NULL);
    tsr_json_text(j, "title", panel->y_title);
    tsr_json_truth(j, "log", panel->is_log);
    tsr_json_truth(j, "isCount", panel->is_count);
    tsr_json_integer(j, "height", panel->height);
    j->digits = 9;
    tsr_json_number(j, "y0", panel->y0);
    tsr_json_number(j, "y1", panel->y1);
    tsr_json_number(j, "z0", panel->z0);
    tsr_json_number(j, "z1", panel->z1);
    j->digits = 7;
    tsr_json_text(j, "zTitle", panel->z_title);
    tsr_json_array(j, "layers");
    for (int l = 0; l < panel->n_layer; l++)
        put_layer(j, &panel->layer[l]);
    tsr_json_close(j);
    tsr_json_close(j);
}

void tsr_figure_print_json(const tsr_figure *figure, FILE *out)
{
    tsr_json j = {.out = out, .digits = 9, .is_script = 1};
    tsr_json_object(&j, NULL);
    tsr_json_text(&j, "xTitle", figure->x_title);
    tsr_json_integer(&j, "width", figure->width);
    tsr_json_number(&j, "x0", figure->x0);
    tsr_json_number(&j, "x1", figure->x1);
    tsr_json_array(&j, "panels");
    for (int p = 0; p < figure->n_panel; p++)
        put_panel(&j, &figure->panel[p]);
    tsr_json_close(&j);
    tsr_json_close(&j);
}
