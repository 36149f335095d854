/* The move `psi_turn`: turns one free psi, chosen at random, by a normal angle.
 * The shorter side of the chain moves along as a rigid body.
 *
 * The step is symmetric and psi is a coordinate of the prior, so the log of the
 * Hastings ratio is 0. Warm-up adapts the width of the step. Source: Lal 1969.
 */
#include "moves/move.h"

#include <gsl/gsl_randist.h>
#include <math.h>

typedef struct {
    double weight, step; /* the options of every move begin with weight */
} turn_options;

static const tsr_field fields[] = {
    TSR_FIELD(DOUBLE, "weight", turn_options, weight, .initial = "1",
              .min = 0.0, .max = 1e6,
              .doc = "weight of the move among all proposals; 0: off"),
    TSR_FIELD(DOUBLE, "step", turn_options, step, .unit = "rad",
              .initial = "0.1", .min = 1e-6, .max = 3.0,
              .doc = "width of a rotation before warm-up adapts it"),
    {0}};

static const double target_acceptance = 0.3, most_rad = 3.0;

typedef struct {
    const tsr_topology *topology;
    tsr_step common, own;
    int n;
    int *torsion; /* [n] indices of the psi among the torsions */
} turn_state;

static int turn_targets(const void *options, const tsr_topology *topology)
{
    int n = 0;
    (void)options;
    for (int k = 0; k < topology->n_torsion; k++)
        n += topology->torsion[k].kind == TSR_PSI;
    return n;
}

static void *turn_new(tsr_pool *pool, const void *options,
                      const tsr_topology *topology, const tsr_prior *prior)
{
    const turn_options *o = options;
    turn_state *s = tsr_pool_new(pool, 1, sizeof *s);
    (void)prior;
    if (s == NULL ||
        tsr_pool_array(pool, s->torsion, topology->n_torsion + 1) == NULL)
        return NULL;
    s->topology = topology;
    s->common.log_step = log(o->step);
    for (int k = 0; k < topology->n_torsion; k++)
        if (topology->torsion[k].kind == TSR_PSI)
            s->torsion[s->n++] = k;
    return s;
}

/* The residues that moved, in ascending order: that of the torsion, and the
 * shorter side of the chain. Distances within a span of group 1 do not change;
 * within the residue of the torsion (group 0) they do. */
static void set_spans(const tsr_topology *topology, const tsr_torsion *torsion,
                      tsr_proposal *proposal)
{
    const int i = torsion->residue;
    const int first = topology->residue[i].chain_first;
    const int last = topology->residue[i].chain_last;
    proposal->n_span = 0;
    if (!torsion->c_side && i > first)
        proposal->span[proposal->n_span++] = (tsr_span){first, i - first, 1};
    proposal->span[proposal->n_span++] = (tsr_span){i, 1, 0};
    if (torsion->c_side && i < last)
        proposal->span[proposal->n_span++] = (tsr_span){i + 1, last - i, 1};
}

static void turn_propose(void *state, const tsr_conformation *current,
                         tsr_conformation *proposed, gsl_rng *rng,
                         tsr_proposal *proposal)
{
    turn_state *s = state;
    (void)current;
    int k = s->torsion[gsl_rng_uniform_int(rng, (unsigned long)s->n)];
    const tsr_torsion *torsion = &s->topology->torsion[k];
    double width = tsr_step_width(&s->common, &s->own, most_rad);
    tsr_conformation_turn(s->topology, proposed, torsion,
                          gsl_ran_gaussian_ziggurat(rng, width));
    set_spans(s->topology, torsion, proposal);
    proposal->target = k;
    proposal->log_ratio = 0.0;
}

static void turn_adapt(void *state, const tsr_proposal *proposal,
                       double accept_probability)
{
    turn_state *s = state;
    (void)proposal;
    tsr_step_adapt(&s->common, &s->own, accept_probability, target_acceptance,
                   most_rad);
}

static void turn_archive(void *state, tsr_archive *archive)
{
    turn_state *s = state;
    tsr_step_archive(&s->common, 1, archive);
    tsr_step_archive(&s->own, 1, archive);
}

const tsr_move_type tsr_move_psi_turn = {
    .name = "psi_turn",
    .doc = "turns one free psi by a small angle",
    .source = "Lal 1969",
    .options_size = sizeof(turn_options),
    .fields = fields,
    .state_new = turn_new,
    .n_target = turn_targets,
    .propose = turn_propose,
    .adapt = turn_adapt,
    .archive = turn_archive};
