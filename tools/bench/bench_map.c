/* tessera bench --map: how fast models are compared with a density map here,
 * and how far from double precision. The sizes are those of Stone et al. 2014
 * (Faraday Discuss. 169:265): adenylate kinase, two chaperonins, a virus
 * capsid. The atoms are made up: as dense as protein, a ball, or the capsid's
 * shell. */
#include "bench/command_bench.h"

#include "core/clock.h"
#include "maps/density.h"
#include "maps/map_sum.h"

#include <math.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

enum {
    COMPONENT = 1600, /* atoms: some 200 residues */
    MOST_BATCH = 2000,
    EDGE = 10 /* of a cube of atoms */
};

static const struct {
    const char *name;
    int n_atom;
    double resolution_ang;
    double inner; /* radius of the hollow, of the outer one */
} sizes[] = {{"kinase", 1600, 5.0, 0.0},
             {"chaperonin", 54000, 4.0, 0.0},
             {"chaperonin 2", 61000, 8.0, 0.5},
             {"capsid", 700000, 6.5, 0.87}};

typedef struct {
    const tsr_device *device;
    FILE *out;
    tsr_log *log;
    tsr_json *json; /* NULL: a table */
    double seconds; /* of a row */
    int is_quick;
} bench;

/* A molecule and a map of it. */
typedef struct {
    int n;
    double (*xyz)[3];
    unsigned char *z;
    tsr_blur_table blur;
    tsr_pool pool;
    tsr_map *map;
} problem;

static double uniform(uint64_t *state)
{
    *state =
        *state * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
    return (double)(*state >> 11) * 0x1p-53;
}

static void problem_clear(problem *p)
{
    free(p->xyz);
    free(p->z);
    tsr_pool_clear(&p->pool);
}

/* Atoms of a cube of the lattice that lie between the radii, until there are
 * enough. 17.5 cubic Angstrom an atom without hydrogens. */
static void fill_cube(problem *p, int most, const double corner[3],
                      double inner, double outer, uint64_t *state)
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

/* Cube by cube, so that atoms in a row lie together as those of a chain do. */
static tsr_status make_atoms(problem *p, int which, tsr_err *err)
{
    const int n = sizes[which].n_atom;
    const double hollow = pow(sizes[which].inner, 3.0);
    const double outer =
        1.05 * cbrt(3.0 * 17.5 * n / (4.0 * 3.14159265 * (1.0 - hollow)));
    const double inner = sizes[which].inner * outer, side = EDGE * cbrt(17.5);
    const int most = (int)(outer / side) + 1;
    uint64_t state = 2014;
    p->xyz = calloc((size_t)n + 1, sizeof *p->xyz);
    p->z = calloc((size_t)n + 1, 1);
    if (p->xyz == NULL || p->z == NULL)
        return tsr_fail(err, TSR_E_NOMEM, "out of memory for %d atoms", n);
    for (int z = -most; z < most; z++)
        for (int y = -most; y < most; y++)
            for (int x = -most; x < most; x++) {
                const double corner[3] = {side * x, side * y, side * z};
                fill_cube(p, n, corner, inner, outer, &state);
            }
    return TSR_OK;
}

/* A grid of R / 3 around the atoms; the map is the model at a wider blur, and
 * noise. */
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
    const int first[2] = {0, p->n};
    const tsr_density_batch batch = {.n_system = 1,
                                     .first = first,
                                     .xyz = (const double(*)[3])p->xyz,
                                     .z = p->z};
    const tsr_density_options o = {.density = p->map->value};
    tsr_status status = tsr_map_sum_new(device, p->map, &engine, err);
    if (status == TSR_OK)
        status = tsr_density_set_blur(engine, &wide, err);
    if (status == TSR_OK)
        status = tsr_density_run(engine, &batch, &o, &sums, err);
    tsr_density_free(engine);
    for (size_t k = 0; k < tsr_map_n_voxel(&grid); k++)
        p->map->value[k] += (float)(10.0 * (uniform(&state) - 0.5));
    return status;
}

/* ---- rows ---- */

/* What a call's time consists of, in milliseconds. Parts overlap: atoms are
 * sent while others are placed, and placing waits for the bus. */
static const struct {
    const char *name;
    size_t at;
} parts[] = {{"build", offsetof(tsr_map_sum_times, build_s)},
             {"map", offsetof(tsr_map_sum_times, map_s)},
             {"place", offsetof(tsr_map_sum_times, place_s)},
             {"send", offsetof(tsr_map_sum_times, send_s)},
             {"queue", offsetof(tsr_map_sum_times, queue_s)},
             {"kernels", offsetof(tsr_map_sum_times, kernel_s)},
             {"read", offsetof(tsr_map_sum_times, read_s)}};

enum { N_PART = sizeof parts / sizeof parts[0] };

static double part_ms(const tsr_map_sum_times *times, int k)
{
    double seconds;
    memcpy(&seconds, (const char *)times + parts[k].at, sizeof seconds);
    return 1e3 * seconds;
}

typedef struct {
    const char *which; /* cold, resident, component, components */
    int n_system;
    double wall_ms;          /* of a call */
    tsr_map_sum_times times; /* its parts */
    double error;            /* of the correlation; NaN: not looked at */
} row;

static void print_head(const bench *b)
{
    char line[1024];
    const tsr_device_info *info = tsr_device_get_info(b->device);
    if (b->json != NULL) {
        tsr_bench_begin_json(b->json, info);
        return;
    }
    tsr_device_describe(info, line, sizeof line);
    fprintf(b->out, "%s\n\n%-13s %7s %10s %5s  %-10s %5s %10s %12s %8s", line,
            "molecule", "atoms", "voxels", "R, A", "case", "batch", "wall, ms",
            "systems/s", "error");
    for (int k = 0; k < N_PART; k++)
        fprintf(b->out, " %8s", parts[k].name);
    fputs("\n", b->out);
}

static void print_row(const bench *b, int which, const problem *p, const row *r)
{
    const double rate = 1e3 * r->n_system / r->wall_ms;
    const int n_atom = r->n_system > 1 || strcmp(r->which, "component") == 0
                           ? COMPONENT
                           : p->n;
    const size_t n_voxel = tsr_map_n_voxel(&p->map->grid);
    if (b->json == NULL) {
        char error[16] = "-";
        if (isfinite(r->error))
            snprintf(error, sizeof error, "%.1e", r->error);
        fprintf(b->out, "%-13s %7d %10zu %5.1f  %-10s %5d %10.3f %12.1f %8s",
                sizes[which].name, n_atom, n_voxel, sizes[which].resolution_ang,
                r->which, r->n_system, r->wall_ms, rate, error);
        for (int k = 0; k < N_PART; k++)
            fprintf(b->out, " %8.3f", part_ms(&r->times, k));
        fputs("\n", b->out);
        fflush(b->out);
        return;
    }
    tsr_json_object(b->json, NULL);
    tsr_json_text(b->json, "molecule", sizes[which].name);
    tsr_json_integer(b->json, "n_atom", n_atom);
    tsr_json_integer(b->json, "n_voxel", (long long)n_voxel);
    tsr_json_number(b->json, "resolution_ang", sizes[which].resolution_ang);
    tsr_json_text(b->json, "case", r->which);
    tsr_json_integer(b->json, "batch", r->n_system);
    tsr_json_number(b->json, "wall_ms", r->wall_ms);
    for (int k = 0; k < N_PART; k++) {
        char name[32];
        snprintf(name, sizeof name, "%s_ms", parts[k].name);
        tsr_json_number(b->json, name, part_ms(&r->times, k));
    }
    tsr_json_number(b->json, "systems_per_second", rate);
    tsr_json_number(b->json, "error_of_cc", r->error);
    tsr_json_close(b->json);
}

/* The fastest of the calls that fit the time, at least two. */
static tsr_status measure(const bench *b, tsr_density_engine *engine,
                          const tsr_density_batch *batch, row *r,
                          tsr_density_sums *sums, tsr_err *err)
{
    const tsr_density_options o = {0};
    const double start = tsr_clock_s();
    r->wall_ms = HUGE_VAL;
    r->n_system = batch->n_system;
    for (int k = 0; k < 2 || tsr_clock_s() - start < b->seconds; k++) {
        const double from = tsr_clock_s();
        TSR_TRY(tsr_density_run(engine, batch, &o, sums, err));
        const double wall_ms = 1e3 * (tsr_clock_s() - from);
        if (wall_ms < r->wall_ms) {
            r->wall_ms = wall_ms;
            r->times = tsr_map_sum_last(engine);
            r->times.build_s = r->times.map_s = 0.0;
        }
    }
    return TSR_OK;
}

/* How far the correlation is from the reference's. */
static tsr_status error_of(const problem *p, const tsr_density_batch *batch,
                           const tsr_density_sums *sums, double *out,
                           tsr_err *err)
{
    tsr_density_engine *exact;
    tsr_density_sums want;
    const tsr_density_options o = {0};
    TSR_TRY(tsr_density_reference_new(p->map, &exact, err));
    tsr_status status = tsr_density_set_blur(exact, &p->blur, err);
    if (status == TSR_OK)
        status = tsr_density_run(exact, batch, &o, &want, err);
    tsr_density_free(exact);
    *out = fabs(tsr_map_cc(&sums->box) - tsr_map_cc(&want.box));
    return status;
}

/* The whole molecule: with the map brought to the device, and with the map
 * there. */
static tsr_status bench_whole(bench *b, int which, const problem *p,
                              tsr_density_engine **engine, tsr_err *err)
{
    const int first[2] = {0, p->n};
    const tsr_density_batch batch = {.n_system = 1,
                                     .first = first,
                                     .xyz = (const double(*)[3])p->xyz,
                                     .z = p->z};
    const tsr_density_options o = {0};
    tsr_density_sums sums;
    row r = {.which = "cold", .n_system = 1, .error = (double)NAN};
    const double start = tsr_clock_s();
    TSR_TRY(tsr_map_sum_new(b->device, p->map, engine, err));
    TSR_TRY(tsr_density_set_blur(*engine, &p->blur, err));
    TSR_TRY(tsr_density_run(*engine, &batch, &o, &sums, err));
    r.wall_ms = 1e3 * (tsr_clock_s() - start);
    r.times = tsr_map_sum_last(*engine);
    print_row(b, which, p, &r);
    r.which = "resident";
    TSR_TRY(measure(b, *engine, &batch, &r, &sums, err));
    TSR_TRY(error_of(p, &batch, &sums, &r.error, err));
    print_row(b, which, p, &r);
    return TSR_OK;
}

/* Parts of 200 residues: one alone, and all parts of many frames at once. */
static tsr_status bench_parts(bench *b, int which, const problem *p,
                              tsr_density_engine *engine, tsr_err *err)
{
    const int n_part = p->n / COMPONENT;
    const int n = b->is_quick ? 100 : MOST_BATCH;
    const size_t n_atom = (size_t)n * COMPONENT;
    double(*xyz)[3] = calloc(n_atom, sizeof *xyz);
    unsigned char *z = calloc(n_atom, 1);
    int *first = calloc((size_t)n + 1, sizeof *first);
    tsr_density_sums *sums = calloc((size_t)n, sizeof *sums);
    tsr_status status = TSR_OK;
    if (xyz == NULL || z == NULL || first == NULL || sums == NULL)
        status = tsr_fail(err, TSR_E_NOMEM, "out of memory for a batch");
    for (int k = 0; k < n && status == TSR_OK; k++) {
        const size_t from = (size_t)(k % n_part) * COMPONENT;
        first[k + 1] = (k + 1) * COMPONENT;
        memcpy(xyz + first[k], p->xyz + from, COMPONENT * sizeof *xyz);
        const int frame = k / n_part;
        const double shift = 0.01 * frame; /* so that no two are the same */
        memcpy(z + first[k], p->z + from, COMPONENT);
        for (int i = 0; i < COMPONENT; i++)
            xyz[first[k] + i][0] += shift;
    }
    const int batches[2] = {1, n};
    static const char *const name[] = {"component", "components"};
    for (int k = 0; k < 2 && status == TSR_OK; k++) {
        const tsr_density_batch batch = {.n_system = batches[k],
                                         .first = first,
                                         .xyz = (const double(*)[3])xyz,
                                         .z = z};
        row r = {.which = name[k], .error = (double)NAN};
        status = measure(b, engine, &batch, &r, sums, err);
        if (status == TSR_OK)
            print_row(b, which, p, &r);
    }
    free(xyz);
    free(z);
    free(first);
    free(sums);
    return status;
}

static tsr_status bench_size(bench *b, int which, tsr_err *err)
{
    problem p = {0};
    tsr_density_engine *engine = NULL;
    tsr_status status = make_atoms(&p, which, err);
    if (status == TSR_OK)
        status = make_map(&p, b->device, which, err);
    if (status == TSR_OK)
        status = bench_whole(b, which, &p, &engine, err);
    if (status == TSR_OK)
        status = bench_parts(b, which, &p, engine, err);
    tsr_density_free(engine);
    problem_clear(&p);
    return status;
}

tsr_status tsr_bench_map(const tsr_device *device, tsr_json *json, int is_quick,
                         FILE *out, tsr_log *log, tsr_err *err)
{
    bench b = {.device = device,
               .out = out,
               .log = log,
               .json = json,
               .seconds = is_quick ? 0.05 : 1.0,
               .is_quick = is_quick};
    const int n = is_quick ? 1 : (int)(sizeof sizes / sizeof sizes[0]);
    tsr_status status = TSR_OK;
    print_head(&b);
    for (int k = 0; k < n && status == TSR_OK; k++)
        status = bench_size(&b, k, err);
    while (json != NULL && json->depth > 0 && status == TSR_OK)
        tsr_json_close(json);
    return status;
}
