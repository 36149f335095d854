#include "run/setup.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

tsr_status tsr_data_file(const char *name, char **path, tsr_err *err)
{
    const char *own = getenv("TESSERA_DATA");
    const char *folder[3] = {own, TSR_DATA_SOURCE "/data",
                             TSR_DATA_PREFIX "/share/tessera/data"};
    for (int k = 0; k < 3; k++) {
        if (folder[k] == NULL)
            continue;
        size_t n = strlen(folder[k]) + strlen(name) + 2;
        *path = calloc(n, 1);
        if (*path == NULL)
            return tsr_fail(err, TSR_E_NOMEM, "out of memory");
        snprintf(*path, n, "%s/%s", folder[k], name);
        if (access(*path, R_OK) == 0)
            return TSR_OK;
        free(*path);
        *path = NULL;
    }
    return tsr_fail(err, TSR_E_NOINPUT,
                    "the shipped table '%s' is neither in '%s' nor in '%s'; "
                    "set TESSERA_DATA to the folder that holds it",
                    name, folder[1], folder[2]);
}
