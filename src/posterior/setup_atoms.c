/* Draws of all atoms: what structure.bodies: atoms adds to a run.
 *
 * By plane waves (GPUs) the likelihood is one of particles
 * (posterior/all_atoms.h), which chains move as they do bodies.
 *
 * Else chains move with bodies, whose curves, corrected, are near those of all
 * atoms (setup_model_error.c). The place above each ladder (sampler/fine.h) is
 * of the posterior whose curve is that of the particles. Terms keep what they
 * learn of a profile's error, so that this posterior has terms of its own, from
 * the same entries of the configuration. */
#include "posterior/setup.h"

#include "posterior/all_atoms.h"
#include "sampler/fine.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

/* A system of the engine, for one thread at a time. */
typedef struct {
    tsr_batch *batch;
    double (*place)[3]; /* [particles] */
    int is_taken;
} seat;

struct tsr_atom_target {
    const tsr_setup *setup;
    tsr_likelihood *likelihood;
    tsr_fine_model model;
    pthread_mutex_t lock;
    tsr_engine *engine; /* of the particles, a system for each thread; NULL: on
                           the reference, profiles are direct sums */
    int n_seat;
    seat *seat; /* [n_seat] */
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
    const tsr_particles *own = t->setup->particles;
    if (t->engine == NULL)
        return tsr_likelihood_direct(t->likelihood, t->setup->topology->n_body,
                                     conformation, NULL, partial, err);
    const int k = take_seat(t);
    own->type->place(own, conformation, 0, t->setup->topology->n_residue,
                     t->seat[k].place);
    const tsr_status status =
        tsr_batch_set(t->seat[k].batch, k, (const double(*)[3])t->seat[k].place,
                      partial, err);
    pthread_mutex_lock(&t->lock);
    t->seat[k].is_taken = 0;
    pthread_mutex_unlock(&t->lock);
    return status;
}

tsr_status tsr_setup_atom_partial(tsr_atom_target *target,
                                  const tsr_conformation *conformation,
                                  double *partial, tsr_err *err)
{
    return profile(target, conformation, partial, err);
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
    for (int k = 0; k < t->n_seat && t->seat != NULL; k++) {
        tsr_batch_free(t->seat[k].batch);
        free(t->seat[k].place);
    }
    free(t->seat);
    tsr_engine_free(t->engine);
    tsr_likelihood_free(t->likelihood);
    pthread_mutex_destroy(&t->lock);
    free(t);
}

/* A likelihood with terms of its own, of the same entries. */
static tsr_status read_again(const tsr_config *config, tsr_atom_target *t,
                             tsr_err *err)
{
    const tsr_setup *s = t->setup;
    int n = 0;
    tsr_term **term = calloc((size_t)config->data.n + 1, sizeof(*term));
    TSR_TRY(tsr_allocated(term, err));
    tsr_status status = tsr_setup_terms(config, NULL, s, &n, term, err);
    for (int d = 0; d < n; d++)
        term[d]->probe = s->likelihood->term[d]->probe;
    if (status == TSR_OK)
        status =
            tsr_likelihood_new(s->topology, s->n_probe, s->scattering,
                               s->d_bound_ang, n, term, &t->likelihood, err);
    else
        while (n > 0)
            tsr_term_free(term[--n]);
    free(term);
    TSR_THEN(status, tsr_setup_expect(s, t->likelihood, err));
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

static void tell_particles(const tsr_setup *s, tsr_log *log)
{
    tsr_info(log,
             "draws are of all atoms: %d atoms and beads of water, %d of them "
             "in rigid parts; the water rides along",
             s->particles->n_all, s->particles->inside.n);
}

/* The engine and the grid on the molecule itself, against a direct sum. */
static tsr_status check_particles(tsr_atom_target *t, tsr_err *err)
{
    const tsr_setup *s = t->setup;
    double *partial = calloc((size_t)tsr_likelihood_n_profile(t->likelihood),
                             sizeof *partial);
    tsr_status status = tsr_allocated(partial, err);
    TSR_THEN(status, profile(t, s->first, partial, err));
    TSR_THEN(status,
             tsr_likelihood_check(t->likelihood, s->topology, s->scattering,
                                  s->first, partial, NULL, err));
    free(partial);
    return status;
}

/* Its profiles are those of particles. */
static tsr_status take_particles(const tsr_config *config, tsr_atom_target *t,
                                 tsr_log *log, tsr_setup *s, tsr_err *err)
{
    TSR_TRY(make_particles(config, s, err));
    TSR_TRY(tsr_likelihood_take_particles(t->likelihood, s->particles, err));
    tell_particles(s, log);
    if (s->device[0] != NULL) {
        t->n_seat = (s->n_thread > s->n_engine ? s->n_thread : s->n_engine) + 1;
        TSR_TRY(tsr_setup_make_engine(s, t->likelihood, s->device[0], t->n_seat,
                                      &t->engine, err));
    }
    t->seat = calloc((size_t)t->n_seat + 1, sizeof *t->seat);
    TSR_TRY(tsr_allocated(t->seat, err));
    for (int k = 0; k < t->n_seat; k++) {
        t->seat[k].place =
            calloc((size_t)s->particles->n + 1, sizeof *t->seat[k].place);
        TSR_TRY(tsr_allocated(t->seat[k].place, err));
        TSR_TRY(tsr_batch_new(t->engine, 1, &t->seat[k].batch, err));
    }
    TSR_TRY(check_particles(t, err));
    return tsr_setup_model_error(config, t->likelihood, t->engine, log, s, err);
}

static tsr_status test_waves(const tsr_setup *s, tsr_err *err)
{
    for (int e = 0; e < s->n_engine; e++)
        for (int p = 0; p < s->likelihood->n_probe; p++)
            TSR_TRY(tsr_plane_wave_self_test(
                s->device[e], 0, s->likelihood->probe[p].n_comp, NULL, err));
    return TSR_OK;
}

tsr_status tsr_setup_ride(const tsr_config *config, tsr_log *log,
                          tsr_setup *setup, tsr_err *err)
{
    tsr_setup *s = setup;
    if (config->structure.bodies != TSR_CONFIG_ATOMS)
        return TSR_OK;
    tsr_status status = make_particles(config, s, err);
    TSR_THEN(status,
             tsr_likelihood_take_particles(s->likelihood, s->particles, err));
    TSR_THEN(status, test_waves(s, err));
    if (status != TSR_OK)
        return tsr_wrap(err, status, "structure.bodies: atoms");
    tell_particles(s, log);
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
    tsr_status status = read_again(config, t, err);
    if (s->device[0] != NULL)
        TSR_THEN(status, test_waves(s, err));
    TSR_THEN(status, take_particles(config, t, log, s, err));
    if (status != TSR_OK)
        return tsr_wrap(err, status, "structure.bodies: atoms");
    t->model =
        (tsr_fine_model){.target = s->target, .context = t, .profile = profile};
    t->model.target.likelihood = t->likelihood;
    t->model.target.n_share = 0;
    t->model.target.share = NULL;
    t->model.target.n_group = 0;
    t->model.target.group_start = NULL;
    t->model.target.fine = &t->model;
    s->target.fine = &t->model;
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
