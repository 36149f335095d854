/* tessera summary DIR: prints the verdict on a run, and a table of its
 * variables. */
#include "answer/verdict.h"
#include "commands/command.h"
#include "session/past_run.h"

#include "analysis/summary.h"

typedef struct {
    int json;
    char *prior;
    long align; /* 0: not given */
    long threads;
    double threshold_ang;
} options;

static const tsr_field fields[] = {
    TSR_OPTION_JSON(options),
    TSR_FIELD(
        STRING, "prior", options, prior, .argument = "DIR",
        .doc = "run made with --prior-only, to be listed with the posterior"),
    TSR_FIELD(INT, "align", options, align, .argument = "N", .min = 1,
              .max = TSR_MOST_DOMAINS,
              .doc = "arrangements: domain to superpose, numbered as in export "
                     "and report, instead of the largest"),
    TSR_FIELD(
        DOUBLE, "threshold", options, threshold_ang, .argument = "A",
        .initial = "15", .unit = "Angstrom", .min = 0.1, .max = 1e4,
        .doc =
            "arrangements: smallest average distance between two arrangements"),
    TSR_OPTION_THREADS(options),
    {0}};

/* Prints remarks that do not fit into cells of the table. *is_damaged out: 1 if
 * a variable or file cannot be read. */
static void report_flaws(const tsr_summary *summary, tsr_log *log,
                         int *is_damaged)
{
    int n_few = 0;
    *is_damaged = 0;
    for (int i = 0; i < summary->n; i++) {
        const tsr_summary_item *item = &summary->item[i];
        n_few += item->flaw == TSR_FLAW_FEW_DRAWS;
        *is_damaged |= item->flaw == TSR_FLAW_UNREADABLE;
        if (item->flaw_text != NULL)
            tsr_warn(log, "%s", item->flaw_text);
    }
    if (n_few > 0)
        tsr_warn(log, "few: a chain needs 4 draws for mcse, ess and rhat");
}

static tsr_status print(const tsr_summary *summary, const tsr_verdict *verdict,
                        FILE *out, tsr_err *err)
{
    TSR_TRY(tsr_verdict_print(verdict, out, err));
    fputc('\n', out);
    return tsr_summary_print(summary, out, err);
}

static tsr_status print_json(const tsr_summary *summary,
                             const tsr_verdict *verdict, FILE *out,
                             tsr_err *err)
{
    tsr_json j = {.out = out};
    tsr_json_object(&j, NULL);
    tsr_summary_put(summary, &j);
    tsr_status status = tsr_verdict_put(verdict, "verdict", &j, err);
    tsr_json_close(&j);
    return status == TSR_OK && (fflush(out) != 0 || ferror(out))
               ? tsr_fail(err, TSR_E_IO, "cannot write the summary")
               : status;
}

static tsr_status summary(const tsr_args *args, FILE *out, tsr_log *log,
                          tsr_err *err)
{
    const options *o = args->options;
    tsr_past_run run = {.trace = NULL}, prior = {.trace = NULL};
    tsr_summary *made = NULL;
    tsr_verdict *verdict = NULL;
    int n_hidden = 0, is_damaged = 0;
    tsr_parallel_limit(tsr_threads(o->threads));
    tsr_status status = tsr_past_run_open(args->argument[0], &run, log, err);
    if (o->prior != NULL)
        TSR_THEN(status, tsr_past_run_open_prior(o->prior, &prior, log, err));
    TSR_THEN(status, tsr_summary_make(run.trace, &made, err));
    if (o->prior != NULL)
        TSR_THEN(status, tsr_summary_add_prior(made, prior.trace, err));
    TSR_THEN(status, tsr_summary_add_evidence(made, run.trace, err));
    TSR_THEN(status, tsr_verdict_make(&run, made, (int)o->align - 1,
                                      o->threshold_ang, &verdict, err));
    if (status == TSR_OK && tsr_args_given(args, "verbose") == 0)
        n_hidden = tsr_summary_hide_poses(made);
    TSR_THEN(status, o->json ? print_json(made, verdict, out, err)
                             : print(made, verdict, out, err));
    if (status == TSR_OK && n_hidden > 0 && !o->json)
        tsr_info(log,
                 "%d more variables of poses and tails, with more effective "
                 "draws: --verbose, --json",
                 n_hidden);
    if (status == TSR_OK)
        report_flaws(made, log, &is_damaged);
    if (is_damaged)
        status = tsr_fail(err, TSR_E_DATA,
                          "'%s' is damaged: the readable part is above",
                          run.trace_path);
    tsr_verdict_free(verdict);
    tsr_summary_free(made);
    tsr_past_run_clear(&prior);
    tsr_past_run_clear(&run);
    return status;
}

const tsr_command tsr_command_summary = {
    .name = "summary",
    .doc = "mean, spread, effective sample size and R-hat of a run",
    .arguments = "DIR",
    .options = fields,
    .size = sizeof(options),
    .about =
        "DIR is the folder of a run, or a trace.h5. mcse is the standard error "
        "of the mean; ess_bulk and ess_tail are effective sample sizes in the "
        "middle and in the tails; rhat compares the chains, and is 1 where "
        "they agree.\nOf the poses and tails (positions of rigid parts and "
        "flexible ends) only the distances and the variable with the smallest "
        "effective sample size are listed; --verbose or --json lists "
        "all.\nAngles (unit rad or degree) are averaged on the circle. With "
        "--prior, 'learned' is the fraction of the prior's variance that the "
        "data removed.\nThe log evidence is the log marginal likelihood of the "
        "model, estimated from the populations that bring chains from the "
        "prior, and more reliably if the temperatures reach the prior "
        "(sampler.evidence: true): of two models of the same data one is "
        "exp(difference) times as probable.",
    .run = summary};
