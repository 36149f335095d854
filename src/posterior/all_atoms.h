/* All heavy atoms of the input at a drawn conformation: the backbone where it
 * was drawn, each side chain as it was in the input, turned about CA-CB so that
 * its centre comes nearest to the drawn one.
 *
 * Bonds and angles within a residue are those of the input; between residues
 * those of the model. Side chains keep their other torsions, so that atoms of
 * different residues may overlap where the curve cannot tell. What is no amino
 * acid comes last, where the model has it. */
#ifndef TSR_POSTERIOR_ALL_ATOMS_H
#define TSR_POSTERIOR_ALL_ATOMS_H

#include "core/status.h"
#include "molecule/model_atoms.h"
#include "molecule/structure.h"

typedef struct tsr_all_atoms tsr_all_atoms;

/* Neither is needed afterwards. Errors: TSR_E_DATA (the residues of the two
 * differ: names the first), TSR_E_NOMEM. */
tsr_status tsr_all_atoms_new(const tsr_model_atoms *model,
                             const tsr_structure *input, tsr_all_atoms **out,
                             tsr_err *err);
void tsr_all_atoms_free(tsr_all_atoms *all);

/* The atoms, in the order of the input, with its names; xyz and ca as there. */
const tsr_model_atoms *tsr_all_atoms_list(const tsr_all_atoms *all);

/* model_xyz [model n_atom][3] -> xyz [n_atom][3]. */
void tsr_all_atoms_place(const tsr_all_atoms *all, const double (*model_xyz)[3],
                         double (*xyz)[3]);

/* From now on n points ride on atoms of amino acids: each turns with its atom,
 * as a part of what carries that. atom [n] ascends; xyz [n][3] is where they
 * are while the model's atoms are at model_xyz. Once. Errors: TSR_E_NOMEM. */
tsr_status tsr_all_atoms_ride(tsr_all_atoms *all, int n, const int *atom,
                              const double (*model_xyz)[3],
                              const double (*xyz)[3], tsr_err *err);

/* One amino acid: model [its atoms in the model][3] -> xyz, its atoms and then
 * what rides on them. Returns how many these are. */
int tsr_all_atoms_place_residue(const tsr_all_atoms *all, int residue,
                                const double (*model)[3], double (*xyz)[3]);

#endif
