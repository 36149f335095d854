/* Sentences for people. Each names residues as a configuration does, and says
 * what to do. */
#include "molecule/parts_steps.h"

#include "core/text.h"
#include "molecule/residue.h"
#include "molecule/secondary.h"

#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

enum {
    MOST_NOTES = 40,
    SHOWN = 30,   /* letters of a stretch that is missing */
    COPY = 25,    /* residues that, where they repeat, are a second copy */
    LEAST_TAG = 5 /* histidines in a row */
};

/* ---- sentences ---- */

static int add_note(tsr_parts *parts, const char *format, ...) TSR_PRINTF(2, 3);

static int add_note(tsr_parts *parts, const char *format, ...)
{
    va_list list;
    tsr_words words;
    if (parts->n_note >= MOST_NOTES)
        return 1;
    tsr_words_begin(&words);
    va_start(list, format);
    if (words.out != NULL)
        vfprintf(words.out, format, list);
    va_end(list);
    char *text = tsr_words_end(&words);
    if (text != NULL)
        parts->note[parts->n_note++] = text;
    return text != NULL;
}

static const char *name_of(const tsr_parts_graph *g, int i, char text[32])
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

static int say_missing(const tsr_parts_graph *g, tsr_parts *parts, int before,
                       int after, const char *letters, int n)
{
    char one[32], other[32];
    int shown = n > SHOWN ? SHOWN : n;
    const char *tag = has_tag(letters, n) ? ", a histidine tag among them" : "";
    const char *more = n > SHOWN ? "..." : "";
    const char *remedy = "they scatter, too: if they were in the sample, model "
                         "them (MODELLER, AlphaFold) and let them be flexible";
    if (before < 0)
        return add_note(parts,
                        "the file names %d residues before %s without "
                        "coordinates (%.*s%s%s); %s",
                        n, name_of(g, after, one), shown, letters, more, tag,
                        remedy);
    if (after < 0)
        return add_note(parts,
                        "the file names %d residues after %s without "
                        "coordinates (%.*s%s%s); %s",
                        n, name_of(g, before, one), shown, letters, more, tag,
                        remedy);
    return add_note(parts,
                    "%d residues between %s and %s have no coordinates "
                    "(%.*s%s%s); %s",
                    n, name_of(g, before, one), name_of(g, after, other), shown,
                    letters, more, tag, remedy);
}

/* Goes through the chain's unbroken runs, in the declared sequence. */
static int compare_declared(const tsr_parts_graph *g, int first,
                            const char *letters, tsr_parts *parts)
{
    int is_good = 1, from = 0, before = -1, last_of = g->chain_last[first];
    for (int i = first; i <= last_of && is_good;) {
        int last = i;
        while (last < last_of && tsr_parts_is_linked(g, last + 1))
            last++;
        int at = find_run(g->structure, i, last, letters, from);
        if (at < 0)
            return 1; /* numbered or mutated otherwise: nothing is sure */
        if (at > from)
            is_good =
                say_missing(g, parts, before, i, letters + from, at - from);
        from = at + last - i + 1;
        before = last;
        i = last + 1;
    }
    int rest = (int)strlen(letters) - from;
    return is_good && (rest == 0 ||
                       say_missing(g, parts, before, -1, letters + from, rest));
}

static const char *declared_of(const tsr_structure *s, const char *chain)
{
    for (int k = 0; k < s->n_declared; k++)
        if (strcmp(s->declared[k].chain, chain) == 0)
            return s->declared[k].letters;
    return NULL;
}

/* An earlier chain begins and ends like this one: its copy. */
static int is_copy(const tsr_parts_graph *g, int first)
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
static int compare_numbers(const tsr_parts_graph *g, int first,
                           tsr_parts *parts)
{
    const tsr_residue_record *r = g->structure->residue;
    int is_good = 1;
    char one[32], other[32];
    for (int i = first + 1; i <= g->chain_last[first] && is_good; i++) {
        int n = r[i].number - r[i - 1].number - 1;
        if (n > 0 && !tsr_parts_is_linked(g, i))
            is_good = add_note(parts,
                               "%d residues between %s and %s are not in the "
                               "model; they scatter, too: model them "
                               "(MODELLER, AlphaFold) and let them be flexible",
                               n, name_of(g, i - 1, one), name_of(g, i, other));
    }
    if (is_good && r[first].number > 1 && !is_copy(g, first))
        is_good = add_note(parts,
                           "chain %s begins at residue %d and the file does "
                           "not say what was in the sample: tags and tails "
                           "that it lacks scatter, too",
                           r[first].chain, r[first].number);
    return is_good;
}

static int tell_missing(const tsr_parts_graph *g, tsr_parts *parts)
{
    int is_good =
        g->structure->n_bare == 0 ||
        add_note(parts, "left out of the chains: %s", g->structure->bare);
    for (int i = 0; i < g->n && is_good; i = g->chain_last[i] + 1) {
        const char *letters =
            declared_of(g->structure, g->structure->residue[i].chain);
        is_good = letters != NULL ? compare_declared(g, i, letters, parts)
                                  : compare_numbers(g, i, parts);
    }
    return is_good;
}

/* ---- what could be decided otherwise ---- */

/* Helices alone between two domains, once each; not the helix at an end that
 * has nothing beyond it. */
static int tell_helices(const tsr_parts_graph *g, const tsr_cut *cut,
                        tsr_parts *parts)
{
    enum { LEAST_DOMAIN = 25 };
    const tsr_residue_record *r = g->structure->residue;
    char one[32];
    for (int i = 2, told = -1; i + 2 < g->n; i++) {
        int is_domain =
            tsr_parts_n_held(g, g->chain_first[i], i) >= LEAST_DOMAIN &&
            tsr_parts_n_held(g, i + 1, g->chain_last[i]) >= LEAST_DOMAIN;
        told = g->kind[i] == TSR_HELIX ? told : -1;
        if (cut[i] != TSR_CUT_HELIX || !is_domain || told >= 0)
            continue;
        told = i;
        if (!add_note(parts,
                      "nothing but the helix around %s joins the parts before "
                      "and after it; it is held straight here. If it bends, "
                      "add \"%s:%d-%d\" to structure.flexible",
                      name_of(g, i, one), r[i].chain, r[i - 1].number,
                      r[i + 2].number))
            return 0;
    }
    return 1;
}

/* Two parts that would move, but what joins them is not in the file. */
static int tell_breaks(const tsr_parts_graph *g, const tsr_pieces *p,
                       tsr_parts *parts)
{
    char one[32], other[32];
    for (int k = 0; k + 1 < p->n; k++) {
        const tsr_piece *a = &p->piece[k], *b = &p->piece[k + 1];
        int at = a->high + 1;
        if (a->low > a->high || b->low > b->high ||
            g->chain_first[a->last] != g->chain_first[b->last])
            continue;
        while (at <= b->low && tsr_parts_is_linked(g, at))
            at++;
        if (at <= b->low &&
            !add_note(parts,
                      "two domains, with a break between %s and %s: the linker "
                      "is missing from the file%s; model it, so that the "
                      "domains can move",
                      name_of(g, at - 1, one), name_of(g, at, other),
                      b->low == a->high + 1 ? ", and they keep their relation"
                                            : " in part"))
            return 0;
    }
    return 1;
}

static int tell_loops(const tsr_parts_graph *g, const tsr_pieces *p,
                      tsr_parts *parts)
{
    char one[32], other[32];
    for (int k = 0; k < p->n; k++) {
        const tsr_piece *piece = &p->piece[k];
        for (int i = piece->low; i <= piece->high; i++) {
            int last = i;
            if (!p->is_loop[i])
                continue;
            while (last < piece->high && p->is_loop[last + 1])
                last++;
            if (!piece->moves_loops &&
                !add_note(parts,
                          "nothing holds the loop %s to %s, which stays as it "
                          "is: a loop moves only in a part that keeps its "
                          "place (structure.fixed), and there is one already",
                          name_of(g, i, one), name_of(g, last, other)))
                return 0;
            i = last;
        }
    }
    return 1;
}

/* How sure a prediction is of the places of two chains, 0 to 1: the mean over
 * their residues. */
static double mean_relation(const tsr_parts_graph *g, int chain)
{
    double sum = 0.0, n = 0.0;
    for (int i = chain; i <= g->chain_last[chain]; i++)
        for (int j = 0; g->held[i] && j < g->n; j++)
            if (g->held[j] && g->chain_first[j] != chain) {
                sum += tsr_parts_relation(g, i, j);
                n += 1.0;
            }
    return n > 0.0 ? sum / n : 1.0;
}

/* A trimmed model, as is usual; or the file of another protein. */
static int tell_rows(const tsr_parts_graph *g, tsr_parts *parts)
{
    if (g->pae == NULL || g->pae->n == g->n || g->pae->chain != NULL)
        return 1;
    return add_note(parts,
                    "the predicted aligned errors are of %d residues and the "
                    "model has %d: they were taken by residue number, which is "
                    "right if the model was cut out of the prediction",
                    g->pae->n, g->n);
}

static int tell_chains(const tsr_parts_graph *g, const tsr_pieces *p,
                       tsr_parts *parts)
{
    int is_alone = g->chain_last[0] == g->n - 1, is_good = 1;
    for (int i = 0; i < g->n && !is_alone && is_good;
         i = g->chain_last[i] + 1) {
        double touches = 0.0;
        const char *chain = g->structure->residue[i].chain;
        for (int k = 0; k < p->n; k++)
            if (p->piece[k].first >= i && p->piece[k].last <= g->chain_last[i])
                touches += p->piece[k].other;
        if (g->pae != NULL && mean_relation(g, i) < 0.2 && touches < 6.0)
            is_good = add_note(
                parts,
                "the prediction is not sure how chain %s lies to the others; "
                "it keeps its place here. structure.mobile: [%s] lets it move "
                "as a whole",
                chain, chain);
        else if (touches == 0.0)
            is_good = add_note(parts,
                               "chain %s touches no other chain: is it part of "
                               "the molecule that was measured?",
                               chain);
    }
    return is_good;
}

/* Copies of one sequence in one chain: several molecules without chain ids. */
static int find_copy(const tsr_parts_graph *g, int first, int last, int *copy)
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

static int tell_copies(const tsr_parts_graph *g, tsr_parts *parts)
{
    char one[32], other[32];
    for (int i = 0; i < g->n; i = g->chain_last[i] + 1)
        for (int from = i; from <= g->chain_last[i];) {
            int last = from, copy = 0;
            while (last < g->chain_last[i] && tsr_parts_is_linked(g, last + 1))
                last++;
            if (last - from + 1 >= COPY && last < g->chain_last[i] &&
                find_copy(g, from, last, &copy))
                return add_note(parts,
                                "chain %s holds one sequence several times, "
                                "from %s and again from %s: several molecules "
                                "under one chain id (or a blank one); give "
                                "each its own",
                                g->structure->residue[i].chain,
                                name_of(g, from, one), name_of(g, copy, other));
            from = last + 1;
        }
    return 1;
}

tsr_status tsr_parts_take_notes(const tsr_parts_graph *graph,
                                const tsr_cut *cut, const tsr_pieces *pieces,
                                tsr_parts *parts, tsr_err *err)
{
    parts->note = calloc(MOST_NOTES, sizeof *parts->note);
    int is_good = parts->note != NULL && tell_copies(graph, parts);
    parts->n_grave = parts->n_note;
    is_good = is_good && tell_rows(graph, parts) &&
              tell_breaks(graph, pieces, parts) && tell_missing(graph, parts) &&
              tell_helices(graph, cut, parts) &&
              tell_loops(graph, pieces, parts) &&
              tell_chains(graph, pieces, parts);
    return is_good ? TSR_OK : tsr_no_memory(err);
}
