/* What a chain asks of the surrogate move, whose steps a device makes. */
#ifndef TSR_MOVES_SURROGATE_MOVE_H
#define TSR_MOVES_SURROGATE_MOVE_H

#include "moves/move.h"

/* Where walks are made. */
enum { TSR_SURROGATE_ON_GPU, TSR_SURROGATE_ON_ALL };

typedef struct {
    double weight;
    int on;
    long steps; /* at most */
    double target;
} tsr_surrogate_options;

/* What a state of tsr_move_surrogate has learnt. */
typedef struct {
    tsr_surrogate_options options;
    int n_width, n_ratio;
    double log_steps;  /* of a walk */
    long n_learnt;     /* walks that these and the ratio were learnt from */
    long *n_seen;      /* [n_width] walks that each width was learnt from */
    double *log_width; /* [n_width] of the torsions that walk, then of c2 */
    double *ratio; /* [n_ratio] the engine's curve over that of beads, - 1 */
} tsr_surrogate_state;

/* Room for what is learnt; the surrogate alone knows how much. 0: out of
 * memory. */
int tsr_surrogate_state_open(tsr_surrogate_state *state, int n_width,
                             int n_ratio);

/* Warm-up: from the steps and acceptances of a walk [n_width], and whether its
 * end was accepted. */
void tsr_surrogate_state_learn(tsr_surrogate_state *state,
                               const int32_t (*count)[2], int accepted);

/* What a chain without a state saves instead of one; skips one that was saved.
 */
void tsr_surrogate_archive_none(tsr_archive *archive);

#endif
