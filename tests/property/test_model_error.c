/* The learnt model error covers the difference between bodies and atoms, for
 * lysozyme with a flexible end. */
#include "posterior/all_atoms.h"
#include "tests/objects.h"
#include "tests/test.h"

#include "molecule/structure.h"
#include "sampler/chain.h"
#include "scattering/atom_model.h"
#include "scattering/debye.h"
#include "tests/saxs_likelihood.h"
#include "tests/setup_sample.h"

#include <gsl/gsl_randist.h>
#include <unistd.h>

#define FOLDER "../shared/data/saxs/lysozyme_raw/"
static const char loose[] = "flexible: ['A:119-129']";
static const char many[] = "model_error.conformations=96"; /* a regression */
static const char atoms_key[] = "structure.bodies=atoms";  /* on a device */

static void open_sample(sample *x, const char *motion, const char *key)
{
    const char *const set[] = {key};
    const int is_atoms = strcmp(key, atoms_key) == 0;
    char text[1000];
    snprintf(text, sizeof text,
             "structure: {file: " FOLDER "model.pdb, %s}\n"
             "data: [{file: " FOLDER "exp.dat, q_range: [0, 0.3]}]\n"
             "contrast: {c1: infer, c2: infer}\n"
             "sampler: {chains: 1, temperatures: 1}\n"
             "device: {use: %s}\n"
             "model_error: {conformations: 8}\n",
             motion, is_atoms ? "cpu" : "reference");
    start_sample(x, 1, set, text);
}

static int is_absent(void)
{
    if (access(FOLDER "exp.dat", R_OK) == 0)
        return 0;
    print_message("../shared/data/saxs is absent\n");
    return 1;
}

/* The bodies' corrected profile of a conformation at c1 and c2. */
static void bodies_profile(const sample *x, const tsr_conformation *c,
                           const double *contrast, double *profile)
{
    const tsr_likelihood *l = x->s.data.likelihood;
    double *partial =
        array((size_t)tsr_likelihood_n_profile(l), sizeof *partial);
    NEW(tsr_batch, batch, tsr_batch_new, x->s.devices.group[0].engine, 1);
    OK(tsr_batch_set(batch, 0, (const double(*)[3])c->body, partial, &err));
    tsr_likelihood_profile(l, 0, partial, contrast, profile);
}

/* I(q) of the file's atoms, read as `tessera profile` reads them. */
static void file_profile(const tsr_q_grid *grid, const double *contrast,
                         double *profile)
{
    const size_t n_q = (size_t)grid->n_q;
    NEW(tsr_atoms, atoms, tsr_atoms_read, FOLDER "model.pdb");
    NEW(tsr_atom_model, model, tsr_atom_model_new, atoms, TSR_SOLVENT_LAYER,
        TSR_WATER_DENSITY);
    double *factor = array(3 * (size_t)model->n_type * n_q, sizeof *factor);
    double *partial = array(TSR_N_COMP_PAIR * n_q, sizeof *partial);
    tsr_atom_model_factors(model, grid->n_q, grid->dq_inv_ang, factor);
    const tsr_debye_spec spec = {.n = model->n,
                                 .n_type = model->n_type,
                                 .n_comp = 3,
                                 .n_q = grid->n_q,
                                 .dq_inv_ang = grid->dq_inv_ang,
                                 .xyz = (const double(*)[3])model->xyz,
                                 .type = model->type,
                                 .weight = model->surface,
                                 .weighted = 2,
                                 .form_factor = factor};
    OK(tsr_debye_reference(&spec, NULL, partial, &err));
    for (size_t k = 0; k < n_q; k++)
        profile[k] = tsr_component_intensity(
            partial + k, n_q,
            tsr_component_scale(contrast[TSR_C1], model->power_radius_ang,
                                (double)k * grid->dq_inv_ang),
            contrast[TSR_C2]);
}

/* Where nothing moves bodies scatter like atoms, at any c1 and c2, on the grid
 * and at the q of the data. */
TEST(what_stays_is_exact)
{
    static const double contrast[][TSR_N_CONTRAST] = {
        {1.0, 0.0}, {1.0, 1.0}, {0.97, 2.5}, {1.04, 0.3}};
    /* OXT is put opposite O, not where the file has it */
    const double close = 5e-4;
    double own[256], atoms[256], curve[2][1024];
    sample x;
    if (is_absent())
        skip();
    open_sample(&x, "frozen: true", "seed=1");
    const tsr_likelihood *l = x.s.data.likelihood;
    const tsr_saxs_term *term = saxs_term(l, 0);
    assert_true(l->grid.n_q <= 256 && term->saxs->n <= 1024);
    assert_int_equal(l->view->error.n, 0); /* one conformation has no spread */
    for (size_t v = 0; v < COUNT_OF(contrast); v++) {
        bodies_profile(&x, x.s.molecule.first, contrast[v], own);
        file_profile(&l->grid, contrast[v], atoms);
        for (int k = 0; k < l->grid.n_q; k++)
            assert_near(own[k] / atoms[k], 1.0, close);
        tsr_saxs_curve(term, own, 1.0, NULL, curve[0]);
        tsr_saxs_curve(term, atoms, 1.0, NULL, curve[1]);
        for (int k = 0; k < term->saxs->n; k++)
            assert_near(curve[0][k] / curve[1][k], 1.0, close);
    }
}

/* Conformations that it was not learnt from: nearer to their atoms than without
 * it, by as much as the standard deviations say. */
TEST(others_are_nearer)
{
    enum { N = 6 };
    const double contrast[TSR_N_CONTRAST] = {1.0, 1.0};
    double own[256], plain[256], six[TSR_N_COMP_PAIR * 256], radius;
    double before = 0.0, after = 0.0, told = 0.0;
    sample x, raw;
    if (is_absent())
        skip();
    open_sample(&x, loose, many);
    open_sample(&raw, loose, "model_error=none");
    assert_null(raw.s.data.likelihood->view->atoms);
    const tsr_likelihood *l = x.s.data.likelihood;
    const size_t n_q = (size_t)l->grid.n_q;
    tsr_target prior = x.s.target;
    prior.likelihood = NULL;
    prior.n_engine = 0;
    NEW(tsr_chain, chain, tsr_chain_new, &prior, 9);
    NEW(tsr_atom_curves, curves, tsr_atom_curves_new, &x.s.molecule, &l->grid,
        NULL, NULL);
    for (int i = 0; i < N; i++) {
        tsr_chain_view view;
        double mean[2] = {0.0};
        int n = 0;
        for (int k = 0; k < 1500; k++) {
            tsr_body_proposal ask;
            int accepted;
            tsr_chain_propose(chain, &ask);
            OK(tsr_chain_decide(chain, NULL, 0, &accepted, &err));
        }
        tsr_chain_view_get(chain, &view);
        bodies_profile(&x, view.conformation, contrast, own);
        bodies_profile(&raw, view.conformation, contrast, plain);
        OK(tsr_atom_curves_partial(curves, view.conformation, NULL, NULL, 0.0,
                                   six, &radius, &err));
        for (size_t k = 1; k < n_q - 2; k++) {
            const double atoms =
                tsr_component_intensity(six + k, n_q, 1.0, 1.0);
            own[k] = log(own[k] / atoms);
            plain[k] = log(plain[k] / atoms);
            if ((double)k * l->grid.dq_inv_ang > 0.1)
                continue;
            mean[0] += own[k];
            mean[1] += plain[k];
            n++;
        }
        for (size_t k = 1; k < n_q - 2; k++) {
            after += pow(own[k] - mean[0] / n, 2.0);
            before += pow(plain[k] - mean[1] / n, 2.0);
            for (int e = 0; e < l->view->error.n; e++)
                told += pow(l->view->error.curve[(size_t)e * n_q + k] /
                                l->view->error.reference[k],
                            2.0);
        }
    }
    print_message("  rms of log I: %.4f before, %.4f after, %.4f told\n",
                  sqrt(before / N / (double)n_q), sqrt(after / N / (double)n_q),
                  sqrt(told / N / (double)n_q));
    assert_true(after < before / 50.0);
    assert_true(told < 9.0 * after && told > after / 3.0);
}

/* The error that remains grows with the hydration layer, and the curve decides
 * how dense the layer is: with the file's own curve at c2 = 3 the error is
 * larger than with that at c2 = 0.3. */
TEST(error_is_that_at_the_c2_of_the_data)
{
    static const double c2[2] = {0.3, 3.0};
    double own[256], told[2] = {0.0};
    char path[] = "/tmp/tessera_error_XXXXXX", key[64];
    sample x, again[2];
    if (is_absent())
        skip();
    open_sample(&x, loose, "seed=1");
    const tsr_q_grid *grid = &x.s.data.likelihood->grid;
    close(mkstemp(path));
    snprintf(key, sizeof key, "data.0.file=%s", path);
    for (int i = 0; i < 2; i++) {
        const double contrast[TSR_N_CONTRAST] = {1.0, c2[i]};
        FILE *file = fopen(path, "w");
        file_profile(grid, contrast, own);
        for (int k = 1; k < grid->n_q; k++)
            fprintf(file, "%.6f %.8g %.8g\n", k * grid->dq_inv_ang, own[k],
                    1e-3 * own[k]);
        fclose(file);
        open_sample(&again[i], loose, key);
        const tsr_profile_error *error =
            &again[i].s.data.likelihood->view->error;
        for (int k = 0; k < error->n * grid->n_q; k++)
            told[i] +=
                pow(error->curve[k] / error->reference[k % grid->n_q], 2.0);
    }
    remove(path);
    print_message("  squared error at c2 0.3 and 3: %.2e, %.2e\n", told[0],
                  told[1]);
    assert_true(told[0] > 0.0 && told[1] > 3.0 * told[0]);
}

/* Every run of a configuration learns the same error, to the bit: also a run
 * that goes on, and one with another seed. */
TEST(learning_again_gives_the_same_bits)
{
    sample a, b;
    if (is_absent())
        skip();
    open_sample(&a, loose, "seed=1");
    open_sample(&b, loose, "seed=7");
    const tsr_likelihood *x = a.s.data.likelihood, *y = b.s.data.likelihood;
    const size_t n = (size_t)tsr_likelihood_n_profile(x) * sizeof(double);
    const size_t n_q = (size_t)x->grid.n_q * sizeof(double);
    assert_memory_equal(x->view->atoms, y->view->atoms, n);
    assert_memory_equal(x->view->bodies, y->view->bodies, n);
    assert_true(x->view->error.n > 0);
    assert_int_equal(x->view->error.n, y->view->error.n);
    assert_memory_equal(x->view->error_curve, y->view->error_curve,
                        ((size_t)x->view->error.n + 1) * n_q);
}

/* A checkpoint holds the regression: without it the ratio alone is left. */
TEST(checkpoints_hold_the_regression)
{
    sample x;
    tsr_archive archive = {0};
    if (is_absent())
        skip();
    open_sample(&x, loose, many);
    tsr_likelihood *l = x.s.data.likelihood;
    const size_t n = (size_t)(tsr_likelihood_n_regressor(l) * l->grid.n_q);
    double *had = array(n, sizeof *had);
    memcpy(had, l->view->regression, n * sizeof *had);
    tsr_archive_begin(&archive);
    OK(tsr_likelihood_archive(l, &archive, &err));
    OK(tsr_likelihood_correct(l, 0, l->view->atoms, l->view->bodies, 1.0,
                              &err));
    assert_null(l->view->regression);
    tsr_archive_rewind(&archive);
    OK(tsr_likelihood_archive(l, &archive, &err));
    OK(tsr_archive_end(&archive, &err));
    assert_memory_equal(l->view->regression, had, n * sizeof *had);
    tsr_archive_clear(&archive);
}

/* ---- the regression, from examples made up ---- */

enum { N_EXAMPLE = 64, N_OTHER = 8, LAW = 5 };
static const double at[TSR_N_CONTRAST] = {1.0, 1.0};

typedef struct {
    sample x;
    tsr_likelihood *l;
    size_t n_q;
    tsr_examples e;
} lesson;

static double *partial_of(const lesson *o, double *all, int i)
{
    return all + tsr_examples_size(&o->e, i);
}

static void set_mean(const lesson *o, double *all)
{
    const size_t n = tsr_examples_size(&o->e, 1);
    double *mean = partial_of(o, all, N_EXAMPLE);
    memset(mean, 0, n * sizeof *mean);
    for (size_t i = 0; i < N_EXAMPLE; i++)
        for (size_t k = 0; k < n; k++)
            mean[k] += all[i * n + k] / N_EXAMPLE;
}

/* The d_j of conformation i, which has the curve [n_q]. */
static void deviation_of(const lesson *o, int i, double *curve, double *d)
{
    const double *bodies = partial_of(o, o->e.bodies, i);
    for (size_t k = 0; k < o->n_q; k++)
        curve[k] = tsr_likelihood_combine(o->l, 0, bodies, at,
                                          o->l->probe->power[k], k);
    tsr_likelihood_deviation(o->l, 0, at, curve, d);
}

/* By how much atoms scatter more than bodies at a point of the grid. */
static double law(const lesson *o, size_t k, double amplitude)
{
    return 0.3 - 0.2 * (double)k / (double)o->n_q +
           0.05 * sin((double)k) * amplitude;
}

/* Bodies are draws of the prior; curves of the atoms follow from those of the
 * bodies, or differ from them at random. */
static void open_lesson(lesson *o, int is_law)
{
    enum { N_ALL = N_EXAMPLE + 1 + N_OTHER };
    double curve[256], d[TSR_REGRESSORS];
    gsl_rng *rng = rng_new(3, 0);
    open_sample(&o->x, loose, "contrast.c1=1");
    o->l = o->x.s.data.likelihood;
    o->n_q = (size_t)o->l->grid.n_q;
    o->e = (tsr_examples){.likelihood = o->l, .n = N_EXAMPLE, .n_node = 1};
    memcpy(o->e.node[0], at, sizeof at);
    o->e.node_weight[0] = 1.0;
    const size_t n = tsr_examples_size(&o->e, 1);
    o->e.atoms = array(N_ALL * n, sizeof *o->e.atoms);
    o->e.bodies = array(N_ALL * n, sizeof *o->e.bodies);
    tsr_target prior = o->x.s.target;
    prior.likelihood = NULL;
    prior.n_engine = 0;
    NEW(tsr_chain, chain, tsr_chain_new, &prior, 9);
    NEW(tsr_batch, batch, tsr_batch_new, o->x.s.devices.group[0].engine, 1);
    for (int i = 0; i < N_ALL; i++) {
        tsr_chain_view view;
        double *to = partial_of(o, o->e.bodies, i);
        OK(tsr_setup_prior_steps(chain, 300, 0, NULL, "a test", &err));
        tsr_chain_view_get(chain, &view);
        OK(tsr_batch_set(batch, 0, (const double(*)[3])view.conformation->body,
                         to, &err));
        for (size_t k = 0; k < n; k++)
            to[k] += o->l->self[k];
    }
    set_mean(o, o->e.bodies);
    const double *mean = partial_of(o, o->e.bodies, N_EXAMPLE);
    OK(tsr_likelihood_correct(o->l, 0, mean, mean, 1.0, &err));
    for (int i = 0; i < N_ALL; i++) {
        const double by_chance = 0.05 * gsl_ran_gaussian(rng, 1.0);
        deviation_of(o, i, curve, d);
        for (size_t k = 0; k < n; k++)
            partial_of(o, o->e.atoms, i)[k] =
                partial_of(o, o->e.bodies, i)[k] *
                exp(law(o, k % o->n_q, is_law ? d[LAW] : by_chance));
    }
    set_mean(o, o->e.atoms);
    OK(tsr_likelihood_correct(o->l, 0, partial_of(o, o->e.atoms, N_EXAMPLE),
                              mean, 1.0, &err));
}

/* Sum of the variances that are left over q. */
static double left_over(const lesson *o, double *weight)
{
    double before[256], sum = 0.0;
    double *covariance = array(o->n_q * o->n_q, sizeof *covariance);
    OK(tsr_examples_compare(&o->e, before, covariance, weight, &err));
    for (size_t k = 0; k < o->n_q; k++)
        sum += covariance[k * (o->n_q + 1)];
    return sum;
}

/* Mean square, over the other conformations and q, of the error of the
 * corrected curve, less its mean over q. */
static double error_of_others(const lesson *o)
{
    double curve[256], d[TSR_REGRESSORS], sum = 0.0;
    for (int i = N_EXAMPLE + 1; i <= N_EXAMPLE + N_OTHER; i++) {
        double own[256], mean = 0.0;
        deviation_of(o, i, curve, d);
        memcpy(own, curve, sizeof own);
        tsr_likelihood_apply_correction(o->l, 0, at, own);
        for (size_t k = 0; k < o->n_q; k++) {
            own[k] = log(own[k] / curve[k]) - law(o, k, d[LAW]);
            mean += own[k] / (double)o->n_q;
        }
        for (size_t k = 0; k < o->n_q; k++)
            sum += pow(own[k] - mean, 2.0);
    }
    return sum;
}

/* Where the error of bodies follows from their curve, almost none is left, also
 * for conformations that are not examples. */
TEST(law_is_learnt)
{
    lesson o;
    double weight[TSR_REGRESSORS * 256];
    if (is_absent())
        skip();
    open_lesson(&o, 1);
    assert_true(o.n_q <= 256);
    const double ratio = left_over(&o, NULL), others = error_of_others(&o);
    assert_true(left_over(&o, weight) < 0.02 * ratio);
    OK(tsr_likelihood_regress(o.l, 0, weight, &err));
    print_message("  error of others: %.2e by the ratio, %.2e\n", others,
                  error_of_others(&o));
    assert_true(error_of_others(&o) < 0.02 * others);
}

/* An error that does not follow from the curve is expected to stay, although
 * weights fit that of the examples in part. */
TEST(chance_is_not_learnt)
{
    lesson o;
    double weight[TSR_REGRESSORS * 256];
    if (is_absent())
        skip();
    open_lesson(&o, 0);
    const double ratio = left_over(&o, NULL), left = left_over(&o, weight);
    const double expected =
        left * tsr_examples_variance_factor(N_EXAMPLE,
                                            tsr_likelihood_n_regressor(o.l));
    print_message("  left by the ratio %.2e, by the regression %.2e\n", ratio,
                  expected);
    assert_true(expected > 0.8 * ratio && expected < 2.0 * ratio);
}

/* Examples by which atoms would scatter less than nothing: a lesson of them
 * changes nothing. */
TEST(impossible_lesson_is_refused)
{
    enum { N = 8 };
    sample x;
    tsr_all_atom_example list[N];
    if (is_absent())
        skip();
    open_sample(&x, loose, atoms_key);
    const tsr_likelihood *l = x.s.data.likelihood;
    const size_t n = (size_t)tsr_likelihood_n_profile(l);
    const size_t n_q = (size_t)l->grid.n_q;
    const size_t n_error = ((size_t)l->view->error.n + 1) * n_q;
    double *bodies = array(((2 + N) * n + n_error) * sizeof *bodies, 1);
    double *ratio = bodies + n, *error = ratio + n, *atoms = error + n_error;
    const double contrast[TSR_N_CONTRAST] = {1.0, 1.0};
    memcpy(ratio, l->view->atoms, n * sizeof *ratio);
    memcpy(error, l->view->error_curve, n_error * sizeof *error);
    for (size_t k = 0; k < n; k++)
        bodies[k] = l->view->bodies[k] - l->self[k];
    for (int i = 0; i < N; i++)
        list[i] =
            (tsr_all_atom_example){atoms + (size_t)i * n, bodies, contrast};
    for (int is_possible = 0; is_possible < 2; is_possible++) {
        for (size_t k = 0; k < N * n; k++) { /* examples differ at high q */
            const double slope = (double)(k % n_q) / (double)n_q;
            atoms[k] = (is_possible ? 1.1 + 0.05 * slope * (double)(k / n % 2)
                                    : -1.0) *
                       ratio[k % n];
        }
        OK(tsr_setup_relearn_model_error(&x.config, N, list, NULL, &x.s, &err));
        assert_true((memcmp(l->view->atoms, ratio, n * sizeof *ratio) == 0) ==
                    !is_possible);
        assert_true((memcmp(l->view->error_curve, error,
                            n_error * sizeof *error) == 0) == !is_possible);
    }
}
