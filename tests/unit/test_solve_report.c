/* `tessera solve` states how many states the data support: probabilities, and
 * odds with a prior and the error of the log evidence. */
#include "commands/solve.h"
#include "tests/test.h"

/* Two runs, of one and two states, the second by `gain` above; room for a
 * third. */
typedef struct {
    tsr_verdict verdict[3];
    tsr_summary summary[3];
    tsr_comparison runs;
    tsr_strings flexible;
    tsr_solve solve;
} fixture;

static void make(fixture *f, double gain, double error)
{
    static char *range[] = {"A:1-9"};
    static char *command[] = {"tessera resume x/1 --draws 200",
                              "tessera resume x/2 --draws 200"};
    memset(f, 0, sizeof *f);
    for (int k = 0; k < 2; k++) {
        tsr_verdict *v = &f->verdict[k];
        v->has_data = 1;
        v->n_state = k + 1;
        v->ess = 500.0;
        v->rg = v->d_max =
            (tsr_convergence){.mean = 20.0, .q5 = 19.0, .q95 = 21.0, .sd = 1.0};
        v->evidence = (tsr_evidence){.log = -50.0 + k * gain,
                                     .error = k * error,
                                     .population = (double)NAN,
                                     .n_temp = 4};
        v->loo.elpd = (double)NAN;
        v->advice.is_converged = 1;
        v->advice.command = command[k];
        f->summary[k].evidence = v->evidence;
        f->runs.run[k] = (tsr_compared){.directory = k == 0 ? "x/1" : "x/2",
                                        .summary = &f->summary[k],
                                        .verdict = v};
    }
    f->runs.n = 2;
    f->flexible = (tsr_strings){.n = 1, .item = range};
    f->solve = (tsr_solve){.directory = "x",
                           .model = "m.pdb",
                           .flexible = &f->flexible,
                           .is_finished = 1,
                           .runs = &f->runs,
                           .again = "tessera solve m.pdb c.dat"};
    tsr_comparison_judge(&f->runs);
    f->solve.chosen = f->runs.run[0].is_excluded;
}

/* The text, one blank for each line's end. */
static char *printed(const tsr_solve *s,
                     tsr_status (*print)(const tsr_solve *, FILE *, tsr_err *))
{
    FILE *out = text_begin();
    OK(print(s, out, &err));
    char *text = text_end(out);
    for (char *at = text; (at = strchr(at, '\n')) != NULL;)
        *at = ' ';
    return text;
}

static void has(const char *text, const char *part)
{
    if (strstr(text, part) == NULL)
        fail_msg("no '%s' in: %s", part, text);
}

static void near(double got, double want, double tolerance)
{
    if (!(fabs(got - want) <= tolerance))
        fail_msg("%.15g, not %.15g", got, want);
}

TEST(asks_for)
{
    /* log odds: the gain less log 2; 20 to 1 less two errors is log 20 = 3.00
     * after two errors */
    const struct {
        double gain, error;
        const char *words, *more, *json, *reason;
    } known[] = {
        {5.0, 0.5, "The data require at least 2 states", "tessera resume x/2 ",
         "\"states\": 2, \"undecided\": false",
         "Larger numbers were not tried (--states 3)"},
        {-5.0, 0.5,
         "The data require no more than 1 state:", "tessera resume x/1 ",
         "\"states\": 1, \"undecided\": false", "P(1) = 0.996, P(2) = 0.004"},
        /* within the errors of 20 to 1 */
        {5.0, 1.0, "It is undecided whether the data require 2 states or 1",
         "tessera resume x/2 ", "\"states\": 1, \"undecided\": true",
         "Longer runs may decide, first that of 2 states"},
        {-3.0, 0.5, "It is undecided whether the data require 2 states or 1",
         "tessera resume x/2 ", "\"states\": 1, \"undecided\": true",
         "Longer runs may decide, first that of 2 states"},
        /* by the data, whatever the error */
        {1.0, 0.1, "It is undecided whether the data require 2 states or 1",
         "tessera resume x/2 ", "\"states\": 1, \"undecided\": true",
         "longer runs will not decide"}};
    for (size_t i = 0; i < COUNT_OF(known); i++) {
        fixture f;
        make(&f, known[i].gain, known[i].error);
        char *text = printed(&f.solve, tsr_solve_print_runs);
        has(text, known[i].words);
        has(text, known[i].more);
        has(text, known[i].reason);
        has(text, "States are not conformations");
        char *json = printed(&f.solve, tsr_solve_print_json);
        has(json, known[i].json);
        has(json, "\"converged\": true");
        has(json, "\"d_max\"");
    }
}

/* Sets log Z and its error of run k, with n_state states. */
static void add_run(fixture *f, int k, int n_state, double log, double error)
{
    f->verdict[k] = f->verdict[0];
    f->verdict[k].n_state = n_state;
    f->summary[k].evidence = (tsr_evidence){
        .log = log, .error = error, .population = (double)NAN, .n_temp = 4};
    f->runs.run[k] = (tsr_compared){
        .directory = "x", .summary = &f->summary[k], .verdict = &f->verdict[k]};
    f->runs.n = k + 1;
    tsr_comparison_judge(&f->runs);
}

/* The mean of the logistic function of a normal difference, by summation. */
static double mean_odds(double log_odds, double error)
{
    double sum = 0.0, weight = 0.0;
    for (int k = -600; k <= 600; k++) {
        const double z = 0.01 * k;
        sum += exp(-0.5 * z * z) / (1.0 + exp(-log_odds - error * z));
        weight += exp(-0.5 * z * z);
    }
    return sum / weight;
}

/* Probabilities sum to 1, are those of evidence and prior without errors, are
 * flatter with errors, and close to the mean over the errors. */
TEST(probabilities)
{
    fixture f;
    double before = 1.0;
    make(&f, 0.0, 0.0);
    for (int k = 0; k <= 8; k++) {
        const double error = 0.5 * k;
        add_run(&f, 1, 2, -47.0, error);
        const double p = f.runs.run[1].probability;
        const double want = mean_odds(3.0 - log(2.0), error);
        near(p, want, k == 0 ? 1e-12 : 0.02);
        near(p + f.runs.run[0].probability, 1.0, 1e-12);
        assert_true(p < before && p > 0.5);
        before = p;
    }
    add_run(&f, 1, 2, -49.0, 0.0);
    add_run(&f, 2, 3, -48.0, 0.0);
    const double sum = 4.0 + 2.0 * exp(1.0) + exp(2.0);
    near(f.runs.run[0].probability, 4.0 / sum, 1e-12);
    near(f.runs.run[2].probability, exp(2.0) / sum, 1e-12);
    add_run(&f, 2, 3, -48.0, 2.0);
    double total = 0.0;
    for (int k = 0; k < 3; k++)
        total += f.runs.run[k].probability;
    near(total, 1.0, 1e-12);
}

/* A run is excluded from odds of 20 to 1 on, two errors and prior included;
 * runs of as many states have equal priors. */
TEST(boundary)
{
    fixture f;
    make(&f, 0.0, 0.0);
    for (int n_state = 1; n_state <= 3; n_state++)
        for (int sign = -1; sign <= 1; sign += 2) {
            const double edge =
                log(20.0) + sign * (n_state - 1) * log(2.0) + 2.0 * 0.3;
            for (int above = -1; above <= 1; above += 2) {
                add_run(&f, 1, n_state, -50.0 + sign * (edge + 1e-9 * above),
                        0.3);
                assert_int_equal(f.runs.run[sign > 0 ? 0 : 1].is_excluded,
                                 above > 0);
                assert_false(f.runs.run[sign > 0 ? 1 : 0].is_excluded);
            }
        }
    /* unknown errors or other data exclude nothing */
    add_run(&f, 1, 2, 0.0, (double)NAN);
    assert_false(f.runs.run[0].is_excluded);
    assert_true(isnan(f.runs.run[1].probability));
    near(f.runs.run[0].probability, 1.0, 1e-12);
}

/* Runs of other data are not compared. */
TEST(other_data)
{
    fixture f;
    make(&f, 5.0, 0.5);
    f.runs.run[1].data = 1;
    tsr_comparison_judge(&f.runs);
    f.solve.chosen = 0;
    assert_false(f.runs.run[0].is_excluded);
    char *text = printed(&f.solve, tsr_solve_print_runs);
    has(text, "The number of states that the data require is unknown");
}

/* After an interruption the command that goes on is that of solve. */
TEST(unfinished)
{
    fixture f;
    make(&f, 5.0, 1.0);
    f.runs.n = 1;
    f.solve.chosen = f.solve.is_finished = 0;
    char *text = printed(&f.solve, tsr_solve_print);
    has(text, "more than one state is not known yet");
    has(text, "Not finished. To continue:     tessera solve m.pdb c.dat");
    text = printed(&f.solve, tsr_solve_print_json);
    has(text, "\"finished\": false");
    has(text, "\"more\": \"tessera solve m.pdb c.dat\"");
}

/* What is rigid is the answer where it fits; else there is what to try. */
TEST(rigid_alone)
{
    fixture f;
    double q[] = {0.01, 0.2};
    char path[] = "c.dat";
    tsr_saxs saxs = {.path = path, .n = 2, .q = q, .rg_guinier = 20.0};
    tsr_saxs *const curve[] = {&saxs};
    for (int fits = 0; fits < 2; fits++) {
        make(&f, 0.0, 1.0);
        tsr_profile_result rigid = {.rg_guinier = 15.0};
        rigid.fit.reduced_chi2 = fits ? 1.0 : 4.0;
        rigid.fit.cormap_p = 0.5;
        f.runs.n = f.flexible.n = 0;
        f.solve.is_frozen = f.solve.n_curve = 1;
        f.solve.rigid = &rigid;
        f.solve.saxs = curve;
        f.solve.bodies = "atoms";
        char *text = printed(&f.solve, tsr_solve_print);
        has(text,
            fits ? "rigid model fits c.dat" : "rigid model does not fit c.dat");
        has(text, "for all atoms, over 2 points of q 0.010 to 0.200");
        has(text, "20.0 Angstrom in the data and 15.0 in the model's curve");
        assert_int_equal(strstr(text, "Possible next steps") == NULL, fits);
        assert_null(strstr(text, "is the answer"));
    }
}
