/* Noise model `measured`: sigma_k = s sigma_exp,k.
 *
 * Per data set the weighted problem |(c A I + b 1 - d) / sigma|^2 is rotated
 * once by the orthogonal factor of [A 1 d] / sigma, so that a step costs the
 * same for 60 points as for 1000: at most n_q + 2 rows stay, in a triangle. */
#include "likelihood/noise.h"

#include <gsl/gsl_linalg.h>
#include <gsl/gsl_randist.h>
#include <gsl/gsl_sf_erf.h>
#include <math.h>
#include <stdlib.h>

typedef struct {
    int n, n_q, n_row;
    int fit_background;
    double fixed_background;
    double *row;      /* [n_row][n_q] model */
    int *first;       /* [n_row] first column that is not 0 */
    double *one;      /* [n_row] background */
    double *data;     /* [n_row] data, background projected out or taken off */
    double one_norm;  /* |1 / sigma|^2 */
    double one_data;  /* 1 . d / |1|^2, before the projection */
    double log_sigma; /* sum of log sigma */
} measured;

static const double log_2pi = 1.8378770664093453;

static void measured_free(void *state)
{
    measured *s = state;
    if (s == NULL)
        return;
    free(s->row);
    free(s->first);
    free(s->one);
    free(s->data);
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
    if (!s->fit_background) {
        for (int i = 0; i < s->n_row; i++)
            s->data[i] -= s->fixed_background * s->one[i];
        return;
    }
    s->one_data = dot(s->n_row, s->one, s->data) / s->one_norm;
    for (int i = 0; i < s->n_row; i++)
        s->data[i] -= s->one_data * s->one[i];
}

static void *measured_new(const tsr_noise_options *options,
                          const tsr_saxs *saxs, const double *matrix, int n_q,
                          tsr_number_or_word background)
{
    (void)options;
    size_t n = (size_t)saxs->n, m = (size_t)n_q + 2;
    size_t n_row = n > m ? m : n;
    measured *s = calloc(1, sizeof *s);
    gsl_matrix *a = gsl_matrix_alloc(n, m);
    gsl_vector *tau = gsl_vector_alloc(n_row);
    if (s == NULL || a == NULL || tau == NULL)
        goto fail;
    s->n = saxs->n, s->n_q = n_q, s->n_row = (int)n_row;
    s->fit_background = background.word == TSR_BACKGROUND_INFER;
    s->fixed_background = background.word < 0 ? background.number : 0.0;
    s->row = calloc(n_row * (size_t)n_q, sizeof *s->row);
    s->first = calloc(n_row, sizeof *s->first);
    s->one = calloc(n_row, sizeof *s->one);
    s->data = calloc(n_row, sizeof *s->data);
    if (s->row == NULL || s->first == NULL || s->one == NULL || s->data == NULL)
        goto fail;
    for (size_t k = 0; k < n; k++) {
        double w = 1.0 / saxs->sigma[k];
        for (size_t j = 0; j < (size_t)n_q; j++)
            gsl_matrix_set(a, k, j, w * matrix[k * (size_t)n_q + j]);
        gsl_matrix_set(a, k, m - 2, w);
        gsl_matrix_set(a, k, m - 1, w * saxs->intensity[k]);
        s->log_sigma += log(saxs->sigma[k]);
    }
    if (n > m)
        gsl_linalg_QR_decomp(a, tau);
    take_rows(s, a, n > m);
    project_data(s);
    gsl_matrix_free(a);
    gsl_vector_free(tau);
    return s;
fail:
    gsl_matrix_free(a);
    gsl_vector_free(tau);
    measured_free(s);
    return NULL;
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

static void measured_fit(const void *state, const double *profile, tsr_fit *fit)
{
    const measured *s = state;
    enum { CHUNK = 1024 };
    double small[CHUNK];
    /* n_row is at most n_q + 2; long grids take the slow way twice. */
    int keep = s->n_row <= CHUNK;
    double one_model = 0.0;
    for (int i = 0; i < s->n_row; i++) {
        double m = model_row(s, i, profile);
        one_model += s->one[i] * m;
        if (keep)
            small[i] = m;
    }
    one_model = s->fit_background ? one_model / s->one_norm : 0.0;
    double norm = 0.0, cross = 0.0;
    for (int i = 0; i < s->n_row; i++) {
        double m = keep ? small[i] : model_row(s, i, profile);
        m -= one_model * s->one[i];
        norm += m * m;
        cross += m * s->data[i];
    }
    double c = cross / norm, chi2 = 0.0;
    for (int i = 0; i < s->n_row; i++) {
        double m = keep ? small[i] : model_row(s, i, profile);
        double r = s->data[i] - c * (m - one_model * s->one[i]);
        chi2 += r * r;
    }
    fit->scale = c;
    fit->background =
        s->fit_background ? s->one_data - c * one_model : s->fixed_background;
    fit->chi2 = chi2;
    fit->model_norm = norm;
    fit->model_mean = one_model;
}

/* log of the integral over c > 0 and, where it is free, b. With p of them,
 * H = J^T W J and its determinant |H| = |m'|^2 |1|^2:
 *   -sum log sigma - (N - p)/2 log(2 pi s^2) - 1/2 log |H| - chi2 / (2 s^2)
 *   + log Phi(c / (s / |m'|)). */
static double measured_log_lik(const void *state, const tsr_fit *fit,
                               double log_s)
{
    const measured *s = state;
    int p = s->fit_background ? 2 : 1;
    double log_det = log(fit->model_norm);
    if (s->fit_background)
        log_det += log(s->one_norm);
    double z = fit->scale * sqrt(fit->model_norm) * exp(-log_s);
    const double half_root = 0.7071067811865476, log_2 = 0.6931471805599453;
    double tail = z > 8.0 ? 0.0 : gsl_sf_log_erfc(-half_root * z) - log_2;
    return -s->log_sigma - 0.5 * (s->n - p) * (log_2pi + 2.0 * log_s) -
           0.5 * log_det - 0.5 * fit->chi2 * exp(-2.0 * log_s) + tail;
}

static void measured_draw(const void *state, const tsr_fit *fit, double log_s,
                          gsl_rng *rng, double *scale, double *background)
{
    const measured *s = state;
    double sd = exp(log_s) / sqrt(fit->model_norm);
    double low = -fit->scale / sd; /* c > 0 in units of its sd */
    double above;                  /* of c over 0, in the same */
    if (low > 1e4)                 /* the far tail is exponential */
        above = gsl_ran_exponential(rng, 1.0 / low);
    else if (low > 0.0)
        above = gsl_ran_gaussian_tail(rng, low, 1.0) - low;
    else
        do
            above = gsl_ran_gaussian(rng, 1.0) - low;
        while (above <= 0.0);
    *scale = sd * above;
    *background = fit->background;
    if (!s->fit_background)
        return;
    *background = s->one_data - *scale * fit->model_mean +
                  gsl_ran_gaussian(rng, exp(log_s) / sqrt(s->one_norm));
}

const tsr_noise_type tsr_noise_measured = {
    .name = "measured",
    .doc = "normal errors, sigma = s sigma_exp; c and b integrated out",
    .source = "DESIGN 1; the linear Gaussian model, e.g. Bishop 2006, ch. 3",
    .state_new = measured_new,
    .state_free = measured_free,
    .fit = measured_fit,
    .log_lik = measured_log_lik,
    .draw = measured_draw};
