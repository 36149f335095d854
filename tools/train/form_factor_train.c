/* Plain averages over the occurrences of a type (DESIGN 3): of the amplitude of
 * its atoms in each component, and of their products, which give the excesses.
 *
 * Averaged with three components are contrast, displaced solvent and hydration,
 * with the contrast, solute less displaced solvent, in place of the solute: the
 * contrast is then the one of a table of one component trained on the same
 * structures, and the solute what folds to it. */
#include "train/form_factor_atoms.h"
#include "train/form_factor_target.h"
#include "train/train.h"

#include "core/vec3.h"

#include <math.h>
#include <stdlib.h>

/* What every visit shares: the table that is to be filled and the amplitude of
 * every atom on its grid, [TSR_N_AMINO][TSR_MAX_RESIDUE_ATOM][n_comp][n_q]. */
typedef struct {
    const tsr_form_factor_table *table;
    double *atom;
} training;

/* Sums, as one array of doubles (counts stay exact below 2^53): residues used
 * and left out, then for each type bodies, their square radii, atoms, radii of
 * atoms, exposures and their squares; number and exposure by neighbours;
 * amplitudes; products. */
enum { USED, SKIPPED, N_HEAD };
enum { COUNT, RG2, ATOMS, RADIUS, EXPOSED, EXPOSED2, N_TYPE_HEAD };

static size_t type_length(const tsr_form_factor_table *table)
{
    return N_TYPE_HEAD + 2 * TSR_EXPOSURE_N_BIN +
           (size_t)(table->n_comp + table->n_pair) * (size_t)table->n_q;
}

static size_t sum_length(const tsr_form_factor_table *table)
{
    return N_HEAD + (size_t)table->n_type * type_length(table);
}

static double *type_of(const tsr_form_factor_table *table, double *sum, int t)
{
    return sum + N_HEAD + (size_t)t * type_length(table);
}

/* In the sums of a type. */
static double *bins_of(double *sum)
{
    return sum + N_TYPE_HEAD;
}

static double *amplitude_of(const tsr_form_factor_table *table, double *sum,
                            int comp)
{
    return bins_of(sum) + 2 * TSR_EXPOSURE_N_BIN + comp * table->n_q;
}

static double *product_of(const tsr_form_factor_table *table, double *sum,
                          int pair)
{
    return amplitude_of(table, sum, table->n_comp + pair);
}

static const double *atom_of(const training *tr, int amino, int atom, int comp)
{
    int i = amino * TSR_MAX_RESIDUE_ATOM + atom;
    return tr->atom + (i * tr->table->n_comp + comp) * tr->table->n_q;
}

static double sinc(double x)
{
    return x < 1e-4 ? 1.0 - x * x / 6.0 : sin(x) / x;
}

/* Products of two atoms, or, where they are the same, of an atom with itself;
 * share [2] are those exposed. sinc [n_q] of their distance. */
static void visit_pair(const training *tr, int amino, int i, int j,
                       const double share[2], const double *sinc_r, double *sum)
{
    const tsr_form_factor_table *table = tr->table;
    for (int a = 0, pair = 0; a < table->n_comp; a++)
        for (int b = a; b < table->n_comp; b++, pair++) {
            const double *ai = atom_of(tr, amino, i, a);
            const double *aj = atom_of(tr, amino, j, a);
            const double *bi = atom_of(tr, amino, i, b);
            const double *bj = atom_of(tr, amino, j, b);
            double ij = (a == TSR_HYDRATION ? share[0] : 1.0) *
                        (b == TSR_HYDRATION ? share[1] : 1.0);
            double ji = (a == TSR_HYDRATION ? share[1] : 1.0) *
                        (b == TSR_HYDRATION ? share[0] : 1.0);
            double *to = product_of(table, sum, pair);
            for (int k = 0; k < table->n_q; k++)
                to[k] += i == j ? ij * ai[k] * bj[k]
                                : (ij * ai[k] * bj[k] + ji * aj[k] * bi[k]) *
                                      sinc_r[k];
        }
}

/* One body; share [TSR_MAX_RESIDUE_ATOM] by number in the table of amino
 * acids, sinc_r [n_q] is room. */
static void visit_body(const training *tr, const tsr_residue_atoms *atoms,
                       int body, const double *share, double neighbours,
                       double *sinc_r, double *sum)
{
    const tsr_form_factor_table *table = tr->table;
    const tsr_amino_info *info = &tsr_amino_table[atoms->amino];
    int index[TSR_MAX_RESIDUE_ATOM], amino = (int)atoms->amino;
    int n = tsr_body_atoms(table->model, atoms->amino, body, index);
    double centre[3], mass = 0.0, moment = 0.0, exposed = 0.0;
    if (tsr_body_centre(table->model, atoms, body, centre) != 0)
        return;
    for (int i = 0; i < n; i++) {
        int ai = index[i];
        double r = tsr_vec3_distance(atoms->xyz[ai], centre);
        double m = tsr_element_mass(info->atom[ai].z);
        mass += m;
        moment += m * r * r;
        sum[RADIUS] +=
            tsr_atom_radius(info->atom[ai].z, info->atom[ai].n_hydrogen);
        exposed += share[ai];
        for (int a = 0; a < table->n_comp; a++) {
            double by = a == TSR_HYDRATION ? share[ai] : 1.0;
            double *to = amplitude_of(table, sum, a);
            const double *f = atom_of(tr, amino, ai, a);
            for (int k = 0; k < table->n_q; k++)
                to[k] += by * f[k] * sinc(k * table->dq_inv_ang * r);
        }
        for (int j = 0; j <= i; j++) {
            int aj = index[j];
            double d = tsr_vec3_distance(atoms->xyz[ai], atoms->xyz[aj]);
            for (int k = 0; k < table->n_q; k++)
                sinc_r[k] = sinc(k * table->dq_inv_ang * d);
            visit_pair(tr, amino, ai, aj,
                       (const double[2]){share[ai], share[aj]}, sinc_r, sum);
        }
    }
    sum[COUNT] += 1.0;
    sum[RG2] += moment / mass;
    sum[ATOMS] += n;
    sum[EXPOSED] += exposed;
    sum[EXPOSED2] += exposed * exposed;
    double *bin = tsr_exposure_bin(bins_of(sum), neighbours);
    bin[0] += 1.0;
    bin[1] += exposed;
}

/* Neighbours of every body of the complete residues, in their order. */
static void count_neighbours(const tsr_form_factor_table *table,
                             const tsr_structure *structure, double (*xyz)[3],
                             double *count)
{
    int n = 0;
    for (int r = 0; r < structure->n_residue; r++) {
        tsr_residue_atoms a;
        int type[2];
        if (!tsr_target_complete(structure, r, &a))
            continue;
        int n_body = tsr_body_types(table->model, a.amino, type);
        for (int b = 0; b < n_body; b++)
            tsr_body_centre(table->model, &a, b, xyz[n++]);
    }
    tsr_exposure_count(&table->exposure, n, (const double(*)[3])xyz, count);
}

/* share, by atom, and neighbours, by body, are those of the structure. */
static void visit_residues(const training *tr, const tsr_structure *structure,
                           const double *share, const double *neighbours,
                           double *sinc_r, double *sum)
{
    for (int r = 0; r < structure->n_residue; r++) {
        tsr_residue_atoms a;
        int type[2];
        if (!tsr_target_complete(structure, r, &a)) {
            sum[SKIPPED] += 1.0;
            continue;
        }
        sum[USED] += 1.0;
        int n = tsr_body_types(tr->table->model, a.amino, type);
        for (int b = 0; b < n; b++)
            visit_body(tr, &a, b, share, *neighbours++, sinc_r,
                       type_of(tr->table, sum, type[b]));
        share += tsr_amino_table[a.amino].n_atom;
    }
}

static tsr_status visit(const tsr_structure *structure, const void *context,
                        void *part, tsr_err *err)
{
    const training *tr = context;
    size_t n_body = 2 * (size_t)structure->n_residue + 1;
    double *share = calloc((size_t)structure->n_atom + 1, sizeof *share);
    double(*xyz)[3] = malloc(n_body * sizeof *xyz);
    double *neighbours = calloc(n_body, sizeof *neighbours);
    double *sinc_r = malloc((size_t)tr->table->n_q * sizeof *sinc_r);
    tsr_status s = TSR_OK;
    if (share == NULL || xyz == NULL || neighbours == NULL || sinc_r == NULL)
        s = tsr_fail(err, TSR_E_NOMEM, "no memory for '%s'", structure->path);
    if (s == TSR_OK && tr->table->n_comp > 1) {
        s = tsr_target_shares(structure, share, err);
        count_neighbours(tr->table, structure, xyz, neighbours);
    }
    if (s == TSR_OK)
        visit_residues(tr, structure, share, neighbours, sinc_r, part);
    free(share);
    free(xyz);
    free(neighbours);
    free(sinc_r);
    return s;
}

static void add(const void *context, void *total, const void *part)
{
    const training *tr = context;
    double *to = total;
    const double *from = part;
    size_t n = sum_length(tr->table);
    for (size_t i = 0; i < n; i++)
        to[i] += from[i];
}

static tsr_status training_new(training *tr, tsr_err *err)
{
    const tsr_form_factor_table *table = tr->table;
    size_t n_q = (size_t)table->n_q, n = (size_t)table->n_comp * n_q;
    tr->atom = calloc(TSR_N_AMINO * TSR_MAX_RESIDUE_ATOM * n, sizeof *tr->atom);
    if (tr->atom == NULL)
        return tsr_fail(err, TSR_E_NOMEM, "no memory to train form factors");
    for (size_t a = 0; a < TSR_N_AMINO; a++)
        for (size_t i = 0; i < (size_t)tsr_amino_table[a].n_atom; i++) {
            const tsr_amino_atom *atom = &tsr_amino_table[a].atom[i];
            double *to = tr->atom + (a * TSR_MAX_RESIDUE_ATOM + i) * n;
            int z = atom->z, h = atom->n_hydrogen;
            for (size_t k = 0; k < n_q; k++) {
                double q = (double)k * table->dq_inv_ang;
                to[k] = tsr_atom_contrast_amplitude(z, h, q);
                if (table->n_comp == 1)
                    continue;
                to[n_q + k] = tsr_atom_displaced_amplitude(z, h, q);
                to[2 * n_q + k] = tsr_component_water(q);
            }
        }
    return TSR_OK;
}

/* Amplitudes and excesses of one type from sums; hydration is that of one
 * exposed atom. */
static void take_means(tsr_form_factor_table *table, int t, double *sum)
{
    double by[3] = {1.0 / sum[COUNT], 0.0, 0.0};
    int n_q = table->n_q, n = table->n_type * n_q;
    for (int i = 0; i < 2; i++)
        by[i + 1] = sum[EXPOSED + i] > 0.0 ? 1.0 / sum[EXPOSED + i] : 0.0;
    for (int k = 0; k < n_q; k++) {
        double mean[TSR_N_COMP];
        double *f = table->amplitude + t * n_q + k;
        double *e = table->excess + t * n_q + k;
        for (int a = 0; a < table->n_comp; a++)
            f[a * n] = mean[a] =
                amplitude_of(table, sum, a)[k] * by[a == TSR_HYDRATION];
        for (int a = 0, pair = 0; a < table->n_comp; a++)
            for (int b = a; b < table->n_comp; b++, pair++)
                e[pair * n] =
                    product_of(table, sum, pair)[k] *
                        by[(a == TSR_HYDRATION) + (b == TSR_HYDRATION)] -
                    mean[a] * mean[b];
        if (table->n_comp == 1)
            continue;
        /* From the contrast to the solute: v = c + d. */
        f[0] += f[n];
        e[0] += 2.0 * e[n] + e[3 * n];
        e[n] += e[3 * n];
        e[2 * n] += e[4 * n];
    }
}

static tsr_status take_type(tsr_form_factor_table *table, int t, double *sum,
                            tsr_err *err)
{
    tsr_status s = TSR_OK;
    if (sum[COUNT] == 0.0)
        return tsr_fail(err, TSR_E_DATA,
                        "no complete %s in the training structures; give more "
                        "of them",
                        tsr_body_type_name(table->model, t));
    if (table->n_comp > 1)
        s = tsr_exposure_fit(bins_of(sum), &table->exposure.type[t], err);
    if (s != TSR_OK)
        return s;
    table->count[t] = (long)sum[COUNT];
    table->rg2[t] = sum[RG2] / sum[COUNT];
    table->atoms[t] = sum[ATOMS] / sum[COUNT];
    table->radius[t] = sum[RADIUS] / sum[ATOMS];
    take_means(table, t, sum);
    return TSR_OK;
}

static tsr_status take_source(tsr_form_factor_table *table, int n_path,
                              const char *const *path, const double *sum,
                              tsr_log *log, tsr_err *err)
{
    table->source =
        tsr_structure_source(n_path, path, (long)sum[USED], (long)sum[SKIPPED]);
    if (table->source == NULL)
        return tsr_fail(err, TSR_E_NOMEM, "no memory to train form factors");
    if (log != NULL)
        tsr_info(log,
                 "%d structures: %.0f residues used, %.0f left out "
                 "(atoms missing)",
                 n_path, sum[USED], sum[SKIPPED]);
    return TSR_OK;
}

tsr_status tsr_form_factor_train(tsr_form_factor_table *table, int n_path,
                                 const char *const *path, int n_thread,
                                 tsr_log *log, tsr_err *err)
{
    training tr = {.table = table};
    if (table->n_q < 3 || !(table->dq_inv_ang > 0.0))
        return tsr_fail(err, TSR_E_USAGE,
                        "a q grid of %d points, step %g: at least 3 and above "
                        "0 are needed",
                        table->n_q, table->dq_inv_ang);
    size_t length = sum_length(table);
    tsr_structure_fold_type fold = {.part_size = length * sizeof(double),
                                    .visit = visit,
                                    .add = add,
                                    .context = &tr};
    double *sum = calloc(length, sizeof *sum);
    tsr_status s = sum == NULL ? tsr_fail(err, TSR_E_NOMEM,
                                          "no memory to train form factors")
                               : training_new(&tr, err);
    if (s == TSR_OK)
        s = tsr_structure_fold(&fold, n_path, path, n_thread, sum, log, err);
    for (int t = 0; t < table->n_type && s == TSR_OK; t++)
        s = take_type(table, t, type_of(table, sum, t), err);
    if (s == TSR_OK)
        s = take_source(table, n_path, path, sum, log, err);
    free(sum);
    free(tr.atom);
    return s;
}

void tsr_form_factor_unfold(const tsr_form_factor_table *folded,
                            tsr_form_factor_table *table)
{
    size_t n = (size_t)table->n_type * (size_t)table->n_q;
    double *f = table->amplitude, *e = table->excess;
    for (size_t i = 0; i < n; i++) {
        f[i] = folded->amplitude[i] + f[n + i];
        e[i] = folded->excess[i] + 2.0 * e[n + i] - e[3 * n + i];
    }
}
