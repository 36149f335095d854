/* The mean of conformations, each superposed on it. */
#ifndef TSR_ANALYSIS_MEAN_SHAPE_H
#define TSR_ANALYSIS_MEAN_SHAPE_H

#include "analysis/frames.h"
#include "core/vec3.h"

/* The rigid motion that brings one set of points nearest to another. */

/* The motion of `moving` [n][3] with the least root mean square distance to
 * `fixed` [n][3], which it returns, in their unit. No mirror images. Source:
 * Horn 1987, J. Opt. Soc. Am. A 4, 629 (unit quaternions). */
double tsr_superpose(int n, const double (*fixed)[3], const double (*moving)[3],
                     tsr_motion *motion);

/* CA of the frames at [n], read once: *ca [n][n_residue][3] Angstrom, caller
 * frees. Errors: those of tsr_frames_read, TSR_E_NOMEM. */
tsr_status tsr_frames_gather_ca(tsr_frames *frames, int n, const int *at,
                                float **ca, tsr_err *err);

/* How many conformations of that many residues some 200 MB hold. */
int tsr_frames_that_fit(int n_residue);

/* One of them as double. ca [n_residue][3] out. */
void tsr_ca_of(const float *all, int n_residue, int i, double (*ca)[3]);

/* Their mean, mean [n_residue][3], and the mean square deviation of each
 * residue from it, square [n_residue] Angstrom^2. Errors: TSR_E_NOMEM. */
tsr_status tsr_mean_shape_make(int n, int n_residue, const float *all,
                               double (*mean)[3], double *square, tsr_err *err);

#endif
