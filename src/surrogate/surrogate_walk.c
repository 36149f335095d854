/* Walks on a device: program, buffers and launches. */
#include "surrogate/surrogate.h"

#include "gpu/opencl.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

/* Work-items of a work-group. With 128 registers each, 128 work-items leave
 * room on a multiprocessor of an H200 for two walks and the engine's kernels
 * beside them. More work-items make a walk shorter (100 steps of `lar` take 2.2
 * ms with 128, 1.7 with 512), but fewer walks fill the device, and the engine
 * waits. */
enum { LANES = 128, LANES_CPU = 1 };

static size_t lanes_of(const tsr_device_info *device)
{
    size_t n = LANES;
    while (n > 1 && n > (size_t)device->max_work_group)
        n /= 2;
    return device->type == TSR_DEVICE_CPU ? LANES_CPU : n;
}

/* Parts of a walker's memory. Host and device have a copy each, in which a part
 * has the same offset: first the input, which the host writes, then results. */
enum { JOB, POINT, KEY, RESULT, COUNT, N_PART };

enum { N_COMMON = 17 }; /* buffers of the molecule */

typedef struct {
    tsr_surrogate_engine base;
    tsr_cl cl;
    tsr_surrogate_layout layout;
    size_t lanes, each[N_PART]; /* bytes per job */
    tsr_program program;
    cl_mem common[N_COMMON];
} walk_engine;

/* Every walker has a queue. The walks of each half of a thread's chains begin
 * when the half is ready, and its results return when they are complete. A
 * launch that joined the walks of all threads would end with its slowest walk,
 * and halves that are ready would wait for the end of the launch before. */
typedef struct {
    tsr_surrogate_walker base;
    tsr_cl cl;
    cl_command_queue queue;
    cl_kernel kernel;
    cl_mem device;         /* all parts */
    char *host;            /* likewise, pinned */
    cl_event done;         /* of the latest launch; NULL at first */
    size_t at[N_PART + 1]; /* begin of each part, and the end, bytes */
} walker;

/* ---- a launch ---- */

/* After an error, waits until the device no longer uses the walker's memory. */
tsr_status tsr_walker_start(void *of, int n_job, tsr_err *err)
{
    walker *w = of;
    const walk_engine *e = (const walk_engine *)w->base.engine;
    const size_t global = (size_t)n_job * e->lanes;
    const char *call = "clEnqueueWriteBuffer";
    cl_int code = clEnqueueWriteBuffer(w->queue, w->device, CL_FALSE, 0,
                                       w->at[RESULT], w->host, 0, NULL, NULL);
    if (code == CL_SUCCESS) {
        call = "clEnqueueNDRangeKernel";
        code = clEnqueueNDRangeKernel(w->queue, w->kernel, 1, NULL, &global,
                                      &e->lanes, 0, NULL, NULL);
    }
    if (code == CL_SUCCESS) {
        call = "clEnqueueReadBuffer";
        tsr_cl_release_event(&w->done);
        code = clEnqueueReadBuffer(w->queue, w->device, CL_FALSE, w->at[RESULT],
                                   w->at[N_PART] - w->at[RESULT],
                                   w->host + w->at[RESULT], 0, NULL, &w->done);
    }
    if (code == CL_SUCCESS) {
        call = "clFlush";
        code = clFlush(w->queue);
    }
    if (code != CL_SUCCESS)
        clFinish(w->queue);
    return tsr_cl_status(err, e->cl.device, call, code);
}

/* On a GPU sleeps until the results are there, because the driver may occupy a
 * processor in clWaitForEvents, which other threads need. Naps are short beside
 * a walk of some milliseconds, but each question takes the driver's lock. */
tsr_status tsr_walker_wait(void *of, tsr_err *err)
{
    const struct timespec nap = {.tv_nsec = 100000};
    walker *w = of;
    cl_int state = CL_QUEUED;
    while (w->cl.device->info.type != TSR_DEVICE_CPU &&
           clGetEventInfo(w->done, CL_EVENT_COMMAND_EXECUTION_STATUS,
                          sizeof state, &state, NULL) == CL_SUCCESS &&
           state > CL_COMPLETE)
        nanosleep(&nap, NULL);
    return tsr_cl_status(err, w->cl.device, "clWaitForEvents",
                         clWaitForEvents(1, &w->done));
}

/* ---- a walker ---- */

void tsr_walker_free(void *of)
{
    walker *w = of;
    if (w != NULL) {
        tsr_cl_clear(&w->cl);
        tsr_cl_release_event(&w->done);
    }
    free(w);
}

/* Makes queue and memory for n jobs, and the call that refers to it. */
static tsr_status make_call(walker *w, size_t n, tsr_err *err)
{
    const walk_engine *e = (const walk_engine *)w->base.engine;
    const size_t cache_line = 64;
    for (int i = 0; i < N_PART; i++)
        w->at[i + 1] = w->at[i] + (n * e->each[i] + cache_line - 1) /
                                      cache_line * cache_line;
    w->queue = tsr_cl_queue(&w->cl, 0);
    w->host = tsr_cl_pinned(&w->cl, w->queue, w->at[N_PART], NULL);
    w->device = tsr_cl_buffer(&w->cl, CL_MEM_READ_WRITE, w->at[N_PART], NULL);
    TSR_TRY(tsr_cl_check(&w->cl, err));
    memset(w->host, 0, w->at[N_PART]);
    w->base.call = (tsr_surrogate_call){
        .job = (void *)(w->host + w->at[JOB]),
        .point = (void *)(w->host + w->at[POINT]),
        .key = (void *)(w->host + w->at[KEY]),
        .result = (void *)(w->host + w->at[RESULT]),
        .count = (void *)(w->host + w->at[COUNT]),
    };
    return TSR_OK;
}

static tsr_status set_arguments(walker *w, size_t n, tsr_err *err)
{
    const walk_engine *e = (const walk_engine *)w->base.engine;
    const tsr_surrogate_spec *s = e->base.spec;
    const float number[] = {s->cutoff, s->inverse_softness, s->limit,
                            s->dq_inv_ang, s->knots_per_ang};
    const cl_mem next_points =
        tsr_cl_buffer(&w->cl, CL_MEM_READ_WRITE, n * e->each[POINT], NULL);
    cl_uint at = 0;
    cl_int code = CL_SUCCESS;
    w->kernel = tsr_cl_kernel(&w->cl, &e->program, "surrogate_walk");
    TSR_TRY(tsr_cl_check(&w->cl, err));
    for (int i = 0; i < N_COMMON; i++)
        code |= clSetKernelArg(w->kernel, at++, sizeof(cl_mem), &e->common[i]);
    for (size_t i = 0; i < sizeof number / sizeof *number; i++)
        code |= clSetKernelArg(w->kernel, at++, sizeof *number, &number[i]);
    code |= clSetKernelArg(w->kernel, at++, sizeof(cl_mem), &w->device);
    code |= clSetKernelArg(w->kernel, at++, sizeof(cl_mem), &next_points);
    for (int i = POINT; i < N_PART; i++) {
        const cl_uint offset = (cl_uint)(w->at[i] / sizeof(cl_float));
        code |= clSetKernelArg(w->kernel, at++, sizeof offset, &offset);
    }
    return tsr_cl_status(err, e->cl.device, "clSetKernelArg", code);
}

tsr_status tsr_walker_new(void *engine, int max_jobs, void **out, tsr_err *err)
{
    walk_engine *e = engine;
    walker *w = calloc(1, sizeof *w);
    TSR_TRY(tsr_allocated(w, err));
    w->cl.device = e->cl.device;
    w->base = (tsr_surrogate_walker){.engine = &e->base, .layout = e->layout};
    tsr_status status = make_call(w, (size_t)max_jobs, err);
    TSR_THEN(status, set_arguments(w, (size_t)max_jobs, err));
    TSR_HAND_OVER(status, w, out, tsr_walker_free);
}

/* ---- the engine ---- */

void tsr_walk_engine_free(void *engine)
{
    walk_engine *e = engine;
    if (e != NULL) {
        tsr_cl_clear(&e->cl);
        tsr_program_clear(&e->program);
    }
    free(e);
}

/* Estimated local memory of a work-group, bytes: the arrays of the kernel.
 * converts: CONVERTS of the kernel. */
static size_t local_bytes(const tsr_surrogate_spec *s, size_t lanes,
                          int converts)
{
    const size_t q = (size_t)s->n_q, slices = lanes / q > 0 ? lanes / q : 1;
    const size_t products = TSR_SURROGATE_PRODUCTS, beads = (size_t)s->n_bead;
    const size_t pairs = lanes == LANES_CPU
                             ? 4 * (beads + 15) * (q + 11) + (64 + 16) * (q + 1)

                             : 8 * beads +
                                   16 * (size_t)s->n_knot * (converts ? 2 : 1) +
                                   4 * q * products * (2 + slices);
    return 39 * beads + pairs + 4 * (q + (size_t)s->n_curve * (q + 1)) +
           12 * (size_t)s->n_slot + 4 * (1024 + 12 * TSR_SURROGATE_PARTS) +
           6000;
}

static tsr_status build(walk_engine *e, tsr_err *err)
{
    const tsr_surrogate_spec *s = e->base.spec;
    const tsr_surrogate_layout *l = &e->layout;
    const char *const source[] = {"surrogate_turns.cl", "surrogate_curve.cl",
                                  "surrogate.cl"};
    const int wide = e->cl.device->info.float_width;
    char options[1024];
    snprintf(
        options, sizeof options,
        "-cl-std=CL1.2 %s-D LANES=%d -D WIDE=%d -D N_POINT=%d "
        "-D N_BEAD=%d -D N_PAIR=%d -D N_TORSION=%d -D N_SLOT=%d -D "
        "N_CONTACT_TYPE=%d "
        "-D N_KNOT=%d -D N_Q=%d -D N_CURVE=%d -D HAS_C2=%d -D N_LINKER=%d "
        "-D JOB_SIZE=%d -D AT_COUNT_UNIT=%d -D AT_ANGLE=%d -D AT_WIDTH=%d "
        "-D AT_FACTOR=%d "
        "-D AT_AMOUNT=%d -D AT_SHAPE=%d -D AT_CONSTANT=%d -D AT_NUMERATOR=%d "
        "-D AT_DENOMINATOR=%d -D AT_CURVE=%d -D CURVE_SIZE=%d -D CONVERTS=%d",
        e->lanes == LANES_CPU ? "-cl-mad-enable " : "", (int)e->lanes,
        wide >= 16  ? 16
        : wide >= 8 ? 8
                    : 4,
        s->n_point, s->n_bead, s->n_pair, s->n_torsion, s->n_slot,
        s->n_contact_type, s->n_knot, s->n_q, s->n_curve, s->has_c2,
        s->n_linker, l->size, l->count_unit, l->angle, l->width, l->factor,
        l->amount, l->shape, l->constant, l->numerator, l->denominator,
        l->curve, l->curve_size,
        local_bytes(s, e->lanes, 1) <= e->cl.device->info.local_bytes);
    return tsr_program_build(e->cl.device, 3, source, options, &e->program,
                             err);
}

/* Creates the buffers common to all walks, in the order of the kernel's
 * arguments. */
static tsr_status make_common(walk_engine *e, tsr_err *err)
{
    const tsr_surrogate_spec *s = e->base.spec;
    const size_t n_contact_type = (size_t)s->n_contact_type,
                 n_bead = (size_t)s->n_bead;
    const struct {
        size_t size;
        void *from; /* read only */
    } table[N_COMMON] = {
        {n_bead * sizeof *s->bead, s->bead},
        {n_bead * sizeof *s->point_range, s->point_range},
        {n_bead * sizeof *s->radius, s->radius},
        {(size_t)s->n_part * sizeof *s->part, s->part},
        {(size_t)s->n_part * sizeof *s->part_weight, s->part_weight},
        {(size_t)s->n_body * sizeof *s->body, s->body},
        {n_contact_type * n_contact_type * sizeof *s->contact, s->contact},
        {(size_t)s->n_pair * sizeof *s->pair, s->pair},
        {(size_t)s->n_torsion * sizeof *s->torsion, s->torsion},
        {(size_t)s->n_torsion * sizeof *s->turn, s->turn},
        {(size_t)s->n_torsion * sizeof *s->point_bounds, s->point_bounds},
        {(size_t)(s->n_linker + 1) * sizeof *s->linker, s->linker},
        {(size_t)s->n_slot * sizeof *s->density, s->density},
        {(size_t)s->n_density * sizeof *s->term, s->term},
        {(size_t)s->n_density * sizeof *s->n_term, s->n_term},
        {(size_t)s->n_density * sizeof *s->cell, s->cell},
        {(size_t)s->n_knot * (size_t)s->n_q * sizeof *s->sinc, s->sinc}};
    for (int i = 0; i < N_COMMON; i++)
        e->common[i] = tsr_cl_buffer(&e->cl, CL_MEM_READ_ONLY, table[i].size,
                                     table[i].from);
    return tsr_cl_check(&e->cl, err);
}

tsr_status tsr_surrogate_device_new(const tsr_device *device,
                                    const tsr_surrogate_spec *spec,
                                    tsr_surrogate_engine **out, tsr_err *err)
{
    *out = NULL;
    walk_engine *e = calloc(1, sizeof *e);
    TSR_TRY(tsr_allocated(e, err));
    e->base.spec = spec;
    e->cl.device = device;
    e->layout = tsr_surrogate_layout_of(spec);
    e->lanes = lanes_of(&device->info);
    e->each[JOB] = (size_t)e->layout.size * sizeof(cl_float);
    e->each[KEY] = sizeof(cl_uint2);
    e->each[POINT] = (size_t)spec->n_point * sizeof(cl_float4);
    e->each[RESULT] =
        (size_t)tsr_surrogate_result_size(spec) * sizeof(cl_float);
    e->each[COUNT] = (size_t)tsr_surrogate_n_count(spec) * sizeof(cl_int2);
    const size_t bytes = local_bytes(spec, e->lanes, 0);
    tsr_status status = TSR_OK;
    if (bytes > device->info.local_bytes)
        status = tsr_fail(err, TSR_E_DEVICE,
                          "%s has %.0f KiB of local memory per work-group, and "
                          "a surrogate walk of this molecule needs %.0f",
                          device->info.name,
                          (double)device->info.local_bytes / 1024.0,
                          (double)bytes / 1024.0);
    TSR_THEN(status, build(e, err));
    TSR_THEN(status, make_common(e, err));
    if (status == TSR_OK)
        *out = &e->base;
    else
        tsr_walk_engine_free(e);
    return status;
}
