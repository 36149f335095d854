/* `tessera solve` states how many states the data support, from the differences
 * of log evidence and the effective draws. */
#include "commands/solve.h"
#include "tests/test.h"

/* Two runs, of one and two states, the second by `gain` above. */
typedef struct {
    tsr_verdict verdict[2];
    tsr_summary summary[2];
    tsr_comparison runs;
    tsr_strings flexible;
    tsr_solve solve;
} fixture;

static void make(fixture *f, double gain, double error, double ess)
{
    static char *range[] = {"A:1-9"};
    static char *command[] = {"tessera resume x/1 --draws 200",
                              "tessera resume x/2 --draws 200"};
    memset(f, 0, sizeof *f);
    for (int k = 0; k < 2; k++) {
        tsr_verdict *v = &f->verdict[k];
        v->has_data = 1;
        v->n_state = k + 1;
        v->ess = k == 0 ? 500.0 : ess;
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
    f->solve.says = tsr_evidence_gain(&f->runs, 0, 1, &gain, &error);
    f->solve.chosen = f->solve.says == TSR_GAIN_CLEAR;
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

TEST(asks_for)
{
    const struct {
        double gain, error, ess;
        const char *words, *more, *json, *probability;
    } known[] = {{5.0, 1.0, 400.0, "The data require at least 2 states",
                  "tessera resume x/2 ", "\"states\": 2, \"undecided\": false",
                  "\"probability\": 0.993"},
                 {-5.0, 1.0, 400.0, "The data require no more than 1 state",
                  "tessera resume x/1 ", "\"states\": 1, \"undecided\": false",
                  "\"probability\": 0.993"},
                 /* above, but by less than 1 nat */
                 {0.6, 0.1, 400.0, "The data require no more than 1 state",
                  "tessera resume x/1 ", "\"states\": 1, \"undecided\": false",
                  "\"probability\": 0.354"},
                 /* within two errors; ess 10, whatever the difference */
                 {2.5, 2.4, 400.0,
                  "It is undecided whether the data require 2 states or 1",
                  "tessera resume x/2 ", "\"states\": 1, \"undecided\": true",
                  "\"probability\": null"},
                 {50.0, 1.0, 10.0,
                  "It is undecided whether the data require 2 states or 1",
                  "tessera resume x/2 ", "\"states\": 1, \"undecided\": true",
                  "\"probability\": null"}};
    for (size_t i = 0; i < COUNT_OF(known); i++) {
        fixture f;
        make(&f, known[i].gain, known[i].error, known[i].ess);
        char *text = printed(&f.solve, tsr_solve_print_runs);
        has(text, known[i].words);
        has(text, known[i].more);
        has(text, "States are not conformations");
        char *json = printed(&f.solve, tsr_solve_print_json);
        has(json, known[i].json);
        has(json, known[i].probability);
        has(json, "\"converged\": true");
        has(json, "\"d_max\"");
    }
}

/* Runs of other data are not compared. */
TEST(other_data)
{
    fixture f;
    make(&f, 5.0, 1.0, 400.0);
    f.runs.run[1].data = 1;
    double gain, error;
    f.solve.says = tsr_evidence_gain(&f.runs, 0, 1, &gain, &error);
    f.solve.chosen = 0;
    char *text = printed(&f.solve, tsr_solve_print_runs);
    has(text, "The number of states that the data require is unknown");
}

/* After an interruption the command that goes on is that of solve. */
TEST(unfinished)
{
    fixture f;
    make(&f, 5.0, 1.0, 400.0);
    f.runs.n = 1;
    f.solve.says = TSR_GAIN_UNKNOWN;
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
        make(&f, 0.0, 1.0, 1.0);
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
