/* How far three-component profiles of bodies are from those of all atoms with
 * the same c1 and c2, as model/form_factor_evaluate.h has it for one. */
#ifndef TSR_MODEL_COMPONENT_EVALUATE_H
#define TSR_MODEL_COMPONENT_EVALUATE_H

#include "model/component_table.h"
#include "model/form_factor_evaluate.h"

typedef struct {
    const tsr_component_table *table; /* borrowed */
    double c1, c2;
} tsr_component_evaluation;

/* summary [n] out; rows of one table are best next to each other. Errors: those
 * of reading; TSR_E_RANGE, TSR_E_NOMEM. */
tsr_status tsr_component_evaluate(int n_path, const char *const *path, int n,
                                  const tsr_component_evaluation *evaluation,
                                  int n_thread, tsr_log *log,
                                  tsr_error_summary *summary, tsr_err *err);

#endif
