/* Writes traces of several shapes into a folder, NAME.h5, and the summary that
 * tessera makes of each, NAME.json: what trace_arviz.py judges.
 *
 *     write_trace DIRECTORY */
#include "analysis/summary.h"
#include "store/trace.h"
#include "tests/oracle/writer.h"

#include <gsl/gsl_math.h>
#include <gsl/gsl_randist.h>
#include <gsl/gsl_rng.h>

#include <math.h>

enum { N_Q = 40, N_STATE = 2 };

/* The sample chains: draws of a distribution, or autoregressive series of
 * normal numbers. */
typedef enum {
    RAMP,
    IID,
    SLOW,
    ANTITHETIC,
    HEAVY,
    SHIFTED,
    WIDE,
    COUNTS, /* small integers: ties everywhere */
    CONSTANT,
    ANGLE, /* around pi, so across the end of (-pi, pi] */
    N_KIND,
    /* the others, behind the sample chains */
    WEIGHT = N_KIND,
    LP,
    CURVE,
    WARMUP,
    OBSERVED,
    SIGMA,
    N_POINT,
    N_VARIABLE
} kind;

static const char *const names[N_KIND] = {
    "ramp",    "iid",  "slow",   "antithetic", "heavy",
    "shifted", "wide", "counts", "constant",   "angle"};

/* x [n_draw] of chain c. */
static void fill_chain(kind v, gsl_rng *random, int c, int n_draw, double *x)
{
    static const double phi[N_KIND] = {[SLOW] = 0.95,
                                       [ANTITHETIC] = -0.7,
                                       [SHIFTED] = 0.5,
                                       [WIDE] = 0.2,
                                       [ANGLE] = 0.6};
    double now = 0.0;
    for (int d = 0; d < n_draw; d++) {
        if (v == RAMP) {
            x[d] = 1e4 * c + d;
        } else if (v == IID) {
            x[d] = 30.0 + 0.01 * gsl_ran_gaussian(random, 1.0);
        } else if (v == HEAVY) {
            x[d] = gsl_ran_cauchy(random, 1.0);
        } else if (v == COUNTS) {
            x[d] = gsl_ran_poisson(random, 4.0);
        } else if (v == CONSTANT) {
            x[d] = 0.1;
        } else {
            now = d == 0 ? gsl_ran_gaussian(random, 1.0) : now;
            x[d] = now * (v == WIDE && c == 0 ? 3.0 : 1.0) +
                   (v == SHIFTED && c == 0 ? 2.0 : 0.0);
            now = phi[v] * now +
                  gsl_ran_gaussian(random, sqrt(1.0 - phi[v] * phi[v]));
        }
        const double angle = 3.0 + 0.1 * c + 0.5 * x[d];
        if (v == ANGLE)
            x[d] = angle - 2.0 * M_PI * floor(angle / (2.0 * M_PI) + 0.5);
    }
}

static const struct {
    const char *name;
    int n_chain, n_draw;
} shapes[] = {{"usual", 4, 1001}, {"many", 8, 250}, {"short", 2, 7},
              {"least", 3, 4},    {"two", 2, 600},  {"one", 1, 400}};

/* Values 100 c + d + k / 64 of chain c, draw d, element k. */
static void append_curves(tsr_trace *trace, int n_chain, int n_draw, int v,
                          int n, tsr_err *err)
{
    double *value = allocate((size_t)(n_chain * n_draw * n), sizeof *value);
    double *to = value;
    for (int c = 0; c < n_chain; c++)
        for (int d = 0; d < n_draw; d++)
            for (int k = 0; k < n; k++)
                *to++ = 100.0 * c + d + k / 64.0;
    must(tsr_trace_append(trace, v, n_draw, value, err), err);
    free(value);
}

static void fill(tsr_trace *trace, int n_chain, int n_draw, const double *q,
                 tsr_err *err)
{
    gsl_rng *random = gsl_rng_alloc(gsl_rng_mt19937);
    double *value = allocate((size_t)(n_chain * n_draw), sizeof *value);
    const double n_point = N_Q;
    for (int v = 0; v <= N_KIND; v++) { /* and lp, a slow chain */
        for (int c = 0; c < n_chain; c++)
            fill_chain(v < N_KIND ? (kind)v : SLOW, random, c, n_draw,
                       value + c * n_draw);
        must(tsr_trace_append(trace, v < N_KIND ? v : LP, n_draw, value, err),
             err);
    }
    append_curves(trace, n_chain, n_draw, WEIGHT, N_STATE, err);
    append_curves(trace, n_chain, n_draw, CURVE, N_Q, err);
    append_curves(trace, n_chain, 3, WARMUP, 1, err);
    must(tsr_trace_put(trace, OBSERVED, q, err), err);
    must(tsr_trace_put(trace, SIGMA, q, err), err);
    must(tsr_trace_put(trace, N_POINT, &n_point, err), err);
    free(value);
    gsl_rng_free(random);
}

static void write_one(const char *path, int n_chain, int n_draw, tsr_err *err)
{
    double q[N_Q];
    tsr_trace *trace;
#define ALONG_Q .dim = "q", .n = N_Q, .coord = q, .coord_unit = "1/Angstrom"
    tsr_trace_variable variable[N_VARIABLE] = {
        [WEIGHT] = VARIABLE(POSTERIOR, "weight", .dim = "state", .n = N_STATE),
        [LP] = VARIABLE(SAMPLE_STATS, "lp", .doc = "log posterior density",
                        .n = 1),
        [CURVE] =
            VARIABLE(POSTERIOR_PREDICTIVE, "intensity", ALONG_Q, .single = 1),
        [WARMUP] = VARIABLE(WARMUP_POSTERIOR, "iid", .n = 1),
        [OBSERVED] = VARIABLE(OBSERVED_DATA, "intensity", ALONG_Q),
        [SIGMA] = VARIABLE(CONSTANT_DATA, "sigma", ALONG_Q),
        [N_POINT] = VARIABLE(CONSTANT_DATA, "n_point", .n = 1)};
    const tsr_trace_attribute attribute[] = {
        {"config", "name: sample\nseed: 1\n"},
        {"device", "r\xc3\xa9"
                   "f\xc3\xa9rence"}};

    for (int k = 0; k < N_Q; k++)
        q[k] = 0.0078125 * (k + 1);
    for (int v = 0; v < N_KIND; v++)
        variable[v] = (tsr_trace_variable)VARIABLE(
            POSTERIOR, names[v], .unit = v == ANGLE ? "rad" : "Angstrom",
            .doc = "a sample chain", .n = 1);
    must(tsr_trace_create(path, n_chain, N_VARIABLE, variable, 2, attribute,
                          &trace, err),
         err);
    fill(trace, n_chain, n_draw, q, err);
    must(tsr_trace_close(trace, err), err);
}

static void summarise(const char *path, const char *json, tsr_err *err)
{
    tsr_trace_reader *reader;
    tsr_summary *summary;
    must(tsr_trace_open(path, &reader, err), err);
    must(tsr_summary_make(reader, &summary, err), err);
    FILE *out = fopen(json, "w");
    if (out == NULL)
        must(tsr_fail(err, TSR_E_IO, "cannot write '%s'", json), err);
    tsr_json j = {.out = out};
    tsr_json_object(&j, NULL);
    tsr_summary_put(summary, &j);
    tsr_json_close(&j);
    fclose(out);
    must(tsr_summary_print(summary, stdout, err), err);
    tsr_summary_free(summary);
    tsr_trace_reader_free(reader);
}

int main(int argc, char **argv)
{
    char path[1000], json[1000];
    tsr_err err;
    if (argc != 2)
        return 64;
    for (size_t i = 0; i < sizeof shapes / sizeof shapes[0]; i++) {
        snprintf(path, sizeof path, "%s/%s.h5", argv[1], shapes[i].name);
        snprintf(json, sizeof json, "%s/%s.json", argv[1], shapes[i].name);
        remove(path);
        printf("\n%s: %d chains of %d draws\n", shapes[i].name,
               shapes[i].n_chain, shapes[i].n_draw);
        write_one(path, shapes[i].n_chain, shapes[i].n_draw, &err);
        summarise(path, json, &err);
    }
    return 0;
}
