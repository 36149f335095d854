/* The engine: Debye profiles of many systems, updated move by move.
 *
 * A system is one conformation. An engine serves n_system of them, all with the
 * same bodies. It keeps for each an accepted state; a proposal is evaluated
 * beside it, then accepted (it becomes the state) or rejected (nothing
 * changes). Neither can fail.
 *
 *     I_ab(q_k) = sum_i sum_j F_i^a(q_k) F_j^b(q_k) sinc(q_k r_ij),  i = j too
 *
 * on the uniform grid q_k = k dq, k = 0..n_q-1. Source: Debye 1915; Antonov et
 * al. 2013.
 *
 * Threads: an engine is shared; a batch belongs to one thread at a time. A
 * system may be used by one batch at a time. */
#ifndef TSR_ENGINE_ENGINE_H
#define TSR_ENGINE_ENGINE_H

#include "core/pool.h"
#include "core/status.h"
#include "molecule/points.h"

#include <stddef.h>

typedef struct {
    int n_body;
    int n_type;
    int n_comp;        /* components K, 1 to 3; 0 counts as 1 */
    int n_q;           /* grid points, at least 2 */
    double dq_inv_ang; /* grid step, 1/Angstrom */
    int n_system;
    const int *type;           /* [n_body] 0..n_type-1 */
    const double *form_factor; /* [n_comp][n_type][n_q] electrons */
    double d_bound_ang;        /* largest distance that dq allows for; a profile
                                  asked beyond it is TSR_E_RANGE. 0: no check */
    const int *unit; /* [n_body] bodies of one number, 0 to n_body-1, keep
                        their distances, which are those of `rigid`,
                        for ever; -1: of none. NULL: nobody does */
    const double (*rigid)[3]; /* [n_body] Angstrom; NULL where unit is */
    const struct tsr_unit_particles *unit_particles; /* what scatters in these
                                               units instead of their bodies,
                                               whose factors are 0 then; NULL:
                                               they do. Plane waves alone */
} tsr_engine_spec;

/* Particles of rigid units, where the bodies of `rigid` are. No one is farther
 * from the others than d_bound_ang. */
typedef struct tsr_unit_particles {
    int n;
    const double (*xyz)[3]; /* [n] Angstrom */
    const int *type;        /* [n] of the spec */
    const int *unit;        /* [n] */
} tsr_unit_particles;

static inline int tsr_engine_n_comp(const tsr_engine_spec *spec)
{
    return spec->n_comp > 0 ? spec->n_comp : 1;
}

/* F of a component and type at page k. */
static inline const double *tsr_engine_factor(const tsr_engine_spec *spec,
                                              int comp, int type, int k)
{
    size_t table = (size_t)comp * (size_t)spec->n_type + (size_t)type;
    return spec->form_factor + table * (size_t)spec->n_q + (size_t)k;
}

/* Bodies first..first+count-1 moved. xyz [count][3], Angstrom, borrowed until
 * the batch was waited for. group > 0: moved as one rigid group, together with
 * the other ranges of that number in the same proposal; 0: distances within the
 * range may have changed. Ranges of one proposal ascend and do not overlap. */
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

/* What an engine has of its own; the calls below check and count. */
typedef struct {
    const char *name; /* "reference", "page-tile SIMT", ... */
    const char *doc;
    size_t size, batch_size; /* of its structs around the two below */
    int has_unit_particles;  /* within rigid units */

    /* Release what is not of the pool, also of what was not made completely.
     * NULL: there is nothing. */
    void (*close)(tsr_engine *engine);
    void (*batch_close)(tsr_batch *batch);
    tsr_status (*batch_open)(tsr_batch *batch, tsr_err *err);

    /* Takes over the proposal of number batch->n - 1; an error leaves its
     * system as it was. NULL: `start` takes all. */
    tsr_status (*propose)(tsr_batch *batch, const tsr_body_proposal *proposal,
                          tsr_err *err);
    /* After the last of them, of which there is one at least. NULL: all is
     * done then. */
    tsr_status (*start)(tsr_batch *batch, const tsr_body_proposal *proposal,
                        tsr_err *err);
    /* After an error in the two above: waits for what was begun. NULL: nothing
     * is. */
    void (*cancel)(tsr_batch *batch);
    /* profile as tsr_batch_wait's, or NULL. */
    tsr_status (*wait)(tsr_batch *batch, double *profile, tsr_err *err);
    /* Of a system whose proposal is pending. NULL: nothing is to be done. */
    void (*accept)(tsr_engine *engine, int system);
    void (*reject)(tsr_engine *engine, int system);
    void (*profile)(const tsr_engine *engine, int system, double *profile);
} tsr_engine_type;

/* What every engine begins with; each type has its own struct around it. */
struct tsr_engine {
    const tsr_engine_type *type;
    tsr_pool pool; /* of all that lives as long as the engine */
    int n_body, n_q, n_system;
    int n_comp, n_pair; /* pairs of components a <= b: K (K + 1) / 2; of engines
                           joined the sums of theirs */
    double dq_inv_ang, d_bound_ang;
    double *rounding;                  /* [n_pair][n_q] tsr_engine_rounding */
    double system_bytes, shared_bytes; /* on the device; of each system, else */
    double max_systems;    /* that the device has room for; 0: not told */
    char description[768]; /* device, driver, kernel, options, source hash */
    struct {
        int is_set, is_pending;
    } * state; /* [n_system] */
};

struct tsr_batch {
    tsr_engine *engine;
    tsr_pool pool; /* likewise */
    int max_proposal;
    int n, n_asked; /* proposals in flight, and when all will be */
    int is_fresh;   /* a system is set: the proposal is of all bodies */
    int *system;    /* [max_proposal] in flight */
};

static inline size_t tsr_engine_n_profile(const tsr_engine *engine)
{
    return (size_t)engine->n_pair * (size_t)engine->n_q;
}

/* The double precision reference engine: plain C, sinc by sinc, every pair
 * whose distance may have changed; slow and exact. Copies what it needs. */
tsr_status tsr_engine_reference_new(const tsr_engine_spec *spec,
                                    tsr_engine **out, tsr_err *err);

/* Engines of the same bodies, systems and grid that differ in their form
 * factors, as one: its pairs of components are those of the
 * parts, one after another. Takes the parts [n], but not after an error; of one
 * part that part itself. Errors: TSR_E_INTERNAL, TSR_E_NOMEM. */
tsr_status tsr_engine_join(int n, tsr_engine **part, tsr_engine **out,
                           tsr_err *err);

/* Refuses a spec that no engine could serve (TSR_E_INTERNAL). */
tsr_status tsr_engine_spec_check(const tsr_engine_spec *spec, tsr_err *err);

void tsr_engine_free(tsr_engine *engine); /* after its batches */

/* How far rounding takes an engine's profiles, so that what is farther off is
 * an error: of the device, its driver, the kernels.
 *
 * Sums are of tiles of `tile` bodies a side, each stored with a relative error
 * of at most `unit` as often as `n_store` times. The stored values S have
 * sum S^2 <= 2 tile^2 B^2 with B^2 = (sum_i F_i^a^2) (sum_i F_i^b^2), by
 * Cauchy-Schwarz. Independent errors of mean 0, none beyond its bound, exceed t
 * times the root of the sum of the bounds' squares with a probability of at
 * most 2 exp(-t^2 / 2) (Hoeffding 1963): 3e-14 at t = 8, which is taken here.
 * What bodies of a type share (their form factor, rounded) does not average
 * out: 8 units of (sum |F^a|) (sum |F^b|).
 *
 * out [n_pair][n_q] electrons squared. */
void tsr_engine_rounding(const tsr_engine_spec *spec, double unit, int tile,
                         int n_store, double *out);

/* Whether a profile differs from another of the same bodies by more than the
 * rounding of the engine and 1e-5 of I, its promise: the place in [n_pair][n_q]
 * where it does so most, -1 where it does not. allowed out, there. */
int tsr_engine_worst_difference(const tsr_engine *engine, const double *profile,
                                const double *right, double *allowed);

/* A batch holds at most max_proposal proposals in flight. */
tsr_status tsr_batch_new(tsr_engine *engine, int max_proposal, tsr_batch **out,
                         tsr_err *err);
void tsr_batch_free(tsr_batch *batch);

/* Sets a system's state and computes it afresh.
 * xyz      [n_body][3]  in   Angstrom
 * profile  [n_pair][n_q] out electrons squared; NULL: not wanted
 * Errors: TSR_E_NUMERIC (a coordinate is not finite), TSR_E_RANGE,
 * TSR_E_DEVICE. After an error the system keeps its state. */
tsr_status tsr_batch_set(tsr_batch *batch, int system, const double (*xyz)[3],
                         double *profile, tsr_err *err);

/* Starts the evaluation of n proposals, each of another system, and returns.
 * The device works while the caller prepares another batch. Errors as above;
 * after an error nothing is in flight and every system keeps its state. */
tsr_status tsr_batch_submit(tsr_batch *batch, int n,
                            const tsr_body_proposal *proposal, tsr_err *err);

/* Waits for the submitted proposals. profile [n][n_pair][n_q] out. After it
 * each of the proposals is accepted or rejected once, before its system is used
 * again. After an error all of them count as rejected. */
tsr_status tsr_batch_wait(tsr_batch *batch, double *profile, tsr_err *err);

void tsr_batch_accept(tsr_batch *batch, int system);
void tsr_batch_reject(tsr_batch *batch, int system);

/* The profile of the accepted state, without computing anything.
 * profile [n_pair][n_q] out. */
tsr_status tsr_batch_profile(tsr_batch *batch, int system, double *profile,
                             tsr_err *err);

/* For engines: one of a type, of which the members above are set, `rounding` to
 * zeros; tsr_engine_free takes what was made so far. Errors: TSR_E_NOMEM, those
 * of tsr_engine_spec_check, TSR_E_INTERNAL (particles, where the type takes
 * none). */
tsr_status tsr_engine_open(const tsr_engine_type *type,
                           const tsr_engine_spec *spec, tsr_engine **out,
                           tsr_err *err);

/* For engines: ends making one; after an error frees it and sets *engine NULL.
 * Returns status. */
tsr_status tsr_engine_finish(tsr_engine **engine, tsr_status status);

/* For engines: a position that is not finite is TSR_E_NUMERIC (bodies
 * first..first+n-1 of that system). */
tsr_status tsr_engine_xyz_check(int n, int first, int system,
                                const double (*xyz)[3], tsr_err *err);
tsr_status tsr_engine_proposal_check(const tsr_body_proposal *proposal,
                                     tsr_err *err);

/* For engines: the middle of the box about n points, and the square of the
 * largest distance from there. */
double tsr_engine_bounding_ball(int n, const double (*xyz)[3],
                                double centre[3]);

/* For engines: whether all bodies are within the distance that the grid allows
 * for, and a millionth for single precision: TSR_E_RANGE. The prior has the
 * same limit and decides in the same way (prior/prior.c), so that a chain never
 * asks for more. */
tsr_status tsr_engine_extent_check(const tsr_engine *engine, int system,
                                   const double (*xyz)[3], tsr_err *err);

#endif
