/* Walks of molecules by a surrogate (src/engine/walker.h): a work-group
 * makes all steps of one job, one after another.
 *
 * A step turns one torsion, or two neighbours against each other, or moves c2.
 * Points that turn are written beside the present ones; then all pairs of beads
 * are counted by distance, and curve and likelihood follow from the counts.
 * Sums over pairs are integers, so that the order of work-items does not
 * matter: the same job gives the same bits in any launch. Of the three products
 * of shapes the two smaller ones share an integer, 16 bits each. All work-items
 * draw the same random numbers, from a counter, and come to the same decision.
 *
 * Sizes and offsets are constants of the build: LANES, N_..., AT_... */

#define PARTS 24
#define PRODUCTS 3
#define N_ROW (N_Q + 1)
/* A result: log g at the start and at the end, c2; bare profiles of the start
 * and of the end; turns. */
#define AT_CURVES 3
#define AT_TURNS (AT_CURVES + 2 * N_Q)
#define RESULT_SIZE (AT_TURNS + N_TORSION)
#define SLICES (LANES / N_Q > 0 ? LANES / N_Q : 1)
#define MOST_NEAR 512
#define UNIT_PER_NAT 65536.0f
#define PI 3.14159265358979f

uint4 draw(uint2 key, uint step, uint which)
{
    /* Philox 4x32-10: Salmon et al. 2011. */
    uint4 c = (uint4)(step, which, 0x5eed, 0);
    for (int i = 0; i < 10; i++) {
        const uint h0 = mul_hi(0xD2511F53u, c.x), l0 = 0xD2511F53u * c.x;
        const uint h1 = mul_hi(0xCD9E8D57u, c.z), l1 = 0xCD9E8D57u * c.z;
        c = (uint4)(h1 ^ c.y ^ key.x, l1, h0 ^ c.w ^ key.y, l0);
        key += (uint2)(0x9E3779B9u, 0xBB67AE85u);
    }
    return c;
}

/* In (0, 1). */
float unit(uint x)
{
    return ((float)(x >> 8) + 0.5f) * (1.0f / 16777216.0f);
}

float2 normals(uint a, uint b)
{
    const float r = sqrt(-2.0f * log(unit(a)));
    const float angle = 2.0f * PI * unit(b);
    return (float2)(r * cos(angle), r * sin(angle));
}

/* Rows of a rotation, each with its share of the shift. */
typedef struct {
    float4 x, y, z;
} motion;

float4 moved(const motion *m, float4 p)
{
    p.w = 1.0f;
    return (float4)(dot(m->x, p), dot(m->y, p), dot(m->z, p), 0.0f);
}

motion about(float4 from, float4 to, float angle)
{
    float4 u = to - from;
    u.w = 0.0f;
    u *= rsqrt(dot(u, u));
    const float c = cos(angle), s = sin(angle), v = 1.0f - c;
    motion m;
    m.x = (float4)(c + u.x * u.x * v, u.x * u.y * v - u.z * s,
                   u.x * u.z * v + u.y * s, 0.0f);
    m.y = (float4)(u.y * u.x * v + u.z * s, c + u.y * u.y * v,
                   u.y * u.z * v - u.x * s, 0.0f);
    m.z = (float4)(u.z * u.x * v - u.y * s, u.z * u.y * v + u.x * s,
                   c + u.z * u.z * v, 0.0f);
    from.w = 0.0f;
    m.x.w = from.x - dot(m.x, from);
    m.y.w = from.y - dot(m.y, from);
    m.z.w = from.z - dot(m.z, from);
    return m;
}

float wrapped(float angle)
{
    return angle - 2.0f * PI * rint(angle / (2.0f * PI));
}

/* One part of a torsion density, exponentiated. */
float part_at(__global const float *term, float phi, float psi)
{
    const float a = cos(phi), b = sin(phi), c = cos(psi), d = sin(psi);
    return exp(term[0] + term[1] * a + term[2] * b + term[3] * c +
               term[4] * d + term[5] * a * c + term[6] * a * d +
               term[7] * b * c + term[8] * b * d);
}

/* Energy of a pair of bodies in integer units; negative: impossible. */
int overlap(int4 a, int4 b, float r2, __global const float *contact,
            float inverse_softness, float limit)
{
    const float d = contact[a.x * N_LIKE + b.x];
    const int apart = abs(a.y - b.y);
    if (r2 >= d * d || (a.z == b.z && apart < 3) ||
        (a.w >= 0 && a.w == b.w))
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
        __global const float *target =
            curves + c * CURVE_SIZE + N_Q * N_ROW;
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

/* log of a density whose parts were exponentiated side by side. */
float log_of_parts(__local const float *part)
{
    float sum = 0.0f;
    for (int k = 0; k < PARTS; k++)
        sum += part[k];
    return log(sum);
}

__kernel __attribute__((reqd_work_group_size(LANES, 1, 1))) void
surrogate_walk(__global const int4 *bead, __global const int2 *reach,
               __global const float *radius, __global const int *part,
               __global const float *share, __global const int4 *body,
               __global const float *contact, float cutoff,
               float inverse_softness, float limit,
               __global const ushort2 *pair, __global const int4 *torsion,
               __global const int4 *turn, __global const int *density,
               __global const float *term, __global const int *n_term,
               float knots_per_ang, __global const float *sinc,
               __global const float *jobs, __global const uint2 *keys,
               __global float4 *points, __global float4 *next_points,
               __global float *results, __global int2 *counts)
{
    /* Centres have their beads' radius as w. */
    __local float4 centre[N_BEAD], next_centre[N_BEAD], amount[N_BEAD];
    __local int count[2 * N_KNOT];
    __local float sums[2][PRODUCTS * N_Q];
    __local float slice[SLICES * PRODUCTS * N_Q];
    __local float profile[N_Q], row[N_CURVE * N_ROW];
    __local float angle[N_SLOT][2], slot_log[N_SLOT], part_of[2 * PARTS];
    __local int near[MOST_NEAR], n_near, energy, forbidden, last_knot;

    const int lid = (int)get_local_id(0), group = (int)get_group_id(0);
    __global const float *job = jobs + (size_t)group * JOB_SIZE;
    __global float4 *now = points + (size_t)group * N_POINT;
    __global float4 *next = next_points + (size_t)group * N_POINT;
    __global float *result = results + (size_t)group * RESULT_SIZE;
    __global int2 *steps = counts + (size_t)group * (N_TORSION + 1);
    const uint2 key = keys[group];
    const int n_step = (int)job[6];
    const float beta = job[0], unit_0 = job[AT_UNIT];
    const float unit_1 = job[AT_UNIT + 1], unit_2 = job[AT_UNIT + 2];
    float c2 = job[1], log_lik = 0.0f;
    int at = 0, energy_now = 0, is_still = 0; /* g is 0 at the start */

    for (int p = lid; p < N_POINT; p += LANES)
        next[p] = now[p];
    for (int b = lid; b < N_BEAD; b += LANES)
        amount[b] = vload4(b, job + AT_AMOUNT);
    for (int t = lid; t < N_TORSION; t += LANES)
        result[AT_TURNS + t] = 0.0f;
    for (int t = lid; t <= N_TORSION; t += LANES)
        steps[t] = (int2)(0, 0);
    for (int s = lid; s < N_SLOT; s += LANES) {
        const float phi = job[AT_ANGLE + 2 * s];
        const float psi = job[AT_ANGLE + 2 * s + 1];
        __global const float *own = term + density[s] * PARTS * 12;
        float sum = 0.0f;
        for (int k = 0; k < n_term[density[s]]; k++)
            sum += part_at(own + 12 * k, phi, psi);
        angle[s][0] = phi, angle[s][1] = psi;
        slot_log[s] = log(sum);
    }
    barrier(CLK_LOCAL_MEM_FENCE | CLK_GLOBAL_MEM_FENCE);

    /* Step 0 proposes nothing: it weighs the start. */
    for (int i = 0; i <= n_step; i++) {
        const uint4 r = draw(key, (uint)i, 0), s = draw(key, (uint)i, 1);
        const int is_c2 = HAS_C2 && i > 0 && unit(r.x) < 0.1f;
        const int is_turn = is_c2 ? 0 : i > 0;
        const float2 z = normals(r.z, r.w);
        const float wide = exp2(4.0f * unit(s.x) - 2.0f);
        float c2_next = c2, change = 0.0f, log_lik_next = 0.0f;
        float turned[2] = {0.0f, 0.0f}, phi[2], psi[2];
        int which[2] = {-1, -1}, slot[2] = {-1, -1};
        int first = 0, end = 0, inner_first = 0, inner_end = 0;
        motion one, both;

        /* What is proposed. */
        if (is_c2) {
            c2_next = c2 + wide * job[AT_WIDTH + N_TORSION] * z.x;
            const float new_z = (c2_next - job[2]) / job[3];
            const float old_z = (c2 - job[2]) / job[3];
            change = 0.5f * (old_z * old_z - new_z * new_z);
        }
        if (is_turn) {
            const int t = min((int)(unit(r.y) * N_TORSION), N_TORSION - 1);
            const int4 how = turn[t], where = torsion[t];
            const int is_any = unit(s.y) < 0.02f;
            first = where.z, end = where.w;
            which[0] = t;
            turned[0] = is_any ? PI * (2.0f * unit(s.z) - 1.0f)
                               : wide * job[AT_WIDTH + t] * z.x;
            one = about(now[where.x], now[where.y], (float)how.w * turned[0]);
            slot[0] = how.x;
            phi[0] = angle[how.x][0], psi[0] = angle[how.x][1];
            if (how.y == 0)
                phi[0] = wrapped(phi[0] + turned[0]);
            else
                psi[0] = wrapped(psi[0] + turned[0]);
            if (how.z >= 0 && !is_any && unit(s.z) < 0.5f) {
                const int4 inner = turn[how.z], axis = torsion[how.z];
                which[1] = how.z;
                turned[1] =
                    -turned[0] + 0.3f * wide * job[AT_WIDTH + t] * z.y;
                inner_first = axis.z, inner_end = axis.w;
                both = about(moved(&one, now[axis.x]),
                             moved(&one, now[axis.y]),
                             (float)inner.w * turned[1]);
                slot[1] = inner.x; /* another residue's */
                phi[1] = angle[inner.x][0], psi[1] = angle[inner.x][1];
                if (inner.y == 0)
                    phi[1] = wrapped(phi[1] + turned[1]);
                else
                    psi[1] = wrapped(psi[1] + turned[1]);
            }
        }
        for (int p = first + lid; p < end; p += LANES) {
            float4 x = moved(&one, now[p]);
            if (p >= inner_first && p < inner_end)
                x = moved(&both, x);
            next[p] = x;
        }
        for (int k = lid; k < 2 * PARTS; k += LANES) {
            const int side = k / PARTS, m = k % PARTS;
            const int own = side == 0 ? slot[0] : slot[1];
            const float a = side == 0 ? phi[0] : phi[1];
            const float b = side == 0 ? psi[0] : psi[1];
            float value = 0.0f;
            if (own >= 0 && m < n_term[density[own]])
                value = part_at(term + (density[own] * PARTS + m) * 12, a, b);
            part_of[k] = value;
        }
        for (int k = lid; k < 2 * N_KNOT; k += LANES)
            count[k] = 0;
        if (lid == 0)
            n_near = 0, energy = 0, forbidden = 0, last_knot = 0;
        barrier(CLK_LOCAL_MEM_FENCE | CLK_GLOBAL_MEM_FENCE);

        for (int b = lid; b < N_BEAD; b += LANES) {
            const int2 span = reach[b];
            if (i == 0 || (span.y > first && span.x < end)) {
                const int4 own = bead[b];
                float4 x = (float4)(0.0f);
                for (int k = own.x; k < own.x + own.y; k++)
                    x += share[k] * next[part[k]];
                x.w = radius[b];
                next_centre[b] = x;
            }
        }
        barrier(CLK_LOCAL_MEM_FENCE);

        /* All pairs of beads: counts, and which are near enough to touch. */
        int largest = 0, own_energy = 0, own_forbidden = 0;
        for (int k = lid; k < N_PAIR; k += LANES) {
            const ushort2 ab = pair[k];
            const float4 x = next_centre[ab.x], y = next_centre[ab.y];
            const float4 d = x - y;
            const float r2 = d.x * d.x + d.y * d.y + d.z * d.z;
            const float close = cutoff + x.w + y.w;
            if (r2 < close * close) {
                if (x.w == 0.0f && y.w == 0.0f) {
                    const int e =
                        overlap(body[bead[ab.x].z], body[bead[ab.y].z], r2,
                                contact, inverse_softness, limit);
                    own_forbidden |= e < 0;
                    own_energy += e < 0 ? 0 : e;
                } else {
                    const int place = atomic_inc(&n_near);
                    if (place < MOST_NEAR)
                        near[place] = k;
                    else /* g is 0 there */
                        own_forbidden = 1;
                }
            }
            const float knots =
                fmin(native_sqrt(r2) * knots_per_ang, N_KNOT - 2.0f);
            const int knot = (int)knots;
            const float high = knots - (float)knot, low = 1.0f - high;
            const float4 u = amount[ab.x], v = amount[ab.y];
            const float u0 = u.x + c2_next * u.z, u1 = u.y + c2_next * u.w;
            const float v0 = v.x + c2_next * v.z, v1 = v.y + c2_next * v.w;
            const float by_0 = u0 * v0 * unit_0, by_2 = u1 * v1 * unit_2;
            const float by_1 = (u0 * v1 + u1 * v0) * unit_1;
            largest = max(largest, knot + 1);
            atomic_add(count + knot, whole(low * by_0));
            atomic_add(count + knot + 1, whole(high * by_0));
            atomic_add(count + N_KNOT + knot,
                       (whole(low * by_1) << 16) + whole(low * by_2));
            atomic_add(count + N_KNOT + knot + 1,
                       (whole(high * by_1) << 16) + whole(high * by_2));
        }
        atomic_max(&last_knot, largest);
        if (own_energy != 0)
            atomic_add(&energy, own_energy);
        if (own_forbidden)
            atomic_or(&forbidden, 1);
        barrier(CLK_LOCAL_MEM_FENCE);

        /* Beads of several bodies, 8 work-items a pair. */
        own_energy = 0, own_forbidden = 0;
        const int n_listed = min(n_near, MOST_NEAR);
        for (int k = lid / 8; k < n_listed; k += LANES / 8) {
            const ushort2 ab = pair[near[k]];
            const int is_swapped = bead[ab.x].w > bead[ab.y].w;
            const int a = is_swapped ? ab.y : ab.x;
            const int b = is_swapped ? ab.x : ab.y;
            const int4 p = bead[a], q = bead[b];
            for (int v = lid % 8; v < q.w; v += 8) {
                const float4 y = next[part[q.x + v]];
                for (int u = 0; u < p.w; u++) {
                    const float4 x =
                        p.w == 1 ? next_centre[a] : next[part[p.x + u]];
                    const float4 d = x - y;
                    const float r2 = d.x * d.x + d.y * d.y + d.z * d.z;
                    if (r2 < cutoff * cutoff) {
                        const int e = overlap(body[p.z + u], body[q.z + v], r2,
                                              contact, inverse_softness, limit);
                        own_forbidden |= e < 0;
                        own_energy += e < 0 ? 0 : e;
                    }
                }
            }
        }
        if (own_energy != 0)
            atomic_add(&energy, own_energy);
        if (own_forbidden)
            atomic_or(&forbidden, 1);
        barrier(CLK_LOCAL_MEM_FENCE);

        is_still |= i == 0 && forbidden;
        int is_possible = !(forbidden || is_still);
        if (is_c2)
            is_possible &= c2_next >= job[4] && c2_next <= job[5];
        is_possible |= i == 0;
        const int to = 1 - at, energy_next = energy, upto = last_knot;
        change += (float)(energy_now - energy_next) / UNIT_PER_NAT;
        if (slot[0] >= 0)
            change += log_of_parts(part_of) - slot_log[slot[0]];
        if (slot[1] >= 0)
            change += log_of_parts(part_of + PARTS) - slot_log[slot[1]];
        if (is_possible) {
            for (int k = lid; k < SLICES * N_Q; k += LANES) {
                const int q = k % N_Q, own = k / N_Q;
                float sum_0 = 0.0f, sum_1 = 0.0f, sum_2 = 0.0f;
                for (int b = own; b <= upto; b += SLICES) {
                    const float by = sinc[b * N_Q + q];
                    const int two = count[N_KNOT + b];
                    const int low = (int)(short)(two & 0xffff);
                    sum_0 += by * (float)count[b];
                    sum_1 += by * (float)((two - low) >> 16);
                    sum_2 += by * (float)low;
                }
                slice[(own * PRODUCTS + 0) * N_Q + q] = sum_0;
                slice[(own * PRODUCTS + 1) * N_Q + q] = sum_1;
                slice[(own * PRODUCTS + 2) * N_Q + q] = sum_2;
            }
            barrier(CLK_LOCAL_MEM_FENCE);
            for (int k = lid; k < PRODUCTS * N_Q; k += LANES) {
                float sum = 0.0f;
                for (int m = 0; m < SLICES; m++)
                    sum += slice[m * PRODUCTS * N_Q + k];
                sums[to][k] = sum;
            }
            barrier(CLK_LOCAL_MEM_FENCE);
            for (int q = lid; q < N_Q; q += LANES)
                profile[q] = bare_at(job, sums[to], q, c2_next) *
                             by_powers(job + AT_TOP, q, c2_next) /
                             by_powers(job + AT_BOTTOM, q, c2_next);
            barrier(CLK_LOCAL_MEM_FENCE);
            for (int k = lid; k < N_CURVE * N_ROW; k += LANES) {
                __global const float *rows =
                    job + AT_CURVE + k / N_ROW * CURVE_SIZE + k % N_ROW;
                float sum = 0.0f;
                for (int q = 0; q < N_Q; q++)
                    sum += rows[q * N_ROW] * profile[q];
                row[k] = sum;
            }
            barrier(CLK_LOCAL_MEM_FENCE);
            log_lik_next = log_lik_of(job + AT_CURVE, row);
        }

        const int accept =
            i == 0 || (is_possible && log(unit(s.w)) <
                                          change + beta * (log_lik_next -
                                                           log_lik));
        barrier(CLK_LOCAL_MEM_FENCE | CLK_GLOBAL_MEM_FENCE);
        for (int p = first + lid; p < end; p += LANES) {
            if (accept)
                now[p] = next[p];
            else
                next[p] = now[p];
        }
        for (int b = lid; b < N_BEAD; b += LANES) {
            if (accept)
                centre[b] = next_centre[b];
            else
                next_centre[b] = centre[b];
        }
        if (lid == 0 && i > 0) {
            if (which[1] < 0)
                steps[is_c2 ? N_TORSION : which[0]] += (int2)(1, accept);
            if (accept && slot[0] >= 0) {
                result[AT_TURNS + which[0]] += turned[0];
                angle[slot[0]][0] = phi[0], angle[slot[0]][1] = psi[0];
                slot_log[slot[0]] = log_of_parts(part_of);
            }
            if (accept && slot[1] >= 0) {
                result[AT_TURNS + which[1]] += turned[1];
                angle[slot[1]][0] = phi[1], angle[slot[1]][1] = psi[1];
                slot_log[slot[1]] = log_of_parts(part_of + PARTS);
            }
        }
        if (accept) {
            at = to, c2 = c2_next, log_lik = log_lik_next;
            energy_now = energy_next;
        }
        barrier(CLK_LOCAL_MEM_FENCE | CLK_GLOBAL_MEM_FENCE);
        if (lid == 0 && (i == 0 || i == n_step)) {
            const float z_c2 = HAS_C2 ? (c2 - job[2]) / job[3] : 0.0f;
            /* What the steps decided by are differences, so the sum of many
             * must not lose more than they did (Kahan 1965). */
            float sum = beta * log_lik - 0.5f * z_c2 * z_c2 -
                        (float)energy_now / UNIT_PER_NAT;
            float lost = 0.0f;
            for (int k = 0; k < N_SLOT; k++) {
                const float own = slot_log[k] - lost, more = sum + own;
                lost = (more - sum) - own;
                sum = more;
            }
            result[i == 0 ? 0 : 1] = sum;
        }
        if (i == 0 || i == n_step)
            for (int q = lid; q < N_Q; q += LANES)
                result[AT_CURVES + (i == 0 ? 0 : N_Q) + q] =
                    bare_at(job, sums[at], q, c2);
    }
    if (lid == 0)
        result[2] = c2;
}
