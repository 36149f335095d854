/* Secondary structure from the hydrogen bonds of the backbone, after Kabsch &
 * Sander 1983, Biopolymers 22:2577 (DSSP). */
#ifndef TSR_MOLECULE_SECONDARY_H
#define TSR_MOLECULE_SECONDARY_H

#include "core/status.h"

enum { TSR_COIL = 'C', TSR_HELIX = 'H', TSR_STRAND = 'E' };

/* Backbone atoms of a residue. */
typedef struct {
    double n[3], ca[3], c[3], o[3]; /* Angstrom */
    int has_all;                    /* 1: all four atoms are present */
    int is_proline;                 /* 1: its N has no hydrogen */
} tsr_backbone;

/* Returns 1 if a peptide bond joins `residue` to the preceding element of its
 * array; 0 also if one of them lacks a backbone atom. Do not call it for the
 * first element. */
int tsr_backbone_follows(const tsr_backbone *residue);

/* Assigns one letter per residue, kind [n] out: TSR_HELIX in an alpha, 3-10 or
 * pi helix (H, G, I of DSSP), TSR_STRAND in a ladder of at least two bridges
 * (E), TSR_COIL elsewhere and in incomplete residues. Cost: O(n^2). Errors:
 * TSR_E_NOMEM. */
tsr_status tsr_secondary_find(int n, const tsr_backbone *residue, char *kind,
                              tsr_err *err);

#endif
