/* The stored conformations of a run, over all its trajectory files. Frames are
 * listed once and read one at a time, in memory independent of their number. */
#ifndef TSR_ANALYSIS_FRAMES_H
#define TSR_ANALYSIS_FRAMES_H

#include "core/log.h"
#include "core/status.h"
#include "molecule/structure.h"
#include "store/trace.h"

/* A stored conformation. */
typedef struct {
    int chain, state; /* state: number in an ensemble, from 1; 0: the run has
                         one state */
    long draw;
    int file, index; /* number of the file, and of the frame in the file */
} tsr_drawn_frame;

typedef struct tsr_frames tsr_frames;

/* Opens trajectory-*.h5 and model.pdb in a run's directory. Trajectories that
 * cannot be read, or whose numbers of atoms differ from model.pdb, are left out
 * with a warning to `log` (may be NULL). Errors: TSR_E_NOINPUT (no trajectory,
 * naming the setting that stores them), TSR_E_DATA (no usable trajectory, or no
 * frame), those of tsr_model_atoms_read, TSR_E_NOMEM. */
tsr_status tsr_frames_open(const char *directory, tsr_log *log,
                           tsr_frames **out, tsr_err *err);
void tsr_frames_free(tsr_frames *frames);

/* The atoms of model.pdb. */
const tsr_model_atoms *tsr_frames_atoms(const tsr_frames *frames);

/* All frames, sorted by chain, state and draw: *frame [n]. Returns n. */
int tsr_frames_list(const tsr_frames *frames, const tsr_drawn_frame **frame);

/* Number of states of an ensemble; 0: the run has one state. */
int tsr_frames_last_state(const tsr_frames *frames);

/* Reads frame i of the list: *xyz [n_atom][3], Angstrom, valid until the next
 * call. Reading is fast in the order of the list. Errors: TSR_E_DATA,
 * TSR_E_IO. */
tsr_status tsr_frames_read(tsr_frames *frames, int i, const float **xyz,
                           tsr_err *err);

/* Number k, from 0, of m numbers that are spread evenly over 0 to n - 1, both
 * ends included; 0 where m is 1. */
int tsr_even_index(int n, int m, int k);

/* ---- choice and weights of conformations for an analysis ---- */

/* Chooses at most `most` frames of evenly spread draws, in an ensemble all
 * states of each draw.
 * at       [most]  out  numbers of the frames, ascending
 * draw     [most]  out  number of each frame's draw among the chosen draws
 * *n_draw          out  chosen draws
 * Returns the number of frames; 0: out of memory. */
int tsr_frames_select(const tsr_frames *frames, int most, int *at, int *draw,
                      int *n_draw);

/* Weight of each frame's state in its draw, *weight [all frames], caller frees.
 * A frame that the trace lacks has the weight 1 / n_state. NULL where all
 * frames have equal weights: the run has one state, its weights are fixed, or
 * trace is NULL or lacks finite weights. Errors: TSR_E_NOMEM. */
tsr_status tsr_frames_weights(const tsr_frames *frames, tsr_trace_reader *trace,
                              double **weight, tsr_err *err);

#endif
