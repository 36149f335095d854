/* What `tessera init` found, as a configuration, as text and as a picture. */
#ifndef TSR_COMMANDS_INIT_CONFIG_H
#define TSR_COMMANDS_INIT_CONFIG_H

#include "commands/command.h"
#include "molecule/parts.h"
#include "scattering/saxs.h"

#include <stdio.h>

/* How the first line of its configurations begins. */
#define TSR_INIT_MARK "# tessera init "

typedef struct {
    const char *model; /* as given */
    const char *pae;   /* errors that were used; NULL: none */
    const tsr_structure *structure;
    const tsr_parts *parts;
    tsr_init_curves curves;
    tsr_saxs **saxs; /* [curves.n] */
    const char *map; /* a density map; NULL: none */
    double resolution_ang;
    const char *output; /* where the configuration goes; NULL: stdout */
} tsr_init;

/* The configuration, with comments. Errors: TSR_E_IO, TSR_E_NOMEM. */
tsr_status tsr_init_write(const tsr_init *init, FILE *out, tsr_err *err);

/* Each chain as a row of letters, and its parts and ranges as a list; every
 * line begins with `prefix`. */
void tsr_init_draw(const tsr_init *init, const char *prefix, FILE *out);

/* The same as a picture (SVG). Errors: TSR_E_IO, TSR_E_NOMEM. */
tsr_status tsr_init_picture(const tsr_init *init, const char *path,
                            tsr_err *err);

/* Stretches of a chain, in order, are those of equal part. */
typedef struct {
    int first, last;
    int part;                        /* -1: flexible */
    const tsr_flexible_range *range; /* of a flexible one */
} tsr_init_stretch;

/* The stretch that begins at residue `first`. */
tsr_init_stretch tsr_init_stretch_at(const tsr_init *init, int first);

/* The last residue of the chain of residue `first`. */
int tsr_init_chain_last(const tsr_init *init, int first);

#endif
