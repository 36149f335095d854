/* Single Debye profiles. First the host side of the device's sum: the list of
 * units of work, their launches, and the sum over types with form factors. The
 * kernels are kernels/debye_sum_simt.cl and debye_sum_simd.cl. Then its
 * self-test, and the choice between the methods. */
#include "gpu/debye_sum.h"

#include "core/clock.h"
#include "core/parallel.h"
#include "core/pool.h"
#include "gpu/opencl.h"
#include "molecule/points.h"

#include <math.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct tsr_debye_sum {
    tsr_pool pool;
    tsr_cl cl;
    pthread_mutex_t lock; /* guards kernel, queue and the buffers below */
    const tsr_device_info *info;
    tsr_debye_sum_options options;
    int n_q, has_weight;
    double dq, d_bound;
    int tile, pages, groups, stride; /* stride: pages of all groups */
    int n_sum;                       /* sums of a unit: 1, or 4 with weights
                                        (factors 1, w_j, w_i, w_i w_j) */
    int max_unit;
    tsr_program program;
    cl_kernel kernel;
    cl_command_queue queue;
    cl_mem unit, result;
    cl_int (*host_unit)[4]; /* [max_unit] first row, number of rows, first
                               column, number of columns */
    int *type_pair;         /* [max_unit] index of the pair of types */
    float *host_result;     /* [max_unit][n_sum][stride] */
    char description[512];
};

enum {
    SIMT_TILE = 32,
    MAX_PAGES = 64,
    SIMT_PAGES = 40, /* weighted sums use twice the registers */
    RESULT_BYTES = 16 << 20,
    MAX_UNITS = 1 << 14
};

/* ---- setup ---- */

static int lanes(const tsr_debye_sum *s)
{
    int width = s->info->float_width;
    if (s->options.is_simt)
        return 1;
    return width >= 16 ? 16 : width >= 8 ? 8 : 4;
}

static void set_shape(tsr_debye_sum *s)
{
    int most = s->options.max_pages, n = s->n_q - 1;
    if (most == 0)
        most = s->options.is_simt && s->has_weight ? SIMT_PAGES : MAX_PAGES;
    s->groups = (n + most - 1) / most;
    s->pages = ((n + s->groups - 1) / s->groups + 3) / 4 * 4;
    s->stride = s->groups * s->pages;
    s->n_sum = s->has_weight ? 4 : 1;
    s->tile = s->options.is_simt ? SIMT_TILE : lanes(s);
    size_t bytes = (size_t)s->n_sum * (size_t)s->stride * sizeof(float);
    size_t units = RESULT_BYTES / bytes;
    s->max_unit = units < 1 ? 1 : units > MAX_UNITS ? MAX_UNITS : (int)units;
    if (s->options.units_a_launch > 0 &&
        s->options.units_a_launch < s->max_unit)
        s->max_unit = s->options.units_a_launch;
}

static tsr_status build(tsr_debye_sum *s, tsr_err *err)
{
    const char *source[] = {"page_tile.cl", s->options.is_simt
                                                ? "debye_sum_simt.cl"
                                                : "debye_sum_simd.cl"};
    char options[256];
    int is_short = tsr_is_short_range(s->dq, s->d_bound);
    const int groups = !s->options.is_simt && s->groups > 1 ? 0 : s->groups;
    snprintf(options, sizeof options,
             "-cl-std=CL1.2 -cl-mad-enable -DTILE=%d -DPAGES=%d -DGROUPS=%d "
             "-DLANES=%d -DSHORT_RANGE=%d -DWEIGHTED=%d",
             s->tile, s->pages, groups, lanes(s), is_short, s->has_weight);
    TSR_TRY(
        tsr_program_build(s->cl.device, 2, source, options, &s->program, err));
    const int n = snprintf(s->description, sizeof s->description,
                           "debye sum %s, single precision; ",
                           s->options.is_simt ? "SIMT" : "SIMD");
    tsr_program_describe(&s->program, s->cl.device, options, s->description + n,
                         sizeof s->description - (size_t)n);
    return TSR_OK;
}

static tsr_status make_buffers(tsr_debye_sum *s, tsr_err *err)
{
    const size_t n = (size_t)s->max_unit;
    const size_t bytes =
        n * (size_t)s->n_sum * (size_t)s->stride * sizeof(float);
    tsr_pool_array(&s->pool, s->host_unit, n);
    tsr_pool_array(&s->pool, s->type_pair, n);
    s->host_result = tsr_pool_new(&s->pool, bytes, 1);
    TSR_TRY(tsr_pool_check(&s->pool, err));
    s->queue = tsr_cl_queue(&s->cl, 0);
    s->kernel = tsr_cl_kernel(&s->cl, &s->program, "debye_sum");
    s->unit =
        tsr_cl_buffer(&s->cl, CL_MEM_READ_ONLY, n * sizeof *s->host_unit, NULL);
    s->result = tsr_cl_buffer(&s->cl, CL_MEM_WRITE_ONLY, bytes, NULL);
    return tsr_cl_check(&s->cl, err);
}

tsr_status tsr_debye_sum_new(const tsr_device *device, int n_q,
                             double dq_inv_ang, int has_weight,
                             double d_bound_ang,
                             const tsr_debye_sum_options *options,
                             tsr_debye_sum **out, tsr_err *err)
{
    const tsr_device_info *info = &device->info;
    *out = NULL;
    tsr_debye_sum *s = calloc(1, sizeof *s);
    TSR_TRY(tsr_allocated(s, err));
    pthread_mutex_init(&s->lock, NULL);
    s->cl.device = device;
    s->info = info;
    s->n_q = n_q;
    s->dq = dq_inv_ang;
    s->has_weight = has_weight != 0;
    s->d_bound = d_bound_ang;
    if (options != NULL)
        s->options = *options;
    s->options.is_simt |= info->type != TSR_DEVICE_CPU;
    tsr_status status = TSR_OK;
    if (n_q < 2 || !(dq_inv_ang > 0.0) || s->options.max_pages > MAX_PAGES)
        status = tsr_fail(err, TSR_E_INTERNAL,
                          "Debye sum: %d q of step %g, %d pages a group", n_q,
                          dq_inv_ang, s->options.max_pages);
    if (status == TSR_OK) {
        set_shape(s);
        status = build(s, err);
    }
    TSR_THEN(status, make_buffers(s, err));
    TSR_HAND_OVER(status, s, out, tsr_debye_sum_free);
}

void tsr_debye_sum_free(tsr_debye_sum *sum)
{
    if (sum == NULL)
        return;
    tsr_cl_clear(&sum->cl);
    tsr_program_clear(&sum->program);
    tsr_pool_clear(&sum->pool);
    pthread_mutex_destroy(&sum->lock);
    free(sum);
}

const char *tsr_debye_sum_describe(const tsr_debye_sum *sum)
{
    return sum->description;
}

/* ---- one profile: tiles of particles, units of work, results ---- */

enum {
    MAX_RUN = 64, /* in tiles */
    UNITS_A_COMPUTE_UNIT = 64
};

/* The particles in the order of the device. */
typedef struct {
    tsr_pool pool;
    tsr_cl cl;
    int n_tile;
    int *type;   /* [n_tile] */
    int *count;  /* [n_tile] particles of each tile; the last tile of a type may
                    be incomplete */
    double *sum; /* [n_type][n_type][n_sum][stride] */
    cl_mem particle;
    int run;       /* columns of a unit, in tiles */
    double n_pair; /* total number of tile pairs */
} layout;

/* ---- the particles ---- */

static void store_particle(float *to, const double *x, const double *centre,
                           double weight)
{
    for (int c = 0; c < 3; c++)
        to[c] = (float)(x[c] - centre[c]);
    to[3] = (float)weight;
}

/* Sorts particles into tiles of one type each. packed [n_tile * tile + tile][4]
 * out. Padding lies at the centre; it is read, but not counted. */
static void pack_particles(const tsr_debye_sum *s, const tsr_debye_spec *spec,
                           const int *first, layout *l, float *packed)
{
    double centre[3] = {0.0, 0.0, 0.0};
    for (int i = 0; i < spec->n; i++)
        for (int c = 0; c < 3; c++)
            centre[c] += spec->xyz[i][c] / spec->n;
    memset(l->count, 0, (size_t)l->n_tile * sizeof *l->count);
    for (int t = 0; t < spec->n_type; t++)
        for (int tile = first[t]; tile < first[t + 1]; tile++)
            l->type[tile] = t;
    for (int i = 0; i < spec->n; i++) {
        int tile = first[spec->type[i]];
        while (l->count[tile] == s->tile)
            tile++;
        size_t at = (size_t)tile * (size_t)s->tile + (size_t)l->count[tile]++;
        store_particle(packed + 4 * at, spec->xyz[i], centre,
                       spec->weight != NULL ? spec->weight[i] : 1.0);
    }
}

static tsr_status layout_make(const tsr_debye_sum *s,
                              const tsr_debye_spec *spec, layout *l,
                              tsr_err *err)
{
    const size_t n_type = (size_t)spec->n_type;
    int *first; /* [n_type + 1] first tile of each type */
    l->cl.device = s->cl.device;
    tsr_pool_array(&l->pool, first, n_type + 1);
    TSR_TRY(tsr_pool_check(&l->pool, err));
    for (int i = 0; i < spec->n; i++)
        first[spec->type[i] + 1]++;
    for (size_t t = 0; t < n_type; t++)
        first[t + 1] = first[t] + (first[t + 1] + s->tile - 1) / s->tile;
    l->n_tile = first[n_type];
    const size_t n_slot = ((size_t)l->n_tile + 1) * (size_t)s->tile;
    tsr_pool_array(&l->pool, l->type, l->n_tile);
    tsr_pool_array(&l->pool, l->count, l->n_tile);
    tsr_pool_array(&l->pool, l->sum,
                   n_type * n_type * (size_t)s->n_sum * (size_t)s->stride);
    float *packed = tsr_pool_new(&l->pool, n_slot, 4 * sizeof *packed);
    TSR_TRY(tsr_pool_check(&l->pool, err));
    pack_particles(s, spec, first, l, packed);
    l->particle = tsr_cl_buffer(&l->cl, CL_MEM_READ_ONLY,
                                n_slot * 4 * sizeof *packed, packed);
    tsr_pool_free(&l->pool, packed);
    l->n_pair = 0.5 * l->n_tile * (l->n_tile + 1.0);
    const double wanted =
        UNITS_A_COMPUTE_UNIT * fmax(1.0, s->info->compute_units);
    const double run = floor(l->n_pair / wanted);
    l->run = run < 1.0 ? 1 : run > MAX_RUN ? MAX_RUN : (int)run;
    if (s->options.run > 0)
        l->run = s->options.run;
    return tsr_cl_check(&l->cl, err);
}

/* ---- the work ---- */

/* Position in the list of units: the next unit has row tile `row` and starts at
 * column tile `column`. */
typedef struct {
    int row, column;
    double n_done; /* pairs of tiles in the list so far */
} cursor;

/* Writes the next units, at most max_unit, and returns their number. The
 * diagonal tile of a row is a unit by itself, because its pairs count once. */
static int next_units(const tsr_debye_sum *s, const layout *l, int n_type,
                      cursor *at)
{
    int n = 0;
    while (n < s->max_unit && at->row < l->n_tile) {
        int first = at->column, end = first;
        int columns = 0;
        while (end < at->row && end - first < l->run &&
               l->type[end] == l->type[first])
            columns += l->count[end++];
        if (end == first) /* diagonal tile */
            columns = l->count[end++];
        cl_int *u = s->host_unit[n];
        u[0] = at->row * s->tile;
        u[1] = l->count[at->row];
        u[2] = first * s->tile;
        u[3] = columns;
        s->type_pair[n++] = l->type[at->row] * n_type + l->type[first];
        at->n_done += end - first;
        at->column = end;
        if (end > at->row) {
            at->row++;
            at->column = 0;
        }
    }
    return n;
}

/* Sets all arguments but the index of the first unit. */
static cl_int set_arguments(const tsr_debye_sum *s, const layout *l)
{
    const cl_uint groups = (cl_uint)s->groups;
    const float dq = (float)s->dq;
    cl_kernel k = s->kernel;
    cl_int code = clSetKernelArg(k, 0, sizeof s->unit, &s->unit);
    code |= clSetKernelArg(k, 2, sizeof l->particle, &l->particle);
    code |= clSetKernelArg(k, 3, sizeof s->result, &s->result);
    code |= clSetKernelArg(k, 4, sizeof dq, &dq);
    code |= clSetKernelArg(k, 5, sizeof groups, &groups);
    return code;
}

static tsr_status launch(const tsr_debye_sum *s, int n, tsr_err *err)
{
    const cl_int zero = 0;
    size_t width = s->options.is_simt ? (size_t)s->tile : 1;
    size_t global[2] = {(size_t)n * width, (size_t)s->groups};
    size_t local[2] = {width, 1};
    size_t bytes =
        (size_t)n * (size_t)s->n_sum * (size_t)s->stride * sizeof(float);
    const char *call = "clEnqueueWriteBuffer";
    cl_int code = clEnqueueWriteBuffer(s->queue, s->unit, CL_TRUE, 0,
                                       (size_t)n * sizeof *s->host_unit,
                                       s->host_unit, 0, NULL, NULL);
    if (code == CL_SUCCESS) {
        call = "clEnqueueNDRangeKernel (Debye sum)";
        code = clSetKernelArg(s->kernel, 1, sizeof zero, &zero);
    }
    if (code == CL_SUCCESS)
        code = clEnqueueNDRangeKernel(s->queue, s->kernel, 2, NULL, global,
                                      local, 0, NULL, NULL);
    if (code == CL_SUCCESS) {
        call = "clEnqueueReadBuffer (Debye sum)";
        code = clEnqueueReadBuffer(s->queue, s->result, CL_TRUE, 0, bytes,
                                   s->host_result, 0, NULL, NULL);
    }
    return code == CL_SUCCESS ? TSR_OK
                              : tsr_cl_fail(err, s->cl.device, call, code);
}

/* Adds the results of a launch; tiles off the diagonal count twice. */
static void add_results(const tsr_debye_sum *s, int n, layout *l)
{
    size_t row = (size_t)s->n_sum * (size_t)s->stride;
    for (int u = 0; u < n; u++) {
        const cl_int *unit = s->host_unit[u];
        double times = unit[0] == unit[2] ? 1.0 : 2.0;
        double *to = l->sum + (size_t)s->type_pair[u] * row;
        const float *from = s->host_result + (size_t)u * row;
        for (size_t i = 0; i < row; i++)
            to[i] += times * (double)from[i];
    }
}

/* ---- the profile ---- */

/* For one type: number of particles, sum of weights, sum of squared weights. */
typedef struct {
    double n, w, w2;
} totals;

static int is_weighted(const tsr_debye_spec *spec, int comp)
{
    return spec->weight != NULL && comp == spec->weighted;
}

/* The terms without a distance: q = 0, and every particle with itself. */
static void add_constants(const tsr_debye_spec *spec, const totals *t, int a,
                          int b, double *profile)
{
    double sum_a = 0.0, sum_b = 0.0;
    for (int i = 0; i < spec->n_type; i++) {
        const double *fa = tsr_debye_factor(spec, a, i);
        const double *fb = tsr_debye_factor(spec, b, i);
        int power = is_weighted(spec, a) + is_weighted(spec, b);
        double n = power == 2 ? t[i].w2 : power == 1 ? t[i].w : t[i].n;
        sum_a += fa[0] * (is_weighted(spec, a) ? t[i].w : t[i].n);
        sum_b += fb[0] * (is_weighted(spec, b) ? t[i].w : t[i].n);
        for (int k = 1; k < spec->n_q; k++)
            profile[k] += n * fa[k] * fb[k];
    }
    profile[0] = sum_a * sum_b;
}

/* Adds the terms of types t (rows) and u (columns): the mean of both ways to
 * assign components a and b to rows and columns. */
static void add_types(const tsr_debye_sum *s, const tsr_debye_spec *spec,
                      const double *sum, int t, int u, int a, int b,
                      double *profile)
{
    const double *at = tsr_debye_factor(spec, a, t);
    const double *bt = tsr_debye_factor(spec, b, t);
    const double *au = tsr_debye_factor(spec, a, u);
    const double *bu = tsr_debye_factor(spec, b, u);
    int wa = is_weighted(spec, a), wb = is_weighted(spec, b);
    const double *ab = sum + (size_t)(2 * wa + wb) * (size_t)s->stride;
    const double *ba = sum + (size_t)(2 * wb + wa) * (size_t)s->stride;
    for (int k = 1; k < spec->n_q; k++)
        profile[k] += 0.5 / (k * spec->dq_inv_ang) *
                      (at[k] * bu[k] * ab[k - 1] + bt[k] * au[k] * ba[k - 1]);
}

static tsr_status assemble_profile(const tsr_debye_sum *s,
                                   const tsr_debye_spec *spec, layout *l,
                                   double *profile, tsr_err *err)
{
    int n_type = spec->n_type;
    size_t row = (size_t)s->n_sum * (size_t)s->stride;
    totals *t;
    tsr_pool_array(&l->pool, t, n_type);
    TSR_TRY(tsr_pool_check(&l->pool, err));
    for (int i = 0; i < spec->n; i++) {
        double w = spec->weight != NULL ? spec->weight[i] : 1.0;
        totals *to = &t[spec->type[i]];
        to->n += 1.0, to->w += w, to->w2 += w * w;
    }
    memset(profile, 0,
           (size_t)tsr_debye_n_pair(spec) * (size_t)spec->n_q *
               sizeof *profile);
    for (int a = 0; a < spec->n_comp; a++)
        for (int b = a; b < spec->n_comp; b++, profile += spec->n_q) {
            for (int i = 0; i < n_type; i++)
                for (int j = 0; j < n_type; j++)
                    add_types(
                        s, spec,
                        l->sum + ((size_t)i * (size_t)n_type + (size_t)j) * row,
                        i, j, a, b, profile);
            add_constants(spec, t, a, b, profile);
        }
    return TSR_OK;
}

/* Computes the sums over the pairs of each two types. */
static tsr_status sum_pairs(tsr_debye_sum *s, int n_type, layout *l,
                            const tsr_debye_progress *progress, tsr_err *err)
{
    cursor at = {0};
    tsr_status status =
        tsr_cl_status(err, s->cl.device, "clSetKernelArg", set_arguments(s, l));
    while (status == TSR_OK && at.row < l->n_tile) {
        int n = next_units(s, l, n_type, &at);
        status = launch(s, n, err);
        if (status == TSR_OK)
            add_results(s, n, l);
        TSR_THEN(status,
                 tsr_debye_report(progress, at.n_done / l->n_pair, err));
    }
    return status;
}

tsr_status tsr_debye_sum_run(tsr_debye_sum *sum, const tsr_debye_spec *spec,
                             const tsr_debye_progress *progress,
                             double *profile, tsr_err *err)
{
    tsr_debye_sum *s = sum;
    layout l = {0};
    TSR_TRY(tsr_debye_check(spec, err));
    if (spec->n_q != s->n_q || spec->dq_inv_ang != s->dq ||
        (spec->weight != NULL) != s->has_weight)
        return tsr_fail(
            err, TSR_E_INTERNAL,
            "Debye sum: set up for %d q of step %g, called with %d of step %g",
            s->n_q, s->dq, spec->n_q, spec->dq_inv_ang);
    if (s->d_bound > 0.0 &&
        tsr_is_distance_beyond(spec->n, spec->xyz, s->d_bound))
        return tsr_fail(err, TSR_E_RANGE,
                        "Debye sum: particles are more than %.6g Angstrom "
                        "apart, the limit of the q grid",
                        s->d_bound);
    tsr_status status = layout_make(s, spec, &l, err);
    pthread_mutex_lock(&s->lock);
    TSR_THEN(status, sum_pairs(s, spec->n_type, &l, progress, err));
    pthread_mutex_unlock(&s->lock);
    TSR_THEN(status, assemble_profile(s, spec, &l, profile, err));
    tsr_cl_clear(&l.cl);
    tsr_pool_clear(&l.pool);
    return status;
}

/* ---- self-test ----
 *
 * Compares the program, on its own grid, with the Debye formula in double
 * precision. */

enum { N_PARTICLE = 150, N_TYPE = 3, N_COMP = 2, N_PAIR = 3 };

static const double limit = 2e-5;

static double uniform(uint64_t *state)
{
    *state =
        *state * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
    return (double)(*state >> 11) * 0x1p-53;
}

typedef struct {
    double xyz[N_PARTICLE][3], weight[N_PARTICLE];
    int type[N_PARTICLE];
    double *factor;          /* [N_COMP][N_TYPE][n_q] */
    double *profile, *exact; /* [N_PAIR][n_q] */
} sample;

/* Amplitudes are positive, so the self terms keep I(q) away from zero. */
static void make_sample(sample *s, int n_q, double diameter)
{
    uint64_t state = 20131013;
    for (int i = 0; i < N_PARTICLE; i++) {
        for (int c = 0; c < 3; c++)
            s->xyz[i][c] = diameter / sqrt(3.0) * uniform(&state);
        s->weight[i] = uniform(&state);
        s->type[i] = i < 3 ? i : i % (N_TYPE - 1);
    }
    for (int row = 0; row < N_COMP * N_TYPE; row++)
        for (int k = 0; k < n_q; k++)
            s->factor[row * n_q + k] = 5.0 + row + cos(0.1 * k);
}

/* Largest relative error of I(q). */
static tsr_status worst_error(tsr_debye_sum *sum, sample *s, double *worst,
                              tsr_err *err)
{
    make_sample(s, sum->n_q, sum->d_bound > 0.0 ? sum->d_bound : 50.0);
    const tsr_debye_spec spec = {.n = N_PARTICLE,
                                 .n_type = N_TYPE,
                                 .n_comp = N_COMP,
                                 .n_q = sum->n_q,
                                 .dq_inv_ang = sum->dq,
                                 .xyz = (const double(*)[3])s->xyz,
                                 .type = s->type,
                                 .weight = sum->has_weight ? s->weight : NULL,
                                 .weighted = 1,
                                 .form_factor = s->factor};
    TSR_TRY(tsr_debye_sum_run(sum, &spec, NULL, s->profile, err));
    TSR_TRY(tsr_debye_reference(&spec, NULL, s->exact, err));
    for (int k = 0; k < N_PAIR * sum->n_q; k++) {
        const double error = fabs(s->profile[k] / s->exact[k] - 1.0);
        if (!(error <= *worst)) /* unlike fmax, this keeps a NaN */
            *worst = error;
    }
    return TSR_OK;
}

tsr_status tsr_debye_sum_test(tsr_debye_sum *sum, double *max_rel_error,
                              tsr_err *err)
{
    double worst = 0.0;
    tsr_pool pool = {0};
    sample s;
    tsr_pool_array(&pool, s.factor, N_COMP * N_TYPE * sum->n_q);
    tsr_pool_array(&pool, s.profile, N_PAIR * sum->n_q);
    tsr_pool_array(&pool, s.exact, N_PAIR * sum->n_q);
    tsr_status status = tsr_pool_check(&pool, err);
    TSR_THEN(status, worst_error(sum, &s, &worst, err));
    tsr_pool_clear(&pool);
    if (max_rel_error != NULL)
        *max_rel_error = worst;
    if (status != TSR_OK || worst <= limit)
        return status;
    return tsr_fail(err, TSR_E_DEVICE,
                    "%s fails the self-test of the Debye sum: a relative "
                    "error of I(q) of %.2e; %.0e is allowed. Do not use "
                    "this device or driver, or give --device reference",
                    sum->info->name, worst, limit);
}

/* ---- the fastest method ---- */

/* The conformations of a molecule have few grids, since diameters are rounded
 * up to steps. */
enum { N_PROGRAM = 8 };

struct tsr_profile_sum {
    tsr_pool pool;
    char *device_name;
    tsr_device *device;        /* NULL: not opened, or the reference */
    tsr_profile_method method; /* requested */
    int used; /* 1 << method of the last sum; of all sums that were announced */
    int no_grid;
    tsr_method_speed speed;
    int n_expected; /* molecules announced; 0: unknown */
    /* Guards device, used, the programs and their users. A program is replaced
     * when it has no user. */
    pthread_mutex_t lock;
    pthread_cond_t is_left;           /* a program has lost a user */
    tsr_debye_sum *direct[N_PROGRAM]; /* programs by grid; NULL: none */
    int n_user[N_PROGRAM];
    int last; /* index of the program used last */
};

static int is_reference(const tsr_profile_sum *s)
{
    return strcmp(s->device_name, "reference") == 0;
}

static tsr_status open_device(tsr_profile_sum *s, tsr_err *err)
{
    return s->device != NULL || is_reference(s)
               ? TSR_OK
               : tsr_device_open(s->device_name, &s->device, err);
}

tsr_status tsr_profile_sum_new(const char *device, tsr_profile_method method,
                               int no_grid, tsr_profile_sum **out, tsr_err *err)
{
    *out = NULL;
    tsr_profile_sum *s = calloc(1, sizeof *s);
    TSR_TRY(tsr_allocated(s, err));
    s->method = method;
    s->no_grid = no_grid;
    s->speed = tsr_method_speed_here();
    pthread_mutex_init(&s->lock, NULL);
    pthread_cond_init(&s->is_left, NULL);
    s->device_name = tsr_pool_text(&s->pool, device);
    tsr_status status = tsr_pool_check(&s->pool, err);
    if (status == TSR_OK && strcmp(device, "auto") != 0)
        status = open_device(s, err);
    TSR_HAND_OVER(status, s, out, tsr_profile_sum_free);
}

void tsr_profile_sum_free(tsr_profile_sum *sum)
{
    if (sum == NULL)
        return;
    for (int k = 0; k < N_PROGRAM; k++)
        tsr_debye_sum_free(sum->direct[k]);
    tsr_device_free(sum->device);
    tsr_pool_clear(&sum->pool);
    pthread_cond_destroy(&sum->is_left);
    pthread_mutex_destroy(&sum->lock);
    free(sum);
}

void tsr_profile_sum_expect(tsr_profile_sum *sum, int n)
{
    const int at_once = n < sum->speed.n_thread ? n : sum->speed.n_thread;
    sum->n_expected = n;
    sum->speed.memory_bytes = tsr_method_speed_here().memory_bytes / at_once;
}

const char *tsr_profile_sum_describe(const tsr_profile_sum *sum)
{
    const tsr_debye_sum *first = sum->direct[sum->last];
    for (int k = 0; sum->n_expected > 0 && k < N_PROGRAM; k++)
        if (sum->direct[k] != NULL && sum->direct[k]->d_bound < first->d_bound)
            first = sum->direct[k];
    if (sum->used & 1 << TSR_METHOD_DIRECT)
        return first != NULL ? tsr_debye_sum_describe(first)
                             : "reference, double precision";
    return sum->used & 1 << TSR_METHOD_FFT
               ? "grid FFT on the host, double precision"
               : "plane waves on the host, double precision";
}

/* The index of the program for a grid, or of the one to replace. */
static int find_program(const tsr_profile_sum *s, double d_bound, int n_q)
{
    for (int k = 0; k < N_PROGRAM; k++)
        if (s->direct[k] != NULL && s->direct[k]->d_bound == d_bound &&
            s->direct[k]->n_q == n_q)
            return k;
    return s->direct[s->last] == NULL ? s->last : (s->last + 1) % N_PROGRAM;
}

static int has_program(const tsr_profile_sum *s, double d_bound, int n_q)
{
    const tsr_debye_sum *d = s->direct[find_program(s, d_bound, n_q)];
    return d != NULL && d->d_bound == d_bound && d->n_q == n_q;
}

/* Speed of a direct sum, for each pair and q: on one core in double precision,
 * on the cores with PoCL, or on a GPU, scaled by compute units from an H200.
 * start_s: time to open the device, build the program and test it. */
static void direct_speed(const tsr_profile_sum *s, double d_bound, int n_q,
                         tsr_method_speed *speed)
{
    static const double core_s = 3e-9, lanes_s = 1.2e-10, gpu_s = 2.5e-13;
    static const double open_s = 0.2, build_s = 0.15, gpu_units = 132.0;
    speed->pair_s = core_s;
    speed->start_s = 0.0;
    if (is_reference(s))
        return;
    const tsr_device_info *info =
        s->device != NULL ? tsr_device_get_info(s->device) : NULL;
    speed->pair_s = lanes_s / speed->n_thread;
    if (info != NULL && info->type != TSR_DEVICE_CPU)
        speed->pair_s = gpu_s * gpu_units / fmax(1.0, info->compute_units);
    if (s->n_expected > 0) {
        const int is_auto = strcmp(s->device_name, "auto") == 0;
        speed->start_s = ((is_auto ? open_s : 0.0) + build_s) / s->n_expected;
        return;
    }
    speed->start_s = (s->device == NULL ? open_s : 0.0) +
                     (has_program(s, d_bound, n_q) ? 0.0 : build_s);
}

static void predict_seconds(const tsr_profile_sum *s,
                            const tsr_debye_spec *spec, double d,
                            double d_bound, tsr_method_speed *speed,
                            double seconds[TSR_N_METHOD])
{
    direct_speed(s, d_bound, spec->n_q, speed);
    for (int k = 0; k < TSR_N_METHOD; k++)
        seconds[k] = tsr_method_seconds((tsr_profile_method)k, spec, d, speed);
    if (s->no_grid)
        seconds[TSR_METHOD_FFT] = (double)INFINITY;
}

/* Chooses the fastest method, or the one requested. An automatic device is
 * opened for a better prediction only if the host would take longer than
 * opening it. */
static tsr_status choose_method(tsr_profile_sum *s, const tsr_debye_spec *spec,
                                double d, double d_bound, tsr_log *log,
                                tsr_profile_sum_result *out, tsr_err *err)
{
    tsr_method_speed speed = s->speed;
    double seconds[TSR_N_METHOD];
    predict_seconds(s, spec, d, d_bound, &speed, seconds);
    double host = fmin(seconds[TSR_METHOD_FFT], seconds[TSR_METHOD_QUADRATURE]);
    if (s->method == TSR_METHOD_DIRECT ||
        (s->method == TSR_METHOD_AUTO && host > speed.start_s)) {
        TSR_TRY(open_device(s, err));
        predict_seconds(s, spec, d, d_bound, &speed, seconds);
    }
    int fastest = TSR_METHOD_DIRECT;
    for (int k = 0; k < TSR_N_METHOD && !is_reference(s); k++)
        fastest = seconds[k] < seconds[fastest] ? k : fastest;
    out->method =
        s->method != TSR_METHOD_AUTO ? s->method : (tsr_profile_method)fastest;
    out->predicted_s = seconds[out->method];
    for (int k = 0; k < TSR_N_METHOD; k++)
        tsr_debug(log, "%s: some %.3g s",
                  tsr_profile_method_name((tsr_profile_method)k), seconds[k]);
    return TSR_OK;
}

static tsr_status make_direct(tsr_profile_sum *s, const tsr_debye_spec *spec,
                              double d_bound, tsr_err *err)
{
    int at = find_program(s, d_bound, spec->n_q);
    while (!has_program(s, d_bound, spec->n_q) && s->n_user[at] > 0) {
        pthread_cond_wait(&s->is_left, &s->lock);
        at = find_program(s, d_bound, spec->n_q);
    }
    s->last = at;
    if (has_program(s, d_bound, spec->n_q))
        return TSR_OK;
    tsr_debye_sum_free(s->direct[s->last]);
    s->direct[s->last] = NULL;
    TSR_TRY(tsr_debye_sum_new(s->device, spec->n_q, spec->dq_inv_ang,
                              spec->weight != NULL, d_bound, NULL,
                              &s->direct[s->last], err));
    return tsr_debye_sum_test(s->direct[s->last], NULL, err);
}

tsr_status tsr_profile_sum_run(tsr_profile_sum *sum, const tsr_debye_spec *spec,
                               double d_ang, double d_bound_ang, tsr_log *log,
                               const tsr_debye_progress *progress,
                               double *profile, tsr_profile_sum_result *result,
                               tsr_err *err)
{
    pthread_mutex_lock(&sum->lock);
    tsr_status status =
        choose_method(sum, spec, d_ang, d_bound_ang, log, result, err);
    const int is_direct = result->method == TSR_METHOD_DIRECT;
    const int is_device = is_direct && sum->device != NULL;
    if (is_device)
        TSR_THEN(status, make_direct(sum, spec, d_bound_ang, err));
    sum->used = (sum->n_expected > 0 ? sum->used : 0) | 1 << result->method;
    const int at = sum->last;
    sum->n_user[at] += is_device;
    pthread_mutex_unlock(&sum->lock);
    double started = tsr_clock_s();
    if (is_device) {
        TSR_THEN(status, tsr_debye_sum_run(sum->direct[at], spec, progress,
                                           profile, err));
        pthread_mutex_lock(&sum->lock);
        sum->n_user[at]--;
        pthread_cond_broadcast(&sum->is_left);
        pthread_mutex_unlock(&sum->lock);
    } else if (!is_direct)
        TSR_THEN(status, tsr_method_run(result->method, spec, d_ang,
                                        tsr_parallel_processors(), progress,
                                        profile, err));
    else
        TSR_THEN(status, tsr_debye_reference(spec, progress, profile, err));
    result->seconds = tsr_clock_s() - started;
    return status;
}
