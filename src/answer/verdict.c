/* The numbers of a verdict, from what a run left in its folder. Each part that
 * cannot be had is left out, since a verdict on the rest is better than none.
 */
#include "answer/verdict.h"

#include "core/json_read.h"
#include "core/text.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

static const double rare = 0.01, poor = 1.5;

int tsr_verdict_fits(double reduced_chi2, double cormap_p, double noise)
{
    const double level = fmax(1.0, noise); /* NaN: 1 */
    return !(cormap_p < rare) && reduced_chi2 <= poor * level * level;
}

static const tsr_convergence unknown = {.mean = (double)NAN,
                                        .sd = (double)NAN,
                                        .median = (double)NAN,
                                        .q5 = (double)NAN,
                                        .q95 = (double)NAN};

static tsr_convergence value_of(const tsr_summary *summary, const char *name)
{
    const tsr_summary_item *item = tsr_summary_find(summary, name);
    return item != NULL ? item->value : unknown;
}

void tsr_verdict_free(tsr_verdict *verdict)
{
    if (verdict == NULL)
        return;
    tsr_arrangements_free(verdict->arrangements);
    tsr_loo_clear(&verdict->loo);
    tsr_advice_clear(&verdict->advice);
    tsr_model_atoms_free(verdict->atoms);
    free(verdict->curve);
    free(verdict->measured);
    free(verdict->directory);
    free(verdict);
}

/* ---- the curves ---- */

typedef struct {
    const tsr_past_run *run;
    const tsr_summary *summary;
    char suffix[16]; /* of the curve's variables: "", "_2" */
    int n;
    double *q, *intensity, *sigma; /* [n] */
    double background;
} job;

/* [n] of a variable without draws, caller frees; NULL: not there. */
static double *constant(const job *j, tsr_trace_group group, const char *name,
                        int *n)
{
    char full[64];
    int n_chain, n_draw;
    double *value = NULL;
    snprintf(full, sizeof full, "%s%s", name, j->suffix);
    return tsr_trace_get(j->run->trace, group, full, &n_chain, &n_draw, n,
                         &value, NULL) == TSR_OK
               ? value
               : NULL;
}

/* Reads the measured curve; 0: it is not there. */
static int read_data(job *j)
{
    char full[64];
    int n_sigma = 0, n_q = 0;
    snprintf(full, sizeof full, "intensity%s", j->suffix);
    j->q = NULL;
    j->intensity = constant(j, TSR_TRACE_OBSERVED_DATA, "intensity", &j->n);
    j->sigma = constant(j, TSR_TRACE_CONSTANT_DATA, "sigma", &n_sigma);
    if (j->intensity != NULL)
        (void)tsr_trace_coordinates(j->run->trace, TSR_TRACE_OBSERVED_DATA,
                                    full, &n_q, &j->q, NULL);
    return j->intensity != NULL && j->sigma != NULL && j->q != NULL &&
           n_sigma == j->n && n_q == j->n;
}

/* Of evenly chosen draws the curves, `width` points from the point `first` on,
 * and their backgrounds. The caller frees both values; no draws where the trace
 * has no curves. */
static tsr_status read_draws(const job *j, int first, int width,
                             tsr_thinned *curve, tsr_thinned *background,
                             tsr_err *err)
{
    enum { MOST = 500 };
    char name[64];
    *background = (tsr_thinned){.value = NULL};
    snprintf(name, sizeof name, "intensity_mean%s", j->suffix);
    TSR_TRY(tsr_thinned_get(j->run->trace, TSR_TRACE_POSTERIOR_PREDICTIVE, name,
                            MOST, first, width, curve, err));
    snprintf(name, sizeof name, "background%s", j->suffix);
    return tsr_thinned_get(j->run->trace, TSR_TRACE_POSTERIOR, name, MOST, 0, 1,
                           background, err);
}

/* The mean curve against the data. */
static tsr_status judge_mean(const job *j, tsr_verdict_curve *c, tsr_err *err)
{
    tsr_thinned curve, background;
    double sum = 0.0;
    c->chi2 = c->cormap_p = (double)NAN;
    tsr_status status = read_draws(j, 0, j->n, &curve, &background, err);
    const int rows = curve.n_chain * curve.n_kept;
    for (int k = 0; k < j->n && rows > 0 && status == TSR_OK; k++) {
        double mean = 0.0;
        for (int i = 0; i < rows; i++)
            mean += curve.value[(size_t)i * (size_t)j->n + (size_t)k] / rows;
        curve.value[k] = j->intensity[k] - mean;
        sum += pow(curve.value[k] / j->sigma[k], 2.0);
    }
    if (rows > 0 && status == TSR_OK) {
        c->chi2 = sum / j->n;
        if (!c->noise.is_shared)
            c->cormap_p =
                tsr_cormap_p(j->n, tsr_cormap_longest_run(j->n, curve.value));
    }
    free(curve.value);
    free(background.value);
    return status;
}

/* Guinier's Rg of each draw's curve, over the points of the data's fit: into
 * rg [rows]; returns how many there are. */
static int guinier_of_draws(const job *j, const tsr_guinier *g,
                            const tsr_thinned *curve,
                            const tsr_thinned *background, double *rg)
{
    const int rows = curve->n_chain * curve->n_kept;
    const int has_background = background->n_chain * background->n_kept == rows;
    int n = 0;
    for (int i = 0; i < rows; i++) {
        double *one = curve->value + (size_t)i * (size_t)curve->n;
        for (int k = 0; k < curve->n; k++)
            one[k] -= has_background ? background->value[i] : j->background;
        rg[n] =
            tsr_guinier_rg(g, j->q, j->intensity, j->sigma, j->background, one);
        n += isfinite(rg[n]) != 0;
    }
    return n;
}

/* Guinier's Rg of the data, and of the draws over the same points. */
static tsr_status judge_guinier(const job *j, double rg_first,
                                tsr_verdict_curve *c, tsr_err *err)
{
    tsr_thinned curve, background;
    c->guinier_draws = unknown;
    TSR_TRY(tsr_guinier_fit(j->n, j->q, j->intensity, j->sigma, j->background,
                            rg_first, &c->guinier, err));
    if (c->guinier.n == 0)
        return TSR_OK;
    const int first = c->guinier.first, width = c->guinier.last + 1 - first;
    tsr_status status = read_draws(j, first, width, &curve, &background, err);
    double *rg =
        malloc(((size_t)curve.n_chain * (size_t)curve.n_kept + 1) * sizeof *rg);
    TSR_THEN(status, tsr_allocated(rg, err));
    const int n = status == TSR_OK ? guinier_of_draws(j, &c->guinier, &curve,
                                                      &background, rg)
                                   : 0;
    if (n > 0)
        status = tsr_convergence_make(1, n, rg, &c->guinier_draws, err);
    free(rg);
    free(curve.value);
    free(background.value);
    return status;
}

static tsr_status judge_curve(job *j, tsr_verdict_curve *c, tsr_err *err)
{
    char name[64];
    const tsr_convergence rg = value_of(j->summary, "rg");
    snprintf(name, sizeof name, "background%s", j->suffix);
    const double background = value_of(j->summary, name).mean;
    j->background = isfinite(background) ? background : 0.0;
    snprintf(name, sizeof name, "chi2%s", j->suffix);
    c->draws = value_of(j->summary, name);
    snprintf(name, sizeof name, "noise_scale%s", j->suffix);
    c->noise_scale = value_of(j->summary, name);
    c->n = j->n;
    c->noise = tsr_saxs_noise_make(j->n, j->q, j->intensity, j->sigma);
    tsr_profile_fit_judge(&c->rigid, &c->noise);
    TSR_TRY(judge_mean(j, c, err));
    return judge_guinier(j, rg.mean, c, err);
}

/* The k-th object of the attribute that the run's start left. */
static void read_rigid(const char *text, int k, tsr_profile_fit *fit)
{
    const struct {
        const char *key;
        double *real;
        int *whole;
    } known[] = {{"n_point", NULL, &fit->n_point},
                 {"n_parameter", NULL, &fit->n_parameter},
                 {"scale", &fit->scale, NULL},
                 {"background", &fit->background, NULL},
                 {"c1", &fit->c1, NULL},
                 {"c2", &fit->c2, NULL},
                 {"c1_at", NULL, &fit->c1_at},
                 {"c2_at", NULL, &fit->c2_at},
                 {"chi2", &fit->chi2, NULL},
                 {"cormap_p", &fit->cormap_p, NULL}};
    *fit = (tsr_profile_fit){.n_point = 0};
    for (size_t i = 0; i < sizeof known / sizeof *known; i++) {
        tsr_json_reader r = {text, text + strlen(text), 0, 0};
        char path[32];
        double value;
        snprintf(path, sizeof path, "%d.%s", k, known[i].key);
        if (!tsr_json_find(&r, path) || !tsr_json_read_number(&r, &value)) {
            fit->n_point = 0;
            return;
        }
        if (known[i].real != NULL)
            *known[i].real = value;
        else
            *known[i].whole = (int)value;
    }
    fit->reduced_chi2 =
        fit->n_point > fit->n_parameter
            ? fit->chi2 * fit->n_point / (fit->n_point - fit->n_parameter)
            : (double)NAN;
}

/* The file of the k-th curve, without folders, and what it is of. */
static void name_curve(const tsr_past_run *run, int k, tsr_verdict_curve *curve)
{
    const tsr_term_options *data = run->config.data.item;
    snprintf(curve->name, sizeof curve->name, "data set %d", k + 1);
    for (int i = 0, seen = 0; run->has_config && i < run->config.data.n; i++)
        if (tsr_term_registry[data[i].kind]->is_curve && seen++ == k) {
            curve->is_neutron = tsr_term_registry[data[i].kind]->is_neutron;
            tsr_config_data_name(&run->config, i, sizeof curve->name,
                                 curve->name);
        }
}

int tsr_verdict_conflict(const tsr_verdict_curve *a, const tsr_verdict_curve *b,
                         double *sigma)
{
    return !a->is_neutron && !b->is_neutron &&
           tsr_guinier_conflict(&a->guinier, &b->guinier, sigma);
}

static tsr_status judge_curves(tsr_verdict *v, const tsr_past_run *run,
                               const tsr_summary *summary, tsr_err *err)
{
    tsr_status status = TSR_OK;
    char *rigid = tsr_trace_attribute_text(run->trace, "rigid_fit");
    for (int is_there = 1; is_there && status == TSR_OK;) {
        job j = {.run = run, .summary = summary};
        const int k = v->n_curve;
        if (k > 0)
            snprintf(j.suffix, sizeof j.suffix, "_%d", k + 1);
        is_there = read_data(&j);
        tsr_verdict_curve *more =
            is_there ? realloc(v->curve, (size_t)(k + 1) * sizeof *more) : NULL;
        if (is_there && more == NULL)
            status = tsr_no_memory(err);
        if (more != NULL) {
            v->curve = more;
            v->curve[k] = (tsr_verdict_curve){.n = 0};
            v->n_curve++;
            name_curve(run, k, &v->curve[k]);
            if (rigid != NULL)
                read_rigid(rigid, k, &v->curve[k].rigid);
            status = judge_curve(&j, &v->curve[k], err);
        }
        free(j.q);
        free(j.intensity);
        free(j.sigma);
    }
    free(rigid);
    return status;
}

/* ---- motion ---- */

/* The distances that the trace keeps of parts and tails, by the names of
 * sampler/columns.c: pose_1_distance, of an ensemble pose_1_distance_2. */
static void find_motions(tsr_verdict *v, const tsr_past_run *run,
                         const tsr_summary *summary)
{
    for (int i = 0; i < summary->n && v->n_motion < TSR_MOST_MOTIONS; i++) {
        const tsr_summary_item *item = &summary->item[i];
        const int is_tail = strncmp(item->name, "tail_", 5) == 0;
        const char *distance = strstr(item->name, "_distance");
        if ((!is_tail && strncmp(item->name, "pose_", 5) != 0) ||
            distance == NULL || !isfinite(item->value.mean))
            continue;
        char *doc = tsr_trace_variable_text(run->trace, TSR_TRACE_POSTERIOR,
                                            item->name, "long_name");
        char *end = doc != NULL ? strstr(doc, ": ") : NULL;
        tsr_verdict_motion *m = &v->motion[v->n_motion++];
        *m = (tsr_verdict_motion){.variable = item->name,
                                  .is_tail = is_tail,
                                  .distance = item->value};
        distance += strlen("_distance");
        m->state = *distance == '_' ? atoi(distance + 1) : 0;
        if (end != NULL)
            *end = '\0';
        snprintf(m->where, sizeof m->where, "%s",
                 end != NULL ? doc : item->name);
        free(doc);
    }
}

/* Where there are no conformations, or they cannot be read, nothing is said of
 * them. */
static tsr_status find_arrangements(tsr_verdict *v, const tsr_past_run *run,
                                    int fixed, double threshold_ang,
                                    tsr_err *err)
{
    tsr_frames *frames = NULL;
    tsr_err bad, local = {.status = TSR_OK};
    int n_bad, n_chain = 0, n_draw = 0;
    double *chi2 = NULL;
    if (run->directory == NULL ||
        tsr_frames_open(run->directory, &frames, &n_bad, &bad, &local) !=
            TSR_OK)
        return local.status == TSR_E_NOMEM
                   ? tsr_fail(err, TSR_E_NOMEM, "%s", local.message)
                   : TSR_OK;
    tsr_status status =
        tsr_summary_draws(run->trace, "chi2", &n_chain, &n_draw, &chi2, &local);
    TSR_THEN(status,
             tsr_arrangements_make(frames, fixed, threshold_ang, n_chain,
                                   n_draw, chi2, &v->arrangements, &local));
    char *model = tsr_words_of("%s/model.pdb", run->directory);
    if (status == TSR_OK && v->arrangements != NULL && model != NULL)
        status = tsr_model_atoms_read(model, &v->atoms, &local);
    free(model);
    free(chi2);
    tsr_frames_free(frames);
    return status == TSR_E_NOMEM || status == TSR_E_USAGE
               ? tsr_fail(err, status, "%s", local.message)
               : TSR_OK;
}

/* ---- what is left open ---- */

static void leave_open(tsr_verdict *v, tsr_verdict_open what)
{
    if (v->n_open < TSR_MOST_OPEN)
        v->open[v->n_open++] = what;
}

/* Does c1 or c2 lie against an end of its prior, a twentieth of the draws in
 * the last hundredth of its range? */
static void judge_bound(tsr_verdict *v, const tsr_summary *summary,
                        const char *name, const double range[2])
{
    const tsr_summary_item *item = tsr_summary_find(summary, name);
    const double edge = 0.01 * (range[1] - range[0]);
    if (item == NULL || item->flaw == TSR_FLAW_NOT_FINITE ||
        !(item->value.sd > 0.0))
        return;
    const int is_low = item->value.q5 < range[0] + edge;
    if (is_low || item->value.q95 > range[1] - edge)
        leave_open(v, (tsr_verdict_open){.kind = TSR_OPEN_BOUND,
                                         .variable = name,
                                         .value = range[!is_low],
                                         .is_low = is_low});
}

/* A weight under a flat prior on n weights that add up to 1 has the variance
 * (n - 1) / (n^2 (n + 1)). */
static void judge_weights(tsr_verdict *v, const tsr_summary *summary)
{
    const double much = 0.7;
    const double n = v->n_state;
    const double prior_sd = sqrt((n - 1.0) / (n * n * (n + 1.0)));
    for (int k = 1; k <= v->n_state && v->n_state > 1; k++) {
        char name[32];
        snprintf(name, sizeof name, "weight_%d", k);
        const tsr_summary_item *item = tsr_summary_find(summary, name);
        if (item != NULL && item->value.sd > much * prior_sd)
            leave_open(v,
                       (tsr_verdict_open){.kind = TSR_OPEN_WEIGHT,
                                          .variable = item->name,
                                          .value = item->value.sd / prior_sd});
    }
}

static void find_open(tsr_verdict *v, const tsr_past_run *run,
                      const tsr_summary *summary)
{
    if (run->has_config) {
        judge_bound(v, summary, "c1", run->config.contrast.c1_range);
        judge_bound(v, summary, "c2", run->config.contrast.c2_range);
    }
    judge_weights(v, summary);
    for (int i = 0; v->arrangements != NULL && i < v->arrangements->n; i++) {
        const tsr_arrangement *a = &v->arrangements->item[i];
        if (a->mirror_of >= 0 || a->alike >= 0)
            leave_open(
                v,
                (tsr_verdict_open){
                    .kind =
                        a->mirror_of >= 0 ? TSR_OPEN_MIRROR : TSR_OPEN_OUTLINE,
                    .value = a->discrepancy,
                    .item = {a->mirror_of >= 0 ? a->mirror_of : a->alike, i}});
    }
}

/* ---- all of it ---- */

/* States of the run: those that have an Rg of their own. */
static int count_states(const tsr_summary *summary)
{
    char name[32];
    int n = 0;
    do
        snprintf(name, sizeof name, "rg_%d", ++n);
    while (tsr_summary_find(summary, name) != NULL);
    return n > 1 ? n - 1 : 1;
}

/* The density of points left out, or why it is not known. */
static tsr_status judge_loo(tsr_verdict *v, const tsr_past_run *run,
                            tsr_err *err)
{
    tsr_err local = {.status = TSR_OK};
    const tsr_status status = tsr_loo_make(run->trace, &v->loo, &local);
    if (status == TSR_E_NOMEM)
        return tsr_fail(err, status, "%s", local.message);
    if (status != TSR_OK)
        tsr_loo_clear(&v->loo);
    return TSR_OK;
}

tsr_status tsr_verdict_make(const tsr_past_run *run, const tsr_summary *summary,
                            int fixed, double threshold_ang, tsr_verdict **out,
                            tsr_err *err)
{
    *out = NULL;
    tsr_verdict *v = calloc(1, sizeof *v);
    if (v == NULL)
        return tsr_fail(err, TSR_E_NOMEM, "no memory for a verdict");
    v->has_data = run->has_data;
    v->n_state = count_states(summary);
    v->rg = value_of(summary, "rg");
    v->d_max = value_of(summary, "d_max");
    v->evidence = summary->evidence;
    (void)tsr_summary_slowest(summary, &v->ess);
    v->directory = run->directory != NULL ? strdup(run->directory) : NULL;
    tsr_status status = run->directory != NULL && v->directory == NULL
                            ? tsr_no_memory(err)
                            : judge_curves(v, run, summary, err);
    find_motions(v, run, summary);
    TSR_THEN(status, judge_loo(v, run, err));
    TSR_THEN(status, find_arrangements(v, run, fixed, threshold_ang, err));
    TSR_THEN(status, tsr_verdict_measure(v, run, err));
    TSR_THEN(status, tsr_advice_make(run, summary, &v->advice, err));
    if (status == TSR_OK)
        find_open(v, run, summary);
    if (status == TSR_OK)
        *out = v;
    else
        tsr_verdict_free(v);
    return status;
}

tsr_status tsr_verdict_of_run(const tsr_past_run *run, tsr_summary **summary,
                              tsr_verdict **verdict, tsr_err *err)
{
    TSR_TRY(tsr_summary_make(run->trace, summary, err));
    TSR_TRY(tsr_summary_add_evidence(*summary, run->trace, err));
    return tsr_verdict_make(run, *summary, -1, tsr_arrangements_threshold,
                            verdict, err);
}
