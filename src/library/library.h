/* The parts that the files of the public library (tessera.h) share. Each public
 * function checks its arguments, calls the layers below and returns a status of
 * tessera.h, which has the numbers of tsr_status. Handles of curves,
 * structures, draws and frames are pointers to objects of the layers below,
 * cast. */
#ifndef TSR_LIBRARY_LIBRARY_H
#define TSR_LIBRARY_LIBRARY_H

#include "core/status.h"
#include "posterior/profile_partials.h"

#include <stdlib.h>
#include <string.h>
#include <tessera.h>

struct tessera_profile {
    tsr_profile_structure structure;
    double q_max; /* 1/Angstrom; the grid extends farther, less accurately */
};

/* The error of the calling thread, which tessera_message shows. The first call
 * in a process prepares what threads share: the table of the configuration's
 * fields, and GSL's error handler, which is switched off. */
tsr_err *tsr_library_error(void);

/* Returns TSR_E_USAGE from a public function unless `condition` holds; `err` is
 * the function's error. */
#define TSR_REQUIRE(condition)                                        \
    do {                                                              \
        if (!(condition))                                             \
            return (int)tsr_fail(err, TSR_E_USAGE, "%s: expected %s", \
                                 __func__, #condition);               \
    } while (0)

/* TSR_TRY for a public function, which returns an int. */
#define TSR_CALL(call)                    \
    do {                                  \
        const tsr_status called = (call); \
        if (called != TSR_OK)             \
            return (int)called;           \
    } while (0)

/* Begins a public function: declares `err`, and checks arguments. */
#define TSR_PUBLIC(condition)           \
    tsr_err *err = tsr_library_error(); \
    TSR_REQUIRE(condition)

/* Begins a public function that makes *out, NULL at first. */
#define TSR_PUBLIC_NEW(out, condition)  \
    tsr_err *err = tsr_library_error(); \
    TSR_REQUIRE((out) != NULL);         \
    *(out) = NULL;                      \
    TSR_REQUIRE(condition)

/* Allocates *out, zeroed. */
#define TSR_MAKE(out)                         \
    do {                                      \
        *(out) = calloc(1, sizeof **(out));   \
        TSR_CALL(tsr_allocated(*(out), err)); \
    } while (0)

/* Ends a function that makes *out: an error frees *out. */
#define TSR_MADE(status, out, release)    \
    do {                                  \
        const tsr_status made = (status); \
        if (made != TSR_OK) {             \
            release(*(out));              \
            *(out) = NULL;                \
        }                                 \
        return (int)made;                 \
    } while (0)

/* Refuses numbers that are not finite: value [n] in, `name` of the array for
 * the message. Errors: TSR_E_NUMERIC. */
tsr_status tsr_library_finite(const char *name, long n, const double *value,
                              tsr_err *err);

#endif
