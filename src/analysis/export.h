/* Drawn conformations as files that other programs open. */
#ifndef TSR_ANALYSIS_EXPORT_H
#define TSR_ANALYSIS_EXPORT_H

#include "analysis/all_atoms.h"
#include "analysis/draw_choice.h"
#include "analysis/draw_weights.h"
#include "analysis/frames.h"
#include "core/log.h"
#include "io/model_write.h"
#include "store/trace.h"

typedef struct {
    tsr_model_format format;
    const char *name;        /* of the run */
    tsr_all_atoms *all;      /* NULL: the atoms of the model */
    int state;               /* -1: every one */
    int is_raw;              /* 1: where they were drawn, not superposed */
    tsr_trace_reader *trace; /* for lp, of `best`; NULL: none */
    /* Of them `even` takes draws in proportion, some of them several times; no
     * other choice then counts. NULL: all weigh the same. */
    const tsr_draw_weights *weights;
    const int *pick; /* [n_pick] frames instead of the choice's, in the
                        order of tsr_frames_list; NULL: none */
    int n_pick;
} tsr_export_options;

/* Writes the chosen frames as models into `out`, superposed (CA) on their mean
 * unless raw; the last column of PDB is 8 pi^2 / 3 times the mean square
 * deviation of the residue's CA over them. *n_model: how many.
 * Errors: TSR_E_DATA (none is chosen), those of tsr_frames_read and
 * tsr_model_write. */
tsr_status tsr_export_models(tsr_frames *frames, const tsr_draw_choice *choice,
                             const tsr_export_options *options, FILE *out,
                             int *n_model, tsr_err *err);

/* Chosen draws of every variable with one number a draw, as CSV with a header:
 * chain, draw, then the variables of posterior and sample_stats. Numbers to the
 * last bit; what is not finite is empty. *n_row: how many. */
tsr_status tsr_export_csv(tsr_trace_reader *trace,
                          const tsr_draw_choice *choice, FILE *out, long *n_row,
                          tsr_err *err);

#endif
