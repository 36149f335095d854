/* The molecule of a configuration: residues, flexible ranges, starting
 * conformations, the bound on distances, the prior, and form factors of its
 * bodies.
 *
 * The trained tables of a run are read once, and the molecule borrows them. */
#ifndef TSR_POSTERIOR_MOLECULE_H
#define TSR_POSTERIOR_MOLECULE_H

#include "core/log.h"
#include "likelihood/likelihood.h"
#include "molecule/guest.h"
#include "moves/members.h"
#include "posterior/config.h"
#include "scattering/form_factor.h"

/* Path of a shipped file, searched in TESSERA_DATA, and in share/tessera/data
 * of each folder above the program or library, nearest first: an installed copy
 * can be moved, and the build folder has a link to the sources. The caller
 * frees *path. Errors: TSR_E_NOINPUT, TSR_E_NOMEM. */
tsr_status tsr_data_file(const char *name, char **path, tsr_err *err);

/* ---- tables ---- */

/* Trained tables of a run, and the priors of c1 and c2. */
typedef struct {
    tsr_parameter contrast[TSR_N_CONTRAST]; /* c1, c2 */
    tsr_prior_table *prior;
    tsr_form_factor_table *form_factors; /* one component; if `components`
                                            exists, used for Rg alone */
    tsr_form_factor_table *components;   /* NULL: form factors have one
                                            component */
} tsr_tables;

/* Reads the tables that the configuration names, or the shipped ones. The
 * caller clears them, also after an error. Errors: TSR_E_CONFIG, those of
 * reading. */
tsr_status tsr_tables_read(const tsr_config *config, tsr_tables *tables,
                           tsr_err *err);
void tsr_tables_clear(tsr_tables *tables);

/* ---- the molecule ---- */

/* A species: the chains of the molecule that form one particle. */
typedef struct {
    int *absent; /* [n_body] 1: the body is not in the particle */
    tsr_species
        mix; /* name borrowed from the configuration; kd_range not set */
} tsr_molecule_species;

/* The molecule of a run. */
typedef struct {
    const tsr_tables *tables; /* borrowed */
    const char *file;         /* structure file, borrowed; NULL: built from a
                                 sequence */
    const char *symmetry;     /* structure.symmetry, borrowed; NULL: none */
    double density;           /* of the solvent, electrons/A^3 */
    tsr_topology *topology;
    tsr_conformation *first;  /* from the file or the sequence */
    int n_start;              /* number of structure.starts */
    tsr_conformation **start; /* [n_start] */
    /* The tables in use: the run's, or the copies of_guests. */
    const tsr_form_factor_table *form_factors, *components;
    tsr_form_factor_table *of_guests[2]; /* copies of form_factors and
                                            components, extended by bodies of
                                            guests; NULL: no guests */
    tsr_prior *prior;
    tsr_members *members;   /* of structure.pool; NULL: none is given */
    tsr_model_atoms *model; /* the first conformation, as in model.pdb */
    double d_max_first_ang; /* largest distance within any starting
                               conformation */
    double d_bound_ang;     /* P(X) is 0 if a distance exceeds this */
    tsr_pool pool;          /* owns `species` */
    int n_species;          /* 0: the whole molecule is the only species */
    tsr_molecule_species *species;
} tsr_molecule;

/* Seed of the random numbers by which a model is made: the relaxed start, and
 * the conformations from which the model error is learnt. The key `seed` is for
 * the chains alone. So runs of one configuration with different seeds have the
 * same posterior, and their log evidence differs by the error of sampling. */
enum { TSR_MODEL_SEED = 1 };

/* Reads the structure and builds topology, starts and prior. If the
 * configuration defines no flexible ranges, the ranges found in the file are
 * written into *config. The caller clears the molecule, also after an error.
 * Errors: TSR_E_CONFIG, TSR_E_DATA (bodies of a start overlap), those of
 * reading. */
tsr_status tsr_molecule_read(tsr_config *config, const tsr_tables *tables,
                             tsr_log *log, tsr_molecule *molecule,
                             tsr_err *err);
void tsr_molecule_clear(tsr_molecule *molecule);

/* Reads structure.pool into molecule->members: up to 10,000 conformations of
 * each entry, evenly spread. Errors: those of reading; TSR_E_DATA (other
 * residues than those of the run, a broken backbone, with the residue);
 * TSR_E_CONFIG (no torsion is free). */
tsr_status tsr_molecule_read_pool(const tsr_config *config, tsr_log *log,
                                  tsr_molecule *molecule, tsr_err *err);

/* Updates `model` after the first conformation has moved. Errors:
 * TSR_E_NOMEM. */
tsr_status tsr_molecule_set_model(tsr_molecule *molecule, tsr_err *err);

/* Mass of the hydrogens of an amino acid, which masses of bodies leave out,
 * Da. */
double tsr_amino_hydrogen_mass(tsr_amino amino);

/* Mass of the bodies, Da, with the hydrogens of amino acids. absent [n_body]:
 * bodies to leave out; NULL: none. */
double tsr_topology_mass(const tsr_topology *topology, const int *absent);

/* Does any data term depend on the molecule's position and orientation in
 * space? */
int tsr_config_is_placed(const tsr_config *config);

/* Warns of serious problems of the structure file, and of flexible ranges
 * inside one compact part: a turn within the range would tear the part apart.
 * Errors: those of reading the structure, TSR_E_NOMEM. */
tsr_status tsr_molecule_warn(const tsr_molecule *molecule, tsr_log *log,
                             tsr_err *err);

#endif
