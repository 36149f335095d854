/* The sphere tree finds exactly the pairs of bodies in contact, compared with
 * all pairs. */
#include "core/vec3.h"
#include "prior/clash.h"
#include "tests/test.h"

enum { MOST = 5000 };

/* A random walk: neighbours in the chain are neighbours in space. */
static void walk(gsl_rng *rng, int n, double (*x)[3])
{
    double at[3] = {100.0, -50.0, 3000.0};
    for (int i = 0; i < n; i++)
        for (int d = 0; d < 3; d++) {
            at[d] += 5.0 * gsl_rng_uniform(rng) - 2.5;
            x[i][d] = at[d];
        }
}

static int is_frozen(const uint16_t *still, int b)
{
    return still[b / TSR_LANES] >> b % TSR_LANES & 1;
}

/* Bodies first..end-1 of y, one block of them, against those of x. */
static int count_near(const double (*x)[3], const double (*y)[3], int n,
                      int first, int end, const uint16_t *still, double reach,
                      char *is_pair)
{
    int count = 0;
    memset(is_pair, 0, (size_t)TSR_LANES * (size_t)n);
    for (int a = first; a < end; a++)
        for (int b = 0; b < n; b++)
            if (is_frozen(still, b) &&
                tsr_vec3_distance2(y[a], x[b]) < reach * reach) {
                is_pair[a % TSR_LANES * n + b] = 1;
                count++;
            }
    return count;
}

static void expect_pairs(int n, int found, int count, const tsr_body_pair *pair,
                         char *is_pair)
{
    assert_int_equal(found, count);
    for (int k = 0; k < found; k++) {
        char *is = &is_pair[pair[k].a * n + pair[k].b];
        assert_int_equal(*is, 1);
        *is = 0; /* once */
    }
}

static int look(gsl_rng *rng, int n)
{
    double(*x)[3] = array((size_t)n, sizeof *x);
    double(*y)[3] = array((size_t)n, sizeof *y);
    tsr_body_pair *pair = array(16 * (size_t)n + 256, sizeof *pair);
    char *is_pair = array(TSR_LANES * (size_t)n, 1);
    uint16_t still[MOST / TSR_LANES + 1];
    const double reach = 6.5;
    int seen = 0;
    walk(rng, n, x);
    walk(rng, n, y);
    tsr_pool pool = {0};
    tsr_sphere_tree *tree =
        tsr_sphere_tree_new(&pool, n, (const double(*)[3])y);
    assert_non_null(tree);
    for (int k = 0; k < tree->n_block; k++) {
        int end = (k + 1) * TSR_LANES;
        tsr_body_block_set(&tree->block[k], (const double(*)[3])x,
                           k * TSR_LANES, end < n ? end : n);
    }
    tsr_sphere_tree_update(tree, 0, tree->n_block - 1);
    for (int k = 0; k < tree->n_block; k++) {
        int r = (int)gsl_rng_uniform_int(rng, 0x20000);
        still[k] = (uint16_t)(r & 0x10000 ? 0xffff : r);
    }
    for (int first = 0; first < n;) {
        tsr_body_block own, other;
        int base = first / TSR_LANES * TSR_LANES, end = base + TSR_LANES;
        end = end < n ? end : n;
        int stop = first + 1 +
                   (int)gsl_rng_uniform_int(rng, (unsigned long)(end - first));
        tsr_body_block_set(&own, (const double(*)[3])y, first, stop);
        assert_int_equal(own.first, base);
        int found = tsr_sphere_tree_pairs(tree, &own, still, reach, pair);
        int count = count_near((const double(*)[3])x, (const double(*)[3])y, n,
                               first, stop, still, reach, is_pair);
        expect_pairs(n, found, count, pair, is_pair);
        seen += found;
        int from = (int)gsl_rng_uniform_int(rng, (unsigned long)n);
        int to = (from / TSR_LANES + 1) * TSR_LANES;
        to = to < n ? to : n;
        uint16_t only[MOST / TSR_LANES + 1] = {0};
        for (int b = from; b < to; b++)
            only[b / TSR_LANES] |= (uint16_t)(1u << b % TSR_LANES);
        tsr_body_block_set(&other, (const double(*)[3])x, from, to);
        found = tsr_body_block_pairs(&own, &other, reach, pair);
        count = count_near((const double(*)[3])x, (const double(*)[3])y, n,
                           first, stop, only, reach, is_pair);
        expect_pairs(n, found, count, pair, is_pair);
        first = stop;
    }
    tsr_pool_clear(&pool);
    return seen;
}

TEST(all_that_is_near)
{
    const int size[] = {1, 15, 16, 17, 255, 257, 1000, MOST};
    gsl_rng *rng = rng_new(7, 1);
    int seen = 0;
    for (size_t i = 0; i < COUNT_OF(size); i++)
        seen += look(rng, size[i]);
    assert_true(seen > 1000);
}
