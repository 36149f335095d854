/* Closures of three pivots weighed by the prior and by how near they are, and
 * one of them chosen; the way back finds the same list. */
#include "moves/closure_choice.h"

#include "core/vec3.h"

#include <math.h>

/* A closure with D below this, Angstrom^3, is left out. */
static const double log_least_det = -5.0;
/* Atoms of the closure that a conformation has come back within this,
 * Angstrom. */
static const double rounding_ang = 1e-6;

int tsr_can_pivot(const tsr_residue *residue)
{
    return residue->flexible && residue->amino != TSR_PRO && residue->has_phi &&
           residue->has_psi && residue->link == TSR_LINK_NONE;
}

static tsr_circle torsion_circle(const double a[3], const double b[3],
                                 const double c[3], const double d[3])
{
    double x, y;
    tsr_vec3_torsion_xy(a, b, c, d, &x, &y);
    double f = 1.0 / sqrt(x * x + y * y);
    return (tsr_circle){f * x, f * y};
}

static void moved_atom(double out[3], const tsr_motion *m, const double x[3])
{
    tsr_vec3_copy(out, x);
    tsr_motion_apply(m, out);
}

/* Torsions, prior and weight; 0 where it is all but singular. */
static int weigh(const tsr_prior *prior, const tsr_pivots *w,
                 const tsr_conformation *pieces, const tsr_conformation *before,
                 const tsr_conformation *after, tsr_closed *k)
{
    double(*a)[3] = before->backbone[w->a], (*c)[3] = after->backbone[w->c];
    double(*x)[3] = k->x, next[3], before_b[3], after_b[3], before_c[3];
    const tsr_motion *one = &k->motion.piece1, *two = &k->motion.piece2;
    moved_atom(next, one, pieces->backbone[w->a + 1][TSR_N]);
    moved_atom(before_b, one, pieces->backbone[w->b - 1][TSR_C]);
    moved_atom(after_b, two, pieces->backbone[w->b + 1][TSR_N]);
    moved_atom(before_c, two, pieces->backbone[w->c - 1][TSR_C]);
    double axis[6][2][3];
    const double *ends[6][2] = {{a[TSR_N], a[TSR_CA]}, {a[TSR_CA], x[0]},
                                {x[1], x[2]},          {x[2], x[3]},
                                {x[4], c[TSR_CA]},     {c[TSR_CA], c[TSR_C]}};
    for (int i = 0; i < 6; i++)
        for (int e = 0; e < 2; e++)
            tsr_vec3_copy(axis[i][e], ends[i][e]);
    double log_det = tsr_closure_log_det(axis);
    if (!(log_det > log_least_det))
        return 0;
    tsr_circle *t = k->torsion;
    t[0] = torsion_circle(before->backbone[w->a - 1][TSR_C], a[TSR_N],
                          a[TSR_CA], x[0]);
    t[1] = torsion_circle(a[TSR_N], a[TSR_CA], x[0], next);
    t[2] = torsion_circle(before_b, x[1], x[2], x[3]);
    t[3] = torsion_circle(x[1], x[2], x[3], after_b);
    t[4] = torsion_circle(before_c, x[4], c[TSR_CA], c[TSR_C]);
    t[5] = torsion_circle(x[4], c[TSR_CA], c[TSR_C],
                          after->backbone[w->c + 1][TSR_N]);
    const int pivot[3] = {w->a, w->b, w->c};
    k->log_f = 0.0;
    for (int i = 0; i < 3; i++) {
        const double phi[2] = {t[2 * i].c, t[2 * i].s};
        const double psi[2] = {t[2 * i + 1].c, t[2 * i + 1].s};
        k->log_f += tsr_prior_torsion_log(prior, pivot[i], phi, psi);
    }
    k->log_weight = k->log_f - log_det;
    return isfinite(k->log_weight);
}

void tsr_closures_find(const tsr_prior *prior, const tsr_pivots *pivots,
                       const tsr_conformation *pieces,
                       const tsr_conformation *before,
                       const tsr_conformation *after, tsr_closures *closures)
{
    const tsr_pivots *w = pivots;
    double(*a)[3] = pieces->backbone[w->a], (*b)[3] = pieces->backbone[w->b];
    double(*c)[3] = pieces->backbone[w->c];
    const double *from[8] = {a[TSR_CA], a[TSR_C], b[TSR_N], b[TSR_CA],
                             b[TSR_CA], b[TSR_C], c[TSR_N], c[TSR_CA]};
    tsr_closure q;
    tsr_closure_solution solution[TSR_MAX_CLOSURE];
    tsr_vec3_copy(q.n_a, before->backbone[w->a][TSR_N]);
    tsr_vec3_copy(q.ca_a, before->backbone[w->a][TSR_CA]);
    tsr_vec3_copy(q.ca_c, after->backbone[w->c][TSR_CA]);
    tsr_vec3_copy(q.c_c, after->backbone[w->c][TSR_C]);
    for (int i = 0; i < 4; i++) {
        tsr_vec3_copy(q.piece1[i], from[i]);
        tsr_vec3_copy(q.piece2[i], from[4 + i]);
    }
    q.angle[0] = tsr_vec3_angle(a[TSR_N], a[TSR_CA], a[TSR_C]);
    q.angle[1] = tsr_vec3_angle(b[TSR_N], b[TSR_CA], b[TSR_C]);
    q.angle[2] = tsr_vec3_angle(c[TSR_N], c[TSR_CA], c[TSR_C]);
    int n = tsr_closure_solve(&q, solution);
    closures->n = 0;
    for (int i = 0; i < n; i++) {
        tsr_closed *k = &closures->at[closures->n];
        k->motion = solution[i];
        for (int e = 0; e < 5; e++)
            moved_atom(k->x[e], e < 3 ? &k->motion.piece1 : &k->motion.piece2,
                       from[e < 3 ? e + 1 : e + 2]);
        closures->n += weigh(prior, w, pieces, before, after, k);
    }
}

int tsr_closures_own(const tsr_closures *closures, const tsr_pivots *pivots,
                     const tsr_conformation *conformation)
{
    const double *x[5] = {conformation->backbone[pivots->a][TSR_C],
                          conformation->backbone[pivots->b][TSR_N],
                          conformation->backbone[pivots->b][TSR_CA],
                          conformation->backbone[pivots->b][TSR_C],
                          conformation->backbone[pivots->c][TSR_N]};
    double least = rounding_ang * rounding_ang;
    int own = -1;
    for (int i = 0; i < closures->n; i++) {
        double largest = 0.0;
        for (int e = 0; e < 5; e++)
            largest =
                fmax(largest, tsr_vec3_distance2(closures->at[i].x[e], x[e]));
        if (largest < least)
            least = largest, own = i;
    }
    return own;
}

double tsr_closures_log_z(const tsr_closures *closures, const tsr_closed *from,
                          double width_rad, double log_p[TSR_MAX_CLOSURE])
{
    double stiff = 1.0 / (width_rad * width_rad);
    double top = (double)-INFINITY, sum = 0.0;
    for (int i = 0; i < closures->n; i++) {
        double near = -6.0;
        for (int t = 0; t < 6; t++)
            near += closures->at[i].torsion[t].c * from->torsion[t].c +
                    closures->at[i].torsion[t].s * from->torsion[t].s;
        log_p[i] = closures->at[i].log_weight + stiff * near;
        top = fmax(top, log_p[i]);
    }
    for (int i = 0; i < closures->n; i++)
        sum += exp(log_p[i] - top);
    return top + log(sum);
}

int tsr_closures_choose(const tsr_closures *closures,
                        const double log_p[TSR_MAX_CLOSURE], double log_z,
                        gsl_rng *rng)
{
    double u = gsl_rng_uniform(rng);
    int k = 0;
    for (; k < closures->n - 1; k++) {
        u -= exp(log_p[k] - log_z);
        if (u < 0.0)
            break;
    }
    return k;
}

void tsr_closed_place(const tsr_closed *closed, const tsr_pivots *pivots,
                      const tsr_conformation *pieces, tsr_conformation *out)
{
    const tsr_motion *one = &closed->motion.piece1,
                     *two = &closed->motion.piece2;
    for (int i = pivots->a; i <= pivots->c; i++)
        for (int e = 0; e < 4; e++) {
            const double *x = pieces->backbone[i][e];
            int n_side = e == TSR_N || e == TSR_CA; /* what is before C */
            if ((i == pivots->a && n_side) || (i == pivots->c && e != TSR_N))
                continue;
            int first = i < pivots->b || (i == pivots->b && n_side);
            moved_atom(out->backbone[i][e], first ? one : two, x);
        }
}
