/* Three components on real structures: all-atom partial profiles and those of
 * bodies against plain sums written here, on the reference engine and on the
 * device; what training must conserve; the shipped tables on structures that
 * they were not trained on.
 *
 * Tolerances. Targets go through distance bins of 0.05 Angstrom: 1e-4 of a
 * partial profile at q = 1/Angstrom. Single precision engines promise 1e-5; a
 * partial profile with hydration cancels more, hence of I(0). */
#include "../engine_support.h"
#include "core/vec3.h"
#include "molecule/structure.h"
#include "scattering/form_factor.h"
#include "tests/coarse_partials.h"
#include "tests/test.h"
#include "train/train.h"
#include <unistd.h>

#define FOLDER "../shared/data/structures"
static const char small[] = FOLDER "/1orc.pdb.gz";
static const char *const table_path[2] = {"data/components_one_body.dat",
                                          "data/components_two_body.dat"};
static const tsr_body_model models[2] = {TSR_BODIES_ONE, TSR_BODIES_TWO};
enum { N_Q = 26, N_PAIR = TSR_N_COMP_PAIR };
static const double dq = 0.02;

static void needs_structures(void)
{
    if (access(small, R_OK) != 0) {
        print_message("skipped: no %s\n", small);
        skip();
    }
}

static double sinc(double x)
{
    return x > 0.0 ? sin(x) / x : 1.0;
}

/* Points of any kind: amplitude [n][TSR_N_COMP] at one q. */
static void plain_sum(int n, const double (*xyz)[3],
                      const double (*amplitude)[TSR_N_COMP], double q,
                      double partial[N_PAIR])
{
    memset(partial, 0, N_PAIR * sizeof *partial);
    for (int i = 0; i < n; i++)
        for (int j = 0; j < n; j++) {
            double s = sinc(q * tsr_vec3_distance(xyz[i], xyz[j]));
            int p = 0;
            for (int a = 0; a < TSR_N_COMP; a++)
                for (int b = a; b < TSR_N_COMP; b++)
                    partial[p++] += amplitude[i][a] * amplitude[j][b] * s;
        }
}

typedef struct {
    tsr_structure *structure;
    int n_atom, n_body;
    double (*atom)[3], (*body)[3];
    int *z, *n_hydrogen, *type;
    int *owner;    /* [n_atom] the body */
    double *share; /* [n_atom] */
} molecule;

static void molecule_new(molecule *m, const char *path, tsr_body_model model)
{
    MAKE(tsr_structure, m->structure, tsr_structure_read, path);
    const tsr_structure *s = m->structure;
    size_t n = (size_t)s->n_atom, n_res = 2 * (size_t)s->n_residue;
    m->n_atom = m->n_body = 0;
    m->atom = array(n, sizeof *m->atom);
    m->z = array(n, sizeof *m->z);
    m->n_hydrogen = array(n, sizeof *m->n_hydrogen);
    m->share = array(n, sizeof *m->share);
    m->owner = array(n, sizeof *m->owner);
    m->body = array(n_res, sizeof *m->body);
    m->type = array(n_res, sizeof *m->type);
    for (int r = 0; r < s->n_residue; r++) {
        tsr_residue_atoms a;
        int type[2];
        if (tsr_residue_atoms_find(s, &s->residue[r], &a) != 0 ||
            a.n_missing > 0)
            continue;
        for (int i = 0; i < tsr_amino_table[a.amino].n_atom; i++) {
            tsr_vec3_copy(m->atom[m->n_atom], a.xyz[i]);
            m->z[m->n_atom] = tsr_amino_table[a.amino].atom[i].z;
            m->owner[m->n_atom] =
                m->n_body +
                tsr_body_of_atom(model, a.amino,
                                 tsr_amino_table[a.amino].atom[i].name);
            m->n_hydrogen[m->n_atom++] =
                tsr_amino_table[a.amino].atom[i].n_hydrogen;
        }
        int n_body = tsr_body_types(model, a.amino, type);
        for (int b = 0; b < n_body; b++) {
            tsr_body_centre(model, &a, b, m->body[m->n_body]);
            m->type[m->n_body++] = type[b];
        }
    }
    OK(tsr_target_exposure(s, m->share, &err));
}

/* Atoms: f, rho0 V exp(-q^2 V^(2/3) / 4 pi), share times the contrast of a
 * water of 19.43 cubic Angstrom. */
static void atom_sum(const molecule *m, double q, double partial[N_PAIR])
{
    static const double volume[17] = {
        [1] = 5.15, [6] = 16.44, [7] = 2.49, [8] = 9.13, [16] = 19.86};
    const double four_pi = 4.0 * acos(-1.0);
    double(*f)[TSR_N_COMP] = array((size_t)m->n_atom, sizeof *f);
    double h = tsr_atom_form_factor(1, q), v = 9.13 + 2.0 * 5.15;
    double water = tsr_atom_form_factor(8, q) + 2.0 * h -
                   0.334 * v * exp(-q * q * pow(v, 2.0 / 3.0) / four_pi);
    for (int i = 0; i < m->n_atom; i++) {
        v = volume[m->z[i]] + 5.15 * m->n_hydrogen[i];
        f[i][0] = tsr_atom_form_factor(m->z[i], q) + m->n_hydrogen[i] * h;
        f[i][1] = 0.334 * v * exp(-q * q * pow(v, 2.0 / 3.0) / four_pi);
        f[i][2] = m->share[i] * water;
    }
    plain_sum(m->n_atom, (const double(*)[3])m->atom,
              (const double(*)[TSR_N_COMP])f, q, partial);
}

/* How much body j counts as a neighbour of i. */
static double near_by(const molecule *m, const tsr_exposure_model *x, int i,
                      int j)
{
    double r = tsr_vec3_distance(m->body[i], m->body[j]);
    if (i == j || r >= x->far_ang)
        return 0.0;
    return r < x->near_ang ? 1.0
                           : 0.5 + 0.5 * cos(acos(-1.0) * (r - x->near_ang) /
                                             (x->far_ang - x->near_ang));
}

/* Exposures of the bodies carried outside, counted here: from their atoms, or
 * from neighbours. */
static double *exposures(const molecule *m, const tsr_form_factor_table *t,
                         int by_atoms)
{
    const tsr_exposure_model *x = &t->exposure;
    double *e = array(3 * (size_t)m->n_body, sizeof *e);
    double *n = e + m->n_body, *own = n + m->n_body;
    for (int i = 0; i < m->n_body; i++) {
        for (int j = 0; j < m->n_body; j++)
            n[i] += near_by(m, x, i, j);
        const tsr_exposure_type *of = &x->type[m->type[i]];
        own[i] = of->largest / (1.0 + exp((n[i] - of->middle) / of->width));
        for (int a = 0; a < m->n_atom && by_atoms; a++) {
            own[i] = a == 0 ? 0.0 : own[i];
            own[i] += m->owner[a] == i ? m->share[a] : 0.0;
        }
    }
    for (int i = 0; i < m->n_body; i++) {
        e[i] += (1.0 + x->displacement) * own[i];
        for (int j = 0; j < m->n_body; j++)
            e[j] -= x->displacement * own[i] * near_by(m, x, i, j) / n[i];
    }
    return e;
}

/* Bodies with exposures [n_body]. */
static void body_sum(const molecule *m, const tsr_form_factor_table *t,
                     const double *exposure, int k, double partial[N_PAIR])
{
    size_t n_type = (size_t)t->n_type, row = (size_t)t->n_q;
    int at = k * (int)(dq / t->dq_inv_ang + 0.5);
    double(*f)[TSR_N_COMP] = array((size_t)m->n_body, sizeof *f);
    double self[N_PAIR] = {0};
    for (int i = 0; i < m->n_body; i++) {
        double e = exposure[i];
        size_t entry = (size_t)m->type[i] * row + (size_t)at;
        for (size_t a = 0; a < TSR_N_COMP; a++)
            f[i][a] = (a == TSR_HYDRATION ? e : 1.0) *
                      t->amplitude[a * n_type * row + entry];
        static const int wet[N_PAIR] = {0, 0, 1, 0, 1, 2};
        for (size_t p = 0; p < N_PAIR; p++)
            self[p] += pow(e, wet[p]) * t->excess[p * n_type * row + entry];
    }
    plain_sum(m->n_body, (const double(*)[3])m->body,
              (const double(*)[TSR_N_COMP])f, k * dq, partial);
    for (int p = 0; p < N_PAIR; p++)
        partial[p] += self[p];
}

static tsr_form_factor_table *shipped(int m)
{
    NEW(tsr_form_factor_table, table, tsr_form_factor_read, table_path[m]);
    return table;
}

/* The target of training, and the reference engine. */
static void against_plain_sums(int which)
{
    needs_structures();
    tsr_form_factor_table *table = shipped(which);
    molecule m;
    molecule_new(&m, small, models[which]);
    const tsr_target_grid grid = tsr_target_grid_of(table, N_Q, dq);
    const tsr_target_layout l = tsr_target_layout_of(&grid);
    size_t n = (size_t)table->n_type * N_Q;
    double *target = array(l.length, sizeof *target);
    double *amplitude = array(TSR_N_COMP * n, sizeof *amplitude);
    double *excess = array(N_PAIR * n, sizeof *excess);
    double binned[N_PAIR * N_Q], bodies[N_PAIR * N_Q], radius, sum = 0.0;
    OK(tsr_form_factor_resample(table, N_Q, dq, amplitude, excess, &err));
    OK(tsr_target_compute(&grid, m.structure, target, &err));
    tsr_target_partials(&grid, target, amplitude, excess, binned);
    coarse_partials(table, m.n_body, m.type, (const double(*)[3])m.body, NULL,
                    N_Q, dq, NULL, NULL, bodies, &radius);
    double *of_atoms = exposures(&m, table, 1);
    double *of_bodies = exposures(&m, table, 0);
    for (int k = 0; k < N_Q; k += 5) {
        double atoms[N_PAIR], exact[N_PAIR], estimate[N_PAIR];
        atom_sum(&m, k * dq, atoms);
        body_sum(&m, table, of_atoms, k, exact);
        body_sum(&m, table, of_bodies, k, estimate);
        for (int p = 0; p < N_PAIR; p++) {
            double a = target[l.atoms + (size_t)(p * N_Q + k)];
            double scale = target[l.atoms + (size_t)(p * N_Q)] / (1 + k);
            assert_true(fabs(a - atoms[p]) <
                        1e-4 * (fabs(atoms[p]) + fabs(scale)));
            assert_true(fabs(bodies[p * N_Q + k] - estimate[p]) <
                        1e-9 * (fabs(estimate[p]) + fabs(scale)));
            assert_true(fabs(binned[p * N_Q + k] - exact[p]) <
                        1e-4 * (fabs(exact[p]) + fabs(scale)));
        }
    }
    for (int i = 0; i < m.n_atom; i++)
        sum += tsr_atom_radius(m.z[i], m.n_hydrogen[i]) / m.n_atom;
    assert_true(fabs(target[l.radius] - sum) < 1e-12);
    /* by the types' means: backbones differ in their hydrogens */
    assert_true(fabs(radius / sum - 1.0) < 2e-3);
}

TEST(two_body)
{
    against_plain_sums(1);
}

TEST(one_body)
{
    against_plain_sums(0);
}

/* ---- engines ---- */

static tsr_status make(void *context, const tsr_engine_spec *spec,
                       tsr_engine **out, tsr_err *err)
{
    return tsr_engine_page_tile_new(spec, context, NULL, out, err);
}

/* The device's own variant; test_engine_components has them all. */
TEST(on_the_device)
{
    needs_structures();
    tsr_device *device = need_device();
    tsr_form_factor_table *table = shipped(1);
    molecule m;
    molecule_new(&m, small, TSR_BODIES_TWO);
    static double exact[N_PAIR * N_Q], got[N_PAIR * N_Q];
    double radius;
    const double(*xyz)[3] = (const double(*)[3])m.body;
    coarse_partials(table, m.n_body, m.type, xyz, NULL, N_Q, dq, NULL, NULL,
                    exact, &radius);
    coarse_partials(table, m.n_body, m.type, xyz, NULL, N_Q, dq, make, device,
                    got, &radius);
    for (int p = 0; p < N_PAIR; p++)
        for (int k = 0; k < N_Q; k++)
            assert_true(fabs(got[p * N_Q + k] - exact[p * N_Q + k]) <
                        1e-5 *
                            (fabs(exact[p * N_Q + k]) + 0.01 * exact[p * N_Q]));
}

/* ---- the shipped tables ---- */

/* At c1 = 1 without hydration they are the form factors of one component. */
TEST(folds_to_form_factors)
{
    static const char *const plain[2] = {"data/form_factors_one_body.dat",
                                         "data/form_factors_two_body.dat"};
    for (int i = 0; i < 2; i++) {
        tsr_form_factor_table *table = shipped(i);
        NEW(tsr_form_factor_table, folded, tsr_form_factor_fold, table);
        NEW(tsr_form_factor_table, own, tsr_form_factor_read, plain[i]);
        assert_int_equal(folded->model, own->model);
        assert_int_equal(folded->n_q, own->n_q);
        for (int j = 0; j < own->n_type * own->n_q; j++) { /* eight digits */
            assert_true(fabs(folded->amplitude[j] - own->amplitude[j]) < 3e-6);
            assert_true(fabs(folded->excess[j] - own->excess[j]) < 2e-3);
        }
    }
}

/* Bounds: a third above what was measured. */
TEST(shipped_are_accurate)
{
    needs_structures();
    static const char *const path[3] = {small, FOLDER "/1beb.pdb.gz",
                                        FOLDER "/1het.pdb.gz"};
    static const double bound[2][3][TSR_ERROR_N_BAND] = {
        {{0.0015, 0.02, 0.08, 0.10},
         {0.003, 0.03, 0.09, 0.10},
         {0.006, 0.08, 0.12, 0.10}},
        {{0.001, 0.01, 0.03, 0.04},
         {0.002, 0.02, 0.04, 0.04},
         {0.005, 0.04, 0.06, 0.05}}};
    for (int i = 0; i < 2; i++) {
        tsr_form_factor_table *table = shipped(i);
        const tsr_evaluation row[3] = {
            {table, 1, 0.97, 0.0}, {table, 1, 1.0, 1.0}, {table, 1, 1.03, 2.0}};
        tsr_error_summary summary[3];
        OK(tsr_form_factor_evaluate(3, path, 3, row, 0, NULL, summary, &err));
        for (int r = 0; r < 3; r++)
            for (int b = 0; b < TSR_ERROR_N_BAND; b++) {
                if (!(summary[r].band[b] < bound[i][r][b]))
                    print_message("%s: row %d, band %d: %g\n", table_path[i], r,
                                  b, summary[r].band[b]);
                assert_true(summary[r].band[b] < bound[i][r][b]);
            }
    }
}

/* ---- training ---- */

enum { TRAIN_N_Q = 27 };
static tsr_form_factor_table *empty(int n_comp)
{
    return own_tsr_form_factor(
        tsr_form_factor_new(TSR_BODIES_ONE, n_comp, TRAIN_N_Q, dq));
}

/* Averages conserve the displaced volume and the exposed atoms of what they
 * were made of, and refining brings I(q; c1, c2) nearer to all atoms. */
TEST(training)
{
    needs_structures();
    enum { N = 12, N_ROW = 3 };
    static const char *const path[N] = {
        FOLDER "/1ahs.pdb.gz", FOLDER "/1dx5.pdb.gz", FOLDER "/1hii.pdb.gz",
        FOLDER "/1hvr.pdb.gz", FOLDER "/1hwu.pdb.gz", FOLDER "/1i8n.pdb.gz",
        FOLDER "/1ubq.pdb.gz", FOLDER "/1vfy.pdb.gz", FOLDER "/1x0n.pdb.gz",
        FOLDER "/2pvb.pdb.gz", FOLDER "/2va0.pdb.gz", FOLDER "/3ny7.pdb.gz"};
    tsr_form_factor_table *contrast = empty(1), *t = empty(TSR_N_COMP);
    tsr_form_factor_table *again = empty(TSR_N_COMP);
    OK(tsr_form_factor_train(contrast, N, path, 0, NULL, &err));
    OK(tsr_form_factor_refine(contrast, N, path, 0, NULL, &err));
    OK(tsr_form_factor_train(t, N, path, 2, NULL, &err));
    OK(tsr_form_factor_train(again, N, path, 1, NULL, &err));
    size_t n = (size_t)t->n_type * TRAIN_N_Q;
    assert_memory_equal(t->amplitude, again->amplitude,
                        TSR_N_COMP * n * sizeof(double));
    double volume = 0.0, expect = 0.0, wet = 0.0, expect_wet = 0.0;
    for (int i = 0; i < N; i++) {
        molecule m;
        molecule_new(&m, path[i], TSR_BODIES_ONE);
        double *e = exposures(&m, t, 1);
        for (int b = 0; b < m.n_body; b++) {
            size_t at = (size_t)m.type[b] * TRAIN_N_Q;
            volume += t->amplitude[n + at];
            wet += e[b] * t->amplitude[2 * n + at];
        }
        for (int a = 0; a < m.n_atom; a++) {
            expect +=
                tsr_atom_displaced_amplitude(m.z[a], m.n_hydrogen[a], 0.0);
            expect_wet += m.share[a] * tsr_component_water(0.0);
        }
    }
    assert_true(fabs(volume / expect - 1.0) < 1e-10);
    assert_true(fabs(wet / expect_wet - 1.0) < 1e-10);

    OK(tsr_form_factor_refine(t, N, path, 0, NULL, &err));
    const tsr_evaluation row[2][N_ROW] = {
        {{again, 1, 0.95, 0.0}, {again, 1, 1.0, 1.0}, {again, 1, 1.0, 3.0}},
        {{t, 1, 0.95, 0.0}, {t, 1, 1.0, 1.0}, {t, 1, 1.0, 3.0}}};
    tsr_error_summary summary[2][N_ROW];
    for (int i = 0; i < 2; i++)
        OK(tsr_form_factor_evaluate(N, path, N_ROW, row[i], 0, NULL, summary[i],
                                    &err));
    for (int r = 0; r < N_ROW; r++)
        assert_true(summary[1][r].band[2] < summary[0][r].band[2]);
    assert_true(summary[1][2].band[2] < 0.85 * summary[0][2].band[2]);
    /* The contrast is that of one component, and q = 0 stays. */
    for (size_t i = 0; i < n; i++) {
        double c = t->amplitude[i] - t->amplitude[n + i];
        assert_true(fabs(c - contrast->amplitude[i]) < 1e-11);
        if (i % TRAIN_N_Q == 0)
            assert_true(t->amplitude[2 * n + i] == again->amplitude[2 * n + i]);
    }
}
