/* What a worker thread does: steps of its halves in turn. */
#include "sampler/sampler_state.h"

#include "core/clock.h"

#include <math.h>

/* The time since the last mark goes to one part. */
static void mark(tsr_worker *w, double *part)
{
    double now = tsr_clock_s();
    *part += now - w->mark;
    w->mark = now;
}

/* ---- a half's step ---- */

/* All replicas walk at the same steps of the run, so that a launch has them
 * all; whose turn it is depends on the step alone. */
static int move_at(const tsr_worker *w, long step)
{
    return w->walker != NULL || w->redrawer != NULL
               ? tsr_chain_surrogate_at(w->half[0].chain[0], step)
               : -1;
}

static int is_walk(const tsr_worker *w, long step)
{
    return move_at(w, step) >= 0;
}

static tsr_surrogate_walker *walker_at(const tsr_worker *w, long step)
{
    return move_at(w, step) == TSR_MOVE_redraw ? w->redrawer : w->walker;
}

/* Both halves at once: there is one launch for all that wait. */
static tsr_status worker_walk(tsr_worker *w, long step, tsr_err *err)
{
    tsr_surrogate_walker *walker = walker_at(w, step);
    const tsr_surrogate_spec *spec = walker->engine->spec;
    const tsr_surrogate_layout *layout = &walker->layout;
    tsr_surrogate_call *c = &walker->call;
    c->n_job = 0;
    for (int k = 0; k < 2; k++)
        for (int i = 0; i < w->half[k].n_replica; i++, c->n_job++)
            TSR_TRY(tsr_chain_set_out(
                w->half[k].chain[i], layout,
                c->job + (ptrdiff_t)c->n_job * layout->size,
                c->point + (ptrdiff_t)c->n_job * spec->n_point,
                c->key[c->n_job], err));
    mark(w, &w->times.propose);
    TSR_TRY(walker->engine->walk(walker, err));
    mark(w, &w->times.walk);
    return TSR_OK;
}

/* Where the replicas' walks have ended is what they propose. */
static tsr_status half_come_back(tsr_worker *w, tsr_half *h, long step,
                                 tsr_err *err)
{
    const tsr_surrogate_walker *walker = walker_at(w, step);
    const tsr_surrogate_spec *spec = walker->engine->spec;
    const tsr_surrogate_call *c = &walker->call;
    const int first = h == &w->half[0] ? 0 : w->half[0].n_replica;
    for (int i = 0; i < h->n_replica; i++) {
        const ptrdiff_t job = first + i;
        const int32_t(*count)[2] =
            (const int32_t(*)[2])(c->count + job * tsr_surrogate_n_count(spec));
        int needed = 0;
        TSR_TRY(tsr_chain_come_back(h->chain[i], move_at(w, step),
                                    c->result +
                                        job * tsr_surrogate_result_size(spec),
                                    count, &h->ask[h->n_ask], &needed, err));
        h->asked[i] = needed ? h->n_ask++ : -1;
    }
    return TSR_OK;
}

/* step: of the whole run. */
static tsr_status half_propose(tsr_worker *w, tsr_half *h, long step,
                               tsr_err *err)
{
    tsr_status status = TSR_OK;
    h->n_ask = 0;
    if (is_walk(w, step))
        TSR_TRY(half_come_back(w, h, step, err));
    else
        for (int i = 0; i < h->n_replica; i++) {
            int needed = tsr_chain_propose(h->chain[i], &h->ask[h->n_ask]);
            h->asked[i] = needed ? h->n_ask++ : -1;
        }
    mark(w, &w->times.propose);
    if (h->n_ask > 0)
        status = tsr_batch_submit(h->batch, h->n_ask, h->ask, err);
    mark(w, &w->times.submit);
    return status;
}

static tsr_status audit_progress(void *context, double done, tsr_err *err)
{
    (void)done;
    return tsr_sampler_should_stop(context)
               ? tsr_fail(err, TSR_E_INTERRUPTED, "interrupted")
               : TSR_OK;
}

/* The proposal that tsr_sampler_refresh chose, once its time has come: when the
 * engine was asked for one of that replica. */
static tsr_status half_audit(tsr_worker *w, tsr_half *h, tsr_err *err)
{
    int i = h->audited;
    if (i < 0 || h->audit_after-- > 0 || h->asked[i] < 0)
        return TSR_OK;
    const double *profile =
        h->profile + (size_t)h->asked[i] * (size_t)w->sampler->n_profile;
    const tsr_debye_progress progress = {audit_progress, w->sampler};
    tsr_status status =
        tsr_chain_audit(h->chain[i], h->batch->engine, profile, &progress, err);
    h->audited = -1;
    w->n_audit++;
    mark(w, &w->times.audit);
    return status == TSR_E_INTERRUPTED ? TSR_OK : status;
}

static tsr_status half_decide(tsr_worker *w, tsr_half *h, tsr_err *err)
{
    tsr_sampler *s = w->sampler;
    tsr_status status = TSR_OK;
    if (h->n_ask > 0)
        status = tsr_batch_wait(h->batch, h->profile, err);
    mark(w, &w->times.wait);
    if (status != TSR_OK)
        return status;
    status = half_audit(w, h, err);
    for (int i = 0; i < h->n_replica; i++) {
        int accepted, place = h->asked[i], own = i / s->n_temp;
        double *profile =
            place < 0 ? NULL
                      : h->profile + (size_t)place * (size_t)s->n_profile;
        tsr_status one =
            tsr_chain_decide(h->chain[i], profile, s->warm, &accepted,
                             status == TSR_OK ? err : NULL);
        if (status == TSR_OK)
            status = one;
        if (place >= 0 && accepted)
            tsr_batch_accept(h->batch, tsr_chain_system(h->chain[i]));
        else if (place >= 0)
            tsr_batch_reject(h->batch, tsr_chain_system(h->chain[i]));
        atomic_fetch_add_explicit(&w->accepted, accepted, memory_order_relaxed);
        if (tsr_ladder_replica(h->ladder[own], 0) != i % s->n_temp)
            continue;
        h->accepted[own] += accepted;
        atomic_store_explicit(&s->chi2[h->number[own]],
                              tsr_chain_chi2(h->chain[i]),
                              memory_order_relaxed);
    }
    atomic_fetch_add_explicit(&w->step, h->n_replica, memory_order_relaxed);
    mark(w, &w->times.decide);
    return status;
}

/* ---- temperatures ---- */

/* From 1 / (the start's chi2 per point) to 1, evenly in the logarithm. */
static double heat_at(const tsr_sampler *s, long step)
{
    if (!s->warm || step >= s->n_anneal)
        return 1.0;
    return pow(s->first_heat, 1.0 - (double)step / (double)s->n_anneal);
}

static void set_heat(const tsr_sampler *s, tsr_half *h, double heat)
{
    for (int i = 0; i < h->n_chain; i++)
        for (int k = 0; k < s->n_temp; k++) {
            int r = tsr_ladder_replica(h->ladder[i], k);
            tsr_chain_heat(h->chain[i * s->n_temp + r],
                           s->is_flat
                               ? s->flat_beta
                               : heat * tsr_ladder_beta(h->ladder[i], k));
        }
}

static void exchange(void *context, int a, int b)
{
    tsr_chain **replica = context;
    tsr_chain_exchange(replica[a], replica[b]);
}

/* Between two steps: nothing is in flight. step: of the whole run. */
static void half_temper(const tsr_sampler *s, tsr_half *h, long step)
{
    double log_lik[TSR_MAX_TEMPERATURES], heat = heat_at(s, step);
    long every = s->target->swap_every > 0 ? s->target->swap_every : 1;
    int annealing = s->warm && step < s->n_anneal;
    if (s->target->likelihood == NULL || s->is_flat)
        return;
    for (int i = 0; i < h->n_chain && s->n_temp > 1 && step % every == 0; i++) {
        tsr_chain **replica = h->chain + (size_t)i * (size_t)s->n_temp;
        for (int r = 0; r < s->n_temp; r++)
            log_lik[r] = tsr_chain_log_lik(replica[r]);
        tsr_ladder_swap(h->ladder[i], log_lik, heat, s->warm && !annealing,
                        exchange, replica);
    }
    if (s->n_temp > 1 || s->warm || step == s->n_anneal)
        set_heat(s, h, heat);
}

/* Before a draw: the coldest replicas are offered to the places above. On their
 * way from the prior they are not: what a place holds then is of no law, and an
 * exchange with it would change that of the populations. */
static tsr_status half_offer(tsr_worker *w, tsr_half *h, tsr_err *err)
{
    const int n_temp = w->sampler->n_temp;
    tsr_status status = TSR_OK;
    if (h->fine == NULL || w->sampler->is_flat)
        return TSR_OK;
    for (int i = 0; i < h->n_chain && status == TSR_OK; i++) {
        tsr_chain *coldest =
            h->chain[i * n_temp + tsr_ladder_replica(h->ladder[i], 0)];
        status = tsr_fine_offer(h->fine[i], coldest, h->batch, err);
        if (status != TSR_OK)
            status = tsr_wrap(err, status, "chain %d", h->number[i]);
    }
    mark(w, &w->times.fine);
    return status;
}

static void half_store(tsr_worker *w, tsr_half *h, int draw)
{
    tsr_sampler *s = w->sampler;
    for (int i = 0; i < h->n_chain; i++) {
        const tsr_record_ladder ladder = {
            h->ladder[i], h->chain + (size_t)i * (size_t)s->n_temp,
            h->fine != NULL ? h->fine[i] : NULL};
        if (h->fine == NULL || !s->is_flat) /* else there is no draw yet */
            tsr_record_store(s->record, &ladder, h->number[i], draw, s->warm,
                             (double)h->accepted[i] / (double)s->thin);
        if (s->track != NULL && !s->warm)
            tsr_track_store(
                s->track,
                ladder.fine != NULL
                    ? tsr_fine_chain(ladder.fine)
                    : ladder.replica[tsr_ladder_replica(h->ladder[i], 0)],
                h->number[i], draw);
        for (int k = 0; k < s->n_temp; k++)
            tsr_chain_draw_done(ladder.replica[k]);
        h->accepted[i] = 0;
    }
    mark(w, &w->times.store);
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
    for (int i = 0; h->fine != NULL && i < h->n_chain && status == TSR_OK; i++)
        status = tsr_fine_refresh(h->fine[i], err);
    mark(w, &w->times.refresh);
    return status;
}

/* ---- workers ---- */

/* What both halves do next after a walk. */
static tsr_status walk_and_propose(tsr_worker *w, long step, tsr_err *err)
{
    TSR_TRY(worker_walk(w, step, err));
    for (int k = 0; k < 2; k++)
        TSR_TRY(half_propose(w, &w->half[k], step, err));
    return TSR_OK;
}

static tsr_status worker_run(tsr_worker *w)
{
    tsr_sampler *s = w->sampler;
    long total = s->n_draw * s->thin;
    tsr_status status = TSR_OK;
    w->n_done = 0;
    w->n_step = 0;
    w->mark = tsr_clock_s();
    for (int k = 0; k < 2 && s->refresh && status == TSR_OK; k++)
        status = half_refresh(w, &w->half[k], &w->err);
    if (s->refresh)
        return status;
    for (int k = 0; k < 2; k++)
        set_heat(s, &w->half[k], heat_at(s, s->n_step));
    if (is_walk(w, s->n_step))
        TSR_THEN(status, walk_and_propose(w, s->n_step, &w->err));
    else
        for (int k = 0; k < 2; k++)
            TSR_THEN(status, half_propose(w, &w->half[k], s->n_step, &w->err));
    for (long step = 1; step <= total && status == TSR_OK; step++) {
        int last = step == total || tsr_sampler_should_stop(s);
        const int is_draw = step % s->thin == 0;
        const int walks = is_walk(w, s->n_step + step);
        for (int k = 0; k < 2 && status == TSR_OK; k++) {
            tsr_half *h = &w->half[k];
            status = half_decide(w, h, &w->err);
            if (status == TSR_OK)
                half_temper(s, h, s->n_step + step);
            if (status == TSR_OK && is_draw)
                status = half_offer(w, h, &w->err);
            if (status == TSR_OK && is_draw)
                half_store(w, h, (int)(step / s->thin) - 1);
            if (status == TSR_OK && !last && !walks)
                status = half_propose(w, h, s->n_step + step, &w->err);
        }
        if (status == TSR_OK && !last && walks)
            status = walk_and_propose(w, s->n_step + step, &w->err);
        w->n_step = step;
        if (status == TSR_OK && is_draw)
            w->n_done = (int)(step / s->thin);
        if (last)
            break;
    }
    return status;
}

void *tsr_sampler_worker(void *argument)
{
    tsr_worker *w = argument;
    tsr_sampler *s = w->sampler;
    long seen = 0;
    pthread_mutex_lock(&s->lock);
    for (;;) {
        while (s->round == seen && !s->quit)
            pthread_cond_wait(&s->go, &s->lock);
        if (s->quit)
            break;
        seen = s->round;
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
