/* A Metropolis-Hastings step of a chain on its structures, in two halves:
 * propose, so that the engine can be asked for the profile, and decide, once
 * it is there.
 *
 * A proposal that the prior forbids is rejected in the first half and never
 * reaches the engine. The acceptance is that of the joint step in structure
 * and in those parameters that their terms draw anew with it. */
#include "sampler/chain_state.h"

#include <math.h>
#include <string.h>

int tsr_chain_system(const tsr_chain *chain)
{
    return chain->system + chain->which;
}

int tsr_chain_propose(tsr_chain *chain, tsr_body_proposal *ask)
{
    tsr_chain *c = chain;
    const tsr_target *t = c->target;
    c->proposal.n_span = 0;
    c->log_prior_change = -(double)INFINITY;
    if (t->is_still)
        return 0;
    double u = gsl_rng_uniform(c->rng);
    c->kind = tsr_mix_choose(&c->mix, u);
    if (c->n_state > 1)
        c->which = (int)gsl_rng_uniform_int(c->rng, (unsigned long)c->n_state);
    tsr_conformer *state = &c->state[c->which];
    tsr_move_registry[c->kind]->propose(c->move[c->kind], state->current,
                                        state->proposed, c->rng, &c->proposal);
    tsr_proposal_carry(c->target->topology, state->current, state->proposed,
                       &c->proposal);
    return tsr_chain_ask(c, ask);
}

int tsr_chain_ask(tsr_chain *chain, tsr_body_proposal *ask)
{
    tsr_chain *c = chain;
    const tsr_target *t = c->target;
    tsr_conformer *state = &c->state[c->which];
    c->counts.proposed[c->kind]++;
    c->since_draw.proposed[c->kind]++;
    c->log_prior_change =
        c->proposal.n_span == 0
            ? -(double)INFINITY
            : tsr_prior_propose(state->prior, state->current, state->proposed,
                                &c->proposal);
    if (c->log_prior_change == -(double)INFINITY ||
        tsr_likelihood_n_profile(t->likelihood) == 0)
        return 0;
    for (int k = 0; k < c->proposal.n_span; k++) {
        const tsr_span *s = &c->proposal.span[k];
        c->range[k] =
            tsr_chain_places(c, c->which, state->proposed, s->first, s->count);
        c->range[k].group = s->group;
    }
    const double changed = tsr_mix_changed(t->topology, &c->proposal);
    c->changed += changed;
    c->n_asked++;
    c->since_draw.changed[c->kind] += changed;
    c->since_draw.asked[c->kind]++;
    *ask =
        (tsr_body_proposal){tsr_chain_system(c), c->proposal.n_span, c->range};
    return 1;
}

static void settle(tsr_chain *c, int accept)
{
    tsr_conformer *state = &c->state[c->which];
    tsr_conformation *to = accept ? state->current : state->proposed;
    tsr_conformation *from = accept ? state->proposed : state->current;
    if (accept)
        tsr_prior_accept(state->prior, state->proposed, &c->proposal);
    for (int k = 0; k < c->proposal.n_span; k++)
        tsr_conformation_copy(c->target->topology, to, from,
                              c->proposal.span[k].first,
                              c->proposal.span[k].count);
    c->counts.accepted[c->kind] += accept;
    c->since_draw.accepted[c->kind] += accept;
}

static int is_walk(const tsr_chain *c)
{
    return tsr_move_registry[c->kind]->propose == NULL;
}

/* Walks move c2, too. */
static int takes_c2(const tsr_chain *c)
{
    return is_walk(c) && tsr_surrogate_spec_of(c->target->surrogate)->has_c2;
}

/* Change of the log prior of c2 where the proposal takes it along. */
static double prior_of_c2(const tsr_chain *c)
{
    const int at = c->parameters->contrast + TSR_C2;
    const tsr_parameter *p = &c->parameters->table[at];
    return takes_c2(c) ? tsr_parameter_log_prior(p, c->trial.theta[at]) -
                             tsr_parameter_log_prior(p, c->now.theta[at])
                       : 0.0;
}

/* c2 moves by what it walked, so that a walk of none leaves every digit of it.
 */
static double walked_c2(const tsr_chain *c, double from)
{
    return from + ((double)c->walked[2] - (double)(float)from);
}

/* The proposal's point: partial is the engine's answer for its one state. */
static tsr_status evaluate(tsr_chain *c, const double *partial, tsr_err *err)
{
    size_t bytes = (size_t)tsr_likelihood_n_profile(c->target->likelihood) *
                   sizeof(double);
    memcpy(c->trial.theta, c->now.theta,
           (size_t)c->parameters->n * sizeof(double));
    const int c2 = c->parameters->contrast + TSR_C2;
    if (takes_c2(c))
        c->trial.theta[c2] = walked_c2(c, c->now.theta[c2]);
    if (c->n_state > 1)
        tsr_chain_mean(c, c->which, partial, &c->trial);
    else if (bytes > 0)
        memcpy(c->trial.partial, partial, bytes);
    return tsr_chain_evaluate(c, c->which, c->trial.partial, &c->trial, err);
}

/* Accepted: the proposal's point becomes the chain's. */
static void take(tsr_chain *c, const double *partial)
{
    const tsr_likelihood *l = c->target->likelihood;
    size_t bytes = (size_t)tsr_likelihood_n_profile(l) * sizeof(double);
    tsr_point_take(l, TSR_CHANGES_MEAN, -1, &c->now, &c->trial);
    if (bytes > 0)
        memcpy(c->state[c->which].profile, partial, bytes);
}

static void stiffen(const void *context, int n, const double *v, double *y)
{
    const tsr_chain *c = context;
    const size_t size = (size_t)(3 * c->target->topology->n_body * n);
    tsr_likelihood_stiffen(c->target->likelihood, &c->now, c->which, n, v, y);
    for (size_t i = 0; i < size; i++)
        y[i] *= c->beta;
}

static void learn(tsr_chain *c, double alpha)
{
    const tsr_move_type *type = tsr_move_registry[c->kind];
    const tsr_stiffness stiffness = {c, stiffen};
    type->adapt(c->move[c->kind], &c->proposal, alpha);
    if (type->learn != NULL)
        type->learn(c->move[c->kind], c->state[c->which].current, &stiffness);
}

tsr_status tsr_chain_decide(tsr_chain *chain, const double *partial, int warm,
                            int *accepted, tsr_err *err)
{
    tsr_chain *c = chain;
    const tsr_likelihood *l = c->target->likelihood;
    const int is_possible =
        l != NULL && c->log_prior_change > -(double)INFINITY;
    *accepted = 0;
    if (is_possible) {
        tsr_status status = evaluate(c, partial, err);
        if (status != TSR_OK) {
            settle(c, 0);
            return tsr_wrap(err, status, "chain %d, %s move", c->number,
                            tsr_move_registry[c->kind]->name);
        }
    }
    double log_alpha = c->log_prior_change;
    if (log_alpha > -(double)INFINITY)
        log_alpha +=
            c->proposal.log_ratio + (is_possible ? prior_of_c2(c) : 0.0) +
            (is_possible ? c->beta * (c->trial.log_lik - c->now.log_lik) : 0.0);
    if (is_possible)
        log_alpha += tsr_likelihood_log_ratio(l, &c->now, &c->trial, c->beta);
    if (isnan(log_alpha)) {
        settle(c, 0);
        return tsr_fail(err, TSR_E_NUMERIC,
                        "chain %d, %s move: the acceptance is not a number "
                        "(log prior change %g, log likelihood %g)",
                        c->number, tsr_move_registry[c->kind]->name,
                        c->log_prior_change, c->trial.log_lik);
    }
    double alpha = log_alpha < 0.0 ? exp(log_alpha) : 1.0;
    int accept = gsl_rng_uniform(c->rng) < alpha;
    settle(c, accept);
    if (accept && is_possible)
        take(c, partial);
    if (warm && is_walk(c))
        tsr_chain_learn_surrogate(c, accept);
    else if (warm && !c->target->is_still)
        learn(c, alpha);
    *accepted = accept;
    return tsr_chain_step_parameters(c, warm, err);
}
