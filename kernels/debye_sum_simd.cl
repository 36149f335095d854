/* Debye sums of many particles on a CPU (src/gpu/debye_sum.c). Compiled after
 * page_tile.cl, whose chains it uses. Units and results are those of
 * debye_sum_simt.cl.
 *
 * Work size: (units, groups), work-groups of one. TILE equals LANES: each row
 * of a unit is a lane of a vector. Four columns are processed at a time,
 * because a single chain would stall on the latency of each multiply-add. */
#ifndef WEIGHTED
#define WEIGHTED 1 /* 1: particles have weights */
#endif
#define SUMS (WEIGHTED ? 4 : 1)
#define VSTORE JOIN(vstore, LANES)
#define VLOAD JOIN(vload, LANES)

/* Column v of the four. Separate variables instead of arrays: PoCL's compiler
 * keeps arrays in memory, but the chains must be in registers. */
#define START(v)                                                               \
    VREAL odd##v, odd_before##v, even##v, even_before##v, factor##v;           \
    const float4 other##v = particle[at + v];                                  \
    {                                                                          \
        VREAL dx = x - other##v.x, dy = y - other##v.y, dz = z - other##v.z;   \
        chain_start(dx * dx + dy * dy + dz * dz, dq, first, &odd##v,           \
                    &odd_before##v, &even##v, &even_before##v, &factor##v);    \
        const int itself = at + v - u.x;                                       \
        if (j + v >= u.w || (itself >= 0 && itself < LANES)) {                 \
            float lane[LANES]; /* past the end, or a particle with itself */   \
            for (int l = 0; l < LANES; l++)                                    \
                lane[l] = j + v >= u.w || l == itself ? 0 : 1;                 \
            VREAL mask = VLOAD(0, lane);                                       \
            odd##v *= mask;                                                    \
            odd_before##v *= mask;                                             \
            even##v *= mask;                                                   \
            even_before##v *= mask;                                            \
        }                                                                      \
    }
#define PAGE(k, s)                                                             \
    sum[k] += (s##0 + s##1) + (s##2 + s##3);                                   \
    if (WEIGHTED)                                                              \
        sum_w[k] += (other0.w * s##0 + other1.w * s##1) +                      \
                    (other2.w * s##2 + other3.w * s##3)
#define ADVANCE(next, now)                                                     \
    next##0 = factor0 * now##0 - next##0;                                      \
    next##1 = factor1 * now##1 - next##1;                                      \
    next##2 = factor2 * now##2 - next##2;                                      \
    next##3 = factor3 * now##3 - next##3

/* Sums over the rows: out[k], and out_weighted[k] with the rows' weights. */
static inline void sum_rows(const VREAL *restrict sum,
                            const float *restrict weight, int n_row,
                            __global float *restrict out,
                            __global float *restrict out_weighted)
{
    for (int k = 0; k < PAGES; k++) {
        float lane[LANES], plain = 0, weighted = 0;
        VSTORE(sum[k], 0, lane);
        for (int l = 0; l < n_row; l++) {
            plain += lane[l];
            weighted += weight[l] * lane[l];
        }
        out[k] = plain;
        if (WEIGHTED)
            out_weighted[k] = weighted;
    }
}

__kernel __attribute__((reqd_work_group_size(1, 1, 1)))
void debye_sum(__global const int4 *restrict unit, int first_unit,
               __global const float4 *restrict particle,
               __global float *restrict out, float dq, uint groups)
{
    const data_shape shape = data_shape_of(dq, 0, groups);
    const int group = get_global_id(1), first = first_page(shape, group);
    const int4 u = unit[first_unit + get_global_id(0)];
    float row_x[LANES], row_y[LANES], row_z[LANES], weight[LANES];
    for (int l = 0; l < LANES; l++) {
        const float4 me = particle[u.x + l];
        row_x[l] = me.x;
        row_y[l] = me.y;
        row_z[l] = me.z;
        weight[l] = me.w;
    }
    const VREAL x = VLOAD(0, row_x), y = VLOAD(0, row_y), z = VLOAD(0, row_z);
    VREAL sum[PAGES], sum_w[PAGES];
    for (int k = 0; k < PAGES; k++) {
        sum[k] = 0;
        sum_w[k] = 0;
    }
    for (int j = 0; j < u.w; j += 4) {
        const int at = u.z + j; /* the particles are padded, so four always
                                   exist */
        START(0)
        START(1)
        START(2)
        START(3)
        for (int k = 0; k < PAGES; k += 4) {
            ADVANCE(odd_before, odd);
            ADVANCE(even_before, even);
            PAGE(k, odd);
            PAGE(k + 1, even);
            PAGE(k + 2, odd_before);
            PAGE(k + 3, even_before);
            ADVANCE(odd, odd_before);
            ADVANCE(even, even_before);
        }
    }
    const int stride = shape.stride;
    out += (size_t)get_global_id(0) * SUMS * stride + group * PAGES;
    sum_rows(sum, weight, u.y, out, out + 2 * stride);
    if (WEIGHTED)
        sum_rows(sum_w, weight, u.y, out + stride, out + 3 * stride);
}
