/* A chain: made, started, tempered, exchanged with another, and looked at.
 *
 * Its steps are in chain_step.c (structures) and chain_parameters.c (all
 * else), its way into a checkpoint and back in chain_archive.c. What is known
 * at the present place and at the proposed one lies in two points of the same
 * form, which are exchanged on acceptance; nothing is copied. */
#include "sampler/chain_state.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

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
        free(chain->state[k].particle);
    }
    free(chain->state);
    free(chain->others);
    if (chain->parameters != NULL) {
        tsr_point_clear(chain->target->likelihood, &chain->now);
        tsr_point_clear(chain->target->likelihood, &chain->trial);
    }
    tsr_parameters_free(chain->parameters);
    free(chain);
}

/* Of a move that goes by the surrogate; 0: it is not made. */
static double surrogate_weight(const tsr_target *t, int move)
{
    const tsr_engine_share *share = t->share;
    double weight = 0.0;
    if (t->surrogate == NULL || t->likelihood == NULL || t->n_share == 0 ||
        t->move_options[move] == NULL ||
        t->move_options[TSR_MOVE_surrogate] == NULL ||
        (move == TSR_MOVE_redraw ? share->redraws : share->walks) == NULL)
        return 0.0;
    memcpy(&weight, t->move_options[move], sizeof weight);
    return weight;
}

/* A redraw takes as long as so many other steps, whose cost grows with the
 * square of the number of bodies; in lar, of 382, it was 26 on two cores. */
static double redraw_cost(const tsr_topology *t)
{
    const double n = (double)t->n_body, most = 200.0, least = 10.0;
    return fmin(fmax(4e6 / (n * n), least), most);
}

/* What the surrogate has learnt is kept by the move that walks. */
static int uses_surrogate(const tsr_target *t, int move)
{
    return surrogate_weight(t, move) > 0.0 ||
           (move == TSR_MOVE_surrogate &&
            surrogate_weight(t, TSR_MOVE_redraw) > 0.0);
}

/* Weights of the moves that have something to move. */
static tsr_status set_moves(tsr_chain *c, tsr_err *err)
{
    const tsr_target *t = c->target;
    double total = 0.0, share[TSR_N_MOVE] = {0.0};
    const double walk_weight = surrogate_weight(t, TSR_MOVE_surrogate),
                 redraw_weight = surrogate_weight(t, TSR_MOVE_redraw);
    for (int m = 0; m < TSR_N_MOVE; m++) {
        const tsr_move_type *type = tsr_move_registry[m];
        const void *options = t->move_options[m];
        const int is_told =
            t->likelihood != NULL && tsr_likelihood_is_stiff(t->likelihood);
        if (options == NULL || (type->learn != NULL && !is_told))
            continue;
        double weight;
        memcpy(&weight, options, sizeof weight);
        const int is_own = type->propose != NULL;
        if (is_own ? weight > 0.0 && type->n_target(options, t->topology) > 0
                   : uses_surrogate(t, m)) {
            c->move[m] = type->state_new(options, t->topology, t->prior);
            if (c->move[m] == NULL)
                return tsr_fail(err, TSR_E_NOMEM, "out of memory");
            if (!is_own)
                continue;
            total += weight;
            share[m] = weight;
        }
    }
    if (total <= 0.0 && !t->is_still)
        return tsr_fail(err, TSR_E_CONFIG,
                        "moves: none with a weight above 0 has anything to "
                        "move");
    /* Walks turn torsions a hundred times as often. What they leave to the
     * other moves, side chains and angles, has most of their proposals then. */
    const double beside_walks = 0.2;
    for (int m = 0; m < TSR_N_MOVE && walk_weight > 0.0; m++)
        if (tsr_move_registry[m]->only_turns)
            share[m] *= beside_walks;
    if (total > 0.0)
        tsr_mix_set(&c->mix, share);
    if (walk_weight > 0.0)
        c->walk_period =
            lround(1.0 + total * fmax(t->walk_cost, 1.0) / walk_weight);
    if (redraw_weight > 0.0)
        c->redraw_period =
            lround(1.0 + redraw_cost(t->topology) * total / redraw_weight);
    return walk_weight + redraw_weight > 0.0 ? tsr_chain_open_surrogate(c, err)
                                             : TSR_OK;
}

/* Redraws are the rarer ones: where both are due a walk is left out. */
int tsr_chain_surrogate_at(const tsr_chain *chain, long step)
{
    const tsr_chain *c = chain;
    if (c->redraw_period > 0 && step % c->redraw_period == c->redraw_period / 2)
        return TSR_MOVE_redraw;
    if (c->walk_period > 0 && step % c->walk_period == 0)
        return TSR_MOVE_surrogate;
    return -1;
}

/* The share that a chain belongs to (the last where it is beyond all), and
 * which of its engine's systems it is. Without shares 0 and the chain's own
 * number. */
static void find_place(const tsr_target *target, int chain, int *share,
                       int *system)
{
    *share = 0;
    *system = chain;
    while (*share < target->n_share - 1 &&
           *system >= target->share[*share].n_chain)
        *system -= target->share[(*share)++].n_chain;
}

/* 0: out of memory. */
static int open_state(const tsr_chain *c, int k, size_t n_profile)
{
    const tsr_target *t = c->target;
    tsr_conformer *s = &c->state[k];
    const tsr_conformation *start =
        t->n_start > 0 ? t->start[k % t->n_start] : t->first;
    if (t->group_start != NULL && c->number >= 0) {
        const int chain = c->number / tsr_target_n_temp(t);
        const int group = chain / t->chains_each;
        start = t->group_start[group % t->n_group * c->n_state + k];
    }
    s->current = tsr_conformation_new(t->topology);
    s->proposed = tsr_conformation_new(t->topology);
    s->profile = calloc(n_profile + 1, sizeof *s->profile);
    const tsr_particles *own =
        t->likelihood != NULL ? t->likelihood->particles : NULL;
    if (own != NULL)
        s->particle = calloc((size_t)own->n + 1, sizeof *s->particle);
    if (s->current == NULL || s->proposed == NULL || s->profile == NULL ||
        (own != NULL && s->particle == NULL))
        return 0;
    int n = t->topology->n_residue;
    tsr_conformation_copy(t->topology, s->current, start, 0, n);
    tsr_conformation_copy(t->topology, s->proposed, start, 0, n);
    s->prior = tsr_prior_state_new(t->prior, s->current);
    return s->prior != NULL;
}

tsr_status tsr_chain_new(const tsr_target *target, int number, tsr_chain **out,
                         tsr_err *err)
{
    const tsr_likelihood *l = target->likelihood;
    int share;
    *out = NULL;
    tsr_chain *c = calloc(1, sizeof *c);
    if (c == NULL)
        return tsr_fail(err, TSR_E_NOMEM, "out of memory");
    c->target = target;
    c->number = number;
    c->beta = 1.0;
    int n_temp = tsr_target_n_temp(target);
    c->n_state = tsr_target_n_state(target);
    if (target->n_share > 0) { /* without an engine any number will do */
        find_place(target, number / n_temp, &share, &c->system);
        c->system = (c->system * n_temp + number % n_temp) * c->n_state;
    }
    c->rng = tsr_rng_new(target->seed, (uint64_t)number);
    c->state = calloc((size_t)c->n_state, sizeof *c->state);
    c->parameters = tsr_parameters_new(l, target->contrast, c->n_state,
                                       target->infer_weights);
    int complete = c->rng != NULL && c->state != NULL &&
                   c->parameters != NULL &&
                   tsr_point_make(l, c->parameters->n, &c->now) &&
                   tsr_point_make(l, c->parameters->n, &c->trial);
    if (complete)
        tsr_parameters_start(c->parameters, c->now.theta);
    for (int k = 0; k < c->n_state && complete; k++)
        complete = open_state(c, k, (size_t)tsr_likelihood_n_profile(l));
    tsr_status status = complete ? set_moves(c, err)
                                 : tsr_fail(err, TSR_E_NOMEM, "out of memory");
    if (status != TSR_OK) {
        tsr_chain_free(c);
        return status;
    }
    *out = c;
    return TSR_OK;
}

tsr_body_range tsr_chain_places(const tsr_chain *chain, int state,
                                const tsr_conformation *conformation, int first,
                                int count)
{
    const tsr_topology *t = chain->target->topology;
    const tsr_particles *own = chain->target->likelihood->particles;
    const tsr_residue *a = &t->residue[first], *z = a + count - 1;
    if (own == NULL)
        return (tsr_body_range){
            .first = a->first_body,
            .count = z->first_body + z->n_body - a->first_body,
            .xyz = (const double(*)[3])(conformation->body + a->first_body)};
    double(*to)[3] = chain->state[state].particle + own->first[first];
    own->type->place(own, conformation, first, count, to);
    return (tsr_body_range){.first = own->first[first],
                            .count =
                                own->first[first + count] - own->first[first],
                            .xyz = (const double(*)[3])to};
}

void tsr_chain_mean(const tsr_chain *chain, int which, const double *other,
                    tsr_point *to)
{
    const tsr_chain *c = chain;
    const double *weight = to->theta + c->parameters->weight;
    int n = tsr_likelihood_n_profile(c->target->likelihood);
    for (int q = 0; q < n; q++)
        to->partial[q] = 0.0;
    for (int k = 0; k < c->n_state; k++) {
        const double *profile = k == which ? other : c->state[k].profile;
        for (int q = 0; q < n; q++)
            to->partial[q] += weight[k] * profile[q];
    }
}

static tsr_status evaluate(tsr_chain *c, int which, const double *partial,
                           gsl_rng *rng, tsr_point *to, tsr_err *err)
{
    const tsr_conformation *state[TSR_MAX_STATES];
    for (int k = 0; k < c->n_state; k++)
        state[k] = k == which ? c->state[k].proposed : c->state[k].current;
    const tsr_prediction prediction = {NULL, c->n_state, state,
                                       to->theta + c->parameters->weight};
    return tsr_likelihood_evaluate(
        c->target->likelihood, partial,
        tsr_parameters_contrast(c->parameters, to->theta), prediction, c->beta,
        rng, to == &c->now ? NULL : &c->now, to, err);
}

tsr_status tsr_chain_evaluate(tsr_chain *chain, int which,
                              const double *partial, tsr_point *to,
                              tsr_err *err)
{
    return evaluate(chain, which, partial, chain->rng, to, err);
}

tsr_status tsr_chain_reevaluate(tsr_chain *chain, tsr_err *err)
{
    tsr_chain_mean(chain, -1, NULL, &chain->now);
    return evaluate(chain, -1, chain->now.partial, NULL, &chain->now, err);
}

tsr_status tsr_chain_start(tsr_chain *chain, tsr_batch *batch, tsr_err *err)
{
    const tsr_likelihood *l = chain->target->likelihood;
    if (l == NULL)
        return TSR_OK;
    tsr_status status = TSR_OK;
    for (int k = 0; k < chain->n_state && batch != NULL && status == TSR_OK;
         k++) {
        tsr_conformer *s = &chain->state[k];
        status =
            tsr_batch_set(batch, chain->system + k,
                          tsr_chain_places(chain, k, s->current, 0,
                                           chain->target->topology->n_residue)
                              .xyz,
                          s->profile, err);
    }
    tsr_chain_mean(chain, -1, NULL, &chain->now);
    return status != TSR_OK ? status
                            : tsr_chain_evaluate(chain, -1, chain->now.partial,
                                                 &chain->now, err);
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
    counts = a->since_draw;
    a->since_draw = b->since_draw;
    b->since_draw = counts;
    double changed = a->changed;
    a->changed = b->changed;
    b->changed = changed;
    long n_asked = a->n_asked;
    a->n_asked = b->n_asked;
    b->n_asked = n_asked;
    for (int m = 0; m < TSR_N_MOVE; m++) {
        void *move = a->move[m];
        a->move[m] = b->move[m];
        b->move[m] = move;
    }
    tsr_parameter_learnt learnt = a->parameters->learnt;
    a->parameters->learnt = b->parameters->learnt;
    b->parameters->learnt = learnt;
}

double tsr_chain_log_lik(const tsr_chain *chain)
{
    return chain->now.log_lik;
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
        const tsr_conformer *s = &c->state[k];
        double rg = tsr_conformation_rg(t->topology, s->current, t->rg2);
        double d_max = tsr_largest_distance(
            t->topology->n_body, (const double(*)[3])s->current->body);
        double term[TSR_N_TERM];
        tsr_prior_state_terms(s->prior, term);
        for (int i = 0; i < TSR_N_TERM; i++)
            view->term[i] += term[i];
        view->log_prior += tsr_prior_state_log(s->prior);
        view->d_max_ang = fmax(view->d_max_ang, d_max);
        double weight = c->now.theta[c->parameters->weight + k];
        square += weight * rg * rg;
        int at = k;
        for (; at > 0 && view->state_rg_ang[at - 1] > rg; at--) {
            view->state_rg_ang[at] = view->state_rg_ang[at - 1];
            view->state_weight[at] = view->state_weight[at - 1];
            view->state[at] = view->state[at - 1];
        }
        view->state_rg_ang[at] = rg;
        view->state_weight[at] = weight;
        view->state[at] = s->current;
    }
    view->rg_ang = c->n_state == 1 ? view->state_rg_ang[0] : sqrt(square);
    view->conformation = view->state[0];
}

void tsr_chain_look(const tsr_chain *chain, tsr_chain_view *view)
{
    const tsr_chain *c = chain;
    *view = (tsr_chain_view){.log_lik = c->now.log_lik,
                             .beta = c->beta,
                             .point = &c->now,
                             .parameters = c->parameters,
                             .since_draw = &c->since_draw,
                             .changed = c->n_asked > 0
                                            ? c->changed / (double)c->n_asked
                                            : (double)NAN,
                             .rng = c->rng};
    look_at_states(c, view);
    view->lp = view->log_prior + view->log_lik +
               tsr_parameters_log_prior(c->parameters, c->now.theta);
}

void tsr_chain_draw_done(tsr_chain *chain)
{
    memset(&chain->since_draw, 0, sizeof chain->since_draw);
    chain->changed = 0.0;
    chain->n_asked = 0;
}

const tsr_chain_counts *tsr_chain_counts_get(const tsr_chain *chain)
{
    return &chain->counts;
}

void tsr_chain_counts_reset(tsr_chain *chain)
{
    memset(&chain->counts, 0, sizeof chain->counts);
    chain->parameters->learnt.counts = (tsr_parameter_counts){0, 0};
}

double tsr_chain_clash_seconds(const tsr_chain *chain)
{
    double sum = chain->clash_seconds;
    for (int k = 0; k < chain->n_state; k++)
        sum += tsr_prior_state_clash_seconds(chain->state[k].prior);
    return sum;
}

double tsr_chain_chi2(const tsr_chain *chain)
{
    return tsr_likelihood_chi2(chain->target->likelihood, &chain->now);
}
