/* Vega, the library that draws the report's figures in the browser, as one text
 * that a page can hold. */
#ifndef TSR_ANALYSIS_REPORT_VEGA_H
#define TSR_ANALYSIS_REPORT_VEGA_H

#include "core/status.h"

/* Where Debian's package libjs-vega puts it. */
extern const char *const tsr_vega_directory;

/* *script (caller frees): the modules vega-NAME.min.js in `directory`, which
 * report.js joins. Errors: TSR_E_NOINPUT (one
 * is missing; with the remedy), TSR_E_DATA (one cannot stand in a page),
 * TSR_E_NOMEM. */
tsr_status tsr_vega_script(const char *directory, char **script, tsr_err *err);

#endif
