/* The part of each sphere of a molecule that a probe can touch, computed
 * exactly. */
#ifndef TSR_SCATTERING_SURFACE_H
#define TSR_SCATTERING_SURFACE_H

#include "core/pool.h"

/* Exposed fraction of every sphere.
 * xyz      [n][3]  in   Angstrom
 * radius   [n]     in   Angstrom
 * fraction [n]     out  exposed fraction of the sphere of radius + probe: the
 *                       part that lies in no other such sphere
 * vector   [n][3]  out  integral of the unit vector n over this part, divided
 *                       by 4 pi; may be NULL
 * A rotation of the molecule changes the results only by rounding, 1e-12. Cost:
 * a few microseconds for a pair of exposed neighbours. Errors: TSR_E_NOMEM,
 * TSR_E_INTERNAL (a negative radius or probe, or radius and probe 0). */
tsr_status tsr_surface_exposed(int n, const double (*xyz)[3],
                               const double *radius_ang, double probe_ang,
                               double *fraction, double (*vector)[3],
                               tsr_err *err);

#endif
