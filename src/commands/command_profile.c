/* tessera profile: curves of structures, and their fits to data. */
#include "commands/command.h"
#include "commands/profile_report.h"
#include "posterior/profile_partials.h"

#include "scattering/saxs.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

static const char *const bodies_words[] = {"atoms", "two", "one", NULL};
static const char *const solvent_words[] = {"layer", "atoms", "foxs", NULL};
static const char *const radiation_words[] = {"xray", "neutron", NULL};
static const char *const weight_words[] = {"equal", "squares", "entropy", NULL};
static const char *const method_words[] = {"direct", "fft", "quadrature",
                                           "auto", NULL};
static const char *const unit_words[] = {"auto", "1/A", "1/nm", NULL};
static const char *const background_words[] = {"fit", "none", NULL};
static const char *const dq_words[] = {"none", "column", "auto", NULL};

typedef struct {
    char *data, *output, *device, *form_factors, *c1, *c2;
    int bodies, solvent, radiation, method, unit, ensemble, weights, partials;
    int force, json;
    double density, theta;
    double d2o, exchange; /* of neutrons, and the next */
    tsr_strings deuterated;
    tsr_number_or_word background;
    double q_min, q_max; /* q_max 0: not given */
    long n_q;
    tsr_resolution_options resolution;
} options;

static const tsr_field fields[] = {
    TSR_FIELD(STRING, "data", options, data, .letter = 'd', .argument = "DAT",
              .doc = "a curve (q, I, sigma) to fit the structures to"),
    TSR_FIELD(CHOICE, "bodies", options, bodies, .letter = 'b',
              .argument = "KIND", .initial = "atoms", .words = bodies_words,
              .doc = "what scatters: all atoms, or two or one body a residue"),
    TSR_FIELD(CHOICE, "solvent-model", options, solvent, .argument = "NAME",
              .initial = "layer", .words = solvent_words,
              .doc = "of all atoms: layer (water outside the surface), atoms "
                     "(water at the atoms, as the tables of bodies have it), "
                     "or foxs (FoXS's formula, to compare with)"),
    TSR_FIELD(DOUBLE, "solvent-density", options, density, .argument = "RHO",
              .initial = "0.334", .unit = "e/Angstrom^3", .min = 0.1,
              .max = 1.0,
              .doc = "electrons of the buffer: more with salt, glycerol or "
                     "sugar (docs/forward-model.md)"),
    TSR_FIELD(CHOICE, "radiation", options, radiation, .argument = "KIND",
              .initial = "xray", .words = radiation_words,
              .doc = "xray or neutron (of all atoms; docs/forward-model.md)"),
    TSR_FIELD(DOUBLE, "d2o", options, d2o, .argument = "X", .initial = "0",
              .max = 1.0,
              .doc = "of neutrons: the share of D2O in the solvent, 0 to 1"),
    TSR_FIELD(DOUBLE, "exchange", options, exchange, .argument = "X",
              .initial = "0.9", .max = 1.0,
              .doc = "of neutrons: the share of the backbone's amide "
                     "hydrogens that exchange with the solvent; all other "
                     "hydrogens of N, O and S do"),
    TSR_FIELD(STRINGS, "deuterated", options, deuterated, .argument = "CHAIN=X",
              .doc = "of neutrons: the share of deuterium among the other "
                     "hydrogens of a chain, as it was grown"),
    TSR_FIELD(STRING, "output", options, output, .letter = 'o',
              .argument = "PATH",
              .doc = "write the best fit, as FoXS's .fit files, and its "
                     "picture beside it (.svg); without --data the curve. A "
                     "folder gets those of every structure"),
    TSR_OPTION_FORCE(options),
    TSR_OPTION_JSON(options),
    TSR_OPTION_DEVICE(options),
    TSR_FIELD(CHOICE, "method", options, method, .argument = "NAME",
              .initial = "auto", .words = method_words,
              .doc = "direct (pairs, on the device), fft (a grid) or "
                     "quadrature (plane waves, both on the host's cores, in "
                     "double precision), or auto: the fastest by their "
                     "measured costs (docs/forward-model.md)"),
    TSR_FIELD(NUMBER_OR_WORD, "background", options, background,
              .argument = "B", .initial = "fit", .words = background_words,
              .doc = "a constant beside the curve: fit, as runs infer it, "
                     "none, or a number in the data's unit"),
    TSR_FIELD(STRING, "c1", options, c1, .argument = "RANGE",
              .initial = "0.95:1.05",
              .doc = "scale of the atoms' radii in the excluded volume: a "
                     "range to fit in, or a number; of neutrons, and without "
                     "--data, 1 unless it is given"),
    TSR_FIELD(STRING, "c2", options, c2, .argument = "RANGE", .initial = "0:4",
              .doc = "density of the hydration layer above the buffer's, "
                     "about 0.01 e/Angstrom^3 for 1: the same; -2:4 for "
                     "--solvent-model foxs; without --data 0"),
    TSR_FIELD(DOUBLE, "q-min", options, q_min, .argument = "Q", .initial = "0",
              .unit = "1/Angstrom", .max = 10.0, .doc = "leave out data below"),
    TSR_FIELD(DOUBLE, "q-max", options, q_max, .argument = "Q",
              .unit = "1/Angstrom", .min = 0.01, .max = 10.0,
              .doc = "leave out data above; without --data the end of the "
                     "curve, 0.5"),
    TSR_FIELD(INT, "n-q", options, n_q, .argument = "N", .initial = "501",
              .min = 2, .max = 1e5, .doc = "points of a curve without --data"),
    TSR_FIELD(CHOICE, "q-unit", options, unit, .argument = "UNIT",
              .initial = "auto", .words = unit_words,
              .doc = "of the data: auto, 1/A or 1/nm"),
    TSR_FIELD(NUMBER_OR_WORD, "resolution", options, resolution.dq,
              .argument = "DQ", .unit = "1/Angstrom", .max = 1.0,
              .words = dq_words,
              .doc = "standard deviation of q, by which the curve is smeared: "
                     "a number, or column, the fourth of the data, auto, the "
                     "fourth where there is one, or none; default: none, of "
                     "neutrons auto"),
    TSR_FIELD(DOUBLE, "wavelength-spread", options,
              resolution.wavelength_spread, .argument = "X", .max = 0.5,
              .doc = "full width at half maximum over the mean, which adds to "
                     "that"),
    TSR_FIELD(DOUBLE, "slit-length", options, resolution.slit_length,
              .argument = "L", .unit = "1/Angstrom", .max = 10.0,
              .doc = "half of the slit's length, across the direction of q"),
    TSR_FIELD(DOUBLE, "slit-width", options, resolution.slit_width,
              .argument = "W", .unit = "1/Angstrom", .max = 1.0,
              .doc = "half of the slit's width, along q"),
    TSR_FIELD(STRING, "beam-profile", options, resolution.beam_profile,
              .argument = "FILE",
              .doc = "instead of --slit-length: a table of u (1/Angstrom, "
                     "across the direction of q) and the beam's intensity "
                     "there"),
    TSR_FIELD(STRING, "form-factors", options, form_factors, .argument = "FILE",
              .doc = "a table instead of the shipped one, for --bodies one "
                     "and two; one of form factors alone, own or published, "
                     "has no c1 and c2"),
    TSR_FIELD(BOOL, "ensemble", options, ensemble,
              .doc = "all models of all files as one ensemble: the mean "
                     "curve, and with --data the weights that fit best"),
    TSR_FIELD(CHOICE, "weights", options, weights, .argument = "KIND",
              .initial = "equal", .words = weight_words,
              .doc = "of the ensemble whose curve --output gets: equal, "
                     "squares (least squares, not negative) or entropy "
                     "(maximum entropy)"),
    TSR_FIELD(DOUBLE, "theta", options, theta, .argument = "X", .initial = "0",
              .max = 1e9,
              .doc = "of maximum entropy, chi2 / 2 + X KL: larger is nearer to "
                     "equal weights; 0: the elbow, as of reweight"),
    TSR_FIELD(BOOL, "partials", options, partials,
              .doc = "without --data: also the columns in vacuum, of the "
                     "excluded volume and of the hydration layer"),
    {0}};

/* What follows from the options. */
typedef struct {
    const options *o;
    double q_range[2];
    tsr_profile_fit_options fit;
    double c1, c2; /* without data */
    tsr_resolution_options resolution;
    tsr_neutron neutron;
} settings;

/* ---- options ---- */

/* What would be left unused is refused: who gives it expects something of it.
 */
static tsr_status check_unused(const tsr_args *args, const options *o,
                               tsr_err *err)
{
    const int has_data = o->data != NULL;
    const struct {
        int is_used;
        const char *why;
        const char *option[8];
    } rule[] = {
        {has_data,
         "goes with --data",
         {"background", "q-unit", "resolution", "wavelength-spread",
          "slit-length", "slit-width", "beam-profile"}},
        {!has_data, "goes without --data", {"partials", "n-q"}},
        {has_data && o->ensemble,
         "goes with --ensemble and --data",
         {"weights", "theta"}},
        {o->radiation,
         "goes with --radiation neutron",
         {"d2o", "exchange", "deuterated"}},
        {!o->radiation,
         "is of X-rays; neutrons see the layer model, and --d2o says in what",
         {"solvent-model", "solvent-density"}},
        {o->bodies == TSR_PROFILE_ATOMS,
         "is of atoms; bodies have that of their table",
         {"solvent-model"}},
        {o->bodies != TSR_PROFILE_ATOMS,
         "is a table of bodies; give --bodies one or two with it",
         {"form-factors"}}};
    for (size_t k = 0; k < sizeof rule / sizeof *rule; k++)
        for (int i = 0; !rule[k].is_used && rule[k].option[i] != NULL; i++)
            if (tsr_args_given(args, rule[k].option[i]) > 0)
                return tsr_fail(err, TSR_E_USAGE, "--%s %s", rule[k].option[i],
                                rule[k].why);
    return TSR_OK;
}

/* "LOW:HIGH", or one number, which fixes. */
static tsr_status range(const char *option, const char *given, double low,
                        double high, double out[2], tsr_err *err)
{
    char *end = NULL;
    out[0] = out[1] = strtod(given, &end);
    int is_good = end != given;
    if (is_good && *end == ':') {
        const char *second = end + 1;
        out[1] = strtod(second, &end);
        is_good = end != second && out[0] < out[1];
    }
    if (!is_good || *end != '\0' || !(out[0] >= low && out[1] <= high))
        return tsr_fail(err, TSR_E_USAGE,
                        "--%s '%s': expected a number or LOW:HIGH within %g to "
                        "%g",
                        option, given, low, high);
    return TSR_OK;
}

static tsr_status make_settings(const tsr_args *args, settings *s, tsr_err *err)
{
    const options *o = args->options;
    *s = (settings){.o = o,
                    .q_range = {o->q_min, o->q_max > 0.0    ? o->q_max
                                          : o->data != NULL ? 1e3
                                                            : 0.5},
                    .c1 = 1.0,
                    .fit = {.fit_background = o->background.word == 0,
                            .background = o->background.number},
                    .resolution = o->resolution,
                    .neutron = {.d2o = o->d2o, .exchange = o->exchange}};
    TSR_TRY(check_unused(args, o, err));
    TSR_TRY(range("c1", o->c1, 0.5, 2.0, s->fit.c1, err));
    TSR_TRY(range("c2", o->c2, -100.0, 100.0, s->fit.c2, err));
    TSR_TRY(tsr_deuterated_read(&o->deuterated, &s->neutron, err));
    /* Neutron data have their resolution in the fourth column. */
    if (o->radiation && tsr_args_given(args, "resolution") == 0)
        s->resolution.dq.word = TSR_DQ_AUTO;
    if (o->solvent == TSR_SOLVENT_FOXS && tsr_args_given(args, "c2") == 0)
        s->fit.c2[0] = -2.0;
    if (o->radiation && tsr_args_given(args, "c1") == 0)
        s->fit.c1[0] = s->fit.c1[1] = 1.0; /* as of runs */
    if (s->fit.c1[0] == s->fit.c1[1])
        s->c1 = s->fit.c1[0];
    if (s->fit.c2[0] == s->fit.c2[1])
        s->c2 = s->fit.c2[0];
    if (o->radiation && o->bodies != TSR_PROFILE_ATOMS)
        return tsr_fail(err, TSR_E_USAGE,
                        "--radiation neutron is of atoms: the tables of bodies "
                        "were trained for X-rays");
    if (o->resolution.beam_profile != NULL && o->resolution.slit_length > 0.0)
        return tsr_fail(err, TSR_E_USAGE,
                        "--beam-profile stands for the slit's length; leave "
                        "--slit-length out");
    if (!(s->q_range[0] < s->q_range[1]))
        return tsr_fail(err, TSR_E_USAGE, "--q-min %g is not below --q-max %g",
                        s->q_range[0], s->q_range[1]);
    if (o->bodies != TSR_PROFILE_ATOMS && o->method == TSR_METHOD_FFT)
        return tsr_fail(err, TSR_E_USAGE,
                        "--method fft is of atoms: tables of bodies are not "
                        "smooth enough in q for a grid");
    return TSR_OK;
}

/* ---- one structure ---- */

/* Fit, Guinier's Rg and I(0) of what was computed. */
static tsr_status finish_one(const settings *s, const tsr_saxs *saxs,
                             tsr_profile_result *r, tsr_err *err)
{
    tsr_status status = TSR_OK;
    const tsr_partials *p = &r->structure.partials;
    r->n_comp = p->n_comp;
    if (r->fit.n_point == 0) {
        r->fit.c1 = s->c1;
        r->fit.c2 = s->c2;
        r->fit.scale = 1.0;
    }
    if (saxs != NULL && r->curve == NULL)
        status = tsr_profile_fit_data(&s->fit, saxs, r, err);
    TSR_THEN(status,
             tsr_contrast_guinier(p, r->fit.c1, r->fit.c2, r->structure.rg_ang,
                                  &r->rg_guinier, &r->i0, err));
    r->i0 *= r->fit.scale;
    return status == TSR_OK ? status
                            : tsr_wrap(err, status, "'%s'", r->structure.path);
}

static tsr_status profile_one(const settings *s, tsr_profile_maker *maker,
                              const char *path, const tsr_saxs *saxs,
                              tsr_profile_result *r, tsr_log *log, tsr_err *err)
{
    TSR_TRY(tsr_profile_compute(maker, path, &r->structure, err));
    TSR_TRY(finish_one(s, saxs, r, err));
    if (saxs == NULL)
        return TSR_OK;
    char at[64];
    tsr_profile_bounds_text(&r->fit, at, sizeof at);
    if (at[0] != '\0')
        tsr_warn(log, "'%s': the fit ends at a bound%s; --c1 and --c2 set them",
                 path, at);
    return tsr_profile_check_rg(r, saxs, log, err);
}

/* ---- the command ---- */

/* Smallest chi2 first; without data the order given. */
static int by_chi2(const void *a, const void *b)
{
    double x = ((const tsr_profile_result *)a)->fit.chi2;
    double y = ((const tsr_profile_result *)b)->fit.chi2;
    return (x > y) - (x < y);
}

typedef struct {
    const settings *s;
    const options *o;     /* of them */
    const tsr_saxs *saxs; /* NULL: without data */
    tsr_profile_maker *maker;
    double q_max;
    FILE *out;
    tsr_log *log;
} work;

/* The files of the results, or the curve of the only one to standard output. */
static tsr_status write_curves(const work *w, int n,
                               const tsr_profile_result *result, tsr_err *err)
{
    const options *asked = w->o;
    const tsr_profile_output o = {.path = asked->output,
                                  .out = w->out,
                                  .saxs = w->saxs,
                                  .q_min = w->s->q_range[0],
                                  .q_max = w->q_max,
                                  .n_q = (int)asked->n_q,
                                  .with_partials = asked->partials};
    return asked->output != NULL || (w->saxs == NULL && n == 1 && !asked->json)
               ? tsr_profile_write(&o, n, result, w->log, err)
               : TSR_OK;
}

static tsr_status each_alone(work *w, int n, const char *const *path,
                             tsr_err *err)
{
    tsr_profile_result *result = calloc((size_t)n, sizeof *result);
    tsr_status status = tsr_allocated(result, err);
    for (int i = 0; i < n && status == TSR_OK; i++)
        status = profile_one(w->s, w->maker, path[i], w->saxs, &result[i],
                             w->log, err);
    if (status == TSR_OK && w->saxs != NULL)
        qsort(result, (size_t)n, sizeof *result, by_chi2);
    TSR_THEN(status, write_curves(w, n, result, err));
    if (status == TSR_OK && w->o->json)
        tsr_profile_print_json(w->out, n, result, w->saxs,
                               bodies_words[w->o->bodies],
                               tsr_profile_maker_describe(w->maker), NULL);
    else if (status == TSR_OK &&
             (w->saxs != NULL || n > 1 || w->o->output != NULL))
        tsr_profile_print(w->out, n, result, w->saxs);
    for (int i = 0; result != NULL && i < n; i++)
        tsr_profile_result_clear(&result[i]);
    free(result);
    return status;
}

/* All models as one ensemble: the mean curve, and with data its weights. */
static tsr_status together(work *w, int n, const char *const *path,
                           tsr_err *err)
{
    tsr_profile_ensemble e = {.n = 0};
    const tsr_profile_bodies bodies = (tsr_profile_bodies)w->o->bodies;
    tsr_status status =
        tsr_profile_ensemble_read(w->maker, bodies, n, path, &e, err);
    for (int i = 0; i < e.n && status == TSR_OK; i++)
        status = finish_one(w->s, w->saxs, &e.model[i], err);
    TSR_THEN(status, tsr_profile_ensemble_weigh(&e, w->saxs, &w->s->fit,
                                                w->o->theta, err));
    for (int k = 0; k < e.n_way && status == TSR_OK; k++)
        status = finish_one(w->s, w->saxs, &e.mean[k], err);
    TSR_THEN(status, write_curves(w, 1, &e.mean[w->o->weights], err));
    if (status == TSR_OK && w->o->json)
        tsr_profile_print_json(w->out, e.n, e.model, w->saxs,
                               bodies_words[w->o->bodies],
                               tsr_profile_maker_describe(w->maker), &e);
    else if (status == TSR_OK && (w->saxs != NULL || w->o->output != NULL))
        tsr_profile_ensemble_print(w->out, &e, w->saxs);
    tsr_profile_ensemble_clear(&e);
    return status;
}

static tsr_status profile(const tsr_args *args, FILE *out, tsr_log *log,
                          tsr_err *err)
{
    const options *o = args->options;
    settings s;
    tsr_saxs *saxs = NULL;
    work w = {.s = &s, .o = o, .out = out, .log = log};
    TSR_TRY(make_settings(args, &s, err));
    TSR_TRY(tsr_profile_check_output(o->output, o->force, args->n,
                                     args->argument, o->data, o->form_factors,
                                     err));
    if (o->data != NULL)
        TSR_TRY(tsr_saxs_read(o->data, (tsr_q_unit)o->unit, s.q_range, log,
                              &saxs, err));
    tsr_status status = o->data == NULL
                            ? TSR_OK
                            : tsr_saxs_resolve(saxs, &s.resolution, log, err);
    w.saxs = saxs;
    w.q_max = saxs != NULL ? tsr_saxs_q_max(saxs) : s.q_range[1];
    const tsr_profile_spec spec = {.bodies = (tsr_profile_bodies)o->bodies,
                                   .solvent = (tsr_solvent_model)o->solvent,
                                   .density = o->density,
                                   .neutron = o->radiation ? &s.neutron : NULL,
                                   .device = o->device,
                                   .method = (tsr_profile_method)o->method,
                                   .q_max_inv_ang = w.q_max,
                                   .form_factors = o->form_factors};
    TSR_THEN(status, tsr_profile_maker_new(&spec, log, &w.maker, err));
    TSR_THEN(status, o->ensemble
                         ? together(&w, args->n, args->argument, err)
                         : each_alone(&w, args->n, args->argument, err));
    if (status == TSR_OK)
        tsr_debug(log, "engine: %s", tsr_profile_maker_describe(w.maker));
    tsr_profile_maker_free(w.maker);
    tsr_saxs_free(saxs);
    return status;
}

const tsr_command tsr_command_profile = {
    .name = "profile",
    .doc = "the curve of any structure, and its fit to data",
    .arguments = "STRUCTURE...",
    .options = fields,
    .size = sizeof(options),
    .about = "STRUCTURE is a PDB or mmCIF file, gzipped or not. All atoms "
             "but waters scatter; hydrogens that the file lacks are added "
             "to the atoms that carry them; displaced solvent and a "
             "hydration layer are part of the curve (docs/"
             "forward-model.md). With --data, scale, background, c1 "
             "and c2 are fitted, and of several structures the best comes "
             "first. "
             "With --ensemble the structures, and all models of a file, "
             "are one mixture: its mean curve, and weights by least "
             "squares and by maximum entropy (docs/analysis.md).",
    .run = profile};
