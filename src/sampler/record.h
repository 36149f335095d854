/* What a run writes per draw: the trace's variables and their values. */
#ifndef TSR_SAMPLER_RECORD_H
#define TSR_SAMPLER_RECORD_H

#include "sampler/fine.h"
#include "sampler/ladder.h"
#include "store/trace.h"

/* A block of draws of all chains, filled from many threads, written by one. */
typedef struct tsr_record tsr_record;

/* Room for `capacity` draws of n_chain chains. Errors: TSR_E_NOMEM. */
tsr_status tsr_record_new(const tsr_target *target, int n_chain, int capacity,
                          tsr_record **out, tsr_err *err);
void tsr_record_free(tsr_record *record);
int tsr_record_capacity(const tsr_record *record);

/* The variables for tsr_trace_create; they belong to the record. */
int tsr_record_variables(const tsr_record *record,
                         const tsr_trace_variable **variable);

/* A chain with all its replicas: the draw is of the one at temperature 1, or of
 * the place above it. */
typedef struct {
    const tsr_ladder *ladder;
    tsr_chain *const *replica; /* [n_temp] */
    const tsr_fine *fine;      /* NULL: there is none */
} tsr_record_ladder;

/* Stores a chain's present state as draw number `draw` of the block. Chains may
 * be stored from different threads at once. In warm-up only scalars are kept.
 * Draws scale and background from their conditional and a replicate of the
 * data, with the chain's random stream. */
void tsr_record_store(tsr_record *record, const tsr_record_ladder *ladder,
                      int chain_number, int draw, int warm,
                      double acceptance_rate);

/* Appends the first n_draw draws of the block to the trace; tsr_trace_flush
 * brings them to the disk. */
tsr_status tsr_record_write(tsr_record *record, tsr_trace *trace, int warm,
                            int n_draw, tsr_err *err);

/* Writes observed and constant data; once. */
tsr_status tsr_record_write_data(tsr_record *record, tsr_trace *trace,
                                 tsr_err *err);

#endif
