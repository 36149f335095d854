/* Devices, the division of chains among them, an engine on each, and the choice
 * and check of the model that the engines compute. */
#include "posterior/setup.h"

#include "core/interrupt.h"
#include "core/ranks.h"
#include "gpu/engine_device.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

static tsr_engine_spec make_spec(const tsr_setup *s, const tsr_likelihood *l,
                                 int probe, int n_system)
{
    const tsr_molecule *m = &s->molecule;
    tsr_engine_spec spec = tsr_likelihood_engine(l, probe, m->topology->n_body,
                                                 n_system, m->d_bound_ang);
    if (s->devices.unit != NULL) {
        spec.unit = s->devices.unit;
        spec.rigid = (const double(*)[3])m->first->body;
    }
    const int is_part = l->n_species > 0 && l->species[probe].is_part;
    if (m->topology->symmetry.n > 1 && !is_part) {
        spec.n_copy = m->topology->symmetry.n;
        spec.n_unique = m->topology->symmetry.n_unique;
        spec.copy_weight = m->topology->symmetry.weight;
    }
    return spec;
}

/* One engine for all probes of a likelihood. device NULL: the reference
 * engine. */
static tsr_status make_engine(const tsr_setup *setup,
                              const tsr_likelihood *likelihood,
                              const tsr_device *device, int n_system,
                              tsr_engine **out, tsr_err *err)
{
    const int n = likelihood->n_probe;
    tsr_engine **part = calloc((size_t)n, sizeof(*part));
    tsr_status status = tsr_allocated(part, err);
    for (int p = 0; p < n && status == TSR_OK; p++) {
        const tsr_engine_spec spec = make_spec(setup, likelihood, p, n_system);
        status = device == NULL ? tsr_engine_reference_new(&spec, &part[p], err)
                                : tsr_engine_device_new(&spec, device,
                                                        setup->devices.choice,
                                                        &part[p], err);
    }
    TSR_THEN(status, tsr_engine_join(n, part, out, err));
    for (int p = 0; p < n && part != NULL && status != TSR_OK; p++)
        tsr_engine_free(part[p]);
    free(part);
    return status;
}

/* ---- devices ---- */

static tsr_status reserve(tsr_devices *v, int n, tsr_err *err)
{
    tsr_pool_array(&v->pool, v->device, n);
    tsr_pool_array(&v->pool, v->group, n);
    return tsr_pool_check(&v->pool, err);
}

/* Removes a device from the run. */
static void drop_device(tsr_devices *v, int e)
{
    tsr_engine_group_clear(&v->group[e]);
    tsr_device_free(v->device[e]);
    for (v->n--; e < v->n; e++) {
        v->group[e] = v->group[e + 1];
        v->device[e] = v->device[e + 1];
    }
}

void tsr_devices_clear(tsr_devices *devices)
{
    while (devices->n > 0)
        drop_device(devices, devices->n - 1);
    tsr_surrogate_free(devices->surrogate);
    tsr_pool_clear(&devices->pool);
    *devices = (tsr_devices){.n = 0};
}

static int is_gpu(const tsr_device *device)
{
    return device != NULL &&
           tsr_device_get_info(device)->type == TSR_DEVICE_GPU;
}

static int has_gpu(const tsr_devices *v)
{
    int has = 0;
    for (int e = 0; e < v->n; e++)
        has |= is_gpu(v->device[e]);
    return has;
}

/* Opens a device and tests the kernels for each number of components that the
 * probes need. */
static tsr_status open_device(int index, const tsr_setup *s,
                              tsr_device **device, tsr_err *err)
{
    const tsr_likelihood *l = s->data.likelihood;
    char choice[16];
    snprintf(choice, sizeof choice, "%d", index);
    tsr_status status = tsr_device_open(choice, device, err);
    for (int n_comp = 1; n_comp <= TSR_N_COMP; n_comp++) {
        int is_needed[2] = {0, 0};
        for (int p = 0; p < l->n_probe && status == TSR_OK; p++) {
            const tsr_engine_spec spec = make_spec(s, l, p, 1);
            const tsr_engine_choice engine = tsr_engine_choose(
                &spec, tsr_device_get_info(*device), s->devices.choice);
            if (l->probe[p].n_comp == n_comp)
                is_needed[engine == TSR_ENGINE_PLANE_WAVES] = 1;
        }
        if (is_needed[0])
            TSR_THEN(status, tsr_engine_self_test(*device, NULL,
                                                  s->molecule.topology->n_body,
                                                  n_comp, NULL, err));
        if (is_needed[1])
            TSR_THEN(status,
                     tsr_plane_wave_self_test(*device, 0, n_comp, NULL, err));
    }
    return status;
}

/* The ranks of a computer share its devices. With `auto` and `gpu`, for which
 * one rank takes one device, they share all GPUs. */
static const char *devices_of_ranks(const char *use, int n,
                                    const tsr_device_info *list)
{
    int n_rank, n_gpu = 0;
    (void)tsr_ranks_on_node(&n_rank);
    for (int i = 0; i < n; i++)
        n_gpu += list[i].type == TSR_DEVICE_GPU;
    return n_rank > 1 && n_gpu > 0 &&
                   (strcmp(use, "auto") == 0 || strcmp(use, "gpu") == 0)
               ? "all-gpu"
               : use;
}

/* Keeps the devices of this rank: every n_rank-th, or one that other ranks
 * have, too. */
static void keep_own(int *chosen, int *n_chosen)
{
    int n_rank, n = 0;
    const int rank = tsr_ranks_on_node(&n_rank);
    if (*n_chosen < 1)
        return;
    for (int i = rank % *n_chosen; i < *n_chosen; i += n_rank)
        chosen[n++] = chosen[i];
    *n_chosen = n;
}

/* Opens the devices. For `all`, devices that fail are left out; a device named
 * explicitly must work. */
static tsr_status open_devices(const char *use, tsr_log *log, tsr_setup *s,
                               tsr_err *err)
{
    const int any = strcmp(use, "all") == 0;
    tsr_devices *v = &s->devices;
    tsr_device_info *list = NULL;
    int n = 0, n_chosen = 0, *chosen = NULL;
    tsr_err why = {0};
    tsr_status status = tsr_device_list(&list, &n, err);
    if (status == TSR_OK) {
        chosen = calloc((size_t)n, sizeof *chosen);
        status = tsr_allocated(chosen, err);
    }
    TSR_THEN(status, tsr_device_choose_many(devices_of_ranks(use, n, list), n,
                                            list, chosen, &n_chosen, err));
    keep_own(chosen, &n_chosen);
    TSR_THEN(status, reserve(v, n_chosen, err));
    for (int i = 0; i < n_chosen && status == TSR_OK; i++) {
        const int e = v->n++;
        status = open_device(chosen[i], s, &v->device[e], &why);
        if (status == TSR_E_DEVICE && any) {
            tsr_warn(log, "device %d is left out: %s", chosen[i], why.message);
            drop_device(v, e);
            status = TSR_OK;
        } else if (status != TSR_OK) {
            status = tsr_fail(err, status, "%s", why.message);
        }
    }
    if (status == TSR_OK && v->n == 0)
        status = tsr_fail(
            err, TSR_E_DEVICE,
            "none of %d devices can be used; error of the last device: %s",
            n_chosen, why.message);
    free(chosen);
    free(list);
    return status;
}

/* Logs an environment variable that replaces kernels. */
static void log_environment(tsr_log *log)
{
    const char *kernels = getenv("TSR_KERNEL_DIR");
    if (kernels != NULL && *kernels != '\0')
        tsr_warn(log,
                 "the kernels are read from '%s' (TSR_KERNEL_DIR) instead of "
                 "the program",
                 kernels);
}

/* Whether the run uses plain C: as configured, or since `auto` finds no driver,
 * which the log says. Curves of all atoms need a device. */
static int is_reference(const tsr_config *config, tsr_log *log)
{
    const char *use = config->device.use;
    if (strcmp(use, "auto") != 0 || tsr_device_has_driver() ||
        config->structure.bodies == TSR_CONFIG_ATOMS)
        return strcmp(use, "reference") == 0;
    tsr_warn(log, "no OpenCL driver is installed, for a GPU or for processors "
                  "(apt-get install pocl-opencl-icd, or pip install "
                  "\"tessera-saxs[cpu]\"): the run uses reference, which is "
                  "many times slower");
    return 1;
}

/* Opens the configured devices, and finds the rigid unit of each body, unless
 * structure.starts is given: the units must have the same shape in all
 * states. */
static tsr_status open_configured(const tsr_config *config, tsr_log *log,
                                  tsr_setup *s, tsr_err *err)
{
    const tsr_topology *t = s->molecule.topology;
    tsr_devices *v = &s->devices;
    if (is_reference(config, log)) {
        TSR_TRY(reserve(v, 1, err));
        v->n = 1;
        return TSR_OK;
    }
    log_environment(log);
    v->choice = (tsr_engine_choice)config->device.engine;
    if (s->molecule.n_start == 0) {
        tsr_pool_array(&v->pool, v->unit, t->n_body);
        TSR_TRY(tsr_pool_check(&v->pool, err));
        for (int b = 0; b < t->n_body; b++)
            v->unit[b] = t->residue[t->body[b].residue].unit;
    }
    return open_devices(config->device.use, log, s, err);
}

/* ---- division of the chains ---- */

static int n_own_chain(const tsr_setup *s)
{
    const int rank = tsr_ranks_rank();
    return tsr_ranks_first(s->n_chain, rank + 1) -
           tsr_ranks_first(s->n_chain, rank);
}

/* Divides the chains among the devices in proportion to an estimate of their
 * speed: compute units times clock times lanes of a unit. So a repeated run
 * divides the chains in the same way. Devices without chains are left out. */
static tsr_status divide_chains(tsr_log *log, tsr_setup *s, tsr_err *err)
{
    enum { GPU_LANES = 64 };
    tsr_devices *v = &s->devices;
    int *part;
    double *speed;
    tsr_pool_array(&v->pool, part, v->n);
    tsr_pool_array(&v->pool, speed, v->n);
    TSR_TRY(tsr_pool_check(&v->pool, err));
    for (int e = 0; e < v->n && v->device[e] != NULL; e++) {
        const tsr_device_info *of = tsr_device_get_info(v->device[e]);
        const int lanes = is_gpu(v->device[e]) ? GPU_LANES : of->float_width;
        const int mhz = of->clock_mhz > 0 ? of->clock_mhz : 1000;
        speed[e] = (double)of->compute_units * mhz * lanes;
    }
    tsr_apportion(n_own_chain(s), v->n, speed, part);
    for (int e = v->n - 1; e >= 0; e--) {
        v->group[e].n_chain = part[e];
        if (part[e] > 0)
            continue;
        tsr_warn(log,
                 "device '%s' is not used: there are fewer chains (%d) than "
                 "devices; sampler.chains sets the number of chains",
                 tsr_device_get_info(v->device[e])->name, n_own_chain(s));
        drop_device(v, e);
    }
    return TSR_OK;
}

/* ---- engines ---- */

static tsr_status open_engines(tsr_setup *s, tsr_err *err)
{
    tsr_devices *v = &s->devices;
    for (int e = 0; e < v->n; e++)
        TSR_TRY(
            make_engine(s, s->data.likelihood, v->device[e],
                        v->group[e].n_chain * tsr_target_n_temp(&s->target) *
                            tsr_target_n_state(&s->target),
                        &v->group[e].engine, err));
    return TSR_OK;
}

/* "chains 0 to 3: " if there are several engines, else "". */
static void format_chains(const tsr_devices *v, int e, int first, char *text,
                          size_t size)
{
    int last = first + v->group[e].n_chain - 1;
    text[0] = '\0';
    if (v->n == 1)
        return;
    if (last > first)
        snprintf(text, size, "chains %d to %d: ", first, last);
    else
        snprintf(text, size, "chain %d: ", first);
}

/* Describes the engines for the trace and the log, as "variant; device; source;
 * options". The log gets the last two with --verbose only. */
static tsr_status log_engines(tsr_log *log, tsr_devices *v, tsr_err *err)
{
    for (int e = 0, first = 0; e < v->n; e++) {
        char chains[128];
        const char *whole = v->group[e].engine->description;
        const char *end = strchr(whole, ';');
        end = end != NULL ? strchr(end + 1, ';') : NULL;
        format_chains(v, e, first, chains, sizeof chains);
        tsr_info(log, "engine: %s%.*s", chains,
                 (int)(end != NULL ? (size_t)(end - whole) : strlen(whole)),
                 whole);
        if (end != NULL)
            tsr_debug(log, "engine%s", end);
        v->text = tsr_pool_format(&v->pool, "%s%s%s%s", e > 0 ? v->text : "",
                                  e > 0 ? "\n" : "", chains, whole);
        TSR_TRY(tsr_pool_check(&v->pool, err));
        first += v->group[e].n_chain;
    }
    return TSR_OK;
}

static tsr_status check_engines(tsr_log *log, const tsr_setup *s,
                                double *partial, tsr_err *err)
{
    const tsr_likelihood *l = s->data.likelihood;
    const tsr_conformation *first = s->molecule.first;
    const tsr_devices *v = &s->devices;
    double worst = 0.0;
    for (int e = 0; e < v->n; e++) {
        double own = 0.0;
        tsr_batch *one = NULL;
        tsr_status status = tsr_batch_new(v->group[e].engine, 1, &one, err);
        TSR_THEN(status, tsr_batch_set(one, 0, (const double(*)[3])first->body,
                                       partial, err));
        TSR_THEN(status, tsr_likelihood_check(l, s->molecule.topology,
                                              s->data.scattering, first,
                                              partial, &own, err));
        tsr_batch_free(one);
        if (status != TSR_OK)
            return v->n == 1
                       ? status
                       : tsr_wrap(err, status, "device '%s'",
                                  tsr_device_get_info(v->device[e])->name);
        worst = fmax(worst, own);
    }
    tsr_info(log,
             "grid: %d q values, step %.5f 1/A, for distances up to %.0f A; "
             "error at most %.2g %% of the allowed error",
             l->grid.n_q, l->grid.dq_inv_ang, s->molecule.d_bound_ang,
             100.0 * worst);
    return TSR_OK;
}

/* ---- all-atom draws ----
 *
 * Chains move bodies, whose corrected curves are close to those of all atoms
 * (learn_error.c). An all-atom chain above each ladder
 * (sampler/all_atom_chain.h) samples the posterior of the all-atom curves,
 * whose hydration layer is made anew for each conformation. That posterior
 * needs its own terms, made from the same entries of the configuration, because
 * the terms of the bodies store a model error. */

/* Atoms and workspace, used by one thread at a time. */
struct tsr_atom_slot {
    tsr_atom_curves *curves;
    double *workspace;
    int is_used;
};

void tsr_atoms_clear(tsr_atom_target *atoms)
{
    for (int k = 0; k < atoms->n; k++)
        tsr_atom_curves_free(atoms->slot[k].curves);
    if (atoms->data != NULL)
        pthread_mutex_destroy(&atoms->lock);
    tsr_likelihood_free(atoms->likelihood);
    tsr_pool_clear(&atoms->pool);
    *atoms = (tsr_atom_target){.likelihood = NULL};
}

/* Partial profiles of all atoms; context is the tsr_atom_target. A free slot
 * always exists, because there are as many as threads. */
static tsr_status sum_atoms(void *context, const tsr_conformation *conformation,
                            double *partial, tsr_err *err)
{
    tsr_atom_target *t = context;
    struct tsr_atom_slot *slot = t->slot;
    double radius_ang = 0.0; /* neutrons do not set it */
    pthread_mutex_lock(&t->lock);
    while (slot->is_used)
        slot++;
    slot->is_used = 1;
    pthread_mutex_unlock(&t->lock);
    const tsr_status status =
        tsr_data_sum_atoms(t->data, t->likelihood, slot->curves, conformation,
                           slot->workspace, partial, &radius_ang, err);
    pthread_mutex_lock(&t->lock);
    slot->is_used = 0;
    if (status == TSR_OK)
        t->radius_ang = radius_ang;
    pthread_mutex_unlock(&t->lock);
    return status;
}

/* Makes likelihood and curves. partial [n_pair][n_q] out: of the first
 * conformation. */
static tsr_status make_all_atom_target(const tsr_config *config, tsr_setup *s,
                                       double *partial, tsr_err *err)
{
    tsr_atom_target *t = &s->atoms;
    const int n = s->n_thread > s->devices.n ? s->n_thread : s->devices.n;
    t->data = &s->data;
    pthread_mutex_init(&t->lock, NULL);
    TSR_TRY(tsr_data_copy_likelihood(config, &s->molecule, &s->data,
                                     &t->likelihood, err));
    tsr_pool_array(&t->pool, t->slot, n);
    TSR_TRY(tsr_pool_check(&t->pool, err));
    for (; t->n < n; t->n++) {
        tsr_pool_array(&t->pool, t->slot[t->n].workspace,
                       TSR_N_COMP_PAIR * t->likelihood->grid.n_q);
        TSR_TRY(tsr_pool_check(&t->pool, err));
        TSR_TRY(tsr_atom_curves_new(&s->molecule, &t->likelihood->grid,
                                    s->devices.device[0], NULL,
                                    &t->slot[t->n].curves, err));
    }
    TSR_TRY(sum_atoms(t, s->molecule.first, partial, err));
    tsr_likelihood_use_atoms(t->likelihood, t->radius_ang);
    return TSR_OK;
}

/* If draws are all-atom: makes the all-atom model of the target, and sets
 * partial [n_pair][n_q] to that of the first conformation. Called after the
 * model error of the bodies is known. */
static tsr_status add_all_atom_target(const tsr_config *config, tsr_log *log,
                                      tsr_setup *setup, double *partial,
                                      tsr_err *err)
{
    tsr_atom_target *t = &setup->atoms;
    if (config->structure.bodies != TSR_CONFIG_ATOMS)
        return TSR_OK;
    TSR_TRY(tsr_wrap(err, make_all_atom_target(config, setup, partial, err),
                     "structure.bodies: atoms"));
    t->model = (tsr_all_atom_model){
        .target = setup->target, .context = t, .profile = sum_atoms};
    t->model.target.likelihood = t->likelihood;
    t->model.target.all_atom = &t->model;
    setup->target.all_atom = &t->model;
    tsr_info(log, "chains of bodies propose all-atom draws, and each draw is "
                  "accepted by its all-atom curve");
    return TSR_OK;
}

/* ---- model error and rigid fit ---- */

/* Learns the model error, prepares all-atom draws, and fits the first
 * conformation with the model that draws will have. */
static tsr_status learn_and_fit(const tsr_config *config, tsr_log *log,
                                tsr_setup *s, tsr_err *err)
{
    tsr_batch *bodies = NULL;
    double *partial;
    tsr_pool_array(&s->devices.pool, partial,
                   tsr_likelihood_n_profile(s->data.likelihood));
    TSR_TRY(tsr_pool_check(&s->devices.pool, err));
    tsr_status status =
        tsr_batch_new(s->devices.group[0].engine, 1, &bodies, err);
    TSR_THEN(status, tsr_setup_learn_model_error(config, bodies, log, s, err));
    TSR_THEN(status, tsr_batch_set(bodies, 0,
                                   (const double(*)[3])s->molecule.first->body,
                                   partial, err));
    TSR_THEN(status, add_all_atom_target(config, log, s, partial, err));
    TSR_THEN(status, tsr_data_fit_rigid(&s->data,
                                        tsr_draw_target(&s->target)->likelihood,
                                        partial, err));
    tsr_batch_free(bodies);
    return status;
}

/* ---- numbers of chains and temperatures ---- */

/* Number of systems for which the devices have memory, if each has as little as
 * the smallest, less a reserve of one fifth. */
static double system_capacity(const tsr_setup *s)
{
    const tsr_devices *v = &s->devices;
    double least = HUGE_VAL;
    for (int e = 0; e < v->n; e++) {
        double fraction = 0.0; /* fraction of the device's memory per system */
        for (int p = 0; p < s->data.likelihood->n_probe; p++) {
            const tsr_engine_spec spec = make_spec(s, s->data.likelihood, p, 1);
            const double most =
                v->device[e] != NULL
                    ? tsr_engine_capacity(&spec, v->device[e], v->choice)
                    : 0.0;
            fraction += most > 0.0 ? 1.0 / most : 0.0;
        }
        least = fmin(least, 1.0 / fraction);
    }
    return 0.8 * v->n * least;
}

static tsr_surrogate_run surrogate_run(const tsr_setup *s)
{
    return (tsr_surrogate_run){.topology = s->molecule.topology,
                               .prior = s->molecule.prior,
                               .table = s->tables.prior,
                               .likelihood = s->data.likelihood,
                               .first = s->molecule.first,
                               .move_options = s->move_options,
                               .is_frozen = s->target.is_frozen,
                               .n_device = s->devices.n,
                               .device = s->devices.device};
}

/* Resolves sampler.chains, .temperatures, .t_max and .start. */
static tsr_status resolve_sampler(tsr_config *config, int n_chain, tsr_setup *s,
                                  tsr_err *err)
{
    const tsr_likelihood *l = s->data.likelihood;
    const int gpu = has_gpu(&s->devices);
    const int n_rank = tsr_ranks_size();
    const tsr_surrogate_run run = surrogate_run(s);
    const tsr_sampler_problem problem = {
        .has_data = l != NULL,
        .is_gpu = gpu,
        .uses_surrogate = tsr_surrogate_is_possible(&run),
        .is_all_atom = config->structure.bodies == TSR_CONFIG_ATOMS,
        .n_thread = s->n_thread * n_rank,
        .n_state = tsr_target_n_state(&s->target),
        .capacity = gpu ? system_capacity(s) * n_rank : 0.0,
        .min_beta = l != NULL ? tsr_likelihood_min_beta(l) : 0.0,
        .is_placed =
            tsr_config_is_placed(config) && config->structure.contacts == 0};
    const tsr_status status =
        tsr_sampler_resolve_auto(&config->sampler, &problem, err);
    s->target.n_temp = tsr_sampler_n_temp(&config->sampler, l != NULL);
    s->target.t_max = tsr_sampler_t_max(&config->sampler);
    s->n_chain = n_chain > 0 ? n_chain : (int)config->sampler.chains.number;
    if (status == TSR_OK && s->n_chain < n_rank)
        return tsr_fail(err, TSR_E_CONFIG,
                        "sampler.chains: %d chains for %d ranks; start at most "
                        "%d ranks, or set more chains",
                        s->n_chain, n_rank, s->n_chain);
    return status;
}

/* ---- the whole ---- */

/* Opens the surrogate moves on all devices. */
static tsr_status set_surrogate(tsr_log *log, tsr_setup *s, tsr_err *err)
{
    const tsr_surrogate_run run = surrogate_run(s);
    tsr_devices *v = &s->devices;
    void ***launcher; /* [n] launchers of each engine */
    tsr_pool_array(&v->pool, launcher, v->n);
    TSR_TRY(tsr_pool_check(&v->pool, err));
    for (int e = 0; e < v->n; e++)
        launcher[e] = v->group[e].launcher;
    return tsr_surrogate_launchers_new(&run, log, launcher, &v->surrogate, err);
}

/* Opens the devices and the engines on them, and tests both. */
static tsr_status make_engines(tsr_config *config, int n_chain, tsr_log *log,
                               tsr_setup *s, tsr_err *err)
{
    tsr_devices *v = &s->devices;
    double *partial;
    TSR_TRY(open_configured(config, log, s, err));
    TSR_TRY(tsr_watch_check(s->watch, "the devices were opened", err));
    TSR_TRY(resolve_sampler(config, n_chain, s, err));
    TSR_TRY(divide_chains(log, s, err));
    TSR_TRY(open_engines(s, err));
    TSR_TRY(log_engines(log, v, err));
    tsr_pool_array(&v->pool, partial,
                   tsr_likelihood_n_profile(s->data.likelihood));
    TSR_TRY(tsr_pool_check(&v->pool, err));
    TSR_TRY(check_engines(log, s, partial, err));
    return tsr_watch_check(s->watch, "the engines were tested", err);
}

tsr_status tsr_setup_engine(tsr_config *config, int n_chain, tsr_log *log,
                            tsr_setup *setup, tsr_err *err)
{
    tsr_setup *s = setup;
    const tsr_devices *v = &s->devices;
    if (tsr_likelihood_n_profile(s->data.likelihood) == 0)
        return resolve_sampler(config, n_chain, s, err);
    tsr_interrupt_block(1);
    tsr_status status = make_engines(config, n_chain, log, s, err);
    tsr_interrupt_block(0);
    TSR_THEN(status, learn_and_fit(config, log, s, err));
    TSR_THEN(status, set_surrogate(log, s, err));
    if (status != TSR_OK)
        return tsr_config_locate_error(config, status, err);
    if (s->n_thread < v->n) {
        if (config->device.threads.word < 0)
            tsr_info(log, "%d threads instead of %d: one for each device", v->n,
                     s->n_thread);
        s->n_thread = v->n;
    }
    s->target.n_engine = v->n;
    s->target.first_chain = tsr_ranks_first(s->n_chain, tsr_ranks_rank());
    s->target.engines = v->group;
    return TSR_OK;
}
