/* Weights of draws, as `tessera reweight --output` writes them: CSV with a
 * header, columns chain, draw and weight first. */
#ifndef TSR_ANALYSIS_DRAW_WEIGHTS_H
#define TSR_ANALYSIS_DRAW_WEIGHTS_H

#include "core/status.h"

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

#endif
