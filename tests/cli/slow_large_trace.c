/* A trace of a million draws is summarised and diagnosed in 2 GiB of address
 * space, by the program itself. */
#include "store/trace.h"
#include "tests/io_files.h"
#include "tests/test.h"
#include <gsl/gsl_randist.h>
#include <gsl/gsl_rng.h>

#include <sys/resource.h>
#include <sys/wait.h>
#include <time.h>

enum { N_CHAIN = 4, N_DRAW = 250000, BLOCK = 1000, N_Q = 150 };
enum { RG, D_MAX, LP, CURVE, N_VARIABLE };

static void write_trace(const char *path)
{
    double q[N_Q];
    double *value = array(N_CHAIN * BLOCK * N_Q, sizeof *value);
    gsl_rng *random = own_gsl_rng(gsl_rng_alloc(gsl_rng_taus));
    tsr_trace *trace;
    for (int k = 0; k < N_Q; k++)
        q[k] = 0.002 * (k + 1);
    const tsr_trace_variable variable[N_VARIABLE] = {
        [RG] = {.group = TSR_TRACE_POSTERIOR, .name = "rg", .n = 1},
        [D_MAX] = {.group = TSR_TRACE_POSTERIOR, .name = "d_max", .n = 1},
        [LP] = {.group = TSR_TRACE_SAMPLE_STATS, .name = "lp", .n = 1},
        [CURVE] = {.group = TSR_TRACE_POSTERIOR_PREDICTIVE,
                   .name = "intensity_mean",
                   .dim = "q",
                   .n = N_Q,
                   .coord = q,
                   .single = 1}};
    OK(tsr_trace_create(path, N_CHAIN, N_VARIABLE, variable, 0, NULL, &trace,
                        &err));
    for (int from = 0; from < N_DRAW; from += BLOCK)
        for (int v = 0; v < N_VARIABLE; v++) {
            for (int i = 0; i < N_CHAIN * BLOCK * variable[v].n; i++)
                value[i] = 30.0 + gsl_ran_gaussian_ziggurat(random, 1.0);
            OK(tsr_trace_append(trace, v, BLOCK, value, &err));
        }
    OK(tsr_trace_close(trace, &err));
}

static void run(const char *command, const char *path)
{
    const char *build = getenv("BUILD");
    int status;
    const time_t started = time(NULL);
    const char *program = format("%s/tessera", build != NULL ? build : "build");
    pid_t child = fork();
    assert_true(child >= 0);
    if (child == 0) {
        const struct rlimit limit = {(rlim_t)2 << 30, (rlim_t)2 << 30};
        if (setrlimit(RLIMIT_AS, &limit) == 0)
            execl(program, "tessera", command, path, "--threads", "2",
                  (char *)NULL);
        _exit(99);
    }
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_true(WIFEXITED(status));
    assert_int_equal(WEXITSTATUS(status), 0);
    print_message("%s: %.0f s\n", command, difftime(time(NULL), started));
}

TEST(test_large)
{
    const char *path = io_path("trace.h5");
    write_trace(path);
    run("summary", path);
    run("diagnose", path);
}
