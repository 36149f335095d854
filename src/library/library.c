/* Version and errors of the public library. */
#include "library/library.h"

#include "posterior/config.h"

#include <gsl/gsl_errno.h>
#include <math.h>
#include <pthread.h>

#define SAME_NUMBER(name, exit_status, text)          \
    _Static_assert(TESSERA_##name == (int)TSR_##name, \
                   "the numbers of tessera.h stay");
TSR_STATUS_LIST(SAME_NUMBER)

static _Thread_local tsr_err last_error;
static pthread_once_t once = PTHREAD_ONCE_INIT;

static void prepare(void)
{
    gsl_set_error_handler_off();
    (void)tsr_config_fields();
}

tsr_err *tsr_library_error(void)
{
    pthread_once(&once, prepare);
    return &last_error;
}

tsr_status tsr_library_finite(const char *name, long n, const double *value,
                              tsr_err *err)
{
    for (long i = 0; i < n; i++)
        if (!isfinite(value[i]))
            return tsr_fail(err, TSR_E_NUMERIC, "%s[%ld] is %g", name, i,
                            value[i]);
    return TSR_OK;
}

const char *tessera_version(void)
{
    return TSR_VERSION;
}

const char *tessera_status_text(int status)
{
    return tsr_status_text((tsr_status)status);
}

const char *tessera_message(void)
{
    return last_error.message;
}
