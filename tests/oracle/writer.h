/* What the programs share that write files for the Python oracles: an error
 * ends the program with its message and exit status. */
#ifndef TSR_TESTS_WRITER_H
#define TSR_TESTS_WRITER_H

#include "core/status.h"

#include <stdio.h>
#include <stdlib.h>

static inline void must(tsr_status status, const tsr_err *err)
{
    if (status == TSR_OK)
        return;
    fprintf(stderr, "%s\n", err->message);
    exit(tsr_exit_status(status));
}

static inline void *allocate(size_t n, size_t size)
{
    void *p = calloc(n, size);
    if (p == NULL)
        exit(tsr_exit_status(TSR_E_NOMEM));
    return p;
}

/* DIRECTORY/NAME, in a buffer of its own; a file there is removed. */
static inline const char *new_file(const char *directory, const char *name)
{
    static char path[1000];
    snprintf(path, sizeof path, "%s/%s", directory, name);
    remove(path);
    return path;
}

/* The head of a tsr_trace_variable; the other members follow. */
#define VARIABLE(GROUP, NAME, ...)                            \
    {                                                         \
        .group = TSR_TRACE_##GROUP, .name = NAME, __VA_ARGS__ \
    }

#endif
