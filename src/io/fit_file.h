/* Curves as text: a fit as FoXS writes it, and computed profiles. */
#ifndef TSR_IO_FIT_FILE_H
#define TSR_IO_FIT_FILE_H

#include "core/status.h"

#include <stdio.h>

/* What tells a fit of tessera from one of FoXS, in its first line. */
#define TSR_FIT_FILE_MARK ", by tessera\n"

typedef struct {
    int n;
    const double *q, *intensity, *sigma; /* [n] the data */
    const double *model;                 /* [n] scale I + background */
    double background, scale, chi2, c1, c2;
    const char *note; /* ends the second line; may be empty */
} tsr_fit_file;

/* Columns q, I_exp, sigma, I_model after three lines that begin with '#', as
 * FoXS's .fit files have them; written beside and renamed. Errors: TSR_E_IO. */
tsr_status tsr_fit_file_write(const char *path, const tsr_fit_file *fit,
                              tsr_err *err);

/* Columns as named in `heading` (one or more lines, '#' is put before each):
 * column [n_column] of [n] each. Errors: TSR_E_IO. */
tsr_status tsr_table_write(const char *path, const char *heading, int n,
                           int n_column, const double *const *column,
                           tsr_err *err);

/* The same to a stream. */
tsr_status tsr_table_print(FILE *out, const char *heading, int n, int n_column,
                           const double *const *column, tsr_err *err);

#endif
