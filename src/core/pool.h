/* Memory of one owner, which is freed as a whole.
 *
 * Everything that an owner allocates comes from its pool, and one call frees
 * all of it. An allocation that fails returns NULL, and the pool remembers
 * that: a constructor asks for all its arrays in a row and checks once, before
 * it uses any of them.
 *
 *     typedef struct {
 *         tsr_pool pool;
 *         double *q, *intensity; // [n]
 *     } curve;
 *
 *     tsr_pool_array(&c->pool, c->q, n);
 *     tsr_pool_array(&c->pool, c->intensity, n);
 *     TSR_TRY(tsr_pool_check(&c->pool, err));
 *     ...
 *     tsr_pool_clear(&c->pool);
 *
 * An object that holds nothing but memory needs no function that frees it: its
 * constructor takes the pool of whoever owns it. A function's temporary arrays
 * are a pool on its stack. A pool of zero bytes is empty and valid. Pools are
 * not locked: one thread at a time. */
#ifndef TSR_CORE_POOL_H
#define TSR_CORE_POOL_H

#include "core/status.h"

#include <stddef.h>

typedef struct {
    struct tsr_pool_item *last; /* newest allocation; NULL: there is none */
    int failed;                 /* 1: an allocation was refused */
} tsr_pool;

/* Zeroed memory for n elements of `size` bytes, aligned for any type; not NULL
 * for n = 0. NULL where it cannot be had. */
void *tsr_pool_new(tsr_pool *pool, size_t n, size_t size);

/* The same, for the array that `pointer` is to point at. */
#define tsr_pool_array(pool, pointer, n) \
    ((pointer) = tsr_pool_new((pool), (size_t)(n), sizeof *(pointer)))

/* An array of the pool (or NULL) with n elements, which may move; elements that
 * it did not have are not zeroed. NULL: refused, and the old array stays. */
void *tsr_pool_resize(tsr_pool *pool, void *array, size_t n, size_t size);

/* A copy of a text; NULL of NULL. */
char *tsr_pool_text(tsr_pool *pool, const char *text);

/* The text that printf makes. */
char *tsr_pool_print(tsr_pool *pool, const char *format, ...) TSR_PRINTF(2, 3);

/* Frees one allocation of the pool before the others; NULL is fine. */
void tsr_pool_free(tsr_pool *pool, void *memory);

/* TSR_E_NOMEM where any allocation since the last clear was refused. */
tsr_status tsr_pool_check(const tsr_pool *pool, tsr_err *err);

/* Frees everything; the pool is empty afterwards and may be used again. */
void tsr_pool_clear(tsr_pool *pool);

#endif
