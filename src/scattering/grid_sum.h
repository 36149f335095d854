/* Debye profiles by fast Fourier transforms, at a cost linear in the particles
 * and in the volume of their box, for all q at once.
 *
 *     I_ab(q) = sum_r g_ab(r) sinc(q r) / W(q),   g_ab = IFFT[W A_a A_b* ]
 *
 * A_a: the amplitudes on a grid of k, from particles spread on a grid in
 * space; W: a window. Form factors are to be as smooth in q as atoms' are,
 * since g_ab would not end at the box otherwise: with the refined tables of
 * bodies it is 1e-3 off. g_ab has values at distances whose squares are
 * integers times h^2, thousands of them. Methods: Barnett et al. 2019
 * (spreading); the sum over distances in place of one over directions of k is
 * exact. */
#ifndef TSR_SCATTERING_GRID_SUM_H
#define TSR_SCATTERING_GRID_SUM_H

#include "scattering/debye.h"

/* Its size, which time and memory follow from; modes are counted as for the
 * atoms of a protein, which the form factors' decomposition then finds. */
typedef struct {
    int n_mode, n_pair;
    double n_spread; /* particles times their modes */
    double n_point;  /* of the grid */
    double bytes;
} tsr_grid_size;

void tsr_grid_size_of(const tsr_debye_spec *spec, tsr_grid_size *out);

/* Up to this q, 1/Angstrom, amplitudes have not yet fallen below what the
 * modes' curves are exact to. */
extern const double tsr_grid_q_max;

/* profile [n_pair][n_q] out, as tsr_debye_reference's, which it meets to 1e-5
 * of sqrt(I_aa I_bb). The number of threads does not change the result. Errors:
 * TSR_E_RANGE (q), TSR_E_NOMEM, those of tsr_debye_check and of progress. */
tsr_status tsr_grid_sum(const tsr_debye_spec *spec, int n_thread,
                        const tsr_debye_progress *progress, double *profile,
                        tsr_err *err);

#endif
