/* Form factors as published by others, in the lists in brackets that resaxs
 * ships for Stovgaard et al. 2010, BMC Bioinformatics 11, 429:
 *
 *     [[6.03, 8.88, ...],      one list a q, one number a body type, electrons
 *      [6.02, 8.87, ...]]
 *
 * with q in 1/Angstrom, equally spaced from 0, in one list in a file beside:
 * "x-q_vector.dat" for "x-two_body_model.dat". 20 columns are residues by
 * three-letter code, 21 are backbone first, then the same order. */
#ifndef TSR_MODEL_FORM_FACTOR_PUBLISHED_H
#define TSR_MODEL_FORM_FACTOR_PUBLISHED_H

#include "model/form_factor.h"

/* 1 where the file begins with '['. */
int tsr_form_factor_is_published(const char *path);

/* Reads it: P = F^2, so that S(q) = 0; rg2 and count are 0. Errors name file
 * and line: TSR_E_NOINPUT (also of the q vector), TSR_E_DATA. */
tsr_status tsr_form_factor_read_published(const char *path,
                                          tsr_form_factor_table **out,
                                          tsr_err *err);

#endif
