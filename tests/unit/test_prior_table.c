/* Structures written by the test, in which every distance and every side-chain
 * centre is known, through training, writing and reading. */
#include "model/prior_table.h"

#include "core/vec3.h"
#include "table_text.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <unistd.h>

#include <cmocka.h>

typedef struct {
    char folder[64], pdb[96], far[96], table[96];
    tsr_prior_table *trained;
} files;

/* An atom as far along x, y, z as asked from the residue's corner. */
static void put(FILE *file, int *serial, const char *atom, const char *residue,
                char chain, int number, const double x[3])
{
    fprintf(file,
            "ATOM  %5d  %-3s %3s %c%4d    %8.3f%8.3f%8.3f  1.00 10.00"
            "           %c\n",
            ++*serial % 99999, atom, residue, chain, number, x[0], x[1], x[2],
            atom[0]);
}

/* One residue at `at`: N, CA, C, O in the xy plane and all others at `side`
 * from CA. C lies on +x and N at y > 0, so the frame of N-CA-C has the axes of
 * the file and `side` is the side-chain centre in it. */
static void put_residue(FILE *file, int *serial, int amino, char chain,
                        int number, const double at[3], const double side[3])
{
    static const double backbone[4][3] = {
        {-1.0, 1.0, 0.0}, {0.0, 0.0, 0.0}, {1.5, 0.0, 0.0}, {1.5, 1.2, 0.0}};
    const tsr_amino_info *info = &tsr_amino_table[amino];
    for (int i = 0; i < info->n_atom; i++) {
        double x[3];
        for (int d = 0; d < 3; d++)
            x[d] = at[d] + (i < 4 ? backbone[i][d] : side[d]);
        put(file, serial, info->atom[i].name, info->three, chain, number, x);
    }
}

static void side_of(int amino, int copy, double side[3])
{
    side[0] = 0.5 + 0.1 * amino + (copy % 2 ? 0.25 : -0.25);
    side[1] = -1.0 + (copy % 4 < 2 ? 0.5 : -0.5);
    side[2] = 0.7 + (copy % 8 < 4 ? 0.125 : -0.125);
}

enum { N_COPY = 16, N_CROWD = 120 };

/* All residue types, 100 Angstrom apart: no contacts. */
static void write_side_chains(const char *path)
{
    FILE *file = fopen(path, "w");
    int serial = 0;
    for (int c = 0; c < N_COPY; c++)
        for (int a = 0; a < TSR_N_AMINO; a++) {
            double at[3] = {100.0 * a, 100.0 * c, 0.0}, side[3];
            side_of(a, c, side);
            put_residue(file, &serial, a, (char)('A' + c), a + 1, at, side);
        }
    fprintf(file, "TER\nEND\n");
    fclose(file);
}

/* Two chains side by side, 9 Angstrom apart, of all types in turn every 2.5:
 * residues 1 and 2 apart in a chain are at 2.5 and 5 and do not count, 3 apart
 * at 7.5, 4 apart at 10; across, the same type is at 9, the next at 9.3. */
static void write_contacts(const char *path)
{
    FILE *file = fopen(path, "w");
    int serial = 0;
    static const double nothing[3] = {0.0, 0.0, 0.0};
    for (int chain = 0; chain < 2; chain++)
        for (int i = 0; i < N_CROWD; i++) {
            double at[3] = {2.5 * i, 9.0 * chain, 0.0};
            put_residue(file, &serial, i % TSR_N_AMINO, (char)('A' + chain),
                        i + 1, at, nothing);
        }
    fprintf(file, "TER\nEND\n");
    fclose(file);
}

static int set_up(void **state)
{
    files *f = calloc(1, sizeof *f);
    snprintf(f->folder, sizeof f->folder, "/tmp/tessera-prior-XXXXXX");
    if (mkdtemp(f->folder) == NULL)
        return -1;
    snprintf(f->pdb, sizeof f->pdb, "%s/side.pdb", f->folder);
    snprintf(f->far, sizeof f->far, "%s/contact.pdb", f->folder);
    snprintf(f->table, sizeof f->table, "%s/t.dat", f->folder);
    write_side_chains(f->pdb);
    write_contacts(f->far);
    /* The crowd often enough that every type has its 500 partners. */
    const char *path[101];
    path[0] = f->pdb;
    for (int i = 1; i < 101; i++)
        path[i] = f->far;
    tsr_err err;
    if (tsr_prior_table_train(101, path, 2, NULL, &f->trained, &err) !=
        TSR_OK) {
        print_message("%s\n", err.message);
        return -1;
    }
    *state = f;
    return 0;
}

static int tear_down(void **state)
{
    files *f = *state;
    tsr_prior_table_free(f->trained);
    remove(f->pdb);
    remove(f->far);
    remove(f->table);
    int left = rmdir(f->folder);
    free(f);
    return left;
}

/* The centre of the atoms beyond CB is where the test put them. */
static void side_chains(void **state)
{
    const files *f = *state;
    tsr_prior_table *t = NULL;
    const char *path[1] = {f->pdb};
    /* On their own they have no contacts, which is an error that says so. */
    tsr_err err;
    assert_int_equal(tsr_prior_table_train(1, path, 1, NULL, &t, &err),
                     TSR_E_DATA);
    assert_non_null(strstr(err.message, "contacts"));
    t = f->trained;
    for (int a = 0; a < TSR_N_AMINO; a++) {
        int has = a != TSR_ALA && a != TSR_GLY;
        long crowd = 100L * 2 * (N_CROWD / TSR_N_AMINO), n = N_COPY + crowd;
        assert_int_equal(t->count[a], has ? n : 0);
        double mean[3] = {0}, square[3][3] = {{0}};
        for (int c = 0; c < N_COPY; c++) {
            double side[3];
            side_of(a, c, side); /* the crowd's are all at zero */
            for (int i = 0; i < 3; i++) {
                mean[i] += side[i] / (double)n;
                for (int j = 0; j < 3; j++)
                    square[i][j] += side[i] * side[j];
            }
        }
        for (int i = 0; i < 3; i++)
            for (int j = 0; j < 3; j++) {
                double cov = (square[i][j] - (double)n * mean[i] * mean[j]) /
                             (double)(n - 1);
                /* PDB files have three decimals */
                assert_true(fabs(t->side_mean[a][i] - (has ? mean[i] : 0)) <
                            1e-5);
                assert_true(fabs(t->side_cov[a][i][j] - (has ? cov : 0)) <
                            1e-4);
            }
    }
}

/* Body centres lie within 0.5 of one another along x, hence the tolerances. */
static void contacts(void **state)
{
    const files *f = *state;
    const tsr_prior_table *t = f->trained;
    for (int a = 0; a < TSR_N_AMINO; a++)
        for (int b = 0; b < TSR_N_AMINO; b++) {
            double d = t->contact_one[a][b];
            assert_true(d == t->contact_one[b][a]);
            assert_true(d > 6.7 && d < 10.0); /* neither 2.5 nor 5 */
            if (abs(a - b) == 3 || abs(a - b) == 17)
                assert_true(d < 8.3);
        }
    assert_true(fabs(t->contact_two[1 + TSR_GLY][1 + TSR_GLY] - 9.0) < 0.02);
    assert_true(fabs(t->contact_one[TSR_TRP][TSR_TRP] - 9.0) < 0.02);
    /* Types 5, 6 and 7 apart never meet: the mean of two types' own, which
     * shows as a sum that does not depend on who is paired with whom. */
    double together = t->contact_one[0][6] + t->contact_one[1][7];
    double crossed = t->contact_one[0][7] + t->contact_one[1][6];
    assert_true(fabs(together - crossed) < 1e-12);
    assert_true(together < 2 * 7.7); /* the lowest hundredth: 3 apart */
    assert_non_null(strstr(t->source, "structures: 101"));
}

static void round_trip(void **state)
{
    const files *f = *state;
    const tsr_prior_table *t = f->trained;
    tsr_prior_table *u = NULL;
    assert_int_equal(tsr_prior_table_write(t, f->table, NULL), TSR_OK);
    assert_int_equal(tsr_prior_table_read(f->table, &u, NULL), TSR_OK);
    assert_string_equal(u->source, t->source);
    for (int a = 0; a < TSR_N_AMINO; a++) {
        assert_int_equal(u->count[a], t->count[a]);
        for (int i = 0; i < 3; i++) {
            assert_true(fabs(u->side_mean[a][i] - t->side_mean[a][i]) < 1e-8);
            for (int j = 0; j < 3; j++)
                assert_true(fabs(u->side_cov[a][i][j] - t->side_cov[a][i][j]) <
                            1e-8);
        }
        for (int b = 0; b < TSR_N_AMINO; b++)
            assert_true(fabs(u->contact_one[a][b] - t->contact_one[a][b]) <
                        1e-8);
    }
    for (int a = 0; a < TSR_MAX_TYPE; a++)
        for (int b = 0; b < TSR_MAX_TYPE; b++)
            assert_true(fabs(u->contact_two[a][b] - t->contact_two[a][b]) <
                        1e-8);
    tsr_prior_table_free(u);
    tsr_prior_table_free(NULL);
    assert_int_equal(tsr_prior_table_write(t, "/dev/null/t", NULL), TSR_E_IO);
}

static void bad_files(void **state)
{
    const files *f = *state;
    static const struct {
        const char *after, *old, *new, *message;
    } spoil[] = {{"", "tessera prior 1", "tessera prior 2", "tessera prior 1"},
                 {"", "#: side", "#: sido", "side"},
                 {"# ARG\n", " 1 ", " 2 ", "expected row 1"},
                 {"# ARG\n", "1216", "-1216", "side chains"},
                 {"# ARG\n", "1216", "1216.5", "side chains"},
                 {"# ARG\n", "1216", "1216 inf", "finite"},
                 {"# ARG\n", "1216", "1216 1 1 1 0 0 0 0 0 0 #", "follows"},
                 {"# ARG\n", "1216 ", "1216 x", "numbers"},
                 {"#: side", "contact two", "contact one", "contact two"},
                 {"#: contact one\n", "ALA\n 0 ", "ALA\n 0 -", "above 0"},
                 {"#: contact one\n", "ARG\n 1 ", "ARG\n 1 9", "symmetric"}};
    assert_int_equal(tsr_prior_table_write(f->trained, f->table, NULL), TSR_OK);
    char *text = text_of(f->table), place[128];
    tsr_prior_table *t = NULL;
    for (size_t i = 0; i < sizeof spoil / sizeof spoil[0]; i++) {
        tsr_err err = {0};
        int line = write_spoilt(f->table, text, spoil[i].after, spoil[i].old,
                                spoil[i].new);
        assert_int_not_equal(line, 0);
        assert_int_equal(tsr_prior_table_read(f->table, &t, &err), TSR_E_DATA);
        assert_null(t);
        if (strstr(err.message, spoil[i].message) == NULL)
            fail_msg("%zu: %s", i, err.message);
        snprintf(place, sizeof place, "%s:", f->table);
        assert_int_equal(strncmp(err.message, place, strlen(place)), 0);
    }
    free(text);
    assert_int_equal(tsr_prior_table_read("/dev/null/t", &t, NULL),
                     TSR_E_NOINPUT);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(side_chains), cmocka_unit_test(contacts),
        cmocka_unit_test(round_trip), cmocka_unit_test(bad_files)};
    return cmocka_run_group_tests(tests, set_up, tear_down);
}
