/* H5MD trajectories of any program (de Buyl, Colberg, Hoefling 2014;
 * https://nongnu.org/h5md): only coordinates are read; the atoms come from a
 * structure file. For the trajectories of tessera use store/trajectory.h. */
#ifndef TSR_STORE_H5MD_H
#define TSR_STORE_H5MD_H

#include "core/status.h"

/* An open trajectory. */
typedef struct tsr_h5md tsr_h5md;

/* Does the file begin as HDF5 files do? */
int tsr_h5md_is(const char *path);

/* Opens the first group of /particles, by name, that has position/value
 * [frame][n][3]. The unit may be Angstrom (also if there is no attribute
 * `unit`), nm or pm. Errors: TSR_E_NOINPUT; TSR_E_DATA (damaged, no such group,
 * another unit, no frame); TSR_E_IO; TSR_E_NOMEM. */
tsr_status tsr_h5md_open(const char *path, tsr_h5md **out, tsr_err *err);
void tsr_h5md_free(tsr_h5md *h5md);

int tsr_h5md_n_atom(const tsr_h5md *h5md);
int tsr_h5md_n_frame(const tsr_h5md *h5md);

/* Reads frame k, from 0: xyz [n_atom][3] out, Angstrom. Errors: TSR_E_DATA
 * (unreadable, or a coordinate is not finite). */
tsr_status tsr_h5md_read(tsr_h5md *h5md, int k, double (*xyz)[3], tsr_err *err);

#endif
