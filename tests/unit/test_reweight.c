/* Smoothed weights equal those of ArviZ, reweighted posteriors equal
 * quadrature, and maximum-entropy weights satisfy the conditions of the
 * minimum. */
#include "analysis/loo.h"
#include "analysis/maxent.h"
#include "analysis/reweight.h"
#include "tests/io_files.h"
#include "tests/saxs_likelihood.h"
#include "tests/test.h"

#include <gsl/gsl_randist.h>

#define PI 3.14159265358979323846

OWNED(tsr_trace_reader)

enum { N_Q = 60, N_CHAIN = 2, N_DRAW = 1500, N = N_CHAIN * N_DRAW, N_R = 400 };
static const double first_ang = 22.0, last_ang = 28.0;
static const double width = 0.5; /* of log s */

/* ---- weights alone ---- */

/* az.psislw(x) for x = -power log(1 - u), u the middles of n
 * equal parts in a fixed disorder. */
TEST(test_psis)
{
    static const struct {
        double power, k, ess, largest;
    } want[] = {{0.45 * 0.9, 0.42007954894248917, 268.89111868057694,
                 -3.798106893885162},
                {0.45 * 4.0, 1.5424187143572967, 2.347187410130731,
                 -0.4491638436216264}};
    enum { SIZE = 400 };
    for (size_t c = 0; c < COUNT_OF(want); c++) {
        double x[SIZE], top = -HUGE_VAL, sum = 0.0;
        tsr_psis psis;
        for (int i = 0; i < SIZE; i++)
            x[i] = -want[c].power * log1p(-((i * 7919) % SIZE + 0.5) / SIZE);
        OK(tsr_psis_smooth(SIZE, x, &psis, &err));
        for (int i = 0; i < SIZE; i++) {
            top = fmax(top, x[i]);
            sum += exp(x[i]);
        }
        assert_near(sum, 1.0, 1e-12);
        assert_near(psis.pareto_k, want[c].k, 1e-9);
        assert_near(psis.ess, want[c].ess, 1e-7);
        assert_near(top, want[c].largest, 1e-9);
    }
    double none[3] = {-HUGE_VAL, -HUGE_VAL, -HUGE_VAL};
    double bad[3] = {0.0, (double)NAN, 0.0}, same[3] = {7.0, 7.0, 7.0};
    tsr_psis psis;
    assert_int_equal(tsr_psis_smooth(3, none, &psis, NULL), TSR_E_NUMERIC);
    assert_int_equal(tsr_psis_smooth(3, bad, &psis, NULL), TSR_E_NUMERIC);
    OK(tsr_psis_smooth(3, same, &psis, &err));
    assert_near(psis.ess, 3.0, 1e-12);
    assert_true(psis.pareto_k < 0.0);
}

/* Each draw five times over is a fifth of the draws. */
TEST(test_worth)
{
    enum { N_EACH = 5, N_OF = 2000, N_ALL = 2 * N_EACH * N_OF };
    static double x[N_ALL];
    gsl_rng *rng = rng_new(8, 0);
    tsr_psis psis;
    double worth;
    for (int i = 0; i < N_ALL; i++)
        x[i] = i % N_EACH == 0 ? gsl_ran_gaussian(rng, 0.5) : x[i - 1];
    OK(tsr_psis_smooth(N_ALL, x, &psis, &err));
    OK(tsr_psis_independent_draws(2, N_ALL / 2, x, &worth, &err));
    assert_near(worth, psis.ess / N_EACH, 0.1 * psis.ess / N_EACH);
    /* few: one a chain */
    OK(tsr_psis_smooth(6, x, &psis, &err));
    OK(tsr_psis_independent_draws(2, 3, x, &worth, &err));
    assert_near(worth, psis.ess / 3.0, 1e-12);
}

TEST(test_weighted)
{
    const double value[4] = {3.0, 1.0, (double)NAN, 2.0};
    const double weight[4] = {log(0.25), log(0.5), -HUGE_VAL, log(0.25)};
    tsr_weighted w;
    OK(tsr_weighted_make(4, value, weight, &w, &err));
    /* middles of the shares: 1 at 0.25, 2 at 0.625, 3 at 0.875 */
    assert_nears(1e-12, w.mean, 1.75, w.sd, sqrt(0.6875), w.median,
                 1.0 + 0.25 / 0.375, w.q5, 1.0, w.q95, 3.0);
    OK(tsr_weighted_make(4, value, NULL, &w, &err));
    assert_true(isnan(w.mean));
}

/* ---- spheres ---- */

typedef struct {
    double q[N_Q], intensity[N_Q], sigma[N_Q];
    tsr_saxs saxs;
} points;

static double sphere(double q, double r_ang)
{
    double x = q * r_ang, f = 3.0 * (sin(x) - x * cos(x)) / (x * x * x);
    return 1e6 * f * f;
}

static void measure(points *p, int n, double low, double high, double r_ang,
                    gsl_rng *rng)
{
    for (int k = 0; k < n; k++) {
        p->q[k] = low + (high - low) * k / (n - 1);
        double i = 1e-4 * sphere(p->q[k], r_ang) + 2.0;
        p->sigma[k] = 0.02 * i + 0.2;
        p->intensity[k] = i + gsl_ran_gaussian(rng, p->sigma[k]);
    }
    static char name[] = "spheres";
    p->saxs = (tsr_saxs){.path = name,
                         .n = n,
                         .q = p->q,
                         .intensity = p->intensity,
                         .sigma = p->sigma};
}

/* Least squares of c and b, written out; log of the likelihood with both and
 * log s (normal, width) integrated, by a sum over s. s_draw, c, b: drawn where
 * rng is not NULL. */
static double log_marginal(const tsr_saxs *p, double r, gsl_rng *rng,
                           double *s_draw, double *c_draw, double *b_draw)
{
    enum { STEPS = 400 };
    double w1 = 0, wm = 0, wmm = 0, wd = 0, wmd = 0, wdd = 0, term[STEPS];
    double top = -HUGE_VAL, sum = 0.0;
    for (int k = 0; k < p->n; k++) {
        double w = 1.0 / (p->sigma[k] * p->sigma[k]), m = sphere(p->q[k], r);
        double d = p->intensity[k];
        w1 += w, wm += w * m, wmm += w * m * m;
        wd += w * d, wmd += w * m * d, wdd += w * d * d;
    }
    double det = w1 * wmm - wm * wm;
    double c = (w1 * wmd - wm * wd) / det, b = (wd - c * wm) / w1;
    double square = wdd - c * wmd - b * wd;
    for (int i = 0; i < STEPS; i++) {
        double t = -1.5 + 3.0 * (i + 0.5) / STEPS; /* log s */
        term[i] = -0.5 * t * t / (width * width) - (p->n - 2) * t -
                  0.5 * square * exp(-2.0 * t);
        top = fmax(top, term[i]);
    }
    for (int i = 0; i < STEPS; i++)
        sum += exp(term[i] - top);
    if (rng != NULL) {
        double u = gsl_rng_uniform(rng) * sum;
        int i = 0;
        while (i < STEPS - 1 && (u -= exp(term[i] - top)) > 0.0)
            i++;
        *s_draw = exp(-1.5 + 3.0 * (i + 0.5) / STEPS);
        *c_draw = c + gsl_ran_gaussian(rng, *s_draw * sqrt(w1 / det));
        *b_draw = (wd - *c_draw * wm) / w1 +
                  gsl_ran_gaussian(rng, *s_draw / sqrt(w1));
    }
    return top + log(sum) - 0.5 * log(det);
}

/* log likelihood with c and b integrated, at s: what a run stores. */
static double log_lik_at(const tsr_saxs *p, double r, double s)
{
    double w1 = 0, wm = 0, wmm = 0, wd = 0, wmd = 0, wdd = 0, logs = 0;
    for (int k = 0; k < p->n; k++) {
        double w = 1.0 / (p->sigma[k] * p->sigma[k]), m = sphere(p->q[k], r);
        double d = p->intensity[k];
        w1 += w, wm += w * m, wmm += w * m * m, logs += log(p->sigma[k]);
        wd += w * d, wmd += w * m * d, wdd += w * d * d;
    }
    double det = w1 * wmm - wm * wm, c = (w1 * wmd - wm * wd) / det;
    double square = wdd - c * wmd - (wd - c * wm) / w1 * wd;
    return -logs - 0.5 * (p->n - 2) * log(2.0 * PI * s * s) - 0.5 * log(det) -
           0.5 * square / (s * s);
}

/* The posterior of the radius on a grid: share [N_R], mean and sd. */
static void posterior(const tsr_saxs *p, double *share, double *mean,
                      double *sd)
{
    double top = -HUGE_VAL, sum = 0.0, square = 0.0;
    *mean = 0.0;
    for (int i = 0; i < N_R; i++) {
        double r = first_ang + (last_ang - first_ang) * (i + 0.5) / N_R;
        share[i] = log_marginal(p, r, NULL, NULL, NULL, NULL);
        top = fmax(top, share[i]);
    }
    for (int i = 0; i < N_R; i++)
        sum += share[i] = exp(share[i] - top);
    for (int i = 0; i < N_R; i++) {
        double r = first_ang + (last_ang - first_ang) * (i + 0.5) / N_R;
        share[i] /= sum;
        *mean += share[i] * r;
        square += share[i] * r * r;
    }
    *sd = sqrt(square - *mean * *mean);
}

static double radius[N];

enum { V_R, V_C, V_B, V_S, V_LIK, V_T, V_CURVE, V_DATA, V_SIGMA, N_V };

/* A trace of N independent draws; widen > 1: radii around the posterior's mean
 * that much wider than it (not a posterior; for maximum entropy). */
static tsr_trace_reader *make_trace(points *p, double widen)
{
    tsr_trace_variable v[N_V] = {
        [V_R] = {TSR_TRACE_POSTERIOR, "rg", .n = 1},
        [V_C] = {TSR_TRACE_POSTERIOR, "scale", .n = 1},
        [V_B] = {TSR_TRACE_POSTERIOR, "background", .n = 1},
        [V_S] = {TSR_TRACE_POSTERIOR, "noise_scale", .n = 1},
        [V_LIK] = {TSR_TRACE_SAMPLE_STATS, "log_lik", .n = 1},
        [V_T] = {TSR_TRACE_SAMPLE_STATS, "temperature", .n = 1},
        [V_CURVE] = {TSR_TRACE_POSTERIOR_PREDICTIVE, "intensity_mean",
                     .dim = "q", .n = N_Q, .coord = p->q, .single = 1},
        [V_DATA] = {TSR_TRACE_OBSERVED_DATA, "intensity", .dim = "q", .n = N_Q,
                    .coord = p->q},
        [V_SIGMA] = {TSR_TRACE_CONSTANT_DATA, "sigma", .dim = "q", .n = N_Q,
                     .coord = p->q}};
    static double value[N_V][N], curve[N][N_Q], share[N_R];
    double mean, sd;
    const char *path = io_path("trace.h5");
    tsr_trace *trace = NULL;
    tsr_trace_reader *reader = NULL;
    gsl_rng *rng = rng_new(5, 0);
    posterior(&p->saxs, share, &mean, &sd);
    for (int i = 0; i < N; i++) {
        double u = gsl_rng_uniform(rng);
        int at = 0;
        while (at < N_R - 1 && (u -= share[at]) > 0.0)
            at++;
        double r = first_ang +
                   (last_ang - first_ang) * (at + gsl_rng_uniform(rng)) / N_R;
        radius[i] = r = mean + widen * (r - mean);
        value[V_R][i] = r;
        log_marginal(&p->saxs, r, rng, &value[V_S][i], &value[V_C][i],
                     &value[V_B][i]);
        value[V_LIK][i] = log_lik_at(&p->saxs, r, value[V_S][i]);
        value[V_T][i] = 1.0;
        for (int k = 0; k < N_Q; k++)
            curve[i][k] = value[V_C][i] * sphere(p->q[k], r) + value[V_B][i];
    }
    remove(path);
    OK(tsr_trace_create(path, N_CHAIN, N_V, v, 0, NULL, &trace, &err));
    for (int k = 0; k < V_DATA; k++)
        OK(tsr_trace_append(trace, k, N_DRAW,
                            k == V_CURVE ? &curve[0][0] : value[k], &err));
    OK(tsr_trace_put(trace, V_DATA, p->intensity, &err));
    OK(tsr_trace_put(trace, V_SIGMA, p->sigma, &err));
    OK(tsr_trace_close(trace, &err));
    OK(tsr_trace_open(path, &reader, &err));
    return own_tsr_trace_reader(reader);
}

static const tsr_linear both = {
    .infer_scale = 1, .infer_background = 1, .scale = 1.0};

static tsr_data_set set_of(const tsr_saxs *saxs)
{
    return (tsr_data_set){.saxs = saxs, .noise = noise_of("measured")};
}

/* Reweights to `to` and compares with its posterior by quadrature. */
static void check_against(const tsr_stored_curve *stored, const tsr_saxs *to,
                          double least_share, double *ess)
{
    static double share[N_R];
    double mean, sd;
    tsr_reweight *made = NULL;
    tsr_psis psis;
    tsr_weighted now, s;
    const tsr_reweight_options o = {stored, set_of(NULL), set_of(to), 1, 3};
    OK(tsr_reweight_make(&o, &made, &err));
    assert_true(made->recovered < 0.01);
    posterior(to, share, &mean, &sd);
    OK(tsr_psis_smooth(N, made->log_weight, &psis, &err));
    tsr_weighted_make(N, radius, made->log_weight, &now, NULL);
    tsr_weighted_make(N, made->noise[0], made->log_weight, &s, NULL);
    if (!(psis.ess > least_share * N))
        fail_msg("%.1f effective draws, k = %.2f", psis.ess, psis.pareto_k);
    /* five standard errors of a mean and of an sd of that many draws */
    assert_near(now.mean, mean, 5.0 * sd / sqrt(psis.ess));
    assert_near(now.sd, sd, 5.0 * sd / sqrt(2.0 * psis.ess));
    /* s about 1, with sd 1 / sqrt(2 n), somewhat less by its prior */
    assert_true(s.sd < 1.2 / sqrt(2.0 * to->n) &&
                s.sd > 0.6 / sqrt(2.0 * to->n));
    *ess = psis.ess;
    tsr_reweight_free(made);
}

TEST(test_spheres)
{
    points p, other, far;
    double ess;
    CLEARED(tsr_stored_curve) stored;
    gsl_rng *rng = rng_new(11, 0);
    measure(&p, N_Q, 0.01, 0.25, 25.0, rng);
    tsr_trace_reader *reader = make_trace(&p, 1.0);
    OK(tsr_stored_curve_open(reader, 0, "spheres", &both, &stored, &err));
    check_against(&stored, &stored.saxs, 0.999999, &ess); /* nothing changed */
    tsr_saxs part = stored.saxs;
    const int n_cut = N_Q / 10; /* without the smallest q */
    part.n -= n_cut;
    part.q += n_cut, part.intensity += n_cut, part.sigma += n_cut;
    check_against(&stored, &part, 0.1, &ess);
    assert_true(ess < 0.9 * N);
    measure(&other, 45, 0.02, 0.2, 25.0, rng); /* at q of its own */
    check_against(&stored, &other.saxs, 0.1, &ess);

    measure(&far, 40, 0.02, 0.3, 25.0, rng); /* beyond the run's q */
    tsr_reweight *made;
    const tsr_reweight_options o = {&stored, set_of(NULL), set_of(&far.saxs), 1,
                                    3};
    FAILS(tsr_reweight_make(&o, &made, &err), TSR_E_DATA,
          "outside the q range of the run");
    tsr_reweight_options wrong = o;
    wrong.after = set_of(&part);
    wrong.before.noise = noise_of("student"); /* not that of the trace */
    assert_int_equal(tsr_reweight_make(&wrong, &made, &err), TSR_E_DATA);
}

/* At the minimum dF/dw_i is the same for every draw: c r_i + theta log w_i,
 * r_i the residuals by sigma^2 times the curve. */
TEST(test_maxent)
{
    points p, q;
    const double theta = 5.0;
    CLEARED(tsr_stored_curve) stored;
    tsr_maxent *m = NULL;
    gsl_rng *rng = rng_new(12, 0);
    measure(&p, N_Q, 0.01, 0.25, 25.0, rng);
    measure(&q, N_Q, 0.01, 0.25, 25.4, rng);
    tsr_trace_reader *reader = make_trace(&p, 4.0);
    OK(tsr_stored_curve_open(reader, 0, "spheres", &both, &stored, &err));
    OK(tsr_maxent_make(&stored, &q.saxs, &both, theta, &m, &err));
    static double mean[N_Q], slope[N];
    for (int k = 0; k < N_Q; k++) {
        mean[k] = 0.0;
        for (int i = 0; i < N; i++)
            mean[k] += exp(m->log_weight[i]) * sphere(q.q[k], radius[i]);
    }
    const double c = m->point[0].scale, b = m->point[0].background;
    double low = HUGE_VAL, high = -HUGE_VAL, chi2 = 0.0;
    for (int k = 0; k < N_Q; k++)
        chi2 += pow((c * mean[k] + b - q.intensity[k]) / q.sigma[k], 2.0) / N_Q;
    for (int i = 0; i < N; i++) {
        slope[i] = theta * m->log_weight[i];
        for (int k = 0; k < N_Q; k++)
            slope[i] += c * sphere(q.q[k], radius[i]) *
                        (c * mean[k] + b - q.intensity[k]) /
                        (q.sigma[k] * q.sigma[k]);
        low = fmin(low, slope[i]);
        high = fmax(high, slope[i]);
    }
    assert_true(high - low < 1e-3); /* nat; curves are in single precision */
    assert_near(chi2, m->point[0].chi2, 1e-4 * chi2);
    assert_true(m->point[0].chi2 < m->start.chi2);
    tsr_weighted now;
    tsr_weighted_make(N, radius, m->log_weight, &now, NULL);
    assert_true(now.mean > 25.1); /* towards the new data */
    tsr_maxent_free(m);

    OK(tsr_maxent_make(&stored, &q.saxs, &both, 0.0, &m, &err));
    assert_int_equal(m->n_point, TSR_MAXENT_POINTS);
    for (int i = 1; i < m->n_point; i++)
        assert_all(m->point[i].chi2 <= m->point[i - 1].chi2 + 1e-6,
                   m->point[i].kl >= m->point[i - 1].kl - 1e-6);
    /* the elbow is where chi2 has fallen and the ensemble is still broad */
    const tsr_maxent_point *e = &m->point[m->chosen],
                           *last = &m->point[m->n_point - 1];
    assert_true(e->chi2 - last->chi2 < 0.3 * (m->start.chi2 - last->chi2));
    assert_true(e->kl < 0.5 * last->kl);
    /* and the last theta alone is found, too, and is the same */
    tsr_maxent *alone;
    OK(tsr_maxent_make(&stored, &q.saxs, &both, last->theta, &alone, &err));
    assert_near(alone->point[0].kl, last->kl, 1e-3);
    assert_near(alone->point[0].chi2, last->chi2, 1e-6);
    assert_near(alone->point[0].scale, last->scale, 1e-5 * last->scale);
    tsr_maxent_free(alone);
    /* errors a hundredth: the curve begins where weights are equal, too */
    for (int k = 0; k < N_Q; k++)
        q.sigma[k] *= 0.01;
    OK(tsr_maxent_make(&stored, &q.saxs, &both, 0.0, &alone, &err));
    assert_all(0.01 > alone->point[0].kl, alone->chosen > 0);
    tsr_maxent_free(alone);
    tsr_maxent_free(m);
}

/* ---- a given set of curves ---- */

/* At the least squares no model has a slope that would lower chi2: those that
 * carry weight have none, the others' is not negative. By maximum entropy the
 * slopes of chi2 / 2 + theta KL are all the same. */
static void check_slopes(const tsr_saxs *d, int n, const double *curve,
                         const double *weight, const tsr_maxent_point *p)
{
    double rest[N_Q], least = HUGE_VAL, most = -HUGE_VAL;
    for (int k = 0; k < N_Q; k++) {
        rest[k] = d->intensity[k] - p->background;
        for (int i = 0; i < n; i++)
            rest[k] -= p->scale * weight[i] * curve[i * N_Q + k];
    }
    for (int i = 0; i < n; i++) {
        double slope = p->theta * log(fmax(weight[i], 1e-300)), size = 0.0;
        for (int k = 0; k < N_Q; k++) {
            const double c = p->scale * curve[i * N_Q + k];
            slope -= c * rest[k] / (d->sigma[k] * d->sigma[k]);
            size += c * c / (d->sigma[k] * d->sigma[k]);
        }
        if (p->theta > 0.0) {
            least = fmin(least, slope);
            most = fmax(most, slope);
        } else if (weight[i] > 0.0) {
            assert_true(fabs(slope) < 1e-6 * size);
        } else {
            assert_true(slope > -1e-6 * size);
        }
    }
    if (p->theta > 0.0)
        assert_true(most - least < 0.02); /* nat; what components leave out */
}

TEST(test_ensemble)
{
    enum { MODELS = 9 };
    points p;
    tsr_maxent_point few, even;
    double curve[MODELS * N_Q], weight[MODELS], sum = 0.0;
    gsl_rng *rng = rng_new(13, 0);
    measure(&p, N_Q, 0.01, 0.25, 25.0, rng);
    for (int i = 0; i < MODELS; i++)
        for (int k = 0; k < N_Q; k++)
            curve[i * N_Q + k] = sphere(p.q[k], 16.0 + 3.0 * i);
    for (int k = 0; k < N_Q; k++) /* 0.3 of the third, 0.7 of the seventh */
        p.intensity[k] =
            2.0 + 1e-4 * (0.3 * curve[2 * N_Q + k] + 0.7 * curve[6 * N_Q + k]);
    OK(tsr_ensemble_least_squares(MODELS, curve, &p.saxs, &both, weight, &few,
                                  &err));
    for (int i = 0; i < MODELS; i++)
        assert_near(weight[i], i == 2 ? 0.3 : i == 6 ? 0.7 : 0.0, 1e-6);
    assert_near(few.scale, 1e-4, 1e-9);
    assert_near(few.background, 2.0, 1e-5);
    for (int k = 0; k < N_Q; k++)
        p.intensity[k] += gsl_ran_gaussian(rng, p.sigma[k]);
    for (int b = 0; b < 2; b++) { /* background inferred, or known */
        const tsr_linear linear = {.infer_scale = 1,
                                   .infer_background = b == 0,
                                   .scale = 1.0,
                                   .background = 2.0};
        OK(tsr_ensemble_least_squares(MODELS, curve, &p.saxs, &linear, weight,
                                      &few, &err));
        check_slopes(&p.saxs, MODELS, curve, weight, &few);
        OK(tsr_ensemble_maxent(MODELS, curve, &p.saxs, &linear, 5.0, weight,
                               &even, &err));
        check_slopes(&p.saxs, MODELS, curve, weight, &even);
        assert_true(even.chi2 >= few.chi2 - 1e-9 && even.kl < few.kl);
        sum = 0.0;
        for (int i = 0; i < MODELS; i++)
            sum += weight[i];
        assert_near(sum, 1.0, 1e-9);
    }
}

static test_fixture around_each = {io_setup, io_teardown};
