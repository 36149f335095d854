/* Making a sampler: chains are dealt out to workers and halves. */
#include "sampler/sampler_state.h"

#include "sampler/share.h"

#include <stdlib.h>
#include <time.h>

static void half_clear(tsr_half *h)
{
    tsr_batch_free(h->batch);
    free(h->chain);
    free(h->ladder);
    free(h->fine);
    free(h->number);
    free(h->accepted);
    free(h->ask);
    free(h->asked);
    free(h->profile);
}

void tsr_sampler_free(tsr_sampler *sampler)
{
    tsr_sampler *s = sampler;
    if (s == NULL)
        return;
    if (s->lock_made) {
        pthread_mutex_lock(&s->lock);
        s->quit = 1;
        pthread_cond_broadcast(&s->go);
        pthread_mutex_unlock(&s->lock);
    }
    for (int w = 0; s->worker != NULL && w < s->n_worker; w++) {
        if (s->worker[w].started)
            pthread_join(s->worker[w].thread, NULL);
        half_clear(&s->worker[w].half[0]);
        half_clear(&s->worker[w].half[1]);
        tsr_surrogate_walker_free(s->worker[w].walker);
        tsr_surrogate_walker_free(s->worker[w].redrawer);
    }
    for (int c = 0; s->chain != NULL && c < s->n_chain * s->n_temp; c++)
        tsr_chain_free(s->chain[c]);
    for (int c = 0; s->ladder != NULL && c < s->n_chain; c++)
        tsr_ladder_free(s->ladder[c]);
    for (int c = 0; s->fine != NULL && c < s->n_chain; c++)
        tsr_fine_free(s->fine[c]);
    free(s->ladder);
    free(s->fine);
    if (s->lock_made) {
        pthread_mutex_destroy(&s->lock);
        pthread_cond_destroy(&s->go);
        pthread_cond_destroy(&s->done);
    }
    free(s->chain);
    free(s->chi2);
    free(s->worker);
    free(s);
}

static tsr_status half_make(const tsr_sampler *s, tsr_half *h, int n_chain,
                            const tsr_engine_share *share, tsr_err *err)
{
    size_t n = (size_t)n_chain * (size_t)s->n_temp + 1;
    h->audited = -1;
    h->chain = calloc(n, sizeof(*h->chain));
    h->ladder = calloc(n, sizeof(*h->ladder));
    h->number = calloc(n, sizeof *h->number);
    h->accepted = calloc(n, sizeof *h->accepted);
    h->ask = calloc(n, sizeof *h->ask);
    h->asked = calloc(n, sizeof *h->asked);
    h->profile = calloc(n * (size_t)(s->n_profile + 1), sizeof *h->profile);
    if (h->chain == NULL || h->ladder == NULL || h->number == NULL ||
        h->accepted == NULL || h->ask == NULL || h->asked == NULL ||
        h->profile == NULL)
        return tsr_fail(err, TSR_E_NOMEM, "out of memory");
    if (s->fine != NULL && (h->fine = calloc(n, sizeof(*h->fine))) == NULL)
        return tsr_no_memory(err);
    if (share->engine == NULL || n_chain == 0)
        return TSR_OK;
    return tsr_batch_new(share->engine, n_chain * s->n_temp, &h->batch, err);
}

/* Deals an engine's chains, from `first` on, out over its n_worker workers:
 * the i-th to worker i % n_worker, whose halves take turns. */
static tsr_status deal_share(tsr_sampler *s, const tsr_engine_share *share,
                             int first, tsr_worker *own, int n_worker,
                             tsr_err *err)
{
    if (n_worker < 1)
        return tsr_fail(err, TSR_E_INTERNAL, "an engine without a worker");
    for (int w = 0; w < n_worker; w++) {
        int n = share->n_chain / n_worker + (w < share->n_chain % n_worker);
        own[w].sampler = s;
        for (int k = 0; k < 2; k++) {
            tsr_status status =
                half_make(s, &own[w].half[k], (n + 1 - k) / 2, share, err);
            if (status != TSR_OK)
                return status;
        }
        if (share->walks != NULL && s->target->surrogate != NULL && n > 0)
            TSR_TRY(share->walks->walker_new(share->walks, n * s->n_temp,
                                             &own[w].walker, err));
        if (share->redraws != NULL && s->target->surrogate != NULL && n > 0)
            TSR_TRY(share->redraws->walker_new(share->redraws, n * s->n_temp,
                                               &own[w].redrawer, err));
    }
    for (int i = 0; i < share->n_chain; i++) {
        tsr_half *h = &own[i % n_worker].half[i / n_worker % 2];
        h->ladder[h->n_chain] = s->ladder[first + i];
        if (s->fine != NULL)
            h->fine[h->n_chain] = s->fine[first + i];
        h->number[h->n_chain++] = first + i;
        for (int r = 0; r < s->n_temp; r++) {
            tsr_chain *chain = s->chain[(first + i) * s->n_temp + r];
            h->chain[h->n_replica++] = chain;
            tsr_status status = tsr_chain_start(chain, h->batch, err);
            if (status == TSR_OK && tsr_sampler_should_stop(s))
                return tsr_fail(err, TSR_E_INTERRUPTED,
                                "interrupted with %d of %d replicas begun",
                                (first + i) * s->n_temp + r + 1,
                                s->n_chain * s->n_temp);
            if (status != TSR_OK)
                return tsr_wrap(err, status, "chain %d", first + i);
        }
    }
    return TSR_OK;
}

/* Workers belong to engines, so that a batch goes to one device. */
static tsr_status deal(tsr_sampler *s, int n_share,
                       const tsr_engine_share *share, tsr_err *err)
{
    double *weight = calloc((size_t)n_share, sizeof *weight);
    int *n_worker = calloc((size_t)n_share, sizeof *n_worker);
    tsr_status status = weight == NULL || n_worker == NULL
                            ? tsr_fail(err, TSR_E_NOMEM, "out of memory")
                            : TSR_OK;
    if (status == TSR_OK) {
        for (int e = 0; e < n_share; e++)
            weight[e] = share[e].n_chain;
        tsr_share_divide(s->n_worker, n_share, weight, n_worker);
    }
    for (int e = 0, chain = 0, w = 0; e < n_share && status == TSR_OK; e++) {
        status =
            deal_share(s, &share[e], chain, &s->worker[w], n_worker[e], err);
        chain += share[e].n_chain;
        w += n_worker[e];
    }
    free(weight);
    free(n_worker);
    return status;
}

/* Every engine has chains, and each chain is a system of its engine. */
static tsr_status check_shares(const tsr_target *target, int n_chain,
                               tsr_err *err)
{
    int n = 0;
    for (int e = 0; e < target->n_share; e++) {
        const tsr_engine_share *share = &target->share[e];
        int n_system = tsr_target_n_temp(target) * tsr_target_n_state(target);
        if (share->n_chain < 1 ||
            share->n_chain * n_system > share->engine->n_system)
            return tsr_fail(err, TSR_E_INTERNAL,
                            "sampler: %d chains of %d systems each for the %d "
                            "of engine %d",
                            share->n_chain, n_system, share->engine->n_system,
                            e);
        n += share->n_chain;
    }
    if (target->n_share > 0 && n != n_chain)
        return tsr_fail(err, TSR_E_INTERNAL,
                        "sampler: %d chains, the engines have %d", n_chain, n);
    return TSR_OK;
}

static tsr_status start_workers(tsr_sampler *s, tsr_err *err)
{
    pthread_mutex_init(&s->lock, NULL);
    pthread_condattr_t attr;
    pthread_condattr_init(&attr);
    pthread_condattr_setclock(&attr, CLOCK_MONOTONIC);
    pthread_cond_init(&s->go, NULL);
    pthread_cond_init(&s->done, &attr);
    pthread_condattr_destroy(&attr);
    s->lock_made = 1;
    for (int w = 0; w < s->n_worker; w++) {
        if (pthread_create(&s->worker[w].thread, NULL, tsr_sampler_worker,
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
    const tsr_engine_share none = {.n_chain = n_chain};
    int n_share = target->n_share > 0 ? target->n_share : 1;
    *out = NULL;
    tsr_status status = check_shares(target, n_chain, err);
    if (status != TSR_OK)
        return status;
    tsr_sampler *s = calloc(1, sizeof *s);
    if (s == NULL)
        return tsr_fail(err, TSR_E_NOMEM, "out of memory");
    s->target = target;
    s->stop = stop;
    s->n_chain = n_chain;
    s->n_temp = tsr_target_n_temp(target);
    s->first_heat = 1.0;
    s->n_worker = n_thread < n_chain ? n_thread : n_chain;
    if (s->n_worker < n_share)
        s->n_worker = n_share;
    s->n_profile = tsr_likelihood_n_profile(target->likelihood);
    int n_replica = n_chain * s->n_temp;
    s->chain = calloc((size_t)n_replica, sizeof(*s->chain));
    s->ladder = calloc((size_t)n_chain, sizeof(*s->ladder));
    s->chi2 = calloc((size_t)n_chain, sizeof *s->chi2);
    s->worker = calloc((size_t)s->n_worker, sizeof *s->worker);
    if (s->chain == NULL || s->ladder == NULL || s->chi2 == NULL ||
        s->worker == NULL)
        status = tsr_fail(err, TSR_E_NOMEM, "out of memory");
    for (int c = 0; c < n_chain && status == TSR_OK; c++) {
        s->ladder[c] =
            tsr_ladder_new(s->n_temp, target->t_max, target->seed, c);
        if (s->ladder[c] == NULL)
            status = tsr_fail(err, TSR_E_NOMEM, "out of memory");
    }
    for (int c = 0; c < n_replica && status == TSR_OK; c++)
        status = tsr_chain_new(target, c, &s->chain[c], err);
    if (status == TSR_OK && target->fine != NULL) {
        s->fine = calloc((size_t)n_chain, sizeof(*s->fine));
        status = s->fine == NULL ? tsr_no_memory(err) : TSR_OK;
    }
    for (int c = 0; s->fine != NULL && c < n_chain && status == TSR_OK; c++)
        status = tsr_fine_new(target->fine, c, &s->fine[c], err);
    if (status == TSR_OK)
        status =
            deal(s, n_share, target->n_share > 0 ? target->share : &none, err);
    if (status == TSR_OK)
        status = start_workers(s, err);
    if (status != TSR_OK) {
        tsr_sampler_free(s);
        return status;
    }
    *out = s;
    return TSR_OK;
}
