/* tessera profile: computes curves of structures and fits them to data, for
 * each structure alone or for all models of all files as one ensemble. */
#include "commands/command.h"
#include "commands/map_job.h"
#include "commands/solve.h"

#include "analysis/maxent.h"
#include "core/json.h"
#include "core/text.h"
#include "files/file.h"
#include "molecule/structure.h"
#include "report/figure.h"

#include <gsl/gsl_sort.h>
#include <limits.h>
#include <math.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

static const char *const bodies_words[] = {"atoms", "two", "one", NULL};
static const char *const solvent_words[] = {"layer", "atoms", "foxs", NULL};
static const char *const radiation_words[] = {"xray", "neutron", NULL};
static const char *const weight_words[] = {"equal", "squares", "entropy", NULL};
static const char *const method_words[] = {"direct", "fft", "quadrature",
                                           "auto", NULL};
static const char *const unit_words[] = {"auto", "1/A", "1/nm", NULL};
static const char *const background_words[] = {"fit", "none", NULL};
static const char *const frames_words[] = {"first", "all", NULL};
static const char *const dq_words[] = {"none", "column", "auto", NULL};

typedef struct {
    char *data, *output, *device, *form_factors, *c1, *c2, *trajectory;
    int bodies, solvent, radiation, method, unit, ensemble, weights, partials;
    int force, json;
    double density, theta;
    double d2o, exchange; /* for neutrons, as is deuterated */
    tsr_strings deuterated;
    tsr_number_or_word background;
    double q_min, q_max; /* q_max 0: not given */
    long n_q, threads;
    tsr_number_or_word frames;
    tsr_resolution_options resolution;
} options;

static const tsr_field fields[] = {
    TSR_FIELD(STRING, "data", options, data, .letter = 'd', .argument = "DAT",
              .doc = "curve to which the structures are fitted: q, I, sigma "
                     "in a text, canSAS XML, NXcanSAS or SASBDB's .sascif"),
    TSR_FIELD(CHOICE, "bodies", options, bodies, .letter = 'b',
              .argument = "KIND", .initial = "atoms", .words = bodies_words,
              .doc = "scatterers: all atoms, or two or one body per residue"),
    TSR_FIELD(CHOICE, "solvent-model", options, solvent, .argument = "NAME",
              .initial = "layer", .words = solvent_words,
              .doc = "hydration of all atoms: layer (water outside the "
                     "surface), atoms (water at the atoms, as in the tables of "
                     "bodies), or foxs (FoXS's formula, for comparison)"),
    TSR_FIELD(DOUBLE, "solvent-density", options, density, .argument = "RHO",
              .initial = "0.334", .unit = "e/Angstrom^3", .min = 0.1,
              .max = 1.0,
              .doc = "electron density of the buffer: higher with salt, "
                     "glycerol or sugar (docs/forward-model.md)"),
    TSR_FIELD(CHOICE, "radiation", options, radiation, .argument = "KIND",
              .initial = "xray", .words = radiation_words,
              .doc = "xray or neutron (with all atoms; docs/forward-model.md)"),
    TSR_FIELD(DOUBLE, "d2o", options, d2o, .argument = "X", .initial = "0",
              .max = 1.0,
              .doc = "neutrons: fraction of D2O in the solvent, 0 to 1"),
    TSR_FIELD(DOUBLE, "exchange", options, exchange, .argument = "X",
              .initial = "0.9", .max = 1.0,
              .doc = "neutrons: fraction of the backbone's amide hydrogens "
                     "that exchange with the solvent; all other hydrogens of "
                     "N, O and S exchange"),
    TSR_FIELD(STRINGS, "deuterated", options, deuterated, .argument = "CHAIN=X",
              .doc = "neutrons: fraction of deuterium in the hydrogens of a "
                     "chain that do not exchange, default 1"),
    TSR_FIELD(STRING, "output", options, output, .letter = 'o',
              .argument = "PATH",
              .doc = "write the best fit as a FoXS .fit file (as sasCIF, if "
                     "PATH ends in .sascif or .cif), or the curve "
                     "without --data, and its picture in the same folder "
                     "(.svg). A folder gets the files of every structure"),
    TSR_OPTION_FORCE(options),
    TSR_OPTION_JSON(options),
    TSR_OPTION_DEVICE(options),
    TSR_FIELD(
        CHOICE, "method", options, method, .argument = "NAME",
        .initial = "auto", .words = method_words,
        .doc =
            "direct (sum over pairs, on the device), fft (grid) or quadrature "
            "(plane waves; both on the host's cores, in double precision), or "
            "auto: the fastest by measured costs (docs/forward-model.md)"),
    TSR_FIELD(NUMBER_OR_WORD, "background", options, background,
              .argument = "B", .initial = "fit", .words = background_words,
              .doc = "constant background: fit, as in runs, none, or a number "
                     "in the unit of the data"),
    TSR_FIELD(
        STRING, "c1", options, c1, .argument = "RANGE", .initial = "0.95:1.05",
        .doc = "scale of the atomic radii in the excluded volume: range of the "
               "fit, or a number; default for neutrons, and without --data: 1"),
    TSR_FIELD(STRING, "c2", options, c2, .argument = "RANGE", .initial = "0:4",
              .doc = "density of the hydration layer above that of the buffer, "
                     "about 0.01 e/Angstrom^3 for c2 = 1: range or number; "
                     "-2:4 for --solvent-model foxs; 0 without --data"),
    TSR_FIELD(DOUBLE, "q-min", options, q_min, .argument = "Q", .initial = "0",
              .unit = "1/Angstrom", .max = 10.0,
              .doc = "leave out data below this q"),
    TSR_FIELD(DOUBLE, "q-max", options, q_max, .argument = "Q",
              .unit = "1/Angstrom", .min = 0.01, .max = 10.0,
              .doc = "leave out data above this q; without --data the end of "
                     "the curve, 0.5"),
    TSR_FIELD(INT, "n-q", options, n_q, .argument = "N", .initial = "501",
              .min = 2, .max = 1e5,
              .doc = "number of points of a curve without --data"),
    TSR_FIELD(CHOICE, "q-unit", options, unit, .argument = "UNIT",
              .initial = "auto", .words = unit_words,
              .doc = "unit of q in the data: auto, 1/A or 1/nm"),
    TSR_FIELD(
        NUMBER_OR_WORD, "resolution", options, resolution.dq, .argument = "DQ",
        .unit = "1/Angstrom", .max = 1.0, .words = dq_words,
        .doc = "standard deviation of q, with which the curve is "
               "smeared: a number, or column, the fourth column of the "
               "data or Qdev, auto, that column if there is one, or none; "
               "default: none, for neutrons auto"),
    TSR_FIELD(DOUBLE, "wavelength-spread", options,
              resolution.wavelength_spread, .argument = "X", .max = 0.5,
              .doc = "relative full width at half maximum of the wavelengths, "
                     "which adds to the smearing"),
    TSR_FIELD(DOUBLE, "slit-length", options, resolution.slit_length,
              .argument = "L", .unit = "1/Angstrom", .max = 10.0,
              .doc = "half length of the slit, across the direction of q"),
    TSR_FIELD(DOUBLE, "slit-width", options, resolution.slit_width,
              .argument = "W", .unit = "1/Angstrom", .max = 1.0,
              .doc = "half width of the slit, along q"),
    TSR_FIELD(STRING, "beam-profile", options, resolution.beam_profile,
              .argument = "FILE",
              .doc = "beam profile instead of --slit-length: a table of u "
                     "(1/Angstrom, across the direction of q) and intensity"),
    TSR_FIELD(
        STRING, "form-factors", options, form_factors, .argument = "FILE",
        .doc = "table of form factors for --bodies one and two instead of the "
               "shipped table; a table of one component has no c1 and c2"),
    TSR_FIELD(STRING, "trajectory", options, trajectory, .letter = 't',
              .argument = "FILE",
              .doc = "frames of this trajectory (DCD, H5MD), with the atoms of "
                     "the structure in the same order"),
    TSR_FIELD(NUMBER_OR_WORD, "frames", options, frames, .argument = "N",
              .min = 1.0, .max = 1e9, .words = frames_words,
              .doc = "number of frames of the trajectory, or of models of the "
                     "structure file, evenly selected, or first, or all; "
                     "default: all frames, or the first model"),
    TSR_OPTION_THREADS(options),
    TSR_FIELD(BOOL, "ensemble", options, ensemble,
              .doc = "treat all models of all files as one ensemble: the mean "
                     "curve, and with --data the weights that fit best"),
    TSR_FIELD(CHOICE, "weights", options, weights, .argument = "KIND",
              .initial = "equal", .words = weight_words,
              .doc = "weights of the curve that --output writes for an "
                     "ensemble: equal, squares (non-negative least squares) or "
                     "entropy (maximum entropy)"),
    TSR_FIELD(DOUBLE, "theta", options, theta, .argument = "X", .initial = "0",
              .max = 1e9,
              .doc = "maximum entropy minimises chi2 / 2 + X KL: a larger X "
                     "keeps the weights closer to equal; 0: the elbow of the "
                     "curve of chi2 over KL"),
    TSR_FIELD(BOOL, "partials", options, partials,
              .doc = "without --data: also write the columns of the vacuum, "
                     "the excluded volume and the hydration layer"),
    {0}};

enum { EQUAL, SQUARES, ENTROPY, N_WEIGHTS };

typedef struct {
    const options *o;
    /* Settings derived from the options. */
    double q_range[2];
    tsr_profile_fit_options fit;
    tsr_resolution_options resolution;
    tsr_neutron neutron;
    tsr_saxs *saxs; /* NULL: without data */
    double q_max;   /* of the computed curves */
    tsr_profile_maker *maker;
    int n_thread;
    int has_same_names; /* 1: some structures have the same file name */
    FILE *out;
    tsr_log *log;
} work;

/* Structures that threads share: files, or models of one file. */
typedef struct {
    const work *w;
    int n;
    const char *const *name;    /* [n] path, or "x.pdb:12" for model 12 */
    tsr_map_models models;      /* atoms NULL: files */
    tsr_profile_result *result; /* [n] */
    int over_ranks;             /* 1: results have no pointers */
    int in_ensemble; /* 1: curves are kept for the ensemble; fits of single
                        models are not commented on */
    int is_first;    /* 1: the log has what is assumed of the first model */
    pthread_mutex_t lock; /* guards the member below */
    int best; /* structure of smallest chi2 so far, the first of equals; -1 */
} series;

/* ---- options ---- */

/* Refuses options that would be ignored, since the user expects an effect. */
static tsr_status check_unused(const tsr_args *args, const options *o,
                               tsr_err *err)
{
    const int has_data = o->data != NULL;
    const struct {
        int is_used;
        const char *why;
        const char *option[8];
    } rule[] = {{has_data,
                 "needs --data",
                 {"background", "q-unit", "resolution", "wavelength-spread",
                  "slit-length", "slit-width", "beam-profile"}},
                {!has_data, "is not possible with --data", {"partials", "n-q"}},
                {has_data && o->ensemble,
                 "needs --ensemble and --data",
                 {"weights", "theta"}},
                {o->radiation,
                 "needs --radiation neutron",
                 {"d2o", "exchange", "deuterated"}},
                {!o->radiation,
                 "is for X-rays; neutrons use the layer model, and --d2o gives "
                 "the solvent",
                 {"solvent-model", "solvent-density"}},
                {o->bodies == TSR_PROFILE_ATOMS && args->n == 1 && !o->ensemble,
                 "needs one structure, with --bodies atoms; --ensemble takes "
                 "all models",
                 {"trajectory", "frames"}},
                {o->bodies == TSR_PROFILE_ATOMS,
                 "is for atoms; bodies have the hydration of their table",
                 {"solvent-model"}},
                {o->bodies != TSR_PROFILE_ATOMS,
                 "is a table of bodies; it needs --bodies one or two",
                 {"form-factors"}}};
    for (size_t k = 0; k < sizeof rule / sizeof *rule; k++)
        for (int i = 0; !rule[k].is_used && rule[k].option[i] != NULL; i++)
            if (tsr_args_given(args, rule[k].option[i]) > 0)
                return tsr_fail(err, TSR_E_USAGE, "--%s %s", rule[k].option[i],
                                rule[k].why);
    return TSR_OK;
}

/* "LOW:HIGH", or one number, which fixes. */
static tsr_status parse_range(const char *option, const char *given, double low,
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
        return tsr_fail(
            err, TSR_E_USAGE,
            "--%s '%s': expected a number or LOW:HIGH within %g to %g", option,
            given, low, high);
    return TSR_OK;
}

static tsr_status make_settings(const tsr_args *args, work *s, tsr_err *err)
{
    const options *o = args->options;
    s->o = o;
    s->q_range[0] = o->q_min;
    s->q_range[1] = o->q_max > 0.0 ? o->q_max : o->data != NULL ? 1e3 : 0.5;
    s->fit.fit_background = o->background.word == 0;
    s->fit.background = o->background.number;
    s->resolution = o->resolution;
    s->n_thread = tsr_threads(o->threads);
    s->neutron.d2o = o->d2o;
    s->neutron.exchange = o->exchange;
    TSR_TRY(check_unused(args, o, err));
    TSR_TRY(parse_range("c1", o->c1, 0.5, 2.0, s->fit.c1, err));
    TSR_TRY(parse_range("c2", o->c2, -100.0, 100.0, s->fit.c2, err));
    TSR_TRY(tsr_deuterated_read(&o->deuterated, &s->neutron, err));
    /* Neutron data have their resolution in the fourth column. */
    if (o->radiation && tsr_args_given(args, "resolution") == 0)
        s->resolution.dq.word = TSR_DQ_AUTO;
    if (o->solvent == TSR_SOLVENT_FOXS && tsr_args_given(args, "c2") == 0)
        s->fit.c2[0] = -2.0;
    if (o->radiation && tsr_args_given(args, "c1") == 0)
        s->fit.c1[0] = s->fit.c1[1] = 1.0; /* as of runs */
    if (o->radiation && o->bodies != TSR_PROFILE_ATOMS)
        return tsr_fail(err, TSR_E_USAGE,
                        "--radiation neutron needs atoms: the tables of bodies "
                        "are for X-rays");
    if (o->resolution.beam_profile != NULL && o->resolution.slit_length > 0.0)
        return tsr_fail(
            err, TSR_E_USAGE,
            "--beam-profile replaces the slit length; leave --slit-length out");
    if (!(s->q_range[0] < s->q_range[1]))
        return tsr_fail(err, TSR_E_USAGE, "--q-min %g is not below --q-max %g",
                        s->q_range[0], s->q_range[1]);
    if (o->bodies != TSR_PROFILE_ATOMS && o->method == TSR_METHOD_FFT)
        return tsr_fail(err, TSR_E_USAGE,
                        "--method fft needs atoms: tables of bodies are not "
                        "smooth enough in q for a grid");
    return TSR_OK;
}

/* ---- one structure ---- */

void tsr_profile_result_clear(tsr_profile_result *result)
{
    tsr_profile_structure_clear(&result->structure);
    free(result->curve);
    result->curve = NULL;
}

static tsr_status fit_data(const tsr_profile_fit_options *how,
                           const tsr_saxs *saxs, tsr_profile_result *r,
                           tsr_err *err)
{
    if (r->curve == NULL)
        r->curve = calloc((size_t)saxs->n, sizeof *r->curve);
    TSR_TRY(tsr_allocated(r->curve, err));
    return tsr_profile_fit_data(how, &r->structure.partials, saxs, &r->fit,
                                r->curve, err);
}

tsr_status tsr_profile_finish(const tsr_profile_fit_options *how,
                              const tsr_saxs *saxs, tsr_profile_result *r,
                              tsr_err *err)
{
    const tsr_partials *p = &r->structure.partials;
    tsr_status status = TSR_OK;
    r->n_comp = p->n_comp;
    if (saxs == NULL) {
        const double *c1 = how->c1, *c2 = how->c2;
        r->fit.c1 = c1[0] == c1[1] ? c1[0] : 1.0;
        r->fit.c2 = c2[0] == c2[1] ? c2[0] : 0.0;
        r->fit.scale = 1.0;
    } else if (r->curve == NULL) {
        status = fit_data(how, saxs, r, err);
    }
    TSR_THEN(status,
             tsr_contrast_guinier(p, r->fit.c1, r->fit.c2, r->structure.rg_ang,
                                  &r->rg_guinier, &r->i0, err));
    r->i0 *= r->fit.scale;
    return status == TSR_OK ? status
                            : tsr_wrap(err, status, "'%s'", r->structure.path);
}

/* Warns of a model whose Rg differs much from that of the data. The Rg of the
 * model uses standard contrast and hydration: fitted values would pull the
 * model towards the data, and a monomer with c2 at its upper bound could pass
 * for a small dimer. In our test data, models that fit are within 14 %, and
 * monomers differ from dimers by 22 % or more. */
tsr_status tsr_profile_check_rg(const tsr_profile_result *r,
                                const tsr_saxs *saxs, tsr_log *log,
                                tsr_err *err)
{
    double rg, i0;
    tsr_status status =
        tsr_contrast_guinier(&r->structure.partials, 1.0, r->structure.usual_c2,
                             r->structure.rg_ang, &rg, &i0, err);
    double ratio = saxs->rg_guinier / rg;
    const char *cause;
    if (status != TSR_OK || !(ratio > 0.0) ||
        (ratio > 1.0 / 1.15 && ratio < 1.15))
        return status;
    if (ratio > 5.0 || ratio < 0.2)
        cause = "a unit of q that differs from that of the file (--q-unit), or "
                "a wrong unit of the coordinates";
    else if (ratio > 1.0)
        cause = "a larger oligomer or aggregates in the sample, parts missing "
                "from the model, or a flexible molecule";
    else if (r->structure.n_chain < 2)
        cause =
            "a molecule that is more compact in solution than this chain "
            "(flexible, or folded differently), or repulsion between particles";
    else
        cause = "a model with more molecules than the particle in solution "
                "(a monomer, or one copy of the asymmetric unit), or "
                "repulsion between particles";
    tsr_warn(log,
             "'%s': Guinier's Rg is %.1f A in the data and %.1f A in the "
             "model%s; likely: %s",
             r->structure.path, saxs->rg_guinier, rg,
             r->n_comp == 3 ? " with usual hydration" : "", cause);
    return TSR_OK;
}

/* Meaning of c2 at a bound. The layer makes a molecule look larger. */
static const char *layer_cause(const tsr_profile_fit *fit)
{
    return fit->c2_at == 0 ? ""
           : fit->c2_at < 0
               ? "; the data look smaller than the hydrated model; likely: "
                 "metal ions or ligands that the model lacks, a model that is "
                 "too extended or of a larger oligomer, molecules that repel "
                 "each other (dilute the sample), or a buffer that does not "
                 "match"
               : "; the data look larger than the hydrated model; likely: "
                 "residues that the model lacks, a flexible molecule, a larger "
                 "oligomer, or aggregates";
}

static int is_folder(const char *path);
static tsr_status write_one(const work *w, const tsr_profile_result *r,
                            tsr_err *err);

static tsr_status compute_model(const series *s, int i, tsr_profile_result *r,
                                tsr_err *err)
{
    const tsr_map_models *m = &s->models;
    tsr_atoms atoms = *m->atoms;
    tsr_pool pool = {0};
    double(*xyz)[3];
    tsr_pool_array(&pool, xyz, atoms.n_atom);
    tsr_pool_array(&pool, atoms.atom, atoms.n_atom);
    tsr_status status = tsr_pool_check(&pool, err);
    TSR_THEN(status,
             tsr_map_models_frame(m, tsr_even_index(m->n, s->n, i), xyz, err));
    for (int a = 0; a < atoms.n_atom && status == TSR_OK; a++) {
        atoms.atom[a] = m->atoms->atom[a];
        memcpy(atoms.atom[a].xyz, xyz[a], sizeof atoms.atom[a].xyz);
    }
    TSR_THEN(status, tsr_profile_compute_atoms(s->w->maker, s->name[i], &atoms,
                                               s->is_first && i == 0,
                                               &r->structure, err));
    tsr_pool_clear(&pool);
    return status;
}

/* Computes and fits structure i. Of the models of a file only the first is
 * commented on. */
static tsr_status compute_one(const series *s, int i, tsr_profile_result *r,
                              tsr_err *err)
{
    const work *w = s->w;
    const int is_file = s->models.atoms == NULL;
    char at[64];
    TSR_TRY(is_file
                ? tsr_profile_compute(w->maker, s->name[i], &r->structure, err)
                : compute_model(s, i, r, err));
    TSR_TRY(tsr_profile_finish(&w->fit, w->saxs, r, err));
    if (w->saxs == NULL || s->in_ensemble || (i > 0 && !is_file))
        return TSR_OK;
    tsr_profile_bounds_text(&r->fit, at, sizeof at);
    if (at[0] != '\0')
        tsr_warn(
            w->log,
            "'%s': the fit is at a bound%s; --c1 and --c2 set the ranges%s",
            s->name[i], at, layer_cause(&r->fit));
    return tsr_profile_check_rg(r, w->saxs, w->log, err);
}

/* Frees the curves of a result, but not the numbers of the table. */
static void drop_curves(tsr_profile_result *r)
{
    tsr_partials_clear(&r->structure.partials);
    free(r->curve);
    r->curve = NULL;
}

/* What another rank could not read is named again there. */
static void drop_pointers(tsr_profile_result *r)
{
    drop_curves(r);
    free(r->structure.path);
    r->structure.path = NULL;
}

/* Of single fits, only the best keeps its curves. */
static void keep_best(series *s, int i)
{
    pthread_mutex_lock(&s->lock);
    const double chi2 = s->result[i].fit.chi2;
    const double least = s->best < 0 ? HUGE_VAL : s->result[s->best].fit.chi2;
    const int is_better = chi2 < least || (chi2 == least && i < s->best);
    const int other = is_better ? s->best : i;
    if (is_better)
        s->best = i;
    if (other >= 0)
        drop_curves(&s->result[other]);
    pthread_mutex_unlock(&s->lock);
}

/* Computes result i. */
static tsr_status compute_item(void *context, int i, int thread, tsr_err *err)
{
    series *s = context;
    const char *output = s->w->o->output;
    tsr_profile_result *r = &s->result[i];
    (void)thread;
    tsr_status status = compute_one(s, i, r, err);
    if (!s->in_ensemble && output != NULL && is_folder(output))
        TSR_THEN(status, write_one(s->w, r, err));
    if (status != TSR_OK && s->models.atoms != NULL)
        status = tsr_wrap(err, status, "%s", s->name[i]);
    if (s->over_ranks)
        drop_pointers(r);
    else if (!s->in_ensemble && status == TSR_OK)
        keep_best(s, i);
    return status;
}

/* Opens at most `most` models of a file, or frames of a trajectory, and names
 * them. The caller clears s->models, also after an error. */
static tsr_status open_models(series *s, const char *path,
                              const char *trajectory, int most, tsr_err *err)
{
    tsr_map_models *m = &s->models;
    char **name;
    TSR_TRY(tsr_map_models_open(path, trajectory, most, s->w->log, m, err));
    if (m->chain != NULL)
        return tsr_fail(err, TSR_E_NOINPUT,
                        "'%s' is a run; write its conformations to a file with "
                        "'tessera export'",
                        path);
    tsr_pool *pool = &m->atoms->pool;
    s->n = m->n < most ? m->n : most;
    tsr_pool_array(pool, name, s->n);
    for (int i = 0; name != NULL && i < s->n; i++) {
        const int k = tsr_even_index(m->n, s->n, i);
        name[i] = m->n > 1
                      ? tsr_pool_format(pool, "%s:%ld", path,
                                        m->draw != NULL ? m->draw[k] : k + 1L)
                      : tsr_pool_text(pool, path);
    }
    s->name = (const char *const *)name;
    return tsr_pool_check(pool, err);
}

/* Computes all results, [s->n] out, which the caller frees. */
static tsr_status compute_series(series *s, tsr_err *err)
{
    s->result = calloc((size_t)s->n, sizeof *s->result);
    TSR_TRY(tsr_allocated(s->result, err));
    s->best = -1;
    pthread_mutex_init(&s->lock, NULL);
    tsr_status status =
        s->over_ranks
            ? tsr_parallel_share(s->n, s->w->n_thread, compute_item, s,
                                 sizeof *s->result, s->result, err)
            : tsr_parallel_try(s->n, s->w->n_thread, compute_item, s, err);
    for (int i = 0; s->over_ranks && i < s->n && status == TSR_OK; i++) {
        s->result[i].structure.path = strdup(s->name[i]);
        status = tsr_allocated(s->result[i].structure.path, err);
    }
    pthread_mutex_destroy(&s->lock);
    return status;
}

static void clear_results(int n, tsr_profile_result *result)
{
    for (int i = 0; result != NULL && i < n; i++)
        tsr_profile_result_clear(&result[i]);
    free(result);
}

/* ---- an ensemble ----
 *
 * The ensemble consists of every model of every file. Its curve is the mean of
 * their partial profiles, and its weights are those with which this mean fits
 * the data best.
 *
 * A mean of profiles at the same c1 and c2 is the profile of the mean partial
 * profiles, so that the fit of one structure also serves an ensemble. Least
 * squares alternates between the weights and c1, c2, each optimised with the
 * other fixed. Maximum entropy uses the c1 and c2 of equal weights, from which
 * its weights depart as little as possible. */

typedef struct {
    tsr_pool pool; /* owns weight */
    int n;
    tsr_profile_result *model;          /* [n] results of each model alone */
    int n_way;                          /* without data only 1: equal weights */
    tsr_profile_result mean[N_WEIGHTS]; /* "equal weights", ... */
    double *weight[N_WEIGHTS];          /* [n] weights with sum 1 */
    tsr_maxent_point point[N_WEIGHTS];
} ensemble;

/* All models of file i with all atoms. */
static tsr_status compute_file(void *context, int i, int thread, tsr_err *err)
{
    series *s = &((series *)context)[i];
    (void)thread;
    tsr_status status = open_models(s, s->name[0], NULL, INT_MAX, err);
    TSR_THEN(status, compute_series(s, err));
    tsr_map_models_clear(&s->models);
    return status;
}

/* The models of all files with all atoms, or the first of each as bodies. */
static tsr_status compute_models(const work *w, int n_path,
                                 const char *const *path, ensemble *e,
                                 tsr_err *err)
{
    series files = {.w = w, .n = n_path, .name = path, .in_ensemble = 1};
    series *file;
    if (w->o->bodies != TSR_PROFILE_ATOMS) {
        const tsr_status status = compute_series(&files, err);
        e->n = n_path;
        e->model = files.result;
        return status;
    }
    tsr_pool_array(&e->pool, file, n_path);
    TSR_TRY(tsr_pool_check(&e->pool, err));
    for (int i = 0; i < n_path; i++) {
        file[i] = files;
        file[i].n = 0;
        file[i].name = &path[i];
        file[i].is_first = i == 0;
    }
    tsr_status status =
        tsr_parallel_try(n_path, w->n_thread, compute_file, file, err);
    for (int i = 0; i < n_path; i++)
        files.n += file[i].n;
    e->model = calloc((size_t)files.n, sizeof *e->model);
    TSR_THEN(status, tsr_allocated(e->model, err));
    for (int i = 0; i < n_path; i++) {
        const int n = file[i].result != NULL ? file[i].n : 0;
        if (e->model == NULL) {
            clear_results(n, file[i].result);
            continue;
        }
        for (int k = 0; k < n; k++)
            e->model[e->n++] = file[i].result[k];
        free(file[i].result);
    }
    return status;
}

static tsr_status read_models(const work *w, int n_path,
                              const char *const *path, ensemble *e,
                              tsr_err *err)
{
    tsr_profile_maker_expect(w->maker, n_path);
    TSR_TRY(compute_models(w, n_path, path, e, err));
    return e->n > 1 ? TSR_OK
                    : tsr_fail(err, TSR_E_USAGE,
                               "--ensemble: '%s' has one model; give several "
                               "files, or one file with several models",
                               path[0]);
}

/* Chooses the finest grid that any model needs, up to the smallest q range. */
static tsr_q_grid common_grid(const ensemble *e)
{
    tsr_q_grid grid = e->model[0].structure.partials.grid;
    double top = HUGE_VAL;
    for (int i = 0; i < e->n; i++) {
        const tsr_q_grid *g = &e->model[i].structure.partials.grid;
        top = fmin(top, (g->n_q - 1) * g->dq_inv_ang);
        if (g->dq_inv_ang < grid.dq_inv_ang)
            grid = *g;
    }
    grid.n_q = (int)floor(top / grid.dq_inv_ang + 1e-9) + 1;
    return grid;
}

static void add_numbers(tsr_profile_structure *to,
                        const tsr_profile_structure *s, double w)
{
    to->n_body = s->n_body > to->n_body ? s->n_body : to->n_body;
    to->mass += w * s->mass;
    to->volume += w * s->volume;
    to->radius_ang += w * s->radius_ang;
    to->layer_contrast = s->layer_contrast;
    to->is_neutron = s->is_neutron;
    to->match_d2o += w * s->match_d2o;
    to->usual_c2 = s->usual_c2;
    to->rg_ang += w * s->rg_ang * s->rg_ang;
    to->seconds += s->seconds;
    if (w > 0.0)
        to->d_max_ang = fmax(to->d_max_ang, s->d_max_ang);
    to->partials.radius_ang += w * s->partials.radius_ang;
}

static tsr_status add_partials(tsr_partials *to, const tsr_partials *p,
                               double w, const double *q, tsr_err *err)
{
    tsr_partial_curves curves;
    const size_t n_q = (size_t)to->grid.n_q;
    const size_t n_pair = (size_t)(to->n_comp * (to->n_comp + 1) / 2);
    TSR_TRY(tsr_partial_curves_make(p, to->grid.n_q, q, &curves, err));
    for (size_t k = 0; k < n_pair * n_q; k++)
        to->pair[k] += w * curves.pair[k];
    for (size_t k = 0; k < n_q; k++)
        to->self[k] += w * curves.self[k];
    tsr_partial_curves_clear(&curves);
    return TSR_OK;
}

/* weight [e->n], with sum 1. */
static tsr_status make_mean(const ensemble *e, const char *name,
                            const double *weight, tsr_profile_result *out,
                            tsr_err *err)
{
    tsr_profile_structure *s = &out->structure;
    tsr_partials *p = &s->partials;
    tsr_status status = TSR_OK;
    tsr_profile_structure_clear(s);
    p->n_comp = out->n_comp = e->model[0].n_comp;
    p->grid = common_grid(e);
    const size_t n_q = (size_t)p->grid.n_q;
    double *q = calloc(n_q, sizeof *q);
    p->pair =
        calloc((size_t)(p->n_comp * (p->n_comp + 1) / 2) * n_q, sizeof(double));
    p->self = calloc(n_q, sizeof *p->self);
    s->path = strdup(name);
    if (q == NULL || p->pair == NULL || p->self == NULL || s->path == NULL)
        status = tsr_no_memory(err);
    for (size_t k = 0; k < n_q && status == TSR_OK; k++)
        q[k] = (double)k * p->grid.dq_inv_ang;
    for (int i = 0; i < e->n && status == TSR_OK; i++) {
        add_numbers(s, &e->model[i].structure, weight[i]);
        if (weight[i] > 0.0)
            status = add_partials(p, &e->model[i].structure.partials, weight[i],
                                  q, err);
    }
    s->rg_ang = sqrt(s->rg_ang);
    free(q);
    return status;
}

static const char *const names[] = {"equal weights", "least squares",
                                    "maximum entropy"};

/* curve [n][n_point] out: I of every model at c1 and c2, electrons squared. */
static tsr_status compute_curves(const ensemble *e, const tsr_saxs *saxs,
                                 double c1, double c2, double *curve,
                                 tsr_err *err)
{
    for (int i = 0; i < e->n; i++) {
        tsr_partial_curves curves;
        TSR_TRY(tsr_partial_curves_of_data(&e->model[i].structure.partials,
                                           saxs, &curves, err));
        tsr_contrast_intensity(&curves, c1, c2,
                               curve + (size_t)i * (size_t)saxs->n);
        tsr_partial_curves_clear(&curves);
    }
    return TSR_OK;
}

static tsr_status compute_least_squares_weights(const work *w, ensemble *e,
                                                const tsr_linear *linear,
                                                double *curve, tsr_err *err)
{
    enum { MOST_TURNS = 20 };
    const double enough = 1e-5; /* of chi2 */
    tsr_profile_result *r = &e->mean[SQUARES];
    double c1 = e->mean[0].fit.c1, c2 = e->mean[0].fit.c2, before = HUGE_VAL;
    for (int turn = 0; turn < MOST_TURNS; turn++) {
        TSR_TRY(compute_curves(e, w->saxs, c1, c2, curve, err));
        TSR_TRY(tsr_ensemble_least_squares(e->n, curve, w->saxs, linear,
                                           e->weight[SQUARES],
                                           &e->point[SQUARES], err));
        TSR_TRY(make_mean(e, names[SQUARES], e->weight[SQUARES], r, err));
        TSR_TRY(fit_data(&w->fit, w->saxs, r, err));
        if (r->fit.chi2 > (1.0 - enough) * before)
            break;
        before = r->fit.chi2;
        c1 = r->fit.c1;
        c2 = r->fit.c2;
    }
    return TSR_OK;
}

static tsr_status compute_entropy_weights(const work *w, ensemble *e,
                                          const tsr_linear *linear,
                                          double *curve, tsr_err *err)
{
    const tsr_profile_fit *equal = &e->mean[0].fit;
    tsr_profile_fit_options there = w->fit;
    there.c1[0] = there.c1[1] = equal->c1;
    there.c2[0] = there.c2[1] = equal->c2;
    TSR_TRY(compute_curves(e, w->saxs, equal->c1, equal->c2, curve, err));
    TSR_TRY(tsr_ensemble_maxent(e->n, curve, w->saxs, linear, w->o->theta,
                                e->weight[ENTROPY], &e->point[ENTROPY], err));
    TSR_TRY(make_mean(e, names[ENTROPY], e->weight[ENTROPY], &e->mean[ENTROPY],
                      err));
    return fit_data(&there, w->saxs, &e->mean[ENTROPY], err);
}

/* Means and weights. */
static tsr_status compute_weights(const work *w, ensemble *e, tsr_err *err)
{
    const tsr_linear linear = {1, w->fit.fit_background, 1.0, w->fit.background,
                               0.0};
    const size_t n = (size_t)e->n;
    double *curve;
    for (int k = 0; k < N_WEIGHTS; k++)
        tsr_pool_array(&e->pool, e->weight[k], n);
    tsr_pool_array(&e->pool, curve,
                   w->saxs != NULL ? n * (size_t)w->saxs->n : 0);
    TSR_TRY(tsr_pool_check(&e->pool, err));
    for (size_t i = 0; i < n; i++)
        e->weight[0][i] = 1.0 / e->n;
    TSR_TRY(make_mean(e, names[0], e->weight[0], &e->mean[0], err));
    e->n_way = w->saxs == NULL ? 1 : N_WEIGHTS;
    e->point[0] = (tsr_maxent_point){.effective = 1.0};
    if (w->saxs != NULL) {
        TSR_TRY(fit_data(&w->fit, w->saxs, &e->mean[0], err));
        TSR_TRY(compute_least_squares_weights(w, e, &linear, curve, err));
        TSR_TRY(compute_entropy_weights(w, e, &linear, curve, err));
    }
    for (int k = 0; k < e->n_way; k++)
        TSR_TRY(tsr_profile_finish(&w->fit, w->saxs, &e->mean[k], err));
    return TSR_OK;
}

/* ---- what is told ---- */

/* Name of a structure in the table: the file name, or the path where files have
 * the same name. */
static const char *name_of(const work *w, const tsr_profile_result *r)
{
    return w->has_same_names ? r->structure.path
                             : tsr_text_file_name(r->structure.path);
}

static int by_file_name(const void *a, const void *b)
{
    return strcmp(tsr_text_file_name(*(const char *const *)a),
                  tsr_text_file_name(*(const char *const *)b));
}

/* Two paths with the same file name: same [2] out, NULL if there are none.
 * Errors: TSR_E_NOMEM. */
static tsr_status find_same_names(int n, const char *const *path,
                                  const char *same[2], tsr_err *err)
{
    const char **sorted = malloc((size_t)n * sizeof *sorted);
    same[0] = same[1] = NULL;
    TSR_TRY(tsr_allocated(sorted, err));
    memcpy(sorted, path, (size_t)n * sizeof *sorted);
    qsort(sorted, (size_t)n, sizeof *sorted, by_file_name);
    for (int i = 1; i < n && same[0] == NULL; i++)
        if (by_file_name(&sorted[i - 1], &sorted[i]) == 0) {
            same[0] = sorted[i - 1];
            same[1] = sorted[i];
        }
    free(sorted);
    return TSR_OK;
}

static const char *bound_name(int at)
{
    return at < 0 ? "lower" : at > 0 ? "upper" : NULL;
}

/* c1 and c2, r0 and layer being these in units of their own: the mean radius of
 * what an atom displaces, A, and by how much the layer is denser than the
 * buffer, e/A^3. A parameter at its bound is marked, since what the fit says of
 * it is then the bound alone. */
static void add_contrast(tsr_table *t, const tsr_profile_result *r)
{
    const tsr_profile_structure *s = &r->structure;
    const tsr_profile_fit *f = &r->fit;
    const double c1 = r->n_comp == 3 ? f->c1 : (double)NAN;
    const double c2 = r->n_comp == 3 ? f->c2 : (double)NAN;
    if (f->n_point == 0) {
        tsr_table_put(t, "c1 %g displaced_radius %g c2 %g layer_contrast %g",
                      c1, c1 * s->radius_ang, c2, c2 * s->layer_contrast);
    } else {
        tsr_table_put(t, f->c1_at != 0 ? "c1|c1~ %8.4f*" : "c1|c1~ %8.4f~", c1);
        tsr_table_put(t, "displaced_radius|r0 %6.3f", c1 * s->radius_ang);
        tsr_table_put(t, f->c2_at != 0 ? "c2|c2~ %7.3f*" : "c2|c2~ %7.3f~", c2);
        tsr_table_put(t, "layer_contrast|layer %6.4f", c2 * s->layer_contrast);
    }
    tsr_table_put(t, "c1_at_bound %s c2_at_bound %s", bound_name(f->c1_at),
                  bound_name(f->c2_at));
    tsr_table_put(t, "displaced_volume %g", pow(c1, 3.0) * s->volume);
}

/* A row, which the caller ends. */
static void add_result(tsr_table *t, const char *key,
                       const tsr_profile_result *r, const char *name, int width)
{
    const tsr_profile_structure *s = &r->structure;
    const tsr_profile_fit *f = &r->fit;
    char cormap[48];
    tsr_table_row(t, key);
    tsr_table_put(t, "structure %s |structure %-*s", s->path, width, name);
    if (f->n_point > 0)
        tsr_table_put(t,
                      "n_bodies %d chi2|chi2/N %8.3f reduced_chi2|reduced "
                      "%8.3f n_points %d n_parameters %d |CorMap~p %8s "
                      "cormap_p %g longest_run %d",
                      s->n_body, f->chi2, f->reduced_chi2, f->n_point,
                      f->n_parameter, tsr_cormap_text("", f->cormap_p, cormap),
                      f->cormap_p, f->longest_run);
    else
        tsr_table_put(t, "n_bodies|bodies %8d", s->n_body);
    add_contrast(t, r);
    if (f->n_point > 0)
        tsr_table_put(t, "scale|scale %10.4g background|background %10.3g",
                      f->scale, f->background);
    if (s->is_neutron)
        tsr_table_put(t, "match_d2o %g", s->match_d2o);
    tsr_table_put(t,
                  "mass %g cm_per_mg_ml %g rg_model|Rg %7.2f "
                  "rg_guinier|Rg~fit %7.2f d_max|D_max %6.1f",
                  s->mass, tsr_profile_absolute(s), s->rg_ang, r->rg_guinier,
                  s->d_max_ang);
    if (f->n_point > 0)
        tsr_table_put(t, "i0|I(0) %10.4g", r->i0);
    else
        tsr_table_put(t,
                      s->is_neutron ? "i0|I(0),~fm^2 %11.5g |ml/(mg~cm) %13.5g"
                                    : "i0|I(0),~e^2 %11.5g |ml/(mg~cm) %13.5g",
                      r->i0, r->i0 * tsr_profile_absolute(s));
    tsr_table_put(t, "method %s predicted_seconds %g engine_seconds %g",
                  tsr_profile_method_name(s->method), s->predicted_s,
                  s->seconds);
}

static void print_results(const work *w, tsr_json *json, int n,
                          const tsr_profile_result *result)
{
    tsr_table t = {.out = w->out, .json = json};
    int width = 9;
    for (int i = 0; i < n; i++) {
        const int own = tsr_text_width(name_of(w, &result[i]));
        width = own > width ? own : width;
    }
    for (int i = 0; i < n; i++) {
        add_result(&t, NULL, &result[i], name_of(w, &result[i]), width);
        tsr_table_end(&t);
    }
}

/* Adds a stated value to the list, with that of tessera or of its model. */
static void add(tsr_words *w, int *n, const char *what, double stated,
                const char *unit, double found, const char *where)
{
    if (isnan(stated))
        return;
    tsr_words_add(w, "%s%s %.4g%s", (*n)++ == 0 ? "" : ", ", what, stated,
                  unit);
    if (isfinite(found))
        tsr_words_add(w, " (%.4g %s)", found, where);
}

void tsr_profile_describe_entry(const tsr_profile_result *r,
                                const tsr_saxs *saxs, tsr_words *words)
{
    const tsr_sas_entry *e = &saxs->entry;
    const tsr_profile_structure *model = &r->structure;
    const double mass = isfinite(e->mass) ? e->mass : e->mass_porod;
    const double ours = model->mass / 1000.0;
    int n = 0;
    if (e->name[0] == '\0')
        return;
    tsr_words_add(words, "The entry %s states: ", e->name);
    add(words, &n, "Guinier's Rg", e->rg, " Angstrom", saxs->rg_guinier,
        "here");
    add(words, &n, "Rg of P(r)", e->rg_pr, " Angstrom", (double)NAN, "");
    add(words, &n, "D_max", e->d_max, " Angstrom", model->d_max_ang,
        "in the model");
    add(words, &n, "mass", mass, " kDa", ours,
        mass > 1.4 * ours || mass < 0.7 * ours
            ? "in the model: another oligomer, or missing parts?"
            : "in the model");
    for (int i = 0; i < e->n_fit; i++)
        add(words, &n, "chi2 of a fit", e->chi2[i], "",
            i + 1 < e->n_fit ? (double)NAN : r->fit.chi2, "per point here");
    tsr_words_add(words, n == 0 ? "no results." : ".");
}

void tsr_profile_put_entry(const tsr_saxs *saxs, tsr_json *json)
{
    const tsr_sas_entry *e = &saxs->entry;
    if (e->name[0] == '\0') {
        tsr_json_text(json, "entry", NULL);
        return;
    }
    tsr_json_members(json,
                     "entry{ name %s source %s rg_guinier %g rg_pr %g d_max %g "
                     "mass %g mass_porod %g",
                     e->name, e->source, e->rg, e->rg_pr, e->d_max, e->mass,
                     e->mass_porod);
    tsr_json_numbers(json, "fits_chi2", e->n_fit, e->chi2);
    tsr_json_close(json);
}

/* A sentence on the SASBDB entry of the data, if there is one. */
static tsr_status print_entry(const work *w, const tsr_profile_result *r,
                              tsr_err *err)
{
    tsr_words words;
    if (w->saxs == NULL || w->saxs->entry.name[0] == '\0')
        return TSR_OK;
    tsr_words_begin(&words);
    tsr_profile_describe_entry(r, w->saxs, &words);
    return tsr_words_print(&words, w->out, 0, "", err);
}

static void print(const work *w, int n, const tsr_profile_result *result)
{
    const tsr_saxs *saxs = w->saxs;
    int any_bound = 0;
    if (saxs != NULL)
        fprintf(w->out, "data %s: %d points, q %.4g to %.4g 1/A, ",
                tsr_text_file_name(saxs->path), saxs->n, saxs->q[0],
                saxs->q[saxs->n - 1]);
    if (saxs != NULL && isnan(saxs->rg_guinier))
        fputs("no Guinier range\n", w->out);
    else if (saxs != NULL)
        fprintf(w->out, "Guinier Rg %.2f A, I(0) %.4g\n", saxs->rg_guinier,
                saxs->i0_guinier);
    print_results(w, NULL, n, result);
    for (int i = 0; i < n; i++)
        any_bound |= result[i].fit.c1_at != 0 || result[i].fit.c2_at != 0;
    if (saxs == NULL)
        fputs("ml/(mg cm): I(0) on the absolute scale, 1/cm at 1 mg/ml\n",
              w->out);
    else
        fprintf(
            w->out,
            "r0: mean radius of the volume that an atom displaces, A; layer: "
            "excess density of the hydration layer over the buffer, in %s\n",
            result->structure.is_neutron ? "1e-6/A^2" : "e/A^3");
    if (any_bound)
        fputs("*: at its bound, and so determined by the bound, not by the "
              "data\n",
              w->out);
    fputs("Rg: of the atoms or bodies, A; Rg fit: Guinier's Rg of the computed "
          "curve\n",
          w->out);
}

static void print_ensemble(const work *w, const ensemble *e)
{
    const double least = 1e-3;
    int width = 5, n_carrying = 0;
    tsr_table t = {.out = w->out};
    fprintf(w->out, "ensemble of %d models\n", e->n);
    print(w, e->n_way, e->mean);
    if (w->saxs == NULL)
        return;
    for (int i = 0; i < e->n; i++) {
        const int own =
            tsr_text_width(tsr_text_file_name(e->model[i].structure.path));
        width = own > width ? own : width;
        n_carrying += e->weight[SQUARES][i] >= least;
    }
    fprintf(w->out,
            "least squares: %d of %d models have a weight above 0\nmaximum "
            "entropy: theta %.3g, %.0f %% of the ensemble is used\n\n",
            n_carrying, e->n, e->point[ENTROPY].theta,
            100.0 * e->point[ENTROPY].effective);
    for (int i = 0; i < e->n; i++) {
        const tsr_profile_result *r = &e->model[i];
        tsr_table_row(&t, NULL);
        tsr_table_put(&t,
                      "|model %-*s |chi2/N %8.3f |Rg %7.2f |least~squares "
                      "%14.3f |maximum~entropy %16.3f",
                      width, tsr_text_file_name(r->structure.path), r->fit.chi2,
                      r->structure.rg_ang, e->weight[SQUARES][i],
                      e->weight[ENTROPY][i]);
        tsr_table_end(&t);
    }
    fputs("chi2/N: of the model alone, with its own c1, c2 and scale\n",
          w->out);
}

static void write_ensemble(tsr_json *j, const ensemble *e)
{
    static const char *const key[N_WEIGHTS] = {"equal", "least_squares",
                                               "maximum_entropy"};
    tsr_table t = {.json = j};
    tsr_json_object(j, "ensemble");
    for (int k = 0; k < e->n_way && k < N_WEIGHTS; k++) {
        add_result(&t, key[k], &e->mean[k], "", 0);
        if (k == ENTROPY)
            tsr_json_number(j, "theta", e->point[k].theta);
        if (k > 0)
            tsr_json_number(j, "effective", e->point[k].effective);
        tsr_json_numbers(j, "weights", e->n, e->weight[k]);
        tsr_table_end(&t);
    }
    tsr_json_close(j);
}

/* e NULL: each structure is fitted alone. */
static void print_json(const work *w, int n, const tsr_profile_result *result,
                       const ensemble *e)
{
    const tsr_saxs *saxs = w->saxs;
    tsr_json j = {.out = w->out, .digits = 9};
    tsr_json_object(&j, NULL);
    tsr_json_members(&j, "bodies %s engine %s", bodies_words[w->o->bodies],
                     tsr_profile_maker_describe(w->maker));
    tsr_json_text(&j, "data", saxs != NULL ? saxs->path : NULL);
    if (saxs != NULL) {
        tsr_json_members(&j,
                         "n_points %d rg_data %g i0_data %g "
                         "noise_by_neighbours %g neighbours_share_noise %i",
                         saxs->n, saxs->rg_guinier, saxs->i0_guinier,
                         saxs->noise.next, saxs->noise.is_shared);
        tsr_profile_put_entry(saxs, &j);
    }
    tsr_json_array(&j, "structures");
    print_results(w, &j, n, result);
    tsr_json_close(&j);
    if (e != NULL)
        write_ensemble(&j, e);
    tsr_json_close(&j);
}

/* Text in the first line of a .fit file that distinguishes files of tessera
 * from those of FoXS. */
#define FIT_FILE_MARK ", by tessera\n"

/* ---- files ----
 *
 * Curves, or fits in FoXS's .fit format, which other programs read, each with a
 * picture. Files of one command have different names, so that none replaces
 * another. */

static const char *file_ending(const char *path)
{
    const char *slash = strrchr(path, '/'), *dot = strrchr(path, '.');
    return dot == NULL || (slash != NULL && dot < slash) ? path + strlen(path)
                                                         : dot;
}

static int is_folder(const char *path)
{
    struct stat info;
    size_t n = strlen(path);
    return (n > 0 && path[n - 1] == '/') ||
           (stat(path, &info) == 0 && S_ISDIR(info.st_mode));
}

/* Names the files of one structure, in the folder `output` or with that name:
 * x.fit for x.pdb, x-12.fit for x.pdb:12. The names belong to the pool. */
static tsr_status name_files(const char *output, const char *structure,
                             int is_fit, tsr_pool *pool, char **name,
                             char **picture, tsr_err *err)
{
    const char *with = is_fit ? ".fit" : ".dat";
    if (is_folder(output)) {
        const char *from = tsr_text_file_name(structure);
        size_t n = (size_t)(file_ending(from) - from);
        const char *model = strchr(from + n, ':');
        if (strncmp(from + n, ".gz", 3) == 0) /* x.pdb.gz */
            for (size_t i = n; i-- > 1;)
                if (from[i] == '.') {
                    n = i;
                    break;
                }
        *name = tsr_pool_format(pool, "%s%s%.*s%s%s%s", output,
                                output[strlen(output) - 1] == '/' ? "" : "/",
                                (int)n, from, model != NULL ? "-" : "",
                                model != NULL ? model + 1 : "", with);
    } else {
        *name = tsr_pool_format(pool, "%s%s", output,
                                *file_ending(output) == '\0' ? with : "");
    }
    TSR_TRY(tsr_pool_check(pool, err));
    *picture = tsr_pool_format(pool, "%.*s.svg",
                               (int)(file_ending(*name) - *name), *name);
    return tsr_pool_check(pool, err);
}

static tsr_status check_names(const char *output, int n,
                              const char *const *structure, tsr_err *err)
{
    const char *same[2];
    TSR_TRY(find_same_names(n, structure, same, err));
    return same[0] == NULL ? TSR_OK
                           : tsr_fail(err, TSR_E_USAGE,
                                      "--output '%s': '%s' and '%s' would get "
                                      "the same file name; rename one",
                                      output, same[0], same[1]);
}

/* n: number of structures if output is a folder, else 1. */
static tsr_status check_targets(const char *output, int n,
                                const char *const *structure, int is_fit,
                                const tsr_file_target *target, tsr_pool *pool,
                                tsr_err *err)
{
    for (int i = 0; i < n; i++) {
        char *name, *picture;
        TSR_TRY(name_files(output, structure[i], is_fit, pool, &name, &picture,
                           err));
        const int is_cif = is_fit && tsr_sascif_is_name(name);
        TSR_TRY(tsr_file_check_target(target, name,
                                      is_cif   ? "data_"
                                      : is_fit ? "# SAXS profile:"
                                               : "# tessera ",
                                      is_cif   ? TSR_SASCIF_MARK
                                      : is_fit ? FIT_FILE_MARK
                                               : " profile:",
                                      err));
        TSR_TRY(tsr_file_check_target(target, is_fit ? picture : NULL, "<svg",
                                      TSR_SVG_MARK, err));
    }
    return TSR_OK;
}

tsr_status tsr_profile_check_output(const char *output, int is_forced, int n,
                                    const char *const *structure,
                                    const char *data, const char *table,
                                    tsr_err *err)
{
    tsr_pool pool = {0};
    const char **input;
    if (output == NULL)
        return TSR_OK;
    const int each = is_folder(output);
    tsr_pool_array(&pool, input, n + 2);
    TSR_TRY(tsr_pool_check(&pool, err));
    for (int i = 0; i < n; i++)
        input[i] = structure[i];
    input[n] = data;
    input[n + 1] = table;
    const tsr_file_target target = {.maker = "profile",
                                    .n_input = n + 2,
                                    .input = input,
                                    .is_forced = is_forced};
    tsr_status status = each ? check_names(output, n, structure, err) : TSR_OK;
    TSR_THEN(status, check_targets(output, each ? n : 1, structure,
                                   data != NULL, &target, &pool, err));
    tsr_pool_clear(&pool);
    return status;
}

/* Writes the columns q and I, and on request those of the vacuum, the excluded
 * volume and the hydration layer. */
static void print_curve(const work *w, const tsr_profile_result *r,
                        const tsr_partial_curves *c, const double *intensity,
                        FILE *out)
{
    const tsr_profile_fit *fit = &r->fit;
    const int has_parts = w->o->partials && r->n_comp == 3;
    const int n = c->n;
    fprintf(out,
            "# tessera " TSR_VERSION " profile: %.600s\n"
            "# c1 = %.5f, c2 = %.5f, %s is %.6g 1/cm at 1 mg/ml\n"
            "# q (1/Angstrom) I(q)%s\n",
            r->structure.path, fit->c1, fit->c2,
            r->structure.is_neutron ? "fm^2 of neutrons; 1 fm^2"
                                    : "electrons squared; 1 e^2",
            tsr_profile_absolute(&r->structure),
            has_parts ? " vacuum excluded-volume hydration" : "");
    for (int k = 0; k < n; k++) {
        fprintf(out, "%.8g %.8g", c->q[k], intensity[k]);
        if (has_parts) {
            double g = tsr_component_scale(fit->c1, c->radius_ang, c->q[k]);
            fprintf(out, " %.8g %.8g %.8g", c->pair[k],
                    g * g * c->pair[3 * n + k],
                    fit->c2 * fit->c2 * c->pair[5 * n + k]);
        }
        fputc('\n', out);
    }
}

/* path NULL: standard output. */
static tsr_status write_curve(const work *w, const char *path,
                              const tsr_profile_result *r, tsr_pool *pool,
                              tsr_err *err)
{
    const int n = (int)w->o->n_q;
    tsr_partial_curves curves = {0};
    double *q, *intensity;
    tsr_file_writer to = {.out = NULL};
    tsr_pool_array(pool, q, n);
    tsr_pool_array(pool, intensity, n);
    TSR_TRY(tsr_pool_check(pool, err));
    for (int k = 0; k < n; k++)
        q[k] = w->q_range[0] + (w->q_max - w->q_range[0]) * k / (n - 1);
    TSR_TRY(
        tsr_partial_curves_make(&r->structure.partials, n, q, &curves, err));
    tsr_contrast_intensity(&curves, r->fit.c1, r->fit.c2, intensity);
    tsr_status status = path != NULL ? tsr_file_begin(&to, path, err) : TSR_OK;
    if (status == TSR_OK)
        print_curve(w, r, &curves, intensity, path != NULL ? to.out : w->out);
    tsr_partial_curves_clear(&curves);
    return tsr_file_end(&to, status, err);
}

/* Writes the columns q, I_exp, sigma, I_model after three lines that begin with
 * '#', in the layout of FoXS's .fit files, or sasCIF by the ending of the name.
 * The model is scale I + background. */
static tsr_status write_fit(const tsr_saxs *s, const char *path,
                            const tsr_profile_result *r, tsr_err *err)
{
    char note[64]; /* ends the second line */
    const tsr_profile_fit *fit = &r->fit;
    const double first = s->q[0], last = s->q[s->n - 1];
    const tsr_saxs_columns columns = {.comment = r->structure.path,
                                      .n = s->n,
                                      .q = s->q,
                                      .intensity = s->intensity,
                                      .sigma = s->sigma,
                                      .rg = s->rg_guinier,
                                      .i0 = s->i0_guinier,
                                      .fit = r->curve,
                                      .chi2 = fit->chi2,
                                      .p = fit->cormap_p};
    tsr_file_writer to;
    if (tsr_sascif_is_name(path))
        return tsr_saxs_write(path, &columns, err);
    TSR_TRY(tsr_file_begin(&to, path, err));
    tsr_profile_bounds_text(fit, note, sizeof note);
    fprintf(to.out,
            "# SAXS profile: number of points = %d, q_min = %.8g, q_max = "
            "%.8g, delta_q = %.8g" FIT_FILE_MARK
            "# offset = %.8g, scaling c = %.8g, c1 = %.5f, c2 = %.5f, Chi^2 = "
            "%.6g%s\n"
            "#  q       exp_intensity   error model_intensity\n",
            s->n, first, last, s->n > 1 ? (last - first) / (s->n - 1) : 0.0,
            fit->background, fit->scale, fit->c1, fit->c2, fit->chi2, note);
    for (int k = 0; k < s->n; k++)
        fprintf(to.out, "%.8f %.8g %.8g %.8g\n", s->q[k], s->intensity[k],
                s->sigma[k], r->curve[k]);
    return tsr_file_end(&to, TSR_OK, err);
}

/* The last two parts of a path: many files are called model.pdb. */
static const char *shorten_path(const char *path)
{
    int n_slash = 0;
    for (const char *p = path + strlen(path); p > path; p--)
        if (p[-1] == '/' && ++n_slash == 2)
            return p;
    return path;
}

static const char *bound_mark(int at)
{
    return at == 0 ? "" : at < 0 ? " (lower bound)" : " (upper bound)";
}

/* Range of the residuals in the picture: their middle 99 %, but at least the
 * range of noise. Residuals outside are drawn as strokes at the edge, as a
 * single bad point would flatten all others. */
static void limit_residuals(tsr_figure *f)
{
    if (f->pool.failed)
        return;
    tsr_panel *panel = &f->panel[1];
    const int n = panel->layer[0].n;
    const double *q = panel->layer[0].x, *r = panel->layer[0].y;
    double *from, *to;
    tsr_pool_array(&f->pool, from, n);
    tsr_pool_array(&f->pool, to, n);
    if (f->pool.failed)
        return;
    for (int k = 0; k < n; k++)
        from[k] = fabs(r[k]);
    gsl_sort(from, 1, (size_t)n);
    panel->y1 = fmax(3.5, 1.15 * from[(int)(0.99 * (n - 1))]);
    panel->y0 = -panel->y1;
    for (int k = 0; k < n; k++) {
        const double edge = copysign(panel->y1, r[k]);
        const int is_beyond = fabs(r[k]) > panel->y1;
        from[k] = is_beyond ? edge : (double)NAN;
        to[k] = is_beyond ? 0.85 * edge : (double)NAN;
    }
    tsr_figure_layer(f, TSR_LAYER_ERRORS, NULL, TSR_COLOUR_DATA, n, q, from,
                     to);
}

static tsr_status write_picture(const tsr_saxs *saxs, const char *path,
                                const tsr_profile_result *r, tsr_err *err)
{
    const tsr_profile_fit *fit = &r->fit;
    char title[256], subtitle[256], contrast[96] = "", label[64] = "computed";
    char cormap[48];
    int n_below = 0;
    for (int k = 0; k < saxs->n; k++)
        n_below += saxs->intensity[k] <= 0.0;
    if (n_below > 0)
        snprintf(label, sizeof label,
                 "computed; %d points with I \xe2\x89\xa4 0 not shown",
                 n_below);
    if (r->n_comp == 3)
        snprintf(contrast, sizeof contrast,
                 " \xc2\xb7 c1 %.3f%s \xc2\xb7 c2 %.2f%s", fit->c1,
                 bound_mark(fit->c1_at), fit->c2, bound_mark(fit->c2_at));
    snprintf(title, sizeof title, "%.60s fitted to %.60s",
             shorten_path(r->structure.path), shorten_path(saxs->path));
    snprintf(subtitle, sizeof subtitle,
             "\xcf\x87\xc2\xb2/N %.3g, reduced %.3g%s%s", fit->chi2,
             fit->reduced_chi2,
             tsr_cormap_text(" \xc2\xb7 CorMap p ", fit->cormap_p, cormap),
             contrast);
    const tsr_fit_figure picture = {.n = saxs->n,
                                    .q = saxs->q,
                                    .intensity = saxs->intensity,
                                    .sigma = saxs->sigma,
                                    .model = r->curve,
                                    .model_label = label,
                                    .residual_title = "residual / \xcf\x83"};
    tsr_figure f = tsr_figure_new("fit", title, "q (1/\xc3\x85)", 650);
    f.subtitle = tsr_pool_text(&f.pool, subtitle);
    tsr_fit_figure_add(&f, &picture, 360);
    limit_residuals(&f);
    const double last = saxs->q[saxs->n - 1];
    f.x0 = saxs->q[0] < 0.15 * last ? 0.0 : saxs->q[0];
    f.x1 = last + 0.02 * (last - f.x0);
    tsr_status status = tsr_figure_finish(&f, err);
    TSR_THEN(status, tsr_figure_write_svg(&f, path, err));
    tsr_figure_clear(&f);
    return status;
}

tsr_status tsr_profile_write_fit(const char *name, const char *structure,
                                 const tsr_saxs *saxs,
                                 const tsr_profile_result *r, tsr_log *log,
                                 tsr_err *err)
{
    tsr_pool pool = {0};
    char *path, *picture;
    tsr_status status =
        name_files(name, structure, 1, &pool, &path, &picture, err);
    TSR_THEN(status, write_fit(saxs, path, r, err));
    TSR_THEN(status, write_picture(saxs, picture, r, err));
    if (status == TSR_OK)
        tsr_info(log, "wrote %s and %s", path, picture);
    tsr_pool_clear(&pool);
    return status;
}

static tsr_status write_one(const work *w, const tsr_profile_result *r,
                            tsr_err *err)
{
    const char *output = w->o->output;
    tsr_pool pool = {0};
    char *path = NULL, *picture;
    tsr_status status = TSR_OK;
    if (output != NULL && w->saxs != NULL)
        return tsr_profile_write_fit(output, r->structure.path, w->saxs, r,
                                     w->log, err);
    if (output != NULL)
        status = name_files(output, r->structure.path, 0, &pool, &path,
                            &picture, err);
    TSR_THEN(status, write_curve(w, path, r, &pool, err));
    if (status == TSR_OK && path != NULL)
        tsr_info(w->log, "wrote %s", path);
    tsr_pool_clear(&pool);
    return status;
}

/* ---- the command ---- */

/* Smallest chi2 first, and of equals the one with a curve. */
static int compare_chi2(const void *a, const void *b)
{
    const tsr_profile_result *x = a, *y = b;
    return x->fit.chi2 != y->fit.chi2
               ? (x->fit.chi2 > y->fit.chi2) - (x->fit.chi2 < y->fit.chi2)
               : (x->curve == NULL) - (y->curve == NULL);
}

static tsr_status run_single_fits(const work *w, series *s, tsr_err *err)
{
    const char *output = w->o->output;
    const int n = s->n, has_data = w->saxs != NULL;
    tsr_profile_maker_expect(w->maker, n);
    s->over_ranks =
        tsr_ranks_size() > 1 && n > 1 && (output == NULL || is_folder(output));
    tsr_status status = compute_series(s, err);
    if (status == TSR_OK && has_data)
        qsort(s->result, (size_t)n, sizeof *s->result, compare_chi2);
    if (output != NULL ? !is_folder(output)
                       : !has_data && n == 1 && !w->o->json)
        TSR_THEN(status, write_one(w, s->result, err));
    if (status == TSR_OK && w->o->json)
        print_json(w, n, s->result, NULL);
    else if (status == TSR_OK && (has_data || n > 1 || output != NULL)) {
        print(w, n, s->result);
        status = print_entry(w, s->result, err);
    }
    clear_results(n, s->result);
    return status;
}

static tsr_status run_ensemble(const work *w, int n, const char *const *path,
                               tsr_err *err)
{
    ensemble e = {.n = 0};
    tsr_status status = read_models(w, n, path, &e, err);
    TSR_THEN(status, compute_weights(w, &e, err));
    if (w->o->output != NULL || (w->saxs == NULL && !w->o->json))
        TSR_THEN(status, write_one(w, &e.mean[w->o->weights], err));
    if (status == TSR_OK && w->o->json)
        print_json(w, e.n, e.model, &e);
    else if (status == TSR_OK && (w->saxs != NULL || w->o->output != NULL))
        print_ensemble(w, &e);
    clear_results(e.n, e.model);
    for (int k = 0; k < N_WEIGHTS; k++)
        tsr_profile_result_clear(&e.mean[k]);
    tsr_pool_clear(&e.pool);
    return status;
}

static tsr_status compute(work *w, const tsr_args *args, series *s,
                          tsr_err *err)
{
    const options *o = w->o;
    const tsr_profile_spec spec = {.bodies = (tsr_profile_bodies)o->bodies,
                                   .solvent = (tsr_solvent_model)o->solvent,
                                   .density = o->density,
                                   .neutron = o->radiation ? &w->neutron : NULL,
                                   .device = o->device,
                                   .method = (tsr_profile_method)o->method,
                                   .q_max_inv_ang = w->q_max,
                                   .form_factors = o->form_factors};
    TSR_TRY(tsr_profile_maker_new(&spec, w->log, &w->maker, err));
    if (o->output != NULL && is_folder(o->output) &&
        mkdir(o->output, 0777) != 0 && !is_folder(o->output))
        return tsr_fail(err, TSR_E_IO, "cannot make the folder '%s'",
                        o->output);
    TSR_TRY(o->ensemble ? run_ensemble(w, args->n, args->argument, err)
                        : run_single_fits(w, s, err));
    tsr_debug(w->log, "engine: %s", tsr_profile_maker_describe(w->maker));
    return TSR_OK;
}

/* Lists the structures of single fits: the files, or models of the one file. */
static tsr_status list_structures(const tsr_args *args, series *s, tsr_err *err)
{
    const options *o = args->options;
    const int is_given = tsr_args_given(args, "frames") > 0;
    const int most = o->frames.word == 1 || (o->trajectory != NULL && !is_given)
                         ? INT_MAX
                     : o->frames.word < 0 ? (int)o->frames.number
                                          : 1;
    return o->trajectory == NULL && most == 1
               ? TSR_OK
               : open_models(s, s->name[0], o->trajectory, most, err);
}

static tsr_status profile(const tsr_args *args, FILE *out, tsr_log *log,
                          tsr_err *err)
{
    const options *o = args->options;
    const char *same[2];
    work w = {.out = out, .log = log};
    series s = {.w = &w, .n = args->n, .name = args->argument, .is_first = 1};
    TSR_TRY(make_settings(args, &w, err));
    TSR_TRY(tsr_profile_check_output(
        o->output, o->force, args->n, args->argument, o->data,
        o->trajectory != NULL ? o->trajectory : o->form_factors, err));
    TSR_TRY(find_same_names(args->n, args->argument, same, err));
    w.has_same_names = same[0] != NULL;
    tsr_status status = list_structures(args, &s, err);
    if (s.models.atoms != NULL)
        TSR_THEN(status, tsr_profile_check_output(o->output, o->force, s.n,
                                                  s.name, o->data, NULL, err));
    if (status == TSR_OK && o->output != NULL && !is_folder(o->output) &&
        o->data == NULL && !o->ensemble && s.n > 1)
        status = tsr_fail(err, TSR_E_USAGE,
                          "--output '%s' is one file, and there are %d curves: "
                          "'%s/' writes each into this folder, --ensemble "
                          "their mean",
                          o->output, s.n, o->output);
    w.q_max = w.q_range[1];
    if (status == TSR_OK && o->data != NULL) {
        status = tsr_saxs_read(o->data, (tsr_q_unit)o->unit, w.q_range, log,
                               &w.saxs, err);
        TSR_THEN(status,
                 tsr_saxs_set_resolution(w.saxs, &w.resolution, log, err));
        if (status == TSR_OK)
            w.q_max = tsr_saxs_q_max(w.saxs);
    }
    TSR_THEN(status, compute(&w, args, &s, err));
    tsr_profile_maker_free(w.maker);
    tsr_saxs_free(w.saxs);
    tsr_map_models_clear(&s.models);
    return status;
}

const tsr_command tsr_command_profile = {
    .name = "profile",
    .doc = "compute the curve of any structure, and fit it to data",
    .arguments = "STRUCTURE...",
    .options = fields,
    .size = sizeof(options),
    .about = "STRUCTURE is a PDB or mmCIF file, gzipped or not. All atoms "
             "except waters scatter; missing hydrogens are added to the atoms "
             "that carry them; displaced solvent and a hydration layer are "
             "part of the curve (docs/forward-model.md). With --data, scale, "
             "background, c1 and c2 are fitted, and structures are listed from "
             "best to worst. With --ensemble the structures, and all models of "
             "a file, form one mixture: its mean curve, and weights by least "
             "squares and by maximum entropy (docs/analysis.md).",
    .run = profile};
