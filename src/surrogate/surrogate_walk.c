/* Walks on a device: program, buffers, and a thread that combines the walks of
 * several threads into one launch. */
#include "surrogate/surrogate.h"

#include "core/clock.h"
#include "gpu/opencl.h"

#include <math.h>
#include <pthread.h>
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

/* Buffers of jobs, in the order of the kernel's last arguments. */
enum { JOB, KEY, POINT, NEXT_POINT, RESULT, COUNT, N_BUFFER };

typedef struct walker walker;

/* A launch of a hundred walks takes hardly longer than a launch of ten, and
 * some hundred walks fill a device. So one thread serves the device: jobs that
 * arrive during a launch form the next launch together. If the device is idle,
 * the thread waits until half of all walkers have arrived, but not longer than
 * the latest launch took, because other walkers may have ended. */
typedef struct {
    tsr_surrogate_engine base;
    tsr_cl cl, job_buffers; /* permanent objects; buffers of jobs, which are
                               replaced by larger ones */
    tsr_surrogate_layout layout;
    size_t lanes, each[N_BUFFER]; /* bytes per job */
    tsr_program program;
    cl_command_queue queue;
    cl_kernel kernel;
    cl_mem buffer[N_BUFFER];
    cl_uint n_common; /* number of arguments common to all walks */
    int capacity;     /* number of jobs that fit the buffers */

    pthread_t thread;
    int has_thread, quit;
    pthread_mutex_t lock; /* guards all that follows */
    pthread_cond_t arrived, done;
    int n_walker, n_waiting;
    double first_s, last_s; /* arrival of the first of those that wait; duration
                               of the latest launch */
    walker *queue_head;
} walk_engine;

struct walker {
    tsr_surrogate_walker base;
    walk_engine *engine;
    walker *next; /* in the queue */
    tsr_cl cl;    /* pinned memory: jobs, keys, points, results, counts */
    int is_done;
    tsr_status status; /* of the latest launch, and its message */
    tsr_err err;
};

/* ---- a launch ---- */

static tsr_status grow_buffers(walk_engine *e, int n, tsr_err *err)
{
    cl_int code = CL_SUCCESS;
    if (n <= e->capacity)
        return TSR_OK;
    e->capacity = 0;
    tsr_cl_clear(&e->job_buffers);
    for (cl_uint i = 0; i < N_BUFFER; i++) {
        e->buffer[i] = tsr_cl_buffer(&e->job_buffers, CL_MEM_READ_WRITE,
                                     (size_t)n * e->each[i], NULL);
        code |= clSetKernelArg(e->kernel, e->n_common + i, sizeof e->buffer[i],
                               &e->buffer[i]);
    }
    TSR_TRY(tsr_cl_check(&e->job_buffers, err));
    TSR_TRY(tsr_cl_status(err, e->cl.device, "clSetKernelArg", code));
    e->capacity = n;
    return TSR_OK;
}

/* Enqueues copies of a walker's jobs to the buffers, or (is_back) of its
 * results to the host. at: index of the walker's first job in the buffers. */
static cl_int copy_jobs(walk_engine *e, const tsr_surrogate_call *c, int at,
                        int is_back)
{
    const int way[2][3] = {{JOB, KEY, POINT}, {RESULT, COUNT, -1}};
    void *const host[N_BUFFER] = {[JOB] = c->job,
                                  [KEY] = c->key,
                                  [POINT] = c->point,
                                  [RESULT] = c->result,
                                  [COUNT] = c->count};
    cl_int code = CL_SUCCESS;
    for (int k = 0; k < 3 && way[is_back][k] >= 0 && code == CL_SUCCESS; k++) {
        const int i = way[is_back][k];
        const size_t from = (size_t)at * e->each[i],
                     bytes = (size_t)c->n_job * e->each[i];
        code = is_back
                   ? clEnqueueReadBuffer(e->queue, e->buffer[i], CL_FALSE, from,
                                         bytes, host[i], 0, NULL, NULL)
                   : clEnqueueWriteBuffer(e->queue, e->buffer[i], CL_FALSE,
                                          from, bytes, host[i], 0, NULL, NULL);
    }
    return code;
}

static tsr_status copy_all_jobs(walk_engine *e, const walker *first,
                                int is_back, tsr_err *err)
{
    cl_int code = CL_SUCCESS;
    int at = 0;
    for (const walker *w = first; w != NULL && code == CL_SUCCESS;
         w = w->next) {
        code = copy_jobs(e, &w->base.call, at, is_back);
        at += w->base.call.n_job;
    }
    return tsr_cl_status(
        err, e->cl.device,
        is_back ? "clEnqueueReadBuffer" : "clEnqueueWriteBuffer", code);
}

static tsr_status enqueue(walk_engine *e, const walker *first, int n,
                          tsr_err *err)
{
    const size_t global = (size_t)n * e->lanes;
    TSR_TRY(copy_all_jobs(e, first, 0, err));
    TSR_TRY(tsr_cl_status(err, e->cl.device, "clEnqueueNDRangeKernel",
                          clEnqueueNDRangeKernel(e->queue, e->kernel, 1, NULL,
                                                 &global, &e->lanes, 0, NULL,
                                                 NULL)));
    return copy_all_jobs(e, first, 1, err);
}

/* Sleeps until the commands of the queue are complete, or one has failed. A
 * GPU's driver may occupy a processor in clFinish, which the threads of the
 * sampler need. */
static void sleep_until_done(const walk_engine *e)
{
    const struct timespec nap = {.tv_nsec = 20000};
    cl_event done = NULL;
    cl_int state = CL_QUEUED;
    if (clEnqueueMarkerWithWaitList(e->queue, 0, NULL, &done) == CL_SUCCESS &&
        clFlush(e->queue) == CL_SUCCESS)
        while (clGetEventInfo(done, CL_EVENT_COMMAND_EXECUTION_STATUS,
                              sizeof state, &state, NULL) == CL_SUCCESS &&
               state > CL_COMPLETE)
            nanosleep(&nap, NULL);
    tsr_cl_release_event(&done);
}

/* Runs the jobs of all walkers in a queue. On return the device no longer uses
 * their memory, even after an error. */
static tsr_status launch(walk_engine *e, const walker *first, tsr_err *err)
{
    int n = 0;
    for (const walker *w = first; w != NULL; w = w->next)
        n += w->base.call.n_job;
    if (n == 0)
        return TSR_OK;
    TSR_TRY(grow_buffers(e, n, err));
    tsr_status status = enqueue(e, first, n, err);
    if (e->cl.device->info.type != TSR_DEVICE_CPU)
        sleep_until_done(e);
    const cl_int code = clFinish(e->queue);
    TSR_THEN(status, tsr_cl_status(err, e->cl.device, "clFinish", code));
    return status;
}

/* Runs the jobs of all waiting walkers. Called with the lock, which is released
 * during the launch. */
static void launch_waiting(walk_engine *e)
{
    tsr_err err = {0};
    walker *first = e->queue_head;
    e->queue_head = NULL;
    e->n_waiting = 0;
    pthread_mutex_unlock(&e->lock);
    const double began = tsr_clock_s();
    const tsr_status status = launch(e, first, &err);
    pthread_mutex_lock(&e->lock);
    e->last_s = tsr_clock_s() - began;
    for (walker *w = first; w != NULL; w = w->next) {
        w->is_done = 1;
        w->status = status;
        w->err = err;
    }
    pthread_cond_broadcast(&e->done);
}

static void *serve(void *engine)
{
    walk_engine *e = engine;
    pthread_mutex_lock(&e->lock);
    while (!e->quit) {
        const double left = e->first_s + e->last_s - tsr_clock_s();
        if (e->n_waiting == 0)
            pthread_cond_wait(&e->arrived, &e->lock);
        else if (2 * e->n_waiting < e->n_walker && left > 0.0)
            tsr_clock_cond_wait(&e->arrived, &e->lock, fmin(left, 1.0));
        else
            launch_waiting(e);
    }
    pthread_mutex_unlock(&e->lock);
    return NULL;
}

static tsr_status start(tsr_surrogate_walker *base, tsr_err *err)
{
    walker *w = (walker *)base;
    walk_engine *e = w->engine;
    (void)err;
    pthread_mutex_lock(&e->lock);
    w->is_done = 0;
    w->next = e->queue_head;
    e->queue_head = w;
    if (e->n_waiting++ == 0)
        e->first_s = tsr_clock_s();
    pthread_cond_signal(&e->arrived);
    pthread_mutex_unlock(&e->lock);
    return TSR_OK;
}

static tsr_status wait_for(tsr_surrogate_walker *base, tsr_err *err)
{
    walker *w = (walker *)base;
    walk_engine *e = w->engine;
    pthread_mutex_lock(&e->lock);
    while (!w->is_done)
        pthread_cond_wait(&e->done, &e->lock);
    pthread_mutex_unlock(&e->lock);
    if (w->status != TSR_OK && err != NULL)
        *err = w->err;
    return w->status;
}

/* ---- a walker ---- */

static void walker_free(tsr_surrogate_walker *base)
{
    walker *w = (walker *)base;
    walk_engine *e = w->engine;
    (void)wait_for(base, NULL); /* a stop leaves launches that nobody awaits */
    pthread_mutex_lock(&e->lock);
    e->n_walker--;
    pthread_mutex_unlock(&e->lock);
    tsr_cl_clear(&w->cl);
    free(w);
}

/* Allocates host memory for the jobs. NEXT_POINT exists on the device only. */
static tsr_status make_call(walker *w, size_t n_job, tsr_err *err)
{
    const walk_engine *e = w->engine;
    const size_t cache_line = 64;
    size_t at[N_BUFFER], bytes = cache_line;
    for (int i = 0; i < N_BUFFER; i++) {
        at[i] = bytes;
        if (i != NEXT_POINT)
            bytes +=
                (n_job * e->each[i] + cache_line - 1) / cache_line * cache_line;
    }
    char *workspace = tsr_cl_pinned(&w->cl, e->queue, bytes, NULL);
    TSR_TRY(tsr_cl_check(&w->cl, err));
    memset(workspace, 0, bytes);
    w->base.call = (tsr_surrogate_call){
        .job = (void *)(workspace + at[JOB]),
        .key = (void *)(workspace + at[KEY]),
        .point = (void *)(workspace + at[POINT]),
        .result = (void *)(workspace + at[RESULT]),
        .count = (void *)(workspace + at[COUNT]),
    };
    return TSR_OK;
}

static tsr_status walker_new(tsr_surrogate_engine *base, int max_jobs,
                             tsr_surrogate_walker **out, tsr_err *err)
{
    walk_engine *e = (walk_engine *)base;
    walker *w = calloc(1, sizeof *w);
    *out = NULL;
    TSR_TRY(tsr_allocated(w, err));
    w->cl.device = e->cl.device;
    pthread_mutex_lock(&e->lock);
    e->n_walker++;
    pthread_mutex_unlock(&e->lock);
    w->engine = e;
    w->is_done = 1;
    w->base = (tsr_surrogate_walker){.engine = base, .layout = e->layout};
    const tsr_status status = make_call(w, (size_t)max_jobs, err);
    if (status != TSR_OK) {
        walker_free(&w->base);
        return status;
    }
    *out = &w->base;
    return TSR_OK;
}

/* ---- the engine ---- */

static void engine_free(tsr_surrogate_engine *base)
{
    walk_engine *e = (walk_engine *)base;
    pthread_mutex_lock(&e->lock);
    e->quit = 1;
    pthread_cond_signal(&e->arrived);
    pthread_mutex_unlock(&e->lock);
    if (e->has_thread)
        pthread_join(e->thread, NULL);
    tsr_cl_clear(&e->job_buffers);
    tsr_cl_clear(&e->cl);
    pthread_mutex_destroy(&e->lock);
    pthread_cond_destroy(&e->arrived);
    pthread_cond_destroy(&e->done);
    tsr_program_clear(&e->program);
    free(e);
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
        "-D AT_DENOMINATOR=%d -D AT_CURVE=%d -D CURVE_SIZE=%d",
        e->lanes == LANES_CPU ? "-cl-mad-enable " : "", (int)e->lanes,
        wide >= 16  ? 16
        : wide >= 8 ? 8
                    : 4,
        s->n_point, s->n_bead, s->n_pair, s->n_torsion, s->n_slot,
        s->n_contact_type, s->n_knot, s->n_q, s->n_curve, s->has_c2,
        s->n_linker, l->size, l->count_unit, l->angle, l->width, l->factor,
        l->amount, l->shape, l->constant, l->numerator, l->denominator,
        l->curve, l->curve_size);
    TSR_TRY(
        tsr_program_build(e->cl.device, 3, source, options, &e->program, err));
    e->queue = tsr_cl_queue(&e->cl, 0);
    e->kernel = tsr_cl_kernel(&e->cl, &e->program, "surrogate_walk");
    return tsr_cl_check(&e->cl, err);
}

/* Creates the buffers common to all walks, in the order of the kernel's
 * arguments. */
static tsr_status set_common_arguments(walk_engine *e, tsr_err *err)
{
    const tsr_surrogate_spec *s = e->base.spec;
    const size_t n_contact_type = (size_t)s->n_contact_type,
                 n_bead = (size_t)s->n_bead;
    const struct {
        size_t size;
        void *from; /* read only */
    } table[] = {
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
    const float number[] = {s->cutoff, s->inverse_softness, s->limit,
                            s->dq_inv_ang, s->knots_per_ang};
    cl_int code = CL_SUCCESS;
    for (size_t i = 0; i < sizeof table / sizeof *table; i++) {
        const cl_mem buffer = tsr_cl_buffer(&e->cl, CL_MEM_READ_ONLY,
                                            table[i].size, table[i].from);
        code |=
            clSetKernelArg(e->kernel, e->n_common++, sizeof buffer, &buffer);
    }
    for (size_t i = 0; i < sizeof number / sizeof *number; i++)
        code |= clSetKernelArg(e->kernel, e->n_common++, sizeof *number,
                               &number[i]);
    TSR_TRY(tsr_cl_check(&e->cl, err));
    return tsr_cl_status(err, e->cl.device, "clSetKernelArg", code);
}

/* Estimated local memory of a work-group, bytes: the arrays of the kernel. */
static size_t local_bytes(const tsr_surrogate_spec *s, size_t lanes)
{
    const size_t q = (size_t)s->n_q, slices = lanes / q > 0 ? lanes / q : 1;
    const size_t products = TSR_SURROGATE_PRODUCTS, beads = (size_t)s->n_bead;
    const size_t pairs =
        lanes == LANES_CPU
            ? 4 * (beads + 15) * (q + 11) + (64 + 16) * (q + 1)
            : 16 * (size_t)s->n_knot + 4 * q * products * (2 + slices);
    return 55 * beads + pairs + 4 * (q + (size_t)s->n_curve * (q + 1)) +
           12 * (size_t)s->n_slot + 4 * (1024 + 12 * TSR_SURROGATE_PARTS) +
           6000;
}

tsr_status tsr_surrogate_device_new(const tsr_device *device,
                                    const tsr_surrogate_spec *spec,
                                    tsr_surrogate_engine **out, tsr_err *err)
{
    *out = NULL;
    walk_engine *e = calloc(1, sizeof *e);
    TSR_TRY(tsr_allocated(e, err));
    e->base = (tsr_surrogate_engine){.spec = spec,
                                     .free = engine_free,
                                     .walker_new = walker_new,
                                     .start = start,
                                     .wait = wait_for,
                                     .walker_free = walker_free};
    e->cl.device = e->job_buffers.device = device;
    pthread_mutex_init(&e->lock, NULL);
    tsr_clock_cond_init(&e->arrived);
    pthread_cond_init(&e->done, NULL);
    e->layout = tsr_surrogate_layout_of(spec);
    e->lanes = lanes_of(&device->info);
    e->each[JOB] = (size_t)e->layout.size * sizeof(cl_float);
    e->each[KEY] = sizeof(cl_uint2);
    e->each[POINT] = e->each[NEXT_POINT] =
        (size_t)spec->n_point * sizeof(cl_float4);
    e->each[RESULT] =
        (size_t)tsr_surrogate_result_size(spec) * sizeof(cl_float);
    e->each[COUNT] = (size_t)tsr_surrogate_n_count(spec) * sizeof(cl_int2);
    const size_t bytes = local_bytes(spec, e->lanes);
    tsr_status status = TSR_OK;
    if (bytes > device->info.local_bytes)
        status = tsr_fail(err, TSR_E_DEVICE,
                          "%s has %.0f KiB of local memory per work-group, and "
                          "a surrogate walk of this molecule needs %.0f",
                          device->info.name,
                          (double)device->info.local_bytes / 1024.0,
                          (double)bytes / 1024.0);
    TSR_THEN(status, build(e, err));
    TSR_THEN(status, set_common_arguments(e, err));
    e->has_thread =
        status == TSR_OK && pthread_create(&e->thread, NULL, serve, e) == 0;
    if (status == TSR_OK && !e->has_thread)
        status = tsr_fail(err, TSR_E_INTERNAL, "cannot start a thread");
    if (status != TSR_OK) {
        engine_free(&e->base);
        return status;
    }
    *out = &e->base;
    return TSR_OK;
}
