/* The prior of a chain's present conformation, kept up to date. */
#include "core/clock.h"
#include "core/vec3.h"
#include "molecule/extent.h"
#include "prior/prior_factors.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

typedef struct {
    int residue;
    int64_t term[3]; /* torsions, angle, side chain */
} residue_terms;

struct tsr_prior_state {
    const tsr_prior *prior;
    int64_t total, pending;
    tsr_clash_state *clash; /* NULL: no excluded volume */
    int64_t (*term)[3];     /* [n_residue] */
    residue_terms *changed; /* [n_residue] by the proposal */
    int n_changed;
    uint64_t *seen, stamp; /* [n_residue] in which proposal */
    int64_t *restraint;    /* [n_restraint] */
    int64_t *new_restraint;
    double centre[3], radius, new_radius; /* all bodies lie within */
    int is_tight; /* the ball is of the present conformation */
    long n_proposed;
    double clash_seconds;
};

/* Excluded volume is timed at every so many proposals, and counts for them. */
enum { TIMED_EVERY = 64 };

void tsr_prior_state_free(tsr_prior_state *state)
{
    if (state == NULL)
        return;
    tsr_clash_state_free(state->clash);
    free(state->term);
    free(state->changed);
    free(state->seen);
    free(state->restraint);
    free(state->new_restraint);
    free(state);
}

static void find_ball(tsr_prior_state *s, const tsr_conformation *c)
{
    int n = s->prior->topology->n_body;
    double most = 0.0;
    for (int d = 0; d < 3; d++)
        s->centre[d] = 0.0;
    for (int b = 0; b < n; b++)
        for (int d = 0; d < 3; d++)
            s->centre[d] += c->body[b][d] / n;
    for (int b = 0; b < n; b++)
        most = fmax(most, tsr_vec3_distance2(c->body[b], s->centre));
    s->radius = sqrt(most);
    s->is_tight = 1;
}

tsr_prior_state *tsr_prior_state_new(const tsr_prior *prior,
                                     const tsr_conformation *conformation)
{
    const tsr_topology *t = prior->topology;
    size_t n = (size_t)t->n_residue, m = (size_t)prior->n_restraint + 1;
    tsr_prior_state *s = calloc(1, sizeof *s);
    if (s == NULL)
        return NULL;
    s->prior = prior;
    s->term = calloc(n, sizeof *s->term);
    s->changed = calloc(n, sizeof *s->changed);
    s->seen = calloc(n, sizeof *s->seen);
    s->restraint = calloc(m, sizeof *s->restraint);
    s->new_restraint = calloc(m, sizeof *s->new_restraint);
    if (prior->clash.cutoff > 0.0)
        s->clash = tsr_clash_state_new(
            &prior->clash, (const double(*)[3])conformation->body, &s->total);
    if (s->term == NULL || s->changed == NULL || s->seen == NULL ||
        s->restraint == NULL || s->new_restraint == NULL ||
        (prior->clash.cutoff > 0.0 && s->clash == NULL)) {
        tsr_prior_state_free(s);
        return NULL;
    }
    for (int i = 0; i < t->n_residue; i++) {
        if (!t->residue[i].flexible)
            continue;
        s->term[i][0] = tsr_prior_torsion_term(prior, conformation, i);
        s->term[i][1] = tsr_prior_angle_term(prior, conformation, i);
        s->term[i][2] = tsr_prior_side_term(prior, conformation, i);
        for (int k = 0; k < 3; k++)
            s->total += s->term[i][k];
    }
    for (int k = 0; k < prior->n_restraint; k++) {
        s->restraint[k] = tsr_prior_restraint_term(prior, conformation, k);
        s->total += s->restraint[k];
    }
    find_ball(s, conformation);
    return s;
}

double tsr_prior_state_log(const tsr_prior_state *state)
{
    return tsr_unfix(state->total);
}

void tsr_prior_state_terms(const tsr_prior_state *state,
                           double term[TSR_N_TERM])
{
    const tsr_prior_state *s = state;
    int64_t sum[TSR_N_TERM] = {0};
    for (int i = 0; i < s->prior->topology->n_residue; i++)
        for (int k = 0; k < 3; k++)
            sum[TSR_TERM_TORSION + k] += s->term[i][k];
    for (int k = 0; k < s->prior->n_restraint; k++)
        sum[TSR_TERM_RESTRAINT] += s->restraint[k];
    sum[TSR_TERM_CLASH] = s->total;
    for (int k = 0; k < TSR_N_TERM; k++)
        if (k != TSR_TERM_CLASH)
            sum[TSR_TERM_CLASH] -= sum[k];
    for (int k = 0; k < TSR_N_TERM; k++)
        term[k] = tsr_unfix(sum[k]);
}

/* ---- a proposal ---- */

/* A residue whose torsions may have changed; `inner`: also what is within. */
static void touch(tsr_prior_state *s, const tsr_conformation *proposed, int i,
                  int inner)
{
    const tsr_topology *t = s->prior->topology;
    if (i < 0 || i >= t->n_residue || !t->residue[i].flexible ||
        s->seen[i] == s->stamp)
        return;
    s->seen[i] = s->stamp;
    residue_terms *r = &s->changed[s->n_changed++];
    r->residue = i;
    memcpy(r->term, s->term[i], sizeof r->term);
    r->term[0] = tsr_prior_torsion_term(s->prior, proposed, i);
    if (inner) {
        r->term[1] = tsr_prior_angle_term(s->prior, proposed, i);
        r->term[2] = tsr_prior_side_term(s->prior, proposed, i);
    }
    for (int k = 0; k < 3; k++)
        s->pending += r->term[k] - s->term[i][k];
}

/* Inside a rigid span nothing changes but at its ends. */
static void touch_spans(tsr_prior_state *s, const tsr_conformation *proposed,
                        const tsr_proposal *p)
{
    s->n_changed = 0;
    s->stamp++;
    for (int k = 0; k < p->n_span; k++) {
        const tsr_span *span = &p->span[k];
        for (int i = 0; span->group == 0 && i < span->count; i++)
            touch(s, proposed, span->first + i, 1);
    }
    for (int k = 0; k < p->n_span; k++) {
        int first = p->span[k].first, end = first + p->span[k].count;
        touch(s, proposed, first - 1, 0);
        touch(s, proposed, first, 0);
        touch(s, proposed, end - 1, 0);
        touch(s, proposed, end, 0);
    }
}

static int is_moved(const tsr_proposal *p, int residue, int *group)
{
    for (int k = 0; k < p->n_span; k++)
        if (residue >= p->span[k].first &&
            residue < p->span[k].first + p->span[k].count) {
            *group = p->span[k].group;
            return 1;
        }
    *group = -1;
    return 0;
}

static void touch_restraints(tsr_prior_state *s,
                             const tsr_conformation *proposed,
                             const tsr_proposal *p)
{
    for (int k = 0; k < s->prior->n_restraint; k++) {
        const int *residue = s->prior->restraint[k].residue;
        int a, b;
        int moved = is_moved(p, residue[0], &a);
        moved |= is_moved(p, residue[1], &b);
        s->new_restraint[k] =
            moved && (a != b || a == 0)
                ? tsr_prior_restraint_term(s->prior, proposed, k)
                : s->restraint[k];
        s->pending += s->new_restraint[k] - s->restraint[k];
    }
}

/* Two bodies farther apart than d_limit? Exact. A distance that changed has a
 * moved body at one end: no more than the way to the centre and out to the rim.
 * O(moved bodies) but for what moves near the rim of a wide molecule. */
static int is_too_wide(tsr_prior_state *s, const tsr_conformation *current,
                       const tsr_conformation *proposed, int n_span,
                       const tsr_body_span *span)
{
    double limit = s->prior->d_limit_ang;
    if (limit <= 0.0)
        return 0;
    for (;;) {
        double most = 0.0;
        for (int k = 0; k < n_span; k++)
            for (int b = span[k].first; b < span[k].end; b++) {
                double d2 = tsr_vec3_distance2(proposed->body[b], s->centre);
                most = d2 > most ? d2 : most;
            }
        s->new_radius = fmax(s->radius, sqrt(most));
        if (sqrt(most) + s->new_radius < limit * (1.0 - 1e-12))
            return 0;
        if (s->is_tight)
            break;
        find_ball(s, current);
    }
    return tsr_is_distance_beyond(s->prior->topology->n_body,
                                  (const double(*)[3])proposed->body, limit);
}

static int body_spans(const tsr_topology *t, const tsr_proposal *proposal,
                      tsr_body_span span[TSR_MAX_SPAN])
{
    for (int k = 0; k < proposal->n_span; k++) {
        const tsr_span *from = &proposal->span[k];
        const tsr_residue *a = &t->residue[from->first];
        const tsr_residue *z = &t->residue[from->first + from->count - 1];
        span[k] = (tsr_body_span){a->first_body, z->first_body + z->n_body,
                                  from->group};
    }
    return proposal->n_span;
}

double tsr_prior_state_clash_seconds(const tsr_prior_state *state)
{
    return state->clash_seconds;
}

double tsr_prior_propose(tsr_prior_state *state,
                         const tsr_conformation *current,
                         const tsr_conformation *proposed,
                         const tsr_proposal *proposal)
{
    tsr_prior_state *s = state;
    tsr_body_span span[TSR_MAX_SPAN];
    int n = body_spans(s->prior->topology, proposal, span);
    s->pending = 0;
    if (s->clash != NULL) {
        int is_timed = s->n_proposed++ % TIMED_EVERY == 0;
        double start = is_timed ? tsr_clock_s() : 0.0;
        int64_t change =
            tsr_clash_propose(s->clash, (const double(*)[3])current->body,
                              (const double(*)[3])proposed->body, n, span);
        if (is_timed)
            s->clash_seconds += TIMED_EVERY * (tsr_clock_s() - start);
        if (change == TSR_CLASH_FORBIDDEN)
            return -(double)INFINITY;
        s->pending = change;
    }
    if (is_too_wide(s, current, proposed, n, span))
        return -(double)INFINITY;
    touch_spans(s, proposed, proposal);
    touch_restraints(s, proposed, proposal);
    return tsr_unfix(s->pending);
}

void tsr_prior_accept(tsr_prior_state *state, const tsr_conformation *proposed,
                      const tsr_proposal *proposal)
{
    tsr_prior_state *s = state;
    tsr_body_span span[TSR_MAX_SPAN];
    int n = body_spans(s->prior->topology, proposal, span);
    s->total += s->pending;
    s->pending = 0;
    for (int k = 0; k < s->n_changed; k++)
        memcpy(s->term[s->changed[k].residue], s->changed[k].term,
               sizeof s->changed[k].term);
    for (int k = 0; k < s->prior->n_restraint; k++)
        s->restraint[k] = s->new_restraint[k];
    if (s->prior->d_limit_ang > 0.0)
        s->radius = s->new_radius, s->is_tight = 0;
    if (s->clash != NULL)
        tsr_clash_accept(s->clash, (const double(*)[3])proposed->body, n, span);
}
