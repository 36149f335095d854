/* Averages and principal motions of conformations equal the values that the
 * test planted. */
#include "analysis/shape.h"
#include "run_frames.h"
#include "tests/test.h"

#include <gsl/gsl_randist.h>

OWNED(tsr_shape)
OWNED(tsr_frames)

enum { N_RESIDUE = 40, N_FRAME = 60, HALF = N_RESIDUE / 2 };

/* A zigzag of CA; its second half turns about the middle by `angle`. */
static void place(double angle, double (*x)[3])
{
    const double axis[3] = {0.0, 0.0, 1.0};
    tsr_motion turn;
    for (int i = 0; i < N_RESIDUE; i++) {
        x[i][0] = 3.0 * i;
        x[i][1] = i % 2 == 0 ? 0.0 : 2.0;
        x[i][2] = 0.0;
    }
    double to[3];
    for (int d = 0; d < 3; d++)
        to[d] = x[HALF][d] + axis[d];
    tsr_motion_about(&turn, x[HALF], to, angle);
    for (int i = HALF + 1; i < N_RESIDUE; i++)
        tsr_motion_apply(&turn, x[i]);
}

/* State k of chain c is turned in `share` [c][k] of its draws. */
typedef struct {
    int n_state;
    const double *share;
} turned_draws;

static void put_draw(const void *context, int chain, int state, int draw,
                     gsl_rng *rng, double (*x)[3])
{
    const turned_draws *t = context;
    const double share = t->share[chain * t->n_state + state];
    place((draw + 0.5) / N_FRAME < share ? 1.5 : 0.0, x);
    for (int i = 0; i < N_RESIDUE; i++)
        for (int d = 0; d < 3; d++)
            x[i][d] += gsl_ran_gaussian(rng, 0.3);
    run_tumble(rng, N_RESIDUE, x);
}

static tsr_frames *frames_of_states(int n_chain, int n_state,
                                    const double *share)
{
    const turned_draws of = {n_state, share};
    double x[N_RESIDUE][3];
    place(0.0, x);
    run_model(N_RESIDUE, (const double(*)[3])x);
    return run_frames(n_chain, n_state, N_RESIDUE, N_FRAME, 1, put_draw, &of);
}

static tsr_frames *frames_of(int n_chain, const double *share)
{
    return own_tsr_frames(frames_of_states(n_chain, 1, share));
}

static tsr_shape *shape_of(tsr_frames *frames)
{
    tsr_shape *shape;
    OK(tsr_shape_make(frames, NULL, 2000, &shape, &err));
    return shape;
}

TEST(test_two_states)
{
    const double share[] = {0.25, 0.35};
    double open[N_RESIDUE][3], turned[N_RESIDUE][3];
    tsr_frames *frames = frames_of(2, share);
    FREED(tsr_shape) s = shape_of(frames);
    assert_int_equal(s->n, 2 * N_FRAME);
    /* distances: fixed within a half, of two values between the halves */
    place(0.0, open);
    place(1.5, turned);
    assert_int_equal(s->n_row, N_RESIDUE);
    for (int a = 0; a < N_RESIDUE; a += 3)
        for (int b = 0; b < N_RESIDUE; b += 4) {
            const double d0 = tsr_vec3_distance(open[a], open[b]);
            const double d1 = tsr_vec3_distance(turned[a], turned[b]);
            if (d0 < 10.0)
                continue; /* noise lengthens what is short */
            assert_near(s->distance[a * N_RESIDUE + b], 0.7 * d0 + 0.3 * d1,
                        0.15);
            assert_near(s->distance_sd[a * N_RESIDUE + b],
                        hypot(sqrt(0.21) * (d0 - d1), 0.3 * sqrt(2.0)), 0.12);
        }
    /* P(r) is a density */
    double area = 0.0;
    for (int k = 0; k < TSR_N_PAIR_BIN; k++) {
        area += s->pair_mean[k] * s->pair_width;
        assert_all(s->pair_low[k] >= 0.0, s->pair_low[k] <= s->pair_high[k]);
    }
    assert_near(area, 1.0, 1e-5);
}

/* Nothing but noise: a mobility of the noise. */
TEST(test_one_state)
{
    const double share[] = {0.0, 0.0};
    tsr_frames *frames = frames_of(2, share);
    FREED(tsr_shape) s = shape_of(frames);
    double mean = 0.0;
    for (int r = 0; r < N_RESIDUE; r++)
        mean += s->rmsf[r] / N_RESIDUE;
    assert_near(mean, 0.3 * sqrt(3.0), 0.03); /* 2 % of it goes into the fit */
}

/* An ensemble: P(r) by the weights of its states, draw by draw. */
TEST(test_weighted)
{
    const double share[2][2] = {{0.0, 1.0}, {0.0, 1.0}}, first[2] = {0.8, 0.6};
    const tsr_drawn_frame *frame;
    FREED(tsr_frames) frames = frames_of_states(2, 2, share[0]);
    const int n = tsr_frames_list(frames, &frame);
    double *weight = array((size_t)n * sizeof *weight, 1);
    tsr_shape *s, *one[2];
    assert_int_equal(n, 4 * N_FRAME);
    for (int i = 0; i < n; i++)
        weight[i] = frame[i].state == 1 ? first[frame[i].chain]
                                        : 1.0 - first[frame[i].chain];
    OK(tsr_shape_make(frames, weight, 4 * N_FRAME - 6, &s, &err));
    /* fewer than all: draws are left out, and not states of them */
    assert_int_equal(s->n, 4 * N_FRAME - 6);
    for (int i = 0, k = 0; i < s->n; i++) {
        const tsr_drawn_frame *a = &frame[s->at[i]];
        for (k = 0; k < s->n; k++) {
            const tsr_drawn_frame *b = &frame[s->at[k]];
            if (b->chain == a->chain && b->draw == a->draw &&
                b->state == 3 - a->state)
                break;
        }
        assert_true(k < s->n && (i == 0 || s->at[i] > s->at[i - 1]));
    }
    /* P(r) of draws: 0.8 or 0.6 of the one, the rest of the other */
    for (int k = 0; k < 2; k++) {
        for (int i = 0; i < n; i++)
            weight[i] = frame[i].state == k + 1;
        OK(tsr_shape_make(frames, weight, 4 * N_FRAME - 6, &one[k], &err));
    }
    double most = 0.0;
    int at = 0;
    for (int k = 0; k < TSR_N_PAIR_BIN; k++) {
        const double a = one[0]->pair_mean[k], b = one[1]->pair_mean[k];
        assert_near(s->pair_mean[k], 0.7 * a + 0.3 * b, 1e-4);
        if (fabs(a - b) > most) {
            most = fabs(a - b);
            at = k;
        }
    }
    /* where they differ most: a fifth of that, and the noise of a bin */
    const double noise = one[0]->pair_high[at] - one[0]->pair_low[at];
    const double band = s->pair_high[at] - s->pair_low[at];
    assert_true(band > 0.15 * most && band < 0.25 * most + noise);
    assert_true(most > 0.003);
    tsr_shape_free(one[0]);
    tsr_shape_free(one[1]);
    tsr_shape_free(s);
}

/* One frame is enough for pictures. */
TEST(test_one_frame)
{
    const double share[] = {0.0};
    tsr_frames *frames = frames_of(1, share);
    FREED(tsr_shape) s;
    OK(tsr_shape_make(frames, NULL, 1, &s, &err));
    assert_int_equal(s->n, 1);
    assert_true(s->rmsf[3] < 1e-6 && s->distance_sd[5] == 0.0);
}

static test_fixture around_each = {io_setup, io_teardown};
