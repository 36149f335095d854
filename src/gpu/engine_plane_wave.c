/* Makes the engine by plane waves: directions, tables of rigid units, program,
 * buffers. The kernels, kernels/plane_wave.cl, say how numbers lie on the
 * device. */
#include "gpu/engine_plane_wave.h"

#include "core/parallel.h"
#include "core/vec3.h"
#include "gpu/wave_engine.h"
#include "scattering/plane_wave.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define PI 3.14159265358979323846

/* Rounding is allowed as much as tiles of 16 bodies a side have. That of waves
 * is of another kind (each amplitude is stored with an error of 2^-24 of it at
 * most 65 times, which makes less than 1e-5 of I, and tables are within 4e-6);
 * of what is allowed it took a sixth at most, with 3000 bodies, distances to
 * 400 A and 200 moves. */
enum { ALLOWED = 16 };

static size_t width(const tsr_wave_engine *e)
{
    return (size_t)e->items * (size_t)e->lanes;
}

static int n_band(int n_q)
{
    return (n_q + TSR_WAVE_BAND - 1) / TSR_WAVE_BAND;
}

/* The last q of a band. */
static double band_top(int n_q, double dq_inv_ang, int band)
{
    const int end = (band + 1) * TSR_WAVE_BAND;
    return ((end < n_q ? end : n_q) - 1) * dq_inv_ang;
}

/* ---- what the device has from the start ---- */

/* Blocks of one band's directions for distances to d_ang, behind the n_all that
 * there are. numbers [n_all][4][width] grows, as e->band does. */
static tsr_status add_band(tsr_wave_engine *e, int band, double d_ang,
                           int *n_all, float **numbers, tsr_err *err)
{
    const size_t w = width(e);
    const double turns = e->base.dq_inv_ang / (2.0 * PI);
    double(*at)[4] = NULL;
    int n;
    TSR_TRY(tsr_plane_wave_directions(
        band_top(e->base.n_q, e->base.dq_inv_ang, band), d_ang, &n, &at, err));
    const int first = *n_all;
    *n_all += (int)(((size_t)n + w - 1) / w);
    float *more = realloc(*numbers, (size_t)*n_all * 4 * w * sizeof *more);
    int *bands = realloc(e->band, (size_t)*n_all * sizeof *bands);
    *numbers = more != NULL ? more : *numbers;
    e->band = bands != NULL ? bands : e->band;
    if (more == NULL || bands == NULL) {
        free(at);
        return tsr_no_memory(err);
    }
    memset(more + (size_t)first * 4 * w, 0,
           (size_t)(*n_all - first) * 4 * w * sizeof *more);
    for (int i = first; i < *n_all; i++)
        bands[i] = band;
    for (size_t i = 0; i < (size_t)n; i++)
        for (size_t c = 0; c < 4; c++)
            more[(((size_t)first + i / w) * 4 + c) * w + i % w] =
                (float)(c < 3 ? turns * at[i][c] : at[i][c]);
    free(at);
    return TSR_OK;
}

/* Blocks of directions, level after level and band after band. numbers [all
 * blocks][4][width] out, caller frees, also after an error. */
static tsr_status make_directions(tsr_wave_engine *e, float **numbers,
                                  tsr_err *err)
{
    double d_ang = e->d_bound_ang;
    int n_all = 0;
    *numbers = NULL;
    for (int l = 0; l < TSR_WAVE_LEVELS; l++, d_ang *= TSR_WAVE_SHRINK) {
        e->level[l] = (tsr_wave_level){.first = n_all, .d_ang = d_ang};
        for (int b = 0; b < n_band(e->base.n_q); b++)
            TSR_TRY(add_band(e, b, d_ang, &n_all, numbers, err));
        e->level[l].n = n_all - e->level[l].first;
    }
    e->n_block = e->level[0].n;
    e->row = (size_t)e->n_block * 2 * (size_t)e->base.n_comp * TSR_WAVE_BAND *
             width(e);
    return TSR_OK;
}

static int n_all_blocks(const tsr_wave_engine *e)
{
    const tsr_wave_level *last = &e->level[TSR_WAVE_LEVELS - 1];
    return last->first + last->n;
}

static size_t factor_count(const tsr_wave_engine *e)
{
    return (size_t)e->base.n_body * (size_t)n_band(e->base.n_q) *
           TSR_WAVE_BAND * (size_t)e->base.n_comp;
}

static float *make_factors(const tsr_wave_engine *e,
                           const tsr_engine_spec *spec)
{
    const size_t n_comp = (size_t)e->base.n_comp;
    const size_t each = (size_t)n_band(spec->n_q) * TSR_WAVE_BAND * n_comp;
    float *f = calloc(factor_count(e), sizeof *f);
    for (size_t i = 0; f != NULL && i < (size_t)spec->n_body; i++)
        for (size_t k = 0; k < (size_t)spec->n_q; k++)
            for (size_t a = 0; a < n_comp; a++)
                f[i * each + k * n_comp + a] = (float)*tsr_engine_factor(
                    spec, (int)a, spec->type[i], (int)k);
    return f;
}

/* ---- memory ---- */

/* Amplitudes of a system, in two slots; and with what a batch sums for one of
 * its proposals. */
static uint64_t amplitude_bytes(const tsr_wave_engine *e)
{
    return 2 * e->row * sizeof(float);
}

static uint64_t system_bytes(const tsr_wave_engine *e)
{
    return amplitude_bytes(e) + tsr_wave_most_parts(e) * e->row * sizeof(float);
}

/* Form factors, and the tables of units. */
static uint64_t shared_bytes(const tsr_wave_engine *e, uint64_t *tables)
{
    double n = 0.0;
    for (int u = 0; u < e->n_unit; u++)
        for (int b = 0; b < n_band(e->base.n_q); b++)
            n += tsr_amplitude_table_size(
                band_top(e->base.n_q, e->base.dq_inv_ang, b),
                e->units[u].radius, e->base.n_comp);
    *tables = (uint64_t)n * sizeof(float);
    return *tables + factor_count(e) * sizeof(float);
}

/* A tenth of the memory is left for what else a run has there. All systems'
 * amplitudes are in one buffer, the tables in another. */
static uint64_t most_systems(const tsr_wave_engine *e)
{
    const tsr_device_info *info = &e->device->info;
    const uint64_t one = info->max_alloc_bytes, each = system_bytes(e),
                   all = info->global_bytes - info->global_bytes / 10;
    uint64_t tables;
    const uint64_t shared = shared_bytes(e, &tables);
    if (each == 0 || shared > all || tables > one)
        return 0;
    const uint64_t by_all = (all - shared) / each,
                   by_one = one / amplitude_bytes(e);
    return by_all < by_one ? by_all : by_one;
}

static tsr_status fits(const tsr_wave_engine *e, tsr_err *err)
{
    const double mib = 1.0 / 1048576.0;
    uint64_t tables;
    if ((uint64_t)e->base.n_system <= most_systems(e))
        return TSR_OK;
    return tsr_fail(err, TSR_E_DEVICE,
                    "%s: %d systems of %d directions do not fit: each takes "
                    "%.2f MiB, all together %.0f MiB; there is room for %llu. "
                    "Use fewer chains, states or temperatures, or "
                    "device.engine: tiles",
                    e->device->info.name, e->base.n_system,
                    (int)((size_t)e->n_block * width(e)),
                    (double)system_bytes(e) * mib,
                    (double)shared_bytes(e, &tables) * mib,
                    (unsigned long long)most_systems(e));
}

/* ---- rigid units ---- */

/* Tables of all units, one after another. */
typedef struct {
    float *value;
    size_t n;            /* numbers */
    cl_uint (*place)[4]; /* [n_unit][bands] */
} tables;

/* Bands of a unit, of which its bodies alone are in `own`. */
static tsr_status add_tables(const tsr_wave_engine *e,
                             const tsr_debye_spec *own, int unit, tables *t,
                             tsr_err *err)
{
    const int bands = n_band(e->base.n_q);
    const size_t each = 2 * TSR_WAVE_BAND * (size_t)e->base.n_comp;
    for (int b = 0; b < bands; b++) {
        tsr_amplitude_table table;
        TSR_TRY(tsr_amplitude_table_make(
            own, b * TSR_WAVE_BAND, tsr_parallel_processors(), &table, err));
        const size_t n = (size_t)table.rows * (size_t)table.columns * each;
        float *more = realloc(t->value, (t->n + n) * sizeof *more);
        if (more != NULL) {
            const cl_uint place[4] = {(cl_uint)(t->n / each),
                                      (cl_uint)table.n_circle,
                                      (cl_uint)table.columns};
            t->value = more;
            memcpy(more + t->n, table.value, n * sizeof *more);
            memcpy(t->place[unit * bands + b], place, sizeof place);
            t->n += n;
        }
        tsr_amplitude_table_clear(&table);
        TSR_TRY(tsr_allocated(more, err));
    }
    return TSR_OK;
}

/* What scatters in a unit as particles, each a type. */
static tsr_status tabulate(const tsr_wave_engine *e,
                           const tsr_engine_spec *spec, int unit, tables *t,
                           tsr_err *err)
{
    const tsr_engine_inside *in = spec->inside;
    const tsr_wave_unit *u = &e->units[unit];
    const int n_given = in != NULL ? in->n : spec->n_body;
    const int *of = in != NULL ? in->unit : spec->unit;
    const int *given = in != NULL ? in->type : spec->type;
    const double(*xyz)[3] = in != NULL ? in->xyz : spec->rigid;
    size_t n = 0, k = 0;
    for (int i = 0; i < n_given; i++)
        n += of[i] == u->given;
    const size_t n_q = (size_t)spec->n_q, n_comp = (size_t)e->base.n_comp;
    double(*x)[3] = calloc(n, sizeof *x);
    int *type = calloc(n, sizeof *type);
    double *f = calloc(n_comp * n * n_q, sizeof *f);
    const int is_there = x != NULL && type != NULL && f != NULL;
    for (int i = 0; i < n_given && is_there; i++) {
        if (of[i] != u->given)
            continue;
        tsr_vec3_sub(x[k], xyz[i], u->middle);
        type[k] = (int)k;
        for (size_t a = 0; a < n_comp; a++)
            memcpy(f + (a * n + k) * n_q,
                   tsr_engine_factor(spec, (int)a, given[i], 0),
                   n_q * sizeof *f);
        k++;
    }
    const tsr_debye_spec own = {.n = (int)n,
                                .n_type = (int)n,
                                .n_comp = (int)n_comp,
                                .n_q = spec->n_q,
                                .dq_inv_ang = spec->dq_inv_ang,
                                .xyz = (const double(*)[3])x,
                                .type = type,
                                .form_factor = f};
    const tsr_status status =
        is_there ? add_tables(e, &own, unit, t, err) : tsr_no_memory(err);
    free(x);
    free(type);
    free(f);
    return status;
}

static tsr_status make_tables(const tsr_wave_engine *e,
                              const tsr_engine_spec *spec, tables *t,
                              tsr_err *err)
{
    const size_t n = (size_t)(e->n_unit * n_band(spec->n_q));
    t->place = calloc(n + 1, sizeof *t->place);
    TSR_TRY(tsr_allocated(t->place, err));
    for (int u = 0; u < e->n_unit; u++)
        TSR_TRY(tabulate(e, spec, u, t, err));
    return TSR_OK;
}

/* ---- buffers ---- */

static cl_mem copy_of(const tsr_wave_engine *e, size_t bytes, void *from,
                      cl_int *code)
{
    return *code != CL_SUCCESS
               ? NULL
               : clCreateBuffer(e->device->context,
                                CL_MEM_READ_ONLY | CL_MEM_COPY_HOST_PTR, bytes,
                                from, code);
}

static tsr_status make_buffers(tsr_wave_engine *e, const tsr_engine_spec *spec,
                               float *direction, tables *t, tsr_err *err)
{
    const size_t n_block = (size_t)n_all_blocks(e);
    const size_t n_place = (size_t)(e->n_unit * n_band(spec->n_q));
    float kernel[TSR_AMPLITUDE_TERMS][TSR_AMPLITUDE_WIDTH];
    cl_int code = CL_SUCCESS;
    float *factor = make_factors(e, spec);
    TSR_TRY(tsr_allocated(factor, err));
    e->direction = copy_of(e, n_block * 4 * width(e) * sizeof *direction,
                           direction, &code);
    e->bands = copy_of(e, n_block * sizeof *e->band, e->band, &code);
    cl_uint levels[TSR_WAVE_LEVELS][2];
    for (int l = 0; l < TSR_WAVE_LEVELS; l++) {
        levels[l][0] = (cl_uint)e->level[l].first;
        levels[l][1] = (cl_uint)e->level[l].n;
    }
    e->levels = copy_of(e, sizeof levels, levels, &code);
    e->factor = copy_of(e, factor_count(e) * sizeof *factor, factor, &code);
    free(factor);
    tsr_amplitude_kernel(kernel);
    e->kernel = copy_of(e, sizeof kernel, kernel, &code);
    /* without a unit there is nothing to read */
    e->table = copy_of(e, (n_place > 0 ? t->n : 1) * sizeof *t->value,
                       n_place > 0 ? t->value : &kernel[0][0], &code);
    e->places = copy_of(e, (n_place + 1) * sizeof *t->place, t->place, &code);
    if (code == CL_SUCCESS)
        e->amplitude = clCreateBuffer(
            e->device->context, CL_MEM_READ_WRITE,
            (size_t)e->base.n_system * amplitude_bytes(e), NULL, &code);
    return code == CL_SUCCESS
               ? TSR_OK
               : tsr_cl_fail(err, e->device, "clCreateBuffer", code);
}

static tsr_status build(tsr_wave_engine *e, tsr_err *err)
{
    const char *source = "plane_wave.cl";
    char options[160];
    snprintf(options, sizeof options,
             "-cl-std=CL1.2 -cl-mad-enable -DITEMS=%d -DLANES=%d -DBAND=%d "
             "-DCOMPS=%d -DBANDS=%d -DWIDE=%d -DTERMS=%d",
             e->items, e->lanes, TSR_WAVE_BAND, e->base.n_comp,
             n_band(e->base.n_q), TSR_AMPLITUDE_WIDTH, TSR_AMPLITUDE_TERMS);
    TSR_TRY(
        tsr_program_build(e->device, 1, &source, options, &e->program, err));
    snprintf(e->base.description, sizeof e->base.description,
             "%s, %d directions, %d rigid unit%s; %.120s, driver %.60s; source "
             "%016llx%s; %s",
             e->base.type->name, (int)((size_t)e->n_block * width(e)),
             e->n_unit, e->n_unit == 1 ? "" : "s", e->device->info.name,
             e->device->info.driver, (unsigned long long)e->program.source_hash,
             tsr_program_folder() != NULL ? " from TSR_KERNEL_DIR" : "",
             options);
    return TSR_OK;
}

/* I(q = 0), which no move changes. */
static tsr_status forward(tsr_wave_engine *e, const tsr_engine_spec *spec,
                          tsr_err *err)
{
    double sum[3] = {0.0};
    e->forward = calloc((size_t)e->base.n_pair, sizeof *e->forward);
    TSR_TRY(tsr_allocated(e->forward, err));
    for (int a = 0; a < e->base.n_comp; a++)
        for (int i = 0; i < spec->n_body; i++)
            sum[a] += *tsr_engine_factor(spec, a, spec->type[i], 0);
    for (int a = 0; a < e->base.n_comp && spec->inside != NULL; a++)
        for (int i = 0; i < spec->inside->n; i++)
            sum[a] += *tsr_engine_factor(spec, a, spec->inside->type[i], 0);
    for (int a = 0, pair = 0; a < e->base.n_comp; a++)
        for (int b = a; b < e->base.n_comp; b++)
            e->forward[pair++] = sum[a] * sum[b];
    return TSR_OK;
}

/* ---- the engine ---- */

static void engine_free(tsr_engine *engine)
{
    tsr_wave_engine *e = (tsr_wave_engine *)engine;
    const cl_mem all[] = {e->direction, e->bands, e->levels, e->factor,
                          e->amplitude, e->table, e->places, e->kernel};
    for (int i = 0; e->system != NULL && i < e->base.n_system; i++)
        tsr_wave_system_clear(&e->system[i]);
    for (size_t i = 0; i < sizeof all / sizeof all[0]; i++)
        if (all[i] != NULL)
            clReleaseMemObject(all[i]);
    tsr_program_clear(&e->program);
    free(e->system);
    free(e->band);
    free(e->unit);
    free(e->part);
    free(e->rim);
    free(e->run_end);
    free(e->units);
    free(e->rigid);
    free(e->forward);
    free(e->base.rounding);
    free(e);
}

static tsr_status profile_of(tsr_batch *batch, int system, double *profile,
                             tsr_err *err)
{
    const tsr_wave_engine *e = (const tsr_wave_engine *)batch->engine;
    if (system < 0 || system >= e->base.n_system || !e->system[system].is_set)
        return tsr_fail(err, TSR_E_INTERNAL, "engine: system %d was never set",
                        system);
    memcpy(profile, e->system[system].accepted,
           tsr_wave_n_profile(e) * sizeof *profile);
    return TSR_OK;
}

static const tsr_engine_type wave_type = {
    .name = "plane waves",
    .doc = "amplitudes of plane waves, kept and changed by what moved",
    .free = engine_free,
    .batch_new = tsr_wave_batch_new,
    .batch_free = tsr_wave_batch_free,
    .set = tsr_wave_set,
    .submit = tsr_wave_submit,
    .wait = tsr_wave_wait,
    .accept = tsr_wave_accept,
    .reject = tsr_wave_reject,
    .profile = profile_of};

static void describe_shape(tsr_wave_engine *e, const tsr_engine_spec *spec,
                           int as_gpu)
{
    const int n_comp = tsr_engine_n_comp(spec);
    const int is_cpu = e->device->info.type == TSR_DEVICE_CPU && !as_gpu;
    e->base = (tsr_engine){.type = &wave_type,
                           .n_body = spec->n_body,
                           .n_q = spec->n_q,
                           .n_comp = n_comp,
                           .n_pair = n_comp * (n_comp + 1) / 2,
                           .n_system = spec->n_system,
                           .dq_inv_ang = spec->dq_inv_ang};
    e->d_bound_ang = spec->d_bound_ang;
    e->items = is_cpu ? 1 : TSR_WAVE_ITEMS;
    e->lanes = is_cpu ? TSR_WAVE_LANES : 1;
    e->unit_cost = is_cpu ? 24 : 160;
}

tsr_status tsr_engine_plane_wave_new(const tsr_engine_spec *spec,
                                     const tsr_device *device, int as_gpu,
                                     tsr_engine **out, tsr_err *err)
{
    float *direction = NULL;
    tables t = {0};
    *out = NULL;
    TSR_TRY(tsr_engine_spec_check(spec, err));
    if (!(spec->d_bound_ang > 0.0))
        return tsr_fail(err, TSR_E_INTERNAL,
                        "plane waves: no largest distance is given");
    tsr_wave_engine *e = calloc(1, sizeof *e);
    TSR_TRY(tsr_allocated(e, err));
    e->device = device;
    describe_shape(e, spec, as_gpu);
    tsr_status status = make_directions(e, &direction, err);
    TSR_THEN(status, tsr_wave_find_units(e, spec, err));
    if (status == TSR_OK) {
        uint64_t unused;
        e->base.system_bytes = (double)system_bytes(e);
        e->base.shared_bytes = (double)shared_bytes(e, &unused);
        e->base.most_systems = (double)most_systems(e);
        status = fits(e, err);
    }
    TSR_THEN(status, tsr_wave_find_parts(e, spec, err));
    TSR_THEN(status, forward(e, spec, err));
    TSR_THEN(status,
             tsr_engine_rounding(spec, 0x1p-24, ALLOWED, 1 + TSR_PLANE_WAVE_AGE,
                                 &e->base.rounding, err));
    TSR_THEN(status, make_tables(e, spec, &t, err));
    TSR_THEN(status, build(e, err));
    TSR_THEN(status, make_buffers(e, spec, direction, &t, err));
    free(direction);
    free(t.value);
    free(t.place);
    if (status == TSR_OK && e->n_unit > 0) {
        e->rigid = malloc((size_t)spec->n_body * sizeof *e->rigid);
        status = tsr_allocated(e->rigid, err);
        if (status == TSR_OK)
            memcpy(e->rigid, spec->rigid,
                   (size_t)spec->n_body * sizeof *e->rigid);
    }
    if (status == TSR_OK) {
        e->system = calloc((size_t)spec->n_system, sizeof *e->system);
        status = tsr_allocated(e->system, err);
    }
    for (int i = 0; i < spec->n_system && status == TSR_OK; i++)
        status = tsr_wave_system_init(e, &e->system[i], err);
    TSR_THEN(status, tsr_wave_open_widest(e, err));
    if (status == TSR_OK)
        *out = &e->base;
    else
        engine_free(&e->base);
    return status;
}

/* ---- which engine ---- */

/* Seconds of a kind of device, by how many components there are: a pair of
 * bodies and q of tiles; a direction, of every step, of a pose of a unit, of a
 * place of a loose body. As measured with 1131 to 10,808 bodies
 * (bench/RESULTS.md). */
typedef struct {
    double pair[3], step[3], unit[3], body[3];
} engine_cost;

static const engine_cost cpu_cost = {.pair = {2.2e-11, 3.3e-11, 4.5e-11},
                                     .step = {6e-9, 1.0e-8, 1.4e-8},
                                     .unit = {1.8e-8, 2.8e-8, 3.8e-8},
                                     .body = {8e-10, 9e-10, 1.0e-9}};
static const engine_cost gpu_cost = {.pair = {2.1e-13, 4.0e-13, 6.0e-13},
                                     .step = {3e-10, 6e-10, 9e-10},
                                     .unit = {8e-10, 1.2e-9, 1.7e-9},
                                     .body = {5e-12, 6.5e-12, 8e-12}};

/* Bodies of the largest unit, how many there are that are worth a table, and
 * bodies of none of these. */
typedef struct {
    int largest, n, loose;
} unit_sizes;

static unit_sizes sizes_of(const tsr_engine_spec *spec, int least)
{
    unit_sizes out = {.loose = spec->n_body};
    int *n =
        spec->unit != NULL ? calloc((size_t)spec->n_body, sizeof *n) : NULL;
    for (int i = 0; n != NULL && i < spec->n_body; i++)
        if (spec->unit[i] >= 0 && spec->unit[i] < spec->n_body)
            n[spec->unit[i]]++;
    for (int u = 0; n != NULL && u < spec->n_body; u++) {
        out.largest = n[u] > out.largest ? n[u] : out.largest;
        out.n += n[u] >= least;
        out.loose -= n[u] >= least ? n[u] : 0;
    }
    free(n);
    return out;
}

tsr_engine_choice tsr_engine_choose(const tsr_engine_spec *spec,
                                    const tsr_device_info *info,
                                    tsr_engine_choice choice)
{
    const engine_cost *cost =
        info->type == TSR_DEVICE_CPU ? &cpu_cost : &gpu_cost;
    const int k = tsr_engine_n_comp(spec) - 1, n = spec->n_body;
    double n_direction = 0.0;
    if (spec->inside != NULL)
        return TSR_ENGINE_PLANE_WAVES;
    if (choice != TSR_ENGINE_AUTO)
        return choice;
    if (!(spec->d_bound_ang > 0.0))
        return TSR_ENGINE_TILES;
    for (int b = 0; b < n_band(spec->n_q); b++)
        n_direction += tsr_plane_wave_directions_of(
            band_top(spec->n_q, spec->dq_inv_ang, b), spec->d_bound_ang);
    /* A step turns one side of a linker, the lighter one: of two parts one, of
     * many a quarter on average; and a quarter of what is loose. */
    const unit_sizes of = sizes_of(spec, (int)(cost->unit[k] / cost->body[k]));
    const double turned = of.n > 4 ? 0.25 * of.n : of.n > 0 ? 1.0 : 0.0;
    const double moved = 0.25 * of.loose;
    const double less = of.n > 4                      ? 0.25 * n
                        : of.largest < n - of.largest ? of.largest
                                                      : n - of.largest;
    const double tiles =
        cost->pair[k] * spec->n_q * (less * (n - less) + moved * n);
    const double waves =
        n_direction * (cost->step[k] + 2.0 * cost->body[k] * moved +
                       2.0 * cost->unit[k] * turned);
    return waves < tiles ? TSR_ENGINE_PLANE_WAVES : TSR_ENGINE_TILES;
}

tsr_status tsr_engine_device_new(const tsr_engine_spec *spec,
                                 const tsr_device *device,
                                 tsr_engine_choice choice, tsr_engine **out,
                                 tsr_err *err)
{
    return tsr_engine_choose(spec, &device->info, choice) ==
                   TSR_ENGINE_PLANE_WAVES
               ? tsr_engine_plane_wave_new(spec, device, 0, out, err)
               : tsr_engine_page_tile_new(spec, device, NULL, out, err);
}

double tsr_engine_room(const tsr_engine_spec *spec, const tsr_device *device,
                       tsr_engine_choice choice)
{
    tsr_page_tile_memory m;
    tsr_wave_engine e = {.device = device};
    float *direction = NULL;
    if (tsr_engine_choose(spec, &device->info, choice) == TSR_ENGINE_TILES)
        return tsr_page_tile_memory_needed(spec, device, NULL, &m, NULL) ==
                       TSR_OK
                   ? (double)m.most_systems
                   : 0.0;
    describe_shape(&e, spec, 0);
    tsr_status status = make_directions(&e, &direction, NULL);
    TSR_THEN(status, tsr_wave_find_units(&e, spec, NULL));
    const double room = status == TSR_OK ? (double)most_systems(&e) : 0.0;
    free(direction);
    free(e.band);
    free(e.unit);
    free(e.rim);
    free(e.run_end);
    free(e.units);
    return room;
}
