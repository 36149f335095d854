/* Pivot: turns one free torsion, or draws both torsions of a residue from the
 * prior. The shorter side of the chain moves, or the side without fixed
 * residues.
 *
 * A turn is normal with a width learnt for each torsion, or sometimes uniform
 * on the circle. Both are symmetric in the torsion, which is the prior's
 * coordinate, so log_ratio is 0. A draw takes (phi, psi) from their prior
 * density f, so q(old | new) / q(new | old) = f(old) / f(new).
 *
 * Source: Lal 1969; Madras & Sokal 1988. */
#include "core/vec3.h"
#include "moves/move.h"

#include <gsl/gsl_randist.h>
#include <math.h>

typedef struct {
    double weight, step, uniform, draw, target;
} pivot_options;

static const tsr_field fields[] = {
    TSR_FIELD(DOUBLE, "weight", pivot_options, weight, .initial = "3",
              .min = 0.0, .max = 1e6,
              .doc = "weight of the move among all proposals; 0: off"),
    TSR_FIELD(DOUBLE, "step", pivot_options, step, .unit = "rad",
              .initial = "0.2", .min = 1e-6, .max = TSR_PI,
              .doc = "width of a rotation before warm-up adapts it"),
    TSR_FIELD(DOUBLE, "uniform", pivot_options, uniform, .initial = "0.02",
              .min = 0.0, .max = 1.0,
              .doc = "probability of a rotation by any angle"),
    TSR_FIELD(
        DOUBLE, "draw", pivot_options, draw, .initial = "0.2", .min = 0.0,
        .max = 1.0,
        .doc =
            "probability of drawing phi and psi of a residue from the prior"),
    TSR_FIELD_TARGET(pivot_options, "0.3"),
    {0}};

typedef struct {
    const tsr_topology *topology;
    const tsr_prior *prior;
    pivot_options options;
    tsr_step step;     /* common to all torsions */
    tsr_step *torsion; /* [n_torsion] added to the common step */
    int is_uniform;    /* 1: the last turn was uniform on the circle */
} pivot_state;

/* Number of residues that a torsion moves. Steps before warm-up are shorter for
 * torsions that move more residues. */
static double n_moved_residues(const tsr_topology *t,
                               const tsr_torsion *torsion)
{
    const tsr_residue *r = &t->residue[torsion->residue];
    return torsion->c_side ? r->chain_last - torsion->residue
                           : torsion->residue - r->chain_first;
}

static void *pivot_new(tsr_pool *pool, const void *options,
                       const tsr_topology *topology, const tsr_prior *prior)
{
    pivot_state *s = tsr_pool_new(pool, 1, sizeof *s);
    if (s == NULL)
        return NULL;
    s->topology = topology;
    s->prior = prior;
    s->options = *(const pivot_options *)options;
    s->step.log_step = log(s->options.step);
    tsr_pool_array(pool, s->torsion, (size_t)topology->n_torsion + 1);
    if (pool->failed)
        return NULL;
    for (int k = 0; k < topology->n_torsion; k++)
        s->torsion[k].log_step =
            -0.5 *
            log1p(n_moved_residues(topology, &topology->torsion[k]) / 20.0);
    return s;
}

static int pivot_targets(const void *options, const tsr_topology *topology)
{
    (void)options;
    return topology->n_torsion;
}

/* Sets the spans of a proposal. first_changed, last_changed: the changed
 * torsions of residue i in the order of the chain; equal if one changed. */
static void pivot_spans(const tsr_topology *t, int i, int c_side,
                        tsr_torsion_kind first_changed,
                        tsr_torsion_kind last_changed, tsr_proposal *p)
{
    int first = t->residue[i].chain_first, last = t->residue[i].chain_last;
    tsr_span own = {i, 1, 0};
    /* 1: atoms of the residue move relative to each other */
    int inner = first_changed != last_changed || last_changed == TSR_PSI;
    p->n_span = 0;
    if (c_side) {
        int start = inner ? i + 1 : i; /* phi moves all atoms of the residue */
        if (inner)
            p->span[p->n_span++] = own;
        if (start <= last)
            p->span[p->n_span++] = (tsr_span){start, last - start + 1, 1};
        return;
    }
    if (i > first)
        p->span[p->n_span++] = (tsr_span){first, i - first, 1};
    if (inner)
        p->span[p->n_span++] = own;
}

static void step_propose(pivot_state *s, int k, tsr_conformation *proposed,
                         gsl_rng *rng, tsr_proposal *proposal)
{
    const tsr_torsion *torsion = &s->topology->torsion[k];
    s->is_uniform = gsl_rng_uniform(rng) < s->options.uniform;
    double width = tsr_step_width(&s->step, &s->torsion[k], TSR_PI);
    double angle = s->is_uniform ? gsl_ran_flat(rng, -TSR_PI, TSR_PI)
                                 : gsl_ran_gaussian_ziggurat(rng, width);
    proposal->target = k;
    proposal->log_ratio = 0.0;
    tsr_conformation_turn(s->topology, proposed, torsion, angle);
    pivot_spans(s->topology, torsion->residue, torsion->c_side, torsion->kind,
                torsion->kind, proposal);
}

static void draw_propose(pivot_state *s, int k, const tsr_conformation *current,
                         tsr_conformation *proposed, gsl_rng *rng,
                         tsr_proposal *proposal)
{
    const tsr_topology *t = s->topology;
    const tsr_torsion *torsion = &t->torsion[k];
    int i = torsion->residue;
    const tsr_residue *r = &t->residue[i];
    double phi, psi, change[1][2] = {{0.0, 0.0}};
    tsr_prior_torsion_draw(s->prior, i, rng, &phi, &psi);
    if (r->has_phi)
        change[0][0] = phi - tsr_conformation_torsion(t, current, i, TSR_PHI);
    if (r->has_psi)
        change[0][1] = psi - tsr_conformation_torsion(t, current, i, TSR_PSI);
    tsr_conformation_turn_many(t, proposed, i, i, torsion->c_side,
                               (const double(*)[2])change);
    tsr_torsion_kind only = r->has_phi ? TSR_PHI : TSR_PSI;
    pivot_spans(t, i, torsion->c_side, only,
                r->has_phi && r->has_psi ? TSR_PSI : only, proposal);
    proposal->target = -1 - k;
    proposal->log_ratio = tsr_prior_torsion_log_of(s->prior, current, i) -
                          tsr_prior_torsion_log_of(s->prior, proposed, i);
}

/* proposal->target: k if torsion k was turned, -1 - k if both torsions of its
 * residue were drawn. */
static void pivot_propose(void *state, const tsr_conformation *current,
                          tsr_conformation *proposed, gsl_rng *rng,
                          tsr_proposal *proposal)
{
    pivot_state *s = state;
    int k =
        (int)gsl_rng_uniform_int(rng, (unsigned long)s->topology->n_torsion);
    if (gsl_rng_uniform(rng) < s->options.draw)
        draw_propose(s, k, current, proposed, rng, proposal);
    else
        step_propose(s, k, proposed, rng, proposal);
}

static double pivot_log_ratio(const void *state,
                              const tsr_conformation *current,
                              const tsr_conformation *proposed,
                              const tsr_proposal *proposal)
{
    const pivot_state *s = state;
    if (proposal->target >= 0)
        return 0.0; /* a turn by -angle is as likely as one by +angle */
    int i = s->topology->torsion[-1 - proposal->target].residue;
    return tsr_prior_torsion_log_of(s->prior, current, i) -
           tsr_prior_torsion_log_of(s->prior, proposed, i);
}

static void pivot_adapt(void *state, const tsr_proposal *proposal,
                        double accept_probability)
{
    pivot_state *s = state;
    if (proposal->target < 0 || s->is_uniform)
        return;
    tsr_step *own = &s->torsion[proposal->target];
    tsr_step_adapt(&s->step, own, accept_probability, s->options.target,
                   TSR_PI);
}

static void pivot_archive(void *state, tsr_archive *archive)
{
    pivot_state *s = state;
    tsr_step_archive(&s->step, 1, archive);
    tsr_step_archive(s->torsion, (size_t)s->topology->n_torsion, archive);
}

const tsr_move_type tsr_move_pivot = {
    .name = "pivot",
    .doc =
        "turns one free phi or psi, or draws both; one side of the chain moves",
    .source = "Lal 1969; Madras & Sokal 1988",
    .options_size = sizeof(pivot_options),
    .fields = fields,
    .only_torsions = 1,
    .state_new = pivot_new,
    .n_target = pivot_targets,
    .propose = pivot_propose,
    .log_ratio = pivot_log_ratio,
    .adapt = pivot_adapt,
    .archive = pivot_archive};
