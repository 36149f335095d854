/* The files that `tessera profile` writes. */
#ifndef TSR_CLI_PROFILE_FILES_H
#define TSR_CLI_PROFILE_FILES_H

#include "cli/profile_report.h"
#include "core/log.h"

typedef struct {
    const char *path; /* NULL: `out` gets the curve of the only structure */
    FILE *out;
    const tsr_saxs *saxs; /* NULL: curves, else fits */
    double q_min, q_max;  /* of curves, 1/Angstrom */
    int n_q, with_partials;
} tsr_profile_output;

/* Before anything is computed: would a file of `output` (as --output gives it;
 * NULL: none) take the place of an input, of another structure's, or of one
 * that tessera did not write? data, table: NULL where there are none. Errors:
 * TSR_E_USAGE. */
tsr_status tsr_profile_check_output(const char *output, int is_forced, int n,
                                    const char *const *structure,
                                    const char *data, const char *table,
                                    tsr_err *err);

/* result [n], best first: the first one goes to `path`, or each to a file of
 * the structure's name where that is a folder. A fit is PATH (.fit is added
 * where it has no ending) and a picture beside it (.svg). Errors: TSR_E_IO. */
tsr_status tsr_profile_write(const tsr_profile_output *output, int n,
                             const tsr_profile_result *result, tsr_log *log,
                             tsr_err *err);

#endif
