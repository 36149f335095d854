/* How much of each sphere of a molecule a probe can touch, exactly. */
#ifndef TSR_SCATTERING_SURFACE_H
#define TSR_SCATTERING_SURFACE_H

#include "core/status.h"

/* xyz      [n][3]  in   Angstrom
 * radius   [n]     in   Angstrom
 * fraction [n]     out  of the sphere at radius + probe, the part that lies
 *                       within no other sphere of radius + probe
 * vector   [n][3]  out  the integral of the unit vector n over that part, over
 *                       4 pi; NULL: not wanted
 * Rotation changes them by rounding alone, 1e-12. Cost: a few microseconds a
 * pair of exposed neighbours.
 * Errors: TSR_E_NOMEM, TSR_E_INTERNAL (a probe or radius below 0). */
tsr_status tsr_surface_exposed(int n, const double (*xyz)[3],
                               const double *radius_ang, double probe_ang,
                               double *fraction, double (*vector)[3],
                               tsr_err *err);

#endif
