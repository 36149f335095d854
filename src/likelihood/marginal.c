/* The likelihood of one curve with all its nuisance parameters integrated out,
 * for `tessera reweight`.
 *
 * Chains do not need this integral, because they sample the noise parameters.
 * Reweighting has one curve for each structure and no chain. The noise
 * parameters are first set to their mode by Newton's method. The integral is
 * then a sum over a grid around the mode, in coordinates with unit variance. */
#include "likelihood/term_saxs.h"

#include <gsl/gsl_randist.h>
#include <math.h>
#include <string.h>

/* REACH: grid points to either side of the mode, one standard deviation apart.
 * N_ROUND: Newton steps at most. N_STEP: Metropolis steps for a draw. */
enum { MAX_NOISE = TSR_NOISE_PARAMETERS, REACH = 6, N_ROUND = 60, N_STEP = 10 };

/* The free noise parameters in coordinates z of unit variance about the mode:
 * theta = mode + axes z. */
typedef struct {
    const tsr_saxs_term *term;
    tsr_fit *fit;
    int n, which[MAX_NOISE]; /* [n] indices of the free parameters */
    double mode[MAX_NOISE];  /* values of all noise parameters */
    /* The columns are directions of unit variance. */
    double axes[MAX_NOISE][MAX_NOISE];
} noise_space;

/* Log likelihood and prior at c = best c + x sd[0] and b = best b for this c +
 * y sd[1]. */
static double log_lik_offset(const tsr_saxs_term *t, const tsr_fit *fit,
                             const double *theta, const double sd[2], double x,
                             double y)
{
    const double dc = t->linear.infer_scale ? x * sd[0] : 0.0;
    const double db =
        t->linear.infer_background ? y * sd[1] - dc * fit->model_mean : 0.0;
    return t->noise->log_lik(t->state, fit, theta, fit->scale + dc,
                             fit->background + db) +
           tsr_linear_log_prior(&t->linear, fit->background + db);
}

/* Log of the integral over c and b by Laplace's approximation, with first and
 * second derivatives from finite differences. If these do not describe a
 * maximum, or if c may be close to 0, the result is that of the normal density
 * that `conditional` gives. */
static double laplace(const tsr_saxs_term *t, const tsr_fit *fit,
                      const double *theta)
{
    const double h = 0.3;
    tsr_linear_shape shape = t->noise->conditional(t->state, theta);
    const double sd[2] = {shape.spread / sqrt(fit->model_norm),
                          shape.spread / sqrt(fit->one_norm)};
    const double top = log_lik_offset(t, fit, theta, sd, 0.0, 0.0);
    double f[3][2], g[2] = {0.0}, d[2] = {1.0, 1.0}, mixed = 0.0;
    shape.dof = 0;
    const double expected =
        top - tsr_linear_log_density(&t->linear, fit, shape, fit->scale,
                                     fit->background);
    if (t->linear.infer_scale && !(fit->scale > 6.0 * sd[0]))
        return expected;
    for (int i = 0; i < 2; i++) {
        const double step = i == 0 ? h : -h;
        f[0][i] = log_lik_offset(t, fit, theta, sd, step, 0.0);
        f[1][i] = log_lik_offset(t, fit, theta, sd, 0.0, step);
        f[2][i] = log_lik_offset(t, fit, theta, sd, step, step);
    }
    const int is_free[2] = {t->linear.infer_scale, t->linear.infer_background};
    for (int i = 0; i < 2; i++)
        if (is_free[i]) {
            g[i] = (f[i][0] - f[i][1]) / (2.0 * h);
            d[i] = (2.0 * top - f[i][0] - f[i][1]) / (h * h);
        }
    if (is_free[0] && is_free[1])
        mixed = 0.5 * ((2.0 * top - f[2][0] - f[2][1]) / (h * h) - d[0] - d[1]);
    const double det = d[0] * d[1] - mixed * mixed;
    if (!(d[0] > 0.1 && d[1] > 0.1 && det > 0.1))
        return expected;
    return expected - 0.5 * log(det) +
           0.5 *
               (d[1] * g[0] * g[0] - 2.0 * mixed * g[0] * g[1] +
                d[0] * g[1] * g[1]) /
               det;
}

/* Log of the integral over c and b. */
static double integrate_linear(const tsr_saxs_term *t, const tsr_fit *fit,
                               const double *theta)
{
    return t->noise->log_integral != NULL
               ? t->noise->log_integral(t->state, fit, theta)
               : laplace(t, fit, theta);
}

/* Log of prior of theta times likelihood, integrated over c and b; -HUGE_VAL
 * for NaN. */
static double log_posterior(const noise_space *s, const double *theta)
{
    const tsr_saxs_term *t = s->term;
    double sum = 0.0;
    if (t->noise->refit != NULL)
        t->noise->refit(t->state, theta, s->fit);
    for (int i = 0; i < t->n_noise; i++)
        sum += tsr_parameter_log_prior(&t->term.parameter[i], theta[i]);
    sum += integrate_linear(t, s->fit, theta);
    return isnan(sum) ? -HUGE_VAL : sum;
}

/* log_posterior with free parameters i and j displaced from the mode. */
static double log_displaced(const noise_space *s, int i, double di, int j,
                            double dj)
{
    double theta[MAX_NOISE];
    memcpy(theta, s->mode, sizeof theta);
    theta[s->which[i]] += di;
    theta[s->which[j]] += dj;
    return log_posterior(s, theta);
}

/* Gradient and negative Hessian at s->mode, by finite differences. middle:
 * log_posterior there. */
static void differentiate(const noise_space *s, double middle, double *gradient,
                          double (*hessian)[MAX_NOISE])
{
    const double h = 0.03;
    for (int i = 0; i < s->n; i++) {
        double up = log_displaced(s, i, h, i, 0.0),
               down = log_displaced(s, i, -h, i, 0.0);
        gradient[i] = (up - down) / (2.0 * h);
        hessian[i][i] = (2.0 * middle - up - down) / (h * h);
        for (int j = 0; j < i; j++)
            hessian[i][j] = hessian[j][i] =
                -(log_displaced(s, i, h, j, h) - log_displaced(s, i, h, j, -h) -
                  log_displaced(s, i, -h, j, h) +
                  log_displaced(s, i, -h, j, -h)) /
                (4.0 * h * h);
    }
}

/* Makes the matrix positive definite and computes its Cholesky factor, n <= 2.
 */
static void cholesky_positive(int n, double (*a)[MAX_NOISE],
                              double (*lower)[MAX_NOISE])
{
    const double least = 0.05; /* variance 20, beyond any prior of a
                                  logarithm */
    for (int i = 0; i < n; i++)
        if (!(a[i][i] > least))
            a[i][i] = least;
    if (n == 2 && !(a[1][0] * a[1][0] < 0.95 * a[0][0] * a[1][1]))
        a[0][1] = a[1][0] = 0.0;
    memset(lower, 0, MAX_NOISE * sizeof *lower);
    lower[0][0] = sqrt(a[0][0]);
    if (n == 2) {
        lower[1][0] = a[1][0] / lower[0][0];
        lower[1][1] = sqrt(a[1][1] - lower[1][0] * lower[1][0]);
    }
}

/* Solves lower^T x = z. */
static void solve_upper(int n, double (*lower)[MAX_NOISE], const double *z,
                        double *x)
{
    for (int i = n - 1; i >= 0; i--) {
        x[i] = z[i];
        for (int j = i + 1; j < n; j++)
            x[i] -= lower[j][i] * x[j];
        x[i] /= lower[i][i];
    }
}

/* Moves s->mode to the maximum of log_posterior by Newton's method with step
 * halving, and sets s->axes from the last Hessian. Returns the maximum. */
static double find_mode(noise_space *s)
{
    double lower[MAX_NOISE][MAX_NOISE] = {{0.0}},
           hessian[MAX_NOISE][MAX_NOISE] = {{0.0}};
    double gradient[MAX_NOISE] = {0.0};
    double top = log_posterior(s, s->mode);
    for (int round = 0; round < N_ROUND; round++) {
        double z[MAX_NOISE] = {0.0}, step[MAX_NOISE] = {0.0}, size = 0.0,
               before[MAX_NOISE];
        differentiate(s, top, gradient, hessian);
        cholesky_positive(s->n, hessian, lower);
        for (int i = 0; i < s->n; i++) {
            z[i] = gradient[i];
            for (int j = 0; j < i; j++)
                z[i] -= lower[i][j] * z[j];
            z[i] /= lower[i][i];
            size += z[i] * z[i]; /* in units of standard deviations */
        }
        if (!(size > 1e-4))
            break;
        solve_upper(s->n, lower, z, step);
        memcpy(before, s->mode, sizeof before);
        /* Far below the mode of log s a Newton step is about 1/2, because chi2
         * falls as 1 / s^2. A step above 2 is therefore cut. */
        double longest = 0.0, found = -HUGE_VAL;
        for (int i = 0; i < s->n; i++)
            longest = fmax(longest, fabs(step[i]));
        double part = fmin(1.0, 2.0 / longest);
        for (int half = 0; half < 12 && !(found > top); half++) {
            for (int i = 0; i < s->n; i++)
                s->mode[s->which[i]] = before[s->which[i]] + part * step[i];
            found = log_posterior(s, s->mode);
            part *= 0.5;
        }
        if (!(found > top)) {
            memcpy(s->mode, before, sizeof before);
            break;
        }
        top = found;
    }
    for (int j = 0; j < s->n; j++) {
        double z[MAX_NOISE] = {0.0}, x[MAX_NOISE] = {0.0};
        z[j] = 1.0;
        solve_upper(s->n, lower, z, x);
        for (int i = 0; i < s->n; i++)
            s->axes[i][j] = x[i];
    }
    return top;
}

static void theta_at(const noise_space *s, const double *z, double *theta)
{
    memcpy(theta, s->mode, MAX_NOISE * sizeof *theta);
    for (int i = 0; i < s->n && i < MAX_NOISE; i++)
        for (int j = 0; j < s->n && j < MAX_NOISE; j++)
            theta[s->which[i]] += s->axes[i][j] * z[j];
}

/* Log of the integral of exp(log_posterior) over the free parameters, by the
 * trapezoid rule with a step of one standard deviation. top: log_posterior at
 * the mode. */
static double integrate(const noise_space *s, double top)
{
    double value[(2 * REACH + 1) * (2 * REACH + 1)], sum = 0.0, volume = 1.0;
    int n_second = s->n > 1 ? REACH : 0, n = 0;
    for (int a = -REACH; a <= REACH; a++)
        for (int b = -n_second; b <= n_second; b++) {
            double z[MAX_NOISE] = {a, b}, theta[MAX_NOISE];
            theta_at(s, z, theta);
            value[n] = log_posterior(s, theta);
            top = fmax(top, value[n++]);
        }
    for (int i = 0; i < n; i++)
        sum += exp(value[i] - top);
    for (int i = 0; i < s->n; i++)
        volume *= s->axes[i][i]; /* determinant of a triangular matrix */
    return top + log(sum * volume);
}

/* Draws theta by an independence Metropolis sampler. The proposal is a normal
 * density 1.3 times wider than the integrand. */
static void draw_theta(const noise_space *s, double top, gsl_rng *rng,
                       double *theta)
{
    const double wide = 1.3;
    double now = top, now_z = 0.0;
    memcpy(theta, s->mode, MAX_NOISE * sizeof *theta);
    for (int step = 0; step < N_STEP; step++) {
        double z[MAX_NOISE] = {0.0, 0.0}, trial[MAX_NOISE], square = 0.0;
        for (int i = 0; i < s->n; i++) {
            z[i] = gsl_ran_gaussian(rng, wide);
            square += 0.5 * z[i] * z[i] / (wide * wide);
        }
        theta_at(s, z, trial);
        double value = log_posterior(s, trial);
        if (log(gsl_rng_uniform_pos(rng)) < value + square - now - now_z) {
            now = value, now_z = square;
            memcpy(theta, trial, sizeof trial);
        }
    }
}

double tsr_marginal_log(const tsr_saxs_term *term, const double *profile,
                        tsr_fit *fit, gsl_rng *rng, tsr_nuisance_draw *drawn)
{
    noise_space s = {.term = term, .fit = fit};
    const tsr_noise_type *type = term->noise;
    for (int i = 0; i < term->n_noise && i < MAX_NOISE; i++) {
        s.mode[i] = term->term.parameter[i].start;
        if (term->term.parameter[i].infer)
            s.which[s.n++] = i;
    }
    type->fit(term->state, profile, s.mode, fit);
    double top = s.n > 0 ? find_mode(&s) : log_posterior(&s, s.mode);
    double sum = s.n > 0 && isfinite(top) ? integrate(&s, top) : top;
    if (rng == NULL || !isfinite(top))
        return sum;
    memcpy(drawn->theta, s.mode, sizeof drawn->theta);
    if (s.n > 0)
        draw_theta(&s, top, rng, drawn->theta);
    if (type->refit != NULL)
        type->refit(term->state, drawn->theta, fit);
    tsr_linear_draw(&term->linear, fit,
                    type->conditional(term->state, drawn->theta), rng,
                    &drawn->scale, &drawn->background);
    return sum;
}
