/* cmocka, and checks of a call's status and of numbers that name what failed.
 */
#ifndef TESTS_CHECK_H
#define TESTS_CHECK_H

#include "core/status.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#define assert_near(a, b, tolerance)                                      \
    do {                                                                  \
        double got_ = (a), want_ = (b), within_ = (tolerance);            \
        if (!(got_ - want_ <= within_ && want_ - got_ <= within_))        \
            fail_msg("%s is %.10g, not %.10g within %g", #a, got_, want_, \
                     within_);                                            \
    } while (0)

#define assert_has(text, part)                               \
    do {                                                     \
        if (strstr((text), (part)) == NULL)                  \
            fail_msg("'%s' is not in '%s'", (part), (text)); \
    } while (0)

/* OK: the call succeeds. FAILS: it returns the status, with `part` in its
 * message. Both read the `tsr_err err` that the caller passes to the call. */
#define OK(call)                         \
    do {                                 \
        if ((call) != TSR_OK)            \
            fail_msg("%s", err.message); \
    } while (0)

#define FAILS(call, status, part)         \
    do {                                  \
        assert_int_equal((call), status); \
        assert_has(err.message, part);    \
    } while (0)

#define COUNT_OF(array) (sizeof(array) / sizeof((array)[0]))

#endif
