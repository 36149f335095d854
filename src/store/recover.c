#include "store/recover.h"

#include "store/hdf5_store.h"
#include "store/journal.h"

#include <dirent.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

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
    tsr_status status = tsr_hdf5_store_recover(path, &overlay, &is_busy, err);
    if (status != TSR_OK)
        return status;
    if (overlay != NULL) {
        if (recovery->n_pending++ == 0)
            snprintf(recovery->pending, sizeof recovery->pending, "%s", name);
    } else if (is_busy) {
        recovery->n_busy++;
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
        const size_t room = strlen(directory) + n + 2;
        tsr_err why;
        if (n < sizeof ending ||
            strcmp(entry->d_name + n + 1 - sizeof ending, ending) != 0)
            continue;
        char *journal = malloc(room);
        char *path = malloc(room);
        tsr_status one = TSR_E_NOMEM;
        if (journal == NULL || path == NULL) {
            tsr_fail(&why, one, "no memory to look at '%s'", directory);
        } else {
            snprintf(journal, room, "%s/%s", directory, entry->d_name);
            snprintf(path, room, "%s", journal);
            path[strlen(path) + 1 - sizeof ending] = '\0';
            one = recover_one(path, journal, strrchr(path, '/') + 1, recovery,
                              &why);
        }
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
