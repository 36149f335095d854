/* Tables of draw weights are read or refused, and resampling draws each
 * structure in proportion to its weight. */
#include "analysis/export.h"
#include "tests/io_files.h"
#include "tests/test.h"

static const char head[] = "chain,draw,weight,log_weight\n";

static tsr_status read_text(const char *text, tsr_draw_weights *out)
{
    const char *all = format("%s%s", head, text);
    return tsr_draw_weights_read(io_text("weights.csv", all), out, &err);
}

TEST(test_table)
{
    CLEARED(tsr_draw_weights) w;
    OK(read_text("0,0,1,0\n1,2,2.5e-1,-1.4\r\n1,0,0,\n0,5,0.75\n", &w));
    assert_ints(w.n_chain, 2, w.n_draw, 6);
    assert_true(tsr_draw_weights_at(&w, 0, 0) == 0.5);
    assert_true(tsr_draw_weights_at(&w, 1, 2) == 0.125);
    assert_true(tsr_draw_weights_at(&w, 0, 5) == 0.375);
    assert_true(tsr_draw_weights_at(&w, 1, 0) == 0.0);
    assert_true(tsr_draw_weights_at(&w, 1, 1) == 0.0);
    assert_true(tsr_draw_weights_at(&w, 2, 0) == 0.0);
    assert_true(tsr_draw_weights_at(&w, 0, 6) == 0.0);
}

TEST(test_bad_tables)
{
    static const struct {
        const char *text, *says;
    } bad[] = {{"0,0,-1\n", "line 2: expected chain"},
               {"0,0,1\n0,1,nan\n", "line 3: expected chain"},
               {"0,0\n", "line 2"},
               {"0,-1,1\n", "line 2"},
               {"0,0,1x\n", "line 2"},
               {"\n", "line 2"},
               {"0,0,0\n1,0,0\n", "the sum of the weights is 0"},
               {"", "the sum of the weights is 0"},
               {"0,0,1\n0,0,1\n", "chain 0, draw 0 twice"},
               {"99999,2000000000,1\n", "only 1 of 100000 x"}};
    tsr_draw_weights w;
    for (size_t i = 0; i < COUNT_OF(bad); i++) {
        FAILS(read_text(bad[i].text, &w), TSR_E_DATA, bad[i].says);
        assert_null(w.weight);
    }
    FAILS(tsr_draw_weights_read(io_text("other.csv", "q,I,sigma\n1,2,3\n"), &w,
                                &err),
          TSR_E_DATA, "begins with 'q,I,sigma'");
    assert_int_equal(tsr_draw_weights_read("/no/such/file", &w, &err),
                     TSR_E_NOINPUT);
}

/* Each comes as often as its share of the count, up to less than one. */
TEST(test_in_proportion)
{
    enum { N = 200, COUNT = 137 };
    double weight[N], sum = 0.0;
    int pick[COUNT], times[N] = {0};
    for (int i = 0; i < N; i++) {
        weight[i] = i % 3 == 0 ? 0.0 : exp(4.0 * sin(7.0 * i));
        sum += weight[i];
    }
    assert_true(tsr_weighted_pick(N, weight, COUNT, pick));
    for (int k = 0; k < COUNT; k++) {
        assert_true(k == 0 || pick[k] >= pick[k - 1]);
        times[pick[k]]++;
    }
    for (int i = 0; i < N; i++) {
        assert_near(times[i], COUNT * weight[i] / sum, 1.0);
        assert_true(weight[i] > 0.0 || times[i] == 0);
    }
}

TEST(test_pick_ends)
{
    const double one[4] = {0.0, 3.0, 0.0, 0.0}, none[2] = {0.0, 0.0};
    const double even[4] = {1.0, 1.0, 1.0, 1.0};
    int pick[8];
    assert_true(tsr_weighted_pick(4, one, 3, pick));
    assert_true(pick[0] == 1 && pick[1] == 1 && pick[2] == 1);
    assert_true(tsr_weighted_pick(4, even, 2, pick));
    assert_true(pick[0] == 0 && pick[1] == 2);
    assert_true(tsr_weighted_pick(4, even, 8, pick));
    for (int k = 0; k < 8; k++)
        assert_int_equal(pick[k], k / 2);
    assert_false(tsr_weighted_pick(2, none, 1, pick));
}
