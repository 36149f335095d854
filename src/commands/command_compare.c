/* tessera compare DIR...: prints runs side by side. Tables name a run by its
 * number, as names of folders are long. Differences are relative to the first
 * run named. */
#include "answer/comparison.h"
#include "commands/command.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

typedef struct {
    int json;
} options;

static const tsr_field fields[] = {
    TSR_FIELD(BOOL, "json", options, json,
              .doc = "print one JSON object instead of sentences and tables"),
    {0}};

/* ---- tables ---- */

static void print_models(const tsr_comparison *c, FILE *out)
{
    fprintf(out, "\n  %-3s %6s  %16s  %13s  %11s  %16s  %13s  %s\n", "run",
            "states", "log evidence", "above run 1", "probability",
            "LOO density", "above run 1", "converged");
    for (int i = 0; i < c->n; i++) {
        const tsr_verdict *v = c->run[i].verdict;
        const tsr_evidence *e = &c->run[i].summary->evidence;
        const tsr_difference evidence = tsr_evidence_gain(c, 0, i);
        const tsr_difference loo = tsr_loo_gain(c, 0, i);
        const double none = (double)NAN;
        fprintf(out, "  %-3d %6d", i + 1, v->n_state);
        tsr_gain_print(out, 16, e->n_temp > 1 ? e->log : none, e->error);
        tsr_gain_print(out, 13, i > 0 ? evidence.gain : none, evidence.error);
        tsr_gain_print(out, 11, c->run[i].probability, none);
        tsr_gain_print(out, 16, v->loo.elpd, v->loo.error);
        tsr_gain_print(out, 13, i > 0 ? loo.gain : none, loo.error);
        fprintf(out, "  %s\n", v->advice.is_converged ? "yes" : "no");
    }
}

static void print_parameters(const tsr_comparison *c, FILE *out)
{
    const char *name;
    fprintf(out, "\n  %-18s", "mean [5 %, 95 %]");
    for (int i = 0; i < c->n; i++)
        fprintf(out, "  run %-18d", i + 1);
    fputc('\n', out);
    for (int k = 0; (name = tsr_comparison_parameter(c, k)) != NULL; k++) {
        fprintf(out, "  %-18s", name);
        for (int i = 0; i < c->n; i++) {
            const tsr_summary_item *item =
                tsr_summary_find(c->run[i].summary, name);
            char text[64] = "-";
            if (item != NULL && isfinite(item->value.mean))
                tsr_verdict_interval(&item->value, text);
            fprintf(out, "  %-22s", text);
        }
        fputc('\n', out);
    }
}

static tsr_status print(const tsr_comparison *c, FILE *out, tsr_err *err)
{
    tsr_words words;
    for (int i = 0; i < c->n; i++) {
        fprintf(out, "run %d: %s", i + 1, c->run[i].directory);
        for (int k = 0; k < c->run[i].verdict->n_curve; k++)
            fprintf(out, "%s%s", k == 0 ? " (" : ", ",
                    c->run[i].verdict->curve[k].name);
        fprintf(out, "%s\n", c->run[i].verdict->n_curve > 0 ? ")" : "");
    }
    fputc('\n', out);
    tsr_comparison_write(c, &words);
    TSR_TRY(tsr_words_print(&words, out, 0, "", err));
    print_models(c, out);
    print_parameters(c, out);
    return TSR_OK;
}

/* ---- the command ---- */

static tsr_status compare(const tsr_args *args, FILE *out, tsr_log *log,
                          tsr_err *err)
{
    const options *o = args->options;
    tsr_comparison c = {.n = 0};
    tsr_json j = {.out = out};
    if (args->n > TSR_MOST_COMPARED)
        return tsr_fail(err, TSR_E_USAGE, "%d runs: at most %d can be compared",
                        args->n, (int)TSR_MOST_COMPARED);
    tsr_status status =
        tsr_comparison_make(args->n, args->argument, &c, log, err);
    TSR_THEN(status,
             o->json ? tsr_comparison_put(&c, &j, err) : print(&c, out, err));
    tsr_comparison_clear(&c);
    return status;
}

const tsr_command tsr_command_compare = {
    .name = "compare",
    .doc = "compare runs: evidence, fit, parameters, overlap",
    .arguments = "DIR DIR...",
    .options = fields,
    .size = sizeof(options),
    .about =
        "Log evidence and the expected log predictive density of left-out "
        "points (PSIS-LOO) compare models of the same data: numbers of states, "
        "flexible residues, noise models. A run is excluded where another has "
        "odds of 20 to 1 or more, by the log evidence less two errors and a "
        "prior of 2^-n for n states; 'probability' averages over the errors. "
        "Runs of different data are compared by "
        "their parameters; a warning names data that cannot come from one "
        "structure: their Guinier Rg differ by more than three standard "
        "deviations and 2 %.\nThe overlap of two runs is that of their "
        "distributions of Rg, D_max and distances between parts: 1 for equal "
        "distributions, 0 for disjoint ones.",
    .run = compare};
