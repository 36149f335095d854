/* The polynomial of a ring closure (closure.c) on an arc of its last angle. */
#ifndef TSR_MOVES_CLOSURE_RESULTANT_H
#define TSR_MOVES_CLOSURE_RESULTANT_H

#include "moves/closure_roots.h"

typedef struct {
    double c, s; /* cosine and sine of an angle */
} tsr_cos_sin;

/* With y_i = (1, cos tau_i, sin tau_i): y_2 a y_0 = y_0 b y_1 = y_1 c y_2 = 0
 */
typedef struct {
    double a[3][3], b[3][3], c[3][3];
} tsr_closure_equations;

/* Factors of the resultant as forms in x = cos(tau_2 / 2), y = sin(tau_2 / 2),
 * coefficients k of binom(n, k) x^(n - k) y^k:
 * R = l^2 - da dc w^2. */
typedef struct {
    double l[9], w[5], da[5], dc[5];
} tsr_closure_forms;

void tsr_closure_set_forms(const tsr_closure_equations *equations,
                           tsr_closure_forms *forms);

/* R at (1 - t) u + t v in Bernstein form in t; u, v: (x, y) at the ends of the
 * arc. Returns what is rounding in the coefficients. */
double tsr_closure_resultant(const tsr_closure_forms *forms, tsr_cos_sin u,
                             tsr_cos_sin v, double b[TSR_ROOT_DEGREE + 1]);

#endif
