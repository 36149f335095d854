/* Plain averages over the occurrences of a type (DESIGN 3). */
#include "model/form_factor.h"
#include "model/residue_atoms.h"
#include "model/structure_fold.h"

#include "core/vec3.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* What every visit shares: the grid and the amplitude of every atom on it. */
typedef struct {
    tsr_body_model model;
    int n_type, n_q;
    double dq;
    double *atom; /* [TSR_N_AMINO][TSR_MAX_RESIDUE_ATOM][n_q] */
} training;

/* Sums, as one array of doubles (counts stay exact below 2^53):
 * used, skipped; count [n_type]; rg2 [n_type]; F and P [n_type][n_q]. */
enum { USED, SKIPPED, N_HEAD };

static size_t sum_length(const training *tr)
{
    return N_HEAD + (size_t)tr->n_type * (2 + 2 * (size_t)tr->n_q);
}

static double *sum_count(const training *tr, double *sum)
{
    (void)tr;
    return sum + N_HEAD;
}

static double *sum_rg2(const training *tr, double *sum)
{
    return sum_count(tr, sum) + tr->n_type;
}

static double *sum_amplitude(const training *tr, double *sum)
{
    return sum_rg2(tr, sum) + tr->n_type;
}

static double *sum_self(const training *tr, double *sum)
{
    return sum_amplitude(tr, sum) + tr->n_type * tr->n_q;
}

static double sinc(double x)
{
    return x < 1e-4 ? 1.0 - x * x / 6.0 : sin(x) / x;
}

static const double *atom_amplitude(const training *tr, int amino, int atom)
{
    return tr->atom + ((size_t)amino * TSR_MAX_RESIDUE_ATOM + (size_t)atom) *
                          (size_t)tr->n_q;
}

static void visit_body(const training *tr, const tsr_residue_atoms *atoms,
                       int body, int type, double *sum)
{
    const tsr_amino_info *info = &tsr_amino_table[atoms->amino];
    int index[TSR_MAX_RESIDUE_ATOM];
    int n = tsr_body_atoms(tr->model, atoms->amino, body, index);
    double centre[3], mass = 0.0, moment = 0.0;
    if (tsr_body_centre(tr->model, atoms, body, centre) != 0)
        return;
    double *f = sum_amplitude(tr, sum) + type * tr->n_q;
    double *p = sum_self(tr, sum) + type * tr->n_q;
    for (int i = 0; i < n; i++) {
        const double *xi = atoms->xyz[index[i]];
        const double *ai = atom_amplitude(tr, (int)atoms->amino, index[i]);
        double r = tsr_vec3_distance(xi, centre);
        double m = tsr_element_mass(info->atom[index[i]].z);
        mass += m;
        moment += m * r * r;
        for (int k = 0; k < tr->n_q; k++) {
            f[k] += ai[k] * sinc(k * tr->dq * r);
            p[k] += ai[k] * ai[k];
        }
        for (int j = 0; j < i; j++) {
            const double *aj = atom_amplitude(tr, (int)atoms->amino, index[j]);
            double d = tsr_vec3_distance(xi, atoms->xyz[index[j]]);
            for (int k = 0; k < tr->n_q; k++)
                p[k] += 2.0 * ai[k] * aj[k] * sinc(k * tr->dq * d);
        }
    }
    sum_count(tr, sum)[type] += 1.0;
    sum_rg2(tr, sum)[type] += moment / mass;
}

static tsr_status visit(const tsr_structure *structure, const void *context,
                        void *part, tsr_err *err)
{
    const training *tr = context;
    double *sum = part;
    (void)err;
    for (int r = 0; r < structure->n_residue; r++) {
        tsr_residue_atoms atoms;
        if (tsr_residue_atoms_find(structure, &structure->residue[r], &atoms) !=
                0 ||
            atoms.n_missing > 0) {
            sum[SKIPPED] += 1.0;
            continue;
        }
        sum[USED] += 1.0;
        int type[2];
        int n_body = tsr_body_types(tr->model, atoms.amino, type);
        for (int b = 0; b < n_body; b++)
            visit_body(tr, &atoms, b, type[b], sum);
    }
    return TSR_OK;
}

static void add(const void *context, void *total, const void *part)
{
    double *to = total;
    const double *from = part;
    size_t n = sum_length(context);
    for (size_t i = 0; i < n; i++)
        to[i] += from[i];
}

static tsr_status training_new(training *tr, tsr_err *err)
{
    size_t n_q = (size_t)tr->n_q;
    tr->atom =
        calloc(TSR_N_AMINO * TSR_MAX_RESIDUE_ATOM * n_q, sizeof *tr->atom);
    if (tr->atom == NULL)
        return tsr_fail(err, TSR_E_NOMEM, "no memory to train form factors");
    for (int a = 0; a < TSR_N_AMINO; a++)
        for (int i = 0; i < tsr_amino_table[a].n_atom; i++) {
            const tsr_amino_atom *atom = &tsr_amino_table[a].atom[i];
            double *out =
                tr->atom + ((size_t)a * TSR_MAX_RESIDUE_ATOM + (size_t)i) * n_q;
            for (int k = 0; k < tr->n_q; k++)
                out[k] = tsr_atom_contrast_amplitude(atom->z, atom->n_hydrogen,
                                                     k * tr->dq);
        }
    return TSR_OK;
}

/* Means from sums. */
static tsr_status take_means(const training *tr, double *sum,
                             tsr_form_factor_table *table, tsr_err *err)
{
    for (int t = 0; t < tr->n_type; t++) {
        double n = sum_count(tr, sum)[t];
        if (n == 0.0)
            return tsr_fail(err, TSR_E_DATA,
                            "no complete %s in the training structures; give "
                            "more of them",
                            tsr_body_type_name(tr->model, t));
        table->count[t] = (long)n;
        table->rg2[t] = sum_rg2(tr, sum)[t] / n;
        for (int k = 0; k < tr->n_q; k++) {
            int at = t * tr->n_q + k;
            table->amplitude[at] = sum_amplitude(tr, sum)[at] / n;
            table->self[at] = sum_self(tr, sum)[at] / n;
        }
    }
    return TSR_OK;
}

tsr_status tsr_form_factor_train(int n_path, const char *const *path,
                                 tsr_body_model model, int n_q,
                                 double dq_inv_ang, int n_thread, tsr_log *log,
                                 tsr_form_factor_table **out, tsr_err *err)
{
    *out = NULL;
    training tr = {.model = model,
                   .n_type = tsr_body_n_type(model),
                   .n_q = n_q,
                   .dq = dq_inv_ang};
    if (n_q < 3 || !(dq_inv_ang > 0.0))
        return tsr_fail(err, TSR_E_USAGE,
                        "a q grid of %d points, step %g: at least 3 and above "
                        "0 are needed",
                        n_q, dq_inv_ang);
    tsr_structure_fold_type fold = {.part_size =
                                        sum_length(&tr) * sizeof(double),
                                    .visit = visit,
                                    .add = add,
                                    .context = &tr};
    tsr_form_factor_table *table = tsr_form_factor_new(model, n_q, dq_inv_ang);
    double *sum = calloc(sum_length(&tr), sizeof *sum);
    tsr_status s;
    if (table == NULL || sum == NULL)
        s = tsr_fail(err, TSR_E_NOMEM, "no memory to train form factors");
    else
        s = training_new(&tr, err);
    if (s == TSR_OK)
        s = tsr_structure_fold(&fold, n_path, path, n_thread, sum, log, err);
    if (s == TSR_OK)
        s = take_means(&tr, sum, table, err);
    if (s == TSR_OK) {
        table->source = tsr_structure_source(n_path, path, (long)sum[USED],
                                             (long)sum[SKIPPED]);
        if (table->source == NULL)
            s = tsr_fail(err, TSR_E_NOMEM, "no memory to train form factors");
    }
    if (s == TSR_OK) {
        if (log != NULL)
            tsr_info(log,
                     "%d structures: %.0f residues used, %.0f left out "
                     "(atoms missing)",
                     n_path, sum[USED], sum[SKIPPED]);
        *out = table;
        table = NULL;
    }
    tsr_form_factor_free(table);
    free(sum);
    free(tr.atom);
    return s;
}
