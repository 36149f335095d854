/* Side chain: moves the side-chain centre of one residue in the frame of its
 * backbone, or the torsion chi of a nucleotide.
 *
 * A proposal is either a draw from the prior's density g, with the ratio
 * q(old | new) / q(new | old) = g(old) / g(new), or a symmetric Gaussian step,
 * whose width is learnt for each residue type. */
#include "moves/move.h"

#include <gsl/gsl_randist.h>
#include <math.h>

typedef struct {
    double weight, step, draw, target;
} side_options;

static const tsr_field fields[] = {
    TSR_FIELD(DOUBLE, "weight", side_options, weight, .initial = "0.5",
              .min = 0.0, .max = 1e6,
              .doc = "weight of the move among all proposals; 0: off"),
    TSR_FIELD(DOUBLE, "step", side_options, step, .unit = "Angstrom",
              .initial = "0.3", .min = 1e-4, .max = 10.0,
              .doc = "width of a step before warm-up adapts it"),
    TSR_FIELD(DOUBLE, "draw", side_options, draw, .initial = "0.5", .min = 0.0,
              .max = 1.0,
              .doc = "probability of a draw from the prior instead of a step"),
    TSR_FIELD_TARGET(side_options, "0.4"),
    {0}};

typedef struct {
    const tsr_topology *topology;
    const tsr_prior *prior;
    side_options options;
    /* by residue type; the last element is for chi of nucleotides */
    long n[TSR_N_AMINO + 1];          /* number of updates of the width */
    double log_step[TSR_N_AMINO + 1]; /* log width; Angstrom, chi in rad */
} side_state;

static void *side_new(tsr_pool *pool, const void *options,
                      const tsr_topology *topology, const tsr_prior *prior)
{
    side_state *s = tsr_pool_new(pool, 1, sizeof *s);
    if (s == NULL)
        return NULL;
    s->topology = topology;
    s->prior = prior;
    s->options = *(const side_options *)options;
    for (int a = 0; a <= TSR_N_AMINO; a++)
        s->log_step[a] = log(s->options.step);
    return s;
}

static int side_targets(const void *options, const tsr_topology *topology)
{
    (void)options;
    return topology->n_side;
}

/* Index of the step width of residue i. */
static int kind_of(const tsr_topology *t, int i)
{
    const tsr_residue *r = &t->residue[i];
    return r->link == TSR_LINK_NONE ? (int)r->amino : TSR_N_AMINO;
}

static double draw_log_ratio(const side_state *s, int i,
                             const tsr_conformation *current,
                             const tsr_conformation *proposed)
{
    return tsr_prior_side_log(s->prior, i, current->side[i]) -
           tsr_prior_side_log(s->prior, i, proposed->side[i]);
}

/* proposal->target: i for a step of residue i, -1 - i for a draw. */
static void side_propose(void *state, const tsr_conformation *current,
                         tsr_conformation *proposed, gsl_rng *rng,
                         tsr_proposal *proposal)
{
    side_state *s = state;
    const tsr_topology *t = s->topology;
    int i = t->side[gsl_rng_uniform_int(rng, (unsigned long)t->n_side)];
    const int kind = kind_of(t, i);
    double *side = proposed->side[i];
    proposal->log_ratio = 0.0;
    proposal->target = i;
    if (gsl_rng_uniform(rng) < s->options.draw) {
        tsr_prior_side_draw(s->prior, i, rng, side);
        proposal->log_ratio = draw_log_ratio(s, i, current, proposed);
        proposal->target = -1 - i;
    } else {
        double step = exp(s->log_step[kind]);
        for (int d = 0; d < (kind < TSR_N_AMINO ? 3 : 1); d++)
            side[d] += gsl_ran_gaussian_ziggurat(rng, step);
        if (kind == TSR_N_AMINO)
            side[0] = tsr_von_mises_wrap(side[0]);
    }
    tsr_conformation_place_bodies(t, proposed, i, 1);
    proposal->n_span = 1;
    proposal->span[0] = (tsr_span){i, 1, 0};
}

static double side_log_ratio(const void *state, const tsr_conformation *current,
                             const tsr_conformation *proposed,
                             const tsr_proposal *proposal)
{
    return proposal->target >= 0 ? 0.0
                                 : draw_log_ratio(state, -1 - proposal->target,
                                                  current, proposed);
}

static void side_adapt(void *state, const tsr_proposal *proposal,
                       double accept_probability)
{
    side_state *s = state;
    if (proposal->target < 0)
        return;
    const int kind = kind_of(s->topology, proposal->target);
    s->log_step[kind] += tsr_move_robbins_monro(
        s->n[kind]++, accept_probability, s->options.target);
    s->log_step[kind] = fmin(s->log_step[kind], log(10.0));
}

static void side_archive(void *state, tsr_archive *archive)
{
    side_state *s = state;
    const size_t n = TSR_N_AMINO + (s->topology->n_link > 0);
    tsr_archive_long(archive, s->n, n);
    tsr_archive_real(archive, s->log_step, n);
}

const tsr_move_type tsr_move_side_chain = {
    .name = "side_chain",
    .doc = "moves the centre of one side chain in the frame of its residue, or "
           "turns one base",
    .source = "Dunbrack & Cohen 1997 (draws from a rotamer library)",
    .options_size = sizeof(side_options),
    .fields = fields,
    .state_new = side_new,
    .n_target = side_targets,
    .propose = side_propose,
    .log_ratio = side_log_ratio,
    .adapt = side_adapt,
    .archive = side_archive};
