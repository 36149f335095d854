/* Drawing: warm-up, then what is kept, block by block, with checkpoints. */
#include "analysis/evidence.h"
#include "core/clock.h"
#include "core/interrupt.h"
#include "core/text.h"
#include "session/run_session.h"
#include "session/run_tell.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* Draws between two refreshes: as many steps as there are bodies (200 to 2000),
 * so that computing afresh costs some 2 % of the time and little is lost. */
static long epoch_length(const tsr_config *config, const tsr_setup *setup)
{
    long n_body = setup->topology->n_body;
    long steps = n_body < 200 ? 200 : n_body > 2000 ? 2000 : n_body;
    return (steps + tsr_sampler_thin(&config->sampler) - 1) /
           tsr_sampler_thin(&config->sampler);
}

/* ---- progress ---- */

typedef struct {
    const tsr_session *session;
    const char *phase;
    double began, shown, block; /* the phase here; the last line; this call */
    long first, before, total;  /* steps of the phase: stored before this
                                   session, before this call, planned */
    long accepted_before;
    double chi2;
    char reached[64]; /* of what is asked for; "": not known yet */
} progress;

static void tick(void *context, const tsr_progress *now)
{
    progress *p = context;
    double time = tsr_clock_s(), elapsed = time - p->began;
    tsr_log *log = p->session->log;
    double pause = tsr_log_is_terminal(log) ? 0.2 : 10.0;
    p->chi2 = now->chi2;
    if (time - p->shown < pause)
        return;
    p->shown = time;
    long step = p->before + now->step, here = step - p->first;
    double rate = elapsed > 0.0 ? (double)here / elapsed : 0.0;
    double accepted =
        here > 0 ? 100.0 * (double)(p->accepted_before + now->accepted) /
                       (double)here
                 : 0.0;
    char line[256], left[48], chi2[32] = "";
    if (!isnan(now->chi2))
        snprintf(chi2, sizeof chi2, " | chi2 %.3g", now->chi2);
    tsr_run_place at = p->session->place;
    at.steps += now->step;
    at.seconds += time - p->block;
    tsr_run_left(p->session->config, &p->session->identity, &at, left);
    if (p->total == 0) /* nobody knows how many */
        snprintf(line, sizeof line,
                 "%-8s %.0f s | %.0f steps/s | accepted %.0f %%%s", p->phase,
                 elapsed, rate, accepted, chi2);
    else
        snprintf(line, sizeof line,
                 "%-8s %3.0f %% | %.0f steps/s | accepted %.0f %%%s%s | %s "
                 "left",
                 p->phase, 100.0 * (double)step / (double)p->total, rate,
                 accepted, chi2, p->reached, left);
    tsr_log_progress(log, line);
}

/* All draws are there, or the time for them is over. */
static int is_over(const tsr_session *s)
{
    const tsr_sampler_options *o = &s->config->sampler;
    enum { LEAST = 4 }; /* from which convergence can be told */
    return s->place.draws >= tsr_sampler_draws(o) ||
           (o->time_limit > 0.0 && s->place.draws >= LEAST &&
            s->place.seconds >= o->time_limit);
}

/* Steps that the phase will have: all, or as many as it takes at this rate. */
static void expect(progress *p, tsr_session *s, double far)
{
    const double most = (double)tsr_sampler_draws(&s->config->sampler);
    const double needed = far * (double)s->place.draws;
    const long draws =
        (long)fmin(most, fmax(needed, (double)s->place.next_look));
    s->place.expected = s->place.warmup + draws;
    p->total = draws * tsr_run_draw_steps(s->config, &s->identity);
    snprintf(p->reached, sizeof p->reached, " | %.0f %% of convergence",
             100.0 / far);
}

/* ---- blocks ---- */

/* Every quarter more draws, from 100 on. */
static long look_after(long look)
{
    return look + look / 4 + 1;
}

/* Whether the chains have converged as asked. The progress line then says how
 * far the slowest variable is, and how long it may take at this rate. */
static tsr_status ask_until(tsr_session *s, progress *p, tsr_err *err)
{
    char worst[160];
    double far;
    long done = s->place.draws;
    if (!tsr_until_is_set(&s->until) ||
        (done < s->place.next_look && !is_over(s)))
        return TSR_OK;
    s->place.next_look = look_after(done);
    tsr_status status = tsr_session_flush(s, err);
    TSR_THEN(status,
             tsr_until_check(&s->until, s->trace_path, &far, worst, err));
    s->place.is_converged = status == TSR_OK && far <= 1.0;
    if (s->place.is_converged) {
        tsr_log_progress(s->log, "");
        tsr_info(s->log, "converged as asked after %ld draws a chain (%s)",
                 done, worst);
    } else if (status == TSR_OK) {
        tsr_log_progress(s->log, "");
        tsr_debug(s->log, "%ld draws: not yet; %s", done, worst);
        expect(p, s, far);
    }
    return status;
}

/* What was drawn goes to the files. */
static tsr_status store(tsr_session *s, int warm, int n, tsr_err *err)
{
    double before = tsr_clock_s();
    tsr_status status = tsr_record_write(s->record, s->trace, warm, n, err);
    if (status == TSR_OK && !warm && s->track != NULL)
        status = tsr_track_write(s->track, n, err);
    s->is_broken |= status != TSR_OK;
    double now = tsr_clock_s();
    s->storing += now - before;
    return status == TSR_OK && now >= s->next_flush ? tsr_session_flush(s, err)
                                                    : status;
}

/* Draws n of a phase and stores what all chains completed. */
static tsr_status advance(tsr_session *s, int warm, int n, progress *p,
                          tsr_err *err)
{
    long thin = tsr_sampler_thin(&s->config->sampler);
    const long steps = tsr_run_draw_steps(s->config, &s->identity);
    const double before = p->block = tsr_clock_s();
    int n_done;
    if (s->track != NULL)
        tsr_track_begin(s->track, s->place.draws);
    tsr_status status = tsr_sampler_advance(s->sampler, s->record, n, thin,
                                            warm, tick, p, &n_done, err);
    s->place.seconds += tsr_clock_s() - before;
    tsr_status stored = store(s, warm, n_done, status == TSR_OK ? err : NULL);
    *(warm ? &s->place.warmup : &s->place.draws) += n_done;
    s->place.steps += (long)n_done * steps;
    p->before += (long)n_done * steps;
    p->accepted_before =
        tsr_sampler_accepted(s->sampler) - s->accepted_before_session;
    return status == TSR_OK ? stored : status;
}

/* All chains afresh, which finds a device that computed wrongly before. */
static tsr_status refresh(tsr_session *s, tsr_err *err)
{
    double before = tsr_clock_s();
    tsr_status status = tsr_sampler_refresh(s->sampler, err);
    s->place.seconds += tsr_clock_s() - before;
    return status;
}

/* At the beginning of an epoch: all chains afresh, then the state that a
 * checkpoint would hold, in this order, so that it holds no state that a wrong
 * device led to. Checkpoints are written here when it is time. */
static tsr_status begin_epoch(tsr_session *s, int warm, tsr_err *err)
{
    tsr_status status = warm ? tsr_sampler_share(s->sampler, err) : TSR_OK;
    TSR_THEN(status, refresh(s, err));
    TSR_THEN(status, tsr_session_save(s, err));
    if (status == TSR_OK && tsr_clock_s() >= s->next_checkpoint) {
        status = tsr_session_checkpoint(s, err);
        s->is_broken |= status != TSR_OK;
    }
    return status;
}

/* A checkpoint on request (SIGUSR1), between epochs: of the last one. */
static tsr_status answer_request(tsr_session *s, tsr_err *err)
{
    if (!tsr_checkpoint_asked)
        return TSR_OK;
    tsr_checkpoint_asked = 0;
    tsr_status status = tsr_session_checkpoint(s, err);
    s->is_broken |= status != TSR_OK;
    if (status == TSR_OK) {
        tsr_log_progress(s->log, "");
        tsr_info(s->log, "checkpoint as asked: %ld draws of warm-up, %ld kept",
                 s->saved_place.warmup, s->saved_place.draws);
    }
    return status;
}

/* On their way from the prior populations have learnt
 * most of what warm-up is for, so half of it is left behind them, an
 * eighth where chains walk. */
static long warmup_draws(const tsr_session *s)
{
    const long n = tsr_session_warmup(s->config);
    const long part = tsr_target_walks(&s->setup->target) ? 8 : 2;
    return tsr_sampler_population(s->sampler).n_level > 0
               ? (n + part - 1) / part
               : n;
}

/* Where draws are of all atoms, bodies learn what they lack of them at a half
 * and at three quarters of warm-up; from a quarter on chains keep examples. */
static int is_lesson(const tsr_session *s, long done, long total)
{
    return s->setup->atom_target != NULL && done > 0 &&
           (done == total / 4 || done == total / 2 || done == 3 * total / 4);
}

static tsr_status give_lesson(tsr_session *s, long done, long total,
                              tsr_err *err)
{
    const int is_first = done == total / 4, is_last = done == 3 * total / 4;
    if (!is_first || is_last)
        return tsr_setup_follow_chains(s->config, s->log, s->sampler, is_last,
                                       s->setup, err);
    for (int c = 0; c < s->setup->n_chain; c++)
        tsr_fine_learn(tsr_sampler_fine(s->sampler, c), 1);
    return TSR_OK;
}

/* n draws, or fewer, so that a block ends where there is a lesson. */
static long until_lesson(const tsr_session *s, long done, long total, long n)
{
    for (long k = 1; k < n; k++)
        if (is_lesson(s, done + k, total))
            return k;
    return n;
}

/* Blocks of about two seconds; their size changes nothing. */
static tsr_status draw_phase(tsr_session *s, int warm, tsr_err *err)
{
    const long *done = warm ? &s->place.warmup : &s->place.draws;
    long total =
        warm ? warmup_draws(s) : tsr_sampler_draws(&s->config->sampler);
    long epoch = epoch_length(s->config, s->setup), block = 1;
    const long steps = tsr_run_draw_steps(s->config, &s->identity);
    tsr_status status = TSR_OK;
    progress p = {.session = s,
                  .phase = warm ? "warm-up" : "sampling",
                  .began = tsr_clock_s(),
                  .first = *done * steps,
                  .before = *done * steps,
                  .total = total * steps};
    p.shown = p.began;
    if (s->place.draws == 0 || !tsr_until_is_set(&s->until))
        s->place.expected = (warm ? total : s->place.warmup) +
                            tsr_sampler_draws(&s->config->sampler);
    s->accepted_before_session = tsr_sampler_accepted(s->sampler);
    while (s->place.next_look <= s->place.draws) /* --until is new */
        s->place.next_look = look_after(s->place.next_look);
    while (*done < total && status == TSR_OK && !tsr_stop_asked &&
           (warm || (!s->place.is_converged && !is_over(s)))) {
        long n = total - *done < block ? total - *done : block;
        if (*done % epoch == 0)
            status = begin_epoch(s, warm, err);
        if (warm && status == TSR_OK && is_lesson(s, *done, total))
            status = give_lesson(s, *done, total, err);
        if (status == TSR_E_INTERRUPTED)
            break; /* some chains are not afresh: no draws of them */
        if (warm)
            n = until_lesson(s, *done, total, n);
        if (n > epoch - *done % epoch)
            n = epoch - *done % epoch;
        if (!warm && tsr_until_is_set(&s->until) &&
            n > s->place.next_look - *done)
            n = s->place.next_look - *done; /* so that time decides nothing */
        double before = tsr_clock_s();
        TSR_THEN(status, advance(s, warm, (int)n, &p, err));
        double took = tsr_clock_s() - before;
        if (!warm && status == TSR_OK)
            status = ask_until(s, &p, err);
        TSR_THEN(status, answer_request(s, err));
        if (took < 1.0 && 2 * block <= tsr_record_capacity(s->record))
            block *= 2;
        else if (took > 4.0 && block > 1)
            block /= 2;
    }
    if (tsr_log_is_terminal(s->log) && *done == total && total > 0) {
        p.total = total * steps;
        p.shown = 0.0; /* the line that stays says 100 % */
        tick(&p, &(tsr_progress){.chi2 = p.chi2});
    }
    tsr_log_progress(s->log, "");
    if (!warm && status == TSR_OK && !tsr_until_is_set(&s->until) &&
        *done < total && is_over(s))
        tsr_info(s->log,
                 "the time limit is over after %ld of %ld draws a chain", *done,
                 total);
    int is_end = !warm && (s->place.is_converged || is_over(s));
    if (is_end && status == TSR_OK)
        status = refresh(s, err); /* the draws since the last epoch began */
    if (status == TSR_E_INTERRUPTED)
        return TSR_OK; /* who asked for the stop is told of it */
    s->place.is_finished = is_end && status == TSR_OK;
    return status;
}

/* What the pass from the prior found; or why there was none, where it was to
 * tell the evidence. */
static void tell_population(const tsr_session *s, double seconds)
{
    const tsr_target *t = &s->setup->target;
    const tsr_population found = tsr_sampler_population(s->sampler);
    double error;
    if (found.n_level == 0) {
        if (s->config->sampler.evidence && t->likelihood != NULL)
            tsr_warn(s->log,
                     "sampler.evidence: no log evidence can be computed, as "
                     "the chains do not start from the prior (%s)",
                     tsr_likelihood_least_beta(t->likelihood) > 0.0
                         ? "scale and background are sampled, under flat priors"
                     : t->n_start > 0 ? "structure.starts says where"
                                      : "see sampler.start, chains and t_max");
        return;
    }
    const double log_z =
        tsr_evidence_of_groups(t->n_group, t->group_log_z, &error);
    tsr_info(s->log,
             "%d groups of chains came from the prior in %d levels of some %ld "
             "steps, %.0f s: barrier %.1f, log evidence%s %.1f +- %.1f nat",
             t->n_group, found.n_level, found.n_step / found.n_level, seconds,
             found.barrier, t->fine != NULL ? " of the bodies" : "", log_z,
             error);
}

/* Groups of chains become populations of the posterior, before warm-up. */
static tsr_status populate(tsr_session *s, tsr_err *err)
{
    /* that may take as long as warm-up */
    const int walks = tsr_target_walks(&s->setup->target),
              levels = walks ? 24 : 8;
    const long warmup = s->config->sampler.warmup;
    const double before = tsr_clock_s(), share = 0.4; /* of a time limit */
    progress p = {
        .session = s, .phase = "starts", .began = before, .shown = before};
    s->accepted_before_session = tsr_sampler_accepted(s->sampler);
    tsr_status status = tsr_sampler_populate(
        s->sampler, s->record, warmup / levels + 1,
        share * s->config->sampler.time_limit, tick, &p, err);
    s->place.seconds += tsr_clock_s() - before;
    s->place.steps += tsr_sampler_population(s->sampler).n_step *
                      tsr_run_draw_steps(s->config, &s->identity) /
                      tsr_sampler_thin(&s->config->sampler);
    tsr_log_progress(s->log, "");
    if (status != TSR_OK || tsr_stop_asked)
        return status;
    tell_population(s, tsr_clock_s() - before);
    return tsr_record_write_data(s->record, s->trace, err);
}

static tsr_status draw_all(tsr_session *s, tsr_err *err)
{
    const tsr_sampler_options *o = &s->config->sampler;
    double began = tsr_clock_s();
    if (s->place.warmup == 0 && s->place.draws == 0)
        TSR_TRY(populate(s, err));
    if (tsr_stop_asked)
        return TSR_OK;
    const int is_there = tsr_sampler_population(s->sampler).n_level > 0;
    const long warmup = warmup_draws(s);
    const int had_warmup = s->place.warmup < warmup;
    if (s->place.warmup == 0 &&
        tsr_sampler_plan_warmup(s->sampler, warmup * tsr_sampler_thin(o),
                                is_there ? 0.0 : o->anneal))
        tsr_info(s->log, "warm-up begins with more of the likelihood than the "
                         "start's chi2 asks for: under student's errors less "
                         "would leave scale and background open");
    if (had_warmup)
        TSR_TRY(draw_phase(s, 1, err));
    if (tsr_stop_asked)
        return TSR_OK;
    if (had_warmup)
        TSR_TRY(tsr_sampler_share(s->sampler, err));
    if (had_warmup)
        tsr_tell_stuck(s->setup, s->sampler, s->log);
    if (s->place.draws == 0)
        tsr_sampler_counts_reset(s->sampler);
    TSR_TRY(draw_phase(s, 0, err));
    if (!tsr_stop_asked) {
        tsr_tell_moves(s->setup, s->sampler, s->log);
        tsr_tell_ladder(s->setup, s->sampler, s->log);
        tsr_tell_atoms(s->sampler, s->log);
        tsr_tell_times(s->sampler, s->log);
        tsr_info(s->log, "files: writing them took %.1f s, %.1f %% of the time",
                 s->storing, 100.0 * s->storing / (tsr_clock_s() - began));
    }
    return TSR_OK;
}

/* ---- how long it would take ---- */

static void ignore(void *context, const tsr_progress *now)
{
    (void)context;
    (void)now;
}

tsr_status tsr_session_try(tsr_session *session, double seconds, double *start,
                           double *each, tsr_err *err)
{
    tsr_session *s = session;
    const tsr_sampler_options *o = &s->config->sampler;
    double took = 0.0;
    long n_draw = 0;
    int n_done = 0;
    double before = tsr_clock_s();
    TSR_TRY(tsr_session_prepare(s, err));
    (void)tsr_sampler_plan_warmup(
        s->sampler, tsr_session_warmup(s->config) * tsr_sampler_thin(o),
        o->anneal);
    TSR_TRY(tsr_sampler_refresh(s->sampler, err));
    *start = tsr_clock_s() - before;
    const int most = tsr_record_capacity(s->record);
    /* a device's first answers take longer, and do not count */
    TSR_TRY(tsr_sampler_advance(s->sampler, s->record, 1, tsr_sampler_thin(o),
                                1, ignore, NULL, &n_done, err));
    for (int n = 1; took < seconds && n_done > 0;
         n = 2 * n < most ? 2 * n : n) {
        before = tsr_clock_s();
        TSR_TRY(tsr_sampler_advance(s->sampler, s->record, n,
                                    tsr_sampler_thin(o), 1, ignore, NULL,
                                    &n_done, err));
        took += tsr_clock_s() - before;
        n_draw += n_done;
    }
    *each = took / (double)(n_draw > 0 ? n_draw : 1);
    return TSR_OK;
}

/* ---- the end of a session ---- */

/* What to do now, behind the message of why. */
static tsr_status say_how_to_go_on(const tsr_session *s, tsr_status status,
                                   tsr_err *err)
{
    static const char *const first[] = {
        [TSR_E_IO] = "make room or mend the folder, then ",
        [TSR_E_DEVICE] = "once the device works again, or with --device, "};
    const char *kernels = getenv("TSR_KERNEL_DIR");
    const char *own =
        status == TSR_E_DEVICE && kernels != NULL && *kernels != '\0'
            ? "without TSR_KERNEL_DIR, or "
            : "";
    char message[TSR_ERR_SIZE], word[TSR_SHELL_SIZE];
    if (err == NULL ||
        (status != TSR_E_IO && status != TSR_E_DEVICE && status != TSR_E_NOMEM))
        return status;
    snprintf(message, sizeof message, "%s", err->message);
    return tsr_fail(err, status,
                    "%s; %s%sgo on from the last checkpoint: tessera resume "
                    "%s",
                    message, own, status == TSR_E_NOMEM ? "" : first[status],
                    tsr_text_shell(s->directory, word));
}

tsr_status tsr_session_sample(tsr_session *session, tsr_err *err)
{
    tsr_session *s = session;
    tsr_status status = draw_all(s, err), closed = TSR_OK;
    if (!s->is_broken) {
        closed = tsr_session_checkpoint(s, status == TSR_OK ? err : NULL);
        s->is_broken |= closed != TSR_OK;
    }
    TSR_THEN(status, closed);
    closed = tsr_trace_close(s->trace, status == TSR_OK ? err : NULL);
    s->trace = NULL;
    TSR_THEN(status, closed);
    tsr_sampler_set_track(s->sampler, NULL);
    closed = tsr_track_close(s->track, status == TSR_OK ? err : NULL);
    s->track = NULL;
    TSR_THEN(status, closed);
    if (status == TSR_OK && tsr_stop_asked && !s->place.is_finished) {
        char draws[80], word[TSR_SHELL_SIZE];
        tsr_sampler_draws_text(&s->config->sampler, s->place.draws, draws);
        return tsr_fail(err, TSR_E_INTERRUPTED,
                        "interrupted; %s are stored; to go on: tessera resume "
                        "%s",
                        draws, tsr_text_shell(s->directory, word));
    }
    return say_how_to_go_on(s, status, err);
}
