/* The posterior over ensembles of a pool by sequential Monte Carlo.
 *
 * With u = 1 / sigma, the log likelihood of a mean curve m, over sigma, needs
 * |m|^2, m . u and m . d alone. The normal prior of the background, of standard
 * deviation w, is one more point with the coordinate s / w of u, where model
 * and data are 0 (docs/statistics.md). A conditional of a member costs a few
 * products in the some 20 axes for each conformation. */
#include "analysis/ensemble.h"

#include "core/clones.h"
#include "core/interrupt.h"
#include "core/parallel.h"
#include "core/vec3.h"

#include <float.h>
#include <gsl/gsl_math.h>
#include <gsl/gsl_randist.h>
#include <gsl/gsl_sf_erf.h>
#include <gsl/gsl_statistics_double.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

static const double log_2pi = 1.8378770664093453;
/* Effective share of a population after a step of temperature, and correlation
 * of the log likelihoods with those at the beginning of a level below which the
 * level ends; both as in sampler/population.c. */
static const double wanted_share = 0.6, forgotten = 0.3;
static const double loosest =
    0.01; /* rest of a curve outside the axes, sigma */

/* ---- the pool ---- */

static double dot(int n, const double *a, const double *b)
{
    double sum = 0.0;
    for (int i = 0; i < n; i++)
        sum += a[i] * b[i];
    return sum;
}

/* Chebyshev's points in the range of c1: the interpolation of the curve is
 * exact to some 1e-5. */
static void set_nodes(tsr_ensemble_pool *p)
{
    const tsr_parameter *c1 = &p->parameter[TSR_C1];
    p->n_node = c1->infer ? TSR_ENSEMBLE_NODES : 1;
    p->n_part = 2 * p->n_node + 1;
    p->node[0] = c1->start;
    for (int i = 0; i < p->n_node && c1->infer; i++)
        p->node[i] = 0.5 * (c1->low + c1->high) -
                     0.5 * (c1->high - c1->low) *
                         cos(TSR_PI * (i + 0.5) / TSR_ENSEMBLE_NODES);
}

tsr_status tsr_ensemble_pool_make(const tsr_saxs *saxs,
                                  const tsr_linear *linear,
                                  const tsr_parameter contrast[TSR_N_CONTRAST],
                                  int most, tsr_ensemble_pool *out,
                                  tsr_err *err)
{
    tsr_ensemble_pool *p = out;
    const int n = saxs->n;
    const double b = linear->infer_background ? 0.0 : linear->background;
    tsr_noise_scale_options noise;
    *p = (tsr_ensemble_pool){.saxs = saxs, .linear = *linear, .most = most};
    TSR_TRY(tsr_fields_init(tsr_noise_measured.fields, &noise, err));
    memcpy(p->parameter, contrast, TSR_N_CONTRAST * sizeof *contrast);
    tsr_noise_measured.parameters((const tsr_noise_options *)(void *)&noise,
                                  &p->parameter[TSR_ENSEMBLE_LOG_S]);
    set_nodes(p);
    p->room = 16;
    tsr_pool_array(&p->pool, p->axis, (size_t)n * (size_t)n);
    tsr_pool_array(&p->pool, p->u, n);
    tsr_pool_array(&p->pool, p->d, n);
    tsr_pool_array(&p->pool, p->one, n + 16);
    tsr_pool_array(&p->pool, p->data, n + 16);
    tsr_pool_array(&p->pool, p->score,
                   (size_t)most * (size_t)(p->n_part * p->room));
    TSR_TRY(tsr_pool_check(&p->pool, err));
    for (int k = 0; k < n; k++) {
        p->u[k] = 1.0 / saxs->sigma[k];
        p->d[k] = (saxs->intensity[k] - b) * p->u[k];
        p->log_sigma += log(saxs->sigma[k]);
    }
    p->one_norm = dot(n, p->u, p->u);
    p->one_data = dot(n, p->u, p->d);
    p->data_norm = dot(n, p->d, p->d);
    return TSR_OK;
}

tsr_status tsr_ensemble_parts(const tsr_ensemble_pool *pool,
                              const tsr_partials *partials,
                              const double *matrix, double *part, tsr_err *err)
{
    const tsr_ensemble_pool *p = pool;
    const int n_q = partials->grid.n_q, n = p->saxs->n;
    const double *pair[TSR_N_COMP_PAIR];
    for (int i = 0; i < TSR_N_COMP_PAIR; i++)
        pair[i] = partials->pair + (size_t)i * (size_t)n_q;
    double *scratch = malloc((size_t)n_q * sizeof *scratch);
    TSR_TRY(tsr_allocated(scratch, err));
    for (int i = 0; i < p->n_part; i++) {
        const int power = i == 2 * p->n_node ? 2 : i % 2;
        for (int k = 0; k < n_q; k++) {
            const double g = tsr_component_scale(
                p->node[power == 2 ? 0 : i / 2], partials->radius_ang,
                k * partials->grid.dq_inv_ang);
            scratch[k] = power == 0 ? pair[0][k] - 2.0 * g * pair[1][k] +
                                          g * g * pair[3][k]
                         : power == 1 ? 2.0 * (pair[2][k] - g * pair[4][k])
                                      : pair[5][k];
        }
        tsr_q_operator_apply(matrix, n, n_q, scratch, part + i * n);
    }
    free(scratch);
    return TSR_OK;
}

/* coefficient [n_part] out, of the parts at c1 and c2. */
static void set_coefficients(const tsr_ensemble_pool *p, const double *theta,
                             double *coefficient)
{
    const double c1 = theta[TSR_C1], c2 = theta[TSR_C2];
    for (int i = 0; i < p->n_node; i++) {
        double l = 1.0;
        for (int j = 0; j < p->n_node; j++)
            if (j != i)
                l *= (c1 - p->node[j]) / (p->node[i] - p->node[j]);
        coefficient[2 * i] = l;
        coefficient[2 * i + 1] = c2 * l;
    }
    coefficient[2 * p->n_node] = c2 * c2;
}

/* Index of the first coordinate of a part of a conformation. */
static size_t row_of(const tsr_ensemble_pool *p, int conformation, int part)
{
    return ((size_t)conformation * (size_t)p->n_part + (size_t)part) *
           (size_t)p->room;
}

/* Reserves more axes. */
static tsr_status widen(tsr_ensemble_pool *p, tsr_err *err)
{
    const size_t n = (size_t)(p->n + 1) * (size_t)p->n_part;
    const size_t old = (size_t)p->room, room = old + 16;
    float *score = tsr_pool_resize(&p->pool, p->score,
                                   (size_t)p->most * (size_t)p->n_part * room,
                                   sizeof *score);
    TSR_TRY(tsr_allocated(score, err));
    for (size_t i = n; i-- > 0;) {
        memmove(score + i * room, score + i * old, old * sizeof *score);
        memset(score + i * room + old, 0, (room - old) * sizeof *score);
    }
    p->score = score;
    p->room = (int)room;
    return TSR_OK;
}

/* Appends the direction of x [n_point], which is orthogonal to the axes. */
static void add_axis(tsr_ensemble_pool *p, const double *x)
{
    const int n = p->saxs->n;
    double *axis = p->axis + (size_t)p->n_dim * (size_t)n;
    memcpy(axis, x, (size_t)n * sizeof *axis);
    for (int i = 0; i < p->n_dim; i++) { /* again, against rounding */
        const double *a = p->axis + (size_t)i * (size_t)n;
        const double along = dot(n, a, axis);
        for (int k = 0; k < n; k++)
            axis[k] -= along * a[k];
    }
    const double size = sqrt(dot(n, axis, axis));
    for (int k = 0; k < n; k++)
        axis[k] /= size;
    p->one[p->n_dim] = dot(n, axis, p->u);
    p->data[p->n_dim++] = dot(n, axis, p->d);
}

tsr_status tsr_ensemble_pool_add(tsr_ensemble_pool *pool, const double *part,
                                 tsr_err *err)
{
    tsr_ensemble_pool *p = pool;
    const int n = p->saxs->n;
    double *x = calloc((size_t)n, sizeof *x);
    const double c2 = fmax(
        fabs(p->parameter[TSR_C2].start),
        p->parameter[TSR_C2].infer ? fabs(p->parameter[TSR_C2].high) : 0.0);
    tsr_status status = tsr_allocated(x, err);
    for (int i = 0; i < p->n_part && status == TSR_OK; i++) {
        const double most = i == 2 * p->n_node ? c2 * c2 : i % 2 ? c2 : 1.0;
        for (int k = 0; k < n; k++)
            x[k] = part[i * n + k] / p->saxs->sigma[k];
        memset(p->score + row_of(p, p->n, i), 0,
               (size_t)p->room * sizeof *p->score);
        if (p->scale == 0.0)
            p->scale = fabs(dot(n, x, p->d)) / dot(n, x, x);
        for (int a = 0;; a++) {
            if (a == p->n_dim) {
                const double rest = p->scale * most * sqrt(dot(n, x, x));
                if (!isfinite(rest))
                    status =
                        tsr_fail(err, TSR_E_NUMERIC, "the curve is not finite");
                if (!(rest > loosest) || p->n_dim == n)
                    break;
                if (p->n_dim == p->room)
                    status = widen(p, err);
                if (status != TSR_OK)
                    break;
                add_axis(p, x);
            }
            const double *axis = p->axis + (size_t)a * (size_t)n;
            const double along = dot(n, axis, x);
            for (int k = 0; k < n; k++)
                x[k] -= along * axis[k];
            p->score[row_of(p, p->n, i) + (size_t)a] = (float)along;
        }
    }
    p->n += status == TSR_OK;
    free(x);
    return status;
}

/* ---- the likelihood ---- */

/* What depends on s, and not on the curve. */
typedef struct {
    double s, inverse_one; /* 1 / (|u|^2 + s^2 / w^2); 0: fixed background */
    double data_norm;
    double log_first; /* terms of the log likelihood without a model */
} frame;

static frame make_frame(const tsr_ensemble_pool *p, double log_s)
{
    const tsr_linear *l = &p->linear;
    frame f = {.s = exp(log_s), .data_norm = p->data_norm};
    f.log_first = -p->log_sigma - 0.5 * (p->saxs->n - 1 - l->infer_background) *
                                      (log_2pi + 2.0 * log_s);
    if (l->infer_background) {
        const double ratio =
            l->background_sd > 0.0 ? f.s / l->background_sd : 0.0;
        f.inverse_one = 1.0 / (p->one_norm + ratio * ratio);
        f.data_norm -= p->one_data * p->one_data * f.inverse_one;
        f.log_first += 0.5 * log(f.inverse_one) + tsr_linear_log_prior(l, 0.0);
    }
    return f;
}

/* From the products of the curve with itself, u and the data. */
static double log_lik_of(const tsr_ensemble_pool *p, const frame *f,
                         double norm, double one, double data)
{
    norm -= one * one * f->inverse_one;
    data -= one * p->one_data * f->inverse_one;
    const double c = data / norm;
    const double square = f->data_norm - c * (2.0 * data - c * norm);
    const double z = data / (sqrt(norm) * f->s);
    const double sum =
        f->log_first - 0.5 * square * (1.0 / (f->s * f->s)) - 0.5 * log(norm);
    return z < 8.0 ? sum + (gsl_sf_log_erfc(-M_SQRT1_2 * z) - M_LN2) : sum;
}

/* curve [n_dim] out: from parts [n_part][n_dim]. */
static void combine(const tsr_ensemble_pool *p, const double *coefficient,
                    const double *part, double *curve)
{
    memset(curve, 0, (size_t)p->n_dim * sizeof *curve);
    for (int i = 0; i < p->n_part; i++)
        for (int a = 0; a < p->n_dim; a++)
            curve[a] += coefficient[i] * part[i * p->n_dim + a];
}

/* part [n_part][n_dim] += weight times those of a conformation. */
static void add_parts(const tsr_ensemble_pool *p, int conformation,
                      double weight, double *part)
{
    const float *score = p->score + row_of(p, conformation, 0);
    for (int i = 0; i < p->n_part; i++)
        for (int a = 0; a < p->n_dim; a++)
            part[i * p->n_dim + a] += weight * (double)score[i * p->room + a];
}

/* Completes a draw whose theta and weighted sums of parts are known. curve
 * [n_dim] out: the mean curve over sigma. */
static void finish_draw(const tsr_ensemble_pool *p, const double *part,
                        gsl_rng *rng, double *curve, tsr_ensemble_draw *draw)
{
    double coefficient[TSR_ENSEMBLE_PARTS];
    set_coefficients(p, draw->theta, coefficient);
    combine(p, coefficient, part, curve);
    const tsr_linear *l = &p->linear;
    const frame f = make_frame(p, draw->theta[TSR_ENSEMBLE_LOG_S]);
    const double norm = dot(p->n_dim, curve, curve);
    const double one = dot(p->n_dim, curve, p->one);
    const double data = dot(p->n_dim, curve, p->data);
    const int is_free = l->infer_background; /* else b is subtracted */
    const double mean = is_free ? one / p->one_norm : 0.0;
    const double data_mean = is_free ? p->one_data / p->one_norm : 0.0;
    const double cross = data - one * data_mean;
    tsr_fit fit = {.model_mean = mean,
                   .one_norm = p->one_norm,
                   .model_norm = norm - one * mean};
    fit.scale = cross / fit.model_norm;
    fit.background = is_free ? data_mean - fit.scale * mean : l->background;
    fit.square_sum = p->data_norm - p->one_data * data_mean - fit.scale * cross;
    draw->chi2 = fit.square_sum / p->saxs->n;
    draw->log_lik = log_lik_of(p, &f, norm, one, data);
    tsr_linear_add_prior(l, f.s, &fit);
    draw->scale = fit.scale;
    draw->background = fit.background;
    if (rng != NULL)
        tsr_linear_draw(l, &fit, (tsr_linear_shape){f.s, 0}, rng, &draw->scale,
                        &draw->background);
}

/* ---- one ensemble ---- */

typedef struct {
    int *member;    /* [k] */
    double *weight; /* [k] */
    double *part;   /* [n_part][n_dim] weighted sums over the members */
    double theta[TSR_ENSEMBLE_PARAMETERS];
    double log_lik;
} particle;

typedef struct {
    const tsr_ensemble_pool *p;
    tsr_ensemble_kind kind;
    tsr_pool memory;
    gsl_rng *rng;
    int n; /* particles */
    particle *now, *next;
    double *log_weight; /* [n] */
    double *whole;      /* [n_part][n_dim] mean over the pool */
    double beta;
    int n_candidate; /* conformations among which a member is drawn */
    int *candidate;
    double *log_lik, *chance; /* [n_candidate][SHARES] */
    double *before;        /* [n] log likelihoods at the beginning of a level */
    double *curve, *trial; /* [n_dim], [n_part][n_dim] */
} population;

static void sum_parts(const population *x, particle *a)
{
    const tsr_ensemble_pool *p = x->p;
    const size_t n = (size_t)(p->n_part * p->n_dim);
    if (x->kind.n_member == 0) {
        memcpy(a->part, x->whole, n * sizeof *a->part);
        return;
    }
    memset(a->part, 0, n * sizeof *a->part);
    for (int j = 0; j < x->kind.n_member; j++)
        add_parts(p, a->member[j], a->weight[j], a->part);
}

/* The log likelihood at parameters theta and parts. */
static double log_lik_at(const population *x, const double *theta,
                         const double *part)
{
    double coefficient[TSR_ENSEMBLE_PARTS];
    const frame f = make_frame(x->p, theta[TSR_ENSEMBLE_LOG_S]);
    const int n = x->p->n_dim;
    set_coefficients(x->p, theta, coefficient);
    combine(x->p, coefficient, part, x->curve);
    return log_lik_of(x->p, &f, dot(n, x->curve, x->curve),
                      dot(n, x->curve, x->p->one),
                      dot(n, x->curve, x->p->data));
}

static void draw_from_prior(const population *x, particle *a)
{
    const tsr_ensemble_pool *p = x->p;
    double sum = 0.0;
    for (int j = 0; j < x->kind.n_member; j++) {
        a->member[j] = (int)gsl_rng_uniform_int(x->rng, (unsigned long)p->n);
        a->weight[j] =
            x->kind.is_copies ? 1.0 : gsl_ran_exponential(x->rng, 1.0);
        sum += a->weight[j];
    }
    for (int j = 0; j < x->kind.n_member; j++)
        a->weight[j] /= sum;
    for (int i = 0; i < TSR_ENSEMBLE_PARAMETERS; i++) {
        const tsr_parameter *t = &p->parameter[i];
        do
            a->theta[i] = t->infer
                              ? t->mean + gsl_ran_gaussian(x->rng, t->width)
                              : t->start;
        while (t->infer && t->shape == TSR_PRIOR_CUT_NORMAL &&
               !(a->theta[i] >= t->low && a->theta[i] <= t->high));
    }
    sum_parts(x, a);
    a->log_lik = log_lik_at(x, a->theta, a->part);
}

enum { SHARES = 4 }; /* weights among which that of a member is drawn */
enum { LANES = 8 };  /* sums side by side, which a processor adds at once */

/* Products of the curve z of a conformation, from its parts [n_part][room],
 * with another curve, itself, u and the data: product [4] out. Beyond n_dim, up
 * to a multiple of LANES, all arrays are 0. */
TSR_CLONES static void multiply(int n_dim, int n_part, int room,
                                const float *score, const double *coefficient,
                                const double *curve, const double *one,
                                const double *data, double *product)
{
    double sum[4][LANES] = {{0.0}};
    for (int k = 0; k < n_dim; k += LANES) {
        double z[LANES] = {0.0};
        for (int part = 0; part < n_part; part++)
            for (int v = 0; v < LANES; v++)
                z[v] += coefficient[part] * (double)score[part * room + k + v];
        for (int v = 0; v < LANES; v++) {
            sum[0][v] += z[v] * curve[k + v];
            sum[1][v] += z[v] * z[v];
            sum[2][v] += z[v] * one[k + v];
            sum[3][v] += z[v] * data[k + v];
        }
    }
    for (int i = 0; i < 4; i++) {
        product[i] = 0.0;
        for (int v = 0; v < LANES; v++)
            product[i] += sum[i][v];
    }
}

/* Draws member j and its weight from their conditional, given the proportions
 * of the other weights, among the present ones and others drawn from the prior:
 * random conformations and, of a flat Dirichlet prior, weights with the density
 * (k - 1) (1 - w)^(k - 2). The candidates of the reverse step have the same
 * probability, so the step keeps the posterior exactly. */
static void step_member(population *x, particle *a, int j)
{
    const tsr_ensemble_pool *p = x->p;
    const int n_dim = p->n_dim, is_all = x->n_candidate == p->n;
    const int k = x->kind.n_member;
    const double left = 1.0 - a->weight[j]; /* of the other members */
    const int n_share = k > 1 && !x->kind.is_copies && left > 0.0 ? SHARES : 1;
    double share[SHARES] = {a->weight[j]}, coefficient[TSR_ENSEMBLE_PARTS];
    double top = -HUGE_VAL, sum = 0.0;
    const frame f = make_frame(p, a->theta[TSR_ENSEMBLE_LOG_S]);
    for (int l = 1; l < n_share; l++)
        share[l] = 1.0 - pow(gsl_rng_uniform_pos(x->rng), 1.0 / (k - 1));
    set_coefficients(p, a->theta, coefficient);
    add_parts(p, a->member[j], -share[0], a->part);
    combine(p, coefficient, a->part, x->curve);
    const double norm = dot(n_dim, x->curve, x->curve);
    const double one = dot(n_dim, x->curve, p->one);
    const double data = dot(n_dim, x->curve, p->data);
    for (int i = 0; i < x->n_candidate; i++) {
        double product[4];
        x->candidate[i] =
            is_all   ? i
            : i == 0 ? a->member[j]
                     : (int)gsl_rng_uniform_int(x->rng, (unsigned long)p->n);
        multiply(n_dim, p->n_part, p->room,
                 p->score +
                     (size_t)x->candidate[i] * (size_t)(p->n_part * p->room),
                 coefficient, x->curve, p->one, p->data, product);
        for (int l = 0; l < n_share; l++) {
            const double w = share[l], g = l > 0 ? (1.0 - w) / left : 1.0;
            double *log_lik = &x->log_lik[i * n_share + l];
            *log_lik = log_lik_of(
                p, &f,
                g * g * norm + 2.0 * g * w * product[0] + w * w * product[1],
                g * one + w * product[2], g * data + w * product[3]);
            top = fmax(top, *log_lik);
        }
    }
    const int n = x->n_candidate * n_share;
    int chosen = 0;
    for (int i = 0; i < n; i++)
        sum += x->chance[i] = exp(x->beta * (x->log_lik[i] - top));
    for (double rest = sum * gsl_rng_uniform(x->rng); chosen < n - 1; chosen++)
        if ((rest -= x->chance[chosen]) < 0.0)
            break;
    const double w = share[chosen % n_share];
    const double g = chosen % n_share > 0 ? (1.0 - w) / left : 1.0;
    for (int i = 0; i < k && g != 1.0; i++)
        a->weight[i] *= g;
    for (int i = 0; i < p->n_part * n_dim && g != 1.0; i++)
        a->part[i] *= g;
    a->weight[j] = w;
    a->member[j] = x->candidate[chosen / n_share];
    a->log_lik = x->log_lik[chosen];
    add_parts(p, a->member[j], w, a->part);
}

/* A length between 1/1000 and 1, its logarithm uniform: steps of all sizes need
 * no tuning. */
static double step_size(const population *x)
{
    return exp(-6.907755278982137 * gsl_rng_uniform(x->rng));
}

static int accept(const population *x, double log_ratio)
{
    return log(gsl_rng_uniform_pos(x->rng)) < log_ratio;
}

/* Two members divide their weights anew: a walk of the share, reflected at 0
 * and 1, on which the flat Dirichlet prior is flat. */
static void step_weights(population *x, particle *a)
{
    const int k = x->kind.n_member;
    const size_t n = (size_t)(x->p->n_part * x->p->n_dim);
    const int i = (int)gsl_rng_uniform_int(x->rng, (unsigned long)k);
    const int other = (int)gsl_rng_uniform_int(x->rng, (unsigned long)k - 1);
    const int j = other + (other >= i);
    const double both = a->weight[i] + a->weight[j];
    double share = a->weight[i] / both;
    share += step_size(x) * (2.0 * gsl_rng_uniform(x->rng) - 1.0);
    share = share < 0.0 ? -share : share > 1.0 ? 2.0 - share : share;
    const double change = share * both - a->weight[i];
    memcpy(x->trial, a->part, n * sizeof *x->trial);
    add_parts(x->p, a->member[i], change, x->trial);
    add_parts(x->p, a->member[j], -change, x->trial);
    const double log_lik = log_lik_at(x, a->theta, x->trial);
    if (accept(x, x->beta * (log_lik - a->log_lik))) {
        memcpy(a->part, x->trial, n * sizeof *x->trial);
        a->weight[i] += change;
        a->weight[j] -= change;
        a->log_lik = log_lik;
    }
}

static void step_parameters(population *x, particle *a)
{
    for (int i = 0; i < TSR_ENSEMBLE_PARAMETERS; i++) {
        const tsr_parameter *t = &x->p->parameter[i];
        const double old = a->theta[i];
        double log_lik = 0.0;
        if (!t->infer)
            continue;
        a->theta[i] += step_size(x) * gsl_ran_gaussian(x->rng, 2.0 * t->width);
        const double ratio = tsr_parameter_log_prior(t, a->theta[i]) -
                             tsr_parameter_log_prior(t, old);
        const int is_allowed = ratio > -HUGE_VAL;
        if (is_allowed)
            log_lik = log_lik_at(x, a->theta, a->part);
        if (is_allowed && accept(x, ratio + x->beta * (log_lik - a->log_lik)))
            a->log_lik = log_lik;
        else
            a->theta[i] = old;
    }
}

static void sweep(population *x, particle *a)
{
    enum { WALKS = 4 }; /* of weights and parameters for each member's step */
    const int k = x->kind.n_member;
    for (int j = 0; j < (k > 0 ? k : 1); j++) {
        if (k > 0)
            step_member(x, a, j);
        for (int walk = 0; walk < WALKS; walk++) {
            if (k > 1 && !x->kind.is_copies)
                step_weights(x, a);
            if (walk == 0 || k < 8)
                step_parameters(x, a);
        }
    }
    sum_parts(x, a); /* without the rounding of updates */
    a->log_lik = log_lik_at(x, a->theta, a->part);
}

/* ---- the population ---- */

static tsr_status reserve(population *x, uint64_t seed, uint64_t stream,
                          tsr_err *err)
{
    enum { MOST = 2000, LEAST = 32 };
    const tsr_ensemble_pool *p = x->p;
    const int k = x->kind.n_member, n_dim = p->n_dim;
    const int share = k > 0 ? MOST / k : 1;
    x->n_candidate = share < LEAST ? LEAST : share;
    x->n_candidate = x->n_candidate > p->n ? p->n : x->n_candidate;
    tsr_pool_array(&x->memory, x->now, x->n);
    tsr_pool_array(&x->memory, x->next, x->n);
    tsr_pool_array(&x->memory, x->log_weight, x->n);
    tsr_pool_array(&x->memory, x->candidate, x->n_candidate);
    tsr_pool_array(&x->memory, x->log_lik, x->n_candidate * SHARES);
    tsr_pool_array(&x->memory, x->chance, x->n_candidate * SHARES);
    tsr_pool_array(&x->memory, x->before, x->n);
    tsr_pool_array(&x->memory, x->curve, n_dim + LANES);
    tsr_pool_array(&x->memory, x->trial, p->n_part * n_dim);
    tsr_pool_array(&x->memory, x->whole, p->n_part * n_dim);
    TSR_TRY(tsr_pool_check(&x->memory, err));
    for (int i = 0; i < 2 * x->n; i++) {
        particle *a = i < x->n ? &x->now[i] : &x->next[i - x->n];
        tsr_pool_array(&x->memory, a->member, k);
        tsr_pool_array(&x->memory, a->weight, k);
        tsr_pool_array(&x->memory, a->part, p->n_part * n_dim);
    }
    for (int m = 0; m < p->n && k == 0; m++)
        add_parts(p, m, 1.0 / p->n, x->whole);
    x->rng = tsr_rng_new(seed, stream);
    TSR_TRY(tsr_pool_check(&x->memory, err));
    return tsr_allocated(x->rng, err);
}

/* Log of the mean of exp(step log_lik), and the effective share of particles
 * with these weights. */
static double weigh(const population *x, double step, double *effective)
{
    double top = -HUGE_VAL, sum = 0.0, square = 0.0;
    for (int i = 0; i < x->n; i++)
        top = fmax(top, step * x->now[i].log_lik);
    for (int i = 0; i < x->n; i++) {
        x->log_weight[i] = step * x->now[i].log_lik - top;
        const double w = exp(x->log_weight[i]);
        sum += w;
        square += w * w;
    }
    *effective = sum * sum / (square * x->n);
    return top + log(sum / x->n);
}

/* The largest step of beta that leaves wanted_share of the particles
 * effective. */
static double choose_step(const population *x)
{
    double low = 0.0, high = 1.0 - x->beta, effective;
    weigh(x, high, &effective);
    if (effective >= wanted_share)
        return high;
    for (int i = 0; i < 60; i++) {
        const double middle = 0.5 * (low + high);
        weigh(x, middle, &effective);
        *(effective >= wanted_share ? &low : &high) = middle;
    }
    return low > 0.0 ? low : high;
}

static void copy_particle(const population *x, particle *to,
                          const particle *from)
{
    const size_t k = (size_t)x->kind.n_member;
    memcpy(to->member, from->member, k * sizeof *to->member);
    memcpy(to->weight, from->weight, k * sizeof *to->weight);
    memcpy(to->part, from->part,
           (size_t)(x->p->n_part * x->p->n_dim) * sizeof *to->part);
    memcpy(to->theta, from->theta, sizeof to->theta);
    to->log_lik = from->log_lik;
}

/* Systematic resampling by the weights of `weigh`. */
static void resample(population *x)
{
    double sum = 0.0, passed = 0.0;
    int from = 0;
    for (int i = 0; i < x->n; i++)
        sum += exp(x->log_weight[i]);
    const double first = gsl_rng_uniform(x->rng);
    passed = exp(x->log_weight[0]);
    for (int i = 0; i < x->n; i++) {
        while (passed < (i + first) / x->n * sum && from < x->n - 1)
            passed += exp(x->log_weight[++from]);
        copy_particle(x, &x->next[i], &x->now[from]);
    }
    particle *now = x->now;
    x->now = x->next;
    x->next = now;
}

/* Steps of all particles until the log likelihoods hardly correlate with those
 * at the beginning. */
static void run_level(population *x)
{
    enum { LEAST = 2, MOST = 20 };
    double correlation = 1.0;
    for (int i = 0; i < x->n; i++)
        x->before[i] = x->now[i].log_lik;
    for (int round = 0;
         round < LEAST || (round < MOST && correlation > forgotten); round++) {
        for (int i = 0; i < x->n; i++) {
            sweep(x, &x->now[i]);
            x->log_weight[i] = x->now[i].log_lik;
        }
        correlation =
            gsl_stats_correlation(x->before, 1, x->log_weight, 1, (size_t)x->n);
    }
}

static tsr_status run_population(population *x, double *log_z, tsr_err *err)
{
    *log_z = 0.0;
    for (int i = 0; i < x->n; i++)
        draw_from_prior(x, &x->now[i]);
    while (x->beta < 1.0) {
        double effective;
        TSR_TRY(tsr_watch_check(NULL, "sampling ensembles", err));
        const double step = choose_step(x);
        const double gain = weigh(x, step, &effective);
        if (!isfinite(gain))
            return tsr_fail(err, TSR_E_NUMERIC,
                            "no ensemble has a finite likelihood");
        *log_z += gain;
        x->beta = fmin(1.0, x->beta + step);
        if (1.0 - x->beta < DBL_EPSILON)
            x->beta = 1.0;
        resample(x);
        run_level(x);
    }
    run_level(x);
    return TSR_OK;
}

/* ---- all populations ---- */

typedef struct {
    const tsr_ensemble_pool *p;
    tsr_ensemble_sample *sample;
    uint64_t seed;
    int n_group;
} job;

static void store(population *x, int g, tsr_ensemble_sample *s)
{
    const size_t k = (size_t)s->kind.n_member;
    for (int i = 0; i < x->n; i++) {
        const size_t at = (size_t)g * (size_t)x->n + (size_t)i;
        const particle *a = &x->now[i];
        memcpy(s->member + at * k, a->member, k * sizeof *a->member);
        memcpy(s->weight + at * k, a->weight, k * sizeof *a->weight);
        memcpy(s->draw[at].theta, a->theta, sizeof a->theta);
        finish_draw(x->p, a->part, x->rng, x->curve, &s->draw[at]);
    }
}

static tsr_status run_item(void *context, int item, int thread, tsr_err *err)
{
    const job *j = context;
    tsr_ensemble_sample *s = &j->sample[item / j->n_group];
    const int g = item % j->n_group;
    population x = {.p = j->p, .kind = s->kind, .n = s->n_draw};
    (void)thread;
    tsr_status status = reserve(&x, j->seed, (uint64_t)item, err);
    TSR_THEN(status, run_population(&x, &s->log_z[g], err));
    if (status == TSR_OK)
        store(&x, g, s);
    if (x.rng != NULL)
        gsl_rng_free(x.rng);
    tsr_pool_clear(&x.memory);
    return status;
}

tsr_status tsr_ensemble_run(const tsr_ensemble_pool *pool, int n_kind,
                            tsr_ensemble_sample *sample, uint64_t seed,
                            int n_thread, tsr_pool *memory, tsr_err *err)
{
    job j = {pool, sample, seed, sample->n_group};
    for (int i = 0; i < n_kind; i++) {
        tsr_ensemble_sample *s = &sample[i];
        const size_t n = (size_t)s->n_group * (size_t)s->n_draw;
        const size_t k = (size_t)s->kind.n_member;
        tsr_pool_array(memory, s->member, n * k);
        tsr_pool_array(memory, s->weight, n * k);
        tsr_pool_array(memory, s->draw, n);
        tsr_pool_array(memory, s->log_z, s->n_group);
    }
    TSR_TRY(tsr_pool_check(memory, err));
    return tsr_parallel_try(n_kind * j.n_group, n_thread, run_item, &j, err);
}

tsr_status tsr_ensemble_evaluate(const tsr_ensemble_pool *pool, int n,
                                 const int *member, const double *weight,
                                 gsl_rng *rng, tsr_ensemble_draw *draw,
                                 double *fit, tsr_err *err)
{
    const tsr_ensemble_pool *p = pool;
    const size_t n_dim = (size_t)p->n_dim;
    double *part = calloc(((size_t)p->n_part + 1) * n_dim, sizeof *part);
    TSR_TRY(tsr_allocated(part, err));
    double *curve = part + (size_t)p->n_part * n_dim;
    for (int j = 0; j < n; j++)
        add_parts(p, member[j], weight[j], part);
    finish_draw(p, part, rng, curve, draw);
    for (int k = 0; k < p->saxs->n && fit != NULL; k++) {
        double sum = 0.0;
        for (size_t a = 0; a < n_dim; a++)
            sum += curve[a] * p->axis[a * (size_t)p->saxs->n + (size_t)k];
        fit[k] = draw->scale * sum * p->saxs->sigma[k] + draw->background;
    }
    free(part);
    return TSR_OK;
}

/* ---- groups of similar curves ---- */

/* The curve of a conformation in units of sigma: curve [n_dim] out. */
static void scaled_curve(const tsr_ensemble_pool *p, const double *coefficient,
                         int conformation, double *curve)
{
    const float *score = p->score + row_of(p, conformation, 0);
    for (int a = 0; a < p->n_dim; a++) {
        curve[a] = 0.0;
        for (int i = 0; i < p->n_part; i++)
            curve[a] +=
                p->scale * coefficient[i] * (double)score[i * p->room + a];
    }
}

static double square_distance(int n, const double *a, const double *b)
{
    double sum = 0.0;
    for (int i = 0; i < n; i++)
        sum += (a[i] - b[i]) * (a[i] - b[i]);
    return sum;
}

int tsr_ensemble_groups(const tsr_ensemble_pool *pool,
                        const double contrast[TSR_N_CONTRAST], double least,
                        int n_group, int *group, int *centre)
{
    enum { TURNS = 10 };
    const tsr_ensemble_pool *p = pool;
    const int n_dim = p->n_dim;
    double coefficient[TSR_ENSEMBLE_PARTS] = {0.0};
    double *at = calloc((size_t)((2 * n_group + 1) * n_dim), sizeof *at);
    if (at == NULL)
        return 0;
    double *sum = at + n_group * n_dim, *curve = sum + n_group * n_dim;
    int n = 1;
    set_coefficients(p, contrast, coefficient);
    scaled_curve(p, coefficient, 0, at);
    for (int turn = 0; turn <= TURNS; turn++) {
        double farthest = 0.0, best[TSR_ENSEMBLE_GROUPS];
        int size[TSR_ENSEMBLE_GROUPS] = {0}, outer = 0;
        memset(sum, 0, (size_t)(n * n_dim) * sizeof *sum);
        for (int g = 0; g < n; g++)
            centre[g] = 0, best[g] = HUGE_VAL;
        for (int m = 0; m < p->n; m++) {
            double nearest = HUGE_VAL;
            scaled_curve(p, coefficient, m, curve);
            for (int g = 0; g < n; g++) {
                const double d = square_distance(n_dim, curve, at + g * n_dim);
                if (d < nearest)
                    nearest = d, group[m] = g;
            }
            const int g = group[m];
            size[g]++;
            for (int a = 0; a < n_dim; a++)
                sum[g * n_dim + a] += curve[a];
            if (nearest < best[g])
                best[g] = nearest, centre[g] = m;
            if (nearest > farthest)
                farthest = nearest, outer = m;
        }
        if (n < n_group && sqrt(farthest) > least) {
            turn = 0;
            scaled_curve(p, coefficient, outer, at + n++ * n_dim);
        } else
            for (int g = 0; g < n; g++)
                for (int a = g * n_dim; a < (g + 1) * n_dim && size[g] > 0; a++)
                    at[a] = sum[a] / size[g];
    }
    free(at);
    return n;
}
