/* PDB files of chains whose torsions, bond angles and side-chain centres the
 * test chooses. */
#ifndef TSR_TESTS_CHAIN_PDB_H
#define TSR_TESTS_CHAIN_PDB_H

#include "core/vec3.h"
#include "molecule/topology.h"

#include <gsl/gsl_math.h>
#include <stdio.h>

typedef struct {
    int amino;
    double phi, psi, angle;  /* rad; angle: N-CA-C */
    double omega;            /* of the bond before it */
    double side[3];          /* of all atoms beyond CB, in the frame */
    int is_mirrored, breaks; /* a D residue; no bond before it */
} chain_residue;

static void put_atom(FILE *file, int *serial, const char *atom,
                     const char *residue, char chain, int number,
                     const double x[3])
{
    fprintf(file,
            "ATOM  %5d  %-3s %3s %c%4d    %8.3f%8.3f%8.3f  1.00 10.00"
            "           %c\n",
            ++*serial % 99999, atom, residue, chain, number, x[0], x[1], x[2],
            atom[0]);
}

/* N, CA, C of residue i from those of the one before, else at the origin. */
static void place_backbone(const chain_residue *r, int i, double x[3][3])
{
    if (i == 0) {
        const double n[3] = {0}, ca[3] = {TSR_BOND_N_CA, 0.0, 0.0};
        const double up[3] = {0.0, 1.0, 0.0};
        tsr_place_atom(x[2], up, n, ca, TSR_BOND_CA_C, r->angle, 0.0);
        tsr_vec3_copy(x[0], n);
        tsr_vec3_copy(x[1], ca);
        return;
    }
    double n[3], ca[3], c[3];
    tsr_place_atom(n, x[0], x[1], x[2], r->breaks ? 40.0 : TSR_BOND_C_N,
                   TSR_ANGLE_CA_C_N, r[-1].psi);
    tsr_place_atom(ca, x[1], x[2], n, TSR_BOND_N_CA, TSR_ANGLE_C_N_CA,
                   r->omega);
    tsr_place_atom(c, x[2], n, ca, TSR_BOND_CA_C, r->angle, r->phi);
    tsr_vec3_copy(x[0], n);
    tsr_vec3_copy(x[1], ca);
    tsr_vec3_copy(x[2], c);
}

/* A chain A, numbered from 1. */
static void write_chain(FILE *file, int n, const chain_residue *residue)
{
    int serial = 0;
    double x[3][3] = {{0}};
    for (int i = 0; i < n; i++) {
        const chain_residue *r = &residue[i];
        const tsr_amino_info *info = &tsr_amino_table[r->amino];
        double frame[3][3], o[3], cb[3], side[3];
        place_backbone(r, i, x);
        tsr_frame(frame, x[0], x[1], x[2]);
        tsr_place_atom(o, x[0], x[1], x[2], TSR_BOND_C_O, TSR_ANGLE_CA_C_O,
                       r->psi + M_PI);
        tsr_place_cb(cb, x[0], x[1], x[2]);
        if (r->is_mirrored) {
            double local[3];
            tsr_frame_to_local(local, frame, x[1], cb);
            local[2] = -local[2];
            tsr_frame_to_global(cb, frame, x[1], local);
        }
        tsr_frame_to_global(side, frame, x[1], r->side);
        for (int a = 0; a < info->n_atom; a++)
            put_atom(file, &serial, info->atom[a].name, info->three, 'A', i + 1,
                     a < 3    ? x[a]
                     : a == 3 ? o
                     : a == 4 ? cb
                              : side);
    }
    fprintf(file, "TER\n");
}

#endif
