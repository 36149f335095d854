/* Strands of nucleotides move as chains should: what rotates, the prior of
 * their torsions, and their files. */
#include "tests/objects.h"
#include "tests/strand_fixture.h"
#include "tests/test.h"

#include "prior/prior.h"
#include "scattering/atom_model.h"

/* ---- torsions by the names of atoms, apart from links ---- */

enum { ZETA, ALPHA, BETA, GAMMA, EPSILON, CHI, DELTA, N_TORSION };
static const char *const torsion_atoms[N_TORSION][4] = {
    {"-C3'", "-O3'", "P", "O5'"}, {"-O3'", "P", "O5'", "C5'"},
    {"P", "O5'", "C5'", "C4'"},   {"O5'", "C5'", "C4'", "C3'"},
    {"C4'", "C3'", "O3'", "+P"},  {"O4'", "C1'", "N9", "C4"},
    {"C5'", "C4'", "C3'", "O3'"}};

static const double *atom_of(const tsr_guests *g, const double (*xyz)[3], int r,
                             const char *name)
{
    r += name[0] == '+' ? 1 : name[0] == '-' ? -1 : 0;
    name += name[0] == '+' || name[0] == '-';
    if (r < 0 || r >= g->atoms->n_residue)
        return NULL;
    const tsr_file_residue *residue = &g->atoms->residue[r];
    for (int i = residue->first_atom; i < residue->first_atom + residue->n_atom;
         i++)
        if (strcmp(g->atoms->atom[i].name, name) == 0)
            return xyz[i];
    return NULL;
}

/* NaN where it does not exist. */
static double torsion_of(const tsr_guests *g, const double (*xyz)[3], int r,
                         int k)
{
    const double *x[4];
    for (int a = 0; a < 4; a++) {
        x[a] = atom_of(g, xyz, r, torsion_atoms[k][a]);
        if (x[a] == NULL)
            return (double)NAN;
    }
    return tsr_vec3_torsion(x[0], x[1], x[2], x[3]);
}

/* ---- replicates ---- */

/* draws: the share of proposals of a move that are draws of the prior. What
 * replicates have after some steps of the moves is what fresh draws have:
 * the torsions of one nucleotide, by its atoms, and the length of the strand.
 */
static void keep_prior(int is_dna, const double weight[3], double draws)
{
    enum { N = 2500, STEPS = 40, N_VALUE = N_TORSION + 1 };
    static double value[2][N_VALUE][N];
    fixture f;
    open_strand(&f, 3, is_dna, NULL, TSR_CLASH_NONE);
    const tsr_guests *g = f.t->guests;
    set_moves(&f, weight, draws);
    gsl_rng *rng = rng_new(11, 0);
    tsr_conformation *c = new_conformation(f.t);
    double(*xyz)[3] = array((size_t)tsr_topology_n_atom(f.t), sizeof *xyz);
    long n_accepted = 0;
    for (int i = 0; i < N; i++)
        for (int after = 0; after < 2; after++) {
            draw(&f, rng, c);
            if (after) {
                n_accepted += walk(&f, i, STEPS, c);
            }
            tsr_conformation_atoms(f.t, c, xyz);
            for (int k = 0; k < N_TORSION; k++)
                value[after][k][i] =
                    torsion_of(g, (const double(*)[3])xyz, 1, k);
            value[after][N_TORSION][i] =
                tsr_vec3_distance(c->body[0], c->body[f.t->n_body - 1]);
        }
    assert_true(n_accepted > N * STEPS / 4);
    for (int k = 0; k < N_VALUE; k++) {
        if (k == DELTA) {
            assert_near(value[1][k][0], value[0][k][N - 1], 1e-9);
            continue;
        }
        const double p = ks_p(N, value[0][k], value[1][k]);
        if (p < 1e-4)
            fail_msg("torsion %d of %s: p %.1e", k, is_dna ? "DNA" : "RNA", p);
    }
}

TEST(prior_in_is_prior_out)
{
    keep_prior(0, (const double[3]){1.0, 0.0, 0.0}, 0.0);
    keep_prior(1, (const double[3]){1.0, 0.0, 0.0}, 1.0);
    keep_prior(1, (const double[3]){0.0, 1.0, 0.0}, 0.0);
    keep_prior(0, (const double[3]){0.0, 1.0, 1.0}, 1.0);
}

/* The density of each torsion, by steps over the circle, is what is drawn, of
 * RNA near the helix of its paper. */
TEST(densities)
{
    for (int k = 0; k < TSR_N_NUCLEIC_CLASS; k++) {
        tsr_torsion_mixture mixture;
        double weight = 0.0, sum = 0.0;
        enum { GRID = 180 };
        tsr_nucleotide_mixture((tsr_nucleic_class)k, &mixture);
        assert_true(mixture.n <= TSR_MAX_VON_MISES);
        for (int i = 0; i < mixture.n; i++)
            weight += mixture.part[i].weight;
        assert_near(weight, 1.0, 1e-12);
        tsr_torsion_density *density =
            own(tsr_torsion_density_new(&mixture), free);
        const double h = 2.0 * 3.14159265358979323846 / GRID;
        for (int i = 0; i < GRID; i++)
            for (int j = 0; j < GRID; j++)
                sum +=
                    h * h * exp(tsr_torsion_density_log(density, i * h, j * h));
        assert_near(sum, 1.0, 1e-9);
    }
    tsr_torsion_mixture mixture;
    const double degree = 3.14159265358979323846 / 180.0;
    tsr_nucleotide_mixture(TSR_NUCLEIC_PHOSPHATE, &mixture);
    tsr_torsion_density *density = own(tsr_torsion_density_new(&mixture), free);
    assert_true(
        tsr_torsion_density_log(density, -71.0 * degree, -66.0 * degree) >
        4.0 + tsr_torsion_density_log(density, 71.0 * degree, 170.0 * degree));
}

/* ---- geometry ---- */

/* Bonds and angles are those of the file, flexible or not, after many moves;
 * what of the strand is rigid stays so. */
TEST(geometry_keeps)
{
    fixture f;
    open_strand(&f, 8, 1, "S:4-8", TSR_CLASH_NONE);
    const tsr_guests *g = f.t->guests;
    const int n = tsr_topology_n_atom(f.t);
    double(*xyz)[3] = array((size_t)n, sizeof *xyz);
    const tsr_target target = {.topology = f.t,
                               .first = f.c,
                               .prior = f.prior,
                               .move_options = f.options,
                               .seed = 5};
    tsr_chain_view view;
    NEW(tsr_chain, chain, tsr_chain_new, &target, 0);
    for (int k = 0; k < 100000; k++)
        step(chain);
    tsr_chain_view_get(chain, &view);
    tsr_conformation_atoms(f.t, view.conformation, xyz);
    assert_int_equal(n, g->atoms->n_atom);
    double moved = 0.0;
    for (int i = 0; i < n; i++)
        for (int j = 0; j < i; j++) {
            const tsr_file_atom *a = &g->atoms->atom[i],
                                *b = &g->atoms->atom[j];
            const double was = tsr_vec3_distance(a->xyz, b->xyz);
            const double is = tsr_vec3_distance(xyz[i], xyz[j]);
            moved = fmax(moved, fabs(was - is));
            /* the strand of the file is in its own way here and there */
            if (a->residue - b->residue > 1)
                continue;
            int is_held = was < 1.9 || (a->residue < 3 && b->residue < 3);
            for (int k = 0; k < n && !is_held; k++) {
                const tsr_file_atom *c = &g->atoms->atom[k];
                is_held = k != i && k != j &&
                          abs(c->residue - b->residue) <= 1 &&
                          tsr_vec3_distance(c->xyz, a->xyz) < 1.9 &&
                          tsr_vec3_distance(c->xyz, b->xyz) < 1.9;
            }
            assert_true(!is_held || fabs(was - is) < 1e-6);
        }
    assert_true(moved > 10.0);
    /* bodies are the centres of their atoms */
    for (int b = 0; b < f.t->n_body; b++) {
        double centre[3] = {0.0, 0.0, 0.0}, mass = 0.0;
        const int own = f.t->body[b].type - tsr_body_n_type(TSR_BODIES_TWO);
        for (int i = 0; i < n; i++)
            if (g->body[i] == own) {
                const double m = tsr_atom_mass(g->atoms->atom[i].z);
                mass += m;
                for (int d = 0; d < 3; d++)
                    centre[d] += m * xyz[i][d];
            }
        for (int d = 0; d < 3; d++)
            centre[d] /= mass;
        assert_true(tsr_vec3_distance(centre, view.conformation->body[b]) <
                    1e-8);
    }
}

/* ---- curves ---- */

/* I(q) of the bodies of a conformation, form factors from their atoms. */
static void curve_of(const fixture *f, const tsr_conformation *c, int n_q,
                     double *intensity)
{
    const double dq = 0.02;
    tsr_form_factor_table *empty =
        own_tsr_form_factor(tsr_form_factor_new(TSR_BODIES_TWO, 1, n_q, dq));
    NEW(tsr_form_factor_table, table, tsr_form_factor_add_guests, empty,
        f->t->guests, f->atoms, TSR_WATER_DENSITY);
    for (int k = 0; k < n_q; k++) {
        intensity[k] = 0.0;
        for (int a = 0; a < f->t->n_body; a++)
            for (int b = 0; b < f->t->n_body; b++) {
                const double x =
                    k * dq * tsr_vec3_distance(c->body[a], c->body[b]);
                const int i = f->t->body[a].type, j = f->t->body[b].type;
                intensity[k] += table->amplitude[i * n_q + k] *
                                table->amplitude[j * n_q + k] *
                                (x > 1e-9 ? sin(x) / x : 1.0);
                intensity[k] += a == b ? table->excess[i * n_q + k] : 0.0;
            }
    }
}

/* A strand that moved, written with its atoms and read as a file of its own,
 * scatters as it did. */
TEST(read_again)
{
    enum { N_Q = 21 };
    fixture f, g = {.range = {NULL}};
    double moved[N_Q], first[N_Q], again[N_Q], most = 0.0;
    open_strand(&f, 8, 0, NULL, TSR_CLASH_NONE);
    gsl_rng *rng = rng_new(4, 0);
    tsr_conformation *c = new_conformation(f.t);
    draw(&f, rng, c);
    tsr_model_atoms *model = own_tsr_model_atoms(tsr_topology_model(f.t, c));
    assert_non_null(model);
    strcpy(g.path, io_path("moved.pdb"));
    OK(tsr_model_atoms_write(model, g.path, NULL, &err));
    const tsr_strings all = {.n = 0};
    read_file(&g, &all, TSR_CLASH_NONE);
    assert_int_equal(g.t->n_body, f.t->n_body);
    curve_of(&f, f.c, N_Q, first);
    curve_of(&f, c, N_Q, moved);
    curve_of(&g, g.c, N_Q, again);
    for (int k = 0; k < N_Q; k++) {
        assert_near(again[k] / moved[k], 1.0, 2e-3);
        most = fmax(most, fabs(first[k] / moved[k] - 1.0));
    }
    assert_true(most > 0.05);
    for (int i = 0; i < f.t->n_residue; i++)
        if (f.t->base[i].exists)
            assert_true(fabs(tsr_von_mises_wrap(c->side[i][0] -
                                                g.c->side[i][0])) < 5e-3);
}

/* ---- what links are made of ---- */

TEST(links_of_a_strand)
{
    fixture f;
    open_strand(&f, 5, 1, "S:3-4", TSR_CLASH_NONE);
    const tsr_topology *t = f.t;
    const tsr_guests *g = t->guests;
    double(*xyz)[3] = array((size_t)tsr_topology_n_atom(t), sizeof *xyz);
    int n[5] = {0};
    assert_int_equal(t->n_residue, 15);
    assert_int_equal(t->n_link, 15);
    assert_int_equal(t->n_chain, 1);
    for (int k = 0; k < g->n_body; k++)
        n[g->part[k].residue]++;
    for (int r = 0; r < 5; r++)
        assert_int_equal(n[r], 4);
    /* zeta, alpha, beta, gamma, epsilon of two, and two bases */
    assert_int_equal(t->n_torsion, 10);
    assert_int_equal(t->n_side, 2);
    tsr_conformation_atoms(t, f.c, xyz);
    for (int i = 0; i < g->atoms->n_atom; i++)
        assert_true(tsr_vec3_distance(xyz[i], g->atoms->atom[i].xyz) < 1e-9);
    const int class[3] = {TSR_NUCLEIC_PHOSPHATE, TSR_NUCLEIC_METHYLENE,
                          TSR_NUCLEIC_C3_ENDO};
    for (int i = 0; i < 15; i++) {
        assert_int_equal(t->residue[i].rama,
                         TSR_N_RAMA + TSR_N_NUCLEIC + class[i % 3]);
        assert_int_equal(t->residue[i].sequence_index, 2 * (i / 3));
    }
    /* each turns as its name says, and nothing else does */
    static const int of_link[3][2] = {
        {ZETA, ALPHA}, {BETA, GAMMA}, {DELTA, EPSILON}};
    for (int k = 0; k < t->n_torsion; k++) {
        const tsr_torsion *turned = &t->torsion[k];
        const int r = turned->residue / 3;
        const int which = of_link[turned->residue % 3][turned->kind];
        double was[5][N_TORSION];
        tsr_conformation_atoms(t, f.c, xyz);
        for (int i = 0; i < 5; i++)
            for (int m = 0; m < N_TORSION; m++)
                was[i][m] = torsion_of(g, (const double(*)[3])xyz, i, m);
        tsr_conformation_turn(t, f.c, turned, 0.4);
        tsr_conformation_atoms(t, f.c, xyz);
        for (int i = 0; i < 5; i++)
            for (int m = 0; m < N_TORSION; m++) {
                const double is = torsion_of(g, (const double(*)[3])xyz, i, m);
                const double by = i == r && m == which ? 0.4 : 0.0;
                if (!isnan(is))
                    assert_true(fabs(tsr_von_mises_wrap(is - was[i][m] - by)) <
                                1e-9);
            }
    }
    f.c->side[8][0] += 0.4;
    const double chi = torsion_of(g, (const double(*)[3])xyz, 2, CHI);
    tsr_conformation_atoms(t, f.c, xyz);
    assert_true(
        fabs(tsr_von_mises_wrap(torsion_of(g, (const double(*)[3])xyz, 2, CHI) -
                                chi - 0.4)) < 1e-9);
    assert_true(fabs(tsr_von_mises_wrap(f.c->side[8][0] - chi - 0.4)) < 1e-9);
}

/* What has no prime goes with what it hangs on: a methoxyethyl group on O2', a
 * phosphate that closes a ring, H5T of older files. */
TEST(parts_of_modified)
{
    const struct {
        const char *name;
        int z, part;
        double xyz[3];
    } is[] = {{"C2", 6, TSR_PART_BASE, {2.8, 0.0, 0.0}},
              {"N1", 7, TSR_PART_BASE, {1.47, 0.0, 0.0}},
              {"C1'", 6, TSR_PART_SUGAR, {0.0, 0.0, 0.0}},
              {"CD", 6, TSR_PART_SUGAR, {0.0, 0.0, 7.2}},
              {"OC", 8, TSR_PART_SUGAR, {0.0, 0.0, 5.8}},
              {"CA", 6, TSR_PART_SUGAR, {0.0, 0.0, 4.4}},
              {"O2'", 8, TSR_PART_SUGAR, {0.0, 0.0, 3.0}},
              {"O1C", 8, TSR_PART_SUGAR, {0.0, 8.1, 0.0}},
              {"PC", 15, TSR_PART_SUGAR, {0.0, 6.6, 0.0}},
              {"O3'", 8, TSR_PART_SUGAR, {0.0, 5.0, 0.0}},
              {"H5T", 1, TSR_PART_METHYLENE, {5.0, 5.0, 5.96}},
              {"O5'", 8, TSR_PART_METHYLENE, {5.0, 5.0, 5.0}},
              {"S2P", 16, TSR_PART_PHOSPHATE, {9.0, 9.0, 10.9}},
              {"P", 15, TSR_PART_PHOSPHATE, {9.0, 9.0, 9.0}},
              {"C7", 6, TSR_PART_BASE, {30.0, 0.0, 0.0}}};
    enum { N = COUNT_OF(is) };
    tsr_file_atom atom[N] = {0};
    tsr_file_residue residue = {.n_atom = N};
    const tsr_atoms atoms = {
        .n_atom = N, .n_residue = 1, .atom = atom, .residue = &residue};
    int part[N];
    for (int i = 0; i < N; i++) {
        snprintf(atom[i].name, sizeof atom[i].name, "%s", is[i].name);
        atom[i].z = is[i].z;
        tsr_vec3_copy(atom[i].xyz, is[i].xyz);
    }
    tsr_nucleic_parts(&atoms, 0, part);
    for (int i = 0; i < N; i++)
        assert_int_equal(part[i], is[i].part);
}
