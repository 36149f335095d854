/* Surrogate: a walk of many steps by a cheap stand-in for the posterior, made
 * by the device, and one decision by the posterior itself.
 *
 * surrogate/walker.h has the ratio and why it is exact. On a GPU a step of a
 * walk costs a hundredth of one that the engine decides, on a processor a
 * fifth in a molecule of 200 residues, and the stand-in is within a nat or so
 * of the posterior where curves are of the usual precision, so that half of the
 * walks are accepted however long they are. Where it is worse, walks are
 * shorter: warm-up learns how long. The steps turn torsions (the widths of
 * which warm-up learns here) and move c2; the chain (sampler/chain.c)
 * sets out the walk and takes its end as a proposal. All chains of a launch
 * walk at the same steps, one of so many as the weight says. */
#include "surrogate/surrogate_move.h"

#include <math.h>
#include <stdlib.h>

/* Walks that teach the ratio alone. */
enum { UNTAUGHT = 20 };

static const char *const on_words[] = {"auto", "gpu", "all", NULL};

static const tsr_field fields[] = {
    TSR_FIELD(DOUBLE, "weight", tsr_surrogate_options, weight, .initial = "3",
              .min = 0.0, .max = 1e6,
              .doc = "share of the proposals, relative to the other moves (on "
                     "processors a third of it); 0: off"),
    TSR_FIELD(
        CHOICE, "on", tsr_surrogate_options, on, .initial = "auto",
        .words = on_words,
        .doc =
            "devices that walk; auto: GPUs, and processors where the molecule "
            "has at least 450 bodies"),
    TSR_FIELD(
        INT, "steps", tsr_surrogate_options, steps, .initial = "100", .min = 1,
        .max = 1e6,
        .doc =
            "steps of a walk, at most: fewer where too few ends are accepted"),
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
    free(s->size);
    free(s->n_step);
    free(s->factor);
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
                             int n_linker, const int *size, int n_ratio)
{
    const double turn_rad = 0.1; /* or of c2 */
    const double step = 0.03;    /* rad, or in units of 10 Angstrom */
    tsr_surrogate_state *s = state;
    s->size = calloc((size_t)n_linker + 1, sizeof *s->size);
    s->n_step = calloc((size_t)n_linker + 1, sizeof *s->n_step);
    s->factor = calloc((size_t)n_linker + 1, sizeof *s->factor);
    s->n_seen = calloc((size_t)n_width, sizeof *s->n_seen);
    s->log_width = calloc((size_t)n_width, sizeof *s->log_width);
    s->ratio = calloc((size_t)n_ratio, sizeof *s->ratio);
    if (s->n_seen == NULL || s->log_width == NULL || s->ratio == NULL ||
        s->size == NULL || s->n_step == NULL || s->factor == NULL)
        return 0;
    s->n_width = n_width, s->n_ratio = n_ratio, s->n_linker = n_linker;
    for (int l = 0; l < n_linker; l++) {
        s->size[l] = size[l];
        for (int i = 0; i < size[l]; i++)
            s->factor[l][i * (i + 1) / 2 + i] = step;
    }
    for (int i = 0; i < n_width; i++)
        s->log_width[i] = log(turn_rad);
    return 1;
}

/* F becomes a factor of F (1 + gain A) F', A the mean of what steps say: a
 * direction u = F^-1 step grows where steps along it were accepted more often
 * than asked for, and shrinks where less (Vihola 2012). */
static void learn_factor(double *factor, int size, const float *seen,
                         int n_step, long n_learnt)
{
    const double gain = fmin(1.0, size * pow((double)n_learnt + 1.0, -0.6));
    double a[8][8], f[8][8] = {{0.0}}, sum[8][8];
    for (int i = 0; i < size; i++)
        for (int j = 0; j <= i; j++) {
            const int at = i * (i + 1) / 2 + j;
            f[i][j] = factor[at];
            a[i][j] = a[j][i] =
                (i == j) + gain * (double)seen[at] / (double)n_step;
        }
    for (int i = 0; i < size; i++)
        for (int j = 0; j < size; j++) {
            sum[i][j] = 0.0;
            for (int k = 0; k < size; k++)
                for (int m = 0; m < size; m++)
                    sum[i][j] += f[i][k] * a[k][m] * f[j][m];
        }
    for (int i = 0; i < size; i++)
        for (int j = 0; j <= i; j++) {
            double own = sum[i][j];
            for (int k = 0; k < j; k++)
                own -= f[i][k] * f[j][k];
            f[i][j] = i == j ? sqrt(own) : own / f[j][j];
            if (!isfinite(f[i][j]))
                return;
        }
    for (int i = 0; i < size; i++)
        for (int j = 0; j <= i; j++)
            factor[i * (i + 1) / 2 + j] = f[i][j];
}

/* Every width by the share of its steps that was accepted, the length by
 * whether the whole was. */
void tsr_surrogate_state_learn(tsr_surrogate_state *state,
                               const int32_t (*all)[2], const float *seen,
                               int accepted)
{
    const double widest = log(3.0), narrowest = log(1e-5), step_target = 0.3;
    const int n_own = state->n_width - state->n_linker;
    for (int l = 0; l < state->n_linker; l++) {
        const int n = all[n_own + 2 * l + 1][0];
        if (n > 0)
            learn_factor(state->factor[l], state->size[l],
                         seen + (ptrdiff_t)l * TSR_LINKER_FACTOR, n,
                         state->n_step[l]++);
    }
    for (int i = 0; i < state->n_width; i++) {
        const int32_t *count = all[i < n_own ? i : 2 * i - n_own];
        if (count[0] == 0)
            continue;
        const double share = (double)count[1] / count[0];
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
    int size[3] = {0, 0, 0};
    long integer;
    double real;
    tsr_archive_int(archive, size, 3);
    if (size[0] == 0)
        return;
    for (int i = 0; i < 2 + size[0] + size[2] && !archive->failed; i++)
        tsr_archive_long(archive, &integer, 1);
    for (int i = 0; i < 1 + size[0] + size[1] + size[2] * TSR_LINKER_FACTOR &&
                    !archive->failed;
         i++)
        tsr_archive_real(archive, &real, 1);
}

static void surrogate_archive(void *state, tsr_archive *archive)
{
    tsr_surrogate_state *s = state;
    int size[3] = {s->n_width, s->n_ratio, s->n_linker};
    tsr_archive_int(archive, size, 3);
    if (size[0] == 0) /* saved where nothing walked */
        return;
    if (size[0] != s->n_width || size[1] != s->n_ratio ||
        size[2] != s->n_linker) {
        archive->failed = 1;
        return;
    }
    tsr_archive_long(archive, &s->n_learnt, 1);
    tsr_archive_long(archive, &s->n_redrawn, 1);
    tsr_archive_real(archive, &s->log_steps, 1);
    tsr_archive_long(archive, s->n_seen, (size_t)s->n_width);
    tsr_archive_long(archive, s->n_step, (size_t)s->n_linker);
    tsr_archive_real(archive, s->log_width, (size_t)s->n_width);
    tsr_archive_real(archive, s->ratio, (size_t)s->n_ratio);
    if (s->n_linker > 0)
        tsr_archive_real(archive, s->factor[0],
                         (size_t)s->n_linker * TSR_LINKER_FACTOR);
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
