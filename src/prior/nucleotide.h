/* Densities of the torsions of nucleotides in single strands.
 *
 * No library of unpaired nucleotides in solution is at hand, so what is known
 * of the conformers of folded and bound ones is put together:
 *
 *     w_h  the helix: A-RNA; B-DNA with its variant BII; A-DNA where the
 *          sugar is C3'-endo. Means and deviations: Schneider, Neidle &
 *          Berman 1997, Biopolymers 42, 113 (International Tables F, table
 *          23.3.2.1)
 *     w_r  the 46 conformers of RNA's backbone, each with equal weight, since
 *          outside the helix none prevails: Richardson et al. 2008, RNA 14,
 * 465, with a third of the half-widths that their program Suitename gives
 *          clusters. DNA has the same rotamers (Svozil et al. 2008, Nucleic
 *          Acids Res. 36, 3690; Cerny et al. 2020, ibid. 48, 6367)
 *     w_u  uniform: what is none of these
 *
 * w_h = 0.37 is the share of the class AA00 among steps of RNA in crystals
 * (DNATCO 3.1), w_u = 0.05 and the weights of bases that are syn are choices.
 * Conformers whose pairs of torsions have the same staggered positions are one
 * part of a mixture, with the mean and deviation of them all. */
#ifndef TSR_PRIOR_NUCLEOTIDE_H
#define TSR_PRIOR_NUCLEOTIDE_H

#include "molecule/nucleic.h"
#include "molecule/torsion_density.h"

/* phi and psi of a class (molecule/nucleic.h); where it has one torsion alone
 * the other is uniform. */
void tsr_nucleotide_mixture(tsr_nucleic_class class,
                            tsr_torsion_mixture *mixture);

#endif
