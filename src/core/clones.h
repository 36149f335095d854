/* Loops that the compiler turns into vector instructions: TSR_CLONES before a
 * function makes one version for each kind of processor, of which the program
 * takes the best when it starts. Results do not depend on which, since products
 * and sums are not contracted (Makefile). Sanitizers start too late for that
 * choice, and other compilers than gcc may not know it. */
#ifndef TSR_CORE_CLONES_H
#define TSR_CORE_CLONES_H

/* A function that such a loop calls is to be part of it. */
#if defined(__GNUC__)
#define TSR_INLINE static inline __attribute__((always_inline))
#else
#define TSR_INLINE static inline
#endif

#if defined(__x86_64__) && defined(__GNUC__) && !defined(__clang__) && \
    !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)
#define TSR_CLONES __attribute__((target_clones("avx512f", "avx2", "default")))
#else
#define TSR_CLONES
#endif

#endif
