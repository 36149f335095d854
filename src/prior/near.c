/* Blocks, shelves and the search over them, sixteen lanes at a time. */
#include "prior/near.h"

#include "core/clones.h"

#include <math.h>

typedef int64_t eight_bits __attribute__((vector_size(64), aligned(64)));

/* One bit a lane; both halves are gathered at once. */
TSR_INLINE unsigned gather(const eight_bits *low, const eight_bits *high)
{
    const eight_bits one = {1, 2, 4, 8, 16, 32, 64, 128};
    eight_bits both = (*low & one) | (*high & (one << 8));
    uint64_t bits = 0;
    for (int k = 0; k < 8; k++)
        bits |= (uint64_t)both[k];
    return (unsigned)bits;
}

/* Lanes closer to x than the square root of r2. */
TSR_INLINE unsigned within(const tsr_lanes at[3], const double x[3], double r2)
{
    eight_bits is[2];
    for (int h = 0; h < 2; h++) {
        tsr_eight u = at[0].half[h] - x[0], v = at[1].half[h] - x[1];
        tsr_eight w = at[2].half[h] - x[2];
        is[h] = u * u + v * v + w * w < r2;
    }
    return gather(&is[0], &is[1]);
}

/* Spheres that come within reach of x. */
TSR_INLINE unsigned touching(const tsr_near_shelf *s, const double x[3],
                             double reach)
{
    eight_bits is[2];
    for (int h = 0; h < 2; h++) {
        tsr_eight u = s->x[0].half[h] - x[0], v = s->x[1].half[h] - x[1];
        tsr_eight w = s->x[2].half[h] - x[2], r = s->radius.half[h] + reach;
        is[h] = u * u + v * v + w * w < r * r;
    }
    return gather(&is[0], &is[1]);
}

TSR_INLINE int lowest(unsigned bits)
{
    return __builtin_ctz(bits);
}

TSR_CLONES void tsr_near_place(tsr_near_block *block, const double (*xyz)[3],
                               int first, int end)
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

/* Lanes of one that are near any of the other, body by body. */
TSR_INLINE int meet(const tsr_near_block *own, const tsr_near_block *other,
                    unsigned lanes, double reach, tsr_near_pair *pair)
{
    int n = 0;
    double r = own->radius + reach, r2 = reach * reach;
    unsigned b = within(other->x, own->centre, r * r) & lanes;
    if (b == 0)
        return 0;
    r = other->radius + reach;
    unsigned a = within(own->x, other->centre, r * r);
    int turned = __builtin_popcount(b) < __builtin_popcount(a);
    const tsr_lanes *from = turned ? other->x : own->x;
    const tsr_lanes *to = turned ? own->x : other->x;
    unsigned few = turned ? b : a, many = turned ? a : b;
    for (; few != 0; few &= few - 1) {
        int i = lowest(few);
        const double x[3] = {from[0].at[i], from[1].at[i], from[2].at[i]};
        unsigned near = within(to, x, r2) & many;
        for (; near != 0; near &= near - 1) {
            int j = lowest(near);
            pair[n++] = turned ? (tsr_near_pair){j, other->first + i}
                               : (tsr_near_pair){i, other->first + j};
        }
    }
    return n;
}

TSR_CLONES int tsr_near_find(const tsr_near_tree *tree,
                             const tsr_near_block *own, const uint16_t *still,
                             double reach, tsr_near_pair *pair)
{
    int n = 0;
    double r = own->radius + reach;
    for (int t = 0; t * TSR_LANES < tree->n_shelf; t++) {
        unsigned shelves = touching(&tree->top[t], own->centre, r);
        for (; shelves != 0; shelves &= shelves - 1) {
            int s = t * TSR_LANES + lowest(shelves);
            unsigned balls = touching(&tree->shelf[s], own->centre, r);
            for (; balls != 0; balls &= balls - 1) {
                int k = s * TSR_LANES + lowest(balls);
                if (still[k] != 0)
                    n += meet(own, &tree->block[k], still[k], reach, pair + n);
            }
        }
    }
    return n;
}

TSR_CLONES int tsr_near_between(const tsr_near_block *own,
                                const tsr_near_block *other, double reach,
                                tsr_near_pair *pair)
{
    double r = own->radius + other->radius + reach, d2 = 0.0;
    for (int d = 0; d < 3; d++) {
        double u = own->centre[d] - other->centre[d];
        d2 += u * u;
    }
    return d2 < r * r ? meet(own, other, 0xffff, reach, pair) : 0;
}

/* ---- the tree ---- */

void *tsr_lanes_new(tsr_pool *pool, int n, size_t size)
{
    const size_t side = sizeof(tsr_eight);
    char *at = tsr_pool_new(pool, (size_t)n * size + side, 1);
    return at != NULL ? at + (side - (uintptr_t)at % side) : NULL;
}

static void clear(tsr_near_shelf *s)
{
    for (int k = 0; k < TSR_LANES; k++) {
        for (int d = 0; d < 3; d++)
            s->x[d].at[k] = (double)INFINITY;
        s->radius.at[k] = 0.0;
    }
}

tsr_near_tree *tsr_near_tree_new(tsr_pool *pool, int n, const double (*xyz)[3])
{
    tsr_near_tree *t = tsr_pool_new(pool, 1, sizeof *t);
    if (t == NULL)
        return NULL;
    t->n_block = (n + TSR_LANES - 1) / TSR_LANES;
    t->n_shelf = (t->n_block + TSR_LANES - 1) / TSR_LANES;
    int n_top = (t->n_shelf + TSR_LANES - 1) / TSR_LANES;
    t->block = tsr_lanes_new(pool, t->n_block, sizeof *t->block);
    t->shelf = tsr_lanes_new(pool, t->n_shelf, sizeof *t->shelf);
    t->top = tsr_lanes_new(pool, n_top, sizeof *t->top);
    if (pool->failed)
        return NULL;
    for (int k = 0; k < t->n_block; k++) {
        int first = k * TSR_LANES, end = first + TSR_LANES;
        tsr_near_place(&t->block[k], xyz, first, end < n ? end : n);
    }
    for (int k = 0; k < t->n_shelf; k++)
        clear(&t->shelf[k]);
    for (int k = 0; k < n_top; k++)
        clear(&t->top[k]);
    tsr_near_tree_renew(t, 0, t->n_block - 1);
    return t;
}

/* Around the n spheres of a shelf, as a sphere in `to`. */
static void enclose(const tsr_near_shelf *s, int n, tsr_near_shelf *to,
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

void tsr_near_tree_renew(tsr_near_tree *t, int first, int last)
{
    for (int k = first; k <= last; k++) {
        tsr_near_shelf *s = &t->shelf[k / TSR_LANES];
        for (int d = 0; d < 3; d++)
            s->x[d].at[k % TSR_LANES] = t->block[k].centre[d];
        s->radius.at[k % TSR_LANES] = t->block[k].radius;
    }
    for (int s = first / TSR_LANES; s <= last / TSR_LANES; s++) {
        int n = t->n_block - s * TSR_LANES;
        enclose(&t->shelf[s], n < TSR_LANES ? n : TSR_LANES,
                &t->top[s / TSR_LANES], s % TSR_LANES);
    }
}
