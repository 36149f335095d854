/* Restraints: what a user knows of a distance between two residues, such as
 * from cross-links or FRET. Flat between lower and upper, harmonic outside:
 *
 *     R(d) = ((d - upper) / w)^2 / 2  above,  ((lower - d) / w)^2 / 2  below
 *
 * in nat; it is part of the prior. */
#ifndef TSR_PRIOR_RESTRAINT_H
#define TSR_PRIOR_RESTRAINT_H

#include "core/field.h"
#include "core/status.h"
#include "molecule/topology.h"

typedef struct {
    tsr_strings between; /* two residues, as "A:17" */
    int at;              /* index: ca, side_chain */
    double distance[2];  /* lower, upper; Angstrom */
    double width;        /* w, Angstrom */
} tsr_restraint_options;

extern const tsr_field tsr_restraint_fields[];

typedef struct {
    int residue[2];
    int at;
    double lower, upper, inverse_width;
} tsr_restraint;

/* Finds the residues. Errors: TSR_E_CONFIG (not two residues, unknown ones, or
 * a pair whose distance cannot change). */
tsr_status tsr_restraint_make(const tsr_topology *topology,
                              const tsr_restraint_options *options,
                              tsr_restraint *restraint, tsr_err *err);

/* The distance, Angstrom: between CA, or between side-chain centres (CB of
 * alanine, CA of glycine). */
double tsr_restraint_distance(const tsr_topology *topology,
                              const tsr_restraint *restraint,
                              const tsr_conformation *conformation);

/* -R(d), nat. */
double tsr_restraint_log(const tsr_restraint *restraint, double distance_ang);

#endif
