#include "cli/train_evaluate.h"

#include "cli/setup.h"
#include "core/text.h"
#include "io/file.h"
#include "model/form_factor_evaluate.h"
#include "model/structure_fold.h"
#include "model/train.h"

#include <stdlib.h>
#include <string.h>

enum { N_SHIPPED = 2 };
static const char *const shipped[N_SHIPPED] = {"form_factors_two_body.dat",
                                               "form_factors_one_body.dat"};

typedef struct {
    int n_table, n_row;
    char **name;                   /* [n_table] as shown */
    tsr_form_factor_table **table; /* [n_table] */
    tsr_evaluation *row;           /* [n_row] */
    int *row_table;                /* [n_row] */
    tsr_error_summary *summary;    /* [n_row] */
    tsr_path_list list;
    int n_test;
    const char **test; /* [n_test], into the list */
} evaluation;

static void clear(evaluation *e)
{
    for (int t = 0; t < e->n_table; t++) {
        free(e->name[t]);
        tsr_form_factor_free(e->table[t]);
    }
    free(e->name);
    free(e->table);
    free(e->row);
    free(e->row_table);
    free(e->summary);
    free(e->test);
    tsr_path_list_clear(&e->list);
}

static tsr_status reserve(evaluation *e, size_t n, tsr_err *err)
{
    e->name = calloc(n, sizeof(*e->name));
    e->table = calloc(n, sizeof(*e->table));
    e->row = calloc(2 * n, sizeof *e->row);
    e->row_table = calloc(2 * n, sizeof *e->row_table);
    e->summary = calloc(2 * n, sizeof *e->summary);
    if (e->name == NULL || e->table == NULL || e->row == NULL ||
        e->row_table == NULL || e->summary == NULL)
        return tsr_fail(err, TSR_E_NOMEM, "no memory for %zu tables", n);
    return TSR_OK;
}

static int has_self(const tsr_form_factor_table *t)
{
    for (int i = 0; i < t->n_type * t->n_q; i++)
        if (t->self[i] != t->amplitude[i] * t->amplitude[i])
            return 1;
    return 0;
}

/* Reads one table and gives it a row with and, where it has any, one without
 * S(q). A table of the other body model is passed over. */
static tsr_status add_table(evaluation *e, const char *path, const char *bodies,
                            tsr_err *err)
{
    tsr_form_factor_table *table = NULL;
    tsr_status s = tsr_form_factor_read(path, &table, err);
    if (s != TSR_OK)
        return s;
    const char *word = table->model == TSR_BODIES_TWO ? "two" : "one";
    if (strcmp(bodies, "both") != 0 && strcmp(bodies, word) != 0) {
        tsr_form_factor_free(table);
        return TSR_OK;
    }
    const char *slash = strrchr(path, '/');
    int t = e->n_table++;
    e->table[t] = table;
    e->name[t] = strdup(slash != NULL ? slash + 1 : path);
    if (e->name[t] == NULL)
        return tsr_fail(err, TSR_E_NOMEM, "no memory for a name");
    for (int with_self = has_self(table); with_self >= 0; with_self--) {
        e->row_table[e->n_row] = t;
        e->row[e->n_row++] = (tsr_evaluation){table, with_self};
    }
    return TSR_OK;
}

static tsr_status read_tables(evaluation *e, const tsr_args *args, tsr_err *err)
{
    const char *bodies = tsr_args_value(args, "bodies");
    const char *const *own;
    int n_own = tsr_args_values(args, "table", &own);
    if (strcmp(bodies, "both") != 0 && strcmp(bodies, "two") != 0 &&
        strcmp(bodies, "one") != 0)
        return tsr_fail(err, TSR_E_USAGE,
                        "--bodies '%s': expected one, two or both", bodies);
    tsr_status s = reserve(e, (size_t)(n_own + N_SHIPPED), err);
    for (int i = 0; i < N_SHIPPED && s == TSR_OK; i++) {
        char *path = NULL;
        s = tsr_data_file(shipped[i], &path, err);
        if (s == TSR_OK)
            s = add_table(e, path, bodies, err);
        free(path);
    }
    for (int i = 0; i < n_own && s == TSR_OK; i++)
        s = add_table(e, own[i], bodies, err);
    return s;
}

static tsr_status choose_structures(evaluation *e, const tsr_args *args,
                                    tsr_err *err)
{
    const char *const *word;
    int n = tsr_args_arguments(args, &word);
    tsr_status s = tsr_path_list_collect(&e->list, n - 1, word + 1, err);
    if (s != TSR_OK)
        return s;
    e->test = malloc((size_t)e->list.n * sizeof(*e->test));
    if (e->test == NULL)
        return tsr_fail(err, TSR_E_NOMEM, "no memory for a list of files");
    for (int i = 0; i < e->list.n; i++) {
        int seen = 0;
        for (int t = 0; t < e->n_table && !seen; t++)
            seen = tsr_structure_listed(e->table[t]->source, "structures",
                                        e->list.path[i]);
        if (!seen)
            e->test[e->n_test++] = e->list.path[i];
    }
    if (e->n_test == 0)
        return tsr_fail(err, TSR_E_DATA,
                        "each of the %d structures is one that a table was "
                        "trained on; give others",
                        e->list.n);
    return TSR_OK;
}

static const char *bodies_word(const evaluation *e, int row)
{
    return e->row[row].table->model == TSR_BODIES_TWO ? "two" : "one";
}

static void print_table(const evaluation *e, FILE *out)
{
    int width = 5;
    for (int t = 0; t < e->n_table; t++)
        width =
            (int)strlen(e->name[t]) > width ? (int)strlen(e->name[t]) : width;
    fprintf(out,
            "%d structures of %d: those that no table was trained on.\n"
            "I(q) against all atoms: median over the structures of the rms "
            "relative\nerror, in %%, by q in 1/A; scale matched below 0.1.\n\n",
            e->n_test, e->list.n);
    fprintf(out, "%-*s  bodies  S(q)", width, "table");
    for (int b = 0; b < TSR_ERROR_N_BAND; b++) {
        char range[32];
        snprintf(range, sizeof range, "%g-%g", tsr_error_band[b],
                 tsr_error_band[b + 1]);
        fprintf(out, " %9s", range);
    }
    fprintf(out, "\n");
    for (int r = 0; r < e->n_row; r++) {
        fprintf(out, "%-*s  %-6s  %-4s", width, e->name[e->row_table[r]],
                bodies_word(e, r), e->row[r].with_self ? "yes" : "no");
        for (int b = 0; b < TSR_ERROR_N_BAND; b++)
            fprintf(out, " %9.2f", 100.0 * e->summary[r].band[b]);
        fprintf(out, "\n");
    }
}

static void print_numbers(FILE *out, const char *name, int n,
                          const double *value)
{
    fprintf(out, ", \"%s\": [", name);
    for (int i = 0; i < n; i++)
        fprintf(out, "%s%.6g", i > 0 ? ", " : "", value[i]);
    fprintf(out, "]");
}

static void print_json(const evaluation *e, FILE *out)
{
    double q[TSR_ERROR_N_Q];
    for (int k = 0; k < TSR_ERROR_N_Q; k++)
        q[k] = k * TSR_ERROR_DQ;
    fprintf(out, "{\"n_structure\": %d", e->n_test);
    print_numbers(out, "band_inv_ang", TSR_ERROR_N_BAND + 1, tsr_error_band);
    print_numbers(out, "q_inv_ang", TSR_ERROR_N_Q, q);
    fprintf(out, ", \"rows\": [");
    for (int r = 0; r < e->n_row; r++) {
        fprintf(out, "%s\n{\"table\": ", r > 0 ? "," : "");
        tsr_text_json(out, e->name[e->row_table[r]]);
        fprintf(out, ", \"bodies\": \"%s\", \"self\": %s", bodies_word(e, r),
                e->row[r].with_self ? "true" : "false");
        print_numbers(out, "median_rms_relative_error", TSR_ERROR_N_BAND,
                      e->summary[r].band);
        print_numbers(out, "median_relative_error_by_q", TSR_ERROR_N_Q,
                      e->summary[r].curve);
        fprintf(out, "}");
    }
    fprintf(out, "]}\n");
}

/* q, then a column a row of the table. */
static tsr_status write_curves(const evaluation *e, const char *path,
                               tsr_err *err)
{
    char *text = NULL;
    size_t size = 0;
    FILE *out = open_memstream(&text, &size);
    if (out == NULL)
        return tsr_fail(err, TSR_E_NOMEM, "no memory for '%s'", path);
    fprintf(out, "q_inv_ang");
    for (int r = 0; r < e->n_row; r++)
        fprintf(out, ",%s%s", e->name[e->row_table[r]],
                e->row[r].with_self ? "+S" : "");
    fprintf(out, "\n");
    for (int k = 0; k < TSR_ERROR_N_Q; k++) {
        fprintf(out, "%.2f", k * TSR_ERROR_DQ);
        for (int r = 0; r < e->n_row; r++)
            fprintf(out, ",%.6g", e->summary[r].curve[k]);
        fprintf(out, "\n");
    }
    tsr_status s = fclose(out) == 0
                       ? tsr_file_replace(path, text, size, err)
                       : tsr_fail(err, TSR_E_NOMEM, "no memory for '%s'", path);
    free(text);
    return s;
}

tsr_status tsr_train_evaluate(const tsr_args *args, FILE *out, tsr_log *log,
                              tsr_err *err)
{
    evaluation e = {0};
    long n_thread = 0;
    tsr_status s = tsr_args_long(args, "threads", 0.0, 64.0, &n_thread, err);
    if (s == TSR_OK)
        s = read_tables(&e, args, err);
    if (s == TSR_OK)
        s = choose_structures(&e, args, err);
    if (s == TSR_OK)
        s = tsr_form_factor_evaluate(e.n_test, e.test, e.n_row, e.row,
                                     (int)n_thread, log, e.summary, err);
    if (s == TSR_OK && tsr_args_count(args, "output") > 0)
        s = write_curves(&e, tsr_args_value(args, "output"), err);
    if (s == TSR_OK && tsr_args_count(args, "json") > 0)
        print_json(&e, out);
    else if (s == TSR_OK)
        print_table(&e, out);
    clear(&e);
    return s;
}
