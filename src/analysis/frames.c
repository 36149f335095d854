#include "analysis/frames.h"

#include "store/trajectory.h"

#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Coordinates that are read at once. */
static const size_t block_bytes = (size_t)8 << 20;

struct tsr_frames {
    tsr_model_atoms *atoms;
    int n_file;
    char **path; /* [n_file] */
    int n;
    tsr_drawn_frame *frame; /* [n] */
    /* what is in memory: frames first .. first + count of a file */
    tsr_trajectory_reader *reader; /* of file `open`; NULL: none */
    int open, first, count, room;
    int last;     /* that was asked for */
    float *block; /* [room][n_atom][3] */
};

void tsr_frames_free(tsr_frames *frames)
{
    if (frames == NULL)
        return;
    for (int i = 0; i < frames->n_file; i++)
        free(frames->path[i]);
    free(frames->path);
    free(frames->frame);
    free(frames->block);
    tsr_trajectory_reader_free(frames->reader);
    tsr_model_atoms_free(frames->atoms);
    free(frames);
}

static char *join(const char *directory, const char *name)
{
    const size_t size = strlen(directory) + strlen(name) + 2;
    char *path = malloc(size);
    if (path != NULL)
        snprintf(path, size, "%s/%s", directory, name);
    return path;
}

static int is_trajectory(const char *name)
{
    const size_t n = strlen(name);
    return strncmp(name, "trajectory-", 11) == 0 && n > 14 &&
           strcmp(name + n - 3, ".h5") == 0;
}

static int by_name(const void *left, const void *right)
{
    return strcmp(*(char *const *)left, *(char *const *)right);
}

static tsr_status find_files(tsr_frames *f, const char *directory, tsr_err *err)
{
    DIR *folder = opendir(directory);
    tsr_status status = TSR_OK;
    if (folder == NULL)
        return tsr_fail(err, TSR_E_NOINPUT, "cannot look into '%s'", directory);
    for (struct dirent *entry;
         status == TSR_OK && (entry = readdir(folder)) != NULL;) {
        if (!is_trajectory(entry->d_name))
            continue;
        const size_t n = (size_t)f->n_file + 1;
        char **more = realloc(f->path, n * sizeof *more);
        if (more != NULL)
            f->path = more;
        if (more == NULL ||
            (more[n - 1] = join(directory, entry->d_name)) == NULL)
            status = tsr_fail(err, TSR_E_NOMEM, "out of memory");
        else
            f->n_file++;
    }
    closedir(folder);
    if (f->n_file > 1)
        qsort(f->path, (size_t)f->n_file, sizeof *f->path, by_name);
    if (status == TSR_OK && f->n_file == 0)
        status = tsr_fail(err, TSR_E_NOINPUT,
                          "'%s' has no trajectory-NNN.h5: the run stored no "
                          "conformations; run it with --set "
                          "output.trajectory_every=10",
                          directory);
    return status;
}

static tsr_status list_file(tsr_frames *f, int file, tsr_err *err)
{
    tsr_trajectory_reader *reader = NULL;
    int64_t *step = NULL;
    tsr_status status = tsr_trajectory_open(f->path[file], &reader, err);
    if (status != TSR_OK)
        return status;
    const int n = tsr_trajectory_n_frame(reader);
    if (tsr_trajectory_n_atom(reader) != f->atoms->n_atom)
        status = tsr_fail(
            err, TSR_E_DATA, "'%s' has %d atoms, and model.pdb beside it %d",
            f->path[file], tsr_trajectory_n_atom(reader), f->atoms->n_atom);
    tsr_drawn_frame *more = NULL;
    if (status == TSR_OK && n > 0) {
        more = realloc(f->frame, (size_t)(f->n + n) * sizeof *more);
        step = malloc((size_t)n * sizeof *step);
        if (more != NULL)
            f->frame = more;
        status = more == NULL || step == NULL
                     ? tsr_fail(err, TSR_E_NOMEM, "no memory for %d frames", n)
                     : tsr_trajectory_read(reader, 0, n, step, NULL, NULL, err);
    }
    for (int i = 0; i < n && status == TSR_OK; i++)
        f->frame[f->n++] =
            (tsr_drawn_frame){.chain = tsr_trajectory_chain(reader),
                              .state = tsr_trajectory_state(reader),
                              .draw = (long)step[i],
                              .file = file,
                              .index = i};
    free(step);
    tsr_trajectory_reader_free(reader);
    return status;
}

tsr_status tsr_frames_open(const char *directory, tsr_frames **out, int *n_bad,
                           tsr_err *bad, tsr_err *err)
{
    *out = NULL;
    *n_bad = 0;
    tsr_frames *f = calloc(1, sizeof *f);
    char *model = join(directory, "model.pdb");
    tsr_status status = f != NULL && model != NULL
                            ? find_files(f, directory, err)
                            : tsr_fail(err, TSR_E_NOMEM, "out of memory");
    if (status == TSR_OK)
        status = tsr_model_atoms_read(model, &f->atoms, err);
    for (int i = 0; status == TSR_OK && i < f->n_file; i++) {
        tsr_err local;
        tsr_status read = list_file(f, i, &local);
        if (read == TSR_E_NOMEM)
            status = tsr_fail(err, read, "%s", local.message);
        else if (read != TSR_OK && (*n_bad)++ == 0 && bad != NULL)
            *bad = local;
    }
    if (status == TSR_OK && f->n == 0)
        status = *n_bad > 0 && bad != NULL
                     ? tsr_fail(err, TSR_E_DATA, "%s", bad->message)
                     : tsr_fail(err, TSR_E_DATA,
                                "the trajectories of '%s' have no frame yet",
                                directory);
    if (status == TSR_OK) {
        const size_t one = 3 * sizeof(float) * (size_t)f->atoms->n_atom;
        f->room = block_bytes > one ? (int)(block_bytes / one) : 1;
        f->block = malloc((size_t)f->room * one);
        if (f->block == NULL)
            status = tsr_fail(err, TSR_E_NOMEM, "no memory for frames");
    }
    free(model);
    if (status != TSR_OK) {
        tsr_frames_free(f);
        f = NULL;
    }
    *out = f;
    return status;
}

const tsr_model_atoms *tsr_frames_atoms(const tsr_frames *frames)
{
    return frames->atoms;
}

int tsr_frames_list(const tsr_frames *frames, const tsr_drawn_frame **frame)
{
    *frame = frames->frame;
    return frames->n;
}

tsr_status tsr_frames_read(tsr_frames *frames, int i, const float **xyz,
                           tsr_err *err)
{
    tsr_frames *f = frames;
    const tsr_drawn_frame *at = &f->frame[i];
    tsr_status status = TSR_OK;
    if (f->reader == NULL || f->open != at->file) {
        tsr_trajectory_reader_free(f->reader);
        f->reader = NULL;
        f->first = f->count = 0;
        f->last = -1;
        f->open = at->file;
        status = tsr_trajectory_open(f->path[at->file], &f->reader, err);
    }
    if (status == TSR_OK &&
        (at->index < f->first || at->index >= f->first + f->count)) {
        /* where only some are wanted, what lies between is not unpacked */
        const int is_dense = at->index == f->first + f->count ||
                             (at->index > f->last && at->index <= f->last + 2);
        const int left = tsr_trajectory_n_frame(f->reader) - at->index;
        f->first = at->index;
        f->count = !is_dense ? 1 : left < f->room ? left : f->room;
        status = tsr_trajectory_read(f->reader, f->first, f->count, NULL,
                                     f->block, NULL, err);
        if (status != TSR_OK)
            f->count = 0;
    }
    f->last = at->index;
    *xyz = status == TSR_OK ? f->block + (size_t)(at->index - f->first) * 3 *
                                             (size_t)f->atoms->n_atom
                            : NULL;
    return status;
}
