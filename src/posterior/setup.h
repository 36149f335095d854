/* From a configuration to something that can be sampled: molecule, data, prior,
 * likelihood, engine. Shared by run, check and simulate. */
#ifndef TSR_POSTERIOR_SETUP_H
#define TSR_POSTERIOR_SETUP_H

#include "core/log.h"
#include "gpu/engine_device.h"
#include "likelihood/likelihood.h"
#include "molecule/guest.h"
#include "posterior/all_atoms.h"
#include "posterior/config.h"
#include "sampler/sampler.h"
#include "scattering/profile_fit.h"
#include "surrogate/surrogate.h"

/* What draws of all atoms are of where bodies make the steps. */
typedef struct tsr_atom_target tsr_atom_target;

typedef struct {
    tsr_topology *topology;
    tsr_conformation *first;
    int n_start; /* structure.starts */
    tsr_conformation **start;
    tsr_model_atoms *model; /* the first conformation as model.pdb has it */
    tsr_prior_table *prior_table;
    tsr_prior *prior;
    tsr_form_factor_table *form_factors;    /* with components: for Rg alone */
    tsr_form_factor_table *components;      /* NULL: one component */
    tsr_parameter contrast[TSR_N_CONTRAST]; /* c1, c2 */
    double *exposure;                       /* [n_body] with components */
    tsr_atom_curves *atoms;                 /* that these are of; NULL: none */
    int n_probe;                            /* what sees the molecule */
    tsr_scattering *scattering;             /* [n_probe] */
    tsr_neutron *sample;          /* [n_probe] of neutrons, in any solvent */
    tsr_neutron_bodies **neutron; /* [n_probe] NULL: X-rays */
    tsr_likelihood *likelihood;   /* NULL without data */
    tsr_particles *particles;     /* all atoms with water that rides along, of
                                     the likelihood or of atom_target; or NULL
                                   */
    tsr_surrogate *surrogate;     /* NULL: chains do not walk */
    tsr_atom_target *atom_target; /* NULL: draws are of the bodies */
    int n_engine;                 /* 0 until tsr_setup_engine; one a device */
    tsr_device **device;          /* [n_engine] NULL: the reference engine */
    tsr_engine_share *share;      /* [n_engine] each engine with its chains */
    double *speed; /* [n_engine] profiles a second; 0: not measured */
    tsr_engine_choice engine_choice;
    int *unit;              /* [n_body] its rigid unit, -1: none; or NULL */
    char *engine_text;      /* a line an engine, joined by newlines; or NULL */
    char *model_error_text; /* what was learnt of it, or why not; or NULL */
    double reach_ang;       /* how far apart two bodies can come */
    double d_bound_ang;     /* what the q grid allows for; P(X) = 0 beyond */
    int is_limited;         /* d_bound_ang is less than the reach */
    double d_max_first_ang; /* of the first conformation */
    int n_thread, n_chain;
    int n_group_start; /* where groups of chains start; 0: from the file */
    tsr_conformation **group_start;
    double *group_log_z;
    tsr_profile_fit *rigid; /* [n_term] of the first conformation to each
                               curve; n_point 0: none. NULL without engines */
    double first_chi2;      /* of the first conformation, where chains start
                               elsewhere */
    const void *move_options[TSR_N_MOVE];
    tsr_target target; /* points into all this */
} tsr_setup;

/* Reads structure, tables and data; makes prior and likelihood. with_data 0
 * leaves the data out. What may move is put into the configuration where that
 * does not say it. What was found goes to the log. The caller clears it,
 * also after an error. */
tsr_status tsr_setup_read(tsr_config *config, int with_data, tsr_log *log,
                          tsr_setup *setup, tsr_err *err);

/* Is there a term that sees where in space the molecule is? */
int tsr_config_is_placed(const tsr_config *config);

/* Opens the devices, tests each, divides the chains among them, makes an engine
 * on each and checks it on the molecule itself. Devices that are alike get
 * equal shares, so that a run can be repeated; others get theirs by measured
 * speed. Raises n_thread to one an engine. n_chain 0: sampler.chains, which
 * becomes a number where it is auto; setup->n_chain is what there is. Without
 * data that is all it does. */
tsr_status tsr_setup_engine(tsr_config *config, int n_chain, tsr_log *log,
                            tsr_setup *setup, tsr_err *err);
void tsr_setup_clear(tsr_setup *setup);

/* Whether chains will walk by a surrogate on all devices; whether one of these
 * is a GPU. And what the moves by a surrogate need, on each device, and on none
 * where there is nothing to go by. Errors: TSR_E_NOMEM. */

/* Fits the first conformation to the curves, rigid: setup->rigid, and the
 * `start` of a likelihood's terms. partial [n_pair][n_q]: its profiles, as that
 * likelihood takes them. Errors: TSR_E_NOMEM. */
tsr_status tsr_setup_fit_start(tsr_setup *setup,
                               const tsr_likelihood *likelihood,
                               const double *partial, tsr_err *err);

/* What the structure that the run begins with says of data beside curves, into
 * a likelihood's terms. */
tsr_status tsr_setup_expect(const tsr_setup *setup, tsr_likelihood *likelihood,
                            tsr_err *err);

/* The terms of the configuration: term [config->data.n] out; *n of them were
 * read, also after an error. */
tsr_status tsr_setup_terms(const tsr_config *config, tsr_log *log,
                           const tsr_setup *setup, int *n, tsr_term **term,
                           tsr_err *err);

/* An engine for all probes of a likelihood. device NULL: the reference. */
tsr_status tsr_setup_make_engine(const tsr_setup *setup,
                                 const tsr_likelihood *likelihood,
                                 const tsr_device *device, int n_system,
                                 tsr_engine **out, tsr_err *err);

/* Where draws are of all atoms, and chains move them: the likelihood becomes
 * one of particles. Once the devices are open. Errors: those of
 * tsr_atom_curves_new, of tsr_atom_particles_new and of the engine's self-test.
 */
tsr_status tsr_setup_ride(const tsr_config *config, tsr_log *log,
                          tsr_setup *setup, tsr_err *err);

/* Where they are, and bodies make the steps: a likelihood of all atoms' curves
 * with terms of its own, and setup->target.fine, which draws are then of. After
 * the engines are open and the model's error is known. Errors: TSR_E_CONFIG
 * (the atoms are not known), those of tsr_atom_curves_new and of reading the
 * terms. */
tsr_status tsr_setup_take_atoms(const tsr_config *config, tsr_log *log,
                                tsr_setup *setup, tsr_err *err);
void tsr_setup_atom_target_free(tsr_atom_target *target); /* NULL is fine */

/* In warm-up, between two steps: the bodies' error learnt again from where the
 * coldest replicas were since the last time; computes all chains afresh. last:
 * there will be no other. Errors: those of tsr_setup_learn_again and
 * tsr_sampler_refresh. */
tsr_status tsr_setup_follow_chains(const tsr_config *config, tsr_log *log,
                                   tsr_sampler *sampler, int last,
                                   tsr_setup *setup, tsr_err *err);

/* Its likelihood, and the partial profiles of a conformation [n_pair][n_q] out.
 */
tsr_likelihood *tsr_setup_atom_likelihood(tsr_atom_target *target);
tsr_status tsr_setup_atom_partial(tsr_atom_target *target,
                                  const tsr_conformation *conformation,
                                  double *partial, tsr_err *err);

/* partial [n_pair][n_q] out, of all probes, from all atoms, S_ab included;
 * components that c1 and c2 do not need are folded into the others. six
 * [TSR_N_COMP_PAIR][n_q]: room. *radius_ang: r_m of the atoms' G. Errors: those
 * of tsr_atom_curves_partial. */
tsr_status tsr_setup_sum_atoms(const tsr_setup *setup,
                               const tsr_likelihood *likelihood,
                               tsr_atom_curves *curves,
                               const tsr_conformation *conformation,
                               double *six, double *partial, double *radius_ang,
                               tsr_err *err);

/* That fit as JSON, for the trace: an array with an object for each curve.
 * Caller frees; NULL: there was none, or out of memory. */
char *tsr_setup_rigid_text(const tsr_setup *setup);

/* Where sampler.start is the prior, and there are data: groups of chains get
 * starts of their own, from chains of the prior; not where all chains will be
 * restored. After tsr_setup_engine.
 * Errors: those of tsr_chain_start, TSR_E_NOMEM;
 * TSR_E_INTERRUPTED once a stop is asked for. */
tsr_status tsr_setup_draw_starts(int is_restored, tsr_log *log,
                                 tsr_setup *setup, tsr_err *err);

/* Warns of what of the file is not as it seems, and of flexible ranges within
 * one compact part, which they would take apart. Errors: those of reading the
 * structure, TSR_E_NOMEM. */
tsr_status tsr_setup_doubt(const tsr_config *config, const tsr_setup *setup,
                           tsr_log *log, tsr_err *err);

/* Parts of tsr_setup_read: what may move where the configuration does not say
 * it, put into it; where the states start; tables of the prior, form
 * factors or components; what the bodies scatter, once the start is settled. */
tsr_status tsr_setup_tables(const tsr_config *config, tsr_setup *setup,
                            tsr_err *err);
tsr_status tsr_setup_scattering(const tsr_config *config, int n_term,
                                tsr_term **term, tsr_log *log, tsr_setup *setup,
                                tsr_err *err);

/* What a likelihood's bodies, or its particles, lack of atoms with water of
 * their own, from draws of the prior: corrects its profiles and tells its terms
 * what is left; setup->model_error_text is what was learnt last. engine: of
 * that likelihood; NULL: its curves are direct sums. Where there is nothing to
 * learn it from the log says so. Errors: TSR_E_NOMEM, those of the engine, of
 * tsr_chain_new and of tsr_likelihood_correct. */
tsr_status tsr_setup_model_error(const tsr_config *config,
                                 tsr_likelihood *likelihood, tsr_engine *engine,
                                 tsr_log *log, tsr_setup *setup, tsr_err *err);

/* The same, anew, from n examples of what chains came to (sampler/fine.h): for
 * the bodies that propose draws of all atoms, which are nearer to atoms where
 * they are used. To be followed by tsr_sampler_refresh. A ratio that is not
 * positive leaves correction and error of its curve as they are; the log says
 * so. */
tsr_status tsr_setup_learn_again(const tsr_config *config, int n,
                                 const tsr_fine_example *example, tsr_log *log,
                                 tsr_setup *setup, tsr_err *err);

/* What of the file is no amino acid (molecule/guest.h): its bodies are added to
 * topology and conformation, and table [n_table] become tables that have them;
 * the ones that were there stay the caller's. Nothing changes where there is
 * none. Where the file's atoms cannot be read the log says why it is left out.
 * Errors: those of tsr_guests_attach. */
tsr_status tsr_setup_guests(const tsr_structure *structure,
                            const tsr_strings *bound, double density,
                            tsr_log *log, tsr_topology *topology,
                            tsr_conformation *conformation, int n_table,
                            tsr_form_factor_table **table, tsr_err *err);

/* The strands of the file that structure.flexible or structure.rigid names, or
 * all where there is no protein (molecule/guest.h); *out NULL: none, or
 * ligands are left out. The caller frees it. `log` hears which strands stay
 * rigid where all else is free. Errors: TSR_E_CONFIG (ranges of chains that
 * there are not, or that do not move), those of tsr_nucleic_find and, without a
 * protein, of tsr_atoms_read. */
tsr_status tsr_setup_nucleic(const tsr_structure *structure,
                             const tsr_structure_config *config, tsr_log *log,
                             tsr_nucleic **out, tsr_err *err);

/* exposure [n_body] out, of a conformation (tsr_atom_curves_expose). With
 * components only. */
tsr_status tsr_setup_expose(const tsr_setup *setup,
                            const tsr_conformation *conformation,
                            double *exposure, tsr_err *err);

/* Finds a shipped file: in TESSERA_DATA, beside the source tree, under
 * PREFIX/share/tessera. Caller frees. Errors: TSR_E_NOINPUT, naming where it
 * looked. */
tsr_status tsr_data_file(const char *name, char **path, tsr_err *err);

#endif
