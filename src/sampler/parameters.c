/* The table of a chain's parameters, the proposals for them, and the adaptation
 * of step sizes.
 *
 * Data of one molecule often leave a narrow ridge in the plane of c1 and c2,
 * with correlations of -0.99, along which steps on c1 alone or c2 alone make
 * slow progress. So warm-up learns the covariance, with more weight on late
 * values, and steps follow its principal axes. Lengths are in units of the
 * priors' widths. */
#include "sampler/parameters.h"

#include "moves/move.h"

#include <gsl/gsl_randist.h>
#include <gsl/gsl_sf_gamma.h>
#include <math.h>

/* The best acceptance for steps in one dimension (Gelman, Roberts & Gilks
 * 1996). */
static const double best_acceptance = 0.44;

/* ---- the table ---- */

/* Weights of the states in every mixture; constant and equal if they are not
 * inferred. */
static void add_weights(tsr_parameters *p, int infer)
{
    p->weight = p->n;
    for (int k = 0; k < p->n_mixture * p->n_state; k++)
        p->table[p->n++] = (tsr_parameter){
            .name = "weight",
            .doc = "weight of the state",
            .infer = infer,
            .start = 1.0 / p->n_state,
            .high = 1.0,
            .shape = TSR_PRIOR_SIMPLEX,
            .log_norm = k % p->n_state == 0 ? gsl_sf_lngamma(p->n_state) : 0.0,
            .step = infer ? TSR_STEP_PAIR : TSR_STEP_NONE,
            .scope = TSR_CHANGES_MEAN};
}

static void add_block(tsr_parameters *p, tsr_block block)
{
    block.kind = p->table[block.first].step;
    block.scope = p->table[block.first].scope;
    p->learnt.log_step[p->n_block] =
        log(block.kind == TSR_STEP_PAIR ? 0.5 : 0.1);
    p->block[p->n_block++] = block;
}

/* Adds the blocks of term number d: one for each parameter with random-walk
 * steps, and one for all parameters that the term draws from their
 * conditional. */
static void add_term_blocks(tsr_parameters *p, const tsr_term *term, int d)
{
    int first_conditional = -1;
    for (int i = 0; i < term->n_parameter; i++) {
        const tsr_parameter *q = &term->parameter[i];
        if (q->step == TSR_STEP_WALK)
            add_block(p, (tsr_block){.term = d,
                                     .mixture = -1,
                                     .first = term->first + i,
                                     .n = 1,
                                     .name = q->name});
        if (q->step == TSR_STEP_CONDITIONAL && first_conditional < 0)
            first_conditional = term->first + i;
    }
    if (first_conditional >= 0)
        add_block(p, (tsr_block){.term = d,
                                 .mixture = -1,
                                 .first = first_conditional,
                                 .n = 1,
                                 .name = "scale and background"});
}

/* Adds a block for each dissociation constant of the species, or for their mass
 * fractions in each sample. */
static void add_mixing_blocks(tsr_parameters *p, const tsr_likelihood *l)
{
    const int first = l == NULL ? 0 : l->n_parameter - l->n_mixing;
    for (int i = 0, n = 1; l != NULL && i < l->n_mixing; i += n) {
        const tsr_parameter *q = &l->mixing[i];
        n = q->step == TSR_STEP_PAIR ? l->n_species : 1;
        if (q->step != TSR_STEP_NONE)
            add_block(p, (tsr_block){.term = -1,
                                     .mixture =
                                         n > 1 && l->n_mixture > 1 ? i / n : -1,
                                     .first = first + i,
                                     .n = n,
                                     .name = q->name});
    }
}

static void add_blocks(tsr_parameters *p, const tsr_likelihood *l)
{
    for (int m = 0; m < p->n_mixture; m++)
        if (p->table[p->weight].step == TSR_STEP_PAIR)
            add_block(p, (tsr_block){.term = -1,
                                     .mixture = p->n_mixture > 1 ? m : -1,
                                     .first = p->weight + m * p->n_state,
                                     .n = p->n_state,
                                     .name = "weights"});
    add_mixing_blocks(p, l);
    for (int i = 0; p->contrast >= 0 && i < TSR_N_CONTRAST; i++)
        if (p->table[p->contrast + i].infer)
            add_block(p, (tsr_block){.term = -1,
                                     .mixture = -1,
                                     .first = p->contrast + i,
                                     .n = 1,
                                     .axis = i,
                                     .name = p->table[p->contrast + i].name});
    for (int d = 0; l != NULL && d < l->n_term; d++)
        add_term_blocks(p, l->term[d], d);
}

tsr_parameters *tsr_parameters_new(tsr_pool *pool,
                                   const tsr_likelihood *likelihood,
                                   const tsr_parameter *contrast, int n_state,
                                   int infer_weights)
{
    const tsr_likelihood *l = likelihood;
    const int n_mixture = l == NULL ? 1 : l->n_mixture;
    const size_t capacity = (size_t)((l == NULL ? 0 : l->n_parameter) +
                                     TSR_N_CONTRAST + n_mixture * n_state);
    tsr_parameters *p = tsr_pool_new(pool, 1, sizeof *p);
    if (p == NULL)
        return NULL;
    p->contrast = -1;
    p->n_state = n_state;
    p->n_mixture = n_mixture;
    tsr_pool_array(pool, p->table, capacity);
    tsr_pool_array(pool, p->block, capacity);
    tsr_pool_array(pool, p->learnt.log_step, capacity);
    if (pool->failed)
        return NULL;
    for (int d = 0; l != NULL && d < l->n_term; d++)
        for (int i = 0; i < l->term[d]->n_parameter; i++)
            p->table[p->n++] = l->term[d]->parameter[i];
    for (int i = 0; l != NULL && i < l->n_mixing; i++)
        p->table[p->n++] = l->mixing[i];
    if (contrast != NULL) {
        p->contrast = p->n;
        for (int i = 0; i < TSR_N_CONTRAST; i++)
            p->table[p->n++] = contrast[i];
    }
    add_weights(p, infer_weights && n_state > 1);
    add_blocks(p, l);
    return p;
}

void tsr_parameters_start(const tsr_parameters *parameters, double *theta)
{
    for (int i = 0; i < parameters->n; i++)
        theta[i] = parameters->table[i].start;
}

double tsr_parameters_log_prior(const tsr_parameters *parameters,
                                const double *theta)
{
    double sum = 0.0;
    for (int i = 0; i < parameters->n; i++)
        sum += tsr_parameter_log_prior(&parameters->table[i], theta[i]);
    return sum;
}

const double *tsr_parameters_contrast(const tsr_parameters *parameters,
                                      const double *theta)
{
    return parameters->contrast < 0 ? NULL : theta + parameters->contrast;
}

/* ---- proposals ---- */

static double step_size(const tsr_parameters *p, int block)
{
    return exp(p->learnt.log_step[block]);
}

static void propose_walk(const tsr_parameters *p, int block, double *theta,
                         gsl_rng *rng, double *to, double *from)
{
    const int i = p->block[block].first;
    const double old = theta[i];
    theta[i] += gsl_ran_gaussian(rng, step_size(p, block));
    *to = tsr_parameter_log_prior(&p->table[i], theta[i]);
    *from = tsr_parameter_log_prior(&p->table[i], old);
}

/* The unit of length of c1 or c2: the width of the prior, or the allowed range
 * if this is smaller. */
static double length_unit(const tsr_parameter *p)
{
    return fmin(p->width, p->high - p->low);
}

static int has_axes(const tsr_parameters *p)
{
    const tsr_parameter *pair = p->table + p->contrast;
    return p->contrast >= 0 && pair[0].infer && pair[1].infer;
}

/* A step along a principal axis of c1 and c2, or of the inferred parameter
 * alone if the other is fixed. */
static void propose_along_axis(const tsr_parameters *p, int block,
                               double *theta, gsl_rng *rng, double *to)
{
    const tsr_parameter *pair = p->table + p->contrast;
    double *value = theta + p->contrast;
    const double angle = has_axes(p) ? p->learnt.angle : 0.0;
    const double along[2] = {cos(angle), sin(angle)};
    const double across[2] = {-along[1], along[0]};
    const double *direction = p->block[block].axis == 0 ? along : across;
    const double was[2] = {value[0], value[1]};
    const double length = gsl_ran_gaussian(rng, step_size(p, block));
    *to = 0.0;
    for (int i = 0; i < 2; i++)
        if (pair[i].infer)
            value[i] += length * direction[i] * length_unit(&pair[i]);
    for (int i = 0; i < 2; i++)
        *to += tsr_parameter_log_prior(&pair[i], value[i]) -
               tsr_parameter_log_prior(&pair[i], was[i]);
}

/* Redistributes the weight of two states or species: a normal step of log(x /
 * (1 - x)), where x is the share of the first. The Jacobian of this coordinate
 * adds log(x (1 - x)) at the new x less that at the old x to *to. */
static int propose_weights(const tsr_parameters *p, int block, double *theta,
                           gsl_rng *rng, double *to)
{
    const unsigned long n = (unsigned long)p->block[block].n;
    int a = (int)gsl_rng_uniform_int(rng, n);
    int b = (int)gsl_rng_uniform_int(rng, n - 1);
    b += b >= a;
    double *weight = theta + p->block[block].first;
    double *one = &weight[a], *other = &weight[b];
    const double was[2] = {*one, *other}, both = was[0] + was[1];
    double odds =
        log(was[0] / was[1]) + gsl_ran_gaussian(rng, step_size(p, block));
    double share = 1.0 / (1.0 + exp(-odds));
    *to = log(share) + log1p(-share) - log(was[0] / both) - log(was[1] / both);
    *one = both * share;
    *other = both - *one;
    return *one > 0.0 && *other > 0.0;
}

int tsr_parameters_propose(const tsr_parameters *parameters, int block,
                           const tsr_likelihood *likelihood,
                           const tsr_point *now, tsr_point *trial, double beta,
                           gsl_rng *rng, double *to, double *from)
{
    const tsr_parameters *p = parameters;
    const tsr_block *b = &p->block[block];
    int possible = 1;
    *to = *from = 0.0;
    if (b->kind == TSR_STEP_WALK) {
        propose_walk(p, block, trial->theta, rng, to, from);
    } else if (b->kind == TSR_STEP_AXES) {
        propose_along_axis(p, block, trial->theta, rng, to);
    } else if (b->kind == TSR_STEP_PAIR) {
        possible = propose_weights(p, block, trial->theta, rng, to);
    } else {
        const tsr_term *term = likelihood->term[b->term];
        const void *fit = now->fit[b->term];
        const int at = term->first;
        term->type->draw(term, fit, beta, rng, trial->theta + at);
        *to = term->type->log_density(term, fit, beta, now->theta + at);
        *from = term->type->log_density(term, fit, beta, trial->theta + at);
    }
    /* with NaN the step goes on, so that the acceptance reports it */
    return possible && *to != -(double)INFINITY;
}

/* ---- adaptation ---- */

/* Largest log step size of a block; wider steps would mostly leave the allowed
 * range. */
static double largest_log_step(tsr_step_kind kind)
{
    return kind == TSR_STEP_AXES   ? log(4.0)
           : kind == TSR_STEP_PAIR ? 2.0
                                   : (double)INFINITY;
}

void tsr_parameters_learn(tsr_parameters *parameters, int block, double alpha)
{
    tsr_parameter_learnt *l = &parameters->learnt;
    const tsr_step_kind kind = parameters->block[block].kind;
    if (kind != TSR_STEP_CONDITIONAL)
        l->log_step[block] =
            fmin(l->log_step[block] +
                     tsr_move_robbins_monro(l->n, alpha, best_acceptance),
                 largest_log_step(kind));
}

void tsr_parameters_learn_axes(tsr_parameters *parameters, const double *theta)
{
    enum { LEAST = 100 };
    const tsr_parameters *p = parameters;
    tsr_parameter_learnt *l = &parameters->learnt;
    l->n++;
    if (!has_axes(p))
        return;
    double gain = 2.0 / (l->n_seen + 3.0), d[2];
    for (int i = 0; i < 2; i++) {
        d[i] =
            theta[p->contrast + i] / length_unit(&p->table[p->contrast + i]) -
            l->mean[i];
        l->mean[i] += (l->n_seen > 0.0 ? gain : 1.0) * d[i];
    }
    if (l->n_seen++ == 0.0)
        return;
    l->covariance[0] += gain * (d[0] * d[0] - l->covariance[0]);
    l->covariance[1] += gain * (d[0] * d[1] - l->covariance[1]);
    l->covariance[2] += gain * (d[1] * d[1] - l->covariance[2]);
    if (l->n_seen >= LEAST)
        l->angle = 0.5 * atan2(2.0 * l->covariance[1],
                               l->covariance[0] - l->covariance[2]);
}

void tsr_parameters_archive(tsr_parameters *parameters, tsr_archive *archive)
{
    tsr_parameter_learnt *l = &parameters->learnt;
    tsr_archive_long(archive, &l->n, 1);
    tsr_archive_real(archive, l->log_step, (size_t)parameters->n_block);
    tsr_archive_real(archive, &l->n_seen, 1);
    tsr_archive_real(archive, l->mean, 2);
    tsr_archive_real(archive, l->covariance, 3);
    tsr_archive_real(archive, &l->angle, 1);
    tsr_archive_long(archive, &l->counts.proposed, 1);
    tsr_archive_long(archive, &l->counts.accepted, 1);
}
