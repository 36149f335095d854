/* Walks of molecules by a surrogate (src/surrogate/surrogate.h): a work-group
 * makes all steps of one job, one after another.
 *
 * A step turns one torsion, or two neighbours against each other, or both of a
 * residue to where its density draws them, or a linker as a whole
 * (surrogate_turns.cl), or moves c2. Points that turn are written
 * beside the present ones; then pairs of beads are counted by distance, and
 * curve and likelihood follow from the counts (surrogate_curve.cl). Only pairs
 * whose distance has changed are taken out and put in again, unless they are
 * most. Counts are integers, so that neither the order of work-items
 * nor which pairs were counted anew matters: the same job gives the same bits
 * in any launch. Of the three products of shapes the two smaller ones share an
 * integer, 16 bits each. A processor's one work-item sums curves instead, in
 * one order, and weighs the end from all pairs anew, without the rounding of
 * changes. All work-items draw the same random numbers, from a counter, and
 * come to the same decision.
 *
 * Sizes and offsets are constants of the build: LANES, N_..., AT_... */

/* A result: log g at the start and at the end, c2; bare profiles of the start
 * and of the end; turns; of every linker what its factor may learn from. */
#define AT_CURVES 3
#define AT_TURNS (AT_CURVES + 2 * N_Q)
#define AT_LEARN (AT_TURNS + N_TORSION)
#define RESULT_SIZE (AT_LEARN + N_LINKER * N_FACTOR)
#define N_COUNT (N_TORSION + 1 + 2 * N_LINKER)
#define MOST_SLOT (MOST_TURN / 2 + 2) /* that a step moves */
#define SLICES (LANES / N_Q > 0 ? LANES / N_Q : 1)
#define NEAR_LANES (LANES < 8 ? LANES : 8)

__kernel __attribute__((reqd_work_group_size(LANES, 1, 1))) void
surrogate_walk(__global const int4 *bead, __global const int2 *reach,
               __global const float *radius, __global const int *part,
               __global const float *share, __global const int4 *body,
               __global const float *contact, __global const ushort2 *pair,
               __global const int4 *torsion, __global const int4 *turn,
               __global const int2 *edge, __global const int *linker,
               __global const int *density, __global const float *term,
               __global const int *n_term, __global const uint *cell,
               __global const float *sinc, float cutoff,
               float inverse_softness, float limit, float dq,
               float knots_per_ang, __global const float *jobs,
               __global const uint2 *keys, __global float4 *points,
               __global float4 *next_points, __global float *results,
               __global int2 *counts)
{
    /* Centres have their beads' radius as w. */
    __local float4 centre[N_BEAD], next_centre[N_BEAD], amount[N_BEAD];
#if LANES == 1
    __local vector_workspace vectors;
#else
    __local int count[2 * N_KNOT], count_now[2 * N_KNOT], last_knot;
    __local float slice[SLICES * PRODUCTS * N_Q];
#endif
    __local SUM sums[2][N_SUM];
    __local float profile[N_Q], row[N_CURVE * N_ROW];
    __local float angle[N_SLOT][2], slot_log[N_SLOT];
    __local float next_angle[MOST_SLOT][2], next_log[MOST_SLOT];
    __local float part_of[MOST_SLOT * PARTS];
    __local uint near[2 * MOST_NEAR];
    __local int n_near, all_near, energy, forbidden;
    __local short unit_of[N_BEAD];
    /* Beads that stay from the front, those that move as one from the back;
     * the rest. */
    __local ushort order[N_BEAD], odd[N_BEAD];
    __local uchar how[N_BEAD]; /* STAYS, AS_ONE or ODD */
    __local int n_still, n_far, n_odd;
    __local linker_room room;
    __local float log_lik_of_all;

    const int lid = (int)get_local_id(0), group = (int)get_group_id(0);
    __global const float *job = jobs + (size_t)group * JOB_SIZE;
    __global float4 *now = points + (size_t)group * N_POINT;
    __global float4 *next = next_points + (size_t)group * N_POINT;
    __global float *result = results + (size_t)group * RESULT_SIZE;
    __global int2 *steps = counts + (size_t)group * N_COUNT;
    const uint2 key = keys[group];
    const int n_step = (int)job[6];
    const int last = n_step + (LANES == 1);
    const float beta = job[0];
    float c2 = job[1], log_lik = 0.0f;
    int at = 0, energy_now = 0, near_now = 0;
    int is_still = 0; /* g is 0 at the start */

    for (int p = lid; p < N_POINT; p += LANES)
        next[p] = now[p];
    for (int b = lid; b < N_BEAD; b += LANES) {
        amount[b] = vload4(b, job + AT_AMOUNT);
        unit_of[b] = (short)body[bead[b].z].w;
    }
    for (int t = lid; t < RESULT_SIZE - AT_TURNS; t += LANES)
        result[AT_TURNS + t] = 0.0f;
    for (int t = lid; t < N_COUNT; t += LANES)
        steps[t] = (int2)(0, 0);
    for (int s = lid; s < N_SLOT; s += LANES) {
        const float phi = job[AT_ANGLE + 2 * s];
        const float psi = job[AT_ANGLE + 2 * s + 1];
        __global const float *own = term + density[s] * PARTS * 12;
        float sum = 0.0f;
        for (int k = 0; k < n_term[density[s]]; k++)
            sum += part_at(own + 12 * k, wave(phi), wave(psi));
        angle[s][0] = phi, angle[s][1] = psi;
        slot_log[s] = log(sum);
    }
#if LANES == 1
    (void)pair, (void)knots_per_ang, (void)sinc;
    open_vectors(&vectors, unit_of);
#else
    (void)dq;
    const float unit_0 = job[AT_COUNT_UNIT], unit_1 = job[AT_COUNT_UNIT + 1];
    const float unit_2 = job[AT_COUNT_UNIT + 2];
    if (lid == 0)
        last_knot = 0;
#endif
    barrier(CLK_LOCAL_MEM_FENCE | CLK_GLOBAL_MEM_FENCE);

    /* Step 0 proposes nothing: it weighs the start. So does one after the last
     * of a processor. */
    for (int i = 0; i <= last; i++) {
        const int is_weighed = i == 0 || i > n_step;
        const uint4 r = draw(key, (uint)i, 0), s = draw(key, (uint)i, 1);
        const float kind = unit(r.x);
        const int is_c2 = HAS_C2 && !is_weighed && kind < 0.1f;
        const int is_linker =
            N_LINKER > 0 && !is_weighed && kind >= 0.1f && kind < 0.3f;
        const int is_turn = !is_weighed && is_c2 + is_linker == 0;
        const float2 z = normals(r.z, r.w);
        const float wide = exp2(4.0f * unit(s.x) - 2.0f);
        float c2_next = c2, change = 0.0f, log_lik_next = 0.0f;
        float turned[2] = {0.0f, 0.0f};
        int which[2] = {-1, -1}, counted = -1, is_closed = 1, learns = 0;
        /* Points that move; of these those that move as one. */
        int first = 0, end = 0, far_first = 0, far_end = 0;
        int slot_first = 0, n_slot = 0;
        motion one, both;
        /* Of a linker. */
        int l = 0, n_turn = 0;

        /* What is proposed. */
        if (is_c2) {
            c2_next = c2 + wide * job[AT_WIDTH + N_TORSION] * z.x;
            const float new_z = (c2_next - job[2]) / job[3];
            const float old_z = (c2 - job[2]) / job[3];
            change = 0.5f * (old_z * old_z - new_z * new_z);
            counted = N_TORSION;
        }
        if (is_turn) {
            const int t = min((int)(unit(r.y) * N_TORSION), N_TORSION - 1);
            const float hot = 1.0f - beta;
            const int is_any = unit(s.y) < FEWEST_ANY + MORE_ANY * hot * hot;
            int outer = t, inner = is_any ? beside_it(turn, torsion, t)
                                   : unit(s.z) < 0.5f ? turn[t].z
                                                      : -1;
            if (is_any && inner >= 0 && holds(torsion[inner], torsion[t]))
                outer = inner, inner = t;
            const int4 how = turn[outer], where = torsion[outer];
            const float2 had = (float2)(angle[how.x][0], angle[how.x][1]);
            const float width = wide * job[AT_WIDTH + t];
            float2 gets = had;
            first = far_first = where.z, end = far_end = where.w;
            which[0] = outer, which[1] = inner;
            slot_first = how.x, n_slot = 1;
            turned[0] = is_any ? PI * (2.0f * unit(s.z) - 1.0f) : width * z.x;
            turned[1] = 0.3f * width * z.y - turned[0];
            counted = is_any || inner >= 0 ? -1 : t;
            if (is_any && inner >= 0) {
                __global const uint *own = cell + density[how.x] * N_CELL;
                gets = drawn(own, r.z, unit(r.w), unit(s.z));
                change = log_chance(own, had) - log_chance(own, gets);
                turned[0] = how.y == 0 ? gets.x - had.x : gets.y - had.y;
                turned[1] = how.y == 0 ? gets.y - had.y : gets.x - had.x;
            } else {
                gets += (float2)(how.y == 0 ? turned[0] : 0.0f,
                                 how.y == 0 ? 0.0f : turned[0]);
            }
            one = about(now[where.x], now[where.y], (float)how.w * turned[0]);
            if (inner >= 0) {
                const int4 then = turn[inner], axis = torsion[inner];
                far_first = axis.z, far_end = axis.w;
                both = about(moved(&one, now[axis.x]), moved(&one, now[axis.y]),
                             (float)then.w * turned[1]);
                if (!is_any) { /* another residue's, beside it */
                    n_slot = 2;
                    slot_first = min(how.x, then.x);
                    const int k = then.x - slot_first;
                    if (lid == 0) {
                        const float by = turned[1];
                        next_angle[k][0] = wrapped(angle[then.x][0] +
                                                   (then.y == 0 ? by : 0.0f));
                        next_angle[k][1] = wrapped(angle[then.x][1] +
                                                   (then.y == 0 ? 0.0f : by));
                    }
                }
            }
            if (lid == 0) {
                next_angle[how.x - slot_first][0] = wrapped(gets.x);
                next_angle[how.x - slot_first][1] = wrapped(gets.y);
            }
            for (int p = first + lid; p < end; p += LANES) {
                float4 x = moved(&one, now[p]);
                if (which[1] >= 0 && p >= far_first && p < far_end)
                    x = moved(&both, x);
                next[p] = x;
            }
        }
        if (is_linker) {
            l = min((int)(unit(r.y) * N_LINKER), N_LINKER - 1);
            __global const int *own = linker + 8 * l;
            __global const float *factor = job + AT_FACTOR + l * N_FACTOR;
            const int n_all = own[1];
            const float by = exp2(2.0f * unit(s.x) - 1.0f);
            const float width = by * job[AT_WIDTH + N_TORSION + 1 + l];
            n_turn = min(n_all, MOST_TURN);
            /* Outwards from the part that stays. */
            const int skip =
                min((int)(unit(s.y) * (n_all - n_turn + 1)), n_all - n_turn);
            const int torsion_by = own[2];
            const int torsion_first =
                own[0] + (torsion_by > 0 ? skip : n_all - 1 - skip);
            const int outer = torsion_first + (n_turn - 1) * torsion_by;
            const int is_after = torsion_by > 0;
            const int is_free = n_turn < LEAST_CLOSED;
            learns = is_free || unit(s.z) < 0.6f;
            counted = N_TORSION + 1 + 2 * l + learns;
            first = is_after ? edge[torsion_first].y : own[3];
            end = is_after ? own[3] : edge[torsion_first].x;
            far_first = is_after ? edge[outer].y : own[3];
            far_end = is_after ? own[3] : edge[outer].x;
            if (!learns && is_after)
                end = far_first;
            if (!learns && !is_after)
                first = far_end;
            if (!learns)
                far_first = far_end = 0;
            slot_first = min(turn[torsion_first].x, turn[outer].x);
            n_slot = abs(turn[torsion_first].x - turn[outer].x) + 1;
            for (int k = lid; k < n_slot; k += LANES) {
                next_angle[k][0] = angle[slot_first + k][0];
                next_angle[k][1] = angle[slot_first + k][1];
            }
            for (int k = lid; k < 8; k += LANES) {
                const uint4 own_draw = draw(key, (uint)i, 8 + (uint)k);
                room.unit_step[k] =
                    learns ? by * normals(own_draw.x, own_draw.y).x : 0.0f;
            }
            barrier(CLK_LOCAL_MEM_FENCE);
            for (int k = lid; k < n_turn; k += LANES) {
                const int t = torsion_first + k * torsion_by;
                const int4 where = torsion[t];
                const uint4 own_draw = draw(key, (uint)i, 16 + (uint)k);
                const float4 o = now[where.x];
                float4 u = now[where.y] - o;
                u.w = 0.0f;
                room.axis[0][k][0] =
                    u * ((is_after ? 1.0f : -1.0f) * rsqrt(dot(u, u)));
                room.axis[0][k][1] = o;
                room.torsion[k] = t;
                room.edge[k] = is_after ? edge[t].y : edge[t].x;
                room.loose[0][k] = width * normals(own_draw.x, own_draw.y).x;
                if (is_free)
                    room.angle[0][k] = of_units(factor, k, room.unit_step);
            }
            barrier(CLK_LOCAL_MEM_FENCE);
            const float4 far = now[own[4]], near_one = now[own[5]];
            const float4 beside = now[own[6]];
            float4 omega = (float4)(0.0f), v = (float4)(0.0f);
            if (!is_free) {
                const motion axes = between(near_one, beside, far);
                __local const float *u = room.unit_step;
                omega = axes.x * of_units(factor, 0, u) +
                        axes.y * of_units(factor, 1, u) +
                        axes.z * of_units(factor, 2, u);
                v = axes.x * of_units(factor, 3, u) +
                    axes.y * of_units(factor, 4, u) +
                    axes.z * of_units(factor, 5, u);
                const motion there = between(near_one, beside, far + LEVER * v);
                if (learns)
                    change = 0.5f / (by * by) *
                             (in_units(&axes, factor, omega, v) -
                              in_units(&there, factor, -omega, -v));
                start_columns(&room, n_turn, far, lid);
            }
            is_closed = turn_linker(&room, n_turn, is_free, is_after, width,
                                    omega, far, far + LEVER * v, first, end,
                                    now, next, &change, lid);
            for (int k = lid; k < n_turn; k += LANES) {
                const int4 how = turn[room.torsion[k]];
                next_angle[how.x - slot_first][how.y] =
                    wrapped(angle[how.x][how.y] + room.angle[0][k]);
            }
        }
        for (int p = first + lid; !is_closed && p < end; p += LANES)
            next[p] = now[p];
        if (lid == 0)
            n_near = 0, all_near = 0, energy = 0, forbidden = 0, n_still = 0,
            n_far = 0, n_odd = 0;
        barrier(CLK_LOCAL_MEM_FENCE | CLK_GLOBAL_MEM_FENCE);

        float2 phi = (float2)(0.0f), psi = phi;
        for (int k = lid; k < n_slot * PARTS; k += LANES) {
            const int own = k / PARTS, m = k % PARTS;
            const int of = density[slot_first + own];
            if (LANES > 1 || m == 0)
                phi = wave(next_angle[own][0]), psi = wave(next_angle[own][1]);
            part_of[k] = m < n_term[of] ? part_at(term + (of * PARTS + m) * 12,
                                                  phi, psi)
                                        : 0.0f;
        }
        for (int b = lid; b < N_BEAD; b += LANES) {
            const int2 span = reach[b];
            const int is_far = span.x >= far_first && span.y <= far_end;
            const int stays =
                !is_weighed &&
                (span.y <= first || span.x >= end || first >= end);
            how[b] = (uchar)(stays ? STAYS : is_far ? AS_ONE : ODD);
            if (stays)
                order[grow(&n_still, 1)] = (ushort)b;
            else if (is_far)
                order[N_BEAD - 1 - grow(&n_far, 1)] = (ushort)b;
            else
                odd[grow(&n_odd, 1)] = (ushort)b;
            if (!stays) {
                const int4 own = bead[b];
                float4 x = (float4)(0.0f);
                for (int k = own.x; k < own.x + own.y; k++)
                    x += share[k] * next[part[k]];
                x.w = radius[b];
                next_centre[b] = x;
            }
        }
        barrier(CLK_LOCAL_MEM_FENCE);
        for (int k = lid; k < n_slot; k += LANES)
            next_log[k] = log_of_parts(part_of + k * PARTS);

        /* Pairs of beads: what they add, and which are near enough to touch.
         * First those of beads that move as one and beads that stay, then those
         * of the others with all; or all pairs. */
        const int n_two = n_far * n_still, n_one = n_odd * N_BEAD;
        const int is_all =
            is_weighed || c2_next != c2 || 2 * (n_two + n_one) > N_PAIR;
        const int to = 1 - at;
        contacts met = {bead, body,    contact, inverse_softness, limit,
                        near, &n_near, 0,       0,                0};
#if LANES == 1
        if (is_weighed || c2_next != c2)
            put_forms(&vectors, job + AT_SHAPE, amount, c2_next);
        put_beads(&vectors, 0, centre);
        put_beads(&vectors, 1, next_centre);
        for (int b = 0; b < N_BEAD; b++)
            INT_OF(vectors.how, b) = how[b];
        if (is_closed)
            sum_pairs(&vectors, is_c2 ? 0 : &met, is_all ? -1 : n_still, n_far,
                      n_odd, order, odd, dq, cutoff, sums[at], sums[to]);
#else
        const int n_pair = is_all ? N_PAIR : n_two + n_one;
        if (is_all) {
            for (int k = lid; k < 2 * N_KNOT; k += LANES)
                count[k] = 0;
            barrier(CLK_LOCAL_MEM_FENCE);
        }
        int largest = 0;
        const float per_still = n_still > 0 ? 1.0f / (float)n_still : 0.0f;
        for (int k = lid; is_closed && k < n_pair; k += LANES) {
            int a, b;
            if (is_all) {
                a = pair[k].x, b = pair[k].y;
            } else if (k < n_two) {
                const int m = (int)(((float)k + 0.5f) * per_still);
                a = order[N_BEAD - 1 - m], b = order[k - m * n_still];
            } else {
                const int m = (k - n_two) / N_BEAD;
                a = odd[m], b = k - n_two - m * N_BEAD;
                if ((how[b] == ODD && b <= a) ||
                    (unit_of[a] >= 0 && unit_of[a] == unit_of[b]))
                    continue;
            }
            if (a > b) { /* as pairs are listed */
                const int c = a;
                a = b, b = c;
            }
            const float4 by = worth(amount[a], amount[b], c2_next, unit_0,
                                    unit_1, unit_2);
            int4 had = (int4)(0);
            int had_knot = -1, knot;
            for (int sign = is_all ? 1 : -1; sign < 2; sign += 2) {
                const float4 x = sign > 0 ? next_centre[a] : centre[a];
                const float4 y = sign > 0 ? next_centre[b] : centre[b];
                const float r2 = square_of(x - y);
                const float close = cutoff + x.w + y.w;
                if (!is_c2 && r2 < close * close)
                    touch(&met, a, b, x.w == 0.0f && y.w == 0.0f, r2, sign);
                const int4 gets = portions(r2, by, knots_per_ang, &knot);
                largest = max(largest, knot + 1);
                if (sign < 0) {
                    had = gets, had_knot = knot;
                    continue;
                }
                /* Distances change little where steps are small. */
                if (had_knot >= 0 && had_knot != knot)
                    add_portions(count, had_knot, -had);
                add_portions(count, knot, had_knot == knot ? gets - had : gets);
            }
        }
        atomic_max(&last_knot, largest);
#endif
        if (met.count != 0)
            grow(&all_near, met.count);
        if (met.energy != 0)
            grow(&energy, met.energy);
        if (met.forbidden)
            atomic_or(&forbidden, 1);
        barrier(CLK_LOCAL_MEM_FENCE);

        /* Beads of several bodies; a start may have more than the list. */
        /* Else as it was, and changes. */
        const int is_anew = is_all & !is_c2;
        const int near_next = all_near + (is_anew ? 0 : near_now);
        int own_energy = 0;
        int own_forbidden = near_next > MOST_NEAR || n_near > 2 * MOST_NEAR;
        const int n_listed = own_forbidden ? 0 : n_near;
        for (int k = lid / NEAR_LANES; k < n_listed; k += LANES / NEAR_LANES) {
            const int c = (int)(near[k] & 0x7fff);
            const int d = (int)(near[k] >> 15 & 0x7fff);
            const int sign = near[k] >> 30 ? -1 : 1;
            const int is_swapped = bead[c].w > bead[d].w;
            const int a = is_swapped ? d : c, b = is_swapped ? c : d;
            __global const float4 *at_points = sign > 0 ? next : now;
            const int4 p = bead[a], q = bead[b];
            const float4 middle = sign > 0 ? next_centre[a] : centre[a];
            const float close = cutoff + middle.w;
            for (int v = lid % NEAR_LANES; v < q.w; v += NEAR_LANES) {
                const float4 y = at_points[part[q.x + v]];
                if (square_of(middle - y) >= close * close)
                    continue;
                for (int u = 0; u < p.w; u++) {
                    const float4 x =
                        p.w > 1 ? at_points[part[p.x + u]] : middle;
                    const float r2 = square_of(x - y);
                    if (r2 < cutoff * cutoff) {
                        const int e = overlap(body[p.z + u], body[q.z + v], r2,
                                              contact, inverse_softness, limit);
                        own_forbidden |= e < 0;
                        own_energy += e < 0 ? 0 : sign * e;
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
        int is_possible = is_closed && !(forbidden || is_still);
        if (is_c2)
            is_possible &= c2_next >= job[4] && c2_next <= job[5];
        is_possible |= is_weighed;
        const int energy_next = energy + (is_anew ? 0 : energy_now);
        change += (float)(energy_now - energy_next) / UNIT_PER_NAT;
        for (int k = 0; k < n_slot; k++)
            change += next_log[k] - slot_log[slot_first + k];
        if (is_possible) {
#if LANES > 1
            const int upto = last_knot;
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
#endif
            for (int q = lid; q < N_Q; q += LANES)
                profile[q] = bare_at(job, sums[to], q, c2_next) *
                             by_powers(job + AT_NUMERATOR, q, c2_next) /
                             by_powers(job + AT_DENOMINATOR, q, c2_next);
            barrier(CLK_LOCAL_MEM_FENCE);
#if LANES == 1 /* q outside, so that rows are taken by vectors */
            for (int k = 0; k < N_CURVE * N_ROW; k++)
                row[k] = 0.0f;
            for (int k = 0; k < N_CURVE * N_Q; k++) {
                const int of = k / N_Q, q = k % N_Q;
                __global const float *rows =
                    job + AT_CURVE + of * CURVE_SIZE + q * N_ROW;
                for (int m = 0; m < N_ROW; m++)
                    row[of * N_ROW + m] += rows[m] * profile[q];
            }
#else
            for (int k = lid; k < N_CURVE * N_ROW; k += LANES) {
                __global const float *rows =
                    job + AT_CURVE + k / N_ROW * CURVE_SIZE + k % N_ROW;
                float sum = 0.0f;
                for (int q = 0; q < N_Q; q++)
                    sum += rows[q * N_ROW] * profile[q];
                row[k] = sum;
            }
#endif
            barrier(CLK_LOCAL_MEM_FENCE);
            if (lid == 0)
                log_lik_of_all = log_lik_of(job + AT_CURVE, row);
            barrier(CLK_LOCAL_MEM_FENCE);
            log_lik_next = log_lik_of_all;
        }

        const float log_accept = change + beta * (log_lik_next - log_lik);
        const int accept =
            is_weighed || (is_possible && log(unit(s.w)) < log_accept);
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
#if LANES > 1
        for (int k = lid; k < 2 * N_KNOT; k += LANES) {
            if (accept)
                count_now[k] = count[k];
            else
                count[k] = count_now[k];
        }
#else
        if (!accept && c2_next != c2)
            put_forms(&vectors, job + AT_SHAPE, amount, c2);
#endif
        for (int k = lid; accept && k < n_slot; k += LANES) {
            angle[slot_first + k][0] = next_angle[k][0];
            angle[slot_first + k][1] = next_angle[k][1];
            slot_log[slot_first + k] = next_log[k];
        }
        for (int k = lid; accept && k < n_turn; k += LANES)
            result[AT_TURNS + room.torsion[k]] += room.angle[0][k];
        if (lid == 0) {
            if (counted >= 0)
                steps[counted] += (int2)(1, accept);
            for (int k = 0; k < 2 && accept; k++)
                if (which[k] >= 0)
                    result[AT_TURNS + which[k]] += turned[k];
        }
        if (learns) {
            const int is_learnt = is_possible && log_accept == log_accept;
            const float p = is_learnt ? exp(fmin(log_accept, 0.0f)) : 0.0f;
            learn_factor(result + AT_LEARN + l * N_FACTOR, &room,
                         n_turn < LEAST_CLOSED ? n_turn : 6, p, lid);
        }
        if (accept) {
            at = to, c2 = c2_next, log_lik = log_lik_next;
            energy_now = energy_next, near_now = near_next;
        }
        barrier(CLK_LOCAL_MEM_FENCE | CLK_GLOBAL_MEM_FENCE);
        if (lid == 0 && (i == 0 || i == last)) {
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
        if (i == 0 || i == last)
            for (int q = lid; q < N_Q; q += LANES)
                result[AT_CURVES + (i == 0 ? 0 : N_Q) + q] =
                    bare_at(job, sums[at], q, c2);
    }
    if (lid == 0)
        result[2] = c2;
}
