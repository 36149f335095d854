/* One step of a chain whose systems are the first of its engine. */
#ifndef TESTS_CHAIN_STEP_H
#define TESTS_CHAIN_STEP_H

#include "sampler/chain.h"
#include "tests/check.h"

static inline void chain_step(tsr_chain *chain, tsr_batch *batch,
                              double *profile, int warm)
{
    err = (tsr_err){0};
    tsr_body_proposal ask;
    int accepted, asked = tsr_chain_propose(chain, &ask);
    if (asked && (tsr_batch_submit(batch, 1, &ask, &err) != TSR_OK ||
                  tsr_batch_wait(batch, profile, &err) != TSR_OK))
        fail_msg("%s", err.message);
    OK(tsr_chain_decide(chain, asked ? profile : NULL, warm, &accepted, &err));
    if (asked && accepted)
        tsr_batch_accept(batch, tsr_chain_system(chain));
    else if (asked)
        tsr_batch_reject(batch, tsr_chain_system(chain));
}

#endif
