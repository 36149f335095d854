/* What of a molecule may move, and what follows from it. */
#ifndef TSR_MOLECULE_FREEDOM_H
#define TSR_MOLECULE_FREEDOM_H

#include "molecule/topology.h"

/* Sets flexible, is_fixed, has_phi, has_psi, unit and rama of every residue,
 * the lists of torsions and side chains, and the mobile chains, of a topology
 * whose residues, links, bodies and CB are set. The conformation tells omega.
 * log (may be NULL) hears what was decided for complexes. Errors: TSR_E_CONFIG,
 * naming the range (structure.flexible, ...) and what is wrong with it. */
tsr_status tsr_freedom_set(tsr_topology *topology,
                           const tsr_conformation *conformation,
                           const tsr_flexibility *flexibility, tsr_log *log,
                           tsr_err *err);

/* Fixes the largest rigid unit of a chain that begins with residue `first`. */
void tsr_freedom_anchor(tsr_topology *topology, int chain, int first,
                        tsr_log *log);

/* Where there are links of nucleotides: says which chains ride on which
 * (ride.c) and fixes a rigid unit of each that is not mobile and has one. Units
 * are numbered. Errors: TSR_E_CONFIG (too many), TSR_E_NOMEM. */
tsr_status tsr_freedom_ride(tsr_topology *topology,
                            const tsr_conformation *conformation, tsr_log *log,
                            tsr_err *err);

#endif
