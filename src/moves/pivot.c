/* Pivot: turns one free torsion; the shorter side of the chain moves.
 *
 * Step: normal of a width learnt for each torsion, or, now and then, uniform on
 * the circle. Both are symmetric and the measure is that of the torsion, so the
 * Hastings correction is zero. Source: Lal 1969; Madras & Sokal 1988. */
#include "moves/move.h"

#include <gsl/gsl_randist.h>
#include <math.h>
#include <stdlib.h>

#define PI 3.14159265358979323846

typedef struct {
    double weight, step, uniform, target;
} pivot_options;

static const tsr_field fields[] = {
    {.name = "weight",
     .type = TSR_FIELD_DOUBLE,
     .offset = offsetof(pivot_options, weight),
     .initial = "1",
     .min = 0.0,
     .max = 1e6,
     .doc = "share of the proposals, relative to the other moves; 0: off"},
    {.name = "step",
     .type = TSR_FIELD_DOUBLE,
     .offset = offsetof(pivot_options, step),
     .unit = "rad",
     .initial = "0.2",
     .min = 1e-6,
     .max = PI,
     .doc = "width of a turn before warm-up has learnt it"},
    {.name = "uniform",
     .type = TSR_FIELD_DOUBLE,
     .offset = offsetof(pivot_options, uniform),
     .initial = "0.05",
     .min = 0.0,
     .max = 1.0,
     .doc = "probability of a turn by any angle"},
    {.name = "target",
     .type = TSR_FIELD_DOUBLE,
     .offset = offsetof(pivot_options, target),
     .initial = "0.3",
     .min = 0.01,
     .max = 0.99,
     .doc = "acceptance that warm-up aims at"},
    {0}};

typedef struct {
    long n;
    double log_step; /* on top of the common one */
} torsion_state;

typedef struct {
    const tsr_topology *topology;
    pivot_options options;
    long n;
    double log_step; /* common to all torsions */
    torsion_state *torsion;
    int last; /* torsion proposed last; -1: by any angle */
} pivot_state;

static void pivot_free(void *state)
{
    pivot_state *s = state;
    if (s == NULL)
        return;
    free(s->torsion);
    free(s);
}

/* Torsions that carry more start with shorter steps. */
static double carried(const tsr_topology *t, const tsr_torsion *torsion)
{
    const tsr_residue *r = &t->residue[torsion->residue];
    return torsion->c_side ? r->chain_last - torsion->residue
                           : torsion->residue - r->chain_first;
}

static void *pivot_new(const void *options, const tsr_topology *topology,
                       const tsr_prior *prior)
{
    (void)prior;
    pivot_state *s = calloc(1, sizeof *s);
    if (s == NULL)
        return NULL;
    s->topology = topology;
    s->options = *(const pivot_options *)options;
    s->log_step = log(s->options.step);
    s->last = -1;
    s->torsion = calloc((size_t)topology->n_torsion + 1, sizeof *s->torsion);
    if (s->torsion == NULL) {
        pivot_free(s);
        return NULL;
    }
    for (int k = 0; k < topology->n_torsion; k++)
        s->torsion[k].log_step =
            -0.5 * log1p(carried(topology, &topology->torsion[k]) / 20.0);
    return s;
}

static int pivot_targets(const tsr_topology *topology)
{
    return topology->n_torsion;
}

static void pivot_spans(const tsr_topology *t, const tsr_torsion *torsion,
                        tsr_proposal *p)
{
    int i = torsion->residue;
    int first = t->residue[i].chain_first, last = t->residue[i].chain_last;
    tsr_span own = {i, 1, 0};
    p->n_span = 0;
    if (torsion->c_side) {
        int start = torsion->kind == TSR_PHI ? i : i + 1;
        if (torsion->kind == TSR_PSI)
            p->span[p->n_span++] = own;
        if (start <= last)
            p->span[p->n_span++] = (tsr_span){start, last - start + 1, 1};
        return;
    }
    if (i > first)
        p->span[p->n_span++] = (tsr_span){first, i - first, 1};
    if (torsion->kind == TSR_PSI)
        p->span[p->n_span++] = own;
}

static void pivot_propose(void *state, const tsr_conformation *current,
                          tsr_conformation *proposed, gsl_rng *rng,
                          tsr_proposal *proposal)
{
    (void)current;
    pivot_state *s = state;
    const tsr_topology *t = s->topology;
    int k = (int)gsl_rng_uniform_int(rng, (unsigned long)t->n_torsion);
    int any = gsl_rng_uniform(rng) < s->options.uniform;
    double width = exp(s->log_step + s->torsion[k].log_step);
    double angle = any ? gsl_ran_flat(rng, -PI, PI)
                       : gsl_ran_gaussian_ziggurat(rng, fmin(width, PI));
    s->last = any ? -1 : k;
    tsr_conformation_turn(t, proposed, &t->torsion[k], angle);
    pivot_spans(t, &t->torsion[k], proposal);
}

static double pivot_log_ratio(const void *state,
                              const tsr_conformation *current,
                              const tsr_conformation *proposed,
                              const tsr_proposal *proposal)
{
    (void)state, (void)current, (void)proposed, (void)proposal;
    return 0.0; /* the density of a turn by -angle is that of one by +angle */
}

static void pivot_adapt(void *state, double accept_probability)
{
    pivot_state *s = state;
    if (s->last < 0)
        return;
    torsion_state *own = &s->torsion[s->last];
    s->log_step +=
        tsr_move_learn(s->n++, accept_probability, s->options.target);
    own->log_step +=
        tsr_move_learn(own->n++, accept_probability, s->options.target);
    double top = log(PI), width = s->log_step + own->log_step;
    if (width > top)
        own->log_step -= width - top;
}

const tsr_move_type tsr_move_pivot = {
    .name = "pivot",
    .doc = "turns one free phi or psi; the shorter side of the chain moves",
    .source = "Lal 1969; Madras & Sokal 1988",
    .options_size = sizeof(pivot_options),
    .fields = fields,
    .state_new = pivot_new,
    .state_free = pivot_free,
    .n_target = pivot_targets,
    .propose = pivot_propose,
    .log_ratio = pivot_log_ratio,
    .adapt = pivot_adapt};
