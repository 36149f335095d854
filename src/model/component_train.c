#include "model/component_train.h"

#include "core/vec3.h"
#include "model/component_target.h"
#include "model/residue_atoms.h"
#include "model/structure_fold.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* Amplitudes of atoms that are averaged, and their products. */
enum { CONTRAST, DISPLACED, WATER, N_AMPLITUDE };
enum { CD, CW, DD, DW, WW, N_PRODUCT };
static const int factor[N_PRODUCT][2] = {{CONTRAST, DISPLACED},
                                         {CONTRAST, WATER},
                                         {DISPLACED, DISPLACED},
                                         {DISPLACED, WATER},
                                         {WATER, WATER}};

/* What every visit shares. */
typedef struct {
    tsr_body_model model;
    tsr_exposure_model exposure;
    int n_type, n_q;
    double dq;
    double *atom; /* [TSR_N_AMINO][TSR_MAX_RESIDUE_ATOM][N_AMPLITUDE][n_q] */
} training;

/* Sums of one type: bodies, atoms, radii of atoms, squared; number and exposure
 * by neighbours; amplitudes; products. */
enum { COUNT, ATOMS, RADIUS, N_HEAD };

static size_t type_length(const training *tr)
{
    return N_HEAD + 2 * TSR_EXPOSURE_N_BIN +
           (N_AMPLITUDE + N_PRODUCT) * (size_t)tr->n_q;
}

static double *bins_of(double *sum)
{
    return sum + N_HEAD;
}

static double *amplitude_of(const training *tr, double *sum, int a)
{
    return sum + N_HEAD + 2 * TSR_EXPOSURE_N_BIN + (size_t)a * (size_t)tr->n_q;
}

static double *product_of(const training *tr, double *sum, int p)
{
    return amplitude_of(tr, sum, N_AMPLITUDE + p);
}

static const double *atom_of(const training *tr, int amino, int atom, int a)
{
    size_t i = (size_t)amino * TSR_MAX_RESIDUE_ATOM + (size_t)atom;
    return tr->atom + (i * N_AMPLITUDE + (size_t)a) * (size_t)tr->n_q;
}

static double sinc(double x)
{
    return x < 1e-4 ? 1.0 - x * x / 6.0 : sin(x) / x;
}

/* One body, its atoms' shares by number in the table of amino acids. */
static void visit_body(const training *tr, const tsr_residue_atoms *atoms,
                       int body, const double *share, double neighbours,
                       double *sum)
{
    const tsr_amino_info *info = &tsr_amino_table[atoms->amino];
    int index[TSR_MAX_RESIDUE_ATOM], amino = (int)atoms->amino;
    int n = tsr_body_atoms(tr->model, atoms->amino, body, index);
    double centre[3], exposed = 0.0;
    tsr_body_centre(tr->model, atoms, body, centre);
    for (int i = 0; i < n; i++) {
        int ai = index[i];
        double r = tsr_vec3_distance(atoms->xyz[ai], centre);
        sum[ATOMS] += 1.0;
        sum[RADIUS] +=
            tsr_atom_radius(info->atom[ai].z, info->atom[ai].n_hydrogen);
        exposed += share[ai];
        for (int k = 0; k < tr->n_q; k++) {
            double s = sinc(k * tr->dq * r);
            for (int a = 0; a < N_AMPLITUDE; a++)
                amplitude_of(tr, sum, a)[k] += (a == WATER ? share[ai] : 1.0) *
                                               atom_of(tr, amino, ai, a)[k] * s;
        }
        for (int j = 0; j < n; j++) {
            int aj = index[j];
            double d = tsr_vec3_distance(atoms->xyz[ai], atoms->xyz[aj]);
            for (int k = 0; k < tr->n_q; k++) {
                double s = sinc(k * tr->dq * d);
                for (int p = 0; p < N_PRODUCT; p++) {
                    int x = factor[p][0], y = factor[p][1];
                    product_of(tr, sum, p)[k] +=
                        (x == WATER ? share[ai] : 1.0) *
                        (y == WATER ? share[aj] : 1.0) *
                        atom_of(tr, amino, ai, x)[k] *
                        atom_of(tr, amino, aj, y)[k] * s;
                }
            }
        }
    }
    sum[COUNT] += 1.0;
    double *bin = tsr_exposure_bin(bins_of(sum), neighbours);
    bin[0] += 1.0;
    bin[1] += exposed;
}

static int complete(const tsr_structure *structure, int r, tsr_residue_atoms *a)
{
    return tsr_residue_atoms_find(structure, &structure->residue[r], a) == 0 &&
           a->n_missing == 0;
}

/* Neighbours of every body of the complete residues, in their order. */
static int count_neighbours(const training *tr, const tsr_structure *structure,
                            double (*xyz)[3], double *count)
{
    int n = 0;
    for (int r = 0; r < structure->n_residue; r++) {
        tsr_residue_atoms a;
        int type[2];
        if (!complete(structure, r, &a))
            continue;
        int n_body = tsr_body_types(tr->model, a.amino, type);
        for (int b = 0; b < n_body; b++)
            tsr_body_centre(tr->model, &a, b, xyz[n++]);
    }
    tsr_exposure_count(&tr->exposure, n, (const double(*)[3])xyz, count);
    return n;
}

static tsr_status visit(const tsr_structure *structure, const void *context,
                        void *part, tsr_err *err)
{
    const training *tr = context;
    size_t n_body = 2 * (size_t)structure->n_residue + 1;
    double *share = malloc(((size_t)structure->n_atom + 1) * sizeof *share);
    double(*xyz)[3] = malloc(n_body * sizeof *xyz);
    double *count = malloc(n_body * sizeof *count);
    tsr_status s =
        share == NULL || xyz == NULL || count == NULL
            ? tsr_fail(err, TSR_E_NOMEM, "no memory for '%s'", structure->path)
            : tsr_component_shares(structure, share, err);
    if (s == TSR_OK)
        count_neighbours(tr, structure, xyz, count);
    int atom = 0, body = 0;
    for (int r = 0; r < structure->n_residue && s == TSR_OK; r++) {
        tsr_residue_atoms a;
        int type[2];
        if (!complete(structure, r, &a))
            continue;
        int n = tsr_body_types(tr->model, a.amino, type);
        for (int b = 0; b < n; b++)
            visit_body(tr, &a, b, share + atom, count[body++],
                       (double *)part + (size_t)type[b] * type_length(tr));
        atom += tsr_amino_table[a.amino].n_atom;
    }
    free(share);
    free(xyz);
    free(count);
    return s;
}

static void add(const void *context, void *total, const void *part)
{
    const training *tr = context;
    double *to = total;
    const double *from = part;
    size_t n = (size_t)tr->n_type * type_length(tr);
    for (size_t i = 0; i < n; i++)
        to[i] += from[i];
}

static tsr_status training_new(training *tr, tsr_err *err)
{
    size_t n_q = (size_t)tr->n_q;
    tr->atom = calloc(TSR_N_AMINO * TSR_MAX_RESIDUE_ATOM * N_AMPLITUDE * n_q,
                      sizeof *tr->atom);
    if (tr->atom == NULL)
        return tsr_fail(err, TSR_E_NOMEM, "no memory to train components");
    double *to = tr->atom;
    for (int a = 0; a < TSR_N_AMINO; a++)
        for (int i = 0; i < TSR_MAX_RESIDUE_ATOM;
             i++, to += N_AMPLITUDE * n_q) {
            const tsr_amino_atom *atom = &tsr_amino_table[a].atom[i];
            for (size_t k = 0; k < n_q && i < tsr_amino_table[a].n_atom; k++) {
                double q = (double)k * tr->dq;
                to[k] =
                    tsr_atom_contrast_amplitude(atom->z, atom->n_hydrogen, q);
                to[n_q + k] =
                    tsr_atom_displaced_amplitude(atom->z, atom->n_hydrogen, q);
                to[2 * n_q + k] = tsr_component_water(q);
            }
        }
    return TSR_OK;
}

/* One type: means from sums. Hydration goes by the estimated exposures, so that
 * their sum carries as much as the atoms' do. */
static tsr_status take_type(const training *tr, double *sum, int t,
                            const tsr_form_factor_table *contrast,
                            tsr_component_table *table, tsr_err *err)
{
    size_t n_q = (size_t)tr->n_q, n = (size_t)tr->n_type * n_q;
    size_t at = (size_t)t * n_q;
    double exposed[2], count = sum[COUNT];
    if (count == 0.0)
        return tsr_fail(err, TSR_E_DATA,
                        "no complete %s in the training structures; give more "
                        "of them",
                        tsr_body_type_name(tr->model, t));
    tsr_exposure_type *curve = &table->exposure.type[t];
    tsr_status s = tsr_exposure_fit(bins_of(sum), curve, err);
    if (s != TSR_OK)
        return s;
    tsr_exposure_bin_sums(bins_of(sum), curve, exposed);
    table->atoms[t] = sum[ATOMS] / count;
    table->radius[t] = sum[RADIUS] / sum[ATOMS];
    double one = exposed[0] > 0.0 ? 1.0 / exposed[0] : 0.0;
    double two = exposed[1] > 0.0 ? 1.0 / exposed[1] : 0.0;
    for (size_t k = 0; k < n_q; k++) {
        double c = contrast->amplitude[at + k];
        double mean_c = amplitude_of(tr, sum, CONTRAST)[k] / count;
        double d = amplitude_of(tr, sum, DISPLACED)[k] / count;
        double w = amplitude_of(tr, sum, WATER)[k] * one;
        double cc = contrast->self[at + k] - c * c;
        double cd = product_of(tr, sum, CD)[k] / count - mean_c * d;
        double dd = product_of(tr, sum, DD)[k] / count - d * d;
        double cw = product_of(tr, sum, CW)[k] * one - mean_c * w;
        double dw = product_of(tr, sum, DW)[k] * one - d * w;
        double ww = product_of(tr, sum, WW)[k] * two - w * w;
        double *f = table->amplitude + at + k, *e = table->excess + at + k;
        f[TSR_SOLUTE * n] = c + d;
        f[TSR_DISPLACED * n] = d;
        f[TSR_HYDRATION * n] = w;
        e[0 * n] = cc + 2.0 * cd + dd;
        e[1 * n] = cd + dd;
        e[2 * n] = cw + dw;
        e[3 * n] = dd;
        e[4 * n] = dw;
        e[5 * n] = ww;
    }
    return TSR_OK;
}

tsr_status tsr_component_train(int n_path, const char *const *path,
                               const tsr_form_factor_table *contrast,
                               int n_thread, tsr_log *log,
                               tsr_component_table **out, tsr_err *err)
{
    *out = NULL;
    training tr = {.model = contrast->model,
                   .exposure = tsr_exposure_model_of(contrast->model),
                   .n_type = contrast->n_type,
                   .n_q = contrast->n_q,
                   .dq = contrast->dq_inv_ang};
    size_t length = (size_t)tr.n_type * type_length(&tr);
    tsr_structure_fold_type fold = {.part_size = length * sizeof(double),
                                    .visit = visit,
                                    .add = add,
                                    .context = &tr};
    tsr_component_table *table = tsr_component_new(tr.model, tr.n_q, tr.dq);
    double *sum = calloc(length, sizeof *sum);
    tsr_status s = TSR_OK;
    if (table == NULL || sum == NULL)
        s = tsr_fail(err, TSR_E_NOMEM, "no memory to train components");
    else
        s = training_new(&tr, err);
    if (s == TSR_OK)
        s = tsr_structure_fold(&fold, n_path, path, n_thread, sum, log, err);
    for (int t = 0; t < tr.n_type && s == TSR_OK; t++)
        s = take_type(&tr, sum + (size_t)t * type_length(&tr), t, contrast,
                      table, err);
    if (s == TSR_OK) {
        *out = table;
        table = NULL;
    }
    tsr_component_free(table);
    free(sum);
    free(tr.atom);
    return s;
}
