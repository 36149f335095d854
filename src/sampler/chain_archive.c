/* A chain saved, restored, and made afresh from its conformations.
 *
 * Only what cannot be computed is saved: conformations, parameters, what moves
 * have learnt, the random stream. The rest is computed afresh, at the same
 * steps in an interrupted run and in one that was not, so that both go on with
 * the same bits. */
#include "sampler/chain_state.h"
#include "surrogate/surrogate_move.h"

#include <stdlib.h>
#include <string.h>

void tsr_chain_archive(tsr_chain *chain, tsr_archive *archive)
{
    tsr_chain *c = chain;
    const tsr_topology *t = c->target->topology;
    size_t n_residue = (size_t)t->n_residue, n_body = (size_t)t->n_body;
    tsr_archive_rng(archive, c->rng);
    for (int k = 0; k < c->n_state; k++) {
        tsr_conformation *now = c->state[k].current;
        tsr_archive_real(archive, &now->backbone[0][0][0], 12 * n_residue);
        tsr_archive_real(archive, &now->side[0][0], 3 * n_residue);
        tsr_archive_real(archive, &now->body[0][0], 3 * n_body);
        c->state[k].is_restored = archive->is_restoring;
    }
    tsr_archive_real(archive, c->now.theta, (size_t)c->parameters->n);
    for (int m = 0; m < TSR_N_MOVE; m++)
        if (c->move[m] != NULL)
            tsr_move_registry[m]->archive(c->move[m], archive);
        else if (m == TSR_MOVE_surrogate)
            tsr_surrogate_archive_none(archive);
    tsr_parameters_archive(c->parameters, archive);
    tsr_archive_long(archive, c->counts.proposed, TSR_N_MOVE);
    tsr_archive_long(archive, c->counts.accepted, TSR_N_MOVE);
}

void tsr_chain_become(tsr_chain *chain, tsr_archive *saved)
{
    gsl_rng *own = gsl_rng_clone(chain->rng);
    tsr_archive_rewind(saved);
    tsr_chain_archive(chain, saved);
    gsl_rng_memcpy(chain->rng, own);
    gsl_rng_free(own);
}

/* ---- what chains learn together ---- */

/* Saves what a move has learnt. */
static void save(tsr_archive *a, int m, void *move)
{
    tsr_archive_begin(a);
    tsr_move_registry[m]->archive(move, a);
}

static tsr_status share_move(tsr_chain *const *chain, int n, int m,
                             tsr_archive *a, tsr_err *err)
{
    save(a, m, chain[0]->move[m]);
    const size_t n_real = a->n_real, bytes = n_real * sizeof(double);
    double *first = malloc(bytes + 1), *mean = calloc(n_real + 1, sizeof *mean);
    int alike = 1;
    if (first != NULL && mean != NULL && n_real > 0)
        memcpy(first, a->real, bytes);
    for (int c = 0; c < n && first != NULL && mean != NULL; c++) {
        save(a, m, chain[c]->move[m]);
        for (size_t i = 0; i < n_real && !a->failed; i++)
            mean[i] += a->real[i] / n;
        alike &= n_real == 0 || memcmp(first, a->real, bytes) == 0;
    }
    for (int c = 0; c < n && !alike && !a->failed; c++) {
        save(a, m, chain[c]->move[m]);
        if (!a->failed)
            memcpy(a->real, mean, bytes);
        tsr_archive_rewind(a);
        tsr_move_registry[m]->archive(chain[c]->move[m], a);
    }
    const int failed = first == NULL || mean == NULL || a->failed;
    free(first);
    free(mean);
    return failed ? tsr_fail(err, TSR_E_NOMEM, "out of memory") : TSR_OK;
}

tsr_status tsr_chain_share(tsr_chain *const *chain, int n, tsr_err *err)
{
    tsr_archive archive = {0};
    tsr_status status = TSR_OK;
    for (int m = 0; m < TSR_N_MOVE && status == TSR_OK; m++)
        if (chain[0]->move[m] != NULL)
            status = share_move(chain, n, m, &archive, err);
    tsr_archive_clear(&archive);
    return status;
}

void tsr_chain_copy(tsr_chain *to, const tsr_chain *from)
{
    const tsr_topology *t = to->target->topology;
    for (int k = 0; k < to->n_state; k++) {
        tsr_conformation_copy(t, to->state[k].current, from->state[k].current,
                              0, t->n_residue);
        to->state[k].is_restored = 1; /* its profile is of another */
    }
    memcpy(to->now.theta, from->now.theta,
           (size_t)to->parameters->n * sizeof(double));
    to->now.log_lik = from->now.log_lik;
}

/* The engine computes a state afresh; what it had must be the same. */
static tsr_status refresh_profile(tsr_chain *c, int k, tsr_batch *batch,
                                  tsr_err *err)
{
    const tsr_likelihood *l = c->target->likelihood;
    tsr_conformer *s = &c->state[k];
    double *fresh = c->trial.partial; /* free between two steps */
    const tsr_body_range all =
        tsr_chain_places(c, k, s->current, 0, c->target->topology->n_residue);
    tsr_status status =
        tsr_batch_set(batch, c->system + k, all.xyz, fresh, err);
    if (status == TSR_OK && !s->is_restored)
        status =
            tsr_chain_compare(batch->engine, s->profile, "accepted updates",
                              fresh, "computed afresh", err);
    s->is_restored = 0;
    memcpy(s->profile, fresh,
           (size_t)l->n_pair * (size_t)l->grid.n_q * sizeof *fresh);
    return status;
}

tsr_status tsr_chain_refresh(tsr_chain *chain, tsr_batch *batch, tsr_err *err)
{
    tsr_chain *c = chain;
    const tsr_target *t = c->target;
    tsr_status status = TSR_OK;
    for (int k = 0; k < c->n_state && status == TSR_OK; k++) {
        tsr_conformer *s = &c->state[k];
        tsr_conformation_copy(t->topology, s->proposed, s->current, 0,
                              t->topology->n_residue);
        tsr_prior_state *fresh = tsr_prior_state_new(t->prior, s->current);
        if (fresh == NULL)
            return tsr_fail(err, TSR_E_NOMEM, "out of memory");
        c->clash_seconds += tsr_prior_state_clash_seconds(s->prior);
        tsr_prior_state_free(s->prior);
        s->prior = fresh;
        if (batch != NULL)
            status = refresh_profile(c, k, batch, err);
    }
    if (status == TSR_OK && t->likelihood != NULL)
        status = tsr_chain_reevaluate(c, err);
    return status == TSR_OK ? TSR_OK : tsr_chain_blame(c, status, err);
}
