/* Transforms on the device against FFTW's, forward and back. */
#include "../engine_support.h"

#include "gpu/fft.h"

#include <fftw3.h>

/* Every radix, alone and with others; sides of 1 stage and of many; lines that
 * do not fill a work-group; used parts of all kinds. */
static const tsr_fft_shape shapes[] = {
    {{2, 1, 1}, 1, {2, 1, 1}, 1},        {{4, 3, 5}, 2, {4, 3, 5}, 5},
    {{14, 7, 49}, 1, {14, 7, 49}, 49},   {{60, 48, 90}, 3, {24, 20, 41}, 46},
    {{126, 100, 16}, 2, {56, 48, 9}, 9}, {{18, 25, 1024}, 1, {9, 1, 500}, 513},
    {{1458, 2, 6}, 1, {700, 2, 3}, 4},   {{8, 1250, 10}, 1, {3, 620, 10}, 6}};

typedef struct {
    tsr_fft_shape shape;
    size_t row, n; /* complex numbers of a row, of all */
    double *data, *exact;
} sample;

static void make(sample *s, const tsr_fft_shape *shape)
{
    uint64_t state = 5;
    const int *n = shape->n, *used = shape->n_used;
    s->shape = *shape;
    s->row = (size_t)n[0] / 2 + 1;
    s->n = s->row * (size_t)n[1] * (size_t)n[2] * (size_t)shape->n_batch;
    s->data = malloc(2 * s->n * sizeof *s->data);
    s->exact = fftw_alloc_real(2 * s->n);
    for (size_t i = 0; i < 2 * s->n; i++) {
        size_t line = i / (2 * s->row), x = i % (2 * s->row);
        int is_used = x < (size_t)used[0] &&
                      line % (size_t)n[1] < (size_t)used[1] &&
                      line / (size_t)n[1] % (size_t)n[2] < (size_t)used[2];
        s->data[i] = uniform(&state) - 0.3; /* rubbish where it is not used */
        s->exact[i] = is_used ? s->data[i] : 0.0;
    }
}

/* Of all batches; back: of the planes that are wanted. */
static void compare(const sample *s, int is_inverse, const double *got)
{
    const int *n = s->shape.n;
    size_t plane = 2 * s->row * (size_t)n[1];
    double worst = 0.0, size = 0.0;
    for (size_t i = 0; i < 2 * s->n; i++) {
        int is_wanted = !is_inverse ||
                        (i % (2 * s->row) < (size_t)n[0] &&
                         i / plane % (size_t)n[2] < (size_t)s->shape.n_wanted);
        double error = is_wanted ? fabs(got[i] - s->exact[i]) : 0.0;
        if (!(error <= worst))
            worst = error;
        size = fmax(size, fabs(s->exact[i]));
    }
    if (!(worst <= 1e-14 * size))
        fail_msg("%d x %d x %d, %s: %g of %g", n[0], n[1], n[2],
                 is_inverse ? "back" : "forward", worst, size);
}

static void exact_forward(sample *s)
{
    const int *n = s->shape.n;
    size_t volume = s->n / (size_t)s->shape.n_batch;
    for (int b = 0; b < s->shape.n_batch; b++) {
        double *at = s->exact + 2 * volume * (size_t)b;
        fftw_plan plan = fftw_plan_dft_r2c_3d(
            n[2], n[1], n[0], at, (fftw_complex *)at, FFTW_ESTIMATE);
        fftw_execute(plan);
        fftw_destroy_plan(plan);
    }
}

static void exact_back(sample *s)
{
    const int *n = s->shape.n;
    size_t volume = s->n / (size_t)s->shape.n_batch;
    for (int b = 0; b < s->shape.n_batch; b++) {
        double *at = s->exact + 2 * volume * (size_t)b;
        fftw_plan plan = fftw_plan_dft_c2r_3d(
            n[2], n[1], n[0], (fftw_complex *)at, at, FFTW_ESTIMATE);
        fftw_execute(plan);
        fftw_destroy_plan(plan);
    }
}

static void is_fftw(void **state)
{
    (void)state;
    tsr_err err;
    tsr_program program;
    tsr_fft *fft;
    cl_int code;
    const char *source = "fft.cl";
    tsr_device *device = open_device();
    if (device == NULL || !device->info.has_double) {
        tsr_device_free(device);
        skip();
    }
    must(tsr_program_build(device, 1, &source, "-cl-std=CL1.2", &program, &err),
         &err);
    must(tsr_fft_new(device, program.program, &fft, &err), &err);
    cl_command_queue queue =
        clCreateCommandQueue(device->context, device->id, 0, &code);
    for (size_t i = 0; i < sizeof shapes / sizeof shapes[0]; i++) {
        sample s;
        make(&s, &shapes[i]);
        size_t bytes = 2 * s.n * sizeof *s.data;
        cl_mem data = clCreateBuffer(device->context,
                                     CL_MEM_READ_WRITE | CL_MEM_COPY_HOST_PTR,
                                     bytes, s.data, &code);
        must(tsr_fft_enqueue(fft, queue, &s.shape, 0, data, &err), &err);
        clEnqueueReadBuffer(queue, data, CL_TRUE, 0, bytes, s.data, 0, NULL,
                            NULL);
        exact_forward(&s);
        compare(&s, 0, s.data);
        must(tsr_fft_enqueue(fft, queue, &s.shape, 1, data, &err), &err);
        clEnqueueReadBuffer(queue, data, CL_TRUE, 0, bytes, s.data, 0, NULL,
                            NULL);
        exact_back(&s);
        compare(&s, 1, s.data);
        clReleaseMemObject(data);
        free(s.data);
        fftw_free(s.exact);
    }
    tsr_fft_shape bad = {{22, 2, 2}, 1, {22, 2, 2}, 2};
    assert_int_equal(tsr_fft_enqueue(fft, queue, &bad, 0, NULL, &err),
                     TSR_E_DEVICE);
    tsr_fft_free(fft);
    clReleaseCommandQueue(queue);
    tsr_program_clear(&program);
    tsr_device_free(device);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(is_fftw)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
