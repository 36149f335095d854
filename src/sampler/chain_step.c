/* A Metropolis-Hastings step of a chain. */
#include "sampler/chain_state.h"

#include <gsl/gsl_randist.h>
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
    const tsr_move_type *type = tsr_move_registry[c->kind];
    tsr_conformer *state = &c->state[c->which];
    c->counts.proposed[c->kind]++;
    c->since_draw.proposed[c->kind]++;
    type->propose(c->move[c->kind], state->current, state->proposed, c->rng,
                  &c->proposal);
    c->log_prior_change =
        c->proposal.n_span == 0
            ? -(double)INFINITY
            : tsr_prior_propose(state->prior, state->current, state->proposed,
                                &c->proposal);
    if (c->log_prior_change == -(double)INFINITY || t->likelihood == NULL)
        return 0;
    for (int k = 0; k < c->proposal.n_span; k++) {
        const tsr_span *s = &c->proposal.span[k];
        const tsr_residue *a = &t->topology->residue[s->first];
        const tsr_residue *z = &t->topology->residue[s->first + s->count - 1];
        c->range[k] = (tsr_body_range){
            a->first_body, z->first_body + z->n_body - a->first_body, s->group,
            (const double(*)[3])(state->proposed->body + a->first_body)};
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

void tsr_chain_take_fit(tsr_chain *chain, double log_lik)
{
    tsr_chain *c = chain;
    tsr_fit *fit = c->fit;
    double *profile = c->profile;
    c->fit = c->new_fit, c->new_fit = fit;
    c->profile = c->new_profile, c->new_profile = profile;
    c->log_lik = log_lik;
}

/* The mean over states and its fit become those of the proposal. */
static void take_mean(tsr_chain *c, double log_lik)
{
    double *partial = c->partial;
    c->partial = c->new_partial, c->new_partial = partial;
    tsr_chain_take_fit(c, log_lik);
}

/* Two states share their weight anew: a normal step of the logarithm of the
 * odds x / (1 - x), whose measure adds x (1 - x) of the new share over that of
 * the old. Weights have a flat Dirichlet prior. */
static tsr_status move_weights(tsr_chain *c, int warm, tsr_err *err)
{
    unsigned long n = (unsigned long)c->n_state;
    int a = (int)gsl_rng_uniform_int(c->rng, n);
    int b = (int)gsl_rng_uniform_int(c->rng, n - 1);
    b += b >= a;
    tsr_conformer *one = &c->state[a], *other = &c->state[b];
    double was[2] = {one->weight, other->weight};
    double both = was[0] + was[1], log_lik = 0.0;
    int has_data = c->target->likelihood != NULL;
    double odds = log(was[0] / was[1]) +
                  gsl_ran_gaussian(c->rng, exp(c->log_weight_step));
    double share = 1.0 / (1.0 + exp(-odds));
    double log_alpha =
        log(share) + log1p(-share) - log(was[0] / both) - log(was[1] / both);
    one->weight = both * share;
    other->weight = both - one->weight;
    int possible = one->weight > 0.0 && other->weight > 0.0;
    tsr_status status = TSR_OK;
    if (possible && has_data) {
        tsr_chain_mean(c, -1, NULL, c->new_partial);
        status = tsr_nuisance_fit(c->nuisance, c->new_partial, c->beta, c->rng,
                                  c->new_profile, c->new_fit, &log_lik, err);
    }
    if (possible && has_data && status == TSR_OK)
        log_alpha +=
            c->beta * (log_lik - c->log_lik) +
            tsr_nuisance_log_ratio(c->nuisance, c->fit, c->new_fit, c->beta);
    if (possible && status == TSR_OK && isnan(log_alpha))
        status = tsr_fail(err, TSR_E_NUMERIC, "the acceptance is not a number");
    double alpha = !possible ? 0.0 : log_alpha < 0.0 ? exp(log_alpha) : 1.0;
    if (status == TSR_OK && gsl_rng_uniform(c->rng) < alpha) {
        take_mean(c, log_lik);
    } else {
        one->weight = was[0];
        other->weight = was[1];
    }
    if (warm)
        c->log_weight_step =
            fmin(c->log_weight_step +
                     tsr_move_learn(c->n_weight_learnt++, alpha, 0.44),
                 2.0);
    return status == TSR_OK
               ? TSR_OK
               : tsr_wrap(err, status, "chain %d, weights", c->number);
}

/* Mean squared relative change of I(q) that the proposal would make. */
static double curve_change(const tsr_chain *c, int n_q)
{
    double sum = 0.0;
    for (int q = 0; q < n_q; q++) {
        double d = (c->new_profile[q] - c->profile[q]) / c->profile[q];
        sum += d * d;
    }
    return isfinite(sum) ? sum / n_q : 0.0;
}

/* Of the engine's answer for one system. */
static size_t profile_bytes(const tsr_likelihood *l)
{
    return (size_t)l->n_pair * (size_t)l->grid.n_q * sizeof(double);
}

tsr_status tsr_chain_decide(tsr_chain *chain, const double *partial, int warm,
                            int *accepted, tsr_err *err)
{
    tsr_chain *c = chain;
    const tsr_likelihood *l = c->target->likelihood;
    double new_log_lik = 0.0;
    *accepted = 0;
    if (partial != NULL) {
        if (c->n_state > 1)
            tsr_chain_mean(c, c->which, partial, c->new_partial);
        else
            memcpy(c->new_partial, partial, profile_bytes(l));
        tsr_status status =
            tsr_nuisance_fit(c->nuisance, c->new_partial, c->beta, c->rng,
                             c->new_profile, c->new_fit, &new_log_lik, err);
        if (status != TSR_OK) {
            settle(c, 0);
            return tsr_wrap(err, status, "chain %d, %s move", c->number,
                            tsr_move_registry[c->kind]->name);
        }
    }
    double log_alpha = c->log_prior_change;
    if (log_alpha > -(double)INFINITY)
        log_alpha +=
            c->proposal.log_ratio + c->beta * (new_log_lik - c->log_lik);
    if (partial != NULL)
        log_alpha +=
            tsr_nuisance_log_ratio(c->nuisance, c->fit, c->new_fit, c->beta);
    if (isnan(log_alpha)) {
        settle(c, 0);
        return tsr_fail(err, TSR_E_NUMERIC,
                        "chain %d, %s move: the acceptance is not a number "
                        "(log prior change %g, log likelihood %g)",
                        c->number, tsr_move_registry[c->kind]->name,
                        c->log_prior_change, new_log_lik);
    }
    double alpha = log_alpha < 0.0 ? exp(log_alpha) : 1.0;
    int accept = gsl_rng_uniform(c->rng) < alpha;
    int has_moved = !c->target->is_still;
    if (warm && has_moved && c->target->learn_mix && l != NULL) {
        double gain =
            partial == NULL ? 0.0 : alpha * curve_change(c, l->grid.n_q);
        tsr_mix_learn(
            &c->mix, c->kind, gain,
            tsr_mix_cost(c->target->topology, &c->proposal, partial != NULL));
    }
    if (warm && has_moved)
        tsr_move_registry[c->kind]->adapt(c->move[c->kind], &c->proposal,
                                          alpha);
    settle(c, accept);
    if (accept && partial != NULL && l != NULL) {
        take_mean(c, new_log_lik);
        memcpy(c->state[c->which].profile, partial, profile_bytes(l));
    }
    tsr_status status = TSR_OK;
    if (c->n_state > 1 && c->target->infer_weights)
        status = move_weights(c, warm, err);
    if (status == TSR_OK)
        status = tsr_chain_move_contrast(c, warm, err);
    if (status == TSR_OK)
        status = tsr_nuisance_update(c->nuisance, c->beta, warm, c->rng, c->fit,
                                     &c->log_lik, err);
    *accepted = accept;
    return status;
}
