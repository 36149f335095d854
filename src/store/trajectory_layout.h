/* The groups and data sets of a trajectory. For src/store/trajectory*.c only.
 */
#ifndef TSR_STORE_TRAJECTORY_LAYOUT_H
#define TSR_STORE_TRAJECTORY_LAYOUT_H

#include "store/trajectory.h"

#include <hdf5.h>

enum { TSR_TRAJECTORY_ATOMS, TSR_TRAJECTORY_BODIES, TSR_TRAJECTORY_N_KIND };

/* Open data sets; < 0 where there is none. */
typedef struct {
    hid_t position[TSR_TRAJECTORY_N_KIND];
    hid_t step, time;
    int n_observable;
    hid_t *observable; /* [n_observable] */
} tsr_trajectory_sets;

/* Both leave *sets to be closed, also on failure. */
tsr_status tsr_trajectory_layout_make(hid_t file,
                                      const tsr_trajectory_spec *spec,
                                      tsr_trajectory_sets *sets, tsr_err *err);

/* TSR_E_DATA with the first difference between file and spec. *n_frame: in the
 * file. */
tsr_status tsr_trajectory_layout_open(hid_t file,
                                      const tsr_trajectory_spec *spec,
                                      tsr_trajectory_sets *sets, int *n_frame,
                                      tsr_err *err);

void tsr_trajectory_sets_close(tsr_trajectory_sets *sets);

/* "atoms" */
const char *tsr_trajectory_kind_name(int kind);

/* Data sets by name, or < 0: /particles/KIND/position/NAME and
 * /observables/NAME/value. */
hid_t tsr_trajectory_position(hid_t file, int kind, const char *name);
hid_t tsr_trajectory_observable_set(hid_t file, const char *name);

/* "chain", "state" or "stride"; -1 where it is absent. */
long long tsr_trajectory_parameter(hid_t file, const char *name);

#endif
