/* HDF5 files of a run: written in one go, verified before they are read.
 *
 * A file is made under another name, closed by HDF5, sealed, synced, and
 * renamed (files/file.h), so at every moment its name leads to a whole file. A
 * file that grows is copied, the copy is changed, and takes its place.
 *
 * The seal: the last 64 bytes, behind the end of what HDF5 looks at, are a line
 * of text with the file's length and the sum of its pages' checksums. A reader
 * compares all of the file with it before HDF5 sees a byte: HDF5 1.10 can crash
 * on damaged metadata, and knows nothing of damaged numbers.
 *
 * For src/store only. */
#ifndef TSR_STORE_HDF5_STORE_H
#define TSR_STORE_HDF5_STORE_H

#include "core/status.h"
#include "files/file.h"
#include "store/draw_log.h"

#include <hdf5.h>

/* ---- a file opened for reading ---- */

typedef struct {
    char *path;
    hid_t file;    /* < 0: closed */
    int is_sealed; /* 0: its numbers have not been verified */
} tsr_hdf5_input;

/* A file without a seal (of another program) is read by a child process first,
 * so that damage cannot end this one. Messages name the file. Errors:
 * TSR_E_NOINPUT (no such file), TSR_E_DATA (not HDF5, or damaged), TSR_E_IO. */
tsr_status tsr_hdf5_input_open(const char *path, tsr_hdf5_input *input,
                               tsr_err *err);
void tsr_hdf5_input_close(tsr_hdf5_input *input);

/* ---- a file that is written ----
 *
 * HDF5 1.10 does not survive a failed write: it crashes later, when an object
 * or the file is closed. So it writes through a file driver of our own that
 * never fails: behind the first write that the system refuses, what HDF5 writes
 * is kept in memory, and the file is given up as soon as the call is over. */

typedef struct {
    tsr_file_writer writer;
    hid_t file;    /* < 0: closed */
    hid_t driver;  /* HDF5's number of ours */
    int failed;    /* errno of the first write that failed */
    size_t n_kept; /* writes behind it */
    struct tsr_hdf5_kept *kept;
    int keeps_previous; /* 1: the file before stays, as PATH.previous */
} tsr_hdf5_output;

/* Begins the file `path`: empty, or as a copy of `from`, whose seal has been
 * verified (NULL: empty). tsr_hdf5_output_end follows, whatever comes of it;
 * the output keeps its place in memory until then. Errors: TSR_E_IO. */
tsr_status tsr_hdf5_output_start(const char *path, const char *from,
                                 tsr_hdf5_output *output, tsr_err *err);

/* TSR_E_IO where a write has failed. */
tsr_status tsr_hdf5_output_check(const tsr_hdf5_output *output, tsr_err *err);

/* Puts the file in its place where `status` is TSR_OK, else takes it away and
 * returns `status`. Errors: TSR_E_IO; the file that was there still is. */
tsr_status tsr_hdf5_output_end(tsr_hdf5_output *output, tsr_status status,
                               tsr_err *err);

/* ---- a file and the log beside it ---- */

/* How a kind of file takes draws or frames from the log. Its calls share an
 * object that `open` makes and `close` frees. */
typedef struct {
    const char *noun;          /* "draws" */
    tsr_draw_kind first, last; /* the kinds of records that are its */
    tsr_status (*open)(hid_t file, void **object, tsr_err *err);
    void (*close)(void *object);
    long (*count)(const void *object, tsr_draw_kind kind);
    int (*part)(const void *object,
                const tsr_draw_record *record); /* -1: none */
    size_t (*size)(const void *object, const tsr_draw_record *record);
    tsr_status (*cut)(void *object, tsr_draw_kind kind, long n, tsr_err *err);
    tsr_status (*append)(void *object, const tsr_draw_record *record,
                         const void *bytes, tsr_err *err);
    tsr_status (*finish)(void *object, tsr_err *err); /* NULL: nothing to do */
} tsr_hdf5_updater;

/* Opens the file with what the log beside it has more: the file itself is
 * rewritten where no process works on the run and the folder can be written,
 * else a copy without a name in TMPDIR (or /tmp) is read. Errors: as
 * tsr_hdf5_input_open. */
tsr_status tsr_hdf5_input_open_all(const char *path,
                                   const tsr_hdf5_updater *taker,
                                   tsr_hdf5_input *input, tsr_err *err);

/* Replaces the file by one with the draws of the log. keep: how many of each
 * kind it is to have, no more and no fewer; NULL: all that there are. A file
 * that has them already is not written. Errors: TSR_E_NOINPUT, TSR_E_DATA
 * (damaged; of another run; fewer than `keep`), TSR_E_IO; the file then is as
 * it was. */
tsr_status tsr_hdf5_update(const char *path, const tsr_hdf5_updater *taker,
                           const tsr_draw_records *log,
                           const long keep[TSR_DRAWN_N_KIND], tsr_err *err);

#endif
