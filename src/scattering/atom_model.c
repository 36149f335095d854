/* Puts an atom's numbers together: form factor, displaced volume, hydrogens,
 * and the bead of hydration over the part of its sphere that water reaches
 * (surface.c). */
#include "scattering/atom_model.h"

#include "core/vec3.h"
#include "molecule/residue.h"
#include "molecule/structure.h"
#include "scattering/form_factor.h"
#include "scattering/neutron.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#define PI 3.14159265358979323846
enum { MAX_HYDROGEN = 8, MAX_Z = 98 };

/* Hydration at the atoms. */
static const double atom_probe_ang = 1.8; /* as FoXS */
static const double foxs_decay_ang2 = 0.115;

/* The layer. On all curves at hand probes of 2.2 to 3.1 Angstrom do well, and
 * the farther ones the better, but not for all (docs/forward-model.md): 2.8 is
 * the diameter of a water molecule. */
static const double layer_probe_ang = 2.8;
static const double layer_thickness_ang = 3.0;
static const double layer_contrast = 0.01; /* e/A^3 where c2 = 1 */
static const double layer_spread_ang2 = 0.9;
static const double b_factor_ang2 = 12.0;
static const double voronoi_share = 0.4;

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

/* Mean Voronoi volumes of an atom with its hydrogens in proteins, A^3, by how
 * many it has: Tsai et al. 1999, J. Mol. Biol. 290, 253, small and large, and
 * planar and tetrahedral ones, averaged. 0: none there. */
static double voronoi_volume(int z, int n_hydrogen)
{
    static const double carbon[] = {9.2, 17.0, 23.7, 36.7};
    static const double nitrogen[] = {8.7, 15.0, 22.7, 21.4};
    static const double oxygen[] = {15.9, 18.0, 0.0, 0.0};
    static const double sulphur[] = {29.2, 36.8, 0.0, 0.0};
    const double *of = z == 6    ? carbon
                       : z == 7  ? nitrogen
                       : z == 8  ? oxygen
                       : z == 16 ? sulphur
                                 : NULL;
    return of != NULL && n_hydrogen < 4 ? of[n_hydrogen] : 0.0;
}

/* Fraser's volumes are small where atoms are polar and large where they are
 * not, Voronoi's are the space that each has. Gaussians of either fit some
 * molecules better and some worse; those of a volume between the two fit all
 * (docs/forward-model.md). */
static double volume_of(tsr_solvent_model solvent, int z, int n_hydrogen)
{
    double fraser =
        tsr_displaced_volume(z) + n_hydrogen * tsr_displaced_volume(1);
    double voronoi = voronoi_volume(z, n_hydrogen);
    return solvent == TSR_SOLVENT_LAYER && voronoi > 0.0
               ? fraser + voronoi_share * (voronoi - fraser)
               : fraser;
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
    free(model->owner);
    free(model->kind);
    free(model);
}

/* ---- atoms ---- */

/* Numbers the kinds of atoms that occur; atom [n_atom] are their places in the
 * file. */
static void find_types(const tsr_atoms *atoms, const int *atom,
                       const int *n_hydrogen, tsr_atom_model *m)
{
    int number[MAX_Z + 1][MAX_HYDROGEN + 1];
    memset(number, 0, sizeof number);
    for (int i = 0; i < m->n_atom; i++)
        number[atoms->atom[atom[i]].z][n_hydrogen[atom[i]]] = 1;
    for (int z = 1; z <= MAX_Z; z++)
        for (int h = 0; h <= MAX_HYDROGEN; h++)
            if (number[z][h]) {
                number[z][h] = m->n_type;
                m->kind[m->n_type++] =
                    (tsr_atom_kind){.z = z,
                                    .n_hydrogen = h,
                                    .volume = volume_of(m->solvent, z, h)};
            }
    for (int i = 0; i < m->n_atom; i++)
        m->type[i] = number[atoms->atom[atom[i]].z][n_hydrogen[atom[i]]];
}

static void add_up(tsr_atom_model *m)
{
    double centre[3] = {0.0, 0.0, 0.0}, moment = 0.0;
    for (int pass = 0; pass < 2; pass++)
        for (int i = 0; i < m->n_atom; i++) {
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
            m->radius_ang += radius_of(k->volume) / m->n_atom;
        }
    m->rg_ang = sqrt(moment / m->mass);
    m->power_radius_ang = m->radius_ang;
    if (m->solvent == TSR_SOLVENT_FOXS)
        m->power_radius_ang *= cbrt(0.75 / PI);
}

/* ---- hydration ---- */

/* The bead of a part of the sphere around x: see the header. A cap that is the
 * fraction f has its centroid 1 - f from the centre. */
static void place_bead(const double x[3], double radius, double fraction,
                       const double vector[3], double out[3])
{
    double by = radius / (fraction * fmax(1.0 - fraction, 0.5));
    for (int c = 0; c < 3; c++)
        out[c] = x[c] + by * vector[c];
}

static void add_beads(tsr_atom_model *m, const double *radius,
                      const double *fraction, const double (*vector)[3])
{
    for (int i = 0; i < m->n_atom; i++) {
        double r = radius[i] + layer_probe_ang;
        if (fraction[i] <= 0.0)
            continue;
        place_bead(m->xyz[i], r, fraction[i], vector[i], m->xyz[m->n]);
        m->surface[m->n] = 4.0 * PI * r * r * fraction[i];
        m->owner[m->n] = i;
        m->type[m->n++] = m->n_type;
    }
    m->kind[m->n_type++] = (tsr_atom_kind){0};
}

static tsr_status hydrate(tsr_atom_model *m, tsr_err *err)
{
    size_t n = (size_t)m->n_atom;
    int is_layer = m->solvent == TSR_SOLVENT_LAYER;
    double *radius = calloc(n, sizeof *radius);
    double *fraction = calloc(n, sizeof *fraction);
    double(*vector)[3] = calloc(n, sizeof *vector);
    tsr_status status = TSR_OK;
    if (radius == NULL || fraction == NULL || vector == NULL)
        status = tsr_no_memory(err);
    for (size_t i = 0; i < n && status == TSR_OK; i++)
        radius[i] = radius_of(m->kind[m->type[i]].volume);
    TSR_THEN(status,
             tsr_surface_exposed(m->n_atom, (const double(*)[3])m->xyz, radius,
                                 is_layer ? layer_probe_ang : atom_probe_ang,
                                 fraction, vector, err));
    if (status == TSR_OK && is_layer)
        add_beads(m, radius, fraction, (const double(*)[3])vector);
    for (size_t i = 0; i < n && status == TSR_OK && !is_layer; i++)
        m->surface[i] = fraction[i];
    free(radius);
    free(fraction);
    free(vector);
    return status;
}

double tsr_solvent_contrast(tsr_solvent_model solvent)
{
    double radius = 1.58 + atom_probe_ang, electrons = 3.51;
    return solvent == TSR_SOLVENT_LAYER
               ? layer_contrast
               : electrons / (4.0 * PI * radius * radius * layer_thickness_ang);
}

/* ---- the model ---- */

/* Room for as many beads as atoms. */
static tsr_status reserve(tsr_atom_model *m, size_t n, tsr_err *err)
{
    m->xyz = calloc(2 * n, sizeof *m->xyz);
    m->type = calloc(2 * n, sizeof *m->type);
    m->surface = calloc(2 * n, sizeof *m->surface);
    m->owner = calloc(2 * n, sizeof *m->owner);
    m->kind = calloc(MAX_Z * (MAX_HYDROGEN + 1) + 1, sizeof *m->kind);
    if (m->xyz == NULL || m->type == NULL || m->surface == NULL ||
        m->owner == NULL || m->kind == NULL)
        return tsr_fail(err, TSR_E_NOMEM, "out of memory for %zu atoms", n);
    return TSR_OK;
}

static tsr_status fill(const tsr_atoms *atoms, const int *n_hydrogen, int *atom,
                       tsr_atom_model *m, tsr_err *err)
{
    for (int i = 0; i < atoms->n_atom; i++)
        if (atoms->atom[i].z != 1) {
            tsr_vec3_copy(m->xyz[m->n], atoms->atom[i].xyz);
            m->owner[m->n] = m->n;
            atom[m->n++] = i;
        }
    m->n_atom = m->n;
    if (m->n == 0)
        return tsr_fail(err, TSR_E_DATA,
                        "'%s' holds nothing but hydrogens; give the atoms that "
                        "carry them",
                        atoms->path);
    find_types(atoms, atom, n_hydrogen, m);
    add_up(m);
    return hydrate(m, err);
}

tsr_status tsr_atom_model_new(const tsr_atoms *atoms, tsr_solvent_model solvent,
                              double density, tsr_atom_model **out,
                              tsr_err *err)
{
    size_t n = (size_t)atoms->n_atom;
    tsr_status status = TSR_OK;
    *out = NULL;
    tsr_atom_model *m = calloc(1, sizeof *m);
    int *work = calloc(2 * n, sizeof *work);
    if (m == NULL || work == NULL) {
        status = tsr_fail(err, TSR_E_NOMEM, "out of memory for %zu atoms", n);
    } else {
        m->solvent = solvent;
        m->density = density;
        status = reserve(m, n, err);
    }
    TSR_THEN(status, tsr_hydrogens_assign(atoms, work, &m->hydrogens, err));
    TSR_THEN(status, fill(atoms, work, work + n, m, err));
    if (status == TSR_OK) {
        *out = m;
        m = NULL;
    }
    tsr_atom_model_free(m);
    free(work);
    return status;
}

/* ---- amplitudes ---- */

static double displaced(double density, double volume, double q)
{
    return density * volume * exp(-q * q * cbrt(volume * volume) / (4.0 * PI));
}

/* One water molecule in water. */
static double water(double q)
{
    return tsr_atom_form_factor(8, q) + 2.0 * tsr_atom_form_factor(1, q) -
           displaced(TSR_WATER_DENSITY,
                     tsr_displaced_volume(8) + 2.0 * tsr_displaced_volume(1),
                     q);
}

static void of_kind(const tsr_atom_model *m, const tsr_atom_kind *kind,
                    double q, double out[TSR_ATOM_COMP])
{
    double at = m->solvent == TSR_SOLVENT_FOXS ? 0.0 : q, by = 1.0;
    if (m->solvent == TSR_SOLVENT_FOXS)
        by = exp(-foxs_decay_ang2 * q * q);
    out[0] = out[1] = out[2] = 0.0;
    if (kind->z == 0) {
        out[2] = layer_contrast * layer_thickness_ang *
                 exp(-layer_spread_ang2 * q * q);
        if (m->is_neutron) /* denser by the same part of the solvent */
            out[2] *= m->density / TSR_WATER_DENSITY;
        return;
    }
    out[0] = m->is_neutron
                 ? tsr_neutron_amplitude(kind, q)
                 : by * (tsr_atom_form_factor(kind->z, at) +
                         kind->n_hydrogen * tsr_atom_form_factor(1, at));
    out[1] = by * displaced(m->density, kind->volume, at);
    if (m->solvent == TSR_SOLVENT_LAYER)
        out[0] *= exp(-b_factor_ang2 * q * q / (16.0 * PI * PI));
    else
        out[2] = by * water(at);
}

void tsr_atom_model_factors(const tsr_atom_model *model, int n_q,
                            double dq_inv_ang, double *out)
{
    size_t row = (size_t)n_q, comp = (size_t)model->n_type * row;
    for (int t = 0; t < model->n_type; t++)
        for (int k = 0; k < n_q; k++) {
            double f[TSR_ATOM_COMP];
            of_kind(model, &model->kind[t], k * dq_inv_ang, f);
            for (size_t c = 0; c < TSR_ATOM_COMP; c++)
                out[c * comp + (size_t)t * row + (size_t)k] = f[c];
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
    const int amino = tsr_amino_by_three(r->parent);
    const tsr_amino_info *info = &tsr_amino_table[amino];
    int n = 0;
    for (int k = 0; k < info->n_atom; k++) {
        int is_there = 0;
        for (int i = r->first_atom; i < r->first_atom + r->n_atom; i++) {
            const char *name =
                tsr_amino_atom_name((tsr_amino)amino, atoms->atom[i].name);
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
        tsr_warn(
            log,
            "'%s': %d residue%s %d atoms (the first: %s %s:%d), which do not "
            "scatter; complete them (PDBFixer, MODELLER)",
            atoms->path, n_residue, n_residue == 1 ? " lacks" : "s lack",
            n_atom, first->name, first->chain, first->number);
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
    if (atoms->n_partial > 0)
        tsr_warn(log,
                 "'%s': %d atoms of ligands and ions have an occupancy below 1 "
                 "and scatter like the others; remove those that are not bound "
                 "in solution",
                 atoms->path, atoms->n_partial);
    if (atoms->n_no_element > 0)
        tsr_warn(log,
                 "'%s': %d atoms of unknown element are left out; give the "
                 "element in columns 77-78",
                 atoms->path, atoms->n_no_element);
    if (atoms->n_hydrogen > 0)
        tsr_info(log,
                 "'%s': the %d hydrogens of the file are not atoms of their "
                 "own; all are part of the atoms that carry them",
                 atoms->path, atoms->n_hydrogen);
    tsr_info(log,
             "'%s': %d atoms, %d hydrogens added to them: %d residues by "
             "name, %d by valence, %d as the file has them%s; mean radius "
             "%.3f A",
             atoms->path, model->n_atom, h->n_atom, h->n_table, h->n_valence,
             h->n_explicit,
             h->n_polar > 0 ? " (some those of N, O, S alone)" : "",
             model->radius_ang);
    for (int t = 0; t < model->n_type; t++) {
        int z = model->kind[t].z;
        int is_known = z == 1 || z == 6 || z == 7 || z == 8 || z == 16;
        if (z > 0 && !is_known && (t == 0 || model->kind[t - 1].z != z))
            tsr_info(log,
                     "'%s': atoms of atomic number %d displace %.2f A^3 each",
                     atoms->path, z, tsr_displaced_volume(z));
    }
}
