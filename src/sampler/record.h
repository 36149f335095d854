/* The stored draws: the variables of the trace and their values. */
#ifndef TSR_SAMPLER_RECORD_H
#define TSR_SAMPLER_RECORD_H

#include "sampler/all_atom_chain.h"
#include "sampler/ladder.h"
#include "store/trace.h"

/* A block of draws of all chains. Many threads fill the block, one thread
 * writes it to the log. */
typedef struct tsr_record tsr_record;

/* Memory for `capacity` draws of n_chain chains. target is borrowed. Errors:
 * TSR_E_NOMEM, TSR_E_INTERNAL (a column without a source). */
tsr_status tsr_record_new(const tsr_target *target, int n_chain, int capacity,
                          tsr_record **out, tsr_err *err);
void tsr_record_free(tsr_record *record);
int tsr_record_capacity(const tsr_record *record);

/* The variables for tsr_trace_create, owned by the record. Returns their
 * number. */
int tsr_record_variables(const tsr_record *record,
                         const tsr_trace_variable **variable);

/* A chain with all its replicas. The draw is the state of the replica at
 * temperature 1, or of the all-atom chain where there is one. */
typedef struct {
    const tsr_ladder *ladder;
    tsr_chain *const *replica;          /* [n_temp] */
    const tsr_all_atom_chain *all_atom; /* NULL: the model has none */
} tsr_record_ladder;

/* Stores a chain's present state as draw number `draw` of the block. Threads
 * may store different chains at once. In warm-up only scalars are stored. Scale
 * and background that are integrated out are drawn from their conditional
 * distribution. After warm-up a replicate of the data is drawn too. Both draws
 * use the chain's random stream. acceptance_rate: see tsr_draw. */
void tsr_record_store(tsr_record *record, const tsr_record_ladder *ladder,
                      int chain_number, int draw, int warm,
                      double acceptance_rate);

/* Saves or restores the first n_draw draws of chains [first, end). */
void tsr_record_archive(tsr_record *record, int first, int end, int warm,
                        int n_draw, tsr_archive *archive);

/* Appends the first n_draw draws of the block to the log. `first` is the number
 * of the block's first draw in the run. Errors: those of tsr_draw_log_begin and
 * tsr_draw_log_part. */
tsr_status tsr_record_write(tsr_record *record, tsr_draw_log *log, int warm,
                            long first, int n_draw, tsr_err *err);

/* Writes observed and constant data into a new trace. Errors: those of
 * tsr_trace_put. */
tsr_status tsr_record_write_data(tsr_record *record, tsr_trace *trace,
                                 tsr_err *err);

#endif
