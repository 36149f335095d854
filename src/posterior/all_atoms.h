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
#include "gpu/device.h"
#include "likelihood/likelihood.h"
#include "molecule/structure.h"
#include "posterior/molecule.h"
#include "scattering/atom_model.h"
#include "scattering/neutron.h"
#include "scattering/q_grid.h"

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

/* ---- curves of all atoms ----
 *
 * Curves of all atoms of a run's molecule, in any of its conformations.
 *
 * The atoms are those of the file; their places follow from the drawn backbone
 * and side-chain centres as in `tessera export --atoms all`
 * (posterior/all_atoms.h). The solvent is the layer outside the surface
 * (scattering/atom_model.h), with the conformation's own surface. */

typedef struct tsr_atom_curves tsr_atom_curves;

/* Borrows the molecule, which is of a file. grid NULL: for places alone. device
 * NULL: double precision on the host. n_cut (may be NULL) out: residues that
 * lack atoms in the file. Errors: TSR_E_DATA (more than a tenth of them do),
 * those of tsr_structure_read, tsr_all_atoms_new, tsr_debye_sum_new. */
tsr_status tsr_atom_curves_new(const tsr_molecule *molecule,
                               const tsr_q_grid *grid, const tsr_device *device,
                               int *n_cut, tsr_atom_curves **out, tsr_err *err);

/* For exposures: *out NULL where the molecule has no atoms or lacks too many,
 * which the log says. Errors: TSR_E_NOMEM. */
tsr_status tsr_atom_curves_try(const tsr_molecule *molecule, tsr_log *log,
                               tsr_atom_curves **out, tsr_err *err);
void tsr_atom_curves_free(tsr_atom_curves *curves);

/* The atoms in their order, hydrogens of ligands included; how those of amino
 * acids are placed. */
const tsr_atoms *tsr_atom_curves_atoms(const tsr_atom_curves *curves);

/* All atoms in a conformation, with their water; free *model. Errors: those of
 * tsr_atom_model_new. */
tsr_status tsr_atom_curves_place(tsr_atom_curves *curves,
                                 const tsr_conformation *conformation,
                                 tsr_solvent_model solvent,
                                 tsr_atom_model **model, tsr_err *err);

/* partial [TSR_N_COMP_PAIR][n_q] out, on the grid: electrons squared, and
 * *radius_ang, r_m of G; or, as neutrons see the atoms, fm^2, with the three
 * components of a series that begins at `origin` (scattering/neutron.h), and no
 * r_m. neutron NULL: X-rays. Errors: TSR_E_NOMEM, those of the sum and of
 * tsr_neutron_apply. */
tsr_status tsr_atom_curves_partial(tsr_atom_curves *curves,
                                   const tsr_conformation *conformation,
                                   const tsr_neutron *neutron, double origin,
                                   double *partial, double *radius_ang,
                                   tsr_err *err);

/* The bodies of a conformation with form factors of their own atoms, for
 * neutrons and the shares of D2O d2o [n]: a series where they differ, which
 * begins where the molecule has no contrast, so that the components do not
 * cancel. *match out: that share. Caller frees *out. Errors: as above. */
tsr_status tsr_atom_curves_bodies(tsr_atom_curves *curves,
                                  const tsr_conformation *conformation,
                                  const tsr_neutron *neutron, int n,
                                  const double *d2o, double *match,
                                  tsr_neutron_bodies **out, tsr_err *err);

/* How much hydration each body of a molecule with components carries in a
 * conformation (exposure [n_body] out): by its atoms, of which those of all
 * others are around; by its neighbours where the residue lacks atoms in the
 * file, or where curves is NULL; carried outside (scattering/form_factor.h).
 * Errors: TSR_E_NOMEM. */
tsr_status tsr_atom_curves_expose(tsr_atom_curves *curves,
                                  const tsr_molecule *molecule,
                                  const tsr_conformation *conformation,
                                  double *exposure, tsr_err *err);

/* ---- particles ----
 *
 * All atoms of a run's molecule, with their water, as particles of an engine.
 *
 * The atoms go where those of the curves above go. The water is the layer
 * outside the surface (scattering/atom_model.h) that one conformation has, and
 * each of its beads rides on the atom that it belongs to: a rigid part takes
 * its own layer along, as in programs that put molecules together of domains
 * (Petoukhov & Svergun 2005, Biophys. J. 89, 1237). What that gets wrong where
 * the surface is another one, a run learns as it does for bodies
 * (docs/statistics.md). */

/* Of the curves' molecule, with the layer of its first conformation.
 * likelihood: of bodies, whose probes see the particles; sample [n_probe] of
 * neutrons. Takes the curves, which need no device, also after an error;
 * borrows all else but the samples. Errors: TSR_E_NOMEM, those of
 * tsr_atom_curves_place and tsr_neutron_apply. */
tsr_status tsr_atom_particles_new(const tsr_likelihood *likelihood,
                                  const tsr_neutron *sample,
                                  tsr_atom_curves *curves, tsr_particles **out,
                                  tsr_err *err);

#endif
