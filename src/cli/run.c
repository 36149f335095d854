/* tessera run CONFIG: everything that can be wrong is checked before anything
 * is written, so that a refused run leaves no folder behind. */
#include "cli/command.h"
#include "cli/interrupt.h"
#include "cli/run_directory.h"
#include "cli/run_report.h"
#include "cli/run_session.h"
#include "cli/run_tell.h"

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
    {.name = "dry-run", .doc = "check everything, print the plan, stop there"},
    {0}};

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

/* Behind every step of the set-up. */
static tsr_status check_stop(tsr_status status, tsr_err *err)
{
    if (!tsr_stop_asked || (status != TSR_OK && status != TSR_E_INTERRUPTED))
        return status;
    return tsr_fail(err, TSR_E_INTERRUPTED,
                    "interrupted before the first draw; nothing was written: "
                    "start it again");
}

static tsr_status sample(tsr_session *s, FILE *out, tsr_err *err)
{
    tsr_status status = check_stop(tsr_session_prepare(s, err), err);
    if (status == TSR_OK)
        status = tsr_session_begin(s, err);
    if (status != TSR_OK)
        return status;
    tsr_info(s->log,
             "tessera %s, %d chains of %d temperatures, %d threads, "
             "into %s",
             TSR_VERSION, s->setup->n_chain,
             tsr_target_n_temp(&s->setup->target),
             tsr_sampler_n_thread(s->sampler), s->directory);
    tsr_tell_idle_moves(s->setup, s->log);
    tsr_run_tell_size(s->config, s->setup, s->log);

    status = tsr_session_sample(s, err);
    if (status == TSR_OK)
        status = tsr_session_report(s, out, err);
    if (status != TSR_OK)
        tsr_log_keep(s->log, TSR_LOG_ERROR, err->message);
    return status;
}

static tsr_status run(const tsr_args *args, FILE *out, tsr_log *log,
                      tsr_err *err)
{
    const char *const *argument, *const *set;
    tsr_config config;
    tsr_setup setup = {0};
    tsr_session session = {.config = &config, .setup = &setup, .log = log};
    tsr_log_hold(log);
    tsr_args_arguments(args, &argument);
    int n_set = tsr_args_values(args, "set", &set);
    int dry = tsr_args_count(args, "dry-run") > 0;
    int ignore_hang_up = tsr_hang_up_is_ignored();
    if (!dry)
        tsr_interrupt_catch(ignore_hang_up);
    tsr_status status = tsr_config_read(argument[0], n_set, set, &config, err);
    if (status == TSR_OK)
        status = apply_options(args, &config, err);
    /* Refused before the work, and again when the folder is made. */
    if (status == TSR_OK)
        status = tsr_config_blame(
            &config, tsr_run_directory_check(config.output.directory, err),
            err);
    if (status == TSR_OK)
        status = tsr_config_blame(
            &config, tsr_until_parse(config.sampler.until, &session.until, err),
            err);
    if (status == TSR_OK)
        status = check_stop(tsr_setup_read(&config, 1, log, &setup, err), err);
    tsr_interrupt_hold(!dry);
    if (status == TSR_OK)
        status = tsr_setup_engine(&config, 0, log, &setup, err);
    if (!dry)
        tsr_interrupt_catch(ignore_hang_up); /* devices put in their own */
    tsr_interrupt_hold(0);
    status = check_stop(status, err);
    if (status == TSR_OK && dry)
        tsr_run_plan(&config, &setup, out);
    else if (status == TSR_OK)
        status = sample(&session, out, err);
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
              .fields_title = "Keys of CONFIG (YAML; paths relative to it)",
              .fields = tsr_config_fields},
    .run = run};
