/* What `tessera profile` found, as a table and as JSON. */
#ifndef TSR_CLI_PROFILE_REPORT_H
#define TSR_CLI_PROFILE_REPORT_H

#include "cli/profile_partials.h"
#include "io/saxs.h"
#include "scattering/profile_fit.h"

#include <stdio.h>

typedef struct {
    tsr_profile_structure structure;
    tsr_profile_fit fit; /* n_point 0: no data; then c1 and c2 as they were
                            asked for */
    double *curve;       /* [n] at the data's q: scale I + background */
    double rg_guinier;   /* Angstrom, of the computed curve; NaN */
    double i0;           /* scale I(0); without data electrons squared */
    int n_comp;
} tsr_profile_result;

/* One line a structure, in the order given, and below it what the marks mean.
 * saxs: NULL without data. */
void tsr_profile_print(FILE *out, int n, const tsr_profile_result *result,
                       const tsr_saxs *saxs);

/* {"data": ..., "structures": [{...}]}. */
void tsr_profile_print_json(FILE *out, int n, const tsr_profile_result *result,
                            const tsr_saxs *saxs, const char *bodies,
                            const char *engine);

/* " (c1 at its lower bound)", or empty; text [size] out. */
void tsr_profile_bounds_text(const tsr_profile_fit *fit, char *text,
                             size_t size);

#endif
