/* Proposals that move strands, and chains attached to others, state truthfully
 * what moved, how rigidly, and the change of the prior. */
#include "core/pool.h"
#include "tests/objects.h"
#include "tests/strand_fixture.h"
#include "tests/test.h"

#include "tests/unit/chain_pdb.h"

/* ---- excluded volume, dirty bodies ---- */

/* What a proposal says of itself: what it does not name stays to the bit, and
 * what it calls rigid is. */
static void check_spans(const tsr_topology *t, const tsr_conformation *now,
                        const tsr_conformation *to, const tsr_proposal *p)
{
    int group[256];
    assert_true(t->n_body <= 256 && p->n_span <= TSR_MAX_SPAN);
    for (int a = 0; a < t->n_body; a++) {
        group[a] = -1;
        for (int q = 0; q < p->n_span; q++)
            if (t->body[a].residue >= p->span[q].first &&
                t->body[a].residue < p->span[q].first + p->span[q].count)
                group[a] = p->span[q].group;
        if (group[a] < 0)
            assert_memory_equal(now->body[a], to->body[a], sizeof to->body[a]);
        for (int b = 0; b < a && group[a] > 0; b++)
            if (group[a] == group[b])
                assert_near(tsr_vec3_distance(now->body[a], now->body[b]),
                            tsr_vec3_distance(to->body[a], to->body[b]), 1e-9);
    }
    for (int q = 1; q < p->n_span; q++)
        assert_true(p->span[q].first >=
                    p->span[q - 1].first + p->span[q - 1].count);
}

/* Proposals of pivots, bases and whole chains, accepted by the prior, whose
 * changes are those of the sum over all pairs. */
static void propose_many(fixture *f, tsr_conformation *now, int n)
{
    static const int moves[] = {TSR_MOVE_pivot, TSR_MOVE_side_chain,
                                TSR_MOVE_crankshaft, TSR_MOVE_regrow};
    enum { N_KIND = COUNT_OF(moves) };
    gsl_rng *rng = rng_new(2, 0);
    tsr_conformation *to = new_conformation(f->t);
    tsr_prior_state *s =
        own_tsr_prior_state(tsr_prior_state_new(f->prior, now));
    tsr_pool *pool = new_pool();
    void *move[N_KIND];
    int n_soft = 0;
    assert_non_null(s);
    for (int m = 0; m < N_KIND; m++) {
        const tsr_move_type *type = tsr_move_registry[moves[m]];
        move[m] =
            type->n_target(f->options[moves[m]], f->t) > 0
                ? type->state_new(pool, f->options[moves[m]], f->t, f->prior)
                : NULL;
    }
    tsr_conformation_copy(f->t, to, now, 0, f->t->n_residue);
    for (int k = 0; k < n; k++) {
        tsr_proposal p;
        const int m = k % N_KIND;
        if (move[m] == NULL)
            continue;
        tsr_move_registry[moves[m]]->propose(move[m], now, to, rng, &p);
        tsr_proposal_move_attached(f->t, now, to, &p);
        check_spans(f->t, now, to, &p);
        const double change = p.n_span == 0 ? -(double)INFINITY
                                            : tsr_prior_propose(s, now, to, &p);
        const double whole = tsr_prior_log_reference(f->prior, to) -
                             tsr_prior_log_reference(f->prior, now);
        if (p.n_span > 0 && isinf(change))
            assert_true(isinf(whole));
        else if (p.n_span > 0)
            assert_near(change, whole, 1e-6);
        n_soft += !isinf(change);
        if (!isinf(change) && gsl_rng_uniform(rng) < exp(change)) {
            tsr_prior_accept(s, to, &p);
            tsr_conformation_copy(f->t, now, to, 0, f->t->n_residue);
        } else {
            tsr_conformation_copy(f->t, to, now, 0, f->t->n_residue);
        }
    }
    assert_true(n_soft > n / 5);
    assert_near(tsr_prior_state_log(s), tsr_prior_log_reference(f->prior, now),
                1e-6);
}

TEST(proposals_tell_the_truth)
{
    fixture f;
    open_strand(&f, 9, 0, NULL, TSR_CLASH_SOFT);
    gsl_rng *rng = rng_new(2, 0);
    tsr_conformation *now = new_conformation(f.t);
    tsr_conformation *good = new_conformation(f.t);
    int n_forbidden = 0;
    for (int k = 0; k < 300; k++) {
        char worst[160];
        draw(&f, rng, now);
        const int n = tsr_prior_clashes(f.prior, now, worst);
        n_forbidden += n > 0;
        assert_true((n > 0) ==
                    (isinf(tsr_prior_log_reference(f.prior, now)) != 0));
        if (n == 0)
            tsr_conformation_copy(f.t, good, now, 0, f.t->n_residue);
    }
    assert_true(n_forbidden > 10 && n_forbidden < 300);
    propose_many(&f, good, 4000);
}

/* ---- a complex ---- */

/* Protein A of two domains with a hinge at 11 to 14; a strand S of 8 on the
 * second; protein B on the strand's end. */
static void write_complex(const char *path)
{
    chain_residue residue[24];
    char plain[128];
    for (int i = 0; i < 24; i++)
        residue[i] = (chain_residue){.amino = i % 2 ? TSR_ALA : TSR_GLY,
                                     .phi = -2.3,
                                     .psi = 2.4,
                                     .angle = 1.94,
                                     .omega = 3.1};
    strcpy(plain, io_path("plain.pdb"));
    FILE *file = fopen(plain, "w");
    assert_non_null(file);
    write_chain(file, 24, residue);
    fclose(file);
    NEW(tsr_structure, s, tsr_structure_read, plain);
    const double *ca = tsr_residue_atom(s, &s->residue[19], "CA")->xyz;
    const double beside[3] = {ca[0], ca[1], ca[2] + 7.0};
    file = fopen(plain, "w");
    strand_write(file, 'S', 8, 0, beside);
    fclose(file);
    NEW(tsr_atoms, atoms, tsr_atoms_read, plain);
    double shift[3];
    const double *first = tsr_residue_atom(s, &s->residue[0], "CA")->xyz;
    const double *end = atoms->atom[atoms->n_atom - 1].xyz;
    for (int d = 0; d < 3; d++)
        shift[d] = end[d] - first[d] + (d == 0 ? 5.0 : 0.0);
    file = fopen(path, "w");
    for (int chain = 0; chain < 2; chain++) {
        for (int i = 0; i < (chain == 0 ? 24 : 6); i++)
            for (int k = 0; k < s->residue[i].n_atom; k++) {
                const tsr_atom *a = &s->atom[s->residue[i].first_atom + k];
                const char element[2] = {a->name[0], '\0'};
                double x[3];
                for (int d = 0; d < 3; d++)
                    x[d] = a->xyz[d] + chain * shift[d];
                strand_put(file, a->name, element, s->residue[i].name,
                           (char)('A' + chain), s->residue[i].number, x);
            }
        fprintf(file, "TER\n");
    }
    strand_write(file, 'S', 8, 0, beside);
    fclose(file);
}

/* Distance of the CA of two residues of the topology. */
static double apart(const tsr_conformation *c, int i, int j)
{
    return tsr_vec3_distance(c->backbone[i][TSR_CA], c->backbone[j][TSR_CA]);
}

TEST(chains_ride)
{
    fixture f = {.range = {"A:11-14", "S:4-5"}};
    const tsr_strings flexible = {.n = 2, .item = f.range};
    strcpy(f.path, io_path("complex.pdb"));
    write_complex(f.path);
    read_file(&f, &flexible, TSR_CLASH_SOFT);
    const tsr_topology *t = f.t;
    /* A 0 to 23, B 24 to 29, S from 30, three links a nucleotide */
    assert_int_equal(t->n_residue, 30 + 24);
    assert_int_equal(t->n_attached, 2);
    assert_int_equal(t->attached[0].chain, 2);
    assert_true(t->attached[0].host >= 14 && t->attached[0].host < 24);
    assert_int_equal(t->attached[1].chain, 1);
    assert_true(t->attached[1].host >= 30 + 15);
    assert_true(t->residue[0].is_fixed && !t->residue[20].is_fixed);
    assert_int_equal(t->residue[30].unit, t->residue[t->attached[0].host].unit);
    assert_int_equal(t->residue[24].unit, t->residue[t->attached[1].host].unit);
    assert_true(t->residue[30].unit != t->residue[0].unit &&
                t->residue[24].unit != t->residue[30].unit);
    tsr_conformation *now = new_conformation(t);
    tsr_conformation_copy(t, now, f.c, 0, t->n_residue);
    propose_many(&f, now, 4000);
    assert_memory_equal(now->backbone[0], f.c->backbone[0],
                        sizeof now->backbone[0]);
    assert_near(apart(now, 20, 30), apart(f.c, 20, 30), 1e-6);
    assert_near(apart(now, 24, 50), apart(f.c, 24, 50), 1e-6);
    assert_near(apart(now, 24, 29), apart(f.c, 24, 29), 1e-6);
    assert_true(fabs(apart(now, 0, 30) - apart(f.c, 0, 30)) > 0.1);
    assert_true(fabs(apart(now, 30, 24) - apart(f.c, 30, 24)) > 0.1);
}

static void open_complex(fixture *f)
{
    *f = (fixture){.range = {"A:11-14", "S:4-5"}};
    const tsr_strings flexible = {.n = 2, .item = f->range};
    strcpy(f->path, io_path("complex.pdb"));
    write_complex(f->path);
    read_file(f, &flexible, TSR_CLASH_NONE);
    set_moves(f, (const double[3]){1.0, 0.0, 0.3}, 0.2);
}

static double widest(const tsr_topology *t, const tsr_conformation *c)
{
    return tsr_largest_distance(t->n_body, (const double(*)[3])c->body);
}

/* No moves take two bodies beyond the reach, and those of which only what
 * widens is kept come near it. */
TEST(reach_of_complex)
{
    enum { ROUND = 3000, STEPS = 2 };
    fixture f;
    open_complex(&f);
    const double bound = tsr_topology_reach(f.t, f.c);
    double most = widest(f.t, f.c);
    tsr_conformation *c = new_conformation(f.t);
    for (int k = 0; k < ROUND; k++) {
        tsr_conformation_copy(f.t, c, f.c, 0, f.t->n_residue);
        walk(&f, k, STEPS, c);
        const double now = widest(f.t, c);
        if (now > most) {
            most = now;
            tsr_conformation_copy(f.t, f.c, c, 0, f.t->n_residue);
        }
    }
    if (!(most <= bound && most > 0.75 * bound))
        fail_msg("%.1f of %.1f A", most, bound);
}

/* Replicates of exact draws of the complex keep torsions, and how the ends lie,
 * whichever of its chains a step turns. */
TEST(complex_keeps_prior)
{
    enum { N = 1500, STEPS = 30, MOST = 40 };
    static double value[2][MOST][N];
    fixture f;
    open_complex(&f);
    gsl_rng *rng = rng_new(21, 0);
    tsr_conformation *c = new_conformation(f.t);
    long n_accepted = 0;
    int n_value = 0;
    for (int i = 0; i < N; i++)
        for (int after = 0; after < 2; after++) {
            draw(&f, rng, c);
            if (after)
                n_accepted += walk(&f, i, STEPS, c);
            n_value = 0;
            for (int k = 0; k < f.t->n_torsion; k++) {
                const tsr_torsion *t = &f.t->torsion[k];
                value[after][n_value++][i] =
                    tsr_conformation_torsion(f.t, c, t->residue, t->kind);
            }
            value[after][n_value++][i] = apart(c, 0, 30);
            value[after][n_value++][i] = apart(c, 0, 29);
            value[after][n_value++][i] = apart(c, 20, 53);
            value[after][n_value++][i] = tsr_conformation_rg(f.t, c, NULL);
            assert_true(n_value <= MOST);
        }
    assert_true(n_accepted > N * STEPS / 4);
    for (int k = 0; k < n_value; k++) {
        const double p = ks_p(N, value[0][k], value[1][k]);
        if (p < 1e-4)
            fail_msg("value %d of %d: p %.1e", k, n_value, p);
    }
}
