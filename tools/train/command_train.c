/* The command tessera train: makes the tables of data/ (docs/forward-model.md,
 * docs/moves.md), for one or both body models, or evaluates them. Form factors
 * are tables of one component, components are tables of three. */
#include "commands/command.h"
#include "core/json.h"
#include "core/pool.h"
#include "core/text.h"
#include "files/file.h"
#include "posterior/setup.h"
#include "scattering/form_factor.h"
#include "train/train.h"

#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

enum { BODIES_ONE, BODIES_TWO, BODIES_BOTH };
static const char *const bodies_words[] = {"one", "two", "both", NULL};

typedef struct {
    char *output;
    int bodies, evaluate, json, force;
    long hold_out, threads;
    tsr_strings table;
} options;

/* ---- --evaluate ----
 *
 * Errors of profiles of bodies against all atoms, by table, as text, JSON and
 * CSV. Only structures that no table was trained on, according to the headings,
 * are used, so that all tables are judged on the same independent structures.
 */

enum { N_SHIPPED = 4 };
static const char *const shipped[N_SHIPPED] = {
    "form_factors_two_body.dat", "form_factors_one_body.dat",
    "components_two_body.dat", "components_one_body.dat"};

/* c1 and c2 at which tables of three components are evaluated: the reference,
 * each changed alone, and values typical of fits to data. */
enum { N_SETTING = 9 };
static const double setting[N_SETTING][2] = {
    {1.0, 0.0},  {0.97, 0.0}, {1.03, 0.0}, {1.0, 1.0}, {1.0, 2.0},
    {0.97, 1.0}, {0.97, 2.0}, {1.03, 1.0}, {1.03, 2.0}};

typedef struct {
    tsr_pool pool;
    int n_table, n_row;
    struct {
        char *name; /* name in the output */
        tsr_form_factor_table *table;
    } * file;            /* [n_table] */
    tsr_evaluation *row; /* [n_row] tables of one component first */
    const char **name;   /* [n_row] name of the table, borrowed from `file` */
    tsr_error_summary *summary; /* [n_row] */
    tsr_path_list list;
    int n_test;
    const char **test; /* [n_test] borrowed from the list */
} evaluation;

static void evaluation_clear(evaluation *e)
{
    for (int t = 0; t < e->n_table; t++)
        tsr_form_factor_free(e->file[t].table);
    tsr_pool_clear(&e->list.pool);
    tsr_pool_clear(&e->pool);
}

static int bodies_of(const tsr_form_factor_table *table)
{
    return table->model == TSR_BODIES_TWO ? BODIES_TWO : BODIES_ONE;
}

static int has_one_component(const evaluation *e, int row)
{
    return e->row[row].table->n_comp == 1;
}

/* ---- output ---- */

/* The errors of the bands (tsr_error_band), in text as percentages. */
static void add_bands(tsr_table *t, const char *key, const double *error)
{
    if (t->json != NULL)
        tsr_json_numbers(t->json, key, TSR_ERROR_N_BAND, error);
    else
        tsr_table_put(t,
                      "|0-0.1 %8.2f |0.1-0.2 %8.2f |0.2-0.35 %8.2f "
                      "|0.35-0.5 %8.2f",
                      100.0 * error[0], 100.0 * error[1], 100.0 * error[2],
                      100.0 * error[3]);
}

static void add_output_row(tsr_table *t, const evaluation *e, int r, int width)
{
    const tsr_evaluation *row = &e->row[r];
    tsr_table_row(t, NULL);
    tsr_table_put(t, "table|table %-*s bodies|bodies %-6s components %d", width,
                  e->name[r], bodies_words[bodies_of(row->table)],
                  row->table->n_comp);
    if (has_one_component(e, r))
        tsr_table_put(t, "self %i |S(q) %-9s", row->with_self,
                      row->with_self ? "yes" : "no");
    else
        tsr_table_put(t, "c1|c1 %4.2f c2|c2 %4g", row->c1, row->c2);
    add_bands(t, "median_rms_relative_error", e->summary[r].band);
    tsr_table_put(t, "|95~%%: %5s", "");
    add_bands(t, "high95_rms_relative_error", e->summary[r].high);
    if (t->json != NULL)
        tsr_json_numbers(t->json, "median_relative_error_by_q", TSR_ERROR_N_Q,
                         e->summary[r].curve);
    tsr_table_end(t);
}

static void print_table(const evaluation *e, FILE *out)
{
    int width = 5;
    tsr_table t = {.out = out};
    for (int r = 0; r < e->n_row; r++) {
        int n = (int)strlen(e->name[r]);
        width = n > width ? n : width;
    }
    fprintf(out,
            "%d structures of %d: those that no table was trained on.\n"
            "I(q) against all atoms: median over the structures of the rms "
            "relative\nerror, in %%, by q in 1/A, and what 95 %% of them are "
            "below; scale matched below 0.1.\n",
            e->n_test, e->list.n);
    for (int r = 0; r < e->n_row; r++) {
        if (r == 0 || has_one_component(e, r) != has_one_component(e, r - 1)) {
            fputc('\n', out);
            t.n_row = 0; /* other columns: print their headings */
        }
        add_output_row(&t, e, r, width);
    }
}

static void print_json(const evaluation *e, FILE *out)
{
    tsr_json j = {.out = out, .digits = 6};
    tsr_table t = {.json = &j};
    double q[TSR_ERROR_N_Q];
    for (int k = 0; k < TSR_ERROR_N_Q; k++)
        q[k] = k * TSR_ERROR_DQ;
    tsr_json_object(&j, NULL);
    tsr_json_integer(&j, "n_structure", e->n_test);
    tsr_json_numbers(&j, "band_inv_ang", TSR_ERROR_N_BAND + 1, tsr_error_band);
    tsr_json_numbers(&j, "q_inv_ang", TSR_ERROR_N_Q, q);
    tsr_json_array(&j, "rows");
    for (int r = 0; r < e->n_row; r++)
        add_output_row(&t, e, r, 0);
    tsr_json_close(&j);
    tsr_json_close(&j);
}

/* Columns: q, then the median absolute relative error of each evaluation. */
static tsr_status write_csv(const evaluation *e, const char *path, tsr_err *err)
{
    tsr_file_writer to;
    tsr_status s = tsr_file_begin(&to, path, err);
    FILE *out = to.out;
    if (s != TSR_OK)
        return s;
    fprintf(out, "q_inv_ang");
    for (int r = 0; r < e->n_row; r++) {
        const tsr_evaluation *row = &e->row[r];
        fprintf(out, ",%s", e->name[r]);
        if (!has_one_component(e, r))
            fprintf(out, " c1=%g c2=%g", row->c1, row->c2);
        else if (row->with_self)
            fprintf(out, " S");
    }
    fprintf(out, "\n");
    for (int k = 0; k < TSR_ERROR_N_Q; k++) {
        fprintf(out, "%.2f", k * TSR_ERROR_DQ);
        for (int r = 0; r < e->n_row; r++)
            fprintf(out, ",%.6g", e->summary[r].curve[k]);
        fprintf(out, "\n");
    }
    return tsr_file_end(&to, TSR_OK, err);
}

/* ---- evaluations ---- */

/* Reads a table, and adds it if it has the body model asked for. */
static tsr_status add_table(evaluation *e, const char *path, int bodies,
                            tsr_err *err)
{
    tsr_form_factor_table *table;
    TSR_TRY(tsr_form_factor_read(path, &table, err));
    if (bodies != BODIES_BOTH && bodies != bodies_of(table)) {
        tsr_form_factor_free(table);
        return TSR_OK;
    }
    e->file[e->n_table].table = table;
    e->file[e->n_table++].name =
        tsr_pool_text(&e->pool, tsr_text_file_name(path));
    return tsr_pool_check(&e->pool, err);
}

static tsr_status read_tables(evaluation *e, const options *o, tsr_err *err)
{
    size_t n = (size_t)(o->table.n + N_SHIPPED), n_row = n * N_SETTING;
    tsr_pool_array(&e->pool, e->file, n);
    tsr_pool_array(&e->pool, e->row, n_row);
    tsr_pool_array(&e->pool, e->name, n_row);
    tsr_pool_array(&e->pool, e->summary, n_row);
    TSR_TRY(tsr_pool_check(&e->pool, err));
    tsr_status s = TSR_OK;
    for (int i = 0; i < N_SHIPPED && s == TSR_OK; i++) {
        char *path = NULL;
        s = tsr_data_file(shipped[i], &path, err);
        TSR_THEN(s, add_table(e, path, o->bodies, err));
        free(path);
    }
    for (int i = 0; i < o->table.n && s == TSR_OK; i++)
        s = add_table(e, o->table.item[i], o->bodies, err);
    return s;
}

static void add_row(evaluation *e, int table, int with_self, double c1,
                    double c2)
{
    e->name[e->n_row] = e->file[table].name;
    e->row[e->n_row++] =
        (tsr_evaluation){e->file[table].table, with_self, c1, c2};
}

static int has_self(const tsr_form_factor_table *t)
{
    for (int i = 0; i < t->n_type * t->n_q; i++)
        if (t->excess[i] != 0.0)
            return 1;
    return 0;
}

/* Lists the evaluations. A table of one component is evaluated without S(q),
 * and with S(q) if the table has it. A table of three components is evaluated
 * at all settings. */
static void make_rows(evaluation *e)
{
    for (int t = 0; t < e->n_table; t++)
        if (e->file[t].table->n_comp == 1)
            for (int with = has_self(e->file[t].table); with >= 0; with--)
                add_row(e, t, with, 1.0, 0.0);
    for (int t = 0; t < e->n_table; t++)
        for (int i = 0; i < N_SETTING && e->file[t].table->n_comp > 1; i++)
            add_row(e, t, 1, setting[i][0], setting[i][1]);
}

static tsr_status choose_structures(evaluation *e, const tsr_args *args,
                                    tsr_err *err)
{
    TSR_TRY(
        tsr_path_list_collect(&e->list, args->n - 1, args->argument + 1, err));
    tsr_pool_array(&e->pool, e->test, e->list.n);
    TSR_TRY(tsr_pool_check(&e->pool, err));
    for (int i = 0; i < e->list.n; i++) {
        int seen = 0;
        for (int t = 0; t < e->n_table && !seen; t++)
            seen = tsr_structure_is_listed(e->file[t].table->source,
                                           "structures", e->list.path[i]);
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

/* Evaluates the shipped tables and those of --table on the structures of the
 * folders that no table was trained on. Prints a table or, with --json, an
 * object to `out`, and writes the CSV file of --output if given. Errors: those
 * of reading; TSR_E_DATA where no structure is left. */
static tsr_status evaluate_tables(const tsr_args *args, FILE *out, tsr_log *log,
                                  tsr_err *err)
{
    const options *o = args->options;
    evaluation e = {0};
    const tsr_file_target target = {.maker = "train",
                                    .n_input = o->table.n,
                                    .input = (const char *const *)o->table.item,
                                    .is_forced = o->force};
    const int has_output = tsr_args_given(args, "output") > 0;
    tsr_status s = TSR_OK;
    if (has_output)
        s = tsr_file_check_target(&target, o->output, "q_inv_ang,", NULL, err);
    TSR_THEN(s, read_tables(&e, o, err));
    if (s == TSR_OK) {
        make_rows(&e);
        s = choose_structures(&e, args, err);
    }
    TSR_THEN(s, tsr_form_factor_evaluate(e.n_test, e.test, e.n_row, e.row,
                                         (int)o->threads, log, e.summary, err));
    if (has_output)
        TSR_THEN(s, write_csv(&e, o->output, err));
    if (s == TSR_OK && o->json)
        print_json(&e, out);
    else if (s == TSR_OK)
        print_table(&e, out);
    evaluation_clear(&e);
    return s;
}

static const tsr_field fields[] = {
    TSR_FIELD(STRING, "output", options, output, .letter = 'o',
              .argument = "PATH", .initial = "data",
              .doc = "folder for the tables, or the file where there is only "
                     "one; evaluate: a CSV file of the errors by q"),
    TSR_FIELD(CHOICE, "bodies", options, bodies, .letter = 'b',
              .argument = "MODEL", .initial = "both", .words = bodies_words,
              .doc = "one, two or both: bodies per residue (not for priors)"),
    TSR_FIELD(INT, "hold-out", options, hold_out, .argument = "N",
              .initial = "6", .max = 1e6,
              .doc =
                  "leave every N-th structure out of the training, as a test "
                  "(not for priors); 0: none"),
    TSR_FIELD(BOOL, "evaluate", options, evaluate,
              .doc = "no training: print the errors of tables on structures "
                     "outside their training set (form-factors only)"),
    TSR_FIELD(STRINGS, "table", options, table, .argument = "FILE",
              .doc = "also evaluate this table, for example a published one"),
    TSR_FIELD(BOOL, "json", options, json,
              .doc = "with --evaluate: print one JSON object"),
    TSR_OPTION_FORCE(options),
    TSR_FIELD(INT, "threads", options, threads, .letter = 't', .argument = "N",
              .initial = "0", .max = 64.0,
              .doc = "threads that read structures; 0: one per processor"),
    {0}};

/* The command for the heading of a table, such as "tessera train form-factors
 * --bodies two DIR...", without options that do not change the numbers. Caller
 * frees. */
static char *command_text(const tsr_args *args, const char *bodies)
{
    const options *o = args->options;
    char shown[TSR_SHELL_SIZE];
    tsr_words text;
    tsr_words_begin(&text);
    tsr_words_add(&text, "tessera train %s", args->argument[0]);
    if (bodies[0] != '\0')
        tsr_words_add(&text, " --bodies %s", bodies);
    if (tsr_args_given(args, "hold-out") > 0)
        tsr_words_add(&text, " --hold-out %ld", o->hold_out);
    for (int i = 1; i < args->n; i++)
        tsr_words_add(&text, " %s", tsr_text_shell(args->argument[i], shown));
    return tsr_words_end(&text);
}

static int is_same(const char *a, const char *b)
{
    return strcmp(a, b) == 0;
}

/* Makes the tables of the body models [n]; model 0: the priors. `bodies`: value
 * of --bodies in the heading, "": omitted. All output paths are checked before
 * training begins. */
static tsr_status train_tables(const tsr_args *args, int n,
                               const tsr_body_model *model, const char *bodies,
                               FILE *out, tsr_log *log, tsr_err *err)
{
    const options *o = args->options;
    const char *const *folder = args->argument + 1;
    const int n_folder = args->n - 1, n_thread = (int)o->threads;
    const int components = is_same(args->argument[0], "components");
    const int has_slash = o->output[strlen(o->output) - 1] == '/';
    const tsr_file_target target = {.maker = "train", .is_forced = o->force};
    tsr_pool pool = {0};
    char *path[2];
    struct stat info;
    const int is_folder =
        has_slash || (stat(o->output, &info) == 0 && S_ISDIR(info.st_mode));
    if (n > 1 && !is_folder)
        return tsr_fail(err, TSR_E_USAGE,
                        "--output '%s' is not a folder, and there are two "
                        "tables; make it, or give --bodies",
                        o->output);
    if (o->hold_out == 1)
        return tsr_fail(err, TSR_E_USAGE,
                        "--hold-out 1 leaves none to train on");
    for (int i = 0; i < n; i++) {
        char name[64] = "prior.dat";
        if (model[i] != 0)
            snprintf(name, sizeof name, "%s_%s_body.dat",
                     components ? "components" : "form_factors",
                     model[i] == TSR_BODIES_TWO ? "two" : "one");
        path[i] = tsr_pool_format(&pool, "%s%s%s", o->output,
                                  is_folder && !has_slash ? "/" : "",
                                  is_folder ? name : "");
    }
    char *command = command_text(args, bodies);
    tsr_status s = tsr_pool_check(&pool, err);
    TSR_THEN(s, tsr_allocated(command, err));
    for (int i = 0; i < n; i++)
        TSR_THEN(s, tsr_file_check_target(&target, path[i], "#: tessera ", NULL,
                                          err));
    for (int i = 0; i < n && s == TSR_OK; i++) {
        const tsr_form_factor_training training = {
            model[i],         components ? TSR_N_COMP : 1,
            (int)o->hold_out, n_thread,
            command,          path[i]};
        s = model[i] == 0
                ? tsr_train_priors(n_folder, folder, n_thread, command, path[i],
                                   log, err)
                : tsr_train_form_factors(n_folder, folder, &training, log, err);
        if (s == TSR_OK)
            fprintf(out, "%s\n", path[i]);
    }
    free(command);
    tsr_pool_clear(&pool);
    return s;
}

static tsr_status run_train(const tsr_args *args, FILE *out, tsr_log *log,
                            tsr_err *err)
{
    static const tsr_body_model both[] = {TSR_BODIES_TWO, TSR_BODIES_ONE};
    static const tsr_body_model priors[] = {(tsr_body_model)0};
    const options *o = args->options;
    if (o->output[0] == '\0')
        return tsr_fail(err, TSR_E_USAGE, "--output is empty");
    int form_factors = is_same(args->argument[0], "form-factors");
    if (!o->evaluate && (o->table.n > 0 || o->json))
        return tsr_fail(err, TSR_E_USAGE,
                        "--table and --json are for --evaluate");
    if (form_factors && o->evaluate)
        return evaluate_tables(args, out, log, err);
    if (o->evaluate)
        return tsr_fail(err, TSR_E_USAGE, "--evaluate is for form-factors");
    if (form_factors || is_same(args->argument[0], "components"))
        /* the default is omitted from the heading */
        return o->bodies == BODIES_BOTH
                   ? train_tables(args, 2, both, "", out, log, err)
                   : train_tables(args, 1, &both[o->bodies == BODIES_ONE],
                                  bodies_words[o->bodies], out, log, err);
    if (!is_same(args->argument[0], "priors"))
        return tsr_fail(err, TSR_E_USAGE,
                        "'%s': expected form-factors, components or priors",
                        args->argument[0]);
    if (tsr_args_given(args, "hold-out") > 0)
        return tsr_fail(err, TSR_E_USAGE,
                        "--hold-out is for form-factors; priors are of all");
    if (tsr_args_given(args, "bodies") > 0)
        return tsr_fail(err, TSR_E_USAGE,
                        "--bodies is for form-factors; priors are for both");
    return train_tables(args, 1, priors, "", out, log, err);
}

static const tsr_command command = {
    .name = "train",
    .doc = TSR_TRAIN_DOC,
    .arguments = "form-factors|components|priors DIR...",
    .options = fields,
    .size = sizeof(options),
    .about = "Reads every *.pdb, *.ent and *.cif (or .gz of these) "
             "in the folders, sorted by name, and writes the tables "
             "that docs/forward-model.md describes: form_factors_two_body.dat "
             "and form_factors_one_body.dat, "
             "components_two_body.dat and components_one_body.dat "
             "(solute, displaced solvent and hydration apart), or "
             "prior.dat. The "
             "number of threads does not change them."
             "\n\n"
             "Every sixth structure, in the order of the names, is "
             "held out of the training of form factors; the "
             "tables' headings list both. The same structures decide how "
             "many components the prior's mixtures have, which are "
             "then fitted to all. With --evaluate the "
             "shipped tables, and those of --table, are compared "
             "with all atoms on those structures in the folders "
             "that no table's heading lists as trained on.",
    .run = run_train};

int main(int argc, char **argv)
{
    return tsr_main_tool(&command, argc, (const char *const *)argv);
}
