#include "store/hdf5_error.h"

#include <hdf5.h>

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

void tsr_hdf5_quiet(void)
{
    H5Eset_auto2(H5E_DEFAULT, NULL, NULL);
}

typedef struct {
    char text[512];
} reason;

/* The innermost entry says what went wrong; those above it only say on behalf
 * of whom. For a failed system call it is a long line with addresses in it, of
 * which the part before the first ':' and strerror's text are for people. */
static herr_t keep_innermost(unsigned n, const H5E_error2_t *error, void *data)
{
    static const char mark[] = "error message = '";
    reason *why = (reason *)data;
    const char *desc = error->desc != NULL ? error->desc : "no reason given";

    if (n != 0)
        return 0;
    const char *text = strstr(desc, mark);
    if (text == NULL) {
        snprintf(why->text, sizeof why->text, "%s", desc);
        return 0;
    }
    text += sizeof mark - 1;
    snprintf(why->text, sizeof why->text, "%.*s: %.*s", (int)strcspn(desc, ":"),
             desc, (int)strcspn(text, "'"), text);
    return 0;
}

tsr_status tsr_hdf5_fail(tsr_err *err, tsr_status status, const char *format,
                         ...)
{
    reason why = {""};
    char message[TSR_ERR_SIZE];
    va_list args;

    H5Ewalk2(H5E_DEFAULT, H5E_WALK_UPWARD, keep_innermost, &why);
    H5Eclear2(H5E_DEFAULT);
    va_start(args, format);
    vsnprintf(message, sizeof message, format, args);
    va_end(args);
    if (why.text[0] == '\0')
        return tsr_fail(err, status, "%s", message);
    return tsr_fail(err, status, "%s: HDF5: %s", message, why.text);
}
