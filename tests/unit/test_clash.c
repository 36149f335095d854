/* The incremental sums of excluded volume and of d_limit equal the sums over
 * all pairs, to the bit.
 *
 * Bodies stand on a lattice of 1/64 Angstrom and rigid parts turn by right
 * angles, so distances are exact and the sums must agree to the last unit. */
#include "molecule/points.h"
#include "prior/prior.h"
#include "tests/freedom_sample.h"
#include "tests/test.h"

#include <gsl/gsl_randist.h>

static const char long_chain[] =
    "MKTAYIAKQRPGISFVKSHFWRQLEERLGNDCEMKTAYIAKQRPGISFVKSHFWRQLEERLGNDCE"
    "MKTAYIAKQRPGISFVKSHFWRQLEERLGNDCEMKTAYIAKQRPGISFVKSHFWRQLEERLGNDCE";
static const char two_chains[] =
    "MKTAYIAKQRPGISFVKSHFWRQLEERLGNDCEMKTAYIAKQRPGISFVKSHFWRQLEERLGNDCE/"
    "MKTAYIAKQRPGISFVKSHFWRQLEERLGNDCE/KWYRD/GK";

typedef struct {
    const char *name;
    sample_molecule m;
    double contact, softness, limit, box_ang;
    int steps;
    int closer; /* only what brings bodies closer is accepted */
} clash_case;

static const clash_case cases[] = {
    ROW("all flexible", {.sequence = long_chain}, 3.8, 0.5, 10.0, 36.0, 4000,
        0),
    ROW("rigid parts",
        {.sequence = long_chain, .ranges = {"A:34-40 A:100-104"}}, 3.8, 0.5,
        10.0, 32.0, 4000, 0),
    ROW("complex",
        {.sequence = two_chains, .ranges = {"A:30-40 B:8-12", NULL, NULL, "C"}},
        4.0, 0.5, 10.0, 34.0, 4000, 0),
    ROW("nothing impossible", {.sequence = long_chain}, 4.0, 2.0, 1e5, 26.0,
        3000, 0),
    /* more contacts than the lists hold, in time or from the start */
    ROW("lists run out", {.sequence = long_chain}, 6.0, 3.0, 1e5, 22.0, 3000,
        1),
    ROW("no lists", {.sequence = long_chain}, 12.0, 5.0, 1e5, 20.0, 500, 1),
    ROW("no lists, limit", {.sequence = long_chain}, 12.0, 4.0, 3.8, 26.0, 500,
        1)};
enum { N_CASE = COUNT_OF(cases) };

typedef struct {
    tsr_prior_table table;
    tsr_topology *t;
    tsr_conformation *first;
    tsr_clash clash;
    int n;
    double (*x)[3], (*y)[3]; /* current, proposed */
    gsl_rng *rng;
} fixture;

static double on_lattice(double x)
{
    return floor(64.0 * x) / 64.0;
}

/* Of bodies 0..end-1. */
static int64_t all_pairs(const fixture *f, const double (*x)[3], int end,
                         long *n_contact)
{
    int64_t sum = 0;
    *n_contact = 0;
    for (int a = 0; a < end; a++)
        for (int b = 0; b < a; b++) {
            int64_t term = tsr_clash_pair(&f->clash, a, x[a], b, x[b]);
            if (term == TSR_CLASH_FORBIDDEN)
                return term;
            sum += term;
            *n_contact += term != 0;
        }
    return sum;
}

/* A random walk in a box, so that neighbours in the chain are neighbours in
 * space, or anywhere in it; nothing forbidden. */
static void scatter(fixture *f, double box_ang, int walk)
{
    for (int a = 0; a < f->n; a++) {
        int clashes = 1;
        for (int tries = 0; clashes; tries++) {
            assert_true(tries < 100000);
            int is_walk = walk && a > 0 && tries < 1000;
            clashes = 0;
            for (int d = 0; d < 3; d++) {
                double from = f->x[is_walk ? a - 1 : 0][d];
                f->x[a][d] =
                    is_walk ? from + on_lattice(gsl_ran_flat(f->rng, -2.5, 2.5))
                            : on_lattice(box_ang * gsl_rng_uniform(f->rng));
                clashes |= f->x[a][d] < 0.0 || f->x[a][d] > box_ang;
            }
            for (int b = 0; b < a && !clashes; b++)
                clashes = tsr_clash_pair(&f->clash, a, f->x[a], b, f->x[b]) ==
                          TSR_CLASH_FORBIDDEN;
        }
    }
    memcpy(f->y, f->x, (size_t)f->n * sizeof *f->y);
}

static void open_fixture(fixture *f, const clash_case *k)
{
    sample_prior_table(&f->table);
    OK(sample_topology(&f->table, &k->m, &f->t, &f->first, NULL));
    f->n = f->t->n_body;
    f->clash = (tsr_clash){.topology = f->t,
                           .inverse_softness = 1.0 / k->softness,
                           .limit = k->limit};
    for (int t = 0; t < TSR_MAX_TYPE; t++)
        for (int u = 0; u < TSR_MAX_TYPE; u++) {
            f->clash.contact[t][u] = k->contact + 0.02 * ((t + u) % 7);
            f->clash.cutoff = fmax(f->clash.cutoff, f->clash.contact[t][u]);
        }
    f->x = array((size_t)f->n, sizeof *f->x);
    f->y = array((size_t)f->n, sizeof *f->y);
    f->rng = rng_new(17, 0);
    scatter(f, k->box_ang, k->limit < 100.0 && !k->closer);
}

static int below(const fixture *f, int n)
{
    return (int)gsl_rng_uniform_int(f->rng, (unsigned long)n);
}

/* One to eight spans of single bodies, some, or hundreds; now and then one
 * begins where the one before it ends. */
static int draw_spans(const fixture *f, tsr_body_span span[TSR_MAX_SPAN])
{
    int wanted = 1 + below(f, TSR_MAX_SPAN), n = 0, at = 0;
    while (n < wanted && at < f->n) {
        int size = below(f, 3);
        int first = at + (below(f, 3) == 0 ? 0 : below(f, f->n / wanted));
        int count = size == 0   ? 1
                    : size == 1 ? 1 + below(f, 12)
                                : 1 + below(f, f->n);
        if (first >= f->n)
            break;
        int end = first + count < f->n ? first + count : f->n;
        span[n++] = (tsr_body_span){first, end, below(f, 4)};
        at = end;
    }
    return n;
}

/* Right angles about a lattice point (or none), and a shift. */
typedef struct {
    int axis[3], sign[3];
    double about[3], shift[3];
} lattice_motion;

static lattice_motion draw_motion(const fixture *f, double size)
{
    static const int turns[4][2][3] = {{{0, 1, 2}, {1, 1, 1}},
                                       {{1, 0, 2}, {-1, 1, 1}},
                                       {{0, 2, 1}, {1, -1, 1}},
                                       {{2, 1, 0}, {-1, -1, -1}}};
    lattice_motion m;
    int turn = below(f, 3) > 0 ? 0 : below(f, 4);
    int body = below(f, f->n);
    for (int d = 0; d < 3; d++) {
        m.axis[d] = turns[turn][0][d];
        m.sign[d] = turns[turn][1][d];
        m.about[d] = f->x[body][d];
        m.shift[d] = on_lattice(gsl_ran_gaussian(f->rng, size));
    }
    return m;
}

static void draw_proposal(fixture *f, int n_span, const tsr_body_span *span)
{
    lattice_motion motion[4];
    for (int g = 1; g < 4; g++)
        motion[g] = draw_motion(f, below(f, 2) ? 0.05 : 1.0);
    for (int k = 0; k < n_span; k++)
        for (int b = span[k].first; b < span[k].end; b++)
            for (int d = 0; d < 3; d++) {
                const lattice_motion *m = &motion[span[k].group];
                int e = span[k].group == 0 ? d : m->axis[d];
                f->y[b][d] =
                    span[k].group == 0
                        ? f->x[b][d] + on_lattice(gsl_ran_gaussian(f->rng, 0.1))
                        : m->about[d] +
                              m->sign[d] * (f->x[b][e] - m->about[e]) +
                              m->shift[d];
            }
}

static int is_in_box(const fixture *f, double box_ang)
{
    for (int b = 0; b < f->n; b++)
        for (int d = 0; d < 3; d++)
            if (f->y[b][d] < 0.0 || f->y[b][d] > box_ang)
                return 0;
    return 1;
}

typedef struct {
    long n_forbidden, n_accepted, n_large, n_adjacent, n_full, n_empty;
} tally;

static void check_case(const clash_case *k, tally *sum)
{
    fixture f;
    int64_t total;
    long n_contact, n_then;
    open_fixture(&f, k);
    const double(*x)[3] = (const double(*)[3])f.x;
    const double(*y)[3] = (const double(*)[3])f.y;
    CLEARED(tsr_pool) pool = {0};
    tsr_clash_state *s = tsr_clash_state_new(&pool, &f.clash, x, &total);
    int64_t now = all_pairs(&f, x, f.n, &n_contact);
    assert_true(total == now);
    for (int i = 0; i < k->steps; i++) {
        tsr_body_span span[TSR_MAX_SPAN];
        int n = draw_spans(&f, span);
        draw_proposal(&f, n, span);
        sum->n_full += n_contact > 8 * f.n;
        sum->n_empty += n_contact <= 8 * f.n;
        int64_t change = tsr_clash_propose(s, x, y, n, span);
        int64_t then = all_pairs(&f, y, f.n, &n_then);
        int forbidden = then == TSR_CLASH_FORBIDDEN;
        if (forbidden != (change == TSR_CLASH_FORBIDDEN) ||
            (!forbidden && change != then - now))
            fail_msg("%s, step %d: %lld, expected %lld", k->name, i,
                     (long long)change, (long long)(then - now));
        for (int l = 0; l < n; l++) {
            sum->n_large +=
                span[l].group > 0 && span[l].end - span[l].first >= 64;
            sum->n_adjacent += l > 0 && span[l].first == span[l - 1].end;
        }
        sum->n_forbidden += forbidden;
        int accept =
            !forbidden && (k->closer ? then < now : is_in_box(&f, k->box_ang));
        sum->n_accepted += accept;
        if (accept) {
            tsr_clash_accept(s, y, n, span);
            now = then;
            n_contact = n_then;
        }
        for (int b = 0; b < f.n; b++)
            tsr_vec3_copy(accept ? f.x[b] : f.y[b], accept ? f.y[b] : f.x[b]);
    }
}

/* A test of nothing must not pass either. */
TEST(random_proposals)
{
    for (int k = 0; k < N_CASE; k++) {
        tally t = {0};
        check_case(&cases[k], &t);
        int has_limit = cases[k].limit < 100.0;
        if (t.n_accepted < 50 || t.n_large < 100 || t.n_adjacent < 100 ||
            (has_limit && t.n_forbidden < 50))
            fail_msg("%s: %ld accepted, %ld forbidden, %ld large spans, %ld "
                     "adjacent ones",
                     cases[k].name, t.n_accepted, t.n_forbidden, t.n_large,
                     t.n_adjacent);
        int is_dense = cases[k].contact > 4.5;
        if ((is_dense && t.n_full < 100) || (!is_dense && t.n_full > 0))
            fail_msg("%s: %ld steps with more contacts than the lists hold",
                     cases[k].name, t.n_full);
        if (k == 4 && t.n_empty < 5) /* they held them at first */
            fail_msg("%s: from the start", cases[k].name);
    }
}

/* One proposal finds more contacts than there is room for. */
TEST(a_proposal_beyond_the_lists)
{
    clash_case k = cases[3];
    k.contact = 12.0, k.softness = 5.0, k.box_ang = 120.0;
    fixture f;
    int64_t total;
    long few, many;
    open_fixture(&f, &k);
    const double(*x)[3] = (const double(*)[3])f.x;
    const double(*y)[3] = (const double(*)[3])f.y;
    CLEARED(tsr_pool) pool = {0};
    tsr_clash_state *s = tsr_clash_state_new(&pool, &f.clash, x, &total);
    const tsr_body_span all = {0, f.n, 0};
    int64_t old = all_pairs(&f, x, f.n, &few);
    for (int b = 0; b < f.n; b++)
        for (int d = 0; d < 3; d++)
            f.y[b][d] = 0.125 * f.x[b][d];
    int64_t new = all_pairs(&f, y, f.n, &many);
    assert_true(few < 8 * f.n && many > 16 * f.n);
    assert_true(tsr_clash_propose(s, x, y, 1, &all) == new - old);
    /* rejected, and once more */
    assert_true(tsr_clash_propose(s, x, y, 1, &all) == new - old);
    tsr_clash_accept(s, y, 1, &all);
    /* and back */
    assert_true(tsr_clash_propose(s, y, x, 1, &all) == old - new);
    tsr_clash_accept(s, x, 1, &all);
    assert_true(tsr_clash_propose(s, x, y, 1, &all) == new - old);
}

/* Three apart in a chain, any in two chains, never in one unit. */
TEST(pairs_that_count)
{
    fixture f;
    clash_case k = cases[0];
    k.m = (sample_molecule){.sequence = "AAAAAAA/AAAA/AAA",
                            .ranges = {"A:4 B:1-2", NULL, NULL, "C"}};
    open_fixture(&f, &k);
    /* units: A 000-222, B --00, C 555 */
    const double here[3] = {0.0, 0.0, 0.0}, there[3] = {3.0, 0.0, 0.0};
    const struct {
        int a, b, counts;
    } pairs[] = {{0, 1, 0},  {0, 2, 0},   {0, 3, 1},   {1, 3, 0},  {3, 5, 0},
                 {3, 6, 1},  {0, 4, 1},   {4, 6, 0},   {6, 7, 1},  {6, 8, 1},
                 {6, 9, 1},  {4, 10, 1},  {0, 9, 0},   {2, 10, 0}, {7, 9, 0},
                 {7, 10, 1}, {10, 11, 1}, {11, 13, 0}, {4, 13, 1}};
    for (size_t p = 0; p < COUNT_OF(pairs); p++)
        for (int swap = 0; swap < 2; swap++) {
            int a = swap ? pairs[p].b : pairs[p].a;
            int b = swap ? pairs[p].a : pairs[p].b;
            int64_t term = tsr_clash_pair(&f.clash, a, here, b, there);
            if ((term != 0) != pairs[p].counts)
                fail_msg("bodies %d and %d", a, b);
        }
    /* 0.5 ((d - r) / w)^2, up to the limit and no more */
    double d = f.clash.contact[f.t->body[0].type][f.t->body[3].type];
    double edge = d - 0.5 * sqrt(20.0);
    const double near[3] = {edge + 1e-9, 0, 0}, nearer[3] = {edge - 1e-9, 0, 0};
    const double far[3] = {d, 0.0, 0.0};
    assert_true(
        fabs(tsr_from_fixed(tsr_clash_pair(&f.clash, 0, here, 3, there)) +
             0.5 * 4.0 * (d - 3.0) * (d - 3.0)) < 1e-9);
    assert_true(
        fabs(tsr_from_fixed(tsr_clash_pair(&f.clash, 0, here, 3, near)) +
             10.0) < 1e-6);
    assert_true(tsr_clash_pair(&f.clash, 0, here, 3, nearer) ==
                TSR_CLASH_FORBIDDEN);
    assert_true(tsr_clash_pair(&f.clash, 0, here, 3, far) == 0);
}

/* ---- d_limit ---- */

static tsr_motion random_motion(gsl_rng *rng, const double centre[3])
{
    double axis[3], tip[3];
    tsr_motion m;
    gsl_ran_dir_3d(rng, &axis[0], &axis[1], &axis[2]);
    for (int d = 0; d < 3; d++)
        tip[d] = centre[d] + axis[d];
    tsr_motion_about(&m, centre, tip, gsl_ran_flat(rng, -3.0, 3.0));
    for (int d = 0; d < 3; d++)
        m.shift[d] += gsl_ran_gaussian(rng, 1.0);
    return m;
}

/* The limit is set near the largest distance of each proposal. */
TEST(distance_limit)
{
    tsr_prior_table table;
    tsr_topology *t;
    tsr_conformation *x, *y;
    tsr_prior *prior;
    tsr_prior_options options = {
        .clash = TSR_CLASH_NONE, .softness = 0.5, .clash_limit = 10.0};
    sample_prior_table(&table);
    sample_chain("MKTAYIAKQRPGISFVKSHFWRQLEERLGNDCE", NULL, &table, &t, &x);
    OK(tsr_prior_new(t, &table, &options, 1e4, &prior, &err));
    own_tsr_prior(prior);
    y = new_conformation(t);
    tsr_conformation_copy(t, y, x, 0, t->n_residue);
    gsl_rng *rng = rng_new(29, 0);
    tsr_prior_state *s = tsr_prior_state_new(prior, x);
    const double(*body)[3] = (const double(*)[3])y->body;
    int beyond = 0, within = 0, equal = 0;
    for (int i = 0; i < 20000; i++) {
        int first = (int)gsl_rng_uniform_int(rng, (unsigned long)t->n_residue);
        int count = 1 + (int)gsl_rng_uniform_int(
                            rng, (unsigned long)(t->n_residue - first));
        const tsr_proposal p = {.n_span = 1, .span = {{first, count, 1}}};
        tsr_motion m = random_motion(rng, x->backbone[first][TSR_CA]);
        tsr_conformation_move(t, y, first, first + count - 1, &m);
        double was =
            tsr_largest_distance(t->n_body, (const double(*)[3])x->body);
        double is = tsr_largest_distance(t->n_body, body);
        double off = pow(10.0, gsl_ran_flat(rng, -17.0, -1.0));
        double limit = is * (1.0 + (gsl_rng_uniform(rng) < 0.5 ? off : -off));
        limit = i % 7 == 0 ? is : i % 11 == 0 ? 3.0 * is : limit;
        prior->d_limit_ang = fmax(limit, was); /* the state holds it */
        int is_beyond =
            tsr_is_distance_beyond(t->n_body, body, prior->d_limit_ang);
        assert_int_equal(is_beyond, is > prior->d_limit_ang);
        double change = tsr_prior_propose(s, x, y, &p);
        if (isnan(change) || (change == -(double)INFINITY) != is_beyond)
            fail_msg("step %d: %g, largest %.17g, limit %.17g", i, change, is,
                     prior->d_limit_ang);
        assert_int_equal(tsr_prior_log_reference(prior, y) == -(double)INFINITY,
                         is_beyond);
        beyond += is_beyond, within += !is_beyond;
        equal += is == prior->d_limit_ang;
        int accept = !is_beyond && is < 200.0 && gsl_rng_uniform(rng) < 0.5;
        if (accept)
            tsr_prior_accept(s, y, &p);
        tsr_conformation_copy(t, accept ? x : y, accept ? y : x, first, count);
    }
    assert_true(beyond > 1000 && within > 1000 && equal > 100);
    tsr_prior_state_free(s);
}
