#include "sampler/nuisance.h"

#include "moves/move.h"
#include "sampler/contrast_axes.h"

#include <gsl/gsl_randist.h>
#include <math.h>
#include <stdlib.h>

enum { N = TSR_NOISE_PARAMETERS };

/* c1 and c2 have the place of one data set more. */
_Static_assert((int)TSR_N_CONTRAST <= (int)N, "room for c1 and c2");

struct tsr_nuisance {
    const tsr_likelihood *likelihood;
    const tsr_contrast_prior *contrast; /* [TSR_N_CONTRAST] or NULL */
    int n_data;
    double *theta, *log_step; /* [n_data + 1][N] and the steps' sizes */
    long n_learnt;
    tsr_contrast_axes axes; /* of the steps on c1 and c2 */
    tsr_nuisance_counts counts;
};

void tsr_nuisance_free(tsr_nuisance *nuisance)
{
    if (nuisance == NULL)
        return;
    free(nuisance->theta);
    free(nuisance->log_step);
    free(nuisance);
}

tsr_nuisance *tsr_nuisance_new(const tsr_likelihood *likelihood,
                               const tsr_contrast_prior *contrast)
{
    tsr_nuisance *n = calloc(1, sizeof *n);
    if (n == NULL)
        return NULL;
    n->likelihood = likelihood;
    n->contrast = contrast;
    n->n_data = likelihood == NULL ? 0 : likelihood->n_data;
    size_t room = ((size_t)n->n_data + 1) * N;
    n->theta = calloc(room, sizeof *n->theta);
    n->log_step = calloc(room, sizeof *n->log_step);
    if (n->theta == NULL || n->log_step == NULL) {
        tsr_nuisance_free(n);
        return NULL;
    }
    for (int d = 0; d < n->n_data; d++) {
        tsr_data_term_start(&likelihood->data[d], n->theta + d * N);
        for (int i = 0; i < N; i++)
            n->log_step[d * N + i] = log(0.1);
    }
    for (int i = 0; contrast != NULL && i < TSR_N_CONTRAST; i++) {
        n->theta[n->n_data * N + i] = contrast[i].start;
        n->log_step[n->n_data * N + i] = log(0.1);
    }
    return n;
}

tsr_fit *tsr_nuisance_fits_new(const tsr_likelihood *likelihood)
{
    return likelihood == NULL ? calloc(1, sizeof(tsr_fit))
                              : tsr_fits_new(likelihood);
}

/* The tempered likelihood is wider by 1 / sqrt(beta). */
static tsr_linear_shape conditional(const tsr_data_term *term,
                                    const double *theta, double beta)
{
    tsr_linear_shape shape = term->type->conditional(theta);
    shape.spread /= sqrt(beta);
    return shape;
}

static double log_conditional(const tsr_data_term *term, const tsr_fit *fit,
                              const double *theta, double beta)
{
    return tsr_linear_log_density(
        &term->linear, fit, conditional(term, theta, beta), fit->c, fit->b);
}

static double sum_log_lik(const tsr_nuisance *n, const tsr_fit *fit)
{
    double sum = 0.0;
    for (int d = 0; d < n->n_data; d++)
        sum += fit[d].log_lik;
    return sum;
}

tsr_status tsr_nuisance_fit(const tsr_nuisance *nuisance, const double *partial,
                            double beta, gsl_rng *rng, double *profile,
                            tsr_fit *fit, double *log_lik, tsr_err *err)
{
    const tsr_nuisance *n = nuisance;
    tsr_likelihood_profile(n->likelihood, partial, tsr_nuisance_contrast(n),
                           profile);
    tsr_status status =
        tsr_likelihood_fit(n->likelihood, profile, n->theta, fit, err);
    for (int d = 0; d < n->n_data && status == TSR_OK; d++) {
        const tsr_data_term *term = &n->likelihood->data[d];
        const double *theta = n->theta + d * N;
        if (term->is_sampled)
            tsr_linear_draw(&term->linear, &fit[d],
                            conditional(term, theta, beta), rng, &fit[d].c,
                            &fit[d].b);
        fit[d].log_lik = tsr_data_term_log(term, &fit[d], theta);
    }
    *log_lik = sum_log_lik(n, fit);
    return status;
}

tsr_status tsr_nuisance_refit(const tsr_nuisance *nuisance,
                              const double *partial, double *profile,
                              tsr_fit *fit, double *log_lik, tsr_err *err)
{
    const tsr_nuisance *n = nuisance;
    tsr_likelihood_profile(n->likelihood, partial, tsr_nuisance_contrast(n),
                           profile);
    tsr_status status =
        tsr_likelihood_fit(n->likelihood, profile, n->theta, fit, err);
    for (int d = 0; d < n->n_data && status == TSR_OK; d++)
        fit[d].log_lik = tsr_data_term_log(&n->likelihood->data[d], &fit[d],
                                           n->theta + d * N);
    *log_lik = sum_log_lik(n, fit);
    return status;
}

double tsr_nuisance_log_ratio(const tsr_nuisance *nuisance, const tsr_fit *from,
                              const tsr_fit *to, double beta)
{
    const tsr_nuisance *n = nuisance;
    double sum = 0.0;
    for (int d = 0; d < n->n_data; d++) {
        const tsr_data_term *term = &n->likelihood->data[d];
        if (term->is_sampled)
            sum += log_conditional(term, &from[d], n->theta + d * N, beta) -
                   log_conditional(term, &to[d], n->theta + d * N, beta);
    }
    return sum;
}

/* A parameter may be proposed beyond what doubles hold: then it is rejected. */
static double acceptance(double log_alpha)
{
    return isnan(log_alpha) ? 0.0 : log_alpha < 0.0 ? exp(log_alpha) : 1.0;
}

/* What c and b can be proposed from. */
static int is_sound(const tsr_fit *fit)
{
    return isfinite(fit->scale) && isfinite(fit->background) &&
           isfinite(fit->model_norm) && isfinite(fit->one_norm);
}

/* A step on one parameter. The density is that of theta, so a symmetric step
 * needs no correction. Where c and b are integrated out the new weights are
 * needed for the new likelihood; where they are sampled they stay, and only
 * what they will be proposed from changes. */
static double step_parameter(tsr_nuisance *n, int d, int i, double beta,
                             gsl_rng *rng, tsr_fit *fit)
{
    const tsr_data_term *term = &n->likelihood->data[d];
    const tsr_noise_type *type = term->type;
    const tsr_noise_prior *prior = &term->prior[i];
    double *theta = n->theta + d * N, new[N] = {0.0};
    int refit = type->parameter[i].refit, first = type->log_integral != NULL;
    tsr_fit trial = *fit; /* the curve itself is shared: it stays */
    for (int k = 0; k < N; k++)
        new[k] = theta[k];
    new[i] += gsl_ran_gaussian(rng, exp(n->log_step[d * N + i]));
    if (refit && first)
        type->refit(term->state, new, &trial);
    trial.log_lik = tsr_data_term_log(term, &trial, new);
    double log_alpha = beta * (trial.log_lik - fit->log_lik) +
                       tsr_noise_log_prior(prior, new[i]) -
                       tsr_noise_log_prior(prior, theta[i]);
    double alpha = acceptance(log_alpha);
    int accept = gsl_rng_uniform(rng) < alpha;
    n->counts.proposed++;
    if (accept && refit && !first) {
        type->refit(term->state, new, &trial);
        accept = is_sound(&trial);
    }
    if (accept) {
        *fit = trial;
        theta[i] = new[i];
        n->counts.accepted++;
    }
    return alpha;
}

/* A step on c and b of a data set, whatever they are now. They come from a fit
 * that was found sound: what is not a number here is an error. */
static tsr_status step_linear(const tsr_nuisance *n, int d, double beta,
                              gsl_rng *rng, tsr_fit *fit, tsr_err *err)
{
    const tsr_data_term *term = &n->likelihood->data[d];
    const double *theta = n->theta + d * N;
    tsr_fit trial = *fit;
    tsr_linear_draw(&term->linear, fit, conditional(term, theta, beta), rng,
                    &trial.c, &trial.b);
    trial.log_lik = tsr_data_term_log(term, &trial, theta);
    double log_alpha = beta * (trial.log_lik - fit->log_lik) +
                       log_conditional(term, fit, theta, beta) -
                       log_conditional(term, &trial, theta, beta);
    if (isnan(log_alpha))
        return tsr_fail(err, TSR_E_NUMERIC,
                        "'%s': the acceptance of scale %g and background %g, "
                        "from %g and %g, is not a number",
                        term->saxs->path, trial.c, trial.b, fit->c, fit->b);
    if (gsl_rng_uniform(rng) < acceptance(log_alpha))
        *fit = trial;
    return TSR_OK;
}

tsr_status tsr_nuisance_update(tsr_nuisance *nuisance, double beta, int warm,
                               gsl_rng *rng, tsr_fit *fit, double *log_lik,
                               tsr_err *err)
{
    tsr_nuisance *n = nuisance;
    tsr_status status = TSR_OK;
    for (int d = 0; d < n->n_data; d++) {
        const tsr_data_term *term = &n->likelihood->data[d];
        for (int i = 0; i < term->type->n_parameter; i++) {
            if (!term->prior[i].infer)
                continue;
            double alpha = step_parameter(n, d, i, beta, rng, &fit[d]);
            if (warm)
                n->log_step[d * N + i] +=
                    tsr_move_learn(n->n_learnt, alpha, 0.44);
        }
        if (term->is_sampled && tsr_linear_n_free(&term->linear) > 0 &&
            status == TSR_OK)
            status = step_linear(n, d, beta, rng, &fit[d], err);
    }
    *log_lik = sum_log_lik(n, fit);
    if (warm && n->contrast != NULL)
        tsr_contrast_axes_learn(&n->axes, n->contrast,
                                tsr_nuisance_contrast(n));
    if (warm)
        n->n_learnt++;
    return status;
}

int tsr_nuisance_infers_contrast(const tsr_nuisance *nuisance, int which)
{
    return nuisance->contrast != NULL && nuisance->contrast[which].infer;
}

double tsr_nuisance_propose_contrast(tsr_nuisance *nuisance, int which,
                                     gsl_rng *rng, double *was)
{
    tsr_nuisance *n = nuisance;
    double *value = n->theta + n->n_data * N, change = 0.0;
    double size = exp(n->log_step[n->n_data * N + which]);
    for (int i = 0; i < TSR_N_CONTRAST; i++)
        was[i] = value[i];
    tsr_contrast_axes_step(&n->axes, n->contrast, which,
                           gsl_ran_gaussian(rng, size), value);
    for (int i = 0; i < TSR_N_CONTRAST; i++)
        change += tsr_contrast_log_prior(&n->contrast[i], value[i]) -
                  tsr_contrast_log_prior(&n->contrast[i], was[i]);
    n->counts.proposed++;
    return change;
}

void tsr_nuisance_settle_contrast(tsr_nuisance *nuisance, int which,
                                  const double *was, int accept, double alpha,
                                  int warm)
{
    const double widest = log(4.0); /* the rest would be out of range */
    tsr_nuisance *n = nuisance;
    double *value = n->theta + n->n_data * N;
    double *step = n->log_step + n->n_data * N + which;
    for (int i = 0; i < TSR_N_CONTRAST && !accept; i++)
        value[i] = was[i];
    n->counts.accepted += accept;
    if (warm)
        *step = fmin(*step + tsr_move_learn(n->n_learnt, alpha, 0.44), widest);
}

void tsr_nuisance_exchange(tsr_nuisance *a, tsr_nuisance *b)
{
    double *step = a->log_step;
    long n_learnt = a->n_learnt;
    tsr_nuisance_counts counts = a->counts;
    tsr_contrast_axes axes = a->axes;
    a->axes = b->axes, b->axes = axes;
    a->log_step = b->log_step, b->log_step = step;
    a->n_learnt = b->n_learnt, b->n_learnt = n_learnt;
    a->counts = b->counts, b->counts = counts;
}

double tsr_nuisance_log_prior(const tsr_nuisance *nuisance)
{
    const tsr_nuisance *n = nuisance;
    double sum = 0.0;
    for (int d = 0; d < n->n_data; d++) {
        const tsr_data_term *term = &n->likelihood->data[d];
        for (int i = 0; i < term->type->n_parameter; i++)
            sum += tsr_noise_log_prior(&term->prior[i], n->theta[d * N + i]);
    }
    for (int i = 0; n->contrast != NULL && i < TSR_N_CONTRAST; i++)
        sum += tsr_contrast_log_prior(&n->contrast[i],
                                      tsr_nuisance_contrast(n)[i]);
    return sum;
}

const double *tsr_nuisance_theta(const tsr_nuisance *nuisance, int data)
{
    return nuisance->theta + data * N;
}

const double *tsr_nuisance_contrast(const tsr_nuisance *nuisance)
{
    return nuisance->theta + nuisance->n_data * N;
}

tsr_nuisance_counts tsr_nuisance_counts_get(const tsr_nuisance *nuisance)
{
    return nuisance->counts;
}

void tsr_nuisance_counts_reset(tsr_nuisance *nuisance)
{
    nuisance->counts = (tsr_nuisance_counts){0, 0};
}

void tsr_nuisance_archive(tsr_nuisance *nuisance, tsr_fit *fit,
                          tsr_archive *archive)
{
    tsr_nuisance *n = nuisance;
    size_t room = ((size_t)n->n_data + 1) * N;
    tsr_archive_real(archive, n->theta, room);
    tsr_archive_real(archive, n->log_step, room);
    tsr_archive_long(archive, &n->n_learnt, 1);
    tsr_archive_long(archive, &n->counts.proposed, 1);
    tsr_archive_long(archive, &n->counts.accepted, 1);
    if (n->contrast != NULL)
        tsr_contrast_axes_archive(&n->axes, archive);
    for (int d = 0; d < n->n_data; d++) {
        tsr_archive_real(archive, &fit[d].c, 1);
        tsr_archive_real(archive, &fit[d].b, 1);
    }
}
