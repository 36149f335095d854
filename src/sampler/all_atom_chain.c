/* The exchange with a finer model. Two chains that make no steps hold the state
 * of the place and the one that is offered; they change roles when it is taken.
 */
#include "sampler/all_atom_chain.h"

#include "sampler/chain.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* Streams that no chain and no ladder has. */
#define FINE_STREAM 0x200000000u

struct tsr_all_atom_chain {
    const tsr_all_atom_model *model;
    tsr_chain *held, *offered;
    double coarse;   /* log L_c of what is held */
    double gain;     /* log L_f - log L_c of what was last offered */
    int n_held;      /* 0 until the first offer */
    int is_taken;    /* the last offer */
    int is_restored; /* what is held has no profile yet */
    long n_offer, n_taken;
    gsl_rng *rng;

    /* examples; each is [2][n_profile] and c1, c2 */
    int learns, n_example;
    long every, n_seen; /* one of so many is kept; how many there were */
    double *example;    /* [TSR_ALL_ATOM_EXAMPLES][n_number] */
};

static size_t n_profile(const tsr_all_atom_chain *f)
{
    return (size_t)tsr_likelihood_n_profile(f->model->target.likelihood);
}

/* Numbers of an example. */
static size_t n_number(const tsr_all_atom_chain *f)
{
    return 2 * n_profile(f) + TSR_N_CONTRAST;
}

const tsr_target *tsr_draw_target(const tsr_target *target)
{
    return target->all_atom != NULL ? &target->all_atom->target : target;
}

void tsr_all_atom_chain_free(tsr_all_atom_chain *all_atom)
{
    if (all_atom == NULL)
        return;
    tsr_chain_free(all_atom->held);
    tsr_chain_free(all_atom->offered);
    if (all_atom->rng != NULL)
        gsl_rng_free(all_atom->rng);
    free(all_atom->example);
    free(all_atom);
}

tsr_status tsr_all_atom_chain_new(const tsr_all_atom_model *model, int chain,
                                  tsr_all_atom_chain **out, tsr_err *err)
{
    const tsr_target *t = &model->target;
    const int number = chain * tsr_target_n_temp(t);
    tsr_all_atom_chain *f = calloc(1, sizeof *f);
    *out = NULL;
    TSR_TRY(tsr_allocated(f, err));
    f->model = model;
    f->rng = tsr_rng_new(t->seed, FINE_STREAM + (uint64_t)chain);
    f->every = 1;
    f->example =
        calloc(TSR_ALL_ATOM_EXAMPLES * n_number(f), sizeof *f->example);
    tsr_status status =
        f->rng == NULL || f->example == NULL ? tsr_no_memory(err) : TSR_OK;
    TSR_THEN(status, tsr_chain_new(t, number, &f->held, err));
    TSR_THEN(status, tsr_chain_new(t, number, &f->offered, err));
    if (status == TSR_OK)
        *out = f;
    else
        tsr_all_atom_chain_free(f);
    return status;
}

/* All that follows from the structures and parameters of one of the two. */
static tsr_status complete(const tsr_all_atom_chain *f, tsr_chain *c,
                           tsr_err *err)
{
    for (int k = 0; k < c->n_state; k++)
        TSR_TRY(f->model->profile(f->model->context, c->state[k].current,
                                  c->state[k].profile, err));
    TSR_TRY(tsr_chain_refresh(c, NULL, err));
    return c->now.log_lik < HUGE_VAL /* and no NaN; 0 is a likelihood */
               ? TSR_OK
               : tsr_fail(err, TSR_E_NUMERIC,
                          "the log likelihood of all atoms is %g",
                          c->now.log_lik);
}

/* ---- examples ---- */

void tsr_all_atom_chain_set_learning(tsr_all_atom_chain *all_atom, int learns)
{
    all_atom->learns = learns;
    all_atom->n_held = 0; /* what the coarse model made of it no longer holds */
    all_atom->n_example = 0;
    all_atom->n_seen = 0;
    all_atom->every = 1;
}

int tsr_all_atom_chain_n_example(const tsr_all_atom_chain *all_atom)
{
    return all_atom->n_example;
}

tsr_all_atom_example
tsr_all_atom_chain_example(const tsr_all_atom_chain *all_atom, int k)
{
    const double *at = all_atom->example + (size_t)k * n_number(all_atom);
    const size_t n = n_profile(all_atom);
    return (tsr_all_atom_example){at, at + n, at + 2 * n};
}

/* One of every so many offers; where there is no more room, every other one
 * goes, and half as many are kept from then on. Of several states the mean is
 * kept, which is what meets the data. */
static void keep_example(tsr_all_atom_chain *f, const tsr_chain *coarse)
{
    const tsr_chain *c = f->offered;
    const size_t size = n_number(f), n = n_profile(f);
    const double *contrast =
        tsr_parameters_contrast(c->parameters, c->now.theta);
    if (!f->learns || f->n_seen++ % f->every != 0)
        return;
    if (f->n_example == TSR_ALL_ATOM_EXAMPLES) {
        for (size_t i = 1; i < TSR_ALL_ATOM_EXAMPLES / 2; i++)
            memcpy(f->example + i * size, f->example + 2 * i * size,
                   size * sizeof *f->example);
        f->n_example /= 2;
        f->every *= 2;
    }
    double *at = f->example + (size_t)f->n_example++ * size;
    memcpy(at, c->now.partial, n * sizeof *at);
    memcpy(at + n, coarse->now.partial, n * sizeof *at);
    for (int i = 0; i < TSR_N_CONTRAST; i++)
        at[2 * n + (size_t)i] = contrast != NULL ? contrast[i]
                                : c->target->contrast != NULL
                                    ? c->target->contrast[i].start
                                    : 0.0;
}

/* ---- the exchange ---- */

static void take(tsr_all_atom_chain *f, double coarse)
{
    tsr_chain *held = f->held;
    f->held = f->offered;
    f->offered = held;
    f->coarse = coarse;
    f->is_taken = 1;
}

tsr_status tsr_all_atom_chain_exchange(tsr_all_atom_chain *all_atom,
                                       tsr_chain *coarse, tsr_batch *batch,
                                       tsr_err *err)
{
    tsr_all_atom_chain *f = all_atom;
    const double log_c = coarse->now.log_lik, beta = coarse->beta;
    f->is_taken = 0;
    tsr_chain_copy(f->offered, coarse);
    TSR_TRY(complete(f, f->offered, err));
    keep_example(f, coarse);
    f->gain = f->offered->now.log_lik - log_c;
    f->n_offer++;
    if (f->n_held == 0) {
        take(f, log_c);
        f->n_held = 1;
        return TSR_OK;
    }
    const double log_alpha = f->offered->now.log_lik - beta * log_c -
                             (f->held->now.log_lik - beta * f->coarse);
    /* not a number where both have a likelihood of 0: what is held stays */
    if (!(log(gsl_rng_uniform_pos(f->rng)) < log_alpha))
        return TSR_OK;
    tsr_chain_copy(coarse, f->held);
    TSR_TRY(tsr_chain_refresh(coarse, batch, err));
    take(f, log_c);
    f->n_taken++;
    return TSR_OK;
}

void tsr_all_atom_chain_view(const tsr_all_atom_chain *all_atom,
                             const tsr_chain *coarse, tsr_chain_view *view)
{
    tsr_chain_view steps;
    tsr_chain_view_get(all_atom->held, view);
    tsr_chain_view_get(coarse, &steps);
    view->since_draw = steps.since_draw;
    view->changed = steps.changed;
    view->rng = all_atom->rng;
}

const tsr_chain *tsr_all_atom_chain_as_chain(const tsr_all_atom_chain *all_atom)
{
    return all_atom->held;
}

void tsr_all_atom_chain_log_ratio(const tsr_all_atom_chain *all_atom,
                                  double *gain)
{
    gain[0] = all_atom->held->now.log_lik - all_atom->coarse;
    gain[1] = all_atom->gain;
}

int tsr_all_atom_chain_is_accepted(const tsr_all_atom_chain *all_atom)
{
    return all_atom->is_taken;
}

double tsr_all_atom_chain_acceptance(const tsr_all_atom_chain *all_atom)
{
    return all_atom->n_offer > 0
               ? (double)all_atom->n_taken / (double)all_atom->n_offer
               : (double)NAN;
}

void tsr_all_atom_chain_reset(tsr_all_atom_chain *all_atom)
{
    all_atom->n_offer = all_atom->n_taken = 0;
}

void tsr_all_atom_chain_archive(tsr_all_atom_chain *all_atom,
                                tsr_archive *archive)
{
    tsr_all_atom_chain *f = all_atom;
    tsr_archive_rng(archive, f->rng);
    tsr_archive_int(archive, &f->n_held, 1);
    tsr_archive_real(archive, &f->coarse, 1);
    tsr_archive_long(archive, &f->n_offer, 1);
    tsr_archive_long(archive, &f->n_taken, 1);
    tsr_archive_int(archive, &f->learns, 1);
    tsr_archive_int(archive, &f->n_example, 1);
    tsr_archive_long(archive, &f->every, 1);
    tsr_archive_long(archive, &f->n_seen, 1);
    if (f->n_example > TSR_ALL_ATOM_EXAMPLES || f->n_example < 0)
        archive->failed = 1;
    else
        tsr_archive_real(archive, f->example,
                         (size_t)f->n_example * n_number(f));
    tsr_chain_archive(f->held, archive);
    f->is_restored = archive->is_restoring;
}

tsr_status tsr_all_atom_chain_refresh(tsr_all_atom_chain *all_atom,
                                      tsr_err *err)
{
    const int is_needed = all_atom->is_restored && all_atom->n_held > 0;
    all_atom->is_restored = 0;
    return is_needed ? complete(all_atom, all_atom->held, err) : TSR_OK;
}
