/* trajectory-NNN.h5: conformations of one chain (and state) as H5MD 1.1 (de
 * Buyl, Colberg, Hoefling 2014; https://nongnu.org/h5md), one frame every
 * `stride` draws. MDAnalysis opens it with model.pdb as topology.
 *
 *   /h5md                        version [1, 1]; author, creator
 *   /parameters                  attributes chain, state, stride
 *   /particles/atoms             the ATOM records of model.pdb
 *       box                      dimension 3, boundary none none none
 *       position/value           float32 [frame][n][3], unit "Angstrom"
 *       position/step            int64   [frame], number of the draw
 *       position/time            float64 [frame], the same number; its unit
 *                                "ps" has no meaning, MDAnalysis requires it
 *   /observables/NAME/value      float64 [frame], unit; step, time as above
 *
 * All `step` are links to one data set, and so are all `time`.
 *
 * The file is written as a whole, and replaced as a whole to add frames.
 * Readers verify its seal (store/hdf5_store.h). During a run and after a kill,
 * the newest frames are in the log beside the file (store/draw_log.h), and
 * opening the trajectory includes them. Only one thread at a time may use
 * traces and trajectories, because HDF5 need not be thread-safe. */
#ifndef TSR_STORE_TRAJECTORY_H
#define TSR_STORE_TRAJECTORY_H

#include "core/status.h"
#include "store/draw_log.h"

#include <stddef.h>
#include <stdint.h>

/* An observable: one number for each frame. */
typedef struct {
    const char *name; /* "rg" */
    const char *unit; /* "Angstrom"; NULL: no unit */
} tsr_trajectory_observable;

/* Content of a trajectory. */
typedef struct {
    int n_atom;
    int n_observable;
    const tsr_trajectory_observable *observable; /* [n_observable] */
    int chain, state;
    int stride;         /* draws between frames */
    const char *author; /* NULL: "not given" */
} tsr_trajectory_spec;

/* ---- writing ---- */

typedef struct tsr_trajectory tsr_trajectory;

/* Begins a file; tsr_trajectory_close puts it in place. Errors: TSR_E_IO,
 * TSR_E_INTERNAL (no atoms, more than 16 observables, or stride < 1),
 * TSR_E_NOMEM. */
tsr_status tsr_trajectory_create(const char *path,
                                 const tsr_trajectory_spec *spec,
                                 tsr_trajectory **out, tsr_err *err);

/* Appends n frames.
 * step        [n]                in  number of the draw; increases
 * atom        [n][n_atom][3]     in  Angstrom
 * observable  [n][n_observable]  in
 * Errors: TSR_E_IO; TSR_E_NOMEM. */
tsr_status tsr_trajectory_append(tsr_trajectory *trajectory, int n,
                                 const int64_t *step, const float *atom,
                                 const double *observable, tsr_err *err);

/* Puts the file in place atomically. Frees the trajectory, also after an error;
 * NULL is fine. Errors: TSR_E_IO; the old file is then unchanged. */
tsr_status tsr_trajectory_close(tsr_trajectory *trajectory, tsr_err *err);

/* Extends the file by the frames of the log, in which observables are ordered
 * by name. keep[TSR_DRAWN_FRAMES]: exact number of frames that the file must
 * have; keep NULL: all frames. A file that already has them is not written.
 * Errors: TSR_E_NOINPUT, TSR_E_DATA (damaged; of another run; fewer frames than
 * `keep`), TSR_E_IO; the file is then unchanged. */
tsr_status tsr_trajectory_update(const char *path, const tsr_draw_records *log,
                                 const long keep[TSR_DRAWN_N_KIND],
                                 tsr_err *err);

/* Estimated bytes of n_frame frames. Coordinates are compressed to 0.84 of
 * their size (0.83 to 0.85 for 12 proteins in random orientations, float32,
 * shuffled, deflate level 1). */
double tsr_trajectory_bytes(const tsr_trajectory_spec *spec, int n_frame);

/* ---- reading ---- */

typedef struct tsr_trajectory_reader tsr_trajectory_reader;

/* Opens a trajectory with the frames of the log, as tsr_trace_open does.
 * Errors: TSR_E_NOINPUT, TSR_E_DATA (not H5MD as above, or damaged),
 * TSR_E_IO. */
tsr_status tsr_trajectory_open(const char *path, tsr_trajectory_reader **out,
                               tsr_err *err);
void tsr_trajectory_reader_free(tsr_trajectory_reader *reader);

/* Sizes and parameters of a trajectory. */
typedef struct {
    int n_frame, n_atom;
    int chain, state, stride;
} tsr_trajectory_info;

const tsr_trajectory_info *
tsr_trajectory_info_get(const tsr_trajectory_reader *reader);

/* Reads n frames from frame `first` on.
 * step  [n]             out
 * atom  [n][n_atom][3]  out  Angstrom
 * An array may be NULL, and is then not read. Errors: TSR_E_RANGE (no such
 * frames), TSR_E_DATA (unreadable). */
tsr_status tsr_trajectory_read(const tsr_trajectory_reader *reader, int first,
                               int n, int64_t *step, float *atom, tsr_err *err);

/* Reads an observable of n frames from frame `first` on: value [n] out. Errors:
 * TSR_E_RANGE (no such frames), TSR_E_DATA (no such observable, or
 * unreadable). */
tsr_status tsr_trajectory_read_observable(const tsr_trajectory_reader *reader,
                                          const char *name, int first, int n,
                                          double *value, tsr_err *err);

#endif
