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
#include "posterior/setup.h"

#include <stdlib.h>
#include <string.h>

tsr_status tsr_data_sum_atoms(const tsr_data *data,
                              const tsr_likelihood *likelihood,
                              tsr_atom_curves *curves,
                              const tsr_conformation *conformation, double *six,
                              double *partial, double *radius_ang, tsr_err *err)
{
    const tsr_likelihood *l = likelihood;
    const tsr_q_grid *grid = &l->grid;
    for (int k = 0; k < l->n_probe; k++) {
        const tsr_probe *p = &l->probe[k];
        TSR_TRY(tsr_atom_curves_partial(curves, conformation,
                                        p->is_neutron ? &data->sample[k] : NULL,
                                        p->basis.origin, six, radius_ang, err));
        if (p->is_neutron)
            tsr_neutron_fold(&p->basis, l->contrast, grid->n_q, six);
        else
            tsr_partials_fold(l->contrast, *radius_ang, grid->n_q,
                              grid->dq_inv_ang, six);
        memcpy(partial + (ptrdiff_t)p->first * grid->n_q, six,
               (size_t)(p->n_pair * grid->n_q) * sizeof *six);
    }
    return TSR_OK;
}

/* ---- the target ---- */

void tsr_atoms_clear(tsr_atom_target *atoms)
{
    tsr_profiler_clear(&atoms->profiler);
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

static tsr_status profile(void *context, const tsr_conformation *conformation,
                          double *partial, tsr_err *err)
{
    return tsr_profiler_run(context, conformation, partial, err);
}

/* partial [n_pair][n_q]: room. */
static tsr_status make_target(const tsr_config *config, tsr_log *log,
                              tsr_setup *s, double *partial, tsr_err *err)
{
    tsr_atom_target *t = &s->atoms;
    const int n = s->n_thread > s->devices.n ? s->n_thread : s->devices.n;
    tsr_device *device = s->devices.device[0];
    TSR_TRY(
        tsr_data_again(config, &s->molecule, &s->data, &t->likelihood, err));
    TSR_TRY(test_waves(s, err));
    TSR_TRY(make_particles(s, t->likelihood, log, err));
    if (device != NULL)
        TSR_TRY(tsr_setup_make_engine(s, t->likelihood, device, n + 1,
                                      &t->engine, err));
    TSR_TRY(tsr_profiler_make(s->molecule.topology, t->likelihood, t->engine,
                              n + 1, &t->profiler, err));
    TSR_TRY(tsr_profiler_check(s, &t->profiler, partial, NULL, err));
    return tsr_setup_model_error(config, t->likelihood, &t->profiler, log, s,
                                 err);
}

tsr_status tsr_atoms_take(const tsr_config *config, tsr_log *log,
                          tsr_setup *setup, double *partial, tsr_err *err)
{
    tsr_atom_target *t = &setup->atoms;
    if (config->structure.bodies != TSR_CONFIG_ATOMS || t->particles != NULL)
        return TSR_OK;
    const tsr_status status = make_target(config, log, setup, partial, err);
    if (status != TSR_OK)
        return tsr_wrap(err, status, "structure.bodies: atoms");
    t->model = (tsr_fine_model){
        .target = setup->target, .context = &t->profiler, .profile = profile};
    t->model.target.likelihood = t->likelihood;
    t->model.target.fine = &t->model;
    setup->target.fine = &t->model;
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
