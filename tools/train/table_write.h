/* The files of data/, as molecule/prior_table.h and scattering/form_factor.h
 * read them. Written beside and renamed. */
#ifndef TSR_TRAIN_TABLE_WRITE_H
#define TSR_TRAIN_TABLE_WRITE_H

#include "molecule/prior_table.h"
#include "scattering/form_factor.h"

/* Errors: TSR_E_IO, TSR_E_NOMEM. */
tsr_status tsr_form_factor_write(const tsr_form_factor_table *table,
                                 const char *path, tsr_err *err);
tsr_status tsr_prior_table_write(const tsr_prior_table *table, const char *path,
                                 tsr_err *err);

#endif
