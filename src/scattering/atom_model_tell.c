/* What a file held, what its model assumes and what it lacks. */
#include "scattering/atom_model.h"

#include "core/vec3.h"
#include "io/parent.h"
#include "io/structure.h"
#include "model/residue.h"

#include <string.h>

static void tell_kinds(const tsr_atoms *atoms, tsr_log *log)
{
    const int *n = atoms->n_kind;
    if (n[TSR_MOLECULE_PROTEIN] < atoms->n_residue)
        tsr_info(log,
                 "'%s': %d amino acids, %d nucleotides, %d sugars, %d ions, %d "
                 "buffer molecules, %d other residues or ligands: all scatter",
                 atoms->path, n[TSR_MOLECULE_PROTEIN],
                 n[TSR_MOLECULE_NUCLEOTIDE], n[TSR_MOLECULE_SUGAR],
                 n[TSR_MOLECULE_ION], n[TSR_MOLECULE_BUFFER],
                 n[TSR_MOLECULE_OTHER]);
    if (n[TSR_MOLECULE_BUFFER] > 0)
        tsr_warn(log,
                 "'%s': %d molecules that crystals are grown from (glycerol, "
                 "sulphate, ...) scatter with the rest; remove them where they "
                 "are not bound in solution",
                 atoms->path, n[TSR_MOLECULE_BUFFER]);
    for (int r = 0; r < atoms->n_residue; r++) {
        const tsr_file_residue *residue = &atoms->residue[r];
        int is_first = 1;
        if (residue->is_tabulated || residue->kind == TSR_MOLECULE_ION)
            continue;
        for (int s = 0; s < r && is_first; s++)
            is_first = strcmp(atoms->residue[s].name, residue->name) != 0;
        if (is_first)
            tsr_info(log,
                     "'%s': no table knows the residue %s (%s:%d): its "
                     "elements scatter, its hydrogens follow from bond lengths",
                     atoms->path, residue->name, residue->chain,
                     residue->number);
    }
}

/* ---- what the model lacks ---- */

static int count_missing(const tsr_atoms *atoms, const tsr_file_residue *r)
{
    const tsr_amino_info *info =
        &tsr_amino_table[tsr_amino_by_three(r->parent)];
    const tsr_parent *parent = tsr_parent_by_letter(info->one);
    int n = 0;
    for (int k = 0; k < info->n_atom; k++) {
        int is_there = 0;
        for (int i = r->first_atom; i < r->first_atom + r->n_atom; i++) {
            const char *name = tsr_parent_atom(parent, atoms->atom[i].name);
            is_there |= name != NULL && strcmp(name, info->atom[k].name) == 0;
        }
        n += !is_there;
    }
    return n;
}

static const tsr_file_atom *
find_atom(const tsr_atoms *atoms, const tsr_file_residue *r, const char *name)
{
    for (int i = r->first_atom; i < r->first_atom + r->n_atom; i++)
        if (strcmp(atoms->atom[i].name, name) == 0)
            return &atoms->atom[i];
    return NULL;
}

/* Residues between two that follow each other in the file and are not bonded,
 * by their numbers. */
static int count_gap(const tsr_atoms *atoms, const tsr_file_residue *before,
                     const tsr_file_residue *r)
{
    const tsr_file_atom *c = find_atom(atoms, before, "C");
    const tsr_file_atom *n = find_atom(atoms, r, "N");
    if (strcmp(before->chain, r->chain) != 0 || c == NULL || n == NULL ||
        tsr_vec3_distance(c->xyz, n->xyz) < 2.5 ||
        r->number <= before->number + 1)
        return 0;
    return r->number - before->number - 1;
}

static void tell_missing(const tsr_atoms *atoms, tsr_log *log)
{
    const tsr_file_residue *first = NULL, *first_gap = NULL, *before = NULL;
    int n_residue = 0, n_atom = 0, n_gap = 0;
    for (int i = 0; i < atoms->n_residue; i++) {
        const tsr_file_residue *r = &atoms->residue[i];
        if (r->kind != TSR_MOLECULE_PROTEIN)
            continue;
        int missing = count_missing(atoms, r);
        int gap = before != NULL ? count_gap(atoms, before, r) : 0;
        if (missing > 0 && n_residue++ == 0)
            first = r;
        if (gap > 0 && n_gap == 0)
            first_gap = before;
        n_atom += missing;
        n_gap += gap;
        before = r;
    }
    if (n_residue > 0)
        tsr_warn(log,
                 "'%s': %d residues lack %d atoms (the first: %s %s:%d), which "
                 "do not scatter; complete them (PDBFixer, MODELLER)",
                 atoms->path, n_residue, n_atom, first->name, first->chain,
                 first->number);
    if (n_gap > 0)
        tsr_warn(log,
                 "'%s': chains are broken and lack %d residues by their "
                 "numbers (the first break is after %s:%d); what is missing "
                 "does not scatter",
                 atoms->path, n_gap, first_gap->chain, first_gap->number);
}

void tsr_atom_model_tell(const tsr_atoms *atoms, const tsr_atom_model *model,
                         tsr_log *log)
{
    const tsr_hydrogen_count *h = &model->hydrogens;
    tell_kinds(atoms, log);
    tell_missing(atoms, log);
    if (atoms->n_water + atoms->n_altloc_atom + atoms->n_model > 0)
        tsr_info(log,
                 "'%s': left out: %d waters, %d atoms of alternate locations, "
                 "%d models after the first",
                 atoms->path, atoms->n_water, atoms->n_altloc_atom,
                 atoms->n_model);
    if (atoms->n_no_element > 0)
        tsr_warn(log,
                 "'%s': %d atoms of unknown element are left out; give the "
                 "element in columns 77-78",
                 atoms->path, atoms->n_no_element);
    tsr_info(log,
             "'%s': %d atoms%s, %d hydrogens added to them: %d residues by "
             "name, %d by valence, %d have theirs in the file%s; mean radius "
             "%.3f A",
             atoms->path, model->n,
             atoms->n_hydrogen > 0 ? " with hydrogens" : "", h->n_atom,
             h->n_table, h->n_valence, h->n_explicit,
             h->n_polar > 0 ? " (some those of N, O, S alone)" : "",
             model->radius_ang);
    for (int t = 0; t < model->n_type; t++) {
        int z = model->kind[t].z;
        int is_known = z == 1 || z == 6 || z == 7 || z == 8 || z == 16;
        if (!is_known && (t == 0 || model->kind[t - 1].z != z))
            tsr_info(log,
                     "'%s': atoms of atomic number %d displace %.2f A^3 each",
                     atoms->path, z, tsr_displaced_volume(z));
    }
}
