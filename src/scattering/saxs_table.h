/* The table of numbers in a text file, of a curve or of a beam profile: which
 * lines are rows, and what unit of q the others name.
 *
 * A row is a line of 2 or more numbers. Numbers are separated by blanks, tabs,
 * commas or semicolons; a decimal comma is understood where something else
 * separates the numbers. Lines that start with '#' are comments, and what
 * follows a '#' or '!' in a row is one too. */
#ifndef TSR_SCATTERING_SAXS_TABLE_H
#define TSR_SCATTERING_SAXS_TABLE_H

#include "core/pool.h"
#include "core/status.h"

typedef enum { TSR_Q_AUTO, TSR_Q_INV_ANG, TSR_Q_INV_NM } tsr_q_unit;

typedef struct {
    double value[5]; /* as many as width says, at most five */
    int width;       /* numbers in the line */
    long line;       /* from 1 */
} tsr_saxs_row;

typedef struct {
    tsr_saxs_row *row; /* [n] the table, in file order */
    int n;
    int has_sigma;     /* 3 or more columns */
    int has_dq;        /* 4 or more in every row */
    int has_index;     /* a column before q counts the rows; value is without */
    int n_unused;      /* rows of numbers that are not in the table */
    long first_unused; /* line of the first of them */
    tsr_q_unit unit;   /* as the header says; TSR_Q_AUTO where it is silent */
} tsr_saxs_table;

/* The table is the longest run of rows of one width, and the rows beside it
 * that continue it, less a footer of up to four rows far away in q. Its memory
 * is of the pool. Errors: those of reading the file, TSR_E_DATA (no table, a
 * broken or short line inside the table). */
tsr_status tsr_saxs_table_read(const char *path, tsr_pool *pool,
                               tsr_saxs_table *table, tsr_err *err);

/* The unit of q that a header line names, or TSR_Q_AUTO. Inverse forms (1/nm,
 * nm^-1, A^-1, 1/Angstrom) count anywhere; a bare unit counts after the letter
 * q ("q [nm]"), and *is_loose is 1 then. */
tsr_q_unit tsr_saxs_header_unit(const char *line, size_t size, int *is_loose);

#endif
