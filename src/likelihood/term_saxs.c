/* The likelihood terms `saxs` and `sans`: a measured curve, I_exp,k = c (I
 * S)(q_k; X) + b + noise. For neutrons only the profile differs.
 *
 * A term joins three parts with files of their own: the data
 * (scattering/saxs.h), the operator that maps the profile from the engine's
 * grid to the data's q, smeared by the instrument (scattering/q_grid.h), and
 * the noise model (noise.h), which defines the probability of the residuals and
 * may have parameters. Scale c and background b are integrated out if the noise
 * model has the integral. They are parameters of the chain if the noise model
 * has none, or if the configuration asks for sampling. */
#include "likelihood/term_saxs.h"

#include "core/text.h"
#include "scattering/contrast.h"

#include <assert.h>
#include <float.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const char *const unit_words[] = {"auto", "1/A", "1/nm", NULL};
static const char *const background_words[] = {"flat", "none", "infer", NULL};
static const char *const auto_words[] = {"auto", NULL};
static const char *const nuisance_words[] = {"auto", "integrate", "sample",
                                             NULL};
static const char *const share_words[] = {"structure", "states", NULL};
static const char *const none_words[] = {"none", NULL};
static const char *const interparticle_words[] = {"none", "infer", NULL};

/* The fields of every curve. */
#define CURVE(TYPE, NAME, ...) \
    TSR_FIELD(TYPE, #NAME, tsr_saxs_options, NAME, __VA_ARGS__)
#define SET(TYPE, NAME, ...) \
    TSR_FIELD(TYPE, #NAME, tsr_saxs_options, set.NAME, __VA_ARGS__)
#define CURVE_FIELDS(WHAT, UNIT, RESOLUTION)                                   \
    CURVE(STRING, file, .is_path = 1, .doc = (WHAT)),                          \
        CURVE(CHOICE, q_unit, .initial = "auto", .words = unit_words,          \
              .doc = "unit of q in the file; auto: the unit in its "           \
                     "header, else 1/nm if q_max > 1"),                        \
        CURVE(PAIR, q_range, .unit = "1/Angstrom", .initial = "[0, 0.5]",      \
              .min = 0.0, .max = 10.0, .doc = "q range of the points to use"), \
        CURVE(CHOICE, share, .initial = "structure", .words = share_words,     \
              .doc = "shared with other curves: structure, the states and "    \
                     "their weights; states, the states alone, each sample "   \
                     "with weights of its own"),                               \
        CURVE(NUMBER_OR_WORD, at, .initial = "none", .min = -1e30,             \
              .max = 1e30, .words = none_words,                                \
              .doc = "concentration, time, ... of the sample with share: "     \
                     "states; curves at one value are of one sample"),         \
        CURVE(STRING, unit, .doc = "unit of at"),                              \
        TSR_NOISE_FIELD("noise", offsetof(tsr_saxs_options, set.noise)),       \
        SET(NUMBER_OR_WORD, background, .initial = "infer", .min = -1e12,      \
            .max = 1e12, .words = background_words,                            \
            .doc = "constant b in c I(q) + b, in the unit of the data; "       \
                   "infer: normal prior, flat: flat prior"),                   \
        SET(NUMBER_OR_WORD, background_sd, .initial = "auto", .min = 1e-30,    \
            .max = 1e12, .words = auto_words,                                  \
            .doc = "sd of b in its normal prior; auto: half the rms of "       \
                   "I in the last quarter of the q range"),                    \
        SET(NUMBER_OR_WORD, intensity_scale, .initial = "infer", .min = 1e-30, \
            .max = 1e30, .words = tsr_noise_infer_words,                       \
            .doc = "c in c I(q) + b, for data on an absolute scale; "          \
                   "I(q) in " UNIT),                                           \
        SET(CHOICE, nuisance, .initial = "auto", .words = nuisance_words,      \
            .doc = "treatment of scale and background: integrated "            \
                   "out, or sampled with the chain; auto: sampled "            \
                   "where no closed form exists (student)"),                   \
        TSR_RESOLUTION_FIELD(                                                  \
            "resolution", offsetof(tsr_saxs_options, resolution), RESOLUTION)

static const tsr_field fields[] = {
    CURVE_FIELDS("file with the SAXS curve: q, I, sigma", "electrons squared",
                 tsr_resolution_fields),
    SET(NUMBER_OR_WORD, interparticle, .initial = "none", .min = 0.05,
        .max = 20.0, .words = interparticle_words,
        .doc = "interference between particles, as its factor of I(0): "
               "below 1 for repulsion, above 1 for attraction"),
    SET(DOUBLE, interparticle_width, .initial = "0.1", .min = 1e-3, .max = 1.0,
        .doc = "standard deviation of log interparticle in its prior"),
    {0}};

/* Options of sans: the options of every curve, then the neutron options. */
typedef struct {
    tsr_saxs_options curve;
    tsr_neutron_options neutron;
} sans_options;

static_assert(sizeof(sans_options) <= sizeof(tsr_term_options),
              "an entry of data has no room for it");

static const tsr_field sans_fields[] = {
    CURVE_FIELDS(
        "file with the SANS curve: q, I, sigma, and optionally sigma of q",
        "fm^2", tsr_resolution_neutron_fields),
    TSR_NEUTRON_FIELDS(sans_options),
    {0}};

static void term_free(tsr_term *term)
{
    tsr_saxs_term *t = (tsr_saxs_term *)term;
    tsr_pool_clear(&t->state_pool);
    free(t->matrix);
    tsr_saxs_free(t->owned_saxs);
}

/* ---- parameters ---- */

/* With no more points than parameters the posterior is improper, or carries no
 * information about the structure. */
static tsr_status check_points(const tsr_saxs_term *t, tsr_err *err)
{
    int n = tsr_term_n_free(&t->term);
    if (t->saxs->n > n)
        return TSR_OK;
    return tsr_fail(err, TSR_E_DATA,
                    "'%s': %d points cannot determine %d parameters of scale, "
                    "background and noise together with the structure; use "
                    "more points or fix some parameters",
                    t->saxs->path, t->saxs->n, n);
}

/* If sampled, scale and background are proposed from their conditional. If
 * integrated out, their prior is part of the integral. */
static tsr_parameter linear_parameter(const tsr_saxs_term *t, const char *name,
                                      const char *doc, int infer, double fixed)
{
    return (tsr_parameter){.name = name,
                           .doc = doc,
                           .infer = infer,
                           .start = fixed,
                           .shape = TSR_PRIOR_FLAT,
                           .step = infer && !t->term.is_integrated
                                       ? TSR_STEP_CONDITIONAL
                                       : TSR_STEP_NONE,
                           .scope = TSR_CHANGES_LIKELIHOOD};
}

static void make_parameters(const tsr_data_set *set, tsr_saxs_term *t)
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
    if (t->has_interparticle)
        p[t->term.n_parameter++] = tsr_parameter_log_normal(
            "interparticle", NULL,
            "S(0), the factor of I(0) by interference between particles",
            set->interparticle, 1.0, set->interparticle_width,
            TSR_CHANGES_PROFILE);
    if (!(l->background_sd > 0.0))
        return;
    if (!t->term.is_integrated) {
        p[t->n_noise + 1].shape = TSR_PRIOR_NORMAL;
        p[t->n_noise + 1].width = l->background_sd;
    }
    /* the best c and b depend on s */
    for (int i = 0; i < t->n_noise; i++)
        p[i].scope = TSR_CHANGES_FIT;
}

/* Half the root mean square intensity in the last quarter of the q range
 * (docs/statistics.md has the measurements). */
static double background_sd(const tsr_saxs *saxs)
{
    const double *q = saxs->q, *intensity = saxs->intensity;
    const int n = saxs->n;
    double sum = 0.0;
    int k = n - 1;
    for (; k >= 0 && q[k] >= 0.25 * q[0] + 0.75 * q[n - 1]; k--)
        sum += intensity[k] * intensity[k];
    return 0.5 * sqrt(sum / (n - 1 - k));
}

/* With flat priors, sampled c and b have a proper distribution only if the
 * likelihood is narrow enough: at any beta > 0 for normal errors, and for
 * Student's t with N points if beta (nu + 1) N exceeds the number of these
 * priors. */
static double min_beta(const tsr_saxs_term *t)
{
    int n_flat = t->linear.infer_scale;
    if (!(t->linear.background_sd > 0.0))
        n_flat += t->linear.infer_background;
    if (t->term.is_integrated || n_flat == 0)
        return 0.0;
    return t->noise->tail == NULL
               ? DBL_MIN
               : n_flat / (t->noise->tail(t->term.parameter) * t->saxs->n);
}

static void add_notes(tsr_saxs_term *t)
{
    const tsr_saxs *saxs = t->saxs;
    tsr_resolution_text(&saxs->resolution, saxs->n, t->resolution_text,
                        sizeof t->resolution_text);
    snprintf(t->unit_text, sizeof t->unit_text, "%s (%s)",
             tsr_q_unit_name(saxs->unit_in_file), saxs->unit_reason);
    tsr_term_add_note(&t->term, "q_unit", t->unit_text, NULL);
    tsr_term_add_note(&t->term, "sigma",
                      saxs->sigma_is_modelled
                          ? "stated: 0.03 I(q) + 0.003 max I"
                          : "measured",
                      NULL);
    tsr_term_add_note(&t->term, "resolution", t->resolution_text, NULL);
}

/* Sets up the term from the data and the options, and checks that they fit
 * together. */
static tsr_status set_data(tsr_saxs_term *t, const tsr_data_set *set,
                           tsr_err *err)
{
    const tsr_saxs *saxs = t->saxs = set->saxs;
    t->term.label = saxs->path;
    t->term.n_point = saxs->n;
    t->term.coord = saxs->q;
    t->term.observed = saxs->intensity;
    t->term.sigma = saxs->sigma;
    t->term.is_smeared = !tsr_resolution_is_ideal(&saxs->resolution);
    t->term.q_max_inv_ang = tsr_saxs_q_max(saxs);
    t->noise = tsr_noise_registry[set->noise.model];
    t->noise_options = set->noise;
    t->linear = tsr_linear_make(set->intensity_scale, set->background);
    if (set->background.word == TSR_BACKGROUND_INFER)
        t->linear.background_sd = set->background_sd.word < 0
                                      ? set->background_sd.number
                                      : background_sd(saxs);
    t->term.is_integrated =
        set->nuisance != TSR_NUISANCE_SAMPLE && t->noise->log_integral != NULL;
    if (set->nuisance == TSR_NUISANCE_INTEGRATE && !t->term.is_integrated)
        return tsr_fail(
            err, TSR_E_CONFIG,
            "data.%d.nuisance: scale and background have no integral in closed "
            "form under the noise model %s; choose sample, or auto",
            t->term.number, t->noise->name);
    add_notes(t);
    t->has_interparticle = set->interparticle.word != 0; /* none */
    make_parameters(set, t);
    t->term.min_beta = min_beta(t);
    if (t->noise->check != NULL)
        TSR_TRY(t->noise->check(saxs, err));
    return check_points(t, err);
}

tsr_status tsr_saxs_term_new(const tsr_data_set *set, int number,
                             tsr_term **out, tsr_err *err)
{
    tsr_term *term = *out = tsr_term_new(&tsr_term_saxs, number);
    TSR_TRY(tsr_allocated(term, err));
    tsr_status status = set_data((tsr_saxs_term *)term, set, err);
    if (status != TSR_OK) {
        tsr_term_free(term);
        *out = NULL;
    }
    return status;
}

/* ---- data ---- */

const tsr_neutron_options *tsr_saxs_neutron(const tsr_term_options *entry)
{
    const sans_options *o = (const void *)entry;
    return tsr_term_registry[entry->kind] == &tsr_term_sans ? &o->neutron
                                                            : NULL;
}

int tsr_saxs_has_own_weights(const tsr_term_options *entry)
{
    const tsr_saxs_options *o = (const void *)entry;
    return tsr_term_registry[entry->kind]->is_curve &&
           o->share == TSR_SHARE_STATES;
}

/* A wrong unit of q shows as an impossible Rg: less than half the Rg of a
 * globule (2.2 N^0.38, Skolnick et al. 1997), or more than twice that of an
 * unfolded chain (1.927 N^0.598, Kohn et al. 2004). Neutrons may see one chain
 * only, so their lower limit is for the shortest chain. Near the match point
 * the Rg has no meaning. */
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
             "'%s': its Guinier Rg of %.1f A is unusual for %d residues (%.0f "
             "to %.0f A): check q_unit, whether the data are of this molecule "
             "and not of an oligomer, and whether the molecule is more "
             "flexible than the model%s",
             term->saxs->path, rg, t->n_residue, low, high,
             is_neutron
                 ? "; near the match point of neutrons this Rg means little"
                 : "");
}

static void term_print(const tsr_term_options *options, FILE *out)
{
    const tsr_saxs_options *o = (const void *)options;
    const tsr_neutron_options *neutron = tsr_saxs_neutron(options);
    fprintf(out, "The data were %s, ",
            o->file == NULL ? "" : tsr_text_file_name(o->file));
    if (neutron != NULL)
        fprintf(out, "of neutrons in %g %% D2O%s, ",
                neutron->d2o.word < 0 ? 100.0 * neutron->d2o.number : 0.0,
                neutron->deuterated.n > 0 ? ", deuterated in part" : "");
    fprintf(out, "with %s; ", tsr_noise_registry[o->set.noise.model]->doc);
    tsr_term_print_setting(out, "the scale", o->set.intensity_scale);
    tsr_term_print_setting(out, ", the background", o->set.background);
    fputs(". ", out);
}

/* Weights of a single state are 1, in any sample. */
static tsr_status set_sample(const tsr_saxs_options *o,
                             const tsr_term_source *source, tsr_term *term,
                             tsr_err *err)
{
    const int has_at = o->at.word < 0;
    if (has_at && o->share != TSR_SHARE_STATES)
        return tsr_fail(err, TSR_E_CONFIG,
                        "data.%d.at: the weights of this curve are those of "
                        "all curves; give it share: states",
                        source->number);
    term->has_own_weights = o->share == TSR_SHARE_STATES &&
                            (source->n_state > 1 || source->n_species > 0);
    term->at = has_at ? o->at.number : (double)NAN;
    term->at_unit =
        o->unit != NULL ? tsr_pool_text(&term->pool, o->unit) : NULL;
    return TSR_OK;
}

static tsr_status read_curve(const tsr_term_source *source, tsr_saxs_term *t,
                             tsr_err *err)
{
    const tsr_saxs_options *o = (const void *)source->options;
    if (o->file == NULL)
        return tsr_fail(err, TSR_E_CONFIG, "data.%d: the key 'file' is missing",
                        source->number);
    tsr_status status =
        tsr_saxs_read(o->file, (tsr_q_unit)o->q_unit, o->q_range, source->log,
                      &t->owned_saxs, err);
    if (status == TSR_E_CONFIG)
        return tsr_wrap(err, status, "data.%d", source->number);
    TSR_TRY(status);
    status = tsr_saxs_set_resolution(t->owned_saxs, &o->resolution, source->log,
                                     err);
    TSR_TRY(tsr_wrap(err, status, "data.%d.resolution", source->number));
    tsr_data_set set = o->set;
    set.saxs = t->owned_saxs;
    TSR_TRY(set_data(t, &set, err));
    TSR_TRY(set_sample(o, source, &t->term, err));
    check_rg(source->topology, t, source->log);
    return TSR_OK;
}

static tsr_status term_read(const tsr_term_source *source, tsr_term *term,
                            tsr_err *err)
{
    tsr_saxs_term *t = (tsr_saxs_term *)term;
    const tsr_neutron_options *neutron = tsr_saxs_neutron(source->options);
    if (neutron == NULL)
        return read_curve(source, t, err);
    TSR_TRY(tsr_wrap(err, tsr_neutron_make(neutron, &t->neutron, err),
                     "data.%d", source->number));
    term->neutron = &t->neutron;
    TSR_TRY(read_curve(source, t, err));
    if (neutron->d2o.word >= 0)
        tsr_warn(source->log,
                 "data.%d.d2o is not given: the solvent is taken as H2O; "
                 "confirm with d2o: 0, or give the fraction of D2O",
                 source->number);
    return TSR_OK;
}

/* ---- the likelihood ---- */

static void *term_fit_new(const tsr_term *term, tsr_pool *pool)
{
    tsr_fit *fit = tsr_pool_new(pool, 1, sizeof *fit);
    const tsr_saxs_term *t = (const tsr_saxs_term *)term;
    if (fit != NULL && t->noise->per_point) {
        tsr_pool_array(pool, fit->model, term->n_point);
        tsr_pool_array(pool, fit->weight, term->n_point);
    }
    if (fit != NULL && t->has_interparticle)
        tsr_pool_array(pool, fit->joint, t->interference.n_joint);
    return pool->failed ? NULL : fit;
}

/* The profile that the noise model fits, with S(q) if the term has it. */
static const double *with_interference(const tsr_saxs_term *t,
                                       const double *profile,
                                       const double *theta, double *joint)
{
    if (!t->has_interparticle)
        return profile;
    tsr_interference_apply(&t->interference, exp(theta[t->n_noise + 2]),
                           profile, joint);
    return joint;
}

tsr_status tsr_saxs_fit(const tsr_saxs_term *term, const double *profile,
                        const double *theta, tsr_fit *fit, tsr_err *err)
{
    term->noise->fit(term->state,
                     with_interference(term, profile, theta, fit->joint), theta,
                     fit);
    if (isfinite(fit->chi2) && isfinite(fit->square_sum) &&
        isfinite(fit->scale))
        return TSR_OK;
    return tsr_fail(err, TSR_E_NUMERIC,
                    "the profile does not fit '%s': chi2 %g, scale %g",
                    term->saxs->path, fit->chi2, fit->scale);
}

static tsr_status term_fit(const tsr_term *term, const void *from,
                           const tsr_prediction *prediction,
                           const double *theta, void *fit, tsr_err *err)
{
    (void)from;
    return tsr_saxs_fit((const tsr_saxs_term *)term, prediction->profile, theta,
                        fit, err);
}

/* Under a noise model with an integral (normal errors) the log likelihood
 * follows from the sums in the fit, which are computed here for the new theta.
 * Under any other model the log likelihood at the present c and b needs only
 * the model's curve. The fit then serves later proposals of c and b, so
 * `complete` computes it after acceptance. */
static void term_refit(const tsr_term *term, const void *from,
                       const double *theta, void *fit)
{
    const tsr_saxs_term *t = (const tsr_saxs_term *)term;
    const tsr_fit *old = from;
    tsr_fit *new = fit, buffers = *new;
    *new = *old;
    new->model = buffers.model;
    new->weight = buffers.weight;
    new->joint = buffers.joint;
    if (new->model != NULL)
        memcpy(new->model, old->model, (size_t)t->saxs->n * sizeof(double));
    if (t->noise->refit != NULL && t->noise->log_integral != NULL)
        t->noise->refit(t->state, theta, new);
}

/* The distribution for proposals of c and b must be finite. */
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
    return term->term.is_integrated
               ? term->noise->log_integral(term->state, fit, theta)
               : term->noise->log_lik(term->state, fit, theta, theta[n],
                                      theta[n + 1]);
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

/* A likelihood to the power beta is wider by 1 / sqrt(beta), but the prior of b
 * is not: with all of the fit, its share of the prior of b would be wider, too.
 * fit out: a copy of `from` with the rest of the prior. */
static tsr_linear_shape conditional(const tsr_saxs_term *t, const tsr_fit *from,
                                    const double *theta, double beta,
                                    tsr_fit *fit)
{
    const double flat = 1e-30; /* in place of beta = 0 */
    tsr_linear_shape shape = t->noise->conditional(t->state, theta);
    beta = fmax(beta, flat);
    *fit = *from;
    tsr_linear_add_prior(&t->linear, shape.spread * sqrt(1.0 / beta - 1.0),
                         fit);
    shape.spread /= sqrt(beta);
    return shape;
}

static void term_draw(const tsr_term *term, const void *fit, double beta,
                      gsl_rng *rng, double *theta)
{
    const tsr_saxs_term *t = (const tsr_saxs_term *)term;
    double *linear = theta + t->n_noise;
    tsr_fit at;
    const tsr_linear_shape shape = conditional(t, fit, theta, beta, &at);
    tsr_linear_draw(&t->linear, &at, shape, rng, &linear[0], &linear[1]);
}

static double term_log_density(const tsr_term *term, const void *fit,
                               double beta, const double *theta)
{
    const tsr_saxs_term *t = (const tsr_saxs_term *)term;
    const double *linear = theta + t->n_noise;
    tsr_fit at;
    const tsr_linear_shape shape = conditional(t, fit, theta, beta, &at);
    return tsr_linear_log_density(&t->linear, &at, shape, linear[0],
                                  linear[1]) -
           tsr_linear_log_prior(&t->linear, linear[1]);
}

/* ---- curves ---- */

void tsr_saxs_curve(const tsr_saxs_term *term, const double *profile, double s0,
                    double *joint, double *curve)
{
    const tsr_interference *x = &term->interference;
    const int is_joint = term->has_interparticle && joint != NULL;
    if (is_joint)
        tsr_interference_apply(x, s0, profile, joint);
    tsr_q_operator_apply(is_joint ? x->matrix : term->matrix, term->saxs->n,
                         is_joint ? x->n_joint : term->n_q,
                         is_joint ? joint : profile, curve);
}

static void term_predict(const tsr_term *term, const tsr_prediction *prediction,
                         const void *fit, const double *theta, double *value)
{
    const tsr_saxs_term *t = (const tsr_saxs_term *)term;
    const double *linear = theta + t->n_noise;
    tsr_saxs_curve(t, prediction->profile,
                   t->has_interparticle ? exp(linear[2]) : 1.0,
                   ((const tsr_fit *)fit)->joint, value);
    for (int k = 0; k < term->n_point; k++)
        value[k] = linear[0] * value[k] + linear[1];
}

static double term_log_point(const tsr_term *term, const double *theta, int k,
                             double value)
{
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

/* ---- before chains start ---- */

/* Grid points of the profiles that the noise model fits. */
static int noise_n_q(const tsr_saxs_term *t)
{
    return t->has_interparticle ? t->interference.n_joint : t->n_q;
}

/* Creates the noise model's state, with the model's own error
 * [n_error][noise_n_q] in the data's unit. */
static tsr_status open_noise(const tsr_saxs_term *t, int n_error,
                             const double *error, tsr_pool *pool,
                             tsr_noise **out, tsr_err *err)
{
    const tsr_noise_spec spec = {
        .options = &t->noise_options,
        .saxs = t->saxs,
        .matrix = t->has_interparticle ? t->interference.matrix : t->matrix,
        .n_q = noise_n_q(t),
        .linear = &t->linear,
        .n_error = n_error,
        .error = error};
    return tsr_noise_new(&spec, pool, out, err);
}

tsr_status tsr_saxs_term_prepare(tsr_saxs_term *term, int n_q, double *matrix,
                                 tsr_err *err)
{
    term->matrix = matrix;
    term->n_q = n_q;
    return open_noise(term, 0, NULL, &term->state_pool, &term->state, err);
}

static tsr_status term_prepare(tsr_term *term, const tsr_q_grid *grid,
                               tsr_err *err)
{
    tsr_saxs_term *t = (tsr_saxs_term *)term;
    double *matrix;
    tsr_status status = tsr_q_operator_smeared(
        grid, &t->saxs->resolution, t->saxs->n, t->saxs->q, &matrix, err);
    TSR_TRY(tsr_wrap(err, status, "'%s'", t->saxs->path));
    if (t->has_interparticle)
        status = tsr_interference_make(grid, &t->saxs->resolution, t->saxs->n,
                                       t->saxs->q, &term->pool,
                                       &t->interference, err);
    if (status != TSR_OK) {
        free(matrix);
        return status;
    }
    return tsr_saxs_term_prepare(t, grid->n_q, matrix, err);
}

/* ---- the model's own error ---- */

/* Scale from the reference (at the data's q) to the data's unit. The model's
 * own error is proportional to a curve. This curve is the reference, and not
 * the current model, so that the covariance is the same for all structures. The
 * reference need not fit the data, so each point gets an additional error of a
 * tenth of its intensity. If the fitted scale is not positive, the ratio of the
 * weighted sums is used. weight [saxs->n] out. */
static double reference_scale(const tsr_saxs_term *t, const double *reference,
                              double *weight)
{
    const tsr_saxs *saxs = t->saxs;
    const double part = 0.1;
    tsr_fit fit = {0};
    double sum = 0.0, all = 0.0;
    for (int k = 0; k < saxs->n; k++) {
        const double s = saxs->sigma[k], misfit = part * saxs->intensity[k];
        weight[k] = 1.0 / (s * s + misfit * misfit);
        sum += saxs->intensity[k] / (s * s);
        all += reference[k] / (s * s);
    }
    tsr_linear_fit(&t->linear, saxs->n, reference, saxs->intensity, weight,
                   &fit);
    return fit.scale > 0.0 ? fit.scale : fabs(sum / all);
}

/* Sets the term's error curves from at_data [n + 1][saxs->n] (reference, then n
 * curves), and replaces their notes. */
static void set_error_curves(tsr_saxs_term *t, int n, double *at_data)
{
    while (t->term.n_note > 0 && t->term.note[t->term.n_note - 1].value != NULL)
        t->term.n_note--;
    t->error = at_data;
    t->term.n_error = n;
    static const char *const name[TSR_MODEL_ERRORS + 1] = {
        "model_error_reference", "model_error_a", "model_error_b",
        "model_error_c",         "model_error_d", "model_error_e",
        "model_error_f",         "model_error_g", "model_error_h"};
    for (int k = 0; k <= n; k++)
        tsr_term_add_note(&t->term, name[k],
                          k == 0 ? "curve of the model error, electrons "
                                   "squared, of neutrons fm^2"
                                 : "one standard deviation of the model error, "
                                   "electrons squared, of neutrons fm^2",
                          at_data + (size_t)k * (size_t)t->saxs->n);
    /* a change of s now changes the relative weights of the points */
    for (int i = 0; i < t->n_noise; i++)
        t->term.parameter[i].scope = TSR_CHANGES_FIT;
}

tsr_status tsr_saxs_set_model_error(tsr_term *term,
                                    const tsr_profile_error *error,
                                    tsr_err *err)
{
    tsr_saxs_term *t = (tsr_saxs_term *)term;
    const size_t n = (size_t)error->n, n_q = (size_t)t->n_q;
    const size_t n_own = (size_t)noise_n_q(t), n_point = (size_t)t->saxs->n;
    tsr_pool pool = {0}, scratch = {0};
    tsr_noise *state = NULL;
    double *at_data, *own, *weight;
    if (t->noise->log_integral == NULL || (n == 0 && t->term.n_error == 0))
        return TSR_OK;
    tsr_pool_array(&pool, at_data, (n + 1) * n_point);
    tsr_pool_array(&scratch, own, n * n_own);
    tsr_pool_array(&scratch, weight, n_point);
    tsr_status status = tsr_pool_check(&pool, err);
    TSR_THEN(status, tsr_pool_check(&scratch, err));
    if (status == TSR_OK) {
        tsr_saxs_curve(t, error->reference, 1.0, NULL, at_data);
        for (size_t e = 0; e < n; e++)
            tsr_saxs_curve(t, error->curve + e * n_q, 1.0, NULL,
                           at_data + (e + 1) * n_point);
        const double scale = reference_scale(t, at_data, weight);
        for (size_t i = 0; i < n * n_q; i++)
            own[i / n_q * n_own + i % n_q] = scale * error->curve[i];
        status = open_noise(t, error->n, own, &pool, &state, err);
    }
    tsr_pool_clear(&scratch);
    if (status != TSR_OK) {
        tsr_pool_clear(&pool);
        return status;
    }
    tsr_pool_clear(&t->state_pool);
    t->state_pool = pool;
    t->state = state;
    set_error_curves(t, error->n, at_data);
    return TSR_OK;
}

/* The members common to saxs and sans. */
#define CURVE_TERM                                                         \
    .needs = TSR_NEEDS_PROFILE, .observable = "intensity", .axis = "q",    \
    .axis_unit = "1/Angstrom", .title = "Scattering curve", .is_curve = 1, \
    .size = sizeof(tsr_saxs_term), .read = term_read,                      \
    .print_assumptions = term_print, .free = term_free,                    \
    .fit_new = term_fit_new, .fit = term_fit, .refit = term_refit,         \
    .complete = term_complete, .log_lik = term_log_lik, .chi2 = term_chi2, \
    .predict = term_predict, .draw = term_draw,                            \
    .log_density = term_log_density, .log_point = term_log_point,          \
    .draw_point = term_draw_point, .prepare = term_prepare,                \
    .set_model_error = tsr_saxs_set_model_error

const tsr_term_type tsr_term_saxs = {.name = "saxs",
                                     .doc =
                                         "a small-angle X-ray scattering curve",
                                     .source = "docs/design.md, section 1",
                                     .fields = fields,
                                     CURVE_TERM};

const tsr_term_type tsr_term_sans = {
    .name = "sans",
    .doc = "a small-angle neutron scattering curve",
    .source = "Jacrot 1976",
    .fields = sans_fields,
    .is_neutron = 1,
    CURVE_TERM};
