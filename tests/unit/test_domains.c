/* Domains are found where two rigid parts move by known amounts. */
#include "analysis/shape.h"
#include "core/vec3.h"
#include "tests/test.h"

#include <gsl/gsl_randist.h>

/* helix 0..29, loose 30..39, helix 40..74, then 10 residues that are rigid but
 * too few */
enum {
    N_DRAW = 40,
    N_RES = 95,
    LOOSE = 30,
    SECOND = 40,
    THIRD = 75,
    LAST = 85
};

static void helix(int i, double x[3])
{
    x[0] = 2.3 * cos(1.745 * i);
    x[1] = 2.3 * sin(1.745 * i);
    x[2] = 1.5 * i;
}

static int is_near(double a, double b, double tolerance)
{
    return fabs(a - b) <= tolerance;
}

TEST(test_two_domains)
{
    static double start[N_RES][3];
    static float ca[N_DRAW][N_RES][3];
    const double axis[2][3] = {{0.0, 0.0, 0.0}, {1.0, 2.0, -0.5}},
                 aside[2][3] = {{50.0, 0.0, 0.0}, {50.0, 1.0, 0.0}};
    double middle[2][3] = {{0.0}}, want[N_DRAW];
    tsr_domains *d;
    gsl_rng *rng = rng_new(2, 0);
    for (int r = 0; r < N_RES; r++)
        helix(r, start[r]);
    for (int r = 0; r < N_RES; r++)
        for (int k = 0; k < 3; k++) {
            if (r < LOOSE)
                middle[0][k] += start[r][k] / LOOSE;
            else if (r >= SECOND && r < THIRD)
                middle[1][k] += start[r][k] / (THIRD - SECOND);
        }
    for (int i = 0; i < N_DRAW; i++) {
        tsr_motion part, all, third;
        double centre[3];
        /* the second turns by i 4 degrees and is moved; then all of it */
        tsr_motion_about(&part, axis[0], axis[1], i * 4.0 / 57.29577951308232);
        tsr_motion_about(&all, start[3], start[50], 0.3 * i);
        tsr_motion_about(&third, aside[0], aside[1], 0.2 * i);
        part.shift[0] += 0.5 * i;
        tsr_vec3_copy(centre, middle[1]);
        tsr_motion_apply(&part, centre);
        want[i] = tsr_vec3_distance(centre, middle[0]);
        for (int r = 0; r < N_RES; r++) {
            double x[3];
            tsr_vec3_copy(x, start[r]);
            if (r >= SECOND && r < THIRD)
                tsr_motion_apply(&part, x);
            if (r >= LAST)
                tsr_motion_apply(&third, x);
            tsr_motion_apply(&all, x);
            for (int k = 0; k < 3; k++)
                ca[i][r][k] = (float)(x[k] + ((r >= LOOSE && r < SECOND) ||
                                                      (r >= THIRD && r < LAST)
                                                  ? gsl_ran_gaussian(rng, 1.0)
                                                  : 0.0));
        }
    }
    OK(tsr_domains_from_ca(N_DRAW, N_RES, &ca[0][0][0],
                           (const double(*)[3])start, &d, &err));
    assert_ints(d->n_domain, 2, d->domain[0].n_residue, LOOSE,
                d->domain[0].residue[LOOSE - 1], LOOSE - 1,
                d->domain[1].n_residue, THIRD - SECOND, d->domain[1].residue[0],
                SECOND, d->n_pair, 1);
    assert_true(is_near(d->pair[0].start_ang,
                        tsr_vec3_distance(middle[0], middle[1]), 1e-9));
    for (int i = 0; i < N_DRAW; i++) {
        assert_true(is_near(d->pair[0].distance[i], want[i], 1e-3));
        assert_true(
            is_near(d->pair[0].turn[i] * 57.29577951308232, 4.0 * i, 0.01));
    }
    tsr_domains_free(d);
    /* nothing has moved: one part, no pair */
    for (int i = 1; i < N_DRAW; i++)
        memcpy(ca[i], ca[0], sizeof ca[0]);
    OK(tsr_domains_from_ca(N_DRAW, N_RES, &ca[0][0][0],
                           (const double(*)[3])start, &d, &err));
    assert_ints(d->n_domain, 1, d->n_pair, 0);
    tsr_domains_free(d);
}

/* The second half has moved in one draw of many. */
TEST(test_seldom)
{
    enum { MANY = 1001, HALF = 30, BOTH = 2 * HALF };
    static float ca[MANY][BOTH][3];
    double start[BOTH][3];
    tsr_domains *d;
    for (int r = 0; r < BOTH; r++)
        helix(r, start[r]);
    for (int i = 0; i < MANY; i++)
        for (int r = 0; r < BOTH; r++)
            for (int k = 0; k < 3; k++)
                ca[i][r][k] =
                    (float)(start[r][k] + (i == 501 && r >= HALF ? 7.0 : 0.0));
    OK(tsr_domains_from_ca(MANY, BOTH, &ca[0][0][0], (const double(*)[3])start,
                           &d, &err));
    assert_int_equal(d->n_domain, 2);
    tsr_domains_free(d);
}
