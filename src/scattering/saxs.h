/* SAXS curves: text tables of q, I(q), sigma(q).
 *
 * Comments and headers may stand before, between or after the rows; a row is a
 * line of 2 or more numbers, of which the first three count; the table is the
 * longest run of rows of one width. */
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

/* The noise of a curve in units of sigma, by the distance of each point from a
 * smooth line through its neighbours (saxs_noise.c): 1 on average for
 * independent noise of sigma, near 0 for a smoothed curve. NaN: fewer than some
 * 44 points, or a curve that is not smooth from point to point. */
typedef struct {
    int n;               /* points */
    double next, second; /* among all points, and among every second one */
    double level;        /* the noise in all: the larger where is_shared */
    int is_shared;       /* neighbours share noise (smoothed, finer than the
                            resolution): CorMap does not apply */
} tsr_saxs_noise;

tsr_saxs_noise tsr_saxs_noise_make(int n, const double *q,
                                   const double *intensity,
                                   const double *sigma);

/* Sentences on the noise, each behind a blank, and on which part of a model's
 * residuals is misfit: residual is their size in sigma (NaN: no model). Nothing
 * where the noise is not known. Returns whether sigma is far from the noise. */
int tsr_saxs_noise_describe(const tsr_saxs_noise *noise, double residual,
                            tsr_words *words);

typedef struct {
    tsr_pool pool;
    char *path;
    int n;
    double *q;         /* [n] 1/Angstrom, strictly ascending, > 0 or 0 first */
    double *intensity; /* [n] as in the file */
    double *sigma;     /* [n] > 0 */
    double *dq;        /* [n] the fourth column, 1/Angstrom; NULL: none. What it
                          means, tsr_saxs_set_resolution decides */
    tsr_resolution resolution; /* of the instrument; ideal as read */
    tsr_q_unit unit_in_file;
    char unit_reason[80];  /* "header says 1/nm", "q_max > 1", "config" */
    int sigma_is_modelled; /* two columns: sigma stated, not measured */
    tsr_saxs_noise noise;
    int n_dropped_sigma; /* rows with sigma <= 0, or I or sigma not finite */
    int n_dropped_duplicate;
    int n_negative;    /* rows with I <= 0, kept */
    int n_outside;     /* rows outside q_range */
    double rg_guinier; /* Angstrom; NaN where no Guinier range was found */
    double i0_guinier;
    int n_guinier; /* points in the fit */
} tsr_saxs;

/* Reads a curve. unit: TSR_Q_AUTO goes by the header, else by the rule
 * q_max > 1 means 1/nm. q_range [2] in 1/Angstrom keeps rows inside it; NULL
 * keeps all. Two columns: sigma = 0.03 I(q) + 0.003 max I, stated in the log.
 * Refused, naming file and line: no table, q that is NaN or unsorted, fewer
 * than 5 rows left, I or sigma of more than 50 digits, sigma above I at low q
 * (swapped columns), q that no instrument measures (TSR_E_DATA), missing
 * file (TSR_E_NOINPUT). Rows with sigma <= 0, with I or sigma that is no finite
 * number and repeated q are dropped and counted; I <= 0 is kept and counted.
 * What was decided is written to `log` (NULL: silent). */
tsr_status tsr_saxs_read(const char *path, tsr_q_unit unit,
                         const double *q_range, tsr_log *log, tsr_saxs **out,
                         tsr_err *err);
void tsr_saxs_free(tsr_saxs *saxs);

/* Settles by which resolution a model's curve is smeared before it is compared
 * with this one, and says so. Errors: those of tsr_resolution_make. */
tsr_status tsr_saxs_set_resolution(tsr_saxs *saxs,
                                   const tsr_resolution_options *options,
                                   tsr_log *log, tsr_err *err);

/* Up to which q a model's curve has to be known for it. */
double tsr_saxs_q_max(const tsr_saxs *saxs);

/* Writes q, I, sigma, and dq where it is not NULL, as text with `comment` (may
 * be NULL, several lines) before it; writes beside and renames. Errors:
 * TSR_E_IO. */
tsr_status tsr_saxs_write(const char *path, int n, const double *q_inv_ang,
                          const double *intensity, const double *sigma,
                          const double *dq, const char *comment, tsr_err *err);

#endif
