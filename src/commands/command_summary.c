/* tessera summary DIR */
#include "answer/verdict.h"
#include "commands/command.h"
#include "session/past_run.h"

#include "analysis/summary.h"

static const tsr_option options[] = {
    TSR_OPTION_JSON,
    {.name = "prior",
     .argument = "DIR",
     .doc = "a run made with --prior-only: its numbers beside the posterior's"},
    {.name = "align",
     .argument = "N",
     .doc = "arrangements: superposed on domain N as export and report number "
            "them, instead of the largest"},
    {.name = "threshold",
     .argument = "A",
     .initial = "15",
     .unit = "Angstrom",
     .doc = "arrangements: how far apart on average those are that count as "
            "two"},
    {0}};

/* What the cells could not say. *is_damaged: something could not be read. */
static void tell_flaws(const tsr_summary *summary, tsr_log *log,
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

static tsr_status find_verdict(const tsr_args *args, const tsr_past_run *run,
                               const tsr_summary *summary, tsr_verdict **out,
                               tsr_err *err)
{
    long domain = 0;
    double threshold = tsr_arrangements_threshold;
    TSR_TRY(tsr_args_long(args, "align", 1, TSR_MOST_DOMAINS, &domain, err));
    TSR_TRY(tsr_args_double(args, "threshold", 0.1, 1e4, &threshold, err));
    return tsr_verdict_make(run, summary, (int)domain - 1, threshold, out, err);
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
    const char *prior_path = tsr_args_value(args, "prior");
    tsr_past_run run = {.trace = NULL}, prior = {.trace = NULL};
    tsr_summary *made = NULL;
    tsr_verdict *verdict = NULL;
    int n_hidden = 0, is_damaged = 0;
    tsr_status status =
        tsr_past_run_open(tsr_args_argument(args), &run, log, err);
    if (status == TSR_OK && prior_path != NULL)
        status = tsr_past_run_open_prior(prior_path, &prior, log, err);
    TSR_THEN(status, tsr_summary_make(run.trace, &made, err));
    if (status == TSR_OK && prior_path != NULL)
        status = tsr_summary_add_prior(made, prior.trace, err);
    TSR_THEN(status, tsr_summary_add_evidence(made, run.trace, err));
    TSR_THEN(status, find_verdict(args, &run, made, &verdict, err));
    if (status == TSR_OK && tsr_args_count(args, "verbose") == 0)
        n_hidden = tsr_summary_hide_poses(made);
    TSR_THEN(status, tsr_args_count(args, "json") > 0
                         ? print_json(made, verdict, out, err)
                         : print(made, verdict, out, err));
    if (status == TSR_OK && n_hidden > 0 && tsr_args_count(args, "json") == 0)
        tsr_info(log,
                 "%d more of poses and tails, with more effective draws: "
                 "--verbose, --json",
                 n_hidden);
    if (status == TSR_OK)
        tell_flaws(made, log, &is_damaged);
    if (is_damaged)
        status = tsr_fail(err, TSR_E_DATA,
                          "'%s' is damaged: what could be read is above",
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
    .usage = {.arguments = "DIR",
              .min_arguments = 1,
              .max_arguments = 1,
              .options = options,
              .about =
                  "DIR is a run's folder, or a trace.h5 itself. mcse is the "
                  "error of the mean; ess_bulk and ess_tail count independent "
                  "draws in the middle and in the tails; rhat compares the "
                  "chains, and is 1 where they agree.\n"
                  "Of poses and tails (how rigid parts and flexible ends lie) "
                  "the distances and the variable with the least effective "
                  "draws are shown, all with --verbose or --json.\n"
                  "Angles (unit rad or degree) are averaged on the circle. "
                  "With --prior, 'learned' is the part of the prior's variance "
                  "that the data removed.\n"
                  "The log evidence is the marginal likelihood of the model, "
                  "by the populations that chains came from the prior in, and "
                  "more surely where temperatures reach the prior "
                  "(sampler.evidence: true): of two models of the same data "
                  "one is exp(difference) times as probable."},
    .run = summary};
