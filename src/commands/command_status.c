/* tessera status DIR: shows the progress of a run from its files, without
 * disturbing it. Speed and remaining time are those of the last checkpoint. */
#include "commands/command.h"
#include "session/run_checkpoint.h"
#include "session/run_directory.h"
#include "session/run_session.h"

#include "core/json.h"
#include "core/text.h"
#include "files/lock.h"
#include "store/trace.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

typedef struct {
    int json;
} options;

static const tsr_field fields[] = {TSR_OPTION_JSON(options), {0}};

typedef struct {
    const char *state; /* running, finished, interrupted */
    tsr_lock_holder holder;
    tsr_config config;
    tsr_run_checkpoint at;
    int has_checkpoint;
    char why_not[TSR_ERR_SIZE]; /* no checkpoint */
    tsr_run_progress now;       /* including the draws of the trace */
    double accepted, chi2; /* of the last tenth of the draws; NaN: unknown */
} run_status;

/* Mean of a variable over all chains and the last tenth of the draws; NaN where
 * absent. */
static double last_mean(tsr_trace_reader *reader, tsr_trace_group group,
                        const char *name)
{
    int n_chain, n_draw, n;
    double *value, sum = 0.0;
    if (tsr_trace_get(reader, group, name, &n_chain, &n_draw, &n, &value,
                      NULL) != TSR_OK)
        return (double)NAN;
    int last = n_draw / 10 + 1;
    for (int c = 0; c < n_chain && n == 1 && n_draw > 0; c++)
        for (int d = n_draw - last; d < n_draw; d++)
            sum += value[(size_t)c * (size_t)n_draw + (size_t)d];
    free(value);
    return n == 1 && n_draw > 0 ? sum / ((double)last * n_chain) : (double)NAN;
}

static tsr_status read_trace_status(const char *directory, run_status *s,
                                    tsr_err *err)
{
    tsr_trace_reader *reader = NULL;
    const tsr_path path = tsr_path_in(directory, "trace.h5");
    const tsr_status status = tsr_trace_open(path.text, &reader, err);
    if (status == TSR_OK) {
        s->now.warmup = tsr_trace_n_draw(reader, TSR_TRACE_WARMUP_POSTERIOR);
        s->now.draws = tsr_trace_n_draw(reader, TSR_TRACE_POSTERIOR);
        int warm = s->now.draws == 0;
        s->accepted = last_mean(reader,
                                warm ? TSR_TRACE_WARMUP_SAMPLE_STATS
                                     : TSR_TRACE_SAMPLE_STATS,
                                "acceptance_rate");
        s->chi2 = last_mean(
            reader, warm ? TSR_TRACE_WARMUP_POSTERIOR : TSR_TRACE_POSTERIOR,
            "chi2");
    }
    tsr_trace_reader_free(reader);
    return status;
}

/* If the trace has more draws than the checkpoint, the steps since then are
 * assumed to take as long as those before. Impossible numbers in a damaged file
 * stay unchanged. */
static void extrapolate_progress(run_status *s)
{
    const tsr_run_progress *then = &s->at.progress;
    tsr_run_progress *now = &s->now;
    const long most = 1L << 40;
    if (then->steps <= 0 || then->steps > most || then->warmup < 0 ||
        then->warmup > most || then->draws < 0 || then->draws > most)
        return;
    const long more = now->warmup + now->draws - then->warmup - then->draws;
    now->steps += more * tsr_run_draw_steps(&s->config, &s->at.identity);
    now->seconds *= (double)now->steps / (double)then->steps;
}

static tsr_status read_status(const char *directory, run_status *s,
                              tsr_err *err)
{
    tsr_err why = {0};
    s->accepted = s->chi2 = (double)NAN;
    const tsr_path path = tsr_path_in(directory, "config.yaml");
    tsr_status status = tsr_run_directory_require(directory, err);
    TSR_THEN(status, tsr_lock_query(directory, &s->holder, err));
    TSR_THEN(status, tsr_config_read(path.text, 0, NULL, &s->config, err));
    if (status == TSR_OK) {
        s->has_checkpoint =
            tsr_run_checkpoint_read(directory, 0, &s->at, &why) == TSR_OK;
        snprintf(s->why_not, sizeof s->why_not, "%s", why.message);
        s->now = s->at.progress;
        status = read_trace_status(directory, s, err);
        extrapolate_progress(s);
        if (status == TSR_E_NOINPUT) /* stopped before the first checkpoint */
            status = TSR_OK;
    }
    s->state = s->holder.is_held ? "running"
               : s->has_checkpoint && s->at.progress.is_finished
                   ? "finished"
                   : "interrupted";
    return status;
}

/* Speed of the whole run, without warm-up and interruptions; NaN before the
 * first steps. */
static double steps_a_second(const run_status *s)
{
    const tsr_run_progress *p = &s->at.progress;
    return s->has_checkpoint && p->seconds > 0.0 ? (double)p->steps / p->seconds
                                                 : (double)NAN;
}

/* Time since a UTC time in ISO 8601, ", 4 s ago"; "" where it cannot be parsed.
 */
static const char *age(const char *written_at, char text[48])
{
    struct tm t = {0}, utc;
    time_t now = time(NULL);
    if (sscanf(written_at, "%d-%d-%dT%d:%d:%d", &t.tm_year, &t.tm_mon,
               &t.tm_mday, &t.tm_hour, &t.tm_min, &t.tm_sec) != 6)
        return "";
    t.tm_year -= 1900, t.tm_mon -= 1;
    gmtime_r(&now, &utc); /* both converted as local times, so that the
                             difference is right */
    t.tm_isdst = utc.tm_isdst = 0;
    const double ago = difftime(mktime(&utc), mktime(&t));
    snprintf(text, 48,
             ago < 0.0 ? ", by a clock ahead of this one" : ", %.0f s ago",
             ago);
    return text;
}

static void print_number(FILE *out, const char *name, double value,
                         const char *unit)
{
    if (!isnan(value))
        fprintf(out, "  %-11s %.4g%s\n", name, value, unit);
}

static void print(const run_status *s, const char *directory, FILE *out)
{
    char ago[48], left[48], draws[80], word[TSR_SHELL_SIZE];
    fprintf(out, "run in '%s'\n  %-11s %s", directory, "state", s->state);
    if (s->holder.is_held)
        fprintf(out, " on %s, process %ld, since %s", s->holder.host,
                s->holder.pid, s->holder.since);
    fprintf(out, "\n  %-11s %ld of %ld draws\n", "warm-up", s->now.warmup,
            tsr_run_warmup_expected(&s->config, &s->now));
    tsr_sampler_draws_text(&s->config.sampler, s->now.draws, draws);
    fprintf(out, "  %-11s %s", "sampling", draws);
    if (s->has_checkpoint)
        fprintf(out, ", %ld chain%s", (long)s->at.identity.n_chain,
                s->at.identity.n_chain == 1 ? "" : "s");
    fputc('\n', out);
    print_number(out, "speed", steps_a_second(s), " steps/s");
    const double seconds =
        tsr_run_remaining(&s->config, &s->at.identity, &s->now, left);
    if (isfinite(seconds) && seconds > 0.0)
        fprintf(out, "  %-11s %s%s\n", "time left", left,
                s->holder.is_held ? "" : ", once it is resumed");
    print_number(out, "accepted", 100.0 * s->accepted, " %");
    print_number(out, "chi2", s->chi2, "");
    if (s->has_checkpoint)
        fprintf(out, "  %-11s %s%s: %ld draws of warm-up, %ld kept\n",
                "checkpoint", s->at.written_at, age(s->at.written_at, ago),
                s->at.progress.warmup, s->at.progress.draws);
    else
        fprintf(out, "  %-11s none: %s\n", "checkpoint", s->why_not);
    if (s->at.remark != NULL)
        fprintf(out, "  %-11s %s\n", "", s->at.remark);
    if (strcmp(s->state, "interrupted") == 0 && s->has_checkpoint)
        fprintf(out, "  %-11s tessera resume %s\n", "to go on",
                tsr_text_shell(directory, word));
}

static void write_part(tsr_json *j, const char *key, long done, long planned)
{
    tsr_json_object(j, key);
    tsr_json_members(j, "done %ld planned %ld", done, planned);
    tsr_json_close(j);
}

static void print_json(const run_status *s, FILE *out)
{
    const tsr_run_checkpoint *at = &s->at;
    tsr_json j = {.out = out};
    char left[48];
    tsr_json_object(&j, NULL);
    tsr_json_text(&j, "state", s->state);
    if (s->holder.is_held)
        tsr_json_members(&j, "host %s pid %ld since %s", s->holder.host,
                         s->holder.pid, s->holder.since);
    write_part(&j, "warmup", s->now.warmup,
               tsr_run_warmup_expected(&s->config, &s->now));
    write_part(&j, "draws", s->now.draws,
               tsr_sampler_draws(&s->config.sampler));
    if (s->has_checkpoint) {
        tsr_json_members(&j, "chains %ld", (long)at->identity.n_chain);
        tsr_json_object(&j, "checkpoint");
        tsr_json_members(&j, "written_at %s warmup %ld draws %ld is_newest %i",
                         at->written_at, at->progress.warmup,
                         at->progress.draws, at->remark == NULL);
        tsr_json_close(&j);
    } else {
        tsr_json_text(&j, "checkpoint", NULL);
    }
    tsr_json_members(
        &j, "steps_per_second %g seconds_left %g acceptance_rate %g chi2 %g",
        steps_a_second(s),
        tsr_run_remaining(&s->config, &at->identity, &s->now, left),
        s->accepted, s->chi2);
    tsr_json_close(&j);
}

static tsr_status status_of(const tsr_args *args, FILE *out, tsr_log *log,
                            tsr_err *err)
{
    const options *o = args->options;
    run_status s = {.accepted = (double)NAN, .chi2 = (double)NAN};
    (void)log;
    tsr_status status = read_status(args->argument[0], &s, err);
    if (status == TSR_OK && o->json)
        print_json(&s, out);
    else if (status == TSR_OK)
        print(&s, args->argument[0], out);
    tsr_run_checkpoint_clear(&s.at);
    tsr_config_clear(&s.config);
    return status;
}

const tsr_command tsr_command_status = {
    .name = "status",
    .doc = "show the progress of a run",
    .arguments = "DIR",
    .options = fields,
    .size = sizeof(options),
    .about = "The run may be active, on this or another machine that shares "
             "the folder; it is not disturbed. After a kill, draws in "
             "draws.log are merged into trace.h5.",
    .run = status_of};
