/* Trains the prior: collects samples of torsions, side chains, bond angles and
 * contacts from structures, residue by residue, and fits densities to all of
 * them. */
#include "core/pool.h"
#include "core/text.h"
#include "core/vec3.h"
#include "molecule/prior_table.h"
#include "train/train.h"

#include <gsl/gsl_sort.h>
#include <gsl/gsl_statistics_double.h>
#include <math.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

static const double longest_bond = 2.0; /* longest C-N bond, Angstrom */
static const double most_twist =
    TSR_PI / 6;                             /* from planar, of a peptide bond */
static const double least_angle = 1.658063; /* N-CA-C: 95 degrees */
static const double most_angle = 2.216568;  /* 127 */
static const double farthest = 4.0, mad_to_sd = 1.4826;

enum { N, CA, C, O, CB }; /* indices into the table of amino acids */

static int reserve(tsr_pool *pool, tsr_sample *s, int dim, long more)
{
    if (s->n + more <= s->n_reserved)
        return 1;
    const size_t n_reserved = (size_t)(s->n + more + s->n_reserved);
    double *x =
        tsr_pool_resize(pool, s->x, n_reserved * (size_t)dim, sizeof *x);
    int *file = tsr_pool_resize(pool, s->file, n_reserved, sizeof *file);
    if (x != NULL)
        s->x = x;
    if (file != NULL)
        s->file = file;
    if (x == NULL || file == NULL)
        return 0;
    s->dim = dim;
    s->n_reserved = (long)n_reserved;
    return 1;
}

static void append_observation(tsr_prior_sample *all, tsr_sample *s, int dim,
                               const double *x)
{
    if (!reserve(&all->pool, s, dim, 1))
        return;
    memcpy(s->x + s->n * dim, x, (size_t)dim * sizeof *x);
    s->file[s->n++] = all->n_file;
}

static void add_side_chain(const tsr_residue_atoms *atoms,
                           tsr_prior_sample *sample)
{
    double centre[3], local[3], frame[3][3];
    const double *n = atoms->xyz[N], *ca = atoms->xyz[CA], *c = atoms->xyz[C];
    if (n == NULL || ca == NULL || c == NULL ||
        tsr_side_chain_centre(atoms, centre) != 0)
        return;
    tsr_frame(frame, n, ca, c);
    tsr_frame_to_local(local, frame, ca, centre);
    append_observation(sample, &sample->side[atoms->amino], 3, local);
}

/* A residue of a structure; is_found 0: none, or not an amino acid. */
typedef struct {
    const tsr_residue_record *record;
    tsr_residue_atoms atoms;
    int is_found;
} residue_entry;

static residue_entry entry_of(const tsr_structure *s, int r)
{
    residue_entry p = {0};
    if (r >= 0 && r < s->n_residue) {
        p.record = &s->residue[r];
        p.is_found = tsr_residue_atoms_find(s, p.record, &p.atoms) == 0;
    }
    return p;
}

static int is_joined(const residue_entry *a, const residue_entry *b)
{
    const double *c = a->atoms.xyz[C], *n = b->atoms.xyz[N];
    return a->is_found && b->is_found && c != NULL && n != NULL &&
           a->atoms.xyz[CA] != NULL && b->atoms.xyz[CA] != NULL &&
           strcmp(a->record->chain, b->record->chain) == 0 &&
           tsr_vec3_distance2(c, n) < longest_bond * longest_bond;
}

static double omega_of(const residue_entry *a, const residue_entry *b)
{
    return tsr_vec3_torsion(a->atoms.xyz[CA], a->atoms.xyz[C], b->atoms.xyz[N],
                            b->atoms.xyz[CA]);
}

static int is_twisted(double omega_rad)
{
    double w = fabs(omega_rad);
    return fmin(w, TSR_PI - w) > most_twist;
}

static int is_mirrored(const tsr_residue_atoms *atoms)
{
    const double *n = atoms->xyz[N], *ca = atoms->xyz[CA], *c = atoms->xyz[C];
    if (atoms->amino == TSR_GLY || atoms->xyz[CB] == NULL)
        return 0;
    double frame[3][3], cb[3];
    tsr_frame(frame, n, ca, c);
    tsr_frame_to_local(cb, frame, ca, atoms->xyz[CB]);
    return cb[2] > 0.0;
}

static void add_torsions(const residue_entry *before, const residue_entry *at,
                         const residue_entry *after, tsr_prior_sample *sample)
{
    const double *const *x = at->atoms.xyz;
    if (!at->is_found || x[N] == NULL || x[CA] == NULL || x[C] == NULL ||
        x[O] == NULL || !is_joined(before, at) || !is_joined(at, after))
        return;
    double omega = omega_of(before, at);
    double angle = tsr_vec3_angle(x[N], x[CA], x[C]);
    if (is_mirrored(&at->atoms)) {
        sample->n_mirrored++;
        return;
    }
    if (is_twisted(omega) || is_twisted(omega_of(at, after)) ||
        angle < least_angle || angle > most_angle) {
        sample->n_strained++;
        return;
    }
    tsr_amino amino = at->atoms.amino;
    tsr_rama_class class =
        tsr_rama_class_of(amino, after->atoms.amino == TSR_PRO, omega);
    double torsion[2] = {
        tsr_vec3_torsion(before->atoms.xyz[C], x[N], x[CA], x[C]),
        tsr_vec3_torsion(x[N], x[CA], x[C], after->atoms.xyz[N])};
    append_observation(sample, &sample->torsion[class], 2, torsion);
    append_observation(sample, &sample->angle[amino], 1, &angle);
}

tsr_status tsr_prior_sample_visit(tsr_prior_sample *sample,
                                  const tsr_structure *structure, tsr_err *err)
{
    residue_entry before = {0}, at = entry_of(structure, 0), after;
    for (int r = 0; r < structure->n_residue; r++) {
        after = entry_of(structure, r + 1);
        if (at.is_found)
            add_side_chain(&at.atoms, sample);
        add_torsions(&before, &at, &after, sample);
        before = at;
        at = after;
    }
    sample->n_file++;
    return tsr_pool_check(&sample->pool, err);
}

static void append_sample(tsr_prior_sample *all, tsr_sample *to,
                          const tsr_sample *from)
{
    if (from->n == 0 || !reserve(&all->pool, to, from->dim, from->n))
        return;
    memcpy(to->x + to->n * to->dim, from->x,
           (size_t)(from->n * from->dim) * sizeof *from->x);
    for (long i = 0; i < from->n; i++)
        to->file[to->n++] = from->file[i] + all->n_file;
}

void tsr_prior_sample_add(tsr_prior_sample *to, const tsr_prior_sample *from)
{
    for (int c = 0; c < TSR_N_RAMA; c++)
        append_sample(to, &to->torsion[c], &from->torsion[c]);
    for (int a = 0; a < TSR_N_AMINO; a++) {
        append_sample(to, &to->side[a], &from->side[a]);
        append_sample(to, &to->angle[a], &from->angle[a]);
    }
    to->n_file += from->n_file;
    to->n_mirrored += from->n_mirrored;
    to->n_strained += from->n_strained;
}

tsr_status tsr_angle_gaussian_of(const tsr_sample *sample,
                                 tsr_angle_gaussian *out, tsr_err *err)
{
    size_t n = (size_t)sample->n, m = 0;
    double *x = malloc((2 * n + 1) * sizeof *x), *scratch = x + n;
    TSR_TRY(tsr_allocated(x, err));
    memcpy(x, sample->x, n * sizeof *x);
    gsl_sort(x, 1, n);
    double median = gsl_stats_median_from_sorted_data(x, 1, n);
    double sd = mad_to_sd * gsl_stats_mad0(x, 1, n, scratch);
    for (size_t i = 0; i < n; i++)
        if (fabs(x[i] - median) <= farthest * sd)
            scratch[m++] = x[i];
    out->count = (long)m;
    out->mean = gsl_stats_mean(scratch, 1, m);
    out->sd = m > 1 ? gsl_stats_sd_m(scratch, 1, m, out->mean) : 0.0;
    free(x);
    return TSR_OK;
}

/* ---- training ----
 *
 * One fold over the structures collects the samples and counts the contacts of
 * bodies. Mixtures, bond angles and contact distances are then fitted to the
 * sums. Contact distances are counted in bins, and sums of integers do not
 * depend on the order of the structures. */

/* ---- contacts ---- */

enum {
    N_BIN = 500, /* bins of 0.02 Angstrom, up to `reach` */
    N_PAIR = TSR_MAX_TYPE * (TSR_MAX_TYPE + 1) / 2,
    MIN_APART = 3,  /* smallest separation of two residues of a chain */
    MIN_PAIRS = 500 /* fewest contacts for a quantile of the pair */
};
static const double reach = 10.0; /* largest distance counted, Angstrom */
static const double quantile = 0.01;
static const tsr_body_model models[2] = {TSR_BODIES_ONE, TSR_BODIES_TWO};

typedef struct {
    uint64_t bin[2][N_PAIR][N_BIN]; /* of one-body and of two-body models */
} contact_sum;

typedef struct {
    double x[3];
    int type, chain, position;
} body_position;

/* Collects the complete bodies of a structure; returns their number. A chain
 * ends where the chain id changes, so a file that uses an id twice has two
 * chains. */
static int collect_bodies(const tsr_structure *s, tsr_body_model model,
                          body_position *body)
{
    int n = 0, chain = 0, position = 0;
    for (int r = 0; r < s->n_residue; r++, position++) {
        if (r > 0 &&
            strcmp(s->residue[r].chain, s->residue[r - 1].chain) != 0) {
            chain++;
            position = 0;
        }
        tsr_residue_atoms atoms;
        if (tsr_residue_atoms_find(s, &s->residue[r], &atoms) != 0)
            continue;
        int type[2];
        int n_body = tsr_body_types(model, atoms.amino, type);
        for (int b = 0; b < n_body; b++) {
            if (tsr_body_centre(model, &atoms, b, body[n].x) != 0)
                continue;
            body[n].type = type[b];
            body[n].chain = chain;
            body[n].position = position;
            n++;
        }
    }
    return n;
}

/* Counts the distances of all pairs of bodies, O(n^2). */
static void bin_contacts(const body_position *body, int n,
                         uint64_t bin[N_PAIR][N_BIN])
{
    for (int i = 0; i < n; i++)
        for (int j = 0; j < i; j++) {
            double d2 = tsr_vec3_distance2(body[i].x, body[j].x);
            if (d2 >= reach * reach ||
                (body[i].chain == body[j].chain &&
                 body[i].position - body[j].position < MIN_APART))
                continue;
            int k = (int)(sqrt(d2) * (N_BIN / reach));
            if (k >= N_BIN)
                k = N_BIN - 1;
            bin[tsr_pair_index(body[i].type, body[j].type)][k]++;
        }
}

static tsr_status count_contacts(const tsr_structure *structure,
                                 contact_sum *sum, tsr_err *err)
{
    body_position *body =
        malloc((2 * (size_t)structure->n_residue + 1) * sizeof *body);
    TSR_TRY(tsr_allocated(body, err));
    for (int m = 0; m < 2; m++)
        bin_contacts(body, collect_bodies(structure, models[m], body),
                     sum->bin[m]);
    free(body);
    return TSR_OK;
}

static void add_contacts(contact_sum *to, const contact_sum *from)
{
    for (int m = 0; m < 2; m++)
        for (int p = 0; p < N_PAIR; p++)
            for (int k = 0; k < N_BIN; k++)
                to->bin[m][p][k] += from->bin[m][p][k];
}

static uint64_t bin_total(const uint64_t bin[N_BIN])
{
    uint64_t total = 0;
    for (int k = 0; k < N_BIN; k++)
        total += bin[k];
    return total;
}

/* The quantile of the distances of a histogram, interpolated within a bin. */
static double quantile_of(const uint64_t bin[N_BIN])
{
    double target = quantile * (double)bin_total(bin), below = 0.0;
    for (int k = 0; k < N_BIN; k++) {
        double here = (double)bin[k];
        if (here > 0.0 && below + here >= target)
            return (k + (target - below) / here) * (reach / N_BIN);
        below += here;
    }
    return reach;
}

/* Sets the contact distances of one body model. A pair of types with fewer than
 * MIN_PAIRS contacts gets the mean of the quantiles of both types; *n_rare
 * counts such pairs. */
static tsr_status set_contacts(const contact_sum *sum, int m,
                               tsr_prior_table *table, int *n_rare,
                               tsr_err *err)
{
    int n = tsr_body_n_type(models[m]);
    double own[TSR_MAX_TYPE];
    for (int t = 0; t < n; t++) {
        uint64_t all[N_BIN] = {0};
        for (int u = 0; u < n; u++)
            for (int k = 0; k < N_BIN; k++)
                all[k] += sum->bin[m][tsr_pair_index(t, u)][k];
        own[t] = quantile_of(all);
        if (bin_total(all) < MIN_PAIRS)
            return tsr_fail(err, TSR_E_DATA,
                            "%s has fewer than %d contacts in the training "
                            "structures; give more of them",
                            tsr_body_type_name(models[m], t), MIN_PAIRS);
    }
    *n_rare = 0;
    for (int t = 0; t < n; t++)
        for (int u = 0; u <= t; u++) {
            const uint64_t *bin = sum->bin[m][tsr_pair_index(t, u)];
            const int is_rare = bin_total(bin) < MIN_PAIRS;
            *n_rare += is_rare;
            table->contact[models[m]][t][u] = table->contact[models[m]][u][t] =
                is_rare ? 0.5 * (own[t] + own[u]) : quantile_of(bin);
        }
    return TSR_OK;
}

/* ---- the table ---- */

enum {
    N_TASK = TSR_N_RAMA + TSR_N_AMINO,
    LEAST_RESIDUE = 30, /* fewest observations of a class or an amino acid */
};

/* The sums over one structure or over all structures. */
typedef struct {
    long used, skipped; /* residues, for the heading */
    tsr_prior_sample sample;
    contact_sum contact;
} prior_sum;

static tsr_status collect_structure(const tsr_structure *structure,
                                    const void *context, void *part,
                                    tsr_err *err)
{
    prior_sum *sum = part;
    (void)context;
    for (int r = 0; r < structure->n_residue; r++) {
        tsr_residue_atoms atoms;
        if (tsr_residue_atoms_find(structure, &structure->residue[r], &atoms) !=
                0 ||
            atoms.n_missing > 0)
            sum->skipped++;
        else
            sum->used++;
    }
    TSR_TRY(tsr_prior_sample_visit(&sum->sample, structure, err));
    return count_contacts(structure, &sum->contact, err);
}

static void add_sums(const void *context, void *total, const void *part)
{
    (void)context;
    prior_sum *to = total;
    const prior_sum *from = part;
    to->used += from->used;
    to->skipped += from->skipped;
    add_contacts(&to->contact, &from->contact);
    tsr_prior_sample_add(&to->sample, &from->sample);
}

static void prior_sum_clear(void *part)
{
    prior_sum *sum = part;
    tsr_pool_clear(&sum->sample.pool);
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

/* Lists the mixtures to train, those of all classes and amino acids: task
 * [N_TASK] and *n_task out. */
static tsr_status list_tasks(const tsr_prior_sample *sample,
                             tsr_prior_table *table, tsr_mixture_task *task,
                             int *n_task, tsr_err *err)
{
    tsr_status s = TSR_OK;
    *n_task = 0;
    for (int c = 0; c < TSR_N_RAMA && s == TSR_OK; c++) {
        const tsr_sample *from = &sample->torsion[c];
        task[(*n_task)++] = (tsr_mixture_task){.name = tsr_rama_name[c],
                                               .type = &tsr_mixture_torsion,
                                               .sample = from,
                                               .mixture = &table->torsion[c]};
        s = check_count(from->n, "residues with both torsions",
                        tsr_rama_name[c], err);
    }
    for (int a = 0; a < TSR_N_AMINO && s == TSR_OK; a++) {
        const char *name = tsr_amino_table[a].three;
        s = check_count(sample->angle[a].n, "bond angles", name, err);
        if (s != TSR_OK || !tsr_amino_has_side_chain((tsr_amino)a))
            continue;
        s = check_count(sample->side[a].n, "complete side chains", name, err);
        task[(*n_task)++] = (tsr_mixture_task){.name = name,
                                               .type = &tsr_mixture_side,
                                               .sample = &sample->side[a],
                                               .mixture = &table->side[a]};
    }
    return s;
}

static tsr_status set_angles(const tsr_prior_sample *sample,
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

/* Writes a line for each mixture: the log density of held-out residues,
 * compared with the mixture of fewest parts. */
static void describe_tasks(tsr_words *out, const tsr_prior_sample *sample,
                           int n_task, const tsr_mixture_task *task)
{
    tsr_words_add(
        out,
        "torsions left out: %ld of D residues, %ld of strained ones\n"
        "mean log density (nat) of residues held out, every sixth "
        "structure,\nunder mixtures that did not see them: residues held "
        "out, parts, log density;\nwith %d parts (torsions) or %d "
        "(side chains); uniform torsions have %.4f\n",
        sample->n_mirrored, sample->n_strained, tsr_mixture_torsion.least,
        tsr_mixture_side.least, -log(4.0 * TSR_PI * TSR_PI));
    for (int i = 0; i < n_task; i++)
        tsr_words_add(out, "  %-9s %6ld %2d %8.4f %8.4f\n", task[i].name,
                      task[i].n_held_out, task[i].n_part,
                      task[i].held_out[task[i].n_part],
                      task[i].held_out[task[i].type->least]);
}

static tsr_status set_source(const prior_sum *sum, int n_path,
                             const char *const *path, const int n_rare[2],
                             int n_task, const tsr_mixture_task *task,
                             tsr_prior_table *table, tsr_err *err)
{
    char *files = tsr_structure_source(n_path, path, sum->used, sum->skipped);
    tsr_words words;
    tsr_words_begin(&words);
    describe_tasks(&words, &sum->sample, n_task, task);
    tsr_words_add(&words,
                  "contact pairs seen less than %d times (filled from the "
                  "types): one-body %d of 210, two-body %d of 231\n%s",
                  MIN_PAIRS, n_rare[0], n_rare[1], files != NULL ? files : "");
    table->source = tsr_words_end(&words);
    const tsr_status s = tsr_allocated(files, err);
    free(files);
    return s == TSR_OK ? tsr_allocated(table->source, err) : s;
}

static tsr_status fit_table(const prior_sum *sum, int n_path,
                            const char *const *path, int n_thread, tsr_log *log,
                            tsr_prior_table *table, tsr_err *err)
{
    int n_rare[2], n_task = 0;
    tsr_mixture_task task[N_TASK];
    TSR_TRY(list_tasks(&sum->sample, table, task, &n_task, err));
    for (int m = 0; m < 2; m++)
        TSR_TRY(set_contacts(&sum->contact, m, table, &n_rare[m], err));
    TSR_TRY(set_angles(&sum->sample, table, err));
    TSR_TRY(tsr_mixture_train(n_task, task, n_thread, log, err));
    return set_source(sum, n_path, path, n_rare, n_task, task, table, err);
}

tsr_status tsr_prior_table_train(int n_path, const char *const *path,
                                 int n_thread, tsr_log *log,
                                 tsr_prior_table **out, tsr_err *err)
{
    *out = NULL;
    const tsr_structure_fold_type fold = {.part_size = sizeof(prior_sum),
                                          .visit = collect_structure,
                                          .add = add_sums,
                                          .clear = prior_sum_clear};
    prior_sum *sum = calloc(1, sizeof *sum);
    tsr_prior_table *table = calloc(1, sizeof *table);
    tsr_status s = sum == NULL || table == NULL ? tsr_no_memory(err) : TSR_OK;
    TSR_THEN(s,
             tsr_structure_fold(&fold, n_path, path, n_thread, sum, log, err));
    TSR_THEN(s, tsr_pool_check(&sum->sample.pool, err));
    if (s == TSR_OK)
        tsr_info(log,
                 "%d structures: %ld complete residues, %ld with atoms "
                 "missing (their complete bodies count)",
                 n_path, sum->used, sum->skipped);
    TSR_THEN(s, fit_table(sum, n_path, path, n_thread, log, table, err));
    if (s == TSR_OK) {
        *out = table;
        table = NULL;
    }
    tsr_prior_table_free(table);
    if (sum != NULL)
        prior_sum_clear(sum);
    free(sum);
    return s;
}
