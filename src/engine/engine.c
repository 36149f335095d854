/* What all engines have in common: the checks of what they are given, how far
 * rounding alone may take a profile, and the calls that go on to the engine's
 * own functions.
 *
 * Every engine is checked by the same code, so that an error of the caller has
 * the same message on every device. The bound on rounding is derived in
 * docs/design.md, section 4; a profile that is farther off than it shows a
 * device, a driver or a kernel at fault. */
#include "engine/engine.h"

#include <math.h>
#include <stdlib.h>

tsr_status tsr_engine_spec_check(const tsr_engine_spec *spec, tsr_err *err)
{
    if (spec == NULL || spec->type == NULL || spec->form_factor == NULL)
        return tsr_fail(err, TSR_E_INTERNAL,
                        "engine: no types or form factors");
    if (spec->n_body < 1 || spec->n_type < 1 || spec->n_system < 1)
        return tsr_fail(err, TSR_E_INTERNAL,
                        "engine: %d bodies of %d types in %d systems; each "
                        "must be at least 1",
                        spec->n_body, spec->n_type, spec->n_system);
    if (spec->n_comp < 0 || spec->n_comp > 3)
        return tsr_fail(err, TSR_E_INTERNAL,
                        "engine: %d components; 1 to 3 are possible",
                        spec->n_comp);
    if (spec->n_q < 2)
        return tsr_fail(err, TSR_E_INTERNAL,
                        "engine: %d grid points; at least 2 are needed",
                        spec->n_q);
    if (!(spec->dq_inv_ang > 0.0) || !isfinite(spec->dq_inv_ang))
        return tsr_fail(err, TSR_E_INTERNAL,
                        "engine: grid step %g 1/Angstrom is not positive",
                        spec->dq_inv_ang);
    if (!(spec->d_bound_ang >= 0.0) || !isfinite(spec->d_bound_ang))
        return tsr_fail(err, TSR_E_INTERNAL,
                        "engine: largest distance %g Angstrom; 0 (no check) "
                        "or more is expected",
                        spec->d_bound_ang);
    for (int i = 0; i < spec->n_body; i++)
        if (spec->type[i] < 0 || spec->type[i] >= spec->n_type)
            return tsr_fail(err, TSR_E_INTERNAL,
                            "engine: body %d has type %d of %d", i,
                            spec->type[i], spec->n_type);
    if (spec->unit != NULL && spec->rigid == NULL)
        return tsr_fail(err, TSR_E_INTERNAL,
                        "engine: rigid units, and no places of their bodies");
    for (int i = 0; i < spec->n_body && spec->unit != NULL; i++)
        if (spec->unit[i] < -1 || spec->unit[i] >= spec->n_body)
            return tsr_fail(err, TSR_E_INTERNAL,
                            "engine: body %d is of unit %d", i, spec->unit[i]);
    const tsr_engine_inside *in = spec->inside;
    for (int i = 0; in != NULL && i < in->n; i++)
        if (spec->unit == NULL || in->unit[i] < 0 ||
            in->unit[i] >= spec->n_body || in->type[i] < 0 ||
            in->type[i] >= spec->n_type)
            return tsr_fail(err, TSR_E_INTERNAL,
                            "engine: particle %d of a rigid unit has no unit "
                            "or no type",
                            i);
    int n_table = tsr_engine_n_comp(spec) * spec->n_type;
    for (int t = 0; t < n_table; t++)
        for (int k = 0; k < spec->n_q; k++)
            if (!isfinite(spec->form_factor[(size_t)t * (size_t)spec->n_q +
                                            (size_t)k]))
                return tsr_fail(err, TSR_E_INTERNAL,
                                "engine: the form factor of type %d at q = %g "
                                "1/Angstrom is not finite",
                                t % spec->n_type, k * spec->dq_inv_ang);
    return TSR_OK;
}

tsr_status tsr_engine_bodies_check(const tsr_engine_spec *spec, tsr_err *err)
{
    TSR_TRY(tsr_engine_spec_check(spec, err));
    return spec->inside == NULL
               ? TSR_OK
               : tsr_fail(err, TSR_E_INTERNAL,
                          "engine: particles within rigid units are for plane "
                          "waves alone");
}

/* sum_i |F_i| and sum_i F_i^2 of a component at page k. */
static void factor_sums(const tsr_engine_spec *spec, int comp, int k,
                        double *size, double *square)
{
    *size = *square = 0.0;
    for (int i = 0; i < spec->n_body; i++) {
        double f = *tsr_engine_factor(spec, comp, spec->type[i], k);
        *size += fabs(f);
        *square += f * f;
    }
    for (int i = 0; spec->inside != NULL && i < spec->inside->n; i++) {
        double f = *tsr_engine_factor(spec, comp, spec->inside->type[i], k);
        *size += fabs(f);
        *square += f * f;
    }
}

tsr_status tsr_engine_rounding(const tsr_engine_spec *spec, double unit,
                               int tile, int n_store, double **out,
                               tsr_err *err)
{
    const double far = 8.0, shared = 8.0;
    const double walk = far * tile * sqrt(2.0 * n_store);
    int n_comp = tsr_engine_n_comp(spec), n_q = spec->n_q;
    size_t n_pair = (size_t)(n_comp * (n_comp + 1) / 2);
    double *to = calloc(n_pair * (size_t)n_q, sizeof *to);
    *out = to;
    if (to == NULL)
        return tsr_fail(err, TSR_E_NOMEM, "out of memory for %d q", n_q);
    for (int a = 0; a < n_comp; a++)
        for (int b = a; b < n_comp; b++)
            for (int k = 0; k < n_q; k++) {
                double size_a, size_b, square_a, square_b;
                factor_sums(spec, a, k, &size_a, &square_a);
                factor_sums(spec, b, k, &size_b, &square_b);
                *to++ = unit * (shared * size_a * size_b +
                                walk * sqrt(square_a * square_b));
            }
    return TSR_OK;
}

int tsr_engine_differs(const tsr_engine *engine, const double *profile,
                       const double *right, double *allowed)
{
    const double promise = 1e-5;
    double most = 1.0;
    int at = -1;
    for (int k = 0; k < engine->n_pair * engine->n_q; k++) {
        double limit = engine->rounding[k] + promise * fabs(right[k]);
        double error = fabs(profile[k] - right[k]);
        if (error <= most * limit) /* a NaN is not */
            continue;
        most = isfinite(error) && limit > 0.0 ? error / limit : HUGE_VAL;
        *allowed = limit;
        at = k;
    }
    return at;
}

void tsr_engine_free(tsr_engine *engine)
{
    if (engine != NULL)
        engine->type->free(engine);
}

tsr_status tsr_batch_new(tsr_engine *engine, int max_proposal, tsr_batch **out,
                         tsr_err *err)
{
    *out = NULL;
    if (max_proposal < 1)
        return tsr_fail(err, TSR_E_INTERNAL, "engine: a batch of %d proposals",
                        max_proposal);
    return engine->type->batch_new(engine, max_proposal, out, err);
}

void tsr_batch_free(tsr_batch *batch)
{
    if (batch != NULL)
        batch->engine->type->batch_free(batch);
}

tsr_status tsr_batch_set(tsr_batch *batch, int system, const double (*xyz)[3],
                         double *profile, tsr_err *err)
{
    return batch->engine->type->set(batch, system, xyz, profile, err);
}

tsr_status tsr_batch_submit(tsr_batch *batch, int n,
                            const tsr_body_proposal *proposal, tsr_err *err)
{
    return batch->engine->type->submit(batch, n, proposal, err);
}

tsr_status tsr_batch_wait(tsr_batch *batch, double *profile, tsr_err *err)
{
    return batch->engine->type->wait(batch, profile, err);
}

void tsr_batch_accept(tsr_batch *batch, int system)
{
    batch->engine->type->accept(batch, system);
}

void tsr_batch_reject(tsr_batch *batch, int system)
{
    batch->engine->type->reject(batch, system);
}

tsr_status tsr_batch_profile(tsr_batch *batch, int system, double *profile,
                             tsr_err *err)
{
    return batch->engine->type->profile(batch, system, profile, err);
}

tsr_status tsr_engine_xyz_check(int n, int first, int system,
                                const double (*xyz)[3], tsr_err *err)
{
    for (int i = 0; i < n; i++)
        if (!isfinite(xyz[i][0]) || !isfinite(xyz[i][1]) ||
            !isfinite(xyz[i][2]))
            return tsr_fail(err, TSR_E_NUMERIC,
                            "engine: the position (%g, %g, %g) of body %d of "
                            "system %d is not finite",
                            xyz[i][0], xyz[i][1], xyz[i][2], first + i, system);
    return TSR_OK;
}

tsr_status tsr_engine_ranges_check(const tsr_engine *engine,
                                   const tsr_body_proposal *proposal,
                                   tsr_err *err)
{
    int end = 0;
    if (proposal->system < 0 || proposal->system >= engine->n_system)
        return tsr_fail(err, TSR_E_INTERNAL, "engine: system %d of %d",
                        proposal->system, engine->n_system);
    for (int r = 0; r < proposal->n_range; r++) {
        const tsr_body_range *range = &proposal->range[r];
        if (range->count < 1 || range->group < 0 || range->first < end ||
            range->count > engine->n_body - range->first)
            return tsr_fail(err, TSR_E_INTERNAL,
                            "engine: range %d of a proposal is %d bodies from "
                            "%d, group %d; ranges ascend from %d within %d "
                            "bodies",
                            r, range->count, range->first, range->group, end,
                            engine->n_body);
        end = range->first + range->count;
    }
    return TSR_OK;
}

tsr_status tsr_engine_proposal_check(const tsr_engine *engine,
                                     const tsr_body_proposal *proposal,
                                     tsr_err *err)
{
    tsr_status status = tsr_engine_ranges_check(engine, proposal, err);
    for (int r = 0; r < proposal->n_range && !status; r++)
        status = tsr_engine_xyz_check(
            proposal->range[r].count, proposal->range[r].first,
            proposal->system, proposal->range[r].xyz, err);
    return status;
}
