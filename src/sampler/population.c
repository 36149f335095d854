/* Sequential Monte Carlo from the prior to the posterior: levels of beta,
 * weights, resampling, steps (sampler.h has the sources). */
#include "sampler/sampler.h"

#include "core/clock.h"
#include "core/ranks.h"

#include <gsl/gsl_sort.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

/* wanted_share: effective sample size after reweighting to the next level, as a
 * share of the population. forgotten: a level ends when log likelihoods
 * correlate with those at its start by less than this. The steps of a level are
 * made in PARTS parts, or 4 times as many where moves are global, and the
 * correlation is checked after each part. */
static const double wanted_share = 0.6, forgotten = 0.3;

/* late_share replaces wanted_share after the deadline. */
static const double late_share = 0.2;
enum { PARTS = 4 };

/* What start_ladders needs of a level: beta, the communication barrier from the
 * prior to the level (sampler.h), and one replica of each chain. With several
 * temperatures all levels are kept, which takes 10 MiB a level for 128 chains
 * of 600 residues. */
typedef struct {
    double beta, barrier;
    tsr_archive *replica; /* [n_chain] saved by tsr_chain_archive */
} level;

/* The pass of all populations from the prior to the posterior. */
typedef struct {
    tsr_sampler *s;
    tsr_record *record;
    void (*tick)(void *context, const tsr_progress *progress);
    void *context;
    int n, per_group; /* number of all replicas, and of those of a group */
    double beta;
    double deadline; /* clock time after which levels are short; HUGE_VAL:
                        never */
    double *log_lik, *before; /* [n] nat; log likelihoods, now and at the start
                                 of the level; barrier_rate uses `before` as
                                 scratch */
    double *weight;           /* [n] relative to the greatest weight */
    int *parent;  /* [n] replica whose state this replica gets; the replica's
                     own index: its state stays */
    int *is_sent; /* [n] 1: replicas of other ranks get this replica's state */
    int *n_child; /* [n] number of replicas that get this replica's state, this
                     replica included */
    int n_level, capacity;
    level *level;
} pass;

static void free_level(const pass *p, level *l)
{
    for (int c = 0; c < p->s->n_chain && l->replica != NULL; c++)
        tsr_archive_clear(&l->replica[c]);
    free(l->replica);
    l->replica = NULL;
}

static void pass_clear(pass *p)
{
    for (int l = 0; l < p->n_level; l++)
        free_level(p, &p->level[l]);
    free(p->level);
    free(p->log_lik);
    free(p->before);
    free(p->weight);
    free(p->parent);
    free(p->is_sent);
    free(p->n_child);
}

static tsr_status pass_init(pass *p, tsr_err *err)
{
    const size_t n = (size_t)p->n;
    p->log_lik = calloc(n, sizeof *p->log_lik);
    p->before = calloc(n, sizeof *p->before);
    p->weight = calloc(n, sizeof *p->weight);
    p->parent = calloc(n, sizeof *p->parent);
    p->is_sent = calloc(n, sizeof *p->is_sent);
    p->n_child = calloc(n, sizeof *p->n_child);
    return p->log_lik != NULL && p->before != NULL && p->weight != NULL &&
                   p->parent != NULL && p->is_sent != NULL && p->n_child != NULL
               ? TSR_OK
               : tsr_no_memory(err);
}

/* context: [n] log likelihoods of all replicas */
static void part_log_lik(tsr_sampler *s, void *context, int first, int end,
                         tsr_archive *a)
{
    double *log_lik = context;
    tsr_archive_real(a, log_lik + first * s->n_temp,
                     (size_t)((end - first) * s->n_temp));
}

/* The log likelihoods of all replicas, on all ranks. */
static tsr_status read_log_lik(const pass *p, double *log_lik, tsr_err *err)
{
    tsr_sampler *s = p->s;
    for (int i = s->first * s->n_temp; i < s->end * s->n_temp; i++)
        log_lik[i] = tsr_chain_log_lik(s->chain[i]);
    return tsr_sampler_share(s, -1, part_log_lik, log_lik, err);
}

/* ---- one level ---- */

/* Reports the progress since the start of the pass, not that of one call of
 * tsr_sampler_advance. */
static void tick_all(void *context, const tsr_progress *progress)
{
    pass *p = context;
    tsr_progress all = *progress;
    all.step += p->s->population.n_step * p->n;
    p->tick(p->context, &all);
}

/* Makes steps of all replicas at the present beta, and then averages over all
 * replicas what their moves have learnt. */
static tsr_status run_steps(pass *p, long n_step, tsr_err *err)
{
    int n_done;
    p->s->is_flat = 1;
    p->s->flat_beta = p->beta;
    tsr_status status =
        tsr_sampler_advance(p->s, p->record, 1, n_step, 1,
                            p->tick == NULL ? NULL : tick_all, p, &n_done, err);
    p->s->is_flat = 0;
    p->s->population.n_step += n_step;
    TSR_THEN(status, tsr_sampler_share_learnt(p->s, err));
    TSR_THEN(status, tsr_chain_average_steps(p->s->chain, p->n, err));
    return status;
}

/* Sets weight [n] to L^step, divided by the greatest weight. step: change of
 * beta. Returns (sum w)^2 / (n sum w^2), the effective sample size as a share
 * of the population. */
static double set_weights(pass *p, double step)
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
    return tsr_clock_s() > p->deadline;
}

/* The greatest increase of beta that keeps the wanted effective sample size, by
 * bisection. */
static double find_step(pass *p)
{
    const double wanted = is_late(p) ? late_share : wanted_share;
    double low = 0.0, high = 1.0 - p->beta;
    if (set_weights(p, high) >= wanted)
        return high;
    for (int k = 0; k < 60; k++) {
        const double middle = 0.5 * (low + high);
        *(set_weights(p, middle) >= wanted ? &low : &high) = middle;
    }
    return low > 0.0 ? low : high;
}

/* Rate at which the communication barrier grows with beta (Syed et al. 2022):
 * half the mean absolute difference of two replicas' log likelihoods. */
static double barrier_rate(const pass *p)
{
    double sum = 0.0;
    memcpy(p->before, p->log_lik, (size_t)p->n * sizeof *p->before);
    gsl_sort(p->before, 1, (size_t)p->n);
    for (int i = 0; i < p->n; i++)
        sum += (2.0 * i - p->n + 1.0) * p->before[i];
    return sum / ((double)p->n * (p->n - 1.0));
}

/* Chooses a parent for each replica of the group [first, first + per_group), by
 * systematic resampling: points u, u + 1, ... on the line of all weights. The
 * number of children of a replica is its scaled weight, rounded up or down. The
 * first child takes the place of the replica itself, so that it is not
 * copied. */
static void choose_parents(pass *p, int first, double u)
{
    const int end = first + p->per_group;
    double sum = 0.0, upto = 0.0;
    int n_point = 0, free_slot = first;
    for (int i = first; i < end; i++)
        sum += p->weight[i];
    for (int i = first; i < end; i++) {
        upto += p->weight[i] * p->per_group / sum;
        const int n_upto = i + 1 < end ? (int)fmin(ceil(upto - u), p->per_group)
                                       : p->per_group;
        p->n_child[i] = n_upto - n_point;
        p->parent[i] = p->n_child[i] > 0 ? i : -1;
        n_point = n_upto;
    }
    for (int i = first; i < end; i++)
        for (int k = 1; k < p->n_child[i]; k++) {
            while (p->parent[free_slot] >= 0)
                free_slot++;
            p->parent[free_slot] = i;
        }
}

static void part_parents(tsr_sampler *s, void *context, int first, int end,
                         tsr_archive *a)
{
    const pass *p = context;
    for (int i = first * s->n_temp; i < end * s->n_temp; i++)
        if (p->is_sent[i])
            tsr_sampler_part_chain(s->chain[i], a);
}

/* Copies parents over replicas without children. */
static tsr_status copy_parents(pass *p, tsr_err *err)
{
    tsr_sampler *s = p->s;
    memset(p->is_sent, 0, (size_t)p->n * sizeof *p->is_sent);
    for (int i = 0; i < p->n; i++)
        p->is_sent[p->parent[i]] |=
            tsr_sampler_owner(s, i / s->n_temp) !=
            tsr_sampler_owner(s, p->parent[i] / s->n_temp);
    TSR_TRY(tsr_sampler_share(s, -1, part_parents, p, err));
    for (int i = s->first * s->n_temp; i < s->end * s->n_temp; i++)
        if (p->parent[i] != i)
            tsr_chain_copy(s->chain[i], s->chain[p->parent[i]]);
    return TSR_OK;
}

/* Computes the weights, multiplies each group's evidence estimate by their
 * mean, and copies parents over replicas without children. */
static tsr_status resample(pass *p, double step, tsr_err *err)
{
    const tsr_target *t = p->s->target;
    double top = -HUGE_VAL;
    for (int i = 0; i < p->n; i++)
        top = fmax(top, p->log_lik[i]);
    set_weights(p, step);
    for (int g = 0; g < t->n_group; g++) {
        const int first = g * p->per_group;
        double sum = 0.0;
        for (int i = first; i < first + p->per_group; i++)
            sum += p->weight[i];
        t->group_log_z[g] += step * top + log(sum / p->per_group);
        choose_parents(
            p, first,
            tsr_sampler_uniform(p->s, (uint64_t)p->n_level, (uint64_t)g));
    }
    TSR_TRY(tsr_ranks_broadcast(p->parent, (size_t)p->n * sizeof *p->parent, 0,
                                err));
    return copy_parents(p, err);
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

/* Makes steps until the log likelihoods have decorrelated from those at the
 * start, at most about most_each steps. */
static tsr_status decorrelate(pass *p, long most_each, tsr_err *err)
{
    const long n_part =
        tsr_target_has_global_moves(p->s->target) ? 4 * PARTS : PARTS;
    const long part = most_each / n_part > 0 ? most_each / n_part : 1;
    tsr_status status = TSR_OK;
    TSR_TRY(read_log_lik(p, p->before, err));
    for (long n = 0; n < most_each && status == TSR_OK; n += part) {
        status = run_steps(p, part, err);
        TSR_THEN(status, read_log_lik(p, p->log_lik, err));
        int is_done = p->s->is_stopped || is_late(p) ||
                      correlation(p->n, p->before, p->log_lik) < forgotten;
        TSR_THEN(status, tsr_ranks_broadcast(&is_done, sizeof is_done, 0, err));
        if (is_done)
            break;
    }
    return status;
}

/* ---- from levels to ladders ---- */

static tsr_status store_level(pass *p, double barrier, tsr_err *err)
{
    if (p->n_level == p->capacity) {
        const int capacity = 2 * p->capacity + 16;
        level *more = realloc(p->level, (size_t)capacity * sizeof *more);
        TSR_TRY(tsr_allocated(more, err));
        p->level = more, p->capacity = capacity;
    }
    if (p->s->n_temp == 1 && p->n_level > 0) /* only the last level is used */
        free_level(p, &p->level[p->n_level - 1]);
    level *l = &p->level[p->n_level];
    *l = (level){p->beta, barrier, NULL};
    l->replica = calloc((size_t)p->s->n_chain, sizeof(*l->replica));
    TSR_TRY(tsr_allocated(l->replica, err));
    const int k = p->n_level++ % p->s->n_temp;
    for (int c = p->s->first; c < p->s->end; c++) {
        tsr_archive_begin(&l->replica[c]);
        tsr_chain_archive(p->s->chain[c * p->s->n_temp + k], &l->replica[c]);
        if (l->replica[c].failed)
            return tsr_no_memory(err);
    }
    return TSR_OK;
}

static double interpolate(double x, double x0, double x1, double y0, double y1)
{
    const double share = x1 > x0 ? (x - x0) / (x1 - x0) : 1.0;
    return y0 + fmin(fmax(share, 0.0), 1.0) * (y1 - y0);
}

/* beta at which the barrier from the prior has the wanted value. */
static double beta_at(const pass *p, double wanted)
{
    int l = 1;
    while (l + 1 < p->n_level && p->level[l].barrier < wanted)
        l++;
    const level *a = &p->level[l - 1], *b = &p->level[l];
    return interpolate(wanted, a->barrier, b->barrier, a->beta, b->beta);
}

/* Barrier from the prior to beta. */
static double barrier_at(const pass *p, double beta)
{
    int l = 1;
    while (l + 1 < p->n_level && p->level[l].beta < beta)
        l++;
    const level *a = &p->level[l - 1], *b = &p->level[l];
    return interpolate(beta, a->beta, b->beta, a->barrier, b->barrier);
}

/* The level whose barrier from the prior is nearest to `barrier`. */
static const level *nearest_level(const pass *p, double barrier)
{
    const level *best = p->level;
    for (int l = 1; l < p->n_level; l++)
        if (fabs(p->level[l].barrier - barrier) < fabs(best->barrier - barrier))
            best = &p->level[l];
    return best;
}

/* Sets the ladders' temperatures, and starts the replica at each temperature
 * from a replica of the nearest level. */
static void start_ladders(pass *p)
{
    const tsr_sampler *s = p->s;
    const double hot = barrier_at(p, 1.0 / s->target->t_max);
    const double all = p->level[p->n_level - 1].barrier - hot;
    double beta[TSR_MAX_TEMPERATURES];
    for (int k = 0; k < s->n_temp; k++) {
        const double wanted =
            hot +
            all * (s->n_temp > 1 ? 1.0 - (double)k / (s->n_temp - 1) : 1.0);
        const level *l = nearest_level(p, wanted);
        beta[k] = beta_at(p, wanted);
        for (int c = s->first; c < s->end; c++)
            tsr_chain_restore_copy(s->chain[c * s->n_temp + k], &l->replica[c]);
    }
    for (int c = 0; c < s->n_chain; c++)
        tsr_ladder_set(s->ladder[c], beta);
}

/* ---- the pass ---- */

/* Number of steps at beta = 0 after which a chain is independent of its group's
 * start. Global moves need fewer steps. Docked chains need several accepted
 * placements, and one in fifty to three steps draws one, of which a fifth is
 * accepted. */
static long n_prior_step(const tsr_target *t)
{
    const long n = (t->topology->contacts > 0 ? 1500 : 500) +
                   5L * (t->topology->n_torsion + t->topology->n_side);
    return tsr_target_has_global_moves(t) ? n / 3 : n;
}

/* The levels from beta = 0 to 1. All ranks compute the same; where clocks or
 * the last bit of exp() on processors of different types decide, rank 0's
 * decision is broadcast. */
static tsr_status raise_beta(pass *p, long most_each, tsr_err *err)
{
    double barrier = 0.0;
    tsr_status status = run_steps(p, n_prior_step(p->s->target), err);
    TSR_THEN(status, read_log_lik(p, p->log_lik, err));
    double rate = barrier_rate(p);
    TSR_THEN(status, store_level(p, barrier, err));
    while (p->beta < 1.0 && status == TSR_OK && !p->s->is_stopped) {
        const double old_rate = rate;
        double step = find_step(p);
        TSR_TRY(tsr_ranks_broadcast(&step, sizeof step, 0, err));
        status = resample(p, step, err);
        p->beta = p->beta + step < 1.0 ? p->beta + step : 1.0;
        TSR_THEN(status, tsr_sampler_refresh(p->s, err));
        TSR_THEN(status, decorrelate(p, most_each, err));
        rate = barrier_rate(p);
        barrier += 0.5 * (old_rate + rate) * step;
        TSR_THEN(status, store_level(p, barrier, err));
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
    p.deadline = seconds > 0.0 ? tsr_clock_s() + seconds : HUGE_VAL;
    p.n = s->n_chain * s->n_temp;
    if (t->likelihood == NULL || t->n_group == 0 || t->starts_in_pool ||
        p.n < TSR_POPULATION_LEAST || s->population.n_level > 0 ||
        tsr_likelihood_min_beta(t->likelihood) > 0.0)
        return TSR_OK;
    TSR_TRY(TSR_ANNOUNCE(s, err, .what = TSR_CALL_POPULATE, .n = most_each,
                         .x = seconds));
    s->is_nested = 1;
    p.per_group = t->chains_each * s->n_temp;
    tsr_status status = pass_init(&p, err);
    for (int g = 0; g < t->n_group; g++)
        t->group_log_z[g] = 0.0;
    TSR_THEN(status, tsr_sampler_refresh(s, err)); /* the chains may have been
                                                      restored */
    TSR_THEN(status, raise_beta(&p, most_each, err));
    if (status == TSR_OK && !s->is_stopped) {
        start_ladders(&p);
        s->population.n_level = p.n_level;
        status = tsr_sampler_refresh(s, err);
    }
    pass_clear(&p);
    s->is_nested = 0;
    return status;
}

tsr_population tsr_sampler_population(const tsr_sampler *sampler)
{
    return sampler->population;
}
