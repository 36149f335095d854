/* tessera run CONFIG */
#include "cli/command.h"
#include "cli/interrupt.h"
#include "cli/run_directory.h"
#include "cli/run_report.h"
#include "cli/run_tell.h"
#include "cli/setup.h"
#include "cli/until.h"

#include "io/trace.h"
#include "sampler/record.h"
#include "sampler/sampler.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

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

static double now_seconds(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

/* ---- progress ---- */

typedef struct {
    tsr_log *log;
    const char *phase;
    double started;     /* of the phase */
    double shown;       /* last line */
    long before, total; /* steps of all chains: before this call, planned */
    long accepted_before;
    double chi2;
} progress;

static void tick(void *context, const tsr_progress *now)
{
    progress *p = context;
    double time = now_seconds(), elapsed = time - p->started;
    double pause = tsr_log_is_terminal(p->log) ? 0.2 : 10.0;
    p->chi2 = now->chi2;
    if (time - p->shown < pause)
        return;
    p->shown = time;
    long step = p->before + now->step;
    double rate = elapsed > 0.0 ? (double)step / elapsed : 0.0;
    double left = rate > 0.0 ? (double)(p->total - step) / rate : 0.0;
    double accepted =
        step > 0 ? 100.0 * (double)(p->accepted_before + now->accepted) /
                       (double)step
                 : 0.0;
    char line[160], chi2[32] = "";
    if (!isnan(now->chi2))
        snprintf(chi2, sizeof chi2, " | chi2 %.3g", now->chi2);
    long seconds = (long)(left + 0.5);
    snprintf(line, sizeof line,
             "%-8s %3.0f %% | %.0f steps/s | accepted %.0f %%%s | %ld:%02ld:"
             "%02ld left",
             p->phase, 100.0 * (double)step / (double)p->total, rate, accepted,
             chi2, seconds / 3600, seconds / 60 % 60, seconds % 60);
    tsr_log_progress(p->log, line);
}

/* ---- the run itself ---- */

typedef struct {
    const tsr_config *config;
    tsr_setup *setup;
    tsr_sampler *sampler;
    tsr_record *record;
    tsr_trace *trace;
    tsr_log *log;
    tsr_until until;
    const char *trace_path;
    long next_look; /* draws */
    tsr_run_outcome outcome;
} run_state;

/* Asks every quarter more draws, from 100 on. */
static tsr_status ask_until(run_state *r, long done, int *finished,
                            tsr_err *err)
{
    char worst[160];
    if (!tsr_until_is_set(&r->until) || done < r->next_look)
        return TSR_OK;
    r->next_look = done + done / 4 + 1;
    tsr_status status =
        tsr_until_check(&r->until, r->trace_path, finished, worst, err);
    if (status == TSR_OK && *finished) {
        tsr_log_progress(r->log, "");
        tsr_info(r->log, "converged as asked after %ld draws a chain (%s)",
                 done, worst);
    } else if (status == TSR_OK) {
        tsr_log_progress(r->log, "");
        tsr_debug(r->log, "%ld draws: not yet; %s", done, worst);
    }
    return status;
}

/* Advances in blocks of about two seconds; their size changes nothing. */
static tsr_status run_phase(run_state *r, const char *phase, long n_draw,
                            int warm, tsr_err *err)
{
    long thin = r->config->sampler.thin, done = 0;
    int chains = r->setup->n_chain, block = 1;
    long steps = chains * thin * tsr_target_n_temp(&r->setup->target);
    progress p = {.log = r->log,
                  .phase = phase,
                  .started = now_seconds(),
                  .total = n_draw * steps};
    tsr_status status = TSR_OK;
    int finished = 0;
    p.shown = p.started;
    while (done < n_draw && status == TSR_OK && !finished && !tsr_stop_asked) {
        int n = n_draw - done < block ? (int)(n_draw - done) : block, n_done;
        if (!warm && tsr_until_is_set(&r->until) && n > r->next_look - done)
            n = (int)(r->next_look - done); /* so that time decides nothing */
        double before = now_seconds();
        status = tsr_sampler_advance(r->sampler, r->record, n, thin, warm, tick,
                                     &p, &n_done, err);
        double took = now_seconds() - before;
        tsr_status written = tsr_record_write(r->record, r->trace, warm, n_done,
                                              status == TSR_OK ? err : NULL);
        if (status == TSR_OK)
            status = written;
        done += n_done;
        p.before += (long)n_done * steps;
        p.accepted_before = tsr_sampler_accepted(r->sampler);
        if (!warm && status == TSR_OK && done < n_draw)
            status = ask_until(r, done, &finished, err);
        if (took < 1.0 && 2 * block <= tsr_record_capacity(r->record))
            block *= 2;
        else if (took > 4.0 && block > 1)
            block /= 2;
    }
    if (tsr_log_is_terminal(r->log) && done == n_draw && n_draw > 0) {
        p.shown = 0.0; /* the line that stays says 100 % */
        tick(&p, &(tsr_progress){.chi2 = p.chi2});
    }
    tsr_log_progress(r->log, "");
    r->outcome.seconds += now_seconds() - p.started;
    r->outcome.steps += done * steps;
    if (!warm)
        r->outcome.n_draw = done;
    if (!warm && tsr_until_is_set(&r->until) && done == n_draw && !finished)
        tsr_warn(r->log, "not converged as asked (%s) after all %ld draws",
                 r->config->sampler.until, done);
    return status;
}

static tsr_status sample(run_state *r, tsr_err *err)
{
    const tsr_sampler_options *o = &r->config->sampler;
    long warm_draws = (o->warmup + o->thin - 1) / o->thin;
    tsr_sampler_plan_warmup(r->sampler, warm_draws * o->thin, o->anneal);
    tsr_status status = run_phase(r, "warm-up", warm_draws, 1, err);
    if (status == TSR_OK && !tsr_stop_asked && warm_draws > 0)
        tsr_tell_stuck(r->setup, r->sampler, r->outcome.start_chi2, r->log);
    tsr_sampler_counts_reset(r->sampler);
    if (status == TSR_OK)
        status = run_phase(r, "sampling", o->draws, 0, err);
    if (status == TSR_OK && !tsr_stop_asked) {
        tsr_tell_moves(r->setup, r->sampler, r->log);
        tsr_tell_ladder(r->setup, r->sampler, r->log);
        tsr_tell_times(r->sampler, r->log);
    }
    return status;
}

static tsr_status make_trace(run_state *r, const char *path, const char *text,
                             tsr_err *err)
{
    const tsr_trace_variable *variable;
    int n = tsr_record_variables(r->record, &variable);
    char seed[32];
    snprintf(seed, sizeof seed, "%ld", r->config->seed);
    char *sequence = tsr_topology_sequence(r->setup->topology);
    tsr_trace_attribute attribute[] = {
        {"config", text},
        {"seed", seed},
        {"sequence", sequence == NULL ? "" : sequence},
        {"q_unit", r->setup->q_unit_text},
        {"sigma", r->setup->sigma_text},
        {"engine", r->setup->engine_text == NULL ? "none: the prior alone"
                                                 : r->setup->engine_text}};
    tsr_status status = tsr_trace_create(path, r->setup->n_chain, n, variable,
                                         sizeof attribute / sizeof *attribute,
                                         attribute, &r->trace, err);
    free(sequence);
    return status == TSR_OK ? tsr_record_write_data(r->record, r->trace, err)
                            : status;
}

/* ---- begin and end ---- */

/* Draws a block may hold: as many as fit 256 MiB of curves, at most 64. */
static int block_capacity(const tsr_setup *setup, int chains)
{
    const double most = 256.0 * 1048576.0;
    double bytes = 0.0; /* a draw of all chains: three curves a data set */
    for (int d = 0; d < setup->n_data; d++)
        bytes += 3.0 * sizeof(double) * setup->saxs[d]->n * chains;
    return bytes * 64.0 <= most ? 64 : bytes < most ? (int)(most / bytes) : 1;
}

static tsr_status prepare(run_state *r, tsr_err *err)
{
    tsr_setup *s = r->setup;
    int chains = r->setup->n_chain;
    tsr_status status = tsr_record_new(
        &s->target, chains, block_capacity(s, chains), &r->record, err);
    if (status == TSR_OK)
        status = tsr_sampler_new(&s->target, chains, s->n_thread,
                                 &tsr_stop_asked, &r->sampler, err);
    if (status != TSR_OK)
        return tsr_config_blame(r->config, status, err);
    r->outcome.start_chi2 = tsr_chain_chi2(tsr_sampler_chain(r->sampler, 0));
    r->outcome.start_rg =
        tsr_conformation_rg(s->topology, s->first, s->form_factors->rg2);
    return TSR_OK;
}

/* The run's folder with everything it needs before the first step, or as it
 * was before. */
static tsr_status open_files(run_state *r, const char *trace, const char *log,
                             tsr_err *err)
{
    const char *directory = r->config->output.directory;
    char *text = NULL;
    int n_folder = 0;
    tsr_status status = tsr_config_text(r->config, &text, err);
    if (status == TSR_OK)
        status = tsr_run_directory_make(directory, text, &n_folder, err);
    if (status != TSR_OK) {
        free(text);
        return status;
    }
    status = tsr_run_directory_fill(directory, r->setup, err);
    if (status == TSR_OK)
        status = tsr_log_open(r->log, log, err);
    if (status == TSR_OK)
        status = make_trace(r, trace, text, err);
    if (status != TSR_OK) {
        tsr_trace_close(r->trace, NULL);
        r->trace = NULL;
        tsr_run_directory_undo(directory, n_folder);
    }
    free(text);
    return status;
}

static tsr_status run_in(run_state *r, FILE *out, tsr_err *err)
{
    const char *directory = r->config->output.directory;
    char *path = tsr_run_directory_file(directory, "trace.h5");
    char *log_path = tsr_run_directory_file(directory, "run.log");
    tsr_status status = path == NULL || log_path == NULL
                            ? tsr_fail(err, TSR_E_NOMEM, "out of memory")
                            : open_files(r, path, log_path, err);
    int is_open = status == TSR_OK;
    r->trace_path = path;
    if (status == TSR_OK) {
        tsr_info(
            r->log,
            "tessera %s, %d chains of %d temperatures, %d threads, into %s",
            TSR_VERSION, r->setup->n_chain,
            tsr_target_n_temp(&r->setup->target),
            tsr_sampler_n_thread(r->sampler), directory);
        tsr_tell_idle_moves(r->setup, r->log);
        status = sample(r, err);
    }
    tsr_status closed =
        tsr_trace_close(r->trace, status == TSR_OK ? err : NULL);
    r->trace = NULL;
    if (status == TSR_OK)
        status = closed;
    if (status == TSR_OK && tsr_stop_asked)
        status = tsr_fail(err, TSR_E_INTERRUPTED,
                          "interrupted; %ld of %ld draws a chain are in '%s'",
                          r->outcome.n_draw, r->config->sampler.draws, path);
    if (status == TSR_OK)
        status = tsr_run_report(r->config, &r->outcome, path, r->log, out, err);
    if (status != TSR_OK && is_open)
        tsr_log_keep(r->log, TSR_LOG_ERROR, err->message);
    free(path);
    free(log_path);
    return status;
}

/* An option in place of a key of the file. */
static tsr_status replace_text(const tsr_args *args, const char *option,
                               const char *key, char **text, tsr_config *config,
                               tsr_err *err)
{
    char place[32];
    if (tsr_args_count(args, option) == 0)
        return TSR_OK;
    char *copy = strdup(tsr_args_value(args, option));
    if (copy == NULL)
        return tsr_fail(err, TSR_E_NOMEM, "out of memory");
    free(*text);
    *text = copy;
    snprintf(place, sizeof place, "--%s", option);
    return tsr_yaml_marks_put(&config->marks, key, place, err);
}

static tsr_status apply_options(const tsr_args *args, tsr_config *config,
                                tsr_err *err)
{
    long threads = 0;
    if (tsr_args_count(args, "output") > 0 &&
        tsr_args_value(args, "output")[0] == '\0')
        return tsr_fail(err, TSR_E_USAGE, "--output is empty: name a folder");
    tsr_status status = replace_text(args, "output", "output.directory",
                                     &config->output.directory, config, err);
    if (status == TSR_OK)
        status = replace_text(args, "device", "device.use", &config->device.use,
                              config, err);
    if (status == TSR_OK)
        status = replace_text(args, "until", "sampler.until",
                              &config->sampler.until, config, err);
    if (status == TSR_OK)
        status = tsr_args_long(args, "threads", 1, 4096, &threads, err);
    if (tsr_args_count(args, "prior-only") > 0)
        tsr_config_drop_data(config); /* its config.yaml says what was done */
    if (status == TSR_OK && threads > 0)
        config->device.threads = (tsr_number_or_word){-1, (double)threads};
    return status;
}

static tsr_status run(const tsr_args *args, FILE *out, tsr_log *log,
                      tsr_err *err)
{
    const char *const *argument, *const *set;
    tsr_config config;
    tsr_setup setup = {0};
    run_state r = {.config = &config, .setup = &setup, .log = log};
    tsr_log_hold(log);
    tsr_args_arguments(args, &argument);
    int n_set = tsr_args_values(args, "set", &set);
    int dry = tsr_args_count(args, "dry-run") > 0;
    int ignore_hang_up = tsr_hang_up_is_ignored();
    tsr_status status = tsr_config_read(argument[0], n_set, set, &config, err);
    if (status == TSR_OK)
        status = apply_options(args, &config, err);
    /* Refused before the work, and again when the folder is made. */
    if (status == TSR_OK)
        status = tsr_config_blame(
            &config, tsr_run_directory_check(config.output.directory, err),
            err);
    r.next_look = 100;
    if (status == TSR_OK)
        status = tsr_config_blame(
            &config, tsr_until_parse(config.sampler.until, &r.until, err), err);
    if (status == TSR_OK)
        status = tsr_setup_read(&config, 1, log, &setup, err);
    if (status == TSR_OK)
        status = tsr_setup_engine(&config, 0, log, &setup, err);
    if (status == TSR_OK && dry) {
        tsr_run_plan(&config, &setup, out);
    } else if (status == TSR_OK) {
        tsr_interrupt_catch(ignore_hang_up);
        status = prepare(&r, err);
        if (status == TSR_OK)
            status = run_in(&r, out, err);
    }
    tsr_sampler_free(r.sampler);
    tsr_record_free(r.record);
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
