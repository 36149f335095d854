/* A start that the prior forbids, because bodies overlap, is moved until it is
 * allowed.
 *
 * The chain's own moves do it, under the same prior without its limit on the
 * overlap of a pair: overlaps then cost much instead of everything, and the
 * chain walks out of them. So nothing is moved that the run itself could not
 * move. */
#include "sampler/relax.h"

#include "core/vec3.h"

#include <math.h>

enum { MOST_STEPS = 200000, BETWEEN_LOOKS = 500 };

/* A stream that no chain of the run has. */
enum { RELAX_STREAM = 0x7fffffff };

/* RMS change of the distances of CA from the centre of all: no superposition
 * is needed to say how much was changed. */
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

static tsr_status run(const tsr_target *target, const tsr_prior *prior,
                      tsr_conformation *first, tsr_log *log, tsr_err *err)
{
    const tsr_topology *t = target->topology;
    char worst[160];
    int before = tsr_prior_clashes(prior, first, worst), left = before;
    tsr_chain *chain;
    tsr_status status = tsr_chain_new(target, RELAX_STREAM, &chain, err);
    tsr_chain_view view = {.conformation = first};
    long step = 0;
    while (status == TSR_OK && left > 0 && step < MOST_STEPS) {
        for (int k = 0; k < BETWEEN_LOOKS && status == TSR_OK; k++) {
            tsr_body_proposal ask;
            int accepted;
            tsr_chain_propose(chain, &ask);
            status = tsr_chain_decide(chain, NULL, 1, &accepted, err);
        }
        step += BETWEEN_LOOKS;
        tsr_chain_view_get(chain, &view);
        left = tsr_prior_clashes(prior, view.conformation, worst);
    }
    if (status == TSR_OK && left > 0)
        status = tsr_fail(err, TSR_E_DATA,
                          "structure: %d of %d impossible overlaps are left "
                          "after %ld steps of relaxation: %s; give these parts "
                          "more freedom, or raise prior.clash_limit",
                          left, before, step, worst);
    if (status == TSR_OK) {
        tsr_info(log,
                 "relaxed: %d impossible overlaps went in %ld steps; CA moved "
                 "by %.2f A against the centre (rms)",
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
    tsr_prior *without = NULL;
    TSR_TRY(tsr_prior_new(topology, table, &soft, d_limit_ang, &without, err));
    const tsr_target target = {.topology = topology,
                               .first = first,
                               .prior = without,
                               .move_options = move_options,
                               .seed = seed};
    tsr_status status = run(&target, prior, first, log, err);
    tsr_prior_free(without);
    return status;
}
