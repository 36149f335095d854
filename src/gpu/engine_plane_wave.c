/* The engine by plane waves (engine_device.h). Host side: rigid units with
 * tables; bodies and poses of a system; batches (lists of moved bodies and
 * poses, two launches and one read for the proposals of many systems); setup of
 * the engine. kernels/plane_wave.cl describes the data on the device. */
#include "gpu/engine_device.h"

#include "core/parallel.h"
#include "core/vec3.h"
#include "gpu/opencl.h"
#include "scattering/plane_wave.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* BAND: q of a band, the same as in amplitude tables. ITEMS: directions of a
 * work-group on a GPU. LANES: directions of a work-item on a CPU. PART: entries
 * in one part of a sum on a GPU, and MAX_PARTS: limit for the parts of a
 * proposal. */
enum { BAND = 8, ITEMS = 64, LANES = 16, PART = 128, MAX_PARTS = 8 };

/* An entry has four numbers. A loose body takes one entry, a unit POSE
 * entries. */
enum { POSE = 4 };

/* Sets of directions. A system uses the smallest set that its largest distance
 * allows. The first is for d_bound_ang, and each next one for SHRINK times the
 * distance of the previous one. */
enum { LEVELS = TSR_PLANE_WAVE_LEVELS };
#define SHRINK 0.88

typedef struct {
    int first, n; /* blocks of directions */
    double d_ang;
} wave_level;

/* A rigid unit with a table. Three distant bodies define its pose. */
typedef struct {
    int spec_unit;      /* number of the unit in the spec */
    int n, body[3];     /* number of bodies; the three bodies of the pose */
    double frame[3][3]; /* rows: axes of these bodies, in the table's frame */
    double centre[3];   /* from body[0] to the table's centre, on these axes */
    double table_centre[3]; /* centre of the table, in the table's frame */
    double radius;          /* largest distance of a scatterer from
                               table_centre */
} wave_unit;

/* A range of bodies. */
typedef struct {
    int first, count;
} wave_range;

typedef struct {
    double (*xyz)[3];          /* [n_body] accepted positions */
    double (*proposed_xyz)[3]; /* [n_body] */
    double (*hull)[3];         /* [n_hull] scratch */
    double origin[3], proposed_origin[3];
    double centre[3], reach; /* sphere around all bodies */
    double proposed_centre[3], proposed_reach;
    double span, proposed_span; /* upper bound of the largest distance */
    int level, proposed_level;  /* set of directions */
    int n_range;
    wave_range *range;           /* [n_body] moved ranges of the proposal */
    int n_loose, n_unit;         /* moved loose bodies, moved units */
    int *moved;                  /* [n_unit of the engine] moved bodies of a
                                    unit */
    double *accepted, *proposed; /* [n_pair][n_q] */
    int slot, age;
    int is_full;  /* 1: the proposal sums all waves */
    int is_same;  /* 1: the proposal changes no distance */
    int is_stale; /* 1: rotated as a whole since its last full sum */
} wave_system;

typedef struct {
    tsr_engine base;
    /* [n_hull] loose bodies and outermost bodies of units. In any direction, no
     * other body is farther out than the farthest of these by more than
     * hull_ang. */
    int n_hull, *hull;
    double hull_ang;
    int items, lanes;
    wave_level level[LEVELS];
    int n_block;         /* blocks of the first set, the largest one */
    int *band;           /* [all blocks] band of q */
    size_t row;          /* numbers in all amplitudes of a system */
    double *forward;     /* [n_pair] I(0) */
    int *unit;           /* [n_body] unit of each body; -1: loose */
    unsigned char *part; /* [n_body] components of each body; see find_parts */
    int *run_end;        /* [n_body] end of the run with the same unit */
    int n_loose, n_unit;
    int unit_cost; /* cost of a unit in loose bodies */
    wave_unit *units;
    double (*rigid)[3]; /* [n_body] positions from which the tables were made */
    tsr_program program;
    tsr_cl cl;
    cl_mem direction, bands, levels, factor, amplitude;
    cl_mem table, layouts, kernel; /* tables of units: values, offsets,
                                     interpolation kernel */
    wave_system *system;
} wave_engine;

/* ---- rigid units ----
 *
 * Properties of the bodies that the engine determines once: rigid units with
 * tables, the bodies that define their poses, the outermost bodies, and the
 * components of each body. */

/* The axes of a unit from its three bodies. Returns 0 if these are on a
 * line. */
static int find_frame(const wave_unit *unit, const double (*xyz)[3],
                      double frame[3][3])
{
    const double *o = xyz[unit->body[0]];
    double side[3];
    tsr_vec3_sub(frame[0], xyz[unit->body[1]], o);
    tsr_vec3_sub(side, xyz[unit->body[2]], o);
    if (!(tsr_vec3_norm(frame[0]) > 0.0))
        return 0;
    tsr_vec3_normalize(frame[0]);
    const double along = tsr_vec3_dot(side, frame[0]);
    for (int c = 0; c < 3; c++)
        frame[1][c] = side[c] - along * frame[0][c];
    if (!(tsr_vec3_norm(frame[1]) > 1.0))
        return 0;
    tsr_vec3_normalize(frame[1]);
    tsr_vec3_cross(frame[2], frame[0], frame[1]);
    return 1;
}

/* The body of a unit farthest from x, or from the line through x along the
 * axis. */
static int farthest(const tsr_engine_spec *spec, int unit, const double x[3],
                    const double *axis)
{
    double most = -1.0;
    int at = 0;
    for (int i = 0; i < spec->n_body; i++) {
        double d[3];
        if (spec->unit[i] != unit)
            continue;
        tsr_vec3_sub(d, spec->rigid[i], x);
        const double along = axis != NULL ? tsr_vec3_dot(d, axis) : 0.0;
        const double far = tsr_vec3_dot(d, d) - along * along;
        if (far > most) {
            most = far;
            at = i;
        }
    }
    return at;
}

/* Centre of the bounding box of a unit's bodies, and the largest distance from
 * it. Sets u->n, the number of bodies. */
static void find_table_centre(const tsr_engine_spec *spec, wave_unit *u)
{
    const double(*x)[3] = spec->rigid;
    double low[3] = {HUGE_VAL, HUGE_VAL, HUGE_VAL};
    double high[3] = {-HUGE_VAL, -HUGE_VAL, -HUGE_VAL}, most2 = 0.0;
    for (int i = 0; i < spec->n_body; i++) {
        u->n += spec->unit[i] == u->spec_unit;
        for (int c = 0; c < 3 && spec->unit[i] == u->spec_unit; c++) {
            low[c] = fmin(low[c], x[i][c]);
            high[c] = fmax(high[c], x[i][c]);
        }
    }
    for (int c = 0; c < 3; c++)
        u->table_centre[c] = 0.5 * (low[c] + high[c]);
    for (int i = 0; i < spec->n_body; i++)
        if (spec->unit[i] == u->spec_unit)
            most2 = fmax(most2, tsr_vec3_distance2(x[i], u->table_centre));
    u->radius = sqrt(most2);
}

/* Chooses the bodies that define the pose, and the centre. Returns 0 if the
 * unit is too small for a table, or has its bodies on a line. */
static int describe_unit(const wave_engine *e, const tsr_engine_spec *spec,
                         int unit, wave_unit *to)
{
    const double(*x)[3] = spec->rigid;
    double axis[3], from[3];
    *to = (wave_unit){.spec_unit = unit};
    find_table_centre(spec, to);
    if (to->n < e->unit_cost)
        return 0;
    to->body[0] = farthest(spec, unit, to->table_centre, NULL);
    to->body[1] = farthest(spec, unit, x[to->body[0]], NULL);
    tsr_vec3_sub(axis, x[to->body[1]], x[to->body[0]]);
    if (!(tsr_vec3_norm(axis) > 1.0))
        return 0;
    tsr_vec3_normalize(axis);
    to->body[2] = farthest(spec, unit, x[to->body[0]], axis);
    if (!find_frame(to, x, to->frame))
        return 0;
    tsr_vec3_sub(from, to->table_centre, x[to->body[0]]);
    for (int c = 0; c < 3; c++)
        to->centre[c] = tsr_vec3_dot(to->frame[c], from);
    return 1;
}

/* Direction k of n directions spread evenly over the sphere. */
static void sphere_direction(int k, int n, double out[3])
{
    const double z = 1.0 - (2.0 * k + 1.0) / n, r = sqrt(1.0 - z * z);
    out[0] = r * cos(2.399963229728653 * k); /* the golden angle */
    out[1] = r * sin(2.399963229728653 * k);
    out[2] = z;
}

/* The body of a unit that is farthest out along a direction, and its
 * coordinate; on_hull: considers only the marked bodies. */
static int outermost(const wave_engine *e, const tsr_engine_spec *spec,
                     int unit, const char *on_hull, const double along[3],
                     double *far)
{
    int at = -1;
    *far = -HUGE_VAL;
    for (int i = 0; i < spec->n_body; i++)
        if (e->unit[i] == unit && (on_hull == NULL || on_hull[i])) {
            const double x = tsr_vec3_dot(spec->rigid[i], along);
            at = x > *far ? i : at;
            *far = fmax(*far, x);
        }
    return at;
}

/* Marks the outermost bodies of every unit in 96 directions, and finds by how
 * much other bodies are farther out in 400 other directions. on_hull [n_body]:
 * zero on entry. */
static void find_hull(wave_engine *e, const tsr_engine_spec *spec,
                      char *on_hull)
{
    enum { DIRECTIONS = 96, TRIED = 400 };
    double n[3], far, hull_far;
    for (int u = 0; u < e->n_unit; u++) {
        for (int k = 0; k < DIRECTIONS; k++) {
            sphere_direction(k, DIRECTIONS, n);
            on_hull[outermost(e, spec, u, NULL, n, &far)] = 1;
        }
        for (int k = 0; k < TRIED; k++) {
            sphere_direction(k, TRIED, n);
            outermost(e, spec, u, NULL, n, &far);
            outermost(e, spec, u, on_hull, n, &hull_far);
            e->hull_ang = fmax(e->hull_ang, far - hull_far);
        }
    }
    for (int i = 0; i < spec->n_body; i++)
        if (e->unit[i] < 0 || on_hull[i])
            e->hull[e->n_hull++] = i;
}

/* Numbers the units that get a table; bodies of other units are loose. Errors:
 * TSR_E_NOMEM. */
static tsr_status find_units(wave_engine *e, const tsr_engine_spec *spec,
                             tsr_err *err)
{
    const int n_body = spec->n_body;
    tsr_pool *pool = &e->base.pool;
    char *on_hull;
    tsr_pool_array(pool, e->unit, n_body);
    tsr_pool_array(pool, e->run_end, n_body);
    tsr_pool_array(pool, e->units, n_body);
    tsr_pool_array(pool, e->hull, n_body);
    tsr_pool_array(pool, on_hull, n_body);
    TSR_TRY(tsr_pool_check(pool, err));
    for (int i = 0; i < n_body; i++) /* -2: not visited yet */
        e->unit[i] = spec->unit != NULL && spec->unit[i] >= 0 ? -2 : -1;
    for (int i = 0; i < n_body; i++) {
        if (e->unit[i] != -2)
            continue;
        const int spec_unit = spec->unit[i];
        const int number =
            describe_unit(e, spec, spec_unit, &e->units[e->n_unit])
                ? e->n_unit++
                : -1;
        for (int j = i; j < n_body; j++)
            e->unit[j] = spec->unit[j] == spec_unit ? number : e->unit[j];
    }
    for (int i = n_body - 1; i >= 0; i--) {
        const int is_last = i == n_body - 1 || e->unit[i] != e->unit[i + 1];
        e->run_end[i] = is_last ? i + 1 : e->run_end[i + 1];
        e->n_loose += e->unit[i] < 0;
    }
    find_hull(e, spec, on_hull);
    tsr_pool_free(pool, on_hull);
    return TSR_OK;
}

/* Marks bodies that lack the last component, hydration: they are not exposed.
 * (PART_BUT_LAST in the kernels.) */
static void find_parts(wave_engine *e, const tsr_engine_spec *spec)
{
    const int last = e->base.n_comp - 1;
    for (int i = 0; i < spec->n_body && last > 0; i++) {
        e->part[i] = 1;
        for (int k = 0; k < spec->n_q; k++)
            if (*tsr_engine_factor(spec, last, spec->type[i], k) != 0.0)
                e->part[i] = 0;
    }
}

/* ---- a system ---- */

/* Allowed deviation of a unit from the shape of its table; moves keep distances
 * to 1e-6 A. */
static const double rigid_tolerance_ang = 1e-3;

/* A set of directions is chosen for this multiple of the present distance, so
 * that small changes do not require another set. */
static const double span_reserve = 1.02;

static void make_system(wave_engine *e, wave_system *s)
{
    tsr_pool *pool = &e->base.pool;
    tsr_pool_array(pool, s->xyz, e->base.n_body);
    tsr_pool_array(pool, s->proposed_xyz, e->base.n_body);
    tsr_pool_array(pool, s->hull, e->n_hull + 1);
    tsr_pool_array(pool, s->range, e->base.n_body);
    tsr_pool_array(pool, s->moved, e->n_unit + 1);
    tsr_pool_array(pool, s->accepted, tsr_engine_n_profile(&e->base));
    tsr_pool_array(pool, s->proposed, tsr_engine_n_profile(&e->base));
}

static void copy_moved(const wave_system *s, double (*to)[3],
                       const double (*from)[3])
{
    for (int r = 0; r < s->n_range; r++)
        memcpy(to + s->range[r].first, from + s->range[r].first,
               (size_t)s->range[r].count * sizeof *to);
}

/* ---- extents ---- */

static double reach_of(const double (*restrict xyz)[3], int n,
                       const double centre[3])
{
    double most2 = 0.0;
    for (int i = 0; i < n; i++) {
        const double d2 = tsr_vec3_distance2(xyz[i], centre);
        most2 = d2 > most2 ? d2 : most2;
    }
    return sqrt(most2);
}

/* ---- units ---- */

/* The pose of a unit: a point x of the table, relative to its centre, is at
 * rotation x + at. */
static void find_pose(const wave_unit *u, const double (*xyz)[3],
                      double rotation[3][3], double at[3])
{
    double frame[3][3] = {{0.0}};
    find_frame(u, xyz, frame);
    tsr_vec3_copy(at, xyz[u->body[0]]);
    for (int c = 0; c < 3; c++)
        for (int d = 0; d < 3; d++) {
            rotation[c][d] = 0.0;
            for (int k = 0; k < 3; k++)
                rotation[c][d] += frame[k][c] * u->frame[k][d];
            at[c] += frame[d][c] * u->centre[d];
        }
}

/* Counts the moved loose bodies and units. A unit must move as a whole. */
static tsr_status count_moved(const wave_engine *e, wave_system *s,
                              tsr_err *err)
{
    s->n_loose = s->n_unit = 0;
    memset(s->moved, 0, (size_t)e->n_unit * sizeof *s->moved);
    for (int r = 0; r < s->n_range; r++) {
        const int end = s->range[r].first + s->range[r].count;
        for (int i = s->range[r].first, n; i < end; i += n) {
            n = (e->run_end[i] < end ? e->run_end[i] : end) - i;
            *(e->unit[i] < 0 ? &s->n_loose : &s->moved[e->unit[i]]) += n;
        }
    }
    for (int u = 0; u < e->n_unit; u++) {
        s->n_unit += s->moved[u] > 0;
        if (s->moved[u] > 0 && s->moved[u] < e->units[u].n)
            return tsr_fail(err, TSR_E_INTERNAL,
                            "engine: %d of the %d bodies of a rigid unit moved",
                            s->moved[u], e->units[u].n);
    }
    return TSR_OK;
}

/* Upper bound of the distance of the moved bodies from the accepted centre,
 * from loose bodies and spheres around units. */
static double moved_reach(const wave_engine *e, const wave_system *s)
{
    const double(*proposed_xyz)[3] = (const double(*)[3])s->proposed_xyz;
    double most = 0.0, rotation[3][3], at[3];
    for (int r = 0; r < s->n_range; r++) {
        const int end = s->range[r].first + s->range[r].count;
        for (int i = s->range[r].first, n; i < end; i += n) {
            n = (e->run_end[i] < end ? e->run_end[i] : end) - i;
            if (e->unit[i] < 0)
                most = fmax(most, reach_of(proposed_xyz + i, n, s->centre));
        }
    }
    for (int u = 0; u < e->n_unit; u++)
        if (s->moved[u] > 0) {
            find_pose(&e->units[u], proposed_xyz, rotation, at);
            most = fmax(most, sqrt(tsr_vec3_distance2(at, s->centre)) +
                                  e->units[u].radius);
        }
    return most;
}

/* The smallest set of directions for this distance. */
static int level_for(const wave_engine *e, double span)
{
    int level = LEVELS - 1;
    while (level > 0 && e->level[level].d_ang < span)
        level--;
    return level;
}

static const double (*hull_positions(const wave_engine *e,
                                     const wave_system *s))[3]
{
    for (int k = 0; k < e->n_hull; k++)
        tsr_vec3_copy(s->hull[k], s->proposed_xyz[e->hull[k]]);
    return (const double(*)[3])s->hull;
}

/* Checks the extent of a proposal, first by upper bounds, then by the distances
 * of the hull. If the extent no longer fits the set of directions, all waves
 * are summed with another set. */
static tsr_status check_extent(const wave_engine *e, int system, tsr_err *err)
{
    wave_system *s = &e->system[system];
    const double(*proposed_xyz)[3] = (const double(*)[3])s->proposed_xyz;
    const double beyond = 2.0 * e->hull_ang;
    s->proposed_level = s->level;
    if (!s->is_full) {
        const double moved = moved_reach(e, s),
                     capacity = e->level[s->level].d_ang;
        tsr_vec3_copy(s->proposed_centre, s->centre);
        s->proposed_reach = fmax(s->reach, moved);
        s->proposed_span = fmax(s->span, moved + s->proposed_reach);
        if (s->proposed_span <= capacity)
            return TSR_OK;
        s->proposed_span = capacity;
        if (!tsr_is_distance_beyond(e->n_hull, hull_positions(e, s),
                                    capacity - beyond))
            return TSR_OK;
    }
    s->proposed_reach = sqrt(tsr_engine_bounding_ball(
        e->base.n_body, proposed_xyz, s->proposed_centre));
    if (2.0 * s->proposed_reach > e->base.d_bound_ang)
        TSR_TRY(tsr_engine_extent_check(&e->base, system, e->base.n_body,
                                        proposed_xyz, err));
    s->proposed_span =
        tsr_largest_distance(e->n_hull, hull_positions(e, s)) + beyond;
    s->is_full = 1;
    s->proposed_level = level_for(e, span_reserve * s->proposed_span);
    return TSR_OK;
}

/* Checks that the bodies first to end - 1 of a unit have the positions that
 * follow from its pose and the positions in its table. */
static tsr_status check_run(const wave_engine *e, int system, int first,
                            int end, tsr_err *err)
{
    const wave_unit *u = &e->units[e->unit[first]];
    const double(*proposed_xyz)[3] =
        (const double(*)[3])e->system[system].proposed_xyz;
    double rotation[3][3], at[3];
    find_pose(u, proposed_xyz, rotation, at);
    for (int i = first; i < end; i++) {
        double d[3], x[3];
        tsr_vec3_sub(d, e->rigid[i], u->table_centre);
        for (int c = 0; c < 3; c++)
            x[c] = at[c] + tsr_vec3_dot(rotation[c], d);
        if (!(tsr_vec3_distance2(x, proposed_xyz[i]) <
              rigid_tolerance_ang * rigid_tolerance_ang))
            return tsr_fail(
                err, TSR_E_INTERNAL,
                "engine: a rigid unit of system %d has changed its shape since "
                "its amplitudes were computed (body %d)",
                system, i);
    }
    return TSR_OK;
}

/* Checks units that the proposal does not declare as rigid groups. */
static tsr_status check_units(const wave_engine *e,
                              const tsr_body_proposal *proposal, tsr_err *err)
{
    for (int r = 0; r < proposal->n_range; r++) {
        const tsr_body_range *at = &proposal->range[r];
        const int end = at->first + at->count;
        for (int i = at->first, next; at->group == 0 && i < end; i = next) {
            next = e->run_end[i] < end ? e->run_end[i] : end;
            if (e->unit[i] >= 0)
                TSR_TRY(check_run(e, proposal->system, i, next, err));
        }
    }
    return TSR_OK;
}

/* ---- proposals ---- */

/* 1 if all bodies share one rigid motion, or no body moves. */
static int keeps_distances(const wave_engine *e,
                           const tsr_body_proposal *proposal)
{
    int n = 0, is_one = 1;
    for (int r = 0; r < proposal->n_range; r++) {
        n += proposal->range[r].count;
        is_one &= proposal->range[r].group > 0 &&
                  proposal->range[r].group == proposal->range[0].group;
    }
    return n == 0 || (n == e->base.n_body && is_one);
}

static void wave_reject(tsr_engine *engine, int system)
{
    const wave_system *s = &((wave_engine *)engine)->system[system];
    copy_moved(s, s->proposed_xyz, (const double(*)[3])s->xyz);
}

static void wave_accept(tsr_engine *engine, int system)
{
    wave_system *s = &((wave_engine *)engine)->system[system];
    copy_moved(s, s->xyz, (const double(*)[3])s->proposed_xyz);
    tsr_vec3_copy(s->centre, s->proposed_centre);
    s->reach = s->proposed_reach;
    s->span = s->proposed_span;
    s->level = s->proposed_level;
    if (s->is_same) {
        s->is_stale |= s->n_range > 0; /* the molecule rotated, but its
                                          amplitudes did not */
        return;
    }
    double *profile = s->accepted;
    s->accepted = s->proposed;
    s->proposed = profile;
    tsr_vec3_copy(s->origin, s->proposed_origin);
    s->slot ^= 1;
    s->age = s->is_full ? 0 : s->age + 1;
    s->is_stale = 0;
}

static tsr_status wave_propose(tsr_batch *batch,
                               const tsr_body_proposal *proposal, tsr_err *err)
{
    const wave_engine *e = (const wave_engine *)batch->engine;
    const int is_set = e->base.state[proposal->system].is_set;
    wave_system *s = &e->system[proposal->system];
    TSR_TRY(tsr_engine_proposal_check(proposal, err));
    s->n_range = proposal->n_range;
    for (int r = 0; r < proposal->n_range; r++) {
        const tsr_body_range *from = &proposal->range[r];
        s->range[r] = (wave_range){from->first, from->count};
        memcpy(s->proposed_xyz + from->first, from->xyz,
               (size_t)from->count * sizeof *s->proposed_xyz);
    }
    tsr_status status = count_moved(e, s, err);
    s->is_same = is_set && keeps_distances(e, proposal);
    s->is_full = !is_set || s->is_stale || s->age >= TSR_PLANE_WAVE_AGE ||
                 2 * (s->n_loose + e->unit_cost * s->n_unit) >
                     e->n_loose + e->unit_cost * e->n_unit;
    TSR_THEN(status, check_units(e, proposal, err));
    TSR_THEN(status, check_extent(e, proposal->system, err));
    if (s->is_same) /* no sum is needed */
        s->proposed_level = s->level;
    tsr_vec3_copy(s->proposed_origin,
                  s->is_full ? s->proposed_centre : s->origin);
    if (status != TSR_OK)
        wave_reject(batch->engine, proposal->system);
    return status;
}

/* ---- entries ---- */

static void store_real(cl_uint *to, double x)
{
    const float value = (float)x;
    memcpy(to, &value, sizeof value);
}

static void write_body(cl_uint to[4], const double x[3], const double origin[3],
                       int body, unsigned part, unsigned is_removed)
{
    for (int c = 0; c < 3; c++)
        store_real(&to[c], x[c] - origin[c]);
    to[3] = (cl_uint)body << 3 | part << 1 | is_removed;
}

/* Writes entries of a proposal's loose bodies, at new positions and, with
 * opposite sign, at old ones: to [.][4] out. Returns the number of entries. */
static int write_loose(const wave_engine *e, const wave_system *s,
                       cl_uint (*to)[4])
{
    const wave_range all = {0, e->base.n_body};
    const wave_range *range = s->is_full ? &all : s->range;
    const int n_range = s->is_full ? 1 : s->n_range;
    int n = 0;
    for (int r = 0; r < n_range; r++)
        for (int i = range[r].first; i < range[r].first + range[r].count; i++) {
            if (e->unit[i] >= 0) {
                i = e->run_end[i] - 1;
                continue;
            }
            write_body(to[n++], s->proposed_xyz[i], s->proposed_origin, i,
                       e->part[i], 0);
            if (!s->is_full)
                write_body(to[n++], s->xyz[i], s->origin, i, e->part[i], 1);
        }
    return n;
}

static void write_pose(cl_uint (*to)[4], const wave_unit *u,
                       const double (*xyz)[3], const double origin[3], int unit,
                       unsigned is_removed)
{
    double rotation[3][3], at[3];
    find_pose(u, xyz, rotation, at);
    for (int c = 0; c < 3; c++) {
        for (int d = 0; d < 3; d++)
            store_real(&to[c][d], rotation[c][d]);
        store_real(&to[3][c], at[c] - origin[c]);
        to[c][3] = 0;
    }
    to[3][3] = (cl_uint)unit << 1 | is_removed;
}

/* Writes the poses of a proposal's units, likewise. Returns the number of
 * poses. */
static int write_units(const wave_engine *e, const wave_system *s,
                       cl_uint (*to)[4])
{
    int n = 0;
    for (int u = 0; u < e->n_unit; u++) {
        const wave_unit *unit = &e->units[u];
        if (!s->is_full && s->moved[u] == 0)
            continue;
        write_pose(to + POSE * n++, unit, (const double(*)[3])s->proposed_xyz,
                   s->is_full ? s->proposed_origin : s->origin, u, 0);
        if (!s->is_full)
            write_pose(to + POSE * n++, unit, (const double(*)[3])s->xyz,
                       s->origin, u, 1);
    }
    return n;
}

/* ---- batches ---- */

typedef struct {
    tsr_batch base;
    tsr_cl cl;
    size_t input_units, sum_rows;
    cl_command_queue queue;
    cl_kernel add, apply;
    cl_mem input, sum, profile;
    cl_uint (*host)[4]; /* pinned: requests, parts, entries; then the results */
    float *results;
    cl_event done;
} wave_batch;

static size_t n_result(const wave_engine *e)
{
    return (size_t)e->n_block * (size_t)e->base.n_pair * BAND;
}

/* Number of parts for this number of loose entries. */
static int n_part(const wave_engine *e, int n_entry)
{
    const int n = (n_entry + PART - 1) / PART;
    return e->items == 1 && n > 0 ? 1 : n < MAX_PARTS ? n : MAX_PARTS;
}

/* Upper bound of the rows of sums of one proposal. */
static size_t max_parts(const wave_engine *e)
{
    return (size_t)n_part(e, 2 * e->n_loose) + (e->n_unit > 0);
}

/* Upper bound of the entries of one proposal. */
static size_t max_entries(const wave_engine *e)
{
    return 2 * (size_t)(e->n_loose + POSE * e->n_unit);
}

/* Launches `n` requests with `rows` parts; the entries end at `used`. The
 * results follow all other data in host memory. */
static tsr_status launch(wave_batch *b, size_t n, size_t rows, size_t used,
                         tsr_err *err)
{
    const wave_engine *e = (const wave_engine *)b->base.engine;
    const size_t items = (size_t)e->items, local[2] = {items, 1},
                 add[2] = {(size_t)e->n_block * items, rows},
                 apply[2] = {(size_t)e->n_block * items, n};
    cl_int code =
        clEnqueueWriteBuffer(b->queue, b->input, CL_FALSE, 0,
                             used * sizeof *b->host, b->host, 0, NULL, NULL);
    if (code == CL_SUCCESS)
        code = clEnqueueNDRangeKernel(b->queue, b->add, 2, NULL, add, local, 0,
                                      NULL, NULL);
    if (code == CL_SUCCESS)
        code = clEnqueueNDRangeKernel(b->queue, b->apply, 2, NULL, apply, local,
                                      0, NULL, NULL);
    if (code == CL_SUCCESS)
        code = clEnqueueReadBuffer(b->queue, b->profile, CL_FALSE, 0,
                                   n * n_result(e) * sizeof *b->results,
                                   b->results, 0, NULL, &b->done);
    if (code == CL_SUCCESS)
        code = clFlush(b->queue);
    if (code == CL_SUCCESS)
        return TSR_OK;
    clFinish(b->queue);
    tsr_cl_release_event(&b->done);
    return tsr_cl_fail(err, e->cl.device, "a launch of plane waves", code);
}

static void write_part(cl_uint to[4], size_t first, int n, size_t row,
                       int level, unsigned is_unit)
{
    const cl_uint part[4] = {(cl_uint)first, (cl_uint)n, (cl_uint)row,
                             (cl_uint)level << 1 | is_unit};
    memcpy(to, part, sizeof part);
}

/* Writes parts and entries of all proposals, and launches them. */
static tsr_status wave_start(tsr_batch *base, const tsr_body_proposal *proposal,
                             tsr_err *err)
{
    wave_batch *b = (wave_batch *)base;
    (void)proposal;
    const wave_engine *e = (const wave_engine *)b->base.engine;
    const size_t parts_at = (size_t)b->base.max_proposal;
    size_t rows = 0, used = parts_at + b->sum_rows, n_request = 0;
    for (int p = 0; p < b->base.n; p++) {
        const wave_system *s = &e->system[b->base.system[p]];
        if (s->is_same)
            continue;
        const cl_uint slot = 2 * (cl_uint)b->base.system[p] + (cl_uint)s->slot;
        const size_t first_row = rows;
        const int n_loose = write_loose(e, s, b->host + used);
        const int n = n_part(e, n_loose);
        for (int k = 0; k < n; k++) {
            const size_t first = (size_t)((long)n_loose * k / n),
                         end = (size_t)((long)n_loose * (k + 1) / n);
            write_part(b->host[parts_at + rows], used + first,
                       (int)(end - first), rows, s->proposed_level, 0);
            rows++;
        }
        used += (size_t)n_loose;
        const int n_unit = write_units(e, s, b->host + used);
        if (n_unit > 0) {
            write_part(b->host[parts_at + rows], used, n_unit, rows,
                       s->proposed_level, 1);
            rows++;
        }
        used += POSE * (size_t)n_unit;
        const cl_uint request[4] = {slot | (cl_uint)s->proposed_level << 28 |
                                        (s->is_full ? 1u << 31 : 0),
                                    slot ^ 1, (cl_uint)first_row,
                                    (cl_uint)(rows - first_row)};
        memcpy(b->host[n_request++], request, sizeof request);
    }
    return n_request == 0 ? TSR_OK : launch(b, n_request, rows, used, err);
}

/* Adds the contributions of all blocks, in their order. */
static void sum_blocks(const wave_engine *e, const float *part,
                       const wave_level *level, double *profile)
{
    const int n_q = e->base.n_q;
    memset(profile, 0, tsr_engine_n_profile(&e->base) * sizeof *profile);
    for (int block = 0; block < level->n; block++) {
        const int low = e->band[level->first + block] * BAND;
        const int n = n_q - low < BAND ? n_q - low : BAND;
        for (int pair = 0; pair < e->base.n_pair; pair++, part += BAND)
            for (int k = 0; k < n; k++)
                profile[pair * n_q + low + k] += (double)part[k];
    }
    for (int pair = 0; pair < e->base.n_pair; pair++)
        profile[pair * n_q] = e->forward[pair];
}

static cl_int wait_for_results(wave_batch *b)
{
    const cl_int code =
        b->done != NULL ? clWaitForEvents(1, &b->done) : CL_SUCCESS;
    tsr_cl_release_event(&b->done);
    if (code != CL_SUCCESS)
        clFinish(b->queue);
    return code;
}

static tsr_status wave_wait(tsr_batch *batch, double *profile, tsr_err *err)
{
    wave_batch *b = (wave_batch *)batch;
    const wave_engine *e = (const wave_engine *)batch->engine;
    const size_t n_profile = tsr_engine_n_profile(&e->base);
    const float *result = b->results;
    TSR_TRY(
        tsr_cl_status(err, e->cl.device, "plane waves", wait_for_results(b)));
    for (int p = 0; p < batch->n; p++) {
        wave_system *s = &e->system[batch->system[p]];
        if (s->is_same) {
            memcpy(s->proposed, s->accepted, n_profile * sizeof *profile);
        } else {
            sum_blocks(e, result, &e->level[s->proposed_level], s->proposed);
            result += n_result(e);
        }
        if (profile != NULL)
            memcpy(profile + (size_t)p * n_profile, s->proposed,
                   n_profile * sizeof *profile);
    }
    return TSR_OK;
}

static cl_int set_arguments(const wave_engine *e, wave_batch *b)
{
    const cl_uint parts_at = (cl_uint)b->base.max_proposal;
    cl_int code = clSetKernelArg(b->add, 0, sizeof b->input, &b->input);
    code |= clSetKernelArg(b->add, 1, sizeof parts_at, &parts_at);
    code |= clSetKernelArg(b->add, 2, sizeof e->direction, &e->direction);
    code |= clSetKernelArg(b->add, 3, sizeof e->bands, &e->bands);
    code |= clSetKernelArg(b->add, 4, sizeof e->levels, &e->levels);
    code |= clSetKernelArg(b->add, 5, sizeof e->factor, &e->factor);
    code |= clSetKernelArg(b->add, 6, sizeof e->table, &e->table);
    code |= clSetKernelArg(b->add, 7, sizeof e->layouts, &e->layouts);
    code |= clSetKernelArg(b->add, 8, sizeof e->kernel, &e->kernel);
    code |= clSetKernelArg(b->add, 9, sizeof b->sum, &b->sum);
    code |= clSetKernelArg(b->apply, 0, sizeof b->input, &b->input);
    code |= clSetKernelArg(b->apply, 1, sizeof e->direction, &e->direction);
    code |= clSetKernelArg(b->apply, 2, sizeof e->levels, &e->levels);
    code |= clSetKernelArg(b->apply, 3, sizeof b->sum, &b->sum);
    code |= clSetKernelArg(b->apply, 4, sizeof e->amplitude, &e->amplitude);
    code |= clSetKernelArg(b->apply, 5, sizeof b->profile, &b->profile);
    return code;
}

static void wave_batch_close(tsr_batch *base)
{
    wave_batch *b = (wave_batch *)base;
    tsr_cl_clear(&b->cl);
    tsr_cl_release_event(&b->done);
}

static tsr_status wave_batch_open(tsr_batch *base, tsr_err *err)
{
    const wave_engine *e = (const wave_engine *)base->engine;
    wave_batch *b = (wave_batch *)base;
    const size_t n = (size_t)base->max_proposal;
    tsr_cl *cl = &b->cl;
    cl->device = e->cl.device;
    b->sum_rows = n * max_parts(e);
    b->input_units = n + b->sum_rows + n * max_entries(e);
    const size_t results = n * n_result(e) * sizeof *b->results;
    const size_t bytes = b->input_units * sizeof *b->host;
    b->queue = tsr_cl_queue(cl, 0);
    b->add = tsr_cl_kernel(cl, &e->program, "waves_add");
    b->apply = tsr_cl_kernel(cl, &e->program, "waves_profile");
    b->input = tsr_cl_buffer(cl, CL_MEM_READ_ONLY, bytes, NULL);
    b->sum = tsr_cl_buffer(cl, CL_MEM_READ_WRITE,
                           b->sum_rows * e->row * sizeof(float), NULL);
    b->profile = tsr_cl_buffer(cl, CL_MEM_READ_WRITE, results, NULL);
    b->host = tsr_cl_pinned(cl, b->queue, bytes + results, NULL);
    TSR_TRY(tsr_cl_check(cl, err));
    b->results = (float *)(b->host + b->input_units);
    return tsr_cl_status(err, cl->device, "a batch of plane waves",
                         set_arguments(e, b));
}

/* PoCL's first launch must be the widest one; engine_page_tile.c has the
 * reason. */
static tsr_status launch_widest_first(wave_engine *e, tsr_err *err)
{
    tsr_batch *batch = NULL;
    if (e->cl.device->info.type != TSR_DEVICE_CPU)
        return TSR_OK;
    TSR_TRY(tsr_batch_new(&e->base, e->base.n_system, &batch, err));
    wave_batch *b = (wave_batch *)batch;
    const size_t n = (size_t)batch->max_proposal;
    memset(b->host, 0, (n + b->sum_rows) * sizeof *b->host);
    tsr_status status = launch(b, n, b->sum_rows, n + b->sum_rows, err);
    TSR_THEN(status, wave_wait(batch, NULL, err));
    tsr_batch_free(batch);
    return status;
}

/* ---- constants on the device ---- */

/* The rounding allowed is that of tiles with this many bodies a side. Rounding
 * of waves is different: an amplitude is stored up to 65 times with a relative
 * error of 2^-24, which adds less than 1e-5 of I, and tables are accurate to
 * 4e-6. The largest error observed was a sixth of the limit (3000 bodies,
 * distances up to 400 A, 200 moves). */
enum { ROUNDING_TILE = 16 };

static size_t width(const wave_engine *e)
{
    return (size_t)e->items * (size_t)e->lanes;
}

static int n_band(int n_q)
{
    return (n_q + BAND - 1) / BAND;
}

/* The last q of a band. */
static double band_top(int n_q, double dq_inv_ang, int band)
{
    const int end = (band + 1) * BAND;
    return ((end < n_q ? end : n_q) - 1) * dq_inv_ang;
}

/* Appends the blocks of one band's directions for distances up to d_ang.
 * numbers [n_all][4][width] and e->band grow in the pool. */
static tsr_status add_band(wave_engine *e, int band, double d_ang, int *n_all,
                           float **numbers, tsr_err *err)
{
    const size_t w = width(e);
    const double turns = e->base.dq_inv_ang / (2.0 * TSR_PI);
    double(*at)[4] = NULL;
    int n;
    TSR_TRY(tsr_plane_wave_directions(
        band_top(e->base.n_q, e->base.dq_inv_ang, band), d_ang, &e->base.pool,
        &n, &at, err));
    const int first = *n_all;
    *n_all += (int)(((size_t)n + w - 1) / w);
    float *more = tsr_pool_resize(&e->base.pool, *numbers, (size_t)*n_all,
                                  4 * w * sizeof *more);
    int *bands =
        tsr_pool_resize(&e->base.pool, e->band, (size_t)*n_all, sizeof *bands);
    TSR_TRY(tsr_pool_check(&e->base.pool, err));
    *numbers = more;
    e->band = bands;
    memset(more + (size_t)first * 4 * w, 0,
           (size_t)(*n_all - first) * 4 * w * sizeof *more);
    for (int i = first; i < *n_all; i++)
        bands[i] = band;
    for (size_t i = 0; i < (size_t)n; i++)
        for (size_t c = 0; c < 4; c++)
            more[(((size_t)first + i / w) * 4 + c) * w + i % w] =
                (float)(c < 3 ? turns * at[i][c] : at[i][c]);
    tsr_pool_free(&e->base.pool, at);
    return TSR_OK;
}

/* Blocks of directions, sorted by set and band. numbers [all blocks][4][width]
 * out, in memory of the pool. */
static tsr_status make_directions(wave_engine *e, float **numbers, tsr_err *err)
{
    double d_ang = e->base.d_bound_ang;
    int n_all = 0;
    *numbers = NULL;
    for (int l = 0; l < LEVELS; l++, d_ang *= SHRINK) {
        e->level[l] = (wave_level){.first = n_all, .d_ang = d_ang};
        for (int b = 0; b < n_band(e->base.n_q); b++)
            TSR_TRY(add_band(e, b, d_ang, &n_all, numbers, err));
        e->level[l].n = n_all - e->level[l].first;
    }
    e->n_block = e->level[0].n;
    e->row = (size_t)e->n_block * 2 * (size_t)e->base.n_comp * BAND * width(e);
    return TSR_OK;
}

static int n_all_blocks(const wave_engine *e)
{
    const wave_level *last = &e->level[LEVELS - 1];
    return last->first + last->n;
}

static size_t factor_count(const wave_engine *e)
{
    return (size_t)e->base.n_body * (size_t)n_band(e->base.n_q) * BAND *
           (size_t)e->base.n_comp;
}

static void write_factors(const wave_engine *e, const tsr_engine_spec *spec,
                          float *out)
{
    const size_t n_comp = (size_t)e->base.n_comp;
    const size_t each = (size_t)n_band(spec->n_q) * BAND * n_comp;
    for (size_t i = 0; i < (size_t)spec->n_body; i++)
        for (size_t k = 0; k < (size_t)spec->n_q; k++)
            for (size_t a = 0; a < n_comp; a++)
                out[i * each + k * n_comp + a] = (float)*tsr_engine_factor(
                    spec, (int)a, spec->type[i], (int)k);
}

/* ---- memory ---- */

/* Device memory for the amplitudes of a system in two slots, and (system_bytes)
 * for these and the sums of one proposal in a batch. */
static uint64_t amplitude_bytes(const wave_engine *e)
{
    return 2 * e->row * sizeof(float);
}

static uint64_t system_bytes(const wave_engine *e)
{
    return amplitude_bytes(e) + max_parts(e) * e->row * sizeof(float);
}

static uint64_t table_bytes(const wave_engine *e)
{
    double n = 0.0;
    for (int u = 0; u < e->n_unit; u++)
        for (int b = 0; b < n_band(e->base.n_q); b++)
            n += tsr_amplitude_table_size(
                band_top(e->base.n_q, e->base.dq_inv_ang, b),
                e->units[u].radius, e->base.n_comp);
    return (uint64_t)n * sizeof(float);
}

static uint64_t shared_bytes(const wave_engine *e)
{
    return table_bytes(e) + factor_count(e) * sizeof(float);
}

/* Leaves a tenth of the memory for other data of a run. The amplitudes of all
 * systems are in one buffer, and all tables in another. */
static uint64_t max_systems(const wave_engine *e)
{
    const tsr_device_info *info = &e->cl.device->info;
    const uint64_t one = info->max_alloc_bytes, each = system_bytes(e),
                   all = info->global_bytes - info->global_bytes / 10;
    const uint64_t shared = shared_bytes(e);
    if (each == 0 || shared > all || table_bytes(e) > one)
        return 0;
    const uint64_t by_all = (all - shared) / each,
                   by_one = one / amplitude_bytes(e);
    return by_all < by_one ? by_all : by_one;
}

static tsr_status check_memory(const wave_engine *e, tsr_err *err)
{
    const double mib = 1.0 / 1048576.0;
    if ((uint64_t)e->base.n_system <= max_systems(e))
        return TSR_OK;
    return tsr_fail(
        err, TSR_E_DEVICE,
        "%s: %d systems of %d directions do not fit: each needs %.2f MiB, all "
        "together %.0f MiB; %llu systems fit. Use fewer chains, states or "
        "temperatures, or device.engine: tiles",
        e->cl.device->info.name, e->base.n_system,
        (int)((size_t)e->n_block * width(e)), (double)system_bytes(e) * mib,
        (double)shared_bytes(e) * mib, (unsigned long long)max_systems(e));
}

/* ---- tables of rigid units ---- */

/* The tables of all units, one after another. */
typedef struct {
    tsr_pool pool; /* owns this and other data for setting up the device */
    float *value;
    size_t n;             /* numbers in value */
    cl_uint (*layout)[4]; /* [n_unit][bands] offset, circle size, columns */
} tables;

/* Makes the tables of one unit, one for each band. scatterer: of this unit
 * only. */
static tsr_status add_tables(const wave_engine *e,
                             const tsr_debye_spec *scatterer, int unit,
                             tables *t, tsr_err *err)
{
    const int bands = n_band(e->base.n_q);
    const size_t each = 2 * BAND * (size_t)e->base.n_comp;
    for (int b = 0; b < bands; b++) {
        tsr_amplitude_table table;
        TSR_TRY(tsr_amplitude_table_make(scatterer, b * BAND,
                                         tsr_parallel_processors(), &t->pool,
                                         &table, err));
        const size_t n = (size_t)table.rows * (size_t)table.columns * each;
        float *more =
            tsr_pool_resize(&t->pool, t->value, t->n + n, sizeof *more);
        if (more != NULL) {
            const cl_uint layout[4] = {(cl_uint)(t->n / each),
                                       (cl_uint)table.n_circle,
                                       (cl_uint)table.columns};
            t->value = more;
            memcpy(more + t->n, table.value, n * sizeof *more);
            memcpy(t->layout[unit * bands + b], layout, sizeof layout);
            t->n += n;
        }
        tsr_pool_free(&t->pool, table.value);
        TSR_TRY(tsr_allocated(more, err));
    }
    return TSR_OK;
}

/* Collects a unit's bodies, each with its own type, and makes their tables. */
static tsr_status make_unit_tables(const wave_engine *e,
                                   const tsr_engine_spec *spec, int unit,
                                   tables *t, tsr_err *err)
{
    const wave_unit *u = &e->units[unit];
    const size_t n = (size_t)u->n;
    size_t k = 0;
    const size_t n_q = (size_t)spec->n_q, n_comp = (size_t)e->base.n_comp;
    tsr_pool pool = {0};
    double(*x)[3], *f;
    int *type;
    tsr_pool_array(&pool, x, n);
    tsr_pool_array(&pool, type, n);
    tsr_pool_array(&pool, f, n_comp * n * n_q);
    tsr_status status = tsr_pool_check(&pool, err);
    for (int i = 0; i < spec->n_body && status == TSR_OK; i++) {
        if (spec->unit[i] != u->spec_unit)
            continue;
        tsr_vec3_sub(x[k], spec->rigid[i], u->table_centre);
        type[k] = (int)k;
        for (size_t a = 0; a < n_comp; a++)
            memcpy(f + (a * n + k) * n_q,
                   tsr_engine_factor(spec, (int)a, spec->type[i], 0),
                   n_q * sizeof *f);
        k++;
    }
    const tsr_debye_spec scatterer = {.n = (int)n,
                                      .n_type = (int)n,
                                      .n_comp = (int)n_comp,
                                      .n_q = spec->n_q,
                                      .dq_inv_ang = spec->dq_inv_ang,
                                      .xyz = (const double(*)[3])x,
                                      .type = type,
                                      .form_factor = f};
    TSR_THEN(status, add_tables(e, &scatterer, unit, t, err));
    tsr_pool_clear(&pool);
    return status;
}

static tsr_status make_tables(const wave_engine *e, const tsr_engine_spec *spec,
                              tables *t, tsr_err *err)
{
    tsr_pool_array(&t->pool, t->layout, e->n_unit * n_band(spec->n_q) + 1);
    TSR_TRY(tsr_pool_check(&t->pool, err));
    for (int u = 0; u < e->n_unit; u++)
        TSR_TRY(make_unit_tables(e, spec, u, t, err));
    return TSR_OK;
}

/* ---- buffers ---- */

static tsr_status make_buffers(wave_engine *e, const tsr_engine_spec *spec,
                               float *direction, tables *t, tsr_err *err)
{
    const size_t n_block = (size_t)n_all_blocks(e);
    const size_t n_layout = (size_t)(e->n_unit * n_band(spec->n_q));
    const cl_mem_flags fixed = CL_MEM_READ_ONLY;
    float kernel[TSR_AMPLITUDE_TERMS][TSR_AMPLITUDE_WIDTH], *factor;
    cl_uint levels[LEVELS][2];
    tsr_cl *cl = &e->cl;
    tsr_pool_array(&t->pool, factor, factor_count(e));
    TSR_TRY(tsr_pool_check(&t->pool, err));
    write_factors(e, spec, factor);
    tsr_amplitude_kernel(kernel);
    for (int l = 0; l < LEVELS; l++) {
        levels[l][0] = (cl_uint)e->level[l].first;
        levels[l][1] = (cl_uint)e->level[l].n;
    }
    e->direction = tsr_cl_buffer(
        cl, fixed, n_block * 4 * width(e) * sizeof *direction, direction);
    e->bands = tsr_cl_buffer(cl, fixed, n_block * sizeof *e->band, e->band);
    e->levels = tsr_cl_buffer(cl, fixed, sizeof levels, levels);
    e->factor =
        tsr_cl_buffer(cl, fixed, factor_count(e) * sizeof *factor, factor);
    e->kernel = tsr_cl_buffer(cl, fixed, sizeof kernel, kernel);
    /* without units, any contents will do */
    e->table =
        tsr_cl_buffer(cl, fixed, (n_layout > 0 ? t->n : 1) * sizeof *t->value,
                      n_layout > 0 ? t->value : &kernel[0][0]);
    e->layouts =
        tsr_cl_buffer(cl, fixed, (n_layout + 1) * sizeof *t->layout, t->layout);
    e->amplitude =
        tsr_cl_buffer(cl, CL_MEM_READ_WRITE,
                      (size_t)e->base.n_system * amplitude_bytes(e), NULL);
    return tsr_cl_check(cl, err);
}

static tsr_status build(wave_engine *e, tsr_err *err)
{
    const char *source = "plane_wave.cl";
    char options[160];
    snprintf(options, sizeof options,
             "-cl-std=CL1.2 -cl-mad-enable -DITEMS=%d -DLANES=%d -DBAND=%d "
             "-DCOMPS=%d -DBANDS=%d -DWIDE=%d -DTERMS=%d",
             e->items, e->lanes, BAND, e->base.n_comp, n_band(e->base.n_q),
             TSR_AMPLITUDE_WIDTH, TSR_AMPLITUDE_TERMS);
    TSR_TRY(
        tsr_program_build(e->cl.device, 1, &source, options, &e->program, err));
    char *to = e->base.description;
    const int n = snprintf(
        to, sizeof e->base.description, "%s, %d directions, %d rigid unit%s; ",
        e->base.type->name, (int)((size_t)e->n_block * width(e)), e->n_unit,
        e->n_unit == 1 ? "" : "s");
    tsr_program_describe(&e->program, e->cl.device, options, to + n,
                         sizeof e->base.description - (size_t)n);
    return TSR_OK;
}

/* I(q = 0), which no move changes. */
static void set_forward(wave_engine *e, const tsr_engine_spec *spec)
{
    double sum[3] = {0.0};
    for (int a = 0; a < e->base.n_comp; a++)
        for (int i = 0; i < spec->n_body; i++)
            sum[a] += *tsr_engine_factor(spec, a, spec->type[i], 0);
    for (int a = 0, pair = 0; a < e->base.n_comp; a++)
        for (int b = a; b < e->base.n_comp; b++)
            e->forward[pair++] = sum[a] * sum[b];
}

/* ---- the engine ---- */

static void wave_close(tsr_engine *engine)
{
    wave_engine *e = (wave_engine *)engine;
    tsr_cl_clear(&e->cl);
    tsr_program_clear(&e->program);
}

static void wave_profile(const tsr_engine *engine, int system, double *profile)
{
    const wave_engine *e = (const wave_engine *)engine;
    memcpy(profile, e->system[system].accepted,
           tsr_engine_n_profile(engine) * sizeof *profile);
}

static const tsr_engine_type wave_type = {
    .name = "plane waves",
    .doc = "amplitudes of plane waves, updated for the bodies that moved",
    .size = sizeof(wave_engine),
    .batch_size = sizeof(wave_batch),
    .close = wave_close,
    .batch_open = wave_batch_open,
    .batch_close = wave_batch_close,
    .propose = wave_propose,
    .start = wave_start,
    .wait = wave_wait,
    .accept = wave_accept,
    .reject = wave_reject,
    .profile = wave_profile};

/* Creates an engine with directions and units, but without device objects.
 * direction [all blocks][4][width] out. The caller frees *out, also after an
 * error. */
static tsr_status make_plan(const tsr_engine_spec *spec,
                            const tsr_device *device, int as_gpu,
                            tsr_engine **out, float **direction, tsr_err *err)
{
    TSR_TRY(tsr_engine_open(&wave_type, spec, out, err));
    wave_engine *e = (wave_engine *)*out;
    const int is_cpu = device->info.type == TSR_DEVICE_CPU && !as_gpu;
    e->cl.device = device;
    e->items = is_cpu ? 1 : ITEMS;
    e->lanes = is_cpu ? LANES : 1;
    e->unit_cost = is_cpu ? 24 : 160;
    TSR_TRY(make_directions(e, direction, err));
    return find_units(e, spec, err);
}

static tsr_status build_engine(wave_engine *e, const tsr_engine_spec *spec,
                               float *direction, tables *t, tsr_err *err)
{
    tsr_pool *pool = &e->base.pool;
    e->base.system_bytes = (double)system_bytes(e);
    e->base.shared_bytes = (double)shared_bytes(e);
    e->base.max_systems = (double)max_systems(e);
    TSR_TRY(check_memory(e, err));
    tsr_pool_array(pool, e->part, spec->n_body);
    tsr_pool_array(pool, e->forward, e->base.n_pair);
    tsr_pool_array(pool, e->rigid, spec->n_body);
    tsr_pool_array(pool, e->system, spec->n_system);
    for (int i = 0; i < spec->n_system && !pool->failed; i++)
        make_system(e, &e->system[i]);
    TSR_TRY(tsr_pool_check(pool, err));
    if (e->n_unit > 0)
        memcpy(e->rigid, spec->rigid, (size_t)spec->n_body * sizeof *e->rigid);
    find_parts(e, spec);
    set_forward(e, spec);
    tsr_engine_rounding(spec, 0x1p-24, ROUNDING_TILE, 1 + TSR_PLANE_WAVE_AGE,
                        e->base.rounding);
    TSR_TRY(make_tables(e, spec, t, err));
    TSR_TRY(build(e, err));
    TSR_TRY(make_buffers(e, spec, direction, t, err));
    return launch_widest_first(e, err);
}

tsr_status tsr_engine_plane_wave_new(const tsr_engine_spec *spec,
                                     const tsr_device *device, int as_gpu,
                                     tsr_engine **out, tsr_err *err)
{
    float *direction = NULL;
    tables t = {0};
    *out = NULL;
    tsr_status status = tsr_engine_spec_check(spec, err);
    if (status == TSR_OK && !(spec->d_bound_ang > 0.0))
        status = tsr_fail(err, TSR_E_INTERNAL,
                          "plane waves: no largest distance is given");
    TSR_THEN(status, make_plan(spec, device, as_gpu, out, &direction, err));
    TSR_THEN(status,
             build_engine((wave_engine *)*out, spec, direction, &t, err));
    tsr_pool_clear(&t.pool);
    if (status == TSR_OK)
        tsr_pool_free(&(*out)->pool, direction);
    return tsr_engine_finish(out, status);
}

double tsr_plane_wave_capacity(const tsr_engine_spec *spec,
                               const tsr_device *device)
{
    float *direction = NULL;
    tsr_engine *e = NULL;
    const tsr_status status = make_plan(spec, device, 0, &e, &direction, NULL);
    const double capacity =
        status == TSR_OK ? (double)max_systems((wave_engine *)e) : 0.0;
    tsr_engine_free(e);
    return capacity;
}

double tsr_plane_wave_size(const tsr_engine_spec *spec)
{
    double n = 0.0;
    for (int b = 0; b < n_band(spec->n_q); b++)
        n += tsr_plane_wave_directions_of(
            band_top(spec->n_q, spec->dq_inv_ang, b), spec->d_bound_ang);
    return n;
}

int tsr_plane_wave_level(const tsr_engine *engine, int system)
{
    return ((const wave_engine *)engine)->system[system].proposed_level;
}
