/* Coordinates of draws on their way to the trajectories: collected in a block
 * of frames, as chains are at different draws at one time, then written file
 * by file. */
#include "sampler/track.h"

#include "store/trajectory.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static const tsr_trajectory_observable observables[] = {
    {"rg", "Angstrom"}, {"weight", NULL}, {"lp", "nat"}};
enum { N_OBSERVABLE = sizeof observables / sizeof *observables };

struct tsr_track {
    const tsr_target *target;
    tsr_track_options options;
    int n_chain, n_state, n_atom, n_body; /* 0 where they are not stored */
    int n_frame;                          /* of a block, at most */
    long first;                           /* draw that the block begins with */
    double (*atom)[3]; /* [n_frame][n_chain][n_state][n_atom] */
    double (*body)[3];
    double (*observable)[N_OBSERVABLE]; /* [n_frame][n_chain][n_state] */
    tsr_trajectory **file;              /* [n_chain][n_state] */
};

/* ---- sizes ---- */

static int n_atom_of(const tsr_target *t, const tsr_track_options *o)
{
    return o->atoms ? tsr_topology_n_atom(t->topology) : 0;
}

static int n_body_of(const tsr_target *t, const tsr_track_options *o)
{
    return o->bodies ? t->topology->n_body : 0;
}

/* Frames that n_draw draws have. */
static long n_frame_of(const tsr_track_options *options, long n_draw)
{
    return (n_draw + options->every - 1) / options->every;
}

double tsr_track_draw_bytes(const tsr_target *target, int n_chain,
                            const tsr_track_options *options)
{
    double points = n_atom_of(target, options) + n_body_of(target, options);
    return 3.0 * sizeof(double) * points * n_chain *
           tsr_target_n_state(target) / (double)options->every;
}

static tsr_trajectory_spec spec_of(const tsr_target *target,
                                   const tsr_track_options *options, int chain,
                                   int state)
{
    return (tsr_trajectory_spec){.n_atom = n_atom_of(target, options),
                                 .n_body = n_body_of(target, options),
                                 .n_observable = N_OBSERVABLE,
                                 .observable = observables,
                                 .chain = chain,
                                 .state = state,
                                 .stride = (int)options->every};
}

double tsr_track_bytes(const tsr_target *target, int n_chain,
                       const tsr_track_options *options, long n_draw)
{
    double expected, most;
    tsr_trajectory_spec spec = spec_of(target, options, 0, 0);
    tsr_trajectory_bytes(&spec, (int)n_frame_of(options, n_draw), &expected,
                         &most);
    return expected * n_chain * tsr_target_n_state(target);
}

/* ---- files ---- */

static void file_name(char *to, size_t size, const char *directory, int chain,
                      int state, int n_state)
{
    if (n_state > 1)
        snprintf(to, size, "%s/trajectory-%03d-%d.h5", directory, chain,
                 state + 1);
    else
        snprintf(to, size, "%s/trajectory-%03d.h5", directory, chain);
}

static char *new_path(const char *directory, size_t *size)
{
    *size = strlen(directory) + 64;
    return calloc(*size, 1);
}

/* n_draw < 0: creates. */
static tsr_status open_all(tsr_track *t, const char *directory, long n_draw,
                           tsr_err *err)
{
    size_t size;
    char *path = new_path(directory, &size);
    tsr_status status = tsr_allocated(path, err);
    for (int c = 0; c < t->n_chain && status == TSR_OK; c++)
        for (int k = 0; k < t->n_state && status == TSR_OK; k++) {
            tsr_trajectory_spec spec =
                spec_of(t->target, &t->options, c, t->n_state > 1 ? k + 1 : 0);
            tsr_trajectory **file = &t->file[c * t->n_state + k];
            file_name(path, size, directory, c, k, t->n_state);
            status = n_draw < 0
                         ? tsr_trajectory_create(path, &spec, file, err)
                         : tsr_trajectory_reopen(
                               path, &spec,
                               (int)n_frame_of(&t->options, n_draw), file, err);
        }
    free(path);
    return status;
}

tsr_status tsr_track_create(tsr_track *track, const char *directory,
                            tsr_err *err)
{
    return open_all(track, directory, -1, err);
}

tsr_status tsr_track_reopen(tsr_track *track, const char *directory,
                            long n_draw, tsr_err *err)
{
    return open_all(track, directory, n_draw, err);
}

void tsr_track_remove(tsr_track *track, const char *directory, int only_made)
{
    tsr_track *t = track;
    size_t size;
    char *path = new_path(directory, &size);
    for (int c = 0; path != NULL && c < t->n_chain; c++)
        for (int k = 0; k < t->n_state; k++) {
            tsr_trajectory **file = &t->file[c * t->n_state + k];
            const int is_made = *file != NULL;
            tsr_trajectory_close(*file, NULL);
            *file = NULL;
            file_name(path, size, directory, c, k, t->n_state);
            if (is_made || !only_made)
                unlink(path);
        }
    free(path);
}

/* ---- a block ---- */

tsr_status tsr_track_new(const tsr_target *target, int n_chain, int capacity,
                         tsr_track_options options, tsr_track **out,
                         tsr_err *err)
{
    *out = NULL;
    tsr_track *t = calloc(1, sizeof *t);
    TSR_TRY(tsr_allocated(t, err));
    t->target = target;
    t->options = options;
    t->n_chain = n_chain;
    t->n_state = tsr_target_n_state(target);
    t->n_atom = n_atom_of(target, &options);
    t->n_body = n_body_of(target, &options);
    t->n_frame = (int)((capacity - 1) / options.every + 1);
    size_t files = (size_t)n_chain * (size_t)t->n_state;
    size_t frames = files * (size_t)t->n_frame;
    t->file = calloc(files, sizeof(*t->file));
    t->atom = calloc(frames * (size_t)t->n_atom + 1, sizeof *t->atom);
    t->body = calloc(frames * (size_t)t->n_body + 1, sizeof *t->body);
    t->observable = calloc(frames, sizeof *t->observable);
    if (t->file == NULL || t->atom == NULL || t->body == NULL ||
        t->observable == NULL) {
        tsr_track_free(t);
        return tsr_no_memory(err);
    }
    *out = t;
    return TSR_OK;
}

tsr_status tsr_track_close(tsr_track *track, tsr_err *err)
{
    tsr_status status = TSR_OK;
    if (track == NULL)
        return TSR_OK;
    for (int i = 0; track->file != NULL && i < track->n_chain * track->n_state;
         i++) {
        tsr_status one =
            tsr_trajectory_close(track->file[i], status == TSR_OK ? err : NULL);
        TSR_THEN(status, one);
    }
    free(track->file);
    free(track->atom);
    free(track->body);
    free(track->observable);
    free(track);
    return status;
}

void tsr_track_free(tsr_track *track)
{
    tsr_track_close(track, NULL);
}

void tsr_track_begin(tsr_track *track, long first)
{
    track->first = first;
}

/* Which frame of the block a draw of it is; -1: none. */
static int frame_of(const tsr_track *t, int draw)
{
    long every = t->options.every;
    if ((t->first + draw) % every != 0)
        return -1;
    return (int)((t->first + draw) / every - (t->first + every - 1) / every);
}

void tsr_track_store(tsr_track *track, const tsr_chain *chain, int chain_number,
                     int draw)
{
    tsr_track *t = track;
    int frame = frame_of(t, draw);
    tsr_chain_view view;
    if (frame < 0)
        return;
    tsr_chain_look(chain, &view);
    for (int k = 0; k < t->n_state; k++) {
        size_t i = ((size_t)frame * (size_t)t->n_chain + (size_t)chain_number) *
                       (size_t)t->n_state +
                   (size_t)k;
        if (t->n_atom > 0)
            tsr_conformation_atoms(t->target->topology, view.state[k],
                                   t->atom + i * (size_t)t->n_atom);
        if (t->n_body > 0)
            memcpy(t->body + i * (size_t)t->n_body, view.state[k]->body,
                   (size_t)t->n_body * sizeof *t->body);
        t->observable[i][0] = view.state_rg_ang[k];
        t->observable[i][1] = view.state_weight[k];
        t->observable[i][2] = view.lp;
    }
}

tsr_status tsr_track_write(tsr_track *track, int n_draw, tsr_err *err)
{
    tsr_track *t = track;
    tsr_status status = TSR_OK;
    int files = t->n_chain * t->n_state;
    for (int draw = 0; draw < n_draw; draw++) {
        int frame = frame_of(t, draw);
        for (int f = 0; frame >= 0 && f < files && status == TSR_OK; f++) {
            size_t i = (size_t)frame * (size_t)files + (size_t)f;
            status = tsr_trajectory_append(
                t->file[f], t->first + draw,
                t->n_atom > 0 ? t->atom[i * (size_t)t->n_atom] : NULL,
                t->n_body > 0 ? t->body[i * (size_t)t->n_body] : NULL,
                t->observable[i], err);
        }
    }
    return status;
}

tsr_status tsr_track_flush(tsr_track *track, tsr_err *err)
{
    return tsr_trajectory_flush_all(track->file,
                                    track->n_chain * track->n_state, err);
}
