/* The exposed part of each atom's sphere, computed exactly, so that it does not
 * depend on the orientation of the molecule. A sum over sample points on the
 * spheres would depend on this orientation.
 *
 * Most spheres of a large molecule are buried, and most caps on the others do
 * not bound the exposed part. A division of the sphere into patches decides
 * both without circles. A cap that extends far enough beyond the centre of a
 * patch covers the whole patch. The exposed part lies in patches that no cap
 * covers. Caps that reach none of these patches do not bound the exposed part.
 * Only the remaining caps enter the exact sums over arcs. */
#include "scattering/surface.h"

#include "core/clones.h"
#include "core/parallel.h"
#include "core/vec3.h"
#include "molecule/points.h"

#include <math.h>
#include <string.h>

/* ---- caps ----
 *
 * Seen from the centre of its sphere, every neighbour covers a cap n . a > h
 * whose axis a points to the neighbour. The exposed part is bounded by arcs of
 * the caps' circles. Its solid angle is the sum over the arcs of the area
 * between the arc and a common point. Its vector area, the integral of n, is
 * half the integral of n x dn along the arcs (Stokes). Neither sum needs the
 * corners or the number of connected pieces, so an arc of zero length that
 * rounding loses does no harm. The method of arcs: Richmond 1984, J. Mol. Biol.
 * 178, 63. */

/* Lengths of covered intervals: the whole circle, and no part of the circle. */
#define ALL 8.0
#define NONE (-1.0)

enum { LANES = 8 };

/* The cap of unit vectors n with n . axis > h. */
typedef struct {
    double axis[3];
    double h, s;  /* cosine and sine of the angle between axis and edge */
    int is_bound; /* 1: the cap's circle may bound the uncovered part; 0: the
                     caller knows that other caps cover the whole circle */
} cap;

/* An interval on a circle, in pseudo-angles (pseudo_angle below). */
typedef struct {
    double from, to;
} interval;

/* A circle with a right-handed frame axis, u, v: n(t) = h axis + s e(t), e = u
 * cos t + v sin t. */
typedef struct {
    const cap *c;
    double u[3], v[3];
} circle;

/* The caps as separate arrays, padded to a multiple of LANES with caps that
 * cover nothing, and the interval of the current circle that each cap covers,
 * in pseudo-angles. */
typedef struct {
    int n;
    double *x, *y, *z, *h;
    double *from, *length;
} caps_row;

/* Working memory for up to n caps. */
typedef struct {
    interval *covered; /* [n + 2] covered intervals of one circle */
    caps_row row;
    /* Sums over arcs, in the direction of rotation of the caps. */
    double angle, vector[3];
    int n_arc;
} cap_workspace;

/* ---- memory ---- */

static cap_workspace *cap_workspace_new(int n, tsr_pool *pool)
{
    const size_t row = (size_t)n + LANES;
    cap_workspace *s = tsr_pool_new(pool, 1, sizeof *s);
    if (s == NULL)
        return NULL;
    tsr_pool_array(pool, s->covered, n + 2);
    tsr_pool_array(pool, s->row.x, 6 * row);
    if (s->covered == NULL || s->row.x == NULL)
        return NULL;
    double **part[] = {&s->row.y, &s->row.z, &s->row.h, &s->row.from,
                       &s->row.length};
    for (size_t i = 0; i < 5; i++)
        *part[i] = s->row.x + (i + 1) * row;
    return s;
}

static void copy_caps(int n, const cap *caps, cap_workspace *s)
{
    caps_row *r = &s->row;
    r->n = (n + LANES - 1) / LANES * LANES;
    for (int k = 0; k < r->n; k++) {
        const cap *c = &caps[k < n ? k : 0];
        r->x[k] = c->axis[0];
        r->y[k] = c->axis[1];
        r->z[k] = c->axis[2];
        r->h[k] = k < n ? c->h : 2.0;
    }
}

/* ---- one circle ---- */

/* The circle of a cap, with any u and v perpendicular to the axis. */
static circle circle_of(const cap *c)
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

/* Adds an interval to a sorted list of n disjoint intervals. Returns their new
 * number. */
static int merge_interval(interval *list, int n, double from, double to)
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

/* A monotonic substitute for the angle of a direction, from 0 to 4, where a
 * quarter turn is 1. It costs a division instead of an arc tangent. Angles are
 * needed only for the few intervals that remain uncovered. */
TSR_INLINE double pseudo_angle(double x, double y)
{
    double ratio = y / (fabs(x) + fabs(y));
    double turned = x >= 0.0 ? ratio : 2.0 - ratio;
    return turned >= 0.0 ? turned : 4.0 + turned;
}

static double angle_of(double pseudo)
{
    double x = pseudo < 2.0 ? 1.0 - pseudo : pseudo - 3.0;
    double y = pseudo < 1.0   ? pseudo
               : pseudo < 3.0 ? 2.0 - pseudo
                              : pseudo - 4.0;
    double angle = atan2(y, x);
    return angle < 0.0 ? angle + 2.0 * TSR_PI : angle;
}

static int add_interval(interval *list, int n, double from, double to)
{
    return to <= 4.0
               ? merge_interval(list, n, from, to)
               : merge_interval(list, merge_interval(list, n, 0.0, to - 4.0),
                                from, 4.0);
}

/* The interval of a circle that each cap covers, around its direction (a, b) in
 * the circle's frame: start and length. The length is ALL if the whole circle
 * is covered, and negative if nothing is. An interval that rounding inverts
 * becomes empty or whole. */
TSR_CLONES static void
covered_intervals(int n, const double *restrict x, const double *restrict y,
                  const double *restrict z, const double *restrict h,
                  const double *frame, double own_h, double own_s,
                  double *restrict from, double *restrict length)
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

/* Largest distance from `at` to the end of an interval that contains `at`. */
TSR_CLONES static double farthest_end(int n, double at,
                                      const double *restrict from,
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

/* 1 if the caps other than j cover the whole circle of cap j. Starts at 0 and
 * repeatedly jumps to the end of the interval that extends farthest. */
static int is_covered(const circle *p, int j, cap_workspace *s)
{
    caps_row *r = &s->row;
    double frame[9], at = 0.0, done = 0.0;
    memcpy(frame, p->c->axis, 3 * sizeof *frame);
    memcpy(frame + 3, p->u, 3 * sizeof *frame);
    memcpy(frame + 6, p->v, 3 * sizeof *frame);
    covered_intervals(r->n, r->x, r->y, r->z, r->h, frame, p->c->h, p->c->s,
                      r->from, r->length);
    r->length[j] = NONE;
    while (done < 4.0) {
        double step = farthest_end(r->n, at, r->from, r->length);
        if (step <= 0.0)
            return 0;
        done += step;
        at += step;
        at -= at >= 4.0 ? 4.0 : 0.0;
    }
    return 1;
}

/* ---- arcs ---- */

/* Signed solid angle of the triangle a, b, c (Van Oosterom & Strackee 1983,
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

/* An arc of at most a quarter turn: its triangle with the common point, plus
 * the sector of the cap minus the triangle with the cap's axis. */
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

static void add_arc(const circle *p, double from, double to, cap_workspace *s)
{
    int n = (int)ceil((to - from) / (0.5 * TSR_PI));
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

/* Adds the arcs of circle j that no other cap covers. */
static void add_circle_arcs(int j, int n, const cap *caps, cap_workspace *s)
{
    circle p = circle_of(&caps[j]);
    const caps_row *r = &s->row;
    int n_covered = 0;
    double end = 0.0;
    if (is_covered(&p, j, s))
        return;
    for (int k = 0; k < n; k++)
        if (r->length[k] >= 0.0)
            n_covered = add_interval(s->covered, n_covered, r->from[k],
                                     r->from[k] + r->length[k]);
    for (int k = 0; k < n_covered; k++) {
        if (s->covered[k].from > end)
            add_arc(&p, angle_of(end), angle_of(s->covered[k].from), s);
        end = s->covered[k].to;
    }
    if (end < 4.0)
        add_arc(&p, angle_of(end), 2.0 * TSR_PI, s);
}

/* ---- one sphere ---- */

/* The sums give the covered part up to a whole sphere. If almost nothing or
 * almost everything is covered, the total area of the caps decides between the
 * two. */
static void close_sums(int n, const cap *caps, const cap_workspace *s,
                       double *fraction, double *vector)
{
    double covered = s->angle / (4.0 * TSR_PI), most = 0.0;
    covered -= floor(covered);
    for (int k = 0; k < n; k++)
        most += 0.5 * (1.0 - caps[k].h);
    if (covered < 1e-9 && most >= 1.0)
        covered = 1.0;
    if (covered > 1.0 - 1e-9 && most < 1.0)
        covered = 0.0;
    *fraction = 1.0 - covered;
    for (int c = 0; c < 3; c++)
        vector[c] = -s->vector[c] / (4.0 * TSR_PI);
}

/* The part of the unit sphere that no cap covers. caps [n]: all different, h
 * within (-1, 1). fraction out: the uncovered fraction of the sphere. vector
 * out: the integral of n over the uncovered part, divided by 4 pi. */
static void cap_union_complement(int n, const cap *caps,
                                 cap_workspace *workspace, double *fraction,
                                 double vector[3])
{
    *fraction = n == 0;
    vector[0] = vector[1] = vector[2] = 0.0;
    workspace->angle = 0.0;
    workspace->vector[0] = workspace->vector[1] = workspace->vector[2] = 0.0;
    workspace->n_arc = 0;
    copy_caps(n, caps, workspace);
    for (int j = 0; j < n; j++)
        if (caps[j].is_bound)
            add_circle_arcs(j, n, caps, workspace);
    if (workspace->n_arc > 0)
        close_sums(n, caps, workspace, fraction, vector);
}

/* ---- spheres ---- */

static const double first_reach = 0.6; /* reach of the first pass, in units of
                                          the largest reach */
static const double slack = 1e-5;      /* for angles in single precision */

/* Number of bands, number of patches rounded up to whole vectors, vector
 * length, and spheres in one part of parallel work. */
enum { N_BAND = 12, N_PATCH = 192, WIDE = 16, PART = 256 };

/* Patches that cover the unit sphere. All points of a patch are within one
 * common angle of its centre. */
typedef struct {
    double cosine, sine; /* of this angle */
    float x[N_PATCH + WIDE], y[N_PATCH + WIDE], z[N_PATCH + WIDE];
} patches;

/* The neighbours of a sphere as separate arrays. First x, y, z are the position
 * and h is the radius, then the axis and the cosine of a cap. covers: the cap
 * covers a patch if the cosine between cap axis and patch centre is at least
 * this value. reaches: the cap intersects a patch if the cosine is at least
 * this value. */
typedef struct {
    double *x, *y, *z, *h;
    float *covers, *reaches;
} neighbours;

typedef struct {
    int *neighbour;     /* [n] */
    int *is_kept;       /* [n] */
    cap *caps;          /* [n] */
    neighbours row;     /* [n] */
    int owner[N_PATCH]; /* first cap that covers a patch, from 1; 0: no cap */
    cap_workspace *workspace;
} scratch;

typedef struct {
    int n;
    const double (*xyz)[3];
    const double *radius;
    double probe, reach;
    tsr_cell_list *cells;
    patches patches;
    double *fraction, (*vector)[3];
    scratch *scratch; /* [threads] */
} surface;

/* ---- patches ---- */

/* Cells of longitude in bands of latitude. The points of a cell farthest from
 * its centre are its corners. */
static void make_patches(patches *p)
{
    const double step = TSR_PI / N_BAND;
    double reach = 0.0;
    int at = 0;
    for (int b = 0; b < N_BAND; b++) {
        double middle = (b + 0.5) * step;
        int n = (int)ceil(2.0 * TSR_PI * sin(middle) / step);
        for (int edge = b; edge <= b + 1; edge++) {
            double c = cos(edge * step), s = sin(edge * step);
            reach = fmax(reach, acos(c * cos(middle) +
                                     s * sin(middle) * cos(TSR_PI / n)));
        }
        for (int k = 0; k < n && at < N_PATCH; k++, at++) {
            double turn = 2.0 * TSR_PI * k / n;
            p->x[at] = (float)(sin(middle) * cos(turn));
            p->y[at] = (float)(sin(middle) * sin(turn));
            p->z[at] = (float)cos(middle);
        }
    }
    for (; at < N_PATCH; at++)
        p->x[at] = p->x[0], p->y[at] = p->y[0], p->z[at] = p->z[0];
    p->cosine = cos(reach + slack);
    p->sine = sin(reach + slack);
}

/* For patches without an owner, finds the first of the caps `from` to n - 1
 * that covers each. Returns 1 if all patches have an owner. */
TSR_CLONES static int find_owners(const patches *restrict p, int from, int n,
                                  const neighbours *r, int *restrict owner)
{
    int n_open = 1;
    for (int k = from; k < n && n_open > 0; k++) {
        const float x = (float)r->x[k], y = (float)r->y[k], z = (float)r->z[k];
        const float covers = r->covers[k];
        for (int i = 0; i < N_PATCH; i++) {
            int is_in = x * p->x[i] + y * p->y[i] + z * p->z[i] >= covers;
            int own = is_in ? k + 1 : 0;
            owner[i] = owner[i] == 0 ? own : owner[i];
        }
        if (k % 8 < 7 && k < n - 1)
            continue;
        n_open = 0;
        for (int i = 0; i < N_PATCH; i++)
            n_open += owner[i] == 0;
    }
    return n_open == 0;
}

/* Centres of the patches without owner. Returns their number in vectors. */
static int open_patches(const patches *p, const int *owner, patches *open)
{
    int n = 0;
    for (int k = 0; k < N_PATCH; k++) {
        open->x[n] = p->x[k], open->y[n] = p->y[k], open->z[n] = p->z[k];
        n += owner[k] == 0;
    }
    for (int k = n; k < n + WIDE; k++) {
        open->x[k] = open->x[0];
        open->y[k] = open->y[0];
        open->z[k] = open->z[0];
    }
    return (n + WIDE - 1) / WIDE;
}

/* Sets is_kept for caps that reach at least one of the patches. */
TSR_CLONES static void find_reaching(const patches *restrict open, int n_wide,
                                     int from, int n, const neighbours *r,
                                     int *restrict is_kept)
{
    for (int k = from; k < n; k++) {
        const float x = (float)r->x[k], y = (float)r->y[k], z = (float)r->z[k];
        const float reaches = r->reaches[k];
        int any = 0;
        for (int at = 0; at < n_wide * WIDE; at += WIDE)
            for (int i = at; i < at + WIDE; i++)
                any |=
                    x * open->x[i] + y * open->y[i] + z * open->z[i] >= reaches;
        is_kept[k] = any;
    }
}

/* ---- the caps of one sphere ---- */

/* Appends the neighbours of sphere i beyond the distance `inner`, after the
 * first n rows. Returns the new number of rows, or -1 if a sphere with the same
 * centre contains sphere i. Of two identical spheres the first contains the
 * second. */
static int add_neighbours(const surface *f, int i, double inner, double reach,
                          int n, scratch *s)
{
    const double *at = f->xyz[i];
    int found = tsr_cell_list_within(f->cells, at, reach, f->n, s->neighbour);
    for (int k = 0; k < found; k++) {
        int j = s->neighbour[k];
        double d2 = tsr_vec3_distance2(f->xyz[j], at);
        if (d2 <= inner * inner && inner > 0.0)
            continue;
        if (d2 == 0.0 && j != i &&
            (f->radius[j] > f->radius[i] ||
             (f->radius[j] == f->radius[i] && j < i)))
            return -1;
        if (d2 == 0.0)
            continue;
        s->row.x[n] = f->xyz[j][0] - at[0];
        s->row.y[n] = f->xyz[j][1] - at[1];
        s->row.z[n] = f->xyz[j][2] - at[2];
        s->row.h[n++] = f->radius[j] + f->probe;
    }
    return n;
}

/* Converts rows from positions to caps on a sphere of radius `own`. cosine,
 * sine: of the patches' angle. A cap that covers nothing reaches no patch.
 * Returns 1 if a cap covers the whole sphere. */
TSR_CLONES static int make_caps(double own, double cosine, double sine, int n,
                                double *restrict x, double *restrict y,
                                double *restrict z, double *restrict h,
                                float *restrict covers, float *restrict reaches)
{
    int is_all = 0;
    for (int k = 0; k < n; k++) {
        double d2 = x[k] * x[k] + y[k] * y[k] + z[k] * z[k], d = sqrt(d2);
        double c = (own * own + d2 - h[k] * h[k]) / (2.0 * own * d);
        double sine2 = 1.0 - c * c;
        double s = sqrt(sine2 > 0.0 ? sine2 : 0.0);
        double within = c * cosine + s * sine, about = c * cosine - s * sine;
        x[k] /= d, y[k] /= d, z[k] /= d;
        h[k] = c;
        covers[k] = (float)(c < cosine ? within : 2.0);
        about = c > -cosine ? about : -2.0;
        reaches[k] = (float)(c < 1.0 ? about : 2.0);
        is_all |= c <= -1.0;
    }
    return is_all;
}

static int is_within(const cap *a, const cap *larger)
{
    return tsr_vec3_dot(a->axis, larger->axis) >=
           a->h * larger->h + a->s * larger->s;
}

/* Inserts a cap into a list sorted by size, largest first, in which no cap is
 * within another. */
static int insert_cap(const cap *c, cap *list, int n)
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

/* The caps that matter: those that reach an open patch, which may bound the
 * exposed part, and the owners of the other patches. Without the owners, a
 * circle would count as uncovered where it crosses their patches. */
static int select_caps(const patches *p, int n, scratch *s)
{
    patches open;
    int n_wide = open_patches(p, s->owner, &open), n_cap = 0;
    const neighbours *r = &s->row;
    find_reaching(&open, n_wide, 0, n, r, s->is_kept);
    for (int i = 0; i < N_PATCH; i++)
        if (s->owner[i] > 0)
            s->is_kept[s->owner[i] - 1] |= 2;
    for (int k = 0; k < n; k++) {
        const cap c = {.axis = {r->x[k], r->y[k], r->z[k]},
                       .h = r->h[k],
                       .s = sqrt(1.0 - r->h[k] * r->h[k]),
                       .is_bound = s->is_kept[k] & 1};
        if (s->is_kept[k] != 0 && c.s > 0.0)
            n_cap = insert_cap(&c, s->caps, n_cap);
    }
    return n_cap;
}

/* ---- all spheres ---- */

static tsr_status check_radii(int n, const double *radius, double probe,
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

/* Removes those of the caps `from` to n - 1 that reach no open patch. */
static int drop_unreaching(const surface *f, int from, int n, scratch *s)
{
    patches open;
    neighbours *r = &s->row;
    int n_wide = open_patches(&f->patches, s->owner, &open), n_left = from;
    find_reaching(&open, n_wide, from, n, r, s->is_kept);
    for (int k = from; k < n; k++) {
        r->x[n_left] = r->x[k], r->y[n_left] = r->y[k], r->z[n_left] = r->z[k];
        r->h[n_left] = r->h[k];
        r->covers[n_left] = r->covers[k], r->reaches[n_left] = r->reaches[k];
        n_left += s->is_kept[k];
    }
    return n_left;
}

/* 1 if sphere i is completely buried; otherwise s->caps holds the caps on it.
 * Close neighbours come first, because they suffice to bury most spheres. */
static int is_hidden(const surface *f, int i, scratch *s, int *n_cap)
{
    const neighbours *r = &s->row;
    double own = f->radius[i] + f->probe, inner = 0.0;
    int n = 0;
    memset(s->owner, 0, sizeof s->owner);
    for (int pass = 0; pass < 2; pass++) {
        double reach = pass == 0 ? first_reach * f->reach : f->reach;
        int from = n;
        n = add_neighbours(f, i, inner, reach, n, s);
        if (n < 0 ||
            make_caps(own, f->patches.cosine, f->patches.sine, n - from,
                      r->x + from, r->y + from, r->z + from, r->h + from,
                      r->covers + from, r->reaches + from))
            return 1;
        if (pass > 0)
            n = drop_unreaching(f, from, n, s);
        if (find_owners(&f->patches, from, n, r, s->owner))
            return 1;
        inner = reach;
    }
    *n_cap = select_caps(&f->patches, n, s);
    return 0;
}

static void expose_part(void *context, int part, int thread)
{
    const surface *f = context;
    scratch *s = &f->scratch[thread];
    for (int i = part * PART; i < f->n && i < (part + 1) * PART; i++) {
        double vector[3] = {0.0, 0.0, 0.0};
        int n_cap;
        f->fraction[i] = 0.0;
        if (!is_hidden(f, i, s, &n_cap))
            cap_union_complement(n_cap, s->caps, s->workspace, &f->fraction[i],
                                 vector);
        if (f->vector != NULL)
            tsr_vec3_copy(f->vector[i], vector);
    }
}

static void scratch_make(size_t n, tsr_pool *pool, scratch *s)
{
    neighbours *r = &s->row;
    tsr_pool_array(pool, s->neighbour, n);
    tsr_pool_array(pool, s->is_kept, n);
    tsr_pool_array(pool, s->caps, n);
    tsr_pool_array(pool, r->x, 4 * n);
    tsr_pool_array(pool, r->covers, 2 * n);
    s->workspace = cap_workspace_new((int)n, pool);
    if (r->x == NULL || r->covers == NULL)
        return;
    r->y = r->x + n, r->z = r->y + n, r->h = r->z + n;
    r->reaches = r->covers + n;
}

tsr_status tsr_surface_exposed(int n, const double (*xyz)[3],
                               const double *radius_ang, double probe_ang,
                               double *fraction, double (*vector)[3],
                               tsr_err *err)
{
    double largest;
    TSR_TRY(check_radii(n, radius_ang, probe_ang, &largest, err));
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
    make_patches(&f.patches);
    tsr_pool_array(&pool, f.scratch, n_thread);
    for (int t = 0; t < n_thread && f.scratch != NULL; t++)
        scratch_make((size_t)n, &pool, &f.scratch[t]);
    tsr_status status = tsr_pool_check(&pool, err);
    TSR_THEN(status, tsr_cell_list_new(&pool, n, xyz, first_reach * reach,
                                       &f.cells, err));
    if (status == TSR_OK)
        tsr_parallel_run(n_part, n_thread, expose_part, &f);
    tsr_pool_clear(&pool);
    return status;
}
