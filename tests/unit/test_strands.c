/* Nucleotides without a partner are found to be single-stranded. */
#include "molecule/parts.h"
#include "tests/io_files.h"
#include "tests/strand_sample.h"
#include "tests/test.h"

OWNED(tsr_parts)

/* A protein of one alanine where `protein` is not NULL, strand S of 8, and,
 * `apart` Angstrom along z, its copy T, unless that is 0. */
static tsr_parts *find(const double *protein, double apart)
{
    static const char *const name[] = {"N", "CA", "C", "O", "CB"};
    static const double at[][3] = {{0.0, 0.0, 0.0},
                                   {1.46, 0.0, 0.0},
                                   {2.0, 1.42, 0.0},
                                   {1.2, 2.3, 0.0},
                                   {2.0, -0.8, 1.2}};
    const double origin[3] = {0.0, 0.0, 0.0}, other[3] = {0.0, 0.0, apart};
    char path[128];
    tsr_structure *s = NULL;
    tsr_parts *parts;
    strcpy(path, io_path("file.pdb"));
    FILE *file = fopen(path, "w");
    assert_non_null(file);
    for (int k = 0; k < 5 && protein != NULL; k++) {
        double x[3];
        const char element[2] = {name[k][0], '\0'};
        for (int d = 0; d < 3; d++)
            x[d] = protein[d] + at[k][d];
        strand_put(file, name[k], element, "ALA", 'A', 1, x);
    }
    if (protein != NULL)
        fprintf(file, "TER\n");
    strand_write(file, 'S', 8, 0, origin);
    if (apart != 0.0)
        strand_write(file, 'T', 8, 0, other);
    fclose(file);
    OK(tsr_structure_read_any(path, &s, &err));
    OK(tsr_parts_find(s, NULL, (tsr_parts_choices){.no_loops = 0}, &parts,
                      &err));
    assert_int_equal(parts->n_strand, parts->flexible.n);
    tsr_structure_free(s);
    return own_tsr_parts(parts);
}

TEST(alone)
{
    tsr_parts *p = find(NULL, 0.0);
    assert_int_equal(p->n_strand, 1);
    assert_string_equal(p->flexible.item[0], "S:1-8");
    p = find(NULL, 80.0);
    assert_int_equal(p->n_strand, 2);
    assert_string_equal(p->flexible.item[1], "T:1-8");
}

/* N and O of all bases 3 Angstrom from those of the copy. */
TEST(paired)
{
    tsr_parts *p = find(NULL, 3.0);
    assert_int_equal(p->n_strand, 0);
}

TEST(beside_a_protein)
{
    const double far[3] = {200.0, 0.0, 0.0}, near[3] = {-3.0, -3.0, 0.0};
    tsr_parts *p = find(far, 0.0); /* it would drift */
    assert_int_equal(p->n_strand, 0);
    p = find(near, 0.0); /* beside the first nucleotides */
    assert_int_equal(p->n_strand, 1);
    assert_has(p->flexible.item[0], "-8");
    assert_null(strstr(p->flexible.item[0], "S:1-"));
}
