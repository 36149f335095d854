/* Devices, their shares of the chains, an engine on each. */
#include "core/clock.h"
#include "gpu/engine_device.h"
#include "posterior/setup.h"
#include "sampler/sampler.h"
#include "surrogate/surrogate.h"

#include <gsl/gsl_sort.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

static tsr_engine_spec spec_of(const tsr_setup *s, const tsr_likelihood *l,
                               int probe, int n_system)
{
    tsr_engine_spec spec = tsr_likelihood_engine(l, probe, s->topology->n_body,
                                                 n_system, s->d_bound_ang);
    if (s->unit != NULL && l->particles == NULL) {
        spec.unit = s->unit;
        spec.rigid = (const double(*)[3])s->first->body;
    }
    return spec;
}

/* Which rigid unit each body is of, where all states have the same. */
static tsr_status find_units(tsr_setup *s, tsr_err *err)
{
    const tsr_topology *t = s->topology;
    if (s->n_start > 0)
        return TSR_OK;
    s->unit = malloc(((size_t)t->n_body + 1) * sizeof *s->unit);
    TSR_TRY(tsr_allocated(s->unit, err));
    for (int b = 0; b < t->n_body; b++)
        s->unit[b] = t->residue[t->body[b].residue].unit;
    return TSR_OK;
}

tsr_status tsr_setup_make_engine(const tsr_setup *setup,
                                 const tsr_likelihood *likelihood,
                                 const tsr_device *device, int n_system,
                                 tsr_engine **out, tsr_err *err)
{
    const tsr_setup *s = setup;
    const int n = likelihood->n_probe;
    tsr_engine **part = calloc((size_t)n, sizeof(*part));
    tsr_status status =
        part == NULL ? tsr_fail(err, TSR_E_NOMEM, "out of memory") : TSR_OK;
    for (int p = 0; p < n && status == TSR_OK; p++) {
        const tsr_engine_spec spec = spec_of(s, likelihood, p, n_system);
        status = device == NULL
                     ? tsr_engine_reference_new(&spec, &part[p], err)
                     : tsr_engine_device_new(&spec, device, s->engine_choice,
                                             &part[p], err);
    }
    if (status == TSR_OK)
        status = tsr_engine_join(n, part, out, err);
    for (int p = 0; p < n && part != NULL && status != TSR_OK; p++)
        tsr_engine_free(part[p]);
    free(part);
    return status;
}

/* Where all that engines are told of is in the first conformation. */
static const double (*first_places(const tsr_setup *s))[3]
{
    const tsr_particles *own = s->likelihood->particles;
    return (const double(*)[3])(own != NULL ? own->start : s->first->body);
}

/* ---- devices ---- */

static tsr_status reserve(tsr_setup *s, int n, tsr_err *err)
{
    s->device = calloc((size_t)n, sizeof(*s->device));
    s->share = calloc((size_t)n, sizeof *s->share);
    s->speed = calloc((size_t)n, sizeof *s->speed);
    if (s->device == NULL || s->share == NULL || s->speed == NULL)
        return tsr_fail(err, TSR_E_NOMEM, "out of memory");
    return TSR_OK;
}

/* The run goes on without this one. */
static void drop(tsr_setup *s, int e)
{
    tsr_engine_share_clear(&s->share[e]);
    tsr_device_free(s->device[e]);
    for (s->n_engine--; e < s->n_engine; e++) {
        s->share[e] = s->share[e + 1];
        s->device[e] = s->device[e + 1];
        s->speed[e] = s->speed[e + 1];
    }
    s->share[e] = (tsr_engine_share){0};
    s->device[e] = NULL;
}

/* Each number of components has kernels of its own. */
static tsr_status open_device(int index, const tsr_setup *s,
                              tsr_device **device, tsr_err *err)
{
    const tsr_likelihood *l = s->likelihood;
    char choice[16];
    snprintf(choice, sizeof choice, "%d", index);
    tsr_status status = tsr_device_open(choice, device, err);
    for (int n_comp = 1; n_comp <= TSR_N_COMP; n_comp++) {
        int is_needed[2] = {0, 0};
        for (int p = 0; p < l->n_probe && status == TSR_OK; p++) {
            const tsr_engine_spec spec = spec_of(s, s->likelihood, p, 1);
            const tsr_engine_choice engine = tsr_engine_choose(
                &spec, tsr_device_get_info(*device), s->engine_choice);
            if (l->probe[p].n_comp == n_comp)
                is_needed[engine == TSR_ENGINE_PLANE_WAVES] = 1;
        }
        if (is_needed[0])
            TSR_THEN(status,
                     tsr_engine_self_test(*device, NULL, s->topology->n_body,
                                          n_comp, NULL, err));
        if (is_needed[1])
            TSR_THEN(status,
                     tsr_plane_wave_self_test(*device, 0, n_comp, NULL, err));
    }
    return status;
}

/* Of "all" those that pass; where devices were named each has to. */
static tsr_status open_devices(const char *use, tsr_log *log, tsr_setup *s,
                               tsr_err *err)
{
    tsr_device_info *list = NULL;
    int n = 0, n_chosen = 0, *chosen = NULL;
    int any = strcmp(use, "all") == 0;
    tsr_err why = {0};
    tsr_status status = tsr_device_list(&list, &n, err);
    if (status == TSR_OK) {
        chosen = calloc((size_t)n, sizeof *chosen);
        status = chosen == NULL ? tsr_fail(err, TSR_E_NOMEM, "out of memory")
                                : tsr_device_choose_many(use, n, list, chosen,
                                                         &n_chosen, err);
    }
    if (status == TSR_OK)
        status = reserve(s, n_chosen, err);
    for (int i = 0; i < n_chosen && status == TSR_OK; i++) {
        int e = s->n_engine++;
        status = open_device(chosen[i], s, &s->device[e], &why);
        if (status == TSR_E_DEVICE && any) {
            tsr_warn(log, "device %d is left out: %s", chosen[i], why.message);
            drop(s, e);
            status = TSR_OK;
        } else if (status != TSR_OK) {
            status = tsr_fail(err, status, "%s", why.message);
        }
    }
    if (status == TSR_OK && s->n_engine == 0)
        status = tsr_fail(err, TSR_E_DEVICE,
                          "none of %d devices can be used; the last: %s",
                          n_chosen, why.message);
    free(chosen);
    free(list);
    return status;
}

/* ---- shares ---- */

/* Seconds for one batch of full profiles of the molecule: the median of a few,
 * after one that does not count; two seconds of it are enough. */
static tsr_status time_batch(tsr_batch *batch, const tsr_setup *s, int n,
                             double *profile, tsr_body_proposal *ask,
                             double *seconds, tsr_err *err)
{
    enum { REPEAT = 7 };
    const double(*xyz)[3] = first_places(s);
    const tsr_body_range all = {.count = batch->engine->n_body, .xyz = xyz};
    const double begin = tsr_clock_s();
    double took[REPEAT];
    int n_took = 0;
    tsr_status status = TSR_OK;
    for (int i = 0; i < n && status == TSR_OK; i++) {
        ask[i] = (tsr_body_proposal){i, 1, &all};
        status = tsr_batch_set(batch, i, xyz, NULL, err);
    }
    for (int r = -1; r < REPEAT && status == TSR_OK; r++) {
        double start = tsr_clock_s();
        if (n_took > 0 && start - begin > 2.0)
            break;
        status = tsr_batch_submit(batch, n, ask, err);
        if (status == TSR_OK)
            status = tsr_batch_wait(batch, profile, err);
        if (status != TSR_OK)
            break;
        if (r >= 0)
            took[n_took++] = tsr_clock_s() - start;
        for (int i = 0; i < n; i++)
            tsr_batch_reject(batch, i);
    }
    if (status == TSR_OK) {
        gsl_sort(took, 1, (size_t)n_took);
        *seconds = took[n_took / 2];
    }
    return status;
}

/* One device at a time, so that they do not take the host from each other. */
static tsr_status measure(tsr_setup *s, int n_chain, tsr_err *err)
{
    enum { MOST = 32 };
    int n = (n_chain + s->n_engine - 1) / s->n_engine;
    n = n < MOST ? n : MOST;
    size_t n_profile = (size_t)tsr_likelihood_n_profile(s->likelihood);
    double *profile = calloc((size_t)n * n_profile, sizeof *profile);
    tsr_body_proposal *ask = calloc((size_t)n, sizeof *ask);
    tsr_status status = profile == NULL || ask == NULL
                            ? tsr_fail(err, TSR_E_NOMEM, "out of memory")
                            : TSR_OK;
    for (int e = 0; e < s->n_engine && status == TSR_OK; e++) {
        tsr_engine *engine = NULL;
        tsr_batch *batch = NULL;
        double seconds = 0.0;
        status = tsr_setup_make_engine(s, s->likelihood, s->device[e], n,
                                       &engine, err);
        if (status == TSR_OK)
            status = tsr_batch_new(engine, n, &batch, err);
        if (status == TSR_OK)
            status = time_batch(batch, s, n, profile, ask, &seconds, err);
        if (status == TSR_OK)
            s->speed[e] = n / fmax(seconds, 1e-9);
        tsr_batch_free(batch);
        tsr_engine_free(engine);
    }
    free(profile);
    free(ask);
    return status;
}

static int are_alike(const tsr_setup *s)
{
    for (int e = 1; e < s->n_engine; e++)
        if (!tsr_device_is_alike(tsr_device_get_info(s->device[0]),
                                 tsr_device_get_info(s->device[e])))
            return 0;
    return 1;
}

static tsr_status divide(int n_chain, tsr_log *log, tsr_setup *s, tsr_err *err)
{
    if (s->n_engine == 1) {
        s->share[0].n_chain = n_chain;
        return TSR_OK;
    }
    int n = s->n_engine;
    int *part = calloc((size_t)n, sizeof *part);
    if (part == NULL)
        return tsr_fail(err, TSR_E_NOMEM, "out of memory");
    tsr_status status = TSR_OK;
    if (!are_alike(s))
        status = measure(s, n_chain, err);
    if (status == TSR_OK && s->speed[0] > 0.0)
        tsr_warn(log, "the devices are not alike and share the chains by "
                      "measured speed: a repeat of this run may divide them "
                      "otherwise and draw other numbers");
    if (status == TSR_OK) { /* without speeds all parts are equal */
        tsr_share_divide(n_chain, n, s->speed, part);
        for (int e = n - 1; e >= 0; e--) {
            s->share[e].n_chain = part[e];
            if (part[e] > 0)
                continue;
            tsr_warn(log,
                     "device '%s' is left out: there are fewer chains (%d) "
                     "than devices (%d); sampler.chains sets them",
                     tsr_device_get_info(s->device[e])->name, n_chain, n);
            drop(s, e);
        }
    }
    free(part);
    return status;
}

/* ---- engines ---- */

static tsr_status open_engines(tsr_setup *s, tsr_err *err)
{
    tsr_status status = TSR_OK;
    for (int e = 0; e < s->n_engine && status == TSR_OK; e++) {
        int n_system = s->share[e].n_chain * tsr_target_n_temp(&s->target) *
                       tsr_target_n_state(&s->target);
        status = tsr_setup_make_engine(s, s->likelihood, s->device[e], n_system,
                                       &s->share[e].engine, err);
    }
    return status;
}

/* "chains 0 to 3 (812 profiles/s): " where there are several engines. */
static void say_chains(const tsr_setup *s, int e, int first, char *text,
                       size_t size)
{
    int last = first + s->share[e].n_chain - 1;
    char speed[48] = "";
    text[0] = '\0';
    if (s->n_engine == 1)
        return;
    if (s->speed[e] > 0.0)
        snprintf(speed, sizeof speed, " (%.4g profiles/s)", s->speed[e]);
    if (last > first)
        snprintf(text, size, "chains %d to %d%s: ", first, last, speed);
    else
        snprintf(text, size, "chain %d%s: ", first, speed);
}

/* What the environment changes. */
static void tell_environment(tsr_log *log)
{
    const char *kernels = getenv("TSR_KERNEL_DIR");
    const char *tuning = getenv("TESSERA_TUNING");
    if (kernels != NULL && *kernels != '\0')
        tsr_warn(log,
                 "the kernels are those in '%s' (TSR_KERNEL_DIR), not those of "
                 "this program",
                 kernels);
    if (tuning != NULL && *tuning != '\0')
        tsr_info(log,
                 "settings of the engine are looked for in '%s' first "
                 "(TESSERA_TUNING)",
                 tuning);
}

/* For the trace, and the log: there "variant; device; source; options", the
 * last two for --verbose alone. */
static tsr_status tell(tsr_log *log, tsr_setup *s, tsr_err *err)
{
    enum { CHAINS = 128 };
    size_t size =
        (size_t)s->n_engine * (sizeof s->share[0].engine->description + CHAINS);
    size_t used = 0;
    s->engine_text = calloc(size, 1);
    if (s->engine_text == NULL)
        return tsr_fail(err, TSR_E_NOMEM, "out of memory");
    for (int e = 0, first = 0; e < s->n_engine; e++) {
        char chains[CHAINS];
        const char *whole = s->share[e].engine->description;
        const char *end = strchr(whole, ';');
        end = end != NULL ? strchr(end + 1, ';') : NULL;
        say_chains(s, e, first, chains, sizeof chains);
        tsr_info(log, "engine: %s%.*s", chains,
                 (int)(end != NULL ? (size_t)(end - whole) : strlen(whole)),
                 whole);
        if (end != NULL)
            tsr_debug(log, "engine%s", end);
        used += (size_t)snprintf(s->engine_text + used, size - used, "%s%s%s",
                                 e > 0 ? "\n" : "", chains, whole);
        first += s->share[e].n_chain;
    }
    return TSR_OK;
}

/* The profiles of the first conformation, *partial [n_pair][n_q]; caller frees,
 * also after an error. */
static tsr_status profile_first(const tsr_setup *s, tsr_engine *engine,
                                double **partial, tsr_err *err)
{
    tsr_batch *batch = NULL;
    *partial = calloc((size_t)tsr_likelihood_n_profile(s->likelihood),
                      sizeof **partial);
    tsr_status status = *partial == NULL
                            ? tsr_fail(err, TSR_E_NOMEM, "out of memory")
                            : tsr_batch_new(engine, 1, &batch, err);
    if (status == TSR_OK)
        status = tsr_batch_set(batch, 0, first_places(s), *partial, err);
    tsr_batch_free(batch);
    return status;
}

/* An engine and the grid on the molecule itself, against a direct sum. */
static tsr_status check_engine(tsr_setup *s, tsr_engine *engine, double *worst,
                               tsr_err *err)
{
    double *partial;
    tsr_status status = profile_first(s, engine, &partial, err);
    if (status == TSR_OK)
        status = tsr_likelihood_check(s->likelihood, s->topology, s->scattering,
                                      s->first, partial, worst, err);
    free(partial);
    return status;
}

/* The rigid fit, with the model that draws will have. */
static tsr_status fit_first(tsr_setup *s, tsr_err *err)
{
    const tsr_likelihood *l = s->likelihood;
    double *partial;
    tsr_status status = profile_first(s, s->share[0].engine, &partial, err);
    if (s->atom_target != NULL) {
        l = tsr_setup_atom_likelihood(s->atom_target);
        TSR_THEN(status, tsr_setup_atom_partial(s->atom_target, s->first,
                                                partial, err));
    }
    TSR_THEN(status, tsr_setup_fit_start(s, l, partial, err));
    free(partial);
    return status;
}

static tsr_status check_engines(tsr_log *log, tsr_setup *s, tsr_err *err)
{
    double worst = 0.0;
    for (int e = 0; e < s->n_engine; e++) {
        double own = 0.0;
        tsr_status status = check_engine(s, s->share[e].engine, &own, err);
        if (status != TSR_OK)
            return s->n_engine == 1
                       ? status
                       : tsr_wrap(err, status, "device '%s'",
                                  tsr_device_get_info(s->device[e])->name);
        worst = fmax(worst, own);
    }
    tsr_info(log,
             "grid: %d q values, step %.5f 1/A, good for %.0f A; error at "
             "most %.2g %% of what is allowed",
             s->likelihood->grid.n_q, s->likelihood->grid.dq_inv_ang,
             s->d_bound_ang, 100.0 * worst);
    return TSR_OK;
}

/* ---- how many chains and temperatures ---- */

/* Systems that all devices together have room for, with some to spare. */
static double room_for(const tsr_setup *s)
{
    double least = HUGE_VAL;
    for (int e = 0; e < s->n_engine; e++) {
        double share = 0.0; /* of the device, that a system takes */
        for (int p = 0; p < s->likelihood->n_probe; p++) {
            const tsr_engine_spec spec = spec_of(s, s->likelihood, p, 1);
            const double room =
                s->device[e] != NULL
                    ? tsr_engine_room(&spec, s->device[e], s->engine_choice)
                    : 0.0;
            share += room > 0.0 ? 1.0 / room : 0.0;
        }
        least = fmin(least, 1.0 / share);
    }
    return 0.8 * s->n_engine * least;
}

static int will_walk(const tsr_setup *s);

static int has_gpu(const tsr_setup *s);

/* sampler.chains, .temperatures, .t_max and .start become numbers. */
static tsr_status settle(tsr_config *config, int n_chain, tsr_setup *s,
                         tsr_err *err)
{
    const int has_data = s->likelihood != NULL;
    const tsr_sampler_place place = {
        .has_data = has_data,
        .is_gpu = has_gpu(s),
        .walks = will_walk(s),
        .n_thread = s->n_thread,
        .n_state = tsr_target_n_state(&s->target),
        .room = has_data && has_gpu(s) ? room_for(s) : 0.0,
        .least_beta = has_data ? tsr_likelihood_least_beta(s->likelihood) : 0.0,
        .is_placed = tsr_config_is_placed(config)};
    const tsr_status status = tsr_sampler_settle(&config->sampler, &place, err);
    s->target.n_temp = tsr_sampler_n_temp(&config->sampler, has_data);
    s->target.t_max = tsr_sampler_t_max(&config->sampler);
    s->n_chain = n_chain > 0 ? n_chain : (int)config->sampler.chains.number;
    return status;
}

/* Whether chains move all atoms where draws are of these, by plane waves. On a
 * processor such a step takes twenty times as long as one of bodies by tiles,
 * and bodies that propose are better (bench/RESULTS.md), if it is known what
 * they lack. The reference engine has no plane waves. */
static int moves_atoms(const tsr_config *config, const tsr_setup *s)
{
    return s->device[0] != NULL &&
           (s->engine_choice == TSR_ENGINE_PLANE_WAVES ||
            tsr_config_no_atoms(config) != NULL ||
            (s->engine_choice == TSR_ENGINE_AUTO && has_gpu(s)));
}

static tsr_status set_surrogate(tsr_log *log, tsr_setup *setup, tsr_err *err);

tsr_status tsr_setup_engine(tsr_config *config, int n_chain, tsr_log *log,
                            tsr_setup *setup, tsr_err *err)
{
    tsr_setup *s = setup;
    if (tsr_likelihood_n_profile(s->likelihood) == 0)
        return settle(config, n_chain, s, err);
    tsr_status status;
    if (strcmp(config->device.use, "reference") == 0) {
        status = reserve(s, 1, err);
        s->n_engine = status == TSR_OK;
    } else {
        tell_environment(log);
        s->engine_choice = (tsr_engine_choice)config->device.engine;
        TSR_TRY(find_units(s, err));
        status = open_devices(config->device.use, log, s, err);
    }
    if (status == TSR_OK && moves_atoms(config, s))
        status = tsr_setup_ride(config, log, s, err);
    if (status == TSR_OK)
        status = settle(config, n_chain, s, err);
    if (status == TSR_OK)
        status = divide(s->n_chain, log, s, err);
    if (status == TSR_OK)
        status = open_engines(s, err);
    if (status == TSR_OK)
        status = tell(log, s, err);
    if (status == TSR_OK)
        status = check_engines(log, s, err);
    if (status == TSR_OK)
        status = tsr_setup_model_error(config, s->likelihood,
                                       s->share[0].engine, log, s, err);
    TSR_THEN(status, tsr_setup_take_atoms(config, log, s, err));
    if (status == TSR_OK)
        status = set_surrogate(log, s, err);
    if (status == TSR_OK)
        status = fit_first(s, err);
    if (status == TSR_OK && s->n_thread < s->n_engine) {
        if (config->device.threads.word < 0)
            tsr_info(log, "%d threads instead of %d: one for each device",
                     s->n_engine, s->n_thread);
        s->n_thread = s->n_engine;
    }
    s->target.n_share = status == TSR_OK ? s->n_engine : 0;
    s->target.share = s->share;
    return tsr_config_blame(config, status, err);
}

/* ---- walks and redraws ----
 *
 * Moves by a surrogate: where a run has walks and redraws, and what makes them.
 */

/* On a processor a walk takes as long as twenty to forty other steps. In a
 * small molecule it gains no more than they do, in others one is worth its time
 * where a GPU makes three. */
enum { LEAST_BODIES_CPU = 450, WALK_COST_CPU = 3 };

static int may_walk(const tsr_setup *s, int e)
{
    const tsr_surrogate_options *o = s->move_options[TSR_MOVE_surrogate];
    if (s->device[e] == NULL || o == NULL || !(o->weight > 0.0))
        return 0;
    return o->on == TSR_SURROGATE_ON_ALL ||
           tsr_device_get_info(s->device[e])->type == TSR_DEVICE_GPU ||
           (o->on == TSR_SURROGATE_ON_AUTO &&
            s->topology->n_body >= LEAST_BODIES_CPU);
}

static int may_redraw(const tsr_setup *s, int e)
{
    return s->device[e] != NULL &&
           tsr_move_weight(s->move_options[TSR_MOVE_redraw]) > 0.0;
}

/* On all devices, or on none, since chains on them have the same moves. */
static int will(const tsr_setup *s, int (*may)(const tsr_setup *, int))
{
    int all = s->n_engine > 0 && !s->target.is_still &&
              tsr_surrogate_applies(s->topology, s->likelihood);
    for (int e = 0; e < s->n_engine; e++)
        all &= may(s, e);
    return all;
}

/* Whether chains will walk by a surrogate on all devices; whether one of these
 * is a GPU. And what the moves by a surrogate need, on each device, and on none
 * where there is nothing to go by. Errors: TSR_E_NOMEM. */
static int will_walk(const tsr_setup *s)
{
    return will(s, may_walk);
}

static int will_redraw(const tsr_setup *s)
{
    return will(s, may_redraw);
}

static int has_gpu(const tsr_setup *s)
{
    for (int e = 0; e < s->n_engine; e++)
        if (s->device[e] != NULL &&
            tsr_device_get_info(s->device[e])->type == TSR_DEVICE_GPU)
            return 1;
    return 0;
}

/* For every device a kernel that walks by the surrogate; else none has. */
static tsr_status make_walks(tsr_log *log, tsr_setup *s, tsr_err *err)
{
    tsr_err why = {0};
    tsr_status status = TSR_OK;
    for (int e = 0; e < s->n_engine && status == TSR_OK; e++) {
        tsr_surrogate_engine *walks = NULL;
        status = tsr_surrogate_device_new(
            s->device[e], tsr_surrogate_spec_of(s->surrogate), &walks, &why);
        if (walks != NULL) {
            walks->surrogate = s->surrogate;
            walks->walk_cost = has_gpu(s) ? 1.0 : WALK_COST_CPU;
        }
        s->share[e].launcher[TSR_MOVE_surrogate] = walks;
    }
    if (status == TSR_OK)
        return TSR_OK;
    if (status != TSR_E_DEVICE)
        return tsr_fail(err, status, "%s", why.message);
    tsr_warn(log, "no walks by a surrogate: %s", why.message);
    for (int e = 0; e < s->n_engine; e++) {
        tsr_surrogate_engine_free(s->share[e].launcher[TSR_MOVE_surrogate]);
        s->share[e].launcher[TSR_MOVE_surrogate] = NULL;
    }
    return TSR_OK;
}

/* Tails alone other moves turn as well in less time. */
static tsr_status make_redraws(tsr_setup *s, tsr_err *err)
{
    const tsr_surrogate_spec *spec = tsr_surrogate_spec_of(s->surrogate);
    const int is_worth = spec->n_linker > 0 && tsr_redraw_n_stretch(spec) > 0;
    for (int e = 0; e < s->n_engine && is_worth; e++) {
        tsr_surrogate_engine *redraws = tsr_redraw_engine_new(spec);
        TSR_TRY(tsr_allocated(redraws, err));
        redraws->surrogate = s->surrogate;
        s->share[e].launcher[TSR_MOVE_redraw] = redraws;
    }
    return TSR_OK;
}

static tsr_status set_surrogate(tsr_log *log, tsr_setup *setup, tsr_err *err)
{
    tsr_setup *s = setup;
    const int walks = will_walk(s), redraws = will_redraw(s);
    if (!walks && !redraws)
        return TSR_OK;
    TSR_TRY(tsr_surrogate_new(s->topology, s->prior, s->prior_table,
                              s->likelihood, s->first, &s->surrogate, err));
    if (s->surrogate == NULL)
        return TSR_OK;
    if (walks)
        TSR_TRY(make_walks(log, s, err));
    const int has_walks = s->share[0].launcher[TSR_MOVE_surrogate] != NULL;
    /* Beside a GPU that walks they take hosts' time from what walks find
     * sooner. */
    if (redraws && !(has_walks && has_gpu(s)))
        TSR_TRY(make_redraws(s, err));
    const int has_redraws = s->share[0].launcher[TSR_MOVE_redraw] != NULL;
    if (!has_walks && !has_redraws) {
        tsr_surrogate_free(s->surrogate);
        s->surrogate = NULL;
        return TSR_OK;
    }
    const tsr_surrogate_spec *p = tsr_surrogate_spec_of(s->surrogate);
    if (has_walks)
        tsr_info(log,
                 "walks by a surrogate: %d torsions, %d beads, %d pairs of "
                 "them%s",
                 p->n_torsion, p->n_bead, p->n_pair,
                 p->has_c2 ? ", and c2" : "");
    if (has_redraws)
        tsr_info(log, "redraws by a surrogate: %d linkers and tails, %d beads",
                 tsr_redraw_n_stretch(p), p->n_bead);
    return TSR_OK;
}
