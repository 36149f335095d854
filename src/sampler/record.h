/* What a run writes per draw: the trace's variables and their values. */
#ifndef TSR_SAMPLER_RECORD_H
#define TSR_SAMPLER_RECORD_H

#include "sampler/all_atom_chain.h"
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
    tsr_chain *const *replica;          /* [n_temp] */
    const tsr_all_atom_chain *all_atom; /* NULL: there is none */
} tsr_record_ladder;

/* Stores a chain's present state as draw number `draw` of the block. Chains may
 * be stored from different threads at once. In warm-up only scalars are kept.
 * Draws scale and background from their conditional and a replicate of the
 * data, with the chain's random stream. */
void tsr_record_store(tsr_record *record, const tsr_record_ladder *ladder,
                      int chain_number, int draw, int warm,
                      double acceptance_rate);

/* Appends the first n_draw draws of the block to the log, as draws of the run
 * from number `first` on. Errors: TSR_E_IO. */
tsr_status tsr_record_write(tsr_record *record, tsr_draw_log *log, int warm,
                            long first, int n_draw, tsr_err *err);

/* Writes observed and constant data into a trace that is made. */
tsr_status tsr_record_write_data(tsr_record *record, tsr_trace *trace,
                                 tsr_err *err);

/* ---- columns ----
 *
 * The trace's columns: each is declared by whoever owns what it tells.
 *
 * The chain declares radii and its log densities, the ladder temperatures, the
 * parameters and the likelihood terms theirs; the record asks each column for
 * its value whenever a draw is stored, packs and writes. A column without a
 * getter is refused when the run starts. */

/* What a draw has of each term: expected values, replicates of the data, and
 * the log density of each point. */
enum { TSR_ROW_MEAN, TSR_ROW_REPLICATE, TSR_ROW_POINTWISE, TSR_N_ROW };

/* A draw as the getters see it. */
typedef struct {
    const tsr_target *target;
    const tsr_chain_view *view; /* of the replica at temperature 1, or of the
                                   place above it */
    const tsr_ladder *ladder;   /* of its chain, and all its */
    tsr_chain *const *replica;  /* [n_temp] replicas */
    const tsr_all_atom_chain *all_atom; /* above the ladder; NULL: none */
    double acceptance_rate;             /* since the last draw */
    const double *theta; /* [n_parameter] of the chain's table, with
                            what is integrated out drawn */
    const double *const *row[TSR_N_ROW]; /* [n_term][n_point]; after warm-up
                                            only */
} tsr_draw;

/* The dimension of a column behind chain and draw. */
typedef struct {
    const char *name; /* NULL: none, one number */
    int n;
    const double *coord;
    const char *coord_unit;
    const char *const *label; /* instead of coord */
} tsr_column_axis;

typedef struct tsr_column tsr_column;
struct tsr_column {
    tsr_trace_group group;
    char name[48], dim[48];
    const char *unit, *doc; /* before a semicolon: the name for readers */
    char own_doc[128];      /* where doc is NULL */
    tsr_column_axis axis;
    int index, state; /* for the getter: a parameter, a term, a state */
    int part;         /* of what index names */
    /* The value, [axis.n] out. NULL of observed and constant data, whose value
     * is `constant`. */
    void (*get)(const tsr_column *column, const tsr_draw *draw, double *value);
    const double *constant;
};

/* A list that owners add to. */
typedef struct {
    tsr_pool *pool;
    int n, room;
    tsr_column *item; /* [n] */
} tsr_columns;

/* Adds a column. Scalars of the posterior and of sample_stats are kept in
 * warm-up too: they get a column there as well. Errors: TSR_E_INTERNAL (nobody
 * gives its value), TSR_E_NOMEM. */
tsr_status tsr_columns_add(tsr_columns *columns, tsr_column column,
                           tsr_err *err);

/* What the owners declare. */
tsr_status tsr_chain_columns(const tsr_target *target, tsr_columns *columns,
                             tsr_err *err);
tsr_status tsr_ladder_columns(const tsr_target *target, tsr_columns *columns,
                              tsr_err *err);
tsr_status tsr_parameter_columns(const tsr_target *target,
                                 const tsr_parameters *parameters,
                                 tsr_columns *columns, tsr_err *err);
tsr_status tsr_term_columns(const tsr_target *target, tsr_columns *columns,
                            tsr_err *err);

#endif
