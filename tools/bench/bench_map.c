/* tessera bench --map: speed and accuracy of the comparison of models with a
 * density map. The sizes are those of Stone et al. 2014 (Faraday Discuss.
 * 169:265): adenylate kinase, two chaperonins, a virus capsid. The atoms are
 * artificial: a ball, or a shell for the capsid, with the density of protein.
 */
#include "bench/command_bench.h"

#include "core/clock.h"
#include "maps/density.h"
#include "maps/map_sum.h"

#include <math.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

enum {
    COMPONENT = 1600, /* atoms, about 200 residues */
    MOST_BATCH = 2000,
    EDGE = 10 /* lattice points along the edge of a cube */
};

static const struct {
    const char *name;
    int n_atom;
    double resolution_ang;
    double inner; /* inner radius over outer radius */
} sizes[] = {{"kinase", 1600, 5.0, 0.0},
             {"chaperonin", 54000, 4.0, 0.0},
             {"chaperonin 2", 61000, 8.0, 0.5},
             {"capsid", 700000, 6.5, 0.87}};

typedef struct {
    const tsr_device *device;
    tsr_table *table;
    double seconds; /* duration of a row */
    int is_quick;
} bench;

/* A molecule and its map. */
typedef struct {
    tsr_pool pool;
    int n;
    double (*xyz)[3];
    unsigned char *z;
    tsr_blur_table blur;
    tsr_map *map;
    tsr_systems whole; /* a single system with all atoms */
} problem;

static double uniform(uint64_t *state)
{
    *state =
        *state * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
    return (double)(*state >> 11) * 0x1p-53;
}

/* Adds the atoms of one cube of the lattice that lie between the two radii, up
 * to `most` atoms in all. 17.5 cubic Angstrom for each heavy atom. */
static void add_cube(problem *p, int most, const double corner[3], double inner,
                     double outer, uint64_t *state)
{
    static const unsigned char element[] = {6, 6, 6, 6, 6, 7, 8, 8};
    const double step = cbrt(17.5);
    const int n = EDGE;
    for (int i = 0; i < n * n * n && p->n < most; i++) {
        const int at[3] = {i % n, i / n % n, i / (n * n)};
        double *x = p->xyz[p->n], r2 = 0.0;
        for (int c = 0; c < 3; c++) {
            x[c] = corner[c] + step * (at[c] + uniform(state));
            r2 += x[c] * x[c];
        }
        if (r2 > outer * outer || r2 < inner * inner)
            continue;
        p->z[p->n++] = element[(int)(8.0 * uniform(state))];
    }
}

/* Makes the atoms cube by cube, so that consecutive atoms are close in space,
 * as in a chain. */
static tsr_status make_atoms(problem *p, int which, tsr_err *err)
{
    const int n = sizes[which].n_atom;
    const double hollow = pow(sizes[which].inner, 3.0);
    const double outer =
        1.05 * cbrt(3.0 * 17.5 * n / (4.0 * 3.14159265 * (1.0 - hollow)));
    const double inner = sizes[which].inner * outer, side = EDGE * cbrt(17.5);
    const int most = (int)(outer / side) + 1;
    uint64_t state = 2014;
    TSR_TRY(tsr_systems_make(&p->pool, 1, (size_t)n + 1, &p->whole, err));
    p->xyz = p->whole.xyz;
    p->z = p->whole.z;
    for (int z = -most; z < most; z++)
        for (int y = -most; y < most; y++)
            for (int x = -most; x < most; x++) {
                const double corner[3] = {side * x, side * y, side * z};
                add_cube(p, n, corner, inner, outer, &state);
            }
    p->whole.n = 1;
    p->whole.first[1] = p->n;
    return TSR_OK;
}

/* Makes a map with a grid of R / 3 around the atoms: the density of the model
 * with a wider blur, plus noise. */
static tsr_status make_map(problem *p, const tsr_device *device, int which,
                           tsr_err *err)
{
    const double step = sizes[which].resolution_ang / 3.0;
    tsr_map_grid grid = {.step = {step, step, step}};
    tsr_density_engine *engine = NULL;
    tsr_density_sums sums;
    tsr_blur_table wide;
    uint64_t state = 7;
    for (int c = 0; c < 3; c++) {
        double low = 0.0, high = 0.0;
        for (int i = 0; i < p->n; i++) {
            low = fmin(low, p->xyz[i][c]);
            high = fmax(high, p->xyz[i][c]);
        }
        grid.origin[c] = low - 10.0;
        grid.n[c] = (int)((high - low + 20.0) / step) + 1;
    }
    static const unsigned char element[] = {6, 7, 8};
    TSR_TRY(tsr_blur_make(TSR_BLUR_GAUSSIAN, sizes[which].resolution_ang, 0.225,
                          3, element, &p->blur, err));
    TSR_TRY(tsr_blur_make(TSR_BLUR_GAUSSIAN, sizes[which].resolution_ang, 0.3,
                          3, element, &wide, err));
    TSR_TRY(tsr_map_new(&grid, &p->pool, &p->map, err));
    const tsr_density_options o = {.density = p->map->value};
    tsr_status status = tsr_map_sum_new(device, p->map, &engine, err);
    TSR_THEN(status, engine->set_blur(engine, &wide, err));
    TSR_THEN(status, tsr_systems_run(&p->whole, engine, &o, &sums, err));
    tsr_density_free(engine);
    for (size_t k = 0; k < tsr_map_n_voxel(&grid); k++)
        p->map->value[k] += (float)(10.0 * (uniform(&state) - 0.5));
    return status;
}

/* ---- rows ---- */

typedef struct {
    const char *which; /* "cold", "resident", "component", "components" */
    int n_system;
    double wall_ms;          /* of the fastest call */
    tsr_map_sum_times times; /* times of its parts */
    double error;            /* of the correlation; NaN: not computed */
} row;

static void print_head(const bench *b)
{
    char line[1024];
    const tsr_device_info *info = tsr_device_get_info(b->device);
    tsr_device_describe(info, line, sizeof line);
    if (b->table->json != NULL)
        tsr_bench_begin_json(b->table->json, info);
    else
        fprintf(b->table->out, "%s\n\n", line);
}

static void print_row(const bench *b, int which, const problem *p, const row *r)
{
    const int is_part = r->n_system > 1 || strcmp(r->which, "component") == 0;
    const tsr_map_sum_times *x = &r->times;
    tsr_table *t = b->table;
    tsr_table_row(t, NULL);
    tsr_table_put(t,
                  "molecule|molecule %-13s n_atom|atoms %7d n_voxel|voxels "
                  "%10ld resolution_ang|R,~A %5.1f case|case %-10s "
                  "batch|batch %5d wall_ms|wall,~ms %10.3f "
                  "systems_per_second|systems/s %12.1f error_of_cc|error %8.1e",
                  sizes[which].name, is_part ? COMPONENT : p->n,
                  (long)tsr_map_n_voxel(&p->map->grid),
                  sizes[which].resolution_ang, r->which, r->n_system,
                  r->wall_ms, 1e3 * r->n_system / r->wall_ms, r->error);
    /* Times overlap: some atoms are sent while others are placed, and placing
     * waits for the bus. */
    tsr_table_put(t,
                  "build_ms|build %8.3f map_ms|map %8.3f place_ms|place %8.3f "
                  "send_ms|send %8.3f queue_ms|queue %8.3f "
                  "kernels_ms|kernels %8.3f read_ms|read %8.3f",
                  1e3 * x->build_s, 1e3 * x->map_s, 1e3 * x->place_s,
                  1e3 * x->send_s, 1e3 * x->queue_s, 1e3 * x->kernel_s,
                  1e3 * x->read_s);
    tsr_table_end(t);
}

/* Measures the fastest of the calls within b->seconds, at least two. */
static tsr_status measure(const bench *b, tsr_density_engine *engine,
                          const tsr_systems *systems, row *r,
                          tsr_density_sums *sums, tsr_err *err)
{
    const tsr_density_options o = {0};
    const double start = tsr_clock_s();
    r->wall_ms = HUGE_VAL;
    r->n_system = systems->n;
    for (int k = 0; k < 2 || tsr_clock_s() - start < b->seconds; k++) {
        const double from = tsr_clock_s();
        TSR_TRY(tsr_systems_run(systems, engine, &o, sums, err));
        const double wall_ms = 1e3 * (tsr_clock_s() - from);
        if (wall_ms < r->wall_ms) {
            r->wall_ms = wall_ms;
            r->times = tsr_map_sum_last(engine);
            r->times.build_s = r->times.map_s = 0.0;
        }
    }
    return TSR_OK;
}

/* The deviation of the correlation from that of the reference engine. */
static tsr_status error_of(const problem *p, const tsr_density_sums *sums,
                           double *out, tsr_err *err)
{
    tsr_density_engine *exact;
    tsr_density_sums want;
    const tsr_density_options o = {0};
    TSR_TRY(tsr_density_reference_new(p->map, &exact, err));
    tsr_status status = exact->set_blur(exact, &p->blur, err);
    TSR_THEN(status, tsr_systems_run(&p->whole, exact, &o, &want, err));
    tsr_density_free(exact);
    *out = fabs(tsr_map_cc(&sums->box) - tsr_map_cc(&want.box));
    return status;
}

/* Measures the whole molecule: "cold" includes creation of the engine and
 * transfer of the map, "resident" does not. */
static tsr_status bench_whole(bench *b, int which, const problem *p,
                              tsr_density_engine **engine, tsr_err *err)
{
    const tsr_density_options o = {0};
    tsr_density_sums sums;
    row r = {.which = "cold", .n_system = 1, .error = (double)NAN};
    const double start = tsr_clock_s();
    TSR_TRY(tsr_map_sum_new(b->device, p->map, engine, err));
    TSR_TRY((*engine)->set_blur(*engine, &p->blur, err));
    TSR_TRY(tsr_systems_run(&p->whole, *engine, &o, &sums, err));
    r.wall_ms = 1e3 * (tsr_clock_s() - start);
    r.times = tsr_map_sum_last(*engine);
    print_row(b, which, p, &r);
    r.which = "resident";
    TSR_TRY(measure(b, *engine, &p->whole, &r, &sums, err));
    TSR_TRY(error_of(p, &sums, &r.error, err));
    print_row(b, which, p, &r);
    return TSR_OK;
}

/* Measures parts of 200 residues: one alone, and the parts of many frames in
 * one batch. */
static tsr_status bench_parts(bench *b, int which, problem *p,
                              tsr_density_engine *engine, tsr_err *err)
{
    static const char *const name[] = {"component", "components"};
    const int n_part = p->n / COMPONENT;
    const int n = b->is_quick ? 100 : MOST_BATCH, batches[2] = {1, n};
    tsr_systems many;
    tsr_density_sums *sums;
    tsr_pool_array(&p->pool, sums, n);
    TSR_TRY(tsr_systems_make(&p->pool, n, (size_t)n * COMPONENT, &many, err));
    for (int k = 0; k < n; k++) {
        const int from = k % n_part * COMPONENT, frame = k / n_part;
        const double shift = 0.01 * frame; /* so that all frames differ */
        double(*x)[3] =
            tsr_systems_add(&many, COMPONENT, NULL,
                            (const double(*)[3])p->xyz + from, p->z + from);
        for (int i = 0; i < COMPONENT; i++)
            x[i][0] += shift;
    }
    for (int k = 0; k < 2; k++) {
        row r = {.which = name[k], .error = (double)NAN};
        many.n = batches[k];
        TSR_TRY(measure(b, engine, &many, &r, sums, err));
        print_row(b, which, p, &r);
    }
    return TSR_OK;
}

static tsr_status bench_size(bench *b, int which, tsr_err *err)
{
    problem p = {.n = 0};
    tsr_density_engine *engine = NULL;
    tsr_status status = make_atoms(&p, which, err);
    TSR_THEN(status, make_map(&p, b->device, which, err));
    TSR_THEN(status, bench_whole(b, which, &p, &engine, err));
    TSR_THEN(status, bench_parts(b, which, &p, engine, err));
    tsr_density_free(engine);
    tsr_pool_clear(&p.pool);
    return status;
}

tsr_status tsr_bench_map(const tsr_device *device, tsr_table *table,
                         int is_quick, tsr_err *err)
{
    bench b = {.device = device,
               .table = table,
               .seconds = is_quick ? 0.05 : 1.0,
               .is_quick = is_quick};
    const int n = is_quick ? 1 : (int)(sizeof sizes / sizeof sizes[0]);
    tsr_status status = TSR_OK;
    print_head(&b);
    for (int k = 0; k < n && status == TSR_OK; k++)
        status = bench_size(&b, k, err);
    return status;
}
