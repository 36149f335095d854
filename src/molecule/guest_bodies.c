/* Residues that are no amino acid cut into bodies. */
#include "molecule/guest.h"

#include "core/vec3.h"
#include "molecule/nucleic.h"

#include <string.h>

/* No atom is farther from its body's centre, Angstrom. */
static const double farthest = 4.0;

/* Mass-weighted centre of the atoms of one part. */
static void centre_of(const tsr_file_atom *atom, int n, const int *part, int k,
                      double centre[3])
{
    double mass = 0.0;
    centre[0] = centre[1] = centre[2] = 0.0;
    for (int i = 0; i < n; i++)
        if (part[i] == k) {
            double m = tsr_atom_mass(atom[i].z);
            mass += m;
            for (int d = 0; d < 3; d++)
                centre[d] += m * atom[i].xyz[d];
        }
    for (int d = 0; d < 3; d++)
        centre[d] /= mass;
}

static int is_small(const tsr_file_atom *atom, int n, const int *part, int k)
{
    double centre[3];
    centre_of(atom, n, part, k, centre);
    for (int i = 0; i < n; i++)
        if (part[i] == k &&
            tsr_vec3_distance2(atom[i].xyz, centre) > farthest * farthest)
            return 0;
    return 1;
}

/* The two atoms of part k that are farthest apart; each other atom goes with
 * the nearer of them, to k or to `next`. */
static void halve(const tsr_file_atom *atom, int n, int *part, int k, int next)
{
    double most = -1.0;
    int end[2] = {0, 0};
    for (int i = 0; i < n; i++)
        for (int j = 0; j < i && part[i] == k; j++) {
            double d2 = part[j] == k
                            ? tsr_vec3_distance2(atom[i].xyz, atom[j].xyz)
                            : -1.0;
            if (d2 > most)
                most = d2, end[0] = j, end[1] = i;
        }
    for (int i = 0; i < n; i++)
        if (part[i] == k &&
            tsr_vec3_distance2(atom[i].xyz, atom[end[1]].xyz) <
                tsr_vec3_distance2(atom[i].xyz, atom[end[0]].xyz))
            part[i] = next;
}

/* Numbers the parts that have atoms from 0 without gaps. */
static int number_parts(int n, int *part)
{
    int number[] = {-1, -1, -1, -1}, n_part = 0;
    for (int i = 0; i < n; i++)
        if (part[i] >= 0) {
            if (number[part[i]] < 0)
                number[part[i]] = n_part++;
            part[i] = number[part[i]];
        }
    return n_part;
}

int tsr_guest_cut(const tsr_atoms *atoms, int r, int is_link, int *part)
{
    const tsr_file_residue *residue = &atoms->residue[r];
    const tsr_file_atom *atom = atoms->atom + residue->first_atom;
    const int n = residue->n_atom;
    memset(part, 0, (size_t)n * sizeof *part);
    if (residue->kind == TSR_MOLECULE_NUCLEOTIDE)
        tsr_nucleic_parts(atoms, r, part);
    for (int i = 0; i < n; i++)
        part[i] = atom[i].z == 1                              ? -1
                  : !is_link && part[i] == TSR_PART_METHYLENE ? TSR_PART_SUGAR
                                                              : part[i];
    int n_part = number_parts(n, part);
    for (int k = 0; k < n_part; k++)
        while (!is_small(atom, n, part, k))
            halve(atom, n, part, k, n_part++);
    return n_part;
}
