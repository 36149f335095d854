#include "model/residue.h"

#include <ctype.h>
#include <math.h>
#include <stddef.h>
#include <string.h>

/* Hydrogens as bound at pH 7 within a chain: N carries one (PRO none), Lys and
 * Arg are protonated, Asp and Glu are not, Cys is a free thiol, and neutral His
 * has its proton on NE2 (the commoner tautomer; which of the two it is moves
 * no body and no sum). Names: the PDB's chemical component dictionary. */
#define BACKBONE(h_n, h_ca, h_cb)                             \
    {"N", 7, h_n}, {"CA", 6, h_ca}, {"C", 6, 0}, {"O", 8, 0}, \
    {                                                         \
        "CB", 6, h_cb                                         \
    }

const tsr_amino_info tsr_amino_table[TSR_N_AMINO] = {
    {"ALA", 'A', 5, {BACKBONE(1, 1, 3)}},
    {"ARG",
     'R',
     11,
     {BACKBONE(1, 1, 2),
      {"CG", 6, 2},
      {"CD", 6, 2},
      {"NE", 7, 1},
      {"CZ", 6, 0},
      {"NH1", 7, 2},
      {"NH2", 7, 2}}},
    {"ASN",
     'N',
     8,
     {BACKBONE(1, 1, 2), {"CG", 6, 0}, {"OD1", 8, 0}, {"ND2", 7, 2}}},
    {"ASP",
     'D',
     8,
     {BACKBONE(1, 1, 2), {"CG", 6, 0}, {"OD1", 8, 0}, {"OD2", 8, 0}}},
    {"CYS", 'C', 6, {BACKBONE(1, 1, 2), {"SG", 16, 1}}},
    {"GLN",
     'Q',
     9,
     {BACKBONE(1, 1, 2),
      {"CG", 6, 2},
      {"CD", 6, 0},
      {"OE1", 8, 0},
      {"NE2", 7, 2}}},
    {"GLU",
     'E',
     9,
     {BACKBONE(1, 1, 2),
      {"CG", 6, 2},
      {"CD", 6, 0},
      {"OE1", 8, 0},
      {"OE2", 8, 0}}},
    {"GLY", 'G', 4, {{"N", 7, 1}, {"CA", 6, 2}, {"C", 6, 0}, {"O", 8, 0}}},
    {"HIS",
     'H',
     10,
     {BACKBONE(1, 1, 2),
      {"CG", 6, 0},
      {"ND1", 7, 0},
      {"CD2", 6, 1},
      {"CE1", 6, 1},
      {"NE2", 7, 1}}},
    {"ILE",
     'I',
     8,
     {BACKBONE(1, 1, 1), {"CG1", 6, 2}, {"CG2", 6, 3}, {"CD1", 6, 3}}},
    {"LEU",
     'L',
     8,
     {BACKBONE(1, 1, 2), {"CG", 6, 1}, {"CD1", 6, 3}, {"CD2", 6, 3}}},
    {"LYS",
     'K',
     9,
     {BACKBONE(1, 1, 2),
      {"CG", 6, 2},
      {"CD", 6, 2},
      {"CE", 6, 2},
      {"NZ", 7, 3}}},
    {"MET",
     'M',
     8,
     {BACKBONE(1, 1, 2), {"CG", 6, 2}, {"SD", 16, 0}, {"CE", 6, 3}}},
    {"PHE",
     'F',
     11,
     {BACKBONE(1, 1, 2),
      {"CG", 6, 0},
      {"CD1", 6, 1},
      {"CD2", 6, 1},
      {"CE1", 6, 1},
      {"CE2", 6, 1},
      {"CZ", 6, 1}}},
    {"PRO", 'P', 7, {BACKBONE(0, 1, 2), {"CG", 6, 2}, {"CD", 6, 2}}},
    {"SER", 'S', 6, {BACKBONE(1, 1, 2), {"OG", 8, 1}}},
    {"THR", 'T', 7, {BACKBONE(1, 1, 1), {"OG1", 8, 1}, {"CG2", 6, 3}}},
    {"TRP",
     'W',
     14,
     {BACKBONE(1, 1, 2),
      {"CG", 6, 0},
      {"CD1", 6, 1},
      {"CD2", 6, 0},
      {"NE1", 7, 1},
      {"CE2", 6, 0},
      {"CE3", 6, 1},
      {"CZ2", 6, 1},
      {"CZ3", 6, 1},
      {"CH2", 6, 1}}},
    {"TYR",
     'Y',
     12,
     {BACKBONE(1, 1, 2),
      {"CG", 6, 0},
      {"CD1", 6, 1},
      {"CD2", 6, 1},
      {"CE1", 6, 1},
      {"CE2", 6, 1},
      {"CZ", 6, 0},
      {"OH", 8, 1}}},
    {"VAL", 'V', 7, {BACKBONE(1, 1, 1), {"CG1", 6, 3}, {"CG2", 6, 3}}},
};

static const char *const two_body_name[TSR_MAX_TYPE] = {"backbone",
                                                        "ALA",
                                                        "ARG side chain",
                                                        "ASN side chain",
                                                        "ASP side chain",
                                                        "CYS side chain",
                                                        "GLN side chain",
                                                        "GLU side chain",
                                                        "GLY",
                                                        "HIS side chain",
                                                        "ILE side chain",
                                                        "LEU side chain",
                                                        "LYS side chain",
                                                        "MET side chain",
                                                        "PHE side chain",
                                                        "PRO side chain",
                                                        "SER side chain",
                                                        "THR side chain",
                                                        "TRP side chain",
                                                        "TYR side chain",
                                                        "VAL side chain"};

enum { N_BACKBONE = 5 }; /* N, CA, C, O, CB */

int tsr_amino_by_three(const char *three)
{
    for (int i = 0; i < TSR_N_AMINO; i++)
        if (strcmp(tsr_amino_table[i].three, three) == 0)
            return i;
    return -1;
}

int tsr_amino_by_one(char one)
{
    int upper = toupper((unsigned char)one);
    for (int i = 0; i < TSR_N_AMINO; i++)
        if (tsr_amino_table[i].one == upper)
            return i;
    return -1;
}

int tsr_amino_has_side_chain(tsr_amino amino)
{
    return tsr_amino_table[amino].n_atom > N_BACKBONE;
}

int tsr_body_n_type(tsr_body_model model)
{
    return model == TSR_BODIES_TWO ? 1 + TSR_N_AMINO : TSR_N_AMINO;
}

int tsr_body_types(tsr_body_model model, tsr_amino amino, int type[2])
{
    if (model == TSR_BODIES_ONE) {
        type[0] = (int)amino;
        return 1;
    }
    if (!tsr_amino_has_side_chain(amino)) {
        type[0] = 1 + (int)amino;
        return 1;
    }
    type[0] = 0;
    type[1] = 1 + (int)amino;
    return 2;
}

const char *tsr_body_type_name(tsr_body_model model, int type)
{
    if (type < 0 || type >= tsr_body_n_type(model))
        return "unknown";
    return model == TSR_BODIES_TWO ? two_body_name[type]
                                   : tsr_amino_table[type].three;
}

int tsr_body_of_atom(tsr_body_model model, tsr_amino amino, const char *atom)
{
    const tsr_amino_info *info = &tsr_amino_table[amino];
    if (strcmp(atom, "OXT") == 0)
        return 0;
    for (int i = 0; i < info->n_atom; i++)
        if (strcmp(info->atom[i].name, atom) == 0)
            return model == TSR_BODIES_TWO && i >= N_BACKBONE;
    return -1;
}

/* Standard atomic weights, IUPAC: the numbers of gemmi's table,
 * so that centres agree wherever they are computed. */
double tsr_element_mass(int z)
{
    switch (z) {
    case 6:
        return 12.0107;
    case 7:
        return 14.0067;
    case 8:
        return 15.9994;
    case 16:
        return 32.065;
    default:
        return (double)NAN;
    }
}

static double mass_between(tsr_amino amino, int first, int end)
{
    double mass = 0.0;
    for (int i = first; i < end; i++)
        mass += tsr_element_mass(tsr_amino_table[amino].atom[i].z);
    return mass;
}

double tsr_amino_side_chain_mass(tsr_amino amino)
{
    return mass_between(amino, N_BACKBONE, tsr_amino_table[amino].n_atom);
}

double tsr_body_mass(tsr_body_model model, int type)
{
    if (model == TSR_BODIES_TWO) {
        if (type == 0)
            return mass_between(TSR_ALA, 0, N_BACKBONE);
        tsr_amino amino = (tsr_amino)(type - 1);
        if (tsr_amino_has_side_chain(amino))
            return tsr_amino_side_chain_mass(amino);
        return mass_between(amino, 0, tsr_amino_table[amino].n_atom);
    }
    return mass_between((tsr_amino)type, 0, tsr_amino_table[type].n_atom);
}
