/* DCD, the trajectory format of CHARMM, NAMD and X-PLOR, which VMD and
 * MDAnalysis also write. A DCD file contains coordinates only; the atoms come
 * from a structure file. */
#ifndef TSR_FILES_DCD_H
#define TSR_FILES_DCD_H

#include "core/status.h"

/* An open trajectory. */
typedef struct tsr_dcd tsr_dcd;

/* Size of a trajectory. */
typedef struct {
    int n_atom;
    int n_frame; /* complete frames by the size of the file, whatever number the
                    header states */
    int is_cut;  /* 1: the file ends within a frame */
} tsr_dcd_info;

/* Opens a file of either byte order. Unit cells and a fourth dimension are
 * skipped. Errors: TSR_E_NOINPUT; TSR_E_DATA (not a DCD file, velocities, fixed
 * atoms that only the first frame contains, no complete frame); TSR_E_IO;
 * TSR_E_NOMEM. */
tsr_status tsr_dcd_open(const char *path, tsr_dcd **out, tsr_err *err);
void tsr_dcd_free(tsr_dcd *dcd);

tsr_dcd_info tsr_dcd_info_get(const tsr_dcd *dcd);

/* Reads frame k, from 0: xyz [n_atom][3] out, Angstrom. Errors: TSR_E_IO;
 * TSR_E_DATA (damaged, or a coordinate is not finite). */
tsr_status tsr_dcd_read(tsr_dcd *dcd, int k, double (*xyz)[3], tsr_err *err);

#endif
