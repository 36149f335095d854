/* The table of numbers in a file of a curve or a beam profile: text, or
 * canSAS's XML and HDF5 (store/cansas.h). The unit of q that the file states.
 *
 * A row of text is a line of two numbers, or of three or more numbers that text
 * may follow. Blanks, tabs, commas or semicolons separate the numbers. A
 * decimal comma is recognised if another character separates the numbers. '#'
 * or '!' begins a comment that extends to the end of the line.
 *
 * Files of other programs are recognised by their content. GNOM's output: the
 * columns S, J EXP and ERROR. CRYSOL's .int (the header begins with
 * Dif/Atom/Shape/Bord): the columns q and I. A column that follows I within a
 * factor of two is a fit and never sigma or dq: the files .fit and .fir of
 * ATSAS and FoXS are q, I, sigma, fit, or q, I, fit, or q, I, fit, sigma. */
#ifndef TSR_SCATTERING_SAXS_TABLE_H
#define TSR_SCATTERING_SAXS_TABLE_H

#include "core/pool.h"
#include "core/status.h"
#include "molecule/sas_entry.h"

typedef enum { TSR_Q_AUTO, TSR_Q_INV_ANG, TSR_Q_INV_NM } tsr_q_unit;

typedef struct {
    tsr_saxs_row *row; /* [n] rows of the table, in file order */
    int n;
    int has_sigma;     /* 3 or more columns */
    int has_dq;        /* 4 or more columns in every row */
    int has_index;     /* 1: a first column that numbers the rows was removed */
    int n_unused;      /* rows of numbers outside the table */
    long first_unused; /* line number of the first such row */
    tsr_q_unit unit;   /* stated by the file; TSR_Q_AUTO: not stated */
    int has_named_dq;  /* 1: the file calls column 4 or a slit the resolution */
    double slit[2];    /* half length, half width, in the unit of q; 0: none */
    const char *noun;  /* of row.line: "line", "point" */
    const char *note;  /* for a warning; NULL: plain columns */
    tsr_sas_entry entry; /* of SASBDB, if the file is one */
} tsr_saxs_table;

/* Reads the table. Of sasCIF: see molecule/sas_entry.h; of canSAS: see
 * store/cansas.h. Of text: the longest run of rows of equal width, extended by
 * adjacent rows that continue q. Up to four rows are left out at its beginning,
 * if their q is above that of the middle row, and at its end, if their q is far
 * beyond the others. In memory of the pool. Errors: those of reading the file,
 * of store/cansas.h and of molecule/sas_entry.h; TSR_E_NOMEM, TSR_E_DATA (no
 * table, a broken or short line inside the table). */
tsr_status tsr_saxs_table_read(const char *path, tsr_pool *pool,
                               tsr_saxs_table *table, tsr_err *err);

/* The unit of q that a header line [size] states, or TSR_Q_AUTO. Inverse forms
 * (1/nm, nm^-1, A^-1, 1/Angstrom) are recognised anywhere. A bare unit is
 * recognised after the letter q or s ("q [nm]"), and *is_loose is then 1. */
tsr_q_unit tsr_saxs_header_unit(const char *line, size_t size, int *is_loose);

#endif
