/* Which nucleotides are single-stranded: their bases pair with no other, and
 * nothing but nucleotides touches them. Bases that stack on their neighbours
 * may do so in a strand that moves, too. */
#include "molecule/parts.h"

#include "core/vec3.h"
#include "molecule/atoms.h"
#include "molecule/cell_list.h"
#include "molecule/nucleic.h"
#include "molecule/range.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const double bond_ang = 3.5;  /* between N and O of two bases */
static const double touch_ang = 4.5; /* of what is no nucleotide */
enum { LEAST_STRETCH = 2 };          /* the last pair of a helix frays alone */

typedef struct {
    const tsr_atoms *atoms;
    double (*xyz)[3];
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
    const int n = tsr_cell_list_near(s->cells, a->xyz, touch_ang,
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
    tsr_nucleic_free(nucleic);
    if (status == TSR_E_NOMEM)
        return tsr_no_memory(err);
    if (status != TSR_OK || !is_there || b->number < a->number)
        return TSR_OK;
    parts->n_strand++;
    return tsr_strings_append(&parts->flexible, text, err);
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
static tsr_status hold(const tsr_atoms *atoms, const char *range, char *held,
                       tsr_err *err)
{
    const size_t n = (size_t)atoms->n_residue + 1;
    tsr_residue *residue = calloc(n, sizeof *residue);
    int *mark = calloc(n, sizeof *mark);
    const int is_good = residue != NULL && mark != NULL;
    for (int r = 0; is_good && r < atoms->n_residue; r++) {
        memcpy(residue[r].chain, atoms->residue[r].chain,
               sizeof residue[r].chain);
        residue[r].number = atoms->residue[r].number;
        residue[r].chain_first =
            strcmp(residue[r].chain, residue[0].chain) == 0 ? 0 : r;
    }
    if (is_good && tsr_range_mark(range, atoms->n_residue, residue, 1, mark,
                                  NULL) == TSR_OK)
        for (int r = 0; r < atoms->n_residue; r++)
            held[r] = (char)(held[r] || mark[r]);
    free(residue);
    free(mark);
    return is_good ? TSR_OK : tsr_no_memory(err);
}

tsr_status tsr_parts_strands(const tsr_structure *structure,
                             const tsr_strings *fixed, tsr_parts *parts,
                             tsr_err *err)
{
    tsr_atoms *atoms = NULL;
    if (structure->n_nucleotide == 0 ||
        tsr_atoms_read(structure->path, &atoms, NULL) != TSR_OK)
        return TSR_OK;
    const size_t n = (size_t)atoms->n_atom + 1;
    search s = {.atoms = atoms};
    char *held = calloc((size_t)atoms->n_residue + 1, 1);
    s.xyz = calloc(n, sizeof *s.xyz);
    s.near = calloc(n, sizeof *s.near);
    s.part = calloc(n, sizeof *s.part);
    for (int i = 0; i < atoms->n_atom && s.xyz != NULL; i++)
        tsr_vec3_copy(s.xyz[i], atoms->atom[i].xyz);
    tsr_status status =
        held == NULL || s.xyz == NULL || s.near == NULL || s.part == NULL
            ? tsr_no_memory(err)
            : tsr_cell_list_new(atoms->n_atom, (const double(*)[3])s.xyz,
                                touch_ang, &s.cells, err);
    const int is_good = status == TSR_OK;
    for (int r = 0; r < atoms->n_residue && is_good; r++)
        if (is_nucleotide(&atoms->residue[r]))
            tsr_nucleic_parts(atoms, r, s.part + atoms->residue[r].first_atom);
    for (int r = 0; r < atoms->n_residue && is_good; r++)
        held[r] = (char)(is_nucleotide(&atoms->residue[r]) && is_held(&s, r));
    for (int k = 0; fixed != NULL && k < fixed->n; k++)
        TSR_THEN(status, hold(atoms, fixed->item[k], held, err));
    TSR_THEN(status, list(&s, structure, held, parts, err));
    tsr_cell_list_free(s.cells);
    tsr_atoms_free(atoms);
    free(s.xyz);
    free(s.near);
    free(s.part);
    free(held);
    return status;
}
