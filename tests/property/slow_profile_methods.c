/* The grid FFT and the plane waves against Debye's formula for large molecules:
 * 100,000 particles, q D to 500. */
#include "profile_methods.h"
#include "tests/test.h"

TEST(large_molecules)
{
    static const struct {
        shape kind;
        int n;
        double d;
        int every;
    } samples[] = {{BALL, 100000, 170.0, 24},
                   {SHELL, 15000, 990.0, 160},
                   {ROD, 15000, 990.0, 160},
                   {COIL, 15000, 990.0, 160},
                   {COIL, 1500, 990.0, 16}};
    for (int i = 0; i < 5; i++) {
        molecule m;
        molecule_make(&m, samples[i].kind, samples[i].n, samples[i].d, 0.5,
                      21 + (uint64_t)i);
        methods_meet(&m, shape_name[samples[i].kind], samples[i].every, 1e-5,
                     1e-5);
    }
}
