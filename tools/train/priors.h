/* What the prior learns from, residue by residue: torsions by class, side-chain
 * centres and bond angles by type.
 *
 * Torsions are those of residues with N, CA, C and O and true peptide bonds
 * (C-N below 2 A) on both sides. Left out are D residues (CB on the other side
 * of the plane N-CA-C), and strained ones: a peptide bond more than 30 degrees
 * from planar, N-CA-C outside 95 to 127 degrees. Bond angles are of the same
 * residues; side-chain centres of all that have N, CA, C and every atom beyond
 * CB. */
#ifndef TSR_TRAIN_PRIORS_H
#define TSR_TRAIN_PRIORS_H

#include "core/status.h"
#include "molecule/prior_table.h"
#include "molecule/structure.h"

/* Observations of one kind, in the order of the structures. */
typedef struct {
    int dim;
    long n, room;
    double *x; /* [n][dim] */
    int *file; /* [n] number of the structure */
} tsr_sample;

typedef struct {
    int n_file;
    tsr_sample torsion[TSR_N_RAMA]; /* phi, psi, rad */
    tsr_sample side[TSR_N_AMINO];   /* Angstrom */
    tsr_sample angle[TSR_N_AMINO];  /* N-CA-C, rad */
    long n_mirrored, n_strained;    /* left out of the torsions */
} tsr_prior_sample;

tsr_prior_sample *tsr_prior_sample_new(void); /* NULL: out of memory */
void tsr_prior_sample_free(tsr_prior_sample *sample);

/* Adds one structure's residues, as the next file. Errors: TSR_E_NOMEM. */
tsr_status tsr_prior_sample_visit(tsr_prior_sample *sample,
                                  const tsr_structure *structure, tsr_err *err);

/* Adds all of another sample, its files after those that are there. Errors:
 * TSR_E_NOMEM. */
tsr_status tsr_prior_sample_add(tsr_prior_sample *to,
                                const tsr_prior_sample *from, tsr_err *err);

/* Mean and standard deviation of those that are left when what is more than
 * four times 1.4826 median absolute deviations from the median is taken out.
 * Errors: TSR_E_NOMEM. */
tsr_status tsr_angle_gaussian_of(const tsr_sample *sample,
                                 tsr_angle_gaussian *out, tsr_err *err);

#endif
