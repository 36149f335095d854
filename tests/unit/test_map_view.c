/* What a report shows of a map agrees with maps computed from the models
 * themselves. */
#include "files/yaml.h"
#include "maps/density.h"
#include "maps/map_view.h"
#include "tests/io_files.h"
#include "tests/test.h"

static tsr_pool of_maps;

enum { N_RESIDUE = 8, N_ATOM = 4 * N_RESIDUE };

typedef struct {
    tsr_atoms atoms;
    tsr_file_atom atom[N_ATOM];
    tsr_file_residue residue[N_RESIDUE];
    unsigned char z[N_ATOM];
    double place[4][N_ATOM][3]; /* of the molecule, and moved away */
} fixture;

/* A helix of carbons, and the same 9 Angstrom away, turned. */
static void make_molecule(fixture *f)
{
    for (int i = 0; i < N_ATOM; i++) {
        f->z[i] = 6;
        f->atom[i] = (tsr_file_atom){.name = "C", .z = 6, .residue = i / 4};
        f->place[0][i][0] = 5.0 * cos(0.7 * i);
        f->place[0][i][1] = 5.0 * sin(0.7 * i);
        f->place[0][i][2] = 1.1 * i - 18.0;
        f->place[1][i][0] = f->place[0][i][1] + 9.0;
        f->place[1][i][1] = f->place[0][i][0];
        f->place[1][i][2] = f->place[0][i][2];
    }
    for (int r = 0; r < N_RESIDUE; r++)
        f->residue[r] = (tsr_file_residue){
            .chain = "A", .number = r + 1, .first_atom = 4 * r, .n_atom = 4};
    f->atoms = (tsr_atoms){.path = NULL,
                           .n_atom = N_ATOM,
                           .n_residue = N_RESIDUE,
                           .atom = f->atom,
                           .residue = f->residue};
}

static const double resolution = 5.0, sigma_over_r = 0.3;

/* The map of one place, or a share of the other, too. */
static void write_map(const fixture *f, double share, const char *name)
{
    const tsr_map_grid g = {.n = {46, 44, 60},
                            .step = {1.0, 1.0, 1.0},
                            .origin = {-18.5, -21.0, -29.0}};
    const int first[2] = {0, N_ATOM};
    tsr_map *map, *one;
    tsr_density_engine *engine;
    tsr_blur_table blur;
    tsr_density_sums sums;
    OK(tsr_map_new(&g, &of_maps, &map, &err));
    OK(tsr_map_new(&g, &of_maps, &one, &err));
    OK(tsr_density_reference_new(map, &engine, &err));
    OK(tsr_blur_make(TSR_BLUR_GAUSSIAN, resolution, sigma_over_r, N_ATOM, f->z,
                     &blur, &err));
    OK(engine->set_blur(engine, &blur, &err));
    for (int k = 0; k < 2; k++) {
        const tsr_density_batch batch = {1, first, f->place[k], f->z};
        const tsr_density_options o = {.density = one->value};
        assert_int_equal(engine->run(engine, &batch, &o, &sums, NULL), 0);
        for (size_t v = 0; v < tsr_map_n_voxel(&g); v++)
            map->value[v] +=
                (float)((k == 0 ? 1.0 - share : share) * (double)one->value[v]);
    }
    OK(tsr_map_write(map, io_path(name), "", &err));
    tsr_density_free(engine);
}

static void view(fixture *f, const char *entry, int n, int *draw,
                 double *weight, tsr_map_view *out)
{
    static const tsr_field fields[] = {
        ROW(.name = "data", .type = TSR_FIELD_LIST, .selector = "kind",
            .kind = tsr_term_kind, .element_size = sizeof(tsr_term_options)),
        {0}};
    const tsr_map_models models =
        ROW(.atoms = &f->atoms, .z = f->z, .start = f->place[1], .n = n,
            .xyz = f->place[0], .of_draw = draw, .weight = weight);
    char text[300];
    tsr_list data;
    err = (tsr_err){0};
    const int length = snprintf(
        text, sizeof text, "data: [{kind: map, resolution: 5, %s}]", entry);
    const char *path = io_write("view.yaml", text, (size_t)length);
    OK(tsr_fields_init(fields, &data, &err));
    if (tsr_yaml_read_marked(path, fields, &data, 0, NULL, NULL, &err) !=
            TSR_OK ||
        tsr_map_view_make(data.item, &models, sigma_over_r, out, &err) !=
            TSR_OK)
        fail_msg("%s", err.message);
    tsr_fields_clear(fields, &data);
}

/* One draw in its place: all is 1 but of the start, which was away. */
TEST(a_draw_in_place)
{
    fixture *f = *state;
    int draw[1] = {0};
    double one[1] = {1.0};
    CLEARED(tsr_map_view) v;
    write_map(f, 0.0, "map.mrc");
    view(f, "file: map.mrc", 1, draw, one, &v);
    assert_int_equal(v.n_draw, 1);
    assert_true(v.box.median > 1.0 - 1e-5 && v.mask.median > 1.0 - 1e-5);
    assert_true(v.box.start < 0.6 && v.mask.start < 0.4);
    for (int r = 0; r < N_RESIDUE; r++) {
        assert_all(v.residue[r].median > 1.0 - 1e-5, v.residue[r].start < 0.9);
    }
    assert_true(v.mean.half_is_at_limit && !v.start.half_is_at_limit);
    assert_int_equal(v.halves.n, 0);
}

/* States count by their weights; two draws have a median and an interval. */
TEST(states_and_draws)
{
    fixture *f = *state;
    int draw[4] = {0, 0, 1, 1}, other[2] = {0, 1};
    double right[4] = {0.7, 0.3, 0.7, 0.3}, one[2] = {1.0, 1.0};
    tsr_map_view v;
    write_map(f, 0.3, "map.mrc");
    view(f, "file: map.mrc", 2, draw, right, &v);
    assert_int_equal(v.n_draw, 1);
    assert_true(v.box.median > 1.0 - 1e-5 && v.residue[3].q5 > 1.0 - 1e-5);
    tsr_map_view_clear(&v);
    view(f, "file: map.mrc", 2, other, one, &v);
    assert_int_equal(v.n_draw, 2);
    /* half of each is what their mean density is */
    assert_true(v.box.q5 < v.box.median && v.box.median < v.box.q95);
    assert_true(v.box.q95 < 0.99);
    tsr_map_view_clear(&v);
}

/* Pixels are the map's voxels, and as many are above the level as the molecule
 * takes up. */
TEST(slices)
{
    fixture *f = *state;
    int draw[1] = {0};
    double one[1] = {1.0};
    CLEARED(tsr_map_view) v;
    tsr_map *map;
    int n_above = 0;
    write_map(f, 0.0, "map.mrc");
    view(f, "file: map.mrc", 1, draw, one, &v);
    OK(tsr_map_read(io_path("map.mrc"), TSR_MAP_ORIGIN_AUTO, NULL, &of_maps,
                    &map, &err));
    const tsr_map_grid *g = &map->grid;
    for (int axis = 0; axis < 3; axis++) {
        const tsr_map_slice *s = &v.slice[axis];
        const int u = axis == 0 ? 1 : 0, w = axis == 2 ? 1 : 2;
        assert_true(s->n[0] > 20 && s->n[1] > 20);
        for (int y = 0; y < s->n[1]; y++)
            for (int x = 0; x < s->n[0]; x++) {
                int at[3];
                at[axis] = (int)lround(s->at_ang - g->origin[axis]);
                at[u] = (int)lround(s->first[0] + x + 0.5 - g->origin[u]);
                at[w] = (int)lround(s->first[1] + y + 0.5 - g->origin[w]);
                const size_t k =
                    ((size_t)at[2] * (size_t)g->n[1] + (size_t)at[1]) *
                        (size_t)g->n[0] +
                    (size_t)at[0];
                const double value = (double)s->map[y * s->n[0] + x];
                assert_near(value, (double)map->value[k], 1e-6);
                assert_near((double)s->model[y * s->n[0] + x], value, 1e-4);
            }
    }
    for (size_t k = 0; k < tsr_map_n_voxel(g); k++)
        n_above += (double)map->value[k] > v.level;
    assert_true(abs(n_above - (int)(2.42 * 6 * N_ATOM)) <= 2);
}

TEST(half_maps)
{
    fixture *f = *state;
    int draw[1] = {0};
    double one[1] = {1.0};
    CLEARED(tsr_map_view) v;
    write_map(f, 0.0, "map.mrc");
    write_map(f, 0.1, "one.mrc");
    write_map(f, 0.2, "two.mrc");
    view(f,
         "file: map.mrc, half_map_1: one.mrc, half_map_2: two.mrc, mask: "
         "model, mask_distance: 8",
         1, draw, one, &v);
    assert_true(v.halves.n > 10);
    assert_true(v.halves.fsc[0] > 0.9);
}

static int open_fixture(void **state)
{
    static fixture f;
    void *unused;
    make_molecule(&f);
    *state = &f;
    return io_setup(&unused);
}

static test_fixture around_all = {open_fixture, io_teardown};
