/* The trajectories of a run: coordinates of every few draws, a file a chain
 * (and state of an ensemble) in its directory: trajectory-000.h5 or, with
 * states, trajectory-000-1.h5 with the states in the order of their Rg, as rg_1
 * and weight_1 of the trace. Warm-up is left out. */
#ifndef TSR_SAMPLER_TRACK_H
#define TSR_SAMPLER_TRACK_H

#include "sampler/chain.h"

typedef struct {
    int atoms, bodies; /* 1: stored */
    long every;        /* draws between two frames; the first draw has one */
} tsr_track_options;

typedef struct tsr_track tsr_track;

/* Room for the frames of `capacity` draws of n_chain chains. The target is
 * borrowed. Errors: TSR_E_NOMEM. */
tsr_status tsr_track_new(const tsr_target *target, int n_chain, int capacity,
                         tsr_track_options options, tsr_track **out,
                         tsr_err *err);
void tsr_track_free(tsr_track *track);

/* Flushes and closes the files; frees, also when it fails. NULL is fine. */
tsr_status tsr_track_close(tsr_track *track, tsr_err *err);

/* Bytes in memory that a draw of all chains may need. */
double tsr_track_draw_bytes(const tsr_target *target, int n_chain,
                            const tsr_track_options *options);

/* Bytes on disk that n_draw draws of all chains will need, about. */
double tsr_track_bytes(const tsr_target *target, int n_chain,
                       const tsr_track_options *options, long n_draw);

/* Makes the files, or opens those that are there and cuts them back to the
 * frames of the first n_draw draws. Errors: TSR_E_IO, TSR_E_DATA. */
tsr_status tsr_track_create(tsr_track *track, const char *directory,
                            tsr_err *err);
tsr_status tsr_track_reopen(tsr_track *track, const char *directory,
                            long n_draw, tsr_err *err);

/* Closes the files and takes them away: those that are open, or also what else
 * has their names. */
void tsr_track_remove(tsr_track *track, const char *directory, int only_made);

/* The draws that are stored next begin with number `first`. */
void tsr_track_begin(tsr_track *track, long first);

/* A chain's present state as draw number `draw` of the block. Chains may be
 * stored from different threads at once. */
void tsr_track_store(tsr_track *track, const tsr_chain *chain, int chain_number,
                     int draw);

/* Appends the first n_draw draws of the block. They reach the disk with
 * tsr_track_flush. Errors: TSR_E_IO, TSR_E_NOMEM. */
tsr_status tsr_track_write(tsr_track *track, int n_draw, tsr_err *err);
tsr_status tsr_track_flush(tsr_track *track, tsr_err *err);

#endif
