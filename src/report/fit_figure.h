/* The figure of a fit: data with errors and curve over a logarithmic axis, and
 * below it the residuals in units of sigma. A fit of one structure and that of
 * a posterior are the same picture, the latter with bands. */
#ifndef TSR_ANALYSIS_FIT_FIGURE_H
#define TSR_ANALYSIS_FIT_FIGURE_H

#include "report/figure.h"

typedef struct {
    int n;
    const double *q;                 /* [n] 1/Angstrom, ascending */
    const double *intensity, *sigma; /* [n] */
    const double *model;             /* [n] */
    const char *model_label, *residual_title;
    /* Bands of the curve and of new data, [n]; NULL: none. */
    const double *low, *high, *seen_low, *seen_high;
} tsr_fit_figure;

/* Colours that keep their meaning over all figures. */
#define TSR_COLOUR_DATA "#3b6ea5"
#define TSR_COLOUR_ERROR "#b9cde2"
#define TSR_COLOUR_MODEL "#c8321e"

/* The two panels, below those that are there: `height` pixels and a third of
 * it. What has no logarithm is in the residuals alone. Out of memory: as
 * tsr_figure_layer. */
void tsr_fit_figure_add(tsr_figure *figure, const tsr_fit_figure *fit,
                        int height);

#endif
