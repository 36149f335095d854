/* How much of each sphere of a molecule a probe can touch, exactly. */
#ifndef TSR_SCATTERING_SURFACE_H
#define TSR_SCATTERING_SURFACE_H

#include "core/pool.h"

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

/* ---- one sphere ---- */

/* The unit vectors n with n axis > h. */
typedef struct {
    double axis[3];
    double h, s;  /* cosine and sine of the half angle */
    int is_bound; /* whether its circle may bound the part; 0 where the caller
                     knows that other caps cover all of it */
} tsr_cap;

/* What the sums need, for up to n caps. NULL: out of memory. */
typedef struct tsr_cap_workspace tsr_cap_workspace;
tsr_cap_workspace *tsr_cap_workspace_new(int n, tsr_pool *pool);

/* The part of the unit sphere that no cap covers. caps [n], no two the same, h
 * within (-1, 1). fraction: of the sphere, the part that they leave; vector:
 * the integral of n over that part, over 4 pi. */
void tsr_cap_union_complement(int n, const tsr_cap *caps,
                              tsr_cap_workspace *workspace, double *fraction,
                              double vector[3]);

#endif
