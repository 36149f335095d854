/* The likelihood term `map`: a density map, as electron microscopy gives it.
 *
 *     E(x) = a S(x) + b + noise
 *
 * S is the density of the ensemble, its bodies as Gaussians. The scale a > 0
 * and the background b have flat priors, the noise level s has 1 / s;
 * integrated out, with N voxels that count as n independent ones and m = n - 2,
 *
 *     log L = -1/2 log(n^2 Var S) - m/2 log(pi n Var E (1 - CC^2))
 *             + log Gamma(m/2) - log 2 + log P(a > 0)
 *
 * so that the correlation CC of the two becomes a likelihood. Noise of
 * neighbouring voxels is correlated: what is independent is a piece of the size
 * of the resolution R, n = (4 pi / 3) V / R^3, which errs on the safe side.
 *
 * No grid is made while structures move. Three sums matter:
 *     sum S E'  one reading a body of the map, blurred beforehand
 *     sum S^2   pairs of bodies: two Gaussians overlap in a Gaussian
 *     sum S     a constant
 * with E' the map less its mean. A body weighs as much as its atoms have
 * electrons, and is as wide as they are spread about its centre. The whole box
 * counts; a molecule must lie well within it. */
#include "likelihood/term.h"

#include "core/text.h"
#include "density/blurred.h"

#include <gsl/gsl_cdf.h>
#include <gsl/gsl_sf_gamma.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

typedef struct {
    int kind;
    char *file;
    int origin; /* index: auto, origin, nstart */
    double resolution, sigma_over_r, independent;
} map_options;

/* Pairs whose overlap falls below exp(-12.5) of that in one place do not count.
 */
enum { DECAY_STEPS = 64, DECAYS = 800 };

/* Of bodies of one type. */
typedef struct {
    double sigma;     /* Angstrom, of its Gaussian */
    double height;    /* at its centre */
    double total;     /* sum over voxels */
    tsr_map *blurred; /* NULL: does not occur */
} body_class;

typedef struct {
    tsr_term term;
    char label[160];
    const tsr_topology *topology;
    double n_voxel, mean, var_e; /* of the map */
    double voxel_volume;         /* Angstrom^3 */
    double n_free;               /* n, voxels that count as independent */
    body_class class[TSR_MAX_TYPE];
    double overlap[TSR_MAX_TYPE][TSR_MAX_TYPE]; /* of S^2 at distance 0 */
    double falls[TSR_MAX_TYPE][TSR_MAX_TYPE];   /* exponent by distance^2, in
                                                   steps */
    double decay[DECAYS + 1];                   /* exp(-k / DECAY_STEPS) */
    double coord, observed, sigma;
} map_term;

/* What is known of one prediction. */
typedef struct {
    double cc, var_s;
} map_fit;

static const char *const origin_words[] = {"auto", "origin", "nstart", NULL};

static const double pi = 3.14159265358979324;

static const tsr_field fields[] = {
    {.name = "file",
     .type = TSR_FIELD_STRING,
     .offset = offsetof(map_options, file),
     .is_path = 1,
     .doc = "the density map: MRC2014, CCP4 or OpenDX"},
    {.name = "resolution",
     .type = TSR_FIELD_DOUBLE,
     .offset = offsetof(map_options, resolution),
     .unit = "Angstrom",
     .min = 0.0,
     .max = 100.0,
     .doc = "of the map"},
    {.name = "sigma_over_r",
     .type = TSR_FIELD_DOUBLE,
     .offset = offsetof(map_options, sigma_over_r),
     .initial = "0.225",
     .min = 0.05,
     .max = 1.0,
     .doc = "width of an atom's Gaussian over the resolution"},
    {.name = "origin",
     .type = TSR_FIELD_CHOICE,
     .offset = offsetof(map_options, origin),
     .initial = "auto",
     .words = origin_words,
     .doc = "which field of the header says where the first voxel is"},
    {.name = "independent",
     .type = TSR_FIELD_DOUBLE,
     .offset = offsetof(map_options, independent),
     .initial = "0",
     .min = 0.0,
     .max = 1e12,
     .doc = "voxels that count as independent; 0: (4 pi / 3) V / R^3 of the "
            "volume V"},
    {0}};

static void term_free(tsr_term *term)
{
    map_term *t = (map_term *)term;
    for (int k = 0; k < TSR_MAX_TYPE; k++)
        tsr_map_free(t->class[k].blurred);
    free(t);
}

/* ---- the map ---- */

static tsr_status take_map(map_term *t, const tsr_map *map,
                           const map_options *o, tsr_err *err)
{
    const tsr_map_grid *g = &map->grid;
    const size_t n = tsr_map_n_voxel(g);
    double mean = 0.0, m2 = 0.0, known = 0.0;
    for (size_t k = 0; k < n; k++) {
        const double v = (double)map->value[k];
        if (isnan(v))
            continue;
        const double delta = v - mean;
        mean += delta / ++known;
        m2 += delta * (v - mean);
    }
    t->n_voxel = known;
    t->mean = mean;
    t->var_e = known > 0.0 ? m2 / known : 0.0;
    t->voxel_volume = g->step[0] * g->step[1] * g->step[2];
    if (!(t->var_e > 0.0))
        return tsr_fail(err, TSR_E_DATA,
                        "'%s': all voxels of the map have one value",
                        map->path);
    const double volume = known * t->voxel_volume;
    t->n_free = o->independent > 0.0
                    ? o->independent
                    : 4.0 / 3.0 * pi * volume / pow(o->resolution, 3.0);
    if (t->n_free > known)
        t->n_free = known;
    if (t->n_free < 10.0)
        return tsr_fail(err, TSR_E_DATA,
                        "'%s': at %g Angstrom the map has %.1f independent "
                        "voxels, too few to say anything",
                        map->path, o->resolution, t->n_free);
    return TSR_OK;
}

/* Gaussians of the bodies that occur. Atoms of equal width sigma and heights Z,
 * spread by rho along each axis, are together as one of width^2 sigma^2 + rho^2
 * with the same sum; half the mass of C, N, O and S is the number of their
 * electrons. */
static tsr_status make_classes(map_term *t, const tsr_map *map,
                               const map_options *o, const double *rg2,
                               tsr_err *err)
{
    const double sigma = o->sigma_over_r * o->resolution;
    for (int i = 0; i < t->topology->n_body; i++) {
        const tsr_body *body = &t->topology->body[i];
        body_class *c = &t->class[body->type];
        if (c->blurred != NULL)
            continue;
        const double spread2 = rg2 != NULL ? rg2[body->type] / 3.0 : 0.0;
        c->sigma = sqrt(sigma * sigma + spread2);
        c->height = 0.5 * body->mass * pow(sigma / c->sigma, 3.0);
        c->total = c->height * pow(2.0 * pi, 1.5) * pow(c->sigma, 3.0) /
                   t->voxel_volume;
        TSR_TRY(tsr_blurred_make(map, t->mean, c->sigma, &c->blurred, err));
    }
    return TSR_OK;
}

/* The sum over voxels of the product of two Gaussians is, of voxels smaller
 * than they are wide, that of an integral: a Gaussian of the distance. */
static void make_pairs(map_term *t)
{
    for (int k = 0; k <= DECAYS; k++)
        t->decay[k] = exp(-(double)k / DECAY_STEPS);
    for (int a = 0; a < TSR_MAX_TYPE; a++)
        for (int b = 0; b < TSR_MAX_TYPE; b++) {
            const body_class *x = &t->class[a], *y = &t->class[b];
            if (x->blurred == NULL || y->blurred == NULL)
                continue;
            const double xx = x->sigma * x->sigma, yy = y->sigma * y->sigma;
            t->overlap[a][b] = x->height * y->height *
                               pow(2.0 * pi * xx * yy / (xx + yy), 1.5) /
                               t->voxel_volume;
            t->falls[a][b] = 0.5 * DECAY_STEPS / (xx + yy);
        }
}

static tsr_status check_options(const tsr_term_source *source, tsr_err *err)
{
    const map_options *o = (const void *)source->options;
    if (o->file == NULL)
        return tsr_fail(err, TSR_E_CONFIG, "data.%d: a map needs a file",
                        source->number);
    if (!(o->resolution > 0.0))
        return tsr_fail(err, TSR_E_CONFIG,
                        "data.%d: a map needs its resolution, in Angstrom",
                        source->number);
    return TSR_OK;
}

static tsr_status term_read(const tsr_term_source *source, tsr_term **out,
                            tsr_err *err)
{
    const map_options *o = (const void *)source->options;
    tsr_map *map = NULL;
    TSR_TRY(check_options(source, err));
    map_term *t = calloc(1, sizeof *t);
    if (t == NULL)
        return tsr_fail(err, TSR_E_NOMEM, "out of memory");
    t->topology = source->topology;
    t->observed = 1.0;
    t->sigma = 1.0;
    t->term = (tsr_term){.type = &tsr_term_map,
                         .label = t->label,
                         .number = source->number,
                         .n_point = 1,
                         .coord = &t->coord,
                         .observed = &t->observed,
                         .sigma = &t->sigma};
    snprintf(t->label, sizeof t->label, "%.150s", tsr_text_file_name(o->file));
    tsr_status status = tsr_map_read(o->file, (tsr_map_origin)o->origin,
                                     source->log, &map, err);
    if (status == TSR_OK)
        status = take_map(t, map, o, err);
    if (status == TSR_OK)
        status = make_classes(t, map, o, source->rg2, err);
    tsr_map_free(map);
    if (status != TSR_OK) {
        term_free(&t->term);
        return status;
    }
    make_pairs(t);
    tsr_info(source->log,
             "%s: %.0f voxels count as %.0f independent ones; sigma %.2f A",
             t->label, t->n_voxel, t->n_free, o->sigma_over_r * o->resolution);
    *out = &t->term;
    return TSR_OK;
}

static void term_tell(const tsr_term_options *options, FILE *out)
{
    const map_options *o = (const void *)options;
    fprintf(out,
            "Structures were compared with a density map of %g \xc3\x85 "
            "resolution, atoms as Gaussians of width %g R; scale, background "
            "and noise level were integrated out. ",
            o->resolution, o->sigma_over_r);
}

/* ---- one prediction ---- */

/* Sums of S E', S^2 and S over the voxels. */
typedef struct {
    double se, ss, s;
} sums;

static void add_self(const map_term *t, const tsr_conformation *x,
                     double weight, sums *sum)
{
    for (int i = 0; i < t->topology->n_body; i++) {
        const int type = t->topology->body[i].type;
        const body_class *c = &t->class[type];
        sum->se +=
            weight * c->height * tsr_blurred_read(c->blurred, x->body[i]);
        sum->ss += weight * weight * t->overlap[type][type];
        sum->s += weight * c->total;
    }
}

/* exp(-x / DECAY_STEPS) within 3e-9: from the table, and a cubic for the rest.
 */
static double decay(const map_term *t, double x)
{
    const int k = (int)x;
    const double f = (x - k) * (1.0 / DECAY_STEPS);
    return t->decay[k] * (1.0 - f * (1.0 - f * (0.5 - f * (1.0 / 6.0))));
}

/* Twice the pairs of bodies of two states, or, of one with itself, those of
 * different bodies. */
static void add_pairs(const map_term *t, const tsr_conformation *one,
                      const tsr_conformation *other, int is_self, double weight,
                      sums *sum)
{
    const tsr_body *body = t->topology->body;
    const int n = t->topology->n_body;
    double all = 0.0;
    for (int i = 0; i < n; i++) {
        const double *overlap = t->overlap[body[i].type];
        const double *falls = t->falls[body[i].type];
        const double *r = one->body[i];
        for (int j = is_self ? i + 1 : 0; j < n; j++) {
            const double dx = other->body[j][0] - r[0];
            const double dy = other->body[j][1] - r[1];
            const double dz = other->body[j][2] - r[2];
            const double x =
                falls[body[j].type] * (dx * dx + dy * dy + dz * dz);
            if (x < DECAYS)
                all += overlap[body[j].type] * decay(t, x);
        }
    }
    sum->ss += 2.0 * weight * all;
}

static tsr_status term_fit(const tsr_term *term,
                           const tsr_prediction *prediction,
                           const double *theta, void *fit, tsr_err *err)
{
    const map_term *t = (const map_term *)term;
    map_fit *f = fit;
    sums sum = {0.0, 0.0, 0.0};
    (void)theta, (void)err;
    for (int k = 0; k < prediction->n_state; k++) {
        const double w = prediction->weight[k];
        add_self(t, prediction->state[k], w, &sum);
        for (int l = k; l < prediction->n_state; l++)
            add_pairs(t, prediction->state[k], prediction->state[l], k == l,
                      w * prediction->weight[l], &sum);
    }
    const double mean_s = sum.s / t->n_voxel;
    f->var_s = sum.ss / t->n_voxel - mean_s * mean_s;
    f->cc = sum.se / t->n_voxel / sqrt(f->var_s * t->var_e);
    return TSR_OK;
}

static void *term_fit_new(const tsr_term *term)
{
    (void)term;
    return calloc(1, sizeof(map_fit));
}

/* log P(T < -x) of Student's t with nu degrees of freedom, x > 0: half the
 * incomplete beta function, whose first terms do where the number itself would
 * underflow. */
static double log_tail(double x, double nu)
{
    const double a = 0.5 * nu, z = nu / (nu + x * x);
    double term = 1.0, sum = 1.0;
    for (int k = 0; k < 10000 && term > 1e-12 * sum; k++) {
        term *= z * (a + 0.5 + k) / (a + 1.0 + k);
        sum += term;
    }
    return a * log(z) + 0.5 * log1p(-z) - log(a) - gsl_sf_lnbeta(a, 0.5) +
           log(sum) - log(2.0);
}

/* log P(a > 0): a is distributed as Student's t about its best value. */
static double log_positive(double cc, double m)
{
    const double x = cc * sqrt(m / (1.0 - cc * cc));
    return x > -5.0 ? log(gsl_cdf_tdist_P(x, m)) : log_tail(-x, m);
}

static double term_log_lik(const tsr_term *term, const void *fit,
                           const double *theta)
{
    const map_term *t = (const map_term *)term;
    const map_fit *f = fit;
    const double n = t->n_free, m = n - 2.0;
    (void)theta;
    /* Sums of bodies are those of the grid to some 1e-4. */
    const double most = 1.0 - 1e-6;
    const double cc = fmax(-most, fmin(most, f->cc));
    return -0.5 * log(n * n * f->var_s) -
           0.5 * m * log(pi * n * t->var_e * (1.0 - cc * cc)) +
           gsl_sf_lngamma(0.5 * m) - log(2.0) + log_positive(cc, m);
}

/* The noise is estimated from the residuals, so that in units of it their
 * squares add up to n whatever the structure. In units of the map's own spread
 * they are, a voxel, the share of its variance that the structures leave. */
static double term_chi2(const tsr_term *term, const void *fit)
{
    const map_fit *f = fit;
    (void)term;
    return 1.0 - f->cc * f->cc;
}

static void term_predict(const tsr_term *term, const tsr_prediction *prediction,
                         const double *theta, double *value)
{
    map_fit f;
    term_fit(term, prediction, theta, &f, NULL);
    value[0] = f.cc;
}

static double term_log_point(const tsr_term *term, const void *fit,
                             const double *theta, int k, double value)
{
    (void)k, (void)value;
    return term_log_lik(term, fit, theta);
}

/* A map is not drawn anew: its noise has no model in space. */
static double term_draw_point(const tsr_term *term, const double *theta, int k,
                              double value, gsl_rng *rng)
{
    (void)term, (void)theta, (void)k, (void)rng;
    return value;
}

const tsr_term_type tsr_term_map = {
    .name = "map",
    .doc = "a density map, as of electron microscopy",
    .source = "docs/density.md",
    .fields = fields,
    .needs = TSR_NEEDS_STATES | TSR_NEEDS_PLACE,
    .observable = "map_correlation",
    .axis = "map_point",
    .title = "Density map",
    .read = term_read,
    .free = term_free,
    .tell = term_tell,
    .fit_new = term_fit_new,
    .fit = term_fit,
    .log_lik = term_log_lik,
    .chi2 = term_chi2,
    .predict = term_predict,
    .log_point = term_log_point,
    .draw_point = term_draw_point};
