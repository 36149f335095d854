/* Ring closures made up for tests, and a search for their solutions that shares
 * nothing with moves/closure.c: phi of pivot a is scanned. */
#ifndef TESTS_UNIT_CLOSURE_PROBLEM_H
#define TESTS_UNIT_CLOSURE_PROBLEM_H

#include "core/vec3.h"
#include "molecule/topology.h"
#include "moves/closure.h"

#include <gsl/gsl_randist.h>
#include <string.h>

/* What a solution places: C_a, N_b, CA_b, C_b, N_c. */
typedef struct {
    double x[5][3];
} placed;

static inline double flat(gsl_rng *rng, double low, double high)
{
    return gsl_ran_flat(rng, low, high);
}

/* A backbone of three pivots with `between` residues from one to the next (N,
 * CA, C each), bond angles `spread` rad about the ideal ones, torsions at
 * random. Fills the closure and what the chain itself has. */
static inline void protein_problem(gsl_rng *rng, const int between[2],
                                   double spread, tsr_closure *q, placed *own)
{
    enum { MAX = 3 * 16 };
    double x[MAX][3] = {{0}};
    const double bond[3] = {TSR_BOND_C_N, TSR_BOND_N_CA, TSR_BOND_CA_C};
    const double angle[3] = {TSR_ANGLE_CA_C_N, TSR_ANGLE_C_N_CA,
                             TSR_ANGLE_N_CA_C};
    int b = 3 * (1 + between[0]), c = b + 3 * (1 + between[1]);
    x[1][0] = TSR_BOND_N_CA;
    x[2][0] = TSR_BOND_N_CA + 0.55, x[2][1] = 1.42;
    for (int i = 3; i < c + 3; i++) {
        double turn = i % 3 == 1 ? TSR_PI + flat(rng, -0.3, 0.3) * spread
                                 : flat(rng, -TSR_PI, TSR_PI);
        tsr_place_atom(x[i], x[i - 3], x[i - 2], x[i - 1], bond[i % 3],
                       angle[i % 3] + spread * flat(rng, -1.0, 1.0), turn);
    }
    memcpy(q->n_a, x[0], sizeof q->n_a), memcpy(q->ca_a, x[1], sizeof q->ca_a);
    memcpy(q->ca_c, x[c + 1], sizeof q->ca_c);
    memcpy(q->c_c, x[c + 2], sizeof q->c_c);
    const int at[2][4] = {{1, 2, b, b + 1}, {b + 1, b + 2, c, c + 1}};
    for (int k = 0; k < 4; k++) {
        memcpy(q->piece1[k], x[at[0][k]], sizeof q->piece1[k]);
        memcpy(q->piece2[k], x[at[1][k]], sizeof q->piece2[k]);
    }
    q->angle[0] = tsr_vec3_angle(x[0], x[1], x[2]);
    q->angle[1] = tsr_vec3_angle(x[b], x[b + 1], x[b + 2]);
    q->angle[2] = tsr_vec3_angle(x[c], x[c + 1], x[c + 2]);
    const int inner[5] = {2, b, b + 1, b + 2, c};
    for (int k = 0; k < 5; k++)
        memcpy(own->x[k], x[inner[k]], sizeof own->x[k]);
}

/* Any seven atoms: pieces and angles as they come. */
static inline void any_problem(gsl_rng *rng, double size, tsr_closure *q,
                               placed *own)
{
    double x[9][3];
    for (int i = 0; i < 9; i++)
        for (int d = 0; d < 3; d++)
            x[i][d] = size * flat(rng, -1.0, 1.0);
    memcpy(q->n_a, x[0], sizeof q->n_a), memcpy(q->ca_a, x[1], sizeof q->ca_a);
    memcpy(q->ca_c, x[7], sizeof q->ca_c), memcpy(q->c_c, x[8], sizeof q->c_c);
    memcpy(q->piece1, x[1], sizeof q->piece1);
    memcpy(q->piece2, x[4], sizeof q->piece2);
    q->angle[0] = tsr_vec3_angle(x[0], x[1], x[2]);
    q->angle[1] = tsr_vec3_angle(x[3], x[4], x[5]);
    q->angle[2] = tsr_vec3_angle(x[6], x[7], x[8]);
    memcpy(own->x, x[2], sizeof own->x);
}

static inline void random_motion(gsl_rng *rng, tsr_motion *m)
{
    double from[3], to[3];
    for (int d = 0; d < 3; d++)
        from[d] = flat(rng, -5.0, 5.0), to[d] = flat(rng, -5.0, 5.0);
    tsr_motion_about(m, from, to, flat(rng, -TSR_PI, TSR_PI));
}

static inline void place_solution(const tsr_closure *q,
                                  const tsr_closure_solution *s, placed *p)
{
    const double *from[5] = {q->piece1[1], q->piece1[2], q->piece1[3],
                             q->piece2[1], q->piece2[2]};
    for (int k = 0; k < 5; k++) {
        memcpy(p->x[k], from[k], sizeof p->x[k]);
        tsr_motion_apply(k < 3 ? &s->piece1 : &s->piece2, p->x[k]);
    }
}

static inline double apart(const placed *a, const placed *b)
{
    double largest = 0.0;
    for (int k = 0; k < 5; k++)
        largest = fmax(largest, tsr_vec3_distance(a->x[k], b->x[k]));
    return largest;
}

/* ---- the search ---- */

/* Places the fourth atom of a piece from three by distance, angle, torsion. */
typedef struct {
    double bond, angle, torsion;
} internal;

static inline internal internal_of(const double a[3], const double b[3],
                                   const double c[3], const double d[3])
{
    return (internal){tsr_vec3_distance(c, d), tsr_vec3_angle(b, c, d),
                      tsr_vec3_torsion(a, b, c, d)};
}

/* Turns about axis b-c that bring `point` to the distance r from `target`, or
 * to the angle with it (the distance says it); 0 or 2, ascending branch. */
static inline int turns(const double b[3], const double c[3],
                        const double point[3], const double target[3],
                        double r2, double turn[2])
{
    double u[3], p[3], t[3], pxu[3];
    tsr_vec3_sub(u, c, b);
    tsr_vec3_normalize(u);
    tsr_vec3_sub(p, point, c);
    tsr_vec3_sub(t, target, c);
    double pu = tsr_vec3_dot(p, u), tu = tsr_vec3_dot(t, u);
    double constant = tsr_vec3_dot(p, p) + tsr_vec3_dot(t, t) - r2;
    for (int d = 0; d < 3; d++)
        p[d] -= pu * u[d];
    tsr_vec3_cross(pxu, u, p);
    /* |p - t|^2 = r2:  x cos + y sin = z */
    double x = tsr_vec3_dot(p, t), y = tsr_vec3_dot(pxu, t);
    double z = 0.5 * constant - pu * tu, amplitude = sqrt(x * x + y * y);
    if (!(fabs(z) <= amplitude))
        return 0;
    double middle = atan2(y, x), half = acos(z / amplitude);
    turn[0] = middle - half, turn[1] = middle + half;
    return 1;
}

/* The angle at c that is left over, less the one wanted; NaN where the branch
 * does not exist there. */
static inline double left_over(const tsr_closure *q, double phi, int branch,
                               placed *out)
{
    placed p;
    tsr_motion m;
    double turn[2], behind[3] = {0.3, -0.7, 0.6};
    double(*x)[3] = p.x;
    for (int d = 0; d < 3; d++)
        behind[d] += q->n_a[d];
    tsr_place_atom(x[0], behind, q->n_a, q->ca_a,
                   tsr_vec3_distance(q->piece1[0], q->piece1[1]), q->angle[0],
                   phi);
    /* piece 1 about CA_a-C_a */
    internal n = {tsr_vec3_distance(q->piece1[1], q->piece1[2]),
                  tsr_vec3_angle(q->piece1[0], q->piece1[1], q->piece1[2]),
                  0.0};
    internal ca =
        internal_of(q->piece1[0], q->piece1[1], q->piece1[2], q->piece1[3]);
    tsr_place_atom(x[1], q->n_a, q->ca_a, x[0], n.bond, n.angle, 0.0);
    tsr_place_atom(x[2], q->ca_a, x[0], x[1], ca.bond, ca.angle, ca.torsion);
    double l2 = tsr_vec3_distance2(q->piece2[0], q->piece2[3]);
    if (!turns(q->ca_a, x[0], x[2], q->ca_c, l2, turn))
        return (double)NAN;
    tsr_motion_about(&m, q->ca_a, x[0], turn[branch & 1]);
    tsr_motion_apply(&m, x[1]);
    tsr_motion_apply(&m, x[2]);
    /* piece 2 onto CA_b-CA_c, then about it */
    double aside[3] = {0.0, 0.0, 1.0};
    internal c = {tsr_vec3_distance(q->piece2[0], q->piece2[1]),
                  tsr_vec3_angle(q->piece2[3], q->piece2[0], q->piece2[1]),
                  0.0};
    internal nc =
        internal_of(q->piece2[1], q->piece2[0], q->piece2[3], q->piece2[2]);
    for (int d = 0; d < 3; d++)
        aside[d] += q->ca_c[d];
    tsr_place_atom(x[3], aside, q->ca_c, x[2], c.bond, c.angle, 0.0);
    tsr_place_atom(x[4], x[3], x[2], q->ca_c, nc.bond, nc.angle, nc.torsion);
    double nb = tsr_vec3_distance(q->piece1[2], q->piece1[3]);
    double r2 =
        nb * nb + c.bond * c.bond - 2.0 * nb * c.bond * cos(q->angle[1]);
    if (!turns(q->ca_c, x[2], x[3], x[1], r2, turn))
        return (double)NAN;
    tsr_motion_about(&m, q->ca_c, x[2], turn[branch >> 1]);
    tsr_motion_apply(&m, x[3]);
    tsr_motion_apply(&m, x[4]);
    if (out != NULL)
        *out = p;
    return tsr_vec3_angle(x[4], q->ca_c, q->c_c) - q->angle[2];
}

typedef struct {
    int n, doubtful; /* doubtful: two solutions that may be one or none */
    placed at[64];
    double phi[64];
} scan_result;

static inline void scan_add(const tsr_closure *q, double phi, int branch,
                            scan_result *r)
{
    placed p;
    if (!(fabs(left_over(q, phi, branch, &p)) < 1e-6))
        return;
    for (int i = 0; i < r->n; i++)
        if (apart(&r->at[i], &p) < 1e-7)
            return;
    if (r->n < 64)
        r->phi[r->n] = phi, r->at[r->n++] = p;
}

static inline void scan_bisect(const tsr_closure *q, double low, double high,
                               double f_low, int branch, scan_result *r)
{
    for (int i = 0; i < 60; i++) {
        double t = 0.5 * (low + high), f = left_over(q, t, branch, NULL);
        if ((f < 0.0) == (f_low < 0.0))
            low = t;
        else
            high = t;
    }
    scan_add(q, 0.5 * (low + high), branch, r);
}

/* Between two values of one sign: looks for an excursion to the other. */
static inline void scan_dip(const tsr_closure *q, double low, double high,
                            double f_low, int branch, scan_result *r)
{
    const double g = 0.6180339887498949;
    double sign = f_low < 0.0 ? -1.0 : 1.0, from = low, to = high;
    double a = high - g * (high - low), b = low + g * (high - low);
    double fa = sign * left_over(q, a, branch, NULL);
    double fb = sign * left_over(q, b, branch, NULL);
    for (int i = 0; i < 80 && fa > 0.0 && fb > 0.0; i++) {
        if (fa < fb) {
            high = b, b = a, fb = fa, a = high - g * (high - low);
            fa = sign * left_over(q, a, branch, NULL);
        } else {
            low = a, a = b, fa = fb, b = low + g * (high - low);
            fb = sign * left_over(q, b, branch, NULL);
        }
    }
    if (fmin(fa, fb) > 1e-11)
        return;
    double dip = fa < fb ? a : b;
    if (fmin(fa, fb) > -1e-11)
        r->doubtful++;
    scan_bisect(q, from, dip, f_low, branch, r);
    scan_bisect(q, dip, to, -f_low, branch, r);
}

/* The last value for which the branch exists, between `in` and `out`. */
static inline double scan_end(const tsr_closure *q, double in, double out,
                              int branch)
{
    for (int i = 0; i < 60; i++) {
        double t = 0.5 * (in + out);
        if (isnan(left_over(q, t, branch, NULL)))
            out = t;
        else
            in = t;
    }
    return in;
}

/* a and b: what is left over at `low` and `high`. */
static inline void scan_between(const tsr_closure *q, double low, double a,
                                double high, double b, int branch,
                                scan_result *r)
{
    if (isnan(a) && isnan(b))
        return;
    if (isnan(a))
        low = scan_end(q, high, low, branch);
    if (isnan(b))
        high = scan_end(q, low, high, branch);
    double step = (high - low) / 8.0, x[9], f[9];
    int ends = isnan(a) || isnan(b); /* a square root there */
    if (!ends) {
        if ((a < 0.0) != (b < 0.0))
            scan_bisect(q, low, high, a, branch, r);
        return;
    }
    for (int i = 0; i <= 8; i++) {
        double u = i / 8.0;
        x[i] = isnan(a) ? low + 8.0 * step * u * u
                        : high - 8.0 * step * (1.0 - u) * (1.0 - u);
        f[i] = left_over(q, x[i], branch, NULL);
    }
    for (int i = 0; i < 8; i++)
        if ((f[i] < 0.0) != (f[i + 1] < 0.0))
            scan_bisect(q, x[i], x[i + 1], f[i], branch, r);
    for (int i = 1; i < 8; i++)
        if ((f[i] < 0.0) == (f[i - 1] < 0.0) &&
            (f[i] < 0.0) == (f[i + 1] < 0.0) && fabs(f[i]) <= fabs(f[i - 1]) &&
            fabs(f[i]) <= fabs(f[i + 1]))
            scan_dip(q, x[i - 1], x[i + 1], f[i], branch, r);
}

static inline void scan(const tsr_closure *q, int n_point, scan_result *r)
{
    double step = 2.0 * TSR_PI / n_point;
    r->n = r->doubtful = 0;
    for (int branch = 0; branch < 4; branch++) {
        double before = left_over(q, -step, branch, NULL);
        double at = left_over(q, 0.0, branch, NULL);
        for (int i = 0; i < n_point; i++) {
            double phi = i * step;
            double after = left_over(q, phi + step, branch, NULL);
            scan_between(q, phi, at, phi + step, after, branch, r);
            if ((at < 0.0) == (before < 0.0) && (at < 0.0) == (after < 0.0) &&
                fabs(at) <= fabs(before) && fabs(at) <= fabs(after))
                scan_dip(q, phi - step, phi + step, at, branch, r);
            before = at, at = after;
        }
    }
}

#endif
