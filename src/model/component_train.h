/* Three-component tables from structures (model/component_table.h).
 *
 * Worked on with the contrast, solute less displaced solvent, in place of the
 * solute: at c1 = 1 the displaced solvent then drops out, and the table folds
 * to the one-component table it was made from. */
#ifndef TSR_MODEL_COMPONENT_TRAIN_H
#define TSR_MODEL_COMPONENT_TRAIN_H

#include "core/log.h"
#include "core/status.h"
#include "model/component_table.h"

/* Averages over the occurrences of each type, the exposures' curves, and as
 * contrast that of `contrast` (trained and refined; borrowed), on its grid.
 * n_thread as in tsr_form_factor_train. Errors: those of reading; TSR_E_DATA
 * where a type never occurs or the contrast has other types; TSR_E_NUMERIC. */
tsr_status tsr_component_train(int n_path, const char *const *path,
                               const tsr_form_factor_table *contrast,
                               int n_thread, tsr_log *log,
                               tsr_component_table **out, tsr_err *err);

/* Refines displaced solvent and hydration, smoothly in q and little, to what
 * makes the relative errors of I(q; c1, c2) against all atoms least over a few
 * c1 and c2. The contrast stays. Keeps some 0.5 MB a structure in memory.
 * Errors: those of reading; TSR_E_NOMEM, TSR_E_NUMERIC. */
tsr_status tsr_component_refine(tsr_component_table *table, int n_path,
                                const char *const *path, int n_thread,
                                tsr_log *log, tsr_err *err);

#endif
