/* All stretches of a chain that have the pivots and the free torsions which a
 * concerted rotation needs. */
#include "moves/concerted_window.h"

enum { LONGEST_GAP = 2 };

/* A rigid unit between two pivots moves with the piece, so all of it must be
 * there. */
static int has_whole_unit(const tsr_topology *t, int first, int last, int unit)
{
    for (int i = 0; i < t->n_residue; i++)
        if (t->residue[i].unit == unit && (i < first || i > last))
            return 0;
    return 1;
}

/* The pivot after `from`, or -1. */
static int next_pivot(const tsr_topology *t, int from)
{
    int last = t->residue[from].chain_last, to = from + 1;
    while (to <= last && t->residue[to].linked &&
           !tsr_can_pivot(&t->residue[to]))
        to++;
    if (to > last || !t->residue[to].linked || to - from - 1 > LONGEST_GAP)
        return -1;
    for (int i = from + 1; i < to; i++) {
        const tsr_residue *r = &t->residue[i];
        if (!r->flexible &&
            (r->is_fixed || !has_whole_unit(t, from + 1, to - 1, r->unit)))
            return -1;
    }
    return to;
}

static void set_turns(const tsr_topology *t, tsr_window *w)
{
    w->n_turn = 0;
    for (int i = w->first; i < w->pivots.a; i++) {
        const tsr_residue *r = &t->residue[i];
        if (r->has_phi && r->amino != TSR_PRO) {
            w->turn[w->n_turn].residue = i;
            w->turn[w->n_turn++].kind = TSR_PHI;
        }
        w->turn[w->n_turn].residue = i;
        w->turn[w->n_turn++].kind = TSR_PSI;
    }
}

int tsr_window_list(const tsr_topology *topology, int n_pre, tsr_window *window)
{
    const tsr_topology *t = topology;
    int n = 0;
    for (int a = 0; a < t->n_residue; a++) {
        int first = a;
        while (a - first < n_pre && first > t->residue[a].chain_first &&
               t->residue[first].linked && t->residue[first - 1].flexible)
            first--;
        if (first == a || !tsr_can_pivot(&t->residue[a]))
            continue;
        int b = next_pivot(t, a), c = b < 0 ? -1 : next_pivot(t, b);
        if (c < 0)
            continue;
        if (window != NULL) {
            tsr_window *w = &window[n];
            w->first = first;
            w->pivots = (tsr_pivots){a, b, c};
            set_turns(t, w);
        }
        n++;
    }
    return n;
}
