/* The part of each atom's sphere that no other sphere covers, exactly: the same
 * whichever way the molecule is turned, as points on the spheres are not.
 *
 * Most spheres of a large molecule are buried, most of these by the spheres
 * nearby alone, which are tried first. */
#include "scattering/surface.h"

#include "core/clones.h"
#include "core/parallel.h"
#include "core/pool.h"
#include "core/vec3.h"
#include "molecule/points.h"

#include <math.h>
#include <string.h>

static const double pi = 3.14159265358979323846;

/* ---- caps ----
 *
 * Seen from the centre of its sphere, every neighbour covers a cap, n a > h
 * with the axis a towards it. What is left is bounded by arcs of the caps'
 * circles. Its solid angle is the sum over the arcs of what lies between an arc
 * and a point that is the same for all, and its vector area, the integral of n
 * over it, is half the integral of n x dn along the arcs (Stokes). Neither asks
 * for the corners or for the number of pieces: an arc that rounding loses has
 * no length, and costs nothing. The idea of arcs: Richmond 1984, J. Mol. Biol.
 * 178, 63. */

#define ALL 8.0
#define NONE (-1.0)

enum { LANES = 8 };

/* Of a circle, in pseudo-angles. */
typedef struct {
    double from, to;
} interval;

/* n axis > h for n on the unit sphere; s = sqrt(1 - h^2). */
typedef struct {
    double axis[3], h, s;
} cap;

/* A circle's plane: axis, u and v are right-handed; n(t) = h axis + s e(t),
 * e = u cos t + v sin t. */
typedef struct {
    const cap *c;
    double u[3], v[3];
} circle;

/* Caps, each property in a row of its own, n rounded up to LANES with caps that
 * cover nothing; and what they cover of the circle that is looked at, in
 * pseudo-angles. */
typedef struct {
    int n;
    double *x, *y, *z, *h;
    double *from, *length;
} caps_row;

/* What a thread needs for one sphere. */
typedef struct {
    int *near;         /* [n] spheres */
    cap *caps;         /* [n] the largest first, none within another */
    interval *covered; /* [n + 2] of one circle */
    caps_row row;
    /* Sums over arcs, in the caps' own sense of rotation. */
    double angle, vector[3];
    int n_arc;
} scratch;

static void fill_row(int n, scratch *s)
{
    caps_row *r = &s->row;
    r->n = (n + LANES - 1) / LANES * LANES;
    for (int k = 0; k < r->n; k++) {
        const cap *c = &s->caps[k < n ? k : 0];
        r->x[k] = c->axis[0];
        r->y[k] = c->axis[1];
        r->z[k] = c->axis[2];
        r->h[k] = k < n ? c->h : 2.0;
    }
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

/* What stands for the angle of a direction: it grows with it from 0 to 4, a
 * quarter turn is 1, and it takes a division where the angle takes an arc
 * tangent. Most intervals are covered in the end, and nobody asks for theirs.
 */
TSR_INLINE double pseudo_angle(double x, double y)
{
    double share = y / (fabs(x) + fabs(y));
    double turned = x >= 0.0 ? share : 2.0 - share;
    return turned >= 0.0 ? turned : 4.0 + turned;
}

static double angle_of(double pseudo)
{
    double x = pseudo < 2.0 ? 1.0 - pseudo : pseudo - 3.0;
    double y = pseudo < 1.0   ? pseudo
               : pseudo < 3.0 ? 2.0 - pseudo
                              : pseudo - 4.0;
    double angle = atan2(y, x);
    return angle < 0.0 ? angle + 2.0 * pi : angle;
}

/* What each cap covers of a circle: an interval about its direction (a, b) as
 * seen there, its beginning and its length; ALL, and less than 0 where nothing
 * is covered. One that rounding turns around is nothing, or all. */
TSR_CLONES static void cover(int n, const double *restrict x,
                             const double *restrict y, const double *restrict z,
                             const double *restrict h, const double *frame,
                             double own_h, double own_s, double *restrict from,
                             double *restrict length)
{
    double ax = frame[0], ay = frame[1], az = frame[2], ux = frame[3],
           uy = frame[4], uz = frame[5], vx = frame[6], vy = frame[7],
           vz = frame[8];
    for (int k = 0; k < n; k++) {
        double a = ux * x[k] + uy * y[k] + uz * z[k];
        double b = vx * x[k] + vy * y[k] + vz * z[k];
        double along = ax * x[k] + ay * y[k] + az * z[k];
        double reach = own_s * sqrt(a * a + b * b);
        double missing = h[k] - own_h * along;
        double c = missing / reach, sine2 = 1.0 - c * c;
        double s = sqrt(sine2 > 0.0 ? sine2 : 0.0);
        double f = pseudo_angle(a * c + b * s, b * c - a * s);
        double t = pseudo_angle(a * c - b * s, b * c + a * s);
        double l = t - f + (t < f ? 4.0 : 0.0);
        double sound = c < 0.0 ? (l < 2.0 ? ALL : l) : (l > 2.0 ? NONE : l);
        double partial = missing >= reach ? NONE : sound;
        from[k] = f;
        length[k] = missing <= -reach ? ALL : partial;
    }
}

/* How far at most an interval goes on from `at`. */
TSR_CLONES static double farthest(int n, double at, const double *restrict from,
                                  const double *restrict length)
{
    double most[LANES] = {0.0}, result = 0.0;
    for (int k = 0; k < n; k += LANES)
        for (int l = 0; l < LANES; l++) {
            double since = at - from[k + l];
            double step = length[k + l] - (since < 0.0 ? since + 4.0 : since);
            most[l] = step > most[l] ? step : most[l];
        }
    for (int l = 0; l < LANES; l++)
        result = most[l] > result ? most[l] : result;
    return result;
}

/* Whether the caps but j cover all of its circle: from 0 on, each time by the
 * interval that goes farthest. */
static int is_covered(const circle *p, int j, scratch *s)
{
    caps_row *r = &s->row;
    double frame[9], at = 0.0, done = 0.0;
    memcpy(frame, p->c->axis, 3 * sizeof *frame);
    memcpy(frame + 3, p->u, 3 * sizeof *frame);
    memcpy(frame + 6, p->v, 3 * sizeof *frame);
    cover(r->n, r->x, r->y, r->z, r->h, frame, p->c->h, p->c->s, r->from,
          r->length);
    r->length[j] = NONE;
    while (done < 4.0) {
        double step = farthest(r->n, at, r->from, r->length);
        if (step <= 0.0)
            return 0;
        done += step;
        at += step;
        at -= at >= 4.0 ? 4.0 : 0.0;
    }
    return 1;
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
    const caps_row *r = &s->row;
    int n_covered = 0;
    double end = 0.0;
    if (is_covered(&p, j, s))
        return;
    for (int k = 0; k < n; k++)
        if (r->length[k] >= 0.0) {
            const double from = r->from[k], to = from + r->length[k];
            if (to > 4.0)
                n_covered = merge(s->covered, n_covered, 0.0, to - 4.0);
            n_covered = merge(s->covered, n_covered, from, fmin(to, 4.0));
        }
    for (int k = 0; k < n_covered; k++) {
        if (s->covered[k].from > end)
            add_arc(&p, angle_of(end), angle_of(s->covered[k].from), s);
        end = s->covered[k].to;
    }
    if (end < 4.0)
        add_arc(&p, angle_of(end), 2.0 * pi, s);
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

/* What n caps leave of a sphere: its share, and the integral of the unit vector
 * over it, over 4 pi. */
static void find_rest(int n, scratch *s, double *fraction, double vector[3])
{
    *fraction = n == 0;
    vector[0] = vector[1] = vector[2] = 0.0;
    s->angle = 0.0;
    s->vector[0] = s->vector[1] = s->vector[2] = 0.0;
    s->n_arc = 0;
    fill_row(n, s);
    for (int j = 0; j < n; j++)
        follow(j, n, s);
    if (s->n_arc > 0)
        finish(n, s, fraction, vector);
}

/* ---- the caps of one sphere ---- */

enum { PART = 256 };                  /* spheres a part of the work */
static const double near_share = 0.5; /* of the largest reach: nearby */

typedef struct {
    int n;
    const double (*xyz)[3];
    const double *radius;
    double probe, reach;
    tsr_cell_list *cells;
    double *fraction, (*vector)[3];
    scratch *scratch; /* [threads] */
} surface;

static int is_within(const cap *a, const cap *larger)
{
    return tsr_vec3_dot(a->axis, larger->axis) >=
           a->h * larger->h + a->s * larger->s;
}

/* Into a list in order, the largest first, of which none is within another. */
static int insert(const cap *c, cap *list, int n)
{
    int at = n;
    for (; at > 0 && list[at - 1].h > c->h; at--)
        ;
    for (int k = 0; k < at; k++)
        if (is_within(c, &list[k]))
            return n;
    memmove(list + at + 1, list + at, (size_t)(n - at) * sizeof *list);
    list[at] = *c;
    int n_left = at + 1;
    for (int k = at + 1; k <= n; k++)
        if (!is_within(&list[k], c))
            list[n_left++] = list[k];
    return n_left;
}

/* Caps of the spheres that cut sphere i, of those within `reach`; returns how
 * many, or -1 where one holds all of it: of two that are the same the first
 * holds the other. */
static int find_caps(const surface *f, int i, double reach, scratch *s)
{
    const double *at = f->xyz[i], own = f->radius[i] + f->probe;
    const int found = tsr_cell_list_near(f->cells, at, reach, f->n, s->near);
    int n = 0;
    for (int k = 0; k < found; k++) {
        const int j = s->near[k];
        const double other = f->radius[j] + f->probe;
        cap c;
        tsr_vec3_sub(c.axis, f->xyz[j], at);
        const double d2 = tsr_vec3_dot(c.axis, c.axis), d = sqrt(d2);
        if (d2 == 0.0 && j != i &&
            (other > own || (f->radius[j] == f->radius[i] && j < i)))
            return -1;
        if (d2 == 0.0)
            continue;
        c.h = (own * own + d2 - other * other) / (2.0 * own * d);
        if (c.h <= -1.0)
            return -1;
        if (c.h >= 1.0)
            continue;
        c.s = sqrt(1.0 - c.h * c.h);
        for (int x = 0; x < 3; x++)
            c.axis[x] /= d;
        if (c.s > 0.0)
            n = insert(&c, s->caps, n);
    }
    return n;
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

static void expose_part(void *context, int part, int thread)
{
    const surface *f = context;
    scratch *s = &f->scratch[thread];
    for (int i = part * PART; i < f->n && i < (part + 1) * PART; i++) {
        double vector[3] = {0.0, 0.0, 0.0}, rest = 1.0;
        for (int pass = 0; pass < 2 && rest > 0.0; pass++) {
            const double share = pass == 0 ? near_share : 1.0;
            const int n = find_caps(f, i, share * f->reach, s);
            rest = 0.0;
            if (n >= 0)
                find_rest(n, s, &rest, vector);
        }
        f->fraction[i] = rest;
        if (f->vector != NULL)
            tsr_vec3_copy(f->vector[i], vector);
    }
}

static void scratch_make(size_t n, tsr_pool *pool, scratch *s)
{
    const size_t row = n + LANES;
    double **part[] = {&s->row.x, &s->row.y,    &s->row.z,
                       &s->row.h, &s->row.from, &s->row.length};
    tsr_pool_array(pool, s->near, n);
    tsr_pool_array(pool, s->caps, n);
    tsr_pool_array(pool, s->covered, n + 2);
    for (size_t i = 0; i < 6; i++)
        tsr_pool_array(pool, *part[i], row);
}

tsr_status tsr_surface_exposed(int n, const double (*xyz)[3],
                               const double *radius_ang, double probe_ang,
                               double *fraction, double (*vector)[3],
                               tsr_err *err)
{
    double largest;
    TSR_TRY(check(n, radius_ang, probe_ang, &largest, err));
    int n_part = (n + PART - 1) / PART, n_thread = tsr_parallel_processors();
    n_thread = n_thread > n_part ? n_part : n_thread;
    double reach = 2.0 * (largest + probe_ang);
    tsr_pool pool = {0};
    surface f = {.n = n,
                 .xyz = xyz,
                 .radius = radius_ang,
                 .probe = probe_ang,
                 .reach = reach,
                 .fraction = fraction,
                 .vector = vector};
    tsr_pool_array(&pool, f.scratch, n_thread);
    for (int t = 0; t < n_thread && f.scratch != NULL; t++)
        scratch_make((size_t)n, &pool, &f.scratch[t]);
    tsr_status status = tsr_pool_check(&pool, err);
    TSR_THEN(status, tsr_cell_list_new(&pool, n, xyz, near_share * reach,
                                       &f.cells, err));
    if (status == TSR_OK)
        tsr_parallel_run(n_part, n_thread, expose_part, &f);
    tsr_pool_clear(&pool);
    return status;
}
