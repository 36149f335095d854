/* Which atoms of a file scatter, with which hydrogens, displaced volumes and
 * hydration layer, for files that are complete, partial or damaged. */
#include "core/vec3.h"
#include "molecule/points.h"
#include "molecule/structure.h"
#include "scattering/atom_model.h"
#include "scattering/form_factor.h"
#include "tests/io_files.h"
#include "tests/pdb_lines.h"
#include "tests/test.h"

OWNED(tsr_atom_model)
OWNED(tsr_atoms)

static tsr_atoms *read_ok(const char *path)
{
    tsr_atoms *atoms = NULL;
    OK(tsr_atoms_read(path, &atoms, &err));
    return own_tsr_atoms(atoms);
}

#define line(text, record, name, alt, residue, ...) \
    pdb_atom(text, record, name, alt, residue, 'A', __VA_ARGS__)

/* A model in water. */
static tsr_status new_model(const tsr_atoms *atoms, tsr_solvent_model solvent,
                            tsr_atom_model **out)
{
    return tsr_atom_model_new(atoms, solvent, TSR_WATER_DENSITY, out, &err);
}

/* ---- what is read ---- */

TEST(all_kinds_are_read)
{
    char text[4096] = "";
    line(text, "ATOM", " CA ", ' ', "GLY", 1, 0, 0, 0, "C");
    line(text, "HETATM", "SE  ", ' ', "MSE", 2, 5, 0, 0, "SE");
    line(text, "ATOM", " C1*", ' ', " DA", 3, 10, 0, 0, "C");
    line(text, "HETATM", " C1 ", ' ', "NAG", 4, 15, 0, 0, "C");
    line(text, "HETATM", "ZN  ", ' ', " ZN", 5, 20, 0, 0, "ZN");
    line(text, "HETATM", " S  ", ' ', "SO4", 6, 25, 0, 0, "S");
    line(text, "HETATM", " O1 ", ' ', "SO4", 6, 26.5, 0, 0, "O");
    line(text, "HETATM", " C1 ", ' ', "QQ9", 7, 30, 0, 0, "C");
    line(text, "HETATM", " C2 ", ' ', "QQ9", 7, 31.5, 0, 0, "C");
    line(text, "HETATM", " O  ", ' ', "HOH", 8, 35, 0, 0, "O");
    tsr_atoms *a = read_ok(io_text("kinds.pdb", text));
    assert_ints(a->n_atom, 9, a->n_water, 1, a->n_kind[TSR_MOLECULE_PROTEIN], 2,
                a->n_kind[TSR_MOLECULE_NUCLEOTIDE], 1,
                a->n_kind[TSR_MOLECULE_SUGAR], 1, a->n_kind[TSR_MOLECULE_ION],
                1, a->n_kind[TSR_MOLECULE_BUFFER], 1,
                a->n_kind[TSR_MOLECULE_OTHER], 1, a->atom[1].z, 34);
    assert_string_equal(a->residue[1].parent, "MET");
    assert_string_equal(a->atom[2].name, "C1'");
    assert_string_equal(a->residue[2].parent, "A");
    assert_int_equal(a->residue[6].is_tabulated, 0);
}

/* A name like that of a hydrogen is an element's in an ion alone. */
TEST(mercury_and_hydrogen)
{
    char text[512] = "";
    line(text, "HETATM", "HG  ", ' ', " HG", 1, 0, 0, 0, "HG");
    line(text, "ATOM", " OG ", ' ', "SER", 2, 9, 0, 0, "O");
    line(text, "ATOM", "HG  ", ' ', "SER", 2, 9.9, 0, 0, "HG");
    tsr_atoms *a = read_ok(io_text("mercury.pdb", text));
    assert_ints(a->atom[0].z, 80, a->atom[2].z, 1, a->n_hydrogen, 1);
}

TEST(one_alternate_location)
{
    char text[4096] = "";
    line(text, "ATOM", " CA ", ' ', "SER", 1, 0, 0, 0, "C");
    line(text, "ATOM", " CB ", 'B', "SER", 1, 1.5, 0, 0, "C");
    line(text, "ATOM", " CB ", 'A', "SER", 1, 1.6, 0, 0, "C");
    line(text, "ATOM", " OG ", 'A', "SER", 1, 2.6, 0, 0, "O");
    line(text, "ATOM", " CA ", 'A', "VAL", 2, 9.0, 0, 0, "C");
    line(text, "ATOM", " CA ", 'B', "ILE", 2, 9.1, 0, 0, "C");
    tsr_atoms *a = read_ok(io_text("alternates.pdb", text));
    assert_int_equal(a->n_atom, 4); /* CA; CB of B, the first; OG; VAL */
    assert_near(a->atom[1].xyz[0], 1.5, 1e-9);
    assert_int_equal(a->n_altloc_atom, 2);
    assert_string_equal(a->residue[1].name, "VAL");
}

/* The larger part, whatever comes first; ligands that are there in part are
 * told. */
TEST(occupancies_choose)
{
    char text[4096] = "";
    line(text, "ATOM", " CA ", ' ', "SER", 1, 0, 0, 0, "C");
    line(text, "ATOM", " CB ", 'A', "SER", 1, 1.5, 0, 0, "C");
    memcpy(strstr(text, "  1.500") + 25, "0.30", 4);
    line(text, "ATOM", " CB ", 'B', "SER", 1, 1.6, 0, 0, "C");
    memcpy(strstr(text, "  1.600") + 25, "0.70", 4);
    line(text, "HETATM", "ZN  ", ' ', " ZN", 2, 9, 0, 0, "ZN");
    memcpy(strstr(text, "  9.000") + 25, "0.50", 4);
    tsr_atoms *a = read_ok(io_text("occupancies.pdb", text));
    assert_int_equal(a->n_atom, 3);
    assert_near(a->atom[1].xyz[0], 1.6, 1e-9);
    assert_int_equal(a->n_partial, 1);
}

TEST(molecules_may_share_a_chain)
{
    char text[4096] = "";
    line(text, "ATOM", " CA ", ' ', "GLY", 1, 0, 0, 0, "C");
    line(text, "ATOM", " CA ", ' ', "ALA", 2, 4, 0, 0, "C");
    line(text, "ATOM", " CA ", ' ', "GLY", 1, 40, 0, 0, "C");
    tsr_atoms *a = read_ok(io_text("twice.pdb", text));
    assert_int_equal(a->n_atom, 3);
}

TEST(refusals)
{
    char water[256] = "", centre[512] = "", nan[256] = "";
    tsr_atoms *a = NULL;
    line(water, "HETATM", " O  ", ' ', "HOH", 1, 0, 0, 0, "O");
    FAILS(tsr_atoms_read(io_text("w.pdb", water), &a, &err), TSR_E_DATA,
          "1 waters");
    line(centre, "ATOM", " CA ", ' ', "LEU", 1, 0, 0, 0, "C");
    line(centre, "ATOM", " SC ", ' ', "LEU", 1, 2, 0, 0, "C");
    FAILS(tsr_atoms_read(io_text("c.pdb", centre), &a, &err), TSR_E_DATA,
          "--bodies one");
    line(nan, "ATOM", " CA ", ' ', "LEU", 1, (double)NAN, 0, 0, "C");
    assert_int_not_equal(tsr_atoms_read(io_text("n.pdb", nan), &a, &err),
                         TSR_OK);
    assert_int_equal(tsr_atoms_read(io_path("none.pdb"), &a, &err),
                     TSR_E_NOINPUT);
    assert_null(a);
}

static const char cif[] =
    "data_x\nloop_\n_atom_site.group_PDB\n_atom_site.id\n"
    "_atom_site.type_symbol\n_atom_site.label_atom_id\n"
    "_atom_site.label_alt_id\n_atom_site.label_comp_id\n"
    "_atom_site.label_asym_id\n_atom_site.auth_seq_id\n"
    "_atom_site.Cartn_x\n_atom_site.Cartn_y\n_atom_site.Cartn_z\n"
    "_atom_site.occupancy\n_atom_site.B_iso_or_equiv\n"
    "_atom_site.auth_asym_id\n"
    "ATOM 1 C CA . ALA A 1 0 0 0 1 20 A\n"
    "HETATM 2 FE FE . HEM B 2 5 0 0 1 20 A\n"
    "HETATM 3 N NA . HEM B 2 7 0 0 1 20 A\n"
    "HETATM 4 O O . HOH C 3 9 0 0 1 20 A\n";

TEST(mmcif_is_read_too)
{
    tsr_atoms *a = read_ok(io_text("small.cif", cif));
    assert_ints(a->n_atom, 3, a->n_water, 1, a->n_kind[TSR_MOLECULE_OTHER], 1,
                a->atom[1].z, 26);
}

/* Whatever is in a file, it is read or refused with a message; what is read can
 * be made a model of. */
static void damage(const char *text, const char *name)
{
    uint32_t seed = 1;
    size_t size = strlen(text);
    char *copy = array(size + 1, 1);
    for (int round = 0; round < io_rounds(150); round++) {
        size_t n = io_damage(copy, text, size, &seed);
        FREED(tsr_atoms) a = NULL;
        FREED(tsr_atom_model) m = NULL;
        const char *path = io_write(name, copy, n);
        if (tsr_atoms_read(path, &a, &err) != TSR_OK) {
            assert_null(a);
            assert_has(err.message, path);
            continue;
        }
        tsr_status status = new_model(a, TSR_SOLVENT_LAYER, &m);
        assert_true(status == TSR_OK || status == TSR_E_DATA);
        assert_true(m == NULL || (m->n_atom <= a->n_atom && m->mass > 0.0));
    }
}

TEST(damaged_files_do_no_harm)
{
    char text[4096] = "";
    line(text, "ATOM", " CA ", 'A', "SER", 1, 0, 0, 0, "C");
    line(text, "ATOM", " CB ", 'B', "SER", 1, 1.5, 0, 0, "C");
    line(text, "HETATM", "SE  ", ' ', "MSE", 2, 5, 0, 0, "SE");
    line(text, "ATOM", " C1*", ' ', " DA", 3, 10, 0, 0, "C");
    line(text, "HETATM", " C1 ", ' ', "QQ9", 7, 11.5, 0, 0, "C");
    line(text, "HETATM", " H1 ", ' ', "QQ9", 7, 12.5, 0, 0, "H");
    damage(text, "damaged.pdb");
    damage(cif, "damaged.cif");
}

/* ---- hydrogens ---- */

static int *hydrogens(const tsr_atoms *a, tsr_hydrogen_count *count)
{
    int *n = array((size_t)a->n_atom, sizeof *n);
    OK(tsr_hydrogens_assign(a, n, count, &err));
    return n;
}

static char *without_hydrogens(const char *path)
{
    char *text = io_read(path, NULL), *plain = array(strlen(text) + 1, 1);
    for (char *p = text; *p != '\0';) {
        size_t n = strcspn(p, "\n");
        n += p[n] == '\n';
        if (strncmp(p, "ATOM", 4) == 0 && p[12] != 'H' && p[13] != 'H')
            strncat(plain, p, n);
        p += n;
    }
    return plain;
}

/* Residues under a name that no table knows: the valence rule must find what
 * the tables say, but for a few atoms that bond lengths do not tell apart
 * (imidazole, pyridine-like nitrogens). */
static int disagree(const char *path, int *n_atom)
{
    char *plain = without_hydrogens(path);
    tsr_hydrogen_count count;
    tsr_atoms *known = read_ok(io_text("known.pdb", plain));
    for (char *p = plain; *p != '\0'; p += strcspn(p, "\n") + 1)
        memcpy(p + 17, "QQ9", 3);
    tsr_atoms *unknown = read_ok(io_text("unknown.pdb", plain));
    int *by_name = hydrogens(known, &count), n = 0;
    assert_int_equal(count.n_valence, 0);
    int *by_valence = hydrogens(unknown, &count);
    assert_ints(count.n_table, 0, known->n_atom, unknown->n_atom);
    for (int i = 0; i < known->n_atom; i++)
        n += by_name[i] != by_valence[i];
    *n_atom = known->n_atom;
    return n;
}

TEST(valence_finds_what_tables_say)
{
    int n_atom;
    NEEDS_SHARED;
    int n = disagree(SHARED "reference_profiles/crysol_1hel/1HEL.pdb", &n_atom);
    assert_int_equal(n_atom, 1001);
    assert_in_range(n, 0, 8);
    n = disagree(SHARED "reference_profiles/plumed_rt-saxs/template.pdb",
                 &n_atom); /* protein and DNA, of a simulation */
    assert_int_equal(n_atom, 5903);
    assert_in_range(n, 0, 100);
}

/* The same molecule with its hydrogens in the file and without: one model. */
TEST(hydrogens_in_the_file_change_nothing)
{
    const char *path = SHARED "reference_profiles/plumed_rt-saxs/template.pdb";
    tsr_hydrogen_count count;
    tsr_atom_model *one, *other;
    NEEDS_SHARED;
    tsr_atoms *full = read_ok(path);
    tsr_atoms *bare = read_ok(io_text("bare.pdb", without_hydrogens(path)));
    hydrogens(full, &count);
    /* two chains of protein begin with two more each: NH3+ */
    assert_int_equal(full->n_hydrogen - count.n_atom, 4);
    assert_int_equal(new_model(full, TSR_SOLVENT_LAYER, &one), TSR_OK);
    assert_int_equal(new_model(bare, TSR_SOLVENT_LAYER, &other), TSR_OK);
    assert_ints(one->n_atom, bare->n_atom, one->n, other->n);
    for (int i = 0; i < one->n; i++) {
        assert_int_equal(one->type[i], other->type[i]);
        assert_near(one->surface[i], other->surface[i], 0.0);
    }
    tsr_atom_model_free(one);
    tsr_atom_model_free(other);
}

TEST(polar_hydrogens_and_disulfides)
{
    char text[4096] = "";
    tsr_hydrogen_count count;
    line(text, "ATOM", " CB ", ' ', "QQ9", 1, 0, 0, 0, "C");
    line(text, "ATOM", " OG ", ' ', "QQ9", 1, 1.42, 0, 0, "O");
    line(text, "ATOM", " HG ", ' ', "QQ9", 1, 1.75, 0.9, 0, "H");
    line(text, "ATOM", " SG ", ' ', "CYS", 2, 20, 0, 0, "S");
    line(text, "ATOM", " SG ", ' ', "CYS", 3, 22.04, 0, 0, "S");
    line(text, "ATOM", " SG ", ' ', "CYS", 4, 30, 0, 0, "S");
    tsr_atoms *a = read_ok(io_text("polar.pdb", text));
    int *n = hydrogens(a, &count);
    /* A carbon without hydrogens, by its bond; an oxygen that has its own; a
     * disulfide, 3 and 4; a thiol. */
    assert_ints(n[0], 3, n[1], 1, n[2], 0, n[3], 0, n[4], 0, n[5], 1,
                count.n_polar, 1);
}

/* ---- cells ---- */

/* Every point that is near is found, none that is not. */
TEST(cells_find_neighbours)
{
    enum { N = 400 };
    double xyz[N][3];
    uint32_t seed = 5;
    for (int i = 0; i < N; i++)
        for (int c = 0; c < 3; c++)
            xyz[i][c] = (io_random(&seed) % 10000) * (i < N - 1 ? 3e-3 : 1.0);
    tsr_cell_list *cells;
    CLEARED(tsr_pool) pool = {0};
    OK(tsr_cell_list_new(&pool, N, (const double(*)[3])xyz, 5.0, &cells, &err));
    for (int i = 0; i < N; i++) {
        int index[N], want = 0;
        int n = tsr_cell_list_within(cells, xyz[i], 4.5, N, index);
        for (int j = 0; j < N; j++) {
            double d2 = 0.0;
            for (int c = 0; c < 3; c++)
                d2 += pow(xyz[i][c] - xyz[j][c], 2.0);
            want += d2 <= 4.5 * 4.5;
        }
        assert_int_equal(n, want);
        for (int k = 1; k < n; k++)
            for (int l = 0; l < k; l++)
                assert_int_not_equal(index[k], index[l]);
    }
}

/* A point that is none is refused; all in one place, or as far apart as can be,
 * are found. */
TEST(cells_of_odd_points)
{
    enum { N = 50 };
    static const double bad[] = {(double)NAN, (double)INFINITY,
                                 -(double)INFINITY, 1e300, -1.7e308};
    double xyz[N][3];
    int index[N];
    tsr_cell_list *cells;
    tsr_pool pool = {0};
    for (size_t k = 0; k < COUNT_OF(bad); k++) {
        memset(xyz, 0, sizeof xyz);
        xyz[7][k % 3] = bad[k];
        assert_int_equal(tsr_cell_list_new(&pool, N, (const double(*)[3])xyz,
                                           5.0, &cells, &err),
                         TSR_E_NUMERIC);
        assert_null(cells);
        assert_int_equal(tsr_cell_list_new(&pool, N, (const double(*)[3])xyz,
                                           5.0, &cells, NULL),
                         TSR_E_NUMERIC);
    }
    memset(xyz, 0, sizeof xyz);
    for (int far = 0; far < 2; far++) {
        xyz[0][0] = far * 9e99, xyz[1][1] = -far * 9e99;
        OK(tsr_cell_list_new(&pool, N, (const double(*)[3])xyz, 5.0, &cells,
                             &err));
        assert_int_equal(tsr_cell_list_within(cells, xyz[2], 5.0, N, index),
                         N - 2 * far);
        assert_int_equal(tsr_cell_list_within(cells, xyz[0], 5.0, N, index),
                         far ? 1 : N);
        tsr_pool_clear(&pool);
    }
}

/* ---- amplitudes ---- */

static tsr_atoms *two_atoms(void)
{
    char text[1024] = "";
    line(text, "ATOM", " CB ", ' ', "ALA", 1, 0, 0, 0, "C");
    line(text, "ATOM", " O  ", ' ', "ALA", 1, 9, 0, 0, "O");
    return read_ok(io_text("two.pdb", text));
}

TEST(amplitudes)
{
    tsr_atoms *a = two_atoms();
    tsr_atom_model *m;
    double f[3][2][2]; /* component, type, q = 0 and 0.3 */
    assert_int_equal(new_model(a, TSR_SOLVENT_ATOMS, &m), TSR_OK);
    assert_ints(m->n_type, 2, m->n, 2, m->kind[m->type[0]].n_hydrogen, 3);
    tsr_atom_model_factors(m, 2, 0.3, &f[0][0][0]);
    /* C in Angstrom^3, Fraser 1978: 16.44 + 3 * 5.15 */
    double v = 31.89, rho0 = 0.334;
    assert_near(f[0][0][0], 9.0, 0.01);
    assert_near(f[1][0][0], rho0 * v, 1e-9);
    assert_near(f[1][0][1],
                rho0 * v * exp(-0.09 * pow(v, 2.0 / 3.0) / (4.0 * TSR_PI)),
                1e-9);
    assert_near(f[0][0][1],
                tsr_atom_form_factor(6, 0.3) + 3 * tsr_atom_form_factor(1, 0.3),
                1e-9);
    /* water: 10 electrons less those of 19.43 A^3, the same for all types */
    assert_near(f[2][0][0], 10.0 - rho0 * 19.43, 0.01);
    assert_nears(0.0, f[2][1][1], f[2][0][1], m->surface[0], 1.0);
    assert_near(m->radius_ang,
                0.5 * (cbrt(0.75 * v / TSR_PI) + cbrt(0.75 * 9.13 / TSR_PI)),
                1e-9);
    assert_near(m->rg_ang, 9.0 * sqrt(15.035 * 15.999) / 31.034, 1e-3);
    tsr_atom_model_free(m);
    /* No element without a volume. */
    for (int z = 1; z <= 98; z++)
        assert_true(tsr_displaced_volume(z) > 0.0);
}

/* Models of a file: as often as they are there, of the same atoms. */
TEST(all_models)
{
#define ONE_MODEL                                             \
    "ATOM      1  N   GLY A   1      %6.3f   2.000   3.000\n" \
    "ATOM      2  CA  GLY A   1      %6.3f   2.000   3.000\n" \
    "HETATM    3  O   HOH A   2       9.000   9.000   9.000\n"
    char text[4096] = "TITLE     of two\n";
    tsr_atoms *a;
    double(*xyz)[3];
    int n;
    for (int k = 0; k < 3; k++) {
        strcat(text, format("MODEL %8d\n", k + 1));
        strcat(strcat(text, format(ONE_MODEL, 1.0 + k, 2.0 + k)), "ENDMDL\n");
    }
    OK(tsr_atoms_read_models(io_text("m.pdb", text), &a, &n, &xyz, &err));
    assert_ints(n, 3, a->n_atom, 2);
    for (int k = 0; k < 3; k++)
        assert_nears(1e-9, xyz[2 * k][0], 1.0 + k, xyz[2 * k + 1][0], 2.0 + k);
    tsr_atoms_free(a);
    char *third = strstr(text, "MODEL        3");
    memmove(third, third + 15, strlen(third + 15) + 1);
    third[13] = 'C', third[14] = 'B'; /* another atom */
    FAILS(tsr_atoms_read_models(io_text("m.pdb", text), &a, &n, &xyz, &err),
          TSR_E_DATA, "model 3 has other atoms than the first");
    assert_null(a);
    text[17 + 15 + 2 * 55] = '\0'; /* one model alone, without its end */
    OK(tsr_atoms_read_models(io_text("m.pdb", text), &a, &n, &xyz, &err));
    assert_int_equal(n, 1);
    tsr_atoms_free(a);
}

/* At q = 0 the model displaces the solvent's density times its volume, and a
 * layer of 3 A holds 0.01 e/A^3 over the spheres' areas; two atoms far apart
 * have nothing between them, so that their beads are at their centres. */
TEST(layer_of_two_atoms)
{
    tsr_atoms *a = two_atoms();
    FREED(tsr_atom_model) m;
    double f[3][3][2], sum[3] = {0.0, 0.0, 0.0}, area = 0.0;
    a->atom[1].xyz[0] = 40.0;
    OK(tsr_atom_model_new(a, TSR_SOLVENT_LAYER, 0.4, &m, &err));
    assert_ints(m->n_atom, 2, m->n, 4, m->n_type, 3);
    tsr_atom_model_factors(m, 2, 0.3, &f[0][0][0]);
    for (int i = 0; i < m->n; i++) {
        const tsr_atom_kind *k = &m->kind[m->type[i]];
        sum[0] += f[0][m->type[i]][0] - k->z - k->n_hydrogen;
        sum[1] += f[1][m->type[i]][0];
        sum[2] += m->surface[i] * f[2][m->type[i]][0];
    }
    for (int i = 0; i < 2; i++) {
        double r = cbrt(0.75 * m->kind[m->type[i]].volume / 3.14159265358979);
        area += 4.0 * 3.14159265358979 * (r + 4.0) * (r + 4.0);
        assert_near(tsr_vec3_distance(m->xyz[2 + i], m->xyz[i]), 0.0, 1e-12);
        assert_near(m->surface[i], 0.0, 0.0);
    }
    assert_near(sum[0], 0.0, 0.01);
    assert_nears(1e-9, sum[1], 0.4 * m->volume, sum[2], 0.01 * 3.0 * area);
    /* The displaced solvent of an atom is as wide as its cell. */
    assert_near(f[1][1][1] / f[1][1][0],
                exp(-0.055 * pow(m->kind[1].volume, 2.0 / 3.0) * 0.09), 1e-8);
    /* Atoms move: B = 12 A^2. */
    assert_near(f[0][1][1] / tsr_atom_form_factor(8, 0.3),
                exp(-12.0 * 0.09 / (16.0 * 9.8696044)), 1e-8);
}

/* The other side of a wall: the bead is outside, on the widened sphere. */
TEST(beads_are_outside)
{
    char text[32768] = "";
    for (int i = 0; i < 7; i++)
        for (int k = 0; k < 7; k++)
            line(text, "ATOM", " CB ", ' ', "ALA", 7 * i + k + 1, 0.0, 2.0 * i,
                 2.0 * k, "C");
    tsr_atoms *a = read_ok(io_text("wall.pdb", text));
    FREED(tsr_atom_model) m;
    for (int i = 0; i < a->n_atom; i++) /* half of it removed: two layers */
        a->atom[i].xyz[0] = i % 2 == 0 ? 0.0 : 3.0;
    assert_int_equal(new_model(a, TSR_SOLVENT_LAYER, &m), TSR_OK);
    int n_outside = 0;
    for (int i = m->n_atom; i < m->n; i++) {
        double x = m->xyz[i][0];
        n_outside += x < -2.0 || x > 5.0 || m->xyz[i][1] < 0.0 ||
                     m->xyz[i][1] > 12.0 || m->xyz[i][2] < 0.0 ||
                     m->xyz[i][2] > 12.0;
    }
    assert_true(m->n > m->n_atom);
    assert_int_equal(n_outside, m->n - m->n_atom);
}

/* What a coordinate's eight columns may hold. */
static tsr_status field(const char *x)
{
    tsr_atoms *a = NULL;
    const char *text =
        format("ATOM      1  CA  GLY A   1    %s   2.000   3.000\n", x);
    tsr_status status = tsr_atoms_read(io_text("x.pdb", text), &a, &err);
    tsr_atoms_free(a);
    return status;
}

TEST(numbers_of_pdb_fields)
{
    static const char *const good[] = {"   1.000", "1.000   ", "  -1.000",
                                       "     +.5", "      5.", "12345678",
                                       " 1.5e+01", "   -0   "};
    static const char *const bad[] = {"        ", "       .", "       -",
                                      "   1.0.0", "   1 000", "  --1.00",
                                      "   1.0a ", "    0x1F", " 1.000-2"};
    for (size_t i = 0; i < COUNT_OF(good); i++)
        assert_int_equal(field(good[i]), TSR_OK);
    for (size_t i = 0; i < COUNT_OF(bad); i++)
        assert_int_equal(field(bad[i]), TSR_E_DATA);
}
