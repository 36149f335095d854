/* What the engine by plane waves finds out of its bodies once: rigid units that
 * have tables, what tells their pose, which bodies are outermost, and which
 * components each has. */
#include "gpu/wave_engine.h"

#include "core/vec3.h"

#include <math.h>
#include <stdlib.h>

int tsr_wave_find_frame(const tsr_wave_unit *unit, const double (*xyz)[3],
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

/* The body farthest from x, or from the line through x along the axis. */
static int farthest(const tsr_wave_engine *e, const tsr_engine_spec *spec,
                    int unit, const double x[3], const double *axis)
{
    double most = -1.0;
    int at = 0;
    for (int i = 0; i < spec->n_body; i++) {
        double d[3];
        if (e->unit[i] != unit)
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

/* The box about what scatters in a unit, which is its bodies or what is inside;
 * returns how much that is. */
static int find_box(const tsr_wave_engine *e, const tsr_engine_spec *spec,
                    int unit, double low[3], double high[3])
{
    const tsr_engine_inside *in = spec->inside;
    const int n = in != NULL ? in->n : spec->n_body;
    const int *of = in != NULL ? in->unit : e->unit;
    const double(*xyz)[3] = in != NULL ? in->xyz : spec->rigid;
    const int sought = in != NULL ? -2 - unit : unit; /* the spec's number */
    int n_own = 0;
    for (int c = 0; c < 3; c++) {
        low[c] = HUGE_VAL;
        high[c] = -HUGE_VAL;
    }
    for (int i = 0; i < n; i++) {
        if (of[i] != sought)
            continue;
        n_own++;
        for (int c = 0; c < 3; c++) {
            low[c] = fmin(low[c], xyz[i][c]);
            high[c] = fmax(high[c], xyz[i][c]);
        }
    }
    return n_own;
}

/* The largest distance of what scatters in a unit from its middle. */
static double radius_of(const tsr_engine_spec *spec, int unit,
                        const tsr_wave_unit *u)
{
    const tsr_engine_inside *in = spec->inside;
    double most = 0.0;
    if (in == NULL)
        return sqrt(tsr_vec3_distance2(spec->rigid[u->body[0]], u->middle));
    for (int i = 0; i < in->n; i++)
        if (in->unit[i] == -2 - unit)
            most = fmax(most, tsr_vec3_distance2(in->xyz[i], u->middle));
    return sqrt(most);
}

/* Bodies that tell the pose, and the middle. 0: the unit is not worth a table,
 * or lies on a line. unit: as in e->unit before it is looked at. */
static int describe_unit(const tsr_wave_engine *e, const tsr_engine_spec *spec,
                         int unit, tsr_wave_unit *to)
{
    double *centre = to->middle;
    const double(*x)[3] = spec->rigid;
    double low[3], high[3], axis[3];
    *to = (tsr_wave_unit){.given = -2 - unit};
    for (int i = 0; i < spec->n_body; i++)
        to->n += e->unit[i] == unit;
    const int n_own = find_box(e, spec, unit, low, high);
    if (n_own == 0 || (spec->inside == NULL && n_own < e->unit_cost))
        return 0;
    for (int c = 0; c < 3; c++)
        centre[c] = 0.5 * (low[c] + high[c]);
    to->body[0] = farthest(e, spec, unit, centre, NULL);
    to->radius = radius_of(spec, unit, to);
    to->body[1] = farthest(e, spec, unit, x[to->body[0]], NULL);
    tsr_vec3_sub(axis, x[to->body[1]], x[to->body[0]]);
    if (!(tsr_vec3_norm(axis) > 1.0))
        return 0;
    tsr_vec3_normalize(axis);
    to->body[2] = farthest(e, spec, unit, x[to->body[0]], axis);
    if (!tsr_wave_find_frame(to, x, to->frame))
        return 0;
    double from[3];
    tsr_vec3_sub(from, centre, x[to->body[0]]);
    for (int c = 0; c < 3; c++)
        to->centre[c] = tsr_vec3_dot(to->frame[c], from);
    return 1;
}

/* How far what is inside of units is from the nearest of their bodies. */
static double find_inside(const tsr_engine_spec *spec)
{
    const tsr_engine_inside *in = spec->inside;
    double most2 = 0.0;
    for (int i = 0; in != NULL && i < in->n; i++) {
        double least2 = HUGE_VAL;
        for (int b = 0; b < spec->n_body; b++)
            if (spec->unit[b] == in->unit[i])
                least2 = fmin(least2,
                              tsr_vec3_distance2(in->xyz[i], spec->rigid[b]));
        most2 = fmax(most2, least2);
    }
    return sqrt(most2);
}

/* Number k of n directions, evenly spread over the sphere. */
static void direction(int k, int n, double out[3])
{
    const double z = 1.0 - (2.0 * k + 1.0) / n, r = sqrt(1.0 - z * z);
    out[0] = r * cos(2.399963229728653 * k); /* the golden angle */
    out[1] = r * sin(2.399963229728653 * k);
    out[2] = z;
}

/* The body of a unit that is farthest along a direction, of those on the rim
 * alone where on_rim; and how far. */
static int outermost(const tsr_wave_engine *e, const tsr_engine_spec *spec,
                     int unit, const char *on_rim, const double along[3],
                     double *far)
{
    int at = -1;
    *far = -HUGE_VAL;
    for (int i = 0; i < spec->n_body; i++)
        if (e->unit[i] == unit && (on_rim == NULL || on_rim[i])) {
            const double x = tsr_vec3_dot(spec->rigid[i], along);
            at = x > *far ? i : at;
            *far = fmax(*far, x);
        }
    return at;
}

/* Bodies outermost in some directions, and by how much others are farther out
 * in others. */
static tsr_status find_rim(tsr_wave_engine *e, const tsr_engine_spec *spec,
                           tsr_err *err)
{
    enum { DIRECTIONS = 96, TRIED = 400 };
    char *on_rim = calloc((size_t)spec->n_body, 1);
    double n[3], far, own;
    e->rim = calloc((size_t)spec->n_body, sizeof *e->rim);
    if (on_rim == NULL || e->rim == NULL) {
        free(on_rim);
        return tsr_no_memory(err);
    }
    for (int u = 0; u < e->n_unit; u++) {
        for (int k = 0; k < DIRECTIONS; k++) {
            direction(k, DIRECTIONS, n);
            on_rim[outermost(e, spec, u, NULL, n, &far)] = 1;
        }
        for (int k = 0; k < TRIED; k++) {
            direction(k, TRIED, n);
            outermost(e, spec, u, NULL, n, &far);
            outermost(e, spec, u, on_rim, n, &own);
            e->rim_ang = fmax(e->rim_ang, far - own);
        }
    }
    for (int i = 0; i < spec->n_body; i++)
        if (e->unit[i] < 0 || on_rim[i])
            e->rim[e->n_rim++] = i;
    free(on_rim);
    return TSR_OK;
}

tsr_status tsr_wave_find_units(tsr_wave_engine *e, const tsr_engine_spec *spec,
                               tsr_err *err)
{
    const int n_body = spec->n_body;
    const size_t n = (size_t)n_body;
    e->inside_ang = find_inside(spec);
    e->unit = calloc(n, sizeof *e->unit);
    e->run_end = calloc(n, sizeof *e->run_end);
    e->units = calloc(n, sizeof *e->units);
    if (e->unit == NULL || e->run_end == NULL || e->units == NULL)
        return tsr_no_memory(err);
    for (int i = 0; i < n_body; i++) /* -2 and less: not looked at */
        e->unit[i] =
            spec->unit != NULL && spec->unit[i] >= 0 ? -2 - spec->unit[i] : -1;
    for (int i = 0; i < n_body; i++) {
        const int given = e->unit[i];
        if (given >= -1)
            continue;
        const int number = describe_unit(e, spec, given, &e->units[e->n_unit])
                               ? e->n_unit++
                               : -1;
        if (number < 0 && spec->inside != NULL)
            return tsr_fail(err, TSR_E_INTERNAL,
                            "engine: rigid unit %d has particles, and no "
                            "bodies that tell where they are",
                            -2 - given);
        for (int j = i; j < n_body; j++)
            e->unit[j] = e->unit[j] == given ? number : e->unit[j];
    }
    for (int i = n_body - 1; i >= 0; i--) {
        const int is_last = i == n_body - 1 || e->unit[i] != e->unit[i + 1];
        e->run_end[i] = is_last ? i + 1 : e->run_end[i + 1];
        e->n_loose += e->unit[i] < 0;
    }
    return find_rim(e, spec, err);
}

tsr_status tsr_wave_find_parts(tsr_wave_engine *e, const tsr_engine_spec *spec,
                               tsr_err *err)
{
    enum { BOTH, BUT_LAST, LAST };
    const int n_comp = e->base.n_comp;
    e->part = calloc((size_t)spec->n_body, sizeof *e->part);
    TSR_TRY(tsr_allocated(e->part, err));
    for (int i = 0; i < spec->n_body && n_comp > 1; i++) {
        int has[3] = {0};
        for (int a = 0; a < n_comp; a++)
            for (int k = 0; k < spec->n_q; k++)
                has[a] |= *tsr_engine_factor(spec, a, spec->type[i], k) != 0.0;
        if (!has[n_comp - 1])
            e->part[i] = BUT_LAST;
        else if (!has[0] && !(n_comp > 2 && has[1]))
            e->part[i] = LAST;
    }
    return TSR_OK;
}
