/* Memory pools: all allocations of one owner, freed together.
 *
 * A failed allocation returns NULL, and the pool records the failure. A
 * constructor therefore allocates all its arrays and checks once, before it
 * uses any of them.
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
 * An object that owns nothing but memory needs no function to free it: its
 * constructor allocates from the pool of its owner. Temporary arrays of a
 * function come from a pool on its stack. A zeroed pool is empty and valid. A
 * pool must not be used by two threads at the same time. */
#ifndef TSR_CORE_POOL_H
#define TSR_CORE_POOL_H

#include "core/status.h"

#include <stddef.h>

/* A pool of memory. */
typedef struct {
    struct tsr_pool_item *last; /* newest allocation; NULL: empty */
    int failed;                 /* 1: an allocation has failed */
} tsr_pool;

/* Zeroed memory for n elements of `size` bytes, aligned for any type. The
 * result is not NULL for n = 0. Returns NULL when out of memory. */
void *tsr_pool_new(tsr_pool *pool, size_t n, size_t size);

/* Allocates n elements and assigns them to `pointer`. */
#define tsr_pool_array(pool, pointer, n) \
    ((pointer) = tsr_pool_new((pool), (size_t)(n), sizeof *(pointer)))

/* Resizes an array of the pool to n elements. The array may move, and new
 * elements are not zeroed. array NULL: allocates a new array. Returns NULL when
 * out of memory; the old array is then still valid. */
void *tsr_pool_resize(tsr_pool *pool, void *array, size_t n, size_t size);

/* A copy of `text`, or NULL for NULL. */
char *tsr_pool_text(tsr_pool *pool, const char *text);

/* Formatted text, as from sprintf. */
char *tsr_pool_format(tsr_pool *pool, const char *format, ...) TSR_PRINTF(2, 3);

/* Frees one allocation of the pool. NULL is fine. */
void tsr_pool_free(tsr_pool *pool, void *memory);

/* Reports an allocation that failed since the last clear. Errors:
 * TSR_E_NOMEM. */
tsr_status tsr_pool_check(const tsr_pool *pool, tsr_err *err);

/* Frees all memory. The pool is then empty and may be used again. */
void tsr_pool_clear(tsr_pool *pool);

#endif
