/* VkFFT (Tolmachev 2023, IEEE Access 11, 12039) writes kernels for a shape and
 * a device; a header alone, which this file compiles. */
#include "gpu/fft.h"

#define VKFFT_BACKEND 3 /* OpenCL */
#include <vkFFT.h>

#include <stdlib.h>

struct tsr_fft {
    VkFFTApplication app;
    const tsr_device *device;
    /* The application points to them. */
    cl_platform_id platform;
    cl_device_id id;
    cl_context context;
    uint64_t bytes;
    int is_inverse;
};

static tsr_status fail(const tsr_device *device, VkFFTResult result,
                       tsr_err *err)
{
    return tsr_fail(err, TSR_E_DEVICE,
                    "%s: VkFFT, which transforms the grid, gives up with %d; "
                    "give --method fft, which is the host's",
                    device->info.name, (int)result);
}

tsr_status tsr_fft_new(const tsr_device *device, const tsr_fft_shape *shape,
                       tsr_fft **out, tsr_err *err)
{
    *out = NULL;
    tsr_fft *f = calloc(1, sizeof *f);
    TSR_TRY(tsr_allocated(f, err));
    f->device = device;
    f->platform = device->platform;
    f->id = device->id;
    f->context = device->context;
    f->is_inverse = shape->is_inverse;
    uint64_t numbers = (uint64_t)(2 * (shape->n[0] / 2 + 1));
    VkFFTConfiguration c = {.FFTdim = 3,
                            .platform = &f->platform,
                            .device = &f->id,
                            .context = &f->context,
                            .performR2C = 1,
                            .doublePrecision = 1,
                            .numberBatches = (uint64_t)shape->n_batch,
                            .makeForwardPlanOnly = !shape->is_inverse,
                            .makeInversePlanOnly = shape->is_inverse != 0};
    for (int i = 0; i < 3; i++) {
        c.size[i] = (uint64_t)shape->n[i];
        if (i > 0)
            numbers *= c.size[i];
        c.performZeropadding[i] = shape->n_used[i] < shape->n[i];
        c.fft_zeropad_left[i] = (uint64_t)shape->n_used[i];
        c.fft_zeropad_right[i] = (uint64_t)shape->n[i];
    }
    numbers *= (uint64_t)shape->n_batch;
    f->bytes = numbers * sizeof(double);
    c.bufferSize = &f->bytes;
    c.useUint64 = numbers >> 31 != 0;
    VkFFTResult result = initializeVkFFT(&f->app, c);
    if (result != VKFFT_SUCCESS) { /* it has cleared what it made */
        free(f);
        return fail(device, result, err);
    }
    *out = f;
    return TSR_OK;
}

void tsr_fft_free(tsr_fft *fft)
{
    if (fft == NULL)
        return;
    deleteVkFFT(&fft->app);
    free(fft);
}

tsr_status tsr_fft_enqueue(tsr_fft *fft, cl_command_queue queue, cl_mem data,
                           tsr_err *err)
{
    VkFFTLaunchParams launch = {.commandQueue = &queue, .buffer = &data};
    VkFFTResult result =
        VkFFTAppend(&fft->app, fft->is_inverse ? 1 : -1, &launch);
    return result == VKFFT_SUCCESS ? TSR_OK : fail(fft->device, result, err);
}
