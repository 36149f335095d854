/* HDF5 files of a run, written atomically, and verified before they are read.
 *
 * A file is written under a temporary name, closed by HDF5, sealed, synced, and
 * renamed (files/file.h), so that its name always refers to a complete file. To
 * extend a file, a copy is changed and replaces it.
 *
 * The seal is a line of text in the last 64 bytes, after the data of HDF5. It
 * contains the length of the file and the sum of the checksums of its blocks of
 * 4096 bytes. A reader verifies the whole file before HDF5 reads it, because
 * HDF5 1.10 can crash on damaged metadata, and does not detect damaged
 * numbers.
 *
 * For src/store only. */
#ifndef TSR_STORE_HDF5_STORE_H
#define TSR_STORE_HDF5_STORE_H

#include "core/status.h"
#include "files/file.h"
#include "store/draw_log.h"

#include <hdf5.h>

/* ---- reading ---- */

/* A file open for reading. */
typedef struct {
    char *path;
    hid_t file;    /* < 0: closed */
    int is_sealed; /* 0: the file has no seal, so that damaged numbers are not
                      detected */
} tsr_hdf5_input;

/* Verifies and opens a file. A file without a seal, as other programs write, is
 * first read by a child process, so that damage cannot crash this process.
 * Messages name the file. Errors: TSR_E_NOINPUT (no such file, or no
 * permission), TSR_E_DATA (not HDF5, or damaged), TSR_E_IO, TSR_E_NOMEM. */
tsr_status tsr_hdf5_input_open(const char *path, tsr_hdf5_input *input,
                               tsr_err *err);
void tsr_hdf5_input_close(tsr_hdf5_input *input);

/* ---- writing ----
 *
 * After a failed write, HDF5 1.10 crashes when an object or the file is closed.
 * HDF5 therefore writes through a file driver of tessera that never fails. Once
 * the system has refused a write, the driver keeps further data in memory,
 * tsr_hdf5_output_check returns the error, and tsr_hdf5_output_end discards the
 * file. */

/* A file being written. */
typedef struct {
    tsr_file_writer writer;
    hid_t file;                 /* < 0: closed */
    hid_t driver;               /* HDF5's identifier of this file driver */
    int failed;                 /* errno of the first failed write */
    size_t n_kept;              /* writes kept in memory */
    struct tsr_hdf5_kept *kept; /* [n_kept] */
    int keeps_previous;         /* 1: the old file is kept as PATH.previous */
} tsr_hdf5_output;

/* Begins the file `path`. It is empty, or a copy of the file `from` (NULL:
 * empty), whose seal the caller has verified. tsr_hdf5_output_end must follow,
 * also after an error, and `output` must not move in memory until then.
 * Errors: TSR_E_IO. */
tsr_status tsr_hdf5_output_start(const char *path, const char *from,
                                 tsr_hdf5_output *output, tsr_err *err);

/* Has every write succeeded so far? Errors: TSR_E_IO. */
tsr_status tsr_hdf5_output_check(const tsr_hdf5_output *output, tsr_err *err);

/* Seals the file and puts it in place if `status` is TSR_OK; otherwise removes
 * it and returns `status`. Errors: TSR_E_IO (the old file still exists). */
tsr_status tsr_hdf5_output_end(tsr_hdf5_output *output, tsr_status status,
                               tsr_err *err);

/* ---- a file and its draw log ---- */

/* How a kind of file (trace, trajectory) is extended by records of the draw
 * log. `open` makes an object for the other calls, and `close` frees it. */
typedef struct {
    const char *noun;          /* for messages: "draws" */
    tsr_draw_kind first, last; /* kinds of records for this file */
    tsr_status (*open)(hid_t file, void **object, tsr_err *err);
    void (*close)(void *object);
    /* Number of draws of a kind in the file. */
    long (*count)(const void *object, tsr_draw_kind kind);
    /* Index of the part of the record that belongs in this file; -1: the record
     * has no such part. */
    int (*part)(const void *object, const tsr_draw_record *record);
    /* Expected size of this part, bytes. */
    size_t (*size)(const void *object, const tsr_draw_record *record);
    /* Removes the draws after the first n. */
    tsr_status (*cut)(void *object, tsr_draw_kind kind, long n, tsr_err *err);
    /* Appends the draws of a record. bytes: its part for this file. */
    tsr_status (*append)(void *object, const tsr_draw_record *record,
                         const void *bytes, tsr_err *err);
    /* Called after the last record; NULL: nothing to do. */
    tsr_status (*finish)(void *object, tsr_err *err);
} tsr_hdf5_updater;

/* Opens a file with the draws of the log beside it. If the file lacks some of
 * these draws: updates the file, if no process works on the run and the folder
 * is writable; else reads a copy with the draws, made in TMPDIR (or /tmp) or,
 * if that fails, beside the file, and unlinked once it is open. Errors: as
 * tsr_hdf5_input_open. */
tsr_status tsr_hdf5_input_open_all(const char *path,
                                   const tsr_hdf5_updater *updater,
                                   tsr_hdf5_input *input, tsr_err *err);

/* Extends the file by the draws of the log.
 * keep  [TSR_DRAWN_N_KIND]  in  exact numbers of draws that the file must
 *                              have; NULL: all draws
 * A file that already has them is not written. Errors: TSR_E_NOINPUT,
 * TSR_E_DATA (damaged; of another run; fewer draws than `keep`), TSR_E_IO; the
 * file is then unchanged. */
tsr_status tsr_hdf5_update(const char *path, const tsr_hdf5_updater *updater,
                           const tsr_draw_records *log,
                           const long keep[TSR_DRAWN_N_KIND], tsr_err *err);

#endif
