/* Chains and threads are divided among devices in proportion, without losing
 * any. */
#include "sampler/sampler.h"
#include "tests/test.h"

enum { MAX = 5 };

typedef struct {
    int total, n;
    double weight[MAX];
    int part[MAX];
} division;

TEST(known_divisions)
{
    static const division known[] = {
        {8, 1, {3.5}, {8}},
        {8, 2, {1.0, 1.0}, {4, 4}},
        {9, 2, {1.0, 1.0}, {5, 4}}, /* of equal remainders the first */
        {8, 2, {3.0, 1.0}, {6, 2}},
        {10, 3, {5.0, 3.0, 2.4}, {5, 3, 2}},
        {7, 3, {1.0, 2.0, 4.0}, {1, 2, 4}},
        /* 1.49, 2.49, 6.02: the largest remainder, not rounding */
        {10, 3, {0.1486, 0.2494, 0.602}, {1, 3, 6}},
        {100, 2, {1000.0, 1.0}, {99, 1}}, /* at least one */
        {4, 4, {1e6, 1.0, 1.0, 1.0}, {1, 1, 1, 1}},
        {6, 3, {0.0, 1.0, 0.0}, {1, 4, 1}},
        {2, 3, {1.0, 3.0, 2.0}, {0, 1, 1}}, /* not enough for all */
        {1, 2, {1.0, 1.0}, {1, 0}},
        {4, 2, {0.0, 0.0}, {2, 2}},
        {4, 2, {(double)NAN, 1.0}, {1, 3}},
    };
    for (size_t k = 0; k < COUNT_OF(known); k++) {
        int part[MAX];
        tsr_apportion(known[k].total, known[k].n, known[k].weight, part);
        for (int i = 0; i < known[k].n; i++)
            if (part[i] != known[k].part[i])
                fail_msg("division %zu: part %d is %d, expected %d", k, i,
                         part[i], known[k].part[i]);
    }
}

/* All is dealt, none is left without where there is enough, and where nobody
 * had to be helped to his one, each part is within 1 of its proportion. */
TEST(laws)
{
    for (int a = 1; a < 40; a += 3)
        for (int b = 1; b < 40; b += 5)
            for (int total = 0; total < 60; total++) {
                const double weight[3] = {a, b, 7.3};
                double sum = a + b + 7.3;
                int part[3], helped = 0;
                tsr_apportion(total, 3, weight, part);
                assert_int_equal(part[0] + part[1] + part[2], total);
                for (int i = 0; i < 3; i++)
                    helped |= total * weight[i] / sum < 1.0;
                for (int i = 0; i < 3; i++) {
                    assert_true(part[i] >= (total >= 3));
                    if (!helped)
                        assert_near(part[i], total * weight[i] / sum, 1.0);
                }
            }
}

/* Threads are divided in proportion to chains: never more than chains. */
TEST(no_more_threads_than_chains)
{
    for (int a = 1; a < 12; a++)
        for (int b = 1; b < 12; b++)
            for (int total = 2; total <= a + b; total++) {
                int part[2];
                tsr_apportion(total, 2, (const double[]){a, b}, part);
                assert_true(part[0] <= a && part[1] <= b);
            }
}
