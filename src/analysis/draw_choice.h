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
#ifndef TSR_ANALYSIS_DRAW_CHOICE_H
#define TSR_ANALYSIS_DRAW_CHOICE_H

#include "core/status.h"

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

#endif
