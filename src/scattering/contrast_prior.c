/* The entries c1 and c2 of the parameter table, and their options in the
 * configuration.
 *
 * Each is fixed, or has a normal prior that is cut to a range and normalised
 * there. Where both are inferred, the data often leave a narrow ridge, so
 * they ask for steps along the principal axes of their covariance. */
#include "scattering/contrast_prior.h"

#include <gsl/gsl_cdf.h>
#include <math.h>

static const char *const infer_words[] = {"infer", NULL};
static const char *const auto_words[] = {"infer", "auto", NULL};
static const double pi = 3.14159265358979323846;

const tsr_field tsr_contrast_fields[] = {
    TSR_FIELD(NUMBER_OR_WORD, "c1", tsr_contrast_options, c1, .initial = "1",
              .min = 0.8, .max = 1.2, .words = infer_words,
              .doc =
                  "scale of the radius of the displaced solvent, as in FoXS"),
    TSR_FIELD(DOUBLE, "c1_mean", tsr_contrast_options, c1_mean, .initial = "1",
              .min = 0.8, .max = 1.2,
              .doc = "of its prior, a normal density cut to c1_range"),
    TSR_FIELD(DOUBLE, "c1_width", tsr_contrast_options, c1_width,
              .initial = "0.02", .min = 1e-6, .max = 1e3,
              .doc = "standard deviation before the cut"),
    TSR_FIELD(PAIR, "c1_range", tsr_contrast_options, c1_range,
              .initial = "[0.95, 1.05]", .min = 0.8, .max = 1.2,
              .doc = "the prior is zero beyond"),
    TSR_FIELD(
        NUMBER_OR_WORD, "c2", tsr_contrast_options, c2, .initial = "auto",
        .min = -10.0, .max = 20.0, .words = auto_words,
        .doc = "hydration: waters' contrast on each exposed atom, as in FoXS; "
               "auto: infer where there is a curve, 0 without one and with "
               "structure.form_factors"),
    TSR_FIELD(DOUBLE, "c2_mean", tsr_contrast_options, c2_mean, .initial = "1",
              .min = -10.0, .max = 20.0,
              .doc = "of its prior, a normal density cut to c2_range"),
    TSR_FIELD(DOUBLE, "c2_width", tsr_contrast_options, c2_width,
              .initial = "1.5", .min = 1e-6, .max = 1e3,
              .doc = "standard deviation before the cut"),
    TSR_FIELD(PAIR, "c2_range", tsr_contrast_options, c2_range,
              .initial = "[0, 4]", .min = -10.0, .max = 20.0,
              .doc = "the prior is zero beyond"),
    {0}};

static tsr_status make(tsr_number_or_word value, double mean, double width,
                       const double range[2], tsr_parameter *out, tsr_err *err)
{
    out->infer = value.word == TSR_CONTRAST_INFER;
    out->start = value.number;
    out->shape = TSR_PRIOR_CUT_NORMAL;
    out->mean = mean, out->width = width;
    out->low = range[0], out->high = range[1];
    out->scope = TSR_CHANGES_PROFILE;
    if (!out->infer)
        return TSR_OK;
    if (!(range[0] < range[1]))
        return tsr_fail(err, TSR_E_CONFIG,
                        "contrast.%s_range: [%g, %g] leaves nothing to infer; "
                        "widen it, or give %s a number",
                        out->name, range[0], range[1], out->name);
    if (mean < range[0] || mean > range[1])
        return tsr_fail(err, TSR_E_CONFIG,
                        "contrast.%s_mean: %g is not in %s_range [%g, %g], "
                        "outside of which the prior is zero",
                        out->name, mean, out->name, range[0], range[1]);
    double inside = gsl_cdf_ugaussian_P((range[1] - mean) / width) -
                    gsl_cdf_ugaussian_P((range[0] - mean) / width);
    out->start = mean;
    out->log_norm = -0.5 * log(2.0 * pi) - log(width) - log(inside);
    out->step = TSR_STEP_AXES;
    return TSR_OK;
}

tsr_status tsr_contrast_priors(const tsr_contrast_options *options,
                               tsr_parameter *parameter, tsr_err *err)
{
    const tsr_contrast_options *o = options;
    parameter[TSR_C1] = (tsr_parameter){
        .name = "c1", .doc = "displaced solvent c1; scale of its radius"};
    parameter[TSR_C2] = (tsr_parameter){
        .name = "c2", .doc = "hydration c2; waters' contrast per exposed atom"};
    TSR_TRY(make(o->c1, o->c1_mean, o->c1_width, o->c1_range,
                 &parameter[TSR_C1], err));
    return make(o->c2, o->c2_mean, o->c2_width, o->c2_range, &parameter[TSR_C2],
                err);
}

int tsr_contrast_is_plain(const tsr_parameter *parameter)
{
    const tsr_parameter *p = parameter;
    return !p[TSR_C1].infer && !p[TSR_C2].infer && p[TSR_C1].start == 1.0 &&
           p[TSR_C2].start == 0.0;
}
