#include "cli/run_inputs.h"

#include "cli/run_directory.h"
#include "io/file.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

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
    tsr_start_config *start = c->structure.starts.item;
    size_t room = (size_t)c->data.n + (size_t)c->structure.starts.n + 2;
    *in = (inputs){0, calloc(room, sizeof *in->place),
                   calloc(room, sizeof(*in->copy))};
    int ok = in->place != NULL && in->copy != NULL &&
             add(in, &c->structure.file) && add(in, &c->structure.form_factors);
    for (int k = 0; k < c->structure.starts.n && ok; k++)
        ok = add(in, &start[k].file);
    for (int d = 0; d < c->data.n && ok; d++)
        ok = tsr_config_data_file(c, d) == NULL ||
             add(in, tsr_config_data_file(c, d));
    if (ok)
        return TSR_OK;
    inputs_clear(in);
    return tsr_fail(err, TSR_E_NOMEM, "out of memory");
}

static const char folder_name[] = "./input/";

/* Where the copies are until all are there; caller frees. */
static char *waiting_name(const char *directory)
{
    char name[48];
    snprintf(name, sizeof name, "input.%ld.tmp", (long)getpid());
    return tsr_run_directory_file(directory, name);
}

static tsr_status copy_file(const char *from, const char *folder,
                            const char *name, tsr_err *err)
{
    char *data = NULL;
    char *path = tsr_run_directory_file(folder, name + sizeof folder_name - 1);
    size_t size = 0;
    int is_taken;
    tsr_status status = path == NULL
                            ? tsr_fail(err, TSR_E_NOMEM, "out of memory")
                            : tsr_file_read(from, &data, &size, err);
    if (status == TSR_OK)
        status = tsr_file_create(path, data, size, &is_taken, err);
    free(data);
    free(path);
    return status;
}

static tsr_status copy_all(const inputs *in, const char *folder, tsr_err *err)
{
    tsr_status status = TSR_OK;
    if (mkdir(folder, 0777) != 0)
        return tsr_fail(err, TSR_E_IO, "cannot make the folder '%s': %s",
                        folder, strerror(errno));
    for (int i = 0; i < in->n && status == TSR_OK; i++)
        status = copy_file(*in->place[i], folder, in->copy[i], err);
    if (status != TSR_OK)
        tsr_run_directory_remove(folder);
    return status;
}

tsr_status tsr_run_inputs_copy(tsr_config *config, const char *directory,
                               char **waiting, tsr_err *err)
{
    inputs in;
    *waiting = NULL;
    tsr_status status = list_inputs(config, &in, err);
    if (status != TSR_OK)
        return status;
    if (in.n > 0) {
        *waiting = waiting_name(directory);
        status = *waiting == NULL ? tsr_fail(err, TSR_E_NOMEM, "out of memory")
                                  : copy_all(&in, *waiting, err);
    }
    if (status != TSR_OK) {
        free(*waiting);
        *waiting = NULL;
    }
    inputs_clear(&in);
    return status;
}

tsr_status tsr_run_inputs_place(const char *directory, const char *waiting,
                                tsr_err *err)
{
    char *path = tsr_run_directory_file(directory, "input");
    tsr_status status = TSR_OK;
    if (path == NULL)
        return tsr_fail(err, TSR_E_NOMEM, "out of memory");
    if (rename(waiting, path) != 0)
        status = tsr_fail(err, TSR_E_IO, "cannot make the folder '%s': %s",
                          path, strerror(errno));
    else
        (void)tsr_file_sync_directory(path);
    free(path);
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
