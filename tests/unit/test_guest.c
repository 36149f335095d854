/* Ligands, sugars and ions become bodies with the form factors of their atoms,
 * and move with the residue that they touch or are attached to. */
#include "molecule/guest.h"
#include "molecule/structure.h"
#include "scattering/atom_model.h"
#include "tests/io_files.h"
#include "tests/model_sample.h"
#include "tests/test.h"
#include "tests/unit/chain_pdb.h"
#include "train/train.h"

OWNED(tsr_model_atoms)
OWNED_AS(tsr_form_factor, tsr_form_factor_table)
OWNED(tsr_structure)
OWNED(tsr_atoms)

enum { N_RESIDUE = 24, N_Q = 61 };
#define HOST(g, r) ((g)->host[(g)->atoms->residue[r].first_atom])
static const double dq = 0.01;
typedef struct {
    char path[128];
    tsr_prior_table table;
    tsr_structure *structure;
    tsr_atoms *atoms;
    tsr_topology *t;
    tsr_conformation *c;
} fixture;

/* ---- the file: a chain with a hinge, and what is beside it ---- */

/* A point of the file; `turn` permutes the axes, which is a rotation that
 * three decimals can hold. */
static void put(FILE *file, const char *record, const char *name,
                const char *residue, char chain, int number, const double x[3],
                const char *element, int turn)
{
    fprintf(file,
            "%s%5d %-4s %3s %c%4d    %8.3f%8.3f%8.3f  1.00 10.00          "
            "%2s\n",
            record, 1, name, residue, chain, number, x[turn % 3],
            x[(1 + turn) % 3], x[(2 + turn) % 3], element);
}

static void put_cluster(FILE *file, const double at[3], int turn)
{
    static const char *const name[] = {"FE1 ", "FE2 ", "FE3 ", "FE4 ",
                                       " S1 ", " S2 ", " S3 ", " S4 "};
    for (int k = 0; k < 8; k++) {
        const int is_iron = k < 4, bit = is_iron ? k : k - 4;
        const double a = is_iron ? 0.96 : 1.27;
        const double x[3] = {
            at[0] + a * (bit & 1 ? 1 : -1), at[1] + a * (bit & 2 ? 1 : -1),
            at[2] + a * ((bit == 0 || bit == 3) == is_iron ? 1 : -1)};
        put(file, "HETATM", name[k], "SF4", 'A', 101, x, is_iron ? "FE" : "S",
            turn);
    }
}

/* A line of zinc, 1.7 Angstrom apart. */
static void put_rod(FILE *file, const double at[3], int turn)
{
    for (int k = 0; k < 12; k++) {
        const double x[3] = {at[0], at[1] + 1.7 * k, at[2] + 0.1 * (k % 3)};
        const char *name = format("ZN%-2d", k);
        put(file, "HETATM", name, "ROD", 'A', 102, x, "ZN", turn);
    }
}

static void put_nucleotide(FILE *file, const char *residue, int number,
                           const double at[3], int turn)
{
    static const struct {
        const char *name, *element;
        double x[3];
    } atom[] = {
        {" P  ", "P", {0.0, 0.0, 0.0}},  {" OP1", "O", {1.4, 0.5, 0.0}},
        {" OP2", "O", {-1.4, 0.5, 0.0}}, {" O5'", "O", {0.0, 0.9, 1.3}},
        {" C5'", "C", {0.1, 2.2, 1.8}},  {" C4'", "C", {0.2, 2.3, 3.3}},
        {" C1'", "C", {0.3, 3.6, 4.0}},  {" N9 ", "N", {1.4, 4.4, 4.5}},
        {" C8 ", "C", {2.7, 4.0, 4.6}},  {" N7 ", "N", {3.5, 4.9, 5.0}}};
    for (size_t k = 0; k < COUNT_OF(atom); k++) {
        double x[3];
        for (int d = 0; d < 3; d++)
            x[d] = at[d] + atom[k].x[d];
        put(file, "ATOM  ", atom[k].name, residue, 'D', number, x,
            atom[k].element, turn);
    }
}

static void write_protein(FILE *file, int turn, tsr_structure *s)
{
    for (int i = 0; i < s->n_residue; i++)
        for (int k = 0; k < s->residue[i].n_atom; k++) {
            const tsr_atom *a = &s->atom[s->residue[i].first_atom + k];
            char name[8], element[2] = {a->name[0], '\0'};
            snprintf(name, sizeof name, " %-3.3s", a->name);
            put(file, "ATOM  ", name, s->residue[i].name, 'A',
                s->residue[i].number, a->xyz, element, turn);
        }
}

/* Beside residues 5 and 20, before and behind the hinge 11 to 14. */
static void write_file(const char *path, int turn, int with_guests)
{
    chain_residue residue[N_RESIDUE];
    char plain[128];
    FREED(tsr_structure) s = NULL;
    for (int i = 0; i < N_RESIDUE; i++)
        residue[i] = (chain_residue){.amino = i % 2 ? TSR_ALA : TSR_GLY,
                                     .phi = -2.3,
                                     .psi = 2.4,
                                     .angle = 1.94,
                                     .omega = 3.1};
    strcpy(plain, io_path("plain.pdb"));
    FILE *file = fopen(plain, "w");
    assert_non_null(file);
    write_chain(file, N_RESIDUE, residue);
    fclose(file);
    OK(tsr_structure_read(plain, &s, &err));
    file = fopen(path, "w");
    assert_non_null(file);
    write_protein(file, turn, s);
    double near[3], far[3], beside[3];
    for (int d = 0; d < 3; d++) {
        near[d] = tsr_residue_atom(s, &s->residue[4], "CA")->xyz[d];
        far[d] = tsr_residue_atom(s, &s->residue[19], "CA")->xyz[d];
        beside[d] = far[d];
    }
    near[2] += 5.5, far[2] += 4.0;
    beside[2] += 4.0, beside[0] += 3.5;
    if (with_guests) {
        put_cluster(file, near, turn);
        near[0] += 8.0, near[2] += 8.0;
        put_rod(file, near, turn);
        put_nucleotide(file, "DA", 1, far, turn);
        put_nucleotide(file, "DG", 2, beside, turn);
    }
    fclose(file);
}

static void read_files(fixture *f, const char *path)
{
    OK(tsr_structure_read(path, &f->structure, &err));
    OK(tsr_atoms_read(path, &f->atoms, &err));
    own_tsr_structure(f->structure);
    own_tsr_atoms(f->atoms);
}

static void open_fixture(fixture *f, int turn, int with_guests,
                         const tsr_strings *bound)
{
    char *range[] = {"A:11-14"};
    const tsr_strings flexible = {.n = 1, .item = range};
    *f = (fixture){.structure = NULL};
    sample_prior_table(&f->table);
    snprintf(f->path, sizeof f->path, "%s/%d.pdb", io_dir, turn);
    write_file(f->path, turn, with_guests);
    read_files(f, f->path);
    OK(tsr_topology_from_structure(f->structure, TSR_BODIES_TWO,
                                   (tsr_flexibility){.flexible = &flexible},
                                   &f->table, NULL, &f->t, &f->c, &err));
    own_molecule(f->t, f->c);
    const tsr_status status = tsr_guests_attach(f->structure, f->atoms, bound,
                                                NULL, f->t, f->c, &err);
    if (bound == NULL)
        assert_int_equal(status, TSR_OK);
}

/* The tables that a run has are read from files; zeroes do here. */
static tsr_form_factor_table *factors(const fixture *f, int n_comp)
{
    tsr_form_factor_table *empty =
        tsr_form_factor_new(TSR_BODIES_TWO, n_comp, N_Q, dq);
    tsr_form_factor_table *table = NULL;
    assert_non_null(empty);
    OK(tsr_form_factor_add_guests(empty, f->t->guests, f->atoms,
                                  TSR_WATER_DENSITY, &table, &err));
    tsr_form_factor_free(empty);
    return own_tsr_form_factor(table);
}

static double amplitude(const tsr_form_factor_table *t, int comp, int type,
                        int k)
{
    return t->amplitude[(comp * t->n_type + type) * t->n_q + k];
}

static double excess(const tsr_form_factor_table *t, int pair, int type, int k)
{
    return t->excess[(pair * t->n_type + type) * t->n_q + k];
}

static double sinc(double x)
{
    return x > 1e-9 ? sin(x) / x : 1.0;
}

/* ---- bodies ---- */

TEST(no_guests)
{
    fixture f;
    open_fixture(&f, 0, 0, NULL);
    assert_null(f.t->guests);
    assert_int_equal(f.t->n_body, N_RESIDUE);
    assert_int_equal(tsr_topology_n_atom(f.t), 12 * 4 + 12 * 5);
}

TEST(cut_into_bodies)
{
    fixture f;
    open_fixture(&f, 0, 1, NULL);
    const tsr_guests *g = f.t->guests;
    int n[4] = {0};
    assert_ints(g->atoms->n_residue, 4, f.t->n_body, N_RESIDUE + g->n_body);
    for (int k = 0; k < g->n_body; k++)
        n[g->part[k].residue]++;
    assert_int_equal(n[0], 1);
    assert_true(n[1] >= 3); /* 18.7 Angstrom long */
    assert_ints(n[2], 3, n[3], 3);
    for (int i = 0; i < g->atoms->n_atom; i++) {
        const tsr_guest_body *body = &g->part[g->body[i]];
        assert_true(tsr_vec3_distance(g->atoms->atom[i].xyz, body->xyz) < 4.0);
    }
}

/* The cluster, which is one body and has no hydrogens, against a sum over its
 * atoms that shares no code with it. */
TEST(intensity_of_atoms)
{
    fixture f;
    open_fixture(&f, 0, 1, NULL);
    tsr_form_factor_table *t = factors(&f, 3);
    const tsr_guests *g = f.t->guests;
    const int type = t->n_trained + g->body[0];
    assert_true(t->n_type == t->n_trained + g->n_body);
    for (int k = 0; k < N_Q; k += 6) {
        const double q = k * dq;
        double direct[2] = {0.0, 0.0};
        for (int i = 0; i < 8; i++)
            for (int j = 0; j < 8; j++) {
                const tsr_file_atom *a = &g->atoms->atom[i];
                const tsr_file_atom *b = &g->atoms->atom[j];
                const double s = sinc(q * tsr_vec3_distance(a->xyz, b->xyz));
                double v[2] = {tsr_displaced_volume(a->z),
                               tsr_displaced_volume(b->z)};
                for (int l = 0; l < 2; l++)
                    v[l] *= 0.334 * exp(-q * q * cbrt(v[l] * v[l]) /
                                        (4.0 * 3.14159265358979323846));
                direct[0] += s * tsr_atom_form_factor(a->z, q) *
                             tsr_atom_form_factor(b->z, q);
                direct[1] += s * v[0] * v[1];
            }
        for (int c = 0; c < 2; c++) {
            const double f_c = amplitude(t, c, type, k);
            const double own =
                f_c * f_c + excess(t, tsr_component_pair(c, c), type, k);
            assert_near(own / direct[c], 1.0, 1e-12);
        }
    }
}

/* All electrons, those of implicit hydrogens too, and all displaced volume. */
TEST(electrons_at_zero)
{
    fixture f;
    open_fixture(&f, 0, 1, NULL);
    tsr_form_factor_table *t = factors(&f, 3), *one = factors(&f, 1);
    const tsr_guests *g = f.t->guests;
    int *n_hydrogen = array((size_t)f.atoms->n_atom, sizeof *n_hydrogen),
        n_h = 0;
    tsr_hydrogen_count count;
    OK(tsr_hydrogens_assign(f.atoms, n_hydrogen, &count, &err));
    double solute = 0.0, displaced = 0.0;
    for (int i = 0; i < g->atoms->n_atom; i++) {
        const int z = g->atoms->atom[i].z, h = n_hydrogen[g->file_atom[i]];
        solute +=
            tsr_atom_form_factor(z, 0.0) + h * tsr_atom_form_factor(1, 0.0);
        displaced += 0.334 * (tsr_displaced_volume(z) + h * 5.15);
        n_h += h;
    }
    assert_true(n_h > 0);
    for (int k = 0; k < g->n_body; k++) {
        const int type = t->n_trained + k;
        solute -= amplitude(t, TSR_SOLUTE, type, 0);
        displaced -= amplitude(t, TSR_DISPLACED, type, 0);
        assert_true(fabs(excess(t, 0, type, 0)) < 1e-8);
        for (int q = 0; q < N_Q; q++)
            assert_true(fabs(amplitude(one, 0, type, q) -
                             amplitude(t, 0, type, q) +
                             amplitude(t, 1, type, q)) < 1e-12);
        if (t->exposed[type] > 0.0)
            assert_near(amplitude(t, TSR_HYDRATION, type, 0),
                        tsr_component_water(0.0), 1e-12);
    }
    assert_true(fabs(solute) < 1e-10 && fabs(displaced) < 1e-10);
}

/* A rod in several bodies scatters as its atoms do, nearly: bodies have no
 * direction. */
TEST(rod_of_bodies)
{
    fixture f;
    open_fixture(&f, 0, 1, NULL);
    tsr_form_factor_table *t = factors(&f, 3);
    const tsr_guests *g = f.t->guests;
    for (int k = 0; k <= 30; k += 10) {
        double bodies = 0.0, atoms = 0.0;
        const double q = k * dq, z = tsr_atom_form_factor(30, q);
        for (int a = 0; a < g->n_body; a++)
            for (int b = 0; b < g->n_body; b++) {
                const tsr_guest_body *x = &g->part[a], *y = &g->part[b];
                if (x->residue != 1 || y->residue != 1)
                    continue;
                bodies += amplitude(t, 0, t->n_trained + a, k) *
                          amplitude(t, 0, t->n_trained + b, k) *
                          sinc(q * tsr_vec3_distance(x->xyz, y->xyz));
                bodies += a == b ? excess(t, 0, t->n_trained + a, k) : 0.0;
            }
        for (int i = 8; i < 20; i++)
            for (int j = 8; j < 20; j++)
                atoms += z * z *
                         sinc(q * tsr_vec3_distance(g->atoms->atom[i].xyz,
                                                    g->atoms->atom[j].xyz));
        assert_near(bodies / atoms, 1.0, 1e-12 + 0.00005 * k * k);
    }
}

TEST(turned)
{
    fixture f, g;
    open_fixture(&f, 0, 1, NULL);
    open_fixture(&g, 1, 1, NULL);
    tsr_form_factor_table *a = factors(&f, 3), *b = factors(&g, 3);
    assert_int_equal(a->n_type, b->n_type);
    for (int type = a->n_trained; type < a->n_type; type++) {
        assert_near(a->exposed[type], b->exposed[type], 1e-8);
        for (int k = 0; k < N_Q; k++)
            for (int p = 0; p < TSR_N_COMP_PAIR; p++) {
                const double e = excess(a, p, type, k);
                assert_near(e, excess(b, p, type, k), 1e-8 * (1.0 + fabs(e)));
                if (p < TSR_N_COMP)
                    assert_near(amplitude(a, p, type, k),
                                amplitude(b, p, type, k), 1e-9);
            }
    }
}

/* ---- hosts ---- */

TEST(ride_where_they_touch)
{
    fixture f;
    open_fixture(&f, 0, 1, NULL);
    const tsr_guests *g = f.t->guests;
    const int first = f.t->residue[4].unit, last = f.t->residue[19].unit;
    assert_true(first >= 0 && last >= 0 && first != last);
    assert_int_equal(f.t->residue[HOST(g, 0)].unit, first);
    assert_int_equal(f.t->residue[HOST(g, 2)].unit, last);
    assert_int_equal(HOST(g, 2), HOST(g, 3)); /* nucleotides that touch */
    for (int k = 1; k < g->n_body; k++)
        assert_true(g->part[k].host >= g->part[k - 1].host);
}

TEST(ride_where_told)
{
    fixture f;
    char *item[] = {"D:2 = A:3"};
    tsr_strings bound = {.n = 1, .item = item};
    open_fixture(&f, 0, 1, &bound);
    assert_non_null(f.t->guests);
    assert_ints(HOST(f.t->guests, 2), 2, HOST(f.t->guests, 3), 2);
    const struct {
        char *text;
        const char *says;
    } bad[] = {{"D", "does not name a residue"},
               {"E = A:3", "matches no nucleotide"},
               {"D:x = A:3", "matches no nucleotide"},
               {"D = A:99", "structure.attach.0"}};
    for (size_t k = 0; k < COUNT_OF(bad); k++) {
        err = (tsr_err){.status = TSR_OK};
        item[0] = bad[k].text;
        open_fixture(&f, 0, 1, &bound);
        assert_int_equal(err.status, TSR_E_CONFIG);
        assert_has(err.message, bad[k].says);
        assert_null(f.t->guests);
    }
    err = (tsr_err){.status = TSR_OK};
}

/* Residue 8, called phosphoserine: what serine lacks is a body on it. */
TEST(extra_atoms)
{
    fixture f;
    char line[128];
    open_fixture(&f, 0, 0, NULL);
    const char *path = io_path("sep.pdb");
    FILE *from = fopen(f.path, "r"), *to = fopen(path, "w");
    assert_true(from != NULL && to != NULL);
    while (fgets(line, sizeof line, from) != NULL) {
        if (strncmp(line + 17, "ALA A   8", 9) == 0)
            memcpy(line + 17, "SEP", 3);
        fputs(line, to);
        if (strncmp(line + 12, " CB  SEP", 8) == 0) {
            memcpy(line + 12, " P  ", 4);
            memcpy(line + 76, " P", 2);
            line[32] = line[32] == '5' ? '6' : '5';
            fputs(line, to);
        }
    }
    fclose(from);
    fclose(to);
    sample_prior_table(&f.table);
    read_files(&f, path);
    assert_string_equal(f.structure->residue[7].name, "SER");
    OK(tsr_topology_from_structure(f.structure, TSR_BODIES_TWO,
                                   (tsr_flexibility){.is_frozen = 1}, &f.table,
                                   NULL, &f.t, &f.c, &err));
    own_molecule(f.t, f.c);
    OK(tsr_guests_attach(f.structure, f.atoms, NULL, NULL, f.t, f.c, &err));
    /* serine has a side chain, alanine none */
    assert_int_equal(f.t->n_body, N_RESIDUE + 2);
    const tsr_guest_body *body = tsr_guests_body(
        f.t, f.t->residue[7].first_body + f.t->residue[7].n_body - 1);
    assert_ints(body->host, 7, body->n_atom, 1);
    assert_near(body->mass, tsr_atom_mass(15), 1e-9);
}

/* ---- motion ---- */

/* Distances to the host's domain stay, those to the other do not; what moved
 * with the chain is where its frame says. */
TEST(move_with_the_host)
{
    fixture f;
    open_fixture(&f, 0, 1, NULL);
    const tsr_guests *g = f.t->guests;
    const int n_atom = tsr_topology_n_atom(f.t), n = g->atoms->n_atom;
    double(*xyz)[3] = array((size_t)n_atom, sizeof *xyz);
    gsl_rng *rng = rng_new(3, 0);
    for (int i = 0; i < 200; i++)
        tsr_conformation_turn(f.t, f.c,
                              &f.t->torsion[gsl_rng_uniform_int(
                                  rng, (unsigned long)f.t->n_torsion)],
                              6.28 * gsl_rng_uniform(rng));
    tsr_conformation_atoms(f.t, f.c, xyz);
    double most = 0.0;
    for (int i = 0; i < n; i++) {
        const tsr_file_atom *a = &g->atoms->atom[i];
        const int is_late = g->host[i] > 14;
        for (int r = 0; r < N_RESIDUE; r++) {
            const double before = tsr_vec3_distance(
                a->xyz,
                tsr_residue_atom(f.structure, &f.structure->residue[r], "CA")
                    ->xyz);
            const double after = tsr_vec3_distance(xyz[n_atom - n + i],
                                                   f.c->backbone[r][TSR_CA]);
            if (is_late ? r >= 14 : r < 10)
                assert_near(after, before, 1e-6);
            most = fmax(most, fabs(after - before));
        }
    }
    assert_true(most > 5.0);
    tsr_conformation *again = new_conformation(f.t);
    tsr_conformation_copy(f.t, again, f.c, 0, N_RESIDUE);
    tsr_conformation_place_bodies(f.t, again, 0, N_RESIDUE);
    for (int b = 0; b < f.t->n_body; b++)
        assert_true(tsr_vec3_distance(again->body[b], f.c->body[b]) < 1e-7);
}

/* Nucleotides told to ride on the other domain are in this one's way. */
TEST(clash_with_others)
{
    fixture f;
    char *item[] = {"D = A:3"};
    const tsr_strings bound = {.n = 1, .item = item};
    const tsr_prior_options options = {
        .clash = TSR_CLASH_SOFT, .softness = 0.3, .clash_limit = 0.2};
    char worst[160] = "";
    for (int is_bound = 0; is_bound < 2; is_bound++) {
        FREED(tsr_prior) prior = NULL;
        open_fixture(&f, 0, 1, is_bound ? &bound : NULL);
        for (int a = 0; a < TSR_MAX_TYPE; a++)
            for (int b = 0; b < TSR_MAX_TYPE; b++)
                f.table.contact[TSR_BODIES_TWO][a][b] = 5.0;
        OK(tsr_prior_new(f.t, &f.table, &options, 0.0, &prior, &err));
        const int n = tsr_prior_clashes(prior, f.c, worst);
        assert_ints(n > 0, is_bound,
                    isinf(tsr_prior_log_reference(prior, f.c)) != 0, is_bound);
    }
    assert_has(worst, "D:1 DA");
}

/* ---- files ---- */

TEST(model_file)
{
    fixture f;
    const char *path = io_path("model.pdb");
    FREED(tsr_model_atoms) m = NULL;
    open_fixture(&f, 0, 1, NULL);
    FREED(tsr_model_atoms) s = tsr_topology_model(f.t, f.c);
    OK(tsr_model_atoms_write(s, path, NULL, &err));
    OK(tsr_model_atoms_read(path, &m, &err));
    assert_ints(m->n_residue, N_RESIDUE, m->n_atom, tsr_topology_n_atom(f.t));
    const int first = m->n_atom - f.t->guests->atoms->n_atom;
    for (int i = 0; i < m->n_atom; i++) {
        const tsr_model_atom *a = &m->atom[i];
        assert_int_equal(a->at < 0, i >= first);
        if (i < first)
            continue;
        const tsr_file_atom *from = &f.t->guests->atoms->atom[i - first];
        assert_string_equal(a->name, from->name);
        assert_string_equal(a->element, tsr_atom_symbol(from->z));
        assert_int_equal(a->guest_kind, a->chain == 'D' ? TSR_GUEST_NUCLEOTIDE
                                                        : TSR_GUEST_LIGAND);
        assert_true(tsr_vec3_distance(&m->xyz[3 * i], from->xyz) < 1e-6);
    }
}
