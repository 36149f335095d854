/* Beads of a redraw, and their curves.
 *
 * A bead's form factor is F + c2 H, so that the curve of a candidate at any c2
 * follows from three sums over pairs: F F, F H and H H times sin(q r) / (q r).
 * On the uniform grid of q, sin(q r) follows by a recurrence; a row is one
 * bead with vectors of others. */
#include "surrogate/redraw_room.h"

#include <math.h>
#include <string.h>

enum { WIDE = TSR_REDRAW_WIDE };

typedef uint32_t bits __attribute__((vector_size(64), aligned(4), may_alias));

/* ---- where beads are ---- */

static void put_bead(tsr_redraw_room *s, int k)
{
    const tsr_surrogate_spec *p = tsr_redraw_spec(s);
    const int b = s->bead[k];
    float x[3] = {0.0F, 0.0F, 0.0F};
    for (int m = 0; b >= 0 && m < p->bead[b][1]; m++) {
        const int part = p->bead[b][0] + m;
        for (int d = 0; d < 3; d++)
            x[d] += p->share[part] * s->point[p->part[part]][d];
    }
    for (int d = 0; d < 3; d++)
        s->x[d][k] = s->still_x[d][k] = x[d];
    s->mask[k] = 1.0F;
    s->radius[k] = b >= 0 ? p->radius[b] : -p->cutoff; /* near nothing */
}

static void put_forms(tsr_redraw_room *s)
{
    const tsr_surrogate_spec *p = tsr_redraw_spec(s);
    const float *amount = s->job + s->base.layout.amount,
                *shape = s->job + s->base.layout.shape;
    for (int f = 0; f < 2; f++)
        for (int q = 0; q < p->n_q; q++)
            for (int k = 0; k < s->n_all; k++) {
                const float *a = amount + 4 * s->bead[k] + 2 * f;
                s->form[f][q * s->n_pad + k] =
                    s->bead[k] < 0 ? 0.0F
                                   : a[0] * shape[q] + a[1] * shape[p->n_q + q];
            }
}

void tsr_redraw_arrange(tsr_redraw_room *room, const int *what)
{
    tsr_redraw_room *s = room;
    const tsr_surrogate_spec *p = tsr_redraw_spec(s);
    int n[3] = {0};
    for (int b = 0; b < p->n_bead; b++)
        n[what[b]]++;
    s->n_stay = n[0], s->n_loose = n[1], s->n_far = n[2];
    s->at_loose = tsr_redraw_padded(n[0]);
    s->at_far = s->at_loose + tsr_redraw_padded(n[1]);
    s->n_all = s->at_far + tsr_redraw_padded(n[2]);
    int at[3] = {0, s->at_loose, s->at_far};
    for (int k = 0; k < s->n_all; k++)
        s->bead[k] = -1;
    for (int b = 0; b < p->n_bead; b++)
        s->bead[at[what[b]]++] = b;
    for (int k = 0; k < s->n_all; k++)
        put_bead(s, k);
    put_forms(s);
}

void tsr_redraw_place(tsr_redraw_room *room, int a, int b)
{
    tsr_redraw_room *s = room;
    const ptrdiff_t n_bead = tsr_redraw_spec(s)->n_bead;
    const tsr_redraw_motion *m = &s->pool[0][a].end;
    const tsr_redraw_motion both = tsr_redraw_after(m, &s->pool[1][b].end);
    for (int k = 0; k < s->n_loose; k++) {
        const float *near = s->loose[0] + 4 * (a * n_bead + k),
                    *far = s->loose[1] + 4 * (b * n_bead + k);
        const float by = s->share[s->bead[s->at_loose + k]];
        for (int d = 0; d < 3; d++)
            s->x[d][s->at_loose + k] =
                near[d] + m->turn[d][0] * far[0] + m->turn[d][1] * far[1] +
                m->turn[d][2] * far[2] + by * m->shift[d];
    }
    for (int d = 0; d < 3; d++)
        for (int k = s->at_far; k < s->n_all; k++)
            s->x[d][k] = both.turn[d][0] * s->still_x[0][k] +
                         both.turn[d][1] * s->still_x[1][k] +
                         both.turn[d][2] * s->still_x[2][k] + both.shift[d];
}

void tsr_redraw_place_half(tsr_redraw_room *room, int which, int number)
{
    tsr_redraw_room *s = room;
    const tsr_redraw_half *own = &s->pool[which][number];
    const float *loose =
        s->loose[which] + 4 * (ptrdiff_t)number * tsr_redraw_spec(s)->n_bead;
    for (int k = 0; k < s->n_loose; k++) {
        float x[3];
        memcpy(x, loose + 4 * (ptrdiff_t)k, sizeof x);
        if (which == 1)
            tsr_redraw_undo(&own->end, x, x);
        for (int d = 0; d < 3; d++)
            s->x[d][s->at_loose + k] = x[d];
    }
}

/* ---- sums over pairs ---- */

/* 1 / sqrt, by Newton's method from the number's own exponent. */
TSR_INLINE void inverse_root(const tsr_lanes *v, tsr_lanes *out)
{
    const bits first = 0x5f3759dfU - (*(const bits *)v >> 1);
    tsr_lanes y = *(const tsr_lanes *)&first;
    for (int k = 0; k < 3; k++)
        y *= 1.5F - 0.5F * *v * y * y;
    *out = y;
}

/* Of WIDE pairs, bead k with those from `at` on: sin(a) / (q1 r) times their
 * mask and 2 cos(a), a = q1 r below .9 pi, by half the angle. */
TSR_INLINE void start_pairs(const tsr_redraw_room *s, int k, int at, float dq,
                            tsr_lanes *is, tsr_lanes *twice)
{
    const tsr_lanes dx = *(const tsr_lanes *)(s->x[0] + at) - s->x[0][k],
                    dy = *(const tsr_lanes *)(s->x[1] + at) - s->x[1][k],
                    dz = *(const tsr_lanes *)(s->x[2] + at) - s->x[2][k];
    const tsr_lanes r2 = dx * dx + dy * dy + dz * dz + 1e-6F;
    tsr_lanes inverse;
    inverse_root(&r2, &inverse);
    const tsr_lanes a = 0.5F * dq * r2 * inverse, t = a * a;
    const tsr_lanes sine =
        a *
        (1.0F + t * (-1.66666667e-1F +
                     t * (8.33333333e-3F +
                          t * (-1.98412698e-4F +
                               t * (2.75573192e-6F + t * -2.50521084e-8F)))));
    const tsr_lanes cosine =
        1.0F +
        t * (-0.5F + t * (4.16666667e-2F +
                          t * (-1.38888889e-3F +
                               t * (2.48015873e-5F + t * -2.75573192e-7F))));
    *is = *(const tsr_lanes *)(s->mask + at) * sine * cosine * inverse *
          (2.0F / dq);
    *twice = 2.0F - 4.0F * sine * sine;
}

/* Two vectors of pairs at a time, so that one recurrence need not wait for the
 * other. */
TSR_INLINE void add_pairs(const tsr_redraw_room *s, int n_q, int k, int at,
                          int n, float dq, int has_water)
{
    tsr_lanes *u = (tsr_lanes *)s->row_sum[0], *v = (tsr_lanes *)s->row_sum[1];
    const float *f = s->form[0] + at, *h = s->form[1] + at;
    const ptrdiff_t n_pad = s->n_pad;
    tsr_lanes is[2], was[2], twice[2];
    for (int m = 0; m < n; m++) {
        const tsr_lanes mask = *(const tsr_lanes *)(s->mask + at + m * WIDE);
        start_pairs(s, k, at + m * WIDE, dq, &is[m], &twice[m]);
        was[m] = mask - mask;
        u[0] += mask * *(const tsr_lanes *)(f + m * WIDE);
        if (has_water)
            v[0] += mask * *(const tsr_lanes *)(h + m * WIDE);
    }
    for (int q = 1; q < n_q; q++) {
        f += n_pad, h += n_pad;
        tsr_lanes sum = u[q];
        for (int m = 0; m < n; m++)
            sum += is[m] * *(const tsr_lanes *)(f + m * WIDE);
        u[q] = sum;
        if (has_water) {
            sum = v[q];
            for (int m = 0; m < n; m++)
                sum += is[m] * *(const tsr_lanes *)(h + m * WIDE);
            v[q] = sum;
        }
        for (int m = 0; m < n; m++) {
            const tsr_lanes next = twice[m] * is[m] - was[m];
            was[m] = is[m], is[m] = next;
        }
    }
}

/* Adds bead k's pairs with from..to-1, whole vectors of them. */
TSR_INLINE void add_row(const tsr_redraw_room *s, int n_q, int k, int from,
                        int to, float dq, int has_water)
{
    const tsr_lanes *u = (const tsr_lanes *)s->row_sum[0],
                    *v = (const tsr_lanes *)s->row_sum[1];
    tsr_lanes *ff = (tsr_lanes *)s->lane_sum[0],
              *fh = (tsr_lanes *)s->lane_sum[1],
              *hh = (tsr_lanes *)s->lane_sum[2];
    memset(s->row_sum[0], 0, (size_t)n_q * WIDE * sizeof(float));
    if (has_water)
        memset(s->row_sum[1], 0, (size_t)n_q * WIDE * sizeof(float));
    int at = from;
    for (; at + WIDE < to; at += 2 * WIDE)
        add_pairs(s, n_q, k, at, 2, dq, has_water);
    if (at < to)
        add_pairs(s, n_q, k, at, 1, dq, has_water);
    const float *own_f = s->form[0] + k, *own_h = s->form[1] + k;
    const ptrdiff_t n_pad = s->n_pad;
    for (int q = 0; q < n_q; q++, own_f += n_pad, own_h += n_pad) {
        const tsr_lanes sum = u[q];
        ff[q] += *own_f * sum;
        if (has_water) {
            fh[q] += *own_h * sum + *own_f * v[q];
            hh[q] += *own_h * v[q];
        }
    }
}

TSR_CLONES
static void add_one_row(const tsr_redraw_room *s, int n_q, int k, int from,
                        int to, float dq, int has_water)
{
    if (has_water) /* known where the loops are made */
        add_row(s, n_q, k, from, to, dq, 1);
    else
        add_row(s, n_q, k, from, to, dq, 0);
}

/* Beads that stay with all that does not, and loose ones with what moves as
 * one. */
TSR_INLINE void add_others(const tsr_redraw_room *s, int n_q, float dq,
                           int has_water)
{
    for (int k = s->at_far; k < s->at_far + s->n_far; k++)
        add_row(s, n_q, k, 0, s->at_loose, dq, has_water);
    for (int k = s->at_loose; k < s->at_loose + s->n_loose; k++) {
        add_row(s, n_q, k, 0, s->at_loose, dq, has_water);
        if (s->n_far > 0)
            add_row(s, n_q, k, s->at_far, s->n_all, dq, has_water);
    }
}

TSR_CLONES
static void add_between(const tsr_redraw_room *s, int n_q, float dq,
                        int has_water)
{
    if (has_water)
        add_others(s, n_q, dq, 1);
    else
        add_others(s, n_q, dq, 0);
}

static int unit_of(const tsr_surrogate_spec *p, int bead)
{
    return p->body[p->bead[bead][2]][3];
}

/* Pairs of beads within from..to-1, each once, but for those of one rigid unit,
 * which the rest of the job has. */
static void add_within(tsr_redraw_room *s, int from, int to)
{
    const tsr_surrogate_spec *p = tsr_redraw_spec(s);
    const int end = from + tsr_redraw_padded(to - from);
    for (int k = from; k < to; k++) {
        const int unit = unit_of(p, s->bead[k]);
        for (int m = from; m < end; m++)
            s->mask[m] = m < k && (unit < 0 || unit != unit_of(p, s->bead[m]))
                             ? 1.0F
                             : 0.0F;
        add_one_row(s, p->n_q, k, from, from + tsr_redraw_padded(k - from),
                    p->dq_inv_ang, p->has_c2);
    }
    for (int m = from; m < end; m++)
        s->mask[m] = 1.0F;
}

static void clear_sums(const tsr_redraw_room *s)
{
    for (int k = 0; k < 3; k++)
        memset(s->lane_sum[k], 0,
               (size_t)tsr_redraw_spec(s)->n_q * WIDE * sizeof(float));
}

static void take_sums(const tsr_redraw_room *s, float *const out[3])
{
    for (int k = 0; k < 3; k++)
        for (int q = 0; q < tsr_redraw_spec(s)->n_q; q++) {
            float sum = 0.0F;
            for (int l = 0; l < WIDE; l++)
                sum += s->lane_sum[k][q * WIDE + l];
            out[k][q] = q > 0 ? sum / (float)q : sum;
        }
}

void tsr_redraw_sum_rest(tsr_redraw_room *room)
{
    clear_sums(room);
    add_within(room, 0, room->n_stay);
    add_within(room, room->at_far, room->at_far + room->n_far);
    take_sums(room, room->rest);
}

void tsr_redraw_sum(tsr_redraw_room *room)
{
    tsr_redraw_room *s = room;
    const tsr_surrogate_spec *p = tsr_redraw_spec(s);
    clear_sums(s);
    add_between(s, p->n_q, p->dq_inv_ang, p->has_c2);
    add_within(s, s->at_loose, s->at_loose + s->n_loose);
    take_sums(s, s->curve);
    for (int k = 0; k < 3; k++)
        for (int q = 0; q < p->n_q; q++)
            s->curve[k][q] += s->rest[k][q];
}

/* ---- what the data say ---- */

static float by_powers(const float *a, int n_q, int q, float c2)
{
    return a[q] + c2 * (a[n_q + q] + c2 * a[2 * n_q + q]);
}

void tsr_redraw_ratio(const tsr_redraw_room *room, float c2, float *ratio)
{
    const tsr_surrogate_layout *l = &room->base.layout;
    const int n_q = tsr_redraw_spec(room)->n_q;
    for (int q = 0; q < n_q; q++)
        ratio[q] = by_powers(room->job + l->top, n_q, q, c2) /
                   by_powers(room->job + l->bottom, n_q, q, c2);
}

/* out [row_pad] = the profile times rows [n_q][row_pad]. */
TSR_CLONES
static void multiply(const float *rows, int n_q, int row_pad,
                     const float *profile, float *out)
{
    for (int m = 0; m < row_pad; m += WIDE) {
        tsr_lanes sum = {0.0F};
        for (int q = 0; q < n_q; q++)
            sum += profile[q] * *(const tsr_lanes *)(rows + q * row_pad + m);
        *(tsr_lanes *)(out + m) = sum;
    }
}

double tsr_redraw_log_lik(tsr_redraw_room *room, float c2, const float *ratio,
                          float *bare)
{
    tsr_redraw_room *s = room;
    const tsr_surrogate_spec *p = tsr_redraw_spec(s);
    const tsr_surrogate_layout *l = &s->base.layout;
    double sum = 0.0;
    for (int q = 0; q < p->n_q; q++) {
        const float own = by_powers(s->job + l->rest, p->n_q, q, c2) +
                          s->curve[0][q] +
                          c2 * (s->curve[1][q] + c2 * s->curve[2][q]);
        s->profile[q] = own * ratio[q];
        if (bare != NULL)
            bare[q] = own;
    }
    for (int c = 0; c < p->n_curve; c++) {
        multiply(s->rows + (ptrdiff_t)c * p->n_q * s->row_pad, p->n_q,
                 s->row_pad, s->profile, s->product);
        const float *target =
            s->job + l->curve + c * l->curve_size + p->n_q * l->n_row;
        double scale = (double)target[l->n_row], mm = 0.0, tm = 0.0;
        for (int k = 0; k < l->n_row && target[l->n_row] == 0.0F; k++) {
            mm += (double)s->product[k] * (double)s->product[k];
            tm += (double)s->product[k] * (double)target[k];
        }
        scale = target[l->n_row] == 0.0F ? tm / mm : scale;
        for (int k = 0; k < l->n_row; k++) {
            const double rest =
                (double)target[k] - scale * (double)s->product[k];
            sum -= 0.5 * rest * rest;
        }
    }
    return sum;
}
