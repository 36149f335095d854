/* Two rigid chains in contact: draws of the prior reach all placements from any
 * start, and the posterior's shares of placements and its evidence are those of
 * placements drawn without a chain: uniform in a ball and over all rotations,
 * kept or weighted by prior and likelihood. */
#include "tests/property/importance.h"
#include "tests/property/moves_support.h"
#include "tests/test.h"

#include "analysis/evidence.h"

static const test_case pair = {
    "pair", "AKVGLS/SAKLG", "", "B", {NULL, NULL}, TSR_CLASH_SOFT, 0.0, 0, 3};

/* ---- placements without a chain ---- */

/* Bodies of chain A come first. */
static int n_first(const fixture *f)
{
    return f->t->residue[f->t->chain_start[1]].first_body;
}

static void middle(const fixture *f, const tsr_conformation *c, int chain,
                   double out[3])
{
    const int n = n_first(f);
    tsr_centroid(chain == 0 ? n : f->t->n_body - n, NULL,
                 (const double(*)[3])c->body + (chain == 0 ? 0 : n), out);
}

static double radius(const fixture *f, int chain)
{
    double from[3], most = 0.0;
    middle(f, f->c, chain, from);
    for (int b = chain == 0 ? 0 : n_first(f);
         b < (chain == 0 ? n_first(f) : f->t->n_body); b++)
        most = fmax(most, tsr_vec3_distance(f->c->body[b], from));
    return most;
}

/* Contacts of A and B, over all pairs. */
static int count_pairs(const fixture *f, const tsr_conformation *c)
{
    int n = 0;
    for (int a = 0; a < n_first(f); a++)
        for (int b = n_first(f); b < f->t->n_body; b++)
            n += tsr_vec3_distance(c->body[a], c->body[b]) < TSR_CONTACT_ANG;
    return n;
}

/* Draws placements of B until one is kept. Returns how many were drawn: one for
 * each equal part of the ball's volume and of the rotations. */
static long draw_exact(const fixture *f, gsl_rng *rng, tsr_conformation *c)
{
    const double ball = radius(f, 0) + radius(f, 1) + TSR_CONTACT_ANG;
    const int first = f->t->chain_start[1], last = f->t->n_residue - 1;
    for (long n = 1;; n++) {
        double a[3], b[3], q[4], to[3];
        tsr_motion motion;
        middle(f, c, 0, a);
        middle(f, c, 1, b);
        for (int k = 0; k < 4; k++)
            q[k] = gsl_ran_gaussian(rng, 1.0);
        for (int d = 0; d < 3; d++)
            to[d] = b[d] + q[d];
        tsr_motion_about(&motion, b, to, 2.0 * atan2(tsr_vec3_norm(q), q[3]));
        gsl_ran_dir_3d(rng, &q[0], &q[1], &q[2]);
        const double r = ball * cbrt(gsl_rng_uniform_pos(rng));
        for (int d = 0; d < 3; d++)
            motion.shift[d] += a[d] + r * q[d] - b[d];
        tsr_conformation_move(f->t, c, first, last, &motion);
        assert_int_equal(tsr_prior_is_in_contact(f->t, c),
                         count_pairs(f, c) >= pair.contacts);
        if (log(gsl_rng_uniform_pos(rng)) <
            tsr_prior_log_reference(f->prior, c))
            return n;
    }
}

/* ---- what is compared ---- */

/* Direction and distance of the middles, and the axes of B: A stays. */
enum { N_PLACE = 10 };
static void measure_place(const fixture *f, const tsr_conformation *c,
                          double value[N_PLACE])
{
    double a[3], b[3], frame[3][3];
    const int i = f->t->chain_start[1];
    middle(f, c, 0, a);
    middle(f, c, 1, b);
    tsr_vec3_sub(value, b, a);
    value[3] = tsr_vec3_norm(value);
    tsr_vec3_normalize(value);
    tsr_frame(frame, c->backbone[i][TSR_N], c->backbone[i][TSR_CA],
              c->backbone[i][TSR_C]);
    for (int k = 0; k < 6; k++)
        value[4 + k] = frame[k / 2][k % 2];
}

/* Starts of groups: from one placement, as many steps as a run makes of the
 * prior, are draws of all orientations and directions. */
TEST(starts_cover_all_placements)
{
    enum { N = 400, N_EXACT = 4000, STEPS = 500 };
    fixture f;
    open_case(&f, &pair);
    gsl_rng *rng = rng_new(50, 0);
    tsr_conformation *c = new_conformation(f.t);
    double *exact = array(N_EXACT * N_PLACE, sizeof *exact), one[N_PLACE];
    double *drawn = array(N * N_PLACE, sizeof *drawn);
    tsr_conformation_copy(f.t, c, f.c, 0, f.t->n_residue);
    for (int i = 0; i < N_EXACT; i++) {
        draw_exact(&f, rng, c);
        measure_place(&f, c, one);
        for (int v = 0; v < N_PLACE; v++)
            exact[v * N_EXACT + i] = one[v];
    }
    OK(tsr_fields_init(tsr_move_place.fields, f.option[TSR_MOVE_place], &err));
    OK(tsr_fields_init(tsr_move_rigid_body.fields,
                       f.option[TSR_MOVE_rigid_body], &err));
    const tsr_target target = target_of(&f, f.c, 9);
    for (int i = 0; i < N; i++) {
        tsr_chain *chain = chain_of(&target, i);
        tsr_chain_view view;
        for (int k = 0; k < STEPS; k++)
            step(chain, k < STEPS / 2);
        tsr_chain_view_get(chain, &view);
        measure_place(&f, view.conformation, one);
        for (int v = 0; v < N_PLACE; v++)
            drawn[v * N + i] = one[v];
        tsr_chain_free(chain);
    }
    for (int v = 0; v < N_PLACE; v++) {
        gsl_sort(&exact[v * N_EXACT], 1, N_EXACT);
        const double p = ks_p(N, &drawn[v * N], N_EXACT, &exact[v * N_EXACT]);
        if (p * N_PLACE < 1e-3)
            fail_msg("value %d of %d: p = %g", v, N_PLACE, p);
    }
}

/* ---- the posterior ---- */

enum { N_CLUSTER = 6, N_GROUP = 8, EACH = 64, N_WEIGHED = 80000 };

/* Root mean square distance of B, the ligand, with A in its place. */
static double ligand_rmsd(const fixture *f, const tsr_conformation *a,
                          const tsr_conformation *b)
{
    double sum = 0.0;
    for (int i = f->t->chain_start[1]; i < f->t->n_residue; i++)
        sum +=
            tsr_vec3_distance2(a->backbone[i][TSR_CA], b->backbone[i][TSR_CA]);
    return sqrt(sum / (f->t->n_residue - f->t->chain_start[1]));
}

/* The cluster whose centre is nearest, as shares; then the log likelihood. */
static void see_cluster(const fixture *f, tsr_conformation *const *centre,
                        const tsr_conformation *c, double log_lik,
                        double value[N_CLUSTER + 1])
{
    int best = 0;
    for (int k = 1; k < N_CLUSTER; k++)
        if (ligand_rmsd(f, centre[k], c) < ligand_rmsd(f, centre[best], c))
            best = k;
    for (int k = 0; k < N_CLUSTER; k++)
        value[k] = k == best;
    value[N_CLUSTER] = log_lik;
}

/* Data of one placement; the molecule is that of the fixture. */
static void open_posterior(posterior_sample *s, fixture *f, int n_chain)
{
    const double one = 1.0;
    gsl_rng *rng = rng_new(51, 0);
    tsr_conformation *truth = new_conformation(f->t);
    posterior_open(s, "GAG", NULL, f->options_prior); /* its q and factors */
    s->t = f->t, s->extended = f->c, s->prior = f->prior;
    tsr_conformation_copy(f->t, truth, f->c, 0, f->t->n_residue);
    draw_exact(f, rng, truth);
    posterior_data(s, 1, (const tsr_conformation *const *)&truth, &one, 0.003,
                   1.3, 0.05, 0.0, rng);
    s->target.topology = f->t, s->target.first = f->c;
    s->target.prior = f->prior;
    posterior_start(s, 0.0, n_chain, 0);
}

/* Weighs exact draws. Returns the log evidence. */
static double by_weights(const posterior_sample *s, const fixture *f,
                         tsr_conformation *const *centre,
                         double mean[N_CLUSTER + 1],
                         double error[N_CLUSTER + 1])
{
    double(*value)[N_CLUSTER + 1] = array(N_WEIGHED, sizeof *value);
    double *w = array(N_WEIGHED, sizeof *w), log_sum;
    double *profile = array((size_t)s->likelihood->grid.n_q, sizeof *profile);
    gsl_rng *rng = rng_new(52, 0);
    tsr_conformation *c = new_conformation(f->t);
    tsr_point point;
    saxs_point(s->likelihood, &point);
    NEW(tsr_batch, batch, tsr_batch_new, s->share.engine, 1);
    tsr_conformation_copy(f->t, c, f->c, 0, f->t->n_residue);
    for (int i = 0; i < N_WEIGHED; i++) {
        draw_exact(f, rng, c);
        OK(tsr_batch_set(batch, 0, (const double(*)[3])c->body, profile, &err));
        w[i] = saxs_evaluate(s->likelihood, profile, 1.0, rng, &point);
        see_cluster(f, centre, c, w[i], value[i]);
    }
    const double n = weighted_means(N_WEIGHED, N_CLUSTER + 1, value[0], w, mean,
                                    error, &log_sum);
    print_message("  %.0f effective weighted draws\n", n);
    assert_true(n > 300.0);
    tsr_point_clear(&point);
    return log_sum - log(N_WEIGHED);
}

/* Brings groups that start from one placement to the posterior: the mean values
 * and the log evidence of each, and the levels that pooled groups. */
static int populate(posterior_sample *s, fixture *f, int n_group, int each,
                    tsr_conformation *const *centre,
                    double (*group)[N_CLUSTER + 1], double *log_z)
{
    tsr_conformation *start[N_GROUP];
    for (int g = 0; g < n_group; g++)
        start[g] = f->c, log_z[g] = (double)NAN;
    s->target.n_group = n_group, s->target.chains_each = each;
    s->target.group_start = start, s->target.group_log_z = log_z;
    posterior_run run = posterior_run_new(s, n_group * each, 2, 1);
    OK(tsr_sampler_populate(run.sampler, run.record, 60, 0.0, NULL, NULL,
                            &err));
    for (int i = 0; i < n_group * each; i++) {
        tsr_chain_view view;
        double value[N_CLUSTER + 1];
        tsr_chain_view_get(tsr_sampler_chain(run.sampler, i), &view);
        see_cluster(f, centre, view.conformation, view.log_lik, value);
        for (int v = 0; v <= N_CLUSTER; v++)
            group[i / each][v] += value[v] / each;
    }
    return tsr_sampler_population(run.sampler).n_pooled;
}

static void agree(const double *mean, const double *error, const double *exact,
                  const double *exact_error)
{
    for (int v = 0; v <= N_CLUSTER; v++) {
        print_message("  %s %d: %.4f +- %.4f, weighted %.4f +- %.4f\n",
                      v < N_CLUSTER ? "cluster" : "log likelihood", v, mean[v],
                      error[v], exact[v], exact_error[v]);
        assert_near(exact[v], mean[v],
                    4.5 * hypot(error[v], exact_error[v]) + 1e-9);
    }
}

/* Populations that start from one placement find every cluster with its
 * probability, and the evidence; so do pairs of small groups that are pooled,
 * weighted by their evidence. */
TEST(clusters_have_their_probabilities)
{
    enum { N_PAIR = 192, FEW = 8 };
    double mean[2][N_CLUSTER + 1], error[2][N_CLUSTER + 1], log_z[2 * N_PAIR];
    double group[2 * N_PAIR][N_CLUSTER + 1] = {{0.0}}, sd, log_sum;
    tsr_conformation *centre[N_CLUSTER];
    int n_pooled = 0;
    fixture f;
    posterior_sample s;
    open_case(&f, &pair);
    open_posterior(&s, &f, N_GROUP * EACH);
    gsl_rng *rng = rng_new(53, 0);
    for (int k = 0; k < N_CLUSTER; k++) {
        centre[k] = new_conformation(f.t);
        tsr_conformation_copy(f.t, centre[k], f.c, 0, f.t->n_residue);
        draw_exact(&f, rng, centre[k]);
    }
    const double exact = by_weights(&s, &f, centre, mean[0], error[0]);
    populate(&s, &f, N_GROUP, EACH, centre, group, log_z);
    block_means(N_GROUP, N_CLUSTER + 1, group[0], mean[1], error[1]);
    agree(mean[1], error[1], mean[0], error[0]);
    const double made = tsr_evidence_pool_groups(N_GROUP, log_z, &sd);
    print_message("  log Z %.3f +- %.3f, weighted %.3f\n", made, sd, exact);
    assert_near(made, exact, 4.0 * sd + 0.1);

    memset(group, 0, sizeof group);
    open_posterior(&s, &f, 2 * FEW); /* the same data */
    for (int k = 0; k < N_PAIR; k++) {
        s.target.seed = 60 + (uint64_t)k;
        n_pooled +=
            populate(&s, &f, 2, FEW, centre, &group[2 * k], &log_z[2 * k]);
    }
    const double n = weighted_means(2 * N_PAIR, N_CLUSTER + 1, group[0], log_z,
                                    mean[1], error[1], &log_sum);
    print_message("  pairs of groups, %d levels pooled; log Z %.3f\n", n_pooled,
                  log_sum - log(2 * N_PAIR));
    assert_true(n_pooled > N_PAIR / 5);
    agree(mean[1], error[1], mean[0], error[0]);
    assert_near(log_sum - log(2 * N_PAIR), exact,
                3.0 * sqrt(1.0 / n - 0.5 / N_PAIR) + 0.05);
}
