/* A doubly linked list of allocations: a header before each allocation points
 * to its neighbours. */
#include "core/pool.h"

#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef struct tsr_pool_item item;

struct tsr_pool_item {
    item *before, *after;
    max_align_t memory[]; /* returned to the caller */
};

static item *item_of(void *memory)
{
    return (item *)((char *)memory - offsetof(item, memory));
}

/* Makes the neighbours, or the pool, point to the item at its current
 * address. */
static void *link_item(tsr_pool *pool, item *i)
{
    if (i->before != NULL)
        i->before->after = i;
    if (i->after != NULL)
        i->after->before = i;
    else
        pool->last = i;
    return i->memory;
}

void *tsr_pool_new(tsr_pool *pool, size_t n, size_t size)
{
    item *i = NULL;
    if (size == 0 || n <= (SIZE_MAX - sizeof *i) / size)
        i = calloc(1, sizeof *i + n * size);
    if (i == NULL) {
        pool->failed = 1;
        return NULL;
    }
    i->before = pool->last;
    return link_item(pool, i);
}

void *tsr_pool_resize(tsr_pool *pool, void *array, size_t n, size_t size)
{
    item *i = NULL;
    if (array == NULL)
        return tsr_pool_new(pool, n, size);
    if (size == 0 || n <= (SIZE_MAX - sizeof *i) / size)
        i = realloc(item_of(array), sizeof *i + n * size);
    if (i == NULL) {
        pool->failed = 1;
        return NULL;
    }
    return link_item(pool, i);
}

char *tsr_pool_text(tsr_pool *pool, const char *text)
{
    return text == NULL ? NULL : tsr_pool_format(pool, "%s", text);
}

char *tsr_pool_format(tsr_pool *pool, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    const int length = vsnprintf(NULL, 0, format, args);
    va_end(args);
    if (length < 0) {
        pool->failed = 1;
        return NULL;
    }
    char *text = tsr_pool_new(pool, (size_t)length + 1, 1);
    if (text == NULL)
        return NULL;
    va_start(args, format);
    vsnprintf(text, (size_t)length + 1, format, args);
    va_end(args);
    return text;
}

void tsr_pool_free(tsr_pool *pool, void *memory)
{
    if (memory == NULL)
        return;
    item *i = item_of(memory);
    if (i->before != NULL)
        i->before->after = i->after;
    if (i->after != NULL)
        i->after->before = i->before;
    else
        pool->last = i->before;
    free(i);
}

tsr_status tsr_pool_check(const tsr_pool *pool, tsr_err *err)
{
    return pool->failed ? tsr_no_memory(err) : TSR_OK;
}

void tsr_pool_clear(tsr_pool *pool)
{
    for (item *i = pool->last, *before; i != NULL; i = before) {
        before = i->before;
        free(i);
    }
    *pool = (tsr_pool){0};
}
