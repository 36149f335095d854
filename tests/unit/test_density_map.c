/* Density maps are read from every form that MRC2014 allows and that real
 * programs write; other files are refused with a reason. */
#include "maps/density_map.h"
#include "tests/io_files.h"
#include "tests/test.h"

static tsr_pool of_maps;

enum { HEADER = 1024, NC = 3, NR = 4, NS = 5, N = NC * NR * NS };

/* A file in memory: 1024 bytes of header, then voxels. */
typedef struct {
    unsigned char byte[HEADER + 8 * N];
    size_t size;
} file;

static void put_int(file *f, int word, int32_t value)
{
    memcpy(f->byte + 4 * (word - 1), &value, 4);
}

static void put_float(file *f, int word, float value)
{
    memcpy(f->byte + 4 * (word - 1), &value, 4);
}

/* 3 x 4 x 5 voxels of 1, 2, 4 Angstrom at (10, 20, 30); the k-th voxel of the
 * file is k. Mode 2. */
static file good(void)
{
    file f = {.size = HEADER};
    const int n[3] = {NC, NR, NS};
    for (int c = 0; c < 3; c++) {
        put_int(&f, 1 + c, n[c]);
        put_int(&f, 8 + c, n[c]);
        put_float(&f, 11 + c, (float)(n[c] << c));
        put_float(&f, 14 + c, 90.0f);
        put_int(&f, 17 + c, c + 1);
        put_float(&f, 50 + c, 10.0f * (float)(c + 1));
    }
    put_int(&f, 4, 2);
    memcpy(f.byte + 208, "MAP DA", 6);
    for (int k = 0; k < N; k++) {
        const float v = (float)k;
        memcpy(f.byte + f.size, &v, 4);
        f.size += 4;
    }
    return f;
}

static tsr_status try_read(const file *f, tsr_map_origin origin, tsr_map **map)
{
    const char *path = io_write("map.mrc", f->byte, f->size);
    return tsr_map_read(path, origin, NULL, &of_maps, map, &err);
}

static tsr_map *read_map(const file *f)
{
    tsr_map *map;
    OK(try_read(f, TSR_MAP_ORIGIN_AUTO, &map));
    return map;
}

static void refused(const file *f, const char *says)
{
    tsr_map *map;
    err = (tsr_err){0};
    assert_int_equal(try_read(f, TSR_MAP_ORIGIN_AUTO, &map), TSR_E_DATA);
    assert_null(map);
    assert_has(err.message, says);
}

static void is_good(const tsr_map *map)
{
    for (int c = 0; c < 3; c++) {
        assert_int_equal(map->grid.n[c], 3 + c);
        assert_near(map->grid.step[c], 1 << c, 1e-6);
        assert_near(map->grid.origin[c], 10.0 * (c + 1), 1e-5);
    }
    for (int k = 0; k < N; k++)
        assert_true(map->value[k] == (float)k);
}

TEST(plain)
{
    const file f = good();
    is_good(read_map(&f));
}

TEST(other_byte_order)
{
    for (int stamp = 0; stamp < 3; stamp++) { /* right, 0, wrong */
        file f = good();
        for (size_t k = 0; k < f.size; k += 4)
            if (k < 208 || (k >= 216 && k < 224) || k >= HEADER)
                for (int b = 0; b < 2; b++) {
                    unsigned char t = f.byte[k + (size_t)b];
                    f.byte[k + (size_t)b] = f.byte[k + 3 - (size_t)b];
                    f.byte[k + 3 - (size_t)b] = t;
                }
        const unsigned char is[] = {0x11, 0, 0x44};
        f.byte[212] = f.byte[213] = is[stamp];
        is_good(read_map(&f));
    }
}

/* The stamp 0, no "MAP ", NaN as statistics, no intervals, garbage in the
 * unused words, an extended header. */
TEST(odd_headers)
{
    file f = good();
    memset(f.byte + 208, 0, 8);
    for (int w = 20; w <= 22; w++)
        put_float(&f, w, NAN);
    for (int c = 0; c < 3; c++)
        put_int(&f, 8 + c, 0);
    for (int w = 25; w < 50; w++)
        put_int(&f, w, (int32_t)(0x1e2ab3c4u * (uint32_t)w));
    is_good(read_map(&f));
    f = good();
    memmove(f.byte + HEADER + 80, f.byte + HEADER, 4 * N);
    put_int(&f, 24, 80);
    f.size += 80;
    is_good(read_map(&f));
}

TEST(modes)
{
    static const uint16_t half[] = {0x0000, 0x3c00, 0xc000, 0x7bff,
                                    0x0001, 0x7c00, 0x7e00};
    static const float is[] = {0.0f, 1.0f, -2.0f, 65504.0f, 0x1p-24f};
    file f = good();
    put_int(&f, 4, 0);
    for (int k = 0; k < N; k++)
        f.byte[HEADER + k] = (unsigned char)(k - 20);
    tsr_map *map = read_map(&f);
    for (int k = 0; k < N; k++)
        assert_true(map->value[k] == (float)(k - 20));
    for (int mode = 1; mode <= 6; mode += 5) {
        put_int(&f, 4, mode);
        for (int k = 0; k < N; k++) {
            const uint16_t v = (uint16_t)(k * 1100);
            memcpy(f.byte + HEADER + 2 * k, &v, 2);
        }
        map = read_map(&f);
        for (int k = 0; k < N; k++)
            assert_true(map->value[k] ==
                        (float)(mode == 1 ? (int16_t)(k * 1100) : k * 1100));
    }
    put_int(&f, 4, 12);
    memset(f.byte + HEADER, 0, 2 * N);
    memcpy(f.byte + HEADER, half, sizeof half);
    map = read_map(&f);
    for (int k = 0; k < 5; k++)
        assert_true(map->value[k] == is[k]);
    assert_true(isnan(map->value[5]) && isnan(map->value[6]));
}

/* Sections along x, columns along y, rows along z. */
TEST(axes_in_any_order)
{
    file f = good();
    const int axis[3] = {2, 3, 1}, start[3] = {7, -8, 9};
    const int n[3] = {NS, NC, NR}; /* along x, y, z */
    for (int i = 0; i < 3; i++) {
        put_int(&f, 17 + i, axis[i]);
        put_int(&f, 5 + i, start[i]);
        put_int(&f, 8 + i, n[i]);
        put_float(&f, 11 + i, (float)n[i] * (float)(1 + i));
        put_float(&f, 50 + i, 0.0f);
    }
    tsr_map *map = read_map(&f);
    for (int c = 0; c < 3; c++) {
        assert_int_equal(map->grid.n[c], n[c]);
        assert_near(map->grid.step[c], 1 + c, 1e-6);
    }
    assert_nears(1e-6, map->grid.origin[0], 9.0, map->grid.origin[1], 14.0,
                 map->grid.origin[2], -24.0);
    for (int s = 0; s < NS; s++)
        for (int r = 0; r < NR; r++)
            for (int c = 0; c < NC; c++)
                assert_true(map->value[(r * n[1] + c) * n[0] + s] ==
                            (float)((s * NR + r) * NC + c));
}

TEST(two_origins)
{
    file f = good();
    tsr_map *map;
    for (int c = 0; c < 3; c++)
        put_int(&f, 5 + c, 3);
    OK(try_read(&f, TSR_MAP_ORIGIN_AUTO, &map));
    assert_near(map->grid.origin[2], 30.0, 1e-5);
    OK(try_read(&f, TSR_MAP_ORIGIN_NSTART, &map));
    assert_near(map->grid.origin[2], 12.0, 1e-5);
    for (int c = 0; c < 3; c++)
        put_float(&f, 50 + c, 0.0f);
    OK(try_read(&f, TSR_MAP_ORIGIN_AUTO, &map));
    assert_near(map->grid.origin[1], 6.0, 1e-5);
    OK(try_read(&f, TSR_MAP_ORIGIN_FIELD, &map));
    assert_near(map->grid.origin[1], 0.0, 1e-5);
}

TEST(what_is_refused)
{
    static const struct { /* a word of the header */
        int word;
        float real;
        int whole; /* where `real` is 0 */
        const char *says;
    } bad[] = {
        {15, 120.0f, 0, "CELLB (words 14 to 16): beta is 120 degrees"},
        {12, -3.0f, 0, "CELLA"},
        {14, 0.0f, 0, "(words 14 to 16)"},
        {11, 78.0f * NC, 0, "voxels of 78 x 2 x 4 Angstrom"},
        {11, 1e-30f, 0, "expected 0.1 to 50 Angstrom; is the unit wrong"},
        {4, 0.0f, 4, "MODE (word 4) is 4"},
        {18, 0.0f, 1, "MAPC/MAPR/MAPS"},
        {23, 0.0f, 401, "ISPG (word 23) is 401"},
        {1, 0.0f, 0, "is not a density map"},
        {24, 0.0f, -4, "NSYMBT"}};
    for (size_t i = 0; i < COUNT_OF(bad); i++) {
        file f = good();
        if (bad[i].real != 0.0f)
            put_float(&f, bad[i].word, bad[i].real);
        else
            put_int(&f, bad[i].word, bad[i].whole);
        refused(&f, bad[i].says);
    }
    file f = good();
    put_int(&f, 25, 1); /* a quarter turn about z */
    put_float(&f, 27, -1.0f), put_float(&f, 29, 1.0f), put_float(&f, 34, 1.0f);
    refused(&f, "LSKFLG");
    f = good();
    f.size -= 3;
    refused(&f, "ends within its voxels");
    f.size = 700;
    refused(&f, "ends within its header, after 700");
    f = good();
    for (int c = 0; c < 3; c++)
        put_int(&f, 1 + c, 16000);
    refused(&f, "ends within its voxels, after 1264 bytes");
    tsr_map *map;
    const char *path = io_write("map.mrc", f.byte, f.size);
    if (truncate(path, HEADER + 4 * (off_t)16000 * 16000 * 16000) == 0) {
        FAILS(
            tsr_map_read(path, TSR_MAP_ORIGIN_AUTO, NULL, &of_maps, &map, &err),
            TSR_E_NOMEM, "16000 x 16000 x 16000 voxels, 15258.8 GiB");
    }
    assert_int_equal(tsr_map_read(io_path("none.mrc"), TSR_MAP_ORIGIN_AUTO,
                                  NULL, &of_maps, &map, &err),
                     TSR_E_NOINPUT);
    assert_int_equal(
        tsr_map_read(io_dir, TSR_MAP_ORIGIN_AUTO, NULL, &of_maps, &map, &err),
        TSR_E_NOINPUT);
}

/* A place that is no number is not taken for 0. */
TEST(places_that_cannot_be)
{
    file f = good();
    tsr_map *map;
    put_float(&f, 51, NAN);
    refused(&f, "voxel at (10, nan, 30): the origin is wrong (MRC ORIGIN");
    OK(try_read(&f, TSR_MAP_ORIGIN_NSTART, &map));
    assert_near(map->grid.origin[1], 0.0, 1e-9);
    put_float(&f, 51, 1e30f);
    refused(&f, "the origin is wrong");
    for (int c = 0; c < 3; c++)
        put_float(&f, 50 + c, 0.0f);
    put_int(&f, 5, INT32_MAX);
    refused(&f, "or NXSTART, words 5 to 7");
}

/* Such files can be masks, or grids for other maps. */
TEST(what_cannot_be_compared)
{
    static const struct {
        float first, others;
        double resolution;
        const char *says;
    } cases[] = {
        {0.0f, 0.0f, 0.0,
         "all voxels of the map have the same value (values 0 to"},
        {7.0f, 7.0f, 5.0, "all voxels of the map have the same value"},
        {1.0f, NAN, 0.0, "all voxels of the map have the same value"},
        {NAN, NAN, 5.0, "no voxel of the map is a finite number"},
        {INFINITY, INFINITY, 0.0, "no voxel of the map is a finite number"},
        {3e38f, 3e38f, 0.0, "values beyond 1e20 are not densities"},
        {-3e38f, 1.0f, 5.0, "values beyond 1e20 are not densities"},
        {1.0f, 0.0f, 3.5,
         "wider than the resolution (values 0 to 1, voxels "
         "of 4 Angstrom)"},
        {1.0f, 0.0f, 4.0, NULL},
        {NAN, 0.0f, 0.0, "the same value"},
    };
    for (size_t k = 0; k < COUNT_OF(cases); k++) {
        file f = good();
        for (int i = 0; i < N; i++)
            memcpy(f.byte + HEADER + 4 * i,
                   i == 0 ? &cases[k].first : &cases[k].others, 4);
        tsr_map *map = read_map(&f);
        err = (tsr_err){0};
        const tsr_status status =
            tsr_map_check(map, cases[k].resolution, NULL, &err);
        assert_int_equal(status, cases[k].says == NULL ? TSR_OK : TSR_E_DATA);
        if (cases[k].says != NULL)
            assert_has(err.message, cases[k].says);
    }
}

TEST(written_and_read)
{
    const file f = good();
    tsr_map *map = read_map(&f), *back;
    map->value[7] = NAN;
    const char *path = io_path("out.mrc");
    OK(tsr_map_write(map, path, "a test", &err));
    size_t size;
    char *bytes = io_read(path, &size);
    assert_int_equal(size, HEADER + 4 * N);
    assert_memory_equal(bytes + 208, "MAP DA\0\0", 8);
    assert_memory_equal(bytes + 224, TSR_MAP_MARK "a test  ", 17);
    OK(tsr_map_read(path, TSR_MAP_ORIGIN_AUTO, NULL, &of_maps, &back, &err));
    assert_true(isnan(back->value[7]));
    back->value[7] = 7.0f;
    is_good(back);
}

static tsr_status read_dx(const char *text, tsr_map **map)
{
    return tsr_map_read(io_text("map.dx", text), TSR_MAP_ORIGIN_AUTO, NULL,
                        &of_maps, map, &err);
}

TEST(opendx)
{
    static const char head[] = "# a comment\n"
                               "object 1 class gridpositions counts 2 3 2\n"
                               "origin 1 2 -3.5\n"
                               "delta 1.5 0 0\ndelta 0 2 0\ndelta 0 0 2.5\n"
                               "object 2 class gridconnections counts 2 3 2\n";
    static const char items[] = "object 3 class array type double rank 0 "
                                "items 12 data follows\n";
    static const char data[] = "0 1 2\n3 4 5\n6 nan 8\n9 10 11\n"
                               "attribute \"dep\" string \"positions\"\n";
    tsr_map *map;
    OK(read_dx(format("%s%s%s", head, items, data), &map));
    assert_nears(1e-12, map->grid.step[2], 2.5, map->grid.origin[2], -3.5);
    assert_true(map->value[(1 * 3 + 2) * 2 + 0] == 5.0f); /* x 0, y 2, z 1 */
    assert_true(isnan(map->value[(1 * 3 + 0) * 2 + 1]));
    FAILS(read_dx(format("%s%s0 1 2\n", head, items), &map), TSR_E_DATA,
          "the array ends before");
    FAILS(read_dx(format("%s%s", head, data), &map), TSR_E_DATA,
          "items of the array");
    /* memory is not asked for what the text cannot hold */
    FAILS(
        read_dx("object 1 class gridpositions counts 32767 32767 32767\n"
                "origin 0 0 0\ndelta 1 0 0\ndelta 0 1 0\ndelta 0 0 1\n"
                "object 3 class array type double rank 0 items 35181150961663 "
                "data follows\n1 2 3\n",
                &map),
        TSR_E_DATA, "the array ends before");
    const char *text =
        format("%s%s0 1e300 2 3 4 5 6 7 8 9 10 -1e39\n", head, items);
    OK(read_dx(text, &map));
    assert_true(isnan(map->value[6]) && isnan(map->value[11]));
    memcpy(strstr(text, "1.5 0 0"), "1e5", 3);
    FAILS(read_dx(text, &map), TSR_E_DATA,
          "voxels of 1e+05 x 2 x 2.5 Angstrom");
    FAILS(read_dx("ATOM      1  N   MET A   1\n", &map), TSR_E_DATA,
          "is the file a density map?");
}

/* Damaged files: refused or read, never a crash. */
TEST(damage)
{
    const file f = good();
    char out[sizeof f.byte];
    uint32_t seed = 3;
    const int rounds = io_rounds(300);
    for (int k = 0; k < rounds; k++) {
        /* more often in the words that count */
        size_t size = io_damage(out, (const char *)f.byte,
                                k % 2 == 0 ? 232 : f.size, &seed);
        if (k % 2 == 0 && size == 232) {
            memcpy(out + 232, f.byte + 232, f.size - 232);
            size = f.size;
        }
        tsr_map *map;
        const char *path = io_write("bad.mrc", out, size);
        tsr_status status =
            tsr_map_read(path, TSR_MAP_ORIGIN_AUTO, NULL, &of_maps, &map, &err);
        assert_true((status == TSR_OK) == (map != NULL));
    }
}

TEST(real_files)
{
    NEEDS_SHARED;
    tsr_map *map;
    OK(tsr_map_read(SHARED "maps/1f7dA00_8.mrc.gz", TSR_MAP_ORIGIN_AUTO, NULL,
                    &of_maps, &map, &err));
    assert_int_equal(map->grid.n[1], 78);
    assert_near(map->grid.step[0], 1.5, 1e-6);
    assert_near(map->grid.origin[0], -46.737, 1e-4);
    OK(tsr_map_read(SHARED "maps/Ubi-4.5.mrc.gz", TSR_MAP_ORIGIN_AUTO, NULL,
                    &of_maps, &map, &err));
    assert_near(map->grid.step[0], 1.2156, 1e-6);
}
