/* Likelihoods of SAXS curves that a test made up, without files. */
#ifndef TESTS_SAXS_LIKELIHOOD_H
#define TESTS_SAXS_LIKELIHOOD_H

#include "likelihood/likelihood.h"
#include "likelihood/term_saxs.h"
#include "tests/check.h"

enum { SAXS_MAX_SET = 8 };

/* Form factors of about the right size: F falls like a Gaussian. */
static inline tsr_form_factor_table *sample_form_factors(void)
{
    tsr_form_factor_table *f =
        tsr_form_factor_new(TSR_BODIES_TWO, 1, 101, 0.01);
    assert_non_null(f);
    for (int t = 0; t < f->n_type; t++)
        for (int k = 0; k < 101; k++) {
            double q = 0.01 * k, a = (6.0 + t) * exp(-2.0 * q * q);
            f->amplitude[t * 101 + k] = a;
            f->excess[t * 101 + k] = a * a * 0.3 * q * q;
        }
    return f;
}

/* A noise model with its usual options. */
static inline tsr_noise_options noise_of(const char *model)
{
    const tsr_field noise[] = {TSR_NOISE_FIELD("noise", 0), {0}};
    err = (tsr_err){0};
    tsr_noise_options o;
    if (tsr_fields_init(noise, &o, &err) != TSR_OK ||
        tsr_field_set_kind(noise, &o, model, &err) != TSR_OK)
        fail_msg("%s", err.message);
    return o;
}

/* One of its options, as text. */
static inline void noise_set(tsr_noise_options *o, const char *key,
                             const char *value)
{
    const tsr_field *field =
        tsr_field_find(tsr_noise_registry[o->model]->fields, key);
    if (field == NULL)
        fail_msg("%s has no %s", tsr_noise_registry[o->model]->name, key);
    else
        OK(tsr_field_parse(field, o, value, &err));
}

static inline void noise_put(tsr_noise_options *o, const char *key,
                             double value)
{
    char text[40];
    snprintf(text, sizeof text, "%.17g", value);
    noise_set(o, key, text);
}

/* The likelihood of n data sets. Errors: those of its terms. */
static inline tsr_status saxs_likelihood(const tsr_topology *topology,
                                         const tsr_scattering *scattering,
                                         double d_bound_ang, int n,
                                         const tsr_data_set *set,
                                         tsr_likelihood **out, tsr_err *err)
{
    tsr_term *term[SAXS_MAX_SET];
    *out = NULL;
    for (int d = 0; d < n; d++) {
        tsr_status status = tsr_saxs_term_new(&set[d], d, &term[d], err);
        if (status == TSR_OK)
            continue;
        while (d-- > 0)
            tsr_term_free(term[d]);
        return status;
    }
    return tsr_likelihood_new(topology, 1, scattering, d_bound_ang, n, term,
                              out, err);
}

static inline const tsr_saxs_term *saxs_term(const tsr_likelihood *l, int d)
{
    return (const tsr_saxs_term *)l->term[d];
}

/* A point with the terms' parameters where they start. */
static inline void saxs_point(const tsr_likelihood *l, tsr_point *point)
{
    assert_true(tsr_point_make(l, l->n_parameter, point));
    for (int d = 0; d < l->n_term; d++)
        tsr_term_start(l->term[d], point->theta + l->term[d]->first);
}

/* Fits and likelihood there, from a profile of one component. */
static inline double saxs_evaluate(const tsr_likelihood *l,
                                   const double *partial, double beta,
                                   gsl_rng *rng, tsr_point *point)
{
    const tsr_prediction nothing = {.n_state = 0};
    OK(tsr_likelihood_evaluate(l, partial, NULL, nothing, beta, rng, NULL,
                               point, &err));
    return point->log_lik;
}

/* The parameters of term d as a stored draw has them: what is integrated out is
 * drawn. Scale and background are the last two. Returns how many. */
static inline int saxs_draw(const tsr_likelihood *l, int d,
                            const tsr_point *point, gsl_rng *rng,
                            double theta[TSR_TERM_PARAMETERS])
{
    const tsr_term *term = l->term[d];
    memcpy(theta, point->theta + term->first,
           (size_t)term->n_parameter * sizeof(double));
    if (term->is_integrated)
        term->type->draw(term, point->fit[d], 1.0, rng, theta);
    return term->n_parameter;
}

#endif
