#include "scattering/atom_model.h"

#include "core/vec3.h"
#include "io/parent.h"
#include "io/structure.h"
#include "model/residue.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#define PI 3.14159265358979323846
static const double rho0 = 0.334;    /* e/A^3, water */
static const double probe_ang = 1.8; /* as FoXS */
enum { N_POINT = 200, MAX_HYDROGEN = 8, MAX_Z = 98 };

double tsr_displaced_volume(int z)
{
    static const struct {
        int z;
        double volume;
    } table[] = {{1, 5.15},   {6, 16.44}, {7, 2.49},   {8, 9.13},
                 {12, 17.16}, {15, 5.73}, {16, 19.86}, {20, 31.89},
                 {25, 9.20},  {26, 7.99}, {29, 8.78},  {30, 9.85}};
    for (size_t i = 0; i < sizeof table / sizeof table[0]; i++)
        if (table[i].z == z)
            return table[i].volume;
    return tsr_atom_is_metal(z)
               ? 9.0
               : 4.0 / 3.0 * PI * pow(tsr_atom_vdw_radius(z), 3.0);
}

static double radius_of(double volume)
{
    return cbrt(0.75 * volume / PI);
}

void tsr_atom_model_free(tsr_atom_model *model)
{
    if (model == NULL)
        return;
    free(model->xyz);
    free(model->type);
    free(model->surface);
    free(model->kind);
    free(model);
}

/* Numbers the kinds of atoms that occur. */
static void find_types(const tsr_atoms *atoms, const int *n_hydrogen,
                       tsr_atom_model *m)
{
    int number[MAX_Z + 1][MAX_HYDROGEN + 1];
    memset(number, 0, sizeof number);
    for (int i = 0; i < m->n; i++)
        number[atoms->atom[i].z][n_hydrogen[i]] = 1;
    for (int z = 1; z <= MAX_Z; z++)
        for (int h = 0; h <= MAX_HYDROGEN; h++)
            if (number[z][h]) {
                number[z][h] = m->n_type;
                m->kind[m->n_type++] = (tsr_atom_kind){
                    z, h,
                    tsr_displaced_volume(z) + h * tsr_displaced_volume(1)};
            }
    for (int i = 0; i < m->n; i++)
        m->type[i] = number[atoms->atom[i].z][n_hydrogen[i]];
}

static void add_up(tsr_atom_model *m)
{
    double centre[3] = {0.0, 0.0, 0.0}, moment = 0.0;
    for (int pass = 0; pass < 2; pass++)
        for (int i = 0; i < m->n; i++) {
            const tsr_atom_kind *k = &m->kind[m->type[i]];
            double mass =
                tsr_atom_mass(k->z) + k->n_hydrogen * tsr_atom_mass(1);
            if (pass == 1) {
                moment += mass * tsr_vec3_distance2(m->xyz[i], centre);
                continue;
            }
            for (int c = 0; c < 3; c++)
                centre[c] = (m->mass * centre[c] + mass * m->xyz[i][c]) /
                            (m->mass + mass);
            m->mass += mass;
            m->n_electron += k->z + k->n_hydrogen;
            m->volume += k->volume;
            m->radius_ang += radius_of(k->volume) / m->n;
        }
    m->rg_ang = sqrt(moment / m->mass);
}

tsr_status tsr_atom_model_new(const tsr_atoms *atoms, tsr_atom_model **out,
                              tsr_err *err)
{
    size_t n = (size_t)atoms->n_atom;
    tsr_status status = TSR_OK;
    *out = NULL;
    tsr_atom_model *m = calloc(1, sizeof *m);
    int *n_hydrogen = calloc(n, sizeof *n_hydrogen);
    double *radius = calloc(n, sizeof *radius);
    if (m != NULL) {
        m->n = atoms->n_atom;
        m->xyz = calloc(n, sizeof *m->xyz);
        m->type = calloc(n, sizeof *m->type);
        m->surface = calloc(n, sizeof *m->surface);
        m->kind = calloc(MAX_Z * (MAX_HYDROGEN + 1), sizeof *m->kind);
    }
    if (m == NULL || n_hydrogen == NULL || radius == NULL || m->xyz == NULL ||
        m->type == NULL || m->surface == NULL || m->kind == NULL)
        status = tsr_fail(err, TSR_E_NOMEM, "out of memory for %d atoms",
                          atoms->n_atom);
    else
        status = tsr_hydrogens_assign(atoms, n_hydrogen, &m->hydrogens, err);
    if (status == TSR_OK) {
        for (int i = 0; i < m->n; i++)
            tsr_vec3_copy(m->xyz[i], atoms->atom[i].xyz);
        find_types(atoms, n_hydrogen, m);
        for (int i = 0; i < m->n; i++)
            radius[i] = radius_of(m->kind[m->type[i]].volume);
        add_up(m);
        status = tsr_surface_fraction(m->n, (const double(*)[3])m->xyz, radius,
                                      probe_ang, N_POINT, m->surface, err);
    }
    if (status == TSR_OK) {
        *out = m;
        m = NULL;
    }
    tsr_atom_model_free(m);
    free(n_hydrogen);
    free(radius);
    return status;
}

static double displaced(double volume, double q)
{
    return rho0 * volume * exp(-q * q * cbrt(volume * volume) / (4.0 * PI));
}

void tsr_atom_model_factors(const tsr_atom_model *model, int n_q,
                            double dq_inv_ang, double *out)
{
    const double water =
        tsr_displaced_volume(8) + 2.0 * tsr_displaced_volume(1);
    size_t row = (size_t)n_q, comp = (size_t)model->n_type * row;
    for (int t = 0; t < model->n_type; t++) {
        const tsr_atom_kind *kind = &model->kind[t];
        double *at = out + (size_t)t * row;
        for (int k = 0; k < n_q; k++) {
            double q = k * dq_inv_ang, h = tsr_atom_form_factor(1, q);
            at[k] = tsr_atom_form_factor(kind->z, q) + kind->n_hydrogen * h;
            at[comp + (size_t)k] = displaced(kind->volume, q);
            at[2 * comp + (size_t)k] =
                tsr_atom_form_factor(8, q) + 2.0 * h - displaced(water, q);
        }
    }
}

/* What a file held, what its model assumes and what it lacks. */

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
