/* The host's side of a system of the engine by plane waves: where its bodies
 * are, what a proposal moves, the poses of rigid units, and whether all stays
 * within what the grid allows for. */
#include "gpu/wave_engine.h"

#include "core/vec3.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* How far a unit may be from what its table is of: moves keep distances to
 * 1e-6 A. */
static const double rigid_ang = 1e-3;

/* A set of directions is chosen with room for a distance so many times the
 * present one, so that the next steps do not ask for another. */
static const double spare = 1.02;

tsr_status tsr_wave_system_init(const tsr_wave_engine *e, tsr_wave_system *s,
                                tsr_err *err)
{
    const size_t n = (size_t)e->base.n_body, n_profile = tsr_wave_n_profile(e);
    s->now = calloc(n, sizeof *s->now);
    s->then = calloc(n, sizeof *s->then);
    s->rim = calloc((size_t)e->n_rim + 1, sizeof *s->rim);
    s->range = calloc(n, sizeof *s->range);
    s->moved = calloc((size_t)e->n_unit + 1, sizeof *s->moved);
    s->accepted = calloc(n_profile, sizeof *s->accepted);
    s->proposed = calloc(n_profile, sizeof *s->proposed);
    return s->now == NULL || s->then == NULL || s->rim == NULL ||
                   s->range == NULL || s->moved == NULL ||
                   s->accepted == NULL || s->proposed == NULL
               ? tsr_no_memory(err)
               : TSR_OK;
}

void tsr_wave_system_clear(tsr_wave_system *s)
{
    free(s->now);
    free(s->then);
    free(s->rim);
    free(s->range);
    free(s->moved);
    free(s->accepted);
    free(s->proposed);
}

static void copy_moved(const tsr_wave_system *s, double (*to)[3],
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

/* The middle of the box about all bodies as they are proposed, and how far what
 * scatters is from it at most. */
static void find_centre(const tsr_wave_engine *e, tsr_wave_system *s)
{
    double low[3], high[3];
    tsr_vec3_copy(low, s->then[0]);
    tsr_vec3_copy(high, s->then[0]);
    for (int i = 1; i < e->base.n_body; i++)
        for (int c = 0; c < 3; c++) {
            const double x = s->then[i][c];
            low[c] = x < low[c] ? x : low[c];
            high[c] = x > high[c] ? x : high[c];
        }
    for (int c = 0; c < 3; c++)
        s->proposed_centre[c] = 0.5 * (low[c] + high[c]);
    s->proposed_reach = reach_of((const double(*)[3])s->then, e->base.n_body,
                                 s->proposed_centre) +
                        e->inside_ang;
}

/* ---- units ---- */

/* The pose of a unit: x of the table's frame, from its centre, is at
 * turn x + at. */
static void find_pose(const tsr_wave_unit *u, const double (*xyz)[3],
                      double turn[3][3], double at[3])
{
    double frame[3][3] = {{0.0}};
    tsr_wave_find_frame(u, xyz, frame);
    tsr_vec3_copy(at, xyz[u->body[0]]);
    for (int c = 0; c < 3; c++)
        for (int d = 0; d < 3; d++) {
            turn[c][d] = 0.0;
            for (int k = 0; k < 3; k++)
                turn[c][d] += frame[k][c] * u->frame[k][d];
            at[c] += frame[d][c] * u->centre[d];
        }
}

/* What moved, by kinds; whole units alone may. */
static tsr_status count_moved(const tsr_wave_engine *e, tsr_wave_system *s,
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

/* How far what moved is from the accepted centre at most: loose bodies, and the
 * spheres about units. */
static double moved_reach(const tsr_wave_engine *e, const tsr_wave_system *s)
{
    const double(*then)[3] = (const double(*)[3])s->then;
    double most = 0.0, turn[3][3], at[3];
    for (int r = 0; r < s->n_range; r++) {
        const int end = s->range[r].first + s->range[r].count;
        for (int i = s->range[r].first, n; i < end; i += n) {
            n = (e->run_end[i] < end ? e->run_end[i] : end) - i;
            if (e->unit[i] < 0)
                most = fmax(most, reach_of(then + i, n, s->centre));
        }
    }
    for (int u = 0; u < e->n_unit; u++)
        if (s->moved[u] > 0) {
            find_pose(&e->units[u], then, turn, at);
            most = fmax(most, sqrt(tsr_vec3_distance2(at, s->centre)) +
                                  e->units[u].radius);
        }
    return most;
}

/* The smallest set of directions that allows for that distance. */
static int level_for(const tsr_wave_engine *e, double span)
{
    int level = TSR_WAVE_LEVELS - 1;
    while (level > 0 && e->level[level].d_ang < span)
        level--;
    return level;
}

static const double (*rim_of(const tsr_wave_engine *e,
                             const tsr_wave_system *s))[3]
{
    for (int k = 0; k < e->n_rim; k++)
        tsr_vec3_copy(s->rim[k], s->then[e->rim[k]]);
    return (const double(*)[3])s->rim;
}

/* Bounds first, where some bodies moved; then by the rim. What no longer has
 * room among its directions is summed afresh, with others. */
static tsr_status check_extent(const tsr_wave_engine *e, int system,
                               tsr_err *err)
{
    tsr_wave_system *s = &e->system[system];
    const double(*then)[3] = (const double(*)[3])s->then;
    const double beyond = 2.0 * (e->inside_ang + e->rim_ang);
    s->proposed_level = s->level;
    if (!s->is_full) {
        const double moved = moved_reach(e, s), room = e->level[s->level].d_ang;
        tsr_vec3_copy(s->proposed_centre, s->centre);
        s->proposed_reach = fmax(s->reach, moved);
        s->proposed_span = fmax(s->span, moved + s->proposed_reach);
        if (s->proposed_span <= room)
            return TSR_OK;
        s->proposed_span = room;
        if (!tsr_is_distance_beyond(e->n_rim, rim_of(e, s), room - beyond))
            return TSR_OK;
    }
    find_centre(e, s);
    const double wide = 2.0 * s->proposed_reach;
    if (wide > e->d_bound_ang &&
        tsr_is_distance_beyond(e->base.n_body, then,
                               e->d_bound_ang * (1.0 + 1e-6)))
        return tsr_fail(err, TSR_E_RANGE,
                        "engine: two bodies of system %d are %.6g Angstrom "
                        "apart; the q grid allows for %.6g",
                        system, tsr_largest_distance(e->base.n_body, then),
                        e->d_bound_ang);
    s->proposed_span = tsr_largest_distance(e->n_rim, rim_of(e, s)) + beyond;
    s->is_full = 1;
    s->proposed_level = level_for(e, spare * s->proposed_span);
    return TSR_OK;
}

/* Whether bodies of a unit, first to end - 1, are where its pose says, which is
 * what its table is of. */
static tsr_status check_run(const tsr_wave_engine *e, int system, int first,
                            int end, tsr_err *err)
{
    const tsr_wave_unit *u = &e->units[e->unit[first]];
    const double(*then)[3] = (const double(*)[3])e->system[system].then;
    double turn[3][3], at[3];
    find_pose(u, then, turn, at);
    for (int i = first; i < end; i++) {
        double d[3], x[3];
        tsr_vec3_sub(d, e->rigid[i], u->middle);
        for (int c = 0; c < 3; c++)
            x[c] = at[c] + tsr_vec3_dot(turn[c], d);
        if (!(tsr_vec3_distance2(x, then[i]) < rigid_ang * rigid_ang))
            return tsr_fail(err, TSR_E_INTERNAL,
                            "engine: a rigid unit of system %d has another "
                            "shape than the one its amplitudes are of (body "
                            "%d)",
                            system, i);
    }
    return TSR_OK;
}

/* Units that a proposal does not say to go along rigidly; each moves whole. */
static tsr_status check_units(const tsr_wave_engine *e,
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

/* Whether all bodies go along with one rigid motion, or none moves. */
static int keeps_distances(const tsr_wave_engine *e,
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

static tsr_wave_system *system_of(const tsr_batch *batch, int system)
{
    return &((const tsr_wave_engine *)batch->engine)->system[system];
}

static void put_back(tsr_wave_system *s)
{
    if (s->is_pending)
        copy_moved(s, s->then, (const double(*)[3])s->now);
    s->is_pending = 0;
}

void tsr_wave_reject(tsr_batch *batch, int system)
{
    put_back(system_of(batch, system));
}

void tsr_wave_accept(tsr_batch *batch, int system)
{
    tsr_wave_system *s = system_of(batch, system);
    if (!s->is_pending)
        return;
    copy_moved(s, s->now, (const double(*)[3])s->then);
    tsr_vec3_copy(s->centre, s->proposed_centre);
    s->reach = s->proposed_reach;
    s->span = s->proposed_span;
    s->level = s->proposed_level;
    s->is_pending = 0;
    if (s->is_same) {
        s->is_stale |= s->n_range > 0; /* it turned: its waves did not */
        return;
    }
    double *profile = s->accepted;
    s->accepted = s->proposed;
    s->proposed = profile;
    tsr_vec3_copy(s->origin, s->proposed_origin);
    s->slot ^= 1;
    s->age = s->is_full ? 0 : s->age + 1;
    s->is_stale = 0;
    s->is_set = 1;
}

tsr_status tsr_wave_propose(const tsr_wave_engine *e,
                            const tsr_body_proposal *proposal, tsr_err *err)
{
    tsr_wave_system *s = &e->system[proposal->system];
    s->n_range = proposal->n_range;
    for (int r = 0; r < proposal->n_range; r++) {
        const tsr_body_range *from = &proposal->range[r];
        s->range[r] = (tsr_wave_range){from->first, from->count};
        memcpy(s->then + from->first, from->xyz,
               (size_t)from->count * sizeof *s->then);
    }
    s->is_pending = 1;
    tsr_status status = count_moved(e, s, err);
    s->is_same = s->is_set && keeps_distances(e, proposal);
    s->is_full = !s->is_set || s->is_stale || s->age >= TSR_PLANE_WAVE_AGE ||
                 2 * (s->n_loose + e->unit_cost * s->n_unit) >
                     e->n_loose + e->unit_cost * e->n_unit;
    TSR_THEN(status, check_units(e, proposal, err));
    TSR_THEN(status, check_extent(e, proposal->system, err));
    if (s->is_same) /* nothing is summed */
        s->proposed_level = s->level;
    tsr_vec3_copy(s->proposed_origin,
                  s->is_full ? s->proposed_centre : s->origin);
    if (status != TSR_OK)
        put_back(s);
    return status;
}

/* ---- entries ---- */

static void put_real(cl_uint *to, double x)
{
    const float value = (float)x;
    memcpy(to, &value, sizeof value);
}

static void put_body(cl_uint to[4], const double x[3], const double origin[3],
                     int body, unsigned part, unsigned is_gone)
{
    for (int c = 0; c < 3; c++)
        put_real(&to[c], x[c] - origin[c]);
    to[3] = (cl_uint)body << 3 | part << 1 | is_gone;
}

int tsr_wave_put_loose(const tsr_wave_engine *e, const tsr_wave_system *s,
                       cl_uint (*to)[4])
{
    const tsr_wave_range all = {0, e->base.n_body};
    const tsr_wave_range *range = s->is_full ? &all : s->range;
    const int n_range = s->is_full ? 1 : s->n_range;
    int n = 0;
    for (int r = 0; r < n_range; r++)
        for (int i = range[r].first; i < range[r].first + range[r].count; i++) {
            if (e->unit[i] >= 0) {
                i = e->run_end[i] - 1;
                continue;
            }
            put_body(to[n++], s->then[i], s->proposed_origin, i, e->part[i], 0);
            if (!s->is_full)
                put_body(to[n++], s->now[i], s->origin, i, e->part[i], 1);
        }
    return n;
}

static void put_pose(cl_uint (*to)[4], const tsr_wave_unit *u,
                     const double (*xyz)[3], const double origin[3], int unit,
                     unsigned is_gone)
{
    double turn[3][3], at[3];
    find_pose(u, xyz, turn, at);
    for (int c = 0; c < 3; c++) {
        for (int d = 0; d < 3; d++)
            put_real(&to[c][d], turn[c][d]);
        put_real(&to[3][c], at[c] - origin[c]);
        to[c][3] = 0;
    }
    to[3][3] = (cl_uint)unit << 1 | is_gone;
}

int tsr_wave_put_units(const tsr_wave_engine *e, const tsr_wave_system *s,
                       cl_uint (*to)[4])
{
    int n = 0;
    for (int u = 0; u < e->n_unit; u++) {
        const tsr_wave_unit *unit = &e->units[u];
        if (!s->is_full && s->moved[u] == 0)
            continue;
        put_pose(to + TSR_WAVE_POSE * n++, unit, (const double(*)[3])s->then,
                 s->is_full ? s->proposed_origin : s->origin, u, 0);
        if (!s->is_full)
            put_pose(to + TSR_WAVE_POSE * n++, unit, (const double(*)[3])s->now,
                     s->origin, u, 1);
    }
    return n;
}
