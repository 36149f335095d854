#include "model/prior_table.h"
#include "model/residue_atoms.h"
#include "model/structure_fold.h"

#include "core/vec3.h"

#include <math.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

enum {
    N_BIN = 500, /* of 0.02 Angstrom, below 10 */
    N_PAIR = TSR_MAX_TYPE * (TSR_MAX_TYPE + 1) / 2,
    MIN_APART = 3, /* residues */
    MIN_PAIRS = 500
};
static const double reach = 10.0; /* Angstrom */
static const double quantile = 0.01;

/* Sums over structures. Distances are binned: the sum is in integers, so the
 * quantile does not depend on the order. */
typedef struct {
    long used, skipped; /* residues, for the heading */
    long side_count[TSR_N_AMINO];
    double side_sum[TSR_N_AMINO][3];
    double side_square[TSR_N_AMINO][3][3];
    uint64_t bin[2][N_PAIR][N_BIN]; /* one-body, two-body */
} prior_sum;

static const tsr_body_model models[2] = {TSR_BODIES_ONE, TSR_BODIES_TWO};

static int pair_index(int t, int u)
{
    return t >= u ? t * (t + 1) / 2 + u : u * (u + 1) / 2 + t;
}

typedef struct {
    double x[3];
    int type, chain, position;
} placed_body;

static void visit_side_chain(const tsr_residue_atoms *atoms, prior_sum *sum)
{
    double centre[3], local[3], frame[3][3];
    const double *n = atoms->xyz[0], *ca = atoms->xyz[1], *c = atoms->xyz[2];
    if (n == NULL || ca == NULL || c == NULL ||
        tsr_side_chain_centre(atoms, centre) != 0)
        return;
    tsr_frame(frame, n, ca, c);
    tsr_frame_to_local(local, frame, ca, centre);
    int a = (int)atoms->amino;
    sum->side_count[a]++;
    for (int i = 0; i < 3; i++) {
        sum->side_sum[a][i] += local[i];
        for (int j = 0; j < 3; j++)
            sum->side_square[a][i][j] += local[i] * local[j];
    }
}

/* The complete bodies of a structure. Chains are told apart by order, so that
 * two that share an id in a poor file are still one after the other. */
static int place_bodies(const tsr_structure *s, tsr_body_model model,
                        placed_body *body)
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

/* All pairs: a few seconds for the whole training set. */
static void visit_contacts(const placed_body *body, int n,
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
            bin[pair_index(body[i].type, body[j].type)][k]++;
        }
}

static tsr_status visit(const tsr_structure *structure, const void *context,
                        void *part, tsr_err *err)
{
    (void)context;
    prior_sum *sum = part;
    for (int r = 0; r < structure->n_residue; r++) {
        tsr_residue_atoms atoms;
        if (tsr_residue_atoms_find(structure, &structure->residue[r], &atoms) !=
            0) {
            sum->skipped++;
            continue;
        }
        if (atoms.n_missing > 0)
            sum->skipped++;
        else
            sum->used++;
        visit_side_chain(&atoms, sum);
    }
    placed_body *body =
        malloc((2 * (size_t)structure->n_residue + 1) * sizeof *body);
    if (body == NULL)
        return tsr_fail(err, TSR_E_NOMEM, "no memory for the bodies of '%s'",
                        structure->path);
    for (int m = 0; m < 2; m++)
        visit_contacts(body, place_bodies(structure, models[m], body),
                       sum->bin[m]);
    free(body);
    return TSR_OK;
}

static void add(const void *context, void *total, const void *part)
{
    (void)context;
    prior_sum *to = total;
    const prior_sum *from = part;
    to->used += from->used;
    to->skipped += from->skipped;
    for (int a = 0; a < TSR_N_AMINO; a++) {
        to->side_count[a] += from->side_count[a];
        for (int i = 0; i < 3; i++) {
            to->side_sum[a][i] += from->side_sum[a][i];
            for (int j = 0; j < 3; j++)
                to->side_square[a][i][j] += from->side_square[a][i][j];
        }
    }
    for (int m = 0; m < 2; m++)
        for (int p = 0; p < N_PAIR; p++)
            for (int k = 0; k < N_BIN; k++)
                to->bin[m][p][k] += from->bin[m][p][k];
}

static tsr_status take_side_chains(const prior_sum *sum, tsr_prior_table *table,
                                   tsr_err *err)
{
    for (int a = 0; a < TSR_N_AMINO; a++) {
        long n = sum->side_count[a];
        table->count[a] = n;
        if (!tsr_amino_has_side_chain((tsr_amino)a))
            continue;
        if (n < 10)
            return tsr_fail(err, TSR_E_DATA,
                            "%ld complete side chains of %s in the training "
                            "structures, 10 are needed; give more of them",
                            n, tsr_amino_table[a].three);
        double *mean = table->side_mean[a];
        for (int i = 0; i < 3; i++)
            mean[i] = sum->side_sum[a][i] / (double)n;
        for (int i = 0; i < 3; i++)
            for (int j = 0; j < 3; j++)
                table->side_cov[a][i][j] = (sum->side_square[a][i][j] -
                                            (double)n * mean[i] * mean[j]) /
                                           (double)(n - 1);
    }
    return TSR_OK;
}

static uint64_t total_of(const uint64_t bin[N_BIN])
{
    uint64_t total = 0;
    for (int k = 0; k < N_BIN; k++)
        total += bin[k];
    return total;
}

/* Linear within a bin. */
static double quantile_of(const uint64_t bin[N_BIN])
{
    double target = quantile * (double)total_of(bin), below = 0.0;
    for (int k = 0; k < N_BIN; k++) {
        double here = (double)bin[k];
        if (here > 0.0 && below + here >= target)
            return (k + (target - below) / here) * (reach / N_BIN);
        below += here;
    }
    return reach;
}

/* Fills one table; returns how many pairs were too rare, -1 where a type has
 * too few partners altogether (*rare is the type). */
static int take_contacts(const prior_sum *sum, int m, tsr_prior_table *table,
                         int *rare)
{
    int n = tsr_body_n_type(models[m]), n_rare = 0;
    double own[TSR_MAX_TYPE];
    for (int t = 0; t < n; t++) {
        uint64_t all[N_BIN] = {0};
        for (int u = 0; u < n; u++)
            for (int k = 0; k < N_BIN; k++)
                all[k] += sum->bin[m][pair_index(t, u)][k];
        own[t] = quantile_of(all);
        if (total_of(all) < MIN_PAIRS) {
            *rare = t;
            return -1;
        }
    }
    for (int t = 0; t < n; t++)
        for (int u = 0; u <= t; u++) {
            const uint64_t *bin = sum->bin[m][pair_index(t, u)];
            double d = quantile_of(bin);
            if (total_of(bin) < MIN_PAIRS) {
                d = 0.5 * (own[t] + own[u]);
                n_rare++;
            }
            if (models[m] == TSR_BODIES_TWO)
                table->contact_two[t][u] = table->contact_two[u][t] = d;
            else
                table->contact_one[t][u] = table->contact_one[u][t] = d;
        }
    return n_rare;
}

static tsr_status take_source(const prior_sum *sum, int n_path,
                              const char *const *path, const int n_rare[2],
                              tsr_prior_table *table, tsr_err *err)
{
    char *files = tsr_structure_source(n_path, path, sum->used, sum->skipped);
    size_t size = files != NULL ? strlen(files) + 256 : 0;
    table->source = files != NULL ? malloc(size) : NULL;
    if (table->source != NULL)
        snprintf(table->source, size,
                 "contact pairs seen less than %d times (filled from the "
                 "types): one-body %d of 210, two-body %d of 231\n%s",
                 MIN_PAIRS, n_rare[0], n_rare[1], files);
    free(files);
    return table->source != NULL
               ? TSR_OK
               : tsr_fail(err, TSR_E_NOMEM, "no memory to train priors");
}

static tsr_status take_all(const prior_sum *sum, int n_path,
                           const char *const *path, tsr_prior_table *table,
                           tsr_err *err)
{
    int n_rare[2], rare = 0;
    tsr_status s = take_side_chains(sum, table, err);
    for (int m = 0; m < 2 && s == TSR_OK; m++) {
        n_rare[m] = take_contacts(sum, m, table, &rare);
        if (n_rare[m] < 0)
            s = tsr_fail(err, TSR_E_DATA,
                         "%s has fewer than %d contacts in the training "
                         "structures; give more of them",
                         tsr_body_type_name(models[m], rare), MIN_PAIRS);
    }
    return s == TSR_OK ? take_source(sum, n_path, path, n_rare, table, err) : s;
}

tsr_status tsr_prior_table_train(int n_path, const char *const *path,
                                 int n_thread, tsr_log *log,
                                 tsr_prior_table **out, tsr_err *err)
{
    *out = NULL;
    static const tsr_structure_fold_type fold = {
        .part_size = sizeof(prior_sum), .visit = visit, .add = add};
    prior_sum *sum = calloc(1, sizeof *sum);
    tsr_prior_table *table = calloc(1, sizeof *table);
    tsr_status s;
    if (sum == NULL || table == NULL)
        s = tsr_fail(err, TSR_E_NOMEM, "no memory to train priors");
    else
        s = tsr_structure_fold(&fold, n_path, path, n_thread, sum, log, err);
    if (s == TSR_OK)
        s = take_all(sum, n_path, path, table, err);
    if (s == TSR_OK) {
        if (log != NULL)
            tsr_info(log,
                     "%d structures: %ld complete residues, %ld with atoms "
                     "missing (their complete bodies count)",
                     n_path, sum->used, sum->skipped);
        *out = table;
        table = NULL;
    }
    tsr_prior_table_free(table);
    free(sum);
    return s;
}
