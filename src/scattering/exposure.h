/* How much hydration a body carries, from how many bodies surround it.
 *
 * The exposure of a body is the sum over its atoms of the share of each atom's
 * sphere that a probe of 1.8 Angstrom can touch (scattering/surface.h). From
 * bodies alone it is estimated by
 *
 *     e = A / (1 + exp((n - n0) / w)),   n_i = sum_{j != i} u(r_ij),
 *     u(r) = 1 below `near`, 0 above `far`, (1 + cos(pi x)) / 2 between, with
 *            x = (r - near) / (far - near)
 *
 * with A, n0 and w of the body's type. The count and its switch: Durham et al.
 * 2009, J. Mol. Model. 15, 1093. */
#ifndef TSR_MODEL_EXPOSURE_H
#define TSR_MODEL_EXPOSURE_H

#include "core/status.h"
#include "model/residue.h"

typedef struct {
    double largest; /* A, exposed atoms; 0: never exposed */
    double middle;  /* n0, neighbours */
    double width;   /* w, neighbours, above 0 */
} tsr_exposure_type;

typedef struct {
    double near_ang, far_ang;
    tsr_exposure_type type[TSR_MAX_TYPE];
} tsr_exposure_model;

/* The switch's distances for a body model: over the training structures they
 * explain within 1 % of the most variance of exposures that distances of 2 to 5
 * and 9 to 13 Angstrom do. */
tsr_exposure_model tsr_exposure_model_of(tsr_body_model model);

/* count [n] out: n_i. O(n^2). */
void tsr_exposure_count(const tsr_exposure_model *model, int n,
                        const double (*xyz)[3], double *count);

double tsr_exposure_at(const tsr_exposure_type *type, double count);

/* exposure [n] out, of n bodies. */
void tsr_exposure_estimate(const tsr_exposure_model *model, int n,
                           const int *type, const double (*xyz)[3],
                           double *exposure);

/* Counts and exposures of one type by count, in bins of 0.1: what its curve is
 * fitted to. */
enum { TSR_EXPOSURE_N_BIN = 600 };
double *tsr_exposure_bin(double *bins, double count); /* bins [N_BIN][2] */

/* The curve of least squares through sums (number, exposure) [N_BIN][2] of one
 * type; the middle of the number in a bin stands for all. Errors:
 * TSR_E_NUMERIC (no minimum). */
tsr_status tsr_exposure_fit(const double *bins, tsr_exposure_type *type,
                            tsr_err *err);

/* Sums of e and e^2 of the curve over the bins: sum [2] out. */
void tsr_exposure_bin_sums(const double *bins, const tsr_exposure_type *type,
                           double sum[2]);

#endif
