/* Members of a pool: the density of regrown stretches equals a slow sum, and a
 * start at a member has its torsions. That regrow keeps the prior with a pool
 * is in test_moves.c. */
#include "tests/property/moves_support.h"
#include "tests/test.h"

#include "molecule/prior_density.h"

#include <gsl/gsl_sf_bessel.h>

/* A torsion of member m, rad. */
static double of_member(const tsr_members *p, int m, int k)
{
    const double *turn = p->turn[m * p->n_torsion + k];
    return atan2(turn[1], turn[0]);
}

static double of(const tsr_topology *t, const tsr_conformation *c, int k)
{
    return tsr_conformation_torsion(t, c, t->torsion[k].residue,
                                    t->torsion[k].kind);
}

/* log q of docs/moves.md, term by term, for the stretch of a proposal. */
static double slow_log_q(const fixture *f, const tsr_members *p,
                         const tsr_conformation *c, const tsr_proposal *of_move,
                         double *f_over_q)
{
    const tsr_span *span = of_move->span;
    double log_f = 0.0, sum = 0.0;
    while (span->group != 0)
        span++;
    const int end = span->first + span->count;
    for (int i = span->first; i < end; i++)
        log_f += tsr_prior_torsion_log_of(f->prior, c, i);
    for (int m = 0; m < p->n; m++)
        for (double kappa = 8.0; kappa < 513.0; kappa *= 4.0) {
            double log_k = 0.0;
            for (int k = 0; k < p->n_torsion; k++)
                if (f->t->torsion[k].residue >= span->first &&
                    f->t->torsion[k].residue < end)
                    log_k += kappa * (cos(of(f->t, c, k) - of_member(p, m, k)) -
                                      1.0) -
                             log(2.0 * TSR_PI * gsl_sf_bessel_I0_scaled(kappa));
            sum += exp(log_k) / (4.0 * p->n);
        }
    *f_over_q = 1.0 / (0.8 + 0.2 * sum / exp(log_f));
    return log(0.8 * exp(log_f) + 0.2 * sum);
}

/* Proposals have this density: the mean of f / q over them is the integral of
 * f, which is 1. */
TEST(density_of_proposals)
{
    double n = 0.0, mean = 0.0, squares = 0.0;
    for (int k = 0; k < N_CASE; k++) {
        fixture f;
        open_case(&f, &cases[k]);
        const tsr_regrow_options *o = f.options[TSR_MOVE_regrow];
        if (tsr_move_regrow.n_target(o, f.t) == 0)
            continue;
        void *move = tsr_move_regrow.state_new(new_pool(), o, f.t, f.prior);
        tsr_conformation *other = new_conformation(f.t);
        gsl_rng *rng = rng_new(9, (uint64_t)k);
        for (int i = 0; i < 1000; i++) {
            tsr_proposal p;
            double r;
            tsr_conformation_copy(f.t, other, f.c, 0, f.t->n_residue);
            tsr_move_regrow.propose(move, f.c, other, rng, &p);
            const double was = slow_log_q(&f, o->members, f.c, &p, &r),
                         is = slow_log_q(&f, o->members, other, &p, &r);
            if (!(fabs(was - is - p.log_ratio) < 1e-9))
                fail_msg("%s: log q %.8g and %.8g, log ratio %.8g",
                         cases[k].name, was, is, p.log_ratio);
            n += 1.0, mean += r, squares += r * r;
            tsr_conformation_copy(f.t, f.c, other, 0, f.t->n_residue);
        }
    }
    const double error = sqrt((squares / n - mean * mean / (n * n)) / n);
    if (!(error < 0.01 && fabs(mean / n - 1.0) < 3.5 * error))
        fail_msg("f / q of proposals: mean %.4f +- %.4f", mean / n, error);
}

/* A start at a member has its torsions, and all else of the structure. */
TEST(apply_a_member)
{
    for (int k = 0; k < N_CASE; k++) {
        fixture f;
        open_case(&f, &cases[k]);
        const tsr_regrow_options *o = f.options[TSR_MOVE_regrow];
        const tsr_members *p = o->members;
        const int n = f.t->n_residue;
        tsr_conformation *to = new_conformation(f.t);
        internal_geometry *was = array((size_t)n, sizeof *was),
                          *is = array((size_t)n, sizeof *is);
        measure_geometry(f.t, f.c, was);
        for (int m = 0; p != NULL && m < p->n; m++) {
            tsr_members_apply(p, m, f.c, to);
            measure_geometry(f.t, to, is);
            for (int i = 0; i < p->n_torsion; i++)
                assert_near(
                    tsr_von_mises_wrap(of(f.t, to, i) - of_member(p, m, i)),
                    0.0, 1e-9);
            for (int i = 0; i < n; i++) {
                assert_near(is[i].n_ca_c, was[i].n_ca_c, 1e-9);
                if (f.t->residue[i].is_fixed && f.t->residue[i].copy == 0)
                    assert_memory_equal(to->backbone[i], f.c->backbone[i],
                                        sizeof to->backbone[i]);
            }
        }
    }
}
