/* Faults of published form-factor tables are refused with a reason, and errors
 * between tables are summarised as defined. */
#include "tests/test.h"
#include "train/train.h"

#include <unistd.h>

typedef struct {
    char folder[64], table[96], q[96];
} files;

static int set_up(void **state)
{
    files *f = calloc(1, sizeof *f);
    snprintf(f->folder, sizeof f->folder, "/tmp/tessera-pub-XXXXXX");
    if (mkdtemp(f->folder) == NULL)
        return -1;
    snprintf(f->table, sizeof f->table, "%s/a-b-model.dat", f->folder);
    snprintf(f->q, sizeof f->q, "%s/a-b-q_vector.dat", f->folder);
    *state = f;
    return 0;
}

static int tear_down(void **state)
{
    files *f = *state;
    remove(f->table);
    remove(f->q);
    int left = rmdir(f->folder);
    free(f);
    return left;
}

/* n_row lists of n_column numbers 1, 2, ..., one list of q. */
static void write_files(const files *f, int n_row, int n_column, const char *q)
{
    FILE *file = fopen(f->table, "w");
    fprintf(file, "\n[");
    for (int r = 0; r < n_row; r++) {
        fprintf(file, "[");
        for (int c = 0; c < n_column; c++)
            fprintf(file, "%s%d", c > 0 ? ", " : "", r * n_column + c + 1);
        fprintf(file, "]%s\n", r + 1 < n_row ? "," : "");
    }
    fprintf(file, "]\n");
    fclose(file);
    file = fopen(f->q, "w");
    fputs(q, file);
    fclose(file);
}

static void refused(const files *f, tsr_status status, const char *message)
{
    tsr_form_factor_table *table;
    err = (tsr_err){0};
    assert_int_equal(tsr_form_factor_read(f->table, &table, &err), status);
    assert_null(table);
    assert_has(err.message, message);
}

TEST(lists)
{
    const files *f = *state;
    tsr_form_factor_table *table;
    write_files(f, 3, 20, "[0, 0.2,\n 0.4]");
    OK(tsr_form_factor_read(f->table, &table, &err));
    assert_int_equal(table->model, TSR_BODIES_ONE);
    assert_near(table->dq_inv_ang, 0.2, 1e-15);
    assert_true(table->amplitude[TSR_ARG * 3 + 2] ==
                42.0); /* row 2, column 1 */
    assert_true(table->excess[TSR_ARG * 3 + 2] == 0.0);
    assert_int_equal(table->n_comp, 1);
    tsr_form_factor_free(table);

    write_files(f, 3, 19, "[0, 0.2, 0.4]");
    refused(f, TSR_E_DATA, "19 form factors");
    write_files(f, 3, 21, "[0, 0.2, 0.5]");
    refused(f, TSR_E_DATA, "equally spaced");
    write_files(f, 3, 21, "[0.1, 0.2, 0.3]");
    refused(f, TSR_E_DATA, "equally spaced");
    write_files(f, 3, 21, "[0, 0.2]");
    refused(f, TSR_E_DATA, "as many");
    write_files(f, 3, 21, "[0, nan, 0.4]");
    refused(f, TSR_E_DATA, "q_vector.dat:1: expected numbers");
    write_files(f, 3, 21, "[0, 0.2, 0.4");
    refused(f, TSR_E_DATA, "do not close");
    remove(f->q);
    refused(f, TSR_E_NOINPUT, "a-b-q_vector.dat");
    FILE *file = fopen(f->table, "w");
    fputs("[[1, 2],\n [3, 4],\n [5]]\n", file);
    fclose(file);
    refused(f, TSR_E_DATA, "model.dat:3: a row of 1");
}

TEST(names)
{
    const char *path[] = {"x/1abc.pdb.gz", "2xyz.cif", "bm5_1ab.ent"};
    char *text = tsr_structure_names("structures", 3, path);
    assert_string_equal(text, "structures: 3\n  1abc 2xyz bm5_1ab");
    free(text);
    const char *source = "command: 9zzz\nstructures: 2\n  1abc 2xyz\n  3def\n"
                         "held out: 1\n  4ghi";
    assert_true(tsr_structure_is_listed(source, "structures", "/a/1abc.pdb"));
    assert_true(tsr_structure_is_listed(source, "structures", "3def.cif.gz"));
    assert_true(tsr_structure_is_listed(source, "held out", "4ghi.ent"));
    assert_false(tsr_structure_is_listed(source, "structures", "4ghi.ent"));
    assert_false(tsr_structure_is_listed(source, "structures", "1ab.pdb"));
    assert_false(tsr_structure_is_listed(source, "structures", "9zzz.pdb"));
    assert_false(tsr_structure_is_listed(NULL, "structures", "1abc.pdb"));
}

TEST(split)
{
    char name[14][2];
    char *path[14];
    const char *train[14], *test[14];
    for (int i = 0; i < 14; i++) {
        name[i][0] = (char)('a' + i);
        name[i][1] = '\0';
        path[i] = name[i];
    }
    tsr_path_list list = {.n = 14, .path = path};
    int n_train, n_test;
    tsr_path_list_split(&list, 6, &n_train, train, &n_test, test);
    assert_ints(n_train, 12, n_test, 2);
    assert_true(test[0] == path[5] && test[1] == path[11]);
    assert_true(train[5] == path[6] && train[11] == path[13]);
    tsr_path_list_split(&list, 0, &n_train, train, &n_test, test);
    assert_ints(n_train, 14, n_test, 0);
}

/* Scale below 0.1, bands, medians. */
TEST(summary)
{
    double atoms[TSR_ERROR_N_Q], model[TSR_ERROR_N_Q];
    double error[2][TSR_ERROR_N_Q + 3];
    for (int k = 0; k < TSR_ERROR_N_Q; k++) {
        atoms[k] = 100.0 / (1 + k);
        double e = k < 10 ? 0.0 : k < 20 ? 0.1 : k < 35 ? -0.2 : 0.3;
        model[k] = 7.0 * atoms[k] * (1.0 + e);
    }
    tsr_error_relative(model, atoms, error[0]);
    for (int k = 0; k < TSR_ERROR_N_Q; k++)
        error[1][k] = 3.0 * error[0][k];
    tsr_error_summary s;
    OK(tsr_error_summarise(2, error[0], TSR_ERROR_N_Q + 3, &s, &err));
    static const double expect[TSR_ERROR_N_BAND] = {0.0, 0.2, 0.4, 0.6};
    for (int b = 0; b < TSR_ERROR_N_BAND; b++)
        assert_near(s.band[b], expect[b], 1e-12);
    assert_nears(1e-12, s.curve[34], 0.4, s.curve[50], 0.6);
    /* The scale is the one that makes the error least, not the mean ratio. */
    for (int k = 0; k < 10; k++)
        model[k] = k < 5 ? atoms[k] : 3.0 * atoms[k];
    tsr_error_relative(model, atoms, error[0]);
    assert_nears(1e-12, error[0][0], (0.4 - 1.0), error[0][9], (1.2 - 1.0));
}

static test_fixture around_all = {set_up, tear_down};
