/* Runs of residuals of one sign: the CorMap test of two curves.
 * Source: Franke, Jeffries & Svergun 2015, Nat. Methods 12, 419. */
#ifndef TSR_LIKELIHOOD_CORMAP_H
#define TSR_LIKELIHOOD_CORMAP_H

/* Longest run of residuals of one sign; one that is 0 ends a run. */
int tsr_cormap_longest_run(int n, const double *residual);

/* Probability that n tosses of a fair coin hold a run, of heads or of tails, of
 * `run` or more; exact, by recursion (Schilling 1990, Coll. Math. J. 21, 196).
 * Cost: O(n). */
double tsr_cormap_p(int n, int run);

#endif
