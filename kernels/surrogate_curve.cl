/* What a step of a walk (surrogate.cl, which follows this text in the program)
 * counts: overlaps of bodies, pairs of beads by their distance, and the curve
 * and likelihood that follow. */

#define PRODUCTS 3
#define N_ROW (N_Q + 1)
#define UNIT_PER_NAT 65536.0f

/* Of a counter that work-items share, the value before. A processor has one
 * work-item, and its atomic operations take ten times as long as others. */
int grow(__local int *counter, int by)
{
#if LANES > 1
    return atomic_add(counter, by);
#else
    const int before = *counter;
    *counter += by;
    return before;
#endif
}

/* Energy of a pair of bodies in integer units; negative: impossible. */
int overlap(int4 a, int4 b, float r2, __global const float *contact,
            float inverse_softness, float limit)
{
    const float d = contact[a.x * N_LIKE + b.x];
    const int apart = abs(a.y - b.y);
    if (r2 >= d * d || (a.z == b.z && apart < 3) || (a.w >= 0 && a.w == b.w))
        return 0;
    const float z = (d - sqrt(r2)) * inverse_softness, nat = 0.5f * z * z;
    return nat > limit ? -1 : convert_int_rte(nat * UNIT_PER_NAT);
}

/* The nearest integer of what is below 2^22, in the bits of 1.5 2^23 + x: GPUs
 * convert a fourth as fast as they add. Beyond, the surrogate is worse. */
int whole(float x)
{
    return as_int(x + 12582912.0f) - 0x4B400000;
}

float by_powers(__global const float *a, int q, float c)
{
    return a[q] + c * (a[N_Q + q] + c * a[2 * N_Q + q]);
}

/* The profile before `top` and `bottom`. */
float bare_at(__global const float *job, __local const float *sums, int q,
              float c2)
{
    float sum = by_powers(job + AT_REST, q, c2);
    for (int m = 0; m < PRODUCTS; m++)
        sum += job[AT_PRODUCT + m * N_Q + q] * sums[m * N_Q + q];
    return sum;
}

/* Of all curves, from what rows make of the profile. */
float log_lik_of(__global const float *curves, __local const float *row)
{
    float sum = 0.0f;
    for (int c = 0; c < N_CURVE; c++, row += N_ROW) {
        __global const float *target = curves + c * CURVE_SIZE + N_Q * N_ROW;
        float scale = target[N_ROW], mm = 0.0f, tm = 0.0f;
        if (scale == 0.0f) {
            for (int k = 0; k < N_ROW; k++) {
                mm += row[k] * row[k];
                tm += row[k] * target[k];
            }
            scale = tm / mm;
        }
        for (int k = 0; k < N_ROW; k++) {
            const float rest = target[k] - scale * row[k];
            sum -= 0.5f * rest * rest;
        }
    }
    return sum;
}

/* What two beads are worth to the counts: of the products of shapes 0 0, 0 1
 * and 1 1. */
float4 worth(float4 u, float4 v, float c2, float unit_0, float unit_1,
             float unit_2)
{
    const float u0 = fma(c2, u.z, u.x), u1 = fma(c2, u.w, u.y);
    const float v0 = fma(c2, v.z, v.x), v1 = fma(c2, v.w, v.y);
    return (float4)(u0 * v0 * unit_0, fma(u0, v1, u1 * v0) * unit_1,
                    u1 * v1 * unit_2, 0.0f);
}

/* What of it the two knots next to a distance get: two integers each. Written
 * so that no compiler's choice of fused operations makes what is taken out
 * differ from what was put in. */
int4 portions(float r2, float4 by, float per_ang, int *knot)
{
    const float knots = fmin(native_sqrt(r2) * per_ang, N_KNOT - 2.0f);
    const int below = (int)knots;
    const float high = knots - (float)below, low = 1.0f - high;
    *knot = below;
    return (int4)(whole(low * by.x), whole(high * by.x),
                  (whole(low * by.y) << 16) + whole(low * by.z),
                  (whole(high * by.y) << 16) + whole(high * by.z));
}

void add_portions(__local int *count, int knot, int4 by)
{
    grow(count + knot, by.x);
    grow(count + knot + 1, by.y);
    grow(count + N_KNOT + knot, by.z);
    grow(count + N_KNOT + knot + 1, by.w);
}

float square_of(float4 d)
{
    return fma(d.x, d.x, fma(d.y, d.y, d.z * d.z));
}
