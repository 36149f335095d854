/* Intervals of 90 % for the pose of a molecule in a map contain the truth nine
 * times in ten.
 *
 * Maps have coloured noise of a known spectrum. The posterior of the six
 * degrees of freedom under the program's likelihood is integrated by importance
 * sampling. With whitened noise the intervals must be right; counting all
 * voxels as independent must fail the same test. */
#include "core/random.h"
#include "maps/fourier.h"
#include "molecule/structure.h"
#include "tests/model_sample.h"
#include "tests/objects.h"
#include "tests/term_entry.h"
#include "tests/test.h"

#include <gsl/gsl_blas.h>
#include <gsl/gsl_linalg.h>
#include <gsl/gsl_randist.h>

static tsr_pool of_maps;

/* Maps; slow_map_pose.c has more, and a protein. */
#ifndef N_MAP
#define N_MAP 6
#endif

/* How fast the noise falls beyond the resolution. */
#ifndef FALL
#define FALL 3.0
#endif

/* "": none, a ball of bodies. */
#ifndef PROTEIN
#define PROTEIN ""
#endif

enum { SIX = 6, N_DRAW = N_MAP < 50 ? 150 : 200 };

static const double resolution = 5.0, sigma = 1.5, spacing = 5.0 / 3.0;

typedef struct {
    tsr_prior_table table;
    tsr_topology *t;
    tsr_conformation *c;
    double (*true_place)[3]; /* [n_body] */
    double centre[3], rg;
    tsr_map *clean;
    gsl_rng *rng;
} fixture;

/* ---- the molecule ---- */

/* Bodies in a ball that is not quite one; where they belong does not matter. */
static void make_ball(fixture *f)
{
    sample_chain(
        "GASFPLGKWDERTYHNMQICVGASFPLGKWDERTYHNMQICVGASFPLGKWDERTYHNMQICV", NULL,
        &f->table, &f->t, &f->c);
    for (int i = 0; i < f->t->n_body; i++) {
        double far;
        do {
            far = 0.0;
            for (int c = 0; c < 3; c++) {
                const double u = 2.0 * gsl_rng_uniform(f->rng) - 1.0;
                f->c->body[i][c] = (12.0 + 2.0 * c) * u;
                far += u * u;
            }
        } while (far > 1.0);
    }
}

/* A protein, where its file is there. */
static void make_molecule(fixture *f)
{
    tsr_structure *structure;
    if (tsr_structure_read(PROTEIN, &structure, &err) != TSR_OK) {
        make_ball(f);
        return;
    }
    own_tsr_structure(structure);
    OK(tsr_topology_from_structure(structure, TSR_BODIES_TWO,
                                   (tsr_flexibility){.is_frozen = 1}, &f->table,
                                   NULL, &f->t, &f->c, &err));
    own_molecule(f->t, f->c);
}

static void see_molecule(fixture *f)
{
    const int n = f->t->n_body;
    f->true_place = array((size_t)(n > 0 ? n : 1), sizeof *f->true_place);
    for (int i = 0; i < n; i++)
        for (int c = 0; c < 3; c++) {
            f->true_place[i][c] = f->c->body[i][c];
            f->centre[c] += f->c->body[i][c] / n;
        }
    for (int i = 0; i < n; i++)
        for (int c = 0; c < 3; c++)
            f->rg += pow(f->true_place[i][c] - f->centre[c], 2.0) / n;
    f->rg = sqrt(f->rg);
}

/* Its density, by the definition that the term has. */
static void make_map(fixture *f)
{
    tsr_map_grid g = {.step = {spacing, spacing, spacing}};
    for (int c = 0; c < 3; c++) {
        double low = HUGE_VAL, high = -HUGE_VAL;
        for (int i = 0; i < f->t->n_body; i++) {
            low = fmin(low, f->true_place[i][c]);
            high = fmax(high, f->true_place[i][c]);
        }
        g.origin[c] = low - 14.0;
        g.n[c] = 2 * (int)ceil(0.5 * (high - low + 28.0) / spacing);
    }
    OK(tsr_map_new(&g, &of_maps, &f->clean, &err));
    for (size_t k = 0; k < tsr_map_n_voxel(&g); k++) {
        const size_t nx = (size_t)g.n[0], ny = (size_t)g.n[1];
        const size_t at[3] = {k % nx, k / nx % ny, k / (nx * ny)};
        double sum = 0.0;
        for (int i = 0; i < f->t->n_body; i++) {
            double d2 = 0.0;
            for (int c = 0; c < 3; c++)
                d2 += pow(g.origin[c] + spacing * (double)at[c] -
                              f->true_place[i][c],
                          2.0);
            if (d2 < 25.0 * sigma * sigma)
                sum +=
                    0.5 * f->t->body[i].mass * exp(-0.5 * d2 / (sigma * sigma));
        }
        f->clean->value[k] = (float)sum;
    }
}

static int open_fixture(void **state)
{
    static fixture f;
    f.rng = rng_new(7, 0);
    sample_prior_table(&f.table);
    make_molecule(&f);
    see_molecule(&f);
    make_map(&f);
    *state = &f;
    return 0;
}

/* ---- noise ---- */

/* Much at low frequencies, little beyond the resolution, as in a map that was
 * filtered. */
static double spectrum(double s)
{
    const double x = s * resolution;
    return (0.1 + 1.0 / (1.0 + 25.0 * x * x)) * exp(-FALL * x * x);
}

static double spread_of(const float *value, size_t n)
{
    double sum = 0.0, square = 0.0;
    for (size_t k = 0; k < n; k++)
        sum += (double)value[k], square += (double)value[k] * (double)value[k];
    return sqrt(square / (double)n - pow(sum / (double)n, 2.0));
}

static void make_noise(const fixture *f, double level, float *value)
{
    const tsr_map_grid *g = &f->clean->grid;
    const size_t n = tsr_map_n_voxel(g);
    tsr_fourier w;
    for (size_t k = 0; k < n; k++)
        value[k] = (float)gsl_ran_gaussian(f->rng, 1.0);
    OK(tsr_fourier_make(g, value, 0.0, &w, &err));
    size_t at = 0;
    double total = 0.0;
    for (int z = 0; z < g->n[2]; z++)
        for (int y = 0; y < g->n[1]; y++)
            for (int x = 0; x < w.half; x++, at++) {
                const double s = sqrt(pow(tsr_fourier_s(g, 0, x), 2.0) +
                                      pow(tsr_fourier_s(g, 1, y), 2.0) +
                                      pow(tsr_fourier_s(g, 2, z), 2.0));
                total += tsr_fourier_multiplicity(g, x) * spectrum(s);
                for (int c = 0; c < 2; c++)
                    w.f[at][c] *= (float)sqrt(spectrum(s));
            }
    OK(tsr_fourier_back(&w, value, &err));
    tsr_fourier_clear(&w);
    for (size_t k = 0; k < n; k++)
        value[k] *= (float)(level / sqrt(total / (double)n));
}

/* Two half-maps and their mean; a mask 6 Angstrom around the molecule. */
static void write_maps(const fixture *f)
{
    const tsr_map *clean = f->clean;
    const size_t n = tsr_map_n_voxel(&clean->grid);
    const double level = spread_of(clean->value, n) / sqrt(0.3);
    tsr_map *map[3];
    for (int k = 0; k < 3; k++)
        OK(tsr_map_new(&clean->grid, &of_maps, &map[k], &err));
    for (int h = 0; h < 2; h++) {
        make_noise(f, level * sqrt(2.0), map[h]->value);
        for (size_t k = 0; k < n; k++) {
            map[h]->value[k] += clean->value[k];
            map[2]->value[k] += 0.5f * map[h]->value[k];
        }
    }
    assert_int_equal(tsr_map_write(map[0], io_path("one.mrc"), "", NULL), 0);
    assert_int_equal(tsr_map_write(map[1], io_path("two.mrc"), "", NULL), 0);
    assert_int_equal(tsr_map_write(map[2], io_path("map.mrc"), "", NULL), 0);
    for (size_t k = 0; k < n; k++)
        map[0]->value[k] = clean->value[k] > 1e-3f ? 1.0f : 0.0f;
    assert_int_equal(tsr_map_write(map[0], io_path("mask.mrc"), "", NULL), 0);
}

/* ---- the posterior of a pose ---- */

typedef struct {
    fixture *f;
    const tsr_term *term;
    void *fit;
} question;

/* log L where the molecule is turned by p[0..2] / rg about its centre and
 * shifted by p[3..5], Angstrom. */
static double log_lik(const question *q, const double p[SIX])
{
    fixture *f = q->f;
    const double one = 1.0, theta = log(sigma / resolution);
    const tsr_conformation *state = f->c;
    const tsr_prediction prediction = {NULL, 1, &state, &one};
    const double zero[3] = {0.0, 0.0, 0.0};
    const double angle = sqrt(p[0] * p[0] + p[1] * p[1] + p[2] * p[2]) / f->rg;
    tsr_motion m;
    if (angle > 0.0)
        tsr_motion_about(&m, zero, p, angle);
    for (int i = 0; i < f->t->n_body; i++) {
        double x[3];
        tsr_vec3_sub(x, f->true_place[i], f->centre);
        if (angle > 0.0)
            tsr_motion_apply(&m, x);
        for (int c = 0; c < 3; c++)
            f->c->body[i][c] = f->centre[c] + x[c] + p[3 + c];
    }
    OK(q->term->type->fit(q->term, NULL, &prediction, &theta, q->fit, &err));
    return q->term->type->log_lik(q->term, q->fit, &theta);
}

/* Second and first differences about p. */
static void differences(const question *q, const double p[SIX], double h,
                        double *gradient, double *hessian)
{
    const double middle = log_lik(q, p);
    double side[SIX][2], x[SIX];
    for (int i = 0; i < SIX; i++)
        for (int k = 0; k < 2; k++) {
            memcpy(x, p, sizeof x);
            x[i] += k ? -h : h;
            side[i][k] = log_lik(q, x);
        }
    for (int i = 0; i < SIX; i++)
        for (int j = 0; j <= i; j++) {
            memcpy(x, p, sizeof x);
            x[i] += h, x[j] += h;
            double both = i == j ? 0.0 : log_lik(q, x);
            hessian[i * SIX + j] = hessian[j * SIX + i] =
                i == j ? (side[i][0] + side[i][1] - 2.0 * middle) / (h * h)
                       : (both - side[i][0] - side[j][0] + middle) / (h * h);
        }
    for (int i = 0; i < SIX; i++)
        gradient[i] = (side[i][0] - side[i][1]) / (2.0 * h);
}

/* The Cholesky factor of minus the Hessian, at the maximum p. */
static void climb(const question *q, double *p, gsl_matrix *factor)
{
    double gradient[SIX], hessian[SIX * SIX];
    gsl_vector *step = own_gsl_vector(gsl_vector_alloc(SIX));
    for (int round = 0; round < 3; round++) {
        differences(q, p, 0.05, gradient, hessian);
        for (int i = 0; i < SIX * SIX; i++)
            factor->data[i] = -hessian[i];
        assert_int_equal(gsl_linalg_cholesky_decomp1(factor), 0);
        for (int i = 0; i < SIX; i++)
            gsl_vector_set(step, (size_t)i, gradient[i]);
        gsl_linalg_cholesky_svx(factor, step);
        for (int i = 0; i < SIX && round < 2; i++)
            p[i] += gsl_vector_get(step, (size_t)i);
    }
}

/* The posterior's probability below the truth, which is 0, of each of six; by
 * draws from Student's t with 8 degrees of freedom. */
static void below_truth(const question *q, double below[SIX])
{
    double p[SIX] = {0.0}, top = -HUGE_VAL, sum = 0.0;
    double(*draw)[SIX + 1] = array(N_DRAW, sizeof *draw);
    gsl_matrix *factor = own_gsl_matrix(gsl_matrix_alloc(SIX, SIX));
    gsl_vector *z = own_gsl_vector(gsl_vector_alloc(SIX));
    climb(q, p, factor);
    for (int k = 0; k < N_DRAW; k++) {
        const double chi2 = gsl_ran_chisq(q->f->rng, 8.0) / 8.0;
        double square = 0.0;
        for (int i = 0; i < SIX; i++) {
            const double u = gsl_ran_gaussian(q->f->rng, 1.0) / sqrt(chi2);
            gsl_vector_set(z, (size_t)i, u);
            square += u * u;
        }
        gsl_blas_dtrsv(CblasLower, CblasTrans, CblasNonUnit, factor, z);
        for (int i = 0; i < SIX; i++)
            draw[k][i] = p[i] + gsl_vector_get(z, (size_t)i);
        draw[k][SIX] =
            log_lik(q, draw[k]) + 0.5 * (8.0 + SIX) * log1p(square / 8.0);
        top = fmax(top, draw[k][SIX]);
    }
    for (int i = 0; i < SIX; i++)
        below[i] = 0.0;
    for (int k = 0; k < N_DRAW; k++) {
        const double weight = exp(draw[k][SIX] - top);
        sum += weight;
        for (int i = 0; i < SIX; i++)
            below[i] += draw[k][i] < 0.0 ? weight : 0.0;
    }
    for (int i = 0; i < SIX; i++)
        below[i] /= sum;
}

/* The share of intervals of 90 % that hold the truth. */
static double coverage(fixture *f, const char *keys)
{
    char entry[400];
    int n_in = 0;
    snprintf(entry, sizeof entry,
             "file: map.mrc, resolution: 5, sigma_over_r: 0.3%s", keys);
    for (int k = 0; k < N_MAP; k++) {
        tsr_term *term;
        double below[SIX];
        write_maps(f);
        OK(read_term(f->t, "map", entry, &term));
        own_tsr_term(term);
        const question q = {f, term, tsr_term_fit_new(term, &term->pool)};
        below_truth(&q, below);
        for (int i = 0; i < SIX; i++)
            n_in += below[i] > 0.05 && below[i] < 0.95;
    }
    const double share = (double)n_in / (SIX * N_MAP);
    print_message("%s: %.3f\n", keys, share);
    return share;
}

/* 6 N_MAP intervals, which are not independent within a map: as if N_MAP were,
 * three standard deviations and what is allowed of the long run, 0.85 to 0.95.
 */
static const double low = 0.85, high = 0.95;

static double sampling(void)
{
    return N_MAP < 50 ? 3.0 * sqrt(0.9 * 0.1 / (3.0 * N_MAP)) : 0.0;
}

/* What noise is said to leave of a structure that is right it does leave. */
TEST(limit_is_met)
{
    static const char *const keys[] = {
        ", half_map_1: one.mrc, half_map_2: two.mrc", ", mask: mask.mrc"};
    fixture *f = *state;
    const double one = 1.0, theta = log(sigma / resolution);
    const tsr_conformation *at = f->c;
    const tsr_prediction prediction = {NULL, 1, &at, &one};
    memcpy(f->c->body, f->true_place,
           (size_t)f->t->n_body * sizeof *f->true_place);
    for (int k = 0; k < 2; k++) {
        char entry[400];
        double cc, sum = 0.0;
        tsr_term *term;
        snprintf(entry, sizeof entry,
                 "file: map.mrc, resolution: 5, sigma_over_r: 0.3%s", keys[k]);
        for (int i = 0; i < 10; i++) {
            write_maps(f);
            OK(read_term(f->t, "map", entry, &term));
            own_tsr_term(term);
            assert_int_equal(term->n_note, 1);
            assert_string_equal(term->note[0].name, "limit");
            const double *limit = term->note[0].value;
            void *fit = tsr_term_fit_new(term, &term->pool);
            term->type->fit(term, NULL, &prediction, &theta, fit, NULL);
            term->type->predict(term, &prediction, fit, &theta, &cc);
            sum += (cc - *limit) / 10.0;
            assert_true(*limit > 0.3 && *limit < 0.95);
        }
        print_message("%s: correlation less its limit %.4f\n", keys[k], sum);
        assert_true(fabs(sum) < 0.03);
    }
}

TEST(by_half_maps)
{
    const double share =
        coverage(*state, ", half_map_1: one.mrc, half_map_2: two.mrc");
    assert_true(share >= low - sampling() && share <= high + sampling());
}

TEST(by_solvent)
{
    const double share = coverage(*state, ", mask: mask.mrc");
    assert_true(share >= low - sampling());
}

/* A rule of thumb: of a protein it held the truth in 0.85. */
TEST(not_whitened)
{
    assert_true(coverage(*state, "") >= low - 0.05 - sampling());
}

TEST(as_if_independent)
{
    assert_true(coverage(*state, ", independent_voxels: 1e9") <
                low - sampling());
}

static test_fixture around_all = {open_fixture, NULL};
