/* Which atoms of a residue belong to which body, by the names in the table of
 * amino acids, and the mass-weighted centres. */
#include "train/residue_atoms.h"

#include <string.h>

int tsr_residue_atoms_find(const tsr_structure *structure,
                           const tsr_residue_record *residue,
                           tsr_residue_atoms *out)
{
    memset(out, 0, sizeof *out);
    int amino = tsr_amino_by_three(residue->name);
    if (amino < 0)
        return -1;
    out->amino = (tsr_amino)amino;
    const tsr_amino_info *info = &tsr_amino_table[amino];
    for (int i = 0; i < info->n_atom; i++) {
        const tsr_atom *atom =
            tsr_residue_atom(structure, residue, info->atom[i].name);
        /* The element must be the table's: SE in a renamed MSE is not. */
        if (atom != NULL && atom->z == info->atom[i].z)
            out->xyz[i] = atom->xyz;
        else
            out->n_missing++;
    }
    return 0;
}

int tsr_body_atoms(tsr_body_model model, tsr_amino amino, int body,
                   int index[TSR_MAX_RESIDUE_ATOM])
{
    const tsr_amino_info *info = &tsr_amino_table[amino];
    int n = 0;
    for (int i = 0; i < info->n_atom; i++)
        if (tsr_body_of_atom(model, amino, info->atom[i].name) == body)
            index[n++] = i;
    return n;
}

int tsr_body_centre(tsr_body_model model, const tsr_residue_atoms *atoms,
                    int body, double centre[3])
{
    const tsr_amino_info *info = &tsr_amino_table[atoms->amino];
    int index[TSR_MAX_RESIDUE_ATOM];
    int n = tsr_body_atoms(model, atoms->amino, body, index);
    if (n == 0 || atoms->xyz[index[0]] == NULL)
        return -1;
    /* From the first atom, so that a body of one atom is exactly there. */
    const double *origin = atoms->xyz[index[0]];
    double sum[3] = {0.0, 0.0, 0.0}, total = 0.0;
    for (int k = 0; k < n; k++) {
        const double *x = atoms->xyz[index[k]];
        if (x == NULL)
            return -1;
        double mass = tsr_atom_mass(info->atom[index[k]].z);
        for (int d = 0; d < 3; d++)
            sum[d] += mass * (x[d] - origin[d]);
        total += mass;
    }
    for (int d = 0; d < 3; d++)
        centre[d] = origin[d] + sum[d] / total;
    return 0;
}

int tsr_side_chain_centre(const tsr_residue_atoms *atoms, double centre[3])
{
    if (!tsr_amino_has_side_chain(atoms->amino))
        return -1;
    return tsr_body_centre(TSR_BODIES_TWO, atoms, 1, centre);
}
