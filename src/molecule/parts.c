/* From what holds together (parts_pieces.c) to parts, ranges and their texts. A
 * configuration names residues by number, so every range is checked to mean the
 * residues that it should, and no others. */
#include "molecule/parts.h"

#include "core/vec3.h"
#include "molecule/parts_steps.h"

#include <stdlib.h>
#include <string.h>

void tsr_parts_free(tsr_parts *parts)
{
    if (parts == NULL)
        return;
    for (int k = 0; k < parts->n_note; k++)
        free(parts->note[k]);
    for (int k = 0; k < parts->flexible.n; k++)
        free(parts->flexible.item[k]);
    for (int k = 0; k < parts->fixed.n; k++)
        free(parts->fixed.item[k]);
    free(parts->note);
    free(parts->flexible.item);
    free(parts->fixed.item);
    free(parts->kind);
    free(parts->confidence);
    free(parts->part);
    free(parts->rigid);
    free(parts->range);
    free(parts);
}

const char *tsr_evidence_text(tsr_evidence evidence)
{
    static const char *const text[] = {
        "contacts and secondary structure of the coordinates",
        "pLDDT in the B column, contacts and secondary structure",
        "predicted aligned errors, contacts and secondary structure",
        "bases that pair"};
    return text[evidence];
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
static void settle_numbers(const tsr_parts_graph *g, int *part)
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
static void keep_rigid(const tsr_parts_graph *g, const int *wished,
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

static void mark_parts(const tsr_parts_graph *g, const tsr_pieces *p,
                       const int *wished, tsr_parts *parts)
{
    for (int i = 0; i < g->n; i++)
        parts->part[i] = -1;
    for (int k = 0; k < p->n; k++) {
        const tsr_piece *piece = &p->piece[k];
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

static int part_beside(const tsr_parts_graph *g, const int *part, int i,
                       int step)
{
    int first = g->chain_first[i], last = g->chain_last[i];
    for (i += step; i >= first && i <= last; i += step)
        if (part[i] >= 0)
            return part[i];
    return -1;
}

static void list_ranges(const tsr_parts_graph *g, tsr_parts *parts)
{
    const int *part = parts->part;
    for (int i = 0; i < g->n; i++) {
        if (part[i] >= 0)
            continue;
        int last = i;
        while (last < g->chain_last[i] && part[last + 1] < 0 &&
               tsr_parts_is_linked(g, last + 1))
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
static int is_exact(const tsr_parts_graph *g, int first, int last)
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

static tsr_status add_text(const tsr_parts_graph *g, int first, int last,
                           tsr_strings *list, tsr_err *err)
{
    const tsr_residue_record *r = g->structure->residue;
    char text[64];
    if (last > first && is_exact(g, first, last)) {
        snprintf(text, sizeof text, "%s:%d-%d", r[first].chain, r[first].number,
                 r[last].number);
        return tsr_strings_append(list, text, err);
    }
    for (int i = first; i <= last; i++) {
        snprintf(text, sizeof text, "%s:%d", r[i].chain, r[i].number);
        if (i == first || r[i].number != r[i - 1].number)
            TSR_TRY(tsr_strings_append(list, text, err));
    }
    return TSR_OK;
}

/* Rigid runs of a chain that would move against each other. */
static int count_units(const tsr_parts_graph *g, const int *part, int first)
{
    int n = 0;
    for (int i = first; i <= g->chain_last[first]; i++)
        n += part[i] >= 0 && (i == first || part[i - 1] < 0);
    return n;
}

static tsr_status write_fixed(const tsr_parts_graph *g, tsr_parts *parts,
                              tsr_err *err)
{
    const int *part = parts->part;
    tsr_status status = TSR_OK;
    for (int i = 0; i < g->n && status == TSR_OK; i++) {
        int last = i;
        if (part[i] < 0 || !parts->rigid[part[i]].is_fixed ||
            count_units(g, part, g->chain_first[i]) < 2)
            continue;
        while (last < g->chain_last[i] && part[last + 1] == part[i])
            last++;
        status = add_text(g, i, last, &parts->fixed, err);
        i = last;
    }
    return status;
}

static tsr_status write_ranges(const tsr_parts_graph *g, tsr_parts *parts,
                               tsr_err *err)
{
    for (int k = 0; k < parts->n_range; k++)
        TSR_TRY(add_text(g, parts->range[k].first, parts->range[k].last,
                         &parts->flexible, err));
    return write_fixed(g, parts, err);
}

/* ---- all of it ---- */

static tsr_parts *parts_new(const tsr_parts_graph *g)
{
    size_t n = (size_t)g->n + 1;
    tsr_parts *p = calloc(1, sizeof *p);
    if (p == NULL)
        return NULL;
    p->n_residue = g->n;
    p->kind = calloc(n, 1);
    p->confidence = calloc(n, sizeof *p->confidence);
    p->part = calloc(n, sizeof *p->part);
    p->rigid = calloc(2 * n, sizeof *p->rigid);
    p->range = calloc(n, sizeof *p->range);
    if (p->kind == NULL || p->confidence == NULL || p->part == NULL ||
        p->rigid == NULL || p->range == NULL) {
        tsr_parts_free(p);
        return NULL;
    }
    if (g->n > 0) {
        const size_t size = (size_t)g->n * sizeof *p->confidence;
        memcpy(p->kind, g->kind, (size_t)g->n);
        memcpy(p->confidence, g->confidence, size);
    }
    p->evidence = g->pae != NULL ? TSR_EVIDENCE_PAE
                  : g->has_plddt ? TSR_EVIDENCE_PLDDT
                                 : TSR_EVIDENCE_CONTACTS;
    return p;
}

static tsr_status fill(const tsr_parts_graph *g, const tsr_cut *cut,
                       const tsr_pieces *pieces, const int *wished,
                       tsr_parts *parts, tsr_err *err)
{
    mark_parts(g, pieces, wished, parts);
    list_ranges(g, parts);
    TSR_TRY(write_ranges(g, parts, err));
    return tsr_parts_take_notes(g, cut, pieces, parts, err);
}

tsr_status tsr_parts_find(const tsr_structure *structure, const tsr_pae *pae,
                          tsr_parts_wish wish, tsr_parts **out, tsr_err *err)
{
    const int is_protein = structure->n_residue > 0;
    tsr_parts_graph graph = {.n = 0};
    tsr_pieces pieces = {0};
    tsr_parts *parts = NULL;
    tsr_cut *cut = calloc((size_t)structure->n_residue + 1, sizeof *cut);
    *out = NULL;
    tsr_status status = TSR_OK;
    if (is_protein)
        status = tsr_parts_graph_make(structure, pae, &graph, err);
    if (status == TSR_OK &&
        (cut == NULL || (parts = parts_new(&graph)) == NULL))
        status = tsr_no_memory(err);
    if (!is_protein && parts != NULL) /* strands alone have no parts */
        parts->evidence = TSR_EVIDENCE_PAIRS;
    if (is_protein) {
        TSR_THEN(status, tsr_parts_cut(&graph, cut, err));
        TSR_THEN(status,
                 tsr_pieces_make(&graph, cut, wish.no_loops, &pieces, err));
        TSR_THEN(status, fill(&graph, cut, &pieces, wish.rigid, parts, err));
    }
    tsr_pieces_clear(&pieces);
    tsr_parts_graph_clear(&graph);
    free(cut);
    if (status == TSR_OK)
        *out = parts;
    else
        tsr_parts_free(parts);
    return status;
}

static tsr_status find_in(const tsr_structure *structure, const char *path,
                          tsr_parts_wish wish, tsr_parts **out, tsr_err *err)
{
    tsr_pae *pae = NULL;
    tsr_status status = tsr_pae_read(path, &pae, err);
    TSR_THEN(status, tsr_parts_find(structure, pae, wish, out, err));
    tsr_pae_free(pae);
    return status;
}

tsr_status tsr_parts_with(const tsr_structure *structure, const char *pae,
                          tsr_parts_wish wish, tsr_log *log, tsr_parts **out,
                          char **used_pae, tsr_err *err)
{
    tsr_err why;
    char *path = pae == NULL ? tsr_pae_beside(structure->path) : strdup(pae);
    tsr_status status = path == NULL
                            ? tsr_parts_find(structure, NULL, wish, out, err)
                            : find_in(structure, path, wish, out, &why);
    int is_used = path != NULL && status == TSR_OK;
    if (path != NULL && status == TSR_E_DATA && pae == NULL) {
        tsr_warn(log, "not used: %s", why.message);
        status = tsr_parts_find(structure, NULL, wish, out, err);
    } else if (path != NULL && status != TSR_OK) {
        (void)tsr_fail(err, status, "%s", why.message);
    }
    if (status == TSR_OK && !wish.no_strands) {
        status = tsr_parts_strands(structure, wish.fixed, *out, err);
        if (status != TSR_OK) {
            tsr_parts_free(*out);
            *out = NULL;
            is_used = 0;
        }
    }
    if (used_pae != NULL)
        *used_pae = is_used ? path : NULL;
    if (!is_used || used_pae == NULL)
        free(path);
    return status;
}
