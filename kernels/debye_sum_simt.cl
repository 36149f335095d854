/* Debye sums of many particles on a GPU (src/gpu/debye_sum.c). Compiled after
 * page_tile.cl, whose chains it uses.
 *
 * A unit of work is a block of rows against a run of columns. All its rows have
 * one type, and all its columns have one type, so the form factors stay on the
 * host:
 *
 *     sum over rows i, columns j != i of  W s_k(r_ij),  s_k(r) = sin(q_k r) / r
 *
 * with W = 1, w_j, w_i and w_i w_j in turn, or only W = 1 if there are no
 * weights: out [unit][SUMS][groups][PAGES].
 *
 * Work size: (units * TILE, groups), work-groups of (TILE, 1), one work-item
 * for each row. All rows read the same column at the same time. The rows are
 * added in their order. Compile-time constants: those of page_tile.cl, and
 * WEIGHTED. */
#ifndef WEIGHTED
#define WEIGHTED 1 /* 1: particles have weights */
#endif
#define SUMS (WEIGHTED ? 4 : 1)

/* Sums over the rows: out[k], and out_weighted[k] with the rows' weights. */
static inline void sum_rows(__local const float *shared,
                            __local const float *weight, int lane, int n_row,
                            __global float *restrict out,
                            __global float *restrict out_weighted)
{
    for (int k = lane; k < PAGES; k += TILE) {
        float plain = 0, weighted = 0;
        for (int row = 0; row < n_row; row++) {
            const float value = shared[row * (PAGES + 1) + k];
            plain += value;
            weighted += weight[row] * value;
        }
        out[k] = plain;
        if (WEIGHTED)
            out_weighted[k] = weighted;
    }
}

__kernel __attribute__((reqd_work_group_size(TILE, 1, 1)))
void debye_sum(__global const int4 *restrict unit, int first_unit,
               __global const float4 *restrict particle,
               __global float *restrict out, float dq, uint groups)
{
    const data_shape shape = data_shape_of(dq, 0, groups);
    __local float4 column[TILE];
    __local float weight[TILE];
    __local float shared[TILE * (PAGES + 1)];
    const int lane = get_local_id(0), group = get_group_id(1);
    const int4 u = unit[first_unit + get_group_id(0)];
    const int row = u.x + lane; /* the unit has u.y rows from u.x on, and u.w
                                   columns from u.z on */
    const float4 me = particle[row]; /* the particles are padded, so TILE always
                                       exist */
    float sum[PAGES];
#if WEIGHTED
    float sum_w[PAGES];
#endif
#pragma unroll
    for (int k = 0; k < PAGES; k++) {
        sum[k] = 0;
#if WEIGHTED
        sum_w[k] = 0;
#endif
    }
    for (int from = 0; from < u.w; from += TILE) {
        barrier(CLK_LOCAL_MEM_FENCE);
        column[lane] = particle[u.z + from + lane];
        barrier(CLK_LOCAL_MEM_FENCE);
        const int n = min(TILE, u.w - from);
#pragma unroll 1
        for (int j = 0; j < n; j++) {
            const float4 other = column[j];
            const float dx = me.x - other.x, dy = me.y - other.y,
                       dz = me.z - other.z;
            float odd, odd_before, even, even_before, factor;
            chain_start(dx * dx + dy * dy + dz * dz, dq,
                        first_page(shape, group), &odd, &odd_before, &even,
                        &even_before, &factor);
            if (u.z + from + j == row) /* a particle with itself: the host adds
                                          this term */
                odd = odd_before = even = even_before = 0;
#pragma unroll
            for (int k = 0; k < PAGES; k += 4) {
                odd_before = factor * odd - odd_before;
                even_before = factor * even - even_before;
                sum[k] += odd;
                sum[k + 1] += even;
                sum[k + 2] += odd_before;
                sum[k + 3] += even_before;
#if WEIGHTED
                sum_w[k] += other.w * odd;
                sum_w[k + 1] += other.w * even;
                sum_w[k + 2] += other.w * odd_before;
                sum_w[k + 3] += other.w * even_before;
#endif
                odd = factor * odd_before - odd;
                even = factor * even_before - even;
            }
        }
    }
    const int stride = shape.stride;
    out += (size_t)get_group_id(0) * SUMS * stride + group * PAGES;
    weight[lane] = me.w;
#pragma unroll
    for (int k = 0; k < PAGES; k++)
        shared[lane * (PAGES + 1) + k] = sum[k];
    barrier(CLK_LOCAL_MEM_FENCE);
    sum_rows(shared, weight, lane, u.y, out, out + 2 * stride);
#if WEIGHTED
    barrier(CLK_LOCAL_MEM_FENCE);
#pragma unroll
    for (int k = 0; k < PAGES; k++)
        shared[lane * (PAGES + 1) + k] = sum_w[k];
    barrier(CLK_LOCAL_MEM_FENCE);
    sum_rows(shared, weight, lane, u.y, out + stride, out + 3 * stride);
#endif
}
