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
 * TSR_E_NOMEM, those of tsr_columns_add. */
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

/* Appends the first n_draw draws of the block to the log. `first` is the number
 * of the block's first draw in the run. Errors: those of tsr_draw_log_begin and
 * tsr_draw_log_part. */
tsr_status tsr_record_write(tsr_record *record, tsr_draw_log *log, int warm,
                            long first, int n_draw, tsr_err *err);

/* Writes observed and constant data into a new trace. Errors: those of
 * tsr_trace_put. */
tsr_status tsr_record_write_data(tsr_record *record, tsr_trace *trace,
                                 tsr_err *err);

/* ---- columns ----
 *
 * The trace's columns. Each is declared by the module that knows its value: the
 * chain declares radii and log densities, the ladder its temperatures, the
 * parameter table the parameters, and the likelihood terms their chi2,
 * predictions and data. When a draw is stored, the record calls the getter of
 * each column. A column with neither a getter nor a constant is refused when
 * the run starts. */

/* Rows of a draw for each term: expected values, a replicate of the data, log
 * densities of the points. */
enum { TSR_ROW_MEAN, TSR_ROW_REPLICATE, TSR_ROW_POINTWISE, TSR_N_ROW };

/* A draw as the getters receive it. */
typedef struct {
    const tsr_target *target;
    const tsr_chain_view *view; /* state of the replica at temperature 1, or of
                                   the all-atom chain */
    const tsr_ladder *ladder;   /* the chain's ladder */
    tsr_chain *const *replica;  /* [n_temp] the ladder's replicas */
    const tsr_all_atom_chain *all_atom; /* NULL: the model has none */
    double acceptance_rate;             /* accepted share of the proposals since
                                           the last draw */
    const double *theta; /* [n_parameter] the chain's parameters; parameters
                            that were integrated out are drawn */
    const double *const *row[TSR_N_ROW]; /* [n_term][n_point]; filled after
                                            warm-up only */
} tsr_draw;

/* The third dimension of a column, after chain and draw. */
typedef struct {
    const char *name; /* NULL: a scalar */
    int n;
    const double *coord;
    const char *coord_unit;
    const char *const *label; /* labels of the n entries in place of coord */
} tsr_column_axis;

typedef struct tsr_column tsr_column;
struct tsr_column {
    tsr_trace_group group;
    char name[48], dim[48];
    const char *unit, *doc; /* description; the part before a semicolon is the
                               display name */
    char own_doc[128];      /* used where doc is NULL */
    tsr_column_axis axis;
    int index, state; /* for the getter. index: number of the parameter, term,
                         pose or tail, or byte offset in the view; state: number
                         of the state */
    int part; /* for the getter: number of the row of the term, or of the value
                 of the pose or tail */
    /* Writes value [axis.n]. NULL for observed and constant data, whose values
     * are `constant`. */
    void (*get)(const tsr_column *column, const tsr_draw *draw, double *value);
    const double *constant;
};

/* The list to which the modules add their columns. */
typedef struct {
    tsr_pool *pool;
    int n, capacity;
    tsr_column *item; /* [n] */
} tsr_columns;

/* Adds a column. A scalar of the group `posterior` or `sample_stats` is also
 * stored in warm-up, as a second column of the group for warm-up. Errors:
 * TSR_E_INTERNAL (neither a getter nor a constant), TSR_E_NOMEM. */
tsr_status tsr_columns_add(tsr_columns *columns, tsr_column column,
                           tsr_err *err);

/* Columns of the chain, the ladder, the parameter table and the likelihood
 * terms. */
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
