/* The moves by a surrogate: their options, and what they learn. */
#ifndef TSR_SURROGATE_SURROGATE_MOVE_H
#define TSR_SURROGATE_SURROGATE_MOVE_H

#include "moves/move.h"
#include "surrogate/walker.h"

/* Where walks are made. */
enum { TSR_SURROGATE_ON_AUTO, TSR_SURROGATE_ON_GPU, TSR_SURROGATE_ON_ALL };

typedef struct {
    double weight;
    int on;
    long steps; /* at most */
    double target;
} tsr_surrogate_options;

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
    double (*factor)[TSR_SURROGATE_FACTOR]; /* [n_linker] of steps of linkers:
                          lower, of their covariance */
    double *ratio; /* [n_ratio] the engine's curve over that of beads, - 1 */
} tsr_surrogate_state;

/* The parts of tsr_move_launch that both have. Launchers and rooms are
 * tsr_surrogate_engine and tsr_surrogate_walker. */
int tsr_surrogate_open(tsr_pool *pool, void *state, const void *launcher);
void tsr_surrogate_launcher_free(void *launcher);
tsr_status tsr_surrogate_room_new(void *launcher, int most_jobs, void **room,
                                  tsr_err *err);
void tsr_surrogate_room_free(void *room);
tsr_status tsr_surrogate_job(void *room, int job, const void *state,
                             const tsr_move_place *place, const uint32_t key[2],
                             tsr_err *err);
tsr_status tsr_surrogate_run(void *room, int n_job, tsr_err *err);
tsr_status tsr_surrogate_result(const void *room, int job,
                                const tsr_move_place *place,
                                tsr_conformation *proposed,
                                tsr_proposal *proposal, tsr_move_along *along,
                                tsr_err *err);

/* The numbers of a job's result. */
const float *tsr_surrogate_numbers(const void *room, int job);

/* Warm-up: what the curve of beads where the chain is now lacks of the
 * engine's. n: how many times before. */
void tsr_surrogate_learn_ratio(const void *room, int job,
                               tsr_surrogate_state *state,
                               const tsr_move_place *place, int accepted,
                               long n);

#endif
