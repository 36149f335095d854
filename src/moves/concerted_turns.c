/* Turns of a pre-rotation, drawn from a normal distribution that holds the end
 * of the stretch: by the Cholesky factor of its inverse covariance. */
#include "moves/concerted_turns.h"

#include "core/vec3.h"

#include <gsl/gsl_randist.h>
#include <math.h>

#define PI 3.14159265358979323846

void tsr_turns_set(tsr_turns *p, const tsr_window *w, const tsr_conformation *c,
                   double width, double kappa)
{
    double moved[TSR_MAX_TURN][9];
    double scale = 1.0 / (width * width);
    p->n = w->n_turn;
    p->log_det = 0.0;
    for (int i = 0; i < p->n; i++) {
        double(*x)[3] = c->backbone[w->turn[i].residue], u[3], r[3];
        int phi = w->turn[i].kind == TSR_PHI;
        const double *from = phi ? x[TSR_N] : x[TSR_CA];
        tsr_vec3_sub(u, phi ? x[TSR_CA] : x[TSR_C], from);
        tsr_vec3_normalize(u);
        for (int e = TSR_N; e <= TSR_C; e++) {
            tsr_vec3_sub(r, c->backbone[w->pivots.a][e], from);
            tsr_vec3_cross(moved[i] + 3 * e, u, r);
        }
    }
    for (int i = 0; i < p->n; i++) {
        for (int j = 0; j <= i; j++) {
            double sum = 0.0;
            for (int e = 0; e < 9; e++)
                sum += moved[i][e] * moved[j][e];
            sum = scale * (kappa * sum + (i == j ? 1.0 : 0.0));
            for (int k = 0; k < j; k++)
                sum -= p->f[i][k] * p->f[j][k];
            p->f[i][j] = i == j ? sqrt(sum) : sum / p->f[j][j];
        }
        p->log_det += log(p->f[i][i]);
    }
}

double tsr_turns_log(const tsr_turns *p, const double d[TSR_MAX_TURN])
{
    double sum = 0.0;
    for (int j = 0; j < p->n; j++) {
        double z = 0.0;
        for (int i = j; i < p->n; i++)
            z += p->f[i][j] * d[i];
        sum += z * z;
    }
    return p->log_det - 0.5 * sum;
}

int tsr_turns_draw(const tsr_turns *p, gsl_rng *rng, double d[TSR_MAX_TURN])
{
    int within = 1;
    for (int i = 0; i < p->n; i++)
        d[i] = gsl_ran_gaussian_ziggurat(rng, 1.0);
    for (int i = p->n - 1; i >= 0; i--) { /* F^T d = z */
        for (int k = i + 1; k < p->n; k++)
            d[i] -= p->f[k][i] * d[k];
        d[i] /= p->f[i][i];
        within &= fabs(d[i]) < PI;
    }
    return within;
}

void tsr_turns_apply(const tsr_window *w, const tsr_conformation *current,
                     const double d[TSR_MAX_TURN], tsr_conformation *out)
{
    tsr_motion all, one;
    int begun = 0, k = 0;
    for (int i = w->first; i <= w->pivots.a; i++) {
        double(*x)[3] = current->backbone[i], (*y)[3] = out->backbone[i];
        if (begun) {
            tsr_motion_apply(&all, y[TSR_N]);
            tsr_motion_apply(&all, y[TSR_CA]);
        }
        if (i == w->pivots.a)
            return;
        for (int kind = TSR_PHI; kind <= TSR_PSI; kind++) {
            if (k < w->n_turn && w->turn[k].residue == i &&
                w->turn[k].kind == (tsr_torsion_kind)kind) {
                int at = kind == TSR_PHI ? TSR_N : TSR_CA;
                tsr_motion_about(&one, x[at], x[at + 1], d[k++]);
                if (begun)
                    tsr_motion_compose(&all, &all, &one);
                else
                    all = one;
                begun = 1;
            }
            if (begun)
                tsr_motion_apply(&all, y[kind == TSR_PHI ? TSR_C : TSR_O]);
        }
    }
}
