/* Concerted rotation: a stretch of chain changes, both its ends stay.
 *
 * The torsions d of some residues before three pivots turn (pre-rotation), then
 * the six torsions of the pivots close the chain again (closure.h). Bond
 * lengths and angles stay as they are.
 *
 * Density. Let p(t, s) be the prior's density over the torsions t of the
 * pre-rotation and the six s. Where the end is held, (t, s) -> (t, frame of the
 * end) has the Jacobian D(t, s) = |det d(frame) / ds|, so that the density in
 * t, for each of the closures s, is p(t, s) / D(t, s). The move x = (t, s) ->
 * x' = (t', s') draws in these coordinates:
 *
 *     d = t' - t ~ N(0, C(x)),  C^-1 = (I + kappa S(x)) / sigma^2,
 *     s' among the closures S(t') with  P(s' | x, t') = W(s') K(s, s') / Z(x,
 * t'), W = f_a f_b f_c / D,  Z(x, t') = sum over j in S(t') of W(j) K(s, j),
 *     K(s, j) = exp(sum over the six of (cos(j - s) - 1) / width^2),
 *
 * with f the prior's densities of (phi, psi) at the pivots and S_ij = sum over
 * the atoms e = N, CA, C of pivot a of (dr_e / dt_i).(dr_e / dt_j): steps that
 * carry the end of the pre-rotation far are rare. The way back draws -d and, of
 * S(t), s; K is symmetric. The acceptance needs p(x') / D(x') over p(x) / D(x)
 * times q(x | x') / q(x' | x), of which the sampler applies p. The rest is
 *
 *     log_ratio = log N(-d; 0, C(x')) - log N(d; 0, C(x))
 *               + log P(s | x', t) - log P(s' | x, t') + log D(x) - log D(x')
 *               = log N(-d; 0, C(x')) - log N(d; 0, C(x))
 *               + log Z(x, t') - log Z(x', t)
 *               + log f_abc(s) - log f_abc(s'):
 *
 * K and D fall out. S(t) is what the solver finds from the pieces and the ends
 * alone; where s is not in it to rounding, the move proposes nothing. Closures
 * that are all but singular are left out of it, at both ends of the move.
 *
 * Drift: a move measures the bond angles it keeps, closes to rounding (Newton)
 * and builds each rotation anew from unit vectors, so that its error is a few
 * 1e-16 in length and angle; errors of many moves add up like a random walk.
 *
 * Source: Dodd, Boone & Theodorou 1993; Ulmschneider & Jorgensen 2003; Bottaro
 * et al. 2012. */
#include "core/vec3.h"
#include "moves/closure_choice.h"
#include "moves/concerted_turns.h"
#include "moves/move.h"
#include "moves/step.h"

#include <math.h>
#include <stdlib.h>

#define PI 3.14159265358979323846

typedef struct {
    double weight;
    long residues;
    double step, stiffness, width, target;
} concerted_options;

static const tsr_field fields[] = {
    TSR_FIELD(
        DOUBLE, "weight", concerted_options, weight, .initial = "0.3",
        .min = 0.0, .max = 1e6,
        .doc = "share of the proposals, relative to the other moves; 0: off"),
    TSR_FIELD(
        INT, "residues", concerted_options, residues, .initial = "5",
        .min = 1.0, .max = TSR_MAX_PRE,
        .doc =
            "residues that turn before the three that close the chain again"),
    TSR_FIELD(
        DOUBLE, "step", concerted_options, step, .unit = "rad",
        .initial = "0.1", .min = 1e-6, .max = PI,
        .doc = "width of a turn, the end held, before warm-up has learnt it"),
    TSR_FIELD(
        DOUBLE, "stiffness", concerted_options, stiffness,
        .unit = "1/Angstrom^2", .initial = "0.3", .min = 0.0, .max = 1e6,
        .doc = "how much turns that carry the end far are disfavoured; 0: not"),
    TSR_FIELD(
        DOUBLE, "width", concerted_options, width, .unit = "rad",
        .initial = "1", .min = 0.01, .max = 1e3,
        .doc =
            "change of the closing torsions beyond which others are preferred"),
    TSR_FIELD_TARGET(concerted_options, "0.25"),
    {0}};

typedef struct {
    const tsr_topology *topology;
    const tsr_prior *prior;
    concerted_options options;
    tsr_step step;
    int n_window;
    tsr_window *window;
    tsr_step *learnt; /* [n_window] */
} concerted_state;

static void concerted_free(void *state)
{
    concerted_state *s = state;
    if (s == NULL)
        return;
    free(s->window);
    free(s->learnt);
    free(s);
}

static void *concerted_new(const void *options, const tsr_topology *topology,
                           const tsr_prior *prior)
{
    concerted_state *s = calloc(1, sizeof *s);
    if (s == NULL)
        return NULL;
    size_t n = (size_t)topology->n_residue + 1;
    s->topology = topology;
    s->prior = prior;
    s->options = *(const concerted_options *)options;
    s->step.log_step = log(s->options.step);
    s->window = calloc(n, sizeof *s->window);
    s->learnt = calloc(n, sizeof *s->learnt);
    if (s->window == NULL || s->learnt == NULL) {
        concerted_free(s);
        return NULL;
    }
    s->n_window =
        tsr_window_list(topology, (int)s->options.residues, s->window);
    return s;
}

static int concerted_targets(const void *options, const tsr_topology *topology)
{
    const concerted_options *o = options;
    return tsr_window_list(topology, (int)o->residues, NULL);
}

/* ---- the move ---- */

static double step_width(const concerted_state *s, int window)
{
    return tsr_step_width(&s->step, &s->learnt[window], PI);
}

static void set_turns(const concerted_state *s, int window,
                      const tsr_conformation *c, tsr_turns *turns)
{
    tsr_turns_set(turns, &s->window[window], c, step_width(s, window),
                  s->options.stiffness);
}

static double find_both(const concerted_state *s, const tsr_window *w,
                        const tsr_conformation *current,
                        const tsr_conformation *turned, tsr_closures *here,
                        tsr_closures *there, double log_p[TSR_MAX_CLOSURE],
                        int *own)
{
    *own = -1;
    tsr_closures_find(s->prior, &w->pivots, current, turned, current, there);
    if (there->n == 0)
        return 0.0;
    tsr_closures_find(s->prior, &w->pivots, current, current, current, here);
    *own = tsr_closures_own(here, &w->pivots, current);
    return *own < 0 ? 0.0
                    : tsr_closures_log_z(there, &here->at[*own],
                                         s->options.width, log_p);
}

static void concerted_propose(void *state, const tsr_conformation *current,
                              tsr_conformation *proposed, gsl_rng *rng,
                              tsr_proposal *proposal)
{
    concerted_state *s = state;
    int number = (int)gsl_rng_uniform_int(rng, (unsigned long)s->n_window);
    const tsr_window *w = &s->window[number];
    double d[TSR_MAX_TURN], log_p[TSR_MAX_CLOSURE];
    tsr_turns there, back;
    tsr_closures here, found;
    double log_z;
    int own;
    proposal->target = number;
    proposal->n_span = 0;
    proposal->log_ratio = 0.0;
    set_turns(s, number, current, &there);
    if (!tsr_turns_draw(&there, rng, d))
        return;
    tsr_turns_apply(w, current, d, proposed);
    log_z = find_both(s, w, current, proposed, &here, &found, log_p, &own);
    if (own < 0) {
        tsr_conformation_copy(s->topology, proposed, current, w->first,
                              w->pivots.a - w->first + 1);
        return;
    }
    int k = tsr_closures_choose(&found, log_p, log_z, rng);
    tsr_closed_place(&found.at[k], &w->pivots, current, proposed);
    tsr_conformation_place_bodies(s->topology, proposed, w->first,
                                  w->pivots.c - w->first + 1);
    set_turns(s, number, proposed, &back);
    proposal->log_ratio =
        tsr_turns_log(&back, d) - tsr_turns_log(&there, d) + log_z -
        tsr_closures_log_z(&here, &found.at[k], s->options.width, log_p) +
        here.at[own].log_f - found.at[k].log_f;
    proposal->n_span = 1;
    proposal->span[0] = (tsr_span){w->first, w->pivots.c - w->first + 1, 0};
}

static double concerted_log_ratio(const void *state,
                                  const tsr_conformation *current,
                                  const tsr_conformation *proposed,
                                  const tsr_proposal *proposal)
{
    const concerted_state *s = state;
    if (proposal->n_span == 0)
        return 0.0;
    const tsr_window *w = &s->window[proposal->target];
    double d[TSR_MAX_TURN], log_p[TSR_MAX_CLOSURE];
    tsr_turns there, back;
    tsr_closures here, found;
    double log_z;
    int old;
    for (int i = 0; i < w->n_turn; i++) {
        int r = w->turn[i].residue;
        tsr_torsion_kind kind = w->turn[i].kind;
        d[i] = remainder(
            tsr_conformation_torsion(s->topology, proposed, r, kind) -
                tsr_conformation_torsion(s->topology, current, r, kind),
            2.0 * PI);
    }
    log_z = find_both(s, w, current, proposed, &here, &found, log_p, &old);
    int new = tsr_closures_own(&found, &w->pivots, proposed);
    if (old < 0 || new < 0)
        return (double)-INFINITY;
    set_turns(s, proposal->target, current, &there);
    set_turns(s, proposal->target, proposed, &back);
    return tsr_turns_log(&back, d) - tsr_turns_log(&there, d) + log_z -
           tsr_closures_log_z(&here, &found.at[new], s->options.width, log_p) +
           here.at[old].log_f - found.at[new].log_f;
}

static void concerted_adapt(void *state, const tsr_proposal *proposal,
                            double accept_probability)
{
    concerted_state *s = state;
    tsr_step *own = &s->learnt[proposal->target];
    tsr_step_learn(&s->step, own, accept_probability, s->options.target, PI);
}

static void concerted_archive(void *state, tsr_archive *archive)
{
    concerted_state *s = state;
    tsr_step_archive(&s->step, 1, archive);
    tsr_step_archive(s->learnt, (size_t)s->n_window, archive);
}

const tsr_move_type tsr_move_concerted = {
    .name = "concerted",
    .doc = "turns some residues and closes the chain again at three others",
    .source = "Dodd, Boone & Theodorou 1993; Bottaro et al. 2012",
    .options_size = sizeof(concerted_options),
    .fields = fields,
    .state_new = concerted_new,
    .state_free = concerted_free,
    .n_target = concerted_targets,
    .propose = concerted_propose,
    .log_ratio = concerted_log_ratio,
    .adapt = concerted_adapt,
    .archive = concerted_archive};
