/* The command tessera bench: speed and accuracy of the engine on a device, from
 * one small molecule to batches of large ones. */
#include "bench/command_bench.h"
#include "commands/command.h"

#include "core/json.h"
#include "gpu/engine_device.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

static const char *const engine_words[] = {"tiles", "waves", NULL};

typedef struct {
    int json, engine, quick, moves, map, sampling;
    char *device;
    long time;
    tsr_strings set;
} options;

static const tsr_field fields[] = {
    TSR_OPTION_JSON(options),
    TSR_FIELD(STRING, "device", options, device, .argument = "DEVICE",
              .initial = "auto",
              .doc = "auto, gpu, cpu, a number or part of a name"),
    TSR_FIELD(CHOICE, "engine", options, engine, .argument = "ENGINE",
              .initial = "tiles", .words = engine_words,
              .doc = "engine to measure: tiles (sums over tiles of pairs), or "
                     "waves (plane waves; half of the bodies turn as one rigid "
                     "part), from one small molecule to batches of large ones"),
    TSR_FIELD(BOOL, "quick", options, quick,
              .doc = "small systems and short runs only"),
    TSR_FIELD(BOOL, "moves", options, moves,
              .doc = "measure the moves of the sampler instead: proposals "
                     "per second, acceptance, dirty (changed) tiles; needs "
                     "no device"),
    TSR_FIELD(BOOL, "map", options, map,
              .doc = "measure the comparison of models with density maps "
                     "instead"),
    TSR_FIELD(BOOL, "sampling", options, sampling,
              .doc = "run CONFIGs instead (default: configs/ here) and count "
                     "independent draws per second"),
    TSR_FIELD(INT, "time", options, time, .argument = "SECONDS",
              .initial = "60", .min = 1, .max = 1000000,
              .doc = "with --sampling: time limit of each run; it stops before "
                     "at convergence"),
    TSR_FIELD(STRINGS, "set", options, set, .argument = "KEY=VALUE",
              .doc = "with --sampling: override a key of all CONFIGs"),
    {0}};

static const char about[] =
    "Times are of one profile, in microseconds. wall: from the proposals to "
    "their profiles,\nhost work included, the fastest submit; device: the "
    "kernels alone, by the device's\nclock, in a second engine. bound: for "
    "each q and each pair whose distance changes, two\nmultiply-adds at a "
    "processor's peak, or the reads of registers of an NVIDIA GPU; for\nsmall "
    "changes the start of a kernel takes longer. error: the largest relative\n"
    "deviation of I(q) from double precision, at any q.\nEngine and maps take "
    "less than a minute each.\n";

enum { N_Q = 51 };

/* The q grid of a sampler allows for a molecule larger than the present one. */
static const double slack = 1.5;

typedef struct {
    const tsr_device *device;
    tsr_log *log;
    tsr_table *table; /* output */
    int quick;
    int is_wave; /* plane-wave engine, which is measured for rigid halves only
                  */
    double seconds; /* duration of a row */
    double longest_us;
    double pair_us; /* least time of a pair, microseconds; 0: not known */
} bench;

/* Least time of a pair of bodies, microseconds: two multiply-adds for each q at
 * the peak of a processor with two vector units. A multiprocessor of an NVIDIA
 * GPU has 128 lanes (since Ampere), which read 1.8 registers in a cycle: 5 for
 * each q and 75 for the start of a pair (bench/RESULTS.md). 0: not known. */
static double least_pair_us(const tsr_device_info *info)
{
    const double cycles_a_us = info->compute_units * info->clock_mhz;
    if (info->type == TSR_DEVICE_GPU &&
        strstr(info->platform, "NVIDIA") != NULL)
        return (5.0 * (N_Q - 1) + 75.0) / (1.8 * 128.0 * cycles_a_us);
    return info->type == TSR_DEVICE_CPU
               ? 2.0 * (N_Q - 1) / (2.0 * info->float_width * cycles_a_us)
               : 0.0;
}

/* Least time of a profile, us. NaN where this is not known. */
static double bound_us(const bench *b, int n_body, tsr_bench_case which)
{
    return b->pair_us > 0.0 ? b->pair_us * tsr_bench_pairs(n_body, which)
                            : (double)NAN;
}

static void print_row(bench *b, int n_body, const tsr_bench_row *row)
{
    tsr_table *t = b->table;
    tsr_table_row(t, NULL);
    tsr_table_put(t,
                  "n_body|bodies %6d n_q %d engine %s case|case %-13s "
                  "batch|batch %5d wall_us_per_profile|wall %11.2f "
                  "device_us_per_profile|device %11.2f "
                  "bound_us_per_profile|bound %11.3f "
                  "profiles_per_second|profiles/s %12.0f "
                  "max_rel_error|error %9.1e",
                  n_body, N_Q, b->is_wave ? "waves" : "tiles",
                  tsr_bench_case_name(row->which), row->batch,
                  row->wall_us_per_profile, row->device_us_per_profile,
                  bound_us(b, n_body, row->which),
                  1e6 / row->wall_us_per_profile, row->max_rel_error);
    tsr_table_end(t);
}

static int is_short_enough(const bench *b, int n_body, int n_batch,
                           tsr_bench_case which, double wall_us)
{
    if (n_batch * wall_us <= b->longest_us)
        return 1;
    tsr_info(b->log, "%d bodies, batch of %d, %s: left out, takes too long",
             n_body, n_batch, tsr_bench_case_name(which));
    return 0;
}

/* Measures all cases of one size and batch. device_us NULL: wall times, sets
 * row; otherwise device times, with an engine of its own since profiling events
 * cost wall time, and sets row[].device_us_per_profile. */
static tsr_status bench_pass(bench *b, int n_body, int n_batch,
                             tsr_bench_row row[TSR_BENCH_N_CASE],
                             const double wall_us[TSR_BENCH_N_CASE],
                             double (*device_us)(const tsr_batch *),
                             tsr_err *err)
{
    const tsr_page_tile_options with = {.profiling = device_us != NULL};
    tsr_bench_problem *problem = NULL;
    tsr_engine *engine = NULL;
    tsr_status status =
        tsr_bench_problem_new(n_body, N_Q, n_batch, slack, &problem, err);
    if (b->is_wave)
        TSR_THEN(status, tsr_engine_plane_wave_new(
                             tsr_bench_problem_make_rigid(problem), b->device,
                             0, &engine, err));
    else
        TSR_THEN(status,
                 tsr_engine_page_tile_new(tsr_bench_problem_spec(problem),
                                          b->device, &with, &engine, err));
    for (int c = b->is_wave ? TSR_BENCH_RIGID_HALF : 0;
         c < TSR_BENCH_N_CASE && status == TSR_OK; c++) {
        tsr_bench_options o = {
            .which = (tsr_bench_case)c,
            .n_batch = n_batch,
            .seconds = device_us != NULL ? b->seconds / 4.0 : b->seconds,
            .is_exact = device_us == NULL && n_batch == 1 &&
                        (n_body < 2000 || c == TSR_BENCH_FULL || b->is_wave),
            .device_us = device_us};
        tsr_bench_row one;
        if (device_us != NULL
                ? row[c].n_run == 0
                : !is_short_enough(b, n_body, n_batch, o.which, wall_us[c]))
            continue;
        status = tsr_bench_run(problem, engine, &o, &one, err);
        if (status != TSR_OK)
            break;
        if (device_us != NULL)
            row[c].device_us_per_profile = one.device_us_per_profile;
        else
            row[c] = one;
    }
    tsr_engine_free(engine);
    tsr_bench_problem_free(problem);
    return status;
}

/* Measures and prints the cases of one size and batch. wall_us: wall times of
 * the previous, smaller batch in, of this batch out. Cases that would take too
 * long or do not fit the device are skipped. */
static tsr_status bench_batch(bench *b, int n_body, int n_batch,
                              double wall_us[TSR_BENCH_N_CASE], tsr_err *err)
{
    tsr_bench_row row[TSR_BENCH_N_CASE] = {{0}};
    const int slowest = b->is_wave ? TSR_BENCH_RIGID_HALF : TSR_BENCH_FULL;
    if (n_batch * wall_us[slowest] > 2.0 * b->longest_us) {
        tsr_info(b->log, "%d bodies, batch of %d: left out, takes too long",
                 n_body, n_batch);
        return TSR_OK;
    }
    tsr_status status = bench_pass(b, n_body, n_batch, row, wall_us, NULL, err);
    if (!b->is_wave) /* the plane-wave engine does not report them */
        TSR_THEN(status, bench_pass(b, n_body, n_batch, row, wall_us,
                                    tsr_page_tile_device_us, err));
    if (status == TSR_E_DEVICE && n_batch > 1) { /* does not fit the device */
        tsr_info(b->log, "%d bodies, batch of %d: left out: %s", n_body,
                 n_batch, err->message);
        return TSR_OK;
    }
    for (int c = 0; c < TSR_BENCH_N_CASE && status == TSR_OK; c++)
        if (row[c].n_run > 0) {
            wall_us[c] = row[c].wall_us_per_profile;
            print_row(b, n_body, &row[c]);
        }
    return status;
}

void tsr_bench_begin_json(tsr_json *json, const tsr_device_info *info)
{
    tsr_json_object(json, NULL);
    tsr_json_members(json, "device %s platform %s driver %s version %s",
                     info->name, info->platform, info->driver, TSR_VERSION);
    tsr_json_array(json, "rows");
}

static void print_head(const bench *b)
{
    const tsr_device_info *info = tsr_device_get_info(b->device);
    char line[1024];
    FILE *out = b->table->out;
    if (b->table->json != NULL) {
        tsr_bench_begin_json(b->table->json, info);
        return;
    }
    tsr_device_describe(info, line, sizeof line);
    fprintf(out, "%s\n%d q; times in microseconds a profile, the fastest ",
            line, N_Q);
    if (b->pair_us > 0.0)
        fprintf(out, "submit; bound: %.3g ns a pair of bodies\n\n",
                1e3 * b->pair_us);
    else
        fputs("submit; the device's least time is not known\n\n", out);
}

/* Measures the engine. */
static tsr_status bench_engine(bench *b, tsr_err *err)
{
    static const int sizes[] = {64, 256, 1024, 1888, 4096, 8192, 0};
    static const int batches[] = {1, 8, 64, 0};
    print_head(b);
    for (int m = 0; sizes[m] > 0; m++) {
        double wall_us[TSR_BENCH_N_CASE] = {0.0};
        for (int n = 0; batches[n] > 0; n++)
            if (!b->quick || (sizes[m] <= 256 && batches[n] <= 8))
                TSR_TRY(bench_batch(b, sizes[m], batches[n], wall_us, err));
    }
    return TSR_OK;
}

static tsr_status run_bench(const tsr_args *args, FILE *out, tsr_log *log,
                            tsr_err *err)
{
    const options *o = args->options;
    const int quick = o->quick;
    tsr_json json = {.out = out, .digits = 6};
    tsr_table table = {.out = out, .json = o->json ? &json : NULL};
    bench b = {.table = &table,
               .log = log,
               .quick = quick,
               .seconds = quick ? 0.01 : 0.2,
               .is_wave = o->engine,
               .longest_us = quick ? 1e5 : 1e6};
    tsr_device *device = NULL;
    const tsr_bench_sampling_options sampling = {
        .n_config = args->n,
        .config = args->argument,
        .n_set = o->set.n,
        .set = (const char *const *)o->set.item,
        .device = o->device,
        .seconds = o->time};
    if (!o->sampling && args->n > 0)
        return tsr_fail(err, TSR_E_USAGE, "only --sampling takes a CONFIG");
    if (!o->sampling && !o->moves) {
        TSR_TRY(tsr_device_open(o->device, &device, err));
        b.device = device;
        b.pair_us = least_pair_us(tsr_device_get_info(device));
    }
    const tsr_status status =
        o->sampling ? tsr_bench_sampling(&sampling, &table, log, err)
        : o->moves  ? tsr_bench_moves(&table, quick, log, err)
        : o->map    ? tsr_bench_map(device, &table, quick, err)
                    : bench_engine(&b, err);
    while (json.depth > 0 && status == TSR_OK)
        tsr_json_close(&json);
    tsr_device_free(device);
    return status;
}

static const tsr_command command = {.name = "bench",
                                    .doc = TSR_BENCH_DOC,
                                    .arguments = "[CONFIG]...",
                                    .options = fields,
                                    .size = sizeof(options),
                                    .about = about,
                                    .run = run_bench};

int main(int argc, char **argv)
{
    return tsr_main_tool(&command, argc, (const char *const *)argv);
}
