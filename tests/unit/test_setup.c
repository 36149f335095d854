/* From a configuration to a target: what the prior's support is. */
#include "posterior/setup.h"

#include <limits.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

typedef struct {
    tsr_config config;
    tsr_setup setup;
} fixture;

static void open_fixture(fixture *f, const char *text, int with_data)
{
    tsr_err err = {0};
    char path[] = "/tmp/tsr-setup-XXXXXX";
    int fd = mkstemp(path);
    assert_true(fd >= 0);
    FILE *file = fdopen(fd, "w");
    assert_non_null(file);
    fputs(text, file);
    fclose(file);
    if (tsr_config_read(path, 0, NULL, &f->config, &err) != TSR_OK ||
        tsr_setup_read(&f->config, with_data, NULL, &f->setup, &err) != TSR_OK)
        fail_msg("%s", err.message);
    unlink(path);
}

static void close_fixture(fixture *f)
{
    tsr_setup_clear(&f->setup);
    tsr_config_clear(&f->config);
}

/* What is auto: little on a CPU; on a GPU as much as fills it and fits. */
static void settles(void **state)
{
    (void)state;
    const tsr_number_or_word word = {0, 0.0};
    const struct {
        tsr_sampler_place place;
        double chains, temperatures, t_max;
        int start;
    } expected[] = {
        {{1, 0, 16, 1, 0, 0.0, 0.0, 0}, 4, 6, 20.0, TSR_START_PRIOR},
        {{1, 0, 16, 1, 0, 0.0, 0.0, 1}, 4, 6, 20.0, TSR_START_FILE},
        {{1, 0, 2, 1, 0, 0.0, 0.1, 0}, 4, 6, 5.0, TSR_START_FILE},
        {{1, 1, 16, 1, 0, 1e6, 0.0, 0}, 128, 16, 1e6, TSR_START_PRIOR},
        {{1, 1, 16, 1, 0, 1e6, 0.0, 1}, 128, 16, 1e6, TSR_START_PRIOR},
        {{1, 1, 16, 3, 0, 1e6, 0.0, 0}, 64, 16, 1e6, TSR_START_PRIOR},
        {{1, 1, 16, 3, 0, 1e6, 0.1, 0}, 64, 16, 5.0, TSR_START_FILE},
        {{1, 1, 16, 1, 0, 500.0, 0.0, 0}, 31, 16, 1e6, TSR_START_PRIOR},
        {{1, 1, 16, 1, 0, 60.0, 0.0, 0}, 10, 6, 20.0, TSR_START_PRIOR},
        {{1, 1, 16, 1, 1, 1e6, 0.0, 0}, 16, 16, 1e6, TSR_START_PRIOR},
        {{1, 1, 16, 2, 1, 1e6, 0.0, 0}, 16, 16, 1e6, TSR_START_PRIOR},
        {{1, 1, 16, 1, 1, 100.0, 0.0, 0}, 6, 16, 1e6, TSR_START_PRIOR},
        {{0, 1, 16, 1, 0, 0.0, 0.0, 0}, 4, 6, 20.0, TSR_START_FILE}};
    for (size_t k = 0; k < sizeof expected / sizeof *expected; k++) {
        tsr_sampler_options o = {.chains = word,
                                 .temperatures = word,
                                 .t_max = word,
                                 .thin = word,
                                 .draws = {-1, 7.0}};
        assert_int_equal(tsr_sampler_settle(&o, &expected[k].place, NULL),
                         TSR_OK);
        assert_true(o.chains.word < 0 && o.temperatures.word < 0);
        assert_true(o.chains.number == expected[k].chains);
        assert_true(tsr_sampler_thin(&o) == 10);
        assert_int_equal(o.start, expected[k].start);
        assert_true(o.temperatures.number == expected[k].temperatures);
        assert_true(o.t_max.word < 0 && o.t_max.number == expected[k].t_max);
    }
    /* what was asked for stays */
    tsr_sampler_options o = {.chains = {-1, 3.0},
                             .temperatures = {-1, 5.0},
                             .t_max = word,
                             .draws = {-1, 7.0}};
    assert_int_equal(tsr_sampler_settle(&o, &expected[3].place, NULL), TSR_OK);
    assert_true(o.chains.number == 3.0 && o.temperatures.number == 5.0);
    assert_true(o.t_max.number == 20.0); /* too few to reach the prior */
    assert_null(o.until); /* nor is an end put to draws that are numbered */
    o.draws = word;
    assert_int_equal(tsr_sampler_settle(&o, &expected[3].place, NULL), TSR_OK);
    assert_true(o.draws.number == 66666.0); /* config.yaml shows it */
    assert_string_equal(o.until, tsr_sampler_until);
    free(o.until);
    o = (tsr_sampler_options){
        .chains = {-1, 500.0}, .draws = word, .until = strdup("ess>90")};
    assert_int_equal(tsr_sampler_settle(&o, &expected[3].place, NULL), TSR_OK);
    assert_int_equal(tsr_sampler_draws(&o), 2000);
    assert_string_equal(o.until, "ess>90");
    free(o.until);
    /* fifteen replicas are no population */
    o = (tsr_sampler_options){.chains = {-1, 3.0},
                              .temperatures = {-1, 5.0},
                              .t_max = word,
                              .draws = {-1, 7.0}};
    assert_int_equal(tsr_sampler_settle(&o, &expected[0].place, NULL), TSR_OK);
    assert_int_equal(o.start, TSR_START_FILE);
}

/* P(X) is the same with the data and without, wherever those end. */
static void bound_without_data(void **state)
{
    (void)state;
    static const char folder[] = "../shared/data/saxs/lysozyme_6lyz";
    if (access(folder, R_OK) != 0) {
        print_message("%s is absent\n", folder);
        skip();
    }
    char text[9000], here[4096];
    assert_non_null(getcwd(here, sizeof here));
    fixture with, without;
    snprintf(text, sizeof text,
             "structure: {file: '%s/%s/model.pdb'}\n"
             "data: [{file: '%s/%s/exp.dat', q_range: [0, 0.5]}]\n",
             here, folder, here, folder);
    open_fixture(&with, text, 1);
    open_fixture(&without, text, 0);
    assert_true(with.setup.molecule.d_bound_ang ==
                without.setup.molecule.d_bound_ang);
    close_fixture(&with);
    close_fixture(&without);
}

/* Beyond d_max the q grid does not hold, so P(X) is 0 there: moves that would
 * go beyond are rejected, and the run goes on. */
static void never_beyond_the_bound(void **state)
{
    (void)state;
    enum { STEPS = 300000 };
    fixture f;
    tsr_err err = {0};
    tsr_chain *chain;
    tsr_chain_view view;
    tsr_body_proposal ask;
    int accepted, near = 0;
    open_fixture(&f,
                 "structure: {sequence: WGGPGGY, d_max: 23}\n"
                 "prior: {clash: none}\n",
                 0);
    assert_int_equal(tsr_chain_new(&f.setup.target, 0, &chain, &err), TSR_OK);
    for (int i = 0; i < STEPS; i++) {
        tsr_chain_propose(chain, &ask);
        assert_int_equal(tsr_chain_decide(chain, NULL, 0, &accepted, &err),
                         TSR_OK);
        if (!accepted)
            continue;
        tsr_chain_look(chain, &view);
        assert_true(view.d_max_ang <= f.setup.molecule.d_bound_ang);
        near += view.d_max_ang > 0.97 * f.setup.molecule.d_bound_ang;
    }
    assert_true(near > 0);
    tsr_chain_free(chain);
    close_fixture(&f);
}

/* A chain that no engine serves, as that of simulate, may have any number. */
static void largest_number(void **state)
{
    (void)state;
    fixture f;
    tsr_err err = {0};
    tsr_chain *chain;
    open_fixture(&f, "structure: {sequence: WGGPGGY, states: 2}\n", 0);
    assert_int_equal(tsr_chain_new(&f.setup.target, INT_MAX, &chain, &err),
                     TSR_OK);
    assert_in_range(tsr_chain_system(chain), 0, 1);
    tsr_chain_free(chain);
    close_fixture(&f);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(settles),
                                       cmocka_unit_test(bound_without_data),
                                       cmocka_unit_test(never_beyond_the_bound),
                                       cmocka_unit_test(largest_number)};
    return cmocka_run_group_tests_name("setup", tests, NULL, NULL);
}
