/* c1 and c2 proposed together with the structure.
 *
 * Given the structure a curve fixes excluded volume and hydration to a small
 * part of what it leaves open over all structures (lar: 0.06 of 0.32). A chain
 * that moves one while the other stays has to follow that narrow ridge, so c1
 * and c2 are drawn anew with every proposal, from a density close to their
 * conditional at the proposed structure; the ratio of these densities goes into
 * the acceptance, which then is nearly that with c1 and c2 integrated out.
 *
 * The density is normal, cut to their ranges: a parabola through the tempered
 * log posterior at places that do not depend on the present values. What else
 * the likelihood depends on (the noise) is held at its mean over warm-up, since
 * the density may depend on the structure and on what warm-up learnt, and on
 * nothing that moves between two proposals. The partial profiles make each
 * place a matter of the host alone. */
#include "sampler/chain_state.h"

#include <gsl/gsl_cdf.h>
#include <gsl/gsl_randist.h>
#include <math.h>
#include <string.h>

/* The parameters that are inferred, of c1 and c2. Returns how many. */
static int list(const tsr_chain *c, int which[TSR_N_CONTRAST])
{
    const tsr_parameters *p = c->parameters;
    int n = 0;
    for (int i = 0; i < TSR_N_CONTRAST; i++)
        if (p->table[p->contrast + i].infer)
            which[n++] = p->contrast + i;
    return n;
}

/* The log posterior at power beta, as far as c1 and c2 change it. Their priors
 * are taken without the cut. NaN: the likelihood cannot be had there. */
static double log_at(tsr_chain *c, int n, const int *which, int state,
                     const double *partial, const double *value)
{
    double sum = 0.0;
    for (int i = 0; i < n; i++) {
        const tsr_parameter *p = &c->parameters->table[which[i]];
        const double z = (value[i] - p->mean) / p->width;
        c->probe.theta[which[i]] = value[i];
        sum -= 0.5 * z * z;
    }
    return tsr_chain_probe(c, state, partial, &c->probe) == TSR_OK
               ? sum + c->beta * c->probe.log_lik
               : (double)NAN;
}

/* The parabola's gradient g and minus its second derivatives h about `at`. 0:
 * it has no maximum. */
static int differentiate(tsr_chain *c, int n, const int *which, int state,
                         const double *partial, const double *at,
                         const double *step, double g[TSR_N_CONTRAST],
                         double h[TSR_N_CONTRAST][TSR_N_CONTRAST])
{
    double up[TSR_N_CONTRAST] = {0.0}, x[TSR_N_CONTRAST];
    memcpy(x, at, sizeof x);
    const double middle = log_at(c, n, which, state, partial, x);
    h[0][1] = h[1][0] = 0.0;
    for (int i = 0; i < n; i++) {
        x[i] = at[i] + step[i];
        up[i] = log_at(c, n, which, state, partial, x);
        x[i] = at[i] - step[i];
        const double down = log_at(c, n, which, state, partial, x);
        x[i] = at[i];
        g[i] = (up[i] - down) / (2.0 * step[i]);
        h[i][i] = (2.0 * middle - up[i] - down) / (step[i] * step[i]);
    }
    if (n == 2) {
        x[0] += step[0], x[1] += step[1];
        const double both = log_at(c, n, which, state, partial, x);
        h[0][1] = h[1][0] =
            -(both - up[0] - up[1] + middle) / (step[0] * step[1]);
    }
    const double least = 1e-4;
    return n == 1 ? h[0][0] > 0.0
                  : h[0][0] > 0.0 && h[1][1] > 0.0 &&
                        h[0][0] * h[1][1] - h[0][1] * h[0][1] >
                            least * h[0][0] * h[1][1];
}

static double clamp(double x, const tsr_parameter *p)
{
    return fmin(fmax(x, p->low), p->high);
}

void tsr_chain_contrast_find(tsr_chain *chain, int state, const double *partial,
                             const double *theta, tsr_contrast_density *out)
{
    tsr_chain *c = chain;
    const tsr_parameters *p = c->parameters;
    const double wider = 1.15; /* tails must not be thinner than the target's */
    int which[TSR_N_CONTRAST];
    double at[TSR_N_CONTRAST] = {0.0}, step[TSR_N_CONTRAST] = {0.0};
    double g[TSR_N_CONTRAST] = {0.0};
    double h[TSR_N_CONTRAST][TSR_N_CONTRAST] = {{0.0}};
    const int n = list(c, which);
    memcpy(c->probe.theta, theta, (size_t)p->n * sizeof *theta);
    memcpy(c->probe.theta, p->learnt.centre,
           (size_t)c->target->likelihood->n_parameter * sizeof *theta);
    for (int i = 0; i < n; i++) {
        at[i] = p->learnt.centre[which[i]];
        step[i] = tsr_parameters_spread(p, which[i] - p->contrast);
    }
    if (!differentiate(c, n, which, state, partial, at, step, g, h)) {
        for (int i = 0; i < n; i++) { /* the prior's */
            const tsr_parameter *prior = &p->table[which[i]];
            h[i][i] = 1.0 / (prior->width * prior->width);
            g[i] = h[i][i] * (prior->mean - at[i]);
        }
        h[0][1] = h[1][0] = 0.0;
    }
    const double det = n == 1 ? h[0][0] : h[0][0] * h[1][1] - h[0][1] * h[0][1];
    out->n = n;
    out->slope = 0.0;
    if (n == 1) {
        out->mean[0] = at[0] + g[0] / h[0][0];
        out->sd[0] = wider / sqrt(h[0][0]);
    } else {
        out->mean[0] = at[0] + (h[1][1] * g[0] - h[0][1] * g[1]) / det;
        out->mean[1] = at[1] + (h[0][0] * g[1] - h[0][1] * g[0]) / det;
        out->sd[0] = wider * sqrt(h[1][1] / det);
        out->sd[1] = wider / sqrt(h[1][1]);
        out->slope = -h[0][1] / h[1][1];
    }
    for (int i = 0; i < n; i++) {
        out->place[i] = which[i];
        out->mean[i] = clamp(out->mean[i], &p->table[which[i]]);
    }
}

/* Of the i-th, given the value of the one before it. */
static double mean_of(const tsr_contrast_density *d, int i, const double *theta)
{
    return i == 0 ? d->mean[0]
                  : d->mean[1] + d->slope * (theta[d->place[0]] - d->mean[0]);
}

/* Shares of the normal density below low and below high. */
static void cut(const tsr_parameter *p, double mean, double sd, double *low,
                double *high)
{
    *low = gsl_cdf_ugaussian_P((p->low - mean) / sd);
    *high = gsl_cdf_ugaussian_P((p->high - mean) / sd);
}

int tsr_chain_contrast_draw(tsr_chain *chain, const tsr_contrast_density *d,
                            double *theta)
{
    for (int i = 0; i < d->n; i++) {
        const tsr_parameter *p = &chain->parameters->table[d->place[i]];
        const double mean = mean_of(d, i, theta);
        double low, high;
        cut(p, mean, d->sd[i], &low, &high);
        const double u = gsl_rng_uniform_pos(chain->rng);
        const double x =
            mean + d->sd[i] * gsl_cdf_ugaussian_Pinv(low + (high - low) * u);
        if (!(x >= p->low && x <= p->high))
            return 0;
        theta[d->place[i]] = x;
    }
    return 1;
}

double tsr_chain_contrast_log_density(const tsr_chain *chain,
                                      const tsr_contrast_density *d,
                                      const double *theta)
{
    double sum = 0.0;
    for (int i = 0; i < d->n; i++) {
        const tsr_parameter *p = &chain->parameters->table[d->place[i]];
        const double mean = mean_of(d, i, theta);
        const double z = (theta[d->place[i]] - mean) / d->sd[i];
        double low, high;
        cut(p, mean, d->sd[i], &low, &high);
        sum -= 0.5 * z * z + log(d->sd[i]) + log(high - low);
    }
    return sum;
}
