/* Steps on c1 and c2 of a chain: the partial profiles stay, no engine is asked.
 */
#include "sampler/chain_state.h"

#include <math.h>

static tsr_status step(tsr_chain *c, int which, int warm, tsr_err *err)
{
    double was[TSR_N_CONTRAST], log_lik = 0.0;
    double log_alpha =
        tsr_nuisance_propose_contrast(c->nuisance, which, c->rng, was);
    int possible = log_alpha > -(double)INFINITY;
    int has_data = c->target->likelihood != NULL;
    tsr_status status = TSR_OK;
    if (possible && has_data)
        status = tsr_nuisance_fit(c->nuisance, c->partial, c->beta, c->rng,
                                  c->new_profile, c->new_fit, &log_lik, err);
    if (possible && has_data && status == TSR_OK)
        log_alpha +=
            c->beta * (log_lik - c->log_lik) +
            tsr_nuisance_log_ratio(c->nuisance, c->fit, c->new_fit, c->beta);
    if (status == TSR_OK && isnan(log_alpha))
        status = tsr_fail(err, TSR_E_NUMERIC, "the acceptance is not a number");
    double alpha = log_alpha < 0.0 ? exp(log_alpha) : 1.0;
    int accept = status == TSR_OK && gsl_rng_uniform(c->rng) < alpha;
    tsr_nuisance_settle_contrast(c->nuisance, which, was, accept, alpha, warm);
    if (accept && has_data)
        tsr_chain_take_fit(c, log_lik);
    return status == TSR_OK ? TSR_OK
                            : tsr_wrap(err, status, "chain %d, %s", c->number,
                                       tsr_contrast_name(which));
}

tsr_status tsr_chain_move_contrast(tsr_chain *chain, int warm, tsr_err *err)
{
    tsr_status status = TSR_OK;
    for (int i = 0; i < TSR_N_CONTRAST && status == TSR_OK; i++)
        if (tsr_nuisance_infers_contrast(chain->nuisance, i))
            status = step(chain, i, warm, err);
    return status;
}
