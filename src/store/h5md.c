/* Reads only positions and their unit. Boxes, velocities and observables are
 * ignored. */
#include "store/h5md.h"

#include "store/hdf5_object.h"
#include "store/hdf5_store.h"

#include <limits.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

struct tsr_h5md {
    char *group; /* of the particles */
    tsr_hdf5_input input;
    int n_atom, n_frame;
    double to_ang;
};

int tsr_h5md_is(const char *path)
{
    static const char signature[8] = "\211HDF\r\n\032\n";
    char head[8] = "";
    FILE *file = fopen(path, "rb");
    const size_t n = file != NULL ? fread(head, 1, sizeof head, file) : 0;
    if (file != NULL)
        fclose(file);
    return n == sizeof head && memcmp(head, signature, sizeof head) == 0;
}

/* Opens the positions of a group of particles; < 0: it has no positions. */
static hid_t open_positions(hid_t file, const char *group)
{
    char path[512];
    snprintf(path, sizeof path, "/particles/%s/position/value", group);
    return tsr_hdf5_has(file, path + 1) ? H5Dopen2(file, path, H5P_DEFAULT)
                                        : -1;
}

/* Called by H5Literate_by_name for each group of particles. Stops at the first
 * group with positions. */
static herr_t find_positions(hid_t particles, const char *name,
                             const H5L_info_t *info, void *context)
{
    tsr_h5md *h = context;
    hsize_t size[H5S_MAX_RANK];
    const hid_t file = H5Iget_file_id(particles);
    const hid_t data = open_positions(file, name);
    (void)info;
    const int is_found = data >= 0 && tsr_hdf5_shape(data, size) == 3 &&
                         size[2] == 3 && size[0] <= INT_MAX &&
                         size[1] <= INT_MAX;
    if (is_found) {
        h->n_frame = (int)size[0], h->n_atom = (int)size[1];
        h->group = strdup(name);
    }
    tsr_hdf5_close(data);
    H5Fclose(file);
    return is_found;
}

static tsr_status read_unit(tsr_h5md *h, hid_t file, tsr_err *err)
{
    static const struct {
        const char *name;
        double ang;
    } known[] = {{"angstrom", 1.0}, {"a", 1.0}, {"nm", 10.0}, {"pm", 0.01}};
    const hid_t data = open_positions(file, h->group);
    char *unit = tsr_hdf5_attribute_text(data, "unit");
    tsr_status status = TSR_OK;
    tsr_hdf5_close(data);
    h->to_ang = unit == NULL ? 1.0 : 0.0;
    for (size_t k = 0; unit != NULL && k < sizeof known / sizeof *known; k++)
        if (strcasecmp(unit, known[k].name) == 0)
            h->to_ang = known[k].ang;
    if (h->to_ang == 0.0)
        status = tsr_fail(err, TSR_E_DATA,
                          "its positions are in '%.40s', not in Angstrom, nm "
                          "or pm",
                          unit);
    free(unit);
    return status;
}

static tsr_status find_particles(tsr_h5md *h, tsr_err *err)
{
    const hid_t file = h->input.file;
    if (tsr_hdf5_has(file, "particles"))
        H5Literate_by_name(file, "particles", H5_INDEX_NAME, H5_ITER_INC, NULL,
                           find_positions, h, H5P_DEFAULT);
    if (h->group == NULL)
        return tsr_fail(err, TSR_E_DATA,
                        "has no /particles/GROUP/position/value [frame][n][3]; "
                        "is it H5MD?");
    if (h->n_frame == 0 || h->n_atom == 0)
        return tsr_fail(err, TSR_E_DATA, "there are no frames in it");
    return read_unit(h, file, err);
}

tsr_status tsr_h5md_open(const char *path, tsr_h5md **out, tsr_err *err)
{
    tsr_h5md *h = calloc(1, sizeof *h);
    *out = NULL;
    TSR_TRY(tsr_allocated(h, err));
    tsr_status status = tsr_hdf5_input_open(path, &h->input, err);
    TSR_THEN(status, tsr_wrap(err, find_particles(h, err), "'%s'", path));
    TSR_HAND_OVER(status, h, out, tsr_h5md_free);
}

void tsr_h5md_free(tsr_h5md *h5md)
{
    if (h5md == NULL)
        return;
    tsr_hdf5_quiet();
    tsr_hdf5_input_close(&h5md->input);
    free(h5md->group);
    free(h5md);
}

int tsr_h5md_n_atom(const tsr_h5md *h5md)
{
    return h5md->n_atom;
}

int tsr_h5md_n_frame(const tsr_h5md *h5md)
{
    return h5md->n_frame;
}

tsr_status tsr_h5md_read(tsr_h5md *h5md, int k, double (*xyz)[3], tsr_err *err)
{
    const hsize_t offset[3] = {(hsize_t)k, 0, 0},
                  size[3] = {1, (hsize_t)h5md->n_atom, 3};
    tsr_hdf5_quiet();
    const hid_t data = open_positions(h5md->input.file, h5md->group);
    const int is_read = data >= 0 && tsr_hdf5_block(data, H5T_NATIVE_DOUBLE, 3,
                                                    offset, size, xyz, NULL);
    tsr_status status = is_read ? TSR_OK
                                : tsr_hdf5_fail(err, TSR_E_DATA,
                                                "'%s': frame %d cannot be read",
                                                h5md->input.path, k + 1);
    tsr_hdf5_close(data);
    for (int i = 0; i < h5md->n_atom && status == TSR_OK; i++)
        for (int d = 0; d < 3; d++) {
            xyz[i][d] *= h5md->to_ang;
            if (!isfinite(xyz[i][d]))
                status = tsr_fail(err, TSR_E_DATA,
                                  "'%s': frame %d, atom %d: not a number",
                                  h5md->input.path, k + 1, i + 1);
        }
    return status;
}
