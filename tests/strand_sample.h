/* Single strands of RNA or DNA from ideal geometry, written as a file, and read
 * as a run reads them. */
#ifndef TESTS_STRAND_SAMPLE_H
#define TESTS_STRAND_SAMPLE_H

#include "tests/model_sample.h"

#include "core/vec3.h"
#include "molecule/guest.h"
#include "molecule/structure.h"
#include "molecule/topology.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { STRAND_ATOM = 20 };

/* An atom from three before it: bond in Angstrom, angle and torsion in degrees.
 * Of the torsions alpha to zeta and chi what `turn` says is added. */
typedef struct {
    const char *name, *element;
    int a, b, c;
    double bond, angle, torsion;
    int turn; /* 1 to 6: alpha, beta, gamma, epsilon (before), zeta, chi */
} strand_atom;

/* From O3' of the nucleotide before (0), C3' and C4' of it (1, 2), as for
 * A-RNA, with other torsions. */
static const strand_atom strand_recipe[STRAND_ATOM] = {
    {"P", "P", 2, 1, 0, 1.607, 119.7, -150.0, 4},
    {"O5'", "O", 1, 0, 3, 1.593, 104.0, -80.0, 5},
    {"OP1", "O", 1, 0, 3, 1.485, 108.0, 160.0, 5},
    {"OP2", "O", 1, 0, 3, 1.485, 108.0, 35.0, 5},
    {"C5'", "C", 0, 3, 4, 1.440, 120.9, -70.0, 1},
    {"C4'", "C", 3, 4, 7, 1.510, 110.5, 178.0, 2},
    {"C3'", "C", 4, 7, 8, 1.524, 115.5, 55.0, 3},
    {"O3'", "O", 7, 8, 9, 1.420, 111.0, 82.0, 0},
    {"O4'", "O", 10, 9, 8, 1.450, 104.5, -158.0, 0},
    {"C2'", "C", 11, 8, 9, 1.525, 102.7, -38.0, 0},
    {"C1'", "C", 8, 9, 12, 1.528, 101.0, 36.0, 0},
    {"O2'", "O", 8, 9, 12, 1.412, 110.0, 158.0, 0},
    {"N9", "N", 9, 12, 13, 1.475, 113.0, -140.0, 0},
    {"C4", "C", 11, 13, 15, 1.374, 126.0, -160.0, 6},
    {"C8", "C", 11, 13, 15, 1.372, 127.5, 20.0, 6},
    {"C5", "C", 13, 15, 16, 1.383, 105.8, 180.0, 0},
    {"N7", "N", 13, 15, 17, 1.311, 113.8, 180.0, 0},
    {"C6", "C", 15, 16, 18, 1.406, 132.0, 180.0, 0},
    {"N3", "N", 13, 15, 16, 1.344, 127.0, 0.0, 0},
    {"N6", "N", 16, 18, 20, 1.335, 123.0, 0.0, 0}};

static inline void strand_put(FILE *file, const char *name, const char *element,
                              const char *residue, char chain, int number,
                              const double x[3])
{
    fprintf(file,
            "ATOM  %5d %s%-3s %3s %c%4d    %8.3f%8.3f%8.3f  1.00 10.00"
            "          %2s\n",
            1, strlen(name) < 4 ? " " : "", name, residue, chain, number, x[0],
            x[1], x[2], element);
}

/* n nucleotides of chain `chain` from number 1, without O2' where it is DNA.
 * The first has its P; torsions differ from one to the next. */
static inline void strand_write(FILE *file, char chain, int n, int is_dna,
                                const double origin[3])
{
    const double degree = 3.14159265358979323846 / 180.0;
    double x[3 + STRAND_ATOM][3] = {
        {0.0, 0.0, 0.0}, {1.42, 0.0, 0.0}, {1.96, 1.42, 0.0}};
    for (int i = 0; i < 3; i++)
        for (int d = 0; d < 3; d++)
            x[i][d] += origin[d];
    for (int k = 0; k < n; k++) {
        const double turn[7] = {0.0,           7.0 * (k % 5),  -9.0 * (k % 4),
                                5.0 * (k % 3), 11.0 * (k % 4), 40.0 * (k % 3),
                                13.0 * (k % 7)};
        for (int i = 0; i < STRAND_ATOM; i++) {
            const strand_atom *s = &strand_recipe[i];
            tsr_place_atom(x[3 + i], x[s->a], x[s->b], x[s->c], s->bond,
                           s->angle * degree,
                           (s->torsion + turn[s->turn]) * degree);
        }
        for (int i = 0; i < STRAND_ATOM; i++)
            if (!is_dna || strcmp(strand_recipe[i].name, "O2'") != 0)
                strand_put(file, strand_recipe[i].name,
                           strand_recipe[i].element, is_dna ? "DA" : "A", chain,
                           k + 1, x[3 + i]);
        tsr_vec3_copy(x[0], x[3 + 7]); /* O3', C3', C4' */
        tsr_vec3_copy(x[1], x[3 + 6]);
        tsr_vec3_copy(x[2], x[3 + 5]);
    }
    fprintf(file, "TER\n");
}

#endif
