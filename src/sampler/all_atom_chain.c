/* The exchange between the all-atom chain and the coarse chain at temperature
 * 1.
 *
 * Two tsr_chain objects, which make no steps, hold the all-atom chain's present
 * state and the state that the coarse chain offers. When an exchange is
 * accepted, the two objects swap roles, so that no all-atom profile is computed
 * twice. */
#include "sampler/all_atom_chain.h"

#include "sampler/chain.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* First random stream of the all-atom chains, above those of chains and
 * ladders. */
#define ALL_ATOM_STREAM 0x200000000u

struct tsr_all_atom_chain {
    const tsr_all_atom_model *model;
    tsr_chain *held, *offered;
    double held_log_c;   /* log L_c of the present state, nat */
    double offered_gain; /* log L_a - log L_c of the state offered last, nat */
    int has_state;       /* 0 until the first exchange */
    int is_accepted;     /* 1: the last offer was accepted */
    int is_restored;     /* 1: the present state has no profile yet */
    long n_offer, n_accepted;
    gsl_rng *rng;

    /* Examples; each has the profiles [2][n_profile] of all atoms and of the
     * coarse model, then c1 and c2. */
    int learns, n_example;
    long every, n_seen; /* every: stride of the offers that become examples;
                           n_seen: offers since learning was switched on */
    double *example;    /* [TSR_ALL_ATOM_EXAMPLES][n_number()] */
};

static size_t n_profile(const tsr_all_atom_chain *u)
{
    return (size_t)tsr_likelihood_n_profile(u->model->target.likelihood);
}

/* Length of an example, numbers. */
static size_t n_number(const tsr_all_atom_chain *u)
{
    return 2 * n_profile(u) + TSR_N_CONTRAST;
}

const tsr_target *tsr_draw_target(const tsr_target *target)
{
    return target->all_atom != NULL ? &target->all_atom->target : target;
}

void tsr_all_atom_chain_free(tsr_all_atom_chain *upper)
{
    if (upper == NULL)
        return;
    tsr_chain_free(upper->held);
    tsr_chain_free(upper->offered);
    if (upper->rng != NULL)
        gsl_rng_free(upper->rng);
    free(upper->example);
    free(upper);
}

tsr_status tsr_all_atom_chain_new(const tsr_all_atom_model *model, int chain,
                                  tsr_all_atom_chain **out, tsr_err *err)
{
    const tsr_target *t = &model->target;
    const int number = chain * tsr_target_n_temp(t);
    tsr_all_atom_chain *u = calloc(1, sizeof *u);
    *out = NULL;
    TSR_TRY(tsr_allocated(u, err));
    u->model = model;
    u->rng = tsr_rng_new(t->seed, ALL_ATOM_STREAM + (uint64_t)chain);
    u->every = 1;
    u->example =
        calloc(TSR_ALL_ATOM_EXAMPLES * n_number(u), sizeof *u->example);
    tsr_status status =
        u->rng == NULL || u->example == NULL ? tsr_no_memory(err) : TSR_OK;
    TSR_THEN(status, tsr_chain_new(t, number, &u->held, err));
    TSR_THEN(status, tsr_chain_new(t, number, &u->offered, err));
    TSR_HAND_OVER(status, u, out, tsr_all_atom_chain_free);
}

/* Computes profile and likelihood of the present or of the offered state from
 * its structures and parameters. */
static tsr_status evaluate_all_atoms(const tsr_all_atom_chain *u, tsr_chain *c,
                                     tsr_err *err)
{
    for (int k = 0; k < c->n_state; k++)
        TSR_TRY(u->model->profile(u->model->context, c->state[k].current,
                                  c->state[k].profile, err));
    TSR_TRY(tsr_chain_refresh(c, NULL, err));
    return c->now.log_lik < HUGE_VAL /* also refuses NaN; a likelihood of 0 is
                                        allowed */
               ? TSR_OK
               : tsr_fail(err, TSR_E_NUMERIC,
                          "the log likelihood of all atoms is %g",
                          c->now.log_lik);
}

/* ---- examples ---- */

void tsr_all_atom_chain_set_learning(tsr_all_atom_chain *upper, int learns)
{
    upper->learns = learns;
    upper->has_state = 0; /* log L_c of its state is outdated */
    upper->n_example = 0;
    upper->n_seen = 0;
    upper->every = 1;
}

int tsr_all_atom_chain_n_example(const tsr_all_atom_chain *upper)
{
    return upper->n_example;
}

tsr_all_atom_example tsr_all_atom_chain_example(const tsr_all_atom_chain *upper,
                                                int k)
{
    const double *at = upper->example + (size_t)k * n_number(upper);
    const size_t n = n_profile(upper);
    return (tsr_all_atom_example){at, at + n, at + 2 * n};
}

/* Keeps every `every`-th offer as an example. Once the memory is full, every
 * other example is dropped and `every` doubles. In an ensemble an example holds
 * the mean profile over the states, because this mean is compared with the
 * data; the mixtures of several samples take turns. */
static void store_example(tsr_all_atom_chain *u, const tsr_chain *coarse)
{
    const tsr_chain *c = u->offered;
    const size_t size = n_number(u), n = n_profile(u);
    const double *contrast =
        tsr_parameters_contrast(c->parameters, c->now.theta);
    if (!u->learns || u->n_seen++ % u->every != 0)
        return;
    if (u->n_example == TSR_ALL_ATOM_EXAMPLES) {
        for (size_t i = 1; i < TSR_ALL_ATOM_EXAMPLES / 2; i++)
            memcpy(u->example + i * size, u->example + 2 * i * size,
                   size * sizeof *u->example);
        u->n_example /= 2;
        u->every *= 2;
    }
    const size_t mean = n * (size_t)(u->n_example % c->parameters->n_mixture);
    double *at = u->example + (size_t)u->n_example++ * size;
    memcpy(at, c->now.partial + mean, n * sizeof *at);
    memcpy(at + n, coarse->now.partial + mean, n * sizeof *at);
    for (int i = 0; i < TSR_N_CONTRAST; i++)
        at[2 * n + (size_t)i] = contrast != NULL ? contrast[i]
                                : c->target->contrast != NULL
                                    ? c->target->contrast[i].start
                                    : 0.0;
}

/* ---- the exchange ---- */

static void accept_offered(tsr_all_atom_chain *u, double log_c)
{
    tsr_chain *held = u->held;
    u->held = u->offered;
    u->offered = held;
    u->held_log_c = log_c;
    u->is_accepted = 1;
}

tsr_status tsr_all_atom_chain_exchange(tsr_all_atom_chain *upper,
                                       tsr_chain *coarse, tsr_batch *batch,
                                       tsr_err *err)
{
    tsr_all_atom_chain *u = upper;
    const double log_c = coarse->now.log_lik, beta = coarse->beta;
    u->is_accepted = 0;
    tsr_chain_copy(u->offered, coarse);
    TSR_TRY(evaluate_all_atoms(u, u->offered, err));
    store_example(u, coarse);
    u->offered_gain = u->offered->now.log_lik - log_c;
    u->n_offer++;
    if (u->has_state == 0) {
        accept_offered(u, log_c);
        u->has_state = 1;
        return TSR_OK;
    }
    const double log_alpha = u->offered->now.log_lik - beta * log_c -
                             (u->held->now.log_lik - beta * u->held_log_c);
    /* log_alpha is NaN if both likelihoods are 0; the state then stays */
    if (!(log(gsl_rng_uniform_pos(u->rng)) < log_alpha))
        return TSR_OK;
    tsr_chain_copy(coarse, u->held);
    TSR_TRY(tsr_chain_refresh(coarse, batch, err));
    accept_offered(u, log_c);
    u->n_accepted++;
    return TSR_OK;
}

void tsr_all_atom_chain_view(const tsr_all_atom_chain *upper,
                             const tsr_chain *coarse, tsr_chain_view *view)
{
    tsr_chain_view steps;
    tsr_chain_view_get(upper->held, view);
    tsr_chain_view_get(coarse, &steps);
    view->since_draw = steps.since_draw;
    view->changed = steps.changed;
    view->rng = upper->rng;
}

const tsr_chain *tsr_all_atom_chain_as_chain(const tsr_all_atom_chain *upper)
{
    return upper->held;
}

void tsr_all_atom_chain_log_ratio(const tsr_all_atom_chain *upper, double *gain)
{
    gain[0] = upper->held->now.log_lik - upper->held_log_c;
    gain[1] = upper->offered_gain;
}

int tsr_all_atom_chain_is_accepted(const tsr_all_atom_chain *upper)
{
    return upper->is_accepted;
}

double tsr_all_atom_chain_acceptance(const tsr_all_atom_chain *upper)
{
    return upper->n_offer > 0
               ? (double)upper->n_accepted / (double)upper->n_offer
               : (double)NAN;
}

void tsr_all_atom_chain_reset(tsr_all_atom_chain *upper)
{
    upper->n_offer = upper->n_accepted = 0;
}

void tsr_all_atom_chain_archive(tsr_all_atom_chain *upper, tsr_archive *archive)
{
    tsr_all_atom_chain *u = upper;
    tsr_archive_rng(archive, u->rng);
    tsr_archive_int(archive, &u->has_state, 1);
    tsr_archive_real(archive, &u->held_log_c, 1);
    tsr_archive_long(archive, &u->n_offer, 1);
    tsr_archive_long(archive, &u->n_accepted, 1);
    tsr_archive_int(archive, &u->learns, 1);
    tsr_archive_int(archive, &u->n_example, 1);
    tsr_archive_long(archive, &u->every, 1);
    tsr_archive_long(archive, &u->n_seen, 1);
    if (u->n_example > TSR_ALL_ATOM_EXAMPLES || u->n_example < 0)
        archive->failed = 1;
    else
        tsr_archive_real(archive, u->example,
                         (size_t)u->n_example * n_number(u));
    tsr_chain_archive(u->held, archive);
    u->is_restored = archive->is_restoring;
}

tsr_status tsr_all_atom_chain_refresh(tsr_all_atom_chain *upper, tsr_err *err)
{
    const int is_needed = upper->is_restored && upper->has_state > 0;
    upper->is_restored = 0;
    return is_needed ? evaluate_all_atoms(upper, upper->held, err) : TSR_OK;
}
