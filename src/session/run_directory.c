/* A run's folder. config.yaml is created under the lock and only if it does not
 * exist, so that only one of two simultaneous runs gets the folder. The copies
 * of the inputs are made before config.yaml, so that the folder of every run is
 * sufficient to resume on another machine. */
#include "session/run_directory.h"

#include "core/text.h"
#include "files/file.h"
#include "files/yaml.h"
#include "store/draw_log.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <fnmatch.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

int tsr_run_directory_has(const char *directory, const char *name)
{
    struct stat info;
    return stat(tsr_path_in(directory, name).text, &info) == 0;
}

/* Files that a run may write, as fnmatch patterns, because the number of chains
 * is not known when a folder is checked. */
static const struct {
    const char *pattern;
    int is_specific; /* 0: a common name, which other programs may use */
} run_files[] = {{"config.yaml", 1},
                 {"run.lock", 1},
                 {"trace.h5*", 1}, /* first file of step 5 */
                 {"checkpoint.h5*", 1},
                 {"trajectory-[0-9]*.h5*", 1},
                 {TSR_DRAW_LOG_NAME, 1}, /* last file of step 5 */
                 {"model.pdb", 0},
                 {"run.log", 0},
                 {"input", 0}};
enum {
    N_WRITTEN = sizeof run_files / sizeof *run_files,
    CONFIG = 0,
    LOCK = 1,
    TRACE = 2,
    DRAWS = 5
};

/* Finds the first entry of run_files that exists in the folder. *found out: its
 * index; N_WRITTEN: none exists. name out: of the file. has_lock 1: run.lock is
 * ignored. A dangling symbolic link counts as existing. */
static tsr_status find_written(const char *directory, int has_lock, int *found,
                               char name[256], tsr_err *err)
{
    DIR *list = opendir(directory);
    *found = N_WRITTEN;
    if (list == NULL && (errno == ENOENT || errno == ENOTDIR))
        return TSR_OK;
    if (list == NULL)
        return tsr_fail(err, TSR_E_IO, "cannot read folder '%s': %s", directory,
                        strerror(errno));
    for (const struct dirent *item; (item = readdir(list)) != NULL;)
        for (int k = 0; k < *found; k++) {
            if ((has_lock && k == LOCK) ||
                fnmatch(run_files[k].pattern, item->d_name, 0) != 0)
                continue;
            *found = k;
            snprintf(name, 256, "%s", item->d_name);
        }
    closedir(list);
    return TSR_OK;
}

/* Is run.lock left over from a run that was killed while it copied its inputs?
 * The file then has the id of the dead process, or is empty. A new run may use
 * the folder. */
static int is_stale_lock(const char *directory)
{
    tsr_lock_holder holder;
    struct stat info;
    return lstat(tsr_path_in(directory, "run.lock").text, &info) == 0 &&
           S_ISREG(info.st_mode) &&
           tsr_lock_query(directory, &holder, NULL) == TSR_OK &&
           !holder.is_held && (holder.pid > 0 || info.st_size == 0);
}

/* Refuses a folder with files that a run would write. has_lock 1: run.lock
 * belongs to this process, and is allowed. */
static tsr_status check_unused(const char *directory, int has_lock,
                               tsr_err *err)
{
    int k;
    char name[256];
    TSR_TRY(find_written(directory, has_lock, &k, name, err));
    if (k == LOCK && is_stale_lock(directory))
        TSR_TRY(find_written(directory, 1, &k, name, err));
    if (k == N_WRITTEN)
        return TSR_OK;
    return tsr_fail(
        err, TSR_E_CONFIG,
        run_files[k].is_specific
            ? "output.directory: '%s' already contains a run (%s); %schoose "
              "another folder with --output DIR, or move that run"
            : "output.directory: '%s' contains a file '%s' that the run would "
              "replace; %schoose another folder with --output DIR, or rename "
              "that file",
        directory, name,
        k == CONFIG ? "'tessera resume' continues a stopped run; or " : "");
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

tsr_status tsr_run_directory_require(const char *directory, tsr_err *err)
{
    char word[TSR_SHELL_SIZE];
    struct stat info;
    if (stat(directory, &info) != 0)
        return tsr_fail(err, TSR_E_NOINPUT, "there is no folder '%s'",
                        directory);
    const int is_run = tsr_run_directory_has(directory, "config.yaml");
    const int is_solve = tsr_run_directory_has(directory, "solve.yaml");
    if (!is_run && is_solve)
        return tsr_fail(
            err, TSR_E_NOINPUT,
            "'%s' is the folder of a solve: repeat its command to continue it, "
            "tessera solve MODEL CURVE... --output %s; the runs are in its "
            "subfolders, named after their number of states",
            directory, tsr_text_shell(directory, word));
    if (!is_run)
        return tsr_fail(err, TSR_E_NOINPUT,
                        "'%s' is not the folder of a run (no config.yaml)",
                        directory);
    return TSR_OK;
}

tsr_status tsr_run_directory_check(const char *directory, tsr_err *err)
{
    struct stat info;
    TSR_TRY(check_unused(directory, 0, err));
    char *path = strdup(directory);
    TSR_TRY(tsr_allocated(path, err));
    char *slash = NULL;
    while (stat(path, &info) != 0 && errno == ENOENT &&
           (slash = strrchr(path, '/')) != NULL && slash != path)
        *slash = '\0';
    const char *nearest = slash == path ? "/" : path;
    if (slash == NULL && stat(path, &info) != 0 && errno == ENOENT)
        nearest = "."; /* a relative name in the current folder */
    tsr_status status = check_writable(nearest, err);
    free(path);
    return status;
}

/* Removes the last n folders of a path, unless they contain other files. */
static void remove_folders(const char *directory, int n)
{
    char *path = strdup(directory);
    while (path != NULL && n > 0) {
        char *slash = strrchr(path, '/');
        if (slash == NULL || slash[1] != '\0') /* skips empty components of
                                                  "a/" and "a//b" */
            n -= rmdir(path) == 0 ? 1 : n;
        if (slash == NULL || slash == path)
            break;
        *slash = '\0';
    }
    free(path);
}

tsr_status tsr_run_directory_make_folders(const char *directory, int *n_folder,
                                          tsr_err *err)
{
    char *path = strdup(directory);
    tsr_status status = tsr_allocated(path, err);
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

/* ---- temporary files ---- */

void tsr_run_directory_remove(const char *path)
{
    DIR *list = opendir(path);
    for (const struct dirent *item;
         list != NULL && (item = readdir(list)) != NULL;)
        unlink(tsr_path_in(path, item->d_name).text); /* "." and ".." fail */
    if (list != NULL)
        closedir(list);
    rmdir(path);
}

/* Is the name NAME.PID.tmp, where NAME is a file of a run and PID is this
 * process or one that no longer exists? Temporary files of other commands must
 * stay. */
static int is_stale_temporary(const char *file)
{
    char name[256], *end;
    snprintf(name, sizeof name, "%s", file);
    char *tmp = strrchr(name, '.');
    if (tmp == NULL || strcmp(tmp, ".tmp") != 0)
        return 0;
    *tmp = '\0';
    char *number = strrchr(name, '.');
    if (number == NULL || number[1] < '1' || number[1] > '9')
        return 0;
    *number++ = '\0';
    errno = 0;
    const long pid = strtol(number, &end, 10);
    if (errno != 0 || *end != '\0' || (long)(pid_t)pid != pid ||
        (pid != (long)getpid() && (kill((pid_t)pid, 0) == 0 || errno != ESRCH)))
        return 0;
    for (int k = 0; k < N_WRITTEN; k++)
        if (fnmatch(run_files[k].pattern, name, 0) == 0)
            return 1;
    return 0;
}

static void remove_matching(const char *directory,
                            int (*matches)(const char *file))
{
    DIR *list = opendir(directory);
    if (list == NULL)
        return;
    for (const struct dirent *item; (item = readdir(list)) != NULL;) {
        if (!matches(item->d_name))
            continue;
        const tsr_path path = tsr_path_in(directory, item->d_name);
        if (unlink(path.text) != 0)
            tsr_run_directory_remove(path.text);
    }
    closedir(list);
}

static void remove_stale(const char *directory)
{
    remove_matching(directory, is_stale_temporary);
}

/* The temporary folder with copies of the inputs; the caller frees the path.
 * NULL: no such folder. */
static char *find_staged(const char *directory)
{
    char *path = NULL;
    DIR *list = opendir(directory);
    for (const struct dirent *item;
         list != NULL && path == NULL && (item = readdir(list)) != NULL;)
        if (fnmatch("input.[1-9]*.tmp", item->d_name, 0) == 0)
            path = tsr_text_format("%s/%s", directory, item->d_name);
    if (list != NULL)
        closedir(list);
    return path;
}

/* Refuses symbolic links among the files of step 5, before a file is cut to the
 * draws of the checkpoint. *is_new out: no such file exists. */
static tsr_status check_outputs(const char *directory, int *is_new,
                                tsr_err *err)
{
    tsr_status status = TSR_OK;
    struct stat info;
    DIR *list = opendir(directory);
    *is_new = 1;
    for (const struct dirent *item;
         list != NULL && (item = readdir(list)) != NULL;)
        for (int k = TRACE; k <= DRAWS; k++) {
            if (fnmatch(run_files[k].pattern, item->d_name, 0) != 0 ||
                fnmatch("*.tmp", item->d_name, 0) == 0)
                continue;
            *is_new = 0;
            if (fstatat(dirfd(list), item->d_name, &info,
                        AT_SYMLINK_NOFOLLOW) == 0 &&
                S_ISLNK(info.st_mode))
                status = tsr_fail(err, TSR_E_IO,
                                  "'%s/%s' is a symbolic link, and a run does "
                                  "not write through links; put the file there",
                                  directory, item->d_name);
        }
    if (list != NULL)
        closedir(list);
    return status;
}

tsr_status tsr_run_directory_recover(const char *directory, int *is_new,
                                     tsr_err *err)
{
    struct stat info;
    tsr_status status = TSR_OK;
    if (lstat(tsr_path_in(directory, "input").text, &info) != 0) {
        char *staged = find_staged(directory);
        if (staged != NULL)
            status = tsr_run_inputs_commit(directory, staged, err);
        free(staged);
    }
    remove_stale(directory);
    return status == TSR_OK ? check_outputs(directory, is_new, err) : status;
}

/* ---- creation ---- */

static void remove_file(const char *directory, const char *name)
{
    unlink(tsr_path_in(directory, name).text);
}

tsr_status tsr_run_directory_make(const char *directory, int *n_folder,
                                  tsr_lock **lock, tsr_err *err)
{
    *n_folder = 0;
    *lock = NULL;
    tsr_status status = check_unused(directory, 0, err);
    TSR_THEN(status, tsr_run_directory_make_folders(directory, n_folder, err));
    TSR_THEN(status, check_writable(directory, err));
    const int has_leftovers = is_stale_lock(directory);
    if (status == TSR_OK) {
        status = tsr_lock_acquire(directory, lock, err);
        if (status == TSR_E_CONFIG) /* another run took the lock first */
            tsr_wrap(err, status, "'%s' already contains a run", directory);
        else if (status != TSR_OK && !has_leftovers)
            remove_file(directory, "run.lock");
    }
    TSR_THEN(status, check_unused(directory, 1, err));
    if (status == TSR_OK && has_leftovers)
        remove_stale(directory);
    if (status != TSR_OK) {
        tsr_lock_free(*lock);
        *lock = NULL;
        remove_folders(directory, *n_folder);
    }
    return status;
}

tsr_status tsr_run_directory_write_config(const char *directory,
                                          const char *text, tsr_err *err)
{
    int is_taken = 0;
    return tsr_file_create(tsr_path_in(directory, "config.yaml").text, text,
                           strlen(text), &is_taken, err);
}

static int is_run_file(const char *file)
{
    for (int k = TRACE; k < N_WRITTEN; k++)
        if (fnmatch(run_files[k].pattern, file, 0) == 0)
            return 1;
    return 0;
}

void tsr_run_directory_undo(const char *directory, int has_config, int n_folder)
{
    if (has_config) {
        remove_matching(directory, is_run_file);
        remove_file(directory, "config.yaml");
    }
    remove_file(directory, "run.lock");
    remove_folders(directory, n_folder);
}

tsr_status tsr_config_text(const tsr_config *config, char **text, tsr_err *err)
{
    size_t size = 0;
    *text = NULL;
    FILE *out = open_memstream(text, &size);
    TSR_TRY(tsr_allocated(out, err));
    fprintf(out, "# tessera %s: the configuration with all defaults\n",
            TSR_VERSION);
    tsr_status status = tsr_yaml_write(out, tsr_config_fields(), config, err);
    if (fclose(out) != 0 && status == TSR_OK)
        status = tsr_no_memory(err);
    if (status != TSR_OK) {
        free(*text);
        *text = NULL;
    }
    return status;
}

tsr_status tsr_run_directory_write_model(const char *directory,
                                         const tsr_setup *setup, tsr_err *err)
{
    return tsr_model_atoms_write(
        setup->molecule.model, tsr_path_in(directory, "model.pdb").text,
        "tessera: the starting structure; SC is the centre of a side chain",
        err);
}

/* ---- copies of the inputs ---- */

/* Input files of a config and the names of their copies. */
typedef struct {
    int n;
    char ***path; /* [n] addresses of the paths in the config */
    char **copy;  /* [n] "./input/NAME", relative to config.yaml */
} inputs;

static void inputs_clear(inputs *in)
{
    for (int i = 0; in->copy != NULL && i < in->n; i++)
        free(in->copy[i]);
    free(in->copy);
    free(in->path);
}

/* Name of the copy: the file name without .gz, after "NUMBER-" if number >
 * 0. */
static char *copy_name(const char *path, int number)
{
    const char *slash = strrchr(path, '/');
    const char *base = slash == NULL ? path : slash + 1;
    size_t length = strlen(base), size = length + 32;
    if (length > 3 && strcmp(base + length - 3, ".gz") == 0)
        length -= 3;
    char *name = calloc(size, 1);
    if (name != NULL && number > 0)
        snprintf(name, size, "./input/%d-%.*s", number, (int)length, base);
    else if (name != NULL)
        snprintf(name, size, "./input/%.*s", (int)length, base);
    return name;
}

static int is_used(const inputs *in, const char *name)
{
    for (int i = 0; i < in->n; i++)
        if (strcmp(in->copy[i], name) == 0)
            return 1;
    return 0;
}

/* Adds an input file, and chooses a name for its copy that is not in use. Does
 * nothing for a NULL path. Returns 0 when out of memory. */
static int add_input(inputs *in, char **path)
{
    if (*path == NULL)
        return 1;
    char *name = copy_name(*path, 0);
    for (int number = 1; name != NULL && is_used(in, name); number++) {
        free(name);
        name = copy_name(*path, number);
    }
    in->path[in->n] = path;
    in->copy[in->n] = name;
    in->n += name != NULL;
    return name != NULL;
}

static tsr_status list_inputs(tsr_config *config, inputs *in, tsr_err *err)
{
    char **file;
    size_t capacity = 0;
    while (tsr_config_path(config, (int)capacity) != NULL)
        capacity++;
    *in = (inputs){0, calloc(capacity + 1, sizeof *in->path),
                   calloc(capacity + 1, sizeof(*in->copy))};
    int ok = in->path != NULL && in->copy != NULL;
    for (int k = 0; ok && (file = tsr_config_path(config, k)) != NULL; k++)
        ok = add_input(in, file);
    if (ok)
        return TSR_OK;
    inputs_clear(in);
    return tsr_no_memory(err);
}

/* Length of the folder in a copy's name. */
enum { FOLDER_NAME = sizeof "./input/" - 1 };

/* Path of the temporary folder for the copies; the caller frees it. */
static char *staging_name(const char *directory)
{
    return tsr_text_format("%s/input.%ld.tmp", directory, (long)getpid());
}

static tsr_status copy_file(const char *from, const char *folder,
                            const char *name, tsr_err *err)
{
    char *data = NULL;
    size_t size = 0;
    int is_taken;
    tsr_status status = tsr_file_read(from, &data, &size, err);
    TSR_THEN(status,
             tsr_file_create(tsr_path_in(folder, name + FOLDER_NAME).text, data,
                             size, &is_taken, err));
    free(data);
    return status;
}

static tsr_status copy_all(const inputs *in, const char *folder, tsr_err *err)
{
    tsr_status status = TSR_OK;
    if (mkdir(folder, 0777) != 0)
        return tsr_fail(err, TSR_E_IO, "cannot make the folder '%s': %s",
                        folder, strerror(errno));
    for (int i = 0; i < in->n && status == TSR_OK; i++)
        status = copy_file(*in->path[i], folder, in->copy[i], err);
    if (status != TSR_OK)
        tsr_run_directory_remove(folder);
    return status;
}

tsr_status tsr_run_inputs_copy(tsr_config *config, const char *directory,
                               char **staged, tsr_err *err)
{
    inputs in;
    *staged = NULL;
    tsr_status status = list_inputs(config, &in, err);
    TSR_TRY(status);
    if (in.n > 0) {
        *staged = staging_name(directory);
        status = tsr_allocated(*staged, err);
        TSR_THEN(status, copy_all(&in, *staged, err));
    }
    if (status != TSR_OK) {
        free(*staged);
        *staged = NULL;
    }
    inputs_clear(&in);
    return status;
}

tsr_status tsr_run_inputs_commit(const char *directory, const char *staged,
                                 tsr_err *err)
{
    const tsr_path path = tsr_path_in(directory, "input");
    if (rename(staged, path.text) != 0)
        return tsr_fail(err, TSR_E_IO, "cannot make the folder '%s': %s",
                        path.text, strerror(errno));
    (void)tsr_file_sync_directory(path.text);
    return TSR_OK;
}

static void swap_paths(inputs *in)
{
    for (int i = 0; i < in->n; i++) {
        char *original = *in->path[i];
        *in->path[i] = in->copy[i];
        in->copy[i] = original;
    }
}

tsr_status tsr_run_inputs_text(tsr_config *config, char **text, tsr_err *err)
{
    inputs in;
    *text = NULL;
    TSR_TRY(list_inputs(config, &in, err));
    swap_paths(&in);
    tsr_status status = tsr_config_text(config, text, err);
    swap_paths(&in);
    inputs_clear(&in);
    return status;
}
