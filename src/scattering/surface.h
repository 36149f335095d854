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

/* ---- one sphere ---- */

/* The cap of unit vectors n with n . axis > h. */
typedef struct {
    double axis[3];
    double h, s;  /* cosine and sine of the angle between axis and edge */
    int is_bound; /* 1: the cap's circle may bound the uncovered part; 0: the
                     caller knows that other caps cover the whole circle */
} tsr_cap;

/* Working memory for up to n caps. Returns NULL when out of memory. */
typedef struct tsr_cap_workspace tsr_cap_workspace;
tsr_cap_workspace *tsr_cap_workspace_new(int n, tsr_pool *pool);

/* The part of the unit sphere that no cap covers. caps [n]: all different, h
 * within (-1, 1). fraction out: the uncovered fraction of the sphere. vector
 * out: the integral of n over the uncovered part, divided by 4 pi. */
void tsr_cap_union_complement(int n, const tsr_cap *caps,
                              tsr_cap_workspace *workspace, double *fraction,
                              double vector[3]);

#endif
