/* H5MD of any program (de Buyl, Colberg, Hoefling 2014;
 * https://nongnu.org/h5md): the coordinates of its particles, a frame after the
 * other. The atoms come from a structure file. Our own trajectories have a
 * reader that knows more of them (store/trajectory.h). */
#ifndef TSR_STORE_H5MD_H
#define TSR_STORE_H5MD_H

#include "core/status.h"

typedef struct tsr_h5md tsr_h5md;

/* Whether the file begins as HDF5 does. */
int tsr_h5md_is(const char *path);

/* The first group of /particles by name that has position/value
 * [frame][n][3]. Its attribute `unit` may be Angstrom, nm or pm; without one it
 * is Angstrom. Errors: TSR_E_NOINPUT; TSR_E_DATA (damaged, no such group,
 * another unit, no frame); TSR_E_IO; TSR_E_NOMEM. */
tsr_status tsr_h5md_open(const char *path, tsr_h5md **out, tsr_err *err);
void tsr_h5md_free(tsr_h5md *h5md);

int tsr_h5md_n_atom(const tsr_h5md *h5md);
int tsr_h5md_n_frame(const tsr_h5md *h5md);

/* Frame k: xyz [n_atom][3], Angstrom. Errors: TSR_E_DATA (cannot be read, or a
 * coordinate that is not a finite number). */
tsr_status tsr_h5md_read(tsr_h5md *h5md, int k, double (*xyz)[3], tsr_err *err);

#endif
