/* Messages are formatted into the caller's tsr_err; longer ones than
 * TSR_ERR_SIZE are cut. */
#define TSR_STATUS_ITSELF
#include "core/status.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

void tsr_clean(char *text)
{
    for (char before = 0; *text != '\0'; before = *text++)
        if (tsr_is_control(before, *text))
            *text = '?';
}

tsr_status tsr_fail(tsr_err *err, tsr_status status, const char *format, ...)
{
    if (err != NULL) {
        va_list args;
        va_start(args, format);
        err->status = status;
        vsnprintf(err->message, sizeof err->message, format, args);
        va_end(args);
        tsr_clean(err->message);
    }
    return status;
}

tsr_status tsr_wrap(tsr_err *err, tsr_status status, const char *format, ...)
{
    if (err != NULL && status != TSR_OK) {
        char before[TSR_ERR_SIZE];
        memcpy(before, err->message, sizeof before);
        va_list args;
        va_start(args, format);
        int n = vsnprintf(err->message, sizeof err->message, format, args);
        va_end(args);
        if (n >= 0 && (size_t)n < sizeof err->message)
            snprintf(err->message + n, sizeof err->message - (size_t)n,
                     ": %.*s", TSR_ERR_SIZE - 3, before);
        err->status = status;
        tsr_clean(err->message);
    }
    return status;
}

int tsr_exit_status(tsr_status status)
{
    static const int table[] = {
#define TSR_STATUS_EXIT(name, exit_status, text) exit_status,
        TSR_STATUS_LIST(TSR_STATUS_EXIT)
#undef TSR_STATUS_EXIT
    };
    size_t i = (size_t)status;
    return i < sizeof table / sizeof table[0] ? table[i] : 70;
}

const char *tsr_status_text(tsr_status status)
{
    static const char *const table[] = {
#define TSR_STATUS_TEXT(name, exit_status, text) text,
        TSR_STATUS_LIST(TSR_STATUS_TEXT)
#undef TSR_STATUS_TEXT
    };
    size_t i = (size_t)status;
    return i < sizeof table / sizeof table[0] ? table[i] : "unknown status";
}
