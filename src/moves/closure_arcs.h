/* Where the last angle of a ring closure (closure.c) can be at all. */
#ifndef TSR_MOVES_CLOSURE_ARCS_H
#define TSR_MOVES_CLOSURE_ARCS_H

#include "moves/closure_resultant.h"

/* lo <= p cos tau - q sin tau <= hi */
typedef struct {
    double p, q, lo, hi;
} tsr_closure_bounds;

/* A direction that turns about an axis (`along` it and `aside`, a unit vector)
 * keeps the angle of that cosine with another one, whose own cosine with the
 * axis is offset + p cos tau - q sin tau. Returns 0 where no tau does. */
int tsr_closure_set_bounds(tsr_closure_bounds *bounds, double along,
                           double aside, double cosine, double offset, double p,
                           double q);

/* From and to are half angles, at most 63 degrees apart. */
typedef struct {
    tsr_cos_sin from, to;
} tsr_closure_arc;

enum { TSR_MAX_ARC = 32 };

/* The arcs within both bounds, a little longer; they may overlap. */
int tsr_closure_arcs(const tsr_closure_bounds limit[2],
                     tsr_closure_arc arc[TSR_MAX_ARC]);

tsr_cos_sin tsr_cos_sin_half(tsr_cos_sin t);
tsr_cos_sin tsr_cos_sin_twice(tsr_cos_sin t);
tsr_cos_sin tsr_cos_sin_unit(double c, double s);

#endif
