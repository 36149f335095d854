/* The interface of a Debye engine: partial profiles of many systems, updated
 * move by move.
 *
 * A system is one conformation of one chain. An engine serves n_system systems,
 * all with the same bodies, and keeps an accepted state for each. It evaluates
 * a proposal without changing the accepted state. Accepting makes the proposal
 * the state, rejecting discards the proposal, and neither call can fail.
 *
 *     I_ab(q_k) = sum_i sum_j F_i^a(q_k) F_j^b(q_k) sinc(q_k r_ij)
 *
 * The sums include i = j. The grid is q_k = k dq, k = 0..n_q-1. Sources: Debye
 * 1915; Antonov et al. 2013.
 *
 * Threads: many threads share one engine. One thread at a time uses a batch,
 * and one batch at a time uses a system. */
#ifndef TSR_ENGINE_ENGINE_H
#define TSR_ENGINE_ENGINE_H

#include "core/pool.h"
#include "core/status.h"
#include "molecule/points.h"

#include <stddef.h>

typedef struct {
    int n_body;
    int n_type;
    int n_comp;        /* number of components K, 1 to 3; 0 means 1 */
    int n_q;           /* grid points, at least 2 */
    double dq_inv_ang; /* grid step, 1/Angstrom */
    int n_system;
    const int *type;           /* [n_body] body type, 0..n_type-1 */
    const double *form_factor; /* [n_comp][n_type][n_q] electrons */
    double d_bound_ang; /* largest distance between bodies that dq can resolve;
                           a conformation beyond it is refused with TSR_E_RANGE.
                           0: no check */
    const int *unit; /* [n_body] rigid unit of each body, 0 to n_body-1, or -1
                        for a body in no rigid unit. Bodies of one unit keep the
                        mutual distances that they have in `rigid`. NULL: no
                        rigid units */
    const double (*rigid)[3]; /* [n_body] reference positions of the units,
                                 Angstrom; NULL where `unit` is NULL */
    /* Particles that scatter in place of the units' bodies, whose form factors
     * are then 0; plane waves only. NULL: the bodies scatter. */
    const struct tsr_unit_particles *unit_particles;
} tsr_engine_spec;

/* Particles inside rigid units, at their positions in the reference frame of
 * `rigid`. No two particles are farther apart than d_bound_ang. */
typedef struct tsr_unit_particles {
    int n;
    const double (*xyz)[3]; /* [n] Angstrom */
    const int *type;        /* [n] index into the form factors of the spec */
    const int *unit;        /* [n] rigid unit of the particle */
} tsr_unit_particles;

static inline int tsr_engine_n_comp(const tsr_engine_spec *spec)
{
    return spec->n_comp > 0 ? spec->n_comp : 1;
}

/* Form factor of a component and type at q_k. */
static inline const double *tsr_engine_factor(const tsr_engine_spec *spec,
                                              int comp, int type, int k)
{
    size_t table = (size_t)comp * (size_t)spec->n_type + (size_t)type;
    return spec->form_factor + table * (size_t)spec->n_q + (size_t)k;
}

/* Bodies first..first+count-1 moved to xyz [count][3], Angstrom, borrowed until
 * tsr_batch_wait returns. group > 0: the range moved rigidly, together with all
 * ranges of the same proposal that have the same group. group 0: distances
 * within the range may have changed. The ranges of a proposal ascend and do not
 * overlap. */
typedef struct {
    int first, count;
    int group;
    const double (*xyz)[3];
} tsr_body_range;

typedef struct {
    int system;
    int n_range;
    const tsr_body_range *range;
} tsr_body_proposal;

typedef struct tsr_engine tsr_engine;
typedef struct tsr_batch tsr_batch;

/* The functions that an engine implements. The public functions below check
 * arguments and track states before they call them. */
typedef struct {
    const char *name; /* "reference", "page-tile SIMT", ... */
    const char *doc;
    size_t size, batch_size; /* sizes of the structs that begin with tsr_engine
                                and tsr_batch */
    int has_unit_particles;  /* 1: accepts spec->unit_particles */

    /* Release whatever the pool does not own, also after an incomplete
     * construction. NULL: the pool owns everything. */
    void (*close)(tsr_engine *engine);
    void (*batch_close)(tsr_batch *batch);
    tsr_status (*batch_open)(tsr_batch *batch, tsr_err *err);

    /* Records one proposal, number batch->n - 1 of the batch. An error leaves
     * the system unchanged. NULL: `start` records all proposals. */
    tsr_status (*propose)(tsr_batch *batch, const tsr_body_proposal *proposal,
                          tsr_err *err);
    /* Called once after the last `propose` of a batch, with all its proposals.
     * NULL: `propose` already did the work. */
    tsr_status (*start)(tsr_batch *batch, const tsr_body_proposal *proposal,
                        tsr_err *err);
    /* Called after an error in `propose` or `start`: waits for work that is
     * still running. NULL: no work outlives the two calls. */
    void (*cancel)(tsr_batch *batch);
    /* profile as in tsr_batch_wait, or NULL. */
    tsr_status (*wait)(tsr_batch *batch, double *profile, tsr_err *err);
    /* Called for a system with a pending proposal. NULL: no action needed. */
    void (*accept)(tsr_engine *engine, int system);
    void (*reject)(tsr_engine *engine, int system);
    void (*profile)(const tsr_engine *engine, int system, double *profile);
} tsr_engine_type;

/* The common head of all engines. Each type's own struct begins with it. */
struct tsr_engine {
    const tsr_engine_type *type;
    tsr_pool pool; /* owns everything that lives as long as the engine */
    int n_body, n_q, n_system;
    int n_comp, n_pair; /* n_pair: pairs of components a <= b, K (K + 1) / 2;
                           for joined engines the sums over the parts */
    double dq_inv_ang, d_bound_ang;
    double *rounding; /* [n_pair][n_q] from tsr_engine_rounding */
    double system_bytes, shared_bytes; /* device memory for each system, and for
                                          the engine as a whole */
    double max_systems;    /* systems that fit into device memory; 0: unknown */
    char description[768]; /* device, driver, kernel, options, source hash */
    struct {
        int is_set, is_pending;
    } * state; /* [n_system] */
};

struct tsr_batch {
    tsr_engine *engine;
    tsr_pool pool; /* owns everything that lives as long as the batch */
    int max_proposal;
    int n, n_submitted; /* proposals recorded so far; proposals of the submitted
                       batch */
    int is_fresh;       /* 1: tsr_batch_set is running, with all bodies */
    int *system;        /* [max_proposal] systems of the recorded proposals */
};

static inline size_t tsr_engine_n_profile(const tsr_engine *engine)
{
    return (size_t)engine->n_pair * (size_t)engine->n_q;
}

/* The reference engine: plain C in double precision, with a new sinc for every
 * pair whose distance may have changed. Slow and exact. Copies what it needs
 * from the spec. */
tsr_status tsr_engine_reference_new(const tsr_engine_spec *spec,
                                    tsr_engine **out, tsr_err *err);

/* Joins engines of the same bodies, systems and grid, but different form
 * factors, into one engine. Its pairs of components are those of the parts,
 * part after part. Takes the parts [n], but not after an error. With n = 1 the
 * result is the part itself. Errors: TSR_E_INTERNAL, TSR_E_NOMEM. */
tsr_status tsr_engine_join(int n, tsr_engine **part, tsr_engine **out,
                           tsr_err *err);

/* Refuses a spec that no engine can serve (TSR_E_INTERNAL). */
tsr_status tsr_engine_spec_check(const tsr_engine_spec *spec, tsr_err *err);

void tsr_engine_free(tsr_engine *engine); /* free the batches first */

/* Bounds the effect of rounding on an engine's profiles. A larger deviation
 * shows a fault of the device, its driver or the kernels.
 *
 * The engine sums tiles of `tile` bodies a side. Each stored tile sum has a
 * relative error of at most `unit` for each of its `n_store` roundings. By
 * Cauchy-Schwarz the stored values S satisfy sum S^2 <= 2 tile^2 B^2 with B^2 =
 * (sum_i F_i^a^2) (sum_i F_i^b^2). Independent errors of mean 0 exceed t times
 * the root of the sum of their squared bounds with a probability of at most 2
 * exp(-t^2 / 2) (Hoeffding 1963); the function uses t = 8, which is 3e-14.
 * Bodies of one type share a rounded form factor, and this error does not
 * average out: it adds 8 units of (sum |F^a|) (sum |F^b|).
 *
 * unit  in                   relative error of one rounding
 * out   [n_pair][n_q]  out   electrons squared */
void tsr_engine_rounding(const tsr_engine_spec *spec, double unit, int tile,
                         int n_store, double *out);

/* Compares a profile with the correct one of the same conformation. Differences
 * up to the engine's rounding plus 1e-5 of I are allowed. Returns the index
 * into [n_pair][n_q] of the worst excess, or -1 if no value exceeds its limit.
 * allowed: out, the limit at that index. */
int tsr_engine_worst_difference(const tsr_engine *engine, const double *profile,
                                const double *correct, double *allowed);

/* Creates a batch for at most max_proposal proposals at a time. */
tsr_status tsr_batch_new(tsr_engine *engine, int max_proposal, tsr_batch **out,
                         tsr_err *err);
void tsr_batch_free(tsr_batch *batch);

/* Sets a system's state and computes its profile from scratch.
 * xyz      [n_body][3]    in   Angstrom
 * profile  [n_pair][n_q]  out  electrons squared; may be NULL
 * Errors: TSR_E_NUMERIC (a coordinate is not finite), TSR_E_RANGE,
 * TSR_E_DEVICE. After an error the system keeps its state. */
tsr_status tsr_batch_set(tsr_batch *batch, int system, const double (*xyz)[3],
                         double *profile, tsr_err *err);

/* Starts the evaluation of n proposals, each for a different system, and
 * returns. While the device works, the caller can prepare another batch.
 * Errors: as tsr_batch_set. After an error no proposal is in flight and every
 * system keeps its state. */
tsr_status tsr_batch_submit(tsr_batch *batch, int n,
                            const tsr_body_proposal *proposal, tsr_err *err);

/* Waits for the submitted proposals and returns their profiles [n][n_pair]
 * [n_q]. The caller then accepts or rejects each proposal exactly once before
 * the system is used again. After an error all proposals count as rejected. */
tsr_status tsr_batch_wait(tsr_batch *batch, double *profile, tsr_err *err);

void tsr_batch_accept(tsr_batch *batch, int system);
void tsr_batch_reject(tsr_batch *batch, int system);

/* Copies the profile of the accepted state, without a new computation. profile
 * [n_pair][n_q] out. */
tsr_status tsr_batch_profile(tsr_batch *batch, int system, double *profile,
                             tsr_err *err);

/* For implementations of engines: checks the spec and allocates an engine of a
 * type, with the members above set and `rounding` zero. On a later failure
 * tsr_engine_free releases the incomplete engine. Errors: TSR_E_NOMEM, those of
 * tsr_engine_spec_check, TSR_E_INTERNAL (unit particles for a type that does
 * not accept them). */
tsr_status tsr_engine_open(const tsr_engine_type *type,
                           const tsr_engine_spec *spec, tsr_engine **out,
                           tsr_err *err);

/* For implementations: ends a constructor. If status is an error, frees the
 * engine and sets *engine to NULL. Returns status. */
tsr_status tsr_engine_finish(tsr_engine **engine, tsr_status status);

/* For implementations: refuses positions that are not finite (TSR_E_NUMERIC).
 * xyz holds bodies first..first+n-1 of the system. */
tsr_status tsr_engine_xyz_check(int n, int first, int system,
                                const double (*xyz)[3], tsr_err *err);
tsr_status tsr_engine_proposal_check(const tsr_body_proposal *proposal,
                                     tsr_err *err);

/* For implementations: centre of the bounding box of n points. Returns the
 * squared distance of the farthest point from the centre. */
double tsr_engine_bounding_ball(int n, const double (*xyz)[3],
                                double centre[3]);

/* For implementations: refuses (TSR_E_RANGE) two bodies farther apart than
 * d_bound_ang, with a tolerance of 1e-6 for single precision. The prior applies
 * the same limit in the same way (prior/prior.c), so a chain never proposes
 * such a conformation. */
tsr_status tsr_engine_extent_check(const tsr_engine *engine, int system,
                                   const double (*xyz)[3], tsr_err *err);

#endif
