/* Predicted run times, linear in the work of each method. Direct sum: pairs
 * times q. Grid: particles times modes, plus points of the grid times
 * transforms. Quadrature: particles times directions and q. The constants are
 * in seconds of one thread of a Xeon at 2.5 GHz with AVX-512. On other
 * computers one trial scales them all. */
#include "scattering/profile_method.h"

#include "core/clock.h"
#include "core/parallel.h"
#include "scattering/grid_sum.h"
#include "scattering/plane_wave.h"

#include <math.h>
#include <unistd.h>

static const double grid_start_s = 4e-3, grid_spread_s = 0.4e-6,
                    grid_point_s = 1.6e-8;
static const double wave_start_s = 3e-4, wave_s = 0.85e-9;

const char *tsr_profile_method_name(tsr_profile_method method)
{
    static const char *const name[] = {"direct", "fft", "quadrature", "auto"};
    return name[method];
}

/* ---- the trial ---- */

enum { TRIAL_N = 64, TRIAL_Q = 16, TRIALS = 3 };

/* Times a quadrature of points on a helix of 30 Angstrom. */
static tsr_status trial(double *seconds, tsr_err *err)
{
    double xyz[TRIAL_N][3], factor[TRIAL_Q], profile[TRIAL_Q];
    int type[TRIAL_N];
    for (int i = 0; i < TRIAL_N; i++) {
        xyz[i][0] = 5.0 * cos(1.7 * i);
        xyz[i][1] = 5.0 * sin(1.7 * i);
        xyz[i][2] = 28.0 * i / TRIAL_N;
        type[i] = 0;
    }
    for (int k = 0; k < TRIAL_Q; k++)
        factor[k] = 1.0;
    tsr_debye_spec spec = {.n = TRIAL_N,
                           .n_type = 1,
                           .n_comp = 1,
                           .n_q = TRIAL_Q,
                           .dq_inv_ang = 0.03,
                           .xyz = (const double(*)[3])xyz,
                           .type = type,
                           .form_factor = factor};
    double started = tsr_clock_s();
    TSR_TRY(tsr_plane_wave_sum(&spec, 30.0, 1, NULL, profile, err));
    *seconds = tsr_clock_s() - started;
    return TSR_OK;
}

static double memory(void)
{
    long pages = sysconf(_SC_PHYS_PAGES), size = sysconf(_SC_PAGESIZE);
    return pages > 0 && size > 0 ? 0.7 * (double)pages * (double)size : 0.0;
}

tsr_status tsr_method_speed_measure(tsr_method_speed *out, tsr_err *err)
{
    static const double trial_s = 1.34e-4;
    double best = (double)INFINITY, seconds;
    *out = (tsr_method_speed){.n_thread = tsr_parallel_processors(),
                              .memory_bytes = memory()};
    for (int i = 0; i < TRIALS; i++) {
        TSR_TRY(trial(&seconds, err));
        best = fmin(best, seconds);
    }
    out->host = fmin(fmax(best / trial_s, 0.2), 10.0);
    return TSR_OK;
}

/* ---- predicted times ---- */

static double grid_seconds(const tsr_debye_spec *spec,
                           const tsr_method_speed *speed)
{
    tsr_grid_size size;
    tsr_grid_size_of(spec, &size);
    if (speed->memory_bytes > 0.0 && size.bytes > speed->memory_bytes)
        return (double)INFINITY;
    double parallel =
        grid_spread_s * size.n_spread +
        grid_point_s * size.n_point * (double)(size.n_mode + size.n_pair);
    return speed->host * (grid_start_s + parallel / speed->n_thread);
}

double tsr_method_seconds(tsr_profile_method method, const tsr_debye_spec *spec,
                          double d_ang, const tsr_method_speed *speed)
{
    double n = spec->n;
    if (method == TSR_METHOD_FFT &&
        (spec->n_q - 1) * spec->dq_inv_ang > tsr_grid_q_max)
        return (double)INFINITY;
    if (method == TSR_METHOD_FFT)
        return grid_seconds(spec, speed);
    if (method == TSR_METHOD_QUADRATURE)
        return speed->host *
               (wave_start_s +
                wave_s * n / speed->n_thread *
                    tsr_plane_wave_terms(spec->n_q, spec->dq_inv_ang, d_ang));
    return speed->start_s + speed->pair_s * 0.5 * n * n * spec->n_q;
}

tsr_status tsr_method_run(tsr_profile_method method, const tsr_debye_spec *spec,
                          double d_ang, int n_thread,
                          const tsr_debye_progress *progress, double *profile,
                          tsr_err *err)
{
    if (method == TSR_METHOD_FFT)
        return tsr_grid_sum(spec, n_thread, progress, profile, err);
    if (method == TSR_METHOD_QUADRATURE)
        return tsr_plane_wave_sum(spec, d_ang, n_thread, progress, profile,
                                  err);
    return tsr_fail(err, TSR_E_INTERNAL, "unknown method on the host: %s",
                    tsr_profile_method_name(method));
}
