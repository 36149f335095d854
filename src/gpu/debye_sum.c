/* Host side of one-off sums: the list of units of work, their launches, and the
 * sum over types with form factors. The kernels are kernels/debye_sum_simt.cl
 * and debye_sum_simd.cl. */
#include "gpu/debye_sum.h"

#include "engine/engine.h"
#include "gpu/opencl.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct tsr_debye_sum {
    const tsr_device *device;
    tsr_debye_sum_options options;
    int n_q, has_weight;
    double dq, d_bound;
    int tile, pages, groups, stride; /* stride: pages of all groups */
    int n_sum;                       /* 4 with weights: 1, w_j, w_i, w_i w_j */
    int max_unit;
    size_t real_size;
    tsr_program program;
    cl_kernel kernel;
    cl_command_queue queue;
    cl_mem unit, result;
    cl_int (*host_unit)[4]; /* [max_unit] row, rows, column, columns */
    int *place;             /* [max_unit] which pair of types */
    void *host_result;      /* [max_unit][n_sum][stride] */
    char description[512];
};

enum {
    SIMT_TILE = 32,
    MAX_PAGES = 64,
    SIMT_PAGES = 40, /* weighted sums take twice the registers */
    RESULT_BYTES = 16 << 20,
    MAX_UNITS = 1 << 14
};

/* ---- making it ---- */

static int lanes(const tsr_debye_sum *s)
{
    int width = s->device->info.float_width;
    if (s->options.is_simt)
        return 1;
    width = width >= 16 ? 16 : width >= 8 ? 8 : 4;
    return s->options.use_double ? width / 2 : width;
}

static void shape(tsr_debye_sum *s)
{
    int most = s->options.max_pages, n = s->n_q - 1;
    if (most == 0)
        most = s->options.is_simt && s->has_weight ? SIMT_PAGES : MAX_PAGES;
    s->groups = (n + most - 1) / most;
    s->pages = ((n + s->groups - 1) / s->groups + 3) / 4 * 4;
    s->stride = s->groups * s->pages;
    s->n_sum = s->has_weight ? 4 : 1;
    s->tile = s->options.is_simt ? SIMT_TILE : lanes(s);
    s->real_size = s->options.use_double ? sizeof(double) : sizeof(float);
    size_t bytes = (size_t)s->n_sum * (size_t)s->stride * s->real_size;
    size_t units = RESULT_BYTES / bytes;
    s->max_unit = units < 1 ? 1 : units > MAX_UNITS ? MAX_UNITS : (int)units;
    if (s->options.units_a_launch > 0 &&
        s->options.units_a_launch < s->max_unit)
        s->max_unit = s->options.units_a_launch;
}

static tsr_status build(tsr_debye_sum *s, tsr_err *err)
{
    const tsr_device_info *info = &s->device->info;
    const char *source[] = {"page_tile.cl", s->options.is_simt
                                                ? "debye_sum_simt.cl"
                                                : "debye_sum_simd.cl"};
    char options[256];
    int is_short = tsr_is_short_range(s->dq, s->d_bound);
    const int groups = !s->options.is_simt && s->groups > 1 ? 0 : s->groups;
    snprintf(options, sizeof options,
             "-cl-std=CL1.2 -cl-mad-enable -DTILE=%d -DPAGES=%d -DGROUPS=%d "
             "-DLANES=%d -DSHORT_RANGE=%d -DWEIGHTED=%d -DUSE_DOUBLE=%d",
             s->tile, s->pages, groups, lanes(s), is_short, s->has_weight,
             s->options.use_double);
    tsr_status status =
        tsr_program_build(s->device, 2, source, options, &s->program, err);
    snprintf(
        s->description, sizeof s->description,
        "debye sum %s, %s precision; %.120s, driver %.60s; source %016llx; "
        "%s",
        s->options.is_simt ? "SIMT" : "SIMD",
        s->options.use_double ? "double" : "single", info->name, info->driver,
        (unsigned long long)s->program.source_hash, options);
    return status;
}

static tsr_status make_buffers(tsr_debye_sum *s, tsr_err *err)
{
    cl_int code;
    size_t n = (size_t)s->max_unit;
    size_t bytes = n * (size_t)s->n_sum * (size_t)s->stride * s->real_size;
    s->host_unit = calloc(n, sizeof *s->host_unit);
    s->place = calloc(n, sizeof *s->place);
    s->host_result = malloc(bytes);
    if (s->host_unit == NULL || s->place == NULL || s->host_result == NULL)
        return tsr_no_memory(err);
    s->queue =
        clCreateCommandQueue(s->device->context, s->device->id, 0, &code);
    if (s->queue == NULL)
        return tsr_cl_fail(err, s->device, "clCreateCommandQueue", code);
    s->kernel = clCreateKernel(s->program.program, "debye_sum", &code);
    if (s->kernel == NULL)
        return tsr_cl_fail(err, s->device, "clCreateKernel", code);
    s->unit = clCreateBuffer(s->device->context, CL_MEM_READ_ONLY,
                             n * sizeof *s->host_unit, NULL, &code);
    if (s->unit != NULL)
        s->result = clCreateBuffer(s->device->context, CL_MEM_WRITE_ONLY, bytes,
                                   NULL, &code);
    if (s->result == NULL)
        return tsr_cl_fail(err, s->device, "clCreateBuffer", code);
    return TSR_OK;
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
    s->device = device;
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
    else if (s->options.use_double && !info->has_double)
        status =
            tsr_fail(err, TSR_E_DEVICE,
                     "%s has no double precision (cl_khr_fp64)", info->name);
    if (status == TSR_OK) {
        shape(s);
        status = build(s, err);
    }
    TSR_THEN(status, make_buffers(s, err));
    if (status != TSR_OK) {
        tsr_debye_sum_free(s);
        return status;
    }
    *out = s;
    return TSR_OK;
}

void tsr_debye_sum_free(tsr_debye_sum *sum)
{
    if (sum == NULL)
        return;
    if (sum->result != NULL)
        clReleaseMemObject(sum->result);
    if (sum->unit != NULL)
        clReleaseMemObject(sum->unit);
    if (sum->kernel != NULL)
        clReleaseKernel(sum->kernel);
    if (sum->queue != NULL)
        clReleaseCommandQueue(sum->queue);
    tsr_program_clear(&sum->program);
    free(sum->host_unit);
    free(sum->place);
    free(sum->host_result);
    free(sum);
}

const char *tsr_debye_sum_describe(const tsr_debye_sum *sum)
{
    return sum->description;
}

tsr_debye_sum_shape tsr_debye_sum_get_shape(const tsr_debye_sum *sum)
{
    return (tsr_debye_sum_shape){.n_q = sum->n_q,
                                 .has_weight = sum->has_weight,
                                 .is_double = sum->options.use_double,
                                 .dq_inv_ang = sum->dq,
                                 .d_bound_ang = sum->d_bound,
                                 .device = sum->device->info.name};
}

/* One profile: particles in tiles by type, the list of units, what the device
 * gives back. */

enum {
    MAX_RUN = 64, /* tiles */
    UNITS_A_COMPUTE_UNIT = 64
};

/* The particles as the device sees them. */
typedef struct {
    int n_tile;
    int *type;   /* [n_tile] */
    int *count;  /* [n_tile] particles, the last of a type may have fewer */
    double *sum; /* [n_type][n_type][n_sum][stride] */
    cl_mem particle;
    int run;       /* tiles */
    double n_pair; /* of tiles, in all */
} layout;

/* ---- the particles ---- */

static void layout_clear(layout *l)
{
    if (l->particle != NULL)
        clReleaseMemObject(l->particle);
    free(l->type);
    free(l->count);
    free(l->sum);
}

static void put(const tsr_debye_sum *s, void *to, size_t at, const double *x,
                const double *centre, double weight)
{
    for (int c = 0; c < 4; c++) {
        double value = c < 3 ? x[c] - centre[c] : weight;
        if (s->options.use_double)
            ((double *)to)[4 * at + (size_t)c] = value;
        else
            ((float *)to)[4 * at + (size_t)c] = (float)value;
    }
}

/* Tiles of one type each; packed [n_tile * tile + tile][4]: what pads is at the
 * centre and is read, not counted. */
static void fill(const tsr_debye_sum *s, const tsr_debye_spec *spec,
                 const int *first, layout *l, void *packed)
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
        put(s, packed, at, spec->xyz[i], centre,
            spec->weight != NULL ? spec->weight[i] : 1.0);
    }
}

static tsr_status layout_make(const tsr_debye_sum *s,
                              const tsr_debye_spec *spec, layout *l,
                              tsr_err *err)
{
    size_t n_type = (size_t)spec->n_type;
    void *packed = NULL;
    cl_int code = CL_SUCCESS;
    tsr_status status = TSR_OK;
    int *first = calloc(n_type + 1, sizeof *first); /* tile of a type */
    TSR_TRY(tsr_allocated(first, err));
    for (int i = 0; i < spec->n; i++)
        first[spec->type[i] + 1]++;
    for (size_t t = 0; t < n_type; t++)
        first[t + 1] = first[t] + (first[t + 1] + s->tile - 1) / s->tile;
    l->n_tile = first[n_type];
    size_t n_slot = ((size_t)l->n_tile + 1) * (size_t)s->tile;
    l->type = calloc((size_t)l->n_tile, sizeof *l->type);
    l->count = calloc((size_t)l->n_tile, sizeof *l->count);
    l->sum = calloc(n_type * n_type * (size_t)s->n_sum * (size_t)s->stride,
                    sizeof *l->sum);
    packed = calloc(n_slot, 4 * s->real_size);
    if (l->type == NULL || l->count == NULL || l->sum == NULL ||
        packed == NULL) {
        status = tsr_no_memory(err);
        goto done;
    }
    fill(s, spec, first, l, packed);
    l->particle = clCreateBuffer(s->device->context,
                                 CL_MEM_READ_ONLY | CL_MEM_COPY_HOST_PTR,
                                 n_slot * 4 * s->real_size, packed, &code);
    if (l->particle == NULL)
        status = tsr_cl_fail(err, s->device, "clCreateBuffer", code);
    l->n_pair = 0.5 * l->n_tile * (l->n_tile + 1.0);
    double wanted =
        UNITS_A_COMPUTE_UNIT * fmax(1.0, s->device->info.compute_units);
    double run = floor(l->n_pair / wanted);
    l->run = run < 1.0 ? 1 : run > MAX_RUN ? MAX_RUN : (int)run;
    if (s->options.run > 0)
        l->run = s->options.run;
done:
    free(packed);
    free(first);
    return status;
}

/* ---- the work ---- */

/* Where the list of units stands: the next has row tile `row` and begins with
 * column tile `column`. */
typedef struct {
    int row, column;
    double n_done; /* pairs of tiles */
} cursor;

/* The next units of the list, at most max_unit. The diagonal tile of a row is a
 * unit of its own, since it counts once. Returns how many. */
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
        if (end == first) /* the diagonal */
            columns = l->count[end++];
        cl_int *u = s->host_unit[n];
        u[0] = at->row * s->tile;
        u[1] = l->count[at->row];
        u[2] = first * s->tile;
        u[3] = columns;
        s->place[n++] = l->type[at->row] * n_type + l->type[first];
        at->n_done += end - first;
        at->column = end;
        if (end > at->row) {
            at->row++;
            at->column = 0;
        }
    }
    return n;
}

/* All but the first unit of a launch. */
static cl_int set_arguments(const tsr_debye_sum *s, const layout *l)
{
    const cl_uint groups = (cl_uint)s->groups;
    const float single = (float)s->dq;
    cl_kernel k = s->kernel;
    cl_int code = clSetKernelArg(k, 0, sizeof s->unit, &s->unit);
    code |= clSetKernelArg(k, 2, sizeof l->particle, &l->particle);
    code |= clSetKernelArg(k, 3, sizeof s->result, &s->result);
    code |= s->options.use_double
                ? clSetKernelArg(k, 4, sizeof s->dq, &s->dq)
                : clSetKernelArg(k, 4, sizeof single, &single);
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
        (size_t)n * (size_t)s->n_sum * (size_t)s->stride * s->real_size;
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
                              : tsr_cl_fail(err, s->device, call, code);
}

/* Adds the launch's results, each tile off the diagonal twice. */
static void collect(const tsr_debye_sum *s, int n, layout *l)
{
    size_t row = (size_t)s->n_sum * (size_t)s->stride;
    for (int u = 0; u < n; u++) {
        const cl_int *unit = s->host_unit[u];
        double times = unit[0] == unit[2] ? 1.0 : 2.0;
        double *to = l->sum + (size_t)s->place[u] * row;
        if (s->options.use_double) {
            const double *from =
                (const double *)s->host_result + (size_t)u * row;
            for (size_t i = 0; i < row; i++)
                to[i] += times * from[i];
        } else {
            const float *from = (const float *)s->host_result + (size_t)u * row;
            for (size_t i = 0; i < row; i++)
                to[i] += times * (double)from[i];
        }
    }
}

/* ---- the profile ---- */

/* Number of particles of a type, sum of their weights, of the squares. */
typedef struct {
    double n, w, w2;
} totals;

static int is_weighted(const tsr_debye_spec *spec, int comp)
{
    return spec->weight != NULL && comp == spec->weighted;
}

/* What no distance changes: the page q = 0 and every particle with itself. */
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

/* Types t (rows) and u (columns): half of both orders of the components. */
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

static tsr_status finish(const tsr_debye_sum *s, const tsr_debye_spec *spec,
                         const layout *l, double *profile, tsr_err *err)
{
    int n_type = spec->n_type;
    size_t row = (size_t)s->n_sum * (size_t)s->stride;
    totals *t = calloc((size_t)n_type, sizeof *t);
    TSR_TRY(tsr_allocated(t, err));
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
    free(t);
    return TSR_OK;
}

tsr_status tsr_debye_sum_run(tsr_debye_sum *sum, const tsr_debye_spec *spec,
                             const tsr_debye_progress *progress,
                             double *profile, tsr_err *err)
{
    tsr_debye_sum *s = sum;
    layout l = {0};
    cursor at = {0};
    TSR_TRY(tsr_debye_check(spec, err));
    if (spec->n_q != s->n_q || spec->dq_inv_ang != s->dq ||
        (spec->weight != NULL) != s->has_weight)
        return tsr_fail(err, TSR_E_INTERNAL,
                        "Debye sum: made for %d q of step %g, asked for %d of "
                        "step %g",
                        s->n_q, s->dq, spec->n_q, spec->dq_inv_ang);
    if (s->d_bound > 0.0 &&
        tsr_is_distance_beyond(spec->n, spec->xyz, s->d_bound))
        return tsr_fail(err, TSR_E_RANGE,
                        "Debye sum: the particles are more than %.6g Angstrom "
                        "apart, which the q grid allows for",
                        s->d_bound);
    tsr_status status = layout_make(s, spec, &l, err);
    if (status == TSR_OK) {
        cl_int code = set_arguments(s, &l);
        if (code != CL_SUCCESS)
            status = tsr_cl_fail(err, s->device, "clSetKernelArg", code);
    }
    while (status == TSR_OK && at.row < l.n_tile) {
        int n = next_units(s, &l, spec->n_type, &at);
        status = launch(s, n, err);
        if (status == TSR_OK)
            collect(s, n, &l);
        if (status == TSR_OK && progress != NULL && progress->tell != NULL)
            status =
                progress->tell(progress->context, at.n_done / l.n_pair, err);
    }
    TSR_THEN(status, finish(s, spec, &l, profile, err));
    layout_clear(&l);
    return status;
}
