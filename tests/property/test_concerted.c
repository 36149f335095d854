/* The concerted rotation keeps the prior, its correction is the Jacobian of the
 * map, and fixed atoms stay to the bit. */
#include "tests/geometry.h"
#include "tests/model_sample.h"
#include "tests/objects.h"
#include "tests/test.h"

#include "core/vec3.h"
#include "molecule/topology.h"
#include "moves/closure.h"
#include "moves/concerted.h"
#include "moves/move.h"

#include <gsl/gsl_linalg.h>
#include <gsl/gsl_randist.h>

typedef struct {
    tsr_prior_table table;
    tsr_topology *t;
    tsr_conformation *c, *other;
    tsr_prior *prior;
    unsigned char options[256];
    void *move;
    gsl_rng *rng;
    internal_geometry *internal;
} fixture;

static const tsr_move_type *const move = &tsr_move_concerted;

static void set_option(fixture *f, const char *name, const char *text)
{
    const tsr_field *field = tsr_field_find(move->fields, name);
    OK(tsr_field_parse(field, f->options, text, &err));
}

static void open_fixture(fixture *f, const char *sequence, uint64_t seed,
                         const char *residues, const char *step)
{
    err = (tsr_err){0};
    tsr_prior_options options = {.clash = TSR_CLASH_NONE, .softness = 0.5};
    memset(f, 0, sizeof *f);
    sample_prior_table(&f->table);
    sample_chain(sequence, NULL, &f->table, &f->t, &f->c);
    f->other = new_conformation(f->t);
    f->internal = array((size_t)f->t->n_residue, sizeof *f->internal);
    MAKE(tsr_prior, f->prior, tsr_prior_new, f->t, &f->table, &options, 0.0);
    OK(tsr_fields_init(move->fields, f->options, &err));
    assert_true(move->options_size <= sizeof f->options);
    set_option(f, "residues", residues);
    set_option(f, "step", step);
    f->rng = rng_new(seed, 0);
    f->move = move->state_new(new_pool(), f->options, f->t, f->prior);
    assert_non_null(f->move);
}

/* An exact draw of all torsions; bond angles somewhat off their means. */
static void draw_chain(fixture *f)
{
    int n = f->t->n_residue;
    for (int i = 0; i < n; i++) {
        double phi, psi;
        tsr_prior_torsion_draw(f->prior, i, f->rng, &phi, &psi);
        f->internal[i] = geometry_ideal(phi, psi);
        if (i > 0)
            f->internal[i].n_ca_c += gsl_ran_flat(f->rng, -0.1, 0.1);
    }
    build_geometry(f->t, f->internal, f->c);
    tsr_conformation_copy(f->t, f->other, f->c, 0, n);
}

static void circles(const fixture *f, const tsr_conformation *c, int i,
                    double phi[2], double psi[2])
{
    double a = tsr_conformation_torsion(f->t, c, i, TSR_PHI);
    double b = tsr_conformation_torsion(f->t, c, i, TSR_PSI);
    phi[0] = cos(a), phi[1] = sin(a), psi[0] = cos(b), psi[1] = sin(b);
}

static double log_torsions(const fixture *f, const tsr_conformation *c,
                           const tsr_proposal *p)
{
    double sum = 0.0, phi[2], psi[2];
    for (int i = p->span[0].first; i < p->span[0].first + p->span[0].count;
         i++) {
        circles(f, c, i, phi, psi);
        sum += tsr_prior_torsion_log(f->prior, i, phi, psi);
    }
    return sum;
}

/* One Metropolis-Hastings step; returns 1 where it was accepted. */
static int step(fixture *f, double *accept)
{
    tsr_proposal p;
    move->propose(f->move, f->c, f->other, f->rng, &p);
    *accept = 0.0;
    if (p.n_span > 0)
        *accept = fmin(1.0, exp(log_torsions(f, f->other, &p) -
                                log_torsions(f, f->c, &p) + p.log_ratio));
    int accepted = gsl_rng_uniform(f->rng) < *accept;
    for (int k = 0; k < p.n_span; k++) {
        tsr_conformation *to = accepted ? f->c : f->other;
        tsr_conformation_copy(f->t, to, accepted ? f->other : f->c,
                              p.span[k].first, p.span[k].count);
    }
    return accepted;
}

/* ---- prior in, prior out ---- */

enum { MAX_FEATURE = 512 };

/* Torsions, pairs of neighbours, distances, the Jacobian of the last pivots. */
static int features(const fixture *f, const tsr_conformation *c,
                    double x[MAX_FEATURE])
{
    int n = f->t->n_residue, m = 0;
    double angle[128];
    for (int i = 0; i < n; i++) {
        angle[2 * i] = tsr_conformation_torsion(f->t, c, i, TSR_PHI);
        angle[2 * i + 1] = tsr_conformation_torsion(f->t, c, i, TSR_PSI);
    }
    for (int k = 1; k < 2 * n - 1; k++) {
        x[m++] = cos(angle[k]), x[m++] = sin(angle[k]);
        x[m++] = cos(3.0 * angle[k]);
        if (k + 1 < 2 * n - 1) {
            x[m++] = cos(angle[k] - angle[k + 1]);
            x[m++] = cos(angle[k] + angle[k + 1]);
        }
    }
    for (int i = 0; i < n; i++)
        for (int j = i + 2; j < n && j < i + 6; j++)
            x[m++] = tsr_vec3_distance(c->backbone[i][TSR_CA],
                                       c->backbone[j][TSR_CA]);
    for (int a = 1; a + 3 < n; a++) {
        double axis[6][2][3];
        for (int k = 0; k < 6; k++)
            for (int e = 0; e < 2; e++)
                tsr_vec3_copy(axis[k][e], c->backbone[a + k / 2][k % 2 + e]);
        x[m++] = tsr_closure_log_det(axis);
    }
    assert_true(m <= MAX_FEATURE);
    return m;
}

/* How many times as long as in `make check`; slow_concerted.c says more. */
#ifndef LENGTH
#define LENGTH 1
#endif

/* Exact draws of a free chain, then some moves each: whatever is measured has
 * the same mean as before. Returns the largest z score; of 6000 pairs one
 * of 4.5 is a mean change of 0.06 of its spread. */
static double largest_change(fixture *f, int n_chain, int n_step,
                             double *accepted)
{
    static double before[MAX_FEATURE], after[MAX_FEATURE];
    static double sum[MAX_FEATURE], sum2[MAX_FEATURE];
    int m = 0;
    double a;
    memset(sum, 0, sizeof sum), memset(sum2, 0, sizeof sum2);
    *accepted = 0.0;
    for (int i = 0; i < n_chain; i++) {
        draw_chain(f);
        m = features(f, f->c, before);
        for (int k = 0; k < n_step; k++)
            *accepted += step(f, &a) / (double)n_step / n_chain;
        features(f, f->c, after);
        for (int k = 0; k < m; k++) {
            double d = after[k] - before[k];
            sum[k] += d, sum2[k] += d * d;
        }
    }
    double largest = 0.0;
    for (int k = 0; k < m; k++)
        if (sum2[k] > 1e-6 * n_chain) { /* phi of proline: only rounding */
            double z = sum[k] / sqrt(sum2[k]);
            largest = fmax(largest, fabs(z));
        }
    return largest;
}

TEST(prior_out)
{
    const struct {
        const char *sequence, *residues, *step, *stiffness, *width;
    } runs[] = {{"AGKAW", "1", "1", "1", "1"},
                {"AGKAWI", "2", "3", "3", "100"},
                {"AGKAWIV", "3", "0.5", "0", "100"},
                {"MKPTAYGPAKVQ", "4", "0.5", "1", "1"}};
    for (int r = 0; r < 4; r++) {
        fixture f;
        double accepted;
        open_fixture(&f, runs[r].sequence, (uint64_t)(50 + r), runs[r].residues,
                     runs[r].step);
        set_option(&f, "width", runs[r].width);
        set_option(&f, "stiffness", runs[r].stiffness);
        f.move = move->state_new(new_pool(), f.options, f.t, f.prior);
        double z = largest_change(&f, 3000 * LENGTH, 8, &accepted);
        print_message("%s: %.2f accepted, z %.2f\n", runs[r].sequence, accepted,
                      z);
        assert_true(accepted > 0.02);
        assert_true(z < 4.5);
    }
}

/* ---- one proposal ---- */

TEST(log_ratios)
{
    fixture f;
    open_fixture(&f, "MKTAYIAKQRPGISFVKSHF", 8, "4", "0.3");
    int n = f.t->n_residue, n_made = 0, n_loose = 0;
    double largest = 0.0, worst = 0.0, worst_back = 0.0;
    for (int i = 0; i < 20000; i++) {
        tsr_proposal p;
        if (i % 10 == 0)
            draw_chain(&f);
        move->propose(f.move, f.c, f.other, f.rng, &p);
        if (p.n_span > 0) {
            double there = move->log_ratio(f.move, f.c, f.other, &p);
            double back = move->log_ratio(f.move, f.other, f.c, &p);
            largest = fmax(largest, fabs(there));
            worst = fmax(worst, fabs(there - p.log_ratio));
            worst_back = fmax(worst_back, fabs(there + back));
            n_loose += fabs(there + back) > 1e-9;
            n_made++;
        }
        tsr_conformation_copy(f.t, f.other, f.c, 0, n);
    }
    print_message("%d proposals, from propose %g, back %g, %d above 1e-9\n",
                  n_made, worst, worst_back, n_loose);
    assert_true(n_made > 5000 && largest > 1.0);
    /* nearly singular closures lose digits; D is at least exp(-5) */
    assert_true(worst < 1e-9 && worst_back < 1e-8);
    assert_true(n_loose < n_made / 1000);
}

TEST(held_ends_stay)
{
    fixture f;
    open_fixture(&f, "MKTAYIAKQRPGISFVKSHF", 9, "4", "0.3");
    int n = f.t->n_residue, n_none = 0;
    size_t n_body = (size_t)f.t->n_body;
    for (int i = 0; i < 4000; i++) {
        tsr_proposal p;
        draw_chain(&f);
        move->propose(f.move, f.c, f.other, f.rng, &p);
        n_none += p.n_span == 0;
        assert_in_range(p.n_span, 0, 1);
        int first = p.n_span ? p.span[0].first : n;
        int last = p.n_span ? first + p.span[0].count - 1 : n;
        for (int r = 0; r < n; r++) {
            const tsr_residue *q = &f.t->residue[r];
            int moved = r >= first && r <= last;
            for (int a = 0; a < 4; a++) {
                int held = !moved || (r == first && a < TSR_C) ||
                           (r == last && a > TSR_N);
                if (held)
                    assert_memory_equal(f.c->backbone[r][a],
                                        f.other->backbone[r][a],
                                        sizeof f.c->backbone[r][a]);
            }
            if (!moved)
                assert_memory_equal(f.c->body[q->first_body],
                                    f.other->body[q->first_body],
                                    (size_t)q->n_body * sizeof *f.c->body);
        }
        if (p.n_span == 0)
            continue;
        /* bodies are where the atoms say */
        tsr_conformation *c = f.other;
        double(*body)[3] = array(n_body, sizeof *body);
        memcpy(body, c->body, n_body * sizeof *body);
        tsr_conformation_place_bodies(f.t, c, first, last - first + 1);
        for (size_t b = 0; b < n_body; b++)
            assert_true(tsr_vec3_distance(body[b], c->body[b]) < 1e-12);
    }
    assert_true(n_none > 0 && n_none < 3000);
}

TEST(geometry_keeps)
{
    fixture f;
    open_fixture(&f, "MKTAYIAKQRPGISFV", 10, "4", "0.3");
    int n = f.t->n_residue;
    internal_geometry *was = f.internal, *is = array((size_t)n, sizeof *is);
    double a, worst = 0.0;
    int n_step = 50000 * LENGTH, accepted = 0;
    draw_chain(&f);
    measure_geometry(f.t, f.c, was);
    for (int i = 0; i < n_step; i++)
        accepted += step(&f, &a);
    measure_geometry(f.t, f.c, is);
    for (int i = 0; i < n; i++) {
        double d[8] = {is[i].n_ca - was[i].n_ca,
                       is[i].ca_c - was[i].ca_c,
                       is[i].c_o - was[i].c_o,
                       is[i].n_ca_c - was[i].n_ca_c,
                       is[i].ca_c_o - was[i].ca_c_o,
                       i > 0 ? is[i].c_n - was[i].c_n : 0.0,
                       i > 0 ? is[i].ca_c_n - was[i].ca_c_n : 0.0,
                       i > 0 ? is[i].c_n_ca - was[i].c_n_ca : 0.0};
        for (int k = 0; k < 8; k++)
            worst = fmax(worst, fabs(d[k]));
        if (i > 0)
            worst = fmax(worst, fabs(sin(is[i].omega - was[i].omega)));
        if (i < n - 1) /* O moves with its peptide plane */
            worst = fmax(worst, fabs(sin(is[i].o_torsion - is[i].psi -
                                         was[i].o_torsion + was[i].psi)));
    }
    print_message("%d of %d accepted, geometry off by %g\n", accepted, n_step,
                  worst);
    assert_true(accepted > n_step / 100);
    assert_true(worst < 1e-8);
}

/* log N(d; 0, C(x)) but for what is the same at x and x', from displacements by
 * finite differences. */
static double log_normal(const tsr_window *w, const tsr_conformation *c,
                         const double d[], double width, double kappa)
{
    const double h = 1e-5;
    int n = w->n_turn;
    double moved[TSR_MAX_TURN][9], m[TSR_MAX_TURN * TSR_MAX_TURN], sum = 0.0;
    for (int i = 0; i < n; i++) {
        double(*x)[3] = c->backbone[w->turn[i].residue];
        int at = w->turn[i].kind == TSR_PHI ? TSR_N : TSR_CA;
        for (int e = 0; e < 3; e++) {
            double y[2][3];
            for (int side = 0; side < 2; side++) {
                tsr_motion turn;
                tsr_motion_about(&turn, x[at], x[at + 1], side ? h : -h);
                tsr_vec3_copy(y[side], c->backbone[w->pivots.a][e]);
                tsr_motion_apply(&turn, y[side]);
            }
            for (int k = 0; k < 3; k++)
                moved[i][3 * e + k] = (y[1][k] - y[0][k]) / (2.0 * h);
        }
    }
    for (int i = 0; i < n; i++)
        for (int j = 0; j < n; j++) {
            double p = i == j;
            for (int e = 0; e < 9; e++)
                p += kappa * moved[i][e] * moved[j][e];
            m[n * i + j] = p / (width * width);
            sum -= 0.5 * d[i] * m[n * i + j] * d[j];
        }
    int sign;
    gsl_matrix_view view = gsl_matrix_view_array(m, (size_t)n, (size_t)n);
    gsl_permutation *order = gsl_permutation_alloc((size_t)n);
    gsl_linalg_LU_decomp(&view.matrix, order, &sign);
    gsl_permutation_free(order);
    return sum + 0.5 * gsl_linalg_LU_lndet(&view.matrix);
}

/* Stiffness enters the correction by the density of the turns alone. */
TEST(density_of_turns)
{
    fixture f;
    tsr_window w[32];
    open_fixture(&f, "MKTAYIAPQRVG", 12, "4", "0.3");
    set_option(&f, "stiffness", "1");
    f.move = move->state_new(new_pool(), f.options, f.t, f.prior);
    assert_true(tsr_window_list(f.t, 4, w) > 5);
    set_option(&f, "stiffness", "0");
    void *loose = move->state_new(new_pool(), f.options, f.t, f.prior);
    double largest = 0.0;
    for (int i = 0; i < 2000; i++) {
        tsr_proposal p;
        double d[TSR_MAX_TURN];
        draw_chain(&f);
        move->propose(f.move, f.c, f.other, f.rng, &p);
        if (p.n_span == 0)
            continue;
        const tsr_window *at = &w[p.target];
        for (int k = 0; k < at->n_turn; k++) {
            int r = at->turn[k].residue;
            tsr_torsion_kind kind = at->turn[k].kind;
            d[k] = remainder(tsr_conformation_torsion(f.t, f.other, r, kind) -
                                 tsr_conformation_torsion(f.t, f.c, r, kind),
                             2.0 * TSR_PI);
        }
        double turns = log_normal(at, f.other, d, 0.3, 1.0) -
                       log_normal(at, f.c, d, 0.3, 1.0);
        double less = move->log_ratio(loose, f.c, f.other, &p);
        assert_near(p.log_ratio - less, turns, 1e-6);
        largest = fmax(largest, fabs(turns));
    }
    assert_true(largest > 0.5);
}

/* ---- windows ---- */

TEST(windows)
{
    fixture f;
    tsr_window w[32];
    open_fixture(&f, "AAAAPAAA", 11, "4", "0.3");
    /* pivots 1 2 3 5 6; a needs a residue before and two pivots behind */
    assert_int_equal(tsr_window_list(f.t, 4, w), 3);
    assert_int_equal(move->n_target(f.options, f.t), 3);
    assert_int_equal(w[0].first, 0);
    assert_int_equal(w[0].n_turn, 1); /* psi: the chain starts there */
    assert_int_equal(w[1].pivots.a, 2);
    assert_int_equal(w[1].pivots.b, 3);
    assert_int_equal(w[1].pivots.c, 5); /* over the proline */
    assert_int_equal(w[1].n_turn, 3);
    assert_int_equal(tsr_window_list(f.t, 1, w), 3);
    assert_int_equal(w[2].first, 2);
    f.t->residue[3].linked = 0;
    f.t->residue[3].has_phi = f.t->residue[2].has_psi = 0;
    assert_int_equal(tsr_window_list(f.t, 4, w), 0);
}
