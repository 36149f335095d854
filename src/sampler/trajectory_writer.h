/* The trajectories of a run: coordinates of the draws, or of every n-th draw.
 * Each chain has one file in the run's directory, trajectory-000.h5. In an
 * ensemble each state of a chain has a file, trajectory-000-1.h5, and states
 * are sorted by Rg as in rg_1 and weight_1 of the trace. Warm-up is not
 * written. */
#ifndef TSR_SAMPLER_TRAJECTORY_WRITER_H
#define TSR_SAMPLER_TRAJECTORY_WRITER_H

#include "sampler/chain.h"
#include "store/draw_log.h"

typedef struct tsr_trajectory_writer tsr_trajectory_writer;

/* Memory for the frames of `capacity` draws of n_chain chains: those of draws
 * 0, every, 2 every, ... target is borrowed. Errors: TSR_E_NOMEM. */
tsr_status tsr_trajectory_writer_new(const tsr_target *target, int n_chain,
                                     int capacity, long every,
                                     tsr_trajectory_writer **out, tsr_err *err);
void tsr_trajectory_writer_free(
    tsr_trajectory_writer *writer); /* NULL is fine */

/* Mean memory for one draw of all chains, bytes. */
double tsr_trajectory_writer_draw_bytes(const tsr_target *target, int n_chain,
                                        long every);

/* Estimate of the bytes on disk that n_draw draws of all chains take. */
double tsr_trajectory_writer_disk_bytes(const tsr_target *target, int n_chain,
                                        long every, long n_draw);

/* Creates the files without frames and replaces existing files. Errors:
 * TSR_E_NOMEM, those of tsr_trajectory_create and tsr_trajectory_close. */
tsr_status tsr_trajectory_writer_create(const tsr_trajectory_writer *writer,
                                        const char *directory, tsr_err *err);

/* Adds the log's frames to the files. n_draw >= 0: the files then hold exactly
 * the frames of the first n_draw draws; n_draw < 0: all frames. Errors: those
 * of tsr_trajectory_update, TSR_E_NOMEM. */
tsr_status tsr_trajectory_writer_update(const tsr_trajectory_writer *writer,
                                        const char *directory,
                                        const tsr_draw_records *log,
                                        long n_draw, tsr_err *err);

/* Begins a block, whose first draw has number `first` in the run. */
void tsr_trajectory_writer_begin(tsr_trajectory_writer *writer, long first);
long tsr_trajectory_writer_first(const tsr_trajectory_writer *writer);

/* Stores a chain's present state as draw number `draw` of the block, if this
 * draw has a frame. Threads may store different chains at once. */
void tsr_trajectory_writer_store(tsr_trajectory_writer *writer,
                                 const tsr_chain *chain, int chain_number,
                                 int draw);

/* Saves or restores the frames of the block's first n_draw draws, of chains
 * [first, end). */
void tsr_trajectory_writer_archive(tsr_trajectory_writer *writer, int first,
                                   int end, int n_draw, tsr_archive *archive);

/* Appends the frames of the block's first n_draw draws to the log. Errors:
 * those of tsr_draw_log_begin and tsr_draw_log_part. */
tsr_status tsr_trajectory_writer_write(tsr_trajectory_writer *writer,
                                       tsr_draw_log *log, int n_draw,
                                       tsr_err *err);

#endif
