/* Curves in the formats that name their columns and units: those of canSAS, the
 * working group of small-angle scattering, and sasCIF (molecule/sas_entry.h).
 * canSAS has cansas1d XML 1.0 and 1.1 (Q, I, Idev, Qdev, dQl and dQw in
 * SASroot/SASentry/SASdata/Idata), and NXcanSAS, HDF5 by the rules of NeXus
 * (data sets of these names in a group SASdata). Sources:
 * www.cansas.org/formats/1.1; manual.nexusformat.org, definition NXcanSAS.
 *
 * The readers take the first curve of a file, for HDF5 in the order of names.
 * They do not convert units or judge values. */
#ifndef TSR_STORE_CANSAS_H
#define TSR_STORE_CANSAS_H

#include "core/pool.h"
#include "core/status.h"

typedef enum {
    TSR_CANSAS_Q,
    TSR_CANSAS_I,
    TSR_CANSAS_IDEV, /* sigma of I */
    TSR_CANSAS_QDEV, /* sigma of q */
    TSR_CANSAS_DQL,  /* half length of the slit, across the direction of q */
    TSR_CANSAS_DQW,  /* half width of the slit, along q */
    TSR_CANSAS_N
} tsr_cansas_column;

enum { TSR_CANSAS_UNIT = 128 };

/* A point of a curve, or a row of numbers in a text. */
typedef struct {
    double value[TSR_CANSAS_N]; /* NaN: missing in this point; of a text the
                                   first min(width, TSR_CANSAS_N) numbers */
    int width;                  /* text: numbers at the beginning of the line */
    long line; /* text, XML: line; else the number of the point, from 1 */
} tsr_saxs_row;

typedef struct {
    tsr_saxs_row *point; /* [n] in file order */
    int n;
    int has[TSR_CANSAS_N]; /* 1: at least one point has this column */
    char unit[TSR_CANSAS_N][TSR_CANSAS_UNIT]; /* text with the unit, which may
                                                 contain more; "": not stated */
    int n_data;                               /* curves in the file */
} tsr_cansas;

/* Reads XML from a text. Entities are not expanded, so that a small file cannot
 * grow in memory. path: for messages. Errors: TSR_E_NOMEM, TSR_E_DATA (no
 * SASdata, Q or I that is not a number, a file that was cut). */
tsr_status tsr_cansas_read_xml(const char *path, const char *text,
                               tsr_pool *pool, tsr_cansas *out, tsr_err *err);

/* Reads HDF5. Errors: TSR_E_NOINPUT, TSR_E_IO, TSR_E_NOMEM, TSR_E_DATA (not
 * HDF5, damaged, no SASdata, columns that are absent or of unequal length). */
tsr_status tsr_cansas_read_hdf5(const char *path, tsr_pool *pool,
                                tsr_cansas *out, tsr_err *err);

#endif
