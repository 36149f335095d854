/* Helices and strands are assigned in chains built with known torsions.
 *
 * Whole proteins are in test_parts.c. */
#include "core/vec3.h"
#include "molecule/secondary.h"
#include "molecule/topology.h"
#include "tests/test.h"

enum { N = 16 };
#define RAD(degrees) ((degrees)*3.14159265358979323846 / 180.0)

/* N residues with the same torsions, in degrees. */
static void build(double phi, double psi, tsr_backbone r[N])
{
    const double up[3] = {0.0, 1.0, 0.0};
    memset(r, 0, N * sizeof *r);
    r[0].ca[0] = TSR_BOND_N_CA;
    tsr_place_atom(r[0].c, up, r[0].n, r[0].ca, TSR_BOND_CA_C, TSR_ANGLE_N_CA_C,
                   RAD(0));
    for (int i = 0; i < N; i++) {
        tsr_place_atom(r[i].o, r[i].n, r[i].ca, r[i].c, TSR_BOND_C_O,
                       TSR_ANGLE_CA_C_O, RAD(psi + 180));
        r[i].has_all = 1;
        if (i + 1 == N)
            break;
        tsr_place_atom(r[i + 1].n, r[i].n, r[i].ca, r[i].c, TSR_BOND_C_N,
                       TSR_ANGLE_CA_C_N, RAD(psi));
        tsr_place_atom(r[i + 1].ca, r[i].ca, r[i].c, r[i + 1].n, TSR_BOND_N_CA,
                       TSR_ANGLE_C_N_CA, RAD(180));
        tsr_place_atom(r[i + 1].c, r[i].c, r[i + 1].n, r[i + 1].ca,
                       TSR_BOND_CA_C, TSR_ANGLE_N_CA_C, RAD(phi));
    }
}

static void check_kind(const tsr_backbone *r, const char *want)
{
    char kind[N + 1] = "";
    OK(tsr_secondary_find(N, r, kind, &err));
    assert_string_equal(kind, want);
}

/* The first and the last residue of a run of turns are not of the helix. */
TEST(helices)
{
    tsr_backbone r[N];
    build(-57, -47, r); /* alpha */
    check_kind(r, "CHHHHHHHHHHHHHHC");
    build(-49, -26, r); /* 3-10 */
    check_kind(r, "CHHHHHHHHHHHHHHC");
    build(-57, -70, r); /* pi */
    check_kind(r, "CHHHHHHHHHHHHHHC");
    build(-120, 130, r); /* a strand by itself */
    check_kind(r, "CCCCCCCCCCCCCCCC");
}

/* No turn goes across a break or to a residue that has no N-H, or no atoms. */
TEST(interrupted)
{
    tsr_backbone r[N];
    build(-57, -47, r);
    r[8].n[0] += 3.0; /* from the C before it */
    check_kind(r, "CHHHHHHCCHHHHHHC");
    build(-57, -47, r);
    for (int i = 7; i <= 8; i++)
        r[i].is_proline = 1; /* turns 3 to 7 and 4 to 8 */
    check_kind(r, "CHHHHHHHHHHHHHHC");
    for (int i = 5; i <= 10; i++)
        r[i].is_proline = 1; /* turns from 1 to 6 */
    check_kind(r, "CCCCCCCCHHHHHHHC");
    build(-57, -47, r);
    r[6].has_all = 0;
    check_kind(r, "CHHHHCCCHHHHHHHC");
}
