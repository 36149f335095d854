/* What a chain asks of the surrogate move, whose steps a device makes. */
#ifndef TSR_SURROGATE_SURROGATE_MOVE_H
#define TSR_SURROGATE_SURROGATE_MOVE_H

#include "moves/move.h"

/* Where walks are made. */
enum { TSR_SURROGATE_ON_AUTO, TSR_SURROGATE_ON_GPU, TSR_SURROGATE_ON_ALL };

typedef struct {
    double weight;
    int on;
    long steps; /* at most */
    double target;
} tsr_surrogate_options;

/* Numbers of a linker's factor (lower, row by row). */
enum { TSR_LINKER_FACTOR = 36 };

/* What a state of tsr_move_surrogate has learnt. */
typedef struct {
    tsr_surrogate_options options;
    int n_width, n_ratio, n_linker;
    double log_steps;  /* of a walk */
    long n_learnt;     /* walks that these and the ratio were learnt from */
    long n_redrawn;    /* redraws that the ratio was, too */
    long *n_seen;      /* [n_width] walks that each width was learnt from */
    double *log_width; /* [n_width] of the torsions that walk, of c2, of linkers
                          that close */
    int *size;         /* [n_linker] rows of each factor */
    long *n_step;      /* [n_linker] walks that each was learnt from */
    double (*factor)[TSR_LINKER_FACTOR]; /* [n_linker] of steps of linkers:
                          lower, of their covariance */
    double *ratio; /* [n_ratio] the engine's curve over that of beads, - 1 */
} tsr_surrogate_state;

/* Room for what is learnt; the surrogate alone knows how much. n_width: with
 * the n_linker linkers, whose factors have size [n_linker] rows each. 0: out of
 * memory. */
int tsr_surrogate_state_open(tsr_surrogate_state *state, int n_width,
                             int n_linker, const int *size, int n_ratio);

/* Warm-up: from the steps and acceptances of a walk [n_width + n_linker], of
 * linkers those that leave the part beyond and those that move it; what factors
 * learn from [n_linker][TSR_LINKER_FACTOR] (surrogate/walker.h); and whether
 * the walk's end was accepted. */
void tsr_surrogate_state_learn(tsr_surrogate_state *state,
                               const int32_t (*count)[2], const float *seen,
                               int accepted);

/* What a chain without a state saves instead of one; skips one that was saved.
 */
void tsr_surrogate_archive_none(tsr_archive *archive);

#endif
