#include "cli/train_evaluate.h"

#include "cli/evaluate_report.h"
#include "cli/setup.h"
#include "io/file.h"
#include "model/component_evaluate.h"
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

typedef struct {
    int n_table, n_row, n_plain; /* rows of plain tables are the first */
    tsr_evaluated_table *table;  /* [n_table] */
    tsr_evaluated_row *row;      /* [n_row] */
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
    tsr_evaluated_table *t = &e->table[e->n_table++];
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
        *t = (tsr_evaluated_table){0};
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
        const tsr_evaluated_table *table = &e->table[t];
        if (table->plain == NULL)
            continue;
        for (int with = has_self(table->plain); with >= 0; with--)
            e->row[e->n_row++] =
                (tsr_evaluated_row){.table = table, .with_self = with};
    }
    e->n_plain = e->n_row;
    for (int t = 0; t < e->n_table; t++)
        for (int i = 0; i < N_SETTING && e->table[t].components != NULL; i++)
            e->row[e->n_row++] = (tsr_evaluated_row){.table = &e->table[t],
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
            const tsr_evaluated_table *table = &e->table[t];
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
        const tsr_evaluated_row *row = &e->row[r];
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

tsr_status tsr_train_evaluate(const tsr_args *args, FILE *out, tsr_log *log,
                              tsr_err *err)
{
    evaluation e = {0};
    long n_thread = 0;
    const char *const *table;
    const tsr_file_target target = {
        .maker = "train",
        .begins = "q_inv_ang,",
        .holds = "",
        .n_input = tsr_args_values(args, "table", &table),
        .input = table,
        .is_forced = tsr_args_count(args, "force") > 0};
    tsr_status s = tsr_args_long(args, "threads", 0.0, 64.0, &n_thread, err);
    if (s == TSR_OK && tsr_args_count(args, "output") > 0)
        s = tsr_file_check_target(&target, tsr_args_value(args, "output"), err);
    if (s == TSR_OK)
        s = read_tables(&e, args, err);
    if (s == TSR_OK) {
        make_rows(&e);
        s = choose_structures(&e, args, err);
    }
    if (s == TSR_OK)
        s = evaluate(&e, (int)n_thread, log, err);
    const tsr_evaluate_report report = {e.n_test, e.list.n, e.n_row, e.row};
    if (s == TSR_OK && tsr_args_count(args, "output") > 0)
        s = tsr_evaluate_csv(&report, tsr_args_value(args, "output"), err);
    if (s == TSR_OK && tsr_args_count(args, "json") > 0)
        tsr_evaluate_json(&report, out);
    else if (s == TSR_OK)
        tsr_evaluate_print(&report, out);
    clear(&e);
    return s;
}
