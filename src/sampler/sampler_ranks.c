/* A sampler on several ranks: the calls that rank 0 announces and the others
 * carry out, and the exchange of the states of chains.
 *
 * Whatever crosses ranks is an archive of a range of chains: the owner saves
 * it, and the receivers restore it into their copies of these chains. */
#include "sampler/sampler.h"

#include "core/interrupt.h"
#include "core/ranks.h"

#include <signal.h>

/* ---- calls ---- */

tsr_status tsr_sampler_announce(const tsr_sampler *sampler,
                                tsr_sampler_call call, tsr_err *err)
{
    if (!sampler->is_leader || sampler->is_nested)
        return TSR_OK;
    return tsr_ranks_broadcast(&call, sizeof call, 0, err);
}

tsr_status tsr_sampler_agree(tsr_sampler *sampler, tsr_status status,
                             tsr_err *err)
{
    tsr_sampler *s = sampler;
    const int stops = tsr_sampler_should_stop(s);
    s->is_stopped = stops;
    status = tsr_ranks_agree(status, &s->is_stopped, err);
    if (s->is_stopped && !stops)
        atomic_store(&tsr_stop_requested, SIGTERM);
    return status;
}

static tsr_status carry_out(tsr_sampler *s, const tsr_sampler_call *c,
                            tsr_record *record, tsr_sampler_learn learn,
                            void *context, tsr_err *err)
{
    int n_done;
    switch (c->what) {
    case TSR_CALL_ADVANCE:
        if (s->writer != NULL)
            tsr_trajectory_writer_begin(s->writer, c->first);
        s->n_anneal = c->n_anneal;
        s->first_beta_factor = c->x;
        return tsr_sampler_advance(s, record, c->n_draw, c->n, c->flag, NULL,
                                   NULL, &n_done, err);
    case TSR_CALL_REFRESH:
        return tsr_sampler_refresh(s, err);
    case TSR_CALL_POPULATE:
        return tsr_sampler_populate(s, record, c->n, c->x, NULL, NULL, err);
    case TSR_CALL_AVERAGE:
        return tsr_sampler_average_warmup(s, err);
    case TSR_CALL_GATHER:
        return tsr_sampler_gather(s, err);
    case TSR_CALL_RESTORE: {
        tsr_archive archive = {0};
        const tsr_status status = tsr_sampler_restore(s, &archive, err);
        tsr_archive_clear(&archive);
        return status;
    }
    case TSR_CALL_RESET:
        tsr_sampler_counts_reset(s);
        return TSR_OK;
    case TSR_CALL_LEARN:
        return learn(context, c->flag, err);
    default:
        return TSR_OK;
    }
}

tsr_status tsr_sampler_follow(tsr_sampler *sampler, tsr_record *record,
                              tsr_sampler_learn learn, void *context,
                              tsr_err *err)
{
    tsr_sampler_call call;
    for (;;) {
        TSR_TRY(tsr_ranks_broadcast(&call, sizeof call, 0, err));
        if (call.what == TSR_CALL_END)
            return TSR_OK;
        /* Rank 0 has the same error, and decides. */
        (void)carry_out(sampler, &call, record, learn, context, err);
    }
}

/* ---- states of chains ---- */

int tsr_sampler_owner(const tsr_sampler *sampler, int chain)
{
    int rank = 0;
    while (chain >= tsr_ranks_first(sampler->n_chain, rank + 1))
        rank++;
    return rank;
}

tsr_status tsr_sampler_share(tsr_sampler *sampler, int to,
                             tsr_sampler_part part, void *context, tsr_err *err)
{
    tsr_sampler *s = sampler;
    const int size = tsr_ranks_size(), rank = tsr_ranks_rank();
    tsr_archive archive = {0};
    tsr_status status = TSR_OK;
    for (int r = 0; r < size && size > 1 && status == TSR_OK; r++) {
        const int first = tsr_ranks_first(s->n_chain, r),
                  end = tsr_ranks_first(s->n_chain, r + 1);
        if (r == to)
            continue;
        tsr_archive_begin(&archive);
        if (rank == r)
            part(s, context, first, end, &archive);
        status = tsr_ranks_pass(&archive, r, to, err);
        if (status == TSR_OK && rank != r && (to < 0 || to == rank)) {
            part(s, context, first, end, &archive);
            status = tsr_archive_end(&archive, err);
        }
    }
    tsr_archive_clear(&archive);
    return status;
}

void tsr_sampler_part_chain(tsr_chain *chain, tsr_archive *archive)
{
    tsr_chain_archive(chain, archive);
    tsr_archive_real(archive, &chain->now.log_lik, 1);
}

static void part_chi2(tsr_sampler *s, void *context, int first, int end,
                      tsr_archive *a)
{
    (void)context;
    for (int c = first; c < end; c++) {
        double chi2 = a->is_restoring ? 0.0 : tsr_sampler_chi2(s, c);
        tsr_archive_real(a, &chi2, 1);
        atomic_store(&s->chi2[c], chi2);
    }
}

/* Everything that is known of the chains. */
static void part_all(tsr_sampler *s, void *context, int first, int end,
                     tsr_archive *a)
{
    part_chi2(s, context, first, end, a);
    for (int c = first; c < end; c++) {
        tsr_ladder_archive(s->ladder[c], a);
        for (int k = 0; k < s->n_temp; k++)
            tsr_sampler_part_chain(s->chain[c * s->n_temp + k], a);
        if (s->all_atom != NULL)
            tsr_all_atom_chain_archive(s->all_atom[c], a);
    }
}

/* What warm-up has learnt: temperatures, and the states of moves. */
static void part_learnt(tsr_sampler *s, void *context, int first, int end,
                        tsr_archive *a)
{
    (void)context;
    for (int c = first; c < end; c++)
        tsr_ladder_archive(s->ladder[c], a);
    for (int c = first * s->n_temp; c < end * s->n_temp; c++)
        tsr_chain_archive_moves(s->chain[c], a);
}

tsr_status tsr_sampler_share_learnt(tsr_sampler *sampler, tsr_err *err)
{
    return tsr_sampler_share(sampler, -1, part_learnt, NULL, err);
}

tsr_status tsr_sampler_gather(tsr_sampler *sampler, tsr_err *err)
{
    tsr_sampler *s = sampler;
    TSR_TRY(TSR_ANNOUNCE(s, err, .what = TSR_CALL_GATHER));
    return tsr_sampler_agree(s, tsr_sampler_share(s, 0, part_all, NULL, err),
                             err);
}

tsr_status tsr_sampler_share_examples(tsr_sampler *sampler, int last,
                                      tsr_err *err)
{
    TSR_TRY(TSR_ANNOUNCE(sampler, err, .what = TSR_CALL_LEARN, .flag = last));
    return tsr_sampler_share(sampler, -1, part_all, NULL, err);
}

tsr_status tsr_sampler_restore(tsr_sampler *sampler, tsr_archive *archive,
                               tsr_err *err)
{
    TSR_TRY(TSR_ANNOUNCE(sampler, err, .what = TSR_CALL_RESTORE));
    tsr_status status = tsr_ranks_pass(archive, 0, -1, err);
    tsr_archive_rewind(archive);
    if (status == TSR_OK) {
        tsr_sampler_archive(sampler, archive);
        status = tsr_archive_end(archive, err);
    }
    return tsr_ranks_agree(status, NULL, err);
}

/* ---- draws ---- */

/* context: the number of draws that the rank completed; on rank 0 the smallest.
 */
static void part_draws(tsr_sampler *s, void *context, int first, int end,
                       tsr_archive *a)
{
    int *n_done = context, n = *n_done;
    tsr_archive_int(a, &n, 1);
    *n_done = n < *n_done ? n : *n_done;
    tsr_record_archive(s->record, first, end, s->warm, s->n_draw, a);
    if (s->writer != NULL && !s->warm)
        tsr_trajectory_writer_archive(s->writer, first, end, s->n_draw, a);
}

tsr_status tsr_sampler_gather_draws(tsr_sampler *sampler, int *n_done,
                                    tsr_err *err)
{
    return tsr_sampler_share(sampler, 0, part_draws, n_done, err);
}
