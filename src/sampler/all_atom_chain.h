/* Draws from a posterior with an expensive likelihood, at the cost of one
 * evaluation of this likelihood for each draw.
 *
 * The chains of the ladder sample with a coarse model, the bodies, whose
 * scattering curve is cheap. The draws should come from the all-atom model,
 * whose curve is expensive. So each ladder has one more chain, the all-atom
 * chain, above temperature 1. The all-atom chain keeps a state X0 and makes no
 * steps of its own. Before each stored draw, X0 may be exchanged with the state
 * X1 of the coarse chain at temperature 1, as between neighbours of the ladder,
 * with probability
 *
 *     min(1, L_a(X1) L_c(X0)^beta / (L_a(X0) L_c(X1)^beta)).
 *
 * L_a is the all-atom likelihood, L_c the coarse one. Both models have the same
 * structures, parameters and priors, so the priors cancel. The exchange leaves
 * the joint density P(X0) L_a(X0) P(X1) L_c(X1)^beta invariant however bad the
 * coarse model is. A bad coarse model only makes exchanges rare. Each draw
 * costs one all-atom curve for each state.
 *
 * Sources: replica exchange between models: Lyman, Ytreberg & Zuckerman 2006,
 * Phys. Rev. Lett. 96, 028105; k coarse steps before one exact test: Christen &
 * Fox 2005, J. Comput. Graph. Stat. 14, 795. */
#ifndef TSR_SAMPLER_ALL_ATOM_CHAIN_H
#define TSR_SAMPLER_ALL_ATOM_CHAIN_H

#include "sampler/chain.h"

/* The model from whose posterior the draws come. */
struct tsr_all_atom_model {
    tsr_target target; /* the ladder's target with the all-atom likelihood and
                          without an engine; its member all_atom points to this
                          model */
    void *context;
    /* Partial profiles of one structure, partial [n_pair][n_q] out, electrons
     * squared, in the layout of the target's likelihood. Many threads call
     * profile at once. Equal structures must give equal bits. */
    tsr_status (*profile)(void *context, const tsr_conformation *conformation,
                          double *partial, tsr_err *err);
};

/* The target whose draws are stored: the target of the all-atom model, or
 * `target` itself where there is no all-atom model. */
const tsr_target *tsr_draw_target(const tsr_target *target);

/* The all-atom chain above one ladder. */
typedef struct tsr_all_atom_chain tsr_all_atom_chain;

/* Makes the all-atom chain above ladder number `chain`. model is borrowed.
 * Errors: those of tsr_chain_new. */
tsr_status tsr_all_atom_chain_new(const tsr_all_atom_model *model, int chain,
                                  tsr_all_atom_chain **out, tsr_err *err);
void tsr_all_atom_chain_free(tsr_all_atom_chain *upper);

/* Tries the exchange. Call it between two steps of `coarse`; batch belongs to
 * the engine of `coarse` (NULL without an engine). The first call copies the
 * coarse state without a test. Errors: those of the profile and of
 * tsr_chain_refresh; TSR_E_NUMERIC where the all-atom log likelihood is
 * +infinity or NaN. A likelihood of 0 is no error: the exchange is refused. */
tsr_status tsr_all_atom_chain_exchange(tsr_all_atom_chain *upper,
                                       tsr_chain *coarse, tsr_batch *batch,
                                       tsr_err *err);

/* The all-atom chain's state, for a stored draw. Counters of proposals come
 * from the coarse chain, the random stream from the all-atom chain. */
void tsr_all_atom_chain_view(const tsr_all_atom_chain *upper,
                             const tsr_chain *coarse, tsr_chain_view *view);

/* The all-atom chain's state as a chain that makes no steps. */
const tsr_chain *tsr_all_atom_chain_as_chain(const tsr_all_atom_chain *upper);

/* gain [2] out, nat: log L_a - log L_c of the present state, and of the state
 * that the coarse chain offered last. */
void tsr_all_atom_chain_log_ratio(const tsr_all_atom_chain *upper,
                                  double *gain);

/* Examples from which the coarse model's error is learnt.
 *
 * At most TSR_ALL_ATOM_EXAMPLES are kept, spread evenly over the exchanges
 * tried since learning was switched on. An example holds the partial profiles
 * of both models [n_pair][n_q], and c1 and c2. The profiles are means over the
 * states; that of the coarse model lacks the self terms S_ab
 * (likelihood/likelihood.h). Examples are kept while `learns` is set.
 *
 * Calling set_learning deletes the examples. It also resets the chain's state,
 * because log L_c of X0 changes when the coarse model has learnt another
 * error. */
enum { TSR_ALL_ATOM_EXAMPLES = 64 };
typedef struct {
    const double *all_atom, *coarse, *contrast; /* contrast [TSR_N_CONTRAST] */
} tsr_all_atom_example;
void tsr_all_atom_chain_set_learning(tsr_all_atom_chain *upper, int learns);
int tsr_all_atom_chain_n_example(const tsr_all_atom_chain *upper);
tsr_all_atom_example tsr_all_atom_chain_example(const tsr_all_atom_chain *upper,
                                                int k);

/* Whether the last exchange was accepted, and the accepted share of all
 * exchanges tried since tsr_all_atom_chain_reset (NaN: none was tried). */
int tsr_all_atom_chain_is_accepted(const tsr_all_atom_chain *upper);
double tsr_all_atom_chain_acceptance(const tsr_all_atom_chain *upper);
void tsr_all_atom_chain_reset(tsr_all_atom_chain *upper);

/* Saves or restores state, counters and examples. A restored chain has no
 * profile and no likelihood until tsr_all_atom_chain_refresh computes them.
 * Refreshing a chain that was not restored does nothing. */
void tsr_all_atom_chain_archive(tsr_all_atom_chain *upper,
                                tsr_archive *archive);
tsr_status tsr_all_atom_chain_refresh(tsr_all_atom_chain *upper, tsr_err *err);

#endif
