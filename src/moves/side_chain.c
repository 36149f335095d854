/* Side chain: moves the side-chain centre of one residue in its own frame.
 *
 * The centre s is mixed with a draw from its Gaussian prior N(m, C):
 *     s' = m + sqrt(1 - b^2) (s - m) + b L z,   L L^T = C,   0 < b <= 1.
 * This proposal is reversible with respect to that Gaussian, so
 * q(s | s') / q(s' | s) = N(s) / N(s'), which the correction divides out.
 * Source: Neal 1999 (regression and classification using Gaussian processes,
 * section 5); Cotter et al. 2013. */
#include "moves/move.h"

#include <gsl/gsl_randist.h>
#include <math.h>
#include <stdlib.h>

typedef struct {
    double weight, step, target;
} side_options;

static const tsr_field fields[] = {
    {.name = "weight",
     .type = TSR_FIELD_DOUBLE,
     .offset = offsetof(side_options, weight),
     .initial = "1",
     .min = 0.0,
     .max = 1e6,
     .doc = "share of the proposals, relative to the other moves; 0: off"},
    {.name = "step",
     .type = TSR_FIELD_DOUBLE,
     .offset = offsetof(side_options, step),
     .initial = "0.7",
     .min = 1e-3,
     .max = 1.0,
     .doc =
         "share b of a fresh draw before warm-up; 1: independent of the old"},
    {.name = "target",
     .type = TSR_FIELD_DOUBLE,
     .offset = offsetof(side_options, target),
     .initial = "0.4",
     .min = 0.01,
     .max = 0.99,
     .doc = "acceptance that warm-up aims at"},
    {0}};

typedef struct {
    const tsr_topology *topology;
    const tsr_prior *prior;
    side_options options;
    long n;
    double log_step;
} side_state;

static void *side_new(const void *options, const tsr_topology *topology,
                      const tsr_prior *prior)
{
    side_state *s = calloc(1, sizeof *s);
    if (s == NULL)
        return NULL;
    s->topology = topology;
    s->prior = prior;
    s->options = *(const side_options *)options;
    s->log_step = log(s->options.step);
    return s;
}

static void side_free(void *state)
{
    free(state);
}

static int side_targets(const tsr_topology *topology)
{
    return topology->n_side;
}

static void side_propose(void *state, const tsr_conformation *current,
                         tsr_conformation *proposed, gsl_rng *rng,
                         tsr_proposal *proposal)
{
    side_state *s = state;
    const tsr_topology *t = s->topology;
    int i = t->side[gsl_rng_uniform_int(rng, (unsigned long)t->n_side)];
    double b = exp(s->log_step), z[3];
    for (int d = 0; d < 3; d++)
        z[d] = gsl_ran_gaussian_ziggurat(rng, 1.0);
    tsr_prior_side_mix(s->prior, t->residue[i].amino, sqrt(1.0 - b * b),
                       current->side[i], b, z, proposed->side[i]);
    tsr_conformation_place_bodies(t, proposed, i, 1);
    proposal->n_span = 1;
    proposal->span[0] = (tsr_span){i, 1, 0};
}

static double side_log_ratio(const void *state, const tsr_conformation *current,
                             const tsr_conformation *proposed,
                             const tsr_proposal *proposal)
{
    const side_state *s = state;
    int i = proposal->span[0].first;
    tsr_amino amino = s->topology->residue[i].amino;
    return tsr_prior_side_log(s->prior, amino, current->side[i]) -
           tsr_prior_side_log(s->prior, amino, proposed->side[i]);
}

static void side_adapt(void *state, double accept_probability)
{
    side_state *s = state;
    s->log_step +=
        tsr_move_learn(s->n++, accept_probability, s->options.target);
    if (s->log_step > 0.0)
        s->log_step = 0.0;
}

const tsr_move_type tsr_move_side_chain = {
    .name = "side_chain",
    .doc = "moves one side-chain centre in the frame of its residue",
    .source = "Neal 1999; Cotter et al. 2013",
    .options_size = sizeof(side_options),
    .fields = fields,
    .state_new = side_new,
    .state_free = side_free,
    .n_target = side_targets,
    .propose = side_propose,
    .log_ratio = side_log_ratio,
    .adapt = side_adapt};
