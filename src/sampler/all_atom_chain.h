/* A finer model above the ladder: its draws for the price of a few evaluations.
 *
 * Chains make their steps by a coarse model, bodies, whose curve is cheap. What
 * is wanted are draws by a fine one, all atoms, whose curve is not. So each
 * ladder has one more place, above temperature 1. It holds a state (X0), makes
 * no steps, and before each draw it is offered an exchange with the coarse
 * chain at temperature 1 (X1), as neighbours of the ladder are:
 *
 *     min(1, L_f(X1) L_c(X0)^beta / (L_f(X0) L_c(X1)^beta)).
 *
 * Prior, structures and parameters are the same for both, so that nothing else
 * is in the ratio. The exchange leaves P(X0) L_f(X0) P(X1) L_c(X1)^beta as it
 * is, whatever the fine model thinks of the coarse one; how often it happens is
 * a matter of how alike they are. One curve of the fine model is needed a draw.
 * (Replica exchange between models: Lyman, Ytreberg & Zuckerman 2006, Phys.
 * Rev. Lett. 96, 028105; k coarse steps before one exact test: Christen & Fox
 * 2005, J. Comput. Graph. Stat. 14, 795.) */
#ifndef TSR_SAMPLER_ALL_ATOM_CHAIN_H
#define TSR_SAMPLER_ALL_ATOM_CHAIN_H

#include "sampler/chain.h"

struct tsr_all_atom_model {
    tsr_target target; /* as the ladder's, with the likelihood of the fine
                          model, and no engine; its `fine` is this model */
    void *context;
    /* partial [n_pair][n_q] out, of one structure, as the target's likelihood
     * takes them. Called from many threads at once; the same structure gives
     * the same bits. */
    tsr_status (*profile)(void *context, const tsr_conformation *conformation,
                          double *partial, tsr_err *err);
};

/* What draws are of: the fine model's target, or, where there is none, the
 * ladder's own. */
const tsr_target *tsr_draw_target(const tsr_target *target);

/* The place above one chain's ladder. */
typedef struct tsr_all_atom_chain tsr_all_atom_chain;

/* Errors: those of tsr_chain_new. */
tsr_status tsr_all_atom_chain_new(const tsr_all_atom_model *model, int chain,
                                  tsr_all_atom_chain **out, tsr_err *err);
void tsr_all_atom_chain_free(tsr_all_atom_chain *all_atom);

/* Offers the exchange; between two steps of `coarse`, whose batch that is. The
 * first time the coarse state is taken as it is. A state that the fine model
 * gives a likelihood of 0 is refused as any other. Errors: those of the profile
 * and of tsr_chain_refresh; TSR_E_NUMERIC (a likelihood that is infinite or no
 * number). */
tsr_status tsr_all_atom_chain_exchange(tsr_all_atom_chain *all_atom,
                                       tsr_chain *coarse, tsr_batch *batch,
                                       tsr_err *err);

/* The state that is held, for a draw; the coarse chain gives what is counted of
 * steps, the place itself the random stream. */
void tsr_all_atom_chain_view(const tsr_all_atom_chain *all_atom,
                             const tsr_chain *coarse, tsr_chain_view *view);
const tsr_chain *
tsr_all_atom_chain_as_chain(const tsr_all_atom_chain *all_atom);

/* log L_f - log L_c of the state that is held, and of the one that was last
 * offered, the coarse chain's then: gain [2] out. */
void tsr_all_atom_chain_log_ratio(const tsr_all_atom_chain *all_atom,
                                  double *gain);

/* Examples of what the coarse model lacks, of at most TSR_ALL_ATOM_EXAMPLES
 * offers spread over those since they were last forgotten: the partial profiles
 * of both models [n_pair][n_q] (means over the states, the coarse one's without
 * S_ab), and c1 and c2 then. Kept while `learns` is
 * set, and forgotten by setting it; so is the state that is held, since the
 * coarse model may have become another one, and log L_c of X0 with it. */
enum { TSR_ALL_ATOM_EXAMPLES = 64 };
typedef struct {
    const double *all_atom, *coarse, *contrast; /* contrast [TSR_N_CONTRAST] */
} tsr_all_atom_example;
void tsr_all_atom_chain_set_learning(tsr_all_atom_chain *all_atom, int learns);
int tsr_all_atom_chain_n_example(const tsr_all_atom_chain *all_atom);
tsr_all_atom_example
tsr_all_atom_chain_example(const tsr_all_atom_chain *all_atom, int k);

/* Whether the last offer was taken, and since tsr_all_atom_chain_reset how many
 * of all.
 */
int tsr_all_atom_chain_is_accepted(const tsr_all_atom_chain *all_atom);
double tsr_all_atom_chain_acceptance(const tsr_all_atom_chain *all_atom);
void tsr_all_atom_chain_reset(tsr_all_atom_chain *all_atom);

/* Saves or restores. What was restored is complete after
 * tsr_all_atom_chain_refresh, which does nothing else. */
void tsr_all_atom_chain_archive(tsr_all_atom_chain *all_atom,
                                tsr_archive *archive);
tsr_status tsr_all_atom_chain_refresh(tsr_all_atom_chain *all_atom,
                                      tsr_err *err);

#endif
