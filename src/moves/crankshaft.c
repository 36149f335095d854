/* Crankshaft: turns the chain between two CA about the axis through them.
 *
 * Between flexible residues i and j, the move turns C and O of i, all atoms of
 * i+1..j-1 and N of j. All other atoms stay. Bond lengths and all bond angles
 * but N-CA-C of i and j are unchanged. A rotation of atoms preserves volume in
 * Cartesian space, and that volume element is the product of b^2 sin(angle)
 * over the internal coordinates. In the prior's coordinates (torsions and tau =
 * N-CA-C) the rotation therefore has the Jacobian
 *
 *     |d new / d old| = sin tau_i sin tau_j / (sin tau'_i sin tau'_j),
 *
 * which is the Hastings correction; the turn itself is symmetric.
 *
 * Source: Betancourt 2005 (J. Chem. Phys. 123, 174905); Smith & Kortemme 2008
 * (backrub). */
#include "moves/move.h"

#include "core/vec3.h"
#include "molecule/topology.h"

#include <gsl/gsl_randist.h>
#include <math.h>

typedef struct {
    double weight, step, target;
    long window;
} crankshaft_options;

static const tsr_field fields[] = {
    TSR_FIELD(DOUBLE, "weight", crankshaft_options, weight, .initial = "0.5",
              .min = 0.0, .max = 1e6,
              .doc = "weight of the move among all proposals; 0: off"),
    TSR_FIELD(INT, "window", crankshaft_options, window, .unit = "residues",
              .initial = "5", .min = 1, .max = 50,
              .doc = "largest separation of the two CA along the chain; a "
                     "rigid part between them counts as one residue"),
    TSR_FIELD(DOUBLE, "step", crankshaft_options, step, .unit = "rad",
              .initial = "0.2", .min = 1e-6, .max = TSR_PI,
              .doc = "width of a rotation before warm-up adapts it"),
    TSR_FIELD_TARGET(crankshaft_options, "0.3"),
    {0}};

typedef struct {
    int i, j;      /* residues */
    tsr_step step; /* added to the common step */
} window;

typedef struct {
    const tsr_topology *topology;
    crankshaft_options options;
    int n_window;
    window *window; /* [n_window] */
    tsr_step step;  /* common to all windows */
} crankshaft_state;

/* At a chain break, N and O of a residue determine the position of the part
 * beyond the break, so the angle N-CA-C must not change. */
static int is_at_break(const tsr_topology *t, int i)
{
    const tsr_residue *r = &t->residue[i];
    return (i > r->chain_first && !r->has_phi) ||
           (i < r->chain_last && !r->has_psi);
}

/* Lists every pair (i, j) at most `longest` residues apart, and returns their
 * number. No residue between i and j is fixed, and neither i nor j is next to a
 * chain break. */
static int list_windows(const tsr_topology *t, long longest, window *out)
{
    int n = 0;
    for (int i = 0; i < t->n_residue; i++) {
        const tsr_residue *r = &t->residue[i];
        if (!r->flexible || !r->has_psi || is_at_break(t, i) ||
            r->link != TSR_LINK_NONE)
            continue;
        long apart = 0;
        for (int j = i + 1; j <= r->chain_last; j++) {
            const tsr_residue *z = &t->residue[j];
            /* a rigid part counts as one residue */
            apart += z->flexible || t->residue[j - 1].flexible;
            if (apart > longest || z->is_fixed)
                break;
            if (!z->flexible || !z->has_phi || is_at_break(t, j))
                continue;
            if (out != NULL)
                out[n] = (window){i, j, {0, -0.25 * log((double)(j - i))}};
            n++;
        }
    }
    return n;
}

static int crankshaft_targets(const void *options, const tsr_topology *topology)
{
    const crankshaft_options *o = options;
    return list_windows(topology, o->window, NULL);
}

static void *crankshaft_new(tsr_pool *pool, const void *options,
                            const tsr_topology *topology,
                            const tsr_prior *prior)
{
    (void)prior;
    crankshaft_state *s = tsr_pool_new(pool, 1, sizeof *s);
    if (s == NULL)
        return NULL;
    s->topology = topology;
    s->options = *(const crankshaft_options *)options;
    s->step.log_step = log(s->options.step);
    s->n_window = crankshaft_targets(options, topology);
    tsr_pool_array(pool, s->window, (size_t)s->n_window + 1);
    if (pool->failed)
        return NULL;
    list_windows(topology, s->options.window, s->window);
    return s;
}

static double log_sin_tau(const tsr_conformation *c, int i)
{
    double(*x)[3] = c->backbone[i];
    return log(sin(tsr_vec3_angle(x[TSR_N], x[TSR_CA], x[TSR_C])));
}

static double crankshaft_log_ratio(const void *state,
                                   const tsr_conformation *current,
                                   const tsr_conformation *proposed,
                                   const tsr_proposal *proposal)
{
    const crankshaft_state *s = state;
    const window *w = &s->window[proposal->target];
    return log_sin_tau(current, w->i) + log_sin_tau(current, w->j) -
           log_sin_tau(proposed, w->i) - log_sin_tau(proposed, w->j);
}

/* Turns N of residue j. The torsion N-CA-C-O of a residue without psi is not a
 * coordinate of the prior and must not change, so its O is placed again. */
static void turn_n(const tsr_topology *t, double x[4][3], int j,
                   const tsr_motion *motion)
{
    double torsion = tsr_vec3_torsion(x[TSR_N], x[TSR_CA], x[TSR_C], x[TSR_O]);
    tsr_motion_apply(motion, x[TSR_N]);
    if (t->residue[j].has_psi)
        return;
    double bond = tsr_vec3_distance(x[TSR_C], x[TSR_O]);
    double angle = tsr_vec3_angle(x[TSR_CA], x[TSR_C], x[TSR_O]);
    tsr_place_atom(x[TSR_O], x[TSR_N], x[TSR_CA], x[TSR_C], bond, angle,
                   torsion);
}

static void crankshaft_propose(void *state, const tsr_conformation *current,
                               tsr_conformation *proposed, gsl_rng *rng,
                               tsr_proposal *proposal)
{
    crankshaft_state *s = state;
    const tsr_topology *t = s->topology;
    int k = (int)gsl_rng_uniform_int(rng, (unsigned long)s->n_window);
    const window *w = &s->window[k];
    double width = tsr_step_width(&s->step, &w->step, TSR_PI);
    double angle = gsl_ran_gaussian_ziggurat(rng, width);
    double(*first)[3] = proposed->backbone[w->i];
    double(*last)[3] = proposed->backbone[w->j];
    tsr_motion motion;
    tsr_motion_about(&motion, first[TSR_CA], last[TSR_CA], angle);
    tsr_motion_apply(&motion, first[TSR_C]);
    tsr_motion_apply(&motion, first[TSR_O]);
    tsr_conformation_move(t, proposed, w->i + 1, w->j - 1, &motion);
    turn_n(t, last, w->j, &motion);
    tsr_conformation_place_bodies(t, proposed, w->i, 1);
    tsr_conformation_place_bodies(t, proposed, w->j, 1);
    proposal->target = k;
    proposal->n_span = 0;
    proposal->span[proposal->n_span++] = (tsr_span){w->i, 1, 0};
    if (w->j > w->i + 1)
        proposal->span[proposal->n_span++] =
            (tsr_span){w->i + 1, w->j - w->i - 1, 1};
    proposal->span[proposal->n_span++] = (tsr_span){w->j, 1, 0};
    proposal->log_ratio = crankshaft_log_ratio(s, current, proposed, proposal);
}

static void crankshaft_adapt(void *state, const tsr_proposal *proposal,
                             double accept_probability)
{
    crankshaft_state *s = state;
    tsr_step *own = &s->window[proposal->target].step;
    tsr_step_adapt(&s->step, own, accept_probability, s->options.target,
                   TSR_PI);
}

static void crankshaft_archive(void *state, tsr_archive *archive)
{
    crankshaft_state *s = state;
    tsr_step_archive(&s->step, 1, archive);
    for (int k = 0; k < s->n_window; k++)
        tsr_step_archive(&s->window[k].step, 1, archive);
}

const tsr_move_type tsr_move_crankshaft = {
    .name = "crankshaft",
    .doc =
        "turns the residues between two CA about the axis through the two CA",
    .source = "Betancourt 2005; Smith & Kortemme 2008",
    .options_size = sizeof(crankshaft_options),
    .fields = fields,
    .state_new = crankshaft_new,
    .n_target = crankshaft_targets,
    .propose = crankshaft_propose,
    .log_ratio = crankshaft_log_ratio,
    .adapt = crankshaft_adapt,
    .archive = crankshaft_archive};
