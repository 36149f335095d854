/* Partial profiles of a structure file, from all atoms or from bodies, for a
 * fit of c1 and c2. A new model of scatterers is one more case in this file. */
#ifndef TSR_POSTERIOR_PROFILE_PARTIALS_H
#define TSR_POSTERIOR_PROFILE_PARTIALS_H

#include "core/log.h"
#include "core/status.h"
#include "molecule/structure.h"
#include "scattering/atom_model.h"
#include "scattering/form_factor.h"
#include "scattering/neutron.h"
#include "scattering/profile_fit.h"
#include "scattering/profile_method.h"

/* Scatterers: all atoms, or two or one bodies per residue. */
typedef enum {
    TSR_PROFILE_ATOMS,
    TSR_PROFILE_TWO,
    TSR_PROFILE_ONE
} tsr_profile_bodies;

/* Model of the scatterers, probe, solvent, and device. */
typedef struct {
    tsr_profile_bodies bodies;
    tsr_solvent_model solvent;  /* of atoms; bodies use the solvent of their
                                   tables */
    double density;             /* of the solvent, electrons/A^3 */
    const tsr_neutron *neutron; /* NULL: X-rays. Otherwise needs bodies =
                                   ATOMS and the layer model, and the solvent's
                                   density follows from the sample */
    const char *device;         /* argument of --device, or "reference" */
    tsr_profile_method method;
    double q_max_inv_ang;     /* largest q of the curves to be fitted */
    const char *form_factors; /* table for bodies; NULL: the shipped one, with
                                 three components. A table of one component
                                 fixes c1, c2 and water as the solvent */
} tsr_profile_spec;

/* Device, program and tables, which are used for one structure after the
 * other. */
typedef struct tsr_profile_maker tsr_profile_maker;

/* Partial profiles and properties of one structure. */
typedef struct {
    char *path;
    int n_body;  /* number of atoms or bodies */
    int n_chain; /* number of polymer chains */
    tsr_partials partials;
    double mass;           /* Da, hydrogens included */
    double volume;         /* displaced volume at c1 = 1, A^3 */
    double radius_ang;     /* mean radius of displaced spheres at c1 = 1 */
    double layer_contrast; /* excess density of the hydration layer at c2 =
                              1, electrons/A^3; neutrons: 1e-6/A^2 */
    int is_neutron;        /* 1: profiles are in fm^2, else electrons squared */
    double match_d2o;      /* neutrons: share of D2O at the match point */
    double usual_c2;       /* c2 of most proteins in this model */
    double rg_ang, d_max_ang;  /* of the atoms or bodies; Rg by mass */
    tsr_profile_method method; /* method that computed the sum */
    double seconds,
        predicted_s; /* duration of the Debye sum. The prediction also includes
                        opening the device and building its program */
} tsr_profile_structure;

/* Opens the device and reads the tables. The log is borrowed until the maker is
 * freed, and everything that spec points to during the call. Errors:
 * TSR_E_DEVICE, TSR_E_NOINPUT, TSR_E_USAGE (a table for another number of
 * bodies), TSR_E_NOMEM, those of reading tables. */
tsr_status tsr_profile_maker_new(const tsr_profile_spec *spec, tsr_log *log,
                                 tsr_profile_maker **out, tsr_err *err);
void tsr_profile_maker_free(tsr_profile_maker *maker);

/* Announces n structures, which threads may compute at the same time, in any
 * order (tsr_profile_sum_expect). */
void tsr_profile_maker_expect(tsr_profile_maker *maker, int n);

/* The density of the solvent for the profiles that follow, electrons/A^3; of no
 * effect on neutrons. Errors: those of reading tables. */
tsr_status tsr_profile_maker_set_density(tsr_profile_maker *maker,
                                         double density, tsr_err *err);

/* Reads a structure and computes its partial profiles. The log receives the
 * content of the file, the assumptions made, and the progress. In models of
 * bodies, nucleotides, sugars, ligands, ions and unknown residues have bodies
 * made from their own atoms (molecule/guest.h). The caller clears *out, also
 * after an error. Errors: those of reading, TSR_E_DEVICE. */
tsr_status tsr_profile_compute(tsr_profile_maker *maker, const char *path,
                               tsr_profile_structure *out, tsr_err *err);

/* tsr_profile_compute for all atoms, from memory; `path` is their name.
 * is_logged 0: the assumptions are not logged. */
tsr_status tsr_profile_compute_atoms(tsr_profile_maker *maker, const char *path,
                                     const tsr_atoms *atoms, int is_logged,
                                     tsr_profile_structure *out, tsr_err *err);
void tsr_profile_structure_clear(tsr_profile_structure *structure);

/* ---- bodies of a structure, for an engine ---- */

/* The bodies of a structure with the shipped table of three components. Each
 * body keeps the hydration that it has in the file. */
typedef struct {
    tsr_pool pool;
    int n;
    double (*xyz)[3]; /* [n] in the file, Angstrom */
    int *residue;     /* [n] index of the residue in the file */
    double mass;      /* Da, hydrogens included */
    tsr_q_grid grid;
    tsr_coarse_spec coarse;
} tsr_bodies;

/* Reads the bodies, with a grid for distances up to d_bound_ang. The maker is
 * for bodies. The caller clears out->pool, also after an error. Errors: those
 * of tsr_molecule_read and tsr_coarse_spec_of. */
tsr_status tsr_bodies_read(tsr_profile_maker *maker, const char *path,
                           double d_bound_ang, tsr_bodies *out, tsr_err *err);

/* Bodies at xyz [n_body][3]: of each of the residues ("LYS") its one body, or
 * its backbone and its side chain; hydration from the number of neighbours.
 * Else as tsr_bodies_read. Errors: TSR_E_DATA (not an amino acid), TSR_E_USAGE
 * (n_body is not the number of bodies), those of tsr_coarse_spec_of. */
tsr_status tsr_bodies_of_residues(tsr_profile_maker *maker, int n_residue,
                                  const char *const *residue, int n_body,
                                  const double (*xyz)[3], double d_bound_ang,
                                  tsr_bodies *out, tsr_err *err);

/* The profile of a conformation of the bodies: sum [TSR_N_COMP_PAIR][n_q] of an
 * engine, to which the self terms are added. The caller clears *out, also after
 * an error. Errors: TSR_E_NOMEM. */
tsr_status tsr_bodies_profile(const tsr_bodies *bodies, const double *sum,
                              tsr_profile_structure *out, tsr_err *err);

/* Fits partial profiles to measured data, smeared by their instrument, with the
 * noise of the data set: curve [saxs->n] out, scale I + background. Errors:
 * those of tsr_partial_curves_of_data and tsr_profile_fit_make. */
tsr_status tsr_profile_fit_data(const tsr_profile_fit_options *how,
                                const tsr_partials *partials,
                                const tsr_saxs *saxs, tsr_profile_fit *fit,
                                double *curve, tsr_err *err);

/* Intensity in 1/cm at 1 mg/ml that corresponds to I = 1 electron squared (or
 * fm^2): N_A r_e^2 / mass, for neutrons with 1 fm instead of r_e; 0 if the mass
 * is unknown. */
double tsr_profile_absolute(const tsr_profile_structure *structure);

/* Text for the log, borrowed: "reference", or device and kernel. */
const char *tsr_profile_maker_describe(const tsr_profile_maker *maker);

#endif
