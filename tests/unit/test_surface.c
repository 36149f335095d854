/* Accessible surfaces equal closed forms and counted points, and a profile with
 * its hydration layer does not change under rotation. */
#include "core/vec3.h"
#include "molecule/structure.h"
#include "scattering/atom_model.h"
#include "scattering/debye.h"
#include "scattering/form_factor.h"
#include "scattering/surface.h"
#include "tests/io_files.h"
#include "tests/test.h"

static void expose(int n, const double (*xyz)[3], const double *radius,
                   double probe, double *fraction, double (*vector)[3])
{
    OK(tsr_surface_exposed(n, xyz, radius, probe, fraction, vector, &err));
}

TEST(surface_of_spheres)
{
    /* two that overlap, one within another, and two that are the same */
    double xyz[6][3] = {{0, 0, 0},    {3, 0, 0},  {50, 0, 0},
                        {50, 0.1, 0}, {90, 0, 0}, {90, 0, 0}};
    double radius[6] = {1.5, 2.0, 1.0, 4.0, 1.0, 1.0};
    double fraction[6], vector[6][3];
    expose(6, (const double(*)[3])xyz, radius, 1.8, fraction, vector);
    /* A cap of height R1 - x is cut off, x = (d^2 + R1^2 - R2^2) / 2 d; its
     * share of the sphere is height / 2 R1, its vector (1 - (x / R1)^2) / 4. */
    double r1 = 3.3, r2 = 3.8, d = 3.0;
    double x = (d * d + r1 * r1 - r2 * r2) / (2.0 * d);
    assert_nears(1e-12, fraction[0], 1.0 - (r1 - x) / (2.0 * r1), fraction[1],
                 1.0 - (r2 - (d - x)) / (2.0 * r2), vector[0][0],
                 -0.25 * (1.0 - pow(x / r1, 2.0)), vector[0][1], 0.0);
    assert_nears(0.0, fraction[2], 0.0, fraction[3], 1.0,
                 fraction[4] + fraction[5], 1.0);
}

static void fill_at_random(int n, double side, double (*xyz)[3], double *radius)
{
    uint32_t seed = 11;
    for (int i = 0; i < n; i++) {
        for (int c = 0; c < 3; c++)
            xyz[i][c] = (io_random(&seed) % 10000) * 1e-4 * side;
        radius[i] = 1.2 + (io_random(&seed) % 10) * 0.1;
    }
}

/* Points of a golden spiral on the sphere, counted. */
static void count_points(int i, int n, const double (*xyz)[3],
                         const double *radius, double probe, double out[4])
{
    enum { N_POINT = 20000 };
    out[0] = out[1] = out[2] = out[3] = 0.0;
    for (int p = 0; p < N_POINT; p++) {
        double z = (2.0 * p + 1.0) / N_POINT - 1.0, t = 2.399963229728653 * p;
        double side = sqrt(1.0 - z * z), at[3];
        const double u[3] = {side * cos(t), side * sin(t), z};
        int is_free = 1;
        for (int c = 0; c < 3; c++)
            at[c] = xyz[i][c] + (radius[i] + probe) * u[c];
        for (int j = 0; j < n && is_free; j++)
            is_free =
                j == i || tsr_vec3_distance(at, xyz[j]) >= radius[j] + probe;
        out[3] += is_free / (double)N_POINT;
        for (int c = 0; c < 3; c++)
            out[c] += is_free * u[c] / N_POINT;
    }
}

/* Spheres of like size, and of many sizes, some of which hold others. */
TEST(surface_is_what_points_find)
{
    enum { N = 60 };
    double xyz[N][3], radius[N], fraction[N], vector[N][3], count[4];
    for (int mixed = 0; mixed < 2; mixed++) {
        fill_at_random(N, 12.0, xyz, radius);
        for (int i = 0; i < N && mixed; i++)
            radius[i] *= i % 10 == 0 ? 2.0 : 0.3 + 0.1 * (i % 10);
        expose(N, (const double(*)[3])xyz, radius, 1.4, fraction, vector);
        for (int i = 0; i < N; i++) {
            count_points(i, N, (const double(*)[3])xyz, radius, 1.4, count);
            assert_near(fraction[i], count[3], 1e-3);
            for (int c = 0; c < 3; c++)
                assert_near(vector[i][c], count[c], 1e-3);
        }
    }
}

/* A cubic lattice of equal spheres: circles meet in common points, where
 * rounding may or may not leave arcs of no length. By symmetry. */
TEST(surface_of_a_lattice)
{
    double xyz[27][3], radius[27], fraction[27];
    for (int i = 0; i < 27; i++) {
        int row = i / 3 % 3, layer = i / 9;
        xyz[i][0] = 2.0 * (i % 3), xyz[i][1] = 2.0 * row;
        xyz[i][2] = 2.0 * layer;
        radius[i] = sqrt(2.0) - 1.0; /* with the probe: edges' middles */
    }
    expose(27, (const double(*)[3])xyz, radius, 1.0, fraction, NULL);
    /* The middle one: six caps of half angle 45 degrees, which touch. */
    assert_near(fraction[13], 1.0 - 3.0 * (1.0 - sqrt(0.5)), 1e-7);
    for (int i = 0; i < 27; i++) /* those of a corner are like each other */
        if (i % 3 != 1 && i / 3 % 3 != 1 && i / 9 != 1)
            assert_near(fraction[i], fraction[0], 1e-7);
}

/* A turn about (1, 2, 2) / 3. */
static void turn(double x[3], double angle)
{
    static const double k[3] = {1.0 / 3.0, 2.0 / 3.0, 2.0 / 3.0};
    double cross[3], along = tsr_vec3_dot(k, x);
    tsr_vec3_cross(cross, k, x);
    for (int c = 0; c < 3; c++)
        x[c] = x[c] * cos(angle) + cross[c] * sin(angle) +
               k[c] * along * (1.0 - cos(angle));
}

static void profile_of(const tsr_atoms *a, double *pair)
{
    enum { N_Q = 12 };
    tsr_atom_model *m;
    OK(tsr_atom_model_new(a, TSR_SOLVENT_LAYER, TSR_WATER_DENSITY, &m, &err));
    double *factor = array(3 * (size_t)m->n_type * N_Q, sizeof *factor);
    tsr_atom_model_factors(m, N_Q, 0.04, factor);
    const tsr_debye_spec spec = tsr_atom_model_spec(m, N_Q, 0.04, factor);
    OK(tsr_debye_reference(&spec, NULL, pair, &err));
    tsr_atom_model_free(m);
}

/* I does not depend on how a molecule is turned; 1e-9 is what coordinates lose.
 */
TEST(rotation_changes_nothing)
{
    double first[72], turned[72];
    NEEDS_SHARED;
    tsr_atoms *a;
    OK(tsr_atoms_read(SHARED "saxs/lysozyme_2epe/model.pdb", &a, &err));
    profile_of(a, first);
    for (int i = 0; i < a->n_atom; i++)
        turn(a->atom[i].xyz, 1.234);
    profile_of(a, turned);
    for (int k = 0; k < 72; k++)
        assert_near(turned[k], first[k], 1e-9 * fabs(first[60 * (k >= 60)]));
    tsr_atoms_free(a);
}
