/* The steps of a chain on its parameters: one Metropolis-Hastings step a block.
 *
 * What a block changes decides what is computed anew (core/parameter.h);
 * the partial profiles of the states stay, so no engine is asked. */
#include "sampler/chain_state.h"

#include <math.h>
#include <string.h>

/* The likelihood at the trial's parameters. Returns the change of it, which for
 * a parameter of one term is that of this term. */
static tsr_status evaluate(tsr_chain *c, const tsr_block *b, double *change,
                           tsr_err *err)
{
    const tsr_likelihood *l = c->target->likelihood;
    const int d = b->term;
    if (b->scope >= TSR_CHANGES_FIT) {
        const tsr_term *term = l->term[d];
        const double *theta = c->trial.theta + term->first;
        const void *fit = c->now.fit[d];
        if (b->scope == TSR_CHANGES_FIT) {
            term->type->refit(term, fit, theta, c->trial.fit[d]);
            fit = c->trial.fit[d];
        }
        c->trial.term_log_lik[d] = term->type->log_lik(term, fit, theta);
        *change = c->trial.term_log_lik[d] - c->now.term_log_lik[d];
        return TSR_OK;
    }
    const double *partial = c->now.partial;
    if (b->scope == TSR_CHANGES_MEAN) {
        tsr_chain_mean(c, -1, NULL, &c->trial);
        partial = c->trial.partial;
    }
    tsr_status status = tsr_chain_evaluate(c, -1, partial, &c->trial, err);
    *change = c->trial.log_lik - c->now.log_lik;
    return status;
}

/* A parameter that walks without bounds may be proposed beyond what doubles
 * hold; then it is rejected. Elsewhere what is not a number is an error. */
static tsr_status check(const tsr_block *b, double *log_alpha, tsr_err *err)
{
    if (!isnan(*log_alpha))
        return TSR_OK;
    if (b->kind != TSR_STEP_WALK)
        return tsr_fail(err, TSR_E_NUMERIC, "the acceptance is not a number");
    *log_alpha = -(double)INFINITY;
    return TSR_OK;
}

/* What was left until the step was accepted; 0: it cannot be after all. */
static int complete(tsr_chain *c, const tsr_block *b)
{
    const tsr_likelihood *l = c->target->likelihood;
    if (l == NULL || b->scope != TSR_CHANGES_FIT)
        return 1;
    const tsr_term *term = l->term[b->term];
    return term->type->complete == NULL ||
           term->type->complete(term, c->trial.theta + term->first,
                                c->trial.fit[b->term]);
}

static tsr_status step(tsr_chain *c, int block, int warm, tsr_err *err)
{
    const tsr_likelihood *l = c->target->likelihood;
    tsr_parameters *p = c->parameters;
    const tsr_block *b = &p->block[block];
    double to, from, change = 0.0, ratio = 0.0;
    tsr_status status = TSR_OK;
    memcpy(c->trial.theta, c->now.theta, (size_t)p->n * sizeof(double));
    int possible = tsr_parameters_propose(p, block, l, &c->now, &c->trial,
                                          c->beta, c->rng, &to, &from);
    if (possible && l != NULL)
        status = evaluate(c, b, &change, err);
    if (possible && l != NULL && b->scope <= TSR_CHANGES_PROFILE &&
        status == TSR_OK)
        ratio = tsr_likelihood_log_ratio(l, &c->now, &c->trial, c->beta);
    double log_alpha =
        possible ? c->beta * change + ratio + to - from : -(double)INFINITY;
    if (status == TSR_OK)
        status = check(b, &log_alpha, err);
    if (status != TSR_OK)
        return tsr_wrap(err, status, "chain %d, %s", c->number, b->name);
    double alpha = log_alpha < 0.0 ? exp(log_alpha) : 1.0;
    int accept = gsl_rng_uniform(c->rng) < alpha && complete(c, b);
    p->learnt.counts.proposed++;
    p->learnt.counts.accepted += accept;
    if (accept)
        tsr_point_take(l, b->scope, b->term, &c->now, &c->trial);
    if (warm)
        tsr_parameters_learn(p, block, alpha);
    return TSR_OK;
}

tsr_status tsr_chain_step_parameters(tsr_chain *chain, int warm, tsr_err *err)
{
    const tsr_parameters *p = chain->parameters;
    tsr_status status = TSR_OK;
    for (int b = 0; b < p->n_block && status == TSR_OK; b++) {
        const double seldom = p->table[p->block[b].first].seldom;
        if (seldom == 0.0 || gsl_rng_uniform(chain->rng) >= seldom)
            status = step(chain, b, warm, err);
    }
    if (warm && status == TSR_OK)
        tsr_parameters_learn_axes(chain->parameters, chain->now.theta);
    return status;
}
