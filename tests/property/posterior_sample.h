/* A small posterior made up for tests of the sampler: a chain of the sample
 * prior, data from one structure or the mean of several, the reference engine
 * or the page-tile engine. Open (then c1 and c2, if they matter), make
 * data, start, clear. */
#ifndef TESTS_POSTERIOR_SAMPLE_H
#define TESTS_POSTERIOR_SAMPLE_H

#include "gpu/engine_device.h"
#include "sampler/sampler.h"
#include "tests/objects.h"
#include "tests/property/prior_sampler.h"
#include "tests/saxs_likelihood.h"

#include <gsl/gsl_cdf.h>
#include <gsl/gsl_randist.h>
#include <stdio.h>

enum { POSTERIOR_POINTS = 24 };

typedef struct {
    tsr_prior_table table;
    tsr_topology *t;
    tsr_conformation *extended;
    tsr_prior *prior;
    tsr_form_factor_table *factors;
    tsr_form_factor_table *components; /* NULL until posterior_contrast */
    tsr_parameter contrast[TSR_N_CONTRAST];
    double *exposure; /* [n_body] */
    tsr_scattering scattering;
    tsr_saxs saxs;
    double q[POSTERIOR_POINTS], intensity[POSTERIOR_POINTS];
    double sigma[POSTERIOR_POINTS];
    unsigned char option[TSR_N_MOVE][256];
    const void *options[TSR_N_MOVE];
    tsr_likelihood *likelihood;
    tsr_engine_group share;
    tsr_device *device;
    tsr_target target;
} posterior_sample;

/* F falls like a Gaussian, about as large as real ones. */
static inline tsr_form_factor_table *posterior_factors(void)
{
    enum { N_Q = 101 };
    tsr_form_factor_table *f =
        tsr_form_factor_new(TSR_BODIES_TWO, 1, N_Q, 0.01);
    assert_non_null(f);
    for (int t = 0; t < f->n_type; t++)
        for (int k = 0; k < N_Q; k++) {
            double q = 0.01 * k, a = (6.0 + t) * exp(-2.0 * q * q);
            f->amplitude[t * N_Q + k] = a;
            f->excess[t * N_Q + k] = a * a * 0.3 * q * q;
        }
    return f;
}

/* A field of a move's options; those of the sample prior have several modes,
 * which large turns change between. */
static inline void posterior_set(posterior_sample *s, int move,
                                 const char *name, double value)
{
    const tsr_field *field = tsr_move_registry[move]->fields;
    while (strcmp(field->name, name) != 0)
        field++;
    memcpy(s->option[move] + field->offset, &value, sizeof value);
}

/* flexible: ranges, NULL: all. */
static inline void posterior_open(posterior_sample *s, const char *sequence,
                                  const tsr_strings *flexible,
                                  tsr_prior_options prior)
{
    memset(s, 0, sizeof *s);
    sample_prior_table(&s->table);
    sample_chain(sequence, flexible, &s->table, &s->t, &s->extended);
    MAKE(tsr_prior, s->prior, tsr_prior_new, s->t, &s->table, &prior, 0.0);
    s->factors = own_tsr_form_factor(posterior_factors());
    s->scattering = (tsr_scattering){.plain = s->factors};
    for (int k = 0; k < POSTERIOR_POINTS; k++)
        s->q[k] = 0.02 + 0.48 * k / (POSTERIOR_POINTS - 1);
    s->saxs = (tsr_saxs){.n = POSTERIOR_POINTS,
                         .q = s->q,
                         .intensity = s->intensity,
                         .sigma = s->sigma};
    for (int m = 0; m < TSR_N_MOVE; m++) {
        OK(tsr_fields_init(tsr_move_registry[m]->fields, s->option[m], &err));
        s->options[m] = s->option[m];
    }
    posterior_set(s, 0, "uniform", 0.5); /* of pivot */
    s->target = (tsr_target){.topology = s->t,
                             .first = s->extended,
                             .prior = s->prior,
                             .move_options = s->options,
                             .seed = 5};
}

/* The shipped components instead, with exposures of the extended chain. */
static inline void posterior_contrast(posterior_sample *s,
                                      const tsr_contrast_options *options)
{
    int *type = array((size_t)s->t->n_body, sizeof *type);
    OK(tsr_contrast_priors(options, s->contrast, &err));
    MAKE(tsr_form_factor, s->components, tsr_form_factor_read,
         "data/components_two_body.dat");
    s->exposure = array((size_t)s->t->n_body, sizeof *s->exposure);
    for (int b = 0; b < s->t->n_body; b++)
        type[b] = s->t->body[b].type;
    tsr_form_factor_exposures(s->components, s->t->n_body, type,
                              (const double(*)[3])s->extended->body,
                              s->exposure);
    s->scattering = (tsr_scattering){.component = s->components,
                                     .exposure = s->exposure,
                                     .contrast = s->contrast};
    s->target.contrast = s->contrast;
}

/* Both inferred. */
static inline tsr_contrast_options posterior_infer_contrast(void)
{
    tsr_contrast_options o;
    OK(tsr_fields_init(tsr_contrast_fields, &o, &err));
    o.c1.word = o.c2.word = 0;
    return o;
}

/* c I(q) + b of the weighted mean at c1, c2 (contrast; NULL: where they
 * start), with errors of s times sigma = (e + 2 e q) I(0). Returns I(0). */
static inline double posterior_data_at(posterior_sample *s, int n_state,
                                       const tsr_conformation *const *state,
                                       const double *weight,
                                       const double *contrast, double e,
                                       double scale, double background,
                                       double log_s, gsl_rng *rng)
{
    double i0 = 0.0, one;
    for (int k = -1; k < POSTERIOR_POINTS; k++) {
        double mean = 0.0, q = k < 0 ? 0.0 : s->q[k];
        for (int a = 0; a < n_state; a++) {
            OK(tsr_scattering_intensity(&s->scattering, s->t, state[a],
                                        contrast, q, &one, &err));
            mean += weight[a] * one;
        }
        if (k < 0) {
            i0 = mean;
            continue;
        }
        s->sigma[k] = (e + 2.0 * e * q) * i0;
        s->intensity[k] = scale * mean + background * i0 +
                          gsl_ran_gaussian(rng, exp(log_s) * s->sigma[k]);
    }
    return i0;
}

static inline double posterior_data(posterior_sample *s, int n_state,
                                    const tsr_conformation *const *state,
                                    const double *weight, double e,
                                    double scale, double background,
                                    double log_s, gsl_rng *rng)
{
    return posterior_data_at(s, n_state, state, weight, NULL, e, scale,
                             background, log_s, rng);
}

/* Of the processor, or what TESSERA_TEST_DEVICE names. */
static inline void posterior_open_device(posterior_sample *s)
{
    const char *choice = getenv("TESSERA_TEST_DEVICE");
    MAKE(tsr_device, s->device, tsr_device_open,
         choice != NULL ? choice : "cpu");
}

/* Makes the likelihood (noise scale inferred where width > 0) and an engine
 * for n_chain chains of the target's n_temp and n_state. */
static inline void posterior_start_with(posterior_sample *s, double width,
                                        int n_chain, int on_device,
                                        int nuisance)
{
    tsr_data_set set = {.saxs = &s->saxs,
                        .noise = noise_of("measured"),
                        .background = {TSR_BACKGROUND_FLAT, 0.0},
                        .nuisance = nuisance};
    if (width > 0.0)
        noise_put(&set.noise, "scale_width", width);
    else
        noise_set(&set.noise, "scale", "1");
    MAKE(tsr_likelihood, s->likelihood, saxs_likelihood, s->t, &s->scattering,
         tsr_topology_reach(s->t, s->extended), 1, &set);
    const tsr_engine_spec spec =
        probe_spec(s->likelihood, s->t->n_body,
                   n_chain * tsr_target_n_temp(&s->target) *
                       tsr_target_n_state(&s->target));
    if (on_device) {
        posterior_open_device(s);
        MAKE(tsr_engine, s->share.engine, tsr_engine_page_tile_new, &spec,
             s->device, NULL);
    } else {
        MAKE(tsr_engine, s->share.engine, tsr_engine_reference_new, &spec);
    }
    s->share.n_chain = n_chain;
    s->target.likelihood = s->likelihood;
    s->target.n_engine = 1;
    s->target.engines = &s->share;
}

static inline void posterior_start(posterior_sample *s, double width,
                                   int n_chain, int on_device)
{
    posterior_start_with(s, width, n_chain, on_device, TSR_NUISANCE_AUTO);
}

/* c1 and c2 of a chain; zeros where it has none. */
static inline const double *posterior_contrast_of(const tsr_chain_view *view)
{
    static const double none[TSR_N_CONTRAST] = {0.0, 0.0};
    const double *value =
        tsr_parameters_contrast(view->parameters, view->point->theta);
    return value != NULL ? value : none;
}

/* ---- a finer model above it (sampler/all_atom_chain.h) ---- */

/* Form factors that fall otherwise: a model beside the other. */
static inline void posterior_sharpen(tsr_form_factor_table *f)
{
    for (int t = 0; t < f->n_type; t++)
        for (int k = 0; k < f->n_q; k++)
            f->amplitude[t * f->n_q + k] *=
                exp((t % 2 == 0 ? -0.3 : 0.15) * f->dq_inv_ang * k);
}

static inline tsr_status posterior_finer(void *batch, const tsr_conformation *c,
                                         double *partial, tsr_err *err)
{
    return tsr_batch_set(batch, 0, (const double(*)[3])c->body, partial, err);
}

/* Draws of `coarse` become those of `fine`, another posterior of the same
 * structures, whose data it gets before both are started; batch: of fine's
 * engine, for one thread. */
static inline void posterior_share_data(posterior_sample *coarse,
                                        const posterior_sample *all_atom)
{
    memcpy(coarse->intensity, all_atom->intensity, sizeof all_atom->intensity);
    memcpy(coarse->sigma, all_atom->sigma, sizeof all_atom->sigma);
}

static inline void posterior_put_above(posterior_sample *coarse,
                                       const posterior_sample *all_atom,
                                       tsr_batch *batch,
                                       tsr_all_atom_model *model)
{
    *model = (tsr_all_atom_model){
        .target = coarse->target, .context = batch, .profile = posterior_finer};
    model->target.likelihood = all_atom->likelihood;
    model->target.n_engine = 0;
    model->target.all_atom = model;
    coarse->target.all_atom = model;
}

static inline prior_sampler prior_of(const posterior_sample *s)
{
    return (prior_sampler){
        .t = s->t, .table = &s->table, .prior = s->prior, .first = s->extended};
}

/* A sampler with its record, in one call each. */
typedef struct {
    tsr_sampler *sampler;
    tsr_record *record;
} posterior_run;

static inline posterior_run posterior_run_new(const posterior_sample *s,
                                              int n_chain, int n_thread,
                                              int capacity)
{
    posterior_run run;
    MAKE(tsr_record, run.record, tsr_record_new, &s->target, n_chain, capacity);
    MAKE(tsr_sampler, run.sampler, tsr_sampler_new, &s->target, n_chain,
         n_thread, NULL);
    return run;
}

static inline void posterior_advance(posterior_run run, int n_draw, long thin,
                                     int warm)
{
    int n_done;
    OK(tsr_sampler_advance(run.sampler, run.record, n_draw, thin, warm, NULL,
                           NULL, &n_done, &err));
    assert_int_equal(n_done, n_draw);
}

/* Warm-up of n_step steps as a run has it. */
static inline void posterior_warm_up(posterior_run run, long n_step)
{
    tsr_sampler_plan_warmup(run.sampler, n_step, 0.5);
    posterior_advance(run, 1, n_step, 1);
    tsr_sampler_counts_reset(run.sampler);
}

#endif
