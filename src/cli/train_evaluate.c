/* How well do tables of form factors reproduce the curves of all atoms? They
 * are tried on structures that none of them was trained on, and the relative
 * error of I(q) is told by band of q, as text, JSON and CSV. */
#include "cli/train_evaluate.h"

#include "cli/setup.h"
#include "core/json.h"
#include "io/file.h"
#include "model/component_evaluate.h"
#include "model/component_table.h"
#include "model/form_factor_evaluate.h"
#include "model/structure_fold.h"
#include "model/train.h"

#include <stdlib.h>
#include <string.h>

enum { N_SHIPPED = 4 };
static const char *const shipped[N_SHIPPED] = {
    "form_factors_two_body.dat", "form_factors_one_body.dat",
    "components_two_body.dat", "components_one_body.dat"};

/* Excluded volume and hydration that tables of components are tried with:
 * none, each alone, what fits to data find. */
enum { N_SETTING = 9 };
static const double setting[N_SETTING][2] = {
    {1.0, 0.0},  {0.97, 0.0}, {1.03, 0.0}, {1.0, 1.0}, {1.0, 2.0},
    {0.97, 1.0}, {0.97, 2.0}, {1.03, 1.0}, {1.03, 2.0}};

/* One file: either of the two. */
typedef struct {
    char *name; /* as shown */
    tsr_form_factor_table *plain;
    tsr_component_table *components;
} evaluated_table;

typedef struct {
    const evaluated_table *table;
    int with_self; /* plain: with S(q) */
    double c1, c2; /* components */
    tsr_error_summary summary;
} evaluated_row;

typedef struct {
    int n_structure, n_given; /* evaluated, of those given */
    int n_row;
    const evaluated_row *row; /* [n_row], those of plain tables first */
} evaluate_report;

typedef struct {
    int n_table, n_row, n_plain; /* rows of plain tables are the first */
    evaluated_table *table;      /* [n_table] */
    evaluated_row *row;          /* [n_row] */
    tsr_path_list list;
    int n_test;
    const char **test; /* [n_test], into the list */
} evaluation;

static void clear(evaluation *e)
{
    for (int t = 0; t < e->n_table; t++) {
        free(e->table[t].name);
        tsr_form_factor_free(e->table[t].plain);
        tsr_component_free(e->table[t].components);
    }
    free(e->table);
    free(e->row);
    free(e->test);
    tsr_path_list_clear(&e->list);
}

static tsr_status add_table(evaluation *e, const char *path, const char *bodies,
                            tsr_err *err)
{
    const char *slash = strrchr(path, '/');
    evaluated_table *t = &e->table[e->n_table++];
    tsr_status s = tsr_component_is_file(path)
                       ? tsr_component_read(path, &t->components, err)
                       : tsr_form_factor_read(path, &t->plain, err);
    if (s != TSR_OK)
        return s;
    tsr_body_model model =
        t->plain != NULL ? t->plain->model : t->components->model;
    const char *word = model == TSR_BODIES_TWO ? "two" : "one";
    if (strcmp(bodies, "both") != 0 && strcmp(bodies, word) != 0) {
        tsr_form_factor_free(t->plain);
        tsr_component_free(t->components);
        *t = (evaluated_table){0};
        e->n_table--;
        return TSR_OK;
    }
    t->name = strdup(slash != NULL ? slash + 1 : path);
    return t->name != NULL ? TSR_OK
                           : tsr_fail(err, TSR_E_NOMEM, "no memory for a name");
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
    size_t n = (size_t)(n_own + N_SHIPPED);
    e->table = calloc(n, sizeof *e->table);
    e->row = calloc(n * N_SETTING, sizeof *e->row);
    if (e->table == NULL || e->row == NULL)
        return tsr_fail(err, TSR_E_NOMEM, "no memory for %zu tables", n);
    tsr_status s = TSR_OK;
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

static int has_self(const tsr_form_factor_table *t)
{
    for (int i = 0; i < t->n_type * t->n_q; i++)
        if (t->self[i] != t->amplitude[i] * t->amplitude[i])
            return 1;
    return 0;
}

/* A plain table has a row with and, where it has any, one without S(q). */
static void make_rows(evaluation *e)
{
    for (int t = 0; t < e->n_table; t++) {
        const evaluated_table *table = &e->table[t];
        if (table->plain == NULL)
            continue;
        for (int with = has_self(table->plain); with >= 0; with--)
            e->row[e->n_row++] =
                (evaluated_row){.table = table, .with_self = with};
    }
    e->n_plain = e->n_row;
    for (int t = 0; t < e->n_table; t++)
        for (int i = 0; i < N_SETTING && e->table[t].components != NULL; i++)
            e->row[e->n_row++] = (evaluated_row){.table = &e->table[t],
                                                 .c1 = setting[i][0],
                                                 .c2 = setting[i][1]};
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
        for (int t = 0; t < e->n_table && !seen; t++) {
            const evaluated_table *table = &e->table[t];
            seen = tsr_structure_listed(table->plain != NULL
                                            ? table->plain->source
                                            : table->components->source,
                                        "structures", e->list.path[i]);
        }
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

static tsr_status evaluate(evaluation *e, int n_thread, tsr_log *log,
                           tsr_err *err)
{
    int n = e->n_plain, m = e->n_row - n;
    size_t size = (size_t)e->n_row + 1;
    tsr_evaluation *plain = calloc(size, sizeof *plain);
    tsr_component_evaluation *components = calloc(size, sizeof *components);
    tsr_error_summary *summary = calloc(size, sizeof *summary);
    tsr_status s =
        plain == NULL || components == NULL || summary == NULL
            ? tsr_fail(err, TSR_E_NOMEM, "no memory for %d rows", e->n_row)
            : TSR_OK;
    for (int r = 0; r < e->n_row && s == TSR_OK; r++) {
        const evaluated_row *row = &e->row[r];
        if (r < n)
            plain[r] = (tsr_evaluation){row->table->plain, row->with_self};
        else
            components[r - n] = (tsr_component_evaluation){
                row->table->components, row->c1, row->c2};
    }
    if (s == TSR_OK && n > 0)
        s = tsr_form_factor_evaluate(e->n_test, e->test, n, plain, n_thread,
                                     log, summary, err);
    if (s == TSR_OK && m > 0)
        s = tsr_component_evaluate(e->n_test, e->test, m, components, n_thread,
                                   log, summary + n, err);
    for (int r = 0; r < e->n_row && s == TSR_OK; r++)
        e->row[r].summary = summary[r];
    free(plain);
    free(components);
    free(summary);
    return s;
}

/* ---- what was found ---- */

static const char *bodies_word(const evaluated_row *row)
{
    const evaluated_table *t = row->table;
    tsr_body_model model =
        t->plain != NULL ? t->plain->model : t->components->model;
    return model == TSR_BODIES_TWO ? "two" : "one";
}

static void print_head(int width, const char *what, FILE *out)
{
    fprintf(out, "%-*s  bodies  %-9s", width, "table", what);
    for (int b = 0; b < TSR_ERROR_N_BAND; b++) {
        char range[32];
        snprintf(range, sizeof range, "%g-%g", tsr_error_band[b],
                 tsr_error_band[b + 1]);
        fprintf(out, " %8s", range);
    }
    fprintf(out, "\n");
}

static void print_row(const evaluated_row *row, int width, FILE *out)
{
    char what[32];
    if (row->table->plain != NULL)
        snprintf(what, sizeof what, "%s", row->with_self ? "yes" : "no");
    else
        snprintf(what, sizeof what, "%.2f %4g", row->c1, row->c2);
    fprintf(out, "%-*s  %-6s  %-9s", width, row->table->name, bodies_word(row),
            what);
    for (int b = 0; b < TSR_ERROR_N_BAND; b++)
        fprintf(out, " %8.2f", 100.0 * row->summary.band[b]);
    fprintf(out, "\n");
}

static void print_table(const evaluate_report *report, FILE *out)
{
    int width = 5;
    for (int r = 0; r < report->n_row; r++) {
        int n = (int)strlen(report->row[r].table->name);
        width = n > width ? n : width;
    }
    fprintf(out,
            "%d structures of %d: those that no table was trained on.\n"
            "I(q) against all atoms: median over the structures of the rms "
            "relative\nerror, in %%, by q in 1/A; scale matched below 0.1.\n",
            report->n_structure, report->n_given);
    for (int r = 0; r < report->n_row; r++) {
        const evaluated_row *row = &report->row[r];
        int plain = row->table->plain != NULL;
        int first = r == 0 || plain != (row[-1].table->plain != NULL);
        if (first) {
            fprintf(out, "\n");
            print_head(width, plain ? "S(q)" : "c1     c2", out);
        }
        print_row(row, width, out);
    }
}

static void print_json(const evaluate_report *report, FILE *out)
{
    tsr_json j = {.out = out, .digits = 6};
    double q[TSR_ERROR_N_Q];
    for (int k = 0; k < TSR_ERROR_N_Q; k++)
        q[k] = k * TSR_ERROR_DQ;
    tsr_json_object(&j, NULL);
    tsr_json_integer(&j, "n_structure", report->n_structure);
    tsr_json_numbers(&j, "band_inv_ang", TSR_ERROR_N_BAND + 1, tsr_error_band);
    tsr_json_numbers(&j, "q_inv_ang", TSR_ERROR_N_Q, q);
    tsr_json_array(&j, "rows");
    for (int r = 0; r < report->n_row; r++) {
        const evaluated_row *row = &report->row[r];
        const int is_plain = row->table->plain != NULL;
        tsr_json_object(&j, NULL);
        tsr_json_text(&j, "table", row->table->name);
        tsr_json_text(&j, "bodies", bodies_word(row));
        tsr_json_integer(&j, "components", is_plain ? 1 : TSR_N_COMP);
        if (is_plain) {
            tsr_json_truth(&j, "self", row->with_self);
        } else {
            tsr_json_number(&j, "c1", row->c1);
            tsr_json_number(&j, "c2", row->c2);
        }
        tsr_json_numbers(&j, "median_rms_relative_error", TSR_ERROR_N_BAND,
                         row->summary.band);
        tsr_json_numbers(&j, "median_relative_error_by_q", TSR_ERROR_N_Q,
                         row->summary.curve);
        tsr_json_close(&j);
    }
    tsr_json_close(&j);
    tsr_json_close(&j);
}

/* q, then a column a row: the median of the absolute relative error. */
static tsr_status write_csv(const evaluate_report *report, const char *path,
                            tsr_err *err)
{
    char *text = NULL;
    size_t size = 0;
    FILE *out = open_memstream(&text, &size);
    if (out == NULL)
        return tsr_fail(err, TSR_E_NOMEM, "no memory for '%s'", path);
    fprintf(out, "q_inv_ang");
    for (int r = 0; r < report->n_row; r++) {
        const evaluated_row *row = &report->row[r];
        fprintf(out, ",%s", row->table->name);
        if (row->table->plain == NULL)
            fprintf(out, " c1=%g c2=%g", row->c1, row->c2);
        else if (row->with_self)
            fprintf(out, " S");
    }
    fprintf(out, "\n");
    for (int k = 0; k < TSR_ERROR_N_Q; k++) {
        fprintf(out, "%.2f", k * TSR_ERROR_DQ);
        for (int r = 0; r < report->n_row; r++)
            fprintf(out, ",%.6g", report->row[r].summary.curve[k]);
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
    if (s == TSR_OK) {
        make_rows(&e);
        s = choose_structures(&e, args, err);
    }
    if (s == TSR_OK)
        s = evaluate(&e, (int)n_thread, log, err);
    const evaluate_report report = {e.n_test, e.list.n, e.n_row, e.row};
    if (s == TSR_OK && tsr_args_count(args, "output") > 0)
        s = write_csv(&report, tsr_args_value(args, "output"), err);
    if (s == TSR_OK && tsr_args_count(args, "json") > 0)
        print_json(&report, out);
    else if (s == TSR_OK)
        print_table(&report, out);
    clear(&e);
    return s;
}
