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
#include "store/cansas.h"

#include <stddef.h>

enum { TSR_MOST_SAS_FITS = 16 };

/* The results of an entry. NaN: not stated. */
typedef struct {
    char name[64];           /* "SASDA52"; "": the curve is from no entry */
    char source[80];         /* of the beam, as "X-ray synchrotron"; or "" */
    double rg;               /* Guinier, Angstrom */
    double rg_pr, d_max;     /* of P(r), Angstrom */
    double mass, mass_porod; /* from I(0), and from Porod's volume; kDa */
    int n_fit;               /* fits of models, the first of them */
    double chi2[TSR_MOST_SAS_FITS];
} tsr_sas_entry;

/* Returns 1 if a text is CIF: it begins, after blanks and comments, with a data
 * block, and has an item or a loop. A NUL follows the `size` bytes. */
int tsr_sas_is_cif(const char *text, size_t size);

/* Reads the first data block that has a curve (_sas_scan_intensity), and the
 * fits of all blocks (_sas_model_fitting_details), with gemmi
 * (molecule/structure_read.cc). The curve is that of the first scan of its
 * loop; n_data counts scans. Errors, with file and line: TSR_E_DATA (no CIF, no
 * curve), TSR_E_NOMEM. */
tsr_status tsr_sas_entry_read(const char *path, const char *text, size_t size,
                              tsr_pool *pool, tsr_sas_entry *entry,
                              tsr_cansas *curve, tsr_err *err);

#endif
