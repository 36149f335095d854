#include "analysis/mean_shape.h"

#include "analysis/superpose.h"

#include <stdlib.h>
#include <string.h>

tsr_status tsr_frames_read_ca(tsr_frames *frames, int i, double (*ca)[3],
                              tsr_err *err)
{
    const tsr_model_atoms *model = tsr_frames_atoms(frames);
    const float *xyz;
    tsr_status status = tsr_frames_read(frames, i, &xyz, err);
    for (int r = 0; status == TSR_OK && r < model->n_residue; r++)
        for (int d = 0; d < 3; d++)
            ca[r][d] = (double)xyz[3 * model->ca[r] + d];
    return status;
}

/* Each frame on the mean of the pass before, at first on the first frame; the
 * last pass takes the deviations. */
tsr_status tsr_mean_shape_make(tsr_frames *frames, int n, const int *at,
                               double (*mean)[3], double *square, tsr_err *err)
{
    enum { PASSES = 3 };
    const int n_residue = tsr_frames_atoms(frames)->n_residue;
    const size_t room = (size_t)n_residue;
    double(*ca)[3] = calloc(room, sizeof *ca);
    double(*sum)[3] = calloc(room, sizeof *sum);
    tsr_status status =
        ca != NULL && sum != NULL
            ? tsr_frames_read_ca(frames, at[0], mean, err)
            : tsr_fail(err, TSR_E_NOMEM, "no memory for the mean");
    memset(square, 0, room * sizeof *square);
    for (int pass = 0; pass <= PASSES && status == TSR_OK; pass++) {
        memset(sum, 0, room * sizeof *sum);
        for (int i = 0; i < n; i++) {
            tsr_motion motion;
            status = tsr_frames_read_ca(frames, at[i], ca, err);
            if (status != TSR_OK)
                break;
            tsr_superpose(n_residue, (const double(*)[3])mean,
                          (const double(*)[3])ca, &motion);
            for (int r = 0; r < n_residue; r++) {
                tsr_motion_apply(&motion, ca[r]);
                if (pass == PASSES)
                    square[r] += tsr_vec3_distance2(ca[r], mean[r]) / n;
                for (int d = 0; d < 3; d++)
                    sum[r][d] += ca[r][d] / n;
            }
        }
        if (pass < PASSES && status == TSR_OK)
            memcpy(mean, sum, room * sizeof *sum);
    }
    free(ca);
    free(sum);
    return status;
}
