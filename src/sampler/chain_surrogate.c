/* A surrogate proposal: a chain's place as a job for the device, and the end of
 * its walk as a proposal like any other (surrogate/surrogate_move.c).
 *
 * The walk keeps g, the surrogate's density. So the correction of its end Y for
 * the start X is g(X) / g(Y), and what decides is the posterior's ratio times
 * that, priors of torsions, excluded volume and c2 included. */
#include "sampler/chain_state.h"
#include "surrogate/surrogate_move.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

_Static_assert((int)TSR_LINKER_FACTOR == (int)TSR_SURROGATE_FACTOR,
               "a factor is as long for whom walks as for whom learns");

static tsr_surrogate_state *learnt_by(const tsr_chain *c)
{
    return c->move[TSR_MOVE_surrogate];
}

tsr_status tsr_chain_open_surrogate(tsr_chain *chain, tsr_err *err)
{
    const tsr_target *t = chain->target;
    const tsr_surrogate_spec *spec = tsr_surrogate_spec_of(t->surrogate);
    const size_t n = (size_t)tsr_likelihood_n_profile(t->likelihood);
    chain->others = calloc(n + 1, sizeof *chain->others);
    int *size = calloc((size_t)spec->n_linker + 1, sizeof *size);
    for (int l = 0; size != NULL && l < spec->n_linker; l++)
        size[l] = tsr_surrogate_linker_rows(spec, l);
    const int is_open =
        chain->others != NULL && size != NULL &&
        tsr_surrogate_state_open(learnt_by(chain),
                                 spec->n_torsion + 1 + spec->n_linker,
                                 spec->n_linker, size, spec->n_q);
    free(size);
    return is_open ? TSR_OK : tsr_fail(err, TSR_E_NOMEM, "out of memory");
}

tsr_status tsr_chain_set_out(tsr_chain *chain,
                             const tsr_surrogate_layout *layout, float *job,
                             float (*point)[4], uint32_t key[2], tsr_err *err)
{
    tsr_chain *c = chain;
    const tsr_target *t = c->target;
    const int n = tsr_likelihood_n_profile(t->likelihood);
    const double *weight = c->now.theta + c->parameters->weight;
    const tsr_surrogate_state *learnt = learnt_by(c);
    if (c->n_state > 1)
        c->which = (int)gsl_rng_uniform_int(c->rng, (unsigned long)c->n_state);
    for (int i = 0; i < 2; i++)
        key[i] = (uint32_t)gsl_rng_get(c->rng);
    memset(c->others, 0, (size_t)n * sizeof *c->others);
    for (int k = 0; k < c->n_state; k++)
        for (int i = 0; k != c->which && i < n; i++)
            c->others[i] += weight[k] * c->state[k].profile[i];
    return tsr_surrogate_fill(
        t->surrogate, layout,
        &(tsr_surrogate_place){
            .beta = c->beta,
            .theta = c->now.theta,
            .contrast = tsr_parameters_contrast(c->parameters, c->now.theta),
            .others = c->n_state > 1 ? c->others : NULL,
            .weight = c->n_state > 1 ? weight[c->which] : 1.0,
            .learnt = learnt->ratio,
            .steps = lround(exp(learnt->log_steps)),
            .log_width = learnt->log_width,
            .factor = (const double(*)[TSR_LINKER_FACTOR])learnt->factor,
            .conformation = c->state[c->which].current},
        job, point, err);
}

/* ---- the end as a proposal ---- */

static int differs(const tsr_conformation *a, const tsr_conformation *b, int i)
{
    const double *x = &a->backbone[i][0][0], *y = &b->backbone[i][0][0];
    int is_other = 0;
    for (int k = 0; k < 12; k++) /* without branches: by vectors */
        is_other |= x[k] != y[k];
    return is_other;
}

/* The number of a rigid unit among those seen, from 1 on. */
static int group_of(int unit, int *seen, int *n_seen)
{
    for (int k = 0; k < *n_seen; k++)
        if (seen[k] == unit)
            return k + 1;
    if (unit < 0 || *n_seen == TSR_MAX_SPAN)
        return 0;
    seen[(*n_seen)++] = unit;
    return *n_seen;
}

/* What moved from a to b: rigid units as groups, the rest loose. More spans
 * than there is room for become one, of which nothing is said. */
static void find_spans(const tsr_topology *t, const tsr_conformation *a,
                       const tsr_conformation *b, tsr_proposal *p)
{
    int seen[TSR_MAX_SPAN], n_seen = 0;
    p->n_span = 0;
    for (int i = 0; i < t->n_residue; i++) {
        if (!differs(a, b, i))
            continue;
        const int group = group_of(t->residue[i].unit, seen, &n_seen);
        tsr_span *last = &p->span[p->n_span > 0 ? p->n_span - 1 : 0];
        if (p->n_span > 0 && last->group == group &&
            last->first + last->count == i)
            last->count++;
        else if (p->n_span < TSR_MAX_SPAN)
            p->span[p->n_span++] = (tsr_span){i, 1, group};
        else
            *last = (tsr_span){last->first, i + 1 - last->first, 0};
    }
}

/* Where g is 0 or not a number no step leads, so that what starts there stays,
 * as a proposal of nothing. */
tsr_status tsr_chain_come_back(tsr_chain *chain, int kind, const float *result,
                               const int32_t (*count)[2],
                               tsr_body_proposal *ask, int *needed,
                               tsr_err *err)
{
    tsr_chain *c = chain;
    const tsr_target *t = c->target;
    const tsr_surrogate_spec *spec = tsr_surrogate_spec_of(t->surrogate);
    const float *change = result + TSR_SURROGATE_HEAD + 2 * spec->n_q;
    tsr_conformer *state = &c->state[c->which];
    c->kind = kind;
    c->walked = result;
    c->walk_count = count;
    c->proposal.target = 0;
    c->proposal.n_span = 0;
    c->proposal.log_ratio = 0.0;
    if (isfinite(result[0]) && isfinite(result[1])) {
        TSR_TRY(tsr_surrogate_turn(t->surrogate, change, state->proposed, err));
        find_spans(t->topology, state->current, state->proposed, &c->proposal);
        c->proposal.log_ratio = (double)result[0] - (double)result[1];
    }
    *needed = tsr_chain_ask(c, ask);
    return TSR_OK;
}

void tsr_chain_learn_surrogate(tsr_chain *chain, int accepted)
{
    tsr_chain *c = chain;
    tsr_surrogate_state *learnt = learnt_by(c);
    const tsr_surrogate_spec *spec =
        tsr_surrogate_spec_of(c->target->surrogate);
    const int n_q = spec->n_q;
    const long n = learnt->n_learnt + learnt->n_redrawn;
    if (c->kind == TSR_MOVE_redraw) /* NaN: there was nothing to draw */
        learnt->n_redrawn += isfinite(c->walked[TSR_SURROGATE_HEAD]) ? 1 : 0;
    else
        tsr_surrogate_state_learn(learnt, c->walk_count,
                                  c->walked + TSR_SURROGATE_HEAD + 2 * n_q +
                                      spec->n_torsion,
                                  accepted);
    tsr_surrogate_learn(c->target->surrogate, c->now.profile,
                        c->walked + TSR_SURROGATE_HEAD + (accepted ? n_q : 0),
                        tsr_parameters_contrast(c->parameters, c->now.theta), n,
                        learnt->ratio);
}
