/* Form-factor tables of three components: exposures, files that are read back,
 * and the algebra of c1 and c2. */
#include "core/vec3.h"
#include "scattering/form_factor.h"
#include "table_text.h"
#include "tests/test.h"
#include "train/train.h"

#include <unistd.h>

OWNED_AS(tsr_form_factor, tsr_form_factor_table)

TEST(neighbours)
{
    tsr_exposure_model m = {.near_ang = 4.0, .far_ang = 10.0};
    double xyz[4][3] = {{0, 0, 0}, {3, 0, 0}, {0, 7, 0}, {0, 0, -9.999}};
    double count[4], e[4];
    tsr_exposure_count(&m, 4, (const double(*)[3])xyz, count);
    double u58 = 0.5 * (1.0 + cos(TSR_PI * (sqrt(58.0) - 4.0) / 6.0));
    assert_near(count[0], 1.5, 1e-6); /* 1 + half-way + nothing */
    assert_nears(1e-12, count[1], (1.0 + u58), count[2], (0.5 + u58));
    assert_true(count[3] > 0.0 && count[3] < 1e-6);

    m.type[0] = (tsr_exposure_type){0.0, 1.0, 1.0};
    m.type[1] = (tsr_exposure_type){2.0, 1.0 + u58, 0.3};
    for (int i = 0; i < 4; i++)
        e[i] = tsr_exposure_at(&m.type[i == 1 || i == 2], count[i]);
    assert_true(e[0] == 0.0 && e[3] == 0.0);
    assert_near(e[1], 1.0, 1e-12); /* the middle: half */
    assert_near(e[2], 2.0 / (1.0 + exp(-0.5 / 0.3)), 1e-12);
}

/* Hydration of the ends of a row of three goes outside: the sum stays, the
 * middle pays. A
 * body without neighbours keeps what it has, so does one that is dry. */
TEST(exposure_outside)
{
    tsr_exposure_model m = {
        .near_ang = 4.0, .far_ang = 10.0, .displacement = 0.4};
    double xyz[5][3] = {
        {-3, 0, 0}, {0, 0, 0}, {3, 0, 0}, {90, 0, 0}, {0, 1, 0}};
    double e[5] = {2.0, 0.0, 2.0, 1.5, 7.0}, sum = 0.0, square = 0.0;
    const int dry[5] = {0, 0, 0, 0, 1};
    OK(tsr_exposure_displace(&m, 5, (const double(*)[3])xyz, dry, e, &err));
    assert_true(e[3] == 1.5 && e[4] == 7.0);
    for (int i = 0; i < 3; i++) {
        sum += e[i];
        square += e[i] * xyz[i][0] * xyz[i][0];
    }
    assert_true(fabs(sum - 4.0) < 1e-12 && e[1] < 0.0);
    double u = 0.5 * (1.0 + cos(TSR_PI / 3.0)); /* of the ends for each other */
    assert_true(fabs(e[1] + 2.0 * 0.4 * 2.0 / (1.0 + u)) < 1e-12);
    assert_near(square, 9.0 * (4.0 - e[1]), 1e-12);
    m.displacement = 0.0;
    e[0] = 2.0;
    OK(tsr_exposure_displace(&m, 1, (const double(*)[3])xyz, NULL, e, &err));
    assert_true(e[0] == 2.0);
}

/* The fit finds the curve that made the sums. */
TEST(exposure_fit)
{
    const tsr_exposure_type made = {1.3, 7.5, 2.1};
    double bins[2 * TSR_EXPOSURE_N_BIN] = {0};
    for (int i = 0; i < 300; i++) {
        double n = 0.05 + 0.1 * (i % 150), many = 1 + i % 7;
        double *bin = tsr_exposure_bin(bins, n), e = tsr_exposure_at(&made, n);
        bin[0] += many;
        bin[1] += many * e;
    }
    tsr_exposure_type found;
    OK(tsr_exposure_fit(bins, &found, &err));
    assert_near(found.largest, made.largest, 1e-4);
    assert_nears(1e-3, found.middle, made.middle, found.width, made.width);
    assert_true(tsr_exposure_bin(bins, 1e9) ==
                bins + 2 * (TSR_EXPOSURE_N_BIN - 1));
    double none[2 * TSR_EXPOSURE_N_BIN] = {3.0};
    OK(tsr_exposure_fit(none, &found, &err));
    assert_true(tsr_exposure_at(&found, 0.0) == 0.0);
}

/* G turns the Gaussian of a sphere of radius r into that of radius c1 r. */
TEST(scale)
{
    double r = 1.62, v = 4.0 / 3.0 * TSR_PI * r * r * r;
    for (double c1 = 0.9; c1 < 1.11; c1 += 0.05)
        for (double q = 0.0; q < 1.0; q += 0.2) {
            double w = v * c1 * c1 * c1;
            double before = v * exp(-q * q * cbrt(v * v) / (4.0 * TSR_PI));
            double after = w * exp(-q * q * cbrt(w * w) / (4.0 * TSR_PI));
            double g = tsr_component_scale(c1, r, q);
            assert_near(g * before / after, 1.0, 1e-12);
        }
}

TEST(algebra)
{
    const double amplitude[3] = {31.0, 24.5, 2.2}; /* one point: a square */
    double partial[TSR_N_COMP_PAIR * 2];
    for (int a = 0; a < 3; a++)
        for (int b = a; b < 3; b++)
            partial[2 * tsr_component_pair(a, b)] = amplitude[a] * amplitude[b];
    double g = 1.07, c2 = -1.5;
    double sum = amplitude[0] - g * amplitude[1] + c2 * amplitude[2];
    assert_near(tsr_component_intensity(partial, 2, g, c2), sum * sum, 1e-10);
    static const int pair[6][2] = {{0, 0}, {0, 1}, {0, 2},
                                   {1, 1}, {1, 2}, {2, 2}};
    for (int i = 0; i < 6; i++)
        assert_int_equal(tsr_component_pair(pair[i][0], pair[i][1]), i);
}

/* A table that a few atoms could have made, with short numbers. */
static tsr_form_factor_table *example(void)
{
    tsr_form_factor_table *t =
        tsr_form_factor_new(TSR_BODIES_TWO, TSR_N_COMP, 21, 0.05);
    assert_non_null(t);
    for (int i = 0; i < TSR_N_COMP * 21 * 21; i++)
        t->amplitude[i] = 30.0 - 10.0 * (i / 441) + 0.01 * (i % 441);
    for (int i = 0; i < TSR_N_COMP_PAIR * 21 * 21; i++)
        t->excess[i] = 0.125 * (i % 64) - 2.0;
    for (int i = 0; i < 21; i++) {
        t->atoms[i] = 1.0 + i;
        t->radius[i] = 1.5 + 0.01 * i;
        t->exposure.type[i] = (tsr_exposure_type){0.5 + i, 7.0 + i, 2.0 + i};
    }
    t->source = strdup("structures: 2\n  a b");
    return own_tsr_form_factor(t);
}

TEST(folding)
{
    tsr_form_factor_table *t = example();
    FREED(tsr_form_factor) f;
    OK(tsr_form_factor_fold(t, &f, &err));
    double e[TSR_MAX_TYPE * 21];
    OK(tsr_form_factor_resample(f, 21, 0.05, NULL, e, &err));
    size_t n = 441;
    for (size_t i = 0; i < n; i++) {
        assert_near(f->amplitude[i], (t->amplitude[i] - t->amplitude[n + i]),
                    1e-12);
        double x = t->excess[i] - 2.0 * t->excess[n + i] + t->excess[3 * n + i];
        assert_near(e[i], x, 1e-10);
    }
    for (size_t i = 0; i < n; i++) /* unfolding makes the solute anew */
        t->amplitude[i] = t->excess[i] = 0.0;
    tsr_form_factor_unfold(f, t);
    tsr_form_factor_table *again;
    OK(tsr_form_factor_fold(t, &again, &err));
    for (size_t i = 0; i < n; i++) {
        assert_near(again->amplitude[i], f->amplitude[i], 1e-12);
        assert_near(again->excess[i], f->excess[i], 1e-10);
    }
    tsr_form_factor_free(again);
    int type[3] = {0, 2, 2};
    double r = (1.5 + 2.0 * 3.0 * 1.52) / 7.0;
    assert_near(tsr_component_radius(t, 3, type), r, 1e-12);
    tsr_form_factor_free(NULL);
}

static void file_name(char name[64])
{
    snprintf(name, 64, "/tmp/tessera-components-%ld.dat", (long)getpid());
}

TEST(round_trip)
{
    char name[64];
    file_name(name);
    tsr_form_factor_table *t = example(), *u;
    OK(tsr_form_factor_write(t, name, &err));
    OK(tsr_form_factor_read(name, &u, &err));
    assert_ints(u->model, t->model, u->n_comp, TSR_N_COMP, u->n_q, 21);
    assert_true(u->dq_inv_ang == t->dq_inv_ang);
    assert_string_equal(u->source, t->source);
    assert_true(u->exposure.near_ang == t->exposure.near_ang);
    assert_true(u->exposure.far_ang == t->exposure.far_ang);
    assert_true(u->exposure.displacement == t->exposure.displacement);
    for (int i = 0; i < TSR_N_COMP * 441; i++)
        assert_near(u->amplitude[i], t->amplitude[i], 1e-7 * 40.0);
    for (int i = 0; i < TSR_N_COMP_PAIR * 441; i++)
        assert_near(u->excess[i], t->excess[i], 1e-5 * 6.0);
    for (int i = 0; i < 21; i++) {
        assert_near(u->atoms[i], t->atoms[i], 1e-4);
        assert_near(u->radius[i], t->radius[i], 1e-5);
        assert_true(u->exposure.type[i].largest == 0.5 + i);
        assert_true(u->exposure.type[i].middle == 7.0 + i);
        assert_true(u->exposure.type[i].width == 2.0 + i);
    }
    tsr_form_factor_free(u);

    double *a = array(TSR_N_COMP * 441 * sizeof *a, 1);
    double *e = array(TSR_N_COMP_PAIR * 441 * sizeof *e, 1);
    OK(tsr_form_factor_resample(t, 11, 0.1, a, e, &err));
    for (int i = 0; i < TSR_N_COMP_PAIR * 21; i++)
        assert_near(e[i * 11 + 7], t->excess[i * 21 + 14], 1e-12);
    for (int i = 0; i < TSR_N_COMP * 21; i++)
        assert_near(a[i * 11 + 7], t->amplitude[i * 21 + 14], 1e-12);
    assert_int_equal(tsr_form_factor_resample(t, 12, 0.1, a, e, NULL),
                     TSR_E_RANGE);
    remove(name);
}

TEST(bad_files)
{
    static const struct {
        const char *after, *old, *new, *message;
    } spoil[] = {{"", "components 2", "components 7", "tessera components 2"},
                 {"", "bodies two", "bodies ten", "'ten'"},
                 {"", "bodies two", "bodies one", "type 0"},
                 {"", "grid 21", "grid 2.5", "grid"},
                 {"", "neighbours 4 10", "neighbours 4 3", "ascending"},
                 {"", "#: carry 0.33", "#: carry", "carry"},
                 {"", "#: type  3", "#: type  4", "type 3"},
                 {"", "ASN side chain", "ASN", "type 3"},
                 {"#: type  4", "6.5", "x", "type"},
                 {"#: type  4", "     4.5 ", "    -4.5 ", "exposure"},
                 {"# TYR side chain\n", "19 0.05 ", "19 0.06 ", "q = 0.05"},
                 {"# TYR side chain\n", "19 0.05 ", "19 0.05 nan ", "finite"},
                 {"# TYR side chain\n", "19 0.05 ", "19 0.05 7 ", "follows"},
                 {"# TYR side chain\n", "19 0.1 ", "# 19 0.1 ", "q = 0.1"}};
    char name[64];
    file_name(name);
    tsr_form_factor_table *t = example();
    OK(tsr_form_factor_write(t, name, &err));
    char *text = text_of(name);
    for (size_t i = 0; i < COUNT_OF(spoil); i++) {
        err = (tsr_err){0};
        int line = write_spoilt(name, text, spoil[i].after, spoil[i].old,
                                spoil[i].new);
        if (line == 0)
            fail_msg("no '%s'", spoil[i].old);
        FAILS(tsr_form_factor_read(name, &t, &err), TSR_E_DATA,
              spoil[i].message);
        assert_null(t);
        const char *place = format("%s:", name);
        assert_int_equal(strncmp(err.message, place, strlen(place)), 0);
    }
    free(text);
    remove(name);
    assert_int_equal(tsr_form_factor_read(name, &t, NULL), TSR_E_NOINPUT);
}
