/* Writes coordinates of draws to the draw log. Frames are first collected in a
 * block, because the threads store the chains in any order. The block is then
 * written to the log, one trajectory file after another. */
#include "sampler/trajectory_writer.h"

#include "core/text.h"
#include "store/trajectory.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* The numbers stored with each frame, in the order of the log. */
enum { LP, RG, WEIGHT };
static const tsr_trajectory_observable observables[] = {
    [LP] = {"lp", "nat"},
    [RG] = {"rg", "Angstrom"},
    [WEIGHT] = {"weight", NULL}};
enum { N_OBSERVABLE = sizeof observables / sizeof *observables };

struct tsr_trajectory_writer {
    const tsr_target *target;
    int n_chain, n_state, n_atom;
    int n_frame;       /* capacity of the block, frames of each file */
    long every;        /* draws between frames */
    long first;        /* number in the run of the block's first draw */
    double (*atom)[3]; /* [n_frame][n_chain][n_state][n_atom] */
    double (*observable)[N_OBSERVABLE]; /* [n_frame][n_chain][n_state] */
    void *part;                         /* scratch for the frames of one file */
};

/* ---- sizes ---- */

/* Number of frames of the first n_draw draws. */
static long n_frame_of(long every, long n_draw)
{
    return (n_draw + every - 1) / every;
}

double tsr_trajectory_writer_draw_bytes(const tsr_target *target, int n_chain,
                                        long every)
{
    return 3.0 * sizeof(double) * tsr_topology_n_atom(target->topology) *
           n_chain * tsr_target_n_state(target) / (double)every;
}

static tsr_trajectory_spec spec_of(const tsr_target *target, long every,
                                   int chain, int state)
{
    return (tsr_trajectory_spec){.n_atom =
                                     tsr_topology_n_atom(target->topology),
                                 .n_observable = N_OBSERVABLE,
                                 .observable = observables,
                                 .chain = chain,
                                 .state = state,
                                 .stride = (int)every};
}

double tsr_trajectory_writer_disk_bytes(const tsr_target *target, int n_chain,
                                        long every, long n_draw)
{
    const tsr_trajectory_spec spec = spec_of(target, every, 0, 0);
    return tsr_trajectory_bytes(&spec, (int)n_frame_of(every, n_draw)) *
           n_chain * tsr_target_n_state(target);
}

/* ---- files ---- */

/* Name of file number i = n_state chain + state; the caller frees it. */
static char *file_name(const tsr_trajectory_writer *t, const char *directory,
                       int i)
{
    const int chain = i / t->n_state, state = i % t->n_state;
    return t->n_state > 1
               ? tsr_text_format("%s/trajectory-%03d-%d.h5", directory, chain,
                                 state + 1)
               : tsr_text_format("%s/trajectory-%03d.h5", directory, chain);
}

static tsr_status create(const tsr_trajectory_writer *t, const char *path,
                         int i, tsr_err *err)
{
    const int state = t->n_state > 1 ? i % t->n_state + 1 : 0;
    const tsr_trajectory_spec spec =
        spec_of(t->target, t->every, i / t->n_state, state);
    tsr_trajectory *file;
    TSR_TRY(tsr_trajectory_create(path, &spec, &file, err));
    return tsr_trajectory_close(file, err);
}

tsr_status tsr_trajectory_writer_create(const tsr_trajectory_writer *writer,
                                        const char *directory, tsr_err *err)
{
    tsr_status status = TSR_OK;
    for (int i = 0; i < writer->n_chain * writer->n_state && status == TSR_OK;
         i++) {
        char *path = file_name(writer, directory, i);
        status = tsr_allocated(path, err);
        TSR_THEN(status, create(writer, path, i, err));
        free(path);
    }
    return status;
}

tsr_status tsr_trajectory_writer_update(const tsr_trajectory_writer *writer,
                                        const char *directory,
                                        const tsr_draw_records *log,
                                        long n_draw, tsr_err *err)
{
    const long keep[TSR_DRAWN_N_KIND] = {[TSR_DRAWN_FRAMES] =
                                             n_frame_of(writer->every, n_draw)};
    tsr_status status = TSR_OK;
    for (int i = 0; i < writer->n_chain * writer->n_state && status == TSR_OK;
         i++) {
        char *path = file_name(writer, directory, i);
        status = tsr_allocated(path, err);
        TSR_THEN(status, tsr_trajectory_update(path, log,
                                               n_draw < 0 ? NULL : keep, err));
        free(path);
    }
    return status;
}

/* Size of a frame in the log, bytes. */
static size_t frame_bytes(const tsr_trajectory_writer *t)
{
    return 3 * sizeof(float) * (size_t)t->n_atom + sizeof *t->observable;
}

/* ---- a block ---- */

tsr_status tsr_trajectory_writer_new(const tsr_target *target, int n_chain,
                                     int capacity, long every,
                                     tsr_trajectory_writer **out, tsr_err *err)
{
    *out = NULL;
    tsr_trajectory_writer *t = calloc(1, sizeof *t);
    TSR_TRY(tsr_allocated(t, err));
    t->target = target;
    t->every = every;
    t->n_chain = n_chain;
    t->n_state = tsr_target_n_state(target);
    t->n_atom = tsr_topology_n_atom(target->topology);
    t->n_frame = (int)((capacity - 1) / every + 1);
    size_t files = (size_t)n_chain * (size_t)t->n_state;
    size_t frames = files * (size_t)t->n_frame;
    t->part = malloc((size_t)t->n_frame * frame_bytes(t));
    t->atom = calloc(frames * (size_t)t->n_atom + 1, sizeof *t->atom);
    t->observable = calloc(frames, sizeof *t->observable);
    const tsr_status status = tsr_allocated(
        t->part != NULL && t->atom != NULL ? t->observable : NULL, err);
    TSR_HAND_OVER(status, t, out, tsr_trajectory_writer_free);
}

void tsr_trajectory_writer_free(tsr_trajectory_writer *writer)
{
    if (writer == NULL)
        return;
    free(writer->part);
    free(writer->atom);
    free(writer->observable);
    free(writer);
}

void tsr_trajectory_writer_begin(tsr_trajectory_writer *writer, long first)
{
    writer->first = first;
}

long tsr_trajectory_writer_first(const tsr_trajectory_writer *writer)
{
    return writer->first;
}

/* Index in the block of the frame of draw number `draw` of the block; -1: the
 * draw has no frame. */
static int frame_of(const tsr_trajectory_writer *t, int draw)
{
    const long every = t->every;
    if ((t->first + draw) % every != 0)
        return -1;
    return (int)((t->first + draw) / every - (t->first + every - 1) / every);
}

void tsr_trajectory_writer_store(tsr_trajectory_writer *writer,
                                 const tsr_chain *chain, int chain_number,
                                 int draw)
{
    tsr_trajectory_writer *t = writer;
    int frame = frame_of(t, draw);
    tsr_chain_view view;
    if (frame < 0)
        return;
    tsr_chain_view_get(chain, &view);
    for (int k = 0; k < t->n_state; k++) {
        size_t i = ((size_t)frame * (size_t)t->n_chain + (size_t)chain_number) *
                       (size_t)t->n_state +
                   (size_t)k;
        tsr_conformation_atoms(t->target->topology, view.state[k],
                               t->atom + i * (size_t)t->n_atom);
        t->observable[i][RG] = view.state_rg_ang[k];
        t->observable[i][WEIGHT] = view.state_weight[k];
        t->observable[i][LP] = view.lp;
    }
}

void tsr_trajectory_writer_archive(tsr_trajectory_writer *writer, int first,
                                   int end, int n_draw, tsr_archive *archive)
{
    tsr_trajectory_writer *t = writer;
    const size_t n = (size_t)(end - first) * (size_t)t->n_state,
                 n_atom = (size_t)t->n_atom;
    for (int draw = 0; draw < n_draw; draw++) {
        const int frame = frame_of(t, draw);
        if (frame < 0)
            continue;
        const size_t i = ((size_t)frame * (size_t)t->n_chain + (size_t)first) *
                         (size_t)t->n_state;
        tsr_archive_real(archive, t->atom[i * n_atom], 3 * n * n_atom);
        tsr_archive_real(archive, t->observable[i], n * N_OBSERVABLE);
    }
}

tsr_status tsr_trajectory_writer_write(tsr_trajectory_writer *writer,
                                       tsr_draw_log *log, int n_draw,
                                       tsr_err *err)
{
    tsr_trajectory_writer *t = writer;
    const long first = n_frame_of(t->every, t->first);
    const int n = (int)(n_frame_of(t->every, t->first + n_draw) - first);
    const int files = t->n_chain * t->n_state;
    const tsr_draw_record one = {.kind = TSR_DRAWN_FRAMES,
                                 .first = first,
                                 .n = n,
                                 .n_chain = t->n_chain,
                                 .n_state = t->n_state,
                                 .size = (size_t)n * frame_bytes(t)};
    if (n == 0)
        return TSR_OK;
    TSR_TRY(tsr_draw_log_begin(log, &one, err));
    for (int f = 0; f < files; f++) {
        float *to = t->part;
        for (int frame = 0; frame < n; frame++) {
            const size_t i = (size_t)frame * (size_t)files + (size_t)f;
            const double *at = t->atom[i * (size_t)t->n_atom];
            for (int k = 0; k < 3 * t->n_atom; k++)
                *to++ = (float)at[k];
        }
        for (int frame = 0; frame < n; frame++)
            memcpy((char *)to + (size_t)frame * sizeof *t->observable,
                   t->observable[frame * files + f], sizeof *t->observable);
        TSR_TRY(tsr_draw_log_part(log, t->part, err));
    }
    return TSR_OK;
}
