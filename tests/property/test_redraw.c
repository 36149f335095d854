/* Redrawn stretches give the posterior of weighted draws of the prior.
 *
 * A redraw's ends equal beads summed one by one in double precision and the
 * prior's own functions, and a job gives the same bits wherever it stands. */
#include "tests/property/walking.h"
#include "tests/test.h"

/* A tail, a linker, and a tail at the other end. */
static const tsr_strings all_kinds = {
    3, (char *[]){"A:1-4", "A:11-15", "A:23-26"}};

/* Linkers that are drawn as a whole, and a part of which is. */
static const tsr_strings long_linker = {1, (char *[]){"A:5-20"}},
                         longest_linker = {1, (char *[]){"A:4-24"}};

static void open_redrawing(walking *w, const char *sequence,
                           const tsr_strings *flexible, int with_water,
                           double e, int n_state)
{
    open_kind(w, TSR_MOVE_redraw, sequence, flexible, with_water, e, n_state);
    /* a chain that is all flexible turns either end about its middle */
    assert_int_equal(tsr_redraw_n_stretch(tsr_surrogate_spec_of(w->surrogate)),
                     flexible == NULL ? 2 : (int)flexible->n);
}

/* Sets how often each stretch is redrawn, in the job that waits. */
static void set_shares(const walking *w, const walking_chain *c, float share)
{
    const int n = tsr_redraw_n_stretch(tsr_surrogate_spec_of(w->surrogate));
    for (int i = 0; i < n; i++)
        c->walker->call.job[c->walker->layout.width + i] = share;
}

/* ---- what is said of the ends ---- */

static void compare_profile(const float *told, const double *right, int n_q)
{
    for (int q = 0; q < n_q; q++)
        if (!(fabs((double)told[q] - right[q]) < 1e-4 * right[0]))
            fail_msg("bare profile %g at q %d, %g in double precision",
                     (double)told[q], q, right[q]);
}

/* log g of a stretch is that of the whole but for what stays, so that
 * differences are compared. */
static void ends_agree(const char *sequence, const tsr_strings *flexible,
                       int with_water, int n_state)
{
    enum { TIMES = 24 };
    const double beta = 0.6;
    walking w;
    open_redrawing(&w, sequence, flexible, with_water, 0.05, n_state);
    const tsr_surrogate_spec *p = tsr_surrogate_spec_of(w.surrogate);
    walking_chain c = start_chain(&w, beta);
    tsr_conformation *to = new_conformation(w.s.t);
    double *profile = array((size_t)p->n_q, sizeof *profile), farthest = 0.0;
    int n_moved = 0;
    for (int i = 0; i < TIMES; i++) {
        for (int k = 0; k < 7; k++)
            walking_step(&c, 1);
        begin_walks(&c);
        const float *result = c.walker->call.result;
        const float *bare = result + TSR_SURROGATE_HEAD;
        set_shares(&w, &c, 0.0F);
        run_jobs(c.kind, c.walker, 1);
        assert_true(isnan(bare[0]) && c.walker->call.count[0][0] == 0);
        set_shares(&w, &c, 1.0F);
        const tsr_conformation *from =
            c.chain->state[c.chain->moved_state].current;
        tsr_conformation_copy(w.s.t, to, from, 0, w.s.t->n_residue);
        run_jobs(c.kind, c.walker, 1);
        OK(tsr_surrogate_apply_turns(w.surrogate, bare + 2 * p->n_q, to, &err));
        const double c2 = with_water ? (double)c.walker->call.job[1] : 0.0,
                     c2_to = with_water ? (double)result[2] : 0.0;
        const double change = reference(&w, &c, to, c2_to, beta) -
                              reference(&w, &c, from, c2, beta);
        if (!(fabs((double)result[1] - (double)result[0] - change) <
              0.01 + 1e-3 * fabs(change)))
            fail_msg("log g changes by %.4f, by %.4f in double precision",
                     (double)result[1] - (double)result[0], change);
        const tsr_conformation *const at[] = {from, to};
        for (int k = 0; k < 2 && isfinite(bare[0]); k++) {
            sum_beads(p, &c.walker->layout, c.walker->call.job, at[k],
                      w.s.likelihood->grid.dq_inv_ang, k == 0 ? c2 : c2_to,
                      profile);
            compare_profile(bare + k * p->n_q, profile, p->n_q);
        }
        n_moved += tsr_vec3_distance(from->body[0], to->body[0]) > 1e-3 ||
                   fabs(change) > 1e-2;
        farthest = fmax(farthest, fabs(change));
    }
    assert_true(n_moved > TIMES / 3); /* a long linker often stays */
    assert_true(farthest > 0.5);
}

TEST(ends_agree_with_double_precision)
{
    ends_agree(two_parts, &all_kinds, 1, 1);
    ends_agree(two_parts, &all_kinds, 0, 2);
    ends_agree("GASFPLGKAVTDEG", NULL, 1, 1);
    ends_agree(two_parts, &long_linker, 1, 1);
    ends_agree(two_parts, &longest_linker, 1, 1);
}

/* ---- jobs ---- */

TEST(jobs_do_not_matter_to_each_other)
{
    walking w;
    open_redrawing(&w, two_parts, &all_kinds, 1, 0.05, 1);
    assert_true(compare_launches(&w) > 0); /* some leave all as it is */
}

/* ---- how often ---- */

/* Where a curve leaves one shape of the linker, hardly a redraw is tried. */
TEST(useless_redraws_are_rare)
{
    const tsr_strings linker = {1, (char *[]){"A:9-16"}};
    for (int is_cold = 0; is_cold < 2; is_cold++) {
        walking w;
        open_redrawing(&w, two_parts, &linker, 1, is_cold ? 1e-4 : 0.05, 1);
        walking_chain c = start_chain(&w, is_cold ? 1.0 : 1e-3);
        const float *share = c.walker->call.job + c.walker->layout.width;
        for (int k = 0; k < 400; k++)
            walking_step(&c, 1);
        begin_walks(&c);
        print_message("  a redraw is tried with probability %.3f\n",
                      (double)*share);
        assert_true(is_cold ? *share < 0.3F : *share == 1.0F);
    }
}

/* ---- what chains find ---- */

TEST(posterior_is_exact)
{
    for (int cold = 0; cold < 2; cold++) {
        walking w;
        open_redrawing(&w, "GASFPLGK", NULL, 1, 0.04, 1);
        compare(&w, cold ? 1.0 : 0.3, 20000, 800);
    }
}

TEST(stretches_keep_the_posterior)
{
    const tsr_strings linker = {1, (char *[]){"A:9-16"}},
                      tail = {1, (char *[]){"A:1-12"}};
    const tsr_strings *const kind[] = {&linker, &tail, &long_linker,
                                       &longest_linker};
    for (size_t k = 0; k < COUNT_OF(kind); k++) {
        walking w;
        open_redrawing(&w, two_parts, kind[k], 1, 0.04, 1);
        /* draws of long linkers seldom fit a curve */
        compare(&w, k < 2 ? 0.5 : 0.1, 20000, k < 2 ? 800 : 400);
    }
}
