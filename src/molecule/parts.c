/* Finds the rigid parts of a structure: makes a graph of residues in contact,
 * cuts chains into pieces, finds the rigid residues of each piece, and writes
 * the ranges of a configuration and notes for the user. */
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
    MIN_DOMAIN = 25, /* ordered residues of a domain; a smaller piece may only
                        rest against its neighbour */
    MIN_SEPARATION =
        4, /* residues in sequence; closer residues are always in contact */
    MAX_NEIGHBOURS = 256,
    SMOOTH = 2 /* residues on either side over which pLDDT is averaged */
};
static const double full_contact = 7.0,
                    no_contact = 9.0;       /* Angstrom, between CB */
static const double min_contacts = 2.0;     /* contacts of one residue */
static const double disulfide_weight = 5.0; /* weight of a disulfide bond */
static const double longest_bond = 2.0;     /* C to N, Angstrom */

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
 * An edge joins two residues whose CB are close (GLY: the ideal position of
 * CB). Side chains are not used, because they are often incomplete and are the
 * least certain part of a prediction. The weight of an edge is 1 up to 7
 * Angstrom and 0 from 9 Angstrom. It is multiplied by the confidence of both
 * residues and, with predicted aligned errors, by the confidence of their
 * relative position. A disulfide bond is an edge of weight 5. */

typedef struct {
    int a, b; /* residues, a < b */
    double weight;
} parts_contact;

typedef struct {
    tsr_pool pool;
    const tsr_structure *structure;
    const tsr_pae *pae;            /* NULL: no predicted errors */
    int *row;                      /* [n] row of pae */
    int n;                         /* residues */
    int *chain_first, *chain_last; /* [n] first and last residue of the chain */
    char *kind;                    /* [n] secondary structure */
    double *confidence;            /* [n] 0 to 1 */
    int has_plddt;
    int n_contact;
    parts_contact
        *contact;     /* [n_contact] pairs four or more apart in a chain */
    char *is_bridged; /* [n] 1: part of a disulfide bond */
    int *ordered;     /* [n] 1: has confident secondary structure or contacts */
} parts_graph;

/* Confidence in the relative position of two residues, 0 to 1, from their
 * predicted aligned error: one half at 6 Angstrom. 1 without predicted
 * errors. */
static double pair_confidence(const parts_graph *graph, int a, int b)
{
    if (graph->pae == NULL || graph->row[a] < 0 || graph->row[b] < 0)
        return 1.0;
    double error = tsr_pae_mean(graph->pae, graph->row[a], graph->row[b]);
    return 1.0 / (1.0 + pow(error / 6.0, 4.0));
}

/* Returns 1 if a peptide bond joins residue i to the preceding residue. */
static int is_linked(const parts_graph *graph, int i)
{
    const tsr_structure *s = graph->structure;
    if (i <= graph->chain_first[i])
        return 0;
    const tsr_atom *c = tsr_residue_atom(s, &s->residue[i - 1], "C");
    const tsr_atom *n = tsr_residue_atom(s, &s->residue[i], "N");
    return tsr_vec3_distance(c->xyz, n->xyz) < longest_bond;
}

/* Number of ordered residues among first..last. */
static int count_ordered(const parts_graph *g, int first, int last)
{
    int n = 0;
    for (int i = first; i <= last; i++)
        n += g->ordered[i];
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

/* Finds the secondary structure, and cb [n]: the ideal position of CB. */
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

/* ---- confidence ---- */

/* Returns the factor that scales the B column to pLDDT, 0 to 100; 0: the column
 * is not pLDDT. If the file is not marked as a prediction, the sign of the
 * correlation with burial decides: pLDDT is high inside a structure, B factors
 * are low there. */
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

/* pLDDT below 50 indicates disorder, above 70 a folded residue (Jumper et al.
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

/* Without pLDDT: mean confidence in the positions relative to neighbours in the
 * chain. */
static void set_confidence_by_errors(parts_graph *g)
{
    for (int i = 0; i < g->n; i++) {
        double sum = 0.0;
        int n = 0;
        for (int j = i - 6; j <= i + 6; j++)
            if (abs(j - i) > 2 && j >= g->chain_first[i] &&
                j <= g->chain_last[i]) {
                sum += pair_confidence(g, i, j);
                n++;
            }
        g->confidence[i] = n > 0 ? sum / n : 1.0;
    }
}

static void read_confidence(parts_graph *g, const tsr_cell_list *cells,
                            const double (*cb)[3], double *depth, double *b)
{
    const double *plddt = g->pae != NULL ? g->pae->plddt : NULL;
    int neighbour[MAX_NEIGHBOURS];
    for (int i = 0; i < g->n; i++) {
        g->confidence[i] = 1.0;
        depth[i] = tsr_cell_list_within(cells, cb[i], no_contact,
                                        MAX_NEIGHBOURS, neighbour);
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
    if ((n & (n - 1)) == 0) { /* full at 1, 2, 4, 8, ... */
        parts_contact *bigger = tsr_pool_resize(
            &g->pool, g->contact, 2 * (size_t)n + 1, sizeof *bigger);
        if (bigger == NULL)
            return;
        g->contact = bigger;
    }
    g->contact[g->n_contact++] = contact;
}

/* Returns 1 if two SG are within bonding distance. */
static int is_disulfide(const tsr_structure *s, int i, int j)
{
    const tsr_atom *a = tsr_residue_atom(s, &s->residue[i], "SG");
    const tsr_atom *b =
        a == NULL ? NULL : tsr_residue_atom(s, &s->residue[j], "SG");
    return b != NULL && tsr_vec3_distance(a->xyz, b->xyz) < 2.5;
}

static double contact_weight(parts_graph *g, int i, int j, double distance)
{
    double weight =
        fmin(1.0, (no_contact - distance) / (no_contact - full_contact));
    double sure = g->confidence[i] * g->confidence[j];
    if (is_disulfide(g->structure, i, j)) {
        g->is_bridged[i] = g->is_bridged[j] = sure >= 0.25;
        weight = disulfide_weight;
    }
    return weight * sure * pair_confidence(g, i, j);
}

static void find_contacts(parts_graph *g, const tsr_cell_list *cells,
                          const double (*cb)[3])
{
    int neighbour[MAX_NEIGHBOURS];
    for (int i = 0; i < g->n && !g->pool.failed; i++) {
        int n = tsr_cell_list_within(cells, cb[i], no_contact, MAX_NEIGHBOURS,
                                     neighbour);
        for (int k = 0; k < n && k < MAX_NEIGHBOURS && !g->pool.failed; k++) {
            int j = neighbour[k];
            int is_near = j - i < MIN_SEPARATION &&
                          g->chain_first[i] == g->chain_first[j];
            if (j <= i || is_near)
                continue;
            double weight =
                contact_weight(g, i, j, tsr_vec3_distance(cb[i], cb[j]));
            if (weight > 0.01)
                add_contact(g, (parts_contact){i, j, weight});
        }
    }
}

/* sum [n]: scratch, zeroed. */
static void find_ordered(parts_graph *g, double *sum)
{
    for (int k = 0; k < g->n_contact; k++) {
        sum[g->contact[k].a] += g->contact[k].weight;
        sum[g->contact[k].b] += g->contact[k].weight;
    }
    for (int i = 0; i < g->n; i++)
        g->ordered[i] = g->confidence[i] >= 0.5 &&
                        (g->kind[i] != TSR_COIL || sum[i] >= min_contacts);
}

/* Makes the graph. The caller sets structure, pae, n, and arrays kind and
 * confidence. */
static tsr_status make_graph(parts_graph *g, tsr_err *err)
{
    double(*cb)[3], *depth, *b, *sum;
    tsr_cell_list *cells;
    tsr_pool_array(&g->pool, g->row, g->n);
    tsr_pool_array(&g->pool, g->chain_first, g->n);
    tsr_pool_array(&g->pool, g->chain_last, g->n);
    tsr_pool_array(&g->pool, g->is_bridged, g->n);
    tsr_pool_array(&g->pool, g->ordered, g->n);
    tsr_pool_array(&g->pool, cb, g->n);
    tsr_pool_array(&g->pool, depth, g->n);
    tsr_pool_array(&g->pool, b, g->n);
    tsr_pool_array(&g->pool, sum, g->n);
    TSR_TRY(tsr_pool_check(&g->pool, err));
    set_chains(g);
    if (g->pae != NULL)
        TSR_TRY(tsr_pae_rows(g->pae, g->structure, g->row, err));
    TSR_TRY(read_backbones(g, cb, err));
    TSR_TRY(tsr_cell_list_new(&g->pool, g->n, (const double(*)[3])cb,
                              no_contact, &cells, err));
    read_confidence(g, cells, (const double(*)[3])cb, depth, b);
    find_contacts(g, cells, (const double(*)[3])cb);
    find_ordered(g, sum);
    return tsr_pool_check(&g->pool, err);
}

/* ---- cutting chains ----
 *
 * A chain is cut where one strand joins two bodies that only touch: contacts of
 * a weight below 8 m^(1/3) cross, where m is the number of ordered residues of
 * the smaller side, because the contact area of convex bodies that touch grows
 * like their radius (Derjaguin 1934). The cut is also a neck, unlike one of a
 * solenoid: at least 2.5 times as many contacts cross the widest section on
 * either side. docs/domains.md derives both limits from published domains. With
 * predicted aligned errors, the mean confidence in relative positions across
 * the cut must also be below 0.3. The best cut is made, and both pieces are cut
 * again. Cost per piece: O(contacts + residues), because the weight of an edge
 * is added at its first residue and subtracted at its second; with predicted
 * errors O(residues^2). */

typedef enum {
    CUT_NONE,
    CUT_LINKER, /* the pieces move relative to each other */
    CUT_HELIX   /* joined by a single continuous helix, which is kept rigid */
} parts_cut;

enum {
    MIN_PART = 12, /* residues of a rigid part, ordered ones beside a cut */
    TURN = 4,      /* residues of a turn of a helix */
    MIN_RANGE =
        6 /* residues in sequence; closer contacts belong to the linker */
};
static const double touch_limit = 8.0;    /* contact weight / residues^(1/3) */
static const double neck_limit = 0.4;     /* relative to the widest section */
static const double relation_limit = 0.3; /* mean pair confidence */

/* Quantities across every cut between i and i + 1 of first..last. */
typedef struct {
    double *contact;  /* [last - first] contact weight */
    double *widest;   /* [last - first] the largest contact weight of a cut to
                         the left or to the right, whichever is smaller */
    double *relation; /* [last - first] pair confidence, summed over pairs of
                         ordered residues */
    int *ordered;     /* [last - first] ordered residues in first..i */
    int n_ordered;
} crossing;

/* A pair is added at its first residue and subtracted at its second. */
static void sum_relations(const parts_graph *g, int first, int last,
                          double *relation)
{
    for (int i = first; i < last; i++)
        for (int j = i + MIN_RANGE; g->ordered[i] && j <= last; j++)
            if (g->ordered[j]) {
                double r = pair_confidence(g, i, j);
                relation[i - first] += r;
                if (j < last)
                    relation[j - first] -= r;
            }
}

/* Computes the quantities across all cuts of a piece. The arrays of c are long
 * enough for a whole structure. */
static void find_crossing(const parts_graph *g, int first, int last,
                          crossing *c)
{
    size_t n = (size_t)(last - first) + 1;
    memset(c->contact, 0, n * sizeof *c->contact);
    memset(c->relation, 0, n * sizeof *c->relation);
    c->n_ordered = 0;
    for (int k = 0; k < g->n_contact; k++) {
        const parts_contact *edge = &g->contact[k];
        if (edge->a < first || edge->b > last || edge->b - edge->a < MIN_RANGE)
            continue;
        c->contact[edge->a - first] += edge->weight;
        c->contact[edge->b - first] -= edge->weight;
    }
    if (g->pae != NULL)
        sum_relations(g, first, last, c->relation);
    double left = 0.0, right = 0.0;
    for (size_t k = 0; k < n; k++) {
        c->n_ordered += g->ordered[first + (int)k];
        c->ordered[k] = c->n_ordered;
        c->contact[k] += k > 0 ? c->contact[k - 1] : 0.0;
        c->relation[k] += k > 0 ? c->relation[k - 1] : 0.0;
        c->widest[k] = left;
        left = fmax(left, c->contact[k]);
    }
    for (size_t k = n; k-- > 0;) {
        c->widest[k] = fmin(c->widest[k], right);
        right = fmax(right, c->contact[k]);
    }
}

/* Contact weight across cut k relative to the limit; below 1 a cut is
 * possible. */
static double relative_weight(const parts_graph *g, const crossing *c, int k)
{
    int left = c->ordered[k], right = c->n_ordered - left;
    int least = left < right ? left : right;
    if (least < MIN_PART || c->contact[k] > neck_limit * c->widest[k])
        return (double)INFINITY;
    double weight_ratio = c->contact[k] / (touch_limit * cbrt(least));
    double relation = c->relation[k] / ((double)left * right);
    return g->pae == NULL ? weight_ratio
                          : fmax(weight_ratio, relation / relation_limit);
}

/* Returns 1 if a confident helix continues from i to i + 1. Its first and last
 * turn do not count, because they are often frayed. */
static int is_inside_helix(const parts_graph *g, int i)
{
    for (int k = i - TURN + 1; k <= i + TURN; k++)
        if (k < g->chain_first[i] || k > g->chain_last[i] ||
            g->kind[k] != TSR_HELIX)
            return 0;
    return g->confidence[i] >= 0.5 && g->confidence[i + 1] >= 0.5;
}

/* Finds the best cut outside helices, or inside a helix if that cut is much
 * better, between residues *at and *at + 1. In a prediction a helix that
 * touches nothing is no evidence that the sides keep their relative position.
 */
static parts_cut best_cut(const parts_graph *g, const crossing *c, int first,
                          int last, int *at)
{
    double coil = (double)INFINITY, helix = (double)INFINITY;
    int coil_at = -1, helix_at = -1;
    for (int i = first; i < last; i++) {
        double weight_ratio = relative_weight(g, c, i - first);
        int is_helix = g->pae == NULL && !g->has_plddt && is_inside_helix(g, i);
        if (is_helix && weight_ratio < helix)
            helix = weight_ratio, helix_at = i;
        if (!is_helix && weight_ratio < coil)
            coil = weight_ratio, coil_at = i;
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

/* cut [n] out: kind of the cut between each residue and the next. */
static tsr_status cut_chains(parts_graph *g, parts_cut *cut, tsr_err *err)
{
    crossing c;
    tsr_pool_array(&g->pool, c.contact, g->n);
    tsr_pool_array(&g->pool, c.widest, g->n);
    tsr_pool_array(&g->pool, c.relation, g->n);
    tsr_pool_array(&g->pool, c.ordered, g->n);
    TSR_TRY(tsr_pool_check(&g->pool, err));
    for (int i = 0; i < g->n; i++)
        cut[i] = CUT_NONE;
    for (int i = 0; i < g->n; i = g->chain_last[i] + 1)
        cut_piece(g, &c, i, g->chain_last[i], cut);
    return TSR_OK;
}

/* ---- rigid residues of each piece ----
 *
 * A cut is a position between two residues, a linker is a range of residues
 * around it. Linkers and tails are found by searching from a cut, or from an
 * end of the chain, for the first ordered residues. */

/* The residues between two cuts, or between a cut and an end of the chain. */
typedef struct {
    int first, last;
    int low, high;   /* rigid residues; low > high: none */
    int is_fixed;    /* 1: keeps its position relative to other fixed pieces */
    int n_loop;      /* residues in free loops */
    int moves_loops; /* 1: these loops may move */
    double interchain; /* contacts of its rigid residues with other chains */
} parts_piece;

typedef struct {
    int n;
    parts_piece *piece; /* [n] in order */
    double *contacts;   /* [residues] contacts within the piece or with other
                           chains */
    double *far;        /* [residues] the same without neighbours in sequence */
    char *is_loop;      /* [residues] 1: in a free loop inside a piece */
} parts_pieces;

enum {
    WINDOW = 5, /* number of residues in a window */
    MIN_IN_WINDOW =
        4, /* anchored residues of the window where a rigid part begins */
    MIN_BOUND = 4,  /* ordered residues of a part bound to other chains */
    MIN_TAIL = 3,   /* residues of a tail */
    MIN_LINKER = 5, /* residues of a linker, so that it is flexible enough */
    MIN_TURN = 3,   /* residues of a linker that would shorten a helix or strand
                       if it were longer */
    MIN_LOOP = 15,  /* residues of a loop without contacts */
    MIN_UNSURE = 10 /* residues of a loop with low confidence */
};
static const double min_contacts_at_cut =
    4.0; /* contacts of one residue of coil beside a cut */
static const double min_mean = 1.0; /* mean contacts in a rigid part */
static const double max_loop_contacts =
    0.5; /* mean contacts of a free loop's residues */
static const double min_interface =
    6.0; /* contact weight of an interface between chains */

static int is_structure(const parts_graph *g, int i)
{
    return g->kind[i] != TSR_COIL && g->confidence[i] >= 0.5;
}

static int piece_of(const parts_pieces *p, int residue)
{
    int k = 0;
    while (p->piece[k].last < residue)
        k++;
    return k;
}

/* Contacts of the residues of a piece among first..last. */
static double sum_far(const parts_pieces *p, const parts_piece *piece,
                      int first, int last)
{
    double sum = 0.0;
    for (int i = first; i <= last; i++)
        sum += i >= piece->first && i <= piece->last ? p->far[i] : 0.0;
    return sum;
}

/* Has residue i enough contacts, or is it in secondary structure that has? A
 * helix without contacts to anything else is not anchored. */
static int is_anchored(const parts_graph *g, const parts_pieces *p, int i)
{
    const parts_piece *piece = &p->piece[piece_of(p, i)];
    return g->confidence[i] >= 0.5 &&
           (p->contacts[i] >= min_contacts ||
            (is_structure(g, i) &&
             sum_far(p, piece, i - TURN, i + TURN) >= min_contacts));
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

static void sum_contacts(const parts_graph *g, parts_pieces *p)
{
    for (int k = 0; k < g->n_contact; k++) {
        const parts_contact *c = &g->contact[k];
        if (!is_other_chain(g, c) && piece_of(p, c->a) != piece_of(p, c->b))
            continue;
        p->contacts[c->a] += c->weight;
        p->contacts[c->b] += c->weight;
        if (is_other_chain(g, c) || c->b - c->a >= MIN_RANGE) {
            p->far[c->a] += c->weight;
            p->far[c->b] += c->weight;
        }
    }
}

/* From `from` in the direction of step: the first anchored residue in an
 * anchored window, or the first residue of a disulfide bond. */
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
        if ((is_anchored(g, p, i) && n >= MIN_IN_WINDOW) || g->is_bridged[i])
            break;
    }
    return i;
}

/* Returns 1 if low..high of a piece can be a rigid part: bound to another
 * chain, or with enough contacts. Coils have a few by chance; a helix that
 * touches nothing bends and melts, whatever its pLDDT. */
static int is_part(const parts_graph *g, const parts_pieces *p,
                   const parts_piece *piece)
{
    const int n_ordered = count_ordered(g, piece->low, piece->high);
    return piece->interchain >= min_interface
               ? n_ordered >= MIN_BOUND
               : n_ordered >= MIN_PART &&
                     sum_far(p, piece, piece->low, piece->high) >=
                         min_mean * n_ordered;
}

/* Contact weight of low..high of a piece with other chains. */
static double interchain_contacts(const parts_graph *g,
                                  const parts_piece *piece)
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

/* Coil beside a cut often folds back on itself, which would hide a linker.
 * Discounts the contacts within that coil. */
static void discount_coil(const parts_graph *g, parts_pieces *p, int from,
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
            p->contacts[c->a] -= c->weight;
            p->contacts[c->b] -= c->weight;
        }
    }
    for (int i = low; i <= high; i++)
        p->contacts[i] *= min_contacts / min_contacts_at_cut;
}

static void discount_cuts(const parts_graph *g, parts_pieces *p)
{
    for (int k = 0; k + 1 < p->n; k++) {
        int last = p->piece[k].last;
        if (last == g->chain_last[last])
            continue;
        discount_coil(g, p, last, -1);
        discount_coil(g, p, last + 1, 1);
    }
}

static void set_rigid_ranges(const parts_graph *g, parts_pieces *p)
{
    for (int k = 0; k < p->n; k++) {
        parts_piece *piece = &p->piece[k];
        piece->low = find_end(g, p, piece->first, piece->last, 1);
        piece->high = piece->low > piece->last
                          ? piece->last
                          : find_end(g, p, piece->last, piece->low, -1);
        piece->interchain = interchain_contacts(g, piece);
    }
}

static void drop_small(const parts_graph *g, parts_pieces *p)
{
    for (int k = 0; k < p->n; k++) {
        parts_piece *piece = &p->piece[k];
        if (!is_part(g, p, piece))
            piece->low = piece->last + 1, piece->high = piece->last;
    }
}

static int is_rigid(const parts_piece *piece)
{
    return piece->low <= piece->high;
}

/* Returns 1 if pieces k and k + 1 are in one chain and both rigid. */
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

/* Extends a linker that is too short, first into coil, then into residues with
 * fewer contacts. Residues missing from the file cannot be added. */
static void widen_linkers(const parts_graph *g, parts_pieces *p)
{
    for (int k = 0; k + 1 < p->n; k++) {
        parts_piece *a = &p->piece[k], *b = &p->piece[k + 1];
        while (are_joined(g, p, k) && b->low - a->high - 1 < MIN_LINKER &&
               !is_broken(g, a->high, b->low)) {
            int has_a = !is_structure(g, a->high) && a->high > a->low;
            int has_b = !is_structure(g, b->low) && b->high > b->low;
            if (!has_a && !has_b && b->low - a->high - 1 >= MIN_TURN)
                break;
            int take_a = has_a != has_b
                             ? has_a
                             : p->contacts[a->high] <= p->contacts[b->low];
            if (take_a)
                a->high--;
            else
                b->low++;
        }
    }
}

/* Adds tails of one or two residues to their rigid part. */
static void absorb_short_tails(const parts_graph *g, parts_pieces *p)
{
    for (int k = 0; k < p->n; k++) {
        parts_piece *piece = &p->piece[k];
        int begins = g->chain_first[piece->first] == piece->first;
        int ends = g->chain_last[piece->last] == piece->last;
        if (!is_rigid(piece))
            continue;
        if (begins && piece->low - piece->first < MIN_TAIL)
            piece->low = piece->first;
        if (ends && piece->last - piece->high < MIN_TAIL)
            piece->high = piece->last;
    }
}

/* ---- free loops inside a piece ---- */

static int is_free_loop(const parts_graph *g, const parts_pieces *p, int first,
                        int last)
{
    double sum = 0.0;
    int n = last - first + 1, is_unsure = 1;
    for (int i = first; i <= last; i++) {
        sum += p->contacts[i];
        is_unsure &= g->confidence[i] < 0.5;
    }
    return sum < max_loop_contacts * n &&
           n >= (is_unsure ? (int)MIN_UNSURE : (int)MIN_LOOP);
}

/* Makes first..last of a piece a loop. A few residues between two loops join
 * them: chance contacts do not hold a stretch so short. */
static void add_loop(const parts_graph *g, parts_pieces *p, parts_piece *piece,
                     int first, int last)
{
    int from = first > piece->low ? first - 1 : first;
    while (from > piece->low && first - from < WINDOW && !p->is_loop[from] &&
           !g->is_bridged[from])
        from--;
    first = p->is_loop[from] ? from + 1 : first;
    for (int i = first; i <= last; i++)
        p->is_loop[i] = 1;
    piece->n_loop += last - first + 1;
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
            if (is_free_loop(g, p, i, last))
                add_loop(g, p, piece, i, last);
            i = last;
        }
    }
}

/* A piece is fixed if its interface with another chain is large enough. In a
 * single chain the piece with most loop residues is fixed, so that its loops
 * can move. */
static void choose_fixed(const parts_graph *g, int no_loops, parts_pieces *p)
{
    int is_alone = g->chain_last[0] == g->n - 1, best = -1;
    for (int k = 0; k < p->n; k++) {
        parts_piece *piece = &p->piece[k];
        piece->is_fixed = is_rigid(piece) && piece->interchain >= min_interface;
        if (is_alone && !no_loops && piece->n_loop > 0 &&
            (best < 0 || piece->n_loop > p->piece[best].n_loop))
            best = k;
    }
    if (best >= 0)
        p->piece[best].is_fixed = 1;
    for (int k = 0; k < p->n; k++)
        p->piece[k].moves_loops = p->piece[k].is_fixed && !no_loops;
}

/* Residues between two fixed pieces are a loop. If it is short, the two pieces
 * are joined. */
static void join_fixed(const parts_graph *g, int no_loops, parts_pieces *p)
{
    for (int k = 0; k + 1 < p->n;) {
        parts_piece *a = &p->piece[k], *b = &p->piece[k + 1];
        if (!are_joined(g, p, k) || !a->is_fixed || !b->is_fixed ||
            (b->low - a->high - 1 >= MIN_UNSURE && !no_loops)) {
            k++;
            continue;
        }
        a->last = b->last;
        a->high = b->high;
        a->interchain += b->interchain;
        a->n_loop += b->n_loop;
        for (int j = k + 1; j + 1 < p->n; j++)
            p->piece[j] = p->piece[j + 1];
        p->n--;
    }
}

/* no_loops: no loop may move. */
static tsr_status make_pieces(parts_graph *g, const parts_cut *cut,
                              int no_loops, parts_pieces *p, tsr_err *err)
{
    tsr_pool_array(&g->pool, p->piece, g->n);
    tsr_pool_array(&g->pool, p->contacts, g->n);
    tsr_pool_array(&g->pool, p->far, g->n);
    tsr_pool_array(&g->pool, p->is_loop, g->n);
    TSR_TRY(tsr_pool_check(&g->pool, err));
    list_pieces(g, cut, p);
    sum_contacts(g, p);
    discount_cuts(g, p);
    set_rigid_ranges(g, p);
    drop_small(g, p);
    widen_linkers(g, p);
    drop_small(g, p);
    absorb_short_tails(g, p);
    find_loops(g, p);
    choose_fixed(g, no_loops, p);
    join_fixed(g, no_loops, p);
    return TSR_OK;
}

/* ---- notes for the user ----
 *
 * Each note is a sentence on something the file lacks, or on a decision that
 * the user may want to change. It names residues as in a configuration, and
 * says what to do. */

enum {
    MAX_NOTES = 40,
    MAX_SHOWN = 30, /* letters shown of a missing range */
    MIN_COPY = 25,  /* length of a repeat that is a second copy */
    MIN_TAG = 5     /* consecutive histidines */
};

/* Adds a note. text: in parts->pool; NULL: out of memory, recorded by the
 * pool. */
static void add_note(tsr_parts *parts, char *text)
{
    if (parts->n_note < MAX_NOTES && text != NULL)
        parts->note[parts->n_note++] = text;
}

#define note(parts, ...) \
    add_note((parts), tsr_pool_format(&(parts)->pool, __VA_ARGS__))

static const char *name_of(const parts_graph *g, int i, char text[32])
{
    tsr_residue_label(&g->structure->residue[i], text, 32);
    return text;
}

/* ---- residues missing from the file ---- */

static char letter(const tsr_structure *s, int i)
{
    int amino = tsr_amino_by_three(s->residue[i].name);
    return amino < 0 ? 'X' : tsr_amino_table[amino].one;
}

/* Position of residues first..last in the declared sequence, from `from` on;
 * -1: not found. X in the sequence matches any residue. */
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
        if (run >= MIN_TAG)
            return 1;
    }
    return 0;
}

/* Notes n missing residues between `before` and `after`; -1: beyond an end of
 * the chain. */
static void note_missing_run(const parts_graph *g, tsr_parts *parts, int before,
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
         n > MAX_SHOWN ? MAX_SHOWN : n, letters, n > MAX_SHOWN ? "..." : "",
         has_tag(letters, n) ? ", including a histidine tag" : "");
}

/* Aligns the unbroken runs of a chain with the declared sequence, and notes the
 * residues without coordinates. */
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
            return; /* different numbering or mutations: no conclusion */
        if (at > from)
            note_missing_run(g, parts, before, i, letters + from, at - from);
        from = at + last - i + 1;
        before = last;
        i = last + 1;
    }
    int rest = (int)strlen(letters) - from;
    if (rest > 0)
        note_missing_run(g, parts, before, -1, letters + from, rest);
}

static const char *declared_of(const tsr_structure *s, const char *chain)
{
    for (int k = 0; k < s->n_declared; k++)
        if (strcmp(s->declared[k].chain, chain) == 0)
            return s->declared[k].letters;
    return NULL;
}

/* Returns 1 if an earlier chain has the same first and last number. */
static int is_copy(const parts_graph *g, int first)
{
    const tsr_residue_record *r = g->structure->residue;
    for (int i = 0; i < first; i = g->chain_last[i] + 1)
        if (r[i].number == r[first].number &&
            r[g->chain_last[i]].number == r[g->chain_last[first]].number)
            return 1;
    return 0;
}

/* Without a declared sequence: notes residues missing at breaks by their
 * numbers, and a chain that does not begin at 1. */
static void compare_numbers(const parts_graph *g, int first, tsr_parts *parts)
{
    const tsr_residue_record *r = g->structure->residue;
    char one[32], other[32];
    for (int i = first + 1; i <= g->chain_last[first]; i++) {
        int n = r[i].number - r[i - 1].number - 1;
        if (n > 0 && !is_linked(g, i))
            note(parts,
                 "%d residue%s between %s and %s missing in the model, not in "
                 "the sample: add to the model (MODELLER, AlphaFold) what is "
                 "missing, and make it flexible",
                 n, n == 1 ? "" : "s", name_of(g, i - 1, one),
                 name_of(g, i, other));
    }
    if (r[first].number > 1 && !is_copy(g, first))
        note(parts,
             "chain %s begins at residue %d and the file does not give the "
             "sequence of the sample: missing tags and tails scatter as well",
             r[first].chain, r[first].number);
}

static void note_missing(const parts_graph *g, tsr_parts *parts)
{
    if (g->structure->n_incomplete > 0)
        note(parts, "left out of the chains: %s", g->structure->incomplete);
    for (int i = 0; i < g->n; i = g->chain_last[i] + 1) {
        const char *letters =
            declared_of(g->structure, g->structure->residue[i].chain);
        if (letters != NULL)
            compare_declared(g, i, letters, parts);
        else
            compare_numbers(g, i, parts);
    }
}

/* ---- decisions that could be different ---- */

/* Notes helices that alone join two domains, each once. A helix at the end of a
 * chain, with no domain beyond, is not noted. */
static void note_helices(const parts_graph *g, const parts_cut *cut,
                         tsr_parts *parts)
{
    const tsr_residue_record *r = g->structure->residue;
    char one[32];
    for (int i = 2, noted = -1; i + 2 < g->n; i++) {
        int is_domain = count_ordered(g, g->chain_first[i], i) >= MIN_DOMAIN &&
                        count_ordered(g, i + 1, g->chain_last[i]) >= MIN_DOMAIN;
        noted = g->kind[i] == TSR_HELIX ? noted : -1;
        if (cut[i] != CUT_HELIX || !is_domain || noted >= 0)
            continue;
        noted = i;
        note(parts,
             "only the helix around %s joins the parts before and after it; "
             "the helix is kept straight. If it bends, add \"%s:%d-%d\" to "
             "structure.flexible",
             name_of(g, i, one), r[i].chain, r[i - 1].number, r[i + 2].number);
    }
}

/* Notes two parts of a chain whose linker is missing from the file, in whole or
 * in part. */
static void note_breaks(const parts_graph *g, const parts_pieces *p,
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

static void note_loops(const parts_graph *g, const parts_pieces *p,
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

/* Mean confidence in the position of a chain relative to other chains, 0 to
 * 1. */
static double mean_relation(const parts_graph *g, int chain)
{
    double sum = 0.0, n = 0.0;
    for (int i = chain; i <= g->chain_last[chain]; i++)
        for (int j = 0; g->ordered[i] && j < g->n; j++)
            if (g->ordered[j] && g->chain_first[j] != chain) {
                sum += pair_confidence(g, i, j);
                n += 1.0;
            }
    return n > 0.0 ? sum / n : 1.0;
}

/* Notes rows matched by number: the model may have been cut out of the
 * prediction, or the errors may belong to another protein. */
static void note_rows(const parts_graph *g, tsr_parts *parts)
{
    if (g->pae != NULL && g->pae->n != g->n && g->pae->chain == NULL)
        note(parts,
             "the predicted aligned errors have %d residues and the model has "
             "%d: they were matched by residue number, which is right if the "
             "model was cut out of the prediction",
             g->pae->n, g->n);
}

static void note_chains(const parts_graph *g, const parts_pieces *p,
                        tsr_parts *parts)
{
    const int is_alone = g->chain_last[0] == g->n - 1;
    for (int i = 0; i < g->n && !is_alone; i = g->chain_last[i] + 1) {
        double touches = 0.0;
        const char *chain = g->structure->residue[i].chain;
        for (int k = 0; k < p->n; k++)
            if (p->piece[k].first >= i && p->piece[k].last <= g->chain_last[i])
                touches += p->piece[k].interchain;
        if (g->pae != NULL && mean_relation(g, i) < 0.2 && touches < 6.0)
            note(parts,
                 "the position of chain %s relative to the others is uncertain "
                 "in the prediction; it is kept fixed. structure.mobile: [%s] "
                 "lets it move as a rigid body",
                 chain, chain);
        else if (touches == 0.0)
            note(parts,
                 "chain %s touches no other chain: does it belong to the "
                 "measured molecule? tessera init --dock %s finds its place",
                 chain, chain);
    }
}

/* Finds a second copy of the beginning of residues first..last in the same
 * chain, which indicates several molecules under one chain id. *copy: its first
 * residue. */
static int find_copy(const parts_graph *g, int first, int last, int *copy)
{
    const tsr_structure *s = g->structure;
    for (int at = last + 1; at + MIN_COPY - 1 <= g->chain_last[first]; at++) {
        int k = 0;
        while (k < MIN_COPY && first + k <= last &&
               letter(s, first + k) == letter(s, at + k))
            k++;
        *copy = at;
        if (k == MIN_COPY)
            return 1;
    }
    return 0;
}

static void note_copies(const parts_graph *g, tsr_parts *parts)
{
    char one[32], other[32];
    for (int i = 0; i < g->n; i = g->chain_last[i] + 1)
        for (int from = i; from <= g->chain_last[i];) {
            int last = from, copy = 0;
            while (last < g->chain_last[i] && is_linked(g, last + 1))
                last++;
            if (last - from + 1 >= MIN_COPY && last < g->chain_last[i] &&
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

static void make_notes(const parts_graph *g, const parts_cut *cut,
                       const parts_pieces *pieces, int is_docked,
                       tsr_parts *parts)
{
    tsr_pool_array(&parts->pool, parts->note, MAX_NOTES);
    if (parts->note == NULL)
        return;
    note_copies(g, parts);
    parts->n_warning = parts->n_note;
    note_rows(g, parts);
    note_breaks(g, pieces, parts);
    note_missing(g, parts);
    note_helices(g, cut, parts);
    note_loops(g, pieces, parts);
    if (!is_docked)
        note_chains(g, pieces, parts);
}

/* ---- which residues may move ---- */

/* Returns 1 for a D residue, by its CB: the prior has no torsions for it. */
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

/* Ranges name residues by number. Residues that share a number (insertion
 * codes) are made all rigid or all flexible. */
static void unify_numbers(const parts_graph *g, int *part)
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

/* Makes a held part of each run of residues that is in no part but must not
 * turn. */
static void add_rigid(const parts_graph *g, const int *chosen, tsr_parts *parts)
{
    int before = 0;
    for (int i = 0; i < g->n; i++) {
        int is_single = g->chain_first[i] == g->chain_last[i];
        int is_kept =
            parts->part[i] < 0 && (is_single || (chosen != NULL && chosen[i]) ||
                                   is_d_residue(g->structure, i));
        if (is_kept && before && i > g->chain_first[i]) {
            parts->part[i] = parts->part[i - 1];
            parts->rigid[parts->part[i]].last = i;
        } else if (is_kept) {
            parts->part[i] = parts->n_part;
            parts->rigid[parts->n_part++] = (tsr_rigid_part){i, i, 0, 1};
        }
        before = is_kept;
    }
}

static void mark_parts(const parts_graph *g, const parts_pieces *p,
                       const int *chosen, tsr_parts *parts)
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
            (tsr_rigid_part){piece->low, piece->high, piece->is_fixed, 0};
    }
    add_rigid(g, chosen, parts);
    unify_numbers(g, parts->part);
}

/* ---- ranges of a configuration ---- */

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

/* Returns 1 if the text "A:FIRST-LAST" names residues first..last only. */
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

/* Appends a text to a list. text: in the pool; NULL: out of memory. */
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
               tsr_pool_format(pool, "%s:%d-%d", r[first].chain,
                               r[first].number, r[last].number));
        return;
    }
    for (int i = first; i <= last; i++)
        if (i == first || r[i].number != r[i - 1].number)
            append(pool, list,
                   tsr_pool_format(pool, "%s:%d", r[i].chain, r[i].number));
}

/* Number of separate rigid runs in a chain. */
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
 * Nucleotides whose bases do not pair, and that are in contact with nothing but
 * nucleotides. Stacking of a base on its neighbours is allowed, since it also
 * occurs in flexible strands. */

static const double bond_ang =
    3.5; /* Angstrom, between N and O of paired bases */
static const double touch_ang =
    4.5; /* Angstrom, to atoms that are not of nucleotides */
enum {
    MIN_STRAND = 2
}; /* a single unpaired nucleotide may be a frayed end of a helix */

typedef struct {
    const tsr_atoms *atoms;
    tsr_cell_list *cells;
    int *neighbour; /* [n_atom] scratch */
    int *part;      /* [n_atom] tsr_nucleic_part; only for nucleotides */
} search;

static int is_nucleotide(const tsr_file_residue *r)
{
    return r->kind == TSR_MOLECULE_NUCLEOTIDE;
}

/* Returns 1 for N and O of a base. */
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

/* Returns 1 if atom i pairs, or is in contact with a residue other than
 * nucleotides, ions and buffer. */
static int is_atom_bound(search *s, int i)
{
    const tsr_file_atom *a = &s->atoms->atom[i];
    const int n = tsr_cell_list_within(s->cells, a->xyz, touch_ang,
                                       s->atoms->n_atom, s->neighbour);
    for (int k = 0; k < n; k++) {
        const tsr_file_atom *b = &s->atoms->atom[s->neighbour[k]];
        const tsr_file_residue *r = &s->atoms->residue[b->residue];
        if (b->residue == a->residue || b->z == 1 ||
            r->kind == TSR_MOLECULE_ION || r->kind == TSR_MOLECULE_BUFFER)
            continue;
        if (!is_nucleotide(r) ||
            (!is_neighbour(s, a->residue, b->residue) && is_polar(s, i) &&
             is_polar(s, s->neighbour[k]) &&
             tsr_vec3_distance(a->xyz, b->xyz) < bond_ang))
            return 1;
    }
    return 0;
}

static int is_bound(search *s, int r)
{
    const tsr_file_residue *residue = &s->atoms->residue[r];
    for (int k = 0; k < residue->n_atom; k++)
        if (s->atoms->atom[residue->first_atom + k].z != 1 &&
            is_atom_bound(s, residue->first_atom + k))
            return 1;
    return 0;
}

/* Adds nucleotides first..last as a flexible range, if tsr_nucleic_find accepts
 * them. */
static tsr_status add_strand(const search *s, const tsr_structure *structure,
                             int first, int last, tsr_parts *parts,
                             tsr_err *err)
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

/* Returns 1 if no nucleotide of this chain is bound. Such a strand would drift
 * beside a protein. */
static int is_chain_unbound(const search *s, const char *bound, int r)
{
    for (int k = 0; k < s->atoms->n_residue; k++)
        if (bound[k] &&
            strcmp(s->atoms->residue[k].chain, s->atoms->residue[r].chain) == 0)
            return 0;
    return 1;
}

static tsr_status list_strands(search *s, const tsr_structure *structure,
                               const char *bound, tsr_parts *parts,
                               tsr_err *err)
{
    for (int r = 0, last; r < s->atoms->n_residue; r = last + 1) {
        last = r;
        if (bound[r] || !is_nucleotide(&s->atoms->residue[r]))
            continue;
        while (last + 1 < s->atoms->n_residue && !bound[last + 1] &&
               is_nucleotide(&s->atoms->residue[last + 1]) &&
               is_neighbour(s, last, last + 1) &&
               tsr_nucleic_are_joined(s->atoms, last, last + 1))
            last++;
        if (last - r + 1 >= MIN_STRAND &&
            (structure->n_residue == 0 || !is_chain_unbound(s, bound, r)))
            TSR_TRY(add_strand(s, structure, r, last, parts, err));
    }
    return TSR_OK;
}

/* Marks the nucleotides of a fixed range as bound. An invalid range is reported
 * later, by the code that reads the configuration. */
static void mark_bound(const tsr_atoms *atoms, const char *range,
                       const tsr_residue *residue, int *mark, char *bound)
{
    memset(mark, 0, (size_t)atoms->n_residue * sizeof *mark);
    if (tsr_range_mark(range, atoms->n_residue, residue, mark, NULL) == TSR_OK)
        for (int r = 0; r < atoms->n_residue; r++)
            bound[r] = (char)(bound[r] || mark[r]);
}

static tsr_status find_strands(search *s, tsr_pool *pool,
                               const tsr_structure *structure,
                               const tsr_strings *fixed, tsr_parts *parts,
                               tsr_err *err)
{
    const tsr_atoms *atoms = s->atoms;
    tsr_residue *residue;
    int *mark;
    char *bound;
    tsr_pool_array(pool, s->neighbour, atoms->n_atom + 1);
    tsr_pool_array(pool, s->part, atoms->n_atom + 1);
    tsr_pool_array(pool, residue, atoms->n_residue + 1);
    tsr_pool_array(pool, mark, atoms->n_residue + 1);
    tsr_pool_array(pool, bound, atoms->n_residue + 1);
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
        bound[r] = (char)(is_nucleotide(&atoms->residue[r]) && is_bound(s, r));
    for (int k = 0; fixed != NULL && k < fixed->n; k++)
        mark_bound(atoms, fixed->item[k], residue, mark, bound);
    return list_strands(s, structure, bound, parts, err);
}

/* Appends the single-stranded ranges of two or more bonded nucleotides to
 * parts->flexible, judged by the atoms of the file. Left out are ranges that a
 * run cannot move, nucleotides in `fixed` (ranges, may be NULL) and, beside a
 * protein, strands without any bound nucleotide. */
static tsr_status add_strands(const tsr_structure *structure,
                              const tsr_strings *fixed, tsr_parts *parts,
                              tsr_err *err)
{
    tsr_atoms *atoms = NULL;
    if (structure->n_nucleotide == 0 ||
        tsr_atoms_read_symmetric(structure->path, structure->symmetry.group,
                                 &atoms, NULL) != TSR_OK)
        return TSR_OK;
    tsr_pool pool = {0};
    search s = {.atoms = atoms};
    const tsr_status status =
        find_strands(&s, &pool, structure, fixed, parts, err);
    tsr_atoms_free(atoms);
    tsr_pool_clear(&pool);
    return status;
}

/* ---- all parts ---- */

/* Parts of the protein. */
static tsr_status find_protein_parts(parts_graph *g, tsr_parts_choices choices,
                                     tsr_parts *p, tsr_err *err)
{
    parts_pieces pieces = {0};
    parts_cut *cut;
    TSR_TRY(make_graph(g, err));
    tsr_pool_array(&g->pool, cut, g->n);
    TSR_TRY(tsr_pool_check(&g->pool, err));
    TSR_TRY(cut_chains(g, cut, err));
    TSR_TRY(make_pieces(g, cut, choices.no_loops, &pieces, err));
    mark_parts(g, &pieces, choices.rigid, p);
    list_ranges(g, p);
    for (int k = 0; k < p->n_range; k++)
        add_text(g, p->range[k].first, p->range[k].last, &p->flexible,
                 &p->pool);
    write_fixed(g, p);
    make_notes(g, cut, &pieces, choices.no_loops, p);
    p->evidence = g->pae != NULL ? TSR_EVIDENCE_PAE
                  : g->has_plddt ? TSR_EVIDENCE_PLDDT
                                 : TSR_EVIDENCE_CONTACTS;
    return tsr_pool_check(&p->pool, err);
}

tsr_status tsr_parts_find(const tsr_structure *s, const tsr_pae *pae,
                          tsr_parts_choices choices, tsr_parts **out,
                          tsr_err *err)
{
    const int n = s->n_residue;
    tsr_parts *p = calloc(1, sizeof *p);
    *out = NULL;
    TSR_TRY(tsr_allocated(p, err));
    p->n_residue = n;
    p->evidence = TSR_EVIDENCE_PAIRS; /* kept if there is no protein */
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
        TSR_THEN(status, find_protein_parts(&graph, choices, p, err));
    if (!choices.no_strands)
        TSR_THEN(status, add_strands(s, choices.fixed, p, err));
    tsr_pool_clear(&graph.pool);
    TSR_HAND_OVER(status, p, out, tsr_parts_free);
}

tsr_status tsr_parts_find_with_pae(const tsr_structure *s, const char *pae,
                                   tsr_parts_choices choices, tsr_log *log,
                                   tsr_parts **out, char **used_pae,
                                   tsr_err *err)
{
    tsr_err why;
    tsr_pool pool = {0};
    tsr_pae *errors = NULL;
    tsr_status status = TSR_OK;
    char *path = pae == NULL ? tsr_pae_find_file(s->path) : strdup(pae);
    *out = NULL;
    if (path != NULL)
        status = tsr_pae_read(&pool, path, &errors, &why);
    TSR_THEN(status, tsr_parts_find(s, errors, choices, out, &why));
    if (status == TSR_E_DATA && path != NULL && pae == NULL) {
        tsr_warn(log, "not used: %s", why.message);
        free(path);
        path = NULL;
        status = tsr_parts_find(s, NULL, choices, out, &why);
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
