/* Real roots of a polynomial of degree 16 given in Bernstein form on [0, 1].
 *
 * Descartes' rule of signs on the coefficients, with subdivision: an interval
 * whose coefficients do not change sign has no root, one that has a single
 * change has exactly one (Lane & Riesenfeld 1981; Eigenwillig 2008). */
#ifndef TSR_MOVES_CLOSURE_ROOTS_H
#define TSR_MOVES_CLOSURE_ROOTS_H

enum {
    TSR_ROOT_DEGREE = 16,
    TSR_MAX_ROOT = 32 /* with those that may be double or none */
};

/* An interval with a root. single: exactly one, with the coefficients of the
 * polynomial on it for tsr_root_refine; otherwise the interval is too short to
 * tell whether it holds none, one or more, and `near` is its middle. */
typedef struct {
    double from, to;
    double near; /* a guess, from <= near <= to */
    int single;
    double b[TSR_ROOT_DEGREE + 1];
} tsr_root;

/* Coefficients b[k] of binom(16, k) (1 - t)^(16 - k) t^k. Below `noise` a
 * coefficient says nothing. Returns how many intervals were found. */
int tsr_root_isolate(const double b[TSR_ROOT_DEGREE + 1], double noise,
                     tsr_root root[TSR_MAX_ROOT]);

/* The root of a `single` interval to rounding. */
double tsr_root_refine(const tsr_root *root);

#endif
