/* Mixtures fitted to draws from a known density predict other draws as well as
 * that density does, whatever the number of threads. */
#include "molecule/prior_density.h"
#include "tests/test.h"
#include "train/train.h"

enum { N = 1800, N_FILE = 60 };

static const tsr_torsion_mixture torsions = {
    .n = 4,
    .part = {{0.5, -1.1, -0.7, 60.0, 40.0, -30.0},
             {0.3, -2.1, 2.4, 8.0, 10.0, 4.0},
             {0.17, 1.0, 3.0, 30.0, 25.0, 20.0},
             {0.03, 0.0, 0.0, 0.0, 0.0, 0.0}}};

static const tsr_side_mixture sides = {
    .n = 3,
    .part = {{0.5,
              {-2.0, 0.0, 0.0},
              {{0.1, 0.05, 0.0}, {0.05, 0.1, 0.0}, {0.0, 0.0, 0.2}}},
             {0.3, {1.0, 1.0, 0.0}, {{0.2, 0, 0}, {0, 0.3, 0}, {0, 0, 0.1}}},
             {0.2, {0.0, -2.0, 2.0}, {{0.1, 0, 0}, {0, 0.1, 0}, {0, 0, 0.1}}}}};

static int file_of[2 * N];
static double torsion[2 * N][2], side[2 * N][3]; /* half to test on */

FIXTURE(set_up)
{
    gsl_rng *rng = rng_new(4, 0);
    tsr_torsion_density *t = tsr_torsion_density_new(&torsions);
    tsr_side_density *s = tsr_side_density_new(&sides);
    for (int i = 0; i < 2 * N; i++) {
        file_of[i] = i / (N / N_FILE);
        tsr_torsion_density_draw(t, rng, &torsion[i][0], &torsion[i][1]);
        tsr_side_density_draw(s, rng, side[i]);
    }
    free(t);
    free(s);
    return 0;
}

/* Mean over the second half of how much less a mixture says than the truth. */
static double loss(const tsr_mixture_type *type, const void *truth,
                   const void *mixture, const double *x)
{
    static double a[N], b[N];
    double sum = 0.0;
    x += N * type->dim;
    OK(type->evaluate(truth, N, x, a, &err));
    OK(type->evaluate(mixture, N, x, b, &err));
    for (int i = 0; i < N; i++)
        sum += (a[i] - b[i]) / N;
    return sum;
}

/* Up to 7 parts: more take longer, and say no more. */
static void train(tsr_torsion_mixture *t, tsr_side_mixture *s, int n_thread)
{
    tsr_mixture_type torsion_type = tsr_mixture_torsion;
    tsr_mixture_type side_type = tsr_mixture_side;
    torsion_type.most = side_type.most = 7;
    const tsr_sample of[2] = {{.n = N, .x = torsion[0], .file = file_of},
                              {.n = N, .x = side[0], .file = file_of}};
    tsr_mixture_task task[2] = {
        {"torsions", &torsion_type, &of[0], t, 0, 0, {0}},
        {"sides", &side_type, &of[1], s, 0, 0, {0}}};
    memset(t, 0, sizeof *t);
    memset(s, 0, sizeof *s);
    OK(tsr_mixture_train(2, task, n_thread, NULL, &err));
    assert_ints(task[0].n_held_out, N / 6, task[0].n_part, t->n, task[1].n_part,
                s->n);
    assert_true(task[0].held_out[2] < task[0].held_out[t->n] - 0.3);
    assert_true(task[1].held_out[1] < task[1].held_out[s->n] - 0.3);
}

TEST(trained)
{
    static tsr_torsion_mixture t, t2;
    static tsr_side_mixture s, s2;
    train(&t, &s, 1);
    /* the uniform part is the last; sides: a broad one comes with them */
    assert_int_equal(t.n, 4);
    assert_true(t.part[3].k_phi == 0.0 && t.part[3].k_psi == 0.0);
    assert_near(t.part[3].weight, 0.03, 0.01);
    assert_nears(0.02, t.part[0].phi, -1.1, t.part[0].psi, -0.7);
    assert_near(t.part[0].k_phi / 60.0, 1.0, 0.15);
    assert_near(t.part[0].lambda / -30.0, 1.0, 0.2);
    assert_true(s.n >= 4 && s.n <= 6); /* as the few held out have it */
    assert_true(s.part[s.n - 1].weight >= TSR_BROAD_WEIGHT);
    tsr_side_mixture four;
    OK(tsr_mixture_side.fit(N, side[0], 4, 2, &four, &err));
    assert_near(four.part[0].weight, 0.5, 0.03);
    assert_near(four.part[0].mean[0], -2.0, 0.05);
    assert_near(four.part[0].cov[0][1], 0.05, 0.015);
    assert_int_equal(t.count, N);
    /* 17 and 27 free numbers: half of them over N are lost, 0.005 and 0.008;
     * the broad one, which the truth lacks, takes its weight */
    double lost = loss(&tsr_mixture_torsion, &torsions, &t, torsion[0]);
    assert_true(lost > -0.005 && lost < 0.015);
    lost = loss(&tsr_mixture_side, &sides, &s, side[0]);
    assert_true(lost > -0.005 && lost < 0.02);
    train(&t2, &s2, 2);
    assert_memory_equal(&t, &t2, sizeof t);
    assert_memory_equal(&s, &s2, sizeof s);
}

/* Observations that are all but the same: no collapse, no NaN. */
TEST(degenerate)
{
    enum { M = 60 };
    double x[M][2], y[M][3], value[M];
    for (int i = 0; i < M; i++) {
        x[i][0] = 1.0, x[i][1] = i < M / 2 ? 3.1 : -3.1;
        y[i][0] = i < M / 2, y[i][1] = 0.0, y[i][2] = 1.0;
    }
    for (int n = 2; n <= 5; n++) {
        tsr_torsion_mixture t = {0};
        tsr_side_mixture s = {0};
        OK(tsr_mixture_torsion.fit(M, x[0], n, 2, &t, &err));
        OK(tsr_mixture_side.fit(M, y[0], n, 2, &s, &err));
        double sum = 0.0;
        for (int k = 0; k < n; k++) {
            const tsr_von_mises *p = &t.part[k];
            assert_true(p->k_phi <= TSR_MAX_KAPPA &&
                        p->lambda * p->lambda <= p->k_phi * p->k_psi);
            sum += p->weight;
        }
        assert_near(sum, 1.0, 1e-12);
        assert_true(t.part[n - 1].weight >= TSR_UNIFORM_WEIGHT);
        OK(tsr_mixture_torsion.evaluate(&t, M, x[0], value, &err));
        assert_true(isfinite(value[0]) && value[0] > 2.0);
        OK(tsr_mixture_side.evaluate(&s, M, y[0], value, &err));
        /* half of them, 0.05 A wide: log(0.5 / (0.05 sqrt(2 pi))^3) */
        assert_true(isfinite(value[0]) && value[0] < 5.54);
    }
}

/* Too few to choose: the least number of parts. */
TEST(few)
{
    tsr_torsion_mixture t = {0};
    const tsr_sample of = {.n = 50, .x = torsion[0], .file = file_of};
    tsr_mixture_task task = {"few", &tsr_mixture_torsion, &of, &t, 0, 0, {0}};
    OK(tsr_mixture_train(1, &task, 2, NULL, &err));
    assert_ints(task.n_part, 2, t.n, 2);
    assert_true(isnan(task.held_out[2]));
}

static test_fixture around_all = {set_up, NULL};
