/* What prior.c and prior_state.c share. */
#ifndef TSR_MODEL_PRIOR_FACTORS_H
#define TSR_MODEL_PRIOR_FACTORS_H

#include "prior/clash.h"
#include "prior/prior.h"
#include "prior/restraint.h"

struct tsr_prior {
    const tsr_topology *topology;
    tsr_torsion_density *torsion[TSR_N_RAMA];
    tsr_side_density *side[TSR_N_AMINO]; /* NULL where there is none */
    tsr_angle_gaussian angle[TSR_N_AMINO];
    tsr_clash clash;
    double d_limit_ang; /* 0: none */
    int n_restraint;
    tsr_restraint *restraint; /* [n_restraint] */
};

/* Terms of one flexible residue, from coordinates. */
int64_t tsr_prior_torsion_term(const tsr_prior *prior,
                               const tsr_conformation *conformation,
                               int residue);
int64_t tsr_prior_angle_term(const tsr_prior *prior,
                             const tsr_conformation *conformation, int residue);
int64_t tsr_prior_side_term(const tsr_prior *prior,
                            const tsr_conformation *conformation, int residue);
int64_t tsr_prior_restraint_term(const tsr_prior *prior,
                                 const tsr_conformation *conformation, int k);

#endif
