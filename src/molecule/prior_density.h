/* Densities of the prior: mixtures for backbone torsions and side-chain
 * centres, with functions to evaluate and sample them.
 *
 * Torsions (phi, psi): bivariate von Mises distributions on the torus in the
 * sine model (Singh, Hnizdo & Demchuk 2002; Mardia, Taylor & Subramaniam 2007):
 *
 *   f(phi, psi) = C exp(k1 cos(phi - mu) + k2 cos(psi - nu)
 *                       + lambda sin(phi - mu) sin(psi - nu))
 *   1 / C = 4 pi^2 sum_m binom(2m, m) (lambda^2 / 4 k1 k2)^m I_m(k1) I_m(k2)
 *
 * Every density is normalised over [-pi, pi)^2. Side-chain centres: Gaussians
 * in the frame of N-CA-C (core/vec3.h, tsr_frame), Angstrom. */
#ifndef TSR_MOLECULE_PRIOR_DENSITY_H
#define TSR_MOLECULE_PRIOR_DENSITY_H

#include <gsl/gsl_rng.h>
#include <stdint.h>

/* ---- torsions ---- */

/* One bivariate von Mises distribution in a mixture. */
typedef struct {
    double weight;       /* weight in the mixture; weights sum to 1 */
    double phi, psi;     /* mu, nu, rad */
    double k_phi, k_psi; /* k1, k2 >= 0 */
    double lambda;       /* lambda^2 <= k1 k2: one maximum */
} tsr_von_mises;

enum { TSR_MAX_VON_MISES = 24 };

/* A mixture of bivariate von Mises distributions, as trained. */
typedef struct {
    long count; /* residues in the training set */
    int n;
    tsr_von_mises part[TSR_MAX_VON_MISES];
} tsr_torsion_mixture;

typedef struct tsr_torsion_density tsr_torsion_density;

/* Prepares a mixture, which is copied, for evaluation. Components of weight 0
 * are left out. The caller frees the result with free. NULL: out of memory. */
tsr_torsion_density *
tsr_torsion_density_new(const tsr_torsion_mixture *mixture);

/* Log density, nat, per rad^2. The second function has the arguments {cos, sin}
 * of each torsion; moves call it in every step (about 100 ns). */
double tsr_torsion_density_log(const tsr_torsion_density *density,
                               double phi_rad, double psi_rad);
double tsr_torsion_density_log_at(const tsr_torsion_density *density,
                                  const double phi_cos_sin[2],
                                  const double psi_cos_sin[2]);

/* Log marginal density of one torsion, nat, per rad, for residues at chain ends
 * that lack the other torsion. */
double tsr_torsion_density_log_phi(const tsr_torsion_density *density,
                                   double phi_rad);
double tsr_torsion_density_log_psi(const tsr_torsion_density *density,
                                   double psi_rad);

/* Draws both torsions exactly from the density; rad, each in [-pi, pi). */
void tsr_torsion_density_draw(const tsr_torsion_density *density, gsl_rng *rng,
                              double *phi_rad, double *psi_rad);

/* Computes a table for sampling on a device. The torus is divided into side x
 * side equal cells, from (-pi, -pi) on, psi fastest. cumulative [side * side]
 * out: cumulative probabilities times 2^32, so that a uniform 32-bit number u
 * selects the first cell with u < cumulative. A cell has the density at its
 * centre, mixed with 5 % of a uniform distribution. */
void tsr_torsion_density_cells(const tsr_torsion_density *density, int side,
                               uint32_t *cumulative);

/* ---- a single von Mises distribution ---- */

/* Returns log(1 / C) - k_phi - k_psi, which stays small where 1 / C overflows.
 * moment [3] out (may be NULL): the means of cos(phi - mu), cos(psi - nu) and
 * sin(phi - mu) sin(psi - nu), which are the derivatives of log(1 / C) by
 * k_phi, k_psi and lambda. Cost: 9.2 sqrt(k) + 30 terms, where k is the larger
 * of k_phi and k_psi. */
double tsr_von_mises_moments(double k_phi, double k_psi, double lambda,
                             double moment[3]);

/* The log density of a component, weight included, is a linear combination of
 * nine terms: 1, cos phi, sin phi, cos psi, sin psi, cos phi cos psi, cos phi
 * sin psi, sin phi cos psi, sin phi sin psi. term [9] out: the coefficients. */
enum { TSR_VON_MISES_TERM = 9 };
void tsr_von_mises_terms(const tsr_von_mises *part,
                         double term[TSR_VON_MISES_TERM]);

/* Returns log(I0(x)) - |x|. */
double tsr_von_mises_log_i0(double x);

/* Draws an angle exactly from a density proportional to exp(kappa cos x); rad,
 * in [-pi, pi]. */
double tsr_von_mises_draw_angle(gsl_rng *rng, double kappa);

/* Returns the angle, shifted by a multiple of 2 pi into [-pi, pi). */
double tsr_von_mises_wrap(double angle_rad);

/* ---- side-chain centres ---- */

/* One Gaussian in a mixture. */
typedef struct {
    double weight;    /* weight in the mixture; weights sum to 1 */
    double mean[3];   /* Angstrom */
    double cov[3][3]; /* covariance, Angstrom squared */
} tsr_side_gaussian;

enum { TSR_MAX_SIDE_GAUSSIAN = 12 };

/* A mixture of Gaussians, as trained. */
typedef struct {
    long count; /* side chains in the training set */
    int n;      /* 0: the residue has no side chain */
    tsr_side_gaussian part[TSR_MAX_SIDE_GAUSSIAN];
} tsr_side_mixture;

typedef struct tsr_side_density tsr_side_density;

/* Prepares a mixture for evaluation, as tsr_torsion_density_new. */
tsr_side_density *tsr_side_density_new(const tsr_side_mixture *mixture);

/* Log density, nat, per Angstrom^3, at a centre `side`, Angstrom. */
double tsr_side_density_log(const tsr_side_density *density,
                            const double side[3]);

/* Draws a centre exactly from the density. */
void tsr_side_density_draw(const tsr_side_density *density, gsl_rng *rng,
                           double side[3]);

#endif
