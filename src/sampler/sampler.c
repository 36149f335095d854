#include "sampler/sampler.h"

#include "sampler/share.h"

#include <math.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

static const char *const auto_words[] = {"auto", NULL};

const tsr_field tsr_sampler_fields[] = {
    {.name = "chains",
     .type = TSR_FIELD_NUMBER_OR_WORD,
     .offset = offsetof(tsr_sampler_options, chains),
     .initial = "auto",
     .min = 1,
     .max = 100000,
     .words = auto_words,
     .doc = "independent chains; auto: 4, on a GPU at least two for each host "
            "thread"},
    {.name = "warmup",
     .type = TSR_FIELD_INT,
     .offset = offsetof(tsr_sampler_options, warmup),
     .unit = "steps a chain",
     .initial = "5000",
     .min = 0,
     .max = 1e12,
     .doc = "step sizes learn, then stay"},
    {.name = "draws",
     .type = TSR_FIELD_INT,
     .offset = offsetof(tsr_sampler_options, draws),
     .unit = "stored draws a chain",
     .initial = "2000",
     .min = 1,
     .max = 1e9,
     .doc = "after warm-up"},
    {.name = "thin",
     .type = TSR_FIELD_INT,
     .offset = offsetof(tsr_sampler_options, thin),
     .unit = "steps",
     .initial = "10",
     .min = 1,
     .max = 1e9,
     .doc = "from one stored draw to the next"},
    {.name = "temperatures",
     .type = TSR_FIELD_NUMBER_OR_WORD,
     .offset = offsetof(tsr_sampler_options, temperatures),
     .initial = "auto",
     .min = 1.0,
     .max = TSR_MAX_TEMPERATURES,
     .words = auto_words,
     .doc = "replicas of each chain, exchanged; 1: none; auto: 6 with data"},
    {.name = "t_max",
     .type = TSR_FIELD_DOUBLE,
     .offset = offsetof(tsr_sampler_options, t_max),
     .initial = "20",
     .min = 1.001,
     .max = 1e9,
     .doc = "the highest temperature of the likelihood"},
    {.name = "swap_every",
     .type = TSR_FIELD_INT,
     .offset = offsetof(tsr_sampler_options, swap_every),
     .unit = "steps",
     .initial = "10",
     .min = 1,
     .max = 1e9,
     .doc = "between offers of an exchange"},
    {.name = "anneal",
     .type = TSR_FIELD_DOUBLE,
     .offset = offsetof(tsr_sampler_options, anneal),
     .initial = "0.5",
     .min = 0.0,
     .max = 0.9,
     .doc = "share of warm-up in which the likelihood is turned on slowly"},
    {.name = "learn_mix",
     .type = TSR_FIELD_BOOL,
     .offset = offsetof(tsr_sampler_options, learn_mix),
     .initial = "true",
     .doc = "warm-up adapts how often each move is made, within a factor of 4, "
            "by how much it changes the curve for its cost"},
    {.name = "until",
     .type = TSR_FIELD_STRING,
     .offset = offsetof(tsr_sampler_options, until),
     .doc = "stop before all draws once converged, as rhat<1.01,ess>400"},
    {0}};

int tsr_sampler_n_temp(const tsr_sampler_options *options, int has_data)
{
    const int automatic = 6;
    if (!has_data)
        return 1;
    return options->temperatures.word < 0 ? (int)options->temperatures.number
                                          : automatic;
}

/* The chains that go to the device together, each with all its replicas:
 * replica r of the i-th is number n_temp * i + r here. */
typedef struct {
    int n_chain, n_replica;
    tsr_chain **chain;   /* [n_replica] */
    tsr_ladder **ladder; /* [n_chain] */
    int *number;         /* [n_chain] */
    long *accepted;      /* [n_chain] at temperature 1 since the last draw */
    tsr_batch *batch;    /* NULL without data */
    int n_ask;
    tsr_body_proposal *ask; /* [n_replica] */
    int *asked;             /* [n_replica] place in ask, or -1 */
    double *profile;        /* [n_replica][n_q] */
} half;

typedef struct {
    tsr_sampler *sampler;
    pthread_t thread;
    int started;
    half half[2];
    int n_done;  /* draws completed in this call */
    long n_step; /* steps */
    tsr_status status;
    tsr_err err;
    atomic_long step, accepted;
    double mark; /* when the part of the step under way began */
    tsr_sampler_times times;
} worker;

struct tsr_sampler {
    const tsr_target *target;
    const volatile sig_atomic_t *stop;
    int n_chain, n_temp, n_worker, n_q;
    tsr_chain **chain;   /* [n_chain * n_temp] */
    tsr_ladder **ladder; /* [n_chain] */
    long n_step;         /* of each chain, before the call under way */
    long n_anneal;       /* steps in which the likelihood is turned on */
    double first_heat;
    _Atomic double *chi2; /* [n_chain] */
    worker *worker;

    pthread_mutex_t lock;
    pthread_cond_t go, done;
    int lock_made;
    long round; /* grows with every call of advance */
    int n_busy, quit;
    atomic_int failed; /* a worker failed: the others stop too */

    /* the call under way */
    tsr_record *record;
    int n_draw, warm;
    long thin;
};

static double now_seconds(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

/* The time since the last mark goes to one part. */
static void mark(worker *w, double *part)
{
    double now = now_seconds();
    *part += now - w->mark;
    w->mark = now;
}

/* ---- a half's step ---- */

static tsr_status half_propose(worker *w, half *h, tsr_err *err)
{
    tsr_status status = TSR_OK;
    h->n_ask = 0;
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

static tsr_status half_decide(worker *w, half *h, tsr_err *err)
{
    tsr_sampler *s = w->sampler;
    tsr_status status = TSR_OK;
    if (h->n_ask > 0)
        status = tsr_batch_wait(h->batch, h->profile, err);
    mark(w, &w->times.wait);
    if (status != TSR_OK)
        return status;
    for (int i = 0; i < h->n_replica; i++) {
        int accepted, place = h->asked[i], own = i / s->n_temp;
        double *profile =
            place < 0 ? NULL : h->profile + (size_t)place * (size_t)s->n_q;
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

static void set_heat(const tsr_sampler *s, half *h, double heat)
{
    for (int i = 0; i < h->n_chain; i++)
        for (int k = 0; k < s->n_temp; k++) {
            int r = tsr_ladder_replica(h->ladder[i], k);
            tsr_chain_heat(h->chain[i * s->n_temp + r],
                           heat * tsr_ladder_beta(h->ladder[i], k));
        }
}

static void exchange(void *context, int a, int b)
{
    tsr_chain **replica = context;
    tsr_chain_exchange(replica[a], replica[b]);
}

/* Between two steps: nothing is in flight. step: of the whole run. */
static void half_temper(const tsr_sampler *s, half *h, long step)
{
    double log_lik[TSR_MAX_TEMPERATURES], heat = heat_at(s, step);
    long every = s->target->swap_every > 0 ? s->target->swap_every : 1;
    int annealing = s->warm && step < s->n_anneal;
    if (s->target->likelihood == NULL)
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

static void half_store(worker *w, half *h, int draw)
{
    tsr_sampler *s = w->sampler;
    for (int i = 0; i < h->n_chain; i++) {
        int cold = tsr_ladder_replica(h->ladder[i], 0);
        tsr_record_store(s->record, h->chain[i * s->n_temp + cold],
                         h->number[i], draw, s->warm,
                         (double)h->accepted[i] / (double)s->thin,
                         tsr_ladder_round_trips(h->ladder[i]));
        h->accepted[i] = 0;
    }
    mark(w, &w->times.store);
}

/* ---- workers ---- */

static int should_stop(const tsr_sampler *s)
{
    return (s->stop != NULL && *s->stop != 0) || atomic_load(&s->failed);
}

static tsr_status worker_run(worker *w)
{
    tsr_sampler *s = w->sampler;
    long total = s->n_draw * s->thin;
    tsr_status status = TSR_OK;
    w->n_done = 0;
    w->mark = now_seconds();
    for (int k = 0; k < 2 && status == TSR_OK; k++) {
        set_heat(s, &w->half[k], heat_at(s, s->n_step));
        status = half_propose(w, &w->half[k], &w->err);
    }
    for (long step = 1; step <= total && status == TSR_OK; step++) {
        int last = step == total || should_stop(s);
        int is_draw = step % s->thin == 0;
        for (int k = 0; k < 2 && status == TSR_OK; k++) {
            half *h = &w->half[k];
            status = half_decide(w, h, &w->err);
            if (status == TSR_OK)
                half_temper(s, h, s->n_step + step);
            if (status == TSR_OK && is_draw)
                half_store(w, h, (int)(step / s->thin) - 1);
            if (status == TSR_OK && !last)
                status = half_propose(w, h, &w->err);
        }
        w->n_step = step;
        if (status == TSR_OK && is_draw)
            w->n_done = (int)(step / s->thin);
        if (last)
            break;
    }
    return status;
}

static void *worker_main(void *argument)
{
    worker *w = argument;
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

/* ---- set-up ---- */

static void half_clear(half *h)
{
    tsr_batch_free(h->batch);
    free(h->chain);
    free(h->ladder);
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
    }
    for (int c = 0; s->chain != NULL && c < s->n_chain * s->n_temp; c++)
        tsr_chain_free(s->chain[c]);
    for (int c = 0; s->ladder != NULL && c < s->n_chain; c++)
        tsr_ladder_free(s->ladder[c]);
    free(s->ladder);
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

static tsr_status half_make(const tsr_sampler *s, half *h, int n_chain,
                            tsr_engine *engine, tsr_err *err)
{
    size_t n = (size_t)n_chain * (size_t)s->n_temp + 1;
    h->chain = calloc(n, sizeof(*h->chain));
    h->ladder = calloc(n, sizeof(*h->ladder));
    h->number = calloc(n, sizeof *h->number);
    h->accepted = calloc(n, sizeof *h->accepted);
    h->ask = calloc(n, sizeof *h->ask);
    h->asked = calloc(n, sizeof *h->asked);
    h->profile = calloc(n * (size_t)(s->n_q + 1), sizeof *h->profile);
    if (h->chain == NULL || h->ladder == NULL || h->number == NULL ||
        h->accepted == NULL || h->ask == NULL || h->asked == NULL ||
        h->profile == NULL)
        return tsr_fail(err, TSR_E_NOMEM, "out of memory");
    if (engine == NULL || n_chain == 0)
        return TSR_OK;
    return tsr_batch_new(engine, n_chain * s->n_temp, &h->batch, err);
}

/* Deals an engine's chains, from `first` on, out over its n_worker workers:
 * the i-th to worker i % n_worker, whose halves take turns. */
static tsr_status deal_share(tsr_sampler *s, const tsr_engine_share *share,
                             int first, worker *own, int n_worker, tsr_err *err)
{
    if (n_worker < 1)
        return tsr_fail(err, TSR_E_INTERNAL, "an engine without a worker");
    for (int w = 0; w < n_worker; w++) {
        int n = share->n_chain / n_worker + (w < share->n_chain % n_worker);
        own[w].sampler = s;
        for (int k = 0; k < 2; k++) {
            tsr_status status = half_make(s, &own[w].half[k], (n + 1 - k) / 2,
                                          share->engine, err);
            if (status != TSR_OK)
                return status;
        }
    }
    for (int i = 0; i < share->n_chain; i++) {
        half *h = &own[i % n_worker].half[i / n_worker % 2];
        h->ladder[h->n_chain] = s->ladder[first + i];
        h->number[h->n_chain++] = first + i;
        for (int r = 0; r < s->n_temp; r++) {
            tsr_chain *chain = s->chain[(first + i) * s->n_temp + r];
            h->chain[h->n_replica++] = chain;
            tsr_status status = h->batch == NULL
                                    ? TSR_OK
                                    : tsr_chain_start(chain, h->batch, err);
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
        if (pthread_create(&s->worker[w].thread, NULL, worker_main,
                           &s->worker[w]) != 0)
            return tsr_fail(err, TSR_E_INTERNAL, "cannot start thread %d of %d",
                            w + 1, s->n_worker);
        s->worker[w].started = 1;
    }
    return TSR_OK;
}

tsr_status tsr_sampler_new(const tsr_target *target, int n_chain, int n_thread,
                           const volatile sig_atomic_t *stop, tsr_sampler **out,
                           tsr_err *err)
{
    const tsr_engine_share none = {NULL, n_chain};
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
    s->n_q = target->likelihood == NULL ? 0 : target->likelihood->grid.n_q;
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

/* ---- running ---- */

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

tsr_status tsr_sampler_advance(tsr_sampler *sampler, tsr_record *record,
                               int n_draw, long thin, int warm,
                               void (*tick)(void *context,
                                            const tsr_progress *progress),
                               void *context, int *n_done, tsr_err *err)
{
    tsr_sampler *s = sampler;
    tsr_progress progress;
    *n_done = 0;
    for (int w = 0; w < s->n_worker; w++) {
        atomic_store(&s->worker[w].step, 0);
        atomic_store(&s->worker[w].accepted, 0);
    }
    pthread_mutex_lock(&s->lock);
    s->record = record;
    s->n_draw = n_draw, s->thin = thin, s->warm = warm;
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
    *n_done = n_draw;
    s->n_step += s->worker[0].n_step;
    tsr_status status = TSR_OK;
    for (int w = 0; w < s->n_worker; w++) {
        if (s->worker[w].n_done < *n_done)
            *n_done = s->worker[w].n_done;
        if (s->worker[w].status != TSR_OK && status == TSR_OK) {
            status = s->worker[w].status;
            if (err != NULL)
                *err = s->worker[w].err;
        }
    }
    return status;
}

void tsr_sampler_plan_warmup(tsr_sampler *sampler, long n_step, double anneal)
{
    tsr_sampler *s = sampler;
    double worst = 1.0;
    for (int c = 0; c < s->n_chain && s->target->likelihood != NULL; c++)
        worst = fmax(worst, tsr_chain_chi2(s->chain[c * s->n_temp]));
    s->first_heat = 1.0 / worst;
    s->n_anneal = (long)(anneal * (double)n_step);
}

int tsr_sampler_n_thread(const tsr_sampler *sampler)
{
    return sampler->n_worker;
}

tsr_chain *tsr_sampler_chain(tsr_sampler *sampler, int chain)
{
    int cold = tsr_ladder_replica(sampler->ladder[chain], 0);
    return sampler->chain[chain * sampler->n_temp + cold];
}

const tsr_ladder *tsr_sampler_ladder(const tsr_sampler *sampler, int chain)
{
    return sampler->ladder[chain];
}

tsr_sampler_times tsr_sampler_times_get(const tsr_sampler *sampler)
{
    tsr_sampler_times sum = {0.0, 0.0, 0.0, 0.0, 0.0};
    for (int w = 0; w < sampler->n_worker; w++) {
        const tsr_sampler_times *t = &sampler->worker[w].times;
        sum.propose += t->propose, sum.submit += t->submit;
        sum.wait += t->wait;
        sum.decide += t->decide, sum.store += t->store;
    }
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
    for (int c = 0; c < sampler->n_chain; c++)
        tsr_ladder_reset(sampler->ladder[c]);
}
