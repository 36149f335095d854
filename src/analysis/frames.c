/* Access to the frames of all trajectory files of a run.
 *
 * A run may have many trajectories, of many states and chains, larger than
 * memory. All frames are listed when the run is opened. Later one block of one
 * file is in memory at a time, so frames are read fastest in the order of the
 * list. */
#include "analysis/frames.h"

#include "analysis/summary.h"

#include "core/pool.h"
#include "store/trajectory.h"

#include <dirent.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { MOST_OPEN = 64 };

/* Bytes of coordinates read at once. */
static const size_t block_bytes = (size_t)8 << 20;

struct tsr_frames {
    tsr_pool pool;
    tsr_model_atoms *atoms;
    int n_file;
    char **path; /* [n_file] */
    int n;
    tsr_drawn_frame *frame;         /* [n] */
    tsr_trajectory_reader **reader; /* [n_file] the first files stay open, since
                                       opening computes their checksums, and of
                                       others the last; NULL: not open */
    /* The block in memory: frames first .. first + count - 1 of file `open`. */
    int open, first, count, capacity;
    int last;     /* index of the frame read last */
    float *block; /* [capacity][n_atom][3] */
};

void tsr_frames_free(tsr_frames *frames)
{
    if (frames == NULL)
        return;
    for (int i = 0; i < frames->n_file; i++)
        tsr_trajectory_reader_free(frames->reader[i]);
    tsr_model_atoms_free(frames->atoms);
    tsr_pool_clear(&frames->pool);
    free(frames);
}

static int is_trajectory(const struct dirent *entry)
{
    const char *name = entry->d_name;
    const size_t n = strlen(name);
    return strncmp(name, "trajectory-", 11) == 0 && n > 14 &&
           strcmp(name + n - 3, ".h5") == 0;
}

static tsr_status find_files(tsr_frames *f, const char *directory, tsr_err *err)
{
    struct dirent **entry;
    const int n = scandir(directory, &entry, is_trajectory, alphasort);
    if (n < 0)
        return tsr_fail(err, TSR_E_NOINPUT, "cannot read folder '%s'",
                        directory);
    tsr_pool_array(&f->pool, f->path, n);
    tsr_pool_array(&f->pool, f->reader, n);
    for (int i = 0; i < n; i++) {
        if (f->path != NULL && f->reader != NULL)
            f->path[f->n_file++] =
                tsr_pool_format(&f->pool, "%s/%s", directory, entry[i]->d_name);
        free(entry[i]);
    }
    free(entry);
    return n > 0
               ? tsr_pool_check(&f->pool, err)
               : tsr_fail(
                     err, TSR_E_NOINPUT,
                     "'%s' has no trajectory-NNN.h5: the run stored no "
                     "conformations; set output.trajectory_every=10 with --set",
                     directory);
}

static tsr_status list_file(tsr_frames *f, int file, tsr_err *err)
{
    tsr_trajectory_reader *reader = NULL;
    int64_t *step = NULL;
    tsr_status status = tsr_trajectory_open(f->path[file], &reader, err);
    TSR_TRY(status);
    const tsr_trajectory_info *info = tsr_trajectory_info_get(reader);
    const int n = info->n_frame;
    if (info->n_atom != f->atoms->n_atom)
        status = tsr_fail(
            err, TSR_E_DATA,
            "'%s' has %d atoms, but model.pdb in the same folder has %d",
            f->path[file], info->n_atom, f->atoms->n_atom);
    if (status == TSR_OK && n > 0) {
        tsr_drawn_frame *more = tsr_pool_resize(
            &f->pool, f->frame, (size_t)(f->n + n), sizeof *more);
        step = malloc((size_t)n * sizeof *step);
        f->frame = more != NULL ? more : f->frame;
        status = more == NULL || step == NULL
                     ? tsr_no_memory(err)
                     : tsr_trajectory_read(reader, 0, n, step, NULL, err);
    }
    for (int i = 0; i < n && status == TSR_OK; i++)
        f->frame[f->n++] = (tsr_drawn_frame){.chain = info->chain,
                                             .state = info->state,
                                             .draw = (long)step[i],
                                             .file = file,
                                             .index = i};
    free(step);
    if (status == TSR_OK && file < MOST_OPEN)
        f->reader[file] = reader;
    else
        tsr_trajectory_reader_free(reader);
    return status;
}

tsr_status tsr_frames_open(const char *directory, tsr_log *log,
                           tsr_frames **out, tsr_err *err)
{
    tsr_err bad;
    int n_bad = 0;
    *out = NULL;
    tsr_frames *f = calloc(1, sizeof *f);
    TSR_TRY(tsr_allocated(f, err));
    f->open = -1;
    tsr_status status = find_files(f, directory, err);
    if (status == TSR_OK) {
        const char *model =
            tsr_pool_format(&f->pool, "%s/%s", directory, "model.pdb");
        status = tsr_pool_check(&f->pool, err);
        TSR_THEN(status, tsr_model_atoms_read(model, &f->atoms, err));
    }
    for (int i = 0; status == TSR_OK && i < f->n_file; i++) {
        tsr_err local;
        tsr_status read = list_file(f, i, &local);
        if (read == TSR_E_NOMEM)
            status = tsr_fail(err, read, "%s", local.message);
        else if (read != TSR_OK && n_bad++ == 0)
            bad = local;
    }
    if (status == TSR_OK && f->n == 0)
        status = n_bad > 0
                     ? tsr_fail(err, TSR_E_DATA, "%s", bad.message)
                     : tsr_fail(err, TSR_E_DATA,
                                "the trajectories of '%s' have no frames yet",
                                directory);
    if (status == TSR_OK && n_bad > 0)
        tsr_warn(log, "%d trajector%s left out: %s", n_bad,
                 n_bad == 1 ? "y is" : "ies are", bad.message);
    if (status == TSR_OK) {
        const size_t one = 3 * sizeof(float) * (size_t)f->atoms->n_atom;
        f->capacity = block_bytes > one ? (int)(block_bytes / one) : 1;
        f->block = tsr_pool_new(&f->pool, (size_t)f->capacity, one);
        status = tsr_pool_check(&f->pool, err);
    }
    TSR_HAND_OVER(status, f, out, tsr_frames_free);
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
    tsr_trajectory_reader **reader = &f->reader[at->file];
    if (f->open != at->file) {
        if (f->open >= MOST_OPEN) {
            tsr_trajectory_reader_free(f->reader[f->open]);
            f->reader[f->open] = NULL;
        }
        f->first = f->count = 0;
        f->last = -1;
        f->open = at->file;
    }
    if (*reader == NULL)
        status = tsr_trajectory_open(f->path[at->file], reader, err);
    if (status == TSR_OK &&
        (at->index < f->first || at->index >= f->first + f->count)) {
        /* if the caller skips frames, read single frames instead of a block */
        const int is_dense = at->index == f->first + f->count ||
                             (at->index > f->last && at->index <= f->last + 2);
        const int left = tsr_trajectory_info_get(*reader)->n_frame - at->index;
        f->first = at->index;
        f->count = !is_dense ? 1 : left < f->capacity ? left : f->capacity;
        status = tsr_trajectory_read(*reader, f->first, f->count, NULL,
                                     f->block, err);
        if (status != TSR_OK)
            f->count = 0;
    }
    f->last = at->index;
    *xyz = status == TSR_OK ? f->block + (size_t)(at->index - f->first) * 3 *
                                             (size_t)f->atoms->n_atom
                            : NULL;
    return status;
}

static int by_chain_state_draw(const void *left, const void *right)
{
    const tsr_drawn_frame *a = left, *b = right;
    return a->chain != b->chain ? (a->chain > b->chain) - (a->chain < b->chain)
           : a->state != b->state
               ? (a->state > b->state) - (a->state < b->state)
               : (a->draw > b->draw) - (a->draw < b->draw);
}

int tsr_frames_last_state(const tsr_frames *frames)
{
    int last = 0;
    for (int i = 0; i < frames->n; i++)
        if (frames->frame[i].state > last)
            last = frames->frame[i].state;
    return last;
}

typedef struct {
    int at, draw;
} pick;

static int by_index(const void *left, const void *right)
{
    const pick *a = left, *b = right;
    return (a->at > b->at) - (a->at < b->at);
}

int tsr_even_index(int n, int m, int k)
{
    return m > 1 ? (int)((long)k * (n - 1) / (m - 1)) : 0;
}

int tsr_frames_select(const tsr_frames *frames, int most, int *at, int *draw,
                      int *n_draw)
{
    const tsr_drawn_frame *frame = frames->frame;
    const int n = frames->n, n_state = tsr_frames_last_state(frames);
    *n_draw = n < most ? n : most;
    if (n_state < 2) {
        for (int i = 0; i < *n_draw; i++) {
            at[i] = tsr_even_index(n, *n_draw, i);
            draw[i] = i;
        }
        return *n_draw;
    }
    /* chosen draws are draws whose first state is stored */
    tsr_pool pool = {0};
    int *first, n_first = 0, count = 0;
    pick *chosen;
    tsr_pool_array(&pool, first, n);
    tsr_pool_array(&pool, chosen, most);
    for (int i = 0; !pool.failed && i < n; i++)
        if (frame[i].state == frame[0].state)
            first[n_first++] = i;
    *n_draw = n_first < most / n_state ? n_first : most / n_state;
    for (int k = 0; !pool.failed && k < *n_draw; k++) {
        tsr_drawn_frame want =
            frame[first[tsr_even_index(n_first, *n_draw, k)]];
        for (want.state = 1; want.state <= n_state && count < most;
             want.state++) {
            const tsr_drawn_frame *f = bsearch(
                &want, frame, (size_t)n, sizeof want, by_chain_state_draw);
            if (f != NULL)
                chosen[count++] = (pick){(int)(f - frame), k};
        }
    }
    if (count > 0)
        qsort(chosen, (size_t)count, sizeof *chosen, by_index);
    for (int i = 0; i < count; i++) {
        at[i] = chosen[i].at;
        draw[i] = chosen[i].draw;
    }
    tsr_pool_clear(&pool);
    return count;
}

/* Copies the weights of one state to its frames. Returns 0 where the trace
 * lacks them. */
static int set_state_weights(const tsr_drawn_frame *frame, int n, int state,
                             tsr_trace_reader *trace, double *weight)
{
    char name[32];
    int n_chain, n_draw;
    double *value;
    snprintf(name, sizeof name, "weight_%d", state);
    (void)tsr_summary_draws(trace, name, &n_chain, &n_draw, &value, NULL);
    for (int i = 0; i < n && value != NULL; i++) {
        const tsr_drawn_frame *f = &frame[i];
        if (f->state == state && f->chain < n_chain && f->draw < n_draw)
            weight[i] =
                value[(size_t)f->chain * (size_t)n_draw + (size_t)f->draw];
    }
    const int is_there = value != NULL;
    free(value);
    return is_there;
}

tsr_status tsr_frames_weights(const tsr_frames *frames, tsr_trace_reader *trace,
                              double **weight, tsr_err *err)
{
    const tsr_drawn_frame *frame = frames->frame;
    const int n = frames->n, n_state = tsr_frames_last_state(frames);
    int is_there = trace != NULL && n_state > 1;
    *weight = NULL;
    if (!is_there)
        return TSR_OK;
    double *w = malloc((size_t)n * sizeof *w);
    TSR_TRY(tsr_allocated(w, err));
    for (int i = 0; i < n; i++) /* weight of frames that the trace lacks */
        w[i] = 1.0 / n_state;
    for (int s = 1; s <= n_state && is_there; s++)
        is_there = set_state_weights(frame, n, s, trace, w);
    for (int i = 0; i < n && is_there; i++)
        is_there = w[i] >= 0.0 && isfinite(w[i]);
    if (!is_there) {
        free(w);
        w = NULL;
    }
    *weight = w;
    return TSR_OK;
}
