/* The equations of a ring closure, arc by arc: the roots of a polynomial in one
 * angle give all closures, and Newton's steps polish them. */
#include "moves/closure.h"

#include "moves/closure_arcs.h"
#include "moves/closure_resultant.h"

#include <float.h>
#include <math.h>
#include <string.h>

/* The three CA form a triangle of known sides. Each of its edges carries a
 * rigid piece: edge 0 piece 1, edge 1 piece 2, edge 2 what lies outside, from
 * pivot c round to pivot a. Piece i turns about its edge by tau_i, measured
 * from the plane of the triangle; at each vertex the angle N-CA-C is given,
 * which makes one equation, bilinear in y_i = (1, cos tau_i, sin tau_i) and
 * y_(i+1):
 *
 *     y_0 B y_1 = 0  (vertex b),  y_1 C y_2 = 0  (c),  y_2 A y_0 = 0  (a).
 *
 * These are Coutsias et al. 2004, eq. 12. tau_0 and tau_1 are eliminated
 * (closure_resultant.c). tau_2 can only lie where cones of directions meet at a
 * and at c; that leaves a few arcs (closure_arcs.c), and on each the resultant
 * is written in Bernstein form from factors that are restricted to it: no value
 * of tau_2 is singular and rounding is small against what the polynomial is
 * nearby. A root is only a start for Newton's method on the three equations. */

typedef struct {
    double origin[3], e[3], x[3], y[3]; /* frame: along the edge, across it */
    double length;
    double first[3], last[3]; /* unit vectors to the atoms next to the start
                                 and the end, seen from these, in the frame */
} piece;

typedef tsr_cos_sin circle;

typedef struct {
    piece piece[3];
    double edge[3][2]; /* unit vectors in the plane of the triangle */
    tsr_closure_equations at;
} problem;

static double across(double out[3], const double v[3], const double e[3])
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
    double ru = across(xu, u, p->e), rw = across(xw, w, p->e);
    double r = ru >= rw ? ru : rw;
    if (!(r > 1e-9))
        return 0;
    for (int d = 0; d < 3; d++)
        p->x[d] = (ru >= rw ? xu[d] : xw[d]) / r;
    across(p->x, p->x, p->e);
    tsr_vec3_normalize(p->x);
    tsr_vec3_cross(p->y, p->e, p->x);
    p->first[0] = tsr_vec3_dot(u, p->e), p->first[1] = tsr_vec3_dot(u, p->x);
    p->first[2] = tsr_vec3_dot(u, p->y);
    p->last[0] = tsr_vec3_dot(w, p->e), p->last[1] = tsr_vec3_dot(w, p->x);
    p->last[2] = tsr_vec3_dot(w, p->y);
    return 1;
}

/* Edges a-b, b-c, c-a of a triangle with a at the origin, c on +x, b above. */
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

/* The angle at the vertex where edge i ends and edge j starts. p_i, p_j are
 * the edges turned by 90 degrees: p_i.p_j = e_i.e_j, p_i.e_j = -e_i.p_j. */
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
    circle tau[3];
} answer;

typedef struct {
    int n;
    answer answer[TSR_MAX_CLOSURE];
} answers;

/* The unit vectors (c, s) with v_0 + v_1 c + v_2 s = 0, or the nearest one. */
static void meet(const double v[3], circle out[2])
{
    double r2 = v[1] * v[1] + v[2] * v[2];
    double root = sqrt(fmax(0.0, r2 - v[0] * v[0]));
    for (int i = 0; i < 2; i++, root = -root)
        out[i] = r2 > 0.0 ? tsr_cos_sin_unit(-v[0] * v[1] - v[2] * root,
                                             -v[0] * v[2] + v[1] * root)
                          : (circle){1.0, 0.0};
}

/* f = y e z, with its derivatives by the angles of y and z. */
static double bilinear(const double e[3][3], circle y, circle z, double *dy,
                       double *dz)
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

/* Newton's method on the three angles; 1 where it has converged. */
static int polish(const tsr_closure_equations *e, answer *x)
{
    circle *t = x->tau;
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
            t[j] = tsr_cos_sin_unit(t[j].c - step * t[j].s,
                                    t[j].s + step * t[j].c);
        }
        /* the step leaves an error of its square */
        if (largest < 1e-9)
            return fabs(fa) + fabs(fb) + fabs(fc) < 1e-8;
    }
    return 0;
}

static void add_answer(answers *found, const answer *x)
{
    for (int i = 0; i < found->n; i++) {
        double d = 0.0;
        for (int j = 0; j < 3; j++)
            d += fabs(found->answer[i].tau[j].c - x->tau[j].c) +
                 fabs(found->answer[i].tau[j].s - x->tau[j].s);
        if (d < 1e-8)
            return;
    }
    if (found->n < TSR_MAX_CLOSURE)
        found->answer[found->n++] = *x;
}

/* Starts Newton's method from tau_2 at (1 - t) u + t v with each of the four
 * values of tau_0 and tau_1, the best first; takes the first answer (or all)
 * whose own t lies within [from, to]. */
static int start_from(const problem *p, circle u, circle v, double at,
                      double from, double to, int all, answers *found)
{
    const double(*a)[3] = p->at.a, (*c)[3] = p->at.c;
    circle h = tsr_cos_sin_unit((1.0 - at) * u.c + at * v.c,
                                (1.0 - at) * u.s + at * v.s);
    circle t2 = tsr_cos_sin_twice(h), t0[2], t1[2];
    double k[3], m[3], residual[4], dy, dz;
    for (int i = 0; i < 3; i++) {
        k[i] = a[0][i] + a[1][i] * t2.c + a[2][i] * t2.s;
        m[i] = c[i][0] + c[i][1] * t2.c + c[i][2] * t2.s;
    }
    meet(k, t0), meet(m, t1);
    for (int i = 0; i < 4; i++)
        residual[i] = fabs(bilinear(p->at.b, t0[i & 1], t1[i >> 1], &dy, &dz));
    int n = 0;
    for (int i = 0; i < 4; i++) {
        int best = 0;
        for (int j = 1; j < 4; j++)
            best = residual[j] < residual[best] ? j : best;
        residual[best] = DBL_MAX;
        answer x = {{t0[best & 1], t1[best >> 1], t2}};
        if (!polish(&p->at, &x))
            continue;
        h = tsr_cos_sin_half(x.tau[2]);
        double s = h.c * v.s - h.s * v.c, t = u.c * h.s - u.s * h.c;
        t /= s + t;
        if (!(t >= from && t <= to))
            continue;
        add_answer(found, &x);
        n++;
        if (!all)
            break;
    }
    return n;
}

static void solve_arc(const problem *p, const tsr_closure_forms *forms,
                      circle u, circle v, answers *found)
{
    double b[TSR_ROOT_DEGREE + 1];
    tsr_root root[TSR_MAX_ROOT];
    double noise = tsr_closure_resultant(forms, u, v, b);
    int n = tsr_root_isolate(b, noise, root);
    for (int i = 0; i < n; i++) {
        const tsr_root *r = &root[i];
        double from = r->from - 1e-9, to = r->to + 1e-9;
        if (!r->single) {
            from -= 1e-3, to += 1e-3;
            start_from(p, u, v, r->from, from, to, 1, found);
            start_from(p, u, v, r->near, from, to, 1, found);
            start_from(p, u, v, r->to, from, to, 1, found);
        } else if (!start_from(p, u, v, r->near, from, to, 0, found)) {
            start_from(p, u, v, tsr_root_refine(r), from - 1e-6, to + 1e-6, 0,
                       found);
        }
    }
}

/* ---- in space ---- */

/* Takes the frame of a piece to (e, x, y) with its origin to `to`. */
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

/* The outer piece stays; it tells how the triangle stands. */
static void place(const problem *p, const answer *x, const double ca_a[3],
                  tsr_closure_solution *out)
{
    const piece *outer = &p->piece[2];
    circle t = x->tau[2];
    double z[3], axis[2][3]; /* z and the axes of the plane, in space */
    for (int d = 0; d < 3; d++) {
        double across_e = t.c * outer->x[d] - t.s * outer->y[d];
        z[d] = t.s * outer->x[d] + t.c * outer->y[d];
        axis[0][d] = -outer->e[d]; /* edge 2 is -x, across it -y */
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
    tsr_closure_bounds limit[2];
    answers found = {0};
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
    set_equation(&p, 2, 0, cosine[0], p.at.a);
    set_equation(&p, 0, 1, cosine[1], p.at.b);
    set_equation(&p, 1, 2, cosine[2], p.at.c);

    /* at a: N of the outer piece and the axis of piece 1; at c: C of the outer
     * piece and the axis of piece 2 */
    const double(*e)[2] = (const double(*)[2])p.edge;
    const double *n = p.piece[2].last, *c = p.piece[2].first;
    const double *u = p.piece[0].first, *v = p.piece[1].last;
    double ee0 = e[2][0] * e[0][0] + e[2][1] * e[0][1];
    double pe0 = e[2][0] * e[0][1] - e[2][1] * e[0][0];
    double ee1 = e[1][0] * e[2][0] + e[1][1] * e[2][1];
    double pe1 = e[2][0] * e[1][1] - e[2][1] * e[1][0];
    if (!tsr_closure_set_bounds(&limit[0], u[0],
                                sqrt(u[1] * u[1] + u[2] * u[2]), cosine[0],
                                n[0] * ee0, n[1] * pe0, n[2] * pe0) ||
        !tsr_closure_set_bounds(&limit[1], v[0],
                                sqrt(v[1] * v[1] + v[2] * v[2]), cosine[2],
                                c[0] * ee1, c[1] * pe1, c[2] * pe1))
        return 0;
    tsr_closure_arc arc[TSR_MAX_ARC];
    tsr_closure_forms forms;
    int n_arc = tsr_closure_arcs(limit, arc);
    tsr_closure_set_forms(&p.at, &forms);
    for (int i = 0; i < n_arc; i++)
        solve_arc(&p, &forms, arc[i].from, arc[i].to, &found);
    for (int i = 0; i < found.n; i++)
        place(&p, &found.answer[i], q->ca_a, &solution[i]);
    return found.n;
}

/* ---- the Jacobian ---- */

double tsr_closure_log_det(double axis[6][2][3])
{
    double m[6][6], centre[3] = {0}, det = 1.0, size = 1.0;
    for (int k = 0; k < 6; k++)
        for (int d = 0; d < 3; d++)
            centre[d] += (axis[k][0][d] + axis[k][1][d]) / 12.0;
    for (int k = 0; k < 6; k++) { /* rows here */
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
