#include "sampler/sampler.h"

static const char *const auto_words[] = {"auto", NULL};

const tsr_field tsr_sampler_fields[] = {
    {.name = "chains",
     .type = TSR_FIELD_NUMBER_OR_WORD,
     .offset = offsetof(tsr_sampler_options, chains),
     .initial = "auto",
     .min = 1,
     .max = 100000,
     .words = auto_words,
     .doc = "independent chains; auto: 4, on a GPU at least two for each host "
            "thread"},
    {.name = "warmup",
     .type = TSR_FIELD_INT,
     .offset = offsetof(tsr_sampler_options, warmup),
     .unit = "steps a chain",
     .initial = "5000",
     .min = 0,
     .max = 1e12,
     .doc = "step sizes learn, then stay"},
    {.name = "draws",
     .type = TSR_FIELD_INT,
     .offset = offsetof(tsr_sampler_options, draws),
     .unit = "stored draws a chain",
     .initial = "2000",
     .min = 1,
     .max = 1e9,
     .doc = "after warm-up"},
    {.name = "thin",
     .type = TSR_FIELD_INT,
     .offset = offsetof(tsr_sampler_options, thin),
     .unit = "steps",
     .initial = "10",
     .min = 1,
     .max = 1e9,
     .doc = "from one stored draw to the next"},
    {.name = "temperatures",
     .type = TSR_FIELD_NUMBER_OR_WORD,
     .offset = offsetof(tsr_sampler_options, temperatures),
     .initial = "auto",
     .min = 1.0,
     .max = TSR_MAX_TEMPERATURES,
     .words = auto_words,
     .doc = "replicas of each chain, exchanged; 1: none; auto: 6 with data"},
    {.name = "t_max",
     .type = TSR_FIELD_DOUBLE,
     .offset = offsetof(tsr_sampler_options, t_max),
     .initial = "20",
     .min = 1.001,
     .max = 1e9,
     .doc = "the highest temperature of the likelihood"},
    {.name = "swap_every",
     .type = TSR_FIELD_INT,
     .offset = offsetof(tsr_sampler_options, swap_every),
     .unit = "steps",
     .initial = "10",
     .min = 1,
     .max = 1e9,
     .doc = "between offers of an exchange"},
    {.name = "anneal",
     .type = TSR_FIELD_DOUBLE,
     .offset = offsetof(tsr_sampler_options, anneal),
     .initial = "0.5",
     .min = 0.0,
     .max = 0.9,
     .doc = "share of warm-up in which the likelihood is turned on slowly"},
    {.name = "until",
     .type = TSR_FIELD_STRING,
     .offset = offsetof(tsr_sampler_options, until),
     .doc = "stop before all draws once converged, as rhat<1.01,ess>400"},
    {0}};

int tsr_sampler_n_temp(const tsr_sampler_options *options, int has_data)
{
    const int automatic = 6;
    if (!has_data)
        return 1;
    return options->temperatures.word < 0 ? (int)options->temperatures.number
                                          : automatic;
}
