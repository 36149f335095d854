/* Of H5MD, only positions and their unit are read. Boxes, velocities and
 * observables are ignored. */
#include "store/md_frames.h"

#include "files/dcd.h"
#include "files/file.h"
#include "store/hdf5_object.h"
#include "store/hdf5_store.h"

#include <limits.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

struct tsr_md_frames {
    int n_atom, n_frame;
    double (*xyz)[3]; /* [n_atom] the frame read last */
    tsr_dcd *dcd;     /* NULL: H5MD */
    tsr_hdf5_input input;
    char *group; /* of the particles */
    double to_ang;
};

/* Does the file begin as HDF5 files do? */
static int is_hdf5(const char *path)
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
    tsr_md_frames *h = context;
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

static tsr_status read_unit(tsr_md_frames *h, hid_t file, tsr_err *err)
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

static tsr_status find_particles(tsr_md_frames *h, tsr_err *err)
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

static tsr_status open_file(tsr_md_frames *f, const char *path,
                            const char *atoms, int n_atom, tsr_log *log,
                            tsr_err *err)
{
    TSR_TRY(tsr_file_check_input(path, err));
    if (is_hdf5(path)) {
        TSR_TRY(tsr_hdf5_input_open(path, &f->input, err));
        const tsr_status status = find_particles(f, err);
        if (status != TSR_OK)
            return tsr_wrap(err, status, "'%s'", path);
    } else {
        TSR_TRY(tsr_dcd_open(path, &f->dcd, err));
        const tsr_dcd_info info = tsr_dcd_info_get(f->dcd);
        f->n_atom = info.n_atom, f->n_frame = info.n_frame;
        if (info.is_cut)
            tsr_warn(log, "'%s' ends within a frame; that frame is left out",
                     path);
    }
    if (f->n_atom != n_atom)
        return tsr_fail(err, TSR_E_DATA,
                        "'%s' has %d atoms, but '%s' %d: they must be the "
                        "same, in the same order, waters and hydrogens "
                        "included",
                        path, f->n_atom, atoms, n_atom);
    f->xyz = calloc((size_t)n_atom, sizeof *f->xyz);
    return tsr_allocated(f->xyz, err);
}

tsr_status tsr_md_frames_open(const char *path, const char *atoms, int n_atom,
                              tsr_log *log, tsr_md_frames **out, tsr_err *err)
{
    tsr_md_frames *f = calloc(1, sizeof *f);
    *out = NULL;
    TSR_TRY(tsr_allocated(f, err));
    f->input.file = -1;
    const tsr_status status = open_file(f, path, atoms, n_atom, log, err);
    if (status == TSR_OK)
        *out = f;
    else
        tsr_md_frames_free(f);
    return status;
}

void tsr_md_frames_free(tsr_md_frames *frames)
{
    if (frames == NULL)
        return;
    tsr_hdf5_quiet();
    tsr_hdf5_input_close(&frames->input);
    tsr_dcd_free(frames->dcd);
    free(frames->group);
    free(frames->xyz);
    free(frames);
}

int tsr_md_frames_n(const tsr_md_frames *frames)
{
    return frames->n_frame;
}

static tsr_status read_h5md(tsr_md_frames *h, int k, tsr_err *err)
{
    double(*xyz)[3] = h->xyz;
    const hsize_t offset[3] = {(hsize_t)k, 0, 0},
                  size[3] = {1, (hsize_t)h->n_atom, 3};
    tsr_hdf5_quiet();
    const hid_t data = open_positions(h->input.file, h->group);
    const int is_read = data >= 0 && tsr_hdf5_block(data, H5T_NATIVE_DOUBLE, 3,
                                                    offset, size, xyz, NULL);
    tsr_status status = is_read ? TSR_OK
                                : tsr_hdf5_fail(err, TSR_E_DATA,
                                                "'%s': frame %d cannot be read",
                                                h->input.path, k + 1);
    tsr_hdf5_close(data);
    for (int i = 0; i < h->n_atom && status == TSR_OK; i++)
        for (int d = 0; d < 3; d++) {
            xyz[i][d] *= h->to_ang;
            if (!isfinite(xyz[i][d]))
                status = tsr_fail(err, TSR_E_DATA,
                                  "'%s': frame %d, atom %d: not a number",
                                  h->input.path, k + 1, i + 1);
        }
    return status;
}

tsr_status tsr_md_frames_read(tsr_md_frames *frames, int k,
                              const double (**xyz)[3], tsr_err *err)
{
    *xyz = (const double(*)[3])frames->xyz;
    return frames->dcd != NULL ? tsr_dcd_read(frames->dcd, k, frames->xyz, err)
                               : read_h5md(frames, k, err);
}
