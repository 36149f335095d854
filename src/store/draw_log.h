/* draws.log: a plain file of records, one after another, with the draws made
 * since trace.h5 and the trajectories were last written.
 *
 * A run appends a record for each block of draws, and syncs the file before
 * each checkpoint. At some checkpoints it rewrites trace.h5 and the
 * trajectories with the draws of the log, and removes the log (docs/files.md).
 * Commands that read a run include the draws of the log.
 *
 * A record is a header and `n_chain` x `n_state` parts of equal size. The
 * header has a checksum, and a checksum follows each part (files/checksum.h).
 * An incomplete record, left by a kill or a power cut, ends the log for its
 * readers. Draws and frames are numbered from the start of the run, so that
 * adding the log twice to a file has the same result as adding it once. */
#ifndef TSR_STORE_DRAW_LOG_H
#define TSR_STORE_DRAW_LOG_H

#include "core/status.h"

#include <stddef.h>

#define TSR_DRAW_LOG_NAME "draws.log"

/* Content of a record.
 *
 * A record of draws has one part: the values of all variables of trace.h5 that
 * warm-up draws (or kept draws) have, by group and then in the order of the
 * variables. The values of a variable are [n_chain][n][n of the variable],
 * float or double as in the trace.
 *
 * A record of frames, of the trajectories, has one part for each chain and
 * state:
 *   atoms        [n][n_atom][3]     float
 *   observables  [n][n_observable]  double
 */
typedef enum {
    TSR_DRAWN_WARMUP,
    TSR_DRAWN_KEPT,
    TSR_DRAWN_FRAMES,
    TSR_DRAWN_N_KIND
} tsr_draw_kind;

/* Header of a record. */
typedef struct {
    tsr_draw_kind kind;
    long first, n; /* number of the first draw or frame, and their count */
    int n_chain, n_state; /* n_chain x n_state parts; 1 and 1 for draws */
    size_t size;          /* bytes of a part without its checksum */
    size_t at;            /* offset of the first part in the file */
} tsr_draw_record;

/* ---- writing ---- */

/* A log being written. */
typedef struct tsr_draw_log tsr_draw_log;

/* The log of the run in `directory`. The file must not exist; the first record
 * creates it. Errors: TSR_E_NOMEM. */
tsr_status tsr_draw_log_new(const char *directory, tsr_draw_log **out,
                            tsr_err *err);

/* Begin a record, and append a part to it. After tsr_draw_log_begin,
 * tsr_draw_log_part must be called for each part, ordered by chain, then state.
 * bytes [record->size] in. Errors: TSR_E_IO (not writable, or the file already
 * exists). */
tsr_status tsr_draw_log_begin(tsr_draw_log *log, const tsr_draw_record *record,
                              tsr_err *err);
tsr_status tsr_draw_log_part(tsr_draw_log *log, const void *bytes,
                             tsr_err *err);

/* Writes all records through to the disk. Errors: TSR_E_IO. */
tsr_status tsr_draw_log_sync(tsr_draw_log *log, tsr_err *err);

/* Removes the file, after its draws have been written to trace.h5 and the
 * trajectories. The next record creates a new one. */
void tsr_draw_log_remove(tsr_draw_log *log);

/* Frees the log and leaves the file. NULL is fine. */
void tsr_draw_log_free(tsr_draw_log *log);

/* ---- reading ---- */

/* A log being read. */
typedef struct {
    char *path;
    int fd;
    size_t n;
    tsr_draw_record *record; /* [n] complete records, in the order of writing */
} tsr_draw_records;

/* Opens the log in the folder of the file `beside`; without a log, n is 0. A
 * reader that opens the log before that file misses no draw, even while the run
 * continues. The caller closes the log, also after an error. Errors: TSR_E_IO,
 * TSR_E_NOMEM. */
tsr_status tsr_draw_records_open(const char *beside, tsr_draw_records *log,
                                 tsr_err *err);
void tsr_draw_records_close(tsr_draw_records *log);

/* Reads a part of record i. The caller frees *bytes. *bytes is NULL if the part
 * cannot be read or its checksum does not match, as after a power cut: the log
 * ends before this record. Errors: TSR_E_NOMEM. */
tsr_status tsr_draw_records_part(const tsr_draw_records *log, size_t i,
                                 int part, void **bytes, tsr_err *err);

#endif
