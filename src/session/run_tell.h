/* What a run says of itself before it starts and while it goes on. */
#ifndef TSR_SESSION_RUN_TELL_H
#define TSR_SESSION_RUN_TELL_H

#include "core/log.h"
#include "posterior/config.h"
#include "posterior/setup.h"
#include "sampler/sampler.h"

#include <stdio.h>

/* For --dry-run. */
void tsr_run_plan(const tsr_config *config, const tsr_setup *setup, FILE *out);

/* How much the run will write, to the log; a warning where the disk has less
 * room. */
void tsr_run_tell_size(const tsr_config *config, const tsr_setup *setup,
                       tsr_log *log);

/* ---- of its sampler, while it goes on and at its end, to the log ---- */

/* Moves with a weight above 0 that have nothing to move here. */
void tsr_tell_idle_moves(const tsr_setup *setup, tsr_log *log);

/* Proposals and acceptance by move, at temperature 1. */
void tsr_tell_moves(const tsr_setup *setup, tsr_sampler *sampler, tsr_log *log);

/* Temperatures of the first chain, how often neighbours were exchanged, round
 * trips; nothing with one temperature. */
void tsr_tell_ladder(const tsr_setup *setup, const tsr_sampler *sampler,
                     tsr_log *log);

/* How often bodies gave a draw of all atoms, where draws are of them. */
void tsr_tell_atoms(const tsr_sampler *sampler, tsr_log *log);

/* Where the host's time went. */
void tsr_tell_times(const tsr_sampler *sampler, tsr_log *log);

/* After warm-up: chains that it left far behind the others, or where they
 * started. */
void tsr_tell_stuck(const tsr_setup *setup, tsr_sampler *sampler, tsr_log *log);

#endif
