/* Blurred atoms, the density of a model on a grid, and its correlation with a
 * map. */
#include "maps/density.h"

#include "core/vec3.h"
#include "molecule/structure.h"

#include <math.h>
#include <string.h>

/* ---- blur ----
 *
 * Gaussians of the elements at a resolution. The first table lists the shapes
 * of atoms and their default widths. */

static const struct {
    const char *name;
    double default_width; /* sigma / R */
} kinds[] = {{"gaussian", 0.225}, {"radius", 0.30}, {"electron", 0.225}};

const char *tsr_blur_name(tsr_blur kind)
{
    return kinds[kind].name;
}

double tsr_blur_default_width(tsr_blur kind)
{
    return kinds[kind].default_width;
}

/* Radius of an element as in VMD, Angstrom (density.h). */
static double radius(int z)
{
    switch (z) {
    case 1:
        return 1.0;
    case 7:
        return 1.4;
    case 8:
        return 1.3;
    case 9:
        return 1.2;
    case 16:
        return 1.9;
    default:
        return 1.5;
    }
}

static void append_gaussian(tsr_blur_table *table, int z, double amplitude,
                            double sigma)
{
    table->gaussian[table->n++] = (tsr_gaussian){
        .amplitude = amplitude,
        .sigma_ang = sigma,
        .is_atom = table->count[z] == 0,
    };
    table->count[z]++;
}

/* The Fourier transform of a exp(-b s^2), s = sin(theta) / lambda, is a (4 pi /
 * b)^(3/2) exp(-4 pi^2 r^2 / b). This is a Gaussian of variance b / 8 pi^2, to
 * which the variance of the blur is added. */
static tsr_status add_electron(tsr_blur_table *table, int z, double sigma,
                               tsr_err *err)
{
    double a[5], b[5];
    if (!tsr_atom_electron_gaussians(z, a, b))
        return tsr_fail(err, TSR_E_DATA,
                        "no electron form factor is known for element %d; use "
                        "--kernel gaussian",
                        z);
    for (int k = 0; k < 5; k++) {
        double variance = sigma * sigma + b[k] / (8.0 * TSR_PI * TSR_PI);
        append_gaussian(table, z, a[k] * pow(2.0 * TSR_PI * variance, -1.5),
                        sqrt(variance));
    }
    return TSR_OK;
}

tsr_status tsr_blur_make(tsr_blur kind, double resolution_ang,
                         double sigma_over_r, int n_atom,
                         const unsigned char *z, tsr_blur_table *out,
                         tsr_err *err)
{
    const double sigma = sigma_over_r * resolution_ang;
    *out = (tsr_blur_table){.kind = kind,
                            .resolution_ang = resolution_ang,
                            .sigma_over_r = sigma_over_r};
    for (int i = 0; i < n_atom; i++) {
        const int e = z[i];
        if (e < 1 || e >= TSR_MOST_ELEMENTS || out->n > TSR_MOST_GAUSSIANS - 5)
            return tsr_fail(err, TSR_E_DATA,
                            "an atom of element %d is missing from the table "
                            "of blurred atoms",
                            e);
        if (out->count[e] > 0)
            continue;
        out->first[e] = out->n;
        if (kind == TSR_BLUR_GAUSSIAN)
            append_gaussian(out, e, e, sigma);
        else if (kind == TSR_BLUR_RADIUS)
            append_gaussian(out, e, 1.0, sigma * radius(e) / 1.5);
        else
            TSR_TRY(add_electron(out, e, sigma, err));
    }
    return TSR_OK;
}

/* ---- density ----
 *
 * The reference engine sums every Gaussian at every voxel within its cut-off,
 * in double precision. */

/* Partial sums, added in fixed order, reduce the rounding error. */
tsr_map_sums tsr_map_whole(const tsr_map *map)
{
    enum { PARTS = 256 };
    const size_t n_voxel = tsr_map_n_voxel(&map->grid);
    tsr_map_sums whole = {0};
    for (size_t part = 0; part < PARTS; part++) {
        const size_t end = n_voxel * (part + 1) / PARTS;
        tsr_map_sums sum = {0};
        for (size_t k = n_voxel * part / PARTS; k < end; k++)
            if (!isnan(map->value[k]))
                tsr_map_sums_add(&sum, (double)map->value[k], 0.0);
        whole.n += sum.n;
        whole.e += sum.e;
        whole.ee += sum.ee;
    }
    return whole;
}

tsr_status tsr_density_not_finite(tsr_err *err)
{
    return tsr_fail(err, TSR_E_NUMERIC,
                    "a coordinate of a model is not a finite number");
}

tsr_status tsr_density_one(tsr_density_engine *engine, int n_atom,
                           const double (*xyz)[3], const unsigned char *z,
                           const tsr_density_options *options,
                           tsr_density_sums *out, tsr_err *err)
{
    const int first[2] = {0, n_atom};
    const tsr_density_batch batch = {1, first, xyz, z};
    return engine->run(engine, &batch, options, out, err);
}

tsr_status tsr_systems_make(tsr_pool *pool, int n_system, size_t n_atom,
                            tsr_systems *out, tsr_err *err)
{
    *out = (tsr_systems){.n = 0};
    tsr_pool_array(pool, out->first, n_system + 1);
    tsr_pool_array(pool, out->xyz, n_atom);
    tsr_pool_array(pool, out->z, n_atom);
    return tsr_pool_check(pool, err);
}

double (*tsr_systems_add(tsr_systems *s, int n, const int *atom,
                         const double (*xyz)[3], const unsigned char *z))[3]
{
    const int at = s->first[s->n];
    for (int i = 0; i < n; i++) {
        const int from = atom != NULL ? atom[i] : i;
        memcpy(s->xyz[at + i], xyz[from], sizeof *s->xyz);
        s->z[at + i] = z[from];
    }
    s->first[++s->n] = at + n;
    return s->xyz + at;
}

tsr_status tsr_systems_run(const tsr_systems *s, tsr_density_engine *engine,
                           const tsr_density_options *options,
                           tsr_density_sums *out, tsr_err *err)
{
    const tsr_density_batch batch = {s->n, s->first, (const double(*)[3])s->xyz,
                                     s->z};
    return engine->run(engine, &batch, options, out, err);
}

void tsr_density_free(tsr_density_engine *engine)
{
    if (engine == NULL)
        return;
    if (engine->free != NULL)
        engine->free(engine);
    tsr_pool pool = engine->pool;
    tsr_pool_clear(&pool);
}

/* ---- the reference ---- */

typedef struct {
    tsr_density_engine base;
    double *density;     /* [n_voxel] of the present system */
    unsigned char *mask; /* [n_voxel] */
} reference;

static void add_gaussian(reference *e, const double r[3],
                         const tsr_gaussian *gaussian)
{
    const double rate = 0.5 / (gaussian->sigma_ang * gaussian->sigma_ang);
    tsr_map_box b = tsr_map_box_about(&e->base.map->grid, r,
                                      TSR_BLUR_REACH * gaussian->sigma_ang);
    while (tsr_map_box_next(&b))
        e->density[b.k] += gaussian->amplitude * exp(-rate * b.square);
}

static void add_mask(reference *e, const double r[3], double radius)
{
    tsr_map_box b = tsr_map_box_about(&e->base.map->grid, r, radius);
    while (tsr_map_box_next(&b))
        e->mask[b.k] |= b.square <= radius * radius;
}

static void sum_voxels(const reference *e, double threshold,
                       tsr_density_sums *out)
{
    const tsr_map *map = e->base.map;
    const int *n = map->grid.n;
    size_t k = 0;
    for (size_t z = 0; z < (size_t)n[2]; z++)
        for (size_t y = 0; y < (size_t)n[1]; y++)
            for (size_t x = 0; x < (size_t)n[0]; x++, k++) {
                const double value = (double)map->value[k], s = e->density[k];
                if (isnan(value))
                    continue;
                tsr_map_sums_add(&out->box, value, s);
                if (e->mask[k])
                    tsr_map_sums_add(&out->mask, value, s);
                if (s >= threshold)
                    tsr_map_sums_add(&out->above, value, s);
            }
}

static tsr_status reference_run(tsr_density_engine *engine,
                                const tsr_density_batch *batch,
                                const tsr_density_options *o,
                                tsr_density_sums *out, tsr_err *err)
{
    reference *e = (reference *)engine;
    const size_t n_voxel = tsr_map_n_voxel(&engine->map->grid);
    for (int i = batch->first[0]; i < batch->first[batch->n_system]; i++)
        for (int c = 0; c < 3; c++)
            if (!(fabs(batch->xyz[i][c]) <= 1e30))
                return tsr_density_not_finite(err);
    for (int k = 0; k < batch->n_system; k++) {
        memset(e->density, 0, n_voxel * sizeof *e->density);
        memset(e->mask, 0, n_voxel);
        for (int i = batch->first[k]; i < batch->first[k + 1]; i++) {
            const int z = batch->z[i];
            const tsr_gaussian *gaussian =
                &engine->blur.gaussian[engine->blur.first[z]];
            for (int g = 0; g < engine->blur.count[z]; g++)
                add_gaussian(e, batch->xyz[i], &gaussian[g]);
            if (o->mask_ang > 0.0)
                add_mask(e, batch->xyz[i], o->mask_ang);
        }
        out[k] = (tsr_density_sums){0};
        sum_voxels(e, o->threshold != NULL ? o->threshold[k] : (double)INFINITY,
                   &out[k]);
        for (size_t v = 0; o->density != NULL && v < n_voxel; v++)
            o->density[v] = (float)e->density[v];
    }
    return TSR_OK;
}

static tsr_status reference_blur(tsr_density_engine *engine,
                                 const tsr_blur_table *blur, tsr_err *err)
{
    (void)err;
    engine->blur = *blur;
    return TSR_OK;
}

static tsr_status reference_clone(tsr_density_engine *engine,
                                  tsr_density_engine **out, tsr_err *err);

/* whole: sums over the map. */
static tsr_status reference_make(const tsr_map *map, const tsr_map_sums *whole,
                                 tsr_density_engine **out, tsr_err *err)
{
    const size_t n_voxel = tsr_map_n_voxel(&map->grid);
    tsr_pool pool = {0};
    reference arrays, *e = tsr_pool_new(&pool, 1, sizeof *e);
    tsr_pool_array(&pool, arrays.density, n_voxel);
    tsr_pool_array(&pool, arrays.mask, n_voxel);
    const tsr_status status = tsr_pool_check(&pool, err);
    *out = NULL;
    if (status != TSR_OK) {
        tsr_pool_clear(&pool);
        return status;
    }
    *e = arrays;
    e->base = (tsr_density_engine){.pool = pool,
                                   .set_blur = reference_blur,
                                   .run = reference_run,
                                   .clone = reference_clone,
                                   .map = map,
                                   .whole = *whole,
                                   .describe = "reference, double precision"};
    *out = &e->base;
    return TSR_OK;
}

static tsr_status reference_clone(tsr_density_engine *engine,
                                  tsr_density_engine **out, tsr_err *err)
{
    TSR_TRY(reference_make(engine->map, &engine->whole, out, err));
    return reference_blur(*out, &engine->blur, err);
}

tsr_status tsr_density_reference_new(const tsr_map *map,
                                     tsr_density_engine **out, tsr_err *err)
{
    const tsr_map_sums whole = tsr_map_whole(map);
    return reference_make(map, &whole, out, err);
}

/* ---- correlation ----
 *
 * Correlation coefficients from the six sums. For a constant density the result
 * is NaN, which is no error. */

/* n times the variance of S, the variance of E, and their covariance. */
static double var_s(const tsr_map_sums *m)
{
    return m->ss - m->s * m->s / m->n;
}

static double var_e(const tsr_map_sums *m)
{
    return m->ee - m->e * m->e / m->n;
}

static double cov(const tsr_map_sums *m)
{
    return m->es - m->e * m->s / m->n;
}

/* 1: the variance is not larger than its rounding error. square: sum of
 * squares. */
static int is_flat(double variance, double square)
{
    return !(variance > 1e-12 * square);
}

double tsr_map_cc(const tsr_map_sums *sums)
{
    const tsr_map_sums *m = sums;
    if (!(m->n > 0.0) || is_flat(var_s(m), m->ss) || is_flat(var_e(m), m->ee))
        return (double)NAN;
    return cov(m) / sqrt(var_s(m) * var_e(m));
}

double tsr_map_cc_uncentred(const tsr_map_sums *sums)
{
    if (!(sums->ss > 0.0) || !(sums->ee > 0.0))
        return (double)NAN;
    return sums->es / sqrt(sums->ss * sums->ee);
}

void tsr_map_line(const tsr_map_sums *sums, double *slope, double *offset)
{
    const tsr_map_sums *m = sums;
    const double n = m->n > 0.0 ? m->n : 1.0;
    *slope = m->n > 0.0 && !is_flat(var_s(m), m->ss) ? cov(m) / var_s(m) : 0.0;
    *offset = (m->e - *slope * m->s) / n;
}

double tsr_map_sd_s(const tsr_map_sums *sums)
{
    return sqrt(fmax(0.0, var_s(sums) / sums->n));
}
