/* A Markov chain: construction, proposals, decisions, parameters, checks of the
 * engine, checkpoints.
 *
 * Parameters, profiles and likelihood of the present state and of the proposal
 * are kept in two points of one type, `now` and `trial`
 * (likelihood/likelihood.h). On acceptance the parts of the points that a step
 * changed are swapped. Conformations are copied instead, over the residues that
 * moved, so that `current` and `proposed` are equal between steps. */
#include "sampler/chain.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

void tsr_chain_free(tsr_chain *chain)
{
    if (chain == NULL)
        return;
    if (chain->rng != NULL)
        gsl_rng_free(chain->rng);
    for (int k = 0; chain->state != NULL && k < chain->n_state; k++) {
        tsr_conformation_free(chain->state[k].current);
        tsr_conformation_free(chain->state[k].proposed);
        tsr_prior_state_free(chain->state[k].prior);
    }
    if (chain->parameters != NULL) {
        tsr_point_clear(&chain->now);
        tsr_point_clear(&chain->trial);
    }
    tsr_pool_clear(&chain->pool);
    free(chain);
}

/* ---- the moves of a chain ---- */

void tsr_engine_group_clear(tsr_engine_group *group)
{
    tsr_engine_free(group->engine);
    for (int m = 0; m < TSR_N_MOVE; m++)
        if (group->launcher[m] != NULL)
            tsr_move_registry[m]->launch->launcher_free(group->launcher[m]);
    *group = (tsr_engine_group){0};
}

int tsr_target_has_global_moves(const tsr_target *target)
{
    int found = 0;
    for (int m = 0; m < TSR_N_MOVE && target->n_engine > 0; m++)
        found |= target->engines->launcher[m] != NULL &&
                 tsr_move_registry[m]->launch->turns_many_torsions;
    return found;
}

/* The number of the move whose state holds what move number `move` learns. */
static int state_owner_of(int move)
{
    const tsr_move_launch *launch = tsr_move_registry[move]->launch;
    int m = 0;
    if (launch == NULL)
        return move;
    while (tsr_move_registry[m] != launch->state_owner)
        m++;
    return m;
}

/* Sets up move number m, which has a launch, if the engine has a launcher for
 * this move. total: sum of the weights of all other moves; weight_of
 * [TSR_N_MOVE] in/out: these weights. */
static tsr_status set_launch_move(tsr_chain *c, int m, double total,
                                  double *weight_of, tsr_err *err)
{
    const tsr_target *t = c->target;
    const tsr_move_launch *launch = tsr_move_registry[m]->launch;
    const void *launcher = t->n_engine > 0 ? t->engines->launcher[m] : NULL;
    const double weight = tsr_move_weight(t->move_options[m]);
    const int state_owner = state_owner_of(m);
    /* A launch turns torsions a hundred times as often as other moves, so moves
     * that only turn torsions get smaller weights. Most ordinary proposals then
     * move side chains and angles. */
    const double torsion_factor = 0.2;
    if (t->likelihood == NULL || launcher == NULL || !(weight > 0.0) ||
        t->move_options[state_owner] == NULL)
        return TSR_OK;
    c->period[m] =
        lround(1.0 + total * launch->cost(launcher, t->topology) / weight);
    for (int k = 0; k < TSR_N_MOVE && launch->turns_many_torsions; k++)
        if (tsr_move_registry[k]->only_torsions)
            weight_of[k] *= torsion_factor;
    if (c->move[state_owner] != NULL)
        return TSR_OK;
    const size_t n = (size_t)tsr_likelihood_n_profile(t->likelihood);
    tsr_pool_array(&c->pool, c->others, n + 1);
    c->move[state_owner] = launch->state_owner->state_new(
        &c->pool, t->move_options[state_owner], t->topology, t->prior);
    return c->others != NULL && c->move[state_owner] != NULL &&
                   launch->extend_state(&c->pool, c->move[state_owner],
                                        launcher)
               ? TSR_OK
               : tsr_no_memory(err);
}

/* Sets up the moves that have something to move, and their weights. Moves that
 * learn from the Hessian are left out where no term has a Hessian. */
static tsr_status set_moves(tsr_chain *c, tsr_err *err)
{
    const tsr_target *t = c->target;
    const int has_hessian =
        t->likelihood != NULL && tsr_likelihood_has_hessian(t->likelihood);
    double total = 0.0, weight_of[TSR_N_MOVE] = {0.0};
    for (int m = 0; m < TSR_N_MOVE; m++) {
        const tsr_move_type *type = tsr_move_registry[m];
        const void *options = t->move_options[m];
        const double weight = tsr_move_weight(options);
        if (type->launch != NULL || (type->learn != NULL && !has_hessian) ||
            !(weight > 0.0) || type->n_target(options, t->topology) == 0)
            continue;
        c->move[m] = type->state_new(&c->pool, options, t->topology, t->prior);
        TSR_TRY(tsr_allocated(c->move[m], err));
        total += weight;
        weight_of[m] = weight;
    }
    if (total <= 0.0 && !t->is_frozen)
        return tsr_fail(
            err, TSR_E_CONFIG,
            "moves: no move with a weight above 0 can move any part");
    for (int m = 0; m < TSR_N_MOVE; m++)
        if (tsr_move_registry[m]->launch != NULL)
            TSR_TRY(set_launch_move(c, m, total, weight_of, err));
    if (total > 0.0)
        tsr_mix_set(&c->mix, weight_of);
    return TSR_OK;
}

/* If two launches are due, the one with is_mid_period wins. */
int tsr_chain_launch_at(const tsr_chain *chain, long step)
{
    int due = -1;
    for (int m = 0; m < TSR_N_MOVE; m++) {
        const long period = chain->period[m];
        const tsr_move_launch *launch = tsr_move_registry[m]->launch;
        if (period > 0 &&
            step % period == (launch->is_mid_period ? period / 2 : 0) &&
            (due < 0 || launch->is_mid_period))
            due = m;
    }
    return due;
}

/* *engine: number of the engine that computes a chain; *system: number of the
 * chain among those of the engine. A chain beyond the chains of all engines
 * gets the last engine, a chain before them the first. Without engines: 0, and
 * the chain's number. */
static void find_engine(const tsr_target *target, int chain, int *engine,
                        int *system)
{
    *engine = 0;
    *system = chain > target->first_chain ? chain - target->first_chain : 0;
    while (*engine < target->n_engine - 1 &&
           *system >= target->engines[*engine].n_chain)
        *system -= target->engines[(*engine)++].n_chain;
}

/* Starts state k of the ensemble. Returns 0 when out of memory. */
static int init_state(tsr_chain *c, int k, size_t n_profile)
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
    tsr_pool_array(&c->pool, s->profile, n_profile + 1);
    if (s->current == NULL || s->proposed == NULL || c->pool.failed)
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
    int engine;
    *out = NULL;
    tsr_chain *c = calloc(1, sizeof *c);
    if (c == NULL)
        return tsr_fail(err, TSR_E_NOMEM, "out of memory");
    c->target = target;
    c->number = number;
    c->beta = 1.0;
    int n_temp = tsr_target_n_temp(target);
    c->n_state = tsr_target_n_state(target);
    if (target->n_engine > 0) { /* without an engine `system` is not used */
        find_engine(target, number / n_temp, &engine, &c->system);
        c->system = (c->system * n_temp + number % n_temp) * c->n_state;
    }
    c->rng = tsr_rng_new(target->seed, (uint64_t)number);
    tsr_pool_array(&c->pool, c->state, c->n_state);
    c->parameters = tsr_parameters_new(&c->pool, l, target->contrast,
                                       c->n_state, target->infer_weights);
    int complete = c->rng != NULL && c->state != NULL &&
                   c->parameters != NULL &&
                   tsr_point_make(l, c->parameters->n, &c->now) &&
                   tsr_point_make(l, c->parameters->n, &c->trial);
    if (complete)
        tsr_parameters_start(c->parameters, c->now.theta);
    for (int k = 0; k < c->n_state && complete; k++)
        complete = init_state(c, k, (size_t)tsr_likelihood_n_profile(l));
    tsr_status status = complete ? set_moves(c, err)
                                 : tsr_fail(err, TSR_E_NOMEM, "out of memory");
    TSR_HAND_OVER(status, c, out, tsr_chain_free);
}

/* The bodies of residues first .. first + count - 1. */
static tsr_body_range body_range(const tsr_topology *t,
                                 const tsr_conformation *conformation,
                                 int first, int count)
{
    const tsr_residue *a = &t->residue[first], *z = a + count - 1;
    return (tsr_body_range){
        .first = a->first_body,
        .count = z->first_body + z->n_body - a->first_body,
        .xyz = (const double(*)[3])(conformation->body + a->first_body)};
}

/* to->partial: means of the partial profiles over the states, with the weights
 * in to->theta, of the mixtures that an evaluation of `to` includes. State
 * moved_state enters with the profile `other`, all other states with their
 * stored profiles. moved_state -1: there is no `other`. */
static void mean_profile(const tsr_chain *chain, int moved_state,
                         const double *other, tsr_point *to)
{
    const tsr_chain *c = chain;
    const int n = tsr_likelihood_n_profile(c->target->likelihood);
    for (int m = 0; m < c->parameters->n_mixture; m++) {
        const double *weight =
            to->theta + c->parameters->weight + m * c->n_state;
        double *mean = to->partial + m * n;
        if (to->mixture >= 0 && to->mixture != m)
            continue;
        for (int q = 0; q < n; q++)
            mean[q] = 0.0;
        for (int k = 0; k < c->n_state; k++) {
            const double *profile =
                k == moved_state ? other : c->state[k].profile;
            for (int q = 0; q < n; q++)
                mean[q] += weight[k] * profile[q];
        }
    }
}

static tsr_status evaluate_at(tsr_chain *c, int moved_state,
                              const double *partial, gsl_rng *rng,
                              tsr_point *to, tsr_err *err)
{
    const tsr_conformation *state[TSR_MAX_STATES];
    for (int k = 0; k < c->n_state; k++)
        state[k] =
            k == moved_state ? c->state[k].proposed : c->state[k].current;
    const tsr_prediction prediction = {NULL, c->n_state, state,
                                       to->theta + c->parameters->weight};
    return tsr_likelihood_evaluate(
        c->target->likelihood, partial,
        tsr_parameters_contrast(c->parameters, to->theta), prediction, c->beta,
        rng, to == &c->now ? NULL : &c->now, to, err);
}

/* Computes profiles, fits and likelihood of `to` from the mean partial
 * profiles. moved_state: the state with a proposed structure; -1: all
 * structures are the present ones. Terms draw their own parameters anew
 * (tsr_likelihood_evaluate). */
static tsr_status evaluate(tsr_chain *chain, int moved_state,
                           const double *partial, tsr_point *to, tsr_err *err)
{
    return evaluate_at(chain, moved_state, partial, chain->rng, to, err);
}

/* Computes mean profile, fits and likelihood of the present state, without a
 * random draw. */
static tsr_status evaluate_now(tsr_chain *chain, tsr_err *err)
{
    mean_profile(chain, -1, NULL, &chain->now);
    return evaluate_at(chain, -1, chain->now.partial, NULL, &chain->now, err);
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
        status = tsr_batch_set(batch, chain->system + k,
                               (const double(*)[3])s->current->body, s->profile,
                               err);
    }
    mean_profile(chain, -1, NULL, &chain->now);
    return status != TSR_OK
               ? status
               : evaluate(chain, -1, chain->now.partial, &chain->now, err);
}

void tsr_chain_set_beta(tsr_chain *chain, double beta)
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
    long n_evaluated = a->n_evaluated;
    a->n_evaluated = b->n_evaluated;
    b->n_evaluated = n_evaluated;
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

/* Fills the members of the view that are sums or lists over the states. Sorts
 * the states by Rg, so that a stored label means the same state when states
 * swap roles in the chain. */
static void sort_states(const tsr_chain *c, tsr_chain_view *view)
{
    const tsr_target *t = c->target;
    const int n_mixture = c->parameters->n_mixture;
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
        double weight = 0.0; /* mean over the mixtures */
        for (int m = 0; m < n_mixture; m++)
            weight += c->now.theta[c->parameters->weight + m * c->n_state + k] /
                      n_mixture;
        square += weight * rg * rg;
        int at = k;
        for (; at > 0 && view->state_rg_ang[at - 1] > rg; at--) {
            view->state_rg_ang[at] = view->state_rg_ang[at - 1];
            view->state_weight[at] = view->state_weight[at - 1];
            view->state[at] = view->state[at - 1];
            view->number[at] = view->number[at - 1];
        }
        view->state_rg_ang[at] = rg;
        view->state_weight[at] = weight;
        view->state[at] = s->current;
        view->number[at] = k;
    }
    view->rg_ang = c->n_state == 1 ? view->state_rg_ang[0] : sqrt(square);
    view->conformation = view->state[0];
}

void tsr_chain_view_get(const tsr_chain *chain, tsr_chain_view *view)
{
    const tsr_chain *c = chain;
    *view = (tsr_chain_view){
        .log_lik = c->now.log_lik,
        .beta = c->beta,
        .point = &c->now,
        .parameters = c->parameters,
        .since_draw = &c->since_draw,
        .changed = c->n_evaluated > 0 ? c->changed / (double)c->n_evaluated
                                      : (double)NAN,
        .rng = c->rng};
    sort_states(c, view);
    view->lp = view->log_prior + view->log_lik +
               tsr_parameters_log_prior(c->parameters, c->now.theta);
}

double tsr_chain_view_weight(const tsr_chain_view *view, int mixture, int k)
{
    const tsr_parameters *p = view->parameters;
    return view->point
        ->theta[p->weight + mixture * p->n_state + view->number[k]];
}

void tsr_chain_draw_done(tsr_chain *chain)
{
    memset(&chain->since_draw, 0, sizeof chain->since_draw);
    chain->changed = 0.0;
    chain->n_evaluated = 0;
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

/* ---- checks of the engine during a run ----
 *
 * A device can compute wrong sums without reporting an error. The profile that
 * accepted updates accumulated is compared with a fresh sum, and now and then
 * the profile of one proposal with a sum in double precision. A difference that
 * rounding cannot explain stops the run (docs/design.md, section 3). */

/* Length of the first three parts of the engine's description, without the
 * compiler's options. */
static int description_length(const char *description)
{
    size_t length = 0;
    for (int part = 0; part < 3; part++) {
        length += strspn(description + length, ";");
        length += strcspn(description + length, ";");
    }
    return (int)length;
}

/* Fails with TSR_E_DEVICE, naming q and values, where a profile [n_pair][n_q]
 * of the engine differs from the correct one by more than rounding explains.
 * had_from, right_from: for the message, how the two profiles were computed. */
static tsr_status compare_profiles(const tsr_engine *engine, const double *had,
                                   const char *had_from, const double *right,
                                   const char *right_from, tsr_err *err)
{
    double allowed = 0.0;
    int at = tsr_engine_worst_difference(engine, had, right, &allowed);
    if (at < 0)
        return TSR_OK;
    char component[48] = "";
    if (engine->n_pair > 1)
        snprintf(component, sizeof component, ", pair %d of components",
                 at / engine->n_q);
    return tsr_fail(
        err, TSR_E_DEVICE,
        "wrong sums: q = %.4f 1/A%s: I = %.8g from %s, but %.8g %s; rounding "
        "explains at most %.2g. The device, its driver or the kernels are "
        "faulty ('tessera devices' tests them): %.*s",
        at % engine->n_q * engine->dq_inv_ang, component, had[at], had_from,
        right[at], right_from, allowed, description_length(engine->description),
        engine->description);
}

/* Prefixes a message with the numbers of chain and replica. */
static tsr_status wrap_with_chain(const tsr_chain *chain, tsr_status status,
                                  tsr_err *err)
{
    int n_temp = tsr_target_n_temp(chain->target), number = chain->number;
    if (n_temp == 1)
        return tsr_wrap(err, status, "chain %d", number);
    return tsr_wrap(err, status, "chain %d, replica %d", number / n_temp,
                    number % n_temp);
}

tsr_status tsr_chain_audit(tsr_chain *chain, const tsr_engine *engine,
                           const double *partial,
                           const tsr_debye_progress *progress, tsr_err *err)
{
    tsr_chain *c = chain;
    double *exact = c->trial.partial; /* not in use until tsr_chain_decide */
    tsr_status status = tsr_likelihood_direct(
        c->target->likelihood, c->target->topology->n_body,
        c->state[c->moved_state].proposed, progress, exact, err);
    if (status == TSR_OK)
        status = compare_profiles(engine, partial, "a proposal's update", exact,
                                  "in double precision", err);
    return status == TSR_OK ? TSR_OK : wrap_with_chain(c, status, err);
}

/* ---- parameters ----
 *
 * One Metropolis-Hastings step on each block of parameters.
 *
 * The scope of a block decides what is recomputed (core/parameter.h). The
 * partial profiles of the states do not change, so the engine is not called. */

/* Computes the likelihood at the trial's parameters. *change: change of the log
 * likelihood, nat, from the term that the block belongs to, or from all
 * terms. */
static tsr_status evaluate_block(tsr_chain *c, const tsr_block *b,
                                 double *change, tsr_err *err)
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
        mean_profile(c, -1, NULL, &c->trial);
        partial = c->trial.partial;
    }
    tsr_status status = evaluate(c, -1, partial, &c->trial, err);
    *change = c->trial.log_lik - c->now.log_lik;
    return status;
}

/* A random walk without bounds may propose a value beyond the range of doubles,
 * which is then rejected. Any other NaN is an error. */
static tsr_status check_block(const tsr_block *b, double *log_alpha,
                              tsr_err *err)
{
    if (!isnan(*log_alpha))
        return TSR_OK;
    if (b->kind != TSR_STEP_WALK)
        return tsr_fail(err, TSR_E_NUMERIC, "the acceptance is not a number");
    *log_alpha = -(double)INFINITY;
    return TSR_OK;
}

/* Computes those parts of a term's fit that are needed only after acceptance.
 * Returns 0 if the fit does not exist, so that the step must be rejected. */
static int complete_fit(tsr_chain *c, const tsr_block *b)
{
    const tsr_likelihood *l = c->target->likelihood;
    if (l == NULL || b->scope != TSR_CHANGES_FIT)
        return 1;
    const tsr_term *term = l->term[b->term];
    return term->type->complete == NULL ||
           term->type->complete(term, c->trial.theta + term->first,
                                c->trial.fit[b->term]);
}

static tsr_status step_block(tsr_chain *c, int block, int warm, tsr_err *err)
{
    const tsr_likelihood *l = c->target->likelihood;
    tsr_parameters *p = c->parameters;
    const tsr_block *b = &p->block[block];
    double to, from, change = 0.0, ratio = 0.0;
    tsr_status status = TSR_OK;
    memcpy(c->trial.theta, c->now.theta, (size_t)p->n * sizeof(double));
    c->trial.mixture = b->mixture;
    int possible = tsr_parameters_propose(p, block, l, &c->now, &c->trial,
                                          c->beta, c->rng, &to, &from);
    if (possible && l != NULL)
        status = evaluate_block(c, b, &change, err);
    if (possible && l != NULL && b->scope <= TSR_CHANGES_PROFILE &&
        status == TSR_OK)
        ratio = tsr_likelihood_log_ratio(l, &c->now, &c->trial, c->beta);
    double log_alpha =
        possible ? c->beta * change + ratio + to - from : -(double)INFINITY;
    if (status == TSR_OK)
        status = check_block(b, &log_alpha, err);
    if (status != TSR_OK)
        return tsr_wrap(err, status, "chain %d, %s", c->number, b->name);
    double alpha = log_alpha < 0.0 ? exp(log_alpha) : 1.0;
    int accept = gsl_rng_uniform(c->rng) < alpha && complete_fit(c, b);
    p->learnt.counts.proposed++;
    p->learnt.counts.accepted += accept;
    if (accept)
        tsr_point_swap(l, b->scope, b->term, &c->now, &c->trial);
    if (warm)
        tsr_parameters_learn(p, block, alpha);
    return TSR_OK;
}

tsr_status tsr_chain_step_parameters(tsr_chain *chain, int warm, tsr_err *err)
{
    const tsr_parameters *p = chain->parameters;
    tsr_status status = TSR_OK;
    for (int b = 0; b < p->n_block && status == TSR_OK; b++) {
        const double skip = p->table[p->block[b].first].skip_fraction;
        if (skip == 0.0 || gsl_rng_uniform(chain->rng) >= skip)
            status = step_block(chain, b, warm, err);
    }
    if (warm && status == TSR_OK)
        tsr_parameters_learn_axes(chain->parameters, chain->now.theta);
    return status;
}

/* ---- proposals of moves with a launch ----
 *
 * tsr_chain_launch_begin writes the chain's state into a job of the launch, and
 * tsr_chain_launch_end reads the result of the job as a proposal
 * (moves/move.h). */

/* The chain's present state for a move with a launch. `others` stays NULL;
 * tsr_chain_launch_begin sets it. */
static tsr_move_context move_context_of(const tsr_chain *c)
{
    const double *weight = c->now.theta + c->parameters->weight;
    return (tsr_move_context){.topology = c->target->topology,
                              .beta = c->beta,
                              .theta = c->now.theta,
                              .contrast = c->parameters->contrast,
                              .profile = c->now.profile,
                              .weight =
                                  c->n_state > 1 ? weight[c->moved_state] : 1.0,
                              .current = c->state[c->moved_state].current};
}

tsr_status tsr_chain_launch_begin(tsr_chain *chain, int move, void *workspace,
                                  int job, tsr_err *err)
{
    tsr_chain *c = chain;
    const int n = tsr_likelihood_n_profile(c->target->likelihood);
    const double *weight = c->now.theta + c->parameters->weight;
    uint32_t key[2];
    if (c->n_state > 1)
        c->moved_state =
            (int)gsl_rng_uniform_int(c->rng, (unsigned long)c->n_state);
    for (int i = 0; i < 2; i++)
        key[i] = (uint32_t)gsl_rng_get(c->rng);
    memset(c->others, 0, (size_t)n * sizeof *c->others);
    for (int k = 0; k < c->n_state; k++)
        for (int i = 0; k != c->moved_state && i < n; i++)
            c->others[i] += weight[k] * c->state[k].profile[i];
    tsr_move_context context = move_context_of(c);
    context.others = c->n_state > 1 ? c->others : NULL;
    return tsr_move_registry[move]->launch->job(
        workspace, job, c->move[state_owner_of(move)], &context, key, err);
}

static int evaluate_prior(tsr_chain *chain, tsr_body_proposal *request);

tsr_status tsr_chain_launch_end(tsr_chain *chain, int move,
                                const void *workspace, int job,
                                tsr_body_proposal *request, int *needed,
                                tsr_err *err)
{
    tsr_chain *c = chain;
    const tsr_move_context context = move_context_of(c);
    c->move_number = move;
    c->workspace = workspace;
    c->job = job;
    c->coupled.index = -1;
    TSR_TRY(tsr_move_registry[move]->launch->result(
        workspace, job, &context, c->state[c->moved_state].proposed,
        &c->proposal, &c->coupled, err));
    *needed = evaluate_prior(c, request);
    return TSR_OK;
}

/* ---- a step ----
 *
 * A Metropolis-Hastings step on the structures, in two parts: `propose` makes
 * the proposal, whose profile the engine then computes, and `decide` accepts or
 * rejects the proposal.
 *
 * A proposal that the prior forbids never reaches the engine. The acceptance
 * probability is that of a joint step in the structure and in the parameters
 * that the terms draw anew for a proposed structure. */

int tsr_chain_system(const tsr_chain *chain)
{
    return chain->system + chain->moved_state;
}

int tsr_chain_propose(tsr_chain *chain, tsr_body_proposal *request)
{
    tsr_chain *c = chain;
    const tsr_target *t = c->target;
    c->proposal.n_span = 0;
    c->coupled.index = -1;
    c->log_prior_change = -(double)INFINITY;
    if (t->is_frozen)
        return 0;
    double u = gsl_rng_uniform(c->rng);
    c->move_number = tsr_mix_choose(&c->mix, u);
    if (c->n_state > 1)
        c->moved_state =
            (int)gsl_rng_uniform_int(c->rng, (unsigned long)c->n_state);
    tsr_conformer *state = &c->state[c->moved_state];
    tsr_move_registry[c->move_number]->propose(c->move[c->move_number],
                                               state->current, state->proposed,
                                               c->rng, &c->proposal);
    tsr_proposal_move_attached(c->target->topology, state->current,
                               state->proposed, &c->proposal);
    return evaluate_prior(c, request);
}

/* Counts the proposal and computes its change of the log prior. If the engine
 * must evaluate the proposal, fills `request` and returns 1; else returns 0. */
static int evaluate_prior(tsr_chain *chain, tsr_body_proposal *request)
{
    tsr_chain *c = chain;
    const tsr_target *t = c->target;
    tsr_conformer *state = &c->state[c->moved_state];
    c->counts.proposed[c->move_number]++;
    c->since_draw.proposed[c->move_number]++;
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
            body_range(t->topology, state->proposed, s->first, s->count);
        c->range[k].group = s->group;
    }
    const double changed = tsr_mix_changed(t->topology, &c->proposal);
    c->changed += changed;
    c->n_evaluated++;
    c->since_draw.changed[c->move_number] += changed;
    c->since_draw.evaluated[c->move_number]++;
    *request =
        (tsr_body_proposal){tsr_chain_system(c), c->proposal.n_span, c->range};
    return 1;
}

/* Makes the `current` and `proposed` conformations equal again, and counts. */
static void finish_proposal(tsr_chain *c, int accept)
{
    tsr_conformer *state = &c->state[c->moved_state];
    tsr_conformation *to = accept ? state->current : state->proposed;
    tsr_conformation *from = accept ? state->proposed : state->current;
    if (accept)
        tsr_prior_accept(state->prior, state->proposed, &c->proposal);
    for (int k = 0; k < c->proposal.n_span; k++)
        tsr_conformation_copy(c->target->topology, to, from,
                              c->proposal.span[k].first,
                              c->proposal.span[k].count);
    c->counts.accepted[c->move_number] += accept;
    c->since_draw.accepted[c->move_number] += accept;
}

/* Change of the log prior of the parameter that a launch proposes together with
 * the structure; 0 without such a parameter. */
static double coupled_log_prior(const tsr_chain *c)
{
    const int at = c->coupled.index;
    const tsr_parameter *p = c->parameters->table;
    return at < 0 ? 0.0
                  : tsr_parameter_log_prior(&p[at], c->trial.theta[at]) -
                        tsr_parameter_log_prior(&p[at], c->now.theta[at]);
}

/* Computes the trial point of a proposed structure. partial: the engine's
 * profile of the state that changed. */
static tsr_status evaluate_proposal(tsr_chain *c, const double *partial,
                                    tsr_err *err)
{
    size_t bytes = (size_t)tsr_likelihood_n_profile(c->target->likelihood) *
                   sizeof(double);
    memcpy(c->trial.theta, c->now.theta,
           (size_t)c->parameters->n * sizeof(double));
    c->trial.mixture = -1;
    if (c->coupled.index >= 0)
        c->trial.theta[c->coupled.index] = c->coupled.value;
    if (c->n_state > 1 || c->parameters->n_mixture > 1)
        mean_profile(c, c->moved_state, partial, &c->trial);
    else if (bytes > 0)
        memcpy(c->trial.partial, partial, bytes);
    return evaluate(c, c->moved_state, c->trial.partial, &c->trial, err);
}

/* After acceptance: the trial point becomes the present one. */
static void accept_trial(tsr_chain *c, const double *partial)
{
    const tsr_likelihood *l = c->target->likelihood;
    size_t bytes = (size_t)tsr_likelihood_n_profile(l) * sizeof(double);
    tsr_point_swap(l, TSR_CHANGES_MEAN, -1, &c->now, &c->trial);
    if (bytes > 0)
        memcpy(c->state[c->moved_state].profile, partial, bytes);
}

/* y += beta K v for the moved state (moves/move.h). */
static void hessian_product(const void *context, int n, const double *v,
                            double *y)
{
    const tsr_chain *c = context;
    const size_t size = (size_t)(3 * c->target->topology->n_body * n);
    tsr_likelihood_hessian_product(c->target->likelihood, &c->now,
                                   c->moved_state, n, v, y);
    for (size_t i = 0; i < size; i++)
        y[i] *= c->beta;
}

static void adapt_move(tsr_chain *c, double alpha, int accepted)
{
    const tsr_move_type *type = tsr_move_registry[c->move_number];
    if (type->launch != NULL) {
        const tsr_move_context context = move_context_of(c);
        type->launch->learn(c->workspace, c->job,
                            c->move[state_owner_of(c->move_number)], &context,
                            accepted);
        return;
    }
    const tsr_hessian hessian = {c, hessian_product};
    if (type->adapt != NULL)
        type->adapt(c->move[c->move_number], &c->proposal, alpha);
    if (type->learn != NULL)
        type->learn(c->move[c->move_number], c->state[c->moved_state].current,
                    &hessian);
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
        tsr_status status = evaluate_proposal(c, partial, err);
        if (status != TSR_OK) {
            finish_proposal(c, 0);
            return tsr_wrap(err, status, "chain %d, %s move", c->number,
                            tsr_move_registry[c->move_number]->name);
        }
    }
    double log_alpha = c->log_prior_change;
    if (log_alpha > -(double)INFINITY)
        log_alpha +=
            c->proposal.log_ratio + (is_possible ? coupled_log_prior(c) : 0.0) +
            (is_possible ? c->beta * (c->trial.log_lik - c->now.log_lik) : 0.0);
    if (is_possible)
        log_alpha += tsr_likelihood_log_ratio(l, &c->now, &c->trial, c->beta);
    if (isnan(log_alpha)) {
        finish_proposal(c, 0);
        return tsr_fail(err, TSR_E_NUMERIC,
                        "chain %d, %s move: the acceptance is not a number "
                        "(log prior change %g, log likelihood %g)",
                        c->number, tsr_move_registry[c->move_number]->name,
                        c->log_prior_change, c->trial.log_lik);
    }
    double alpha = log_alpha < 0.0 ? exp(log_alpha) : 1.0;
    int accept = gsl_rng_uniform(c->rng) < alpha;
    finish_proposal(c, accept);
    if (accept && is_possible)
        accept_trial(c, partial);
    if (warm && !c->target->is_frozen)
        adapt_move(c, alpha, accept);
    *accepted = accept;
    return tsr_chain_step_parameters(c, warm, err);
}

/* ---- the checkpoint ----
 *
 * Saves, restores and copies a chain, and recomputes it from its conformations.
 *
 * Only what cannot be computed is saved: conformations, parameters, adapted
 * step sizes, the random stream. The rest is recomputed at the same steps
 * whether a run was interrupted or not, so that both continue with equal
 * bits. */

void tsr_chain_archive_moves(tsr_chain *chain, tsr_archive *archive)
{
    for (int m = 0; m < TSR_N_MOVE; m++) {
        const tsr_move_type *type = tsr_move_registry[m];
        if (type->archive != NULL &&
            (chain->move[m] != NULL ||
             (type->launch != NULL && state_owner_of(m) == m)))
            type->archive(chain->move[m], archive);
    }
}

void tsr_chain_archive(tsr_chain *chain, tsr_archive *archive)
{
    tsr_chain *c = chain;
    const tsr_topology *t = c->target->topology;
    size_t n_residue = (size_t)t->n_residue, n_body = (size_t)t->n_body;
    tsr_archive_rng(archive, c->rng);
    for (int k = 0; k < c->n_state; k++) {
        tsr_conformation *now = c->state[k].current;
        tsr_archive_real(archive, &now->backbone[0][0][0], 12 * n_residue);
        tsr_archive_real(archive, &now->side[0][0], 3 * n_residue);
        tsr_archive_real(archive, &now->body[0][0], 3 * n_body);
        c->state[k].is_restored = archive->is_restoring;
    }
    tsr_archive_real(archive, c->now.theta, (size_t)c->parameters->n);
    tsr_chain_archive_moves(c, archive);
    tsr_parameters_archive(c->parameters, archive);
    tsr_archive_long(archive, c->counts.proposed, TSR_N_MOVE);
    tsr_archive_long(archive, c->counts.accepted, TSR_N_MOVE);
}

void tsr_chain_restore_copy(tsr_chain *chain, tsr_archive *saved)
{
    gsl_rng *kept = gsl_rng_clone(chain->rng);
    tsr_archive_rewind(saved);
    tsr_chain_archive(chain, saved);
    gsl_rng_memcpy(chain->rng, kept);
    gsl_rng_free(kept);
}

/* ---- averages over chains ---- */

/* Saves what a move has learnt. */
static void save_move(tsr_archive *a, int m, void *move)
{
    tsr_archive_begin(a);
    tsr_move_registry[m]->archive(move, a);
}

/* Sets what move m has learnt to the mean over n chains. `a`: scratch. */
static tsr_status average_move(tsr_chain *const *chain, int n, int m,
                               tsr_archive *a, tsr_err *err)
{
    save_move(a, m, chain[0]->move[m]);
    const size_t n_real = a->n_real, bytes = n_real * sizeof(double);
    double *first = malloc(bytes + 1), *mean = calloc(n_real + 1, sizeof *mean);
    int alike = 1;
    if (first != NULL && mean != NULL && n_real > 0)
        memcpy(first, a->real, bytes);
    for (int c = 0; c < n && first != NULL && mean != NULL; c++) {
        save_move(a, m, chain[c]->move[m]);
        for (size_t i = 0; i < n_real && !a->failed; i++)
            mean[i] += a->real[i] / n;
        alike &= n_real == 0 || memcmp(first, a->real, bytes) == 0;
    }
    for (int c = 0; c < n && !alike && !a->failed; c++) {
        save_move(a, m, chain[c]->move[m]);
        if (!a->failed)
            memcpy(a->real, mean, bytes);
        tsr_archive_rewind(a);
        tsr_move_registry[m]->archive(chain[c]->move[m], a);
    }
    const int failed = first == NULL || mean == NULL || a->failed;
    free(first);
    free(mean);
    return failed ? tsr_fail(err, TSR_E_NOMEM, "out of memory") : TSR_OK;
}

tsr_status tsr_chain_average_steps(tsr_chain *const *chain, int n, tsr_err *err)
{
    tsr_archive archive = {0};
    tsr_status status = TSR_OK;
    for (int m = 0; m < TSR_N_MOVE && status == TSR_OK; m++)
        if (chain[0]->move[m] != NULL && tsr_move_registry[m]->archive != NULL)
            status = average_move(chain, n, m, &archive, err);
    tsr_archive_clear(&archive);
    return status;
}

void tsr_chain_copy(tsr_chain *to, const tsr_chain *from)
{
    const tsr_topology *t = to->target->topology;
    for (int k = 0; k < to->n_state; k++) {
        tsr_conformation_copy(t, to->state[k].current, from->state[k].current,
                              0, t->n_residue);
        /* The profile belongs to the previous structure. */
        to->state[k].is_restored = 1;
    }
    memcpy(to->now.theta, from->now.theta,
           (size_t)to->parameters->n * sizeof(double));
    to->now.log_lik = from->now.log_lik;
}

/* Recomputes the profile of a state and compares the accumulated profile with
 * it. */
static tsr_status refresh_profile(tsr_chain *c, int k, tsr_batch *batch,
                                  tsr_err *err)
{
    const tsr_likelihood *l = c->target->likelihood;
    tsr_conformer *s = &c->state[k];
    double *fresh = c->trial.partial; /* not in use between two steps */
    tsr_status status = tsr_batch_set(
        batch, c->system + k, (const double(*)[3])s->current->body, fresh, err);
    if (status == TSR_OK && !s->is_restored)
        status = compare_profiles(batch->engine, s->profile, "accepted updates",
                                  fresh, "computed afresh", err);
    s->is_restored = 0;
    memcpy(s->profile, fresh,
           (size_t)l->n_pair * (size_t)l->grid.n_q * sizeof *fresh);
    return status;
}

tsr_status tsr_chain_refresh(tsr_chain *chain, tsr_batch *batch, tsr_err *err)
{
    tsr_chain *c = chain;
    const tsr_target *t = c->target;
    tsr_status status = TSR_OK;
    for (int k = 0; k < c->n_state && status == TSR_OK; k++) {
        tsr_conformer *s = &c->state[k];
        tsr_conformation_copy(t->topology, s->proposed, s->current, 0,
                              t->topology->n_residue);
        tsr_prior_state *fresh = tsr_prior_state_new(t->prior, s->current);
        if (fresh == NULL)
            return tsr_fail(err, TSR_E_NOMEM, "out of memory");
        c->clash_seconds += tsr_prior_state_clash_seconds(s->prior);
        tsr_prior_state_free(s->prior);
        s->prior = fresh;
        if (batch != NULL)
            status = refresh_profile(c, k, batch, err);
    }
    if (status == TSR_OK && t->likelihood != NULL)
        status = evaluate_now(c, err);
    return status == TSR_OK ? TSR_OK : wrap_with_chain(c, status, err);
}

/* ---- the mix of moves ----
 *
 * The shares are kept as a cumulative sum, so that one uniform number chooses a
 * move. They stay constant during a run, so the chain's stationary distribution
 * does not change. */

void tsr_mix_set(tsr_mix *mix, const double *weight)
{
    double total = 0.0, sum = 0.0;
    for (int m = 0; m < TSR_N_MOVE; m++)
        total += weight[m];
    for (int m = 0; m < TSR_N_MOVE; m++) {
        sum += weight[m];
        mix->end[m] = sum / total;
    }
}

int tsr_mix_choose(const tsr_mix *mix, double u)
{
    int m = 0;
    while (m < TSR_N_MOVE - 1 && u >= mix->end[m])
        m++;
    return m;
}

/* *rigid, *loose: numbers of bodies that move in rigid groups, and singly. */
static void count_moved_bodies(const tsr_topology *topology,
                               const tsr_proposal *proposal, double *rigid,
                               double *loose)
{
    *rigid = *loose = 0.0;
    for (int k = 0; k < proposal->n_span; k++) {
        const tsr_span *s = &proposal->span[k];
        const tsr_residue *a = &topology->residue[s->first];
        const tsr_residue *z = &topology->residue[s->first + s->count - 1];
        double bodies = z->first_body + z->n_body - a->first_body;
        if (s->group > 0)
            *rigid += bodies;
        else
            *loose += bodies;
    }
}

double tsr_mix_changed(const tsr_topology *topology,
                       const tsr_proposal *proposal)
{
    double rigid, loose, n = topology->n_body;
    count_moved_bodies(topology, proposal, &rigid, &loose);
    double still = n - rigid - loose;
    return ((rigid + loose) * still + loose * rigid + 0.5 * loose * loose) /
           (0.5 * n * n);
}
