/* The table of amino acids agrees with chemical formulas, and every atom
 * belongs to one body. */
#include "molecule/residue.h"
#include "molecule/structure.h"
#include "tests/test.h"

/* Formulas of the residues within a chain (the amino acid less H2O), charged
 * ones as at pH 7; from textbooks, not from the table. */
static const struct {
    const char *three;
    char one;
    int c, h, n, o, s;
} formula[TSR_N_AMINO] = {
    {"ALA", 'A', 3, 5, 1, 1, 0},  {"ARG", 'R', 6, 13, 4, 1, 0},
    {"ASN", 'N', 4, 6, 2, 2, 0},  {"ASP", 'D', 4, 4, 1, 3, 0},
    {"CYS", 'C', 3, 5, 1, 1, 1},  {"GLN", 'Q', 5, 8, 2, 2, 0},
    {"GLU", 'E', 5, 6, 1, 3, 0},  {"GLY", 'G', 2, 3, 1, 1, 0},
    {"HIS", 'H', 6, 7, 3, 1, 0},  {"ILE", 'I', 6, 11, 1, 1, 0},
    {"LEU", 'L', 6, 11, 1, 1, 0}, {"LYS", 'K', 6, 13, 2, 1, 0},
    {"MET", 'M', 5, 9, 1, 1, 1},  {"PHE", 'F', 9, 9, 1, 1, 0},
    {"PRO", 'P', 5, 7, 1, 1, 0},  {"SER", 'S', 3, 5, 1, 2, 0},
    {"THR", 'T', 4, 7, 1, 2, 0},  {"TRP", 'W', 11, 10, 2, 1, 0},
    {"TYR", 'Y', 9, 9, 1, 2, 0},  {"VAL", 'V', 5, 9, 1, 1, 0}};

TEST(formulas)
{
    for (int a = 0; a < TSR_N_AMINO; a++) {
        const tsr_amino_info *info = &tsr_amino_table[a];
        int of_z[17] = {0}, hydrogen = 0;
        assert_string_equal(info->three, formula[a].three);
        assert_int_equal(info->one, formula[a].one);
        for (int i = 0; i < info->n_atom; i++) {
            of_z[info->atom[i].z]++;
            hydrogen += info->atom[i].n_hydrogen;
            const tsr_amino_atom *atom = &info->atom[i];
            /* The element is the first letter of these names. */
            const char *element = atom->z == 6   ? "C"
                                  : atom->z == 7 ? "N"
                                  : atom->z == 8 ? "O"
                                                 : "S";
            assert_int_equal(atom->name[0], element[0]);
            for (int j = 0; j < i; j++)
                assert_string_not_equal(info->atom[i].name, info->atom[j].name);
        }
        assert_ints(of_z[6], formula[a].c, of_z[7], formula[a].n, of_z[8],
                    formula[a].o, of_z[16], formula[a].s, hydrogen,
                    formula[a].h, info->n_atom,
                    formula[a].c + formula[a].n + formula[a].o + formula[a].s);
        static const char *const first[] = {"N", "CA", "C", "O", "CB"};
        for (int i = 0; i < (a == TSR_GLY ? 4 : 5); i++)
            assert_string_equal(info->atom[i].name, first[i]);
    }
}

TEST(names)
{
    for (int a = 0; a < TSR_N_AMINO; a++) {
        assert_int_equal(tsr_amino_by_three(formula[a].three), a);
        assert_int_equal(tsr_amino_by_one(formula[a].one), a);
    }
    assert_int_equal(tsr_amino_by_three("MSE"), -1);
    assert_int_equal(tsr_amino_by_three(""), -1);
    assert_int_equal(tsr_amino_by_three("ALAX"), -1);
    assert_ints(tsr_amino_by_one('X'), -1, tsr_amino_by_one('\0'), -1, TSR_TYR,
                tsr_amino_by_one('Y'));
    assert_int_equal(TSR_HIS, tsr_amino_by_three("HIS"));
}

TEST(body_types)
{
    int seen[TSR_MAX_TYPE] = {0};
    assert_int_equal(tsr_body_n_type(TSR_BODIES_ONE), 20);
    assert_int_equal(tsr_body_n_type(TSR_BODIES_TWO), 21);
    for (int a = 0; a < TSR_N_AMINO; a++) {
        int type[2], whole = a == TSR_ALA || a == TSR_GLY;
        assert_ints(tsr_body_types(TSR_BODIES_ONE, (tsr_amino)a, type), 1,
                    type[0], a,
                    tsr_body_types(TSR_BODIES_TWO, (tsr_amino)a, type),
                    whole ? 1 : 2, type[0], whole ? 1 + a : 0);
        for (int b = 0; b < (whole ? 1 : 2); b++)
            seen[type[b]]++;
        assert_int_equal(tsr_amino_has_side_chain((tsr_amino)a), !whole);
        const char *name =
            format(whole ? "%s" : "%s side chain", formula[a].three);
        assert_string_equal(tsr_body_type_name(TSR_BODIES_TWO, 1 + a), name);
        assert_string_equal(tsr_body_type_name(TSR_BODIES_ONE, a),
                            formula[a].three);
    }
    assert_int_equal(seen[0], 18);
    for (int t = 1; t < TSR_MAX_TYPE; t++)
        assert_int_equal(seen[t], 1);
    assert_string_equal(tsr_body_type_name(TSR_BODIES_TWO, 0), "backbone");
}

TEST(body_of_atom)
{
    static const struct {
        tsr_amino amino;
        const char *atom;
        int one, two;
    } expect[] = {
        {TSR_ARG, "CB", 0, 0},  {TSR_ARG, "CG", 0, 1},   {TSR_ARG, "NH2", 0, 1},
        {TSR_ARG, "OXT", 0, 0}, {TSR_ARG, "CA", 0, 0},   {TSR_ALA, "CB", 0, 0},
        {TSR_GLY, "O", 0, 0},   {TSR_GLY, "CB", -1, -1}, {TSR_PRO, "CD", 0, 1},
        {TSR_SER, "OG", 0, 1},  {TSR_SER, "SG", -1, -1}, {TSR_CYS, "", -1, -1}};
    for (size_t i = 0; i < COUNT_OF(expect); i++) {
        assert_int_equal(
            tsr_body_of_atom(TSR_BODIES_ONE, expect[i].amino, expect[i].atom),
            expect[i].one);
        assert_int_equal(
            tsr_body_of_atom(TSR_BODIES_TWO, expect[i].amino, expect[i].atom),
            expect[i].two);
    }
}

TEST(masses)
{
    double c = 12.0107, n = 14.0067, o = 15.9994, s = 32.065;
    for (int a = 0; a < TSR_N_AMINO; a++) {
        double whole = formula[a].c * c + formula[a].n * n + formula[a].o * o +
                       formula[a].s * s;
        double backbone = a == TSR_GLY ? 2 * c + n + o : 3 * c + n + o;
        double side = tsr_amino_side_chain_mass((tsr_amino)a);
        assert_near(tsr_body_mass(TSR_BODIES_ONE, a), whole, 1e-9);
        assert_near(side, (whole - backbone), 1e-9);
        double body = tsr_body_mass(TSR_BODIES_TWO, 1 + a);
        int is_whole = a == TSR_ALA || a == TSR_GLY;
        assert_near(body, (is_whole ? whole : side), 1e-9);
    }
    assert_near(tsr_body_mass(TSR_BODIES_TWO, 0), (3 * c + n + o), 1e-9);
}
