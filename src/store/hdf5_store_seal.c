/* The seal of a file: its last 64 bytes, behind the end of what HDF5 reads, say
 * how long the file is and what the sum of its pages is. A page counts with the
 * checksum (io/checksum.h) of its number and its bytes, and with 0 where all of
 * them are 0 (a hole that nobody wrote). So one changed word is always found,
 * and more than one but for a chance of 2^-64; and a commit takes the old
 * checksums of the pages that it changes from the sum, adds their new ones, and
 * need not read the others. */
#include "store/hdf5_store_parts.h"

#include "io/checksum.h"
#include "io/file.h"
#include "store/hdf5_trial.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

/* n bytes at `at` of one page: on the disk, or with what was written since. */
static int load(const tsr_hdf5_store *store, int as_written, size_t at,
                size_t n, unsigned char *to)
{
    const size_t i = at / PAGE;

    if (!as_written || i >= store->n_page || store->page[i] == NULL)
        return tsr_file_read_at(store->fd, to, n, at);
    memcpy(to, store->page[i] + at % PAGE, n);
    return 0;
}

/* Adds page i of a file of `end` bytes to the sum, or takes it off. */
static int count_page(const tsr_hdf5_store *store, int as_written, size_t i,
                      size_t end, uint64_t *sum)
{
    static const unsigned char zero[PAGE];
    unsigned char page[PAGE] = {0};
    const size_t at = i * PAGE;

    if (at >= end)
        return 0;
    size_t known = end - at < PAGE ? end - at : PAGE;
    if (as_written && store->on_disk < at + known &&
        (i >= store->n_page || store->page[i] == NULL))
        known = store->on_disk > at ? store->on_disk - at : 0;
    const int failed = load(store, as_written, at, known, page);
    if (failed == 0 && memcmp(page, zero, PAGE) != 0) {
        const uint64_t one = tsr_checksum(i + 1, page, PAGE);
        *sum += as_written ? one : 0 - one;
    }
    return failed;
}

static void write_seal(size_t size, uint64_t sum, char seal[SEAL + 1])
{
    const int n = snprintf(seal, SEAL + 1,
                           "\ntessera: %16zu bytes, page sum %016" PRIx64 "\n",
                           size, sum);
    memset(seal + n, ' ', SEAL - (size_t)n);
    seal[SEAL] = '\0';
}

int tsr_hdf5_store_make_seal(tsr_hdf5_store *store)
{
    const size_t old = store->on_disk, now = store->size;
    const size_t kept = now < old ? now / PAGE : old / PAGE + 1;
    const size_t n = (now > old ? now : old) / PAGE + 1;
    int failed = 0;

    for (size_t i = 0; i < n && failed == 0; i++) {
        const int is_held = i < store->n_page && store->page[i] != NULL;
        if (!is_held && (i < kept || now >= old))
            continue;
        failed = count_page(store, 0, i, old, &store->sum);
        if (failed == 0)
            failed = count_page(store, 1, i, now, &store->sum);
    }
    write_seal(now, store->sum, store->seal);
    return failed;
}

/* ---- reading ---- */

/* The last bytes of the file, where they are a seal of its length. */
static int read_seal(tsr_hdf5_store *store, uint64_t *sum)
{
    unsigned char *to = (unsigned char *)store->seal;
    char same[SEAL + 1];
    size_t size = 0;

    if (store->size < SEAL)
        return 0;
    for (size_t n = 0; n < SEAL;) {
        const size_t at = store->size - SEAL + n;
        const size_t part = tsr_hdf5_part_of_page(at, SEAL - n);
        if (load(store, 1, at, part, to + n) != 0)
            return 0;
        n += part;
    }
    store->seal[SEAL] = '\0';
    if (sscanf(store->seal, " tessera: %zu bytes, page sum %" SCNx64, &size,
               sum) != 2 ||
        size != store->size - SEAL)
        return 0;
    write_seal(size, *sum, same);
    return memcmp(same, store->seal, SEAL) == 0;
}

/* Whether a writer has changed the file since its seal was read. */
static int has_changed(const tsr_hdf5_store *store)
{
    struct stat info;
    unsigned char seal[SEAL];

    if (store->n_held > 0) /* under a journal nobody writes */
        return 0;
    return fstat(store->fd, &info) != 0 ||
           (size_t)info.st_size != store->on_disk + SEAL ||
           tsr_file_read_at(store->fd, seal, SEAL, store->on_disk) != 0 ||
           memcmp(seal, store->seal, SEAL) != 0;
}

tsr_status tsr_hdf5_store_verify(tsr_hdf5_store *store, tsr_err *err)
{
    uint64_t wanted = 0;
    const int is_sealed = read_seal(store, &wanted);
    int failed = 0;

    if (is_sealed) {
        store->size -= SEAL;
        if (store->n_held == 0) {
            store->on_disk = store->size;
            store->tail = SEAL;
        }
    }
    store->sum = 0;
    for (size_t i = 0; i * PAGE < store->size && failed == 0; i++)
        failed = count_page(store, 1, i, store->size, &store->sum);
    if (is_sealed && failed == 0 && store->sum == wanted)
        return TSR_OK;
    if (is_sealed && !has_changed(store))
        return failed != 0
                   ? tsr_fail(err, TSR_E_IO, "cannot read it: %s",
                              strerror(failed))
                   : tsr_fail(err, TSR_E_DATA,
                              "the file is damaged, or another program has "
                              "changed it: its checksum does not fit; restore "
                              "it from a copy");
    return tsr_hdf5_trial(store, err);
}
