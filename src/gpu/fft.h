/* Fast Fourier transforms of real three-dimensional data on an OpenCL device,
 * in double precision, in place. One program does for all sizes, which are
 * arguments of its kernel: the next molecule's box has another, and building a
 * program takes longer than transforming. */
#ifndef TSR_GPU_FFT_H
#define TSR_GPU_FFT_H

#include "gpu/opencl.h"

/* Data: [n_batch][n[2]][n[1]][2 (n[0] / 2 + 1)] real numbers, of which the last
 * two of a row are of the complex half spectrum alone. */
typedef struct {
    int n[3]; /* without prime factors above 7; n[0] even */
    int n_batch;
    int n_used[3]; /* forward: what lies beyond is taken for zero, whatever is
                      there */
    int n_wanted;  /* back: planes along n[2] from here on are not computed */
} tsr_fft_shape;

typedef struct tsr_fft tsr_fft;

/* The kernel of a program that has "fft.cl". Device and program are borrowed.
 * Errors: TSR_E_DEVICE, TSR_E_NOMEM. */
tsr_status tsr_fft_new(const tsr_device *device, cl_program program,
                       tsr_fft **out, tsr_err *err);
void tsr_fft_free(tsr_fft *fft);

/* The longest side that the device's local memory has room for. */
int tsr_fft_longest(const tsr_device_info *info);

/* Puts one transform into the queue, forward or back, which is not normalised.
 * Errors: TSR_E_DEVICE (a side that cannot be done, too), TSR_E_NOMEM. */
tsr_status tsr_fft_enqueue(tsr_fft *fft, cl_command_queue queue,
                           const tsr_fft_shape *shape, int is_inverse,
                           cl_mem data, tsr_err *err);

#endif
