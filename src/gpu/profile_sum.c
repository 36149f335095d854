/* The choice between the methods, and what each of them keeps. */
#include "gpu/profile_sum.h"

#include "core/clock.h"
#include "gpu/debye_sum.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

struct tsr_profile_sum {
    char *device_name;
    tsr_device *device;              /* NULL: not opened, or the reference */
    tsr_profile_method method, used; /* asked for; that of the last sum */
    int no_grid;
    tsr_method_speed speed;
    tsr_debye_sum *direct; /* for d_bound and n_q; NULL until one is needed */
    double d_bound;
    int n_q;
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
    s->device_name = strdup(device);
    tsr_status status = tsr_allocated(s->device_name, err);
    TSR_THEN(status, tsr_method_speed_measure(&s->speed, err));
    if (status == TSR_OK && strcmp(device, "auto") != 0)
        status = open_device(s, err);
    if (status != TSR_OK) {
        tsr_profile_sum_free(s);
        return status;
    }
    *out = s;
    return TSR_OK;
}

void tsr_profile_sum_free(tsr_profile_sum *sum)
{
    if (sum == NULL)
        return;
    tsr_debye_sum_free(sum->direct);
    tsr_device_free(sum->device);
    free(sum->device_name);
    free(sum);
}

const char *tsr_profile_sum_describe(const tsr_profile_sum *sum)
{
    if (sum->used == TSR_METHOD_FFT)
        return "grid FFT on the host, double precision";
    if (sum->used == TSR_METHOD_QUADRATURE)
        return "plane waves on the host, double precision";
    return sum->direct != NULL ? tsr_debye_sum_describe(sum->direct)
                               : "reference, double precision";
}

/* ---- the choice ---- */

/* What a direct sum takes, for each pair and q: on one core in double
 * precision; on cores with PoCL; on an H200, and other GPUs by their number of
 * compute units. The start: opening the device, building the program and its
 * trial. */
static void direct_speed(const tsr_profile_sum *s, double d_bound, int n_q,
                         tsr_method_speed *speed)
{
    static const double core_s = 3e-9, lanes_s = 1.2e-10, gpu_s = 2.5e-13;
    static const double open_s = 0.2, build_s = 0.15, gpu_units = 132.0;
    speed->pair_s = speed->host * core_s;
    speed->start_s = 0.0;
    if (is_reference(s))
        return;
    const tsr_device_info *info =
        s->device != NULL ? tsr_device_get_info(s->device) : NULL;
    speed->pair_s = speed->host * lanes_s / speed->n_thread;
    if (info != NULL && info->type != TSR_DEVICE_CPU)
        speed->pair_s = gpu_s * gpu_units / fmax(1.0, info->compute_units);
    speed->start_s =
        (s->device == NULL ? open_s : 0.0) +
        (s->direct == NULL || s->d_bound != d_bound || s->n_q != n_q ? build_s
                                                                     : 0.0);
}

static void predict(const tsr_profile_sum *s, const tsr_debye_spec *spec,
                    double d, double d_bound, tsr_method_speed *speed,
                    double seconds[TSR_N_METHOD])
{
    direct_speed(s, d_bound, spec->n_q, speed);
    for (int k = 0; k < TSR_N_METHOD; k++)
        seconds[k] = tsr_method_seconds((tsr_profile_method)k, spec, d, speed);
    if (s->no_grid)
        seconds[TSR_METHOD_FFT] = (double)INFINITY;
}

/* The fastest, or the one that was asked for. A device is opened to be asked
 * how fast it is only where the host takes longer than that. */
static tsr_status choose(tsr_profile_sum *s, const tsr_debye_spec *spec,
                         double d, double d_bound, tsr_log *log,
                         tsr_profile_sum_result *out, tsr_err *err)
{
    tsr_method_speed speed = s->speed;
    double seconds[TSR_N_METHOD];
    predict(s, spec, d, d_bound, &speed, seconds);
    double host = fmin(seconds[TSR_METHOD_FFT], seconds[TSR_METHOD_QUADRATURE]);
    if (s->method == TSR_METHOD_DIRECT ||
        (s->method == TSR_METHOD_AUTO && host > speed.start_s)) {
        TSR_TRY(open_device(s, err));
        predict(s, spec, d, d_bound, &speed, seconds);
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

/* ---- the sum ---- */

static tsr_status make_direct(tsr_profile_sum *s, const tsr_debye_spec *spec,
                              double d_bound, tsr_err *err)
{
    if (s->device == NULL ||
        (s->direct != NULL && s->d_bound == d_bound && s->n_q == spec->n_q))
        return TSR_OK;
    tsr_debye_sum_free(s->direct);
    s->direct = NULL;
    TSR_TRY(tsr_debye_sum_new(s->device, spec->n_q, spec->dq_inv_ang,
                              spec->weight != NULL, d_bound, NULL, &s->direct,
                              err));
    s->d_bound = d_bound;
    s->n_q = spec->n_q;
    return tsr_debye_sum_test(s->direct, NULL, err);
}

tsr_status tsr_profile_sum_run(tsr_profile_sum *sum, const tsr_debye_spec *spec,
                               double d_ang, double d_bound_ang, tsr_log *log,
                               const tsr_debye_progress *progress,
                               double *profile, tsr_profile_sum_result *result,
                               tsr_err *err)
{
    tsr_status status;
    TSR_TRY(choose(sum, spec, d_ang, d_bound_ang, log, result, err));
    if (result->method == TSR_METHOD_DIRECT)
        TSR_TRY(make_direct(sum, spec, d_bound_ang, err));
    sum->used = result->method;
    double started = tsr_clock_s();
    if (result->method != TSR_METHOD_DIRECT)
        status = tsr_method_run(result->method, spec, d_ang,
                                sum->speed.n_thread, progress, profile, err);
    else if (sum->device != NULL)
        status = tsr_debye_sum_run(sum->direct, spec, progress, profile, err);
    else
        status = tsr_debye_reference(spec, progress, profile, err);
    result->seconds = tsr_clock_s() - started;
    return status;
}
