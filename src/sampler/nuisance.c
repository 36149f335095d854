#include "sampler/nuisance.h"

#include "moves/move.h"

#include <gsl/gsl_randist.h>
#include <math.h>
#include <stdlib.h>

struct tsr_nuisance {
    const tsr_likelihood *likelihood;
    int n_data;
    double *log_s, *log_step; /* [n_data] noise scale and its step */
    long n_learnt;
    tsr_nuisance_counts counts;
};

void tsr_nuisance_free(tsr_nuisance *nuisance)
{
    if (nuisance == NULL)
        return;
    free(nuisance->log_s);
    free(nuisance->log_step);
    free(nuisance);
}

tsr_nuisance *tsr_nuisance_new(const tsr_likelihood *likelihood)
{
    tsr_nuisance *n = calloc(1, sizeof *n);
    if (n == NULL)
        return NULL;
    n->likelihood = likelihood;
    n->n_data = likelihood == NULL ? 0 : likelihood->n_data;
    size_t room = (size_t)n->n_data + 1;
    n->log_s = calloc(room, sizeof *n->log_s);
    n->log_step = calloc(room, sizeof *n->log_step);
    if (n->log_s == NULL || n->log_step == NULL) {
        tsr_nuisance_free(n);
        return NULL;
    }
    for (int d = 0; d < n->n_data; d++) {
        n->log_s[d] = likelihood->data[d].log_scale;
        n->log_step[d] = log(0.1);
    }
    return n;
}

tsr_fit *tsr_nuisance_fits_new(const tsr_likelihood *likelihood)
{
    size_t n_data = likelihood == NULL ? 0 : (size_t)likelihood->n_data;
    return calloc(n_data + 1, sizeof(tsr_fit));
}

tsr_status tsr_nuisance_fit(const tsr_nuisance *nuisance, double *profile,
                            double beta, gsl_rng *rng, tsr_fit *fit,
                            double *log_lik, tsr_err *err)
{
    (void)beta;
    (void)rng;
    tsr_status status =
        tsr_likelihood_fit(nuisance->likelihood, profile, fit, err);
    if (status == TSR_OK)
        *log_lik =
            tsr_likelihood_log(nuisance->likelihood, fit, nuisance->log_s);
    return status;
}

double tsr_nuisance_log_ratio(const tsr_nuisance *nuisance, const tsr_fit *from,
                              const tsr_fit *to, double beta)
{
    (void)nuisance, (void)from, (void)to, (void)beta;
    return 0.0; /* c and b are integrated out */
}

/* The density is that of log s, so a symmetric step needs no correction. */
void tsr_nuisance_update(tsr_nuisance *nuisance, const double *profile,
                         double beta, int warm, gsl_rng *rng, tsr_fit *fit,
                         double *log_lik)
{
    tsr_nuisance *n = nuisance;
    (void)profile;
    for (int d = 0; d < n->n_data; d++) {
        const tsr_data_term *term = &n->likelihood->data[d];
        if (!term->infer_scale)
            continue;
        double old = n->log_s[d];
        double new = old + gsl_ran_gaussian(rng, exp(n->log_step[d]));
        double gain = term->type->log_lik(term->state, &fit[d], new) -
                      term->type->log_lik(term->state, &fit[d], old);
        double log_alpha = beta * gain + tsr_likelihood_scale_prior(term, new) -
                           tsr_likelihood_scale_prior(term, old);
        double alpha = log_alpha < 0.0 ? exp(log_alpha) : 1.0;
        int accept = gsl_rng_uniform(rng) < alpha;
        n->counts.proposed++;
        if (accept) {
            n->log_s[d] = new;
            *log_lik = tsr_likelihood_log(n->likelihood, fit, n->log_s);
            n->counts.accepted++;
        }
        if (warm)
            n->log_step[d] += tsr_move_learn(n->n_learnt, alpha, 0.44);
    }
    if (warm && n->likelihood != NULL)
        n->n_learnt++;
}

double tsr_nuisance_log_prior(const tsr_nuisance *nuisance)
{
    double sum = 0.0;
    for (int d = 0; d < nuisance->n_data; d++)
        sum += tsr_likelihood_scale_prior(&nuisance->likelihood->data[d],
                                          nuisance->log_s[d]);
    return sum;
}

const double *tsr_nuisance_theta(const tsr_nuisance *nuisance, int data)
{
    return nuisance->log_s + data;
}

tsr_nuisance_counts tsr_nuisance_counts_get(const tsr_nuisance *nuisance)
{
    return nuisance->counts;
}

void tsr_nuisance_counts_reset(tsr_nuisance *nuisance)
{
    nuisance->counts = (tsr_nuisance_counts){0, 0};
}
