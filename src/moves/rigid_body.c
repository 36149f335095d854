/* Rigid body: shifts and rotates a rigid part, or a whole chain of a complex.
 *
 * The shift is Gaussian, and so is the rotation vector, about the centre of the
 * part's CA. The proposal is symmetric in position and orientation. For a chain
 * that moves as a whole (structure.mobile) this is the complete move. A part
 * inside a chain is bound to its linkers: on one side or on both, the linker is
 * closed again at three of its residues (closure.h has the log ratio). If only
 * one side is closed, the chain beyond the other side moves with the part. The
 * pivots are chosen independently of the conformation.
 *
 * Source: Dodd, Boone & Theodorou 1993 (closure). */
#include "core/vec3.h"
#include "moves/closure.h"
#include "moves/move.h"

#include <gsl/gsl_randist.h>
#include <math.h>

enum { MAX_PIVOTS = 12, MAX_GAP = 3 };

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

/* A target: residues first..last are the part. All residues between the left
 * and the right pivots move rigidly. Without pivots on a side (a = -1), all
 * residues up to that end of the chain move. */
typedef struct {
    int first, last, part;
    tsr_pivots left, right;
} body_target;

/* A part with a given choice of closed sides: left, right, both, or none for a
 * whole chain. Its n targets, at..at+n-1, differ in their pivots. */
typedef struct {
    int at, n;
    long n_learnt;   /* number of updates of log_step */
    double log_step; /* log factor of the options `shift` and `turn` */
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
    body_target *out; /* NULL: targets are only counted */
    part_state *part;
    int n, n_part;
} collector;

static void begin_part(collector *c)
{
    if (c->out != NULL)
        c->part[c->n_part] = (part_state){.at = c->n};
    c->n_part++;
}

static void add_target(collector *c, int first, int last, tsr_pivots left,
                       tsr_pivots right)
{
    if (c->out != NULL) {
        c->out[c->n] = (body_target){first, last, c->n_part - 1, left, right};
        c->part[c->n_part - 1].n++;
    }
    c->n++;
}

/* Lists the residues of a linker that can be pivots, at most MAX_PIVOTS of
 * them, those nearest to the part, in ascending order. step -1: the linker
 * before residue `at`; 1: the linker after it. */
static int list_pivots(const tsr_topology *t, int at, int step,
                       int pivot[MAX_PIVOTS])
{
    int n = 0, first = t->residue[at].chain_first;
    for (int i = at + step; i >= first && i <= t->residue[at].chain_last &&
                            t->residue[i].flexible && n < MAX_PIVOTS;
         i += step)
        if (tsr_can_pivot(&t->residue[i]))
            pivot[n++] = i;
    for (int i = 0; step < 0 && i < n / 2; i++) {
        int swap = pivot[i];
        pivot[i] = pivot[n - 1 - i], pivot[n - 1 - i] = swap;
    }
    return n;
}

/* Lists the triples of pivots with two equal gaps in the list `pivot`, and
 * returns their number. */
static int triples(int n, const int *pivot, tsr_pivots *out)
{
    int count = 0;
    for (int gap = 1; gap <= MAX_GAP; gap++)
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

/* Lists the targets of the rigid part first..last. */
static void list_part(const tsr_topology *t, int first, int last, collector *c)
{
    enum { MAX_TRIPLES = MAX_PIVOTS * MAX_GAP };
    const tsr_pivots none = {-1, -1, -1};
    int pivot[MAX_PIVOTS];
    tsr_pivots left[MAX_TRIPLES], right[MAX_TRIPLES];
    int n_left = triples(list_pivots(t, first, -1, pivot), pivot, left);
    int n_right = triples(list_pivots(t, last, 1, pivot), pivot, right);
    const tsr_residue *r = &t->residue[first];
    if (has_fixed(t, first, last))
        return;
    if (n_left > 0 && !has_fixed(t, last, r->chain_last)) {
        begin_part(c);
        for (int i = 0; i < n_left; i++)
            add_target(c, first, last, left[i], none);
    }
    if (n_right > 0 && !has_fixed(t, r->chain_first, first)) {
        begin_part(c);
        for (int i = 0; i < n_right; i++)
            add_target(c, first, last, none, right[i]);
    }
    if (n_left > 0 && n_right > 0) {
        begin_part(c);
        for (int i = 0; i < n_left; i++)
            for (int j = 0; j < n_right; j++)
                add_target(c, first, last, left[i], right[j]);
    }
}

static int list_targets(const tsr_topology *t, collector *c)
{
    const tsr_pivots none = {-1, -1, -1};
    int chain = -1;
    if (t->moves_subunit) {
        begin_part(c);
        add_target(c, 0, t->n_own - 1, none, none);
    }
    for (int i = 0; i < t->n_own; i++) {
        const tsr_residue *r = &t->residue[i];
        int starts = r->chain_first == i;
        chain += starts;
        if (starts && t->mobile[chain]) {
            begin_part(c);
            add_target(c, i, r->chain_last, none, none);
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
    double shift[3];
    for (int d = 0; d < 3; d++)
        shift[d] = gsl_ran_gaussian_ziggurat(rng, scale * s->options.shift);
    if (s->topology->symmetry.n > 1)
        tsr_topology_project_shift(s->topology, shift);
    for (int d = 0; d < 3; d++)
        motion.shift[d] += shift[d];
    return motion;
}

/* first..last: residues that move with the part. from..to: all residues that
 * change. */
static void extent_of(const tsr_topology *t, const body_target *b, int *first,
                      int *last, int *from, int *to)
{
    const tsr_residue *r = &t->residue[b->first];
    *first = b->left.a < 0 ? r->chain_first : b->left.c + 1;
    *last = b->right.a < 0 ? t->residue[b->last].chain_last : b->right.a - 1;
    *from = b->left.a < 0 ? *first : b->left.a;
    *to = b->right.a < 0 ? *last : b->right.c;
}

/* Moves the rigid residues, and the atoms of the adjacent pivots that are rigid
 * with them. */
static void move_rigid_part(const tsr_topology *t, const body_target *b,
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

/* The closures of one linker for both conformations. old: index of the current
 * conformation's closure; -1: not found. */
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
    c->old = tsr_closures_find_current(&c->here, p, current);
    if (c->old >= 0)
        c->log_z = tsr_closures_log_z(&c->there, &c->here.at[c->old],
                                      s->options.width, c->log_p);
}

/* The contribution of a closed linker to the log ratio. new: index of the new
 * closure. */
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

/* Draws a part first and then one of its targets. Parts with linkers have many
 * targets, and a whole chain, which has a single one, would otherwise be drawn
 * rarely. */
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
    move_rigid_part(t, b, &motion, proposed);
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
        tsr_closed_apply(&c.there.at[new], p, current, proposed);
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
        int new = tsr_closures_find_current(&c.there, p, proposed);
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
    own->log_step += tsr_move_robbins_monro(own->n_learnt++, accept_probability,
                                            s->options.target);
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
