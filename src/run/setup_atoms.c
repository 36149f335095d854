/* Draws of all atoms: what structure.bodies: atoms adds to a run.
 *
 * With water that rides along the likelihood is one of particles
 * (atoms/atom_particles.h), which chains move as they do bodies.
 *
 * With water of each conformation's own chains move with bodies, whose curves,
 * corrected, are near those of all atoms (setup_model_error.c). The place above
 * each ladder (sampler/fine.h) is of the posterior whose curve is that of all
 * atoms, and nothing is left of the model's error there. Terms keep what they
 * learn of a profile's error, so that this posterior has terms of its own, from
 * the same entries of the configuration. */
#include "run/setup.h"

#include "atoms/atom_curves.h"
#include "atoms/atom_particles.h"
#include "sampler/fine.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

struct tsr_atom_target {
    const tsr_setup *setup;
    tsr_atom_curves_spec spec;
    tsr_likelihood *likelihood;
    double radius_ang; /* r_m of G, which no conformation changes */
    tsr_fine_model model;
    pthread_mutex_t lock;
    int n_free, n_room; /* curves that no thread uses now */
    tsr_atom_curves **free_one;
};

/* Partial profiles of all atoms as a probe has them, the first rows of six. */
static tsr_status sum_probe(const tsr_setup *s, const tsr_likelihood *l,
                            int probe, const tsr_conformation *c,
                            tsr_atom_curves *curves, double *six,
                            double *radius_ang, tsr_err *err)
{
    const tsr_q_grid *grid = &l->grid;
    const tsr_probe *p = &l->probe[probe];
    if (p->is_neutron) {
        TSR_TRY(tsr_atom_curves_neutron(curves, c, &s->sample[probe],
                                        p->basis.origin, six, err));
        tsr_neutron_fold(&p->basis, s->contrast, grid->n_q, six);
        return TSR_OK;
    }
    TSR_TRY(tsr_atom_curves_partial(curves, c, six, radius_ang, err));
    tsr_partials_fold(s->contrast, *radius_ang, grid->n_q, grid->dq_inv_ang,
                      six);
    return TSR_OK;
}

tsr_status tsr_setup_sum_atoms(const tsr_setup *setup,
                               const tsr_likelihood *likelihood,
                               tsr_atom_curves *curves,
                               const tsr_conformation *conformation,
                               double *six, double *partial, double *radius_ang,
                               tsr_err *err)
{
    const tsr_likelihood *l = likelihood;
    const size_t n_q = (size_t)l->grid.n_q;
    for (int p = 0; p < l->n_probe; p++) {
        TSR_TRY(
            sum_probe(setup, l, p, conformation, curves, six, radius_ang, err));
        memcpy(partial + (size_t)l->probe[p].first * n_q, six,
               (size_t)l->probe[p].n_pair * n_q * sizeof *six);
    }
    return TSR_OK;
}

/* ---- curves for many threads ---- */

/* One that no other thread has; made where there is none. */
static tsr_status borrow(tsr_atom_target *t, tsr_atom_curves **curves,
                         tsr_err *err)
{
    *curves = NULL;
    pthread_mutex_lock(&t->lock);
    if (t->n_free > 0)
        *curves = t->free_one[--t->n_free];
    pthread_mutex_unlock(&t->lock);
    return *curves != NULL ? TSR_OK
                           : tsr_atom_curves_new(&t->spec, NULL, curves, err);
}

static void give_back(tsr_atom_target *t, tsr_atom_curves *curves)
{
    pthread_mutex_lock(&t->lock);
    if (t->n_free == t->n_room) {
        const int n_room = 2 * t->n_room + 16;
        tsr_atom_curves **more =
            realloc(t->free_one, (size_t)n_room * sizeof(*more));
        if (more != NULL) {
            t->free_one = more;
            t->n_room = n_room;
        }
    }
    if (t->n_free < t->n_room) {
        t->free_one[t->n_free++] = curves;
        curves = NULL;
    }
    pthread_mutex_unlock(&t->lock);
    tsr_atom_curves_free(curves); /* out of memory for the list */
}

static tsr_status profile(void *context, const tsr_conformation *conformation,
                          double *partial, tsr_err *err)
{
    tsr_atom_target *t = context;
    const size_t n_q = (size_t)t->likelihood->grid.n_q;
    tsr_atom_curves *curves;
    double radius_ang;
    double *six = calloc(TSR_N_COMP_PAIR * n_q, sizeof *six);
    TSR_TRY(tsr_allocated(six, err));
    tsr_status status = borrow(t, &curves, err);
    if (status == TSR_OK) {
        status =
            tsr_setup_sum_atoms(t->setup, t->likelihood, curves, conformation,
                                six, partial, &radius_ang, err);
        give_back(t, curves);
    }
    free(six);
    return status;
}

tsr_status tsr_setup_atom_partial(tsr_atom_target *target,
                                  const tsr_conformation *conformation,
                                  double *partial, tsr_err *err)
{
    return profile(target, conformation, partial, err);
}

double tsr_setup_atom_radius(const tsr_atom_target *target)
{
    return target->radius_ang;
}

tsr_likelihood *tsr_setup_atom_likelihood(tsr_atom_target *target)
{
    return target->likelihood;
}

/* ---- the target ---- */

void tsr_setup_atom_target_free(tsr_atom_target *target)
{
    tsr_atom_target *t = target;
    if (t == NULL)
        return;
    for (int k = 0; k < t->n_free; k++)
        tsr_atom_curves_free(t->free_one[k]);
    free(t->free_one);
    tsr_likelihood_free(t->likelihood);
    pthread_mutex_destroy(&t->lock);
    free(t);
}

/* The likelihood whose profiles are those of atoms. */
static tsr_status make_likelihood(const tsr_config *config, tsr_atom_target *t,
                                  tsr_err *err)
{
    const tsr_setup *s = t->setup;
    const tsr_likelihood *l = s->likelihood;
    int n = 0;
    double *six, *partial;
    tsr_atom_curves *curves = NULL;
    tsr_term **term = calloc((size_t)config->data.n + 1, sizeof(*term));
    TSR_TRY(tsr_allocated(term, err));
    tsr_status status = tsr_setup_terms(config, NULL, s, &n, term, err);
    for (int d = 0; d < n; d++)
        term[d]->probe = l->term[d]->probe; /* of the same entries */
    if (status == TSR_OK)
        status =
            tsr_likelihood_new(s->topology, s->n_probe, s->scattering,
                               s->d_bound_ang, n, term, &t->likelihood, err);
    else
        while (n > 0)
            tsr_term_free(term[--n]);
    free(term);
    TSR_THEN(status, tsr_setup_expect(s, t->likelihood, err));
    if (status != TSR_OK)
        return status;
    six = calloc(TSR_N_COMP_PAIR * (size_t)l->grid.n_q, sizeof *six);
    partial = calloc((size_t)tsr_likelihood_n_profile(l), sizeof *partial);
    status = six == NULL || partial == NULL ? tsr_no_memory(err)
                                            : borrow(t, &curves, err);
    TSR_THEN(status, tsr_setup_sum_atoms(s, t->likelihood, curves, s->first,
                                         six, partial, &t->radius_ang, err));
    if (status == TSR_OK)
        tsr_likelihood_take_atoms(t->likelihood, t->radius_ang);
    if (curves != NULL)
        give_back(t, curves);
    free(six);
    free(partial);
    return status;
}

static tsr_status make_particles(const tsr_config *config, tsr_setup *s,
                                 tsr_err *err)
{
    tsr_atom_curves *curves = NULL;
    const tsr_atom_curves_spec of = {.topology = s->topology,
                                     .model = s->model,
                                     .file = config->structure.file,
                                     .density = config->solvent.density,
                                     .grid = s->likelihood->grid};
    const tsr_atom_particles_spec spec = {.topology = s->topology,
                                          .first = s->first,
                                          .likelihood = s->likelihood,
                                          .sample = s->sample,
                                          .contrast = s->contrast};
    TSR_TRY(tsr_atom_curves_new(&of, NULL, &curves, err));
    return tsr_atom_particles_new(&spec, curves, &s->particles, err);
}

tsr_status tsr_setup_ride(const tsr_config *config, tsr_log *log,
                          tsr_setup *setup, tsr_err *err)
{
    tsr_setup *s = setup;
    if (!tsr_config_rides(config))
        return TSR_OK;
    tsr_status status = make_particles(config, s, err);
    TSR_THEN(status,
             tsr_likelihood_take_particles(s->likelihood, s->particles, err));
    if (status != TSR_OK)
        return tsr_wrap(err, status, "structure.bodies: atoms");
    const tsr_particles *p = s->particles;
    tsr_info(log,
             "draws are of all atoms: %d atoms and beads of water, %d of them "
             "in rigid parts that are known by their amplitudes; the water "
             "rides along",
             p->n_all, p->inside.n);
    return TSR_OK;
}

tsr_status tsr_setup_take_atoms(const tsr_config *config, tsr_log *log,
                                tsr_setup *setup, tsr_err *err)
{
    tsr_setup *s = setup;
    if (config->structure.bodies != TSR_CONFIG_ATOMS || s->particles != NULL)
        return TSR_OK;
    tsr_atom_target *t = calloc(1, sizeof *t);
    TSR_TRY(tsr_allocated(t, err));
    pthread_mutex_init(&t->lock, NULL);
    s->atom_target = t;
    t->setup = s;
    t->spec = (tsr_atom_curves_spec){.topology = s->topology,
                                     .model = s->model,
                                     .file = config->structure.file,
                                     .density = config->solvent.density,
                                     .grid = s->likelihood->grid,
                                     .device = s->device[0]};
    const tsr_status status = make_likelihood(config, t, err);
    if (status != TSR_OK)
        return tsr_wrap(err, status, "structure.bodies: atoms");
    free(s->model_error_text); /* that is the bodies' */
    s->model_error_text = strdup("none, since draws are of all atoms");
    TSR_TRY(tsr_allocated(s->model_error_text, err));
    t->model =
        (tsr_fine_model){.target = s->target, .context = t, .profile = profile};
    t->model.target.likelihood = t->likelihood;
    t->model.target.n_share = 0;
    t->model.target.share = NULL;
    t->model.target.n_group = 0;
    t->model.target.group_start = NULL;
    t->model.target.fine = &t->model;
    s->target.fine = &t->model;
    tsr_info(log, "draws are of all atoms: bodies propose them, and one curve "
                  "of all atoms a draw decides");
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
