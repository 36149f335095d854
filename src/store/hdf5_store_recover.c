/* Commits that were interrupted, or are under way. */
#define _GNU_SOURCE /* mkostemp */
#include "store/hdf5_store_parts.h"

#include "core/text.h"
#include "files/file.h"
#include "store/hdf5_store.h"
#include "store/journal.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* Pages of a journal that the file must not get, as if just written. */
static tsr_status lay_over(tsr_hdf5_store *store, const tsr_journal *journal,
                           tsr_err *err)
{
    for (size_t i = 0; i < journal->n_page; i++) {
        const unsigned char *from = journal->page[i].bytes;
        size_t at = journal->page[i].at, n = journal->page[i].n;
        while (n > 0) {
            const size_t part = tsr_hdf5_part_of_page(at, n);
            unsigned char *page = tsr_hdf5_store_writable(store, at);
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
        return tsr_fail(err,
                        (errno == ENOENT || errno == ENOTDIR) ? TSR_E_NOINPUT
                                                              : TSR_E_IO,
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
    int fd = open(path, O_RDWR | O_NOFOLLOW | O_CLOEXEC);
    if (fd < 0)
        return errno;
    int failed =
        tsr_journal_put(fd, journal->length, journal->n_page, journal->page);
    if (failed == 0 && fsync(fd) != 0)
        failed = errno;
    close(fd);
    if (failed == 0) {
        tsr_journal_end(journal->fd);
        journal->fd = -1;
    }
    return failed;
}

tsr_status tsr_hdf5_store_repair(const char *path, int must_write,
                                 tsr_hdf5_store **overlay, int *is_busy,
                                 tsr_err *err)
{
    tsr_journal journal;
    tsr_journal_state state;
    tsr_status status;
    char *name = tsr_journal_name(path);

    if (name == NULL)
        return tsr_fail(err, TSR_E_NOMEM, "no memory to open '%s'", path);
    int failed = tsr_journal_read(name, must_write, &journal, &state);
    free(name);
    if (failed != 0)
        return tsr_fail(err, TSR_E_IO, "cannot read '%s.journal': %s", path,
                        strerror(failed));
    if (state == TSR_JOURNAL_NEWER)
        return tsr_fail(err, TSR_E_DATA,
                        "'%s.journal' was left by a newer tessera, or on "
                        "another kind of machine; open it there once",
                        path);
    if (state == TSR_JOURNAL_BAD)
        return tsr_fail(err, TSR_E_DATA,
                        "'%s.journal' is damaged: it has pages outside of its "
                        "file; restore both from a copy",
                        path);
    *is_busy = state == TSR_JOURNAL_BUSY;
    if (state == TSR_JOURNAL_BUSY && must_write) {
        tsr_journal_free(&journal);
        return tsr_fail(err, TSR_E_IO,
                        "'%s' is being written by another process; stop it "
                        "first",
                        path);
    }
    if (state == TSR_JOURNAL_NONE || journal.n_page == 0) {
        tsr_journal_free(&journal);
        return TSR_OK;
    }
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
            tsr_hdf5_store *store = NULL;
            status = tsr_hdf5_store_open_reading(path, &store, err);
            TSR_THEN(status, lay_over(store, &journal, err));
            if (status == TSR_OK)
                *overlay = store;
            else
                tsr_hdf5_store_free(store);
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
    return tsr_hdf5_store_repair(path, 0, overlay, is_busy, err);
}

/* ---- beside a writer ---- */

/* A file without a name, in TMPDIR or /tmp: it is gone with its descriptor. */
static tsr_status open_unnamed(int *fd, tsr_err *err)
{
    const char *folder = getenv("TMPDIR");

    if (folder == NULL || folder[0] == '\0')
        folder = "/tmp";
    char *name = tsr_words_of("%s/tessera-XXXXXX", folder);
    TSR_TRY(tsr_allocated(name, err));
    *fd = mkostemp(name, O_CLOEXEC);
    const int failed = *fd < 0 ? errno : 0;
    if (*fd >= 0)
        unlink(name);
    free(name);
    return failed == 0
               ? TSR_OK
               : tsr_fail(err, TSR_E_IO,
                          "a file that is being written is read from a copy, "
                          "which cannot be made in '%s': %s; name another "
                          "folder in the environment as TMPDIR",
                          folder, strerror(failed));
}

/* n bytes. *is_short: `from` has fewer. 0 or an errno of the copy. */
static int copy_bytes(int from, int to, size_t n, int *is_short)
{
    const size_t room = (size_t)1 << 20;
    char *buffer = malloc(room);
    int failed = buffer == NULL ? ENOMEM : 0;

    *is_short = 0;
    for (size_t at = 0; at < n && failed == 0 && !*is_short;) {
        const size_t part = n - at < room ? n - at : room;
        *is_short = tsr_file_read_at(from, buffer, part, at) != 0;
        if (!*is_short)
            failed = tsr_file_write_at(to, buffer, part, at);
        at += part;
    }
    free(buffer);
    return failed;
}

tsr_status tsr_hdf5_store_copy(tsr_hdf5_store *store, tsr_err *err)
{
    int fd = -1, is_short = 0;

    TSR_TRY(open_unnamed(&fd, err));
    const int failed = copy_bytes(store->fd, fd, store->on_disk, &is_short);
    close(store->fd);
    store->fd = fd;
    store->is_copy = 1;
    if (failed != 0)
        return tsr_fail(err, TSR_E_IO,
                        "it is being written, and read from a copy of %.4g "
                        "MiB, which cannot be made: %s; name a folder with "
                        "room in the environment as TMPDIR",
                        (double)store->on_disk / 1048576.0, strerror(failed));
    return is_short
               ? tsr_fail(err, TSR_E_DATA, "the file was cut while it was read")
               : TSR_OK;
}

/* ---- all files of a run ---- */

static const char ending[] = ".journal";

static tsr_status recover_one(const char *path, const char *journal,
                              const char *name, tsr_recovery *recovery,
                              tsr_err *err)
{
    tsr_hdf5_store *overlay = NULL;
    int is_busy = 0;

    if (tsr_journal_is_empty(journal))
        return TSR_OK;
    if (access(path, F_OK) != 0) {
        recovery->n_orphan++;
        return TSR_OK;
    }
    TSR_TRY(tsr_hdf5_store_recover(path, &overlay, &is_busy, err));
    if (is_busy) {
        recovery->n_busy++;
    } else if (overlay != NULL) {
        if (recovery->n_pending++ == 0)
            snprintf(recovery->pending, sizeof recovery->pending, "%s", name);
    } else if (tsr_journal_is_empty(journal)) {
        recovery->n_finished++;
    }
    tsr_hdf5_store_free(overlay);
    return TSR_OK;
}

tsr_status tsr_recover(const char *directory, tsr_recovery *recovery,
                       tsr_err *err)
{
    tsr_status status = TSR_OK;
    DIR *dir = opendir(directory);

    memset(recovery, 0, sizeof *recovery);
    if (dir == NULL)
        return tsr_fail(err, TSR_E_NOINPUT, "cannot open '%s': %s", directory,
                        strerror(errno));
    for (struct dirent *entry; (entry = readdir(dir)) != NULL;) {
        const size_t n = strlen(entry->d_name);
        tsr_err why;
        if (n < sizeof ending ||
            strcmp(entry->d_name + n + 1 - sizeof ending, ending) != 0)
            continue;
        const int stem = (int)(n + 1 - sizeof ending);
        char *journal = tsr_words_of("%s/%s", directory, entry->d_name);
        char *path = tsr_words_of("%s/%.*s", directory, stem, entry->d_name);
        tsr_status one = TSR_E_NOMEM;
        if (journal == NULL || path == NULL)
            tsr_fail(&why, one, "no memory to look at '%s'", directory);
        else
            one = recover_one(path, journal, tsr_text_file_name(path), recovery,
                              &why);
        free(journal);
        free(path);
        if (one != TSR_OK && status == TSR_OK) {
            status = one;
            if (err != NULL)
                *err = why;
        }
    }
    closedir(dir);
    return status;
}
