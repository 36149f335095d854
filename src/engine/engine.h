/* The interface of a Debye engine: partial profiles of many systems, updated
 * move by move.
 *
 * A system is one conformation of one chain. An engine serves n_system systems,
 * all with the same bodies, and keeps the accepted positions of each.
 * Evaluating a proposal does not change them. Accepting replaces them by the
 * proposal, rejecting discards the proposal, and neither call can fail.
 *
 *     I_ab(q_k) = sum_i sum_j F_i^a(q_k) F_j^b(q_k) sinc(q_k r_ij)
 *
 * The sums include i = j. The grid is q_k = k dq, k = 0..n_q-1. Sources: Debye
 * 1915; Antonov et al. 2013.
 *
 * Threads: many threads may share one engine. Only one thread at a time may use
 * a batch, and only one batch at a time may use a system. */
#ifndef TSR_ENGINE_ENGINE_H
#define TSR_ENGINE_ENGINE_H

#include "core/pool.h"
#include "core/status.h"
#include "molecule/points.h"

#include <stddef.h>

typedef struct {
    int n_body;
    int n_type;        /* number of body types */
    int n_comp;        /* number of components K, 1 to 3; 0 means 1 */
    int n_q;           /* grid points, at least 2 */
    double dq_inv_ang; /* grid step, 1/Angstrom */
    int n_system;
    const int *type;           /* [n_body] body type, 0..n_type-1 */
    const double *form_factor; /* [n_comp][n_type][n_q] electrons; fm for
                                  neutrons */
    double d_bound_ang; /* largest distance between bodies that dq can resolve;
                           a conformation beyond it is refused with TSR_E_RANGE.
                           0: no check */
    const int *unit; /* [n_body] rigid unit of each body, 0 to n_body-1, or -1
                        for a body in no rigid unit. Bodies of one unit keep the
                        mutual distances that they have in `rigid`. NULL: no
                        rigid units */
    const double (*rigid)[3]; /* [n_body] reference positions of the units'
                                 bodies, Angstrom; required if `unit` is set */
    /* A symmetric assembly: bodies g n_body / n_copy and on are copy g, and the
     * positions of the copies are those of copy 0, moved by the rotations of a
     * point group. The profile is then
     *
     *     n_copy (I_00 + sum_g weight_g I_0g)
     *
     * over copies 1 to n_unique - 1, I_0g being the sum over bodies i of copy 0
     * and j of copy g. Copies beyond n_unique are not read. 0: no symmetry. The
     * plane-wave engine sums over all copies. */
    int n_copy, n_unique;
    const int *copy_weight; /* [n_unique] 2, or 1 for a rotation by 180
                               degrees */
} tsr_engine_spec;

/* Number of bodies in the sums over pairs: those of the unique copies. */
static inline int tsr_engine_n_unique(const tsr_engine_spec *spec)
{
    return spec->n_copy > 1 ? spec->n_body / spec->n_copy * spec->n_unique
                            : spec->n_body;
}

/* Factor of the form factors of a body, by which all ordered pairs within copy
 * 0 and between copy 0 and the other unique copies sum to I(q) / n_copy. */
static inline double tsr_engine_share(const tsr_engine_spec *spec, int body)
{
    const int copy =
        spec->n_copy > 1 ? body / (spec->n_body / spec->n_copy) : 0;
    return copy > 0 ? 0.5 * spec->copy_weight[copy] : 1.0;
}

/* Number of components K. */
static inline int tsr_engine_n_comp(const tsr_engine_spec *spec)
{
    return spec->n_comp > 0 ? spec->n_comp : 1;
}

/* Address of the form factor of a component and type at q_k. */
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

/* The proposal for one system: the bodies that move. */
typedef struct {
    int system;
    int n_range;
    const tsr_body_range *range;
} tsr_body_proposal;

typedef struct tsr_engine tsr_engine;
typedef struct tsr_batch tsr_batch;

/* The functions that an engine implements. The public functions below call
 * them, check the arguments first, and keep tsr_engine.state up to date. */
typedef struct {
    const char *name; /* "reference", "page-tile SIMT", ... */
    const char *doc;
    size_t size, batch_size; /* sizes of the structs that begin with tsr_engine
                                and tsr_batch */

    /* close, batch_close: release whatever the pool does not own, also after an
     * incomplete construction; NULL: the pool owns everything. batch_open:
     * allocates the type's own members of a batch; after an error the caller
     * frees the batch. */
    void (*close)(tsr_engine *engine);
    void (*batch_close)(tsr_batch *batch);
    tsr_status (*batch_open)(tsr_batch *batch, tsr_err *err);

    /* Records or evaluates one proposal, number batch->n - 1 of the batch. An
     * error leaves the system unchanged. NULL: `start` records all
     * proposals. */
    tsr_status (*propose)(tsr_batch *batch, const tsr_body_proposal *proposal,
                          tsr_err *err);
    /* Called once after the last `propose` of a batch, with all its proposals.
     * NULL: `propose` already did the work. */
    tsr_status (*start)(tsr_batch *batch, const tsr_body_proposal *proposal,
                        tsr_err *err);
    /* Called after an error in `propose` or `start`: waits for work that is
     * still running. NULL: no work outlives the two calls. */
    void (*cancel)(tsr_batch *batch);
    /* Waits for the results. profile: as in tsr_batch_wait, or NULL when
     * tsr_batch_set calls. */
    tsr_status (*wait)(tsr_batch *batch, double *profile, tsr_err *err);
    /* Called for a system with a pending proposal. NULL: no action needed. */
    void (*accept)(tsr_engine *engine, int system);
    void (*reject)(tsr_engine *engine, int system);
    /* As tsr_batch_profile, without checks. */
    void (*profile)(const tsr_engine *engine, int system, double *profile);
} tsr_engine_type;

/* The common head of all engines. Each type's own struct begins with it. */
struct tsr_engine {
    const tsr_engine_type *type;
    tsr_pool pool; /* owns everything that lives as long as the engine */
    int n_body, n_q, n_system;
    int n_comp, n_pair; /* n_pair: pairs of components a <= b, K (K + 1) / 2.
                           For joined engines both are sums over the parts */
    double dq_inv_ang, d_bound_ang;
    double *rounding; /* [n_pair][n_q] bounds from tsr_engine_rounding */
    double system_bytes, shared_bytes; /* device memory for each system, and for
                                          the engine as a whole */
    double max_systems;    /* systems that fit into device memory; 0: unknown */
    char description[768]; /* device, driver, kernel, options, source hash */
    struct {
        int is_set, is_pending;
    } * state; /* [n_system] is_set: the system has positions. is_pending: it
                  has a proposal that was neither accepted nor rejected */
};

/* The common head of all batches. Each type's own struct begins with it. */
struct tsr_batch {
    tsr_engine *engine;
    tsr_pool pool; /* owns everything that lives as long as the batch */
    int max_proposal;
    int n, n_submitted; /* proposals recorded so far, 0 after tsr_batch_wait;
                           proposals passed to tsr_batch_submit */
    int is_fresh;       /* 1: tsr_batch_set is running; its proposal moves all
                           bodies */
    int *system;        /* [max_proposal] systems of the recorded proposals */
};

/* Length of a profile. */
static inline size_t tsr_engine_n_profile(const tsr_engine *engine)
{
    return (size_t)engine->n_pair * (size_t)engine->n_q;
}

/* The reference engine: plain C in double precision. Recomputes every pair of
 * blocks of 16 bodies in which a body moved. Slow and exact. Copies what it
 * needs from the spec. Errors: those of tsr_engine_open. */
tsr_status tsr_engine_reference_new(const tsr_engine_spec *spec,
                                    tsr_engine **out, tsr_err *err);

/* Joins engines of the same bodies, systems and grid, but different form
 * factors, into one engine. Its pairs of components are those of the parts,
 * part after part. The joined engine owns the parts [n]; after an error the
 * caller still owns them. With n = 1 the result is the part itself. Errors:
 * TSR_E_INTERNAL (the parts differ), TSR_E_NOMEM. */
tsr_status tsr_engine_join(int n, tsr_engine **part, tsr_engine **out,
                           tsr_err *err);

/* Refuses a spec that no engine can serve (TSR_E_INTERNAL). */
tsr_status tsr_engine_spec_check(const tsr_engine_spec *spec, tsr_err *err);

void tsr_engine_free(tsr_engine *engine); /* free the batches first */

/* Bounds the effect of rounding on an engine's profiles. A larger deviation
 * shows a fault of the device, its driver or the kernels.
 *
 * The engine sums the pairs of bodies in tiles of `tile` x `tile` bodies. Each
 * stored tile sum has a relative error of at most `unit` for each of its
 * `n_store` roundings. By Cauchy-Schwarz the stored values S satisfy sum S^2 <=
 * 2 tile^2 B^2 with B^2 = (sum_i F_i^a^2) (sum_i F_i^b^2). Independent errors
 * of mean 0 exceed t times the root of the sum of their squared bounds with a
 * probability of at most 2 exp(-t^2 / 2) (Hoeffding 1963); the function uses t
 * = 8, where this probability is 3e-14. Bodies of one type share a rounded form
 * factor, and this error does not average out: it adds 8 unit (sum |F^a|) (sum
 * |F^b|). In a symmetric assembly a tile counts for all copies: its error is
 * sqrt(2 n_unique) times as large.
 *
 * unit  in                   relative error of one rounding
 * out   [n_pair][n_q]  out   electrons squared */
void tsr_engine_rounding(const tsr_engine_spec *spec, double unit, int tile,
                         int n_store, double *out);

/* Compares a profile with the correct one of the same conformation. Differences
 * up to the engine's rounding plus 1e-5 of I are allowed; a NaN is never
 * allowed. Returns the index into [n_pair][n_q] of the worst excess, and sets
 * *allowed to the limit there; or returns -1 if no value exceeds its limit. */
int tsr_engine_worst_difference(const tsr_engine *engine, const double *profile,
                                const double *correct, double *allowed);

/* Creates a batch for at most max_proposal proposals at a time. Errors:
 * TSR_E_INTERNAL (max_proposal below 1), TSR_E_NOMEM, TSR_E_DEVICE. */
tsr_status tsr_batch_new(tsr_engine *engine, int max_proposal, tsr_batch **out,
                         tsr_err *err);
void tsr_batch_free(tsr_batch *batch); /* NULL is fine */

/* Sets a system's positions and computes its profile from scratch. Rejects a
 * pending proposal of the system.
 * xyz      [n_body][3]    in   Angstrom
 * profile  [n_pair][n_q]  out  electrons squared; may be NULL
 * Errors: TSR_E_NUMERIC (a coordinate is not finite), TSR_E_RANGE (two bodies
 * beyond d_bound_ang), TSR_E_DEVICE, TSR_E_INTERNAL (wrong use). After an error
 * the system keeps its positions. */
tsr_status tsr_batch_set(tsr_batch *batch, int system, const double (*xyz)[3],
                         double *profile, tsr_err *err);

/* Starts the evaluation of n proposals, each for a different system, and
 * returns. While the device works, the caller can prepare another batch.
 * Errors: as tsr_batch_set. After an error no proposal is in flight and every
 * system keeps its positions. */
tsr_status tsr_batch_submit(tsr_batch *batch, int n,
                            const tsr_body_proposal *proposal, tsr_err *err);

/* Waits for the submitted proposals and returns their profiles [n][n_pair]
 * [n_q]. The caller then accepts or rejects each proposal exactly once before
 * the system is used again. After an error (TSR_E_DEVICE) all proposals count
 * as rejected. */
tsr_status tsr_batch_wait(tsr_batch *batch, double *profile, tsr_err *err);

/* Accepts or rejects the pending proposal of a system, if there is one. */
void tsr_batch_accept(tsr_batch *batch, int system);
void tsr_batch_reject(tsr_batch *batch, int system);

/* The profile of the accepted positions, from stored sums, without a new sum
 * over pairs. profile [n_pair][n_q] out. Errors: TSR_E_INTERNAL (the system was
 * never set). */
tsr_status tsr_batch_profile(tsr_batch *batch, int system, double *profile,
                             tsr_err *err);

/* For implementations of engines: checks the spec and allocates an engine of a
 * type. Sets the sizes, dq_inv_ang and d_bound_ang from the spec, and allocates
 * `rounding` and `state`, filled with zeros. All other members are zero. If the
 * constructor fails later, tsr_engine_free releases the incomplete engine.
 * Errors: TSR_E_NOMEM, those of tsr_engine_spec_check. */
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

/* tsr_engine_xyz_check for all ranges of a proposal. */
tsr_status tsr_engine_proposal_check(const tsr_body_proposal *proposal,
                                     tsr_err *err);

/* For implementations: centre [3] out, the centre of the bounding box of n
 * points. Returns the squared distance of the farthest point from it. */
double tsr_engine_bounding_ball(int n, const double (*xyz)[3],
                                double centre[3]);

/* For implementations: refuses (TSR_E_RANGE) two of n bodies farther apart than
 * d_bound_ang, with a relative tolerance of 1e-6 for single precision; no check
 * if d_bound_ang is 0. The prior is zero beyond the same limit (prior/prior.c),
 * so a chain never submits such a conformation. */
tsr_status tsr_engine_extent_check(const tsr_engine *engine, int system, int n,
                                   const double (*xyz)[3], tsr_err *err);

#endif
