#include "analysis/mean_shape.h"

#include "analysis/superpose.h"

#include <stdlib.h>
#include <string.h>

int tsr_frames_that_fit(int n_residue)
{
    const double bytes = 200e6;
    const double fits = bytes / (3.0 * sizeof(float) * n_residue);
    return fits > 1e6 ? 1000000 : fits < 2.0 ? 2 : (int)fits;
}

tsr_status tsr_frames_gather_ca(tsr_frames *frames, int n, const int *at,
                                float **ca, tsr_err *err)
{
    const tsr_model_atoms *model = tsr_frames_atoms(frames);
    const size_t one = 3 * (size_t)model->n_residue;
    tsr_status status = TSR_OK;
    *ca = malloc(((size_t)n * one + 1) * sizeof **ca);
    if (*ca == NULL)
        return tsr_fail(err, TSR_E_NOMEM, "no memory for %d conformations", n);
    for (int i = 0; i < n && status == TSR_OK; i++) {
        const float *xyz;
        status = tsr_frames_read(frames, at[i], &xyz, err);
        for (int r = 0; status == TSR_OK && r < model->n_residue; r++)
            memcpy(*ca + (size_t)i * one + 3 * (size_t)r,
                   xyz + 3 * (size_t)model->ca[r], 3 * sizeof **ca);
    }
    if (status != TSR_OK) {
        free(*ca);
        *ca = NULL;
    }
    return status;
}

void tsr_ca_of(const float *all, int n_residue, int i, double (*ca)[3])
{
    const float *from = all + (size_t)i * 3 * (size_t)n_residue;
    for (int r = 0; r < n_residue; r++)
        for (int d = 0; d < 3; d++)
            ca[r][d] = (double)*from++;
}

/* Each one on the mean of the pass before, at first on the first; the last pass
 * takes the deviations. */
tsr_status tsr_mean_shape_make(int n, int n_residue, const float *all,
                               double (*mean)[3], double *square, tsr_err *err)
{
    enum { PASSES = 3 };
    const size_t room = (size_t)n_residue;
    double(*ca)[3] = calloc(room, sizeof *ca);
    double(*sum)[3] = calloc(room, sizeof *sum);
    if (ca == NULL || sum == NULL) {
        free(ca);
        free(sum);
        return tsr_fail(err, TSR_E_NOMEM, "no memory for the mean");
    }
    memset(square, 0, room * sizeof *square);
    tsr_ca_of(all, n_residue, 0, mean);
    for (int pass = 0; pass <= PASSES; pass++) {
        memset(sum, 0, room * sizeof *sum);
        for (int i = 0; i < n; i++) {
            tsr_motion motion;
            tsr_ca_of(all, n_residue, i, ca);
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
        if (pass < PASSES)
            memcpy(mean, sum, room * sizeof *sum);
    }
    free(ca);
    free(sum);
    return TSR_OK;
}
