/* Bringing what HDF5 wrote to the disk; hdf5_store.h has the order of the
 * steps. Many files go through each step together: then one sync of the file
 * system takes most of the time that a sync of each would. */
#define _GNU_SOURCE /* syncfs */
#include "store/hdf5_store_parts.h"

#include "files/file.h"
#include "store/journal.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { AT_ONCE = 64, WORTH_IT = 8 };

/* One store on its way through a commit. */
typedef struct {
    tsr_hdf5_store *store;
    int is_needed, failed; /* errno */
    int journal, is_new;
    int left; /* the journal may be complete on the disk */
} job;

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
            const size_t part = tsr_hdf5_part_of_page(at, to - at);
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

/* For the space only: HDF5 does not mind a longer file. */
static void cut_growth(const tsr_hdf5_store *store)
{
    int cut = ftruncate(store->fd, (off_t)(store->on_disk + store->tail));
    (void)cut;
}

/* A file that grows loses its old seal: the pages that hold it become pages
 * that change, so that the seal stays until the journal has the new one. */
static int cover_old_seal(tsr_hdf5_store *store)
{
    const size_t end = store->on_disk + store->tail;

    for (size_t at = store->on_disk; at < end && at < store->size;) {
        if (tsr_hdf5_store_writable(store, at) == NULL)
            return ENOMEM;
        at += tsr_hdf5_part_of_page(at, end - at);
    }
    return 0;
}

/* The pages that cover what is on the disk, ascending. 0 or an errno. */
static int list_changes(tsr_hdf5_store *store)
{
    const size_t end = store->on_disk > 0 ? store->on_disk + store->tail : 1;
    tsr_journal_page *list;

    if (cover_old_seal(store) != 0 ||
        (list = realloc(store->change, (store->n_held + 2) * sizeof *list)) ==
            NULL)
        return ENOMEM;
    store->change = list;
    store->n_change = 0;
    for (size_t i = 0; i < store->n_page; i++) {
        const size_t at = i * PAGE;
        if (store->page[i] == NULL || at >= end || at >= store->size)
            continue;
        const size_t n = tsr_hdf5_part_of_page(at, store->size - at);
        list[store->n_change++] = (tsr_journal_page){at, n, store->page[i]};
    }
    return 0;
}

/* The last of the changes: a file has its seal only with all the others. */
static int add_seal(tsr_hdf5_store *store)
{
    const int failed = tsr_hdf5_store_make_seal(store);

    store->change[store->n_change++] = (tsr_journal_page){
        store->size, SEAL, (const unsigned char *)store->seal};
    return failed;
}

static void write_growth(job *j)
{
    const tsr_hdf5_store *store = j->store;
    const size_t from = store->on_disk + store->tail, to = store->size + SEAL;
    if (to > from)
        j->failed = write_range(store, from, to);
}

static void write_journal(job *j)
{
    tsr_hdf5_store *store = j->store;
    j->failed =
        tsr_journal_write(store->journal, store->size + SEAL, store->n_change,
                          store->change, &j->journal, &j->is_new);
}

static void write_changes(job *j)
{
    const tsr_hdf5_store *store = j->store;
    j->failed = tsr_journal_put(store->fd, store->size + SEAL, store->n_change,
                                store->change);
}

static int is_alive(const job *j)
{
    return j->is_needed && j->failed == 0;
}

/* Only fsync reports a failure of just this file, on every kernel; after the
 * other it has little left to do. */
static void sync_each(job *jobs, int n, int journals)
{
    int n_alive = 0, any = -1;

    for (int i = 0; i < n; i++)
        if (is_alive(&jobs[i])) {
            any = journals ? jobs[i].journal : jobs[i].store->fd;
            n_alive++;
        }
#ifdef __linux__
    if (n_alive >= WORTH_IT)
        (void)syncfs(any);
#else
    (void)any;
#endif
    for (int i = 0; i < n; i++) {
        job *j = &jobs[i];
        if (!is_alive(j))
            continue;
        if (journals)
            j->failed =
                tsr_journal_sync(j->journal, j->store->journal, j->is_new);
        else if (fsync(j->store->fd) != 0)
            j->failed = errno;
    }
}

static void step(job *jobs, int n, void (*write_one)(job *), int journals)
{
    for (int i = 0; i < n; i++)
        if (is_alive(&jobs[i]))
            write_one(&jobs[i]);
    sync_each(jobs, n, journals);
}

/* An open file that somebody has removed, or replaced, takes what is written
 * and loses it: ENOENT or ESTALE where the name is no longer that file's. */
static int find_moved(const tsr_hdf5_store *store)
{
    struct stat named, ours;

    if (stat(store->path, &named) != 0 || fstat(store->fd, &ours) != 0)
        return errno;
    return named.st_dev == ours.st_dev && named.st_ino == ours.st_ino ? 0
                                                                      : ESTALE;
}

static void prepare(job *j, tsr_hdf5_store *store)
{
    *j = (job){.store = store, .journal = -1, .failed = store->failed};
    if (j->failed == 0)
        j->failed = find_moved(store);
    if (j->failed == 0)
        j->failed = list_changes(store);
    if (j->failed != 0)
        return;
    j->is_needed = store->n_change > 0 || store->size != store->on_disk ||
                   (store->size > 0 && store->tail == 0);
    if (j->is_needed)
        j->failed = add_seal(store);
}

/* The file has not been touched: it loses what it has grown by, but not where
 * its journal may be complete. */
static void give_up(job *j)
{
    if (j->journal >= 0)
        j->left = tsr_journal_abandon(j->journal);
    j->journal = -1;
    j->store->journal_idle = !j->left;
    if (!j->left)
        cut_growth(j->store);
}

static void finish(job *j)
{
    tsr_hdf5_store *store = j->store;

    if (is_alive(j)) {
        tsr_journal_end(j->journal);
        store->journal_idle = 1;
    } else if (j->journal >= 0) {
        close(j->journal); /* it has the rest */
        store->journal_idle = 0;
    }
    store->failed = j->failed;
    if (j->failed == 0) {
        if (j->is_needed) {
            store->on_disk = store->size;
            store->tail = SEAL;
        }
        tsr_hdf5_store_drop_pages(store);
    }
}

static tsr_status commit(tsr_hdf5_store *const *store, int n, tsr_err *err)
{
    job jobs[AT_ONCE];
    tsr_status status = TSR_OK;

    for (int i = 0; i < n; i++)
        prepare(&jobs[i], store[i]);
    step(jobs, n, write_growth, 0);
    step(jobs, n, write_journal, 1);
    for (int i = 0; i < n; i++)
        if (jobs[i].is_needed && jobs[i].failed != 0)
            give_up(&jobs[i]);
    step(jobs, n, write_changes, 0);
    for (int i = 0; i < n; i++) {
        finish(&jobs[i]);
        if (jobs[i].failed != 0 && status == TSR_OK)
            status = tsr_fail(err, TSR_E_IO, "cannot write '%s': %s",
                              store[i]->path, strerror(jobs[i].failed));
    }
    return status;
}

tsr_status tsr_hdf5_store_commit_all(tsr_hdf5_store *const *store, int n,
                                     tsr_err *err)
{
    tsr_status status = TSR_OK;

    for (int i = 0; i < n; i += AT_ONCE) {
        const int some = n - i < AT_ONCE ? n - i : AT_ONCE;
        tsr_status one = commit(store + i, some, status == TSR_OK ? err : NULL);
        TSR_THEN(status, one);
    }
    return status;
}

tsr_status tsr_hdf5_store_commit(tsr_hdf5_store *store, tsr_err *err)
{
    return commit(&store, 1, err);
}
