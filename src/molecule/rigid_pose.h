/* How the rigid parts of a molecule lie to each other, in few numbers.
 *
 * A curve of SAXS holds distances and hardly orientations, so these are what a
 * chain takes longest to explore. They stand in the trace, so that R-hat and
 * effective sample sizes see them.
 *
 * A pose is that of two rigid parts which follow each other along the chain,
 * with something flexible between them. Each part has a centre, the mean of its
 * CA, and a frame, that of N, CA, C of the residue where the flexible stretch
 * between them begins or ends (tsr_frame). With u the unit vector from the
 * first centre to the second, the six coordinates of the pose are seen by
 *
 *     distance   between the centres, Angstrom
 *     from_x..z  u in the frame of the first part
 *     to_x..z    -u in the frame of the second part
 *     twist      the dihedral of the frames' y axes about u, rad
 *
 * Unit vectors instead of angles: they have no poles and no ends where a
 * quantile would be cut. A tail is a flexible end of a chain beyond a rigid
 * part: its end-to-end distance, from the CA of the part's last residue to
 * that of the chain's, and the unit vector of it in the frame of that residue
 * of the part. */
#ifndef TSR_MOLECULE_RIGID_POSE_H
#define TSR_MOLECULE_RIGID_POSE_H

#include "molecule/topology.h"

enum { TSR_N_POSE_VALUE = 8, TSR_N_TAIL_VALUE = 4 };

typedef struct {
    const char *name, *unit, *doc;
    int seen_from; /* 1, 2: doc is the axis of the direction in which this part
                      sees the other; 0: no such direction */
} tsr_pose_variable;

extern const tsr_pose_variable tsr_pose_variables[TSR_N_POSE_VALUE];
extern const tsr_pose_variable tsr_tail_variables[TSR_N_TAIL_VALUE];

/* The rigid parts of a pose, as residues; a tail's joint (rigid) and end. */
typedef struct {
    int first[2], last[2];
} tsr_pose;

typedef struct {
    int joint, end;
} tsr_tail;

/* Pose k of the molecule, 0 onwards, and tail k. Return 0 where there are not
 * so many. Parts shorter than 4 residues are passed over; so are poses that
 * nothing changes. Cost: O(residues). */
int tsr_pose_find(const tsr_topology *topology, int k, tsr_pose *pose);
int tsr_tail_find(const tsr_topology *topology, int k, tsr_tail *tail);

/* Is something flexible, but tails alone: ends of chains whose rest keeps its
 * shape and its place? */
int tsr_only_tails_flexible(const tsr_topology *topology);

void tsr_pose_measure(const tsr_conformation *conformation,
                      const tsr_pose *pose, double value[TSR_N_POSE_VALUE]);
void tsr_tail_measure(const tsr_conformation *conformation,
                      const tsr_tail *tail, double value[TSR_N_TAIL_VALUE]);

#endif
