/* What a run says of its sampler, while it goes on and at its end. */
#ifndef TSR_RUN_RUN_TELL_H
#define TSR_RUN_RUN_TELL_H

#include "run/setup.h"
#include "sampler/sampler.h"

/* Moves with a weight above 0 that have nothing to move here. */
void tsr_tell_idle_moves(const tsr_setup *setup, tsr_log *log);

/* Proposals and acceptance by move, at temperature 1. */
void tsr_tell_moves(const tsr_setup *setup, tsr_sampler *sampler, tsr_log *log);

/* Temperatures of the first chain, how often neighbours were exchanged, round
 * trips; nothing with one temperature. */
void tsr_tell_ladder(const tsr_setup *setup, const tsr_sampler *sampler,
                     tsr_log *log);

/* Where the host's time went. */
void tsr_tell_times(const tsr_sampler *sampler, tsr_log *log);

/* After warm-up: chains that it left far behind the others, or where they
 * started. */
void tsr_tell_stuck(const tsr_setup *setup, tsr_sampler *sampler, tsr_log *log);

#endif
