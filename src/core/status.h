/* Status codes and error messages.
 *
 * A function that can fail returns a tsr_status and has a tsr_err as its last
 * argument. The caller owns the tsr_err, or passes NULL if the message is not
 * needed. Success is 0. A rejected move and a log density of -infinity are
 * values, not errors; NaN is an error (TSR_E_NUMERIC). */
#ifndef TSR_CORE_STATUS_H
#define TSR_CORE_STATUS_H

#include <stddef.h>

/* X(name, exit status of the program, meaning) */
#define TSR_STATUS_LIST(X)                                    \
    X(OK, 0, "done")                                          \
    X(E_NO, 1, "the answer is no")                            \
    X(E_USAGE, 64, "wrong use")                               \
    X(E_DATA, 65, "bad input data")                           \
    X(E_NOINPUT, 66, "missing or unreadable input")           \
    X(E_INTERNAL, 70, "internal error")                       \
    X(E_NOMEM, 70, "out of memory")                           \
    X(E_NUMERIC, 70, "a number is not finite")                \
    X(E_RANGE, 70, "outside the supported range")             \
    X(E_IO, 74, "input or output failed")                     \
    X(E_DEVICE, 74, "no usable device, or the device failed") \
    X(E_INTERRUPTED, 75, "interrupted; can be resumed")       \
    X(E_CONFIG, 78, "invalid configuration")

/* The status codes, TSR_OK, TSR_E_NO, ... */
typedef enum {
#define TSR_STATUS_ENUM(name, exit_status, text) TSR_##name,
    TSR_STATUS_LIST(TSR_STATUS_ENUM)
#undef TSR_STATUS_ENUM
} tsr_status;

enum { TSR_ERR_SIZE = 2048 };

/* An error with its message. */
typedef struct {
    tsr_status status;
    char message[TSR_ERR_SIZE]; /* without a final newline */
} tsr_err;

#if defined(__GNUC__)
#define TSR_PRINTF(format_at, args_at) \
    __attribute__((format(printf, format_at, args_at)))
#else
#define TSR_PRINTF(format_at, args_at)
#endif

/* Returns 1 for a control character of ASCII, other than tab and newline, and
 * for the second byte of one of U+0080 to U+009F. before: the byte before c. */
static inline int tsr_is_control(char before, char c)
{
    const unsigned char b = (unsigned char)c;
    return (b < 0x20 && b != '\n' && b != '\t') || b == 0x7f ||
           ((unsigned char)before == 0xc2 && b >= 0x80 && b < 0xa0);
}

/* Replaces control characters by '?', so that a message which quotes a file
 * cannot command the terminal. tsr_fail and tsr_wrap do so. */
void tsr_clean(char *text);

/* Stores the message and returns `status`, so that a function can end with
 * `return tsr_fail(err, TSR_E_IO, "cannot open '%s': %s", ...);` */
tsr_status tsr_fail(tsr_err *err, tsr_status status, const char *format, ...)
    TSR_PRINTF(3, 4);

/* Prepends "context: " to the stored message and returns `status`; TSR_OK
 * leaves the message. */
tsr_status tsr_wrap(tsr_err *err, tsr_status status, const char *format, ...)
    TSR_PRINTF(3, 4);

/* Returns from the enclosing function if `call` fails. For functions that have
 * nothing to free. */
#define TSR_TRY(call)                    \
    do {                                 \
        const tsr_status tried = (call); \
        if (tried != TSR_OK)             \
            return tried;                \
    } while (0)

/* Makes `call` and stores its status, if `status` is TSR_OK; else does nothing.
 * For functions that free something at the end.
 *
 *     tsr_status status = tsr_allocated(path, err);
 *     TSR_THEN(status, write_head(path, err));
 *     TSR_THEN(status, write_rest(path, err));
 *     free(path);
 *     return status;
 */
#define TSR_THEN(status, call)  \
    do {                        \
        if ((status) == TSR_OK) \
            (status) = (call);  \
    } while (0)

/* Ends a constructor: *out is the new object, or after a failure NULL, and
 * `release` frees the object. */
#define TSR_HAND_OVER(status, object, out, release) \
    do {                                            \
        if ((status) != TSR_OK) {                   \
            release(object);                        \
            (object) = NULL;                        \
        }                                           \
        *(out) = (object);                          \
        return (status);                            \
    } while (0)

/* Reports a failed malloc: TSR_E_NOMEM. */
static inline tsr_status tsr_no_memory(tsr_err *err)
{
    return tsr_fail(err, TSR_E_NOMEM, "out of memory");
}

/* TSR_OK, or TSR_E_NOMEM if `memory` is NULL. */
#define tsr_allocated(memory, err) \
    ((memory) != NULL ? TSR_OK : tsr_no_memory(err))

/* Shows a static analyzer that these functions return their status. */
#if defined(__clang_analyzer__) && !defined(TSR_STATUS_ITSELF)
#define tsr_fail(err, status, ...) \
    ((void)(tsr_fail)((err), (status), __VA_ARGS__), (status))
#define tsr_wrap(err, status, ...)                         \
    __extension__({                                        \
        const tsr_status tsr_of_call = (status);           \
        (void)(tsr_wrap)((err), tsr_of_call, __VA_ARGS__); \
        tsr_of_call;                                       \
    })
#define tsr_no_memory(err) tsr_fail((err), TSR_E_NOMEM, "")
#endif

/* Exit status of the program for a status (docs/design.md, section 4). */
int tsr_exit_status(tsr_status status);

/* A fixed phrase for a status; never NULL. */
const char *tsr_status_text(tsr_status status);

#endif
