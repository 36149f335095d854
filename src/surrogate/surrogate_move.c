/* The two moves that use the surrogate.
 *
 * Surrogate: a walk of many steps by the surrogate density g on the device, and
 * one decision by the posterior. surrogate.h has the acceptance ratio and why
 * it is exact. A step of a walk costs a hundredth of a step of the sampler on a
 * GPU, and a fifth on a processor in a molecule of 200 residues. For curves of
 * usual precision the surrogate is within about a nat of the posterior, so that
 * half of the walks are accepted, however long they are. Where it is less
 * accurate, warm-up makes the walks shorter. A walk turns torsions, with step
 * widths learnt here in warm-up, and changes c2. All chains of a launch walk at
 * the same steps of the run, at intervals set by the weight. A walk leaves g
 * invariant, so the correction for its start X and end Y is g(X) / g(Y). The
 * acceptance ratio is this correction times the ratio of the posteriors, which
 * include the priors of torsions, excluded volume and c2.
 *
 * Redraw: a linker or a tail is replaced by one of many thousands of candidate
 * shapes, chosen by the surrogate, and the posterior decides. Other moves turn
 * a linker a little at a time. About 10^5 draws from the prior contain a shape
 * that keeps the distance between two domains within the precision of a curve,
 * and a millisecond suffices to combine that many from halves. Redraws share
 * the learnt state, jobs and results with walks. */

#include "surrogate/surrogate.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* The first N_RATIO_ONLY walks do not change the number of steps, because the
 * ratio of curves is not learnt yet. */
enum { N_RATIO_ONLY = 20 };

/* A walk should take the device about as long as the host needs for its
 * decision and for the ordinary steps before the next walk: 19 us of 16
 * processors in `lar`, and 9 us of an H200 for 100 steps. */
static const double steps_cpu = 100.0, steps_gpu = 200.0;

static const char *const auto_words[] = {"auto", NULL};
static const char *const on_words[] = {"auto", "gpu", "all", NULL};

static const tsr_field surrogate_fields[] = {
    TSR_FIELD(DOUBLE, "weight", tsr_surrogate_options, weight, .initial = "3",
              .min = 0.0, .max = 1e6,
              .doc = "weight of the move among all proposals (a third of it on "
                     "processors); 0: off"),
    TSR_FIELD(CHOICE, "devices", tsr_surrogate_options, on, .initial = "auto",
              .words = on_words,
              .doc = "devices that run walks; auto: GPUs, and processors where "
                     "the molecule has at least 300 bodies"),
    TSR_FIELD(NUMBER_OR_WORD, "steps", tsr_surrogate_options, steps,
              .initial = "auto", .min = 1, .max = 1e6, .words = auto_words,
              .doc = "largest number of steps of a walk; reduced where too few "
                     "proposals are accepted; auto: 100, on a GPU 200"),
    TSR_FIELD_TARGET(tsr_surrogate_options, "0.4"),
    {0}};

static void *surrogate_new(tsr_pool *pool, const void *options,
                           const tsr_topology *topology, const tsr_prior *prior)
{
    (void)topology, (void)prior;
    tsr_surrogate_state *s = tsr_pool_new(pool, 1, sizeof *s);
    if (s != NULL)
        s->options = *(const tsr_surrogate_options *)options;
    return s;
}

static int extend_state(tsr_pool *pool, void *state, const void *launcher)
{
    const double turn_rad = 0.1; /* also for c2 */
    const double step = 0.03;    /* rad, or in units of 10 Angstrom */
    const tsr_surrogate_engine *engine = launcher;
    const tsr_surrogate_spec *spec = engine->spec;
    tsr_surrogate_state *s = state;
    const int n_linker = spec->n_linker;
    const int n_width = spec->n_torsion + 1 + n_linker;
    tsr_pool_array(pool, s->size, (size_t)n_linker + 1);
    tsr_pool_array(pool, s->n_step, (size_t)n_linker + 1);
    tsr_pool_array(pool, s->factor, (size_t)n_linker + 1);
    tsr_pool_array(pool, s->n_seen, (size_t)n_width);
    tsr_pool_array(pool, s->log_width, (size_t)n_width);
    tsr_pool_array(pool, s->redrawn, (size_t)n_width);
    tsr_pool_array(pool, s->ratio, (size_t)spec->n_q);
    if (pool->failed)
        return 0;
    s->n_width = n_width, s->n_ratio = spec->n_q, s->n_linker = n_linker;
    s->most_steps = s->options.steps.word < 0 ? s->options.steps.number
                    : engine->is_on_gpu       ? steps_gpu
                                              : steps_cpu;
    s->log_steps = log(s->most_steps);
    for (int l = 0; l < n_linker; l++) {
        s->size[l] = tsr_surrogate_linker_rows(spec, l);
        for (int i = 0; i < s->size[l]; i++)
            s->factor[l][i * (i + 1) / 2 + i] = step;
    }
    for (int i = 0; i < n_width; i++) {
        s->log_width[i] = log(turn_rad);
        s->redrawn[i] = 1.0;
    }
    return 1;
}

/* Robust adaptive Metropolis (Vihola 2012). The factor F becomes a factor of F
 * (1 + gain A) F', where A is the mean over the steps of a walk: seen / n_step.
 * Does nothing if this matrix is not positive definite. The variance in a
 * direction u = F^-1 step increases if steps along it were accepted more often
 * than the target, and decreases otherwise. */
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

/* Adapts the factors of linkers, each width to the fraction of its steps that
 * were accepted, and the number of steps to the acceptance of the whole walk.
 * all: counts of a result; seen: data for factors in a result. */
static void learn_steps(tsr_surrogate_state *s, const int32_t (*all)[2],
                        const float *seen, int accepted)
{
    const double widest = log(3.0), narrowest = log(1e-5), step_target = 0.3;
    const int n_own = s->n_width - s->n_linker;
    for (int l = 0; l < s->n_linker; l++) {
        const int n = all[n_own + 2 * l + 1][0];
        if (n > 0)
            learn_factor(s->factor[l], s->size[l],
                         seen + (ptrdiff_t)l * TSR_SURROGATE_FACTOR, n,
                         s->n_step[l]++);
    }
    for (int i = 0; i < s->n_width; i++) {
        const int32_t *count = all[i < n_own ? i : 2 * i - n_own];
        if (count[0] == 0)
            continue;
        const double share = (double)count[1] / count[0];
        const double x =
            s->log_width[i] +
            tsr_move_robbins_monro(s->n_seen[i]++, share, step_target);
        s->log_width[i] = fmin(fmax(x, narrowest), widest);
    }
    if (s->n_learnt++ < N_RATIO_ONLY)
        return;
    const double steps =
        s->log_steps +
        tsr_move_robbins_monro(s->n_learnt, accepted, s->options.target);
    s->log_steps = fmin(fmax(steps, 0.0), log(s->most_steps));
}

/* Writes an empty state, or skips a stored one. A run may continue on a device
 * without walks, and return to one with walks. */
static void archive_nothing(tsr_archive *archive)
{
    int size[3] = {0, 0, 0};
    long integer;
    double real;
    tsr_archive_int(archive, size, 3);
    if (size[0] == 0)
        return;
    for (int i = 0; i < 2 + size[0] + size[2] && !archive->failed; i++)
        tsr_archive_long(archive, &integer, 1);
    for (int i = 0;
         i < 1 + 2 * size[0] + size[1] + size[2] * TSR_SURROGATE_FACTOR &&
         !archive->failed;
         i++)
        tsr_archive_real(archive, &real, 1);
}

static void surrogate_archive(void *state, tsr_archive *archive)
{
    tsr_surrogate_state *s = state;
    if (s == NULL) {
        archive_nothing(archive);
        return;
    }
    int size[3] = {s->n_width, s->n_ratio, s->n_linker};
    tsr_archive_int(archive, size, 3);
    if (size[0] == 0) /* saved by a run without walks */
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
    tsr_archive_real(archive, s->redrawn, (size_t)s->n_width);
    tsr_archive_real(archive, s->ratio, (size_t)s->n_ratio);
    if (s->n_linker > 0)
        tsr_archive_real(archive, s->factor[0],
                         (size_t)s->n_linker * TSR_SURROGATE_FACTOR);
}

/* ---- jobs and results ---- */

static tsr_status write_job(void *workspace, int job, const void *state,
                            const tsr_move_context *context,
                            const uint32_t key[2], tsr_err *err)
{
    const tsr_surrogate_walker *w = workspace;
    const tsr_surrogate_call *c = &w->call;
    memcpy(c->key[job], key, sizeof c->key[job]);
    return tsr_surrogate_write_job(
        w->engine->surrogate, &w->layout, state, context,
        c->job + (ptrdiff_t)job * w->layout.size,
        c->point + (ptrdiff_t)job * w->engine->spec->n_point, err);
}

/* The result of a job. */
static const float *result_of(const void *workspace, int job)
{
    const tsr_surrogate_walker *w = workspace;
    return w->call.result +
           (ptrdiff_t)job * tsr_surrogate_result_size(w->engine->spec);
}

static int has_moved(const tsr_conformation *a, const tsr_conformation *b,
                     int i)
{
    const double *x = &a->backbone[i][0][0], *y = &b->backbone[i][0][0];
    int is_other = 0;
    for (int k = 0; k < 12; k++) /* without branches, for vector instructions */
        is_other |= x[k] != y[k];
    return is_other;
}

/* Number of a rigid unit in the order in which units are seen, from 1; 0:
 * flexible, or too many units. */
static int group_of(int unit, int *seen, int *n_seen)
{
    for (int k = 0; k < *n_seen; k++)
        if (seen[k] == unit)
            return k + 1;
    if (unit < 0 || *n_seen == TSR_MAX_SPAN)
        return 0;
    seen[(*n_seen)++] = unit;
    return *n_seen;
}

/* Spans that differ between a and b; rigid units are groups. If there are too
 * many spans, the last one covers all further residues, without a group. */
static void find_spans(const tsr_topology *t, const tsr_conformation *a,
                       const tsr_conformation *b, tsr_proposal *p)
{
    int seen[TSR_MAX_SPAN], n_seen = 0;
    p->n_span = 0;
    for (int i = 0; i < t->n_residue; i++) {
        if (!has_moved(a, b, i))
            continue;
        const int group = group_of(t->residue[i].unit, seen, &n_seen);
        tsr_span *last = &p->span[p->n_span > 0 ? p->n_span - 1 : 0];
        if (p->n_span > 0 && last->group == group &&
            last->first + last->count == i)
            last->count++;
        else if (p->n_span < TSR_MAX_SPAN)
            p->span[p->n_span++] = (tsr_span){i, 1, group};
        else
            *last = (tsr_span){last->first, i + 1 - last->first, 0};
    }
}

/* If g is 0 or not finite at the start, no walk is possible, and the proposal
 * is empty. The change of c2 is added to the value in double precision, so that
 * c2 keeps all its digits if the walk did not change it. */
static tsr_status read_result(const void *workspace, int job,
                              const tsr_move_context *context,
                              tsr_conformation *proposed,
                              tsr_proposal *proposal,
                              tsr_coupled_parameter *along, tsr_err *err)
{
    const tsr_surrogate_walker *w = workspace;
    const tsr_surrogate_spec *spec = w->engine->spec;
    const float *result = result_of(workspace, job);
    const float *change = result + TSR_SURROGATE_HEAD + 2 * spec->n_q;
    proposal->target = 0;
    proposal->n_span = 0;
    proposal->log_ratio = 0.0;
    if (spec->has_c2) {
        along->index = context->contrast + TSR_C2;
        const double from = context->theta[along->index];
        along->value = from + ((double)result[2] - (double)(float)from);
    }
    if (!isfinite(result[0]) || !isfinite(result[1]))
        return TSR_OK;
    TSR_TRY(
        tsr_surrogate_apply_turns(w->engine->surrogate, change, proposed, err));
    find_spans(context->topology, context->current, proposed, proposal);
    proposal->log_ratio = (double)result[0] - (double)result[1];
    return TSR_OK;
}

/* Warm-up: updates the ratio of the engine's curve to that of beads at the
 * chain's state. n: number of earlier updates. */
static void learn_ratio(const void *workspace, int job,
                        tsr_surrogate_state *state,
                        const tsr_move_context *context, int accepted, long n)
{
    const tsr_surrogate_walker *w = workspace;
    tsr_surrogate_update_ratio(w->engine->surrogate, context,
                               result_of(workspace, job) + TSR_SURROGATE_HEAD +
                                   (accepted ? w->engine->spec->n_q : 0),
                               n, state->ratio);
}

/* Learns from the counts of a walk, and the ratio of curves. */
static void surrogate_learn(const void *workspace, int job, void *state,
                            const tsr_move_context *context, int accepted)
{
    const tsr_surrogate_walker *w = workspace;
    const tsr_surrogate_spec *spec = w->engine->spec;
    tsr_surrogate_state *learnt = state;
    const long n = learnt->n_learnt + learnt->n_redrawn;
    learn_steps(
        learnt,
        (const int32_t(*)[2])(w->call.count +
                              (ptrdiff_t)job * tsr_surrogate_n_count(spec)),
        result_of(workspace, job) + TSR_SURROGATE_HEAD + 2 * spec->n_q +
            spec->n_torsion,
        accepted);
    learn_ratio(workspace, job, learnt, context, accepted, n);
}

/* A walk on a processor takes as long as fifteen ordinary steps, so that walks
 * are worthwhile at a third of the frequency used on a GPU. Small molecules
 * converge as fast without. */
enum { LEAST_BODIES_CPU = 300, WALK_COST_CPU = 3 };

static double relative_cost(const void *launcher, const tsr_topology *topology)
{
    const tsr_surrogate_engine *engine = launcher;
    (void)topology;
    return engine->is_on_gpu ? 1.0 : WALK_COST_CPU;
}

#define LAUNCH                                                        \
    .state_owner = &tsr_move_surrogate, .extend_state = extend_state, \
    .result = read_result

static const tsr_move_launch walks = {LAUNCH,
                                      .turns_many_torsions = 1,
                                      .cost = relative_cost,
                                      .launcher_free = tsr_walk_engine_free,
                                      .workspace_new = tsr_walker_new,
                                      .workspace_free = tsr_walker_free,
                                      .start = tsr_walker_start,
                                      .wait = tsr_walker_wait,
                                      .job = write_job,
                                      .learn = surrogate_learn};

const tsr_move_type tsr_move_surrogate = {
    .name = "surrogate",
    .doc = "many steps by a surrogate likelihood on the device, then one "
           "acceptance by the posterior",
    .source = "Liu 2001; Christen & Fox 2005",
    .options_size = sizeof(tsr_surrogate_options),
    .fields = surrogate_fields,
    .state_new = surrogate_new,
    .launch = &walks,
    .archive = surrogate_archive};

/* ---- redraw ---- */

typedef struct {
    double weight;
} redraw_options;

static const tsr_field redraw_fields[] = {
    TSR_FIELD(DOUBLE, "weight", redraw_options, weight, .initial = "3",
              .min = 0.0, .max = 1e6,
              .doc = "approximate fraction of the time, relative to the other "
                     "moves; 0: off; off beside a GPU that runs walks, which "
                     "finds conformations sooner"),
    {0}};

/* Cost of a redraw in ordinary steps, if the time of a step grows with the
 * square of the number of bodies, and that of a redraw does not. In `lar` (382
 * bodies) the measured cost was 26 on two cores. */
static double redraw_cost(const void *launcher, const tsr_topology *topology)
{
    const double n = (double)topology->n_body, most = 200.0, least = 10.0;
    (void)launcher;
    return fmin(fmax(4e6 / (n * n), least), most);
}

/* A curve leaves few shapes of a linker at T = 1, and redraws there are then
 * accepted once in hundreds: new shapes come from hotter replicas. Redraws that
 * are accepted less often than worth_while are tried less often in proportion,
 * but not less often than rarest. */
static tsr_status write_redraw_job(void *workspace, int job, const void *state,
                                   const tsr_move_context *context,
                                   const uint32_t key[2], tsr_err *err)
{
    const double worth_while = 0.1, rarest = 0.05;
    const tsr_surrogate_state *learnt = state;
    const tsr_surrogate_walker *w = workspace;
    float *to = w->call.job + (ptrdiff_t)job * w->layout.size + w->layout.width;
    TSR_TRY(write_job(workspace, job, state, context, key, err));
    for (int i = 0; i < tsr_redraw_n_stretch(w->engine->spec); i++)
        to[i] =
            (float)fmin(fmax(learnt->redrawn[i] / worth_while, rarest), 1.0);
    return TSR_OK;
}

static void redraw_learn(const void *workspace, int job, void *state,
                         const tsr_move_context *context, int accepted)
{
    const long slowly = 30; /* the first redraws count little */
    const tsr_surrogate_walker *w = workspace;
    const tsr_surrogate_spec *spec = w->engine->spec;
    const int32_t(*tried)[2] = (const int32_t(*)[2])w->call.count +
                               (ptrdiff_t)job * tsr_surrogate_n_count(spec);
    tsr_surrogate_state *learnt = state;
    for (int i = 0; i < tsr_redraw_n_stretch(spec); i++)
        if (tried[i][0])
            learnt->redrawn[i] += tsr_move_robbins_monro(
                learnt->n_redrawn + slowly, accepted, learnt->redrawn[i]);
    const float drawn = result_of(workspace, job)[TSR_SURROGATE_HEAD];
    const long n = learnt->n_learnt + learnt->n_redrawn;
    learnt->n_redrawn +=
        isfinite(drawn) ? 1 : 0; /* NaN: no redraw was possible */
    learn_ratio(workspace, job, learnt, context, accepted, n);
}

/* Redraws are less frequent than walks, and replace a walk due at the same
 * step. */
static const tsr_move_launch redraws = {LAUNCH,
                                        .is_mid_period = 1,
                                        .cost = redraw_cost,
                                        .launcher_free = free,
                                        .workspace_new = tsr_redrawer_new,
                                        .workspace_free = tsr_redrawer_free,
                                        .start = tsr_redrawer_run,
                                        .job = write_redraw_job,
                                        .learn = redraw_learn};

const tsr_move_type tsr_move_redraw = {
    .name = "redraw",
    .doc =
        "draws a new conformation of a linker or a tail from many thousands, "
        "weighted by a surrogate; one acceptance by the posterior",
    .source = "Neal, Beal & Roweis 2003; Andrieu, Lee & Vihola 2018",
    .options_size = sizeof(redraw_options),
    .fields = redraw_fields,
    .launch = &redraws};

/* ---- both in a run ---- */

static int is_gpu(const tsr_device *device)
{
    return device != NULL &&
           tsr_device_get_info(device)->type == TSR_DEVICE_GPU;
}

static int has_gpu(const tsr_surrogate_run *run)
{
    int has = 0;
    for (int e = 0; e < run->n_device; e++)
        has |= is_gpu(run->device[e]);
    return has;
}

/* Returns 1 if a surrogate is possible, and no engine is the reference
 * engine. */
static int is_applicable(const tsr_surrogate_run *run)
{
    int all = run->n_device > 0 && !run->is_frozen &&
              tsr_surrogate_applies(run->topology, run->likelihood);
    for (int e = 0; e < run->n_device; e++)
        all &= run->device[e] != NULL;
    return all;
}

int tsr_surrogate_is_possible(const tsr_surrogate_run *run)
{
    const tsr_surrogate_options *o = run->move_options[TSR_MOVE_surrogate];
    int all = is_applicable(run) && o != NULL && o->weight > 0.0;
    const int any = all && (o->on == TSR_SURROGATE_ON_ALL ||
                            (o->on == TSR_SURROGATE_ON_AUTO &&
                             run->topology->n_body >= LEAST_BODIES_CPU));
    for (int e = 0; e < run->n_device && !any; e++)
        all &= is_gpu(run->device[e]);
    return all;
}

/* Makes an engine for walks on every device, or on none if one of them
 * fails. */
static tsr_status make_walks(const tsr_surrogate_run *run, tsr_log *log,
                             void **const *launcher,
                             const tsr_surrogate *surrogate, tsr_err *err)
{
    const tsr_surrogate_spec *spec = tsr_surrogate_spec_of(surrogate);
    tsr_err why = {0};
    tsr_status status = TSR_OK;
    for (int e = 0; e < run->n_device && status == TSR_OK; e++) {
        tsr_surrogate_engine *made = NULL;
        status = tsr_surrogate_device_new(run->device[e], spec, &made, &why);
        if (made != NULL) {
            made->surrogate = surrogate;
            made->is_on_gpu = has_gpu(run);
        }
        launcher[e][TSR_MOVE_surrogate] = made;
    }
    if (status != TSR_OK && status != TSR_E_DEVICE)
        return tsr_fail(err, status, "%s", why.message);
    for (int e = 0; e < run->n_device && status != TSR_OK; e++) {
        tsr_walk_engine_free(launcher[e][TSR_MOVE_surrogate]);
        launcher[e][TSR_MOVE_surrogate] = NULL;
    }
    if (status != TSR_OK)
        tsr_warn(log, "no surrogate walks: %s", why.message);
    else
        tsr_info(log,
                 "surrogate walks: %d torsions, %d beads, %d pairs of beads%s",
                 spec->n_torsion, spec->n_bead, spec->n_pair,
                 spec->has_c2 ? ", and c2" : "");
    return TSR_OK;
}

/* Makes an engine for redraws beside every device, if the molecule has linkers:
 * other moves sample tails in less time. */
static tsr_status make_redraws(const tsr_surrogate_run *run, tsr_log *log,
                               void **const *launcher,
                               const tsr_surrogate *surrogate, tsr_err *err)
{
    const tsr_surrogate_spec *spec = tsr_surrogate_spec_of(surrogate);
    const int n_stretch = tsr_redraw_n_stretch(spec);
    if (spec->n_linker == 0 || n_stretch == 0)
        return TSR_OK;
    for (int e = 0; e < run->n_device; e++) {
        tsr_surrogate_engine *made = tsr_redraw_engine_new(spec);
        TSR_TRY(tsr_allocated(made, err));
        made->surrogate = surrogate;
        made->is_on_gpu = has_gpu(run);
        launcher[e][TSR_MOVE_redraw] = made;
    }
    tsr_info(log, "surrogate redraws: %d linkers and tails, %d beads",
             n_stretch, spec->n_bead);
    return TSR_OK;
}

tsr_status tsr_surrogate_launchers_new(const tsr_surrogate_run *run,
                                       tsr_log *log, void **const *launcher,
                                       tsr_surrogate **out, tsr_err *err)
{
    const int walk = tsr_surrogate_is_possible(run);
    const int redraw =
        is_applicable(run) &&
        tsr_move_weight(run->move_options[TSR_MOVE_redraw]) > 0.0;
    *out = NULL;
    if (!walk && !redraw)
        return TSR_OK;
    TSR_TRY(tsr_surrogate_new(run->topology, run->prior, run->table,
                              run->likelihood, run->first, out, err));
    if (*out == NULL)
        return TSR_OK;
    if (walk)
        TSR_TRY(make_walks(run, log, launcher, *out, err));
    const int has_walks = launcher[0][TSR_MOVE_surrogate] != NULL;
    /* Beside walks on a GPU, redraws would only take time of the host: walks
     * find new shapes sooner. */
    if (redraw && !(has_walks && has_gpu(run)))
        TSR_TRY(make_redraws(run, log, launcher, *out, err));
    if (!has_walks && launcher[0][TSR_MOVE_redraw] == NULL) {
        tsr_surrogate_free(*out);
        *out = NULL;
    }
    return TSR_OK;
}
