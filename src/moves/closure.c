/* Solves the closure problem: the roots of a polynomial of degree 16 in one
 * angle give starting points for all solutions, which Newton's method refines.
 *
 * Source: Coutsias et al. 2004; derivation below. */
#include "moves/closure.h"

#include "core/vec3.h"

#include <float.h>
#include <math.h>
#include <string.h>

/* y_2 a y_0 = 0, y_0 b y_1 = 0, y_1 c y_2 = 0, where
 * y_i = (1, cos tau_i, sin tau_i). */
typedef struct {
    double a[3][3], b[3][3], c[3][3];
} equations;

/* Factors of the resultant R = l^2 - da dc w^2 as forms in x = cos(tau_2 / 2)
 * and y = sin(tau_2 / 2): coefficient k belongs to binom(n, k) x^(n - k)
 * y^k. */
typedef struct {
    double l[9], w[5], da[5], dc[5];
} resultant_forms;

/* The condition lo <= p cos tau - q sin tau <= hi. */
typedef struct {
    double p, q, lo, hi;
} bounds;

/* An arc of half angles, at most 63 degrees long. */
typedef struct {
    tsr_cos_sin from, to;
} arc_span;

enum { TSR_MAX_ARC = 32 };

/* ---- roots ---- */

enum { N = TSR_ROOT_DEGREE, MAX_SPLIT = 256, DEPTH = 22 };

static const double binomial[N + 1] = {
    1.0,     16.0,   120.0,  560.0,  1820.0, 4368.0, 8008.0, 11440.0, 12870.0,
    11440.0, 8008.0, 4368.0, 1820.0, 560.0,  120.0,  16.0,   1.0};

static int sign_changes(const double b[N + 1])
{
    int n = 0;
    for (int k = 0; k < N; k++)
        n += (b[k] < 0.0) != (b[k + 1] < 0.0);
    return n;
}

/* Subdivides at the middle (de Casteljau): b becomes the right half. */
static void split(double b[N + 1], double left[N + 1])
{
    left[0] = b[0];
    for (int r = 1; r <= N; r++) {
        for (int k = 0; k <= N - r; k++)
            b[k] = 0.5 * (b[k] + b[k + 1]);
        left[r] = b[0];
    }
}

/* The point in [0, 1] where the control polygon crosses zero. */
static double polygon_crossing(const double b[N + 1])
{
    int k = 0;
    while (k < N - 1 && (b[k] < 0.0) == (b[k + 1] < 0.0))
        k++;
    return (k + b[k] / (b[k] - b[k + 1])) / N;
}

static int is_noise(const double b[N + 1], double noise)
{
    for (int k = 0; k <= N; k++)
        if (fabs(b[k]) > noise)
            return 0;
    return 1;
}

/* Depth first, from left to right. The number of subdivisions is bounded,
 * because a polynomial that is zero up to rounding (a continuum of solutions)
 * would be subdivided without end. */
int tsr_root_isolate(const double b[N + 1], double noise,
                     tsr_root root[TSR_MAX_ROOT])
{
    struct {
        double from, width;
        int depth;
        double b[N + 1];
    } stack[DEPTH + 2];
    int n_root = 0, n_split = 0, top = 0;
    memcpy(stack[0].b, b, sizeof stack[0].b);
    stack[0].from = 0.0, stack[0].width = 1.0, stack[0].depth = 0;
    while (top >= 0 && n_root < TSR_MAX_ROOT) {
        double *c = stack[top].b, from = stack[top].from;
        double width = stack[top].width;
        int n = sign_changes(c), depth = stack[top].depth;
        if (n == 0) {
            top--;
            continue;
        }
        if (n == 1 || depth == DEPTH || n_split == MAX_SPLIT ||
            is_noise(c, noise)) {
            tsr_root *r = &root[n_root++];
            r->from = from, r->to = from + width;
            r->single = n == 1;
            r->guess = from + width * (n == 1 ? polygon_crossing(c) : 0.5);
            if (n == 1)
                memcpy(r->b, c, sizeof r->b);
            top--;
            continue;
        }
        n_split++;
        split(c, stack[top + 1].b);
        stack[top].from = from + 0.5 * width;
        stack[top].width = 0.5 * width, stack[top].depth = depth + 1;
        stack[top + 1].from = from, stack[top + 1].width = 0.5 * width;
        stack[top + 1].depth = depth + 1;
        top++;
    }
    return n_root;
}

static double evaluate(const double b[N + 1], double t)
{
    double u = 1.0 - t, power = 1.0, sum = b[0];
    for (int k = 1; k <= N; k++) {
        power *= t;
        sum = sum * u + binomial[k] * b[k] * power;
    }
    return sum;
}

/* Regula falsi in the Illinois variant (Dowell & Jarratt 1971): the value at an
 * end that stays twice in a row is halved. */
double tsr_root_refine(const tsr_root *root)
{
    double low = 0.0, high = 1.0, f_low = root->b[0], f_high = root->b[N];
    int side = 0;
    for (int i = 0; i < 60 && high - low > 1e-14; i++) {
        double t = (f_low * high - f_high * low) / (f_low - f_high);
        if (!(t > low && t < high))
            t = 0.5 * (low + high);
        double f = evaluate(root->b, t);
        if (f == 0.0) {
            low = high = t;
        } else if ((f < 0.0) == (f_low < 0.0)) {
            low = t, f_low = f;
            if (side == 1)
                f_high *= 0.5;
            side = 1;
        } else {
            high = t, f_high = f;
            if (side == -1)
                f_low *= 0.5;
            side = -1;
        }
    }
    return root->from + 0.5 * (low + high) * (root->to - root->from);
}

/* ---- the resultant ----
 *
 * The resultant of two biquadratic equations, computed in Bernstein form. A
 * product of two forms is a sum of products with binomial weights. */

static const double binomial4[5] = {1.0, 4.0, 6.0, 4.0, 1.0};
static const double binomial8[9] = {1.0,  8.0,  28.0, 56.0, 70.0,
                                    56.0, 28.0, 8.0,  1.0};
static const double binomial16[17] = {
    1.0,     16.0,   120.0,  560.0,  1820.0, 4368.0, 8008.0, 11440.0, 12870.0,
    11440.0, 8008.0, 4368.0, 1820.0, 560.0,  120.0,  16.0,   1.0};

/* At a given tau_2 let k = a^T y_2 and m = c y_2. Then k.y_0 = 0 and m.y_1 = 0
 * are lines, y_0 and y_1 lie on the unit circle y J y = 0 with
 * J = diag(-1, 1, 1), and eliminating y_0 and y_1 gives
 *
 *     R(tau_2) = L^2 - D_a D_c W^2 = 0,
 *     L = tr(S(k) b S(m) b^T),  S(v) = [v]^T J [v],  W = 2 m adj(b) k,
 *     D_a = k_1^2 + k_2^2 - k_0^2,  D_c the same of m.
 *
 * Derivation: y_0 is the intersection [k] b y_1 of two lines and must lie on
 * the circle, which is a conic G in y_1. R is the resultant of G and J on the
 * line m, that is the discriminant of m adj(G + lambda J) m in lambda. In
 * x = cos(tau_2 / 2) and y = sin(tau_2 / 2), R is a form of degree 16. */

/* ---- products of forms, here with coefficients of x^(n - k) y^k ---- */

static void add_product22(double out[5], double f, const double a[3],
                          const double b[3])
{
    out[0] += f * a[0] * b[0];
    out[1] += f * (a[0] * b[1] + a[1] * b[0]);
    out[2] += f * (a[0] * b[2] + a[1] * b[1] + a[2] * b[0]);
    out[3] += f * (a[1] * b[2] + a[2] * b[1]);
    out[4] += f * a[2] * b[2];
}

static void add_product44(double out[9], double f, const double a[5],
                          const double b[5])
{
    for (int i = 0; i < 5; i++) {
        double g = f * a[i];
        for (int j = 0; j < 5; j++)
            out[i + j] += g * b[j];
    }
}

static void add_product88(double out[17], const double a[9], const double b[9])
{
    for (int i = 0; i < 9; i++)
        for (int j = 0; j < 9; j++)
            out[i + j] += a[i] * b[j];
}

/* v . (1, cos, sin) as a form of degree 2. */
static void linear(double out[3], double v0, double v1, double v2)
{
    out[0] = v0 + v1, out[1] = 2.0 * v2, out[2] = v0 - v1;
}

/* s: elements 00, 11, 22, 01, 02, 12 of S(v). d: v_1^2 + v_2^2 - v_0^2. */
static void line_conic(double s[6][5], double d[5], double v[3][3])
{
    double v00[5] = {0}, v11[5] = {0}, v22[5] = {0};
    add_product22(v00, 1.0, v[0], v[0]);
    add_product22(v11, 1.0, v[1], v[1]);
    add_product22(v22, 1.0, v[2], v[2]);
    memset(s, 0, 6 * sizeof *s);
    for (int k = 0; k < 5; k++) {
        s[0][k] = v11[k] + v22[k];
        s[1][k] = v00[k] - v22[k];
        s[2][k] = v00[k] - v11[k];
        d[k] = s[0][k] - v00[k];
    }
    add_product22(s[3], -1.0, v[0], v[1]);
    add_product22(s[4], -1.0, v[0], v[2]);
    add_product22(s[5], 1.0, v[1], v[2]);
}

static void set_forms(const equations *p, resultant_forms *f)
{
    static const int row[6] = {0, 1, 2, 0, 0, 1}, col[6] = {0, 1, 2, 1, 2, 2};
    static const double times[6] = {1.0, 1.0, 1.0, 2.0, 2.0, 2.0};
    const double(*b)[3] = p->b;
    double k[3][3], m[3][3], sk[6][5], sm[6][5];
    for (int i = 0; i < 3; i++) {
        linear(k[i], p->a[0][i], p->a[1][i], p->a[2][i]);
        linear(m[i], p->c[i][0], p->c[i][1], p->c[i][2]);
    }
    line_conic(sk, f->da, k);
    line_conic(sm, f->dc, m);

    /* L = sum over ij of S(k)_ij (B S(m) B^T)_ij */
    memset(f->l, 0, sizeof f->l);
    double q[6][5];
    for (int n = 0; n < 5; n++) {
        double s[3][3] = {{sm[0][n], sm[3][n], sm[4][n]},
                          {sm[3][n], sm[1][n], sm[5][n]},
                          {sm[4][n], sm[5][n], sm[2][n]}};
        double bs[3][3];
        for (int i = 0; i < 3; i++)
            for (int j = 0; j < 3; j++)
                bs[i][j] =
                    b[i][0] * s[0][j] + b[i][1] * s[1][j] + b[i][2] * s[2][j];
        for (int e = 0; e < 6; e++)
            q[e][n] = tsr_vec3_dot(bs[row[e]], b[col[e]]);
    }
    for (int e = 0; e < 6; e++)
        add_product44(f->l, times[e], sk[e], q[e]);

    double bk[3][3] = {{0}}, adj[3][3];
    for (int i = 0; i < 3; i++) {
        double c[3]; /* column i of the adjugate: cross product of rows of B */
        tsr_vec3_cross(c, b[(i + 1) % 3], b[(i + 2) % 3]);
        for (int j = 0; j < 3; j++)
            adj[j][i] = c[j];
    }
    for (int i = 0; i < 3; i++)
        for (int j = 0; j < 3; j++)
            for (int n = 0; n < 3; n++)
                bk[i][n] += adj[i][j] * k[j][n];
    memset(f->w, 0, sizeof f->w);
    for (int i = 0; i < 3; i++)
        add_product22(f->w, 2.0, m[i], bk[i]);

    for (int n = 0; n < 9; n++)
        f->l[n] /= binomial8[n];
    for (int n = 0; n < 5; n++) {
        f->w[n] /= binomial4[n];
        f->da[n] /= binomial4[n];
        f->dc[n] /= binomial4[n];
    }
}

/* ---- restriction of the forms to an arc ---- */

/* Polar form (Ramshaw 1989): coefficient j of the result evaluates the polar
 * form at n - j times u and j times v. */
static void restrict_form(int n, const double form[], tsr_cos_sin u,
                          tsr_cos_sin v, double out[])
{
    double at_u[9], at_v[9];
    memcpy(at_u, form, (size_t)(n + 1) * sizeof *form);
    for (int j = n;; j--) {
        for (int k = 0; k <= j; k++)
            at_v[k] = at_u[k];
        for (int r = j; r > 0; r--)
            for (int k = 0; k < r; k++)
                at_v[k] = v.c * at_v[k] + v.s * at_v[k + 1];
        out[j] = at_v[0];
        if (j == 0)
            return;
        for (int k = 0; k < j; k++)
            at_u[k] = u.c * at_u[k] + u.s * at_u[k + 1];
    }
}

/* R at (1 - t) u + t v, in Bernstein form in t. u, v: (x, y) at the ends of the
 * arc. Returns the size of the rounding errors in the coefficients b. */
static double resultant_on(const resultant_forms *f, tsr_cos_sin u,
                           tsr_cos_sin v, double b[TSR_ROOT_DEGREE + 1])
{
    double l[9], w[5], da[5], dc[5], ww[9] = {0}, dd[9] = {0};
    double plus[TSR_ROOT_DEGREE + 1] = {0}, minus[TSR_ROOT_DEGREE + 1] = {0};
    restrict_form(8, f->l, u, v, l);
    restrict_form(4, f->w, u, v, w);
    restrict_form(4, f->da, u, v, da);
    restrict_form(4, f->dc, u, v, dc);
    for (int k = 0; k <= 8; k++)
        l[k] *= binomial8[k];
    for (int k = 0; k <= 4; k++) {
        w[k] *= binomial4[k];
        da[k] *= binomial4[k];
        dc[k] *= binomial4[k];
    }
    add_product44(ww, 1.0, w, w);
    add_product44(dd, 1.0, da, dc);
    add_product88(plus, l, l);
    add_product88(minus, ww, dd);
    double size = 0.0;
    for (int k = 0; k <= TSR_ROOT_DEGREE; k++) {
        double f16 = 1.0 / binomial16[k];
        b[k] = f16 * (plus[k] - minus[k]);
        size = fmax(size, f16 * (fabs(plus[k]) + fabs(minus[k])));
    }
    return 1e-15 * size;
}

/* ---- arcs ----
 *
 * Arcs of tau_2 on which both of two inequalities hold. */

/* Sets the condition on tau that a direction u, turning about an axis, can make
 * an angle of the given cosine with a second direction. along, aside:
 * components of the unit vector u along the axis and across it. The cosine
 * between the second direction and the axis is offset + p cos tau - q sin tau.
 * Returns 0 if no tau meets the condition. */
static int set_bounds(bounds *b, double along, double aside, double cosine,
                      double offset, double p, double q)
{
    double sine = sqrt(fmax(0.0, 1.0 - cosine * cosine));
    b->p = p, b->q = q;
    b->lo = along * cosine - aside * sine - offset;
    b->hi = along * cosine + aside * sine - offset;
    double amplitude = sqrt(p * p + q * q);
    return b->lo <= amplitude && b->hi >= -amplitude;
}

static int is_within(const bounds *b, tsr_cos_sin t)
{
    double h = b->p * t.c - b->q * t.s;
    return h >= b->lo && h <= b->hi;
}

/* Appends the angles at which a bound holds with equality, up to 4. */
static int add_ends(const bounds *b, tsr_cos_sin end[8], int n)
{
    double amplitude = sqrt(b->p * b->p + b->q * b->q);
    const double h[2] = {b->lo, b->hi};
    for (int i = 0; i < 2; i++) {
        if (!(fabs(h[i]) < amplitude))
            continue;
        double c = h[i] / amplitude, s = sqrt(1.0 - c * c);
        double cp = b->p / amplitude, sp = b->q / amplitude;
        end[n++] = (tsr_cos_sin){c * cp + s * sp, s * cp - c * sp};
        end[n++] = (tsr_cos_sin){c * cp - s * sp, -s * cp - c * sp};
    }
    return n;
}

/* A number that increases with the angle in (-pi, pi]. */
static double angle_rank(tsr_cos_sin t)
{
    return t.s >= 0.0 ? 1.0 - t.c : t.c - 1.0;
}

static void sort_ends(tsr_cos_sin end[8], int n)
{
    for (int i = 1; i < n; i++) {
        tsr_cos_sin t = end[i];
        int j = i;
        for (; j > 0 && angle_rank(end[j - 1]) > angle_rank(t); j--)
            end[j] = end[j - 1];
        end[j] = t;
    }
}

static tsr_cos_sin half_angle(tsr_cos_sin t)
{
    if (t.c > 0.0) {
        double c = sqrt(0.5 * (1.0 + t.c));
        return (tsr_cos_sin){c, 0.5 * t.s / c};
    }
    double s = sqrt(0.5 * (1.0 - t.c));
    return t.s < 0.0 ? (tsr_cos_sin){-0.5 * t.s / s, -s}
                     : (tsr_cos_sin){0.5 * t.s / s, s};
}

static tsr_cos_sin double_angle(tsr_cos_sin t)
{
    return (tsr_cos_sin){t.c * t.c - t.s * t.s, 2.0 * t.c * t.s};
}

static tsr_cos_sin unit_circle(double c, double s)
{
    double f = 1.0 / sqrt(c * c + s * s);
    return (tsr_cos_sin){c * f, s * f};
}

/* The middle of an arc from u to v that is shorter than pi. */
static tsr_cos_sin arc_middle(tsr_cos_sin u, tsr_cos_sin v)
{
    double c = u.c + v.c, s = u.s + v.s;
    if (c * c + s * s > 1.0)
        return unit_circle(c, s);
    return unit_circle(v.s - u.s, u.c - v.c);
}

/* Splits an arc into short arcs and appends them to `arc`, of which n are in
 * use. Each is extended by a margin, because rounding may move a root just
 * outside. Returns the new number of arcs. */
static int add_arcs(tsr_cos_sin u, tsr_cos_sin v, arc_span arc[TSR_MAX_ARC],
                    int n)
{
    const double margin = 1e-4;
    if (u.c * v.c + u.s * v.s < 0.45) {
        tsr_cos_sin w = arc_middle(u, v);
        return add_arcs(w, v, arc, add_arcs(u, w, arc, n));
    }
    if (n == TSR_MAX_ARC)
        return n;
    arc[n].from = unit_circle(u.c + margin * u.s, u.s - margin * u.c);
    arc[n].to = unit_circle(v.c - margin * v.s, v.s + margin * v.c);
    return n + 1;
}

/* The arcs on which both conditions hold, slightly extended. Arcs may
 * overlap. */
static int find_arcs(const bounds limit[2], arc_span arc[TSR_MAX_ARC])
{
    tsr_cos_sin end[8];
    int n_arc = 0, n = add_ends(&limit[1], end, add_ends(&limit[0], end, 0));
    if (n == 0) { /* the conditions hold everywhere or nowhere */
        end[0] = (tsr_cos_sin){1.0, 0.0}, end[1] = (tsr_cos_sin){-1.0, 0.0};
        n = 2;
    }
    sort_ends(end, n);
    for (int i = 0; i < n; i++) {
        tsr_cos_sin u = half_angle(end[i]);
        tsr_cos_sin v = half_angle(end[(i + 1) % n]);
        if (u.c * v.s - u.s * v.c < 0.0)
            v.c = -v.c, v.s = -v.s;
        tsr_cos_sin at = double_angle(arc_middle(u, v));
        if (is_within(&limit[0], at) && is_within(&limit[1], at))
            n_arc = add_arcs(u, v, arc, n_arc);
    }
    return n_arc;
}

/* ---- the equations ----
 *
 * The three CA form a triangle with known sides. Each side carries a rigid
 * piece: side 0 piece 1, side 1 piece 2, and side 2 the outer piece, from pivot
 * c through the rest of the chain to pivot a. Piece i turns about its side by
 * tau_i, measured from the plane of the triangle. At each vertex the angle
 * N-CA-C is given. This is one equation, bilinear in
 * y_i = (1, cos tau_i, sin tau_i) and y_(i+1):
 *
 *     y_0 B y_1 = 0  (vertex b),  y_1 C y_2 = 0  (c),  y_2 A y_0 = 0  (a).
 *
 * These are Coutsias et al. 2004, eq. 12. The resultant above eliminates tau_0
 * and tau_1. Solutions for tau_2 exist only on a few arcs, where cones of
 * directions intersect at a and at c. On each arc the resultant is computed in
 * Bernstein form from its factors restricted to that arc. So no value of tau_2
 * is singular, and rounding errors are small compared with the polynomial on
 * that arc. A root is only a starting point for Newton's method on the three
 * equations. */

typedef struct {
    double origin[3], e[3], x[3],
        y[3]; /* e along the side, x and y across it */
    double length;
    double first[3], last[3]; /* unit vectors from the start and the end to
                                 their neighbour atoms, in the frame e, x, y */
} piece;

typedef struct {
    piece piece[3];
    double edge[3][2]; /* unit vectors along the sides, in the plane of the
                          triangle */
    equations eq;
} problem;

static double perpendicular_part(double out[3], const double v[3],
                                 const double e[3])
{
    double along = tsr_vec3_dot(v, e);
    for (int d = 0; d < 3; d++)
        out[d] = v[d] - along * e[d];
    return tsr_vec3_norm(out);
}

static int set_piece(piece *p, const double start[3], const double first[3],
                     const double last[3], const double end[3])
{
    double u[3], w[3], xu[3], xw[3];
    tsr_vec3_copy(p->origin, start);
    tsr_vec3_sub(p->e, end, start);
    tsr_vec3_sub(u, first, start);
    tsr_vec3_sub(w, last, end);
    p->length = tsr_vec3_norm(p->e);
    double nu = tsr_vec3_norm(u), nw = tsr_vec3_norm(w);
    if (!(p->length > 0.0 && nu > 0.0 && nw > 0.0) || !isfinite(p->length) ||
        !isfinite(nu) || !isfinite(nw))
        return 0;
    for (int d = 0; d < 3; d++)
        p->e[d] /= p->length, u[d] /= nu, w[d] /= nw;
    double ru = perpendicular_part(xu, u, p->e),
           rw = perpendicular_part(xw, w, p->e);
    double r = ru >= rw ? ru : rw;
    if (!(r > 1e-9))
        return 0;
    for (int d = 0; d < 3; d++)
        p->x[d] = (ru >= rw ? xu[d] : xw[d]) / r;
    perpendicular_part(p->x, p->x, p->e);
    tsr_vec3_normalize(p->x);
    tsr_vec3_cross(p->y, p->e, p->x);
    p->first[0] = tsr_vec3_dot(u, p->e), p->first[1] = tsr_vec3_dot(u, p->x);
    p->first[2] = tsr_vec3_dot(u, p->y);
    p->last[0] = tsr_vec3_dot(w, p->e), p->last[1] = tsr_vec3_dot(w, p->x);
    p->last[2] = tsr_vec3_dot(w, p->y);
    return 1;
}

/* Sides a-b, b-c, c-a of a triangle with a at the origin, c on +x and b
 * above. */
static int set_triangle(problem *p)
{
    double l1 = p->piece[0].length, l2 = p->piece[1].length;
    double l3 = p->piece[2].length;
    double s = (l1 + l2 + l3) * (l1 + l2 - l3) * (l1 - l2 + l3) *
               (-l1 + l2 + l3); /* 16 area^2 (Heron) */
    double largest = fmax(l1, fmax(l2, l3));
    if (!(s > 1e-18 * pow(largest, 4.0)))
        return 0;
    double h = 0.5 * sqrt(s) / l3;
    double x = 0.5 * (l3 + (l1 - l2) * (l1 + l2) / l3);
    double e[3][2] = {{x, h}, {l3 - x, -h}, {-1.0, 0.0}};
    for (int i = 0; i < 3; i++) {
        double n = sqrt(e[i][0] * e[i][0] + e[i][1] * e[i][1]);
        p->edge[i][0] = e[i][0] / n, p->edge[i][1] = e[i][1] / n;
    }
    return 1;
}

/* Equation of the angle at the vertex where side i ends and side j starts. p_i
 * and p_j are the sides turned by 90 degrees: p_i.p_j = e_i.e_j,
 * p_i.e_j = -e_i.p_j. */
static void set_equation(const problem *p, int i, int j, double cosine,
                         double out[3][3])
{
    const double *v = p->piece[i].last, *u = p->piece[j].first;
    const double *ei = p->edge[i], *ej = p->edge[j];
    double ee = ei[0] * ej[0] + ei[1] * ej[1];
    double ep = ei[1] * ej[0] - ei[0] * ej[1];
    out[0][0] = v[0] * u[0] * ee - cosine;
    out[0][1] = v[0] * u[1] * ep;
    out[0][2] = -v[0] * u[2] * ep;
    out[1][0] = -v[1] * u[0] * ep;
    out[2][0] = v[2] * u[0] * ep;
    out[1][1] = v[1] * u[1] * ee + v[2] * u[2];
    out[1][2] = -v[1] * u[2] * ee + v[2] * u[1];
    out[2][1] = -v[2] * u[1] * ee + v[1] * u[2];
    out[2][2] = v[2] * u[2] * ee + v[1] * u[1];
}

/* ---- from a root to a solution ---- */

typedef struct {
    tsr_cos_sin tau[3];
} angles;

typedef struct {
    int n;
    angles angles[TSR_MAX_CLOSURE];
} solution_list;

/* The two unit vectors (c, s) with v_0 + v_1 c + v_2 s = 0, or the nearest
 * ones. */
static void solve_angle(const double v[3], tsr_cos_sin out[2])
{
    double r2 = v[1] * v[1] + v[2] * v[2];
    double root = sqrt(fmax(0.0, r2 - v[0] * v[0]));
    for (int i = 0; i < 2; i++, root = -root)
        out[i] = r2 > 0.0 ? unit_circle(-v[0] * v[1] - v[2] * root,
                                        -v[0] * v[2] + v[1] * root)
                          : (tsr_cos_sin){1.0, 0.0};
}

/* Returns f = y e z and its derivatives by the angles of y and z. */
static double bilinear(const double e[3][3], tsr_cos_sin y, tsr_cos_sin z,
                       double *dy, double *dz)
{
    double r0 = e[0][0] + e[0][1] * z.c + e[0][2] * z.s;
    double r1 = e[1][0] + e[1][1] * z.c + e[1][2] * z.s;
    double r2 = e[2][0] + e[2][1] * z.c + e[2][2] * z.s;
    double d0 = e[0][2] * z.c - e[0][1] * z.s;
    double d1 = e[1][2] * z.c - e[1][1] * z.s;
    double d2 = e[2][2] * z.c - e[2][1] * z.s;
    *dy = r2 * y.c - r1 * y.s;
    *dz = d0 + d1 * y.c + d2 * y.s;
    return r0 + r1 * y.c + r2 * y.s;
}

/* Newton's method on the three angles. Returns 1 if it converged. */
static int newton(const equations *e, angles *x)
{
    tsr_cos_sin *t = x->tau;
    for (int i = 0; i < 24; i++) {
        double a0, a2, b0, b1, c1, c2;
        double fa = -bilinear(e->a, t[2], t[0], &a2, &a0);
        double fb = -bilinear(e->b, t[0], t[1], &b0, &b1);
        double fc = -bilinear(e->c, t[1], t[2], &c1, &c2);
        double det = a0 * b1 * c2 + a2 * b0 * c1;
        double f = 1.0 / det;
        double d[3] = {f * (fa * b1 * c2 + a2 * (fb * c1 - b1 * fc)),
                       f * (a0 * fb * c2 - fa * b0 * c2 + a2 * b0 * fc),
                       f * (a0 * (b1 * fc - fb * c1) + fa * b0 * c1)};
        double largest = fmax(fabs(d[0]), fmax(fabs(d[1]), fabs(d[2])));
        if (!(largest < DBL_MAX))
            return 0;
        double cut = largest > 0.5 ? 0.5 / largest : 1.0;
        for (int j = 0; j < 3; j++) {
            double step = cut * d[j];
            t[j] = unit_circle(t[j].c - step * t[j].s, t[j].s + step * t[j].c);
        }
        /* Newton's error after this step is about the square of the step. */
        if (largest < 1e-9)
            return fabs(fa) + fabs(fb) + fabs(fc) < 1e-8;
    }
    return 0;
}

static void add_solution(solution_list *found, const angles *x)
{
    for (int i = 0; i < found->n; i++) {
        double d = 0.0;
        for (int j = 0; j < 3; j++)
            d += fabs(found->angles[i].tau[j].c - x->tau[j].c) +
                 fabs(found->angles[i].tau[j].s - x->tau[j].s);
        if (d < 1e-8)
            return;
    }
    if (found->n < TSR_MAX_CLOSURE)
        found->angles[found->n++] = *x;
}

/* Starts Newton's method at the tau_2 whose half angle has the direction (1 -
 * at) u + at v. Tries four combinations of tau_0 and tau_1, the one with the
 * smallest residual first. Adds the first solution, or with `all` every
 * solution, whose position on the arc lies within [from, to]. Returns the
 * number of such solutions, known ones included. */
static int newton_from(const problem *p, tsr_cos_sin u, tsr_cos_sin v,
                       double at, double from, double to, int all,
                       solution_list *found)
{
    const double(*a)[3] = p->eq.a, (*c)[3] = p->eq.c;
    tsr_cos_sin h =
        unit_circle((1.0 - at) * u.c + at * v.c, (1.0 - at) * u.s + at * v.s);
    tsr_cos_sin t2 = double_angle(h), t0[2], t1[2];
    double k[3], m[3], residual[4], dy, dz;
    for (int i = 0; i < 3; i++) {
        k[i] = a[0][i] + a[1][i] * t2.c + a[2][i] * t2.s;
        m[i] = c[i][0] + c[i][1] * t2.c + c[i][2] * t2.s;
    }
    solve_angle(k, t0), solve_angle(m, t1);
    for (int i = 0; i < 4; i++)
        residual[i] = fabs(bilinear(p->eq.b, t0[i & 1], t1[i >> 1], &dy, &dz));
    int n = 0;
    for (int i = 0; i < 4; i++) {
        int best = 0;
        for (int j = 1; j < 4; j++)
            best = residual[j] < residual[best] ? j : best;
        residual[best] = DBL_MAX;
        angles x = {{t0[best & 1], t1[best >> 1], t2}};
        if (!newton(&p->eq, &x))
            continue;
        h = half_angle(x.tau[2]);
        double s = h.c * v.s - h.s * v.c, t = u.c * h.s - u.s * h.c;
        t /= s + t;
        if (!(t >= from && t <= to))
            continue;
        add_solution(found, &x);
        n++;
        if (!all)
            break;
    }
    return n;
}

static void solve_arc(const problem *p, const resultant_forms *forms,
                      tsr_cos_sin u, tsr_cos_sin v, solution_list *found)
{
    double b[TSR_ROOT_DEGREE + 1];
    tsr_root root[TSR_MAX_ROOT];
    double noise = resultant_on(forms, u, v, b);
    int n = tsr_root_isolate(b, noise, root);
    for (int i = 0; i < n; i++) {
        const tsr_root *r = &root[i];
        double from = r->from - 1e-9, to = r->to + 1e-9;
        if (!r->single) {
            from -= 1e-3, to += 1e-3;
            newton_from(p, u, v, r->from, from, to, 1, found);
            newton_from(p, u, v, r->guess, from, to, 1, found);
            newton_from(p, u, v, r->to, from, to, 1, found);
        } else if (!newton_from(p, u, v, r->guess, from, to, 0, found)) {
            newton_from(p, u, v, tsr_root_refine(r), from - 1e-6, to + 1e-6, 0,
                        found);
        }
    }
}

/* ---- positions in space ---- */

/* Sets the motion that takes the frame of a piece to (e, x, y) and its origin
 * to `to`. */
static void set_motion(tsr_motion *motion, const piece *p, const double e[3],
                       const double x[3], const double y[3], const double to[3])
{
    for (int i = 0; i < 3; i++)
        for (int j = 0; j < 3; j++)
            motion->rotation[i][j] =
                e[i] * p->e[j] + x[i] * p->x[j] + y[i] * p->y[j];
    for (int i = 0; i < 3; i++)
        motion->shift[i] = to[i] - tsr_vec3_dot(motion->rotation[i], p->origin);
}

/* Motions of pieces 1 and 2. The outer piece stays, and determines the
 * orientation of the triangle. */
static void set_solution(const problem *p, const angles *x,
                         const double ca_a[3], tsr_closure_solution *out)
{
    const piece *outer = &p->piece[2];
    tsr_cos_sin t = x->tau[2];
    double z[3], axis[2][3]; /* normal of the triangle; axes in its plane */
    for (int d = 0; d < 3; d++) {
        double across_e = t.c * outer->x[d] - t.s * outer->y[d];
        z[d] = t.s * outer->x[d] + t.c * outer->y[d];
        axis[0][d] = -outer->e[d]; /* side 2 is -x, its perpendicular -y */
        axis[1][d] = -across_e;
    }
    double origin[3];
    tsr_vec3_copy(origin, ca_a);
    for (int i = 0; i < 2; i++) {
        const double *edge = p->edge[i];
        double e[3], px[3], ex[3], ey[3];
        t = x->tau[i];
        for (int d = 0; d < 3; d++) {
            e[d] = edge[0] * axis[0][d] + edge[1] * axis[1][d];
            px[d] = edge[0] * axis[1][d] - edge[1] * axis[0][d];
            ex[d] = t.c * px[d] + t.s * z[d];
            ey[d] = t.c * z[d] - t.s * px[d];
        }
        set_motion(i == 0 ? &out->piece1 : &out->piece2, &p->piece[i], e, ex,
                   ey, origin);
        for (int d = 0; d < 3; d++)
            origin[d] += p->piece[i].length * e[d];
    }
}

int tsr_closure_solve(const tsr_closure *closure,
                      tsr_closure_solution solution[TSR_MAX_CLOSURE])
{
    const tsr_closure *q = closure;
    problem p;
    bounds limit[2];
    solution_list found = {0};
    double cosine[3];
    if (!set_piece(&p.piece[0], q->piece1[0], q->piece1[1], q->piece1[2],
                   q->piece1[3]) ||
        !set_piece(&p.piece[1], q->piece2[0], q->piece2[1], q->piece2[2],
                   q->piece2[3]) ||
        !set_piece(&p.piece[2], q->ca_c, q->c_c, q->n_a, q->ca_a) ||
        !set_triangle(&p))
        return 0;
    for (int i = 0; i < 3; i++) {
        cosine[i] = cos(q->angle[i]);
        if (!(fabs(cosine[i]) <= 1.0))
            return 0;
    }
    set_equation(&p, 2, 0, cosine[0], p.eq.a);
    set_equation(&p, 0, 1, cosine[1], p.eq.b);
    set_equation(&p, 1, 2, cosine[2], p.eq.c);

    /* At pivot a, the first bond of piece 1 must make the given angle with N of
     * the outer piece; at pivot c, the last bond of piece 2 with C of the outer
     * piece. */
    const double(*e)[2] = (const double(*)[2])p.edge;
    const double *n = p.piece[2].last, *c = p.piece[2].first;
    const double *u = p.piece[0].first, *v = p.piece[1].last;
    double ee0 = e[2][0] * e[0][0] + e[2][1] * e[0][1];
    double pe0 = e[2][0] * e[0][1] - e[2][1] * e[0][0];
    double ee1 = e[1][0] * e[2][0] + e[1][1] * e[2][1];
    double pe1 = e[2][0] * e[1][1] - e[2][1] * e[1][0];
    if (!set_bounds(&limit[0], u[0], sqrt(u[1] * u[1] + u[2] * u[2]), cosine[0],
                    n[0] * ee0, n[1] * pe0, n[2] * pe0) ||
        !set_bounds(&limit[1], v[0], sqrt(v[1] * v[1] + v[2] * v[2]), cosine[2],
                    c[0] * ee1, c[1] * pe1, c[2] * pe1))
        return 0;
    arc_span arc[TSR_MAX_ARC];
    resultant_forms forms;
    int n_arc = find_arcs(limit, arc);
    set_forms(&p.eq, &forms);
    for (int i = 0; i < n_arc; i++)
        solve_arc(&p, &forms, arc[i].from, arc[i].to, &found);
    for (int i = 0; i < found.n; i++)
        set_solution(&p, &found.angles[i], q->ca_a, &solution[i]);
    return found.n;
}

/* ---- the Jacobian ---- */

double tsr_closure_log_det(double axis[6][2][3])
{
    double m[6][6], centre[3] = {0}, det = 1.0, size = 1.0;
    for (int k = 0; k < 6; k++)
        for (int d = 0; d < 3; d++)
            centre[d] += (axis[k][0][d] + axis[k][1][d]) / 12.0;
    for (int k = 0; k < 6; k++) { /* row k of m is column k of the matrix */
        double r[3];
        tsr_vec3_sub(m[k], axis[k][1], axis[k][0]);
        tsr_vec3_normalize(m[k]);
        tsr_vec3_sub(r, centre, axis[k][0]);
        tsr_vec3_cross(m[k] + 3, m[k], r);
        size = fmax(size, tsr_vec3_norm(m[k] + 3));
    }
    for (int k = 0; k < 6; k++) {
        int best = k;
        for (int i = k + 1; i < 6; i++)
            if (fabs(m[i][k]) > fabs(m[best][k]))
                best = i;
        if (!(fabs(m[best][k]) > 64.0 * DBL_EPSILON * size))
            return (double)-INFINITY;
        if (best != k) {
            double row[6];
            memcpy(row, m[k], sizeof row);
            memcpy(m[k], m[best], sizeof row);
            memcpy(m[best], row, sizeof row);
        }
        det *= m[k][k];
        for (int i = k + 1; i < 6; i++) {
            double f = m[i][k] / m[k][k];
            for (int j = k + 1; j < 6; j++)
                m[i][j] -= f * m[k][j];
        }
    }
    return log(fabs(det));
}

/* ---- choosing one of the closures ---- */

/* Closures with log D below this bound are left out (D in Angstrom^3). */
static const double log_least_det = -5.0;
/* Atoms of a closure agree with those of a conformation within this
 * distance. */
static const double rounding_ang = 1e-6;

int tsr_can_pivot(const tsr_residue *residue)
{
    return residue->flexible && residue->amino != TSR_PRO && residue->has_phi &&
           residue->has_psi && residue->link == TSR_LINK_NONE;
}

static tsr_cos_sin torsion_circle(const double a[3], const double b[3],
                                  const double c[3], const double d[3])
{
    double x, y;
    tsr_vec3_torsion_xy(a, b, c, d, &x, &y);
    double f = 1.0 / sqrt(x * x + y * y);
    return (tsr_cos_sin){f * x, f * y};
}

static void moved_atom(double out[3], const tsr_motion *m, const double x[3])
{
    tsr_vec3_copy(out, x);
    tsr_motion_apply(m, out);
}

/* Sets torsions, prior density and weight. Returns 0 for a nearly singular
 * closure. */
static int set_weight(const tsr_prior *prior, const tsr_pivots *w,
                      const tsr_conformation *pieces,
                      const tsr_conformation *before,
                      const tsr_conformation *after, tsr_closed *k)
{
    double(*a)[3] = before->backbone[w->a], (*c)[3] = after->backbone[w->c];
    double(*x)[3] = k->x, next[3], before_b[3], after_b[3], before_c[3];
    const tsr_motion *one = &k->motion.piece1, *two = &k->motion.piece2;
    moved_atom(next, one, pieces->backbone[w->a + 1][TSR_N]);
    moved_atom(before_b, one, pieces->backbone[w->b - 1][TSR_C]);
    moved_atom(after_b, two, pieces->backbone[w->b + 1][TSR_N]);
    moved_atom(before_c, two, pieces->backbone[w->c - 1][TSR_C]);
    double axis[6][2][3];
    const double *ends[6][2] = {{a[TSR_N], a[TSR_CA]}, {a[TSR_CA], x[0]},
                                {x[1], x[2]},          {x[2], x[3]},
                                {x[4], c[TSR_CA]},     {c[TSR_CA], c[TSR_C]}};
    for (int i = 0; i < 6; i++)
        for (int e = 0; e < 2; e++)
            tsr_vec3_copy(axis[i][e], ends[i][e]);
    double log_det = tsr_closure_log_det(axis);
    if (!(log_det > log_least_det))
        return 0;
    tsr_cos_sin *t = k->torsion;
    t[0] = torsion_circle(before->backbone[w->a - 1][TSR_C], a[TSR_N],
                          a[TSR_CA], x[0]);
    t[1] = torsion_circle(a[TSR_N], a[TSR_CA], x[0], next);
    t[2] = torsion_circle(before_b, x[1], x[2], x[3]);
    t[3] = torsion_circle(x[1], x[2], x[3], after_b);
    t[4] = torsion_circle(before_c, x[4], c[TSR_CA], c[TSR_C]);
    t[5] = torsion_circle(x[4], c[TSR_CA], c[TSR_C],
                          after->backbone[w->c + 1][TSR_N]);
    const int pivot[3] = {w->a, w->b, w->c};
    k->log_f = 0.0;
    for (int i = 0; i < 3; i++) {
        const double phi[2] = {t[2 * i].c, t[2 * i].s};
        const double psi[2] = {t[2 * i + 1].c, t[2 * i + 1].s};
        k->log_f += tsr_prior_torsion_log(prior, pivot[i], phi, psi);
    }
    k->log_weight = k->log_f - log_det;
    return isfinite(k->log_weight);
}

void tsr_closures_find(const tsr_prior *prior, const tsr_pivots *pivots,
                       const tsr_conformation *pieces,
                       const tsr_conformation *before,
                       const tsr_conformation *after, tsr_closures *closures)
{
    const tsr_pivots *w = pivots;
    double(*a)[3] = pieces->backbone[w->a], (*b)[3] = pieces->backbone[w->b];
    double(*c)[3] = pieces->backbone[w->c];
    const double *from[8] = {a[TSR_CA], a[TSR_C], b[TSR_N], b[TSR_CA],
                             b[TSR_CA], b[TSR_C], c[TSR_N], c[TSR_CA]};
    tsr_closure q;
    tsr_closure_solution solution[TSR_MAX_CLOSURE];
    tsr_vec3_copy(q.n_a, before->backbone[w->a][TSR_N]);
    tsr_vec3_copy(q.ca_a, before->backbone[w->a][TSR_CA]);
    tsr_vec3_copy(q.ca_c, after->backbone[w->c][TSR_CA]);
    tsr_vec3_copy(q.c_c, after->backbone[w->c][TSR_C]);
    for (int i = 0; i < 4; i++) {
        tsr_vec3_copy(q.piece1[i], from[i]);
        tsr_vec3_copy(q.piece2[i], from[4 + i]);
    }
    q.angle[0] = tsr_vec3_angle(a[TSR_N], a[TSR_CA], a[TSR_C]);
    q.angle[1] = tsr_vec3_angle(b[TSR_N], b[TSR_CA], b[TSR_C]);
    q.angle[2] = tsr_vec3_angle(c[TSR_N], c[TSR_CA], c[TSR_C]);
    int n = tsr_closure_solve(&q, solution);
    closures->n = 0;
    for (int i = 0; i < n; i++) {
        tsr_closed *k = &closures->at[closures->n];
        k->motion = solution[i];
        for (int e = 0; e < 5; e++)
            moved_atom(k->x[e], e < 3 ? &k->motion.piece1 : &k->motion.piece2,
                       from[e < 3 ? e + 1 : e + 2]);
        closures->n += set_weight(prior, w, pieces, before, after, k);
    }
}

int tsr_closures_find_current(const tsr_closures *closures,
                              const tsr_pivots *pivots,
                              const tsr_conformation *conformation)
{
    const double *x[5] = {conformation->backbone[pivots->a][TSR_C],
                          conformation->backbone[pivots->b][TSR_N],
                          conformation->backbone[pivots->b][TSR_CA],
                          conformation->backbone[pivots->b][TSR_C],
                          conformation->backbone[pivots->c][TSR_N]};
    double least = rounding_ang * rounding_ang;
    int own = -1;
    for (int i = 0; i < closures->n; i++) {
        double largest = 0.0;
        for (int e = 0; e < 5; e++)
            largest =
                fmax(largest, tsr_vec3_distance2(closures->at[i].x[e], x[e]));
        if (largest < least)
            least = largest, own = i;
    }
    return own;
}

double tsr_closures_log_z(const tsr_closures *closures, const tsr_closed *from,
                          double width_rad, double log_p[TSR_MAX_CLOSURE])
{
    double stiff = 1.0 / (width_rad * width_rad);
    double top = (double)-INFINITY, sum = 0.0;
    for (int i = 0; i < closures->n; i++) {
        double log_k = -6.0;
        for (int t = 0; t < 6; t++)
            log_k += closures->at[i].torsion[t].c * from->torsion[t].c +
                     closures->at[i].torsion[t].s * from->torsion[t].s;
        log_p[i] = closures->at[i].log_weight + stiff * log_k;
        top = fmax(top, log_p[i]);
    }
    for (int i = 0; i < closures->n; i++)
        sum += exp(log_p[i] - top);
    return top + log(sum);
}

int tsr_closures_choose(const tsr_closures *closures,
                        const double log_p[TSR_MAX_CLOSURE], double log_z,
                        gsl_rng *rng)
{
    double u = gsl_rng_uniform(rng);
    int k = 0;
    for (; k < closures->n - 1; k++) {
        u -= exp(log_p[k] - log_z);
        if (u < 0.0)
            break;
    }
    return k;
}

void tsr_closed_apply(const tsr_closed *closed, const tsr_pivots *pivots,
                      const tsr_conformation *pieces, tsr_conformation *out)
{
    const tsr_motion *one = &closed->motion.piece1,
                     *two = &closed->motion.piece2;
    for (int i = pivots->a; i <= pivots->c; i++)
        for (int e = 0; e < 4; e++) {
            const double *x = pieces->backbone[i][e];
            int n_side =
                e == TSR_N || e == TSR_CA; /* 1: before C in the chain */
            if ((i == pivots->a && n_side) || (i == pivots->c && e != TSR_N))
                continue;
            int first = i < pivots->b || (i == pivots->b && n_side);
            moved_atom(out->backbone[i][e], first ? one : two, x);
        }
}
