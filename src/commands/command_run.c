/* tessera run CONFIG: what the command line says, and the signals; the run
 * itself is run_session.h. */
#include "answer/advice.h"
#include "answer/run_report.h"
#include "commands/command.h"
#include "core/interrupt.h"
#include "session/run_session.h"

#include <stdlib.h>
#include <string.h>

static const tsr_option options[] = {
    {.name = "output",
     .letter = 'o',
     .argument = "DIR",
     .doc = "where the run goes, instead of output.directory"},
    {.name = "set",
     .argument = "KEY=VALUE",
     .repeats = 1,
     .doc = "override a key, as sampler.draws=500 or data.0.file=x.dat"},
    {.name = "device",
     .argument = "DEVICE",
     .doc = "instead of device.use: auto, gpu, cpu, reference, number, name, "
            "a list like 0,1, all-gpu, all"},
    {.name = "until",
     .argument = "WHAT",
     .doc = "stop once converged: rhat<1.01,ess>400 (sampler.draws at most)"},
    {.name = "threads", .argument = "N", .doc = "instead of device.threads"},
    {.name = "prior-only", .doc = "leave the data out: sample the prior"},
    {.name = "json",
     .doc = "the result as one JSON object, which says whether it converged"},
    {.name = "dry-run",
     .doc =
         "check everything, print the plan and how long it takes, stop there"},
    {0}};

/* What one option says instead of a key of the file: the text at `text`, in the
 * config. */
static tsr_status put_option(const tsr_args *args, const char *option,
                             const char *key, char **text, tsr_config *config,
                             tsr_err *err)
{
    char place[32];
    if (tsr_args_count(args, option) == 0)
        return TSR_OK;
    char *copy = strdup(tsr_args_value(args, option));
    TSR_TRY(tsr_allocated(copy, err));
    free(*text);
    *text = copy;
    snprintf(place, sizeof place, "--%s", option);
    return tsr_yaml_marks_put(&config->marks, key, place, err);
}

tsr_status tsr_run_options(const tsr_args *args, tsr_config *config,
                           tsr_err *err)
{
    long threads = 0, draws = 0;
    TSR_TRY(put_option(args, "output", "output.directory",
                       &config->output.directory, config, err));
    TSR_TRY(put_option(args, "device", "device.use", &config->device.use,
                       config, err));
    TSR_TRY(put_option(args, "until", "sampler.until", &config->sampler.until,
                       config, err));
    TSR_TRY(tsr_args_long(args, "threads", 1, 4096, &threads, err));
    if (threads > 0)
        config->device.threads = (tsr_number_or_word){-1, (double)threads};
    TSR_TRY(tsr_args_long(args, "draws", 1, 1e9, &draws, err));
    if (draws > 0)
        config->sampler.draws = (tsr_number_or_word){-1, (double)draws};
    TSR_TRY(tsr_args_double(args, "checkpoint-every", 0.0, 86400.0,
                            &config->output.checkpoint_every, err));
    return tsr_config_blame(config, tsr_config_check(config, err), err);
}

static tsr_status apply_options(const tsr_args *args, tsr_config *config,
                                tsr_err *err)
{
    if (tsr_args_count(args, "output") > 0 &&
        tsr_args_value(args, "output")[0] == '\0')
        return tsr_fail(err, TSR_E_USAGE, "--output is empty: name a folder");
    tsr_status status = tsr_run_options(args, config, err);
    if (tsr_args_count(args, "prior-only") > 0)
        tsr_config_drop_data(config); /* its config.yaml says what was done */
    return status;
}

/* The plan, and how long it would take, from a few steps that are tried. */
static tsr_status plan(tsr_session *session, FILE *out, tsr_err *err)
{
    const double enough = 0.2; /* s */
    const tsr_sampler_options *o = &session->config->sampler;
    const double draws = (double)tsr_sampler_draws(o);
    const double warmup = (double)tsr_session_warmup(session->config);
    double start, each;
    char all[32], some[32];
    tsr_run_plan(session->config, session->setup, out);
    TSR_TRY(tsr_session_try(session, enough, &start, &each, err));
    tsr_advice_time(start + (warmup + draws) * each, all);
    if (o->until == NULL)
        fprintf(out, "time: %s (%.3g s a draw of all chains, as tried)\n", all,
                each);
    else
        fprintf(out,
                "time: until converged (%s), at most %s; warm-up and 1000 "
                "draws a chain take %s\n",
                o->until, all,
                tsr_advice_time(start + (warmup + 1000.0) * each, some));
    return TSR_OK;
}

static tsr_status run(const tsr_args *args, FILE *out, tsr_log *log,
                      tsr_err *err)
{
    const char *const *set;
    tsr_config config;
    tsr_setup setup = {0};
    tsr_session session = {.config = &config, .setup = &setup, .log = log};
    tsr_log_hold(log);
    int n_set = tsr_args_values(args, "set", &set);
    int dry = tsr_args_count(args, "dry-run") > 0;
    int ignore_hang_up = tsr_hang_up_is_ignored();
    if (!dry)
        tsr_interrupt_catch(ignore_hang_up);
    tsr_status status =
        tsr_config_read(tsr_args_argument(args), n_set, set, &config, err);
    TSR_THEN(status, apply_options(args, &config, err));
    TSR_THEN(status, tsr_session_read(&session, err));
    tsr_interrupt_hold(!dry);
    TSR_THEN(status, tsr_setup_engine(&config, 0, log, &setup, err));
    if (!dry)
        tsr_interrupt_catch(ignore_hang_up); /* devices put in their own */
    tsr_interrupt_hold(0);
    if (status == TSR_OK && dry)
        status = plan(&session, out, err);
    else
        TSR_THEN(status, tsr_session_run(&session, err));
    if (status == TSR_OK && !dry)
        status = tsr_run_report(&session, tsr_args_count(args, "json") > 0, out,
                                err);
    tsr_session_clear(&session);
    tsr_setup_clear(&setup);
    tsr_config_clear(&config);
    return status;
}

const tsr_command tsr_command_run = {
    .name = "run",
    .doc = "sample the posterior of a configuration",
    .usage = {.arguments = "CONFIG",
              .min_arguments = 1,
              .max_arguments = 1,
              .options = options,
              .about = "Ends with a verdict and a table. The exit status is 1 "
                       "where the run should go on until converged (--until, "
                       "or sampler.draws: auto) and has not within its draws "
                       "or its time; the line that goes on is printed.",
              .fields = tsr_config_fields},
    .run = run};
