/* Do 90 % intervals hold the truth nine times in ten, when data come from
 * atoms?
 *
 * Truths are conformations drawn from the prior; their curves are those of all
 * atoms, with the conformation's own surface. The posterior is that of a run,
 * with c2 and the scale of the noise inferred. Chains would need hours for
 * hundreds of them, since each has to find its conformations anew. So many
 * draws of the prior get their curves once, for all truths. For each truth a
 * crowd of particles is drawn from these, at the temperature where enough of
 * them have weight, and goes on to temperature 1 as a sequential Monte Carlo
 * sampler does (Del Moral, Doucet & Jasra 2006): weighted and drawn anew where
 * half of the weight is left, then moved by steps of the run's chains. The
 * crowd of a small error begins with that of the next larger one. No particle
 * knows of the truth. docs/statistics.md has the table.
 *
 *     slow_coverage CONFIG LEARN TRUTHS DRAWS PARTICLES STEPS C2 [DEVICE
 *         [SECONDS]]
 *
 * CONFIG: a file, or three: domains 1 to 3 of a longer construct of LAR.
 * LEARN: all, ratio, none; own: all, but data are of the bodies with an error
 * of the kind that the likelihood takes them to have, where nine in ten is what
 * has to come out. STEPS: of each particle at temperature 1, and a
 * fifth of them between two temperatures. PARTICLES 0: the draws of the prior
 * are weighted at temperature 1 and that is all, with s = 1, which serves for
 * large errors. The model's own error is that at the c2 which data show, so it
 * is learnt with a curve of the configured structure at C2 (prior: 1). Each
 * truth is told of on the error output: error, number, effective draws of the
 * prior, the shares below the truth. C2: a number, or prior. After SECONDS no
 * truth is begun. Without arguments: a few, with bounds. */
#define OWN_MAIN
#include "tests/property/coverage_crowd.h"
#include "tests/test.h"

#include <unistd.h>

/* ---- the table ---- */

/* A truth's place among n draws that are exact is even among n + 1 places
 * (Talts et al. 2018), so that shares b of them below it, (n b + u) / (n + 1)
 * with u even between 0 and 1, are even, too: within 5 and 95 % in nine of ten.
 * b itself is within in fewer: 0.83 of them for n = 22. The smaller n, the more
 * is u: n has to be told beside it. */
static int is_held(double n, double b, gsl_rng *rng)
{
    const double place = (n * b + gsl_rng_uniform(rng)) / (n + 1.0);
    return place > 0.05 && place < 0.95;
}

/* coverage [N_ERROR][N_OBSERVABLE] out. */
static void report(const study *x, const char *label,
                   double (*coverage)[N_OBSERVABLE])
{
    const int n = x->next_truth;
    gsl_rng *rng = rng_new(7, 0);
    if (n == 0) {
        fprintf(stderr, "%s: the time was up before any truth\n", label);
        exit(1);
    }
    for (int e = 0; e < N_ERROR; e++) {
        printf("%s, %.1f %%:", label, 100.0 * error_at[e]);
        for (int o = 0; o < N_OBSERVABLE; o++) {
            double held = 0.0, plain = 0.0, shift = 0.0, square = 0.0, sd = 0.0;
            for (int t = 0; t < n; t++) {
                const size_t at =
                    (size_t)((e * x->n_truth + t) * N_OBSERVABLE + o);
                const double own =
                    sqrt(x->square[at] - x->mean[at] * x->mean[at]);
                plain += x->below[at] > 0.05 && x->below[at] < 0.95;
                held += is_held(x->effective[e * x->n_truth + t], x->below[at],
                                rng);
                shift += x->mean[at] / own / n;
                square += pow(x->mean[at] / own, 2.0) / n;
                sd += own / n;
            }
            coverage[e][o] = held / n;
            printf("%s %s %.2f (by shares %.2f, z %+.2f, rms %.2f, sd %.2f A)",
                   o > 0 ? "," : "", observable_name[o], coverage[e][o],
                   plain / n, shift, sqrt(square), sd);
        }
        double draws = 0.0;
        int count[4] = {0}; /* of truths with 10, 20, 40, 80 draws */
        for (int t = 0; t < n; t++) {
            const int at = e * x->n_truth + t;
            draws += x->effective[at] / n;
            fprintf(stderr, "%g %d %.1f %.3f %.3f %.3f\n", error_at[e], t,
                    x->effective[at], x->below[3 * at], x->below[3 * at + 1],
                    x->below[3 * at + 2]);
            for (int k = 0; k < 4; k++)
                count[k] += x->effective[at] >= 10 << k;
        }
        printf("; %d truths, from %.1f effective draws of the prior, %d, %d, "
               "%d, %d with 10, 20, 40, 80\n",
               n, draws, count[0], count[1], count[2], count[3]);
    }
    fflush(stdout);
}

/* Residues 8 to 293 of the longer construct, into a file of the name `part`. */
static void cut_three(char *part)
{
    const char *whole = "../shared/data/saxs/lar_fn3_1_2/model_LAR1-4.pdb";
    FILE *from = fopen(whole, "r");
    const int made = mkstemp(part);
    FILE *to = made < 0 ? NULL : fdopen(made, "w");
    char line[256];
    if (from == NULL || to == NULL) {
        fprintf(stderr, "cannot copy '%s' to '%s'\n", whole, part);
        exit(1);
    }
    while (fgets(line, sizeof line, from) != NULL)
        if (strncmp(line, "ATOM", 4) == 0 && atoi(line + 22) >= 8 &&
            atoi(line + 22) <= 293)
            fputs(line, to);
    fclose(from);
    fclose(to);
}

/* Writes a curve of the configuration's structure at c2 into a file of the name
 * `curve`. */
static void simulate(const char *config, const char *file, double c2,
                     char *curve)
{
    char command[512];
    close(mkstemp(curve));
    snprintf(command, sizeof command,
             "build/tessera simulate %s %s --set simulate.c2=%g --force -q -o "
             "%s >/dev/null",
             config, file, c2, curve);
    if (system(command) != 0) {
        fprintf(stderr, "failed: %s\n", command);
        exit(1);
    }
}

static void open_study(study *x, const char *name, const char *learn,
                       const char *device)
{
    char word[48], use[48], data[64], option[72] = "";
    char part[] = "/tmp/tessera_coverage_XXXXXX", file[64];
    char curve[] = "/tmp/tessera_coverage_XXXXXX";
    const int is_three = strcmp(name, "three") == 0;
    const char *const set[] = {
        "contrast.c2=infer",
        "structure.states=1",
        "sampler.temperatures=1",
        word,
        use,
        data,
        file,
        "structure.flexible=[\"A:97-103\", \"A:193-203\"]"};
    x->is_own = strcmp(learn, "own") == 0;
    snprintf(word, sizeof word, "model_error=%s", x->is_own ? "all" : learn);
    snprintf(use, sizeof use, "device.use=%s", device);
    if (is_three)
        cut_three(part);
    snprintf(file, sizeof file, "structure.file=%s", part);
    if (is_three)
        snprintf(option, sizeof option, "--set %s", file);
    simulate(is_three ? "configs/lar.yaml" : name, option,
             isnan(x->c2) ? 1.0 : x->c2, curve);
    snprintf(data, sizeof data, "data.0.file=%s", curve);
    OK(tsr_config_read(is_three ? "configs/lar.yaml" : name, is_three ? 8 : 6,
                       set, &x->config, &err));
    tsr_log *log = tsr_log_new(stdout, TSR_LOG_INFO);
    OK(tsr_setup_read(&x->config, 1, NULL, &x->s, &err));
    OK(tsr_setup_engine(&x->config,
                        (x->n_particle > BATCH ? x->n_particle : BATCH) *
                            x->s.n_thread,
                        log, &x->s, &err));
    tsr_log_free(log);
    remove(curve);
    snprintf(data, sizeof data, "%s.pdb", curve);
    remove(data);
    const tsr_saxs_term *term = saxs_term(x->s.data.likelihood, 0);
    x->saxs = *term->saxs;
    x->matrix = term->matrix;
    x->prior = x->s.target;
    x->prior.likelihood = NULL;
    x->prior.n_engine = x->prior.n_group = 0;
    x->prior.n_temp = x->prior.n_state = 1;
    x->n_profile = tsr_likelihood_n_profile(x->s.data.likelihood);
    x->n_thread = x->s.n_thread < MOST_THREAD ? x->s.n_thread : MOST_THREAD;
}

static void run_study(study *x, const char *name, const char *learn,
                      const char *device, double (*coverage)[N_OBSERVABLE])
{
    char label[160];
    pthread_mutex_init(&x->lock, NULL);
    x->begin_s = tsr_clock_s();
    x->thin = 10;
    x->n_stage = x->n_step / 5;
    open_study(x, name, learn, device);
    const size_t n = (size_t)x->n_truth;
    const size_t n_q = (size_t)x->s.data.likelihood->grid.n_q;
    const size_t n_value = N_ERROR * n * N_OBSERVABLE;
    x->truth = array(n, sizeof(*x->truth));
    x->atoms = array(n * n_q, sizeof *x->atoms);
    x->below = array(n_value, sizeof *x->below);
    x->mean = array(n_value, sizeof *x->mean);
    x->square = array(n_value, sizeof *x->square);
    x->effective = array(N_ERROR * n, sizeof *x->effective);
    x->drawn = array((size_t)x->n_draw, sizeof(*x->drawn));
    x->value = array((size_t)x->n_draw * N_OBSERVABLE, sizeof *x->value);
    x->rg = array((size_t)x->n_draw, sizeof *x->rg);
    x->partial = array((size_t)(x->n_draw * x->n_profile), sizeof *x->partial);
    draw_truths(x);
    in_threads(x, compute_truths);
    in_threads(x, draw_prior);
    in_threads(x, infer);
    snprintf(label, sizeof label, "%s, %s, c2 %s", name, learn,
             isnan(x->c2) ? "of the prior" : "fixed");
    report(x, label, coverage);
    if (strcmp(name, "three") == 0)
        remove(x->config.structure.file);
    tsr_setup_clear(&x->s);
    tsr_config_clear(&x->config);
}

TEST(intervals_hold_the_truth)
{
    double coverage[N_ERROR][N_OBSERVABLE];
    study x = {.n_truth = 30, .n_draw = 40000, .c2 = 1.0, .limit_s = HUGE_VAL};
    if (access("../shared/data/saxs/lar_fn3_1_2", R_OK) != 0) {
        print_message("../shared/data/saxs is absent\n");
        skip();
    }
    run_study(&x, "configs/lar.yaml", "all", "auto", coverage);
    print_message("  90 %% intervals of Rg hold the truth in %.2f at errors of "
                  "2 %%\n",
                  coverage[0][0]);
    /* 0.88 of 100 truths, without what is learnt 0.48: this share of 30 is
     * three standard errors below the one and two above the other. */
    assert_true(coverage[0][0] > 0.68);
}

int main(int argc, char **argv)
{
    double coverage[N_ERROR][N_OBSERVABLE];
    if (argc < 8)
        return run_test_list();
    study x = {.n_truth = atoi(argv[3]),
               .n_draw = atol(argv[4]),
               .n_particle = atoi(argv[5]),
               .n_step = atol(argv[6]),
               .c2 =
                   strcmp(argv[7], "prior") == 0 ? (double)NAN : atof(argv[7]),
               .limit_s = argc > 9 ? atof(argv[9]) : HUGE_VAL};
    run_study(&x, argv[1], argv[2], argc > 8 ? argv[8] : "auto", coverage);
    return 0;
}
