/* Laws of the prior and the moves: running value = reference, corrections
 * cancel, geometry keeps, and the prior in is the prior out. */
#include "tests/model_sample.h"

#include "core/vec3.h"
#include "model/geometry.h"
#include "moves/move.h"
#include "sampler/chain.h"

#include <gsl/gsl_cdf.h>
#include <gsl/gsl_sort.h>
#include <stdlib.h>

#define PI 3.14159265358979323846
static const char sequence[] = "MKTAYIAKQRPGISFVKSHFWRQLEERLGNDCE";

typedef struct {
    tsr_prior_table table;
    tsr_topology *t;
    tsr_conformation *c;
    tsr_prior *prior;
    unsigned char option[TSR_N_MOVE][256];
    const void *options[TSR_N_MOVE];
} fixture;

static void open_fixture(fixture *f, const char *text, int clash)
{
    tsr_err err = {0};
    tsr_prior_options options = {clash, 0.5};
    memset(f, 0, sizeof *f);
    sample_prior_table(&f->table);
    sample_chain(text, NULL, &f->table, &f->t, &f->c);
    f->prior = tsr_prior_new(f->t, &f->table, &options);
    for (int m = 0; m < TSR_N_MOVE; m++) {
        const tsr_move_type *type = tsr_move_registry[m];
        assert_true(type->options_size <= sizeof f->option[m]);
        if (tsr_fields_init(type->fields, f->option[m], &err) != TSR_OK)
            fail_msg("%s", err.message);
        f->options[m] = f->option[m];
    }
}

static void close_fixture(fixture *f)
{
    tsr_prior_free(f->prior);
    tsr_conformation_free(f->c);
    tsr_topology_free(f->t);
}

static tsr_target target_of(const fixture *f, uint64_t seed)
{
    return (tsr_target){.topology = f->t,
                        .first = f->c,
                        .prior = f->prior,
                        .move_options = f->options,
                        .seed = seed};
}

static tsr_chain *chain_of(const tsr_target *target)
{
    tsr_chain *chain;
    tsr_err err = {0};
    if (tsr_chain_new(target, 0, &chain, &err) != TSR_OK)
        fail_msg("%s", err.message);
    return chain;
}

static void step(tsr_chain *chain, int warm)
{
    tsr_body_proposal ask;
    int accepted;
    tsr_err err = {0};
    assert_int_equal(tsr_chain_propose(chain, &ask), 0);
    if (tsr_chain_decide(chain, NULL, warm, &accepted, &err) != TSR_OK)
        fail_msg("%s", err.message);
}

/* The running value is an exact integer sum; a unit of 2^-32 may come from a
 * pair in a rigid group whose distance changed in its last bit. */
static void running_prior(void **state)
{
    (void)state;
    for (int clash = TSR_CLASH_SOFT; clash <= TSR_CLASH_NONE; clash++) {
        fixture f;
        open_fixture(&f, sequence, clash);
        tsr_target target = target_of(&f, 3);
        tsr_chain *chain = chain_of(&target);
        tsr_chain_view view;
        double lowest = 0.0;
        for (int i = 0; i < 20000; i++) {
            step(chain, 1);
            if (i % 500 != 0)
                continue;
            tsr_chain_look(chain, &view);
            double whole = tsr_prior_log_reference(f.prior, view.conformation);
            assert_true(fabs(view.log_prior - whole) < 1e-8);
            lowest = fmin(lowest, whole);
        }
        assert_true(lowest < -50.0);
        tsr_chain_free(chain);
        close_fixture(&f);
    }
}

static void log_ratios_cancel(void **state)
{
    (void)state;
    fixture f;
    open_fixture(&f, sequence, TSR_CLASH_NONE);
    gsl_rng *rng = tsr_rng_new(8, 0);
    int n = f.t->n_residue;
    tsr_conformation *other = tsr_conformation_new(f.t);
    double largest[TSR_N_MOVE] = {0};
    for (int m = 0; m < TSR_N_MOVE; m++) {
        const tsr_move_type *type = tsr_move_registry[m];
        void *move = type->state_new(f.options[m], f.t, f.prior);
        for (int i = 0; i < 2000; i++) {
            tsr_proposal p;
            tsr_conformation_copy(f.t, other, f.c, 0, n);
            type->propose(move, f.c, other, rng, &p);
            double there = type->log_ratio(move, f.c, other, &p);
            double back = type->log_ratio(move, other, f.c, &p);
            assert_true(fabs(there + back) < 1e-10);
            largest[m] = fmax(largest[m], fabs(there));
            type->adapt(move, gsl_rng_uniform(rng));
            for (int k = 0; k < p.n_span; k++)
                tsr_conformation_copy(f.t, f.c, other, p.span[k].first,
                                      p.span[k].count);
        }
        type->state_free(move);
    }
    assert_true(largest[1] > 0.1); /* side_chain has one to cancel */
    tsr_conformation_free(other);
    gsl_rng_free(rng);
    close_fixture(&f);
}

/* What a proposal says it moved is all that moved, and rigid groups are. */
static void spans_tell_the_truth(void **state)
{
    (void)state;
    fixture f;
    open_fixture(&f, sequence, TSR_CLASH_NONE);
    gsl_rng *rng = tsr_rng_new(9, 0);
    int n = f.t->n_residue;
    tsr_conformation *other = tsr_conformation_new(f.t);
    for (int m = 0; m < TSR_N_MOVE; m++) {
        const tsr_move_type *type = tsr_move_registry[m];
        void *move = type->state_new(f.options[m], f.t, f.prior);
        for (int i = 0; i < 300; i++) {
            tsr_proposal p;
            int group[64];
            tsr_conformation_copy(f.t, other, f.c, 0, n);
            type->propose(move, f.c, other, rng, &p);
            for (int r = 0; r < n; r++)
                group[r] = -1;
            for (int k = 0; k < p.n_span; k++)
                for (int r = 0; r < p.span[k].count; r++)
                    group[p.span[k].first + r] = p.span[k].group;
            for (int a = 0; a < f.t->n_body; a++)
                for (int b = 0; b < a; b++) {
                    int ga = group[f.t->body[a].residue];
                    int gb = group[f.t->body[b].residue];
                    double change =
                        tsr_vec3_distance(f.c->body[a], f.c->body[b]) -
                        tsr_vec3_distance(other->body[a], other->body[b]);
                    if (ga == gb && ga != 0)
                        assert_true(fabs(change) < 1e-9);
                }
            tsr_conformation_copy(f.t, f.c, other, 0, n);
        }
        type->state_free(move);
    }
    tsr_conformation_free(other);
    gsl_rng_free(rng);
    close_fixture(&f);
}

static void geometry_keeps(void **state)
{
    (void)state;
    fixture f;
    open_fixture(&f, sequence, TSR_CLASH_NONE);
    tsr_target target = target_of(&f, 12);
    tsr_chain *chain = chain_of(&target);
    for (int i = 0; i < 1000000; i++)
        step(chain, 0);
    tsr_chain_view view;
    tsr_chain_look(chain, &view);
    int n = f.t->n_residue;
    tsr_internal *g = calloc((size_t)n, sizeof *g);
    tsr_geometry_measure(f.t, view.conformation, g);
    for (int i = 0; i < n; i++) {
        assert_true(fabs(g[i].n_ca - TSR_BOND_N_CA) < 1e-6);
        assert_true(fabs(g[i].ca_c - TSR_BOND_CA_C) < 1e-6);
        assert_true(fabs(g[i].n_ca_c - TSR_ANGLE_N_CA_C) < 1e-6);
        assert_true(i == 0 || fabs(g[i].c_n - TSR_BOND_C_N) < 1e-6);
        assert_true(i == 0 || fabs(g[i].c_n_ca - TSR_ANGLE_C_N_CA) < 1e-6);
    }
    free(g);
    tsr_chain_free(chain);
    close_fixture(&f);
}

/* Kolmogorov-Smirnov p-value of sorted u against the uniform law on [0, 1],
 * Stephens' approximation. */
static double ks_p(int n, double *u)
{
    double d = 0.0, sum = 0.0;
    gsl_sort(u, 1, (size_t)n);
    for (int i = 0; i < n; i++) {
        d = fmax(d, (i + 1.0) / n - u[i]);
        d = fmax(d, u[i] - (double)i / n);
    }
    double x = d * (sqrt(n) + 0.12 + 0.11 / sqrt(n));
    for (int j = 1; j < 100; j++)
        sum += (j % 2 ? 2.0 : -2.0) * exp(-2.0 * j * j * x * x);
    return x < 0.3 ? 1.0 : sum;
}

/* Without data and clashes every torsion is uniform and every side chain its
 * Gaussian. Draws are far enough apart to be all but independent. */
static void prior_out(void **state)
{
    (void)state;
    enum { N = 1500, APART = 400 };
    fixture f;
    open_fixture(&f, "MKTFLG", TSR_CLASH_NONE);
    /* With any subset of moves, the moved parts follow the prior. */
    for (int subset = 1; subset < 1 << TSR_N_MOVE; subset++) {
        const void *some[TSR_N_MOVE];
        for (int m = 0; m < TSR_N_MOVE; m++)
            some[m] = subset >> m & 1 ? f.options[m] : NULL;
        tsr_target target = target_of(&f, (uint64_t)(20 + subset));
        target.move_options = some;
        tsr_chain *chain = chain_of(&target);
        double *torsion[16], *side[16];
        for (int k = 0; k < f.t->n_torsion; k++)
            torsion[k] = calloc(N, sizeof(double));
        for (int k = 0; k < f.t->n_side; k++)
            side[k] = calloc(N, sizeof(double));
        for (int i = 0; i < 5000; i++)
            step(chain, 1);
        for (int i = 0; i < N; i++) {
            for (int j = 0; j < APART; j++)
                step(chain, 0);
            tsr_chain_view view;
            tsr_chain_look(chain, &view);
            for (int k = 0; k < f.t->n_torsion; k++)
                torsion[k][i] =
                    0.5 + tsr_conformation_torsion(f.t, view.conformation,
                                                   f.t->torsion[k].residue,
                                                   f.t->torsion[k].kind) /
                              (2.0 * PI);
            for (int k = 0; k < f.t->n_side; k++) {
                int r = f.t->side[k];
                tsr_amino a = f.t->residue[r].amino;
                /* -2 (log density + norm) is chi-squared with 3 degrees */
                double top =
                    tsr_prior_side_log(f.prior, a, f.table.side_mean[a]);
                double log_p =
                    tsr_prior_side_log(f.prior, a, view.conformation->side[r]);
                side[k][i] = gsl_cdf_chisq_P(2.0 * (top - log_p), 3.0);
            }
        }
        for (int k = 0; k < f.t->n_torsion; k++) {
            double p = ks_p(N, torsion[k]);
            if ((subset & 1) && p < 1e-4)
                fail_msg("moves %d, torsion %d: p = %g", subset, k, p);
            free(torsion[k]);
        }
        for (int k = 0; k < f.t->n_side; k++) {
            double p = ks_p(N, side[k]);
            if ((subset & 2) && p < 1e-4)
                fail_msg("moves %d, side chain %d: p = %g", subset, k, p);
            free(side[k]);
        }
        tsr_chain_free(chain);
    }
    close_fixture(&f);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(running_prior), cmocka_unit_test(log_ratios_cancel),
        cmocka_unit_test(spans_tell_the_truth),
        cmocka_unit_test(geometry_keeps), cmocka_unit_test(prior_out)};
    return cmocka_run_group_tests_name("moves", tests, NULL, NULL);
}
