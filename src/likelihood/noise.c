/* The part that all noise models share: scale and background, normal errors,
 * curves at the data's q, and the list of models.
 *
 * For scale c and background b this file has the best values, the integral of
 * the likelihood over both, and draws from their conditional. The sum of
 * squares is a quadratic form in c and b. Completing the square at the best
 * values leaves a normal density, cut at c = 0 (docs/statistics.md has the
 * formulas). */
#include "likelihood/noise.h"

#include <gsl/gsl_cdf.h>
#include <gsl/gsl_randist.h>
#include <gsl/gsl_sf_erf.h>
#include <math.h>
#include <string.h>

static const double log_2pi = 1.8378770664093453;

/* If the best c is more than 2 standard deviations below 0, the truncated
 * Student's t is replaced by an exponential proposal. Rejection sampling would
 * be slow there, and the conditional falls almost exponentially. */
static const double t_far = -2.0;

tsr_linear tsr_linear_make(tsr_number_or_word scale,
                           tsr_number_or_word background)
{
    return (tsr_linear){
        .infer_scale = scale.word == 0,
        .infer_background = background.word == TSR_BACKGROUND_INFER ||
                            background.word == TSR_BACKGROUND_FLAT,
        .scale = scale.word < 0 ? scale.number : 1.0,
        .background = background.word < 0 ? background.number : 0.0};
}

double tsr_linear_log_prior(const tsr_linear *linear, double b)
{
    const double sd = linear->background_sd, z = b / sd;
    return linear->infer_background && sd > 0.0
               ? -0.5 * z * z - log(sd) - 0.5 * log_2pi
               : 0.0;
}

void tsr_linear_fit(const tsr_linear *linear, int n, const double *model,
                    const double *data, const double *weight, tsr_fit *fit)
{
    double one = 0.0, model_mean = 0.0, data_mean = linear->background;
    for (int k = 0; k < n; k++)
        one += weight[k];
    if (linear->infer_background) {
        data_mean = 0.0;
        for (int k = 0; k < n; k++) {
            model_mean += weight[k] * model[k];
            data_mean += weight[k] * data[k];
        }
        model_mean /= one, data_mean /= one;
    }
    double norm = 0.0, cross = 0.0, sum = 0.0;
    for (int k = 0; k < n; k++) {
        double m = model[k] - model_mean, d = data[k] - data_mean;
        norm += weight[k] * m * m;
        cross += weight[k] * m * d;
    }
    double c = linear->infer_scale ? cross / norm : linear->scale;
    for (int k = 0; k < n; k++) {
        double r = data[k] - data_mean - c * (model[k] - model_mean);
        sum += weight[k] * r * r;
    }
    fit->scale = c;
    fit->background = linear->infer_background ? data_mean - c * model_mean
                                               : linear->background;
    fit->square_sum = sum;
    fit->model_norm = norm;
    fit->model_mean = model_mean;
    fit->one_norm = one;
}

void tsr_linear_save_plain(tsr_fit *fit)
{
    tsr_plain_fit *p = &fit->plain;
    p->scale = fit->scale;
    p->background = fit->background;
    p->square_sum = fit->square_sum;
    p->model_norm = fit->model_norm;
    p->model_mean = fit->model_mean;
    p->one_norm = fit->one_norm;
}

/* Cholesky factor, a lower triangle L with L L^T = s^2 + E^T W E; square: s^2.
 * Returns log |L|. */
static double cholesky(const tsr_model_error *error, double square,
                       double (*lower)[TSR_MODEL_ERRORS])
{
    double log_det = 0.0;
    for (int i = 0; i < error->n; i++)
        for (int j = 0; j <= i; j++) {
            double sum = error->gram[i][j] + (i == j ? square : 0.0);
            for (int k = 0; k < j; k++)
                sum -= lower[i][k] * lower[j][k];
            lower[i][j] = i == j ? sqrt(sum) : sum / lower[j][j];
            log_det += i == j ? log(lower[i][i]) : 0.0;
        }
    return log_det;
}

static void solve_lower(int n, const double (*lower)[TSR_MODEL_ERRORS],
                        const double *b, double *x)
{
    for (int i = 0; i < n; i++) {
        x[i] = b[i];
        for (int k = 0; k < i; k++)
            x[i] -= lower[i][k] * x[k];
        x[i] /= lower[i][i];
    }
}

static double dot(int n, const double *a, const double *b)
{
    double sum = 0.0;
    for (int i = 0; i < n; i++)
        sum += a[i] * b[i];
    return sum;
}

/* s^2 (s^2 W^-1 + E E^T)^-1 = W - W E (s^2 + E^T W E)^-1 E^T W (Woodbury). With
 * the model error, a weighted product x . y becomes x . y - u . v, where u and
 * v solve L u = E^T W x and L v = E^T W y. In the fit without model
 * error, the residual r, the model m' and 1 are orthogonal, so no cancellation
 * occurs. */
void tsr_linear_add_model_error(const tsr_linear *linear,
                                const tsr_model_error *error, double log_s,
                                tsr_fit *fit)
{
    const tsr_plain_fit *p = &fit->plain;
    const int n = error->n;
    double lower[TSR_MODEL_ERRORS][TSR_MODEL_ERRORS] = {{0.0}};
    double r[TSR_MODEL_ERRORS], m[TSR_MODEL_ERRORS], one[TSR_MODEL_ERRORS];
    fit->log_det = cholesky(error, exp(2.0 * log_s), lower) - n * log_s;
    const double(*l)[TSR_MODEL_ERRORS] =
        (const double(*)[TSR_MODEL_ERRORS])lower;
    solve_lower(n, l, p->residual, r);
    solve_lower(n, l, p->model, m);
    solve_lower(n, l, p->one, one);
    double square = p->square_sum - dot(n, r, r);
    double norm = p->model_norm - dot(n, m, m), cross = -dot(n, r, m);
    double mean = 0.0, shift = 0.0, step = 0.0;
    fit->one_norm = p->one_norm;
    if (linear->infer_background) {
        fit->one_norm -= dot(n, one, one);
        mean = -dot(n, m, one) / fit->one_norm;
        shift = -dot(n, r, one) / fit->one_norm;
        norm -= mean * mean * fit->one_norm;
        cross -= mean * shift * fit->one_norm;
        square -= shift * shift * fit->one_norm;
    }
    if (linear->infer_scale) {
        step = cross / norm;
        square -= step * cross;
    }
    fit->scale = p->scale + step;
    fit->background = p->background - step * (p->model_mean + mean) + shift;
    fit->square_sum = square;
    fit->model_norm = norm;
    fit->model_mean = p->model_mean + mean;
    tsr_linear_add_prior(linear, exp(log_s), fit);
}

/* At x = c - best c, the sum of squares is square_sum + model_norm x^2 +
 * one_norm (b - b(x))^2, b(x) = background - x model_mean. With the prior's
 * ridge b^2, ridge = s^2 / w^2, the best b is b(x) one_norm / (one_norm +
 * ridge), and the sum there increases by extra b(x)^2, which moves the best
 * c. All terms are positive, so no cancellation occurs. */
void tsr_linear_add_prior(const tsr_linear *linear, double s, tsr_fit *fit)
{
    if (!linear->infer_background || !(linear->background_sd > 0.0))
        return;
    const double ratio = s / linear->background_sd, ridge = ratio * ratio;
    const double one = fit->one_norm + ridge, mean = fit->model_mean;
    const double kept = fit->one_norm / one, extra = kept * ridge;
    const double b = fit->background;
    double step = 0.0;
    fit->model_norm += extra * mean * mean;
    if (linear->infer_scale)
        step = extra * b * mean / fit->model_norm;
    fit->scale += step;
    fit->square_sum += extra * b * (b - step * mean);
    fit->background = kept * (b - step * mean);
    fit->model_mean = kept * mean;
    fit->one_norm = one;
}

/* The best b for a given c. */
static double background_at(const tsr_fit *fit, double c)
{
    return fit->background - (c - fit->scale) * fit->model_mean;
}

/* A normal variate above `low`, minus low. */
static double draw_normal(double low, gsl_rng *rng)
{
    double above;
    if (low > 1e4) /* far in its tail the normal density is exponential */
        return gsl_ran_exponential(rng, 1.0 / low);
    if (low > 0.0)
        return gsl_ran_gaussian_tail(rng, low, 1.0) - low;
    do
        above = gsl_ran_gaussian(rng, 1.0) - low;
    while (above <= 0.0);
    return above;
}

/* A variate of Student's t above `low`, minus low; far in the tail, of the
 * exponential proposal. */
static double draw_t(double low, int dof, gsl_rng *rng)
{
    double above;
    if (low > -t_far)
        return gsl_ran_exponential(rng, 2.0 / low);
    do
        above = gsl_ran_tdist(rng, dof) - low;
    while (above <= 0.0);
    return above;
}

void tsr_linear_draw(const tsr_linear *linear, const tsr_fit *fit,
                     tsr_linear_shape shape, gsl_rng *rng, double *c, double *b)
{
    *c = linear->scale, *b = linear->background;
    if (linear->infer_scale) {
        double sd = shape.spread / sqrt(fit->model_norm);
        double low = -fit->scale / sd; /* lower limit of c, in standard
                                          deviations */
        *c = sd * (shape.dof == 0 ? draw_normal(low, rng)
                                  : draw_t(low, shape.dof, rng));
    }
    if (linear->infer_background) {
        double sd = shape.spread / sqrt(fit->one_norm);
        *b = background_at(fit, *c);
        *b += shape.dof == 0 ? gsl_ran_gaussian(rng, sd)
                             : sd * gsl_ran_tdist(rng, shape.dof);
    }
}

/* Log density at x standard deviations from the centre. */
static double log_shape(double x, double sd, int dof)
{
    if (dof == 0)
        return -0.5 * x * x - 0.5 * log_2pi - log(sd);
    return log(gsl_ran_tdist_pdf(x, dof)) - log(sd);
}

double tsr_linear_log_density(const tsr_linear *linear, const tsr_fit *fit,
                              tsr_linear_shape shape, double c, double b)
{
    const double half_root = 0.7071067811865476, log_2 = 0.6931471805599453;
    double sum = 0.0;
    if (linear->infer_scale) {
        double sd = shape.spread / sqrt(fit->model_norm);
        double z = fit->scale / sd;
        if (!(c > 0.0))
            return -(double)INFINITY;
        if (shape.dof > 0 && z < t_far)
            sum += log(-0.5 * z / sd) + 0.5 * z * c / sd;
        else
            sum += log_shape(c / sd - z, sd, shape.dof) -
                   (shape.dof > 0 ? log(gsl_cdf_tdist_P(z, shape.dof))
                                  : gsl_sf_log_erfc(-half_root * z) - log_2);
    }
    if (linear->infer_background) {
        double sd = shape.spread / sqrt(fit->one_norm);
        sum += log_shape((b - background_at(fit, c)) / sd, sd, shape.dof);
    }
    return sum;
}

/* ---- normal errors ---- */

/* With p of c and b inferred, N points, and |H| the product of |m|^2 if c is
 * inferred and |1|^2 if b is inferred:
 *     -sum log sigma - log_det - (N - p)/2 log(2 pi s^2) - 1/2 log |H|
 *     - square_sum / (2 s^2) + log Phi(c |m| / s) + log P(b = 0)
 * log_det is the model error's. The last terms apply if c is inferred, and if
 * b has a normal prior. */
double tsr_noise_normal_integral(const tsr_noise *noise, const tsr_fit *fit,
                                 const double *theta)
{
    const tsr_linear *linear = &noise->linear;
    const double log_s = theta[noise->type->log_s];
    const int n = noise->saxs->n;
    int p = linear->infer_scale + linear->infer_background;
    double log_det = 0.0, tail = 0.0;
    if (linear->infer_scale) {
        double z = fit->scale * sqrt(fit->model_norm) * exp(-log_s);
        const double half_root = 0.7071067811865476, log_2 = 0.6931471805599453;
        tail = z > 8.0 ? 0.0 : gsl_sf_log_erfc(-half_root * z) - log_2;
        log_det = log(fit->model_norm);
    }
    if (linear->infer_background)
        log_det += log(fit->one_norm);
    return -fit->log_sigma - fit->log_det -
           0.5 * (n - p) * (log_2pi + 2.0 * log_s) - 0.5 * log_det -
           0.5 * fit->square_sum * exp(-2.0 * log_s) + tail +
           tsr_linear_log_prior(linear, 0.0);
}

double tsr_noise_normal_log_lik(const tsr_noise *noise, const tsr_fit *fit,
                                const double *theta, double c, double b)
{
    const double log_s = theta[noise->type->log_s];
    double x = c - fit->scale, y = b - background_at(fit, c);
    double sum =
        fit->square_sum + fit->model_norm * x * x + fit->one_norm * y * y;
    if (!(c > 0.0))
        return -(double)INFINITY;
    /* the sum includes the prior of b, which is not part of the likelihood */
    return -fit->log_sigma - fit->log_det -
           0.5 * noise->saxs->n * (log_2pi + 2.0 * log_s) -
           0.5 * sum * exp(-2.0 * log_s) +
           tsr_linear_log_prior(&noise->linear, 0.0) -
           tsr_linear_log_prior(&noise->linear, b);
}

tsr_linear_shape tsr_noise_normal_conditional(const tsr_noise *noise,
                                              const double *theta)
{
    return (tsr_linear_shape){exp(theta[noise->type->log_s]), 0};
}

/* Standard deviation of a single point, including the model's own error. */
static double total_sd(const tsr_noise *noise, const double *theta, int k)
{
    const double own = noise->type->sigma(noise, theta, k);
    return noise->n_error > 0 ? sqrt(own * own + noise->variance[k]) : own;
}

double tsr_noise_normal_log_point(const tsr_noise *noise, const double *theta,
                                  int k, double residual)
{
    const double half_log_2pi = 0.9189385332046727;
    double sd = total_sd(noise, theta, k), z = residual / sd;
    return -0.5 * z * z - log(sd) - half_log_2pi;
}

double tsr_noise_normal_draw_point(const tsr_noise *noise, const double *theta,
                                   int k, gsl_rng *rng)
{
    return gsl_ran_gaussian_ziggurat(rng, total_sd(noise, theta, k));
}

/* ---- curves at the data's q ----
 *
 * The model's curve at every data point, for noise models whose weights depend
 * on theta. The weights of the noise model `measured` are constant, so it
 * rotates its data once instead, which is cheaper (noise_measured.c). */

void tsr_noise_fit_points(const tsr_noise *noise, const double *profile,
                          tsr_fit *fit)
{
    size_t n = (size_t)noise->saxs->n;
    double *model = fit->model;
    size_t n_q = (size_t)noise->n_q, j = 0;
    memset(model, 0, n * sizeof *model);
    for (; j + 4 <= n_q; j += 4) { /* four columns in one pass over model */
        const double *a = noise->column + j * n, *x = profile + j;
        const double *b = a + n, *c = b + n, *d = c + n;
        for (size_t k = 0; k < n; k++)
            model[k] +=
                (a[k] * x[0] + b[k] * x[1]) + (c[k] * x[2] + d[k] * x[3]);
    }
    for (; j < n_q; j++)
        for (size_t k = 0; k < n; k++)
            model[k] += noise->column[j * n + k] * profile[j];
    tsr_linear_fit(&noise->linear, noise->saxs->n, model,
                   noise->saxs->intensity, noise->weight, fit);
    fit->chi2 = fit->square_sum;
}

void tsr_noise_add_error(const tsr_noise *noise, const double *weight,
                         double log_s, tsr_fit *fit)
{
    const tsr_noise *s = noise;
    const int n = s->saxs->n;
    const double *data = s->saxs->intensity, *w = weight;
    tsr_plain_fit *p = &fit->plain;
    tsr_model_error error = {.n = s->n_error};
    tsr_linear_save_plain(fit);
    for (int e = 0; e < s->n_error; e++) {
        const double *x = s->curve + (size_t)e * (size_t)n;
        p->residual[e] = p->model[e] = p->one[e] = 0.0;
        for (int k = 0; k < n; k++) {
            const double wx = w[k] * x[k], m = fit->model[k];
            p->residual[e] += wx * (data[k] - p->scale * m - p->background);
            p->model[e] += wx * (m - p->model_mean);
            p->one[e] += wx;
        }
        for (int f = 0; f <= e; f++) {
            const double *y = s->curve + (size_t)f * (size_t)n;
            double sum = 0.0;
            for (int k = 0; k < n; k++)
                sum += w[k] * x[k] * y[k];
            error.gram[e][f] = error.gram[f][e] = sum;
        }
    }
    tsr_linear_add_model_error(&s->linear, &error, log_s, fit);
}

static void set_columns(tsr_noise *noise, const double *matrix)
{
    const size_t n = (size_t)noise->saxs->n, n_q = (size_t)noise->n_q;
    const double *sigma = noise->saxs->sigma;
    for (size_t k = 0; k < n; k++) {
        for (size_t j = 0; j < n_q; j++)
            noise->column[j * n + k] = matrix[k * n_q + j];
        noise->weight[k] = 1.0 / (sigma[k] * sigma[k]);
    }
}

/* The curves of the model's own error at the data's q, and their variance. */
static void set_error_curves(tsr_noise *noise, const tsr_noise_spec *spec)
{
    const int n = noise->saxs->n;
    for (int e = 0; e < noise->n_error; e++) {
        double *curve = noise->curve + e * n;
        tsr_q_operator_apply(spec->matrix, n, noise->n_q,
                             spec->error + e * noise->n_q, curve);
        for (int k = 0; k < n; k++)
            noise->variance[k] += curve[k] * curve[k];
    }
}

tsr_status tsr_noise_new(const tsr_noise_spec *spec, tsr_pool *pool,
                         tsr_noise **out, tsr_err *err)
{
    const tsr_noise_type *type = tsr_noise_registry[spec->options->model];
    const size_t n = (size_t)spec->saxs->n;
    tsr_noise *s = *out =
        tsr_pool_new(pool, 1, type->size > 0 ? type->size : sizeof(tsr_noise));
    TSR_TRY(tsr_allocated(s, err));
    s->type = type;
    s->saxs = spec->saxs;
    s->linear = *spec->linear;
    s->n_q = spec->n_q;
    s->n_error = spec->n_error;
    tsr_pool_array(pool, s->curve, ((size_t)s->n_error + 1) * n);
    if (type->per_point) {
        tsr_pool_array(pool, s->column, n * (size_t)s->n_q);
        tsr_pool_array(pool, s->weight, n);
    }
    TSR_TRY(tsr_pool_check(pool, err));
    s->variance = s->curve + (size_t)s->n_error * n;
    set_error_curves(s, spec);
    for (size_t k = 0; k < n; k++)
        s->log_sigma += log(spec->saxs->sigma[k]);
    if (s->column != NULL)
        set_columns(s, spec->matrix);
    return type->make == NULL ? TSR_OK : type->make(s, spec, pool, err);
}

/* ---- the list ---- */

#define X(name) &tsr_noise_##name,
const tsr_noise_type *const tsr_noise_registry[] = {TSR_NOISE_MODELS(X) NULL};
#undef X

const char *const tsr_noise_infer_words[] = {"infer", NULL};

tsr_field_kind tsr_noise_kind(int number)
{
    const tsr_noise_type *type = tsr_noise_registry[number];
    return type == NULL ? (tsr_field_kind){.name = NULL}
                        : (tsr_field_kind){type->name, type->doc, type->fields};
}
