/* The shell correlation of two maps is right, and masks cover what they
 * should. */
#include "core/vec3.h"
#include "maps/density.h"
#include "maps/fourier.h"
#include "maps/map_source.h"
#include "tests/io_files.h"
#include "tests/test.h"

#include <gsl/gsl_randist.h>

static tsr_pool of_maps;

enum { SIDE = 40 };

static tsr_map *new_map(void)
{
    const tsr_map_grid g = {.n = {SIDE, SIDE, SIDE},
                            .step = {2.0, 2.0, 2.0},
                            .origin = {-5.0, 3.0, 0.0}};
    tsr_map *map;
    OK(tsr_map_new(&g, &of_maps, &map, &err));
    return map;
}

static size_t n_voxel(const tsr_map *map)
{
    return tsr_map_n_voxel(&map->grid);
}

/* White noise, of which frequencies with `from` <= s < `to` are kept. */
static void add_noise(tsr_map *map, uint64_t stream, double sd, double from,
                      double to)
{
    gsl_rng *rng = rng_new(5, stream);
    float *value = array(n_voxel(map) * sizeof *value, 1);
    CLEARED(tsr_fourier) f;
    for (size_t k = 0; k < n_voxel(map); k++)
        value[k] = (float)gsl_ran_gaussian(rng, sd);
    assert_int_equal(tsr_fourier_make(&map->grid, value, 0.0, &f, NULL), 0);
    size_t at = 0;
    for (int z = 0; z < SIDE; z++)
        for (int y = 0; y < SIDE; y++)
            for (int x = 0; x < f.half; x++, at++) {
                const double s = sqrt(pow(tsr_fourier_s(&map->grid, 0, x), 2) +
                                      pow(tsr_fourier_s(&map->grid, 1, y), 2) +
                                      pow(tsr_fourier_s(&map->grid, 2, z), 2));
                if (s < from || s >= to)
                    f.f[at][0] = f.f[at][1] = 0.0f;
            }
    OK(tsr_fourier_back(&f, value, &err));
    for (size_t k = 0; k < n_voxel(map); k++)
        map->value[k] += value[k];
}

TEST(signal_and_noise)
{
    tsr_map *half[2] = {new_map(), new_map()};
    CLEARED(tsr_pool) pool = {0};
    tsr_fsc h;
    /* signal of variance 1 and noise of 0.25 up to 0.1 / Angstrom, there the
       FSC is 1 / 1.25; beyond it noise alone */
    for (uint64_t k = 0; k < 2; k++) {
        add_noise(half[k], 9, 1.0, 0.0, 0.1);
        add_noise(half[k], k, 0.5, 0.0, 9.9);
    }
    OK(tsr_fsc_make(half[0], half[1]->value, &pool, &h, &err));
    for (int k = 3; k < h.n; k++) {
        const double s = h.s_inv_ang[k];
        if (fabs(s - 0.1) > 0.02)
            assert_near(h.fsc[k], (s < 0.1 ? 0.8 : 0.0), 0.12);
    }
    /* both levels between the shells on either side of the step, linear */
    const double width = h.s_inv_ang[0];
    assert_near(h.half_inv_ang, 0.1, width);
    assert_true(h.low_inv_ang > h.half_inv_ang);
    for (int k = 1; k < h.n; k++)
        if (h.fsc[k - 1] >= 0.5 && h.fsc[k] < 0.5) {
            const double a = h.fsc[k - 1], b = h.fsc[k];
            const double at = h.s_inv_ang[k - 1] + width * (a - 0.5) / (a - b);
            assert_near(h.half_inv_ang, at, 1e-12);
            break;
        }
}

/* ---- masks ---- */

static double nearest(const tsr_map_grid *g, size_t k, int n,
                      const double (*xyz)[3])
{
    const size_t at[3] = {k % SIDE, k / SIDE % SIDE, k / (SIDE * SIDE)};
    double best = HUGE_VAL;
    for (int i = 0; i < n; i++) {
        double sum = 0.0;
        for (int c = 0; c < 3; c++)
            sum +=
                pow(g->origin[c] + g->step[c] * (double)at[c] - xyz[i][c], 2.0);
        best = fmin(best, sqrt(sum));
    }
    return best;
}

static double edge_of(double distance, double radius, double edge)
{
    const double x = (distance - radius) / edge;
    return x <= 0.0 ? 1.0 : x >= 1.0 ? 0.0 : 0.5 + 0.5 * cos(TSR_PI * x);
}

TEST(around_places)
{
    const double xyz[3][3] = {
        {20.0, 30.0, 40.0}, {27.0, 31.0, 44.0}, {-15.0, 3.0, 0.0}};
    tsr_map *map = new_map();
    float *value = array(n_voxel(map) * sizeof *value, 1);
    tsr_mask_around(&map->grid, 3, xyz, 9.0, 5.0, value);
    for (size_t k = 0; k < n_voxel(map); k++)
        assert_near((double)value[k],
                    edge_of(nearest(&map->grid, k, 3, xyz), 9.0, 5.0), 1e-5);
}

/* As around all voxels that are dense, of which inner ones are passed over. */
TEST(around_what_is_dense)
{
    tsr_map *map = new_map();
    double(*xyz)[3] = array(n_voxel(map), sizeof *xyz);
    float *value = array(n_voxel(map) * sizeof *value, 1);
    float *want = array(n_voxel(map) * sizeof *want, 1);
    int n = 0;
    for (int z = 10; z < 20; z++)
        for (int y = 0; y < 6; y++)
            for (int x = 30; x < SIDE; x++) {
                map->value[(z * SIDE + y) * SIDE + x] = 2.0f;
                xyz[n][0] = -5.0 + 2.0 * x;
                xyz[n][1] = 3.0 + 2.0 * y;
                xyz[n++][2] = 2.0 * z;
            }
    map->value[0] = NAN;
    tsr_mask_around(&map->grid, n, (const double(*)[3])xyz, 4.0, 3.0, want);
    OK(tsr_mask_above(map, 2.0, 4.0, 3.0, value, &err));
    for (size_t k = 0; k < n_voxel(map); k++)
        assert_true(fabs((double)(value[k] - want[k])) < 1e-5);
    assert_int_equal(tsr_mask_above(map, 2.1, 4.0, 3.0, value, &err),
                     TSR_E_DATA);
}

TEST(what_users_write)
{
    tsr_mask kind;
    double x;
    OK(tsr_mask_parse("model", &kind, &x, &err));
    assert_int_equal(kind, TSR_MASK_MODEL);
    OK(tsr_mask_parse("model.mrc", &kind, &x, &err));
    assert_int_equal(kind, TSR_MASK_FILE);
    assert_int_equal(tsr_mask_parse("threshold:0.02", &kind, &x, &err), 0);
    assert_int_equal(kind, TSR_MASK_THRESHOLD);
    assert_near(x, 0.02, 1e-15);
    assert_int_equal(tsr_mask_parse("threshold:high", &kind, &x, &err),
                     TSR_E_USAGE);
}
