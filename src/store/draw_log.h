/* draws.log: what a run has drawn since its trace.h5 and its trajectories were
 * written last. A plain file to which records are appended, and nothing else.
 *
 * A run appends a record for every block of draws, and syncs the file before
 * each checkpoint. Now and then it writes trace.h5 and the trajectories anew,
 * with the log's draws in them, and removes the log (docs/files.md). Commands
 * that read a run put the log's draws into what they show.
 *
 * A record is a header and `n_chain` x `n_state` parts of one size, each with
 * its checksum (files/checksum.h) behind it. The header has a checksum, too. A
 * record that a kill or a power cut left incomplete ends the log for whoever
 * reads it. Draws and frames are counted from the beginning of the run, so a
 * record that a file has already changes nothing when it is put in again. */
#ifndef TSR_STORE_DRAW_LOG_H
#define TSR_STORE_DRAW_LOG_H

#include "core/status.h"

#include <stddef.h>

#define TSR_DRAW_LOG_NAME "draws.log"

/* What a record holds. Of draws there is one part: for each group of trace.h5,
 * in the order of tsr_trace_group, and each of its variables that are kept in
 * this phase, in their order, doubles or floats as the variable has them
 * [chain][n][variable's n]. Of frames
 * there is a part for each chain and state: float atoms [n][n_atom][3], float
 * bodies [n][n_body][3], double observables [n][n_observable]. */
typedef enum {
    TSR_DRAWN_WARMUP,
    TSR_DRAWN_KEPT,
    TSR_DRAWN_FRAMES,
    TSR_DRAWN_N_KIND
} tsr_draw_kind;

typedef struct {
    tsr_draw_kind kind;
    long first, n;        /* number of the first draw or frame; how many */
    int n_chain, n_state; /* parts; 1 and 1 of draws */
    size_t size;          /* bytes of a part, without its checksum */
    size_t at;            /* of the first part in the file */
} tsr_draw_record;

/* ---- writing ---- */

typedef struct tsr_draw_log tsr_draw_log;

/* The log of the run in `directory`, which is not there yet; the first record
 * makes it. Errors: TSR_E_NOMEM. */
tsr_status tsr_draw_log_new(const char *directory, tsr_draw_log **out,
                            tsr_err *err);

/* Begins a record; tsr_draw_log_part follows for each of its parts, chain by
 * chain and state by state. Errors: TSR_E_IO (cannot be written; a file of that
 * name is there already). */
tsr_status tsr_draw_log_begin(tsr_draw_log *log, const tsr_draw_record *record,
                              tsr_err *err);
tsr_status tsr_draw_log_part(tsr_draw_log *log, const void *bytes,
                             tsr_err *err);

/* Brings the records to the disk. Errors: TSR_E_IO. */
tsr_status tsr_draw_log_sync(tsr_draw_log *log, tsr_err *err);

/* Removes the file, whose draws trace.h5 and the trajectories hold; the next
 * record begins a new one. */
void tsr_draw_log_remove(tsr_draw_log *log);

/* NULL is fine; the file stays. */
void tsr_draw_log_free(tsr_draw_log *log);

/* ---- reading ---- */

typedef struct {
    char *path;
    int fd;
    size_t n;
    tsr_draw_record *record; /* [n] the complete ones, as they were written */
} tsr_draw_records;

/* The log in the folder of the file `beside`; none (n is 0) where there is no
 * log. Whoever opens the log before that file misses no draw, also while the
 * run goes on. The caller closes it, also after an error. Errors: TSR_E_IO,
 * TSR_E_NOMEM. */
tsr_status tsr_draw_records_open(const char *beside, tsr_draw_records *log,
                                 tsr_err *err);
void tsr_draw_records_close(tsr_draw_records *log);

/* A part of record i; caller frees. *bytes is NULL where its checksum does not
 * fit, as after a power cut: there the log ends. Errors: TSR_E_NOMEM. */
tsr_status tsr_draw_records_part(const tsr_draw_records *log, size_t i,
                                 int part, void **bytes, tsr_err *err);

#endif
