/* Curves of all atoms of a run's molecule, in any of its conformations.
 *
 * The atoms are those of the file; their places follow from the drawn backbone
 * and side-chain centres as in `tessera export --atoms all`
 * (posterior/all_atoms.h). The solvent is the layer outside the surface
 * (scattering/atom_model.h), with the conformation's own surface. */
#ifndef TSR_POSTERIOR_ATOM_CURVES_H
#define TSR_POSTERIOR_ATOM_CURVES_H

#include "gpu/device.h"
#include "molecule/topology.h"
#include "posterior/all_atoms.h"
#include "scattering/debye.h"
#include "scattering/form_factor.h"
#include "scattering/neutron.h"
#include "scattering/q_grid.h"

typedef struct tsr_atom_curves tsr_atom_curves;

typedef struct {
    const tsr_topology *topology; /* borrowed */
    const tsr_structure *model;   /* the molecule as model.pdb has it */
    const char *file;             /* that it was read from */
    double density;               /* of the solvent, e/A^3 */
    tsr_q_grid grid;
    const tsr_device *device; /* NULL: double precision on the host; borrowed */
} tsr_atom_curves_spec;

/* n_cut (may be NULL) out: residues that lack atoms in the file. Errors:
 * TSR_E_DATA (more than a tenth of them do), those of tsr_structure_read,
 * tsr_all_atoms_new, tsr_debye_sum_new. */
tsr_status tsr_atom_curves_new(const tsr_atom_curves_spec *spec, int *n_cut,
                               tsr_atom_curves **out, tsr_err *err);
void tsr_atom_curves_free(tsr_atom_curves *curves);

/* The atoms in their order, hydrogens of ligands included; how those of amino
 * acids are placed. */
const tsr_atoms *tsr_atom_curves_atoms(const tsr_atom_curves *curves);
tsr_all_atoms *tsr_atom_curves_all(tsr_atom_curves *curves);

/* All atoms in a conformation, with their water; free *model. Errors: those of
 * tsr_atom_model_new. */
tsr_status tsr_atom_curves_place(tsr_atom_curves *curves,
                                 const tsr_conformation *conformation,
                                 tsr_solvent_model solvent,
                                 tsr_atom_model **model, tsr_err *err);

/* Such a model for a Debye sum, of neutrons with a series that begins at
 * `origin`. It points into the model and *factor, which the caller frees, also
 * after an error. Errors: TSR_E_NOMEM. */
tsr_status tsr_atom_model_spec(const tsr_atom_model *model, double origin,
                               int n_q, double dq_inv_ang, double **factor,
                               tsr_debye_spec *out, tsr_err *err);

/* partial [TSR_N_COMP_PAIR][n_q] out, electrons squared, on the grid;
 * *radius_ang: r_m of G. Errors: TSR_E_NOMEM, those of the sum. */
tsr_status tsr_atom_curves_partial(tsr_atom_curves *curves,
                                   const tsr_conformation *conformation,
                                   double *partial, double *radius_ang,
                                   tsr_err *err);

/* The same as neutrons see them, with the three components of a series that
 * begins at `origin` (scattering/neutron.h), in fm^2. Errors: those of
 * tsr_neutron_apply, too. */
tsr_status tsr_atom_curves_neutron(tsr_atom_curves *curves,
                                   const tsr_conformation *conformation,
                                   const tsr_neutron *neutron, double origin,
                                   double *partial, tsr_err *err);

/* The bodies of a conformation with form factors of their own atoms, for
 * neutrons and the shares of D2O d2o [n]: a series where they differ, which
 * begins where the molecule has no contrast, so that the components do not
 * cancel. *match out: that share. Caller frees *out. Errors: as above. */
tsr_status tsr_atom_curves_bodies(tsr_atom_curves *curves,
                                  const tsr_conformation *conformation,
                                  const tsr_neutron *neutron, int n,
                                  const double *d2o, double *match,
                                  tsr_neutron_bodies **out, tsr_err *err);

/* How much hydration each body carries in a conformation (exposure [n_body]
 * out), with a table of three components: by its atoms, of which those of all
 * others are around; by its neighbours where the residue lacks atoms in the
 * file, or where curves is NULL; carried outside (scattering/form_factor.h).
 * Errors: TSR_E_NOMEM. */
tsr_status tsr_atom_curves_expose(tsr_atom_curves *curves,
                                  const tsr_form_factor_table *table,
                                  const tsr_topology *topology,
                                  const tsr_conformation *conformation,
                                  double *exposure, tsr_err *err);

#endif
