/* Writes drawn conformations and parameters as files for other programs. */
#ifndef TSR_ANALYSIS_EXPORT_H
#define TSR_ANALYSIS_EXPORT_H

#include "analysis/frames.h"
#include "core/log.h"
#include "core/status.h"
#include "molecule/structure.h"
#include "posterior/all_atoms.h"
#include "posterior/config.h"
#include "store/trace.h"

/* The user's choice of draws, argument of --draws:
 *
 *     all             every draw
 *     120             draw 120 of every chain
 *     100:200         draws 100 to 200, both included
 *     0:1000:50       every 50th of these draws
 *     2/100:200       the same of chain 2 only
 *     best            the draw with the highest posterior density (lp)
 *     even:20         20 draws, evenly spread, which represent the posterior
 *
 * or several of these, separated by commas. */

/* Draws first, first + every, ... not beyond last. */
typedef struct {
    int chain; /* -1: every chain */
    long first, last, every;
} tsr_draw_range;

/* A parsed argument of --draws. */
typedef struct {
    int n;
    tsr_draw_range *range; /* [n] */
    int is_best;           /* 1: the best draw as well */
    long even;             /* number of evenly spread draws that are chosen as
                              well */
} tsr_draw_choice;

/* Parses the argument of --draws. The caller clears the choice, also after an
 * error. Errors: TSR_E_USAGE, TSR_E_NOMEM. */
tsr_status tsr_draw_choice_parse(const char *text, tsr_draw_choice *choice,
                                 tsr_err *err);
void tsr_draw_choice_clear(tsr_draw_choice *choice);

/* Marks the chosen draws among n draws that are sorted by chain and draw.
 * chain, draw  [n]  in
 * lp           [n]  in   for `best`; NULL: the last draw counts as best
 * is_chosen    [n]  out
 * Returns the number of chosen draws. */
int tsr_draw_choice_apply(const tsr_draw_choice *choice, int n,
                          const int *chain, const long *draw, const double *lp,
                          char *is_chosen);

/* The title by which scenes of tessera are recognised. */
#define TSR_SCENE_MARK "tessera: draws of the posterior"

/* How models are written. */
typedef struct {
    tsr_model_format format;
    const char *name;   /* name of the run */
    tsr_all_atoms *all; /* all-atom models are written; NULL: the atoms of
                           model.pdb are written */
    int state;          /* -1: every state */
    int is_raw;         /* 1: coordinates as drawn, without superposition */
    /* If align is not NULL, models are superposed on the start by these
     * residues; else on their mean. */
    const int *align; /* [n_align] residues from 0, ascending */
    int n_align;
    tsr_trace_reader *trace;  /* trace with lp, for `best`, and with weights of
                                 states, for labels; NULL: not available */
    const tsr_config *config; /* of the run: mmCIF gets the categories of
                                 PDB-IHM as well; NULL: models alone */
    int is_scene;    /* 1: a scene of MolViewSpec that holds the mmCIF file */
    const int *pick; /* [n_pick] numbers of frames in tsr_frames_list, which
                        replace the choice; NULL: use the choice */
    int n_pick;
} tsr_export_options;

/* Writes the chosen frames as models into `out`. Unless raw, models are
 * superposed by CA, on their mean or by chosen residues on the start. The B
 * factor is 8 pi^2 / 3 times the mean square deviation of the residue's CA over
 * the models, Angstrom squared. *n_model: number of models. Errors: TSR_E_DATA
 * (no frame is chosen), TSR_E_USAGE (no such state), TSR_E_NOMEM, those of
 * tsr_frames_read and tsr_model_write. */
tsr_status tsr_export_models(tsr_frames *frames, const tsr_draw_choice *choice,
                             const tsr_export_options *options, FILE *out,
                             int *n_model, tsr_err *err);

/* Writes the chosen draws of every scalar variable as CSV with a header: chain,
 * draw, then the variables of posterior and sample_stats. Numbers have full
 * precision; a value that is not finite leaves its cell empty. *n_row out.
 * Errors: TSR_E_DATA (no draw is chosen), TSR_E_NOMEM, those of
 * tsr_trace_get. */
tsr_status tsr_export_csv(tsr_trace_reader *trace,
                          const tsr_draw_choice *choice, FILE *out, long *n_row,
                          tsr_err *err);

#endif
