/* Moves a start that the prior forbids, because bodies overlap, until the prior
 * allows the start.
 *
 * A chain makes steps with the moves of the run, under the same prior but
 * without a limit on the overlap of a pair. Overlaps then cost much energy but
 * are possible, and the chain diffuses out of them. So only parts that the run
 * can move are moved. */
#include "sampler/relax.h"

#include "core/vec3.h"

#include <math.h>

enum { MOST_STEPS = 200000, STEPS_BETWEEN_CHECKS = 500 };

/* A random stream that no chain of the run uses. */
enum { RELAX_STREAM = 0x7fffffff };

/* RMS change, Angstrom, of the distances of the CA atoms from their centre.
 * These distances need no superposition. */
static double rms_change(const tsr_topology *t, const tsr_conformation *a,
                         const tsr_conformation *b)
{
    double ca[3] = {0.0}, cb[3] = {0.0}, sum = 0.0;
    for (int i = 0; i < t->n_residue; i++)
        for (int d = 0; d < 3; d++) {
            ca[d] += a->backbone[i][TSR_CA][d] / t->n_residue;
            cb[d] += b->backbone[i][TSR_CA][d] / t->n_residue;
        }
    for (int i = 0; i < t->n_residue; i++) {
        double change = tsr_vec3_distance(a->backbone[i][TSR_CA], ca) -
                        tsr_vec3_distance(b->backbone[i][TSR_CA], cb);
        sum += change * change;
    }
    return sqrt(sum / t->n_residue);
}

static tsr_status sample_until_allowed(const tsr_target *target,
                                       const tsr_prior *prior,
                                       tsr_conformation *first, tsr_log *log,
                                       tsr_err *err)
{
    const tsr_topology *t = target->topology;
    char worst[160];
    int before = tsr_prior_clashes(prior, first, worst), left = before;
    tsr_chain *chain;
    tsr_status status = tsr_chain_new(target, RELAX_STREAM, &chain, err);
    tsr_chain_view view = {.conformation = first};
    long step = 0;
    while (status == TSR_OK && left > 0 && step < MOST_STEPS) {
        for (int k = 0; k < STEPS_BETWEEN_CHECKS && status == TSR_OK; k++) {
            tsr_body_proposal request;
            int accepted;
            tsr_chain_propose(chain, &request);
            status = tsr_chain_decide(chain, NULL, 1, &accepted, err);
        }
        step += STEPS_BETWEEN_CHECKS;
        tsr_chain_view_get(chain, &view);
        left = tsr_prior_clashes(prior, view.conformation, worst);
    }
    if (status == TSR_OK && left > 0)
        status = tsr_fail(err, TSR_E_DATA,
                          "structure: %d of %d impossible overlaps remain "
                          "after %ld steps of relaxation: %s; give these parts "
                          "more freedom, or raise prior.clash_limit",
                          left, before, step, worst);
    if (status == TSR_OK) {
        tsr_info(log,
                 "relaxed: %d impossible overlaps were removed in %ld steps; "
                 "CA moved by %.2f A relative to the centre (rms)",
                 before, step, rms_change(t, first, view.conformation));
        tsr_conformation_copy(t, first, view.conformation, 0, t->n_residue);
    }
    tsr_chain_free(chain);
    return status;
}

tsr_status tsr_relax(const tsr_topology *topology, const tsr_prior_table *table,
                     const tsr_prior_options *options, double d_limit_ang,
                     const void *const *move_options, uint64_t seed,
                     const tsr_prior *prior, tsr_conformation *first,
                     tsr_log *log, tsr_err *err)
{
    tsr_prior_options soft = *options;
    soft.clash_limit = (double)INFINITY;
    tsr_prior *unlimited = NULL;
    TSR_TRY(
        tsr_prior_new(topology, table, &soft, d_limit_ang, &unlimited, err));
    const tsr_target target = {.topology = topology,
                               .first = first,
                               .prior = unlimited,
                               .move_options = move_options,
                               .seed = seed};
    tsr_status status = sample_until_allowed(&target, prior, first, log, err);
    tsr_prior_free(unlimited);
    return status;
}
