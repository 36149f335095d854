/* A run's folder. config.yaml is made first and only where it is not there, so
 * that of two runs one gets the folder; copies of the inputs make the folder
 * enough to resume on another machine. */
#include "cli/run_directory.h"

#include "io/file.h"
#include "io/yaml.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

char *tsr_run_directory_file(const char *directory, const char *name)
{
    size_t n = strlen(directory) + strlen(name) + 2;
    char *path = calloc(n, 1);
    if (path != NULL)
        snprintf(path, n, "%s/%s", directory, name);
    return path;
}

/* What a run writes, the lock first. The checkpoint comes later, but makes the
 * folder a run's as well. */
static const char *const file_names[] = {
    "config.yaml", "trace.h5", "checkpoint.h5", "run.lock",
    "model.pdb",   "run.log",  "input"};
enum { N_FILE = sizeof file_names / sizeof *file_names, N_OF_RUNS_ALONE = 4 };

/* Other people's files have these names, too: model.pdb may be the input. */
static tsr_status check_unused(const char *directory, tsr_err *err)
{
    struct stat info; /* a link that leads nowhere is there, too */
    for (int k = 0; k < N_FILE; k++) {
        char *path = tsr_run_directory_file(directory, file_names[k]);
        if (path == NULL)
            return tsr_fail(err, TSR_E_NOMEM, "out of memory");
        int is_there = lstat(path, &info) == 0;
        free(path);
        if (is_there && k < N_OF_RUNS_ALONE)
            return tsr_fail(err, TSR_E_CONFIG,
                            "output.directory: '%s' holds a run already (%s); "
                            "choose another with --output DIR, or take that "
                            "one away",
                            directory, file_names[k]);
        if (is_there)
            return tsr_fail(err, TSR_E_CONFIG,
                            "output.directory: '%s' holds a file '%s', which "
                            "the run would replace; choose another folder with "
                            "--output DIR, or rename that file",
                            directory, file_names[k]);
    }
    return TSR_OK;
}

static tsr_status check_writable(const char *directory, tsr_err *err)
{
    struct stat info;
    if (stat(directory, &info) != 0)
        return tsr_fail(err, TSR_E_IO, "cannot use '%s': %s", directory,
                        strerror(errno));
    if (!S_ISDIR(info.st_mode))
        return tsr_fail(err, TSR_E_IO,
                        "'%s' is not a folder; choose another with --output "
                        "DIR",
                        directory);
    if (access(directory, W_OK | X_OK) != 0)
        return tsr_fail(err, TSR_E_IO,
                        "cannot write into '%s': %s; choose another with "
                        "--output DIR",
                        directory, strerror(errno));
    return TSR_OK;
}

tsr_status tsr_run_directory_expect(const char *directory, tsr_err *err)
{
    struct stat info;
    if (stat(directory, &info) != 0)
        return tsr_fail(err, TSR_E_NOINPUT, "there is no folder '%s'",
                        directory);
    char *path = tsr_run_directory_file(directory, "config.yaml");
    if (path == NULL)
        return tsr_fail(err, TSR_E_NOMEM, "out of memory");
    int is_run = S_ISDIR(info.st_mode) && stat(path, &info) == 0;
    free(path);
    if (!is_run)
        return tsr_fail(err, TSR_E_NOINPUT,
                        "'%s' is not the folder of a run (no config.yaml)",
                        directory);
    return TSR_OK;
}

tsr_status tsr_run_directory_check(const char *directory, tsr_err *err)
{
    struct stat info;
    tsr_status status = check_unused(directory, err);
    if (status != TSR_OK)
        return status;
    char *path = strdup(directory);
    if (path == NULL)
        return tsr_fail(err, TSR_E_NOMEM, "out of memory");
    char *slash = NULL;
    while (stat(path, &info) != 0 && errno == ENOENT &&
           (slash = strrchr(path, '/')) != NULL && slash != path)
        *slash = '\0';
    const char *nearest = slash == path ? "/" : path;
    if (slash == NULL && stat(path, &info) != 0 && errno == ENOENT)
        nearest = "."; /* a name in the current folder */
    status = check_writable(nearest, err);
    free(path);
    return status;
}

/* Folders of the path from its end, n of them; they stay where they hold
 * something else. */
static void remove_folders(const char *directory, int n)
{
    char *path = strdup(directory);
    while (path != NULL && n > 0) {
        char *slash = strrchr(path, '/');
        if (slash == NULL || slash[1] != '\0') /* "a/" and "a//b" */
            n -= rmdir(path) == 0 ? 1 : n;
        if (slash == NULL || slash == path)
            break;
        *slash = '\0';
    }
    free(path);
}

static tsr_status make_folders(const char *directory, int *n_folder,
                               tsr_err *err)
{
    char *path = strdup(directory);
    tsr_status status =
        path == NULL ? tsr_fail(err, TSR_E_NOMEM, "out of memory") : TSR_OK;
    for (size_t i = 1; status == TSR_OK && i <= strlen(directory); i++) {
        if (directory[i] != '/' && directory[i] != '\0')
            continue;
        path[i] = '\0';
        if (mkdir(path, 0777) == 0)
            ++*n_folder;
        else if (errno != EEXIST)
            status = tsr_fail(err, TSR_E_IO, "cannot make the folder '%s': %s",
                              path, strerror(errno));
        path[i] = directory[i];
    }
    free(path);
    return status;
}

tsr_status tsr_run_directory_make(const char *directory, const char *text,
                                  int *n_folder, tsr_err *err)
{
    int is_taken = 0;
    *n_folder = 0;
    char *config = tsr_run_directory_file(directory, "config.yaml");
    tsr_status status = config == NULL
                            ? tsr_fail(err, TSR_E_NOMEM, "out of memory")
                            : check_unused(directory, err);
    if (status == TSR_OK)
        status = make_folders(directory, n_folder, err);
    if (status == TSR_OK)
        status = check_writable(directory, err);
    if (status == TSR_OK)
        status = tsr_file_create(config, text, strlen(text), &is_taken, err);
    if (is_taken) { /* another run was faster */
        tsr_status taken = check_unused(directory, err);
        status = taken != TSR_OK ? taken : status;
    }
    if (status != TSR_OK)
        remove_folders(directory, *n_folder);
    free(config);
    return status;
}

/* None of the names was there when config.yaml was made, and the one who made
 * that one is us. */
void tsr_run_directory_undo(const char *directory, int n_folder)
{
    static const char *const made[] = {"model.pdb", "run.log",
                                       "trace.h5",  "checkpoint.h5",
                                       "run.lock",  "config.yaml"};
    for (size_t k = 0; k < sizeof made / sizeof *made; k++) {
        char *path = tsr_run_directory_file(directory, made[k]);
        if (path != NULL)
            unlink(path);
        free(path);
    }
    remove_folders(directory, n_folder);
}

tsr_status tsr_config_text(const tsr_config *config, char **text, tsr_err *err)
{
    size_t size = 0;
    *text = NULL;
    FILE *out = open_memstream(text, &size);
    if (out == NULL)
        return tsr_fail(err, TSR_E_NOMEM, "out of memory");
    fprintf(out, "# tessera %s: the configuration as resolved\n", TSR_VERSION);
    tsr_status status = tsr_yaml_write(out, tsr_config_fields(), config, err);
    if (fclose(out) != 0 && status == TSR_OK)
        status = tsr_fail(err, TSR_E_NOMEM, "out of memory");
    if (status != TSR_OK) {
        free(*text);
        *text = NULL;
    }
    return status;
}

tsr_status tsr_run_directory_fill(const char *directory, const tsr_setup *setup,
                                  tsr_err *err)
{
    char *model = tsr_run_directory_file(directory, "model.pdb");
    tsr_status status =
        model == NULL
            ? tsr_fail(err, TSR_E_NOMEM, "out of memory")
            : tsr_structure_write_pdb(
                  setup->model, model,
                  "tessera: the start; SC is the centre of a side chain", err);
    free(model);
    return status;
}

/* ---- copies of the inputs ---- */

/* The config's places of file names, and the names of the copies. */
typedef struct {
    int n;
    char ***place; /* [n] in a config */
    char **copy;   /* [n] "./input/NAME", beside config.yaml */
} inputs;

static void inputs_clear(inputs *in)
{
    for (int i = 0; in->copy != NULL && i < in->n; i++)
        free(in->copy[i]);
    free(in->copy);
    free(in->place);
}

/* The last part of a path, without .gz. */
static char *copy_name(const char *path, int number)
{
    const char *slash = strrchr(path, '/');
    const char *base = slash == NULL ? path : slash + 1;
    size_t length = strlen(base), room = length + 32;
    if (length > 3 && strcmp(base + length - 3, ".gz") == 0)
        length -= 3;
    char *name = calloc(room, 1);
    if (name != NULL && number > 0)
        snprintf(name, room, "./input/%d-%.*s", number, (int)length, base);
    else if (name != NULL)
        snprintf(name, room, "./input/%.*s", (int)length, base);
    return name;
}

static int is_used(const inputs *in, const char *name)
{
    for (int i = 0; i < in->n; i++)
        if (strcmp(in->copy[i], name) == 0)
            return 1;
    return 0;
}

/* 0: out of memory. */
static int add(inputs *in, char **place)
{
    if (*place == NULL)
        return 1;
    char *name = copy_name(*place, 0);
    for (int number = 1; name != NULL && is_used(in, name); number++) {
        free(name);
        name = copy_name(*place, number);
    }
    in->place[in->n] = place;
    in->copy[in->n] = name;
    in->n += name != NULL;
    return name != NULL;
}

static tsr_status list_inputs(tsr_config *config, inputs *in, tsr_err *err)
{
    tsr_config *c = config;
    tsr_data_config *data = c->data.item;
    tsr_start_config *start = c->structure.starts.item;
    size_t room = (size_t)c->data.n + (size_t)c->structure.starts.n + 2;
    *in = (inputs){0, calloc(room, sizeof *in->place),
                   calloc(room, sizeof(*in->copy))};
    int ok = in->place != NULL && in->copy != NULL &&
             add(in, &c->structure.file) && add(in, &c->structure.form_factors);
    for (int k = 0; k < c->structure.starts.n && ok; k++)
        ok = add(in, &start[k].file);
    for (int d = 0; d < c->data.n && ok; d++)
        ok = add(in, &data[d].file);
    if (ok)
        return TSR_OK;
    inputs_clear(in);
    return tsr_fail(err, TSR_E_NOMEM, "out of memory");
}

static tsr_status copy_file(const char *from, const char *directory,
                            const char *name, tsr_err *err)
{
    char *data = NULL, *path = tsr_run_directory_file(directory, name + 2);
    size_t size = 0;
    tsr_status status = path == NULL
                            ? tsr_fail(err, TSR_E_NOMEM, "out of memory")
                            : tsr_file_read(from, &data, &size, err);
    if (status == TSR_OK)
        status = tsr_file_replace(path, data, size, err);
    free(data);
    free(path);
    return status;
}

tsr_status tsr_run_inputs_copy(tsr_config *config, const char *directory,
                               tsr_err *err)
{
    inputs in;
    int n_folder = 0;
    tsr_status status = list_inputs(config, &in, err);
    if (status != TSR_OK)
        return status;
    char *folder = tsr_run_directory_file(directory, "input");
    if (folder == NULL)
        status = tsr_fail(err, TSR_E_NOMEM, "out of memory");
    else if (in.n > 0)
        status = make_folders(folder, &n_folder, err);
    free(folder);
    for (int i = 0; i < in.n && status == TSR_OK; i++)
        status = copy_file(*in.place[i], directory, in.copy[i], err);
    inputs_clear(&in);
    return status;
}

static void exchange(inputs *in)
{
    for (int i = 0; i < in->n; i++) {
        char *own = *in->place[i];
        *in->place[i] = in->copy[i];
        in->copy[i] = own;
    }
}

tsr_status tsr_run_inputs_text(tsr_config *config, char **text, tsr_err *err)
{
    inputs in;
    *text = NULL;
    tsr_status status = list_inputs(config, &in, err);
    if (status != TSR_OK)
        return status;
    exchange(&in);
    status = tsr_config_text(config, text, err);
    exchange(&in);
    inputs_clear(&in);
    return status;
}

void tsr_run_inputs_undo(tsr_config *config, const char *directory)
{
    inputs in;
    char *folder = tsr_run_directory_file(directory, "input");
    if (list_inputs(config, &in, NULL) == TSR_OK) {
        for (int i = 0; i < in.n; i++) {
            char *path = tsr_run_directory_file(directory, in.copy[i] + 2);
            if (path != NULL)
                unlink(path);
            free(path);
        }
        inputs_clear(&in);
    }
    if (folder != NULL)
        rmdir(folder);
    free(folder);
}
