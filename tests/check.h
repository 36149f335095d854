/* cmocka, and checks of a call's status and of numbers that name what failed.
 */
#ifndef TESTS_CHECK_H
#define TESTS_CHECK_H

#include "core/pool.h"
#include "core/random.h"
#include "core/status.h"

#include <math.h>
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

/* A function to run before or after tests, returning 0 if all is well. */
#define FIXTURE(name) \
    static inline int name(__attribute__((unused)) void **state)

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

/* Several checks at once; the one that fails is named.
 * assert_ints(a, 1, b, 2): a is 1 and b is 2.
 * assert_nears(tolerance, a, 1.5, b, 2.5): the same within the tolerance.
 * assert_all(a > b, c): all are true. */
#define N_OF(type, ...) (sizeof((type[]){__VA_ARGS__}) / sizeof(type))
#define assert_ints(...) assert_nears(0, __VA_ARGS__)
#define assert_nears(tolerance, ...)                                          \
    assert_pairs(#__VA_ARGS__, tolerance, (const long double[]){__VA_ARGS__}, \
                 N_OF(long double, __VA_ARGS__), __FILE__, __LINE__)
#define assert_all(...)                                     \
    assert_each(#__VA_ARGS__, (const _Bool[]){__VA_ARGS__}, \
                N_OF(_Bool, __VA_ARGS__), __FILE__, __LINE__)

/* Where the kth of the expressions, separated by commas, begins; its length. */
static inline const char *nth_expression(const char *list, size_t k, int *n)
{
    int depth = 0;
    const char *begin = list, *at = list;
    for (; *at != '\0'; at++) {
        depth += (strchr("([{", *at) != NULL) - (strchr(")]}", *at) != NULL);
        if (*at != ',' || depth > 0)
            continue;
        if (k-- == 0)
            break;
        begin = at + 1;
    }
    begin += strspn(begin, " ");
    *n = (int)(at - begin);
    return begin;
}

static inline void assert_pairs(const char *list, double tolerance,
                                const long double *value, size_t n,
                                const char *file, int line)
{
    for (size_t k = 0; k + 1 < n; k += 2)
        if (!(fabsl(value[k] - value[k + 1]) <= tolerance)) {
            int length;
            const char *text = nth_expression(list, k, &length);
            print_error("%.*s is %.10Lg, not %.10Lg within %g\n", length, text,
                        value[k], value[k + 1], tolerance);
            _fail(file, line);
        }
}

static inline void assert_each(const char *list, const _Bool *value, size_t n,
                               const char *file, int line)
{
    for (size_t k = 0; k < n; k++)
        if (!value[k]) {
            int length;
            const char *text = nth_expression(list, k, &length);
            print_error("%.*s is false\n", length, text);
            _fail(file, line);
        }
}

/* The error of the last call that failed: tests pass its address. A helper may
 * have a parameter of the same name. */
#pragma GCC diagnostic ignored "-Wshadow"
static _Thread_local tsr_err err __attribute__((unused));

/* OK: the call succeeds. FAILS: it returns the status, with `part` in the
 * message of `err`. */
#define OK(call)                         \
    do {                                 \
        if ((call) != TSR_OK)            \
            fail_msg("%s", err.message); \
    } while (0)

#define FAILS(call, status, part)         \
    do {                                  \
        err = (tsr_err){0};               \
        assert_int_equal((call), status); \
        assert_has(err.message, part);    \
    } while (0)

/* An initialiser, such as a row of a table of cases. */
#define ROW(...)    \
    {               \
        __VA_ARGS__ \
    }

#define COUNT_OF(array) (sizeof(array) / sizeof((array)[0]))

/* ---- what a test makes is freed behind it, the newest first ---- */

typedef struct {
    void *object;
    void (*release)(void *);
} owned_object;
static owned_object *owned __attribute__((unused));
static size_t n_owned __attribute__((unused));

/* Threads of a test may call it at once. */
static inline void *own(void *object, void (*release)(void *))
{
    static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
    pthread_mutex_lock(&mutex);
    if ((n_owned & (n_owned - 1)) == 0) /* a power of 2: full */
        owned = realloc(owned, (2 * n_owned + 1) * sizeof *owned);
    owned[n_owned++] = (owned_object){object, release};
    pthread_mutex_unlock(&mutex);
    return object;
}

/* Frees all but the oldest n. */
static inline void release_owned(size_t n)
{
    while (n_owned > n) {
        n_owned--;
        owned[n_owned].release(owned[n_owned].object);
    }
}

/* CLEARED(TYPE) x: TYPE_clear(&x) runs at the end of the block. */
#define CLEARED(type) __attribute__((cleanup(type##_clear))) type

/* Of a struct that holds what it owns, a copy is enough to free that. */
#define own_copy(object, release) \
    own(memcpy(array(1, sizeof *(object)), (object), sizeof *(object)), release)

/* own_NAME(object), for a type that NAME_free frees. FREED(NAME) x: a pointer x
 * to that type, which is freed at the end of the block. */
#define FREED(name) __attribute__((cleanup(drop_##name))) name##_pointer
#define OWNED_AS(name, type)                        \
    typedef type *name##_pointer;                   \
    static inline void drop_##name(type **object)   \
    {                                               \
        name##_free(*object);                       \
    }                                               \
    static inline void release_##name(void *object) \
    {                                               \
        name##_free(object);                        \
    }                                               \
    static inline type *own_##name(type *object)    \
    {                                               \
        return own(object, release_##name);         \
    }
#define OWNED(type) OWNED_AS(type, type)

OWNED(gsl_rng)

/* As tsr_rng_new, calloc and sprintf. */
static inline gsl_rng *rng_new(uint64_t seed, uint64_t stream)
{
    return own_gsl_rng(tsr_rng_new(seed, stream));
}

static inline void *array(size_t n, size_t size)
{
    void *zeros = calloc(n + 1, size);
    assert_non_null(zeros);
    return own(zeros, free);
}

__attribute__((format(printf, 1, 2))) static inline const char *
format(const char *pattern, ...)
{
    enum { MOST = 4096 };
    char *text = array(MOST, 1);
    va_list list;
    va_start(list, pattern);
    assert_in_range(vsnprintf(text, MOST, pattern, list), 0, MOST - 1);
    va_end(list);
    return text;
}

/* A stream into memory, one at a time, and the text that was written to it. */
static char *stream_text __attribute__((unused));
static size_t stream_size __attribute__((unused));

static inline FILE *text_begin(void)
{
    FILE *stream = open_memstream(&stream_text, &stream_size);
    assert_non_null(stream);
    return stream;
}

static inline char *text_end(FILE *stream)
{
    fclose(stream);
    return own(stream_text, free);
}

static inline void release_pool(void *pool)
{
    tsr_pool_clear(pool);
}

#endif
