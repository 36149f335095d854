/* The conformations of a run, over all its trajectory files: which there are,
 * and one after the other, in memory that does not grow with their number. */
#ifndef TSR_ANALYSIS_FRAMES_H
#define TSR_ANALYSIS_FRAMES_H

#include "core/log.h"
#include "core/status.h"
#include "molecule/structure.h"
#include "store/trace.h"

typedef struct {
    int chain, state; /* of an ensemble from 1; 0: the only one */
    long draw;
    int file, index; /* where it is stored */
} tsr_drawn_frame;

typedef struct tsr_frames tsr_frames;

/* Opens trajectory-*.h5 and model.pdb of a run's directory. A file that cannot
 * be read is left out, which the log tells (may be NULL). Errors: TSR_E_NOINPUT
 * (no trajectory: with the setting that stores them), TSR_E_DATA (none can be
 * read; another number of atoms than model.pdb), those of tsr_model_atoms_read.
 */
tsr_status tsr_frames_open(const char *directory, tsr_log *log,
                           tsr_frames **out, tsr_err *err);
void tsr_frames_free(tsr_frames *frames);

const tsr_model_atoms *tsr_frames_atoms(const tsr_frames *frames);

/* All frames, by chain, state and draw: *frame [n], returns n. */
int tsr_frames_list(const tsr_frames *frames, const tsr_drawn_frame **frame);

/* The last state of an ensemble; 0: there is only one. */
int tsr_frames_last_state(const tsr_frames *frames);

/* Frame i: *xyz [n_atom][3] Angstrom, valid until the next call. Cheap in the
 * order of the list. Errors: TSR_E_DATA, TSR_E_IO. */
tsr_status tsr_frames_read(tsr_frames *frames, int i, const float **xyz,
                           tsr_err *err);

/* The k-th of m numbers, evenly among 0 to n - 1: the first and the last are
 * in.
 */
int tsr_even_index(int n, int m, int k);

/* Which of a run's conformations are looked at, and how much each counts. */

/* At most `most` frames of evenly chosen draws, of an ensemble all states of
 * each: at [most] numbers of frames, ascending; draw [most] which of the chosen
 * draws each belongs to, from 0; *n_draw of them. Returns how many frames; 0
 * where memory was out. */
int tsr_frames_select(const tsr_frames *frames, int most, int *at, int *draw,
                      int *n_draw);

/* The weight of each frame's state in its draw, *weight [all frames], caller
 * frees; NULL where all count alike: one state, fixed weights, no trace.
 * Errors: TSR_E_NOMEM. */
tsr_status tsr_frames_weights(const tsr_frames *frames, tsr_trace_reader *trace,
                              double **weight, tsr_err *err);

#endif
