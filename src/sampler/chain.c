#include "sampler/chain.h"

#include <gsl/gsl_randist.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

/* One of the structures whose weighted mean meets the data. */
typedef struct {
    tsr_conformation *current, *proposed; /* equal between steps */
    tsr_prior_state *prior;
    double *profile; /* [n_q] as the engine gave it */
    double weight;
} conformer;

struct tsr_chain {
    const tsr_target *target;
    int number, system; /* of the engine: the first state's */
    gsl_rng *rng;
    int n_state;
    conformer *state; /* [n_state] */
    double log_weight_step;
    long n_weight_learnt;
    void *move[TSR_N_MOVE];
    tsr_mix mix;

    double beta;     /* 1 / T */
    double *profile; /* [n_q] the mean over states, with S(q) */
    double *mean;    /* [n_q] of a proposal */
    double log_lik;
    tsr_fit *fit, *new_fit; /* [n_data] */
    tsr_nuisance *nuisance;

    /* the proposal in flight */
    int kind, which; /* move, state */
    double log_prior_change;
    tsr_proposal proposal;
    tsr_body_range range[TSR_MAX_SPAN];

    tsr_chain_counts counts;
};

void tsr_chain_free(tsr_chain *chain)
{
    if (chain == NULL)
        return;
    for (int m = 0; m < TSR_N_MOVE; m++)
        tsr_move_registry[m]->state_free(chain->move[m]);
    if (chain->rng != NULL)
        gsl_rng_free(chain->rng);
    for (int k = 0; chain->state != NULL && k < chain->n_state; k++) {
        tsr_conformation_free(chain->state[k].current);
        tsr_conformation_free(chain->state[k].proposed);
        tsr_prior_state_free(chain->state[k].prior);
        free(chain->state[k].profile);
    }
    free(chain->state);
    free(chain->profile);
    free(chain->mean);
    free(chain->fit);
    free(chain->new_fit);
    tsr_nuisance_free(chain->nuisance);
    free(chain);
}

/* Weights of the moves that have something to move. */
static tsr_status set_moves(tsr_chain *c, tsr_err *err)
{
    const tsr_target *t = c->target;
    double total = 0.0, share[TSR_N_MOVE] = {0.0};
    for (int m = 0; m < TSR_N_MOVE; m++) {
        const tsr_move_type *type = tsr_move_registry[m];
        const void *options = t->move_options[m];
        if (options == NULL)
            continue;
        double weight;
        memcpy(&weight, options, sizeof weight);
        if (weight > 0.0 && type->n_target(options, t->topology) > 0) {
            c->move[m] = type->state_new(options, t->topology, t->prior);
            if (c->move[m] == NULL)
                return tsr_fail(err, TSR_E_NOMEM, "out of memory");
            total += weight;
            share[m] = weight;
        }
    }
    if (total <= 0.0)
        return tsr_fail(err, TSR_E_CONFIG,
                        "moves: none with a weight above 0 has anything to "
                        "move");
    tsr_mix_set(&c->mix, share);
    return TSR_OK;
}

void tsr_target_place(const tsr_target *target, int chain, int *share,
                      int *system)
{
    *share = 0;
    *system = chain;
    while (*share < target->n_share - 1 &&
           *system >= target->share[*share].n_chain)
        *system -= target->share[(*share)++].n_chain;
}

/* 0: out of memory. */
static int open_state(const tsr_chain *c, conformer *s, size_t n_q)
{
    const tsr_target *t = c->target;
    s->current = tsr_conformation_new(t->topology);
    s->proposed = tsr_conformation_new(t->topology);
    s->profile = calloc(n_q + 1, sizeof *s->profile);
    s->weight = 1.0 / c->n_state;
    if (s->current == NULL || s->proposed == NULL || s->profile == NULL)
        return 0;
    int n = t->topology->n_residue;
    tsr_conformation_copy(t->topology, s->current, t->first, 0, n);
    tsr_conformation_copy(t->topology, s->proposed, t->first, 0, n);
    s->prior = tsr_prior_state_new(t->prior, s->current);
    return s->prior != NULL;
}

tsr_status tsr_chain_new(const tsr_target *target, int number, tsr_chain **out,
                         tsr_err *err)
{
    const tsr_likelihood *l = target->likelihood;
    size_t n_q = l == NULL ? 0 : (size_t)l->grid.n_q;
    int share;
    *out = NULL;
    tsr_chain *c = calloc(1, sizeof *c);
    if (c == NULL)
        return tsr_fail(err, TSR_E_NOMEM, "out of memory");
    c->target = target;
    c->number = number;
    c->beta = 1.0;
    int n_temp = tsr_target_n_temp(target);
    tsr_target_place(target, number / n_temp, &share, &c->system);
    c->n_state = tsr_target_n_state(target);
    c->system = (c->system * n_temp + number % n_temp) * c->n_state;
    c->log_weight_step = log(0.5);
    c->rng = tsr_rng_new(target->seed, (uint64_t)number);
    c->state = calloc((size_t)c->n_state, sizeof *c->state);
    c->profile = calloc(n_q + 1, sizeof *c->profile);
    c->mean = calloc(n_q + 1, sizeof *c->mean);
    c->fit = tsr_nuisance_fits_new(l);
    c->new_fit = tsr_nuisance_fits_new(l);
    c->nuisance = tsr_nuisance_new(l);
    int complete = c->rng != NULL && c->state != NULL && c->profile != NULL &&
                   c->mean != NULL && c->fit != NULL && c->new_fit != NULL &&
                   c->nuisance != NULL;
    for (int k = 0; k < c->n_state && complete; k++)
        complete = open_state(c, &c->state[k], n_q);
    tsr_status status = complete ? set_moves(c, err)
                                 : tsr_fail(err, TSR_E_NOMEM, "out of memory");
    if (status != TSR_OK) {
        tsr_chain_free(c);
        return status;
    }
    *out = c;
    return TSR_OK;
}

/* The mean profile, with state `which` at another one (-1: none). */
static void mix(const tsr_chain *c, int which, const double *other, double *out)
{
    int n_q = c->target->likelihood->grid.n_q;
    for (int q = 0; q < n_q; q++)
        out[q] = 0.0;
    for (int k = 0; k < c->n_state; k++) {
        const double *profile = k == which ? other : c->state[k].profile;
        for (int q = 0; q < n_q; q++)
            out[q] += c->state[k].weight * profile[q];
    }
}

tsr_status tsr_chain_start(tsr_chain *chain, tsr_batch *batch, tsr_err *err)
{
    const tsr_likelihood *l = chain->target->likelihood;
    if (l == NULL)
        return TSR_OK;
    tsr_status status = TSR_OK;
    for (int k = 0; k < chain->n_state && status == TSR_OK; k++) {
        conformer *s = &chain->state[k];
        status = tsr_batch_set(batch, chain->system + k,
                               (const double(*)[3])s->current->body, s->profile,
                               err);
    }
    mix(chain, -1, NULL, chain->profile);
    if (status == TSR_OK)
        status = tsr_nuisance_fit(chain->nuisance, chain->profile, chain->beta,
                                  chain->rng, chain->fit, &chain->log_lik, err);
    return status;
}

int tsr_chain_system(const tsr_chain *chain)
{
    return chain->system + chain->which;
}

int tsr_chain_propose(tsr_chain *chain, tsr_body_proposal *ask)
{
    tsr_chain *c = chain;
    const tsr_target *t = c->target;
    double u = gsl_rng_uniform(c->rng);
    c->kind = tsr_mix_choose(&c->mix, u);
    if (c->n_state > 1)
        c->which = (int)gsl_rng_uniform_int(c->rng, (unsigned long)c->n_state);
    const tsr_move_type *type = tsr_move_registry[c->kind];
    conformer *state = &c->state[c->which];
    c->counts.proposed[c->kind]++;
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
    *ask =
        (tsr_body_proposal){tsr_chain_system(c), c->proposal.n_span, c->range};
    return 1;
}

static void settle(tsr_chain *c, int accept)
{
    conformer *state = &c->state[c->which];
    tsr_conformation *to = accept ? state->current : state->proposed;
    tsr_conformation *from = accept ? state->proposed : state->current;
    if (accept)
        tsr_prior_accept(state->prior, state->proposed, &c->proposal);
    for (int k = 0; k < c->proposal.n_span; k++)
        tsr_conformation_copy(c->target->topology, to, from,
                              c->proposal.span[k].first,
                              c->proposal.span[k].count);
    c->counts.accepted[c->kind] += accept;
}

/* The mean profile and its fit become those of the proposal. */
static void take_fit(tsr_chain *c, double log_lik)
{
    tsr_fit *fit = c->fit;
    double *profile = c->profile;
    c->fit = c->new_fit, c->new_fit = fit;
    c->profile = c->mean, c->mean = profile;
    c->log_lik = log_lik;
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
    conformer *one = &c->state[a], *other = &c->state[b];
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
        mix(c, -1, NULL, c->mean);
        status = tsr_nuisance_fit(c->nuisance, c->mean, c->beta, c->rng,
                                  c->new_fit, &log_lik, err);
    }
    if (possible && has_data && status == TSR_OK)
        log_alpha +=
            c->beta * (log_lik - c->log_lik) +
            tsr_nuisance_log_ratio(c->nuisance, c->fit, c->new_fit, c->beta);
    if (possible && status == TSR_OK && isnan(log_alpha))
        status = tsr_fail(err, TSR_E_NUMERIC, "the acceptance is not a number");
    double alpha = !possible ? 0.0 : log_alpha < 0.0 ? exp(log_alpha) : 1.0;
    if (status == TSR_OK && gsl_rng_uniform(c->rng) < alpha) {
        take_fit(c, log_lik);
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
        double d = (c->mean[q] - c->profile[q]) / c->profile[q];
        sum += d * d;
    }
    return isfinite(sum) ? sum / n_q : 0.0;
}

tsr_status tsr_chain_decide(tsr_chain *chain, double *profile, int warm,
                            int *accepted, tsr_err *err)
{
    tsr_chain *c = chain;
    const tsr_likelihood *l = c->target->likelihood;
    double new_log_lik = 0.0;
    *accepted = 0;
    if (profile != NULL) {
        if (c->n_state > 1)
            mix(c, c->which, profile, c->mean);
        else
            memcpy(c->mean, profile, (size_t)l->grid.n_q * sizeof *c->mean);
        tsr_status status =
            tsr_nuisance_fit(c->nuisance, c->mean, c->beta, c->rng, c->new_fit,
                             &new_log_lik, err);
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
    if (profile != NULL)
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
    if (warm && c->target->learn_mix && l != NULL) {
        double gain =
            profile == NULL ? 0.0 : alpha * curve_change(c, l->grid.n_q);
        tsr_mix_learn(
            &c->mix, c->kind, gain,
            tsr_mix_cost(c->target->topology, &c->proposal, profile != NULL));
    }
    if (warm)
        tsr_move_registry[c->kind]->adapt(c->move[c->kind], &c->proposal,
                                          alpha);
    settle(c, accept);
    if (accept && profile != NULL && l != NULL) {
        take_fit(c, new_log_lik);
        memcpy(c->state[c->which].profile, profile,
               (size_t)l->grid.n_q * sizeof *profile);
    }
    tsr_status status = TSR_OK;
    if (c->n_state > 1 && c->target->infer_weights)
        status = move_weights(c, warm, err);
    if (l != NULL)
        tsr_nuisance_update(c->nuisance, c->profile, c->beta, warm, c->rng,
                            c->fit, &c->log_lik);
    *accepted = accept;
    return status;
}

void tsr_chain_heat(tsr_chain *chain, double beta)
{
    chain->beta = beta;
}

void tsr_chain_exchange(tsr_chain *a, tsr_chain *b)
{
    tsr_chain_counts counts = a->counts;
    a->counts = b->counts;
    b->counts = counts;
    for (int m = 0; m < TSR_N_MOVE; m++) {
        void *move = a->move[m];
        a->move[m] = b->move[m];
        b->move[m] = move;
    }
    tsr_mix mix = a->mix;
    a->mix = b->mix;
    b->mix = mix;
    double step = a->log_weight_step;
    long n_learnt = a->n_weight_learnt;
    a->log_weight_step = b->log_weight_step;
    a->n_weight_learnt = b->n_weight_learnt;
    b->log_weight_step = step;
    b->n_weight_learnt = n_learnt;
}

double tsr_chain_log_lik(const tsr_chain *chain)
{
    return chain->log_lik;
}

/* States in the order of their Rg, so that labels that changed places in the
 * chain do not in what is stored. */
static void look_at_states(const tsr_chain *c, tsr_chain_view *view)
{
    const tsr_target *t = c->target;
    double square = 0.0;
    view->n_state = c->n_state;
    view->log_prior = view->d_max_ang = 0.0;
    for (int k = 0; k < c->n_state; k++) {
        const conformer *s = &c->state[k];
        double rg = tsr_conformation_rg(t->topology, s->current, t->rg2);
        double d_max = tsr_largest_distance(
            t->topology->n_body, (const double(*)[3])s->current->body);
        view->log_prior += tsr_prior_state_log(s->prior);
        view->d_max_ang = fmax(view->d_max_ang, d_max);
        square += s->weight * rg * rg;
        int at = k;
        for (; at > 0 && view->state_rg_ang[at - 1] > rg; at--) {
            view->state_rg_ang[at] = view->state_rg_ang[at - 1];
            view->state_weight[at] = view->state_weight[at - 1];
            view->state[at] = view->state[at - 1];
        }
        view->state_rg_ang[at] = rg;
        view->state_weight[at] = s->weight;
        view->state[at] = s->current;
    }
    view->rg_ang = c->n_state == 1 ? view->state_rg_ang[0] : sqrt(square);
    view->conformation = view->state[0];
}

void tsr_chain_look(const tsr_chain *chain, tsr_chain_view *view)
{
    const tsr_chain *c = chain;
    *view = (tsr_chain_view){
        .log_lik = c->log_lik,
        .beta = c->beta,
        .profile = c->target->likelihood == NULL ? NULL : c->profile,
        .fit = c->fit,
        .nuisance = c->nuisance,
        .rng = c->rng};
    look_at_states(c, view);
    view->lp =
        view->log_prior + view->log_lik + tsr_nuisance_log_prior(c->nuisance);
}

const tsr_chain_counts *tsr_chain_counts_get(const tsr_chain *chain)
{
    return &chain->counts;
}

void tsr_chain_counts_reset(tsr_chain *chain)
{
    memset(&chain->counts, 0, sizeof chain->counts);
    tsr_nuisance_counts_reset(chain->nuisance);
}

double tsr_chain_chi2(const tsr_chain *chain)
{
    const tsr_likelihood *l = chain->target->likelihood;
    double sum = 0.0;
    long n = 0;
    for (int d = 0; l != NULL && d < l->n_data; d++) {
        sum += chain->fit[d].chi2;
        n += l->data[d].saxs->n;
    }
    return n > 0 ? sum / (double)n : (double)NAN;
}
