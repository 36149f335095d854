/* Tells the log and the user of a run what it will do, how large its files
 * become, and how its sampler fares. */
#include "session/run_tell.h"

#include "session/run_session.h"

#include <gsl/gsl_sort.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <sys/statvfs.h>

/* ---- size ---- */

typedef struct {
    double trace, trajectories; /* MiB */
} sizes;

static sizes sizes_of(const tsr_config *config, const tsr_setup *setup)
{
    const double mib = 1048576.0, scalars = 40.0;
    const tsr_sampler_options *o = &config->sampler;
    tsr_track_options track = tsr_session_track_options(config);
    double draw = scalars * sizeof(double);
    const tsr_likelihood *l = setup->likelihood;
    for (int d = 0; l != NULL && d < l->n_term; d++)
        draw += 3.0 * sizeof(float) * l->term[d]->n_point;
    sizes s = {0.7 + draw * (double)tsr_sampler_draws(o) * setup->n_chain / mib,
               0.0};
    s.trace += scalars * sizeof(double) * (double)tsr_session_warmup(config) *
               setup->n_chain / mib;
    if (track.atoms || track.bodies)
        s.trajectories = tsr_track_bytes(&setup->target, setup->n_chain, &track,
                                         tsr_sampler_draws(o)) /
                         mib;
    return s;
}

/* MiB that are free where the directory is or will be; infinite: unknown. */
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

void tsr_run_tell_size(const tsr_config *config, const tsr_setup *setup,
                       tsr_log *log)
{
    sizes s = sizes_of(config, setup);
    double room = free_space(config->output.directory);
    tsr_info(log,
             "files: %s %.3g MiB of trace.h5 and %.3g MiB of trajectories "
             "(output.trajectory, trajectory_every)",
             config->sampler.until != NULL ? "at most" : "about", s.trace,
             s.trajectories);
    if (s.trace + s.trajectories > room)
        tsr_warn(log,
                 "'%s' has room for %.3g MiB, less than the run will write: "
                 "fewer draws or frames, or another folder",
                 config->output.directory, room);
}

/* ---- the plan ---- */

void tsr_run_plan(const tsr_config *config, const tsr_setup *setup, FILE *out)
{
    const tsr_topology *t = setup->topology;
    const tsr_sampler_options *o = &config->sampler;
    fprintf(out,
            "molecule: %d residues, %d chain%s, %d bodies, %d free torsions, "
            "%d free side chains\n",
            tsr_topology_n_monomer(t), t->n_chain, t->n_chain == 1 ? "" : "s",
            t->n_body, t->n_torsion, t->n_side);
    const tsr_likelihood *l = setup->likelihood;
    for (int d = 0; l != NULL && d < l->n_term; d++) {
        const tsr_term *term = l->term[d];
        fprintf(out, "data: %s", term->label);
        if (term->n_point > 1)
            fprintf(out, ", %d points, %s %.4f to %.4f %s", term->n_point,
                    term->type->axis, term->coord[0],
                    term->coord[term->n_point - 1], term->type->axis_unit);
        fputc('\n', out);
    }
    for (const char *line = setup->engine_text; line != NULL;) {
        size_t length = strcspn(line, "\n");
        fprintf(out, "engine: %.*s\n", (int)length, line);
        line = line[length] == '\n' ? line + length + 1 : NULL;
    }
    for (int d = 0; d < setup->n_engine; d++) {
        const tsr_engine *e = setup->share[d].engine;
        if (e->system_bytes > 0.0)
            fprintf(out,
                    "memory: %.0f bytes a system, %d systems of %.0f that the "
                    "device has room for, %.1f MiB in total\n",
                    e->system_bytes, e->n_system, e->most_systems,
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
    if (setup->n_engine > 0)
        fprintf(out,
                "systems: %d, of %d chains x %d temperatures x %d state%s\n",
                setup->n_chain * n_temp * n_state, setup->n_chain, n_temp,
                n_state, n_state == 1 ? "" : "s");
    sizes size = sizes_of(config, setup);
    fprintf(out,
            "output: %s, about %.3g MiB of trace.h5 and %.3g MiB of "
            "trajectories\n",
            config->output.directory, size.trace, size.trajectories);
}

/* ---- what goes on in the sampler ----
 *
 * Told while it can still be changed: moves with nothing to move, temperatures
 * that do not exchange, chains left behind after warm-up. */

void tsr_tell_idle_moves(const tsr_setup *setup, tsr_log *log)
{
    char list[256] = "";
    size_t used = 0;
    if (setup->target.is_still) {
        tsr_info(log, "structure.still: the structures stay as they are");
        return;
    }
    for (int m = 0; m < TSR_N_MOVE && used < sizeof list; m++) {
        const void *options = setup->move_options[m];
        double weight;
        memcpy(&weight, options, sizeof weight);
        if (weight > 0.0 && tsr_move_registry[m]->propose != NULL &&
            tsr_move_registry[m]->n_target(options, setup->topology) == 0)
            used += (size_t)snprintf(list + used, sizeof list - used, "%s%s",
                                     used > 0 ? ", " : "",
                                     tsr_move_registry[m]->name);
    }
    if (used > 0)
        tsr_info(log, "moves with nothing to move here: %s", list);
}

void tsr_tell_moves(const tsr_setup *setup, tsr_sampler *sampler, tsr_log *log)
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

/* Temperatures of the first chain, how often neighbours were exchanged, and
 * round trips. */
void tsr_tell_ladder(const tsr_setup *setup, const tsr_sampler *sampler,
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
    if (rarest > 0.2) /* seldom exchanged, a pair hides how far apart it is */
        tsr_info(log,
                 "barrier %.1f: some %.0f temperatures are enough (Syed et "
                 "al. 2022)",
                 barrier, ceil(2.0 * barrier) + 1.0);
    else
        tsr_info(log, "barrier above %.1f: more temperatures would help",
                 barrier);
    tsr_info(log, "temperatures%s; exchanged%s %%; %ld round trips in all",
             temperature, rate, trips);
}

void tsr_tell_atoms(const tsr_sampler *sampler, tsr_log *log)
{
    const double rare = 0.01, rate = tsr_sampler_fine_rate(sampler);
    if (isnan(rate))
        return;
    tsr_info(log,
             "draws of all atoms: the bodies' chains gave a new one %.1f times "
             "in 100 that were offered",
             100.0 * rate);
    if (rate < rare)
        tsr_warn(log,
                 "bodies hardly ever give a draw of all atoms: they are too "
                 "unlike for data as precise as these, or chains had not "
                 "found the posterior when they learnt from it; give them more "
                 "sampler.warmup, or take structure.bodies: two (or, with "
                 "water that rides along, device.engine: waves, which moves "
                 "all atoms)");
}

void tsr_tell_times(const tsr_sampler *sampler, tsr_log *log)
{
    tsr_sampler_times t = tsr_sampler_times_get(sampler);
    double all = t.propose + t.walk + t.submit + t.wait + t.decide + t.store +
                 t.refresh + t.audit + t.fine;
    if (all > 0.0)
        tsr_info(
            log,
            "host time: propose, with densities %.0f %%, excluded volume "
            "%.0f %%, walks and redraws %.0f %%, hand to the "
            "device %.0f %%, wait for it %.0f %%, likelihood and "
            "acceptance %.0f %%, store "
            "%.1f %%, afresh for checkpoints %.1f %%, checked against double "
            "precision %.2f %%, curves of all atoms %.0f %%",
            100.0 * (t.propose - t.clash) / all, 100.0 * t.clash / all,
            100.0 * t.walk / all, 100.0 * t.submit / all, 100.0 * t.wait / all,
            100.0 * t.decide / all, 100.0 * t.store / all,
            100.0 * t.refresh / all, 100.0 * t.audit / all,
            100.0 * t.fine / all);
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

void tsr_tell_stuck(const tsr_setup *setup, tsr_sampler *sampler, tsr_log *log)
{
    enum { MOST = 5 };           /* that are named */
    const double far_nat = 30.0; /* exp(-30) of the posterior */
    int n = setup->n_chain, n_behind = 0;
    if (setup->likelihood == NULL)
        return;
    double *value = sorted_log_liks(n, sampler);
    if (value == NULL)
        return;
    double middle = value[n / 2];
    free(value);
    for (int c = 0; c < n; c++) {
        const tsr_chain *chain = tsr_sampler_chain(sampler, c);
        double chi2 = tsr_chain_chi2(chain);
        double behind = middle - tsr_chain_log_lik(chain);
        const int is_still = !setup->target.is_still && accepted_of(chain) == 0;
        if (!is_still && !(behind > far_nat))
            continue;
        if (++n_behind > MOST)
            continue;
        if (is_still)
            tsr_warn(
                log,
                "chain %d is where it started after warm-up (chi2 %.3g): "
                "nothing was accepted; look at the moves, prior.restraints "
                "and structure.flexible",
                c, chi2);
        else
            tsr_warn(log,
                     "chain %d is stuck after warm-up: chi2 %.3g, its log "
                     "likelihood %.0f nat below the middle of the chains; give "
                     "it more sampler.warmup or sampler.temperatures",
                     c, chi2, behind);
    }
    if (n_behind > MOST)
        tsr_warn(log, "and %d chains more of %d", n_behind - MOST, n);
}
