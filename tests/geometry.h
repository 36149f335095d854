/* Internal coordinates: bond lengths, angles and torsions of the backbone, and
 * coordinates rebuilt from them: the slow, exact counterpart of turning
 * torsions in place. */
#ifndef TSR_TESTS_GEOMETRY_H
#define TSR_TESTS_GEOMETRY_H

#include "core/vec3.h"
#include "molecule/topology.h"

#include <gsl/gsl_math.h>
#include <math.h>

/* Internal coordinates of one residue. Lengths in Angstrom, angles in rad. The
 * bonds and angles across the peptide bond are those to the residue before. */
typedef struct {
    double n_ca, ca_c, c_o, c_n; /* c_n: C of the one before to N */
    double n_ca_c, ca_c_o;       /* angles within */
    double ca_c_n, c_n_ca;       /* angles across the peptide bond */
    double phi, psi, omega;      /* psi: N-CA-C-N of the next; omega:
                                    CA-C-N-CA with the one before */
    double o_torsion;            /* N-CA-C-O */
} internal_geometry;

/* internal [n_residue] out. Values that need a missing neighbour are NaN, but
 * those across a chain break are measured all the same. */
static inline void measure_geometry(const tsr_topology *topology,
                                    const tsr_conformation *conformation,
                                    internal_geometry *internal)
{
    for (int i = 0; i < topology->n_residue; i++) {
        const tsr_residue *r = &topology->residue[i];
        double(*x)[3] = conformation->backbone[i];
        internal_geometry *g = &internal[i];
        g->n_ca = tsr_vec3_distance(x[TSR_N], x[TSR_CA]);
        g->ca_c = tsr_vec3_distance(x[TSR_CA], x[TSR_C]);
        g->c_o = tsr_vec3_distance(x[TSR_C], x[TSR_O]);
        g->n_ca_c = tsr_vec3_angle(x[TSR_N], x[TSR_CA], x[TSR_C]);
        g->ca_c_o = tsr_vec3_angle(x[TSR_CA], x[TSR_C], x[TSR_O]);
        g->o_torsion =
            tsr_vec3_torsion(x[TSR_N], x[TSR_CA], x[TSR_C], x[TSR_O]);
        g->c_n = g->ca_c_n = g->c_n_ca = (double)NAN;
        g->phi = g->psi = g->omega = (double)NAN;
        if (i > r->chain_first) {
            double(*p)[3] = conformation->backbone[i - 1];
            g->c_n = tsr_vec3_distance(p[TSR_C], x[TSR_N]);
            g->ca_c_n = tsr_vec3_angle(p[TSR_CA], p[TSR_C], x[TSR_N]);
            g->c_n_ca = tsr_vec3_angle(p[TSR_C], x[TSR_N], x[TSR_CA]);
            g->omega =
                tsr_vec3_torsion(p[TSR_CA], p[TSR_C], x[TSR_N], x[TSR_CA]);
            g->phi = tsr_vec3_torsion(p[TSR_C], x[TSR_N], x[TSR_CA], x[TSR_C]);
        }
        if (i < r->chain_last) {
            double(*s)[3] = conformation->backbone[i + 1];
            g->psi = tsr_vec3_torsion(x[TSR_N], x[TSR_CA], x[TSR_C], s[TSR_N]);
        }
    }
}

/* Rebuilds all coordinates of every chain from its first residue's N, CA and C
 * (read from `conformation`) and the internal coordinates, bodies included. */
static inline void build_geometry(const tsr_topology *t,
                                  const internal_geometry *internal,
                                  tsr_conformation *c)
{
    for (int i = 0; i < t->n_residue; i++) {
        const tsr_residue *r = &t->residue[i];
        const internal_geometry *g = &internal[i];
        double(*x)[3] = c->backbone[i];
        if (i > r->chain_first) {
            double(*p)[3] = c->backbone[i - 1];
            tsr_place_atom(x[TSR_N], p[TSR_N], p[TSR_CA], p[TSR_C], g->c_n,
                           g->ca_c_n, internal[i - 1].psi);
            tsr_place_atom(x[TSR_CA], p[TSR_CA], p[TSR_C], x[TSR_N], g->n_ca,
                           g->c_n_ca, g->omega);
            tsr_place_atom(x[TSR_C], p[TSR_C], x[TSR_N], x[TSR_CA], g->ca_c,
                           g->n_ca_c, g->phi);
        }
        tsr_place_atom(x[TSR_O], x[TSR_N], x[TSR_CA], x[TSR_C], g->c_o,
                       g->ca_c_o, g->o_torsion);
    }
    tsr_conformation_place_bodies(t, c, 0, t->n_residue);
}

/* Ideal internal coordinates with the torsions given. */
static inline internal_geometry geometry_ideal(double phi_rad, double psi_rad)
{
    return (internal_geometry){.n_ca = TSR_BOND_N_CA,
                               .ca_c = TSR_BOND_CA_C,
                               .c_o = TSR_BOND_C_O,
                               .c_n = TSR_BOND_C_N,
                               .n_ca_c = TSR_ANGLE_N_CA_C,
                               .ca_c_o = TSR_ANGLE_CA_C_O,
                               .ca_c_n = TSR_ANGLE_CA_C_N,
                               .c_n_ca = TSR_ANGLE_C_N_CA,
                               .phi = phi_rad,
                               .psi = psi_rad,
                               .omega = M_PI,
                               .o_torsion = psi_rad + M_PI};
}

#endif
