/* trace.h5: parameters and diagnostics of a run, as ArviZ InferenceData.
 *
 * The file is HDF5 in the netCDF-4 layout, which arviz.from_netcdf opens. Its
 * groups are posterior, sample_stats, posterior_predictive, log_likelihood,
 * observed_data, constant_data and warmup_*. Every axis of every variable has a
 * dimension scale. Dimensions are chain, draw, then those of the variable.
 *
 * The file is written as a whole, and replaced as a whole to add draws. Readers
 * verify its seal (store/hdf5_store.h). During a run and after a kill, the
 * newest draws are in the log beside the file (store/draw_log.h), and opening
 * the trace includes them. Only one thread at a time may use a trace. */
#ifndef TSR_STORE_TRACE_H
#define TSR_STORE_TRACE_H

#include "core/status.h"
#include "store/draw_log.h"

/* Groups of InferenceData. */
typedef enum {
    TSR_TRACE_POSTERIOR,
    TSR_TRACE_SAMPLE_STATS,
    TSR_TRACE_POSTERIOR_PREDICTIVE,
    TSR_TRACE_LOG_LIKELIHOOD,
    TSR_TRACE_WARMUP_POSTERIOR,
    TSR_TRACE_WARMUP_SAMPLE_STATS,
    TSR_TRACE_OBSERVED_DATA, /* without chain and draw */
    TSR_TRACE_CONSTANT_DATA, /* without chain and draw */
    TSR_TRACE_N_GROUP
} tsr_trace_group;

/* A variable: in each draw one number, or `n` numbers along the dimension `dim`
 * ("q", "q_1") with coordinates `coord`. Variables of a group with the same
 * `dim` share the dimension; they must agree in n, and the first one defines
 * the coordinates. Coordinates are variables of the group, so that no other
 * variable may have their names. The unit of times must be "s", because xarray
 * converts "seconds" to timedelta64. */
typedef struct {
    tsr_trace_group group;
    const char *name;
    const char *unit;       /* "Angstrom"; NULL: no unit */
    const char *doc;        /* attribute long_name; NULL: no attribute */
    const char *dim;        /* NULL: one number per draw */
    int n;                  /* length of dim; 1 for a scalar */
    const double *coord;    /* [n] coordinates of dim; NULL: 0..n-1 */
    int single;             /* 1: stored as float32 */
    const char *coord_unit; /* "1/Angstrom"; NULL: no unit */
    const char *const *coord_label; /* [n] texts as coordinates (names of
                                       moves), instead of coord; or NULL */
} tsr_trace_variable;

/* A text attribute. */
typedef struct {
    const char *name;
    const char *text;
} tsr_trace_attribute;

/* A file being written. */
typedef struct tsr_trace tsr_trace;

/* Begins a file; tsr_trace_close puts it in place. All arguments are copied.
 * The root and every group get created_at (UTC, ISO 8601), inference_library
 * "tessera" and inference_library_version. attribute [n_attribute] (config
 * text, device, kernel hash, seed) is added to the root and to posterior.
 * Errors: TSR_E_INTERNAL (contradicting variables, or an invalid netCDF name),
 * TSR_E_IO, TSR_E_NOMEM. */
tsr_status tsr_trace_create(const char *path, int n_chain, int n_variable,
                            const tsr_trace_variable *variable, int n_attribute,
                            const tsr_trace_attribute *attribute,
                            tsr_trace **out, tsr_err *err);

/* Appends n_draw draws of variable v, the index in the list given to
 * tsr_trace_create.
 * value  [n_chain][n_draw][n]  in
 * All variables of a group must have the same number of draws at
 * tsr_trace_close. Errors: TSR_E_IO; TSR_E_INTERNAL (v has no draws). */
tsr_status tsr_trace_append(tsr_trace *trace, int v, int n_draw,
                            const double *value, tsr_err *err);

/* Writes variable v, which has no chain and draw: value [n] in. Errors:
 * TSR_E_IO; TSR_E_INTERNAL (v has draws). */
tsr_status tsr_trace_put(tsr_trace *trace, int v, const double *value,
                         tsr_err *err);

/* Puts the file in place atomically. Frees the trace, also after an error; NULL
 * is fine. Errors: TSR_E_IO; TSR_E_INTERNAL (variables of a group differ in
 * their number of draws). The old file is then unchanged. */
tsr_status tsr_trace_close(tsr_trace *trace, tsr_err *err);

/* Discards the new file and frees the trace. NULL is fine. */
void tsr_trace_discard(tsr_trace *trace);

/* Extends the file by the draws of the log.
 * keep  [TSR_DRAWN_N_KIND]  in  exact numbers of warm-up and kept draws that
 *                              the file must have; NULL: all draws
 * A file that already has them is not written. Errors: TSR_E_NOINPUT,
 * TSR_E_DATA (damaged; of another run; fewer draws than `keep`), TSR_E_IO; the
 * file is then unchanged. */
tsr_status tsr_trace_update(const char *path, const tsr_draw_records *log,
                            const long keep[TSR_DRAWN_N_KIND], tsr_err *err);

/* Unit of a coordinate that is the number of an entry of `data:`, from 0. */
#define TSR_UNIT_OF_ENTRIES "entry of data"

/* ---- reading ---- */

typedef struct tsr_trace_reader tsr_trace_reader;

/* Opens an InferenceData file of any program, with variables (chain, draw,
 * ...), and includes the draws of the log beside it. If no process works on the
 * run and the folder is writable, the draws are added to the file, else to a
 * copy in TMPDIR. Errors: TSR_E_NOINPUT (no such file), TSR_E_DATA (not HDF5,
 * or damaged), TSR_E_IO. */
tsr_status tsr_trace_open(const char *path, tsr_trace_reader **out,
                          tsr_err *err);
void tsr_trace_reader_free(tsr_trace_reader *reader);

/* Names of the variables of a group, except its coordinates, in the order of
 * creation. The reader owns *name and its strings. Returns their number, 0 if
 * there is no such group. */
int tsr_trace_variables(tsr_trace_reader *reader, tsr_trace_group group,
                        const char *const **name);

/* Does the group have a variable of that name? */
int tsr_trace_has(tsr_trace_reader *reader, tsr_trace_group group,
                  const char *name);

/* Number of draws in a group; 0 if the group is missing or has no draws. */
int tsr_trace_n_draw(tsr_trace_reader *reader, tsr_trace_group group);

/* Reads a whole variable.
 * value  [*n_chain][*n_draw][*n]  out  to be freed with free()
 * Axes after draw are flattened into n. In a group without chain and draw, both
 * counts are 1. Errors: TSR_E_DATA (no such variable), TSR_E_IO,
 * TSR_E_NOMEM. */
tsr_status tsr_trace_get(tsr_trace_reader *reader, tsr_trace_group group,
                         const char *name, int *n_chain, int *n_draw, int *n,
                         double **value, tsr_err *err);

/* Sizes of a variable, without reading it. Errors: TSR_E_DATA. */
tsr_status tsr_trace_shape(tsr_trace_reader *reader, tsr_trace_group group,
                           const char *name, int *n_chain, int *n_draw, int *n,
                           tsr_err *err);

/* A part of a variable: n_draw draws from draw_from on, of every chain, and n
 * numbers from entry_from on, of each draw. */
typedef struct {
    int draw_from, n_draw;
    int entry_from, n;
} tsr_trace_part;

/* Reads a part of a variable that may exceed memory.
 * value  [n_chain][n_draw][n]  out
 * Cost: a compressed variable is stored in chunks of whole draws, and each call
 * unpacks every chunk that contains a number of the part. Errors: TSR_E_DATA
 * (no such variable, a group without draws, or a part beyond the variable),
 * TSR_E_IO. */
tsr_status tsr_trace_get_part(tsr_trace_reader *reader, tsr_trace_group group,
                              const char *name, const tsr_trace_part *part,
                              double *value, tsr_err *err);

/* Coordinates of the last axis of a variable: *coord [*n], the caller frees it;
 * NULL if the coordinates are texts or missing. Errors: TSR_E_DATA,
 * TSR_E_IO. */
tsr_status tsr_trace_coordinates(tsr_trace_reader *reader,
                                 tsr_trace_group group, const char *name,
                                 int *n, double **coord, tsr_err *err);

/* Number of groups of chains with a common start (root attribute chain_groups).
 * Groups have equal numbers of consecutive chains. 0: the file has no such
 * attribute, and each chain is a group. */
int tsr_trace_n_group(tsr_trace_reader *reader);

/* A text attribute of the root; the caller frees it. NULL: no such
 * attribute. */
char *tsr_trace_attribute_text(tsr_trace_reader *reader, const char *name);

/* A text attribute of a variable or a coordinate ("units", "long_name"); the
 * caller frees it. NULL: no such variable or attribute. */
char *tsr_trace_variable_text(tsr_trace_reader *reader, tsr_trace_group group,
                              const char *variable, const char *name);

#endif
