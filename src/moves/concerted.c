/* Concerted rotation: changes a stretch of a chain while both its ends stay.
 *
 * The torsions t of some residues before three pivots turn (pre-rotation). The
 * six torsions s of the pivots then close the chain again (closure.h). Bond
 * lengths and angles do not change.
 *
 * Density. Let p(t, s) be the prior's density. With the end of the stretch
 * fixed, the change of variables from (t, s) to (t, frame of the end) has the
 * Jacobian D(t, s) = |det d(frame) / ds|. The density in t, for each closure s,
 * is therefore p(t, s) / D(t, s). The move x = (t, s) -> x' = (t', s') draws
 *
 *     d = t' - t ~ N(0, C(x)),  C^-1 = (I + kappa S(x)) / sigma^2,
 *     s' among the closures J(t') with
 *     P(s' | x, t') = W(s') K(s, s') / Z(x, t'),
 *     W = f_a f_b f_c / D,  Z(x, t') = sum over j in J(t') of W(j) K(s, j),
 *     K(s, j) = exp(sum over the six of (cos(s_j - s) - 1) / width^2).
 *
 * f_a, f_b, f_c are the prior's densities of (phi, psi) at the pivots, and
 * f_abc is their product. s_j are the torsions of closure j. sigma is the
 * learnt width of a turn. S_ij = sum over the atoms e = N, CA, C of pivot a of
 * (dr_e / dt_i).(dr_e / dt_j), so that turns which displace the end of the
 * pre-rotation far are rare. The reverse move draws -d, and s among J(t). The
 * acceptance ratio is p(x') / D(x') over p(x) / D(x) times q(x | x') / q(x' |
 * x), where the sampler computes p. K is symmetric and D cancels, which leaves
 *
 *     log_ratio = log N(-d; 0, C(x')) - log N(d; 0, C(x))
 *               + log P(s | x', t) - log P(s' | x, t') + log D(x) - log D(x')
 *               = log N(-d; 0, C(x')) - log N(d; 0, C(x))
 *               + log Z(x, t') - log Z(x', t)
 *               + log f_abc(s) - log f_abc(s').
 *
 * J(t) is computed from the pieces and the ends alone. If s is not found in
 * J(t) to rounding, the move proposes nothing. Nearly singular closures are
 * left out of J(t) and J(t').
 *
 * Rounding: each move measures the bond angles, solves the closure to rounding
 * and builds each rotation anew from unit vectors. The error of one move is a
 * few 1e-16 in length and angle. The error of n moves grows as sqrt(n).
 *
 * Source: Dodd, Boone & Theodorou 1993; Ulmschneider & Jorgensen 2003; Bottaro
 * et al. 2012. */
#include "moves/concerted.h"

#include "core/vec3.h"
#include "moves/closure.h"
#include "moves/move.h"

#include <gsl/gsl_randist.h>
#include <gsl/gsl_rng.h>
#include <math.h>

/* ---- windows ---- */

enum { LONGEST_GAP = 2 }; /* residues between two pivots */

/* Does the whole rigid unit lie in residues first..last? A unit between two
 * pivots moves with the piece. */
static int has_whole_unit(const tsr_topology *t, int first, int last, int unit)
{
    for (int i = 0; i < t->n_residue; i++)
        if (t->residue[i].unit == unit && (i < first || i > last))
            return 0;
    return 1;
}

/* Returns the next possible pivot after `from`, or -1. */
static int next_pivot(const tsr_topology *t, int from)
{
    int last = t->residue[from].chain_last, to = from + 1;
    while (to <= last && t->residue[to].linked &&
           !tsr_can_pivot(&t->residue[to]))
        to++;
    if (to > last || !t->residue[to].linked || to - from - 1 > LONGEST_GAP)
        return -1;
    for (int i = from + 1; i < to; i++) {
        const tsr_residue *r = &t->residue[i];
        if (!r->flexible &&
            (r->is_fixed || !has_whole_unit(t, from + 1, to - 1, r->unit)))
            return -1;
    }
    return to;
}

static void set_window_turns(const tsr_topology *t, tsr_window *w)
{
    w->n_turn = 0;
    for (int i = w->first; i < w->pivots.a; i++) {
        const tsr_residue *r = &t->residue[i];
        if (r->has_phi && r->amino != TSR_PRO) {
            w->turn[w->n_turn].residue = i;
            w->turn[w->n_turn++].kind = TSR_PHI;
        }
        w->turn[w->n_turn].residue = i;
        w->turn[w->n_turn++].kind = TSR_PSI;
    }
}

int tsr_window_list(const tsr_topology *topology, int n_pre, tsr_window *window)
{
    const tsr_topology *t = topology;
    int n = 0;
    for (int a = 0; a < t->n_residue; a++) {
        int first = a;
        while (a - first < n_pre && first > t->residue[a].chain_first &&
               t->residue[first].linked && t->residue[first - 1].flexible)
            first--;
        if (first == a || !tsr_can_pivot(&t->residue[a]))
            continue;
        int b = next_pivot(t, a), c = b < 0 ? -1 : next_pivot(t, b);
        if (c < 0)
            continue;
        if (window != NULL) {
            tsr_window *w = &window[n];
            w->first = first;
            w->pivots = (tsr_pivots){a, b, c};
            set_window_turns(t, w);
        }
        n++;
    }
    return n;
}

/* ---- the pre-rotation ---- */

/* Density N(0, C) of the turns, C^-1 = (I + kappa S) / width^2 = F F^T with F
 * lower triangular; S as in the comment at the top. */
typedef struct {
    int n;
    double f[TSR_MAX_TURN][TSR_MAX_TURN];
    double log_det; /* of F */
} turns_density;

/* width in rad, kappa in 1/Angstrom^2. */
static void turns_set(turns_density *p, const tsr_window *w,
                      const tsr_conformation *c, double width, double kappa)
{
    double moved[TSR_MAX_TURN][9];
    double scale = 1.0 / (width * width);
    p->n = w->n_turn;
    p->log_det = 0.0;
    for (int i = 0; i < p->n; i++) {
        double(*x)[3] = c->backbone[w->turn[i].residue], u[3], r[3];
        int phi = w->turn[i].kind == TSR_PHI;
        const double *from = phi ? x[TSR_N] : x[TSR_CA];
        tsr_vec3_sub(u, phi ? x[TSR_CA] : x[TSR_C], from);
        tsr_vec3_normalize(u);
        for (int e = TSR_N; e <= TSR_C; e++) {
            tsr_vec3_sub(r, c->backbone[w->pivots.a][e], from);
            tsr_vec3_cross(moved[i] + 3 * e, u, r);
        }
    }
    for (int i = 0; i < p->n; i++) {
        for (int j = 0; j <= i; j++) {
            double sum = 0.0;
            for (int e = 0; e < 9; e++)
                sum += moved[i][e] * moved[j][e];
            sum = scale * (kappa * sum + (i == j ? 1.0 : 0.0));
            for (int k = 0; k < j; k++)
                sum -= p->f[i][k] * p->f[j][k];
            p->f[i][j] = i == j ? sqrt(sum) : sum / p->f[j][j];
        }
        p->log_det += log(p->f[i][i]);
    }
}

/* log N(d; 0, C) without the constant that depends on n alone. The density of
 * -d is the same. */
static double turns_log(const turns_density *p, const double d[TSR_MAX_TURN])
{
    double sum = 0.0;
    for (int j = 0; j < p->n; j++) {
        double z = 0.0;
        for (int i = j; i < p->n; i++)
            z += p->f[i][j] * d[i];
        sum += z * z;
    }
    return p->log_det - 0.5 * sum;
}

/* Returns 0 if an angle exceeds pi, since the reverse move would measure
 * another angle. */
static int turns_draw(const turns_density *p, gsl_rng *rng,
                      double d[TSR_MAX_TURN])
{
    int within = 1;
    for (int i = 0; i < p->n; i++)
        d[i] = gsl_ran_gaussian_ziggurat(rng, 1.0);
    for (int i = p->n - 1; i >= 0; i--) { /* F^T d = z */
        for (int k = i + 1; k < p->n; k++)
            d[i] -= p->f[k][i] * d[k];
        d[i] /= p->f[i][i];
        within &= fabs(d[i]) < TSR_PI;
    }
    return within;
}

/* Turns the torsions of `current` by d and writes the atoms of the window, up
 * to N and CA of pivot a, to `out`. All axes are those of `current`: atoms
 * beyond axis i are turned about axes i, i-1, ..., 0 in this order. */
static void turns_apply(const tsr_window *w, const tsr_conformation *current,
                        const double d[TSR_MAX_TURN], tsr_conformation *out)
{
    tsr_motion all, one;
    int begun = 0, k = 0;
    for (int i = w->first; i <= w->pivots.a; i++) {
        double(*x)[3] = current->backbone[i], (*y)[3] = out->backbone[i];
        if (begun) {
            tsr_motion_apply(&all, y[TSR_N]);
            tsr_motion_apply(&all, y[TSR_CA]);
        }
        if (i == w->pivots.a)
            return;
        for (int kind = TSR_PHI; kind <= TSR_PSI; kind++) {
            if (k < w->n_turn && w->turn[k].residue == i &&
                w->turn[k].kind == (tsr_torsion_kind)kind) {
                int at = kind == TSR_PHI ? TSR_N : TSR_CA;
                tsr_motion_about(&one, x[at], x[at + 1], d[k++]);
                if (begun)
                    tsr_motion_compose(&all, &all, &one);
                else
                    all = one;
                begun = 1;
            }
            if (begun)
                tsr_motion_apply(&all, y[kind == TSR_PHI ? TSR_C : TSR_O]);
        }
    }
}

/* ---- the move ---- */

typedef struct {
    double weight;
    long residues;
    double step, stiffness, width, target;
} concerted_options;

static const tsr_field fields[] = {
    TSR_FIELD(DOUBLE, "weight", concerted_options, weight, .initial = "0.3",
              .min = 0.0, .max = 1e6,
              .doc = "weight of the move among all proposals; 0: off"),
    TSR_FIELD(INT, "residues", concerted_options, residues, .initial = "5",
              .min = 1.0, .max = TSR_MAX_PRE,
              .doc = "residues that turn before the three residues that close "
                     "the chain"),
    TSR_FIELD(DOUBLE, "step", concerted_options, step, .unit = "rad",
              .initial = "0.1", .min = 1e-6, .max = TSR_PI,
              .doc = "width of a rotation, with the end of the chain fixed, "
                     "before warm-up adapts it"),
    TSR_FIELD(DOUBLE, "stiffness", concerted_options, stiffness,
              .unit = "1/Angstrom^2", .initial = "0.3", .min = 0.0, .max = 1e6,
              .doc = "penalty on rotations that move the end of the chain far; "
                     "0: no penalty"),
    TSR_FIELD(DOUBLE, "width", concerted_options, width, .unit = "rad",
              .initial = "1", .min = 0.01, .max = 1e3,
              .doc = "change of the closing torsions above which other "
                     "closures are preferred"),
    TSR_FIELD_TARGET(concerted_options, "0.25"),
    {0}};

typedef struct {
    const tsr_topology *topology;
    const tsr_prior *prior;
    concerted_options options;
    tsr_step step; /* common to all windows */
    int n_window;
    tsr_window *window; /* [n_window] */
    tsr_step *learnt;   /* [n_window] added to the common step */
} concerted_state;

static void *concerted_new(tsr_pool *pool, const void *options,
                           const tsr_topology *topology, const tsr_prior *prior)
{
    concerted_state *s = tsr_pool_new(pool, 1, sizeof *s);
    if (s == NULL)
        return NULL;
    size_t n = (size_t)topology->n_residue + 1;
    s->topology = topology;
    s->prior = prior;
    s->options = *(const concerted_options *)options;
    s->step.log_step = log(s->options.step);
    tsr_pool_array(pool, s->window, n);
    tsr_pool_array(pool, s->learnt, n);
    if (pool->failed)
        return NULL;
    s->n_window =
        tsr_window_list(topology, (int)s->options.residues, s->window);
    return s;
}

static int concerted_targets(const void *options, const tsr_topology *topology)
{
    const concerted_options *o = options;
    return tsr_window_list(topology, (int)o->residues, NULL);
}

static double step_width(const concerted_state *s, int window)
{
    return tsr_step_width(&s->step, &s->learnt[window], TSR_PI);
}

static void set_turns(const concerted_state *s, int window,
                      const tsr_conformation *c, turns_density *turns)
{
    turns_set(turns, &s->window[window], c, step_width(s, window),
              s->options.stiffness);
}

/* Finds the closures of the current conformation (here) and of the turned one
 * (there). *own: index of the current closure in `here`; -1: not found, or no
 * closure there. Returns log Z and sets log_p of the closures there. */
static double find_closures(const concerted_state *s, const tsr_window *w,
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
    *own = tsr_closures_find_current(here, &w->pivots, current);
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
    double d[TSR_MAX_TURN] = {0.0}, log_p[TSR_MAX_CLOSURE];
    turns_density there, back;
    tsr_closures here, found;
    double log_z;
    int own;
    proposal->target = number;
    proposal->n_span = 0;
    proposal->log_ratio = 0.0;
    set_turns(s, number, current, &there);
    if (!turns_draw(&there, rng, d))
        return;
    turns_apply(w, current, d, proposed);
    log_z = find_closures(s, w, current, proposed, &here, &found, log_p, &own);
    if (own < 0) {
        tsr_conformation_copy(s->topology, proposed, current, w->first,
                              w->pivots.a - w->first + 1);
        return;
    }
    int k = tsr_closures_choose(&found, log_p, log_z, rng);
    tsr_closed_apply(&found.at[k], &w->pivots, current, proposed);
    tsr_conformation_place_bodies(s->topology, proposed, w->first,
                                  w->pivots.c - w->first + 1);
    set_turns(s, number, proposed, &back);
    proposal->log_ratio =
        turns_log(&back, d) - turns_log(&there, d) + log_z -
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
    double d[TSR_MAX_TURN] = {0.0}, log_p[TSR_MAX_CLOSURE];
    turns_density there, back;
    tsr_closures here, found;
    double log_z;
    int old;
    for (int i = 0; i < w->n_turn; i++) {
        int r = w->turn[i].residue;
        tsr_torsion_kind kind = w->turn[i].kind;
        d[i] = remainder(
            tsr_conformation_torsion(s->topology, proposed, r, kind) -
                tsr_conformation_torsion(s->topology, current, r, kind),
            2.0 * TSR_PI);
    }
    log_z = find_closures(s, w, current, proposed, &here, &found, log_p, &old);
    int new = tsr_closures_find_current(&found, &w->pivots, proposed);
    if (old < 0 || new < 0)
        return (double)-INFINITY;
    set_turns(s, proposal->target, current, &there);
    set_turns(s, proposal->target, proposed, &back);
    return turns_log(&back, d) - turns_log(&there, d) + log_z -
           tsr_closures_log_z(&here, &found.at[new], s->options.width, log_p) +
           here.at[old].log_f - found.at[new].log_f;
}

static void concerted_adapt(void *state, const tsr_proposal *proposal,
                            double accept_probability)
{
    concerted_state *s = state;
    tsr_step *own = &s->learnt[proposal->target];
    tsr_step_adapt(&s->step, own, accept_probability, s->options.target,
                   TSR_PI);
}

static void concerted_archive(void *state, tsr_archive *archive)
{
    concerted_state *s = state;
    tsr_step_archive(&s->step, 1, archive);
    tsr_step_archive(s->learnt, (size_t)s->n_window, archive);
}

const tsr_move_type tsr_move_concerted = {
    .name = "concerted",
    .doc = "turns some residues and closes the chain at the three residues "
           "after them",
    .source = "Dodd, Boone & Theodorou 1993; Bottaro et al. 2012",
    .options_size = sizeof(concerted_options),
    .fields = fields,
    .state_new = concerted_new,
    .n_target = concerted_targets,
    .propose = concerted_propose,
    .log_ratio = concerted_log_ratio,
    .adapt = concerted_adapt,
    .archive = concerted_archive};
