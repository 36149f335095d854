/* The pass from the prior to the posterior: levels, weights, copies, steps. */
#include "sampler/sampler.h"

#include "core/clock.h"

#include <gsl/gsl_sort.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

/* Effective share of a level's draws at the next one; the correlation of log
 * likelihoods over a level's steps below which it is left; in how many parts
 * these are taken (four times as many where chains walk); replicas of all
 * groups that make a population. */
static const double wanted_share = 0.6, forgotten = 0.3;

/* The share where the time is short. */
static const double late_share = 0.2;
enum { PARTS = 4 };

/* What a level leaves for the temperatures: its beta, the barrier up to it, and
 * of each chain one replica. With several temperatures all levels are kept, a
 * conformation a chain and level: 10 MiB a level for 128 chains of 600
 * residues. */
typedef struct {
    double beta, barrier;
    tsr_archive *replica; /* [n_chain] */
} level;

typedef struct {
    tsr_sampler *s;
    tsr_record *record;
    void (*tick)(void *context, const tsr_progress *progress);
    void *context;
    int n, each; /* replicas; of a group */
    double beta;
    double until;  /* by the clock: from then on it hurries; HUGE_VAL: never */
    long accepted; /* steps of earlier calls */
    double *log_lik, *before, *weight; /* [n] */
    int *parent, *child;               /* [n] */
    int n_level, room;
    level *level;
} pass;

static void forget_level(const pass *p, level *l)
{
    for (int c = 0; c < p->s->n_chain && l->replica != NULL; c++)
        tsr_archive_clear(&l->replica[c]);
    free(l->replica);
    l->replica = NULL;
}

static void pass_clear(pass *p)
{
    for (int l = 0; l < p->n_level; l++)
        forget_level(p, &p->level[l]);
    free(p->level);
    free(p->log_lik);
    free(p->before);
    free(p->weight);
    free(p->parent);
    free(p->child);
}

static tsr_status pass_init(pass *p, tsr_err *err)
{
    const size_t n = (size_t)p->n;
    p->log_lik = calloc(n, sizeof *p->log_lik);
    p->before = calloc(n, sizeof *p->before);
    p->weight = calloc(n, sizeof *p->weight);
    p->parent = calloc(n, sizeof *p->parent);
    p->child = calloc(n, sizeof *p->child);
    return p->log_lik != NULL && p->before != NULL && p->weight != NULL &&
                   p->parent != NULL && p->child != NULL
               ? TSR_OK
               : tsr_no_memory(err);
}

static void look(const pass *p, double *log_lik)
{
    for (int i = 0; i < p->n; i++)
        log_lik[i] = tsr_chain_log_lik(p->s->chain[i]);
}

/* ---- one level ---- */

/* Steps of earlier calls count too. */
static void tick_all(void *context, const tsr_progress *progress)
{
    pass *p = context;
    tsr_progress all = *progress;
    all.step += p->s->population.n_step * p->n;
    all.accepted += p->accepted;
    p->tick(p->context, &all);
}

/* Steps of all replicas at beta; what moves have learnt becomes common. */
static tsr_status go(pass *p, long n_step, tsr_err *err)
{
    int n_done;
    p->s->is_flat = 1;
    p->s->flat_beta = p->beta;
    tsr_status status =
        tsr_sampler_advance(p->s, p->record, 1, n_step, 1,
                            p->tick == NULL ? NULL : tick_all, p, &n_done, err);
    p->s->is_flat = 0;
    p->s->population.n_step += n_step;
    for (int w = 0; w < p->s->n_worker; w++)
        p->accepted += atomic_load(&p->s->worker[w].accepted);
    TSR_THEN(status, tsr_chain_average_steps(p->s->chain, p->n, err));
    return status;
}

/* weight [n] = exp(step log L) over its greatest; (sum w)^2 / (n sum w^2). */
static double weigh(pass *p, double step)
{
    double top = -HUGE_VAL, sum = 0.0, squares = 0.0;
    for (int i = 0; i < p->n; i++)
        top = fmax(top, p->log_lik[i]);
    for (int i = 0; i < p->n; i++) {
        p->weight[i] = exp(step * (p->log_lik[i] - top));
        sum += p->weight[i];
        squares += p->weight[i] * p->weight[i];
    }
    return sum * sum / (p->n * squares);
}

static int is_late(const pass *p)
{
    return tsr_clock_s() > p->until;
}

/* The greatest step of beta that leaves enough effective draws. */
static double find_step(pass *p)
{
    const double wanted = is_late(p) ? late_share : wanted_share;
    double low = 0.0, high = 1.0 - p->beta;
    if (weigh(p, high) >= wanted)
        return high;
    for (int k = 0; k < 60; k++) {
        const double middle = 0.5 * (low + high);
        *(weigh(p, middle) >= wanted ? &low : &high) = middle;
    }
    return low > 0.0 ? low : high;
}

/* Half the mean difference of two draws' log likelihoods: the barrier's
 * growth with beta. */
static double barrier_rate(const pass *p)
{
    double sum = 0.0;
    memcpy(p->before, p->log_lik, (size_t)p->n * sizeof *p->before);
    gsl_sort(p->before, 1, (size_t)p->n);
    for (int i = 0; i < p->n; i++)
        sum += (2.0 * i - p->n + 1.0) * p->before[i];
    return sum / ((double)p->n * (p->n - 1.0));
}

/* Each of the group [first, first + each) gets a parent: as many children as
 * its weight says, to less than one (systematic resampling: points u, u + 1,
 * ... on the line of all weights), itself first. */
static void choose_parents(pass *p, int first, double u)
{
    const int end = first + p->each;
    double sum = 0.0, upto = 0.0;
    int n_point = 0, free_place = first;
    for (int i = first; i < end; i++)
        sum += p->weight[i];
    for (int i = first; i < end; i++) {
        upto += p->weight[i] * p->each / sum;
        const int n_upto =
            i + 1 < end ? (int)fmin(ceil(upto - u), p->each) : p->each;
        p->child[i] = n_upto - n_point;
        p->parent[i] = p->child[i] > 0 ? i : -1;
        n_point = n_upto;
    }
    for (int i = first; i < end; i++)
        for (int k = 1; k < p->child[i]; k++) {
            while (p->parent[free_place] >= 0)
                free_place++;
            p->parent[free_place] = i;
        }
}

/* Weighs, adds to the estimates, and copies. */
static void resample(pass *p, double step)
{
    const tsr_target *t = p->s->target;
    double top = -HUGE_VAL;
    for (int i = 0; i < p->n; i++)
        top = fmax(top, p->log_lik[i]);
    weigh(p, step);
    for (int g = 0; g < t->n_group; g++) {
        const int first = g * p->each;
        double sum = 0.0;
        for (int i = first; i < first + p->each; i++)
            sum += p->weight[i];
        t->group_log_z[g] += step * top + log(sum / p->each);
        choose_parents(
            p, first,
            tsr_sampler_chance(p->s, (uint64_t)p->n_level, (uint64_t)g));
    }
    for (int i = 0; i < p->n; i++)
        if (p->parent[i] != i)
            tsr_chain_copy(p->s->chain[i], p->s->chain[p->parent[i]]);
}

static double correlation(int n, const double *x, const double *y)
{
    double mx = 0.0, my = 0.0, xx = 0.0, yy = 0.0, xy = 0.0;
    for (int i = 0; i < n; i++)
        mx += x[i] / n, my += y[i] / n;
    for (int i = 0; i < n; i++) {
        xx += (x[i] - mx) * (x[i] - mx);
        yy += (y[i] - my) * (y[i] - my);
        xy += (x[i] - mx) * (y[i] - my);
    }
    return xx > 0.0 && yy > 0.0 ? xy / sqrt(xx * yy) : 0.0;
}

/* Until the log likelihoods are other ones, or most_each steps. */
static tsr_status mix(pass *p, long most_each, tsr_err *err)
{
    const long n_part = tsr_target_turns_much(p->s->target) ? 4 * PARTS : PARTS;
    const long part = most_each / n_part > 0 ? most_each / n_part : 1;
    tsr_status status = TSR_OK;
    look(p, p->before);
    for (long n = 0; n < most_each && status == TSR_OK; n += part) {
        status = go(p, part, err);
        look(p, p->log_lik);
        if (tsr_sampler_should_stop(p->s) || is_late(p) ||
            correlation(p->n, p->before, p->log_lik) < forgotten)
            break;
    }
    return status;
}

/* ---- what it leaves ---- */

static tsr_status keep_level(pass *p, double barrier, tsr_err *err)
{
    if (p->n_level == p->room) {
        const int room = 2 * p->room + 16;
        level *more = realloc(p->level, (size_t)room * sizeof *more);
        TSR_TRY(tsr_allocated(more, err));
        p->level = more, p->room = room;
    }
    if (p->s->n_temp == 1 && p->n_level > 0) /* only the last is asked for */
        forget_level(p, &p->level[p->n_level - 1]);
    level *l = &p->level[p->n_level];
    *l = (level){p->beta, barrier, NULL};
    l->replica = calloc((size_t)p->s->n_chain, sizeof(*l->replica));
    TSR_TRY(tsr_allocated(l->replica, err));
    const int k = p->n_level++ % p->s->n_temp;
    for (int c = 0; c < p->s->n_chain; c++) {
        tsr_archive_begin(&l->replica[c]);
        tsr_chain_archive(p->s->chain[c * p->s->n_temp + k], &l->replica[c]);
        if (l->replica[c].failed)
            return tsr_no_memory(err);
    }
    return TSR_OK;
}

static double between(double x, double x0, double x1, double y0, double y1)
{
    const double share = x1 > x0 ? (x - x0) / (x1 - x0) : 1.0;
    return y0 + fmin(fmax(share, 0.0), 1.0) * (y1 - y0);
}

/* beta where the barrier from the prior on is as wanted. */
static double beta_at(const pass *p, double wanted)
{
    int l = 1;
    while (l + 1 < p->n_level && p->level[l].barrier < wanted)
        l++;
    const level *a = &p->level[l - 1], *b = &p->level[l];
    return between(wanted, a->barrier, b->barrier, a->beta, b->beta);
}

static double barrier_at(const pass *p, double beta)
{
    int l = 1;
    while (l + 1 < p->n_level && p->level[l].beta < beta)
        l++;
    const level *a = &p->level[l - 1], *b = &p->level[l];
    return between(beta, a->beta, b->beta, a->barrier, b->barrier);
}

static const level *nearest(const pass *p, double barrier)
{
    const level *best = p->level;
    for (int l = 1; l < p->n_level; l++)
        if (fabs(p->level[l].barrier - barrier) < fabs(best->barrier - barrier))
            best = &p->level[l];
    return best;
}

/* The temperatures, and a replica from next to each. */
static void found_ladders(pass *p)
{
    const tsr_sampler *s = p->s;
    const double hot = barrier_at(p, 1.0 / s->target->t_max);
    const double all = p->level[p->n_level - 1].barrier - hot;
    double beta[TSR_MAX_TEMPERATURES];
    for (int k = 0; k < s->n_temp; k++) {
        const double wanted =
            hot +
            all * (s->n_temp > 1 ? 1.0 - (double)k / (s->n_temp - 1) : 1.0);
        const level *l = nearest(p, wanted);
        beta[k] = beta_at(p, wanted);
        for (int c = 0; c < s->n_chain; c++)
            tsr_chain_become(s->chain[c * s->n_temp + k], &l->replica[c]);
    }
    for (int c = 0; c < s->n_chain; c++)
        tsr_ladder_set(s->ladder[c], beta);
}

/* ---- the pass ---- */

/* Steps without data in which a chain forgets where its group started; walks
 * make it quicker. */
static long n_forgotten(const tsr_target *t)
{
    const long n = 500 + 5L * (t->topology->n_torsion + t->topology->n_side);
    return tsr_target_turns_much(t) ? n / 3 : n;
}

static tsr_status rise(pass *p, long most_each, tsr_err *err)
{
    double barrier = 0.0;
    tsr_status status = go(p, n_forgotten(p->s->target), err);
    look(p, p->log_lik);
    double rate = barrier_rate(p);
    TSR_THEN(status, keep_level(p, barrier, err));
    while (p->beta < 1.0 && status == TSR_OK &&
           !tsr_sampler_should_stop(p->s)) {
        const double step = find_step(p), old_rate = rate;
        resample(p, step);
        p->beta = p->beta + step < 1.0 ? p->beta + step : 1.0;
        status = tsr_sampler_refresh(p->s, err);
        TSR_THEN(status, mix(p, most_each, err));
        rate = barrier_rate(p);
        barrier += 0.5 * (old_rate + rate) * step;
        TSR_THEN(status, keep_level(p, barrier, err));
    }
    p->s->population.barrier = barrier;
    return status;
}

tsr_status tsr_sampler_populate(tsr_sampler *sampler, tsr_record *record,
                                long most_each, double seconds,
                                void (*tick)(void *context,
                                             const tsr_progress *progress),
                                void *context, tsr_err *err)
{
    tsr_sampler *s = sampler;
    const tsr_target *t = s->target;
    pass p = {.s = s, .record = record, .tick = tick, .context = context};
    p.until = seconds > 0.0 ? tsr_clock_s() + seconds : HUGE_VAL;
    p.n = s->n_chain * s->n_temp;
    if (t->likelihood == NULL || t->n_group == 0 ||
        p.n < TSR_POPULATION_LEAST || s->population.n_level > 0 ||
        tsr_likelihood_min_beta(t->likelihood) > 0.0)
        return TSR_OK;
    p.each = t->chains_each * s->n_temp;
    tsr_status status = pass_init(&p, err);
    for (int g = 0; g < t->n_group; g++)
        t->group_log_z[g] = 0.0;
    TSR_THEN(status,
             tsr_sampler_refresh(s, err)); /* they may have been restored */
    TSR_THEN(status, rise(&p, most_each, err));
    if (status == TSR_OK && !tsr_sampler_should_stop(s)) {
        found_ladders(&p);
        s->population.n_level = p.n_level;
        status = tsr_sampler_refresh(s, err);
    }
    pass_clear(&p);
    return status;
}

tsr_population tsr_sampler_population(const tsr_sampler *sampler)
{
    return sampler->population;
}
