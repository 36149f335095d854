/* Clustering finds the number, the shares and the mirror images of domain
 * arrangements that the test planted. */
#include "analysis/arrangements.h"
#include "analysis/shape.h"
#include "run_frames.h"
#include "tests/test.h"

OWNED(tsr_arrangements)
OWNED(tsr_frames)

/* ---- groups by average linkage ---- */

static int groups_of(int n, const double *x, double threshold, int *group)
{
    double distance[36];
    for (int a = 0; a < n; a++)
        for (int b = 0; b < n; b++)
            distance[a * n + b] = fabs(x[a] - x[b]);
    return tsr_average_linkage(n, distance, threshold, group);
}

/* 0, 4 and 8 on a line: 8 is 6 from the first two on average, 4 from the nearer
 * and 8 from the farther of them. */
TEST(test_linkage)
{
    const double line[] = {0.0, 8.0, 4.0}, two[] = {50.0, 0.0, 1.0, 51.0, 2.5};
    int group[6];
    assert_int_equal(groups_of(3, line, 3.9, group), 3);
    assert_int_equal(groups_of(3, line, 5.9, group), 2);
    assert_int_equal(groups_of(3, line, 6.1, group), 1);
    assert_int_equal(groups_of(5, two, 10.0, group), 2);
    const int want[] = {1, 0, 0, 1, 0}; /* the larger one is the first */
    assert_memory_equal(group, want, sizeof want);
    assert_int_equal(groups_of(1, line, 1.0, group), 1);
}

/* ---- outlines ---- */

enum { N_BEAD = 40 };

/* A screw of beads about z, right-handed for turn > 0, that tapers. */
static void screw(double turn, double (*x)[3])
{
    for (int i = 0; i < N_BEAD; i++) {
        const double radius = 20.0 - 0.3 * i;
        x[i][0] = radius * cos(turn * i);
        x[i][1] = radius * sin(turn * i);
        x[i][2] = 1.5 * i;
    }
}

static double compare(double (*a)[3], double (*b)[3], int is_mirror)
{
    return tsr_discrepancy(N_BEAD, (const double(*)[3])a, N_BEAD,
                           (const double(*)[3])b, is_mirror);
}

TEST(test_discrepancy)
{
    double a[N_BEAD][3], b[N_BEAD][3], c[N_BEAD][3];
    const double from[3] = {7.0, -3.0, 2.0}, to[3] = {8.0, 2.0, -1.0};
    tsr_motion motion;
    screw(0.12, a);
    screw(0.12, b);
    screw(-0.12, c);
    tsr_motion_about(&motion, from, to, 2.2);
    for (int i = 0; i < N_BEAD; i++) {
        tsr_motion_apply(&motion, b[i]);
        tsr_motion_apply(&motion, c[i]);
    }
    assert_near(compare(a, b, 0), 0.0, 1e-6); /* moved as a whole */
    assert_near(compare(a, c, 1), 0.0, 1e-6); /* its mirror image */
    assert_true(compare(a, c, 0) > 0.5);
    assert_true(compare(a, b, 1) > 0.5);
    assert_true(isnan(tsr_discrepancy(3, (const double(*)[3])a, N_BEAD,
                                      (const double(*)[3])b, 0)));
}

/* ---- conformations ---- */

/* Three rods with loose residues between: the first is the longest and stays,
 * the others lie about it. */
enum { N_ROD = 3, ROD = 24, FIRST = 30, LOOSE = 4, N_CHAIN = 2, N_DRAW = 50 };
enum { N_RESIDUE = FIRST + 2 * (LOOSE + ROD) };

/* Which residues a rod has. */
static int begin_of(int rod)
{
    return rod == 0 ? 0 : FIRST + (rod - 1) * (LOOSE + ROD) + LOOSE;
}

static int length_of(int rod)
{
    return rod == 0 ? FIRST : ROD;
}

/* Beads of a rod from `at` along `way`, in a zigzag. */
static void put_rod(int rod, const double at[3], const double way[3],
                    double (*x)[3])
{
    for (int i = 0; i < length_of(rod); i++)
        for (int d = 0; d < 3; d++)
            x[begin_of(rod) + i][d] = at[d] + 1.5 * i * way[d] +
                                      (i % 2) * (way[d] == 0.0 ? 0.4 : 0.0);
}

/* Arrangement 0; 1: its mirror image in the plane x = 0, in which the first rod
 * lies; 2: something else. `off` moves the second rod. */
static void place(int kind, double off, double (*x)[3])
{
    const double sign = kind == 1 ? -1.0 : 1.0;
    const double at[N_ROD][3] = {{0.0, 0.0, -20.0},
                                 {sign * (12.0 + off), 0.0, 20.0},
                                 {sign * 12.0, kind == 2 ? 80.0 : 30.0, -5.0}};
    const double way[N_ROD][3] = {
        {0.0, 0.0, 1.0}, {sign, 0.0, 0.0}, {0.0, kind == 2 ? -1.0 : 1.0, 0.0}};
    for (int r = 0; r < N_RESIDUE; r++) { /* those between the rods */
        x[r][0] = 3.0 * (r % 7) + 5.0 * off;
        x[r][1] = 3.0 * (r % 5) - 7.0 * off;
        x[r][2] = 2.0 * (r % 3) + 4.0 * off * (r % 2);
    }
    for (int rod = 0; rod < N_ROD; rod++)
        put_rod(rod, at[rod], way[rod], x);
}

/* Half of the draws are of arrangement 0, three tenths of 1. */
static int kind_of(int draw)
{
    return draw % 10 < 5 ? 0 : draw % 10 < 8 ? 1 : 2;
}

static double off_of(int draw)
{
    return draw % 2 == 0 ? 1.0 : -1.0;
}

static void put_draw(const void *context, int chain, int state, int draw,
                     gsl_rng *rng, double (*x)[3])
{
    const int apart = *(const int *)context;
    (void)state;
    place(apart ? chain % 2 : kind_of(draw), off_of(draw), x);
    run_tumble(rng, N_RESIDUE, x);
}

/* apart: each chain in an arrangement of its own. */
static tsr_frames *make_frames(int apart)
{
    double x[N_RESIDUE][3];
    place(0, 0.0, x);
    run_model(N_RESIDUE, (const double(*)[3])x);
    return run_frames(N_CHAIN, 1, N_RESIDUE, N_DRAW, 1, put_draw, &apart);
}

TEST(test_arrangements)
{
    double chi2[N_CHAIN][N_DRAW];
    double rg[N_CHAIN][N_DRAW];
    const tsr_draw_values values = {N_CHAIN, N_DRAW, 0, chi2[0], rg[0]};
    FREED(tsr_frames) frames = make_frames(0);
    tsr_arrangements *a;
    for (int c = 0; c < N_CHAIN; c++)
        for (int k = 0; k < N_DRAW; k++)
            chi2[c][k] = 1.0 + kind_of(k), rg[c][k] = 20.0 + kind_of(k);
    OK(tsr_arrangements_make(frames, -1, 10.0, &values, &a, &err));
    assert_non_null(a);
    assert_int_equal(a->domains->n_domain, N_ROD);
    assert_int_equal(a->fixed, 0); /* the largest */
    assert_ints(a->n_frame, N_CHAIN * N_DRAW, a->n_state, 1, a->n_group[0], 3);
    assert_int_equal(a->n_main[0], 3); /* two hold 80 % only */
    assert_ints(a->n, 3, a->n_seen[0], a->n_frame);
    assert_near(a->overlap[0], 1.0, 1e-12);
    const double share[] = {0.5, 0.3, 0.2};
    for (int i = 0; i < 3; i++) {
        assert_nears(1e-12, a->item[i].share, share[i], a->item[i].half[0],
                     share[i], a->item[i].half[1], share[i], a->item[i].chi2,
                     1.0 + i);
        assert_int_equal(kind_of((int)a->item[i].draw), i);
        assert_true(a->item[i].spread > 0.1 && a->item[i].spread < 3.0);
        assert_nears(1e-12, a->item[i].rg, 20.0 + i, a->item[i].error, 0.0);
        assert_int_equal(a->item[i].contact.n_residue, 0); /* one chain */
    }
    assert_true(a->item[0].from_start < 3.0 && a->item[1].from_start > 15.0);
    assert_int_equal(a->item[1].mirror_of, 0);
    assert_true(a->item[1].discrepancy < 0.5);
    assert_ints(a->item[0].mirror_of, -1, a->item[2].mirror_of, -1,
                a->item[2].alike, -1);
    /* the third rod is at x = 12 in 7 draws of 10 and at -12 in the others,
     * which makes sqrt(0.21) 24 of its distance from its mean place */
    assert_near(a->displacement[0], 0.0, 1e-3);
    assert_true(a->displacement[2] > sqrt(0.21) * 24.0 &&
                a->displacement[2] < 30.0);
    tsr_arrangements_free(a);

    /* with a wide threshold there is one, and a domain that is not there */
    OK(tsr_arrangements_make(frames, 1, 1000.0, NULL, &a, &err));
    assert_ints(a->n_group[0], 1, a->fixed, 1);
    assert_near(a->displacement[1], 0.0, 1e-3);
    assert_true(isnan(a->item[0].chi2));
    tsr_arrangements_free(a);
    assert_int_equal(tsr_arrangements_make(frames, 3, 10.0, NULL, &a, &err),
                     TSR_E_USAGE);
    assert_null(a);
}

/* Halves of the chains that have nothing in common. */
TEST(test_halves)
{
    FREED(tsr_frames) frames = make_frames(1);
    FREED(tsr_arrangements) a;
    OK(tsr_arrangements_make(frames, -1, 10.0, NULL, &a, &err));
    assert_int_equal(a->n_group[0], 2);
    assert_near(a->overlap[0], 0.0, 1e-12);
    const int first = a->item[0].half[0] < 0.5;
    assert_nears(1e-12, a->item[first].half[0], 1.0, a->item[first].half[1],
                 0.0, a->item[1 - first].half[1], 1.0, a->item[0].error, 0.5);
}

static test_fixture around_each = {io_setup, io_teardown};
