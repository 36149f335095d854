/* A picture of a fit: data with errors and curve, log intensity, and below it
 * the residuals in units of sigma. */
#ifndef TSR_ANALYSIS_FIT_FIGURE_H
#define TSR_ANALYSIS_FIT_FIGURE_H

#include "core/status.h"

typedef struct {
    int n;
    const double *q;                 /* [n] 1/Angstrom, ascending */
    const double *intensity, *sigma; /* [n] */
    const double *model;             /* [n] */
    const char *title, *subtitle;    /* one line each */
} tsr_fit_figure;

/* As SVG. Points with I <= 0 cannot stand on the log scale: they are in the
 * residuals alone, and counted. Where there are many points, errors are drawn
 * for some. Errors: TSR_E_IO, TSR_E_NOMEM. */
tsr_status tsr_fit_figure_write(const tsr_fit_figure *figure, const char *path,
                                tsr_err *err);

#endif
