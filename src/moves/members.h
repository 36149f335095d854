/* Free torsions of the members of a pool of conformations (structure.pool),
 * near which the move regrow proposes, and in which chains start
 * (sampler.start). */
#ifndef TSR_MOVES_MEMBERS_H
#define TSR_MOVES_MEMBERS_H

#include "core/pool.h"
#include "core/random.h"
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

/* Draws the free torsions of amino acids first..first+count-1 (at most
 * TSR_MAX_STRETCH) near those of a random member. torsion_rad [count][2] out,
 * where a torsion is free. */
enum { TSR_MAX_STRETCH = 64 };
void tsr_members_draw(const tsr_members *members, int first, int count,
                      gsl_rng *rng, double (*torsion_rad)[2]);

/* Log density of such draws at a conformation, per rad. Cost: O(members
 * count). */
double tsr_members_log_density(const tsr_members *members,
                               const tsr_conformation *conformation, int first,
                               int count);

/* Options of the move regrow. */
typedef struct {
    double weight;
    long residues;
    const tsr_members *members; /* not in the configuration; NULL: no pool */
} tsr_regrow_options;

#endif
