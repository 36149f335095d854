/* Intensities span decades and their errors grow towards large q, so a fit is
 * judged in two panels: on a logarithmic axis, whether the curve has the data's
 * shape, and in residuals by sigma, whether what is left is noise. */
#include "report/fit_figure.h"

#include <math.h>
#include <stdlib.h>

/* The ends of a logarithmic panel: the curve's, and the data's but for points
 * that noise has taken far below it. */
static void set_range(const tsr_fit_figure *fit, tsr_panel *panel)
{
    double low = HUGE_VAL, high = 0.0;
    for (int k = 0; k < fit->n; k++) {
        if (fit->model[k] > 0.0)
            low = fmin(low, fit->model[k]);
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
