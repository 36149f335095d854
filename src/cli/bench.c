/* tessera bench */
#include "cli/command.h"

#include "gpu/engine_page_tile.h"
#include "likelihood/engine_bench.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

static const tsr_option options[] = {
    {.name = "json", .doc = "one JSON object instead of a table"},
    {.name = "device",
     .argument = "DEVICE",
     .initial = "auto",
     .doc = "auto, gpu, cpu, a number or part of a name"},
    {.name = "quick", .doc = "small systems and short runs only"},
    {0}};

enum { N_Q = 51, THREAD_BODIES = 1888, THREAD_BATCH = 8, MAX_THREADS = 16 };

/* A sampler's q grid allows for more than the present size. */
static const double slack = 1.5;

typedef struct {
    const tsr_device *device;
    FILE *out;
    tsr_log *log;
    int json, quick, n_row;
    double seconds; /* a row */
    double patience_us;
    double bound; /* multiply-adds a second of the device; 0: not known */
} bench;

static void print_json_text(FILE *out, const char *text)
{
    fputc('"', out);
    for (; *text != '\0'; text++) {
        unsigned char c = (unsigned char)*text;
        if (c == '"' || c == '\\')
            fprintf(out, "\\%c", c);
        else if (c < 0x20)
            fprintf(out, "\\u%04x", c);
        else
            fputc(c, out);
    }
    fputc('"', out);
}

static void print_json_number(FILE *out, const char *name, double value)
{
    if (isfinite(value))
        fprintf(out, ", \"%s\": %.6g", name, value);
    else
        fprintf(out, ", \"%s\": null", name);
}

/* Two multiply-adds a pair and q are the least (DESIGN 4); of what the device
 * could do in that time. Known for full profiles only. */
static double share_of_bound(const bench *b, int n_body,
                             const tsr_bench_row *row)
{
    double us = row->device_us_per_profile;
    if (row->which != TSR_BENCH_FULL || b->bound <= 0.0 || !(us > 0.0))
        return (double)NAN;
    return 1e6 / us * n_body * (n_body - 1.0) * (N_Q - 1) / b->bound;
}

static void print_row(bench *b, int n_body, const tsr_bench_row *row)
{
    const char *name = tsr_bench_case_name(row->which);
    double per_second = 1e6 / row->wall_us_per_profile;
    double share = share_of_bound(b, n_body, row);
    if (!b->json) {
        char error[16] = "-", part[16] = "-";
        if (isfinite(row->max_rel_error))
            snprintf(error, sizeof error, "%.1e", row->max_rel_error);
        if (isfinite(share))
            snprintf(part, sizeof part, "%.0f %%", 100.0 * share);
        fprintf(b->out, "%5d  %-13s %5d %11.2f %11.2f %12.0f %8s %9s\n", n_body,
                name, row->batch, row->wall_us_per_profile,
                row->device_us_per_profile, per_second, part, error);
        fflush(b->out);
        return;
    }
    fprintf(b->out,
            "%s\n  {\"n_body\": %d, \"n_q\": %d, \"case\": \"%s\", \"batch\": "
            "%d",
            b->n_row++ > 0 ? "," : "", n_body, N_Q, name, row->batch);
    print_json_number(b->out, "wall_us_per_profile", row->wall_us_per_profile);
    print_json_number(b->out, "device_us_per_profile",
                      row->device_us_per_profile);
    print_json_number(b->out, "max_rel_error", row->max_rel_error);
    print_json_number(b->out, "profiles_per_second", per_second);
    print_json_number(b->out, "share_of_bound", share);
    fputc('}', b->out);
}

/* The cases of one size and batch; wall_us: of the batch before, per case, and
 * after it of this one. A case that would try our patience is left out. */
static tsr_status bench_batch(bench *b, int n_body, int n_batch,
                              double wall_us[TSR_BENCH_N_CASE], tsr_err *err)
{
    static const tsr_page_tile_options profiling = {.profiling = 1};
    tsr_bench_problem *problem = NULL;
    tsr_engine *engine = NULL;
    if (n_batch * wall_us[TSR_BENCH_FULL] > 2.0 * b->patience_us) {
        tsr_info(b->log, "%d bodies, batch of %d: left out, takes too long",
                 n_body, n_batch);
        return TSR_OK;
    }
    tsr_status status =
        tsr_bench_problem_new(n_body, N_Q, n_batch, slack, &problem, err);
    if (!status) {
        status = tsr_engine_page_tile_new(tsr_bench_problem_spec(problem),
                                          b->device, &profiling, &engine, err);
        if (status == TSR_E_DEVICE && n_batch > 1) { /* does not fit */
            tsr_info(b->log, "%d bodies, batch of %d: left out: %s", n_body,
                     n_batch, err->message);
            tsr_bench_problem_free(problem);
            return TSR_OK;
        }
    }
    for (int c = 0; c < TSR_BENCH_N_CASE && !status; c++) {
        tsr_bench_options o = {.which = (tsr_bench_case)c,
                               .n_batch = n_batch,
                               .seconds = b->seconds,
                               .is_exact = n_batch == 1 || n_body < 2000,
                               .device_us = tsr_page_tile_device_us};
        tsr_bench_row row;
        if (n_batch * wall_us[c] > b->patience_us) {
            tsr_info(b->log,
                     "%d bodies, batch of %d, %s: left out, takes too "
                     "long",
                     n_body, n_batch, tsr_bench_case_name(o.which));
            continue;
        }
        status = tsr_bench_run(problem, engine, &o, &row, err);
        if (status)
            break;
        wall_us[c] = row.wall_us_per_profile;
        print_row(b, n_body, &row);
    }
    tsr_engine_free(engine);
    tsr_bench_problem_free(problem);
    return status;
}

static tsr_status bench_threads(bench *b, tsr_err *err)
{
    static const tsr_bench_case which = TSR_BENCH_CONTIGUOUS10;
    const int n_body = b->quick ? 256 : THREAD_BODIES;
    tsr_bench_problem *problem = NULL;
    tsr_engine *engine = NULL;
    tsr_status status = tsr_bench_problem_new(
        n_body, N_Q, 2 * MAX_THREADS * THREAD_BATCH, slack, &problem, err);
    if (!status)
        status = tsr_engine_page_tile_new(tsr_bench_problem_spec(problem),
                                          b->device, NULL, &engine, err);
    if (b->json)
        fputs("\n], \"threads\": [", b->out);
    else
        fprintf(b->out,
                "\nhost threads, %d bodies, %s, two batches of %d each\n",
                n_body, tsr_bench_case_name(which), THREAD_BATCH);
    for (int n = 1; n <= MAX_THREADS && !status; n *= 2) {
        double rate = 0.0;
        status = tsr_bench_threads(problem, engine, which, n, THREAD_BATCH,
                                   2.0 * b->seconds, &rate, err);
        if (status)
            break;
        if (b->json)
            fprintf(b->out,
                    "%s\n  {\"threads\": %d, \"n_body\": %d, \"n_q\": %d, "
                    "\"case\": \"%s\", \"batch\": %d, \"profiles_per_second\": "
                    "%.6g}",
                    n > 1 ? "," : "", n, n_body, N_Q,
                    tsr_bench_case_name(which), THREAD_BATCH, rate);
        else
            fprintf(b->out, "%5d threads %12.0f profiles/s\n", n, rate);
    }
    tsr_engine_free(engine);
    tsr_bench_problem_free(problem);
    return status;
}

static void print_head(const bench *b)
{
    const tsr_device_info *info = tsr_device_get_info(b->device);
    char line[1024];
    if (b->json) {
        fputs("{\"device\": ", b->out);
        print_json_text(b->out, info->name);
        fputs(", \"platform\": ", b->out);
        print_json_text(b->out, info->platform);
        fputs(", \"driver\": ", b->out);
        print_json_text(b->out, info->driver);
        fputs(", \"rows\": [", b->out);
        return;
    }
    tsr_device_describe(info, line, sizeof line);
    fprintf(b->out, "%s\n%d q; times in microseconds a profile, the fastest ",
            line, N_Q);
    if (b->bound > 0.0)
        fprintf(b->out,
                "submit; bound: 2 multiply-adds a pair and q at %.3g "
                "a second\n\n",
                b->bound);
    else
        fputs("submit; the device's multiply-adds a second are not known\n\n",
              b->out);
    fprintf(b->out, "%5s  %-13s %5s %11s %11s %12s %8s %9s\n", "bodies", "case",
            "batch", "wall", "device", "profiles/s", "of bound", "error");
}

static tsr_status run_bench(const tsr_args *args, FILE *out, tsr_log *log,
                            tsr_err *err)
{
    static const int sizes[] = {64, 256, 1024, 1888, 4096, 8192, 0};
    static const int batches[] = {1, 8, 64, 256, 0};
    int quick = tsr_args_count(args, "quick") > 0;
    bench b = {.out = out,
               .log = log,
               .json = tsr_args_count(args, "json") > 0,
               .quick = quick,
               .seconds = quick ? 0.01 : 0.2,
               .patience_us = quick ? 1e5 : 1e6};
    tsr_device *device = NULL;
    tsr_status status =
        tsr_device_open(tsr_args_value(args, "device"), &device, err);
    if (status)
        return status;
    b.device = device;
    b.bound = tsr_device_multiply_adds(tsr_device_get_info(device));
    print_head(&b);
    for (int m = 0; sizes[m] > 0 && !status; m++) {
        double wall_us[TSR_BENCH_N_CASE] = {0.0};
        for (int n = 0; batches[n] > 0 && !status; n++)
            if (!quick || (sizes[m] <= 256 && batches[n] <= 8))
                status = bench_batch(&b, sizes[m], batches[n], wall_us, err);
    }
    if (!status)
        status = bench_threads(&b, err);
    if (b.json && !status)
        fputs("\n]}\n", out);
    tsr_device_free(device);
    return status;
}

const tsr_command tsr_command_bench = {
    .name = "bench",
    .doc = "the engine's speed and accuracy here",
    .usage = {.max_arguments = 0, .options = options},
    .run = run_bench};
