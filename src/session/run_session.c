/* A session of a run: reports to the log, the run's files, checkpoints, and the
 * loop that draws. */
#include "session/run_session.h"

#include "analysis/evidence.h"
#include "core/clock.h"
#include "core/interrupt.h"
#include "core/ranks.h"
#include "core/text.h"
#include "session/run_directory.h"

#include <errno.h>
#include <gsl/gsl_sort.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <sys/statvfs.h>
#include <unistd.h>

/* ---- sizes of files ---- */

/* Expected sizes of the files of a run. */
typedef struct {
    double trace, trajectories; /* MiB */
} sizes;

static sizes estimate_sizes(const tsr_config *config, const tsr_setup *setup)
{
    const double mib = 1048576.0, scalars = 40.0;
    const tsr_sampler_options *o = &config->sampler;
    double draw = scalars * sizeof(double);
    const tsr_likelihood *l = setup->data.likelihood;
    for (int d = 0; l != NULL && d < l->n_term; d++)
        draw += 3.0 * sizeof(float) * l->term[d]->n_point;
    sizes s = {0.7 + draw * (double)tsr_sampler_draws(o) * setup->n_chain / mib,
               0.0};
    s.trace += scalars * sizeof(double) *
               (double)tsr_run_warmup_requested(config) * setup->n_chain / mib;
    if (config->output.trajectory)
        s.trajectories =
            tsr_trajectory_writer_disk_bytes(&setup->target, setup->n_chain,
                                             config->output.trajectory_every,
                                             tsr_sampler_draws(o)) /
            mib;
    return s;
}

/* Free disk space at the folder or its nearest existing parent, MiB; infinite:
 * unknown. */
static double free_space(const char *directory)
{
    struct statvfs info;
    char *path = strdup(directory), *slash;
    double space = (double)INFINITY;
    while (path != NULL && statvfs(path, &info) != 0 &&
           (slash = strrchr(path, '/')) != NULL && slash != path)
        *slash = '\0';
    if (path != NULL && statvfs(path, &info) == 0)
        space = (double)info.f_bavail * (double)info.f_frsize / 1048576.0;
    free(path);
    return space;
}

/* Logs the expected size of the files, and warns if the disk is too small. */
static void log_size(const tsr_config *config, const tsr_setup *setup,
                     tsr_log *log)
{
    sizes s = estimate_sizes(config, setup);
    double available = free_space(config->output.directory);
    tsr_info(log,
             "files: %s %.3g MiB of trace.h5 and %.3g MiB of trajectories "
             "(output.trajectory, trajectory_every)",
             config->sampler.until != NULL ? "at most" : "about", s.trace,
             s.trajectories);
    if (s.trace + s.trajectories > available)
        tsr_warn(log,
                 "'%s' has %.3g MiB of free space, less than the run will "
                 "write: store fewer draws or frames, or choose another folder",
                 config->output.directory, available);
}

/* ---- plan ---- */

void tsr_run_plan(const tsr_config *config, const tsr_setup *setup, FILE *out)
{
    const tsr_topology *t = setup->molecule.topology;
    const tsr_sampler_options *o = &config->sampler;
    fprintf(out,
            "molecule: %d residues, %d chain%s, %d bodies, %d free torsions, "
            "%d free side chains\n",
            tsr_topology_n_monomer(t), t->n_chain, t->n_chain == 1 ? "" : "s",
            t->n_body, t->n_torsion, t->n_side);
    const tsr_likelihood *l = setup->data.likelihood;
    for (int d = 0; l != NULL && d < l->n_term; d++) {
        const tsr_term *term = l->term[d];
        fprintf(out, "data: %s", term->label);
        if (term->n_point > 1)
            fprintf(out, ", %d points, %s %.4f to %.4f %s", term->n_point,
                    term->type->axis, term->coord[0],
                    term->coord[term->n_point - 1], term->type->axis_unit);
        fputc('\n', out);
    }
    for (const char *line = setup->devices.text; line != NULL;) {
        size_t length = strcspn(line, "\n");
        fprintf(out, "engine: %.*s\n", (int)length, line);
        line = line[length] == '\n' ? line + length + 1 : NULL;
    }
    for (int d = 0; d < setup->devices.n; d++) {
        const tsr_engine *e = setup->devices.group[d].engine;
        if (e->system_bytes > 0.0)
            fprintf(out,
                    "memory: %.0f bytes per system, %d systems of at most %.0f "
                    "on the device, %.1f MiB in total\n",
                    e->system_bytes, e->n_system, e->max_systems,
                    (e->n_system * e->system_bytes + e->shared_bytes) /
                        1048576.0);
    }
    fprintf(out,
            "plan: %d chains x %d temperatures x (%ld warm-up steps + %s%ld "
            "draws x %ld steps), "
            "%d threads\n",
            setup->n_chain, tsr_target_n_temp(&setup->target), o->warmup,
            o->until != NULL ? "at most " : "", tsr_sampler_draws(o),
            tsr_sampler_thin(o), setup->n_thread);
    int n_temp = tsr_target_n_temp(&setup->target);
    int n_state = tsr_target_n_state(&setup->target);
    if (setup->devices.n > 0)
        fprintf(out,
                "systems: %d, of %d chains x %d temperatures x %d state%s\n",
                setup->n_chain * n_temp * n_state, setup->n_chain, n_temp,
                n_state, n_state == 1 ? "" : "s");
    sizes size = estimate_sizes(config, setup);
    fprintf(out,
            "output: %s, about %.3g MiB of trace.h5 and %.3g MiB of "
            "trajectories\n",
            config->output.directory, size.trace, size.trajectories);
}

/* ---- reports on the sampler ----
 *
 * Rates of moves, exchanges and all-atom draws, shares of the host's time, and
 * problems that a change of the configuration can mend: moves without targets,
 * chains left behind after warm-up. */

/* Logs moves of positive weight that have no target in this molecule. */
static void log_idle_moves(const tsr_setup *setup, tsr_log *log)
{
    char list[256] = "";
    size_t used = 0;
    if (setup->target.is_frozen) {
        tsr_info(log, "structure.frozen: the structures do not move");
        return;
    }
    for (int m = 0; m < TSR_N_MOVE && used < sizeof list; m++) {
        const void *options = setup->move_options[m];
        if (tsr_move_weight(options) > 0.0 &&
            tsr_move_registry[m]->launch == NULL &&
            tsr_move_registry[m]->n_target(options, setup->molecule.topology) ==
                0)
            used += (size_t)snprintf(list + used, sizeof list - used, "%s%s",
                                     used > 0 ? ", " : "",
                                     tsr_move_registry[m]->name);
    }
    if (used > 0)
        tsr_info(log, "moves without a moving part in this molecule: %s", list);
}

/* Logs proposals and acceptance of each move at temperature 1. */
static void log_moves(const tsr_setup *setup, tsr_sampler *sampler,
                      tsr_log *log)
{
    for (int m = 0; m < TSR_N_MOVE; m++) {
        long proposed = 0, accepted = 0;
        for (int c = 0; c < setup->n_chain; c++) {
            const tsr_chain_counts *counts =
                tsr_chain_counts_get(tsr_sampler_chain(sampler, c));
            proposed += counts->proposed[m];
            accepted += counts->accepted[m];
        }
        if (proposed > 0)
            tsr_info(log, "%-12s %ld proposed, %.1f %% accepted",
                     tsr_move_registry[m]->name, proposed,
                     100.0 * (double)accepted / (double)proposed);
    }
}

/* Logs the temperatures of the first chain, exchange rates averaged over
 * chains, round trips, and the number of temperatures that suffices. */
static void log_ladder(const tsr_setup *setup, const tsr_sampler *sampler,
                       tsr_log *log)
{
    int n = tsr_target_n_temp(&setup->target);
    char temperature[512] = "", rate[512] = "";
    size_t t = 0, e = 0;
    long trips = 0;
    double barrier = 0.0, rarest = 1.0;
    const tsr_ladder *first = tsr_sampler_ladder(sampler, 0);
    if (n < 2)
        return;
    for (int k = 0; k < n && t < sizeof temperature && e < sizeof rate; k++) {
        double sum = 0.0;
        for (int c = 0; c < setup->n_chain; c++)
            sum += tsr_ladder_rate(tsr_sampler_ladder(sampler, c), k);
        t += (size_t)snprintf(temperature + t, sizeof temperature - t, " %.3g",
                              1.0 / tsr_ladder_beta(first, k));
        if (k + 1 == n)
            continue;
        const double exchanged = sum / (double)setup->n_chain;
        barrier += 1.0 - exchanged;
        rarest = fmin(rarest, exchanged);
        e += (size_t)snprintf(rate + e, sizeof rate - e, " %.0f",
                              100.0 * sum / (double)setup->n_chain);
    }
    for (int c = 0; c < setup->n_chain; c++)
        trips += tsr_ladder_round_trips(tsr_sampler_ladder(sampler, c));
    if (rarest > 0.2) /* at low exchange rates the barrier is underestimated */
        tsr_info(log,
                 "barrier %.1f: some %.0f temperatures are sufficient (Syed et "
                 "al. 2022)",
                 barrier, ceil(2.0 * barrier) + 1.0);
    else
        tsr_info(log, "barrier above %.1f: more temperatures would help",
                 barrier);
    tsr_info(log, "temperatures%s; exchanged%s %%; %ld round trips in total",
             temperature, rate, trips);
}

/* Logs the acceptance of exchanges between the bodies' chains and the all-atom
 * chains. Does nothing without all-atom chains. */
static void log_all_atoms(const tsr_sampler *sampler, tsr_log *log)
{
    const double rare = 0.01, rate = tsr_sampler_all_atom_acceptance(sampler);
    if (isnan(rate))
        return;
    tsr_info(log,
             "all-atom draws: of every 100 states that the bodies' chains "
             "offered, %.1f were accepted",
             100.0 * rate);
    if (rate < rare)
        tsr_warn(log,
                 "the bodies' chains hardly ever give an all-atom draw: their "
                 "curves deviate too much for data of this precision, or the "
                 "chains had not reached the posterior when the deviation was "
                 "learnt; increase sampler.warmup, or use structure.bodies: "
                 "two (or, with water that moves with the atoms, "
                 "device.engine: waves, which moves all atoms)");
}

/* Logs fractions of the host's time. */
static void log_times(const tsr_sampler *sampler, tsr_log *log)
{
    tsr_sampler_times t = tsr_sampler_times_get(sampler);
    double all = t.propose + t.walk + t.submit + t.wait + t.decide + t.store +
                 t.refresh + t.audit + t.all_atom;
    if (all > 0.0)
        tsr_info(
            log,
            "host time: propose, with densities %.0f %%, excluded volume %.0f "
            "%%, walks and redraws %.0f %%, submit to the device %.0f %%, wait "
            "for it %.0f %%, likelihood and acceptance %.0f %%, store %.1f %%, "
            "recompute for checkpoints %.1f %%, check against double precision "
            "%.2f %%, curves of all atoms %.0f %%",
            100.0 * (t.propose - t.clash) / all, 100.0 * t.clash / all,
            100.0 * t.walk / all, 100.0 * t.submit / all, 100.0 * t.wait / all,
            100.0 * t.decide / all, 100.0 * t.store / all,
            100.0 * t.refresh / all, 100.0 * t.audit / all,
            100.0 * t.all_atom / all);
}

/* Log likelihoods of the chains, ascending; NULL: out of memory. */
static double *sorted_log_liks(int n, tsr_sampler *sampler)
{
    double *value = calloc((size_t)n, sizeof *value);
    if (value == NULL)
        return NULL;
    for (int c = 0; c < n; c++)
        value[c] = tsr_chain_log_lik(tsr_sampler_chain(sampler, c));
    gsl_sort(value, 1, (size_t)n);
    return value;
}

static long accepted_of(const tsr_chain *chain)
{
    const tsr_chain_counts *counts = tsr_chain_counts_get(chain);
    long sum = 0;
    for (int m = 0; m < TSR_N_MOVE; m++)
        sum += counts->accepted[m];
    return sum;
}

/* Warns of chains that warm-up left far below the others, or that never
 * moved. */
static void log_stuck(const tsr_setup *setup, tsr_sampler *sampler,
                      tsr_log *log)
{
    enum { MOST = 5 };           /* chains named in the log */
    const double far_nat = 30.0; /* a likelihood ratio of exp(-30) */
    int n = setup->n_chain, n_behind = 0;
    if (setup->data.likelihood == NULL)
        return;
    double *value = sorted_log_liks(n, sampler);
    if (value == NULL)
        return;
    double middle = value[n / 2];
    free(value);
    for (int c = 0; c < n; c++) {
        const tsr_chain *chain = tsr_sampler_chain(sampler, c);
        double chi2 = tsr_sampler_chi2(sampler, c);
        double behind = middle - tsr_chain_log_lik(chain);
        const int is_stuck =
            !setup->target.is_frozen && accepted_of(chain) == 0;
        if (!is_stuck && !(behind > far_nat))
            continue;
        if (++n_behind > MOST)
            continue;
        if (is_stuck)
            tsr_warn(log,
                     "chain %d is still at its start after warm-up (chi2 "
                     "%.3g): no proposal was accepted; check the moves, "
                     "prior.restraints and structure.flexible",
                     c, chi2);
        else
            tsr_warn(log,
                     "chain %d is stuck after warm-up: chi2 %.3g, its log "
                     "likelihood %.0f nat below the median of the chains; "
                     "increase sampler.warmup or sampler.temperatures",
                     c, chi2, behind);
    }
    if (n_behind > MOST)
        tsr_warn(log, "and %d more chains of %d", n_behind - MOST, n);
}

/* ---- preparing a session ---- */

/* Largest number of draws in a block: as many as fit into 256 MiB, at most
 * 64. */
static int block_capacity(const tsr_session *s)
{
    const double most = 256.0 * 1048576.0;
    double bytes = 1.0; /* a draw of all chains: three curves per data set */
    const tsr_likelihood *l = s->setup->data.likelihood;
    for (int d = 0; l != NULL && d < l->n_term; d++)
        bytes += 3.0 * sizeof(double) * l->term[d]->n_point * s->setup->n_chain;
    if (s->config->output.trajectory)
        bytes += tsr_trajectory_writer_draw_bytes(
            &s->setup->target, s->setup->n_chain,
            s->config->output.trajectory_every);
    return bytes * 64.0 <= most ? 64 : bytes < most ? (int)(most / bytes) : 1;
}

static int is_stopped(const tsr_session *s)
{
    return *tsr_watch_stop(&s->watch) != 0;
}

/* ---- several ranks (core/ranks.h) ----
 *
 * Rank 0 sends what determines a run: the configuration with all its numbers,
 * and the model error. */

typedef struct {
    size_t n_text; /* bytes, with the final zero */
    int n_chain, is_resumed;
    tsr_run_identity identity;
} rank_message;

static tsr_status save_error(tsr_session *s, tsr_err *err);

/* Rank 0: sends the run to the other ranks. */
static tsr_status tell_ranks(tsr_session *s, tsr_err *err)
{
    int work = TSR_WORK_RUN;
    char *text = NULL;
    if (tsr_ranks_size() == 1)
        return TSR_OK;
    TSR_TRY(save_error(s, err));
    TSR_TRY(tsr_config_text(s->config, &text, err));
    rank_message m = {strlen(text) + 1, s->setup->n_chain, s->is_resumed,
                      s->identity};
    tsr_status status = tsr_ranks_work(&work, err);
    TSR_THEN(status, tsr_ranks_broadcast(&m, sizeof m, 0, err));
    TSR_THEN(status, tsr_ranks_broadcast(text, m.n_text, 0, err));
    TSR_THEN(status, tsr_ranks_pass(&s->saved_error, 0, -1, err));
    free(text);
    return status;
}

/* Called by all ranks: rank 0 warns of the first that rounds otherwise. */
static tsr_status compare_arithmetic(const tsr_session *s, tsr_err *err)
{
    struct {
        long arithmetic;
        char node[64];
    } own = {tsr_run_arithmetic(s->setup), ""}, other;
    int is_same = 1;
    (void)gethostname(own.node, sizeof own.node - 1);
    for (int r = 1; r < tsr_ranks_size(); r++) {
        other = own;
        TSR_TRY(tsr_ranks_broadcast(&other, sizeof other, r, err));
        if (is_same && other.arithmetic != own.arithmetic &&
            tsr_ranks_rank() == 0) {
            tsr_warn(s->log,
                     "rank %d on %s has a processor, device or driver of "
                     "another kind than rank 0 on %s: draws are valid, but not "
                     "bit-identical to those of another number of ranks; "
                     "choose nodes of one kind, as with sbatch --constraint",
                     r, other.node, own.node);
            is_same = 0;
        }
    }
    return TSR_OK;
}

static void log_ranks(const tsr_session *s)
{
    const int n = tsr_ranks_size();
    if (n > 1)
        tsr_info(s->log, "%d ranks, the first with chains 0 to %d", n,
                 tsr_ranks_first(s->setup->n_chain, 1) - 1);
}

/* Makes the record, the trajectory writer and the sampler, with starts from the
 * prior or the pool if sampler.start says so. */
static tsr_status make_sampler(tsr_session *s, tsr_err *err)
{
    tsr_setup *setup = s->setup;
    int capacity = block_capacity(s);
    tsr_status status = TSR_OK;
    const int start = s->config->sampler.start;
    if (start == TSR_START_PRIOR || start == TSR_START_POOL)
        status = tsr_setup_draw_starts(start == TSR_START_POOL, s->is_resumed,
                                       s->log, s->setup, err);
    TSR_THEN(status, tsr_record_new(&setup->target, setup->n_chain, capacity,
                                    &s->record, err));
    if (status == TSR_OK && s->config->output.trajectory)
        status = tsr_trajectory_writer_new(
            &setup->target, setup->n_chain, capacity,
            s->config->output.trajectory_every, &s->writer, err);
    TSR_THEN(status,
             tsr_sampler_new(&setup->target, setup->n_chain, setup->n_thread,
                             tsr_watch_stop(&s->watch), &s->sampler, err));
    if (status == TSR_OK)
        tsr_sampler_set_trajectory_writer(s->sampler, s->writer);
    return status;
}

static tsr_status prepare(tsr_session *s, tsr_err *err)
{
    tsr_setup *setup = s->setup;
    s->directory = s->config->output.directory;
    s->trace = tsr_path_in(s->directory, "trace.h5");
    s->identity = tsr_run_identity_of(setup);
    /* again, since the set-up of the engine sets `until` where draws are auto
     */
    TSR_TRY(tsr_until_parse(s->config->sampler.until, &s->until, err));
    TSR_TRY(tsr_run_inputs_text(s->config, &s->config_text, err));
    TSR_TRY(tell_ranks(s, err));
    const tsr_status status = tsr_ranks_agree(make_sampler(s, err), NULL, err);
    if (status != TSR_OK)
        return tsr_config_locate_error(s->config, status, err);
    TSR_TRY(compare_arithmetic(s, err));
    tsr_sampler_lead(s->sampler);
    s->progress.next_check = 100;
    s->progress.start_chi2 =
        setup->target.n_group > 0
            ? setup->starts.first_chi2
            : tsr_chain_chi2(tsr_sampler_chain(s->sampler, 0));
    s->progress.start_rg =
        tsr_conformation_rg(setup->molecule.topology, setup->molecule.first,
                            setup->molecule.form_factors->rg2);
    return TSR_OK;
}

/* ---- a new run ---- */

enum {
    N_RUN_ATTRIBUTE = 8,
    MAX_NOTE = 64
}; /* attributes of the trace: of
      the run, and notes of terms */

/* Adds the notes of the terms that are texts as attributes of the trace; notes
 * with values become variables. Returns the number of attributes. */
static int add_notes(const tsr_likelihood *l, char (*name)[48],
                     tsr_trace_attribute *attribute)
{
    int n = 0;
    for (int d = 0; l != NULL && d < l->n_term; d++) {
        const tsr_term *term = l->term[d];
        for (int k = 0; k < term->n_note && n < MAX_NOTE; k++) {
            if (term->note[k].value != NULL)
                continue;
            tsr_term_variable(term->type, term->ordinal, term->note[k].name,
                              sizeof name[n], name[n]);
            attribute[n] = (tsr_trace_attribute){name[n], term->note[k].text};
            n++;
        }
    }
    return n;
}

/* Names of sampled parameters with flat, improper priors. */
static void list_flat_parameters(const tsr_likelihood *l, size_t size,
                                 char *text)
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
    tsr_trace *trace;
    int n = tsr_record_variables(s->record, &variable);
    char seed[32], flat[256], groups[32];
    snprintf(seed, sizeof seed, "%ld", s->config->seed);
    snprintf(groups, sizeof groups, "%d", s->setup->target.n_group);
    list_flat_parameters(s->setup->data.likelihood, sizeof flat, flat);
    char *sequence = tsr_topology_sequence(s->setup->molecule.topology);
    char *rigid = tsr_data_rigid_text(&s->setup->data);
    tsr_trace_attribute attribute[N_RUN_ATTRIBUTE + MAX_NOTE] = {
        {"config", s->config_text},
        {"seed", seed},
        {"sequence", sequence == NULL ? "" : sequence},
        {"flat_priors", flat},
        {"chain_groups", groups},
        {"rigid_fit", rigid == NULL ? "[]" : rigid},
        {"model_error", s->setup->data.model_error == NULL
                            ? "none"
                            : s->setup->data.model_error},
        {"engine", s->setup->devices.text == NULL ? "none: no term needs one"
                                                  : s->setup->devices.text}};
    char name[MAX_NOTE][48];
    int n_attribute =
        N_RUN_ATTRIBUTE +
        add_notes(s->setup->data.likelihood, name, attribute + N_RUN_ATTRIBUTE);
    tsr_status status =
        tsr_trace_create(s->trace.text, s->setup->n_chain, n, variable,
                         n_attribute, attribute, &trace, err);
    free(sequence);
    free(rigid);
    TSR_TRY(status);
    status = tsr_record_write_data(s->record, trace, err);
    if (status == TSR_OK)
        return tsr_trace_close(trace, err);
    tsr_trace_discard(trace);
    return status;
}

static tsr_status open_log(const tsr_session *s, tsr_err *err)
{
    return tsr_log_open(s->log, tsr_path_in(s->directory, "run.log").text, err);
}

static tsr_status write_checkpoint(tsr_session *session, tsr_err *err);

/* Creates trace and trajectories without draws. Makes the draw log, and removes
 * a draws.log that is left over: the first record creates the file. */
static tsr_status create_files(tsr_session *s, tsr_err *err)
{
    TSR_TRY(make_trace(s, err));
    if (s->writer != NULL)
        TSR_TRY(tsr_trajectory_writer_create(s->writer, s->directory, err));
    TSR_TRY(tsr_draw_log_new(s->directory, &s->draws, err));
    tsr_draw_log_remove(s->draws);
    return TSR_OK;
}

/* Creates all files that a run has before its first draw. The checkpoint is
 * written before trace and trajectories, because both can be recreated from it,
 * whereas a trace without a checkpoint would be taken for a run with draws. */
static tsr_status make_files(tsr_session *s, tsr_err *err)
{
    TSR_TRY(tsr_run_directory_write_model(s->directory, s->setup, err));
    TSR_TRY(open_log(s, err));
    TSR_TRY(write_checkpoint(s, err));
    return create_files(s, err);
}

/* Creates the folder of a new run with all files that it has before its first
 * draw. On failure the folder is restored to its former state. */
static tsr_status begin(tsr_session *s, tsr_err *err)
{
    int n_folder = 0;
    char *staged = NULL;
    TSR_TRY(tsr_run_directory_make(s->directory, &n_folder, &s->lock, err));
    tsr_status status =
        tsr_run_inputs_copy(s->config, s->directory, &staged, err);
    TSR_THEN(status,
             tsr_run_directory_write_config(s->directory, s->config_text, err));
    const int has_config = status == TSR_OK;
    if (has_config && staged != NULL)
        status = tsr_run_inputs_commit(s->directory, staged, err);
    TSR_THEN(status, make_files(s, err));
    if (status != TSR_OK) {
        if (staged != NULL)
            tsr_run_directory_remove(staged);
        tsr_run_directory_undo(s->directory, has_config, n_folder);
        tsr_lock_free(s->lock);
        s->lock = NULL;
    }
    free(staged);
    return status;
}

/* ---- a resumed run ----
 *
 * It gives the same bits as an uninterrupted run, so that all that affects bits
 * is compared first. */

/* Reads config.yaml of the run, with the keys of the caller. */
static tsr_status read_config(tsr_session *s, const char *directory, int n_set,
                              const char *const *set, tsr_err *err)
{
    tsr_config *c = s->config;
    for (int i = 0; i < n_set; i++)
        if (!tsr_run_key_may_change(set[i]))
            return tsr_fail(err, TSR_E_USAGE,
                            "'%s': a run cannot be continued with another "
                            "value of this key",
                            set[i]);
    TSR_TRY(tsr_config_read(tsr_path_in(directory, "config.yaml").text, n_set,
                            set, c, err));
    free(c->output.directory);
    c->output.directory = strdup(directory);
    return tsr_allocated(c->output.directory, err);
}

tsr_status tsr_session_reopen(tsr_session *session, const char *directory,
                              int n_set, const char *const *set, tsr_err *err)
{
    tsr_session *s = session;
    int is_new;
    TSR_TRY(tsr_run_directory_require(directory, err));
    TSR_TRY(tsr_lock_acquire(directory, &s->lock, err));
    TSR_TRY(tsr_run_directory_recover(directory, &is_new, err));
    s->is_resumed = !is_new;
    tsr_status status =
        is_new ? TSR_OK
               : tsr_run_checkpoint_read(directory, 1, &s->checkpoint, err);
    if (status == TSR_E_NOINPUT)
        return tsr_wrap(
            err, status,
            "the run cannot be continued, and a restart would overwrite its "
            "files; begin a new run in another folder");
    if (status == TSR_OK && s->checkpoint.remark != NULL)
        tsr_warn(s->log, "%s", s->checkpoint.remark);
    TSR_THEN(status, read_config(s, directory, n_set, set, err));
    return status;
}

/* Has the caller set the key, beside config.yaml? */
static int is_set(const tsr_config *config, const char *key)
{
    const char *place = tsr_yaml_marks_find(&config->marks, key);
    return place != NULL &&
           strncmp(place, config->path, strlen(config->path)) != 0;
}

/* Number of draws in the trace, which is ahead of the checkpoint. 0 where the
 * trace is unreadable; opening it later reports the error. */
static long draws_stored(const char *directory)
{
    tsr_trace_reader *reader = NULL;
    const tsr_path path = tsr_path_in(directory, "trace.h5");
    long n = 0;
    if (tsr_trace_open(path.text, &reader, NULL) == TSR_OK)
        n = tsr_trace_n_draw(reader, TSR_TRACE_POSTERIOR);
    tsr_trace_reader_free(reader);
    return n;
}

/* Decides how long a resumed run goes on, and refuses a number of draws that
 * adds no draws. A finished run loses its time limit, and its criterion where
 * only a number of draws was set. A criterion that was set without a number of
 * draws gets a hundred times the draws that there are: no end that a user waits
 * for, but files have one. */
static tsr_status extend(tsr_session *s, tsr_err *err)
{
    const tsr_run_progress *at = &s->checkpoint.progress;
    tsr_config *c = s->config;
    tsr_sampler_options *o = &c->sampler;
    const int has_draws = is_set(c, "sampler.draws");
    const int has_until = is_set(c, "sampler.until");
    const long draws = tsr_sampler_draws(o);
    const long stored = draws_stored(c->output.directory);
    const long done = stored > at->draws ? stored : at->draws;
    const double most = tsr_until_draws((double)at->draws, 100.0);
    if (draws < done)
        return tsr_fail(err, TSR_E_USAGE, "%ld draws: the run already has %ld",
                        draws, done);
    if (at->is_finished && !has_draws && !has_until)
        return tsr_fail(err, TSR_E_USAGE,
                        "the run in '%s' is finished; --draws N "
                        "(sampler.draws), above %ld, extends it",
                        c->output.directory, done);
    if (at->is_finished)
        o->time_limit = 0.0;
    if (at->is_converged && has_draws && !has_until && o->until != NULL) {
        tsr_info(s->log,
                 "without '%s', as the run has reached that criterion: --draws "
                 "sets the number of draws",
                 o->until);
        free(o->until);
        o->until = NULL;
    }
    if (has_until && !has_draws && most > (double)draws)
        o->draws = (tsr_number_or_word){-1, most};
    return TSR_OK;
}

/* Takes the model error from the checkpoint, which must be of this
 * configuration and input. */
static tsr_status use_model_error(tsr_session *s, tsr_err *err)
{
    tsr_run_checkpoint *at = &s->checkpoint;
    const char *directory = s->config->output.directory;
    const tsr_path path = tsr_path_in(directory, "config.yaml");
    const tsr_run_identity identity = tsr_run_identity_of(s->setup);
    char *file = NULL, *text = NULL;
    size_t size;
    tsr_status status = tsr_file_read(path.text, &file, &size, err);
    TSR_THEN(status, tsr_run_inputs_text(s->config, &text, err));
    TSR_THEN(status, tsr_run_checkpoint_match(at, file, text, &identity, err));
    free(file);
    free(text);
    TSR_TRY(tsr_wrap(err, status, "'%s'", directory));
    tsr_archive_rewind(&at->error);
    s->setup->known_error = &at->error;
    if (at->error_text[0] == '\0')
        return TSR_OK;
    s->setup->data.model_error = at->error_text;
    at->error_text = NULL;
    tsr_info(s->log, "model error: %s (from the checkpoint)",
             s->setup->data.model_error);
    return TSR_OK;
}

/* A damaged checkpoint must not become the one before the next. */
static tsr_status set_aside_checkpoint(const tsr_session *s, tsr_err *err)
{
    const tsr_path from = tsr_path_in(s->directory, "checkpoint.h5");
    const tsr_path to = tsr_path_in(s->directory, "checkpoint.h5.damaged");
    if (s->checkpoint.remark != NULL && rename(from.text, to.text) != 0 &&
        errno != ENOENT)
        return tsr_fail(err, TSR_E_IO, "cannot rename '%s': %s", from.text,
                        strerror(errno));
    return TSR_OK;
}

static tsr_status rewrite_config(const tsr_session *s, tsr_err *err)
{
    return tsr_file_replace(tsr_path_in(s->directory, "config.yaml").text,
                            s->config_text, strlen(s->config_text), err);
}

/* Adds the draws of the log to trace and trajectories, and removes the log.
 * keep: numbers of warm-up and kept draws that the files must then have; NULL:
 * all draws. */
static tsr_status update_files(tsr_session *s, const long *keep, tsr_err *err)
{
    tsr_draw_records log;
    tsr_status status = tsr_draw_records_open(s->trace.text, &log, err);
    TSR_THEN(status, tsr_trace_update(s->trace.text, &log, keep, err));
    if (status == TSR_OK && s->writer != NULL)
        status = tsr_trajectory_writer_update(
            s->writer, s->directory, &log,
            keep != NULL ? keep[TSR_DRAWN_KEPT] : -1, err);
    tsr_draw_records_close(&log);
    if (status == TSR_OK)
        tsr_draw_log_remove(s->draws);
    return status;
}

/* Brings trace and trajectories to the draws of the checkpoint: adds draws from
 * the log, and removes later draws. For a checkpoint without draws, trace and
 * trajectories are recreated, because they may be missing. */
static tsr_status reopen_files(tsr_session *s, tsr_err *err)
{
    const long keep[TSR_DRAWN_N_KIND] = {[TSR_DRAWN_WARMUP] =
                                             s->progress.warmup,
                                         [TSR_DRAWN_KEPT] = s->progress.draws};
    if (s->progress.warmup == 0 && s->progress.draws == 0)
        return create_files(s, err);
    TSR_TRY(tsr_run_trace_match(s->trace.text, s->config_text, err));
    TSR_TRY(tsr_draw_log_new(s->directory, &s->draws, err));
    s->n_updated = s->progress.warmup + s->progress.draws;
    return update_files(s, keep, err);
}

/* Steps of all chains during the populations phase. */
static long population_steps(const tsr_session *s)
{
    return tsr_sampler_population(s->sampler).n_step *
           tsr_run_draw_steps(s->config, &s->identity) /
           tsr_sampler_thin(&s->config->sampler);
}

/* Do the counts of a checkpoint agree with each other? Checked although the
 * file has a checksum, because a checksum proves only that the file is
 * undamaged, not that tessera wrote it. */
static int is_progress_valid(const tsr_session *s)
{
    const tsr_run_progress *p = &s->progress;
    const double draws = (double)p->warmup + (double)p->draws;
    return p->warmup >= 0 && p->warmup <= tsr_run_warmup_requested(s->config) &&
           p->draws >= 0 && p->next_check > 0 &&
           draws * (double)tsr_run_draw_steps(s->config, &s->identity) +
                   (double)population_steps(s) ==
               (double)p->steps;
}

/* Saves the model errors in memory, for the next checkpoint. */
static tsr_status save_error(tsr_session *s, tsr_err *err)
{
    tsr_likelihood *l = s->setup->data.likelihood;
    tsr_archive_begin(&s->saved_error);
    if (l != NULL)
        TSR_TRY(tsr_likelihood_archive(l, &s->saved_error, err));
    return tsr_archive_end(&s->saved_error, err);
}

/* Restores sampler and files to the checkpoint. Errors: TSR_E_DATA (checkpoint
 * and files do not match), TSR_E_IO, TSR_E_NOMEM. */
static tsr_status restore(tsr_session *s, tsr_err *err)
{
    s->progress = s->saved_progress = s->checkpoint.progress;
    s->progress.is_finished = s->progress.is_converged =
        0; /* resuming extends the run */
    s->saved = s->checkpoint.saved;
    s->checkpoint.saved = (tsr_archive){0};
    tsr_status status = tsr_sampler_restore(s->sampler, &s->saved, err);
    TSR_THEN(status, tsr_archive_end(s->setup->known_error, err));
    if (status == TSR_OK && !is_progress_valid(s))
        status = tsr_fail(err, TSR_E_DATA,
                          "its numbers of draws and steps are inconsistent");
    TSR_TRY(tsr_wrap(err, status,
                     "the checkpoint does not belong to this run (another "
                     "version of tessera?)"));
    TSR_TRY(save_error(s, err)); /* a stop may come before the next epoch */
    TSR_TRY(open_log(s, err));
    TSR_TRY(reopen_files(s, err));
    return rewrite_config(s, err);
}

static tsr_status resume(tsr_session *s, tsr_err *err)
{
    const tsr_run_checkpoint *at = &s->checkpoint;
    const int n_thread = tsr_sampler_n_thread(s->sampler);
    if (!s->is_resumed) {
        TSR_TRY(rewrite_config(s, err));
        TSR_TRY(make_files(s, err)); /* which stay after a failure */
        tsr_info(s->log,
                 "restarted from the beginning: the run was stopped before its "
                 "first checkpoint; %d threads",
                 n_thread);
        return TSR_OK;
    }
    TSR_TRY(set_aside_checkpoint(s, err));
    TSR_TRY(tsr_wrap(err, restore(s, err), "'%s'", s->directory));
    tsr_info(s->log,
             "resumed from the checkpoint of %s: %ld draws of warm-up, %ld "
             "kept; %d threads",
             at->written_at, s->progress.warmup, s->progress.draws, n_thread);
    log_ranks(s);
    if (at->arithmetic != tsr_run_arithmetic(s->setup))
        tsr_warn(s->log, "the device, its driver, the kernels or the kind of "
                         "processor changed since the last session: further "
                         "draws are valid, but not bit-identical to those of "
                         "an uninterrupted run");
    return TSR_OK;
}

/* ---- checkpoints ---- */

/* Time of the next write after one that took `took` seconds: `every` seconds
 * from now, or later, to spend at most 2 % of the time on writing. */
static double next_due(double now, double took, double every)
{
    const double share = 0.02;
    return now + (took / share > every ? took / share : every);
}

/* Saves the current state in memory, for the next checkpoint. */
static tsr_status save_state(tsr_session *s, tsr_err *err)
{
    TSR_TRY(tsr_sampler_gather(s->sampler, err));
    tsr_archive_begin(&s->saved);
    tsr_sampler_archive(s->sampler, &s->saved);
    s->saved_progress = s->progress;
    TSR_TRY(save_error(s, err));
    return tsr_archive_end(&s->saved, err);
}

/* Writes the last saved state to disk. Errors: TSR_E_IO. */
static tsr_status write_checkpoint(tsr_session *s, tsr_err *err)
{
    double before = tsr_clock_s();
    tsr_status status = TSR_OK;
    if (s->saved.n_real == 0)
        status = save_state(s, err);
    if (s->draws != NULL)
        TSR_THEN(status, tsr_draw_log_sync(s->draws, err));
    s->saved_progress.is_finished = s->progress.is_finished;
    s->saved_progress.is_converged = s->progress.is_converged;
    s->saved_progress.expected = s->progress.expected;
    const tsr_run_checkpoint checkpoint = {
        .progress = s->saved_progress,
        .identity = s->identity,
        .text = s->config_text,
        .arithmetic = tsr_run_arithmetic(s->setup),
        .saved = s->saved,
        .error = s->saved_error,
        .error_text = s->setup->data.model_error};
    TSR_THEN(status, tsr_run_checkpoint_write(s->directory, &checkpoint, err));
    double now = tsr_clock_s();
    s->next_checkpoint =
        next_due(now, now - before, s->config->output.checkpoint_every);
    s->storing += now - before;
    return status;
}

/* Updates trace and trajectories for other programs. */
static tsr_status write_files(tsr_session *s, tsr_err *err)
{
    const double before = tsr_clock_s();
    const tsr_status status = update_files(s, NULL, err);
    const double now = tsr_clock_s();
    s->n_updated = s->progress.warmup + s->progress.draws;
    s->next_update = next_due(now, now - before, 0.0);
    s->storing += now - before;
    /* apart from lack of memory, any error here is one of the disk: the data
     * were valid when they were written */
    return status == TSR_OK || status == TSR_E_NOMEM
               ? status
               : tsr_wrap(err, TSR_E_IO, "cannot write the run's files");
}

/* The files are rewritten as a whole, so only after the number of draws has
 * grown by a quarter. */
static int files_are_due(const tsr_session *s)
{
    const long n = s->progress.warmup + s->progress.draws;
    return n - s->n_updated > s->n_updated / 4 &&
           tsr_clock_s() >= s->next_update;
}

/* ---- stopping ---- */

tsr_status tsr_session_check_stop(const tsr_session *session, tsr_status status,
                                  tsr_err *err)
{
    char word[TSR_SHELL_SIZE];
    if (!is_stopped(session) ||
        (status != TSR_OK && status != TSR_E_INTERRUPTED))
        return status;
    if (session->lock != NULL) /* a resumed run */
        return tsr_fail(
            err, TSR_E_INTERRUPTED,
            "interrupted before the first draw; to continue: tessera resume %s",
            tsr_text_shell(session->config->output.directory, word));
    if (status == TSR_OK)
        tsr_fail(err, TSR_E_INTERRUPTED, "interrupted before the first draw");
    return tsr_wrap(err, TSR_E_INTERRUPTED,
                    "nothing was written; start the run again");
}

tsr_status tsr_session_read(tsr_session *session, tsr_err *err)
{
    tsr_session *s = session;
    tsr_config *c = s->config;
    const int is_new = s->lock == NULL;
    /* The folder of a new run is checked again when it is created. */
    TSR_TRY(is_new
                ? tsr_config_locate_error(
                      c, tsr_run_directory_check(c->output.directory, err), err)
                : extend(s, err));
    TSR_TRY(tsr_config_locate_error(
        c, tsr_until_parse(c->sampler.until, &s->until, err), err));
    tsr_status status = tsr_setup_read(c, 1, s->log, s->setup, err);
    s->setup->watch = &s->watch;
    s->now = (tsr_session_state){(double)NAN, (double)NAN, (double)NAN,
                                 (double)NAN, (double)NAN};
    status = tsr_session_check_stop(s, status, err);
    if (s->is_resumed)
        TSR_THEN(status, use_model_error(s, err));
    return status;
}

void tsr_session_clear(tsr_session *session)
{
    tsr_session *s = session;
    tsr_sampler_free(s->sampler);
    tsr_draw_log_free(s->draws);
    tsr_trajectory_writer_free(s->writer);
    tsr_record_free(s->record);
    tsr_archive_clear(&s->saved);
    tsr_archive_clear(&s->saved_error);
    tsr_lock_free(s->lock);
    tsr_run_checkpoint_clear(&s->checkpoint);
    free(s->config_text);
    memset(s, 0, sizeof *s);
}

/* ---- drawing ----
 *
 * Warm-up draws, then kept draws, in blocks, with checkpoints at epochs. */

/* Number of draws in an epoch. All chains are recomputed and saved at the start
 * of each epoch (run_session.h). An epoch has about as many steps as the
 * molecule has bodies, 200 to 2000: enough that recomputing takes some 2 % of
 * the time, and few enough that a kill loses little. */
static long epoch_length(const tsr_config *config, const tsr_setup *setup)
{
    long n_body = setup->molecule.topology->n_body;
    long steps = n_body < 200 ? 200 : n_body > 2000 ? 2000 : n_body;
    return (steps + tsr_sampler_thin(&config->sampler) - 1) /
           tsr_sampler_thin(&config->sampler);
}

/* ---- progress line ---- */

/* State of the progress line. */
typedef struct {
    tsr_session *session;
    const char *phase;
    double began, shown, block; /* s: start of the phase, last progress line,
                                   start of this block */
    long first, before, total;  /* steps of the phase: stored before this
                                   session, stored before this block, planned */
    char converged[64];         /* R-hat and effective draws; "": unknown */
} progress;

static void show_progress(void *context, const tsr_progress *now)
{
    progress *p = context;
    tsr_session *s = p->session;
    double time = tsr_clock_s(), elapsed = time - p->began;
    long step = p->before + now->step, here = step - p->first;
    char line[256], left[48], chi2[32] = "";
    tsr_run_progress at = s->progress;
    at.steps += now->step;
    at.seconds += time - p->block;
    s->now.chi2 = now->chi2;
    s->now.left_s = p->total > 0
                        ? tsr_run_remaining(s->config, &s->identity, &at, left)
                        : (double)NAN;
    tsr_watch_call(&s->watch, p->phase, step, p->total);
    if (time - p->shown < (tsr_log_is_terminal(s->log) ? 0.2 : 10.0))
        return;
    p->shown = time;
    if (!isnan(now->chi2))
        snprintf(chi2, sizeof chi2, ", chi2 %.3g", now->chi2);
    if (p->total == 0) /* the total is unknown */
        snprintf(line, sizeof line, "%-8s %.0f s, %.0f steps/s%s", p->phase,
                 elapsed, (double)here / elapsed, chi2);
    else
        snprintf(line, sizeof line, "%-8s %3.0f %%, %.0f steps/s%s%s, %s left",
                 p->phase, 100.0 * (double)step / (double)p->total,
                 (double)here / elapsed, chi2, p->converged, left);
    tsr_log_progress(s->log, line);
}

/* Are all draws made, or is the time limit reached? */
static int has_ended(const tsr_session *s)
{
    const tsr_sampler_options *o = &s->config->sampler;
    enum { LEAST = 4 }; /* needed to judge convergence */
    return s->progress.draws >= tsr_sampler_draws(o) ||
           (o->time_limit > 0.0 && s->progress.draws >= LEAST &&
            s->progress.seconds >= o->time_limit);
}

/* Sets the expected number of draws. factor: by how much the number of draws
 * must grow until convergence, as tsr_until_check estimates. */
static void set_expected(progress *p, tsr_session *s, double factor)
{
    const double most = (double)tsr_sampler_draws(&s->config->sampler);
    const double needed = factor * (double)s->progress.draws;
    const long draws =
        (long)fmin(most, fmax(needed, (double)s->progress.next_check));
    s->progress.expected = s->progress.warmup + draws;
    p->total = draws * tsr_run_draw_steps(s->config, &s->identity);
    snprintf(p->converged, sizeof p->converged, ", R-hat %.3f, ESS %.0f",
             s->now.rhat, s->now.ess);
}

/* ---- blocks of draws ---- */

/* Number of draws at the next check of --until: as many as the last check
 * expects to suffice (factor), but 5 to 25 % more than there were. */
static long next_check_after(long last, double factor)
{
    return 1 + (long)((double)last * fmin(fmax(factor, 1.05), 1.25));
}

/* Checks --until when a check is due. If the chains have not converged, the
 * expected number of draws is set, from which the progress line has its share
 * and the time left. */
static tsr_status check_until(tsr_session *s, progress *p, tsr_err *err)
{
    char worst[160];
    double factor, at_worst[2];
    long done = s->progress.draws;
    if (!tsr_until_is_set(&s->until) ||
        (done < s->progress.next_check && !has_ended(s)))
        return TSR_OK;
    tsr_status status = tsr_until_check(&s->until, s->trace.text, &factor,
                                        worst, at_worst, err);
    if (status == TSR_OK) {
        s->progress.next_check = next_check_after(done, factor);
        s->now.rhat = at_worst[0];
        s->now.ess = at_worst[1];
        s->now.converged = fmin(1.0, 1.0 / factor);
    }
    s->progress.is_converged = status == TSR_OK && factor <= 1.0;
    if (s->progress.is_converged) {
        tsr_log_progress(s->log, "");
        tsr_info(s->log,
                 "converged by the criterion after %ld draws per chain (%s)",
                 done, worst);
    } else if (status == TSR_OK) {
        tsr_log_progress(s->log, "");
        tsr_debug(s->log, "%ld draws: not converged yet; %s", done, worst);
        set_expected(p, s, factor);
    }
    return status;
}

/* Appends the draws of a block to the draw log. */
static tsr_status store_draws(tsr_session *s, int warm, int n, tsr_err *err)
{
    const double before = tsr_clock_s();
    const long first = warm ? s->progress.warmup : s->progress.draws;
    tsr_status status =
        tsr_record_write(s->record, s->draws, warm, first, n, err);
    if (status == TSR_OK && !warm && s->writer != NULL)
        status = tsr_trajectory_writer_write(s->writer, s->draws, n, err);
    s->is_broken |= status != TSR_OK;
    s->storing += tsr_clock_s() - before;
    return status;
}

/* Draws a block of n draws and stores those that all chains completed. */
static tsr_status draw_block(tsr_session *s, int warm, int n, progress *p,
                             tsr_err *err)
{
    long thin = tsr_sampler_thin(&s->config->sampler);
    const long steps = tsr_run_draw_steps(s->config, &s->identity);
    const double before = p->block = tsr_clock_s();
    int n_done;
    if (s->writer != NULL)
        tsr_trajectory_writer_begin(s->writer, s->progress.draws);
    tsr_status status = tsr_sampler_advance(
        s->sampler, s->record, n, thin, warm, show_progress, p, &n_done, err);
    s->progress.seconds += tsr_clock_s() - before;
    tsr_status stored =
        store_draws(s, warm, n_done, status == TSR_OK ? err : NULL);
    *(warm ? &s->progress.warmup : &s->progress.draws) += n_done;
    s->progress.steps += (long)n_done * steps;
    p->before += (long)n_done * steps;
    return status == TSR_OK ? stored : status;
}

/* Recomputes all chains, which reveals errors of a device since they were last
 * recomputed. */
static tsr_status refresh(tsr_session *s, tsr_err *err)
{
    double before = tsr_clock_s();
    tsr_status status = tsr_sampler_refresh(s->sampler, err);
    s->progress.seconds += tsr_clock_s() - before;
    return status;
}

/* Starts an epoch: recomputes all chains, and then saves their state, which is
 * thereby verified. Writes a checkpoint when it is due. */
static tsr_status begin_epoch(tsr_session *s, int warm, tsr_err *err)
{
    tsr_status status =
        warm ? tsr_sampler_average_warmup(s->sampler, err) : TSR_OK;
    TSR_THEN(status, refresh(s, err));
    TSR_THEN(status, save_state(s, err));
    if (status == TSR_OK && tsr_clock_s() >= s->next_checkpoint) {
        status = write_checkpoint(s, err);
        if (status == TSR_OK && files_are_due(s))
            status = write_files(s, err);
        s->is_broken |= status != TSR_OK;
    }
    return status;
}

/* On SIGUSR1, writes the state of the last epoch as a checkpoint. */
static tsr_status answer_request(tsr_session *s, tsr_err *err)
{
    if (!tsr_checkpoint_requested)
        return TSR_OK;
    tsr_checkpoint_requested = 0;
    tsr_status status = write_checkpoint(s, err);
    s->is_broken |= status != TSR_OK;
    if (status == TSR_OK) {
        tsr_log_progress(s->log, "");
        tsr_info(s->log,
                 "checkpoint on request: %ld draws of warm-up, %ld kept",
                 s->saved_progress.warmup, s->saved_progress.draws);
    }
    return status;
}

/* Warm-up draws. The populations phase has done most of the adaptation, so only
 * half of the requested warm-up follows that phase, or an eighth if surrogate
 * walks move the chains. */
static long warmup_draws(const tsr_session *s)
{
    const long n = tsr_run_warmup_requested(s->config);
    const long part = tsr_target_has_global_moves(&s->setup->target) ? 8 : 2;
    return tsr_sampler_population(s->sampler).n_level > 0
               ? (n + part - 1) / part
               : n;
}

/* With the all-atom target, the model error is learnt again at one half and
 * three quarters of warm-up, from examples that the chains collect from one
 * quarter on. */
static int is_learning_draw(const tsr_session *s, long done, long total)
{
    return s->setup->target.all_atom != NULL && done > 0 &&
           (done == total / 4 || done == total / 2 || done == 3 * total / 4);
}

static tsr_status learn_from_chains(tsr_session *s, long done, long total,
                                    tsr_err *err)
{
    const int is_first = done == total / 4, is_last = done == 3 * total / 4;
    TSR_TRY(tsr_setup_relearn_from_chains(s->config, s->log, s->sampler,
                                          is_last, s->setup, err));
    return is_first && !is_last ? TSR_OK : tsr_sampler_refresh(s->sampler, err);
}

/* n draws, or fewer, so that the block ends where the model error is learnt
 * next. */
static long draws_until_learning(const tsr_session *s, long done, long total,
                                 long n)
{
    for (long k = 1; k < n; k++)
        if (is_learning_draw(s, done + k, total))
            return k;
    return n;
}

/* Draws one phase in blocks of one to four seconds, or shorter ones if memory
 * limits them. The size of the blocks does not affect the draws. */
static tsr_status draw_phase(tsr_session *s, int warm, tsr_err *err)
{
    const long *done = warm ? &s->progress.warmup : &s->progress.draws;
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
    if (s->progress.draws == 0 || !tsr_until_is_set(&s->until))
        s->progress.expected = (warm ? total : s->progress.warmup) +
                               tsr_sampler_draws(&s->config->sampler);
    while (s->progress.next_check <=
           s->progress.draws) /* --until was added on resume */
        s->progress.next_check =
            next_check_after(s->progress.next_check, HUGE_VAL);
    while (*done < total && status == TSR_OK && !is_stopped(s) &&
           (warm || (!s->progress.is_converged && !has_ended(s)))) {
        long n = total - *done < block ? total - *done : block;
        if (*done % epoch == 0)
            status = begin_epoch(s, warm, err);
        if (warm && status == TSR_OK && is_learning_draw(s, *done, total))
            status = learn_from_chains(s, *done, total, err);
        if (status == TSR_E_INTERRUPTED)
            break; /* some chains were not recomputed, so no more draws */
        if (warm)
            n = draws_until_learning(s, *done, total, n);
        if (n > epoch - *done % epoch)
            n = epoch - *done % epoch;
        if (!warm && tsr_until_is_set(&s->until) &&
            n > s->progress.next_check - *done)
            n = s->progress.next_check -
                *done; /* checks happen at fixed numbers of draws,
                          independent of time */
        double before = tsr_clock_s();
        TSR_THEN(status, draw_block(s, warm, (int)n, &p, err));
        double took = tsr_clock_s() - before;
        tsr_watch_call(&s->watch, p.phase, *done * steps, p.total);
        if (!warm && status == TSR_OK)
            status = check_until(s, &p, err);
        TSR_THEN(status, answer_request(s, err));
        if (took < 1.0 && 2 * block <= tsr_record_capacity(s->record))
            block *= 2;
        else if (took > 4.0 && block > 1)
            block /= 2;
    }
    if (tsr_log_is_terminal(s->log) && *done == total && total > 0) {
        p.total = total * steps;
        p.shown = 0.0; /* the last line shows 100 % */
        show_progress(&p, &(tsr_progress){.chi2 = s->now.chi2});
    }
    tsr_log_progress(s->log, "");
    if (!warm && status == TSR_OK && !tsr_until_is_set(&s->until) &&
        *done < total && has_ended(s))
        tsr_info(s->log,
                 "the time limit is reached after %ld of %ld draws per chain",
                 *done, total);
    int is_end = !warm && (s->progress.is_converged || has_ended(s));
    if (is_end && status == TSR_OK)
        status = refresh(s, err); /* verifies the draws since the start of
                                     the epoch */
    if (status == TSR_E_INTERRUPTED)
        return TSR_OK; /* sample() reports the stop */
    s->progress.is_finished = is_end && status == TSR_OK;
    return status;
}

/* Logs the result of the populations phase, or why there was none although
 * sampler.evidence was set. */
static void log_population(const tsr_session *s, double seconds)
{
    const tsr_target *t = &s->setup->target;
    const tsr_population found = tsr_sampler_population(s->sampler);
    double error;
    if (found.n_level == 0) {
        if (s->config->sampler.evidence && t->likelihood != NULL)
            tsr_warn(s->log,
                     "sampler.evidence: no log evidence can be computed, as "
                     "the chains do not start from the prior (%s)",
                     tsr_likelihood_min_beta(t->likelihood) > 0.0
                         ? "scale or background is sampled, under a flat prior"
                     : t->starts_in_pool ? "sampler.start: pool"
                     : t->n_start > 0
                         ? "structure.starts says where chains start"
                         : "see sampler.start, chains and t_max");
        return;
    }
    const double log_evidence =
        tsr_evidence_pool_groups(t->n_group, t->group_log_z, &error);
    tsr_info(
        s->log,
        "%d groups of chains were tempered from the prior in %d levels of some "
        "%ld steps, %.0f s: barrier %.1f, log evidence%s %.1f +- %.1f nat",
        t->n_group, found.n_level, found.n_step / found.n_level, seconds,
        found.barrier, t->all_atom != NULL ? " from bodies" : "", log_evidence,
        error);
    if (found.n_pooled > 0)
        tsr_warn(s->log,
                 "at %d of the levels few groups held the evidence, and all "
                 "groups went on from theirs: R-hat and the errors between "
                 "groups do not show which placements all of them have missed; "
                 "more chains or a longer warm-up find more",
                 found.n_pooled);
}

/* The populations phase: brings each group of chains from the prior to the
 * posterior, before warm-up. */
static tsr_status populate(tsr_session *s, tsr_err *err)
{
    /* levels: a level gets warmup / levels + 1 steps at most, so that this many
     * levels take as long as warm-up */
    const int walks = tsr_target_has_global_moves(&s->setup->target),
              levels = walks ? 24 : 8;
    const long warmup = s->config->sampler.warmup;
    const double before = tsr_clock_s(), share = 0.4; /* of
                                                         sampler.time_limit */
    progress p = {
        .session = s, .phase = "starts", .began = before, .shown = before};
    tsr_status status = tsr_sampler_populate(
        s->sampler, s->record, warmup / levels + 1,
        share * s->config->sampler.time_limit, show_progress, &p, err);
    s->progress.seconds += tsr_clock_s() - before;
    s->progress.steps = population_steps(s); /* also those before a stop */
    tsr_log_progress(s->log, "");
    if (status != TSR_OK || is_stopped(s))
        return status;
    log_population(s, tsr_clock_s() - before);
    return make_trace(s, err);
}

static tsr_status draw_all(tsr_session *s, tsr_err *err)
{
    const tsr_sampler_options *o = &s->config->sampler;
    double began = tsr_clock_s();
    if (s->progress.warmup == 0 && s->progress.draws == 0)
        TSR_TRY(populate(s, err));
    if (is_stopped(s))
        return TSR_OK;
    const int had_population = tsr_sampler_population(s->sampler).n_level > 0;
    const long warmup = warmup_draws(s);
    const int had_warmup = s->progress.warmup < warmup;
    /* The plan starts at the chi2 of the chains, which a restored chain has
     * only once its curve is computed. */
    if (s->is_resumed && s->progress.warmup == 0)
        TSR_TRY(refresh(s, err));
    if (s->progress.warmup == 0 &&
        tsr_sampler_plan_warmup(s->sampler, warmup * tsr_sampler_thin(o),
                                had_population ? 0.0 : o->anneal))
        tsr_info(s->log,
                 "warm-up begins at a higher power of the likelihood than chi2 "
                 "of the starting structure suggests: with student errors a "
                 "lower power would leave scale and background undetermined");
    if (had_warmup)
        TSR_TRY(draw_phase(s, 1, err));
    if (is_stopped(s))
        return TSR_OK;
    if (had_warmup)
        TSR_TRY(tsr_sampler_average_warmup(s->sampler, err));
    if (had_warmup)
        TSR_TRY(tsr_sampler_gather(s->sampler, err));
    if (had_warmup)
        log_stuck(s->setup, s->sampler, s->log);
    if (s->progress.draws == 0)
        tsr_sampler_counts_reset(s->sampler);
    TSR_TRY(draw_phase(s, 0, err));
    if (!is_stopped(s)) {
        TSR_TRY(tsr_sampler_gather(s->sampler, err));
        log_moves(s->setup, s->sampler, s->log);
        log_ladder(s->setup, s->sampler, s->log);
        log_all_atoms(s->sampler, s->log);
        log_times(s->sampler, s->log);
        tsr_info(s->log, "files: writing took %.1f s, %.1f %% of the time",
                 s->storing, 100.0 * s->storing / (tsr_clock_s() - began));
    }
    return TSR_OK;
}

/* ---- estimate of the duration ---- */

static void ignore_progress(void *context, const tsr_progress *now)
{
    (void)context;
    (void)now;
}

tsr_status tsr_session_estimate(tsr_session *session, double seconds,
                                double *start, double *each, tsr_err *err)
{
    tsr_session *s = session;
    const tsr_sampler_options *o = &s->config->sampler;
    double took = 0.0;
    long n_draw = 0;
    int n_done = 0;
    double before = tsr_clock_s();
    TSR_TRY(prepare(s, err));
    (void)tsr_sampler_plan_warmup(
        s->sampler, tsr_run_warmup_requested(s->config) * tsr_sampler_thin(o),
        o->anneal);
    TSR_TRY(tsr_sampler_refresh(s->sampler, err));
    *start = tsr_clock_s() - before;
    const int most = tsr_record_capacity(s->record);
    /* not timed, because the first calls of a device are slower */
    TSR_TRY(tsr_sampler_advance(s->sampler, s->record, 1, tsr_sampler_thin(o),
                                1, ignore_progress, NULL, &n_done, err));
    for (int n = 1; took < seconds && n_done > 0;
         n = 2 * n < most ? 2 * n : n) {
        before = tsr_clock_s();
        TSR_TRY(tsr_sampler_advance(s->sampler, s->record, n,
                                    tsr_sampler_thin(o), 1, ignore_progress,
                                    NULL, &n_done, err));
        took += tsr_clock_s() - before;
        n_draw += n_done;
    }
    *each = took / (double)(n_draw > 0 ? n_draw : 1);
    return TSR_OK;
}

/* ---- end of a session ---- */

/* Appends to an error message what to mend, and the command that resumes the
 * run. */
static tsr_status add_remedy(const tsr_session *s, tsr_status status,
                             tsr_err *err)
{
    static const char *const first[] = {
        [TSR_E_IO] = "free space or repair the folder, then ",
        [TSR_E_DEVICE] = "once the device works again, or with --device, "};
    const char *kernels = getenv("TSR_KERNEL_DIR");
    const char *kernel_advice =
        status == TSR_E_DEVICE && kernels != NULL && *kernels != '\0'
            ? "without TSR_KERNEL_DIR, or "
            : "";
    char message[TSR_ERR_SIZE], word[TSR_SHELL_SIZE];
    if (err == NULL ||
        (status != TSR_E_IO && status != TSR_E_DEVICE && status != TSR_E_NOMEM))
        return status;
    snprintf(message, sizeof message, "%s", err->message);
    return tsr_fail(
        err, status,
        "%s; %s%scontinue from the last checkpoint: tessera resume %s", message,
        kernel_advice, status == TSR_E_NOMEM ? "" : first[status],
        tsr_text_shell(s->directory, word));
}

/* Writes the last checkpoint before the files, because large files take long.
 * The run is marked as finished only when the files contain all draws. */
static tsr_status close_files(tsr_session *s, tsr_err *err)
{
    const int is_finished = s->progress.is_finished;
    s->progress.is_finished = 0;
    TSR_TRY(write_checkpoint(s, err));
    TSR_TRY(write_files(s, err));
    s->progress.is_finished = is_finished;
    return is_finished ? write_checkpoint(s, err) : TSR_OK;
}

/* Draws until the run ends, a stop is requested (TSR_E_INTERRUPTED), or an
 * error occurs. Then writes a checkpoint, trace and trajectories, unless
 * writing has already failed. */
static tsr_status sample(tsr_session *s, tsr_err *err)
{
    tsr_status status = draw_all(s, err), closed = TSR_OK;
    if (!s->is_broken)
        closed = close_files(s, status == TSR_OK ? err : NULL);
    TSR_THEN(status, closed);
    if (status == TSR_OK && is_stopped(s) && !s->progress.is_finished) {
        char draws[80], word[TSR_SHELL_SIZE];
        tsr_sampler_draws_text(&s->config->sampler, s->progress.draws, draws);
        return tsr_fail(
            err, TSR_E_INTERRUPTED,
            "interrupted; %s are stored; to continue: tessera resume %s", draws,
            tsr_text_shell(s->directory, word));
    }
    return add_remedy(s, status, err);
}

tsr_status tsr_session_run(tsr_session *session, tsr_err *err)
{
    tsr_session *s = session;
    const int is_new = s->lock == NULL;
    tsr_status status = tsr_session_check_stop(s, prepare(s, err), err);
    if (!is_new && status != TSR_OK && status != TSR_E_INTERRUPTED)
        return tsr_wrap(err, status, "'%s'", s->config->output.directory);
    TSR_TRY(status);
    TSR_TRY(is_new ? begin(s, err) : resume(s, err));
    if (is_new) {
        tsr_info(s->log,
                 "tessera %s, %d chains of %d temperatures, %d threads, output "
                 "in %s",
                 TSR_VERSION, s->setup->n_chain,
                 tsr_target_n_temp(&s->setup->target),
                 tsr_sampler_n_thread(s->sampler), s->directory);
        log_ranks(s);
        log_idle_moves(s->setup, s->log);
        log_size(s->config, s->setup, s->log);
    }
    status = sample(s, err);
    if (status != TSR_OK)
        tsr_log_write_file(s->log, TSR_LOG_ERROR, err->message);
    return status;
}

/* ---- the other ranks ---- */

static tsr_status learn(void *context, int last, tsr_err *err)
{
    const tsr_session *s = context;
    return tsr_setup_relearn_from_chains(s->config, s->log, s->sampler, last,
                                         s->setup, err);
}

/* Sets the session up like that of rank 0. */
static tsr_status prepare_like(tsr_session *s, const rank_message *m,
                               const char *text, tsr_err *err)
{
    TSR_TRY(tsr_config_parse(text, s->config, err));
    TSR_TRY(tsr_setup_read(s->config, 1, s->log, s->setup, err));
    s->setup->known_error = &s->saved_error;
    TSR_TRY(tsr_setup_engine(s->config, m->n_chain, s->log, s->setup, err));
    s->identity = tsr_run_identity_of(s->setup);
    if (memcmp(&s->identity, &m->identity, sizeof m->identity) != 0)
        return tsr_fail(err, TSR_E_DATA,
                        "the input files are not those of the first rank");
    return make_sampler(s, err);
}

tsr_status tsr_session_follow(tsr_log *log, tsr_err *err)
{
    tsr_config config = {0};
    tsr_setup setup = {0};
    tsr_session s = {.config = &config, .setup = &setup, .log = log};
    rank_message m;
    TSR_TRY(tsr_ranks_broadcast(&m, sizeof m, 0, err));
    char *text = malloc(m.n_text);
    tsr_status status = tsr_allocated(text, err);
    TSR_THEN(status, tsr_ranks_broadcast(text, m.n_text, 0, err));
    TSR_THEN(status, tsr_ranks_pass(&s.saved_error, 0, -1, err));
    s.is_resumed = m.is_resumed;
    TSR_THEN(status,
             tsr_ranks_agree(prepare_like(&s, &m, text, err), NULL, err));
    TSR_THEN(status, compare_arithmetic(&s, err));
    TSR_THEN(status, tsr_sampler_follow(s.sampler, s.record, learn, &s, err));
    free(text);
    tsr_session_clear(&s);
    tsr_setup_clear(&setup);
    tsr_config_clear(&config);
    return status;
}
