/* Every move keeps the prior, states truthfully what it changed, and its
 * corrections cancel; the running prior equals the reference. */
#include "tests/geometry.h"
#include "tests/objects.h"
#include "tests/property/moves_support.h"
#include "tests/test.h"

#include <gsl/gsl_linalg.h>

/* How many times as long as in `make check`; slow_moves.c says more. */
#ifndef LENGTH
#define LENGTH 1
#endif

/* The running value is an exact integer sum; units of 2^-32 may come from
 * pairs in a rigid group whose distance changed in its last bits. */
TEST(running_prior)
{
    for (int k = 0; k < N_CASE; k++) {
        fixture f;
        open_case(&f, &cases[k]);
        tsr_target target = target_of(&f, f.c, 3);
        tsr_chain *chain = chain_of(&target, 0);
        tsr_chain_view view;
        for (int i = 0; i < 10000 * LENGTH; i++) {
            step(chain, i < 5000);
            if (i % 250 != 0)
                continue;
            tsr_chain_view_get(chain, &view);
            double whole = tsr_prior_log_reference(f.prior, view.conformation);
            if (!(fabs(view.log_prior - whole) < 1e-6))
                fail_msg("%s, step %d: %.12g, reference %.12g", cases[k].name,
                         i, view.log_prior, whole);
        }
        tsr_chain_free(chain);
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
TEST(log_ratios_cancel)
{
    double largest[TSR_N_MOVE] = {0};
    long made[TSR_N_MOVE] = {0};
    for (int k = 0; k < N_CASE; k++) {
        fixture f;
        open_case(&f, &cases[k]);
        gsl_rng *rng = rng_new(8, (uint64_t)k);
        int n = f.t->n_residue;
        tsr_conformation *other = new_conformation(f.t);
        for (int m = 0; m < TSR_N_MOVE; m++) {
            const tsr_move_type *type = tsr_move_registry[m];
            if (type->launch != NULL || type->n_target(f.options[m], f.t) == 0)
                continue;
            tsr_pool *pool = new_pool();
            void *move = type->state_new(pool, f.options[m], f.t, f.prior);
            if (type == &tsr_move_place) /* others have led apart */
                assert_true(tsr_place_chains(f.prior, rng, f.c));
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
                if (type->adapt != NULL)
                    type->adapt(move, &p, gsl_rng_uniform(rng));
                for (int s = 0; s < p.n_span; s++)
                    tsr_conformation_copy(f.t, f.c, other, p.span[s].first,
                                          p.span[s].count);
            }
        }
    }
    for (int m = 0; m < OWN_MOVES; m++)
        if (made[m] < 200 ||
            (tsr_move_registry[m]->log_ratio != NULL && largest[m] < 1e-3))
            fail_msg("%s: %ld proposals, largest log ratio %g",
                     tsr_move_registry[m]->name, made[m], largest[m]);
}

/* What a proposal says it moved is all that moved, to the bit; rigid groups
 * are rigid, fixed residues stay. */
TEST(spans_tell_the_truth)
{
    for (int k = 0; k < N_CASE; k++) {
        fixture f;
        open_case(&f, &cases[k]);
        gsl_rng *rng = rng_new(9, (uint64_t)k);
        int n = f.t->n_residue;
        tsr_conformation *other = new_conformation(f.t);
        int *group = array((size_t)n, sizeof *group);
        for (int m = 0; m < TSR_N_MOVE; m++) {
            const tsr_move_type *type = tsr_move_registry[m];
            if (type->launch != NULL || type->n_target(f.options[m], f.t) == 0)
                continue;
            tsr_pool *pool = new_pool();
            void *move = type->state_new(pool, f.options[m], f.t, f.prior);
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
        }
    }
}

/* An error that grows no faster than the number of steps stays below 1e-6 in a
 * million of them. */
TEST(geometry_keeps)
{
    enum { N_STEP = 50000 * LENGTH };
    const double most = 1e-6 * N_STEP / 1e6;
    fixture f;
    open_case(&f, &cases[0]);
    tsr_target target = target_of(&f, f.c, 12);
    tsr_chain *chain = chain_of(&target, 0);
    int n = f.t->n_residue;
    internal_geometry *was = array((size_t)n, sizeof *was);
    internal_geometry *g = array((size_t)n, sizeof *g);
    measure_geometry(f.t, f.c, was);
    for (int i = 0; i < N_STEP; i++)
        step(chain, i < 10000);
    tsr_chain_view view;
    tsr_chain_view_get(chain, &view);
    measure_geometry(f.t, view.conformation, g);
    for (int i = 0; i < n; i++) {
        assert_near(g[i].n_ca, was[i].n_ca, most);
        assert_near(g[i].ca_c, was[i].ca_c, most);
        assert_near(g[i].c_o, was[i].c_o, most);
        assert_near(g[i].ca_c_o, was[i].ca_c_o, most);
        assert_true(i == 0 || fabs(g[i].c_n - was[i].c_n) < most);
        assert_true(i == 0 || fabs(g[i].ca_c_n - was[i].ca_c_n) < most);
        assert_true(i == 0 || fabs(g[i].c_n_ca - was[i].c_n_ca) < most);
        assert_true(i == 0 || fabs(sin(g[i].omega - was[i].omega)) < most);
        if (i + 1 < n)
            assert_true(fabs(sin(g[i].o_torsion - g[i].psi -
                                 (was[i].o_torsion - was[i].psi))) < most);
    }
    tsr_chain_free(chain);
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
TEST(crankshaft_jacobian)
{
    const double h = 1e-5;
    fixture f;
    open_case(&f, &cases[0]);
    const tsr_move_type *type = &tsr_move_crankshaft;
    int kind = 0, n = f.t->n_residue, n_checked = 0;
    while (tsr_move_registry[kind] != type)
        kind++;
    tsr_pool *pool = new_pool();
    void *move = type->state_new(pool, f.options[kind], f.t, f.prior);
    tsr_conformation *from = new_conformation(f.t);
    tsr_conformation *to = new_conformation(f.t);
    internal_geometry *g = array((size_t)n, sizeof *g);
    gsl_rng *rng = rng_new(17, 0), *same = rng_new(17, 0);
    for (int trial = 0; trial < 60; trial++) {
        tsr_proposal p;
        sample_prior(&f.sampler, rng, f.c);
        measure_geometry(f.t, f.c, g);
        tsr_conformation_copy(f.t, to, f.c, 0, n);
        gsl_rng_memcpy(same, rng);
        type->propose(move, f.c, to, same, &p);
        int i = p.span[0].first, j = p.span[p.n_span - 1].first;
        if (i == 0 || j == n - 1)
            continue;
        gsl_matrix *m = own_gsl_matrix(gsl_matrix_alloc(6, 6));
        for (int k = 0; k < 6; k++) {
            internal_geometry *r = &g[k < 3 ? i : j];
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
                build_geometry(f.t, g, from);
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
        gsl_permutation *order = own_gsl_permutation(gsl_permutation_alloc(6));
        int sign;
        gsl_linalg_LU_decomp(m, order, &sign);
        double log_det = gsl_linalg_LU_lndet(m);
        if (!(fabs(log_det - p.log_ratio) < 1e-4))
            fail_msg("%d to %d: log |det| %.6f, told %.6f", i, j, log_det,
                     p.log_ratio);
        n_checked++;
    }
    assert_true(n_checked > 20);
}

/* A chain as a whole is moved as often as a part of it, which has many choices
 * of pivots. */
TEST(parts_take_turns)
{
    enum { N = 4000 };
    static const test_case tail = {"tail",
                                   "AAAA/AAAAKGSTVKLG",
                                   "B:5-12",
                                   "B",
                                   {NULL, NULL},
                                   TSR_CLASH_NONE,
                                   45.0,
                                   0,
                                   0};
    fixture f;
    open_case(&f, &tail);
    const tsr_move_type *type = &tsr_move_rigid_body;
    tsr_pool *pool = new_pool();
    void *move =
        type->state_new(pool, f.options[TSR_MOVE_rigid_body], f.t, f.prior);
    tsr_conformation *to = new_conformation(f.t);
    gsl_rng *rng = rng_new(21, 0);
    int whole = 0, b = f.t->residue[0].chain_last + 1;
    for (int i = 0; i < N; i++) {
        tsr_proposal p = {.n_span = 0};
        tsr_conformation_copy(f.t, to, f.c, 0, f.t->n_residue);
        type->propose(move, f.c, to, rng, &p);
        whole += p.n_span == 1 && p.span[0].first == b &&
                 p.span[0].count == f.t->n_residue - b;
    }
    if (fabs((double)whole / N - 0.5) > 0.04)
        fail_msg("the chain was moved in %d of %d proposals", whole, N);
}

/* Each move alone, and a set of them that is drawn. */
TEST(moves_keep_the_prior)
{
    enum { N = 125 * LENGTH };
    gsl_rng *rng = rng_new(31, 0);
    const unsigned n_set = 1u << OWN_MOVES;
    for (int k = 0; k < N_CASE; k++) {
        fixture f;
        open_case(&f, &cases[k]);
        oracle o = oracle_new(&f, 8 * N);
        /* a Jacobian that is forgotten shows later than a wrong torsion */
        int steps = cases[k].is_loose ? 200 : 100;
        for (int m = 0; m < OWN_MOVES; m++)
            check_subset(&f, cases[k].name, &o, 1u << m, N, steps);
        check_subset(&f, cases[k].name, &o,
                     1u + (unsigned)gsl_rng_uniform_int(rng, n_set - 1), N,
                     steps);
        if (k == 0)
            check_subset(&f, cases[k].name, &o, n_set - 1, N, steps);
    }
}
