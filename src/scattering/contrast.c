/* c1 and c2: their effect on the components of a profile, the folding of
 * components that need not stay separate, their options and their rows in the
 * parameter table.
 *
 * Each parameter is fixed or has a truncated normal prior. If both are
 * inferred, their posterior is often a narrow ridge, so both are proposed by
 * steps along the principal axes of their covariance (TSR_STEP_AXES). */
#include "scattering/contrast.h"
#include "core/vec3.h"

#include <gsl/gsl_cdf.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

/* ---- components ---- */

int tsr_component_pair(int a, int b)
{
    return a * (2 * TSR_N_COMP - a - 1) / 2 + b;
}

double tsr_component_power(double radius_ang, double q_inv_ang)
{
    double area = pow(4.0 * TSR_PI / 3.0, 2.0 / 3.0) * radius_ang * radius_ang;
    return area * q_inv_ang * q_inv_ang / (4.0 * TSR_PI);
}

/* G from c1. power: tsr_component_power. */
static double displaced_scale(double c1, double power)
{
    double square = c1 * c1;
    return square * c1 * exp(-(square - 1.0) * power);
}

double tsr_component_scale(double c1, double radius_ang, double q_inv_ang)
{
    return displaced_scale(c1, tsr_component_power(radius_ang, q_inv_ang));
}

double tsr_component_intensity(const double *partial, size_t stride, double g,
                               double c2)
{
    const double *p = partial; /* order 00 01 02 11 12 22 */
    return p[0] - 2.0 * g * p[stride] + 2.0 * c2 * p[2 * stride] +
           g * g * p[3 * stride] - 2.0 * g * c2 * p[4 * stride] +
           c2 * c2 * p[5 * stride];
}

/* ---- folding ----
 *
 * The coefficient of a fixed parameter is multiplied into the form factors, and
 * components with equal coefficients are added. Form factors are amplitudes, so
 * they add. Partial profiles and S_ab are quadratic in the amplitudes, so a
 * pair of different components that fold into the same component counts twice.
 */

/* into [TSR_N_COMP] out: the folded component that each of the three components
 * becomes a part of. Returns K. */
static int assign_components(const tsr_parameter *prior, int *into)
{
    int n = 1;
    into[TSR_SOLUTE] = 0;
    into[TSR_DISPLACED] = prior[TSR_C1].infer ? n++ : 0;
    into[TSR_HYDRATION] = prior[TSR_C2].infer ? n++ : 0;
    return n;
}

/* Factor by which each component is multiplied before it is added. */
static void folding_factors(const tsr_parameter *prior, double power,
                            double *scale)
{
    scale[TSR_SOLUTE] = scale[TSR_DISPLACED] = scale[TSR_HYDRATION] = 1.0;
    if (!prior[TSR_C1].infer)
        scale[TSR_DISPLACED] = -displaced_scale(prior[TSR_C1].start, power);
    if (!prior[TSR_C2].infer)
        scale[TSR_HYDRATION] = prior[TSR_C2].start;
}

/* Folds six values of pairs, `stride` apart, in place. */
static void fold_pairs(int n_comp, const int *into, const double *scale,
                       double *pair, size_t stride)
{
    double sum[TSR_N_COMP_PAIR] = {0.0};
    for (int a = 0; a < TSR_N_COMP; a++)
        for (int b = a; b < TSR_N_COMP; b++) {
            double value = pair[(size_t)tsr_component_pair(a, b) * stride];
            double multiplicity = a != b && into[a] == into[b] ? 2.0 : 1.0;
            const int low = into[a] < into[b] ? into[a] : into[b];
            const int high = into[a] < into[b] ? into[b] : into[a];
            sum[low * (2 * n_comp - low - 1) / 2 + high] +=
                multiplicity * scale[a] * scale[b] * value;
        }
    for (int p = 0; p < n_comp * (n_comp + 1) / 2; p++)
        pair[(size_t)p * stride] = sum[p];
}

int tsr_factors_fold(const tsr_parameter *prior, double radius_ang, int n_type,
                     int n_q, double dq_inv_ang, double *factor)
{
    int into[TSR_N_COMP], n = assign_components(prior, into);
    const size_t row = (size_t)n_q, comp = (size_t)n_type * row;
    for (size_t k = 0; k < row; k++) {
        double scale[TSR_N_COMP];
        folding_factors(prior,
                        tsr_component_power(radius_ang, (double)k * dq_inv_ang),
                        scale);
        for (size_t t = 0; t < (size_t)n_type; t++) {
            double sum[TSR_N_COMP] = {0.0};
            double *f = factor + t * row + k;
            for (int a = 0; a < TSR_N_COMP; a++)
                sum[into[a]] += scale[a] * f[(size_t)a * comp];
            for (int a = 0; a < n; a++)
                f[(size_t)a * comp] = sum[a];
        }
    }
    return n;
}

int tsr_partials_fold(const tsr_parameter *prior, double radius_ang, int n_q,
                      double dq_inv_ang, double *partial)
{
    int into[TSR_N_COMP], n = assign_components(prior, into);
    for (int k = 0; k < n_q; k++) {
        double scale[TSR_N_COMP];
        folding_factors(prior, tsr_component_power(radius_ang, k * dq_inv_ang),
                        scale);
        fold_pairs(n, into, scale, partial + k, (size_t)n_q);
    }
    return n;
}

int tsr_coarse_coefficients(const tsr_parameter *prior, const double *value,
                            double power, double *c)
{
    int n = 1;
    c[0] = 1.0;
    if (prior[TSR_C1].infer)
        c[n++] = -displaced_scale(value[TSR_C1], power);
    if (prior[TSR_C2].infer)
        c[n++] = value[TSR_C2];
    return n;
}

double tsr_coarse_sum(int n_comp, const double *c, const double *partial,
                      size_t stride)
{
    double sum = 0.0;
    for (int a = 0; a < n_comp; a++)
        for (int b = a; b < n_comp; b++, partial += stride)
            sum += (a == b ? 1.0 : 2.0) * c[a] * c[b] * *partial;
    return sum;
}

/* ---- the prior ---- */

static const char *const auto_words[] = {"infer", "auto", NULL};

const tsr_field tsr_contrast_fields[] = {
    TSR_FIELD(NUMBER_OR_WORD, "c1", tsr_contrast_options, c1, .initial = "auto",
              .min = 0.8, .max = 1.2, .words = auto_words,
              .doc = "scale of the radius of the excluded volume, as in FoXS; "
                     "auto: infer with a curve of X-rays, unless "
                     "structure.bodies is atoms or model_error none; else 1"),
    TSR_FIELD(DOUBLE, "c1_mean", tsr_contrast_options, c1_mean, .initial = "1",
              .min = 0.8, .max = 1.2,
              .doc = "mean of its prior, a normal density cut to c1_range"),
    TSR_FIELD(DOUBLE, "c1_width", tsr_contrast_options, c1_width,
              .initial = "0.02", .min = 1e-6, .max = 1e3,
              .doc = "standard deviation of the prior before the cut"),
    TSR_FIELD(PAIR, "c1_range", tsr_contrast_options, c1_range,
              .initial = "[0.95, 1.05]", .min = 0.8, .max = 1.2,
              .doc = "range of c1; the prior is zero outside"),
    TSR_FIELD(NUMBER_OR_WORD, "c2", tsr_contrast_options, c2, .initial = "auto",
              .min = -10.0, .max = 20.0, .words = auto_words,
              .doc = "hydration: contrast of water around each exposed atom, "
                     "as in FoXS; auto: infer where there is a curve, 0 "
                     "without a curve and with structure.form_factors"),
    TSR_FIELD(DOUBLE, "c2_mean", tsr_contrast_options, c2_mean, .initial = "1",
              .min = -10.0, .max = 20.0,
              .doc = "mean of its prior, a normal density cut to c2_range"),
    TSR_FIELD(DOUBLE, "c2_width", tsr_contrast_options, c2_width,
              .initial = "1.5", .min = 1e-6, .max = 1e3,
              .doc = "standard deviation of the prior before the cut"),
    TSR_FIELD(PAIR, "c2_range", tsr_contrast_options, c2_range,
              .initial = "[0, 4]", .min = -10.0, .max = 20.0,
              .doc = "range of c2; the prior is zero outside"),
    {0}};

static tsr_status make_prior(tsr_number_or_word value, double mean,
                             double width, const double range[2],
                             tsr_parameter *out, tsr_err *err)
{
    out->infer = value.word == TSR_CONTRAST_INFER;
    out->start = value.number;
    out->shape = TSR_PRIOR_CUT_NORMAL;
    out->mean = mean, out->width = width;
    out->low = range[0], out->high = range[1];
    out->scope = TSR_CHANGES_PROFILE;
    if (!out->infer)
        return TSR_OK;
    if (!(range[0] < range[1]))
        return tsr_fail(err, TSR_E_CONFIG,
                        "contrast.%s_range: [%g, %g] leaves no range to infer; "
                        "widen it, or set %s to a number",
                        out->name, range[0], range[1], out->name);
    if (mean < range[0] || mean > range[1])
        return tsr_fail(err, TSR_E_CONFIG,
                        "contrast.%s_mean: %g is outside of %s_range [%g, %g], "
                        "where the prior is zero",
                        out->name, mean, out->name, range[0], range[1]);
    double probability = gsl_cdf_ugaussian_P((range[1] - mean) / width) -
                         gsl_cdf_ugaussian_P((range[0] - mean) / width);
    out->start = mean;
    out->log_norm = -0.5 * log(2.0 * TSR_PI) - log(width) - log(probability);
    out->step = TSR_STEP_AXES;
    return TSR_OK;
}

tsr_status tsr_contrast_priors(const tsr_contrast_options *o,
                               tsr_parameter *parameter, tsr_err *err)
{
    parameter[TSR_C1] = (tsr_parameter){
        .name = "c1", .doc = "excluded volume c1; scale of its radius"};
    parameter[TSR_C2] = (tsr_parameter){
        .name = "c2",
        .doc = "hydration c2; contrast of water around each exposed atom"};
    TSR_TRY(make_prior(o->c1, o->c1_mean, o->c1_width, o->c1_range,
                       &parameter[TSR_C1], err));
    return make_prior(o->c2, o->c2_mean, o->c2_width, o->c2_range,
                      &parameter[TSR_C2], err);
}

int tsr_contrast_is_plain(const tsr_parameter *p)
{
    return !p[TSR_C1].infer && !p[TSR_C2].infer && p[TSR_C1].start == 1.0 &&
           p[TSR_C2].start == 0.0;
}

void tsr_structure_factor_apply(double s0, double i0, int n, double *intensity)
{
    for (int k = 0; k < n; k++) {
        const double p = intensity[k] / i0;
        intensity[k] *= s0 / (s0 + (1.0 - s0) * p * p);
    }
}

tsr_status tsr_interference_make(const tsr_q_grid *grid,
                                 const tsr_resolution *resolution, int n,
                                 const double *q_inv_ang, tsr_pool *pool,
                                 tsr_interference *out, tsr_err *err)
{
    const int n_q = grid->n_q, n_fine = 3 * n_q - 2, n_joint = n_q + n_fine;
    const tsr_q_grid third = {n_fine, grid->dq_inv_ang / 3.0,
                              3.0 * grid->band_ang};
    double *q, *part[3] = {NULL};
    *out = (tsr_interference){n_q, n_fine, n_joint, NULL, NULL};
    tsr_pool_array(pool, q, n_fine);
    tsr_pool_array(pool, out->fine, n_fine * n_q);
    tsr_pool_array(pool, out->matrix, n * n_joint);
    TSR_TRY(tsr_pool_check(pool, err));
    for (int k = 0; k < n_fine; k++)
        q[k] = fmin(k * third.dq_inv_ang, (n_q - 1) * grid->dq_inv_ang);
    tsr_status status = tsr_q_operator_new(grid, n_fine, q, &part[0], err);
    TSR_THEN(status, tsr_q_operator_smeared(grid, resolution, n, q_inv_ang,
                                            &part[1], err));
    TSR_THEN(status, tsr_q_operator_smeared(&third, resolution, n, q_inv_ang,
                                            &part[2], err));
    const size_t size[2] = {(size_t)n_q * sizeof *q,
                            (size_t)n_fine * sizeof *q};
    if (status == TSR_OK)
        memcpy(out->fine, part[0], size[0] * (size_t)n_fine);
    for (int k = 0; k < n && status == TSR_OK; k++) {
        double *row = out->matrix + (ptrdiff_t)k * n_joint;
        memcpy(row, part[1] + (ptrdiff_t)k * n_q, size[0]);
        memcpy(row + n_q, part[2] + (ptrdiff_t)k * n_fine, size[1]);
    }
    for (int i = 0; i < 3; i++)
        free(part[i]);
    return status;
}

void tsr_interference_apply(const tsr_interference *x, double s0,
                            const double *profile, double *joint)
{
    double *fine = joint + x->n_q;
    memcpy(joint, profile, (size_t)x->n_q * sizeof *joint);
    tsr_q_operator_apply(x->fine, x->n_fine, x->n_q, profile, fine);
    for (int k = 0; k < x->n_fine; k++) {
        const double p = fine[k] / profile[0], square = (1.0 - s0) * p * p;
        fine[k] *= -square / (s0 + square);
    }
}
