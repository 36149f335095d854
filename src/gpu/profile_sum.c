/* The choice between the methods, and what each of them keeps. */
#include "gpu/profile_sum.h"

#include "core/clock.h"
#include "gpu/debye_sum.h"
#include "gpu/fft.h"
#include "gpu/grid_fft.h"

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
    tsr_grid_fft *grid; /* NULL until one is needed */
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
    if (status == TSR_OK && is_reference(s) && method == TSR_METHOD_DEVICE_FFT)
        status = tsr_fail(err, TSR_E_USAGE,
                          "--method device-fft is a device's, and --device "
                          "reference has none: --method fft is the host's");
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
    tsr_grid_fft_free(sum->grid);
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
    if (sum->used == TSR_METHOD_DEVICE_FFT && sum->grid != NULL)
        return tsr_grid_fft_describe(sum->grid);
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

/* The same of its grid, on PoCL and on an H200. Until the device is open there
 * is none. */
static void grid_speed(const tsr_profile_sum *s, tsr_method_speed *speed)
{
    static const double lanes_spread_s = 1.2e-6, lanes_point_s = 4e-8,
                        gpu_spread_s = 1.6e-9, gpu_point_s = 2.5e-11,
                        gpu_units = 132.0;
    static const double build_s = 0.3;
    const tsr_device_info *info =
        s->device != NULL ? tsr_device_get_info(s->device) : NULL;
    speed->device_point_s = 0.0;
    if (info == NULL || !tsr_grid_fft_fits(info, 0.0))
        return;
    double times = speed->host / speed->n_thread;
    speed->device_spread_s = times * lanes_spread_s;
    speed->device_point_s = times * lanes_point_s;
    if (info->type != TSR_DEVICE_CPU) {
        times = gpu_units / fmax(1.0, info->compute_units);
        speed->device_spread_s = times * gpu_spread_s;
        speed->device_point_s = times * gpu_point_s;
    }
    speed->device_start_s = s->grid == NULL ? build_s : 0.0;
    speed->device_side = tsr_fft_longest(info);
    speed->device_bytes =
        fmin((double)info->max_alloc_bytes, (double)info->global_bytes / 1.2);
}

static void predict(const tsr_profile_sum *s, const tsr_debye_spec *spec,
                    double d, double d_bound, tsr_method_speed *speed,
                    double seconds[TSR_N_METHOD])
{
    direct_speed(s, d_bound, spec->n_q, speed);
    grid_speed(s, speed);
    for (int k = 0; k < TSR_N_METHOD; k++)
        seconds[k] = tsr_method_seconds((tsr_profile_method)k, spec, d, speed);
    if (s->no_grid)
        seconds[TSR_METHOD_FFT] = seconds[TSR_METHOD_DEVICE_FFT] =
            (double)INFINITY;
}

/* The fastest, or the one that was asked for. A device is opened to be asked
 * how fast it is only where the host takes longer than that. */
static tsr_status choose(tsr_profile_sum *s, const tsr_debye_spec *spec,
                         double d, double d_bound, tsr_log *log,
                         tsr_profile_sum_result *out, tsr_err *err)
{
    tsr_method_speed speed = s->speed;
    double seconds[TSR_N_METHOD];
    int is_device =
        s->method == TSR_METHOD_DIRECT || s->method == TSR_METHOD_DEVICE_FFT;
    predict(s, spec, d, d_bound, &speed, seconds);
    double host = fmin(seconds[TSR_METHOD_FFT], seconds[TSR_METHOD_QUADRATURE]);
    if (is_device || (s->method == TSR_METHOD_AUTO && host > speed.start_s)) {
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

static tsr_status make_grid(tsr_profile_sum *s, tsr_err *err)
{
    if (s->grid != NULL)
        return TSR_OK;
    TSR_TRY(tsr_grid_fft_new(s->device, &s->grid, err));
    return tsr_grid_fft_test(s->grid, NULL, err);
}

static void tell_parts(const tsr_profile_sum *s, tsr_log *log)
{
    const tsr_grid_fft_seconds parts = tsr_grid_fft_last(s->grid);
#define TELL(name) tsr_debug(log, "grid: " #name " %.3g s", parts.name);
    TSR_GRID_FFT_PARTS(TELL)
#undef TELL
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
    if (result->method == TSR_METHOD_DEVICE_FFT)
        TSR_TRY(make_grid(sum, err));
    sum->used = result->method;
    double started = tsr_clock_s();
    if (result->method == TSR_METHOD_DEVICE_FFT)
        status = tsr_grid_fft_run(sum->grid, spec, profile, err);
    else if (result->method != TSR_METHOD_DIRECT)
        status = tsr_method_run(result->method, spec, d_ang,
                                sum->speed.n_thread, progress, profile, err);
    else if (sum->device != NULL)
        status = tsr_debye_sum_run(sum->direct, spec, progress, profile, err);
    else
        status = tsr_debye_reference(spec, progress, profile, err);
    result->seconds = tsr_clock_s() - started;
    if (result->method == TSR_METHOD_DEVICE_FFT) {
        result->seconds -= tsr_grid_fft_last(sum->grid).make;
        tell_parts(sum, log);
    }
    return status;
}
