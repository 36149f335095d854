/* Archives: the state of objects as arrays of numbers, for checkpoints. One
 * function of a module both saves and restores the state of an object:
 *
 *     void tsr_thing_archive(tsr_thing *t, tsr_archive *a)
 *     {
 *         tsr_archive_real(a, &t->width, 1);
 *         tsr_archive_int(a, &t->n, 1);
 *     }
 *
 * Saving appends the numbers to the archive. Restoring copies them back in the
 * same order, with identical bits on any machine with IEEE doubles. An archive
 * holds only state that cannot be recomputed from the configuration. */
#ifndef TSR_CORE_ARCHIVE_H
#define TSR_CORE_ARCHIVE_H

#include "core/random.h"
#include "core/status.h"

#include <stddef.h>
#include <stdint.h>

/* An archive of numbers. Modules may read is_restoring and failed. The arrays
 * and their lengths may be set from a file before tsr_archive_rewind. */
typedef struct {
    int is_restoring;
    int failed;       /* out of memory, or too few numbers to restore */
    double *real;     /* [n_real] */
    int64_t *integer; /* [n_integer] */
    size_t n_real, n_integer;
    size_t at_real, at_integer; /* next number to restore */
    size_t capacity_real, capacity_integer;
} tsr_archive;

/* tsr_archive_begin empties the archive, keeps its memory for reuse, and starts
 * to save. tsr_archive_clear frees the memory. A zeroed archive is empty and
 * valid. */
void tsr_archive_begin(tsr_archive *archive);
void tsr_archive_clear(tsr_archive *archive);

/* Starts to restore from the first number. The archive may have been saved
 * before by this process, or read from a file. */
void tsr_archive_rewind(tsr_archive *archive);

/* Save or restore, whichever was started: n values, or the state of a random
 * generator. */
void tsr_archive_real(tsr_archive *archive, double *value, size_t n);
void tsr_archive_int(tsr_archive *archive, int *value, size_t n);
void tsr_archive_long(tsr_archive *archive, long *value, size_t n);
void tsr_archive_rng(tsr_archive *archive, gsl_rng *rng);

/* Reports whether saving or restoring succeeded. Called after the last value.
 * Errors: saving: TSR_E_NOMEM; restoring: TSR_E_DATA (the archive holds more or
 * fewer numbers than the object needs). */
tsr_status tsr_archive_end(const tsr_archive *archive, tsr_err *err);

#endif
