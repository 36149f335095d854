/* Trajectories of other programs: DCD (files/dcd.h) or H5MD (de Buyl, Colberg,
 * Hoefling 2014; https://nongnu.org/h5md). Only coordinates are read; the atoms
 * come from a structure file. For the trajectories of tessera use
 * store/trajectory.h. */
#ifndef TSR_STORE_MD_FRAMES_H
#define TSR_STORE_MD_FRAMES_H

#include "core/log.h"
#include "core/status.h"

/* An open trajectory. */
typedef struct tsr_md_frames tsr_md_frames;

/* Opens a trajectory of the n_atom atoms of the file `atoms`, which is only
 * named in messages. Warns where a DCD file ends within a frame. Of H5MD, the
 * first group of /particles, by name, with position/value [frame][n][3] is
 * read, in Angstrom (also if there is no attribute `unit`), nm or pm. Errors:
 * TSR_E_NOINPUT; TSR_E_DATA (damaged, no such group, another unit, no frame,
 * another number of atoms); TSR_E_IO; TSR_E_NOMEM. */
tsr_status tsr_md_frames_open(const char *path, const char *atoms, int n_atom,
                              tsr_log *log, tsr_md_frames **out, tsr_err *err);
void tsr_md_frames_free(tsr_md_frames *frames);

/* Number of frames. */
int tsr_md_frames_n(const tsr_md_frames *frames);

/* Reads frame k, from 0: *xyz [n_atom][3] out, Angstrom, valid until the next
 * call. Errors: TSR_E_IO; TSR_E_DATA (unreadable, or a coordinate is not
 * finite). */
tsr_status tsr_md_frames_read(tsr_md_frames *frames, int k,
                              const double (**xyz)[3], tsr_err *err);

#endif
