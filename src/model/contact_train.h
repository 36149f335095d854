/* Contact distances of bodies from structures (prior_table.h says what they
 * are). Distances are binned: sums are of integers, so the quantiles do not
 * depend on the order of the structures. */
#ifndef TSR_MODEL_CONTACT_TRAIN_H
#define TSR_MODEL_CONTACT_TRAIN_H

#include "core/status.h"
#include "io/structure.h"
#include "model/prior_table.h"

#include <stdint.h>

enum {
    TSR_CONTACT_BIN = 500, /* of 0.02 Angstrom, below 10 */
    TSR_CONTACT_PAIR = TSR_MAX_TYPE * (TSR_MAX_TYPE + 1) / 2,
    TSR_CONTACT_LEAST = 500 /* pairs, for a quantile of their own */
};

typedef struct {
    uint64_t bin[2][TSR_CONTACT_PAIR][TSR_CONTACT_BIN]; /* one-body, two-body */
} tsr_contact_sum;

/* Counts the pairs of one structure's complete bodies. */
tsr_status tsr_contact_visit(const tsr_structure *structure,
                             tsr_contact_sum *sum, tsr_err *err);
void tsr_contact_add(tsr_contact_sum *to, const tsr_contact_sum *from);

/* Fills the contacts of the table; n_rare [2] out: pairs of types seen too
 * rarely, which were filled from their types. Errors: TSR_E_DATA where a type
 * has too few partners altogether. */
tsr_status tsr_contact_take(const tsr_contact_sum *sum, tsr_prior_table *table,
                            int n_rare[2], tsr_err *err);

#endif
