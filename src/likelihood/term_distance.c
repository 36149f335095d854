/* The likelihood term `distance`: the measured distribution of a distance
 * between two residues, as from DEER (double electron-electron resonance) or
 * FRET.
 *
 * The measurement is a density p(r): normal with a mean and a standard
 * deviation, or a table of r and p. The distance of each structure counts as a
 * draw from p, so an ensemble with weights w_k and distances r_k has
 *
 *     log L = sum_k w_k log p_s(r_k),   p_s(r) = p(m + (r - m) / s) / s
 *
 * with m the mean of p. The scale s widens the density about its mean, because
 * labels have flexible linkers and published widths can be too small. Its prior
 * is log-normal around 1. With one state this is the likelihood of Bayesian
 * DEER refinement (e.g. Jeschke 2012). With several states the distance of each
 * state is compared with p, not only their mean. */
#include "likelihood/term.h"

#include "prior/prior.h"
#include "scattering/saxs_table.h"

#include <gsl/gsl_randist.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef struct {
    int kind;
    tsr_strings between;
    int at; /* index into at_words */
    double mean, sd;
    char *file;
    int unit; /* index into unit_words */
    tsr_number_or_word scale;
    double scale_width;
} distance_options;

typedef struct {
    tsr_term term;
    char label[160];
    tsr_restraint pair;
    const tsr_topology *topology;
    int n;             /* rows of the table; 0: normal density */
    double *r, *log_p; /* [n] Angstrom; log of the normalised density */
    double coord, mean, sd;
} distance_term;

typedef struct {
    int n_state;
    double r[TSR_MAX_STATES], weight[TSR_MAX_STATES]; /* distances and weights
                                                         of the states */
} distance_fit;

static const char *const at_words[] = {"ca", "side_chain", NULL};
static const char *const unit_words[] = {"Angstrom", "nm", NULL};
static const char *const infer_words[] = {"infer", NULL};

static const tsr_field fields[] = {
    TSR_FIELD(STRINGS, "between", distance_options, between, .initial = "[]",
              .doc = "two residues, as [\"A:17\", \"A:203\"]"),
    TSR_FIELD(CHOICE, "at", distance_options, at, .initial = "side_chain",
              .words = at_words,
              .doc = "atoms of the distance: CA or side-chain centres"),
    TSR_FIELD(
        DOUBLE, "mean", distance_options, mean, .unit = "Angstrom", .min = 0.0,
        .max = 1000.0,
        .doc =
            "mean of the measured distribution; give mean and sd, or a file"),
    TSR_FIELD(DOUBLE, "sd", distance_options, sd, .unit = "Angstrom",
              .min = 0.0, .max = 1000.0,
              .doc = "standard deviation of the measured distribution"),
    TSR_FIELD(STRING, "file", distance_options, file, .is_path = 1,
              .doc = "file with the measured distribution instead of mean and "
                     "sd: r and P(r)"),
    TSR_FIELD(CHOICE, "unit", distance_options, unit, .initial = "Angstrom",
              .words = unit_words, .doc = "unit of r in the file"),
    TSR_FIELD(NUMBER_OR_WORD, "scale", distance_options, scale,
              .initial = "infer", .min = 1e-3, .max = 1e3, .words = infer_words,
              .doc = "factor s that widens the distribution: inferred with a "
                     "log-normal prior around 1, or fixed"),
    TSR_FIELD(DOUBLE, "scale_width", distance_options, scale_width,
              .initial = "0.3", .min = 1e-3, .max = 10.0,
              .doc = "standard deviation of log s in its prior"),
    {0}};

/* ---- the measured density ---- */

static const double log_root_2pi = 0.9189385332046727;

/* Interpolates the logarithm linearly between the rows of the table. Beyond the
 * table the density falls like a normal density with the table's own standard
 * deviation. */
static double log_table(const distance_term *t, double r)
{
    const int last = t->n - 1;
    if (r <= t->r[0] || r >= t->r[last]) {
        const int edge = r <= t->r[0] ? 0 : last;
        double z = (r - t->r[edge]) / t->sd;
        return t->log_p[edge] - 0.5 * z * z;
    }
    int low = 0, high = last;
    while (high - low > 1) {
        int middle = (low + high) / 2;
        if (t->r[middle] <= r)
            low = middle;
        else
            high = middle;
    }
    double part = (r - t->r[low]) / (t->r[high] - t->r[low]);
    return t->log_p[low] + part * (t->log_p[high] - t->log_p[low]);
}

/* log p_s(r). */
static double log_density(const distance_term *t, double r, double log_s)
{
    double x = (r - t->mean) * exp(-log_s);
    if (t->n > 0)
        return log_table(t, t->mean + x) - log_s;
    double z = x / t->sd;
    return -0.5 * z * z - log(t->sd) - log_root_2pi - log_s;
}

/* Probability of row i by the trapezoid rule. */
static double row_mass(const distance_term *t, const double *p, int i)
{
    double left = t->r[i > 0 ? i - 1 : i];
    double right = t->r[i < t->n - 1 ? i + 1 : i];
    return 0.5 * (right - left) * fmax(p[i], 0.0);
}

/* Mean and standard deviation of the table. */
static void compute_moments(distance_term *t, const double *p)
{
    double sum = 0.0, first = 0.0, square = 0.0;
    for (int i = 0; i < t->n; i++) {
        sum += row_mass(t, p, i);
        first += row_mass(t, p, i) * t->r[i];
    }
    t->mean = first / sum;
    for (int i = 0; i < t->n; i++) {
        double d = t->r[i] - t->mean;
        square += row_mass(t, p, i) * d * d;
    }
    t->sd = sqrt(square / sum);
}

/* Log of the integral of exp(log_table): exact between two rows, where the
 * logarithm is linear, plus half a normal density for each tail. */
static double log_integral(const distance_term *t)
{
    const int last = t->n - 1;
    double sum = 0.5 * t->sd * exp(log_root_2pi) *
                 (exp(t->log_p[0]) + exp(t->log_p[last]));
    for (int i = 0; i < last; i++) {
        double a = exp(t->log_p[i]), b = exp(t->log_p[i + 1]);
        double slope = t->log_p[i + 1] - t->log_p[i];
        sum += (t->r[i + 1] - t->r[i]) *
               (fabs(slope) > 1e-6 ? (b - a) / slope : 0.5 * (a + b));
    }
    return log(sum);
}

/* A measured density of 0 is not certain: regularisation leaves ripples below a
 * hundredth of the maximum. Densities below this fraction of the maximum are
 * raised to it. */
static const double least_density = 1e-2;

static tsr_status set_table(distance_term *t, const char *path,
                            const tsr_saxs_table *table, double unit,
                            tsr_err *err)
{
    const int n = table->n;
    double top = 0.0;
    int n_above = 0;
    tsr_pool_array(&t->term.pool, t->r, n);
    tsr_pool_array(&t->term.pool, t->log_p, n);
    TSR_TRY(tsr_pool_check(&t->term.pool, err));
    t->n = n;
    for (int i = 0; i < n; i++) {
        const tsr_saxs_row *row = &table->row[i];
        t->r[i] = unit * row->value[0];
        t->log_p[i] = row->value[1];
        top = fmax(top, row->value[1]);
        n_above += row->value[1] > 0.0;
        if (!isfinite(t->r[i]) || !isfinite(t->log_p[i]) || t->r[i] < 0.0 ||
            (i > 0 && t->r[i] <= t->r[i - 1]))
            return tsr_fail(err, TSR_E_DATA,
                            "%s:%ld: expected a distance above the previous "
                            "distance and a density, found %g and %g",
                            path, row->line, row->value[0], row->value[1]);
    }
    if (n < 3 || n_above < 2) /* a single row has no width */
        return tsr_fail(
            err, TSR_E_DATA,
            "'%s': no distribution in its %d rows: expected at least three "
            "rows of r and P(r), with P(r) above 0 in two of them",
            path, n);
    compute_moments(t, t->log_p);
    for (int i = 0; i < n; i++)
        t->log_p[i] = log(fmax(t->log_p[i], least_density * top));
    double norm = log_integral(t);
    for (int i = 0; i < n; i++)
        t->log_p[i] -= norm;
    return TSR_OK;
}

static tsr_status read_table(distance_term *t, const distance_options *o,
                             tsr_err *err)
{
    tsr_pool pool = {0};
    tsr_saxs_table table;
    tsr_status status = tsr_saxs_table_read(o->file, &pool, &table, err);
    TSR_THEN(status,
             set_table(t, o->file, &table, o->unit == 1 ? 10.0 : 1.0, err));
    tsr_pool_clear(&pool);
    return status;
}

/* ---- the term ---- */

static tsr_status set_measurement(distance_term *t, const distance_options *o,
                                  int number, tsr_err *err)
{
    if (o->file != NULL && (o->sd > 0.0 || o->mean > 0.0))
        return tsr_fail(err, TSR_E_CONFIG,
                        "data.%d: give mean and sd, or a file, not both",
                        number);
    if (o->file != NULL)
        return read_table(t, o, err);
    if (!(o->sd > 0.0) || !(o->mean > 0.0))
        return tsr_fail(err, TSR_E_CONFIG,
                        "data.%d: a distance needs mean and sd in Angstrom, or "
                        "a file with r and P(r)",
                        number);
    t->mean = o->mean;
    t->sd = o->sd;
    return TSR_OK;
}

static tsr_status term_read(const tsr_term_source *source, tsr_term *term,
                            tsr_err *err)
{
    const distance_options *o = (const void *)source->options;
    const tsr_restraint_options sites = {o->between, o->at, {0.0, 1.0}, 1.0};
    distance_term *t = (distance_term *)term;
    t->topology = source->topology;
    term->label = t->label;
    term->n_point = 1;
    term->coord = &t->coord;
    term->observed = &t->mean;
    term->sigma = &t->sd;
    term->n_parameter = 1;
    term->parameter[0] = tsr_parameter_log_normal(
        "scale", NULL, "factor s by which the measured distribution is widened",
        o->scale, 1.0, o->scale_width, TSR_CHANGES_LIKELIHOOD);
    TSR_TRY(tsr_wrap(
        err, tsr_restraint_make(source->topology, &sites, &t->pair, err),
        "data.%d", source->number));
    TSR_TRY(set_measurement(t, o, source->number, err));
    snprintf(t->label, sizeof t->label, "distance %.40s to %.40s",
             o->between.item[0], o->between.item[1]);
    if (source->log != NULL)
        tsr_info(source->log, "%s: %.1f +- %.1f A", t->label, t->mean, t->sd);
    return TSR_OK;
}

static void term_print(const tsr_term_options *options, FILE *out)
{
    const distance_options *o = (const void *)options;
    fprintf(out, "The distance between %s and %s (%s) was ",
            o->between.n > 0 ? o->between.item[0] : "?",
            o->between.n > 1 ? o->between.item[1] : "?",
            o->at == 0 ? "CA atoms" : "side-chain centres");
    if (o->file != NULL)
        fputs("compared with a measured distribution", out);
    else
        fprintf(out, "measured as %g \xc2\xb1 %g \xc3\x85", o->mean, o->sd);
    tsr_term_print_setting(out, "; its scale", o->scale);
    fputs(". ", out);
}

static tsr_status term_fit(const tsr_term *term, const void *from,
                           const tsr_prediction *prediction,
                           const double *theta, void *fit, tsr_err *err)
{
    const distance_term *t = (const distance_term *)term;
    distance_fit *f = fit;
    (void)from, (void)theta, (void)err;
    f->n_state = prediction->n_state;
    for (int k = 0; k < f->n_state; k++) {
        f->r[k] =
            tsr_restraint_distance(t->topology, &t->pair, prediction->state[k]);
        f->weight[k] = prediction->weight[k];
    }
    return TSR_OK;
}

static double term_log_lik(const tsr_term *term, const void *fit,
                           const double *theta)
{
    const distance_fit *f = fit;
    double sum = 0.0;
    for (int k = 0; k < f->n_state; k++)
        sum += f->weight[k] *
               log_density((const distance_term *)term, f->r[k], theta[0]);
    return sum;
}

static double term_chi2(const tsr_term *term, const void *fit)
{
    const distance_term *t = (const distance_term *)term;
    const distance_fit *f = fit;
    double sum = 0.0;
    for (int k = 0; k < f->n_state; k++) {
        double z = (f->r[k] - t->mean) / t->sd;
        sum += f->weight[k] * z * z;
    }
    return sum;
}

static void term_predict(const tsr_term *term, const tsr_prediction *prediction,
                         const void *fit, const double *theta, double *value)
{
    const distance_fit *f = fit;
    (void)term, (void)prediction, (void)theta;
    value[0] = 0.0;
    for (int k = 0; k < f->n_state; k++)
        value[0] += f->weight[k] * f->r[k];
}

static double term_draw_point(const tsr_term *term, const double *theta, int k,
                              double value, gsl_rng *rng)
{
    const distance_term *t = (const distance_term *)term;
    (void)k;
    return value + gsl_ran_gaussian(rng, exp(theta[0]) * t->sd);
}

const tsr_term_type tsr_term_distance = {
    .name = "distance",
    .doc = "measured distribution of a distance between two residues",
    .source = "Jeschke 2012, Annu. Rev. Phys. Chem. 63, 419",
    .fields = fields,
    .needs = TSR_NEEDS_STATES,
    .observable = "distance",
    .observable_unit = "Angstrom",
    .axis = "distance_point",
    .title = "Distances",
    .size = sizeof(distance_term),
    .fit_size = sizeof(distance_fit),
    .read = term_read,
    .print_assumptions = term_print,
    .fit = term_fit,
    .log_lik = term_log_lik,
    .chi2 = term_chi2,
    .predict = term_predict,
    .draw_point = term_draw_point};
