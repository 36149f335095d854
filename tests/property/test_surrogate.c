/* Walks by a surrogate give the posterior of weighted draws of the prior.
 *
 * The device's sums equal beads summed one by one in double precision, a walk
 * ends where its rotations lead, a job gives the same bits in any launch, and
 * the surrogate is close to the likelihood once it has learnt. */
#include "tests/property/walking.h"
#include "tests/test.h"

/* Where distances are counted by knots the integers of the smaller products of
 * shapes round log g by 0.01 nat (0.03 at most in some thousand walks). */
static void device_agrees(int with_water, int n_state, int times)
{
    const double beta = 0.6;
    walking w;
    open_walking(&w, two_parts, &loose, with_water, 0.02, n_state);
    const tsr_surrogate_spec *p = tsr_surrogate_spec_of(w.surrogate);
    walking_chain c = start_chain(&w, beta);
    tsr_conformation *to = new_conformation(w.s.t);
    double farthest = 0.0;
    int n_moved = 0;
    for (int i = 0; i < times; i++) {
        for (int k = 0; k < 7; k++)
            walking_step(&c, 1);
        const float *result = c.walker->call.result;
        begin_walks(&c);
        const tsr_conformation *from =
            c.chain->state[c.chain->moved_state].current;
        tsr_conformation_copy(w.s.t, to, from, 0, w.s.t->n_residue);
        run_jobs(c.kind, c.walker, 1);
        OK(tsr_surrogate_apply_turns(
            w.surrogate, result + TSR_SURROGATE_HEAD + 2 * p->n_q, to, &err));
        const double c2 = c.walker->call.job[1];
        const double had[2] = {
            reference(&w, &c, from, c2, beta),
            reference(&w, &c, to, p->has_c2 ? (double)result[2] : c2, beta)};
        for (int k = 0; k < 2; k++)
            if (!(fabs((double)result[k] - had[k]) <
                  0.05 + 1e-4 * fabs(had[k])))
                fail_msg("log g %.4f at the %s of a walk, %.4f in double "
                         "precision",
                         (double)result[k], k == 0 ? "start" : "end", had[k]);
        n_moved += tsr_vec3_distance(from->body[0], to->body[0]) > 1e-3;
        farthest = fmax(farthest, fabs(had[1] - had[0]));
    }
    assert_true(n_moved > times / 2);
    assert_true(farthest > 0.5);
}

TEST(device_agrees_with_double_precision)
{
    device_agrees(1, 1, 12);
    device_agrees(0, 2, 12);
}

/* Small enough for a simulator of devices. */
TEST(few_walks)
{
    device_agrees(1, 1, 3);
}

/* The density of a walk's end must be the one that a walk from there would
 * begin with, also where c2 has moved, and far from the origin. Counts are
 * integers, so a bead that lies 1e-6 Angstrom elsewhere may change one of them:
 * some 1e-4 nat. */
TEST(way_back_has_the_same_density)
{
    enum { TIMES = 12 };
    const tsr_motion away = {.rotation = {{1, 0, 0}, {0, 1, 0}, {0, 0, 1}},
                             .shift = {1000.0, -600.0, 800.0}};
    walking w;
    open_walking(&w, two_parts, &loose, 1, 0.02, 1);
    const tsr_surrogate_spec *p = tsr_surrogate_spec_of(w.surrogate);
    walking_chain c = start_chain(&w, 1.0);
    tsr_conformation *to = new_conformation(w.s.t);
    tsr_conformation *from = c.chain->state[0].current;
    const tsr_surrogate_state *learnt = c.chain->move[TSR_MOVE_surrogate];
    const int at = c.chain->parameters->contrast;
    double *theta = c.chain->now.theta, farthest = 0.0;
    tsr_conformation_move(w.s.t, from, 0, w.s.t->n_residue - 1, &away);
    for (int i = 0; i < TIMES; i++) {
        const float *result = c.walker->call.result;
        theta[at + TSR_C2] = 3.0 + 0.1 * i;
        begin_walks(&c);
        run_jobs(c.kind, c.walker, 1);
        const double there = (double)result[1], c2 = (double)result[2];
        tsr_conformation_copy(w.s.t, to, from, 0, w.s.t->n_residue);
        OK(tsr_surrogate_apply_turns(
            w.surrogate, result + TSR_SURROGATE_HEAD + 2 * p->n_q, to, &err));
        theta[at + TSR_C2] = c2;
        tsr_surrogate_state one_step = *learnt;
        one_step.log_steps = 0.0;
        const tsr_move_context end = {.topology = w.s.t,
                                      .beta = 1.0,
                                      .theta = theta,
                                      .contrast = at,
                                      .weight = 1.0,
                                      .current = to};
        OK(tsr_surrogate_write_job(w.surrogate, &c.walker->layout, &one_step,
                                   &end, c.walker->call.job,
                                   c.walker->call.point, &err));
        run_jobs(c.kind, c.walker, 1);
        if (!(fabs((double)result[0] - there) < 1e-3))
            fail_msg("log g %.5f at the end of a walk, %.5f where one begins",
                     there, (double)result[0]);
        farthest = fmax(farthest, fabs(c2 - 3.0 - 0.1 * i));
    }
    assert_true(farthest > 0.01);
}

/* ---- launches ---- */

TEST(launches_do_not_matter)
{
    walking w;
    open_walking(&w, two_parts, &loose, 1, 0.02, 1);
    assert_int_equal(compare_launches(&w), N_LAUNCHED - 1);
}

/* ---- what chains find ---- */

/* A regression in the correction of the likelihood, which walks do not know. */
static void regress(const walking *w)
{
    tsr_likelihood *l = w->s.likelihood;
    const size_t n = (size_t)tsr_likelihood_n_profile(l);
    const size_t n_q = (size_t)l->grid.n_q;
    const size_t n_weight = (size_t)tsr_likelihood_n_regressor(l);
    double *mean = array(n, sizeof *mean);
    double *weight = array(n_q * n_weight, sizeof *weight);
    OK(tsr_likelihood_direct(l, w->s.t->n_body, w->s.extended, NULL, mean,
                             &err));
    for (size_t k = 0; k < n; k++)
        mean[k] += l->self[k];
    for (size_t k = 0; k < n_q; k++)
        weight[4 * n_q + k] = 0.3 * (double)k / (double)n_q;
    OK(tsr_likelihood_correct(l, 0, mean, mean, 1.0, &err));
    OK(tsr_likelihood_regress(l, 0, weight, &err));
    OK(tsr_surrogate_update(w->surrogate, &err));
}

TEST(posterior_is_exact)
{
    for (int cold = 0; cold < 2; cold++) {
        walking w;
        open_walking(&w, "GASFPLGK", NULL, 1, 0.04, 1);
        regress(&w);
        compare(&w, cold ? 1.0 : 0.3, 20000, 800);
    }
}

/* Linkers that close, and (three residues) that are too short for it. */
TEST(linkers_keep_the_posterior)
{
    for (int is_short = 0; is_short < 2; is_short++) {
        const tsr_strings middle = {
            1, (char *[]){is_short ? "A:12-14" : "A:11-15"}};
        walking w;
        open_walking(&w, two_parts, &middle, 1, 0.04, 1);
        set_steps(&w.s, 100);
        const tsr_surrogate_spec *p = tsr_surrogate_spec_of(w.surrogate);
        assert_int_equal(p->n_linker, 1);
        assert_int_equal(p->linker[0][1], is_short ? 6 : 10);
        compare(&w, 0.5, 20000, 600);
    }
}
