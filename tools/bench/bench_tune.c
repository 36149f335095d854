/* tessera bench --tune: finds the fastest settings of the tile engine. Settings
 * are varied one at a time, each from the best found before, since all
 * combinations would take hours. */
#include "bench/command_bench.h"

#include "gpu/engine_device.h"

#include <math.h>
#include <stddef.h>

/* SMALL: settings are tuned for molecules below and above this number of
 * bodies. Molecules of 382 and 528 bodies were fastest with the settings of the
 * lower range, one of 1131 bodies with those of the upper. */
enum { N_Q = 51, MAX_CHOICE = 6, SMALL = 800 };

static const double slack = 1.5;

/* The workload of a sampler: mostly local moves, alone and in batches. */
static const struct {
    tsr_bench_case which;
    int batch; /* on a GPU; a CPU does not gain from more than 8 */
} workload[] = {
    {TSR_BENCH_FULL, 1},          {TSR_BENCH_CONTIGUOUS10, 1},
    {TSR_BENCH_ONE, 1},           {TSR_BENCH_FULL, 64},
    {TSR_BENCH_CONTIGUOUS10, 64}, {TSR_BENCH_ONE, 64},
    {TSR_BENCH_RIGID_HALF, 64},
};
enum { N_WORK = sizeof workload / sizeof workload[0] };

typedef struct {
    const tsr_device *device;
    FILE *out;
    tsr_log *log;
    int n_body, most_batch;
    double seconds;
    double first; /* mean of the log times with the first settings */
} tuner;

/* The settings in force: those of the tuning table, else the defaults. */
static tsr_status settings_now(const tuner *t, tsr_page_tile_options *o,
                               tsr_err *err)
{
    *o = (tsr_page_tile_options){0};
    tsr_status status =
        tsr_tuning_find(tsr_device_get_info(t->device), t->n_body, o, err);
    if (o->tile == 0)
        *o = (tsr_page_tile_options){
            .tile = 32, .parts = 1, .split = 1, .difference = 12};
    return status;
}

/* The mean of the logarithms of the wall times; HUGE_VAL: the device refuses
 * the settings. */
static tsr_status score(tuner *t, const tsr_page_tile_options *o, double *mean,
                        tsr_err *err)
{
    tsr_bench_problem *problem = NULL;
    tsr_engine *engine = NULL;
    double sum = 0.0;
    tsr_status status = tsr_bench_problem_new(t->n_body, N_Q, t->most_batch,
                                              slack, &problem, err);
    *mean = HUGE_VAL;
    TSR_THEN(status, tsr_engine_page_tile_new(tsr_bench_problem_spec(problem),
                                              t->device, o, &engine, err));
    for (int i = 0; i < N_WORK && status == TSR_OK; i++) {
        int batch = workload[i].batch;
        tsr_bench_options options = {
            .which = workload[i].which,
            .n_batch = batch < t->most_batch ? batch : t->most_batch,
            .seconds = t->seconds};
        tsr_bench_row row;
        status = tsr_bench_run(problem, engine, &options, &row, err);
        if (status == TSR_OK)
            sum += log(row.wall_us_per_profile);
    }
    tsr_engine_free(engine);
    tsr_bench_problem_free(problem);
    if (status == TSR_E_DEVICE) {
        tsr_info(t->log, "left out: %s", err->message);
        return TSR_OK;
    }
    if (status == TSR_OK)
        *mean = sum / N_WORK;
    return status;
}

static tsr_status try_settings(tuner *t, tsr_page_tile_options o,
                               tsr_page_tile_options *best, double *best_mean,
                               tsr_err *err)
{
    double mean;
    if (o.difference > o.tile / 2)
        o.difference = o.tile / 2;
    tsr_status status = score(t, &o, &mean, err);
    if (status || !isfinite(mean))
        return status;
    if (!isfinite(t->first))
        t->first = mean;
    fprintf(t->out, "%5d %5d %5d %10d %8.3f\n", o.tile, o.parts, o.split,
            o.difference, exp(mean - t->first));
    fflush(t->out);
    if (mean < *best_mean) {
        *best = o;
        *best_mean = mean;
    }
    return TSR_OK;
}

/* Tries every value of one setting, given by its offset, with the best values
 * of the others so far. value: ends with 0. */
static tsr_status try_each(tuner *t, const int *value, size_t setting,
                           tsr_page_tile_options *best, double *best_mean,
                           tsr_err *err)
{
    const tsr_page_tile_options from = *best;
    for (int i = 0; value[i] != 0; i++) {
        tsr_page_tile_options o = from;
        int *at = (int *)(void *)((char *)&o + setting);
        if (*at == value[i])
            continue; /* already tried */
        *at = value[i];
        TSR_TRY(try_settings(t, o, best, best_mean, err));
    }
    return TSR_OK;
}

#define SETTING(name) offsetof(tsr_page_tile_options, name)

/* Tunes the settings for one size of molecule, and writes the line of the
 * tuning table for molecules of up to `most` bodies (0: any) into `line`. */
static tsr_status tune(tuner *t, int is_quick, int most, char *line,
                       size_t size, tsr_err *err)
{
    static const int tiles[] = {16, 32, 64, 128, 0}, few_tiles[] = {32, 64, 0};
    static const int parts[] = {1, 2, 4, 0};
    static const int splits[] = {1, 4, 8, 16, 32, 0};
    const tsr_device_info *info = tsr_device_get_info(t->device);
    const int is_simd = info->type == TSR_DEVICE_CPU;
    tsr_page_tile_options best;
    double mean = HUGE_VAL;
    t->first = HUGE_VAL;
    tsr_status status = settings_now(t, &best, err);
    fprintf(t->out, "%s, %d bodies\n%5s %5s %5s %10s %8s\n", info->name,
            t->n_body, "tile", "parts", "split", "difference", "time");
    TSR_THEN(status, try_settings(t, best, &best, &mean, err));
    TSR_THEN(status, try_each(t, is_quick ? few_tiles : tiles, SETTING(tile),
                              &best, &mean, err));
    if (status == TSR_OK && !is_simd)
        status = try_each(t, parts, SETTING(parts), &best, &mean, err);
    if (status == TSR_OK && !is_simd)
        status = try_each(t, splits, SETTING(split), &best, &mean, err);
    if (status == TSR_OK) {
        const int differences[] = {
            -1, best.tile / 8, best.tile / 4, 3 * best.tile / 8, best.tile / 2,
            0};
        status =
            try_each(t, differences, SETTING(difference), &best, &mean, err);
    }
    if (status != TSR_OK)
        return status;
    if (!isfinite(mean))
        return tsr_fail(err, TSR_E_DEVICE, "%s: no setting works", info->name);
    tsr_tuning_line(info, most, &best, line, size);
    return TSR_OK;
}

tsr_status tsr_bench_tune(const tsr_device *device, int is_quick, FILE *out,
                          tsr_log *log, tsr_err *err)
{
    const int is_simd = tsr_device_get_info(device)->type == TSR_DEVICE_CPU;
    tuner t = {.device = device,
               .out = out,
               .log = log,
               .n_body = is_quick ? 256 : 400,
               .most_batch = is_quick || is_simd ? 8 : 64,
               .seconds = is_quick ? 0.005 : 0.1};
    char line[512], more[512] = "";
    tsr_status status =
        tune(&t, is_quick, is_quick ? 0 : SMALL, line, sizeof line, err);
    if (status == TSR_OK && !is_quick) {
        t.n_body = 1888;
        status = tune(&t, 0, 0, more, sizeof more, err);
    }
    if (status == TSR_OK)
        fprintf(out, "\n# kind bodies tile parts split difference name\n%s\n",
                line);
    if (status == TSR_OK && *more != '\0')
        fprintf(out, "%s\n", more);
    return status;
}
