/* Known answers of a Debye sum's program, with the q that it was made for,
 * against Debye's formula in double precision. */
#include "gpu/debye_sum.h"

#include <math.h>
#include <stdlib.h>

enum { N_PARTICLE = 150, N_TYPE = 3, N_COMP = 2, N_PAIR = 3 };

static const double limit_single = 2e-5, limit_double = 1e-10;

static double uniform(uint64_t *state)
{
    *state =
        *state * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
    return (double)(*state >> 11) * 0x1p-53;
}

typedef struct {
    double xyz[N_PARTICLE][3], weight[N_PARTICLE];
    int type[N_PARTICLE];
    double *factor;  /* [N_COMP][N_TYPE][n_q] */
    double *profile; /* [2][N_PAIR][n_q] */
} sample;

/* Amplitudes are positive, so that the terms of particles with themselves hold
 * I(q) up. */
static void fill(sample *s, int n_q, double diameter)
{
    uint64_t state = 20131013;
    for (int i = 0; i < N_PARTICLE; i++) {
        for (int c = 0; c < 3; c++)
            s->xyz[i][c] = diameter / sqrt(3.0) * uniform(&state);
        s->weight[i] = uniform(&state);
        s->type[i] = i < 3 ? i : i % (N_TYPE - 1);
    }
    for (int row = 0; row < N_COMP * N_TYPE; row++)
        for (int k = 0; k < n_q; k++)
            s->factor[row * n_q + k] = 5.0 + row + cos(0.1 * k);
}

tsr_status tsr_debye_sum_test(tsr_debye_sum *sum, double *max_rel_error,
                              tsr_err *err)
{
    tsr_debye_sum_shape shape = tsr_debye_sum_get_shape(sum);
    size_t n_q = (size_t)shape.n_q;
    double worst = 0.0;
    double limit = shape.is_double ? limit_double : limit_single;
    tsr_status status = TSR_OK;
    sample *s = calloc(1, sizeof *s);
    if (s != NULL) {
        s->factor = calloc(N_COMP * N_TYPE * n_q, sizeof *s->factor);
        s->profile = calloc(2 * N_PAIR * n_q, sizeof *s->profile);
    }
    if (s == NULL || s->factor == NULL || s->profile == NULL) {
        status = tsr_no_memory(err);
        goto done;
    }
    fill(s, shape.n_q, shape.d_bound_ang > 0.0 ? shape.d_bound_ang : 50.0);
    tsr_debye_spec spec = {.n = N_PARTICLE,
                           .n_type = N_TYPE,
                           .n_comp = N_COMP,
                           .n_q = shape.n_q,
                           .dq_inv_ang = shape.dq_inv_ang,
                           .xyz = (const double(*)[3])s->xyz,
                           .type = s->type,
                           .weight = shape.has_weight ? s->weight : NULL,
                           .weighted = 1,
                           .form_factor = s->factor};
    double *exact = s->profile + N_PAIR * n_q;
    status = tsr_debye_sum_run(sum, &spec, NULL, s->profile, err);
    TSR_THEN(status, tsr_debye_reference(&spec, NULL, exact, err));
    for (size_t k = 0; k < N_PAIR * n_q && status == TSR_OK; k++) {
        double error = fabs(s->profile[k] / exact[k] - 1.0);
        if (!(error <= worst)) /* not fmax, which drops a NaN */
            worst = error;
    }
    if (status == TSR_OK && !(worst <= limit))
        status = tsr_fail(err, TSR_E_DEVICE,
                          "%s fails the self-test of the Debye sum: a relative "
                          "error of I(q) of %.2e; %.0e is allowed. Do not use "
                          "this device or driver, or give --device reference",
                          shape.device, worst, limit);
    if (max_rel_error != NULL)
        *max_rel_error = worst;
done:
    if (s != NULL) {
        free(s->factor);
        free(s->profile);
    }
    free(s);
    return status;
}
