#include "io/hdf5_store.h"

#if H5_VERSION_GE(1, 13, 0)
#include <H5FDdevelop.h>
#endif

#include "io/file.h"
#include "io/journal.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { PAGE = 4096 };

struct tsr_hdf5_store {
    char *path;
    char *journal; /* its name */
    int fd;
    int failed;           /* errno of the commit that failed */
    int journal_idle;     /* nothing in it is needed any more */
    size_t on_disk;       /* bytes of the file on the disk */
    size_t size;          /* bytes as HDF5 sees it */
    size_t n_page;        /* room of `page` */
    size_t n_held;        /* pages that are not NULL */
    unsigned char **page; /* [n_page] written since the last commit, or NULL */
};

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

/* The page at `at` for writing; NULL without memory or where the disk fails. */
static unsigned char *writable(tsr_hdf5_store *store, size_t at)
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

/* ---- opening ---- */

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

static tsr_status open_disk(tsr_hdf5_store *store, int flags, tsr_err *err)
{
    struct stat info;

    store->fd = open(store->path, flags | O_CLOEXEC);
    if (store->fd < 0 || fstat(store->fd, &info) != 0)
        return tsr_fail(err, is_missing(errno) ? TSR_E_NOINPUT : TSR_E_IO,
                        "cannot open '%s': %s", store->path, strerror(errno));
    store->on_disk = store->size = (size_t)info.st_size;
    return TSR_OK;
}

/* Pages of a journal that the file must not get, as if just written. */
static tsr_status lay_over(tsr_hdf5_store *store, const tsr_journal *journal,
                           tsr_err *err)
{
    for (size_t i = 0; i < journal->n_page; i++) {
        const unsigned char *from = journal->page[i].bytes;
        size_t at = journal->page[i].at, n = journal->page[i].n;
        while (n > 0) {
            const size_t part = part_of_page(at, n);
            unsigned char *page = writable(store, at);
            if (page == NULL)
                return tsr_fail(err, TSR_E_IO, "cannot read '%s'", store->path);
            memcpy(page + at % PAGE, from, part);
            from += part;
            at += part;
            n -= part;
        }
    }
    store->size = journal->length;
    return TSR_OK;
}

/* A commit makes the file as long as it will be before it completes the
 * journal. */
static tsr_status check_length(const char *path, size_t length, tsr_err *err)
{
    struct stat info;

    if (stat(path, &info) != 0)
        return tsr_fail(err, is_missing(errno) ? TSR_E_NOINPUT : TSR_E_IO,
                        "cannot open '%s': %s", path, strerror(errno));
    if ((size_t)info.st_size < length)
        return tsr_fail(err, TSR_E_DATA,
                        "'%s' has %lld bytes, and its journal belongs to a "
                        "file of %zu: it was cut off or replaced; restore both "
                        "from a copy",
                        path, (long long)info.st_size, length);
    return TSR_OK;
}

/* 0 where the pages are in the file and the journal is empty. */
static int finish_commit(const char *path, tsr_journal *journal)
{
    int fd = open(path, O_RDWR | O_CLOEXEC);
    if (fd < 0)
        return errno;
    int failed =
        tsr_journal_apply(fd, journal->length, journal->n_page, journal->page);
    close(fd);
    if (failed == 0) {
        tsr_journal_end(journal->fd);
        journal->fd = -1;
    }
    return failed;
}

static tsr_status recover(const char *path, int must_write,
                          tsr_hdf5_store **overlay, int *is_busy, tsr_err *err)
{
    tsr_journal journal;
    tsr_journal_state state;
    tsr_status status;
    char *name = tsr_journal_name(path);

    if (name == NULL)
        return tsr_fail(err, TSR_E_NOMEM, "no memory to open '%s'", path);
    int failed = tsr_journal_read(name, &journal, &state);
    free(name);
    if (failed != 0)
        return tsr_fail(err, TSR_E_IO, "cannot read '%s.journal': %s", path,
                        strerror(failed));
    if (state == TSR_JOURNAL_NEWER)
        return tsr_fail(err, TSR_E_DATA,
                        "'%s.journal' was left by a newer tessera, or on "
                        "another kind of machine; open it there once",
                        path);
    *is_busy = state == TSR_JOURNAL_BUSY;
    if (state == TSR_JOURNAL_BUSY && must_write)
        return tsr_fail(err, TSR_E_IO,
                        "'%s' is being written by another process; stop it "
                        "first",
                        path);
    if (state != TSR_JOURNAL_OURS && state != TSR_JOURNAL_SEEN)
        return TSR_OK;
    status = check_length(path, journal.length, err);
    if (status == TSR_OK) {
        /* Without locks only who must be alone may write. */
        failed = state == TSR_JOURNAL_OURS || must_write
                     ? finish_commit(path, &journal)
                     : EACCES;
        if (failed != 0 && must_write) {
            status = tsr_fail(err, TSR_E_IO,
                              "'%s' was left in the middle of a write, which "
                              "cannot be finished: %s; make it writable, or "
                              "free space",
                              path, strerror(failed));
        } else if (failed != 0) {
            tsr_hdf5_store *store = store_new(path);
            status = store == NULL ? tsr_fail(err, TSR_E_NOMEM,
                                              "no memory to open '%s'", path)
                                   : open_disk(store, O_RDONLY, err);
            if (status == TSR_OK)
                status = lay_over(store, &journal, err);
            if (status == TSR_OK) {
                store->failed = EROFS;
                *overlay = store;
            } else {
                tsr_hdf5_store_free(store);
            }
        }
    }
    tsr_journal_free(&journal);
    return status;
}

tsr_status tsr_hdf5_store_recover(const char *path, tsr_hdf5_store **overlay,
                                  int *is_busy, tsr_err *err)
{
    *overlay = NULL;
    *is_busy = 0;
    return recover(path, 0, overlay, is_busy, err);
}

tsr_status tsr_hdf5_store_open(const char *path, tsr_hdf5_store **out,
                               tsr_err *err)
{
    tsr_hdf5_store *none = NULL;
    int is_busy = 0;
    tsr_status status = recover(path, 1, &none, &is_busy, err);

    *out = NULL;
    if (status != TSR_OK)
        return status;
    tsr_hdf5_store *store = store_new(path);
    if (store == NULL)
        return tsr_fail(err, TSR_E_NOMEM, "no memory to open '%s'", path);
    status = open_disk(store, O_RDWR, err);
    if (status != TSR_OK) {
        tsr_hdf5_store_free(store);
        return status;
    }
    store->journal_idle = 1;
    *out = store;
    return TSR_OK;
}

/* ---- the disk ---- */

/* Brings the bytes from..to to the disk; those without a page of their own are
 * 0, and written so: a hole would be filled later, perhaps on a full disk.
 * Page 0 of a new file stays 0: until the journal has it, there is no file. */
static int write_range(const tsr_hdf5_store *store, size_t from, size_t to)
{
    const size_t room = (size_t)64 * PAGE;
    unsigned char *buffer = malloc(room);
    int failed = buffer == NULL ? ENOMEM : 0;

    while (from < to && failed == 0) {
        size_t n = 0;
        while (n + PAGE <= room && from + n < to) {
            const size_t at = from + n, i = at / PAGE;
            const size_t part = part_of_page(at, to - at);
            if (i > 0 && i < store->n_page && store->page[i] != NULL)
                memcpy(buffer + n, store->page[i] + at % PAGE, part);
            else
                memset(buffer + n, 0, part);
            n += part;
        }
        failed = tsr_file_write_at(store->fd, buffer, n, from);
        from += n;
    }
    free(buffer);
    return failed;
}

static int write_growth(tsr_hdf5_store *store)
{
    if (store->size <= store->on_disk)
        return 0;
    int failed = write_range(store, store->on_disk, store->size);
    if (failed == 0 && fsync(store->fd) != 0)
        failed = errno;
    return failed;
}

/* For the space only: HDF5 does not mind a longer file. */
static void cut_growth(const tsr_hdf5_store *store)
{
    int cut = ftruncate(store->fd, (off_t)store->on_disk);
    (void)cut;
}

/* The pages that cover what is on the disk, ascending; NULL without memory. */
static tsr_journal_page *list_changes(const tsr_hdf5_store *store, size_t *n)
{
    const size_t end = store->on_disk > 0 ? store->on_disk : 1;
    tsr_journal_page *list = malloc((store->n_page + 1) * sizeof *list);

    *n = 0;
    for (size_t i = 0; list != NULL && i < store->n_page; i++) {
        const size_t at = i * PAGE;
        if (store->page[i] == NULL || at >= end || at >= store->size)
            continue;
        list[*n].at = at;
        list[*n].n = part_of_page(at, store->size - at);
        list[(*n)++].bytes = store->page[i];
    }
    return list;
}

static int commit(tsr_hdf5_store *store)
{
    size_t n = 0;
    int fd = -1, left = 0;
    tsr_journal_page *change = list_changes(store, &n);
    int failed = change == NULL ? ENOMEM : 0;

    if (failed == 0 && n == 0 && store->size == store->on_disk)
        goto done;
    if (failed == 0)
        failed = write_growth(store);
    if (failed == 0)
        failed = tsr_journal_begin(store->journal, store->size, n, change, &fd,
                                   &left);
    if (failed != 0) {
        store->journal_idle = !left;
        if (!left)
            cut_growth(store);
        goto done;
    }
    failed = tsr_journal_apply(store->fd, store->size, n, change);
    store->journal_idle = failed == 0;
    if (failed == 0)
        tsr_journal_end(fd);
    else
        close(fd); /* it has the rest */
done:
    free(change);
    return failed;
}

tsr_status tsr_hdf5_store_commit(tsr_hdf5_store *store, tsr_err *err)
{
    if (store->failed == 0)
        store->failed = commit(store);
    if (store->failed != 0)
        return tsr_fail(err, TSR_E_IO, "cannot write '%s': %s", store->path,
                        strerror(store->failed));
    store->on_disk = store->size;
    drop_pages(store);
    return TSR_OK;
}

size_t tsr_hdf5_store_pending(const tsr_hdf5_store *store)
{
    return store->n_held * PAGE;
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
    drop_pages(store);
    free(store->page);
    free(store->path);
    free(store->journal);
    free(store);
}
