/* Version and errors of the public library. */
#include "library/library.h"

#include "posterior/config.h"

#include <gsl/gsl_errno.h>
#include <math.h>
#include <pthread.h>
#include <tessera.h>

_Static_assert(TESSERA_E_NO == (int)TSR_E_NO &&
                   TESSERA_E_USAGE == (int)TSR_E_USAGE &&
                   TESSERA_E_DATA == (int)TSR_E_DATA &&
                   TESSERA_E_NOINPUT == (int)TSR_E_NOINPUT &&
                   TESSERA_E_INTERNAL == (int)TSR_E_INTERNAL &&
                   TESSERA_E_NOMEM == (int)TSR_E_NOMEM &&
                   TESSERA_E_NUMERIC == (int)TSR_E_NUMERIC &&
                   TESSERA_E_RANGE == (int)TSR_E_RANGE &&
                   TESSERA_E_IO == (int)TSR_E_IO &&
                   TESSERA_E_DEVICE == (int)TSR_E_DEVICE &&
                   TESSERA_E_INTERRUPTED == (int)TSR_E_INTERRUPTED &&
                   TESSERA_E_CONFIG == (int)TSR_E_CONFIG,
               "the numbers of tessera.h stay while the soname stays");

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
