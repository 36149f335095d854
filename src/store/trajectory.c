/* Makes the groups of H5MD, or finds them in a file and checks that they are
 * those of this run; appends frames, and reads them. */
#include "store/trajectory.h"

#include "store/hdf5_object.h"
#include "store/hdf5_store.h"

#include <hdf5.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- the groups and data sets of a trajectory ---- */

enum { ATOMS, BODIES, N_KIND };

/* Open data sets; < 0 where there is none. */
typedef struct {
    hid_t position[N_KIND];
    hid_t step, time;
    int n_observable;
    hid_t *observable; /* [n_observable] */
} data_sets;

/* A chunk holds whole frames, so that a reader of one frame unpacks little. */
static const size_t position_chunk = (size_t)64 << 10;
enum { MOST_CHUNK_FRAMES = 64, SCALAR_CHUNK_FRAMES = 512 };
static const unsigned deflate_level = 1;

static const char *const kind_name[N_KIND] = {"atoms", "bodies"};

static int n_particle(const tsr_trajectory_spec *spec, int kind)
{
    return kind == ATOMS ? spec->n_atom : spec->n_body;
}

static tsr_status sets_init(data_sets *sets, int n_observable, tsr_err *err)
{
    *sets = (data_sets){.position = {-1, -1}, .step = -1, .time = -1};
    sets->observable = malloc(((size_t)n_observable + 1) * sizeof(hid_t));
    if (sets->observable == NULL)
        return tsr_fail(err, TSR_E_NOMEM, "no memory for a trajectory");
    sets->n_observable = n_observable;
    for (int i = 0; i < n_observable; i++)
        sets->observable[i] = -1;
    return TSR_OK;
}

static void close_set(hid_t *data)
{
    tsr_hdf5_close(*data);
    *data = -1;
}

static void close_sets(data_sets *sets)
{
    for (int kind = 0; kind < N_KIND; kind++)
        close_set(&sets->position[kind]);
    close_set(&sets->step);
    close_set(&sets->time);
    for (int i = 0; i < sets->n_observable; i++)
        close_set(&sets->observable[i]);
    free(sets->observable);
    *sets = (data_sets){.position = {-1, -1}, .step = -1, .time = -1};
}

/* ---- making ---- */

static tsr_status make_group(hid_t parent, const char *name, hid_t *group,
                             tsr_err *err)
{
    *group = H5Gcreate2(parent, name, H5P_DEFAULT, H5P_DEFAULT, H5P_DEFAULT);
    if (*group < 0)
        return tsr_hdf5_fail(err, TSR_E_IO, "cannot create group '%s'", name);
    return TSR_OK;
}

/* [frame] or [frame][n][3], empty. */
static tsr_status make_set(hid_t group, const char *name, hid_t type, int n,
                           const char *unit, hid_t *data, tsr_err *err)
{
    const int rank = n > 0 ? 3 : 1;
    const hsize_t size[3] = {0, (hsize_t)n, 3};
    const hsize_t most[3] = {H5S_UNLIMITED, (hsize_t)n, 3};
    hsize_t chunk[3] = {SCALAR_CHUNK_FRAMES, (hsize_t)n, 3};
    tsr_status status = TSR_OK;

    if (n > 0) {
        const size_t fit = position_chunk / (3 * sizeof(float) * (size_t)n);
        chunk[0] = fit < 1                   ? 1
                   : fit > MOST_CHUNK_FRAMES ? MOST_CHUNK_FRAMES
                                             : fit;
    }
    hid_t create = H5Pcreate(H5P_DATASET_CREATE);
    hid_t space = H5Screate_simple(rank, size, most);
    if (create < 0 || space < 0 || H5Pset_obj_track_times(create, 0) < 0 ||
        H5Pset_chunk(create, rank, chunk) < 0 || H5Pset_shuffle(create) < 0 ||
        H5Pset_deflate(create, deflate_level) < 0 ||
        (*data = H5Dcreate2(group, name, type, space, H5P_DEFAULT, create,
                            H5P_DEFAULT)) < 0)
        status = tsr_hdf5_fail(err, TSR_E_IO, "cannot create '%s'", name);
    if (status == TSR_OK && unit != NULL)
        status = tsr_hdf5_text(*data, "unit", unit, err);
    tsr_hdf5_close(space);
    tsr_hdf5_close(create);
    return status;
}

/* step and time: the same two data sets for every element. */
static tsr_status link_steps(hid_t element, data_sets *sets, tsr_err *err)
{
    if (sets->step < 0) {
        tsr_status status = make_set(element, "step", H5T_NATIVE_INT64, 0, NULL,
                                     &sets->step, err);
        TSR_THEN(status, make_set(element, "time", H5T_NATIVE_DOUBLE, 0, "ps",
                                  &sets->time, err));
        return status;
    }
    if (H5Olink(sets->step, element, "step", H5P_DEFAULT, H5P_DEFAULT) < 0 ||
        H5Olink(sets->time, element, "time", H5P_DEFAULT, H5P_DEFAULT) < 0)
        return tsr_hdf5_fail(err, TSR_E_IO, "cannot link 'step'");
    return TSR_OK;
}

/* The attribute boundary: ["none", "none", "none"]. */
static tsr_status write_boundary(hid_t box, tsr_err *err)
{
    const char *const none[3] = {"none", "none", "none"};
    hid_t type = tsr_hdf5_text_type();
    tsr_status status =
        tsr_hdf5_attribute_list(box, "boundary", type, 3, none, err);
    tsr_hdf5_close(type);
    return status;
}

static tsr_status make_box(hid_t group, tsr_err *err)
{
    const int dimension = 3;
    hid_t box;
    TSR_TRY(make_group(group, "box", &box, err));
    tsr_status status =
        tsr_hdf5_attribute(box, "dimension", H5T_NATIVE_INT, &dimension, err);
    TSR_THEN(status, write_boundary(box, err));
    H5Gclose(box);
    return status;
}

static tsr_status make_particles(hid_t particles, int kind, int n,
                                 data_sets *sets, tsr_err *err)
{
    hid_t group, position = -1;
    TSR_TRY(make_group(particles, kind_name[kind], &group, err));
    tsr_status status = make_box(group, err);
    TSR_THEN(status, make_group(group, "position", &position, err));
    TSR_THEN(status, make_set(position, "value", H5T_NATIVE_FLOAT, n,
                              "Angstrom", &sets->position[kind], err));
    TSR_THEN(status, link_steps(position, sets, err));
    tsr_hdf5_close(position);
    H5Gclose(group);
    return status;
}

static tsr_status make_observables(hid_t file, const tsr_trajectory_spec *spec,
                                   data_sets *sets, tsr_err *err)
{
    hid_t group;
    tsr_status status = make_group(file, "observables", &group, err);

    if (status != TSR_OK)
        return status;
    for (int i = 0; i < spec->n_observable && status == TSR_OK; i++) {
        hid_t element;
        status = make_group(group, spec->observable[i].name, &element, err);
        if (status != TSR_OK)
            break;
        status = make_set(element, "value", H5T_NATIVE_DOUBLE, 0,
                          spec->observable[i].unit, &sets->observable[i], err);
        TSR_THEN(status, link_steps(element, sets, err));
        H5Gclose(element);
    }
    H5Gclose(group);
    return status;
}

static tsr_status make_named(hid_t h5md, const char *group, const char *name,
                             const char *version, tsr_err *err)
{
    hid_t id;
    TSR_TRY(make_group(h5md, group, &id, err));
    tsr_status status = tsr_hdf5_text(id, "name", name, err);
    if (status == TSR_OK && version != NULL)
        status = tsr_hdf5_text(id, "version", version, err);
    H5Gclose(id);
    return status;
}

static tsr_status make_h5md(hid_t file, const tsr_trajectory_spec *spec,
                            tsr_err *err)
{
    const char *author = spec->author != NULL ? spec->author : "not given";
    const int version[2] = {1, 1};
    hid_t h5md;
    TSR_TRY(make_group(file, "h5md", &h5md, err));
    tsr_status status = tsr_hdf5_attribute_list(h5md, "version", H5T_NATIVE_INT,
                                                2, version, err);
    TSR_THEN(status, make_named(h5md, "author", author, NULL, err));
    TSR_THEN(status, make_named(h5md, "creator", "tessera", TSR_VERSION, err));
    H5Gclose(h5md);
    return status;
}

static tsr_status make_parameters(hid_t file, const tsr_trajectory_spec *spec,
                                  tsr_err *err)
{
    hid_t group;
    TSR_TRY(make_group(file, "parameters", &group, err));
    tsr_status status =
        tsr_hdf5_attribute(group, "chain", H5T_NATIVE_INT, &spec->chain, err);
    TSR_THEN(status, tsr_hdf5_attribute(group, "state", H5T_NATIVE_INT,
                                        &spec->state, err));
    TSR_THEN(status, tsr_hdf5_attribute(group, "stride", H5T_NATIVE_INT,
                                        &spec->stride, err));
    H5Gclose(group);
    return status;
}

/* Both leave *sets to be closed, also on failure. */
static tsr_status make_layout(hid_t file, const tsr_trajectory_spec *spec,
                              data_sets *sets, tsr_err *err)
{
    hid_t particles = -1;
    tsr_status status = sets_init(sets, spec->n_observable, err);

    TSR_THEN(status, make_h5md(file, spec, err));
    TSR_THEN(status, make_parameters(file, spec, err));
    TSR_THEN(status, make_group(file, "particles", &particles, err));
    for (int kind = 0; kind < N_KIND && status == TSR_OK; kind++)
        if (n_particle(spec, kind) > 0)
            status = make_particles(particles, kind, n_particle(spec, kind),
                                    sets, err);
    tsr_hdf5_close(particles);
    if (status == TSR_OK && spec->n_observable > 0)
        status = make_observables(file, spec, sets, err);
    return status;
}

/* ---- opening ---- */

/* path/name below the root, or < 0. */
static hid_t open_set(hid_t file, const char *group, const char *element,
                      const char *name)
{
    char path[512];
    const int n = snprintf(path, sizeof path, "%s/%s/%s", group, element, name);

    if (n < 0 || (size_t)n >= sizeof path || !tsr_hdf5_has(file, path))
        return H5I_INVALID_HID;
    return H5Dopen2(file, path, H5P_DEFAULT);
}

/* Data sets by name, or < 0: /particles/KIND/position/NAME and
 * /observables/NAME/value. */
static hid_t position_set(hid_t file, int kind, const char *name)
{
    char element[64];
    snprintf(element, sizeof element, "%s/position", kind_name[kind]);
    return open_set(file, "particles", element, name);
}

static hid_t observable_set(hid_t file, const char *name)
{
    return open_set(file, "observables", name, "value");
}

/* "chain", "state" or "stride"; -1 where it is absent. */
static long long find_parameter(hid_t file, const char *name)
{
    long long value = -1;
    hid_t group = tsr_hdf5_has(file, "parameters")
                      ? H5Gopen2(file, "parameters", H5P_DEFAULT)
                      : H5I_INVALID_HID;
    if (group >= 0) {
        value = tsr_hdf5_attribute_integer(group, name, -1);
        H5Gclose(group);
    }
    return value;
}

static tsr_status check_parameter(hid_t file, const char *name, int wanted,
                                  tsr_err *err)
{
    const long long found = find_parameter(file, name);
    if (found != wanted)
        return tsr_fail(err, TSR_E_DATA, "%s is %lld, not %d", name, found,
                        wanted);
    return TSR_OK;
}

static tsr_status open_positions(hid_t file, const tsr_trajectory_spec *spec,
                                 int kind, data_sets *sets, tsr_err *err)
{
    hsize_t size[H5S_MAX_RANK];
    const int n = n_particle(spec, kind);
    const char *name = kind_name[kind];
    hid_t data = position_set(file, kind, "value");

    sets->position[kind] = data;
    if (n == 0 && data >= 0)
        return tsr_fail(err, TSR_E_DATA,
                        "has %s, which this run does not "
                        "write",
                        name);
    if (n == 0)
        return TSR_OK;
    if (data < 0)
        return tsr_fail(err, TSR_E_DATA, "has no %s", name);
    if (tsr_hdf5_shape(data, size) != 3 || size[1] != (hsize_t)n ||
        size[2] != 3)
        return tsr_fail(err, TSR_E_DATA, "has not %d %s", n, name);
    if (sets->step < 0) {
        sets->step = position_set(file, kind, "step");
        sets->time = position_set(file, kind, "time");
        if (sets->step < 0 || sets->time < 0)
            return tsr_fail(err, TSR_E_DATA, "lacks step or time of %s", name);
    }
    return TSR_OK;
}

static hsize_t count_members(hid_t file, const char *path)
{
    H5G_info_t info;
    if (!tsr_hdf5_has(file, path) ||
        H5Gget_info_by_name(file, path, &info, H5P_DEFAULT) < 0)
        return 0;
    return info.nlinks;
}

static tsr_status open_observables(hid_t file, const tsr_trajectory_spec *spec,
                                   data_sets *sets, tsr_err *err)
{
    for (int i = 0; i < spec->n_observable; i++) {
        const tsr_trajectory_observable *one = &spec->observable[i];
        sets->observable[i] = observable_set(file, one->name);
        if (sets->observable[i] < 0)
            return tsr_fail(err, TSR_E_DATA, "has no '%s'", one->name);
        if (!tsr_hdf5_text_is(sets->observable[i], "unit", one->unit))
            return tsr_fail(err, TSR_E_DATA, "'%s' is not in unit '%s'",
                            one->name, one->unit != NULL ? one->unit : "none");
    }
    if (count_members(file, "observables") != (hsize_t)spec->n_observable)
        return tsr_fail(err, TSR_E_DATA,
                        "has observables that this run does not write");
    return TSR_OK;
}

static int has_frames(hid_t data, hsize_t n)
{
    hsize_t size[H5S_MAX_RANK];
    return data < 0 || (tsr_hdf5_shape(data, size) >= 1 && size[0] == n);
}

static tsr_status count_frames(const data_sets *sets, int *n_frame,
                               tsr_err *err)
{
    hsize_t size[H5S_MAX_RANK];

    if (tsr_hdf5_shape(sets->step, size) != 1 || size[0] > INT_MAX)
        return tsr_fail(err, TSR_E_DATA, "step is no list of frames");
    int even = has_frames(sets->time, size[0]);
    for (int kind = 0; kind < N_KIND; kind++)
        even = even && has_frames(sets->position[kind], size[0]);
    for (int i = 0; i < sets->n_observable; i++)
        even = even && has_frames(sets->observable[i], size[0]);
    if (!even)
        return tsr_fail(err, TSR_E_DATA,
                        "its data sets differ in the number of frames");
    *n_frame = (int)size[0];
    return TSR_OK;
}

/* TSR_E_DATA with the first difference between file and spec. *n_frame: in the
 * file. */
static tsr_status open_layout(hid_t file, const tsr_trajectory_spec *spec,
                              data_sets *sets, int *n_frame, tsr_err *err)
{
    TSR_TRY(sets_init(sets, spec->n_observable, err));

    TSR_TRY(check_parameter(file, "chain", spec->chain, err));
    TSR_TRY(check_parameter(file, "state", spec->state, err));
    TSR_TRY(check_parameter(file, "stride", spec->stride, err));
    for (int kind = 0; kind < N_KIND; kind++)
        TSR_TRY(open_positions(file, spec, kind, sets, err));
    TSR_TRY(open_observables(file, spec, sets, err));
    return count_frames(sets, n_frame, err);
}

void tsr_trajectory_bytes(const tsr_trajectory_spec *spec, int n_frame,
                          double *expected, double *most)
{
    const double raw = 12.0 * ((double)spec->n_atom + spec->n_body);
    const double scalar = 8.0 * (2 + spec->n_observable);
    /* B-tree nodes of 2 KiB for up to 64 chunks, at least half full; deflate
     * adds 5 bytes to 16 KiB that it cannot shrink. */
    const double chunk = 64.0 * (2 + spec->n_observable / 64.0);
    const double fixed = 65536.0 + 12288.0 * spec->n_observable;

    *most = fixed + n_frame * (raw * 1.001 + scalar * 1.1 + chunk);
    *expected = fixed / 2 + n_frame * (0.84 * raw + 0.8 * scalar + chunk / 2);
}

/* ---- the writer ----
 *
 * Appends frames to the data sets and commits when asked or when much is
 * waiting. Frames beyond the number that a run resumes from are cut off when it
 * is opened again. */

/* What may wait in memory before it is committed without being asked. */
static const size_t hold_bytes = (size_t)1 << 20;
enum { MOST_AT_ONCE = 64 };

struct tsr_trajectory {
    tsr_hdf5_output output;
    int n_frame;   /* written */
    int n_waiting; /* of these, not committed */
    int n[N_KIND];
    float *single; /* room for the positions of either kind */
    data_sets sets;
};

/* Closes the file and frees. */
static tsr_status end(tsr_trajectory *t, tsr_status status, tsr_err *err)
{
    close_sets(&t->sets);
    status = tsr_hdf5_output_end(&t->output, status, err);
    free(t->single);
    free(t);
    return status;
}

static tsr_status check_spec(const tsr_trajectory_spec *spec, tsr_err *err)
{
    if (spec->n_atom < 0 || spec->n_body < 0 ||
        spec->n_atom + spec->n_body == 0 || spec->stride < 1 ||
        spec->n_observable < 0)
        return tsr_fail(err, TSR_E_INTERNAL,
                        "a trajectory of %d atoms, %d bodies, %d observables, "
                        "stride %d",
                        spec->n_atom, spec->n_body, spec->n_observable,
                        spec->stride);
    for (int i = 0; i < spec->n_observable; i++) {
        const char *name = spec->observable[i].name;
        if (name == NULL || name[0] == '\0' || name[0] == '.' ||
            strchr(name, '/') != NULL || strlen(name) > 200)
            return tsr_fail(err, TSR_E_INTERNAL, "'%s' names no observable",
                            name != NULL ? name : "(null)");
        for (int k = 0; k < i; k++)
            if (strcmp(name, spec->observable[k].name) == 0)
                return tsr_fail(err, TSR_E_INTERNAL,
                                "observable '%s' is declared twice", name);
    }
    return TSR_OK;
}

static tsr_status commit(tsr_trajectory *t, tsr_err *err)
{
    TSR_TRY(tsr_hdf5_output_commit(&t->output, err));
    t->n_waiting = 0;
    return TSR_OK;
}

/* ---- data sets ---- */

static tsr_status set_frames(hid_t data, int n_frame, tsr_err *err)
{
    hsize_t size[H5S_MAX_RANK];

    if (data < 0)
        return TSR_OK;
    if (tsr_hdf5_shape(data, size) < 1)
        return tsr_hdf5_fail(err, TSR_E_IO, "cannot look at a data set");
    size[0] = (hsize_t)n_frame;
    if (H5Dset_extent(data, size) < 0)
        return tsr_hdf5_fail(err, TSR_E_IO, "cannot set the number of frames");
    return TSR_OK;
}

static tsr_status set_all_frames(tsr_trajectory *t, int n_frame, tsr_err *err)
{
    data_sets *sets = &t->sets;
    TSR_TRY(set_frames(sets->step, n_frame, err));

    TSR_TRY(set_frames(sets->time, n_frame, err));
    for (int kind = 0; kind < N_KIND; kind++)
        TSR_TRY(set_frames(sets->position[kind], n_frame, err));
    for (int i = 0; i < sets->n_observable; i++)
        TSR_TRY(set_frames(sets->observable[i], n_frame, err));
    return TSR_OK;
}

/* The layout of a new file, or that of an old one, cut back to n_keep. */
static tsr_status lay_out(tsr_trajectory *t, const tsr_trajectory_spec *spec,
                          const int *n_keep, tsr_err *err)
{
    if (n_keep == NULL)
        return make_layout(t->output.file, spec, &t->sets, err);
    TSR_TRY(open_layout(t->output.file, spec, &t->sets, &t->n_frame, err));
    if (*n_keep < 0 || *n_keep > t->n_frame)
        return tsr_fail(err, TSR_E_DATA,
                        "has %d frames, and the checkpoint counts %d",
                        t->n_frame, *n_keep);
    if (*n_keep < t->n_frame)
        TSR_TRY(set_all_frames(t, *n_keep, err));
    t->n_frame = *n_keep;
    return TSR_OK;
}

/* n_keep NULL: a new file. */
static tsr_status start(const char *path, const tsr_trajectory_spec *spec,
                        const int *n_keep, tsr_trajectory **out, tsr_err *err)
{
    const int most = spec->n_atom > spec->n_body ? spec->n_atom : spec->n_body;
    tsr_status status = check_spec(spec, err);

    *out = NULL;
    if (status != TSR_OK)
        return tsr_wrap(err, status, "'%s'", path);
    tsr_trajectory *t = calloc(1, sizeof *t);
    float *single = malloc(3 * (size_t)most * sizeof *single);
    if (t == NULL || single == NULL) {
        free(t);
        free(single);
        return tsr_fail(err, TSR_E_NOMEM, "no memory for '%s'", path);
    }
    *t = (tsr_trajectory){
        .single = single,
        .n = {[ATOMS] = spec->n_atom, [BODIES] = spec->n_body},
        .sets = {.position = {-1, -1}, .step = -1, .time = -1}};
    status = tsr_hdf5_output_start(path, n_keep == NULL, &t->output, err);
    if (status == TSR_OK) {
        status = lay_out(t, spec, n_keep, err);
        if (status != TSR_OK)
            tsr_hdf5_output_wrap(&t->output, status, err);
    }
    TSR_THEN(status, commit(t, err));
    if (status != TSR_OK)
        return end(t, status, err);
    tsr_hdf5_output_keep(&t->output);
    *out = t;
    return TSR_OK;
}

tsr_status tsr_trajectory_create(const char *path,
                                 const tsr_trajectory_spec *spec,
                                 tsr_trajectory **out, tsr_err *err)
{
    return start(path, spec, NULL, out, err);
}

tsr_status tsr_trajectory_reopen(const char *path,
                                 const tsr_trajectory_spec *spec, int n_keep,
                                 tsr_trajectory **out, tsr_err *err)
{
    return start(path, spec, &n_keep, out, err);
}

/* One frame, the last, of a data set that is long enough. */
static tsr_status write_last(const tsr_trajectory *t, hid_t data, hid_t type,
                             const void *value, tsr_err *err)
{
    hsize_t size[H5S_MAX_RANK], offset[H5S_MAX_RANK] = {0};
    const int rank = tsr_hdf5_shape(data, size);

    size[0] = 1;
    offset[0] = (hsize_t)t->n_frame;
    if (rank < 1 ||
        !tsr_hdf5_block(data, type, rank, offset, size, NULL, value))
        return tsr_hdf5_fail(err, TSR_E_IO, "cannot write '%s'",
                             t->output.path);
    return TSR_OK;
}

static tsr_status write_position(tsr_trajectory *t, int kind,
                                 const double *value, tsr_err *err)
{
    if (t->n[kind] == 0)
        return TSR_OK;
    for (size_t i = 0; i < 3 * (size_t)t->n[kind]; i++)
        t->single[i] = (float)value[i];
    return write_last(t, t->sets.position[kind], H5T_NATIVE_FLOAT, t->single,
                      err);
}

static tsr_status write_frame(tsr_trajectory *t, int64_t step,
                              const double *atom, const double *body,
                              const double *observable, tsr_err *err)
{
    const double time = (double)step;
    TSR_TRY(set_all_frames(t, t->n_frame + 1, err));

    TSR_TRY(write_last(t, t->sets.step, H5T_NATIVE_INT64, &step, err));
    TSR_TRY(write_last(t, t->sets.time, H5T_NATIVE_DOUBLE, &time, err));
    TSR_TRY(write_position(t, ATOMS, atom, err));
    TSR_TRY(write_position(t, BODIES, body, err));
    for (int i = 0; i < t->sets.n_observable; i++)
        TSR_TRY(write_last(t, t->sets.observable[i], H5T_NATIVE_DOUBLE,
                           &observable[i], err));
    return TSR_OK;
}

tsr_status tsr_trajectory_append(tsr_trajectory *t, int64_t step,
                                 const double *atom, const double *body,
                                 const double *observable, tsr_err *err)
{
    TSR_TRY(tsr_hdf5_output_check(&t->output, err));
    tsr_hdf5_quiet();
    tsr_status status = write_frame(t, step, atom, body, observable, err);
    if (status != TSR_OK) {
        t->output.is_broken = 1;
        return status;
    }
    t->n_frame++;
    t->n_waiting++;
    if (tsr_hdf5_store_pending(t->output.store) > hold_bytes)
        return commit(t, err);
    return TSR_OK;
}

tsr_status tsr_trajectory_flush(tsr_trajectory *t, tsr_err *err)
{
    TSR_TRY(tsr_hdf5_output_check(&t->output, err));
    if (t->n_waiting == 0)
        return TSR_OK;
    tsr_hdf5_quiet();
    return commit(t, err);
}

/* HDF5's part of a flush. 1: the store is to be committed. */
static int flush_hdf5(tsr_trajectory *t, tsr_status *status, tsr_err *err)
{
    tsr_err *why = *status == TSR_OK ? err : NULL;
    tsr_status one = tsr_hdf5_output_check(&t->output, why);

    if (one == TSR_OK && t->n_waiting > 0 &&
        H5Fflush(t->output.file, H5F_SCOPE_GLOBAL) < 0)
        one = tsr_hdf5_fail(why, TSR_E_IO, "cannot write '%s'", t->output.path);
    if (one != TSR_OK)
        t->output.is_broken = 1;
    if (*status == TSR_OK)
        *status = one;
    return one == TSR_OK && t->n_waiting > 0;
}

tsr_status tsr_trajectory_flush_all(tsr_trajectory *const *trajectory, int n,
                                    tsr_err *err)
{
    tsr_hdf5_store *store[MOST_AT_ONCE];
    tsr_status status = TSR_OK;

    tsr_hdf5_quiet();
    for (int first = 0; first < n; first += MOST_AT_ONCE) {
        const int end = n - first < MOST_AT_ONCE ? n : first + MOST_AT_ONCE;
        int n_store = 0;
        for (int i = first; i < end; i++)
            if (flush_hdf5(trajectory[i], &status, err))
                store[n_store++] = trajectory[i]->output.store;
        tsr_status one = tsr_hdf5_store_commit_all(
            store, n_store, status == TSR_OK ? err : NULL);
        TSR_THEN(status, one);
        for (int i = first; i < end; i++) {
            if (tsr_hdf5_store_has_failed(trajectory[i]->output.store))
                trajectory[i]->output.is_broken = 1;
            else
                trajectory[i]->n_waiting = 0;
        }
    }
    return status;
}

tsr_status tsr_trajectory_close(tsr_trajectory *t, tsr_err *err)
{
    if (t == NULL)
        return TSR_OK;
    return end(t, tsr_trajectory_flush(t, err), err);
}

/* ---- the reader ----
 *
 * Reads frames of one trajectory. Which groups it has, and of how many points,
 * is looked at once, when it is opened. */

struct tsr_trajectory_reader {
    tsr_hdf5_input input;
    int n[N_KIND];
    tsr_trajectory_info info;
};

/* What every frame has; a writer may be about to change it. */
static tsr_status look(hid_t file, void *context, tsr_err *err)
{
    tsr_trajectory_reader *reader = context;
    int n_kind = 0;

    for (int kind = 0; kind < N_KIND; kind++) {
        hsize_t size[H5S_MAX_RANK];
        hid_t data = position_set(file, kind, "value");
        reader->n[kind] = 0;
        if (data < 0)
            continue;
        const int rank = tsr_hdf5_shape(data, size);
        H5Dclose(data);
        if (rank != 3 || size[2] != 3 || size[0] > INT_MAX || size[1] > INT_MAX)
            return tsr_fail(err, TSR_E_DATA,
                            "the positions of %s are not [frame][n][3]",
                            kind_name[kind]);
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
    reader->info =
        (tsr_trajectory_info){.n_frame = reader->info.n_frame,
                              .n_atom = reader->n[ATOMS],
                              .n_body = reader->n[BODIES],
                              .chain = (int)find_parameter(file, "chain"),
                              .state = (int)find_parameter(file, "state"),
                              .stride = (int)find_parameter(file, "stride")};
    return TSR_OK;
}

tsr_status tsr_trajectory_open(const char *path, tsr_trajectory_reader **out,
                               tsr_err *err)
{
    tsr_trajectory_reader *reader = calloc(1, sizeof *reader);

    *out = NULL;
    TSR_TRY(tsr_allocated(reader, err));
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
        return tsr_fail(err, TSR_E_DATA, "'%s' has no %s", reader->input.path,
                        what);
    if (first < 0 || n < 0 || n > reader->info.n_frame - first)
        status = tsr_fail(err, TSR_E_RANGE,
                          "'%s' has %d frames; %d from %d on are not there",
                          reader->input.path, reader->info.n_frame, n, first);
    else if (tsr_hdf5_shape(data, whole) != rank ||
             whole[0] < (hsize_t)(first + n))
        status = tsr_fail(err, TSR_E_DATA, "'%s': %s has another shape",
                          reader->input.path, what);
    else if (n > 0 &&
             !tsr_hdf5_block(data, type, rank, offset, size, value, NULL))
        status = tsr_hdf5_fail(err, TSR_E_DATA, "'%s': cannot read %s",
                               reader->input.path, what);
    H5Dclose(data);
    return status;
}

static tsr_status read_position(const tsr_trajectory_reader *reader, int kind,
                                int first, int n, float *value, tsr_err *err)
{
    hid_t data = position_set(reader->input.file, kind, "value");
    return read_frames(reader, data, H5T_NATIVE_FLOAT, first, n,
                       reader->n[kind], kind_name[kind], value, err);
}

tsr_status tsr_trajectory_read(const tsr_trajectory_reader *reader, int first,
                               int n, int64_t *step, float *atom, float *body,
                               tsr_err *err)
{
    const int kind = reader->n[ATOMS] > 0 ? ATOMS : BODIES;

    tsr_hdf5_quiet();
    if (step != NULL) {
        hid_t data = position_set(reader->input.file, kind, "step");
        TSR_TRY(read_frames(reader, data, H5T_NATIVE_INT64, first, n, 0, "step",
                            step, err));
    }
    if (atom != NULL)
        TSR_TRY(read_position(reader, ATOMS, first, n, atom, err));
    if (body != NULL)
        TSR_TRY(read_position(reader, BODIES, first, n, body, err));
    return TSR_OK;
}

tsr_status tsr_trajectory_read_observable(const tsr_trajectory_reader *reader,
                                          const char *name, int first, int n,
                                          double *value, tsr_err *err)
{
    tsr_hdf5_quiet();
    hid_t data = observable_set(reader->input.file, name);
    return read_frames(reader, data, H5T_NATIVE_DOUBLE, first, n, 0, name,
                       value, err);
}
