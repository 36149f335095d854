/* The kernel texts, embedded at build by kernels/embed.c. */
#ifndef TSR_GPU_KERNEL_SOURCE_H
#define TSR_GPU_KERNEL_SOURCE_H

#include <stddef.h>

typedef struct {
    const char *name; /* file name, as in kernels/ */
    const char *text; /* ends with a zero byte */
    size_t size;      /* without it */
} tsr_kernel_source;

extern const tsr_kernel_source tsr_kernel_sources[]; /* ends with name NULL */

#endif
