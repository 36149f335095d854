/* All heavy atoms of the input structure, placed at a drawn conformation. The
 * backbone is the drawn one. Each side chain, except that of proline, keeps its
 * conformation of the input, and turns about CA-CB until its centre of mass is
 * nearest to the drawn centre. The ring of proline is attached to N, CA and C,
 * and does not turn.
 *
 * Bonds and angles within a residue come from the input, and those between
 * residues from the model. Side-chain torsions beyond CA-CB stay as in the
 * input, so that atoms of different residues may overlap. A scattering curve
 * does not resolve these overlaps. Guests (ligands, ions, nucleic acid) are
 * listed after all amino acids. */
#ifndef TSR_POSTERIOR_ALL_ATOMS_H
#define TSR_POSTERIOR_ALL_ATOMS_H

#include "core/status.h"
#include "gpu/device.h"
#include "molecule/structure.h"
#include "posterior/molecule.h"
#include "scattering/atom_model.h"
#include "scattering/neutron.h"
#include "scattering/q_grid.h"

/* Placement of all atoms of an input structure. */
typedef struct tsr_all_atoms tsr_all_atoms;

/* Matches the residues of `input` with those of `model`. Both may be freed
 * afterwards. Errors: TSR_E_DATA (the residues differ: the message names the
 * first difference), TSR_E_NOMEM. */
tsr_status tsr_all_atoms_new(const tsr_model_atoms *model,
                             const tsr_structure *input, tsr_all_atoms **out,
                             tsr_err *err);
void tsr_all_atoms_free(tsr_all_atoms *all);

/* The atoms in the order and with the names of the input. Their coordinates and
 * the index `ca` are those of the input, too. */
const tsr_model_atoms *tsr_all_atoms_list(const tsr_all_atoms *all);

/* Places all atoms.
 * model_xyz  [model n_atom][3]  in   Angstrom, atoms of model.pdb
 * xyz        [n_atom][3]        out  Angstrom
 */
void tsr_all_atoms_place(const tsr_all_atoms *all, const double (*model_xyz)[3],
                         double (*xyz)[3]);

/* ---- scattering of all atoms ----
 *
 * Partial profiles of all atoms of a run's molecule, in any conformation.
 *
 * The atoms are those of the structure file, placed as `tessera export --atoms
 * all` places them. Hydration is a layer of water beads outside the molecular
 * surface (scattering/atom_model.h), computed anew for each conformation. */

/* Placement, hydration and Debye sum of all atoms, with their workspace. */
typedef struct tsr_atom_curves tsr_atom_curves;

/* Prepares the placement and the Debye sum. The molecule is borrowed and must
 * come from a file.
 * grid    q grid of the profiles; NULL: atoms are placed, nothing is summed
 * device  computes the sums; NULL: the host, in double precision
 * n_cut   out, may be NULL: number of residues that lack atoms in the file
 * Errors: TSR_E_DATA (more than a tenth of the residues lack atoms), those of
 * tsr_structure_read, tsr_all_atoms_new, tsr_debye_sum_new. */
tsr_status tsr_atom_curves_new(const tsr_molecule *molecule,
                               const tsr_q_grid *grid, const tsr_device *device,
                               int *n_cut, tsr_atom_curves **out, tsr_err *err);

/* For hydration alone: as tsr_atom_curves_new without grid and device. *out is
 * NULL if the molecule is built from a sequence, or if its file cannot be used,
 * for a reason that is logged. Errors: TSR_E_NOMEM. */
tsr_status tsr_atom_curves_try(const tsr_molecule *molecule, tsr_log *log,
                               tsr_atom_curves **out, tsr_err *err);
void tsr_atom_curves_free(tsr_atom_curves *curves);

/* Scatterers of all atoms and their water in a conformation. absent [n_body]:
 * residues with these bodies are left out, and the others are in solution
 * without them; NULL: none. The caller frees *model. Errors: those of
 * tsr_atom_model_new. */
tsr_status tsr_atom_curves_place(tsr_atom_curves *curves,
                                 const tsr_conformation *conformation,
                                 const int *absent, tsr_solvent_model solvent,
                                 tsr_atom_model **model, tsr_err *err);

/* Partial profiles of a conformation.
 * absent      bodies that are left out (tsr_atom_curves_place), or NULL
 * neutron     NULL: X-rays
 * origin      neutrons: share x0 of D2O about which the contrast is expanded,
 *             C = (1, x - x0, ...) (scattering/neutron.h)
 * partial     [TSR_N_COMP_PAIR][n_q]  out  electrons squared; neutrons: fm^2
 * radius_ang  out  r_m of the expansion factor G(q); neutrons: not set
 * Errors: TSR_E_NOMEM, those of the Debye sum and of tsr_neutron_apply. */
tsr_status tsr_atom_curves_partial(tsr_atom_curves *curves,
                                   const tsr_conformation *conformation,
                                   const int *absent,
                                   const tsr_neutron *neutron, double origin,
                                   double *partial, double *radius_ang,
                                   tsr_err *err);

/* Bodies of a conformation with neutron form factors from their own atoms. d2o
 * [n]: shares of D2O of the curves. If they differ, the form factors are linear
 * in the share of D2O, expanded about the match point: the molecule has no
 * contrast there, so that the two terms do not cancel. If they are equal, the
 * form factors are those at this share. *match out: the share of D2O at the
 * match point. The caller frees *out. Errors: those of tsr_atom_curves_place,
 * tsr_neutron_apply and tsr_neutron_bodies_new, TSR_E_NOMEM. */
tsr_status tsr_atom_curves_bodies(tsr_atom_curves *curves,
                                  const tsr_conformation *conformation,
                                  const tsr_neutron *neutron, int n,
                                  const double *d2o, double *match,
                                  tsr_neutron_bodies **out, tsr_err *err);

/* Hydration of each body in a conformation, for a molecule with form factors of
 * three components: solute, displaced solvent, hydration. The exposure of a
 * body is the sum over its atoms, each exposed where no other atom of the
 * molecule covers its surface. For guests, for residues that lack atoms in the
 * file, and for all bodies if curves is NULL, exposure is estimated from
 * neighbouring bodies. Then each body passes a share of its exposure to its
 * neighbours, so that hydration lies outside the body that it touches; the sum
 * stays the same, and single values may become negative
 * (scattering/form_factor.h).
 * absent    [n_body]  in   bodies that are left out, or NULL
 * exposure  [n_body]  out  0 for those that are left out
 * Errors: TSR_E_NOMEM. */
tsr_status tsr_atom_curves_expose(tsr_atom_curves *curves,
                                  const tsr_molecule *molecule,
                                  const tsr_conformation *conformation,
                                  const int *absent, double *exposure,
                                  tsr_err *err);

#endif
