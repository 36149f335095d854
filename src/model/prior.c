#include "model/prior.h"

#include "core/vec3.h"

#include <math.h>
#include <stdlib.h>

static const char *const clash_words[] = {"soft", "none", NULL};

const tsr_field tsr_prior_fields[] = {
    {.name = "clash",
     .type = TSR_FIELD_CHOICE,
     .offset = offsetof(tsr_prior_options, clash),
     .initial = "soft",
     .words = clash_words,
     .doc = "excluded volume between bodies"},
    {.name = "softness",
     .type = TSR_FIELD_DOUBLE,
     .offset = offsetof(tsr_prior_options, softness),
     .unit = "Angstrom",
     .initial = "0.5",
     .min = 0.01,
     .max = 10.0,
     .doc = "overlap that costs half a nat"},
    {0}};

typedef struct {
    double mean[3];
    double lower[3][3]; /* Cholesky factor of the covariance */
    double log_norm;
} side_gaussian;

struct tsr_prior {
    const tsr_topology *topology;
    side_gaussian side[TSR_N_AMINO];
    double contact[TSR_MAX_TYPE][TSR_MAX_TYPE];
    double cutoff; /* largest contact distance; 0: no clash term */
    double inverse_softness;
};

/* Open hashing over cells of side `cutoff`; bodies of a cell form a list. */
struct tsr_prior_state {
    const tsr_prior *prior;
    int64_t total, pending;
    unsigned mask;
    int *head;          /* [mask + 1] */
    int *next, *before; /* [n_body] */
    int32_t (*cell)[3]; /* [n_body] */
    int *mark;          /* [n_body] 0: unmoved; -1: moved, group 0;
                           else the group */
};

static const double fix_scale = 0x1p32;
static const double log_2pi = 1.8378770664093453;

/* Far beyond any use, but never past what an integer holds. */
static int64_t fix(double nat)
{
    double bound = 0x1p20;
    nat = nat > bound ? bound : nat < -bound ? -bound : nat;
    return (int64_t)llrint(nat * fix_scale);
}

static void factor(side_gaussian *g, const double mean[3],
                   const double cov[3][3])
{
    tsr_vec3_copy(g->mean, mean);
    g->log_norm = -1.5 * log_2pi;
    for (int i = 0; i < 3; i++) {
        for (int j = 0; j <= i; j++) {
            double sum = cov[i][j];
            for (int k = 0; k < j; k++)
                sum -= g->lower[i][k] * g->lower[j][k];
            g->lower[i][j] = i == j ? sqrt(sum) : sum / g->lower[j][j];
        }
        g->log_norm -= log(g->lower[i][i]);
    }
}

tsr_prior *tsr_prior_new(const tsr_topology *topology,
                         const tsr_prior_table *table,
                         const tsr_prior_options *options)
{
    tsr_prior *p = calloc(1, sizeof *p);
    if (p == NULL)
        return NULL;
    p->topology = topology;
    p->inverse_softness = 1.0 / options->softness;
    for (int a = 0; a < TSR_N_AMINO; a++)
        if (tsr_amino_has_side_chain((tsr_amino)a))
            factor(&p->side[a], table->side_mean[a], table->side_cov[a]);
    int n_type = tsr_body_n_type(topology->body_model);
    for (int t = 0; t < n_type; t++)
        for (int u = 0; u < n_type; u++) {
            double d = topology->body_model == TSR_BODIES_TWO
                           ? table->contact_two[t][u]
                           : table->contact_one[t][u];
            p->contact[t][u] = d;
            if (options->clash == TSR_CLASH_SOFT && d > p->cutoff)
                p->cutoff = d;
        }
    return p;
}

void tsr_prior_free(tsr_prior *prior)
{
    free(prior);
}

double tsr_prior_side_log(const tsr_prior *prior, tsr_amino amino,
                          const double side[3])
{
    const side_gaussian *g = &prior->side[amino];
    double z[3], sum = 0.0;
    for (int i = 0; i < 3; i++) {
        z[i] = side[i] - g->mean[i];
        for (int k = 0; k < i; k++)
            z[i] -= g->lower[i][k] * z[k];
        z[i] /= g->lower[i][i];
        sum += z[i] * z[i];
    }
    return g->log_norm - 0.5 * sum;
}

void tsr_prior_side_mix(const tsr_prior *prior, tsr_amino amino, double a,
                        const double side[3], double b, const double z[3],
                        double out[3])
{
    const side_gaussian *g = &prior->side[amino];
    double moved[3];
    for (int i = 0; i < 3; i++) {
        moved[i] = g->mean[i] + a * (side[i] - g->mean[i]);
        for (int k = 0; k <= i; k++)
            moved[i] += b * g->lower[i][k] * z[k];
    }
    tsr_vec3_copy(out, moved);
}

static int64_t side_term(const tsr_prior *p, const tsr_conformation *c, int i)
{
    return fix(
        tsr_prior_side_log(p, p->topology->residue[i].amino, c->side[i]));
}

/* Do two bodies of residues i and j count as a pair? */
static int counts(const tsr_topology *t, int i, int j)
{
    return t->residue[i].chain_first != t->residue[j].chain_first ||
           i - j >= 3 || j - i >= 3;
}

static int64_t pair_term(const tsr_prior *p, int a, const double x[3], int b,
                         const double y[3])
{
    const tsr_body *body = p->topology->body;
    double d = p->contact[body[a].type][body[b].type];
    double r2 = tsr_vec3_distance2(x, y);
    if (r2 >= d * d || !counts(p->topology, body[a].residue, body[b].residue))
        return 0;
    double z = (d - sqrt(r2)) * p->inverse_softness;
    return fix(-0.5 * z * z);
}

double tsr_prior_log_reference(const tsr_prior *prior,
                               const tsr_conformation *conformation)
{
    const tsr_topology *t = prior->topology;
    int64_t sum = fix(-log_2pi) * t->n_torsion;
    for (int k = 0; k < t->n_side; k++)
        sum += side_term(prior, conformation, t->side[k]);
    if (prior->cutoff > 0.0)
        for (int a = 0; a < t->n_body; a++)
            for (int b = 0; b < a; b++)
                sum += pair_term(prior, a, conformation->body[a], b,
                                 conformation->body[b]);
    return (double)sum / fix_scale;
}

/* ---- the cell list ---- */

static unsigned slot(const tsr_prior_state *s, const int32_t cell[3])
{
    uint32_t h = (uint32_t)cell[0] * 73856093u ^ (uint32_t)cell[1] * 19349663u ^
                 (uint32_t)cell[2] * 83492791u;
    return (h ^ h >> 15) & s->mask;
}

static void find_cell(const tsr_prior_state *s, const double x[3],
                      int32_t cell[3])
{
    for (int d = 0; d < 3; d++)
        cell[d] = (int32_t)floor(x[d] / s->prior->cutoff);
}

static void insert(tsr_prior_state *s, int b, const double x[3])
{
    find_cell(s, x, s->cell[b]);
    unsigned h = slot(s, s->cell[b]);
    s->before[b] = -1;
    s->next[b] = s->head[h];
    if (s->head[h] >= 0)
        s->before[s->head[h]] = b;
    s->head[h] = b;
}

static void take_out(tsr_prior_state *s, int b)
{
    if (s->before[b] >= 0)
        s->next[s->before[b]] = s->next[b];
    else
        s->head[slot(s, s->cell[b])] = s->next[b];
    if (s->next[b] >= 0)
        s->before[s->next[b]] = s->before[b];
}

/* Sum over the unmoved bodies near x. */
static int64_t near_unmoved(const tsr_prior_state *s,
                            const tsr_conformation *current, int b,
                            const double x[3])
{
    int32_t at[3], cell[3];
    int64_t sum = 0;
    find_cell(s, x, at);
    for (cell[0] = at[0] - 1; cell[0] <= at[0] + 1; cell[0]++)
        for (cell[1] = at[1] - 1; cell[1] <= at[1] + 1; cell[1]++)
            for (cell[2] = at[2] - 1; cell[2] <= at[2] + 1; cell[2]++)
                for (int c = s->head[slot(s, cell)]; c >= 0; c = s->next[c])
                    if (s->mark[c] == 0 && s->cell[c][0] == cell[0] &&
                        s->cell[c][1] == cell[1] && s->cell[c][2] == cell[2])
                        sum += pair_term(s->prior, b, x, c, current->body[c]);
    return sum;
}

/* ---- the running value ---- */

void tsr_prior_state_free(tsr_prior_state *state)
{
    if (state == NULL)
        return;
    free(state->head);
    free(state->next);
    free(state->before);
    free(state->cell);
    free(state->mark);
    free(state);
}

tsr_prior_state *tsr_prior_state_new(const tsr_prior *prior,
                                     const tsr_conformation *conformation)
{
    const tsr_topology *t = prior->topology;
    size_t n = (size_t)t->n_body, table = 64;
    while (table < 2 * n)
        table *= 2;
    tsr_prior_state *s = calloc(1, sizeof *s);
    if (s == NULL)
        return NULL;
    s->prior = prior;
    s->mask = (unsigned)table - 1;
    s->head = malloc(table * sizeof *s->head);
    s->next = malloc(n * sizeof *s->next);
    s->before = malloc(n * sizeof *s->before);
    s->cell = malloc(n * sizeof *s->cell);
    s->mark = calloc(n, sizeof *s->mark);
    if (s->head == NULL || s->next == NULL || s->before == NULL ||
        s->cell == NULL || s->mark == NULL) {
        tsr_prior_state_free(s);
        return NULL;
    }
    for (size_t h = 0; h < table; h++)
        s->head[h] = -1;
    s->total = fix(-log_2pi) * t->n_torsion;
    for (int k = 0; k < t->n_side; k++)
        s->total += side_term(prior, conformation, t->side[k]);
    if (prior->cutoff > 0.0)
        for (int b = 0; b < t->n_body; b++) {
            const double *x = conformation->body[b];
            s->total += near_unmoved(s, conformation, b, x);
            insert(s, b, x);
        }
    return s;
}

double tsr_prior_state_log(const tsr_prior_state *state)
{
    return (double)state->total / fix_scale;
}

typedef struct {
    int first, end; /* bodies */
    int group;
} body_span;

static int body_spans(const tsr_topology *t, const tsr_proposal *proposal,
                      body_span span[TSR_MAX_SPAN])
{
    for (int k = 0; k < proposal->n_span; k++) {
        const tsr_span *from = &proposal->span[k];
        const tsr_residue *a = &t->residue[from->first];
        const tsr_residue *z = &t->residue[from->first + from->count - 1];
        span[k] =
            (body_span){a->first_body, z->first_body + z->n_body, from->group};
    }
    return proposal->n_span;
}

/* Pairs of moved bodies that are not in one rigid group: new less old. */
static int64_t among_moved(const tsr_prior *p, const tsr_conformation *current,
                           const tsr_conformation *proposed, int n,
                           const body_span span[TSR_MAX_SPAN])
{
    int64_t sum = 0;
    for (int k = 0; k < n; k++)
        for (int l = 0; l <= k; l++) {
            if (span[k].group == span[l].group && span[k].group > 0)
                continue;
            for (int a = span[k].first; a < span[k].end; a++) {
                int end = k == l ? a : span[l].end;
                for (int b = span[l].first; b < end; b++)
                    sum +=
                        pair_term(p, a, proposed->body[a], b,
                                  proposed->body[b]) -
                        pair_term(p, a, current->body[a], b, current->body[b]);
            }
        }
    return sum;
}

double tsr_prior_propose(tsr_prior_state *state,
                         const tsr_conformation *current,
                         const tsr_conformation *proposed,
                         const tsr_proposal *proposal)
{
    const tsr_prior *p = state->prior;
    const tsr_topology *t = p->topology;
    body_span span[TSR_MAX_SPAN];
    int n = body_spans(t, proposal, span);
    int64_t delta = 0;
    for (int k = 0; k < n; k++) {
        const tsr_span *s = &proposal->span[k];
        for (int i = s->first; s->group == 0 && i < s->first + s->count; i++)
            if (t->residue[i].flexible &&
                tsr_amino_has_side_chain(t->residue[i].amino))
                delta += side_term(p, proposed, i) - side_term(p, current, i);
    }
    if (p->cutoff > 0.0) {
        for (int k = 0; k < n; k++)
            for (int b = span[k].first; b < span[k].end; b++)
                state->mark[b] = span[k].group > 0 ? span[k].group : -1;
        for (int k = 0; k < n; k++)
            for (int b = span[k].first; b < span[k].end; b++)
                delta += near_unmoved(state, current, b, proposed->body[b]) -
                         near_unmoved(state, current, b, current->body[b]);
        for (int k = 0; k < n; k++)
            for (int b = span[k].first; b < span[k].end; b++)
                state->mark[b] = 0;
        delta += among_moved(p, current, proposed, n, span);
    }
    state->pending = delta;
    return (double)delta / fix_scale;
}

void tsr_prior_accept(tsr_prior_state *state, const tsr_conformation *proposed,
                      const tsr_proposal *proposal)
{
    body_span span[TSR_MAX_SPAN];
    int n = body_spans(state->prior->topology, proposal, span);
    state->total += state->pending;
    state->pending = 0;
    if (state->prior->cutoff > 0.0)
        for (int k = 0; k < n; k++)
            for (int b = span[k].first; b < span[k].end; b++) {
                take_out(state, b);
                insert(state, b, proposed->body[b]);
            }
}
