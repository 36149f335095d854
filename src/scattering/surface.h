/* How much of each sphere of a molecule a probe can touch.
 * Source: Shrake & Rupley 1973, J. Mol. Biol. 79, 351. */
#ifndef TSR_MODEL_SURFACE_H
#define TSR_MODEL_SURFACE_H

#include "core/status.h"

/* xyz      [n][3]  in   Angstrom
 * radius   [n]     in   Angstrom
 * fraction [n]     out  of n_point points at radius + probe, the part that lies
 *                       within no other sphere of radius + probe
 * The points are a golden spiral. Cost: O(n n_point neighbours).
 * Errors: TSR_E_NOMEM, TSR_E_INTERNAL (a probe or radius below 0). */
tsr_status tsr_surface_fraction(int n, const double (*xyz)[3],
                                const double *radius_ang, double probe_ang,
                                int n_point, double *fraction, tsr_err *err);

#endif
