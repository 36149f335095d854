/* Vector instructions for hot loops. TSR_CLONES before a function compiles one
 * version for each kind of processor; at start-up the program chooses the best
 * version that its processor supports. All versions give the same bits, because
 * the compiler does not contract products and sums (Makefile). TSR_CLONES is
 * empty under sanitizers, which start after the choice is made, on processors
 * other than x86-64, and for compilers other than gcc. */
#ifndef TSR_CORE_CLONES_H
#define TSR_CORE_CLONES_H

/* Declares a function that a TSR_CLONES function calls in its loop. It must be
 * inlined to be compiled for each processor. */
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
