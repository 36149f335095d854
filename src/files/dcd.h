/* DCD, the trajectory format of CHARMM, NAMD and X-PLOR, which VMD and
 * MDAnalysis write, too: coordinates alone, a frame after the other. The atoms
 * come from a structure file. */
#ifndef TSR_FILES_DCD_H
#define TSR_FILES_DCD_H

#include "core/status.h"

typedef struct tsr_dcd tsr_dcd;

typedef struct {
    int n_atom;
    int n_frame; /* whole ones that are in the file, whatever its header says */
    int is_cut;  /* it ends within a frame */
} tsr_dcd_info;

/* Either order of bytes, with or without a unit cell and a fourth dimension,
 * which are passed over. Errors: TSR_E_NOINPUT; TSR_E_DATA (no DCD file,
 * velocities, atoms that are fixed and stand in the first frame alone, no whole
 * frame); TSR_E_NOMEM. */
tsr_status tsr_dcd_open(const char *path, tsr_dcd **out, tsr_err *err);
void tsr_dcd_free(tsr_dcd *dcd);

tsr_dcd_info tsr_dcd_info_get(const tsr_dcd *dcd);

/* Frame k: xyz [n_atom][3], Angstrom. Errors: TSR_E_IO; TSR_E_DATA (damaged, or
 * a coordinate that is not a finite number). */
tsr_status tsr_dcd_read(tsr_dcd *dcd, int k, double (*xyz)[3], tsr_err *err);

#endif
