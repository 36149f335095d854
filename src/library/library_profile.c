/* Measured curves, structures, profiles and fits of the public library, upon
 * posterior/profile_partials.h, as the command `profile`. */
#include "library/library.h"

#include "core/pool.h"
#include "core/vec3.h"
#include "molecule/structure.h"
#include "scattering/saxs.h"

#include <math.h>
#include <pthread.h>

struct tessera_profiler {
    pthread_mutex_t lock; /* the maker serves one structure at a time */
    tsr_profile_maker *maker;
    int scatterers, is_neutron;
    double q_max;
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
    TSR_TRY(tsr_library_finite("q", n, q, err));
    TSR_TRY(tsr_library_finite("intensity", n, intensity, err));
    TSR_TRY(tsr_library_finite("sigma", n, sigma, err));
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
    TSR_CALL(tsr_library_finite("xyz", 3L * n, xyz, err));
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
    TSR_REQUIRE(q_max >= 0.01 && q_max <= 10.0);
    const tsr_profile_spec spec = {.bodies = (tsr_profile_bodies)scatterers,
                                   .solvent = TSR_SOLVENT_LAYER,
                                   .density = TSR_WATER_DENSITY,
                                   .neutron = neutron,
                                   .device = device != NULL ? device : "auto",
                                   .method = TSR_METHOD_AUTO,
                                   .q_max_inv_ang = q_max};
    TSR_MAKE(out);
    pthread_mutex_init(&(*out)->lock, NULL);
    (*out)->scatterers = scatterers;
    (*out)->is_neutron = neutron != NULL;
    (*out)->q_max = q_max;
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

int tessera_profile_frames(tessera_profiler *profiler,
                           const tessera_structure *structure, int n_frame,
                           const double *xyz, double c1, double c2, int n_q,
                           const double *q, double *intensity)
{
    TSR_PUBLIC(profiler != NULL && structure != NULL && n_frame >= 0);
    TSR_REQUIRE(n_frame == 0 || (xyz != NULL && intensity != NULL));
    const size_t row = 3 * (size_t)tessera_structure_size(structure);
    for (int f = 0; f < n_frame; f++) {
        tessera_profile *profile = NULL;
        int status = tessera_profile_coordinates(
            profiler, structure, xyz + (size_t)f * row, &profile);
        if (status == TESSERA_OK)
            status = tessera_profile_intensity(
                profile, c1, c2, n_q, q, intensity + (size_t)f * (size_t)n_q);
        tessera_profile_free(profile);
        if (status != TESSERA_OK)
            return (int)tsr_wrap(err, (tsr_status)status, "frame %d", f);
    }
    return TESSERA_OK;
}

/* A q_max that another program computed may differ in its last digits. */
static tsr_status check_q(const tessera_profile *profile, int n,
                          const double *q, tsr_err *err)
{
    const double most = profile->q_max * (1.0 + 1e-9);
    for (int k = 0; k < n; k++)
        if (!(q[k] >= 0.0 && q[k] <= most))
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
    TSR_CALL(check_q(profile, saxs_of(data)->n, saxs_of(data)->q, err));
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
