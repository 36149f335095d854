/* A run's files, from the first to the last. Drawing is in run_sample.c. */
#include "session/run_session.h"

#include "core/clock.h"
#include "core/interrupt.h"
#include "core/text.h"
#include "files/file.h"
#include "session/run_directory.h"
#include "session/run_tell.h"

#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

/* What a new run has made, as bits: number k is that of the k-th name that
 * undo() knows. */
enum {
    MADE_MODEL = 1,
    MADE_LOG = 2,
    MADE_CHECKPOINT = 4,
    MADE_CONFIG = 8,
    MADE_INPUT = 16
};

/* s, between two commits of the trace: what `tessera status` may lag behind. */
static const double FLUSH_EVERY = 2.0;

long tsr_session_warmup(const tsr_config *config)
{
    const tsr_sampler_options *o = &config->sampler;
    return (o->warmup + tsr_sampler_thin(o) - 1) / tsr_sampler_thin(o);
}

tsr_track_options tsr_session_track_options(const tsr_config *config)
{
    int content = config->output.trajectory; /* all, atoms, bodies, none */
    return (tsr_track_options){.atoms = content == 0 || content == 1,
                               .bodies = content == 0 || content == 2,
                               .every = config->output.trajectory_every};
}

static int has_track(const tsr_config *config)
{
    tsr_track_options o = tsr_session_track_options(config);
    return o.atoms || o.bodies;
}

/* Draws a block may hold: as many as fit 256 MiB, at most 64. */
static int block_capacity(const tsr_session *s)
{
    const double most = 256.0 * 1048576.0;
    tsr_track_options track = tsr_session_track_options(s->config);
    double bytes = 1.0; /* a draw of all chains: three curves a data set */
    const tsr_likelihood *l = s->setup->likelihood;
    for (int d = 0; l != NULL && d < l->n_term; d++)
        bytes += 3.0 * sizeof(double) * l->term[d]->n_point * s->setup->n_chain;
    if (has_track(s->config))
        bytes +=
            tsr_track_draw_bytes(&s->setup->target, s->setup->n_chain, &track);
    return bytes * 64.0 <= most ? 64 : bytes < most ? (int)(most / bytes) : 1;
}

/* Trajectories are open all the time, a file a chain and state: as many as the
 * system lets a process have. Where that is not enough, opening one says so. */
static void allow_files(void)
{
    struct rlimit files;
    if (getrlimit(RLIMIT_NOFILE, &files) != 0)
        return;
    files.rlim_cur = files.rlim_max;
    (void)setrlimit(RLIMIT_NOFILE, &files);
}

tsr_status tsr_session_prepare(tsr_session *session, tsr_err *err)
{
    tsr_session *s = session;
    tsr_setup *setup = s->setup;
    int capacity = block_capacity(s);
    allow_files();
    s->directory = strdup(s->config->output.directory);
    s->trace_path =
        tsr_run_directory_file(s->config->output.directory, "trace.h5");
    tsr_status status =
        s->directory == NULL || s->trace_path == NULL
            ? tsr_no_memory(err)
            : tsr_until_parse(s->config->sampler.until, &s->until, err);
    if (status == TSR_OK && s->config->sampler.start == TSR_START_PRIOR)
        status = tsr_setup_draw_starts(s->is_resumed, s->log, s->setup, err);
    TSR_THEN(status, tsr_record_new(&setup->target, setup->n_chain, capacity,
                                    &s->record, err));
    if (status == TSR_OK && has_track(s->config))
        status =
            tsr_track_new(&setup->target, setup->n_chain, capacity,
                          tsr_session_track_options(s->config), &s->track, err);
    TSR_THEN(status,
             tsr_sampler_new(&setup->target, setup->n_chain, setup->n_thread,
                             &tsr_stop_asked, &s->sampler, err));
    TSR_THEN(status, tsr_run_inputs_text(s->config, &s->config_text, err));
    if (status != TSR_OK)
        return tsr_config_blame(s->config, status, err);
    tsr_sampler_set_track(s->sampler, s->track);
    s->identity = tsr_run_identity_of(setup);
    s->place.next_look = 100;
    s->place.start_chi2 =
        setup->target.n_group > 0
            ? setup->first_chi2
            : tsr_chain_chi2(tsr_sampler_chain(s->sampler, 0));
    s->place.start_rg = tsr_conformation_rg(setup->topology, setup->first,
                                            setup->form_factors->rg2);
    return TSR_OK;
}

/* ---- a new run ---- */

enum { OWN = 8, MOST_NOTES = 64 }; /* attributes of the trace */

/* What the terms decided about their data. Returns how many notes. */
static int add_notes(const tsr_likelihood *l, char (*name)[48],
                     tsr_trace_attribute *attribute)
{
    int n = 0;
    for (int d = 0; l != NULL && d < l->n_term; d++) {
        const tsr_term *term = l->term[d];
        const char *text = NULL, *own;
        for (int k = 0; term->type->note != NULL && n < MOST_NOTES &&
                        (own = term->type->note(term, k, &text)) != NULL;
             k++, n++) {
            tsr_term_variable(term->type, term->ordinal, own, sizeof name[n],
                              name[n]);
            attribute[n] = (tsr_trace_attribute){name[n], text};
        }
    }
    return n;
}

/* Names of parameters that the chains sample under flat priors, which nothing
 * normalises. */
static void name_flat(const tsr_likelihood *l, size_t size, char *text)
{
    size_t used = 0;
    text[0] = '\0';
    for (int d = 0; l != NULL && d < l->n_term; d++)
        for (int i = 0; i < l->term[d]->n_parameter && used < size; i++) {
            const tsr_parameter *p = &l->term[d]->parameter[i];
            if (p->shape == TSR_PRIOR_FLAT && p->step != TSR_STEP_NONE)
                used += (size_t)snprintf(text + used, size - used, "%s%s",
                                         used > 0 ? " " : "", p->name);
        }
}

static tsr_status make_trace(tsr_session *s, tsr_err *err)
{
    const tsr_trace_variable *variable;
    int n = tsr_record_variables(s->record, &variable);
    char seed[32], flat[256], groups[32];
    snprintf(seed, sizeof seed, "%ld", s->config->seed);
    snprintf(groups, sizeof groups, "%d", s->setup->target.n_group);
    name_flat(s->setup->likelihood, sizeof flat, flat);
    char *sequence = tsr_topology_sequence(s->setup->topology);
    char *rigid = tsr_setup_rigid_text(s->setup);
    tsr_trace_attribute attribute[OWN + MOST_NOTES] = {
        {"config", s->config_text},
        {"seed", seed},
        {"sequence", sequence == NULL ? "" : sequence},
        {"flat_priors", flat},
        {"chain_groups", groups},
        {"rigid_fit", rigid == NULL ? "[]" : rigid},
        {"model_error", s->setup->model_error_text == NULL
                            ? "none"
                            : s->setup->model_error_text},
        {"engine", s->setup->engine_text == NULL ? "none: no term needs one"
                                                 : s->setup->engine_text}};
    char name[MOST_NOTES][48];
    int n_attribute =
        OWN + add_notes(s->setup->likelihood, name, attribute + OWN);
    tsr_status status =
        tsr_trace_create(s->trace_path, s->setup->n_chain, n, variable,
                         n_attribute, attribute, &s->trace, err);
    free(sequence);
    free(rigid);
    return status == TSR_OK ? tsr_record_write_data(s->record, s->trace, err)
                            : status;
}

static tsr_status open_log(const tsr_session *s, tsr_err *err)
{
    char *path = tsr_run_directory_file(s->directory, "run.log");
    tsr_status status = tsr_allocated(path, err);
    TSR_THEN(status, tsr_log_open(s->log, path, err));
    free(path);
    return status;
}

/* Everything from the model to the first draw; `made`: what an undo has to take
 * away by its name. The checkpoint goes first: where it is, the others can be
 * made again, and a trace without one holds draws. */
static tsr_status make_files(tsr_session *s, unsigned *made, tsr_err *err)
{
    tsr_status status = tsr_run_directory_fill(s->directory, s->setup, err);
    *made |= MADE_MODEL;
    if (status == TSR_OK) {
        *made |= MADE_LOG;
        status = open_log(s, err);
    }
    if (status == TSR_OK) {
        *made |= MADE_CHECKPOINT;
        status = tsr_session_checkpoint(s, err);
    }
    TSR_THEN(status, make_trace(s, err));
    if (status == TSR_OK && s->track != NULL)
        status = tsr_track_create(s->track, s->directory, err);
    return status;
}

static void remove_file(const tsr_session *s, const char *name)
{
    char *path = tsr_run_directory_file(s->directory, name);
    if (path != NULL)
        unlink(path);
    free(path);
}

/* Takes away what this process made, and nothing else. */
static void undo(tsr_session *s, unsigned made, int n_folder,
                 const char *waiting)
{
    static const char *const name[] = {"model.pdb", "run.log", "checkpoint.h5",
                                       "config.yaml"};
    if (s->trace != NULL) {
        tsr_trace_close(s->trace, NULL);
        s->trace = NULL;
        unlink(s->trace_path);
    }
    if (s->track != NULL)
        tsr_track_remove(s->track, s->directory, 1);
    for (int k = 0; k < 4; k++)
        if (made & 1u << k)
            remove_file(s, name[k]);
    char *input = tsr_run_directory_file(s->directory, "input");
    if (input != NULL && made & MADE_INPUT)
        tsr_run_directory_remove(input);
    else if (waiting != NULL)
        tsr_run_directory_remove(waiting);
    free(input);
    tsr_run_directory_undo(s->directory, n_folder);
    tsr_lock_free(s->lock);
    s->lock = NULL;
}

tsr_status tsr_session_begin(tsr_session *session, tsr_err *err)
{
    tsr_session *s = session;
    int n_folder = 0;
    unsigned made = 0;
    char *waiting = NULL;
    TSR_TRY(tsr_run_directory_make(s->directory, &n_folder, &s->lock, err));
    tsr_status status =
        tsr_run_inputs_copy(s->config, s->directory, &waiting, err);
    TSR_THEN(status,
             tsr_run_directory_claim(s->directory, s->config_text, err));
    if (status == TSR_OK) {
        made |= MADE_CONFIG;
        if (waiting != NULL)
            status = tsr_run_inputs_place(s->directory, waiting, err);
    }
    if (status == TSR_OK) {
        made |= waiting != NULL ? MADE_INPUT : 0;
        status = make_files(s, &made, err);
    }
    if (status != TSR_OK)
        undo(s, made, n_folder, waiting);
    free(waiting);
    return status;
}

/* ---- a run that goes on ---- */

static tsr_status reopen_trace(tsr_session *s, tsr_err *err)
{
    const tsr_trace_variable *variable;
    int n = tsr_record_variables(s->record, &variable);
    int keep[TSR_TRACE_N_GROUP];
    for (int g = 0; g < TSR_TRACE_N_GROUP; g++)
        keep[g] = (int)(g == TSR_TRACE_WARMUP_POSTERIOR ||
                                g == TSR_TRACE_WARMUP_SAMPLE_STATS
                            ? s->place.warmup
                            : s->place.draws);
    TSR_TRY(tsr_run_trace_match(s->trace_path, s->config_text, err));
    return tsr_trace_reopen(s->trace_path, s->setup->n_chain, n, variable, keep,
                            &s->trace, err);
}

static tsr_status rewrite_config(const tsr_session *s, tsr_err *err)
{
    char *path = tsr_run_directory_file(s->directory, "config.yaml");
    tsr_status status = tsr_allocated(path, err);
    TSR_THEN(status, tsr_file_replace(path, s->config_text,
                                      strlen(s->config_text), err));
    free(path);
    return status;
}

tsr_status tsr_session_begin_again(tsr_session *session, tsr_err *err)
{
    unsigned made = 0;
    TSR_TRY(rewrite_config(session, err));
    return make_files(session, &made, err);
}

/* Nothing is stored yet: what there is of the files may be half made. */
static tsr_status remake_files(tsr_session *s, tsr_err *err)
{
    unlink(s->trace_path);
    TSR_TRY(make_trace(s, err));
    if (s->track != NULL) {
        tsr_track_remove(s->track, s->directory, 0);
        TSR_TRY(tsr_track_create(s->track, s->directory, err));
    }
    return TSR_OK;
}

static tsr_status reopen_files(tsr_session *s, tsr_err *err)
{
    if (s->place.warmup == 0 && s->place.draws == 0)
        return remake_files(s, err);
    TSR_TRY(reopen_trace(s, err));
    if (s->track != NULL)
        TSR_TRY(tsr_track_reopen(s->track, s->directory, s->place.draws, err));
    return TSR_OK;
}

/* With draws of all atoms chains learn their likelihood, too. */
static tsr_status archive(tsr_session *s, tsr_err *err)
{
    tsr_sampler_archive(s->sampler, &s->saved);
    return s->setup->atom_target != NULL
               ? tsr_likelihood_archive(s->setup->likelihood, &s->saved, err)
               : TSR_OK;
}

tsr_status tsr_session_restore(tsr_session *session, tsr_err *err)
{
    tsr_session *s = session;
    s->place = s->saved_place;
    s->place.is_finished = s->place.is_converged = 0; /* it is extended */
    tsr_archive_rewind(&s->saved);
    TSR_TRY(archive(s, err));
    if (s->setup->atom_target != NULL && s->setup->surrogate != NULL)
        TSR_TRY(tsr_surrogate_update(s->setup->surrogate, err));
    tsr_status status = tsr_archive_end(&s->saved, err);
    if (status != TSR_OK)
        return tsr_wrap(err, status,
                        "the checkpoint does not fit this run (another version "
                        "of tessera?)");
    status = open_log(s, err);
    TSR_THEN(status, reopen_files(s, err));
    TSR_THEN(status, rewrite_config(s, err));
    return status;
}

/* ---- checkpoints ---- */

/* When to write again what took so long: after `every` seconds, or later where
 * that would be more than 2 % of the time. */
static double next_time(double now, double took, double every)
{
    const double share = 0.02;
    return now + (took / share > every ? took / share : every);
}

tsr_status tsr_session_flush(tsr_session *session, tsr_err *err)
{
    tsr_session *s = session;
    double before = tsr_clock_s();
    tsr_status status = tsr_trace_flush(s->trace, err);
    double now = tsr_clock_s();
    s->next_flush = next_time(now, now - before, FLUSH_EVERY);
    s->storing += now - before;
    s->is_broken |= status != TSR_OK;
    return status;
}

tsr_status tsr_session_save(tsr_session *session, tsr_err *err)
{
    tsr_session *s = session;
    tsr_archive_begin(&s->saved);
    TSR_TRY(archive(s, err));
    s->saved_place = s->place;
    return tsr_archive_end(&s->saved, err);
}

tsr_status tsr_session_checkpoint(tsr_session *session, tsr_err *err)
{
    tsr_session *s = session;
    double before = tsr_clock_s();
    tsr_status status = TSR_OK;
    if (s->saved.n_real == 0)
        status = tsr_session_save(s, err);
    const int has_files = s->trace != NULL; /* not yet, before the first */
    if (status == TSR_OK && has_files)
        status = tsr_trace_flush(s->trace, err);
    if (status == TSR_OK && has_files && s->track != NULL)
        status = tsr_track_flush(s->track, err);
    s->saved_place.is_finished = s->place.is_finished;
    s->saved_place.is_converged = s->place.is_converged;
    s->saved_place.expected = s->place.expected;
    const tsr_run_checkpoint checkpoint = {.place = s->saved_place,
                                           .identity = s->identity,
                                           .text = s->config_text,
                                           .engine = s->setup->engine_text,
                                           .saved = s->saved};
    TSR_THEN(status, tsr_run_checkpoint_write(s->directory, &checkpoint, err));
    double now = tsr_clock_s();
    s->next_checkpoint =
        next_time(now, now - before, s->config->output.checkpoint_every);
    s->next_flush = next_time(now, 0.0, FLUSH_EVERY);
    s->storing += now - before;
    return status;
}

/* ---- the end ---- */

tsr_status tsr_session_check_stop(const tsr_session *session, tsr_status status,
                                  tsr_err *err)
{
    char word[TSR_SHELL_SIZE];
    if (!tsr_stop_asked || (status != TSR_OK && status != TSR_E_INTERRUPTED))
        return status;
    if (session->lock != NULL) /* it is resumed */
        return tsr_fail(
            err, TSR_E_INTERRUPTED,
            "interrupted before the first draw; to go on: tessera resume %s",
            tsr_text_shell(session->config->output.directory, word));
    if (status == TSR_OK)
        tsr_fail(err, TSR_E_INTERRUPTED, "interrupted before the first draw");
    return tsr_wrap(err, TSR_E_INTERRUPTED,
                    "nothing was written, start it again");
}

tsr_status tsr_session_read(tsr_session *session, tsr_err *err)
{
    tsr_session *s = session;
    tsr_config *c = s->config;
    /* Refused before the work, and again when the folder is made. */
    TSR_TRY(tsr_config_blame(
        c, tsr_run_directory_check(c->output.directory, err), err));
    TSR_TRY(tsr_config_blame(
        c, tsr_until_parse(c->sampler.until, &s->until, err), err));
    return tsr_session_check_stop(
        s, tsr_setup_read(c, 1, s->log, s->setup, err), err);
}

tsr_status tsr_session_run(tsr_session *session, tsr_err *err)
{
    tsr_session *s = session;
    tsr_status status =
        tsr_session_check_stop(s, tsr_session_prepare(s, err), err);
    TSR_THEN(status, tsr_session_begin(s, err));
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
    if (status != TSR_OK)
        tsr_log_keep(s->log, TSR_LOG_ERROR, err->message);
    return status;
}

void tsr_session_clear(tsr_session *session)
{
    tsr_session *s = session;
    tsr_sampler_free(s->sampler);
    tsr_trace_close(s->trace, NULL);
    tsr_track_free(s->track);
    tsr_record_free(s->record);
    tsr_archive_clear(&s->saved);
    tsr_lock_free(s->lock);
    free(s->config_text);
    free(s->trace_path);
    free(s->directory);
    memset(s, 0, sizeof *s);
}
