/* One launch of kernels/fft.cl an axis. Forward along x, y, z, so that lines
 * beyond the data are left out before, and back along z, y, x, so that planes
 * that nobody wants are left out after: half of the work either way. */
#include "gpu/fft.h"

#include <math.h>
#include <stdlib.h>

enum {
    LANES = 128, /* as in the kernel */
    MOST_SHIFT = 3,
    ENOUGH = 512, /* elements of a work-group, where lines are contiguous */
    MOST_STAGE = 8,
    MOST_LOCAL = 48 << 10 /* bytes of a work-group: several share a unit */
};

/* As in the kernel. */
enum { COMPLEX, FROM_REAL, TO_REAL };

static const double pi = 3.14159265358979323846;

struct tsr_fft {
    const tsr_device *device;
    cl_kernel kernel;
    int n[3]; /* sides that roots are there for */
    cl_mem root[3];
};

static size_t local_bytes(int n, int shift)
{
    return ((size_t)n << shift) * 2 * sizeof(cl_double2);
}

static size_t most_local(const tsr_device_info *info)
{
    return info->local_bytes < MOST_LOCAL ? (size_t)info->local_bytes
                                          : MOST_LOCAL;
}

/* Lines of a work-group, as a power of 2: elements that are neighbours in
 * memory are to be read together. */
static int shift_of(const tsr_device_info *info, int n, int axis)
{
    int shift = 0;
    while (shift < MOST_SHIFT && (axis != 0 || n << shift < ENOUGH) &&
           local_bytes(n, shift + 1) <= most_local(info))
        shift++;
    return shift;
}

tsr_status tsr_fft_new(const tsr_device *device, cl_program program,
                       tsr_fft **out, tsr_err *err)
{
    cl_int code;
    *out = NULL;
    tsr_fft *f = calloc(1, sizeof *f);
    TSR_TRY(tsr_allocated(f, err));
    f->device = device;
    f->kernel = clCreateKernel(program, "fft_lines", &code);
    if (f->kernel == NULL) {
        tsr_fft_free(f);
        return tsr_cl_fail(err, device, "clCreateKernel", code);
    }
    *out = f;
    return TSR_OK;
}

void tsr_fft_free(tsr_fft *fft)
{
    if (fft == NULL)
        return;
    for (int c = 0; c < 3; c++)
        if (fft->root[c] != NULL)
            clReleaseMemObject(fft->root[c]);
    if (fft->kernel != NULL)
        clReleaseKernel(fft->kernel);
    free(fft);
}

int tsr_fft_longest(const tsr_device_info *info)
{
    return (int)(most_local(info) / local_bytes(1, 0));
}

/* Radices, odd ones first, whose stores meet fewer banks of local memory that
 * are busy; 0 where they do not do. */
static int factor(int n, cl_int stage[MOST_STAGE])
{
    static const int radix[] = {7, 5, 3, 4, 2};
    int n_stage = 0;
    for (int r = 0; r < 5; r++)
        while (n % radix[r] == 0 && n_stage < MOST_STAGE) {
            stage[n_stage++] = radix[r];
            n /= radix[r];
        }
    return n == 1;
}

static tsr_status set_roots(tsr_fft *f, int axis, int n, tsr_err *err)
{
    cl_int code;
    if (f->n[axis] == n)
        return TSR_OK;
    if (f->root[axis] != NULL)
        clReleaseMemObject(f->root[axis]);
    f->root[axis] = NULL;
    f->n[axis] = 0;
    double(*root)[2] = malloc((size_t)n * sizeof *root);
    TSR_TRY(tsr_allocated(root, err));
    for (int k = 0; k < n; k++) {
        root[k][0] = cos(2.0 * pi * k / n);
        root[k][1] = -sin(2.0 * pi * k / n);
    }
    f->root[axis] = clCreateBuffer(f->device->context,
                                   CL_MEM_READ_ONLY | CL_MEM_COPY_HOST_PTR,
                                   (size_t)n * sizeof *root, root, &code);
    free(root);
    if (f->root[axis] == NULL)
        return tsr_cl_fail(err, f->device, "clCreateBuffer", code);
    f->n[axis] = n;
    return TSR_OK;
}

/* The lines of one axis: as the kernel takes them. */
typedef struct {
    cl_int count, n_in, n_out, kind;
    cl_ulong step[4];
    size_t rows;
} lines;

static lines lines_of(const tsr_fft_shape *s, int axis, int is_inverse)
{
    const cl_ulong row = (cl_ulong)s->n[0] / 2 + 1,
                   plane = row * (cl_ulong)s->n[1],
                   volume = plane * (cl_ulong)s->n[2];
    const int n_z = is_inverse ? s->n_wanted : s->n_used[2];
    lines l = {.count = (cl_int)row,
               .n_in = is_inverse ? s->n[axis] : s->n_used[axis],
               .n_out = s->n[axis],
               .kind = COMPLEX,
               .rows = (size_t)n_z};
    if (axis == 0) {
        l.kind = is_inverse ? TO_REAL : FROM_REAL;
        l.count = is_inverse ? s->n[1] : s->n_used[1];
        l.n_out = is_inverse ? s->n[0] : (cl_int)row;
        l.step[0] = row, l.step[1] = plane, l.step[3] = 1;
    } else if (axis == 1) {
        l.step[0] = 1, l.step[1] = plane, l.step[3] = row;
    } else {
        l.n_out = is_inverse ? s->n_wanted : s->n[2];
        l.step[0] = 1, l.step[1] = row, l.step[3] = plane;
        l.rows = (size_t)s->n[1];
    }
    l.step[2] = volume;
    return l;
}

static tsr_status transform(tsr_fft *f, cl_command_queue queue,
                            const tsr_fft_shape *shape, int axis,
                            int is_inverse, cl_mem data, tsr_err *err)
{
    const lines l = lines_of(shape, axis, is_inverse);
    const cl_int n = shape->n[axis];
    const double sign = is_inverse ? -1.0 : 1.0;
    const cl_int shift = shift_of(&f->device->info, n, axis);
    cl_int stage[MOST_STAGE] = {0};
    if (!factor(n, stage) || n > tsr_fft_longest(&f->device->info))
        return tsr_fail(err, TSR_E_DEVICE,
                        "%s: no transform of length %d there",
                        f->device->info.name, (int)n);
    TSR_TRY(set_roots(f, axis, n, err));
    const struct {
        size_t size;
        const void *value;
    } argument[] = {{sizeof data, &data},
                    {sizeof f->root[axis], &f->root[axis]},
                    {sizeof n, &n},
                    {sizeof stage, stage},
                    {sizeof shift, &shift},
                    {sizeof l.count, &l.count},
                    {sizeof l.step, l.step},
                    {sizeof l.n_in, &l.n_in},
                    {sizeof l.n_out, &l.n_out},
                    {sizeof l.kind, &l.kind},
                    {sizeof sign, &sign},
                    {local_bytes(n, shift), NULL}};
    const size_t per = (size_t)1 << shift;
    const size_t global[3] = {((size_t)l.count + per - 1) / per * LANES, l.rows,
                              (size_t)shape->n_batch},
                 local[3] = {LANES, 1, 1};
    cl_int code = CL_SUCCESS;
    for (cl_uint i = 0;
         i < sizeof argument / sizeof argument[0] && code == CL_SUCCESS; i++)
        code =
            clSetKernelArg(f->kernel, i, argument[i].size, argument[i].value);
    if (code == CL_SUCCESS)
        code = clEnqueueNDRangeKernel(queue, f->kernel, 3, NULL, global, local,
                                      0, NULL, NULL);
    return code == CL_SUCCESS ? TSR_OK
                              : tsr_cl_fail(err, f->device, "fft_lines", code);
}

tsr_status tsr_fft_enqueue(tsr_fft *fft, cl_command_queue queue,
                           const tsr_fft_shape *shape, int is_inverse,
                           cl_mem data, tsr_err *err)
{
    for (int i = 0; i < 3; i++)
        TSR_TRY(transform(fft, queue, shape, is_inverse ? 2 - i : i, is_inverse,
                          data, err));
    return TSR_OK;
}
