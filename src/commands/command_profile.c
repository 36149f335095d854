/* tessera profile: computes curves of structures and fits them to data. */
#include "commands/command.h"
#include "commands/map_job.h"
#include "commands/solve.h"

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
static const char *const method_words[] = {"direct", "fft", "quadrature",
                                           "auto", NULL};
static const char *const background_words[] = {"fit", "none", NULL};
static const char *const frames_words[] = {"first", "all", NULL};

typedef struct {
    tsr_curve_options curve;
    char *output, *device, *form_factors, *c1, *c2, *trajectory;
    int bodies, solvent, method, partials;
    int force, json;
    tsr_number_or_word background;
    long n_q, threads;
    tsr_number_or_word frames;
} options;

static const tsr_field fields[] = {
    TSR_OPTIONS_CURVE(options),
    TSR_FIELD(CHOICE, "bodies", options, bodies, .letter = 'b',
              .argument = "KIND", .initial = "atoms", .words = bodies_words,
              .doc = "scatterers: all atoms, or two or one body per residue"),
    TSR_FIELD(CHOICE, "solvent-model", options, solvent, .argument = "NAME",
              .initial = "layer", .words = solvent_words,
              .doc = "hydration of all atoms: layer (water outside the "
                     "surface), atoms (water at the atoms, as in the tables of "
                     "bodies), or foxs (FoXS's formula, for comparison)"),
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
    TSR_FIELD(INT, "n-q", options, n_q, .argument = "N", .initial = "501",
              .min = 2, .max = 1e5,
              .doc = "number of points of a curve without --data"),
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
    TSR_FIELD(BOOL, "partials", options, partials,
              .doc = "without --data: also write the columns of the vacuum, "
                     "the excluded volume and the hydration layer"),
    {0}};

typedef struct {
    const options *o;
    /* Settings derived from the options. */
    double q_range[2];
    tsr_profile_fit_options fit;
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
    pthread_mutex_t lock;       /* guards the member below */
    int best; /* structure of smallest chi2 so far, the first of equals; -1 */
} series;

/* ---- options ---- */

const char *const tsr_curve_radiation_words[] = {"xray", "neutron", NULL};
const char *const tsr_curve_unit_words[] = {"auto", "1/A", "1/nm", NULL};
const char *const tsr_curve_dq_words[] = {"none", "column", "auto", NULL};

/* Options that have an effect only if is_used is 1. */
typedef struct {
    int is_used;
    const char *why;
    const char *option[8];
} use;

/* Refuses options that would be ignored, since the user expects an effect. */
static tsr_status refuse_unused(const tsr_args *args, size_t n, const use *rule,
                                tsr_err *err)
{
    for (size_t k = 0; k < n; k++)
        for (int i = 0; !rule[k].is_used && rule[k].option[i] != NULL; i++)
            if (tsr_args_given(args, rule[k].option[i]) > 0)
                return tsr_fail(err, TSR_E_USAGE, "--%s %s", rule[k].option[i],
                                rule[k].why);
    return TSR_OK;
}

tsr_status tsr_curve_check(const tsr_args *args, const tsr_curve_options *o,
                           tsr_neutron *neutron, tsr_err *err)
{
    const use rule[] = {{o->radiation,
                         "needs --radiation neutron",
                         {"d2o", "exchange", "deuterated"}},
                        {!o->radiation,
                         "is for X-rays; for neutrons --d2o gives the solvent",
                         {"solvent-density"}}};
    TSR_TRY(refuse_unused(args, sizeof rule / sizeof *rule, rule, err));
    neutron->d2o = o->d2o;
    neutron->exchange = o->exchange;
    TSR_TRY(tsr_deuterated_read(&o->deuterated, neutron, err));
    if (o->resolution.beam_profile != NULL && o->resolution.slit_length > 0.0)
        return tsr_fail(
            err, TSR_E_USAGE,
            "--beam-profile replaces the slit length; leave --slit-length out");
    if (o->q_max > 0.0 && !(o->q_min < o->q_max))
        return tsr_fail(err, TSR_E_USAGE, "--q-min %g is not below --q-max %g",
                        o->q_min, o->q_max);
    return TSR_OK;
}

tsr_status tsr_curve_read(const tsr_args *args, const tsr_curve_options *o,
                          tsr_log *log, tsr_saxs **out, tsr_err *err)
{
    const double q_range[2] = {o->q_min, o->q_max > 0.0 ? o->q_max : 1e3};
    tsr_resolution_options resolution = o->resolution;
    /* Neutron data have their resolution in the fourth column. */
    if (o->radiation && tsr_args_given(args, "resolution") == 0)
        resolution.dq.word = TSR_DQ_AUTO;
    TSR_TRY(
        tsr_saxs_read(o->data, (tsr_q_unit)o->unit, q_range, log, out, err));
    return tsr_saxs_set_resolution(*out, &resolution, log, err);
}

/* Refuses options that this combination of options would ignore. */
static tsr_status check_unused(const tsr_args *args, const options *o,
                               tsr_err *err)
{
    const int has_data = o->curve.data != NULL;
    const use rule[] = {
        {has_data,
         "needs --data",
         {"background", "q-unit", "resolution", "wavelength-spread",
          "slit-length", "slit-width", "beam-profile"}},
        {!has_data, "is not possible with --data", {"partials", "n-q"}},
        {!o->curve.radiation,
         "is for X-rays; neutrons use the layer model",
         {"solvent-model"}},
        {o->bodies == TSR_PROFILE_ATOMS && args->n == 1,
         "needs one structure, with --bodies atoms",
         {"trajectory", "frames"}},
        {o->bodies == TSR_PROFILE_ATOMS,
         "is for atoms; bodies have the hydration of their table",
         {"solvent-model"}},
        {o->bodies != TSR_PROFILE_ATOMS,
         "is a table of bodies; it needs --bodies one or two",
         {"form-factors"}}};
    return refuse_unused(args, sizeof rule / sizeof *rule, rule, err);
}

/* "LOW:HIGH", or one number: a fixed parameter. */
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
    s->q_range[0] = o->curve.q_min;
    s->q_range[1] = o->curve.q_max > 0.0    ? o->curve.q_max
                    : o->curve.data != NULL ? 1e3
                                            : 0.5;
    s->fit.fit_background = o->background.word == 0;
    s->fit.background = o->background.number;
    s->n_thread = tsr_threads(o->threads);
    TSR_TRY(check_unused(args, o, err));
    TSR_TRY(parse_range("c1", o->c1, 0.5, 2.0, s->fit.c1, err));
    TSR_TRY(parse_range("c2", o->c2, -100.0, 100.0, s->fit.c2, err));
    TSR_TRY(tsr_curve_check(args, &o->curve, &s->neutron, err));
    if (o->solvent == TSR_SOLVENT_FOXS && tsr_args_given(args, "c2") == 0)
        s->fit.c2[0] = -2.0;
    if (o->curve.radiation && tsr_args_given(args, "c1") == 0)
        s->fit.c1[0] = s->fit.c1[1] = 1.0; /* the default of runs */
    if (o->curve.radiation && o->bodies != TSR_PROFILE_ATOMS)
        return tsr_fail(err, TSR_E_USAGE,
                        "--radiation neutron needs atoms: the tables of bodies "
                        "are for X-rays");
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

tsr_status tsr_profile_compute_model(tsr_profile_maker *maker,
                                     const tsr_map_models *models, int k,
                                     const char *name, int is_logged,
                                     tsr_profile_structure *out, tsr_err *err)
{
    tsr_atoms atoms = *models->atoms;
    tsr_pool pool = {0};
    double(*xyz)[3];
    tsr_pool_array(&pool, xyz, atoms.n_atom);
    tsr_pool_array(&pool, atoms.atom, atoms.n_atom);
    tsr_status status = tsr_pool_check(&pool, err);
    TSR_THEN(status, tsr_map_models_frame(models, k, xyz, err));
    for (int a = 0; a < atoms.n_atom && status == TSR_OK; a++) {
        atoms.atom[a] = models->atoms->atom[a];
        memcpy(atoms.atom[a].xyz, xyz[a], sizeof atoms.atom[a].xyz);
    }
    TSR_THEN(status, tsr_profile_compute_atoms(maker, name, &atoms, is_logged,
                                               out, err));
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
                : tsr_profile_compute_model(
                      w->maker, &s->models,
                      tsr_even_index(s->models.n, s->n, i), s->name[i], i == 0,
                      &r->structure, err));
    TSR_TRY(tsr_profile_finish(&w->fit, w->saxs, r, err));
    if (w->saxs == NULL || (i > 0 && !is_file))
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

/* Frees what a result cannot keep when it is sent to another rank. */
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
    if (output != NULL && is_folder(output))
        TSR_THEN(status, write_one(s->w, r, err));
    if (status != TSR_OK && s->models.atoms != NULL)
        status = tsr_wrap(err, status, "%s", s->name[i]);
    if (s->over_ranks)
        drop_pointers(r);
    else if (status == TSR_OK)
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

/* ---- table and messages ---- */

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

/* Prints c1 and c2, and the same in physical units: r0, the mean radius of the
 * volume that an atom displaces, in A, and the excess density of the layer over
 * the buffer, in e/A^3. A parameter at a bound of its range is marked: the data
 * then do not determine it. */
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

/* Adds a value of the SASBDB entry to the list, with the same value from the
 * curve or from the model. */
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
    tsr_words_begin(&words);
    if (w->saxs != NULL)
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

static void print_json(const work *w, int n, const tsr_profile_result *result)
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
        print_json(w, n, s->result);
    else if (status == TSR_OK && (has_data || n > 1 || output != NULL)) {
        print(w, n, s->result);
        status = print_entry(w, s->result, err);
    }
    clear_results(n, s->result);
    return status;
}

static tsr_status compute(work *w, series *s, tsr_err *err)
{
    const options *o = w->o;
    const tsr_profile_spec spec = {.bodies = (tsr_profile_bodies)o->bodies,
                                   .solvent = (tsr_solvent_model)o->solvent,
                                   .density = o->curve.density,
                                   .neutron =
                                       o->curve.radiation ? &w->neutron : NULL,
                                   .device = o->device,
                                   .method = (tsr_profile_method)o->method,
                                   .q_max_inv_ang = w->q_max,
                                   .form_factors = o->form_factors};
    TSR_TRY(tsr_profile_maker_new(&spec, w->log, &w->maker, err));
    if (o->output != NULL && is_folder(o->output) &&
        mkdir(o->output, 0777) != 0 && !is_folder(o->output))
        return tsr_fail(err, TSR_E_IO, "cannot make the folder '%s'",
                        o->output);
    TSR_TRY(run_single_fits(w, s, err));
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
    series s = {.w = &w, .n = args->n, .name = args->argument};
    TSR_TRY(make_settings(args, &w, err));
    TSR_TRY(tsr_profile_check_output(
        o->output, o->force, args->n, args->argument, o->curve.data,
        o->trajectory != NULL ? o->trajectory : o->form_factors, err));
    TSR_TRY(find_same_names(args->n, args->argument, same, err));
    w.has_same_names = same[0] != NULL;
    tsr_status status = list_structures(args, &s, err);
    if (o->output != NULL && !is_folder(o->output) && o->curve.data == NULL &&
        s.n > 1 && status == TSR_OK)
        status = tsr_fail(err, TSR_E_USAGE,
                          "--output '%s' is one file, and there are %d curves: "
                          "'%s/' writes each into this folder",
                          o->output, s.n, o->output);
    if (s.models.atoms != NULL)
        TSR_THEN(status,
                 tsr_profile_check_output(o->output, o->force, s.n, s.name,
                                          o->curve.data, NULL, err));
    w.q_max = w.q_range[1];
    if (status == TSR_OK && o->curve.data != NULL) {
        status = tsr_curve_read(args, &o->curve, log, &w.saxs, err);
        if (status == TSR_OK)
            w.q_max = tsr_saxs_q_max(w.saxs);
    }
    TSR_THEN(status, compute(&w, &s, err));
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
             "best to worst. Weights of many structures: tessera pool.",
    .run = profile};
