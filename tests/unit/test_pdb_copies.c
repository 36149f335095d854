/* Copies of a molecule under one chain id become chains of their own. */
#include "molecule/structure.h"
#include "tests/io_files.h"
#include "tests/test.h"

typedef enum { COPIES, MODELS, OTHER_NAMES, N_KIND } file_kind;

/* An atom at (x, 0, 0). */
static void put(FILE *file, const char *record, const char *name,
                const char *residue, int number, double x, const char *element)
{
    fprintf(file,
            "%-6s    1 %4s %3s A%4d    %8.3f   0.000   0.000  1.00 20.00"
            "          %2s\n",
            record, name, residue, number, x, element);
}

/* Three times twelve residues, the second time without residue 5 and with
 * selenomethionine for residue 7; an ion behind each. Models without MODEL
 * records are much in one place; other molecules have other residues. */
static void write_file(const char *path, file_kind kind)
{
    FILE *file = fopen(path, "w");
    assert_non_null(file);
    for (int k = 0; k < 3; k++) {
        const double shift = k * (kind == MODELS ? 2.0 : 90.0);
        for (int i = 1; i <= 12; i++) {
            const int is_mse = k == 1 && i == 7;
            const char *record = is_mse ? "HETATM" : "ATOM";
            const char *name = is_mse ? "MSE"
                               : kind == OTHER_NAMES && k == 1 && i == 3
                                   ? "SER"
                                   : "GLY";
            const double x = 4.0 * i + shift;
            if (k == 1 && i == 5)
                continue;
            put(file, record, " N  ", name, i, x, "N");
            put(file, record, " CA ", name, i, x + 1.2, "C");
            put(file, record, " C  ", name, i, x + 2.4, "C");
        }
        put(file, "HETATM", "ZN  ", " ZN", 90, shift, "ZN");
    }
    fclose(file);
}

TEST(become_chains)
{
    const char *path = io_text("copies.pdb", "");
    tsr_structure *s = NULL;
    write_file(path, COPIES);
    OK(tsr_structure_read(path, &s, &err));
    assert_int_equal(s->n_chain, 3);
    assert_string_equal(s->copies, "B C");
    assert_ints(s->n_residue, 35, s->n_ligand, 3);
    assert_string_equal(s->residue[17].file_name, "MSE");
    assert_string_equal(s->residue[17].chain, "B");
    assert_string_equal(s->residue[34].chain, "C");
    tsr_structure_free(s);
}

TEST(or_are_none)
{
    const char *path = io_text("none.pdb", "");
    for (file_kind kind = MODELS; kind < N_KIND; kind++) {
        tsr_structure *s = NULL;
        write_file(path, kind);
        FAILS(tsr_structure_read(path, &s, &err), TSR_E_DATA,
              "give each molecule its own chain id");
    }
}
