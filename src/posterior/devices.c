/* Devices, the division of chains among them, an engine on each, and the choice
 * and check of the model that the engines compute. */
#include "posterior/setup.h"

#include "core/clock.h"
#include "core/interrupt.h"
#include "gpu/engine_device.h"

#include <gsl/gsl_sort.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

static tsr_engine_spec make_spec(const tsr_setup *s, const tsr_likelihood *l,
                                 int probe, int n_system)
{
    const tsr_molecule *m = &s->molecule;
    tsr_engine_spec spec = tsr_likelihood_engine(l, probe, m->topology->n_body,
                                                 n_system, m->d_bound_ang);
    if (s->devices.unit != NULL && l->particles == NULL) {
        spec.unit = s->devices.unit;
        spec.rigid = (const double(*)[3])m->first->body;
    }
    if (l->particles == NULL && m->topology->symmetry.n > 1) {
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

/* ---- profiles of single conformations ---- */

/* A system of the engine, used by one thread at a time. */
struct tsr_profiler_slot {
    tsr_batch *batch;
    double (*xyz)[3]; /* positions of the particles; unused for bodies */
    int is_used;
};

/* A profiler for at most n threads, with one system of the engine for each.
 * engine NULL: direct sums. All arguments are borrowed. */
static tsr_status make_profiler(const tsr_topology *topology,
                                const tsr_likelihood *likelihood,
                                tsr_engine *engine, int n,
                                tsr_profiler *profiler, tsr_err *err)
{
    tsr_profiler *p = profiler;
    const tsr_particles *particles = likelihood->particles;
    *p = (tsr_profiler){.likelihood = likelihood, .topology = topology};
    pthread_mutex_init(&p->lock, NULL);
    tsr_pool_array(&p->pool, p->slot, n);
    TSR_TRY(tsr_pool_check(&p->pool, err));
    for (; p->n < n && engine != NULL; p->n++) {
        tsr_pool_array(&p->pool, p->slot[p->n].xyz,
                       particles != NULL ? particles->n : 0);
        TSR_TRY(tsr_pool_check(&p->pool, err));
        TSR_TRY(tsr_batch_new(engine, 1, &p->slot[p->n].batch, err));
    }
    return TSR_OK;
}

static void clear_profiler(tsr_profiler *profiler)
{
    for (int k = 0; k < profiler->n; k++)
        tsr_batch_free(profiler->slot[k].batch);
    if (profiler->likelihood != NULL)
        pthread_mutex_destroy(&profiler->lock);
    tsr_pool_clear(&profiler->pool);
}

/* Index of a free system. A free system always exists, because there are as
 * many as threads. */
static int acquire_slot(tsr_profiler *p)
{
    int k = 0;
    pthread_mutex_lock(&p->lock);
    while (p->slot[k].is_used)
        k++;
    p->slot[k].is_used = 1;
    pthread_mutex_unlock(&p->lock);
    return k;
}

tsr_status tsr_profiler_run(void *profiler,
                            const tsr_conformation *conformation,
                            double *partial, tsr_err *err)
{
    tsr_profiler *p = profiler;
    const tsr_topology *t = p->topology;
    const tsr_particles *particles = p->likelihood->particles;
    if (p->n == 0)
        return tsr_likelihood_direct(p->likelihood, t->n_body, conformation,
                                     NULL, partial, err);
    const int k = acquire_slot(p);
    double(*xyz)[3] = particles != NULL ? p->slot[k].xyz : conformation->body;
    if (particles != NULL)
        particles->type->place(particles, conformation, 0, t->n_residue,
                               p->slot[k].xyz);
    const tsr_status status = tsr_batch_set(
        p->slot[k].batch, k, (const double(*)[3])xyz, partial, err);
    pthread_mutex_lock(&p->lock);
    p->slot[k].is_used = 0;
    pthread_mutex_unlock(&p->lock);
    return status;
}

/* Checks engine and q grid on the first conformation against a direct sum.
 * partial [n_pair][n_q] and *worst (may be NULL; as of tsr_likelihood_check)
 * out. */
static tsr_status check_profiler(const tsr_setup *setup, tsr_profiler *profiler,
                                 double *partial, double *worst, tsr_err *err)
{
    const tsr_molecule *m = &setup->molecule;
    TSR_TRY(tsr_profiler_run(profiler, m->first, partial, err));
    return tsr_likelihood_check(profiler->likelihood, m->topology,
                                setup->data.scattering, m->first, partial,
                                worst, err);
}

/* ---- devices ---- */

static tsr_status reserve(tsr_devices *v, int n, tsr_err *err)
{
    tsr_pool_array(&v->pool, v->device, n);
    tsr_pool_array(&v->pool, v->group, n);
    tsr_pool_array(&v->pool, v->speed, n);
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
        v->speed[e] = v->speed[e + 1];
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
    TSR_THEN(status,
             tsr_device_choose_many(use, n, list, chosen, &n_chosen, err));
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

/* Median duration of one batch of full profiles, s, from up to 7 repeats or two
 * seconds, after one batch that is not timed. */
static tsr_status time_batch(tsr_batch *batch, const double (*xyz)[3], int n,
                             double *profile, tsr_body_proposal *ask,
                             double *seconds, tsr_err *err)
{
    enum { REPEAT = 7 };
    const tsr_body_range all = {.count = batch->engine->n_body, .xyz = xyz};
    const double begin = tsr_clock_s();
    double took[REPEAT];
    int n_took = 0;
    for (int i = 0; i < n; i++) {
        ask[i] = (tsr_body_proposal){i, 1, &all};
        TSR_TRY(tsr_batch_set(batch, i, xyz, NULL, err));
    }
    for (int r = -1; r < REPEAT; r++) {
        const double start = tsr_clock_s();
        if (n_took > 0 && start - begin > 2.0)
            break;
        TSR_TRY(tsr_batch_submit(batch, n, ask, err));
        TSR_TRY(tsr_batch_wait(batch, profile, err));
        if (r >= 0)
            took[n_took++] = tsr_clock_s() - start;
        for (int i = 0; i < n; i++)
            tsr_batch_reject(batch, i);
    }
    gsl_sort(took, 1, (size_t)n_took);
    *seconds = took[n_took / 2];
    return TSR_OK;
}

/* Measures the profiles per second of each device, one device after the other,
 * so that they do not compete for the host. */
static tsr_status measure_speeds(tsr_setup *s, tsr_err *err)
{
    const tsr_particles *own = s->data.likelihood->particles;
    double(*xyz)[3] = own != NULL ? own->start : s->molecule.first->body;
    enum { MOST = 32 };
    tsr_devices *v = &s->devices;
    const int each = (s->n_chain + v->n - 1) / v->n,
              n = each < MOST ? each : MOST;
    tsr_pool scratch = {0};
    double *profile;
    tsr_body_proposal *ask;
    tsr_pool_array(&scratch, profile,
                   n * tsr_likelihood_n_profile(s->data.likelihood));
    tsr_pool_array(&scratch, ask, n);
    tsr_status status = tsr_pool_check(&scratch, err);
    for (int e = 0; e < v->n && status == TSR_OK; e++) {
        tsr_engine *engine = NULL;
        tsr_batch *batch = NULL;
        double seconds = 0.0;
        status =
            make_engine(s, s->data.likelihood, v->device[e], n, &engine, err);
        TSR_THEN(status, tsr_batch_new(engine, n, &batch, err));
        TSR_THEN(status, time_batch(batch, (const double(*)[3])xyz, n, profile,
                                    ask, &seconds, err));
        v->speed[e] = n / fmax(seconds, 1e-9);
        tsr_batch_free(batch);
        tsr_engine_free(engine);
    }
    tsr_pool_clear(&scratch);
    return status;
}

/* Divides the chains among the devices: equally if the devices are alike, else
 * by measured speed. Devices without chains are left out. */
static tsr_status divide_chains(tsr_log *log, tsr_setup *s, tsr_err *err)
{
    tsr_devices *v = &s->devices;
    const int n = v->n;
    int are_alike = 1, *part;
    for (int e = 1; e < n; e++)
        are_alike &=
            tsr_device_is_same_model(tsr_device_get_info(v->device[0]),
                                     tsr_device_get_info(v->device[e]));
    tsr_pool_array(&v->pool, part, n);
    TSR_TRY(tsr_pool_check(&v->pool, err));
    if (!are_alike) {
        TSR_TRY(measure_speeds(s, err));
        tsr_warn(log, "the devices differ, and the chains are divided by "
                      "measured speed: a repeated run may divide the chains "
                      "differently and draw other numbers");
    }
    /* speeds of 0 give equal parts */
    tsr_apportion(s->n_chain, n, v->speed, part);
    for (int e = n - 1; e >= 0; e--) {
        v->group[e].n_chain = part[e];
        if (part[e] > 0)
            continue;
        tsr_warn(log,
                 "device '%s' is not used: there are fewer chains (%d) than "
                 "devices (%d); sampler.chains sets the number of chains",
                 tsr_device_get_info(v->device[e])->name, s->n_chain, n);
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

/* "chains 0 to 3 (812 profiles/s): " if there are several engines, else "". */
static void format_chains(const tsr_devices *v, int e, int first, char *text,
                          size_t size)
{
    int last = first + v->group[e].n_chain - 1;
    char speed[48] = "";
    text[0] = '\0';
    if (v->n == 1)
        return;
    if (v->speed[e] > 0.0)
        snprintf(speed, sizeof speed, " (%.4g profiles/s)", v->speed[e]);
    if (last > first)
        snprintf(text, size, "chains %d to %d%s: ", first, last, speed);
    else
        snprintf(text, size, "chain %d%s: ", first, speed);
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
    const tsr_devices *v = &s->devices;
    double worst = 0.0;
    for (int e = 0; e < v->n; e++) {
        double own = 0.0;
        tsr_profiler one;
        tsr_status status = make_profiler(s->molecule.topology, l,
                                          v->group[e].engine, 1, &one, err);
        TSR_THEN(status, check_profiler(s, &one, partial, &own, err));
        clear_profiler(&one);
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
 * With plane waves (GPUs), the likelihood is computed from particles
 * (posterior/all_atoms.h), and chains move them like bodies.
 *
 * Otherwise the chains move bodies, whose corrected curves are close to those
 * of all atoms (learn_error.c). An all-atom chain above each ladder
 * (sampler/all_atom_chain.h) samples the posterior whose curves come from the
 * particles. That posterior needs its own terms, made from the same entries of
 * the configuration, because terms store the model error of their profiles. */

void tsr_atoms_clear(tsr_atom_target *atoms)
{
    clear_profiler(&atoms->profiler);
    tsr_engine_free(atoms->engine);
    tsr_likelihood_free(atoms->likelihood);
    tsr_particles_free(atoms->particles);
    *atoms = (tsr_atom_target){.particles = NULL};
}

static tsr_status make_particles(tsr_setup *s, tsr_likelihood *likelihood,
                                 tsr_log *log, tsr_err *err)
{
    tsr_atom_curves *curves = NULL;
    TSR_TRY(tsr_atom_curves_new(&s->molecule, &s->data.likelihood->grid, NULL,
                                NULL, &curves, err));
    TSR_TRY(tsr_atom_particles_new(s->data.likelihood, s->data.sample, curves,
                                   &s->atoms.particles, err));
    TSR_TRY(tsr_likelihood_use_particles(likelihood, s->atoms.particles, err));
    tsr_info(log,
             "all-atom draws: %d atoms and water beads, %d of them in rigid "
             "parts; the water beads move with their atoms",
             s->atoms.particles->n_all, s->atoms.particles->unit_particles.n);
    return TSR_OK;
}

static tsr_status test_plane_waves(const tsr_setup *s, tsr_err *err)
{
    const tsr_likelihood *l = s->data.likelihood;
    for (int e = 0; e < s->devices.n; e++)
        for (int p = 0; p < l->n_probe && s->devices.device[e] != NULL; p++)
            TSR_TRY(tsr_plane_wave_self_test(s->devices.device[e], 0,
                                             l->probe[p].n_comp, NULL, err));
    return TSR_OK;
}

/* If chains move all atoms: makes the likelihood one of particles. Called after
 * the devices are open. */
static tsr_status use_particles(const tsr_config *config, tsr_log *log,
                                tsr_setup *setup, tsr_err *err)
{
    if (config->structure.bodies != TSR_CONFIG_ATOMS)
        return TSR_OK;
    tsr_status status = test_plane_waves(setup, err);
    TSR_THEN(status, make_particles(setup, setup->data.likelihood, log, err));
    return status == TSR_OK ? status
                            : tsr_wrap(err, status, "structure.bodies: atoms");
}

/* Makes likelihood, engine and profiler of the all-atom curves, and learns
 * their model error. partial [n_pair][n_q]: workspace. */
static tsr_status make_all_atom_target(const tsr_config *config, tsr_log *log,
                                       tsr_setup *s, double *partial,
                                       tsr_err *err)
{
    tsr_atom_target *t = &s->atoms;
    const int n = s->n_thread > s->devices.n ? s->n_thread : s->devices.n;
    tsr_device *device = s->devices.device[0];
    TSR_TRY(tsr_data_copy_likelihood(config, &s->molecule, &s->data,
                                     &t->likelihood, err));
    TSR_TRY(test_plane_waves(s, err));
    TSR_TRY(make_particles(s, t->likelihood, log, err));
    if (device != NULL)
        TSR_TRY(make_engine(s, t->likelihood, device, n + 1, &t->engine, err));
    TSR_TRY(make_profiler(s->molecule.topology, t->likelihood, t->engine, n + 1,
                          &t->profiler, err));
    TSR_TRY(check_profiler(s, &t->profiler, partial, NULL, err));
    return tsr_setup_learn_model_error(config, t->likelihood, &t->profiler, log,
                                       s, err);
}

/* If the chains move bodies and draws are all-atom: makes a likelihood of
 * all-atom curves with its own terms, and the all-atom model of the target.
 * Called after the model error of the bodies is known. partial [n_pair][n_q]:
 * workspace. */
static tsr_status add_all_atom_target(const tsr_config *config, tsr_log *log,
                                      tsr_setup *setup, double *partial,
                                      tsr_err *err)
{
    tsr_atom_target *t = &setup->atoms;
    if (config->structure.bodies != TSR_CONFIG_ATOMS || t->particles != NULL)
        return TSR_OK;
    const tsr_status status =
        make_all_atom_target(config, log, setup, partial, err);
    if (status != TSR_OK)
        return tsr_wrap(err, status, "structure.bodies: atoms");
    t->model = (tsr_all_atom_model){.target = setup->target,
                                    .context = &t->profiler,
                                    .profile = tsr_profiler_run};
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
    tsr_likelihood *l = s->data.likelihood;
    tsr_profiler bodies;
    double *partial;
    tsr_pool_array(&s->devices.pool, partial, tsr_likelihood_n_profile(l));
    TSR_TRY(tsr_pool_check(&s->devices.pool, err));
    tsr_status status = make_profiler(
        s->molecule.topology, l, s->devices.group[0].engine, 1, &bodies, err);
    TSR_THEN(status,
             tsr_setup_learn_model_error(config, l, &bodies, log, s, err));
    TSR_THEN(status, add_all_atom_target(config, log, s, partial, err));
    tsr_profiler *drawn =
        s->target.all_atom != NULL ? &s->atoms.profiler : &bodies;
    TSR_THEN(status, tsr_profiler_run(drawn, s->molecule.first, partial, err));
    TSR_THEN(status,
             tsr_data_fit_rigid(&s->data, drawn->likelihood, partial, err));
    clear_profiler(&bodies);
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
    const tsr_surrogate_run run = surrogate_run(s);
    const tsr_sampler_problem problem = {
        .has_data = l != NULL,
        .is_gpu = gpu,
        .uses_surrogate = tsr_surrogate_is_possible(&run),
        .n_thread = s->n_thread,
        .n_state = tsr_target_n_state(&s->target),
        .capacity = gpu ? system_capacity(s) : 0.0,
        .min_beta = l != NULL ? tsr_likelihood_min_beta(l) : 0.0,
        .is_placed = tsr_config_is_placed(config)};
    const tsr_status status =
        tsr_sampler_resolve_auto(&config->sampler, &problem, err);
    s->target.n_temp = tsr_sampler_n_temp(&config->sampler, l != NULL);
    s->target.t_max = tsr_sampler_t_max(&config->sampler);
    s->n_chain = n_chain > 0 ? n_chain : (int)config->sampler.chains.number;
    return status;
}

/* ---- the whole ---- */

/* For all-atom draws: do the chains move all atoms? Yes with plane waves on a
 * GPU. On a CPU such a step takes twenty times as long as a step of bodies by
 * tiles, so that chains of bodies, which propose to an all-atom chain, are
 * faster (bench/RESULTS.md), provided that their model error can be learnt. The
 * reference engine has no plane waves. */
static int moves_atoms(const tsr_config *config, const tsr_devices *v)
{
    return v->device[0] != NULL &&
           (v->choice == TSR_ENGINE_PLANE_WAVES ||
            tsr_config_why_no_atoms(config) != NULL ||
            (v->choice == TSR_ENGINE_AUTO && has_gpu(v)));
}

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
    if (moves_atoms(config, v))
        TSR_TRY(use_particles(config, log, s, err));
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
    s->target.engines = v->group;
    return TSR_OK;
}
