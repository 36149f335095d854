/* Known answers of the grid on its device, against Debye's formula in double
 * precision: a few particles, whose box is small. */
#include "gpu/grid_fft.h"

#include <math.h>

enum { N_PARTICLE = 60, N_TYPE = 3, N_COMP = 2, N_PAIR = 3, N_Q = 14 };

static const double limit = 1e-5, dq = 0.04, side = 25.0;

static double uniform(uint64_t *state)
{
    *state =
        *state * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
    return (double)(*state >> 11) * 0x1p-53;
}

tsr_status tsr_grid_fft_test(tsr_grid_fft *grid, double *max_error,
                             tsr_err *err)
{
    static const int own[N_COMP] = {0, N_PAIR - 1};
    double xyz[N_PARTICLE][3], weight[N_PARTICLE], factor[N_COMP][N_TYPE][N_Q];
    double exact[N_PAIR][N_Q], profile[N_PAIR][N_Q], worst = 0.0;
    int type[N_PARTICLE];
    uint64_t state = 20131013;
    for (int i = 0; i < N_PARTICLE; i++) {
        for (int c = 0; c < 3; c++)
            xyz[i][c] = side * uniform(&state);
        weight[i] = uniform(&state);
        type[i] = i % N_TYPE;
    }
    for (int a = 0; a < N_COMP; a++)
        for (int t = 0; t < N_TYPE; t++)
            for (int k = 0; k < N_Q; k++)
                factor[a][t][k] =
                    (5.0 + a + t) * exp(-(1.0 + t) * k * k * dq * dq);
    tsr_debye_spec spec = {.n = N_PARTICLE,
                           .n_type = N_TYPE,
                           .n_comp = N_COMP,
                           .n_q = N_Q,
                           .dq_inv_ang = dq,
                           .xyz = (const double(*)[3])xyz,
                           .type = type,
                           .weight = weight,
                           .weighted = 1,
                           .form_factor = &factor[0][0][0]};
    TSR_TRY(tsr_debye_reference(&spec, NULL, exact[0], err));
    TSR_TRY(tsr_grid_fft_run(grid, &spec, profile[0], err));
    for (int a = 0, p = 0; a < N_COMP; a++)
        for (int b = a; b < N_COMP; b++, p++)
            for (int k = 0; k < N_Q; k++) {
                double error = fabs(profile[p][k] - exact[p][k]) /
                               sqrt(exact[own[a]][k] * exact[own[b]][k]);
                if (!(error <= worst)) /* not fmax, which drops a NaN */
                    worst = error;
            }
    if (max_error != NULL)
        *max_error = worst;
    return worst <= limit
               ? TSR_OK
               : tsr_fail(err, TSR_E_DEVICE,
                          "%s fails the self-test: an error of %.2e; %.0e is "
                          "allowed. Give --method fft, which is the host's",
                          tsr_grid_fft_describe(grid), worst, limit);
}
