#include "store/hdf5_read.h"

#include "store/hdf5_error.h"
#include "store/journal.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

enum { TRIES = 5 };

static tsr_status open_once(const char *path, tsr_hdf5_input *input,
                            tsr_err *err)
{
    tsr_status status = TSR_OK;
    hid_t access = H5Pcreate(H5P_FILE_ACCESS);

    /* No lock, as in the writer: the run may be writing. */
    if (access < 0 || H5Pset_file_locking(access, 0, 1) < 0 ||
        tsr_hdf5_store_attach(input->store, access) < 0 ||
        (input->file = H5Fopen(path, H5F_ACC_RDONLY, access)) < 0)
        status = tsr_hdf5_fail(err, TSR_E_DATA, "cannot open it as HDF5");
    if (access >= 0)
        H5Pclose(access);
    return status;
}

/* Only a file of a run can change under a reader: one with a journal. */
static int has_journal(const char *path)
{
    char *name = tsr_journal_name(path);
    int there = name != NULL && access(name, F_OK) == 0;
    free(name);
    return there;
}

tsr_status tsr_hdf5_input_open(const char *path,
                               tsr_status (*check)(hid_t file, void *context,
                                                   tsr_err *err),
                               void *context, tsr_hdf5_input *input,
                               tsr_err *err)
{
    const struct timespec pause = {0, 20000000};
    tsr_status status = TSR_OK;

    *input = (tsr_hdf5_input){.file = -1};
    if (access(path, R_OK) != 0)
        return tsr_fail(err, TSR_E_NOINPUT, "cannot open '%s': %s", path,
                        strerror(errno));
    tsr_hdf5_quiet();
    for (int i = 0; i < TRIES; i++) {
        int is_busy;
        status = tsr_hdf5_store_recover(path, &input->store, &is_busy, err);
        if (status == TSR_OK && input->store == NULL)
            status = tsr_hdf5_store_open_reading(path, &input->store, err);
        if (status != TSR_OK)
            return status;
        status = tsr_hdf5_store_verify(input->store, err);
        if (status == TSR_OK)
            status = open_once(path, input, err);
        if (status == TSR_OK && check != NULL)
            status = check(input->file, context, err);
        if (status == TSR_OK)
            return TSR_OK;
        tsr_hdf5_input_close(input);
        if (status != TSR_E_DATA || !has_journal(path))
            break;
        nanosleep(&pause, NULL);
    }
    return tsr_wrap(err, status, "'%s'", path);
}

void tsr_hdf5_input_close(tsr_hdf5_input *input)
{
    if (input->file >= 0)
        H5Fclose(input->file);
    tsr_hdf5_store_free(input->store);
    *input = (tsr_hdf5_input){.file = -1};
}

/* HDF5 wants to be asked for one group after the other. */
int tsr_hdf5_has(hid_t file, const char *path)
{
    char *copy = strdup(path);
    int there = copy != NULL && copy[0] != '\0';

    for (char *at = copy; there && at != NULL;) {
        at = strchr(at, '/');
        if (at != NULL)
            *at = '\0';
        there = H5Lexists(file, copy, H5P_DEFAULT) > 0;
        if (at != NULL)
            *at++ = '/';
    }
    free(copy);
    return there;
}
