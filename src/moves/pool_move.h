/* Free torsions of the members of a pool of conformations (structure.pool),
 * from which the move `pool` proposes and in which chains start
 * (sampler.start). */
#ifndef TSR_MOVES_POOL_MOVE_H
#define TSR_MOVES_POOL_MOVE_H

#include "core/pool.h"
#include "molecule/topology.h"

/* The members. */
typedef struct {
    tsr_pool pool;
    const tsr_topology *topology;
    int n, capacity;   /* members, and those that fit into `turn` */
    int n_torsion;     /* free torsions of amino acids, the first of all */
    double (*turn)[2]; /* [capacity][n_torsion] cosine and sine */
} tsr_members;

/* Makes a pool without members. Borrows topology. NULL: out of memory. */
tsr_members *tsr_members_new(const tsr_topology *topology);
void tsr_members_free(tsr_members *members);

/* Appends a member with the torsions of a conformation, of which only N, CA and
 * C are read. */
tsr_status tsr_members_add(tsr_members *members,
                           const tsr_conformation *conformation, tsr_err *err);

/* to: the conformation `from` with the torsions of member m. All else stays:
 * bond lengths and angles, omega, side chains, the place of a mobile chain. */
void tsr_members_apply(const tsr_members *members, int m,
                       const tsr_conformation *from, tsr_conformation *to);

/* Options of the move. */
typedef struct {
    double weight;
    const tsr_members *members; /* not in the configuration; NULL: no pool */
} tsr_pool_move_options;

#endif
