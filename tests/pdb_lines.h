/* Atom records of PDB files, appended to a text. */
#ifndef TESTS_PDB_LINES_H
#define TESTS_PDB_LINES_H

#include "tests/check.h"

/* name: its four columns; alt: the alternate location, or a space. */
static inline void pdb_atom(char *text, const char *record, const char *name,
                            char alt, const char *residue, char chain,
                            int number, double x, double y, double z,
                            const char *element)
{
    sprintf(text + strlen(text),
            "%-6s%5d %4s%c%3s %c%4d    %8.3f%8.3f%8.3f  1.00 20.00%12s\n",
            record, 1, name, alt, residue, chain, number, x, y, z, element);
}

#endif
