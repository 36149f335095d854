/* A run may have many trajectories of many states and chains, larger than
 * memory. All frames are listed once, by draw; then one block of one file at a
 * time is in memory, so frames are best asked for in the order of the list. */
#include "analysis/frames.h"

#include "core/text.h"
#include "store/trajectory.h"

#include <dirent.h>
#include <math.h>
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
        if (more == NULL || (more[n - 1] = tsr_words_of("%s/%s", directory,
                                                        entry->d_name)) == NULL)
            status = tsr_no_memory(err);
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
    const tsr_trajectory_info *info = tsr_trajectory_look(reader);
    const int n = info->n_frame;
    if (info->n_atom != f->atoms->n_atom)
        status = tsr_fail(err, TSR_E_DATA,
                          "'%s' has %d atoms, and model.pdb beside it %d",
                          f->path[file], info->n_atom, f->atoms->n_atom);
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
        f->frame[f->n++] = (tsr_drawn_frame){.chain = info->chain,
                                             .state = info->state,
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
    char *model = tsr_words_of("%s/%s", directory, "model.pdb");
    tsr_status status = f != NULL && model != NULL
                            ? find_files(f, directory, err)
                            : tsr_no_memory(err);
    TSR_THEN(status, tsr_model_atoms_read(model, &f->atoms, err));
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
        const int left = tsr_trajectory_look(f->reader)->n_frame - at->index;
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

/* The first frame's number that is not before chain, state, draw. */
static int lower_bound(const tsr_drawn_frame *frame, int n, int chain,
                       int state, long draw)
{
    int low = 0, high = n;
    while (low < high) {
        const int middle = low + (high - low) / 2;
        const tsr_drawn_frame *f = &frame[middle];
        const int is_before = f->chain != chain   ? f->chain < chain
                              : f->state != state ? f->state < state
                                                  : f->draw < draw;
        if (is_before)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

static int last_state(const tsr_drawn_frame *frame, int n)
{
    int last = 0;
    for (int i = 0; i < n; i++)
        last = frame[i].state > last ? frame[i].state : last;
    return last;
}

typedef struct {
    int at, draw;
} pick;

static int by_at(const void *left, const void *right)
{
    const pick *a = left, *b = right;
    return (a->at > b->at) - (a->at < b->at);
}

/* k of m, evenly among n: the first and the last are in. */
static int even_place(int n, int m, int k)
{
    return m > 1 ? (int)((long)k * (n - 1) / (m - 1)) : 0;
}

int tsr_frames_spread(const tsr_frames *frames, int most, int *at, int *draw,
                      int *n_draw)
{
    const tsr_drawn_frame *frame;
    const int n = tsr_frames_list(frames, &frame);
    const int n_state = last_state(frame, n);
    *n_draw = n < most ? n : most;
    if (n_state < 2) {
        for (int i = 0; i < *n_draw; i++) {
            at[i] = even_place(n, *n_draw, i);
            draw[i] = i;
        }
        return *n_draw;
    }
    /* the draws are those that the first state was stored of */
    int *first = malloc((size_t)n * sizeof *first), n_first = 0, count = 0;
    pick *chosen = malloc((size_t)most * sizeof *chosen);
    for (int i = 0; first != NULL && i < n; i++)
        if (frame[i].state == frame[0].state)
            first[n_first++] = i;
    *n_draw = n_first < most / n_state ? n_first : most / n_state;
    for (int k = 0; first != NULL && chosen != NULL && k < *n_draw; k++) {
        const tsr_drawn_frame *f =
            &frame[first[even_place(n_first, *n_draw, k)]];
        for (int s = 1; s <= n_state && count < most; s++) {
            const int i = lower_bound(frame, n, f->chain, s, f->draw);
            if (i < n && frame[i].chain == f->chain && frame[i].state == s &&
                frame[i].draw == f->draw)
                chosen[count++] = (pick){i, k};
        }
    }
    if (count > 0)
        qsort(chosen, (size_t)count, sizeof *chosen, by_at);
    for (int i = 0; i < count; i++) {
        at[i] = chosen[i].at;
        draw[i] = chosen[i].draw;
    }
    free(first);
    free(chosen);
    return count;
}

/* The weights of one state into those of its frames; 0: there are none. */
static int fill_state(const tsr_drawn_frame *frame, int n, int state,
                      tsr_trace_reader *trace, double *weight)
{
    char name[32];
    int n_chain, n_draw, n_each;
    double *value;
    snprintf(name, sizeof name, "weight_%d", state);
    if (tsr_trace_get(trace, TSR_TRACE_POSTERIOR, name, &n_chain, &n_draw,
                      &n_each, &value, NULL) != TSR_OK)
        return 0;
    for (int i = 0; i < n && n_each == 1; i++) {
        const tsr_drawn_frame *f = &frame[i];
        if (f->state == state && f->chain < n_chain && f->draw < n_draw)
            weight[i] =
                value[(size_t)f->chain * (size_t)n_draw + (size_t)f->draw];
    }
    free(value);
    return n_each == 1;
}

tsr_status tsr_frames_weights(const tsr_frames *frames, tsr_trace_reader *trace,
                              double **weight, tsr_err *err)
{
    const tsr_drawn_frame *frame;
    const int n = tsr_frames_list(frames, &frame);
    const int n_state = last_state(frame, n);
    int is_there = trace != NULL && n_state > 1;
    *weight = NULL;
    if (!is_there)
        return TSR_OK;
    double *w = malloc((size_t)n * sizeof *w);
    if (w == NULL)
        return tsr_fail(err, TSR_E_NOMEM, "no memory for %d weights", n);
    for (int i = 0; i < n; i++) /* beyond the trace: as the others on average */
        w[i] = 1.0 / n_state;
    for (int s = 1; s <= n_state && is_there; s++)
        is_there = fill_state(frame, n, s, trace, w);
    for (int i = 0; i < n && is_there; i++)
        is_there = w[i] >= 0.0 && isfinite(w[i]);
    if (!is_there) {
        free(w);
        w = NULL;
    }
    *weight = w;
    return TSR_OK;
}
