/* Derives from the ranges of a configuration which torsions and side chains are
 * free, the rigid units, and which parts of a complex stay in place. Refuses
 * ranges that cannot be applied. */
#include "molecule/topology.h"

#include <ctype.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- ranges ----
 *
 * A range that names no residue, or extends beyond the chain, is an error of
 * the user. The message lists the residues or chains that exist. */

/* Reads a residue number and advances *at. Returns 0 if there is no number, or
 * it is not an int. */
static int read_number(const char **at, long *number)
{
    char *end;
    if (!isdigit((unsigned char)**at) &&
        !(**at == '-' && isdigit((unsigned char)(*at)[1])))
        return 0;
    *number = strtol(*at, &end, 10);
    *at = end;
    return *number > INT_MIN && *number < INT_MAX;
}

const char *tsr_range_chains(int n_residue, const tsr_residue *residue,
                             char text[TSR_CHAINS_SIZE])
{
    size_t used = 0;
    text[0] = '\0';
    for (int i = 0; i < n_residue && used + 16 < TSR_CHAINS_SIZE; i++)
        if (residue[i].chain_first == i)
            used += (size_t)snprintf(
                text + used, TSR_CHAINS_SIZE - used, "%s%s", i > 0 ? ", " : "",
                used + 32 < TSR_CHAINS_SIZE ? residue[i].chain : "...");
    return text;
}

int tsr_range_read(const char *text, tsr_range *range)
{
    const char *colon = strchr(text, ':');
    const char *at = colon != NULL ? colon + 1 : text;
    *range = (tsr_range){.first = INT_MIN, .last = INT_MAX};
    range->has_number = read_number(&at, &range->first);
    const size_t n = colon != NULL       ? (size_t)(colon - text)
                     : range->has_number ? 0
                                         : strlen(text);
    if (n >= sizeof range->chain || (colon != NULL && !range->has_number) ||
        (n == 0 && (colon != NULL || !range->has_number)))
        return 0;
    memcpy(range->chain, text, n);
    if (!range->has_number)
        return 1;
    range->last = range->first;
    return (*at != '-' || (at++, read_number(&at, &range->last))) &&
           *at == '\0';
}

tsr_status tsr_range_mark(const char *text, int n_residue,
                          const tsr_residue *residue, int *mark, tsr_err *err)
{
    char chains[TSR_CHAINS_SIZE];
    tsr_range range;
    if (!tsr_range_read(text, &range))
        return tsr_fail(err, TSR_E_CONFIG,
                        "residue range '%s': expected CHAIN:FIRST-LAST, "
                        "CHAIN:NUMBER, CHAIN or, with one chain, FIRST-LAST",
                        text);
    if (range.first > range.last)
        return tsr_fail(err, TSR_E_CONFIG,
                        "residue range '%s': ends before it begins", text);
    if (range.chain[0] == '\0' && residue[n_residue - 1].chain_first != 0)
        return tsr_fail(err, TSR_E_CONFIG,
                        "residue range '%s': the structure has several "
                        "chains; put the chain before it, as in %s:%s",
                        text, residue[0].chain, text);
    int n_found = 0, n_chain = 0, lowest = INT_MAX, highest = INT_MIN;
    for (int i = 0; i < n_residue; i++) {
        if (range.chain[0] != '\0' &&
            strcmp(range.chain, residue[i].chain) != 0)
            continue;
        n_chain++;
        lowest = residue[i].number < lowest ? residue[i].number : lowest;
        highest = residue[i].number > highest ? residue[i].number : highest;
        if (residue[i].number < range.first || residue[i].number > range.last)
            continue;
        mark[i] = 1;
        n_found++;
    }
    if (n_chain == 0)
        return tsr_fail(err, TSR_E_CONFIG,
                        "residue range '%s': there is no chain '%s'; "
                        "chains: %s",
                        text, range.chain,
                        tsr_range_chains(n_residue, residue, chains));
    if (n_found == 0)
        return tsr_fail(err, TSR_E_CONFIG,
                        "residue range '%s': contains no residue; the chain "
                        "has residues %d to %d",
                        text, lowest, highest);
    if (range.has_number && (range.first < lowest || range.last > highest))
        return tsr_fail(
            err, TSR_E_CONFIG,
            "residue range '%s': the chain has residues %d to %d only", text,
            lowest, highest);
    return TSR_OK;
}

/* ---- lists of ranges ---- */

static int count_of(const tsr_strings *strings)
{
    return strings == NULL ? 0 : strings->n;
}

/* The single word "all" instead of ranges makes every residue flexible. */
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

/* " of 'model.pdb'", or "" if the file is unknown. */
static const char *of_file(const tsr_flexibility *f, char text[512])
{
    text[0] = '\0';
    if (f->file != NULL)
        snprintf(text, 512, " of '%s'", f->file);
    return text;
}

/* Refuses flexible D residues, whose CB lies on the other side of the plane
 * N-CA-C. mark: residues to be flexible. */
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
        return tsr_fail(
            err, TSR_E_CONFIG,
            "residue %s%s is a D residue (by its CB), for which the prior has "
            "no torsions; keep it rigid (structure.flexible, structure.rigid)",
            text, of_file(f, of));
    }
    return TSR_OK;
}

/* Refuses a range that cannot be flexible. mark: residues of this range. */
static tsr_status check_flexible(const tsr_topology *t,
                                 const tsr_flexibility *f, const char *text,
                                 const int *mark, tsr_err *err)
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
        if (i + 1 < t->n_residue && mark[i + 1] && i < r->chain_last &&
            !t->residue[i + 1].linked) {
            label(&t->residue[i + 1], other);
            return tsr_fail(
                err, TSR_E_CONFIG,
                "residue range '%s': chain %s%s is broken between %s and %s "
                "(no %s); model the missing residues (MODELLER), or name the "
                "two parts as separate ranges",
                text, r->chain, of_file(f, of), one, other,
                r->link == TSR_LINK_NONE ? "peptide bond" : "bond O3'-P");
        }
    }
    return check_chirality(t, f, mark, err);
}

/* A check of one range of a list. */
typedef tsr_status range_check(const tsr_topology *t, const tsr_flexibility *f,
                               const char *range, const int *mark,
                               tsr_err *err);

/* mark [2][n_residue] out: residues of all ranges of structure.<key>, then
 * those of the last range. */
static tsr_status mark_ranges(const tsr_topology *t, const tsr_flexibility *f,
                              const tsr_strings *list, const char *key,
                              range_check *check, int *mark, tsr_err *err)
{
    const size_t size = (size_t)t->n_residue * sizeof *mark;
    int *one = mark + t->n_residue;
    memset(mark, 0, size);
    for (int k = 0; k < count_of(list); k++) {
        memset(one, 0, size);
        tsr_status status =
            tsr_range_mark(list->item[k], t->n_residue, t->residue, one, err);
        if (check != NULL)
            TSR_THEN(status, check(t, f, list->item[k], one, err));
        TSR_TRY(tsr_wrap(err, status, "structure.%s.%d", key, k));
        for (int i = 0; i < t->n_residue; i++)
            mark[i % t->n_own] |= one[i];
    }
    return TSR_OK;
}

static tsr_status mark_flexible(tsr_topology *t, const tsr_flexibility *f,
                                int *mark, tsr_err *err)
{
    const int is_named = count_of(f->flexible) > 0 && !is_all(f->flexible);
    TSR_TRY(is_named ? mark_ranges(t, f, f->flexible, "flexible",
                                   check_flexible, mark, err)
                     : mark_ranges(t, f, f->rigid, "rigid", NULL, mark, err));
    for (int i = 0; i < t->n_residue; i++) {
        tsr_residue *r = &t->residue[i];
        r->flexible =
            is_named ? mark[i] : !mark[i] && r->chain_first < r->chain_last;
    }
    return TSR_OK;
}

/* Number of chains of the subunit. */
static int n_own_chain(const tsr_topology *t)
{
    return t->symmetry.n > 1 ? t->n_chain / t->symmetry.n : t->n_chain;
}

static tsr_status mark_mobile(tsr_topology *t, const tsr_flexibility *f,
                              tsr_err *err)
{
    const tsr_strings *mobile = f->mobile;
    char text[TSR_CHAINS_SIZE];
    int n_mobile = 0;
    const int n_own = n_own_chain(t), is_symmetric = t->symmetry.n > 1;
    for (int k = 0; k < count_of(mobile); k++) {
        int found = 0;
        if (is_symmetric && strcmp(mobile->item[k], "subunit") == 0) {
            t->moves_subunit = n_own > 1;
            t->mobile[0] |= n_own == 1;
            continue;
        }
        for (int c = 0; c < t->n_chain; c++) {
            if (strcmp(t->residue[t->chain_start[c]].chain, mobile->item[k]) !=
                0)
                continue;
            found = 1;
            n_mobile += !t->mobile[c % n_own];
            t->mobile[c % n_own] = 1;
        }
        if (!found)
            return tsr_fail(
                err, TSR_E_CONFIG,
                "structure.mobile.%d: there is no chain '%s'; chains: %s", k,
                mobile->item[k],
                tsr_range_chains(t->n_residue, t->residue, text));
    }
    if (f->is_placed && t->n_chain == 1 && count_of(f->fixed) == 0)
        t->mobile[0] = 1;
    if (n_mobile == t->n_chain && (!f->is_placed || f->contacts > 0) &&
        !is_symmetric)
        return tsr_fail(err, TSR_E_CONFIG,
                        "structure.mobile: every chain is named; at least one "
                        "chain has to stay as the reference, in a density map "
                        "where tessera map dock places it");
    return TSR_OK;
}

/* Refuses a fixed range with residues that the user declared flexible, or of a
 * chain that moves as a whole. mark: residues of this range. */
static tsr_status check_fixed(const tsr_topology *t, const tsr_flexibility *f,
                              const char *range, const int *mark, tsr_err *err)
{
    char text[32];
    for (int i = 0; i < t->n_residue; i++) {
        const tsr_residue *r = &t->residue[i];
        if (!mark[i])
            continue;
        label(r, text);
        if (r->flexible && count_of(f->flexible) > 0 && !is_all(f->flexible))
            return tsr_fail(err, TSR_E_CONFIG,
                            "residue range '%s': %s is also in "
                            "structure.flexible; remove it from one of the two",
                            range, text);
        if (t->mobile[r->in_chain])
            return tsr_fail(
                err, TSR_E_CONFIG,
                "residue range '%s': %s belongs to chain %s, which moves as a "
                "rigid body (structure.mobile); remove it from one of the two",
                range, text, r->chain);
    }
    return TSR_OK;
}

static tsr_status mark_fixed(tsr_topology *t, const tsr_flexibility *f,
                             int *mark, tsr_err *err)
{
    TSR_TRY(mark_ranges(t, f, f->fixed, "fixed", check_fixed, mark, err));
    for (int i = 0; i < t->n_residue; i++)
        if (mark[i]) {
            t->residue[i].flexible = 0;
            t->residue[i].is_fixed = 1;
        }
    return TSR_OK;
}

/* Numbers the rigid units. A break does not end a unit. */
static void number_units(tsr_topology *t)
{
    int unit = 0;
    for (int i = 0; i < t->n_residue; i++) {
        tsr_residue *r = &t->residue[i];
        int joined = i > r->chain_first && !t->residue[i - 1].flexible;
        r->unit = r->flexible ? -1 : joined ? unit : ++unit;
    }
}

static int is_chain_fixed(const tsr_topology *t, int chain)
{
    for (int i = t->chain_start[chain]; i < t->chain_start[chain + 1]; i++)
        if (t->residue[i].is_fixed)
            return 1;
    return 0;
}

/* In a complex, a part of each chain that is not mobile must stay: the fixed
 * ranges, or else the largest rigid unit, which is fixed here. */
static void fix_largest_unit(tsr_topology *t, int chain, tsr_log *log)
{
    const int first = t->chain_start[chain], end = t->chain_start[chain + 1];
    int best = -1, best_size = 0;
    for (int i = first, size = 0; i < end; i++) {
        const tsr_residue *r = &t->residue[i];
        int same = i > first && r->unit == t->residue[i - 1].unit;
        size = r->unit < 0 ? 0 : same ? size + 1 : 1;
        if (size > best_size) {
            best_size = size;
            best = r->unit;
        }
    }
    if (t->n_chain == 1 || t->mobile[chain] || best < 0 ||
        is_chain_fixed(t, chain))
        return;
    int from = -1;
    for (int i = first; i < end; i++)
        if (t->residue[i].unit == best) {
            t->residue[i].is_fixed = 1;
            from = from < 0 ? i : from;
        }
    tsr_info(
        log,
        "chain %s: its residues %d to %d keep their position relative to the "
        "other chains (structure.fixed and structure.mobile change this)",
        t->residue[first].chain, t->residue[from].number,
        t->residue[from + best_size - 1].number);
}

/* ---- attached chains ----
 *
 * In complexes with strands of nucleotides, strands may hold the parts of the
 * molecule together: a strand is attached to the domain that binds it, and a
 * protein to the other end of the strand. Chains are placed one after another,
 * always the chain with most contacts to chains already placed. */

/* Two residues are in contact if any of their backbone atoms are closer than
 * this, Angstrom. Side chains and bases can bridge such a distance. */
static const double contact_ang = 10.0;

typedef struct {
    tsr_topology *t;
    const tsr_conformation *c;
    int *placed; /* [n_chain] 1: the chain is placed */
    int *count;  /* [n_residue + 1] contacts of each unit */
} search;

/* A contact between rigid units of two chains, given by a residue of each. */
typedef struct {
    int n; /* contacts */
    int attached, host;
} contact;

static int are_in_contact(const search *s, int i, int j)
{
    const double(*x)[3] = (const double(*)[3])s->c->backbone[i];
    const double(*y)[3] = (const double(*)[3])s->c->backbone[j];
    const double contact2 = contact_ang * contact_ang;
    if (tsr_vec3_distance2(x[TSR_CA], y[TSR_CA]) > 4.0 * contact2)
        return 0;
    for (int a = 0; a < 4; a++)
        for (int b = 0; b < 4; b++)
            if (tsr_vec3_distance2(x[a], y[b]) < contact2)
                return 1;
    return 0;
}

static int is_strand(const search *s, int chain)
{
    return s->t->residue[s->t->chain_start[chain]].link != TSR_LINK_NONE;
}

/* Finds the pair of rigid units of chains x and y with most contacts. Updates
 * `best` if that pair has more contacts. */
static void find_best_contact(search *s, int x, int y, contact *best)
{
    const tsr_residue *r = s->t->residue;
    const int *start = s->t->chain_start;
    for (int i = start[x], end; i < start[x + 1]; i = end) {
        for (end = i + 1; end < start[x + 1] && r[end].unit == r[i].unit;)
            end++;
        if (r[i].unit < 0)
            continue;
        for (int j = start[y]; j < start[y + 1]; j++)
            if (r[j].unit >= 0)
                s->count[r[j].unit] = 0;
        for (int j = start[y]; j < start[y + 1]; j++)
            for (int k = i; k < end && r[j].unit >= 0; k++)
                if (are_in_contact(s, k, j) && ++s->count[r[j].unit] > best->n)
                    *best = (contact){s->count[r[j].unit], i, j};
    }
}

/* A chain is attached at one of its rigid parts. Warns if another part touches
 * a placed chain, because that contact is lost when the part moves. */
static void warn_of_lost_contact(const search *s, int x, int unit_residue,
                                 tsr_log *log)
{
    const tsr_residue *r = s->t->residue;
    const int *start = s->t->chain_start;
    for (int i = start[x]; i < start[x + 1]; i++)
        for (int j = 0; j < s->t->n_residue && r[i].unit >= 0; j++) {
            const int y = r[j].in_chain;
            if (y == x || !s->placed[y] || r[j].unit < 0 ||
                r[i].unit == r[unit_residue].unit || !are_in_contact(s, i, j))
                continue;
            tsr_warn(log,
                     "chain %s is attached by its part at %s:%d; its part at "
                     "%s:%d touches %s:%d, and separates from it when it moves",
                     r[i].chain, r[unit_residue].chain, r[unit_residue].number,
                     r[i].chain, r[i].number, r[j].chain, r[j].number);
            return;
        }
}

/* Places the chain of a contact. With a strand among the two chains, the unit
 * in contact is fixed, and the chain is attached to the host unless the host
 * stays in space. Two proteins keep their relative position. */
static void attach(search *s, const contact *at, tsr_log *log)
{
    tsr_topology *t = s->t;
    const tsr_residue *r = &t->residue[at->attached],
                      *h = &t->residue[at->host];
    const int x = r->in_chain, y = h->in_chain;
    s->placed[x] = 1;
    if (!is_strand(s, x) && !is_strand(s, y)) {
        fix_largest_unit(t, x, log);
        return;
    }
    for (int i = r->chain_first; i <= r->chain_last; i++)
        if (t->residue[i].unit == r->unit)
            t->residue[i].is_fixed = 1;
    warn_of_lost_contact(s, x, at->attached, log);
    int host_attached = 0;
    for (int k = 0; k < t->n_attached; k++)
        host_attached |= t->attached[k].chain == y;
    if (h->is_fixed && (y == x || !host_attached))
        return;
    t->attached[t->n_attached++] =
        (tsr_attached_chain){x, r->chain_first, r->chain_last, at->host};
    tsr_info(log,
             "chain %s moves with the rigid part of %s:%d, which is in contact "
             "with its part at %s:%d",
             r->chain, h->chain, h->number, r->chain, r->number);
}

/* The chain to be placed next if no chain has contacts with placed chains: the
 * one with most rigid residues, proteins before strands. */
static int largest_chain(const search *s)
{
    int best = -1, most = -1;
    for (int k = 0; k < s->t->n_chain; k++) {
        int n = 0;
        for (int i = s->t->chain_start[k]; i < s->t->chain_start[k + 1]; i++)
            n += s->t->residue[i].unit >= 0;
        n = is_strand(s, k) ? n : n + s->t->n_residue;
        if (!s->placed[k] && n > most)
            most = n, best = k;
    }
    return best;
}

static void attach_all(search *s, tsr_log *log)
{
    int n_placed = 0;
    for (int k = 0; k < s->t->n_chain; k++) {
        s->placed[k] = s->t->mobile[k] || is_chain_fixed(s->t, k);
        n_placed += s->placed[k];
    }
    for (; n_placed < s->t->n_chain; n_placed++) {
        contact best = {0, -1, -1};
        for (int x = 0; x < s->t->n_chain; x++)
            for (int y = 0; y < s->t->n_chain && !s->placed[x]; y++)
                if (s->placed[y])
                    find_best_contact(s, x, y, &best);
        if (best.n > 0) {
            attach(s, &best, log);
            continue;
        }
        const int k = largest_chain(s);
        s->placed[k] = 1;
        fix_largest_unit(s->t, k, log);
    }
}

/* For models with links of nucleotides: attaches chains to each other, and
 * fixes a rigid unit in each chain that is not mobile and has such a unit. */
static tsr_status set_attached(tsr_topology *t, const tsr_conformation *c,
                               tsr_log *log, tsr_err *err)
{
    tsr_pool pool = {0};
    search s = {.t = t, .c = c};
    tsr_pool_array(&t->pool, t->attached, t->n_chain);
    tsr_pool_array(&pool, s.placed, t->n_chain);
    tsr_pool_array(&pool, s.count, t->n_residue + 2);
    tsr_status status = tsr_pool_check(&pool, err);
    TSR_THEN(status, tsr_pool_check(&t->pool, err));
    if (status == TSR_OK)
        attach_all(&s, log);
    tsr_pool_clear(&pool);
    if (status == TSR_OK && t->n_attached > TSR_MAX_ATTACHED)
        return tsr_fail(err, TSR_E_CONFIG,
                        "%d chains are attached to moving parts of other "
                        "chains, but at most %d can be; name some of them, "
                        "with these parts, in structure.fixed",
                        t->n_attached, TSR_MAX_ATTACHED);
    return status;
}

/* ---- derived quantities ---- */

/* A unit with a fixed residue is fixed as a whole. All fixed units are one
 * unit, number 0. */
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

/* The fixed residues of an attached chain belong to the rigid unit of its
 * host. */
static void join_attached(tsr_topology *t)
{
    for (int k = 0; k < t->n_attached; k++)
        for (int i = t->attached[k].first; i <= t->attached[k].last; i++)
            if (t->residue[i].is_fixed)
                t->residue[i].unit = t->residue[t->attached[k].host].unit;
}

/* A chain of a complex without a rigid unit cannot keep its position relative
 * to the others, so it moves as a whole. If no chain has a rigid unit, the
 * first stays. */
static void set_unanchored(tsr_topology *t, tsr_log *log)
{
    int is_free = t->symmetry.n <= 1;
    for (int k = 0; k < t->n_chain; k++)
        is_free &= !is_chain_fixed(t, k);
    for (int k = 0; k < n_own_chain(t); k++) {
        const int is_fixed = is_chain_fixed(t, k);
        if (t->n_chain > 1 && !t->mobile[k] && !is_fixed && !is_free) {
            t->mobile[k] = 1;
            tsr_info(
                log,
                "chain %s: no part of it is rigid, so it moves relative to the "
                "other chains as a whole (structure.fixed changes this)",
                t->residue[t->chain_start[k]].chain);
        }
        is_free &= t->mobile[k] || is_fixed;
    }
}

/* The side that torsions of residue i move: 1 the C side, 0 the N side; -1:
 * neither side may move. */
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

/* Copies follow the subunit: nothing in them is free. Fixed parts of the copies
 * keep their distances to each other only if no part of the subunit moves as a
 * whole. */
static void set_copies(tsr_topology *t)
{
    int n_unit = 1, is_still = !t->moves_subunit;
    for (int i = 0; i < t->n_own; i++)
        n_unit = t->residue[i].unit >= n_unit ? t->residue[i].unit + 1 : n_unit;
    for (int i = t->n_own; i < t->n_residue; i++) {
        tsr_residue *r = &t->residue[i];
        const int unit = t->residue[i % t->n_own].unit;
        r->unit = unit > 0 || (unit == 0 && !is_still) ? unit + r->copy * n_unit
                                                       : unit;
        r->flexible = 0;
        r->is_fixed = 1;
    }
}

static void list_torsions(tsr_topology *t)
{
    t->n_torsion = t->n_side = 0;
    for (int i = 0; i < t->n_own; i++) {
        const tsr_residue *r = &t->residue[i];
        if (!r->flexible)
            continue;
        int side = turning_side(t, i);
        if (r->has_phi && side >= 0)
            t->torsion[t->n_torsion++] = (tsr_torsion){i, TSR_PHI, side};
        if (r->has_psi && side >= 0)
            t->torsion[t->n_torsion++] = (tsr_torsion){i, TSR_PSI, side};
        if (tsr_amino_has_side_chain(r->amino) ||
            (r->link == TSR_LINK_SUGAR && t->base[i].exists))
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
            r->has_phi &= r->link != TSR_LINK_SUGAR; /* delta is constant */
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

/* Applies the ranges of the configuration: flexible and fixed residues, mobile
 * chains. */
static tsr_status mark_all(tsr_topology *t, const tsr_flexibility *f, int *mark,
                           tsr_err *err)
{
    int n_flexible = 0;
    TSR_TRY(mark_flexible(t, f, mark, err));
    TSR_TRY(mark_mobile(t, f, err));
    TSR_TRY(mark_fixed(t, f, mark, err));
    for (int i = 0; i < t->n_residue; i++)
        n_flexible += mark[i] = t->residue[i].flexible;
    TSR_TRY(tsr_wrap(err, check_chirality(t, f, mark, err), "structure.file"));
    if (n_flexible == 0 && count_of(f->mobile) == 0 && !f->is_placed)
        return tsr_fail(
            err, TSR_E_CONFIG,
            "structure: nothing can move: no residue is flexible "
            "(structure.flexible, structure.rigid, structure.fixed) and no "
            "chain moves as a rigid body (structure.mobile)");
    return TSR_OK;
}

tsr_status tsr_freedom_set(tsr_topology *t, const tsr_conformation *c,
                           const tsr_flexibility *f, tsr_log *log, tsr_err *err)
{
    if (count_of(f->flexible) > 0 && count_of(f->rigid) > 0)
        return tsr_fail(err, TSR_E_CONFIG,
                        "structure: give flexible ranges or rigid ranges, "
                        "not both");
    if (t->symmetry.n > 1 && t->n_link > 0)
        return tsr_fail(err, TSR_E_CONFIG,
                        "structure.symmetry: strands of nucleotides cannot "
                        "turn in a symmetric assembly; leave them out of "
                        "structure.flexible");
    describe_torsions(t, c);
    if (f->is_frozen) {
        number_units(t);
        return TSR_OK;
    }
    int *mark = calloc(2 * (size_t)t->n_residue, sizeof *mark);
    tsr_status status = tsr_allocated(mark, err);
    TSR_THEN(status, mark_all(t, f, mark, err));
    free(mark);
    TSR_TRY(status);
    number_units(t);
    t->contacts = f->contacts;
    if (t->n_link > 0 && t->n_chain > 1)
        TSR_TRY(set_attached(t, c, log, err));
    for (int k = 0; k < n_own_chain(t); k++)
        fix_largest_unit(t, k, log);
    join_fixed(t);
    join_attached(t);
    set_unanchored(t, log);
    set_copies(t);
    list_torsions(t);
    return TSR_OK;
}
