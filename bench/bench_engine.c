/* The engine's speed and accuracy on one device.
 *
 *     bench_engine [--device D] [--variant auto|simt|simd|reference]
 *                  [--tile K] [--pages N] [--transfer auto|mapped|copy]
 *                  [--no-atomics] [--host-only] [--wall-only] [--slack D]
 *                  [--parts N] [--difference N] [--max-age N] [--split N]
 *                  [--tiles-a-launch N] [--double] [--bodies M] [--q Q]
 *                  [--batch B[,B...]] [--case NAME] [--seconds S] */
#include "bench/command_bench.h"
#include "gpu/engine_device.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { MAX_BATCHES = 8 };

typedef struct {
    const char *device, *only;
    int is_reference, n_body, n_q, n_batch, batch[MAX_BATCHES];
    double seconds, slack;
    tsr_page_tile_options options;
} settings;

static int usage(const char *why)
{
    fprintf(stderr,
            "bench_engine: %s\nusage: bench_engine [--device D] [--variant "
            "auto|simt|simd|reference] [--tile K] [--pages N] [--transfer "
            "auto|mapped|copy] [--no-atomics] [--host-only] "
            "[--wall-only] [--slack D] [--parts N] [--difference N] [--max-age "
            "N] [--split N] "
            "[--tiles-a-launch N] [--double] [--bodies M] [--q Q] "
            "[--batch B[,B...]] [--case NAME] [--seconds S]\n",
            why);
    return 64;
}

static int word(const char *text, const char *const *words)
{
    for (int i = 0; words[i] != NULL; i++)
        if (strcmp(text, words[i]) == 0)
            return i;
    return -1;
}

static void parse_batches(settings *s, const char *text)
{
    for (s->n_batch = 0; *text != '\0' && s->n_batch < MAX_BATCHES;) {
        char *end;
        s->batch[s->n_batch++] = (int)strtol(text, &end, 10);
        text = *end == ',' ? end + 1 : "";
    }
}

static int parse(int argc, char **argv, settings *s)
{
    static const char *const variants[] = {"auto", "simt", "simd", "reference",
                                           NULL};
    static const char *const transfers[] = {"auto", "mapped", "copy", NULL};
    for (int i = 1; i < argc; i++) {
        const char *key = argv[i], *value = i + 1 < argc ? argv[i + 1] : "";
        int at;
        if (strcmp(key, "--double") == 0) {
            s->options.use_double = 1;
            continue;
        }
        if (strcmp(key, "--host-only") == 0) {
            s->options.skip_kernel = 1;
            continue;
        }
        if (strcmp(key, "--wall-only") == 0) {
            s->options.profiling = 0;
            continue;
        }
        if (strcmp(key, "--no-atomics") == 0) {
            s->options.no_atomics = 1;
            continue;
        }
        i++;
        if (strcmp(key, "--device") == 0)
            s->device = value;
        else if (strcmp(key, "--case") == 0)
            s->only = value;
        else if (strcmp(key, "--tile") == 0)
            s->options.tile = atoi(value);
        else if (strcmp(key, "--pages") == 0)
            s->options.max_pages = atoi(value);
        else if (strcmp(key, "--bodies") == 0)
            s->n_body = atoi(value);
        else if (strcmp(key, "--q") == 0)
            s->n_q = atoi(value);
        else if (strcmp(key, "--seconds") == 0)
            s->seconds = atof(value);
        else if (strcmp(key, "--slack") == 0)
            s->slack = atof(value);
        else if (strcmp(key, "--parts") == 0)
            s->options.parts = atoi(value);
        else if (strcmp(key, "--difference") == 0)
            s->options.difference = atoi(value);
        else if (strcmp(key, "--max-age") == 0)
            s->options.max_age = atoi(value);
        else if (strcmp(key, "--split") == 0)
            s->options.split = atoi(value);
        else if (strcmp(key, "--tiles-a-launch") == 0)
            s->options.tiles_a_launch = atoi(value);
        else if (strcmp(key, "--batch") == 0)
            parse_batches(s, value);
        else if (strcmp(key, "--variant") == 0 &&
                 (at = word(value, variants)) >= 0) {
            s->is_reference = at == 3;
            s->options.variant = (tsr_page_tile_variant)(at % 3);
        } else if (strcmp(key, "--transfer") == 0 &&
                   (at = word(value, transfers)) >= 0)
            s->options.transfer = (tsr_page_tile_transfer)at;
        else
            return usage(key);
    }
    for (int b = 0; b < s->n_batch; b++)
        if (s->batch[b] < 1)
            return usage("--batch");
    return s->n_body < 1 || s->n_q < 2 ? usage("--bodies, --q") : 0;
}

static tsr_status measure(const settings *s, const tsr_device *device,
                          tsr_bench_problem *problem, tsr_err *err)
{
    const tsr_engine_spec *spec = tsr_bench_problem_spec(problem);
    tsr_engine *engine = NULL;
    tsr_status status =
        s->is_reference
            ? tsr_engine_reference_new(spec, &engine, err)
            : tsr_engine_page_tile_new(spec, device, &s->options, &engine, err);
    if (status)
        return status;
    printf("%s\nM = %d, Q = %d, dq = %.6g 1/Angstrom\n", engine->description,
           spec->n_body, spec->n_q, spec->dq_inv_ang);
    printf("%-13s %5s %5s %12s %12s %12s %10s\n", "case", "batch", "runs",
           "min us", "median us", "device us", "max error");
    for (int b = 0; b < s->n_batch; b++)
        for (int c = 0; c < TSR_BENCH_N_CASE && !status; c++) {
            tsr_bench_row row;
            const char *name = tsr_bench_case_name((tsr_bench_case)c);
            if (s->only != NULL && strcmp(s->only, name) != 0)
                continue;
            tsr_bench_options o = {
                .which = (tsr_bench_case)c,
                .n_batch = s->batch[b],
                .seconds = s->seconds,
                .is_exact = !s->options.skip_kernel,
                .device_us = s->is_reference ? NULL : tsr_page_tile_device_us};
            status = tsr_bench_run(problem, engine, &o, &row, err);
            if (status)
                break;
            printf("%-13s %5d %5d %12.2f %12.2f %12.2f %10.2e\n", name,
                   row.batch, row.n_run, row.wall_us_per_profile,
                   row.median_us_per_profile, row.device_us_per_profile,
                   row.max_rel_error);
            fflush(stdout);
        }
    tsr_engine_free(engine);
    return status;
}

int main(int argc, char **argv)
{
    settings s = {.device = "auto",
                  .n_body = 1888,
                  .n_q = 51,
                  .n_batch = 2,
                  .batch = {1, 64},
                  .seconds = 0.5,
                  .slack = 1.5,
                  .options = {.profiling = 1}};
    tsr_device *device = NULL;
    tsr_bench_problem *problem = NULL;
    tsr_err err;
    int most = 1, code = parse(argc, argv, &s);
    if (code != 0)
        return code;
    for (int b = 0; b < s.n_batch; b++)
        most = s.batch[b] > most ? s.batch[b] : most;
    tsr_status status =
        s.is_reference ? TSR_OK : tsr_device_open(s.device, &device, &err);
    if (!status)
        status = tsr_bench_problem_new(s.n_body, s.n_q, most, s.slack, &problem,
                                       &err);
    if (!status)
        status = measure(&s, device, problem, &err);
    tsr_bench_problem_free(problem);
    tsr_device_free(device);
    if (status)
        fprintf(stderr, "bench_engine: %s\n", err.message);
    return tsr_exit_status(status);
}
