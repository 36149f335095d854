/* The models of `tessera map`: from a structure file (one model, or many as
 * frames), the draws of a run, or a trajectory with a structure. */
#include "commands/map_job.h"

#include "analysis/export.h"
#include "core/vec3.h"
#include "molecule/residue.h"
#include "molecule/structure.h"
#include "session/past_run.h"
#include "store/md_frames.h"

#include <math.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

/* ---- models that are read one by one ---- */

/* A run that is open. */
typedef struct {
    tsr_past_run run;
    tsr_frames *frames;
    tsr_structure *input;
    tsr_all_atoms *all;
    tsr_pool pool;      /* owns the members below */
    double (*model)[3]; /* atoms of one frame */
    int *at, *draw;     /* [n] selected frames, and the draw of each */
    int *order; /* [n] frames, with the states of one draw in sequence */
} drawn;

struct tsr_model_frames {
    pthread_mutex_t lock; /* one thread reads at a time: neither readers nor
                             HDF5 are thread-safe */
    drawn run;
    tsr_md_frames *file; /* a trajectory; NULL: a run */
};

const double (*tsr_map_models_first(const tsr_map_models *models))[3]
{
    return (const double(*)[3])models->xyz;
}

void tsr_map_models_label(const tsr_map_models *models, int k, char *text,
                          unsigned long size)
{
    if (models->draw != NULL && models->chain == NULL)
        snprintf(text, size, "%s, frame %ld", models->path, models->draw[k]);
    else if (models->draw != NULL)
        snprintf(text, size, "%s, chain %d, draw %ld", models->path,
                 models->chain[k], models->draw[k]);
    else if (models->n > 1)
        snprintf(text, size, "%s, model %d", models->path, k + 1);
    else
        snprintf(text, size, "%s", models->path);
}

/* ---- a run ---- */

static int atomic_number(const tsr_model_atom *atom)
{
    if (atom->guest_kind == TSR_GUEST_NONE)
        return tsr_amino_atomic_number(atom->name);
    for (int z = 1; z < 119; z++)
        if (strcmp(tsr_atom_symbol(z), atom->element) == 0)
            return z;
    return 0;
}

/* 1: the atom begins a residue. */
static int begins_residue(const tsr_model_atom *atom, int i)
{
    const tsr_model_atom *a = &atom[i], *b = &atom[i > 0 ? i - 1 : 0];
    return i == 0 || a->at != b->at ||
           (a->at < 0 && (a->number != b->number || a->chain != b->chain ||
                          a->insertion != b->insertion ||
                          strcmp(a->chain_id, b->chain_id) != 0 ||
                          strcmp(a->residue, b->residue) != 0));
}

/* A run's atoms as those of a structure file. */
static tsr_status convert_atoms(const tsr_model_atoms *list, const char *path,
                                tsr_atoms **out, tsr_err *err)
{
    tsr_atoms *a = calloc(1, sizeof *a);
    TSR_TRY(tsr_allocated(a, err));
    *out = a;
    a->path = tsr_pool_text(&a->pool, path);
    for (int i = 0; i < list->n_atom; i++)
        a->n_residue += begins_residue(list->atom, i);
    tsr_pool_array(&a->pool, a->atom, list->n_atom);
    tsr_pool_array(&a->pool, a->residue, a->n_residue);
    TSR_TRY(tsr_pool_check(&a->pool, err));
    a->n_atom = list->n_atom;
    tsr_file_residue *r = a->residue - 1;
    for (int i = 0; i < list->n_atom; i++) {
        const tsr_model_atom *from = &list->atom[i];
        tsr_file_atom *to = &a->atom[i];
        if (begins_residue(list->atom, i)) {
            *++r = (tsr_file_residue){.first_atom = i,
                                      .number = from->number,
                                      .insertion = from->insertion};
            snprintf(r->name, sizeof r->name, "%s", from->residue);
            snprintf(r->parent, sizeof r->parent, "%s", from->residue);
            if (from->chain_id[0] != '\0')
                memcpy(r->chain, from->chain_id, sizeof r->chain);
            else
                snprintf(r->chain, sizeof r->chain, "%c", from->chain);
            r->is_tabulated = tsr_amino_by_three(r->parent) >= 0;
            r->kind = from->guest_kind == TSR_GUEST_NUCLEOTIDE
                          ? TSR_MOLECULE_NUCLEOTIDE
                      : r->is_tabulated ? TSR_MOLECULE_PROTEIN
                                        : TSR_MOLECULE_OTHER;
            a->n_kind[r->kind]++;
        }
        snprintf(to->name, sizeof to->name, "%s", from->name);
        to->z = atomic_number(from);
        to->residue = (int)(r - a->residue);
        r->n_atom++;
    }
    return TSR_OK;
}

static tsr_status open_run(drawn *d, const char *path, tsr_log *log,
                           tsr_err *err)
{
    TSR_TRY(tsr_past_run_open(path, &d->run, log, err));
    if (d->run.directory == NULL)
        return tsr_fail(err, TSR_E_USAGE,
                        "'%s' is a trace; give the folder of the run", path);
    TSR_TRY(tsr_frames_open(d->run.directory, log, &d->frames, err));
    const char *file = d->run.has_config ? d->run.config.structure.file : NULL;
    if (file == NULL)
        return tsr_fail(err, TSR_E_DATA,
                        "'%s': a map shows all atoms, but this run has no "
                        "input structure for the side chains",
                        path);
    tsr_status status = tsr_structure_read_any(file, &d->input, err);
    TSR_THEN(status, tsr_all_atoms_new(tsr_frames_atoms(d->frames), d->input,
                                       &d->all, err));
    if (status != TSR_OK)
        return tsr_wrap(err, status, "side chains of the run's input");
    const tsr_model_atoms *list = tsr_all_atoms_list(d->all);
    if (list->n_atom < 6 * list->n_residue) /* proteins have about 8 */
        tsr_warn(log,
                 "'%s': the input of the run has few side-chain atoms, %d "
                 "atoms in %d residues; the density lacks the missing atoms",
                 path, list->n_atom, list->n_residue);
    return TSR_OK;
}

static tsr_status read_drawn(drawn *d, int i, double (*xyz)[3], tsr_err *err)
{
    const float *from;
    const int n = tsr_frames_atoms(d->frames)->n_atom;
    TSR_TRY(tsr_frames_read(d->frames, i, &from, err));
    for (int k = 0; k < n; k++)
        for (int c = 0; c < 3; c++)
            d->model[k][c] = (double)from[3 * k + c];
    tsr_all_atoms_place(d->all, (const double(*)[3])d->model, xyz);
    return TSR_OK;
}

/* model.pdb is the structure from which the run started. */
static void read_start(drawn *d, double (*xyz)[3])
{
    const tsr_model_atoms *list = tsr_frames_atoms(d->frames);
    for (int k = 0; k < list->n_atom; k++)
        memcpy(d->model[k], list->xyz + 3 * (size_t)k, sizeof d->model[k]);
    tsr_all_atoms_place(d->all, (const double(*)[3])d->model, xyz);
}

/* Frames in the order of draws, with the states of one draw in sequence. */
static tsr_status order_frames(drawn *d, int n_draw, tsr_map_models *out,
                               tsr_err *err)
{
    const tsr_drawn_frame *frame;
    double *weight = NULL, *sum;
    int *next;
    tsr_pool_array(&d->pool, sum, n_draw);
    tsr_pool_array(&d->pool, next, n_draw + 1);
    TSR_TRY(tsr_pool_check(&d->pool, err));
    TSR_TRY(tsr_frames_weights(d->frames, d->run.trace, &weight, err));
    tsr_frames_list(d->frames, &frame);
    for (int k = 0; k < out->n; k++) {
        next[d->draw[k] + 1]++;
        sum[d->draw[k]] += weight != NULL ? weight[d->at[k]] : 1.0;
    }
    for (int g = 0; g < n_draw; g++)
        next[g + 1] += next[g];
    for (int k = 0; k < out->n; k++) {
        const int g = d->draw[k], n = next[g]++, i = d->at[k];
        d->order[n] = i;
        out->of_draw[n] = g;
        out->weight[n] = (weight != NULL ? weight[i] : 1.0) / sum[g];
        out->draw[n] = frame[i].draw;
        out->chain[n] = frame[i].chain;
    }
    free(weight);
    return TSR_OK;
}

static tsr_status list_frames(drawn *d, int most, tsr_map_models *out,
                              tsr_err *err)
{
    const tsr_model_atoms *list = tsr_all_atoms_list(d->all);
    const tsr_drawn_frame *frame;
    const size_t n_all = (size_t)tsr_frames_list(d->frames, &frame);
    const size_t room = n_all < (size_t)most ? n_all : (size_t)most;
    int n_draw;
    TSR_TRY(convert_atoms(list, out->path, &out->atoms, err));
    tsr_pool *pool = &out->atoms->pool;
    tsr_pool_array(&d->pool, d->at, room);
    tsr_pool_array(&d->pool, d->draw, room);
    tsr_pool_array(&d->pool, d->order, room);
    tsr_pool_array(&d->pool, d->model, tsr_frames_atoms(d->frames)->n_atom);
    TSR_TRY(tsr_pool_check(&d->pool, err));
    out->n = tsr_frames_select(d->frames, (int)room, d->at, d->draw, &n_draw);
    tsr_pool_array(pool, out->xyz, list->n_atom);
    tsr_pool_array(pool, out->start, list->n_atom);
    tsr_pool_array(pool, out->draw, out->n);
    tsr_pool_array(pool, out->chain, out->n);
    tsr_pool_array(pool, out->of_draw, out->n);
    tsr_pool_array(pool, out->weight, out->n);
    TSR_TRY(tsr_pool_check(pool, err));
    TSR_TRY(order_frames(d, n_draw, out, err));
    read_start(d, out->start);
    return read_drawn(d, d->order[0], out->xyz, err);
}

/* ---- a trajectory ---- */

/* Atoms in another order would also give a correlation. Bond lengths hardly
 * change, so pairs of consecutive atoms that are bonded in the file must be
 * bonded in the first frame. */
static tsr_status check_order(const tsr_map_models *m, const char *trajectory,
                              tsr_err *err)
{
    const tsr_file_atom *atom = m->atoms->atom;
    int n = 0, n_other = 0;
    for (int i = 0; i + 1 < m->atoms->n_atom; i++) {
        const double bond = tsr_vec3_distance(atom[i].xyz, atom[i + 1].xyz);
        const double now = tsr_vec3_distance(m->xyz[i], m->xyz[i + 1]);
        n += bond < 1.9;
        n_other += bond < 1.9 && fabs(now - bond) > 0.2;
    }
    if (10 * n_other <= n)
        return TSR_OK;
    return tsr_fail(err, TSR_E_DATA,
                    "'%s': of %d bonds of '%s' %d have another length: the "
                    "atoms differ, or are in another order",
                    trajectory, n, m->path, n_other);
}

/* Reads model k of `n`, which are spread evenly over the frames. */
static tsr_status read_file(tsr_md_frames *from, const tsr_map_models *m, int k,
                            double (*xyz)[3], tsr_err *err)
{
    const double(*all)[3];
    TSR_TRY(tsr_md_frames_read(from, (int)m->draw[k] - 1, &all, err));
    for (int i = 0; i < m->atoms->n_atom; i++)
        tsr_vec3_copy(xyz[i], all[m->atoms->atom[i].in_file]);
    return TSR_OK;
}

static tsr_status open_trajectory(const char *path, int most, tsr_log *log,
                                  tsr_map_models *out, tsr_md_frames **from,
                                  tsr_err *err)
{
    tsr_pool *pool = &out->atoms->pool;
    TSR_TRY(tsr_md_frames_open(path, out->path, out->atoms->n_in_file, log,
                               from, err));
    const int n = tsr_md_frames_n(*from);
    out->n = n < most ? n : most;
    tsr_pool_array(pool, out->xyz, out->atoms->n_atom);
    tsr_pool_array(pool, out->draw, out->n);
    TSR_TRY(tsr_pool_check(pool, err));
    for (int k = 0; k < out->n; k++)
        out->draw[k] = 1 + tsr_even_index(n, out->n, k);
    TSR_TRY(read_file(*from, out, 0, out->xyz, err));
    return check_order(out, path, err);
}

/* ---- all sources ---- */

static tsr_status open_models(const char *path, const char *trajectory,
                              int most, tsr_log *log, tsr_map_models *out,
                              tsr_err *err)
{
    struct stat info;
    const int is_run = stat(path, &info) == 0 && S_ISDIR(info.st_mode);
    if (is_run && trajectory != NULL)
        return tsr_fail(err, TSR_E_USAGE,
                        "'%s' is a run with its own trajectories; --trajectory "
                        "needs a structure file",
                        path);
    if (!is_run)
        TSR_TRY(
            tsr_atoms_read_models(path, &out->atoms, &out->n, &out->xyz, err));
    if (!is_run && trajectory == NULL)
        return TSR_OK;
    struct tsr_model_frames *f = out->frames = calloc(1, sizeof *f);
    TSR_TRY(tsr_allocated(f, err));
    pthread_mutex_init(&f->lock, NULL);
    if (!is_run)
        return open_trajectory(trajectory, most, log, out, &f->file, err);
    TSR_TRY(open_run(&f->run, path, log, err));
    return list_frames(&f->run, most, out, err);
}

tsr_status tsr_map_models_open(const char *path, const char *trajectory,
                               int most, tsr_log *log, tsr_map_models *out,
                               tsr_err *err)
{
    *out = (tsr_map_models){.path = path};
    TSR_TRY(open_models(path, trajectory, most, log, out, err));
    tsr_atoms *atoms = out->atoms;
    tsr_pool_array(&atoms->pool, out->z, atoms->n_atom);
    TSR_TRY(tsr_pool_check(&atoms->pool, err));
    for (int i = 0; i < atoms->n_atom; i++)
        out->z[i] = (unsigned char)atoms->atom[i].z;
    return TSR_OK;
}

tsr_status tsr_map_models_frame(const tsr_map_models *models, int k,
                                double (*xyz)[3], tsr_err *err)
{
    const tsr_map_models *m = models;
    const size_t n_atom = (size_t)m->atoms->n_atom;
    struct tsr_model_frames *f = m->frames;
    if (f == NULL) {
        memcpy(xyz, m->xyz + (size_t)k * n_atom, n_atom * sizeof *xyz);
        return TSR_OK;
    }
    pthread_mutex_lock(&f->lock);
    const tsr_status status =
        f->run.frames != NULL ? read_drawn(&f->run, f->run.order[k], xyz, err)
                              : read_file(f->file, m, k, xyz, err);
    pthread_mutex_unlock(&f->lock);
    return status;
}

tsr_status tsr_map_models_load(tsr_map_models *models, tsr_err *err)
{
    const size_t n_atom = (size_t)models->atoms->n_atom;
    double(*xyz)[3];
    if (models->frames == NULL)
        return TSR_OK;
    tsr_pool_array(&models->atoms->pool, xyz, (size_t)models->n * n_atom);
    TSR_TRY(tsr_pool_check(&models->atoms->pool, err));
    for (int k = 0; k < models->n; k++)
        TSR_TRY(tsr_map_models_frame(models, k, xyz + (size_t)k * n_atom, err));
    models->xyz = xyz;
    return TSR_OK;
}

tsr_status tsr_map_models_list(const tsr_map_models *models,
                               tsr_model_atoms *out, tsr_err *err)
{
    tsr_atoms *atoms = models->atoms;
    *out = (tsr_model_atoms){.n_atom = atoms->n_atom};
    tsr_pool_array(&atoms->pool, out->atom, atoms->n_atom);
    TSR_TRY(tsr_allocated(out->atom, err));
    for (int i = 0; i < atoms->n_atom; i++) {
        const tsr_file_atom *from = &atoms->atom[i];
        const tsr_file_residue *r = &atoms->residue[from->residue];
        const int is_polymer = r->kind <= TSR_MOLECULE_NUCLEOTIDE;
        tsr_model_atom *to = &out->atom[i];
        *to = (tsr_model_atom){
            .chain = r->chain[1] == '\0' ? r->chain[0] : '\0',
            .number = r->number,
            .insertion = r->insertion != '\0' ? r->insertion : ' ',
            .at = is_polymer ? from->residue : -1,
            .guest_kind = is_polymer ? TSR_GUEST_NONE : TSR_GUEST_LIGAND};
        snprintf(to->name, sizeof to->name, "%.4s", from->name);
        snprintf(to->residue, sizeof to->residue, "%.3s", r->name);
        snprintf(to->element, sizeof to->element, "%.2s",
                 tsr_atom_symbol(from->z));
        snprintf(to->chain_id, sizeof to->chain_id, "%s", r->chain);
    }
    return TSR_OK;
}

void tsr_map_models_clear(tsr_map_models *models)
{
    struct tsr_model_frames *f = models->frames;
    if (f != NULL) {
        tsr_pool_clear(&f->run.pool);
        tsr_all_atoms_free(f->run.all);
        tsr_structure_free(f->run.input);
        tsr_frames_free(f->run.frames);
        tsr_past_run_clear(&f->run.run);
        tsr_md_frames_free(f->file);
        pthread_mutex_destroy(&f->lock);
        free(f);
    }
    tsr_atoms_free(models->atoms);
    *models = (tsr_map_models){0};
}
