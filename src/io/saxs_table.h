/* The table in a text file: which lines are rows, and what unit the rest names.
 *
 * Between io/saxs.c and the text; nothing else includes it. A row is a line of
 * 2 or more numbers. Numbers are separated by blanks, tabs, commas or
 * semicolons; a decimal comma is understood where something else separates the
 * numbers. Lines that start with '#' are comments, and what follows a '#' or
 * '!' in a row is one too. */
#ifndef TSR_IO_SAXS_TABLE_H
#define TSR_IO_SAXS_TABLE_H

#include "core/status.h"
#include "io/saxs.h"

#include <stddef.h>

typedef struct {
    double value[3]; /* as many as width says, at most three */
    int width;       /* numbers in the line */
    long line;       /* from 1 */
} tsr_saxs_row;

typedef struct {
    tsr_saxs_row *row; /* [n] the table, in file order */
    int n;
    int has_sigma;     /* 3 or more columns */
    int n_unused;      /* rows of numbers that are not in the table */
    long first_unused; /* line of the first of them */
    tsr_q_unit unit;   /* as the header says; TSR_Q_AUTO where it is silent */
} tsr_saxs_table;

/* text [size] must end in a NUL that size does not count. `path` is for
 * messages. The table is the longest run of rows of one width, and the rows
 * beside it that continue it, less a footer of up to four rows far away in q.
 * Errors: TSR_E_DATA (no table, a broken or short line inside the table). The
 * caller frees table->row. */
tsr_status tsr_saxs_table_find(const char *path, const char *text, size_t size,
                               tsr_saxs_table *table, tsr_err *err);

/* The unit of q that a header line names, or TSR_Q_AUTO. Inverse forms (1/nm,
 * nm^-1, A^-1, 1/Angstrom) count anywhere; with `is_loose`, a bare unit after
 * the letter q counts too ("q [nm]"). */
tsr_q_unit tsr_saxs_header_unit(const char *line, size_t size, int is_loose);

#endif
