/* What went on in the sampler, told while it can still be changed: moves with
 * nothing to move, temperatures that do not exchange, chains left behind after
 * warm-up. */
#include "run/run_tell.h"

#include <gsl/gsl_sort.h>
#include <stdlib.h>
#include <string.h>

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

void tsr_tell_times(const tsr_sampler *sampler, tsr_log *log)
{
    tsr_sampler_times t = tsr_sampler_times_get(sampler);
    double all = t.propose + t.walk + t.submit + t.wait + t.decide + t.store +
                 t.refresh + t.audit;
    if (all > 0.0)
        tsr_info(
            log,
            "host time: propose, with densities %.0f %%, excluded volume "
            "%.0f %%, walks %.0f %%, hand to the "
            "device %.0f %%, wait for it %.0f %%, likelihood and "
            "acceptance %.0f %%, store "
            "%.1f %%, afresh for checkpoints %.1f %%, checked against double "
            "precision %.2f %%",
            100.0 * (t.propose - t.clash) / all, 100.0 * t.clash / all,
            100.0 * t.walk / all, 100.0 * t.submit / all, 100.0 * t.wait / all,
            100.0 * t.decide / all, 100.0 * t.store / all,
            100.0 * t.refresh / all, 100.0 * t.audit / all);
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
