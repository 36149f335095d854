/* The curves of an ensemble in the dimensions that they span: principal
 * components of the draws' curves by sigma. For src/analysis/maxent*.c. */
#ifndef TSR_ANALYSIS_MAXENT_CURVES_H
#define TSR_ANALYSIS_MAXENT_CURVES_H

#include "analysis/stored_curve.h"

#include <gsl/gsl_matrix.h>

/* Curves by sigma, in two passes: mean and covariance, then the components. */
typedef struct {
    const tsr_stored_curve *stored;
    const tsr_saxs *saxs;
    double *matrix; /* [n][stored->n] to the data's q */
    int n, n_dim, n_seen;
    double *curve, *mean; /* [n] I / sigma */
    gsl_matrix *covariance;
    double *axis;  /* [n_dim][n] */
    double *score; /* [n_draw][n_dim] */
} tsr_maxent_curves;

/* At the q of saxs; score [n_seen][n_dim]. Clear it also after an error.
 * Errors: those of tsr_curve_operator and tsr_stored_curve_each, TSR_E_DATA
 * (all curves are the same), TSR_E_NOMEM. */
tsr_status tsr_maxent_curves_make(const tsr_stored_curve *stored,
                                  const tsr_saxs *saxs,
                                  tsr_maxent_curves *curves, tsr_err *err);
void tsr_maxent_curves_clear(tsr_maxent_curves *curves);

#endif
