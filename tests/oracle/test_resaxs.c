/* The profile of 1888 coarse-grained bodies that the page-tile paper's program
 * (resaxs) published, on every engine.
 *
 * Tolerances. I(0) is the square of a sum: 1e-11, what is left of the printed
 * 12 digits. The published curve is single precision throughout: it leaves the
 * exact sum smoothly, by up to 9 electrons squared at every level of I (4e-5 of
 * I(q) at high q), which is within 2^-24 of I(0). The engines against the exact
 * sum: 1e-5 of I(q), their promise; against the published curve both. */
#include "../engine_support.h"
#include "tests/test.h"

enum { N_BODY = 1888, N_TYPE = 21, N_Q = 51 };
#define FOLDER "../shared/data/reference_profiles/resaxs_test1888/test1888."

/* 1: every variant; slow_resaxs.c says so. */
#ifndef RESAXS_ALL
#define RESAXS_ALL 0
#endif

/* Compilers take two or three seconds for a variant: of those that differ in
 * transfers and in bookkeeping, which test_engine_moves.c has all of, one does
 * for each way to compute a tile. */
static int is_wanted(int v)
{
    return has_variant(&variants[v]) &&
           (RESAXS_ALL || v == 0 || v == 2 || v == 3);
}

typedef struct {
    tsr_engine_spec spec;
    int type[N_BODY];
    double form_factor[N_TYPE * N_Q], xyz[N_BODY][3], published[N_Q];
    double exact[N_Q];
} published_case;

/* The numbers of a file, whatever stands between them. */
static void read_numbers(const char *path, double *x, int n)
{
    FILE *in = fopen(path, "r");
    int c, at = 0;
    assert_non_null(in);
    while (at < n && (c = getc(in)) != EOF)
        if (strchr("+-.0123456789", c) != NULL) {
            ungetc(c, in);
            assert_int_equal(fscanf(in, "%lf", &x[at++]), 1);
        }
    fclose(in);
    assert_int_equal(at, n);
}

static void evaluate(tsr_engine *engine, const published_case *c,
                     double *profile)
{
    NEW(tsr_batch, batch, tsr_batch_new, engine, 1);
    OK(tsr_batch_set(batch, 0, (const double(*)[3])c->xyz, profile, &err));
    assert_true(fabs(profile[0] / 170968481.388 - 1.0) < 1e-11);
}

static int setup(void **state)
{
    FILE *in = fopen(FOLDER "pos_matrix.txt", "r");
    if (in == NULL)
        return 0;
    fclose(in);
    published_case *c = array(1, sizeof *c);
    double *body = array(4 * N_BODY, sizeof *body);
    static double table[N_Q * N_TYPE], curve[2 * N_Q];
    read_numbers(FOLDER "pos_matrix.txt", body, 4 * N_BODY);
    read_numbers(FOLDER "ff_db.txt", table, N_Q * N_TYPE);
    read_numbers(FOLDER "Iq_vec.txt", curve, 2 * N_Q);
    for (int i = 0; i < N_BODY; i++) {
        memcpy(c->xyz[i], body + 4 * i, sizeof c->xyz[i]);
        c->type[i] = (int)body[4 * i + 3];
    }
    for (int k = 0; k < N_Q; k++) {
        c->published[k] = curve[2 * k + 1];
        for (int t = 0; t < N_TYPE; t++)
            c->form_factor[t * N_Q + k] = table[k * N_TYPE + t];
    }
    c->spec = (tsr_engine_spec){.n_body = N_BODY,
                                .n_type = N_TYPE,
                                .n_q = N_Q,
                                .dq_inv_ang = 0.015,
                                .n_system = 1,
                                .type = c->type,
                                .form_factor = c->form_factor};
    NEW(tsr_engine, engine, tsr_engine_reference_new, &c->spec);
    evaluate(engine, c, c->exact);
    *state = c;
    return 0;
}

/* Whether a profile agrees with the published one, to the latter's precision
 * and `limit` of I(q). */
static void check_published(const published_case *c, const double *profile,
                            double limit)
{
    for (int k = 0; k < N_Q; k++)
        assert_true(fabs(profile[k] - c->published[k]) <=
                    0x1p-24 * c->exact[0] + limit * c->exact[k]);
}

static void needs(const published_case *c)
{
    if (c == NULL) {
        printf("skipped: no " FOLDER "pos_matrix.txt\n");
        skip();
    }
}

TEST(reference)
{
    const published_case *c = *state;
    needs(c);
    check_published(c, c->exact, 0.0);
}

/* Every variant that is wanted; every `part`-th q is one of the published. */
static void on_the_device(const published_case *c, const tsr_engine_spec *spec,
                          int part)
{
    tsr_device *device = need_device();
    double *profile = array((size_t)spec->n_q, sizeof *profile);
    for (int v = 0; v < N_VARIANT; v++) {
        double at[N_Q];
        if (!is_wanted(v) || (is_wave(&variants[v]) && spec->d_bound_ang <= 0))
            continue;
        evaluate(new_variant(spec, device, &variants[v]), c, profile);
        for (int k = 0; k < N_Q; k++)
            at[k] = profile[k * part];
        double error = worst_error(at, c->exact, N_Q);
        printf("    %-55s %.1e\n", variants[v].name, error);
        assert_true(error <= variants[v].limit);
        check_published(c, at, variants[v].limit);
    }
}

/* As given: no bound on the distances, which plane waves need; dq r beyond
 * pi / 2. */
TEST(device_engines)
{
    const published_case *c = *state;
    needs(c);
    on_the_device(c, &c->spec, 1);
}

/* With a bound, as the sampler asks for it: the step is divided until it meets
 * the bound. */
TEST(short_range)
{
    const published_case *c = *state;
    needs(c);
    double d = tsr_largest_distance(N_BODY, (const double(*)[3])c->xyz);
    d *= 1.0 + 1e-6;
    int part = (int)ceil(0.015 * d * 2.0 / acos(-1.0));
    int n_q = (N_Q - 1) * part + 1;
    double *table = array((size_t)(N_TYPE * n_q), sizeof *table);
    for (int t = 0; t < N_TYPE; t++)
        for (int k = 0; k < n_q; k++)
            table[t * n_q + k] = c->form_factor[t * N_Q + k / part];
    tsr_engine_spec spec = c->spec;
    spec.n_q = n_q;
    spec.dq_inv_ang /= part;
    spec.d_bound_ang = d;
    spec.form_factor = table;
    printf("    D %.1f A, %d q\n", d, n_q);
    on_the_device(c, &spec, part);
}

static test_fixture around_all = {setup, NULL};
