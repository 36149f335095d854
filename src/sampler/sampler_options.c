/* The section `sampler` of the configuration: its fields, and the values that
 * replace `auto`. */
#include "sampler/sampler.h"

#include <math.h>
#include <string.h>

enum { DRAWS_IN_ALL = 200000, LEAST_DRAWS = 2000 };
const char tsr_sampler_until[] = "rhat<1.01,ess>400";

/* If there are at least WHOLE_GROUPS chains, their number is rounded down to a
 * multiple of MOST_GROUPS, so that all groups have the same size
 * (posterior/setup.c). */
enum { MOST_GROUPS = 8, WHOLE_GROUPS = 32 };

/* Values of auto: fewest chains, temperatures on a CPU, temperatures on a GPU,
 * systems that each half of a thread submits at a time, and replicas with walks
 * by a surrogate. */
enum {
    FEW_CHAINS = 4,
    FEW_RUNGS = 6,
    MANY_RUNGS = 16,
    SYSTEMS_PER_HALF = 64,
    SURROGATE_REPLICAS = 512
};
static const double usual_thin = 10.0, all_atom_thin = 100.0;
static const double t_max_few = 20.0, t_max_many = 1e6;

static const char *const start_words[] = {"auto", "file", "prior", "pool",
                                          NULL};
static const char *const auto_words[] = {"auto", NULL};

const tsr_field tsr_sampler_fields[] = {
    TSR_FIELD(NUMBER_OR_WORD, "chains", tsr_sampler_options, chains,
              .initial = "auto", .min = 1, .max = 100000, .words = auto_words,
              .doc = "number of independent chains; auto: 4, or about one for "
                     "each thread; on a GPU as many as keep every launch busy"),
    TSR_FIELD(INT, "warmup", tsr_sampler_options, warmup,
              .unit = "steps per chain", .initial = "5000", .min = 0,
              .max = 1e12,
              .doc = "length of warm-up, in which step sizes are adapted; "
                     "they stay constant afterwards; half this length where "
                     "populations bring the chains from the prior"),
    TSR_FIELD(
        NUMBER_OR_WORD, "draws", tsr_sampler_options, draws,
        .unit = "draws per chain", .initial = "auto", .min = 1, .max = 1e9,
        .words = auto_words,
        .doc =
            "stored draws after warm-up; auto: until the chains have converged "
            "(until, or rhat<1.01,ess>400), at most 200000 of all chains "
            "together, or 2000 of each where that is more"),
    TSR_FIELD(
        NUMBER_OR_WORD, "thin", tsr_sampler_options, thin, .unit = "steps",
        .initial = "auto", .min = 1, .max = 1e9, .words = auto_words,
        .doc = "steps between two stored draws; auto: 10, and 100 if each draw "
               "costs a curve of all atoms (structure.bodies)"),
    TSR_FIELD(NUMBER_OR_WORD, "temperatures", tsr_sampler_options, temperatures,
              .initial = "auto", .min = 1.0, .max = TSR_MAX_TEMPERATURES,
              .words = auto_words,
              .doc = "replicas per chain, at different temperatures, that "
                     "exchange (replica exchange); 1: no exchange; auto: with "
                     "data 6, on a GPU 16"),
    TSR_FIELD(NUMBER_OR_WORD, "t_max", tsr_sampler_options, t_max,
              .initial = "auto", .min = 1.001, .max = 1e9, .words = auto_words,
              .doc = "highest temperature of the likelihood; auto: 20, on a "
                     "GPU 1e6, which samples the prior"),
    TSR_FIELD(
        BOOL, "evidence", tsr_sampler_options, evidence, .initial = "false",
        .doc = "automatic temperatures and t_max extend to the prior, so that "
               "the marginal likelihood can be computed (tessera summary)"),
    TSR_FIELD(INT, "swap_every", tsr_sampler_options, swap_every,
              .unit = "steps", .initial = "3", .min = 1, .max = 1e9,
              .doc = "interval between attempted replica exchanges"),
    TSR_FIELD(DOUBLE, "anneal", tsr_sampler_options, anneal, .initial = "0.5",
              .min = 0.0, .max = 0.9,
              .doc = "fraction of warm-up in which the likelihood is turned on "
                     "gradually, where chains do not start from the prior"),
    TSR_FIELD(
        CHOICE, "start", tsr_sampler_options, start, .initial = "auto",
        .words = start_words,
        .doc =
            "where chains start: at the structure of the configuration, at "
            "draws of the prior that are tempered to the posterior as "
            "populations before warm-up, or at members of structure.pool, "
            "without populations; auto: the prior where the "
            "temperatures reach it, or where 16 or more replicas start from it "
            "together and no density map fixes the position of the molecule "
            "(docked chains: also with a map)"),
    TSR_FIELD(STRING, "until", tsr_sampler_options, until,
              .doc = "stop before the last draw once the chains have "
                     "converged, as rhat<1.01,ess>400"),
    TSR_FIELD(DOUBLE, "time_limit", tsr_sampler_options, time_limit,
              .unit = "s", .initial = "0", .min = 0.0, .max = 1e9,
              .doc = "time limit of the run; warm-up counts, but is never cut "
                     "short; 0: no limit"),
    {0}};

int tsr_sampler_n_temp(const tsr_sampler_options *options, int has_data)
{
    const tsr_number_or_word *n = &options->temperatures;
    return !has_data ? 1 : n->word < 0 ? (int)n->number : FEW_RUNGS;
}

double tsr_sampler_t_max(const tsr_sampler_options *options)
{
    return options->t_max.word < 0 ? options->t_max.number : t_max_few;
}

long tsr_sampler_thin(const tsr_sampler_options *options)
{
    return (long)(options->thin.word < 0 ? options->thin.number : usual_thin);
}

long tsr_sampler_draws(const tsr_sampler_options *options)
{
    return options->draws.word < 0 ? (long)options->draws.number : LEAST_DRAWS;
}

void tsr_sampler_draws_text(const tsr_sampler_options *options, long done,
                            char text[80])
{
    const int is_open = options->until != NULL || options->draws.word >= 0;
    snprintf(text, 80,
             is_open ? "%ld draws per chain (%ld at most)"
                     : "%ld of %ld draws per chain",
             done, tsr_sampler_draws(options));
}

static void set_if_auto(tsr_number_or_word *value, double number)
{
    if (value->word >= 0)
        *value = (tsr_number_or_word){-1, number};
}

/* If the number of draws is auto, the run ends at convergence. */
static tsr_status resolve_draws(tsr_sampler_options *o, tsr_err *err)
{
    if (o->draws.word < 0)
        return TSR_OK;
    set_if_auto(&o->draws,
                fmax(floor(DRAWS_IN_ALL / o->chains.number), LEAST_DRAWS));
    if (o->until == NULL)
        o->until = strdup(tsr_sampler_until);
    return o->until != NULL ? TSR_OK
                            : tsr_fail(err, TSR_E_NOMEM, "out of memory");
}

tsr_status tsr_sampler_resolve_auto(tsr_sampler_options *options,
                                    const tsr_sampler_problem *problem,
                                    tsr_err *err)
{
    const tsr_sampler_problem *p = problem;
    set_if_auto(&options->thin, p->is_all_atom ? all_atom_thin : usual_thin);
    /* fits_many: the devices' memory suffices for a ladder of many rungs */
    const int fits_many =
        p->is_gpu && p->has_data &&
        p->capacity >= (double)FEW_CHAINS * MANY_RUNGS * p->n_state;
    const int has_many_rungs = fits_many || (options->evidence && p->has_data);
    set_if_auto(&options->temperatures,
                has_many_rungs ? MANY_RUNGS : FEW_RUNGS);
    const int n_system = tsr_sampler_n_temp(options, p->has_data) * p->n_state;
    const int reaches_prior =
        has_many_rungs &&
        (options->evidence || options->temperatures.number >= MANY_RUNGS);
    double most = p->min_beta > 0.0 ? 0.5 / p->min_beta : HUGE_VAL;
    set_if_auto(&options->t_max,
                fmin(reaches_prior ? t_max_many : t_max_few, most));
    double n = fmax(FEW_CHAINS, p->n_thread);
    if (p->is_gpu && p->has_data) {
        int half = (SYSTEMS_PER_HALF + n_system - 1) / n_system;
        n = 2.0 * half * p->n_thread;
        if (p->uses_surrogate)
            n = fmin(n, fmax(floor((double)SURROGATE_REPLICAS * p->n_state /
                                   n_system),
                             p->n_thread));
        n = fmin(n, floor(p->capacity / n_system));
    }
    if (n >= WHOLE_GROUPS)
        n -= fmod(n, MOST_GROUPS);
    set_if_auto(&options->chains, fmax(n, FEW_CHAINS));
    const int is_population =
        p->min_beta == 0.0 && !p->is_placed &&
        options->chains.number * n_system >= TSR_POPULATION_LEAST * p->n_state;
    if (options->start == TSR_START_AUTO)
        options->start = p->has_data && (options->t_max.number >= t_max_many ||
                                         is_population)
                             ? TSR_START_PRIOR
                             : TSR_START_FILE;
    return resolve_draws(options, err);
}
