/* Draws of all atoms: what structure.bodies: atoms adds to a run.
 *
 * By plane waves (GPUs) the likelihood is one of particles
 * (posterior/all_atoms.h), which chains move as they do bodies.
 *
 * Else chains move with bodies, whose curves, corrected, are near those of all
 * atoms (learn_error.c). The place above each ladder (sampler/fine.h) is of the
 * posterior whose curve is that of the particles. Terms keep what they learn of
 * a profile's error, so that this posterior has terms of its own, from the same
 * entries of the configuration. */
#include "posterior/setup_parts.h"

#include <stdlib.h>
#include <string.h>

/* Partial profiles of all atoms as a probe has them, the first rows of six. */
static tsr_status sum_probe(const tsr_data *d, const tsr_likelihood *l,
                            int probe, const tsr_conformation *c,
                            tsr_atom_curves *curves, double *six,
                            double *radius_ang, tsr_err *err)
{
    const tsr_q_grid *grid = &l->grid;
    const tsr_probe *p = &l->probe[probe];
    if (p->is_neutron) {
        TSR_TRY(tsr_atom_curves_neutron(curves, c, &d->sample[probe],
                                        p->basis.origin, six, err));
        tsr_neutron_fold(&p->basis, l->contrast, grid->n_q, six);
        return TSR_OK;
    }
    TSR_TRY(tsr_atom_curves_partial(curves, c, six, radius_ang, err));
    tsr_partials_fold(l->contrast, *radius_ang, grid->n_q, grid->dq_inv_ang,
                      six);
    return TSR_OK;
}

tsr_status tsr_data_sum_atoms(const tsr_data *data,
                              const tsr_likelihood *likelihood,
                              tsr_atom_curves *curves,
                              const tsr_conformation *conformation, double *six,
                              double *partial, double *radius_ang, tsr_err *err)
{
    const tsr_likelihood *l = likelihood;
    const size_t n_q = (size_t)l->grid.n_q;
    for (int p = 0; p < l->n_probe; p++) {
        TSR_TRY(
            sum_probe(data, l, p, conformation, curves, six, radius_ang, err));
        memcpy(partial + (size_t)l->probe[p].first * n_q, six,
               (size_t)l->probe[p].n_pair * n_q * sizeof *six);
    }
    return TSR_OK;
}

/* ---- curves for many threads ---- */

/* A system of the engine, for one thread at a time. */
struct tsr_seat {
    tsr_batch *batch;
    double (*place)[3]; /* [particles] */
    int is_taken;
};

/* There are as many seats as threads. */
static int take_seat(tsr_atom_target *t)
{
    int k = 0;
    pthread_mutex_lock(&t->lock);
    while (t->seat[k].is_taken)
        k++;
    t->seat[k].is_taken = 1;
    pthread_mutex_unlock(&t->lock);
    return k;
}

static tsr_status profile(void *context, const tsr_conformation *conformation,
                          double *partial, tsr_err *err)
{
    tsr_atom_target *t = context;
    const tsr_topology *topology = t->model.target.topology;
    const tsr_particles *own = t->particles;
    if (t->engine == NULL)
        return tsr_likelihood_direct(t->likelihood, topology->n_body,
                                     conformation, NULL, partial, err);
    const int k = take_seat(t);
    own->type->place(own, conformation, 0, topology->n_residue,
                     t->seat[k].place);
    const tsr_status status =
        tsr_batch_set(t->seat[k].batch, k, (const double(*)[3])t->seat[k].place,
                      partial, err);
    pthread_mutex_lock(&t->lock);
    t->seat[k].is_taken = 0;
    pthread_mutex_unlock(&t->lock);
    return status;
}

/* A system for each thread, of one engine. */
static tsr_status make_seats(const tsr_setup *s, tsr_atom_target *t,
                             tsr_err *err)
{
    const int n = s->n_thread > s->devices.n ? s->n_thread : s->devices.n;
    TSR_TRY(tsr_setup_make_engine(s, t->likelihood, s->devices.device[0], n + 1,
                                  &t->engine, err));
    tsr_pool_array(&t->pool, t->seat, n + 1);
    TSR_TRY(tsr_pool_check(&t->pool, err));
    for (; t->n_seat <= n; t->n_seat++) {
        struct tsr_seat *seat = &t->seat[t->n_seat];
        tsr_pool_array(&t->pool, seat->place, t->particles->n);
        TSR_TRY(tsr_pool_check(&t->pool, err));
        TSR_TRY(tsr_batch_new(t->engine, 1, &seat->batch, err));
    }
    return TSR_OK;
}

/* ---- the target ---- */

void tsr_atoms_clear(tsr_atom_target *atoms)
{
    tsr_atom_target *t = atoms;
    for (int k = 0; k < t->n_seat; k++)
        tsr_batch_free(t->seat[k].batch);
    tsr_engine_free(t->engine);
    if (t->likelihood != NULL)
        pthread_mutex_destroy(&t->lock);
    tsr_likelihood_free(t->likelihood);
    tsr_particles_free(t->particles);
    tsr_pool_clear(&t->pool);
    *t = (tsr_atom_target){.n_seat = 0};
}

static tsr_status make_particles(tsr_setup *s, tsr_likelihood *likelihood,
                                 tsr_log *log, tsr_err *err)
{
    tsr_atom_curves *curves = NULL;
    TSR_TRY(tsr_atom_curves_new(&s->molecule, &s->data.likelihood->grid, NULL,
                                NULL, &curves, err));
    TSR_TRY(tsr_atom_particles_new(s->data.likelihood, s->data.sample, curves,
                                   &s->atoms.particles, err));
    TSR_TRY(tsr_likelihood_take_particles(likelihood, s->atoms.particles, err));
    tsr_info(log,
             "draws are of all atoms: %d atoms and beads of water, %d of them "
             "in rigid parts; the water rides along",
             s->atoms.particles->n_all, s->atoms.particles->inside.n);
    return TSR_OK;
}

static tsr_status test_waves(const tsr_setup *s, tsr_err *err)
{
    const tsr_likelihood *l = s->data.likelihood;
    for (int e = 0; e < s->devices.n; e++)
        for (int p = 0; p < l->n_probe && s->devices.device[e] != NULL; p++)
            TSR_TRY(tsr_plane_wave_self_test(s->devices.device[e], 0,
                                             l->probe[p].n_comp, NULL, err));
    return TSR_OK;
}

tsr_status tsr_atoms_ride(const tsr_config *config, tsr_log *log,
                          tsr_setup *setup, tsr_err *err)
{
    if (config->structure.bodies != TSR_CONFIG_ATOMS)
        return TSR_OK;
    tsr_status status = test_waves(setup, err);
    TSR_THEN(status, make_particles(setup, setup->data.likelihood, log, err));
    return status == TSR_OK ? status
                            : tsr_wrap(err, status, "structure.bodies: atoms");
}

/* The engine and the grid are checked on the molecule itself, against a direct
 * sum. */
static tsr_status make_target(const tsr_config *config, tsr_log *log,
                              tsr_setup *s, tsr_err *err)
{
    tsr_atom_target *t = &s->atoms;
    double *partial;
    TSR_TRY(
        tsr_data_again(config, &s->molecule, &s->data, &t->likelihood, err));
    pthread_mutex_init(&t->lock, NULL);
    t->model =
        (tsr_fine_model){.target = s->target, .context = t, .profile = profile};
    t->model.target.likelihood = t->likelihood;
    t->model.target.fine = &t->model;
    TSR_TRY(test_waves(s, err));
    TSR_TRY(make_particles(s, t->likelihood, log, err));
    if (s->devices.device[0] != NULL)
        TSR_TRY(make_seats(s, t, err));
    tsr_pool_array(&t->pool, partial, tsr_likelihood_n_profile(t->likelihood));
    TSR_TRY(tsr_pool_check(&t->pool, err));
    TSR_TRY(profile(t, s->molecule.first, partial, err));
    TSR_TRY(tsr_likelihood_check(t->likelihood, s->molecule.topology,
                                 s->data.scattering, s->molecule.first, partial,
                                 NULL, err));
    return tsr_setup_model_error(config, t->likelihood, t->engine, log, s, err);
}

tsr_status tsr_atoms_take(const tsr_config *config, tsr_log *log,
                          tsr_setup *setup, tsr_err *err)
{
    if (config->structure.bodies != TSR_CONFIG_ATOMS ||
        setup->atoms.particles != NULL)
        return TSR_OK;
    const tsr_status status = make_target(config, log, setup, err);
    if (status != TSR_OK)
        return tsr_wrap(err, status, "structure.bodies: atoms");
    setup->target.fine = &setup->atoms.model;
    tsr_info(log,
             "bodies propose draws of all atoms, and one curve of all atoms "
             "a draw decides");
    return TSR_OK;
}

/* ---- what the chains find ---- */

tsr_status tsr_setup_follow_chains(const tsr_config *config, tsr_log *log,
                                   tsr_sampler *sampler, int last,
                                   tsr_setup *setup, tsr_err *err)
{
    /* fewer would say too little, and more hardly more */
    enum { LEAST = 8, ENOUGH = 256 };
    int n = 0, n_kept = 0, n_seen = 0;
    tsr_fine_example *list =
        calloc((size_t)(setup->n_chain * TSR_FINE_EXAMPLES), sizeof *list);
    TSR_TRY(tsr_allocated(list, err));
    for (int c = 0; c < setup->n_chain; c++)
        n_kept += tsr_fine_n_example(tsr_sampler_fine(sampler, c));
    const int every = n_kept / ENOUGH + 1;
    for (int c = 0; c < setup->n_chain; c++) {
        const tsr_fine *fine = tsr_sampler_fine(sampler, c);
        for (int k = 0; k < tsr_fine_n_example(fine); k++)
            if (n_seen++ % every == 0)
                list[n++] = tsr_fine_example_get(fine, k);
    }
    tsr_status status =
        n < LEAST ? TSR_OK
                  : tsr_setup_learn_again(config, n, list, log, setup, err);
    for (int c = 0; c < setup->n_chain; c++)
        tsr_fine_learn(tsr_sampler_fine(sampler, c), !last);
    free(list);
    return status == TSR_OK ? tsr_sampler_refresh(sampler, err) : status;
}
