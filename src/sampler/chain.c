#include "sampler/chain.h"

#include <gsl/gsl_randist.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

struct tsr_chain {
    const tsr_target *target;
    int number, system;
    gsl_rng *rng;
    tsr_conformation *current, *proposed; /* equal between steps */
    tsr_prior_state *prior;
    void *move[TSR_N_MOVE];
    double weight[TSR_N_MOVE]; /* cumulative, last is 1 */

    double beta;     /* 1 / T */
    double *profile; /* [n_q] with S(q) */
    double log_lik;
    tsr_fit *fit, *new_fit;   /* [n_data] */
    double *log_s, *log_step; /* [n_data] noise scale and its step */
    long n_learnt;

    /* the proposal in flight */
    int kind;
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
    tsr_conformation_free(chain->current);
    tsr_conformation_free(chain->proposed);
    tsr_prior_state_free(chain->prior);
    free(chain->profile);
    free(chain->fit);
    free(chain->new_fit);
    free(chain->log_s);
    free(chain->log_step);
    free(chain);
}

/* Weights of the moves that have something to move. */
static tsr_status set_moves(tsr_chain *c, tsr_err *err)
{
    const tsr_target *t = c->target;
    double total = 0.0;
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
        }
        c->weight[m] = total;
    }
    if (total <= 0.0)
        return tsr_fail(err, TSR_E_CONFIG,
                        "moves: none with a weight above 0 has anything to "
                        "move");
    for (int m = 0; m < TSR_N_MOVE; m++)
        c->weight[m] /= total;
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

tsr_status tsr_chain_new(const tsr_target *target, int number, tsr_chain **out,
                         tsr_err *err)
{
    const tsr_likelihood *l = target->likelihood;
    size_t n_data = l == NULL ? 0 : (size_t)l->n_data;
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
    c->system = c->system * n_temp + number % n_temp;
    c->rng = tsr_rng_new(target->seed, (uint64_t)number);
    c->current = tsr_conformation_new(target->topology);
    c->proposed = tsr_conformation_new(target->topology);
    c->profile = calloc(n_q + 1, sizeof *c->profile);
    c->fit = calloc(n_data + 1, sizeof *c->fit);
    c->new_fit = calloc(n_data + 1, sizeof *c->new_fit);
    c->log_s = calloc(n_data + 1, sizeof *c->log_s);
    c->log_step = calloc(n_data + 1, sizeof *c->log_step);
    if (c->rng == NULL || c->current == NULL || c->proposed == NULL ||
        c->profile == NULL || c->fit == NULL || c->new_fit == NULL ||
        c->log_s == NULL || c->log_step == NULL) {
        tsr_chain_free(c);
        return tsr_fail(err, TSR_E_NOMEM, "out of memory");
    }
    int n = target->topology->n_residue;
    tsr_conformation_copy(target->topology, c->current, target->first, 0, n);
    tsr_conformation_copy(target->topology, c->proposed, target->first, 0, n);
    for (size_t d = 0; d < n_data; d++) {
        c->log_s[d] = l->data[d].log_scale;
        c->log_step[d] = log(0.1);
    }
    c->prior = tsr_prior_state_new(target->prior, c->current);
    tsr_status status = c->prior == NULL
                            ? tsr_fail(err, TSR_E_NOMEM, "out of memory")
                            : set_moves(c, err);
    if (status != TSR_OK) {
        tsr_chain_free(c);
        return status;
    }
    *out = c;
    return TSR_OK;
}

tsr_status tsr_chain_start(tsr_chain *chain, tsr_batch *batch, tsr_err *err)
{
    const tsr_likelihood *l = chain->target->likelihood;
    if (l == NULL)
        return TSR_OK;
    tsr_status status = tsr_batch_set(batch, chain->system,
                                      (const double(*)[3])chain->current->body,
                                      chain->profile, err);
    if (status == TSR_OK)
        status = tsr_likelihood_fit(l, chain->profile, chain->fit, err);
    if (status == TSR_OK)
        chain->log_lik = tsr_likelihood_log(l, chain->fit, chain->log_s);
    return status;
}

int tsr_chain_system(const tsr_chain *chain)
{
    return chain->system;
}

int tsr_chain_propose(tsr_chain *chain, tsr_body_proposal *ask)
{
    tsr_chain *c = chain;
    const tsr_target *t = c->target;
    double u = gsl_rng_uniform(c->rng);
    c->kind = 0;
    while (c->kind < TSR_N_MOVE - 1 && u >= c->weight[c->kind])
        c->kind++;
    const tsr_move_type *type = tsr_move_registry[c->kind];
    c->counts.proposed[c->kind]++;
    type->propose(c->move[c->kind], c->current, c->proposed, c->rng,
                  &c->proposal);
    c->log_prior_change = c->proposal.n_span == 0
                              ? -(double)INFINITY
                              : tsr_prior_propose(c->prior, c->current,
                                                  c->proposed, &c->proposal);
    if (c->log_prior_change == -(double)INFINITY || t->likelihood == NULL)
        return 0;
    for (int k = 0; k < c->proposal.n_span; k++) {
        const tsr_span *s = &c->proposal.span[k];
        const tsr_residue *a = &t->topology->residue[s->first];
        const tsr_residue *z = &t->topology->residue[s->first + s->count - 1];
        c->range[k] = (tsr_body_range){
            a->first_body, z->first_body + z->n_body - a->first_body, s->group,
            (const double(*)[3])(c->proposed->body + a->first_body)};
    }
    *ask = (tsr_body_proposal){c->system, c->proposal.n_span, c->range};
    return 1;
}

/* Metropolis steps on log s of each data set; no engine call. The density is
 * that of log s, so a symmetric step needs no correction. */
static void move_scales(tsr_chain *c, int warm)
{
    const tsr_likelihood *l = c->target->likelihood;
    for (int d = 0; d < l->n_data; d++) {
        const tsr_data_term *term = &l->data[d];
        if (!term->infer_scale)
            continue;
        double old = c->log_s[d];
        double new = old + gsl_ran_gaussian(c->rng, exp(c->log_step[d]));
        double gain = term->type->log_lik(term->state, &c->fit[d], new) -
                      term->type->log_lik(term->state, &c->fit[d], old);
        double log_alpha = c->beta * gain +
                           tsr_likelihood_scale_prior(term, new) -
                           tsr_likelihood_scale_prior(term, old);
        double alpha = log_alpha < 0.0 ? exp(log_alpha) : 1.0;
        int accept = gsl_rng_uniform(c->rng) < alpha;
        c->counts.scale_proposed++;
        if (accept) {
            c->log_s[d] = new;
            c->log_lik = tsr_likelihood_log(l, c->fit, c->log_s);
            c->counts.scale_accepted++;
        }
        if (warm)
            c->log_step[d] += tsr_move_learn(c->n_learnt, alpha, 0.44);
    }
    if (warm)
        c->n_learnt++;
}

static void settle(tsr_chain *c, int accept)
{
    tsr_conformation *to = accept ? c->current : c->proposed;
    tsr_conformation *from = accept ? c->proposed : c->current;
    if (accept)
        tsr_prior_accept(c->prior, c->proposed, &c->proposal);
    for (int k = 0; k < c->proposal.n_span; k++)
        tsr_conformation_copy(c->target->topology, to, from,
                              c->proposal.span[k].first,
                              c->proposal.span[k].count);
    c->counts.accepted[c->kind] += accept;
}

tsr_status tsr_chain_decide(tsr_chain *chain, double *profile, int warm,
                            int *accepted, tsr_err *err)
{
    tsr_chain *c = chain;
    const tsr_likelihood *l = c->target->likelihood;
    double new_log_lik = 0.0;
    *accepted = 0;
    if (profile != NULL) {
        tsr_status status = tsr_likelihood_fit(l, profile, c->new_fit, err);
        if (status != TSR_OK) {
            settle(c, 0);
            return tsr_wrap(err, status, "chain %d, %s move", c->number,
                            tsr_move_registry[c->kind]->name);
        }
        new_log_lik = tsr_likelihood_log(l, c->new_fit, c->log_s);
    }
    double log_alpha = c->log_prior_change;
    if (log_alpha > -(double)INFINITY)
        log_alpha +=
            c->proposal.log_ratio + c->beta * (new_log_lik - c->log_lik);
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
    if (warm)
        tsr_move_registry[c->kind]->adapt(c->move[c->kind], &c->proposal,
                                          alpha);
    settle(c, accept);
    if (accept && profile != NULL) {
        tsr_fit *fit = c->fit;
        c->fit = c->new_fit, c->new_fit = fit;
        c->log_lik = new_log_lik;
        memcpy(c->profile, profile, (size_t)l->grid.n_q * sizeof *c->profile);
    }
    if (l != NULL)
        move_scales(c, warm);
    *accepted = accept;
    return TSR_OK;
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
}

double tsr_chain_log_lik(const tsr_chain *chain)
{
    return chain->log_lik;
}

void tsr_chain_look(const tsr_chain *chain, tsr_chain_view *view)
{
    const tsr_chain *c = chain;
    const tsr_target *t = c->target;
    *view = (tsr_chain_view){
        .log_prior = tsr_prior_state_log(c->prior),
        .log_lik = c->log_lik,
        .rg_ang = tsr_conformation_rg(t->topology, c->current, t->rg2),
        .d_max_ang = tsr_largest_distance(t->topology->n_body,
                                          (const double(*)[3])c->current->body),
        .profile = t->likelihood == NULL ? NULL : c->profile,
        .fit = c->fit,
        .log_s = c->log_s,
        .conformation = c->current,
        .rng = c->rng};
    view->lp = view->log_prior + view->log_lik;
    for (int d = 0; t->likelihood != NULL && d < t->likelihood->n_data; d++)
        view->lp +=
            tsr_likelihood_scale_prior(&t->likelihood->data[d], c->log_s[d]);
}

const tsr_chain_counts *tsr_chain_counts_get(const tsr_chain *chain)
{
    return &chain->counts;
}

void tsr_chain_counts_reset(tsr_chain *chain)
{
    memset(&chain->counts, 0, sizeof chain->counts);
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
