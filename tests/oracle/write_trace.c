/* Writes traces of several shapes into a folder, NAME.h5, and the summary that
 * tessera makes of each, NAME.json: what trace_arviz.py judges.
 *
 *     write_trace DIRECTORY */
#include "analysis/summary.h"
#include "store/trace.h"

#include <gsl/gsl_math.h>
#include <gsl/gsl_randist.h>
#include <gsl/gsl_rng.h>

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

enum { N_Q = 40, N_STATE = 2 };

/* Chains for the posterior: each fills x [n_draw] of chain c. */
typedef void fill_chain(gsl_rng *random, int c, int n_draw, double *x);

static void fill_ramp(gsl_rng *random, int c, int n_draw, double *x)
{
    (void)random;
    for (int d = 0; d < n_draw; d++)
        x[d] = 1e4 * c + d;
}

static void fill_iid(gsl_rng *random, int c, int n_draw, double *x)
{
    (void)c;
    for (int d = 0; d < n_draw; d++)
        x[d] = 30.0 + 0.01 * gsl_ran_gaussian(random, 1.0);
}

static void fill_ar(gsl_rng *random, double phi, int n_draw, double *x)
{
    double now = gsl_ran_gaussian(random, 1.0);
    for (int d = 0; d < n_draw; d++) {
        x[d] = now;
        now = phi * now + gsl_ran_gaussian(random, sqrt(1.0 - phi * phi));
    }
}

static void fill_slow(gsl_rng *random, int c, int n_draw, double *x)
{
    (void)c;
    fill_ar(random, 0.95, n_draw, x);
}

static void fill_antithetic(gsl_rng *random, int c, int n_draw, double *x)
{
    (void)c;
    fill_ar(random, -0.7, n_draw, x);
}

static void fill_heavy(gsl_rng *random, int c, int n_draw, double *x)
{
    (void)c;
    for (int d = 0; d < n_draw; d++)
        x[d] = gsl_ran_cauchy(random, 1.0);
}

static void fill_shifted(gsl_rng *random, int c, int n_draw, double *x)
{
    fill_ar(random, 0.5, n_draw, x);
    for (int d = 0; d < n_draw; d++)
        x[d] += c == 0 ? 2.0 : 0.0;
}

static void fill_wide(gsl_rng *random, int c, int n_draw, double *x)
{
    fill_ar(random, 0.2, n_draw, x);
    for (int d = 0; d < n_draw; d++)
        x[d] *= c == 0 ? 3.0 : 1.0;
}

/* Small integers: ties everywhere. */
static void fill_counts(gsl_rng *random, int c, int n_draw, double *x)
{
    (void)c;
    for (int d = 0; d < n_draw; d++)
        x[d] = gsl_ran_poisson(random, 4.0);
}

static void fill_constant(gsl_rng *random, int c, int n_draw, double *x)
{
    (void)random;
    (void)c;
    for (int d = 0; d < n_draw; d++)
        x[d] = 0.1;
}

/* Around pi, so across the end of (-pi, pi]. */
static void fill_angle(gsl_rng *random, int c, int n_draw, double *x)
{
    fill_ar(random, 0.6, n_draw, x);
    for (int d = 0; d < n_draw; d++) {
        double angle = 3.0 + 0.1 * c + 0.5 * x[d];
        x[d] = angle - 2.0 * M_PI * floor(angle / (2.0 * M_PI) + 0.5);
    }
}

static const struct {
    const char *name;
    fill_chain *fill;
} chains[] = {
    {"ramp", fill_ramp},         {"iid", fill_iid},
    {"slow", fill_slow},         {"antithetic", fill_antithetic},
    {"heavy", fill_heavy},       {"shifted", fill_shifted},
    {"wide", fill_wide},         {"counts", fill_counts},
    {"constant", fill_constant}, {"angle", fill_angle},
};
enum { N_KIND = sizeof chains / sizeof chains[0] };

/* The others, behind those of `chains`. */
enum {
    WEIGHT = N_KIND,
    LP,
    CURVE,
    WARMUP,
    OBSERVED,
    SIGMA,
    N_POINT,
    N_VARIABLE
};

static const struct {
    const char *name;
    int n_chain, n_draw;
} shapes[] = {{"usual", 4, 1001}, {"many", 8, 250}, {"short", 2, 7},
              {"least", 3, 4},    {"two", 2, 600},  {"one", 1, 400}};

static tsr_status append_curves(tsr_trace *trace, int n_chain, int n_draw,
                                int v, int n, tsr_err *err)
{
    double *value =
        malloc((size_t)n_chain * (size_t)n_draw * (size_t)n * sizeof *value);
    double *to = value;

    if (value == NULL)
        return tsr_fail(err, TSR_E_NOMEM, "no memory");
    for (int c = 0; c < n_chain; c++)
        for (int d = 0; d < n_draw; d++)
            for (int k = 0; k < n; k++)
                *to++ = 100.0 * c + d + k / 64.0;
    tsr_status status = tsr_trace_append(trace, v, n_draw, value, err);
    free(value);
    return status;
}

static tsr_status fill(tsr_trace *trace, int n_chain, int n_draw,
                       const double *q, tsr_err *err)
{
    tsr_status status = TSR_OK;
    gsl_rng *random = gsl_rng_alloc(gsl_rng_mt19937);
    double *value = malloc((size_t)n_chain * (size_t)n_draw * sizeof *value);

    if (random == NULL || value == NULL)
        status = tsr_fail(err, TSR_E_NOMEM, "no memory");
    for (int v = 0; v < N_KIND && status == TSR_OK; v++) {
        for (int c = 0; c < n_chain; c++)
            chains[v].fill(random, c, n_draw, value + c * n_draw);
        status = tsr_trace_append(trace, v, n_draw, value, err);
    }
    for (int c = 0; c < n_chain && status == TSR_OK; c++)
        fill_slow(random, c, n_draw, value + c * n_draw);
    if (status == TSR_OK)
        status = tsr_trace_append(trace, LP, n_draw, value, err);
    if (status == TSR_OK)
        status = append_curves(trace, n_chain, n_draw, WEIGHT, N_STATE, err);
    if (status == TSR_OK)
        status = append_curves(trace, n_chain, n_draw, CURVE, N_Q, err);
    if (status == TSR_OK)
        status = append_curves(trace, n_chain, 3, WARMUP, 1, err);
    const double n_point = N_Q;
    if (status == TSR_OK)
        status = tsr_trace_put(trace, OBSERVED, q, err);
    if (status == TSR_OK)
        status = tsr_trace_put(trace, SIGMA, q, err);
    if (status == TSR_OK)
        status = tsr_trace_put(trace, N_POINT, &n_point, err);
    free(value);
    gsl_rng_free(random);
    return status;
}

static tsr_status write_one(const char *path, int n_chain, int n_draw,
                            tsr_err *err)
{
    double q[N_Q];
    tsr_trace *trace;
    tsr_trace_variable variable[N_VARIABLE] = {
        [WEIGHT] = {.group = TSR_TRACE_POSTERIOR,
                    .name = "weight",
                    .dim = "state",
                    .n = N_STATE},
        [LP] = {.group = TSR_TRACE_SAMPLE_STATS,
                .name = "lp",
                .doc = "log posterior density",
                .n = 1},
        [CURVE] = {.group = TSR_TRACE_POSTERIOR_PREDICTIVE,
                   .name = "intensity",
                   .dim = "q",
                   .n = N_Q,
                   .coord = q,
                   .coord_unit = "1/Angstrom",
                   .single = 1},
        [WARMUP] = {.group = TSR_TRACE_WARMUP_POSTERIOR, .name = "iid", .n = 1},
        [OBSERVED] = {.group = TSR_TRACE_OBSERVED_DATA,
                      .name = "intensity",
                      .dim = "q",
                      .n = N_Q,
                      .coord = q,
                      .coord_unit = "1/Angstrom"},
        [SIGMA] = {.group = TSR_TRACE_CONSTANT_DATA,
                   .name = "sigma",
                   .dim = "q",
                   .n = N_Q,
                   .coord = q,
                   .coord_unit = "1/Angstrom"},
        [N_POINT] = {.group = TSR_TRACE_CONSTANT_DATA,
                     .name = "n_point",
                     .n = 1},
    };
    const tsr_trace_attribute attribute[] = {
        {"config", "name: sample\nseed: 1\n"},
        {"device", "r\xc3\xa9"
                   "f\xc3\xa9rence"}};

    for (int k = 0; k < N_Q; k++)
        q[k] = 0.0078125 * (k + 1);
    for (int v = 0; v < N_KIND; v++)
        variable[v] = (tsr_trace_variable){
            .group = TSR_TRACE_POSTERIOR,
            .name = chains[v].name,
            .unit = chains[v].fill == fill_angle ? "rad" : "Angstrom",
            .doc = "a sample chain",
            .n = 1};
    tsr_status status = tsr_trace_create(path, n_chain, N_VARIABLE, variable, 2,
                                         attribute, &trace, err);
    if (status != TSR_OK)
        return status;
    status = fill(trace, n_chain, n_draw, q, err);
    tsr_status closed = tsr_trace_close(trace, status == TSR_OK ? err : NULL);
    return status != TSR_OK ? status : closed;
}

static tsr_status summarise(const char *path, const char *json, tsr_err *err)
{
    tsr_trace_reader *reader = NULL;
    tsr_summary *summary = NULL;
    tsr_status status = tsr_trace_open(path, &reader, err);

    if (status == TSR_OK)
        status = tsr_summary_make(reader, &summary, err);
    if (status == TSR_OK) {
        FILE *out = fopen(json, "w");
        if (out == NULL) {
            status = tsr_fail(err, TSR_E_IO, "cannot write '%s'", json);
        } else {
            tsr_json j = {.out = out};
            tsr_json_object(&j, NULL);
            tsr_summary_put(summary, &j);
            tsr_json_close(&j);
            fclose(out);
        }
    }
    if (status == TSR_OK)
        status = tsr_summary_print(summary, stdout, err);
    tsr_summary_free(summary);
    tsr_trace_reader_free(reader);
    return status;
}

int main(int argc, char **argv)
{
    char path[1000], json[1000];
    tsr_err err;

    if (argc != 2) {
        fprintf(stderr, "usage: write_trace DIRECTORY\n");
        return tsr_exit_status(TSR_E_USAGE);
    }
    for (size_t i = 0; i < sizeof shapes / sizeof shapes[0]; i++) {
        snprintf(path, sizeof path, "%s/%s.h5", argv[1], shapes[i].name);
        snprintf(json, sizeof json, "%s/%s.json", argv[1], shapes[i].name);
        remove(path);
        printf("\n%s: %d chains of %d draws\n", shapes[i].name,
               shapes[i].n_chain, shapes[i].n_draw);
        tsr_status status =
            write_one(path, shapes[i].n_chain, shapes[i].n_draw, &err);
        if (status == TSR_OK)
            status = summarise(path, json, &err);
        if (status != TSR_OK) {
            fprintf(stderr, "%s\n", err.message);
            return tsr_exit_status(status);
        }
    }
    return 0;
}
