/* Built chains have ideal geometry, measured and rebuilt coordinates agree, and
 * ranges select the intended residues. */
#include "core/vec3.h"
#include "molecule/topology.h"
#include "tests/geometry.h"
#include "tests/model_sample.h"
#include "tests/test.h"

static const char sequence[] = "MKTAYIAKQRPGISFVKSHFWRQLEERLGNDCE";

typedef struct {
    tsr_prior_table table;
    tsr_topology *t;
    tsr_conformation *c;
} fixture;

static void open_fixture(fixture *f, const tsr_strings *flexible)
{
    sample_prior_table(&f->table);
    sample_chain(sequence, flexible, &f->table, &f->t, &f->c);
}

static void shuffle(const fixture *f, gsl_rng *rng, int n)
{
    for (int i = 0; i < n; i++)
        tsr_conformation_turn(f->t, f->c,
                              &f->t->torsion[gsl_rng_uniform_int(
                                  rng, (unsigned long)f->t->n_torsion)],
                              2.0 * TSR_PI * gsl_rng_uniform(rng));
}

TEST(ideal_geometry)
{
    fixture f;
    open_fixture(&f, NULL);
    int n = f.t->n_residue;
    internal_geometry *g = array((size_t)n, sizeof *g);
    measure_geometry(f.t, f.c, g);
    for (int i = 0; i < n; i++) {
        assert_nears(1e-12, g[i].n_ca, TSR_BOND_N_CA, g[i].ca_c, TSR_BOND_CA_C,
                     g[i].n_ca_c, TSR_ANGLE_N_CA_C);
        if (i == 0)
            continue;
        assert_near(g[i].c_n, TSR_BOND_C_N, 1e-12);
        assert_near(fabs(g[i].omega), TSR_PI, 1e-9);
        double ca = tsr_vec3_distance(f.c->backbone[i - 1][TSR_CA],
                                      f.c->backbone[i][TSR_CA]);
        assert_near(ca, 3.80, 0.03); /* trans peptide */
    }
}

/* L residues: N, C, CB seen from H are clockwise; the signed volume is known
 * from real structures to be 2.5 Angstrom^3 (2EPE) for (N-CA) x (C-CA) . CB. */
TEST(cb_is_left_handed)
{
    double n[3] = {1.458, 0, 0}, ca[3] = {0, 0, 0}, c[3], cb[3], v[3];
    c[0] = 1.525 * cos(1.9373), c[1] = 1.525 * sin(1.9373), c[2] = 0.0;
    tsr_place_cb(cb, n, ca, c);
    tsr_vec3_cross(v, n, c);
    assert_near(tsr_vec3_dot(v, cb), 2.5, 0.2);
}

/* Measured after many turns, the internal coordinates rebuild the same atoms.
 */
TEST(measure_and_build)
{
    fixture f;
    open_fixture(&f, NULL);
    gsl_rng *rng = rng_new(5, 0);
    shuffle(&f, rng, 400);
    int n = f.t->n_residue;
    internal_geometry *g = array((size_t)n, sizeof *g);
    tsr_conformation *again = new_conformation(f.t);
    tsr_conformation_copy(f.t, again, f.c, 0, n);
    measure_geometry(f.t, f.c, g);
    build_geometry(f.t, g, again);
    for (int i = 0; i < n; i++)
        for (int a = 0; a < 4; a++)
            assert_true(tsr_vec3_distance(f.c->backbone[i][a],
                                          again->backbone[i][a]) < 1e-8);
    for (int b = 0; b < f.t->n_body; b++)
        assert_true(tsr_vec3_distance(f.c->body[b], again->body[b]) < 1e-8);
}

static double wrap(double angle)
{
    return remainder(angle, 2.0 * TSR_PI);
}

/* A turn changes its torsion by the angle and no other, and only the shorter
 * side of the chain moves. */
TEST(turns)
{
    fixture f;
    open_fixture(&f, NULL);
    gsl_rng *rng = rng_new(6, 0);
    shuffle(&f, rng, 100);
    int n = f.t->n_residue;
    tsr_conformation *old = new_conformation(f.t);
    for (int k = 0; k < f.t->n_torsion; k++) {
        const tsr_torsion *t = &f.t->torsion[k];
        tsr_conformation_copy(f.t, old, f.c, 0, n);
        double angle = 6.0 * gsl_rng_uniform(rng) - 3.0;
        tsr_conformation_turn(f.t, f.c, t, angle);
        for (int i = 0; i < n; i++)
            for (int kind = TSR_PHI; kind <= TSR_PSI; kind++) {
                double a = tsr_conformation_torsion(f.t, old, i,
                                                    (tsr_torsion_kind)kind);
                double b = tsr_conformation_torsion(f.t, f.c, i,
                                                    (tsr_torsion_kind)kind);
                int own = i == t->residue && kind == (int)t->kind;
                if (!isnan(a))
                    assert_true(fabs(wrap(b - a - (own ? angle : 0.0))) < 1e-9);
            }
        int moved = 0;
        for (int i = 0; i < n; i++)
            moved += tsr_vec3_distance(old->backbone[i][TSR_CA],
                                       f.c->backbone[i][TSR_CA]) > 1e-6;
        assert_true(moved <= n / 2);
        /* bodies agree with the atoms */
        tsr_conformation_copy(f.t, old, f.c, 0, n);
        tsr_conformation_place_bodies(f.t, old, 0, n);
        for (int b = 0; b < f.t->n_body; b++)
            assert_true(tsr_vec3_distance(old->body[b], f.c->body[b]) < 1e-9);
    }
}

/* No choice of torsions takes two bodies beyond the reach, and an almost
 * straight chain comes near it. */
TEST(reach)
{
    char range[] = "A:8-14", second[] = "A:22-25";
    char *item[] = {range, second};
    tsr_strings some = {2, item};
    const tsr_strings *choice[] = {NULL, &some};
    for (int k = 0; k < 2; k++) {
        fixture f;
        open_fixture(&f, choice[k]);
        gsl_rng *rng = rng_new(11, 0);
        double bound = tsr_topology_reach(f.t, f.c), most = 0.0;
        for (int round = 0; round < 300; round++) {
            for (int a = 0; a < f.t->n_body; a++)
                for (int b = 0; b < a; b++)
                    most = fmax(most,
                                tsr_vec3_distance(f.c->body[a], f.c->body[b]));
            shuffle(&f, rng, 5);
        }
        assert_all(most <= bound, most > 0.8 * bound);
    }
}

TEST(flexible_ranges)
{
    char range[] = "10-12";
    char *item[] = {range};
    tsr_strings some = {1, item};
    fixture f;
    open_fixture(&f, &some);
    /* R10, P11, G12: phi and psi of each */
    assert_ints(f.t->n_torsion, 6, f.t->n_side, 2);
    open_fixture(&f, NULL);
    /* all but phi of the first and psi of the last */
    assert_int_equal(f.t->n_torsion, 2 * (int)strlen(sequence) - 2);
}

TEST(range_texts)
{
    tsr_residue residue[6];
    memset(residue, 0, sizeof residue);
    static const int number[6] = {-6, -5, 8, 8, 1, 2};
    for (int i = 0; i < 6; i++) {
        memcpy(residue[i].chain, i < 4 ? "A" : "B", 2);
        residue[i].number = number[i];
        residue[i].chain_first = i < 4 ? 0 : 4;
    }
    static const struct {
        const char *text;
        int n;
        const char *complaint;
    } cases[] = {{"A:-6--5", 2, NULL},
                 {"A:-6-8", 4, NULL},
                 {"A:8", 2, NULL},
                 {"B", 2, NULL},
                 {"B:", 0, "expected"},
                 {"1-2", 0, "several chains"},
                 {"C:1-2", 0, "no chain 'C'"},
                 {"A:8-9", 2, "residues -6 to 8 only"},
                 {"A:-7--5", 2, "residues -6 to 8 only"},
                 {"B:1-640", 2, "residues 1 to 2 only"},
                 {"A:-4-7", 0, "contains no residue"},
                 {"A:20-30", 0, "contains no residue"},
                 {"A:9-3", 0, "ends before"},
                 {"A:1-2x", 0, "expected"},
                 {"", 0, "expected"},
                 {"A:99999999999", 0, "expected"}};
    for (size_t k = 0; k < COUNT_OF(cases); k++) {
        int mark[6] = {0}, n = 0;
        err = (tsr_err){0};
        tsr_status status =
            tsr_range_mark(cases[k].text, 6, residue, mark, &err);
        for (int i = 0; i < 6; i++)
            n += mark[i];
        assert_int_equal(n, cases[k].n);
        if (cases[k].complaint == NULL) {
            assert_int_equal(status, TSR_OK);
            continue;
        }
        assert_int_equal(status, TSR_E_CONFIG);
        if (strstr(err.message, cases[k].complaint) == NULL)
            fail_msg("'%s': %s", cases[k].text, err.message);
    }
}

/* Proline winds towards negative coordinates, where a PDB file has no room. */
TEST(long_sequences)
{
    enum { N = 2000 };
    char text[N + 1];
    memset(text, 'P', N);
    text[N] = '\0';
    tsr_prior_table table;
    sample_prior_table(&table);
    tsr_topology *t;
    tsr_conformation *c;
    sample_chain(text, NULL, &table, &t, &c);
    for (int i = 0; i < N; i++)
        for (int d = 0; d < 3; d++)
            assert_true(c->backbone[i][TSR_CA][d] > -950.0);
    for (int b = 0; b < t->n_body; b++)
        assert_true(tsr_vec3_distance(c->body[b],
                                      c->backbone[t->body[b].residue][TSR_CA]) <
                    6.0);
}

TEST(refused_sequences)
{
    tsr_prior_table table;
    sample_prior_table(&table);
    static const char *const bad[] = {"", "MK", "MKXTA", "MK TA", "MK1TA"};
    for (size_t k = 0; k < COUNT_OF(bad); k++) {
        tsr_topology *t;
        tsr_conformation *c;
        tsr_flexibility all = {.flexible = NULL};
        FAILS(tsr_topology_from_sequence(bad[k], TSR_BODIES_TWO, all, &table,
                                         &t, &c, &err),
              TSR_E_CONFIG, "structure.sequence");
        assert_null(t);
        assert_null(c);
    }
}

/* Two points a distance apart: Rg is half of it, for equal masses. */
TEST(radius_of_gyration)
{
    tsr_prior_table table;
    tsr_topology *t;
    tsr_conformation *c;
    sample_prior_table(&table);
    sample_chain("GGG", NULL, &table, &t, &c);
    const double place[3][3] = {{0, 0, 0}, {30, 0, 0}, {15, 0, 0}};
    double rg2[TSR_MAX_TYPE] = {0};
    for (int b = 0; b < 3; b++)
        tsr_vec3_copy(c->body[b], place[b]);
    assert_near(tsr_conformation_rg(t, c, NULL), sqrt(150.0), 1e-12);
    for (int k = 0; k < TSR_MAX_TYPE; k++)
        rg2[k] = 19.0;
    assert_near(tsr_conformation_rg(t, c, rg2), 13.0, 1e-12);
}
