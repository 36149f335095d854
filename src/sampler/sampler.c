/* Many chains on several threads: the steps of each thread, the construction of
 * a sampler, and the functions that advance the chains, recompute their
 * profiles, and return times and counts. */
#include "sampler/sampler.h"

#include "core/clock.h"
#include "core/ranks.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* Adds the time since the last call to one part of the worker's times. */
static void add_time(tsr_worker *w, double *part)
{
    double now = tsr_clock_s();
    *part += now - w->part_start;
    w->part_start = now;
}

/* ---- a step of a half ---- */

/* Makes the proposals of a half, from the results of its launch if there is
 * one, and submits them to the engine. */
static tsr_status half_propose(tsr_worker *w, tsr_half *h, tsr_err *err)
{
    const int move = h->launched;
    tsr_status status = TSR_OK;
    h->n_request = 0;
    h->launched = -1;
    for (int i = 0; i < h->n_replica; i++) {
        tsr_body_proposal *request = &h->request[h->n_request];
        int needed = 0;
        if (move >= 0)
            TSR_TRY(tsr_chain_launch_end(h->chain[i], move, h->workspace[move],
                                         i, request, &needed, err));
        else
            needed = tsr_chain_propose(h->chain[i], request);
        h->request_of[i] = needed ? h->n_request++ : -1;
    }
    add_time(w, &w->times.propose);
    if (h->n_request > 0)
        status = tsr_batch_submit(h->batch, h->n_request, h->request, err);
    add_time(w, &w->times.submit);
    return status;
}

static tsr_status audit_progress(void *context, double done, tsr_err *err)
{
    (void)done;
    return tsr_sampler_should_stop(context)
               ? tsr_fail(err, TSR_E_INTERRUPTED, "interrupted")
               : TSR_OK;
}

/* Checks the proposal of the replica that tsr_sampler_refresh chose, at the
 * first step after audit_after steps at which the engine evaluated such a
 * proposal. */
static tsr_status half_audit(tsr_worker *w, tsr_half *h, tsr_err *err)
{
    int i = h->audited;
    if (i < 0 || h->audit_after-- > 0 || h->request_of[i] < 0)
        return TSR_OK;
    const double *profile =
        h->profile + (size_t)h->request_of[i] * (size_t)w->sampler->n_profile;
    const tsr_debye_progress progress = {audit_progress, w->sampler};
    tsr_status status =
        tsr_chain_audit(h->chain[i], h->batch->engine, profile, &progress, err);
    h->audited = -1;
    w->n_audit++;
    add_time(w, &w->times.audit);
    return status == TSR_E_INTERRUPTED ? TSR_OK : status;
}

static tsr_status half_decide(tsr_worker *w, tsr_half *h, tsr_err *err)
{
    tsr_sampler *s = w->sampler;
    tsr_status status = TSR_OK;
    if (h->n_request > 0)
        status = tsr_batch_wait(h->batch, h->profile, err);
    add_time(w, &w->times.wait);
    TSR_TRY(status);
    status = half_audit(w, h, err);
    for (int i = 0; i < h->n_replica; i++) {
        int accepted, index = h->request_of[i], chain = i / s->n_temp;
        double *profile =
            index < 0 ? NULL
                      : h->profile + (size_t)index * (size_t)s->n_profile;
        tsr_status decided =
            tsr_chain_decide(h->chain[i], profile, s->warm, &accepted,
                             status == TSR_OK ? err : NULL);
        if (status == TSR_OK)
            status = decided;
        if (index >= 0 && accepted)
            tsr_batch_accept(h->batch, tsr_chain_system(h->chain[i]));
        else if (index >= 0)
            tsr_batch_reject(h->batch, tsr_chain_system(h->chain[i]));
        if (tsr_ladder_replica(h->ladder[chain], 0) != i % s->n_temp)
            continue;
        h->accepted[chain] += accepted;
        atomic_store_explicit(&s->chi2[h->number[chain]],
                              tsr_chain_chi2(h->chain[i]),
                              memory_order_relaxed);
    }
    atomic_fetch_add_explicit(&w->step, h->n_replica, memory_order_relaxed);
    add_time(w, &w->times.decide);
    return status;
}

/* ---- temperatures ---- */

/* Factor of all 1 / T during annealing: from first_beta_factor
 * (tsr_sampler_plan_warmup) to 1, linear in the logarithm. */
static double anneal_factor(const tsr_sampler *s, long step)
{
    if (!s->warm || step >= s->n_anneal)
        return 1.0;
    return pow(s->first_beta_factor, 1.0 - (double)step / (double)s->n_anneal);
}

static void set_betas(const tsr_sampler *s, tsr_half *h, double beta_factor)
{
    for (int i = 0; i < h->n_chain; i++)
        for (int k = 0; k < s->n_temp; k++) {
            int r = tsr_ladder_replica(h->ladder[i], k);
            tsr_chain_set_beta(
                h->chain[i * s->n_temp + r],
                s->is_flat ? s->flat_beta
                           : beta_factor * tsr_ladder_beta(h->ladder[i], k));
        }
}

static void exchange(void *context, int a, int b)
{
    tsr_chain **replica = context;
    tsr_chain_exchange(replica[a], replica[b]);
}

/* Exchanges replicas and sets their beta. Called between two steps, with no
 * proposal under way. step: number in the run. */
static void half_exchange_replicas(const tsr_sampler *s, tsr_half *h, long step)
{
    double log_lik[TSR_MAX_TEMPERATURES], beta_factor = anneal_factor(s, step);
    long every = s->target->swap_every > 0 ? s->target->swap_every : 1;
    int annealing = s->warm && step < s->n_anneal;
    if (s->target->likelihood == NULL || s->is_flat)
        return;
    for (int i = 0; i < h->n_chain && s->n_temp > 1 && step % every == 0; i++) {
        tsr_chain **replica = h->chain + (size_t)i * (size_t)s->n_temp;
        for (int r = 0; r < s->n_temp; r++)
            log_lik[r] = tsr_chain_log_lik(replica[r]);
        tsr_ladder_swap(h->ladder[i], log_lik, beta_factor,
                        s->warm && !annealing, exchange, replica);
    }
    if (s->n_temp > 1 || s->warm || step == s->n_anneal)
        set_betas(s, h, beta_factor);
}

/* Before each stored draw, the coldest replicas try to exchange with the
 * all-atom chains above them. Not during the populations phase: an all-atom
 * chain is not yet distributed by its posterior then, and an exchange would
 * bias the populations. */
static tsr_status half_exchange_all_atom(tsr_worker *w, tsr_half *h,
                                         tsr_err *err)
{
    const int n_temp = w->sampler->n_temp;
    tsr_status status = TSR_OK;
    if (h->all_atom == NULL || w->sampler->is_flat)
        return TSR_OK;
    for (int i = 0; i < h->n_chain && status == TSR_OK; i++) {
        tsr_chain *coldest =
            h->chain[i * n_temp + tsr_ladder_replica(h->ladder[i], 0)];
        status = tsr_wrap(
            err,
            tsr_all_atom_chain_exchange(h->all_atom[i], coldest, h->batch, err),
            "chain %d", h->number[i]);
    }
    add_time(w, &w->times.all_atom);
    return status;
}

static void half_store(tsr_worker *w, tsr_half *h, int draw)
{
    tsr_sampler *s = w->sampler;
    for (int i = 0; i < h->n_chain; i++) {
        const tsr_record_ladder ladder = {
            h->ladder[i], h->chain + (size_t)i * (size_t)s->n_temp,
            h->all_atom != NULL ? h->all_atom[i] : NULL};
        /* All-atom chains have no state during the populations phase, so that
         * there is no draw to store. */
        if (h->all_atom == NULL || !s->is_flat)
            tsr_record_store(s->record, &ladder, h->number[i], draw, s->warm,
                             (double)h->accepted[i] / (double)s->thin);
        if (s->writer != NULL && !s->warm)
            tsr_trajectory_writer_store(
                s->writer,
                ladder.all_atom != NULL
                    ? tsr_all_atom_chain_as_chain(ladder.all_atom)
                    : ladder.replica[tsr_ladder_replica(h->ladder[i], 0)],
                h->number[i], draw);
        for (int k = 0; k < s->n_temp; k++)
            tsr_chain_draw_done(ladder.replica[k]);
        h->accepted[i] = 0;
    }
    add_time(w, &w->times.store);
}

int tsr_sampler_should_stop(const tsr_sampler *sampler)
{
    const tsr_sampler *s = sampler;
    return (s->stop != NULL && atomic_load(s->stop) != 0) ||
           atomic_load(&s->failed);
}

static tsr_status half_refresh(tsr_worker *w, tsr_half *h, tsr_err *err)
{
    tsr_status status = TSR_OK;
    for (int i = 0; i < h->n_replica && status == TSR_OK &&
                    !tsr_sampler_should_stop(w->sampler);
         i++)
        status = tsr_chain_refresh(h->chain[i], h->batch, err);
    for (int i = 0; h->all_atom != NULL && i < h->n_chain && status == TSR_OK;
         i++)
        status = tsr_all_atom_chain_refresh(h->all_atom[i], err);
    add_time(w, &w->times.refresh);
    return status;
}

/* ---- workers ---- */

/* Begins the next step: submits proposals, or starts the launch that is due. A
 * launch that is complete at once becomes proposals here. */
static tsr_status half_begin(tsr_worker *w, tsr_half *h)
{
    const int move =
        tsr_chain_launch_at(h->chain[0], w->sampler->n_step + h->n_step);
    if (move < 0)
        return half_propose(w, h, &w->err);
    const tsr_move_launch *launch = tsr_move_registry[move]->launch;
    for (int i = 0; i < h->n_replica; i++)
        TSR_TRY(tsr_chain_launch_begin(h->chain[i], move, h->workspace[move], i,
                                       &w->err));
    add_time(w, &w->times.propose);
    TSR_TRY(launch->start(h->workspace[move], h->n_replica, &w->err));
    add_time(w, &w->times.walk);
    h->launched = move;
    return launch->wait == NULL ? half_propose(w, h, &w->err) : TSR_OK;
}

/* Completes the step whose proposals the engine has. */
static tsr_status half_complete(tsr_worker *w, tsr_half *h)
{
    const tsr_sampler *s = w->sampler;
    TSR_TRY(half_decide(w, h, &w->err));
    half_exchange_replicas(s, h, s->n_step + ++h->n_step);
    if (h->n_step % s->thin != 0)
        return TSR_OK;
    TSR_TRY(half_exchange_all_atom(w, h, &w->err));
    half_store(w, h, (int)(h->n_step / s->thin) - 1);
    return TSR_OK;
}

/* Advances a half by one step, or, while a launch of the other half runs, until
 * a launch of its own begins: the device walks with one half while the host
 * makes the steps of the other. */
static tsr_status half_advance(tsr_worker *w, tsr_half *h,
                               const tsr_half *other)
{
    const tsr_sampler *s = w->sampler;
    if (h->launched >= 0) {
        TSR_TRY(tsr_move_registry[h->launched]->launch->wait(
            h->workspace[h->launched], &w->err));
        add_time(w, &w->times.walk);
        h->is_done = tsr_sampler_should_stop(s);
        if (h->is_done)
            return TSR_OK;
        TSR_TRY(half_propose(w, h, &w->err));
    }
    do {
        TSR_TRY(half_complete(w, h));
        h->is_done =
            h->n_step >= s->n_draw * s->thin || tsr_sampler_should_stop(s);
        if (!h->is_done)
            TSR_TRY(half_begin(w, h));
    } while (!h->is_done && h->launched < 0 && other->launched >= 0);
    return TSR_OK;
}

static tsr_status worker_run(tsr_worker *w)
{
    const tsr_sampler *s = w->sampler;
    tsr_half *h = w->half;
    tsr_status status = TSR_OK;
    w->part_start = tsr_clock_s();
    for (int k = 0; k < 2 && s->refresh && status == TSR_OK; k++)
        status = half_refresh(w, &h[k], &w->err);
    if (s->refresh)
        return status;
    for (int k = 0; k < 2; k++) {
        h[k].n_step = h[k].n_replica > 0 ? 0 : s->n_draw * s->thin;
        h[k].is_done = h[k].n_replica == 0;
        h[k].launched = -1;
        set_betas(s, &h[k], anneal_factor(s, s->n_step));
        if (!h[k].is_done)
            TSR_THEN(status, half_begin(w, &h[k]));
    }
    while (status == TSR_OK && !(h[0].is_done && h[1].is_done))
        for (int k = 0; k < 2 && status == TSR_OK; k++)
            if (!h[k].is_done)
                status = half_advance(w, &h[k], &h[1 - k]);
    w->n_step = h[0].n_step < h[1].n_step ? h[0].n_step : h[1].n_step;
    w->n_done = (int)(w->n_step / s->thin);
    return status;
}

static void *worker_thread(void *argument)
{
    tsr_worker *w = argument;
    tsr_sampler *s = w->sampler;
    long seen = 0;
    pthread_mutex_lock(&s->lock);
    for (;;) {
        while (s->n_call == seen && !s->quit)
            pthread_cond_wait(&s->go, &s->lock);
        if (s->quit)
            break;
        seen = s->n_call;
        pthread_mutex_unlock(&s->lock);
        w->status = worker_run(w);
        if (w->status != TSR_OK)
            atomic_store(&s->failed, 1);
        pthread_mutex_lock(&s->lock);
        if (--s->n_busy == 0)
            pthread_cond_signal(&s->done);
    }
    pthread_mutex_unlock(&s->lock);
    return NULL;
}

/* ---- parts of a whole number ----
 *
 * Divides a whole number in proportion to weights, by largest remainders:
 * chains and threads among devices of different speed. Every part gets at least
 * 1 where the number suffices. */

static double positive_or_zero(double weight)
{
    return isfinite(weight) && weight > 0.0 ? weight : 0.0;
}

/* The exact share of a part, a fractional number. For whole-number weights only
 * the division rounds. */
static double quota(int total, int n, double weight, double sum)
{
    return sum > 0.0 ? total * positive_or_zero(weight) / sum
                     : (double)total / n;
}

void tsr_apportion(int total, int n, const double *weight, int *part)
{
    double sum = 0.0;
    int n_left = total;
    for (int i = 0; i < n; i++)
        sum += positive_or_zero(weight[i]);
    for (int i = 0; i < n; i++) {
        part[i] = (int)floor(quota(total, n, weight[i], sum));
        n_left -= part[i];
    }
    for (; n_left > 0; n_left--) {
        int most = 0;
        double best = -HUGE_VAL;
        for (int i = 0; i < n; i++) {
            double lacks = quota(total, n, weight[i], sum) - part[i];
            if (lacks > best)
                most = i, best = lacks;
        }
        part[most]++;
    }
    for (int i = 0; i < n && total >= n; i++) {
        int largest = 0;
        if (part[i] > 0)
            continue;
        for (int j = 1; j < n; j++)
            if (part[j] > part[largest])
                largest = j;
        part[largest]--;
        part[i]++;
    }
}

/* ---- making a sampler ----
 *
 * Divides the chains among the workers and their halves. */

void tsr_sampler_free(tsr_sampler *sampler)
{
    tsr_sampler *s = sampler;
    if (s == NULL)
        return;
    (void)TSR_ANNOUNCE(s, NULL, .what = TSR_CALL_END);
    if (s->lock_made) {
        pthread_mutex_lock(&s->lock);
        s->quit = 1;
        pthread_cond_broadcast(&s->go);
        pthread_mutex_unlock(&s->lock);
    }
    for (int w = 0; s->worker != NULL && w < s->n_worker; w++) {
        if (s->worker[w].started)
            pthread_join(s->worker[w].thread, NULL);
        tsr_batch_free(s->worker[w].half[0].batch);
        tsr_batch_free(s->worker[w].half[1].batch);
        for (int m = 0; m < 2 * TSR_N_MOVE; m++) {
            void *workspace =
                s->worker[w].half[m / TSR_N_MOVE].workspace[m % TSR_N_MOVE];
            if (workspace != NULL)
                tsr_move_registry[m % TSR_N_MOVE]->launch->workspace_free(
                    workspace);
        }
    }
    for (int c = 0; s->chain != NULL && c < s->n_chain * s->n_temp; c++)
        tsr_chain_free(s->chain[c]);
    for (int c = 0; s->ladder != NULL && c < s->n_chain; c++)
        tsr_ladder_free(s->ladder[c]);
    for (int c = 0; s->all_atom != NULL && c < s->n_chain; c++)
        tsr_all_atom_chain_free(s->all_atom[c]);
    if (s->lock_made) {
        pthread_mutex_destroy(&s->lock);
        pthread_cond_destroy(&s->go);
        pthread_cond_destroy(&s->done);
    }
    tsr_pool_clear(&s->pool);
    free(s);
}

static tsr_status half_make(tsr_sampler *s, tsr_half *h, int n_chain,
                            const tsr_engine_group *group, tsr_err *err)
{
    size_t n = (size_t)n_chain * (size_t)s->n_temp + 1;
    h->audited = -1;
    tsr_pool_array(&s->pool, h->chain, n);
    tsr_pool_array(&s->pool, h->ladder, n);
    tsr_pool_array(&s->pool, h->number, n);
    tsr_pool_array(&s->pool, h->accepted, n);
    tsr_pool_array(&s->pool, h->request, n);
    tsr_pool_array(&s->pool, h->request_of, n);
    tsr_pool_array(&s->pool, h->profile, n * (size_t)(s->n_profile + 1));
    if (s->all_atom != NULL)
        tsr_pool_array(&s->pool, h->all_atom, n);
    TSR_TRY(tsr_pool_check(&s->pool, err));
    if (group->engine == NULL || n_chain == 0)
        return TSR_OK;
    for (int m = 0; m < TSR_N_MOVE; m++)
        if (group->launcher[m] != NULL)
            TSR_TRY(tsr_move_registry[m]->launch->workspace_new(
                group->launcher[m], n_chain * s->n_temp, &h->workspace[m],
                err));
    return tsr_batch_new(group->engine, n_chain * s->n_temp, &h->batch, err);
}

/* Divides the chains of an engine, which begin with number `first`, among its
 * n_worker workers: chain i goes to worker i % n_worker, alternately to its
 * first and second half. */
static tsr_status assign_chains(tsr_sampler *s, const tsr_engine_group *group,
                                int first, tsr_worker *worker, int n_worker,
                                tsr_err *err)
{
    if (n_worker < 1)
        return tsr_fail(err, TSR_E_INTERNAL, "an engine without a worker");
    for (int w = 0; w < n_worker; w++) {
        int n = group->n_chain / n_worker + (w < group->n_chain % n_worker);
        worker[w].sampler = s;
        for (int k = 0; k < 2; k++) {
            tsr_status status =
                half_make(s, &worker[w].half[k], (n + 1 - k) / 2, group, err);
            TSR_TRY(status);
        }
    }
    for (int i = 0; i < group->n_chain; i++) {
        tsr_half *h = &worker[i % n_worker].half[i / n_worker % 2];
        h->ladder[h->n_chain] = s->ladder[first + i];
        if (s->all_atom != NULL)
            h->all_atom[h->n_chain] = s->all_atom[first + i];
        h->number[h->n_chain++] = first + i;
        for (int r = 0; r < s->n_temp; r++) {
            tsr_chain *chain = s->chain[(first + i) * s->n_temp + r];
            h->chain[h->n_replica++] = chain;
            tsr_status status = tsr_chain_start(chain, h->batch, err);
            if (status == TSR_OK && tsr_sampler_should_stop(s))
                return tsr_fail(
                    err, TSR_E_INTERRUPTED,
                    "interrupted after %d of %d replicas were initialised",
                    (first + i) * s->n_temp + r + 1, s->n_chain * s->n_temp);
            TSR_TRY(tsr_wrap(err, status, "chain %d", first + i));
        }
    }
    return TSR_OK;
}

/* Every worker belongs to one engine, so that a batch goes to one device. */
static tsr_status assign_engines(tsr_sampler *s, int n_engine,
                                 const tsr_engine_group *group, tsr_err *err)
{
    double *weight;
    int *n_worker;
    tsr_pool_array(&s->pool, weight, n_engine);
    tsr_pool_array(&s->pool, n_worker, n_engine);
    tsr_status status = tsr_pool_check(&s->pool, err);
    for (int e = 0; e < n_engine && status == TSR_OK; e++)
        weight[e] = group[e].n_chain;
    if (status == TSR_OK)
        tsr_apportion(s->n_worker, n_engine, weight, n_worker);
    for (int e = 0, chain = s->first, w = 0; e < n_engine && status == TSR_OK;
         e++) {
        status =
            assign_chains(s, &group[e], chain, &s->worker[w], n_worker[e], err);
        chain += group[e].n_chain;
        w += n_worker[e];
    }
    return status;
}

/* Every engine must have chains, and as many systems as these chains need. */
static tsr_status check_engines(const tsr_target *target, int n_chain,
                                tsr_err *err)
{
    int n = 0;
    for (int e = 0; e < target->n_engine; e++) {
        const tsr_engine_group *group = &target->engines[e];
        int n_system = tsr_target_n_temp(target) * tsr_target_n_state(target);
        if (group->n_chain < 1 ||
            group->n_chain * n_system > group->engine->n_system)
            return tsr_fail(err, TSR_E_INTERNAL,
                            "sampler: %d chains of %d systems each for the %d "
                            "of engine %d",
                            group->n_chain, n_system, group->engine->n_system,
                            e);
        n += group->n_chain;
    }
    if (target->n_engine > 0 && n != n_chain)
        return tsr_fail(err, TSR_E_INTERNAL,
                        "sampler: %d chains, the engines have %d", n_chain, n);
    return TSR_OK;
}

static tsr_status start_workers(tsr_sampler *s, tsr_err *err)
{
    pthread_mutex_init(&s->lock, NULL);
    pthread_cond_init(&s->go, NULL);
    tsr_clock_cond_init(&s->done);
    s->lock_made = 1;
    for (int w = 0; w < s->n_worker; w++) {
        if (pthread_create(&s->worker[w].thread, NULL, worker_thread,
                           &s->worker[w]) != 0)
            return tsr_fail(err, TSR_E_INTERNAL, "cannot start thread %d of %d",
                            w + 1, s->n_worker);
        s->worker[w].started = 1;
    }
    return TSR_OK;
}

tsr_status tsr_sampler_new(const tsr_target *target, int n_chain, int n_thread,
                           const atomic_int *stop, tsr_sampler **out,
                           tsr_err *err)
{
    const int first = tsr_ranks_first(n_chain, tsr_ranks_rank()),
              end = tsr_ranks_first(n_chain, tsr_ranks_rank() + 1);
    const tsr_engine_group none = {.n_chain = end - first};
    int n_engine = target->n_engine > 0 ? target->n_engine : 1;
    *out = NULL;
    tsr_status status = check_engines(target, end - first, err);
    TSR_TRY(status);
    tsr_sampler *s = calloc(1, sizeof *s);
    if (s == NULL)
        return tsr_fail(err, TSR_E_NOMEM, "out of memory");
    s->target = target;
    s->stop = stop;
    s->n_chain = n_chain;
    s->first = first;
    s->end = end;
    s->n_temp = tsr_target_n_temp(target);
    s->first_beta_factor = 1.0;
    s->n_worker = n_thread < end - first ? n_thread : end - first;
    if (s->n_worker < n_engine)
        s->n_worker = n_engine;
    s->n_profile = tsr_likelihood_n_profile(target->likelihood);
    int n_replica = n_chain * s->n_temp;
    tsr_pool_array(&s->pool, s->chain, n_replica);
    tsr_pool_array(&s->pool, s->ladder, n_chain);
    tsr_pool_array(&s->pool, s->chi2, n_chain);
    tsr_pool_array(&s->pool, s->worker, s->n_worker);
    if (target->all_atom != NULL)
        tsr_pool_array(&s->pool, s->all_atom, n_chain);
    status = tsr_pool_check(&s->pool, err);
    for (int c = 0; c < n_chain && status == TSR_OK; c++) {
        s->ladder[c] =
            tsr_ladder_new(s->n_temp, target->t_max, target->seed, c);
        if (s->ladder[c] == NULL)
            status = tsr_fail(err, TSR_E_NOMEM, "out of memory");
    }
    for (int c = 0; c < n_replica && status == TSR_OK; c++)
        status = tsr_chain_new(target, c, &s->chain[c], err);
    for (int c = 0; s->all_atom != NULL && c < n_chain && status == TSR_OK; c++)
        status =
            tsr_all_atom_chain_new(target->all_atom, c, &s->all_atom[c], err);
    TSR_THEN(status, assign_engines(
                         s, n_engine,
                         target->n_engine > 0 ? target->engines : &none, err));
    TSR_THEN(status, start_workers(s, err));
    TSR_HAND_OVER(status, s, out, tsr_sampler_free);
}

/* ---- calls ----
 *
 * Worker threads make the steps. These functions start a call, wait for the
 * workers, and return the first error. */

/* Other ranks are taken to be as far as this one. */
static void read_progress(const tsr_sampler *s, tsr_progress *p)
{
    const int n_own = s->end - s->first;
    double sum = 0.0;
    memset(p, 0, sizeof *p);
    for (int w = 0; w < s->n_worker; w++)
        p->step += atomic_load(&s->worker[w].step);
    p->step = p->step * s->n_chain / n_own;
    for (int c = s->first; c < s->end; c++)
        sum += atomic_load(&s->chi2[c]);
    p->chi2 = sum / n_own;
}

/* Lets the workers make the present call and waits for them. Returns the error
 * of the first worker that failed. */
static tsr_status run_workers(tsr_sampler *s,
                              void (*tick)(void *context,
                                           const tsr_progress *progress),
                              void *context, tsr_err *err)
{
    tsr_progress progress;
    double before = tsr_clock_s();
    pthread_mutex_lock(&s->lock);
    s->n_busy = s->n_worker;
    s->n_call++;
    pthread_cond_broadcast(&s->go);
    while (s->n_busy > 0) {
        tsr_clock_cond_wait(&s->done, &s->lock, 0.25);
        if (tick != NULL) {
            pthread_mutex_unlock(&s->lock);
            read_progress(s, &progress);
            tick(context, &progress);
            pthread_mutex_lock(&s->lock);
        }
    }
    pthread_mutex_unlock(&s->lock);
    s->seconds += tsr_clock_s() - before;
    for (int w = 0; w < s->n_worker; w++)
        if (s->worker[w].status != TSR_OK) {
            if (err != NULL)
                *err = s->worker[w].err;
            return s->worker[w].status;
        }
    return TSR_OK;
}

tsr_status tsr_sampler_advance(tsr_sampler *sampler, tsr_record *record,
                               int n_draw, long thin, int warm,
                               void (*tick)(void *context,
                                            const tsr_progress *progress),
                               void *context, int *n_done, tsr_err *err)
{
    tsr_sampler *s = sampler;
    *n_done = 0;
    TSR_TRY(TSR_ANNOUNCE(
        s, err, .what = TSR_CALL_ADVANCE, .n_draw = n_draw, .flag = warm,
        .n = thin,
        .first = s->writer != NULL ? tsr_trajectory_writer_first(s->writer) : 0,
        .n_anneal = s->n_anneal, .x = s->first_beta_factor));
    for (int w = 0; w < s->n_worker; w++)
        atomic_store(&s->worker[w].step, 0);
    s->record = record;
    s->n_draw = n_draw, s->thin = thin, s->warm = warm;
    tsr_status status = run_workers(s, tick, context, err);
    s->n_step += s->worker[0].n_step;
    *n_done = n_draw;
    for (int w = 0; w < s->n_worker; w++)
        if (s->worker[w].n_done < *n_done)
            *n_done = s->worker[w].n_done;
    if (!s->is_flat) {
        const tsr_status sent =
            tsr_sampler_gather_draws(s, n_done, status == TSR_OK ? err : NULL);
        TSR_THEN(status, sent);
    }
    return tsr_sampler_agree(s, status, err);
}

/* ---- refresh ---- */

/* A pseudo-random number from seed and step, apart from all chains' streams:
 * splitmix64 (Steele, Lea & Flood 2014). */
static uint64_t hash(uint64_t seed, long step)
{
    uint64_t z = seed + ((uint64_t)step + 1) * UINT64_C(0x9e3779b97f4a7c15);
    z = (z ^ (z >> 30)) * UINT64_C(0xbf58476d1ce4e5b9);
    z = (z ^ (z >> 27)) * UINT64_C(0x94d049bb133111eb);
    return z ^ (z >> 31);
}

double tsr_sampler_uniform(const tsr_sampler *sampler, uint64_t a, uint64_t b)
{
    const uint64_t seed = hash(sampler->target->seed ^ (b << 32), (long)a);
    return (double)(hash(seed, 0) >> 11) / 9007199254740992.0;
}

/* Whether one more comparison keeps the comparisons below their share of the
 * time, and no chosen comparison is still pending. */
static int may_audit(const tsr_sampler *s)
{
    const double share = 0.004, first_s = 0.02;
    double spent = 0.0;
    int n = 0;
    for (int w = 0; w < s->n_worker; w++) {
        for (int k = 0; k < 2; k++)
            if (s->worker[w].half[k].audited >= 0)
                return 0;
        spent += s->worker[w].times.audit;
        n += s->worker[w].n_audit;
    }
    if (n > 0)
        return spent + spent / n <= share * s->seconds;
    return tsr_likelihood_direct_seconds(s->target->likelihood,
                                         s->target->topology->n_body) <=
           fmax(share * s->seconds, first_s);
}

static void choose_audit(tsr_sampler *s)
{
    enum { STEPS = 200 };
    uint64_t random = hash(s->target->seed, s->n_step);
    uint64_t n_replica = (uint64_t)s->n_chain * (uint64_t)s->n_temp;
    int chosen = (int)(random % n_replica);
    for (int w = 0; w < s->n_worker; w++)
        for (int k = 0; k < 2; k++) {
            tsr_half *h = &s->worker[w].half[k];
            for (int i = 0; i < h->n_replica; i++)
                if (h->chain[i] == s->chain[chosen]) {
                    h->audited = i;
                    h->audit_after = (int)((random >> 32) % STEPS);
                }
        }
}

tsr_status tsr_sampler_refresh(tsr_sampler *sampler, tsr_err *err)
{
    tsr_sampler *s = sampler;
    TSR_TRY(TSR_ANNOUNCE(s, err, .what = TSR_CALL_REFRESH));
    s->refresh = 1;
    tsr_status status = run_workers(s, NULL, NULL, err);
    s->refresh = 0;
    if (status == TSR_OK && tsr_sampler_should_stop(s))
        status = tsr_fail(err, TSR_E_INTERRUPTED,
                          "interrupted while the chains were recomputed");
    status = tsr_sampler_agree(s, status, err);
    if (status == TSR_OK &&
        tsr_likelihood_n_profile(s->target->likelihood) > 0 && may_audit(s))
        choose_audit(s);
    return status;
}

void tsr_sampler_set_trajectory_writer(tsr_sampler *sampler,
                                       tsr_trajectory_writer *writer)
{
    sampler->writer = writer;
}

void tsr_sampler_archive(tsr_sampler *sampler, tsr_archive *archive)
{
    tsr_sampler *s = sampler;
    tsr_archive_long(archive, &s->n_step, 1);
    tsr_archive_long(archive, &s->n_anneal, 1);
    tsr_archive_real(archive, &s->first_beta_factor, 1);
    tsr_archive_int(archive, &s->population.n_level, 1);
    tsr_archive_long(archive, &s->population.n_step, 1);
    tsr_archive_real(archive, &s->population.barrier, 1);
    tsr_archive_real(archive, s->target->group_log_z,
                     (size_t)s->target->n_group);
    for (int c = 0; c < s->n_chain; c++)
        tsr_ladder_archive(s->ladder[c], archive);
    for (int c = 0; c < s->n_chain * s->n_temp; c++)
        tsr_chain_archive(s->chain[c], archive);
    for (int c = 0; s->all_atom != NULL && c < s->n_chain; c++)
        tsr_all_atom_chain_archive(s->all_atom[c], archive);
}

/* ---- averages over chains ---- */

static tsr_chain *replica_at(const tsr_sampler *s, int chain, int k)
{
    return s
        ->chain[chain * s->n_temp + tsr_ladder_replica(s->ladder[chain], k)];
}

tsr_status tsr_sampler_average_warmup(tsr_sampler *sampler, tsr_err *err)
{
    tsr_sampler *s = sampler;
    TSR_TRY(TSR_ANNOUNCE(s, err, .what = TSR_CALL_AVERAGE));
    tsr_status status = tsr_sampler_share_learnt(s, err);
    tsr_chain **same = calloc((size_t)s->n_chain, sizeof(*same));
    TSR_THEN(status, tsr_allocated(same, err));
    if (status == TSR_OK)
        tsr_ladder_average(s->ladder, s->n_chain);
    for (int k = 0; k < s->n_temp && status == TSR_OK; k++) {
        for (int c = 0; c < s->n_chain; c++)
            same[c] = replica_at(s, c, k);
        status = tsr_chain_average_steps(same, s->n_chain, err);
    }
    free(same);
    return tsr_sampler_agree(s, status, err);
}

/* Lowest temperature at which annealing may start if a term has a Hessian, as a
 * map has. The chi2 of a map is a share of its variance, below 1, and does not
 * measure how steep the likelihood is. Without annealing, chains freeze in the
 * hinge torsions that they start with, some 50 nat below other chains. At much
 * higher temperatures, domains leave the map. */
static const double map_start_temperature = 5.0;

int tsr_sampler_plan_warmup(tsr_sampler *sampler, long n_step, double anneal)
{
    tsr_sampler *s = sampler;
    double worst = 1.0;
    (void)tsr_sampler_gather(s, NULL); /* the next call finds a lost rank */
    if (s->target->likelihood != NULL &&
        tsr_likelihood_has_hessian(s->target->likelihood))
        worst = map_start_temperature;
    for (int c = 0; c < s->n_chain && s->target->likelihood != NULL; c++)
        worst = fmax(worst, tsr_sampler_chi2(s, c));
    s->first_beta_factor = 1.0 / worst;
    s->n_anneal = (long)(anneal * (double)n_step);
    if (s->target->likelihood == NULL)
        return 0;
    double t_max = s->n_temp > 1 ? s->target->t_max : 1.0;
    double least = 2.0 * t_max * tsr_likelihood_min_beta(s->target->likelihood);
    if (s->n_anneal < 1 || s->first_beta_factor >= least)
        return 0;
    s->first_beta_factor = fmin(least, 1.0);
    return 1;
}

int tsr_sampler_n_thread(const tsr_sampler *sampler)
{
    return sampler->n_worker;
}

void tsr_sampler_lead(tsr_sampler *sampler)
{
    sampler->is_leader = tsr_ranks_size() > 1;
}

double tsr_sampler_chi2(const tsr_sampler *sampler, int chain)
{
    return chain >= sampler->first && chain < sampler->end
               ? tsr_chain_chi2(replica_at(sampler, chain, 0))
               : atomic_load(&sampler->chi2[chain]);
}

tsr_chain *tsr_sampler_chain(tsr_sampler *sampler, int chain)
{
    return replica_at(sampler, chain, 0);
}

tsr_all_atom_chain *tsr_sampler_all_atom_chain(tsr_sampler *sampler, int chain)
{
    return sampler->all_atom != NULL ? sampler->all_atom[chain] : NULL;
}

const tsr_ladder *tsr_sampler_ladder(const tsr_sampler *sampler, int chain)
{
    return sampler->ladder[chain];
}

double tsr_sampler_all_atom_acceptance(const tsr_sampler *sampler)
{
    double sum = 0.0;
    for (int c = 0; sampler->all_atom != NULL && c < sampler->n_chain; c++)
        sum += tsr_all_atom_chain_acceptance(sampler->all_atom[c]) /
               sampler->n_chain;
    return sampler->all_atom != NULL ? sum : (double)NAN;
}

tsr_sampler_times tsr_sampler_times_get(const tsr_sampler *sampler)
{
    tsr_sampler_times sum = {0};
    for (int w = 0; w < sampler->n_worker; w++) {
        const tsr_sampler_times *t = &sampler->worker[w].times;
        sum.propose += t->propose, sum.submit += t->submit;
        sum.wait += t->wait, sum.walk += t->walk;
        sum.decide += t->decide, sum.store += t->store;
        sum.refresh += t->refresh, sum.audit += t->audit;
        sum.all_atom += t->all_atom;
    }
    for (int c = 0; c < sampler->n_chain * sampler->n_temp; c++)
        sum.clash += tsr_chain_clash_seconds(sampler->chain[c]);
    sum.clash = fmin(sum.clash, sum.propose);
    return sum;
}

void tsr_sampler_counts_reset(tsr_sampler *sampler)
{
    (void)TSR_ANNOUNCE(sampler, NULL, .what = TSR_CALL_RESET);
    for (int c = 0; c < sampler->n_chain * sampler->n_temp; c++)
        tsr_chain_counts_reset(sampler->chain[c]);
    for (int c = 0; c < sampler->n_chain; c++) {
        tsr_ladder_reset(sampler->ladder[c]);
        if (sampler->all_atom != NULL)
            tsr_all_atom_chain_reset(sampler->all_atom[c]);
    }
}
