/* A small data set with a noise model on it. */
#ifndef TESTS_UNIT_NOISE_PROBLEM_H
#define TESTS_UNIT_NOISE_PROBLEM_H

#include "tests/saxs_likelihood.h"

#include <gsl/gsl_randist.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { N_Q = 6, MAX_N = 40 };
enum { MEASURED, RELATIVE, STUDENT, N_MODEL };

typedef struct {
    tsr_saxs saxs;
    double q[MAX_N], intensity[MAX_N], sigma[MAX_N];
    double matrix[MAX_N * N_Q], profile[N_Q], model[MAX_N];
    double background_sd; /* of the prior of b; 0: flat */
    /* a noise model on it */
    const tsr_noise_type *type;
    tsr_noise_options options;
    tsr_linear linear;
    tsr_pool pool;
    tsr_noise *state;
    tsr_fit fit;
    double scratch[2 * MAX_N];
} problem;

/* Data near scale * model + background; matrix and profile are random. */
static inline void make_problem(problem *p, int n, double scale,
                                double background, uint64_t seed)
{
    gsl_rng *rng = rng_new(seed, 0);
    memset(p, 0, sizeof *p);
    for (int j = 0; j < N_Q; j++)
        p->profile[j] = 10.0 + 3.0 * j + gsl_ran_gaussian(rng, 1.0);
    for (int k = 0; k < n; k++) {
        for (int j = 0; j < N_Q; j++) {
            p->matrix[k * N_Q + j] = gsl_ran_gaussian(rng, 0.3);
            p->model[k] += p->matrix[k * N_Q + j] * p->profile[j];
        }
        p->q[k] = 0.01 * (k + 1);
        p->sigma[k] = 0.5 + gsl_rng_uniform(rng);
        p->intensity[k] = scale * p->model[k] + background +
                          gsl_ran_gaussian(rng, p->sigma[k]);
    }
    p->saxs = (tsr_saxs){
        .n = n, .q = p->q, .intensity = p->intensity, .sigma = p->sigma};
}

static const tsr_number_or_word infer = {0, 0.0};

static inline void open_model(problem *p, int model, tsr_number_or_word scale,
                              tsr_number_or_word background)
{
    p->pool = (tsr_pool){0};
    p->type = tsr_noise_registry[model];
    p->options = noise_of(p->type->name);
    if (model == RELATIVE) {
        noise_set(&p->options, "alpha", "infer");
        noise_set(&p->options, "beta", "infer");
    }
    p->linear = tsr_linear_make(scale, background);
    p->linear.background_sd = p->background_sd;
    const tsr_noise_spec spec =
        ROW(.options = &p->options, .saxs = &p->saxs, .matrix = p->matrix,
            .n_q = N_Q, .linear = &p->linear);
    OK(tsr_noise_new(&spec, &p->pool, &p->state, &err));
    own_copy(&p->pool, release_pool);
    p->fit.model = p->scratch, p->fit.weight = p->scratch + MAX_N;
}

/* `relative` needs I > 0. */
static inline void lift(problem *p)
{
    for (int k = 0; k < p->saxs.n; k++)
        p->intensity[k] = fabs(p->intensity[k]) + 0.5;
}

#endif
