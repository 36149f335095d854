/* The parts of the command tessera bench. */
#ifndef TSR_BENCH_COMMAND_BENCH_H
#define TSR_BENCH_COMMAND_BENCH_H

#include "core/json.h"
#include "core/log.h"
#include "core/status.h"
#include "engine/engine.h"
#include "gpu/device.h"

#include <stdio.h>

/* Begins the JSON output of rows of any kind: {device, platform, driver,
 * version, rows: [. The command closes what is open at the end. */
void tsr_bench_begin_json(tsr_json *json, const tsr_device_info *info);

/* tessera bench --sampling */

typedef struct {
    int n_config;
    const char *const *config; /* [n_config]; 0: those in configs/ */
    int n_set;
    const char *const *set; /* [n_set] KEY=VALUE, for all */
    const char *device;
    long seconds; /* longest run of a configuration */
} tsr_bench_sampling_options;

/* Runs each configuration until R-hat < 1.01 and ESS > 400 for all variables,
 * but at most for `seconds`, and adds a row with its effective draws per
 * second. The run's folder is temporary. A configuration that fails is skipped
 * with a warning. Errors: TSR_E_NOINPUT (nothing to run), TSR_E_INTERRUPTED,
 * TSR_E_IO. */
tsr_status tsr_bench_sampling(const tsr_bench_sampling_options *options,
                              tsr_table *table, tsr_log *log, tsr_err *err);

/* Measures each move on one thread, without a device and without data:
 * proposals per second, excluded volume and copying of the moved coordinates
 * included; acceptance under the prior; share of the engine's tiles that a
 * proposal makes dirty. */
tsr_status tsr_bench_moves(tsr_table *table, int is_quick, tsr_log *log,
                           tsr_err *err);

/* Measures the comparison of models with density maps, for the molecule sizes
 * of a published benchmark: with and without transfer of the map to the device,
 * and for parts of the molecules alone and in batches. Errors of the
 * correlation are against double precision. */
tsr_status tsr_bench_map(const tsr_device *device, tsr_table *table,
                         int is_quick, tsr_err *err);

/* ---- speed and accuracy of an engine ----
 *
 * For artificial systems: bodies of 21 types at random positions in a ball. */

typedef enum {
    TSR_BENCH_FULL,         /* every body moves independently */
    TSR_BENCH_RANDOM40,     /* 40 % of the bodies, chosen at random */
    TSR_BENCH_CONTIGUOUS10, /* ten consecutive bodies */
    TSR_BENCH_ONE,          /* one body */
    TSR_BENCH_RIGID_HALF,   /* the second half rotates as one rigid group */
    TSR_BENCH_N_CASE
} tsr_bench_case;

const char *tsr_bench_case_name(tsr_bench_case which); /* "full", ... */

/* Number of pairs whose distance a proposal changes, on average. */
double tsr_bench_pairs(int n_body, tsr_bench_case which);

typedef struct tsr_bench_problem tsr_bench_problem;

/* n_system systems of n_body bodies in a ball. The radius is 40 Angstrom for
 * 1888 bodies and proportional to the cube root of n_body. q has n_q points
 * from 0 in steps of pi / (2 D), with D = slack times the diameter, the largest
 * distance that the engine must allow for. Samplers use a slack of about 1.5.
 * Errors: TSR_E_NOMEM. */
tsr_status tsr_bench_problem_new(int n_body, int n_q, int n_system,
                                 double slack, tsr_bench_problem **out,
                                 tsr_err *err);
void tsr_bench_problem_free(tsr_bench_problem *problem);
const tsr_engine_spec *tsr_bench_problem_spec(const tsr_bench_problem *problem);

/* Makes the two halves of the molecule rigid units, as the plane-wave engine
 * needs: all systems get the coordinates of system 0. Returns the spec.
 * TSR_BENCH_RIGID_HALF is then the only valid case. To be called before the
 * first run. */
const tsr_engine_spec *tsr_bench_problem_make_rigid(tsr_bench_problem *problem);

typedef struct {
    tsr_bench_case which;
    int batch; /* proposals in a submit */
    int n_run;
    double wall_us_per_profile; /* of the fastest of n_run submits */
    double median_us_per_profile;
    double device_us_per_profile; /* of the fastest submit; NaN: not measured */
    double max_rel_error;         /* of I(q), against double precision; NaN: not
                                     requested */
} tsr_bench_row;

typedef struct {
    tsr_bench_case which;
    int n_batch;
    double seconds; /* approximate duration; every second submit is accepted */
    int is_exact;   /* 1: system 0 is compared with the reference engine at the
                       end, O(M^2 Q) */
    /* device time of the last submit of a batch; NULL: not measured */
    double (*device_us)(const tsr_batch *batch);
} tsr_bench_options;

/* Measures a case. A problem can be used with one engine only. */
tsr_status tsr_bench_run(tsr_bench_problem *problem, tsr_engine *engine,
                         const tsr_bench_options *options, tsr_bench_row *row,
                         tsr_err *err);

#endif
