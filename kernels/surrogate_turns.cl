/* Proposals of a walk (surrogate.cl, which follows this file in the program):
 * random numbers, motions, densities of torsions, draws of a residue's torsions
 * from their density, and turns of a linker as a whole.
 *
 * The turns d of a linker's torsions are drawn such that the part beyond the
 * linker makes a given step xi: a rotation about one of its points c, in rad,
 * and a shift of c, in units of LEVER Angstrom. Column k of the Jacobian J
 * [6][n] is the step for a unit turn of torsion k. With w ~ N(0, s^2),
 *
 *     z = (1 - J'(J J')^-1 J) w,   d = z + J' l,
 *
 * where Newton's method finds l such that the part makes the step exactly (a
 * random walk on the manifold of closed linkers: Zappa, Holmes-Cerfon & Goodman
 * 2018). The reverse proposal has the step -xi, and z* computed from -d with J*
 * in the same way. Newton's method must lead from z* to -d, or the step is
 * rejected. In torsions the density of a proposal is that of z and xi, divided
 * by the volume that J spans, so that
 *
 *     log q(reverse) - log q(forward) = (|z|^2 - |z*|^2) / 2 s^2
 *                                     + log |J J'| / 2 - log |J* J*'| / 2
 *
 * plus the contribution of xi, whose axes depend on the linker's two parts. xi
 * = 0 moves the linker alone. A linker with fewer than MIN_CLOSED torsions
 * turns by d = F u, u ~ N(0, 1), with F learnt; the ratio of its proposal
 * densities is 1. */

/* A single work-item waits for no other. PoCL compiles the kernel in a quarter
 * of the time without barriers. */
#if LANES == 1
#define barrier(flags)
#endif

#define PI 3.14159265358979f
#define LEVER 10.0f
#define MAX_TURNS 20 /* torsions of a linker that turn at once */
#define MIN_CLOSED 8
#define PARTS 24
#define N_FACTOR 36 /* elements of a lower factor, at most 8 x 8 */

/* Four random words: number `which` of a step. Philox 4x32-10: Salmon et al.
 * 2011. */
uint4 draw(uint2 key, uint step, uint which)
{
    uint4 c = (uint4)(step, which, 0x5eed, 0);
    for (int i = 0; i < 10; i++) {
        const uint h0 = mul_hi(0xD2511F53u, c.x), l0 = 0xD2511F53u * c.x;
        const uint h1 = mul_hi(0xCD9E8D57u, c.z), l1 = 0xCD9E8D57u * c.z;
        c = (uint4)(h1 ^ c.y ^ key.x, l1, h0 ^ c.w ^ key.y, l0);
        key += (uint2)(0x9E3779B9u, 0xBB67AE85u);
    }
    return c;
}

/* Uniform in (0, 1). */
float unit(uint x)
{
    return ((float)(x >> 8) + 0.5f) * (1.0f / 16777216.0f);
}

/* Cosine and sine of an angle of a few turns. The reduction by pi / 2 in two
 * parts is accurate enough for such angles. The functions of OpenCL reduce
 * angles of any size, which takes ten times as long on a CPU. */
float2 wave(float angle)
{
    const float n = rint(angle * 0.636619772f);
    const float y = fma(n, 4.37113883e-8f, fma(n, -1.57079637f, angle));
    const float t = y * y;
    const float s =
        y * (1.0f + t * (-0.166666667f +
                         t * (8.33333333e-3f +
                              t * (-1.98412698e-4f + t * 2.75573192e-6f))));
    const float c =
        1.0f + t * (-0.5f + t * (4.16666667e-2f +
                                 t * (-1.38888889e-3f + t * 2.48015873e-5f)));
    const int quarter = (int)n & 3;
    const float2 even = quarter < 2 ? (float2)(c, s) : (float2)(-c, -s);
    const float2 odd = quarter < 2 ? (float2)(-s, c) : (float2)(s, -c);
    return quarter % 2 == 0 ? even : odd;
}

/* Two independent standard normal variates (Box & Muller 1958). */
float2 normals(uint a, uint b)
{
    return sqrt(-2.0f * log(unit(a))) * wave(2.0f * PI * unit(b));
}

/* A rotation and a shift: the rows of the matrix, with the shift as w. */
typedef struct {
    float4 x, y, z;
} motion;

float4 apply(const motion *m, float4 p)
{
    p.w = 1.0f;
    return (float4)(dot(m->x, p), dot(m->y, p), dot(m->z, p), 0.0f);
}

motion rotation_about(float4 from, float4 to, float angle)
{
    float4 u = to - from;
    u.w = 0.0f;
    u *= rsqrt(dot(u, u));
    const float2 turned = wave(angle);
    const float c = turned.x, s = turned.y, v = 1.0f - c;
    motion m;
    m.x = (float4)(c + u.x * u.x * v, u.x * u.y * v - u.z * s,
                   u.x * u.z * v + u.y * s, 0.0f);
    m.y = (float4)(u.y * u.x * v + u.z * s, c + u.y * u.y * v,
                   u.y * u.z * v - u.x * s, 0.0f);
    m.z = (float4)(u.z * u.x * v - u.y * s, u.z * u.y * v + u.x * s,
                   c + u.z * u.z * v, 0.0f);
    from.w = 0.0f;
    m.x.w = from.x - dot(m.x, from);
    m.y.w = from.y - dot(m.y, from);
    m.z.w = from.z - dot(m.z, from);
    return m;
}

/* The angle in [-pi, pi]. */
float wrapped(float angle)
{
    return angle - 2.0f * PI * rint(angle / (2.0f * PI));
}

/* One component of a torsion density, from cosine and sine of both angles. */
float component_at(__global const float *term, float2 phi, float2 psi)
{
    return exp(term[0] + term[1] * phi.x + term[2] * phi.y + term[3] * psi.x +
               term[4] * psi.y + term[5] * phi.x * psi.x +
               term[6] * phi.x * psi.y + term[7] * phi.y * psi.x +
               term[8] * phi.y * psi.y);
}

/* Log density from its components. */
float log_of_parts(__local const float *part)
{
    float sum = 0.0f;
    for (int k = 0; k < PARTS; k++)
        sum += part[k];
    return log(sum);
}

/* ---- drawing the torsions of a residue ---- */

/* Fraction of draws from the density among the proposals that turn torsions:
 * MIN_DRAWN at beta 1, higher by up to MORE_DRAWN as beta decreases. At small
 * beta, small turns need a hundred walks to change a linker completely, and
 * draws need a few. */
#define MIN_DRAWN 0.05f
#define MORE_DRAWN 0.35f

/* A density is tabulated in cells of phi times cells of psi: cumulative
 * probabilities times 2^32. */
#define CELLS 36
#define N_CELL (CELLS * CELLS)

/* Returns 1 if torsion a moves all points that b moves. */
int contains(int4 a, int4 b)
{
    return a.z <= b.z && a.w >= b.w;
}

/* The second torsion of the residue of torsion t, if one of the two moves all
 * points that the other moves; else -1. */
int other_torsion(__global const int4 *turn, __global const int4 *torsion,
                  int t)
{
    for (int k = t - 1; k < t + 2; k += 2)
        if (k >= 0 && k < N_TORSION && turn[k].x == turn[t].x &&
            (contains(torsion[k], torsion[t]) ||
             contains(torsion[t], torsion[k])))
            return k;
    return -1;
}

/* phi and psi, uniform in the cell selected by a random number. */
float2 draw_from_cell(__global const uint *cumulative, uint number, float u,
                      float v)
{
    int low = 0, high = N_CELL - 1;
    while (low < high) {
        const int middle = (low + high) / 2;
        if (number < cumulative[middle])
            high = middle;
        else
            low = middle + 1;
    }
    return ((float2)((float)(low / CELLS) + u, (float)(low % CELLS) + v) *
                (2.0f / CELLS) -
            1.0f) *
           PI;
}

/* Log probability of drawing the cell of phi and psi, up to a constant. */
float log_proposal(__global const uint *cumulative, float2 angle)
{
    const float2 at = (angle + PI) * (CELLS / (2.0f * PI));
    const int phi = clamp((int)at.x, 0, CELLS - 1);
    const int psi = clamp((int)at.y, 0, CELLS - 1);
    const int k = phi * CELLS + psi;
    return log((float)(cumulative[k] - (k > 0 ? cumulative[k - 1] : 0)));
}

/* ---- linkers ---- */

/* Workspace of a work-group. Index 0 is the start of a step, 1 its end, 2
 * intermediate states of the reverse proposal. */
typedef struct {
    float4 axis[2][MAX_TURNS][2];    /* direction, a point */
    float4 turn[MAX_TURNS][3];       /* rotation about each axis at the start */
    float4 cumulative[MAX_TURNS][3]; /* products of rotations 0 to k */
    float column[3][MAX_TURNS][6];
    float angle[2][MAX_TURNS]; /* d of the forward and the reverse proposal */
    float null_turn[2][MAX_TURNS]; /* z, z* */
    float square[36], right[6], unit_step[8], log_det[2], error;
    int torsion[MAX_TURNS], bounds[MAX_TURNS]; /* boundary of the points beyond
                                                each torsion */
} linker_workspace;

float4 rotate_rows(__local const float4 *row, float4 p)
{
    return (float4)(row[0].x * p.x + row[0].y * p.y + row[0].z * p.z,
                    row[1].x * p.x + row[1].y * p.y + row[1].z * p.z,
                    row[2].x * p.x + row[2].y * p.y + row[2].z * p.z, 0.0f);
}

float4 apply_rows(__local const float4 *row, float4 p)
{
    return rotate_rows(row, p) + (float4)(row[0].w, row[1].w, row[2].w, 0.0f);
}

/* Computes the rotations by angle[side] about axis[side] and their products;
 * the columns of the Jacobian after these rotations, column[side + 1]; and, for
 * side 0, the axes after the rotations, axis[1]. */
void apply_turns(__local linker_workspace *r, int side, int n, float4 centre,
                 int lid)
{
    for (int k = lid; k < n; k += LANES) {
        const float4 u = r->axis[side][k][0], o = r->axis[side][k][1];
        const motion m = rotation_about(o, o + u, r->angle[side][k]);
        r->turn[k][0] = m.x, r->turn[k][1] = m.y, r->turn[k][2] = m.z;
    }
    barrier(CLK_LOCAL_MEM_FENCE);
    for (int i = lid; i < 3; i += LANES) {
        float4 row = (float4)(i == 0, i == 1, i == 2, 0.0f);
        float4 a = r->turn[0][0], b = r->turn[0][1], c = r->turn[0][2];
        for (int k = 0; k < n; k++) {
            const int next = min(k + 1, n - 1); /* read in advance */
            const float4 d = r->turn[next][0], e = r->turn[next][1],
                         f = r->turn[next][2];
            const float shift = row.w;
            row = row.x * a + row.y * b + row.z * c;
            row.w += shift;
            r->cumulative[k][i] = row;
            a = d, b = e, c = f;
        }
    }
    barrier(CLK_LOCAL_MEM_FENCE);
    for (int k = lid; k < n; k += LANES) {
        float4 u = r->axis[side][k][0], o = r->axis[side][k][1];
        if (k > 0)
            u = rotate_rows(r->cumulative[k - 1], u),
            o = apply_rows(r->cumulative[k - 1], o);
        if (side == 0)
            r->axis[1][k][0] = u, r->axis[1][k][1] = o;
        const float4 v = cross(u, centre - o) / LEVER;
        __local float *to = r->column[side + 1][k];
        to[0] = u.x, to[1] = u.y, to[2] = u.z;
        to[3] = v.x, to[4] = v.y, to[5] = v.z;
    }
    barrier(CLK_LOCAL_MEM_FENCE);
}

/* Columns of the Jacobian at the start of the step, column[0]. */
void start_columns(__local linker_workspace *r, int n, float4 centre, int lid)
{
    for (int k = lid; k < n; k += LANES) {
        const float4 u = r->axis[0][k][0];
        const float4 v = cross(u, centre - r->axis[0][k][1]) / LEVER;
        __local float *to = r->column[0][k];
        to[0] = u.x, to[1] = u.y, to[2] = u.z;
        to[3] = v.x, to[4] = v.y, to[5] = v.z;
    }
    barrier(CLK_LOCAL_MEM_FENCE);
}

/* square = A B' with A = column[a], B = column[b]. */
void multiply(__local linker_workspace *r, int a, int b, int n, int lid)
{
    for (int i = lid; i < 36; i += LANES) {
        float sum = 0.0f;
#pragma unroll 5
        for (int k = 0; k < n; k++)
            sum += r->column[a][k][i / 6] * r->column[b][k][i % 6];
        r->square[i] = sum;
    }
}

/* right = square^-1 right, by elimination without pivoting, which is accurate
 * if the matrix is close to A A'. If it is not, Newton's method fails and the
 * step is rejected. Returns log |square|. */
float solve_square(__local linker_workspace *r)
{
    float a[6][7], inverse[6], product = 1.0f;
#pragma unroll
    for (int i = 0; i < 6; i++) {
#pragma unroll
        for (int j = 0; j < 6; j++)
            a[i][j] = r->square[6 * i + j];
        a[i][6] = r->right[i];
    }
#pragma unroll
    for (int p = 0; p < 6; p++) {
        inverse[p] = 1.0f / a[p][p];
        product *= a[p][p];
#pragma unroll
        for (int i = p + 1; i < 6; i++) {
            const float by = a[i][p] * inverse[p];
#pragma unroll
            for (int j = p + 1; j < 7; j++)
                a[i][j] -= by * a[p][j];
        }
    }
#pragma unroll
    for (int i = 5; i >= 0; i--) {
#pragma unroll
        for (int j = i + 1; j < 6; j++)
            a[i][6] -= a[i][j] * a[j][6];
        a[i][6] *= inverse[i];
        r->right[i] = a[i][6];
    }
    return log(product);
}

/* Projects null_turn[side] onto the null space of J, unless is_free: the result
 * is z (or z*), and the start of Newton's method. Also computes log_det. */
void project_out(__local linker_workspace *r, int side, int n, int is_free,
                 int lid)
{
    multiply(r, side, side, n, lid);
    for (int i = LANES - 1 - lid; i < 6; i += LANES) {
        float sum = 0.0f;
#pragma unroll 5
        for (int k = 0; k < n; k++)
            sum += r->column[side][k][i] * r->null_turn[side][k];
        r->right[i] = sum;
    }
    barrier(CLK_LOCAL_MEM_FENCE);
    if (lid == 0)
        r->log_det[side] = solve_square(r);
    barrier(CLK_LOCAL_MEM_FENCE);
    for (int k = lid; !is_free && k < n; k += LANES)
        for (int i = 0; i < 6; i++) {
            r->null_turn[side][k] -= r->column[side][k][i] * r->right[i];
            r->angle[side][k] = r->null_turn[side][k];
        }
    barrier(CLK_LOCAL_MEM_FENCE);
}

/* Sets `right` to the remaining step from the present pose of the part to the
 * goal, a rotation by `step` with point `from` at `to`. error: the largest
 * component of `right`. */
void find_residual(__local linker_workspace *r, int n, const motion *step,
                   float4 from, float4 to)
{
    __local const float4 *present = r->cumulative[n - 1];
    float4 x = present[0], y = present[1], z = present[2], a = step->x,
           b = step->y;
    float4 c = step->z;
    const float4 shift = (to - apply_rows(present, from)) / LEVER;
    float largest = 0.0f;
    x.w = y.w = z.w = a.w = b.w = c.w = 0.0f;
    const float residual[6] = {0.5f * (dot(c, y) - dot(b, z)),
                               0.5f * (dot(a, z) - dot(c, x)),
                               0.5f * (dot(b, x) - dot(a, y)),
                               shift.x,
                               shift.y,
                               shift.z};
    for (int i = 0; i < 6; i++) {
        largest = fmax(largest, fabs(residual[i]));
        r->right[i] = residual[i];
    }
    /* fmax ignores NaN */
    r->error = shift.x + shift.y + shift.z == shift.x + shift.y + shift.z
                   ? largest
                   : NAN;
}

motion rotation_by_vector(float4 omega)
{
    const float angle = sqrt(dot(omega, omega));
    motion m = {(float4)(1.0f, 0.0f, 0.0f, 0.0f),
                (float4)(0.0f, 1.0f, 0.0f, 0.0f),
                (float4)(0.0f, 0.0f, 1.0f, 0.0f)};
    if (angle > 0.0f)
        m = rotation_about((float4)(0.0f), omega, angle);
    return m;
}

/* Log ratio of both proposals from z and the volumes that J spans. */
float null_ratio(__local const linker_workspace *r, int n, float width)
{
    float there = 0.0f, back = 0.0f;
#pragma unroll 5
    for (int k = 0; k < n; k++) {
        there += r->null_turn[0][k] * r->null_turn[0][k];
        back += r->null_turn[1][k] * r->null_turn[1][k];
    }
    return 0.5f *
           ((there - back) / (width * width) + r->log_det[0] - r->log_det[1]);
}

/* Returns 1 if the reverse proposal leads back. A turn by pi or more would not
 * be unique. */
int is_reverse(__local const linker_workspace *r, int n)
{
    float difference = 0.0f, largest = 0.0f;
#pragma unroll 5
    for (int k = 0; k < n; k++) {
        difference = fmax(difference, fabs(r->angle[0][k] + r->angle[1][k]));
        largest = fmax(largest, fabs(r->angle[0][k]));
    }
    return difference < 1e-3f && largest < PI;
}

/* Turns a linker such that the part beyond rotates by the vector omega and its
 * point `from` moves to `to`. Axes, null_turn[0] = w and boundaries must be
 * set. If is_free, turns by angle[0] as given, and makes no reverse proposal.
 * Writes points first..end-1 and adds the log ratio of z and J to *change. The
 * forward and the reverse proposal use the same loop, so that its code exists
 * once in the kernel. Returns 0 if Newton's method fails in one of the two, or
 * the reverse proposal does not lead back. */
int turn_linker(__local linker_workspace *r, int n, int is_free, int is_after,
                float width, float4 omega, float4 from, float4 to, int first,
                int end, __global const float4 *now, __global float4 *next,
                float *change, int lid)
{
    const int largest = 8;
    const float enough = 1e-5f;
    int is_closed = 1;
    for (int side = 0; side < (is_free ? 1 : 2) && is_closed; side++) {
        const motion step = rotation_by_vector(side > 0 ? -omega : omega);
        const float4 start = side > 0 ? to : from, goal = side > 0 ? from : to;
        float error = 1.0f;
        project_out(r, side, n, is_free, lid);
        for (int pass = 0; pass <= largest && error >= enough; pass++) {
            apply_turns(r, side, n, goal, lid);
            if (is_free) {
                error = 0.0f;
                break;
            }
            /* different work-items compute matrix and residual at the same
             * time */
            multiply(r, side + 1, side, n, lid);
            if (lid == LANES - 1)
                find_residual(r, n, &step, start, goal);
            barrier(CLK_LOCAL_MEM_FENCE);
            error = r->error;
            if (error < enough)
                break;
            if (lid == 0)
                solve_square(r);
            barrier(CLK_LOCAL_MEM_FENCE);
            for (int k = lid; k < n; k += LANES)
                for (int j = 0; j < 6; j++)
                    r->angle[side][k] += r->column[side][k][j] * r->right[j];
            barrier(CLK_LOCAL_MEM_FENCE);
        }
        is_closed = error < enough; /* false for NaN */
        for (int p = first + lid; side == 0 && is_closed && p < end;
             p += LANES) {
            int k = n - 1;
            while (is_after ? p < r->bounds[k] : p >= r->bounds[k])
                k--;
            next[p] = apply_rows(r->cumulative[k], now[p]);
        }
        for (int k = lid; side == 0 && k < n; k += LANES)
            r->null_turn[1][k] = -r->angle[0][k];
        barrier(CLK_LOCAL_MEM_FENCE);
    }
    if (!is_free && is_closed) {
        *change += null_ratio(r, n, width);
        is_closed = is_reverse(r, n);
    }
    return is_closed;
}

/* Axes determined by the two parts of a linker: x from `near` to `far`, z
 * perpendicular to x and to the line from `near` to `beside`, a second point of
 * the near part. */
motion between(float4 near, float4 beside, float4 far)
{
    motion m;
    m.x = normalize(far - near);
    m.z = normalize(cross(m.x, beside - near));
    m.y = cross(m.z, m.x);
    return m;
}

/* Row k of F times u. */
float row_times(__global const float *factor, int k, __local const float *u)
{
    float sum = 0.0f;
    for (int j = 0; j <= k; j++)
        sum += factor[k * (k + 1) / 2 + j] * u[j];
    return sum;
}

/* |u|^2 with u = F^-1 B' xi for a step xi (rotation vector, shift / LEVER),
 * where B are the axes. */
float squared_norm(const motion *axes, __global const float *factor,
                   float4 turn, float4 shift)
{
    const float xi[6] = {dot(axes->x, turn),  dot(axes->y, turn),
                         dot(axes->z, turn),  dot(axes->x, shift),
                         dot(axes->y, shift), dot(axes->z, shift)};
    float u[6], sum = 0.0f;
    for (int i = 0; i < 6; i++) {
        float x = xi[i];
        for (int j = 0; j < i; j++)
            x -= factor[i * (i + 1) / 2 + j] * u[j];
        u[i] = x / factor[i * (i + 1) / 2 + i];
        sum += u[i] * u[i];
    }
    return sum;
}

/* Adds the contribution of a step to the data from which factors are learnt:
 * the lower half of (p - target) u u' / |u|^2, where p is the probability to
 * accept the step (Vihola 2012). */
void learn_factor(__global float *to, __local const linker_workspace *r, int n,
                  float p, int lid)
{
    const float target = 0.25f;
    float sum = 0.0f;
    for (int k = 0; k < n; k++)
        sum += r->unit_step[k] * r->unit_step[k];
    for (int i = lid; i < n; i += LANES)
        for (int j = 0; j <= i; j++)
            to[i * (i + 1) / 2 + j] +=
                (p - target) * r->unit_step[i] * r->unit_step[j] / sum;
}
