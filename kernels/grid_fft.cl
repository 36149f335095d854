/* Debye profiles by a grid and Fourier transforms: what happens between the
 * transforms (src/gpu/grid_fft.c), as on the host (src/scattering/grid_sum.c),
 * in double precision.
 *
 *   grid_spread     one work-group of 64 a tile of SIDE^3 points and MODES
 *                   modes, in global size (64 tiles, groups of modes). It goes
 *                   through the particles that reach its tile, in their order,
 *                   and keeps the sums of its points in registers: no atomics,
 *                   and the same bits each time.
 *   grid_amplitude  one item a complex number of the half spectrum, any local
 *                   size: amplitudes of the components from the modes, and
 *                   their products, in place.
 *   grid_shells     one item a point of an octant, any local size: values of
 *                   one distance are added up as 64-bit integers, which no
 *                   order changes.
 *   grid_profile    groups of 64 items of one q each, times blocks of
 *                   distances: sums over the distances of a block.
 *
 * A grid is [mode or pair][n.z][n.y][n.w] complex numbers, or twice as many
 * real ones in a row, of which n.x are in use; `volume` is their number, of one
 * mode. */
#pragma OPENCL EXTENSION cl_khr_fp64 : enable
#pragma OPENCL EXTENSION cl_khr_int64_base_atomics : enable

#ifndef MODES
#define MODES 4 /* of a work-group's particles, at once */
#endif

enum {
    SIDE = 8,   /* points of a tile, and of what a particle is spread on */
    TERMS = 14, /* of the kernel's polynomials */
    LANES = 64, /* rows of a tile along z; particles at once */
    MAX_COMP = 3,
    MAX_PAIR = 6
};

/* Weights at SIDE points in a row, by Clenshaw's sums. */
static inline double8 weights(__constant const double8 *piece, double place)
{
    const double x = 2.0 * place - 1.0;
    double8 here = 0.0, before = 0.0;
    for (int j = TERMS - 1; j > 0; j--) {
        const double8 next = piece[j] + 2.0 * x * here - before;
        before = here;
        here = next;
    }
    return piece[0] + x * here - before;
}

/* Along one axis from the tile's first point on: 0 where the particle does not
 * reach. The 8 points of one follow each other, so that each of the tile's has
 * one of them, or would have if it were at the same place in another tile. */
static inline void weights_in_tile(__constant const double8 *piece, double at,
                                   int tile, __local double *to)
{
    double own[SIDE];
    const double first = ceil(at - 0.5 * SIDE);
    const int from = (int)first - tile * SIDE;
    vstore8(weights(piece, first - at + 0.5 * SIDE), 0, own);
    for (int i = 0; i < SIDE; i++)
        to[(from + i) & (SIDE - 1)] =
            (uint)(from + i) < (uint)SIDE ? own[i] : 0.0;
}

/* particle: place along x, y, z, weight. first [cells + 1]: where the particles
 * of a cell begin, by the tile that has their first point, x fastest. value
 * [type][n_mode]: amounts, from mode n_plain on times the weight. */
__kernel __attribute__((reqd_work_group_size(LANES, 1, 1))) void
grid_spread(__global const double4 *restrict particle,
            __global const int *restrict type,
            __global const int *restrict first,
            __global const double *restrict value, int n_mode, int n_plain,
            __constant const double8 *piece, int4 tiles, int4 n, ulong volume,
            __global double *restrict grid)
{
    __local double along[LANES][3][SIDE], amount[LANES][MODES];
    const int item = (int)get_local_id(0), group = (int)get_group_id(0);
    const int low = (int)get_group_id(1) * MODES;
    const int lx = item % SIDE, ly = item / SIDE;
    const int3 tile = (int3)(group % tiles.x, group / tiles.x % tiles.y,
                             group / tiles.x / tiles.y);
    double8 sum[MODES];
    for (int m = 0; m < MODES; m++)
        sum[m] = 0.0;
    for (int z = max(tile.z - 1, 0); z <= tile.z; z++)
        for (int y = max(tile.y - 1, 0); y <= tile.y; y++) {
            const int row = (z * tiles.y + y) * tiles.x;
            const int end = first[row + tile.x + 1];
            for (int from = first[row + max(tile.x - 1, 0)]; from < end;
                 from += LANES) {
                const int count = min(end - from, LANES);
                barrier(CLK_LOCAL_MEM_FENCE);
                if (item < count) {
                    const double4 p = particle[from + item];
                    const int t = type[from + item] * n_mode;
                    weights_in_tile(piece, p.x, tile.x, along[item][0]);
                    weights_in_tile(piece, p.y, tile.y, along[item][1]);
                    weights_in_tile(piece, p.z, tile.z, along[item][2]);
                    for (int m = 0; m < MODES; m++)
                        amount[item][m] =
                            low + m < n_mode
                                ? value[t + low + m] *
                                      (low + m < n_plain ? 1.0 : p.w)
                                : 0.0;
                }
                barrier(CLK_LOCAL_MEM_FENCE);
                for (int i = 0; i < count; i++) {
                    const double8 column =
                        along[i][0][lx] * along[i][1][ly] *
                        vload8(0, along[i][2]);
                    for (int m = 0; m < MODES; m++)
                        sum[m] = fma((double8)(amount[i][m]), column, sum[m]);
                }
            }
        }
    const int x = tile.x * SIDE + lx, y = tile.y * SIDE + ly;
    for (int m = 0; m < MODES && low + m < n_mode; m++) {
        double own[SIDE];
        vstore8(sum[m], 0, own);
        for (int i = 0; i < SIDE; i++) {
            const int z = tile.z * SIDE + i;
            if (x < n.x && y < n.y && z < n.z)
                grid[2 * ((low + m) * volume +
                          ((ulong)z * n.y + y) * (ulong)n.w) +
                     x] = own[i];
        }
    }
}

/* axis: k and the inverse of the kernel's transform, of x, y, z one after the
 * other. curve [n_comp][n_mode][n_fine], up to k_cut. range: the first of a
 * component's modes and the end of them, by component. */
__kernel void grid_amplitude(int4 n, ulong volume, int n_comp, int n_mode,
                             int8 range, __global const double2 *restrict axis,
                             double k_cut, int n_fine,
                             __global const double *restrict curve,
                             __global double2 *restrict grid)
{
    const uint i = (uint)get_global_id(0), row = (uint)n.w, side = (uint)n.y;
    if (i >= volume)
        return;
    const int x = (int)(i % row), y = (int)(i / row % side),
              z = (int)(i / row / side);
    const double2 ax = axis[x], ay = axis[n.x + y], az = axis[n.x + n.y + z];
    const double k2 = ax.x * ax.x + ay.x * ay.x + az.x * az.x;
    const double by = ax.y * ay.y * az.y;
    const double weight = k2 < k_cut * k_cut ? by * by : 0.0;
    const double fine = sqrt(k2) * ((n_fine - 1) / k_cut);
    const int at = min((int)fine, n_fine - 2);
    const double part = fine - at;
    const int begin[MAX_COMP] = {range.s0, range.s1, range.s2};
    const int end[MAX_COMP] = {range.s4, range.s5, range.s6};
    double2 amplitude[MAX_COMP] = {0.0, 0.0, 0.0};
    for (int m = 0; m < n_mode && weight > 0.0; m++) {
        const double2 value = grid[m * volume + i];
        for (int a = 0; a < n_comp; a++)
            if (m >= begin[a] && m < end[a]) {
                __global const double *c =
                    curve + ((ulong)a * n_mode + m) * n_fine + at;
                amplitude[a] += (c[0] + part * (c[1] - c[0])) * value;
            }
    }
    for (int a = 0, p = 0; a < n_comp; a++)
        for (int b = a; b < n_comp; b++, p++)
            grid[p * volume + i] =
                (double2)(weight * dot(amplitude[a], amplitude[b]), 0.0);
}

/* No value of a pair is larger than the root of the product of both components'
 * own at no distance, which becomes 2^44: there is room for 2^19 points of one
 * distance, of which grids of up to 2000 points a side have 25,008. */
static inline double size_of(__global const double *grid, ulong volume,
                             int n_comp, int a, int b)
{
    const int aa = a * n_comp - a * (a - 1) / 2,
              bb = b * n_comp - b * (b - 1) / 2;
    return sqrt(fabs(grid[2 * aa * volume])) *
           sqrt(fabs(grid[2 * bb * volume])) * 0x1p-44;
}

/* shell [n_pair][n_shell], zero before; unit [n_pair] out. */
__kernel void grid_shells(int4 n, ulong volume, int n_comp,
                          __global const double *restrict grid, int n_shell,
                          __global long *restrict shell,
                          __global double *restrict unit)
{
    const int i = (int)get_global_id(0);
    const int half_x = n.x / 2 + 1, half_y = n.y / 2 + 1;
    const int x = i % half_x, y = i / half_x % half_y, z = i / half_x / half_y;
    if (z > n.z / 2)
        return;
    const int other_x = x > 0 && 2 * x < n.x ? n.x - x : -1;
    const int other_y = y > 0 && 2 * y < n.y ? n.y - y : -1;
    const double times = z == 0 || 2 * z == n.z ? 1.0 : 2.0;
    const int place = x * x + y * y + z * z;
    for (int a = 0, p = 0; a < n_comp; a++)
        for (int b = a; b < n_comp; b++, p++) {
            __global const double *plane =
                grid + 2 * (p * volume + (ulong)z * n.y * n.w);
            __global const double *line = plane + 2 * (ulong)y * n.w;
            double sum = line[x];
            if (other_x >= 0)
                sum += line[other_x];
            if (other_y >= 0) {
                line = plane + 2 * (ulong)other_y * n.w;
                sum += line[x];
                if (other_x >= 0)
                    sum += line[other_x];
            }
            const double size = size_of(grid, volume, n_comp, a, b);
            if (size > 0.0)
                atom_add(shell + (ulong)p * n_shell + place,
                         convert_long_rte(times * sum / size));
            if (i == 0)
                unit[p] = size;
        }
}

/* partial [blocks][n_pair][n_q]: the sum over the distances sqrt(j) h of a
 * block. */
__kernel __attribute__((reqd_work_group_size(LANES, 1, 1))) void
grid_profile(int n_pair, int n_shell, __global const long *restrict shell,
             __global const double *restrict unit, double h, double dq, int n_q,
             __global double *restrict partial)
{
    const int k = (int)get_global_id(0);
    const ulong block = get_group_id(1), blocks = get_num_groups(1);
    const int from = (int)(block * n_shell / blocks),
              end = (int)((block + 1) * n_shell / blocks);
    if (k >= n_q)
        return;
    double sum[MAX_PAIR] = {0.0, 0.0, 0.0, 0.0, 0.0, 0.0};
    for (int j = from; j < end; j++) {
        const double x = k * dq * h * sqrt((double)j);
        const double sinc = x > 0.0 ? sin(x) / x : 1.0;
        for (int p = 0; p < n_pair; p++)
            sum[p] += sinc * convert_double(shell[(ulong)p * n_shell + j]);
    }
    for (int p = 0; p < n_pair; p++)
        partial[(block * n_pair + p) * n_q + k] = sum[p] * unit[p];
}
