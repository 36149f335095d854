/* The likelihood term `gyration`: a measured radius of gyration, normal errors.
 *
 *     log L = log Normal(R; mean, sd^2),   R^2 = sum_k w_k Rg_k^2
 *
 * over the states k of the ensemble with their weights w_k. Rg_k is computed
 * from the bodies as points, so it is a little less than that of all atoms. */
#include "likelihood/term.h"

#include <gsl/gsl_randist.h>
#include <math.h>
#include <stdio.h>

typedef struct {
    int kind; /* the options of every term begin with it */
    double mean, sd;
} gyration_options;

typedef struct {
    tsr_term term; /* every term begins with it */
    const tsr_topology *topology;
    double coord, mean, sd;
} gyration_term;

/* The results for one prediction. */
typedef struct {
    double radius_ang;
} gyration_fit;

static const tsr_field fields[] = {
    TSR_FIELD(DOUBLE, "mean", gyration_options, mean, .unit = "Angstrom",
              .min = 0.0, .max = 1000.0,
              .doc = "the measured radius of gyration"),
    TSR_FIELD(DOUBLE, "sd", gyration_options, sd, .unit = "Angstrom",
              .min = 0.0, .max = 1000.0, .doc = "its standard deviation"),
    {0}};

static tsr_status term_read(const tsr_term_source *source, tsr_term *term,
                            tsr_err *err)
{
    const gyration_options *o = (const void *)source->options;
    gyration_term *t = (gyration_term *)term;
    if (!(o->mean > 0.0) || !(o->sd > 0.0))
        return tsr_fail(err, TSR_E_CONFIG,
                        "data.%d: a radius of gyration needs mean and sd, in "
                        "Angstrom",
                        source->number);
    t->topology = source->topology;
    t->mean = o->mean;
    t->sd = o->sd;
    term->label = "radius of gyration";
    term->n_point = 1;
    term->coord = &t->coord;
    term->observed = &t->mean;
    term->sigma = &t->sd;
    return TSR_OK;
}

static void term_print(const tsr_term_options *options, FILE *out)
{
    const gyration_options *o = (const void *)options;
    fprintf(out,
            "The radius of gyration was measured as %g \xc2\xb1 %g \xc3\x85. ",
            o->mean, o->sd);
}

static tsr_status term_fit(const tsr_term *term, const void *from,
                           const tsr_prediction *prediction,
                           const double *theta, void *fit, tsr_err *err)
{
    const tsr_topology *topology = ((const gyration_term *)term)->topology;
    gyration_fit *f = fit;
    double sum = 0.0;
    (void)from, (void)theta, (void)err;
    for (int k = 0; k < prediction->n_state; k++) {
        double rg = tsr_conformation_rg(topology, prediction->state[k], NULL);
        sum += prediction->weight[k] * rg * rg;
    }
    f->radius_ang = sqrt(sum);
    return TSR_OK;
}

static double term_chi2(const tsr_term *term, const void *fit)
{
    const gyration_term *t = (const gyration_term *)term;
    const gyration_fit *f = fit;
    double z = (f->radius_ang - t->mean) / t->sd;
    return z * z;
}

static double term_log_lik(const tsr_term *term, const void *fit,
                           const double *theta)
{
    const double log_root_2pi = 0.9189385332046727;
    const double sd = ((const gyration_term *)term)->sd;
    (void)theta;
    return -0.5 * term_chi2(term, fit) - log(sd) - log_root_2pi;
}

static void term_predict(const tsr_term *term, const tsr_prediction *prediction,
                         const void *fit, const double *theta, double *value)
{
    (void)term, (void)prediction, (void)theta;
    value[0] = ((const gyration_fit *)fit)->radius_ang;
}

static double term_draw_point(const tsr_term *term, const double *theta, int k,
                              double value, gsl_rng *rng)
{
    (void)theta, (void)k;
    return value + gsl_ran_gaussian(rng, ((const gyration_term *)term)->sd);
}

const tsr_term_type tsr_term_gyration = {.name = "gyration",
                                         .doc = "a measured radius of gyration",
                                         .source = "Guinier 1939",
                                         .fields = fields,
                                         .needs = TSR_NEEDS_STATES,
                                         .observable = "gyration_radius",
                                         .observable_unit = "Angstrom",
                                         .axis = "gyration_point",
                                         .title = "Radius of gyration",
                                         .size = sizeof(gyration_term),
                                         .fit_size = sizeof(gyration_fit),
                                         .read = term_read,
                                         .print_assumptions = term_print,
                                         .fit = term_fit,
                                         .log_lik = term_log_lik,
                                         .chi2 = term_chi2,
                                         .predict = term_predict,
                                         .draw_point = term_draw_point};
