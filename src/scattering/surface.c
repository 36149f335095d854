/* The part of each atom's sphere that no other sphere covers, exactly: the same
 * whichever way the molecule is turned, as points on the spheres are not.
 *
 * Seen from the centre of its sphere, every neighbour covers a cap, n a > h
 * with the axis a towards it. What is left is bounded by arcs of the caps'
 * circles. Its solid angle is the sum over the arcs of what lies between an arc
 * and a point that is the same for all, and its vector area, the integral of n
 * over it, is half the integral of n x dn along the arcs (Stokes). Neither asks
 * for the corners or for the number of pieces: an arc that rounding loses has
 * no length, and costs nothing. The idea of arcs: Richmond 1984, J. Mol. Biol.
 * 178, 63. */
#include "scattering/atom_model.h"

#include "core/vec3.h"
#include "model/cell_list.h"

#include <stdlib.h>
#include <string.h>

static const double pi = 3.14159265358979323846;

/* What a neighbour covers of the unit sphere. */
typedef struct {
    double axis[3];
    double h, s; /* cosine and sine of the cap's half angle */
} cap;

typedef struct {
    double from, to; /* rad, 0 to 2 pi */
} interval;

/* A circle's plane: axis, u and v are right-handed; n(t) = h axis + s e(t),
 * e = u cos t + v sin t. */
typedef struct {
    const cap *c;
    double u[3], v[3];
} circle;

typedef struct {
    cap *caps;         /* [n] */
    interval *covered; /* [n + 2] of one circle */
    int *near;         /* [n] */
    /* Sums over arcs, in the caps' own sense of rotation. */
    double angle, vector[3];
    int n_arc;
} scratch;

/* ---- the caps of one sphere ---- */

static int by_height(const void *a, const void *b)
{
    double x = ((const cap *)a)->h, y = ((const cap *)b)->h;
    return (x > y) - (x < y);
}

/* Leaves out, of caps in their order, those inside another. */
static int drop_inner(cap *caps, int n)
{
    int n_left = 0;
    for (int j = 0; j < n; j++) {
        int is_inside = 0;
        for (int k = 0; k < n_left && !is_inside; k++)
            is_inside = tsr_vec3_dot(caps[j].axis, caps[k].axis) >=
                        caps[j].h * caps[k].h + caps[j].s * caps[k].s;
        if (!is_inside)
            caps[n_left++] = caps[j];
    }
    return n_left;
}

/* Those of spheres that reach sphere i, the largest first, since they cover
 * most of the others; -1 where one holds all of it. Of two spheres that are the
 * same the first holds the other. */
static int find_caps(int i, int n_near, const double (*xyz)[3],
                     const double *radius, double probe, scratch *s)
{
    int n = 0;
    double own = radius[i] + probe;
    for (int k = 0; k < n_near; k++) {
        int j = s->near[k];
        double other = radius[j] + probe;
        double d = tsr_vec3_distance(xyz[i], xyz[j]);
        if (j == i || d >= own + other || d + other < own ||
            (d + other <= own && j > i))
            continue;
        if (d + own <= other)
            return -1;
        cap *c = &s->caps[n];
        c->h = fmin((own * own + d * d - other * other) / (2.0 * own * d), 1.0);
        if (c->h <= -1.0)
            return -1;
        c->s = sqrt(1.0 - c->h * c->h);
        for (int x = 0; x < 3; x++)
            c->axis[x] = (xyz[j][x] - xyz[i][x]) / d;
        n += c->s > 0.0;
    }
    qsort(s->caps, (size_t)n, sizeof *s->caps, by_height);
    return drop_inner(s->caps, n);
}

/* ---- one circle ---- */

static circle plane_of(const cap *c)
{
    circle p = {.c = c};
    int least = 0;
    for (int x = 1; x < 3; x++)
        if (fabs(c->axis[x]) < fabs(c->axis[least]))
            least = x;
    double e[3] = {0.0, 0.0, 0.0};
    e[least] = 1.0;
    tsr_vec3_cross(p.u, c->axis, e);
    tsr_vec3_normalize(p.u);
    tsr_vec3_cross(p.v, c->axis, p.u);
    return p;
}

/* Adds one to a list in order, of intervals that do not touch. */
static int merge(interval *list, int n, double from, double to)
{
    int first = 0, last;
    while (first < n && list[first].to < from)
        first++;
    for (last = first; last < n && list[last].from <= to; last++) {
        from = fmin(from, list[last].from);
        to = fmax(to, list[last].to);
    }
    memmove(list + first + 1, list + last, (size_t)(n - last) * sizeof *list);
    list[first] = (interval){from, to};
    return n + 1 - (last - first);
}

static int add_interval(interval *list, int n, double from, double to)
{
    double turn = 2.0 * pi * floor(from / (2.0 * pi));
    from -= turn, to -= turn;
    if (to > 2.0 * pi) {
        n = merge(list, n, 0.0, to - 2.0 * pi);
        to = 2.0 * pi;
    }
    return merge(list, n, from, to);
}

/* Where cap k covers the circle of cap j. Returns -1 where all of it, else how
 * many intervals there are now. */
static int cover(const circle *p, int j, int k, const cap *other,
                 interval *list, int n)
{
    double cosine = tsr_vec3_dot(p->c->axis, other->axis);
    double a = tsr_vec3_dot(p->u, other->axis);
    double b = tsr_vec3_dot(p->v, other->axis);
    double reach = p->c->s * sqrt(a * a + b * b);
    double missing = other->h - p->c->h * cosine;
    if (missing >= reach)
        return reach > 0.0 || missing > 0.0 || k > j ? n : -1;
    if (missing <= -reach)
        return -1;
    double half = acos(missing / reach), middle = atan2(b, a);
    return add_interval(list, n, middle - half, middle + half);
}

/* ---- arcs ---- */

/* Solid angle of the triangle a, b, c, signed (Van Oosterom & Strackee 1983,
 * IEEE Trans. Biomed. Eng. 30, 125). */
static double triangle(const double a[3], const double b[3], const double c[3])
{
    double x[3];
    tsr_vec3_cross(x, b, c);
    return 2.0 * atan2(tsr_vec3_dot(a, x), 1.0 + tsr_vec3_dot(a, b) +
                                               tsr_vec3_dot(b, c) +
                                               tsr_vec3_dot(c, a));
}

static void point_on(const circle *p, double t, double out[3])
{
    double x = p->c->s * cos(t), y = p->c->s * sin(t);
    for (int c = 0; c < 3; c++)
        out[c] = p->c->h * p->c->axis[c] + x * p->u[c] + y * p->v[c];
}

/* An arc of at most a quarter turn: its triangle with the common point, and the
 * sector of the cap less the triangle with the cap's axis. */
static double short_arc(const circle *p, double from, double to)
{
    static const double common[3] = {0.2672612419124244, -0.5345224838248488,
                                     0.8017837257372732};
    double a[3], b[3];
    point_on(p, from, a);
    point_on(p, to, b);
    return triangle(common, a, b) + (1.0 - p->c->h) * (to - from) -
           triangle(p->c->axis, a, b);
}

static void add_arc(const circle *p, double from, double to, scratch *s)
{
    int n = (int)ceil((to - from) / (0.5 * pi));
    double h = p->c->h, sine = p->c->s;
    double x = sin(to) - sin(from), y = cos(from) - cos(to);
    for (int k = 0; k < n; k++)
        s->angle += short_arc(p, from + (to - from) * k / n,
                              from + (to - from) * (k + 1) / n);
    for (int c = 0; c < 3; c++)
        s->vector[c] += 0.5 * (sine * sine * (to - from) * p->c->axis[c] -
                               h * sine * (x * p->u[c] + y * p->v[c]));
    s->n_arc++;
}

/* The arcs of circle j that no other cap covers. */
static void follow(int j, int n, scratch *s)
{
    circle p = plane_of(&s->caps[j]);
    int n_covered = 0;
    for (int k = 0; k < n; k++) {
        if (k == j)
            continue;
        n_covered = cover(&p, j, k, &s->caps[k], s->covered, n_covered);
        if (n_covered < 0 || (n_covered == 1 && s->covered[0].from <= 0.0 &&
                              s->covered[0].to >= 2.0 * pi))
            return;
    }
    double end = 0.0;
    for (int k = 0; k < n_covered; k++) {
        if (s->covered[k].from > end)
            add_arc(&p, end, s->covered[k].from, s);
        end = s->covered[k].to;
    }
    if (end < 2.0 * pi)
        add_arc(&p, end, 2.0 * pi, s);
}

/* ---- one sphere ---- */

/* The sums are those of what the caps cover, up to whole spheres: where next to
 * nothing or next to all is covered, the caps' own areas tell which. */
static void finish(int n, const scratch *s, double *fraction, double *vector)
{
    double covered = s->angle / (4.0 * pi), most = 0.0;
    covered -= floor(covered);
    for (int k = 0; k < n; k++)
        most += 0.5 * (1.0 - s->caps[k].h);
    if (covered < 1e-9 && most >= 1.0)
        covered = 1.0;
    if (covered > 1.0 - 1e-9 && most < 1.0)
        covered = 0.0;
    *fraction = 1.0 - covered;
    for (int c = 0; c < 3; c++)
        vector[c] = -s->vector[c] / (4.0 * pi);
}

static void expose(int n, scratch *s, double *fraction, double vector[3])
{
    *fraction = n == 0;
    vector[0] = vector[1] = vector[2] = 0.0;
    s->angle = s->vector[0] = s->vector[1] = s->vector[2] = 0.0;
    s->n_arc = 0;
    for (int j = 0; j < n; j++)
        follow(j, n, s);
    if (s->n_arc > 0)
        finish(n, s, fraction, vector);
}

/* ---- all spheres ---- */

static tsr_status check(int n, const double *radius, double probe,
                        double *largest, tsr_err *err)
{
    *largest = 0.0;
    for (int i = 0; i < n; i++) {
        if (!(radius[i] >= 0.0) || !(probe >= 0.0) ||
            !(radius[i] + probe > 0.0))
            return tsr_fail(err, TSR_E_INTERNAL, "surface: radius %g, probe %g",
                            radius[i], probe);
        *largest = fmax(*largest, radius[i]);
    }
    return TSR_OK;
}

tsr_status tsr_surface_exposed(int n, const double (*xyz)[3],
                               const double *radius_ang, double probe_ang,
                               double *fraction, double (*vector)[3],
                               tsr_err *err)
{
    double largest;
    TSR_TRY(check(n, radius_ang, probe_ang, &largest, err));
    double reach = 2.0 * (largest + probe_ang), own[3];
    size_t size = (size_t)n;
    tsr_status status = TSR_OK;
    tsr_cell_list *cells = tsr_cell_list_new(n, xyz, reach);
    scratch s = {.caps = calloc(size, sizeof *s.caps),
                 .covered = calloc(size + 2, sizeof *s.covered),
                 .near = calloc(size, sizeof *s.near)};
    if (cells == NULL || s.caps == NULL || s.covered == NULL || s.near == NULL)
        status = tsr_fail(err, TSR_E_NOMEM, "out of memory for a surface");
    for (int i = 0; i < n && status == TSR_OK; i++) {
        int found = tsr_cell_list_near(cells, xyz[i], reach, n, s.near);
        int n_cap = find_caps(i, found, xyz, radius_ang, probe_ang, &s);
        fraction[i] = 0.0;
        own[0] = own[1] = own[2] = 0.0;
        if (n_cap >= 0)
            expose(n_cap, &s, &fraction[i], own);
        if (vector != NULL)
            tsr_vec3_copy(vector[i], own);
    }
    tsr_cell_list_free(cells);
    free(s.caps);
    free(s.covered);
    free(s.near);
    return status;
}
