#include "model/contact_train.h"
#include "model/mixture_train.h"
#include "model/prior_sample.h"
#include "model/prior_table.h"
#include "model/residue_atoms.h"
#include "model/side_fit.h"
#include "model/structure_fold.h"
#include "model/torsion_fit.h"

#include <gsl/gsl_math.h>
#include <math.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
    N_TASK = TSR_N_RAMA + TSR_N_AMINO,
    LEAST_RESIDUE = 30, /* of a class, of a type */
};

/* What a structure gives, or all of them. Samples are owned by the list that
 * starts at the context, which a failed fold can free. */
typedef struct {
    long used, skipped; /* residues, for the heading */
    tsr_prior_sample *sample;
    tsr_contact_sum contact;
    tsr_status status; /* of adding */
} prior_sum;

typedef struct sample_link {
    struct sample_link *next;
    tsr_prior_sample *sample;
} sample_link;

typedef struct {
    pthread_mutex_t mutex;
    sample_link *first; /* under the mutex */
} sample_list;

static tsr_prior_sample *new_sample(sample_list *list)
{
    sample_link *link = malloc(sizeof *link);
    if (link == NULL)
        return NULL;
    link->sample = tsr_prior_sample_new();
    pthread_mutex_lock(&list->mutex);
    link->next = list->first;
    list->first = link;
    pthread_mutex_unlock(&list->mutex);
    return link->sample;
}

static void free_samples(sample_list *list)
{
    while (list->first != NULL) {
        sample_link *next = list->first->next;
        tsr_prior_sample_free(list->first->sample);
        free(list->first);
        list->first = next;
    }
}

static tsr_status visit(const tsr_structure *structure, const void *context,
                        void *part, tsr_err *err)
{
    sample_list *const *list = context;
    prior_sum *sum = part;
    for (int r = 0; r < structure->n_residue; r++) {
        tsr_residue_atoms atoms;
        if (tsr_residue_atoms_find(structure, &structure->residue[r], &atoms) !=
                0 ||
            atoms.n_missing > 0)
            sum->skipped++;
        else
            sum->used++;
    }
    sum->sample = new_sample(*list);
    if (sum->sample == NULL)
        return tsr_fail(err, TSR_E_NOMEM, "no memory for the residues of '%s'",
                        structure->path);
    tsr_status s = tsr_prior_sample_visit(sum->sample, structure, err);
    return s == TSR_OK ? tsr_contact_visit(structure, &sum->contact, err) : s;
}

static void add(const void *context, void *total, const void *part)
{
    (void)context;
    prior_sum *to = total;
    const prior_sum *from = part;
    to->used += from->used;
    to->skipped += from->skipped;
    tsr_contact_add(&to->contact, &from->contact);
    tsr_status s = tsr_prior_sample_add(to->sample, from->sample, NULL);
    if (s != TSR_OK)
        to->status = s;
}

static tsr_mixture_task task_of(const tsr_sample *sample, const char *name,
                                const tsr_mixture_type *type, void *mixture)
{
    return (tsr_mixture_task){.name = name,
                              .type = type,
                              .n = sample->n,
                              .x = sample->x,
                              .file = sample->file,
                              .mixture = mixture};
}

static tsr_status check_count(long n, const char *what, const char *name,
                              tsr_err *err)
{
    return n >= LEAST_RESIDUE
               ? TSR_OK
               : tsr_fail(err, TSR_E_DATA,
                          "%ld %s of %s in the training structures, %d are "
                          "needed; give more of them",
                          n, what, name, LEAST_RESIDUE);
}

/* Of all classes and types; task [N_TASK] and *n_task out. */
static tsr_status list_tasks(const tsr_prior_sample *sample,
                             tsr_prior_table *table, tsr_mixture_task *task,
                             int *n_task, tsr_err *err)
{
    tsr_status s = TSR_OK;
    *n_task = 0;
    for (int c = 0; c < TSR_N_RAMA && s == TSR_OK; c++) {
        const char *name = tsr_rama_name[c];
        task[(*n_task)++] = task_of(&sample->torsion[c], name,
                                    &tsr_mixture_torsion, &table->torsion[c]);
        s = check_count(sample->torsion[c].n, "residues with both torsions",
                        name, err);
    }
    for (int a = 0; a < TSR_N_AMINO && s == TSR_OK; a++) {
        const char *name = tsr_amino_table[a].three;
        s = check_count(sample->angle[a].n, "bond angles", name, err);
        if (s != TSR_OK || !tsr_amino_has_side_chain((tsr_amino)a))
            continue;
        s = check_count(sample->side[a].n, "complete side chains", name, err);
        task[(*n_task)++] =
            task_of(&sample->side[a], name, &tsr_mixture_side, &table->side[a]);
    }
    return s;
}

static tsr_status take_angles(const tsr_prior_sample *sample,
                              tsr_prior_table *table, tsr_err *err)
{
    for (int a = 0; a < TSR_N_AMINO; a++) {
        tsr_status s =
            tsr_angle_gaussian_of(&sample->angle[a], &table->angle[a], err);
        if (s != TSR_OK)
            return s;
        if (!(table->angle[a].sd > 0.0))
            return tsr_fail(err, TSR_E_DATA,
                            "all bond angles N-CA-C of %s are the same; give "
                            "other structures",
                            tsr_amino_table[a].three);
    }
    return TSR_OK;
}

/* One line a mixture: what it says of structures that it did not see, beside
 * the density with as few parts as can be and, of torsions, the uniform one. */
static void write_tasks(FILE *out, const tsr_prior_sample *sample, int n_task,
                        const tsr_mixture_task *task)
{
    fprintf(out,
            "torsions left out: %ld of D residues, %ld of strained ones\n"
            "mean log density (nat) of residues held out, every sixth "
            "structure,\nunder mixtures that did not see them: residues held "
            "out, parts, log density;\nwith %d parts (torsions) or %d "
            "(side chains); uniform torsions have %.4f\n",
            sample->n_mirrored, sample->n_strained, tsr_mixture_torsion.least,
            tsr_mixture_side.least, -log(4.0 * M_PI * M_PI));
    for (int i = 0; i < n_task; i++)
        fprintf(out, "  %-9s %6ld %2d %8.4f %8.4f\n", task[i].name,
                task[i].n_held_out, task[i].n_part,
                task[i].held_out[task[i].n_part],
                task[i].held_out[task[i].type->least]);
}

static tsr_status take_source(const prior_sum *sum, int n_path,
                              const char *const *path, const int n_rare[2],
                              int n_task, const tsr_mixture_task *task,
                              tsr_prior_table *table, tsr_err *err)
{
    char *files = tsr_structure_source(n_path, path, sum->used, sum->skipped);
    size_t size;
    FILE *out = files != NULL ? open_memstream(&table->source, &size) : NULL;
    int bad = out == NULL;
    if (!bad) {
        write_tasks(out, sum->sample, n_task, task);
        fprintf(out,
                "contact pairs seen less than %d times (filled from the "
                "types): one-body %d of 210, two-body %d of 231\n%s",
                TSR_CONTACT_LEAST, n_rare[0], n_rare[1], files);
        bad = fclose(out) != 0;
    }
    free(files);
    return bad ? tsr_fail(err, TSR_E_NOMEM, "no memory to train priors")
               : TSR_OK;
}

static tsr_status take_all(const prior_sum *sum, int n_path,
                           const char *const *path, int n_thread, tsr_log *log,
                           tsr_prior_table *table, tsr_err *err)
{
    int n_rare[2], n_task = 0;
    tsr_mixture_task task[N_TASK];
    tsr_status s = list_tasks(sum->sample, table, task, &n_task, err);
    if (s == TSR_OK)
        s = tsr_contact_take(&sum->contact, table, n_rare, err);
    if (s == TSR_OK)
        s = take_angles(sum->sample, table, err);
    if (s == TSR_OK)
        s = tsr_mixture_train(n_task, task, n_thread, log, err);
    if (s == TSR_OK)
        s = take_source(sum, n_path, path, n_rare, n_task, task, table, err);
    return s;
}

tsr_status tsr_prior_table_train(int n_path, const char *const *path,
                                 int n_thread, tsr_log *log,
                                 tsr_prior_table **out, tsr_err *err)
{
    *out = NULL;
    sample_list samples = {.mutex = PTHREAD_MUTEX_INITIALIZER};
    sample_list *context = &samples;
    const tsr_structure_fold_type fold = {.part_size = sizeof(prior_sum),
                                          .visit = visit,
                                          .add = add,
                                          .context = &context};
    prior_sum *sum = calloc(1, sizeof *sum);
    tsr_prior_table *table = calloc(1, sizeof *table);
    tsr_status s = TSR_OK;
    if (sum != NULL)
        sum->sample = new_sample(&samples);
    if (sum == NULL || table == NULL || sum->sample == NULL)
        s = tsr_fail(err, TSR_E_NOMEM, "no memory to train priors");
    else
        s = tsr_structure_fold(&fold, n_path, path, n_thread, sum, log, err);
    if (s == TSR_OK && sum->status != TSR_OK)
        s = tsr_fail(err, sum->status, "no memory to train priors");
    if (s == TSR_OK && log != NULL)
        tsr_info(log,
                 "%d structures: %ld complete residues, %ld with atoms "
                 "missing (their complete bodies count)",
                 n_path, sum->used, sum->skipped);
    if (s == TSR_OK)
        s = take_all(sum, n_path, path, n_thread, log, table, err);
    if (s == TSR_OK) {
        *out = table;
        table = NULL;
    }
    tsr_prior_table_free(table);
    free(sum);
    free_samples(&samples);
    pthread_mutex_destroy(&samples.mutex);
    return s;
}
