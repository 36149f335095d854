/* Ring closure finds the same solutions as a scan over one torsion, among them
 * the conformation of the chain itself, and its Jacobian is that of finite
 * differences. */
#include "moves/closure.h"
#include "tests/test.h"
#include "tests/unit/closure_problem.h"

#include <float.h>
#include <gsl/gsl_linalg.h>

/* 0: neighbours, ideal; 1: up to three residues apart, bent; 2: any atoms */
static double make_problem(gsl_rng *rng, int kind, tsr_closure *q, placed *own)
{
    int between[2] = {0, 0};
    for (int i = 0; kind == 1 && i < 2; i++)
        between[i] = (int)gsl_rng_uniform_int(rng, 4);
    if (kind < 2)
        protein_problem(rng, between, kind == 0 ? 0.02 : 0.1, q, own);
    else
        any_problem(rng, kind == 2 ? 1.0 : 1000.0, q, own);
    return kind == 3 ? 1000.0 : 1.0;
}

static int solve(const tsr_closure *q, placed p[TSR_MAX_CLOSURE])
{
    tsr_closure_solution s[TSR_MAX_CLOSURE];
    int n = tsr_closure_solve(q, s);
    for (int k = 0; k < n; k++)
        place_solution(q, &s[k], &p[k]);
    return n;
}

static double nearest(const placed *to, int n, const placed p[])
{
    double least = DBL_MAX;
    for (int k = 0; k < n; k++)
        least = fmin(least, apart(&p[k], to));
    return least;
}

TEST(own_is_found)
{
    gsl_rng *rng = rng_new(31, 0);
    for (int kind = 0; kind < 4; kind++)
        for (int i = 0; i < 10000; i++) {
            tsr_closure q;
            placed own, p[TSR_MAX_CLOSURE];
            double size = make_problem(rng, kind, &q, &own);
            int n = solve(&q, p);
            if (!(nearest(&own, n, p) < 1e-7 * size))
                fail_msg("kind %d, problem %d: not among %d", kind, i, n);
        }
}

static void assert_same_pair(const double a[3], const double b[3],
                             const double a0[3], const double b0[3],
                             double size)
{
    double change = tsr_vec3_distance(a, b) - tsr_vec3_distance(a0, b0);
    assert_true(fabs(change) < 1e-9 * size);
}

TEST(geometry_is_kept)
{
    gsl_rng *rng = rng_new(32, 0);
    for (int i = 0; i < 8000; i++) {
        tsr_closure q;
        placed own, p[TSR_MAX_CLOSURE];
        double size = make_problem(rng, i % 4, &q, &own);
        int n = solve(&q, p);
        for (int k = 0; k < n; k++) {
            double(*x)[3] = p[k].x;
            const double *one[4] = {q.ca_a, x[0], x[1], x[2]};
            const double *two[4] = {x[2], x[3], x[4], q.ca_c};
            for (int a = 0; a < 4; a++)
                for (int b = 0; b < a; b++) {
                    assert_same_pair(one[a], one[b], q.piece1[a], q.piece1[b],
                                     size);
                    assert_same_pair(two[a], two[b], q.piece2[a], q.piece2[b],
                                     size);
                }
            double angle[3] = {tsr_vec3_angle(q.n_a, q.ca_a, x[0]),
                               tsr_vec3_angle(x[1], x[2], x[3]),
                               tsr_vec3_angle(x[4], q.ca_c, q.c_c)};
            for (int a = 0; a < 3; a++)
                assert_near(angle[a], q.angle[a], 1e-9);
            assert_same_pair(one[0], one[3], q.piece1[0], q.piece1[3], size);
            /* hands too: a mirror image keeps distances */
            double turn = tsr_vec3_torsion(one[0], one[1], one[2], one[3]);
            double was = tsr_vec3_torsion(q.piece1[0], q.piece1[1], q.piece1[2],
                                          q.piece1[3]);
            assert_true(fabs(sin(turn - was)) < 1e-6 && cos(turn - was) > 0.0);
        }
        for (int k = 0; k < n; k++)
            for (int l = 0; l < k; l++)
                assert_true(apart(&p[k], &p[l]) > 1e-9 * size);
    }
}

/* The scan sees a pair of solutions only where its steps are fine enough, so
 * where it has fewer it looks again. Returns how many solutions differ, which
 * must be one of two closer than 1e-5, or of two that may be none. */
static int compare_with_scan(const tsr_closure *q, double size)
{
    placed p[TSR_MAX_CLOSURE];
    scan_result r;
    int n = solve(q, p), close = 0;
    scan(q, 1500, &r);
    for (int finer = 8000; r.n < n && finer <= 1000000; finer *= 5)
        scan(q, finer, &r);
    for (int k = 0; k < r.n; k++)
        if (nearest(&r.at[k], n, p) > 1e-6 * size) {
            int twin = r.doubtful > 0;
            for (int l = 0; l < r.n; l++)
                twin += l != k && apart(&r.at[l], &r.at[k]) < 1e-5 * size;
            if (!twin)
                fail_msg("the scan found %d, closure %d", r.n, n);
            close++;
        }
    for (int k = 0; k < n; k++)
        if (nearest(&p[k], r.n, r.at) > 1e-6 * size) {
            int twin = r.doubtful > 0;
            for (int l = 0; l < n; l++)
                twin += l != k && apart(&p[l], &p[k]) < 1e-5 * size;
            if (!twin)
                fail_msg("closure found %d, the scan %d", n, r.n);
            close++;
        }
    return close;
}

TEST(same_as_scan)
{
    gsl_rng *rng = rng_new(33, 0);
    int n_close = 0, n_many = 0;
    for (int i = 0; i < 350; i++) {
        tsr_closure q;
        placed own, p[TSR_MAX_CLOSURE];
        double size = make_problem(rng, i % 3, &q, &own);
        if (i >= 275) /* those with many solutions */
            while (solve(&q, p) < 8)
                size = make_problem(rng, i % 3, &q, &own);
        n_many += solve(&q, p) >= 8;
        n_close += compare_with_scan(&q, size);
    }
    assert_true(n_many > 75);
    assert_true(n_close <= 1);
}

static void bend(const tsr_closure *q, const double by[3], double f,
                 tsr_closure *out)
{
    *out = *q;
    for (int d = 0; d < 3; d++)
        out->ca_c[d] += f * by[d], out->c_c[d] += f * by[d];
}

/* Draws the outgoing end away until solutions vanish, two at a time; close to
 * there the two are nearly one. */
TEST(nearly_double)
{
    gsl_rng *rng = rng_new(34, 0);
    int n_pair = 0, n_close = 0;
    for (int i = 0; i < 150; i++) {
        tsr_closure q, at;
        placed own, p[TSR_MAX_CLOSURE];
        double by[3], low = 0.0, high = 1.0;
        double size = make_problem(rng, i % 3, &q, &own);
        for (int d = 0; d < 3; d++)
            by[d] = flat(rng, -1.0, 1.0);
        int n = solve(&q, p);
        bend(&q, by, high, &at);
        if (solve(&at, p) >= n)
            continue;
        double width = pow(10.0, flat(rng, -10.0, -2.0));
        while (high - low > width) {
            bend(&q, by, 0.5 * (low + high), &at);
            if (solve(&at, p) >= n)
                low = 0.5 * (low + high);
            else
                high = 0.5 * (low + high);
        }
        bend(&q, by, low, &at);
        n = solve(&at, p);
        assert_int_equal(n % 2, 0);
        n_close += compare_with_scan(&at, size);
        bend(&q, by, high, &at);
        n_close += compare_with_scan(&at, size);
        n_pair++;
    }
    print_message("%d of %d differ\n", n_close, 2 * n_pair);
    assert_true(n_pair > 50);
    assert_true(n_close <= n_pair / 20);
}

TEST(moves_with_the_input)
{
    gsl_rng *rng = rng_new(35, 0);
    for (int i = 0; i < 3000; i++) {
        tsr_closure q;
        tsr_motion m, m1, m2;
        placed own, p[TSR_MAX_CLOSURE], moved[TSR_MAX_CLOSURE];
        make_problem(rng, i % 3, &q, &own);
        int n = solve(&q, p);
        random_motion(rng, &m);
        random_motion(rng, &m1);
        random_motion(rng, &m2);
        double *outer[4] = {q.n_a, q.ca_a, q.ca_c, q.c_c};
        for (int k = 0; k < 4; k++) {
            tsr_motion_apply(&m, outer[k]);
            tsr_motion_apply(&m1, q.piece1[k]);
            tsr_motion_apply(&m2, q.piece2[k]);
        }
        assert_int_equal(solve(&q, moved), n);
        for (int k = 0; k < n; k++) {
            for (int a = 0; a < 5; a++)
                tsr_motion_apply(&m, p[k].x[a]);
            assert_true(nearest(&p[k], n, moved) < 1e-6);
        }
    }
}

/* d(frame) / d(torsion): displacement of a point and turn of the frame that
 * come after all axes, by central differences. */
static double numeric_log_det(double axis[6][2][3], const double point[3])
{
    const double h = 1e-4;
    double m[36];
    for (int k = 0; k < 6; k++) {
        double x[2][4][3]; /* the point and three unit vectors from it */
        for (int side = 0; side < 2; side++) {
            tsr_motion turn;
            tsr_motion_about(&turn, axis[k][0], axis[k][1], side ? h : -h);
            for (int a = 0; a < 4; a++) {
                for (int d = 0; d < 3; d++)
                    x[side][a][d] = point[d] + (a == d + 1);
                tsr_motion_apply(&turn, x[side][a]);
            }
        }
        double d[4][3];
        for (int a = 0; a < 4; a++)
            for (int i = 0; i < 3; i++)
                d[a][i] = (x[1][a][i] - x[0][a][i]) / (2.0 * h);
        for (int i = 0; i < 3; i++)
            m[6 * i + k] = d[0][i];
        /* omega x e_1 etc. */
        m[18 + k] = d[2][2] - d[0][2];
        m[24 + k] = d[3][0] - d[0][0];
        m[30 + k] = d[1][1] - d[0][1];
    }
    int sign;
    gsl_matrix_view view = gsl_matrix_view_array(m, 6, 6);
    gsl_permutation *order = gsl_permutation_alloc(6);
    gsl_linalg_LU_decomp(&view.matrix, order, &sign);
    gsl_permutation_free(order);
    return gsl_linalg_LU_lndet(&view.matrix);
}

TEST(jacobian)
{
    gsl_rng *rng = rng_new(36, 0);
    for (int i = 0; i < 500; i++) {
        double axis[6][2][3], point[3], *x = &axis[0][0][0];
        for (int k = 0; k < 36; k++)
            x[k] = flat(rng, -4.0, 4.0);
        for (int d = 0; d < 3; d++)
            point[d] = flat(rng, -9.0, 9.0);
        double exact = tsr_closure_log_det(axis);
        assert_near(exact, numeric_log_det(axis, point), 1e-5);
    }
    double axis[6][2][3] = {{{0}}}; /* all meet in one point */
    for (int k = 0; k < 6; k++)
        axis[k][1][0] = k + 1.0, axis[k][1][1] = k * k, axis[k][1][2] = 3.0;
    assert_true(isinf(tsr_closure_log_det(axis)));
    memcpy(axis[1], axis[0], sizeof axis[1]);
    assert_true(isinf(tsr_closure_log_det(axis)));
}

static void assert_sound(const tsr_closure *q)
{
    tsr_closure_solution s[TSR_MAX_CLOSURE];
    int n = tsr_closure_solve(q, s);
    assert_in_range(n, 0, TSR_MAX_CLOSURE);
    for (int k = 0; k < n; k++)
        for (int i = 0; i < 3; i++) {
            assert_true(isfinite(s[k].piece1.shift[i]));
            assert_true(isfinite(s[k].piece2.shift[i]));
            assert_true(isfinite(s[k].piece1.rotation[i][0]));
        }
}

TEST(bad_input)
{
    gsl_rng *rng = rng_new(37, 0);
    for (int i = 0; i < 2000; i++) {
        tsr_closure q;
        tsr_closure_solution s[TSR_MAX_CLOSURE];
        placed own;
        make_problem(rng, i % 3, &q, &own);
        tsr_closure whole = q;
        for (int d = 0; d < 3; d++) /* out of reach */
            q.ca_c[d] += 100.0, q.c_c[d] += 100.0;
        assert_int_equal(tsr_closure_solve(&q, s), 0);
        q = whole;
        q.angle[i % 3] = (double)NAN;
        assert_int_equal(tsr_closure_solve(&q, s), 0);
        q = whole;
        q.piece1[i % 4][0] = i % 8 < 4 ? (double)INFINITY : (double)NAN;
        assert_int_equal(tsr_closure_solve(&q, s), 0);
        q = whole;
        memcpy(q.ca_c, q.ca_a, sizeof q.ca_c); /* no triangle */
        assert_int_equal(tsr_closure_solve(&q, s), 0);
        q = whole;
        memset(q.piece2, 0, sizeof q.piece2);
        assert_int_equal(tsr_closure_solve(&q, s), 0);
        for (int k = 0; k < 4; k++) /* a straight piece, then two, then all */
            for (int d = 0; d < 3; d++)
                whole.piece1[k][d] = d == 0 ? 1.3 * k : 0.0;
        assert_sound(&whole);
        memcpy(whole.piece2, whole.piece1, sizeof whole.piece2);
        assert_sound(&whole);
        for (int d = 0; d < 3; d++) {
            whole.n_a[d] = d == 0 ? -1.0 : 0.0;
            whole.ca_a[d] = 0.0;
            whole.ca_c[d] = d == 0 ? 7.0 : 0.0;
            whole.c_c[d] = d == 0 ? 8.0 : 0.0;
        }
        assert_sound(&whole);
        /* one atom of a piece in line with its axis: still closed */
        q.angle[0] = flat(rng, 0.0, TSR_PI) * (i % 5 > 0);
        assert_sound(&q);
    }
}

/* A polynomial that vanishes, and one with known roots. */
TEST(roots)
{
    tsr_root root[TSR_MAX_ROOT];
    double b[TSR_ROOT_DEGREE + 1] = {0};
    assert_int_equal(tsr_root_isolate(b, 1e-15, root), 0);
    for (int k = 0; k <= TSR_ROOT_DEGREE; k++) /* t - 0.3 */
        b[k] = (double)k / TSR_ROOT_DEGREE - 0.3;
    assert_int_equal(tsr_root_isolate(b, 1e-15, root), 1);
    assert_true(root[0].single);
    assert_near(tsr_root_refine(&root[0]), 0.3, 1e-12);
    gsl_rng *rng = rng_new(38, 0);
    for (int i = 0; i < 1000; i++) { /* 1e-16 noise: it comes to an end */
        for (int k = 0; k <= TSR_ROOT_DEGREE; k++)
            b[k] = flat(rng, -1e-16, 1e-16);
        int n = tsr_root_isolate(b, 1e-15, root);
        assert_in_range(n, 0, 1);
        n = tsr_root_isolate(b, 0.0, root);
        assert_in_range(n, 0, TSR_ROOT_DEGREE);
    }
}
