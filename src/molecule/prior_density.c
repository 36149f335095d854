/* Evaluates and samples mixtures. Moves need densities in every step, so that
 * all terms independent of the coordinates are computed in advance. */
#include "molecule/prior_density.h"
#include "core/vec3.h"

#include <gsl/gsl_randist.h>
#include <gsl/gsl_sf_bessel.h>
#include <math.h>
#include <stdlib.h>

/* ---- any mixture ---- */

/* log(sum exp(x)), with the largest element factored out. Terms below 1e-17 of
 * the largest are skipped. */
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

/* Draws an index of n components. cumulative [n]: cumulative weights. */
static int draw_component(gsl_rng *rng, int n, const double *cumulative)
{
    double u = gsl_rng_uniform(rng) * cumulative[n - 1];
    int i = 0;
    while (i < n - 1 && u >= cumulative[i])
        i++;
    return i;
}

/* ---- torsions ----
 *
 * The log density of a component is linear in nine products of cosines and
 * sines. */

/* The normalisation is the series of Singh, Hnizdo & Demchuk 2002, with terms
 * t_m. The Bessel functions are scaled by 1 = e^-k (I_0 + 2 I_1 + 2 I_2 + ...).
 * Both sums are computed from their far end by Horner's rule, and need only the
 * ratios
 *
 *   R_m(k) = I_m(k) / I_{m-1}(k) = k / (2m + k R_{m+1}(k))
 *   t_m / t_{m-1} = (2m - 1) / 2m  lambda^2 / (k1 k2)  R_m(k1) R_m(k2)
 *
 * which neither overflow nor cancel, because every term is positive. I_m(k) /
 * I_0(k) falls as exp(-m^2 / 2k), and is below 1e-18 where the sums begin. */
double tsr_von_mises_moments(double k_phi, double k_psi, double lambda,
                             double moment[3])
{
    double larger = k_phi > k_psi ? k_phi : k_psi;
    int last = 30 + (int)(9.2 * sqrt(larger));
    double r1 = 0.0, r2 = 0.0; /* R_{m+1} */
    double one1 = 1.0, one2 = 1.0;
    double s = 1.0, v = 0.0, c1 = 0.0, c2 = 0.0;
    for (int m = last; m >= 1; m--) {
        double below1 = 1.0 / (2.0 * m + k_phi * r1);
        double below2 = 1.0 / (2.0 * m + k_psi * r2);
        double q =
            (2.0 * m - 1.0) / (2.0 * m) * lambda * lambda * below1 * below2;
        double up1 = r1, up2 = r2;
        r1 = k_phi * below1, r2 = k_psi * below2;
        /* from sums over j >= m in units of t_m to sums over j >= m - 1 */
        c1 = q * (c1 + up1);
        c2 = q * (c2 + up2);
        v = q * (v + s);
        s = 1.0 + q * s;
        one1 = 1.0 + r1 * one1;
        one2 = 1.0 + r2 * one2;
    }
    if (moment != NULL) {
        moment[0] = (c1 + r1) / s;
        moment[1] = (c2 + r2) / s;
        moment[2] = lambda != 0.0 ? 2.0 * v / (lambda * s) : 0.0;
    }
    /* one = 1 + R_1 + R_1 R_2 + ...; I_0 + 2 (I_1 + ...) = I_0 (2 one - 1) */
    return log(4.0 * TSR_PI * TSR_PI * s) - log(2.0 * one1 - 1.0) -
           log(2.0 * one2 - 1.0);
}

void tsr_von_mises_terms(const tsr_von_mises *p,
                         double term[TSR_VON_MISES_TERM])
{
    double cm = cos(p->phi), sm = sin(p->phi);
    double cn = cos(p->psi), sn = sin(p->psi);
    term[0] = log(p->weight) -
              tsr_von_mises_moments(p->k_phi, p->k_psi, p->lambda, NULL) -
              p->k_phi - p->k_psi;
    term[1] = p->k_phi * cm;
    term[2] = p->k_phi * sm;
    term[3] = p->k_psi * cn;
    term[4] = p->k_psi * sn;
    term[5] = p->lambda * sm * sn;
    term[6] = -p->lambda * sm * cn;
    term[7] = -p->lambda * cm * sn;
    term[8] = p->lambda * cm * cn;
}

double tsr_von_mises_log_i0(double x)
{
    return log(gsl_sf_bessel_I0_scaled(x));
}

double tsr_von_mises_wrap(double angle_rad)
{
    double x =
        angle_rad - 2.0 * TSR_PI * floor((angle_rad + TSR_PI) / (2 * TSR_PI));
    /* rounding may leave the angle outside */
    if (x >= TSR_PI)
        x -= 2.0 * TSR_PI;
    return x < -TSR_PI ? -TSR_PI : x;
}

/* Rejection sampling from a wrapped Cauchy distribution (Best & Fisher 1979).
 * That method divides by kappa, so for small kappa proposals are uniform. */
double tsr_von_mises_draw_angle(gsl_rng *rng, double kappa)
{
    if (kappa < 0.5) {
        double x;
        do
            x = TSR_PI * (2.0 * gsl_rng_uniform(rng) - 1.0);
        while (log(gsl_rng_uniform_pos(rng)) > kappa * (cos(x) - 1.0));
        return x;
    }
    double tau = 1.0 + sqrt(1.0 + 4.0 * kappa * kappa);
    double rho = (tau - sqrt(2.0 * tau)) / (2.0 * kappa);
    double r = (1.0 + rho * rho) / (2.0 * rho);
    for (;;) {
        double z = cos(TSR_PI * gsl_rng_uniform(rng));
        double f = (1.0 + r * z) / (r + z);
        double c = kappa * (r - f);
        double u = gsl_rng_uniform_pos(rng);
        if (c * (2.0 - c) > u || log(c / u) + 1.0 >= c) {
            double x = acos(fmax(-1.0, fmin(1.0, f)));
            return gsl_rng_uniform(rng) < 0.5 ? -x : x;
        }
    }
}

/* Draws y = psi - nu by rejection from its marginal density
 *
 *   exp(k2 cos y) I0(a(y)),  a^2 = k1^2 + lambda^2 sin^2 y.
 *
 * log I0(sqrt u) is concave in u, and therefore lies below its tangent at k1^2:
 *
 *   log I0(a) <= log I0(k1) + b sin^2 y,  b = lambda^2 A(k1) / 2 k1 <= k2 / 2
 *
 * with A = I1 / I0. With s = sin^2(y / 2), sin^2 y = 4 s - 4 s^2, and s^2 lies
 * above its tangent at any t >= 0, s^2 >= 2 s t - t^2:
 *
 *   k2 cos y + b sin^2 y <= k2 + 4 b t^2 - 2 (k2 - 2 b + 4 b t) s
 *
 * The bound is a von Mises density of concentration k2 - 2b + 4bt. With t near
 * the mean of s, half of the proposals or more are accepted. */
static double draw_psi_offset(const tsr_von_mises *part, gsl_rng *rng)
{
    double k1 = part->k_phi, k2 = part->k_psi, l = part->lambda;
    if (k1 == 0.0 || l == 0.0)
        return tsr_von_mises_draw_angle(rng, k2);
    double log_i0 = tsr_von_mises_log_i0(k1);
    double a = gsl_sf_bessel_I1_scaled(k1) / gsl_sf_bessel_I0_scaled(k1);
    double b = 0.5 * l * l * a / k1;
    double k = fmax(k2 - 2.0 * b, 0.0);
    double t = fmin(0.5, 0.5 / (k + sqrt(k * k + 4.0 * b)));
    for (;;) {
        double y = tsr_von_mises_draw_angle(rng, k + 4.0 * b * t);
        double sine = l * sin(y), half = sin(0.5 * y);
        double at = hypot(k1, sine), d = half * half - t;
        /* a - k1 without cancellation */
        double over = sine * sine / (at + k1);
        double accept = tsr_von_mises_log_i0(at) - log_i0 + over -
                        b * sine * sine / (l * l) - 4.0 * b * d * d;
        if (log(gsl_rng_uniform_pos(rng)) <= accept)
            return y;
    }
}

/* Draws both torsions of a component exactly, rad, each in [-pi, pi). The
 * density of phi given psi is von Mises (Singh et al. 2002). */
static void draw_part(const tsr_von_mises *part, gsl_rng *rng, double *phi_rad,
                      double *psi_rad)
{
    double y = draw_psi_offset(part, rng), sine = part->lambda * sin(y);
    double x = tsr_von_mises_draw_angle(rng, hypot(part->k_phi, sine));
    *phi_rad = tsr_von_mises_wrap(part->phi + x + atan2(sine, part->k_phi));
    *psi_rad = tsr_von_mises_wrap(part->psi + y);
}

struct tsr_torsion_density {
    int n;
    double term[TSR_MAX_VON_MISES][TSR_VON_MISES_TERM];
    double log_scale[TSR_MAX_VON_MISES];  /* log(weight C) + k_phi + k_psi */
    double cumulative[TSR_MAX_VON_MISES]; /* cumulative weights */
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
        density->cumulative[at] = sum;
    }
    return density;
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

/* Marginal density of one torsion: 2 pi C exp(k cos x) I0(a), where k belongs
 * to this torsion, x is its distance from the component's mean, and
 * a^2 = other^2 + lambda^2 sin^2 x. */
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
        e[i] = density->log_scale[i] + log(2.0 * TSR_PI) -
               2.0 * k * half * half + over + tsr_von_mises_log_i0(a);
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
    const int i = draw_component(rng, density->n, density->cumulative);
    draw_part(&density->part[i], rng, phi_rad, psi_rad);
}

void tsr_torsion_density_cells(const tsr_torsion_density *density, int side,
                               uint32_t *cumulative)
{
    const double anywhere = 0.05, width_rad = 2.0 * TSR_PI / side;
    const int n = side * side;
    double sum = 0.0, seen = 0.0;
    for (int pass = 0; pass < 2; pass++)
        for (int k = 0; k < n; k++) {
            const int row = k / side, column = k % side;
            const double phi = (row + 0.5) * width_rad - TSR_PI;
            const double psi = (column + 0.5) * width_rad - TSR_PI;
            const double own = exp(tsr_torsion_density_log(density, phi, psi));
            if (pass == 0) {
                sum += own;
                continue;
            }
            seen += (1.0 - anywhere) * own / fmax(sum, 1e-300) + anywhere / n;
            cumulative[k] = k + 1 < n ? (uint32_t)(seen * 0x1p32) : UINT32_MAX;
        }
}

/* ---- side-chain centres ---- */

/* cov = L L^T, for draws. W = L^-1, for densities: z = W (x - mean) has unit
 * variance. */
typedef struct {
    double log_scale; /* log(weight / sqrt((2 pi)^3 det cov)) */
    double mean[3];
    double l[6], w[6]; /* elements 00 10 11 20 21 22 */
} gaussian;

struct tsr_side_density {
    int n;
    double cumulative[TSR_MAX_SIDE_GAUSSIAN]; /* cumulative weights */
    gaussian part[TSR_MAX_SIDE_GAUSSIAN];
};

static void prepare_gaussian(gaussian *g, const tsr_side_gaussian *from)
{
    const double(*c)[3] = from->cov;
    double *l = g->l, *w = g->w;
    for (int i = 0; i < 3; i++)
        g->mean[i] = from->mean[i];
    l[0] = sqrt(c[0][0]);
    l[1] = c[1][0] / l[0];
    l[2] = sqrt(c[1][1] - l[1] * l[1]);
    l[3] = c[2][0] / l[0];
    l[4] = (c[2][1] - l[3] * l[1]) / l[2];
    l[5] = sqrt(c[2][2] - l[3] * l[3] - l[4] * l[4]);
    w[0] = 1.0 / l[0];
    w[2] = 1.0 / l[2];
    w[5] = 1.0 / l[5];
    w[1] = -l[1] * w[0] * w[2];
    w[4] = -l[4] * w[2] * w[5];
    w[3] = -(l[3] * w[0] + l[4] * w[1]) * w[5];
    g->log_scale = log(from->weight) - 1.5 * log(2.0 * TSR_PI) -
                   log(l[0] * l[2]) - log(l[5]);
}

tsr_side_density *tsr_side_density_new(const tsr_side_mixture *mixture)
{
    tsr_side_density *density = calloc(1, sizeof *density);
    if (density == NULL)
        return NULL;
    double sum = 0.0;
    for (int i = 0; i < mixture->n; i++) {
        if (mixture->part[i].weight <= 0.0)
            continue;
        prepare_gaussian(&density->part[density->n], &mixture->part[i]);
        sum += mixture->part[i].weight;
        density->cumulative[density->n++] = sum;
    }
    return density;
}

double tsr_side_density_log(const tsr_side_density *density,
                            const double side[3])
{
    double e[TSR_MAX_SIDE_GAUSSIAN], largest = -HUGE_VAL;
    for (int i = 0; i < density->n; i++) {
        const gaussian *g = &density->part[i];
        double x = side[0] - g->mean[0], y = side[1] - g->mean[1];
        double z = side[2] - g->mean[2];
        double a = g->w[0] * x, b = g->w[1] * x + g->w[2] * y;
        double c = g->w[3] * x + g->w[4] * y + g->w[5] * z;
        e[i] = g->log_scale - 0.5 * (a * a + b * b + c * c);
        if (e[i] > largest)
            largest = e[i];
    }
    return log_sum(density->n, e, largest);
}

void tsr_side_density_draw(const tsr_side_density *density, gsl_rng *rng,
                           double side[3])
{
    const int i = draw_component(rng, density->n, density->cumulative);
    const gaussian *g = &density->part[i];
    double z[3];
    for (int d = 0; d < 3; d++)
        z[d] = gsl_ran_gaussian(rng, 1.0);
    side[0] = g->mean[0] + g->l[0] * z[0];
    side[1] = g->mean[1] + g->l[1] * z[0] + g->l[2] * z[1];
    side[2] = g->mean[2] + g->l[3] * z[0] + g->l[4] * z[1] + g->l[5] * z[2];
}
