/* Known answers on a device, against the reference engine. */
#include "gpu/engine_page_tile.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { N_BODY = 150, N_Q = 71, N_TYPE = 4, N_MOVED = 40, FIRST = 61 };

/* I(q) to single precision: 1e-5 is what the engine promises; double leaves
 * rounding in the order of the sum. */
static const double limit_single = 1e-5, limit_double = 1e-11;

typedef struct {
    tsr_engine_spec spec;
    int type[N_BODY];
    double form_factor[N_TYPE * N_Q];
    double xyz[N_BODY][3], moved[N_MOVED][3];
    double profile[N_Q], exact[N_Q];
} small_system;

static double uniform(uint64_t *state)
{
    *state =
        *state * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
    return (double)(*state >> 11) * 0x1p-53;
}

static void make_system(small_system *s)
{
    uint64_t state = 20130101;
    for (int i = 0; i < N_BODY; i++) {
        s->type[i] = i % N_TYPE;
        for (int c = 0; c < 3; c++)
            s->xyz[i][c] = 30.0 * uniform(&state);
    }
    for (int i = 0; i < N_MOVED; i++)
        for (int c = 0; c < 3; c++)
            s->moved[i][c] = 30.0 * uniform(&state);
    for (int t = 0; t < N_TYPE; t++)
        for (int k = 0; k < N_Q; k++)
            s->form_factor[t * N_Q + k] =
                (t == 3 ? -2.0 : 5.0 + t) * exp(-2e-4 * k * k);
    s->spec = (tsr_engine_spec){.n_body = N_BODY,
                                .n_type = N_TYPE,
                                .n_q = N_Q,
                                .dq_inv_ang = 0.015,
                                .n_system = 1,
                                .type = s->type,
                                .form_factor = s->form_factor};
}

typedef struct {
    tsr_self_test result;
    double worst_step[4];
} tally;

static void compare(const small_system *s, tally *t, int step)
{
    for (int k = 0; k < N_Q; k++) {
        double error = fabs(s->profile[k] / s->exact[k] - 1.0);
        /* not fmax, which drops a NaN */
        if (!(error <= t->worst_step[step]))
            t->worst_step[step] = error;
        if (!(error <= t->result.max_rel_error))
            t->result.max_rel_error = error;
    }
    t->result.n_check++;
}

static tsr_status propose(tsr_batch *batch, small_system *s, double *profile,
                          tsr_err *err)
{
    tsr_body_range range = {FIRST, N_MOVED, 0, (const double(*)[3])s->moved};
    tsr_body_proposal proposal = {0, 1, &range};
    tsr_status status = tsr_batch_submit(batch, 1, &proposal, err);
    if (!status)
        status = tsr_batch_wait(batch, profile, err);
    return status;
}

static tsr_status play(tsr_batch *tested, tsr_batch *exact, small_system *s,
                       tally *t, tsr_err *err)
{
    tsr_batch *both[2] = {tested, exact};
    double *profile[2] = {s->profile, s->exact};
    for (int step = 0; step < 4; step++) { /* set, move, reject, accept */
        for (int b = 0; b < 2; b++) {
            tsr_status status = TSR_OK;
            if (step == 0)
                status = tsr_batch_set(both[b], 0, (const double(*)[3])s->xyz,
                                       profile[b], err);
            else if (step == 1)
                status = propose(both[b], s, profile[b], err);
            else if (step == 2) {
                tsr_batch_reject(both[b], 0);
                status = tsr_batch_profile(both[b], 0, profile[b], err);
            } else {
                status = propose(both[b], s, profile[b], err);
                if (!status) {
                    tsr_batch_accept(both[b], 0);
                    status = tsr_batch_profile(both[b], 0, profile[b], err);
                }
            }
            if (status)
                return status;
        }
        compare(s, t, step);
    }
    return TSR_OK;
}

tsr_status tsr_engine_self_test(const tsr_device *device,
                                const tsr_page_tile_options *options,
                                tsr_self_test *result, tsr_err *err)
{
    tsr_engine *engine[2] = {NULL, NULL};
    tsr_batch *batch[2] = {NULL, NULL};
    int is_double = options != NULL && options->use_double;
    tally t = {.result = {.limit = is_double ? limit_double : limit_single}};
    const tsr_device_info *info = tsr_device_get_info(device);
    tsr_status status = TSR_OK;
    small_system *s = calloc(1, sizeof *s);
    if (s == NULL)
        return tsr_fail(err, TSR_E_NOMEM, "out of memory for a self-test");
    make_system(s);
    status =
        tsr_engine_page_tile_new(&s->spec, device, options, &engine[0], err);
    if (!status)
        status = tsr_engine_reference_new(&s->spec, &engine[1], err);
    for (int b = 0; b < 2 && !status; b++)
        status = tsr_batch_new(engine[b], 1, &batch[b], err);
    if (!status)
        status = play(batch[0], batch[1], s, &t, err);
    if (!status && !(t.result.max_rel_error <= t.result.limit))
        status = tsr_fail(err, TSR_E_DEVICE,
                          "%s fails the self-test: relative errors of I(q) are "
                          "%.2e (set), %.2e (move), %.2e (reject), %.2e "
                          "(accept); %.0e is allowed. Do not use this device "
                          "or driver (%s)",
                          info->name, t.worst_step[0], t.worst_step[1],
                          t.worst_step[2], t.worst_step[3], t.result.limit,
                          info->driver);
    for (int b = 0; b < 2; b++) {
        tsr_batch_free(batch[b]);
        tsr_engine_free(engine[b]);
    }
    free(s);
    if (result != NULL)
        *result = t.result;
    return status;
}
