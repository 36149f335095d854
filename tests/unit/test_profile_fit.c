/* Curves from partial profiles, the longest run of residuals (CorMap) and
 * bounded fits equal closed forms. */
#include "scattering/debye.h"
#include "scattering/profile_fit.h"
#include "tests/test.h"

enum { N_ATOM = 200, N_DATA = 150 };

static double uniform(uint64_t *state)
{
    *state =
        *state * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
    return (double)(*state >> 11) * 0x1p-53;
}

static void near(double got, double want, double tolerance)
{
    if (!(fabs(got - want) <= tolerance))
        fail_msg("%.12g is not %.12g within %g", got, want, tolerance);
}

/* A ball of atoms: vacuum, solvent and, on half of them, hydration. */
static tsr_partials *make_ball(void)
{
    static double xyz[N_ATOM][3], weight[N_ATOM];
    static int type[N_ATOM];
    uint64_t state = 11;
    tsr_partials *p = calloc(1, sizeof *p);
    for (int i = 0; i < N_ATOM; i++) {
        double r2;
        do {
            r2 = 0.0;
            for (int c = 0; c < 3; c++) {
                xyz[i][c] = 40.0 * (uniform(&state) - 0.5);
                r2 += xyz[i][c] * xyz[i][c];
            }
        } while (r2 > 400.0);
        weight[i] = r2 > 196.0 ? 0.5 : 0.0;
    }
    p->n_comp = 3;
    p->radius_ang = 1.6;
    p->grid = tsr_q_grid_make(40.0, 0.4);
    size_t n_q = (size_t)p->grid.n_q;
    p->pair = calloc(6 * n_q, sizeof *p->pair);
    double *factor = array(3 * n_q, sizeof *factor);
    for (size_t k = 0; k < n_q; k++) {
        double q = (double)k * p->grid.dq_inv_ang;
        factor[k] = 7.0 * exp(-q * q);
        factor[n_q + k] = 6.0 * exp(-0.8 * q * q);
        factor[2 * n_q + k] = 3.5 * exp(-0.4 * q * q);
    }
    tsr_debye_spec spec =
        ROW(.n = N_ATOM, .n_type = 1, .n_comp = 3, .n_q = p->grid.n_q,
            .dq_inv_ang = p->grid.dq_inv_ang, .xyz = (const double(*)[3])xyz,
            .type = type, .weight = weight, .weighted = 2,
            .form_factor = factor);
    OK(tsr_debye_reference(&spec, NULL, p->pair, &err));
    return p;
}

static int set_up(void **state)
{
    *state = make_ball();
    return 0;
}

static int tear_down(void **state)
{
    tsr_partials_clear(*state);
    free(*state);
    return 0;
}

static tsr_partial_curves at_data(const tsr_partials *p)
{
    double q[N_DATA];
    tsr_partial_curves curves;
    for (int k = 0; k < N_DATA; k++)
        q[k] = 0.01 + 0.39 * k / (N_DATA - 1);
    OK(tsr_partial_curves_make(p, N_DATA, q, &curves, &err));
    return curves;
}

/* ---- contrast ---- */

/* I = |A_vacuum - G A_solvent + c2 A_hydration|^2, whatever the order in which
 * the partial profiles are kept: at q = 0 from the sums of amplitudes. */
TEST(contrast_at_zero)
{
    const tsr_partials *p = *state;
    CLEARED(tsr_partial_curves) curves;
    double zero = 0.0, intensity;
    OK(tsr_partial_curves_make(p, 1, &zero, &curves, &err));
    double v = sqrt(curves.pair[0]), s = sqrt(curves.pair[3]),
           h = sqrt(curves.pair[5]);
    tsr_contrast_intensity(&curves, 1.03, -1.5, &intensity);
    double g = 1.03 * 1.03 * 1.03;
    near(intensity / pow(v - g * s - 1.5 * h, 2.0), 1.0, 1e-4);
    /* A displaced sphere alone: the Gaussian of V becomes that of c1^3 V. */
    double volume = 4.0 / 3.0 * 3.14159265358979 * pow(1.6, 3.0), q = 0.4;
    double pi4 = 4.0 * 3.14159265358979;
    double before = volume * exp(-q * q * pow(volume, 2.0 / 3.0) / pi4);
    double after = g * volume * exp(-q * q * pow(g * volume, 2.0 / 3.0) / pi4);
    double displaced[6] = {[3] = before * before}, none = 0.0;
    const tsr_partial_curves sphere =
        ROW(.n_comp = 3, .n = 1, .q = &q, .pair = displaced, .self = &none,
            .radius_ang = 1.6);
    tsr_contrast_intensity(&sphere, 1.03, 0.0, &intensity);
    near(intensity / (after * after), 1.0, 1e-12);
}

TEST(guinier_of_the_curve)
{
    const tsr_partials *p = *state;
    double rg, i0;
    /* Two atoms at distance d in a structure of their own: sinc is not a
     * Gaussian, but Guinier's line meets d/2 to a few per cent. */
    CLEARED(tsr_partials)
    two = {.n_comp = 1, .grid = tsr_q_grid_make(30.0, 0.5)};
    two.pair = calloc((size_t)two.grid.n_q, sizeof *two.pair);
    for (int k = 0; k < two.grid.n_q; k++) {
        double x = 20.0 * k * two.grid.dq_inv_ang;
        two.pair[k] = 2.0 + 2.0 * (k == 0 ? 1.0 : sin(x) / x);
    }
    OK(tsr_contrast_guinier(&two, 1.0, 0.0, 14.0, &rg, &i0, &err));
    near(rg, 10.0, 0.5);
    near(i0, 4.0, 1e-4);
    OK(tsr_contrast_guinier(p, 1.0, 0.0, 15.5, &rg, &i0, &err));
    near(rg, 15.5, 1.5); /* a ball of radius 20 */
}

/* ---- runs ---- */

/* All series of 14 tosses. */
TEST(runs_by_counting)
{
    enum { N = 14 };
    int count[N + 2] = {0};
    for (unsigned s = 0; s < 1u << N; s++) {
        double residual[N];
        for (int k = 0; k < N; k++)
            residual[k] = s >> k & 1 ? 1.0 : -1.0;
        int run = tsr_cormap_longest_run(N, residual);
        for (int r = 0; r <= run; r++)
            count[r]++;
    }
    for (int run = 0; run <= N + 1; run++)
        near(tsr_cormap_p(N, run), count[run] / (double)(1u << N), 1e-15);
    double one_zero[5] = {1.0, 2.0, 0.0, 1.0, 1.0};
    assert_int_equal(tsr_cormap_longest_run(5, one_zero), 2);
    /* Far out: a run of 60 among 100, 2^-59 (1 + 40 / 2). */
    near(tsr_cormap_p(100, 60) / (21.0 * ldexp(1.0, -59)), 1.0, 1e-9);
}

/* ---- fits ---- */

typedef struct {
    double intensity[N_DATA], sigma[N_DATA], curve[N_DATA];
} data_set;

static void make_data(const tsr_partial_curves *curves, double c1, double c2,
                      double scale, double background, data_set *d)
{
    tsr_contrast_intensity(curves, c1, c2, d->intensity);
    for (int k = 0; k < N_DATA; k++) {
        d->intensity[k] = scale * d->intensity[k] + background;
        d->sigma[k] = 0.01 * fabs(d->intensity[k]) + 1e-6;
    }
}

TEST(fit_finds_what_was_put_in)
{
    CLEARED(tsr_partial_curves) curves = at_data(*state);
    data_set d;
    tsr_profile_fit fit;
    tsr_profile_fit_options o = tsr_profile_fit_defaults;
    o.fit_background = 1;
    double scale = 1e-6;
    make_data(&curves, 1.021, 1.7, scale, 0.003, &d);
    OK(tsr_profile_fit_make(&curves, d.intensity, d.sigma, &o, &fit, d.curve,
                            &err));
    near(fit.c1, 1.021, 1e-5);
    near(fit.c2, 1.7, 1e-3);
    near(fit.scale / scale, 1.0, 1e-4);
    near(fit.background, 0.003, 1e-6);
    near(fit.chi2, 0.0, 1e-8);
    assert_ints(fit.n_parameter, 4, fit.c1_at, 0, fit.c2_at, 0);
    for (int k = 0; k < N_DATA; k++)
        near(d.curve[k] / d.intensity[k], 1.0, 1e-5);
}

/* Two curves of one structure: c1 and c2 are the same for both, scale and
 * background are not, and a fixed background is kept. */
static void predict_both(void *context, double c1, double c2, double *model)
{
    tsr_contrast_intensity(context, c1, c2, model);
    tsr_contrast_intensity(context, c1, c2, model + N_DATA);
}

TEST(curves_share_contrast)
{
    const double c1[] = {0.95, 1.05}, c2[] = {0.0, 4.0};
    CLEARED(tsr_partial_curves) curves = at_data(*state);
    tsr_profile_fit fit[2];
    data_set d[2];
    tsr_profile_fit_curve both[2];
    make_data(&curves, 0.98, 2.3, 1e-6, 0.003, &d[0]);
    make_data(&curves, 0.98, 2.3, 4e-6, 0.001, &d[1]);
    for (int i = 0; i < 2; i++)
        both[i] = (tsr_profile_fit_curve){.n = N_DATA,
                                          .intensity = d[i].intensity,
                                          .sigma = d[i].sigma,
                                          .fit_background = i == 0,
                                          .background = 0.001,
                                          .fit = &fit[i],
                                          .curve = d[i].curve};
    OK(tsr_profile_fit_joint(2, both, c1, c2, predict_both, &curves, &err));
    for (int i = 0; i < 2; i++) {
        near(fit[i].c1, 0.98, 1e-5);
        near(fit[i].c2, 2.3, 1e-3);
        near(fit[i].chi2, 0.0, 1e-8);
        near(d[i].curve[3] / d[i].intensity[3], 1.0, 1e-5);
        assert_int_equal(fit[i].n_parameter, i == 0 ? 4 : 3);
    }
    near(fit[0].scale / 1e-6, 1.0, 1e-4);
    near(fit[1].scale / 4e-6, 1.0, 1e-4);
    near(fit[0].background, 0.003, 1e-6);
}

/* Beyond a bound the fit stays at it and says so; the other parameter is where
 * it is best there: no value of it is better. */
TEST(bounds_are_marked)
{
    CLEARED(tsr_partial_curves) curves = at_data(*state);
    data_set d;
    tsr_profile_fit fit, other;
    make_data(&curves, 1.0, 6.0, 1e-6, 0.0, &d);
    OK(tsr_profile_fit_make(&curves, d.intensity, d.sigma,
                            &tsr_profile_fit_defaults, &fit, d.curve, &err));
    assert_int_equal(fit.c2_at, 1);
    near(fit.c2, 4.0, 6e-3);
    assert_int_equal(fit.c1_at, 0);
    for (int step = -20; step <= 20; step++) {
        tsr_profile_fit_options o = tsr_profile_fit_defaults;
        o.c2[0] = o.c2[1] = 4.0;
        o.c1[0] = o.c1[1] = 1.0 + 0.0024 * step;
        OK(tsr_profile_fit_make(&curves, d.intensity, d.sigma, &o, &other,
                                d.curve, &err));
        assert_true(other.chi2 >= fit.chi2 * (1.0 - 1e-4));
        assert_int_equal(other.c1_at, 0); /* fixed is not at a bound */
        assert_int_equal(other.n_parameter, 1);
    }
    make_data(&curves, 0.9, 0.0, 1e-6, 0.0, &d);
    OK(tsr_profile_fit_make(&curves, d.intensity, d.sigma,
                            &tsr_profile_fit_defaults, &fit, d.curve, &err));
    assert_int_equal(fit.c1_at, -1);
}

TEST(nothing_fits_the_opposite)
{
    CLEARED(tsr_partial_curves) curves = at_data(*state);
    data_set d;
    tsr_profile_fit fit;
    make_data(&curves, 1.0, 0.0, -1e-6, 0.0, &d);
    assert_int_equal(tsr_profile_fit_make(&curves, d.intensity, d.sigma,
                                          &tsr_profile_fit_defaults, &fit,
                                          d.curve, &err),
                     TSR_E_NUMERIC);
}

/* One component: a scale, and S(q) counts. */
TEST(one_component)
{
    const tsr_partials *three = *state;
    size_t n_q = (size_t)three->grid.n_q;
    CLEARED(tsr_partials) one = {.n_comp = 1, .grid = three->grid};
    one.pair = calloc(n_q, sizeof *one.pair);
    one.self = calloc(n_q, sizeof *one.self);
    for (size_t k = 0; k < n_q; k++) {
        one.self[k] = 300.0 * (double)(k * k) / (double)(n_q * n_q);
        one.pair[k] = three->pair[k] - one.self[k];
    }
    CLEARED(tsr_partial_curves) curves = at_data(&one), whole = at_data(three);
    data_set d;
    tsr_profile_fit fit;
    for (int k = 0; k < N_DATA; k++) {
        d.intensity[k] = 2.0 * whole.pair[k];
        d.sigma[k] = 0.01 * d.intensity[k];
    }
    OK(tsr_profile_fit_make(&curves, d.intensity, d.sigma,
                            &tsr_profile_fit_defaults, &fit, d.curve, &err));
    near(fit.scale, 2.0, 1e-5);
    near(fit.chi2, 0.0, 1e-5);
    assert_int_equal(fit.n_parameter, 1);
    tsr_partial_curves_clear(&whole);
}

static test_fixture around_all = {set_up, tear_down};
