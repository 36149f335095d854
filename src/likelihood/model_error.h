/* What curves of one model lack of those of a better one, from examples: both
 * models' partial profiles of the same conformations (docs/statistics.md).
 *
 * Bodies stand here for the model that chains compute, atoms for the better
 * one: atoms with water of their own. */
#ifndef TSR_LIKELIHOOD_MODEL_ERROR_H
#define TSR_LIKELIHOOD_MODEL_ERROR_H

#include "likelihood/likelihood.h"
#include "scattering/linear.h"

enum { TSR_EXAMPLE_NODES = 16 };

typedef struct {
    const tsr_likelihood *likelihood; /* that has the bodies' curves */
    int view;                         /* that is learnt */
    int n;                            /* conformations */
    double *atoms;  /* [n + 1][n_pair][n_q] partial profiles, S_ab included, the
                       mean last */
    double *bodies; /* [n + 1][n_pair][n_q] */
    int n_node;     /* values of c1 and c2 that stand for their prior */
    double node[TSR_EXAMPLE_NODES][TSR_N_CONTRAST];
} tsr_examples;

/* Numbers of i conformations' partial profiles, and where those of conformation
 * i begin that the view is made of. */
size_t tsr_examples_size(const tsr_examples *examples, int i);
size_t tsr_examples_place(const tsr_examples *examples, int i);

/* Mean square [n_q] of what is left, over conformations and nodes: log of atoms
 * over bodies less its mean at small angles, which is a matter of scale;
 * without the ratio of the likelihood where is_plain. covariance [n_q][n_q]
 * (may be NULL): the mean of the products. Both are added to. left [n_q]:
 * scratch. */
void tsr_examples_moments(const tsr_examples *examples, int is_plain,
                          double *square, double *covariance, double *left);

/* The leading components of the correlation matrix, scaled so that every q
 * keeps its variance: curve [TSR_MODEL_ERRORS][n_q] out, relative. Returns how
 * many. 0: out of memory. */
int tsr_examples_components(const tsr_examples *examples, const double *square,
                            const double *covariance, double *curve);

/* A mean over n draws stands for the next one: the ratio itself is off by 1/n
 * of the variance, and of n draws the variance is known as badly as the tails
 * of Student's t say. By so much the variance is multiplied; n > 3. */
double tsr_examples_widened(int n);

/* Root of the mean of square over the grid's q from `from` to `to`, in per
 * cent; NaN: there are none. */
double tsr_examples_percent(const tsr_examples *examples, const double *square,
                            double from, double to);

#endif
