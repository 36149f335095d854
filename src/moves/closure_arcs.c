/* Arcs of an angle within which both of two inequalities hold, from the ends of
 * each put in order around the circle. */
#include "moves/closure_arcs.h"

#include <math.h>

typedef tsr_cos_sin circle;

int tsr_closure_set_bounds(tsr_closure_bounds *b, double along, double aside,
                           double cosine, double offset, double p, double q)
{
    double sine = sqrt(fmax(0.0, 1.0 - cosine * cosine));
    b->p = p, b->q = q;
    b->lo = along * cosine - aside * sine - offset;
    b->hi = along * cosine + aside * sine - offset;
    double amplitude = sqrt(p * p + q * q);
    return b->lo <= amplitude && b->hi >= -amplitude;
}

static int is_within(const tsr_closure_bounds *b, circle t)
{
    double h = b->p * t.c - b->q * t.s;
    return h >= b->lo && h <= b->hi;
}

/* Where a bound is met; adds up to 4. */
static int add_ends(const tsr_closure_bounds *b, circle end[8], int n)
{
    double amplitude = sqrt(b->p * b->p + b->q * b->q);
    const double h[2] = {b->lo, b->hi};
    for (int i = 0; i < 2; i++) {
        if (!(fabs(h[i]) < amplitude))
            continue;
        double c = h[i] / amplitude, s = sqrt(1.0 - c * c);
        double cp = b->p / amplitude, sp = b->q / amplitude;
        end[n++] = (circle){c * cp + s * sp, s * cp - c * sp};
        end[n++] = (circle){c * cp - s * sp, -s * cp - c * sp};
    }
    return n;
}

/* Ascends with the angle in (-pi, pi]. */
static double order(circle t)
{
    return t.s >= 0.0 ? 1.0 - t.c : t.c - 1.0;
}

static void sort_ends(circle end[8], int n)
{
    for (int i = 1; i < n; i++) {
        circle t = end[i];
        int j = i;
        for (; j > 0 && order(end[j - 1]) > order(t); j--)
            end[j] = end[j - 1];
        end[j] = t;
    }
}

circle tsr_cos_sin_half(circle t)
{
    if (t.c > 0.0) {
        double c = sqrt(0.5 * (1.0 + t.c));
        return (circle){c, 0.5 * t.s / c};
    }
    double s = sqrt(0.5 * (1.0 - t.c));
    return t.s < 0.0 ? (circle){-0.5 * t.s / s, -s}
                     : (circle){0.5 * t.s / s, s};
}

circle tsr_cos_sin_twice(circle t)
{
    return (circle){t.c * t.c - t.s * t.s, 2.0 * t.c * t.s};
}

circle tsr_cos_sin_unit(double c, double s)
{
    double f = 1.0 / sqrt(c * c + s * s);
    return (circle){c * f, s * f};
}

/* The middle of an arc shorter than pi. */
static circle middle(circle u, circle v)
{
    double c = u.c + v.c, s = u.s + v.s;
    if (c * c + s * s > 1.0)
        return tsr_cos_sin_unit(c, s);
    return tsr_cos_sin_unit(v.s - u.s, u.c - v.c);
}

/* Splits an arc until it is short; adds a margin at its ends, where a root may
 * lie to rounding. */
static int add_arcs(circle u, circle v, tsr_closure_arc arc[TSR_MAX_ARC], int n)
{
    const double margin = 1e-4;
    if (u.c * v.c + u.s * v.s < 0.45) {
        circle w = middle(u, v);
        return add_arcs(w, v, arc, add_arcs(u, w, arc, n));
    }
    if (n == TSR_MAX_ARC)
        return n;
    arc[n].from = tsr_cos_sin_unit(u.c + margin * u.s, u.s - margin * u.c);
    arc[n].to = tsr_cos_sin_unit(v.c - margin * v.s, v.s + margin * v.c);
    return n + 1;
}

int tsr_closure_arcs(const tsr_closure_bounds limit[2],
                     tsr_closure_arc arc[TSR_MAX_ARC])
{
    circle end[8];
    int n_arc = 0, n = add_ends(&limit[1], end, add_ends(&limit[0], end, 0));
    if (n == 0) { /* all or nothing */
        end[0] = (circle){1.0, 0.0}, end[1] = (circle){-1.0, 0.0};
        n = 2;
    }
    sort_ends(end, n);
    for (int i = 0; i < n; i++) {
        circle u = tsr_cos_sin_half(end[i]);
        circle v = tsr_cos_sin_half(end[(i + 1) % n]);
        if (u.c * v.s - u.s * v.c < 0.0)
            v.c = -v.c, v.s = -v.s;
        circle at = tsr_cos_sin_twice(middle(u, v));
        if (is_within(&limit[0], at) && is_within(&limit[1], at))
            n_arc = add_arcs(u, v, arc, n_arc);
    }
    return n_arc;
}
