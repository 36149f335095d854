/* The same atoms as neutrons see them (docs/forward-model.md, Neutrons).
 *
 *     component 0  [b_X + n_H ((1 - f) b_H + f b_D) sinc(q d)]
 *                    exp(-B q^2 / 16 pi^2)
 *               1  rho_s V exp(-q^2 V^(2/3) / 4 pi)
 *               2  the layer, denser than the solvent by 3 % where c2 = 1
 *
 * in fm, with d the length of the bond to a hydrogen, f the part of an atom's
 * hydrogens that is deuterium: in the share of D2O in the solvent for those of
 * N, O and S, which exchange, less for the amides of the backbone, and as the
 * chain was grown for the others. */
#ifndef TSR_SCATTERING_NEUTRON_H
#define TSR_SCATTERING_NEUTRON_H

#include "scattering/atom_model.h"

enum { TSR_NEUTRON_CHAINS = 16 };

typedef struct {
    char chain[8];
    double fraction; /* of its hydrogens that do not exchange */
} tsr_deuterated;

typedef struct {
    double d2o;      /* of the solvent's volume, 0 to 1 */
    double exchange; /* of the backbone's amides; all other labile hydrogens
                        exchange in full */
    int n_deuterated;
    tsr_deuterated deuterated[TSR_NEUTRON_CHAINS];
} tsr_neutron;

/* Scattering length density of H2O with that share of D2O at 20 C, fm/A^3 (ten
 * times the usual 1e-6/A^2). */
double tsr_neutron_solvent(double d2o);

/* Turns a model of the layer into that for neutrons: its kinds have lengths,
 * its density and its mass are those in this solvent. *match out: the share of
 * D2O where I(0) of the model without a layer vanishes (c1 = 1), below 0 or
 * above 1 where none does. It is told to `log` (NULL: silent). Errors:
 * TSR_E_DATA (an element without a length here, a chain that the file lacks),
 * TSR_E_NOMEM. */
tsr_status tsr_neutron_apply(const tsr_neutron *neutron, const tsr_atoms *atoms,
                             tsr_atom_model *model, tsr_log *log, double *match,
                             tsr_err *err);

/* b_X + n_H (...) sinc(q d) of such a kind, fm. */
double tsr_neutron_amplitude(const tsr_atom_kind *kind, double q_inv_ang);

#endif
