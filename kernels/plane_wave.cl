/* Amplitudes of plane waves, and profiles from these amplitudes.
 *
 *     A_a(q n) = sum_i F_i^a(q) exp(i q n r_i),   I_ab = mean over n of
 *                                                 Re A_a A_b*
 *
 * Directions n are grouped into blocks, each for one band of BAND values of q
 * from `low` on. A work-item has LANES directions, and a work-group the ITEMS
 * work-items of a block. Constants of the build: ITEMS, LANES, BAND, COMPS;
 * BANDS, the number of bands; WIDE and TERMS, the width and polynomial terms of
 * the kernel in scattering/plane_wave.h.
 *
 * An entry is a body at a position: x, y, z and a word of bits with the sign
 * (0: added, 1: removed), the components that the body has (PART_BUT_LAST or 0:
 * all), and its number. A unit has four entries, its pose (add_unit). A part is
 * a list of entries. waves_add sums the entries of a part for a block of
 * directions into one row of `sum`. waves_profile adds the rows of a proposal
 * to the accepted amplitudes. So no result depends on the order in which
 * work-groups run. */
#define PART_BUT_LAST 1
#define PAIRS (COMPS * (COMPS + 1) / 2)
#define WIDTH (ITEMS * LANES)
#define AMPLITUDES (2 * COMPS * BAND) /* of a direction, or of an entry of a
                                         table */

#if LANES == 1
typedef float real;
typedef int whole;
#define LOAD(p, lane) ((p)[lane])
#define STORE(value, p, lane) ((p)[lane] = (value))
#define TO_WHOLE(x) convert_int_rtn(x)
#define TO_REAL(x) convert_float(x)
#else
#define JOIN_(a, b) a##b
#define JOIN(a, b) JOIN_(a, b)
typedef JOIN(float, LANES) real;
typedef JOIN(int, LANES) whole;
#define TO_WHOLE(x) JOIN(JOIN(convert_int, LANES), _rtn)(x)
#define TO_REAL(x) JOIN(convert_float, LANES)(x)
#define LOAD(p, lane) JOIN(vload, LANES)(lane, p)
#define STORE(value, p, lane) JOIN(vstore, LANES)(value, lane, p)
#endif

/* Cosine and sine of an angle given in turns, -1/2 to 1/2 after rounding:
 * Taylor series at half the angle (error 6e-8), then the double angle. */
static inline void wave_of(real turns, real *cosine, real *sine)
{
    real x = 3.14159265358979f * (turns - rint(turns)), y = x * x;
    real s = 1.0f - y * (1.0f / 110.0f), c = 1.0f - y * (1.0f / 132.0f);
    s = 1.0f - y * (1.0f / 72.0f) * s;
    s = 1.0f - y * (1.0f / 42.0f) * s;
    s = 1.0f - y * (1.0f / 20.0f) * s;
    s = x * (1.0f - y * (1.0f / 6.0f) * s);
    c = 1.0f - y * (1.0f / 90.0f) * c;
    c = 1.0f - y * (1.0f / 56.0f) * c;
    c = 1.0f - y * (1.0f / 30.0f) * c;
    c = 1.0f - y * (1.0f / 12.0f) * c;
    c = 1.0f - y * 0.5f * c;
    *sine = 2.0f * s * c;
    *cosine = 1.0f - 2.0f * s * s;
}

/* Adds the waves of one body times its form factors f [BAND][COMPS], for
 * components from..to-1, which are constants in every call. */
#if ITEMS > 1
#define FACTOR const float
#else
#define FACTOR __global const float
#endif
static inline void add_waves(real nx, real ny, real nz, float low, float4 at,
                             FACTOR *f, int from, int to, real *sum)
{
    const float sign = as_uint(at.w) & 1 ? -1.0f : 1.0f;
    const real step = nx * at.x + ny * at.y + nz * at.z; /* turns a step of q */
    real c, s, c1, s1;
    wave_of(low * step, &c, &s);
    wave_of(step, &c1, &s1);
    c *= sign;
    s *= sign;
    const real twice = 2.0f * c1;
    real c_before = c * c1 + s * s1, s_before = s * c1 - c * s1;
#pragma unroll
    for (int k = 0; k < BAND; k++) {
#pragma unroll
        for (int a = from; a < to; a++) {
            sum[2 * (k * COMPS + a)] += f[k * COMPS + a] * c;
            sum[2 * (k * COMPS + a) + 1] += f[k * COMPS + a] * s;
        }
        const real c_next = twice * c - c_before,
                   s_next = twice * s - s_before;
        c_before = c;
        s_before = s;
        c = c_next;
        s = s_next;
    }
}

#if ITEMS > 1
/* Adds the waves of one body, in the components that it has. */
static inline void add_body(real nx, real ny, real nz, float low, float4 at,
                            const float *f, real *sum)
{
    const uint part = COMPS > 1 ? (as_uint(at.w) >> 1) & 3 : 0;
    if (part == PART_BUT_LAST)
        add_waves(nx, ny, nz, low, at, f, 0, COMPS - 1, sum);
    else
        add_waves(nx, ny, nz, low, at, f, 0, COMPS, sum);
}
#else
/* Adds all entries with one set of components (from..to-1, `part`), so
 * that their sums stay in registers. factor: form factors of the band, from
 * body 0 on. */
static inline void add_kind(__global const uint4 *entry, uint n,
                            __global const float *factor, real nx, real ny,
                            real nz, float low, uint part, int from, int to,
                            real *total)
{
    real sum[AMPLITUDES];
#pragma unroll
    for (int k = 0; k < BAND; k++)
#pragma unroll
        for (int j = 2 * (k * COMPS + from); j < 2 * (k * COMPS + to); j++)
            sum[j] = 0.0f;
    for (uint i = 0; i < n; i++) {
        const float4 at = as_float4(entry[i]);
        const uint bits = as_uint(at.w);
        if (((bits >> 1) & 3) == part)
            add_waves(nx, ny, nz, low, at,
                      factor + (size_t)(bits >> 3) * BANDS * BAND * COMPS,
                      from, to, sum);
    }
#pragma unroll
    for (int k = 0; k < BAND; k++)
#pragma unroll
        for (int j = 2 * (k * COMPS + from); j < 2 * (k * COMPS + to); j++)
            total[j] += sum[j];
}
#endif

/* The interpolation kernel at the WIDE points around a position on a circle, in
 * units of the sample spacing: out [WIDE]. Returns the first of these points
 * (scattering/plane_wave.h). */
static inline whole kernel_weights(real at, __global const float *pieces,
                                   real *restrict out)
{
    const whole first = TO_WHOLE(at);
    const real x = 2.0f * (at - TO_REAL(first)) - 1.0f;
#pragma unroll
    for (int j = 0; j < WIDE; j++) {
        real current = pieces[(TERMS - 1) * WIDE + j], previous = 0.0f;
#pragma unroll
        for (int i = TERMS - 2; i > 0; i--) {
            const real next =
                pieces[i * WIDE + j] + 2.0f * x * current - previous;
            previous = current;
            current = next;
        }
        out[j] = pieces[j] + x * current - previous;
    }
    return first;
}

/* Interpolation in a unit's table for the directions of a block: first entry,
 * kernels along both angles, and the interpolated amplitudes. */
typedef struct {
    int first[WIDTH];
    float row[WIDE][WIDTH], column[WIDE][WIDTH];
    float a[AMPLITUDES][WIDTH];
} unit_reads;

#if ITEMS > 1
#define READS __local
#else
#define READS
#endif

/* Sets first, row and column of `reads` for the directions in the frame of the
 * unit. layout: offset of the table, samples of a circle, columns. */
static inline void find_entries(real nx, real ny, real nz, const float4 *pose,
                                uint4 layout, __global const float *pieces,
                                size_t lane, READS unit_reads *reads)
{
    const float turn = 6.283185307179586f, per = (float)layout.y / turn;
    const real mx = pose[0].x * nx + pose[1].x * ny + pose[2].x * nz,
               my = pose[0].y * nx + pose[1].y * ny + pose[2].y * nz,
               mz = pose[0].z * nx + pose[1].z * ny + pose[2].z * nz;
    const real theta = atan2(sqrt(mx * mx + my * my), mz);
    real phi = atan2(my, mx), row[WIDE], column[WIDE];
    phi = phi < 0.0f ? phi + turn : phi;
    const whole r = kernel_weights(theta * per, pieces, row),
                c = kernel_weights(phi * per, pieces, column);
    STORE(r * (int)layout.z + c + (int)layout.x, reads->first, lane);
    for (int i = 0; i < WIDE; i++) {
        STORE(row[i], reads->row[i], lane);
        STORE(column[i], reads->column[i], lane);
    }
}

/* Sets reads->a to the sums of kernels times table entries; columns: of the
 * table. On a GPU each work-item computes four adjacent numbers of a direction,
 * and adjacent work-items adjacent fours, so that memory accesses coalesce. */
#if ITEMS > 1
static inline void interpolate(__global const float *table, uint columns,
                               size_t lane, __local unit_reads *reads)
{
    barrier(CLK_LOCAL_MEM_FENCE);
    for (size_t t = lane; t < WIDTH * AMPLITUDES / 4; t += ITEMS) {
        const size_t d = t / (AMPLITUDES / 4), quad = t % (AMPLITUDES / 4);
        __global const float *at =
            table + (size_t)reads->first[d] * AMPLITUDES + 4 * quad;
        float4 four = 0.0f;
#pragma unroll
        for (int i = 0; i < WIDE; i++, at += (size_t)columns * AMPLITUDES)
#pragma unroll
            for (int j = 0; j < WIDE; j++)
                four += reads->row[i][d] * reads->column[j][d] *
                        vload4(0, at + j * AMPLITUDES);
        reads->a[4 * quad][d] = four.x;
        reads->a[4 * quad + 1][d] = four.y;
        reads->a[4 * quad + 2][d] = four.z;
        reads->a[4 * quad + 3][d] = four.w;
    }
    barrier(CLK_LOCAL_MEM_FENCE);
}
#else
/* Transposes a 16 x 16 matrix r in four steps that exchange halves, quarters,
 * ... */
static inline void transpose(float16 *r)
{
    const uint16 at = (uint16)(0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14,
                               15);
#pragma unroll
    for (uint w = 8; w > 0; w /= 2) {
        const uint16 is_high = at & w;
        const uint16 low = at + (is_high != 0 ? 16 - w : 0),
                     high = at + (is_high != 0 ? 16 : w);
#pragma unroll
        for (int i = 0; i < 16; i++) {
            if (i & w)
                continue;
            const float16 a = r[i], b = r[i + w];
            r[i] = shuffle2(a, b, low);
            r[i + w] = shuffle2(a, b, high);
        }
    }
}

static inline void interpolate(__global const float *table, uint columns,
                               size_t lane, unit_reads *reads)
{
    float16 amplitudes[COMPS][WIDTH];
    for (int d = 0; d < WIDTH; d++) {
        __global const float *at = table + (size_t)reads->first[d] * AMPLITUDES;
        for (int k = 0; k < COMPS; k++)
            amplitudes[k][d] = 0.0f;
#pragma unroll
        for (int i = 0; i < WIDE; i++, at += (size_t)columns * AMPLITUDES)
#pragma unroll
            for (int k = 0; k < COMPS; k++) {
                float16 row = 0.0f;
#pragma unroll
                for (int j = 0; j < WIDE; j++)
                    row += reads->column[j][d] *
                           vload16(k, at + j * AMPLITUDES);
                amplitudes[k][d] += reads->row[i][d] * row;
            }
    }
    for (int k = 0; k < COMPS; k++) {
        transpose(amplitudes[k]);
        for (int j = 0; j < 16; j++)
            vstore16(amplitudes[k][j], 0, reads->a[16 * k + j]);
    }
}
#endif

/* Adds the amplitudes of a unit, interpolated in its own frame, times the phase
 * of its position. pose [4]: rows of the rotation matrix; the position and, as
 * bits, number and sign. */
static inline void add_unit(real nx, real ny, real nz, float low,
                            const float4 *pose, uint4 layout,
                            __global const float *table,
                            __global const float *pieces, size_t lane,
                            READS unit_reads *reads, real *sum)
{
    find_entries(nx, ny, nz, pose, layout, pieces, lane, reads);
    interpolate(table, layout.z, lane, reads);
    const real step = nx * pose[3].x + ny * pose[3].y + nz * pose[3].z;
    const float sign = as_uint(pose[3].w) & 1 ? -1.0f : 1.0f;
    real c, s, c1, s1;
    wave_of(low * step, &c, &s);
    wave_of(step, &c1, &s1);
    c *= sign;
    s *= sign;
#pragma unroll
    for (int k = 0; k < BAND; k++) {
#pragma unroll
        for (int j = 2 * k * COMPS; j < 2 * (k + 1) * COMPS; j += 2) {
            const real re = LOAD(reads->a[j], lane),
                       im = LOAD(reads->a[j + 1], lane);
            sum[j] += c * re - s * im;
            sum[j + 1] += c * im + s * re;
        }
        const real next = c * c1 - s * s1;
        s = s * c1 + c * s1;
        c = next;
    }
}

/* Sums the entries of every part for every block of directions. Work-groups:
 * (blocks of the largest set, parts).
 * input      from parts_at on the parts [4]: first entry, number of body
 *            entries or of units, row of `sum`, set of directions << 1 | 1 for
 *            units; then the entries
 * direction  [block][4][WIDTH] n in turns for each step of q and Angstrom, and
 *            the weight of n
 * band       [block] band of q
 * level      [set] first block and number of blocks of a set of directions
 * factor     [body][BANDS][BAND][COMPS]
 * table      tables of all units
 * layouts    [unit][BANDS] offset of the table, samples of a circle, columns
 * pieces     [TERMS][WIDE] interpolation kernel
 * sum        [row][block of the set][AMPLITUDES][WIDTH] out */
__kernel void waves_add(__global const uint4 *input, uint parts_at,
                        __global const float *direction,
                        __global const uint *band,
                        __global const uint2 *level,
                        __global const float *factor,
                        __global const float *table,
                        __global const uint4 *layouts,
                        __global const float *pieces, __global float *sum)
{
    const uint4 part = input[parts_at + get_group_id(1)];
    const uint2 blocks = level[part.w >> 1];
    const size_t in_set = get_group_id(0), block = blocks.x + in_set,
                 lane = get_local_id(0);
    const int is_unit = part.w & 1;
    if (part.y == 0 || in_set >= blocks.y)
        return;
    const float low = (float)(band[block] * BAND);
    __global const float *n = direction + block * 4 * WIDTH;
    const real nx = LOAD(n, lane), ny = LOAD(n + WIDTH, lane),
               nz = LOAD(n + 2 * WIDTH, lane);
    real total[AMPLITUDES];
    for (int j = 0; j < AMPLITUDES; j++)
        total[j] = 0.0f;
#if ITEMS > 1
    __local float4 at[ITEMS];
    __local float f[ITEMS][BAND * COMPS];
    __local unit_reads reads;
#else
    unit_reads reads;
#endif
    for (uint i = part.x; is_unit && i < part.x + 4 * part.y; i += 4) {
        const float4 pose[4] = {as_float4(input[i]), as_float4(input[i + 1]),
                                as_float4(input[i + 2]),
                                as_float4(input[i + 3])};
        add_unit(nx, ny, nz, low, pose,
                 layouts[(as_uint(pose[3].w) >> 1) * BANDS + band[block]],
                 table, pieces, lane, &reads, total);
    }
#if ITEMS > 1
    for (uint from = 0; !is_unit && from < part.y; from += ITEMS) {
        const uint count = min((uint)ITEMS, part.y - from);
        barrier(CLK_LOCAL_MEM_FENCE);
        if (lane < count)
            at[lane] = as_float4(input[part.x + from + lane]);
        barrier(CLK_LOCAL_MEM_FENCE);
        for (uint j = lane; j < count * BAND * COMPS; j += ITEMS) {
            const size_t body = as_uint(at[j / (BAND * COMPS)].w) >> 3;
            f[j / (BAND * COMPS)][j % (BAND * COMPS)] =
                factor[(body * BANDS + band[block]) * BAND * COMPS +
                       j % (BAND * COMPS)];
        }
        barrier(CLK_LOCAL_MEM_FENCE);
        for (uint i = 0; i < count; i++) {
            float f_i[BAND * COMPS];
#pragma unroll
            for (int j = 0; j < BAND * COMPS; j++)
                f_i[j] = f[i][j];
            add_body(nx, ny, nz, low, at[i], f_i, total);
        }
    }
#else
    if (!is_unit) {
        __global const float *f = factor + band[block] * BAND * COMPS;
#if COMPS > 1
        add_kind(input + part.x, part.y, f, nx, ny, nz, low, PART_BUT_LAST, 0,
                 COMPS - 1, total);
#endif
        add_kind(input + part.x, part.y, f, nx, ny, nz, low, 0, 0, COMPS,
                 total);
    }
#endif
    __global float *out =
        sum + (part.z * get_num_groups(0) + in_set) * AMPLITUDES * WIDTH;
    for (int j = 0; j < AMPLITUDES; j++)
        STORE(total[j], out + j * WIDTH, lane);
}

/* Computes the amplitudes of every proposal, and its profile. Work-groups:
 * (blocks of the largest set, proposals).
 * request    [proposal][4] accepted slot (+ set of directions << 28, + 1 << 31
 *            for a full sum), slot to write, first row of `sum`, number of rows
 * direction, level, sum  as in waves_add
 * amplitude  [slot][block][AMPLITUDES][WIDTH] in and out
 * profile    [proposal][block][PAIRS][BAND] out: contribution of the block */
__kernel void waves_profile(__global const uint4 *request,
                         __global const float *direction,
                         __global const uint2 *level,
                         __global const float *sum,
                         __global float *amplitude, __global float *profile)
{
    const size_t blocks = get_num_groups(0), block = get_group_id(0),
                 lane = get_local_id(0);
    const uint4 job = request[get_group_id(1)];
    const uint2 set = level[(job.x >> 28) & 7u];
    const size_t row = blocks * AMPLITUDES * WIDTH,
                 current = block * AMPLITUDES * WIDTH;
    const int is_full = job.x >> 31;
    __global const float *from =
        amplitude + (job.x & 0x0fffffffu) * row + current;
    __global const float *add = sum + job.z * row + current;
    __global float *to = amplitude + job.y * row + current;
    if (job.w == 0 || block >= set.y)
        return;
    const real weight =
        LOAD(direction + ((set.x + block) * 4 + 3) * WIDTH, lane);
    real total[PAIRS * BAND];
#pragma unroll
    for (int k = 0; k < BAND; k++) {
        real a[2 * COMPS];
#pragma unroll
        for (int j = 0; j < 2 * COMPS; j++) {
            const int at = (2 * COMPS * k + j) * WIDTH;
            a[j] = 0.0f;
            if (!is_full)
                a[j] = LOAD(from + at, lane);
            for (uint r = 0; r < job.w; r++)
                a[j] += LOAD(add + r * row + at, lane);
            STORE(a[j], to + at, lane);
        }
        int pair = 0;
#pragma unroll
        for (int c = 0; c < COMPS; c++)
#pragma unroll
            for (int d = c; d < COMPS; d++, pair++)
                total[pair * BAND + k] =
                    weight * (a[2 * c] * a[2 * d] +
                              a[2 * c + 1] * a[2 * d + 1]);
    }
    profile += (get_group_id(1) * blocks + block) * PAIRS * BAND;
#if ITEMS > 1
    __local float all[ITEMS];
    for (int j = 0; j < PAIRS * BAND; j++) {
        all[lane] = total[j];
        for (int by = ITEMS / 2; by > 0; by /= 2) {
            barrier(CLK_LOCAL_MEM_FENCE);
            if (lane < by)
                all[lane] += all[lane + by];
        }
        barrier(CLK_LOCAL_MEM_FENCE);
        if (lane == 0)
            profile[j] = all[0];
        barrier(CLK_LOCAL_MEM_FENCE);
    }
#else
    for (int j = 0; j < PAIRS * BAND; j++) {
        float lanes[LANES], all = 0.0f;
        STORE(total[j], lanes, 0);
        for (int l = 0; l < LANES; l++)
            all += lanes[l];
        profile[j] = all;
    }
#endif
}
