/* The reference engine: the Debye sum in double precision, with one sinc for
 * every pair.
 *
 * It caches the sum of each pair of blocks in two slots, one for the accepted
 * value and one for that of the proposal. It recomputes a pair of blocks
 * whenever a body of either block moved, and ignores rigid groups. A comparison
 * with this engine therefore also tests how other engines use rigid groups. */
#include "engine/engine.h"

#include "core/clones.h"
#include "core/vec3.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

enum { BLOCK = 16, MAX_COMP = 3 }; /* BLOCK: bodies */

/* Relative error for tsr_engine_rounding. Double precision would allow less,
 * but the profiles that are compared with this engine have larger errors: those
 * of fixed-point sums, and 1e-12 of I(0) from the recurrence of
 * tsr_debye_reference. */
static const double relative_error = 0x1p-40;

typedef struct {
    double (*xyz)[3];      /* [n_body] accepted positions */
    double (*proposed)[3]; /* [n_body] proposed positions */
    double *tile[2];       /* [n_tile][n_pair][n_q] */
    unsigned char *select; /* [n_tile] slot that holds the accepted value */
    int *dirty;            /* [n_tile] tiles that the proposal changes */
    int n_dirty;
} reference_system;

typedef struct {
    tsr_engine base;
    int n_block, n_tile;
    int n_unique;  /* bodies in the sums, those of copy 0 first */
    int n_own;     /* bodies of copy 0 */
    double *times; /* [n_unique] multiplicity of a body in its own copy, and
                      half of it in the pairs with copy 0 */
    int row;       /* n_pair n_q, the size of a profile */
    double *form_factor; /* [n_block][n_q][n_comp][BLOCK] */
    reference_system *system;
} reference_engine;

typedef struct {
    tsr_batch base;
    double *profile;        /* [max_proposal][n_pair][n_q] results */
    unsigned char *touched; /* [n_block] scratch */
} reference_batch;

/* Form factors [n_comp][BLOCK] of the bodies of a block at q_k. */
static double *block_factors(const reference_engine *e, int block, int k)
{
    return e->form_factor + ((size_t)block * (size_t)e->base.n_q + (size_t)k) *
                                (size_t)e->base.n_comp * BLOCK;
}

static void copy_form_factors(reference_engine *e, const tsr_engine_spec *spec)
{
    const int n_q = spec->n_q;
    for (int i = 0; i < e->n_unique; i++)
        for (int k = 0; k < n_q; k++)
            for (int a = 0; a < e->base.n_comp; a++)
                block_factors(e, i / BLOCK, k)[a * BLOCK + i % BLOCK] =
                    spec->form_factor[((size_t)a * (size_t)spec->n_type +
                                       (size_t)spec->type[i]) *
                                          (size_t)n_q +
                                      (size_t)k];
}

/* One body against all bodies of a block, laid out for vector instructions:
 * sine and cosine of x = dq r (the rotation from one q to the next), s and c
 * (sine and cosine of k x), the multiplicity of the pair, and times_over_x =
 * multiplicity / x. Padding, bodies j > i, and pairs of two copies other than
 * copy 0 have multiplicity 0. */
typedef struct {
    double sine[BLOCK], cosine[BLOCK], s[BLOCK], c[BLOCK];
    double multiplicity[BLOCK], times_over_x[BLOCK];
} reference_row;

/* A pair i > j has multiplicity 2, and a body with itself 1, times the copies
 * for which they stand. For r = 0, x is so
 * small that sin(k x) / (k x) is 1 in double precision. */
static void start_row(const reference_engine *e, const double (*xyz)[3], int i,
                      int first, reference_row *row)
{
    memset(row, 0, sizeof *row);
    for (int j = 0; j < BLOCK && first + j <= i && first + j < e->n_own; j++) {
        const double r = tsr_vec3_distance(xyz[i], xyz[first + j]);
        const double x = fmax(e->base.dq_inv_ang * r, 1e-100);
        row->sine[j] = sin(x);
        row->cosine[j] = cos(x);
        row->c[j] = 1.0;
        row->multiplicity[j] = (first + j < i ? 2.0 : 1.0) * e->times[i];
        row->times_over_x[j] = row->multiplicity[j] / x;
    }
}

/* Adds to field[a][j] the sum over n bodies i of factor[a][i] sinc(q_k r_ij),
 * then advances sines and cosines to the next k by the angle sum formulas.
 * After k steps the recurrence is off by at most 4 k units in the last place,
 * far below `relative_error`. */
TSR_CLONES static void add_sincs(int n_comp, int n, int k, const double *factor,
                                 reference_row *row,
                                 double field[MAX_COMP][BLOCK])
{
    const double over_k = k > 0 ? 1.0 / k : 0.0;
    for (int i = 0; i < n; i++) {
        reference_row *p = &row[i];
        double sinc[BLOCK];
        for (int j = 0; j < BLOCK; j++) {
            const double s = p->s[j], c = p->c[j];
            sinc[j] =
                k > 0 ? p->times_over_x[j] * s * over_k : p->multiplicity[j];
            p->s[j] = s * p->cosine[j] + c * p->sine[j];
            p->c[j] = c * p->cosine[j] - s * p->sine[j];
        }
        for (int a = 0; a < n_comp; a++)
            for (int j = 0; j < BLOCK; j++)
                field[a][j] += factor[a * BLOCK + i] * sinc[j];
    }
}

/* Partial profiles of the pair of blocks (bi, bj). */
static void tile_sum(const reference_engine *e, const double (*xyz)[3], int bi,
                     int bj, double *sum)
{
    const int n_q = e->base.n_q, n_comp = e->base.n_comp;
    const int remaining = e->n_unique - bi * BLOCK,
              n = remaining < BLOCK ? remaining : BLOCK;
    reference_row row[BLOCK];
    for (int i = 0; i < n; i++)
        start_row(e, xyz, bi * BLOCK + i, bj * BLOCK, &row[i]);
    for (int k = 0; k < n_q; k++) {
        const double *f_i = block_factors(e, bi, k),
                     *f_j = block_factors(e, bj, k);
        double field[MAX_COMP][BLOCK] = {{0.0}};
        add_sincs(n_comp, n, k, f_i, row, field);
        for (int a = 0, pair = 0; a < n_comp; a++)
            for (int b = a; b < n_comp; b++, pair++) {
                double pair_sum = 0.0;
                for (int j = 0; j < BLOCK; j++)
                    pair_sum += f_j[a * BLOCK + j] * field[b][j] +
                                f_j[b * BLOCK + j] * field[a][j];
                sum[pair * n_q + k] = 0.5 * pair_sum;
            }
    }
}

/* Profile from the cached tiles: of the accepted positions, or, with proposed
 * 1, of the proposal, for which the slots of the dirty tiles are swapped during
 * the sum. */
static void profile_of(const reference_engine *e, reference_system *s,
                       int proposed, double *profile)
{
    size_t n_q = (size_t)e->row;
    for (int d = 0; proposed && d < s->n_dirty; d++)
        s->select[s->dirty[d]] ^= 1;
    memset(profile, 0, n_q * sizeof *profile);
    for (int t = 0; t < e->n_tile; t++) {
        const double *sum = s->tile[s->select[t]] + (size_t)t * n_q;
        for (size_t k = 0; k < n_q; k++)
            profile[k] += sum[k];
    }
    for (int d = 0; proposed && d < s->n_dirty; d++)
        s->select[s->dirty[d]] ^= 1;
}

/* Computes every pair of blocks that contains a touched block, into the slot
 * that does not hold the accepted value, and then the proposal's profile. */
static void evaluate(const reference_engine *e, reference_system *s,
                     const unsigned char *touched, double *profile)
{
    s->n_dirty = 0;
    for (int bi = 0, t = 0; bi < e->n_block; bi++)
        for (int bj = 0; bj <= bi; bj++, t++)
            if ((touched[bi] || touched[bj]) && bj * BLOCK < e->n_own) {
                double *sum =
                    s->tile[!s->select[t]] + (size_t)t * (size_t)e->row;
                tile_sum(e, (const double(*)[3])s->proposed, bi, bj, sum);
                s->dirty[s->n_dirty++] = t;
            }
    profile_of(e, s, 1, profile);
}

static void reference_accept(tsr_engine *engine, int system)
{
    reference_engine *e = (reference_engine *)engine;
    reference_system *s = &e->system[system];
    for (int d = 0; d < s->n_dirty; d++)
        s->select[s->dirty[d]] ^= 1;
    memcpy(s->xyz, s->proposed, (size_t)e->base.n_body * sizeof *s->xyz);
}

static tsr_status reference_propose(tsr_batch *base,
                                    const tsr_body_proposal *proposal,
                                    tsr_err *err)
{
    const reference_engine *e = (const reference_engine *)base->engine;
    reference_batch *batch = (reference_batch *)base;
    reference_system *s = &e->system[proposal->system];
    TSR_TRY(tsr_engine_proposal_check(proposal, err));
    memcpy(s->proposed, s->xyz, (size_t)e->base.n_body * sizeof *s->xyz);
    memset(batch->touched, 0, (size_t)e->n_block);
    for (int r = 0; r < proposal->n_range; r++) {
        const tsr_body_range *range = &proposal->range[r];
        memcpy(s->proposed + range->first, range->xyz,
               (size_t)range->count * sizeof *s->proposed);
        for (int i = range->first;
             i < range->first + range->count && i < e->n_unique; i++)
            batch->touched[i / BLOCK] = 1;
    }
    TSR_TRY(tsr_engine_extent_check(&e->base, proposal->system, e->n_unique,
                                    (const double(*)[3])s->proposed, err));
    evaluate(e, s, batch->touched,
             batch->profile + (size_t)(base->n - 1) * (size_t)e->row);
    return TSR_OK;
}

static tsr_status reference_wait(tsr_batch *base, double *profile, tsr_err *err)
{
    const reference_engine *e = (const reference_engine *)base->engine;
    (void)err;
    if (profile != NULL)
        memcpy(profile, ((reference_batch *)base)->profile,
               (size_t)base->n * (size_t)e->row * sizeof *profile);
    return TSR_OK;
}

static void reference_profile(const tsr_engine *engine, int system,
                              double *profile)
{
    const reference_engine *e = (const reference_engine *)engine;
    profile_of(e, &e->system[system], 0, profile);
}

static tsr_status reference_batch_open(tsr_batch *base, tsr_err *err)
{
    const reference_engine *e = (const reference_engine *)base->engine;
    reference_batch *batch = (reference_batch *)base;
    tsr_pool_array(&base->pool, batch->profile,
                   (size_t)base->max_proposal * (size_t)e->row);
    tsr_pool_array(&base->pool, batch->touched, e->n_block);
    return tsr_pool_check(&base->pool, err);
}

static const tsr_engine_type reference_type = {
    .name = "reference",
    .doc = "Debye sum in double precision, pair by pair, on the host",
    .size = sizeof(reference_engine),
    .batch_size = sizeof(reference_batch),
    .batch_open = reference_batch_open,
    .propose = reference_propose,
    .wait = reference_wait,
    .accept = reference_accept,
    .profile = reference_profile,
};

static void make_system(reference_engine *e, reference_system *s)
{
    tsr_pool *pool = &e->base.pool;
    const size_t numbers = (size_t)e->n_tile * (size_t)e->row;
    tsr_pool_array(pool, s->xyz, e->base.n_body);
    tsr_pool_array(pool, s->proposed, e->base.n_body);
    tsr_pool_array(pool, s->tile[0], numbers);
    tsr_pool_array(pool, s->tile[1], numbers);
    tsr_pool_array(pool, s->select, e->n_tile);
    tsr_pool_array(pool, s->dirty, e->n_tile);
}

tsr_status tsr_engine_reference_new(const tsr_engine_spec *spec,
                                    tsr_engine **out, tsr_err *err)
{
    TSR_TRY(tsr_engine_open(&reference_type, spec, out, err));
    reference_engine *e = (reference_engine *)*out;
    tsr_pool *pool = &e->base.pool;
    snprintf(e->base.description, sizeof e->base.description,
             "reference: double precision, C, one core");
    tsr_engine_rounding(spec, relative_error, BLOCK, 1, e->base.rounding);
    e->row = e->base.n_pair * spec->n_q;
    e->n_unique = tsr_engine_n_unique(spec);
    e->n_own = spec->n_copy > 1 ? spec->n_body / spec->n_copy : spec->n_body;
    e->n_block = (e->n_unique + BLOCK - 1) / BLOCK;
    e->n_tile = e->n_block * (e->n_block + 1) / 2;
    tsr_pool_array(pool, e->form_factor,
                   (size_t)e->n_block * (size_t)spec->n_q *
                       (size_t)e->base.n_comp * BLOCK);
    tsr_pool_array(pool, e->system, spec->n_system);
    tsr_pool_array(pool, e->times, e->n_unique);
    for (int i = 0; i < spec->n_system && !pool->failed; i++)
        make_system(e, &e->system[i]);
    for (int i = 0; i < e->n_unique && !pool->failed; i++)
        e->times[i] =
            (spec->n_copy > 1 ? spec->n_copy : 1) * tsr_engine_share(spec, i);
    if (!pool->failed) {
        copy_form_factors(e, spec);
        return TSR_OK;
    }
    return tsr_engine_finish(
        out, tsr_fail(err, TSR_E_NOMEM,
                      "out of memory for %d systems of %d bodies and %d q",
                      spec->n_system, spec->n_body, spec->n_q));
}
