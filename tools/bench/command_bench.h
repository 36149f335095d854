/* The parts of `tessera bench` beside the engine's speed. */
#ifndef TSR_BENCH_COMMAND_BENCH_H
#define TSR_BENCH_COMMAND_BENCH_H

#include "core/json.h"
#include "core/log.h"
#include "core/status.h"
#include "engine/engine.h"
#include "gpu/device.h"

#include <stdio.h>

/* What rows of all kinds have before them: {device, platform, driver, version,
 * rows: [. The command closes all that is open at the end. */
void tsr_bench_begin_json(tsr_json *json, const tsr_device_info *info);

/* tessera bench --sampling */

typedef struct {
    int n_config;
    const char *const *config; /* [n_config]; 0: those of configs/ here */
    int n_set;
    const char *const *set; /* [n_set] KEY=VALUE for all of them */
    const char *device;
    long seconds; /* at most, of each */
} tsr_bench_sampling_options;

/* Runs each configuration, with its seed, until R-hat < 1.01 and ESS > 400 of
 * all variables or for so many seconds, in a temporary folder that is removed,
 * and prints how many independent draws a second that made. What cannot be run
 * is left out, with a warning. Errors: TSR_E_NOINPUT (nothing to run),
 * TSR_E_INTERRUPTED, TSR_E_IO. */
tsr_status tsr_bench_sampling(const tsr_bench_sampling_options *options,
                              tsr_table *table, tsr_log *log, tsr_err *err);

/* Proposals a second of each move on one thread, excluded volume and the copy
 * of what moved included, the likelihood left out; acceptance under the prior;
 * and the part of the engine's tiles that a proposal makes dirty. */
tsr_status tsr_bench_moves(tsr_table *table, int is_quick, tsr_log *log,
                           tsr_err *err);

/* Models of the sizes of a published benchmark compared with density maps: with
 * the map sent to the device and with it there, parts of them alone and in
 * batches, against double precision. */
tsr_status tsr_bench_map(const tsr_device *device, tsr_table *table,
                         int is_quick, tsr_err *err);

/* Tries settings of the page-tile engine on the device, one after the other
 * from what it has now, and prints each with its score: the geometric mean of
 * wall times over kinds of moves and batches, against the first one's. Last,
 * the best one as a line of the tuning table (gpu/engine_device.h). */
tsr_status tsr_bench_tune(const tsr_device *device, int is_quick, FILE *out,
                          tsr_log *log, tsr_err *err);

/* ---- an engine's speed and accuracy ----
 *
 * On made-up systems (a random ball of bodies with 21 types), case by case. */

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
const tsr_engine_spec *tsr_bench_problem_make_rigid(tsr_bench_problem *problem);

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
