/* Measured scattering curves: q, I(q), sigma(q) from text, cansas1d XML,
 * NXcanSAS, and files of ATSAS and FoXS.
 *
 * Comments and headers may appear before, between and after the rows
 * (saxs_table.h). A fourth column may give the resolution (resolution.h). */
#ifndef TSR_SCATTERING_SAXS_H
#define TSR_SCATTERING_SAXS_H

#include "core/log.h"
#include "core/status.h"
#include "core/text.h"
#include "scattering/resolution.h"
#include "scattering/saxs_table.h"

#include <stddef.h>

/* "1/nm" or "1/Angstrom". */
const char *tsr_q_unit_name(tsr_q_unit unit);

/* The noise of a curve in units of sigma, from the distance of each point to a
 * smooth line through its neighbours (saxs_noise.c). Independent noise of sigma
 * gives 1, a smoothed curve gives near 0. NaN: fewer than 44 points, or a
 * curve that is not smooth on the scale of its points. */
typedef struct {
    int n;               /* number of points */
    double next, second; /* from all points; from every second point, or
                            equal to `next` if these do not determine it */
    double level;        /* noise of the curve: `next`, or the larger of the two
                            if is_shared */
    int is_shared;       /* 1: neighbours share noise (smoothed, or sampled
                            finer than the resolution), so CorMap does not
                            apply */
} tsr_saxs_noise;

tsr_saxs_noise tsr_saxs_noise_make(int n, const double *q,
                                   const double *intensity,
                                   const double *sigma);

/* Writes sentences to `words`, each after a blank: about the noise, and about
 * the misfit of a model whose residuals have size `residual` in units of sigma
 * (NaN: no model). Writes nothing if the noise is unknown. Returns 1 if the
 * noise is below half of sigma or above 1.5 sigma. */
int tsr_saxs_noise_describe(const tsr_saxs_noise *noise, double residual,
                            tsr_words *words);

typedef struct {
    tsr_pool pool;
    char *path;
    int n;
    double *q;         /* [n] 1/Angstrom, strictly ascending, all > 0 except
                          possibly the first */
    double *intensity; /* [n] as in the file */
    double *sigma;     /* [n] > 0 */
    double *dq;        /* [n] fourth column, 1/Angstrom; NULL: none.
                          tsr_saxs_set_resolution decides its meaning */
    int has_named_dq;  /* 1: the file calls dq or the slit its resolution */
    double slit[2];    /* half length, half width, 1/Angstrom; 0: none */
    tsr_resolution resolution; /* of the instrument; ideal after reading */
    tsr_q_unit unit_in_file;
    char unit_reason[80];  /* "header says 1/nm", "q_max > 1", "config" */
    int sigma_is_modelled; /* 1: no sigma column; sigma comes from a model */
    tsr_saxs_noise noise;
    int n_dropped_sigma; /* rows dropped because sigma <= 0, or I or sigma is
                            not finite */
    int n_dropped_duplicate;
    int n_negative;      /* rows with I <= 0, kept */
    int n_outside;       /* rows outside q_range, left out */
    double rg_guinier;   /* Angstrom; NaN if no Guinier range was found */
    double i0_guinier;   /* in the unit of intensity; likewise NaN */
    tsr_sas_entry entry; /* of SASBDB, if the file is one */
    int n_guinier;       /* points in the fit */
} tsr_saxs;

/* Reads a curve.
 * unit     TSR_Q_AUTO: from the header, else 1/nm if q_max > 1
 * q_range  [2] 1/Angstrom, keeps the rows inside; NULL: keeps all rows
 * log      receives all decisions; NULL: silent
 * With two columns sigma = 0.03 |I(q)| + 0.003 max I. Rows are dropped and
 * counted if sigma <= 0, if I or sigma is not finite, or if q repeats. Rows
 * with I <= 0 are kept and counted. Errors: TSR_E_CONFIG (q_range does not
 * ascend), TSR_E_NOINPUT (missing file), TSR_E_NOMEM, TSR_E_DATA, with file and
 * mostly a line (no table; two columns without a positive I; q that is not
 * finite, negative or not sorted; fewer than 5 rows left; |I| or sigma above
 * 1e50, or sigma below 1e-50; sigma above 3 |I| at low q, which suggests
 * swapped columns; q outside any instrument's range). */
tsr_status tsr_saxs_read(const char *path, tsr_q_unit unit,
                         const double *q_range, tsr_log *log, tsr_saxs **out,
                         tsr_err *err);
void tsr_saxs_free(tsr_saxs *saxs);

/* Determines the resolution that smears a model's curve before the comparison
 * with these data, and logs it. dq: column or auto also takes the slit of the
 * file, if the options have none. Errors: those of tsr_resolution_make. */
tsr_status tsr_saxs_set_resolution(tsr_saxs *saxs,
                                   const tsr_resolution_options *options,
                                   tsr_log *log, tsr_err *err);

/* Largest q at which a model's curve is needed. */
double tsr_saxs_q_max(const tsr_saxs *saxs);

/* The columns of a file, and of sasCIF a fit to the curve. */
typedef struct {
    const char *comment; /* lines, or NULL */
    int n;
    const double *q, *intensity, *sigma; /* [n] q in 1/Angstrom */
    const double *dq;                    /* [n] 1/Angstrom; NULL: none */
    double rg, i0;     /* Guinier, Angstrom; 0 or NaN: unknown */
    const double *fit; /* [n] NULL: no fit */
    double chi2, p;    /* of the fit, per point, and of its CorMap test; NaN:
                          unknown */
} tsr_saxs_columns;

/* Text by which tessera recognises its sasCIF files. */
#define TSR_SASCIF_MARK "# by tessera "

/* Returns 1 if a file name ends in .sascif or .cif. */
int tsr_sascif_is_name(const char *path);

/* Writes the comment and the columns q, I, sigma and dq as text, or, by the
 * name of the file, sasCIF, whose data blocks have the name of the file.
 * Numbers have ten digits. Errors: TSR_E_USAGE (sasCIF has no dq), TSR_E_IO. */
tsr_status tsr_saxs_write(const char *path, const tsr_saxs_columns *columns,
                          tsr_err *err);

#endif
