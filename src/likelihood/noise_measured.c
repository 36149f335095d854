/* Noise model `measured`: normal errors, sigma_k = s sigma_exp,k.
 *
 * Per data set the weighted problem |(c A I + b 1 - d) / sigma|^2 is rotated
 * once by the orthogonal factor of [A 1 d] / sigma, so that a step costs the
 * same for 60 points as for 1000: at most n_q + 2 rows stay, in a triangle. The
 * model's own errors are curves on the grid, so they are rotated by A, too. */
#include "likelihood/noise.h"

#include <gsl/gsl_linalg.h>
#include <gsl/gsl_randist.h>
#include <math.h>
#include <stdlib.h>

typedef struct {
    tsr_linear linear;
    const tsr_saxs *saxs;
    int n_q, n_row;
    double *row;      /* [n_row][n_q] model */
    int *first;       /* [n_row] first column that is not 0 */
    double *one;      /* [n_row] background */
    double *data;     /* [n_row] data, background projected out or taken off */
    double one_norm;  /* |1 / sigma|^2 */
    double one_data;  /* 1 . d / |1|^2, before the projection */
    double log_sigma; /* sum of log sigma */
    tsr_model_error error;
    double *curve;    /* [error.n][n_row] the model's own errors */
    double *variance; /* [saxs->n] of them, in the data's unit */
} measured;

static void measured_free(void *state)
{
    measured *s = state;
    if (s == NULL)
        return;
    free(s->row);
    free(s->first);
    free(s->one);
    free(s->data);
    free(s->curve);
    free(s->variance);
    free(s);
}

static double dot(int n, const double *a, const double *b)
{
    double sum = 0.0;
    for (int i = 0; i < n; i++)
        sum += a[i] * b[i];
    return sum;
}

/* Fills the rows from the weighted matrix [A 1 d], triangular or not. */
static void take_rows(measured *s, const gsl_matrix *m, int triangular)
{
    size_t n_q = (size_t)s->n_q;
    for (size_t i = 0; i < (size_t)s->n_row; i++) {
        size_t start = triangular ? i : 0;
        for (size_t j = 0; j < n_q; j++)
            s->row[i * n_q + j] = j < start ? 0.0 : gsl_matrix_get(m, i, j);
        s->first[i] = (int)(start < n_q ? start : n_q);
        s->one[i] = start <= n_q ? gsl_matrix_get(m, i, n_q) : 0.0;
        s->data[i] = gsl_matrix_get(m, i, n_q + 1);
    }
}

static void project_data(measured *s)
{
    s->one_norm = dot(s->n_row, s->one, s->one);
    s->one_data = s->linear.infer_background
                      ? dot(s->n_row, s->one, s->data) / s->one_norm
                      : s->linear.background;
    for (int i = 0; i < s->n_row; i++)
        s->data[i] -= s->one_data * s->one[i];
}

/* The model's row i, without background. */
static double model_row(const measured *s, int i, const double *profile)
{
    const double *row = s->row + (size_t)i * (size_t)s->n_q;
    double sum = 0.0;
    for (int j = s->first[i]; j < s->n_q; j++)
        sum += row[j] * profile[j];
    return sum;
}

/* 0: out of memory. */
static int take_errors(measured *s, const tsr_noise_spec *spec)
{
    const int n = spec->n_error;
    const size_t n_point = (size_t)spec->saxs->n;
    double *at_data = calloc((size_t)n * n_point + 1, sizeof *at_data);
    s->curve = calloc((size_t)(n * s->n_row) + 1, sizeof *s->curve);
    s->variance = calloc(n_point + 1, sizeof *s->variance);
    const int complete =
        at_data != NULL && s->curve != NULL && s->variance != NULL;
    if (complete)
        tsr_noise_carry_errors(spec, at_data, s->variance);
    free(at_data);
    s->error.n = complete ? n : 0;
    for (int e = 0; e < s->error.n; e++)
        for (int i = 0; i < s->n_row; i++)
            s->curve[e * s->n_row + i] =
                model_row(s, i, spec->error + (size_t)(e * s->n_q));
    for (int e = 0; e < s->error.n; e++)
        for (int f = 0; f < s->error.n; f++)
            s->error.gram[e][f] =
                dot(s->n_row, s->curve + e * s->n_row, s->curve + f * s->n_row);
    return complete;
}

static void *measured_new(const tsr_noise_spec *spec)
{
    const tsr_saxs *saxs = spec->saxs;
    size_t n = (size_t)saxs->n, n_q = (size_t)spec->n_q, m = n_q + 2;
    size_t n_row = n > m ? m : n;
    measured *s = calloc(1, sizeof *s);
    gsl_matrix *a = gsl_matrix_alloc(n, m);
    gsl_vector *tau = gsl_vector_alloc(n_row);
    if (s == NULL || a == NULL || tau == NULL)
        goto fail;
    s->linear = *spec->linear;
    s->saxs = saxs, s->n_q = spec->n_q, s->n_row = (int)n_row;
    s->row = calloc(n_row * n_q, sizeof *s->row);
    s->first = calloc(n_row, sizeof *s->first);
    s->one = calloc(n_row, sizeof *s->one);
    s->data = calloc(n_row, sizeof *s->data);
    if (s->row == NULL || s->first == NULL || s->one == NULL || s->data == NULL)
        goto fail;
    for (size_t k = 0; k < n; k++) {
        double w = 1.0 / saxs->sigma[k];
        for (size_t j = 0; j < n_q; j++)
            gsl_matrix_set(a, k, j, w * spec->matrix[k * n_q + j]);
        gsl_matrix_set(a, k, m - 2, w);
        gsl_matrix_set(a, k, m - 1, w * saxs->intensity[k]);
        s->log_sigma += log(saxs->sigma[k]);
    }
    if (n > m)
        gsl_linalg_QR_decomp(a, tau);
    take_rows(s, a, n > m);
    project_data(s);
    if (!take_errors(s, spec))
        goto fail;
    gsl_matrix_free(a);
    gsl_vector_free(tau);
    return s;
fail:
    gsl_matrix_free(a);
    gsl_vector_free(tau);
    measured_free(s);
    return NULL;
}

static void measured_refit(const void *state, const double *theta, tsr_fit *fit)
{
    const measured *s = state;
    if (s->error.n > 0)
        tsr_linear_widen(&s->linear, &s->error, theta[0], fit);
}

static void measured_fit(const void *state, const double *profile,
                         const double *theta, tsr_fit *fit)
{
    const measured *s = state;
    enum { CHUNK = 1024 };
    double small[CHUNK];
    tsr_plain_fit *plain = &fit->plain;
    for (int e = 0; e < s->error.n; e++)
        plain->residual[e] = plain->model[e] = plain->one[e] = 0.0;
    /* n_row is at most n_q + 2; long grids take the slow way twice. */
    int keep = s->n_row <= CHUNK, fit_background = s->linear.infer_background;
    double one_model = 0.0;
    for (int i = 0; i < s->n_row; i++) {
        double m = model_row(s, i, profile);
        one_model += s->one[i] * m;
        if (keep)
            small[i] = m;
    }
    one_model = fit_background ? one_model / s->one_norm : 0.0;
    double norm = 0.0, cross = 0.0;
    for (int i = 0; i < s->n_row; i++) {
        double m = keep ? small[i] : model_row(s, i, profile);
        m -= one_model * s->one[i];
        norm += m * m;
        cross += m * s->data[i];
        for (int e = 0; e < s->error.n; e++)
            plain->model[e] += s->curve[e * s->n_row + i] * m;
    }
    double c = s->linear.infer_scale ? cross / norm : s->linear.scale;
    double chi2 = 0.0;
    for (int i = 0; i < s->n_row; i++) {
        double m = keep ? small[i] : model_row(s, i, profile);
        double r = s->data[i] - c * (m - one_model * s->one[i]);
        chi2 += r * r;
        for (int e = 0; e < s->error.n; e++) {
            const double curve = s->curve[e * s->n_row + i];
            plain->residual[e] += curve * r;
            plain->one[e] += curve * s->one[i];
        }
    }
    fit->scale = c;
    fit->background =
        fit_background ? s->one_data - c * one_model : s->linear.background;
    fit->square_sum = fit->chi2 = chi2;
    fit->model_norm = norm;
    fit->model_mean = one_model;
    fit->one_norm = s->one_norm;
    fit->log_sigma = s->log_sigma;
    tsr_linear_keep(fit);
    measured_refit(s, theta, fit);
}

static double measured_log_integral(const void *state, const tsr_fit *fit,
                                    const double *theta)
{
    const measured *s = state;
    return tsr_linear_log_integral(&s->linear, s->saxs->n, fit, theta[0]);
}

static double measured_log_lik(const void *state, const tsr_fit *fit,
                               const double *theta, double c, double b)
{
    const measured *s = state;
    return tsr_linear_log_normal(s->saxs->n, fit, theta[0], c, b);
}

static tsr_linear_shape measured_conditional(const double *theta)
{
    return (tsr_linear_shape){exp(theta[0]), 0};
}

/* Of one point alone, the model's own error included. */
static double sd_at(const measured *s, const double *theta, int k)
{
    const double own = exp(theta[0]) * s->saxs->sigma[k];
    return s->error.n > 0 ? sqrt(own * own + s->variance[k]) : own;
}

static double measured_log_point(const void *state, const double *theta, int k,
                                 double residual)
{
    const measured *s = state;
    const double half_log_2pi = 0.9189385332046727;
    double sd = sd_at(s, theta, k), z = residual / sd;
    return -0.5 * z * z - log(sd) - half_log_2pi;
}

static double measured_draw_point(const void *state, const double *theta, int k,
                                  gsl_rng *rng)
{
    const measured *s = state;
    return gsl_ran_gaussian_ziggurat(rng, sd_at(s, theta, k));
}

static void measured_parameters(const tsr_noise_options *options,
                                tsr_parameter *parameter)
{
    const tsr_noise_scale_options *o = (const void *)options;
    parameter[0] = tsr_parameter_log_normal(
        "noise_scale", NULL,
        "noise over the stated errors; s in sigma = s sigma_exp", o->scale, 1.0,
        o->scale_width, TSR_CHANGES_LIKELIHOOD);
}

static const tsr_field fields[] = {TSR_NOISE_SCALE_FIELDS, {0}};

const tsr_noise_type tsr_noise_measured = {
    .name = "measured",
    .doc = "normal errors, sigma = s sigma_exp",
    .source = "DESIGN 1; the linear Gaussian model, e.g. Bishop 2006, ch. 3",
    .fields = fields,
    .n_parameter = 1,
    .parameters = measured_parameters,
    .state_new = measured_new,
    .state_free = measured_free,
    .fit = measured_fit,
    .refit = measured_refit,
    .log_integral = measured_log_integral,
    .log_lik = measured_log_lik,
    .conditional = measured_conditional,
    .log_point = measured_log_point,
    .draw_point = measured_draw_point};
