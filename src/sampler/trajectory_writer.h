/* The trajectories of a run: coordinates of every few draws, a file a chain
 * (and state of an ensemble) in its directory: trajectory-000.h5 or, with
 * states, trajectory-000-1.h5 with the states in the order of their Rg, as rg_1
 * and weight_1 of the trace. Warm-up is left out. */
#ifndef TSR_SAMPLER_TRAJECTORY_WRITER_H
#define TSR_SAMPLER_TRAJECTORY_WRITER_H

#include "sampler/chain.h"
#include "store/draw_log.h"

typedef struct {
    int atoms, bodies; /* 1: stored */
    long every;        /* draws between two frames; the first draw has one */
} tsr_trajectory_options;

typedef struct tsr_trajectory_writer tsr_trajectory_writer;

/* Room for the frames of `capacity` draws of n_chain chains. The target is
 * borrowed. Errors: TSR_E_NOMEM. */
tsr_status tsr_trajectory_writer_new(const tsr_target *target, int n_chain,
                                     int capacity,
                                     tsr_trajectory_options options,
                                     tsr_trajectory_writer **out, tsr_err *err);
void tsr_trajectory_writer_free(
    tsr_trajectory_writer *writer); /* NULL is fine */

/* Bytes in memory that a draw of all chains may need. */
double tsr_trajectory_writer_draw_bytes(const tsr_target *target, int n_chain,
                                        const tsr_trajectory_options *options);

/* Bytes on disk that n_draw draws of all chains will need, about. */
double tsr_trajectory_writer_disk_bytes(const tsr_target *target, int n_chain,
                                        const tsr_trajectory_options *options,
                                        long n_draw);

/* Makes the files, without a frame; what had their names is replaced. Errors:
 * TSR_E_IO, TSR_E_NOMEM. */
tsr_status tsr_trajectory_writer_create(const tsr_trajectory_writer *writer,
                                        const char *directory, tsr_err *err);

/* Puts the log's frames into the files. n_draw >= 0: those of the first n_draw
 * draws, no more and no fewer. Errors: those of tsr_trajectory_update. */
tsr_status tsr_trajectory_writer_update(const tsr_trajectory_writer *writer,
                                        const char *directory,
                                        const tsr_draw_records *log,
                                        long n_draw, tsr_err *err);

/* The draws that are stored next begin with number `first`. */
void tsr_trajectory_writer_begin(tsr_trajectory_writer *writer, long first);

/* A chain's present state as draw number `draw` of the block. Chains may be
 * stored from different threads at once. */
void tsr_trajectory_writer_store(tsr_trajectory_writer *writer,
                                 const tsr_chain *chain, int chain_number,
                                 int draw);

/* Appends the frames of the block's first n_draw draws to the log. Errors:
 * TSR_E_IO. */
tsr_status tsr_trajectory_writer_write(tsr_trajectory_writer *writer,
                                       tsr_draw_log *log, int n_draw,
                                       tsr_err *err);

#endif
