/* The host's side of a system: positions, selectors, dirty tiles, profile. */
#include "gpu/page_tile.h"

#include "core/vec3.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* Beyond it single precision no longer tells neighbours apart. */
static const double max_coordinate_ang = 1e5;

tsr_status tsr_tile_system_init(const tsr_page_tile_engine *e,
                                tsr_tile_system *s, tsr_err *err)
{
    size_t n_block = (size_t)e->shape.n_block;
    size_t words = (n_block + 31) / 32;
    size_t n_body = n_block * (size_t)e->shape.tile;
    size_t row = (size_t)e->shape.row;
    s->entry = calloc(n_block, sizeof *s->entry);
    s->select = calloc(n_block * words, sizeof *s->select);
    s->position = calloc(2 * n_body * 3, e->real_size);
    s->extent.reach2 = calloc(n_block, sizeof *s->extent.reach2);
    s->proposed_extent.reach2 = calloc(n_block, sizeof *s->extent.reach2);
    s->far = calloc(n_body, sizeof *s->far);
    s->order = calloc(n_block, sizeof *s->order);
    s->age = calloc(n_block, sizeof *s->age);
    s->accepted = calloc(row, sizeof *s->accepted);
    s->proposed = calloc(row, sizeof *s->proposed);
    if (s->entry == NULL || s->select == NULL || s->position == NULL ||
        s->extent.reach2 == NULL || s->proposed_extent.reach2 == NULL ||
        s->far == NULL || s->order == NULL || s->age == NULL ||
        s->accepted == NULL || s->proposed == NULL)
        return tsr_fail(err, TSR_E_NOMEM,
                        "out of memory for a system of %d bodies",
                        e->shape.n_body);
    for (size_t b = 0; b < n_block; b++)
        s->entry[b] = (uint32_t)b;
    return tsr_tile_dirt_init(&s->dirt, &e->shape, err);
}

void tsr_tile_system_clear(tsr_tile_system *s)
{
    free(s->entry);
    free(s->select);
    free(s->position);
    free(s->extent.reach2);
    free(s->proposed_extent.reach2);
    free(s->far);
    free(s->order);
    free(s->age);
    free(s->accepted);
    free(s->proposed);
    tsr_tile_dirt_clear(&s->dirt);
}

/* Bodies into a block, x[], y[], z[] each `tile` apart, relative to the origin.
 * Returns the largest squared distance from the centre and adds all of them to
 * *sum, which a position that is not finite makes infinite or no number. */
static double put_single(float *restrict out, size_t tile, int n,
                         const double (*restrict xyz)[3], const double *origin,
                         const double *centre, double *sum)
{
    const double ox = origin[0], oy = origin[1], oz = origin[2];
    const double cx = centre[0], cy = centre[1], cz = centre[2];
    double most2 = 0.0, all = 0.0;
    for (int i = 0; i < n; i++) {
        double x = xyz[i][0] - ox, y = xyz[i][1] - oy, z = xyz[i][2] - oz;
        out[i] = (float)x;
        out[tile + (size_t)i] = (float)y;
        out[2 * tile + (size_t)i] = (float)z;
        x -= cx, y -= cy, z -= cz;
        double r2 = x * x + y * y + z * z;
        all += r2;
        most2 = r2 > most2 ? r2 : most2;
    }
    *sum += all;
    return most2;
}

static double put_double(double *restrict out, size_t tile, int n,
                         const double (*restrict xyz)[3], const double *origin,
                         const double *centre, double *sum)
{
    double most2 = 0.0;
    for (int i = 0; i < n; i++) {
        double r2 = 0.0;
        for (int c = 0; c < 3; c++) {
            double x = xyz[i][c] - origin[c];
            out[(size_t)c * tile + (size_t)i] = x;
            r2 += (x - centre[c]) * (x - centre[c]);
        }
        *sum += r2;
        most2 = r2 > most2 ? r2 : most2;
    }
    return most2;
}

/* From block `near` on, where the range before ended; returns its own last. */
static int put_range(const tsr_page_tile_engine *e, tsr_tile_system *s,
                     int first, int count, const double (*xyz)[3], int near,
                     double *sum)
{
    const int tile = e->shape.tile;
    tsr_tile_extent *x = &s->proposed_extent;
    int block = near;
    if (first >= (block + 1) * tile)
        block = first / tile;
    for (;; block++) {
        int lane = first - block * tile;
        int n = tile - lane < count ? tile - lane : count;
        void *to = tsr_tile_block(e, s, !tsr_tile_slot(s, block), block);
        double most2 =
            e->options.use_double
                ? put_double((double *)to + lane, (size_t)tile, n, xyz,
                             s->proposed_origin, x->centre, sum)
                : put_single((float *)to + lane, (size_t)tile, n, xyz,
                             s->proposed_origin, x->centre, sum);
        x->reach2[block] = most2 > x->reach2[block] ? most2 : x->reach2[block];
        x->most2 = most2 > x->most2 ? most2 : x->most2;
        first += n;
        xyz += n;
        count -= n;
        if (count == 0)
            return block;
    }
}

static tsr_status near_check(const tsr_tile_system *s, int system, int first,
                             int n, const double (*xyz)[3], tsr_err *err)
{
    TSR_TRY(tsr_engine_xyz_check(n, first, system, xyz, err));
    for (int i = 0; i < n; i++)
        for (int c = 0; c < 3; c++)
            if (fabs(xyz[i][c] - s->proposed_origin[c]) > max_coordinate_ang)
                return tsr_fail(err, TSR_E_RANGE,
                                "engine: body %d of system %d is at %g "
                                "Angstrom, more than %g from where the system "
                                "was set",
                                first + i, system, xyz[i][c],
                                max_coordinate_ang);
    return TSR_OK;
}

static tsr_status stage_all(const tsr_page_tile_engine *e, int system,
                            const double (*all)[3], tsr_err *err)
{
    tsr_tile_system *s = &e->system[system];
    tsr_tile_extent *x = &s->proposed_extent;
    int n = e->shape.n_body;
    TSR_TRY(tsr_engine_xyz_check(n, 0, system, all, err));
    for (int c = 0; c < 3; c++) {
        double lo = all[0][c], hi = lo, sum = 0.0;
        for (int i = 0; i < n; i++) {
            sum += all[i][c] / n;
            lo = all[i][c] < lo ? all[i][c] : lo;
            hi = all[i][c] > hi ? all[i][c] : hi;
        }
        s->proposed_origin[c] = sum;
        x->centre[c] = 0.5 * (lo + hi) - sum;
    }
    TSR_TRY(near_check(s, system, 0, n, all, err));
    double sum = 0.0;
    tsr_tile_dirt_mark(&s->dirt, &e->shape, -1, NULL);
    s->is_centred = 1;
    s->n_moved = n;
    memset(x->reach2, 0, (size_t)e->shape.n_block * sizeof *x->reach2);
    put_range(e, s, 0, n, all, 0, &sum);
    return TSR_OK;
}

static tsr_status stage_ranges(const tsr_page_tile_engine *e, int system,
                               int n_range, const tsr_body_range *range,
                               tsr_err *err)
{
    tsr_tile_system *s = &e->system[system];
    tsr_tile_extent *x = &s->proposed_extent;
    const size_t bytes = 3 * (size_t)e->shape.tile * e->real_size;
    double sum = 0.0;
    memcpy(s->proposed_origin, s->origin, sizeof s->origin);
    memcpy(x->centre, s->extent.centre, sizeof x->centre);
    s->is_centred = 0;
    s->n_moved = 0;
    tsr_tile_dirt_mark(&s->dirt, &e->shape, n_range, range);
    for (int t = 0; t < s->dirt.n_touched; t++) {
        int b = s->dirt.touched[t], slot = tsr_tile_slot(s, b);
        x->reach2[b] = 0.0;
        if (s->dirt.covered[b] == tsr_tile_block_size(&e->shape, b))
            continue;
        x->reach2[b] = s->extent.reach2[b];
        memcpy(tsr_tile_block(e, s, !slot, b), tsr_tile_block(e, s, slot, b),
               bytes);
    }
    for (int r = 0, b = 0; r < n_range; r++) {
        b = put_range(e, s, range[r].first, range[r].count, range[r].xyz, b,
                      &sum);
        s->n_moved += range[r].count;
    }
    /* One sum tells for all that nothing is wrong. */
    double room = max_coordinate_ang - tsr_vec3_norm(x->centre);
    if (!(room > 0.0 && sum < room * room))
        for (int r = 0; r < n_range; r++)
            TSR_TRY(near_check(s, system, range[r].first, range[r].count,
                               range[r].xyz, err));
    return TSR_OK;
}

/* Whether the tiles of a touched block with untouched ones take differences. */
static int takes_difference(const tsr_page_tile_engine *e,
                            const tsr_tile_system *s, int block)
{
    return s->dirt.n_touched < e->shape.n_block &&
           s->dirt.covered[block] <= e->options.difference &&
           s->age[block] < e->options.max_age;
}

static void put_in_order(const tsr_page_tile_engine *e, tsr_tile_system *s)
{
    int n = s->dirt.n_touched, end = n;
    s->n_full = 0;
    for (int t = 0; t < n; t++)
        if (!takes_difference(e, s, s->dirt.touched[t]))
            s->order[s->n_full++] = s->dirt.touched[t];
    for (int t = n - 1; t >= 0 && end > s->n_full; t--)
        if (takes_difference(e, s, s->dirt.touched[t]))
            s->order[--end] = s->dirt.touched[t];
}

tsr_status tsr_tile_system_propose(const tsr_page_tile_engine *e, int system,
                                   int n_range, const tsr_body_range *range,
                                   const double (*all)[3], tsr_err *err)
{
    tsr_tile_system *s = &e->system[system];
    s->proposed_extent.most2 = 0.0;
    tsr_status status = all != NULL
                            ? stage_all(e, system, all, err)
                            : stage_ranges(e, system, n_range, range, err);
    if (status == TSR_OK && e->d_bound_ang > 0.0)
        status = tsr_tile_extent_check(e, system, err);
    if (status == TSR_OK)
        put_in_order(e, s);
    s->is_pending = status == TSR_OK;
    return status;
}

static size_t triangle(size_t n)
{
    return n * (n + 1) / 2;
}

size_t tsr_tile_system_tiles(const tsr_page_tile_engine *e,
                             const tsr_tile_system *s, size_t *changes)
{
    size_t n_block = (size_t)e->shape.n_block, full = (size_t)s->n_full;
    size_t touched = (size_t)s->dirt.n_touched;
    *changes = 0;
    /* A molecule that turns as a whole keeps every distance. */
    if (s->dirt.n_group > 0 && touched == n_block &&
        tsr_tile_dirt_count(&s->dirt, &e->shape) == 0)
        return 0;
    *changes = (touched - full) * (n_block - touched);
    return triangle(n_block) - triangle(n_block - full) +
           triangle(touched - full);
}

void tsr_tile_system_accept(const tsr_page_tile_engine *e, int system)
{
    tsr_tile_system *s = &e->system[system];
    if (!s->is_pending)
        return;
    for (int t = 0; t < s->dirt.n_touched; t++) {
        int block = s->order[t];
        s->entry[block] ^= UINT32_C(1) << 16;
        /* In a rigid group tiles stayed as they are, with their differences. */
        if (t >= s->n_full)
            s->age[block]++;
        else if (s->dirt.group[block] == TSR_BLOCK_MIXED)
            s->age[block] = 0;
    }
    tsr_tile_dirt_flip(&s->dirt, &e->shape, s->select);
    tsr_tile_extent_accept(e, s);
    int64_t *accepted = s->proposed;
    s->proposed = s->accepted;
    s->accepted = accepted;
    memcpy(s->origin, s->proposed_origin, sizeof s->origin);
    s->is_pending = 0;
}

void tsr_tile_system_reject(const tsr_page_tile_engine *e, int system)
{
    e->system[system].is_pending = 0;
}

void tsr_tile_system_profile(const tsr_page_tile_engine *e,
                             const int64_t *fixed, double *profile)
{
    const double unit = 1.0 / e->fixed_scale;
    const double *constant = e->constant;
    for (int p = 0; p < e->shape.n_pair; p++) {
        profile[0] = constant[0];
        for (int k = 1; k < e->shape.n_q; k++)
            profile[k] = constant[k] + (double)fixed[k - 1] * unit;
        profile += e->shape.n_q;
        constant += e->shape.n_q;
        fixed += e->shape.stride;
    }
}
