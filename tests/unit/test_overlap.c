/* Overlaps of Gaussians: against a double sum, and what is kept up to date
 * against what is added up afresh. */
#include "maps/overlap.h"

#include "core/random.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

enum { N = 101, TYPES = TSR_OVERLAP_TYPES, PARTS = 3 };

typedef struct {
    double weight[TYPES], variance[TYPES];
    double share[PARTS], extra[PARTS];
    double xyz[2][N][3];
    unsigned char type[N + TSR_OVERLAP_BLOCK];
    float *place[2], *rows;
    int is_in[N + TSR_OVERLAP_BLOCK];
    tsr_overlap_kernel kernel;
} sample;

/* A walk, so that blocks are neighbours, through some 60 Angstrom. */
static void make(sample *s, gsl_rng *rng)
{
    *s = (sample){.share = {1.0, -0.4, 0.2}, .extra = {0.0, 3.0, 20.0}};
    for (int a = 0; a < TYPES; a++) {
        s->weight[a] = 3.0 + a;
        s->variance[a] = a == 7 ? 0.0 : 2.0 + 0.2 * a;
    }
    for (int i = 0; i < N + TSR_OVERLAP_BLOCK; i++)
        s->is_in[i] = -1;
    for (int i = 0; i < N; i++) {
        s->type[i] = (unsigned char)(i % TYPES == 7 ? 8 : i % TYPES);
        for (int k = 0; k < 2; k++)
            for (int c = 0; c < 3; c++)
                s->xyz[k][i][c] = (i > 0 ? s->xyz[k][i - 1][c] : 90.0 * k) +
                                  6.0 * (gsl_rng_uniform(rng) - 0.48);
    }
    for (int k = 0; k < 2; k++) {
        s->place[k] = calloc(tsr_overlap_room(N), sizeof(float));
        assert_non_null(s->place[k]);
        tsr_overlap_place(N, 0, N, (const double(*)[3])s->xyz[k], s->place[k]);
    }
    tsr_overlap_make(s->weight, s->variance, PARTS, s->share, s->extra, 2.0,
                     &s->kernel);
    s->rows = calloc(tsr_overlap_row_room(PARTS, N), sizeof(float));
    assert_non_null(s->rows);
    tsr_overlap_make_rows(&s->kernel, N, s->type, s->rows);
}

static void clear(sample *s)
{
    free(s->place[0]), free(s->place[1]);
    free(s->rows);
}

static double kernel(const sample *s, int i, int k, int j, int l)
{
    const int a = s->type[i], b = s->type[j];
    double d2 = 0.0, sum = 0.0;
    for (int c = 0; c < 3; c++)
        d2 += pow(s->xyz[k][i][c] - s->xyz[l][j][c], 2.0);
    for (int m = 0; m < PARTS; m++) {
        const double v = s->variance[a] + s->variance[b] + s->extra[m];
        sum += s->share[m] * exp(-0.5 * d2 / v) /
               pow(2.0 * 3.14159265358979 * v, 1.5);
    }
    return s->weight[a] * s->weight[b] * sum / 2.0;
}

static double all_pairs(const sample *s, int k, int l)
{
    double sum = 0.0;
    for (int i = 0; i < N; i++)
        for (int j = 0; j < N; j++)
            if (k != l || i != j)
                sum += kernel(s, i, k, j, l);
    return sum;
}

static int64_t own(sample *s, int n, const int *moved)
{
    return tsr_overlap_own(&s->kernel, N, s->type, s->rows, s->place[0], n,
                           moved, s->is_in);
}

static int64_t between(sample *s, int n, const int *moved)
{
    return tsr_overlap_between(&s->kernel, N, s->type, s->rows, s->place[0], n,
                               moved, s->place[1]);
}

/* Gaussians end at exp(-12.5), which is taken off all of them. */
static void near_part(int64_t had, double unit, double want)
{
    const double got = unit * (double)had;
    if (!(fabs(got - want) <= 1e-4 * fabs(want)))
        fail_msg("%.9g instead of %.9g", got, want);
}

static void sums(void **state)
{
    gsl_rng *rng = *state;
    int all[N];
    sample s;
    make(&s, rng);
    for (int i = 0; i < N; i++)
        all[i] = i;
    near_part(own(&s, N, all), s.kernel.unit, all_pairs(&s, 0, 0));
    for (int i = 0; i < N; i++) /* the other close enough to overlap */
        for (int c = 0; c < 3; c++)
            s.xyz[1][i][c] = s.xyz[0][(i + 3) % N][c] + 1.0;
    tsr_overlap_place(N, 0, N, (const double(*)[3])s.xyz[1], s.place[1]);
    near_part(between(&s, N, all), s.kernel.unit, 2.0 * all_pairs(&s, 0, 1));
    assert_true(fabs(tsr_overlap_self(&s.kernel, 5) - kernel(&s, 5, 0, 5, 0)) <
                1e-5 * kernel(&s, 5, 0, 5, 0));
    clear(&s);
}

/* Some bodies move: what their pairs had is taken off, what they have is added.
 */
static void kept_up_to_date(void **state)
{
    gsl_rng *rng = *state;
    int all[N], moved[N];
    sample s;
    make(&s, rng);
    for (int i = 0; i < N; i++)
        all[i] = i;
    int64_t sum = own(&s, N, all), with = between(&s, N, all);
    for (int round = 0; round < 200; round++) {
        int n = 0;
        const double share = gsl_rng_uniform(rng);
        for (int i = 0; i < N; i++)
            if (gsl_rng_uniform(rng) < share)
                moved[n++] = i;
        sum -= own(&s, n, moved);
        with -= between(&s, n, moved);
        for (int m = 0; m < n; m++) {
            for (int c = 0; c < 3; c++)
                s.xyz[0][moved[m]][c] += gsl_rng_uniform(rng) - 0.5;
            tsr_overlap_place(N, moved[m], 1, (const double(*)[3])s.xyz[0],
                              s.place[0]);
        }
        sum += own(&s, n, moved);
        with += between(&s, n, moved);
        assert_true(sum == own(&s, N, all));
        assert_true(with == between(&s, N, all));
    }
    clear(&s);
}

static int open_rng(void **state)
{
    *state = tsr_rng_new(1, 0);
    return *state == NULL;
}

static int close_rng(void **state)
{
    gsl_rng_free(*state);
    return 0;
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(sums),
        cmocka_unit_test(kept_up_to_date),
    };
    return cmocka_run_group_tests(tests, open_rng, close_rng);
}
