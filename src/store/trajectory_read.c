/* Reads frames of one trajectory. Which groups it has, and of how many points,
 * is looked at once, when it is opened. */
#include "store/hdf5_object.h"
#include "store/trajectory.h"
#include "store/trajectory_layout.h"

#include <limits.h>
#include <stdlib.h>
#include <string.h>

struct tsr_trajectory_reader {
    char *path;
    tsr_hdf5_input input;
    int n[TSR_TRAJECTORY_N_KIND];
    tsr_trajectory_info info;
};

/* What every frame has; a writer may be about to change it. */
static tsr_status look(hid_t file, void *context, tsr_err *err)
{
    tsr_trajectory_reader *reader = context;
    int n_kind = 0;

    for (int kind = 0; kind < TSR_TRAJECTORY_N_KIND; kind++) {
        hsize_t size[H5S_MAX_RANK];
        hid_t data = tsr_trajectory_position(file, kind, "value");
        reader->n[kind] = 0;
        if (data < 0)
            continue;
        const int rank = tsr_hdf5_shape(data, size);
        H5Dclose(data);
        if (rank != 3 || size[2] != 3 || size[0] > INT_MAX || size[1] > INT_MAX)
            return tsr_fail(err, TSR_E_DATA,
                            "the positions of %s are not [frame][n][3]",
                            tsr_trajectory_kind_name(kind));
        if (n_kind > 0 && reader->info.n_frame != (int)size[0])
            return tsr_fail(err, TSR_E_DATA,
                            "atoms and bodies differ in frames");
        reader->info.n_frame = (int)size[0];
        reader->n[kind] = (int)size[1];
        n_kind++;
    }
    if (n_kind == 0)
        return tsr_hdf5_fail(err, TSR_E_DATA,
                             "has neither /particles/atoms nor "
                             "/particles/bodies; is it a trajectory of "
                             "tessera?");
    reader->info = (tsr_trajectory_info){
        .n_frame = reader->info.n_frame,
        .n_atom = reader->n[TSR_TRAJECTORY_ATOMS],
        .n_body = reader->n[TSR_TRAJECTORY_BODIES],
        .chain = (int)tsr_trajectory_parameter(file, "chain"),
        .state = (int)tsr_trajectory_parameter(file, "state"),
        .stride = (int)tsr_trajectory_parameter(file, "stride")};
    return TSR_OK;
}

tsr_status tsr_trajectory_open(const char *path, tsr_trajectory_reader **out,
                               tsr_err *err)
{
    tsr_trajectory_reader *reader = calloc(1, sizeof *reader);

    *out = NULL;
    if (reader == NULL || (reader->path = strdup(path)) == NULL) {
        free(reader);
        return tsr_fail(err, TSR_E_NOMEM, "no memory to open '%s'", path);
    }
    reader->input.file = -1;
    tsr_status status =
        tsr_hdf5_input_open(path, look, reader, &reader->input, err);
    if (status != TSR_OK) {
        tsr_trajectory_reader_free(reader);
        return status;
    }
    *out = reader;
    return TSR_OK;
}

void tsr_trajectory_reader_free(tsr_trajectory_reader *reader)
{
    if (reader == NULL)
        return;
    tsr_hdf5_quiet();
    tsr_hdf5_input_close(&reader->input);
    free(reader->path);
    free(reader);
}

const tsr_trajectory_info *
tsr_trajectory_look(const tsr_trajectory_reader *reader)
{
    return &reader->info;
}

/* n frames of a data set [frame] or [frame][width][3], which is closed. */
static tsr_status read_frames(const tsr_trajectory_reader *reader, hid_t data,
                              hid_t type, int first, int n, int width,
                              const char *what, void *value, tsr_err *err)
{
    const int rank = width > 0 ? 3 : 1;
    const hsize_t offset[3] = {(hsize_t)first, 0, 0};
    const hsize_t size[3] = {(hsize_t)n, (hsize_t)width, 3};
    hsize_t whole[H5S_MAX_RANK];
    tsr_status status = TSR_OK;

    if (data < 0)
        return tsr_fail(err, TSR_E_DATA, "'%s' has no %s", reader->path, what);
    if (first < 0 || n < 0 || n > reader->info.n_frame - first)
        status = tsr_fail(err, TSR_E_RANGE,
                          "'%s' has %d frames; %d from %d on are not there",
                          reader->path, reader->info.n_frame, n, first);
    else if (tsr_hdf5_shape(data, whole) != rank ||
             whole[0] < (hsize_t)(first + n))
        status = tsr_fail(err, TSR_E_DATA, "'%s': %s has another shape",
                          reader->path, what);
    else if (n > 0 &&
             !tsr_hdf5_block(data, type, rank, offset, size, value, NULL))
        status = tsr_hdf5_fail(err, TSR_E_DATA, "'%s': cannot read %s",
                               reader->path, what);
    H5Dclose(data);
    return status;
}

static tsr_status read_position(const tsr_trajectory_reader *reader, int kind,
                                int first, int n, float *value, tsr_err *err)
{
    hid_t data = tsr_trajectory_position(reader->input.file, kind, "value");
    return read_frames(reader, data, H5T_NATIVE_FLOAT, first, n,
                       reader->n[kind], tsr_trajectory_kind_name(kind), value,
                       err);
}

tsr_status tsr_trajectory_read(const tsr_trajectory_reader *reader, int first,
                               int n, int64_t *step, float *atom, float *body,
                               tsr_err *err)
{
    const int kind = reader->n[TSR_TRAJECTORY_ATOMS] > 0
                         ? TSR_TRAJECTORY_ATOMS
                         : TSR_TRAJECTORY_BODIES;

    tsr_hdf5_quiet();
    if (step != NULL) {
        hid_t data = tsr_trajectory_position(reader->input.file, kind, "step");
        TSR_TRY(read_frames(reader, data, H5T_NATIVE_INT64, first, n, 0, "step",
                            step, err));
    }
    if (atom != NULL)
        TSR_TRY(
            read_position(reader, TSR_TRAJECTORY_ATOMS, first, n, atom, err));
    if (body != NULL)
        TSR_TRY(
            read_position(reader, TSR_TRAJECTORY_BODIES, first, n, body, err));
    return TSR_OK;
}

tsr_status tsr_trajectory_read_observable(const tsr_trajectory_reader *reader,
                                          const char *name, int first, int n,
                                          double *value, tsr_err *err)
{
    tsr_hdf5_quiet();
    hid_t data = tsr_trajectory_observable_set(reader->input.file, name);
    return read_frames(reader, data, H5T_NATIVE_DOUBLE, first, n, 0, name,
                       value, err);
}
