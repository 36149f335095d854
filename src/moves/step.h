/* Step sizes that warm-up learns: a common one, and each target's own on top.
 */
#ifndef TSR_MOVES_STEP_H
#define TSR_MOVES_STEP_H

#include "core/archive.h"

typedef struct {
    long n; /* proposals learnt from */
    double log_step;
} tsr_step;

/* The width of a step: both together, at most `most`. */
double tsr_step_width(const tsr_step *common, const tsr_step *own, double most);

/* Both learn from an acceptance probability (tsr_move_learn). */
void tsr_step_learn(tsr_step *common, tsr_step *own, double accept_probability,
                    double target, double most);

/* Saves or restores n of them. */
void tsr_step_archive(tsr_step *step, size_t n, tsr_archive *archive);

#endif
