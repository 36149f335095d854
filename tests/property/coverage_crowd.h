/* The posterior of one truth of slow_coverage.c: by weights of draws of the
 * prior, and by particles that go on from them to temperature 1. */
#ifndef TESTS_COVERAGE_CROWD_H
#define TESTS_COVERAGE_CROWD_H

#include "tests/property/coverage_study.h"

/* ---- which draws a posterior may begin with ---- */

/* log of P(D | X, c2)^beta, about its best c2, where s = 1. */
typedef struct {
    double top, bend, c2; /* value, minus the second derivative, where */
} parabola;

static double at_c2(const study *x, const tsr_likelihood *l, double c2,
                    const double *partial, tsr_point *point)
{
    const double contrast[TSR_N_CONTRAST] = {x->s.tables.contrast[TSR_C1].start,
                                             c2};
    const tsr_prediction none = {.n_state = 0};
    OK(tsr_likelihood_evaluate(l, partial, contrast, none, 1.0, NULL, NULL,
                               point, &err));
    return point->log_lik;
}

/* Where it bends the wrong way, which it does far from the data alone, the top
 * is as low as can be. */
static parabola find_top(const study *x, const tsr_likelihood *l, long draw,
                         double c2, double h, double *partial, tsr_point *point)
{
    const size_t n = (size_t)x->n_profile;
    double f[3];
    for (size_t k = 0; k < n; k++)
        partial[k] = (double)x->partial[(size_t)draw * n + k];
    for (int i = 0; i < 3; i++)
        f[i] = at_c2(x, l, c2 + h * (i - 1), partial, point);
    const double slope = (f[2] - f[0]) / (2.0 * h);
    const double bend = (2.0 * f[1] - f[0] - f[2]) / (h * h);
    if (!(bend > 0.0))
        return (parabola){-1e9, 1.0, c2};
    const double top = f[1] + 0.5 * slope * slope / bend;
    return (parabola){fmax(top, -1e9), bend, c2 + slope / bend};
}

/* ---- weights ---- */

static double largest(long n, const double *x)
{
    double most = -(double)INFINITY;
    for (long i = 0; i < n; i++)
        most = fmax(most, x[i]);
    return most;
}

static double effective(int n, const double *log_weight)
{
    const double most = largest(n, log_weight);
    double sum = 0.0, square = 0.0;
    for (int i = 0; i < n; i++) {
        const double w = exp(log_weight[i] - most);
        sum += w;
        square += w * w;
    }
    return sum * sum / square;
}

/* Systematic resampling: who takes the place of the k-th of m. */
static void resample(gsl_rng *rng, int n, const double *log_weight, int m,
                     int *from)
{
    const double u = gsl_rng_uniform(rng), most = largest(n, log_weight);
    double sum = 0.0, passed = 0.0;
    for (int i = 0; i < n; i++)
        sum += exp(log_weight[i] - most);
    for (int i = 0, k = 0; i < n; i++) {
        passed += exp(log_weight[i] - most) / sum;
        while (k < m && (k + u) / m < passed)
            from[k++] = i;
        for (int j = k; i == n - 1 && j < m; j++)
            from[j] = i; /* rounding */
    }
}

/* ---- posteriors ---- */

/* The particles of one truth and one error: a chain each. A thread has a crowd
 * for each error, for one truth after the other. */
typedef struct {
    study *x;
    int truth, error, n, first_system;
    tsr_batch *batch;
    gsl_rng *rng;
    tsr_saxs saxs;
    tsr_term *term;
    tsr_likelihood likelihood;
    tsr_target *target; /* [n] */
    tsr_chain **chain;  /* [n] */
    long *ancestor;     /* [n] draw of the prior that each comes from */
    double beta;
    parabola *best; /* [n_draw] */
    tsr_body_proposal *ask;
    double *profile, *partial;            /* [n][n_profile], [n_profile] */
    double *log_weight, *log_lik, *other; /* [n_draw] or [n] */
    int *place, *from, *count;            /* [n] */
} crowd;

static crowd crowd_new(study *x, int error, int first_system, tsr_batch *batch)
{
    const size_t n = (size_t)x->n_particle + 1, n_point = (size_t)x->saxs.n;
    const size_t n_draw = (size_t)x->n_draw, n_most = n + n_draw;
    const size_t n_profile = (size_t)x->n_profile;
    crowd c = {.x = x, .error = error, .n = x->n_particle, .saxs = x->saxs};
    c.first_system = first_system;
    c.batch = batch;
    c.saxs.intensity = array(n_point, sizeof *c.saxs.intensity);
    c.saxs.sigma = array(n_point, sizeof *c.saxs.sigma);
    c.target = array(n, sizeof *c.target);
    c.chain = array(n, sizeof *c.chain);
    c.ancestor = array(n, sizeof *c.ancestor);
    c.best = array(n_draw, sizeof *c.best);
    c.ask = array(n, sizeof *c.ask);
    c.profile = array(n * n_profile, sizeof *c.profile);
    c.partial = array(n_profile, sizeof *c.partial);
    c.log_weight = array(3 * n_most, sizeof *c.log_weight);
    c.log_lik = c.log_weight + n_most;
    c.other = c.log_lik + n_most;
    c.place = array(3 * n, sizeof *c.place);
    c.from = c.place + n;
    c.count = c.from + n;
    return c;
}

static void crowd_open(crowd *c, int truth)
{
    c->truth = truth;
    c->rng = rng_new(78, (uint64_t)(c->error * c->x->n_truth + truth));
    make_data(c->x, truth, error_at[c->error], &c->saxs);
    c->likelihood = likelihood_of(c->x, &c->saxs, &c->term);
}

static void crowd_close(crowd *c)
{
    for (int k = 0; k < c->n; k++)
        tsr_chain_free(c->chain[k]);
    tsr_term_free(c->term);
}

static void begin_at(crowd *c, int k, const tsr_conformation *first)
{
    const int stream = c->error * c->x->n_truth + c->truth;
    c->target[k] = c->x->s.target;
    c->target[k].likelihood = &c->likelihood;
    c->target[k].first = first;
    c->target[k].n_group = 0;
    c->target[k].seed += 1000003u * (uint64_t)(stream + 1);
    OK(tsr_chain_new(&c->target[k], c->first_system + k, &c->chain[k], &err));
    OK(tsr_chain_start(c->chain[k], c->batch, &err));
}

/* Each takes the place that it was drawn for; those that were drawn keep
 * theirs. */
static void take_places(crowd *c, const int *from)
{
    int *count = c->count, next = 0;
    memset(count, 0, (size_t)c->n * sizeof *count);
    for (int k = 0; k < c->n; k++)
        count[from[k]]++;
    for (int k = 0; k < c->n; k++) {
        if (count[k] > 0)
            continue;
        while (count[next] < 2)
            next++;
        count[next]--;
        tsr_chain_copy(c->chain[k], c->chain[next]);
        OK(tsr_chain_refresh(c->chain[k], c->batch, &err));
        c->ancestor[k] = c->ancestor[next];
    }
}

/* One step of each; the device is asked for all at once. */
static void step_all(crowd *c, int is_warm)
{
    int n_ask = 0;
    for (int i = 0; i < c->n; i++)
        c->place[i] =
            tsr_chain_propose(c->chain[i], &c->ask[n_ask]) != 0 ? n_ask++ : -1;
    if (n_ask > 0) {
        OK(tsr_batch_submit(c->batch, n_ask, c->ask, &err));
        OK(tsr_batch_wait(c->batch, c->profile, &err));
    }
    for (int i = 0; i < c->n; i++) {
        const int at = c->place[i];
        int accepted;
        const double *answer =
            at < 0 ? NULL : c->profile + (size_t)(at * c->x->n_profile);
        OK(tsr_chain_decide(c->chain[i], answer, is_warm, &accepted, &err));
        if (at >= 0 && accepted)
            tsr_batch_accept(c->batch, tsr_chain_system(c->chain[i]));
        else if (at >= 0)
            tsr_batch_reject(c->batch, tsr_chain_system(c->chain[i]));
    }
}

static void heat(crowd *c, double beta)
{
    c->beta = beta;
    for (int k = 0; k < c->n; k++)
        tsr_chain_set_beta(c->chain[k], beta);
    for (long i = 0; i < c->x->n_stage; i++)
        step_all(c, 1);
}

/* The largest power at which half of the weight is left, of log weights
 * power log_lik[i] + other[i]; at most 1. */
static double cooler(int n, const double *log_lik, const double *other,
                     double from, double enough, double *log_weight)
{
    double low = from, high = 1.0;
    for (int i = 0; i < 40; i++) {
        const double power = i == 0 ? 1.0 : 0.5 * (low + high);
        for (int k = 0; k < n; k++)
            log_weight[k] = power * log_lik[k] + other[k];
        const int is_enough = effective(n, log_weight) >= enough;
        if (i == 0 && is_enough)
            return 1.0;
        *(is_enough ? &low : &high) = power;
    }
    for (int k = 0; k < n; k++)
        log_weight[k] = low * log_lik[k] + other[k];
    return low;
}

/* To temperature 1, by halves of the crowd. */
static void cool(crowd *c)
{
    double *log_lik = c->log_lik, *other = c->other;
    while (c->beta < 1.0) {
        for (int k = 0; k < c->n; k++) {
            log_lik[k] = tsr_chain_log_lik(c->chain[k]);
            other[k] = -c->beta * log_lik[k];
        }
        const double beta =
            cooler(c->n, log_lik, other, c->beta, 0.5 * c->n, c->log_weight);
        resample(c->rng, c->n, c->log_weight, c->n, c->from);
        take_places(c, c->from);
        heat(c, beta);
    }
}

/* The range of Rg beyond which draws have no weight, from one in SOME: of those
 * within 50 nat of the best one, and half as far again. */
static void possible(const study *x, const parabola *parabolas, double *low,
                     double *high)
{
    double best = -(double)INFINITY, least = HUGE_VAL, most = 0.0;
    for (int i = 0; i < x->n_draw; i += SOME)
        best = fmax(best, parabolas[i].top);
    for (int i = 0; i < x->n_draw; i += SOME)
        if (parabolas[i].top > best - 50.0) {
            least = fmin(least, x->rg[i]);
            most = fmax(most, x->rg[i]);
        }
    *low = least - 0.25 * (most - least);
    *high = most + 0.25 * (most - least);
}

/* The parabolas of those draws within DEPTH nat of the best once more, nearer
 * to their tops; the others have no weight from now on. */
static void look_closer(const crowd *c, tsr_point *point)
{
    parabola *best = c->best;
    const study *x = c->x;
    const tsr_parameter *p = &x->s.tables.contrast[TSR_C2];
    double most = -(double)INFINITY;
    for (int i = 0; i < x->n_draw; i++)
        most = fmax(most, best[i].top);
    for (int i = 0; i < x->n_draw; i++) {
        const int is_near = best[i].top > most - DEPTH;
        for (int k = 0; k < 2 && is_near; k++) {
            const double h = fmin(1.5 / sqrt(best[i].bend), 0.5 * p->width);
            const double c2 = fmin(fmax(best[i].c2, p->low), p->high);
            best[i] = find_top(x, &c->likelihood, i, c2, h, c->partial, point);
        }
        if (!is_near)
            best[i].top = -1e9;
    }
}

/* Of all draws of the prior; what has no weight with larger
 * errors, of the crowd `before`, has none. */
static void look_through(const crowd *c, const crowd *before)
{
    parabola *best = c->best;
    const study *x = c->x;
    const tsr_parameter *p = &x->s.tables.contrast[TSR_C2];
    double low = 0.0, high = HUGE_VAL;
    tsr_point point;
    saxs_point(&c->likelihood, &point);
    point.theta[c->term->first] = 0.0; /* s = 1 */
    for (int i = 0; i < x->n_draw; i++)
        best[i] =
            before != NULL ? before->best[i] : (parabola){-1e9, 1.0, p->mean};
    for (int pass = 0; pass < 2 && before == NULL; pass++) {
        for (int i = 0; i < x->n_draw; i++)
            if ((i % SOME == 0) == (pass == 0) && x->rg[i] >= low &&
                x->rg[i] <= high)
                best[i] = find_top(x, &c->likelihood, i, p->mean,
                                   0.5 * p->width, c->partial, &point);
        if (pass == 0)
            possible(x, best, &low, &high);
    }
    look_closer(c, &point);
    tsr_point_clear(&point);
}

/* Log weights of the draws, at the temperature where `enough` draws have
 * weight, whose inverse it returns. */
static double weigh(const crowd *c, double enough)
{
    const long n = c->x->n_draw;
    double *top = c->log_lik, *other = c->other;
    for (long i = 0; i < n; i++) {
        top[i] = c->best[i].top;
        other[i] = -0.5 * log(c->best[i].bend);
    }
    return cooler((int)n, top, other, 1e-5, enough, c->log_weight);
}

/* From the draws of the prior, at the temperature where as many of them have
 * weight as the crowd has particles. */
static void gather(crowd *c)
{
    const study *x = c->x;
    const int *from = c->from;
    look_through(c, NULL);
    const double beta = weigh(c, c->n);
    resample(c->rng, (int)x->n_draw, c->log_weight, c->n, c->from);
    for (int k = 0; k < c->n; k++) {
        begin_at(c, k, x->drawn[from[k]]);
        c->ancestor[k] = from[k];
    }
    heat(c, beta);
}

/* From the crowd of a larger error, at the temperature where most of it has
 * weight. */
static void follow(crowd *c, const crowd *before)
{
    double *log_lik = c->log_lik, *old = c->other;
    double *log_weight = c->log_weight, best = 0.0, power = 1.0;
    for (int k = 0; k < c->n; k++) {
        old[k] = tsr_chain_log_lik(before->chain[k]);
        begin_at(c, k, before->target[k].first);
        tsr_chain_copy(c->chain[k], before->chain[k]);
        OK(tsr_chain_refresh(c->chain[k], c->batch, &err));
        log_lik[k] = tsr_chain_log_lik(c->chain[k]);
        c->ancestor[k] = before->ancestor[k];
    }
    for (int i = 0; i <= 16; i++) {
        const double beta = pow(0.02, i / 16.0);
        for (int k = 0; k < c->n; k++)
            log_weight[k] = beta * log_lik[k] - old[k];
        const double left = effective(c->n, log_weight);
        if (left > best) {
            best = left;
            power = beta;
        }
    }
    for (int k = 0; k < c->n; k++)
        log_weight[k] = power * log_lik[k] - old[k];
    resample(c->rng, c->n, log_weight, c->n, c->from);
    take_places(c, c->from);
    heat(c, power);
}

/* 1 over the chance that two particles, chosen with replacement, descend from
 * one draw of the prior. */
static double effective_ancestors(int n, const long *ancestor)
{
    long alike = 0;
    for (int k = 0; k < n; k++)
        for (int j = 0; j < n; j++)
            alike += ancestor[j] == ancestor[k];
    return (double)n * n / (double)alike;
}

/* A value of the observables goes into the sums of the crowd's posterior. */
static void add_value(const crowd *c, const double *value, const double *truth,
                      double weight)
{
    study *x = c->x;
    const size_t at = (size_t)(c->error * x->n_truth + c->truth) * N_OBSERVABLE;
    for (size_t o = 0; o < N_OBSERVABLE; o++) {
        const double off = value[o] - truth[o];
        x->below[at + o] += off < 0.0 ? weight : 0.0;
        x->mean[at + o] += weight * off;
        x->square[at + o] += weight * off * off;
    }
}

/* Draws at temperature 1. */
static void harvest(crowd *c)
{
    study *x = c->x;
    const size_t at = (size_t)((c->error * x->n_truth + c->truth));
    const double each = 1.0 / ((double)((x->n_step + EVERY - 1) / EVERY) *
                               (double)x->n_particle);
    double truth[N_OBSERVABLE], value[N_OBSERVABLE];
    observe(x, x->truth[c->truth], truth);
    for (long i = 0; i < x->n_step; i++) {
        step_all(c, 0);
        for (int k = 0; k < c->n && i % EVERY == 0; k++) {
            tsr_chain_view view;
            tsr_chain_view_get(c->chain[k], &view);
            observe(x, view.conformation, value);
            add_value(c, value, truth, each);
        }
    }
    x->effective[at] = effective_ancestors(c->n, c->ancestor);
}

/* From weighted draws of the prior alone. */
static void guess(crowd *c, const crowd *before)
{
    study *x = c->x;
    const long n = x->n_draw;
    const size_t at = (size_t)(c->error * x->n_truth + c->truth);
    double *log_weight = c->log_weight;
    double truth[N_OBSERVABLE], value[N_OBSERVABLE], sum = 0.0;
    look_through(c, before);
    for (long i = 0; i < n; i++)
        log_weight[i] = c->best[i].top - 0.5 * log(c->best[i].bend);
    x->effective[at] = effective((int)n, log_weight);
    const double most = largest(n, log_weight);
    for (long i = 0; i < n; i++)
        sum += exp(log_weight[i] - most);
    observe(x, x->truth[c->truth], truth);
    for (long i = 0; i < n; i++) {
        for (size_t o = 0; o < N_OBSERVABLE; o++)
            value[o] = (double)x->value[(size_t)i * N_OBSERVABLE + o];
        add_value(c, value, truth, exp(log_weight[i] - most) / sum);
    }
}

/* In the order of their numbers; -1: none is left, or the time is up. */
static int next_truth(study *x)
{
    pthread_mutex_lock(&x->lock);
    const int is_left =
        x->next_truth < x->n_truth && tsr_clock_s() < x->begin_s + x->limit_s;
    const int t = is_left ? x->next_truth++ : -1;
    pthread_mutex_unlock(&x->lock);
    return t;
}

static void *infer(void *context)
{
    study *x = context;
    const int i = take_next(x, x->n_thread);
    tsr_batch *batch;
    OK(tsr_batch_new(x->s.devices.group[0].engine,
                     x->n_particle > 0 ? x->n_particle : 1, &batch, &err));
    crowd c[N_ERROR];
    for (int e = 0; e < N_ERROR; e++)
        c[e] = crowd_new(x, e, i * x->n_particle, batch);
    for (int t; (t = next_truth(x)) >= 0;) {
        for (int e = 0; e < N_ERROR; e++) {
            crowd_open(&c[e], t);
            if (x->n_particle == 0)
                guess(&c[e], e > 0 ? &c[e - 1] : NULL);
            else if (e == 0)
                gather(&c[e]);
            else
                follow(&c[e], &c[e - 1]);
            if (e > 0)
                crowd_close(&c[e - 1]);
            if (x->n_particle > 0) {
                cool(&c[e]);
                harvest(&c[e]);
            }
        }
        crowd_close(&c[N_ERROR - 1]);
    }
    tsr_batch_free(batch);
    return NULL;
}

#endif
