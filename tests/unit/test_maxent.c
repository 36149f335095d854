/* Weights by least squares and by maximum entropy satisfy the conditions of
 * their minima. */
#include "analysis/maxent.h"
#include "tests/test.h"

#include <gsl/gsl_randist.h>

enum { N_Q = 60 };

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

static const tsr_linear both = {
    .infer_scale = 1, .infer_background = 1, .scale = 1.0};

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
        /* of log w; what components leave out */
        assert_true(most - least < 0.004 * p->theta);
}

/* Along theta chi2 falls and KL rises. The elbow is where chi2 has fallen and
 * the ensemble is still broad. */
TEST(test_elbow)
{
    enum { MODELS = 300, POINTS = 9 };
    static double curve[MODELS * N_Q], weight[MODELS];
    points p;
    tsr_maxent_point at[POINTS], elbow;
    measure(&p, N_Q, 0.01, 0.25, 25.4, rng_new(12, 0));
    for (int i = 0; i < MODELS; i++)
        for (int k = 0; k < N_Q; k++)
            curve[i * N_Q + k] = sphere(p.q[k], 24.0 + 2.0 * i / (MODELS - 1));
    for (int t = 0; t < POINTS; t++) {
        OK(tsr_ensemble_maxent(MODELS, curve, &p.saxs, &both, pow(10.0, 4 - t),
                               weight, &at[t], &err));
        if (t > 0)
            assert_all(at[t].chi2 <= at[t - 1].chi2 + 1e-6,
                       at[t].kl >= at[t - 1].kl - 1e-6);
    }
    OK(tsr_ensemble_maxent(MODELS, curve, &p.saxs, &both, 0.0, weight, &elbow,
                           &err));
    const tsr_maxent_point *first = &at[0], *last = &at[POINTS - 1];
    assert_true(elbow.chi2 - last->chi2 < 0.3 * (first->chi2 - last->chi2));
    assert_true(elbow.kl < 0.5 * last->kl);
    check_slopes(&p.saxs, MODELS, curve, weight, &elbow);
    double mean = 0.0;
    for (int i = 0; i < MODELS; i++)
        mean += weight[i] * (24.0 + 2.0 * i / (MODELS - 1));
    assert_true(mean > 25.1); /* towards the data */
    /* with errors a hundredth, the curve begins where weights are equal, too */
    for (int k = 0; k < N_Q; k++)
        p.sigma[k] *= 0.01;
    OK(tsr_ensemble_maxent(MODELS, curve, &p.saxs, &both, 0.0, weight, &elbow,
                           &err));
    check_slopes(&p.saxs, MODELS, curve, weight, &elbow);
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
