/* Overlaps of bodies in a redraw. Beads are compared by vectors first, their
 * bodies only where the beads are near. */
#include "surrogate/redraw_room.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { WIDE = TSR_REDRAW_WIDE };

#define SIGNS 0x8000000080000000U /* of two numbers */

/* Energies are integers, so that no order of sums matters. */
static const float unit_per_nat = 65536.0F;
enum { IMPOSSIBLE = -1 };

/* Of two bodies. */
static int overlap(const tsr_surrogate_spec *p, int a, int b, float r2)
{
    const int32_t *u = p->body[a], *v = p->body[b];
    const float d = p->contact[u[0] * p->n_like + v[0]];
    if (r2 >= d * d || (u[2] == v[2] && abs(u[1] - v[1]) < 3) ||
        (u[3] >= 0 && u[3] == v[3]))
        return 0;
    const float z = (d - sqrtf(r2)) * p->inverse_softness, nat = 0.5F * z * z;
    return nat > p->limit ? IMPOSSIBLE : (int)lrintf(nat * unit_per_nat);
}

/* The bodies of beads k and m of the arrangement, those of k where `moved`
 * takes them (NULL: where they are). */
static long touch(const tsr_redraw_room *s, int k, int m,
                  const tsr_redraw_motion *moved)
{
    const tsr_surrogate_spec *p = tsr_redraw_spec(s);
    const int32_t *a = p->bead[s->bead[k]], *b = p->bead[s->bead[m]];
    const float at_k[3] = {s->x[0][k], s->x[1][k], s->x[2][k]},
                at_m[3] = {s->x[0][m], s->x[1][m], s->x[2][m]};
    const float close = p->cutoff + s->radius[m];
    long sum = 0;
    for (int i = 0; i < a[3]; i++) {
        float x[3];
        memcpy(x, a[3] > 1 ? s->point[p->part[a[0] + i]] : at_k, sizeof x);
        if (a[3] > 1 && moved != NULL)
            tsr_redraw_apply(moved, x, x);
        if (tsr_redraw_square(x, at_m) >= close * close)
            continue;
        for (int j = 0; j < b[3]; j++) {
            const float r2 = tsr_redraw_square(
                x, b[3] > 1 ? s->point[p->part[b[0] + j]] : at_m);
            const int e = r2 < p->cutoff * p->cutoff
                              ? overlap(p, a[2] + i, b[2] + j, r2)
                              : 0;
            if (e == IMPOSSIBLE)
                return IMPOSSIBLE;
            sum += e;
        }
    }
    return sum;
}

/* Which of WIDE beads from `at` on are near bead k: two a word, each by the
 * sign of how far they are beyond, as compilers spoil comparisons of vectors.
 * Returns whether any is. */
TSR_INLINE int find_near(const tsr_redraw_room *s, int k, int at, float close,
                         uint64_t near[WIDE / 2])
{
    const tsr_lanes x = *(const tsr_lanes *)(s->x[0] + at) - s->x[0][k],
                    y = *(const tsr_lanes *)(s->x[1] + at) - s->x[1][k],
                    z = *(const tsr_lanes *)(s->x[2] + at) - s->x[2][k],
                    d = *(const tsr_lanes *)(s->radius + at) + close;
    const tsr_lanes beyond = x * x + y * y + z * z - d * d;
    uint64_t any = 0;
    memcpy(near, &beyond, sizeof beyond);
    for (int l = 0; l < WIDE / 2; l++)
        any |= near[l];
    return (any & SIGNS) != 0;
}

/* Adds pairs of bead k with from..to-1; `moved` takes the bodies of k, or those
 * of the others. 0: impossible. */
TSR_CLONES
static int touch_row(const tsr_redraw_room *s, int k, int from, int to,
                     const tsr_redraw_motion *moved, int moves_others,
                     long *sum)
{
    const float close = tsr_redraw_spec(s)->cutoff + s->radius[k];
    uint64_t near[WIDE / 2];
    for (int at = from; at < to; at += WIDE) {
        if (!find_near(s, k, at, close, near))
            continue;
        for (int l = 0; l < WIDE && at + l < to; l++) {
            if ((near[l / 2] >> (32 * (l % 2) + 31) & 1) == 0)
                continue;
            const long e = moves_others ? touch(s, at + l, k, moved)
                                        : touch(s, k, at + l, moved);
            if (e == IMPOSSIBLE)
                return 0;
            *sum += e;
        }
    }
    return 1;
}

float tsr_redraw_energy(const tsr_redraw_room *room,
                        const tsr_redraw_motion *both)
{
    const tsr_redraw_room *s = room;
    const int loose_end = s->at_loose + s->n_loose,
              far_end = s->at_far + s->n_far;
    long sum = 0;
    for (int k = s->at_loose; k < loose_end; k++)
        if (!touch_row(s, k, 0, s->n_stay, NULL, 0, &sum) ||
            !touch_row(s, k, s->at_loose, k, NULL, 0, &sum) ||
            !touch_row(s, k, s->at_far, far_end, both, 1, &sum))
            return INFINITY;
    for (int k = s->at_far; k < far_end; k++)
        if (!touch_row(s, k, 0, s->n_stay, both, 0, &sum))
            return INFINITY;
    return (float)sum / unit_per_nat;
}

/* Beads that lie in both halves count in neither. */
float tsr_redraw_half_energy(const tsr_redraw_room *room, int which)
{
    const tsr_redraw_room *s = room;
    const int from = which == 0 ? 0 : s->at_far,
              to = from + (which == 0 ? s->n_stay : s->n_far);
    const float whole_share = which == 0 ? 0.0F : 1.0F;
    long sum = 0;
    for (int k = s->at_loose; k < s->at_loose + s->n_loose; k++) {
        if (fabsf(s->share[s->bead[k]] - whole_share) > 1e-5F)
            continue;
        if (!touch_row(s, k, from, to, NULL, 0, &sum))
            return INFINITY;
        for (int m = s->at_loose; m < k; m++) {
            if (fabsf(s->share[s->bead[m]] - whole_share) > 1e-5F)
                continue;
            const long e = touch(s, k, m, NULL);
            if (e == IMPOSSIBLE)
                return INFINITY;
            sum += e;
        }
    }
    return (float)sum / unit_per_nat;
}
