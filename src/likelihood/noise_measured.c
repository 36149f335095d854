/* Noise model `measured`: normal errors, sigma_k = s sigma_exp,k.
 *
 * The matrix A maps a profile I on the grid to the data's q, and d are the
 * data. The weighted least-squares problem |(c A I + b 1 - d) / sigma|^2 is
 * rotated once by the orthogonal factor of a QR decomposition of [A 1 d] /
 * sigma. At most n_q + 2 rows remain, in triangular form, so a step costs no
 * more for 1000 data points than for n_q + 2. The curves of the model's own
 * error are on the grid too and are multiplied by the same rows. */
#include "likelihood/noise.h"

#include <gsl/gsl_linalg.h>
#include <math.h>

typedef struct {
    tsr_noise noise;
    int n_row;
    double *row;     /* [n_row][n_q] rotated A / sigma */
    int *first;      /* [n_row] first nonzero column */
    double *one;     /* [n_row] rotated 1 / sigma */
    double *data;    /* [n_row] rotated d / sigma, minus its background part */
    double one_norm; /* |1 / sigma|^2 */
    double one_data; /* best background without a model, 1 . d / |1|^2, or the
                        fixed background */
    tsr_model_error error;
    double *curve; /* [error.n][n_row] curves of the model's own error */
} measured;

static double dot(int n, const double *a, const double *b)
{
    double sum = 0.0;
    for (int i = 0; i < n; i++)
        sum += a[i] * b[i];
    return sum;
}

/* Copies the rows of [A 1 d] / sigma, or with triangular 1 of its triangular
 * factor, whose elements below the diagonal count as 0. */
static void copy_rows(measured *s, const gsl_matrix *m, int triangular)
{
    size_t n_q = (size_t)s->noise.n_q;
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
    s->one_data = s->noise.linear.infer_background
                      ? dot(s->n_row, s->one, s->data) / s->one_norm
                      : s->noise.linear.background;
    for (int i = 0; i < s->n_row; i++)
        s->data[i] -= s->one_data * s->one[i];
}

/* Row i of rotated A I / sigma. */
static double model_row(const measured *s, int i, const double *profile)
{
    const int n_q = s->noise.n_q;
    const double *row = s->row + (size_t)i * (size_t)n_q;
    double sum = 0.0;
    for (int j = s->first[i]; j < n_q; j++)
        sum += row[j] * profile[j];
    return sum;
}

static void set_error_curves(measured *s, const tsr_noise_spec *spec)
{
    const int n = s->noise.n_error, n_row = s->n_row;
    s->error.n = n;
    for (int e = 0; e < n; e++)
        for (int i = 0; i < n_row; i++)
            s->curve[e * n_row + i] =
                model_row(s, i, spec->error + (size_t)(e * spec->n_q));
    for (int e = 0; e < n; e++)
        for (int f = 0; f < n; f++)
            s->error.gram[e][f] =
                dot(n_row, s->curve + e * n_row, s->curve + f * n_row);
}

static void weight_rows(const tsr_noise_spec *spec, gsl_matrix *a)
{
    const size_t n_q = (size_t)spec->n_q;
    for (size_t k = 0; k < a->size1; k++) {
        double w = 1.0 / spec->saxs->sigma[k];
        for (size_t j = 0; j < n_q; j++)
            gsl_matrix_set(a, k, j, w * spec->matrix[k * n_q + j]);
        gsl_matrix_set(a, k, n_q, w);
        gsl_matrix_set(a, k, n_q + 1, w * spec->saxs->intensity[k]);
    }
}

static tsr_status measured_make(tsr_noise *noise, const tsr_noise_spec *spec,
                                tsr_pool *pool, tsr_err *err)
{
    measured *s = (measured *)noise;
    const size_t n = (size_t)spec->saxs->n, m = (size_t)spec->n_q + 2;
    const size_t n_row = n > m ? m : n;
    double *rows, *factor;
    s->n_row = (int)n_row;
    tsr_pool_array(pool, s->row, n_row * (size_t)spec->n_q);
    tsr_pool_array(pool, s->first, n_row);
    tsr_pool_array(pool, s->one, n_row);
    tsr_pool_array(pool, s->data, n_row);
    tsr_pool_array(pool, s->curve, (size_t)spec->n_error * n_row);
    tsr_pool_array(pool, rows, n * m);
    tsr_pool_array(pool, factor, n_row);
    TSR_TRY(tsr_pool_check(pool, err));
    gsl_matrix a = gsl_matrix_view_array(rows, n, m).matrix;
    gsl_vector tau = gsl_vector_view_array(factor, n_row).vector;
    weight_rows(spec, &a);
    if (n > m)
        gsl_linalg_QR_decomp(&a, &tau);
    copy_rows(s, &a, n > m);
    project_data(s);
    set_error_curves(s, spec);
    tsr_pool_free(pool, rows);
    return TSR_OK;
}

static void measured_refit(const tsr_noise *noise, const double *theta,
                           tsr_fit *fit)
{
    const measured *s = (const measured *)noise;
    if (s->error.n > 0 || s->noise.linear.background_sd > 0.0)
        tsr_linear_add_model_error(&s->noise.linear, &s->error, theta[0], fit);
}

static void measured_fit(const tsr_noise *noise, const double *profile,
                         const double *theta, tsr_fit *fit)
{
    const measured *s = (const measured *)noise;
    enum { CHUNK = 1024 };
    double model[CHUNK];
    tsr_plain_fit *plain = &fit->plain;
    for (int e = 0; e < s->error.n; e++)
        plain->residual[e] = plain->model[e] = plain->one[e] = 0.0;
    /* If there are more than CHUNK rows, each is computed three times instead
     * of once. */
    int is_stored = s->n_row <= CHUNK,
        fit_background = s->noise.linear.infer_background;
    double one_model = 0.0;
    for (int i = 0; i < s->n_row; i++) {
        double m = model_row(s, i, profile);
        one_model += s->one[i] * m;
        if (is_stored)
            model[i] = m;
    }
    one_model = fit_background ? one_model / s->one_norm : 0.0;
    double norm = 0.0, cross = 0.0;
    for (int i = 0; i < s->n_row; i++) {
        double m = is_stored ? model[i] : model_row(s, i, profile);
        m -= one_model * s->one[i];
        norm += m * m;
        cross += m * s->data[i];
        for (int e = 0; e < s->error.n; e++)
            plain->model[e] += s->curve[e * s->n_row + i] * m;
    }
    double c =
        s->noise.linear.infer_scale ? cross / norm : s->noise.linear.scale;
    double chi2 = 0.0;
    for (int i = 0; i < s->n_row; i++) {
        double m = is_stored ? model[i] : model_row(s, i, profile);
        double r = s->data[i] - c * (m - one_model * s->one[i]);
        chi2 += r * r;
        for (int e = 0; e < s->error.n; e++) {
            const double curve = s->curve[e * s->n_row + i];
            plain->residual[e] += curve * r;
            plain->one[e] += curve * s->one[i];
        }
    }
    fit->scale = c;
    fit->background = fit_background ? s->one_data - c * one_model
                                     : s->noise.linear.background;
    fit->square_sum = fit->chi2 = chi2;
    fit->model_norm = norm;
    fit->model_mean = one_model;
    fit->one_norm = s->one_norm;
    fit->log_sigma = noise->log_sigma;
    tsr_linear_save_plain(fit);
    measured_refit(noise, theta, fit);
}

static double measured_sigma(const tsr_noise *noise, const double *theta, int k)
{
    return exp(theta[0]) * noise->saxs->sigma[k];
}

static void measured_parameters(const tsr_noise_options *options,
                                tsr_parameter *parameter)
{
    const tsr_noise_scale_options *o = (const void *)options;
    parameter[0] = tsr_parameter_log_normal(
        "noise_scale", NULL,
        "ratio s of the noise to the stated errors; sigma = s sigma_exp",
        o->scale, 1.0, o->scale_width, TSR_CHANGES_LIKELIHOOD);
}

static const tsr_field fields[] = {TSR_NOISE_SCALE_FIELDS, {0}};

const tsr_noise_type tsr_noise_measured = {
    .name = "measured",
    .doc = "normal errors, sigma = s sigma_exp",
    .source = "the linear Gaussian model, e.g. Bishop 2006, ch. 3",
    .fields = fields,
    .n_parameter = 1,
    .size = sizeof(measured),
    .parameters = measured_parameters,
    .make = measured_make,
    .fit = measured_fit,
    .refit = measured_refit,
    .sigma = measured_sigma,
    TSR_NOISE_NORMAL};
