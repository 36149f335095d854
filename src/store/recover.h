/* Commits that a kill or a power cut interrupted, in the files of a run: for
 * `resume` and `status`, before other programs read the files. Opening a trace
 * or a trajectory does the same for that file by itself. */
#ifndef TSR_IO_RECOVER_H
#define TSR_IO_RECOVER_H

#include "core/status.h"

typedef struct {
    int n_finished;    /* files whose commit has been finished now */
    int n_pending;     /* that could not be: no right to write, no space */
    int n_busy;        /* that a writer is in the middle of */
    int n_orphan;      /* journals whose file is gone */
    char pending[256]; /* name of the first pending file, or "" */
} tsr_recovery;

/* Looks at every journal in a directory. A pending one does no harm to readers
 * of ours; others (h5py) see the file as the commit before left it, or cannot
 * open it: say so, and that it takes the right to write. Errors: TSR_E_NOINPUT
 * (no such directory), TSR_E_DATA (a journal that does not fit its file, or of
 * a newer tessera; the other files are done all the same), TSR_E_IO. */
tsr_status tsr_recover(const char *directory, tsr_recovery *recovery,
                       tsr_err *err);

#endif
