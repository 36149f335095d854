/* Draws of a run in the public library: store/trace.h, store/trajectory.h. */
#include "library/library.h"

#include "files/file.h"
#include "store/trace.h"
#include "store/trajectory.h"

#include <stdlib.h>
#include <string.h>
#include <tessera.h>

_Static_assert(TESSERA_POSTERIOR == (int)TSR_TRACE_POSTERIOR &&
                   TESSERA_SAMPLE_STATS == (int)TSR_TRACE_SAMPLE_STATS &&
                   TESSERA_POSTERIOR_PREDICTIVE ==
                       (int)TSR_TRACE_POSTERIOR_PREDICTIVE &&
                   TESSERA_LOG_LIKELIHOOD == (int)TSR_TRACE_LOG_LIKELIHOOD &&
                   TESSERA_OBSERVED_DATA == (int)TSR_TRACE_OBSERVED_DATA &&
                   TESSERA_CONSTANT_DATA == (int)TSR_TRACE_CONSTANT_DATA,
               "the numbers of tessera.h stay while the soname stays");

struct tessera_draws {
    tsr_trace_reader *reader;
};

struct tessera_frames {
    tsr_trajectory_reader *reader;
};

int tessera_draws_open(const char *folder, tessera_draws **out)
{
    tsr_err *err = tsr_library_error();
    TSR_REQUIRE(out != NULL);
    *out = NULL;
    TSR_REQUIRE(folder != NULL);
    const tsr_path path = tsr_path_in(folder, "trace.h5");
    tessera_draws *d = calloc(1, sizeof *d);
    tsr_status status = tsr_allocated(d, err);
    TSR_THEN(status, tsr_trace_open(path.text, &d->reader, err));
    if (status == TSR_OK)
        *out = d;
    else
        free(d);
    return (int)status;
}

void tessera_draws_free(tessera_draws *draws)
{
    if (draws != NULL)
        tsr_trace_reader_free(draws->reader);
    free(draws);
}

static int is_group(int group)
{
    return group >= 0 && group < (int)TSR_TRACE_N_GROUP;
}

int tessera_draws_n_column(tessera_draws *draws, int group)
{
    const char *const *name;
    return draws != NULL && is_group(group)
               ? tsr_trace_variables(draws->reader, (tsr_trace_group)group,
                                     &name)
               : 0;
}

const char *tessera_draws_column(tessera_draws *draws, int group, int index)
{
    const char *const *name;
    if (draws == NULL || !is_group(group))
        return NULL;
    const int n =
        tsr_trace_variables(draws->reader, (tsr_trace_group)group, &name);
    return index >= 0 && index < n ? name[index] : NULL;
}

int tessera_draws_shape(tessera_draws *draws, int group, const char *column,
                        int *shape)
{
    tsr_err *err = tsr_library_error();
    TSR_REQUIRE(draws != NULL && column != NULL && shape != NULL);
    TSR_REQUIRE(is_group(group));
    return (int)tsr_trace_shape(draws->reader, (tsr_trace_group)group, column,
                                &shape[0], &shape[1], &shape[2], err);
}

int tessera_draws_read(tessera_draws *draws, int group, const char *column,
                       int64_t size, double *value)
{
    tsr_err *err = tsr_library_error();
    int shape[3];
    double *all = NULL;
    TSR_REQUIRE(value != NULL);
    const int status = tessera_draws_shape(draws, group, column, shape);
    if (status != TESSERA_OK)
        return status;
    TSR_REQUIRE((int64_t)shape[0] * shape[1] * shape[2] <= size);
    TSR_CALL(tsr_trace_get(draws->reader, (tsr_trace_group)group, column,
                           &shape[0], &shape[1], &shape[2], &all, err));
    memcpy(value, all,
           (size_t)shape[0] * (size_t)shape[1] * (size_t)shape[2] *
               sizeof *value);
    free(all);
    return TESSERA_OK;
}

int tessera_draws_coordinates(tessera_draws *draws, int group,
                              const char *column, int size, double *value)
{
    tsr_err *err = tsr_library_error();
    int n;
    double *coordinate;
    TSR_REQUIRE(draws != NULL && column != NULL && value != NULL);
    TSR_REQUIRE(is_group(group));
    TSR_CALL(tsr_trace_coordinates(draws->reader, (tsr_trace_group)group,
                                   column, &n, &coordinate, err));
    tsr_status status = TSR_OK;
    if (coordinate == NULL)
        status = tsr_fail(err, TSR_E_DATA, "%s has no coordinates", column);
    else if (n != size)
        status = tsr_fail(err, TSR_E_USAGE, "%s has %d coordinates, not %d",
                          column, n, size);
    else
        memcpy(value, coordinate, (size_t)n * sizeof *value);
    free(coordinate);
    return (int)status;
}

int tessera_frames_open(const char *path, tessera_frames **out)
{
    tsr_err *err = tsr_library_error();
    TSR_REQUIRE(out != NULL);
    *out = NULL;
    TSR_REQUIRE(path != NULL);
    tessera_frames *f = calloc(1, sizeof *f);
    tsr_status status = tsr_allocated(f, err);
    TSR_THEN(status, tsr_trajectory_open(path, &f->reader, err));
    if (status == TSR_OK)
        *out = f;
    else
        free(f);
    return (int)status;
}

void tessera_frames_free(tessera_frames *frames)
{
    if (frames != NULL)
        tsr_trajectory_reader_free(frames->reader);
    free(frames);
}

int tessera_frames_shape(const tessera_frames *frames, int *shape)
{
    tsr_err *err = tsr_library_error();
    TSR_REQUIRE(frames != NULL && shape != NULL);
    const tsr_trajectory_info *info = tsr_trajectory_info_get(frames->reader);
    shape[0] = info->n_frame;
    shape[1] = info->n_atom;
    shape[2] = info->n_body;
    return TESSERA_OK;
}

int tessera_frames_read(const tessera_frames *frames, int first, int n,
                        int64_t *draw, float *atom, float *body)
{
    tsr_err *err = tsr_library_error();
    TSR_REQUIRE(frames != NULL);
    return (int)tsr_trajectory_read(frames->reader, first, n, draw, atom, body,
                                    err);
}
