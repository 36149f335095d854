#include "likelihood/noise.h"

const tsr_noise_type *const tsr_noise_registry[] = {&tsr_noise_measured, NULL};

static const char *const model_words[] = {"measured", NULL};
static const char *const infer_words[] = {"infer", NULL};

const tsr_field tsr_noise_fields[] = {
    {.name = "model",
     .type = TSR_FIELD_CHOICE,
     .offset = offsetof(tsr_noise_options, model),
     .initial = "measured",
     .words = model_words,
     .doc = "measured: sigma = s sigma_exp"},
    {.name = "scale",
     .type = TSR_FIELD_NUMBER_OR_WORD,
     .offset = offsetof(tsr_noise_options, scale),
     .initial = "infer",
     .min = 1e-3,
     .max = 1e3,
     .words = infer_words,
     .doc = "s: inferred with a log-normal prior around 1, or fixed"},
    {.name = "scale_width",
     .type = TSR_FIELD_DOUBLE,
     .offset = offsetof(tsr_noise_options, scale_width),
     .initial = "0.5",
     .min = 1e-3,
     .max = 10.0,
     .doc = "standard deviation of log s in its prior"},
    {0}};
