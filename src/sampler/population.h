/* Chains that start in equilibrium: sequential Monte Carlo from the prior.
 *
 * All replicas of a group of chains begin as draws of the prior. The power of
 * the likelihood, beta, rises from 0 to 1 in levels. At each level the replicas
 * of a group are resampled with weights L^(change of beta), so that those that
 * fit become several and those that do not fall out, and then take steps until
 * they have largely forgotten where they were. So no chain is left in a side
 * valley, and the mean weights multiply to the marginal likelihood, once for
 * each group: an estimate that owes nothing to exchanges. On the way the
 * communication barrier is measured; the ladder's temperatures divide it
 * evenly, and each temperature begins with replicas of the level next to it.
 *
 * Source: Del Moral, Doucet & Jasra 2006 (J. R. Stat. Soc. B 68, 411); levels
 * by effective draws: Zhou, Johansen & Aston 2016 (J. Comput. Graph. Stat. 25,
 * 701); the barrier: Syed et al. 2022 (J. R. Stat. Soc. B 84, 321). */
#ifndef TSR_SAMPLER_POPULATION_H
#define TSR_SAMPLER_POPULATION_H

#include "sampler/sampler.h"

/* What a pass did; all zero where there was none. */
typedef struct {
    int n_level;    /* from the prior on */
    long n_step;    /* of each replica */
    double barrier; /* from the prior to the posterior */
} tsr_population;

/* Before warm-up, where 16 replicas or more of the target's chains start in
 * groups from draws of the prior, and once: a second call, or one after a
 * restore, does nothing. Levels have at most most_each steps; after so many
 * seconds (0: never) they are fewer and short, so that somebody who waits gets
 * draws, of which the bits then depend on the clock. The estimates of the log
 * marginal likelihood go to the target's group_log_z. record: scratch
 * for one draw. `tick` (may be NULL) is called as by tsr_sampler_advance. Ends
 * early when it is to stop; the chains are then of no use. Errors: those of
 * tsr_sampler_advance and tsr_sampler_refresh, TSR_E_NOMEM. */
tsr_status tsr_sampler_populate(tsr_sampler *sampler, tsr_record *record,
                                long most_each, double seconds,
                                void (*tick)(void *context,
                                             const tsr_progress *progress),
                                void *context, tsr_err *err);

tsr_population tsr_sampler_population(const tsr_sampler *sampler);

#endif
