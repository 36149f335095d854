/* Summaries are right for awkward traces: NaN, few draws, angles, damage, a
 * prior alone. */
#include "analysis/summary.h"
#include "tests/io_files.h"
#include "tests/test.h"

#include <hdf5.h>
#include <sys/stat.h>

OWNED(tsr_summary)
OWNED(tsr_trace_reader)

enum { N_CHAIN = 3, N_DRAW = 600, N_STATE = 2 };
enum { RG, PHI, WEIGHT, LP, N_VARIABLE };

/* Numbers without a pattern that an autocorrelation could see, in (0, 1). */
static double noise(int i)
{
    uint32_t state = (uint32_t)i * 2654435761u + 12345u;
    io_random(&state);
    io_random(&state);
    return (io_random(&state) + 0.5) / 16777216.0;
}

typedef struct {
    int n_draw;
    double middle, width; /* of rg */
    double bad;           /* replaces some rg */
    int n_bad;
    int is_constant; /* but for `width` between chains */
} recipe;

static double value_of(const recipe *r, int v, int c, int d, int k)
{
    const int i = ((c * r->n_draw + d) * N_VARIABLE + v) * N_STATE + k;
    if (v == RG && d < r->n_bad)
        return r->bad;
    if (v == PHI) { /* around 178 degrees, so across the end of the range */
        double x = 178.0 + 20.0 * (noise(i) - 0.5);
        return x > 180.0 ? x - 360.0 : x;
    }
    return r->middle + r->width * (r->is_constant ? c : noise(i) - 0.5);
}

static void make(const char *path, const recipe *r)
{
    static const tsr_trace_variable variable[N_VARIABLE] = {
        [RG] = ROW(.group = TSR_TRACE_POSTERIOR, .name = "rg",
                   .unit = "Angstrom", .n = 1),
        [PHI] = ROW(.group = TSR_TRACE_POSTERIOR, .name = "phi",
                    .unit = "degree", .n = 1),
        [WEIGHT] = ROW(.group = TSR_TRACE_POSTERIOR, .name = "weight",
                       .dim = "state", .single = 1, .n = N_STATE),
        [LP] = {.group = TSR_TRACE_SAMPLE_STATS, .name = "lp", .n = 1}};
    tsr_trace *trace;
    OK(tsr_trace_create(path, N_CHAIN, N_VARIABLE, variable, 0, NULL, &trace,
                        &err));
    for (int v = 0; v < N_VARIABLE; v++) {
        const int n = variable[v].n;
        double *value =
            array((size_t)(N_CHAIN * r->n_draw * n + 1) * sizeof *value, 1);
        double *to = value;
        for (int c = 0; c < N_CHAIN; c++)
            for (int d = 0; d < r->n_draw; d++)
                for (int k = 0; k < n; k++)
                    *to++ = value_of(r, v, c, d, k);
        OK(tsr_trace_append(trace, v, r->n_draw, value, &err));
    }
    OK(tsr_trace_close(trace, &err));
}

static tsr_trace_reader *reader_of(const char *path)
{
    tsr_trace_reader *reader;
    OK(tsr_trace_open(path, &reader, &err));
    return own_tsr_trace_reader(reader);
}

static tsr_summary *summarise(const char *path)
{
    tsr_summary *summary;
    OK(tsr_summary_make(reader_of(path), &summary, &err));
    return own_tsr_summary(summary);
}

static tsr_summary *made(recipe r)
{
    make(io_path("a.h5"), &r);
    return summarise(io_path("a.h5"));
}

static const recipe usual = {.n_draw = N_DRAW, .middle = 30.0, .width = 4.0};

/* What a printer says of it; caller frees. */
static tsr_status print_json(const tsr_summary *summary, FILE *out,
                             tsr_err *err)
{
    tsr_json j = {.out = out};
    (void)err;
    tsr_json_object(&j, NULL);
    tsr_summary_put(summary, &j);
    tsr_json_close(&j);
    return TSR_OK;
}

static char *printed(const tsr_summary *summary,
                     tsr_status (*print)(const tsr_summary *, FILE *,
                                         tsr_err *))
{
    FILE *out = text_begin();
    OK(print(summary, out, &err));
    return text_end(out);
}

TEST(test_usual)
{
    tsr_summary *s = made(usual);
    assert_int_equal(s->n, 5);
    assert_string_equal(s->item[2].name, "weight[0]");
    assert_string_equal(s->item[3].name, "weight[1]");
    assert_string_equal(s->item[4].name, "lp");
    for (int i = 0; i < s->n; i++) {
        assert_int_equal(s->item[i].flaw, TSR_FLAW_NONE);
        assert_near(s->item[i].value.rhat, 1.0, 0.01);
    }
    const tsr_summary_item *rg = tsr_summary_find(s, "rg");
    assert_near(rg->value.mean, 30.0, 0.15);
    assert_near(rg->value.sd, 4.0 / sqrt(12.0), 0.04);
    assert_null(tsr_summary_find(s, "weight"));
}

TEST(test_angle)
{
    tsr_summary *s = made(usual);
    const tsr_summary_item *phi = tsr_summary_find(s, "phi");
    assert_true(phi->is_circular);
    assert_near(phi->value.mean, 178.0, 0.7);
    assert_near(phi->value.sd, 20.0 / sqrt(12.0), 0.2);
    assert_nears(0.7, phi->value.q5, 169.0, phi->value.q95, 187.0);
    assert_near(phi->value.rhat, 1.0, 0.01);
    assert_has(printed(s, print_json), "\"circular\": true");
}

/* A turn of all angles turns the location alone. */
TEST(test_turned)
{
    enum { N = 400 };
    double a[N], b[N];
    tsr_convergence first, second;
    for (int turn = 0; turn < 2; turn++) {
        const double whole = turn == 0 ? 360.0 : 2.0 * 3.14159265358979324;
        for (int i = 0; i < N; i++) {
            a[i] = whole * 0.3 * (noise(i) - 0.5);
            b[i] = a[i] + 0.45 * whole;
            b[i] -= b[i] > 0.5 * whole ? whole : 0.0;
        }
        OK(tsr_circular_make(0, 4, N / 4, whole, a, &first, &err));
        OK(tsr_circular_make(0, 4, N / 4, whole, b, &second, &err));
        assert_nears(1e-12 * whole, remainder(second.mean - first.mean, whole),
                     0.45 * whole, second.median - second.mean,
                     first.median - first.mean, second.sd, first.sd);
        /* the fold ties the middle two draws, and rounding breaks the tie */
        assert_near(second.rhat, first.rhat, 1e-5);
        assert_near(second.ess_bulk, first.ess_bulk, 1e-6);
        /* a narrow spread is that of a line */
        for (int i = 0; i < N; i++) {
            a[i] = 0.4 * whole + 1e-9 * noise(i);
            b[i] = a[i] - 0.4 * whole;
        }
        OK(tsr_circular_make(0, 4, N / 4, whole, a, &first, &err));
        OK(tsr_convergence_make(0, 4, N / 4, b, &second, &err));
        assert_near(first.sd, second.sd, 0.01 * second.sd);
    }
    assert_true(tsr_circular_turn("degree") == 360.0);
    assert_true(tsr_circular_turn("Angstrom") == 0.0);
    assert_true(tsr_circular_turn(NULL) == 0.0);
}

TEST(test_not_finite)
{
    const double bad[] = {(double)NAN, (double)INFINITY};
    for (int i = 0; i < 2; i++) {
        tsr_summary *s = made((recipe){.n_draw = 20,
                                       .middle = 30.0,
                                       .width = 4.0,
                                       .bad = bad[i],
                                       .n_bad = 2});
        const tsr_summary_item *rg = tsr_summary_find(s, "rg");
        assert_int_equal(rg->flaw, TSR_FLAW_NOT_FINITE);
        assert_has(rg->flaw_text, "6 of 60 draws of rg");
        assert_true(isnan(rg->value.mean) && isnan(rg->value.rhat));
        assert_int_equal(tsr_summary_find(s, "lp")->flaw, TSR_FLAW_NONE);
        assert_has(printed(s, tsr_summary_print), "nan");
        assert_has(printed(s, print_json), "\"mean\": null");
        assert_has(printed(s, print_json), "\"note\": \"6 of 60 draws");
    }
}

/* A damaged trace can have values whose variance overflows. */
TEST(test_decimals)
{
    assert_int_equal(tsr_summary_decimals(&(tsr_convergence){.mcse = 0.34}), 2);
    assert_int_equal(
        tsr_summary_decimals(&(tsr_convergence){.mcse = NAN, .sd = INFINITY}),
        3);
}

TEST(test_few)
{
    tsr_summary *s = made((recipe){.n_draw = 3, .middle = 30.0, .width = 4.0});
    const tsr_summary_item *rg = tsr_summary_find(s, "rg");
    assert_int_equal(rg->flaw, TSR_FLAW_FEW_DRAWS);
    assert_near(rg->value.mean, 30.0, 2.0);
    assert_has(printed(s, tsr_summary_print), " few");
    assert_has(printed(s, print_json),
               "\"note\": \"fewer than 4 draws per chain\"");
}

/* JSON has no infinity: what it is for is said. */
TEST(test_frozen)
{
    tsr_summary *s = made((recipe){
        .n_draw = N_DRAW, .middle = 30.0, .width = 1.0, .is_constant = 1});
    assert_true(isinf(tsr_summary_find(s, "rg")->value.rhat));
    assert_has(printed(s, print_json),
               "\"rhat\": null, \"note\": \"rhat is infinite");
}

TEST(test_constant)
{
    tsr_summary *s =
        made((recipe){.n_draw = 20, .middle = 30.0, .is_constant = 1});
    const tsr_summary_item *rg = tsr_summary_find(s, "rg");
    assert_int_equal(rg->flaw, TSR_FLAW_CONSTANT);
    assert_true(rg->value.mean == 30.0 && rg->value.sd == 0.0);
}

/* As tessera 0.1 left its files: without a seal. */
static void cut_seal(const char *path)
{
    struct stat info;
    assert_int_equal(stat(path, &info), 0);
    assert_int_equal(truncate(path, info.st_size - 64), 0);
}

/* Garbage over the one block that holds the weights. */
static void damage(const char *path)
{
    const unsigned char garbage[64] = {0xff, 0x12, 0x99};
    hsize_t offset[3], size;
    unsigned mask;
    haddr_t at;
    hid_t file = H5Fopen(path, H5F_ACC_RDONLY, H5P_DEFAULT);
    hid_t data = H5Dopen2(file, "posterior/weight", H5P_DEFAULT);
    hid_t space = H5Dget_space(data);
    assert_true(data >= 0);
    assert_true(H5Dget_chunk_info(data, space, 0, offset, &mask, &at, &size) >=
                0);
    H5Sclose(space);
    H5Dclose(data);
    H5Fclose(file);
    FILE *raw = fopen(path, "r+b");
    assert_non_null(raw);
    assert_true(size > sizeof garbage);
    assert_int_equal(fseek(raw, (long)at, SEEK_SET), 0);
    assert_int_equal(fwrite(garbage, 1, sizeof garbage, raw), sizeof garbage);
    assert_int_equal(fclose(raw), 0);
}

TEST(test_damaged)
{
    const char *path = io_path("damaged.h5");
    make(path, &usual);
    damage(path);
    tsr_trace_reader *reader;
    FAILS(tsr_trace_open(path, &reader, &err), TSR_E_DATA, "damaged.h5");
    cut_seal(path);
    tsr_summary *s = summarise(path);
    assert_int_equal(s->n, 4); /* the weights' entries are one item now */
    const tsr_summary_item *weight = tsr_summary_find(s, "weight");
    assert_non_null(weight);
    assert_int_equal(weight->flaw, TSR_FLAW_UNREADABLE);
    assert_has(weight->flaw_text, "cannot read posterior/weight");
    assert_near(tsr_summary_find(s, "rg")->value.mean, 30.0, 0.15);
    assert_has(printed(s, tsr_summary_print), "damaged");
}

TEST(test_prior)
{
    const recipe prior = {.n_draw = 200, .middle = 25.0, .width = 16.0};
    tsr_summary *s = made(usual);
    make(io_path("prior.h5"), &prior);
    OK(tsr_summary_add_prior(s, reader_of(io_path("prior.h5")), &err));
    assert_true(s->has_prior);
    const tsr_summary_item *rg = tsr_summary_find(s, "rg");
    assert_true(rg->has_prior);
    assert_near(rg->prior.mean, 25.0, 1.0);
    assert_near(rg->contraction, 1.0 - 1.0 / 16.0, 0.01);
    assert_false(tsr_summary_find(s, "lp")->has_prior);
    assert_has(printed(s, tsr_summary_print), "prior_mean");
    assert_has(printed(s, tsr_summary_print), "94 %");
    assert_has(printed(s, print_json), "\"prior\": {\"mean\": 2");
}

/* Of poses and tails distances and the slowest are shown, of each kind. */
TEST(test_poses)
{
    static const struct {
        const char *name;
        double ess;
        int hidden;
    } all[] = {{"rg", 9.0, 0},           {"pose_1_distance", 8.0, 0},
               {"pose_1_to_x", 5.0, 1},  {"pose_1_twist", 4.0, 0},
               {"pose_2_twist", 6.0, 1}, {"tail_1_x", 7.0, 0},
               {"tail_1_y", 7.5, 1}};
    enum { N = COUNT_OF(all) };
    tsr_summary_item item[N] = {{0}};
    tsr_summary s = {.n = N, .item = item};
    char name[N][24];
    for (int i = 0; i < N; i++) {
        snprintf(name[i], sizeof name[i], "%s", all[i].name);
        item[i].name = name[i];
        item[i].value.ess_bulk = item[i].value.ess_tail = all[i].ess;
    }
    assert_int_equal(tsr_summary_hide_poses(&s), 3);
    for (int i = 0; i < N; i++)
        assert_int_equal(item[i].is_hidden, all[i].hidden);
    assert_has(printed(&s, tsr_summary_print), "pose_1_twist");
    assert_null(strstr(printed(&s, tsr_summary_print), "pose_1_to_x"));
    assert_has(printed(&s, print_json), "pose_1_to_x");
}

static test_fixture around_each = {io_setup, io_teardown};
