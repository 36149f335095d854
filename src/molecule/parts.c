/* From a structure to its parts: a graph of residues, where chains come apart,
 * what is rigid in the pieces, the ranges that a configuration has of it, and
 * what a user should be told. */
#include "molecule/parts.h"

#include "core/vec3.h"
#include "molecule/guest.h"
#include "molecule/points.h"
#include "molecule/residue.h"
#include "molecule/secondary.h"

#include <gsl/gsl_statistics_double.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
    LEAST_DOMAIN = 25, /* held residues of what may lean on its neighbour */
    LEAST_APART = 4,   /* residues in sequence: nearer ones always touch */
    MOST_NEAR = 256,
    SMOOTH = 2 /* residues to either side over which pLDDT is averaged */
};
static const double touching = 7.0, apart = 9.0; /* Angstrom, between CB */
static const double holding = 2.0;               /* contacts of one residue */
static const double bridge = 5.0;       /* weight of a disulfide bond */
static const double longest_bond = 2.0; /* C to N, Angstrom */

void tsr_parts_free(tsr_parts *parts)
{
    if (parts != NULL)
        tsr_pool_clear(&parts->pool);
    free(parts);
}

const char *tsr_evidence_text(tsr_evidence evidence)
{
    static const char *const text[] = {
        "contacts and secondary structure of the coordinates",
        "pLDDT in the B column, contacts and secondary structure",
        "predicted aligned errors, contacts and secondary structure",
        "base pairs"};
    return text[evidence];
}

/* ---- residues as a graph ----
 *
 * An edge joins two residues whose CB (of GLY where it would be) are near: side
 * chains are often incomplete, and a prediction of them is the least sure part.
 * Its weight is 1 up to 7 Angstrom and 0 from 9 on, times the confidence of
 * both ends, times that of their relation where predicted aligned errors are
 * known. A disulfide bond is an edge of weight 5. */

typedef struct {
    int a, b; /* residues, a < b */
    double weight;
} parts_contact;

typedef struct {
    tsr_pool pool;
    const tsr_structure *structure;
    const tsr_pae *pae;            /* NULL: without */
    int *row;                      /* [n] of pae */
    int n;                         /* residues */
    int *chain_first, *chain_last; /* [n] of the residue's chain */
    char *kind;                    /* [n] secondary structure */
    double *confidence;            /* [n] 0 to 1 */
    int has_plddt;
    int n_contact;
    parts_contact *contact; /* [n_contact] four or more apart in a chain */
    char *is_bridged;       /* [n] 1: half of a disulfide bond */
    int *held; /* [n] 1: secondary structure or contacts hold the residue */
} parts_graph;

/* How sure the relation of two residues is, 0 to 1, by its predicted aligned
 * error: one half at 6 Angstrom. 1 without errors. */
static double relation_of(const parts_graph *graph, int a, int b)
{
    if (graph->pae == NULL || graph->row[a] < 0 || graph->row[b] < 0)
        return 1.0;
    double error = tsr_pae_between(graph->pae, graph->row[a], graph->row[b]);
    return 1.0 / (1.0 + pow(error / 6.0, 4.0));
}

/* A peptide bond joins residue i to the one before. */
static int is_linked(const parts_graph *graph, int i)
{
    const tsr_structure *s = graph->structure;
    if (i <= graph->chain_first[i])
        return 0;
    const tsr_atom *c = tsr_residue_atom(s, &s->residue[i - 1], "C");
    const tsr_atom *n = tsr_residue_atom(s, &s->residue[i], "N");
    return tsr_vec3_distance(c->xyz, n->xyz) < longest_bond;
}

/* Of residues first to last, how many are held. */
static int count_held(const parts_graph *g, int first, int last)
{
    int n = 0;
    for (int i = first; i <= last; i++)
        n += g->held[i];
    return n;
}

static void set_chains(parts_graph *g)
{
    const tsr_residue_record *r = g->structure->residue;
    for (int i = 0; i < g->n; i++)
        g->chain_first[i] = i > 0 && strcmp(r[i].chain, r[i - 1].chain) == 0
                                ? g->chain_first[i - 1]
                                : i;
    for (int i = g->n - 1; i >= 0; i--)
        g->chain_last[i] =
            i + 1 < g->n && g->chain_first[i + 1] == g->chain_first[i]
                ? g->chain_last[i + 1]
                : i;
}

/* Secondary structure, and CB as it is in ideal frames. */
static tsr_status read_backbones(parts_graph *g, double (*cb)[3], tsr_err *err)
{
    static const char *const name[4] = {"N", "CA", "C", "O"};
    const tsr_structure *s = g->structure;
    tsr_backbone *backbone;
    tsr_pool_array(&g->pool, backbone, g->n);
    TSR_TRY(tsr_pool_check(&g->pool, err));
    for (int i = 0; i < g->n; i++) {
        tsr_backbone *b = &backbone[i];
        double *const x[4] = {b->n, b->ca, b->c, b->o};
        b->is_proline = strcmp(s->residue[i].name, "PRO") == 0;
        b->has_all = 1;
        for (int k = 0; k < 4 && b->has_all; k++) {
            const tsr_atom *a = tsr_residue_atom(s, &s->residue[i], name[k]);
            b->has_all = a != NULL;
            if (a != NULL)
                tsr_vec3_copy(x[k], a->xyz);
        }
        tsr_place_cb(cb[i], b->n, b->ca, b->c);
    }
    return tsr_secondary_find(g->n, backbone, g->kind, err);
}

/* ---- how sure a residue's place is ---- */

/* Does the B column hold pLDDT, 0 to 100 (or 0 to 1)? Where the file does not
 * say so: what predictions are sure of lies deep in the structure; B factors
 * are small there. Returns the factor that makes it 0 to 100; 0: no. */
static double plddt_scale(const tsr_structure *s, const double *depth,
                          double *b)
{
    double low = (double)INFINITY, high = -(double)INFINITY;
    for (int i = 0; i < s->n_residue; i++) {
        b[i] = s->residue[i].b;
        low = fmin(low, b[i]);
        high = fmax(high, b[i]);
    }
    double scale = high <= 1.0 ? 100.0 : 1.0;
    if (!(low >= 0.0 && high <= 100.0 && high * scale > 50.0))
        return 0.0;
    if (s->is_prediction)
        return scale;
    return (high - low) * scale > 20.0 &&
                   gsl_stats_correlation(b, 1, depth, 1, (size_t)s->n_residue) >
                       0.3
               ? scale
               : 0.0;
}

/* pLDDT below 50 is as good as always disorder, above 70 a fold (Jumper et al.
 * 2021; Tunyasuvunakool et al. 2021). */
static void set_confidence(parts_graph *g, const double *plddt)
{
    for (int i = 0; i < g->n; i++) {
        double sum = 0.0;
        int n = 0;
        for (int j = i - SMOOTH; j <= i + SMOOTH; j++)
            if (j >= g->chain_first[i] && j <= g->chain_last[i]) {
                sum += plddt[j];
                n++;
            }
        g->confidence[i] = 1.0 / (1.0 + exp(-(sum / n - 60.0) / 4.0));
    }
}

/* Of errors alone: how sure a residue's relation to its neighbours is. */
static void set_confidence_by_errors(parts_graph *g)
{
    for (int i = 0; i < g->n; i++) {
        double sum = 0.0;
        int n = 0;
        for (int j = i - 6; j <= i + 6; j++)
            if (abs(j - i) > 2 && j >= g->chain_first[i] &&
                j <= g->chain_last[i]) {
                sum += relation_of(g, i, j);
                n++;
            }
        g->confidence[i] = n > 0 ? sum / n : 1.0;
    }
}

static void read_confidence(parts_graph *g, const tsr_cell_list *cells,
                            const double (*cb)[3], double *depth, double *b)
{
    const double *plddt = g->pae != NULL ? g->pae->plddt : NULL;
    int near[MOST_NEAR];
    for (int i = 0; i < g->n; i++) {
        g->confidence[i] = 1.0;
        depth[i] = tsr_cell_list_within(cells, cb[i], apart, MOST_NEAR, near);
    }
    double scale = plddt_scale(g->structure, depth, b);
    for (int i = 0; i < g->n && scale == 0.0 && plddt != NULL; i++)
        if (g->row[i] >= 0)
            b[i] = plddt[g->row[i]];
    if (scale == 0.0 && plddt != NULL)
        scale = 1.0;
    g->has_plddt = scale > 0.0;
    for (int i = 0; i < g->n; i++)
        b[i] *= scale;
    if (g->has_plddt)
        set_confidence(g, b);
    else if (g->pae != NULL)
        set_confidence_by_errors(g);
}

/* ---- contacts ---- */

static void add_contact(parts_graph *g, parts_contact contact)
{
    const int n = g->n_contact;
    if ((n & (n - 1)) == 0) { /* full: 1, 2, 4, 8, ... */
        parts_contact *bigger = tsr_pool_resize(
            &g->pool, g->contact, 2 * (size_t)n + 1, sizeof *bigger);
        if (bigger == NULL)
            return;
        g->contact = bigger;
    }
    g->contact[g->n_contact++] = contact;
}

/* Two SG as near as a bond between them. */
static int is_disulfide(const tsr_structure *s, int i, int j)
{
    const tsr_atom *a = tsr_residue_atom(s, &s->residue[i], "SG");
    const tsr_atom *b =
        a == NULL ? NULL : tsr_residue_atom(s, &s->residue[j], "SG");
    return b != NULL && tsr_vec3_distance(a->xyz, b->xyz) < 2.5;
}

static double weigh(parts_graph *g, int i, int j, double distance)
{
    double weight = fmin(1.0, (apart - distance) / (apart - touching));
    double sure = g->confidence[i] * g->confidence[j];
    if (is_disulfide(g->structure, i, j)) {
        g->is_bridged[i] = g->is_bridged[j] = sure >= 0.25;
        weight = bridge;
    }
    return weight * sure * relation_of(g, i, j);
}

static void find_contacts(parts_graph *g, const tsr_cell_list *cells,
                          const double (*cb)[3])
{
    int near[MOST_NEAR];
    for (int i = 0; i < g->n && !g->pool.failed; i++) {
        int n = tsr_cell_list_within(cells, cb[i], apart, MOST_NEAR, near);
        for (int k = 0; k < n && k < MOST_NEAR && !g->pool.failed; k++) {
            int j = near[k];
            int is_near =
                j - i < LEAST_APART && g->chain_first[i] == g->chain_first[j];
            if (j <= i || is_near)
                continue;
            double weight = weigh(g, i, j, tsr_vec3_distance(cb[i], cb[j]));
            if (weight > 0.01)
                add_contact(g, (parts_contact){i, j, weight});
        }
    }
}

/* sum [n] zeroed. */
static void find_held(parts_graph *g, double *sum)
{
    for (int k = 0; k < g->n_contact; k++) {
        sum[g->contact[k].a] += g->contact[k].weight;
        sum[g->contact[k].b] += g->contact[k].weight;
    }
    for (int i = 0; i < g->n; i++)
        g->held[i] = g->confidence[i] >= 0.5 &&
                     (g->kind[i] != TSR_COIL || sum[i] >= holding);
}

/* Of a structure and its errors, for which kind and confidence have room. */
static tsr_status make_graph(parts_graph *g, tsr_err *err)
{
    double(*cb)[3], *depth, *b, *sum;
    tsr_cell_list *cells;
    tsr_pool_array(&g->pool, g->row, g->n);
    tsr_pool_array(&g->pool, g->chain_first, g->n);
    tsr_pool_array(&g->pool, g->chain_last, g->n);
    tsr_pool_array(&g->pool, g->is_bridged, g->n);
    tsr_pool_array(&g->pool, g->held, g->n);
    tsr_pool_array(&g->pool, cb, g->n);
    tsr_pool_array(&g->pool, depth, g->n);
    tsr_pool_array(&g->pool, b, g->n);
    tsr_pool_array(&g->pool, sum, g->n);
    TSR_TRY(tsr_pool_check(&g->pool, err));
    set_chains(g);
    if (g->pae != NULL)
        TSR_TRY(tsr_pae_rows(g->pae, g->structure, g->row, err));
    TSR_TRY(read_backbones(g, cb, err));
    TSR_TRY(tsr_cell_list_new(&g->pool, g->n, (const double(*)[3])cb, apart,
                              &cells, err));
    read_confidence(g, cells, (const double(*)[3])cb, depth, b);
    find_contacts(g, cells, (const double(*)[3])cb);
    find_held(g, sum);
    return tsr_pool_check(&g->pool, err);
}

/* ---- where a chain comes apart ----
 *
 * Each chain is cut where, for the size of the smaller side, the least crosses;
 * and its pieces again. Little: contacts of total weight below 1.5 m^(2/3), m
 * the held residues of the smaller side (0.4 m^(2/3) where that has fewer than
 * 25; none with fewer than 10): of 299 structures, pairs of domains have 0.3 to
 * 1.5, halves of one domain 1.6 to 12 (docs/domains.md). With predicted aligned
 * errors the mean relation of residues across the cut must be below 0.3, too.
 * All cuts of a chain are tried, each in constant time after one pass over the
 * edges: an edge adds its weight from its first residue on and takes it away at
 * its second. Cost of a piece: O(contacts + residues), with predicted errors
 * O(residues^2). */

typedef enum {
    CUT_NONE,
    CUT_LINKER, /* the pieces move against each other */
    CUT_HELIX   /* only a helix that runs on joins them: held straight */
} parts_cut;

enum {
    LEAST_SIDE = 10, /* held residues of what can move by itself */
    TURN = 4,        /* residues */
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

/* Sums over pairs: each adds from its first residue on and ends before its
 * second. */
static void sum_relations(const parts_graph *g, int first, int last,
                          double *relation)
{
    for (int i = first; i < last; i++)
        for (int j = i + BEYOND; g->held[i] && j <= last; j++)
            if (g->held[j]) {
                double r = relation_of(g, i, j);
                relation[i - first] += r;
                if (j < last)
                    relation[j - first] -= r;
            }
}

/* The arrays, with room for a whole structure, are made anew for each piece. */
static void find_crossing(const parts_graph *g, int first, int last,
                          crossing *c)
{
    size_t n = (size_t)(last - first) + 1;
    memset(c->contact, 0, n * sizeof *c->contact);
    memset(c->relation, 0, n * sizeof *c->relation);
    c->n_held = 0;
    for (int k = 0; k < g->n_contact; k++) {
        const parts_contact *edge = &g->contact[k];
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
}

static double hold_at(const parts_graph *g, const crossing *c, int k)
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
static int runs_on(const parts_graph *g, int i)
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
static parts_cut best_cut(const parts_graph *g, const crossing *c, int first,
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
        return CUT_HELIX;
    }
    *at = coil_at;
    return coil < 1.0 ? CUT_LINKER : CUT_NONE;
}

static void cut_piece(const parts_graph *g, crossing *c, int first, int last,
                      parts_cut *cut)
{
    int at;
    find_crossing(g, first, last, c);
    const parts_cut kind = best_cut(g, c, first, last, &at);
    if (kind == CUT_NONE)
        return;
    cut[at] = kind;
    cut_piece(g, c, first, at, cut);
    cut_piece(g, c, at + 1, last, cut);
}

/* cut [n]: between residue i and the one after it. */
static tsr_status cut_chains(parts_graph *g, parts_cut *cut, tsr_err *err)
{
    crossing c;
    tsr_pool_array(&g->pool, c.contact, g->n);
    tsr_pool_array(&g->pool, c.relation, g->n);
    tsr_pool_array(&g->pool, c.held, g->n);
    TSR_TRY(tsr_pool_check(&g->pool, err));
    for (int i = 0; i < g->n; i++)
        cut[i] = CUT_NONE;
    for (int i = 0; i < g->n; i = g->chain_last[i] + 1)
        cut_piece(g, &c, i, g->chain_last[i], cut);
    return TSR_OK;
}

/* ---- what is rigid in each piece ----
 *
 * A cut is a place between two residues; a linker is a stretch around it. So
 * are tails. Both are found by walking from the cut, or the end, to where the
 * chain is held. */

/* What lies between two cuts, or a cut and an end of the chain. */
typedef struct {
    int first, last;
    int low, high;   /* what of it is rigid; low > high: nothing */
    int is_fixed;    /* 1: keeps its place with others that do */
    int n_loop;      /* residues in loops that hang free */
    int moves_loops; /* 1: these may move */
    double other;    /* contacts of its rigid residues with other chains */
} parts_piece;

typedef struct {
    int n;
    parts_piece *piece; /* [n] in order */
    double *own;        /* [residues] contacts within the piece, or with other
                           chains */
    char *is_loop;      /* [residues] 1: in a run inside of a piece that nothing
                           holds */
} parts_pieces;

enum {
    WINDOW = 5,       /* of these residues */
    HELD_IN = 4,      /* so many are held where a rigid part begins */
    LEAST_PART = 10,  /* held residues of a rigid part, and among them */
    LEAST_FOLD = 6,   /* of a helix or strand, unless these are */
    LEAST_BOUND = 4,  /* of one that other chains hold */
    LEAST_TAIL = 3,   /* residues */
    LEAST_LINKER = 5, /* residues: fewer turn too stiffly, but */
    LEAST_TURN = 3,   /* so many are enough where more would cost a helix */
    LEAST_LOOP = 15,  /* residues without contacts */
    LEAST_UNSURE = 10 /* residues that a prediction is not sure of */
};
static const double holding_linker = 4.0; /* the same beside a cut */
static const double hanging = 0.5;   /* mean contacts of a loop's residues */
static const double interface = 6.0; /* contacts that hold chains together */

static int is_structure(const parts_graph *g, int i)
{
    return g->kind[i] != TSR_COIL && g->confidence[i] >= 0.5;
}

static int is_anchored(const parts_graph *g, const parts_pieces *p, int i)
{
    return is_structure(g, i) ||
           (g->confidence[i] >= 0.5 && p->own[i] >= holding);
}

static int piece_of(const parts_pieces *p, int residue)
{
    int k = 0;
    while (p->piece[k].last < residue)
        k++;
    return k;
}

static void list_pieces(const parts_graph *g, const parts_cut *cut,
                        parts_pieces *p)
{
    for (int i = 0, first = 0; i < g->n; i++)
        if (i == g->chain_last[i] || cut[i] == CUT_LINKER) {
            p->piece[p->n++] = (parts_piece){.first = first, .last = i};
            first = i + 1;
        }
}

static int is_other_chain(const parts_graph *g, const parts_contact *c)
{
    return g->chain_first[c->a] != g->chain_first[c->b];
}

static void sum_own(const parts_graph *g, parts_pieces *p)
{
    for (int k = 0; k < g->n_contact; k++) {
        const parts_contact *c = &g->contact[k];
        if (!is_other_chain(g, c) && piece_of(p, c->a) != piece_of(p, c->b))
            continue;
        p->own[c->a] += c->weight;
        p->own[c->b] += c->weight;
    }
}

/* From `from` on in the direction of step: the first residue at which the piece
 * is held, by a disulfide bond or by more than a contact here and there. */
static int find_end(const parts_graph *g, const parts_pieces *p, int from,
                    int to, int step)
{
    int i = from;
    for (; i != to + step; i += step) {
        int n = 0;
        for (int k = 0; k < WINDOW; k++) {
            int j = i + k * step;
            n += (to - j) * step >= 0 && is_anchored(g, p, j);
        }
        if ((is_anchored(g, p, i) && n >= HELD_IN) || g->is_bridged[i])
            break;
    }
    return i;
}

/* Is that enough to be rigid? A few contacts come about by chance in a coil. */
static int is_part(const parts_graph *g, const parts_piece *piece)
{
    int n_held = count_held(g, piece->low, piece->high), n_fold = 0;
    for (int i = piece->low; i <= piece->high; i++)
        n_fold += is_structure(g, i);
    if (piece->other >= interface)
        return n_held >= LEAST_BOUND;
    return n_held >= LEAST_DOMAIN ||
           (n_held >= LEAST_PART && n_fold >= LEAST_FOLD);
}

/* Contacts of a piece with other chains. */
static double touch_others(const parts_graph *g, const parts_piece *piece)
{
    double sum = 0.0;
    for (int k = 0; k < g->n_contact; k++) {
        const parts_contact *c = &g->contact[k];
        int has_a = c->a >= piece->low && c->a <= piece->high;
        int has_b = c->b >= piece->low && c->b <= piece->high;
        if (is_other_chain(g, c) && has_a != has_b)
            sum += c->weight;
    }
    return sum;
}

/* Beside a cut the coil often leans on itself, and would hide a linker: there
 * only contacts of its residues with the rest of the piece count. */
static void loosen_coil(const parts_graph *g, parts_pieces *p, int from,
                        int step)
{
    const parts_piece *piece = &p->piece[piece_of(p, from)];
    int end = from;
    while (end >= piece->first && end <= piece->last && !is_structure(g, end))
        end += step;
    int low = step > 0 ? from : end + 1, high = step > 0 ? end - 1 : from;
    for (int k = 0; k < g->n_contact; k++) {
        const parts_contact *c = &g->contact[k];
        if (c->a >= low && c->b <= high) {
            p->own[c->a] -= c->weight;
            p->own[c->b] -= c->weight;
        }
    }
    for (int i = low; i <= high; i++)
        p->own[i] *= holding / holding_linker;
}

static void loosen_cuts(const parts_graph *g, parts_pieces *p)
{
    for (int k = 0; k + 1 < p->n; k++) {
        int last = p->piece[k].last;
        if (last == g->chain_last[last])
            continue;
        loosen_coil(g, p, last, -1);
        loosen_coil(g, p, last + 1, 1);
    }
}

static void trim(const parts_graph *g, parts_pieces *p)
{
    for (int k = 0; k < p->n; k++) {
        parts_piece *piece = &p->piece[k];
        piece->low = find_end(g, p, piece->first, piece->last, 1);
        piece->high = piece->low > piece->last
                          ? piece->last
                          : find_end(g, p, piece->last, piece->low, -1);
        piece->other = touch_others(g, piece);
        if (!is_part(g, piece))
            piece->low = piece->last + 1, piece->high = piece->last;
    }
}

static int is_rigid(const parts_piece *piece)
{
    return piece->low <= piece->high;
}

/* Two neighbours of one chain that are both rigid. */
static int are_joined(const parts_graph *g, const parts_pieces *p, int k)
{
    return k + 1 < p->n && is_rigid(&p->piece[k]) &&
           is_rigid(&p->piece[k + 1]) &&
           g->chain_first[p->piece[k].last] ==
               g->chain_first[p->piece[k + 1].last];
}

static int is_broken(const parts_graph *g, int first, int last)
{
    for (int i = first + 1; i <= last; i++)
        if (!is_linked(g, i))
            return 1;
    return 0;
}

/* Some residues more for a linker that is too short: of coil, and those with
 * fewer contacts first. What the file lacks cannot be made up for. */
static void widen_linkers(const parts_graph *g, parts_pieces *p)
{
    for (int k = 0; k + 1 < p->n; k++) {
        parts_piece *a = &p->piece[k], *b = &p->piece[k + 1];
        while (are_joined(g, p, k) && b->low - a->high - 1 < LEAST_LINKER &&
               !is_broken(g, a->high, b->low)) {
            int has_a = !is_structure(g, a->high) && a->high > a->low;
            int has_b = !is_structure(g, b->low) && b->high > b->low;
            if (!has_a && !has_b && b->low - a->high - 1 >= LEAST_TURN)
                break;
            int take_a =
                has_a != has_b ? has_a : p->own[a->high] <= p->own[b->low];
            if (take_a)
                a->high--;
            else
                b->low++;
        }
    }
}

/* One or two loose residues at an end are no tail. */
static void settle_tails(const parts_graph *g, parts_pieces *p)
{
    for (int k = 0; k < p->n; k++) {
        parts_piece *piece = &p->piece[k];
        int begins = g->chain_first[piece->first] == piece->first;
        int ends = g->chain_last[piece->last] == piece->last;
        if (!is_rigid(piece))
            continue;
        if (begins && piece->low - piece->first < LEAST_TAIL)
            piece->low = piece->first;
        if (ends && piece->last - piece->high < LEAST_TAIL)
            piece->high = piece->last;
    }
}

/* ---- loops that hang free inside of a piece ---- */

static int is_hanging(const parts_graph *g, const parts_pieces *p, int first,
                      int last)
{
    double sum = 0.0;
    int n = last - first + 1, is_unsure = 1;
    for (int i = first; i <= last; i++) {
        sum += p->own[i];
        is_unsure &= g->confidence[i] < 0.5;
    }
    return sum < hanging * n &&
           n >= (is_unsure ? (int)LEAST_UNSURE : (int)LEAST_LOOP);
}

static void find_loops(const parts_graph *g, parts_pieces *p)
{
    for (int k = 0; k < p->n; k++) {
        parts_piece *piece = &p->piece[k];
        for (int i = piece->low; i <= piece->high; i++) {
            int last = i;
            if (is_anchored(g, p, i))
                continue;
            while (last < piece->high && !is_anchored(g, p, last + 1))
                last++;
            for (int j = i; j <= last && is_hanging(g, p, i, last); j++) {
                p->is_loop[j] = 1;
                piece->n_loop++;
            }
            i = last;
        }
    }
}

/* A piece holds others where enough of it touches another chain; in a chain
 * alone the piece with most loops stays in its place, so that these can move.
 */
static void choose_fixed(const parts_graph *g, int no_loops, parts_pieces *p)
{
    int is_alone = g->chain_last[0] == g->n - 1, best = -1;
    for (int k = 0; k < p->n; k++) {
        parts_piece *piece = &p->piece[k];
        piece->is_fixed = is_rigid(piece) && piece->other >= interface;
        if (is_alone && !no_loops && piece->n_loop > 0 &&
            (best < 0 || piece->n_loop > p->piece[best].n_loop))
            best = k;
    }
    if (best >= 0)
        p->piece[best].is_fixed = 1;
    for (int k = 0; k < p->n; k++)
        p->piece[k].moves_loops = p->piece[k].is_fixed && !no_loops;
}

/* What lies between two pieces that both keep their places is a loop; a short
 * one is left as it is, and the two become one. */
static void join_fixed(const parts_graph *g, int no_loops, parts_pieces *p)
{
    for (int k = 0; k + 1 < p->n;) {
        parts_piece *a = &p->piece[k], *b = &p->piece[k + 1];
        if (!are_joined(g, p, k) || !a->is_fixed || !b->is_fixed ||
            (b->low - a->high - 1 >= LEAST_UNSURE && !no_loops)) {
            k++;
            continue;
        }
        a->last = b->last;
        a->high = b->high;
        a->other += b->other;
        a->n_loop += b->n_loop;
        for (int j = k + 1; j + 1 < p->n; j++)
            p->piece[j] = p->piece[j + 1];
        p->n--;
    }
}

/* no_loops: none may move. */
static tsr_status make_pieces(parts_graph *g, const parts_cut *cut,
                              int no_loops, parts_pieces *p, tsr_err *err)
{
    tsr_pool_array(&g->pool, p->piece, g->n);
    tsr_pool_array(&g->pool, p->own, g->n);
    tsr_pool_array(&g->pool, p->is_loop, g->n);
    TSR_TRY(tsr_pool_check(&g->pool, err));
    list_pieces(g, cut, p);
    sum_own(g, p);
    loosen_cuts(g, p);
    trim(g, p);
    widen_linkers(g, p);
    settle_tails(g, p);
    find_loops(g, p);
    choose_fixed(g, no_loops, p);
    join_fixed(g, no_loops, p);
    return TSR_OK;
}

/* ---- what a user should look at ----
 *
 * What the file lacks, and what was decided that could be decided otherwise.
 * Sentences for people: each names residues as a configuration does, and says
 * what to do. */

enum {
    MOST_NOTES = 40,
    SHOWN = 30,   /* letters of a stretch that is missing */
    COPY = 25,    /* residues that, where they repeat, are a second copy */
    LEAST_TAG = 5 /* histidines in a row */
};

/* text: of parts->pool; NULL: out of memory, which the pool remembers. */
static void keep_note(tsr_parts *parts, char *text)
{
    if (parts->n_note < MOST_NOTES && text != NULL)
        parts->note[parts->n_note++] = text;
}

#define note(parts, ...) \
    keep_note((parts), tsr_pool_print(&(parts)->pool, __VA_ARGS__))

static const char *name_of(const parts_graph *g, int i, char text[32])
{
    tsr_residue_label(&g->structure->residue[i], text, 32);
    return text;
}

/* ---- what the file lacks ---- */

static char letter(const tsr_structure *s, int i)
{
    int amino = tsr_amino_by_three(s->residue[i].name);
    return amino < 0 ? 'X' : tsr_amino_table[amino].one;
}

/* Where a run of residues begins in the declared sequence, from `from` on; -1:
 * nowhere. An X in it is any. */
static int find_run(const tsr_structure *s, int first, int last,
                    const char *letters, int from)
{
    int n = (int)strlen(letters), m = last - first + 1;
    for (int at = from; at + m <= n; at++) {
        int k = 0;
        while (k < m && (letters[at + k] == 'X' ||
                         letters[at + k] == letter(s, first + k)))
            k++;
        if (k == m)
            return at;
    }
    return -1;
}

static int has_tag(const char *letters, int n)
{
    for (int i = 0, run = 0; i < n; i++) {
        run = letters[i] == 'H' ? run + 1 : 0;
        if (run >= LEAST_TAG)
            return 1;
    }
    return 0;
}

/* n residues between `before` and `after`; -1: an end of the chain. */
static void say_missing(const parts_graph *g, tsr_parts *parts, int before,
                        int after, const char *letters, int n)
{
    char one[32] = "", other[32] = "";
    if (before >= 0)
        name_of(g, before, one);
    if (after >= 0)
        name_of(g, after, other);
    note(parts,
         "%s%d residues %s %s%s%s %s (%.*s%s%s); they scatter as well: if they "
         "were in the sample, model them (MODELLER, AlphaFold) and make them "
         "flexible",
         before < 0 || after < 0 ? "the file declares " : "", n,
         before < 0  ? "before"
         : after < 0 ? "after"
                     : "between",
         one, before < 0 || after < 0 ? "" : " and ", other,
         before < 0 || after < 0 ? "without coordinates"
                                 : "have no coordinates",
         n > SHOWN ? SHOWN : n, letters, n > SHOWN ? "..." : "",
         has_tag(letters, n) ? ", including a histidine tag" : "");
}

/* Goes through the chain's unbroken runs, in the declared sequence. */
static void compare_declared(const parts_graph *g, int first,
                             const char *letters, tsr_parts *parts)
{
    int from = 0, before = -1, last_of = g->chain_last[first];
    for (int i = first; i <= last_of;) {
        int last = i;
        while (last < last_of && is_linked(g, last + 1))
            last++;
        int at = find_run(g->structure, i, last, letters, from);
        if (at < 0)
            return; /* numbered or mutated otherwise: nothing is sure */
        if (at > from)
            say_missing(g, parts, before, i, letters + from, at - from);
        from = at + last - i + 1;
        before = last;
        i = last + 1;
    }
    int rest = (int)strlen(letters) - from;
    if (rest > 0)
        say_missing(g, parts, before, -1, letters + from, rest);
}

static const char *declared_of(const tsr_structure *s, const char *chain)
{
    for (int k = 0; k < s->n_declared; k++)
        if (strcmp(s->declared[k].chain, chain) == 0)
            return s->declared[k].letters;
    return NULL;
}

/* An earlier chain begins and ends like this one: its copy. */
static int is_copy(const parts_graph *g, int first)
{
    const tsr_residue_record *r = g->structure->residue;
    for (int i = 0; i < first; i = g->chain_last[i] + 1)
        if (r[i].number == r[first].number &&
            r[g->chain_last[i]].number == r[g->chain_last[first]].number)
            return 1;
    return 0;
}

/* Without a sequence in the file the numbers tell of breaks, and of a chain
 * that does not begin at 1. */
static void compare_numbers(const parts_graph *g, int first, tsr_parts *parts)
{
    const tsr_residue_record *r = g->structure->residue;
    char one[32], other[32];
    for (int i = first + 1; i <= g->chain_last[first]; i++) {
        int n = r[i].number - r[i - 1].number - 1;
        if (n > 0 && !is_linked(g, i))
            note(parts,
                 "%d residues between %s and %s are not in the model; they "
                 "scatter as well: model them (MODELLER, AlphaFold) and make "
                 "them flexible",
                 n, name_of(g, i - 1, one), name_of(g, i, other));
    }
    if (r[first].number > 1 && !is_copy(g, first))
        note(parts,
             "chain %s begins at residue %d and the file does not give the "
             "sequence of the sample: missing tags and tails scatter as well",
             r[first].chain, r[first].number);
}

static void tell_missing(const parts_graph *g, tsr_parts *parts)
{
    if (g->structure->n_bare > 0)
        note(parts, "left out of the chains: %s", g->structure->bare);
    for (int i = 0; i < g->n; i = g->chain_last[i] + 1) {
        const char *letters =
            declared_of(g->structure, g->structure->residue[i].chain);
        if (letters != NULL)
            compare_declared(g, i, letters, parts);
        else
            compare_numbers(g, i, parts);
    }
}

/* ---- what could be decided otherwise ---- */

/* Helices alone between two domains, once each; not the helix at an end that
 * has nothing beyond it. */
static void tell_helices(const parts_graph *g, const parts_cut *cut,
                         tsr_parts *parts)
{
    const tsr_residue_record *r = g->structure->residue;
    char one[32];
    for (int i = 2, told = -1; i + 2 < g->n; i++) {
        int is_domain = count_held(g, g->chain_first[i], i) >= LEAST_DOMAIN &&
                        count_held(g, i + 1, g->chain_last[i]) >= LEAST_DOMAIN;
        told = g->kind[i] == TSR_HELIX ? told : -1;
        if (cut[i] != CUT_HELIX || !is_domain || told >= 0)
            continue;
        told = i;
        note(parts,
             "only the helix around %s joins the parts before and after it; "
             "the helix is kept straight. If it bends, add \"%s:%d-%d\" to "
             "structure.flexible",
             name_of(g, i, one), r[i].chain, r[i - 1].number, r[i + 2].number);
    }
}

/* Two parts that would move, but what joins them is not in the file. */
static void tell_breaks(const parts_graph *g, const parts_pieces *p,
                        tsr_parts *parts)
{
    char one[32], other[32];
    for (int k = 0; k + 1 < p->n; k++) {
        const parts_piece *a = &p->piece[k], *b = &p->piece[k + 1];
        int at = a->high + 1;
        if (a->low > a->high || b->low > b->high ||
            g->chain_first[a->last] != g->chain_first[b->last])
            continue;
        while (at <= b->low && is_linked(g, at))
            at++;
        if (at <= b->low)
            note(parts,
                 "two domains with a chain break between %s and %s: the linker "
                 "is missing from the file%s; model the linker, so that the "
                 "domains can move",
                 name_of(g, at - 1, one), name_of(g, at, other),
                 b->low == a->high + 1
                     ? ", and the domains keep their relative position"
                     : " in part");
    }
}

static void tell_loops(const parts_graph *g, const parts_pieces *p,
                       tsr_parts *parts)
{
    char one[32], other[32];
    for (int k = 0; k < p->n; k++) {
        const parts_piece *piece = &p->piece[k];
        for (int i = piece->low; i <= piece->high; i++) {
            int last = i;
            if (!p->is_loop[i])
                continue;
            while (last < piece->high && p->is_loop[last + 1])
                last++;
            if (!piece->moves_loops)
                note(parts,
                     "no rigid part moves the loop %s to %s, which is kept as "
                     "it is: a loop moves only in a part that keeps its place "
                     "(structure.fixed), and another part does already",
                     name_of(g, i, one), name_of(g, last, other));
            i = last;
        }
    }
}

/* How sure a prediction is of the places of two chains, 0 to 1: the mean over
 * their residues. */
static double mean_relation(const parts_graph *g, int chain)
{
    double sum = 0.0, n = 0.0;
    for (int i = chain; i <= g->chain_last[chain]; i++)
        for (int j = 0; g->held[i] && j < g->n; j++)
            if (g->held[j] && g->chain_first[j] != chain) {
                sum += relation_of(g, i, j);
                n += 1.0;
            }
    return n > 0.0 ? sum / n : 1.0;
}

/* A trimmed model, as is usual; or the file of another protein. */
static void tell_rows(const parts_graph *g, tsr_parts *parts)
{
    if (g->pae != NULL && g->pae->n != g->n && g->pae->chain == NULL)
        note(parts,
             "the predicted aligned errors have %d residues and the model has "
             "%d: they were matched by residue number, which is right if the "
             "model was cut out of the prediction",
             g->pae->n, g->n);
}

static void tell_chains(const parts_graph *g, const parts_pieces *p,
                        tsr_parts *parts)
{
    const int is_alone = g->chain_last[0] == g->n - 1;
    for (int i = 0; i < g->n && !is_alone; i = g->chain_last[i] + 1) {
        double touches = 0.0;
        const char *chain = g->structure->residue[i].chain;
        for (int k = 0; k < p->n; k++)
            if (p->piece[k].first >= i && p->piece[k].last <= g->chain_last[i])
                touches += p->piece[k].other;
        if (g->pae != NULL && mean_relation(g, i) < 0.2 && touches < 6.0)
            note(parts,
                 "the position of chain %s relative to the others is uncertain "
                 "in the prediction; it is kept fixed. structure.mobile: [%s] "
                 "lets it move as a rigid body",
                 chain, chain);
        else if (touches == 0.0)
            note(parts,
                 "chain %s touches no other chain: does it belong to the "
                 "measured molecule?",
                 chain);
    }
}

/* Copies of one sequence in one chain: several molecules without chain ids. */
static int find_copy(const parts_graph *g, int first, int last, int *copy)
{
    const tsr_structure *s = g->structure;
    for (int at = last + 1; at + COPY - 1 <= g->chain_last[first]; at++) {
        int k = 0;
        while (k < COPY && first + k <= last &&
               letter(s, first + k) == letter(s, at + k))
            k++;
        *copy = at;
        if (k == COPY)
            return 1;
    }
    return 0;
}

static void tell_copies(const parts_graph *g, tsr_parts *parts)
{
    char one[32], other[32];
    for (int i = 0; i < g->n; i = g->chain_last[i] + 1)
        for (int from = i; from <= g->chain_last[i];) {
            int last = from, copy = 0;
            while (last < g->chain_last[i] && is_linked(g, last + 1))
                last++;
            if (last - from + 1 >= COPY && last < g->chain_last[i] &&
                find_copy(g, from, last, &copy)) {
                note(parts,
                     "chain %s contains the same sequence several times, from "
                     "%s and again from %s: several molecules under one chain "
                     "id (or a blank one); give each its own id",
                     g->structure->residue[i].chain, name_of(g, from, one),
                     name_of(g, copy, other));
                return;
            }
            from = last + 1;
        }
}

static void take_notes(const parts_graph *g, const parts_cut *cut,
                       const parts_pieces *pieces, tsr_parts *parts)
{
    tsr_pool_array(&parts->pool, parts->note, MOST_NOTES);
    if (parts->note == NULL)
        return;
    tell_copies(g, parts);
    parts->n_grave = parts->n_note;
    tell_rows(g, parts);
    tell_breaks(g, pieces, parts);
    tell_missing(g, parts);
    tell_helices(g, cut, parts);
    tell_loops(g, pieces, parts);
    tell_chains(g, pieces, parts);
}

/* ---- which residues may move ---- */

/* CB on the other side: a D residue, for which the prior has no torsions. */
static int is_d_residue(const tsr_structure *s, int i)
{
    const tsr_residue_record *r = &s->residue[i];
    const tsr_atom *n = tsr_residue_atom(s, r, "N");
    const tsr_atom *ca = tsr_residue_atom(s, r, "CA");
    const tsr_atom *c = tsr_residue_atom(s, r, "C");
    const tsr_atom *cb = tsr_residue_atom(s, r, "CB");
    double frame[3][3], local[3];
    if (cb == NULL || strcmp(r->name, "GLY") == 0)
        return 0;
    tsr_frame(frame, n->xyz, ca->xyz, c->xyz);
    tsr_frame_to_local(local, frame, ca->xyz, cb->xyz);
    return local[2] > 0.0;
}

/* Ranges go by number, which insertions share: all of one number or none. */
static void settle_numbers(const parts_graph *g, int *part)
{
    const tsr_residue_record *r = g->structure->residue;
    for (int i = 0; i < g->n; i++)
        if (i > g->chain_first[i] && r[i].number == r[i - 1].number &&
            (part[i] < 0) != (part[i - 1] < 0)) {
            int whole = part[i] < 0 ? part[i - 1] : part[i];
            for (int j = i;
                 j >= g->chain_first[i] && r[j].number == r[i].number; j--)
                part[j] = whole;
        }
}

/* Residues that are in no part but may not move, each run a part. */
static void keep_rigid(const parts_graph *g, const int *wished,
                       tsr_parts *parts)
{
    int before = 0;
    for (int i = 0; i < g->n; i++) {
        int is_single = g->chain_first[i] == g->chain_last[i];
        int is_kept =
            parts->part[i] < 0 && (is_single || (wished != NULL && wished[i]) ||
                                   is_d_residue(g->structure, i));
        if (is_kept && before && i > g->chain_first[i]) {
            parts->part[i] = parts->part[i - 1];
            parts->rigid[parts->part[i]].last = i;
        } else if (is_kept) {
            parts->part[i] = parts->n_part;
            parts->rigid[parts->n_part++] = (tsr_rigid_part){i, i, 0};
        }
        before = is_kept;
    }
}

static void mark_parts(const parts_graph *g, const parts_pieces *p,
                       const int *wished, tsr_parts *parts)
{
    for (int i = 0; i < g->n; i++)
        parts->part[i] = -1;
    for (int k = 0; k < p->n; k++) {
        const parts_piece *piece = &p->piece[k];
        if (piece->low > piece->high)
            continue;
        for (int i = piece->low; i <= piece->high; i++)
            if (!p->is_loop[i] || !piece->moves_loops)
                parts->part[i] = parts->n_part;
        parts->rigid[parts->n_part++] =
            (tsr_rigid_part){piece->low, piece->high, piece->is_fixed};
    }
    keep_rigid(g, wished, parts);
    settle_numbers(g, parts->part);
}

/* ---- as ranges ---- */

static int part_beside(const parts_graph *g, const int *part, int i, int step)
{
    int first = g->chain_first[i], last = g->chain_last[i];
    for (i += step; i >= first && i <= last; i += step)
        if (part[i] >= 0)
            return part[i];
    return -1;
}

static void list_ranges(const parts_graph *g, tsr_parts *parts)
{
    const int *part = parts->part;
    for (int i = 0; i < g->n; i++) {
        if (part[i] >= 0)
            continue;
        int last = i;
        while (last < g->chain_last[i] && part[last + 1] < 0 &&
               is_linked(g, last + 1))
            last++;
        int before = part_beside(g, part, i, -1);
        int after = part_beside(g, part, last, 1);
        int is_loop = before >= 0 && after >= 0 &&
                      (before == after || (parts->rigid[before].is_fixed &&
                                           parts->rigid[after].is_fixed));
        parts->range[parts->n_range++] =
            (tsr_flexible_range){i, last,
                                 before < 0 && after < 0   ? TSR_RANGE_CHAIN
                                 : before < 0 || after < 0 ? TSR_RANGE_TAIL
                                 : is_loop                 ? TSR_RANGE_LOOP
                                                           : TSR_RANGE_LINKER,
                                 before, after};
        i = last;
    }
}

/* Does the text "A:FIRST-LAST" name residues first..last and no others? */
static int is_exact(const parts_graph *g, int first, int last)
{
    const tsr_residue_record *r = g->structure->residue;
    for (int i = g->chain_first[first]; i <= g->chain_last[first]; i++) {
        int is_named =
            r[i].number >= r[first].number && r[i].number <= r[last].number;
        if (is_named != (i >= first && i <= last))
            return 0;
    }
    return 1;
}

/* text: of the pool, or NULL. */
static void append(tsr_pool *pool, tsr_strings *list, char *text)
{
    char **item =
        tsr_pool_resize(pool, list->item, (size_t)list->n + 1, sizeof *item);
    if (item == NULL || text == NULL)
        return;
    list->item = item;
    item[list->n++] = text;
}

static void add_text(const parts_graph *g, int first, int last,
                     tsr_strings *list, tsr_pool *pool)
{
    const tsr_residue_record *r = g->structure->residue;
    if (last > first && is_exact(g, first, last)) {
        append(pool, list,
               tsr_pool_print(pool, "%s:%d-%d", r[first].chain, r[first].number,
                              r[last].number));
        return;
    }
    for (int i = first; i <= last; i++)
        if (i == first || r[i].number != r[i - 1].number)
            append(pool, list,
                   tsr_pool_print(pool, "%s:%d", r[i].chain, r[i].number));
}

/* Rigid runs of a chain that would move against each other. */
static int count_units(const parts_graph *g, const int *part, int first)
{
    int n = 0;
    for (int i = first; i <= g->chain_last[first]; i++)
        n += part[i] >= 0 && (i == first || part[i - 1] < 0);
    return n;
}

static void write_fixed(const parts_graph *g, tsr_parts *parts)
{
    const int *part = parts->part;
    for (int i = 0; i < g->n; i++) {
        int last = i;
        if (part[i] < 0 || !parts->rigid[part[i]].is_fixed ||
            count_units(g, part, g->chain_first[i]) < 2)
            continue;
        while (last < g->chain_last[i] && part[last + 1] == part[i])
            last++;
        add_text(g, i, last, &parts->fixed, &parts->pool);
        i = last;
    }
}

/* ---- single strands ----
 *
 * Nucleotides whose bases pair with no other, and that nothing but nucleotides
 * touches. Bases that stack on their neighbours may do so in a strand that
 * moves, too. */

static const double bond_ang = 3.5;  /* between N and O of two bases */
static const double touch_ang = 4.5; /* of what is no nucleotide */
enum { LEAST_STRETCH = 2 };          /* the last pair of a helix frays alone */

typedef struct {
    const tsr_atoms *atoms;
    tsr_cell_list *cells;
    int *near; /* [n_atom] scratch */
    int *part; /* [n_atom] tsr_nucleic_part, of nucleotides */
} search;

static int is_nucleotide(const tsr_file_residue *r)
{
    return r->kind == TSR_MOLECULE_NUCLEOTIDE;
}

/* N and O of a base. */
static int is_polar(const search *s, int i)
{
    const int z = s->atoms->atom[i].z;
    return (z == 7 || z == 8) && s->part[i] == TSR_PART_BASE;
}

static int is_neighbour(const search *s, int r, int other)
{
    const tsr_file_residue *a = &s->atoms->residue[r];
    const tsr_file_residue *b = &s->atoms->residue[other];
    return strcmp(a->chain, b->chain) == 0 && abs(r - other) <= 1;
}

/* Does what is near atom i hold it? Ions and buffer do not. */
static int is_held_at(search *s, int i)
{
    const tsr_file_atom *a = &s->atoms->atom[i];
    const int n = tsr_cell_list_within(s->cells, a->xyz, touch_ang,
                                       s->atoms->n_atom, s->near);
    for (int k = 0; k < n; k++) {
        const tsr_file_atom *b = &s->atoms->atom[s->near[k]];
        const tsr_file_residue *r = &s->atoms->residue[b->residue];
        if (b->residue == a->residue || b->z == 1 ||
            r->kind == TSR_MOLECULE_ION || r->kind == TSR_MOLECULE_BUFFER)
            continue;
        if (!is_nucleotide(r) || (!is_neighbour(s, a->residue, b->residue) &&
                                  is_polar(s, i) && is_polar(s, s->near[k]) &&
                                  tsr_vec3_distance(a->xyz, b->xyz) < bond_ang))
            return 1;
    }
    return 0;
}

static int is_held(search *s, int r)
{
    const tsr_file_residue *residue = &s->atoms->residue[r];
    for (int k = 0; k < residue->n_atom; k++)
        if (s->atoms->atom[residue->first_atom + k].z != 1 &&
            is_held_at(s, residue->first_atom + k))
            return 1;
    return 0;
}

/* Nucleotides first..last: a range, if a run can move them. */
static tsr_status propose(const search *s, const tsr_structure *structure,
                          int first, int last, tsr_parts *parts, tsr_err *err)
{
    const tsr_file_residue *a = &s->atoms->residue[first];
    const tsr_file_residue *b = &s->atoms->residue[last];
    tsr_nucleic *nucleic = NULL;
    char text[64], *item[] = {text};
    const tsr_strings range = {.n = 1, .item = item};
    snprintf(text, sizeof text, "%s:%d-%d", a->chain, a->number, b->number);
    tsr_status status =
        tsr_nucleic_find(structure, s->atoms, &range, &nucleic, NULL);
    const int is_there = nucleic != NULL;
    free(nucleic);
    if (status == TSR_E_NOMEM)
        return tsr_no_memory(err);
    if (status != TSR_OK || !is_there || b->number < a->number)
        return TSR_OK;
    parts->n_strand++;
    append(&parts->pool, &parts->flexible, tsr_pool_text(&parts->pool, text));
    return tsr_pool_check(&parts->pool, err);
}

/* A strand that nothing holds anywhere would drift beside a protein. */
static int is_alone(const search *s, const char *held, int r)
{
    for (int k = 0; k < s->atoms->n_residue; k++)
        if (held[k] &&
            strcmp(s->atoms->residue[k].chain, s->atoms->residue[r].chain) == 0)
            return 0;
    return 1;
}

static tsr_status list(search *s, const tsr_structure *structure,
                       const char *held, tsr_parts *parts, tsr_err *err)
{
    for (int r = 0, last; r < s->atoms->n_residue; r = last + 1) {
        last = r;
        if (held[r] || !is_nucleotide(&s->atoms->residue[r]))
            continue;
        while (last + 1 < s->atoms->n_residue && !held[last + 1] &&
               is_nucleotide(&s->atoms->residue[last + 1]) &&
               is_neighbour(s, last, last + 1) &&
               tsr_nucleic_are_joined(s->atoms, last, last + 1))
            last++;
        if (last - r + 1 >= LEAST_STRETCH &&
            (structure->n_residue == 0 || !is_alone(s, held, r)))
            TSR_TRY(propose(s, structure, r, last, parts, err));
    }
    return TSR_OK;
}

/* Nucleotides of a range; one that cannot be read is told of later. */
static void hold(const tsr_atoms *atoms, const char *range,
                 const tsr_residue *residue, int *mark, char *held)
{
    memset(mark, 0, (size_t)atoms->n_residue * sizeof *mark);
    if (tsr_range_mark(range, atoms->n_residue, residue, mark, NULL) == TSR_OK)
        for (int r = 0; r < atoms->n_residue; r++)
            held[r] = (char)(held[r] || mark[r]);
}

static tsr_status find_strands(search *s, tsr_pool *pool,
                               const tsr_structure *structure,
                               const tsr_strings *fixed, tsr_parts *parts,
                               tsr_err *err)
{
    const tsr_atoms *atoms = s->atoms;
    tsr_residue *residue;
    int *mark;
    char *held;
    tsr_pool_array(pool, s->near, atoms->n_atom + 1);
    tsr_pool_array(pool, s->part, atoms->n_atom + 1);
    tsr_pool_array(pool, residue, atoms->n_residue + 1);
    tsr_pool_array(pool, mark, atoms->n_residue + 1);
    tsr_pool_array(pool, held, atoms->n_residue + 1);
    TSR_TRY(tsr_pool_check(pool, err));
    TSR_TRY(tsr_cell_list_of_atoms(pool, atoms, touch_ang, &s->cells, err));
    for (int r = 0; r < atoms->n_residue; r++) {
        const tsr_file_residue *from = &atoms->residue[r];
        memcpy(residue[r].chain, from->chain, sizeof residue[r].chain);
        residue[r].number = from->number;
        residue[r].chain_first =
            strcmp(residue[r].chain, residue[0].chain) == 0 ? 0 : r;
        if (is_nucleotide(from))
            tsr_nucleic_parts(atoms, r, s->part + from->first_atom);
    }
    for (int r = 0; r < atoms->n_residue; r++)
        held[r] = (char)(is_nucleotide(&atoms->residue[r]) && is_held(s, r));
    for (int k = 0; fixed != NULL && k < fixed->n; k++)
        hold(atoms, fixed->item[k], residue, mark, held);
    return list(s, structure, held, parts, err);
}

/* Appends to parts->flexible the stretches of two nucleotides or more, joined
 * by bonds, that are single-stranded, by the atoms of the structure's file: no
 * base pairs, and nothing else touches them. Not those that a run could not
 * move, nor what `fixed` (ranges; may be NULL) names, nor strands that nothing
 * holds beside a protein. */
static tsr_status add_strands(const tsr_structure *structure,
                              const tsr_strings *fixed, tsr_parts *parts,
                              tsr_err *err)
{
    tsr_atoms *atoms = NULL;
    if (structure->n_nucleotide == 0 ||
        tsr_atoms_read(structure->path, &atoms, NULL) != TSR_OK)
        return TSR_OK;
    tsr_pool pool = {0};
    search s = {.atoms = atoms};
    const tsr_status status =
        find_strands(&s, &pool, structure, fixed, parts, err);
    tsr_atoms_free(atoms);
    tsr_pool_clear(&pool);
    return status;
}

/* ---- all of it ---- */

/* Of the protein. */
static tsr_status fill(parts_graph *g, tsr_parts_wish wish, tsr_parts *p,
                       tsr_err *err)
{
    parts_pieces pieces = {0};
    parts_cut *cut;
    TSR_TRY(make_graph(g, err));
    tsr_pool_array(&g->pool, cut, g->n);
    TSR_TRY(tsr_pool_check(&g->pool, err));
    TSR_TRY(cut_chains(g, cut, err));
    TSR_TRY(make_pieces(g, cut, wish.no_loops, &pieces, err));
    mark_parts(g, &pieces, wish.rigid, p);
    list_ranges(g, p);
    for (int k = 0; k < p->n_range; k++)
        add_text(g, p->range[k].first, p->range[k].last, &p->flexible,
                 &p->pool);
    write_fixed(g, p);
    take_notes(g, cut, &pieces, p);
    p->evidence = g->pae != NULL ? TSR_EVIDENCE_PAE
                  : g->has_plddt ? TSR_EVIDENCE_PLDDT
                                 : TSR_EVIDENCE_CONTACTS;
    return tsr_pool_check(&p->pool, err);
}

tsr_status tsr_parts_find(const tsr_structure *s, const tsr_pae *pae,
                          tsr_parts_wish wish, tsr_parts **out, tsr_err *err)
{
    const int n = s->n_residue;
    tsr_parts *p = calloc(1, sizeof *p);
    *out = NULL;
    TSR_TRY(tsr_allocated(p, err));
    p->n_residue = n;
    p->evidence = TSR_EVIDENCE_PAIRS; /* strands alone have no parts */
    tsr_pool_array(&p->pool, p->kind, n + 1);
    tsr_pool_array(&p->pool, p->confidence, n + 1);
    tsr_pool_array(&p->pool, p->part, n + 1);
    tsr_pool_array(&p->pool, p->rigid, 2 * n + 1);
    tsr_pool_array(&p->pool, p->range, n + 1);
    parts_graph graph = {.structure = s,
                         .pae = pae,
                         .n = n,
                         .kind = p->kind,
                         .confidence = p->confidence};
    tsr_status status = tsr_pool_check(&p->pool, err);
    if (n > 0)
        TSR_THEN(status, fill(&graph, wish, p, err));
    if (!wish.no_strands)
        TSR_THEN(status, add_strands(s, wish.fixed, p, err));
    tsr_pool_clear(&graph.pool);
    if (status != TSR_OK)
        tsr_parts_free(p);
    else
        *out = p;
    return status;
}

tsr_status tsr_parts_with(const tsr_structure *s, const char *pae,
                          tsr_parts_wish wish, tsr_log *log, tsr_parts **out,
                          char **used_pae, tsr_err *err)
{
    tsr_err why;
    tsr_pool pool = {0};
    tsr_pae *errors = NULL;
    tsr_status status = TSR_OK;
    char *path = pae == NULL ? tsr_pae_beside(s->path) : strdup(pae);
    *out = NULL;
    if (path != NULL)
        status = tsr_pae_read(&pool, path, &errors, &why);
    TSR_THEN(status, tsr_parts_find(s, errors, wish, out, &why));
    if (status == TSR_E_DATA && path != NULL && pae == NULL) {
        tsr_warn(log, "not used: %s", why.message);
        free(path);
        path = NULL;
        status = tsr_parts_find(s, NULL, wish, out, &why);
    }
    tsr_pool_clear(&pool);
    if (status != TSR_OK)
        (void)tsr_fail(err, status, "%s", why.message);
    if (used_pae != NULL)
        *used_pae = status == TSR_OK ? path : NULL;
    if (used_pae == NULL || status != TSR_OK)
        free(path);
    return status;
}
