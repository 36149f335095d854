/* What the files that make a setup call of each other. */
#ifndef TSR_POSTERIOR_SETUP_PARTS_H
#define TSR_POSTERIOR_SETUP_PARTS_H

#include "posterior/setup.h"

/* ---- data.c ---- */

/* Reads the data, and makes a likelihood of them; with_data 0: what the bodies
 * scatter alone. A start is docked where an entry of the data says so. Errors:
 * those of reading; TSR_E_DATA (the data go beyond the form factors). */
tsr_status tsr_data_read(const tsr_config *config, int with_data, tsr_log *log,
                         tsr_molecule *molecule, tsr_data *data, tsr_err *err);
void tsr_data_clear(tsr_data *data);

/* A likelihood of the same data with terms of its own. */
tsr_status tsr_data_again(const tsr_config *config,
                          const tsr_molecule *molecule, const tsr_data *data,
                          tsr_likelihood **out, tsr_err *err);

/* Fits the first conformation to the curves, rigid: data->rigid, and the
 * `start` of a likelihood's terms. partial [n_pair][n_q]: its profiles, as that
 * likelihood takes them. Errors: TSR_E_NOMEM. */
tsr_status tsr_data_fit(tsr_data *data, const tsr_likelihood *likelihood,
                        const double *partial, tsr_err *err);

/* ---- devices.c ---- */

/* An engine for all probes of a likelihood. device NULL: the reference. */
tsr_status tsr_setup_make_engine(const tsr_setup *setup,
                                 const tsr_likelihood *likelihood,
                                 const tsr_device *device, int n_system,
                                 tsr_engine **out, tsr_err *err);
void tsr_devices_clear(tsr_devices *devices);

/* For n threads at most, as many systems of that likelihood's engine; engine
 * NULL: direct sums. Borrows all. Errors: those of tsr_batch_new. */
tsr_status tsr_profiler_make(const tsr_topology *topology,
                             const tsr_likelihood *likelihood,
                             tsr_engine *engine, int n, tsr_profiler *profiler,
                             tsr_err *err);
void tsr_profiler_clear(tsr_profiler *profiler);

/* partial [n_pair][n_q] out. */
tsr_status tsr_profiler_run(tsr_profiler *profiler,
                            const tsr_conformation *conformation,
                            double *partial, tsr_err *err);

/* The engine and the grid on the molecule itself, against a direct sum: partial
 * [n_pair][n_q], *worst (may be NULL) as of tsr_likelihood_check, out. */
tsr_status tsr_profiler_check(const tsr_setup *setup, tsr_profiler *profiler,
                              double *partial, double *worst, tsr_err *err);

/* ---- learn_error.c ---- */

/* What a likelihood's bodies, or its particles, lack of atoms with water of
 * their own, from draws of the prior: corrects its profiles and tells its terms
 * what is left; data.model_error is what was learnt last. profiler: of that
 * likelihood. Where there is nothing to learn
 * it from the log says so. Errors: TSR_E_NOMEM, those of the engine, of
 * tsr_chain_new and of tsr_likelihood_correct. */
tsr_status tsr_setup_model_error(const tsr_config *config,
                                 tsr_likelihood *likelihood,
                                 tsr_profiler *profiler, tsr_log *log,
                                 tsr_setup *setup, tsr_err *err);

/* For chains on the prior alone, from where the target's chains start. */
tsr_target tsr_setup_prior_target(const tsr_target *target, int n_state);

/* n steps of such a chain, warm: step sizes learn. Errors: TSR_E_INTERRUPTED
 * once a stop is asked for, "interrupted while WHAT". */
tsr_status tsr_setup_prior_walk(tsr_chain *chain, long n, int warm,
                                const char *what, tsr_err *err);

/* ---- atom_target.c ---- */

/* Where draws are of all atoms, and chains move them: the likelihood becomes
 * one of particles. Once the devices are open. Errors: those of
 * tsr_atom_curves_new, of tsr_atom_particles_new and of the engine's self-test.
 */
tsr_status tsr_atoms_ride(const tsr_config *config, tsr_log *log,
                          tsr_setup *setup, tsr_err *err);

/* Where they are, and bodies make the steps: a likelihood of all atoms' curves
 * with terms of its own, and setup->target.fine, which draws are then of. After
 * the engines are open and the model's error is known. partial [n_pair][n_q]:
 * room. Errors: TSR_E_CONFIG
 * (the atoms are not known), those of tsr_atom_curves_new and of reading the
 * terms. */
tsr_status tsr_atoms_take(const tsr_config *config, tsr_log *log,
                          tsr_setup *setup, double *partial, tsr_err *err);
void tsr_atoms_clear(tsr_atom_target *atoms);

#endif
