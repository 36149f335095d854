/* Which chain rides on which, where strands of nucleotides hold parts of a
 * molecule together: a strand on the domain that binds it, a protein on the
 * strand's other end. Chains are placed one after another, always the one with
 * most contacts to those that have their place. */
#include "molecule/freedom.h"

#include "core/vec3.h"
#include "molecule/proposal.h"

#include <stdlib.h>

/* Two residues touch where atoms of their backbones are as near, Angstrom: side
 * chains and bases reach so far. */
static const double touch_ang = 10.0;

typedef struct {
    tsr_topology *t;
    const tsr_conformation *c;
    int *first;  /* [n_chain] residue */
    int *placed; /* [n_chain] 1: it has its place */
    int *count;  /* [n_residue + 1] by unit */
} search;

/* Residues of a rigid unit of one chain and of one of another. */
typedef struct {
    int n; /* contacts */
    int rider, host;
} contact;

static int touches(const search *s, int i, int j)
{
    const double(*x)[3] = (const double(*)[3])s->c->backbone[i];
    const double(*y)[3] = (const double(*)[3])s->c->backbone[j];
    const double near2 = touch_ang * touch_ang;
    if (tsr_vec3_distance2(x[TSR_CA], y[TSR_CA]) > 4.0 * near2)
        return 0;
    for (int a = 0; a < 4; a++)
        for (int b = 0; b < 4; b++)
            if (tsr_vec3_distance2(x[a], y[b]) < near2)
                return 1;
    return 0;
}

static int last_of(const search *s, int chain)
{
    return s->t->residue[s->first[chain]].chain_last;
}

static int is_strand(const search *s, int chain)
{
    return s->t->residue[s->first[chain]].link != TSR_LINK_NONE;
}

/* The pair of units of chains x and y with most contacts, if there are more
 * than best has. */
static void compare(search *s, int x, int y, contact *best)
{
    const tsr_residue *r = s->t->residue;
    for (int i = s->first[x], end; i <= last_of(s, x); i = end) {
        for (end = i + 1; end <= last_of(s, x) && r[end].unit == r[i].unit;)
            end++;
        if (r[i].unit < 0)
            continue;
        for (int j = s->first[y]; j <= last_of(s, y); j++)
            if (r[j].unit >= 0)
                s->count[r[j].unit] = 0;
        for (int j = s->first[y]; j <= last_of(s, y); j++)
            for (int k = i; k < end && r[j].unit >= 0; k++)
                if (touches(s, k, j) && ++s->count[r[j].unit] > best->n)
                    *best = (contact){s->count[r[j].unit], i, j};
    }
}

static void fix_unit(tsr_topology *t, int residue)
{
    const tsr_residue *r = &t->residue[residue];
    for (int i = r->chain_first; i <= r->chain_last; i++)
        if (t->residue[i].unit == r->unit)
            t->residue[i].is_fixed = 1;
}

static int chain_of(const search *s, int residue)
{
    int chain = 0;
    while (s->first[chain] != s->t->residue[residue].chain_first)
        chain++;
    return chain;
}

static int is_fixed(const search *s, int chain)
{
    for (int i = s->first[chain]; i <= last_of(s, chain); i++)
        if (s->t->residue[i].is_fixed)
            return 1;
    return 0;
}

/* A chain is held at one of its parts; what else of it touches another chain
 * lets go of that. */
static void warn_of_others(const search *s, int x, int held, tsr_log *log)
{
    const tsr_residue *r = s->t->residue;
    for (int i = s->first[x]; i <= last_of(s, x); i++)
        for (int y = 0; y < s->t->n_chain && r[i].unit >= 0; y++)
            for (int j = s->first[y]; j <= last_of(s, y); j++) {
                if (y == x || !s->placed[y] || r[j].unit < 0 ||
                    r[i].unit == r[held].unit || !touches(s, i, j))
                    continue;
                tsr_warn(log,
                         "chain %s is held by its part at %s:%d; that at "
                         "%s:%d touches %s:%d, and lets go of it when it moves",
                         r[i].chain, r[held].chain, r[held].number, r[i].chain,
                         r[i].number, r[j].chain, r[j].number);
                return;
            }
}

/* The residue that a chain rides on; -1: none. */
static int host_of(const tsr_topology *topology, int chain)
{
    for (int k = 0; k < topology->n_ride; k++)
        if (topology->ride[k].chain == chain)
            return topology->ride[k].host;
    return -1;
}

static void place(search *s, const contact *at, tsr_log *log)
{
    tsr_topology *t = s->t;
    const int x = chain_of(s, at->rider), y = chain_of(s, at->host);
    const tsr_residue *r = &t->residue[at->rider], *h = &t->residue[at->host];
    s->placed[x] = 1;
    if (!is_strand(s, x) && !is_strand(s, y)) {
        tsr_freedom_anchor(t, x, s->first[x], log);
        return;
    }
    fix_unit(t, at->rider);
    warn_of_others(s, x, at->rider, log);
    const int host_rides = y != x && host_of(t, y) >= 0;
    if (h->is_fixed && !host_rides)
        return;
    t->ride[t->n_ride++] = (tsr_ride){x, s->first[x], last_of(s, x), at->host};
    tsr_info(log,
             "chain %s rides with the rigid part of %s:%d, which its part of "
             "%s:%d touches",
             r->chain, h->chain, h->number, r->chain, r->number);
}

/* The chain that nothing holds: that with the largest rigid part, a protein if
 * there is one. */
static int heaviest(const search *s)
{
    int best = -1, most = -1;
    for (int k = 0; k < s->t->n_chain; k++) {
        int n = 0;
        for (int i = s->first[k]; i <= last_of(s, k); i++)
            n += s->t->residue[i].unit >= 0;
        n = is_strand(s, k) ? n : n + s->t->n_residue;
        if (!s->placed[k] && n > most)
            most = n, best = k;
    }
    return best;
}

static void place_all(search *s, tsr_log *log)
{
    int n_placed = 0;
    for (int k = 0; k < s->t->n_chain; k++) {
        s->placed[k] = s->t->mobile[k] || is_fixed(s, k);
        n_placed += s->placed[k];
    }
    for (; n_placed < s->t->n_chain; n_placed++) {
        contact best = {0, -1, -1};
        for (int x = 0; x < s->t->n_chain; x++)
            for (int y = 0; y < s->t->n_chain && !s->placed[x]; y++)
                if (s->placed[y])
                    compare(s, x, y, &best);
        if (best.n > 0) {
            place(s, &best, log);
            continue;
        }
        const int k = heaviest(s);
        s->placed[k] = 1;
        tsr_freedom_anchor(s->t, k, s->first[k], log);
    }
}

tsr_status tsr_freedom_ride(tsr_topology *topology,
                            const tsr_conformation *conformation, tsr_log *log,
                            tsr_err *err)
{
    tsr_topology *t = topology;
    const size_t n = (size_t)t->n_chain;
    search s = {.t = t, .c = conformation};
    t->ride = calloc(n, sizeof *t->ride);
    s.first = calloc(n, sizeof *s.first);
    s.placed = calloc(n, sizeof *s.placed);
    s.count = calloc((size_t)t->n_residue + 2, sizeof *s.count);
    const int is_good = t->ride != NULL && s.first != NULL &&
                        s.placed != NULL && s.count != NULL;
    for (int i = 0, k = 0; i < t->n_residue && is_good; k++) {
        s.first[k] = i;
        i = t->residue[i].chain_last + 1;
    }
    if (is_good)
        place_all(&s, log);
    free(s.first);
    free(s.placed);
    free(s.count);
    if (!is_good)
        return tsr_no_memory(err);
    if (t->n_ride > TSR_MAX_RIDE)
        return tsr_fail(err, TSR_E_CONFIG,
                        "%d chains ride on parts of others that move, at most "
                        "%d can; name some with those parts in "
                        "structure.fixed",
                        t->n_ride, TSR_MAX_RIDE);
    return TSR_OK;
}

/* ---- along with a proposal ---- */

/* From where a residue was to where it is. */
static void motion_of(const double was[4][3], const double is[4][3],
                      tsr_motion *motion)
{
    double from[3][3], to[3][3];
    tsr_frame(from, was[TSR_N], was[TSR_CA], was[TSR_C]);
    tsr_frame(to, is[TSR_N], is[TSR_CA], is[TSR_C]);
    for (int i = 0; i < 3; i++) {
        for (int j = 0; j < 3; j++)
            motion->rotation[i][j] = to[i][0] * from[j][0] +
                                     to[i][1] * from[j][1] +
                                     to[i][2] * from[j][2];
        motion->shift[i] =
            is[TSR_CA][i] - tsr_vec3_dot(motion->rotation[i], was[TSR_CA]);
    }
}

/* The span that has a residue; -1: none. */
static int span_of(const tsr_proposal *p, int residue)
{
    for (int k = 0; k < p->n_span; k++)
        if (residue >= p->span[k].first &&
            residue < p->span[k].first + p->span[k].count)
            return k;
    return -1;
}

/* The whole chain in place of what of it had moved by itself. */
static void put_span(tsr_proposal *p, tsr_span span)
{
    int n = 0;
    for (int k = 0; k < p->n_span; k++) {
        const tsr_span old = p->span[k];
        if (old.first >= span.first && old.first < span.first + span.count)
            span.group = 0; /* its inner distances changed, too */
        else
            p->span[n++] = old;
    }
    int k = n++;
    for (; k > 0 && p->span[k - 1].first > span.first; k--)
        p->span[k] = p->span[k - 1];
    p->span[k] = span;
    p->n_span = n;
}

void tsr_proposal_carry(const tsr_topology *topology,
                        const tsr_conformation *current,
                        tsr_conformation *proposed, tsr_proposal *proposal)
{
    for (int k = 0; k < topology->n_ride && proposal->n_span > 0; k++) {
        const tsr_ride *ride = &topology->ride[k];
        const int host = span_of(proposal, ride->host);
        if (host < 0)
            continue;
        tsr_motion motion;
        motion_of((const double(*)[3])current->backbone[ride->host],
                  (const double(*)[3])proposed->backbone[ride->host], &motion);
        tsr_conformation_move(topology, proposed, ride->first, ride->last,
                              &motion);
        put_span(proposal, (tsr_span){ride->first, ride->last - ride->first + 1,
                                      proposal->span[host].group});
    }
}
