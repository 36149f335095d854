/* Chain geometry in internal coordinates: bond lengths, angles and torsions of
 * the backbone, and coordinates rebuilt from them.
 *
 * The slow, exact counterpart of turning torsions in place; also builds
 * extended chains. Ideal values: Engh & Huber 1991. */
#ifndef TSR_MOLECULE_GEOMETRY_H
#define TSR_MOLECULE_GEOMETRY_H

#include "molecule/topology.h"

#define TSR_BOND_N_CA 1.458
#define TSR_BOND_CA_C 1.525
#define TSR_BOND_C_N 1.329
#define TSR_BOND_C_O 1.231
#define TSR_ANGLE_N_CA_C 1.9373 /* 111.0 degrees */
#define TSR_ANGLE_CA_C_N 2.0281 /* 116.2 */
#define TSR_ANGLE_C_N_CA 2.1241 /* 121.7 */
#define TSR_ANGLE_CA_C_O 2.1031 /* 120.5 */

/* Internal coordinates of one residue. Lengths in Angstrom, angles in rad. The
 * bonds and angles across the peptide bond are those to the residue before. */
typedef struct {
    double n_ca, ca_c, c_o, c_n; /* c_n: C of the one before to N */
    double n_ca_c, ca_c_o;       /* angles within */
    double ca_c_n, c_n_ca;       /* angles across the peptide bond */
    double phi, psi, omega;      /* psi: N-CA-C-N of the next; omega:
                                    CA-C-N-CA with the one before */
    double o_torsion;            /* N-CA-C-O */
} tsr_internal;

/* Places d so that |cd| = bond, angle bcd, torsion abcd (Parsons et al. 2005,
 * natural extension reference frame). */
void tsr_place_atom(double d[3], const double a[3], const double b[3],
                    const double c[3], double bond_ang, double angle_rad,
                    double torsion_rad);

/* Ideal position of CB from N, CA, C. */
void tsr_place_cb(double cb[3], const double n[3], const double ca[3],
                  const double c[3]);

/* internal [n_residue] out. Values that need a missing neighbour are NaN, but
 * those across a chain break are measured all the same. */
void tsr_geometry_measure(const tsr_topology *topology,
                          const tsr_conformation *conformation,
                          tsr_internal *internal);

/* Rebuilds all coordinates of every chain from its first residue's N, CA and C
 * (read from `conformation`) and the internal coordinates, bodies included. */
void tsr_geometry_build(const tsr_topology *topology,
                        const tsr_internal *internal,
                        tsr_conformation *conformation);

/* Ideal internal coordinates with the torsions given. */
tsr_internal tsr_geometry_ideal(double phi_rad, double psi_rad);

#endif
