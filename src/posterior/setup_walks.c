/* Moves by a surrogate: where a run has walks and redraws, and what makes them.
 */
#include "posterior/setup.h"

#include "surrogate/redraw.h"
#include "surrogate/surrogate_move.h"
#include "surrogate/surrogate_walk.h"

#include <string.h>

/* On a processor a walk takes as long as twenty to forty other steps. In a
 * small molecule it gains no more than they do, in others one is worth its time
 * where a GPU makes three. */
enum { LEAST_BODIES_CPU = 450, WALK_COST_CPU = 3 };

static int may_walk(const tsr_setup *s, int e)
{
    const tsr_surrogate_options *o = s->move_options[TSR_MOVE_surrogate];
    if (s->device[e] == NULL || o == NULL || !(o->weight > 0.0))
        return 0;
    return o->on == TSR_SURROGATE_ON_ALL ||
           tsr_device_get_info(s->device[e])->type == TSR_DEVICE_GPU ||
           (o->on == TSR_SURROGATE_ON_AUTO &&
            s->topology->n_body >= LEAST_BODIES_CPU);
}

static int may_redraw(const tsr_setup *s, int e)
{
    double weight = 0.0;
    if (s->move_options[TSR_MOVE_redraw] != NULL)
        memcpy(&weight, s->move_options[TSR_MOVE_redraw], sizeof weight);
    return s->device[e] != NULL && weight > 0.0;
}

/* On all devices, or on none, since chains on them have the same moves. */
static int will(const tsr_setup *s, int (*may)(const tsr_setup *, int))
{
    int all = s->n_engine > 0 && !s->target.is_still &&
              tsr_surrogate_applies(s->topology, s->likelihood);
    for (int e = 0; e < s->n_engine; e++)
        all &= may(s, e);
    return all;
}

int tsr_setup_will_walk(const tsr_setup *s)
{
    return will(s, may_walk);
}

static int will_redraw(const tsr_setup *s)
{
    return will(s, may_redraw);
}

int tsr_setup_has_gpu(const tsr_setup *s)
{
    for (int e = 0; e < s->n_engine; e++)
        if (s->device[e] != NULL &&
            tsr_device_get_info(s->device[e])->type == TSR_DEVICE_GPU)
            return 1;
    return 0;
}

/* For every device a kernel that walks by the surrogate; else none has. */
static tsr_status make_walks(tsr_log *log, tsr_setup *s, tsr_err *err)
{
    tsr_err why = {0};
    tsr_status status = TSR_OK;
    for (int e = 0; e < s->n_engine && status == TSR_OK; e++)
        status = tsr_surrogate_device_new(s->device[e],
                                          tsr_surrogate_spec_of(s->surrogate),
                                          &s->share[e].walks, &why);
    if (status == TSR_OK)
        return TSR_OK;
    if (status != TSR_E_DEVICE)
        return tsr_fail(err, status, "%s", why.message);
    tsr_warn(log, "no walks by a surrogate: %s", why.message);
    for (int e = 0; e < s->n_engine; e++) {
        tsr_surrogate_engine_free(s->share[e].walks);
        s->share[e].walks = NULL;
    }
    return TSR_OK;
}

/* Tails alone other moves turn as well in less time. */
static tsr_status make_redraws(tsr_setup *s, tsr_err *err)
{
    const tsr_surrogate_spec *spec = tsr_surrogate_spec_of(s->surrogate);
    const int is_worth = spec->n_linker > 0 && tsr_redraw_n_stretch(spec) > 0;
    for (int e = 0; e < s->n_engine && is_worth; e++) {
        s->share[e].redraws = tsr_redraw_engine_new(spec);
        TSR_TRY(tsr_allocated(s->share[e].redraws, err));
    }
    return TSR_OK;
}

tsr_status tsr_setup_surrogate(tsr_log *log, tsr_setup *setup, tsr_err *err)
{
    tsr_setup *s = setup;
    const int walks = tsr_setup_will_walk(s), redraws = will_redraw(s);
    if (!walks && !redraws)
        return TSR_OK;
    TSR_TRY(tsr_surrogate_new(s->topology, s->prior, s->prior_table,
                              s->likelihood, s->first, &s->surrogate, err));
    if (s->surrogate == NULL)
        return TSR_OK;
    if (walks)
        TSR_TRY(make_walks(log, s, err));
    const int has_walks = s->share[0].walks != NULL;
    /* Beside a GPU that walks they take hosts' time from what walks find
     * sooner. */
    if (redraws && !(has_walks && tsr_setup_has_gpu(s)))
        TSR_TRY(make_redraws(s, err));
    const int has_redraws = s->share[0].redraws != NULL;
    if (!has_walks && !has_redraws) {
        tsr_surrogate_free(s->surrogate);
        s->surrogate = NULL;
        return TSR_OK;
    }
    const tsr_surrogate_spec *p = tsr_surrogate_spec_of(s->surrogate);
    s->target.surrogate = s->surrogate;
    s->target.walk_cost = tsr_setup_has_gpu(s) ? 1.0 : WALK_COST_CPU;
    if (has_walks)
        tsr_info(log,
                 "walks by a surrogate: %d torsions, %d beads, %d pairs of "
                 "them%s",
                 p->n_torsion, p->n_bead, p->n_pair,
                 p->has_c2 ? ", and c2" : "");
    if (has_redraws)
        tsr_info(log, "redraws by a surrogate: %d linkers and tails, %d beads",
                 tsr_redraw_n_stretch(p), p->n_bead);
    return TSR_OK;
}
