/* Makes the groups of H5MD, or finds them in a file and checks that they are
 * those of this run. */
#include "store/trajectory_layout.h"

#include "store/hdf5_object.h"

#include <limits.h>
#include <stdio.h>
#include <stdlib.h>

/* A chunk holds whole frames, so that a reader of one frame unpacks little. */
static const size_t position_chunk = (size_t)64 << 10;
enum { MOST_CHUNK_FRAMES = 64, SCALAR_CHUNK_FRAMES = 512 };
static const unsigned deflate_level = 1;

static const char *const kind_name[TSR_TRAJECTORY_N_KIND] = {"atoms", "bodies"};

const char *tsr_trajectory_kind_name(int kind)
{
    return kind_name[kind];
}

static int n_particle(const tsr_trajectory_spec *spec, int kind)
{
    return kind == TSR_TRAJECTORY_ATOMS ? spec->n_atom : spec->n_body;
}

static tsr_status sets_init(tsr_trajectory_sets *sets, int n_observable,
                            tsr_err *err)
{
    *sets = (tsr_trajectory_sets){.position = {-1, -1}, .step = -1, .time = -1};
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

void tsr_trajectory_sets_close(tsr_trajectory_sets *sets)
{
    for (int kind = 0; kind < TSR_TRAJECTORY_N_KIND; kind++)
        close_set(&sets->position[kind]);
    close_set(&sets->step);
    close_set(&sets->time);
    for (int i = 0; i < sets->n_observable; i++)
        close_set(&sets->observable[i]);
    free(sets->observable);
    *sets = (tsr_trajectory_sets){.position = {-1, -1}, .step = -1, .time = -1};
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
static tsr_status link_steps(hid_t element, tsr_trajectory_sets *sets,
                             tsr_err *err)
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
                                 tsr_trajectory_sets *sets, tsr_err *err)
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
                                   tsr_trajectory_sets *sets, tsr_err *err)
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

tsr_status tsr_trajectory_layout_make(hid_t file,
                                      const tsr_trajectory_spec *spec,
                                      tsr_trajectory_sets *sets, tsr_err *err)
{
    hid_t particles = -1;
    tsr_status status = sets_init(sets, spec->n_observable, err);

    TSR_THEN(status, make_h5md(file, spec, err));
    TSR_THEN(status, make_parameters(file, spec, err));
    TSR_THEN(status, make_group(file, "particles", &particles, err));
    for (int kind = 0; kind < TSR_TRAJECTORY_N_KIND && status == TSR_OK; kind++)
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

hid_t tsr_trajectory_position(hid_t file, int kind, const char *name)
{
    char element[64];
    snprintf(element, sizeof element, "%s/position", kind_name[kind]);
    return open_set(file, "particles", element, name);
}

hid_t tsr_trajectory_observable_set(hid_t file, const char *name)
{
    return open_set(file, "observables", name, "value");
}

long long tsr_trajectory_parameter(hid_t file, const char *name)
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
    const long long found = tsr_trajectory_parameter(file, name);
    if (found != wanted)
        return tsr_fail(err, TSR_E_DATA, "%s is %lld, not %d", name, found,
                        wanted);
    return TSR_OK;
}

static tsr_status open_positions(hid_t file, const tsr_trajectory_spec *spec,
                                 int kind, tsr_trajectory_sets *sets,
                                 tsr_err *err)
{
    hsize_t size[H5S_MAX_RANK];
    const int n = n_particle(spec, kind);
    const char *name = kind_name[kind];
    hid_t data = tsr_trajectory_position(file, kind, "value");

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
        sets->step = tsr_trajectory_position(file, kind, "step");
        sets->time = tsr_trajectory_position(file, kind, "time");
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
                                   tsr_trajectory_sets *sets, tsr_err *err)
{
    for (int i = 0; i < spec->n_observable; i++) {
        const tsr_trajectory_observable *one = &spec->observable[i];
        sets->observable[i] = tsr_trajectory_observable_set(file, one->name);
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

static tsr_status count_frames(const tsr_trajectory_sets *sets, int *n_frame,
                               tsr_err *err)
{
    hsize_t size[H5S_MAX_RANK];

    if (tsr_hdf5_shape(sets->step, size) != 1 || size[0] > INT_MAX)
        return tsr_fail(err, TSR_E_DATA, "step is no list of frames");
    int even = has_frames(sets->time, size[0]);
    for (int kind = 0; kind < TSR_TRAJECTORY_N_KIND; kind++)
        even = even && has_frames(sets->position[kind], size[0]);
    for (int i = 0; i < sets->n_observable; i++)
        even = even && has_frames(sets->observable[i], size[0]);
    if (!even)
        return tsr_fail(err, TSR_E_DATA,
                        "its data sets differ in the number of frames");
    *n_frame = (int)size[0];
    return TSR_OK;
}

tsr_status tsr_trajectory_layout_open(hid_t file,
                                      const tsr_trajectory_spec *spec,
                                      tsr_trajectory_sets *sets, int *n_frame,
                                      tsr_err *err)
{
    TSR_TRY(sets_init(sets, spec->n_observable, err));

    TSR_TRY(check_parameter(file, "chain", spec->chain, err));
    TSR_TRY(check_parameter(file, "state", spec->state, err));
    TSR_TRY(check_parameter(file, "stride", spec->stride, err));
    for (int kind = 0; kind < TSR_TRAJECTORY_N_KIND; kind++)
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
