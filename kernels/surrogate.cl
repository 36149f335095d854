/* Walks by the surrogate (src/surrogate/surrogate.h): a work-group makes all
 * steps of one job, one after another.
 *
 * A step makes one of the following proposals: to turn one torsion; to turn two
 * neighbouring torsions against each other; to draw both torsions of a residue
 * from their density; to turn a linker as a whole (surrogate_turns.cl); to
 * change c2. The proposed points are written to a second array. Torsions and c2
 * decide first, since half of the steps fail by them. Otherwise pairs of beads
 * are counted by distance, and curve and likelihood follow from the counts
 * (surrogate_curve.cl). Only pairs whose distance changed are subtracted and
 * added again; if these are more than half of all pairs, all are counted anew.
 * Counts are integers, so that the result depends neither on the order of
 * work-items nor on which pairs were counted anew: a job gives the same bits in
 * any launch. A distance has three counts, one for each product of shapes
 * (surrogate.h), of which the two smaller ones share an integer, 16 bits each.
 * On a CPU a work-group is a single work-item, which sums curves in a fixed
 * order instead of counting. After the last step it computes all pairs anew,
 * which removes the rounding errors of the changes.
 * All work-items draw the same random numbers, from a counter, and so come to
 * the same decision.
 *
 * Sizes and offsets are constants of the build: LANES, N_..., AT_... */

/* A result: log g (surrogate.h) at the start and at the end; c2 at the end;
 * profiles of start and end before the factor numerator / denominator; sum of
 * the accepted turns of each torsion; data for each linker's factor. */
#define AT_CURVES 3
#define AT_TURNS (AT_CURVES + 2 * N_Q)
#define AT_LEARN (AT_TURNS + N_TORSION)
#define RESULT_SIZE (AT_LEARN + N_LINKER * N_FACTOR)
#define N_COUNT (N_TORSION + 1 + 2 * N_LINKER)
#define MAX_SLOTS (MAX_TURNS / 2 + 2) /* most slots that a step changes */
#define SLICES (LANES / N_Q > 0 ? LANES / N_Q : 1)
#define PAIR_LANES (LANES < 8 ? LANES : 8)
#ifndef CONVERTS
#define CONVERTS 1 /* counts are converted to numbers once for all q */
#endif

__kernel __attribute__((reqd_work_group_size(LANES, 1, 1))) void
surrogate_walk(__global const int4 *bead, __global const int2 *point_range,
               __global const float *radius, __global const int *part,
               __global const float *part_weight, __global const int4 *body,
               __global const float *contact, __global const ushort2 *pair,
               __global const int4 *torsion, __global const int4 *turn,
               __global const int2 *point_bounds, __global const int *linker,
               __global const int *density, __global const float *term,
               __global const int *n_term, __global const uint *cell,
               __global const float *sinc, float cutoff, float inverse_softness,
               float limit, float dq, float knots_per_ang,
               __global float *exchange, __global float4 *next_points,
               uint at_points, uint at_keys, uint at_results, uint at_counts)
{
    /* `exchange` begins with the jobs. Its other parts are at these offsets,
     * in floats. */
    __global float4 *points = (__global float4 *)(exchange + at_points);
    __global const uint2 *keys = (__global const uint2 *)(exchange + at_keys);
    __global float *results = exchange + at_results;
    __global int2 *counts = (__global int2 *)(exchange + at_counts);
    /* The radius of a bead is the w component of its centre. */
    __local float4 centre[N_BEAD], next_centre[N_BEAD];
#if LANES == 1
    __local vector_workspace vectors;
#else
    __local float2 amount_at_c2[N_BEAD];
    __local int count[2 * N_KNOT], count_now[2 * N_KNOT], last_knot;
#if CONVERTS
    __local float4 converted[N_KNOT];
#endif
    __local float slice[SLICES * PRODUCTS * N_Q];
#endif
    __local SUM sums[2][N_SUM];
    __local float profile[N_Q], row[N_CURVE * N_ROW];
    __local float angle[N_SLOT][2], slot_log[N_SLOT];
    __local float next_angle[MAX_SLOTS][2], next_log[MAX_SLOTS];
    __local float component[MAX_SLOTS * PARTS];
    __local uint neighbour[2 * MAX_NEIGHBOURS];
    __local int n_listed_pair, n_neighbour_change, energy, forbidden;
    __local short unit_of[N_BEAD];
    /* Fixed beads from the front, far beads (which move as one) from the back;
     * the loose beads. */
    __local ushort order[N_BEAD], loose[N_BEAD];
    __local uchar role[N_BEAD]; /* FIXED, FAR or LOOSE */
    __local int n_fixed, n_far, n_loose;
    __local linker_workspace work;
    __local float log_lik_of_all;

    const int lid = (int)get_local_id(0), group = (int)get_group_id(0);
    __global const float *job = exchange + (size_t)group * JOB_SIZE;
    __global float4 *now = points + (size_t)group * N_POINT;
    __global float4 *next = next_points + (size_t)group * N_POINT;
    __global float *result = results + (size_t)group * RESULT_SIZE;
    __global int2 *steps = counts + (size_t)group * N_COUNT;
    const uint2 key = keys[group];
    const int n_step = (int)job[6];
    const int last = n_step + (LANES == 1);
    const float beta = job[0];
    float c2 = job[1], log_lik = 0.0f;
    int at = 0, energy_now = 0, n_neighbour_now = 0;
    int start_forbidden = 0; /* 1: g is 0 at the start */

    for (int p = lid; p < N_POINT; p += LANES)
        next[p] = now[p];
    for (int b = lid; b < N_BEAD; b += LANES)
        unit_of[b] = (short)body[bead[b].z].w;
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
            sum += component_at(own + 12 * k, wave(phi), wave(psi));
        angle[s][0] = phi, angle[s][1] = psi;
        slot_log[s] = log(sum);
    }
#if LANES == 1
    (void)pair, (void)knots_per_ang, (void)sinc;
    init_vectors(&vectors, unit_of);
#else
    (void)dq;
    const float unit_0 = job[AT_COUNT_UNIT], unit_1 = job[AT_COUNT_UNIT + 1];
    const float unit_2 = job[AT_COUNT_UNIT + 2];
    if (lid == 0)
        last_knot = 0;
#endif
    barrier(CLK_LOCAL_MEM_FENCE | CLK_GLOBAL_MEM_FENCE);

    /* Step 0 proposes nothing and evaluates the start. On a CPU an additional
     * step after the last one likewise evaluates the end. */
    for (int i = 0; i <= last; i++) {
        const int is_evaluation = i == 0 || i > n_step;
        const uint4 r = draw(key, (uint)i, 0), s = draw(key, (uint)i, 1);
        const float kind = unit(r.x);
        const int is_c2 = HAS_C2 && !is_evaluation && kind < 0.1f;
        const int is_linker =
            N_LINKER > 0 && !is_evaluation && kind >= 0.1f && kind < 0.3f;
        const int is_turn = !is_evaluation && is_c2 + is_linker == 0;
        const float2 z = normals(r.z, r.w);
        const float scale = exp2(4.0f * unit(s.x) - 2.0f);
        float c2_next = c2, change = 0.0f, log_lik_next = 0.0f;
        float turned[2] = {0.0f, 0.0f};
        int which[2] = {-1, -1}, counted = -1, is_closed = 1, learns = 0;
        /* Points first..end-1 move; of these, far_first..far_end-1 move as one
         * rigid body. */
        int first = 0, end = 0, far_first = 0, far_end = 0;
        int slot_first = 0, n_slot = 0;
        motion one, both; /* by the outer torsion; then by the inner one */
        int l = 0, n_turn = 0; /* linker, and number of its torsions that
                                  turn */

        /* ---- proposal ---- */
        if (is_c2) {
            c2_next = c2 + scale * job[AT_WIDTH + N_TORSION] * z.x;
            const float new_z = (c2_next - job[2]) / job[3];
            const float old_z = (c2 - job[2]) / job[3];
            change = 0.5f * (old_z * old_z - new_z * new_z);
            counted = N_TORSION;
        }
        if (is_turn) {
            const int t = min((int)(unit(r.y) * N_TORSION), N_TORSION - 1);
            const float hot = 1.0f - beta;
            const int is_drawn = unit(s.y) < MIN_DRAWN + MORE_DRAWN * hot * hot;
            int outer = t, inner = is_drawn ? other_torsion(turn, torsion, t)
                                   : unit(s.z) < 0.5f ? turn[t].z
                                                      : -1;
            if (is_drawn && inner >= 0 && contains(torsion[inner], torsion[t]))
                outer = inner, inner = t;
            const int4 info = turn[outer], where = torsion[outer];
            const float2 old_angle =
                (float2)(angle[info.x][0], angle[info.x][1]);
            const float width = scale * job[AT_WIDTH + t];
            float2 new_angle = old_angle;
            first = far_first = where.z, end = far_end = where.w;
            which[0] = outer, which[1] = inner;
            slot_first = info.x, n_slot = 1;
            turned[0] = is_drawn ? PI * (2.0f * unit(s.z) - 1.0f) : width * z.x;
            turned[1] = 0.3f * width * z.y - turned[0];
            counted = is_drawn || inner >= 0 ? -1 : t;
            if (is_drawn && inner >= 0) {
                __global const uint *own = cell + density[info.x] * N_CELL;
                new_angle = draw_from_cell(own, r.z, unit(r.w), unit(s.z));
                change =
                    log_proposal(own, old_angle) - log_proposal(own, new_angle);
                turned[0] = info.y == 0 ? new_angle.x - old_angle.x
                                        : new_angle.y - old_angle.y;
                turned[1] = info.y == 0 ? new_angle.y - old_angle.y
                                        : new_angle.x - old_angle.x;
            } else {
                new_angle += (float2)(info.y == 0 ? turned[0] : 0.0f,
                                      info.y == 0 ? 0.0f : turned[0]);
            }
            one = rotation_about(now[where.x], now[where.y],
                                 (float)info.w * turned[0]);
            if (inner >= 0) {
                const int4 then = turn[inner], axis = torsion[inner];
                far_first = axis.z, far_end = axis.w;
                both = rotation_about(apply(&one, now[axis.x]),
                                      apply(&one, now[axis.y]),
                                      (float)then.w * turned[1]);
                if (!is_drawn) { /* torsion of the adjacent residue */
                    n_slot = 2;
                    slot_first = min(info.x, then.x);
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
                next_angle[info.x - slot_first][0] = wrapped(new_angle.x);
                next_angle[info.x - slot_first][1] = wrapped(new_angle.y);
            }
            for (int p = first + lid; p < end; p += LANES) {
                float4 x = apply(&one, now[p]);
                if (which[1] >= 0 && p >= far_first && p < far_end)
                    x = apply(&both, x);
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
            n_turn = min(n_all, MAX_TURNS);
            /* Torsions are numbered outwards from the part that stays. */
            const int skip =
                min((int)(unit(s.y) * (n_all - n_turn + 1)), n_all - n_turn);
            const int torsion_by = own[2];
            const int torsion_first =
                own[0] + (torsion_by > 0 ? skip : n_all - 1 - skip);
            const int outer = torsion_first + (n_turn - 1) * torsion_by;
            const int is_after = torsion_by > 0;
            const int is_free = n_turn < MIN_CLOSED;
            learns = is_free || unit(s.z) < 0.6f;
            counted = N_TORSION + 1 + 2 * l + learns;
            first = is_after ? point_bounds[torsion_first].y : own[3];
            end = is_after ? own[3] : point_bounds[torsion_first].x;
            far_first = is_after ? point_bounds[outer].y : own[3];
            far_end = is_after ? own[3] : point_bounds[outer].x;
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
                work.unit_step[k] =
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
                work.axis[0][k][0] =
                    u * ((is_after ? 1.0f : -1.0f) * rsqrt(dot(u, u)));
                work.axis[0][k][1] = o;
                work.torsion[k] = t;
                work.bounds[k] =
                    is_after ? point_bounds[t].y : point_bounds[t].x;
                work.null_turn[0][k] =
                    width * normals(own_draw.x, own_draw.y).x;
                if (is_free)
                    work.angle[0][k] = row_times(factor, k, work.unit_step);
            }
            barrier(CLK_LOCAL_MEM_FENCE);
            const float4 far = now[own[4]], near_middle = now[own[5]];
            const float4 beside = now[own[6]];
            float4 omega = (float4)(0.0f), v = (float4)(0.0f);
            if (!is_free) {
                const motion axes = between(near_middle, beside, far);
                __local const float *u = work.unit_step;
                omega = axes.x * row_times(factor, 0, u) +
                        axes.y * row_times(factor, 1, u) +
                        axes.z * row_times(factor, 2, u);
                v = axes.x * row_times(factor, 3, u) +
                    axes.y * row_times(factor, 4, u) +
                    axes.z * row_times(factor, 5, u);
                const motion there =
                    between(near_middle, beside, far + LEVER * v);
                if (learns)
                    change = 0.5f / (by * by) *
                             (squared_norm(&axes, factor, omega, v) -
                              squared_norm(&there, factor, -omega, -v));
                start_columns(&work, n_turn, far, lid);
            }
            is_closed = turn_linker(&work, n_turn, is_free, is_after, width,
                                    omega, far, far + LEVER * v, first, end,
                                    now, next, &change, lid);
            for (int k = lid; k < n_turn; k += LANES) {
                const int4 info = turn[work.torsion[k]];
                next_angle[info.x - slot_first][info.y] =
                    wrapped(angle[info.x][info.y] + work.angle[0][k]);
            }
        }
        for (int p = first + lid; !is_closed && p < end; p += LANES)
            next[p] = now[p];
        if (lid == 0)
            n_listed_pair = 0, n_neighbour_change = 0, energy = 0,
            forbidden = 0, n_fixed = 0, n_far = 0, n_loose = 0;
        barrier(CLK_LOCAL_MEM_FENCE | CLK_GLOBAL_MEM_FENCE);

        float2 phi = (float2)(0.0f), psi = phi;
        for (int k = lid; k < n_slot * PARTS; k += LANES) {
            const int own = k / PARTS, m = k % PARTS;
            const int of = density[slot_first + own];
            if (LANES > 1 || m == 0)
                phi = wave(next_angle[own][0]), psi = wave(next_angle[own][1]);
            component[k] =
                m < n_term[of]
                    ? component_at(term + (of * PARTS + m) * 12, phi, psi)
                    : 0.0f;
        }
        barrier(CLK_LOCAL_MEM_FENCE);
        for (int k = lid; k < n_slot; k += LANES)
            next_log[k] = log_of_parts(component + k * PARTS);
        barrier(CLK_LOCAL_MEM_FENCE);

        /* First stage of acceptance, without pairs of beads: torsions, c2 and
         * the log ratio of the proposal. One uniform number u decides both
         * stages, of probabilities p and r: the first passes if u < p, the
         * second if u < p r. */
        for (int k = 0; k < n_slot; k++)
            change += next_log[k] - slot_log[slot_first + k];
        const float log_uniform = log(unit(s.w));
        const float log_first = change > 0.0f ? 0.0f : change; /* or NaN */
        int is_tried = is_closed && log_uniform < log_first;
        if (is_c2)
            is_tried &= c2_next >= job[4] && c2_next <= job[5];
        is_tried |= is_evaluation;
        for (int b = lid; is_tried && b < N_BEAD; b += LANES) {
            const int2 span = point_range[b];
            const int is_far = span.x >= far_first && span.y <= far_end;
            const int stays = !is_evaluation && (span.y <= first ||
                                                 span.x >= end || first >= end);
            role[b] = (uchar)(stays ? FIXED : is_far ? FAR : LOOSE);
            if (stays)
                order[fetch_add(&n_fixed, 1)] = (ushort)b;
            else if (is_far)
                order[N_BEAD - 1 - fetch_add(&n_far, 1)] = (ushort)b;
            else
                loose[fetch_add(&n_loose, 1)] = (ushort)b;
            if (!stays) {
                const int4 own = bead[b];
                float4 x = (float4)(0.0f);
#pragma unroll 4
                for (int k = own.x; k < own.x + own.y; k++)
                    x += part_weight[k] * next[part[k]];
                x.w = radius[b];
                next_centre[b] = x;
            }
        }
        barrier(CLK_LOCAL_MEM_FENCE);

        /* Pairs of beads: their contribution to the counts, and the list of
         * pairs close enough for overlaps. The loop goes over all pairs, or
         * over pairs of far with fixed beads and then of loose beads with all
         * others. */
        const int n_two = n_far * n_fixed, n_one = n_loose * N_BEAD;
        const int is_all =
            is_evaluation || c2_next != c2 || 2 * (n_two + n_one) > N_PAIR;
        const int to = 1 - at;
        contacts found = {bead,  body,      contact,        inverse_softness,
                          limit, neighbour, &n_listed_pair, 0,
                          0,     0};
#if LANES == 1
        if (is_evaluation || (is_tried && c2_next != c2))
            write_form_factors(&vectors, job, c2_next);
        if (is_tried) {
            if (!is_all) /* at step 0 there are none */
                write_centres(&vectors, 0, centre);
            write_centres(&vectors, 1, next_centre);
            for (int b = 0; b < N_BEAD; b++)
                INT_OF(vectors.role, b) = role[b];
            sum_pairs(&vectors, is_c2 ? 0 : &found, is_all ? -1 : n_fixed,
                      n_far, n_loose, order, loose, dq, cutoff, sums[at],
                      sums[to]);
        }
#else
        int largest = 0;
        if (is_evaluation || c2_next != c2)
            set_amounts(amount_at_c2, job, c2_next, lid);
        if (is_all) {
            for (int k = lid; k < 2 * N_KNOT; k += LANES)
                count[k] = 0;
            barrier(CLK_LOCAL_MEM_FENCE);
        }
        for (int k = lid; is_tried && is_all && k < N_PAIR; k += LANES) {
            const int a = pair[k].x, b = pair[k].y;
            const float4 by = pair_products(amount_at_c2[a], amount_at_c2[b],
                                            unit_0, unit_1, unit_2);
            const float4 x = next_centre[a], y = next_centre[b];
            const float r2 = square_of(x - y), reach_ang = cutoff + x.w + y.w;
            int knot;
            const int4 counts = knot_counts(r2, by, knots_per_ang, &knot);
            add_knot_counts(count, knot, counts);
            largest = max(largest, knot + 1);
            if (!is_c2 && r2 < reach_ang * reach_ang)
                add_overlap(&found, a, b, x.w == 0.0f && y.w == 0.0f, r2, 1);
        }
        const float per_still = n_fixed > 0 ? 1.0f / (float)n_fixed : 0.0f;
        for (int k = lid; is_tried && !is_all && k < n_two + n_one;
             k += LANES) {
            int c, d;
            if (k < n_two) {
                const int m = (int)(((float)k + 0.5f) * per_still);
                c = order[N_BEAD - 1 - m], d = order[k - m * n_fixed];
            } else {
                const int m = (k - n_two) / N_BEAD;
                c = loose[m], d = k - n_two - m * N_BEAD;
                if ((role[d] == LOOSE && d <= c) ||
                    (unit_of[c] >= 0 && unit_of[c] == unit_of[d]))
                    continue;
            }
            const int a = min(c, d), b = max(c, d); /* as in the list */
            const float4 by = pair_products(amount_at_c2[a], amount_at_c2[b],
                                            unit_0, unit_1, unit_2);
            const float4 x = next_centre[a], y = next_centre[b];
            const float reach_ang = cutoff + x.w + y.w;
            const float r2[2] = {square_of(centre[a] - centre[b]),
                                 square_of(x - y)};
            int knot[2];
            const int4 had = knot_counts(r2[0], by, knots_per_ang, &knot[0]);
            int4 counts = knot_counts(r2[1], by, knots_per_ang, &knot[1]);
            if (knot[0] == knot[1]) /* frequent for a small step */
                counts -= had;
            else
                add_knot_counts(count, knot[0], -had);
            add_knot_counts(count, knot[1], counts);
            largest = max(largest, knot[1] + 1);
            if (fmin(r2[0], r2[1]) >= reach_ang * reach_ang)
                continue;
            for (int sign = -1; sign < 2; sign += 2) {
                const float square = sign < 0 ? r2[0] : r2[1];
                if (square < reach_ang * reach_ang)
                    add_overlap(&found, a, b, x.w == 0.0f && y.w == 0.0f,
                                square, sign);
            }
        }
        atomic_max(&last_knot, largest);
#endif
        if (found.count != 0)
            fetch_add(&n_neighbour_change, found.count);
        if (found.energy != 0)
            fetch_add(&energy, found.energy);
        if (found.forbidden)
            atomic_or(&forbidden, 1);
        barrier(CLK_LOCAL_MEM_FENCE);

        /* Overlaps of beads with several bodies, from the list of pairs, which
         * may be full at the start. is_anew 0: `energy` and the number of
         * neighbours are changes. */
        const int is_anew = is_all & !is_c2;
        const int n_neighbour_next =
            n_neighbour_change + (is_anew ? 0 : n_neighbour_now);
        int own_energy = 0;
        int own_forbidden = n_neighbour_next > MAX_NEIGHBOURS ||
                            n_listed_pair > 2 * MAX_NEIGHBOURS;
        const int n_listed = own_forbidden ? 0 : n_listed_pair;
        for (int k = lid / PAIR_LANES; k < n_listed; k += LANES / PAIR_LANES) {
            const int c = (int)(neighbour[k] & 0x7fff);
            const int d = (int)(neighbour[k] >> 15 & 0x7fff);
            const int sign = neighbour[k] >> 30 ? -1 : 1;
            const int is_swapped = bead[c].w > bead[d].w;
            const int a = is_swapped ? d : c, b = is_swapped ? c : d;
            __global const float4 *at_points = sign > 0 ? next : now;
            const int4 p = bead[a], q = bead[b];
            const float4 middle = sign > 0 ? next_centre[a] : centre[a];
            const float reach_ang = cutoff + middle.w;
            for (int v = lid % PAIR_LANES; v < q.w; v += PAIR_LANES) {
                const float4 y = at_points[part[q.x + v]];
                if (square_of(middle - y) >= reach_ang * reach_ang)
                    continue;
#pragma unroll 4
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

        start_forbidden |= i == 0 && forbidden;
        const int is_possible =
            is_evaluation || (is_tried && !(forbidden || start_forbidden));
        const int energy_next = energy + (is_anew ? 0 : energy_now);
        const float log_overlaps =
            (float)(energy_now - energy_next) / UNIT_PER_NAT;
        if (is_possible) {
#if LANES > 1
            const int n_knot = last_knot;
#if CONVERTS
            for (int b = lid; b <= n_knot; b += LANES)
                converted[b] = counts_at(count, b);
            barrier(CLK_LOCAL_MEM_FENCE);
#endif
            for (int k = lid; k < SLICES * N_Q; k += LANES) {
                const int q = k % N_Q, own = k / N_Q;
                float4 sum = (float4)(0.0f);
#pragma unroll 4
                for (int b = own; b <= n_knot; b += SLICES)
#if CONVERTS
                    sum += sinc[b * N_Q + q] * converted[b];
#else
                    sum += sinc[b * N_Q + q] * counts_at(count, b);
#endif
                slice[(own * PRODUCTS + 0) * N_Q + q] = sum.x;
                slice[(own * PRODUCTS + 1) * N_Q + q] = sum.y;
                slice[(own * PRODUCTS + 2) * N_Q + q] = sum.z;
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
                profile[q] = profile_at(job, sums[to], q, c2_next) *
                             by_powers(job + AT_NUMERATOR, q, c2_next) /
                             by_powers(job + AT_DENOMINATOR, q, c2_next);
            barrier(CLK_LOCAL_MEM_FENCE);
#if LANES == 1 /* q outside, so that the compiler vectorises over rows */
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

        const float log_second =
            log_overlaps + beta * (log_lik_next - log_lik);
        const int accept =
            is_evaluation ||
            (is_possible && log_uniform < log_first + log_second);
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
        if (!accept && c2_next != c2)
            set_amounts(amount_at_c2, job, c2, lid);
#else
        if (!accept && is_tried && c2_next != c2)
            write_form_factors(&vectors, job, c2);
#endif
        for (int k = lid; accept && k < n_slot; k += LANES) {
            angle[slot_first + k][0] = next_angle[k][0];
            angle[slot_first + k][1] = next_angle[k][1];
            slot_log[slot_first + k] = next_log[k];
        }
        for (int k = lid; accept && k < n_turn; k += LANES)
            result[AT_TURNS + work.torsion[k]] += work.angle[0][k];
        if (lid == 0) {
            if (counted >= 0)
                steps[counted] += (int2)(1, accept);
            for (int k = 0; k < 2 && accept; k++)
                if (which[k] >= 0)
                    result[AT_TURNS + which[k]] += turned[k];
        }
        if (learns) {
            const int is_learnt = is_possible && log_second == log_second;
            const float p = is_learnt ? exp(fmin(log_second, 0.0f)) : 0.0f;
            learn_factor(result + AT_LEARN + l * N_FACTOR, &work,
                         n_turn < MIN_CLOSED ? n_turn : 6, p, lid);
        }
        if (accept) {
            at = to, c2 = c2_next, log_lik = log_lik_next;
            energy_now = energy_next, n_neighbour_now = n_neighbour_next;
        }
        barrier(CLK_LOCAL_MEM_FENCE | CLK_GLOBAL_MEM_FENCE);
        if (lid == 0 && (i == 0 || i == last)) {
            const float z_c2 = HAS_C2 ? (c2 - job[2]) / job[3] : 0.0f;
            /* The acceptance of the walk depends on the small difference of
             * this sum between start and end, so the sum of many terms must be
             * accurate (compensated summation: Kahan 1965). */
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
                    profile_at(job, sums[at], q, c2);
    }
    if (lid == 0)
        result[2] = c2;
}
