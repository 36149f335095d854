/* Pool: draws all torsions of a linker, or of a stretch of a long one, from
 * near those of a member of the pool, independently of the present torsions.
 * One side of the chain goes along.
 *
 * The linker and the stretch are chosen independently of the conformation. With
 * f the prior's densities of the stretch's residues i, x_t its torsions, and
 * x_tm those of the M members, the proposal has the density
 *
 *     q(x) = w prod_i f_i + (1 - w) / (M S) sum_m sum_s prod_t K_s(x_t - x_tm)
 *
 * with von Mises kernels K_s of S concentrations kappa_s, so that
 *
 *     log ratio = log q(old) - log q(new).
 *
 * The first term, the option `prior`, keeps q above w f wherever the prior is
 * positive, so that a chain far from all members still gets to them (a
 * defensive mixture). The scales take the place of one bandwidth: which one
 * helps depends on the number of torsions, of members, and on the temperature.
 *
 * With V_m = sum_t 2 sin^2((x_t - x_tm) / 2), the kernels' product is
 * c_s exp(-kappa_s V_m). V is computed in single precision, in which its
 * relative error is below 1e-6. As kappa_s are powers of RATIO times the first,
 * one exponential per member serves all scales. Cost: O(M torsions).
 *
 * Source: independence sampler (Tierney 1994, Ann. Stat. 22, 1701); defensive
 * mixtures (Hesterberg 1995, Technometrics 37, 185). */
#include "moves/pool_move.h"

#include "core/clones.h"
#include "moves/move.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { N_SCALE = 4, RATIO = 4, BLOCK = 16 };

/* Widths 1 / sqrt(kappa) of 20, 10, 5 and 2.5 degrees: from those of a basin of
 * the prior to turns that carry a domain 25 Angstrom away by one. */
static const double first_kappa = 8.0;

/* Kernels below this share of the greatest are left out: even of 1e6 members
 * they change q by less than 1e-11, and most of them would underflow slowly. */
static const double negligible = 1e-17;

static const tsr_field fields[] = {
    TSR_FIELD(DOUBLE, "weight", tsr_pool_move_options, weight, .initial = "0.5",
              .min = 0.0, .max = 1e6,
              .doc = "weight of the move among all proposals, where there is a "
                     "structure.pool; 0: off"),
    TSR_FIELD(DOUBLE, "prior", tsr_pool_move_options, prior, .initial = "0.2",
              .min = 0.001, .max = 1.0,
              .doc = "share of proposals drawn from the prior instead of near "
                     "a member"),
    TSR_FIELD(INT, "residues", tsr_pool_move_options, residues, .initial = "4",
              .min = 1, .max = TSR_MAX_STRETCH,
              .doc = "longest stretch in residues; linkers up to this length "
                     "are drawn as a whole"),
    {0}};

/* ---- members ---- */

/* Lists the linkers, and returns their number. If their torsions turn different
 * sides, neither is fixed, and all turn the side of the torsion in the
 * middle. */
static int list_linkers(const tsr_topology *t, tsr_linker *out)
{
    int n = 0, end;
    for (int k = 0; k < t->n_torsion; k = end) {
        const int first = t->torsion[k].residue;
        int last = first;
        for (end = k; end < t->n_torsion; end++) {
            const int i = t->torsion[end].residue;
            if (i != last &&
                (i != last + 1 || !t->residue[i].linked ||
                 t->residue[i].in_chain != t->residue[last].in_chain))
                break;
            last = i;
        }
        if (t->residue[first].link != TSR_LINK_NONE)
            continue;
        if (out != NULL)
            out[n] =
                (tsr_linker){first, last, t->torsion[(k + end) / 2].c_side};
        n++;
    }
    return n;
}

tsr_members *tsr_members_new(const tsr_topology *topology)
{
    tsr_members *p = calloc(1, sizeof *p);
    if (p == NULL)
        return NULL;
    p->topology = topology;
    p->n_linker = list_linkers(topology, NULL);
    tsr_pool_array(&p->pool, p->linker, p->n_linker);
    tsr_pool_array(&p->pool, p->row, topology->n_residue);
    if (p->pool.failed) {
        tsr_members_free(p);
        return NULL;
    }
    list_linkers(topology, p->linker);
    for (int l = 0; l < p->n_linker; l++)
        for (int i = p->linker[l].first; i <= p->linker[l].last; i++) {
            const tsr_residue *r = &topology->residue[i];
            p->row[i][TSR_PHI] = r->has_phi ? p->n_torsion++ : -1;
            p->row[i][TSR_PSI] = r->has_psi ? p->n_torsion++ : -1;
        }
    return p;
}

void tsr_members_free(tsr_members *members)
{
    if (members != NULL)
        tsr_pool_clear(&members->pool);
    free(members);
}

static double turns_of(const tsr_members *p, const tsr_conformation *c, int i,
                       int kind)
{
    return tsr_conformation_torsion(p->topology, c, i, (tsr_torsion_kind)kind) /
           (2.0 * TSR_PI);
}

tsr_status tsr_members_add(tsr_members *members,
                           const tsr_conformation *conformation, tsr_err *err)
{
    tsr_members *p = members;
    const size_t n = (size_t)p->n_torsion;
    if (p->n == p->capacity) {
        const int capacity = 2 * p->capacity + 16;
        float *more = tsr_pool_resize(
            &p->pool, p->torsion, (size_t)capacity * n + 1, sizeof *p->torsion);
        TSR_TRY(tsr_allocated(more, err));
        p->torsion = more, p->capacity = capacity;
    }
    float *to = p->torsion + (size_t)p->n++ * n;
    for (int l = 0; l < p->n_linker; l++)
        for (int i = p->linker[l].first; i <= p->linker[l].last; i++)
            for (int k = 0; k < 2; k++)
                if (p->row[i][k] >= 0)
                    to[p->row[i][k]] = (float)turns_of(p, conformation, i, k);
    return TSR_OK;
}

tsr_status tsr_members_finish(tsr_members *members, tsr_err *err)
{
    tsr_members *p = members;
    p->n_padded = (p->n + BLOCK - 1) / BLOCK * BLOCK;
    const size_t n = (size_t)p->n_padded, n_torsion = (size_t)p->n_torsion;
    tsr_pool_array(&p->pool, p->by_row, n * n_torsion);
    TSR_TRY(tsr_allocated(p->by_row, err));
    for (size_t m = 0; m < (size_t)p->n; m++)
        for (size_t t = 0; t < n_torsion; t++)
            p->by_row[t * n + m] = p->torsion[m * n_torsion + t];
    return TSR_OK;
}

void tsr_members_apply(const tsr_members *members, int m,
                       const tsr_conformation *from, tsr_conformation *to)
{
    const tsr_members *p = members;
    const tsr_topology *t = p->topology;
    const float *torsion = tsr_members_torsion(p, m);
    tsr_proposal all = {.n_span = 1, .span = {{0, t->n_own, 0}}};
    tsr_conformation_copy(t, to, from, 0, t->n_residue);
    for (int l = 0; l < p->n_linker; l++)
        for (int i = p->linker[l].first; i <= p->linker[l].last; i++) {
            double change[1][2] = {{0.0, 0.0}};
            for (int k = 0; k < 2; k++)
                if (p->row[i][k] >= 0)
                    change[0][k] =
                        2.0 * TSR_PI *
                        ((double)torsion[p->row[i][k]] - turns_of(p, to, i, k));
            tsr_conformation_turn_many(t, to, i, i, p->linker[l].c_side,
                                       (const double(*)[2])change);
        }
    tsr_proposal_move_attached(t, from, to, &all);
}

/* ---- the density of proposals ---- */

typedef struct {
    const tsr_topology *topology;
    const tsr_prior *prior;
    tsr_pool_move_options options;
    double log_c[N_SCALE]; /* log density of a kernel at its centre, per rad */
    float *v;              /* [members] V */
} pool_state;

/* v[m] += 2 sin^2(pi (x - at[m])) for n members, a multiple of BLOCK; arguments
 * in turns within [-0.5, 0.5]. The sine is the Taylor series, whose relative
 * error is below 6e-8 in this range, and so is that of x - at of a near member,
 * since x has a second part. Blocks of constant length become vector
 * instructions. */
TSR_CLONES static void add_distances(int n, double x, const float *restrict at,
                                     float *restrict v)
{
    const float high = (float)x, low = (float)(x - (double)high);
    const float pi = (float)TSR_PI, c3 = 1.0f / 6.0f, c5 = 1.0f / 20.0f,
                c7 = 1.0f / 42.0f, c9 = 1.0f / 72.0f, c11 = 1.0f / 110.0f;
    for (; n > 0; n -= BLOCK, at += BLOCK, v += BLOCK)
        for (int m = 0; m < BLOCK; m++) {
            const float d = (high - at[m]) + low;
            const float z =
                pi * (d - (d > 0.5f ? 1.0f : 0.0f) + (d < -0.5f ? 1.0f : 0.0f));
            const float y = z * z;
            float sine = 1.0f - y * c9 * (1.0f - y * c11);
            sine = 1.0f - y * c5 * (1.0f - y * c7 * sine);
            sine = z * (1.0f - y * c3 * sine);
            v[m] += 2.0f * sine * sine;
        }
}

/* sum[s] = sum_m exp(-kappa_s (v[m] - least)) */
static void sum_kernels(int n, const float *v, float least, double *sum)
{
    for (int s = 0; s < N_SCALE; s++)
        sum[s] = 0.0;
    for (int m = 0; m < n; m++) {
        const double x = first_kappa * (double)(v[m] - least);
        double e = x < 40.0 ? exp(-x) : 0.0;
        for (int s = 0; s < N_SCALE && e > negligible; s++) {
            sum[s] += e;
            e = (e * e) * (e * e); /* RATIO is 4 */
        }
    }
}

/* log q of residues first..first+count-1. */
static double log_density(const pool_state *s, const tsr_conformation *c,
                          int first, int count)
{
    const tsr_members *p = s->options.members;
    const double w = s->options.prior;
    double part[N_SCALE + 1], sum[N_SCALE], all = 0.0;
    float least = HUGE_VALF;
    int n = 0;
    part[N_SCALE] = log(w);
    memset(s->v, 0, (size_t)p->n_padded * sizeof *s->v);
    for (int i = first; i < first + count; i++) {
        part[N_SCALE] += tsr_prior_torsion_log_of(s->prior, c, i);
        for (int k = 0; k < 2; k++) {
            if (p->row[i][k] < 0)
                continue;
            add_distances(
                p->n_padded, turns_of(p, c, i, k),
                p->by_row + (size_t)p->row[i][k] * (size_t)p->n_padded, s->v);
            n++;
        }
    }
    for (int m = 0; m < p->n; m++)
        least = s->v[m] < least ? s->v[m] : least;
    sum_kernels(p->n, s->v, least, sum);
    double kappa = first_kappa, top = part[N_SCALE];
    for (int k = 0; k < N_SCALE; k++, kappa *= RATIO) {
        part[k] = log((1.0 - w) / N_SCALE * sum[k] / p->n) + n * s->log_c[k] -
                  kappa * (double)least;
        top = fmax(top, part[k]);
    }
    for (int k = 0; k <= N_SCALE; k++)
        all += exp(part[k] - top);
    return top + log(all);
}

/* ---- the move ---- */

static int pool_targets(const void *options, const tsr_topology *topology)
{
    const tsr_pool_move_options *o = options;
    (void)topology;
    return o->members == NULL ? 0 : o->members->n_linker;
}

static void *pool_new(tsr_pool *pool, const void *options,
                      const tsr_topology *topology, const tsr_prior *prior)
{
    pool_state *s = tsr_pool_new(pool, 1, sizeof *s);
    if (s == NULL)
        return NULL;
    s->topology = topology;
    s->prior = prior;
    s->options = *(const tsr_pool_move_options *)options;
    double kappa = first_kappa;
    for (int k = 0; k < N_SCALE; k++, kappa *= RATIO)
        s->log_c[k] = -log(2.0 * TSR_PI) - tsr_von_mises_log_i0(kappa);
    tsr_pool_array(pool, s->v, s->options.members->n_padded);
    return pool->failed ? NULL : s;
}

/* The residues of a stretch that begins at residue `first` of a linker. */
static int stretch_count(const pool_state *s, const tsr_linker *l)
{
    const long length = l->last - l->first + 1;
    return (int)(length < s->options.residues ? length : s->options.residues);
}

/* Draws the torsions of a stretch from q, rad. */
static void draw_torsions(const pool_state *s, int first, int count,
                          gsl_rng *rng, double (*torsion)[2])
{
    const tsr_members *p = s->options.members;
    const int is_prior = gsl_rng_uniform(rng) < s->options.prior;
    const float *at = tsr_members_torsion(
        p, (int)gsl_rng_uniform_int(rng, (unsigned long)p->n));
    const double kappa =
        first_kappa * pow(RATIO, (double)gsl_rng_uniform_int(rng, N_SCALE));
    for (int i = first; i < first + count; i++) {
        double *to = torsion[i - first];
        if (is_prior)
            tsr_prior_torsion_draw(s->prior, i, rng, &to[0], &to[1]);
        for (int k = 0; k < 2 && !is_prior; k++)
            if (p->row[i][k] >= 0)
                to[k] = 2.0 * TSR_PI * (double)at[p->row[i][k]] +
                        tsr_von_mises_draw_angle(rng, kappa);
    }
}

/* proposal->target: first residue of the stretch. */
static double pool_log_ratio(const void *state, const tsr_conformation *current,
                             const tsr_conformation *proposed,
                             const tsr_proposal *proposal)
{
    const pool_state *s = state;
    const tsr_linker *l = s->options.members->linker;
    const int first = proposal->target;
    while (l->last < first)
        l++;
    const int count = stretch_count(s, l);
    return log_density(s, current, first, count) -
           log_density(s, proposed, first, count);
}

static void pool_propose(void *state, const tsr_conformation *current,
                         tsr_conformation *proposed, gsl_rng *rng,
                         tsr_proposal *proposal)
{
    const pool_state *s = state;
    const tsr_members *p = s->options.members;
    const tsr_linker *l =
        &p->linker[gsl_rng_uniform_int(rng, (unsigned long)p->n_linker)];
    const int count = stretch_count(s, l);
    const int first =
        l->first + (int)gsl_rng_uniform_int(
                       rng, (unsigned long)(l->last - l->first - count + 2));
    double torsion[TSR_MAX_STRETCH][2] = {{0.0}};
    draw_torsions(s, first, count, rng, torsion);
    tsr_move_set_torsions(s->topology, current, proposed, first, count,
                          l->c_side, (const double(*)[2])torsion, proposal);
    proposal->target = first;
    proposal->log_ratio = pool_log_ratio(s, current, proposed, proposal);
}

const tsr_move_type tsr_move_pool = {
    .name = "pool",
    .doc = "draws all torsions of a linker near those of a member of "
           "structure.pool",
    .source = "Tierney 1994 (independence sampler)",
    .options_size = sizeof(tsr_pool_move_options),
    .fields = fields,
    .only_torsions = 1,
    .state_new = pool_new,
    .n_target = pool_targets,
    .propose = pool_propose,
    .log_ratio = pool_log_ratio};
