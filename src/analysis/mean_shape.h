/* The mean of conformations, each superposed on it. */
#ifndef TSR_ANALYSIS_MEAN_SHAPE_H
#define TSR_ANALYSIS_MEAN_SHAPE_H

#include "analysis/frames.h"

/* CA of frame i: ca [n_residue][3]. Errors: those of tsr_frames_read. */
tsr_status tsr_frames_read_ca(tsr_frames *frames, int i, double (*ca)[3],
                              tsr_err *err);

/* Of the frames at [n]: mean [n_residue][3], and the mean square deviation of
 * each residue from it, square [n_residue] Angstrom^2. Reads them four times.
 * Errors: those of tsr_frames_read, TSR_E_NOMEM. */
tsr_status tsr_mean_shape_make(tsr_frames *frames, int n, const int *at,
                               double (*mean)[3], double *square, tsr_err *err);

#endif
