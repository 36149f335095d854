#include "io/hdf5_store.h"

#if H5_VERSION_GE(1, 13, 0)
#include <H5FDdevelop.h>
#endif

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/types.h>
#include <unistd.h>

enum { PAGE = 4096 };

struct tsr_hdf5_store {
    char *path;
    int fd;
    int failed;           /* errno of the commit that failed */
    size_t on_disk;       /* bytes of the file on the disk */
    size_t size;          /* bytes as HDF5 sees it */
    size_t n_page;        /* room of `page` */
    unsigned char **page; /* [n_page] written since the last commit, or NULL */
};

/* ---- pages ---- */

static int read_fully(int fd, unsigned char *to, size_t n, size_t at)
{
    while (n > 0) {
        ssize_t got = pread(fd, to, n, (off_t)at);
        if (got < 0 && errno == EINTR)
            continue;
        if (got <= 0)
            return 0;
        to += got;
        at += (size_t)got;
        n -= (size_t)got;
    }
    return 1;
}

static int write_fully(int fd, const unsigned char *from, size_t n, size_t at)
{
    while (n > 0) {
        ssize_t put = pwrite(fd, from, n, (off_t)at);
        if (put < 0 && errno == EINTR)
            continue;
        if (put <= 0) {
            if (put == 0)
                errno = ENOSPC;
            return 0;
        }
        from += put;
        at += (size_t)put;
        n -= (size_t)put;
    }
    return 1;
}

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
    return read_fully(store->fd, to, known, at);
}

/* The page at `at` for writing; NULL without memory or where the disk fails. */
static unsigned char *writable(tsr_hdf5_store *store, size_t at)
{
    const size_t i = at / PAGE;

    if (i >= store->n_page) {
        size_t n_page = 2 * store->n_page > i ? 2 * store->n_page : i + 64;
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
    }
    return store->page[i];
}

static size_t part_of_page(size_t at, size_t n)
{
    const size_t left = PAGE - at % PAGE;
    return n < left ? n : left;
}

static void drop_pages(tsr_hdf5_store *store)
{
    for (size_t i = 0; i < store->n_page; i++) {
        free(store->page[i]);
        store->page[i] = NULL;
    }
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

static herr_t driver_read(H5FD_t *base, H5FD_mem_t type, hid_t transfer,
                          haddr_t at, size_t n, void *buffer)
{
    tsr_hdf5_store *store = ((handle *)base)->store;
    unsigned char *to = buffer;

    (void)type, (void)transfer;
    while (n > 0) {
        const size_t part = part_of_page((size_t)at, n);
        if (!peek(store, (size_t)at, to, part))
            return -1;
        to += part;
        at += part;
        n -= part;
    }
    return 0;
}

static herr_t driver_write(H5FD_t *base, H5FD_mem_t type, hid_t transfer,
                           haddr_t at, size_t n, const void *buffer)
{
    tsr_hdf5_store *store = ((handle *)base)->store;
    const unsigned char *from = buffer;

    (void)type, (void)transfer;
    while (n > 0) {
        const size_t part = part_of_page((size_t)at, n);
        unsigned char *page = writable(store, (size_t)at);
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
    hid_t id = H5FDregister(&driver);

    if (id < 0)
        return -1;
    herr_t set = H5Pset_driver(access, id, &info);
    /* The list, and later the file, keep the driver. */
    if (set >= 0)
        H5FDunregister(id);
    return set;
}

/* ---- the disk ---- */

tsr_status tsr_hdf5_store_create(const char *path, tsr_hdf5_store **out,
                                 tsr_err *err)
{
    *out = NULL;
    tsr_hdf5_store *store = calloc(1, sizeof *store);
    if (store == NULL || (store->path = strdup(path)) == NULL) {
        free(store);
        return tsr_fail(err, TSR_E_NOMEM, "no memory for '%s'", path);
    }
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
    *out = store;
    return TSR_OK;
}

/* Brings the bytes from..to to the disk; those without a page of their own are
 * 0, and written so: a hole would be filled later, perhaps on a full disk. */
static int write_range(const tsr_hdf5_store *store, size_t from, size_t to)
{
    const unsigned char zero[PAGE] = {0};

    while (from < to) {
        const size_t i = from / PAGE, n = part_of_page(from, to - from);
        const unsigned char *page =
            i < store->n_page && store->page[i] != NULL ? store->page[i] : zero;
        if (!write_fully(store->fd, page + from % PAGE, n, from))
            return 0;
        from += n;
    }
    return 1;
}

static int write_growth(tsr_hdf5_store *store)
{
    if (store->size <= store->on_disk)
        return 1;
    if (write_range(store, store->on_disk, store->size) &&
        fsync(store->fd) == 0)
        return 1;
    const int why = errno;
    /* For tidiness only: HDF5 does not mind a longer file. */
    int tidied = ftruncate(store->fd, (off_t)store->on_disk);
    (void)tidied;
    errno = why;
    return 0;
}

/* Ascending: the superblock, which says how long the file is, comes first. */
static int write_changes(tsr_hdf5_store *store)
{
    const size_t end =
        store->size < store->on_disk ? store->size : store->on_disk;

    for (size_t i = 0; i < store->n_page && i * PAGE < end; i++) {
        const size_t n = end - i * PAGE < PAGE ? end - i * PAGE : PAGE;
        if (store->page[i] != NULL &&
            !write_range(store, i * PAGE, i * PAGE + n))
            return 0;
    }
    if (store->size < store->on_disk &&
        ftruncate(store->fd, (off_t)store->size) != 0)
        return 0;
    return fsync(store->fd) == 0;
}

tsr_status tsr_hdf5_store_commit(tsr_hdf5_store *store, tsr_err *err)
{
    if (store->failed == 0 && (!write_growth(store) || !write_changes(store)))
        store->failed = errno != 0 ? errno : EIO;
    if (store->failed != 0)
        return tsr_fail(err, TSR_E_IO, "cannot write '%s': %s", store->path,
                        strerror(store->failed));
    store->on_disk = store->size;
    drop_pages(store);
    return TSR_OK;
}

void tsr_hdf5_store_free(tsr_hdf5_store *store)
{
    if (store == NULL)
        return;
    if (store->fd >= 0)
        close(store->fd);
    drop_pages(store);
    free(store->page);
    free(store->path);
    free(store);
}
