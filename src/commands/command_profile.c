/* tessera profile: curves of structures, and their fits to data. */
#include "commands/command.h"
#include "commands/profile_report.h"
#include "posterior/profile_partials.h"

#include "scattering/saxs.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

static const tsr_option options[] = {
    {.name = "data",
     .letter = 'd',
     .argument = "DAT",
     .doc = "a curve (q, I, sigma) to fit the structures to"},
    {.name = "bodies",
     .letter = 'b',
     .argument = "KIND",
     .initial = "atoms",
     .doc = "what scatters: all atoms, or two or one body a residue"},
    {.name = "solvent-model",
     .argument = "NAME",
     .initial = "layer",
     .doc = "of all atoms: layer (water outside the surface), atoms (water at "
            "the atoms, as the tables of bodies have it), or foxs (FoXS's "
            "formula, to compare with)"},
    {.name = "solvent-density",
     .argument = "RHO",
     .initial = "0.334",
     .unit = "e/Angstrom^3",
     .doc = "electrons of the buffer: more with salt, glycerol or sugar "
            "(docs/forward-model.md)"},
    {.name = "radiation",
     .argument = "KIND",
     .initial = "xray",
     .doc = "xray or neutron (of all atoms; docs/forward-model.md)"},
    {.name = "d2o",
     .argument = "X",
     .doc = "of neutrons: the share of D2O in the solvent, 0 to 1; default 0"},
    {.name = "exchange",
     .argument = "X",
     .doc = "of neutrons: the share of the backbone's amide hydrogens that "
            "exchange with the solvent, default 0.9; all other hydrogens of N, "
            "O and S do"},
    {.name = "deuterated",
     .argument = "CHAIN=X",
     .repeats = 1,
     .doc = "of neutrons: the share of deuterium among the other hydrogens of "
            "a chain, as it was grown"},
    {.name = "output",
     .letter = 'o',
     .argument = "PATH",
     .doc = "write the best fit, as FoXS's .fit files, and its picture beside "
            "it (.svg); without --data the curve. A folder gets those of every "
            "structure"},
    TSR_OPTION_FORCE,
    TSR_OPTION_JSON,
    TSR_OPTION_DEVICE,
    {.name = "method",
     .argument = "NAME",
     .initial = "auto",
     .doc = "direct (pairs, on the device), fft (a grid) or quadrature (plane "
            "waves, both on the host's cores, in double precision), or auto: "
            "the fastest by their measured costs (docs/forward-model.md)"},
    {.name = "background",
     .argument = "B",
     .initial = "fit",
     .doc = "a constant beside the curve: fit, as runs infer it, none, or a "
            "number in the data's unit"},
    {.name = "c1",
     .argument = "RANGE",
     .initial = "0.95:1.05",
     .doc = "scale of the atoms' radii in the excluded volume: a range to fit "
            "in, or a number; of neutrons, and without --data, 1 unless it is "
            "given"},
    {.name = "c2",
     .argument = "RANGE",
     .initial = "0:4",
     .doc = "density of the hydration layer above the buffer's, about 0.01 "
            "e/Angstrom^3 for 1: the same; -2:4 for --solvent-model foxs; "
            "without --data 0"},
    {.name = "q-min",
     .argument = "Q",
     .initial = "0",
     .unit = "1/Angstrom",
     .doc = "leave out data below"},
    {.name = "q-max",
     .argument = "Q",
     .unit = "1/Angstrom",
     .doc = "leave out data above; without --data the end of the curve, 0.5"},
    {.name = "n-q",
     .argument = "N",
     .initial = "501",
     .doc = "points of a curve without --data"},
    {.name = "q-unit",
     .argument = "UNIT",
     .initial = "auto",
     .doc = "of the data: auto, 1/A or 1/nm"},
    {.name = "resolution",
     .argument = "DQ",
     .unit = "1/Angstrom",
     .doc = "standard deviation of q, by which the curve is smeared: a number, "
            "or column, the fourth of the data, auto, the fourth where there "
            "is one, or none; default: none, of neutrons auto"},
    {.name = "wavelength-spread",
     .argument = "X",
     .doc = "full width at half maximum over the mean, which adds to that"},
    {.name = "slit-length",
     .argument = "L",
     .unit = "1/Angstrom",
     .doc = "half of the slit's length, across the direction of q"},
    {.name = "slit-width",
     .argument = "W",
     .unit = "1/Angstrom",
     .doc = "half of the slit's width, along q"},
    {.name = "beam-profile",
     .argument = "FILE",
     .doc = "instead of --slit-length: a table of u (1/Angstrom, across the "
            "direction of q) and the beam's intensity there"},
    {.name = "form-factors",
     .argument = "FILE",
     .doc = "a table instead of the shipped one, for --bodies one and two; one "
            "of form factors alone, own or published, has no c1 and c2"},
    {.name = "ensemble",
     .doc = "all models of all files as one ensemble: the mean curve, and with "
            "--data the weights that fit best"},
    {.name = "weights",
     .argument = "KIND",
     .initial = "equal",
     .doc = "of the ensemble whose curve --output gets: equal, squares (least "
            "squares, not negative) or entropy (maximum entropy)"},
    {.name = "theta",
     .argument = "X",
     .initial = "0",
     .doc = "of maximum entropy, chi2 / 2 + X KL: larger is nearer to equal "
            "weights; 0: the elbow, as of reweight"},
    {.name = "partials",
     .doc =
         "without --data: also the columns in vacuum, of the excluded volume "
         "and of the hydration layer"},
    {0}};

static const char *const bodies_words[] = {"atoms", "two", "one", NULL};
static const char *const solvent_words[] = {"layer", "atoms", "foxs", NULL};
static const char *const radiation_words[] = {"xray", "neutron", NULL};
static const char *const weight_words[] = {"equal", "squares", "entropy", NULL};
static const char *const method_words[] = {"direct", "fft", "quadrature",
                                           "auto", NULL};
static const char *const unit_words[] = {"auto", "1/A", "1/nm", NULL};

typedef struct {
    int bodies, solvent, weights, method;
    double theta;
    double density;
    double q_range[2];
    long n_q;
    tsr_q_unit unit;
    tsr_profile_fit_options fit;
    double c1, c2; /* without data */
    tsr_resolution_options resolution;
    int radiation; /* 1: neutrons */
    tsr_neutron neutron;
} settings;

/* ---- options ---- */

/* What would be left unused is refused: who gives it expects something of it.
 */
static tsr_status check_unused(const tsr_args *args, int has_data, tsr_err *err)
{
    static const char *const with_data[] = {
        "background",  "q-unit",     "resolution",   "wavelength-spread",
        "slit-length", "slit-width", "beam-profile", NULL};
    static const char *const without[] = {"partials", "n-q", NULL};
    static const char *const of_ensemble[] = {"weights", "theta", NULL};
    const int is_ensemble = tsr_args_count(args, "ensemble") > 0;
    for (int i = 0; of_ensemble[i] != NULL; i++)
        if (tsr_args_count(args, of_ensemble[i]) > 0 &&
            (!is_ensemble || !has_data))
            return tsr_fail(err, TSR_E_USAGE,
                            "--%s goes with --ensemble and --data",
                            of_ensemble[i]);
    const char *const *unused = has_data ? without : with_data;
    for (; *unused != NULL; unused++)
        if (tsr_args_count(args, *unused) > 0)
            return tsr_fail(err, TSR_E_USAGE, "--%s goes %s --data", *unused,
                            has_data ? "without" : "with");
    return TSR_OK;
}

static tsr_status word(const tsr_args *args, const char *option,
                       const char *const *words, int *out, tsr_err *err)
{
    const char *given = tsr_args_value(args, option);
    char list[128] = "";
    size_t used = 0;
    for (*out = 0; words[*out] != NULL; ++*out)
        if (strcmp(given, words[*out]) == 0)
            return TSR_OK;
    for (int k = 0; words[k] != NULL; k++)
        used += (size_t)snprintf(list + used, sizeof list - used, "%s%s",
                                 k == 0                 ? ""
                                 : words[k + 1] != NULL ? ", "
                                                        : " or ",
                                 words[k]);
    return tsr_fail(err, TSR_E_USAGE, "--%s '%s': expected %s", option, given,
                    list);
}

/* "LOW:HIGH", or one number, which fixes. */
static tsr_status range(const tsr_args *args, const char *option, double low,
                        double high, double out[2], tsr_err *err)
{
    const char *given = tsr_args_value(args, option);
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

static tsr_status background(const tsr_args *args, tsr_profile_fit_options *fit,
                             tsr_err *err)
{
    const char *given = tsr_args_value(args, "background");
    fit->fit_background = strcmp(given, "fit") == 0;
    fit->background = 0.0;
    if (fit->fit_background || strcmp(given, "none") == 0)
        return TSR_OK;
    char *end;
    fit->background = strtod(given, &end);
    if (end == given || *end != '\0' || !isfinite(fit->background))
        return tsr_fail(err, TSR_E_USAGE,
                        "--background '%s': expected fit, none or a number",
                        given);
    return TSR_OK;
}

static tsr_status read_deuterated(const tsr_args *args, tsr_neutron *out,
                                  tsr_err *err)
{
    const char *const *given;
    int n = tsr_args_values(args, "deuterated", &given);
    for (int k = 0; k < n; k++)
        if (!tsr_neutron_deuterate(out, given[k]))
            return tsr_fail(err, TSR_E_USAGE,
                            "--deuterated '%s': expected CHAIN=X, X from 0 to "
                            "1 (without it 1), each chain once, %d at most",
                            given[k], TSR_NEUTRON_CHAINS);
    return TSR_OK;
}

/* What belongs to neutrons is refused of X-rays, and the other way round. */
static tsr_status read_radiation(const tsr_args *args, settings *s,
                                 tsr_err *err)
{
    static const char *const own[] = {"d2o", "exchange", "deuterated"};
    static const char *const other[] = {"solvent-model", "solvent-density"};
    TSR_TRY(word(args, "radiation", radiation_words, &s->radiation, err));
    s->neutron = (tsr_neutron){.exchange = TSR_NEUTRON_EXCHANGE};
    for (size_t k = 0; k < 3 && !s->radiation; k++)
        if (tsr_args_count(args, own[k]) > 0)
            return tsr_fail(err, TSR_E_USAGE,
                            "--%s goes with --radiation neutron", own[k]);
    for (size_t k = 0; k < 2 && s->radiation; k++)
        if (tsr_args_count(args, other[k]) > 0)
            return tsr_fail(err, TSR_E_USAGE,
                            "--%s is of X-rays; neutrons see the layer model, "
                            "and --d2o says in what",
                            other[k]);
    if (s->radiation && s->bodies != TSR_PROFILE_ATOMS)
        return tsr_fail(err, TSR_E_USAGE,
                        "--radiation neutron is of atoms: the tables of bodies "
                        "were trained for X-rays");
    if (tsr_args_count(args, "d2o") > 0)
        TSR_TRY(tsr_args_double(args, "d2o", 0.0, 1.0, &s->neutron.d2o, err));
    if (tsr_args_count(args, "exchange") > 0)
        TSR_TRY(tsr_args_double(args, "exchange", 0.0, 1.0,
                                &s->neutron.exchange, err));
    return read_deuterated(args, &s->neutron, err);
}

/* As `resolution` of a configuration has them; the fields are in this order.
 * Neutron data have their resolution in the fourth column. */
static tsr_status read_resolution(const tsr_args *args, int is_neutron,
                                  tsr_resolution_options *out, tsr_err *err)
{
    static const char *const option[] = {"resolution", "wavelength-spread",
                                         "slit-length", "slit-width"};
    const tsr_field *field = tsr_resolution_fields;
    out->dq.word = is_neutron ? TSR_DQ_AUTO : TSR_DQ_NONE;
    for (size_t k = 0; k < sizeof option / sizeof *option; k++) {
        const char *given = tsr_args_value(args, option[k]);
        tsr_status status = given == NULL
                                ? TSR_OK
                                : tsr_field_parse(&field[k], out, given, err);
        if (status != TSR_OK)
            return tsr_wrap(err, TSR_E_USAGE, "--%s", option[k]);
    }
    const char *beam = tsr_args_value(args, "beam-profile");
    if (beam != NULL && out->slit_length > 0.0)
        return tsr_fail(err, TSR_E_USAGE,
                        "--beam-profile stands for the slit's length; leave "
                        "--slit-length out");
    out->beam_profile = beam != NULL ? strdup(beam) : NULL;
    return TSR_OK;
}

static tsr_status read_settings(const tsr_args *args, settings *s, tsr_err *err)
{
    int unit = 0, has_data = tsr_args_value(args, "data") != NULL;
    *s = (settings){.q_range = {0.0, has_data ? 1e3 : 0.5},
                    .c1 = 1.0,
                    .fit = tsr_profile_fit_defaults};
    TSR_TRY(word(args, "bodies", bodies_words, &s->bodies, err));
    TSR_TRY(word(args, "solvent-model", solvent_words, &s->solvent, err));
    TSR_TRY(word(args, "method", method_words, &s->method, err));
    TSR_TRY(
        tsr_args_double(args, "solvent-density", 0.1, 1.0, &s->density, err));
    TSR_TRY(word(args, "weights", weight_words, &s->weights, err));
    TSR_TRY(tsr_args_double(args, "theta", 0.0, 1e9, &s->theta, err));
    TSR_TRY(word(args, "q-unit", unit_words, &unit, err));
    TSR_TRY(range(args, "c1", 0.5, 2.0, s->fit.c1, err));
    TSR_TRY(range(args, "c2", -100.0, 100.0, s->fit.c2, err));
    TSR_TRY(background(args, &s->fit, err));
    TSR_TRY(tsr_args_double(args, "q-min", 0.0, 10.0, &s->q_range[0], err));
    TSR_TRY(tsr_args_double(args, "q-max", 0.01, 10.0, &s->q_range[1], err));
    TSR_TRY(tsr_args_long(args, "n-q", 2.0, 1e5, &s->n_q, err));
    TSR_TRY(read_radiation(args, s, err));
    TSR_TRY(read_resolution(args, s->radiation, &s->resolution, err));
    s->unit = (tsr_q_unit)unit;
    if (s->solvent == TSR_SOLVENT_FOXS && tsr_args_count(args, "c2") == 0)
        s->fit.c2[0] = -2.0;
    if (s->radiation && tsr_args_count(args, "c1") == 0)
        s->fit.c1[0] = s->fit.c1[1] = 1.0; /* as of runs */
    if (s->fit.c1[0] == s->fit.c1[1])
        s->c1 = s->fit.c1[0];
    if (s->fit.c2[0] == s->fit.c2[1])
        s->c2 = s->fit.c2[0];
    if (!(s->q_range[0] < s->q_range[1]))
        return tsr_fail(err, TSR_E_USAGE, "--q-min %g is not below --q-max %g",
                        s->q_range[0], s->q_range[1]);
    if (s->bodies == TSR_PROFILE_ATOMS &&
        tsr_args_value(args, "form-factors") != NULL)
        return tsr_fail(err, TSR_E_USAGE,
                        "--form-factors is a table of bodies; give --bodies "
                        "one or two with it");
    if (s->bodies != TSR_PROFILE_ATOMS &&
        tsr_args_count(args, "solvent-model") > 0)
        return tsr_fail(err, TSR_E_USAGE,
                        "--solvent-model is of atoms; bodies have that of "
                        "their table");
    if (s->bodies != TSR_PROFILE_ATOMS && s->method == TSR_METHOD_FFT)
        return tsr_fail(err, TSR_E_USAGE,
                        "--method fft is of atoms: tables of bodies are not "
                        "smooth enough in q for a grid");
    return check_unused(args, has_data, err);
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
    const tsr_args *args;
    const settings *s;
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
    const char *output = tsr_args_value(w->args, "output");
    const int has_json = tsr_args_count(w->args, "json") > 0;
    const tsr_profile_output o = {.path = output,
                                  .out = w->out,
                                  .saxs = w->saxs,
                                  .q_min = w->s->q_range[0],
                                  .q_max = w->q_max,
                                  .n_q = (int)w->s->n_q,
                                  .with_partials =
                                      tsr_args_count(w->args, "partials") > 0};
    return output != NULL || (w->saxs == NULL && n == 1 && !has_json)
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
    if (status == TSR_OK && tsr_args_count(w->args, "json") > 0)
        tsr_profile_print_json(w->out, n, result, w->saxs,
                               bodies_words[w->s->bodies],
                               tsr_profile_maker_describe(w->maker), NULL);
    else if (status == TSR_OK && (w->saxs != NULL || n > 1 ||
                                  tsr_args_value(w->args, "output") != NULL))
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
    const tsr_profile_bodies bodies = (tsr_profile_bodies)w->s->bodies;
    tsr_status status =
        tsr_profile_ensemble_read(w->maker, bodies, n, path, &e, err);
    for (int i = 0; i < e.n && status == TSR_OK; i++)
        status = finish_one(w->s, w->saxs, &e.model[i], err);
    TSR_THEN(status, tsr_profile_ensemble_weigh(&e, w->saxs, &w->s->fit,
                                                w->s->theta, err));
    for (int k = 0; k < e.n_way && status == TSR_OK; k++)
        status = finish_one(w->s, w->saxs, &e.mean[k], err);
    TSR_THEN(status, write_curves(w, 1, &e.mean[w->s->weights], err));
    if (status == TSR_OK && tsr_args_count(w->args, "json") > 0)
        tsr_profile_print_json(w->out, e.n, e.model, w->saxs,
                               bodies_words[w->s->bodies],
                               tsr_profile_maker_describe(w->maker), &e);
    else if (status == TSR_OK &&
             (w->saxs != NULL || tsr_args_value(w->args, "output") != NULL))
        tsr_profile_ensemble_print(w->out, &e, w->saxs);
    tsr_profile_ensemble_clear(&e);
    return status;
}

static tsr_status compute(const tsr_args *args, const settings *s,
                          const tsr_saxs *saxs, int n, const char *const *path,
                          FILE *out, tsr_log *log, tsr_err *err)
{
    work w = {.args = args,
              .s = s,
              .saxs = saxs,
              .q_max = saxs != NULL ? tsr_saxs_q_max(saxs) : s->q_range[1],
              .out = out,
              .log = log};
    const tsr_profile_spec spec = {.bodies = (tsr_profile_bodies)s->bodies,
                                   .solvent = (tsr_solvent_model)s->solvent,
                                   .density = s->density,
                                   .neutron = s->radiation ? &s->neutron : NULL,
                                   .device = tsr_args_value(args, "device"),
                                   .method = (tsr_profile_method)s->method,
                                   .q_max_inv_ang = w.q_max,
                                   .form_factors =
                                       tsr_args_value(args, "form-factors")};
    tsr_status status = tsr_profile_maker_new(&spec, log, &w.maker, err);
    TSR_THEN(status, tsr_args_count(args, "ensemble") > 0
                         ? together(&w, n, path, err)
                         : each_alone(&w, n, path, err));
    if (status == TSR_OK)
        tsr_debug(log, "engine: %s", tsr_profile_maker_describe(w.maker));
    tsr_profile_maker_free(w.maker);
    return status;
}

static tsr_status profile(const tsr_args *args, FILE *out, tsr_log *log,
                          tsr_err *err)
{
    const char *const *path;
    settings s;
    tsr_saxs *saxs = NULL;
    int n = tsr_args_arguments(args, &path);
    const char *data = tsr_args_value(args, "data");
    tsr_status status = read_settings(args, &s, err);
    TSR_THEN(status, tsr_profile_check_output(
                         tsr_args_value(args, "output"),
                         tsr_args_count(args, "force") > 0, n, path, data,
                         tsr_args_value(args, "form-factors"), err));
    if (status == TSR_OK && data != NULL)
        status = tsr_saxs_read(data, s.unit, s.q_range, log, &saxs, err);
    if (status == TSR_OK && data != NULL)
        status = tsr_saxs_resolve(saxs, &s.resolution, log, err);
    TSR_THEN(status, compute(args, &s, saxs, n, path, out, log, err));
    tsr_saxs_free(saxs);
    tsr_fields_clear(tsr_resolution_fields, &s.resolution);
    return status;
}

const tsr_command tsr_command_profile = {
    .name = "profile",
    .doc = "the curve of any structure, and its fit to data",
    .usage = {.arguments = "STRUCTURE...",
              .min_arguments = 1,
              .max_arguments = -1,
              .options = options,
              .about =
                  "STRUCTURE is a PDB or mmCIF file, gzipped or not. All atoms "
                  "but waters scatter; hydrogens that the file lacks are added "
                  "to the atoms that carry them; displaced solvent and a "
                  "hydration layer are part of the curve (docs/"
                  "forward-model.md). With --data, scale, background, c1 "
                  "and c2 are fitted, and of several structures the best comes "
                  "first. "
                  "With --ensemble the structures, and all models of a file, "
                  "are one mixture: its mean curve, and weights by least "
                  "squares and by maximum entropy (docs/analysis.md)."},
    .run = profile};
