/* A DCD file consists of Fortran records: length in bytes, data, length again.
 * The first record has the word CORD and 20 integers, the second has titles,
 * the third the number of atoms. Each frame follows as records of x, y and z of
 * all atoms in single precision, after six numbers of the unit cell if the
 * integers announce it. The repeated length is checked, because a record has no
 * other redundancy. */
#include "files/dcd.h"

#include "core/pool.h"
#include "files/file.h"

#include <errno.h>
#include <fcntl.h>
#include <math.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* Indices into the integers of the first record. */
enum { FIXED = 8, HAS_CELL = 10, HAS_FOURTH = 11, VERSION = 19, N_HEAD = 20 };

struct tsr_dcd {
    tsr_pool pool;
    const char *path;
    int fd, is_swapped, n_atom;
    size_t size, first;     /* bytes of the file, and before the first frame */
    size_t cell, per_frame; /* bytes of a frame's unit cell, and of a frame */
    float *axis;            /* [n_atom] workspace */
};

void tsr_dcd_free(tsr_dcd *dcd)
{
    if (dcd == NULL)
        return;
    if (dcd->fd >= 0)
        close(dcd->fd);
    tsr_pool_clear(&dcd->pool);
    free(dcd);
}

/* Reverses the bytes of n 4-byte numbers if the file's byte order requires
 * it. */
static void swap_bytes(const tsr_dcd *d, void *data, size_t n)
{
    unsigned char *b = data;
    for (size_t i = 0; d->is_swapped && i < n; i++, b += 4) {
        const unsigned char was[4] = {b[0], b[1], b[2], b[3]};
        for (int k = 0; k < 4; k++)
            b[k] = was[3 - k];
    }
}

static tsr_status damaged(const tsr_dcd *d, size_t at, tsr_err *err)
{
    return tsr_fail(
        err, TSR_E_DATA,
        "'%s' is damaged or not a DCD trajectory: no record at byte %zu",
        d->path, at);
}

static tsr_status read_at(const tsr_dcd *d, void *to, size_t n, size_t at,
                          tsr_err *err)
{
    if (n > d->size || at > d->size - n)
        return damaged(d, at, err);
    const int failed = tsr_file_read_at(d->fd, to, n, at);
    return failed == 0 ? TSR_OK
                       : tsr_fail(err, TSR_E_IO, "cannot read '%s': %s",
                                  d->path, strerror(failed));
}

/* Length *n of the record at byte `at`. Both copies of the length must
 * agree. */
static tsr_status check_record(const tsr_dcd *d, size_t at, size_t *n,
                               tsr_err *err)
{
    uint32_t before, after;
    TSR_TRY(read_at(d, &before, 4, at, err));
    swap_bytes(d, &before, 1);
    TSR_TRY(read_at(d, &after, 4, at + 4 + before, err));
    swap_bytes(d, &after, 1);
    *n = before;
    return before == after ? TSR_OK : damaged(d, at, err);
}

static tsr_status check_head(const tsr_dcd *d, const char *word,
                             const int32_t *head, tsr_err *err)
{
    if (memcmp(word, "VELD", 4) == 0)
        return tsr_fail(err, TSR_E_DATA,
                        "'%s' contains velocities; give the coordinates",
                        d->path);
    if (memcmp(word, "CORD", 4) != 0)
        return damaged(d, 0, err);
    if (head[FIXED] != 0)
        return tsr_fail(err, TSR_E_DATA,
                        "'%s': %d atoms are fixed and stored in the first "
                        "frame only; write it again with all atoms in each "
                        "frame, as VMD and MDAnalysis do",
                        d->path, head[FIXED]);
    return TSR_OK;
}

static tsr_status read_head(tsr_dcd *d, tsr_err *err)
{
    uint32_t length;
    char word[4];
    int32_t head[N_HEAD], n_atom;
    size_t n = 0, at = 0;
    TSR_TRY(read_at(d, &length, 4, 0, err));
    d->is_swapped = length != 84;
    swap_bytes(d, &length, 1);
    if (length != 84)
        return tsr_fail(err, TSR_E_DATA,
                        "'%s' is not a DCD trajectory; XTC, TRR and others: "
                        "tessera_saxs.pool(MDAnalysis.Universe(...), ...) in "
                        "Python, or convert them with MDTraj: mdconvert -o "
                        "x.dcd x.xtc; for trajectories of a run give the "
                        "folder of the run",
                        d->path);
    TSR_TRY(check_record(d, at, &n, err));
    TSR_TRY(read_at(d, word, 4, at + 4, err));
    TSR_TRY(read_at(d, head, sizeof head, at + 8, err));
    swap_bytes(d, head, N_HEAD);
    TSR_TRY(check_head(d, word, head, err));
    at += n + 8;
    TSR_TRY(check_record(d, at, &n, err)); /* titles */
    at += n + 8;
    TSR_TRY(check_record(d, at, &n, err));
    if (n != 4)
        return damaged(d, at, err);
    TSR_TRY(read_at(d, &n_atom, 4, at + 4, err));
    swap_bytes(d, &n_atom, 1);
    d->first = at + n + 8;
    if (n_atom < 1 || (size_t)n_atom > d->size / 12)
        return damaged(d, at, err);
    d->n_atom = n_atom;
    /* X-PLOR files have version 0, and neither unit cell nor fourth
     * dimension. */
    const int is_charmm = head[VERSION] != 0;
    const size_t axis = 4 * (size_t)n_atom + 8;
    d->cell = is_charmm && head[HAS_CELL] != 0 ? 48 + 8 : 0;
    d->per_frame =
        d->cell + (is_charmm && head[HAS_FOURTH] != 0 ? 4 : 3) * axis;
    return TSR_OK;
}

static tsr_status open_file(tsr_dcd *d, const char *path, tsr_err *err)
{
    struct stat info;
    d->fd = open(path, O_RDONLY | O_CLOEXEC);
    if (d->fd < 0 || fstat(d->fd, &info) != 0 || !S_ISREG(info.st_mode))
        return tsr_fail(err, TSR_E_NOINPUT, "cannot open '%s': %s", path,
                        d->fd < 0 ? strerror(errno) : "not a file");
    d->size = (size_t)info.st_size;
    TSR_TRY(read_head(d, err));
    if (tsr_dcd_info_get(d).n_frame < 1)
        return tsr_fail(err, TSR_E_DATA, "'%s' has no complete frame", path);
    tsr_pool_array(&d->pool, d->axis, d->n_atom);
    return tsr_pool_check(&d->pool, err);
}

tsr_status tsr_dcd_open(const char *path, tsr_dcd **out, tsr_err *err)
{
    tsr_dcd *d = *out = calloc(1, sizeof *d);
    TSR_TRY(tsr_allocated(d, err));
    d->fd = -1;
    d->path = tsr_pool_text(&d->pool, path);
    const tsr_status status = open_file(d, path, err);
    if (status != TSR_OK) {
        tsr_dcd_free(d);
        *out = NULL;
    }
    return status;
}

tsr_dcd_info tsr_dcd_info_get(const tsr_dcd *dcd)
{
    const size_t n = (dcd->size - dcd->first) / dcd->per_frame;
    return (tsr_dcd_info){.n_atom = dcd->n_atom,
                          .n_frame = n < INT32_MAX ? (int)n : INT32_MAX,
                          .is_cut =
                              (dcd->size - dcd->first) % dcd->per_frame != 0};
}

tsr_status tsr_dcd_read(tsr_dcd *dcd, int k, double (*xyz)[3], tsr_err *err)
{
    const size_t n = (size_t)dcd->n_atom;
    size_t at = dcd->first + (size_t)k * dcd->per_frame + dcd->cell, length;
    for (int c = 0; c < 3; c++, at += 4 * n + 8) {
        TSR_TRY(check_record(dcd, at, &length, err));
        if (length != 4 * n)
            return damaged(dcd, at, err);
        TSR_TRY(read_at(dcd, dcd->axis, 4 * n, at + 4, err));
        swap_bytes(dcd, dcd->axis, n);
        for (size_t i = 0; i < n; i++) {
            xyz[i][c] = (double)dcd->axis[i];
            if (!isfinite(xyz[i][c]))
                return tsr_fail(err, TSR_E_DATA,
                                "'%s': frame %d, atom %zu: a coordinate is not "
                                "a finite number",
                                dcd->path, k + 1, i + 1);
        }
    }
    return TSR_OK;
}
