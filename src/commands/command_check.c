/* tessera check CONFIG: validates a configuration with its files, and prints it
 * with all defaults. */
#include "commands/command.h"
#include "posterior/setup.h"
#include "session/run_directory.h"

#include <stdlib.h>

typedef struct {
    tsr_strings set;
} options;

static const tsr_field fields[] = {
    TSR_FIELD(STRINGS, "set", options, set, .argument = "KEY=VALUE",
              .doc =
                  "override a key, as sampler.draws=500 or data.0.file=x.dat"),
    {0}};

static tsr_status check(const tsr_args *args, FILE *out, tsr_log *log,
                        tsr_err *err)
{
    const options *o = args->options;
    tsr_config config;
    tsr_setup setup = {0};
    char *text = NULL;
    tsr_status status =
        tsr_config_read(args->argument[0], o->set.n,
                        (const char *const *)o->set.item, &config, err);
    TSR_THEN(status, tsr_setup_read(&config, 1, log, &setup, err));
    TSR_THEN(status, tsr_molecule_warn(&setup.molecule, log, err));
    TSR_THEN(status, tsr_config_text(&config, &text, err));
    if (status == TSR_OK) {
        const tsr_topology *t = setup.molecule.topology;
        fputs(text, out);
        tsr_info(log,
                 "%d residues, %d chains, %d bodies, %d free torsions, %d free "
                 "side chains; largest distance %.1f A now, d_max %.0f A",
                 tsr_topology_n_monomer(t), t->n_chain, t->n_body, t->n_torsion,
                 t->n_side, setup.molecule.d_max_first_ang,
                 setup.molecule.d_bound_ang);
        if (setup.data.likelihood != NULL)
            tsr_info(log, "grid: %d q values, step %.5f 1/A",
                     setup.data.likelihood->grid.n_q,
                     setup.data.likelihood->grid.dq_inv_ang);
        tsr_err why; /* the lock belongs to the check, not to a run */
        if (tsr_run_directory_check(config.output.directory, &why) != TSR_OK)
            tsr_warn(log, "tessera run would fail: %s", why.message);
    }
    free(text);
    tsr_setup_clear(&setup);
    tsr_config_clear(&config);
    return status;
}

const tsr_command tsr_command_check = {
    .name = "check",
    .doc = "validate a configuration and print it with all defaults",
    .arguments = "CONFIG",
    .options = fields,
    .size = sizeof(options),
    .about = "Reads the structure and the data, but computes nothing and needs "
             "no device. Prints the configuration with all defaults to "
             "standard output.",
    .keys = tsr_config_fields,
    .run = check};
