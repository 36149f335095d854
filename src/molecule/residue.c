/* Tables of the twenty amino acids: their atoms, aliases of names, bodies, and
 * masses. The training program and the sampler both use these functions, so
 * that their bodies agree. */
#include "molecule/residue.h"

#include "molecule/structure.h"

#include <ctype.h>
#include <string.h>

/* Hydrogens as bound at pH 7 within a chain: N carries one (PRO none), Lys and
 * Arg are protonated, Asp and Glu are not, Cys is a free thiol, and neutral His
 * has its proton on NE2, the more common tautomer. The tautomer changes neither
 * bodies nor sums. Names: the PDB's chemical component dictionary. */
#define ATOM(name, z, n_hydrogen) \
    {                             \
        name, z, n_hydrogen       \
    }
#define BACKBONE(h_n, h_ca, h_cb)                                             \
    ATOM("N", 7, h_n), ATOM("CA", 6, h_ca), ATOM("C", 6, 0), ATOM("O", 8, 0), \
        ATOM("CB", 6, h_cb)
#define RESIDUE(three, one, n_atom, ...) \
    {                                    \
        three, one, n_atom,              \
        {                                \
            __VA_ARGS__                  \
        }                                \
    }

const tsr_amino_info tsr_amino_table[TSR_N_AMINO] = {
    RESIDUE("ALA", 'A', 5, BACKBONE(1, 1, 3)),
    RESIDUE("ARG", 'R', 11, BACKBONE(1, 1, 2), ATOM("CG", 6, 2),
            ATOM("CD", 6, 2), ATOM("NE", 7, 1), ATOM("CZ", 6, 0),
            ATOM("NH1", 7, 2), ATOM("NH2", 7, 2)),
    RESIDUE("ASN", 'N', 8, BACKBONE(1, 1, 2), ATOM("CG", 6, 0),
            ATOM("OD1", 8, 0), ATOM("ND2", 7, 2)),
    RESIDUE("ASP", 'D', 8, BACKBONE(1, 1, 2), ATOM("CG", 6, 0),
            ATOM("OD1", 8, 0), ATOM("OD2", 8, 0)),
    RESIDUE("CYS", 'C', 6, BACKBONE(1, 1, 2), ATOM("SG", 16, 1)),
    RESIDUE("GLN", 'Q', 9, BACKBONE(1, 1, 2), ATOM("CG", 6, 2),
            ATOM("CD", 6, 0), ATOM("OE1", 8, 0), ATOM("NE2", 7, 2)),
    RESIDUE("GLU", 'E', 9, BACKBONE(1, 1, 2), ATOM("CG", 6, 2),
            ATOM("CD", 6, 0), ATOM("OE1", 8, 0), ATOM("OE2", 8, 0)),
    RESIDUE("GLY", 'G', 4, ATOM("N", 7, 1), ATOM("CA", 6, 2), ATOM("C", 6, 0),
            ATOM("O", 8, 0)),
    RESIDUE("HIS", 'H', 10, BACKBONE(1, 1, 2), ATOM("CG", 6, 0),
            ATOM("ND1", 7, 0), ATOM("CD2", 6, 1), ATOM("CE1", 6, 1),
            ATOM("NE2", 7, 1)),
    RESIDUE("ILE", 'I', 8, BACKBONE(1, 1, 1), ATOM("CG1", 6, 2),
            ATOM("CG2", 6, 3), ATOM("CD1", 6, 3)),
    RESIDUE("LEU", 'L', 8, BACKBONE(1, 1, 2), ATOM("CG", 6, 1),
            ATOM("CD1", 6, 3), ATOM("CD2", 6, 3)),
    RESIDUE("LYS", 'K', 9, BACKBONE(1, 1, 2), ATOM("CG", 6, 2),
            ATOM("CD", 6, 2), ATOM("CE", 6, 2), ATOM("NZ", 7, 3)),
    RESIDUE("MET", 'M', 8, BACKBONE(1, 1, 2), ATOM("CG", 6, 2),
            ATOM("SD", 16, 0), ATOM("CE", 6, 3)),
    RESIDUE("PHE", 'F', 11, BACKBONE(1, 1, 2), ATOM("CG", 6, 0),
            ATOM("CD1", 6, 1), ATOM("CD2", 6, 1), ATOM("CE1", 6, 1),
            ATOM("CE2", 6, 1), ATOM("CZ", 6, 1)),
    RESIDUE("PRO", 'P', 7, BACKBONE(0, 1, 2), ATOM("CG", 6, 2),
            ATOM("CD", 6, 2)),
    RESIDUE("SER", 'S', 6, BACKBONE(1, 1, 2), ATOM("OG", 8, 1)),
    RESIDUE("THR", 'T', 7, BACKBONE(1, 1, 1), ATOM("OG1", 8, 1),
            ATOM("CG2", 6, 3)),
    RESIDUE("TRP", 'W', 14, BACKBONE(1, 1, 2), ATOM("CG", 6, 0),
            ATOM("CD1", 6, 1), ATOM("CD2", 6, 0), ATOM("NE1", 7, 1),
            ATOM("CE2", 6, 0), ATOM("CE3", 6, 1), ATOM("CZ2", 6, 1),
            ATOM("CZ3", 6, 1), ATOM("CH2", 6, 1)),
    RESIDUE("TYR", 'Y', 12, BACKBONE(1, 1, 2), ATOM("CG", 6, 0),
            ATOM("CD1", 6, 1), ATOM("CD2", 6, 1), ATOM("CE1", 6, 1),
            ATOM("CE2", 6, 1), ATOM("CZ", 6, 0), ATOM("OH", 8, 1)),
    RESIDUE("VAL", 'V', 7, BACKBONE(1, 1, 1), ATOM("CG1", 6, 3),
            ATOM("CG2", 6, 3)),
};

#define SIDE(three) three " side chain"

static const char *const two_body_name[TSR_MAX_TYPE] = {
    "backbone",  "ALA",       SIDE("ARG"), SIDE("ASN"), SIDE("ASP"),
    SIDE("CYS"), SIDE("GLN"), SIDE("GLU"), "GLY",       SIDE("HIS"),
    SIDE("ILE"), SIDE("LEU"), SIDE("LYS"), SIDE("MET"), SIDE("PHE"),
    SIDE("PRO"), SIDE("SER"), SIDE("THR"), SIDE("TRP"), SIDE("TYR"),
    SIDE("VAL")};

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

static double mass_between(tsr_amino amino, int first, int end)
{
    double mass = 0.0;
    for (int i = first; i < end; i++)
        mass += tsr_atom_mass(tsr_amino_table[amino].atom[i].z);
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

/* ---- names in files ---- */

int tsr_amino_by_protonation(const char *residue, const char **needs)
{
    static const struct {
        const char *name;
        tsr_amino amino;
        const char *needs;
    } state[] = {
        {"HID", TSR_HIS, "ND1"}, {"HIE", TSR_HIS, "ND1"},
        {"HIP", TSR_HIS, "ND1"}, {"HSD", TSR_HIS, "ND1"},
        {"HSE", TSR_HIS, "ND1"}, {"HSP", TSR_HIS, "ND1"},
        {"CYX", TSR_CYS, "SG"},  {"CYM", TSR_CYS, "SG"},
        {"ASH", TSR_ASP, "OD1"}, {"GLH", TSR_GLU, "OE1"},
        {"LYN", TSR_LYS, "NZ"},
    };
    for (size_t i = 0; i < sizeof state / sizeof *state; i++)
        if (strcmp(state[i].name, residue) == 0) {
            *needs = state[i].needs;
            return (int)state[i].amino;
        }
    return -1;
}

const char *tsr_amino_atom_name(tsr_amino amino, const char *atom)
{
    static const struct {
        int amino; /* -1: any amino acid */
        const char *from, *to;
    } alias[] = {
        {TSR_MET, "SE", "SD"}, {TSR_ILE, "CD", "CD1"}, {-1, "OT1", "O"},
        {-1, "OT2", "OXT"},    {-1, "O1", "O"},        {-1, "O2", "OXT"},
        {-1, "OC1", "O"},      {-1, "OC2", "OXT"},     {-1, "OT", "OXT"},
    };
    /* SC is tessera's pseudo atom for the centre of a side chain. */
    if (strcmp(atom, "SC") == 0 ||
        tsr_body_of_atom(TSR_BODIES_ONE, amino, atom) == 0)
        return atom;
    for (size_t i = 0; i < sizeof alias / sizeof *alias; i++)
        if ((alias[i].amino < 0 || alias[i].amino == (int)amino) &&
            strcmp(alias[i].from, atom) == 0)
            return alias[i].to;
    return NULL;
}

int tsr_amino_atomic_number(const char *atom)
{
    return atom[0] == 'N' ? 7 : atom[0] == 'O' ? 8 : atom[0] == 'S' ? 16 : 6;
}

int tsr_is_hydrogen_name(const char *atom)
{
    atom += strspn(atom, "0123456789");
    return *atom == 'H' || *atom == 'D';
}
