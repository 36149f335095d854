/* Collective: turns all free torsions at once, and moves mobile chains as a
 * whole, by a step that costs about the same log likelihood in every direction.
 *
 * A density map determines every position to tenths of an Angstrom. A turn of
 * one torsion displaces everything beyond it and can then be only a hundredth
 * of a radian. Thousands of such turns would have to cooperate to move a
 * domain. Let K be the matrix of second derivatives of -log L by the positions
 * of the bodies, and J the Jacobian of these positions by the torsions and by
 * rotation and shift of mobile chains. The step in these coordinates is
 *
 *     d ~ N(0, s^2 (J' K J + D)^-1),
 *
 * where D is diagonal and bounds the widths in directions that the data do not
 * determine. Warm-up computes the matrix anew at the current conformation, at
 * growing intervals, and learns s from the acceptance rate. After warm-up both
 * are constant, so the reverse step -d is as likely, in the coordinates of the
 * prior, and the log ratio is 0. A mobile chain rotates about the CA of a
 * residue that no torsion moves.
 *
 * Source: Girolami & Calderhead 2011 (the metric, here constant); Roberts,
 * Gelman & Gilks 1997 (the length of a step). */
#include "core/vec3.h"
#include "moves/move.h"

#include <gsl/gsl_randist.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

/* Steps become shorter as coordinates are added, while the cost of a step is
 * the same. With more than MAX_COORDINATES, local moves are more efficient. */
enum { POSE = 6, MAX_COORDINATES = 200 };

typedef struct {
    double weight, step, width, target;
} collective_options;

static const tsr_field fields[] = {
    TSR_FIELD(DOUBLE, "weight", collective_options, weight, .initial = "4",
              .min = 0.0, .max = 1e6,
              .doc = "weight of the move among all proposals, where a density "
                     "map is among the data; 0: off"),
    TSR_FIELD(DOUBLE, "step", collective_options, step, .initial = "2.4",
              .min = 1e-6, .max = 100.0,
              .doc = "length of a step before warm-up adapts it, in the "
                     "standard deviations that the data determine"),
    TSR_FIELD(DOUBLE, "width", collective_options, width, .unit = "rad",
              .initial = "0.3", .min = 1e-6, .max = 3.0,
              .doc = "width of rotations that the data do not determine; "
                     "shifts have ten times this number in Angstrom"),
    TSR_FIELD_TARGET(collective_options, "0.25"),
    {0}};

/* Coordinates of a chain: torsions at..at+n-1 of the topology, of which the
 * first n_left move the N side; then, in a mobile chain, rotation and shift. */
typedef struct {
    int at, n, n_left;
    int first, last, core; /* residues; no torsion moves the CA of `core` */
    int pose;   /* index of its first pose coordinate; -1: not mobile */
    int n_span; /* spans of a proposal */
    tsr_span span[2];
} chain_part;

typedef struct {
    const tsr_topology *topology;
    collective_options options;
    int n_chain, n;      /* n: number of coordinates */
    chain_part *chain;   /* [n_chain] */
    long n_learnt;       /* proposals from which log_step was learnt */
    long next;           /* n_learnt at the next update of the precision */
    double log_step;     /* log s */
    double *precision;   /* [n][n] lower triangle of J' K J + D */
    double *factor;      /* [n][n] its lower Cholesky factor */
    double *step;        /* [n] the latest step */
    double (*change)[2]; /* [n_residue] of phi and psi, rad */
} collective_state;

/* ---- coordinates ---- */

static chain_part read_chain(const tsr_topology *t, int first, int at)
{
    chain_part c = {.at = at,
                    .first = first,
                    .last = t->residue[first].chain_last,
                    .core = first,
                    .pose = -1};
    for (; at + c.n < t->n_torsion; c.n++) {
        const tsr_torsion *turn = &t->torsion[at + c.n];
        if (turn->residue > c.last)
            break;
        c.n_left += !turn->c_side;
        if (!turn->c_side || c.n == 0)
            c.core = turn->residue;
    }
    return c;
}

/* Spans that the torsions of a chain move. phi, turned on the N side, leaves
 * its own residue in place. In a mobile chain, or if the two sides meet, all of
 * the chain is one span. */
static void set_spans(const tsr_topology *t, chain_part *c)
{
    const tsr_torsion *turn = &t->torsion[c->at];
    int to = c->first, from = c->last + 1;
    if (c->n_left > 0)
        to =
            turn[c->n_left - 1].residue + (turn[c->n_left - 1].kind == TSR_PSI);
    if (c->n_left < c->n)
        from = turn[c->n_left].residue;
    if (c->pose >= 0 || to >= from)
        to = from = c->last + 1;
    if (to > c->first)
        c->span[c->n_span++] = (tsr_span){c->first, to - c->first, 0};
    if (from <= c->last)
        c->span[c->n_span++] = (tsr_span){from, c->last + 1 - from, 0};
}

/* Lists the chains and returns the number of coordinates. out NULL: counts
 * only. */
static int list_chains(const tsr_topology *t, chain_part *out, int *n_span)
{
    int n = 0, at = 0, number = 0;
    *n_span = 0;
    for (int i = 0; i < t->n_residue; i = t->residue[i].chain_last + 1) {
        chain_part c = read_chain(t, i, at);
        at += c.n;
        n += c.n;
        /* the shift of a symmetric subunit is a move of rigid_body alone */
        if (t->mobile[number] && t->symmetry.n <= 1) {
            c.pose = n;
            n += POSE;
        }
        set_spans(t, &c);
        *n_span += c.n_span;
        if (out != NULL)
            out[number] = c;
        number++;
    }
    return n;
}

static int collective_targets(const void *options, const tsr_topology *topology)
{
    int n_span;
    (void)options;
    const int n = list_chains(topology, NULL, &n_span);
    return n <= MAX_COORDINATES && n_span + topology->n_attached <= TSR_MAX_SPAN
               ? n
               : 0;
}

/* Adds D to the precision matrix. A combination of turns d that leaves all
 * bodies in place to first order still displaces them to second order, by about
 * d^2 / 2 times the displacement per radian of a single turn. D limits d so
 * that this second-order displacement costs about one nat. The width of shifts,
 * in Angstrom, is ten times that of turns, in rad. */
static void add_diagonal(const collective_state *s)
{
    const int n = s->n;
    const double length = s->options.step / sqrt((double)n);
    double trace = 0.0, least = 1.0 / (s->options.width * s->options.width);
    for (int i = 0; i < n; i++)
        trace += s->precision[i * n + i];
    const double of_turn = fmax(least, length * length * sqrt(trace));
    for (int i = 0; i < n; i++)
        s->precision[i * n + i] += of_turn;
    for (int k = 0; k < s->n_chain; k++)
        for (int d = 3; d < POSE && s->chain[k].pose >= 0; d++) {
            const int i = s->chain[k].pose + d;
            s->precision[i * n + i] += 0.01 * least - of_turn;
        }
}

static void set_factor(const collective_state *s)
{
    const int n = s->n;
    double *l = s->factor;
    for (int i = 0; i < n; i++)
        for (int j = 0; j <= i; j++) {
            double sum = s->precision[i * n + j];
            for (int k = 0; k < j; k++)
                sum -= l[i * n + k] * l[j * n + k];
            const double least = 1e-12 * s->precision[i * n + i];
            l[i * n + j] = i == j ? sqrt(fmax(sum, least)) : sum / l[j * n + j];
        }
}

static void *collective_new(tsr_pool *pool, const void *options,
                            const tsr_topology *topology,
                            const tsr_prior *prior)
{
    int n_span;
    (void)prior;
    collective_state *s = tsr_pool_new(pool, 1, sizeof *s);
    if (s == NULL)
        return NULL;
    s->topology = topology;
    s->options = *(const collective_options *)options;
    s->n_chain = topology->n_chain;
    s->n = list_chains(topology, NULL, &n_span);
    const size_t n = (size_t)s->n;
    tsr_pool_array(pool, s->chain, (size_t)s->n_chain);
    tsr_pool_array(pool, s->precision, n * n);
    tsr_pool_array(pool, s->factor, n * n);
    tsr_pool_array(pool, s->step, n);
    tsr_pool_array(pool, s->change, (size_t)topology->n_residue);
    if (pool->failed)
        return NULL;
    list_chains(topology, s->chain, &n_span);
    s->log_step = log(s->options.step / sqrt((double)s->n));
    add_diagonal(s);
    set_factor(s);
    return s;
}

/* ---- the move ---- */

/* Draws d = s L'^-1 z, where L L' is the precision matrix. */
static void draw_step(const collective_state *s, gsl_rng *rng)
{
    const int n = s->n;
    const double scale = exp(s->log_step);
    for (int i = 0; i < n; i++)
        s->step[i] = gsl_ran_gaussian_ziggurat(rng, scale);
    for (int i = n - 1; i >= 0; i--) {
        s->step[i] /= s->factor[i * n + i];
        for (int k = 0; k < i; k++)
            s->step[k] -= s->factor[i * n + k] * s->step[i];
    }
}

/* Turns torsions from..to-1 of a chain, which all move the same side. by: turns
 * of the torsions of the chain, rad. */
static void turn_torsions(const collective_state *s, const chain_part *c,
                          int from, int to, const double *by, int c_side,
                          tsr_conformation *out)
{
    const tsr_torsion *t = &s->topology->torsion[c->at];
    if (from == to)
        return;
    const int first = t[from].residue, last = t[to - 1].residue;
    memset(s->change, 0, (size_t)(last - first + 1) * sizeof *s->change);
    for (int k = from; k < to; k++)
        s->change[t[k].residue - first][t[k].kind == TSR_PSI] = by[k];
    tsr_conformation_turn_many(s->topology, out, first, last, c_side,
                               (const double(*)[2])s->change);
}

static void move_whole(const collective_state *s, const chain_part *c,
                       tsr_conformation *out)
{
    const double *by = s->step + c->pose;
    const double *centre = out->backbone[c->core][TSR_CA];
    double axis[3];
    tsr_motion motion;
    for (int d = 0; d < 3; d++)
        axis[d] = centre[d] + by[d];
    tsr_motion_about(&motion, centre, axis, tsr_vec3_norm(by));
    for (int d = 0; d < 3; d++)
        motion.shift[d] += by[3 + d];
    tsr_conformation_move(s->topology, out, c->first, c->last, &motion);
}

static void collective_propose(void *state, const tsr_conformation *current,
                               tsr_conformation *proposed, gsl_rng *rng,
                               tsr_proposal *proposal)
{
    collective_state *s = state;
    int at = 0;
    (void)current;
    draw_step(s, rng);
    proposal->n_span = 0;
    for (int k = 0; k < s->n_chain; k++) {
        const chain_part *c = &s->chain[k];
        turn_torsions(s, c, 0, c->n_left, s->step + at, 0, proposed);
        turn_torsions(s, c, c->n_left, c->n, s->step + at, 1, proposed);
        if (c->pose >= 0)
            move_whole(s, c, proposed);
        for (int i = 0; i < c->n_span; i++)
            proposal->span[proposal->n_span++] = c->span[i];
        at += c->n + (c->pose >= 0 ? POSE : 0);
    }
    proposal->target = 0;
    proposal->log_ratio = 0.0;
}

/* ---- learning ---- */

/* Sets a column of the Jacobian: the derivative of body positions by torsion k
 * of a chain, Angstrom per rad. */
static void set_torsion_column(const collective_state *s, const chain_part *c,
                               int k, int column, const tsr_conformation *x,
                               double *v)
{
    const tsr_topology *t = s->topology;
    const tsr_torsion *turned = &t->torsion[c->at + k];
    const int i = turned->residue, is_psi = turned->kind == TSR_PSI;
    const double(*atom)[3] = (const double(*)[3])x->backbone[i];
    const int from = turned->c_side ? i + is_psi : c->first;
    const int to = turned->c_side ? c->last + 1 : i + is_psi;
    double axis[3], r[3], w[3];
    tsr_vec3_sub(axis, atom[is_psi ? TSR_C : TSR_CA],
                 atom[is_psi ? TSR_CA : TSR_N]);
    tsr_vec3_normalize(axis);
    for (int b = from < to ? t->residue[from].first_body : 0;
         from < to && b < t->n_body && t->body[b].residue < to; b++) {
        tsr_vec3_sub(r, x->body[b], atom[TSR_CA]);
        tsr_vec3_cross(w, axis, r);
        for (int d = 0; d < 3; d++)
            v[(3 * b + d) * s->n + column] = turned->c_side ? w[d] : -w[d];
    }
}

static void set_pose_columns(const collective_state *s, const chain_part *c,
                             const tsr_conformation *x, double *v)
{
    const tsr_topology *t = s->topology;
    const double *centre = x->backbone[c->core][TSR_CA];
    for (int b = t->residue[c->first].first_body;
         b < t->n_body && t->body[b].residue <= c->last; b++)
        for (int e = 0; e < 3; e++) {
            double axis[3] = {e == 0, e == 1, e == 2}, r[3], w[3];
            tsr_vec3_sub(r, x->body[b], centre);
            tsr_vec3_cross(w, axis, r);
            for (int d = 0; d < 3; d++)
                v[(3 * b + d) * s->n + c->pose + e] = w[d];
            v[(3 * b + e) * s->n + c->pose + 3 + e] = 1.0;
        }
}

static void set_jacobian(const collective_state *s, const tsr_conformation *x,
                         double *v)
{
    int at = 0;
    for (int k = 0; k < s->n_chain; k++) {
        const chain_part *c = &s->chain[k];
        for (int i = 0; i < c->n; i++)
            set_torsion_column(s, c, i, at + i, x, v);
        if (c->pose >= 0)
            set_pose_columns(s, c, x, v);
        at += c->n + (c->pose >= 0 ? POSE : 0);
    }
}

/* Updates the precision matrix at growing intervals, so that the proposal
 * converges during warm-up. If memory is short, the matrix stays unchanged.
 */
static void collective_learn(void *state, const tsr_conformation *current,
                             const tsr_hessian *hessian)
{
    collective_state *s = state;
    const int n = s->n, rows = 3 * s->topology->n_body;
    if (s->n_learnt < s->next)
        return;
    s->next = 10 + s->n_learnt + s->n_learnt / 2;
    double *v = calloc((size_t)(rows * n), sizeof *v);
    double *y = calloc((size_t)(rows * n), sizeof *y);
    if (v != NULL && y != NULL) {
        set_jacobian(s, current, v);
        hessian->apply(hessian->context, n, v, y);
        memset(s->precision, 0, (size_t)(n * n) * sizeof *s->precision);
        for (int r = 0; r < rows; r++)
            for (int i = 0; i < n; i++) {
                const double at = v[r * n + i];
                for (int j = 0; j <= i && at != 0.0; j++)
                    s->precision[i * n + j] += at * y[r * n + j];
            }
        add_diagonal(s);
        set_factor(s);
    }
    free(v);
    free(y);
}

static void collective_adapt(void *state, const tsr_proposal *proposal,
                             double accept_probability)
{
    collective_state *s = state;
    (void)proposal;
    s->log_step += tsr_move_robbins_monro(s->n_learnt++, accept_probability,
                                          s->options.target);
}

static void collective_archive(void *state, tsr_archive *archive)
{
    collective_state *s = state;
    tsr_archive_long(archive, &s->n_learnt, 1);
    tsr_archive_long(archive, &s->next, 1);
    tsr_archive_real(archive, &s->log_step, 1);
    for (int i = 0; i < s->n; i++)
        tsr_archive_real(archive, &s->precision[i * s->n], (size_t)i + 1);
    set_factor(s);
}

const tsr_move_type tsr_move_collective = {
    .name = "collective",
    .doc = "changes all torsions and the position of the molecule at once, by "
           "steps that change the fit to a density map by equal amounts",
    .source = "Girolami & Calderhead 2011 (the metric)",
    .options_size = sizeof(collective_options),
    .fields = fields,
    .state_new = collective_new,
    .n_target = collective_targets,
    .propose = collective_propose,
    .learn = collective_learn,
    .adapt = collective_adapt,
    .archive = collective_archive};
