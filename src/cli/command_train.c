/* tessera train: remakes the tables in data/ (DESIGN 3, 5, 7). Form factors,
 * which have one component, and components, which have three, are one job; with
 * both body models it makes two tables. */
#include "cli/command.h"
#include "cli/train_evaluate.h"
#include "io/file.h"
#include "scattering/form_factor.h"
#include "train/train.h"

#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

static const tsr_option options[] = {
    {.name = "output",
     .letter = 'o',
     .argument = "PATH",
     .initial = "data",
     .doc = "folder for the tables, or the file where there is only one; "
            "evaluate: a CSV file of the errors by q"},
    {.name = "bodies",
     .letter = 'b',
     .argument = "MODEL",
     .initial = "both",
     .doc = "one, two or both: bodies a residue (not for priors)"},
    {.name = "hold-out",
     .argument = "N",
     .initial = "6",
     .doc = "keep every N-th structure from the training, to test on "
            "(not for priors); 0: none"},
    {.name = "evaluate",
     .doc = "train nothing: the errors of tables on structures that they were "
            "not trained on (form-factors only)"},
    {.name = "table",
     .argument = "FILE",
     .repeats = 1,
     .doc = "evaluate this table too, also a published one"},
    {.name = "json", .doc = "evaluate: one JSON object"},
    TSR_OPTION_FORCE,
    {.name = "threads",
     .letter = 't',
     .argument = "N",
     .initial = "0",
     .doc = "threads that read structures; 0: one a processor"},
    {0}};

/* "tessera train form-factors --bodies two DIR...", for the heading: what
 * decides the numbers, not where they go. Caller frees. */
static char *command_text(const tsr_args *args, const char *bodies)
{
    const char *const *word;
    int n = tsr_args_arguments(args, &word);
    char *text = NULL;
    size_t size;
    FILE *out = open_memstream(&text, &size);
    if (out == NULL)
        return NULL;
    fprintf(out, "tessera train %s", word[0]);
    if (bodies[0] != '\0')
        fprintf(out, " --bodies %s", bodies);
    if (tsr_args_count(args, "hold-out") > 0)
        fprintf(out, " --hold-out %s", tsr_args_value(args, "hold-out"));
    for (int i = 1; i < n; i++)
        fprintf(out, " %s", word[i]);
    if (fclose(out) == 0)
        return text;
    free(text);
    return NULL;
}

/* The file to write: `output` itself, or `name` in it where it is a folder.
 * Caller frees; NULL when out of memory. */
static char *output_path(const char *output, const char *name)
{
    struct stat info;
    size_t n = strlen(output), size = n + strlen(name) + 2;
    char *path = malloc(size);
    int is_folder = (n > 0 && output[n - 1] == '/') ||
                    (stat(output, &info) == 0 && S_ISDIR(info.st_mode));
    if (path == NULL)
        return NULL;
    if (is_folder)
        snprintf(path, size, "%s%s%s", output, output[n - 1] == '/' ? "" : "/",
                 name);
    else
        snprintf(path, size, "%s", output);
    return path;
}

static int is(const char *a, const char *b)
{
    return strcmp(a, b) == 0;
}

/* The path of a table; model 0: the priors. Caller frees; NULL when out of
 * memory. */
static char *table_path(const tsr_args *args, tsr_body_model model)
{
    const char *const *word;
    tsr_args_arguments(args, &word);
    char name[64] = "prior.dat";
    if (model != 0)
        snprintf(name, sizeof name, "%s_%s_body.dat",
                 is(word[0], "components") ? "components" : "form_factors",
                 model == TSR_BODIES_TWO ? "two" : "one");
    return output_path(tsr_args_value(args, "output"), name);
}

static tsr_status check_table(const tsr_args *args, tsr_body_model model,
                              tsr_err *err)
{
    const tsr_file_target target = {.maker = "train",
                                    .begins = "#: tessera ",
                                    .holds = "",
                                    .is_forced =
                                        tsr_args_count(args, "force") > 0};
    char *path = table_path(args, model);
    tsr_status s = path == NULL
                       ? tsr_fail(err, TSR_E_NOMEM, "no memory for a path")
                       : tsr_file_check_target(&target, path, err);
    free(path);
    return s;
}

/* model 0: the priors. */
static tsr_status train_one(const tsr_args *args, tsr_body_model model,
                            FILE *out, tsr_log *log, tsr_err *err)
{
    const char *const *word;
    int n = tsr_args_arguments(args, &word);
    int components = is(word[0], "components");
    /* Both are the default, which leaves the command as it was given. */
    const char *bodies = tsr_args_value(args, "bodies");
    if (model == 0 || strcmp(bodies, "both") == 0)
        bodies = "";
    long n_thread = 0, hold_out = 0;
    tsr_status s = tsr_args_long(args, "threads", 0.0, 64.0, &n_thread, err);
    if (s == TSR_OK)
        s = tsr_args_long(args, "hold-out", 0.0, 1e6, &hold_out, err);
    if (s == TSR_OK && hold_out == 1)
        s = tsr_fail(err, TSR_E_USAGE, "--hold-out 1 leaves none to train on");
    if (s != TSR_OK)
        return s;
    char *path = table_path(args, model);
    char *command = command_text(args, bodies);
    if (path == NULL || command == NULL)
        s = tsr_fail(err, TSR_E_NOMEM, "no memory for the command's words");
    else if (model == 0)
        s = tsr_train_priors(n - 1, word + 1, (int)n_thread, command, path, log,
                             err);
    else
        s = tsr_train_form_factors(
            n - 1, word + 1,
            &(tsr_form_factor_order){model, components ? TSR_N_COMP : 1,
                                     (int)hold_out, (int)n_thread, command,
                                     path},
            log, err);
    if (s == TSR_OK)
        fprintf(out, "%s\n", path);
    free(path);
    free(command);
    return s;
}

static tsr_status train_bodies(const tsr_args *args, FILE *out, tsr_log *log,
                               tsr_err *err)
{
    const char *bodies = tsr_args_value(args, "bodies");
    const char *output = tsr_args_value(args, "output");
    int both = strcmp(bodies, "both") == 0;
    int two = both || strcmp(bodies, "two") == 0;
    int one = both || strcmp(bodies, "one") == 0;
    if (!one && !two)
        return tsr_fail(err, TSR_E_USAGE,
                        "--bodies '%s': expected one, two or both", bodies);
    if (both) {
        /* Two tables into one file: the second would replace the first. */
        char *path = output_path(output, "");
        int is_file = path != NULL && strcmp(path, output) == 0 &&
                      path[strlen(path) - 1] != '/';
        free(path);
        if (is_file)
            return tsr_fail(err, TSR_E_USAGE,
                            "--output '%s' is not a folder, and there are two "
                            "tables; make it, or give --bodies",
                            output);
    }
    tsr_status s = two ? check_table(args, TSR_BODIES_TWO, err) : TSR_OK;
    if (s == TSR_OK && one)
        s = check_table(args, TSR_BODIES_ONE, err);
    if (s == TSR_OK && two)
        s = train_one(args, TSR_BODIES_TWO, out, log, err);
    if (s == TSR_OK && one)
        s = train_one(args, TSR_BODIES_ONE, out, log, err);
    return s;
}

static tsr_status train(const tsr_args *args, FILE *out, tsr_log *log,
                        tsr_err *err)
{
    const char *const *word;
    tsr_args_arguments(args, &word);
    if (tsr_args_value(args, "output")[0] == '\0')
        return tsr_fail(err, TSR_E_USAGE, "--output is empty");
    int evaluate = tsr_args_count(args, "evaluate") > 0;
    int form_factors = is(word[0], "form-factors");
    if (!evaluate &&
        (tsr_args_count(args, "table") > 0 || tsr_args_count(args, "json") > 0))
        return tsr_fail(err, TSR_E_USAGE,
                        "--table and --json are for --evaluate");
    if (form_factors && evaluate)
        return tsr_train_evaluate(args, out, log, err);
    if (evaluate)
        return tsr_fail(err, TSR_E_USAGE, "--evaluate is for form-factors");
    if (form_factors || is(word[0], "components"))
        return train_bodies(args, out, log, err);
    if (!is(word[0], "priors"))
        return tsr_fail(err, TSR_E_USAGE,
                        "'%s': expected form-factors, components or priors",
                        word[0]);
    if (tsr_args_count(args, "hold-out") > 0)
        return tsr_fail(err, TSR_E_USAGE,
                        "--hold-out is for form-factors; priors are of all");
    if (tsr_args_count(args, "bodies") > 0)
        return tsr_fail(err, TSR_E_USAGE,
                        "--bodies is for form-factors; priors are for both");
    tsr_status s = check_table(args, (tsr_body_model)0, err);
    return s == TSR_OK ? train_one(args, (tsr_body_model)0, out, log, err) : s;
}

const tsr_command tsr_command_train = {
    .name = "train",
    .doc = "make the tables of form factors and priors from structures",
    .usage = {.arguments = "form-factors|components|priors DIR...",
              .min_arguments = 2,
              .max_arguments = -1,
              .options = options,
              .about = "Reads every *.pdb, *.ent and *.cif (or .gz of these) "
                       "in the folders, sorted by name, and writes the tables "
                       "that DESIGN.md describes: form_factors_two_body.dat "
                       "and form_factors_one_body.dat, "
                       "components_two_body.dat and components_one_body.dat "
                       "(solute, displaced solvent and hydration apart), or "
                       "prior.dat. The "
                       "number of threads does not change them."
                       "\n\n"
                       "Every sixth structure, in the order of the names, is "
                       "held out of the training of form factors; the "
                       "tables' headings list both. The same ones choose how "
                       "many components the prior's mixtures have, which are "
                       "then fitted to all. With --evaluate the "
                       "shipped tables, and those of --table, are compared "
                       "with all atoms on those structures in the folders "
                       "that no table's heading lists as trained on."},
    .run = train};
