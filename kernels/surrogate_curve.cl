/* Evaluation of a walk's step (surrogate.cl, which follows this file in the
 * program): overlaps of bodies, sums over pairs of beads, and the curve and
 * likelihood that follow.
 *
 * On a GPU, where work-items share memory with fast atomic additions, pairs are
 * counted by distance. On a CPU there is one work-item and no fast way to
 * count, so vector instructions sum the curves of the pairs directly. */

#define PRODUCTS 3
#define N_ROW (N_Q + 1)
#define UNIT_PER_NAT 65536.0f
#define MAX_NEIGHBOURS 512 /* g is 0 with more neighbours */

/* Class of a bead in a step. */
#define FIXED 0
#define FAR 1
#define LOOSE 2
#define NO_BEAD 3 /* padding of a vector */

#if LANES == 1
#pragma OPENCL EXTENSION cl_khr_fp64 : enable
#define SUM double /* of the changes of many steps */
#define N_SUM N_Q
#else
#define SUM float
#define N_SUM (PRODUCTS * N_Q)
#endif

/* Adds to a counter in local memory and returns its previous value. On a CPU an
 * atomic operation would take ten times as long. */
int fetch_add(__local int *counter, int by)
{
#if LANES > 1
    return atomic_add(counter, by);
#else
    const int before = *counter;
    *counter += by;
    return before;
#endif
}

/* Overlap energy of two bodies at squared distance r2, in units of 1 /
 * UNIT_PER_NAT nat; negative: forbidden. */
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

/* Data of bodies, and the overlaps that a work-item found: energy, whether a
 * pair is forbidden, and the number of pairs of beads with several bodies,
 * which are appended to a list shared by the work-group. */
typedef struct {
    __global const int4 *bead, *body;
    __global const float *contact;
    float inverse_softness, limit;
    __local uint *neighbour;
    __local int *n_neighbour;
    int energy, forbidden, count;
} contacts;

/* Adds a pair of beads that are close enough for overlaps: the energy if both
 * are single bodies (are_bodies), else an entry of the list. sign -1: the pair
 * at the present positions is subtracted. */
void add_overlap(contacts *c, int a, int b, int are_bodies, float r2, int sign)
{
    if (are_bodies) {
        const int e = overlap(c->body[c->bead[a].z], c->body[c->bead[b].z], r2,
                              c->contact, c->inverse_softness, c->limit);
        c->forbidden |= e < 0;
        c->energy += e < 0 ? 0 : sign * e;
        return;
    }
    const int place = fetch_add(c->n_neighbour, 1);
    c->count += sign;
    if (place < 2 * MAX_NEIGHBOURS)
        c->neighbour[place] =
            (uint)a | (uint)b << 15 | (sign < 0 ? 1u << 30 : 0u);
}

/* Rounds a number below 2^22 to an integer, from the bits of 1.5 2^23 + x,
 * because GPUs convert numbers at a quarter of the rate of additions. A larger
 * number gives a wrong integer, which makes the surrogate less accurate. */
int to_integer(float x)
{
    return as_int(x + 12582912.0f) - 0x4B400000;
}

/* The polynomial a_0 + a_1 c + a_2 c^2 with coefficients a [3][N_Q] at q. */
float by_powers(__global const float *a, int q, float c)
{
    return a[q] + c * (a[N_Q + q] + c * a[2 * N_Q + q]);
}

/* Profile before the factor numerator / denominator. sums: on a CPU the curve
 * of all pairs, on a GPU the sums over counts for the products of shapes 0 0, 0
 * 1 and 1 1. */
float profile_at(__global const float *job, __local const SUM *sums, int q,
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

/* Log likelihood of all curves. row [N_CURVE][N_ROW]: the profile times the
 * rows of each curve. */
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

/* Amounts of bead b at c2. */
float2 amount_at(__global const float *job, int b, float c2)
{
    const float4 u = vload4(b, job + AT_AMOUNT);
    return (float2)(fma(c2, u.z, u.x), fma(c2, u.w, u.y));
}

#if LANES == 1
/* ---- pairs of beads, summed by vectors ---- */

#define JOIN_(a, b) a##b
#define JOIN(a, b) JOIN_(a, b)
#define VECTOR JOIN(float, WIDE)
#define FLAGS JOIN(int, WIDE)
#define AS_VECTOR JOIN(as_float, WIDE)
#define N_VECTOR ((N_BEAD + WIDE - 1) / WIDE) /* the last is padded */
#define ROWS 4
#define N_SERIES                                                               \
    (N_Q + 1) /* terms of a series, which is computed in steps of              \
                 two */

typedef struct {
    /* Present and proposed positions. */
    VECTOR x[2][N_VECTOR], y[2][N_VECTOR], z[2][N_VECTOR];
    VECTOR radius[N_VECTOR];
    VECTOR form[N_SERIES][N_VECTOR]; /* form factors at c2 */
    VECTOR sum[N_SERIES];
    FLAGS number[N_VECTOR], unit[N_VECTOR], role[N_VECTOR];
} vector_workspace;

/* One element of an array of vectors. */
#define FLOAT_OF(vectors, b) ((__local float *)(vectors))[b]
#define INT_OF(vectors, b) ((__local int *)(vectors))[b]

/* A group of n rows (beads in ascending order), and the beads that they are
 * paired with. pairs >= 0: all beads of that class (FIXED, FAR). PAIRS_OTHERS,
 * for LOOSE rows: all that are not LOOSE, and LOOSE beads with higher index.
 * PAIRS_HIGHER: all beads with higher index. */
enum { PAIRS_OTHERS = -1, PAIRS_HIGHER = -2 };

typedef struct {
    int row[ROWS], n, pairs;
} row_group;

void init_vectors(__local vector_workspace *r, __local const short *unit_of)
{
    for (int k = 0; k < N_VECTOR; k++) {
        for (int q = 0; q < N_SERIES; q++)
            r->form[q][k] = 0.0f;
        for (int side = 0; side < 2; side++)
            r->x[side][k] = r->y[side][k] = r->z[side][k] = 0.0f;
        r->radius[k] = 0.0f;
        r->role[k] = NO_BEAD;
        r->unit[k] = -1;
    }
    for (int q = 0; q < N_SERIES; q++)
        r->sum[q] = 0.0f;
    for (int b = 0; b < N_VECTOR * WIDE; b++)
        INT_OF(r->number, b) = b;
    for (int b = 0; b < N_BEAD; b++)
        INT_OF(r->unit, b) = unit_of[b];
}

void write_centres(__local vector_workspace *r, int side,
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

void write_form_factors(__local vector_workspace *r, __global const float *job,
                        float c2)
{
    __global const float *shape = job + AT_SHAPE;
    for (int b = 0; b < N_BEAD; b++) {
        const float2 u = amount_at(job, b, c2);
        for (int q = 0; q < N_Q; q++)
            FLOAT_OF(r->form[q], b) = shape[q] * u.x + shape[N_Q + q] * u.y;
    }
}

/* Adds overlaps of the rows with the beads of vector v flagged in neighbour. */
void add_overlaps(__local const vector_workspace *r, contacts *c,
                  const row_group *g, int v, int side, const FLAGS *neighbour)
{
    for (int k = 0; k < ROWS; k++)
        for (int lane = any(neighbour[k]) ? 0 : WIDE; lane < WIDE; lane++) {
            const int a = g->row[k], b = v * WIDE + lane;
            if (((const int *)(neighbour + k))[lane] == 0)
                continue;
            const float x = FLOAT_OF(r->x[side], a) - FLOAT_OF(r->x[side], b);
            const float y = FLOAT_OF(r->y[side], a) - FLOAT_OF(r->y[side], b);
            const float z = FLOAT_OF(r->z[side], a) - FLOAT_OF(r->z[side], b);
            add_overlap(c, a, b,
                        FLOAT_OF(r->radius, a) == 0.0f &&
                            FLOAT_OF(r->radius, b) == 0.0f,
                        x * x + y * y + z * z, side > 0 ? 1 : -1);
        }
}

/* For row k and vector v: the beads that are paired with the row, those close
 * enough for overlaps, and the start of the recurrence
 *
 *     s(j + 1) = (2 - 4 sin^2(dq r / 2)) s(j) - s(j - 1),
 *
 * that is its factor, is = sin(dq r) / r, and was = 0. Distances beyond the
 * band, dq r > 0.86 pi, are replaced by its end. The polynomials for sin and
 * cos of dq r / 2 are those of chain_start in page_tile.cl. */
#define START_ROW(k)                                                           \
    VECTOR mask##k, is##k, was##k = 0.0f, factor##k;                           \
    {                                                                          \
        const int a = row##k;                                                  \
        const VECTOR x = FLOAT_OF(r->x[side], a) - x_all;                      \
        const VECTOR y = FLOAT_OF(r->y[side], a) - y_all;                      \
        const VECTOR z = FLOAT_OF(r->z[side], a) - z_all;                      \
        const VECTOR r2 = x * x + y * y + z * z;                               \
        const VECTOR reach_ang = FLOAT_OF(r->radius, a) + reach_all;           \
        const int unit = INT_OF(r->unit, a);                                   \
        const FLAGS in_order = allowed | (number > a);                         \
        const FLAGS pairs = (k < g->n ? selected : 0) & in_order &             \
                            ((unit_all != unit) | (unit < 0 ? -1 : 0));        \
        neighbour[k] = pairs & (r2 < reach_ang * reach_ang);                   \
        mask##k = AS_VECTOR(pairs & as_int(1.0f));                             \
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
        is##k = mask##k * (sign * dq * sine * cosine);                         \
    }

/* Adds the rows' products with vector v at term j; s: the value of the
 * series. */
#define ADD(j, s)                                                              \
    {                                                                          \
        __local const VECTOR *form = r->form[j];                               \
        const VECTOR one = FLOAT_OF(form, row0) * s##0 +                       \
                           FLOAT_OF(form, row1) * s##1;                        \
        const VECTOR two = FLOAT_OF(form, row2) * s##2 +                       \
                           FLOAT_OF(form, row3) * s##3;                        \
        r->sum[j] += form[v] * (one + two);                                    \
    }

#define ADVANCE(next, now)                                                     \
    next##0 = factor0 * now##0 - next##0;                                      \
    next##1 = factor1 * now##1 - next##1;                                      \
    next##2 = factor2 * now##2 - next##2;                                      \
    next##3 = factor3 * now##3 - next##3

/* Adds to r->sum the products of rows with their pairs: the series
 * sin(j dq r) / r for j > 0, and 1 for j = 0. Present positions (side 0) are
 * subtracted. c NULL: overlaps are not computed. */
void add_rows(__local vector_workspace *r, contacts *c, const row_group *g,
              int side, float dq, float cutoff)
{
    const float sign = side > 0 ? 1.0f : -1.0f;
    const int row0 = g->row[0], row1 = g->row[1];
    const int row2 = g->row[2], row3 = g->row[3];
    for (int v = 0; v < N_VECTOR; v++) {
        const FLAGS role = r->role[v], number = r->number[v];
        const FLAGS unit_all = r->unit[v];
        const FLAGS selected =
            g->pairs >= 0 ? role == g->pairs : role != NO_BEAD;
        const FLAGS allowed = g->pairs >= 0              ? (FLAGS)(-1)
                              : g->pairs == PAIRS_OTHERS ? role != LOOSE
                                                         : (FLAGS)(0);
        if (!any(selected & (allowed | (number > row0))))
            continue;
        const VECTOR x_all = r->x[side][v], y_all = r->y[side][v];
        const VECTOR z_all = r->z[side][v];
        const VECTOR reach_all = r->radius[v] + cutoff;
        FLAGS neighbour[ROWS];
        START_ROW(0)
        START_ROW(1)
        START_ROW(2)
        START_ROW(3)
        if (c != 0 &&
            any(neighbour[0] | neighbour[1] | neighbour[2] | neighbour[3]))
            add_overlaps(r, c, g, v, side, neighbour);
        ADD(0, mask)
        for (int j = 1; j < N_Q; j += 2) {
            ADD(j, is)
            ADVANCE(was, is);
            ADD(j + 1, was)
            ADVANCE(is, was);
        }
    }
}

/* Sum over the lanes of a vector, by halves, because adding element by element
 * would be a chain of dependent additions. */
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

/* Computes the curve of the pairs at the proposed positions, `to`, from that at
 * the present positions, `before`. c NULL: overlaps are not computed. order
 * lists fixed beads from its front and far beads from its back; the class with
 * fewer beads provides the rows. n_fixed < 0: all pairs are summed, and
 * `before` is not used. */
void sum_pairs(__local vector_workspace *r, contacts *c, int n_fixed, int n_far,
               int n_loose, __local const ushort *order,
               __local const ushort *loose, float dq, float cutoff,
               __local const double *before, __local double *to)
{
    const int is_all = n_fixed < 0, by_fixed = n_fixed < n_far;
    const int n_first = is_all ? 0 : min(n_fixed, n_far);
    const int n_row = is_all ? N_BEAD : n_first + n_loose;
    for (int k = 0; k < n_row;) {
        const int is_first = k < n_first;
        row_group g;
        g.n = min(ROWS, (is_first ? n_first : n_row) - k);
        g.pairs = is_all      ? PAIRS_HIGHER
                  : !is_first ? PAIRS_OTHERS
                  : by_fixed  ? FAR
                              : FIXED;
        for (int m = 0; m < ROWS; m++) {
            const int place = k + min(m, g.n - 1);
            g.row[m] = is_all      ? place
                       : !is_first ? loose[place - n_first]
                       : by_fixed  ? order[place]
                                   : order[N_BEAD - 1 - place];
        }
        k += g.n;
        for (int side = is_all; side < 2; side++)
            add_rows(r, c, &g, side, dq, cutoff);
    }
    for (int j = 0; j < N_Q; j++) {
        const float sum = lanes_sum(r->sum[j]);
        const float change = j > 0 ? sum / ((float)j * dq) : sum;
        to[j] = is_all ? change : before[j] + (j > 0 ? change : 0.0f);
        r->sum[j] = 0.0f;
    }
    r->sum[N_Q] = 0.0f;
}

#else
/* ---- pairs of beads, counted ---- */

/* Products of two beads' amounts in units of the counts, for the products of
 * shapes 0 0, 0 1 and 1 1. */
float4 pair_products(float2 u, float2 v, float unit_0, float unit_1,
                     float unit_2)
{
    return (float4)(u.x * v.x * unit_0, fma(u.x, v.y, u.y * v.x) * unit_1,
                    u.y * v.y * unit_2, 0.0f);
}

/* Counts of the three products at a knot. */
float4 counts_at(__local const int *count, int knot)
{
    const int two = count[N_KNOT + knot], low = (int)(short)(two & 0xffff);
    return (float4)((float)count[knot], (float)((two - low) >> 16), (float)low,
                    0.0f);
}

void set_amounts(__local float2 *to, __global const float *job, float c2,
                 int lid)
{
    for (int b = lid; b < N_BEAD; b += LANES)
        to[b] = amount_at(job, b, c2);
}

/* The products of a pair, divided linearly between the two knots next to its
 * distance: two integers for each knot. The arithmetic is written such that
 * fused operations cannot make a subtracted count differ from the added one. */
int4 knot_counts(float r2, float4 by, float per_ang, int *knot)
{
    const float knots = fmin(native_sqrt(r2) * per_ang, N_KNOT - 2.0f);
    const int below = (int)knots;
    const float high = knots - (float)below, low = 1.0f - high;
    *knot = below;
    return (int4)(to_integer(low * by.x), to_integer(high * by.x),
                  (to_integer(low * by.y) << 16) + to_integer(low * by.z),
                  (to_integer(high * by.y) << 16) + to_integer(high * by.z));
}

void add_knot_counts(__local int *count, int knot, int4 by)
{
    fetch_add(count + knot, by.x);
    fetch_add(count + knot + 1, by.y);
    fetch_add(count + N_KNOT + knot, by.z);
    fetch_add(count + N_KNOT + knot + 1, by.w);
}

#endif
