/* The move `pool`: its density of proposals equals a slow sum in double
 * precision; between two basins that small
 * turns cannot leave, their shares are those of quadrature. That the move keeps
 * the prior is in test_moves.c. */
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
                         const tsr_conformation *c, const tsr_proposal *of_move)
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
    return log(0.2 * exp(log_f) + 0.8 * sum);
}

TEST(density_of_proposals)
{
    int n_near = 0, n_far = 0;
    for (int k = 0; k < N_CASE; k++) {
        fixture f;
        open_case(&f, &cases[k]);
        const tsr_pool_move_options *o = f.options[TSR_MOVE_pool];
        if (tsr_move_pool.n_target(o, f.t) == 0)
            continue;
        void *move = tsr_move_pool.state_new(new_pool(), o, f.t, f.prior);
        tsr_conformation *other = new_conformation(f.t);
        gsl_rng *rng = rng_new(9, (uint64_t)k);
        for (int i = 0; i < 300; i++) {
            tsr_proposal p;
            tsr_conformation_copy(f.t, other, f.c, 0, f.t->n_residue);
            tsr_move_pool.propose(move, f.c, other, rng, &p);
            const double was = slow_log_q(&f, o->members, f.c, &p),
                         is = slow_log_q(&f, o->members, other, &p);
            if (!(fabs(was - is - p.log_ratio) < 1e-9))
                fail_msg("%s: log q %.8g and %.8g, log ratio %.8g",
                         cases[k].name, was, is, p.log_ratio);
            n_near += is > 10.0, n_far += is < 0.0;
            tsr_conformation_copy(f.t, f.c, other, 0, f.t->n_residue);
        }
    }
    assert_true(n_near > 100 && n_far > 500);
}

/* ---- two basins ---- */

static const double centre[2][2] = {{-1.1, -0.7}, {1.0, 2.5}};
static const double weight[2] = {0.3, 0.7};

static void set_torsions(const fixture *f, tsr_conformation *c, double phi,
                         double psi)
{
    const double change[1][2] = {
        {phi - tsr_conformation_torsion(f->t, c, 4, TSR_PHI),
         psi - tsr_conformation_torsion(f->t, c, 4, TSR_PSI)}};
    tsr_conformation_turn_many(f->t, c, 4, 4, 1, change);
}

static void make_prior(fixture *f, double upper, double width)
{
    f->restraint.at = 0;
    f->restraint.distance[0] = 0.0, f->restraint.distance[1] = upper;
    f->restraint.width = width;
    MAKE(tsr_prior, f->prior, tsr_prior_new, f->t, &f->table, &f->options_prior,
         0.0);
}

/* A glycine between two rigid parts, with two narrow maxima of its density, and
 * a restraint that one of them violates by about a nat. */
static void open_basins(fixture *f)
{
    static const test_case hinge = {
        "hinge",        "AAAAGAAAA", "A:5", NULL, {"A:2", "A:8"},
        TSR_CLASH_NONE, 0.0,         0,     0};
    double d[2];
    open_case(f, &hinge);
    f->table.angle[TSR_GLY] = (tsr_angle_gaussian){1, 1.94, 0.002};
    for (int r = 0; r < TSR_N_RAMA; r++) {
        f->table.torsion[r] = (tsr_torsion_mixture){.count = 1, .n = 2};
        for (int b = 0; b < 2; b++)
            f->table.torsion[r].part[b] = (tsr_von_mises){
                weight[b], centre[b][0], centre[b][1], 60.0, 60.0, 0.0};
    }
    for (int b = 0; b < 2; b++) {
        set_torsions(f, f->c, centre[b][0], centre[b][1]);
        d[b] = tsr_vec3_distance(f->c->backbone[1][TSR_CA],
                                 f->c->backbone[7][TSR_CA]);
    }
    make_prior(f, fmin(d[0], d[1]), fabs(d[0] - d[1]) / 1.5);
}

static int basin_of(const fixture *f, const tsr_conformation *c)
{
    return tsr_conformation_torsion(f->t, c, 4, TSR_PHI) > 0.0;
}

/* Share of the second basin, by the trapezoidal rule. */
static double share_by_quadrature(const fixture *f, tsr_conformation *c)
{
    enum { N = 40 };
    double sum[2] = {0.0, 0.0};
    for (int b = 0; b < 2; b++)
        for (int i = -N; i <= N; i++)
            for (int j = -N; j <= N; j++) {
                set_torsions(f, c, centre[b][0] + 0.02 * i,
                             centre[b][1] + 0.02 * j);
                sum[b] += exp(tsr_prior_log_reference(f->prior, c));
            }
    return sum[1] / (sum[0] + sum[1]);
}

/* Share of the second basin over a chain that starts in the first, with its
 * standard error by batch means. */
static double share_of_chain(fixture *f, const tsr_members *members,
                             double *error)
{
    enum { N_BATCH = 50, EACH = 6400 };
    const void *options[TSR_N_MOVE] = {NULL};
    struct {
        double weight, step, uniform, draw, target;
    } small = {1.0, 0.1, 0.0, 0.0, 0.3};
    const tsr_pool_move_options pool = {1.0, members};
    double batch[N_BATCH] = {0.0}, mean = 0.0, squares = 0.0;
    options[TSR_MOVE_pivot] = &small;
    options[TSR_MOVE_pool] = members != NULL ? &pool : NULL;
    set_torsions(f, f->c, centre[0][0], centre[0][1]);
    tsr_target target = target_of(f, f->c, 3);
    target.move_options = options;
    tsr_chain *chain = chain_of(&target, 0);
    tsr_chain_view view;
    for (int b = 0; b < N_BATCH; b++) {
        for (int i = 0; i < EACH; i++) {
            step(chain, 0);
            tsr_chain_view_get(chain, &view);
            batch[b] += (double)basin_of(f, view.conformation) / EACH;
        }
        mean += batch[b] / N_BATCH;
    }
    for (int b = 0; b < N_BATCH; b++)
        squares += (batch[b] - mean) * (batch[b] - mean);
    *error = sqrt(squares / (N_BATCH * (N_BATCH - 1.0)));
    tsr_chain_free(chain);
    return mean;
}

/* Members off the maxima, two of the rare basin and one of the other. Few and
 * wrong as they are, the shares come out right. */
TEST(two_basins)
{
    static const double at[3][2] = {{-1.2, -0.6}, {-0.9, -0.8}, {1.2, 2.3}};
    fixture f;
    double error;
    open_basins(&f);
    const double truth = share_by_quadrature(&f, f.c);
    tsr_members *members = own_tsr_members(tsr_members_new(f.t));
    assert_true(share_of_chain(&f, NULL, &error) == 0.0);
    for (int m = 0; m < 3; m++) {
        set_torsions(&f, f.c, at[m][0], at[m][1]);
        OK(tsr_members_add(members, f.c, &err));
    }
    const double share = share_of_chain(&f, members, &error);
    if (!(error < 0.01 && fabs(share - truth) < 3.5 * error))
        fail_msg("share %.4f +- %.4f, by quadrature %.4f", share, error, truth);
    assert_true(fabs(truth - weight[1]) > 0.05); /* the restraint matters */
}

/* A start at a member has its torsions, and all else of the structure. */
TEST(apply_a_member)
{
    for (int k = 0; k < N_CASE; k++) {
        fixture f;
        open_case(&f, &cases[k]);
        const tsr_pool_move_options *o = f.options[TSR_MOVE_pool];
        const tsr_members *p = o->members;
        const int n = f.t->n_residue;
        tsr_conformation *to = new_conformation(f.t);
        internal_geometry *was = array((size_t)n, sizeof *was),
                          *is = array((size_t)n, sizeof *is);
        measure_geometry(f.t, f.c, was);
        for (int m = 0; m < p->n; m++) {
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
