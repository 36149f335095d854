/* Fast Fourier transforms of real three-dimensional data on an OpenCL device, in
 * double precision, in place: VkFFT, whose only home is fft.c. */
#ifndef TSR_GPU_FFT_H
#define TSR_GPU_FFT_H

#include "gpu/opencl.h"

/* Data: [n_batch][n[2]][n[1]][2 (n[0] / 2 + 1)] real numbers, of which the last
 * two of a row are of the complex half spectrum alone. */
typedef struct {
    int n[3]; /* without prime factors above 13; n[0] even */
    int n_batch;
    int is_inverse; /* 0: real to complex; 1: back, not normalised */
    int n_used[3];  /* forward: what lies beyond is taken for zero, whatever is
                       there; inverse: what lies beyond is not computed */
} tsr_fft_shape;

typedef struct tsr_fft tsr_fft;

/* Writes and builds the kernels of a shape: some seconds where the driver has
 * not kept them. The device is borrowed. Errors: TSR_E_DEVICE, TSR_E_NOMEM. */
tsr_status tsr_fft_new(const tsr_device *device, const tsr_fft_shape *shape,
                       tsr_fft **out, tsr_err *err);
void tsr_fft_free(tsr_fft *fft);

/* Puts it into the queue. Errors: TSR_E_DEVICE. */
tsr_status tsr_fft_enqueue(tsr_fft *fft, cl_command_queue queue, cl_mem data,
                           tsr_err *err);

#endif
