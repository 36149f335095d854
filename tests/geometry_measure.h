/* Chain geometry measured: bond lengths, angles and torsions of the backbone,
 * the inverse of tsr_geometry_build (molecule/topology.h). */
#ifndef TSR_TESTS_GEOMETRY_MEASURE_H
#define TSR_TESTS_GEOMETRY_MEASURE_H

#include "core/vec3.h"
#include "molecule/topology.h"

#include <math.h>

/* internal [n_residue] out. Values that need a missing neighbour are NaN, but
 * those across a chain break are measured all the same. */
static inline void measure_geometry(const tsr_topology *topology,
                                    const tsr_conformation *conformation,
                                    tsr_internal *internal)
{
    for (int i = 0; i < topology->n_residue; i++) {
        const tsr_residue *r = &topology->residue[i];
        double(*x)[3] = conformation->backbone[i];
        tsr_internal *g = &internal[i];
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

#endif
