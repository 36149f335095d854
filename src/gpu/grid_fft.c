/* Host side of the grid on a device: lists of particles by tile, buffers,
 * launches. The kernels are kernels/grid_fft.cl, the transforms gpu/fft.h's;
 * box, spreading kernel, curves and window are scattering/grid_plan.h's. */
#include "gpu/grid_fft.h"

#include "core/clock.h"
#include "gpu/fft.h"
#include "scattering/grid_sum.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
    SIDE = TSR_GRID_WIDTH, /* of a tile, as in the kernel */
    MODES = 4,             /* of a work-group of spreading */
    LANES = 64,
    BLOCKS = 128 /* of distances */
};

enum { SPREAD, AMPLITUDE, SHELLS, PROFILE, N_KERNEL };
static const char *const kernel_name[N_KERNEL] = {
    "grid_spread", "grid_amplitude", "grid_shells", "grid_profile"};

/* Buffers, which grow with what is asked for. */
enum {
    GRID,
    SHELL,
    UNIT,
    PARTIAL,
    PARTICLE,
    TYPE,
    FIRST,
    VALUE,
    PIECE,
    AXIS,
    CURVE,
    N_BUFFER
};

struct tsr_grid_fft {
    const tsr_device *device;
    tsr_program program;
    cl_command_queue queue;
    cl_kernel kernel[N_KERNEL];
    cl_mem buffer[N_BUFFER];
    size_t bytes[N_BUFFER];
    tsr_fft *fft;
    tsr_grid_fft_seconds seconds;
    char description[512];
};

/* One molecule. */
typedef struct {
    const tsr_debye_spec *spec;
    tsr_factor_modes modes;
    tsr_grid_plan plan;
    int n_pair, n_shell;
    cl_int n[4], tiles[4]; /* points, and complex numbers of a row; tiles */
    cl_ulong volume;       /* complex numbers of a mode */
    double (*particle)[4]; /* [n] in the order of cells */
    cl_int *type;          /* [n] likewise */
    cl_int *first;         /* [n_cell + 1] */
    int n_cell;
} job;

/* ---- making it ---- */

int tsr_grid_fft_fits(const tsr_device_info *info, double bytes)
{
    return info->has_double && info->has_int64_atomics &&
           bytes <= (double)info->max_alloc_bytes &&
           1.2 * bytes <= (double)info->global_bytes;
}

static tsr_status build(tsr_grid_fft *g, tsr_err *err)
{
    const char *source[] = {"grid_fft.cl", "fft.cl"};
    const tsr_device_info *info = &g->device->info;
    char options[64];
    cl_int code;
    snprintf(options, sizeof options, "-cl-std=CL1.2 -DMODES=%d", MODES);
    TSR_TRY(tsr_program_build(g->device, 2, source, options, &g->program, err));
    TSR_TRY(tsr_fft_new(g->device, g->program.program, &g->fft, err));
    snprintf(g->description, sizeof g->description,
             "grid FFT, double precision; %.120s, driver %.60s; source %016llx",
             info->name, info->driver,
             (unsigned long long)g->program.source_hash);
    g->queue =
        clCreateCommandQueue(g->device->context, g->device->id, 0, &code);
    if (g->queue == NULL)
        return tsr_cl_fail(err, g->device, "clCreateCommandQueue", code);
    for (int k = 0; k < N_KERNEL; k++) {
        g->kernel[k] =
            clCreateKernel(g->program.program, kernel_name[k], &code);
        if (g->kernel[k] == NULL)
            return tsr_cl_fail(err, g->device, "clCreateKernel", code);
    }
    return TSR_OK;
}

tsr_status tsr_grid_fft_new(const tsr_device *device, tsr_grid_fft **out,
                            tsr_err *err)
{
    *out = NULL;
    if (!tsr_grid_fft_fits(&device->info, 0.0))
        return tsr_fail(err, TSR_E_DEVICE,
                        "%s has no %s, which a grid's sums need; --method fft "
                        "is the host's",
                        device->info.name,
                        device->info.has_double
                            ? "64-bit atomics (cl_khr_int64_base_atomics)"
                            : "double precision (cl_khr_fp64)");
    tsr_grid_fft *g = calloc(1, sizeof *g);
    TSR_TRY(tsr_allocated(g, err));
    g->device = device;
    tsr_status status = build(g, err);
    if (status != TSR_OK) {
        tsr_grid_fft_free(g);
        return status;
    }
    *out = g;
    return TSR_OK;
}

void tsr_grid_fft_free(tsr_grid_fft *grid)
{
    if (grid == NULL)
        return;
    tsr_fft_free(grid->fft);
    for (int i = 0; i < N_BUFFER; i++)
        if (grid->buffer[i] != NULL)
            clReleaseMemObject(grid->buffer[i]);
    for (int k = 0; k < N_KERNEL; k++)
        if (grid->kernel[k] != NULL)
            clReleaseKernel(grid->kernel[k]);
    if (grid->queue != NULL)
        clReleaseCommandQueue(grid->queue);
    tsr_program_clear(&grid->program);
    free(grid);
}

const char *tsr_grid_fft_describe(const tsr_grid_fft *grid)
{
    return grid->description;
}

tsr_grid_fft_seconds tsr_grid_fft_last(const tsr_grid_fft *grid)
{
    return grid->seconds;
}

static tsr_status need(tsr_grid_fft *g, int which, size_t bytes, tsr_err *err)
{
    cl_int code;
    if (bytes <= g->bytes[which])
        return TSR_OK;
    if (g->buffer[which] != NULL)
        clReleaseMemObject(g->buffer[which]);
    g->bytes[which] = 0;
    g->buffer[which] = clCreateBuffer(g->device->context, CL_MEM_READ_WRITE,
                                      bytes, NULL, &code);
    if (g->buffer[which] == NULL)
        return tsr_cl_fail(err, g->device, "clCreateBuffer", code);
    g->bytes[which] = bytes;
    return TSR_OK;
}

static tsr_status put(tsr_grid_fft *g, int which, size_t bytes,
                      const void *from, tsr_err *err)
{
    TSR_TRY(need(g, which, bytes, err));
    cl_int code = clEnqueueWriteBuffer(g->queue, g->buffer[which], CL_TRUE, 0,
                                       bytes, from, 0, NULL, NULL);
    return code == CL_SUCCESS
               ? TSR_OK
               : tsr_cl_fail(err, g->device, "clEnqueueWriteBuffer", code);
}

/* ---- the particles ---- */

static void job_clear(job *j)
{
    tsr_grid_plan_clear(&j->plan);
    tsr_factor_modes_clear(&j->modes);
    free(j->particle);
    free(j->type);
    free(j->first);
}

static void set_sizes(job *j)
{
    const tsr_grid_plan *p = &j->plan;
    j->n_pair = tsr_debye_n_pair(j->spec);
    j->n_cell = 1;
    j->n_shell = 1;
    for (int c = 0; c < 3; c++) {
        j->n[c] = p->n[c];
        j->tiles[c] = (p->n_filled[c] + SIDE - 1) / SIDE;
        j->n_cell *= j->tiles[c];
        j->n_shell += (p->n[c] / 2) * (p->n[c] / 2);
    }
    j->n[3] = p->n[0] / 2 + 1;
    j->volume = (cl_ulong)j->n[3] * (cl_ulong)j->n[1] * (cl_ulong)j->n[2];
}

/* By counting: particles of a cell stay in the order of the input. */
static tsr_status sort_particles(job *j, tsr_err *err)
{
    const tsr_debye_spec *s = j->spec;
    size_t n = (size_t)s->n, n_cell = (size_t)j->n_cell;
    int *cell = malloc(n * sizeof *cell);
    int *next = calloc(n_cell + 1, sizeof *next);
    tsr_status status = TSR_OK;
    j->particle = malloc(n * sizeof *j->particle);
    j->type = malloc(n * sizeof *j->type);
    j->first = calloc(n_cell + 1, sizeof *j->first);
    if (cell == NULL || next == NULL || j->particle == NULL ||
        j->type == NULL || j->first == NULL) {
        status = tsr_no_memory(err);
        goto done;
    }
    for (int i = 0; i < s->n; i++) {
        cell[i] = 0;
        for (int c = 2; c >= 0; c--)
            cell[i] = cell[i] * j->tiles[c] +
                      tsr_grid_first(&j->plan, c, s->xyz[i]) / SIDE;
        j->first[cell[i] + 1]++;
    }
    for (size_t k = 0; k < n_cell; k++)
        j->first[k + 1] += j->first[k];
    memcpy(next, j->first, n_cell * sizeof *next);
    for (int i = 0; i < s->n; i++) {
        int to = next[cell[i]]++;
        for (int c = 0; c < 3; c++)
            j->particle[to][c] = tsr_grid_at(&j->plan, c, s->xyz[i]);
        j->particle[to][3] = s->weight != NULL ? s->weight[i] : 1.0;
        j->type[to] = s->type[i];
    }
done:
    free(cell);
    free(next);
    return status;
}

static tsr_status job_make(const tsr_debye_spec *spec, job *j, tsr_err *err)
{
    const double mode_error = 1e-6;
    *j = (job){.spec = spec};
    TSR_TRY(tsr_grid_check(spec, err));
    TSR_TRY(tsr_factor_modes_make(spec, mode_error, &j->modes, err));
    TSR_TRY(tsr_grid_plan_make(spec, &j->modes, NULL, &j->plan, err));
    set_sizes(j);
    return sort_particles(j, err);
}

/* ---- what the device holds ---- */

static tsr_status reserve(tsr_grid_fft *g, const job *j, tsr_err *err)
{
    size_t n_pair = (size_t)j->n_pair, n_q = (size_t)j->spec->n_q;
    size_t n_grid = (size_t)(j->modes.n > j->n_pair ? j->modes.n : j->n_pair);
    double bytes = (double)n_grid * (double)j->volume * 16.0;
    int most = 0;
    for (int c = 0; c < 3; c++)
        most = j->n[c] > most ? j->n[c] : most;
    if (!tsr_grid_fft_fits(&g->device->info, bytes) ||
        most > tsr_fft_longest(&g->device->info))
        return tsr_fail(err, TSR_E_DEVICE,
                        "a grid of %d x %d x %d points, %.1f GiB, is too large "
                        "for %s; --method fft is the host's",
                        j->n[0], j->n[1], j->n[2], bytes / 0x1p30,
                        g->device->info.name);
    TSR_TRY(need(g, GRID, n_grid * j->volume * 16, err));
    TSR_TRY(need(g, SHELL, n_pair * (size_t)j->n_shell * sizeof(cl_long), err));
    TSR_TRY(need(g, UNIT, n_pair * sizeof(cl_double), err));
    return need(g, PARTIAL, BLOCKS * n_pair * n_q * sizeof(cl_double), err);
}

static tsr_status upload(tsr_grid_fft *g, const job *j, tsr_err *err)
{
    const tsr_grid_plan *p = &j->plan;
    size_t n = (size_t)j->spec->n, n_axis = 0, at = 0;
    for (int c = 0; c < 3; c++)
        n_axis += (size_t)p->n[c];
    double(*axis)[2] = malloc(n_axis * sizeof *axis);
    TSR_TRY(tsr_allocated(axis, err));
    for (int c = 0; c < 3; c++)
        for (int i = 0; i < p->n[c]; i++, at++)
            axis[at][0] = p->k[c][i], axis[at][1] = p->kernel_inv[c][i];
    size_t n_curve = (size_t)(j->spec->n_comp * j->modes.n * p->n_fine);
    tsr_status status = put(g, AXIS, n_axis * sizeof *axis, axis, err);
    free(axis);
    TSR_THEN(status,
             put(g, PARTICLE, n * sizeof *j->particle, j->particle, err));
    TSR_THEN(status, put(g, TYPE, n * sizeof *j->type, j->type, err));
    TSR_THEN(status, put(g, FIRST, ((size_t)j->n_cell + 1) * sizeof *j->first,
                         j->first, err));
    TSR_THEN(status, put(g, VALUE,
                         (size_t)(j->modes.n_type * j->modes.n) *
                             sizeof *j->modes.value,
                         j->modes.value, err));
    TSR_THEN(status, put(g, PIECE, sizeof p->kernel, p->kernel, err));
    TSR_THEN(status, put(g, CURVE, n_curve * sizeof *p->curve, p->curve, err));
    return status;
}

/* ---- launches ---- */

typedef struct {
    size_t size;
    const void *value;
} argument;

/* groups [2]: work-groups of LANES items, and rows of them. */
static tsr_status launch(tsr_grid_fft *g, int which, int n,
                         const argument *arguments, size_t groups, size_t rows,
                         tsr_err *err)
{
    const size_t global[2] = {groups * LANES, rows}, local[2] = {LANES, 1};
    cl_int code = CL_SUCCESS;
    for (int i = 0; i < n && code == CL_SUCCESS; i++)
        code = clSetKernelArg(g->kernel[which], (cl_uint)i, arguments[i].size,
                              arguments[i].value);
    if (code == CL_SUCCESS)
        code = clEnqueueNDRangeKernel(g->queue, g->kernel[which], 2, NULL,
                                      global, local, 0, NULL, NULL);
    return code == CL_SUCCESS
               ? TSR_OK
               : tsr_cl_fail(err, g->device, kernel_name[which], code);
}

#define ARGUMENT(x)     \
    {                   \
        sizeof(x), &(x) \
    }
#define LAUNCH(g, which, list, groups, rows, err)                         \
    launch(g, which, (int)(sizeof(list) / sizeof(list)[0]), list, groups, \
           rows, err)

static tsr_status spread(tsr_grid_fft *g, const job *j, tsr_err *err)
{
    const cl_int n_mode = j->modes.n, n_plain = j->modes.n_group[0];
    const argument list[] = {ARGUMENT(g->buffer[PARTICLE]),
                             ARGUMENT(g->buffer[TYPE]),
                             ARGUMENT(g->buffer[FIRST]),
                             ARGUMENT(g->buffer[VALUE]),
                             ARGUMENT(n_mode),
                             ARGUMENT(n_plain),
                             ARGUMENT(g->buffer[PIECE]),
                             ARGUMENT(j->tiles),
                             ARGUMENT(j->n),
                             ARGUMENT(j->volume),
                             ARGUMENT(g->buffer[GRID])};
    return LAUNCH(g, SPREAD, list, (size_t)j->n_cell,
                  (size_t)(n_mode + MODES - 1) / MODES, err);
}

/* Tiles are written as a whole; what comes back is even. */
static tsr_status transform(tsr_grid_fft *g, const job *j, int is_inverse,
                            tsr_err *err)
{
    tsr_fft_shape shape = {.n_batch = is_inverse ? j->n_pair : j->modes.n,
                           .n_wanted = j->n[2] / 2 + 1};
    for (int c = 0; c < 3; c++) {
        int used = SIDE * j->tiles[c];
        shape.n[c] = j->n[c];
        shape.n_used[c] = used < j->n[c] ? used : j->n[c];
    }
    return tsr_fft_enqueue(g->fft, g->queue, &shape, is_inverse,
                           g->buffer[GRID], err);
}

static tsr_status amplitude(tsr_grid_fft *g, const job *j, tsr_err *err)
{
    const cl_int n_comp = j->spec->n_comp, n_mode = j->modes.n,
                 n_fine = j->plan.n_fine;
    cl_int range[8] = {0};
    for (int c = 0; c < n_comp; c++) {
        range[c] = tsr_modes_first(&j->modes, c);
        range[4 + c] = tsr_modes_end(&j->modes, c);
    }
    const argument list[] = {ARGUMENT(j->n),
                             ARGUMENT(j->volume),
                             ARGUMENT(n_comp),
                             ARGUMENT(n_mode),
                             ARGUMENT(range),
                             ARGUMENT(g->buffer[AXIS]),
                             ARGUMENT(j->plan.k_cut),
                             ARGUMENT(n_fine),
                             ARGUMENT(g->buffer[CURVE]),
                             ARGUMENT(g->buffer[GRID])};
    return LAUNCH(g, AMPLITUDE, list, (j->volume + LANES - 1) / LANES, 1, err);
}

static tsr_status shells(tsr_grid_fft *g, const job *j, tsr_err *err)
{
    const cl_int n_comp = j->spec->n_comp, n_shell = j->n_shell;
    const cl_ulong none = 0;
    size_t points = 1;
    for (int c = 0; c < 3; c++)
        points *= (size_t)j->n[c] / 2 + 1;
    const argument list[] = {
        ARGUMENT(j->n),           ARGUMENT(j->volume),
        ARGUMENT(n_comp),         ARGUMENT(g->buffer[GRID]),
        ARGUMENT(n_shell),        ARGUMENT(g->buffer[SHELL]),
        ARGUMENT(g->buffer[UNIT])};
    cl_int code = clEnqueueFillBuffer(
        g->queue, g->buffer[SHELL], &none, sizeof none, 0,
        (size_t)j->n_pair * (size_t)n_shell * sizeof none, 0, NULL, NULL);
    if (code != CL_SUCCESS)
        return tsr_cl_fail(err, g->device, "clEnqueueFillBuffer", code);
    return LAUNCH(g, SHELLS, list, (points + LANES - 1) / LANES, 1, err);
}

static tsr_status sum_distances(tsr_grid_fft *g, const job *j, double *profile,
                                tsr_err *err)
{
    const cl_int n_pair = j->n_pair, n_shell = j->n_shell, n_q = j->spec->n_q;
    size_t n = (size_t)n_pair * (size_t)n_q;
    double points = (double)j->n[0] * (double)j->n[1] * (double)j->n[2];
    double *partial = malloc(BLOCKS * n * sizeof *partial);
    TSR_TRY(tsr_allocated(partial, err));
    const argument list[] = {ARGUMENT(n_pair),
                             ARGUMENT(n_shell),
                             ARGUMENT(g->buffer[SHELL]),
                             ARGUMENT(g->buffer[UNIT]),
                             ARGUMENT(j->plan.h_ang),
                             ARGUMENT(j->spec->dq_inv_ang),
                             ARGUMENT(n_q),
                             ARGUMENT(g->buffer[PARTIAL])};
    tsr_status status = LAUNCH(g, PROFILE, list,
                               ((size_t)n_q + LANES - 1) / LANES, BLOCKS, err);
    cl_int code = CL_SUCCESS;
    if (status == TSR_OK)
        code = clEnqueueReadBuffer(g->queue, g->buffer[PARTIAL], CL_TRUE, 0,
                                   BLOCKS * n * sizeof *partial, partial, 0,
                                   NULL, NULL);
    if (code != CL_SUCCESS)
        status = tsr_cl_fail(err, g->device, "clEnqueueReadBuffer", code);
    for (size_t i = 0; i < n && status == TSR_OK; i++) {
        double sum = 0.0, q = (double)(i % (size_t)n_q) * j->spec->dq_inv_ang;
        for (size_t b = 0; b < BLOCKS; b++)
            sum += partial[b * n + i];
        profile[i] = sum / (points * tsr_grid_window(&j->plan, q));
    }
    free(partial);
    return status;
}

/* ---- a profile ---- */

/* Waits, and says how long it was since the last time. */
static tsr_status lap(tsr_grid_fft *g, double *from, double *seconds,
                      tsr_err *err)
{
    cl_int code = clFinish(g->queue);
    double now = tsr_clock_s();
    *seconds = now - *from;
    *from = now;
    return code == CL_SUCCESS ? TSR_OK
                              : tsr_cl_fail(err, g->device, "clFinish", code);
}

static tsr_status run(tsr_grid_fft *g, const job *j, double from,
                      double *profile, tsr_err *err)
{
    tsr_grid_fft_seconds *s = &g->seconds;
    TSR_TRY(lap(g, &from, &s->host, err));
    TSR_TRY(reserve(g, j, err));
    TSR_TRY(lap(g, &from, &s->make, err));
    TSR_TRY(upload(g, j, err));
    TSR_TRY(lap(g, &from, &s->upload, err));
    TSR_TRY(spread(g, j, err));
    TSR_TRY(lap(g, &from, &s->spread, err));
    TSR_TRY(transform(g, j, 0, err));
    TSR_TRY(lap(g, &from, &s->forward, err));
    TSR_TRY(amplitude(g, j, err));
    TSR_TRY(lap(g, &from, &s->amplitude, err));
    TSR_TRY(transform(g, j, 1, err));
    TSR_TRY(lap(g, &from, &s->inverse, err));
    TSR_TRY(shells(g, j, err));
    TSR_TRY(lap(g, &from, &s->shells, err));
    TSR_TRY(sum_distances(g, j, profile, err));
    return lap(g, &from, &s->profile, err);
}

/* I_aa(0) = (sum of F_a(0))^2 says at no cost whether transforms of this very
 * size add up. */
static tsr_status check_zero(const tsr_grid_fft *g, const tsr_debye_spec *spec,
                             const double *profile, tsr_err *err)
{
    const double limit = 1e-5;
    for (int a = 0; a < spec->n_comp; a++) {
        double sum = 0.0, size = 0.0, got = *profile;
        for (int i = 0; i < spec->n; i++) {
            double f = tsr_debye_factor(spec, a, spec->type[i])[0];
            if (spec->weight != NULL && a == spec->weighted)
                f *= spec->weight[i];
            sum += f;
            size += fabs(f);
        }
        if (!(fabs(got - sum * sum) <= limit * size * size))
            return tsr_fail(err, TSR_E_DEVICE,
                            "%s: the grid's I(0) is %.9g and should be %.9g. "
                            "Do not use this device or driver, or give "
                            "--method fft, which is the host's",
                            g->device->info.name, got, sum * sum);
        profile += (spec->n_comp - a) * spec->n_q;
    }
    return TSR_OK;
}

tsr_status tsr_grid_fft_run(tsr_grid_fft *grid, const tsr_debye_spec *spec,
                            double *profile, tsr_err *err)
{
    double from = tsr_clock_s();
    job j;
    grid->seconds = (tsr_grid_fft_seconds){0};
    tsr_status status = job_make(spec, &j, err);
    TSR_THEN(status, run(grid, &j, from, profile, err));
    TSR_THEN(status, check_zero(grid, spec, profile, err));
    job_clear(&j);
    return status;
}
