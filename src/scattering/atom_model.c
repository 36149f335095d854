/* The all-atom model: for each atom its hydrogens, form factor, displaced
 * volume and the hydration on the exposed part of its sphere (surface.c). Also
 * form factors of bodies from their own atoms. */
#include "scattering/atom_model.h"

#include "core/parallel.h"
#include "core/vec3.h"
#include "molecule/points.h"
#include "molecule/residue.h"
#include "molecule/structure.h"
#include "scattering/surface.h"

#include <math.h>
#include <string.h>

/* ---- hydrogens ----
 *
 * Files rarely contain hydrogens, but hydrogens scatter. Bonds follow from
 * distances. Each residue then gets its hydrogens from a table or from the
 * valence rule (atom_model.h). */

/* Largest numbers of bonds and of neighbours of an atom; atoms in one part of
 * parallel work. */
enum { MAX_BOND = 8, MAX_NEIGHBOUR = 64, PART = 1024 };
static const double bond_slack = 0.4; /* Angstrom, beyond the covalent radii */

/* The bonds of an atom to other heavy atoms, without metals, and its number of
 * bonded hydrogens. */
typedef struct {
    int n, n_hydrogen;
    int to[MAX_BOND];
    double length[MAX_BOND];
} bonds;

static void find_bonds(const tsr_atoms *atoms, const tsr_cell_list *cells,
                       int i, double reach, bonds *out)
{
    int neighbour[MAX_NEIGHBOUR];
    const tsr_file_atom *a = &atoms->atom[i];
    int n =
        tsr_cell_list_within(cells, a->xyz, reach, MAX_NEIGHBOUR, neighbour);
    *out = (bonds){0};
    for (int k = 0; k < n && k < MAX_NEIGHBOUR; k++) {
        const tsr_file_atom *b = &atoms->atom[neighbour[k]];
        const double d = tsr_vec3_distance(a->xyz, b->xyz);
        const double most = tsr_atom_covalent_radius(a->z) +
                            tsr_atom_covalent_radius(b->z) + bond_slack;
        if (neighbour[k] == i || tsr_atom_is_metal(b->z) ||
            !(d > 0.5 && d < most))
            continue;
        if (b->z == 1) {
            out->n_hydrogen++;
        } else if (out->n < MAX_BOND) {
            out->to[out->n] = neighbour[k];
            out->length[out->n++] = d;
        }
    }
}

typedef struct {
    const tsr_atoms *atoms;
    const tsr_cell_list *cells;
    double reach;
    bonds *all; /* [n_atom] */
} bond_search;

static void bond_part(void *context, int part, int thread)
{
    const bond_search *b = context;
    (void)thread;
    for (int i = part * PART; i < b->atoms->n_atom && i < (part + 1) * PART;
         i++)
        find_bonds(b->atoms, b->cells, i, b->reach, &b->all[i]);
}

/* ---- the valence rule ---- */

/* Length of a single bond from carbon, Angstrom (Allen et al. 1987, J. Chem.
 * Soc. Perkin Trans. 2, S1, rounded). */
static double single_bond(int z)
{
    switch (z) {
    case 6:
        return 1.53;
    case 7:
        return 1.47;
    case 8:
        return 1.43;
    case 16:
        return 1.81;
    default:
        return 0.77 + tsr_atom_covalent_radius(z);
    }
}

/* Largest difference between the length of a single bond and that of a bond of
 * this atom, Angstrom; 0 if all bonds are longer. */
static double shortening(const tsr_atoms *atoms, const bonds *b)
{
    double most = 0.0;
    for (int k = 0; k < b->n; k++)
        most = fmax(most, single_bond(atoms->atom[b->to[k]].z) - b->length[k]);
    return most;
}

/* Sum of the angles between the bonds of atom i, degrees. */
static double angle_sum(const tsr_atoms *atoms, int i, const bonds *b)
{
    double sum = 0.0;
    for (int j = 0; j < b->n; j++)
        for (int k = 0; k < j; k++)
            sum += tsr_vec3_angle(atoms->atom[b->to[j]].xyz, atoms->atom[i].xyz,
                                  atoms->atom[b->to[k]].xyz);
    return sum * 57.29577951308232;
}

static int carbon_hydrogens(const tsr_atoms *atoms, int i, const bonds *b)
{
    double shorter = shortening(atoms, b);
    if (b->n >= 4)
        return 0;
    if (b->n == 3) /* sum of angles: 360 degrees if planar, 328 in a
                      tetrahedron */
        return angle_sum(atoms, i, b) > 347.0 ? 0 : 1;
    if (b->n == 2)
        return angle_sum(atoms, i, b) > 160.0 ? 0 : shorter > 0.08 ? 1 : 2;
    if (b->n == 1)
        return shorter > 0.28 ? 1 : shorter > 0.14 ? 2 : 3;
    return 4;
}

static int nitrogen_hydrogens(const tsr_atoms *atoms, const bonds *b)
{
    double shorter = b->n > 0 ? shortening(atoms, b) : 0.0;
    if (b->n >= 3)
        return 0;
    if (b->n == 2) /* bond to carbon: 1.34 in pyridine, longer next to an N-H */
        return fmax(b->length[0], b->length[1]) < 1.36 ? 0 : 1;
    if (b->n == 1) {
        int is_to_carbon = atoms->atom[b->to[0]].z == 6;
        return !is_to_carbon ? 0 : shorter > 0.25 ? 0 : shorter > 0.07 ? 2 : 3;
    }
    return 4;
}

static int valence_hydrogens(const tsr_atoms *atoms, int i, const bonds *b)
{
    int is_one_carbon = b->n == 1 && atoms->atom[b->to[0]].z == 6;
    switch (atoms->atom[i].z) {
    case 6:
        return carbon_hydrogens(atoms, i, b);
    case 7:
        return nitrogen_hydrogens(atoms, b);
    case 8:
        return is_one_carbon && b->length[0] > 1.33;
    case 16:
        return is_one_carbon && b->length[0] > 1.74;
    default:
        return 0;
    }
}

/* ---- tables ---- */

/* Hydrogens of an atom of an amino acid; -1 if the table lacks the atom. */
static int amino_acid_hydrogens(const tsr_atoms *atoms,
                                const tsr_file_residue *r, int i,
                                const bonds *b)
{
    int amino = tsr_amino_by_three(r->parent);
    const char *name =
        tsr_amino_atom_name((tsr_amino)amino, atoms->atom[i].name);
    if (name == NULL)
        return -1;
    if (strcmp(name, "OXT") == 0)
        return 0;
    if (amino == TSR_CYS && strcmp(name, "SG") == 0)
        for (int k = 0; k < b->n; k++)
            if (atoms->atom[b->to[k]].z == 16)
                return 0;
    const tsr_amino_info *info = &tsr_amino_table[amino];
    for (int k = 0; k < info->n_atom; k++)
        if (strcmp(info->atom[k].name, name) == 0)
            return info->atom[k].n_hydrogen;
    return -1;
}

/* Base (NULL: any base, for atoms of the sugar), atom name, number of
 * hydrogens. */
static const struct {
    const char *base, *atom;
    int n;
} nucleotide_table[] = {
    {"A", "C2", 1},   {"A", "C8", 1},   {"A", "N6", 2},   {"G", "C8", 1},
    {"G", "N1", 1},   {"G", "N2", 2},   {"C", "C5", 1},   {"C", "C6", 1},
    {"C", "N4", 2},   {"U", "N3", 1},   {"U", "C5", 1},   {"U", "C6", 1},
    {"T", "N3", 1},   {"T", "C6", 1},   {"T", "C7", 3},   {"T", "C5M", 3},
    {"I", "C2", 1},   {"I", "C8", 1},   {"I", "N1", 1},   {NULL, "C1'", 1},
    {NULL, "C3'", 1}, {NULL, "C4'", 1}, {NULL, "C5'", 2}, {NULL, "O2'", 1}};

static const char nucleotide_atoms[] =
    " P OP1 OP2 OP3 O1P O2P O3P O5' C5' C4' O4' C3' O3' C2' O2' C1' N1 C2 N2 "
    "O2 "
    "N3 C4 N4 O4 C5 C5M C7 C6 N6 O6 N7 C8 N9 ";

static int nucleotide_hydrogens(const tsr_atoms *atoms,
                                const tsr_file_residue *r, int i,
                                const bonds *b)
{
    const char *name = atoms->atom[i].name;
    char word[12];
    word[0] = ' ';
    size_t n = strlen(name);
    memcpy(word + 1, name, n);
    word[n + 1] = ' ', word[n + 2] = '\0';
    if (strstr(nucleotide_atoms, word) == NULL)
        return -1;
    /* The ends of a chain carry one hydroxyl each. */
    if (strcmp(name, "O3'") == 0 || strcmp(name, "O5'") == 0)
        return b->n == 1;
    if (strcmp(name, "C2'") == 0) {
        for (int k = 0; k < b->n; k++)
            if (atoms->atom[b->to[k]].z == 8)
                return 1;
        return 2;
    }
    for (size_t k = 0; k < sizeof nucleotide_table / sizeof nucleotide_table[0];
         k++)
        if (strcmp(nucleotide_table[k].atom, name) == 0 &&
            (nucleotide_table[k].base == NULL ||
             strcmp(nucleotide_table[k].base, r->parent) == 0))
            return nucleotide_table[k].n;
    return 0;
}

static int table_hydrogens(const tsr_atoms *atoms, const tsr_file_residue *r,
                           int i, const bonds *b)
{
    if (r->parent[0] == '\0')
        return -1;
    if (r->kind == TSR_MOLECULE_PROTEIN)
        return amino_acid_hydrogens(atoms, r, i, b);
    if (r->kind == TSR_MOLECULE_NUCLEOTIDE)
        return nucleotide_hydrogens(atoms, r, i, b);
    return -1;
}

/* ---- residues ---- */

typedef struct {
    int carbon, other; /* atoms that have hydrogens in the file */
    int is_in_table;   /* 1: the table has every atom */
} residue_hydrogens;

static residue_hydrogens inspect_residue(const tsr_atoms *atoms,
                                         const tsr_file_residue *r,
                                         const bonds *all)
{
    residue_hydrogens found = {.is_in_table = 1};
    for (int i = r->first_atom; i < r->first_atom + r->n_atom; i++) {
        int z = atoms->atom[i].z;
        if (z == 1)
            continue;
        found.carbon += z == 6 && all[i].n_hydrogen > 0;
        found.other += z != 6 && all[i].n_hydrogen > 0;
        found.is_in_table &= table_hydrogens(atoms, r, i, &all[i]) >= 0;
    }
    return found;
}

static void assign_residue(const tsr_atoms *atoms, const tsr_file_residue *r,
                           const bonds *all, int *n_hydrogen,
                           tsr_hydrogen_count *count)
{
    residue_hydrogens found = inspect_residue(atoms, r, all);
    int is_own = !found.is_in_table && found.carbon > 0;
    int is_polar = !found.is_in_table && !is_own && found.other > 0;
    count->n_explicit += is_own;
    count->n_table += found.is_in_table;
    count->n_valence += !found.is_in_table && !is_own;
    count->n_polar += is_polar;
    for (int i = r->first_atom; i < r->first_atom + r->n_atom; i++) {
        int z = atoms->atom[i].z;
        n_hydrogen[i] = 0;
        if (z == 1 || r->kind == TSR_MOLECULE_ION)
            continue;
        if (found.is_in_table)
            n_hydrogen[i] = table_hydrogens(atoms, r, i, &all[i]);
        else if (is_own || (is_polar && z != 6))
            n_hydrogen[i] = all[i].n_hydrogen;
        else
            n_hydrogen[i] = valence_hydrogens(atoms, i, &all[i]);
        count->n_atom += n_hydrogen[i];
    }
}

tsr_status tsr_hydrogens_assign(const tsr_atoms *atoms, int *n_hydrogen,
                                tsr_hydrogen_count *count, tsr_err *err)
{
    size_t n = (size_t)atoms->n_atom;
    double largest = 0.0;
    tsr_pool pool = {0};
    bonds *all = tsr_pool_new(&pool, n, sizeof *all);
    tsr_cell_list *cells = NULL;
    *count = (tsr_hydrogen_count){0};
    for (size_t i = 0; i < n; i++)
        if (!tsr_atom_is_metal(atoms->atom[i].z))
            largest = fmax(largest, tsr_atom_covalent_radius(atoms->atom[i].z));
    double reach = 2.0 * largest + bond_slack;
    tsr_status status = tsr_pool_check(&pool, err);
    TSR_THEN(status, tsr_cell_list_of_atoms(&pool, atoms, reach, &cells, err));
    if (status == TSR_OK) {
        bond_search search = {atoms, cells, reach, all};
        tsr_parallel_run((atoms->n_atom + PART - 1) / PART,
                         tsr_parallel_processors(), bond_part, &search);
        for (int r = 0; r < atoms->n_residue; r++)
            assign_residue(atoms, &atoms->residue[r], all, n_hydrogen, count);
    }
    tsr_pool_clear(&pool);
    return status;
}

/* ---- volumes and hydration ---- */

enum { MAX_HYDROGEN = 8, MAX_Z = 98 };

/* Hydration at the atoms. */
static const double atom_probe_ang = 1.8; /* as FoXS */
static const double foxs_decay_ang2 = 0.115;

/* The layer. Around a protein in explicit water, the first water molecules are
 * denser than bulk, and the gap between them and the atoms is empty. The gap
 * adds to the displaced volume. Both together act like a layer whose centre
 * lies farther out than the first water molecules, 4 to 5 Angstrom from the
 * atoms' spheres (docs/forward-model.md). */
static const double layer_probe_ang = 4.0;
static const double layer_thickness_ang = 3.0;
static const double layer_contrast = 0.01; /* e/A^3 for c2 = 1 */
static const double layer_spread_ang2 = 0.9;
static const double b_factor_ang2 = 12.0;
static const double voronoi_part = 0.4; /* of the volumes, see volume_of */

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
               : 4.0 / 3.0 * TSR_PI * pow(tsr_atom_vdw_radius(z), 3.0);
}

/* Mean Voronoi volumes of an atom with its hydrogens in proteins, A^3, indexed
 * by the number of hydrogens. Tsai et al. 1999, J. Mol. Biol. 290, 253,
 * averaged over small and large, and over planar and tetrahedral atoms. 0: does
 * not occur. */
static double voronoi_volume(int z, int n_hydrogen)
{
    static const double carbon[] = {9.2, 17.0, 23.7, 36.7};
    static const double nitrogen[] = {8.7, 15.0, 22.7, 21.4};
    static const double oxygen[] = {15.9, 18.0, 0.0, 0.0};
    static const double sulphur[] = {29.2, 36.8, 0.0, 0.0};
    const double *volume = z == 6    ? carbon
                           : z == 7  ? nitrogen
                           : z == 8  ? oxygen
                           : z == 16 ? sulphur
                                     : NULL;
    return volume != NULL && n_hydrogen < 4 ? volume[n_hydrogen] : 0.0;
}

/* Displaced volume of an atom with its hydrogens. Compared with Voronoi
 * volumes, the space that each atom occupies, Fraser's volumes are small for
 * polar atoms and large for apolar ones. With Gaussians of either volume, the
 * curves of some molecules fit better and those of others worse. An
 * intermediate volume fits all of these molecules (docs/forward-model.md), and
 * is used for the layer. */
static double volume_of(tsr_solvent_model solvent, int z, int n_hydrogen)
{
    double fraser =
        tsr_displaced_volume(z) + n_hydrogen * tsr_displaced_volume(1);
    double voronoi = voronoi_volume(z, n_hydrogen);
    return solvent == TSR_SOLVENT_LAYER && voronoi > 0.0
               ? fraser + voronoi_part * (voronoi - fraser)
               : fraser;
}

/* The factor s in the amplitude exp(-s V^(2/3) q^2) of the solvent displaced by
 * a volume V. 1 / 4 pi: Fraser's Gaussian, which has the solvent's density at
 * the atom's centre. 0.055: the Gaussian with the second moment that the space
 * of an atom in a protein has about the atom (Voronoi cells,
 * docs/forward-model.md). Fraser's is wider, so it blurs the edge of the
 * displaced solvent, which then acts like a layer, and the contrast of large
 * molecules grows too fast with q. */
static double displaced_spread(tsr_solvent_model solvent)
{
    return solvent == TSR_SOLVENT_LAYER ? 0.055 : 0.25 / TSR_PI;
}

/* Radius of a sphere of this volume. */
static double radius_of(double volume)
{
    return cbrt(0.75 * volume / TSR_PI);
}

void tsr_atom_model_free(tsr_atom_model *model)
{
    if (model == NULL)
        return;
    tsr_pool pool = model->pool;
    tsr_pool_clear(&pool);
}

/* ---- atoms ---- */

/* Numbers the kinds of atoms that occur. atom [n_atom]: indices of the model's
 * atoms in the file. */
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

static void sum_masses(tsr_atom_model *m)
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
            m->volume += k->volume;
            m->radius_ang += radius_of(k->volume) / m->n_atom;
        }
    m->rg_ang = sqrt(moment / m->mass);
    /* tsr_component_power assumes the spread 1 / 4 pi */
    m->power_radius_ang =
        m->radius_ang * sqrt(4.0 * TSR_PI * displaced_spread(m->solvent));
    if (m->solvent == TSR_SOLVENT_FOXS)
        m->power_radius_ang *= cbrt(0.75 / TSR_PI);
}

/* ---- hydration ---- */

/* Adds the beads of the layer (atom_model.h). The centroid of a cap that is the
 * fraction f of a unit sphere has the distance 1 - f from the centre. */
static void add_beads(tsr_atom_model *m, const double *radius,
                      const double *fraction, const double (*vector)[3])
{
    for (int i = 0; i < m->n_atom; i++) {
        double r = radius[i] + layer_probe_ang;
        if (fraction[i] <= 0.0)
            continue;
        const double scale = r / (fraction[i] * fmax(1.0 - fraction[i], 0.5));
        for (int c = 0; c < 3; c++)
            m->xyz[m->n][c] = m->xyz[i][c] + scale * vector[i][c];
        m->surface[m->n] = 4.0 * TSR_PI * r * r * fraction[i];
        m->owner[m->n] = i;
        m->type[m->n++] = m->n_type;
    }
    m->kind[m->n_type++] = (tsr_atom_kind){0};
}

static tsr_status hydrate(tsr_atom_model *m, tsr_err *err)
{
    size_t n = (size_t)m->n_atom;
    int is_layer = m->solvent == TSR_SOLVENT_LAYER;
    tsr_pool pool = {0};
    double *radius, *fraction, (*vector)[3];
    tsr_pool_array(&pool, radius, n);
    tsr_pool_array(&pool, fraction, n);
    tsr_pool_array(&pool, vector, n);
    tsr_status status = tsr_pool_check(&pool, err);
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
    tsr_pool_clear(&pool);
    return status;
}

double tsr_solvent_contrast(tsr_solvent_model solvent)
{
    double radius = 1.58 + atom_probe_ang, electrons = 3.51;
    return solvent == TSR_SOLVENT_LAYER
               ? layer_contrast
               : electrons /
                     (4.0 * TSR_PI * radius * radius * layer_thickness_ang);
}

/* ---- the model ---- */

static tsr_status build_model(const tsr_atoms *atoms, const int *n_hydrogen,
                              int *atom, tsr_atom_model *m, tsr_err *err)
{
    for (int i = 0; i < atoms->n_atom; i++)
        if (atoms->atom[i].z != 1) {
            tsr_vec3_copy(m->xyz[m->n], atoms->atom[i].xyz);
            m->owner[m->n] = m->n;
            atom[m->n++] = i;
        }
    m->n_atom = m->n;
    if (m->n == 0)
        return tsr_fail(
            err, TSR_E_DATA,
            "'%s' contains only hydrogens; give the atoms that carry them",
            atoms->path);
    find_types(atoms, atom, n_hydrogen, m);
    sum_masses(m);
    return hydrate(m, err);
}

tsr_status tsr_atom_model_new(const tsr_atoms *atoms, tsr_solvent_model solvent,
                              double density, tsr_atom_model **out,
                              tsr_err *err)
{
    const size_t n = (size_t)atoms->n_atom;
    tsr_pool pool = {0}, scratch = {0};
    tsr_atom_model *m = tsr_pool_new(&pool, 1, sizeof *m);
    int *work = tsr_pool_new(&scratch, 2 * n, sizeof *work);
    *out = NULL;
    if (m != NULL) { /* space for as many beads as atoms */
        tsr_pool_array(&pool, m->xyz, 2 * n);
        tsr_pool_array(&pool, m->type, 2 * n);
        tsr_pool_array(&pool, m->surface, 2 * n);
        tsr_pool_array(&pool, m->owner, 2 * n);
        tsr_pool_array(&pool, m->kind, MAX_Z * (MAX_HYDROGEN + 1) + 1);
        m->pool = pool;
        m->solvent = solvent;
        m->density = density;
    }
    tsr_status status = TSR_OK;
    if (m == NULL || work == NULL || pool.failed)
        status = tsr_fail(err, TSR_E_NOMEM, "out of memory for %zu atoms", n);
    TSR_THEN(status, tsr_hydrogens_assign(atoms, work, &m->hydrogens, err));
    TSR_THEN(status, build_model(atoms, work, work + n, m, err));
    tsr_pool_clear(&scratch);
    if (status == TSR_OK)
        *out = m;
    else
        tsr_pool_clear(&pool);
    return status;
}

/* ---- amplitudes ---- */

static double sinc(double x)
{
    return x < 1e-8 ? 1.0 : sin(x) / x;
}

static double displaced_amplitude(tsr_solvent_model solvent, double density,
                                  double volume, double q)
{
    return density * volume *
           exp(-displaced_spread(solvent) * cbrt(volume * volume) * q * q);
}

/* Excess amplitude of a water molecule over the bulk water that it
 * displaces. */
static double water_excess(double q)
{
    return tsr_atom_form_factor(8, q) + 2.0 * tsr_atom_form_factor(1, q) -
           displaced_amplitude(
               TSR_SOLVENT_ATOMS, TSR_WATER_DENSITY,
               tsr_displaced_volume(8) + 2.0 * tsr_displaced_volume(1), q);
}

/* b_X + n_H (...) sinc(q d), fm. For neutrons a hydrogen scatters as strongly
 * as its carrier, so each hydrogen is averaged over a sphere with the radius of
 * its bond. For X-rays hydrogens are weak and are placed on the carrier. Bond
 * lengths to hydrogen, Angstrom, from neutron diffraction: Allen et al. 1987,
 * J. Chem. Soc. Perkin Trans. 2, S1, rounded. */
static double neutron_amplitude(const tsr_atom_kind *kind, double q)
{
    const int z = kind->z;
    const double bond = z == 7 ? 1.01 : z == 8 ? 0.97 : z == 16 ? 1.34 : 1.09;
    return kind->length + kind->hydrogen * sinc(q * bond);
}

/* Amplitudes of one kind in the three components at q, at weight 1. */
static void kind_amplitudes(const tsr_atom_model *m, const tsr_atom_kind *kind,
                            double q, double out[TSR_ATOM_COMP])
{
    double at = m->solvent == TSR_SOLVENT_FOXS ? 0.0 : q, scale = 1.0;
    if (m->solvent == TSR_SOLVENT_FOXS)
        scale = exp(-foxs_decay_ang2 * q * q);
    out[0] = out[1] = out[2] = 0.0;
    if (kind->z == 0) {
        out[2] = layer_contrast * layer_thickness_ang *
                 exp(-layer_spread_ang2 * q * q);
        if (m->is_neutron) /* the same relative excess over the solvent */
            out[2] *= m->density / TSR_WATER_DENSITY;
        return;
    }
    out[0] = m->is_neutron
                 ? neutron_amplitude(kind, q)
                 : scale * (tsr_atom_form_factor(kind->z, at) +
                            kind->n_hydrogen * tsr_atom_form_factor(1, at));
    out[1] =
        scale * displaced_amplitude(m->solvent, m->density, kind->volume, at);
    if (m->solvent == TSR_SOLVENT_LAYER)
        out[0] *= exp(-b_factor_ang2 * q * q / (16.0 * TSR_PI * TSR_PI));
    else
        out[2] = scale * water_excess(at);
}

void tsr_atom_model_factors(const tsr_atom_model *model, int n_q,
                            double dq_inv_ang, double *out)
{
    size_t row = (size_t)n_q, comp = (size_t)model->n_type * row;
    for (int t = 0; t < model->n_type; t++)
        for (int k = 0; k < n_q; k++) {
            double f[TSR_ATOM_COMP];
            kind_amplitudes(model, &model->kind[t], k * dq_inv_ang, f);
            for (size_t c = 0; c < TSR_ATOM_COMP; c++)
                out[c * comp + (size_t)t * row + (size_t)k] = f[c];
        }
}

tsr_debye_spec tsr_atom_model_spec(const tsr_atom_model *model, int n_q,
                                   double dq_inv_ang, const double *factor)
{
    return (tsr_debye_spec){.n = model->n,
                            .n_type = model->n_type,
                            .n_comp = TSR_ATOM_COMP,
                            .n_q = n_q,
                            .dq_inv_ang = dq_inv_ang,
                            .xyz = (const double(*)[3])model->xyz,
                            .type = model->type,
                            .weight = model->surface,
                            .weighted = TSR_ATOM_HYDRATION,
                            .form_factor = factor};
}

/* ---- form factors of bodies from their own atoms ----
 *
 * Sums of sinc over the few atoms of a body. The types of guests follow the
 * trained types in the table. */

/* The computation of form factors for all guests. */
typedef struct {
    const tsr_guests *guests;
    const tsr_atom_model *model;
    double *factor;             /* [TSR_ATOM_COMP][model->n_type][n_q] */
    int *model_atom;            /* [atoms of the file] atom of the model, or
                                   -1 */
    tsr_form_factor_table *out; /* table with one component or three */
} job;

void tsr_cluster_make(int n, tsr_pool *pool, tsr_cluster *cluster)
{
    *cluster = (tsr_cluster){.n = 0};
    tsr_pool_array(pool, cluster->atom, n);
    tsr_pool_array(pool, cluster->r, n);
    tsr_pool_array(pool, cluster->r_kl, (size_t)n * (size_t)n);
}

void tsr_cluster_distances(const tsr_atom_model *model, const double centre[3],
                           tsr_cluster *c)
{
    for (int k = 0; k < c->n; k++) {
        const double *x = model->xyz[c->atom[k]];
        c->r[k] = tsr_vec3_distance(x, centre);
        for (int l = 0; l < c->n; l++)
            c->r_kl[k * c->n + l] =
                tsr_vec3_distance(x, model->xyz[c->atom[l]]);
    }
}

/* Amplitude of atom i of the model in component a at q_k. */
static double factor_of(const tsr_atom_model *m, const double *factor, int n_q,
                        int a, int i, int k)
{
    const double *f = factor + (a * m->n_type + m->type[i]) * n_q + k;
    return a == TSR_HYDRATION ? m->surface[i] * *f : *f;
}

void tsr_cluster_factor(const tsr_cluster *c, const tsr_atom_model *model,
                        const double *factor, int n_q, double dq_inv_ang, int k,
                        double *f, double *e)
{
    const double q = k * dq_inv_ang;
    for (int a = 0; a < TSR_N_COMP; a++)
        f[a] = 0.0;
    for (int p = 0; p < TSR_N_COMP_PAIR; p++)
        e[p] = 0.0;
    for (int m = 0; m < c->n; m++) {
        double f_m[TSR_N_COMP], scale = sinc(q * c->r[m]);
        for (int a = 0; a < TSR_N_COMP; a++) {
            f_m[a] = factor_of(model, factor, n_q, a, c->atom[m], k);
            f[a] += f_m[a] * scale;
        }
        for (int l = 0; l < c->n; l++) {
            double s = sinc(q * c->r_kl[m * c->n + l]);
            for (int b = 0; b < TSR_N_COMP; b++) {
                double f_l = factor_of(model, factor, n_q, b, c->atom[l], k);
                for (int a = 0; a <= b; a++)
                    e[tsr_component_pair(a, b)] += f_m[a] * f_l * s;
            }
        }
    }
    for (int a = 0; a < TSR_N_COMP; a++)
        for (int b = a; b < TSR_N_COMP; b++)
            e[tsr_component_pair(a, b)] -= f[a] * f[b];
}

/* Sets F and E of a type at q_k. exposed: exposure of the guest's atoms, by
 * which the hydration is divided, because the table has the hydration for an
 * exposure of 1. */
static void write_row(const job *j, int type, int k, double exposed, double *f,
                      double *e)
{
    const tsr_form_factor_table *t = j->out;
    const size_t row = (size_t)(type * t->n_q + k);
    const size_t block = (size_t)(t->n_type * t->n_q);
    double scale[TSR_N_COMP] = {1.0, 1.0, exposed > 0.0 ? 1.0 / exposed : 0.0};
    if (t->n_comp == 1) {
        t->amplitude[row] = f[TSR_SOLUTE] - f[TSR_DISPLACED];
        t->excess[row] = e[0] - 2.0 * e[1] + e[3];
        return;
    }
    for (int a = 0; a < TSR_N_COMP; a++) {
        t->amplitude[(size_t)a * block + row] = scale[a] * f[a];
        for (int b = a; b < TSR_N_COMP; b++) {
            int p = tsr_component_pair(a, b);
            t->excess[(size_t)p * block + row] = scale[a] * scale[b] * e[p];
        }
    }
}

static void compute_guest_type(const job *j, int body, tsr_cluster *c)
{
    const tsr_guests *g = j->guests;
    tsr_form_factor_table *t = j->out;
    const int type = t->n_trained + body;
    double f[TSR_N_COMP], e[TSR_N_COMP_PAIR], exposed = 0.0, radius = 0.0;
    double moment = 0.0;
    c->n = 0;
    for (int i = 0; i < g->atoms->n_atom; i++)
        if (g->body[i] == body)
            c->atom[c->n++] = j->model_atom[g->file_atom[i]];
    tsr_cluster_distances(j->model, g->part[body].xyz, c);
    for (int k = 0; k < c->n; k++) {
        const tsr_atom_kind *kind = &j->model->kind[j->model->type[c->atom[k]]];
        exposed += j->model->surface[c->atom[k]];
        radius += radius_of(kind->volume);
        moment += tsr_atom_mass(kind->z) * c->r[k] * c->r[k];
    }
    t->count[type] = 1;
    t->rg2[type] = moment / g->part[body].mass;
    t->atoms[type] = c->n;
    t->radius[type] = radius / c->n;
    t->exposed[type] = exposed;
    for (int k = 0; k < t->n_q; k++) {
        tsr_cluster_factor(c, j->model, j->factor, t->n_q, t->dq_inv_ang, k, f,
                           e);
        write_row(j, type, k, exposed, f, e);
    }
}

tsr_status tsr_form_factor_add_guests(const tsr_form_factor_table *table,
                                      const tsr_guests *guests,
                                      const tsr_atoms *atoms, double density,
                                      tsr_form_factor_table **out, tsr_err *err)
{
    tsr_atom_model *model = NULL;
    tsr_cluster c;
    tsr_pool pool = {0};
    int most = 0, n = 0;
    TSR_TRY(tsr_atom_model_new(atoms, TSR_SOLVENT_ATOMS, density, &model, err));
    job j = {.guests = guests,
             .model = model,
             .out = tsr_form_factor_extend(table, guests->n_body)};
    for (int b = 0; b < guests->n_body; b++)
        most = guests->part[b].n_atom > most ? guests->part[b].n_atom : most;
    tsr_cluster_make(most, &pool, &c);
    tsr_pool_array(&pool, j.model_atom, atoms->n_atom);
    tsr_pool_array(&pool, j.factor, TSR_ATOM_COMP * model->n_type * table->n_q);
    tsr_status status = TSR_OK;
    if (j.out == NULL || pool.failed) {
        tsr_form_factor_free(j.out);
        status = tsr_fail(err, TSR_E_NOMEM, "no memory for form factors");
    } else {
        /* the model has the file's atoms in the same order, without
         * hydrogens */
        for (int i = 0; i < atoms->n_atom; i++)
            j.model_atom[i] = atoms->atom[i].z == 1 ? -1 : n++;
        tsr_atom_model_factors(model, table->n_q, table->dq_inv_ang, j.factor);
        for (int b = 0; b < guests->n_body; b++)
            compute_guest_type(&j, b, &c);
        *out = j.out;
    }
    tsr_atom_model_free(model);
    tsr_pool_clear(&pool);
    return status;
}

/* ---- log of the contents of a file ---- */

static void log_kinds(const tsr_atoms *atoms, tsr_log *log)
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
                 "'%s': %d molecules of crystallisation (glycerol, sulphate, "
                 "...) are included in the scattering; remove them if they are "
                 "not bound in solution",
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
                     "'%s': residue %s (%s:%d) is in no table: it scatters by "
                     "its elements, its hydrogens follow from bond lengths",
                     atoms->path, residue->name, residue->chain,
                     residue->number);
    }
}

static int count_missing(const tsr_atoms *atoms, const tsr_file_residue *r)
{
    const int amino = tsr_amino_by_three(r->parent);
    const tsr_amino_info *info = &tsr_amino_table[amino];
    int n = 0;
    for (int k = 0; k < info->n_atom; k++) {
        int is_found = 0;
        for (int i = r->first_atom; i < r->first_atom + r->n_atom; i++) {
            const char *name =
                tsr_amino_atom_name((tsr_amino)amino, atoms->atom[i].name);
            is_found |= name != NULL && strcmp(name, info->atom[k].name) == 0;
        }
        n += !is_found;
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

/* Number of missing residues, by residue number, between two residues that are
 * adjacent in the file but not bonded. */
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

static void log_missing(const tsr_atoms *atoms, tsr_log *log)
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
        tsr_warn(
            log,
            "'%s': chains are broken and lack %d residues by their numbers "
            "(the first break is after %s:%d); missing residues do not scatter",
            atoms->path, n_gap, first_gap->chain, first_gap->number);
}

void tsr_atom_model_log(const tsr_atoms *atoms, const tsr_atom_model *model,
                        tsr_log *log)
{
    const tsr_hydrogen_count *h = &model->hydrogens;
    log_kinds(atoms, log);
    log_missing(atoms, log);
    if (atoms->n_water + atoms->n_altloc_atom + atoms->n_model > 0)
        tsr_info(log,
                 "'%s': left out: %d waters, %d atoms of alternate locations, "
                 "%d models after the first",
                 atoms->path, atoms->n_water, atoms->n_altloc_atom,
                 atoms->n_model);
    if (atoms->n_partial > 0)
        tsr_warn(
            log,
            "'%s': %d atoms of ligands and ions have an occupancy below 1 but "
            "scatter fully; remove those that are not bound in solution",
            atoms->path, atoms->n_partial);
    if (atoms->n_no_element > 0)
        tsr_warn(log,
                 "'%s': %d atoms of unknown element are left out; give the "
                 "element in columns 77-78",
                 atoms->path, atoms->n_no_element);
    if (atoms->n_hydrogen > 0)
        tsr_info(log,
                 "'%s': the %d hydrogens of the file are merged with the atoms "
                 "that carry them",
                 atoms->path, atoms->n_hydrogen);
    tsr_info(log,
             "'%s': %d atoms, %d hydrogens added to them: %d residues by name, "
             "%d by valence, %d as in the file%s; mean radius %.3f A",
             atoms->path, model->n_atom, h->n_atom, h->n_table, h->n_valence,
             h->n_explicit, h->n_polar > 0 ? " (in part only on N, O, S)" : "",
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
