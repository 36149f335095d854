/* An archive is a pair of arrays, of doubles and of integers, which grow while
 * state is saved and are read from the start while it is restored. Errors are
 * recorded and reported by tsr_archive_end, so that modules need no checks of
 * their own. */
#include "core/archive.h"

#include <stdlib.h>
#include <string.h>

void tsr_archive_begin(tsr_archive *archive)
{
    archive->is_restoring = archive->failed = 0;
    archive->n_real = archive->n_integer = 0;
    archive->at_real = archive->at_integer = 0;
}

void tsr_archive_clear(tsr_archive *archive)
{
    free(archive->real);
    free(archive->integer);
    memset(archive, 0, sizeof *archive);
}

void tsr_archive_rewind(tsr_archive *archive)
{
    archive->is_restoring = 1;
    archive->failed = 0;
    archive->at_real = archive->at_integer = 0;
}

/* Reserves memory for n more elements of `size` bytes; 0: out of memory. */
static int reserve(void **array, size_t *capacity, size_t used, size_t n,
                   size_t size)
{
    if (used + n <= *capacity)
        return 1;
    size_t more = 2 * *capacity > used + n ? 2 * *capacity : used + n;
    void *larger = realloc(*array, more * size);
    if (larger == NULL)
        return 0;
    *array = larger;
    *capacity = more;
    return 1;
}

/* Appends n numbers to the array, or reads the next n. */
static void transfer(tsr_archive *a, void **array, size_t *capacity,
                     size_t *used, size_t *at, void *value, size_t n,
                     size_t size)
{
    if (n == 0 || a->failed)
        return;
    a->failed = a->is_restoring ? n > *used - *at
                                : !reserve(array, capacity, *used, n, size);
    if (a->failed)
        return;
    if (a->is_restoring) {
        memcpy(value, (char *)*array + *at * size, n * size);
        *at += n;
    } else {
        memcpy((char *)*array + *used * size, value, n * size);
        *used += n;
    }
}

void tsr_archive_real(tsr_archive *a, double *value, size_t n)
{
    void *array = a->real;
    transfer(a, &array, &a->capacity_real, &a->n_real, &a->at_real, value, n,
             sizeof *a->real);
    a->real = array;
}

static void archive_integer(tsr_archive *a, int64_t *value, size_t n)
{
    void *array = a->integer;
    transfer(a, &array, &a->capacity_integer, &a->n_integer, &a->at_integer,
             value, n, sizeof *a->integer);
    a->integer = array;
}

void tsr_archive_int(tsr_archive *archive, int *value, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        int64_t wide = value[i];
        archive_integer(archive, &wide, 1);
        value[i] = (int)wide;
    }
}

void tsr_archive_long(tsr_archive *archive, long *value, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        int64_t wide = value[i];
        archive_integer(archive, &wide, 1);
        value[i] = (long)wide;
    }
}

void tsr_archive_rng(tsr_archive *archive, gsl_rng *rng)
{
    uint64_t word[TSR_RNG_WORDS];
    int64_t number[TSR_RNG_WORDS];
    tsr_rng_save(rng, word);
    memcpy(number, word, sizeof number);
    archive_integer(archive, number, TSR_RNG_WORDS);
    memcpy(word, number, sizeof word);
    if (archive->is_restoring)
        tsr_rng_restore(rng, word);
}

tsr_status tsr_archive_end(const tsr_archive *a, tsr_err *err)
{
    if (a->failed && !a->is_restoring)
        return tsr_no_memory(err);
    if (a->failed)
        return tsr_fail(err, TSR_E_DATA,
                        "the saved state is too short, or not a saved state");
    if (a->is_restoring &&
        (a->at_real != a->n_real || a->at_integer != a->n_integer))
        return tsr_fail(err, TSR_E_DATA, "the saved state is too long");
    return TSR_OK;
}
