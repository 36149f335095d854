#include "likelihood/data_term.h"

#include <stdlib.h>

void tsr_data_term_clear(tsr_data_term *term)
{
    if (term->type != NULL)
        term->type->state_free(term->state);
    free(term->matrix);
    *term = (tsr_data_term){.type = NULL};
}

int tsr_data_term_n_free(const tsr_data_term *term)
{
    int n = tsr_linear_n_free(&term->linear);
    for (int i = 0; i < term->type->n_parameter; i++)
        n += term->prior[i].infer;
    return n;
}

/* More parameters than points leave no proper posterior, or one that says
 * nothing. */
static tsr_status check_points(const tsr_data_term *term, tsr_err *err)
{
    int n = tsr_data_term_n_free(term);
    if (term->saxs->n > n)
        return TSR_OK;
    return tsr_fail(err, TSR_E_DATA,
                    "'%s': %d points cannot tell of %d parameters of scale, "
                    "background and noise, let alone of the structure; use "
                    "more points or fix some",
                    term->saxs->path, term->saxs->n, n);
}

/* How c and b are treated, and whether the options go together. */
static tsr_status choose(tsr_data_term *term, const tsr_data_set *set,
                         int number, tsr_err *err)
{
    const tsr_noise_type *type = term->type;
    term->linear = tsr_linear_make(set->intensity_scale, set->background);
    term->is_sampled =
        set->nuisance == TSR_NUISANCE_SAMPLE || type->log_integral == NULL;
    if (set->nuisance == TSR_NUISANCE_INTEGRATE && term->is_sampled)
        return tsr_fail(err, TSR_E_CONFIG,
                        "data.%d.nuisance: scale and background have no "
                        "integral in closed form under the noise model %s; "
                        "say sample, or auto",
                        number, type->name);
    type->priors(&set->noise, term->prior);
    tsr_status status =
        type->check == NULL ? TSR_OK : type->check(set->saxs, err);
    return status == TSR_OK ? check_points(term, err) : status;
}

tsr_status tsr_data_term_make_from(tsr_data_term *term, const tsr_data_set *set,
                                   int number, int n_q, double *matrix,
                                   tsr_err *err)
{
    term->saxs = set->saxs;
    term->type = tsr_noise_registry[set->noise.model];
    term->matrix = matrix;
    tsr_status status = choose(term, set, number, err);
    if (status != TSR_OK)
        return status;
    const tsr_noise_spec spec = {&set->noise, set->saxs, matrix, n_q,
                                 &term->linear};
    term->state = term->type->state_new(&spec);
    if (term->state == NULL)
        return tsr_fail(err, TSR_E_NOMEM, "out of memory");
    return TSR_OK;
}

tsr_status tsr_data_term_make(tsr_data_term *term, const tsr_data_set *set,
                              int number, const tsr_q_grid *grid, tsr_err *err)
{
    const tsr_saxs *saxs = set->saxs;
    double *matrix;
    tsr_status status =
        tsr_q_operator_new(grid, saxs->n, saxs->q, &matrix, err);
    if (status != TSR_OK)
        return tsr_wrap(err, status, "'%s'", saxs->path);
    return tsr_data_term_make_from(term, set, number, grid->n_q, matrix, err);
}

double tsr_data_term_least_beta(const tsr_data_term *term)
{
    if (!term->is_sampled || term->type->tail == NULL)
        return 0.0;
    return tsr_linear_n_free(&term->linear) /
           (term->type->tail(term->prior) * term->saxs->n);
}

void tsr_data_term_start(const tsr_data_term *term, double *theta)
{
    for (int i = 0; i < TSR_NOISE_PARAMETERS; i++)
        theta[i] = i < term->type->n_parameter ? term->prior[i].start : 0.0;
}

double tsr_data_term_log(const tsr_data_term *term, const tsr_fit *fit,
                         const double *theta)
{
    return term->is_sampled
               ? term->type->log_lik(term->state, fit, theta, fit->c, fit->b)
               : term->type->log_integral(term->state, fit, theta);
}

void tsr_data_term_draw(const tsr_data_term *term, const tsr_fit *fit,
                        const double *theta, gsl_rng *rng, double *scale,
                        double *background)
{
    *scale = fit->c, *background = fit->b;
    if (!term->is_sampled)
        tsr_linear_draw(&term->linear, fit, term->type->conditional(theta), rng,
                        scale, background);
}
