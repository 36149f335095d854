/* Near the M members, torsions x_t of n torsions in a row are drawn with
 * density
 *
 *     k(x) = 1 / (M S) sum_m sum_s prod_t K_s(x_t - x_tm)
 *
 * from von Mises kernels K_s of S concentrations kappa_s. The scales take the
 * place of one bandwidth, which would depend on the number of torsions and of
 * members. The kernels' product is c_s^n exp(-kappa_s V_m), where V_m = n -
 * sum_t (cos x_t cos x_tm + sin x_t sin x_tm). As each kappa_s is four times
 * the one before, one exponential per member serves all scales. */
#include "moves/members.h"

#include "molecule/prior_density.h"

#include <math.h>
#include <stdlib.h>

/* Widths 1 / sqrt(kappa) of 20, 10, 5 and 2.5 degrees: from the width of a
 * basin of the prior to a turn that moves a domain 25 Angstrom away by 1
 * Angstrom. */
enum { N_SCALE = 4 };
static const double kappa[N_SCALE] = {8.0, 32.0, 128.0, 512.0};

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

/* The first torsion of a stretch, and the number of its torsions. */
static int find_torsions(const tsr_members *p, int first, int count, int *n)
{
    const tsr_torsion *torsion = p->topology->torsion;
    int k = 0;
    while (k < p->n_torsion && torsion[k].residue < first)
        k++;
    *n = 0;
    while (k + *n < p->n_torsion && torsion[k + *n].residue < first + count)
        ++*n;
    return k;
}

void tsr_members_draw(const tsr_members *members, int first, int count,
                      gsl_rng *rng, double (*torsion_rad)[2])
{
    int n;
    const int k = find_torsions(members, first, count, &n);
    const tsr_torsion *torsion = members->topology->torsion + k;
    const double(*at)[2] = member(
        members, (int)gsl_rng_uniform_int(rng, (unsigned long)members->n), k);
    const double width = kappa[gsl_rng_uniform_int(rng, N_SCALE)];
    for (int t = 0; t < n; t++)
        torsion_rad[torsion[t].residue - first][torsion[t].kind] =
            atan2(at[t][1], at[t][0]) + tsr_von_mises_draw_angle(rng, width);
}

double tsr_members_log_density(const tsr_members *members,
                               const tsr_conformation *conformation, int first,
                               int count)
{
    const tsr_members *p = members;
    double turn[2 * TSR_MAX_STRETCH][2], scale[N_SCALE], sum = 0.0;
    int n;
    const int k = find_torsions(p, first, count, &n);
    for (int t = 0; t < n; t++) {
        const double x = value(p, conformation, k + t);
        turn[t][0] = cos(x), turn[t][1] = sin(x);
    }
    for (int s = 0; s < N_SCALE; s++)
        scale[s] =
            exp(-n * (log(2.0 * TSR_PI) + tsr_von_mises_log_i0(kappa[s])));
    for (int m = 0; m < p->n; m++) {
        const double(*at)[2] = member(p, m, k);
        double v = n;
        for (int t = 0; t < n; t++)
            v -= turn[t][0] * at[t][0] + turn[t][1] * at[t][1];
        double e = exp(-kappa[0] * v);
        for (int s = 0; s < N_SCALE && e > 1e-300; s++, e *= e * e * e)
            sum += scale[s] * e;
    }
    return log(sum / (N_SCALE * p->n));
}
