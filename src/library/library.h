/* The parts that the files of the public library (tessera.h) share. Each public
 * function checks its arguments, calls the layers below and returns a status of
 * tessera.h, which has the numbers of tsr_status. */
#ifndef TSR_LIBRARY_LIBRARY_H
#define TSR_LIBRARY_LIBRARY_H

#include "core/status.h"
#include "posterior/profile_partials.h"

struct tessera_profile {
    tsr_profile_structure structure;
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

/* Refuses numbers that are not finite: value [n] in, `name` of the array for
 * the message. Errors: TSR_E_NUMERIC. */
tsr_status tsr_library_finite(const char *name, long n, const double *value,
                              tsr_err *err);

#endif
