/* A SASBDB entry, as its sasCIF file states it: a measured curve, the results
 * of its authors, and the chi2 of their fits.
 *
 * Source: Malfois & Svergun 2000, J. Appl. Cryst. 33, 812; dictionary
 * mmcif_sas.dic 0.6 (wwPDB). Lengths of _sas_result are in nm and masses in
 * kDa, as in SASBDB, whatever the unit of q. */
#ifndef TSR_MOLECULE_SAS_ENTRY_H
#define TSR_MOLECULE_SAS_ENTRY_H

#include "core/pool.h"
#include "core/status.h"

#include <stddef.h>

enum { TSR_MOST_SAS_FITS = 16 };

/* The results of an entry. NaN: not stated. */
typedef struct {
    char name[64];           /* "SASDA52"; "": the curve is from no entry */
    char source[80];         /* of the beam, as "X-ray synchrotron"; or "" */
    double rg, rg_error;     /* Guinier, Angstrom */
    double rg_pr, d_max;     /* of P(r), Angstrom */
    double mass, mass_porod; /* from I(0), and from Porod's volume; kDa */
    int n_fit;               /* fits of models, the first of them */
    double chi2[TSR_MOST_SAS_FITS];
} tsr_sas_entry;

/* A point of the curve as stated. NaN: not stated, or no number. */
typedef struct {
    double q, intensity, sigma;
    long line; /* line number, from 1 */
} tsr_sas_point;

/* The curve of an entry. */
typedef struct {
    tsr_sas_point *point; /* [n] */
    int n;                /* at least 1 */
    int n_unused;         /* points of scans after the first */
    long first_unused;    /* line of the first such point */
    char unit[40];        /* of q (_sas_scan.unit): "1/nm"; "": not stated */
} tsr_sas_curve;

/* Returns 1 if a text is CIF: it begins, after blanks and comments, with a data
 * block, and has an item or a loop. A NUL follows the `size` bytes. */
int tsr_sas_is_cif(const char *text, size_t size);

/* Reads the first data block that has a curve (_sas_scan_intensity), and the
 * fits of all blocks (_sas_model_fitting_details), with gemmi
 * (molecule/structure_read.cc). Points are in memory of the pool. Errors, with
 * file and line: TSR_E_DATA (no CIF, no curve), TSR_E_NOMEM. */
tsr_status tsr_sas_entry_read(const char *path, const char *text, size_t size,
                              tsr_pool *pool, tsr_sas_entry *entry,
                              tsr_sas_curve *curve, tsr_err *err);

#endif
