/* From a configuration to a target that can be sampled. Each part has one
 * struct, one function that makes it and one that frees it: tables and molecule
 * (posterior/molecule.h), data, devices, the all-atom target, and starts of the
 * chain groups. */
#ifndef TSR_POSTERIOR_SETUP_H
#define TSR_POSTERIOR_SETUP_H

#include "core/interrupt.h"
#include "core/log.h"
#include "gpu/engine_device.h"
#include "likelihood/likelihood.h"
#include "posterior/all_atoms.h"
#include "posterior/config.h"
#include "posterior/molecule.h"
#include "sampler/all_atom_chain.h"
#include "sampler/sampler.h"
#include "scattering/profile_fit.h"
#include "surrogate/surrogate.h"

#include <pthread.h>

/* Measured data, and the scattering of the molecule for each probe. */
typedef struct {
    tsr_pool pool;
    int n_probe; /* number of probes (X-rays; each neutron sample) */
    tsr_scattering *scattering;                    /* [n_probe] */
    tsr_parameter engine_contrast[TSR_N_CONTRAST]; /* of X-rays where the
                                                      correction of bodies by
                                                      all atoms carries c1 */
    tsr_neutron *sample; /* [n_probe] neutrons: the sample. Curves of one sample
                            in several shares of D2O have one probe; d2o is then
                            that of the first curve */
    tsr_neutron_bodies **neutron; /* [n_probe]  NULL: X-rays */
    double *exposure; /* [n_body] exposed atoms of each body at the start, in
                         proportion to which it carries hydration; NULL: form
                         factors without a hydration component, or no X-rays */
    tsr_atom_curves *atoms; /* atoms from which the exposure was computed; NULL:
                               it was estimated from bodies */
    tsr_likelihood *likelihood; /* NULL without data */
    tsr_profile_fit *rigid;     /* [n_term] rigid fit of the first conformation
                                   to each curve, n_point 0: no fit. NULL
                                   without engines */
    char *model_error; /* description of the learnt model error, for the trace;
                          NULL: nothing was learnt */
} tsr_data;

/* Devices and the engines on them. */
typedef struct {
    tsr_pool pool;
    int n; /* number of engines and devices; 0: no term needs profiles */
    tsr_device **device;     /* [n]  NULL: the reference engine */
    tsr_engine_group *group; /* [n]  each engine with its number of chains */
    tsr_engine_choice choice;
    int *unit;  /* [n_body] rigid unit of a body; -1: the body belongs to no
                   rigid unit. NULL: structure.starts is given, or the engine is
                   the reference */
    char *text; /* description, one line for each engine; NULL: no engine */
    tsr_surrogate *surrogate; /* NULL: no surrogate moves */
} tsr_devices;

/* The target whose draws are conformations of all atoms. An all-atom chain
 * above each ladder makes the draws from what the chains of bodies offer. */
typedef struct {
    tsr_pool pool;
    const tsr_data *data;
    tsr_likelihood *likelihood; /* of all atoms, with its own terms; NULL: draws
                                   are of bodies */
    double radius_ang;          /* r_m of G (scattering/contrast.h) */
    int n;                      /* number of threads */
    struct tsr_atom_slot *slot; /* [n] atoms of one thread */
    pthread_mutex_t lock;
    tsr_all_atom_model model;
} tsr_atom_target;

/* Starting conformations of the groups of chains, drawn from the prior or
 * members of structure.pool. */
typedef struct {
    int n; /* number of groups times number of states; 0: all chains start
              from structure.starts, or from the first conformation */
    tsr_conformation **state; /* [n], ordered by group */
    double *log_evidence;     /* [groups] log evidence from the populations
                                 phase; NaN before it */
    double first_chi2;        /* chi2 of the first conformation, for the report,
                                 although no chain starts there */
} tsr_starts;

/* Everything that a run needs before its first step. */
typedef struct {
    const tsr_watch *watch; /* of the set-up after tsr_setup_read, borrowed;
                               NULL: tsr_stop_requested stops the set-up */
    tsr_tables tables;
    tsr_molecule molecule;
    tsr_data data;
    tsr_devices devices;
    tsr_atom_target atoms;
    tsr_starts starts;
    int n_thread, n_chain;
    tsr_archive *known_error; /* model errors of a checkpoint, rewound; NULL:
                                 they are learnt */
    const void *move_options[TSR_N_MOVE];
    tsr_regrow_options regrow; /* those of the configuration, with the pool */
    tsr_target target;         /* points into the members above */
} tsr_setup;

/* Reads structure, tables and data, and makes prior and likelihood. with_data
 * 0: no likelihood. If the configuration defines no flexible ranges, the ranges
 * found in the structure file are written into *config. The log receives a
 * description of molecule and data. The setup must not be moved in memory. The
 * caller clears it, also after an error. Errors: those of tsr_tables_read,
 * tsr_molecule_read and tsr_data_read, TSR_E_CONFIG. */
tsr_status tsr_setup_read(tsr_config *config, int with_data, tsr_log *log,
                          tsr_setup *setup, tsr_err *err);
void tsr_setup_clear(tsr_setup *setup);

/* Opens and tests the devices, divides the chains among them, makes an engine
 * on each, checks each engine on the molecule, and learns the model error.
 * Devices get numbers of chains in proportion to an estimate of their speed.
 * Raises n_thread to the number of engines. n_chain 0: sampler.chains, which is
 * resolved if it is auto; setup->n_chain is the number in use. Without a term
 * that needs profiles, only the sampler's settings are resolved. Errors:
 * TSR_E_DEVICE, TSR_E_CONFIG, TSR_E_NOMEM, those of
 * tsr_setup_learn_model_error, TSR_E_INTERRUPTED (setup->watch). */
tsr_status tsr_setup_engine(tsr_config *config, int n_chain, tsr_log *log,
                            tsr_setup *setup, tsr_err *err);

/* To be called only for sampler.start: prior or pool. Draws the starting states
 * of each group of chains from the prior. from_pool 1: each chain is a group,
 * whose states start at members with P(X) > 0, evenly spread over the pool.
 * Does nothing without data, with frozen structures, or with structure.starts.
 * is_restored 1: the states will come from a checkpoint, and only memory is
 * prepared. Called after tsr_setup_engine. Errors: those of tsr_chain_start,
 * TSR_E_NOMEM, TSR_E_DATA (P(X) is 0 for all members), TSR_E_INTERRUPTED (a
 * stop was requested). */
tsr_status tsr_setup_draw_starts(int from_pool, int is_restored, tsr_log *log,
                                 tsr_setup *setup, tsr_err *err);

/* The rigid fits as JSON for the trace: an array with one object for each
 * curve. The caller frees the text; NULL: there is no fit, or out of memory. */
char *tsr_data_rigid_text(const tsr_data *data);

/* For warm-up, between two steps: learns the model error of the bodies again
 * from conformations that the coldest replicas have visited since the last
 * call, if they are at least eight. last 1: the all-atom chains stop collecting
 * conformations. tsr_sampler_refresh must follow. On several ranks, rank 0
 * calls this function, and the others call it as tsr_sampler_learn. Errors:
 * those of tsr_setup_relearn_model_error and core/ranks.h. */
tsr_status tsr_setup_relearn_from_chains(const tsr_config *config, tsr_log *log,
                                         tsr_sampler *sampler, int last,
                                         tsr_setup *setup, tsr_err *err);

/* Learns the model error of the bodies again from n conformations of the chains
 * (sampler/all_atom_chain.h), so that bodies approximate all atoms best near
 * the posterior. tsr_sampler_refresh must follow. If the ratio of a curve is
 * not positive, its correction and error stay as they were, and the log names
 * the reason. Errors: TSR_E_NOMEM, those of tsr_likelihood_correct. */
tsr_status tsr_setup_relearn_model_error(const tsr_config *config, int n,
                                         const tsr_all_atom_example *example,
                                         tsr_log *log, tsr_setup *setup,
                                         tsr_err *err);

/* All-atom partial profiles for all probes, self terms S_ab included.
 * Components that fixed c1 and c2 make redundant are folded into the others.
 * workspace   [TSR_N_COMP_PAIR][n_q]  overwritten
 * partial     [n_atom_pair][n_q]      out
 * radius_ang  out  r_m of the atoms' expansion factor G(q); set by X-rays alone
 * Errors: those of tsr_atom_curves_partial. */
tsr_status tsr_data_sum_atoms(const tsr_data *data,
                              const tsr_likelihood *likelihood,
                              tsr_atom_curves *curves,
                              const tsr_conformation *conformation,
                              double *workspace, double *partial,
                              double *radius_ang, tsr_err *err);

/* A target of n_state states without data, for chains that sample the prior.
 * They start from structure.starts, or from the first conformation. */
tsr_target tsr_setup_prior_target(const tsr_target *target, int n_state);

/* n steps of a chain on the prior; warm 1: step sizes adapt. Errors: those of
 * tsr_watch_check. */
tsr_status tsr_setup_prior_steps(tsr_chain *chain, long n, int warm,
                                 const tsr_watch *watch, const char *what,
                                 tsr_err *err);

/* ---- parts of a setup, for the files of this folder ---- */

/* Reads the data and makes their likelihood; with_data 0: prepares the
 * scattering of the bodies alone. If an entry of the data requests docking, the
 * starting conformations are moved into its map. Errors: those of reading;
 * TSR_E_DATA (the data exceed the q range of the form factors). */
tsr_status tsr_data_read(const tsr_config *config, int with_data, tsr_log *log,
                         tsr_molecule *molecule, tsr_data *data, tsr_err *err);
void tsr_data_clear(tsr_data *data);

/* A second likelihood of the same data, with its own terms. Errors: those of
 * reading the data, TSR_E_NOMEM. */
tsr_status tsr_data_copy_likelihood(const tsr_config *config,
                                    const tsr_molecule *molecule,
                                    const tsr_data *data, tsr_likelihood **out,
                                    tsr_err *err);

/* Fits the first conformation to the curves as a rigid body. Sets data->rigid,
 * and term->start of each curve: the fitted curve at the points of the data.
 * partial  [n_pair][n_q]  in  profiles of the first conformation
 * Errors: TSR_E_NOMEM. */
tsr_status tsr_data_fit_rigid(tsr_data *data, const tsr_likelihood *likelihood,
                              const double *partial, tsr_err *err);

void tsr_devices_clear(tsr_devices *devices);
void tsr_atoms_clear(tsr_atom_target *atoms);

/* Restores the model error of the bodies from setup->known_error, or learns how
 * their profiles differ from those of all atoms, on draws of the prior (on the
 * starting conformations, if nothing moves). Corrects the likelihood's profiles
 * and passes the remaining error to its terms. data.model_error describes the
 * result. The batch has one system. If the model error cannot be learnt, the
 * log gives the reason, and the function succeeds. Errors: TSR_E_NOMEM,
 * TSR_E_INTERRUPTED (a stop was requested), those of the engine, of
 * tsr_chain_new and of tsr_likelihood_correct. */
tsr_status tsr_setup_learn_model_error(const tsr_config *config,
                                       tsr_batch *batch, tsr_log *log,
                                       tsr_setup *setup, tsr_err *err);

#endif
