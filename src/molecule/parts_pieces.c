/* A cut is a place between two residues; a linker is a stretch around it. So
 * are tails. Both are found by walking from the cut, or the end, to where the
 * chain is held. */
#include "molecule/parts_steps.h"

#include "molecule/secondary.h"

#include <stdlib.h>

enum {
    WINDOW = 5,      /* of these residues */
    HELD_IN = 4,     /* so many are held where a rigid part begins */
    LEAST_PART = 10, /* held residues of a rigid part, and among them */
    LEAST_FOLD = 6,  /* of a helix or strand, unless these are */
    LEAST_DOMAIN = 25,
    LEAST_BOUND = 4,  /* of one that other chains hold */
    LEAST_TAIL = 3,   /* residues */
    LEAST_LINKER = 5, /* residues: fewer turn too stiffly, but */
    LEAST_TURN = 3,   /* so many are enough where more would cost a helix */
    LEAST_LOOP = 15,  /* residues without contacts */
    LEAST_UNSURE = 10 /* residues that a prediction is not sure of */
};
static const double holding = 2.0;        /* contacts of a residue */
static const double holding_linker = 4.0; /* the same beside a cut */
static const double hanging = 0.5;   /* mean contacts of a loop's residues */
static const double interface = 6.0; /* contacts that hold chains together */

void tsr_pieces_clear(tsr_pieces *pieces)
{
    free(pieces->piece);
    free(pieces->own);
    free(pieces->is_loop);
    *pieces = (tsr_pieces){.n = 0};
}

static int is_structure(const tsr_parts_graph *g, int i)
{
    return g->kind[i] != TSR_COIL && g->confidence[i] >= 0.5;
}

static int is_anchored(const tsr_parts_graph *g, const tsr_pieces *p, int i)
{
    return is_structure(g, i) ||
           (g->confidence[i] >= 0.5 && p->own[i] >= holding);
}

static int piece_of(const tsr_pieces *p, int residue)
{
    int k = 0;
    while (p->piece[k].last < residue)
        k++;
    return k;
}

static void list_pieces(const tsr_parts_graph *g, const tsr_cut *cut,
                        tsr_pieces *p)
{
    for (int i = 0, first = 0; i < g->n; i++)
        if (i == g->chain_last[i] || cut[i] == TSR_CUT_LINKER) {
            p->piece[p->n++] = (tsr_piece){.first = first, .last = i};
            first = i + 1;
        }
}

static int is_other_chain(const tsr_parts_graph *g, const tsr_contact *c)
{
    return g->chain_first[c->a] != g->chain_first[c->b];
}

static void sum_own(const tsr_parts_graph *g, tsr_pieces *p)
{
    for (int k = 0; k < g->n_contact; k++) {
        const tsr_contact *c = &g->contact[k];
        if (!is_other_chain(g, c) && piece_of(p, c->a) != piece_of(p, c->b))
            continue;
        p->own[c->a] += c->weight;
        p->own[c->b] += c->weight;
    }
}

/* From `from` on in the direction of step: the first residue at which the piece
 * is held, by a disulfide bond or by more than a contact here and there. */
static int find_end(const tsr_parts_graph *g, const tsr_pieces *p, int from,
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
static int is_part(const tsr_parts_graph *g, const tsr_piece *piece)
{
    int n_held = tsr_parts_n_held(g, piece->low, piece->high), n_fold = 0;
    for (int i = piece->low; i <= piece->high; i++)
        n_fold += is_structure(g, i);
    if (piece->other >= interface)
        return n_held >= LEAST_BOUND;
    return n_held >= LEAST_DOMAIN ||
           (n_held >= LEAST_PART && n_fold >= LEAST_FOLD);
}

/* Contacts of a piece with other chains. */
static double touch_others(const tsr_parts_graph *g, const tsr_piece *piece)
{
    double sum = 0.0;
    for (int k = 0; k < g->n_contact; k++) {
        const tsr_contact *c = &g->contact[k];
        int has_a = c->a >= piece->low && c->a <= piece->high;
        int has_b = c->b >= piece->low && c->b <= piece->high;
        if (is_other_chain(g, c) && has_a != has_b)
            sum += c->weight;
    }
    return sum;
}

/* Beside a cut the coil often leans on itself, and would hide a linker: there
 * only contacts of its residues with the rest of the piece count. */
static void loosen_coil(const tsr_parts_graph *g, tsr_pieces *p, int from,
                        int step)
{
    const tsr_piece *piece = &p->piece[piece_of(p, from)];
    int end = from;
    while (end >= piece->first && end <= piece->last && !is_structure(g, end))
        end += step;
    int low = step > 0 ? from : end + 1, high = step > 0 ? end - 1 : from;
    for (int k = 0; k < g->n_contact; k++) {
        const tsr_contact *c = &g->contact[k];
        if (c->a >= low && c->b <= high) {
            p->own[c->a] -= c->weight;
            p->own[c->b] -= c->weight;
        }
    }
    for (int i = low; i <= high; i++)
        p->own[i] *= holding / holding_linker;
}

static void loosen_cuts(const tsr_parts_graph *g, tsr_pieces *p)
{
    for (int k = 0; k + 1 < p->n; k++) {
        int last = p->piece[k].last;
        if (last == g->chain_last[last])
            continue;
        loosen_coil(g, p, last, -1);
        loosen_coil(g, p, last + 1, 1);
    }
}

static void trim(const tsr_parts_graph *g, tsr_pieces *p)
{
    for (int k = 0; k < p->n; k++) {
        tsr_piece *piece = &p->piece[k];
        piece->low = find_end(g, p, piece->first, piece->last, 1);
        piece->high = piece->low > piece->last
                          ? piece->last
                          : find_end(g, p, piece->last, piece->low, -1);
        piece->other = touch_others(g, piece);
        if (!is_part(g, piece))
            piece->low = piece->last + 1, piece->high = piece->last;
    }
}

static int is_rigid(const tsr_piece *piece)
{
    return piece->low <= piece->high;
}

/* Two neighbours of one chain that are both rigid. */
static int are_joined(const tsr_parts_graph *g, const tsr_pieces *p, int k)
{
    return k + 1 < p->n && is_rigid(&p->piece[k]) &&
           is_rigid(&p->piece[k + 1]) &&
           g->chain_first[p->piece[k].last] ==
               g->chain_first[p->piece[k + 1].last];
}

static int is_broken(const tsr_parts_graph *g, int first, int last)
{
    for (int i = first + 1; i <= last; i++)
        if (!tsr_parts_is_linked(g, i))
            return 1;
    return 0;
}

/* Some residues more for a linker that is too short: of coil, and those with
 * fewer contacts first. What the file lacks cannot be made up for. */
static void widen_linkers(const tsr_parts_graph *g, tsr_pieces *p)
{
    for (int k = 0; k + 1 < p->n; k++) {
        tsr_piece *a = &p->piece[k], *b = &p->piece[k + 1];
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
static void settle_tails(const tsr_parts_graph *g, tsr_pieces *p)
{
    for (int k = 0; k < p->n; k++) {
        tsr_piece *piece = &p->piece[k];
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

static int is_hanging(const tsr_parts_graph *g, const tsr_pieces *p, int first,
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

static void find_loops(const tsr_parts_graph *g, tsr_pieces *p)
{
    for (int k = 0; k < p->n; k++) {
        tsr_piece *piece = &p->piece[k];
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
static void choose_fixed(const tsr_parts_graph *g, int no_loops, tsr_pieces *p)
{
    int is_alone = g->chain_last[0] == g->n - 1, best = -1;
    for (int k = 0; k < p->n; k++) {
        tsr_piece *piece = &p->piece[k];
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
static void join_fixed(const tsr_parts_graph *g, int no_loops, tsr_pieces *p)
{
    for (int k = 0; k + 1 < p->n;) {
        tsr_piece *a = &p->piece[k], *b = &p->piece[k + 1];
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

tsr_status tsr_pieces_make(const tsr_parts_graph *graph, const tsr_cut *cut,
                           int no_loops, tsr_pieces *pieces, tsr_err *err)
{
    size_t n = (size_t)graph->n;
    *pieces = (tsr_pieces){.piece = calloc(n, sizeof *pieces->piece),
                           .own = calloc(n, sizeof *pieces->own),
                           .is_loop = calloc(n, 1)};
    if (pieces->piece == NULL || pieces->own == NULL || pieces->is_loop == NULL)
        return tsr_no_memory(err);
    list_pieces(graph, cut, pieces);
    sum_own(graph, pieces);
    loosen_cuts(graph, pieces);
    trim(graph, pieces);
    widen_linkers(graph, pieces);
    settle_tails(graph, pieces);
    find_loops(graph, pieces);
    choose_fixed(graph, no_loops, pieces);
    join_fixed(graph, no_loops, pieces);
    return TSR_OK;
}
