/* Pool: draws all torsions of a stretch of up to LONGEST residues from near
 * those of a member of the pool, independently of the present torsions. One
 * side of the chain goes along.
 *
 * The stretch is chosen independently of the conformation. With f the prior's
 * densities of its residues i, x_t its n torsions, and x_tm those of the M
 * members, the proposal has the density
 *
 *     q(x) = w prod_i f_i + (1 - w) / (M S) sum_m sum_s prod_t K_s(x_t - x_tm)
 *
 * with von Mises kernels K_s of S concentrations kappa_s, and
 *
 *     log ratio = log q(old) - log q(new).
 *
 * The first term keeps q above w f wherever the prior is positive, so that a
 * chain far from all members still gets to them (a defensive mixture). The
 * scales take the place of one bandwidth, which would depend on the number of
 * torsions and of members.
 *
 * The kernels' product is c_s^n exp(-kappa_s V_m), where V_m = n - sum_t
 * (cos x_t cos x_tm + sin x_t sin x_tm). As each kappa_s is four times the one
 * before, one exponential per member serves all scales. Cost: O(M n).
 *
 * Source: independence sampler (Tierney 1994, Ann. Stat. 22, 1701); defensive
 * mixtures (Hesterberg 1995, Technometrics 37, 185). */
#include "moves/pool_move.h"

#include "moves/move.h"

#include <math.h>
#include <stdlib.h>

enum { LONGEST = 4, N_SCALE = 4 };

/* Widths 1 / sqrt(kappa) of 20, 10, 5 and 2.5 degrees: from those of a basin of
 * the prior to turns that carry a domain 25 Angstrom away by one. */
static const double kappa[N_SCALE] = {8.0, 32.0, 128.0, 512.0};

static const double from_prior = 0.2; /* w */

static const tsr_field fields[] = {
    TSR_FIELD(DOUBLE, "weight", tsr_pool_move_options, weight,
              .initial = "0.05", .min = 0.0, .max = 1e6,
              .doc = "weight of the move among all proposals, where there is a "
                     "structure.pool; 0: off"),
    {0}};

/* ---- members ---- */

tsr_members *tsr_members_new(const tsr_topology *topology)
{
    tsr_members *p = calloc(1, sizeof *p);
    if (p == NULL)
        return NULL;
    p->topology = topology;
    while (p->n_torsion < topology->n_torsion &&
           topology->residue[topology->torsion[p->n_torsion].residue].link ==
               TSR_LINK_NONE)
        p->n_torsion++;
    return p;
}

void tsr_members_free(tsr_members *members)
{
    if (members != NULL)
        tsr_pool_clear(&members->pool);
    free(members);
}

/* The present value of a torsion, rad. */
static double value(const tsr_members *p, const tsr_conformation *c, int k)
{
    const tsr_torsion *torsion = &p->topology->torsion[k];
    return tsr_conformation_torsion(p->topology, c, torsion->residue,
                                    torsion->kind);
}

tsr_status tsr_members_add(tsr_members *members,
                           const tsr_conformation *conformation, tsr_err *err)
{
    tsr_members *p = members;
    const size_t n = (size_t)p->n_torsion;
    if (p->n == p->capacity) {
        const int capacity = 2 * p->capacity + 16;
        void *more = tsr_pool_resize(&p->pool, p->turn, (size_t)capacity * n,
                                     sizeof *p->turn);
        TSR_TRY(tsr_allocated(more, err));
        p->turn = more, p->capacity = capacity;
    }
    double(*to)[2] = p->turn + (size_t)p->n++ * n;
    for (int k = 0; k < p->n_torsion; k++) {
        const double x = value(p, conformation, k);
        to[k][0] = cos(x), to[k][1] = sin(x);
    }
    return TSR_OK;
}

/* Torsions of member m from number k on. */
static const double (*member(const tsr_members *p, int m, int k))[2]
{
    return (const double(*)[2])p->turn + (size_t)m * (size_t)p->n_torsion + k;
}

void tsr_members_apply(const tsr_members *members, int m,
                       const tsr_conformation *from, tsr_conformation *to)
{
    const tsr_members *p = members;
    const tsr_topology *t = p->topology;
    const double(*turn)[2] = member(p, m, 0);
    tsr_proposal all = {.n_span = 1, .span = {{0, t->n_own, 0}}};
    tsr_conformation_copy(t, to, from, 0, t->n_residue);
    for (int k = 0; k < p->n_torsion; k++)
        tsr_conformation_turn(t, to, &t->torsion[k],
                              atan2(turn[k][1], turn[k][0]) - value(p, to, k));
    tsr_proposal_move_attached(t, from, to, &all);
}

/* ---- the move ---- */

typedef struct {
    const tsr_prior *prior;
    const tsr_members *members;
} pool_state;

static int pool_targets(const void *options, const tsr_topology *topology)
{
    const tsr_pool_move_options *o = options;
    (void)topology;
    return o->members == NULL ? 0 : o->members->n_torsion;
}

static void *pool_new(tsr_pool *pool, const void *options,
                      const tsr_topology *topology, const tsr_prior *prior)
{
    const tsr_pool_move_options *o = options;
    pool_state *s = tsr_pool_new(pool, 1, sizeof *s);
    (void)topology;
    if (s != NULL)
        *s = (pool_state){prior, o->members};
    return s;
}

/* The torsions of the stretch that begins with torsion k: their number, and
 * *count residues. */
static int stretch(const tsr_members *p, int k, int *count)
{
    const tsr_torsion *at = &p->topology->torsion[k];
    int n = 0, last = at->residue;
    for (; k + n < p->n_torsion; n++) {
        const int i = at[n].residue;
        if (i == at->residue + LONGEST || i > last + 1 ||
            (i > last && !p->topology->residue[i].linked))
            break;
        last = i;
    }
    *count = last - at->residue + 1;
    return n;
}

/* log q of the stretch that begins with torsion k. */
static double log_density(const pool_state *s, const tsr_conformation *c, int k)
{
    const tsr_members *p = s->members;
    const int first = p->topology->torsion[k].residue;
    double turn[2 * LONGEST][2], scale[N_SCALE], log_f = 0.0, sum = 0.0;
    int count;
    const int n = stretch(p, k, &count);
    for (int i = first; i < first + count; i++)
        log_f += tsr_prior_torsion_log_of(s->prior, c, i);
    for (int t = 0; t < n; t++) {
        const double x = value(p, c, k + t);
        turn[t][0] = cos(x), turn[t][1] = sin(x);
    }
    for (int i = 0; i < N_SCALE; i++)
        scale[i] =
            exp(-n * (log(2.0 * TSR_PI) + tsr_von_mises_log_i0(kappa[i])));
    for (int m = 0; m < p->n; m++) {
        const double(*at)[2] = member(p, m, k);
        double v = n;
        for (int t = 0; t < n; t++)
            v -= turn[t][0] * at[t][0] + turn[t][1] * at[t][1];
        double e = exp(-kappa[0] * v); /* below 1e-30 it changes nothing */
        for (int i = 0; i < N_SCALE && e > 1e-30; i++, e *= e * e * e)
            sum += scale[i] * e;
    }
    return log(from_prior * exp(log_f) +
               (1.0 - from_prior) * sum / (N_SCALE * p->n));
}

/* proposal->target: first torsion of the stretch. */
static double pool_log_ratio(const void *state, const tsr_conformation *current,
                             const tsr_conformation *proposed,
                             const tsr_proposal *proposal)
{
    return log_density(state, current, proposal->target) -
           log_density(state, proposed, proposal->target);
}

/* All torsions turn the side of the first one: where they would turn different
 * sides, neither is fixed. */
static void pool_propose(void *state, const tsr_conformation *current,
                         tsr_conformation *proposed, gsl_rng *rng,
                         tsr_proposal *proposal)
{
    const pool_state *s = state;
    const tsr_members *p = s->members;
    const tsr_topology *t = p->topology;
    double to[LONGEST][2] = {{0.0}};
    int count, k = (int)gsl_rng_uniform_int(rng, (unsigned long)p->n_torsion);
    k -= k > 0 && t->torsion[k - 1].residue == t->torsion[k].residue;
    const tsr_torsion *at = &t->torsion[k];
    const int n = stretch(p, k, &count), first = at->residue;
    if (gsl_rng_uniform(rng) < from_prior) {
        for (int i = 0; i < count; i++)
            tsr_prior_torsion_draw(s->prior, first + i, rng, &to[i][0],
                                   &to[i][1]);
    } else {
        const double(*near)[2] =
            member(p, (int)gsl_rng_uniform_int(rng, (unsigned long)p->n), k);
        const double width = kappa[gsl_rng_uniform_int(rng, N_SCALE)];
        for (int i = 0; i < n; i++)
            to[at[i].residue - first][at[i].kind] =
                atan2(near[i][1], near[i][0]) +
                tsr_von_mises_draw_angle(rng, width);
    }
    tsr_move_set_torsions(t, current, proposed, first, count, at->c_side,
                          (const double(*)[2])to, proposal);
    proposal->target = k;
    proposal->log_ratio = pool_log_ratio(s, current, proposed, proposal);
}

const tsr_move_type tsr_move_pool = {
    .name = "pool",
    .doc = "draws the torsions of up to four residues near those of a member "
           "of structure.pool",
    .source = "Tierney 1994 (independence sampler)",
    .options_size = sizeof(tsr_pool_move_options),
    .fields = fields,
    .only_torsions = 1,
    .state_new = pool_new,
    .n_target = pool_targets,
    .propose = pool_propose,
    .log_ratio = pool_log_ratio};
