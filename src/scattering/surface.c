/* The part of each atom's sphere that no other sphere covers, exactly: the same
 * whichever way the molecule is turned, as points on the spheres are not.
 *
 * Most spheres of a large molecule are buried, and most caps of those that are
 * not bound nothing of what is left. Patches that make up the sphere tell both
 * without any circle: a cap that reaches far enough beyond a patch's middle
 * covers all of the patch; what is left lies in patches that no cap covers, and
 * caps that do not reach one of these bound nothing. This leaves out of the
 * exact sums (cap_union.h) what does not change them. */
#include "scattering/atom_model.h"

#include "core/clones.h"
#include "core/parallel.h"
#include "core/vec3.h"
#include "molecule/points.h"
#include "scattering/cap_union.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

static const double pi = 3.14159265358979323846;

static const double first_share = 0.6; /* of the largest reach */
static const double slack = 1e-5;      /* of angles in single precision */

/* Bands of patches and how many those are, in whole vectors; spheres a part of
 * the work. */
enum { N_BAND = 12, N_PATCH = 192, WIDE = 16, PART = 256 };

/* Parts of the unit sphere, each within an angle of its middle that is the same
 * for all. */
typedef struct {
    double cosine, sine; /* of that angle */
    float x[N_PATCH + WIDE], y[N_PATCH + WIDE], z[N_PATCH + WIDE];
} patches;

/* Neighbours of a sphere, each property in a row of its own, and what they
 * cover: before, x, y, z are the place and h is the radius; then the axis and
 * cosine of a cap, and in single precision the least cosine of the angle
 * between its axis and the middle of a patch that it covers, or that it
 * reaches. */
typedef struct {
    double *x, *y, *z, *h;
    float *covers, *reaches;
} neighbours;

typedef struct {
    int *near;          /* [n] */
    int *is_kept;       /* [n] */
    tsr_cap *caps;      /* [n] */
    neighbours row;     /* [n] */
    int owner[N_PATCH]; /* the first cap that covers a patch, from 1; 0: none */
    tsr_cap_room *room;
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

/* Cells of longitude in bands of latitude. The farthest points of a cell are
 * its corners. */
static void make_patches(patches *p)
{
    const double step = pi / N_BAND;
    double reach = 0.0;
    int at = 0;
    for (int b = 0; b < N_BAND; b++) {
        double middle = (b + 0.5) * step;
        int n = (int)ceil(2.0 * pi * sin(middle) / step);
        for (int edge = b; edge <= b + 1; edge++) {
            double c = cos(edge * step), s = sin(edge * step);
            reach = fmax(reach,
                         acos(c * cos(middle) + s * sin(middle) * cos(pi / n)));
        }
        for (int k = 0; k < n && at < N_PATCH; k++, at++) {
            double turn = 2.0 * pi * k / n;
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

/* Which of caps `from` to n - 1 is the first that covers each patch of those
 * without an owner. Returns whether all have one. */
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

/* Middles of the patches without owner; returns how many vectors. */
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

/* Whether each cap reaches one of the patches. */
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

/* Spheres about i, those beyond `inner` of its centre, behind the first n rows;
 * returns how many rows then are. -1 where one at the same place holds all of
 * it: of two that are the same the first holds the other. */
static int add_neighbours(const surface *f, int i, double inner, double reach,
                          int n, scratch *s)
{
    const double *at = f->xyz[i];
    int found = tsr_cell_list_near(f->cells, at, reach, f->n, s->near);
    for (int k = 0; k < found; k++) {
        int j = s->near[k];
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

/* Turns rows from places into caps. One that covers nothing reaches nothing.
 * Returns whether one covers all. */
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

static int is_within(const tsr_cap *a, const tsr_cap *larger)
{
    return tsr_vec3_dot(a->axis, larger->axis) >=
           a->h * larger->h + a->s * larger->s;
}

/* Into a list in order, the largest first, of which none is within another. */
static int insert(const tsr_cap *c, tsr_cap *list, int n)
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

/* The caps that matter: those that reach an open patch, which may bound what is
 * left, and the owners of the others, so that a circle is not taken for free
 * where it goes through these. */
static int choose_caps(const patches *p, int n, scratch *s)
{
    patches open;
    int n_wide = open_patches(p, s->owner, &open), n_cap = 0;
    const neighbours *r = &s->row;
    find_reaching(&open, n_wide, 0, n, r, s->is_kept);
    for (int i = 0; i < N_PATCH; i++)
        if (s->owner[i] > 0)
            s->is_kept[s->owner[i] - 1] |= 2;
    for (int k = 0; k < n; k++) {
        const tsr_cap c = {.axis = {r->x[k], r->y[k], r->z[k]},
                           .h = r->h[k],
                           .s = sqrt(1.0 - r->h[k] * r->h[k]),
                           .is_bound = s->is_kept[k] & 1};
        if (s->is_kept[k] != 0 && c.s > 0.0)
            n_cap = insert(&c, s->caps, n_cap);
    }
    return n_cap;
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

/* Leaves out, of caps `from` to n - 1, those that reach no open patch. */
static int drop_idle(const surface *f, int from, int n, scratch *s)
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

/* Whether all of sphere i is hidden; else s->caps has what hides a part of it.
 * The near spheres, which are looked at first, bury most. */
static int is_hidden(const surface *f, int i, scratch *s, int *n_cap)
{
    const neighbours *r = &s->row;
    double own = f->radius[i] + f->probe, inner = 0.0;
    int n = 0;
    memset(s->owner, 0, sizeof s->owner);
    for (int pass = 0; pass < 2; pass++) {
        double reach = pass == 0 ? first_share * f->reach : f->reach;
        int from = n;
        n = add_neighbours(f, i, inner, reach, n, s);
        if (n < 0 ||
            make_caps(own, f->patches.cosine, f->patches.sine, n - from,
                      r->x + from, r->y + from, r->z + from, r->h + from,
                      r->covers + from, r->reaches + from))
            return 1;
        if (pass > 0)
            n = drop_idle(f, from, n, s);
        if (find_owners(&f->patches, from, n, r, s->owner))
            return 1;
        inner = reach;
    }
    *n_cap = choose_caps(&f->patches, n, s);
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
            tsr_cap_union_rest(n_cap, s->caps, s->room, &f->fraction[i],
                               vector);
        if (f->vector != NULL)
            tsr_vec3_copy(f->vector[i], vector);
    }
}

static int scratch_make(int n, scratch *s)
{
    size_t room = (size_t)n;
    neighbours *r = &s->row;
    s->near = calloc(room, sizeof *s->near);
    s->is_kept = calloc(room, sizeof *s->is_kept);
    s->caps = calloc(room, sizeof *s->caps);
    s->room = tsr_cap_room_new(n);
    r->x = calloc(4 * room, sizeof *r->x);
    r->covers = calloc(2 * room, sizeof *r->covers);
    if (r->x == NULL || r->covers == NULL)
        return 0;
    r->y = r->x + room, r->z = r->y + room, r->h = r->z + room;
    r->reaches = r->covers + room;
    return s->near != NULL && s->is_kept != NULL && s->caps != NULL &&
           s->room != NULL;
}

static void scratch_clear(scratch *s)
{
    free(s->near);
    free(s->is_kept);
    free(s->caps);
    free(s->row.x);
    free(s->row.covers);
    tsr_cap_room_free(s->room);
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
    surface f = {.n = n,
                 .xyz = xyz,
                 .radius = radius_ang,
                 .probe = probe_ang,
                 .reach = reach,
                 .fraction = fraction,
                 .vector = vector,
                 .scratch = calloc((size_t)n_thread, sizeof *f.scratch)};
    make_patches(&f.patches);
    tsr_status status = tsr_allocated(f.scratch, err);
    for (int t = 0; t < n_thread && f.scratch != NULL; t++)
        if (!scratch_make(n, &f.scratch[t]))
            status = tsr_no_memory(err);
    TSR_THEN(status,
             tsr_cell_list_new(n, xyz, first_share * reach, &f.cells, err));
    if (status == TSR_OK)
        tsr_parallel_run(n_part, n_thread, expose_part, &f);
    for (int t = 0; t < n_thread && f.scratch != NULL; t++)
        scratch_clear(&f.scratch[t]);
    free(f.scratch);
    tsr_cell_list_free(f.cells);
    return status;
}
