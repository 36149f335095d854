/* State that outlives a process: one function of a module both saves and
 * restores it.
 *
 *     void tsr_thing_archive(tsr_thing *t, tsr_archive *a)
 *     {
 *         tsr_archive_real(a, &t->width, 1);
 *         tsr_archive_int(a, &t->n, 1);
 *     }
 *
 * Saving copies the numbers behind each other, restoring copies them back in
 * the same order: to the bit, on any machine with IEEE doubles. Only what
 * cannot be made again from the configuration belongs in it. */
#ifndef TSR_CORE_ARCHIVE_H
#define TSR_CORE_ARCHIVE_H

#include "core/random.h"
#include "core/status.h"

#include <stddef.h>
#include <stdint.h>

typedef struct {
    int is_restoring;
    int failed;       /* out of memory, or not enough to restore */
    double *real;     /* [n_real] */
    int64_t *integer; /* [n_integer] */
    size_t n_real, n_integer;
    size_t at_real, at_integer; /* how far it is read */
    size_t room_real, room_integer;
} tsr_archive;

/* Empties it and saves from here on; its memory is used again. A zeroed one is
 * empty. */
void tsr_archive_begin(tsr_archive *archive);
void tsr_archive_clear(tsr_archive *archive);

/* Restores from the beginning; `real` and `integer` may come from elsewhere. */
void tsr_archive_rewind(tsr_archive *archive);

void tsr_archive_real(tsr_archive *archive, double *value, size_t n);
void tsr_archive_int(tsr_archive *archive, int *value, size_t n);
void tsr_archive_long(tsr_archive *archive, long *value, size_t n);
void tsr_archive_rng(tsr_archive *archive, gsl_rng *rng);

/* After the last value. Errors: TSR_E_NOMEM; TSR_E_DATA where what was
 * restored had more or fewer numbers. */
tsr_status tsr_archive_end(const tsr_archive *archive, tsr_err *err);

#endif
