/* Every check of `tessera diagnose` gives the known answer for traces made to
 * pass or to fail it. */
#include "analysis/diagnose.h"
#include "tests/io_files.h"
#include "tests/test.h"

#include <gsl/gsl_randist.h>

OWNED(tsr_diagnosis)
OWNED(tsr_summary)

enum { N_CHAIN = 4, N_DRAW = 800, N_Q = 6 };
enum { RG, D_MAX, LP, TRIPS, CURVE, N_VARIABLE };

/* What is wrong with a trace. */
typedef struct {
    int n_chain, n_draw;
    double shift;     /* of chain 1, in sd */
    int rest_from;    /* chain 2 stands still from there; 0: never */
    double phi;       /* autocorrelation */
    double curve_off; /* chain 0 has another curve at the last q, in sd */
    int n_trips;      /* of each chain, at the end; -1: chain 3 has none */
    int n_nan;
    int is_frozen; /* rg is the same in all draws */
} recipe;

static double *fill(const recipe *r, int v, gsl_rng *random)
{
    const int n = v == CURVE ? N_Q : 1;
    double *value = array((size_t)(r->n_chain * r->n_draw * n), sizeof *value);
    for (int c = 0; c < r->n_chain; c++)
        for (int k = 0; k < n; k++) {
            double x = gsl_ran_gaussian(random, 1.0), rest = 0.0;
            for (int d = 0; d < r->n_draw; d++) {
                double *to = &value[(c * r->n_draw + d) * n + k];
                if (r->rest_from == 0 || c != 2 || d < r->rest_from)
                    rest = x;
                *to = v == RG ? 30.0 + rest + (c == 1 ? r->shift : 0.0) : x;
                if (v == RG && r->is_frozen)
                    *to = 30.0;
                if (v == D_MAX) /* of a rigid part, but for rounding */
                    *to = 111.0 + 1.5e-14 * c + (d > 50 ? 3e-14 : 0.0);
                if (v == CURVE && c == 0 && k == N_Q - 1)
                    *to += r->curve_off;
                if (v == TRIPS)
                    *to = r->n_trips < 0
                              ? (c == 3 ? 0.0 : 5.0)
                              : floor((double)r->n_trips * (d + 1) / r->n_draw);
                if (v == RG && d < r->n_nan)
                    *to = (double)NAN;
                x = r->phi * x +
                    gsl_ran_gaussian(random, sqrt(1.0 - r->phi * r->phi));
            }
        }
    return value;
}

static const tsr_arrangements *the_arrangements; /* NULL: none */
static int is_frozen;                            /* as the config says */

static tsr_diagnosis *diagnose(const recipe *r, int n_temp)
{
    const double q[N_Q] = {0.01, 0.02, 0.04, 0.08, 0.16, 0.32};
    const tsr_trace_variable variable[N_VARIABLE] = {
        [RG] = ROW(.group = TSR_TRACE_POSTERIOR, .name = "rg",
                   .unit = "Angstrom", .n = 1),
        [D_MAX] = ROW(.group = TSR_TRACE_POSTERIOR, .name = "d_max",
                      .unit = "Angstrom", .n = 1),
        [LP] = {.group = TSR_TRACE_SAMPLE_STATS, .name = "lp", .n = 1},
        [TRIPS] = {.group = TSR_TRACE_SAMPLE_STATS,
                   .name = "round_trips",
                   .n = 1},
        [CURVE] = ROW(.group = TSR_TRACE_POSTERIOR_PREDICTIVE,
                      .name = "intensity_mean", .dim = "q", .n = N_Q,
                      .coord = q, .single = 1)};
    tsr_diagnose_options options =
        ROW(.rhat = 1.01, .ess = 400.0, .n_temp = n_temp, .draws = r->n_draw,
            .is_frozen = is_frozen, .arrangements = the_arrangements);
    const char *path = io_path("trace.h5");
    gsl_rng *random = gsl_rng_alloc(gsl_rng_mt19937);
    tsr_trace *trace;
    tsr_trace_reader *reader;
    tsr_diagnosis *made;
    unlink(path);
    OK(tsr_trace_create(path, r->n_chain, N_VARIABLE, variable, 0, NULL, &trace,
                        &err));
    for (int v = 0; v < N_VARIABLE; v++)
        OK(tsr_trace_append(trace, v, r->n_draw, fill(r, v, random), &err));
    OK(tsr_trace_close(trace, &err));
    gsl_rng_free(random);
    OK(tsr_trace_open(path, &reader, &err));
    OK(tsr_summary_make(reader, &options.summary, &err));
    own_tsr_summary(options.summary);
    OK(tsr_diagnose(reader, &options, &made, &err));
    tsr_trace_reader_free(reader);
    return own_tsr_diagnosis(made);
}

static const tsr_check *check_of(const tsr_diagnosis *d, const char *name)
{
    for (int i = 0; i < d->n; i++)
        if (strcmp(d->check[i].name, name) == 0)
            return &d->check[i];
    fail_msg("no check '%s'", name);
    return NULL;
}

/* The names of the checks that say no, in order, each with a space. */
static void expect_no(const tsr_diagnosis *d, const char *names)
{
    char said[200] = "";
    for (int i = 0; i < d->n; i++)
        if (d->check[i].answer == TSR_CHECK_NO) {
            strcat(said, d->check[i].name);
            strcat(said, " ");
            assert_non_null(d->check[i].remedy);
        }
    assert_string_equal(said, names);
    assert_int_equal(d->is_converged, said[0] == '\0');
}

TEST(test_good)
{
    tsr_diagnosis *d =
        diagnose(&(recipe){N_CHAIN, N_DRAW, .phi = 0.3, .n_trips = 40}, 6);
    for (int i = 0; i < d->n; i++)
        if (d->check[i].answer != (strcmp(d->check[i].name, "arrangements") == 0
                                       ? TSR_CHECK_NOT_ASKED
                                       : TSR_CHECK_YES))
            fail_msg("%s: %s", d->check[i].name, d->check[i].found);
    expect_no(d, "");
    assert_ints(d->n_curve, 1, d->curve[0]->n, N_Q);
    assert_near(d->curve[0]->q[3], 0.08, 0.0);
    assert_has(check_of(d, "exchange")->found,
               "160 round trips in total, 40.0");
}

TEST(test_shifted_chain)
{
    tsr_diagnosis *d =
        diagnose(&(recipe){N_CHAIN, N_DRAW, .shift = 0.8, .n_trips = 40}, 6);
    expect_no(d, "rhat ess ");
    assert_has(check_of(d, "rhat")->found, "1 of 2 variables, largest for rg");
    d = diagnose(&(recipe){N_CHAIN, N_DRAW, .shift = 12.0, .n_trips = 40}, 6);
    expect_no(d, "rhat ess stuck ");
    assert_has(check_of(d, "stuck")->found,
               "chain 1 has its own level of rg, above that of the other");
}

TEST(test_resting_chain)
{
    tsr_diagnosis *d = diagnose(
        &(recipe){N_CHAIN, N_DRAW, .rest_from = 300, .n_trips = 40}, 6);
    assert_int_equal(check_of(d, "stuck")->answer, TSR_CHECK_NO);
    assert_has(check_of(d, "stuck")->found,
               "rg of chain 2 does not change for 501 of 800 draws");
}

/* Where nothing was to move, only what did count. */
TEST(test_still)
{
    const recipe r = {N_CHAIN, N_DRAW, .is_frozen = 1, .n_trips = 40};
    tsr_diagnosis *d = diagnose(&r, 6);
    expect_no(d, "stuck ");
    is_frozen = 1;
    d = diagnose(&r, 6);
    expect_no(d, "");
    is_frozen = 0;
}

TEST(test_slow)
{
    tsr_diagnosis *d =
        diagnose(&(recipe){N_CHAIN, N_DRAW, .phi = 0.9, .n_trips = 40}, 6);
    assert_int_equal(check_of(d, "ess")->answer, TSR_CHECK_NO);
    assert_has(check_of(d, "ess")->remedy, "sampler.draws=");
    assert_false(d->is_converged);
}

TEST(test_curve)
{
    tsr_diagnosis *d = diagnose(
        &(recipe){N_CHAIN, N_DRAW, .curve_off = 1.0, .n_trips = 40}, 6);
    expect_no(d, "profile ");
    assert_has(check_of(d, "profile")->found,
               "at q = 0.32; above 1.01 at 1 of 6");
}

TEST(test_exchange)
{
    tsr_diagnosis *d = diagnose(&(recipe){N_CHAIN, N_DRAW, .n_trips = -1}, 6);
    expect_no(d, "exchange ");
    assert_has(check_of(d, "exchange")->found, "1 of 4 chains");
    d = diagnose(&(recipe){N_CHAIN, N_DRAW, .n_trips = 0}, 1);
    expect_no(d, "");
    assert_int_equal(check_of(d, "exchange")->answer, TSR_CHECK_NOT_ASKED);
}

/* Arrangements: halves that hold others count, where there are enough draws to
 * be sure. */
TEST(test_arrangements)
{
    recipe r = {N_CHAIN, N_DRAW, .n_trips = 40};
    /* the second state's halves differ */
    tsr_arrangement item[3] = {{.state = 1, .half = {1.0, 1.0}},
                               {.state = 2, .half = {0.9, 0.2}},
                               {.state = 2, .half = {0.1, 0.8}}};
    tsr_arrangements a =
        ROW(.n_state = 2, .n_group = {1, 2}, .n_seen = {10, 1000},
            .overlap = {1.0, 0.3}, .n = 3, .item = item);
    the_arrangements = &a;
    tsr_diagnosis *d = diagnose(&r, 6);
    expect_no(d, "arrangements ");
    assert_has(check_of(d, "arrangements")->found, "state 2: 2 arrangements");
    assert_has(check_of(d, "arrangements")->found,
               "0.90 and 0.20, 0.10 and 0.80");
    a.n_seen[1] = 10; /* many draws, but of few a conformation was kept */
    d = diagnose(&r, 6);
    assert_int_equal(check_of(d, "arrangements")->answer, TSR_CHECK_UNKNOWN);
    r.n_draw = 8; /* a handful, so that it may be chance */
    a.n_seen[1] = 32;
    a.overlap[1] = 0.75;
    item[1].half[0] = 0.7, item[1].half[1] = 0.45;
    item[2].half[0] = 0.3, item[2].half[1] = 0.55;
    d = diagnose(&r, 6);
    assert_int_equal(check_of(d, "arrangements")->answer, TSR_CHECK_UNKNOWN);
    r.n_draw = N_DRAW;
    item[1].half[1] = 0.65, item[2].half[1] = 0.35, a.overlap[1] = 0.95;
    d = diagnose(&r, 6);
    expect_no(d, "");
    a.overlap[0] = a.overlap[1] = (double)NAN;
    d = diagnose(&r, 6);
    assert_has(check_of(d, "arrangements")->found, "a single chain");
    the_arrangements = NULL;
}

TEST(test_little)
{
    tsr_diagnosis *d = diagnose(&(recipe){1, N_DRAW, .n_trips = 40}, 6);
    expect_no(d, "chains ");
    d = diagnose(&(recipe){N_CHAIN, 3, .n_trips = 40}, 6);
    assert_false(d->is_converged);
    static const char *const unknown[] = {"ess", "rhat", "stuck", "profile"};
    for (int i = 0; i < 4; i++)
        assert_int_equal(check_of(d, unknown[i])->answer, TSR_CHECK_UNKNOWN);
    d = diagnose(&(recipe){N_CHAIN, N_DRAW, .n_nan = 1, .n_trips = 40}, 6);
    expect_no(d, "finite ");
}

/* ---- comparisons ---- */

TEST(test_rest_and_gap)
{
    const double value[2][6] = {{1, 1, 2, 2, 2, 3}, {7, 8, 9, 9, 8, 7}};
    assert_ints(tsr_longest_constant_run(6, value[0]), 3,
                tsr_longest_constant_run(6, value[1]), 2,
                tsr_longest_constant_run(1, value[0]), 1);
    /* from 1..3 to 7..9, both 2 wide */
    assert_near(tsr_chain_gap(2, 6, value[0], 1), 2.0, 1e-15);
    assert_near(tsr_chain_gap(2, 6, value[0], 0), -2.0, 1e-15);
    assert_true(isnan(tsr_chain_gap(1, 6, value[0], 0)));
}

static test_fixture around_each = {io_setup, io_teardown};
