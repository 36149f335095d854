/* Parameters drawn from their priors, to compare what a sampler draws with. */
#ifndef TESTS_PARAMETER_DRAW_H
#define TESTS_PARAMETER_DRAW_H

#include "core/parameter.h"
#include "sampler/parameters.h"

#include <gsl/gsl_randist.h>
#include <gsl/gsl_rng.h>

/* What is cut off is drawn again. */
static inline double draw_one(const tsr_parameter *p, gsl_rng *rng)
{
    double x;
    switch (p->shape) {
    case TSR_PRIOR_NORMAL:
        return p->mean + gsl_ran_gaussian(rng, p->width);
    case TSR_PRIOR_CUT_NORMAL:
        do
            x = p->mean + gsl_ran_gaussian(rng, p->width);
        while (x < p->low || x > p->high);
        return x;
    case TSR_PRIOR_UNIFORM:
        return p->mean + p->width * (2.0 * gsl_rng_uniform(rng) - 1.0);
    case TSR_PRIOR_GAMMA:
        do
            x = gsl_ran_gamma(rng, p->gamma_k, 1.0 / p->rate);
        while (x <= p->low);
        return tsr_parameter_theta(p, x);
    case TSR_PRIOR_SIMPLEX: /* normalised by the caller */
        return gsl_ran_exponential(rng, 1.0);
    case TSR_PRIOR_FLAT:
        break;
    }
    return p->start;
}

/* Draws the n parameters of a table from their priors into theta [n]. Those
 * that are fixed or whose prior is flat are where they start. */
static inline void parameters_draw(int n, const tsr_parameter *parameter,
                                   gsl_rng *rng, double *theta)
{
    double sum = 0.0;
    for (int i = 0; i < n; i++) {
        const tsr_parameter *p = &parameter[i];
        theta[i] = p->infer ? draw_one(p, rng) : p->start;
        if (p->infer && p->shape == TSR_PRIOR_SIMPLEX)
            sum += theta[i];
    }
    for (int i = 0; i < n; i++)
        if (parameter[i].infer && parameter[i].shape == TSR_PRIOR_SIMPLEX)
            theta[i] /= sum;
}

/* The same for a chain's table, whose weights sum to 1 in every mixture. */
static inline void table_draw(const tsr_parameters *p, gsl_rng *rng,
                              double *theta)
{
    parameters_draw(p->n, p->table, rng, theta);
    for (int m = 0; m < p->n_mixture; m++) {
        double *weight = theta + p->weight + m * p->n_state, sum = 0.0;
        for (int k = 0; k < p->n_state; k++)
            sum += weight[k];
        for (int k = 0; k < p->n_state; k++)
            weight[k] /= sum;
    }
}

#endif
