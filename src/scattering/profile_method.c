/* Predicted run times, linear in the work of each method. Direct sum: pairs
 * times q. Grid: particles times modes, plus points of the grid times
 * transforms. Quadrature: particles times directions and q. The constants are
 * in seconds of one thread of a Xeon at 2.5 GHz with AVX-512. Other processors
 * differ by a common factor, which hardly affects the choice, and a choice that
 * does not depend on the load of the machine gives equal bits in equal calls.
 */
#include "scattering/profile_method.h"

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

static double memory(void)
{
    long pages = sysconf(_SC_PHYS_PAGES), size = sysconf(_SC_PAGESIZE);
    return pages > 0 && size > 0 ? 0.7 * (double)pages * (double)size : 0.0;
}

tsr_method_speed tsr_method_speed_here(void)
{
    return (tsr_method_speed){.n_thread = tsr_parallel_processors(),
                              .memory_bytes = memory()};
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
    return grid_start_s + parallel / speed->n_thread;
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
        return wave_start_s +
               wave_s * n / speed->n_thread *
                   tsr_plane_wave_terms(spec->n_q, spec->dq_inv_ang, d_ang);
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
