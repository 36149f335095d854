/* Hydrogens are seldom in a file, and scatter all the same. Bonds are found
 * from distances, then each residue goes by its table or by the valence rule of
 * the header. */
#include "scattering/atom_model.h"

#include "core/parallel.h"
#include "core/vec3.h"
#include "molecule/points.h"
#include "molecule/residue.h"
#include "molecule/structure.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { MAX_BOND = 8, MAX_NEAR = 64, PART = 1024 }; /* atoms of a part */
static const double bond_slack = 0.4; /* Angstrom over the covalent radii */

/* An atom's bonds to others than hydrogens and metals, and to hydrogens. */
typedef struct {
    int n, n_hydrogen;
    int to[MAX_BOND];
    double length[MAX_BOND];
} bonds;

static int is_bonded(int za, int zb, double d)
{
    return d > 0.5 && d < tsr_atom_covalent_radius(za) +
                              tsr_atom_covalent_radius(zb) + bond_slack;
}

static void find_bonds(const tsr_atoms *atoms, const tsr_cell_list *cells,
                       int i, double reach, bonds *out)
{
    int near[MAX_NEAR];
    const tsr_file_atom *a = &atoms->atom[i];
    int n = tsr_cell_list_near(cells, a->xyz, reach, MAX_NEAR, near);
    *out = (bonds){0};
    for (int k = 0; k < n && k < MAX_NEAR; k++) {
        const tsr_file_atom *b = &atoms->atom[near[k]];
        double d = tsr_vec3_distance(a->xyz, b->xyz);
        if (near[k] == i || tsr_atom_is_metal(b->z) ||
            !is_bonded(a->z, b->z, d))
            continue;
        if (b->z == 1) {
            out->n_hydrogen++;
        } else if (out->n < MAX_BOND) {
            out->to[out->n] = near[k];
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

/* A single bond of carbon, Angstrom (Allen et al. 1987, J. Chem. Soc. Perkin
 * Trans. 2, S1, rounded). */
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

/* How much the shortest bond falls short of a single one. */
static double shortening(const tsr_atoms *atoms, const bonds *b)
{
    double most = 0.0;
    for (int k = 0; k < b->n; k++)
        most = fmax(most, single_bond(atoms->atom[b->to[k]].z) - b->length[k]);
    return most;
}

static double angle_sum(const tsr_atoms *atoms, int i, const bonds *b)
{
    double sum = 0.0;
    for (int j = 0; j < b->n; j++)
        for (int k = 0; k < j; k++)
            sum += tsr_vec3_angle(atoms->atom[b->to[j]].xyz, atoms->atom[i].xyz,
                                  atoms->atom[b->to[k]].xyz);
    return sum * 57.29577951308232;
}

static int of_carbon(const tsr_atoms *atoms, int i, const bonds *b)
{
    double lacks = shortening(atoms, b);
    if (b->n >= 4)
        return 0;
    if (b->n == 3) /* 360 degrees where it is planar, 328 in a tetrahedron */
        return angle_sum(atoms, i, b) > 347.0 ? 0 : 1;
    if (b->n == 2)
        return angle_sum(atoms, i, b) > 160.0 ? 0 : lacks > 0.08 ? 1 : 2;
    if (b->n == 1)
        return lacks > 0.28 ? 1 : lacks > 0.14 ? 2 : 3;
    return 4;
}

static int of_nitrogen(const tsr_atoms *atoms, const bonds *b)
{
    double lacks = b->n > 0 ? shortening(atoms, b) : 0.0;
    if (b->n >= 3)
        return 0;
    if (b->n == 2) /* to carbon: 1.34 in pyridine, longer beside an N-H */
        return fmax(b->length[0], b->length[1]) < 1.36 ? 0 : 1;
    if (b->n == 1) {
        int is_to_carbon = atoms->atom[b->to[0]].z == 6;
        return !is_to_carbon ? 0 : lacks > 0.25 ? 0 : lacks > 0.07 ? 2 : 3;
    }
    return 4;
}

static int by_valence(const tsr_atoms *atoms, int i, const bonds *b)
{
    int is_one_carbon = b->n == 1 && atoms->atom[b->to[0]].z == 6;
    switch (atoms->atom[i].z) {
    case 6:
        return of_carbon(atoms, i, b);
    case 7:
        return of_nitrogen(atoms, b);
    case 8:
        return is_one_carbon && b->length[0] > 1.33;
    case 16:
        return is_one_carbon && b->length[0] > 1.74;
    default:
        return 0;
    }
}

/* ---- tables ---- */

/* -1: the table has no such atom. */
static int of_amino_acid(const tsr_atoms *atoms, const tsr_file_residue *r,
                         int i, const bonds *b)
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

/* "letters atom" and hydrogens; a sugar's atoms belong to every base. */
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

static int of_nucleotide(const tsr_atoms *atoms, const tsr_file_residue *r,
                         int i, const bonds *b)
{
    const char *name = atoms->atom[i].name;
    char word[12];
    word[0] = ' ';
    size_t n = strlen(name);
    memcpy(word + 1, name, n);
    word[n + 1] = ' ', word[n + 2] = '\0';
    if (strstr(nucleotide_atoms, word) == NULL)
        return -1;
    /* A chain's ends carry a hydroxyl each. */
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

static int by_table(const tsr_atoms *atoms, const tsr_file_residue *r, int i,
                    const bonds *b)
{
    if (r->parent[0] == '\0')
        return -1;
    if (r->kind == TSR_MOLECULE_PROTEIN)
        return of_amino_acid(atoms, r, i, b);
    if (r->kind == TSR_MOLECULE_NUCLEOTIDE)
        return of_nucleotide(atoms, r, i, b);
    return -1;
}

/* ---- residues ---- */

typedef struct {
    int carbon, other; /* with hydrogens in the file */
    int is_in_table;   /* every atom */
} residue_look;

static residue_look look_at(const tsr_atoms *atoms, const tsr_file_residue *r,
                            const bonds *all)
{
    residue_look look = {.is_in_table = 1};
    for (int i = r->first_atom; i < r->first_atom + r->n_atom; i++) {
        int z = atoms->atom[i].z;
        if (z == 1)
            continue;
        look.carbon += z == 6 && all[i].n_hydrogen > 0;
        look.other += z != 6 && all[i].n_hydrogen > 0;
        look.is_in_table &= by_table(atoms, r, i, &all[i]) >= 0;
    }
    return look;
}

static void assign(const tsr_atoms *atoms, const tsr_file_residue *r,
                   const bonds *all, int *n_hydrogen, tsr_hydrogen_count *count)
{
    residue_look look = look_at(atoms, r, all);
    int is_own = !look.is_in_table && look.carbon > 0;
    int is_polar = !look.is_in_table && !is_own && look.other > 0;
    count->n_explicit += is_own;
    count->n_table += look.is_in_table;
    count->n_valence += !look.is_in_table && !is_own;
    count->n_polar += is_polar;
    for (int i = r->first_atom; i < r->first_atom + r->n_atom; i++) {
        int z = atoms->atom[i].z;
        n_hydrogen[i] = 0;
        if (z == 1 || r->kind == TSR_MOLECULE_ION)
            continue;
        if (look.is_in_table)
            n_hydrogen[i] = by_table(atoms, r, i, &all[i]);
        else if (is_own || (is_polar && z != 6))
            n_hydrogen[i] = all[i].n_hydrogen;
        else
            n_hydrogen[i] = by_valence(atoms, i, &all[i]);
        count->n_atom += n_hydrogen[i];
    }
}

tsr_status tsr_hydrogens_assign(const tsr_atoms *atoms, int *n_hydrogen,
                                tsr_hydrogen_count *count, tsr_err *err)
{
    size_t n = (size_t)atoms->n_atom;
    double largest = 0.0;
    double(*xyz)[3] = calloc(n, sizeof *xyz);
    bonds *all = calloc(n, sizeof *all);
    tsr_cell_list *cells = NULL;
    *count = (tsr_hydrogen_count){0};
    for (size_t i = 0; xyz != NULL && i < n; i++) {
        tsr_vec3_copy(xyz[i], atoms->atom[i].xyz);
        if (!tsr_atom_is_metal(atoms->atom[i].z))
            largest = fmax(largest, tsr_atom_covalent_radius(atoms->atom[i].z));
    }
    double reach = 2.0 * largest + bond_slack;
    tsr_status status =
        xyz == NULL || all == NULL ? tsr_no_memory(err) : TSR_OK;
    TSR_THEN(status, tsr_cell_list_new(atoms->n_atom, (const double(*)[3])xyz,
                                       reach, &cells, err));
    if (status == TSR_OK) {
        bond_search search = {atoms, cells, reach, all};
        tsr_parallel_run((atoms->n_atom + PART - 1) / PART,
                         tsr_parallel_processors(), bond_part, &search);
        for (int r = 0; r < atoms->n_residue; r++)
            assign(atoms, &atoms->residue[r], all, n_hydrogen, count);
    }
    tsr_cell_list_free(cells);
    free(all);
    free(xyz);
    return status;
}
