/* What the files of the sampler share: workers and their halves. */
#ifndef TSR_SAMPLER_SAMPLER_STATE_H
#define TSR_SAMPLER_SAMPLER_STATE_H

#include "sampler/fine.h"
#include "sampler/population.h"

#include <pthread.h>
#include <stdatomic.h>

/* The chains that go to the device together, each with all its replicas:
 * replica r of the i-th is number n_temp * i + r here. */
typedef struct {
    int n_chain, n_replica;
    tsr_chain **chain;   /* [n_replica] */
    tsr_ladder **ladder; /* [n_chain] */
    tsr_fine **fine;     /* [n_chain] NULL: no place above the ladders */
    int *number;         /* [n_chain] */
    long *accepted;      /* [n_chain] at temperature 1 since the last draw */
    tsr_batch *batch;    /* NULL without data */
    int n_ask;
    tsr_body_proposal *ask; /* [n_replica] */
    int *asked;             /* [n_replica] place in ask, or -1 */
    double *profile;        /* [n_replica][n_profile] */
    int audited;            /* replica whose proposal is checked next, or -1 */
    int audit_after;        /* steps until then */
} tsr_half;

typedef struct {
    tsr_sampler *sampler;
    pthread_t thread;
    int started;
    tsr_half half[2];
    /* of both; NULL: their chains do not walk, or redraw nothing */
    tsr_surrogate_walker *walker, *redrawer;
    int n_done;  /* draws completed in this call */
    long n_step; /* steps */
    tsr_status status;
    tsr_err err;
    atomic_long step, accepted;
    int n_audit;
    double mark; /* when the part of the step under way began */
    tsr_sampler_times times;
} tsr_worker;

struct tsr_sampler {
    const tsr_target *target;
    const atomic_int *stop;
    int n_chain, n_temp, n_worker;
    int n_profile;       /* numbers an answer of the engine has */
    tsr_chain **chain;   /* [n_chain * n_temp] */
    tsr_ladder **ladder; /* [n_chain] */
    tsr_fine **fine;     /* [n_chain] NULL: no place above the ladders */
    long n_step;         /* of each chain, before the call under way */
    long n_anneal;       /* steps in which the likelihood is turned on */
    double first_heat;
    int is_flat; /* 1: all replicas at flat_beta, without exchanges */
    double flat_beta;
    tsr_population population;
    _Atomic double *chi2; /* [n_chain] */
    tsr_worker *worker;

    pthread_mutex_t lock;
    pthread_cond_t go, done;
    int lock_made;
    long round; /* grows with every call of advance */
    int n_busy, quit;
    atomic_int failed; /* a worker failed: the others stop too */

    /* the call under way */
    tsr_record *record;
    tsr_track *track;          /* NULL: no trajectories */
    int n_draw, warm, refresh; /* refresh: nothing but that */
    long thin;
    double seconds; /* of all calls */
};

/* The caller asked, or a worker failed. */
int tsr_sampler_should_stop(const tsr_sampler *sampler);

/* Uniform in [0, 1), of the seed and two numbers; no chain's. */
double tsr_sampler_chance(const tsr_sampler *sampler, uint64_t a, uint64_t b);

/* A worker's thread: runs when the sampler's round grows, until it quits.
 * argument: the tsr_worker. */
void *tsr_sampler_worker(void *argument);

#endif
