/* Divides the nucleotides of a file into links with torsions of their own
 * (guest.h). */
#include "molecule/guest.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

static const double longest_bond = 2.0;    /* O3'-P, Angstrom */
static const double most_c3_endo = 2.0071; /* delta: 115 degrees */

/* ---- atoms ---- */

enum { UNKNOWN = -1 };

/* Part of an atom by its name. A prime means the sugar. O1P, OP1, and S2P of a
 * phosphorothioate, are bound to P. */
static int part_by_name(const char *atom)
{
    const size_t n = strlen(atom);
    if (strcmp(atom, "P") == 0 || strncmp(atom, "OP", 2) == 0 ||
        strncmp(atom, "HOP", 3) == 0 || (n > 1 && atom[n - 1] == 'P'))
        return TSR_PART_PHOSPHATE;
    if (strchr(atom, '\'') == NULL)
        return UNKNOWN;
    return strchr(atom, '5') != NULL ? TSR_PART_METHYLENE : TSR_PART_SUGAR;
}

/* Assigns part `to` to all unassigned atoms connected by bonds to atom i. */
static void assign_connected(const tsr_atoms *atoms, int r, int i, int to,
                             int *part)
{
    const int first = atoms->residue[r].first_atom;
    for (int k = 0; k < atoms->residue[r].n_atom; k++)
        if (part[k] == UNKNOWN &&
            tsr_atoms_are_bonded(atoms, first + i, first + k)) {
            part[k] = to;
            assign_connected(atoms, r, k, to, part);
        }
}

/* The base is assigned first, so that its atoms stay with it in a poor model
 * where they are too close to the sugar. */
void tsr_nucleic_parts(const tsr_atoms *atoms, int r, int *part)
{
    const tsr_file_residue *residue = &atoms->residue[r];
    const tsr_file_atom *atom = atoms->atom + residue->first_atom;
    for (int i = 0; i < residue->n_atom; i++)
        part[i] = part_by_name(atom[i].name);
    for (int i = 0; i < residue->n_atom; i++)
        if (strcmp(atom[i].name, "C1'") == 0)
            assign_connected(atoms, r, i, TSR_PART_BASE, part);
    for (int i = 0; i < residue->n_atom; i++)
        if (part[i] != UNKNOWN && part[i] != TSR_PART_BASE)
            assign_connected(atoms, r, i, part[i], part);
    for (int i = 0; i < residue->n_atom; i++)
        part[i] = part[i] == UNKNOWN ? TSR_PART_BASE : part[i];
}

static const double *find_atom(const tsr_atoms *atoms, int r, const char *name)
{
    const tsr_file_residue *residue = &atoms->residue[r];
    for (int i = 0; i < residue->n_atom; i++)
        if (strcmp(atoms->atom[residue->first_atom + i].name, name) == 0)
            return atoms->atom[residue->first_atom + i].xyz;
    return NULL;
}

static tsr_status require_atom(const tsr_atoms *atoms, int r, const char *name,
                               double x[3], tsr_err *err)
{
    const tsr_file_residue *residue = &atoms->residue[r];
    const double *found = find_atom(atoms, r, name);
    if (found == NULL)
        return tsr_fail(
            err, TSR_E_DATA,
            "'%s': nucleotide %s:%d (%s) lacks atom %s, and its strand cannot "
            "move without it; complete the nucleotide, or leave the strand out "
            "of structure.flexible",
            atoms->path, residue->chain, residue->number, residue->name, name);
    tsr_vec3_copy(x, found);
    return TSR_OK;
}

/* ---- links ---- */

/* Replaces O3' of a strand that begins with a phosphate by a point 1.6 Angstrom
 * from P, opposite to the three oxygens. */
static tsr_status replace_o3(const tsr_atoms *atoms, int r, const double p[3],
                             const double o5[3], double corner[3], tsr_err *err)
{
    static const char *const names[2][3] = {{"OP1", "O1P", "S1P"},
                                            {"OP2", "O2P", "S2P"}};
    double away[3] = {0.0, 0.0, 0.0}, u[3], oxygen[3];
    for (int k = 0; k < 3; k++) {
        int which = 2;
        while (k < 2 && which > 0 &&
               find_atom(atoms, r, names[k][which]) == NULL)
            which--;
        if (k == 2)
            tsr_vec3_copy(oxygen, o5);
        else
            TSR_TRY(require_atom(atoms, r, names[k][which], oxygen, err));
        tsr_vec3_sub(u, p, oxygen);
        tsr_vec3_normalize(u);
        for (int d = 0; d < 3; d++)
            away[d] += u[d];
    }
    tsr_vec3_normalize(away);
    for (int d = 0; d < 3; d++)
        corner[d] = p[d] + 1.6 * away[d];
    return TSR_OK;
}

static void add_link(tsr_nucleic *n, const tsr_file_residue *residue,
                     const tsr_nucleic_link *link)
{
    tsr_nucleic_link *to = &n->link[n->n++];
    *to = *link;
    memcpy(to->name, residue->name, sizeof to->name);
    memcpy(to->chain, residue->chain, sizeof to->chain);
    to->number = residue->number;
    to->insertion = residue->insertion;
}

/* The base turns about the bond C1'-N9 of a purine or C1'-N1 of a pyrimidine.
 * Without this bond (pseudouridine) it is rigid with the sugar. */
static void find_base(const tsr_atoms *atoms, int r, tsr_nucleic_link *link)
{
    const double *o4 = find_atom(atoms, r, "O4'"),
                 *c1 = find_atom(atoms, r, "C1'");
    const double *n9 = find_atom(atoms, r, "N9"),
                 *n1 = find_atom(atoms, r, "N1");
    const double *n = n9 != NULL ? n9 : n1;
    const double *c = find_atom(atoms, r, n9 != NULL ? "C4" : "C2");
    if (o4 == NULL || c1 == NULL || n == NULL || c == NULL ||
        tsr_vec3_distance(c1, n) > longest_bond)
        return;
    link->has_base = 1;
    link->chi = tsr_von_mises_wrap(tsr_vec3_torsion(o4, c1, n, c));
    tsr_vec3_copy(link->c1, c1);
    tsr_vec3_copy(link->base, n);
}

/* A frame needs three points that are not collinear. */
static tsr_status check_link(const tsr_atoms *atoms, int r,
                             const tsr_nucleic_link *link, tsr_err *err)
{
    const double(*x)[3] = (const double(*)[3])link->xyz;
    const double angle = tsr_vec3_angle(x[0], x[1], x[2]);
    const tsr_file_residue *residue = &atoms->residue[r];
    if (angle > 0.5 && angle < 2.9)
        return TSR_OK;
    return tsr_fail(err, TSR_E_DATA,
                    "'%s': nucleotide %s:%d (%s) has a degenerate backbone: "
                    "three consecutive atoms lie on one line; rebuild it, or "
                    "leave the strand out of structure.flexible",
                    atoms->path, residue->chain, residue->number,
                    residue->name);
}

int tsr_nucleic_are_joined(const tsr_atoms *atoms, int before, int r)
{
    const double *o3 = find_atom(atoms, before, "O3'"),
                 *p = find_atom(atoms, r, "P");
    return o3 != NULL && p != NULL && tsr_vec3_distance(o3, p) < longest_bond;
}

/* Adds the links of nucleotide r. before: the preceding nucleotide in the
 * chain; -1: r is the first. */
static tsr_status add_nucleotide(const tsr_atoms *atoms, int before, int r,
                                 tsr_nucleic *n, tsr_err *err)
{
    const tsr_file_residue *residue = &atoms->residue[r];
    const double *p = find_atom(atoms, r, "P");
    const double *o3 = before >= 0 ? find_atom(atoms, before, "O3'") : NULL;
    const int is_bonded =
        before >= 0 && tsr_nucleic_are_joined(atoms, before, r);
    const int sugar = find_atom(atoms, r, "O2'") != NULL ? 0 : TSR_N_NUCLEIC;
    double o5[3], c5[3], c4[3], c3[3], own_o3[3], corner[3];
    TSR_TRY(require_atom(atoms, r, "O5'", o5, err));
    TSR_TRY(require_atom(atoms, r, "C5'", c5, err));
    TSR_TRY(require_atom(atoms, r, "C4'", c4, err));
    TSR_TRY(require_atom(atoms, r, "C3'", c3, err));
    TSR_TRY(require_atom(atoms, r, "O3'", own_o3, err));
    if (p != NULL && !is_bonded)
        TSR_TRY(replace_o3(atoms, r, p, o5, corner, err));
    const double *corner_or_o3 = is_bonded ? o3 : corner;
    const double *const at[3][3] = {
        {corner_or_o3, p, o5}, {o5, c5, c4}, {c4, c3, own_o3}};
    for (int k = p == NULL; k < 3; k++) {
        tsr_nucleic_link link = {.link = TSR_LINK_PHOSPHATE + (unsigned)k,
                                 .residue = r,
                                 .linked =
                                     k > 0 ? k > 1 || p != NULL : is_bonded,
                                 .class = sugar + k};
        for (int a = 0; a < 3; a++)
            tsr_vec3_copy(link.xyz[a], at[k][a]);
        TSR_TRY(check_link(atoms, r, &link, err));
        if (k == 2) {
            const double delta = tsr_vec3_torsion(c5, c4, c3, own_o3);
            link.class += !(delta > 0.0 && delta < most_c3_endo);
            find_base(atoms, r, &link);
        }
        add_link(n, residue, &link);
    }
    return TSR_OK;
}

/* ---- chains ---- */

static int has_protein(const tsr_structure *s, const char *chain)
{
    for (int i = 0; i < s->n_residue; i++)
        if (strcmp(s->residue[i].chain, chain) == 0)
            return 1;
    return 0;
}

/* Is a chain of nucleotides selected (tsr_nucleic_find)? is_only: it is the
 * only one. */
static int is_wanted(const tsr_structure *s, const char *chain, int is_only,
                     const tsr_strings *named)
{
    const int n = named != NULL ? named->n : 0;
    const int is_alone = s->n_residue == 0;
    tsr_range range;
    if (has_protein(s, chain))
        return 0;
    if (is_alone && (n == 0 || (n == 1 && strcmp(named->item[0], "all") == 0)))
        return 1;
    for (int k = 0; k < n; k++)
        if (tsr_range_read(named->item[k], &range) &&
            (strcmp(range.chain, chain) == 0 ||
             (is_alone && is_only && range.chain[0] == '\0')))
            return 1;
    return 0;
}

static int is_nucleotide(const tsr_file_residue *r)
{
    return r->kind == TSR_MOLECULE_NUCLEOTIDE;
}

/* Returns 1 for the first nucleotide of a chain. */
static int is_first(const tsr_atoms *atoms, int r)
{
    for (int k = 0; k < r; k++)
        if (is_nucleotide(&atoms->residue[k]) &&
            strcmp(atoms->residue[k].chain, atoms->residue[r].chain) == 0)
            return 0;
    return is_nucleotide(&atoms->residue[r]);
}

tsr_status tsr_nucleic_find(const tsr_structure *s, const tsr_atoms *atoms,
                            const tsr_strings *named, tsr_nucleic **out,
                            tsr_err *err)
{
    int n_chain = 0;
    tsr_status status = TSR_OK;
    *out = NULL;
    tsr_nucleic *n =
        calloc(1, sizeof *n + 3 * (size_t)atoms->n_residue * sizeof *n->link);
    TSR_TRY(tsr_allocated(n, err));
    for (int r = 0; r < atoms->n_residue; r++)
        n_chain += is_first(atoms, r);
    for (int r = 0; r < atoms->n_residue; r++) {
        const char *chain = atoms->residue[r].chain;
        if (!is_first(atoms, r) || !is_wanted(s, chain, n_chain == 1, named))
            continue;
        for (int k = r, before = -1; k < atoms->n_residue; k++) {
            if (!is_nucleotide(&atoms->residue[k]) ||
                strcmp(atoms->residue[k].chain, chain) != 0)
                continue;
            TSR_THEN(status, add_nucleotide(atoms, before, k, n, err));
            before = k;
        }
    }
    if (status == TSR_OK && n->n > 0)
        *out = n;
    else
        free(n);
    return status;
}
