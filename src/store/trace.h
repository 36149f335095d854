/* trace.h5: parameters and diagnostics of a run, as ArviZ InferenceData.
 *
 * HDF5 in the netCDF-4 layout, so arviz.from_netcdf opens it: one group for
 * each of posterior, sample_stats, posterior_predictive, log_likelihood,
 * observed_data, constant_data and warmup_*; a dimension scale attached to
 * every axis of every variable; dims chain, draw, then the variable's own.
 *
 * The file is written in one go, and replaced as a whole when it is to hold
 * more draws, with a seal that readers verify (store/hdf5_store.h). While a run
 * goes on, and after a kill, the newest draws are in the log beside it
 * (store/draw_log.h); whoever opens the file sees those too. One thread at a
 * time may use a trace. */
#ifndef TSR_STORE_TRACE_H
#define TSR_STORE_TRACE_H

#include "core/status.h"
#include "store/draw_log.h"

typedef enum {
    TSR_TRACE_POSTERIOR,
    TSR_TRACE_SAMPLE_STATS,
    TSR_TRACE_POSTERIOR_PREDICTIVE,
    TSR_TRACE_LOG_LIKELIHOOD,
    TSR_TRACE_WARMUP_POSTERIOR,
    TSR_TRACE_WARMUP_SAMPLE_STATS,
    TSR_TRACE_OBSERVED_DATA, /* no chain, draw */
    TSR_TRACE_CONSTANT_DATA, /* no chain, draw */
    TSR_TRACE_N_GROUP
} tsr_trace_group;

/* A variable. Per draw it holds 1 number, or `n` numbers along the dimension
 * `dim` ("q" or "q_1" ...), whose coordinates are `coord`. Variables of a group
 * that name the same dim share it: its coordinates are those of the first, and
 * n must agree. A coordinate is a variable of the group already, so no other
 * may have its name. Write a unit of time as "s": xarray turns a variable in
 * "seconds" into timedelta64. */
typedef struct {
    tsr_trace_group group;
    const char *name;
    const char *unit;       /* "Angstrom"; NULL: none */
    const char *doc;        /* attribute long_name; NULL: none */
    const char *dim;        /* NULL: scalar per draw */
    int n;                  /* length of dim; 1 for a scalar */
    const double *coord;    /* [n] coordinate values of dim; NULL: 0..n-1 */
    int single;             /* 1: stored as float32 */
    const char *coord_unit; /* unit of coord, "1/Angstrom"; NULL: none */
    const char *const *coord_label; /* [n] coordinates that are texts (names of
                                       moves), instead of coord; NULL: none */
} tsr_trace_variable;

typedef struct {
    const char *name;
    const char *text;
} tsr_trace_attribute;

/* A file that is being written. */
typedef struct tsr_trace tsr_trace;

/* Begins a file; tsr_trace_close puts it in its place. TSR_E_INTERNAL: the
 * variables contradict each other, or a name cannot be a netCDF name; TSR_E_IO.
 * Everything is copied. Every group also gets created_at (UTC, ISO 8601),
 * inference_library "tessera" and inference_library_version; `attribute`
 * [n_attribute] goes to the root and to posterior (config text, device, kernel
 * hash, seed ...). */
tsr_status tsr_trace_create(const char *path, int n_chain, int n_variable,
                            const tsr_trace_variable *variable, int n_attribute,
                            const tsr_trace_attribute *attribute,
                            tsr_trace **out, tsr_err *err);

/* Appends n_draw draws of variable number v (in the order of creation).
 * value [n_chain][n_draw][n]. Every variable of one group must get the same
 * number of draws before tsr_trace_close. Errors: TSR_E_IO; TSR_E_INTERNAL (v
 * has no draws). */
tsr_status tsr_trace_append(tsr_trace *trace, int v, int n_draw,
                            const double *value, tsr_err *err);

/* Writes a variable without chain and draw: value [n]. Errors: TSR_E_IO. */
tsr_status tsr_trace_put(tsr_trace *trace, int v, const double *value,
                         tsr_err *err);

/* Puts the file in its place, at once and whole; frees, also when it fails.
 * NULL is fine. Errors: TSR_E_IO; TSR_E_INTERNAL (variables of a group differ
 * in draws): the file that was there before stays. */
tsr_status tsr_trace_close(tsr_trace *trace, tsr_err *err);

/* Takes away what was begun; frees. NULL is fine. */
void tsr_trace_discard(tsr_trace *trace);

/* Replaces the file by one with the draws of the log. keep: the draws of
 * warm-up and those kept that it is to have, no more and no fewer; NULL: all
 * that there are. A file that has them already is not written. Errors:
 * TSR_E_NOINPUT, TSR_E_DATA (damaged; of another run; fewer draws than `keep`),
 * TSR_E_IO; the file then is as it was. */
tsr_status tsr_trace_update(const char *path, const tsr_draw_records *log,
                            const long keep[TSR_DRAWN_N_KIND], tsr_err *err);

/* ---- reading, for summary and later analysis ---- */

typedef struct tsr_trace_reader tsr_trace_reader;

/* Opens any InferenceData file that holds draws as (chain, draw, ...), with the
 * draws that a log beside it has more. These are put into the file itself where
 * no process works on the run and the folder can be written, else into a copy
 * in TMPDIR. Errors: TSR_E_NOINPUT (no such file), TSR_E_DATA (not HDF5, or
 * damaged), TSR_E_IO. */
tsr_status tsr_trace_open(const char *path, tsr_trace_reader **out,
                          tsr_err *err);
void tsr_trace_reader_free(tsr_trace_reader *reader);

/* Names of the variables of a group, without its coordinates, in the order of
 * creation; the array and its strings belong to the reader. Returns how many;
 * 0 where the group is absent. */
int tsr_trace_variables(tsr_trace_reader *reader, tsr_trace_group group,
                        const char *const **name);

/* Is there a variable of that name? */
int tsr_trace_has(tsr_trace_reader *reader, tsr_trace_group group,
                  const char *name);

/* How many draws the group has in the file; 0 where it is absent or has none.
 */
int tsr_trace_n_draw(tsr_trace_reader *reader, tsr_trace_group group);

/* One variable, whole: *value [*n_chain][*n_draw][*n], caller calls free().
 * Axes after draw are flattened into n; without chain and draw, both are 1.
 * Errors: TSR_E_DATA (no such variable), TSR_E_IO. */
tsr_status tsr_trace_get(tsr_trace_reader *reader, tsr_trace_group group,
                         const char *name, int *n_chain, int *n_draw, int *n,
                         double **value, tsr_err *err);

/* The sizes of a variable, without reading it. Errors: TSR_E_DATA. */
tsr_status tsr_trace_shape(tsr_trace_reader *reader, tsr_trace_group group,
                           const char *name, int *n_chain, int *n_draw, int *n,
                           tsr_err *err);

/* A part of a variable, for what is larger than memory: of every chain, n_draw
 * draws from draw_from, and of each n entries from entry_from.
 * value [n_chain][n_draw][n] out. Cost: compressed variables are stored in
 * blocks of whole draws, and each call unpacks those it touches. Errors:
 * TSR_E_DATA (no such variable, or it is smaller), TSR_E_IO. */
typedef struct {
    int draw_from, n_draw;
    int entry_from, n;
} tsr_trace_part;

tsr_status tsr_trace_get_part(tsr_trace_reader *reader, tsr_trace_group group,
                              const char *name, const tsr_trace_part *part,
                              double *value, tsr_err *err);

/* The coordinates of a variable's last axis: *coord [*n], caller frees; NULL
 * where it has none, or texts. Errors: TSR_E_DATA, TSR_E_IO. */
tsr_status tsr_trace_coordinates(tsr_trace_reader *reader,
                                 tsr_trace_group group, const char *name,
                                 int *n, double **coord, tsr_err *err);

/* Groups of chains, of as many each and in turn, that started from one place
 * (the root attribute chain_groups); 0: each chain is its own. */
int tsr_trace_n_group(tsr_trace_reader *reader);

/* A root attribute as text, caller frees; NULL where absent. */
char *tsr_trace_attribute_text(tsr_trace_reader *reader, const char *name);

/* The same for an attribute ("units", "long_name") of a variable. */
char *tsr_trace_variable_text(tsr_trace_reader *reader, tsr_trace_group group,
                              const char *variable, const char *name);

#endif
