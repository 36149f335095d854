/* The curves that a command starts from, of X-rays and of neutrons. */
#ifndef TSR_CLI_INIT_CURVES_H
#define TSR_CLI_INIT_CURVES_H

#include "cli/args.h"
#include "scattering/neutron.h"

/* What says of a command which of its curves are of neutrons. */
#define TSR_INIT_SANS_OPTIONS                                                 \
    {.name = "sans",                                                          \
     .argument = "FILE=X",                                                    \
     .repeats = 1,                                                            \
     .doc = "a curve of neutrons, in a solvent of which D2O is the share X, " \
            "0 to 1"},                                                        \
        {.name = "exchange",                                                  \
         .argument = "X",                                                     \
         .doc = "of neutrons: the share of the backbone's amide hydrogens "   \
                "that exchange; default 0.9"},                                \
    {                                                                         \
        .name = "deuterated", .argument = "CHAIN=X", .repeats = 1,            \
        .doc = "of neutrons: a chain that was grown with deuterium; "         \
               "without X all of it"                                          \
    }

/* The curves of a command: its arguments, of X-rays, then those of --sans. */
typedef struct {
    int n, n_xray;
    char **path;     /* [n] */
    double *d2o;     /* [n] from n_xray on */
    double exchange; /* of all that are of neutrons */
    int n_deuterated;
    const char *const *deuterated; /* [n_deuterated] as given */
} tsr_init_curves;

/* argument [n]: the curves among the arguments. Clear it also after an error.
 * Errors: TSR_E_USAGE (no share, or none from 0 to 1; options of neutrons
 * without a curve of theirs), TSR_E_NOMEM. */
tsr_status tsr_init_curves_read(const tsr_args *args, int n,
                                const char *const *argument,
                                tsr_init_curves *curves, tsr_err *err);
void tsr_init_curves_clear(tsr_init_curves *curves);

#endif
