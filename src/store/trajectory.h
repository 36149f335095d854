/* trajectory-NNN.h5: the conformations of one chain (and state), as H5MD 1.1
 * (de Buyl, Colberg, Hoefling 2014; https://nongnu.org/h5md), one frame every
 * few draws. MDAnalysis opens it with model.pdb as topology.
 *
 *   /h5md                        version [1, 1]; author, creator
 *   /parameters                  attributes chain, state, stride
 *   /particles/atoms, /bodies    each of them may be left out
 *       box                      dimension 3, boundary none none none
 *       position/value           float32 [frame][n][3], unit "Angstrom"
 *       position/step            int64   [frame], the number of the draw
 *       position/time            float64 [frame], the same number; its unit
 *                                "ps" means nothing, but MDAnalysis wants one
 *   /observables/NAME/value      float64 [frame], unit; step and time as above
 *
 * atoms: as the ATOM records of model.pdb. MDAnalysis takes the first group by
 * name, so atoms it is. All step and time are one data set with many names.
 *
 * What survives a kill is what tsr_trajectory_flush has committed, or what was
 * committed because more than 1 MiB was waiting; a commit is whole or not at
 * all (store/hdf5_store.h). One thread at a time may use a trajectory, and any
 * two, since HDF5 is behind both. A trajectory that waits costs one file
 * descriptor. */
#ifndef TSR_STORE_TRAJECTORY_H
#define TSR_STORE_TRAJECTORY_H

#include "core/status.h"

#include <stddef.h>
#include <stdint.h>

typedef struct {
    const char *name; /* "rg" */
    const char *unit; /* "Angstrom"; NULL: none */
} tsr_trajectory_observable;

typedef struct {
    int n_atom; /* 0: no group atoms */
    int n_body; /* 0: no group bodies */
    int n_observable;
    const tsr_trajectory_observable *observable; /* [n_observable] */
    int chain, state;
    int stride;         /* draws from frame to frame */
    const char *author; /* NULL: "not given" */
} tsr_trajectory_spec;

/* ---- writing ---- */

typedef struct tsr_trajectory tsr_trajectory;

/* Creates the file. Errors: TSR_E_IO (it is there already, or cannot be made;
 * what was begun is removed), TSR_E_INTERNAL (a spec without particles, or two
 * observables of one name), TSR_E_NOMEM. The spec is copied. */
tsr_status tsr_trajectory_create(const char *path,
                                 const tsr_trajectory_spec *spec,
                                 tsr_trajectory **out, tsr_err *err);

/* Opens a file that was created with the same spec, finishes a commit that was
 * interrupted, and cuts back to n_keep frames; what is appended then makes
 * every data set equal to that of a run that never stopped. Errors:
 * TSR_E_NOINPUT, TSR_E_DATA (damaged; of another spec, says where; fewer frames
 * than n_keep, then nothing is cut), TSR_E_IO. */
tsr_status tsr_trajectory_reopen(const char *path,
                                 const tsr_trajectory_spec *spec, int n_keep,
                                 tsr_trajectory **out, tsr_err *err);

/* Appends a frame.
 * step        of the draw; above that of the frame before
 * atom        [n_atom][3]     Angstrom; NULL where n_atom is 0
 * body        [n_body][3]     Angstrom; NULL where n_body is 0
 * observable  [n_observable]
 * Errors: TSR_E_IO, also for every call after a write failed; TSR_E_INTERNAL.
 */
tsr_status tsr_trajectory_append(tsr_trajectory *trajectory, int64_t step,
                                 const double *atom, const double *body,
                                 const double *observable, tsr_err *err);

/* Brings all frames to the disk; nothing where there are no new ones. */
tsr_status tsr_trajectory_flush(tsr_trajectory *trajectory, tsr_err *err);

/* The same for n of them, synced together. On a busy ext4 that took as long as
 * one by one (3 s for 512 files). Where one fails, the others are flushed. */
tsr_status tsr_trajectory_flush_all(tsr_trajectory *const *trajectory, int n,
                                    tsr_err *err);

/* Flushes and closes; frees, also when it fails. NULL is fine. */
tsr_status tsr_trajectory_close(tsr_trajectory *trajectory, tsr_err *err);

/* Bytes that n_frame frames take: *most as an upper bound, and *expected after
 * compression: coordinates shrink to 0.84 of their size (0.83 to 0.85 for 12
 * proteins in random orientations, float32, shuffled, deflate 1). */
void tsr_trajectory_bytes(const tsr_trajectory_spec *spec, int n_frame,
                          double *expected, double *most);

/* ---- reading ---- */

typedef struct tsr_trajectory_reader tsr_trajectory_reader;

/* Beside a run that goes on, it shows the last commit. Errors: TSR_E_NOINPUT,
 * TSR_E_DATA (not H5MD as above, or damaged), TSR_E_IO. */
tsr_status tsr_trajectory_open(const char *path, tsr_trajectory_reader **out,
                               tsr_err *err);
void tsr_trajectory_reader_free(tsr_trajectory_reader *reader);

typedef struct {
    int n_frame, n_atom, n_body;
    int chain, state, stride;
} tsr_trajectory_info;

const tsr_trajectory_info *
tsr_trajectory_look(const tsr_trajectory_reader *reader);

/* Frames first .. first+n. step [n], atom [n][n_atom][3], body [n][n_body][3];
 * NULL: not wanted. Errors: TSR_E_RANGE (no such frames), TSR_E_DATA. */
tsr_status tsr_trajectory_read(const tsr_trajectory_reader *reader, int first,
                               int n, int64_t *step, float *atom, float *body,
                               tsr_err *err);

/* An observable of the same frames, value [n]. Errors: also TSR_E_DATA where it
 * is not there. */
tsr_status tsr_trajectory_read_observable(const tsr_trajectory_reader *reader,
                                          const char *name, int first, int n,
                                          double *value, tsr_err *err);

#endif
