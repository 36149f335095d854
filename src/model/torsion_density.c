/* Densities of torsions. A step asks for them many times, so that all that does
 * not depend on the angles is worked out before, and a density is linear in
 * nine products of cosines and sines (von_mises.h). */
#include "model/torsion_density.h"
#include "model/von_mises.h"

#include <gsl/gsl_math.h>
#include <math.h>
#include <stdlib.h>

struct tsr_torsion_density {
    int n;
    double term[TSR_MAX_VON_MISES][TSR_VON_MISES_TERM];
    double log_scale[TSR_MAX_VON_MISES]; /* log(weight C) + k_phi + k_psi */
    double up_to[TSR_MAX_VON_MISES];     /* sum of weights */
    tsr_von_mises part[TSR_MAX_VON_MISES];
};

tsr_torsion_density *tsr_torsion_density_new(const tsr_torsion_mixture *mixture)
{
    tsr_torsion_density *density = calloc(1, sizeof *density);
    if (density == NULL)
        return NULL;
    double sum = 0.0;
    for (int i = 0; i < mixture->n; i++) {
        if (mixture->part[i].weight <= 0.0)
            continue;
        int at = density->n++;
        density->part[at] = mixture->part[i];
        const tsr_von_mises *p = &density->part[at];
        tsr_von_mises_terms(p, density->term[at]);
        density->log_scale[at] = density->term[at][0] + p->k_phi + p->k_psi;
        sum += mixture->part[i].weight;
        density->up_to[at] = sum;
    }
    return density;
}

void tsr_torsion_density_free(tsr_torsion_density *density)
{
    free(density);
}

/* The largest is taken out, so that the sum is at least 1. What is below 1e-17
 * of it is not worth an exponential. */
static double log_sum(int n, const double *x, double largest)
{
    double sum = 0.0;
    for (int i = 0; i < n; i++) {
        double d = x[i] - largest;
        if (!(d <= -40.0)) /* NaN stays NaN */
            sum += exp(d);
    }
    return largest + log(sum);
}

double tsr_torsion_density_log_at(const tsr_torsion_density *density,
                                  const double phi_cos_sin[2],
                                  const double psi_cos_sin[2])
{
    double x[TSR_MAX_VON_MISES], largest = -HUGE_VAL;
    double a = phi_cos_sin[0], b = phi_cos_sin[1];
    double c = psi_cos_sin[0], d = psi_cos_sin[1];
    double ac = a * c, ad = a * d, bc = b * c, bd = b * d;
    for (int i = 0; i < density->n; i++) {
        const double *t = density->term[i];
        x[i] = t[0] + t[1] * a + t[2] * b + t[3] * c + t[4] * d + t[5] * ac +
               t[6] * ad + t[7] * bc + t[8] * bd;
        if (x[i] > largest)
            largest = x[i];
    }
    return log_sum(density->n, x, largest);
}

double tsr_torsion_density_log(const tsr_torsion_density *density,
                               double phi_rad, double psi_rad)
{
    return tsr_torsion_density_log_at(density,
                                      (double[2]){cos(phi_rad), sin(phi_rad)},
                                      (double[2]){cos(psi_rad), sin(psi_rad)});
}

/* The other angle integrated out: 2 pi C exp(k cos x) I0(a), with k of this
 * angle, x its distance from the part's, and a^2 = other^2 + lambda^2 sin^2
 * x. */
static double log_marginal(const tsr_torsion_density *density, int is_phi,
                           double angle_rad)
{
    double e[TSR_MAX_VON_MISES], largest = -HUGE_VAL;
    for (int i = 0; i < density->n; i++) {
        const tsr_von_mises *p = &density->part[i];
        double k = is_phi ? p->k_phi : p->k_psi;
        double other = is_phi ? p->k_psi : p->k_phi;
        double x = angle_rad - (is_phi ? p->phi : p->psi);
        double sine = p->lambda * sin(x), half = sin(0.5 * x);
        double a = hypot(other, sine);
        double over = a > 0.0 ? sine * sine / (a + other) : 0.0;
        e[i] = density->log_scale[i] + log(2.0 * M_PI) - 2.0 * k * half * half +
               over + tsr_von_mises_log_i0(a);
        largest = fmax(largest, e[i]);
    }
    return log_sum(density->n, e, largest);
}

double tsr_torsion_density_log_phi(const tsr_torsion_density *density,
                                   double phi_rad)
{
    return log_marginal(density, 1, phi_rad);
}

double tsr_torsion_density_log_psi(const tsr_torsion_density *density,
                                   double psi_rad)
{
    return log_marginal(density, 0, psi_rad);
}

void tsr_torsion_density_draw(const tsr_torsion_density *density, gsl_rng *rng,
                              double *phi_rad, double *psi_rad)
{
    double u = gsl_rng_uniform(rng) * density->up_to[density->n - 1];
    int i = 0;
    while (i < density->n - 1 && u >= density->up_to[i])
        i++;
    tsr_von_mises_draw(&density->part[i], rng, phi_rad, psi_rad);
}
