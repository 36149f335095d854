/* Densities and their correlations with a map obey their symmetries, and the
 * device equals the reference in double precision. */
#include "maps/density.h"
#include "maps/fourier.h"
#include "maps/map_sum.h"
#include "tests/io_files.h"
#include "tests/objects.h"
#include "tests/test.h"

static tsr_pool of_maps;

enum { N_ATOM = 400 };

typedef struct {
    double xyz[N_ATOM][3];
    unsigned char z[N_ATOM];
    unsigned char elements[N_ATOM];
    tsr_map *map;
    tsr_device *device; /* NULL: none here */
    tsr_density_engine *reference, *fast;
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
        s->elements[i] = s->z[i];
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
    MAKE(tsr_density_engine, s->reference, tsr_density_reference_new, s->map);
    if (tsr_device_open("auto", &s->device, &err) == TSR_OK) {
        own_tsr_device(s->device);
        MAKE(tsr_density_engine, s->fast, tsr_map_sum_new, s->device, s->map);
    }
    *state = s;
    return 0;
}

static void blur(const sample *s, tsr_blur kind, double resolution)
{
    tsr_blur_table table;
    OK(tsr_blur_make(kind, resolution, tsr_blur_default_width(kind), N_ATOM,
                     s->elements, &table, &err));
    OK(s->reference->set_blur(s->reference, &table, &err));
    if (s->fast != NULL)
        OK(s->fast->set_blur(s->fast, &table, &err));
}

static tsr_density_sums run(tsr_density_engine *engine, double (*xyz)[3],
                            const unsigned char *z, int n,
                            const tsr_density_options *options)
{
    const int first[2] = {0, n};
    const tsr_density_batch batch = {
        .n_system = 1, .first = first, .xyz = (const double(*)[3])xyz, .z = z};
    tsr_density_sums out;
    OK(engine->run(engine, &batch, options, &out, &err));
    return out;
}

static void near_sums(const tsr_map_sums *a, const tsr_map_sums *b)
{
    const double got[] = {a->e, a->ee, a->s, a->ss, a->es};
    const double want[] = {b->e, b->ee, b->s, b->ss, b->es};
    assert_true(a->n == b->n);
    for (int k = 0; k < 5; k++)
        if (!(fabs(got[k] - want[k]) <= 1e-6 * fabs(want[k])))
            fail_msg("sum %d is %.12g, not %.12g", k, got[k], want[k]);
    if (a->n > 0.0 && !isnan(tsr_map_cc(b)))
        assert_near(tsr_map_cc(a), tsr_map_cc(b), 1e-6);
}

/* ---- the reference ---- */

/* One atom: the Gaussian of its height and width, at every voxel. */
TEST(reference_is_the_formula)
{
    sample *s = *state;
    double x[1][3] = {{1.25, -3.5, 4.0}};
    const unsigned char z[1] = {8};
    float *density = array(tsr_map_n_voxel(&s->map->grid), sizeof *density);
    const tsr_density_options o = {.density = density};
    blur(s, TSR_BLUR_GAUSSIAN, 8.0); /* sigma 1.8 */
    run(s->reference, x, z, 1, &o);
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

/* The five Gaussians, summed over space, are f(0) times 4 pi / 8 pi^2 * ...: in
 * the convention of `electron` the integral of an atom is f(0). */
TEST(electron_form_factor_has_its_integral)
{
    const unsigned char z[1] = {6};
    tsr_blur_table table;
    OK(tsr_blur_make(TSR_BLUR_ELECTRON, 3.0, 0.225, 1, z, &table, &err));
    double sum = 0.0;
    for (int k = 0; k < table.n; k++)
        sum += table.gaussian[k].amplitude *
               pow(2.0 * 3.14159265358979 * table.gaussian[k].sigma_ang *
                       table.gaussian[k].sigma_ang,
                   1.5);
    assert_near(sum, 2.509, 0.002); /* carbon, International Tables */
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
    blur(s, TSR_BLUR_GAUSSIAN, 8.0);
    OK(tsr_map_new(&s->map->grid, &of_maps, &own, &err));
    const size_t n = tsr_map_n_voxel(&own->grid);
    tsr_density_options o = {.density = own->value, .mask_ang = 3.0};
    run(s->reference, s->xyz, s->z, N_ATOM, &o);
    float *density = array(n, sizeof *density);
    memcpy(density, own->value, n * sizeof *density);
    for (size_t k = 0; k < n; k++)
        own->value[k] = k % 1009 == 3 ? NAN : 0.25f * own->value[k] + 3.0f;
    NEW(tsr_density_engine, engine, tsr_density_reference_new, own);
    engine->set_blur(engine, &s->reference->blur, &err);
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
    sums = run(engine, s->xyz, s->z, N_ATOM, &o);
    assert_true(fabs(tsr_map_cc(&sums.box) + 1.0) < 1e-6);
}

/* Unknown voxels count nowhere: the same as a map where they hold anything. */
TEST(unknown_voxels_are_left_out)
{
    sample *s = *state;
    const tsr_density_options o = {.mask_ang = 3.0};
    blur(s, TSR_BLUR_GAUSSIAN, 6.0);
    tsr_density_sums with = run(s->reference, s->xyz, s->z, N_ATOM, &o);
    const size_t n = tsr_map_n_voxel(&s->map->grid);
    size_t known = 0;
    for (size_t k = 0; k < n; k++)
        known += isnan(s->map->value[k]) ? 0 : 1;
    assert_true(known < n);
    assert_true(with.box.n == (double)known);
    assert_true(with.mask.n > 0.0 && with.mask.n < with.box.n);
    assert_true(isfinite(tsr_map_cc(&with.box)));
}

/* ---- the device ---- */

static int no_device(const sample *s)
{
    if (s->fast == NULL)
        print_message("skipped: no OpenCL device for density maps\n");
    return s->fast == NULL;
}

static void compare(sample *s, tsr_blur kind, double resolution)
{
    const size_t n = tsr_map_n_voxel(&s->map->grid);
    float *a = array(n, sizeof *a), *b = array(n, sizeof *b);
    double threshold[1] = {0.0};
    tsr_density_options o = {
        .mask_ang = 3.0, .threshold = threshold, .density = a};
    float most = 0.0f;
    blur(s, kind, resolution);
    threshold[0] = 0.3 * s->reference->blur.gaussian[0].amplitude;
    tsr_density_sums want = run(s->reference, s->xyz, s->z, N_ATOM, &o);
    o.density = b;
    tsr_density_sums got = run(s->fast, s->xyz, s->z, N_ATOM, &o);
    for (size_t k = 0; k < n; k++)
        most = a[k] > most ? a[k] : most;
    for (size_t k = 0; k < n; k++)
        assert_true(fabsf(a[k] - b[k]) <= 3e-6f * most);
    near_sums(&got.box, &want.box);
    near_sums(&got.mask, &want.mask);
    near_sums(&got.above, &want.above);
    assert_true(want.above.n > 0.0 && want.above.n < want.box.n);
}

TEST(device_meets_the_reference)
{
    sample *s = *state;
    if (no_device(s))
        skip();
    compare(s, TSR_BLUR_GAUSSIAN, 5.0);
    compare(s, TSR_BLUR_RADIUS, 9.0); /* reaches over more than a tile */
    compare(s, TSR_BLUR_ELECTRON, 4.0);
    compare(s, TSR_BLUR_GAUSSIAN, 24.0); /* over four tiles */
    compare(s, TSR_BLUR_GAUSSIAN, 1.5);  /* narrower than a voxel */
}

/* The self-test before use passes here, and not on a kernel that is wrong. */
TEST(self_test)
{
    sample *s = *state;
    double error = 1.0;
    err = (tsr_err){0};
    if (no_device(s))
        skip();
    OK(tsr_map_sum_test(s->device, &error, &err));
    assert_true(error < 2e-6);
    const char *command =
        format("sed 's/6.9314718e-1f/6.9324718e-1f/' kernels/map_sum.cl >%s",
               io_path("map_sum.cl"));
    assert_int_equal(system(command), 0); /* NOLINT */
    setenv("TSR_KERNEL_DIR", io_dir, 1);
    assert_int_equal(tsr_map_sum_test(s->device, &error, &err), TSR_E_DEVICE);
    unsetenv("TSR_KERNEL_DIR");
    assert_has(err.message, "fails the self-test of density maps");
}

static void same_bits(const tsr_density_sums *a, const tsr_density_sums *b)
{
    assert_memory_equal(a, b, sizeof *a);
}

/* The order of atoms, and what else is in the batch, change no bit. */
TEST(order_and_batch_change_no_bit)
{
    sample *s = *state;
    double xyz[3 * N_ATOM][3], threshold[3] = {1.0, 1.0, 1.0};
    unsigned char z[3 * N_ATOM];
    int first[4] = {0, N_ATOM, 2 * N_ATOM, 3 * N_ATOM};
    tsr_density_sums out[3];
    if (no_device(s))
        skip();
    blur(s, TSR_BLUR_GAUSSIAN, 6.0);
    for (int i = 0; i < N_ATOM; i++) {
        const int from = i * 177 % N_ATOM; /* a permutation */
        memcpy(xyz[i], s->xyz[i], sizeof xyz[i]);
        memcpy(xyz[N_ATOM + i], s->xyz[N_ATOM - 1 - i], sizeof xyz[i]);
        memcpy(xyz[2 * N_ATOM + i], s->xyz[from], sizeof xyz[i]);
        z[i] = s->z[i], z[N_ATOM + i] = s->z[N_ATOM - 1 - i];
        z[2 * N_ATOM + i] = s->z[from];
    }
    const tsr_density_batch batch = {
        .n_system = 3, .first = first, .xyz = (const double(*)[3])xyz, .z = z};
    const tsr_density_options o = {.mask_ang = 3.0, .threshold = threshold};
    OK(s->fast->run(s->fast, &batch, &o, out, &err));
    const tsr_density_sums alone = run(s->fast, s->xyz, s->z, N_ATOM, &o);
    for (int k = 0; k < 3; k++)
        same_bits(&out[k], &alone);
}

/* More atoms than one piece on their way to the device: as systems of one call,
 * pieces begin within a system, and each has the bits that it has alone. As one
 * system, whose lists are made by other kernels, their sums add up: those of S,
 * which are integers, exactly. */
TEST(pieces_change_no_bit)
{
    enum { N_COPY = 100, N = N_COPY * N_ATOM };
    sample *s = *state;
    if (no_device(s))
        skip();
    double(*xyz)[3] = array(N, sizeof *xyz);
    unsigned char *z = array(N, 1);
    tsr_density_sums out[N_COPY];
    int first[N_COPY + 1] = {0};
    blur(s, TSR_BLUR_GAUSSIAN, 4.0);
    for (int k = 0; k < N_COPY; k++) {
        memcpy(xyz + first[k], s->xyz, sizeof s->xyz);
        memcpy(z + first[k], s->z, sizeof s->z);
        first[k + 1] = first[k] + N_ATOM;
    }
    const tsr_density_batch batch = {.n_system = N_COPY,
                                     .first = first,
                                     .xyz = (const double(*)[3])xyz,
                                     .z = z};
    const tsr_density_options o = {0};
    const tsr_density_sums alone = run(s->fast, s->xyz, s->z, N_ATOM, &o);
    OK(s->fast->run(s->fast, &batch, &o, out, &err));
    for (int k = 0; k < N_COPY; k++)
        same_bits(&out[k], &alone);
    const tsr_map_sums whole = run(s->fast, xyz, z, N, &o).box;
    assert_true(whole.s == N_COPY * alone.box.s);
    assert_near(whole.es / (N_COPY * alone.box.es), 1.0, 1e-9);
}

/* All atoms and the map shifted by whole voxels, across the tiles' edges. */
TEST(whole_voxels_change_no_bit)
{
    sample *s = *state;
    if (no_device(s))
        skip();
    const tsr_map_grid *g = &s->map->grid;
    const size_t n = tsr_map_n_voxel(g);
    float *a = array(n, sizeof *a), *b = array(n, sizeof *b);
    double moved[N_ATOM][3];
    const int by[3] = {5, 3, 1};
    blur(s, TSR_BLUR_GAUSSIAN, 5.0);
    for (int i = 0; i < N_ATOM; i++)
        for (int c = 0; c < 3; c++)
            moved[i][c] = s->xyz[i][c] + by[c] * g->step[c];
    tsr_density_options o = {.density = a};
    run(s->fast, s->xyz, s->z, N_ATOM, &o);
    o.density = b;
    run(s->fast, moved, s->z, N_ATOM, &o);
    for (int z = 0; z + by[2] < g->n[2]; z++)
        for (int y = 0; y + by[1] < g->n[1]; y++)
            for (int x = 0; x + by[0] < g->n[0]; x++) {
                float here = a[(z * g->n[1] + y) * g->n[0] + x];
                float there = b[((z + by[2]) * g->n[1] + y + by[1]) * g->n[0] +
                                x + by[0]];
                assert_memory_equal(&here, &there, sizeof here);
            }
}

/* Systems that lie apart, beyond the map, or are empty, in one call. */
TEST(batches_hold_anything)
{
    sample *s = *state;
    double xyz[40][3];
    unsigned char z[40];
    const int first[5] = {0, 10, 10, 30, 40};
    tsr_density_sums fast[4], slow[4];
    const tsr_density_options o = {.mask_ang = 2.0};
    if (no_device(s))
        skip();
    blur(s, TSR_BLUR_RADIUS, 5.0);
    for (int i = 0; i < 40; i++) {
        memcpy(xyz[i], s->xyz[7 * i], sizeof xyz[i]);
        z[i] = s->z[7 * i];
        if (i >= 30)
            xyz[i][1] += 500.0;
    }
    const tsr_density_batch batch = {
        .n_system = 4, .first = first, .xyz = (const double(*)[3])xyz, .z = z};
    OK(s->fast->run(s->fast, &batch, &o, fast, &err));
    OK(s->reference->run(s->reference, &batch, &o, slow, &err));
    for (int k = 0; k < 4; k++) {
        near_sums(&fast[k].box, &slow[k].box);
        near_sums(&fast[k].mask, &slow[k].mask);
    }
    assert_true(isnan(tsr_map_cc(&fast[1].box)));
    assert_true(fast[3].box.s == 0.0);
    float *density = array(tsr_map_n_voxel(&s->map->grid), sizeof *density);
    density[5] = 1.0f;
    const tsr_density_options wanted = {.density = density};
    const tsr_density_sums far =
        run(s->fast, xyz + 30, z + 30, 10, &wanted); /* alone */
    assert_true(far.box.s == 0.0 && far.box.n == slow[3].box.n);
    assert_true(density[5] == 0.0f);
}

TEST(coordinates_are_finite)
{
    sample *s = *state;
    double x[1][3] = {{0.0, NAN, 0.0}};
    const unsigned char z[1] = {6};
    const int first[2] = {0, 1};
    const tsr_density_batch batch = {
        .n_system = 1, .first = first, .xyz = (const double(*)[3])x, .z = z};
    const tsr_density_options o = {0};
    tsr_density_sums out;
    assert_int_equal(s->reference->run(s->reference, &batch, &o, &out, NULL),
                     TSR_E_NUMERIC);
    if (s->fast != NULL)
        assert_int_equal(s->fast->run(s->fast, &batch, &o, &out, NULL),
                         TSR_E_NUMERIC);
}

static test_fixture around_all = {setup, NULL};
