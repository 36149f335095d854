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
 * electrons; it is a normal density of the blur's width, sigma = (sigma / R) R,
 * and of its atoms' spread about its centre. The map is blurred by widths that
 * are close together, and read between them; so sigma / R may be inferred. The
 * whole box counts; a molecule must lie well within it. */
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
    double resolution, independent;
    tsr_number_or_word sigma_over_r;
    double sigma_width;
} map_options;

enum {
    /* Pairs whose overlap falls below exp(-12.5) of that in one place do not
       count. */
    DECAY_STEPS = 64,
    DECAYS = 800,
    MOST_LEVELS = 32 /* widths that the map is blurred by */
};

/* Of bodies of one type. */
typedef struct {
    int occurs;
    double weight;  /* electrons */
    double spread2; /* Angstrom^2, of its atoms along an axis */
} body_class;

typedef struct {
    tsr_term term;
    char label[160];
    const tsr_topology *topology;
    int most_state;
    double resolution;
    double n_voxel, mean, var_e; /* of the map */
    double voxel_volume;         /* Angstrom^3 */
    double n_free;               /* n, voxels that count as independent */
    body_class class[TSR_MAX_TYPE];
    double decay[DECAYS + 1]; /* exp(-k / DECAY_STEPS) */
    /* Level k is the map blurred by a variance of exp(log_first + k step). */
    int n_level;
    double log_first, step;
    tsr_map *level[MOST_LEVELS];
    double coord, observed, sigma;
} map_term;

/* What is known of one prediction, at one sigma. */
typedef struct {
    double cc, var_s;
    double sigma_ang; /* of the tables; 0: they are not made */
    double overlap[TSR_MAX_TYPE][TSR_MAX_TYPE]; /* of S^2 at distance 0 */
    double falls[TSR_MAX_TYPE][TSR_MAX_TYPE];   /* exponent by distance^2, in
                                                   steps */
    double at_level[TSR_MAX_TYPE];              /* of the map, by type */
    int n_state;
    double weight[TSR_MAX_STATES];
    double xyz[][3]; /* [n_state][n_body] */
} map_fit;

static const char *const origin_words[] = {"auto", "origin", "nstart", NULL};

static const char *const infer_words[] = {"infer", NULL};

static const double pi = 3.14159265358979324;

/* The prior of sigma / R where it is inferred: log-normal; programs have 0.19
 * to 0.5. The widths that the map is blurred by reach beyond it. */
static const double sigma_middle = 0.28, sigma_low = 0.08, sigma_high = 0.9;

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
     .type = TSR_FIELD_NUMBER_OR_WORD,
     .offset = offsetof(map_options, sigma_over_r),
     .initial = "infer",
     .min = 0.08,
     .max = 0.9,
     .words = infer_words,
     .doc = "width of an atom's Gaussian over the resolution: inferred, with a "
            "log-normal prior around 0.28, or fixed"},
    {.name = "sigma_width",
     .type = TSR_FIELD_DOUBLE,
     .offset = offsetof(map_options, sigma_width),
     .initial = "0.35",
     .min = 1e-3,
     .max = 2.0,
     .doc = "standard deviation of log sigma_over_r in its prior"},
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
    for (int k = 0; k < t->n_level; k++)
        tsr_map_free(t->level[k]);
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
    t->sigma = 1.0 / sqrt(t->n_free); /* of one of so many voxels */
    if (t->n_free < 10.0)
        return tsr_fail(err, TSR_E_DATA,
                        "'%s': at %g Angstrom the map has %.1f independent "
                        "voxels, too few to say anything",
                        map->path, o->resolution, t->n_free);
    return TSR_OK;
}

/* The bodies that occur. Half the mass of C, N, O and S is the number of their
 * electrons. */
static void make_classes(map_term *t, const double *rg2)
{
    for (int i = 0; i < t->topology->n_body; i++) {
        const tsr_body *body = &t->topology->body[i];
        t->class[body->type] =
            (body_class){.occurs = 1,
                         .weight = 0.5 * body->mass,
                         .spread2 = rg2 != NULL ? rg2[body->type] / 3.0 : 0.0};
    }
    for (int k = 0; k <= DECAYS; k++)
        t->decay[k] = exp(-(double)k / DECAY_STEPS);
}

/* Levels from the narrowest body at the smallest sigma / R to the widest at the
 * largest, 0.16 apart in the logarithm of the variance: reading between them is
 * then exact to some 3e-4. */
static tsr_status make_levels(map_term *t, const tsr_map *map, double low,
                              double high, tsr_err *err)
{
    double narrow = HUGE_VAL, wide = 0.0;
    for (int k = 0; k < TSR_MAX_TYPE; k++)
        if (t->class[k].occurs) {
            narrow = fmin(narrow, t->class[k].spread2);
            wide = fmax(wide, t->class[k].spread2);
        }
    narrow += pow(low * t->resolution, 2.0);
    wide += pow(high * t->resolution, 2.0);
    int n = 3 + (int)(log(wide / narrow) / 0.16);
    n = n < MOST_LEVELS ? n : MOST_LEVELS;
    t->log_first = log(narrow) - 0.005;
    t->step = (log(wide) + 0.005 - t->log_first) / (n - 1);
    const double bytes = 4.0 * n * (double)tsr_map_n_voxel(&map->grid);
    if (bytes > 0x1p33)
        return tsr_fail(err, TSR_E_DATA,
                        "'%s': the map, blurred by %d widths, takes %.1f GiB; "
                        "crop or bin it",
                        map->path, n, bytes / 0x1p30);
    for (; t->n_level < n; t->n_level++)
        TSR_TRY(tsr_blurred_make(
            map, t->mean, exp(0.5 * (t->log_first + t->n_level * t->step)),
            &t->level[t->n_level], err));
    return TSR_OK;
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
    t->most_state = source->n_state > 0 ? source->n_state : TSR_MAX_STATES;
    t->resolution = o->resolution;
    t->observed = 1.0; /* the correlation that no noise would leave */
    t->term = (tsr_term){.type = &tsr_term_map,
                         .label = t->label,
                         .number = source->number,
                         .n_parameter = 1,
                         .n_point = 1,
                         .coord = &t->coord,
                         .observed = &t->observed,
                         .sigma = &t->sigma};
    const int is_fixed = o->sigma_over_r.word < 0;
    t->term.parameter[0] = tsr_parameter_log_normal(
        "sigma_over_r", NULL, "width of the blur over the resolution",
        o->sigma_over_r, sigma_middle, o->sigma_width, TSR_CHANGES_FIT);
    make_classes(t, source->rg2);
    snprintf(t->label, sizeof t->label, "%.150s", tsr_text_file_name(o->file));
    tsr_status status = tsr_map_read(o->file, (tsr_map_origin)o->origin,
                                     source->log, &map, err);
    if (status == TSR_OK)
        status = take_map(t, map, o, err);
    if (status == TSR_OK)
        status =
            make_levels(t, map, is_fixed ? o->sigma_over_r.number : sigma_low,
                        is_fixed ? o->sigma_over_r.number : sigma_high, err);
    tsr_map_free(map);
    if (status != TSR_OK) {
        term_free(&t->term);
        return status;
    }
    tsr_info(source->log, "%s: %.0f voxels count as %.0f independent ones",
             t->label, t->n_voxel, t->n_free);
    *out = &t->term;
    return TSR_OK;
}

static void term_tell(const tsr_term_options *options, FILE *out)
{
    const map_options *o = (const void *)options;
    fprintf(out,
            "Structures were compared with a density map of %g \xc3\x85 "
            "resolution, bodies as Gaussians; scale, background and noise "
            "level were integrated out",
            o->resolution);
    tsr_term_tell_free(out, ", the width over the resolution", o->sigma_over_r);
    fputs(". ", out);
}

/* ---- one prediction ---- */

/* What depends on sigma alone. Sums over voxels of products of two Gaussians
 * are, of voxels smaller than they are wide, those of integrals: a Gaussian of
 * the distance. */
static void set_sigma(const map_term *t, double sigma_over_r, map_fit *f)
{
    const double within = fmin(fmax(sigma_over_r, sigma_low), sigma_high);
    const double sigma = within * t->resolution;
    if (f->sigma_ang == sigma)
        return;
    f->sigma_ang = sigma;
    for (int a = 0; a < TSR_MAX_TYPE; a++) {
        const body_class *x = &t->class[a];
        const double xx = sigma * sigma + x->spread2;
        f->at_level[a] = (log(xx) - t->log_first) / t->step;
        for (int b = 0; b < TSR_MAX_TYPE && x->occurs; b++) {
            const body_class *y = &t->class[b];
            const double sum = xx + sigma * sigma + y->spread2;
            f->overlap[a][b] = x->weight * y->weight /
                               (pow(2.0 * pi * sum, 1.5) * t->voxel_volume);
            f->falls[a][b] = 0.5 * DECAY_STEPS / sum;
        }
    }
}

/* The map under a body's Gaussian: quadratic between three levels. */
static double read_map(const map_term *t, double at, const double x[3])
{
    int k = (int)(at + 0.5);
    k = k < 1 ? 1 : k > t->n_level - 2 ? t->n_level - 2 : k;
    const double d = at - k;
    return 0.5 * d * (d - 1.0) * tsr_blurred_read(t->level[k - 1], x) +
           (1.0 - d * d) * tsr_blurred_read(t->level[k], x) +
           0.5 * d * (d + 1.0) * tsr_blurred_read(t->level[k + 1], x);
}

/* Sums of S E', S^2 and S over the voxels. */
typedef struct {
    double se, ss, s;
} sums;

static void add_self(const map_term *t, const map_fit *f, int state, sums *sum)
{
    const int n = t->topology->n_body;
    const double(*x)[3] =
        (const double(*)[3])(f->xyz + (size_t)state * (size_t)n);
    const double weight = f->weight[state];
    for (int i = 0; i < n; i++) {
        const int type = t->topology->body[i].type;
        const double w = weight * t->class[type].weight / t->voxel_volume;
        sum->se += w * read_map(t, f->at_level[type], x[i]);
        sum->ss += weight * weight * f->overlap[type][type];
        sum->s += w;
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
static void add_pairs(const map_term *t, const map_fit *f, int k, int l,
                      sums *sum)
{
    const tsr_body *body = t->topology->body;
    const int n = t->topology->n_body;
    const double(*one)[3] =
        (const double(*)[3])(f->xyz + (size_t)k * (size_t)n);
    const double(*other)[3] =
        (const double(*)[3])(f->xyz + (size_t)l * (size_t)n);
    double all = 0.0;
    for (int i = 0; i < n; i++) {
        const double *overlap = f->overlap[body[i].type];
        const double *falls = f->falls[body[i].type];
        const double *r = one[i];
        for (int j = k == l ? i + 1 : 0; j < n; j++) {
            const double dx = other[j][0] - r[0];
            const double dy = other[j][1] - r[1];
            const double dz = other[j][2] - r[2];
            const double x =
                falls[body[j].type] * (dx * dx + dy * dy + dz * dz);
            if (x < DECAYS)
                all += overlap[body[j].type] * decay(t, x);
        }
    }
    sum->ss += 2.0 * f->weight[k] * f->weight[l] * all;
}

/* Of the structures that the fit has. */
static void evaluate(const map_term *t, double sigma_over_r, map_fit *f)
{
    sums sum = {0.0, 0.0, 0.0};
    set_sigma(t, sigma_over_r, f);
    for (int k = 0; k < f->n_state; k++) {
        add_self(t, f, k, &sum);
        for (int l = k; l < f->n_state; l++)
            add_pairs(t, f, k, l, &sum);
    }
    const double mean_s = sum.s / t->n_voxel;
    f->var_s = sum.ss / t->n_voxel - mean_s * mean_s;
    f->cc = sum.se / t->n_voxel / sqrt(f->var_s * t->var_e);
}

static double sigma_of(const tsr_term *term, const double *theta)
{
    return tsr_parameter_value(&term->parameter[0], theta[0]);
}

static void *term_fit_new(const tsr_term *term)
{
    const map_term *t = (const map_term *)term;
    const size_t n = (size_t)t->most_state * (size_t)t->topology->n_body;
    return calloc(1, sizeof(map_fit) + n * sizeof(double[3]));
}

static tsr_status term_fit(const tsr_term *term,
                           const tsr_prediction *prediction,
                           const double *theta, void *fit, tsr_err *err)
{
    const map_term *t = (const map_term *)term;
    const size_t n = (size_t)t->topology->n_body;
    map_fit *f = fit;
    if (prediction->n_state > t->most_state)
        return tsr_fail(err, TSR_E_INTERNAL, "map: %d states, room for %d",
                        prediction->n_state, t->most_state);
    f->n_state = prediction->n_state;
    for (int k = 0; k < f->n_state; k++) {
        f->weight[k] = prediction->weight[k];
        memcpy(f->xyz + (size_t)k * n, prediction->state[k]->body,
               n * sizeof *f->xyz);
    }
    evaluate(t, sigma_of(term, theta), f);
    return TSR_OK;
}

static void term_refit(const tsr_term *term, const void *from,
                       const double *theta, void *fit)
{
    const map_term *t = (const map_term *)term;
    const map_fit *old = from;
    map_fit *f = fit;
    f->n_state = old->n_state;
    memcpy(f->weight, old->weight, sizeof f->weight);
    memcpy(f->xyz, old->xyz,
           (size_t)old->n_state * (size_t)t->topology->n_body * sizeof *f->xyz);
    evaluate(t, sigma_of(term, theta), f);
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
    map_fit *f = term_fit_new(term);
    value[0] = (double)NAN;
    if (f != NULL && term_fit(term, prediction, theta, f, NULL) == TSR_OK)
        value[0] = f->cc;
    free(f);
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
    .refit = term_refit,
    .log_lik = term_log_lik,
    .chi2 = term_chi2,
    .predict = term_predict,
    .log_point = term_log_point,
    .draw_point = term_draw_point};
