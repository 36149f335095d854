/* Partial profiles of a structure file, whatever stands for the molecule: the
 * place where a kind of bodies becomes numbers that a fit can use; a new kind
 * is a case here and nowhere else. */
#ifndef TSR_POSTERIOR_PROFILE_PARTIALS_H
#define TSR_POSTERIOR_PROFILE_PARTIALS_H

#include "core/log.h"
#include "core/status.h"
#include "molecule/structure.h"
#include "scattering/atom_model.h"
#include "scattering/neutron.h"
#include "scattering/profile_fit.h"
#include "scattering/profile_method.h"

typedef enum {
    TSR_PROFILE_ATOMS,
    TSR_PROFILE_TWO,
    TSR_PROFILE_ONE
} tsr_profile_bodies;

/* What scatters, in what, and where to look for it. */
typedef struct {
    tsr_profile_bodies bodies;
    tsr_solvent_model solvent;  /* of atoms; that of bodies is their tables' */
    double density;             /* of the solvent, e/A^3 */
    const tsr_neutron *neutron; /* NULL: X-rays. Of atoms in the layer model;
                                   the solvent's density is then its own */
    const char *device;         /* as --device takes it, or "reference" */
    tsr_profile_method method;
    double q_max_inv_ang;     /* of the curves that will be asked for */
    const char *form_factors; /* a table instead of the shipped one, for bodies
                                 one and two; NULL: the shipped one, of three
                                 components. One of one component, own or
                                 published, gives partials of one: no c1, no
                                 c2, and water alone as solvent */
} tsr_profile_spec;

/* What stays from one structure to the next: device, program, tables. */
typedef struct tsr_profile_maker tsr_profile_maker;

typedef struct {
    char *path;
    int n_body;  /* atoms or bodies */
    int n_chain; /* of polymers */
    tsr_partials partials;
    double mass;               /* Da, hydrogens included */
    double volume;             /* A^3, displaced where c1 = 1 */
    double radius_ang;         /* mean of the displaced spheres where c1 = 1 */
    double layer_contrast;     /* e/A^3 where c2 = 1; for neutrons 1e-6/A^2 */
    int is_neutron;            /* profiles are in fm^2 */
    double match_d2o;          /* for neutrons: share of D2O without contrast */
    double usual_c2;           /* what most proteins have */
    double rg_ang, d_max_ang;  /* of the atoms or bodies, by mass */
    tsr_profile_method method; /* that computed it */
    double seconds, predicted_s; /* in the Debye sum; a device's opening
                                    and the build of its program are of
                                    the prediction alone */
} tsr_profile_structure;

/* What spec points to is borrowed during the call.
 * Errors: TSR_E_DEVICE, TSR_E_NOINPUT, TSR_E_USAGE. */
tsr_status tsr_profile_maker_new(const tsr_profile_spec *spec, tsr_log *log,
                                 tsr_profile_maker **out, tsr_err *err);
void tsr_profile_maker_free(tsr_profile_maker *maker);

/* Reads and computes. What the file holds and what was assumed goes to the log,
 * progress too. Bodies one and two refuse (TSR_E_DATA) nucleotides, sugars,
 * ligands and unknown residues with a list of them. Errors: those of reading,
 * TSR_E_DEVICE. The caller clears it, also after an error. */
tsr_status tsr_profile_compute(tsr_profile_maker *maker, const char *path,
                               tsr_profile_structure *out, tsr_err *err);

/* The same of all atoms that were read already, under the name `path`; tell 0:
 * what was assumed is not told. */
tsr_status tsr_profile_compute_atoms(tsr_profile_maker *maker, const char *path,
                                     const tsr_atoms *atoms, int tell,
                                     tsr_profile_structure *out, tsr_err *err);
void tsr_profile_structure_clear(tsr_profile_structure *structure);

/* What I = 1 (electron squared, or fm^2) is in 1/cm at 1 mg/ml: N_A r_e^2 /
 * mass, for neutrons with 1 fm in r_e's place; 0 where the mass is not known.
 */
double tsr_profile_absolute(const tsr_profile_structure *structure);

/* What computes: "reference", or the device and kernel; for the log. */
const char *tsr_profile_maker_describe(const tsr_profile_maker *maker);

#endif
