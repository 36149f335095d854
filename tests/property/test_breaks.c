/* Chain parts keep their relation across a break, whatever moves. */
#include "tests/freedom_sample.h"
#include "tests/objects.h"
#include "tests/test.h"

#include "moves/move.h"
#include "sampler/chain.h"

static const sample_molecule cases[] = {
    {.sequence = "GAKPIVTSLFGNDEAKGSTVKL", .break_before = 9},
    {.sequence = "GAKPIVTSLFGNDEAKGSTVKL",
     .break_before = 13,
     .ranges = {"A:3-12 A:13-15 A:18-20"}},
    {.sequence = "GAKPIVTSLFGNDEAKGSTVKL/AKGST",
     .break_before = 9,
     .ranges = {NULL, "A:4-6", NULL, "B"}}};
enum { N_CASE = COUNT_OF(cases) };

/* Distances between N, CA, C before and after the break. */
static void relation(const tsr_conformation *c, int after, double d[9])
{
    for (int a = 0; a < 3; a++)
        for (int b = 0; b < 3; b++)
            d[3 * a + b] = tsr_vec3_distance(c->backbone[after - 1][a],
                                             c->backbone[after][b]);
}

/* A move that no chain without data has: its proposals, one after another. */
static void propose_many(const tsr_move_type *type, const void *option,
                         const tsr_topology *t, const tsr_prior *prior,
                         const tsr_conformation *from, int after, double is[9])
{
    tsr_pool *pool = new_pool();
    void *move = type->state_new(pool, option, t, prior);
    gsl_rng *rng = rng_new(5, 0);
    tsr_conformation *now = new_conformation(t);
    tsr_conformation *to = new_conformation(t);
    tsr_proposal proposal;
    tsr_conformation_copy(t, now, from, 0, t->n_residue);
    for (int i = 0; i < 100; i++) {
        tsr_conformation_copy(t, to, now, 0, t->n_residue);
        type->propose(move, now, to, rng, &proposal);
        tsr_conformation_copy(t, now, to, 0, t->n_residue);
    }
    assert_true(tsr_vec3_distance(now->backbone[0][0], from->backbone[0][0]) +
                    tsr_vec3_distance(now->backbone[t->n_residue - 1][0],
                                      from->backbone[t->n_residue - 1][0]) >
                1.0);
    relation(now, after, is);
}

/* Each move by itself. */
TEST(parts_keep_their_relation)
{
    for (int k = 0; k < N_CASE; k++) {
        tsr_prior_table table;
        tsr_topology *t;
        tsr_conformation *c;
        sample_prior_table(&table);
        const tsr_prior_options none = {
            .clash = TSR_CLASH_NONE, .softness = 0.5, .clash_limit = 10.0};
        OK(sample_topology(&table, &cases[k], &t, &c, NULL));
        NEW(tsr_prior, prior, tsr_prior_new, t, &table, &none, 0.0);
        int after = cases[k].break_before - 1;
        assert_true(!t->residue[after].linked);
        double was[9], is[9];
        relation(c, after, was);
        for (int m = 0; m < TSR_N_MOVE; m++) {
            unsigned char option[256] = {0};
            const void *only[TSR_N_MOVE] = {NULL};
            const tsr_move_type *type = tsr_move_registry[m];
            assert_true(type->options_size <= sizeof option);
            OK(tsr_fields_init(type->fields, option, &err));
            memcpy(option, &(const double){1.0}, sizeof(double)); /* weight */
            only[m] = option;
            if (type->launch != NULL || type->n_target(option, t) == 0)
                continue;
            if (type->learn != NULL) {
                propose_many(type, option, t, prior, c, after, is);
                for (int d = 0; d < 9; d++)
                    assert_near(is[d], was[d], 1e-6);
                continue;
            }
            const tsr_target target = {.topology = t,
                                       .first = c,
                                       .prior = prior,
                                       .move_options = only,
                                       .seed = 5};
            tsr_chain_view view;
            tsr_body_proposal ask;
            int accepted, n = 0;
            NEW(tsr_chain, chain, tsr_chain_new, &target, 0);
            for (int i = 0; i < 3000; i++) {
                tsr_chain_propose(chain, &ask);
                OK(tsr_chain_decide(chain, NULL, 0, &accepted, &err));
                n += accepted;
            }
            tsr_chain_view_get(chain, &view);
            relation(view.conformation, after, is);
            for (int d = 0; d < 9; d++)
                if (!(fabs(is[d] - was[d]) < 1e-6) || n < 100)
                    fail_msg("molecule %d, %s: %d accepted, %g was %g", k,
                             type->name, n, is[d], was[d]);
        }
    }
}
