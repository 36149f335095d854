/* How an atom looks at a resolution: one Gaussian, or a few.
 *
 * A density map of resolution R shows every atom blurred. Programs do not agree
 * on by how much: the width is sigma = (sigma / R) R with sigma / R from 0.19
 * to 0.5. A correlation without that number says little, so it is part of every
 * result. Three kinds of atoms are blurred so:
 *
 *   gaussian   a point of as many electrons as the element has, as in molmap
 *              of Chimera and in EMAN; sigma / R is 0.225 there
 *   radius     height 1 for every atom, a width in proportion to a radius
 *              (H 1.0, C 1.5, N 1.4, O 1.3, F 1.2, S 1.9, others 1.5 Angstrom),
 *              as in VMD (Stone et al. 2014, Faraday Discuss. 169:265); sigma /
 * R is that of carbon, 0.30 there electron   the potential that electrons
 * scatter from: five Gaussians an element (International Tables C,
 * table 4.3.2.2; Peng et al. 1996), each of them blurred */
#ifndef TSR_MAPS_BLUR_H
#define TSR_MAPS_BLUR_H

#include "core/status.h"

typedef enum { TSR_BLUR_GAUSSIAN, TSR_BLUR_RADIUS, TSR_BLUR_ELECTRON } tsr_blur;

/* Gaussians end at so many sigma along each axis: exp(-12.5) = 4e-6. */
#define TSR_BLUR_REACH 5.0

/* A exp(-r^2 / 2 sigma^2) about the atom. */
typedef struct {
    double amplitude, sigma_ang;
    int is_atom; /* 1: the first of its atom, which a mask is made around */
} tsr_gaussian;

enum { TSR_MOST_GAUSSIANS = 256, TSR_MOST_ELEMENTS = 99 };

typedef struct {
    tsr_blur kind;
    double resolution_ang, sigma_over_r;
    int n;
    tsr_gaussian gaussian[TSR_MOST_GAUSSIANS];
    int first[TSR_MOST_ELEMENTS], count[TSR_MOST_ELEMENTS]; /* of an element */
} tsr_blur_table;

/* "gaussian", "radius", "electron". */
const char *tsr_blur_name(tsr_blur kind);

/* Of a name. Errors: TSR_E_USAGE, with the names there are. */
tsr_status tsr_blur_find(const char *name, tsr_blur *out, tsr_err *err);

/* What programs of the kind use. */
double tsr_blur_usual(tsr_blur kind);

/* For the elements that z [n_atom] names. Errors: TSR_E_DATA (an element that
 * the tables lack, too many elements). */
tsr_status tsr_blur_make(tsr_blur kind, double resolution_ang,
                         double sigma_over_r, int n_atom, const int *z,
                         tsr_blur_table *out, tsr_err *err);

#endif
