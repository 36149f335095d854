/* What a curve's term needs before chains start: the operator from the engine's
 * grid of q to the points of the data, as the instrument smears them, and the
 * model's own error. */
#include "likelihood/term_saxs.h"

#include <math.h>
#include <stdlib.h>

tsr_status tsr_saxs_term_prepare(tsr_saxs_term *term, int n_q, double *matrix,
                                 tsr_err *err)
{
    const tsr_noise_spec spec = {.options = &term->noise_options,
                                 .saxs = term->saxs,
                                 .matrix = matrix,
                                 .n_q = n_q,
                                 .linear = &term->linear};
    term->matrix = matrix;
    term->n_q = n_q;
    term->state = term->noise->state_new(&spec);
    return term->state != NULL ? TSR_OK
                               : tsr_fail(err, TSR_E_NOMEM, "out of memory");
}

/* The model's own error is in proportion to the curve. So that its covariance
 * stays the same whatever the structure, that curve is the reference brought to
 * the data: by its best scale and background where every point has a tenth of
 * itself as an error, too, since the reference need not fit. */
static double reference_scale(const tsr_saxs_term *t, const double *reference)
{
    const tsr_saxs *saxs = t->saxs;
    const double part = 0.1;
    tsr_fit fit = {0};
    double sum = 0.0, all = 0.0;
    double *weight = calloc((size_t)saxs->n, sizeof *weight);
    for (int k = 0; k < saxs->n; k++) {
        const double s = saxs->sigma[k], own = part * saxs->intensity[k];
        if (weight != NULL)
            weight[k] = 1.0 / (s * s + own * own);
        sum += saxs->intensity[k] / (s * s);
        all += reference[k] / (s * s);
    }
    if (weight != NULL)
        tsr_linear_fit(&t->linear, saxs->n, reference, saxs->intensity, weight,
                       &fit);
    free(weight);
    return fit.scale > 0.0 ? fit.scale : fabs(sum / all);
}

tsr_status tsr_saxs_term_doubt(tsr_saxs_term *term,
                               const tsr_profile_error *error, tsr_err *err)
{
    tsr_saxs_term *t = term;
    const size_t n = (size_t)error->n, n_q = (size_t)t->n_q;
    const size_t n_point = (size_t)t->saxs->n;
    if (t->noise->log_integral == NULL || n == 0)
        return TSR_OK;
    double *at_data = calloc((n + 1) * n_point, sizeof *at_data);
    double *own = calloc(n * n_q, sizeof *own);
    void *state = NULL;
    if (at_data != NULL && own != NULL) {
        tsr_saxs_curve(t, error->reference, 1.0, 0.0, at_data);
        for (size_t e = 0; e < n; e++)
            tsr_saxs_curve(t, error->curve + e * n_q, 1.0, 0.0,
                           at_data + (e + 1) * n_point);
        const double scale = reference_scale(t, at_data);
        for (size_t i = 0; i < n * n_q; i++)
            own[i] = scale * error->curve[i];
        const tsr_noise_spec spec = {.options = &t->noise_options,
                                     .saxs = t->saxs,
                                     .matrix = t->matrix,
                                     .n_q = t->n_q,
                                     .linear = &t->linear,
                                     .n_error = error->n,
                                     .error = own};
        state = t->noise->state_new(&spec);
    }
    free(own);
    if (state == NULL) {
        free(at_data);
        return tsr_fail(err, TSR_E_NOMEM, "out of memory");
    }
    t->noise->state_free(t->state);
    t->state = state;
    free(t->error);
    t->error = at_data;
    t->n_error = error->n;
    /* the weights of the points are no longer one factor times the same */
    for (int i = 0; i < t->n_noise; i++)
        t->term.parameter[i].scope = TSR_CHANGES_FIT;
    return TSR_OK;
}

tsr_status tsr_saxs_doubt(tsr_term *term, const tsr_profile_error *error,
                          tsr_err *err)
{
    return tsr_saxs_term_doubt((tsr_saxs_term *)term, error, err);
}

const char *tsr_saxs_error_name(int k)
{
    static const char *const name[TSR_MODEL_ERRORS + 1] = {
        "error_reference", "error_a", "error_b", "error_c",
        "error_d",         "error_e", "error_f"};
    return name[k];
}

const double *tsr_saxs_constant(const tsr_term *term, int k, const char **name,
                                const char **doc)
{
    const tsr_saxs_term *t = (const tsr_saxs_term *)term;
    if (t->error == NULL || k > t->n_error)
        return NULL;
    *name = tsr_saxs_error_name(k);
    *doc = k == 0
               ? "the curve that the model's own errors belong to, electrons "
                 "squared, of neutrons fm^2"
               : "a standard deviation of the model's own error, electrons "
                 "squared, of neutrons fm^2";
    return t->error + (size_t)k * (size_t)t->saxs->n;
}

tsr_status tsr_saxs_prepare(tsr_term *term, const tsr_q_grid *grid,
                            tsr_err *err)
{
    tsr_saxs_term *t = (tsr_saxs_term *)term;
    double *matrix;
    tsr_status status = tsr_q_operator_smeared(
        grid, &t->saxs->resolution, t->saxs->n, t->saxs->q, &matrix, err);
    if (status != TSR_OK)
        return tsr_wrap(err, status, "'%s'", t->saxs->path);
    return tsr_saxs_term_prepare(t, grid->n_q, matrix, err);
}
