/* An atom is placed from three others by bond length, angle and torsion; a
 * chain is built by that from its first residue on. */
#include "molecule/geometry.h"

#include "core/vec3.h"

#include <math.h>

#define PI 3.14159265358979323846

void tsr_place_atom(double d[3], const double a[3], const double b[3],
                    const double c[3], double bond_ang, double angle_rad,
                    double torsion_rad)
{
    double ab[3], bc[3], n[3], m[3];
    tsr_vec3_sub(ab, b, a);
    tsr_vec3_sub(bc, c, b);
    tsr_vec3_normalize(bc);
    tsr_vec3_cross(n, ab, bc);
    tsr_vec3_normalize(n);
    tsr_vec3_cross(m, n, bc);
    double x = -bond_ang * cos(angle_rad);
    double r = bond_ang * sin(angle_rad);
    double y = r * cos(torsion_rad), z = r * sin(torsion_rad);
    for (int i = 0; i < 3; i++)
        d[i] = c[i] + x * bc[i] + y * m[i] + z * n[i];
}

void tsr_place_cb(double cb[3], const double n[3], const double ca[3],
                  const double c[3])
{
    /* Engh & Huber 1991: CA-CB 1.530, C-CA-CB 110.1 degrees; the torsion
     * N-C-CA-CB of an L residue, from the same set, is 122.6 degrees. */
    tsr_place_atom(cb, n, c, ca, 1.530, 110.1 * PI / 180.0, 122.6 * PI / 180.0);
}

void tsr_geometry_measure(const tsr_topology *topology,
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

void tsr_geometry_build(const tsr_topology *topology,
                        const tsr_internal *internal,
                        tsr_conformation *conformation)
{
    for (int i = 0; i < topology->n_residue; i++) {
        const tsr_residue *r = &topology->residue[i];
        const tsr_internal *g = &internal[i];
        double(*x)[3] = conformation->backbone[i];
        if (i > r->chain_first) {
            double(*p)[3] = conformation->backbone[i - 1];
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
    tsr_conformation_place_bodies(topology, conformation, 0,
                                  topology->n_residue);
}

tsr_internal tsr_geometry_ideal(double phi_rad, double psi_rad)
{
    return (tsr_internal){.n_ca = TSR_BOND_N_CA,
                          .ca_c = TSR_BOND_CA_C,
                          .c_o = TSR_BOND_C_O,
                          .c_n = TSR_BOND_C_N,
                          .n_ca_c = TSR_ANGLE_N_CA_C,
                          .ca_c_o = TSR_ANGLE_CA_C_O,
                          .ca_c_n = TSR_ANGLE_CA_C_N,
                          .c_n_ca = TSR_ANGLE_C_N_CA,
                          .phi = phi_rad,
                          .psi = psi_rad,
                          .omega = PI,
                          .o_torsion = psi_rad + PI};
}
