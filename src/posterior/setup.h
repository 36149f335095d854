/* From a configuration to something that can be sampled. Its owners, each made
 * by one function and freed by one: tables and molecule
 * (posterior/molecule.h), data, devices, where draws are of all atoms what
 * these are drawn by, and where groups of chains start. */
#ifndef TSR_POSTERIOR_SETUP_H
#define TSR_POSTERIOR_SETUP_H

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

/* What was measured, and what of the molecule is seen there. */
typedef struct {
    tsr_pool pool;
    int n_probe;                  /* what sees the molecule */
    tsr_scattering *scattering;   /* [n_probe] */
    tsr_neutron *sample;          /* [n_probe] of neutrons, in any solvent */
    tsr_neutron_bodies **neutron; /* [n_probe] NULL: X-rays */
    double *exposure;             /* [n_body] with components */
    tsr_atom_curves *atoms;       /* that these are of; NULL: none */
    tsr_likelihood *likelihood;   /* NULL without data */
    tsr_profile_fit *rigid; /* [n_term] of the first conformation to each curve;
                               n_point 0: none. NULL without engines */
    char *model_error;      /* what was learnt of it, or why not; or NULL */
} tsr_data;

/* What computes profiles. */
typedef struct {
    tsr_pool pool;
    int n;                   /* engines, one a device; 0: none are needed */
    tsr_device **device;     /* [n] NULL: the reference engine */
    tsr_engine_group *share; /* [n] each engine with its chains */
    double *speed;           /* [n] profiles a second; 0: not measured */
    tsr_engine_choice choice;
    int *unit;  /* [n_body] its rigid unit, -1: none; or NULL */
    char *text; /* a line an engine, joined by newlines; or NULL */
    tsr_surrogate *surrogate; /* NULL: chains do not walk */
} tsr_devices;

/* Profiles of single conformations by an engine, from several threads at once.
 */
typedef struct {
    tsr_pool pool;
    const tsr_likelihood *likelihood; /* NULL: not made */
    const tsr_topology *topology;
    pthread_mutex_t lock;
    int n;                          /* 0: direct sums in double precision */
    struct tsr_profiler_slot *seat; /* [n] systems of the engine */
} tsr_profiler;

/* Where draws are of all atoms: these, with water that rides along. Chains move
 * them, or bodies make the steps and draws are of the model here. */
typedef struct {
    tsr_particles *particles;   /* NULL: draws are of the bodies */
    tsr_likelihood *likelihood; /* whose terms are its own; NULL: chains move
                                   the atoms */
    tsr_engine *engine;         /* NULL: the reference */
    tsr_profiler profiler;
    tsr_all_atom_model model;
} tsr_atom_target;

/* Where groups of chains start; n 0: from the file. */
typedef struct {
    int n;
    tsr_conformation **state;
    double *log_z;
    double first_chi2; /* of the first conformation, which chains leave out */
} tsr_starts;

typedef struct {
    tsr_tables tables;
    tsr_molecule molecule;
    tsr_data data;
    tsr_devices devices;
    tsr_atom_target atoms;
    tsr_starts starts;
    int n_thread, n_chain;
    const void *move_options[TSR_N_MOVE];
    tsr_target target; /* points into all this */
} tsr_setup;

/* Reads structure, tables and data; makes prior and likelihood. with_data 0
 * leaves the data out. What may move is put into the configuration where that
 * does not say so. What was found goes to the log. The caller clears the setup,
 * which stays where it is, also after an error. */
tsr_status tsr_setup_read(tsr_config *config, int with_data, tsr_log *log,
                          tsr_setup *setup, tsr_err *err);
void tsr_setup_clear(tsr_setup *setup);

/* Opens the devices, tests each, divides the chains among them, makes an engine
 * on each and checks it on the molecule itself. Devices that are alike get
 * equal shares, so that a run can be repeated; others get theirs by measured
 * speed. Raises n_thread to one an engine. n_chain 0: sampler.chains, which
 * becomes a number where it is auto; setup->n_chain is what there is. Without
 * data that is all it does. */
tsr_status tsr_setup_engine(tsr_config *config, int n_chain, tsr_log *log,
                            tsr_setup *setup, tsr_err *err);

/* Where sampler.start is the prior, and there are data: groups of chains get
 * starts of their own, from chains of the prior; not where all chains will be
 * restored. After tsr_setup_engine.
 * Errors: those of tsr_chain_start, TSR_E_NOMEM;
 * TSR_E_INTERRUPTED once a stop is asked for. */
tsr_status tsr_setup_draw_starts(int is_restored, tsr_log *log,
                                 tsr_setup *setup, tsr_err *err);

/* The fit of the first conformation to the curves, rigid, as JSON for the
 * trace: an array with an object for each curve. Caller frees; NULL: there was
 * none, or out of memory. */
char *tsr_data_rigid_text(const tsr_data *data);

/* In warm-up, between two steps: the bodies' error learnt again from where the
 * coldest replicas were since the last time; computes all chains afresh. last:
 * there will be no other. Errors: those of tsr_setup_relearn_model_error and
 * tsr_sampler_refresh. */
tsr_status tsr_setup_relearn_from_chains(const tsr_config *config, tsr_log *log,
                                         tsr_sampler *sampler, int last,
                                         tsr_setup *setup, tsr_err *err);

/* The model's error learnt anew from n examples of what chains came to
 * (sampler/all_atom_chain.h): for the bodies that propose draws of all atoms,
 * which are nearer to atoms where they are used. To be followed by
 * tsr_sampler_refresh. A ratio that is not positive leaves correction and error
 * of its curve as they are; the log says so. Errors: as of learning them first.
 */
tsr_status tsr_setup_relearn_model_error(const tsr_config *config, int n,
                                         const tsr_all_atom_example *example,
                                         tsr_log *log, tsr_setup *setup,
                                         tsr_err *err);

/* partial [n_pair][n_q] out, of all probes, from all atoms, S_ab included;
 * components that c1 and c2 do not need are folded into the others. six
 * [TSR_N_COMP_PAIR][n_q]: room. *radius_ang: r_m of the atoms' G. Errors: those
 * of tsr_atom_curves_partial. */
tsr_status tsr_data_sum_atoms(const tsr_data *data,
                              const tsr_likelihood *likelihood,
                              tsr_atom_curves *curves,
                              const tsr_conformation *conformation, double *six,
                              double *partial, double *radius_ang,
                              tsr_err *err);

/* For chains on the prior alone, from where the target's chains start. */
tsr_target tsr_setup_prior_target(const tsr_target *target, int n_state);

/* n steps of such a chain, warm: step sizes learn. Errors: TSR_E_INTERRUPTED
 * once a stop is asked for, "interrupted while WHAT". */
tsr_status tsr_setup_prior_steps(tsr_chain *chain, long n, int warm,
                                 const char *what, tsr_err *err);

/* ---- parts, for the files that make a setup ---- */

/* Reads the data, and makes a likelihood of them; with_data 0: what the bodies
 * scatter alone. A start is docked where an entry of the data says so. Errors:
 * those of reading; TSR_E_DATA (the data go beyond the form factors). */
tsr_status tsr_data_read(const tsr_config *config, int with_data, tsr_log *log,
                         tsr_molecule *molecule, tsr_data *data, tsr_err *err);
void tsr_data_clear(tsr_data *data);

/* A likelihood of the same data with terms of its own. */
tsr_status tsr_data_copy_likelihood(const tsr_config *config,
                                    const tsr_molecule *molecule,
                                    const tsr_data *data, tsr_likelihood **out,
                                    tsr_err *err);

/* Fits the first conformation to the curves, rigid: data->rigid, and the
 * `start` of a likelihood's terms. partial [n_pair][n_q]: its profiles, as that
 * likelihood takes them. Errors: TSR_E_NOMEM. */
tsr_status tsr_data_fit_rigid(tsr_data *data, const tsr_likelihood *likelihood,
                              const double *partial, tsr_err *err);

void tsr_devices_clear(tsr_devices *devices);
void tsr_atoms_clear(tsr_atom_target *atoms);

/* profiler: tsr_profiler; partial [n_pair][n_q] out. */
tsr_status tsr_profiler_run(void *profiler,
                            const tsr_conformation *conformation,
                            double *partial, tsr_err *err);

/* What a likelihood's bodies, or its particles, lack of atoms with water of
 * their own, from draws of the prior: corrects its profiles and tells its terms
 * what is left; data.model_error is what was learnt last. profiler: of that
 * likelihood. Where there is nothing to learn it from the log says so. Errors:
 * TSR_E_NOMEM, those of the engine, of tsr_chain_new and of
 * tsr_likelihood_correct. */
tsr_status tsr_setup_learn_model_error(const tsr_config *config,
                                       tsr_likelihood *likelihood,
                                       tsr_profiler *profiler, tsr_log *log,
                                       tsr_setup *setup, tsr_err *err);

#endif
