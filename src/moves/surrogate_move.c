/* Surrogate: a walk of many steps by a cheap stand-in for the posterior, made
 * by the device, and one decision by the posterior itself.
 *
 * engine/walker.h has the ratio and why it is exact. On a GPU a step of a
 * walk costs a hundredth of one that the engine decides, and the stand-in is
 * within a nat or so of the posterior where curves are of the usual precision,
 * so that half of the walks are accepted however long they are. Where it is
 * worse, walks are shorter: warm-up learns how long. The steps turn torsions
 * (the widths of which warm-up learns here) and move c2; the chain
 * (sampler/chain_surrogate.c) sets out the walk and takes its end as a
 * proposal. All chains of a launch walk at the same steps, one of so many as
 * the weight says. */
#include "moves/surrogate_move.h"

#include <math.h>
#include <stdlib.h>

/* Walks that teach the ratio alone. */
enum { UNTAUGHT = 20 };

static const char *const on_words[] = {"gpu", "all", NULL};

static const tsr_field fields[] = {
    {.name = "weight",
     .type = TSR_FIELD_DOUBLE,
     .offset = offsetof(tsr_surrogate_options, weight),
     .initial = "2",
     .min = 0.0,
     .max = 1e6,
     .doc = "share of the proposals, relative to the other moves; 0: off"},
    {.name = "on",
     .type = TSR_FIELD_CHOICE,
     .offset = offsetof(tsr_surrogate_options, on),
     .initial = "gpu",
     .words = on_words,
     .doc = "devices that walk: where processors compute, walks gain nothing "
            "over the other moves"},
    {.name = "steps",
     .type = TSR_FIELD_INT,
     .offset = offsetof(tsr_surrogate_options, steps),
     .initial = "100",
     .min = 1,
     .max = 1e6,
     .doc = "steps of a walk, at most: fewer where too few ends are accepted"},
    TSR_FIELD_TARGET(tsr_surrogate_options, "0.4"),
    {0}};

/* A chain adds it where there is a surrogate. */
static int surrogate_targets(const void *options, const tsr_topology *topology)
{
    (void)options, (void)topology;
    return 0;
}

static void surrogate_free(void *state)
{
    tsr_surrogate_state *s = state;
    if (s == NULL)
        return;
    free(s->n_seen);
    free(s->log_width);
    free(s->ratio);
    free(s);
}

static void *surrogate_new(const void *options, const tsr_topology *topology,
                           const tsr_prior *prior)
{
    (void)topology, (void)prior;
    tsr_surrogate_state *s = calloc(1, sizeof *s);
    if (s != NULL)
        s->options = *(const tsr_surrogate_options *)options;
    if (s != NULL)
        s->log_steps = log((double)s->options.steps);
    return s;
}

int tsr_surrogate_state_open(tsr_surrogate_state *state, int n_width,
                             int n_ratio)
{
    const double turn_rad = 0.1; /* or of c2 */
    tsr_surrogate_state *s = state;
    s->n_seen = calloc((size_t)n_width, sizeof *s->n_seen);
    s->log_width = calloc((size_t)n_width, sizeof *s->log_width);
    s->ratio = calloc((size_t)n_ratio, sizeof *s->ratio);
    if (s->n_seen == NULL || s->log_width == NULL || s->ratio == NULL)
        return 0;
    s->n_width = n_width, s->n_ratio = n_ratio;
    for (int i = 0; i < n_width; i++)
        s->log_width[i] = log(turn_rad);
    return 1;
}

/* Every width by the share of its steps that was accepted, the length by
 * whether the whole was. */
void tsr_surrogate_state_learn(tsr_surrogate_state *state,
                               const int32_t (*count)[2], int accepted)
{
    const double widest = log(3.0), narrowest = log(1e-5), step_target = 0.3;
    for (int i = 0; i < state->n_width; i++) {
        if (count[i][0] == 0)
            continue;
        const double share = (double)count[i][1] / count[i][0];
        const double x = state->log_width[i] +
                         tsr_move_learn(state->n_seen[i]++, share, step_target);
        state->log_width[i] = fmin(fmax(x, narrowest), widest);
    }
    if (state->n_learnt++ < UNTAUGHT)
        return;
    const double steps =
        state->log_steps +
        tsr_move_learn(state->n_learnt, accepted, state->options.target);
    state->log_steps =
        fmin(fmax(steps, 0.0), log((double)state->options.steps));
}

/* All that it learns comes from counts of walks. */
static void surrogate_adapt(void *state, const tsr_proposal *proposal,
                            double accept_probability)
{
    (void)state, (void)proposal, (void)accept_probability;
}

/* A run may go on on a device that does not walk, and come back. */
void tsr_surrogate_archive_none(tsr_archive *archive)
{
    int size[2] = {0, 0};
    long integer;
    double real;
    tsr_archive_int(archive, size, 2);
    if (size[0] == 0)
        return;
    for (int i = 0; i < 1 + size[0] && !archive->failed; i++)
        tsr_archive_long(archive, &integer, 1);
    for (int i = 0; i < 1 + size[0] + size[1] && !archive->failed; i++)
        tsr_archive_real(archive, &real, 1);
}

static void surrogate_archive(void *state, tsr_archive *archive)
{
    tsr_surrogate_state *s = state;
    int size[2] = {s->n_width, s->n_ratio};
    tsr_archive_int(archive, size, 2);
    if (size[0] == 0) /* saved where nothing walked */
        return;
    if (size[0] != s->n_width || size[1] != s->n_ratio) {
        archive->failed = 1;
        return;
    }
    tsr_archive_long(archive, &s->n_learnt, 1);
    tsr_archive_real(archive, &s->log_steps, 1);
    tsr_archive_long(archive, s->n_seen, (size_t)s->n_width);
    tsr_archive_real(archive, s->log_width, (size_t)s->n_width);
    tsr_archive_real(archive, s->ratio, (size_t)s->n_ratio);
}

const tsr_move_type tsr_move_surrogate = {
    .name = "surrogate",
    .doc = "many steps by a cheap stand-in on the device, one decision by the "
           "posterior",
    .source = "Liu 2001; Christen & Fox 2005",
    .options_size = sizeof(tsr_surrogate_options),
    .fields = fields,
    .state_new = surrogate_new,
    .state_free = surrogate_free,
    .n_target = surrogate_targets,
    .adapt = surrogate_adapt,
    .archive = surrogate_archive};
