/* Protein is read from PDB and mmCIF files, everything else is counted or
 * refused with a reason, and written PDB files are exact to the column. */
#include "molecule/structure.h"
#include "tests/io_files.h"
#include "tests/pdb_lines.h"
#include "tests/test.h"

#include <dirent.h>
#include <sys/stat.h>
#include <zlib.h>

OWNED(tsr_structure)

static tsr_structure *read_ok(const char *path)
{
    tsr_structure *structure = NULL;
    OK(tsr_structure_read(path, &structure, &err));
    return own_tsr_structure(structure);
}

static void refused_path(const char *path, tsr_status status, const char *part)
{
    tsr_structure *structure = NULL;
    assert_int_equal(tsr_structure_read(path, &structure, &err), status);
    assert_null(structure);
    assert_has(err.message, path);
    assert_has(err.message, part);
    assert_null(strchr(err.message, '\n'));
    assert_int_equal(tsr_structure_read(path, &structure, NULL), status);
}

static void refused(const char *text, const char *part)
{
    refused_path(io_text("bad.pdb", text), TSR_E_DATA, part);
}

static char text[16384]; /* the file that a test makes */

/* CA is not in line with the others. */
static void atom(const char *record, const char *name, char alt,
                 const char *residue, char chain, int number, double x,
                 const char *element)
{
    pdb_atom(text, record, name, alt, residue, chain, number, x,
             strcmp(name, " CA ") == 0 ? 0.7 - x : -x, 2 * x, element);
}

/* N, CA, C, O at x, spaced so that the C binds the N of the next residue where
 * that begins 3 Angstrom on (distances are sqrt 6 times those in x). */
static void backbone(const char *record, const char *residue, char chain,
                     int number)
{
    const double x = 1.5 * number;
    atom(record, " N  ", ' ', residue, chain, number, x, "N");
    atom(record, " CA ", ' ', residue, chain, number, x + 0.5, "C");
    atom(record, " C  ", ' ', residue, chain, number, x + 1, "C");
    atom(record, " O  ", ' ', residue, chain, number, x + 1.2, "O");
}

/* The text is residues from..to of glycine. */
static void glycines(int from, int to)
{
    text[0] = '\0';
    for (int i = from; i <= to; i++)
        backbone("ATOM", "GLY", 'A', i);
}

TEST(left_out_and_counted)
{
    strcpy(text, "HEADER    TEST\nMODEL        1\n");
    backbone("ATOM", "ALA", 'A', 1);
    atom("ATOM", " CB ", 'A', "ALA", 'A', 1, 1.6, "C");
    atom("ATOM", " CB ", 'B', "ALA", 'A', 1, 9.9, "C");
    atom("ATOM", " HA ", ' ', "ALA", 'A', 1, 3, "H");
    atom("ATOM", "1HB ", ' ', "ALA", 'A', 1, 3, "D");
    backbone("HETATM", "MSE", 'A', 2);
    atom("HETATM", "SE  ", ' ', "MSE", 'A', 2, 4, "SE");
    backbone("HETATM", "SEP", 'A', 3);
    atom("HETATM", " OG ", ' ', "SEP", 'A', 3, 4, "O");
    atom("HETATM", " P  ", ' ', "SEP", 'A', 3, 4, "P");
    backbone("ATOM", "HIE", 'A', 4);
    atom("ATOM", " ND1", ' ', "HIE", 'A', 4, 4, "N");
    strcat(text, "TER\n");
    atom("HETATM", "CA  ", ' ', " CA", 'A', 90, 4, "CA");
    atom("HETATM", " O  ", ' ', "HOH", 'A', 91, 4, "O");
    atom("HETATM", " O  ", ' ', "HOH", 'A', 92, 5, "O");
    backbone("HETATM", "GLU", 'A', 300); /* a free amino acid */
    atom("ATOM", " P  ", ' ', " DA", 'B', 1, 4, "P");
    atom("ATOM", " P  ", ' ', "  U", 'B', 2, 5, "P");
    strcat(text, "ENDMDL\nMODEL        2\n");
    strcat(text, "ATOM      1  N   ALA A   1 nonsense that nobody reads here "
                 "at all\nENDMDL\nEND\n");
    tsr_structure *s = read_ok(io_text("counts.pdb", text));
    assert_ints(s->n_residue, 4, s->n_chain, 1, s->n_atom, 5 + 5 + 5 + 5,
                s->n_hydrogen, 2, s->n_altloc_atom, 1, s->n_extra_atom, 1,
                s->n_ligand, 2, s->n_water, 2, s->n_nucleotide, 2, s->n_model,
                1, s->n_renamed, 3);
    static const char *const name[] = {"ALA", "MET", "SER", "HIS"};
    static const char *const file_name[] = {"ALA", "MSE", "SEP", "HIE"};
    for (int i = 0; i < 4; i++) {
        assert_string_equal(s->residue[i].name, name[i]);
        assert_string_equal(s->residue[i].file_name, file_name[i]);
        assert_ints(s->residue[i].number, i + 1, s->residue[i].first_atom,
                    5 * i);
    }
    const tsr_atom *atom = tsr_residue_atom(s, &s->residue[0], "CB");
    assert_near(atom->xyz[0], 1.6, 1e-9); /* the first alternate */
    atom = tsr_residue_atom(s, &s->residue[1], "SD");
    assert_non_null(atom);
    assert_int_equal(atom->z, 16);
    assert_null(tsr_residue_atom(s, &s->residue[1], "SE"));
    atom = tsr_residue_atom(s, &s->residue[3], "CA");
    assert_int_equal(atom->z, 6);
    assert_near(atom->xyz[2], 2 * 6.5, 1e-9);
}

TEST(chains_and_numbers)
{
    text[0] = '\0';
    backbone("ATOM", "GLY", ' ', -3);
    backbone("ATOM", "GLY", 'A', 1);
    strcat(text, "TER\n"); /* a break, not the end */
    backbone("ATOM", "ILE", 'A', 9);
    atom("ATOM", " CD ", ' ', "ILE", 'A', 9, 3, "C");
    atom("ATOM", " OT2", ' ', "ILE", 'A', 9, 3, "O");
    backbone("ATOM", "GLY", 'B', 1);
    strcat(text, "END\n");
    backbone("ATOM", "GLY", 'C', 1); /* files put together */
    char *insertion = strstr(text, "GLY B   1 ");
    for (; insertion != NULL; insertion = strstr(insertion, "GLY B   1 "))
        insertion[9] = 'K';
    tsr_structure *s = read_ok(io_text("chains.pdb", text));
    assert_ints(s->n_residue, 5, s->n_chain, 4);
    char label[32];
    static const char *const want[] = {"D:-3", "A:1", "A:9", "B:1K", "C:1"};
    for (int i = 0; i < 5; i++) {
        assert_int_equal(tsr_residue_label(&s->residue[i], label, 32),
                         strlen(want[i]));
        assert_string_equal(label, want[i]);
    }
    assert_non_null(tsr_residue_atom(s, &s->residue[2], "CD1"));
    assert_non_null(tsr_residue_atom(s, &s->residue[2], "OXT"));
    assert_int_equal(tsr_residue_label(&s->residue[0], label, 3), 4);

    /* A serine that is a threonine in a part of the molecules: the first. */
    glycines(1, 1);
    atom("ATOM", " CA ", 'A', "SER", 'A', 2, 3, "C");
    atom("ATOM", " CA ", 'B', "THR", 'A', 2, 3, "C");
    s = read_ok(io_text("both.pdb", text));
    assert_int_equal(s->n_residue, 2);
    assert_string_equal(s->residue[1].name, "SER");
    assert_int_equal(s->n_altloc_atom, 1);
}

TEST(refusals)
{
#define N_OF_2 "ATOM      5  N   GLY A"
#define AT_123 "       1.000   2.000   3.000\n"
    /* Behind a glycine 1. */
    static const char *const bad[][2] = {
        {"HETATM    5  CA1 CRO A   2" AT_123,
         "residue CRO A:2 is several residues"},
        {N_OF_2 "   2" AT_123 "ATOM      6  N   SER A   1" AT_123,
         "residue 1 twice (GLY and SER); give each molecule its own chain id"},
        {"ATOM      5  CA  GLY A   1      70.000   2.000   3.000\n",
         "GLY A:1 twice (two atoms CA); give each"},
        {N_OF_2 "   2       1.000   2.000\n", "line 5: the atom record ends"},
        {N_OF_2 "   2       1.000 *******    3.000\n",
         "line 5: the y coordinate"},
        {N_OF_2 "   2       1.000     nan   3.000\n",
         "atom N of residue GLY A:2"},
        {N_OF_2 "****" AT_123, "line 5: the residue number '****'"}};
    for (size_t i = 0; i < COUNT_OF(bad); i++) {
        glycines(1, 1);
        refused(strcat(text, bad[i][0]), bad[i][1]);
    }
    glycines(1, 1);
    backbone("ATOM", "XYZ", 'A', 2);
    refused(text, "residue XYZ A:2");
    assert_has(err.message, "rename it");
    glycines(1, 1);
    backbone("ATOM", "SEC", 'A', 2); /* selenocysteine has no parent */
    refused(text, "residue SEC A:2");
    glycines(1, 1);
    atom("ATOM", " CA ", ' ', "GLY", 'A', 1, 2, "C");
    tsr_structure *s = read_ok(io_text("same.pdb", text)); /* the same place */
    assert_ints(s->n_extra_atom, 1, s->n_atom, 4);
    refused("HETATM    1  O   HOH A   1" AT_123,
            "no protein (0 nucleotides, 0 ligands, 1 waters); give");
    refused("REMARK nothing else\n", "is not a structure");
    refused("", "is empty");
    refused("data_x\n", "has no atoms");
}

TEST(not_structures)
{
    static const char png[] = "\x89PNG\r\n\x1a\n\0\0\0\rIHDR\0\0\1\0";
    refused_path(io_write("x.pdb", png, sizeof png), TSR_E_DATA, "binary file");
    refused_path(io_text("notes.cif", "Dear all,\nloop_\n"), TSR_E_DATA,
                 "is not a structure");
    refused_path(io_path("absent.pdb"), TSR_E_NOINPUT, "No such file");
    refused_path(io_dir, TSR_E_NOINPUT, "is a directory");
    if (geteuid() == 0) {
        print_message("unreadable file not tried: root reads everything\n");
    } else {
        const char *path = io_text("secret.pdb", "ATOM\n");
        assert_int_equal(chmod(path, 0), 0);
        refused_path(path, TSR_E_NOINPUT, "Permission denied");
    }
}

TEST(gzipped)
{
    glycines(1, 19);
    const char *path = io_path("g.pdb.gz");
    gzFile file = gzopen(path, "wb");
    assert_int_equal(gzwrite(file, text, (unsigned)strlen(text)), strlen(text));
    gzclose(file);
    tsr_structure *s = read_ok(path);
    assert_int_equal(s->n_residue, 19);
    size_t size;
    char *packed = io_read(path, &size);
    s = read_ok(io_write("no_suffix", packed, size)); /* by content */
    assert_int_equal(s->n_residue, 19);
    refused_path(io_write("cut.pdb.gz", packed, size / 2), TSR_E_DATA,
                 "incomplete gzip");
    packed[size / 2] ^= 0x55;
    refused_path(io_write("bad.pdb.gz", packed, size), TSR_E_DATA, "damaged");
    /* A suffix that lies. */
    s = read_ok(io_text("plain.cif.gz", text));
    assert_int_equal(s->n_residue, 19);
}

static const char cif_full[] =
    "# a comment\ndata_TEST\n_entry.id TEST\n"
    "_struct.title 'it''s a \"title\"'\n_x.text\n;two\nlines\n;\n"
    "loop_\n_entity.id\n_entity.type\n1 polymer\n2 non-polymer\n3 water\n"
    "loop_\n_atom_site.group_PDB\n_atom_site.id\n_atom_site.type_symbol\n"
    "_atom_site.label_atom_id\n_atom_site.label_alt_id\n"
    "_atom_site.label_comp_id\n_atom_site.label_asym_id\n"
    "_atom_site.label_entity_id\n_atom_site.label_seq_id\n"
    "_atom_site.pdbx_PDB_ins_code\n_atom_site.Cartn_x\n_atom_site.Cartn_y\n"
    "_atom_site.Cartn_z\n_atom_site.occupancy\n_atom_site.B_iso_or_equiv\n"
    "_atom_site.auth_seq_id\n_atom_site.auth_asym_id\n"
    "_atom_site.pdbx_PDB_model_num\n"
    "ATOM   1 N  N  . GLY A 1 1 ? 1.000 2.000 3.000 1.00 10.0 101 AAA 1\n"
    "ATOM   2 C  CA . GLY A 1 1 ? 2.000 2.000 3.000 1.00 10.0 101 AAA 1\n"
    "ATOM   3 C  C  . GLY A 1 1 ? 3.000 2.000 3.000 1.00 10.0 101 AAA 1\n"
    "ATOM   4 O  O  . GLY A 1 1 ? 3.500 3.000 3.000 1.00 10.0 101 AAA 1\n"
    "HETATM 5 N  N  . MSE A 1 2 B 4.000 2.000 3.000 1.00 10.0 101 AAA 1\n"
    "HETATM 6 C  CA A MSE A 1 2 B 5.000 2.000 3.000 0.50 10.0 101 AAA 1\n"
    "HETATM 7 C  CA B MSE A 1 2 B 5.100 2.000 3.000 0.50 10.0 101 AAA 1\n"
    "HETATM 8 SE SE . MSE A 1 2 B 6.000 2.000 3.000 1.00 10.0 101 AAA 1\n"
    "HETATM 9 C  CA . GLU B 2 . ? 9.000 2.000 3.000 1.00 10.0 301 AAA 1\n"
    "HETATM 10 O O  . HOH C 3 . ? 9.000 9.000 3.000 1.00 10.0 401 AAA 1\n"
    "ATOM   11 N N  . GLY A 1 1 ? 1.500 2.000 3.000 1.00 10.0 101 AAA 2\n";

TEST(mmcif)
{
    tsr_structure *s = read_ok(io_text("full.cif", cif_full));
    assert_ints(s->n_residue, 2, s->n_atom, 7, s->n_chain, 1, s->n_model, 1,
                s->n_ligand, 1, s->n_water, 1, s->n_altloc_atom, 1,
                s->n_renamed, 1);
    char label[32];
    tsr_residue_label(&s->residue[1], label, sizeof label);
    assert_string_equal(label, "AAA:101B");
    assert_near(tsr_residue_atom(s, &s->residue[1], "CA")->xyz[0], 5, 1e-12);
    assert_int_equal(tsr_residue_atom(s, &s->residue[1], "SD")->z, 16);

    /* As modelling programs write it: few columns, and a chain to refuse. */
    static const char few[] =
        "data_x\nloop_\n_atom_site.type_symbol\n_atom_site.label_atom_id\n"
        "_atom_site.label_comp_id\n_atom_site.label_asym_id\n"
        "_atom_site.label_seq_id\n_atom_site.Cartn_x\n_atom_site.Cartn_y\n"
        "_atom_site.Cartn_z\n";
    s = read_ok(io_text(
        "few.cif", format("%sN N ALA A 7 1 2 3\nC \"CA\" ALA A 7 2 2 3", few)));
    assert_ints(s->n_atom, 2, s->residue[0].number, 7);
    assert_string_equal(s->residue[0].chain, "A");

    static const struct {
        const char *rows, *part;
    } bad[] = {
        {"N N ALA A 7 1 2 ?\n", "atom N of residue ALA A:7"},
        {"N N ALA A 7 1 2 3x\n", "nowhere near the others (1, 2, nan)"},
        {"N N ALA A . 1 2 3\n", "no number"},
        {"N N ALA Subunit_One 7 1 2 3\n", "'Subunit_One' is longer"},
        {"N N ALA A 1234567890 1 2 3\n", "out of range"},
        {"N N ALA A 7 1 2\n", "Wrong number of values in"},
        {"N 'N ALA A 7 1 2 3\n", "bad.cif:11:"},
        {"N N ALA A 7 1 2\n;3\n", "bad.cif:13:"},
        {"N N ALA A 7 1 2 3\n_entry.id", "bad.cif:12:"},
        {"N N ALA A 7 1 2 3\n_entry.id x y", "bad.cif:12:"},
        {"N N ALA A 7 1 2 3\nN N GLY A 7 1 2 9", "residue 7 twice"},
    };
    for (size_t i = 0; i < COUNT_OF(bad); i++)
        refused_path(io_text("bad.cif", format("%s%s", few, bad[i].rows)),
                     TSR_E_DATA, bad[i].part);
}

/* Coordinates of no molecule, of a file that is one without the change. */
TEST(no_molecule)
{
    glycines(1, 24);
    const size_t good = strlen(text);
    read_ok(io_text("good.pdb", text));
    for (int i = 1; i <= 9; i++) /* nine in the places of others, and a tenth */
        backbone("ATOM", "GLY", 'B', i);
    read_ok(io_text("nine.pdb", text));
    backbone("ATOM", "GLY", 'B', 10);
    refused(text, "residues GLY A:1 and GLY B:1 are in one place, and 9 pairs");
    text[good] = '\0';
    atom("HETATM", " O1 ", ' ', "GOL", 'B', 1, 900, "O");
    refused(text, "atom O1 of residue GOL B:1 is nowhere near the others");
    text[good] = '\0';
    for (int k = 0; k < 3; k++)
        atom("HETATM", "ZN  ", ' ', " ZN", 'B', k, 0, "ZN");
    read_ok(io_text("ions.pdb", text));
    text[good] = '\0';
    for (int k = 1; k <= 3; k++)
        atom("HETATM", format(" O%d ", k), ' ', "GOL", 'B', 1, 0, "O");
    refused(text, "residue GOL B:1 has 3 atoms in one place (0, -0, 0)");
    text[good] = '\0';
    for (char *line = text; *line != '\0'; line = strchr(line, '\n') + 1)
        for (char *at = line + 30; at < line + 54; at += 8) { /* a tenth */
            const double x = atof(format("%.8s", at));
            memcpy(at, format("%8.3f", 0.1 * x), 8);
        }
    refused(text, "are 0.37 A apart: the coordinates are in nm");
}

/* Of a model what has no N, CA or C is left out, and named; more than a tenth
 * are too many. */
TEST(bare_residues)
{
    static const char *const gone[] = {" CA  GLY A   9", " N   GLY A  15",
                                       " C   GLY A  20"};
    glycines(1, 20);
    for (int n = 0; n <= 3; n++) {
        const char *path = io_text("bare.pdb", text);
        tsr_structure *s = NULL;
        tsr_status status = tsr_structure_read_any(path, &s, &err);
        assert_int_equal(status, n < 3 ? TSR_OK : TSR_E_DATA);
        if (n == 3)
            assert_has(err.message, "GLY A:9 (no CA) GLY A:15 (no N) GLY A:20 "
                                    "(no C); complete it");
        for (int i = 0; n < 3 && i < s->n_residue; i++)
            assert_non_null(tsr_residue_atom(s, &s->residue[i], "CA"));
        assert_ints(n < 3 ? s->n_residue : 17, 20 - n,
                    n < 3 ? s->n_incomplete : 3, n);
        if (n == 2)
            assert_has(s->incomplete,
                       ": GLY A:9 (no CA) GLY A:15 (no N); complete");
        tsr_structure_free(s);
        s = read_ok(path); /* as the file has them */
        assert_int_equal(s->n_residue, 20);
        if (n < 3)
            memcpy(strstr(text, gone[n]), " CX ", 4);
    }
}

TEST(pdb_columns)
{
    static const char *const name[3][2] = {
        {"CA", "C"}, {"HH11", "H"}, {"SE", "SE"}};
    static const double xyz[9] = {-1.2344, 9999.999, -999.999, 0, 0.0004,
                                  1,       1,        2,        3};
    tsr_model_atoms *m = tsr_model_atoms_new(3);
    memcpy(m->xyz, xyz, sizeof xyz);
    for (int i = 0; i < 3; i++) {
        m->atom[i] = (tsr_model_atom){
            .residue = "MET", .chain = 'B', .number = -12, .insertion = 'C'};
        strcpy(m->atom[i].name, name[i][0]);
        strcpy(m->atom[i].element, name[i][1]);
    }
    const char *path = io_path("columns.pdb");
    OK(tsr_model_atoms_write(m, path, "one\ntwo", &err));
    assert_string_equal(
        io_read(path, NULL),
        "REMARK 999 one\nREMARK 999 two\n"
        "ATOM      1  CA  MET B -12C     -1.2349999.999-999.999  1.00  0.00"
        "           C\n"
        "ATOM      2 HH11 MET B -12C      0.000   0.000   1.000  1.00  0.00"
        "           H\n"
        "ATOM      3 SE   MET B -12C      1.000   2.000   3.000  1.00  0.00"
        "          SE\n"
        "TER       4      MET B -12C\nEND\n");

    tsr_model_atoms wrong = *m;
    wrong.n_atom = 99999;
    FAILS(tsr_model_atoms_write(&wrong, path, NULL, &err), TSR_E_DATA,
          "99999 atoms");
    m->xyz[0] = 1e4;
    FAILS(tsr_model_atoms_write(m, path, NULL, &err), TSR_E_DATA,
          "atom CA of residue B:-12C is at (10000, ");
    m->xyz[0] = (double)NAN;
    assert_int_equal(tsr_model_atoms_write(m, path, NULL, &err), TSR_E_DATA);
    m->xyz[0] = 0;
    m->atom[0].number = 10000;
    FAILS(tsr_model_atoms_write(m, NULL, NULL, &err), TSR_E_DATA,
          "the residue number is not from -999 to 9999");
    m->atom[0].number = 1;
    m->atom[0].chain = '\0';
    strcpy(m->atom[0].chain_id, "AA");
    FAILS(tsr_model_atoms_write(m, path, NULL, &err), TSR_E_DATA,
          "more than one character");
    OK(tsr_model_atoms_letter_chains(m, NULL, &err));
    assert_int_equal(m->atom[0].chain, 'A');
    assert_int_equal(tsr_model_atoms_write(m, io_path("no/x"), NULL, &err),
                     TSR_E_IO);
    tsr_model_atoms_free(m);
    /* Nothing is left beside the files. */
    DIR *dir = opendir(io_dir);
    for (struct dirent *e; (e = readdir(dir)) != NULL;)
        assert_null(strstr(e->d_name, ".tmp"));
    closedir(dir);
}

/* Neutral atoms: f(0) is Z within the fit's own error of 0.1 % (the table's
 * coefficients are not normalised), and C at s = 0.5 1/Angstrom is 1.685 in the
 * table of numerical values (6.1.1.1); masses are IUPAC's. */
TEST(atoms)
{
    static const int z[] = {1, 6, 7, 8, 16, 34};
    static const double mass[] = {1.008, 12.011, 14.007, 15.999, 32.06, 78.96};
    for (int i = 0; i < 6; i++) {
        assert_near(tsr_atom_form_factor(z[i], 0), z[i], 2e-3 * z[i]);
        assert_near(tsr_atom_mass(z[i]), mass[i], 0.02);
        for (double q = 0; q < 1; q += 0.05)
            assert_true(tsr_atom_form_factor(z[i], q) >
                        tsr_atom_form_factor(z[i], q + 0.05));
    }
    assert_near(tsr_atom_form_factor(6, 4 * 3.14159265358979 * 0.5), 1.685,
                0.01);
    assert_all(isnan(tsr_atom_form_factor(0, 0.1)),
               isnan(tsr_atom_form_factor(99, 0.1)),
               isnan(tsr_atom_form_factor(-5, 0.1)), isnan(tsr_atom_mass(0)),
               isnan(tsr_atom_mass(1000)),
               isnan(tsr_atom_form_factor(6, (double)NAN)));
}

/* Every structure of the training set against its index: residues, atoms and
 * chains. */
TEST(training_set)
{
    NEEDS_SHARED;
    FILE *index = fopen(SHARED "structures/INDEX.tsv", "r");
    assert_non_null(index);
    char line[1024];
    int n = 0;
    assert_non_null(fgets(line, sizeof line, index));
    while (fgets(line, sizeof line, index) != NULL) {
        char id[64], chains[64];
        int n_residue, n_atom;
        assert_int_equal(sscanf(line, "%63s %63s %d %*d %d", id, chains,
                                &n_residue, &n_atom),
                         4);
        const char *path = format(SHARED "structures/%s.pdb.gz", id);
        tsr_structure *s = read_ok(path);
        assert_ints(s->n_residue, n_residue, s->n_atom, n_atom, s->n_chain,
                    strlen(chains));
        n++;
    }
    fclose(index);
    assert_int_equal(n, 299);
}

/* Counts from the README of each case. */
TEST(saxs_models)
{
    static const struct {
        const char *path;
        int n_residue, n_atom, n_chain;
    } cases[] = {
        {"a2m_native/model.pdb", 5764, 43652, 4},
        {"bsa/model.pdb", 1166, 9338 - 32, 2},
        {"bsa/model_chainA.pdb", 583, 4653, 1},
        {"glucose_isomerase/model_rechained.pdb", 1552, 12208 - 4, 4},
        {"lar_fn3_1_2/model.pdb", 208, 1606 - 1, 1}, /* one atom twice */
        {"lar_fn3_1_2/model_LAR1-4.pdb", 402, 3184 - 44, 1},
        {"ligase_multifoxs/model.pdb", 603, 4773, 1},
        {"lysozyme_2epe/model.pdb", 129, 1001, 1},
        {"lysozyme_6lyz/model.pdb", 129, 1001, 1},
        {"lysozyme_raw/model.pdb", 129, 1001, 1},
        {"mpro_sasdjg5/model.pdb", 612, 4734, 2},
        {"mpro_sasdjg5/model_monomer.pdb", 306, 2367, 1},
        {"nup133_3kfo/model.pdb", 222, 1817, 1},
        {"nup133_3kfo/model_crystal.pdb", 212 + 1, 0, 1}, /* and one MSE */
        {"rpa_multifoxs_synthetic/model.pdb", 238, 1878, 1},
        {"rpa_multifoxs_synthetic/model_1jmc.pdb", 238, 0, 1},
    };
    NEEDS_SHARED;
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        const char *path = format(SHARED "saxs/%s", cases[i].path);
        tsr_structure *s = read_ok(path);
        assert_int_equal(s->n_residue, cases[i].n_residue);
        assert_int_equal(s->n_chain, cases[i].n_chain);
        if (cases[i].n_atom > 0)
            assert_int_equal(s->n_atom, cases[i].n_atom);
    }
    tsr_structure *s =
        read_ok(SHARED "saxs/rpa_multifoxs_synthetic/model_1jmc.pdb");
    assert_int_equal(s->n_nucleotide, 8);
    s = read_ok(SHARED "saxs/glucose_isomerase/model.pdb"); /* one chain id */
    assert_ints(s->n_chain, 4, s->n_residue, 4 * 388);
    assert_string_equal(s->copies, "B C D");
    refused_path(SHARED "README.md", TSR_E_DATA, "is not a structure");
    refused_path(SHARED "saxs/bsa/exp.dat", TSR_E_DATA, "is not a structure");
}

/* Damaged files are refused or give a structure that keeps its promises. */
TEST(damaged_files)
{
    static char damaged[8192];
    strcpy(text, "MODEL 1\n");
    for (int i = 1; i < 6; i++)
        backbone(i == 3 ? "HETATM" : "ATOM", i == 3 ? "MSE" : "GLY", 'A', i);
    strcat(text, "TER\nENDMDL\nEND\n");
    const char *sample[2] = {text, cif_full};
    uint32_t seed = 4711;
    int n_read = 0, rounds = io_rounds(600);
    for (int i = 0; i < rounds; i++) {
        const char *from = sample[i % 2];
        size_t n = io_damage(damaged, from, strlen(from), &seed);
        const char *path = io_write("fuzz", damaged, n);
        FREED(tsr_structure) s = NULL;
        tsr_status status = tsr_structure_read(path, &s, &err);
        assert_true(status == TSR_OK || status == TSR_E_DATA);
        assert_true((status == TSR_OK) == (s != NULL));
        if (s == NULL) {
            assert_has(err.message, path);
            continue;
        }
        n_read++;
        int n_atom = 0;
        for (int k = 0; k < s->n_residue; k++) {
            assert_int_equal(strlen(s->residue[k].name), 3);
            assert_int_equal(s->residue[k].first_atom, n_atom);
            n_atom += s->residue[k].n_atom;
        }
        assert_int_equal(n_atom, s->n_atom);
        for (int k = 0; k < s->n_atom; k++)
            for (int d = 0; d < 3; d++)
                assert_true(isfinite(s->atom[k].xyz[d]));
    }
    assert_in_range(n_read, rounds / 20, rounds - rounds / 20);
}
