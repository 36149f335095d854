/* Composes a setup from its parts, and draws starts for the groups of
 * chains. */
#include "posterior/setup.h"

#include "core/ranks.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* ---- starts of groups ---- */

/* Random streams that no chain of a run uses. */
enum { PRIOR_STREAM = 0x7f000000 };

/* Steps after which a chain on the prior has largely forgotten its start: 1000,
 * and thirty for each degree of freedom of each state. The populations phase
 * and warm-up decorrelate further. */
static long decorrelation_steps(const tsr_target *t)
{
    const long n_free = t->topology->n_torsion + t->topology->n_side;
    return 1000 + 30 * n_free * tsr_target_n_state(t);
}

/* Draws the states of one group from the prior. */
static tsr_status draw_group(const tsr_target *run, int group,
                             const tsr_watch *watch, tsr_conformation **state,
                             tsr_err *err)
{
    static const char what[] = "draws of the prior were generated";
    const tsr_topology *t = run->topology;
    const tsr_target prior = tsr_setup_prior_target(run, run->n_state);
    const long half = decorrelation_steps(run) / 2;
    tsr_chain *chain = NULL;
    tsr_chain_view view;
    tsr_status status =
        tsr_chain_new(&prior, PRIOR_STREAM + group, &chain, err);
    TSR_THEN(status, tsr_setup_prior_steps(chain, half, 1, watch, what, err));
    TSR_THEN(status, tsr_setup_prior_steps(chain, half, 0, watch, what, err));
    if (status == TSR_OK)
        tsr_chain_view_get(chain, &view);
    for (int k = 0; k < tsr_target_n_state(run) && status == TSR_OK; k++) {
        state[k] = tsr_conformation_new(t);
        status = tsr_allocated(state[k], err);
        if (status == TSR_OK)
            tsr_conformation_copy(t, state[k], view.state[k], 0, t->n_residue);
    }
    tsr_chain_free(chain);
    return status;
}

/* Starts n states at members, evenly spread over the pool; members with P(X) =
 * 0 are passed over. */
static tsr_status start_at_members(const tsr_setup *s, int n,
                                   tsr_conformation **state, tsr_log *log,
                                   tsr_err *err)
{
    const tsr_members *p = s->molecule.members;
    const tsr_prior *prior = s->target.prior;
    char worst[160] = "two bodies beyond structure.d_max, or chains apart";
    for (int k = 0; k < n; k++) {
        int try = 0, is_found = 0;
        state[k] = tsr_conformation_new(s->target.topology);
        TSR_TRY(tsr_allocated(state[k], err));
        for (; try < p->n && !is_found; try++) {
            const int m = (int)(((long)k * p->n / n + try) % p->n);
            TSR_TRY(tsr_watch_check(s->watch, "starts were chosen", err));
            tsr_members_apply(p, m, s->target.first, state[k]);
            is_found = tsr_prior_clashes(prior, state[k], worst) == 0 &&
                       isfinite(tsr_prior_log_reference(prior, state[k]));
        }
        if (!is_found)
            return tsr_fail(err, TSR_E_DATA,
                            "sampler.start: pool: the prior forbids all "
                            "members of structure.pool, the last for %s; raise "
                            "prior.clash_limit, or choose sampler.start: prior",
                            worst);
    }
    tsr_info(log, "chains start at members of structure.pool; there is no log "
                  "evidence from populations");
    return TSR_OK;
}

/* Number of groups of chains, for convergence tests between groups: eight, or
 * else four to seven, of equal size and with four or more chains each, or else
 * with two or three. If no number fits, each chain is its own group. */
static int choose_n_group(int n_chain)
{
    static const int wanted[] = {8, 4, 7, 6, 5};
    for (int each = 4; each > 1; each -= 2)
        for (size_t k = 0; k < sizeof wanted / sizeof *wanted; k++)
            if (n_chain >= each * wanted[k] && n_chain % wanted[k] == 0)
                return wanted[k];
    return n_chain;
}

/* chi2 of the first conformation. */
static tsr_status compute_first_chi2(tsr_setup *s, tsr_err *err)
{
    const tsr_target alone = s->target;
    tsr_chain *chain = NULL;
    tsr_batch *batch = NULL;
    tsr_status status = tsr_chain_new(&alone, 0, &chain, err);
    if (s->devices.n > 0)
        TSR_THEN(status,
                 tsr_batch_new(s->devices.group[0].engine,
                               tsr_target_n_state(&alone), &batch, err));
    TSR_THEN(status, tsr_chain_start(chain, batch, err));
    if (status == TSR_OK)
        s->starts.first_chi2 = tsr_chain_chi2(chain);
    tsr_batch_free(batch);
    tsr_chain_free(chain);
    return status;
}

tsr_status tsr_setup_draw_starts(int from_pool, int is_restored, tsr_log *log,
                                 tsr_setup *setup, tsr_err *err)
{
    tsr_setup *s = setup;
    tsr_target *t = &s->target;
    tsr_starts *to = &s->starts;
    const int n_group = from_pool ? s->n_chain : choose_n_group(s->n_chain),
              n_state = tsr_target_n_state(t);
    if (t->likelihood != NULL && t->n_start > 0)
        tsr_info(log, "structure.starts says where chains start, not the prior "
                      "(sampler.start)");
    if (t->likelihood == NULL || t->is_frozen || t->n_start > 0)
        return TSR_OK;
    if (!is_restored)
        TSR_TRY(compute_first_chi2(s, err));
    to->state = calloc((size_t)(n_group * n_state), sizeof(*to->state));
    TSR_TRY(tsr_allocated(to->state, err));
    to->n = n_group * n_state;
    to->log_evidence = calloc((size_t)n_group, sizeof *to->log_evidence);
    TSR_TRY(tsr_allocated(to->log_evidence, err));
    for (int g = 0; g < n_group; g++)
        to->log_evidence[g] = (double)NAN;
    if (from_pool && !is_restored)
        TSR_TRY(start_at_members(s, to->n, to->state, log, err));
    for (int g = 0; g < n_group && !from_pool && !is_restored; g++)
        TSR_TRY(
            draw_group(t, g, s->watch, to->state + (size_t)(g * n_state), err));
    t->n_group = n_group;
    t->starts_in_pool = from_pool;
    t->chains_each = s->n_chain / n_group;
    t->group_start = is_restored ? NULL : to->state;
    t->group_log_z = to->log_evidence;
    if (!from_pool && !is_restored)
        tsr_info(log, "chains start from %d draws of the prior%s", n_group,
                 n_group < s->n_chain ? ", in groups" : "");
    return TSR_OK;
}

static void clear_starts(tsr_starts *starts)
{
    for (int k = 0; k < starts->n; k++)
        tsr_conformation_free(starts->state[k]);
    free(starts->state);
    free(starts->log_evidence);
}

/* ---- the whole ---- */

void tsr_setup_clear(tsr_setup *setup)
{
    tsr_setup *s = setup;
    clear_starts(&s->starts);
    tsr_atoms_clear(&s->atoms);
    tsr_devices_clear(&s->devices);
    tsr_data_clear(&s->data);
    tsr_molecule_clear(&s->molecule);
    tsr_tables_clear(&s->tables);
    memset(s, 0, sizeof *s);
}

/* Checks the highest temperature: with sampled scale and background under
 * Student-t errors, a likelihood that is too flat would leave scale and
 * background without a proper distribution. */
static tsr_status check_temperatures(const tsr_sampler_options *o,
                                     const tsr_likelihood *l, tsr_err *err)
{
    const double least = l == NULL ? 0.0 : tsr_likelihood_min_beta(l);
    if (tsr_sampler_n_temp(o, l != NULL) < 2 ||
        1.0 / tsr_sampler_t_max(o) > least)
        return TSR_OK;
    return tsr_fail(err, TSR_E_CONFIG,
                    "sampler.t_max: at temperature %g scale and background "
                    "have no proper distribution under the noise model "
                    "student; choose a temperature below %g, or a larger nu",
                    tsr_sampler_t_max(o), 1.0 / least);
}

/* Threads of this rank: the ranks of a computer share its processors. */
static int processors(void)
{
    int n_rank;
    (void)tsr_ranks_on_node(&n_rank);
    long n = sysconf(_SC_NPROCESSORS_ONLN) / n_rank;
    return n < 1 ? 1 : n > 1024 ? 1024 : (int)n;
}

tsr_status tsr_setup_read(tsr_config *config, int with_data, tsr_log *log,
                          tsr_setup *setup, tsr_err *err)
{
    tsr_setup *s = setup;
    const tsr_sampler_options *o = &config->sampler;
    tsr_molecule *m = &s->molecule;
    memset(s, 0, sizeof *s);
    tsr_status status = tsr_tables_read(config, &s->tables, err);
    TSR_THEN(status, tsr_molecule_read(config, &s->tables, log, m, err));
    TSR_THEN(status, tsr_data_read(config, with_data, log, m, &s->data, err));
    const tsr_likelihood *l = s->data.likelihood;
    TSR_THEN(status, check_temperatures(o, l, err));
    if (status != TSR_OK)
        return tsr_config_locate_error(config, status, err);
    s->n_thread = config->device.threads.word < 0
                      ? (int)config->device.threads.number
                      : processors();
    tsr_config_moves(config, s->move_options);
    s->regrow = *(const tsr_regrow_options *)s->move_options[TSR_MOVE_regrow];
    s->regrow.members = m->members;
    s->move_options[TSR_MOVE_regrow] = &s->regrow;
    s->target = (tsr_target){.topology = m->topology,
                             .first = m->first,
                             .prior = m->prior,
                             .likelihood = l,
                             .rg2 = m->form_factors->rg2,
                             .move_options = s->move_options,
                             .seed = (uint64_t)config->seed,
                             .n_state = (int)config->structure.states,
                             .infer_weights = config->structure.weights == 0,
                             .n_temp = tsr_sampler_n_temp(o, l != NULL),
                             .t_max = tsr_sampler_t_max(o),
                             .swap_every = o->swap_every,
                             .n_start = m->n_start,
                             .start = m->start,
                             .is_frozen = config->structure.frozen,
                             .contrast = s->tables.contrast};
    return TSR_OK;
}
