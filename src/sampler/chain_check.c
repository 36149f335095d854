/* Whether the engine's sums are right, while the run goes on. */
#include "sampler/chain_state.h"

#include <stdio.h>

tsr_status tsr_chain_compare(const tsr_chain *chain, const tsr_engine *engine,
                             const double *had, const char *had_from,
                             const double *right, const char *right_from,
                             tsr_err *err)
{
    const tsr_chain *c = chain;
    double allowed = 0.0;
    int at = tsr_engine_differs(engine, had, right, &allowed);
    if (at < 0)
        return TSR_OK;
    char replica[32] = "", component[48] = "";
    int n_temp = tsr_target_n_temp(c->target);
    if (n_temp > 1)
        snprintf(replica, sizeof replica, ", replica %d", c->number % n_temp);
    if (engine->n_pair > 1)
        snprintf(component, sizeof component, ", pair %d of components",
                 at / engine->n_q);
    return tsr_fail(
        err, TSR_E_DEVICE,
        "wrong sums: chain %d%s, q = %.4f 1/A%s: I = %.8g from %s, but %.8g "
        "%s; "
        "rounding explains %.2g at most. The device, its driver or the kernels "
        "are at fault ('tessera devices' tests them): %s",
        c->number / n_temp, replica, at % engine->n_q * engine->dq_inv_ang,
        component, had[at], had_from, right[at], right_from, allowed,
        engine->description);
}

tsr_status tsr_chain_audit(tsr_chain *chain, const tsr_engine *engine,
                           const double *partial,
                           const tsr_debye_progress *progress, tsr_err *err)
{
    tsr_chain *c = chain;
    const tsr_likelihood *l = c->target->likelihood;
    const tsr_debye_spec spec = {
        .n = engine->n_body,
        .n_type = l->n_type,
        .n_comp = l->n_comp,
        .n_q = l->grid.n_q,
        .dq_inv_ang = l->grid.dq_inv_ang,
        .xyz = (const double(*)[3])c->state[c->which].proposed->body,
        .type = l->type,
        .form_factor = l->amplitude};
    double *exact = c->new_partial; /* free until tsr_chain_decide */
    tsr_status status = tsr_debye_reference(&spec, progress, exact, err);
    return status == TSR_OK
               ? tsr_chain_compare(c, engine, partial, "a proposal's update",
                                   exact, "in double precision", err)
               : status;
}
