/* The rigid motion that brings one set of points nearest to another. */
#ifndef TSR_ANALYSIS_SUPERPOSE_H
#define TSR_ANALYSIS_SUPERPOSE_H

#include "core/vec3.h"

/* The motion of `moving` [n][3] with the least root mean square distance to
 * `fixed` [n][3], which it returns, in their unit. No mirror images. Source:
 * Horn 1987, J. Opt. Soc. Am. A 4, 629 (unit quaternions). */
double tsr_superpose(int n, const double (*fixed)[3], const double (*moving)[3],
                     tsr_motion *motion);

#endif
