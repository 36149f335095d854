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
 * The file is written in one go, and replaced as a whole when it is to hold
 * more frames, with a seal that readers verify (store/hdf5_store.h). While a
 * run goes on, and after a kill, the newest frames are in the log beside it
 * (store/draw_log.h); whoever opens the file sees those too. One thread at a
 * time may use a trajectory, and any two, since HDF5 is behind both. */
#ifndef TSR_STORE_TRAJECTORY_H
#define TSR_STORE_TRAJECTORY_H

#include "core/status.h"
#include "store/draw_log.h"

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

/* Begins a file; tsr_trajectory_close puts it in its place. Errors: TSR_E_IO,
 * TSR_E_INTERNAL (a spec without particles, or with more than 16 observables),
 * TSR_E_NOMEM. */
tsr_status tsr_trajectory_create(const char *path,
                                 const tsr_trajectory_spec *spec,
                                 tsr_trajectory **out, tsr_err *err);

/* Appends n frames.
 * step        [n] of the draws; above those of the frames before
 * atom        [n][n_atom][3]     Angstrom; NULL where n_atom is 0
 * body        [n][n_body][3]     Angstrom; NULL where n_body is 0
 * observable  [n][n_observable]
 * Errors: TSR_E_IO; TSR_E_NOMEM. */
tsr_status tsr_trajectory_append(tsr_trajectory *trajectory, int n,
                                 const int64_t *step, const float *atom,
                                 const float *body, const double *observable,
                                 tsr_err *err);

/* Puts the file in its place, at once and whole; frees, also when it fails.
 * NULL is fine. Errors: TSR_E_IO; the file that was there before stays. */
tsr_status tsr_trajectory_close(tsr_trajectory *trajectory, tsr_err *err);

/* Takes away what was begun; frees. NULL is fine. */
void tsr_trajectory_discard(tsr_trajectory *trajectory);

/* Replaces the file by one with the frames of the log, whose observables are in
 * the order of their names. keep[TSR_DRAWN_FRAMES]: how many frames it is to
 * have, no more and no fewer; NULL: all that there are. A file that has them
 * already is not written. Errors: TSR_E_NOINPUT, TSR_E_DATA (damaged; of
 * another run; fewer frames than `keep`), TSR_E_IO; the file then is as it was.
 */
tsr_status tsr_trajectory_update(const char *path, const tsr_draw_records *log,
                                 const long keep[TSR_DRAWN_N_KIND],
                                 tsr_err *err);

/* Bytes that n_frame frames take, about: coordinates shrink to 0.84 of their
 * size (0.83 to 0.85 for 12 proteins in random orientations, float32, shuffled,
 * deflate 1). */
double tsr_trajectory_bytes(const tsr_trajectory_spec *spec, int n_frame);

/* ---- reading ---- */

typedef struct tsr_trajectory_reader tsr_trajectory_reader;

/* As tsr_trace_open. Errors: TSR_E_NOINPUT,
 * TSR_E_DATA (not H5MD as above, or damaged), TSR_E_IO. */
tsr_status tsr_trajectory_open(const char *path, tsr_trajectory_reader **out,
                               tsr_err *err);
void tsr_trajectory_reader_free(tsr_trajectory_reader *reader);

typedef struct {
    int n_frame, n_atom, n_body;
    int chain, state, stride;
} tsr_trajectory_info;

const tsr_trajectory_info *
tsr_trajectory_info_get(const tsr_trajectory_reader *reader);

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
