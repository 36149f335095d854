/* One frame of atoms, in double precision, for a trajectory that is written. */
#ifndef TESTS_FRAME_H
#define TESTS_FRAME_H

#include "store/trajectory.h"

#include <stdlib.h>

static inline tsr_status frame_append(tsr_trajectory *t, int64_t step,
                                      int n_atom, const double *xyz,
                                      tsr_err *err)
{
    float *single = calloc(3 * (size_t)n_atom + 1, sizeof *single);
    tsr_status status = tsr_allocated(single, err);
    for (int i = 0; i < 3 * n_atom && status == TSR_OK; i++)
        single[i] = (float)xyz[i];
    TSR_THEN(status, tsr_trajectory_append(t, 1, &step, single, NULL, err));
    free(single);
    return status;
}

#endif
