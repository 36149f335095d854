/* Speed and accuracy of an engine on made-up systems (a random ball of bodies
 * with 21 types), case by case. */
#ifndef TSR_BENCH_ENGINE_BENCH_H
#define TSR_BENCH_ENGINE_BENCH_H

#include "engine/engine.h"

typedef enum {
    TSR_BENCH_FULL,         /* every body on its own */
    TSR_BENCH_RANDOM40,     /* 40 % of the bodies, at random */
    TSR_BENCH_CONTIGUOUS10, /* ten neighbours along the chain */
    TSR_BENCH_ONE,          /* one body */
    TSR_BENCH_RIGID_HALF,   /* the second half turns as one rigid group */
    TSR_BENCH_N_CASE
} tsr_bench_case;

const char *tsr_bench_case_name(tsr_bench_case which); /* "full", ... */

typedef struct tsr_bench_problem tsr_bench_problem;

/* A ball of radius 40 Angstrom (n_body 1888; the radius goes with the cube
 * root), n_system of them, q to n_q - 1 steps of pi / (2 D), D the largest
 * distance that the engine must allow for: `slack` times the ball's diameter. A
 * sampler's is some 1.5; at 1 every move near the surface is in doubt. */
tsr_status tsr_bench_problem_new(int n_body, int n_q, int n_system,
                                 double slack, tsr_bench_problem **out,
                                 tsr_err *err);
void tsr_bench_problem_free(tsr_bench_problem *problem);
const tsr_engine_spec *tsr_bench_problem_spec(const tsr_bench_problem *problem);

/* The spec with two rigid units, the halves of TSR_BENCH_RIGID_HALF, which is
 * then the only case, in the same place in all systems. Before the first run.
 */
const tsr_engine_spec *tsr_bench_problem_join(tsr_bench_problem *problem);

typedef struct {
    tsr_bench_case which;
    int batch; /* proposals a submit */
    int n_run;
    double wall_us_per_profile; /* the fastest of n_run submits */
    double median_us_per_profile;
    double device_us_per_profile; /* of the fastest; NAN where not measured */
    double max_rel_error;         /* of I(q), against double precision; NAN
                                     where not asked */
} tsr_bench_row;

typedef struct {
    tsr_bench_case which;
    int n_batch;
    double seconds; /* submits about so long, every second one accepted */
    int is_exact;   /* 1: compares system 0 at the end; O(M^2 Q) */
    /* time of the batch's last submit on its device; NULL: not known */
    double (*device_us)(const tsr_batch *batch);
} tsr_bench_options;

/* Times a case. A problem serves one engine. */
tsr_status tsr_bench_run(tsr_bench_problem *problem, tsr_engine *engine,
                         const tsr_bench_options *options, tsr_bench_row *row,
                         tsr_err *err);

/* Profiles a second of n_thread host threads, each with systems of its own in
 * two batches of n_batch, one of which the device has while the thread proposes
 * the other: as a sampler does it. 2 n_thread n_batch systems take part. */
tsr_status tsr_bench_threads(tsr_bench_problem *problem, tsr_engine *engine,
                             tsr_bench_case which, int n_thread, int n_batch,
                             double seconds, double *profiles_per_second,
                             tsr_err *err);

#endif
