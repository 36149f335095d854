/* Whether the engine's sums are right, while the run goes on.
 *
 * A device can be wrong where no error is told. What accepted updates led to
 * is compared with a fresh sum, and now and then one proposal with a sum in
 * double precision; what rounding cannot explain stops the run
 * (docs/design.md, section 4). */
#include "sampler/chain_state.h"

#include <stdio.h>
#include <string.h>

/* Without the compiler's options, the fourth part of the text. */
static int say_engine(const char *description)
{
    size_t length = 0;
    for (int part = 0; part < 3; part++) {
        length += strspn(description + length, ";");
        length += strcspn(description + length, ";");
    }
    return (int)length;
}

tsr_status tsr_chain_compare(const tsr_engine *engine, const double *had,
                             const char *had_from, const double *right,
                             const char *right_from, tsr_err *err)
{
    double allowed = 0.0;
    int at = tsr_engine_differs(engine, had, right, &allowed);
    if (at < 0)
        return TSR_OK;
    char component[48] = "";
    if (engine->n_pair > 1)
        snprintf(component, sizeof component, ", pair %d of components",
                 at / engine->n_q);
    return tsr_fail(
        err, TSR_E_DEVICE,
        "wrong sums: q = %.4f 1/A%s: I = %.8g from %s, but %.8g %s; rounding "
        "explains %.2g at most. The device, its driver or the kernels are at "
        "fault ('tessera devices' tests them): %.*s",
        at % engine->n_q * engine->dq_inv_ang, component, had[at], had_from,
        right[at], right_from, allowed, say_engine(engine->description),
        engine->description);
}

tsr_status tsr_chain_blame(const tsr_chain *chain, tsr_status status,
                           tsr_err *err)
{
    int n_temp = tsr_target_n_temp(chain->target), number = chain->number;
    if (n_temp == 1)
        return tsr_wrap(err, status, "chain %d", number);
    return tsr_wrap(err, status, "chain %d, replica %d", number / n_temp,
                    number % n_temp);
}

tsr_status tsr_chain_audit(tsr_chain *chain, const tsr_engine *engine,
                           const double *partial,
                           const tsr_debye_progress *progress, tsr_err *err)
{
    tsr_chain *c = chain;
    double *exact = c->trial.partial; /* free until tsr_chain_decide */
    tsr_status status = tsr_likelihood_direct(
        c->target->likelihood, c->target->topology->n_body,
        c->state[c->which].proposed, progress, exact, err);
    if (status == TSR_OK)
        status = tsr_chain_compare(engine, partial, "a proposal's update",
                                   exact, "in double precision", err);
    return status == TSR_OK ? TSR_OK : tsr_chain_blame(c, status, err);
}
