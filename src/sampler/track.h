/* The trajectories of a run: coordinates of every few draws, a file a chain
 * (and state of an ensemble) in its directory: trajectory-000.h5 or, with
 * states, trajectory-000-1.h5 with the states in the order of their Rg, as rg_1
 * and weight_1 of the trace. Warm-up is left out. */
#ifndef TSR_SAMPLER_TRACK_H
#define TSR_SAMPLER_TRACK_H

#include "sampler/chain.h"
#include "store/draw_log.h"

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
void tsr_track_free(tsr_track *track); /* NULL is fine */

/* Bytes in memory that a draw of all chains may need. */
double tsr_track_draw_bytes(const tsr_target *target, int n_chain,
                            const tsr_track_options *options);

/* Bytes on disk that n_draw draws of all chains will need, about. */
double tsr_track_bytes(const tsr_target *target, int n_chain,
                       const tsr_track_options *options, long n_draw);

/* Makes the files, without a frame; what had their names is replaced. Errors:
 * TSR_E_IO, TSR_E_NOMEM. */
tsr_status tsr_track_create(const tsr_track *track, const char *directory,
                            tsr_err *err);

/* Puts the log's frames into the files. n_draw >= 0: those of the first n_draw
 * draws, no more and no fewer. Errors: those of tsr_trajectory_update. */
tsr_status tsr_track_update(const tsr_track *track, const char *directory,
                            const tsr_draw_records *log, long n_draw,
                            tsr_err *err);

/* The draws that are stored next begin with number `first`. */
void tsr_track_begin(tsr_track *track, long first);

/* A chain's present state as draw number `draw` of the block. Chains may be
 * stored from different threads at once. */
void tsr_track_store(tsr_track *track, const tsr_chain *chain, int chain_number,
                     int draw);

/* Appends the frames of the block's first n_draw draws to the log. Errors:
 * TSR_E_IO. */
tsr_status tsr_track_write(tsr_track *track, tsr_draw_log *log, int n_draw,
                           tsr_err *err);

#endif
