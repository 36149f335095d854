/* The molecule of a configuration: its residues and what of them may move,
 * where it starts, how far it may spread, its prior, what its bodies scatter.
 *
 * The tables that a run needs are read once; a molecule borrows them. */
#ifndef TSR_POSTERIOR_MOLECULE_H
#define TSR_POSTERIOR_MOLECULE_H

#include "core/log.h"
#include "molecule/guest.h"
#include "posterior/config.h"
#include "scattering/form_factor.h"

/* Finds a shipped file: in TESSERA_DATA, beside the source tree, under
 * PREFIX/share/tessera. Caller frees. Errors: TSR_E_NOINPUT, naming where it
 * looked. */
tsr_status tsr_data_file(const char *name, char **path, tsr_err *err);

/* ---- tables ---- */

typedef struct {
    tsr_parameter contrast[TSR_N_CONTRAST]; /* c1, c2 */
    tsr_prior_table *prior;
    tsr_form_factor_table *form_factors; /* with components: for Rg alone */
    tsr_form_factor_table *components;   /* NULL: one component */
} tsr_tables;

/* Those that the configuration names, or the shipped ones. The caller clears
 * them, also after an error. Errors: TSR_E_CONFIG, those of reading. */
tsr_status tsr_tables_read(const tsr_config *config, tsr_tables *tables,
                           tsr_err *err);
void tsr_tables_clear(tsr_tables *tables);

/* ---- the molecule ---- */

typedef struct {
    const tsr_tables *tables; /* borrowed, as the file's name is */
    const char *file;         /* that it was read from; NULL: a sequence */
    double density;           /* of the solvent, e/A^3 */
    tsr_topology *topology;
    tsr_conformation *first;
    int n_start; /* structure.starts */
    tsr_conformation **start;
    /* The tables, or, of a molecule with guests, tables with their bodies. */
    const tsr_form_factor_table *form_factors, *components;
    tsr_form_factor_table *of_guests[2];
    tsr_prior *prior;
    tsr_model_atoms *model; /* the first conformation as model.pdb has it */
    double d_max_first_ang; /* of the conformations that a run starts from */
    double d_bound_ang;     /* P(X) is 0 beyond */
} tsr_molecule;

/* What may move is put into the configuration where that does not say so. The
 * caller clears the molecule, also after an error. Errors: TSR_E_CONFIG,
 * TSR_E_DATA (bodies of a start overlap), those of reading. */
tsr_status tsr_molecule_read(tsr_config *config, const tsr_tables *tables,
                             tsr_log *log, tsr_molecule *molecule,
                             tsr_err *err);
void tsr_molecule_clear(tsr_molecule *molecule);

/* The model follows the first conformation, which has moved. Errors:
 * TSR_E_NOMEM. */
tsr_status tsr_molecule_set_model(tsr_molecule *molecule, tsr_err *err);

/* Is there a term that sees where in space the molecule is? */
int tsr_config_is_placed(const tsr_config *config);

/* Warns of what of the file is not as it seems, and of flexible ranges within
 * one compact part, which they would take apart. Errors: those of reading the
 * structure, TSR_E_NOMEM. */
tsr_status tsr_molecule_warn(const tsr_molecule *molecule, tsr_log *log,
                             tsr_err *err);

#endif
