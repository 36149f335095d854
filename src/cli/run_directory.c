#include "cli/run_directory.h"

#include "io/file.h"
#include "io/yaml.h"

#include <errno.h>
#include <fcntl.h>
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

int tsr_run_directory_is_used(const char *directory)
{
    static const char *const names[] = {"config.yaml", "trace.h5",
                                        "checkpoint.h5"};
    int used = 0;
    for (size_t k = 0; k < sizeof names / sizeof *names; k++) {
        char *path = tsr_run_directory_file(directory, names[k]);
        used |= path != NULL && access(path, F_OK) == 0;
        free(path);
    }
    return used;
}

static tsr_status is_taken(const char *directory, tsr_err *err)
{
    return tsr_fail(err, TSR_E_CONFIG,
                    "output.directory: '%s' holds a run already; choose "
                    "another with --output DIR, or take that one away",
                    directory);
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

tsr_status tsr_run_directory_check(const char *directory, tsr_err *err)
{
    struct stat info;
    if (tsr_run_directory_is_used(directory))
        return is_taken(directory, err);
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
    tsr_status status = check_writable(nearest, err);
    free(path);
    return status;
}

tsr_status tsr_run_directory_make(const char *directory, tsr_err *err)
{
    char *path = strdup(directory);
    char *config = tsr_run_directory_file(directory, "config.yaml");
    tsr_status status = TSR_OK;
    if (path == NULL || config == NULL)
        status = tsr_fail(err, TSR_E_NOMEM, "out of memory");
    else if (tsr_run_directory_is_used(directory))
        status = is_taken(directory, err);
    for (size_t i = 1; status == TSR_OK && i <= strlen(directory); i++) {
        if (directory[i] != '/' && directory[i] != '\0')
            continue;
        path[i] = '\0';
        if (mkdir(path, 0777) != 0 && errno != EEXIST)
            status = tsr_fail(err, TSR_E_IO, "cannot make the folder '%s': %s",
                              path, strerror(errno));
        path[i] = directory[i];
    }
    if (status == TSR_OK)
        status = check_writable(directory, err);
    if (status == TSR_OK) {
        int fd = open(config, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
        if (fd >= 0)
            close(fd);
        else if (errno == EEXIST) /* another run was faster */
            status = is_taken(directory, err);
        else
            status = tsr_fail(err, TSR_E_IO, "cannot write '%s': %s", config,
                              strerror(errno));
    }
    free(path);
    free(config);
    return status;
}

void tsr_run_directory_undo(const char *directory)
{
    static const char *const names[] = {"model.pdb", "run.log", "trace.h5",
                                        "config.yaml"};
    for (size_t k = 0; k < sizeof names / sizeof *names; k++) {
        char *path = tsr_run_directory_file(directory, names[k]);
        if (path != NULL)
            unlink(path);
        free(path);
    }
    rmdir(directory); /* stays where it holds something else */
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

tsr_status tsr_run_directory_fill(const char *directory,
                                  const tsr_config *config,
                                  const tsr_setup *setup, char **text,
                                  tsr_err *err)
{
    char *path = tsr_run_directory_file(directory, "config.yaml");
    char *model = tsr_run_directory_file(directory, "model.pdb");
    tsr_structure *structure =
        tsr_topology_structure(setup->topology, setup->first);
    tsr_status status = tsr_config_text(config, text, err);
    if (status == TSR_OK &&
        (path == NULL || model == NULL || structure == NULL))
        status = tsr_fail(err, TSR_E_NOMEM, "out of memory");
    if (status == TSR_OK)
        status = tsr_file_replace(path, *text, strlen(*text), err);
    if (status == TSR_OK)
        status = tsr_structure_write_pdb(
            structure, model,
            "tessera: the start; SC is the centre of a side chain", err);
    tsr_structure_free(structure);
    free(path);
    free(model);
    return status;
}
