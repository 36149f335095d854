/* Importance weights. Each stored draw keeps its structure; the likelihood of
 * the new data over that of the old, nuisances integrated out of both, is its
 * weight. What the run integrated out of its own model's error is part of both.
 * Before that the stored curve must give back the stored likelihood:
 * else config.yaml and trace.h5 do not belong together, and the weights would
 * be wrong without a sign of it. */
#include "analysis/reweight.h"

#include "core/random.h"
#include "likelihood/marginal.h"

#include <math.h>
#include <stdlib.h>

/* Beyond this the stored curve is not what the likelihood was made from (nat);
 * rounding of the curves to single precision leaves some 1e-3. */
static const double most_difference = 0.1;

typedef struct {
    const tsr_reweight_options *options;
    tsr_reweight *out;
    tsr_saxs_term *before, *after;
    tsr_fit *fit_before, *fit_after;
    double *log_lik;                     /* stored; NULL: not compared */
    double *theta[TSR_NOISE_PARAMETERS]; /* stored values; NULL: fixed */
    gsl_rng *rng;
    int has_looked; /* at the error of interpolation */
} work;

void tsr_reweight_free(tsr_reweight *r)
{
    if (r == NULL)
        return;
    free(r->log_weight);
    free(r->scale);
    free(r->background);
    free(r->chi2);
    for (int i = 0; i < TSR_NOISE_PARAMETERS; i++)
        free(r->noise[i]);
    free(r);
}

static tsr_reweight *reweight_new(long n, const tsr_saxs_term *term)
{
    const size_t size = (size_t)n * sizeof(double);
    tsr_reweight *r = calloc(1, sizeof *r);
    if (r == NULL)
        return NULL;
    r->n = n;
    r->log_weight = malloc(size);
    r->scale = malloc(size);
    r->background = malloc(size);
    r->chi2 = malloc(size);
    int is_good = r->log_weight != NULL && r->scale != NULL &&
                  r->background != NULL && r->chi2 != NULL;
    for (int i = 0; i < term->n_noise; i++)
        if (term->term.parameter[i].infer) {
            r->noise_name[i] = term->term.parameter[i].name;
            r->noise[i] = malloc(size);
            is_good &= r->noise[i] != NULL;
        }
    if (is_good)
        return r;
    tsr_reweight_free(r);
    return NULL;
}

/* ---- the likelihood that is stored ---- */

/* The term at a draw's own nuisances, as the run had it. */
static double stored_log(work *w, size_t at, const double *curve)
{
    const tsr_stored_curve *s = w->options->stored;
    const tsr_saxs_term *t = w->before;
    double theta[TSR_TERM_PARAMETERS];
    tsr_term_start(&t->term, theta);
    for (int i = 0; i < t->n_noise; i++)
        if (w->theta[i] != NULL)
            theta[i] =
                tsr_parameter_theta(&t->term.parameter[i], w->theta[i][at]);
    theta[t->n_noise] = s->scale[at];
    theta[t->n_noise + 1] = s->background[at];
    t->noise->fit(t->state, curve, theta, w->fit_before);
    return tsr_saxs_log_lik(t, w->fit_before, theta);
}

static tsr_status compare(work *w, size_t at, const double *curve, tsr_err *err)
{
    if (w->log_lik == NULL)
        return TSR_OK;
    double again = stored_log(w, at, curve);
    double difference = fabs(again - w->log_lik[at]);
    w->out->recovered = fmax(w->out->recovered, difference);
    if (difference <= most_difference)
        return TSR_OK;
    return tsr_fail(err, TSR_E_DATA,
                    "draw %zu has the log likelihood %.3f, and its stored "
                    "curve gives %.3f: config.yaml is not that of this trace, "
                    "or one of them was changed; run again",
                    at, w->log_lik[at], again);
}

/* ---- draw by draw ---- */

static tsr_status visit(void *context, size_t at, const double *curve,
                        tsr_err *err)
{
    work *w = context;
    tsr_reweight *r = w->out;
    tsr_nuisance_draw drawn = {(double)NAN, (double)NAN, {0.0}};
    tsr_status status = compare(w, at, curve, err);
    if (status != TSR_OK)
        return status;
    double before =
        tsr_marginal_log(w->before, curve, w->fit_before, NULL, NULL);
    double after =
        tsr_marginal_log(w->after, curve, w->fit_after, w->rng, &drawn);
    if (!isfinite(before))
        return tsr_fail(err, TSR_E_NUMERIC,
                        "draw %zu has no likelihood under the run's own data",
                        at);
    r->log_weight[at] = after - before;
    r->scale[at] = drawn.scale;
    r->background[at] = drawn.background;
    r->chi2[at] = w->fit_after->chi2 / w->after->saxs->n;
    for (int i = 0; i < TSR_NOISE_PARAMETERS; i++)
        if (r->noise[i] != NULL)
            r->noise[i][at] = tsr_parameter_value(&w->after->term.parameter[i],
                                                  drawn.theta[i]);
    if (!w->has_looked)
        status = tsr_curve_operator_check(&w->options->stored->saxs,
                                          w->options->after.saxs, curve,
                                          drawn.scale, &r->interpolation, err);
    w->has_looked = 1;
    return status;
}

/* ---- setting up ---- */

static tsr_status make_term(const tsr_stored_curve *run,
                            const tsr_data_set *set, int number,
                            tsr_saxs_term **out, tsr_fit **fit, tsr_err *err)
{
    double *matrix = NULL;
    tsr_term *term = NULL;
    tsr_status status = tsr_saxs_term_new(set, number, &term, err);
    *out = (tsr_saxs_term *)term;
    TSR_THEN(status, tsr_curve_operator(&run->saxs, set->saxs, &matrix, err));
    TSR_THEN(status, tsr_saxs_term_prepare(*out, run->n, matrix, err));
    TSR_THEN(status, tsr_saxs_term_doubt(*out, &run->error, err));
    if (status != TSR_OK)
        return status;
    *fit = tsr_saxs_fit_new(*out);
    return tsr_allocated(*fit, err);
}

static tsr_status check_temperature(const tsr_stored_curve *s, tsr_err *err)
{
    double *value;
    tsr_status status = tsr_stored_curve_scalar(s, TSR_TRACE_SAMPLE_STATS,
                                                "temperature", &value, err);
    const size_t n = (size_t)s->n_chain * (size_t)s->n_draw;
    for (size_t i = 0; value != NULL && i < n && status == TSR_OK; i++)
        if (value[i] != 1.0)
            status = tsr_fail(err, TSR_E_DATA,
                              "the draws were made at the likelihood "
                              "temperature %g; reweighting needs draws of the "
                              "posterior itself",
                              value[i]);
    free(value);
    return status;
}

static tsr_status read_stored(work *w, tsr_err *err)
{
    const tsr_stored_curve *s = w->options->stored;
    tsr_status status = check_temperature(s, err);
    if (w->options->n_data > 1) {
        w->out->recovered = (double)NAN;
        return status;
    }
    TSR_THEN(status, tsr_stored_curve_scalar(s, TSR_TRACE_SAMPLE_STATS,
                                             "log_lik", &w->log_lik, err));
    for (int i = 0; i < w->before->n_noise && status == TSR_OK; i++) {
        char name[64];
        tsr_stored_curve_name(w->before->term.parameter[i].name, s->data,
                              sizeof name, name);
        if (!w->before->term.parameter[i].infer)
            continue;
        status = tsr_stored_curve_scalar(s, TSR_TRACE_POSTERIOR, name,
                                         &w->theta[i], err);
        if (status == TSR_OK && w->theta[i] == NULL)
            status = tsr_fail(err, TSR_E_DATA, "the trace has no %s", name);
    }
    return status;
}

static void work_clear(work *w)
{
    if (w->before != NULL)
        tsr_term_free(&w->before->term);
    if (w->after != NULL)
        tsr_term_free(&w->after->term);
    free(w->fit_before);
    free(w->fit_after);
    free(w->log_lik);
    for (int i = 0; i < TSR_NOISE_PARAMETERS; i++)
        free(w->theta[i]);
    gsl_rng_free(w->rng);
}

tsr_status tsr_reweight_make(const tsr_reweight_options *options,
                             tsr_reweight **out, tsr_err *err)
{
    const tsr_stored_curve *s = options->stored;
    work w = {.options = options,
              .rng = tsr_rng_new((uint64_t)options->seed, 0)};
    tsr_data_set before = options->before;
    *out = NULL;
    before.saxs = &s->saxs;
    tsr_status status =
        make_term(s, &before, s->data, &w.before, &w.fit_before, err);
    TSR_THEN(status, make_term(s, &options->after, s->data, &w.after,
                               &w.fit_after, err));
    if (status == TSR_OK) {
        w.out = reweight_new((long)s->n_chain * s->n_draw, w.after);
        if (w.out == NULL || w.rng == NULL)
            status = tsr_no_memory(err);
    }
    TSR_THEN(status, read_stored(&w, err));
    TSR_THEN(status, tsr_stored_curve_each(s, visit, &w, err));
    if (status != TSR_OK) {
        tsr_reweight_free(w.out);
        w.out = NULL;
    }
    work_clear(&w);
    *out = w.out;
    return status;
}
