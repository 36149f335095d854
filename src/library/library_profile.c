/* Measured curves, structures, profiles and fits of the public library, upon
 * posterior/profile_partials.h, as the command `profile`. */
#include "library/library.h"

#include "core/pool.h"
#include "molecule/structure.h"
#include "posterior/profile_partials.h"
#include "scattering/saxs.h"

#include <math.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <tessera.h>

struct tessera_data {
    tsr_saxs *saxs;
};

struct tessera_structure {
    tsr_atoms *atoms;
};

struct tessera_profiler {
    pthread_mutex_t lock; /* the maker serves one structure at a time */
    tsr_profile_maker *maker;
    int scatterers;
};

/* ---- measured curves ---- */

/* Takes the curve: *out owns it, or the curve is freed. */
static int wrap_saxs(tsr_status status, tsr_saxs *saxs, tessera_data **out,
                     tsr_err *err)
{
    tessera_data *data = status == TSR_OK ? malloc(sizeof *data) : NULL;
    TSR_THEN(status, tsr_allocated(data, err));
    if (status == TSR_OK)
        data->saxs = saxs;
    else
        tsr_saxs_free(saxs);
    *out = data;
    return (int)status;
}

int tessera_data_read(const char *path, double q_min, double q_max, int smear,
                      tessera_data **out)
{
    tsr_err *err = tsr_library_error();
    TSR_REQUIRE(out != NULL);
    *out = NULL;
    TSR_REQUIRE(path != NULL);
    const double range[2] = {q_min, q_max > 0.0 ? q_max : 1e3};
    TSR_REQUIRE(q_min >= 0.0 && range[0] < range[1]);
    const tsr_resolution_options column = {.dq.word = smear ? TSR_DQ_AUTO
                                                            : TSR_DQ_NONE};
    tsr_saxs *saxs = NULL;
    tsr_status status =
        tsr_saxs_read(path, TSR_Q_AUTO, range, NULL, &saxs, err);
    TSR_THEN(status, tsr_saxs_set_resolution(saxs, &column, NULL, err));
    return wrap_saxs(status, saxs, out, err);
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

int tessera_data_new(int n, const double *q, const double *intensity,
                     const double *sigma, tessera_data **out)
{
    tsr_err *err = tsr_library_error();
    TSR_REQUIRE(out != NULL);
    *out = NULL;
    TSR_REQUIRE(n >= 5);
    TSR_REQUIRE(q != NULL && intensity != NULL && sigma != NULL);
    TSR_CALL(check_points(n, q, intensity, sigma, err));
    tsr_saxs *s = calloc(1, sizeof *s);
    TSR_CALL(tsr_allocated(s, err));
    const size_t size = (size_t)n * sizeof *q;
    s->n = n;
    s->path = tsr_pool_text(&s->pool, "data");
    tsr_pool_array(&s->pool, s->q, n);
    tsr_pool_array(&s->pool, s->intensity, n);
    tsr_pool_array(&s->pool, s->sigma, n);
    tsr_status status = tsr_pool_check(&s->pool, err);
    if (status == TSR_OK) {
        memcpy(s->q, q, size);
        memcpy(s->intensity, intensity, size);
        memcpy(s->sigma, sigma, size);
        s->noise = tsr_saxs_noise_make(n, q, intensity, sigma);
    }
    return wrap_saxs(status, s, out, err);
}

void tessera_data_free(tessera_data *data)
{
    if (data != NULL)
        tsr_saxs_free(data->saxs);
    free(data);
}

int tessera_data_size(const tessera_data *data)
{
    return data != NULL ? data->saxs->n : 0;
}

int tessera_data_get(const tessera_data *data, double *q, double *intensity,
                     double *sigma)
{
    tsr_err *err = tsr_library_error();
    TSR_REQUIRE(data != NULL);
    const tsr_saxs *s = data->saxs;
    const size_t size = (size_t)s->n * sizeof *q;
    if (q != NULL)
        memcpy(q, s->q, size);
    if (intensity != NULL)
        memcpy(intensity, s->intensity, size);
    if (sigma != NULL)
        memcpy(sigma, s->sigma, size);
    return TESSERA_OK;
}

/* ---- structures ---- */

int tessera_structure_read(const char *path, tessera_structure **out)
{
    tsr_err *err = tsr_library_error();
    TSR_REQUIRE(out != NULL);
    *out = NULL;
    TSR_REQUIRE(path != NULL);
    tessera_structure *s = calloc(1, sizeof *s);
    tsr_status status = tsr_allocated(s, err);
    TSR_THEN(status, tsr_atoms_read(path, &s->atoms, err));
    if (status == TSR_OK)
        *out = s;
    else
        free(s);
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
    tsr_err *err = tsr_library_error();
    TSR_REQUIRE(out != NULL);
    *out = NULL;
    TSR_REQUIRE(n >= 1 && xyz != NULL && element != NULL);
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
    tessera_structure *s = calloc(1, sizeof *s);
    tsr_status status = tsr_allocated(s, err);
    TSR_THEN(status, tsr_atoms_of_arrays(&arrays, &s->atoms, err));
    if (status == TSR_OK)
        *out = s;
    else
        free(s);
    return (int)status;
}

void tessera_structure_free(tessera_structure *structure)
{
    if (structure != NULL)
        tsr_atoms_free(structure->atoms);
    free(structure);
}

int tessera_structure_size(const tessera_structure *structure)
{
    return structure != NULL ? structure->atoms->n_atom : 0;
}

int tessera_structure_get(const tessera_structure *structure, double *xyz,
                          int *in_file)
{
    tsr_err *err = tsr_library_error();
    TSR_REQUIRE(structure != NULL);
    const tsr_atoms *a = structure->atoms;
    for (int i = 0; i < a->n_atom; i++) {
        for (int c = 0; c < 3 && xyz != NULL; c++)
            xyz[3 * i + c] = a->atom[i].xyz[c];
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
    const tsr_profile_spec spec = {.bodies = (tsr_profile_bodies)scatterers,
                                   .solvent = TSR_SOLVENT_LAYER,
                                   .density = TSR_WATER_DENSITY,
                                   .neutron = neutron,
                                   .device = device != NULL ? device : "auto",
                                   .method = TSR_METHOD_AUTO,
                                   .q_max_inv_ang = q_max};
    tessera_profiler *p = calloc(1, sizeof *p);
    tsr_status status = tsr_allocated(p, err);
    TSR_THEN(status, tsr_profile_maker_new(&spec, NULL, &p->maker, err));
    if (status != TSR_OK) {
        free(p);
        return (int)status;
    }
    pthread_mutex_init(&p->lock, NULL);
    p->scatterers = scatterers;
    *out = p;
    return TESSERA_OK;
}

int tessera_profiler_new(int scatterers, double q_max, const char *device,
                         tessera_profiler **out)
{
    tsr_err *err = tsr_library_error();
    TSR_REQUIRE(out != NULL);
    *out = NULL;
    TSR_REQUIRE(scatterers >= TESSERA_ATOMS && scatterers <= TESSERA_ONE_BODY);
    TSR_REQUIRE(q_max >= 0.01 && q_max <= 10.0);
    return open_profiler(scatterers, NULL, q_max, device, out, err);
}

int tessera_profiler_new_neutron(double d2o, double exchange, int n_chain,
                                 const char *const *chain,
                                 const double *fraction, double q_max,
                                 const char *device, tessera_profiler **out)
{
    tsr_err *err = tsr_library_error();
    tsr_neutron neutron = {.d2o = d2o, .exchange = exchange};
    TSR_REQUIRE(out != NULL);
    *out = NULL;
    TSR_REQUIRE(d2o >= 0.0 && d2o <= 1.0);
    TSR_REQUIRE(exchange >= 0.0 && exchange <= 1.0);
    TSR_REQUIRE(n_chain >= 0 && n_chain <= TSR_NEUTRON_CHAINS);
    TSR_REQUIRE(n_chain == 0 || (chain != NULL && fraction != NULL));
    TSR_REQUIRE(q_max >= 0.01 && q_max <= 10.0);
    for (int i = 0; i < n_chain; i++) {
        tsr_deuterated *d = &neutron.deuterated[neutron.n_deuterated++];
        TSR_REQUIRE(chain[i] != NULL && strlen(chain[i]) < sizeof d->chain);
        TSR_REQUIRE(fraction[i] >= 0.0 && fraction[i] <= 1.0);
        memcpy(d->chain, chain[i], strlen(chain[i]));
        d->fraction = fraction[i];
    }
    return open_profiler(TESSERA_ATOMS, &neutron, q_max, device, out, err);
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
static tsr_status compute(tessera_profiler *p, const char *path,
                          const tsr_atoms *atoms, tessera_profile **out,
                          tsr_err *err)
{
    tessera_profile *profile = calloc(1, sizeof *profile);
    TSR_TRY(tsr_allocated(profile, err));
    tsr_profile_structure *s = &profile->structure;
    pthread_mutex_lock(&p->lock);
    const tsr_status status =
        atoms == NULL
            ? tsr_profile_compute(p->maker, path, s, err)
            : tsr_profile_compute_atoms(p->maker, path, atoms, 0, s, err);
    pthread_mutex_unlock(&p->lock);
    if (status == TSR_OK)
        *out = profile;
    else
        tessera_profile_free(profile);
    return status;
}

int tessera_profile_file(tessera_profiler *profiler, const char *path,
                         tessera_profile **out)
{
    tsr_err *err = tsr_library_error();
    TSR_REQUIRE(out != NULL);
    *out = NULL;
    TSR_REQUIRE(profiler != NULL && path != NULL);
    return (int)compute(profiler, path, NULL, out, err);
}

/* The structure's atoms at xyz; the caller frees moved->atom. */
static tsr_status move_atoms(const tsr_atoms *atoms, const double *xyz,
                             tsr_atoms *moved, tsr_err *err)
{
    const size_t n = (size_t)atoms->n_atom;
    *moved = *atoms;
    moved->atom = malloc(n * sizeof *moved->atom);
    TSR_TRY(tsr_allocated(moved->atom, err));
    memcpy(moved->atom, atoms->atom, n * sizeof *moved->atom);
    TSR_TRY(tsr_library_finite("xyz", 3L * atoms->n_atom, xyz, err));
    for (size_t i = 0; i < n; i++)
        memcpy(moved->atom[i].xyz, xyz + 3 * i, sizeof moved->atom[i].xyz);
    return TSR_OK;
}

int tessera_profile_coordinates(tessera_profiler *profiler,
                                const tessera_structure *structure,
                                const double *xyz, tessera_profile **out)
{
    tsr_err *err = tsr_library_error();
    TSR_REQUIRE(out != NULL);
    *out = NULL;
    TSR_REQUIRE(profiler != NULL && structure != NULL);
    TSR_REQUIRE(profiler->scatterers == TESSERA_ATOMS);
    TSR_REQUIRE(structure->atoms->n_atom > 0);
    const tsr_atoms *atoms = structure->atoms;
    tsr_atoms moved = {.atom = NULL};
    tsr_status status =
        xyz != NULL ? move_atoms(atoms, xyz, &moved, err) : TSR_OK;
    TSR_THEN(status, compute(profiler, atoms->path,
                             xyz != NULL ? &moved : atoms, out, err));
    free(moved.atom);
    return (int)status;
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
    tsr_err *err = tsr_library_error();
    TSR_REQUIRE(profiler != NULL && structure != NULL);
    TSR_REQUIRE(n_frame >= 0);
    TSR_REQUIRE(n_frame == 0 || (xyz != NULL && intensity != NULL));
    const size_t row = 3 * (size_t)structure->atoms->n_atom;
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

int tessera_profile_intensity(const tessera_profile *profile, double c1,
                              double c2, int n, const double *q,
                              double *intensity)
{
    tsr_err *err = tsr_library_error();
    TSR_REQUIRE(profile != NULL && n >= 1 && q != NULL && intensity != NULL);
    TSR_REQUIRE(isfinite(c1) && isfinite(c2));
    TSR_CALL(tsr_library_finite("q", n, q, err));
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
    tsr_err *err = tsr_library_error();
    TSR_REQUIRE(profile != NULL && value != NULL);
    TSR_REQUIRE(n >= 0 && n <= TESSERA_PROFILE_N_NUMBER);
    const tsr_profile_structure *s = &profile->structure;
    const double all[TESSERA_PROFILE_N_NUMBER] = {
        [TESSERA_PROFILE_MASS] = s->mass > 0.0 ? s->mass : (double)NAN,
        [TESSERA_PROFILE_VOLUME] = s->volume > 0.0 ? s->volume : (double)NAN,
        [TESSERA_PROFILE_RG] = s->rg_ang,
        [TESSERA_PROFILE_D_MAX] = s->d_max_ang,
        [TESSERA_PROFILE_ABSOLUTE] =
            s->mass > 0.0 ? tsr_profile_absolute(s) : (double)NAN};
    memcpy(value, all, (size_t)n * sizeof *value);
    return TESSERA_OK;
}

/* ---- fit ---- */

int tessera_fit(const tessera_profile *profile, const tessera_data *data,
                const double *c1, const double *c2, double background, int n,
                double *value, double *curve)
{
    tsr_err *err = tsr_library_error();
    TSR_REQUIRE(profile != NULL && data != NULL && value != NULL);
    TSR_REQUIRE(n >= 0 && n <= TESSERA_FIT_N_NUMBER);
    TSR_REQUIRE(c1 == NULL || (c1[0] >= 0.5 && c1[0] <= c1[1] && c1[1] <= 2));
    TSR_REQUIRE(c2 == NULL ||
                (c2[0] >= -100 && c2[0] <= c2[1] && c2[1] <= 100));
    TSR_REQUIRE(!isinf(background));
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
    double *own =
        curve == NULL ? malloc((size_t)data->saxs->n * sizeof *own) : curve;
    tsr_status status = tsr_allocated(own, err);
    TSR_THEN(status, tsr_profile_fit_data(&how, &profile->structure.partials,
                                          data->saxs, &fit, own, err));
    if (curve == NULL)
        free(own);
    if (status != TSR_OK)
        return (int)status;
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
    memcpy(value, all, (size_t)n * sizeof *value);
    return TESSERA_OK;
}
