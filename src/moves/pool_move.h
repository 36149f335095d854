/* Free torsions of the members of a pool of conformations (structure.pool),
 * from which the move `pool` proposes and in which chains start
 * (sampler.start). */
#ifndef TSR_MOVES_POOL_MOVE_H
#define TSR_MOVES_POOL_MOVE_H

#include "core/field.h"
#include "core/pool.h"
#include "molecule/topology.h"

/* A run of amino acids whose torsions are all free: a linker between two rigid
 * parts, or a tail. */
typedef struct {
    int first, last, c_side; /* c_side: as in tsr_torsion */
} tsr_linker;

/* The members. Torsions are in turns, in [-0.5, 0.5), so that differences are
 * exact enough in single precision. */
typedef struct {
    tsr_pool pool;
    const tsr_topology *topology;
    int n, capacity; /* members, and those that fit into `torsion` */
    int n_linker, n_torsion;
    tsr_linker *linker; /* [n_linker] */
    int (*row)[2];      /* [n_residue] number of phi and psi among the free
                           torsions; -1: not free */
    float *torsion;     /* [capacity][n_torsion] */
    int n_padded;       /* n, rounded up to whole blocks */
    float *by_row;      /* [n_torsion][n_padded] the same, for the move */
} tsr_members;

/* Makes a pool without members. Borrows topology. NULL: out of memory. */
tsr_members *tsr_members_new(const tsr_topology *topology);
void tsr_members_free(tsr_members *members);

/* Appends a member with the torsions of a conformation, of which only N, CA and
 * C are read. */
tsr_status tsr_members_add(tsr_members *members,
                           const tsr_conformation *conformation, tsr_err *err);

/* To be called after the last member: makes by_row. */
tsr_status tsr_members_finish(tsr_members *members, tsr_err *err);

/* Torsions of member m, [n_torsion] turns. */
static inline const float *tsr_members_torsion(const tsr_members *members,
                                               int m)
{
    return members->torsion + (size_t)m * (size_t)members->n_torsion;
}

/* to: the conformation `from` with the torsions of member m. All else stays:
 * bond lengths and angles, omega, side chains, the place of a mobile chain. */
void tsr_members_apply(const tsr_members *members, int m,
                       const tsr_conformation *from, tsr_conformation *to);

/* Options of the move. */
typedef struct {
    double weight, prior;
    long residues;
    const tsr_members *members; /* not in the configuration; NULL: no pool */
} tsr_pool_move_options;

#endif
