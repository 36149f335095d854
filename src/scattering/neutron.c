/* Scattering lengths of united atoms in mixtures of H2O and D2O.
 *
 * Lengths: Sears 1992, Neutron News 3(3), 26. Which hydrogens exchange: Jacrot
 * 1976, Rep. Prog. Phys. 39, 911; Svergun et al. 1998, PNAS 95, 2267, whose
 * program takes 0.9 of the amides for exchanged. */
#include "scattering/neutron.h"

#include "io/structure.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* Molecules in a cubic Angstrom at 20 C: 0.9982 g/ml of 18.015, 1.1050 of
 * 20.028. */
static const double water_per_ang3 = 0.033368, heavy_per_ang3 = 0.033225;

double tsr_neutron_solvent(double d2o)
{
    const double h = tsr_atom_neutron_length(1), o = tsr_atom_neutron_length(8);
    return (1.0 - d2o) * water_per_ang3 * (2.0 * h + o) +
           d2o * heavy_per_ang3 * (2.0 * TSR_DEUTERIUM_LENGTH + o);
}

/* ---- one atom ---- */

/* What part of its hydrogens is deuterium: `share` of that of the solvent, and
 * `grown` whatever the solvent. */
typedef struct {
    double share, grown;
} deuterium;

static int is_labile(int z)
{
    return z == 7 || z == 8 || z == 16;
}

static deuterium deuterium_of(const tsr_neutron *n, const tsr_file_residue *r,
                              const tsr_file_atom *a)
{
    deuterium d = {0.0, 0.0};
    if (is_labile(a->z)) {
        const int is_amide =
            r->kind == TSR_MOLECULE_PROTEIN && strcmp(a->name, "N") == 0;
        d.share = is_amide ? n->exchange : 1.0;
        return d;
    }
    for (int k = 0; k < n->n_deuterated; k++)
        if (strcmp(n->deuterated[k].chain, r->chain) == 0)
            d.grown = n->deuterated[k].fraction;
    return d;
}

static tsr_status check_chains(const tsr_neutron *n, const tsr_atoms *atoms,
                               tsr_err *err)
{
    for (int k = 0; k < n->n_deuterated; k++) {
        int is_there = 0;
        for (int r = 0; r < atoms->n_residue; r++)
            is_there |=
                strcmp(n->deuterated[k].chain, atoms->residue[r].chain) == 0;
        if (!is_there)
            return tsr_fail(err, TSR_E_DATA,
                            "'%s' has no chain %s to be deuterated; the first "
                            "is %s",
                            atoms->path, n->deuterated[k].chain,
                            atoms->residue[0].chain);
    }
    return TSR_OK;
}

static tsr_status check_element(const tsr_atoms *atoms, const tsr_file_atom *a,
                                tsr_err *err)
{
    const tsr_file_residue *r = &atoms->residue[a->residue];
    if (!isnan(tsr_atom_neutron_length(a->z)))
        return TSR_OK;
    return tsr_fail(err, TSR_E_DATA,
                    "'%s': no scattering length for neutrons is known here for "
                    "atom %s of %s %s:%d (atomic number %d): it absorbs them, "
                    "or was not measured; remove it",
                    atoms->path, a->name, r->name, r->chain, r->number, a->z);
}

/* ---- the model ---- */

/* Bonds to hydrogen, Angstrom, as neutrons see them (Allen et al. 1987, J.
 * Chem. Soc. Perkin Trans. 2, S1, rounded). */
static double bond_length(int z)
{
    return z == 7 ? 1.01 : z == 8 ? 0.97 : z == 16 ? 1.34 : 1.09;
}

/* Unlike X-rays' hydrogens, of which little is to be seen, those of neutrons
 * scatter as much as their carriers: each is spread over the sphere on which
 * it is. */
double tsr_neutron_amplitude(const tsr_atom_kind *kind, double q_inv_ang)
{
    const double x = q_inv_ang * bond_length(kind->z);
    return kind->length + kind->hydrogen * (x < 1e-8 ? 1.0 : sin(x) / x);
}

/* The number of the kind `of` with that length of its hydrogens among the n
 * that there are; a new one where there is none. */
static int find_kind(tsr_atom_kind *kind, int *n, const tsr_atom_kind *of,
                     double hydrogen)
{
    for (int k = 0; k < *n; k++)
        if (kind[k].z == of->z && kind[k].n_hydrogen == of->n_hydrogen &&
            kind[k].hydrogen == hydrogen)
            return k;
    kind[*n] = *of;
    kind[*n].length = tsr_atom_neutron_length(of->z);
    kind[*n].hydrogen = hydrogen;
    return (*n)++;
}

/* Sums over the atoms: lengths where the solvent is H2O, and by how much they
 * grow to D2O. */
typedef struct {
    double length, growth;
} totals;

static totals assign(const tsr_neutron *n, const tsr_atoms *atoms,
                     tsr_atom_model *m, tsr_atom_kind *kind, int *n_kind)
{
    const double h = tsr_atom_neutron_length(1), d = TSR_DEUTERIUM_LENGTH;
    const double heavier = 1.0062; /* Da, deuterium than hydrogen */
    totals sum = {0.0, 0.0};
    for (int k = 0, i = 0; k < atoms->n_atom; k++) {
        const tsr_file_atom *a = &atoms->atom[k];
        if (a->z == 1)
            continue;
        const tsr_atom_kind *of = &m->kind[m->type[i]];
        const deuterium f = deuterium_of(n, &atoms->residue[a->residue], a);
        const double number = of->n_hydrogen;
        const double in_water = number * (h + f.grown * (d - h));
        const double growth = number * f.share * (d - h);
        m->mass += heavier * number * (f.grown + n->d2o * f.share);
        sum.length += tsr_atom_neutron_length(a->z) + in_water;
        sum.growth += growth;
        m->type[i++] = find_kind(kind, n_kind, of, in_water + n->d2o * growth);
    }
    return sum;
}

tsr_status tsr_neutron_apply(const tsr_neutron *neutron, const tsr_atoms *atoms,
                             tsr_atom_model *model, tsr_log *log, double *match,
                             tsr_err *err)
{
    tsr_atom_model *m = model;
    const double light = tsr_neutron_solvent(0.0);
    const double heavy = tsr_neutron_solvent(1.0);
    int n_kind = 0;
    TSR_TRY(check_chains(neutron, atoms, err));
    for (int k = 0; k < atoms->n_atom; k++)
        TSR_TRY(check_element(atoms, &atoms->atom[k], err));
    tsr_atom_kind *kind = calloc((size_t)m->n_atom + 1, sizeof *kind);
    if (kind == NULL)
        return tsr_fail(err, TSR_E_NOMEM, "out of memory");
    const totals sum = assign(neutron, atoms, m, kind, &n_kind);
    for (int i = m->n_atom; i < m->n; i++) /* beads */
        m->type[i] = n_kind;
    kind[n_kind++] = (tsr_atom_kind){0};
    free(m->kind);
    m->kind = kind;
    m->n_type = n_kind;
    m->is_neutron = 1;
    m->density = tsr_neutron_solvent(neutron->d2o);
    *match = (sum.length - light * m->volume) /
             ((heavy - light) * m->volume - sum.growth);
    tsr_info(log,
             "'%s': neutrons, %.4g %% D2O (%.3f 1e-6/A^2); without contrast at "
             "%.1f %% D2O",
             atoms->path, 100.0 * neutron->d2o, 10.0 * m->density,
             100.0 * *match);
    return TSR_OK;
}
