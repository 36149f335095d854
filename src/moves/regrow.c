/* Regrow: draws all torsions of a stretch of flexible residues from the prior,
 * or near a member of the pool. One side of the chain moves.
 *
 * The stretch and its length are chosen independently of the conformation, and
 * the torsions are drawn from their prior densities f, so that
 *
 *     q(old | new) / q(new | old) = product of f(old) / f(new).
 *
 * With a pool, the share w of proposals has the members' density k instead
 * (moves/members.c), so that f becomes q = (1 - w) f + w k. As q is at least
 * (1 - w) f, a chain far from all members still gets to them (a defensive
 * mixture: Hesterberg 1995, Technometrics 37, 185).
 *
 * Source: Rosenbluth & Rosenbluth 1955, without their weights. */
#include "moves/members.h"
#include "moves/move.h"

#include <math.h>

static const double from_members = 0.2; /* w */

static const tsr_field fields[] = {
    TSR_FIELD(DOUBLE, "weight", tsr_regrow_options, weight, .initial = "0.5",
              .min = 0.0, .max = 1e6,
              .doc = "weight of the move among all proposals; 0: off"),
    TSR_FIELD(INT, "residues", tsr_regrow_options, residues, .initial = "6",
              .min = 2, .max = TSR_MAX_STRETCH,
              .doc = "longest stretch in residues; each proposal has between 2 "
                     "residues and this number"),
    {0}};

typedef struct {
    int first, max_length; /* first residue; length of the longest stretch from
                              there */
    int c_side;
} start;

typedef struct {
    const tsr_topology *topology;
    const tsr_prior *prior;
    tsr_regrow_options options;
    int n_start;
    start *start;
} regrow_state;

/* Lists the residues where a stretch of at least two residues can begin, and
 * returns their number. All torsions of a stretch turn the same side. */
static int list_starts(const tsr_topology *t, start *out)
{
    int n = 0;
    for (int k = 0; k < t->n_torsion;) {
        int end = k, last = t->torsion[k].residue;
        while (end < t->n_torsion &&
               t->torsion[end].c_side == t->torsion[k].c_side &&
               t->torsion[end].residue <= last + 1 &&
               t->residue[t->torsion[end].residue].chain_first ==
                   t->residue[last].chain_first &&
               (t->torsion[end].residue == last || t->residue[last + 1].linked))
            last = t->torsion[end++].residue;
        for (int i = t->torsion[k].residue; i < last; i++) {
            if (out != NULL)
                out[n] = (start){i, last - i + 1, t->torsion[k].c_side};
            n++;
        }
        k = end;
    }
    return n;
}

static int regrow_targets(const void *options, const tsr_topology *topology)
{
    (void)options;
    return list_starts(topology, NULL);
}

static void *regrow_new(tsr_pool *pool, const void *options,
                        const tsr_topology *topology, const tsr_prior *prior)
{
    regrow_state *s = tsr_pool_new(pool, 1, sizeof *s);
    if (s == NULL)
        return NULL;
    s->topology = topology;
    s->prior = prior;
    s->options = *(const tsr_regrow_options *)options;
    s->n_start = list_starts(topology, NULL);
    tsr_pool_array(pool, s->start, (size_t)s->n_start + 1);
    if (pool->failed)
        return NULL;
    list_starts(topology, s->start);
    return s;
}

/* The span of the stretch, which is the only one without a rigid group. */
static const tsr_span *stretch_of(const tsr_proposal *proposal)
{
    int k = 0;
    while (proposal->span[k].group != 0)
        k++;
    return &proposal->span[k];
}

/* The pool, which has torsions of amino acids alone; NULL: not for this
 * residue. */
static const tsr_members *members_of(const regrow_state *s, int residue)
{
    return s->topology->residue[residue].link == TSR_LINK_NONE
               ? s->options.members
               : NULL;
}

/* log(q / f). */
static double log_excess(const regrow_state *s, const tsr_conformation *c,
                         const tsr_span *span)
{
    double x = tsr_members_log_density(s->options.members, c, span->first,
                                       span->count);
    for (int i = span->first; i < span->first + span->count; i++)
        x -= tsr_prior_torsion_log_of(s->prior, c, i);
    return x > 0.0 ? x + log((1.0 - from_members) * exp(-x) + from_members)
                   : log(1.0 - from_members + from_members * exp(x));
}

static double regrow_log_ratio(const void *state,
                               const tsr_conformation *current,
                               const tsr_conformation *proposed,
                               const tsr_proposal *proposal)
{
    const regrow_state *s = state;
    const tsr_span *span = stretch_of(proposal);
    double sum = 0.0;
    for (int i = span->first; i < span->first + span->count; i++)
        sum += tsr_prior_torsion_log_of(s->prior, current, i) -
               tsr_prior_torsion_log_of(s->prior, proposed, i);
    if (members_of(s, span->first) == NULL)
        return sum;
    return sum + log_excess(s, current, span) - log_excess(s, proposed, span);
}

static void set_spans(const tsr_topology *t, const start *at, int count,
                      tsr_proposal *p)
{
    const tsr_residue *r = &t->residue[at->first];
    int last = at->first + count - 1;
    p->n_span = 0;
    if (!at->c_side && at->first > r->chain_first)
        p->span[p->n_span++] =
            (tsr_span){r->chain_first, at->first - r->chain_first, 1};
    p->span[p->n_span++] = (tsr_span){at->first, count, 0};
    if (at->c_side && last < r->chain_last)
        p->span[p->n_span++] = (tsr_span){last + 1, r->chain_last - last, 1};
}

static void regrow_propose(void *state, const tsr_conformation *current,
                           tsr_conformation *proposed, gsl_rng *rng,
                           tsr_proposal *proposal)
{
    regrow_state *s = state;
    const tsr_topology *t = s->topology;
    int k = (int)gsl_rng_uniform_int(rng, (unsigned long)s->n_start);
    const start *at = &s->start[k];
    long max_length = at->max_length < s->options.residues
                          ? at->max_length
                          : s->options.residues;
    int count =
        2 + (int)gsl_rng_uniform_int(rng, (unsigned long)(max_length - 1));
    const tsr_members *near = members_of(s, at->first);
    const int is_near = near != NULL && gsl_rng_uniform(rng) < from_members;
    double change[TSR_MAX_STRETCH][2] = {{0.0}};
    if (is_near)
        tsr_members_draw(near, at->first, count, rng, change);
    for (int n = 0; n < count; n++) {
        const int i = at->first + n;
        double *x = change[n];
        if (!is_near)
            tsr_prior_torsion_draw(s->prior, i, rng, &x[0], &x[1]);
        x[0] = t->residue[i].has_phi
                   ? x[0] - tsr_conformation_torsion(t, current, i, TSR_PHI)
                   : 0.0;
        x[1] = t->residue[i].has_psi
                   ? x[1] - tsr_conformation_torsion(t, current, i, TSR_PSI)
                   : 0.0;
    }
    tsr_conformation_turn_many(t, proposed, at->first, at->first + count - 1,
                               at->c_side, (const double(*)[2])change);
    set_spans(t, at, count, proposal);
    proposal->target = k;
    proposal->log_ratio = regrow_log_ratio(s, current, proposed, proposal);
}

const tsr_move_type tsr_move_regrow = {
    .name = "regrow",
    .doc = "draws all torsions of a flexible stretch from the prior, or near "
           "those of a member of structure.pool",
    .source = "Rosenbluth & Rosenbluth 1955, without weights",
    .options_size = sizeof(tsr_regrow_options),
    .fields = fields,
    .only_torsions = 1,
    .state_new = regrow_new,
    .n_target = regrow_targets,
    .propose = regrow_propose,
    .log_ratio = regrow_log_ratio};
