/* A single Debye sum on the device, with every option, equals the reference,
 * and the reference equals the formula. */
#include "../engine_support.h"
#include "gpu/debye_sum.h"
#include "scattering/debye.h"
#include "tests/test.h"

enum { N = 700, N_TYPE = 5, N_Q = 30, MAX_PAIR = 6 };

#define DQ 0.02 /* 1/Angstrom */

typedef struct {
    double xyz[N][3], weight[N];
    int type[N];
    double factor[3 * N_TYPE * N_Q];
    tsr_debye_spec spec;
} sample;

/* A chain of atoms, dense as a protein, in a ball of some 30 Angstrom; a third
 * of them at the surface. Type 4 does not occur, type 3 is one particle. */
static void make(sample *s, int n_comp, int has_weight)
{
    uint64_t state = 7;
    for (int i = 0; i < N; i++) {
        double r2;
        do {
            r2 = 0.0;
            for (int c = 0; c < 3; c++) {
                s->xyz[i][c] = 100.0 + 40.0 * (uniform(&state) - 0.5);
                r2 += pow(s->xyz[i][c] - 100.0, 2.0);
            }
        } while (r2 > 400.0);
        s->type[i] = i == 17 ? 3 : (int)(3.0 * uniform(&state));
        s->weight[i] = fmax(0.0, 1.5 * uniform(&state) - 1.0);
    }
    for (int c = 0; c < 3; c++)
        for (int t = 0; t < N_TYPE; t++)
            for (int k = 0; k < N_Q; k++)
                s->factor[(c * N_TYPE + t) * N_Q + k] =
                    (6.0 + t - 3.0 * c) * exp(-(1.0 + c) * 4e-4 * k * k);
    s->spec = (tsr_debye_spec){.n = N,
                               .n_type = N_TYPE,
                               .n_comp = n_comp,
                               .n_q = N_Q,
                               .dq_inv_ang = DQ,
                               .xyz = (const double(*)[3])s->xyz,
                               .type = s->type,
                               .weight = has_weight ? s->weight : NULL,
                               .weighted = n_comp - 1,
                               .form_factor = s->factor};
}

TEST(reference_is_debye)
{
    sample *s = array(1, sizeof *s);
    double profile[MAX_PAIR * N_Q];
    make(s, 3, 1);
    s->spec.n = 40;
    memcpy(s->xyz[3], s->xyz[5], sizeof s->xyz[3]); /* one place for two */
    OK(tsr_debye_reference(&s->spec, NULL, profile, &err));
    int pair = 0;
    for (int a = 0; a < 3; a++)
        for (int b = a; b < 3; b++, pair++)
            for (int k = 0; k < N_Q; k++) {
                double sum = 0.0, scale = 0.0;
                for (int i = 0; i < 40; i++)
                    for (int j = 0; j < 40; j++) {
                        double d2 = 0.0;
                        for (int c = 0; c < 3; c++)
                            d2 += pow(s->xyz[i][c] - s->xyz[j][c], 2.0);
                        double x = DQ * k * sqrt(d2);
                        double fi =
                            s->factor[(a * N_TYPE + s->type[i]) * N_Q + k] *
                            (a == 2 ? s->weight[i] : 1.0);
                        double fj =
                            s->factor[(b * N_TYPE + s->type[j]) * N_Q + k] *
                            (b == 2 ? s->weight[j] : 1.0);
                        sum += fi * fj * (x > 0.0 ? sin(x) / x : 1.0);
                        scale += fabs(fi * fj);
                    }
                assert_near(profile[pair * N_Q + k], sum, 1e-12 * scale);
            }
}

typedef struct {
    const char *name;
    tsr_debye_sum_options options;
    double d_bound, limit;
} way;

/* 1e-5 of I(q) is what is promised. */
static const way ways[] = {
    ROW("SIMD", {0}, 41.0, 1e-5),
    ROW("SIMD, no bound", {0}, 0.0, 1e-5),
    ROW("SIMD, groups of 12, launches of 7, runs of 3",
        {.max_pages = 12, .units_a_launch = 7, .run = 3}, 41.0, 1e-5),
    ROW("SIMT", {.is_simt = 1}, 41.0, 1e-5),
    ROW("SIMT, groups of 12, launches of 5",
        {.is_simt = 1, .max_pages = 12, .units_a_launch = 5}, 41.0, 1e-5),
};
enum { N_WAY = COUNT_OF(ways) };

static void compute(const tsr_device *device, const tsr_debye_spec *spec,
                    const way *w, const tsr_debye_progress *progress,
                    double *profile)
{
    FREED(tsr_debye_sum) sum;
    OK(tsr_debye_sum_new(device, spec->n_q, spec->dq_inv_ang,
                         spec->weight != NULL, w->d_bound, &w->options, &sum,
                         &err));
    double error = 0.0;
    OK(tsr_debye_sum_test(sum, &error, &err));
    assert_true(error > 0.0);
    OK(tsr_debye_sum_run(sum, spec, progress, profile, &err));
}

TEST(device_meets_reference)
{
    tsr_device *device = *state;
    if (device == NULL)
        skip();
    sample *s = array(1, sizeof *s);
    double exact[MAX_PAIR * N_Q], profile[MAX_PAIR * N_Q];
    for (int n_comp = 1; n_comp <= 3; n_comp += 2)
        for (int w = 0; w < N_WAY; w++) {
            const tsr_debye_sum_options *o = &ways[w].options;
            if (n_comp == 1 && o->max_pages > 0)
                continue;
            make(s, n_comp, n_comp == 3);
            int n = tsr_debye_n_pair(&s->spec) * N_Q;
            OK(tsr_debye_reference(&s->spec, NULL, exact, &err));
            compute(device, &s->spec, &ways[w], NULL, profile);
            double worst = worst_error(profile, exact, n);
            if (worst > ways[w].limit)
                fail_msg("%s, %d components: %.2e", ways[w].name, n_comp,
                         worst);
        }
}

/* The order of particles and the launches change nothing but rounding, and the
 * launches not even that. */
TEST(launches_change_nothing)
{
    tsr_device *device = *state;
    if (device == NULL)
        skip();
    sample *s = array(1, sizeof *s);
    double one[MAX_PAIR * N_Q], many[MAX_PAIR * N_Q];
    make(s, 3, 1);
    way few = {"", {.units_a_launch = 11, .run = 4}, 41.0, 0.0};
    way all = {"", {.run = 4}, 41.0, 0.0};
    compute(device, &s->spec, &few, NULL, many);
    compute(device, &s->spec, &all, NULL, one);
    assert_memory_equal(one, many, sizeof one);
}

typedef struct {
    int n;
    double last;
} told;

static tsr_status tell(void *context, double done, tsr_err *err)
{
    told *t = context;
    assert_true(done > t->last && done <= 1.0);
    t->last = done;
    if (++t->n == 3)
        return tsr_fail(err, TSR_E_INTERRUPTED, "enough");
    return TSR_OK;
}

TEST(progress_tells_and_stops)
{
    tsr_device *device = *state;
    if (device == NULL)
        skip();
    sample *s = array(1, sizeof *s);
    double profile[MAX_PAIR * N_Q];
    told t = {0};
    tsr_debye_progress progress = {tell, &t};
    tsr_debye_sum_options options = {.units_a_launch = 5};
    FREED(tsr_debye_sum) sum;
    make(s, 3, 1);
    OK(tsr_debye_sum_new(device, N_Q, DQ, 1, 41.0, &options, &sum, &err));
    assert_int_equal(tsr_debye_sum_run(sum, &s->spec, &progress, profile, &err),
                     TSR_E_INTERRUPTED);
    assert_int_equal(t.n, 3);
    s->xyz[4][1] = 150.0;
    assert_int_equal(tsr_debye_sum_run(sum, &s->spec, NULL, profile, &err),
                     TSR_E_RANGE);
    s->xyz[4][1] = (double)NAN;
    assert_int_equal(tsr_debye_sum_run(sum, &s->spec, NULL, profile, &err),
                     TSR_E_NUMERIC);
    s->xyz[4][1] = 100.0;
    s->spec.weight = NULL;
    assert_int_equal(tsr_debye_sum_run(sum, &s->spec, NULL, profile, &err),
                     TSR_E_INTERNAL);
}

/* A kernel that computes wrongly is found out. */
TEST(self_test_finds_a_wrong_kernel)
{
    tsr_device *device = *state;
    tsr_debye_sum *sum;
    char dir[] = "/tmp/tsr-kernel-XXXXXX", command[256];
    if (device == NULL)
        skip();
    assert_non_null(mkdtemp(dir));
    snprintf(command, sizeof command,
             "cp kernels/*.cl %s && sed -i 's/sum_w\\[k\\] +=/sum_w[k] += "
             "1e-3f * x +/' %s/debye_sum_simd.cl",
             dir, dir);
    assert_int_equal(system(command), 0);
    setenv("TSR_KERNEL_DIR", dir, 1);
    OK(tsr_debye_sum_new(device, N_Q, DQ, 1, 41.0, NULL, &sum, &err));
    int is_simd = strstr(tsr_debye_sum_describe(sum), "SIMD") != NULL;
    tsr_status status = tsr_debye_sum_test(sum, NULL, &err);
    unsetenv("TSR_KERNEL_DIR");
    tsr_debye_sum_free(sum);
    snprintf(command, sizeof command, "rm -rf %s", dir);
    assert_int_equal(system(command), 0);
    assert_int_equal(status, is_simd ? TSR_E_DEVICE : TSR_OK);
}

static int set_up(void **state)
{
    *state = open_device();
    return 0;
}

static test_fixture around_all = {set_up, NULL};
