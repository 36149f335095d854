/* The prior of a configuration has the intended support: bounds on the size of
 * the molecule. */
#include "tests/setup_sample.h"
#include "tests/test.h"

#include <limits.h>

/* What is auto: little on a CPU; on a GPU as much as fills it and fits. */
TEST(settles)
{
    const tsr_number_or_word word = {0, 0.0};
    const struct {
        tsr_sampler_problem place;
        double chains, temperatures, t_max;
        int start;
    } expected[] = {
        {{1, 0, 16, 1, 0, 0, 0.0, 0.0, 0}, 16, 6, 20.0, TSR_START_PRIOR},
        {{1, 0, 2, 1, 0, 1, 0.0, 0.0, 0}, 4, 6, 20.0, TSR_START_PRIOR},
        {{1, 0, 8, 1, 0, 0, 0.0, 0.0, 1}, 8, 6, 20.0, TSR_START_FILE},
        {{1, 0, 2, 1, 0, 0, 0.0, 0.1, 0}, 4, 6, 5.0, TSR_START_FILE},
        {{1, 1, 16, 1, 0, 0, 1e6, 0.0, 0}, 128, 16, 1e6, TSR_START_PRIOR},
        {{1, 1, 16, 1, 0, 0, 1e6, 0.0, 1}, 128, 16, 1e6, TSR_START_PRIOR},
        {{1, 1, 16, 3, 0, 0, 1e6, 0.0, 0}, 64, 16, 1e6, TSR_START_PRIOR},
        {{1, 1, 16, 3, 0, 0, 1e6, 0.1, 0}, 64, 16, 5.0, TSR_START_FILE},
        {{1, 1, 16, 1, 0, 0, 500.0, 0.0, 0}, 31, 16, 1e6, TSR_START_PRIOR},
        {{1, 1, 16, 1, 0, 0, 60.0, 0.0, 0}, 10, 6, 20.0, TSR_START_PRIOR},
        {{1, 1, 16, 1, 1, 0, 1e6, 0.0, 0}, 32, 16, 1e6, TSR_START_PRIOR},
        {{1, 1, 16, 2, 1, 0, 1e6, 0.0, 0}, 32, 16, 1e6, TSR_START_PRIOR},
        {{1, 1, 16, 1, 1, 0, 100.0, 0.0, 0}, 6, 16, 1e6, TSR_START_PRIOR},
        {{0, 1, 16, 1, 0, 0, 0.0, 0.0, 0}, 16, 6, 20.0, TSR_START_FILE}};
    for (size_t k = 0; k < COUNT_OF(expected); k++) {
        tsr_sampler_options o =
            ROW(.chains = word, .temperatures = word, .t_max = word,
                .thin = word, .draws = {-1, 7.0});
        OK(tsr_sampler_resolve_auto(&o, &expected[k].place, &err));
        assert_true(o.chains.word < 0 && o.temperatures.word < 0);
        assert_true(o.chains.number == expected[k].chains);
        assert_true(tsr_sampler_thin(&o) ==
                    (expected[k].place.is_all_atom ? 100 : 10));
        assert_int_equal(o.start, expected[k].start);
        assert_true(o.temperatures.number == expected[k].temperatures);
        assert_true(o.t_max.word < 0 && o.t_max.number == expected[k].t_max);
    }
    /* what was asked for stays */
    tsr_sampler_options o = ROW(.chains = {-1, 3.0}, .temperatures = {-1, 5.0},
                                .t_max = word, .draws = {-1, 7.0});
    OK(tsr_sampler_resolve_auto(&o, &expected[4].place, &err));
    assert_true(o.chains.number == 3.0 && o.temperatures.number == 5.0);
    assert_true(o.t_max.number == 20.0); /* too few to reach the prior */
    assert_null(o.until); /* nor is an end put to draws that are numbered */
    o.draws = word;
    OK(tsr_sampler_resolve_auto(&o, &expected[4].place, &err));
    assert_true(o.draws.number == 66666.0); /* config.yaml shows it */
    assert_string_equal(o.until, tsr_sampler_until);
    free(o.until);
    o = (tsr_sampler_options){
        .chains = {-1, 500.0}, .draws = word, .until = strdup("ess>90")};
    OK(tsr_sampler_resolve_auto(&o, &expected[4].place, &err));
    assert_int_equal(tsr_sampler_draws(&o), 2000);
    assert_string_equal(o.until, "ess>90");
    free(o.until);
    /* fifteen replicas are no population */
    o = (tsr_sampler_options){.chains = {-1, 3.0},
                              .temperatures = {-1, 5.0},
                              .t_max = word,
                              .draws = {-1, 7.0}};
    OK(tsr_sampler_resolve_auto(&o, &expected[0].place, &err));
    assert_int_equal(o.start, TSR_START_FILE);
}

/* P(X) is the same with the data and without, wherever those end. */
TEST(bound_without_data)
{
    static const char folder[] = "../shared/data/saxs/lysozyme_6lyz";
    if (access(folder, R_OK) != 0) {
        print_message("%s is absent\n", folder);
        skip();
    }
    static const char text[] =
        "structure: {file: ../shared/data/saxs/lysozyme_6lyz/model.pdb}\n"
        "data: [{file: ../shared/data/saxs/lysozyme_6lyz/exp.dat,\n"
        "  q_range: [0, 0.5]}]\n";
    sample with, without;
    read_sample(&with, 1, 0, NULL, text);
    read_sample(&without, 0, 0, NULL, text);
    assert_true(with.s.molecule.d_bound_ang == without.s.molecule.d_bound_ang);
}

/* Beyond d_max the q grid does not hold, so P(X) is 0 there: moves that would
 * go beyond are rejected, and the run goes on. */
TEST(never_beyond_the_bound)
{
    enum { STEPS = 300000 };
    sample f;
    tsr_chain *chain;
    tsr_chain_view view;
    tsr_body_proposal ask;
    int accepted, near = 0;
    read_sample(&f, 0, 0, NULL,
                "structure: {sequence: WGGPGGY, d_max: 23}\n"
                "prior: {clash: none}\n");
    OK(tsr_chain_new(&f.s.target, 0, &chain, &err));
    for (int i = 0; i < STEPS; i++) {
        tsr_chain_propose(chain, &ask);
        OK(tsr_chain_decide(chain, NULL, 0, &accepted, &err));
        if (!accepted)
            continue;
        tsr_chain_view_get(chain, &view);
        assert_true(view.d_max_ang <= f.s.molecule.d_bound_ang);
        near += view.d_max_ang > 0.97 * f.s.molecule.d_bound_ang;
    }
    assert_true(near > 0);
    tsr_chain_free(chain);
}

/* A chain that no engine serves, as that of simulate, may have any number. */
TEST(largest_number)
{
    sample f;
    tsr_chain *chain;
    read_sample(&f, 0, 0, NULL, "structure: {sequence: WGGPGGY, states: 2}\n");
    OK(tsr_chain_new(&f.s.target, INT_MAX, &chain, &err));
    assert_in_range(tsr_chain_system(chain), 0, 1);
    tsr_chain_free(chain);
}
