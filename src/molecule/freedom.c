/* From the ranges that a configuration names to what may turn: torsions, side
 * chains, rigid units, and which part of a complex stays in place. A range that
 * cannot mean what it says is refused here. */
#include "molecule/freedom.h"

#include "core/vec3.h"
#include "molecule/range.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static int count_of(const tsr_strings *strings)
{
    return strings == NULL ? 0 : strings->n;
}

/* The word in place of ranges: every residue is flexible. */
static int is_all(const tsr_strings *flexible)
{
    return count_of(flexible) == 1 && strcmp(flexible->item[0], "all") == 0;
}

static void label(const tsr_residue *r, char text[32])
{
    char insertion[2] = {r->insertion == ' ' ? '\0' : r->insertion, '\0'};
    snprintf(text, 32, "%s:%d%s %s", r->chain, r->number, insertion,
             tsr_residue_name(r));
}

/* Residues i and i + 1 of one chain without a bond between them. */
static int is_break(const tsr_topology *t, int i)
{
    return i < t->residue[i].chain_last && !t->residue[i + 1].linked;
}

/* " of 'model.pdb'", where the file is known. */
static const char *of_file(const tsr_flexibility *f, char text[512])
{
    text[0] = '\0';
    if (f->file != NULL)
        snprintf(text, 512, " of '%s'", f->file);
    return text;
}

/* What a range that the user calls flexible may not hold. mark: of the range
 * alone. */
static tsr_status check_range(const tsr_topology *t, const tsr_flexibility *f,
                              const char *text, const int *mark, tsr_err *err)
{
    char one[32], other[32], of[512];
    for (int i = 0; i < t->n_residue; i++) {
        const tsr_residue *r = &t->residue[i];
        if (!mark[i])
            continue;
        label(r, one);
        if (r->chain_first == r->chain_last)
            return tsr_fail(err, TSR_E_CONFIG,
                            "residue range '%s': chain %s%s is a single "
                            "residue, %s, and has no torsions; leave it out",
                            text, r->chain, of_file(f, of), one);
        if (i + 1 < t->n_residue && mark[i + 1] && is_break(t, i)) {
            label(&t->residue[i + 1], other);
            return tsr_fail(err, TSR_E_CONFIG,
                            "residue range '%s': chain %s%s is broken between "
                            "%s and %s (no %s); model the missing "
                            "residues (MODELLER), or name the parts before and "
                            "after as two ranges",
                            text, r->chain, of_file(f, of), one, other,
                            r->link == TSR_LINK_NONE ? "peptide bond"
                                                     : "bond O3'-P");
        }
    }
    return TSR_OK;
}

/* CB lies on the other side of the plane N-CA-C in a D residue. mark: what is
 * to be flexible. */
static tsr_status check_chirality(const tsr_topology *t,
                                  const tsr_flexibility *f, const int *mark,
                                  tsr_err *err)
{
    char text[32], of[512];
    for (int i = 0; i < t->n_residue; i++) {
        const tsr_residue *r = &t->residue[i];
        if (!mark[i] || r->amino == TSR_GLY || r->cb[2] <= 0.0)
            continue;
        label(r, text);
        return tsr_fail(err, TSR_E_CONFIG,
                        "residue %s%s is a D residue (by its CB), for which "
                        "the prior has no torsions; leave it rigid "
                        "(structure.flexible, structure.rigid)",
                        text, of_file(f, of));
    }
    return TSR_OK;
}

static tsr_status mark_flexible(tsr_topology *t, const tsr_flexibility *f,
                                int *mark, tsr_err *err)
{
    size_t size = (size_t)t->n_residue * sizeof *mark;
    int n = is_all(f->flexible) ? 0 : count_of(f->flexible);
    for (int k = 0; k < n; k++) {
        memset(mark, 0, size);
        tsr_status status = tsr_range_mark(f->flexible->item[k], t->n_residue,
                                           t->residue, 1, mark, err);
        TSR_THEN(status, check_range(t, f, f->flexible->item[k], mark, err));
        TSR_THEN(status, check_chirality(t, f, mark, err));
        if (status != TSR_OK)
            return tsr_wrap(err, status, "structure.flexible.%d", k);
        for (int i = 0; i < t->n_residue; i++)
            t->residue[i].flexible |= mark[i];
    }
    if (n > 0)
        return TSR_OK;
    memset(mark, 0, size);
    for (int k = 0; k < count_of(f->rigid); k++) {
        tsr_status status = tsr_range_mark(f->rigid->item[k], t->n_residue,
                                           t->residue, 1, mark, err);
        if (status != TSR_OK)
            return tsr_wrap(err, status, "structure.rigid.%d", k);
    }
    for (int i = 0; i < t->n_residue; i++) {
        const tsr_residue *r = &t->residue[i];
        t->residue[i].flexible = !mark[i] && r->chain_first < r->chain_last;
    }
    return TSR_OK;
}

static tsr_status mark_mobile(tsr_topology *t, const tsr_flexibility *f,
                              tsr_err *err)
{
    const tsr_strings *mobile = f->mobile;
    char text[TSR_CHAINS_SIZE];
    int n_mobile = 0;
    for (int k = 0; k < count_of(mobile); k++) {
        int chain = -1, found = 0;
        for (int i = 0; i < t->n_residue; i++) {
            chain += t->residue[i].chain_first == i;
            if (t->residue[i].chain_first != i ||
                strcmp(t->residue[i].chain, mobile->item[k]) != 0)
                continue;
            found = 1;
            n_mobile += !t->mobile[chain];
            t->mobile[chain] = 1;
        }
        if (!found)
            return tsr_fail(err, TSR_E_CONFIG,
                            "structure.mobile.%d: there is no chain '%s'; "
                            "chains: %s",
                            k, mobile->item[k],
                            tsr_range_chains(t->n_residue, t->residue, text));
    }
    if (f->is_placed && t->n_chain == 1 && count_of(f->fixed) == 0)
        t->mobile[0] = 1;
    if (n_mobile == t->n_chain && !f->is_placed)
        return tsr_fail(err, TSR_E_CONFIG,
                        "structure.mobile: every chain is named; one has to "
                        "stay, for the others to move against");
    return TSR_OK;
}

/* Fixed ranges are rigid too, unless the user has said the opposite. mark: of
 * the range alone. */
static tsr_status check_fixed(const tsr_topology *t, const tsr_flexibility *f,
                              const char *range, const int *mark, tsr_err *err)
{
    char text[32];
    int chain = -1;
    for (int i = 0; i < t->n_residue; i++) {
        const tsr_residue *r = &t->residue[i];
        chain += r->chain_first == i;
        if (!mark[i])
            continue;
        label(r, text);
        if (r->flexible && count_of(f->flexible) > 0 && !is_all(f->flexible))
            return tsr_fail(err, TSR_E_CONFIG,
                            "residue range '%s': %s is in structure.flexible "
                            "too; take it out of one of them",
                            range, text);
        if (t->mobile[chain])
            return tsr_fail(err, TSR_E_CONFIG,
                            "residue range '%s': %s is of chain %s, which "
                            "moves as a whole (structure.mobile); take it out "
                            "of one of them",
                            range, text, r->chain);
    }
    return TSR_OK;
}

static tsr_status mark_fixed(tsr_topology *t, const tsr_flexibility *f,
                             int *mark, tsr_err *err)
{
    for (int k = 0; k < count_of(f->fixed); k++) {
        const char *range = f->fixed->item[k];
        memset(mark, 0, (size_t)t->n_residue * sizeof *mark);
        tsr_status status =
            tsr_range_mark(range, t->n_residue, t->residue, 1, mark, err);
        TSR_THEN(status, check_fixed(t, f, range, mark, err));
        if (status != TSR_OK)
            return tsr_wrap(err, status, "structure.fixed.%d", k);
        for (int i = 0; i < t->n_residue; i++)
            if (mark[i]) {
                t->residue[i].flexible = 0;
                t->residue[i].is_fixed = 1;
            }
    }
    return TSR_OK;
}

/* Numbers runs of residues that do not change inside; breaks keep relations.
 */
static void number_units(tsr_topology *t)
{
    int unit = 0;
    for (int i = 0; i < t->n_residue; i++) {
        tsr_residue *r = &t->residue[i];
        int joined = i > r->chain_first && !t->residue[i - 1].flexible;
        r->unit = r->flexible ? -1 : joined ? unit : ++unit;
    }
}

/* In a complex whose chains keep their relation something of each has to stay:
 * the user's choice, else the largest rigid unit. */
void tsr_freedom_anchor(tsr_topology *topology, int chain, int first,
                        tsr_log *log)
{
    tsr_topology *t = topology;
    int last = t->residue[first].chain_last, is_fixed = 0;
    int best = -1, best_size = 0;
    for (int i = first, size = 0; i <= last; i++) {
        const tsr_residue *r = &t->residue[i];
        int same = i > first && r->unit == t->residue[i - 1].unit;
        size = r->unit < 0 ? 0 : same ? size + 1 : 1;
        is_fixed |= r->is_fixed;
        if (size > best_size) {
            best_size = size;
            best = r->unit;
        }
    }
    if (t->n_chain == 1 || t->mobile[chain] || is_fixed || best < 0)
        return;
    int from = -1;
    for (int i = first; i <= last; i++)
        if (t->residue[i].unit == best) {
            t->residue[i].is_fixed = 1;
            from = from < 0 ? i : from;
        }
    tsr_info(log,
             "chain %s: its residues %d to %d keep their relation to the "
             "other chains (structure.fixed and structure.mobile say "
             "otherwise)",
             t->residue[first].chain, t->residue[from].number,
             t->residue[from + best_size - 1].number);
}

static void choose_anchors(tsr_topology *t, tsr_log *log)
{
    int chain = 0;
    for (int first = 0; first < t->n_residue;
         first = t->residue[first].chain_last + 1)
        tsr_freedom_anchor(t, chain++, first, log);
}

/* A unit with a fixed residue is fixed, and all of these are one unit, 0. */
static void join_fixed(tsr_topology *t)
{
    for (int i = 0; i < t->n_residue; i++) {
        int unit = t->residue[i].unit;
        if (!t->residue[i].is_fixed || unit <= 0)
            continue;
        for (int j = t->residue[i].chain_first; j <= t->residue[i].chain_last;
             j++)
            if (t->residue[j].unit == unit)
                t->residue[j].unit = 0, t->residue[j].is_fixed = 1;
    }
}

/* What of a chain that rides is fixed is one unit with what it rides on. */
static void join_rides(tsr_topology *t)
{
    for (int k = 0; k < t->n_ride; k++)
        for (int i = t->ride[k].first; i <= t->ride[k].last; i++)
            if (t->residue[i].is_fixed)
                t->residue[i].unit = t->residue[t->ride[k].host].unit;
}

/* A chain without a rigid unit cannot keep its relation to the others: it moves
 * as a whole. Where that is true of all, the first stays. */
static void set_adrift(tsr_topology *t, tsr_log *log)
{
    int is_free = 1, chain = 0;
    for (int i = 0; i < t->n_residue; i++)
        is_free &= !t->residue[i].is_fixed;
    for (int first = 0; first < t->n_residue; chain++) {
        int last = t->residue[first].chain_last, is_fixed = 0;
        for (int i = first; i <= last; i++)
            is_fixed |= t->residue[i].is_fixed;
        if (t->n_chain > 1 && !t->mobile[chain] && !is_fixed && !is_free) {
            t->mobile[chain] = 1;
            tsr_info(log,
                     "chain %s: no part of it is rigid, so it moves against "
                     "the other chains as a whole (structure.fixed says "
                     "otherwise)",
                     t->residue[first].chain);
        }
        is_free &= t->mobile[chain] || is_fixed;
        first = last + 1;
    }
}

/* The side that turns: 1 C, 0 N, -1 neither may. */
static int turning_side(const tsr_topology *t, int i)
{
    int first = t->residue[i].chain_first, last = t->residue[i].chain_last;
    int before = 0, after = 0;
    for (int j = first; j < i; j++)
        before |= t->residue[j].is_fixed;
    for (int j = i + 1; j <= last; j++)
        after |= t->residue[j].is_fixed;
    if (before && after)
        return -1;
    if (before || after)
        return before;
    return last - i < i - first;
}

static void list_free(tsr_topology *t)
{
    t->n_torsion = t->n_side = 0;
    for (int i = 0; i < t->n_residue; i++) {
        const tsr_residue *r = &t->residue[i];
        if (!r->flexible)
            continue;
        int side = turning_side(t, i);
        if (r->has_phi && side >= 0)
            t->torsion[t->n_torsion++] = (tsr_torsion){i, TSR_PHI, side};
        if (r->has_psi && side >= 0)
            t->torsion[t->n_torsion++] = (tsr_torsion){i, TSR_PSI, side};
        if (tsr_amino_has_side_chain(r->amino) ||
            (r->link == TSR_LINK_SUGAR && t->base[i].is_there))
            t->side[t->n_side++] = i;
    }
}

static void describe_torsions(tsr_topology *t, const tsr_conformation *c)
{
    for (int i = 0; i < t->n_residue; i++) {
        tsr_residue *r = &t->residue[i];
        r->has_phi = i > r->chain_first && r->linked;
        r->has_psi = i < r->chain_last && t->residue[i + 1].linked;
        if (r->link != TSR_LINK_NONE) {
            r->has_phi &= r->link != TSR_LINK_SUGAR; /* delta is held */
            continue;
        }
        double omega = (double)NAN;
        if (r->has_phi)
            omega = tsr_vec3_torsion(
                c->backbone[i - 1][TSR_CA], c->backbone[i - 1][TSR_C],
                c->backbone[i][TSR_N], c->backbone[i][TSR_CA]);
        r->rama = (int)tsr_rama_class_of(
            r->amino, r->has_psi && t->residue[i + 1].amino == TSR_PRO, omega);
    }
}

tsr_status tsr_freedom_set(tsr_topology *topology,
                           const tsr_conformation *conformation,
                           const tsr_flexibility *flexibility, tsr_log *log,
                           tsr_err *err)
{
    tsr_topology *t = topology;
    const tsr_flexibility *f = flexibility;
    if (count_of(f->flexible) > 0 && count_of(f->rigid) > 0)
        return tsr_fail(err, TSR_E_CONFIG,
                        "structure: give flexible ranges or rigid ranges, "
                        "not both");
    int *mark = calloc((size_t)t->n_residue, sizeof *mark);
    TSR_TRY(tsr_allocated(mark, err));
    describe_torsions(t, conformation);
    if (f->is_still) {
        number_units(t);
        free(mark);
        return TSR_OK;
    }
    tsr_status status = mark_flexible(t, f, mark, err);
    TSR_THEN(status, mark_mobile(t, f, err));
    TSR_THEN(status, mark_fixed(t, f, mark, err));
    int n_flexible = 0;
    for (int i = 0; i < t->n_residue; i++) {
        mark[i] = t->residue[i].flexible;
        n_flexible += mark[i];
    }
    if (status == TSR_OK) {
        status = check_chirality(t, f, mark, err);
        if (status != TSR_OK)
            tsr_wrap(err, status, "structure.file");
    }
    free(mark);
    if (status != TSR_OK)
        return status;
    if (n_flexible == 0 && count_of(f->mobile) == 0 && !f->is_placed)
        return tsr_fail(err, TSR_E_CONFIG,
                        "structure: nothing may move: no residue is flexible "
                        "(structure.flexible, structure.rigid, "
                        "structure.fixed) and no chain moves as a whole "
                        "(structure.mobile)");
    number_units(t);
    if (t->n_link > 0 && t->n_chain > 1)
        TSR_TRY(tsr_freedom_ride(t, conformation, log, err));
    choose_anchors(t, log);
    join_fixed(t);
    join_rides(t);
    set_adrift(t, log);
    list_free(t);
    return TSR_OK;
}
