/* Relative poses of the rigid parts of a molecule, in few numbers.
 *
 * A SAXS curve determines distances but hardly orientations, so orientations
 * converge slowest. Poses are columns of the trace, so that R-hat and effective
 * sample sizes cover them.
 *
 * A pose is the relative position and orientation of two rigid parts that
 * follow each other along the chain with a flexible stretch between them. Each
 * part has a centre, the mean of its CA, and a frame, that of N, CA, C of its
 * residue next to the flexible stretch (tsr_frame). With u the unit vector from
 * the first centre to the second, a pose has the values
 *
 *     distance   between the centres, Angstrom
 *     from_x..z  u in the frame of the first part
 *     to_x..z    -u in the frame of the second part
 *     twist      the dihedral of the frames' y axes about u, rad
 *
 * Unit vectors are used instead of angles, because they have no poles and no
 * periodic boundary where a quantile would be cut. A tail is a flexible end of
 * a chain beyond a rigid part. Its values are the distance from the CA of the
 * rigid residue next to the tail to the CA at the end of the chain, and the
 * unit vector from the first to the second CA in the frame of that rigid
 * residue. */
#ifndef TSR_MOLECULE_RIGID_POSE_H
#define TSR_MOLECULE_RIGID_POSE_H

#include "molecule/topology.h"

enum { TSR_N_POSE_VALUE = 8, TSR_N_TAIL_VALUE = 4 };

/* Description of one value, for the trace. */
typedef struct {
    const char *name, *unit, *doc;
    int seen_from; /* 1, 2: doc describes an axis of the direction from this
                      part to the other; 0: not a direction */
} tsr_pose_variable;

/* The values of a pose and of a tail, in the order in which they are
 * measured. */
extern const tsr_pose_variable tsr_pose_variables[TSR_N_POSE_VALUE];
extern const tsr_pose_variable tsr_tail_variables[TSR_N_TAIL_VALUE];

/* Residues first..last of the two rigid parts of a pose. */
typedef struct {
    int first[2], last[2];
} tsr_pose;

/* A tail: the rigid residue next to it, and the residue at the end of the
 * chain. */
typedef struct {
    int joint, end;
} tsr_tail;

/* Finds pose or tail k of the molecule, from 0. Returns 0 if k is too large.
 * Poses: parts shorter than 4 residues are ignored, and poses that cannot
 * change are left out; the last part of a chain and the first of the next chain
 * also form a pose. Tails have at least 3 residues. Cost: O(residues). */
int tsr_pose_find(const tsr_topology *topology, int k, tsr_pose *pose);
int tsr_tail_find(const tsr_topology *topology, int k, tsr_tail *tail);

/* Returns 1 if there are flexible residues, and all of them are in tails, so
 * that all rigid parts keep their relative positions. */
int tsr_only_tails_flexible(const tsr_topology *topology);

/* Measures the values of a pose or a tail in a conformation. */
void tsr_pose_measure(const tsr_conformation *conformation,
                      const tsr_pose *pose, double value[TSR_N_POSE_VALUE]);
void tsr_tail_measure(const tsr_conformation *conformation,
                      const tsr_tail *tail, double value[TSR_N_TAIL_VALUE]);

#endif
