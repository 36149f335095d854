/* Trained parameters of the prior. tools/train makes them: train.h describes
 * the statistics of structures, mixtures.c the fits.
 *
 * (phi, psi): a mixture for each of six residue classes (those of the Top8000
 * set, Lovell et al. 2003, Williams et al. 2018). Side-chain centres (weighted
 * by mass, atoms beyond CB, in the frame of N-CA-C): a mixture of Gaussians for
 * each residue type. Bond angle N-CA-C: a Gaussian for each residue type.
 * Contact distances: for each pair of body types the 1 % quantile of all
 * distances below 10 A between bodies at least 3 residues apart in the chain,
 * or in different chains. For a pair of types seen fewer than 500 times, the
 * mean of two quantiles, those of either type with partners of any type. */
#ifndef TSR_MOLECULE_PRIOR_TABLE_H
#define TSR_MOLECULE_PRIOR_TABLE_H

#include "core/status.h"
#include "molecule/prior_density.h"
#include "molecule/residue.h"

/* Classes of residues with a torsion density each. A residue before proline is
 * pre-Pro, unless it is Gly or Pro itself. */
typedef enum {
    TSR_RAMA_GENERAL,
    TSR_RAMA_ILE_VAL,
    TSR_RAMA_GLY,
    TSR_RAMA_PRE_PRO,
    TSR_RAMA_TRANS_PRO,
    TSR_RAMA_CIS_PRO,
    TSR_N_RAMA
} tsr_rama_class;

/* Names of the classes in the file. */
extern const char *const tsr_rama_name[TSR_N_RAMA];

/* The class of a residue. next_is_pro: a peptide bond joins the residue to a
 * following proline. omega_rad: torsion of the preceding peptide bond; NaN (no
 * such bond) counts as trans. */
tsr_rama_class tsr_rama_class_of(tsr_amino amino, int next_is_pro,
                                 double omega_rad);

/* A Gaussian density of a bond angle. */
typedef struct {
    long count;      /* residues in the training set */
    double mean, sd; /* rad */
} tsr_angle_gaussian;

/* All trained parameters. */
typedef struct {
    tsr_torsion_mixture torsion[TSR_N_RAMA];
    tsr_side_mixture side[TSR_N_AMINO];
    tsr_angle_gaussian angle[TSR_N_AMINO]; /* N-CA-C */
    /* Angstrom, by number of bodies per residue (TSR_BODIES_ONE, _TWO): */
    double contact[TSR_BODIES_TWO + 1][TSR_MAX_TYPE][TSR_MAX_TYPE];
    char *source; /* describes how the table was made; NULL: not in the file */
} tsr_prior_table;

/* Default centre of a missing side chain: the mean of the Gaussian with the
 * largest weight, in the frame of N-CA-C, Angstrom; 0 for ALA and GLY. */
void tsr_prior_table_side(const tsr_prior_table *table, tsr_amino amino,
                          double side[3]);

extern const char tsr_prior_table_format[]; /* first line of the file */

/* Reads a table. The caller frees it. Errors: TSR_E_NOINPUT, TSR_E_DATA (with
 * the line), TSR_E_NOMEM. */
tsr_status tsr_prior_table_read(const char *path, tsr_prior_table **out,
                                tsr_err *err);
void tsr_prior_table_free(tsr_prior_table *table);

#endif
