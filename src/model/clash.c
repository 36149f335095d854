#include "model/clash.h"

#include <stdlib.h>
#include <string.h>

enum {
    BLOCK = 16, /* bodies in one bounding sphere */
    LARGE = 64, /* a rigid span of as many is searched by spheres */
    NODES = 16  /* places for contacts, a body */
};

typedef struct {
    double centre[3], radius;
    int first, end; /* bodies */
} ball;

/* A contact stands in the lists of both its bodies. */
typedef struct {
    int other, next;
    int64_t term;
} node;

typedef struct {
    int a, b;
    int64_t term;
} contact;

struct tsr_clash_state {
    const tsr_clash *clash;
    int n;
    double inverse_cutoff;
    /* cells: open hashing, the bodies of a slot in a list */
    unsigned mask;
    int *head;          /* [mask + 1] */
    int *next, *before; /* [n] */
    uint64_t *cell;     /* [n] */
    /* spheres around runs of BLOCK bodies, where they are now */
    int n_ball;
    ball *now;   /* [n_ball] */
    ball *moved; /* [n_ball + TSR spans] of the large spans proposed */
    /* contacts; given up for good (listed 0) where there are too many */
    int listed;
    int *list;  /* [n] first node, -1: none */
    node *pool; /* [NODES n] */
    int n_free, *free_node;
    contact *found; /* [NODES n] of the proposal */
    int n_found;
    int *mark; /* [n] 0: unmoved, -1: moved and in no group, else the group */
};

/* ---- cells ---- */

static int32_t cell_at(const tsr_clash_state *s, double x)
{
    return (int32_t)floor(x * s->inverse_cutoff);
}

static uint64_t key_of(int32_t i, int32_t j, int32_t k)
{
    const uint64_t low = 0x1fffff;
    return ((uint64_t)(int64_t)i & low) << 42 |
           ((uint64_t)(int64_t)j & low) << 21 | ((uint64_t)(int64_t)k & low);
}

/* Neighbours along the last axis lie side by side. */
static unsigned column_of(int32_t i, int32_t j)
{
    uint32_t h = (uint32_t)i * 0x9e3779b1u ^ (uint32_t)j * 0x85ebca6bu;
    return (h ^ h >> 15) * 0xc2b2ae35u;
}

static void insert(tsr_clash_state *s, int b, const double x[3])
{
    int32_t i = cell_at(s, x[0]), j = cell_at(s, x[1]), k = cell_at(s, x[2]);
    unsigned h = (column_of(i, j) + (uint32_t)k) & s->mask;
    s->cell[b] = key_of(i, j, k);
    s->before[b] = -1 - (int)h;
    s->next[b] = s->head[h];
    if (s->head[h] >= 0)
        s->before[s->head[h]] = b;
    s->head[h] = b;
}

/* before: the one before it in the list, or -1 - slot at its head */
static void take_out(tsr_clash_state *s, int b)
{
    if (s->before[b] >= 0)
        s->next[s->before[b]] = s->next[b];
    else
        s->head[-1 - s->before[b]] = s->next[b];
    if (s->next[b] >= 0)
        s->before[s->next[b]] = s->before[b];
}

/* ---- spheres ---- */

static ball ball_around(const double (*x)[3], int first, int end)
{
    ball b = {{0.0, 0.0, 0.0}, 0.0, first, end};
    double most = 0.0;
    for (int i = first; i < end; i++)
        for (int d = 0; d < 3; d++)
            b.centre[d] += x[i][d];
    for (int d = 0; d < 3; d++)
        b.centre[d] /= end - first;
    for (int i = first; i < end; i++) {
        double r2 = tsr_vec3_distance2(x[i], b.centre);
        most = r2 > most ? r2 : most;
    }
    b.radius = sqrt(most);
    return b;
}

static int is_near(const double x[3], double radius, const double y[3])
{
    return tsr_vec3_distance2(x, y) < radius * radius;
}

/* ---- what is found ---- */

typedef struct {
    tsr_clash_state *s;
    int64_t sum;
    int forbidden;
} search;

/* Returns 0 where the pair is impossible. */
static int meet(search *f, int a, const double x[3], int b, const double y[3])
{
    int64_t term = tsr_clash_pair(f->s->clash, a, x, b, y);
    if (term == 0)
        return 1;
    if (term == TSR_CLASH_FORBIDDEN) {
        f->forbidden = 1;
        return 0;
    }
    tsr_clash_state *s = f->s;
    f->sum += term;
    if (s->n_found < NODES * s->n)
        s->found[s->n_found] = (contact){a, b, term};
    s->n_found++;
    return 1;
}

/* Body a at x against the unmoved bodies, by cells. */
static int meet_unmoved(search *f, const double (*current)[3], int a,
                        const double x[3])
{
    const tsr_clash_state *s = f->s;
    int32_t i = cell_at(s, x[0]), j = cell_at(s, x[1]), k = cell_at(s, x[2]);
    for (int32_t u = i - 1; u <= i + 1; u++)
        for (int32_t v = j - 1; v <= j + 1; v++) {
            unsigned column = column_of(u, v);
            for (int32_t w = k - 1; w <= k + 1; w++) {
                uint64_t key = key_of(u, v, w);
                for (int c = s->head[(column + (uint32_t)w) & s->mask]; c >= 0;
                     c = s->next[c])
                    if (s->cell[c] == key && s->mark[c] == 0 &&
                        !meet(f, a, x, c, current[c]))
                        return 0;
            }
        }
    return 1;
}

/* Body a at x against the bodies of a ball; `still`: only unmoved ones. */
static int meet_ball(search *f, int a, const double x[3], const ball *b,
                     const double (*y)[3], int still)
{
    const tsr_clash_state *s = f->s;
    if (!is_near(x, b->radius + s->clash->cutoff, b->centre))
        return 1;
    for (int c = b->first; c < b->end; c++)
        if (!(still && s->mark[c] != 0) && !meet(f, a, x, c, y[c]))
            return 0;
    return 1;
}

static int meet_balls(search *f, const ball *a, const double (*x)[3],
                      const ball *b, const double (*y)[3], int still)
{
    double reach = a->radius + b->radius + f->s->clash->cutoff;
    if (!is_near(a->centre, reach, b->centre))
        return 1;
    for (int i = a->first; i < a->end; i++)
        if (!meet_ball(f, i, x[i], b, y, still))
            return 0;
    return 1;
}

/* A span and the balls of it, where it is large. */
typedef struct {
    const tsr_body_span *span;
    int n_ball;
    const ball *ball;
} part;

static int parts_of(tsr_clash_state *s, const double (*proposed)[3], int n_span,
                    const tsr_body_span *span, part *out)
{
    ball *next = s->moved;
    for (int k = 0; k < n_span; k++) {
        const tsr_body_span *p = &span[k];
        out[k] = (part){p, 0, next};
        if (p->group == 0 || p->end - p->first < LARGE)
            continue;
        for (int first = p->first; first < p->end;) {
            int end = (first / BLOCK + 1) * BLOCK;
            end = end < p->end ? end : p->end;
            *next++ = ball_around(proposed, first, end);
            out[k].n_ball++;
            first = end;
        }
    }
    return n_span;
}

static int part_unmoved(search *f, const double (*current)[3],
                        const double (*proposed)[3], const part *p)
{
    tsr_clash_state *s = f->s;
    if (p->n_ball == 0) {
        for (int b = p->span->first; b < p->span->end; b++)
            if (!meet_unmoved(f, current, b, proposed[b]))
                return 0;
        return 1;
    }
    /* from the hinge outwards: a clash is likelier near it */
    int down = p->span->first == 0 || p->span->end < s->n;
    for (int k = 0; k < p->n_ball; k++) {
        const ball *own = &p->ball[down ? p->n_ball - 1 - k : k];
        for (int u = 0; u < s->n_ball; u++)
            if (!meet_balls(f, own, proposed, &s->now[u], current, 1))
                return 0;
    }
    return 1;
}

/* Two different parts, or one with itself. */
static int part_part(search *f, const double (*proposed)[3], const part *p,
                     const part *q)
{
    if (p->n_ball > 0 && q->n_ball > 0) {
        for (int i = 0; i < p->n_ball; i++)
            for (int j = 0; j < q->n_ball; j++)
                if (!meet_balls(f, &p->ball[i], proposed, &q->ball[j], proposed,
                                0))
                    return 0;
        return 1;
    }
    const part *small = p->n_ball > 0 ? q : p, *other = p->n_ball > 0 ? p : q;
    for (int a = small->span->first; a < small->span->end; a++) {
        for (int k = 0; k < other->n_ball; k++)
            if (!meet_ball(f, a, proposed[a], &other->ball[k], proposed, 0))
                return 0;
        if (other->n_ball > 0)
            continue;
        int end = p == q ? a : other->span->end;
        for (int b = other->span->first; b < end; b++)
            if (!meet(f, a, proposed[a], b, proposed[b]))
                return 0;
    }
    return 1;
}

/* ---- contacts ---- */

static void give_up(tsr_clash_state *s)
{
    s->listed = 0;
}

static void add_node(tsr_clash_state *s, int b, int other, int64_t term)
{
    int k = s->free_node[--s->n_free];
    s->pool[k] = (node){other, s->list[b], term};
    s->list[b] = k;
}

static void add_contact(tsr_clash_state *s, const contact *c)
{
    if (s->n_free < 2) {
        give_up(s);
        return;
    }
    add_node(s, c->a, c->b, c->term);
    add_node(s, c->b, c->a, c->term);
}

static void drop_node(tsr_clash_state *s, int b, int other)
{
    int *at = &s->list[b];
    while (s->pool[*at].other != other)
        at = &s->pool[*at].next;
    s->free_node[s->n_free++] = *at;
    *at = s->pool[*at].next;
}

/* Did the distance of body b, which moved, to c change? */
static int is_changed(const tsr_clash_state *s, int b, int c)
{
    return s->mark[b] != s->mark[c] || s->mark[b] < 0;
}

static int64_t old_sum(tsr_clash_state *s, const double (*current)[3],
                       int n_span, const tsr_body_span *span)
{
    int64_t sum = 0;
    if (s->listed) {
        for (int k = 0; k < n_span; k++)
            for (int b = span[k].first; b < span[k].end; b++)
                for (int i = s->list[b]; i >= 0; i = s->pool[i].next) {
                    int c = s->pool[i].other;
                    if (s->mark[c] == 0 || (c < b && is_changed(s, b, c)))
                        sum += s->pool[i].term;
                }
        return sum;
    }
    search f = {s, 0, 0};
    for (int k = 0; k < n_span; k++)
        for (int b = span[k].first; b < span[k].end; b++) {
            meet_unmoved(&f, current, b, current[b]);
            for (int l = 0; l <= k; l++) {
                int end = l == k ? b : span[l].end;
                for (int c = span[l].first; c < end; c++)
                    if (is_changed(s, b, c))
                        meet(&f, b, current[b], c, current[c]);
            }
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

/* ---- the interface ---- */

void tsr_clash_state_free(tsr_clash_state *state)
{
    if (state == NULL)
        return;
    free(state->head);
    free(state->next);
    free(state->before);
    free(state->cell);
    free(state->now);
    free(state->moved);
    free(state->list);
    free(state->pool);
    free(state->free_node);
    free(state->found);
    free(state->mark);
    free(state);
}

tsr_clash_state *tsr_clash_state_new(const tsr_clash *clash,
                                     const double (*body)[3], int64_t *total)
{
    size_t n = (size_t)clash->topology->n_body, table = 64;
    while (table < 4 * n)
        table *= 2;
    tsr_clash_state *s = calloc(1, sizeof *s);
    if (s == NULL)
        return NULL;
    s->clash = clash;
    s->n = (int)n;
    s->inverse_cutoff = 1.0 / clash->cutoff;
    s->mask = (unsigned)table - 1;
    s->n_ball = (s->n + BLOCK - 1) / BLOCK;
    s->listed = 1;
    s->head = malloc(table * sizeof *s->head);
    s->next = malloc(n * sizeof *s->next);
    s->before = malloc(n * sizeof *s->before);
    s->cell = malloc(n * sizeof *s->cell);
    s->now = malloc((size_t)s->n_ball * sizeof *s->now);
    s->moved = malloc(((size_t)s->n_ball + 16) * sizeof *s->moved);
    s->list = malloc(n * sizeof *s->list);
    s->pool = malloc(NODES * n * sizeof *s->pool);
    s->free_node = malloc(NODES * n * sizeof *s->free_node);
    s->found = malloc(NODES * n * sizeof *s->found);
    s->mark = calloc(n, sizeof *s->mark);
    if (s->head == NULL || s->next == NULL || s->before == NULL ||
        s->cell == NULL || s->now == NULL || s->moved == NULL ||
        s->list == NULL || s->pool == NULL || s->free_node == NULL ||
        s->found == NULL || s->mark == NULL) {
        tsr_clash_state_free(s);
        return NULL;
    }
    for (size_t h = 0; h < table; h++)
        s->head[h] = -1;
    for (int k = 0; k < NODES * s->n; k++)
        s->free_node[s->n_free++] = k;
    search f = {s, 0, 0};
    *total = 0;
    for (int b = 0; b < s->n; b++) {
        s->list[b] = -1;
        s->n_found = 0;
        meet_unmoved(&f, body, b, body[b]);
        for (int k = 0; k < s->n_found && s->listed; k++)
            add_contact(s, &s->found[k]);
        insert(s, b, body[b]);
    }
    for (int k = 0; k < s->n_ball; k++) {
        int end = (k + 1) * BLOCK;
        s->now[k] = ball_around(body, k * BLOCK, end < s->n ? end : s->n);
    }
    *total = f.sum;
    return s;
}

int64_t tsr_clash_propose(tsr_clash_state *state, const double (*current)[3],
                          const double (*proposed)[3], int n_span,
                          const tsr_body_span *span)
{
    tsr_clash_state *s = state;
    part own[16];
    search f = {s, 0, 0};
    set_marks(s, n_span, span, 0);
    int64_t old = old_sum(s, current, n_span, span);
    s->n_found = 0;
    int n = parts_of(s, proposed, n_span, span, own);
    /* what moved little first: it is cheap and clashes soonest */
    for (int large = 0; large < 2; large++)
        for (int k = 0; k < n && !f.forbidden; k++)
            if ((own[k].n_ball > 0) == large)
                part_unmoved(&f, current, proposed, &own[k]);
    for (int k = 0; k < n; k++)
        for (int l = 0; l <= k && !f.forbidden; l++)
            if (span[k].group == 0 || span[k].group != span[l].group)
                part_part(&f, proposed, &own[k], &own[l]);
    set_marks(s, n_span, span, 1);
    return f.forbidden ? TSR_CLASH_FORBIDDEN : f.sum - old;
}

/* The pairs whose distance changed: the old ones go, the found ones come. */
static void renew_contacts(tsr_clash_state *s, int n_span,
                           const tsr_body_span *span)
{
    set_marks(s, n_span, span, 0);
    for (int k = 0; k < n_span; k++)
        for (int b = span[k].first; b < span[k].end; b++)
            for (int *at = &s->list[b]; *at >= 0;) {
                int i = *at, other = s->pool[i].other;
                if (!is_changed(s, b, other)) {
                    at = &s->pool[i].next;
                    continue;
                }
                *at = s->pool[i].next;
                s->free_node[s->n_free++] = i;
                drop_node(s, other, b);
            }
    set_marks(s, n_span, span, 1);
    if (s->n_found > NODES * s->n)
        give_up(s);
    for (int k = 0; k < s->n_found && s->listed; k++)
        add_contact(s, &s->found[k]);
}

void tsr_clash_accept(tsr_clash_state *state, const double (*proposed)[3],
                      int n_span, const tsr_body_span *span)
{
    tsr_clash_state *s = state;
    if (s->listed)
        renew_contacts(s, n_span, span);
    for (int k = 0; k < n_span; k++) {
        for (int b = span[k].first; b < span[k].end; b++) {
            take_out(s, b);
            insert(s, b, proposed[b]);
        }
        int last = (span[k].end - 1) / BLOCK;
        for (int u = span[k].first / BLOCK; u <= last; u++)
            s->now[u] = ball_around(proposed, s->now[u].first, s->now[u].end);
    }
}
