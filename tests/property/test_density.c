/* Densities and their correlations with a map equal sums voxel by voxel, and
 * obey their symmetries. */
#include "maps/density.h"
#include "maps/fourier.h"
#include "tests/io_files.h"
#include "tests/objects.h"
#include "tests/test.h"

static tsr_pool of_maps;

enum { N_ATOM = 400 };

typedef struct {
    double xyz[N_ATOM][3];
    unsigned char z[N_ATOM];
    tsr_map *map;
    tsr_density_engine *engine;
} sample;

static double uniform(uint64_t *state)
{
    *state =
        *state * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
    return (double)(*state >> 11) * 0x1p-53;
}

/* Atoms in a ball of 12 Angstrom that reaches beyond the map on one side, at
 * multiples of 2^-10 Angstrom, so that shifts by whole voxels are exact. */
static void place(sample *s)
{
    static const unsigned char element[] = {6, 7, 8, 16, 1};
    uint64_t state = 11;
    for (int i = 0; i < N_ATOM; i++) {
        double r2;
        do {
            r2 = 0.0;
            for (int c = 0; c < 3; c++) {
                s->xyz[i][c] = floor(24.0 * 1024 * (uniform(&state) - 0.5));
                s->xyz[i][c] /= 1024.0;
                r2 += s->xyz[i][c] * s->xyz[i][c];
            }
        } while (r2 > 144.0);
        s->xyz[i][0] -= 6.0;
        s->z[i] = element[(int)(5.0 * uniform(&state))];
    }
}

/* A map that is noise, with voxels that are not known. Steps are powers of two,
 * and differ. */
static tsr_map *noise(void)
{
    const tsr_map_grid grid = {.n = {29, 37, 26},
                               .step = {1.0, 1.0, 2.0},
                               .origin = {-16.0, -20.0, -28.0}};
    tsr_map *map;
    uint64_t state = 5;
    OK(tsr_map_new(&grid, &of_maps, &map, &err));
    for (size_t k = 0; k < tsr_map_n_voxel(&grid); k++)
        map->value[k] =
            k % 97 == 0 ? NAN : (float)(uniform(&state) + uniform(&state));
    return map;
}

FIXTURE(setup)
{
    sample *s = array(1, sizeof *s);
    place(s);
    s->map = noise();
    MAKE(tsr_density_engine, s->engine, tsr_density_new, s->map);
    *state = s;
    return 0;
}

static void blur(const sample *s, double resolution)
{
    s->engine->sigma_ang = TSR_SIGMA_OVER_R * resolution;
}

static tsr_density_sums run(tsr_density_engine *engine, double (*xyz)[3],
                            const unsigned char *z, int n,
                            const tsr_density_options *options)
{
    tsr_density_sums out;
    OK(tsr_density_one(engine, n, (const double(*)[3])xyz, z, options, &out,
                       &err));
    return out;
}

/* The definition: every Gaussian at every voxel within its reach. density
 * [n_voxel] and tile [n_tile] out. */
static tsr_density_sums exact(const tsr_density_engine *e, double (*xyz)[3],
                              const unsigned char *z, int n, double mask_ang,
                              double threshold, double *density,
                              tsr_map_sums *tile)
{
    const tsr_map_grid *g = &e->map->grid;
    const int nx = tsr_map_tiles(g->n[0]), ny = tsr_map_tiles(g->n[1]);
    tsr_density_sums out = {.box = {0}};
    for (size_t k = 0; k < tsr_map_n_voxel(g); k++) {
        const int at[3] = {(int)k % g->n[0], (int)k / g->n[0] % g->n[1],
                           (int)k / g->n[0] / g->n[1]};
        int is_masked = 0;
        double s = 0.0, value = (double)e->map->value[k];
        for (int i = 0; i < n; i++) {
            double r2 = 0.0, far = 0.0;
            for (int c = 0; c < 3; c++) {
                const double d = g->origin[c] + g->step[c] * at[c] - xyz[i][c];
                far = fmax(far, fabs(d));
                r2 += d * d;
            }
            is_masked |= r2 <= mask_ang * mask_ang;
            if (far <= TSR_BLUR_REACH * e->sigma_ang)
                s += z[i] * exp(-0.5 * r2 / (e->sigma_ang * e->sigma_ang));
        }
        density[k] = s;
        if (isnan(value))
            continue;
        tsr_map_sums_add(&out.box, value, s);
        if (is_masked)
            tsr_map_sums_add(&out.mask, value, s);
        if (s >= threshold)
            tsr_map_sums_add(&out.above, value, s);
        tsr_map_sums_add(&tile[(at[2] / 8 * ny + at[1] / 8) * nx + at[0] / 8],
                         value, s);
    }
    return out;
}

static void near_sums(const tsr_map_sums *a, const tsr_map_sums *b)
{
    const double got[] = {a->e, a->ee, a->s, a->ss, a->es};
    const double want[] = {b->e, b->ee, b->s, b->ss, b->es};
    assert_true(a->n == b->n);
    for (int k = 0; k < 5; k++)
        if (!(fabs(got[k] - want[k]) <= 1e-12 * fabs(want[k])))
            fail_msg("sum %d is %.12g, not %.12g", k, got[k], want[k]);
    if (a->n > 0.0 && !isnan(tsr_map_cc(b)))
        assert_near(tsr_map_cc(a), tsr_map_cc(b), 1e-10);
}

/* ---- one system ---- */

/* One atom: the Gaussian of its height and width, at every voxel. */
TEST(an_atom_is_the_formula)
{
    sample *s = *state;
    double x[1][3] = {{1.25, -3.5, 4.0}};
    const unsigned char z[1] = {8};
    float *density = array(tsr_map_n_voxel(&s->map->grid), sizeof *density);
    const tsr_density_options o = {.density = density};
    blur(s, 8.0); /* sigma 1.8 */
    run(s->engine, x, z, 1, &o);
    const int *n = s->map->grid.n;
    for (int k = 0; k < n[2]; k++)
        for (int j = 0; j < n[1]; j++)
            for (int i = 0; i < n[0]; i++) {
                double d[3] = {i - 16.0 - x[0][0], j - 20.0 - x[0][1],
                               2.0 * k - 28.0 - x[0][2]};
                double r2 = d[0] * d[0] + d[1] * d[1] + d[2] * d[2];
                double want = 8.0 * exp(-r2 / (2.0 * 1.8 * 1.8));
                for (int c = 0; c < 3; c++)
                    want = fabs(d[c]) > 9.0 ? 0.0 : want;
                double got = (double)density[(k * n[1] + j) * n[0] + i];
                assert_near(got, want, 1e-6);
            }
}

/* A map that is the model's own density has correlation 1, however scaled; with
 * the sign turned, -1; the line gives the scale back; FSC is 1 throughout. */
TEST(a_map_with_itself_is_one)
{
    sample *s = *state;
    tsr_map *own;
    tsr_pool *pool = new_pool();
    tsr_fsc fsc;
    double slope, offset;
    blur(s, 8.0);
    OK(tsr_map_new(&s->map->grid, &of_maps, &own, &err));
    const size_t n = tsr_map_n_voxel(&own->grid);
    tsr_density_options o = {.density = own->value, .mask_ang = 3.0};
    run(s->engine, s->xyz, s->z, N_ATOM, &o);
    float *density = array(n, sizeof *density);
    memcpy(density, own->value, n * sizeof *density);
    for (size_t k = 0; k < n; k++)
        own->value[k] = k % 1009 == 3 ? NAN : 0.25f * own->value[k] + 3.0f;
    NEW(tsr_density_engine, engine, tsr_density_new, own);
    engine->sigma_ang = s->engine->sigma_ang;
    o.density = NULL;
    tsr_density_sums sums = run(engine, s->xyz, s->z, N_ATOM, &o);
    assert_near(tsr_map_cc(&sums.box), 1.0, 1e-6);
    assert_near(tsr_map_cc(&sums.mask), 1.0, 1e-6);
    tsr_map_line(&sums.box, &slope, &offset);
    assert_true(fabs(slope - 0.25) < 1e-6 && fabs(offset - 3.0) < 1e-5);
    OK(tsr_fsc_make(own, density, pool, &fsc, &err));
    assert_true(fsc.n == 13); /* the longest edge, 52, times Nyquist's, 1/4 */
    /* unknown voxels are at the mean in both, which is not the same number */
    for (int k = 0; k < fsc.n / 2; k++)
        assert_true(fsc.fsc[k] > 0.999);
    for (size_t k = 0; k < n; k++)
        own->value[k] = -own->value[k];
    NEW(tsr_density_engine, turned, tsr_density_new, own);
    turned->sigma_ang = s->engine->sigma_ang;
    sums = run(turned, s->xyz, s->z, N_ATOM, &o);
    assert_true(fabs(tsr_map_cc(&sums.box) + 1.0) < 1e-6);
}

/* Unknown voxels count nowhere: the same as a map where they hold anything. */
TEST(unknown_voxels_are_left_out)
{
    sample *s = *state;
    const tsr_density_options o = {.mask_ang = 3.0};
    blur(s, 6.0);
    tsr_density_sums with = run(s->engine, s->xyz, s->z, N_ATOM, &o);
    const size_t n = tsr_map_n_voxel(&s->map->grid);
    size_t known = 0;
    for (size_t k = 0; k < n; k++)
        known += isnan(s->map->value[k]) ? 0 : 1;
    assert_true(known < n);
    assert_true(with.box.n == (double)known);
    assert_true(with.mask.n > 0.0 && with.mask.n < with.box.n);
    assert_true(isfinite(tsr_map_cc(&with.box)));
}

static void compare(sample *s, double resolution, double threshold)
{
    const size_t n = tsr_map_n_voxel(&s->map->grid);
    const size_t n_tile = tsr_map_n_tile(&s->map->grid);
    double *density = array(n, sizeof *density);
    float *got_density = array(n, sizeof *got_density);
    tsr_map_sums *tile = array(n_tile, sizeof *tile);
    tsr_map_sums *got_tile = array(n_tile, sizeof *got_tile);
    blur(s, resolution);
    const tsr_density_sums want =
        exact(s->engine, s->xyz, s->z, N_ATOM, 3.0, threshold, density, tile);
    tsr_density_options o = {.mask_ang = 3.0, .threshold = &threshold};
    tsr_density_sums got = run(s->engine, s->xyz, s->z, N_ATOM, &o);
    for (int k = 0; k < 2; k++) { /* alone, and with the optional results */
        near_sums(&got.box, &want.box);
        near_sums(&got.mask, &want.mask);
        near_sums(&got.above, &want.above);
        o.density = got_density, o.tile = got_tile;
        got = run(s->engine, s->xyz, s->z, N_ATOM, &o);
    }
    for (size_t k = 0; k < n; k++)
        assert_near((double)got_density[k], density[k],
                    1e-6 * fmax(1.0, density[k]));
    for (size_t k = 0; k < n_tile; k++)
        near_sums(&got_tile[k], &tile[k]);
}

TEST(sums_are_the_definition)
{
    sample *s = *state;
    compare(s, 5.0, 2.0);
    compare(s, 12.0, 2.0); /* over more than a slab */
    compare(s, 1.5, 2.0);  /* narrower than a voxel */
    compare(s, 5.0, 0.0);  /* all voxels are above */
}

/* ---- many systems ---- */

/* Systems that lie apart, beyond the map, or are empty, in one call, more than
 * a group: each has the sums that it has alone, whatever the threads. */
TEST(calls_hold_anything)
{
    enum { N = 130 };
    sample *s = *state;
    double threshold[N];
    tsr_density_sums out[N];
    tsr_systems many;
    tsr_density_options o = {.mask_ang = 2.0, .threshold = threshold};
    blur(s, 5.0);
    OK(tsr_systems_make(&of_maps, N, (size_t)N * 40, &many, &err));
    for (int k = 0; k < N; k++) {
        const int n = k % 4 == 1 ? 0 : 7 + k % 31;
        double(*x)[3] = tsr_systems_add(
            &many, n, NULL, (const double(*)[3])s->xyz + k, s->z + k);
        for (int i = 0; i < n && k % 4 == 2; i++)
            x[i][1] += 500.0;
        threshold[k] = 0.1;
    }
    OK(tsr_density_run(s->engine, &many, &o, out, &err));
    s->engine->n_thread = 1;
    for (int k = 0; k < N; k++) {
        const int from = many.first[k];
        const tsr_density_sums alone =
            run(s->engine, many.xyz + from, many.z + from,
                many.first[k + 1] - from, &o);
        assert_memory_equal(&out[k], &alone, sizeof alone);
        assert_true((alone.box.s > 0.0) == (k % 4 == 0 || k % 4 == 3));
    }
    assert_true(isnan(tsr_map_cc(&out[1].box)));
    assert_true(out[2].mask.n == 0.0 && out[2].box.n == out[0].box.n);
    float *density = array(tsr_map_n_voxel(&s->map->grid), sizeof *density);
    density[5] = 1.0f;
    o.density = density;
    run(s->engine, many.xyz + many.first[2], many.z + many.first[2], 9, &o);
    assert_true(density[5] == 0.0f);
}

TEST(coordinates_are_finite)
{
    sample *s = *state;
    const double x[1][3] = {{0.0, NAN, 0.0}};
    const unsigned char z[1] = {6};
    const tsr_density_options o = {0};
    tsr_density_sums out;
    assert_int_equal(tsr_density_one(s->engine, 1, x, z, &o, &out, NULL),
                     TSR_E_NUMERIC);
}

static test_fixture around_all = {setup, NULL};
