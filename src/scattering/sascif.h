/* A measured curve beside what its SASBDB entry states (molecule/sas_entry.h),
 * and curves and fits written as sasCIF. */
#ifndef TSR_SCATTERING_SASCIF_H
#define TSR_SCATTERING_SASCIF_H

#include "core/json.h"
#include "core/log.h"
#include "core/status.h"
#include "core/text.h"
#include "molecule/sas_entry.h"

/* Checks what the entry states against its curve, whose Guinier Rg is rg
 * (Angstrom; NaN: unknown). An Rg ten times too large shows lengths in
 * Angstrom, which are then converted. Logs this, and neutrons. */
void tsr_sas_entry_check(tsr_sas_entry *entry, const char *path, double rg,
                         tsr_log *log);

/* What tessera found, beside what an entry states. NaN: unknown. */
typedef struct {
    double rg;          /* Guinier's of the data, Angstrom */
    double d_max, mass; /* of the model; Angstrom, kDa */
    double chi2;        /* of the model, per point */
} tsr_sas_found;

/* Writes a sentence that compares. Nothing if the curve has no entry. */
void tsr_sas_entry_describe(const tsr_sas_entry *entry,
                            const tsr_sas_found *found, tsr_words *words);

/* Adds the member `entry` to an object, null if the curve has no entry. Lengths
 * are in Angstrom, masses in kDa. */
void tsr_sas_entry_put(const tsr_sas_entry *entry, tsr_json *json);

/* A curve, and a fit to it, for a sasCIF file. */
typedef struct {
    const char *comment; /* lines, or NULL */
    int n;
    const double *q, *intensity, *sigma; /* [n] q in 1/Angstrom */
    double rg, i0;                       /* Guinier, Angstrom; NaN: unknown */
    const double *fit;                   /* [n] NULL: no fit */
    double chi2, p; /* of the fit, per point, and of its CorMap test; NaN:
                       unknown */
} tsr_sascif;

/* Text by which tessera recognises its sasCIF files. */
#define TSR_SASCIF_MARK "# by tessera "

/* Returns 1 if a file name ends in .sascif or .cif. */
int tsr_sascif_is_name(const char *path);

/* Writes the file; numbers have all digits, so reading it returns the same
 * curve. The data blocks have the name of the file. Errors: TSR_E_IO. */
tsr_status tsr_sascif_write(const char *path, const tsr_sascif *what,
                            tsr_err *err);

#endif
