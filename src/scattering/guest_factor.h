/* Form factors of what is no amino acid, from its own atoms (molecule/guest.h).
 *
 * As those of the trained types begin, for one occurrence: with r_k the
 * distance of atom k from the body's centre,
 *
 *     F^a(q)  = sum_k f_k^a(q) sinc(q r_k)
 *     E^ab(q) = sum_k sum_l f_k^a f_l^b sinc(q r_kl) - F^a F^b
 *
 * so that the body's own intensity is that of its atoms. Volumes, hydrogens and
 * what an exposed atom carries of water are those of all-atom profiles with
 * hydration at the atoms (TSR_SOLVENT_ATOMS), which the tables were trained on;
 * the exposure is that of the atoms in the file. */
#ifndef TSR_SCATTERING_GUEST_FACTOR_H
#define TSR_SCATTERING_GUEST_FACTOR_H

#include "molecule/guest.h"
#include "molecule/structure.h"
#include "scattering/atom_model.h"
#include "scattering/form_factor.h"

/* Atoms of a model about a centre. */
typedef struct {
    int n;
    int *atom;    /* [n] of the model */
    double *r;    /* [n] from the centre, Angstrom */
    double *r_kl; /* [n][n] */
} tsr_cluster;

/* Room for n atoms; 0: out of memory, clear it then too. */
int tsr_cluster_make(int n, tsr_cluster *cluster);
void tsr_cluster_clear(tsr_cluster *cluster);

/* Distances, once `n` and `atom` are there. */
void tsr_cluster_measure(const tsr_atom_model *model, const double centre[3],
                         tsr_cluster *cluster);

/* F^a [3] and E^ab [6] of three components at q_k = k dq, from amplitudes
 * `factor` [TSR_ATOM_COMP][model->n_type][n_q]. */
void tsr_cluster_factor(const tsr_cluster *cluster, const tsr_atom_model *model,
                        const double *factor, int n_q, double dq_inv_ang, int k,
                        double *f, double *e);

/* A table with a type for each body of the guests behind those of `table`,
 * which may have one component or three. atoms: all of the file. density: of
 * the solvent, e/A^3. Caller frees *out, which an error leaves as it was.
 * Errors: TSR_E_NOMEM. */
tsr_status tsr_form_factor_of_guests(const tsr_form_factor_table *table,
                                     const tsr_guests *guests,
                                     const tsr_atoms *atoms, double density,
                                     tsr_form_factor_table **out, tsr_err *err);

#endif
