/* All cuts of a chain are tried, each in constant time after one pass over the
 * edges: an edge adds its weight from its first residue on and takes it away at
 * its second. Cost of a piece: O(contacts + residues), with predicted errors
 * O(residues^2). */
#include "molecule/parts_steps.h"

#include "molecule/secondary.h"

#include <math.h>
#include <stdlib.h>

enum {
    LEAST_SIDE = 10,   /* held residues of what can move by itself */
    LEAST_DOMAIN = 25, /* and of what may lean on its neighbour */
    TURN = 4,          /* residues */
    BEYOND = 6 /* residues in sequence: nearer contacts are the linker's own */
};
static const double domain_limit = 1.5; /* contacts a residue^(2/3) */
static const double small_limit = 0.4;
static const double relation_limit = 0.3;

/* For every cut between i and i + 1 of first..last what crosses it. */
typedef struct {
    double *contact;  /* [last - first] weight */
    double *relation; /* [last - first] sum over pairs of held residues */
    int *held;        /* [last - first] residues first..i */
    int n_held;
} crossing;

static void crossing_clear(crossing *c)
{
    free(c->contact);
    free(c->relation);
    free(c->held);
}

/* Sums over pairs: each adds from its first residue on and ends before its
 * second. */
static void sum_relations(const tsr_parts_graph *g, int first, int last,
                          double *relation)
{
    for (int i = first; i < last; i++)
        for (int j = i + BEYOND; g->held[i] && j <= last; j++)
            if (g->held[j]) {
                double r = tsr_parts_relation(g, i, j);
                relation[i - first] += r;
                if (j < last)
                    relation[j - first] -= r;
            }
}

static int crossing_make(const tsr_parts_graph *g, int first, int last,
                         crossing *c)
{
    size_t n = (size_t)(last - first) + 1;
    *c = (crossing){.contact = calloc(n, sizeof *c->contact),
                    .relation = calloc(n, sizeof *c->relation),
                    .held = calloc(n, sizeof *c->held)};
    if (c->contact == NULL || c->relation == NULL || c->held == NULL)
        return 0;
    for (int k = 0; k < g->n_contact; k++) {
        const tsr_contact *edge = &g->contact[k];
        if (edge->a < first || edge->b > last || edge->b - edge->a < BEYOND)
            continue;
        c->contact[edge->a - first] += edge->weight;
        c->contact[edge->b - first] -= edge->weight;
    }
    if (g->pae != NULL)
        sum_relations(g, first, last, c->relation);
    for (int i = first; i <= last; i++) {
        c->n_held += g->held[i];
        c->held[i - first] = c->n_held;
        if (i > first) {
            c->contact[i - first] += c->contact[i - first - 1];
            c->relation[i - first] += c->relation[i - first - 1];
        }
    }
    return 1;
}

static double hold_at(const tsr_parts_graph *g, const crossing *c, int k)
{
    int left = c->held[k], right = c->n_held - left;
    int least = left < right ? left : right;
    if (least < LEAST_SIDE)
        return (double)INFINITY;
    double limit = least < LEAST_DOMAIN ? small_limit : domain_limit;
    double hold = c->contact[k] / (limit * pow(least, 2.0 / 3.0));
    double relation = c->relation[k] / ((double)left * right);
    return g->pae == NULL ? hold : fmax(hold, relation / relation_limit);
}

/* A helix or strand that is sure runs on from i to i + 1. The first and last
 * turn of a helix come and go. */
static int runs_on(const tsr_parts_graph *g, int i)
{
    int first = i, last = i + 1;
    if (g->kind[i] == TSR_COIL || g->kind[i] != g->kind[i + 1] ||
        g->confidence[i] < 0.5 || g->confidence[i + 1] < 0.5)
        return 0;
    while (first > g->chain_first[i] && g->kind[first - 1] == g->kind[i])
        first--;
    while (last < g->chain_last[i] && g->kind[last + 1] == g->kind[i])
        last++;
    return g->kind[i] != TSR_HELIX ||
           (i + 1 - first >= TURN && last - i >= TURN);
}

/* The best cut in coil; in a helix, where that is far better. Predicted errors
 * tell themselves whether a helix bends. */
static tsr_cut best_cut(const tsr_parts_graph *g, const crossing *c, int first,
                        int last, int *at)
{
    double coil = (double)INFINITY, helix = (double)INFINITY;
    int coil_at = -1, helix_at = -1;
    for (int i = first; i < last; i++) {
        double hold = hold_at(g, c, i - first);
        int is_helix = runs_on(g, i) && g->pae == NULL;
        if (is_helix && g->kind[i] == TSR_HELIX && hold < helix)
            helix = hold, helix_at = i;
        if (!is_helix && hold < coil)
            coil = hold, coil_at = i;
    }
    if (helix < 0.5 && helix < 0.5 * coil) {
        *at = helix_at;
        return TSR_CUT_HELIX;
    }
    *at = coil_at;
    return coil < 1.0 ? TSR_CUT_LINKER : TSR_CUT_NONE;
}

static int cut_piece(const tsr_parts_graph *g, int first, int last,
                     tsr_cut *cut)
{
    crossing c;
    int at;
    int is_good = crossing_make(g, first, last, &c);
    tsr_cut kind = is_good ? best_cut(g, &c, first, last, &at) : TSR_CUT_NONE;
    crossing_clear(&c);
    if (kind == TSR_CUT_NONE)
        return is_good;
    cut[at] = kind;
    return cut_piece(g, first, at, cut) && cut_piece(g, at + 1, last, cut);
}

tsr_status tsr_parts_cut(const tsr_parts_graph *graph, tsr_cut *cut,
                         tsr_err *err)
{
    int is_good = 1;
    for (int i = 0; i < graph->n; i++)
        cut[i] = TSR_CUT_NONE;
    for (int i = 0; i < graph->n; i = graph->chain_last[i] + 1)
        is_good &= cut_piece(graph, i, graph->chain_last[i], cut);
    return is_good ? TSR_OK : tsr_no_memory(err);
}
