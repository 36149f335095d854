#include "gpu/debye_sum.h"

#include "gpu/debye_sum_state.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

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
    int is_short = s->d_bound > 0.0 &&
                   s->dq * s->d_bound <= 1.5707963267948966 * (1.0 + 1e-6);
    snprintf(options, sizeof options,
             "-cl-std=CL1.2 -cl-mad-enable -DTILE=%d -DPAGES=%d -DGROUPS=%d "
             "-DLANES=%d -DDQ=%a%s -DSHORT_RANGE=%d -DWEIGHTED=%d "
             "-DUSE_DOUBLE=%d",
             s->tile, s->pages, s->groups, lanes(s),
             s->options.use_double ? s->dq : (double)(float)s->dq,
             s->options.use_double ? "" : "f", is_short, s->has_weight,
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
        return tsr_fail(err, TSR_E_NOMEM, "out of memory for a Debye sum");
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
    if (s == NULL)
        return tsr_fail(err, TSR_E_NOMEM, "out of memory for a Debye sum");
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
    if (!status) {
        shape(s);
        status = build(s, err);
    }
    if (!status)
        status = make_buffers(s, err);
    if (status) {
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
