/* The points of a data set one by one, for noise models whose weights change
 * with their parameters: the curve at the data's q is kept in the fit. */
#ifndef TSR_LIKELIHOOD_DATA_POINTS_H
#define TSR_LIKELIHOOD_DATA_POINTS_H

#include "likelihood/noise.h"

typedef struct {
    tsr_linear linear;
    const tsr_saxs *saxs; /* borrowed */
    int n_q;
    double *column; /* [n_q][n] from the grid to the data, by columns */
    double *weight; /* [n] 1 / sigma_exp^2 */
} tsr_data_points;

/* Returns 0 when out of memory; clear it then too. */
int tsr_data_points_make(tsr_data_points *points, const tsr_noise_spec *spec);
void tsr_data_points_clear(tsr_data_points *points);

/* fit->model [n] from the profile, then the fit by sigma_exp with its chi2. */
void tsr_data_points_fit(const tsr_data_points *points, const double *profile,
                         tsr_fit *fit);

#endif
