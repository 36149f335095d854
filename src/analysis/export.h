/* Drawn conformations as files that other programs open. */
#ifndef TSR_ANALYSIS_EXPORT_H
#define TSR_ANALYSIS_EXPORT_H

#include "analysis/frames.h"
#include "core/log.h"
#include "core/status.h"
#include "molecule/structure.h"
#include "posterior/all_atoms.h"
#include "store/trace.h"

/* Weights of draws, as `tessera reweight --output` writes them: CSV with a
 * header, columns chain, draw and weight first. */

typedef struct {
    int n_chain;
    long n_draw;
    double *weight; /* [n_chain][n_draw], their sum 1; 0 where none is given */
} tsr_draw_weights;

/* Errors, with the line: TSR_E_NOINPUT, TSR_E_DATA (no such table, a weight
 * below 0 or no number, a draw twice, none above 0), TSR_E_NOMEM. */
tsr_status tsr_draw_weights_read(const char *path, tsr_draw_weights *out,
                                 tsr_err *err);
void tsr_draw_weights_clear(tsr_draw_weights *weights);

/* 0 beyond the table. */
double tsr_draw_weights_at(const tsr_draw_weights *weights, int chain,
                           long draw);

/* `count` of n things such that all together stand for their weights: those at
 * the middles of as many equal stretches of the cumulative weight, so that a
 * heavy one comes several times (systematic resampling; Carpenter, Clifford &
 * Fearnhead 1999, with the middles for the random start). pick [count] out,
 * ascending. Returns 0 where no weight is above 0. */
int tsr_weighted_pick(int n, const double *weight, long count, int *pick);

/* Which draws: what a user writes for --draws.
 *
 *     all             every one
 *     120             draw 120 of every chain
 *     100:200         draws 100 to 200, both counted
 *     0:1000:50       every 50th of them
 *     2/100:200       of chain 2 alone
 *     best            the one with the highest posterior density (lp)
 *     even:20         20 of them, evenly spread: an ensemble that stands for
 *                     the posterior
 *
 * and several with commas between. */

typedef struct {
    int chain; /* -1: every one */
    long first, last, every;
} tsr_draw_range;

typedef struct {
    int n;
    tsr_draw_range *range; /* [n] */
    int is_best;           /* the best one, too */
    long even;             /* that many, too; 0: none */
} tsr_draw_choice;

/* The caller clears it, also after an error. Errors: TSR_E_USAGE. */
tsr_status tsr_draw_choice_parse(const char *text, tsr_draw_choice *choice,
                                 tsr_err *err);
void tsr_draw_choice_clear(tsr_draw_choice *choice);

/* Marks what is chosen of n draws, which are listed by chain, then draw.
 * chain, draw  [n]  in
 * lp           [n]  in   for `best`; NULL: the last draw is the best
 * is_chosen    [n]  out
 * Returns how many. */
int tsr_draw_choice_apply(const tsr_draw_choice *choice, int n,
                          const int *chain, const long *draw, const double *lp,
                          char *is_chosen);

typedef struct {
    tsr_model_format format;
    const char *name;   /* of the run */
    tsr_all_atoms *all; /* NULL: the atoms of the model */
    int state;          /* -1: every one */
    int is_raw;         /* 1: where they were drawn, not superposed */
    /* Superposed on the start by these residues alone. NULL: on the mean. */
    const int *align; /* [n_align] residues from 0, ascending */
    int n_align;
    tsr_trace_reader *trace; /* for lp, of `best`; NULL: none */
    /* Of them `even` takes draws in proportion, some of them several times; no
     * other choice then counts. NULL: all weigh the same. */
    const tsr_draw_weights *weights;
    const int *pick; /* [n_pick] frames instead of the choice's, in the
                        order of tsr_frames_list; NULL: none */
    int n_pick;
} tsr_export_options;

/* Writes the chosen frames as models into `out`, superposed (CA) on their mean,
 * or by chosen residues on the start, unless raw; the last column of PDB is 8
 * pi^2 / 3 times the mean square deviation of the residue's CA over them.
 * *n_model: how many. Errors: TSR_E_DATA (none is chosen), those of
 * tsr_frames_read and tsr_model_write. */
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
