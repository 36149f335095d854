/* P(c1, c2): excluded-volume scale and hydration of a run.
 *
 * They belong to the molecule in its buffer, so that all states and data sets
 * of a run share them. Each is fixed to a number or inferred; its prior is then
 * a normal density cut to a range and normalised there. c1 = 1, c2 = 0 is the
 * molecule in vacuum less the solvent it displaces. */
#ifndef TSR_SCATTERING_CONTRAST_PRIOR_H
#define TSR_SCATTERING_CONTRAST_PRIOR_H

#include "core/field.h"
#include "core/parameter.h"
#include "core/status.h"

enum { TSR_C1, TSR_C2, TSR_N_CONTRAST };

/* The words in place of a number. Reading a configuration decides auto. */
enum { TSR_CONTRAST_INFER, TSR_CONTRAST_AUTO };

typedef struct {
    tsr_number_or_word c1; /* infer, or a number */
    double c1_mean, c1_width;
    double c1_range[2];
    tsr_number_or_word c2; /* the same, or auto: if none decided it, 0 */
    double c2_mean, c2_width;
    double c2_range[2];
} tsr_contrast_options;

extern const tsr_field tsr_contrast_fields[];

/* parameter [TSR_N_CONTRAST] out, c1 and c2 as the table of a run has them.
 * Errors: TSR_E_CONFIG, beginning with the key (a range without width, or one
 * that the mean is not in). */
tsr_status tsr_contrast_priors(const tsr_contrast_options *options,
                               tsr_parameter *parameter, tsr_err *err);

/* 1 where the curve is that of tables with one component: c1 1 and c2 0, both
 * fixed. */
int tsr_contrast_is_plain(const tsr_parameter *parameter);

#endif
