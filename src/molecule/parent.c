/* One table: three letters, one letter, and the names of the atoms beyond the
 * backbone. */
#include "molecule/parent.h"

#include <stddef.h>
#include <string.h>

static const tsr_parent parents[] = {
    {"ALA", 'A', " CB "},
    {"ARG", 'R', " CB CG CD NE CZ NH1 NH2 "},
    {"ASN", 'N', " CB CG OD1 ND2 "},
    {"ASP", 'D', " CB CG OD1 OD2 "},
    {"CYS", 'C', " CB SG "},
    {"GLN", 'Q', " CB CG CD OE1 NE2 "},
    {"GLU", 'E', " CB CG CD OE1 OE2 "},
    {"GLY", 'G', " "},
    {"HIS", 'H', " CB CG ND1 CD2 CE1 NE2 "},
    {"ILE", 'I', " CB CG1 CG2 CD1 "},
    {"LEU", 'L', " CB CG CD1 CD2 "},
    {"LYS", 'K', " CB CG CD CE NZ "},
    {"MET", 'M', " CB CG SD CE "},
    {"PHE", 'F', " CB CG CD1 CD2 CE1 CE2 CZ "},
    {"PRO", 'P', " CB CG CD "},
    {"SER", 'S', " CB OG "},
    {"THR", 'T', " CB OG1 CG2 "},
    {"TRP", 'W', " CB CG CD1 CD2 NE1 CE2 CE3 CZ2 CZ3 CH2 "},
    {"TYR", 'Y', " CB CG CD1 CD2 CE1 CE2 CZ OH "},
    {"VAL", 'V', " CB CG1 CG2 "},
};

static const struct {
    const char *name;
    char letter;
    const char *needs;
} protonation[] = {
    {"HID", 'H', "ND1"}, {"HIE", 'H', "ND1"}, {"HIP", 'H', "ND1"},
    {"HSD", 'H', "ND1"}, {"HSE", 'H', "ND1"}, {"HSP", 'H', "ND1"},
    {"CYX", 'C', "SG"},  {"CYM", 'C', "SG"},  {"ASH", 'D', "OD1"},
    {"GLH", 'E', "OE1"}, {"LYN", 'K', "NZ"},
};

/* '*' is any residue. */
static const struct {
    char letter;
    const char *from, *to;
} alias[] = {
    {'M', "SE", "SD"},   {'I', "CD", "CD1"},  {'*', "OT1", "O"},
    {'*', "OT2", "OXT"}, {'*', "O1", "O"},    {'*', "O2", "OXT"},
    {'*', "OC1", "O"},   {'*', "OC2", "OXT"}, {'*', "OT", "OXT"},
};

const tsr_parent *tsr_parent_by_letter(char letter)
{
    for (size_t i = 0; i < sizeof parents / sizeof parents[0]; i++)
        if (parents[i].letter == letter)
            return &parents[i];
    return NULL;
}

const tsr_parent *tsr_parent_by_name(const char *name)
{
    for (size_t i = 0; i < sizeof parents / sizeof parents[0]; i++)
        if (strcmp(parents[i].name, name) == 0)
            return &parents[i];
    return NULL;
}

const tsr_parent *tsr_parent_by_protonation(const char *residue,
                                            const char **needs)
{
    for (size_t i = 0; i < sizeof protonation / sizeof protonation[0]; i++) {
        if (strcmp(protonation[i].name, residue) == 0) {
            *needs = protonation[i].needs;
            return tsr_parent_by_letter(protonation[i].letter);
        }
    }
    return NULL;
}

static int is_in_list(const char *list, const char *name)
{
    size_t n = strlen(name);
    for (const char *p = list; n > 0 && (p = strstr(p, name)) != NULL; p++)
        if (p > list && p[-1] == ' ' && p[n] == ' ')
            return 1;
    return 0;
}

const char *tsr_parent_atom(const tsr_parent *parent, const char *atom)
{
    /* SC is what tessera itself writes: the centre of a side chain. */
    if (is_in_list(" N CA C O OXT SC ", atom) ||
        is_in_list(parent->atoms, atom))
        return atom;
    for (size_t i = 0; i < sizeof alias / sizeof alias[0]; i++)
        if ((alias[i].letter == '*' || alias[i].letter == parent->letter) &&
            strcmp(alias[i].from, atom) == 0)
            return alias[i].to;
    return NULL;
}

int tsr_parent_is_hydrogen(const char *atom)
{
    atom += strspn(atom, "0123456789");
    return *atom == 'H' || *atom == 'D';
}

int tsr_parent_atomic_number(const char *atom)
{
    switch (atom[0]) {
    case 'N':
        return 7;
    case 'O':
        return 8;
    case 'S':
        return 16;
    default:
        return 6;
    }
}
