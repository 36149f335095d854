/* The generator gives the published numbers of Random123, and streams are
 * independent. */
#include "tests/test.h"

/* Known answers of Random123's own test vectors (Salmon et al. 2011):
 * philox4x32-10 with counter 0, key 0, and with all bits set. */
TEST(known_answers)
{
    static const uint32_t zero[4] = {0x6627e8d5, 0xe169c58d, 0xbc57ac4c,
                                     0x9b00dbd8};
    static const uint32_t ones[4] = {0x408f276d, 0x41c83b0e, 0xa20bc7c6,
                                     0x6d5451fd};
    gsl_rng *rng = rng_new(0, 0);
    for (int i = 0; i < 4; i++)
        assert_int_equal(gsl_rng_get(rng), zero[i]);
    const uint64_t word[4] = {UINT64_MAX, UINT64_MAX, UINT64_MAX, 0};
    tsr_rng_restore(rng, word);
    for (int i = 0; i < 4; i++)
        assert_int_equal(gsl_rng_get(rng), ones[i]);
}

TEST(saved_streams_go_on)
{
    gsl_rng *a = rng_new(7, 3), *b = rng_new(1, 1);
    for (int skip = 0; skip < 9; skip++) {
        uint64_t word[TSR_RNG_WORDS];
        gsl_rng_get(a);
        tsr_rng_save(a, word);
        tsr_rng_restore(b, word);
        gsl_rng *c = gsl_rng_clone(a);
        for (int i = 0; i < 11; i++)
            assert_int_equal(gsl_rng_get(c), gsl_rng_get(b));
        gsl_rng_free(c);
    }
}

TEST(streams_differ)
{
    gsl_rng *rng[4] = {tsr_rng_new(1, 0), tsr_rng_new(1, 1), tsr_rng_new(2, 0),
                       tsr_rng_new(1, UINT64_C(1) << 40)};
    unsigned long first[4];
    for (int i = 0; i < 4; i++) {
        first[i] = gsl_rng_get(rng[i]);
        for (int j = 0; j < i; j++)
            assert_int_not_equal(first[i], first[j]);
    }
    for (int i = 0; i < 4; i++)
        gsl_rng_free(rng[i]);
}

/* Mean 1/2, variance 1/12 within 5 standard errors; all 53 bits used. */
TEST(uniform)
{
    enum { N = 200000 };
    gsl_rng *rng = rng_new(42, 0);
    double sum = 0.0, square = 0.0, low = 1.0;
    int all_atom = 0;
    for (int i = 0; i < N; i++) {
        double u = gsl_rng_uniform(rng);
        assert_true(u >= 0.0 && u < 1.0);
        sum += u, square += (u - 0.5) * (u - 0.5);
        low = u < low ? u : low;
        all_atom += u * 0x1p33 != (double)(int64_t)(u * 0x1p33);
    }
    assert_all(sum / N > 0.5 - 5 * 0.2887 / 447.2,
               sum / N<0.5 + 5 * 0.2887 / 447.2, square / N> 0.0833333 -
                   5 * 0.0745 / 447.2,
               square / N<0.0833333 + 5 * 0.0745 / 447.2, 1e-4> low,
               all_atom > N - N / 1000);
}
