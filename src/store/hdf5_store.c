/* The driver's functions and the pages that wait. Commit, recovery and seal are
 * in hdf5_store_commit.c, hdf5_store_recover.c and hdf5_store_seal.c. */
#include "store/hdf5_store_parts.h"

#if H5_VERSION_GE(1, 13, 0)
#include <H5FDdevelop.h>
#endif

#include "files/file.h"
#include "store/journal.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* ---- pages ---- */

/* n bytes at `at`, which lie in one page, past every write so far. What was
 * never written is 0. */
static int peek(tsr_hdf5_store *store, size_t at, unsigned char *to, size_t n)
{
    const size_t i = at / PAGE;

    if (i < store->n_page && store->page[i] != NULL) {
        memcpy(to, store->page[i] + at % PAGE, n);
        return 1;
    }
    size_t known = at >= store->on_disk ? 0 : store->on_disk - at;
    if (known > n)
        known = n;
    memset(to + known, 0, n - known);
    return tsr_file_read_at(store->fd, to, known, at) == 0;
}

unsigned char *tsr_hdf5_store_writable(tsr_hdf5_store *store, size_t at)
{
    const size_t i = at / PAGE;

    if (i >= store->n_page) {
        const size_t n_page = i + i / 2 + 64;
        unsigned char **page =
            realloc(store->page, n_page * sizeof *store->page);
        if (page == NULL)
            return NULL;
        for (size_t k = store->n_page; k < n_page; k++)
            page[k] = NULL;
        store->page = page;
        store->n_page = n_page;
    }
    if (store->page[i] == NULL) {
        unsigned char *fresh = malloc(PAGE);
        if (fresh == NULL || !peek(store, i * PAGE, fresh, PAGE)) {
            free(fresh);
            return NULL;
        }
        store->page[i] = fresh;
        store->n_held++;
    }
    return store->page[i];
}

void tsr_hdf5_store_drop_pages(tsr_hdf5_store *store)
{
    for (size_t i = 0; i < store->n_page; i++) {
        free(store->page[i]);
        store->page[i] = NULL;
    }
    store->n_held = 0;
}

/* ---- the driver, as HDF5 calls it ---- */

typedef struct {
    H5FD_t base; /* HDF5's; must be first */
    tsr_hdf5_store *store;
    haddr_t end; /* of the space that HDF5 has given out */
} handle;

typedef struct {
    tsr_hdf5_store *store;
} driver_info;

static H5FD_t *driver_open(const char *name, unsigned flags, hid_t access,
                           haddr_t max)
{
    const driver_info *info = H5Pget_driver_info(access);
    handle *file = calloc(1, sizeof *file);

    (void)name, (void)flags, (void)max;
    if (info == NULL || file == NULL) {
        free(file);
        return NULL;
    }
    file->store = info->store;
    return &file->base;
}

static herr_t driver_close(H5FD_t *base)
{
    free((handle *)base);
    return 0;
}

static int driver_compare(const H5FD_t *a, const H5FD_t *b)
{
    const char *left = ((const handle *)a)->store->path;
    const char *right = ((const handle *)b)->store->path;
    return strcmp(left, right);
}

static herr_t driver_query(const H5FD_t *base, unsigned long *flags)
{
    (void)base;
    if (flags != NULL)
        *flags = H5FD_FEAT_AGGREGATE_METADATA | H5FD_FEAT_ACCUMULATE_METADATA |
                 H5FD_FEAT_DATA_SIEVE | H5FD_FEAT_AGGREGATE_SMALLDATA;
    return 0;
}

static haddr_t driver_get_eoa(const H5FD_t *base, H5FD_mem_t type)
{
    (void)type;
    return ((const handle *)base)->end;
}

static herr_t driver_set_eoa(H5FD_t *base, H5FD_mem_t type, haddr_t end)
{
    (void)type;
    ((handle *)base)->end = end;
    return 0;
}

static haddr_t driver_get_eof(const H5FD_t *base, H5FD_mem_t type)
{
    (void)type;
    return ((const handle *)base)->store->size;
}

/* What HDF5 has read so far would not go with what it reads from now on. */
static herr_t check_unchanged(const tsr_hdf5_store *store)
{
    struct stat now;

    if (fstat(store->fd, &now) == 0 && now.st_size == store->seen.st_size &&
        now.st_mtim.tv_sec == store->seen.st_mtim.tv_sec &&
        now.st_mtim.tv_nsec == store->seen.st_mtim.tv_nsec)
        return 0;
    H5Epush2(H5E_DEFAULT, __FILE__, __func__, __LINE__, H5E_ERR_CLS, H5E_IO,
             H5E_READERROR,
             "a run has begun to write the file while it was read; try again");
    return -1;
}

static herr_t driver_read(H5FD_t *base, H5FD_mem_t type, hid_t transfer,
                          haddr_t at, size_t n, void *buffer)
{
    tsr_hdf5_store *store = ((handle *)base)->store;
    unsigned char *to = buffer;

    (void)type, (void)transfer;
    while (n > 0) {
        const size_t part = tsr_hdf5_part_of_page((size_t)at, n);
        if (!peek(store, (size_t)at, to, part))
            return -1;
        to += part;
        at += part;
        n -= part;
    }
    return store->is_watched ? check_unchanged(store) : 0;
}

static herr_t driver_write(H5FD_t *base, H5FD_mem_t type, hid_t transfer,
                           haddr_t at, size_t n, const void *buffer)
{
    tsr_hdf5_store *store = ((handle *)base)->store;
    const unsigned char *from = buffer;

    (void)type, (void)transfer;
    while (n > 0) {
        const size_t part = tsr_hdf5_part_of_page((size_t)at, n);
        unsigned char *page = tsr_hdf5_store_writable(store, (size_t)at);
        if (page == NULL)
            return -1;
        memcpy(page + at % PAGE, from, part);
        from += part;
        at += part;
        n -= part;
        if (at > store->size)
            store->size = (size_t)at;
    }
    return 0;
}

/* The file ends where the space given out ends: HDF5 refuses a shorter one. */
static herr_t driver_truncate(H5FD_t *base, hid_t transfer, hbool_t closing)
{
    handle *file = (handle *)base;

    (void)transfer, (void)closing;
    file->store->size = (size_t)file->end;
    return 0;
}

herr_t tsr_hdf5_store_attach(tsr_hdf5_store *store, hid_t access)
{
    const H5FD_class_t driver = {
#ifdef H5FD_CLASS_VERSION
        .version = H5FD_CLASS_VERSION,
        .value = 600, /* 512 and above: not registered with the HDF Group */
#endif
        .name = "tessera store",
        .maxaddr = (haddr_t)1 << 62,
        .fc_degree = H5F_CLOSE_STRONG,
        .fapl_size = sizeof(driver_info),
        .open = driver_open,
        .close = driver_close,
        .cmp = driver_compare,
        .query = driver_query,
        .get_eoa = driver_get_eoa,
        .set_eoa = driver_set_eoa,
        .get_eof = driver_get_eof,
        .read = driver_read,
        .write = driver_write,
        .truncate = driver_truncate,
        .fl_map = H5FD_FLMAP_DICHOTOMY,
    };
    const driver_info info = {store};

    /* Until the store is freed: H5FD_close of HDF5 1.10 still looks at the
     * driver when it has given back the file's share in it. */
    if (store->driver <= 0)
        store->driver = H5FDregister(&driver);
    return store->driver < 0 ? -1 : H5Pset_driver(access, store->driver, &info);
}

/* ---- opening ---- */

/* Without a file yet; NULL without memory. */
static tsr_hdf5_store *store_new(const char *path)
{
    tsr_hdf5_store *store = calloc(1, sizeof *store);

    if (store == NULL)
        return NULL;
    store->fd = -1;
    store->path = strdup(path);
    store->journal = tsr_journal_name(path);
    if (store->path == NULL || store->journal == NULL) {
        tsr_hdf5_store_free(store);
        return NULL;
    }
    return store;
}

/* A journal of an earlier file of that name must not come back after a power
 * cut, so its removal is synced. The new name itself is synced with that of the
 * new journal. */
tsr_status tsr_hdf5_store_create(const char *path, tsr_hdf5_store **out,
                                 tsr_err *err)
{
    tsr_hdf5_store *store = store_new(path);

    *out = NULL;
    if (store == NULL)
        return tsr_fail(err, TSR_E_NOMEM, "no memory for '%s'", path);
    store->fd = open(path, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
    if (store->fd < 0) {
        tsr_status status =
            errno == EEXIST
                ? tsr_fail(err, TSR_E_IO,
                           "'%s' exists already; remove it, or choose another "
                           "output directory",
                           path)
                : tsr_fail(err, TSR_E_IO, "cannot create '%s': %s", path,
                           strerror(errno));
        tsr_hdf5_store_free(store);
        return status;
    }
    int failed = 0;
    if (unlink(store->journal) == 0)
        failed = tsr_file_sync_directory(path);
    else if (errno != ENOENT)
        failed = errno;
    if (failed != 0) {
        tsr_hdf5_store_discard(store);
        return tsr_fail(err, TSR_E_IO, "cannot create '%s': %s", path,
                        strerror(failed));
    }
    *out = store;
    return TSR_OK;
}

static int is_missing(int why)
{
    return why == ENOENT || why == ENOTDIR;
}

/* Opens the file, with the flags of open(). */
static tsr_status open_disk(tsr_hdf5_store *store, int flags, tsr_err *err)
{
    struct stat info;

    store->fd = open(store->path, flags | O_NONBLOCK | O_CLOEXEC);
    if (store->fd < 0 || fstat(store->fd, &info) != 0)
        return tsr_fail(err, is_missing(errno) ? TSR_E_NOINPUT : TSR_E_IO,
                        "cannot open '%s': %s", store->path, strerror(errno));
    store->on_disk = store->size = (size_t)info.st_size;
    return TSR_OK;
}

tsr_status tsr_hdf5_store_open(const char *path, tsr_hdf5_store **out,
                               tsr_err *err)
{
    tsr_hdf5_store *none = NULL;
    int is_busy = 0;

    *out = NULL;
    TSR_TRY(tsr_hdf5_store_repair(path, 1, &none, &is_busy, err));
    tsr_hdf5_store *store = store_new(path);
    if (store == NULL)
        return tsr_fail(err, TSR_E_NOMEM, "no memory to open '%s'", path);
    tsr_status status = open_disk(store, O_RDWR, err);
    if (status != TSR_OK) {
        tsr_hdf5_store_free(store);
        return status;
    }
    status = tsr_hdf5_store_verify(store, err);
    if (status != TSR_OK) {
        tsr_hdf5_store_free(store);
        return tsr_wrap(err, status, "'%s'", path);
    }
    store->journal_idle = 1;
    *out = store;
    return TSR_OK;
}

int tsr_hdf5_store_has_failed(const tsr_hdf5_store *store)
{
    return store->failed != 0;
}

size_t tsr_hdf5_store_pending(const tsr_hdf5_store *store)
{
    return store->n_held * PAGE;
}

tsr_status tsr_hdf5_store_open_reading(const char *path, tsr_hdf5_store **out,
                                       tsr_err *err)
{
    tsr_hdf5_store *store = store_new(path);
    tsr_status status = store == NULL ? tsr_fail(err, TSR_E_NOMEM,
                                                 "no memory to open '%s'", path)
                                      : open_disk(store, O_RDONLY, err);

    if (status == TSR_OK) {
        store->failed = EROFS;
    } else {
        tsr_hdf5_store_free(store);
        store = NULL;
    }
    *out = store;
    return status;
}

void tsr_hdf5_store_discard(tsr_hdf5_store *store)
{
    if (store == NULL)
        return;
    unlink(store->path);
    store->journal_idle = 1;
    tsr_hdf5_store_free(store);
}

void tsr_hdf5_store_free(tsr_hdf5_store *store)
{
    if (store == NULL)
        return;
    if (store->fd >= 0)
        close(store->fd);
    if (store->journal_idle)
        unlink(store->journal);
    if (store->driver > 0)
        H5FDunregister(store->driver);
    tsr_hdf5_store_drop_pages(store);
    free(store->page);
    free(store->change);
    free(store->path);
    free(store->journal);
    free(store);
}
