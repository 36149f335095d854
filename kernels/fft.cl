/* Fast Fourier transforms of many lines of one length, in place, in double
 * precision (src/gpu/fft.c): Stockham's, which sorts on its way, with the
 * radices 2, 3, 4, 5 and 7 (Van Loan 1992, Computational Frameworks for the
 * Fast Fourier Transform, 1.7).
 *
 * A work-group of LANES takes 2^shift lines from global into local memory, all
 * stages there, and back. Lines begin at i step.x + j step.y + k step.z, i <
 * count: groups go through i in global dimension 0, j and k are those of
 * dimensions 1 and 2; step.w is from one element to the next. The length is
 * the product of the radices in `stage`, which end with 0. Elements from n_in
 * on are taken for zero and not read, those from n_out on not written.
 *
 * kind: COMPLEX to COMPLEX; FROM_REAL: lines of n real numbers become the half
 * spectrum, n / 2 + 1 complex ones, at the same place; TO_REAL: back. root [n]:
 * exp(-2 pi i k / n). sign: 1 forward, -1 back. work: 2 n 2^shift. */
#pragma OPENCL EXTENSION cl_khr_fp64 : enable

#define FFT_LANES 128

enum { COMPLEX, FROM_REAL, TO_REAL };

static inline double2 times(double2 a, double2 b)
{
    return (double2)(a.x * b.x - a.y * b.y, a.x * b.y + a.y * b.x);
}

/* -i sign a */
static inline double2 turned(double2 a, double sign)
{
    return (double2)(sign * a.y, -sign * a.x);
}

static inline void pair(double2 *a, double2 *b)
{
    const double2 sum = *a + *b;
    *b = *a - *b;
    *a = sum;
}

/* Of 2 pi k / radix, for the odd radices. */
__constant double cosine[3][7] = {
    {1.0, -0.5, -0.5},
    {1.0, 0.30901699437494742, -0.80901699437494742, -0.80901699437494742,
     0.30901699437494742},
    {1.0, 0.62348980185873353, -0.22252093395631440, -0.90096886790241913,
     -0.90096886790241913, -0.22252093395631440, 0.62348980185873353}};
__constant double sine[3][7] = {
    {0.0, 0.86602540378443865, -0.86602540378443865},
    {0.0, 0.95105651629515357, 0.58778525229247313, -0.58778525229247313,
     -0.95105651629515357},
    {0.0, 0.78183148246802981, 0.97492791218182361, 0.43388373911755812,
     -0.43388373911755812, -0.97492791218182361, -0.78183148246802981}};

/* An odd radix, by cosines of the sums and sines of the differences of u_s and
 * u_(radix - s). */
static inline void odd(double2 *u, const int radix, double sign)
{
    double2 out[7];
    for (int s = 1; 2 * s < radix; s++)
        pair(&u[s], &u[radix - s]);
    out[0] = u[0];
    for (int s = 1; 2 * s < radix; s++)
        out[0] += u[s];
    for (int r = 1; 2 * r < radix; r++) {
        double2 even = u[0], rest = 0.0;
        for (int s = 1; 2 * s < radix; s++) {
            const int row = (radix - 3) / 2, k = r * s % radix;
            even += cosine[row][k] * u[s];
            rest += sine[row][k] * u[radix - s];
        }
        rest = turned(rest, sign);
        out[r] = even + rest;
        out[radix - r] = even - rest;
    }
    for (int r = 0; r < radix; r++)
        u[r] = out[r];
}

static inline void small(double2 *u, const int radix, double sign)
{
    if (radix == 2) {
        pair(&u[0], &u[1]);
    } else if (radix == 4) {
        pair(&u[0], &u[2]);
        pair(&u[1], &u[3]);
        u[3] = turned(u[3], sign);
        pair(&u[0], &u[1]);
        pair(&u[2], &u[3]);
        const double2 first = u[1];
        u[1] = u[2];
        u[2] = first;
    } else {
        odd(u, radix, sign);
    }
}

/* done: the product of the radices before. */
static inline void stage_of(const int radix, int n, int done, int shift,
                            double sign, __global const double2 *root,
                            __local const double2 *from, __local double2 *to)
{
    const int part = n / radix, turn = part / done;
    for (int at = (int)get_local_id(0); at < part << shift; at += FFT_LANES) {
        const int line = at & ((1 << shift) - 1), i = at >> shift;
        const int k = i % done, first = (i - k) * radix + k;
        double2 u[7];
        for (int r = 0; r < radix; r++) {
            u[r] = from[((i + r * part) << shift) + line];
            if (r > 0) {
                const double2 w = root[k * r * turn];
                u[r] = times(u[r], (double2)(w.x, sign * w.y));
            }
        }
        small(u, radix, sign);
        for (int r = 0; r < radix; r++)
            to[((first + r * done) << shift) + line] = u[r];
    }
}

static inline double2 load(__global const double2 *data, ulong begin,
                           ulong step, int n, int i, int n_in, int kind)
{
    if (kind == TO_REAL && 2 * i > n) {
        const double2 mirror = data[begin + (ulong)(n - i) * step];
        return (double2)(mirror.x, -mirror.y);
    }
    if (i >= n_in)
        return 0.0;
    if (kind == FROM_REAL)
        return (double2)(((__global const double *)data)[2 * begin + i], 0.0);
    return data[begin + (ulong)i * step];
}

__kernel __attribute__((reqd_work_group_size(FFT_LANES, 1, 1))) void
fft_lines(__global double2 *data, __global const double2 *root, int n,
          int8 stage, int shift, int count, ulong4 step, int n_in, int n_out,
          int kind, double sign, __local double2 *work)
{
    const int item = (int)get_local_id(0), lines = 1 << shift;
    const int low = (int)get_group_id(0) * lines;
    const ulong base =
        get_global_id(1) * step.y + get_global_id(2) * step.z + low * step.x;
    const int radix[8] = {stage.s0, stage.s1, stage.s2, stage.s3,
                          stage.s4, stage.s5, stage.s6, stage.s7};
    __local double2 *from = work, *to = work + (n << shift);
    for (int at = item; at < n << shift; at += FFT_LANES) {
        const int line = kind == COMPLEX ? at & (lines - 1) : at / n;
        const int i = kind == COMPLEX ? at >> shift : at % n;
        from[(i << shift) + line] =
            low + line < count ? load(data, base + line * step.x, step.w, n, i,
                                      n_in, kind)
                               : (double2)(0.0);
    }
    for (int s = 0, done = 1; s < 8 && radix[s] > 0; done *= radix[s], s++) {
        barrier(CLK_LOCAL_MEM_FENCE);
        switch (radix[s]) {
        case 2:
            stage_of(2, n, done, shift, sign, root, from, to);
            break;
        case 3:
            stage_of(3, n, done, shift, sign, root, from, to);
            break;
        case 4:
            stage_of(4, n, done, shift, sign, root, from, to);
            break;
        case 5:
            stage_of(5, n, done, shift, sign, root, from, to);
            break;
        default:
            stage_of(7, n, done, shift, sign, root, from, to);
        }
        __local double2 *swap = from;
        from = to;
        to = swap;
    }
    barrier(CLK_LOCAL_MEM_FENCE);
    for (int at = item; at < n_out << shift; at += FFT_LANES) {
        const int line = kind == COMPLEX ? at & (lines - 1) : at / n_out;
        const int i = kind == COMPLEX ? at >> shift : at % n_out;
        const double2 value = from[(i << shift) + line];
        const ulong begin = base + line * step.x;
        if (low + line >= count)
            continue;
        if (kind == TO_REAL)
            ((__global double *)data)[2 * begin + i] = value.x;
        else
            data[begin + (ulong)i * step.w] = value;
    }
}
