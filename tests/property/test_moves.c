/* Laws of the prior and the moves: running value = reference, corrections
 * cancel, proposals tell the truth, geometry keeps, and the prior in is the
 * prior out, for every move, against draws made without a Markov chain. */
#include "tests/property/moves_support.h"

#include <gsl/gsl_linalg.h>

/* How many times as long as in `make check`; slow_moves.c says more. */
#ifndef LENGTH
#define LENGTH 1
#endif

/* The running value is an exact integer sum; units of 2^-32 may come from
 * pairs in a rigid group whose distance changed in its last bits. */
static void running_prior(void **state)
{
    (void)state;
    for (int k = 0; k < N_CASE; k++) {
        fixture f;
        open_case(&f, &cases[k]);
        tsr_target target = target_of(&f, f.c, 3);
        tsr_chain *chain = chain_of(&target, 0);
        tsr_chain_view view;
        for (int i = 0; i < 20000; i++) {
            step(chain, i < 10000);
            if (i % 500 != 0)
                continue;
            tsr_chain_look(chain, &view);
            double whole = tsr_prior_log_reference(f.prior, view.conformation);
            if (!(fabs(view.log_prior - whole) < 1e-6))
                fail_msg("%s, step %d: %.12g, reference %.12g", cases[k].name,
                         i, view.log_prior, whole);
        }
        tsr_chain_free(chain);
        close_fixture(&f);
    }
}

/* A move that has none is symmetric. */
static double log_ratio(const tsr_move_type *type, const void *move,
                        const tsr_conformation *from,
                        const tsr_conformation *to, const tsr_proposal *p)
{
    return type->log_ratio == NULL ? 0.0 : type->log_ratio(move, from, to, p);
}

/* To 1e-10; closures that are nearly singular (D down to exp(-5) Angstrom^3)
 * lose a digit, a few in 20,000. Largest |log ratio| seen, per move: a test of
 * nothing must not pass. */
static void log_ratios_cancel(void **state)
{
    (void)state;
    double largest[TSR_N_MOVE] = {0};
    long made[TSR_N_MOVE] = {0};
    for (int k = 0; k < N_CASE; k++) {
        fixture f;
        open_case(&f, &cases[k]);
        gsl_rng *rng = tsr_rng_new(8, (uint64_t)k);
        int n = f.t->n_residue;
        tsr_conformation *other = tsr_conformation_new(f.t);
        for (int m = 0; m < TSR_N_MOVE; m++) {
            const tsr_move_type *type = tsr_move_registry[m];
            if (type->n_target(f.options[m], f.t) == 0)
                continue;
            void *move = type->state_new(f.options[m], f.t, f.prior);
            int closes =
                type == &tsr_move_concerted || type == &tsr_move_rigid_body;
            double cancel = closes ? 1e-9 : 1e-10;
            for (int i = 0; i < 1000; i++) {
                tsr_proposal p;
                tsr_conformation_copy(f.t, other, f.c, 0, n);
                type->propose(move, f.c, other, rng, &p);
                if (p.n_span == 0)
                    continue;
                made[m]++;
                double there = log_ratio(type, move, f.c, other, &p);
                double back = log_ratio(type, move, other, f.c, &p);
                double size = 1.0 + fabs(there);
                if (!(fabs(there - p.log_ratio) < 1e-8 * size &&
                      fabs(there + back) < cancel * size))
                    fail_msg("%s, %s: %.15g there, %.15g back, %.15g told",
                             cases[k].name, type->name, there, back,
                             p.log_ratio);
                largest[m] = fmax(largest[m], fabs(there));
                type->adapt(move, &p, gsl_rng_uniform(rng));
                for (int s = 0; s < p.n_span; s++)
                    tsr_conformation_copy(f.t, f.c, other, p.span[s].first,
                                          p.span[s].count);
            }
            type->state_free(move);
        }
        tsr_conformation_free(other);
        gsl_rng_free(rng);
        close_fixture(&f);
    }
    for (int m = 0; m < TSR_N_MOVE; m++)
        if (made[m] < 200 ||
            (tsr_move_registry[m]->log_ratio != NULL && largest[m] < 1e-3))
            fail_msg("%s: %ld proposals, largest log ratio %g",
                     tsr_move_registry[m]->name, made[m], largest[m]);
}

/* What a proposal says it moved is all that moved, to the bit; rigid groups
 * are rigid, fixed residues stay. */
static void spans_tell_the_truth(void **state)
{
    (void)state;
    for (int k = 0; k < N_CASE; k++) {
        fixture f;
        open_case(&f, &cases[k]);
        gsl_rng *rng = tsr_rng_new(9, (uint64_t)k);
        int n = f.t->n_residue;
        tsr_conformation *other = tsr_conformation_new(f.t);
        int *group = calloc((size_t)n, sizeof *group);
        for (int m = 0; m < TSR_N_MOVE; m++) {
            const tsr_move_type *type = tsr_move_registry[m];
            if (type->n_target(f.options[m], f.t) == 0)
                continue;
            void *move = type->state_new(f.options[m], f.t, f.prior);
            for (int i = 0; i < 150; i++) {
                tsr_proposal p;
                tsr_conformation_copy(f.t, other, f.c, 0, n);
                type->propose(move, f.c, other, rng, &p);
                for (int r = 0; r < n; r++)
                    group[r] = -1;
                for (int s = 0; s < p.n_span; s++)
                    for (int r = 0; r < p.span[s].count; r++) {
                        assert_true(group[p.span[s].first + r] == -1);
                        group[p.span[s].first + r] = p.span[s].group;
                    }
                for (int r = 0; r < n; r++) {
                    const tsr_residue *q = &f.t->residue[r];
                    if (q->is_fixed)
                        assert_int_equal(group[r], -1);
                    if (group[r] >= 0)
                        continue;
                    assert_memory_equal(f.c->backbone[r], other->backbone[r],
                                        sizeof f.c->backbone[r]);
                    assert_memory_equal(f.c->side[r], other->side[r],
                                        sizeof f.c->side[r]);
                    assert_memory_equal(
                        f.c->body[q->first_body], other->body[q->first_body],
                        (size_t)q->n_body * sizeof f.c->body[0]);
                }
                for (int a = 0; a < f.t->n_body; a++)
                    for (int b = 0; b < a; b++) {
                        const tsr_residue *u =
                            &f.t->residue[f.t->body[a].residue];
                        const tsr_residue *v =
                            &f.t->residue[f.t->body[b].residue];
                        int ga = group[f.t->body[a].residue];
                        int gb = group[f.t->body[b].residue];
                        int same = (ga == gb && ga > 0) ||
                                   (u->unit >= 0 && u->unit == v->unit);
                        double change =
                            tsr_vec3_distance(f.c->body[a], f.c->body[b]) -
                            tsr_vec3_distance(other->body[a], other->body[b]);
                        assert_true(!same || fabs(change) < 1e-9);
                    }
                tsr_conformation_copy(f.t, f.c, other, 0, n);
            }
            type->state_free(move);
        }
        free(group);
        tsr_conformation_free(other);
        gsl_rng_free(rng);
        close_fixture(&f);
    }
}

/* An error that grows no faster than the number of steps stays below 1e-6 in a
 * million of them. */
static void geometry_keeps(void **state)
{
    enum { N_STEP = 125000 * LENGTH };
    const double most = 1e-6 * N_STEP / 1e6;
    (void)state;
    fixture f;
    open_case(&f, &cases[0]);
    tsr_target target = target_of(&f, f.c, 12);
    tsr_chain *chain = chain_of(&target, 0);
    int n = f.t->n_residue;
    tsr_internal *was = calloc((size_t)n, sizeof *was);
    tsr_internal *g = calloc((size_t)n, sizeof *g);
    tsr_geometry_measure(f.t, f.c, was);
    for (int i = 0; i < N_STEP; i++)
        step(chain, i < 10000);
    tsr_chain_view view;
    tsr_chain_look(chain, &view);
    tsr_geometry_measure(f.t, view.conformation, g);
    for (int i = 0; i < n; i++) {
        assert_true(fabs(g[i].n_ca - was[i].n_ca) < most);
        assert_true(fabs(g[i].ca_c - was[i].ca_c) < most);
        assert_true(fabs(g[i].c_o - was[i].c_o) < most);
        assert_true(fabs(g[i].ca_c_o - was[i].ca_c_o) < most);
        assert_true(i == 0 || fabs(g[i].c_n - was[i].c_n) < most);
        assert_true(i == 0 || fabs(g[i].ca_c_n - was[i].ca_c_n) < most);
        assert_true(i == 0 || fabs(g[i].c_n_ca - was[i].c_n_ca) < most);
        assert_true(i == 0 || fabs(sin(g[i].omega - was[i].omega)) < most);
        if (i + 1 < n)
            assert_true(fabs(sin(g[i].o_torsion - g[i].psi -
                                 (was[i].o_torsion - was[i].psi))) < most);
    }
    free(g);
    free(was);
    tsr_chain_free(chain);
    close_fixture(&f);
}

/* The six coordinates that a crankshaft between i and j changes. */
static void six(const fixture *f, const tsr_conformation *c, int i, int j,
                double value[6])
{
    for (int k = 0; k < 2; k++) {
        int r = k == 0 ? i : j;
        double(*x)[3] = c->backbone[r];
        value[3 * k] = tsr_conformation_torsion(f->t, c, r, TSR_PHI);
        value[3 * k + 1] = tsr_conformation_torsion(f->t, c, r, TSR_PSI);
        value[3 * k + 2] = tsr_vec3_angle(x[TSR_N], x[TSR_CA], x[TSR_C]);
    }
}

/* The crankshaft's correction is the determinant of its map, measured. */
static void crankshaft_jacobian(void **state)
{
    (void)state;
    const double h = 1e-5;
    fixture f;
    open_case(&f, &cases[0]);
    const tsr_move_type *type = &tsr_move_crankshaft;
    int kind = 0, n = f.t->n_residue, n_checked = 0;
    while (tsr_move_registry[kind] != type)
        kind++;
    void *move = type->state_new(f.options[kind], f.t, f.prior);
    tsr_conformation *from = tsr_conformation_new(f.t);
    tsr_conformation *to = tsr_conformation_new(f.t);
    tsr_internal *g = calloc((size_t)n, sizeof *g);
    gsl_rng *rng = tsr_rng_new(17, 0), *same = tsr_rng_new(17, 0);
    for (int trial = 0; trial < 60; trial++) {
        tsr_proposal p;
        sample_prior(&f.sampler, rng, f.c);
        tsr_geometry_measure(f.t, f.c, g);
        tsr_conformation_copy(f.t, to, f.c, 0, n);
        gsl_rng_memcpy(same, rng);
        type->propose(move, f.c, to, same, &p);
        int i = p.span[0].first, j = p.span[p.n_span - 1].first;
        if (i == 0 || j == n - 1)
            continue;
        gsl_matrix *m = gsl_matrix_alloc(6, 6);
        for (int k = 0; k < 6; k++) {
            tsr_internal *r = &g[k < 3 ? i : j];
            double *value = k % 3 == 0   ? &r->phi
                            : k % 3 == 1 ? &r->psi
                                         : &r->n_ca_c;
            double was = *value, o_was = r->o_torsion, end[2][6];
            for (int s = 0; s < 2; s++) {
                tsr_proposal again;
                *value = was + (s == 0 ? -h : h);
                if (k % 3 == 1)
                    r->o_torsion = o_was + (*value - was);
                tsr_conformation_copy(f.t, from, f.c, 0, n);
                tsr_geometry_build(f.t, g, from);
                tsr_conformation_copy(f.t, to, from, 0, n);
                gsl_rng_memcpy(same, rng);
                type->propose(move, from, to, same, &again);
                six(&f, to, i, j, end[s]);
            }
            *value = was, r->o_torsion = o_was;
            for (int l = 0; l < 6; l++)
                gsl_matrix_set(m, (size_t)l, (size_t)k,
                               remainder(end[1][l] - end[0][l],
                                         2.0 * 3.14159265358979323846) /
                                   (2.0 * h));
        }
        gsl_permutation *order = gsl_permutation_alloc(6);
        int sign;
        gsl_linalg_LU_decomp(m, order, &sign);
        double log_det = gsl_linalg_LU_lndet(m);
        if (!(fabs(log_det - p.log_ratio) < 1e-4))
            fail_msg("%d to %d: log |det| %.6f, told %.6f", i, j, log_det,
                     p.log_ratio);
        n_checked++;
        gsl_permutation_free(order);
        gsl_matrix_free(m);
    }
    assert_true(n_checked > 20);
    gsl_rng_free(rng);
    gsl_rng_free(same);
    free(g);
    tsr_conformation_free(from);
    tsr_conformation_free(to);
    type->state_free(move);
    close_fixture(&f);
}

/* Each move alone, and a set of them that is drawn. */
static void moves_keep_the_prior(void **state)
{
    enum { N = 250 * LENGTH, STEPS = 200 };
    (void)state;
    gsl_rng *rng = tsr_rng_new(31, 0);
    const unsigned n_set = 1u << TSR_N_MOVE;
    for (int k = 0; k < N_CASE; k++) {
        fixture f;
        open_case(&f, &cases[k]);
        oracle o = oracle_new(&f, 4 * N);
        for (int m = 0; m < TSR_N_MOVE; m++)
            check_subset(&f, cases[k].name, &o, 1u << m, N, STEPS);
        check_subset(&f, cases[k].name, &o,
                     1u + (unsigned)gsl_rng_uniform_int(rng, n_set - 1), N,
                     STEPS);
        if (k == 0)
            check_subset(&f, cases[k].name, &o, n_set - 1, N, STEPS);
        free(o.value);
        close_fixture(&f);
    }
    gsl_rng_free(rng);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(running_prior),
                                       cmocka_unit_test(log_ratios_cancel),
                                       cmocka_unit_test(spans_tell_the_truth),
                                       cmocka_unit_test(geometry_keeps),
                                       cmocka_unit_test(crankshaft_jacobian),
                                       cmocka_unit_test(moves_keep_the_prior)};
    return cmocka_run_group_tests_name("moves", tests, NULL, NULL);
}
