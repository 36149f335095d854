/* Rigid body: shifts and turns a rigid part, or a chain of a complex.
 *
 * The shift is Gaussian, the turn is by a Gaussian rotation vector about the
 * centre of the part's CA: undone by the opposite ones, which are as likely, in
 * the measure of position and orientation. A chain that moves as a whole
 * (structure.mobile) needs no more. A part inside a chain pulls at its linkers:
 * on one side, or on both, the linker is closed again at three of its residues
 * (closure.h, which has the ratio); what lies beyond the other side is
 * carried along. The pivots are chosen without regard to the conformation.
 * Source: for the closure Dodd, Boone & Theodorou 1993. */
#include "core/vec3.h"
#include "moves/closure.h"
#include "moves/move.h"

#include <gsl/gsl_randist.h>
#include <math.h>

enum { MOST_PIVOTS = 12, MOST_GAP = 3 };

typedef struct {
    double weight, shift, turn, width, target;
} rigid_options;

static const tsr_field fields[] = {
    TSR_FIELD(DOUBLE, "weight", rigid_options, weight, .initial = "0.2",
              .min = 0.0, .max = 1e6,
              .doc = "weight of the move among all proposals; 0: off"),
    TSR_FIELD(DOUBLE, "shift", rigid_options, shift, .unit = "Angstrom",
              .initial = "0.5", .min = 1e-6, .max = 100.0,
              .doc = "width of a shift before warm-up adapts it"),
    TSR_FIELD(DOUBLE, "turn", rigid_options, turn, .unit = "rad",
              .initial = "0.05", .min = 1e-6, .max = 3.14159,
              .doc = "width of a rotation; adapted together with the shift"),
    TSR_FIELD(DOUBLE, "width", rigid_options, width, .unit = "rad",
              .initial = "1", .min = 0.01, .max = 1e3,
              .doc = "change of the closing torsions above which other "
                     "closures are preferred"),
    TSR_FIELD_TARGET(rigid_options, "0.3"),
    {0}};

/* Residues first..last are the part; what moves rigidly lies between the
 * pivots, or reaches to the end of the chain where there are none (a = -1). */
typedef struct {
    int first, last, part;
    tsr_pivots left, right;
} body_target;

/* What may be moved in one way, a part with its left side, its right or both:
 * its n targets differ in their pivots. */
typedef struct {
    int at, n;
    long n_learnt;
    double log_step;
} part_state;

typedef struct {
    const tsr_topology *topology;
    const tsr_prior *prior;
    rigid_options options;
    int n_target, n_part;
    body_target *target; /* [n_target] */
    part_state *part;    /* [n_part] */
} rigid_state;

/* ---- targets ---- */

typedef struct {
    body_target *out; /* NULL: only counted */
    part_state *part;
    int n, n_part;
} collector;

static void begin_part(collector *c)
{
    if (c->out != NULL)
        c->part[c->n_part] = (part_state){.at = c->n};
    c->n_part++;
}

static void collect(collector *c, int first, int last, tsr_pivots left,
                    tsr_pivots right)
{
    if (c->out != NULL) {
        c->out[c->n] = (body_target){first, last, c->n_part - 1, left, right};
        c->part[c->n_part - 1].n++;
    }
    c->n++;
}

/* The pivots that a linker has near the part, ascending; step -1: before
 * residue `at`, 1: after it. */
static int near_pivots(const tsr_topology *t, int at, int step,
                       int pivot[MOST_PIVOTS])
{
    int n = 0, first = t->residue[at].chain_first;
    for (int i = at + step; i >= first && i <= t->residue[at].chain_last &&
                            t->residue[i].flexible && n < MOST_PIVOTS;
         i += step)
        if (tsr_can_pivot(&t->residue[i]))
            pivot[n++] = i;
    for (int i = 0; step < 0 && i < n / 2; i++) {
        int swap = pivot[i];
        pivot[i] = pivot[n - 1 - i], pivot[n - 1 - i] = swap;
    }
    return n;
}

/* Triples of equal gaps; returns how many. */
static int triples(int n, const int *pivot, tsr_pivots *out)
{
    int count = 0;
    for (int gap = 1; gap <= MOST_GAP; gap++)
        for (int i = 0; i + 2 * gap < n; i++)
            out[count++] =
                (tsr_pivots){pivot[i], pivot[i + gap], pivot[i + 2 * gap]};
    return count;
}

static int has_fixed(const tsr_topology *t, int first, int last)
{
    for (int i = first; i <= last; i++)
        if (t->residue[i].is_fixed)
            return 1;
    return 0;
}

static void list_part(const tsr_topology *t, int first, int last, collector *c)
{
    enum { MOST = MOST_PIVOTS * MOST_GAP };
    const tsr_pivots none = {-1, -1, -1};
    int pivot[MOST_PIVOTS];
    tsr_pivots left[MOST], right[MOST];
    int n_left = triples(near_pivots(t, first, -1, pivot), pivot, left);
    int n_right = triples(near_pivots(t, last, 1, pivot), pivot, right);
    const tsr_residue *r = &t->residue[first];
    if (has_fixed(t, first, last))
        return;
    if (n_left > 0 && !has_fixed(t, last, r->chain_last)) {
        begin_part(c);
        for (int i = 0; i < n_left; i++)
            collect(c, first, last, left[i], none);
    }
    if (n_right > 0 && !has_fixed(t, r->chain_first, first)) {
        begin_part(c);
        for (int i = 0; i < n_right; i++)
            collect(c, first, last, none, right[i]);
    }
    if (n_left > 0 && n_right > 0) {
        begin_part(c);
        for (int i = 0; i < n_left; i++)
            for (int j = 0; j < n_right; j++)
                collect(c, first, last, left[i], right[j]);
    }
}

static int list_targets(const tsr_topology *t, collector *c)
{
    const tsr_pivots none = {-1, -1, -1};
    int chain = -1;
    for (int i = 0; i < t->n_residue; i++) {
        const tsr_residue *r = &t->residue[i];
        int starts = r->chain_first == i;
        chain += starts;
        if (starts && t->mobile[chain]) {
            begin_part(c);
            collect(c, i, r->chain_last, none, none);
        }
        if (r->unit < 0 || (!starts && t->residue[i - 1].unit == r->unit))
            continue;
        int last = i;
        while (last < r->chain_last && t->residue[last + 1].unit == r->unit)
            last++;
        list_part(t, i, last, c);
    }
    return c->n;
}

static int rigid_targets(const void *options, const tsr_topology *topology)
{
    (void)options;
    collector c = {NULL, NULL, 0, 0};
    return list_targets(topology, &c);
}

static void *rigid_new(tsr_pool *pool, const void *options,
                       const tsr_topology *topology, const tsr_prior *prior)
{
    rigid_state *s = tsr_pool_new(pool, 1, sizeof *s);
    if (s == NULL)
        return NULL;
    s->topology = topology;
    s->prior = prior;
    s->options = *(const rigid_options *)options;
    collector c = {NULL, NULL, 0, 0};
    s->n_target = list_targets(topology, &c);
    s->n_part = c.n_part;
    tsr_pool_array(pool, s->target, (size_t)s->n_target + 1);
    tsr_pool_array(pool, s->part, (size_t)s->n_part + 1);
    if (pool->failed)
        return NULL;
    c = (collector){s->target, s->part, 0, 0};
    list_targets(topology, &c);
    return s;
}

/* ---- the move ---- */

static tsr_motion draw_motion(const rigid_state *s, const body_target *b,
                              const tsr_conformation *current, gsl_rng *rng)
{
    double centre[3] = {0.0, 0.0, 0.0}, axis[3], size = 0.0;
    double scale = exp(s->part[b->part].log_step);
    for (int i = b->first; i <= b->last; i++)
        for (int d = 0; d < 3; d++)
            centre[d] += current->backbone[i][TSR_CA][d];
    for (int d = 0; d < 3; d++) {
        double w = gsl_ran_gaussian_ziggurat(rng, scale * s->options.turn);
        centre[d] /= b->last - b->first + 1;
        axis[d] = centre[d] + w;
        size += w * w;
    }
    tsr_motion motion;
    tsr_motion_about(&motion, centre, axis, sqrt(size));
    for (int d = 0; d < 3; d++)
        motion.shift[d] +=
            gsl_ran_gaussian_ziggurat(rng, scale * s->options.shift);
    return motion;
}

/* The residues that move with the part, and all that changes. */
static void extent_of(const tsr_topology *t, const body_target *b, int *first,
                      int *last, int *from, int *to)
{
    const tsr_residue *r = &t->residue[b->first];
    *first = b->left.a < 0 ? r->chain_first : b->left.c + 1;
    *last = b->right.a < 0 ? r->chain_last : b->right.a - 1;
    *from = b->left.a < 0 ? *first : b->left.a;
    *to = b->right.a < 0 ? *last : b->right.c;
}

/* What is rigid, and the ends of the pivots that go with it. */
static void carry(const tsr_topology *t, const body_target *b,
                  const tsr_motion *motion, tsr_conformation *out)
{
    int first, last, from, to;
    extent_of(t, b, &first, &last, &from, &to);
    tsr_conformation_move(t, out, first, last, motion);
    if (b->left.a >= 0)
        for (int e = TSR_CA; e <= TSR_O; e++)
            tsr_motion_apply(motion, out->backbone[b->left.c][e]);
    if (b->right.a >= 0)
        for (int e = TSR_N; e <= TSR_CA; e++)
            tsr_motion_apply(motion, out->backbone[b->right.a][e]);
}

/* Both sides of one closure. old, new: the closures the conformations have;
 * -1 where they are not among those found. */
typedef struct {
    tsr_closures here, there;
    double log_p[TSR_MAX_CLOSURE], log_z;
    int old;
} choice;

static void find_choice(const rigid_state *s, const tsr_pivots *p, int is_left,
                        const tsr_conformation *current,
                        const tsr_conformation *proposed, choice *c)
{
    c->old = -1;
    c->here.n = 0;
    tsr_closures_find(s->prior, p, current, is_left ? current : proposed,
                      is_left ? proposed : current, &c->there);
    if (c->there.n == 0)
        return;
    tsr_closures_find(s->prior, p, current, current, current, &c->here);
    c->old = tsr_closures_own(&c->here, p, current);
    if (c->old >= 0)
        c->log_z = tsr_closures_log_z(&c->there, &c->here.at[c->old],
                                      s->options.width, c->log_p);
}

/* What a closure adds to the log ratio. */
static double choice_log_ratio(const rigid_state *s, const choice *c, int new)
{
    double log_p[TSR_MAX_CLOSURE];
    double back = tsr_closures_log_z(&c->here, &c->there.at[new],
                                     s->options.width, log_p);
    return c->log_z - back + c->here.at[c->old].log_f - c->there.at[new].log_f;
}

static void set_spans(const rigid_state *s, const body_target *b,
                      tsr_proposal *p)
{
    int first, last, from, to;
    extent_of(s->topology, b, &first, &last, &from, &to);
    p->n_span = 0;
    if (from < first)
        p->span[p->n_span++] = (tsr_span){from, first - from, 0};
    p->span[p->n_span++] = (tsr_span){first, last - first + 1, 1};
    if (to > last)
        p->span[p->n_span++] = (tsr_span){last + 1, to - last, 0};
}

/* A part first: those with linkers have many choices of pivots, and a molecule
 * as a whole, which has one, would hardly ever have its turn. */
static int draw_target(const rigid_state *s, gsl_rng *rng)
{
    const part_state *p =
        &s->part[gsl_rng_uniform_int(rng, (unsigned long)s->n_part)];
    return p->at + (int)gsl_rng_uniform_int(rng, (unsigned long)p->n);
}

static void rigid_propose(void *state, const tsr_conformation *current,
                          tsr_conformation *proposed, gsl_rng *rng,
                          tsr_proposal *proposal)
{
    rigid_state *s = state;
    const tsr_topology *t = s->topology;
    const int k = draw_target(s, rng);
    const body_target *b = &s->target[k];
    tsr_motion motion = draw_motion(s, b, current, rng);
    int found = 1;
    proposal->target = k;
    proposal->log_ratio = 0.0;
    carry(t, b, &motion, proposed);
    for (int side = 0; side < 2 && found; side++) {
        const tsr_pivots *p = side == 0 ? &b->left : &b->right;
        choice c;
        if (p->a < 0)
            continue;
        find_choice(s, p, side == 0, current, proposed, &c);
        found = c.old >= 0;
        if (!found)
            break;
        int new = tsr_closures_choose(&c.there, c.log_p, c.log_z, rng);
        proposal->log_ratio += choice_log_ratio(s, &c, new);
        tsr_closed_place(&c.there.at[new], p, current, proposed);
        tsr_conformation_place_bodies(t, proposed, p->a, p->c - p->a + 1);
    }
    set_spans(s, b, proposal);
    if (found)
        return;
    for (int i = 0; i < proposal->n_span; i++)
        tsr_conformation_copy(t, proposed, current, proposal->span[i].first,
                              proposal->span[i].count);
    proposal->n_span = 0;
}

static double rigid_log_ratio(const void *state,
                              const tsr_conformation *current,
                              const tsr_conformation *proposed,
                              const tsr_proposal *proposal)
{
    const rigid_state *s = state;
    double sum = 0.0;
    if (proposal->n_span == 0)
        return 0.0;
    const body_target *b = &s->target[proposal->target];
    for (int side = 0; side < 2; side++) {
        const tsr_pivots *p = side == 0 ? &b->left : &b->right;
        choice c;
        if (p->a < 0)
            continue;
        find_choice(s, p, side == 0, current, proposed, &c);
        int new = tsr_closures_own(&c.there, p, proposed);
        if (c.old < 0 || new < 0)
            return -(double)INFINITY;
        sum += choice_log_ratio(s, &c, new);
    }
    return sum;
}

static void rigid_adapt(void *state, const tsr_proposal *proposal,
                        double accept_probability)
{
    rigid_state *s = state;
    part_state *own = &s->part[s->target[proposal->target].part];
    own->log_step +=
        tsr_move_learn(own->n_learnt++, accept_probability, s->options.target);
    own->log_step = fmin(own->log_step, log(1.0 / s->options.turn));
}

static void rigid_archive(void *state, tsr_archive *archive)
{
    rigid_state *s = state;
    for (int k = 0; k < s->n_part; k++) {
        tsr_archive_long(archive, &s->part[k].n_learnt, 1);
        tsr_archive_real(archive, &s->part[k].log_step, 1);
    }
}

const tsr_move_type tsr_move_rigid_body = {
    .name = "rigid_body",
    .doc = "shifts and turns a rigid part or a mobile chain, and closes the "
           "linkers again",
    .source = "Dodd, Boone & Theodorou 1993 (closure)",
    .options_size = sizeof(rigid_options),
    .fields = fields,
    .state_new = rigid_new,
    .n_target = rigid_targets,
    .propose = rigid_propose,
    .log_ratio = rigid_log_ratio,
    .adapt = rigid_adapt,
    .archive = rigid_archive};
