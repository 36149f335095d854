/* Excluded volume, updated move by move. The contacts of each body are a linked
 * list. A proposal searches only for new contacts of the moved bodies, and
 * reads their current contacts from the lists. Terms are integers, so that the
 * sum does not depend on the order of moves. */
#include "prior/clash.h"

#include "core/clones.h"

#include <math.h>
#include <string.h>

/* ---- neighbour search ---- */

typedef int64_t eight_bits __attribute__((vector_size(64), aligned(64)));

/* Returns one bit for each of sixteen lanes; a lane of `low` and `high` is 0 or
 * all ones. */
TSR_INLINE unsigned lane_bits(const eight_bits *low, const eight_bits *high)
{
    const eight_bits one = {1, 2, 4, 8, 16, 32, 64, 128};
    eight_bits both = (*low & one) | (*high & (one << 8));
    uint64_t bits = 0;
    for (int k = 0; k < 8; k++)
        bits |= (uint64_t)both[k];
    return (unsigned)bits;
}

/* Lanes whose distance from x is below sqrt(r2). */
TSR_INLINE unsigned lanes_within(const tsr_lanes at[3], const double x[3],
                                 double r2)
{
    eight_bits is[2];
    for (int h = 0; h < 2; h++) {
        tsr_eight u = at[0].half[h] - x[0], v = at[1].half[h] - x[1];
        tsr_eight w = at[2].half[h] - x[2];
        is[h] = u * u + v * v + w * w < r2;
    }
    return lane_bits(&is[0], &is[1]);
}

/* Spheres with a point closer to x than `reach`. */
TSR_INLINE unsigned spheres_within(const tsr_block_group *s, const double x[3],
                                   double reach)
{
    eight_bits is[2];
    for (int h = 0; h < 2; h++) {
        tsr_eight u = s->x[0].half[h] - x[0], v = s->x[1].half[h] - x[1];
        tsr_eight w = s->x[2].half[h] - x[2], r = s->radius.half[h] + reach;
        is[h] = u * u + v * v + w * w < r * r;
    }
    return lane_bits(&is[0], &is[1]);
}

TSR_INLINE int lowest(unsigned bits)
{
    return __builtin_ctz(bits);
}

TSR_CLONES void tsr_body_block_set(tsr_body_block *block,
                                   const double (*xyz)[3], int first, int end)
{
    int base = first & -TSR_LANES;
    double centre[3] = {0.0, 0.0, 0.0}, most = 0.0;
    block->first = base;
    for (int i = first; i < end; i++)
        for (int d = 0; d < 3; d++)
            centre[d] += xyz[i][d];
    for (int d = 0; d < 3; d++) {
        for (int k = 0; k < TSR_LANES; k++)
            block->x[d].at[k] = (double)INFINITY;
        for (int i = first; i < end; i++)
            block->x[d].at[i - base] = xyz[i][d];
        centre[d] /= end - first;
        block->centre[d] = centre[d];
    }
    for (int i = first; i < end; i++) {
        double u = xyz[i][0] - centre[0], v = xyz[i][1] - centre[1];
        double w = xyz[i][2] - centre[2], r2 = u * u + v * v + w * w;
        most = r2 > most ? r2 : most;
    }
    block->radius = sqrt(most);
}

/* Lists pairs of a body in `own` and a body in `other`, limited to `lanes` of
 * `other`. The block with fewer candidates is the outer loop. */
TSR_INLINE int list_pairs(const tsr_body_block *own,
                          const tsr_body_block *other, unsigned lanes,
                          double reach, tsr_body_pair *pair)
{
    int n = 0;
    double r = own->radius + reach, r2 = reach * reach;
    unsigned b = lanes_within(other->x, own->centre, r * r) & lanes;
    if (b == 0)
        return 0;
    r = other->radius + reach;
    unsigned a = lanes_within(own->x, other->centre, r * r);
    int turned = __builtin_popcount(b) < __builtin_popcount(a);
    const tsr_lanes *from = turned ? other->x : own->x;
    const tsr_lanes *to = turned ? own->x : other->x;
    unsigned few = turned ? b : a, many = turned ? a : b;
    for (; few != 0; few &= few - 1) {
        int i = lowest(few);
        const double x[3] = {from[0].at[i], from[1].at[i], from[2].at[i]};
        unsigned neighbours = lanes_within(to, x, r2) & many;
        for (; neighbours != 0; neighbours &= neighbours - 1) {
            int j = lowest(neighbours);
            pair[n++] = turned ? (tsr_body_pair){j, other->first + i}
                               : (tsr_body_pair){i, other->first + j};
        }
    }
    return n;
}

TSR_CLONES int tsr_sphere_tree_pairs(const tsr_sphere_tree *tree,
                                     const tsr_body_block *own,
                                     const uint16_t *unmoved, double reach,
                                     tsr_body_pair *pair)
{
    int n = 0;
    double r = own->radius + reach;
    for (int t = 0; t * TSR_LANES < tree->n_group; t++) {
        unsigned groups = spheres_within(&tree->top[t], own->centre, r);
        for (; groups != 0; groups &= groups - 1) {
            int s = t * TSR_LANES + lowest(groups);
            unsigned blocks = spheres_within(&tree->group[s], own->centre, r);
            for (; blocks != 0; blocks &= blocks - 1) {
                int k = s * TSR_LANES + lowest(blocks);
                if (unmoved[k] != 0)
                    n += list_pairs(own, &tree->block[k], unmoved[k], reach,
                                    pair + n);
            }
        }
    }
    return n;
}

TSR_CLONES int tsr_body_block_pairs(const tsr_body_block *own,
                                    const tsr_body_block *other, double reach,
                                    tsr_body_pair *pair)
{
    double r = own->radius + other->radius + reach, d2 = 0.0;
    for (int d = 0; d < 3; d++) {
        double u = own->centre[d] - other->centre[d];
        d2 += u * u;
    }
    return d2 < r * r ? list_pairs(own, other, 0xffff, reach, pair) : 0;
}

/* ---- the tree ---- */

/* Allocates n zeroed elements of `size` bytes, aligned for vector instructions.
 * NULL: out of memory, as tsr_pool_new. */
static void *lanes_new(tsr_pool *pool, int n, size_t size)
{
    const size_t side = sizeof(tsr_eight);
    char *at = tsr_pool_new(pool, (size_t)n * size + side, 1);
    return at != NULL ? at + (side - (uintptr_t)at % side) : NULL;
}

static void clear_group(tsr_block_group *s)
{
    for (int k = 0; k < TSR_LANES; k++) {
        for (int d = 0; d < 3; d++)
            s->x[d].at[k] = (double)INFINITY;
        s->radius.at[k] = 0.0;
    }
}

tsr_sphere_tree *tsr_sphere_tree_new(tsr_pool *pool, int n,
                                     const double (*xyz)[3])
{
    tsr_sphere_tree *t = tsr_pool_new(pool, 1, sizeof *t);
    if (t == NULL)
        return NULL;
    t->n_block = (n + TSR_LANES - 1) / TSR_LANES;
    t->n_group = (t->n_block + TSR_LANES - 1) / TSR_LANES;
    int n_top = (t->n_group + TSR_LANES - 1) / TSR_LANES;
    t->block = lanes_new(pool, t->n_block, sizeof *t->block);
    t->group = lanes_new(pool, t->n_group, sizeof *t->group);
    t->top = lanes_new(pool, n_top, sizeof *t->top);
    if (pool->failed)
        return NULL;
    for (int k = 0; k < t->n_block; k++) {
        int first = k * TSR_LANES, end = first + TSR_LANES;
        tsr_body_block_set(&t->block[k], xyz, first, end < n ? end : n);
    }
    for (int k = 0; k < t->n_group; k++)
        clear_group(&t->group[k]);
    for (int k = 0; k < n_top; k++)
        clear_group(&t->top[k]);
    tsr_sphere_tree_update(t, 0, t->n_block - 1);
    return t;
}

/* Sets lane `lane` of `to` to a sphere around the n spheres of a group. */
static void enclose(const tsr_block_group *s, int n, tsr_block_group *to,
                    int lane)
{
    double centre[3], most = 0.0;
    for (int d = 0; d < 3; d++) {
        double sum = 0.0;
        for (int k = 0; k < n; k++)
            sum += s->x[d].at[k];
        centre[d] = sum / n;
        to->x[d].at[lane] = centre[d];
    }
    for (int k = 0; k < n; k++) {
        double u = s->x[0].at[k] - centre[0], v = s->x[1].at[k] - centre[1];
        double w = s->x[2].at[k] - centre[2];
        double r = sqrt(u * u + v * v + w * w) + s->radius.at[k];
        most = r > most ? r : most;
    }
    to->radius.at[lane] = most;
}

void tsr_sphere_tree_update(tsr_sphere_tree *t, int first, int last)
{
    for (int k = first; k <= last; k++) {
        tsr_block_group *s = &t->group[k / TSR_LANES];
        for (int d = 0; d < 3; d++)
            s->x[d].at[k % TSR_LANES] = t->block[k].centre[d];
        s->radius.at[k % TSR_LANES] = t->block[k].radius;
    }
    for (int s = first / TSR_LANES; s <= last / TSR_LANES; s++) {
        int n = t->n_block - s * TSR_LANES;
        enclose(&t->group[s], n < TSR_LANES ? n : TSR_LANES,
                &t->top[s / TSR_LANES], s % TSR_LANES);
    }
}

/* ---- contacts ---- */

enum {
    LARGE = 64, /* a rigid span of so many bodies or more is searched last */
    NODES = 16, /* list nodes per body */
    RECENT = 4  /* number of remembered forbidden pairs */
};

/* Node of a contact. A contact is in the lists of both its bodies. */
typedef struct {
    int other, next;
    int64_t term;
} node;

typedef struct {
    int a, b;
    int64_t term;
} contact;

/* Bodies first..end-1 of a span, within one block of the tree. */
typedef struct {
    tsr_body_block at; /* proposed positions */
    int first, end, group;
} moved_block;

struct tsr_clash_state {
    const tsr_clash *clash;
    int n;
    tsr_sphere_tree *tree; /* current positions */
    uint16_t *all,
        *unmoved; /* [n_block] one bit a body: all bodies; unmoved bodies */
    moved_block *moved; /* blocks of the proposal, [n_block + 2 spans] */
    int n_moved;
    tsr_body_pair *pair; /* [16 n] */
    /* pairs that made recent proposals forbidden and may do so again */
    int recent[RECENT][2], next_recent;
    /* contact lists; abandoned for the rest of the run if there are too many
     * contacts (has_lists 0) */
    int has_lists;
    int *first_node; /* [n] first node of each body; -1: no contact */
    node *node;      /* [NODES n] */
    int n_free, *free_node;
    contact *found; /* [NODES n] contacts found for the proposal */
    int n_found;
    int *mark; /* [n] 0: body did not move; -1: moved without a group; otherwise
                  its group */
};

/* ---- pairs of a proposal ---- */

/* The sum of the terms of the pairs found so far. */
typedef struct {
    tsr_clash_state *s;
    int64_t sum;
    int forbidden; /* 1: a pair is forbidden */
} search;

static void remember_pair(tsr_clash_state *s, int a, int b)
{
    s->recent[s->next_recent][0] = a;
    s->recent[s->next_recent][1] = b;
    s->next_recent = (s->next_recent + 1) % RECENT;
}

/* Is one of the remembered pairs forbidden again? Such a pair is the reason in
 * most forbidden proposals. */
static int is_forbidden_again(const tsr_clash_state *s,
                              const double (*proposed)[3])
{
    for (int k = 0; k < RECENT; k++) {
        int a = s->recent[k][0], b = s->recent[k][1];
        if (a != b && tsr_clash_pair(s->clash, a, proposed[a], b,
                                     proposed[b]) == TSR_CLASH_FORBIDDEN)
            return 1;
    }
    return 0;
}

/* Adds the term of a pair. Returns 0 if the pair is forbidden. */
static int add_pair(search *f, int a, const double x[3], int b,
                    const double y[3])
{
    int64_t term = tsr_clash_pair(f->s->clash, a, x, b, y);
    if (term == 0)
        return 1;
    if (term == TSR_CLASH_FORBIDDEN) {
        f->forbidden = 1;
        remember_pair(f->s, a, b);
        return 0;
    }
    tsr_clash_state *s = f->s;
    f->sum += term;
    if (s->n_found < NODES * s->n)
        s->found[s->n_found] = (contact){a, b, term};
    s->n_found++;
    return 1;
}

/* ---- the search of a proposal ---- */

/* Adds the pairs of a moved block and unmoved bodies. Returns 0 if one is
 * forbidden. */
static int search_unmoved(search *f, const double (*proposed)[3],
                          const moved_block *m)
{
    tsr_clash_state *s = f->s;
    int n = tsr_sphere_tree_pairs(s->tree, &m->at, s->unmoved, s->clash->cutoff,
                                  s->pair);
    for (int k = 0; k < n; k++) {
        int a = m->at.first + s->pair[k].a, b = s->pair[k].b;
        if (!add_pair(f, a, proposed[a], b, proposed[b]))
            return 0;
    }
    return 1;
}

/* The same for two moved blocks, or for one block with itself. */
static int search_moved(search *f, const double (*proposed)[3],
                        const moved_block *p, const moved_block *q)
{
    tsr_clash_state *s = f->s;
    int n = tsr_body_block_pairs(&p->at, &q->at, s->clash->cutoff, s->pair);
    for (int k = 0; k < n; k++) {
        int a = p->at.first + s->pair[k].a, b = s->pair[k].b;
        if ((p != q || b < a) && !add_pair(f, a, proposed[a], b, proposed[b]))
            return 0;
    }
    return 1;
}

static void split_span(tsr_clash_state *s, const tsr_body_span *span)
{
    for (int first = span->first; first < span->end;) {
        int end = (first / TSR_LANES + 1) * TSR_LANES;
        end = end < span->end ? end : span->end;
        moved_block *m = &s->moved[s->n_moved++];
        m->first = first, m->end = end, m->group = span->group;
        first = end;
    }
}

/* Searches blocks from..to-1 of a span against unmoved bodies, starting at the
 * end that is usually near the hinge, where a clash is most likely. */
static void search_span(search *f, const double (*proposed)[3],
                        const tsr_body_span *span, int from, int to)
{
    tsr_clash_state *s = f->s;
    int down = span->first == 0 || span->end < s->n;
    for (int k = from; k < to && !f->forbidden; k++) {
        moved_block *m = &s->moved[down ? to - 1 - (k - from) : k];
        tsr_body_block_set(&m->at, proposed, m->first, m->end);
        search_unmoved(f, proposed, m);
    }
}

static void search_proposal(search *f, const double (*proposed)[3], int n_span,
                            const tsr_body_span *span)
{
    tsr_clash_state *s = f->s;
    int from[TSR_ALL_SPANS + 1] = {0};
    s->n_moved = 0;
    for (int k = 0; k < n_span; k++) {
        split_span(s, &span[k]);
        from[k + 1] = s->n_moved;
    }
    /* small spans first, which are cheap and clash most often */
    for (int large = 0; large < 2; large++)
        for (int k = 0; k < n_span && !f->forbidden; k++)
            if ((span[k].group > 0 && span[k].end - span[k].first >= LARGE) ==
                large)
                search_span(f, proposed, &span[k], from[k], from[k + 1]);
    for (int k = 0; k < s->n_moved; k++)
        for (int l = 0; l <= k && !f->forbidden; l++) {
            const moved_block *p = &s->moved[k], *q = &s->moved[l];
            if (p->group == 0 || p->group != q->group)
                search_moved(f, proposed, p, q);
        }
}

/* ---- contact lists ---- */

/* Further energies are computed by searches. */
static void abandon_lists(tsr_clash_state *s)
{
    s->has_lists = 0;
}

static void add_node(tsr_clash_state *s, int b, int other, int64_t term)
{
    int k = s->free_node[--s->n_free];
    s->node[k] = (node){other, s->first_node[b], term};
    s->first_node[b] = k;
}

static void add_contact(tsr_clash_state *s, const contact *c)
{
    if (s->n_free < 2) {
        abandon_lists(s);
        return;
    }
    add_node(s, c->a, c->b, c->term);
    add_node(s, c->b, c->a, c->term);
}

static void list_found(tsr_clash_state *s)
{
    if (s->n_found > NODES * s->n)
        abandon_lists(s);
    for (int k = 0; k < s->n_found && s->has_lists; k++)
        add_contact(s, &s->found[k]);
}

static void remove_node(tsr_clash_state *s, int b, int other)
{
    int *at = &s->first_node[b];
    while (s->node[*at].other != other)
        at = &s->node[*at].next;
    s->free_node[s->n_free++] = *at;
    *at = s->node[*at].next;
}

/* Returns 1 if the distance between moved body b and body c changed. */
static int is_changed(const tsr_clash_state *s, int b, int c)
{
    return s->mark[b] != s->mark[c] || s->mark[b] < 0;
}

/* Returns the sum of the current terms of all pairs whose distance the proposal
 * changes, from the lists or, without lists, by a search. */
static int64_t current_sum(tsr_clash_state *s, const double (*current)[3],
                           int n_span, const tsr_body_span *span)
{
    int64_t sum = 0;
    if (s->has_lists) {
        for (int k = 0; k < n_span; k++)
            for (int b = span[k].first; b < span[k].end; b++)
                for (int i = s->first_node[b]; i >= 0; i = s->node[i].next) {
                    int c = s->node[i].other;
                    if (s->mark[c] == 0 || (c < b && is_changed(s, b, c)))
                        sum += s->node[i].term;
                }
        return sum;
    }
    search f = {s, 0, 0};
    for (int k = 0; k < n_span; k++)
        for (int b = span[k].first; b < span[k].end;) {
            int end = (b / TSR_LANES + 1) * TSR_LANES;
            end = end < span[k].end ? end : span[k].end;
            const tsr_body_block *own = &s->tree->block[b / TSR_LANES];
            int n = tsr_sphere_tree_pairs(s->tree, own, s->all,
                                          s->clash->cutoff, s->pair);
            for (int i = 0; i < n; i++) {
                int one = own->first + s->pair[i].a, other = s->pair[i].b;
                if (one >= b && one < end &&
                    (s->mark[other] == 0 ||
                     (other < one && is_changed(s, one, other))))
                    add_pair(&f, one, current[one], other, current[other]);
            }
            b = end;
        }
    return f.sum;
}

static void set_marks(tsr_clash_state *s, int n_span, const tsr_body_span *span,
                      int clear)
{
    for (int k = 0; k < n_span; k++) {
        int value = clear ? 0 : span[k].group > 0 ? span[k].group : -1;
        for (int b = span[k].first; b < span[k].end; b++)
            s->mark[b] = value;
    }
}

static void set_unmoved(tsr_clash_state *s, int n_span,
                        const tsr_body_span *span, int clear)
{
    for (int k = 0; k < n_span; k++)
        for (int b = span[k].first; b < span[k].end;) {
            int u = b / TSR_LANES, end = (u + 1) * TSR_LANES;
            end = end < span[k].end ? end : span[k].end;
            unsigned bits = ((1u << (end - b)) - 1) << b % TSR_LANES;
            s->unmoved[u] = (uint16_t)(clear ? s->unmoved[u] | bits
                                             : s->unmoved[u] & ~bits);
            b = end;
        }
}

/* ---- the interface ---- */

/* Finds and lists all contacts; returns the sum of their terms. */
static int64_t find_contacts(tsr_clash_state *s, const double (*body)[3])
{
    search f = {s, 0, 0};
    for (int u = 0; u < s->tree->n_block; u++) {
        const tsr_body_block *own = &s->tree->block[u];
        int n = tsr_sphere_tree_pairs(s->tree, own, s->all, s->clash->cutoff,
                                      s->pair);
        s->n_found = 0;
        for (int k = 0; k < n; k++) {
            int a = own->first + s->pair[k].a, b = s->pair[k].b;
            if (b < a)
                add_pair(&f, a, body[a], b, body[b]);
        }
        list_found(s);
    }
    return f.sum;
}

tsr_clash_state *tsr_clash_state_new(tsr_pool *pool, const tsr_clash *clash,
                                     const double (*body)[3], int64_t *total)
{
    const int n = clash->topology->n_body;
    const int n_block = (n + TSR_LANES - 1) / TSR_LANES;
    tsr_clash_state *s = tsr_pool_new(pool, 1, sizeof *s);
    if (s == NULL)
        return NULL;
    s->clash = clash;
    s->n = n;
    s->has_lists = 1;
    s->tree = tsr_sphere_tree_new(pool, n, body);
    const int n_copy = clash->topology->symmetry.n;
    s->moved =
        lanes_new(pool, n_block + 2 * TSR_MAX_SPAN * (n_copy > 1 ? n_copy : 1),
                  sizeof *s->moved);
    tsr_pool_array(pool, s->all, n_block);
    tsr_pool_array(pool, s->unmoved, n_block);
    tsr_pool_array(pool, s->pair, TSR_LANES * (size_t)n);
    tsr_pool_array(pool, s->first_node, n);
    tsr_pool_array(pool, s->node, NODES * (size_t)n);
    tsr_pool_array(pool, s->free_node, NODES * (size_t)n);
    tsr_pool_array(pool, s->found, NODES * (size_t)n);
    tsr_pool_array(pool, s->mark, n);
    if (pool->failed)
        return NULL;
    memset(s->all, 0xff, (size_t)n_block * sizeof *s->all);
    memset(s->unmoved, 0xff, (size_t)n_block * sizeof *s->unmoved);
    for (int k = 0; k < NODES * s->n; k++)
        s->free_node[s->n_free++] = k;
    for (int b = 0; b < s->n; b++)
        s->first_node[b] = -1;
    *total = find_contacts(s, body);
    return s;
}

int64_t tsr_clash_propose(tsr_clash_state *s, const double (*current)[3],
                          const double (*proposed)[3], int n_span,
                          const tsr_body_span *span)
{
    search f = {s, 0, 0};
    if (is_forbidden_again(s, proposed))
        return TSR_CLASH_FORBIDDEN;
    s->n_found = 0;
    set_unmoved(s, n_span, span, 0);
    search_proposal(&f, proposed, n_span, span);
    set_unmoved(s, n_span, span, 1);
    if (f.forbidden)
        return TSR_CLASH_FORBIDDEN;
    set_marks(s, n_span, span, 0);
    int64_t old = current_sum(s, current, n_span, span);
    set_marks(s, n_span, span, 1);
    return f.sum - old;
}

/* Removes the contacts of pairs whose distance changed, and adds those that the
 * proposal found. */
static void update_contacts(tsr_clash_state *s, int n_span,
                            const tsr_body_span *span)
{
    set_marks(s, n_span, span, 0);
    for (int k = 0; k < n_span; k++)
        for (int b = span[k].first; b < span[k].end; b++)
            for (int *at = &s->first_node[b]; *at >= 0;) {
                int i = *at, other = s->node[i].other;
                if (!is_changed(s, b, other)) {
                    at = &s->node[i].next;
                    continue;
                }
                *at = s->node[i].next;
                s->free_node[s->n_free++] = i;
                remove_node(s, other, b);
            }
    set_marks(s, n_span, span, 1);
    list_found(s);
}

void tsr_clash_accept(tsr_clash_state *s, const double (*proposed)[3],
                      int n_span, const tsr_body_span *span)
{
    if (s->has_lists)
        update_contacts(s, n_span, span);
    for (int k = 0; k < s->n_moved; k++) {
        const moved_block *m = &s->moved[k];
        int u = m->first / TSR_LANES, end = (u + 1) * TSR_LANES;
        end = end < s->n ? end : s->n;
        if (m->first == u * TSR_LANES && m->end == end)
            s->tree->block[u] = m->at;
        else
            tsr_body_block_set(&s->tree->block[u], proposed, u * TSR_LANES,
                               end);
    }
    for (int k = 0; k < n_span; k++)
        tsr_sphere_tree_update(s->tree, span[k].first / TSR_LANES,
                               (span[k].end - 1) / TSR_LANES);
}
