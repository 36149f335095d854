/* What a step of a walk (surrogate.cl, which follows this text in the program)
 * sums: overlaps of bodies, pairs of beads, and the curve and likelihood that
 * follow.
 *
 * On a GPU, whose work-items share memory and add to it fast, pairs are counted
 * by their distance. A processor has one work-item, no fast way to count, and
 * vectors: there the curves of pairs themselves are summed. */

#define PRODUCTS 3
#define N_ROW (N_Q + 1)
#define UNIT_PER_NAT 65536.0f
#define MOST_NEAR 512 /* g is 0 beyond */

/* What a bead does in a step. */
#define STAYS 0
#define AS_ONE 1
#define ODD 2
#define NO_BEAD 3 /* fills a vector up */

#if LANES == 1
#pragma OPENCL EXTENSION cl_khr_fp64 : enable
#define SUM double /* of many steps' changes */
#define N_SUM N_Q
#else
#define SUM float
#define N_SUM (PRODUCTS * N_Q)
#endif

/* Of a counter that work-items share, the value before. A processor has one
 * work-item, and its atomic operations take ten times as long as others. */
int grow(__local int *counter, int by)
{
#if LANES > 1
    return atomic_add(counter, by);
#else
    const int before = *counter;
    *counter += by;
    return before;
#endif
}

/* Energy of a pair of bodies in integer units; negative: impossible. */
int overlap(int4 a, int4 b, float r2, __global const float *contact,
            float inverse_softness, float limit)
{
    const float d = contact[a.x * N_CONTACT_TYPE + b.x];
    const int apart = abs(a.y - b.y);
    if (r2 >= d * d || (a.z == b.z && apart < 3) || (a.w >= 0 && a.w == b.w))
        return 0;
    const float z = (d - sqrt(r2)) * inverse_softness, nat = 0.5f * z * z;
    return nat > limit ? -1 : convert_int_rte(nat * UNIT_PER_NAT);
}

/* Bodies of beads, and what a work-item has found of them: energies, whether
 * any is impossible, and pairs of beads of several bodies, which wait in a list
 * that a step shares. */
typedef struct {
    __global const int4 *bead, *body;
    __global const float *contact;
    float inverse_softness, limit;
    __local uint *near;
    __local int *n_near;
    int energy, forbidden, count;
} contacts;

/* Two beads near enough to touch; sign -1: they were. */
void touch(contacts *c, int a, int b, int are_bodies, float r2, int sign)
{
    if (are_bodies) {
        const int e = overlap(c->body[c->bead[a].z], c->body[c->bead[b].z], r2,
                              c->contact, c->inverse_softness, c->limit);
        c->forbidden |= e < 0;
        c->energy += e < 0 ? 0 : sign * e;
        return;
    }
    const int place = grow(c->n_near, 1);
    c->count += sign;
    if (place < 2 * MOST_NEAR)
        c->near[place] =
            (uint)a | (uint)b << 15 | (sign < 0 ? 1u << 30 : 0u);
}

/* The nearest integer of what is below 2^22, in the bits of 1.5 2^23 + x: GPUs
 * convert a fourth as fast as they add. Beyond, the surrogate is worse. */
int whole(float x)
{
    return as_int(x + 12582912.0f) - 0x4B400000;
}

float by_powers(__global const float *a, int q, float c)
{
    return a[q] + c * (a[N_Q + q] + c * a[2 * N_Q + q]);
}

/* The profile before `top` and `bottom`; of pairs, their curve, or counts of
 * the products of shapes 0 0, 0 1 and 1 1. */
float bare_at(__global const float *job, __local const SUM *sums, int q,
              float c2)
{
    float sum = by_powers(job + AT_CONSTANT, q, c2);
#if LANES == 1
    sum += (float)sums[q];
#else
    for (int m = 0; m < PRODUCTS; m++) {
        const float unit = job[AT_COUNT_UNIT + m];
        const float by = job[AT_SHAPE + m / 2 * N_Q + q] *
                         job[AT_SHAPE + (m + 1) / 2 * N_Q + q];
        sum += unit > 0.0f ? by / unit * sums[m * N_Q + q] : 0.0f;
    }
#endif
    return sum;
}

/* Of all curves, from what rows make of the profile. */
float log_lik_of(__global const float *curves, __local const float *row)
{
    float sum = 0.0f;
    for (int c = 0; c < N_CURVE; c++, row += N_ROW) {
        __global const float *target = curves + c * CURVE_SIZE + N_Q * N_ROW;
        float scale = target[N_ROW], mm = 0.0f, tm = 0.0f;
        if (scale == 0.0f) {
            for (int k = 0; k < N_ROW; k++) {
                mm += row[k] * row[k];
                tm += row[k] * target[k];
            }
            scale = tm / mm;
        }
        for (int k = 0; k < N_ROW; k++) {
            const float rest = target[k] - scale * row[k];
            sum -= 0.5f * rest * rest;
        }
    }
    return sum;
}

float square_of(float4 d)
{
    return fma(d.x, d.x, fma(d.y, d.y, d.z * d.z));
}

#if LANES == 1
/* ---- pairs of beads, summed ---- */

#define JOIN_(a, b) a##b
#define JOIN(a, b) JOIN_(a, b)
#define VECTOR JOIN(float, WIDE)
#define FLAGS JOIN(int, WIDE)
#define AS_VECTOR JOIN(as_float, WIDE)
#define N_VECTOR ((N_BEAD + WIDE - 1) / WIDE) /* the last is filled up */
#define ROWS 4
#define N_SERIES (N_Q + 1) /* terms of a series, which goes on by two */

typedef struct {
    VECTOR x[2][N_VECTOR], y[2][N_VECTOR], z[2][N_VECTOR]; /* now, next */
    VECTOR radius[N_VECTOR];
    VECTOR form[N_SERIES][N_VECTOR]; /* form factors at c2 */
    VECTOR sum[N_SERIES];
    FLAGS number[N_VECTOR], unit[N_VECTOR], how[N_VECTOR];
} vector_workspace;

/* One lane of vectors that follow each other. */
#define FLOAT_OF(vectors, b) ((__local float *)(vectors))[b]
#define INT_OF(vectors, b) ((__local int *)(vectors))[b]

/* Beads that are rows, `n` of them in ascending order, and whom they meet:
 * those that do in a step what `meets` says (STAYS, AS_ONE); MEETS_OTHERS, rows
 * that are ODD: all that are not, and ODD ones with higher numbers; MEETS_NEXT:
 * all with higher numbers. */
enum { MEETS_OTHERS = -1, MEETS_NEXT = -2 };

typedef struct {
    int row[ROWS], n, meets;
} row_group;

void open_vectors(__local vector_workspace *r, __local const short *unit_of)
{
    for (int k = 0; k < N_VECTOR; k++) {
        for (int q = 0; q < N_SERIES; q++)
            r->form[q][k] = 0.0f;
        for (int side = 0; side < 2; side++)
            r->x[side][k] = r->y[side][k] = r->z[side][k] = 0.0f;
        r->radius[k] = 0.0f;
        r->how[k] = NO_BEAD;
        r->unit[k] = -1;
    }
    for (int q = 0; q < N_SERIES; q++)
        r->sum[q] = 0.0f;
    for (int b = 0; b < N_VECTOR * WIDE; b++)
        INT_OF(r->number, b) = b;
    for (int b = 0; b < N_BEAD; b++)
        INT_OF(r->unit, b) = unit_of[b];
}

void put_beads(__local vector_workspace *r, int side,
               __local const float4 *centre)
{
    for (int b = 0; b < N_BEAD; b++) {
        const float4 x = centre[b];
        FLOAT_OF(r->x[side], b) = x.x;
        FLOAT_OF(r->y[side], b) = x.y;
        FLOAT_OF(r->z[side], b) = x.z;
        FLOAT_OF(r->radius, b) = x.w;
    }
}

void put_forms(__local vector_workspace *r, __global const float *shape,
               __local const float4 *amount, float c2)
{
    for (int b = 0; b < N_BEAD; b++) {
        const float4 u = amount[b];
        const float first = fma(c2, u.z, u.x), second = fma(c2, u.w, u.y);
        for (int q = 0; q < N_Q; q++)
            FLOAT_OF(r->form[q], b) =
                shape[q] * first + shape[N_Q + q] * second;
    }
}

/* Those that the rows meet in vector v and that are near enough to touch. */
void touch_all(__local const vector_workspace *r, contacts *c,
               const row_group *g, int v, int side, const FLAGS *near)
{
    for (int k = 0; k < ROWS; k++)
        for (int lane = any(near[k]) ? 0 : WIDE; lane < WIDE; lane++) {
            const int a = g->row[k], b = v * WIDE + lane;
            if (((const int *)(near + k))[lane] == 0)
                continue;
            const float x = FLOAT_OF(r->x[side], a) - FLOAT_OF(r->x[side], b);
            const float y = FLOAT_OF(r->y[side], a) - FLOAT_OF(r->y[side], b);
            const float z = FLOAT_OF(r->z[side], a) - FLOAT_OF(r->z[side], b);
            touch(c, a, b,
                  FLOAT_OF(r->radius, a) == 0.0f &&
                      FLOAT_OF(r->radius, b) == 0.0f,
                  x * x + y * y + z * z, side > 0 ? 1 : -1);
        }
}

/* Row k and vector v: whom of it the row meets, which of these are near, and of
 * the recurrence s(j + 1) = (2 - 4 sin^2(dq r / 2)) s(j) - s(j - 1) the factor
 * and is = sin(dq r) / r, was = 0. Distances beyond the band, dq r > .86 pi,
 * count as its end; sin and cos of the half are those of chain_start. */
#define START(k)                                                               \
    VECTOR keep##k, is##k, was##k = 0.0f, factor##k;                           \
    {                                                                          \
        const int a = row##k;                                                  \
        const VECTOR x = FLOAT_OF(r->x[side], a) - x_all;                      \
        const VECTOR y = FLOAT_OF(r->y[side], a) - y_all;                      \
        const VECTOR z = FLOAT_OF(r->z[side], a) - z_all;                      \
        const VECTOR r2 = x * x + y * y + z * z;                               \
        const VECTOR close = FLOAT_OF(r->radius, a) + wide_all;                \
        const int unit = INT_OF(r->unit, a);                                   \
        const FLAGS meets = (k < g->n ? who : 0) & (ahead | (number > a)) &    \
                            ((unit_all != unit) | (unit < 0 ? -1 : 0));        \
        near[k] = meets & (r2 < close * close);                                \
        keep##k = AS_VECTOR(meets & as_int(1.0f));                             \
        const VECTOR t = fmin(r2 * (0.25f * dq * dq), 1.82488985f);            \
        const VECTOR sine =                                                    \
            ((((-2.821055567e-08f * t + 2.773359711e-06f) * t +                \
               -1.984438713e-04f) * t +                                        \
              8.333355188e-03f) * t +                                          \
             -1.666666716e-01f) * t + 1.0f;                                    \
        const VECTOR cosine =                                                  \
            ((((-2.656545348e-07f * t + 2.478488022e-05f) * t +                \
               -1.388877514e-03f) * t +                                        \
              4.166666418e-02f) * t +                                          \
             -0.5f) * t + 1.0f;                                                \
        factor##k = 2.0f - 4.0f * (t * sine * sine);                           \
        is##k = keep##k * (sign * dq * sine * cosine);                         \
    }

/* What the rows make with the vector at term j, of which s is. */
#define ADD(j, s)                                                              \
    {                                                                          \
        __local const VECTOR *form = r->form[j];                               \
        const VECTOR one = FLOAT_OF(form, row0) * s##0 +                       \
                           FLOAT_OF(form, row1) * s##1;                        \
        const VECTOR two = FLOAT_OF(form, row2) * s##2 +                       \
                           FLOAT_OF(form, row3) * s##3;                        \
        r->sum[j] += form[v] * (one + two);                                    \
    }

#define GO_ON(next, now)                                                       \
    next##0 = factor0 * now##0 - next##0;                                      \
    next##1 = factor1 * now##1 - next##1;                                      \
    next##2 = factor2 * now##2 - next##2;                                      \
    next##3 = factor3 * now##3 - next##3

/* What rows make with those whom they meet: of the series sin(j dq r) / r,
 * j > 0, and of 1 first. As proposed it is added to r->sum, at present it is
 * taken off. c NULL: who touches is not looked at. */
void add_rows(__local vector_workspace *r, contacts *c, const row_group *g,
              int side, float dq, float cutoff)
{
    const float sign = side > 0 ? 1.0f : -1.0f;
    const int row0 = g->row[0], row1 = g->row[1];
    const int row2 = g->row[2], row3 = g->row[3];
    for (int v = 0; v < N_VECTOR; v++) {
        const FLAGS how = r->how[v], number = r->number[v];
        const FLAGS unit_all = r->unit[v];
        const FLAGS who = g->meets >= 0 ? how == g->meets : how != NO_BEAD;
        const FLAGS ahead = g->meets >= 0             ? (FLAGS)(-1)
                            : g->meets == MEETS_OTHERS ? how != ODD
                                                      : (FLAGS)(0);
        if (!any(who & (ahead | (number > row0))))
            continue;
        const VECTOR x_all = r->x[side][v], y_all = r->y[side][v];
        const VECTOR z_all = r->z[side][v];
        const VECTOR wide_all = r->radius[v] + cutoff;
        FLAGS near[ROWS];
        START(0)
        START(1)
        START(2)
        START(3)
        if (c != 0 && any(near[0] | near[1] | near[2] | near[3]))
            touch_all(r, c, g, v, side, near);
        ADD(0, keep)
        for (int j = 1; j < N_Q; j += 2) {
            ADD(j, is)
            GO_ON(was, is);
            ADD(j + 1, was)
            GO_ON(is, was);
        }
    }
}

/* By halves: one lane after the other they would be a chain. */
float lanes_sum(VECTOR v)
{
#if WIDE == 16
    const float8 v8 = v.lo + v.hi;
    const float4 v4 = v8.lo + v8.hi;
#elif WIDE == 8
    const float4 v4 = v.lo + v.hi;
#else
    const float4 v4 = v;
#endif
    return (v4.x + v4.z) + (v4.y + v4.w);
}

/* The pairs' curve as proposed, from the present one, had; c NULL: who touches
 * is not looked at. Beads that stay and that move as one are in order, from its
 * front and its back: the fewer of them are rows. n_still < 0: all pairs, whose
 * sum does not depend on what was. */
void sum_pairs(__local vector_workspace *r, contacts *c, int n_still, int n_far,
               int n_odd, __local const ushort *order,
               __local const ushort *odd, float dq, float cutoff,
               __local const double *had, __local double *to)
{
    const int is_all = n_still < 0, by_still = n_still < n_far;
    const int n_first = is_all ? 0 : min(n_still, n_far);
    const int n_row = is_all ? N_BEAD : n_first + n_odd;
    for (int k = 0; k < n_row;) {
        const int is_first = k < n_first;
        row_group g;
        g.n = min(ROWS, (is_first ? n_first : n_row) - k);
        g.meets = is_all      ? MEETS_NEXT
                  : !is_first ? MEETS_OTHERS
                  : by_still  ? AS_ONE
                              : STAYS;
        for (int m = 0; m < ROWS; m++) {
            const int place = k + min(m, g.n - 1);
            g.row[m] = is_all      ? place
                       : !is_first ? odd[place - n_first]
                       : by_still  ? order[place]
                                   : order[N_BEAD - 1 - place];
        }
        k += g.n;
        for (int side = is_all; side < 2; side++)
            add_rows(r, c, &g, side, dq, cutoff);
    }
    for (int j = 0; j < N_Q; j++) {
        const float sum = lanes_sum(r->sum[j]);
        const float change = j > 0 ? sum / ((float)j * dq) : sum;
        to[j] = is_all ? change : had[j] + (j > 0 ? change : 0.0f);
        r->sum[j] = 0.0f;
    }
    r->sum[N_Q] = 0.0f;
}

#else
/* ---- pairs of beads, counted ---- */

/* What two beads are worth to the counts: of the products of shapes 0 0, 0 1
 * and 1 1. */
float4 worth(float4 u, float4 v, float c2, float unit_0, float unit_1,
             float unit_2)
{
    const float u0 = fma(c2, u.z, u.x), u1 = fma(c2, u.w, u.y);
    const float v0 = fma(c2, v.z, v.x), v1 = fma(c2, v.w, v.y);
    return (float4)(u0 * v0 * unit_0, fma(u0, v1, u1 * v0) * unit_1,
                    u1 * v1 * unit_2, 0.0f);
}

/* What of it the two knots next to a distance get: two integers each. Written
 * so that no compiler's choice of fused operations makes what is taken out
 * differ from what was put in. */
int4 portions(float r2, float4 by, float per_ang, int *knot)
{
    const float knots = fmin(native_sqrt(r2) * per_ang, N_KNOT - 2.0f);
    const int below = (int)knots;
    const float high = knots - (float)below, low = 1.0f - high;
    *knot = below;
    return (int4)(whole(low * by.x), whole(high * by.x),
                  (whole(low * by.y) << 16) + whole(low * by.z),
                  (whole(high * by.y) << 16) + whole(high * by.z));
}

void add_portions(__local int *count, int knot, int4 by)
{
    grow(count + knot, by.x);
    grow(count + knot + 1, by.y);
    grow(count + N_KNOT + knot, by.z);
    grow(count + N_KNOT + knot + 1, by.w);
}

#endif
