/* Debye profiles by a grid and Fourier transforms, as scattering/grid_sum.h, on
 * an OpenCL device that has double precision and 64-bit atomics.
 *
 * The host chooses the box and sorts the particles; all else is the device's,
 * and everything is added up in an order of its own or as integers: the same
 * bits each time. */
#ifndef TSR_GPU_GRID_FFT_H
#define TSR_GPU_GRID_FFT_H

#include "gpu/device.h"
#include "scattering/debye.h"

typedef struct tsr_grid_fft tsr_grid_fft;

/* Builds the program; the device is borrowed. Errors: TSR_E_DEVICE (also where
 * the device lacks what it takes), TSR_E_NOMEM. */
tsr_status tsr_grid_fft_new(const tsr_device *device, tsr_grid_fft **out,
                            tsr_err *err);
void tsr_grid_fft_free(tsr_grid_fft *grid);

/* Whether the device has what it takes, for a grid of so many bytes. */
int tsr_grid_fft_fits(const tsr_device_info *info, double bytes);

/* Device, driver and source, as engines describe themselves. */
const char *tsr_grid_fft_describe(const tsr_grid_fft *grid);

/* profile [n_pair][n_q] out, as tsr_grid_sum's. Errors: TSR_E_RANGE (q),
 * TSR_E_DEVICE, TSR_E_NOMEM, those of tsr_debye_check. */
tsr_status tsr_grid_fft_run(tsr_grid_fft *grid, const tsr_debye_spec *spec,
                            double *profile, tsr_err *err);

/* Known answers on a small sample, against Debye's formula in double precision.
 * TSR_E_DEVICE where they are wrong; max_error, of sqrt(I_aa I_bb), may be
 * NULL. */
tsr_status tsr_grid_fft_test(tsr_grid_fft *grid, double *max_error,
                             tsr_err *err);

/* Where the time of the last run went, seconds by the clock. */
#define TSR_GRID_FFT_PARTS(X)                             \
    X(host) /* the box, modes of form factors, sorting */ \
    X(make) /* buffers, where there was none so large */  \
    X(upload)                                             \
    X(spread)                                             \
    X(forward)                                            \
    X(amplitude)                                          \
    X(inverse)                                            \
    X(shells)                                             \
    X(profile)
typedef struct {
#define TSR_GRID_FFT_PART(name) double name;
    TSR_GRID_FFT_PARTS(TSR_GRID_FFT_PART)
#undef TSR_GRID_FFT_PART
} tsr_grid_fft_seconds;

tsr_grid_fft_seconds tsr_grid_fft_last(const tsr_grid_fft *grid);

#endif
