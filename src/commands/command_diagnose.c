/* tessera diagnose DIR: prints the checks of convergence. */
#include "answer/advice.h"
#include "commands/command.h"
#include "session/past_run.h"

#include "analysis/diagnose.h"

#include <stdlib.h>

typedef struct {
    int json;
    double rhat, ess;
    long threads;
} options;

static const tsr_field fields[] = {
    TSR_OPTION_JSON(options),
    TSR_FIELD(DOUBLE, "rhat", options, rhat, .argument = "LIMIT",
              .initial = "1.01", .min = 1.0, .max = 10.0,
              .doc = "largest R-hat that counts as converged"),
    TSR_FIELD(DOUBLE, "ess", options, ess, .argument = "NUMBER",
              .initial = "400", .unit = "draws", .min = 1.0, .max = 1e12,
              .doc = "smallest effective sample size that counts as converged"),
    TSR_OPTION_THREADS(options),
    {0}};

static tsr_status diagnose(const tsr_args *args, FILE *out, tsr_log *log,
                           tsr_err *err)
{
    tsr_past_run run = {.trace = NULL};
    tsr_diagnosis *made = NULL;
    const options *asked = args->options;
    tsr_diagnose_options o = {.rhat = asked->rhat, .ess = asked->ess};
    tsr_arrangements *arrangements = NULL;
    tsr_advice advice = {.command = NULL};
    char *text = NULL;
    tsr_parallel_limit(tsr_threads(asked->threads));
    tsr_status status = tsr_past_run_open(args->argument[0], &run, log, err);
    if (status == TSR_OK && run.has_config) {
        o.n_temp = tsr_sampler_n_temp(&run.config.sampler, run.has_data);
        o.warmup = run.config.sampler.warmup;
        o.draws = tsr_sampler_draws(&run.config.sampler);
        o.is_frozen = run.config.structure.frozen;
    }
    TSR_THEN(status,
             tsr_past_run_arrangements(&run, -1, tsr_arrangements_threshold,
                                       log, &arrangements, err));
    o.arrangements = arrangements;
    TSR_THEN(status, tsr_summary_make(run.trace, &o.summary, err));
    TSR_THEN(status, tsr_advice_make(&run, o.summary, &advice, err));
    if (status == TSR_OK)
        o.advice = text = tsr_advice_text(&advice);
    TSR_THEN(status, tsr_diagnose(run.trace, &o, &made, err));
    if (status == TSR_OK && asked->json)
        tsr_diagnosis_print_json(made, out);
    else if (status == TSR_OK)
        tsr_diagnosis_print(made, out);
    if (status == TSR_OK && !made->is_converged)
        status = TSR_E_NO;
    tsr_diagnosis_free(made);
    tsr_advice_clear(&advice);
    tsr_summary_free(o.summary);
    free(text);
    tsr_arrangements_free(arrangements);
    tsr_past_run_clear(&run);
    return status;
}

const tsr_command tsr_command_diagnose = {
    .name = "diagnose",
    .doc = "check the convergence of a run, with the reasons and remedies",
    .arguments = "DIR",
    .options = fields,
    .size = sizeof(options),
    .about =
        "DIR is the folder of a run, or a trace.h5. The exit status is 0 if "
        "the run has converged, and 1 if it has not.\nR-hat and effective "
        "sample size after Vehtari et al. 2021, with their limits.",
    .run = diagnose};
