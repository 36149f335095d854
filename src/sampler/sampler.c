/* The sampler as its caller sees it: so many steps more, all chains afresh,
 * times and counts.
 *
 * The worker threads (sampler_worker.c) do the steps; this file tells them
 * what to do, waits for them, and keeps the first error of any. */
#include "sampler/sampler_state.h"

#include "core/clock.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

static void look(const tsr_sampler *s, tsr_progress *p)
{
    double sum = 0.0;
    memset(p, 0, sizeof *p);
    for (int w = 0; w < s->n_worker; w++) {
        p->step += atomic_load(&s->worker[w].step);
        p->accepted += atomic_load(&s->worker[w].accepted);
    }
    for (int c = 0; c < s->n_chain; c++)
        sum += atomic_load(&s->chi2[c]);
    p->chi2 = sum / s->n_chain;
}

static void quarter_second_on(struct timespec *when)
{
    clock_gettime(CLOCK_MONOTONIC, when);
    when->tv_nsec += 250000000L;
    if (when->tv_nsec >= 1000000000L) {
        when->tv_nsec -= 1000000000L;
        when->tv_sec++;
    }
}

/* Lets the workers do what the sampler says, and waits for them. The error is
 * that of the first that failed. */
static tsr_status
work(tsr_sampler *s, void (*tick)(void *context, const tsr_progress *progress),
     void *context, tsr_err *err)
{
    tsr_progress progress;
    double before = tsr_clock_s();
    pthread_mutex_lock(&s->lock);
    s->n_busy = s->n_worker;
    s->round++;
    pthread_cond_broadcast(&s->go);
    while (s->n_busy > 0) {
        struct timespec when;
        quarter_second_on(&when);
        pthread_cond_timedwait(&s->done, &s->lock, &when);
        if (tick != NULL) {
            pthread_mutex_unlock(&s->lock);
            look(s, &progress);
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
    for (int w = 0; w < s->n_worker; w++) {
        atomic_store(&s->worker[w].step, 0);
        atomic_store(&s->worker[w].accepted, 0);
    }
    s->record = record;
    s->n_draw = n_draw, s->thin = thin, s->warm = warm;
    tsr_status status = work(s, tick, context, err);
    s->n_step += s->worker[0].n_step;
    *n_done = n_draw;
    for (int w = 0; w < s->n_worker; w++)
        if (s->worker[w].n_done < *n_done)
            *n_done = s->worker[w].n_done;
    return status;
}

/* ---- afresh ---- */

/* A number that looks like chance but is no chain's: splitmix64 (Steele, Lea
 * and Flood 2014) of the step. */
static uint64_t scatter(uint64_t seed, long step)
{
    uint64_t z = seed + ((uint64_t)step + 1) * UINT64_C(0x9e3779b97f4a7c15);
    z = (z ^ (z >> 30)) * UINT64_C(0xbf58476d1ce4e5b9);
    z = (z ^ (z >> 27)) * UINT64_C(0x94d049bb133111eb);
    return z ^ (z >> 31);
}

double tsr_sampler_chance(const tsr_sampler *sampler, uint64_t a, uint64_t b)
{
    const uint64_t seed = scatter(sampler->target->seed ^ (b << 32), (long)a);
    return (double)(scatter(seed, 0) >> 11) / 9007199254740992.0;
}

/* Whether one more check keeps them below their share of the time, and none
 * waits for its step. */
static int may_audit(const tsr_sampler *s)
{
    const double share = 0.004, at_once = 0.02;
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
           fmax(share * s->seconds, at_once);
}

static void choose_audit(tsr_sampler *s)
{
    enum { STEPS = 200 };
    uint64_t chance = scatter(s->target->seed, s->n_step);
    uint64_t n_replica = (uint64_t)s->n_chain * (uint64_t)s->n_temp;
    int chosen = (int)(chance % n_replica);
    for (int w = 0; w < s->n_worker; w++)
        for (int k = 0; k < 2; k++) {
            tsr_half *h = &s->worker[w].half[k];
            for (int i = 0; i < h->n_replica; i++)
                if (h->chain[i] == s->chain[chosen]) {
                    h->audited = i;
                    h->audit_after = (int)((chance >> 32) % STEPS);
                }
        }
}

tsr_status tsr_sampler_refresh(tsr_sampler *sampler, tsr_err *err)
{
    tsr_sampler *s = sampler;
    s->refresh = 1;
    tsr_status status = work(s, NULL, NULL, err);
    s->refresh = 0;
    if (status == TSR_OK && tsr_sampler_should_stop(s))
        return tsr_fail(err, TSR_E_INTERRUPTED,
                        "interrupted while the chains were computed afresh");
    if (status == TSR_OK &&
        tsr_likelihood_n_profile(s->target->likelihood) > 0 && may_audit(s))
        choose_audit(s);
    return status;
}

void tsr_sampler_set_track(tsr_sampler *sampler, tsr_track *track)
{
    sampler->track = track;
}

void tsr_sampler_archive(tsr_sampler *sampler, tsr_archive *archive)
{
    tsr_sampler *s = sampler;
    tsr_archive_long(archive, &s->n_step, 1);
    tsr_archive_long(archive, &s->n_anneal, 1);
    tsr_archive_real(archive, &s->first_heat, 1);
    tsr_archive_int(archive, &s->population.n_level, 1);
    tsr_archive_long(archive, &s->population.n_step, 1);
    tsr_archive_real(archive, &s->population.barrier, 1);
    tsr_archive_real(archive, s->target->group_log_z,
                     (size_t)s->target->n_group);
    for (int c = 0; c < s->n_chain; c++)
        tsr_ladder_archive(s->ladder[c], archive);
    for (int c = 0; c < s->n_chain * s->n_temp; c++)
        tsr_chain_archive(s->chain[c], archive);
    for (int c = 0; s->fine != NULL && c < s->n_chain; c++)
        tsr_fine_archive(s->fine[c], archive);
}

/* ---- what chains share ---- */

static tsr_chain *replica_at(const tsr_sampler *s, int chain, int k)
{
    return s
        ->chain[chain * s->n_temp + tsr_ladder_replica(s->ladder[chain], k)];
}

tsr_status tsr_sampler_share(tsr_sampler *sampler, tsr_err *err)
{
    tsr_sampler *s = sampler;
    tsr_status status = TSR_OK;
    tsr_chain **same = calloc((size_t)s->n_chain, sizeof(*same));
    if (same == NULL)
        return tsr_fail(err, TSR_E_NOMEM, "out of memory");
    tsr_ladder_share(s->ladder, s->n_chain);
    for (int k = 0; k < s->n_temp && status == TSR_OK; k++) {
        for (int c = 0; c < s->n_chain; c++)
            same[c] = replica_at(s, c, k);
        status = tsr_chain_share(same, s->n_chain, err);
    }
    free(same);
    return status;
}

/* A temperature. The chi2 of a map is a share of its variance, below 1, and
 * does not say how steep its likelihood is. Chains that meet it at once are
 * caught where torsions of their hinges first happened to be, some 50 nat below
 * others. Much hotter, domains leave the map. */
static const double stiff_heat = 5.0;

int tsr_sampler_plan_warmup(tsr_sampler *sampler, long n_step, double anneal)
{
    tsr_sampler *s = sampler;
    double worst = 1.0;
    if (s->target->likelihood != NULL &&
        tsr_likelihood_is_stiff(s->target->likelihood))
        worst = stiff_heat;
    for (int c = 0; c < s->n_chain && s->target->likelihood != NULL; c++)
        worst = fmax(worst, tsr_chain_chi2(s->chain[c * s->n_temp]));
    s->first_heat = 1.0 / worst;
    s->n_anneal = (long)(anneal * (double)n_step);
    if (s->target->likelihood == NULL)
        return 0;
    double t_max = s->n_temp > 1 ? s->target->t_max : 1.0;
    double least =
        2.0 * t_max * tsr_likelihood_least_beta(s->target->likelihood);
    if (s->n_anneal < 1 || s->first_heat >= least)
        return 0;
    s->first_heat = fmin(least, 1.0);
    return 1;
}

int tsr_sampler_n_thread(const tsr_sampler *sampler)
{
    return sampler->n_worker;
}

tsr_chain *tsr_sampler_chain(tsr_sampler *sampler, int chain)
{
    return replica_at(sampler, chain, 0);
}

tsr_fine *tsr_sampler_fine(tsr_sampler *sampler, int chain)
{
    return sampler->fine != NULL ? sampler->fine[chain] : NULL;
}

const tsr_ladder *tsr_sampler_ladder(const tsr_sampler *sampler, int chain)
{
    return sampler->ladder[chain];
}

double tsr_sampler_fine_rate(const tsr_sampler *sampler)
{
    double sum = 0.0;
    for (int c = 0; sampler->fine != NULL && c < sampler->n_chain; c++)
        sum += tsr_fine_rate(sampler->fine[c]) / sampler->n_chain;
    return sampler->fine != NULL ? sum : (double)NAN;
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
        sum.fine += t->fine;
    }
    for (int c = 0; c < sampler->n_chain * sampler->n_temp; c++)
        sum.clash += tsr_chain_clash_seconds(sampler->chain[c]);
    sum.clash = fmin(sum.clash, sum.propose);
    return sum;
}

long tsr_sampler_accepted(const tsr_sampler *sampler)
{
    long sum = 0;
    for (int c = 0; c < sampler->n_chain * sampler->n_temp; c++) {
        const tsr_chain_counts *counts =
            tsr_chain_counts_get(sampler->chain[c]);
        for (int m = 0; m < TSR_N_MOVE; m++)
            sum += counts->accepted[m];
    }
    return sum;
}

void tsr_sampler_counts_reset(tsr_sampler *sampler)
{
    for (int c = 0; c < sampler->n_chain * sampler->n_temp; c++)
        tsr_chain_counts_reset(sampler->chain[c]);
    for (int c = 0; c < sampler->n_chain; c++) {
        tsr_ladder_reset(sampler->ladder[c]);
        if (sampler->fine != NULL)
            tsr_fine_reset(sampler->fine[c]);
    }
}
