/* The curves I(q) of stored draws, and the data beside which they were drawn:
 * what a trace knows of a data set. */
#ifndef TSR_ANALYSIS_STORED_CURVE_H
#define TSR_ANALYSIS_STORED_CURVE_H

#include "core/log.h"
#include "io/saxs.h"
#include "scattering/linear.h"
#include "store/trace.h"

typedef struct {
    tsr_trace_reader *trace; /* borrowed */
    int data;                /* data set, from 0 */
    int n_chain, n_draw, n;  /* n: points of a curve */
    tsr_saxs saxs;           /* the run's data as the trace holds it */
    double *scale;           /* [n_chain][n_draw] c; of a fixed one, too */
    double *background;      /* [n_chain][n_draw] b */
    tsr_log *log; /* borrowed; on a terminal it is told how far a pass is; NULL:
                     nobody is */
} tsr_stored_curve;

/* Reads data set `data` of the trace but for its curves; linear: how scale and
 * background were treated in the run. The caller clears it, also after an
 * error. Errors: TSR_E_DATA (no such data set, with how many there are), those
 * of tsr_trace_get. */
tsr_status tsr_stored_curve_open(tsr_trace_reader *trace, int data,
                                 const char *path, const tsr_linear *linear,
                                 tsr_stored_curve *stored, tsr_err *err);
void tsr_stored_curve_clear(tsr_stored_curve *stored);

/* The name of a variable of this data set: `noise_scale_2`. */
void tsr_stored_curve_name(const char *name, int data, size_t size, char *out);

/* A scalar of the draws, *value [n_chain][n_draw], caller frees; NULL where the
 * trace has none. Errors: TSR_E_NOMEM, TSR_E_IO, TSR_E_DATA. */
tsr_status tsr_stored_curve_scalar(const tsr_stored_curve *stored,
                                   tsr_trace_group group, const char *name,
                                   double **value, tsr_err *err);

/* Calls `each` with the curve of every draw, (c I + b - b) / c, [n], chain by
 * chain within blocks of draws; at is its place in [n_chain][n_draw]. Some 16
 * MiB are in memory. Stops at its first error. Errors: those of
 * tsr_trace_get_part and of `each`; TSR_E_DATA (a scale that is not above 0).
 */
typedef tsr_status (*tsr_curve_visit)(void *context, size_t at,
                                      const double *curve, tsr_err *err);
tsr_status tsr_stored_curve_each(const tsr_stored_curve *stored,
                                 tsr_curve_visit each, void *context,
                                 tsr_err *err);

#endif
