/* The public library: the functions of tessera.h, in its order. Each checks its
 * arguments, calls the layers below and returns a status of tessera.h, which
 * has the numbers of tsr_status. Handles of curves, structures, draws and
 * frames are pointers to objects of the layers below, cast. A run is a session
 * (session/run_session.h) with a stop flag of its own, and without handlers of
 * signals. */
#include "core/log.h"
#include "core/pool.h"
#include "core/status.h"
#include "core/vec3.h"
#include "engine/engine.h"
#include "files/file.h"
#include "gpu/device.h"
#include "gpu/engine_device.h"
#include "molecule/structure.h"
#include "posterior/config.h"
#include "posterior/profile_partials.h"
#include "scattering/saxs.h"
#include "session/run_session.h"
#include "store/trajectory.h"

#include <gsl/gsl_errno.h>
#include <math.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <tessera.h>

#define SAME_NUMBER(name, exit_status, text)          \
    _Static_assert(TESSERA_##name == (int)TSR_##name, \
                   "the numbers of tessera.h stay");
TSR_STATUS_LIST(SAME_NUMBER)

static _Thread_local tsr_err last_error;
static pthread_once_t once = PTHREAD_ONCE_INIT;

static void prepare(void)
{
    gsl_set_error_handler_off();
    (void)tsr_config_fields();
}

/* The error of the calling thread, which tessera_message shows. The first call
 * in a process prepares what threads share: the table of the configuration's
 * fields, and GSL's error handler, which is switched off. */
static tsr_err *error_of_thread(void)
{
    pthread_once(&once, prepare);
    return &last_error;
}

/* Refuses numbers that are not finite: value [n] in, `name` of the array for
 * the message. */
static tsr_status check_finite(const char *name, long n, const double *value,
                               tsr_err *err)
{
    for (long i = 0; i < n; i++)
        if (!isfinite(value[i]))
            return tsr_fail(err, TSR_E_NUMERIC, "%s[%ld] is %g", name, i,
                            value[i]);
    return TSR_OK;
}

/* Returns TSR_E_USAGE from a public function unless `condition` holds; `err` is
 * the function's error. */
#define TSR_REQUIRE(condition)                                        \
    do {                                                              \
        if (!(condition))                                             \
            return (int)tsr_fail(err, TSR_E_USAGE, "%s: expected %s", \
                                 __func__, #condition);               \
    } while (0)

/* TSR_TRY for a public function, which returns an int. */
#define TSR_CALL(call)                    \
    do {                                  \
        const tsr_status called = (call); \
        if (called != TSR_OK)             \
            return (int)called;           \
    } while (0)

/* Begins a public function: declares `err`, and checks arguments. */
#define TSR_PUBLIC(condition)         \
    tsr_err *err = error_of_thread(); \
    TSR_REQUIRE(condition)

/* Begins a public function that makes *out, NULL at first. */
#define TSR_PUBLIC_NEW(out, condition) \
    tsr_err *err = error_of_thread();  \
    TSR_REQUIRE((out) != NULL);        \
    *(out) = NULL;                     \
    TSR_REQUIRE(condition)

/* Allocates *out, zeroed. */
#define TSR_MAKE(out)                         \
    do {                                      \
        *(out) = calloc(1, sizeof **(out));   \
        TSR_CALL(tsr_allocated(*(out), err)); \
    } while (0)

/* Ends a function that makes *out: an error frees *out. */
#define TSR_MADE(status, out, release)    \
    do {                                  \
        const tsr_status made = (status); \
        if (made != TSR_OK) {             \
            release(*(out));              \
            *(out) = NULL;                \
        }                                 \
        return (int)made;                 \
    } while (0)

const char *tessera_version(void)
{
    return TSR_VERSION;
}

const char *tessera_status_text(int status)
{
    return tsr_status_text((tsr_status)status);
}

const char *tessera_message(void)
{
    return last_error.message;
}

struct tessera_profile {
    tsr_profile_structure structure;
    double q_max; /* 1/Angstrom; the grid extends farther, less accurately */
};

struct tessera_profiler {
    pthread_mutex_t lock; /* the maker serves one structure at a time */
    tsr_profile_maker *maker;
    int scatterers, is_neutron;
    double q_max;
    char device[128]; /* for engines */
};

static const tsr_saxs *saxs_of(const tessera_data *data)
{
    return (const tsr_saxs *)data;
}

static const tsr_atoms *atoms_of(const tessera_structure *structure)
{
    return (const tsr_atoms *)structure;
}

/* ---- measured curves ---- */

int tessera_data_read(const char *path, double q_min, double q_max, int smear,
                      tessera_data **out)
{
    TSR_PUBLIC_NEW(out, path != NULL);
    const double range[2] = {q_min, q_max > 0.0 ? q_max : 1e3};
    TSR_REQUIRE(q_min >= 0.0 && range[0] < range[1]);
    const tsr_resolution_options column = {.dq.word = smear ? TSR_DQ_AUTO
                                                            : TSR_DQ_NONE};
    tsr_saxs *saxs = NULL;
    tsr_status status =
        tsr_saxs_read(path, TSR_Q_AUTO, range, NULL, &saxs, err);
    TSR_THEN(status, tsr_saxs_set_resolution(saxs, &column, NULL, err));
    *out = (tessera_data *)saxs;
    TSR_MADE(status, out, tessera_data_free);
}

static tsr_status check_points(int n, const double *q, const double *intensity,
                               const double *sigma, tsr_err *err)
{
    TSR_TRY(check_finite("q", n, q, err));
    TSR_TRY(check_finite("intensity", n, intensity, err));
    TSR_TRY(check_finite("sigma", n, sigma, err));
    for (int k = 0; k < n; k++)
        if (q[k] < 0.0 || (k > 0 && q[k] <= q[k - 1]) || sigma[k] <= 0.0)
            return tsr_fail(err, TSR_E_DATA,
                            "point %d: q %g, sigma %g; q ascends from at least "
                            "0, and sigma is positive",
                            k, q[k], sigma[k]);
    return TSR_OK;
}

/* A copy of n numbers, in the pool; NULL: out of memory. */
static double *copy_of(tsr_pool *pool, int n, const double *from)
{
    double *to = tsr_pool_new(pool, (size_t)n, sizeof *to);
    return to == NULL ? to : memcpy(to, from, (size_t)n * sizeof *to);
}

int tessera_data_new(int n, const double *q, const double *intensity,
                     const double *sigma, tessera_data **out)
{
    TSR_PUBLIC_NEW(out, n >= 5);
    TSR_REQUIRE(q != NULL && intensity != NULL && sigma != NULL);
    TSR_CALL(check_points(n, q, intensity, sigma, err));
    tsr_saxs *s = calloc(1, sizeof *s);
    TSR_CALL(tsr_allocated(s, err));
    s->n = n;
    s->path = tsr_pool_text(&s->pool, "data");
    s->q = copy_of(&s->pool, n, q);
    s->intensity = copy_of(&s->pool, n, intensity);
    s->sigma = copy_of(&s->pool, n, sigma);
    s->noise = tsr_saxs_noise_make(n, q, intensity, sigma);
    *out = (tessera_data *)s;
    TSR_MADE(tsr_pool_check(&s->pool, err), out, tessera_data_free);
}

void tessera_data_free(tessera_data *data)
{
    tsr_saxs_free((tsr_saxs *)data);
}

int tessera_data_size(const tessera_data *data)
{
    return data != NULL ? saxs_of(data)->n : 0;
}

double tessera_data_q_max(const tessera_data *data)
{
    return data != NULL ? tsr_saxs_q_max(saxs_of(data)) : 0.0;
}

/* Copies n numbers, if the caller wants them. */
static void copy_out(int n, const double *from, double *to)
{
    if (to != NULL)
        memcpy(to, from, (size_t)n * sizeof *to);
}

int tessera_data_get(const tessera_data *data, double *q, double *intensity,
                     double *sigma)
{
    TSR_PUBLIC(data != NULL);
    const tsr_saxs *s = saxs_of(data);
    copy_out(s->n, s->q, q);
    copy_out(s->n, s->intensity, intensity);
    copy_out(s->n, s->sigma, sigma);
    return TESSERA_OK;
}

/* ---- structures ---- */

/* Refuses coordinates that are not finite, and atoms in one place or in nm:
 * atoms that follow each other are then closer than any two nuclei of a
 * molecule (0.74 Angstrom in H2). */
static tsr_status check_coordinates(const tsr_atoms *atoms, tsr_err *err)
{
    const double least_ang = 0.5;
    const tsr_file_atom *a = atoms->atom;
    int n_close = 0;
    for (int i = 0; i < atoms->n_atom; i++) {
        for (int c = 0; c < 3; c++)
            if (!isfinite(a[i].xyz[c]))
                return tsr_fail(err, TSR_E_NUMERIC, "xyz[%d] is %g", 3 * i + c,
                                a[i].xyz[c]);
        n_close +=
            i > 0 && tsr_vec3_distance(a[i].xyz, a[i - 1].xyz) < least_ang;
    }
    return 2 * n_close < atoms->n_atom
               ? TSR_OK
               : tsr_fail(err, TSR_E_DATA,
                          "%d of %d atoms are within %g A of the preceding "
                          "atom: are the coordinates in nm, or not set?",
                          n_close, atoms->n_atom, least_ang);
}

int tessera_structure_read(const char *path, tessera_structure **out)
{
    TSR_PUBLIC_NEW(out, path != NULL);
    tsr_atoms *atoms = NULL;
    const tsr_status status = tsr_atoms_read(path, &atoms, err);
    *out = (tessera_structure *)atoms;
    return (int)status;
}

/* Are all texts [n] there? NULL: an array that may be left out. */
static int have_texts(int n, const char *const *text)
{
    for (int i = 0; text != NULL && i < n; i++)
        if (text[i] == NULL)
            return 0;
    return 1;
}

int tessera_structure_new(int n, const double *xyz, const char *const *element,
                          const char *const *name, const char *const *residue,
                          const int *number, const char *const *chain,
                          tessera_structure **out)
{
    TSR_PUBLIC_NEW(out, n >= 1 && xyz != NULL && element != NULL);
    TSR_REQUIRE((name != NULL) == (residue != NULL) &&
                (name != NULL) == (number != NULL));
    TSR_REQUIRE(have_texts(n, element) && have_texts(n, name) &&
                have_texts(n, residue) && have_texts(n, chain));
    TSR_CALL(check_finite("xyz", 3L * n, xyz, err));
    const tsr_atom_arrays arrays = {.n = n,
                                    .xyz = xyz,
                                    .element = element,
                                    .name = name,
                                    .residue = residue,
                                    .chain = chain,
                                    .number = number};
    tsr_atoms *atoms = NULL;
    tsr_status status = tsr_atoms_of_arrays(&arrays, &atoms, err);
    TSR_THEN(status, check_coordinates(atoms, err));
    *out = (tessera_structure *)atoms;
    TSR_MADE(status, out, tessera_structure_free);
}

void tessera_structure_free(tessera_structure *structure)
{
    tsr_atoms_free((tsr_atoms *)structure);
}

int tessera_structure_size(const tessera_structure *structure)
{
    return structure != NULL ? atoms_of(structure)->n_atom : 0;
}

int tessera_structure_get(const tessera_structure *structure, double *xyz,
                          int *in_file)
{
    TSR_PUBLIC(structure != NULL);
    const tsr_atoms *a = atoms_of(structure);
    for (int i = 0; i < a->n_atom; i++) {
        copy_out(3, a->atom[i].xyz, xyz != NULL ? xyz + 3 * (size_t)i : NULL);
        if (in_file != NULL)
            in_file[i] = a->atom[i].in_file;
    }
    return TESSERA_OK;
}

/* ---- profilers ---- */

static int open_profiler(int scatterers, const tsr_neutron *neutron,
                         double q_max, const char *device,
                         tessera_profiler **out, tsr_err *err)
{
    const char *name = device != NULL ? device : "auto";
    TSR_REQUIRE(q_max >= 0.01 && q_max <= 10.0);
    TSR_REQUIRE(strlen(name) < sizeof(*out)->device);
    const tsr_profile_spec spec = {.bodies = (tsr_profile_bodies)scatterers,
                                   .solvent = TSR_SOLVENT_LAYER,
                                   .density = TSR_WATER_DENSITY,
                                   .neutron = neutron,
                                   .device = name,
                                   .method = TSR_METHOD_AUTO,
                                   .q_max_inv_ang = q_max};
    TSR_MAKE(out);
    pthread_mutex_init(&(*out)->lock, NULL);
    (*out)->scatterers = scatterers;
    (*out)->is_neutron = neutron != NULL;
    (*out)->q_max = q_max;
    memcpy((*out)->device, name, strlen(name));
    TSR_MADE(tsr_profile_maker_new(&spec, NULL, &(*out)->maker, err), out,
             tessera_profiler_free);
}

int tessera_profiler_new(int scatterers, double q_max, const char *device,
                         tessera_profiler **out)
{
    TSR_PUBLIC_NEW(out, scatterers >= TESSERA_ATOMS &&
                            scatterers <= TESSERA_ONE_BODY);
    return open_profiler(scatterers, NULL, q_max, device, out, err);
}

int tessera_profiler_new_neutron(double d2o, double exchange, int n_chain,
                                 const char *const *chain,
                                 const double *fraction, double q_max,
                                 const char *device, tessera_profiler **out)
{
    tsr_neutron neutron = {.d2o = d2o, .exchange = exchange};
    TSR_PUBLIC_NEW(out, d2o >= 0.0 && d2o <= 1.0);
    TSR_REQUIRE(exchange >= 0.0 && exchange <= 1.0);
    TSR_REQUIRE(n_chain >= 0 && n_chain <= TSR_NEUTRON_CHAINS);
    TSR_REQUIRE(n_chain == 0 || (chain != NULL && fraction != NULL));
    for (int i = 0; i < n_chain; i++) {
        tsr_deuterated *d = &neutron.deuterated[neutron.n_deuterated++];
        TSR_REQUIRE(chain[i] != NULL && strlen(chain[i]) < sizeof d->chain);
        TSR_REQUIRE(fraction[i] >= 0.0 && fraction[i] <= 1.0);
        memcpy(d->chain, chain[i], strlen(chain[i]));
        d->fraction = fraction[i];
    }
    return open_profiler(TESSERA_ATOMS, &neutron, q_max, device, out, err);
}

int tessera_profiler_set_density(tessera_profiler *profiler, double density)
{
    TSR_PUBLIC(profiler != NULL && !profiler->is_neutron);
    TSR_REQUIRE(density >= 0.1 && density <= 1.0);
    pthread_mutex_lock(&profiler->lock);
    const tsr_status status =
        tsr_profile_maker_set_density(profiler->maker, density, err);
    pthread_mutex_unlock(&profiler->lock);
    return (int)status;
}

void tessera_profiler_free(tessera_profiler *profiler)
{
    if (profiler == NULL)
        return;
    tsr_profile_maker_free(profiler->maker);
    pthread_mutex_destroy(&profiler->lock);
    free(profiler);
}

/* ---- profiles ---- */

/* atoms NULL: of the file. */
static int compute(tessera_profiler *p, const char *path,
                   const tsr_atoms *atoms, tessera_profile **out, tsr_err *err)
{
    TSR_MAKE(out);
    tsr_profile_structure *s = &(*out)->structure;
    (*out)->q_max = p->q_max;
    pthread_mutex_lock(&p->lock);
    const tsr_status status =
        atoms == NULL
            ? tsr_profile_compute(p->maker, path, s, err)
            : tsr_profile_compute_atoms(p->maker, path, atoms, 0, s, err);
    pthread_mutex_unlock(&p->lock);
    TSR_MADE(status, out, tessera_profile_free);
}

int tessera_profile_file(tessera_profiler *profiler, const char *path,
                         tessera_profile **out)
{
    TSR_PUBLIC_NEW(out, profiler != NULL && path != NULL);
    return compute(profiler, path, NULL, out, err);
}

int tessera_profile_coordinates(tessera_profiler *profiler,
                                const tessera_structure *structure,
                                const double *xyz, tessera_profile **out)
{
    TSR_PUBLIC_NEW(out, profiler != NULL && structure != NULL);
    TSR_REQUIRE(profiler->scatterers == TESSERA_ATOMS);
    tsr_atoms atoms = *atoms_of(structure);
    const size_t n = (size_t)atoms.n_atom;
    tsr_file_atom *moved = malloc(n * sizeof *moved);
    TSR_CALL(tsr_allocated(moved, err));
    memcpy(moved, atoms.atom, n * sizeof *moved);
    for (size_t i = 0; xyz != NULL && i < n; i++)
        memcpy(moved[i].xyz, xyz + 3 * i, sizeof moved[i].xyz);
    atoms.atom = moved;
    int status = (int)check_coordinates(&atoms, err);
    if (status == TESSERA_OK)
        status = compute(profiler, atoms.path, &atoms, out, err);
    free(moved);
    return status;
}

void tessera_profile_free(tessera_profile *profile)
{
    if (profile != NULL)
        tsr_profile_structure_clear(&profile->structure);
    free(profile);
}

/* q_max, which another program may have rounded in another way. */
static double q_limit(const tessera_profile *profile)
{
    return profile->q_max * (1.0 + 1e-9);
}

static tsr_status check_q(const tessera_profile *profile, int n,
                          const double *q, tsr_err *err)
{
    for (int k = 0; k < n; k++)
        if (!(q[k] >= 0.0 && q[k] <= q_limit(profile)))
            return tsr_fail(err, isnan(q[k]) ? TSR_E_NUMERIC : TSR_E_RANGE,
                            "q[%d] is %g, but the profile has q from 0 to %g "
                            "1/A",
                            k, q[k], profile->q_max);
    return TSR_OK;
}

int tessera_profile_intensity(const tessera_profile *profile, double c1,
                              double c2, int n, const double *q,
                              double *intensity)
{
    TSR_PUBLIC(profile != NULL && n >= 1 && q != NULL && intensity != NULL);
    TSR_REQUIRE(isfinite(c1) && isfinite(c2));
    TSR_CALL(check_q(profile, n, q, err));
    tsr_partial_curves curves = {0};
    const tsr_status status = tsr_partial_curves_make(
        &profile->structure.partials, n, q, &curves, err);
    if (status == TSR_OK)
        tsr_contrast_intensity(&curves, c1, c2, intensity);
    tsr_partial_curves_clear(&curves);
    return (int)status;
}

int tessera_profile_numbers(const tessera_profile *profile, int n,
                            double *value)
{
    TSR_PUBLIC(profile != NULL && value != NULL);
    TSR_REQUIRE(n >= 0 && n <= TESSERA_PROFILE_N_NUMBER);
    const tsr_profile_structure *s = &profile->structure;
    const double all[TESSERA_PROFILE_N_NUMBER] = {
        [TESSERA_PROFILE_MASS] = s->mass > 0.0 ? s->mass : (double)NAN,
        [TESSERA_PROFILE_VOLUME] = s->volume > 0.0 ? s->volume : (double)NAN,
        [TESSERA_PROFILE_RG] = s->rg_ang,
        [TESSERA_PROFILE_D_MAX] = s->d_max_ang,
        [TESSERA_PROFILE_ABSOLUTE] =
            s->mass > 0.0 ? tsr_profile_absolute(s) : (double)NAN};
    copy_out(n, all, value);
    return TESSERA_OK;
}

/* ---- fit ---- */

int tessera_fit(const tessera_profile *profile, const tessera_data *data,
                const double *c1, const double *c2, double background, int n,
                double *value, double *curve)
{
    TSR_PUBLIC(profile != NULL && data != NULL && value != NULL);
    TSR_REQUIRE(n >= 0 && n <= TESSERA_FIT_N_NUMBER);
    TSR_REQUIRE(c1 == NULL || (c1[0] >= 0.5 && c1[0] <= c1[1] && c1[1] <= 2));
    TSR_REQUIRE(c2 == NULL ||
                (c2[0] >= -100 && c2[0] <= c2[1] && c2[1] <= 100));
    TSR_REQUIRE(!isinf(background));
    if (tessera_data_q_max(data) > q_limit(profile))
        return (int)tsr_fail(err, TSR_E_RANGE,
                             "the data need a profile up to q = %g 1/A, not %g",
                             tessera_data_q_max(data), profile->q_max);
    tsr_profile_fit_options how = tsr_profile_fit_defaults;
    how.fit_background = isnan(background);
    how.background = isnan(background) ? 0.0 : background;
    if (profile->structure.is_neutron)
        how.c1[0] = how.c1[1] = 1.0;
    if (c1 != NULL)
        memcpy(how.c1, c1, sizeof how.c1);
    if (c2 != NULL)
        memcpy(how.c2, c2, sizeof how.c2);
    tsr_profile_fit fit;
    double *own = malloc((size_t)saxs_of(data)->n * sizeof *own);
    tsr_status status = tsr_allocated(own, err);
    TSR_THEN(status, tsr_profile_fit_data(&how, &profile->structure.partials,
                                          saxs_of(data), &fit, own, err));
    if (status == TSR_OK)
        copy_out(saxs_of(data)->n, own, curve);
    free(own);
    TSR_CALL(status);
    const double all[TESSERA_FIT_N_NUMBER] = {
        [TESSERA_FIT_CHI2] = fit.chi2,
        [TESSERA_FIT_REDUCED] = fit.reduced_chi2,
        [TESSERA_FIT_SCALE] = fit.scale,
        [TESSERA_FIT_BACKGROUND] = fit.background,
        [TESSERA_FIT_C1] = fit.c1,
        [TESSERA_FIT_C2] = fit.c2,
        [TESSERA_FIT_C1_AT] = fit.c1_at,
        [TESSERA_FIT_C2_AT] = fit.c2_at,
        [TESSERA_FIT_CORMAP_P] = fit.cormap_p};
    copy_out(n, all, value);
    return TESSERA_OK;
}

/* ---- the engine ---- */

struct tessera_engine {
    tsr_bodies bodies; /* n 0: the caller's scatterers */
    double q_max;
    tsr_device *device; /* NULL: the reference engine */
    tsr_engine *engine;
};

struct tessera_batch {
    tsr_batch *batch;
    int max_proposal;
    tsr_pool pool;
    tsr_body_proposal *proposal; /* [max_proposal] */
    tsr_body_range *range;       /* [n_range], grows */
    long n_range;
};

/* The layers below report a wrong argument as an internal error, since their
 * callers are tessera itself. */
static tsr_status of_caller(tsr_status status)
{
    return status == TSR_E_INTERNAL ? TSR_E_USAGE : status;
}

/* A flat array as rows of three. A cast would drop const for -Wcast-qual. */
static const double (*rows_of(const double *xyz))[3]
{
    const union {
        const double *flat;
        const double (*row)[3];
    } as = {xyz};
    return as.row;
}

/* Opens the device, tests it, and makes the engine. */
static tsr_status open_engine(const tsr_engine_spec *spec, const char *device,
                              tessera_engine *e, tsr_err *err)
{
    const char *name = device != NULL ? device : "auto";
    if (strcmp(name, "reference") == 0 ||
        (strcmp(name, "auto") == 0 && !tsr_device_has_driver()))
        return tsr_engine_reference_new(spec, &e->engine, err);
    TSR_TRY(tsr_device_open(name, &e->device, err));
    TSR_TRY(tsr_engine_self_test(e->device, NULL, spec->n_body,
                                 tsr_engine_n_comp(spec), NULL, err));
    return tsr_engine_device_new(spec, e->device, TSR_ENGINE_TILES, &e->engine,
                                 err);
}

int tessera_engine_new(int n_body, const int *type, int n_type, int n_comp,
                       int n_q, double dq, const double *form_factor,
                       double d_bound, int n_system, const char *device,
                       tessera_engine **out)
{
    TSR_PUBLIC_NEW(out, type != NULL && form_factor != NULL);
    TSR_REQUIRE(n_comp >= 1 && n_comp <= 3);
    const tsr_engine_spec spec = {.n_body = n_body,
                                  .n_type = n_type,
                                  .n_comp = n_comp,
                                  .n_q = n_q,
                                  .dq_inv_ang = dq,
                                  .n_system = n_system,
                                  .type = type,
                                  .form_factor = form_factor,
                                  .d_bound_ang = d_bound};
    TSR_CALL(of_caller(tsr_engine_spec_check(&spec, err)));
    if (dq * d_bound > TSR_PI * (1.0 + 1e-9))
        return tsr_fail(err, TSR_E_USAGE,
                        "dq = %g resolves distances up to pi / dq = %g, not "
                        "to d_bound = %g",
                        dq, TSR_PI / dq, d_bound);
    TSR_CALL(check_finite("form_factor", (long)n_comp * n_type * n_q,
                          form_factor, err));
    TSR_MAKE(out);
    TSR_MADE(open_engine(&spec, device, *out, err), out, tessera_engine_free);
}

/* path NULL: of residues at xyz. */
static int engine_of_bodies(tessera_profiler *p, const char *path,
                            int n_residue, const char *const *residue,
                            int n_body, const double *xyz, double d_bound,
                            int n_system, tessera_engine **out, tsr_err *err)
{
    TSR_REQUIRE(p->scatterers != TESSERA_ATOMS && n_system >= 1);
    TSR_REQUIRE(d_bound >= 1.0 && d_bound <= 1e4);
    TSR_MAKE(out);
    tsr_bodies *bodies = &(*out)->bodies;
    (*out)->q_max = p->q_max;
    pthread_mutex_lock(&p->lock);
    const tsr_status status =
        path != NULL
            ? tsr_bodies_read(p->maker, path, d_bound, bodies, err)
            : tsr_bodies_of_residues(p->maker, n_residue, residue, n_body,
                                     rows_of(xyz), d_bound, bodies, err);
    pthread_mutex_unlock(&p->lock);
    tsr_engine_spec spec = bodies->coarse.spec;
    spec.n_system = n_system;
    spec.d_bound_ang = d_bound;
    TSR_MADE(status != TSR_OK ? status
                              : open_engine(&spec, p->device, *out, err),
             out, tessera_engine_free);
}

int tessera_engine_of_file(tessera_profiler *profiler, const char *path,
                           double d_bound, int n_system, tessera_engine **out)
{
    TSR_PUBLIC_NEW(out, profiler != NULL && path != NULL);
    return engine_of_bodies(profiler, path, 0, NULL, 0, NULL, d_bound, n_system,
                            out, err);
}

int tessera_engine_of_residues(tessera_profiler *profiler, int n_residue,
                               const char *const *residue, int n_body,
                               const double *xyz, double d_bound, int n_system,
                               tessera_engine **out)
{
    TSR_PUBLIC_NEW(out, profiler != NULL && n_residue >= 1 && residue != NULL);
    TSR_REQUIRE(n_body >= 1 && xyz != NULL && have_texts(n_residue, residue));
    TSR_CALL(check_finite("xyz", 3L * n_body, xyz, err));
    return engine_of_bodies(profiler, NULL, n_residue, residue, n_body, xyz,
                            d_bound, n_system, out, err);
}

int tessera_engine_n_body(const tessera_engine *engine)
{
    return engine != NULL ? engine->engine->n_body : 0;
}

int tessera_engine_bodies(const tessera_engine *engine, double *xyz,
                          int *residue)
{
    TSR_PUBLIC(engine != NULL && engine->bodies.n > 0);
    const tsr_bodies *b = &engine->bodies;
    if (xyz != NULL)
        memcpy(xyz, b->xyz, (size_t)b->n * sizeof *b->xyz);
    if (residue != NULL)
        memcpy(residue, b->residue, (size_t)b->n * sizeof *residue);
    return TESSERA_OK;
}

int tessera_profile_of_engine(const tessera_engine *engine,
                              const double *profile, tessera_profile **out)
{
    TSR_PUBLIC_NEW(out, engine != NULL && profile != NULL);
    TSR_REQUIRE(engine->bodies.n > 0);
    TSR_MAKE(out);
    (*out)->q_max = engine->q_max;
    TSR_MADE(
        tsr_bodies_profile(&engine->bodies, profile, &(*out)->structure, err),
        out, tessera_profile_free);
}

void tessera_engine_free(tessera_engine *engine)
{
    if (engine == NULL)
        return;
    tsr_engine_free(engine->engine);
    tsr_device_free(engine->device);
    tsr_pool_clear(&engine->bodies.pool);
    free(engine);
}

int tessera_engine_profile_size(const tessera_engine *engine)
{
    return engine != NULL ? (int)tsr_engine_n_profile(engine->engine) : 0;
}

const char *tessera_engine_text(const tessera_engine *engine)
{
    return engine != NULL ? engine->engine->description : "";
}

int tessera_batch_new(tessera_engine *engine, int max_proposal,
                      tessera_batch **out)
{
    TSR_PUBLIC_NEW(out, engine != NULL && max_proposal >= 1);
    TSR_MAKE(out);
    tessera_batch *b = *out;
    b->max_proposal = max_proposal;
    tsr_pool_array(&b->pool, b->proposal, max_proposal);
    tsr_status status = tsr_pool_check(&b->pool, err);
    TSR_THEN(status,
             tsr_batch_new(engine->engine, max_proposal, &b->batch, err));
    TSR_MADE(status, out, tessera_batch_free);
}

void tessera_batch_free(tessera_batch *batch)
{
    if (batch == NULL)
        return;
    tsr_batch_free(batch->batch);
    tsr_pool_clear(&batch->pool);
    free(batch);
}

/* Is `system` a system of the batch's engine? */
static int has_system(const tessera_batch *batch, int system)
{
    return system >= 0 && system < batch->batch->engine->n_system;
}

int tessera_batch_set(tessera_batch *batch, int system, const double *xyz,
                      double *profile)
{
    TSR_PUBLIC(batch != NULL && xyz != NULL);
    return (int)of_caller(
        tsr_batch_set(batch->batch, system, rows_of(xyz), profile, err));
}

static tsr_status reserve_ranges(tessera_batch *b, long n, tsr_err *err)
{
    if (n <= b->n_range)
        return TSR_OK;
    tsr_body_range *more =
        tsr_pool_resize(&b->pool, b->range, (size_t)n, sizeof *more);
    TSR_TRY(tsr_allocated(more, err));
    b->range = more;
    b->n_range = n;
    return TSR_OK;
}

int tessera_batch_propose(tessera_batch *batch, int n, const int *system,
                          const int *n_range, const int *range,
                          const double *xyz, double *profile)
{
    TSR_PUBLIC(batch != NULL && n >= 0 && n <= batch->max_proposal);
    if (n == 0)
        return TESSERA_OK;
    TSR_REQUIRE(system != NULL && n_range != NULL && profile != NULL);
    const int n_body = batch->batch->engine->n_body;
    long n_all = 0;
    for (int p = 0; p < n; p++) {
        TSR_REQUIRE(n_range[p] >= 0);
        n_all += n_range[p];
    }
    TSR_REQUIRE(n_all <= (long)n * n_body);
    TSR_REQUIRE(n_all == 0 || (range != NULL && xyz != NULL));
    TSR_CALL(reserve_ranges(batch, n_all, err));
    tsr_body_range *to = batch->range;
    for (int p = 0; p < n; p++) {
        batch->proposal[p] = (tsr_body_proposal){system[p], n_range[p], to};
        for (int r = 0; r < n_range[p]; r++, range += 3, to++) {
            TSR_REQUIRE(range[1] >= 1 && range[1] <= n_body);
            *to = (tsr_body_range){range[0], range[1], range[2], rows_of(xyz)};
            xyz += 3 * (size_t)range[1];
        }
    }
    tsr_status status = tsr_batch_submit(batch->batch, n, batch->proposal, err);
    TSR_THEN(status, tsr_batch_wait(batch->batch, profile, err));
    return (int)of_caller(status);
}

int tessera_batch_accept(tessera_batch *batch, int system)
{
    TSR_PUBLIC(batch != NULL && has_system(batch, system));
    tsr_batch_accept(batch->batch, system);
    return TESSERA_OK;
}

int tessera_batch_reject(tessera_batch *batch, int system)
{
    TSR_PUBLIC(batch != NULL && has_system(batch, system));
    tsr_batch_reject(batch->batch, system);
    return TESSERA_OK;
}

int tessera_batch_profile(tessera_batch *batch, int system, double *profile)
{
    TSR_PUBLIC(batch != NULL && profile != NULL);
    return (int)of_caller(
        tsr_batch_profile(batch->batch, system, profile, err));
}

/* ---- runs ---- */

struct tessera_run {
    atomic_int stop;
    atomic_int is_started;
    tsr_config config;
    tsr_setup setup;
    tsr_session session;
    tessera_progress progress;
    void *context;
};

static void watch(void *watcher, const char *phase, long done, long planned)
{
    tessera_run *r = watcher;
    if (!r->stop && r->progress != NULL &&
        r->progress(r->context, phase, done, planned) != 0)
        r->stop = 1;
}

/* path: of a configuration, or with is_resumed 1 of the folder of a run. */
static int open_run(int is_resumed, const char *path, const char *output,
                    int n_set, const char *const *set, tessera_run **out,
                    tsr_err *err)
{
    TSR_REQUIRE(path != NULL && (output == NULL || output[0] != '\0'));
    TSR_REQUIRE(n_set >= 0 && (n_set == 0 || set != NULL));
    TSR_MAKE(out);
    tessera_run *r = *out;
    tsr_session *s = &r->session;
    s->config = &r->config;
    s->setup = &r->setup;
    s->log = tsr_log_new(NULL, TSR_LOG_INFO);
    s->watch = (tsr_watch){&r->stop, watch, r};
    tsr_log_buffer(s->log);
    tsr_status status = tsr_allocated(s->log, err);
    if (status == TSR_OK)
        status = is_resumed
                     ? tsr_session_reopen(s, path, n_set, set, err)
                     : tsr_config_read(path, n_set, set, &r->config, err);
    if (status == TSR_OK && output != NULL) {
        free(r->config.output.directory);
        r->config.output.directory = strdup(output);
        status = tsr_allocated(r->config.output.directory, err);
    }
    TSR_THEN(status, tsr_session_read(s, err));
    TSR_MADE(status, out, tessera_run_free);
}

int tessera_run_new(const char *config, const char *output, int n_set,
                    const char *const *set, tessera_run **out)
{
    TSR_PUBLIC_NEW(out, 1);
    return open_run(0, config, output, n_set, set, out, err);
}

int tessera_run_resume(const char *folder, int n_set, const char *const *set,
                       tessera_run **out)
{
    TSR_PUBLIC_NEW(out, 1);
    return open_run(1, folder, NULL, n_set, set, out, err);
}

int tessera_run_start(tessera_run *run, tessera_progress progress,
                      void *context)
{
    int expected = 0;
    TSR_PUBLIC(run != NULL);
    if (!atomic_compare_exchange_strong(&run->is_started, &expected, 1))
        return (int)tsr_fail(err, TSR_E_USAGE, "a run starts once");
    run->progress = progress;
    run->context = context;
    watch(run, "set-up", 0, 0);
    tsr_status status = tsr_session_check_stop(&run->session, TSR_OK, err);
    TSR_THEN(status,
             tsr_setup_engine(&run->config,
                              (int)run->session.checkpoint.identity.n_chain,
                              run->session.log, &run->setup, err));
    status = tsr_session_check_stop(&run->session, status, err);
    TSR_THEN(status, tsr_session_run(&run->session, err));
    return (int)status;
}

int tessera_run_numbers(const tessera_run *run, int n, double *value)
{
    TSR_PUBLIC(run != NULL && value != NULL);
    TSR_REQUIRE(n >= 0 && n <= TESSERA_RUN_N_NUMBER);
    const tsr_session_state *now = &run->session.now;
    const double all[TESSERA_RUN_N_NUMBER] = {[TESSERA_RUN_CHI2] = now->chi2,
                                              [TESSERA_RUN_LEFT] = now->left_s,
                                              [TESSERA_RUN_RHAT] = now->rhat,
                                              [TESSERA_RUN_ESS] = now->ess,
                                              [TESSERA_RUN_CONVERGED] =
                                                  now->converged};
    copy_out(n, all, value);
    return TESSERA_OK;
}

void tessera_run_stop(tessera_run *run)
{
    if (run != NULL)
        run->stop = 1;
}

const char *tessera_run_folder(const tessera_run *run)
{
    return run != NULL ? run->config.output.directory : "";
}

void tessera_run_free(tessera_run *run)
{
    if (run == NULL)
        return;
    tsr_log *log = run->session.log;
    tsr_session_clear(&run->session);
    tsr_setup_clear(&run->setup);
    tsr_config_clear(&run->config);
    tsr_log_free(log);
    free(run);
}

/* ---- draws ---- */

_Static_assert(TESSERA_POSTERIOR == (int)TSR_TRACE_POSTERIOR &&
                   TESSERA_SAMPLE_STATS == (int)TSR_TRACE_SAMPLE_STATS &&
                   TESSERA_POSTERIOR_PREDICTIVE ==
                       (int)TSR_TRACE_POSTERIOR_PREDICTIVE &&
                   TESSERA_LOG_LIKELIHOOD == (int)TSR_TRACE_LOG_LIKELIHOOD &&
                   TESSERA_OBSERVED_DATA == (int)TSR_TRACE_OBSERVED_DATA &&
                   TESSERA_CONSTANT_DATA == (int)TSR_TRACE_CONSTANT_DATA,
               "the numbers of tessera.h stay while the soname stays");

static tsr_trace_reader *trace_of(tessera_draws *draws)
{
    return (tsr_trace_reader *)draws;
}

int tessera_draws_open(const char *folder, tessera_draws **out)
{
    TSR_PUBLIC_NEW(out, folder != NULL);
    tsr_trace_reader *reader = NULL;
    const tsr_status status =
        tsr_trace_open(tsr_path_in(folder, "trace.h5").text, &reader, err);
    *out = (tessera_draws *)reader;
    return (int)status;
}

void tessera_draws_free(tessera_draws *draws)
{
    tsr_trace_reader_free(trace_of(draws));
}

static int is_group(int group)
{
    return group >= 0 && group < (int)TSR_TRACE_N_GROUP;
}

int tessera_draws_n_column(tessera_draws *draws, int group)
{
    const char *const *name;
    return draws != NULL && is_group(group)
               ? tsr_trace_variables(trace_of(draws), (tsr_trace_group)group,
                                     &name)
               : 0;
}

const char *tessera_draws_column(tessera_draws *draws, int group, int index)
{
    const char *const *name;
    if (index < 0 || index >= tessera_draws_n_column(draws, group))
        return NULL;
    tsr_trace_variables(trace_of(draws), (tsr_trace_group)group, &name);
    return name[index];
}

int tessera_draws_shape(tessera_draws *draws, int group, const char *column,
                        int *shape)
{
    TSR_PUBLIC(draws != NULL && column != NULL && shape != NULL);
    TSR_REQUIRE(is_group(group));
    return (int)tsr_trace_shape(trace_of(draws), (tsr_trace_group)group, column,
                                &shape[0], &shape[1], &shape[2], err);
}

int tessera_draws_read(tessera_draws *draws, int group, const char *column,
                       int64_t size, double *value)
{
    int shape[3];
    double *all = NULL;
    TSR_PUBLIC(value != NULL);
    const int status = tessera_draws_shape(draws, group, column, shape);
    if (status != TESSERA_OK)
        return status;
    const int64_t n = (int64_t)shape[0] * shape[1] * shape[2];
    TSR_REQUIRE(n <= size);
    TSR_CALL(tsr_trace_get(trace_of(draws), (tsr_trace_group)group, column,
                           &shape[0], &shape[1], &shape[2], &all, err));
    memcpy(value, all, (size_t)n * sizeof *value);
    free(all);
    return TESSERA_OK;
}

int tessera_draws_coordinates(tessera_draws *draws, int group,
                              const char *column, int size, double *value)
{
    int n;
    double *coordinate;
    TSR_PUBLIC(draws != NULL && column != NULL && value != NULL);
    TSR_REQUIRE(is_group(group));
    TSR_CALL(tsr_trace_coordinates(trace_of(draws), (tsr_trace_group)group,
                                   column, &n, &coordinate, err));
    tsr_status status = TSR_OK;
    if (coordinate == NULL)
        status = tsr_fail(err, TSR_E_DATA, "%s has no coordinates", column);
    else if (n != size)
        status = tsr_fail(err, TSR_E_USAGE, "%s has %d coordinates, not %d",
                          column, n, size);
    else
        memcpy(value, coordinate, (size_t)n * sizeof *value);
    free(coordinate);
    return (int)status;
}

int tessera_frames_open(const char *path, tessera_frames **out)
{
    TSR_PUBLIC_NEW(out, path != NULL);
    tsr_trajectory_reader *reader = NULL;
    const tsr_status status = tsr_trajectory_open(path, &reader, err);
    *out = (tessera_frames *)reader;
    return (int)status;
}

void tessera_frames_free(tessera_frames *frames)
{
    tsr_trajectory_reader_free((tsr_trajectory_reader *)frames);
}

int tessera_frames_shape(const tessera_frames *frames, int *shape)
{
    TSR_PUBLIC(frames != NULL && shape != NULL);
    const tsr_trajectory_info *info =
        tsr_trajectory_info_get((const tsr_trajectory_reader *)frames);
    shape[0] = info->n_frame;
    shape[1] = info->n_atom;
    return TESSERA_OK;
}

int tessera_frames_read(const tessera_frames *frames, int first, int n,
                        int64_t *draw, float *atom)
{
    TSR_PUBLIC(frames != NULL);
    return (int)tsr_trajectory_read((const tsr_trajectory_reader *)frames,
                                    first, n, draw, atom, err);
}
