/* The likelihood terms `saxs` and `sans`: a measured curve, I_exp,k =
 * c I(q_k; X) + b + noise, of X-rays or neutrons, which differ in what the
 * profile is of.
 *
 * This file joins three parts that each have their own: the data
 * (scattering/saxs.h), the operator that carries the profile from the engine's
 * grid to the points of the data (term_saxs_prepare.c), and the noise model
 * (noise.h), which has the probability of the residuals and may bring
 * parameters of its own. Scale c and background b are integrated out where the
 * noise model has the integral, and are parameters of the chain where it has
 * none or the configuration asks for it.
 */
#include "likelihood/term_saxs.h"

#include <assert.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const char *const unit_words[] = {"auto", "1/A", "1/nm", NULL};
static const char *const background_words[] = {"infer", "none", NULL};
static const char *const infer_words[] = {"infer", NULL};
static const char *const nuisance_words[] = {"auto", "integrate", "sample",
                                             NULL};

/* What every curve has. */
#define CURVE_FIELDS(WHAT, UNIT)                                               \
    {.name = "file",                                                           \
     .type = TSR_FIELD_STRING,                                                 \
     .offset = offsetof(tsr_saxs_options, file),                               \
     .is_path = 1,                                                             \
     .doc = (WHAT)},                                                           \
        {.name = "q_unit",                                                     \
         .type = TSR_FIELD_CHOICE,                                             \
         .offset = offsetof(tsr_saxs_options, q_unit),                         \
         .initial = "auto",                                                    \
         .words = unit_words,                                                  \
         .doc = "of q in the file; auto: its header, else 1/nm if q_max > 1"}, \
        {.name = "q_range",                                                    \
         .type = TSR_FIELD_PAIR,                                               \
         .offset = offsetof(tsr_saxs_options, q_range),                        \
         .unit = "1/Angstrom",                                                 \
         .initial = "[0, 0.5]",                                                \
         .min = 0.0,                                                           \
         .max = 10.0,                                                          \
         .doc = "points to use"},                                              \
        TSR_NOISE_FIELD("noise", offsetof(tsr_saxs_options, noise)),           \
        {.name = "background",                                                 \
         .type = TSR_FIELD_NUMBER_OR_WORD,                                     \
         .offset = offsetof(tsr_saxs_options, background),                     \
         .initial = "infer",                                                   \
         .min = -1e12,                                                         \
         .max = 1e12,                                                          \
         .words = background_words,                                            \
         .doc = "constant b in c I(q) + b, in the data's unit"},               \
        {.name = "intensity_scale",                                            \
         .type = TSR_FIELD_NUMBER_OR_WORD,                                     \
         .offset = offsetof(tsr_saxs_options, intensity_scale),                \
         .initial = "infer",                                                   \
         .min = 1e-30,                                                         \
         .max = 1e30,                                                          \
         .words = infer_words,                                                 \
         .doc =                                                                \
             "c in c I(q) + b, for data on an absolute scale; I(q) in " UNIT}, \
    {                                                                          \
        .name = "nuisance", .type = TSR_FIELD_CHOICE,                          \
        .offset = offsetof(tsr_saxs_options, nuisance), .initial = "auto",     \
        .words = nuisance_words,                                               \
        .doc = "scale and background: integrated out, or sampled with the "    \
               "chain; "                                                       \
               "auto: sampled where there is no integral (student)"            \
    }

static const tsr_field fields[] = {
    CURVE_FIELDS("SAXS curve: q, I, sigma", "electrons squared"),
    TSR_RESOLUTION_FIELD("resolution", offsetof(tsr_saxs_options, resolution),
                         tsr_resolution_fields),
    {0}};

/* Behind the options that all curves have. */
typedef struct {
    tsr_saxs_options curve;
    tsr_neutron_options neutron;
} sans_options;

static_assert(sizeof(sans_options) <= sizeof(tsr_term_options),
              "an entry of data has room for it");

static const tsr_field sans_fields[] = {
    CURVE_FIELDS("SANS curve: q, I, sigma, and sigma of q where it is there",
                 "fm^2"),
    TSR_RESOLUTION_FIELD("resolution", offsetof(tsr_saxs_options, resolution),
                         tsr_resolution_neutron_fields),
    TSR_NEUTRON_FIELDS(offsetof(sans_options, neutron)),
    {0}};

static void term_free(tsr_term *term)
{
    tsr_saxs_term *t = (tsr_saxs_term *)term;
    if (t->state != NULL)
        t->noise->state_free(t->state);
    free(t->matrix);
    free(t->error);
    tsr_saxs_free(t->own);
    free(t);
}

/* ---- parameters ---- */

/* More parameters than points leave no proper posterior, or one that says
 * nothing. */
static tsr_status check_points(const tsr_saxs_term *t, tsr_err *err)
{
    int n = tsr_term_n_free(&t->term);
    if (t->saxs->n > n)
        return TSR_OK;
    return tsr_fail(err, TSR_E_DATA,
                    "'%s': %d points cannot tell of %d parameters of scale, "
                    "background and noise, let alone of the structure; use "
                    "more points or fix some",
                    t->saxs->path, t->saxs->n, n);
}

/* Scale and background. Their priors are flat; where they are sampled they come
 * from the conditional. */
static tsr_parameter linear_parameter(const tsr_saxs_term *t, const char *name,
                                      const char *doc, int infer, double fixed)
{
    return (tsr_parameter){.name = name,
                           .doc = doc,
                           .infer = infer,
                           .start = fixed,
                           .shape = TSR_PRIOR_FLAT,
                           .step = infer && t->is_sampled ? TSR_STEP_CONDITIONAL
                                                          : TSR_STEP_NONE,
                           .scope = TSR_CHANGES_LIKELIHOOD};
}

static void make_parameters(tsr_saxs_term *t)
{
    const tsr_linear *l = &t->linear;
    tsr_parameter *p = t->term.parameter;
    t->n_noise = t->noise->n_parameter;
    t->noise->parameters(&t->noise_options, p);
    p[t->n_noise] = linear_parameter(t, "scale", "scale; c in c I(q) + b",
                                     l->infer_scale, l->scale);
    p[t->n_noise + 1] =
        linear_parameter(t, "background", "background; b in c I(q) + b",
                         l->infer_background, l->background);
    t->term.n_parameter = t->n_noise + 2;
}

/* How c and b are treated, and whether the options go together. */
static tsr_status choose(tsr_saxs_term *t, const tsr_data_set *set, int number,
                         tsr_err *err)
{
    t->noise = tsr_noise_registry[set->noise.model];
    t->noise_options = set->noise;
    t->linear = tsr_linear_make(set->intensity_scale, set->background);
    t->is_sampled =
        set->nuisance == TSR_NUISANCE_SAMPLE || t->noise->log_integral == NULL;
    if (set->nuisance == TSR_NUISANCE_INTEGRATE && t->is_sampled)
        return tsr_fail(err, TSR_E_CONFIG,
                        "data.%d.nuisance: scale and background have no "
                        "integral in closed form under the noise model %s; "
                        "say sample, or auto",
                        number, t->noise->name);
    make_parameters(t);
    tsr_status status =
        t->noise->check == NULL ? TSR_OK : t->noise->check(set->saxs, err);
    return status == TSR_OK ? check_points(t, err) : status;
}

tsr_status tsr_saxs_term_new(const tsr_data_set *set, int number,
                             tsr_term **out, tsr_err *err)
{
    const tsr_saxs *saxs = set->saxs;
    *out = NULL;
    tsr_saxs_term *t = calloc(1, sizeof *t);
    if (t == NULL)
        return tsr_fail(err, TSR_E_NOMEM, "out of memory");
    t->saxs = saxs;
    t->term =
        (tsr_term){.type = &tsr_term_saxs,
                   .label = saxs->path,
                   .number = number,
                   .n_point = saxs->n,
                   .coord = saxs->q,
                   .observed = saxs->intensity,
                   .sigma = saxs->sigma,
                   .is_smeared = !tsr_resolution_is_ideal(&saxs->resolution),
                   .q_max_inv_ang = tsr_saxs_q_max(saxs)};
    tsr_resolution_text(&saxs->resolution, saxs->n, t->resolution_text,
                        sizeof t->resolution_text);
    snprintf(t->unit_text, sizeof t->unit_text, "%s (%s)",
             tsr_q_unit_name(saxs->unit_in_file), saxs->unit_reason);
    tsr_status status = choose(t, set, number, err);
    if (status == TSR_OK)
        *out = &t->term;
    else
        term_free(&t->term);
    return status;
}

/* ---- data ---- */

const tsr_neutron_options *tsr_saxs_neutron(const tsr_term_options *entry)
{
    const sans_options *o = (const void *)entry;
    return tsr_term_registry[entry->kind] == &tsr_term_sans ? &o->neutron
                                                            : NULL;
}

/* Wrong units show as an Rg that no protein of this length has: less than half
 * of a globule (2.2 N^0.38, Skolnick et al. 1997) or more than twice an
 * unfolded chain (1.927 N^0.598, Kohn et al. 2004). Neutrons may see one chain
 * alone, the shortest, and where contrast nearly vanishes anything. */
static void check_rg(const tsr_topology *t, const tsr_saxs_term *term,
                     tsr_log *log)
{
    const int is_neutron = term->term.neutron != NULL;
    double n = t->n_residue, least = n, rg = term->saxs->rg_guinier;
    for (int r = 0; r < t->n_residue && is_neutron; r++)
        least = fmin(least,
                     t->residue[r].chain_last - t->residue[r].chain_first + 1);
    double low = 0.5 * 2.2 * pow(least, 0.38);
    double high = 2.0 * 1.927 * pow(n, 0.598);
    if (isnan(rg) || (rg >= low && rg <= high))
        return;
    tsr_warn(log,
             "'%s': its Guinier Rg of %.1f A does not suit %d residues (%.0f "
             "to %.0f A): check q_unit, whether it is this molecule and not "
             "an oligomer, and whether it is more flexible than the model%s",
             term->saxs->path, rg, t->n_residue, low, high,
             is_neutron ? "; near the match point of neutrons it means little"
                        : "");
}

static void tell_curve(const tsr_saxs_options *o, const char *of, FILE *out)
{
    const char *file = o->file == NULL ? "" : o->file;
    const char *name = strrchr(file, '/');
    fprintf(out, "The data were %s, %s", name != NULL ? name + 1 : file, of);
    fprintf(out, "with %s; ", tsr_noise_registry[o->noise.model]->doc);
    tsr_term_tell_free(out, "the scale", o->intensity_scale);
    tsr_term_tell_free(out, ", the background", o->background);
    fputs(". ", out);
}

static void term_tell(const tsr_term_options *options, FILE *out)
{
    tell_curve((const void *)options, "", out);
}

static void sans_tell(const tsr_term_options *options, FILE *out)
{
    const sans_options *o = (const void *)options;
    char of[96];
    snprintf(of, sizeof of, "of neutrons in %g %% D2O%s, ",
             o->neutron.d2o.word < 0 ? 100.0 * o->neutron.d2o.number : 0.0,
             o->neutron.deuterated.n > 0 ? ", deuterated in part" : "");
    tell_curve(&o->curve, of, out);
}

static tsr_status read_curve(const tsr_term_source *source, tsr_term **out,
                             tsr_err *err)
{
    const tsr_saxs_options *o = (const void *)source->options;
    tsr_saxs *saxs = NULL;
    if (o->file == NULL)
        return tsr_fail(err, TSR_E_CONFIG, "data.%d: the key 'file' is missing",
                        source->number);
    tsr_status status = tsr_saxs_read(o->file, (tsr_q_unit)o->q_unit,
                                      o->q_range, source->log, &saxs, err);
    if (status == TSR_E_CONFIG)
        return tsr_wrap(err, status, "data.%d", source->number);
    if (status != TSR_OK)
        return status;
    status = tsr_saxs_resolve(saxs, &o->resolution, source->log, err);
    if (status != TSR_OK) {
        tsr_saxs_free(saxs);
        return tsr_wrap(err, status, "data.%d.resolution", source->number);
    }
    const tsr_data_set set = {saxs, o->noise, o->background, o->intensity_scale,
                              o->nuisance};
    status = tsr_saxs_term_new(&set, source->number, out, err);
    if (status == TSR_OK)
        ((tsr_saxs_term *)*out)->own = saxs;
    else
        tsr_saxs_free(saxs);
    return status;
}

static tsr_status term_read(const tsr_term_source *source, tsr_term **out,
                            tsr_err *err)
{
    TSR_TRY(read_curve(source, out, err));
    check_rg(source->topology, (tsr_saxs_term *)*out, source->log);
    return TSR_OK;
}

static tsr_status sans_read(const tsr_term_source *source, tsr_term **out,
                            tsr_err *err)
{
    const sans_options *o = (const void *)source->options;
    tsr_neutron neutron;
    tsr_status status = tsr_neutron_make(&o->neutron, &neutron, err);
    if (status != TSR_OK)
        return tsr_wrap(err, status, "data.%d", source->number);
    TSR_TRY(read_curve(source, out, err));
    tsr_saxs_term *t = (tsr_saxs_term *)*out;
    t->neutron = neutron;
    t->term.type = &tsr_term_sans;
    t->term.neutron = &t->neutron;
    check_rg(source->topology, t, source->log);
    if (o->neutron.d2o.word >= 0)
        tsr_warn(source->log,
                 "data.%d.d2o: not given: the solvent is taken for H2O; say "
                 "so by d2o: 0, or give the share of D2O",
                 source->number);
    return TSR_OK;
}

static const char *term_note(const tsr_term *term, int k, const char **text)
{
    const tsr_saxs_term *t = (const tsr_saxs_term *)term;
    if (k == 0)
        *text = t->unit_text;
    if (k == 1)
        *text = t->saxs->sigma_is_modelled ? "stated: 0.03 I(q) + 0.003 max I"
                                           : "measured";
    if (k == 2)
        *text = t->resolution_text;
    return k == 0 ? "q_unit" : k == 1 ? "sigma" : k == 2 ? "resolution" : NULL;
}

/* ---- the likelihood ---- */

tsr_fit *tsr_saxs_fit_new(const tsr_saxs_term *term)
{
    size_t n = term->noise->per_point ? (size_t)term->saxs->n : 0;
    tsr_fit *fit = calloc(1, sizeof *fit + 2 * n * sizeof(double));
    if (fit != NULL && n > 0) {
        fit->model = (double *)(void *)(fit + 1);
        fit->weight = fit->model + n;
    }
    return fit;
}

static void *term_fit_new(const tsr_term *term)
{
    return tsr_saxs_fit_new((const tsr_saxs_term *)term);
}

tsr_status tsr_saxs_fit(const tsr_saxs_term *term, const double *profile,
                        const double *theta, tsr_fit *fit, tsr_err *err)
{
    term->noise->fit(term->state, profile, theta, fit);
    if (isfinite(fit->chi2) && isfinite(fit->square_sum) &&
        isfinite(fit->scale))
        return TSR_OK;
    return tsr_fail(err, TSR_E_NUMERIC,
                    "the profile does not fit '%s': chi2 %g, scale %g",
                    term->saxs->path, fit->chi2, fit->scale);
}

static tsr_status term_fit(const tsr_term *term,
                           const tsr_prediction *prediction,
                           const double *theta, void *fit, tsr_err *err)
{
    return tsr_saxs_fit((const tsr_saxs_term *)term, prediction->profile, theta,
                        fit, err);
}

/* Where c and b are integrated out the new weights of the points are needed for
 * the new likelihood; where they are sampled they stay, and only what they will
 * be proposed from changes, which can wait. */
static void term_refit(const tsr_term *term, const void *from,
                       const double *theta, void *fit)
{
    const tsr_saxs_term *t = (const tsr_saxs_term *)term;
    const tsr_fit *old = from;
    tsr_fit *new = fit, room = *new;
    *new = *old;
    new->model = room.model;
    new->weight = room.weight;
    if (new->model != NULL)
        memcpy(new->model, old->model, (size_t)t->saxs->n * sizeof(double));
    if (t->noise->refit != NULL && t->noise->log_integral != NULL)
        t->noise->refit(t->state, theta, new);
}

/* What c and b can be proposed from has to be finite. */
static int term_complete(const tsr_term *term, const double *theta, void *fit)
{
    const tsr_saxs_term *t = (const tsr_saxs_term *)term;
    const tsr_fit *f = fit;
    if (t->noise->refit == NULL || t->noise->log_integral != NULL)
        return 1;
    t->noise->refit(t->state, theta, fit);
    return isfinite(f->scale) && isfinite(f->background) &&
           isfinite(f->model_norm) && isfinite(f->one_norm);
}

double tsr_saxs_log_lik(const tsr_saxs_term *term, const tsr_fit *fit,
                        const double *theta)
{
    const int n = term->n_noise;
    return term->is_sampled
               ? term->noise->log_lik(term->state, fit, theta, theta[n],
                                      theta[n + 1])
               : term->noise->log_integral(term->state, fit, theta);
}

static double term_log_lik(const tsr_term *term, const void *fit,
                           const double *theta)
{
    return tsr_saxs_log_lik((const tsr_saxs_term *)term, fit, theta);
}

static double term_chi2(const tsr_term *term, const void *fit)
{
    (void)term;
    return ((const tsr_fit *)fit)->chi2;
}

/* ---- scale and background ---- */

/* The tempered likelihood is wider by 1 / sqrt(beta). */
static tsr_linear_shape conditional(const tsr_saxs_term *t, const double *theta,
                                    double beta)
{
    tsr_linear_shape shape = t->noise->conditional(theta);
    shape.spread /= sqrt(beta);
    return shape;
}

static void term_draw(const tsr_term *term, const void *fit, double beta,
                      gsl_rng *rng, double *theta)
{
    const tsr_saxs_term *t = (const tsr_saxs_term *)term;
    const int n = t->n_noise;
    if (t->is_sampled)
        tsr_linear_draw(&t->linear, fit, conditional(t, theta, beta), rng,
                        &theta[n], &theta[n + 1]);
}

static double term_log_density(const tsr_term *term, const void *fit,
                               double beta, const double *theta)
{
    const tsr_saxs_term *t = (const tsr_saxs_term *)term;
    const int n = t->n_noise;
    return t->is_sampled ? tsr_linear_log_density(&t->linear, fit,
                                                  conditional(t, theta, beta),
                                                  theta[n], theta[n + 1])
                         : 0.0;
}

static void term_draw_integrated(const tsr_term *term, const void *fit,
                                 gsl_rng *rng, double *theta)
{
    const tsr_saxs_term *t = (const tsr_saxs_term *)term;
    const int n = t->n_noise;
    if (!t->is_sampled)
        tsr_linear_draw(&t->linear, fit, t->noise->conditional(theta), rng,
                        &theta[n], &theta[n + 1]);
}

/* The priors of c and b are flat, so sampled ones have a proper distribution
 * only while the likelihood holds them: always for normal errors, for student
 * while beta (nu + 1) N > 2. */
static double term_least_beta(const tsr_term *term)
{
    const tsr_saxs_term *t = (const tsr_saxs_term *)term;
    if (!t->is_sampled || t->noise->tail == NULL)
        return 0.0;
    return tsr_linear_n_free(&t->linear) /
           (t->noise->tail(term->parameter) * t->saxs->n);
}

/* ---- curves ---- */

void tsr_saxs_curve(const tsr_saxs_term *term, const double *profile,
                    double scale, double background, double *curve)
{
    const int n_q = term->n_q;
    for (int k = 0; k < term->saxs->n; k++) {
        const double *row = term->matrix + (size_t)k * (size_t)n_q;
        double sum = 0.0;
        for (int j = 0; j < n_q; j++)
            sum += row[j] * profile[j];
        curve[k] = scale * sum + background;
    }
}

static tsr_status term_carry(const tsr_term *term, const double *profile,
                             double *scale, double *curve, tsr_err *err)
{
    const tsr_saxs_term *t = (const tsr_saxs_term *)term;
    double theta[TSR_TERM_PARAMETERS];
    tsr_fit *fit = tsr_saxs_fit_new(t);
    if (fit == NULL)
        return tsr_fail(err, TSR_E_NOMEM, "out of memory");
    tsr_term_start(term, theta);
    t->noise->fit(t->state, profile, theta, fit);
    *scale = fit->scale;
    tsr_saxs_curve(t, profile, 1.0, 0.0, curve);
    free(fit);
    return TSR_OK;
}

static void term_predict(const tsr_term *term, const tsr_prediction *prediction,
                         const double *theta, double *value)
{
    const tsr_saxs_term *t = (const tsr_saxs_term *)term;
    const int n = t->n_noise;
    tsr_saxs_curve(t, prediction->profile, theta[n], theta[n + 1], value);
}

static double term_log_point(const tsr_term *term, const void *fit,
                             const double *theta, int k, double value)
{
    (void)fit;
    const tsr_saxs_term *t = (const tsr_saxs_term *)term;
    return t->noise->log_point(t->state, theta, k,
                               t->saxs->intensity[k] - value);
}

static double term_draw_point(const tsr_term *term, const double *theta, int k,
                              double value, gsl_rng *rng)
{
    const tsr_saxs_term *t = (const tsr_saxs_term *)term;
    return value + t->noise->draw_point(t->state, theta, k, rng);
}

/* What the two kinds have in common. */
#define CURVE_TERM                                                            \
    .needs = TSR_NEEDS_PROFILE, .observable = "intensity", .axis = "q",       \
    .axis_unit = "1/Angstrom", .title = "Scattering curve", .is_log = 1,      \
    .is_curve = 1, .free = term_free, .prepare = tsr_saxs_prepare,            \
    .doubt = tsr_saxs_doubt, .constant = tsr_saxs_constant,                   \
    .carry = term_carry, .note = term_note, .fit_new = term_fit_new,          \
    .fit = term_fit, .refit = term_refit, .complete = term_complete,          \
    .log_lik = term_log_lik, .chi2 = term_chi2, .draw = term_draw,            \
    .log_density = term_log_density, .draw_integrated = term_draw_integrated, \
    .least_beta = term_least_beta, .predict = term_predict,                   \
    .log_point = term_log_point, .draw_point = term_draw_point

const tsr_term_type tsr_term_saxs = {.name = "saxs",
                                     .doc =
                                         "a small-angle X-ray scattering curve",
                                     .source = "DESIGN 1",
                                     .fields = fields,
                                     .read = term_read,
                                     .tell = term_tell,
                                     CURVE_TERM};

const tsr_term_type tsr_term_sans = {
    .name = "sans",
    .doc = "a small-angle neutron scattering curve",
    .source = "Jacrot 1976",
    .fields = sans_fields,
    .is_neutron = 1,
    .read = sans_read,
    .tell = sans_tell,
    CURVE_TERM};
