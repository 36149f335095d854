/* The table of numbers in a text file of a curve or a beam profile, and the
 * unit of q that the other lines state.
 *
 * A row is a line of 2 or more numbers, separated by blanks, tabs, commas or
 * semicolons. A decimal comma is recognised if another character separates the
 * numbers. Lines that start with '#' are comments, and so is the rest of a row
 * after '#' or '!'. */
#ifndef TSR_SCATTERING_SAXS_TABLE_H
#define TSR_SCATTERING_SAXS_TABLE_H

#include "core/pool.h"
#include "core/status.h"

typedef enum { TSR_Q_AUTO, TSR_Q_INV_ANG, TSR_Q_INV_NM } tsr_q_unit;

typedef struct {
    double value[5]; /* the first min(width, 5) numbers */
    int width;       /* number of numbers in the line */
    long line;       /* line number, from 1 */
} tsr_saxs_row;

typedef struct {
    tsr_saxs_row *row; /* [n] rows of the table, in file order */
    int n;
    int has_sigma;     /* 3 or more columns */
    int has_dq;        /* 4 or more columns in every row */
    int has_index;     /* 1: a first column that numbers the rows was removed */
    int n_unused;      /* rows of numbers outside the table */
    long first_unused; /* line number of the first such row */
    tsr_q_unit unit;   /* stated by the header; TSR_Q_AUTO: not stated */
} tsr_saxs_table;

/* Reads the table: the longest run of rows of equal width, extended by adjacent
 * rows that continue it, minus a footer of up to four rows with very different
 * q. In memory of the pool. Errors: those of reading the file, TSR_E_DATA (no
 * table, a broken or short line inside the table). */
tsr_status tsr_saxs_table_read(const char *path, tsr_pool *pool,
                               tsr_saxs_table *table, tsr_err *err);

/* The unit of q that a header line states, or TSR_Q_AUTO. Inverse forms (1/nm,
 * nm^-1, A^-1, 1/Angstrom) are recognised anywhere. A bare unit is recognised
 * after the letter q ("q [nm]"), and *is_loose is then 1. */
tsr_q_unit tsr_saxs_header_unit(const char *line, size_t size, int *is_loose);

#endif
