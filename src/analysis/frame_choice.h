/* Which of a run's conformations are looked at, and how much each counts. */
#ifndef TSR_ANALYSIS_FRAME_CHOICE_H
#define TSR_ANALYSIS_FRAME_CHOICE_H

#include "analysis/frames.h"
#include "store/trace.h"

/* At most `most` frames of evenly chosen draws, of an ensemble all states of
 * each: at [most] numbers of frames, ascending; draw [most] which of the chosen
 * draws each belongs to, from 0; *n_draw of them. Returns how many frames; 0
 * where memory was out. */
int tsr_frames_spread(const tsr_frames *frames, int most, int *at, int *draw,
                      int *n_draw);

/* The weight of each frame's state in its draw, *weight [all frames], caller
 * frees; NULL where all count alike: one state, fixed weights, no trace.
 * Errors: TSR_E_NOMEM. */
tsr_status tsr_frames_weights(const tsr_frames *frames, tsr_trace_reader *trace,
                              double **weight, tsr_err *err);

#endif
