/* What an engine computes where that is not the bodies of a run: particles, of
 * which every residue has some that follow from its coordinates.
 *
 * A rigid unit of many particles is in an engine by its pose and a table
 * (engine/engine.h, `inside`). So the engine is told of two kinds of places:
 * the particles of all other residues, and the bodies of the residues of such
 * units, which do not scatter and say where the unit is. Those of a residue are
 * side by side, in the order of the residues.
 *
 * posterior/all_atoms.h makes them of atoms and their water. */
#ifndef TSR_LIKELIHOOD_PARTICLES_H
#define TSR_LIKELIHOOD_PARTICLES_H

#include "engine/engine.h"
#include "molecule/topology.h"
#include "scattering/debye.h"

typedef struct tsr_particles tsr_particles;

typedef struct {
    void (*free)(tsr_particles *particles);
    /* Those of residues residue..residue+count-1: xyz [.][3] out, Angstrom.
     * From many threads at once, as all below. */
    void (*place)(const tsr_particles *particles,
                  const tsr_conformation *conformation, int residue, int count,
                  double (*xyz)[3]);
    /* factor [K][n_type][n_q] out, in the K components of that probe; room for
     * [TSR_N_COMP][n_type][n_q]. Errors: TSR_E_NOMEM. */
    tsr_status (*factors)(const tsr_particles *particles, int probe, int n_q,
                          double dq_inv_ang, double *factor, tsr_err *err);
    /* The partial profiles of a probe without an engine, in double precision:
     * partial [K (K + 1) / 2][n_q] out, room for [TSR_N_COMP_PAIR][n_q].
     * Errors: TSR_E_NOMEM, those of progress. */
    tsr_status (*direct)(const tsr_particles *particles,
                         const tsr_conformation *conformation, int probe,
                         int n_q, double dq_inv_ang,
                         const tsr_debye_progress *progress, double *partial,
                         tsr_err *err);
} tsr_particles_type;

struct tsr_particles {
    const tsr_particles_type *type;
    int n;              /* places that an engine is told of */
    int *first;         /* [n_residue + 1] the first of each residue */
    int *kind;          /* [n] type of the factors */
    int *unit;          /* [n] rigid unit with a table, -1: none */
    double (*start)[3]; /* [n] in the conformation that they were made of */
    int n_kind;         /* types; the last scatters nothing */
    int n_all;          /* particles, those within units, too */
    double margin_ang;  /* none is farther than that from every body */
    double radius_ang;  /* r_m of G (scattering/contrast.h) */
    tsr_engine_inside inside; /* particles of these units, in `start` */
};

static inline void tsr_particles_free(tsr_particles *particles)
{
    if (particles != NULL)
        particles->type->free(particles);
}

#endif
