/* How far coarse-grained profiles are from those of all atoms (DESIGN 3): the
 * relative error of I(q), with the scale that makes it least below
 * q = 0.1/Angstrom, by structure and q. */
#ifndef TSR_TRAIN_FORM_FACTOR_EVALUATE_H
#define TSR_TRAIN_FORM_FACTOR_EVALUATE_H

#include "core/log.h"
#include "core/status.h"
#include "scattering/form_factor.h"

/* q_k = k 0.01/Angstrom, to 0.5. */
enum { TSR_ERROR_N_Q = 51, TSR_ERROR_N_BAND = 4 };
#define TSR_ERROR_DQ 0.01

/* 0, 0.1, 0.2, 0.35, 0.5 1/Angstrom; q on a bound belongs to the upper band,
 * 0.5 to the last. */
extern const double tsr_error_band[TSR_ERROR_N_BAND + 1];

/* Over structures: medians, and what 95 % of them are below. */
typedef struct {
    double band[TSR_ERROR_N_BAND]; /* of the rms relative error in a band */
    double high[TSR_ERROR_N_BAND]; /* 95 % of the same */
    double curve[TSR_ERROR_N_Q];   /* of the absolute relative error at q_k */
} tsr_error_summary;

/* error [TSR_ERROR_N_Q] out: c model / atoms - 1. */
void tsr_error_relative(const double *model, const double *atoms,
                        double *error);

/* error [n_structure][TSR_ERROR_N_Q] of structure m at m * stride; n_structure
 * is at least 1. Errors: TSR_E_NOMEM. */
tsr_status tsr_error_summarise(int n_structure, const double *error,
                               size_t stride, tsr_error_summary *summary,
                               tsr_err *err);

/* A table, and how its bodies and all atoms scatter: with one component with
 * S(q) or without, with three at c1 and c2. */
typedef struct {
    const tsr_form_factor_table *table; /* borrowed */
    int with_self;                      /* 0: without S(q) */
    double c1, c2;
} tsr_evaluation;

/* Evaluates tables on structure files: summary [n] out. Rows of one table are
 * best next to each other. n_thread as in training. Errors: those of reading;
 * TSR_E_RANGE where a table ends before 0.5/Angstrom; TSR_E_NOMEM. */
tsr_status tsr_form_factor_evaluate(int n_path, const char *const *path, int n,
                                    const tsr_evaluation *evaluation,
                                    int n_thread, tsr_log *log,
                                    tsr_error_summary *summary, tsr_err *err);

#endif
