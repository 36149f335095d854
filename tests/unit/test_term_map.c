/* The likelihood of a density map equals sums over the grid and numerical
 * integrals, and is largest at the true place. */
#include "maps/density_map.h"
#include "tests/model_sample.h"
#include "tests/term_entry.h"
#include "tests/test.h"

#include <gsl/gsl_randist.h>

OWNED(tsr_term)

static tsr_pool of_maps;

typedef struct {
    tsr_prior_table table;
    tsr_topology *t;
    tsr_conformation *c;
    tsr_map *model; /* the density of c, by its definition */
} fixture;

static const double sigma = 1.5, margin = 12.0;

/* S on a grid: bodies of half their mass, normal densities of one width. */
static tsr_map *density(const fixture *f)
{
    tsr_map_grid g = {.step = {1.0, 1.0, 1.0}};
    for (int c = 0; c < 3; c++) {
        double low = HUGE_VAL, high = -HUGE_VAL;
        for (int i = 0; i < f->t->n_body; i++) {
            low = fmin(low, f->c->body[i][c]);
            high = fmax(high, f->c->body[i][c]);
        }
        g.origin[c] = low - margin;
        g.n[c] = (int)(high - low + 2.0 * margin) + 1;
    }
    tsr_map *map;
    OK(tsr_map_new(&g, &of_maps, &map, &err));
    size_t at = 0;
    for (int z = 0; z < g.n[2]; z++)
        for (int y = 0; y < g.n[1]; y++)
            for (int x = 0; x < g.n[0]; x++, at++) {
                double sum = 0.0;
                for (int i = 0; i < f->t->n_body; i++) {
                    const double *r = f->c->body[i];
                    double d2 = pow(g.origin[0] + x - r[0], 2.0) +
                                pow(g.origin[1] + y - r[1], 2.0) +
                                pow(g.origin[2] + z - r[2], 2.0);
                    sum += 0.5 * f->t->body[i].mass *
                           exp(-0.5 * d2 / (sigma * sigma)) /
                           pow(2.0 * 3.14159265358979 * sigma * sigma, 1.5);
                }
                map->value[at] = (float)sum;
            }
    return map;
}

static int open_fixture(void **state)
{
    static fixture f;
    sample_prior_table(&f.table);
    sample_chain("GASFPLGK", NULL, &f.table, &f.t, &f.c);
    f.model = density(&f);
    *state = &f;
    void *unused;
    return io_setup(&unused);
}

static tsr_term *term_with(const fixture *f, const tsr_map *map,
                           const char *sigma_over_r)
{
    const char *entry =
        format("file: map.mrc, resolution: 5, sigma_over_r: %s, "
               "independent_voxels: 60",
               sigma_over_r);
    tsr_term *term;
    OK(tsr_map_write(map, io_path("map.mrc"), "", &err));
    OK(read_term(f->t, "map", entry, &term));
    return own_tsr_term(term);
}

static tsr_term *term_of(const fixture *f, const tsr_map *map)
{
    return term_with(f, map, "0.3");
}

/* log L, and CC, of an ensemble of the fixture's conformation. */
static double log_lik_at(const fixture *f, const tsr_term *term, int n,
                         const double *weight, double sigma_over_r, double *cc)
{
    const double theta = log(sigma_over_r);
    const tsr_conformation *state[3] = {f->c, f->c, f->c};
    const tsr_prediction prediction = {NULL, n, state, weight};
    tsr_pool pool = {0};
    void *fit = tsr_term_fit_new(term, &pool);
    assert_non_null(fit);
    OK(term->type->fit(term, NULL, &prediction, &theta, fit, &err));
    const double value = term->type->log_lik(term, fit, &theta);
    if (cc != NULL)
        term->type->predict(term, &prediction, fit, &theta, cc);
    tsr_pool_clear(&pool);
    return value;
}

static double log_lik(const fixture *f, const tsr_term *term, int n,
                      const double *weight, double *cc)
{
    return log_lik_at(f, term, n, weight, 0.3, cc);
}

/* The model's density with something else on it, so that CC is about 0.8. */
static tsr_map *spoilt(const fixture *f)
{
    tsr_map *map;
    OK(tsr_map_new(&f->model->grid, &of_maps, &map, &err));
    const int *n = map->grid.n;
    const size_t nx = (size_t)n[0], ny = (size_t)n[1];
    for (size_t k = 0; k < tsr_map_n_voxel(&map->grid); k++) {
        double x = (double)(k % nx), y = (double)(k / nx % ny);
        double z = (double)(k / nx / ny);
        map->value[k] =
            150.0f * f->model->value[k] + 5.0f +
            (float)(20.0 * sin(0.4 * x) * cos(0.5 * y) * sin(0.3 * z + 1.0));
    }
    return map;
}

typedef struct {
    double n, e, ee, s, ss, es;
} moments;

static moments moments_of(const tsr_map *map, const tsr_map *model)
{
    moments m = {0};
    for (size_t k = 0; k < tsr_map_n_voxel(&map->grid); k++) {
        double e = (double)map->value[k], s = (double)model->value[k];
        m.n += 1.0;
        m.e += e, m.ee += e * e, m.s += s, m.ss += s * s, m.es += e * s;
    }
    m.e /= m.n, m.s /= m.n;
    m.ee = m.ee / m.n - m.e * m.e;
    m.ss = m.ss / m.n - m.s * m.s;
    m.es = m.es / m.n - m.e * m.s;
    return m;
}

/* The integral over a > 0 and s by sums, that over b in closed form. */
static double integral(const moments *m, double n)
{
    const double best = m->es / m->ss, rss = m->ee - m->es * m->es / m->ss;
    double top = -HUGE_VAL, sum = 0.0;
    for (int pass = 0; pass < 2; pass++)
        for (int i = 0; i < 400; i++) {
            const double log_s = 0.5 * log(rss) + 0.01 * (i - 200);
            const double s2 = exp(2.0 * log_s);
            const double width = sqrt(s2 / (n * m->ss)), da = 0.05 * width;
            for (int k = -200; k <= 200; k++) {
                const double a = best + k * da;
                if (a <= 0.0)
                    continue;
                const double square =
                    n * (rss + (a - best) * (a - best) * m->ss);
                const double log_p =
                    -0.5 * n * log(2.0 * 3.14159265358979 * s2) +
                    0.5 * log(2.0 * 3.14159265358979 * s2 / n) -
                    0.5 * square / s2;
                if (pass == 0)
                    top = fmax(top, log_p);
                else
                    sum += exp(log_p - top) * da * 0.01; /* ds / s */
            }
        }
    return top + log(sum);
}

TEST(sums_and_integral)
{
    fixture *f = *state;
    const double one = 1.0;
    double cc;
    tsr_map *map = spoilt(f);
    tsr_term *term = term_of(f, map);
    const moments m = moments_of(map, f->model);
    const double got = log_lik(f, term, 1, &one, &cc);
    const double want = m.es / sqrt(m.ss * m.ee);
    assert_true(want > 0.4 && want < 0.9);
    assert_near(cc, want, 3e-4);
    assert_near(got, integral(&m, 60.0), 0.03);
}

/* The same structure several times is the structure once. */
TEST(ensembles)
{
    fixture *f = *state;
    const double one = 1.0, three[3] = {0.2, 0.5, 0.3};
    tsr_map *map = spoilt(f);
    tsr_term *term = term_of(f, map);
    assert_near(log_lik(f, term, 3, three, NULL),
                log_lik(f, term, 1, &one, NULL), 1e-9);
}

/* After a move of a few bodies of one of two states, an update of the fit
 * before it is the fit afresh, to the bit. */
TEST(updates)
{
    fixture *f = *state;
    const double weight[2] = {0.3, 0.7}, theta = log(0.3);
    tsr_map *map = spoilt(f);
    tsr_term *term = term_of(f, map);
    tsr_conformation *two = new_conformation(f->t);
    tsr_conformation_copy(f->t, two, f->c, 0, f->t->n_residue);
    const tsr_conformation *states[2] = {f->c, two};
    const tsr_prediction prediction = {NULL, 2, states, weight};
    void *now = tsr_term_fit_new(term, &term->pool);
    void *trial = tsr_term_fit_new(term, &term->pool);
    void *afresh = tsr_term_fit_new(term, &term->pool);
    term->type->fit(term, NULL, &prediction, &theta, now, NULL);
    for (int round = 0; round < 50; round++) {
        const int first = round % f->t->n_body;
        for (int i = first; i < f->t->n_body && i < first + 3; i++)
            two->body[i][round % 3] += 0.3 * cos(3.0 * round + i);
        term->type->fit(term, now, &prediction, &theta, trial, NULL);
        term->type->fit(term, NULL, &prediction, &theta, afresh, NULL);
        assert_true(term->type->log_lik(term, trial, &theta) ==
                    term->type->log_lik(term, afresh, &theta));
        void *held = now;
        now = trial;
        trial = held;
    }
}

/* The width where it is inferred: the same likelihood as where it is fixed, the
 * largest at what the map was made with, and the same bits by either way. */
TEST(width)
{
    fixture *f = *state;
    const double one = 1.0, theta[2] = {log(0.3), log(0.4)};
    tsr_map *map = spoilt(f);
    tsr_term *fixed = term_of(f, map), *free_ = term_with(f, map, "infer");
    const double best = log_lik_at(f, free_, 1, &one, 0.3, NULL);
    assert_near(best, log_lik(f, fixed, 1, &one, NULL), 0.05);
    assert_ints(fixed->parameter[0].infer, 0, free_->parameter[0].infer, 1);
    free_ = term_with(f, f->model, "infer");
    const double at = log_lik_at(f, free_, 1, &one, 0.3, NULL);
    assert_true(at > log_lik_at(f, free_, 1, &one, 0.27, NULL) + 5.0);
    assert_true(at > log_lik_at(f, free_, 1, &one, 0.33, NULL) + 5.0);
    const tsr_conformation *states[1] = {f->c};
    const tsr_prediction prediction = {NULL, 1, states, &one};
    void *a = tsr_term_fit_new(free_, &free_->pool);
    void *b = tsr_term_fit_new(free_, &free_->pool);
    free_->type->fit(free_, NULL, &prediction, &theta[0], a, NULL);
    free_->type->refit(free_, a, &theta[1], b);
    free_->type->fit(free_, NULL, &prediction, &theta[1], a, NULL);
    assert_true(free_->type->log_lik(free_, a, &theta[1]) ==
                free_->type->log_lik(free_, b, &theta[1]));
}

/* Shifted by d along an axis, the likelihood falls, on both sides alike. */
TEST(largest_in_place)
{
    fixture *f = *state;
    const double one = 1.0;
    tsr_term *term = term_of(f, f->model);
    for (int c = 0; c < 3; c++) {
        double at[3];
        for (int k = 0; k < 3; k++) {
            const double d = k == 0 ? 0.0 : k == 1 ? 0.5 : -1.0;
            for (int i = 0; i < f->t->n_body; i++)
                f->c->body[i][c] += d;
            at[k] = log_lik(f, term, 1, &one, NULL);
        }
        for (int i = 0; i < f->t->n_body; i++)
            f->c->body[i][c] += 0.5;
        assert_true(at[0] > at[1] + 5.0 && at[0] > at[2] + 5.0);
        assert_near(at[1], at[2], 0.5);
    }
}

/* -log L of the bodies at x + h v, less that at x: column k of v
 * [n_body][3][n].
 */
static double rise(const fixture *f, const tsr_term *term, int n, int k,
                   const double *v, double h)
{
    const double one = 1.0, before = log_lik(f, term, 1, &one, NULL);
    double *x = f->c->body[0];
    for (int r = 0; r < 3 * f->t->n_body; r++)
        x[r] += h * v[r * n + k];
    const double after = log_lik(f, term, 1, &one, NULL);
    for (int r = 0; r < 3 * f->t->n_body; r++)
        x[r] -= h * v[r * n + k];
    return before - after;
}

/* What the term says of its second derivatives is what they are, in noise that
 * has nothing to do with the model: of a shift of all, of one that grows along
 * the chain, and of bodies that go their own ways. */
TEST(stiffness)
{
    enum { N = 3 };
    fixture *f = *state;
    const double one = 1.0, theta = log(0.3), h = 0.03;
    const int rows = 3 * f->t->n_body;
    gsl_rng *rng = rng_new(5, 0);
    tsr_map *map = spoilt(f);
    for (size_t k = 0; k < tsr_map_n_voxel(&map->grid); k++)
        map->value[k] =
            f->model->value[k] + (float)(0.02 * gsl_rng_uniform(rng));
    tsr_term *term = term_of(f, map);
    double *v = calloc((size_t)(N * rows), sizeof *v);
    double *y = calloc((size_t)(N * rows), sizeof *y);
    for (int r = 0; r < rows; r++) {
        v[r * N] = r % 3 == 1;
        v[r * N + 1] = (r % 3 == 0) * r / (double)rows;
        v[r * N + 2] = gsl_rng_uniform(rng) - 0.5;
    }
    const tsr_conformation *states[1] = {f->c};
    const tsr_prediction prediction = {NULL, 1, states, &one};
    void *fit = tsr_term_fit_new(term, &term->pool);
    term->type->fit(term, NULL, &prediction, &theta, fit, NULL);
    term->type->hessian_product(term, fit, 0, N, v, y);
    for (int k = 0; k < N; k++) {
        double told = 0.0;
        for (int r = 0; r < rows; r++)
            told += v[r * N + k] * y[r * N + k];
        const double seen =
            (rise(f, term, N, k, v, h) + rise(f, term, N, k, v, -h)) / (h * h);
        if (!(fabs(told - seen) < 0.1 * seen))
            fail_msg("%d: %g is told, %g seen", k, told, seen);
    }
    free(v), free(y);
}

/* The count of voxels that are independent: of noise all of the map's, where
 * the solvent is flat those about the molecule, whatever the box. */
TEST(independent_voxels)
{
    fixture *f = *state;
    gsl_rng *rng = rng_new(6, 0);
    double count[2];
    tsr_map *map = spoilt(f);
    const size_t n = tsr_map_n_voxel(&map->grid);
    for (int flat = 0; flat < 2; flat++) {
        for (size_t k = 0; k < n; k++)
            map->value[k] = flat ? f->model->value[k]
                                 : (float)gsl_ran_gaussian_ziggurat(rng, 1.0);
        OK(tsr_map_write(map, io_path("map.mrc"), "", &err));
        FREED(tsr_term) term;
        OK(read_term(f->t, "map", "file: map.mrc, resolution: 5", &term));
        count[flat] = pow(term->sigma[0], -2.0); /* of one of n voxels */
    }
    const double all = 4.0 / 3.0 * 3.14159265358979 * (double)n / 125.0;
    assert_near(count[0], all, 0.03 * all);
    if (!(count[1] > 0.02 * all && count[1] < 0.3 * all))
        fail_msg("%g of %g", count[1], all);
}

/* A map that is the model turned negative, or elsewhere, is finite and worse.
 */
TEST(negative_and_far)
{
    fixture *f = *state;
    const double one = 1.0;
    double cc;
    tsr_map *map = spoilt(f);
    tsr_term *term = term_of(f, map);
    const double good = log_lik(f, term, 1, &one, NULL);
    for (size_t k = 0; k < tsr_map_n_voxel(&map->grid); k++)
        map->value[k] = -map->value[k];
    term = term_of(f, map);
    const double negative = log_lik(f, term, 1, &one, &cc);
    assert_true(cc < -0.4);
    assert_true(isfinite(negative) && negative < good - 10.0);
    for (int i = 0; i < f->t->n_body; i++)
        f->c->body[i][0] += 1000.0;
    const double far = log_lik(f, term, 1, &one, &cc);
    assert_true(cc == 0.0);
    assert_true(isfinite(far) && far < good && far > negative);
    for (int i = 0; i < f->t->n_body; i++)
        f->c->body[i][0] -= 1000.0;
}

/* A map that is smaller than the blurred molecule has no likelihood, and no
 * number that is none. */
TEST(box_too_small)
{
    const fixture *f = *state;
    const double one = 1.0;
    tsr_map_grid g = f->model->grid;
    tsr_map *map;
    for (int c = 0; c < 3; c++) {
        g.origin[c] += g.step[c] * (g.n[c] / 2 - 5);
        g.n[c] = 10;
    }
    OK(tsr_map_new(&g, &of_maps, &map, &err));
    for (size_t k = 0; k < 1000; k++)
        map->value[k] = (float)(k % 7);
    tsr_term *term = term_with(f, map, "infer");
    assert_true(log_lik_at(f, term, 1, &one, 0.9, NULL) == -HUGE_VAL);
}

static void refused(const fixture *f, const char *entry, tsr_status status,
                    const char *says)
{
    tsr_term *term;
    err = (tsr_err){0};
    assert_int_equal(read_term(f->t, "map", entry, &term), status);
    assert_has(err.message, says);
}

static void write_flat(const fixture *f)
{
    tsr_map *flat;
    OK(tsr_map_new(&f->model->grid, &of_maps, &flat, &err));
    OK(tsr_map_write(flat, io_path("flat.mrc"), "", &err));
}

/* Half-maps, or a mask, of another size. */
TEST(what_does_not_match)
{
    fixture *f = *state;
    tsr_map *map = spoilt(f), *small;
    tsr_map_grid grid = map->grid;
    grid.n[1]--;
    write_flat(f);
    OK(tsr_map_new(&grid, &of_maps, &small, &err));
    small->value[0] = 1.0f;
    OK(tsr_map_write(map, io_path("map.mrc"), "", &err));
    OK(tsr_map_write(small, io_path("small.mrc"), "", &err));
    refused(f, "file: map.mrc, resolution: 5, half_map_1: map.mrc",
            TSR_E_CONFIG,
            "data.0: half_map_1 and half_map_2 must be given together");
    refused(f,
            "file: map.mrc, resolution: 5, half_map_1: map.mrc, "
            "half_map_2: small.mrc",
            TSR_E_DATA, "is not on the grid of");
    refused(f,
            "file: map.mrc, resolution: 5, half_map_1: small.mrc, "
            "half_map_2: small.mrc",
            TSR_E_DATA, "are identical");
    refused(f,
            "file: map.mrc, resolution: 5, half_map_1: map.mrc, "
            "half_map_2: map.mrc",
            TSR_E_DATA, "are identical: their difference is the noise");
    refused(f, "file: map.mrc, resolution: 5, mask: small.mrc", TSR_E_DATA,
            "is not on the grid of");
    refused(f, "file: flat.mrc, resolution: 5, mask: flat.mrc", TSR_E_DATA,
            "all voxels of the map have the same value");
    refused(f,
            "file: map.mrc, resolution: 5, half_map_1: map.mrc, "
            "half_map_2: flat.mrc",
            TSR_E_DATA, "flat.mrc': all voxels of the map have the same value");
    refused(f, "file: map.mrc, resolution: 5, mask: flat.mrc", TSR_E_DATA,
            "leaves 0 voxels inside");
}

TEST(what_is_refused)
{
    fixture *f = *state;
    write_flat(f);
    refused(f, "resolution: 5", TSR_E_CONFIG, "data.0: a map needs a file");
    refused(f, "file: flat.mrc", TSR_E_CONFIG,
            "data.0: a map needs its resolution");
    refused(f, "file: flat.mrc, resolution: 5", TSR_E_DATA,
            "all voxels of the map have the same value");
    refused(f, "file: none.mrc, resolution: 5", TSR_E_NOINPUT, "cannot open");
    OK(tsr_map_write(f->model, io_path("map.mrc"), "", &err));
    refused(f, "file: map.mrc, resolution: 90", TSR_E_DATA,
            "independent voxels, too few");
    refused(f, "file: map.mrc, resolution: 0.5", TSR_E_DATA,
            "its voxels are wider than the resolution");
}

static test_fixture around_all = {open_fixture, io_teardown};
