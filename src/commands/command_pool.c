/* tessera pool: the posterior over ensembles of given conformations. */
#include "commands/command.h"
#include "commands/map_job.h"
#include "commands/solve.h"

#include "analysis/convergence.h"
#include "analysis/ensemble.h"
#include "analysis/evidence.h"
#include "core/clock.h"
#include "core/interrupt.h"
#include "core/json.h"
#include "core/text.h"
#include "files/file.h"
#include "likelihood/term_saxs.h"
#include "report/figure.h"

#include <errno.h>
#include <gsl/gsl_sort.h>
#include <gsl/gsl_statistics_double.h>
#include <limits.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

static const char *const infer_words[] = {"infer", NULL};
static const char *const background_words[] = {"flat", "none", "infer", NULL};

typedef struct {
    tsr_curve_options curve;
    char *output, *device, *trajectory, *members, *copies;
    int force, json;
    tsr_number_or_word c1, c2, background;
    long frames, draws, seed, threads;
} options;

static const tsr_field fields[] = {
    TSR_OPTIONS_CURVE(options),
    TSR_FIELD(STRING, "trajectory", options, trajectory, .letter = 't',
              .argument = "FILE",
              .doc = "frames of this trajectory (DCD, H5MD), with the atoms of "
                     "the one structure in the same order"),
    TSR_FIELD(INT, "frames", options, frames, .argument = "N", .min = 1,
              .max = 1e9,
              .doc = "conformations of each file, run or trajectory, evenly "
                     "selected; default: all"),
    TSR_FIELD(STRING, "members", options, members, .argument = "LIST",
              .initial = "1:4",
              .doc = "sizes of the ensembles whose members have weights of "
                     "their own, such as 1:3,5; or none"),
    TSR_FIELD(STRING, "copies", options, copies, .argument = "LIST",
              .initial = "10,30,100",
              .doc = "sizes of the ensembles whose members have equal weights; "
                     "as theta of maximum entropy; or none (docs/pools.md)"),
    TSR_FIELD(NUMBER_OR_WORD, "c1", options, c1, .argument = "X",
              .initial = "1", .min = 0.8, .max = 1.2, .words = infer_words,
              .doc = "scale of the atomic radii in the excluded volume: a "
                     "number, or infer (1 in runs with all atoms)"),
    TSR_FIELD(NUMBER_OR_WORD, "c2", options, c2, .argument = "X",
              .initial = "infer", .min = -10.0, .max = 20.0,
              .words = infer_words,
              .doc = "density of the hydration layer above that of the buffer: "
                     "a number, or infer, with the prior of runs"),
    TSR_FIELD(NUMBER_OR_WORD, "background", options, background,
              .argument = "B", .initial = "infer", .min = -1e12, .max = 1e12,
              .words = background_words,
              .doc = "constant background: infer, with the prior of runs, "
                     "flat, none, or a number in the unit of the data"),
    TSR_FIELD(INT, "draws", options, draws, .argument = "N", .initial = "512",
              .min = 64, .max = 1e6,
              .doc = "draws for each size of ensemble, from four populations"),
    TSR_FIELD(INT, "seed", options, seed, .argument = "N", .initial = "1",
              .min = 0, .max = 2e9, .doc = "seed of the random numbers"),
    TSR_FIELD(STRING, "output", options, output, .letter = 'o',
              .argument = "DIR",
              .doc = "folder for weights, distributions, the best fit and its "
                     "members, and the draws"),
    TSR_OPTION_FORCE(options),
    TSR_OPTION_JSON(options),
    TSR_OPTION_DEVICE(options),
    TSR_OPTION_THREADS(options),
    {0}};

enum { MOST_KINDS = 40, N_GROUP = 4, MOST_LISTED = 12, N_BIN = 24 };

/* Quantities of each draw. R-hat is that of the first three; intervals are
 * shown of those between LOG_LIK and CHI2. */
enum { LOG_LIK, RG, D_MAX, C1, C2, NOISE, CHI2, N_QUANTITY };

/* One size of ensemble. */
typedef struct {
    char name[32];
    double log_z, error, probability;
    double chi2; /* the least of the draws */
    double rhat; /* the worst */
    tsr_convergence summary[D_MAX + 1];
} row;

/* The members of a draw. */
typedef struct {
    int n;
    const int *member;
    const double *weight;
} ensemble;

/* Classes of conformations, and the share of each in the ensembles. */
typedef struct {
    int n;
    int *of;                /* [conformations] class; -1: none */
    int *size;              /* [n] conformations */
    tsr_convergence *share; /* [n] */
} classes;

typedef struct {
    const options *o;
    FILE *out;
    tsr_log *log;
    tsr_pool pool; /* owns the arrays */
    int n_thread, n_file;
    tsr_map_models *file; /* [n_file] */
    int *first;           /* [n_file + 1] first conformation of a file */
    tsr_neutron neutron;
    tsr_saxs *saxs;
    tsr_profile_maker *maker;
    tsr_ensemble_pool curves;
    double *rg, *d_max; /* [conformations] Angstrom; Rg by mass, all atoms */
    double seconds;     /* of all curves */
    /* Conformations whose curves are computed at the same time. */
    int batch;    /* the first of them */
    double *part; /* [BATCH][n_part][n_point] */
    /* Operators to the data's q, one for each grid that occurs. */
    pthread_mutex_t lock;
    int n_operator;
    tsr_q_grid grid[64];
    double *operator[64];
    int n_kind;
    tsr_ensemble_sample sample[MOST_KINDS];
    row row[MOST_KINDS];
    int best;                  /* the most probable row */
    int which;                 /* its draw of highest likelihood */
    tsr_profile_result fit;    /* of this draw */
    int n_draw;                /* of each row */
    double *value[N_QUANTITY]; /* [n_kind][n_draw] */
    int *chosen;               /* [n_draw] draws of all rows, by their
                                  probability */
    int *all;                  /* [conformations] the pool as an ensemble */
    double *equal;             /* [conformations] its weights */
    classes group, by_rg, member;
    double range[2]; /* of Rg in the pool */
    double *mean;    /* [conformations] mean weight */
    int *centre;     /* [group.n] the typical conformation */
    int *ranking;    /* [member.n] conformations of largest weight */
} work;

/* ---- options ---- */

/* Adds the sizes of a list such as "1:3,5", or "none". */
static tsr_status add_kinds(work *w, const char *option, const char *list,
                            int is_copies, tsr_err *err)
{
    for (const char *at = list; strcmp(list, "none") != 0;) {
        char *end;
        const long from = strtol(at, &end, 10);
        const long to = *end == ':' ? strtol(end + 1, &end, 10) : from;
        if (from < 1 || to < from || to > 10000 ||
            (*end != ',' && *end != '\0'))
            return tsr_fail(err, TSR_E_USAGE,
                            "--%s '%s': expected sizes from 1 to 10000, such "
                            "as 1:3,5, or none",
                            option, list);
        if (w->n_kind + to - from >= MOST_KINDS)
            return tsr_fail(err, TSR_E_USAGE,
                            "--%s '%s': more than %d sizes in all", option,
                            list, MOST_KINDS - 1);
        for (long k = from; k <= to; k++, w->n_kind++) {
            w->sample[w->n_kind].kind = (tsr_ensemble_kind){(int)k, is_copies};
            snprintf(w->row[w->n_kind].name, sizeof w->row->name, "%ld %s", k,
                     k > 1       ? option
                     : is_copies ? "copy"
                                 : "member");
        }
        if (*end == '\0')
            break;
        at = end + 1;
    }
    return TSR_OK;
}

static tsr_status make_settings(work *w, const tsr_args *args, tsr_err *err)
{
    const options *o = w->o;
    if (o->curve.data == NULL)
        return tsr_fail(err, TSR_E_USAGE,
                        "--data: a pool needs a curve to be compared with");
    if (o->trajectory != NULL && args->n != 1)
        return tsr_fail(err, TSR_E_USAGE,
                        "--trajectory needs one structure, with its atoms");
    TSR_TRY(tsr_curve_check(args, &o->curve, &w->neutron, err));
    w->n_thread = tsr_threads(o->threads);
    w->n_kind = 1;
    snprintf(w->row[0].name, sizeof w->row[0].name, "the pool");
    TSR_TRY(add_kinds(w, "members", o->members, 0, err));
    TSR_TRY(add_kinds(w, "copies", o->copies, 1, err));
    w->n_draw = (int)(o->draws / N_GROUP) * N_GROUP;
    for (int k = 0; k < w->n_kind; k++) {
        if ((double)w->n_draw * w->sample[k].kind.n_member > 1e9)
            return tsr_fail(err, TSR_E_USAGE,
                            "--draws %ld of %s: more than 1e9 members in all",
                            o->draws, w->row[k].name);
        w->sample[k].n_group = N_GROUP;
        w->sample[k].n_draw = w->n_draw / N_GROUP;
    }
    return TSR_OK;
}

/* ---- the curves ---- */

static tsr_status open_files(work *w, const tsr_args *args, tsr_err *err)
{
    const options *o = w->o;
    const int most = o->frames > 0 ? (int)o->frames : INT_MAX;
    tsr_pool_array(&w->pool, w->file, args->n);
    tsr_pool_array(&w->pool, w->first, args->n + 1);
    TSR_TRY(tsr_pool_check(&w->pool, err));
    for (int f = 0; f < args->n; f++) {
        tsr_map_models *m = &w->file[w->n_file++];
        TSR_TRY(tsr_map_models_open(args->argument[f], o->trajectory, most,
                                    w->log, m, err));
        const int n = m->n < most ? m->n : most;
        w->first[f + 1] = w->first[f] + n;
        if (m->atoms->n_atom != w->file[0].atoms->n_atom)
            tsr_warn(w->log,
                     "'%s' has %d atoms, and '%s' %d: weights are those of "
                     "molecules, whatever their mass",
                     m->path, m->atoms->n_atom, w->file[0].path,
                     w->file[0].atoms->n_atom);
    }
    return w->first[w->n_file] > 1
               ? TSR_OK
               : tsr_fail(err, TSR_E_USAGE,
                          "'%s' has one conformation: a pool needs several "
                          "files, models or frames",
                          args->argument[0]);
}

/* The file of conformation i; *model out: its number there. */
static const tsr_map_models *find_model(const work *w, int i, int *model)
{
    int f = 0;
    while (i >= w->first[f + 1])
        f++;
    *model = tsr_even_index(w->file[f].n, w->first[f + 1] - w->first[f],
                            i - w->first[f]);
    return &w->file[f];
}

static const char *label_of(const work *w, int i, char text[256])
{
    int model;
    const tsr_map_models *m = find_model(w, i, &model);
    tsr_map_models_label(m, model, text, 256);
    return text;
}

/* The operator from a grid to the data's q. */
static tsr_status find_operator(work *w, const tsr_q_grid *grid,
                                const double **out, tsr_err *err)
{
    tsr_status status = TSR_OK;
    int k = 0;
    pthread_mutex_lock(&w->lock);
    while (k < w->n_operator && (w->grid[k].n_q != grid->n_q ||
                                 w->grid[k].dq_inv_ang != grid->dq_inv_ang))
        k++;
    if (k == 64)
        status = tsr_fail(err, TSR_E_DATA,
                          "the sizes of the conformations differ too much");
    else if (k == w->n_operator) {
        status = tsr_q_operator_smeared(grid, &w->saxs->resolution, w->saxs->n,
                                        w->saxs->q, &w->operator[k], err);
        w->grid[k] = *grid;
        w->n_operator += status == TSR_OK;
    }
    pthread_mutex_unlock(&w->lock);
    *out = w->operator[k < 64 ? k : 0];
    return status;
}

/* Numbers of a conformation's part curves. */
static size_t part_size(const work *w)
{
    return (size_t)w->curves.n_part * (size_t)w->saxs->n;
}

static tsr_status compute_item(void *context, int item, int thread,
                               tsr_err *err)
{
    work *w = context;
    const int i = w->batch + item;
    int model;
    char text[256];
    const tsr_map_models *m = find_model(w, i, &model);
    tsr_profile_structure s = {0};
    const double *matrix = NULL;
    (void)thread;
    tsr_status status =
        tsr_profile_compute_model(w->maker, m, model, m->path, i == 0, &s, err);
    TSR_THEN(status, find_operator(w, &s.partials.grid, &matrix, err));
    TSR_THEN(status,
             tsr_ensemble_parts(&w->curves, &s.partials, matrix,
                                w->part + (size_t)item * part_size(w), err));
    w->rg[i] = s.rg_ang;
    w->d_max[i] = s.d_max_ang;
    tsr_profile_structure_clear(&s);
    return status == TSR_OK ? status
                            : tsr_wrap(err, status, "%s", label_of(w, i, text));
}

static tsr_status compute_curves(work *w, tsr_err *err)
{
    enum { BATCH = 128 };
    const int n = w->first[w->n_file];
    const double started = tsr_clock_s();
    tsr_status status = TSR_OK;
    tsr_pool_array(&w->pool, w->part, BATCH * part_size(w));
    tsr_pool_array(&w->pool, w->rg, n);
    tsr_pool_array(&w->pool, w->d_max, n);
    TSR_TRY(tsr_pool_check(&w->pool, err));
    tsr_profile_maker_expect(w->maker, n);
    pthread_mutex_init(&w->lock, NULL);
    for (; w->batch < n && status == TSR_OK; w->batch += BATCH) {
        const int n_item = n - w->batch < BATCH ? n - w->batch : BATCH;
        char text[256];
        status = tsr_watch_check(NULL, "computing curves", err);
        TSR_THEN(status,
                 tsr_parallel_try(n_item, w->n_thread, compute_item, w, err));
        for (int i = 0; i < n_item && status == TSR_OK; i++) {
            status = tsr_ensemble_pool_add(
                &w->curves, w->part + (size_t)i * part_size(w), err);
            if (status != TSR_OK)
                status = tsr_wrap(err, status, "%s",
                                  label_of(w, w->batch + i, text));
        }
        w->seconds = tsr_clock_s() - started;
        snprintf(text, sizeof text, "%d of %d curves, %.0f a second",
                 w->batch + n_item, n, (w->batch + n_item) / w->seconds);
        if (tsr_log_is_terminal(w->log))
            tsr_log_progress(w->log, text);
    }
    tsr_log_progress(w->log, "");
    pthread_mutex_destroy(&w->lock);
    tsr_info(w->log, "%d curves in %.1f s, %.3g a second (%s); %d axes", n,
             w->seconds, n / w->seconds, tsr_profile_maker_describe(w->maker),
             w->curves.n_dim);
    return status;
}

/* The curve, its likelihood as in runs, and all curves of the pool. */
static tsr_status make_pool(work *w, const tsr_args *args, tsr_err *err)
{
    const options *o = w->o;
    const int is_neutron = o->curve.radiation;
    tsr_contrast_options contrast;
    tsr_parameter parameter[TSR_N_CONTRAST];
    tsr_data_set set = {.background = o->background,
                        .background_sd = {.word = 0},
                        .intensity_scale = {.word = 0}};
    tsr_term *term = NULL;
    TSR_TRY(tsr_curve_read(args, &o->curve, w->log, &w->saxs, err));
    TSR_TRY(open_files(w, args, err));
    TSR_TRY(tsr_fields_init(tsr_contrast_fields, &contrast, err));
    TSR_TRY(tsr_fields_init(tsr_noise_measured.fields, &set.noise, err));
    contrast.c1 = o->c1;
    contrast.c2 = o->c2;
    if (is_neutron && o->c1.word == 0)
        return tsr_fail(err, TSR_E_USAGE,
                        "--c1 infer: neutrons have no excluded volume");
    TSR_TRY(tsr_contrast_priors(&contrast, parameter, err));
    set.saxs = w->saxs;
    TSR_TRY(tsr_saxs_term_new(&set, 0, &term, err));
    const tsr_linear linear = ((const tsr_saxs_term *)(void *)term)->linear;
    tsr_term_free(term);
    TSR_TRY(tsr_ensemble_pool_make(w->saxs, &linear, parameter,
                                   w->first[w->n_file], &w->curves, err));
    const tsr_profile_spec spec = {.bodies = TSR_PROFILE_ATOMS,
                                   .solvent = TSR_SOLVENT_LAYER,
                                   .density = o->curve.density,
                                   .neutron = is_neutron ? &w->neutron : NULL,
                                   .device = o->device,
                                   .method = TSR_METHOD_AUTO,
                                   .q_max_inv_ang = tsr_saxs_q_max(w->saxs)};
    TSR_TRY(tsr_profile_maker_new(&spec, w->log, &w->maker, err));
    return compute_curves(w, err);
}

/* ---- the posterior ---- */

/* Draw `at` of all rows. */
static const tsr_ensemble_draw *draw_at(const work *w, int at)
{
    return &w->sample[at / w->n_draw].draw[at % w->n_draw];
}

static ensemble ensemble_at(const work *w, int at)
{
    const tsr_ensemble_sample *s = &w->sample[at / w->n_draw];
    const int k = s->kind.n_member, first = at % w->n_draw * k;
    return k > 0 ? (ensemble){k, s->member + first, s->weight + first}
                 : (ensemble){w->curves.n, w->all, w->equal};
}

/* Quantities of each draw: Rg of the mean square, and mean D_max. */
static tsr_status measure_draws(work *w, tsr_err *err)
{
    const int n = w->curves.n, n_draw = w->n_kind * w->n_draw;
    for (int v = 0; v < N_QUANTITY; v++)
        tsr_pool_array(&w->pool, w->value[v], n_draw);
    tsr_pool_array(&w->pool, w->all, n);
    tsr_pool_array(&w->pool, w->equal, n);
    TSR_TRY(tsr_pool_check(&w->pool, err));
    for (int i = 0; i < n; i++)
        w->all[i] = i, w->equal[i] = 1.0 / n;
    for (int at = 0; at < n_draw; at++) {
        const tsr_ensemble_draw *d = draw_at(w, at);
        const ensemble e = ensemble_at(w, at);
        double square = 0.0;
        for (int j = 0; j < e.n; j++) {
            const int m = e.member[j];
            square += e.weight[j] * w->rg[m] * w->rg[m];
            w->value[D_MAX][at] += e.weight[j] * w->d_max[m];
        }
        w->value[RG][at] = sqrt(square);
        w->value[C1][at] = d->theta[TSR_C1];
        w->value[C2][at] = d->theta[TSR_C2];
        w->value[NOISE][at] = exp(d->theta[TSR_ENSEMBLE_LOG_S]);
        w->value[LOG_LIK][at] = d->log_lik;
        w->value[CHI2][at] = d->chi2;
    }
    return TSR_OK;
}

static tsr_status describe_row(work *w, int r, tsr_err *err)
{
    const int first = r * w->n_draw;
    row *out = &w->row[r];
    out->log_z =
        tsr_evidence_pool_groups(N_GROUP, w->sample[r].log_z, &out->error);
    out->chi2 = gsl_stats_min(w->value[CHI2] + first, 1, (size_t)w->n_draw);
    out->rhat = 1.0;
    for (int v = 0; v <= D_MAX; v++) {
        TSR_TRY(tsr_convergence_make(N_GROUP, N_GROUP, w->n_draw / N_GROUP,
                                     w->value[v] + first, &out->summary[v],
                                     err));
        out->rhat = fmax(out->rhat, out->summary[v].rhat);
    }
    return TSR_OK;
}

/* Rows of equal prior probability, and draws from all of them. */
static tsr_status weigh_rows(work *w, tsr_err *err)
{
    double sum = 0.0, passed = 0.0;
    int n_chosen = 0;
    tsr_pool_array(&w->pool, w->chosen, w->n_draw);
    TSR_TRY(tsr_pool_check(&w->pool, err));
    for (int r = 0; r < w->n_kind; r++) {
        TSR_TRY(describe_row(w, r, err));
        if (w->row[r].log_z > w->row[w->best].log_z)
            w->best = r;
    }
    for (int r = 0; r < w->n_kind; r++)
        sum += exp(w->row[r].log_z - w->row[w->best].log_z);
    for (int r = 0; r < w->n_kind; r++) {
        const double p = exp(w->row[r].log_z - w->row[w->best].log_z) / sum;
        const int before = n_chosen;
        w->row[r].probability = p;
        passed += p;
        const int end =
            r + 1 < w->n_kind ? (int)lround(passed * w->n_draw) : w->n_draw;
        for (; n_chosen < end; n_chosen++)
            w->chosen[n_chosen] =
                r * w->n_draw +
                tsr_even_index(w->n_draw, end - before, n_chosen - before);
    }
    return TSR_OK;
}

/* Shares of the classes c->of, c->n of them, in the chosen draws. */
static tsr_status measure_classes(work *w, classes *c, tsr_err *err)
{
    const int n = w->n_draw;
    double *share;
    tsr_pool_array(&w->pool, c->size, c->n);
    tsr_pool_array(&w->pool, c->share, c->n);
    tsr_pool_array(&w->pool, share, (size_t)c->n * (size_t)n);
    TSR_TRY(tsr_pool_check(&w->pool, err));
    for (int i = 0; i < w->curves.n; i++)
        if (c->of[i] >= 0)
            c->size[c->of[i]]++;
    for (int i = 0; i < n; i++) {
        const ensemble e = ensemble_at(w, w->chosen[i]);
        for (int j = 0; j < e.n; j++)
            if (c->of[e.member[j]] >= 0)
                share[c->of[e.member[j]] * n + i] += e.weight[j];
    }
    for (int g = 0; g < c->n; g++)
        TSR_TRY(
            tsr_convergence_make(0, 1, n, share + g * n, &c->share[g], err));
    return TSR_OK;
}

/* Equal intervals of Rg. */
static tsr_status bin_rg(work *w, tsr_err *err)
{
    classes *c = &w->by_rg;
    const int n = w->curves.n;
    c->n = N_BIN;
    tsr_pool_array(&w->pool, c->of, n);
    TSR_TRY(tsr_pool_check(&w->pool, err));
    gsl_stats_minmax(&w->range[0], &w->range[1], w->rg, 1, (size_t)n);
    if (!(w->range[1] > w->range[0]))
        w->range[1] = w->range[0] + 1.0;
    for (int i = 0; i < n; i++) {
        const int k = (int)(N_BIN * (w->rg[i] - w->range[0]) /
                            (w->range[1] - w->range[0]));
        c->of[i] = k < N_BIN ? k : N_BIN - 1;
    }
    return measure_classes(w, c, err);
}

/* Groups of similar curves, and the conformations of largest weight. */
static tsr_status measure_members(work *w, tsr_err *err)
{
    const int n = w->curves.n, first = w->best * w->n_draw;
    const double contrast[TSR_N_CONTRAST] = {
        [TSR_C1] = gsl_stats_mean(w->value[C1] + first, 1, (size_t)w->n_draw),
        [TSR_C2] = gsl_stats_mean(w->value[C2] + first, 1, (size_t)w->n_draw)};
    size_t *order;
    tsr_pool_array(&w->pool, w->centre, TSR_ENSEMBLE_GROUPS);
    tsr_pool_array(&w->pool, w->group.of, n);
    tsr_pool_array(&w->pool, w->member.of, n);
    tsr_pool_array(&w->pool, w->ranking, MOST_LISTED);
    tsr_pool_array(&w->pool, w->mean, n);
    tsr_pool_array(&w->pool, order, n);
    TSR_TRY(tsr_pool_check(&w->pool, err));
    w->group.n = tsr_ensemble_groups(&w->curves, contrast, 1.0, 8, w->group.of,
                                     w->centre);
    if (w->group.n == 0)
        return tsr_no_memory(err);
    TSR_TRY(measure_classes(w, &w->group, err));
    for (int i = 0; i < w->n_draw; i++) {
        const ensemble e = ensemble_at(w, w->chosen[i]);
        for (int j = 0; j < e.n; j++)
            w->mean[e.member[j]] += e.weight[j] / w->n_draw;
    }
    gsl_sort_index(order, w->mean, 1, (size_t)n);
    for (int i = 0; i < n; i++)
        w->member.of[i] = -1;
    w->member.n = n < MOST_LISTED ? n : MOST_LISTED;
    for (int i = 0; i < w->member.n; i++) {
        w->ranking[i] = (int)order[n - 1 - i];
        w->member.of[w->ranking[i]] = i;
    }
    return measure_classes(w, &w->member, err);
}

/* The ensemble of highest likelihood in the most probable row. */
static tsr_status best_fit(work *w, tsr_err *err)
{
    tsr_profile_result *r = &w->fit;
    const int n = w->saxs->n, first = w->best * w->n_draw;
    const tsr_parameter *p = w->curves.parameter;
    const tsr_linear *linear = &w->curves.linear;
    tsr_profile_fit *f = &r->fit;
    double *rest;
    w->which = first + (int)gsl_stats_max_index(w->value[LOG_LIK] + first, 1,
                                                (size_t)w->n_draw);
    tsr_ensemble_draw draw = *draw_at(w, w->which);
    const ensemble e = ensemble_at(w, w->which);
    tsr_pool_array(&w->pool, rest, n);
    r->curve = calloc((size_t)n, sizeof *r->curve);
    r->structure.path = strdup(w->row[w->best].name);
    if (rest == NULL || r->curve == NULL || r->structure.path == NULL)
        return tsr_no_memory(err);
    TSR_TRY(tsr_ensemble_evaluate(&w->curves, e.n, e.member, e.weight, NULL,
                                  &draw, r->curve, err));
    if (!(draw.scale > 0.0))
        return tsr_fail(err, TSR_E_NUMERIC,
                        "'%s': no positive scale fits any ensemble",
                        w->saxs->path);
    *f = (tsr_profile_fit){.n_point = n,
                           .n_parameter = p[TSR_C1].infer + p[TSR_C2].infer +
                                          linear->infer_scale +
                                          linear->infer_background,
                           .scale = draw.scale,
                           .background = draw.background,
                           .c1 = draw.theta[TSR_C1],
                           .c2 = draw.theta[TSR_C2],
                           .chi2 = draw.chi2};
    f->reduced_chi2 = f->chi2 * n / (n - f->n_parameter);
    for (int i = 0; i < n; i++)
        rest[i] = w->saxs->intensity[i] - r->curve[i];
    f->longest_run = tsr_cormap_longest_run(n, rest);
    f->cormap_p = tsr_cormap_p(n, f->longest_run);
    tsr_profile_fit_set_noise(f, &w->saxs->noise);
    r->n_comp = TSR_N_COMP;
    return TSR_OK;
}

/* ---- the answer ---- */

/* Begins a part of the answer: an array, or lines under a title. */
static void begin_part(const work *w, tsr_json *json, const char *key,
                       const char *title)
{
    if (json != NULL)
        tsr_json_array(json, key);
    else
        fprintf(w->out, "\n%s", title);
}

static void print_rows(const work *w, tsr_json *json)
{
    tsr_table t = {.out = w->out, .json = json};
    begin_part(w, json, "ensembles", "");
    for (int r = 0; r < w->n_kind; r++) {
        const row *x = &w->row[r];
        const tsr_ensemble_kind kind = w->sample[r].kind;
        const tsr_convergence *rg = &x->summary[RG], *d = &x->summary[D_MAX];
        tsr_table_row(&t, NULL);
        tsr_table_put(&t,
                      "name|ensemble %-12s members %d copies %i log_z|log~Z "
                      "%10.2f error|+- %6.2f probability|P %6.3f "
                      "chi2|chi2/N %7.3f "
                      "rg|Rg %7.2f rg_q5|5~%% %7.2f rg_q95|95~%% %7.2f "
                      "d_max|D_max %6.1f d_max_q5 %g d_max_q95 %g "
                      "rhat|R-hat %6.3f",
                      x->name, kind.n_member, kind.is_copies, x->log_z,
                      x->error, x->probability, x->chi2, rg->median, rg->q5,
                      rg->q95, d->median, d->q5, d->q95, x->rhat);
        tsr_table_end(&t);
    }
    if (json != NULL)
        tsr_json_close(json);
    else
        fputs("chi2/N: the least of the draws. members: weights of their own; "
              "copies: equal\nweights, as theta of maximum entropy\n\n",
              w->out);
}

/* A row for each quantity of an ensemble. */
static tsr_status print_intervals(const work *w, tsr_json *json, tsr_err *err)
{
    static const char *const name[][2] = {[RG] = {"rg", "Rg (A)"},
                                          [D_MAX] = {"d_max", "mean D_max (A)"},
                                          [C1] = {"c1", "c1"},
                                          [C2] = {"c2", "c2"},
                                          [NOISE] = {"noise_scale", "noise s"}};
    tsr_table t = {.out = w->out, .json = json};
    double *value = malloc((size_t)w->n_draw * sizeof *value);
    tsr_status status = tsr_allocated(value, err);
    for (int v = RG; v < CHI2 && status == TSR_OK; v++) {
        tsr_convergence x;
        for (int i = 0; i < w->n_draw; i++)
            value[i] = w->value[v][w->chosen[i]];
        status = tsr_convergence_make(0, 1, w->n_draw, value, &x, err);
        tsr_table_row(&t, name[v][0]);
        tsr_table_put(&t,
                      "|over~all~ensembles %-18s q5|5~%% %10.4g "
                      "median|median %10.4g q95|95~%% %10.4g",
                      name[v][1], x.q5, x.median, x.q95);
        tsr_table_end(&t);
    }
    free(value);
    return status;
}

/* A row for each class, named by one of its conformations. */
static void print_classes(const work *w, tsr_json *json, const char *key,
                          const char *title, const classes *c,
                          const int *typical)
{
    tsr_table t = {.out = w->out, .json = json};
    begin_part(w, json, key, title);
    for (int g = 0; g < c->n; g++) {
        const tsr_convergence *x = &c->share[g];
        char text[256];
        tsr_table_row(&t, NULL);
        tsr_table_put(&t,
                      "conformation|conformation %-40s number %d rg|Rg %7.2f "
                      "d_max|D_max %6.1f pool|of~pool %8.4f "
                      "weight|weight %7.4f q5|5~%% %7.4f q95|95~%% %7.4f",
                      label_of(w, typical[g], text), typical[g],
                      w->rg[typical[g]], w->d_max[typical[g]],
                      (double)c->size[g] / w->curves.n, x->mean, x->q5, x->q95);
        tsr_table_end(&t);
    }
    if (json != NULL)
        tsr_json_close(json);
}

/* Conclusions: which ensembles, whether they explain the data, convergence. */
static void conclude(const work *w, tsr_words *words)
{
    const tsr_profile_fit *fit = &w->fit.fit;
    const row *best = &w->row[w->best];
    double worst = 1.0, error = 0.0;
    int n_open = 0; /* not excluded by odds of 20 to 1, exp(3) */
    for (int r = 0; r < w->n_kind; r++) {
        const row *x = &w->row[r];
        n_open += x != best && x->log_z > best->log_z - 3.0;
        if (x->log_z + 3.0 * x->error > best->log_z - 4.6) {
            worst = fmax(worst, x->rhat);
            error = fmax(error, x->error);
        }
    }
    tsr_words_add(words, "Most probable: %s (%.2f).", best->name,
                  best->probability);
    if (w->best > 0)
        tsr_words_add(words,
                      " The pool with equal weights is %.1f nat less probable.",
                      best->log_z - w->row[0].log_z);
    else
        tsr_words_add(words, " No other weights are needed.");
    if (n_open > 0)
        tsr_words_add(words,
                      " The data do not decide: its odds against %d of the "
                      "others are below 20.",
                      n_open);
    tsr_words_add(words, "\n");
    const double noise = fmax(1.0, fit->noise);
    if (fit->reduced_chi2 > 1.5 * noise * noise || fit->cormap_p < 0.01)
        tsr_words_add(words,
                      "No ensemble of this pool fits the data within their "
                      "errors (reduced chi2 %.2f): the pool lacks "
                      "conformations, or the data or the solvent model are "
                      "wrong. Weights then make up for other errors.\n",
                      fit->reduced_chi2);
    if (!(worst < 1.05) || !(error < 0.5))
        tsr_words_add(words,
                      "Not converged (R-hat %.3f, error of log Z %.2f nat): "
                      "take more --draws.\n",
                      worst, error);
    else
        tsr_words_add(words,
                      "Converged: %d populations agree (R-hat %.3f, error of "
                      "log Z %.2f nat).\n",
                      N_GROUP, worst, error);
}

static void put_distribution(const work *w, tsr_json *j)
{
    static const char *const key[] = {"weight", "q5", "q95"};
    tsr_json_object(j, "rg_distribution");
    tsr_json_members(j, "from %g to %g pool[", w->range[0], w->range[1]);
    for (int i = 0; i < N_BIN; i++)
        tsr_json_integer(j, NULL, w->by_rg.size[i]);
    tsr_json_close(j);
    for (int v = 0; v < 3; v++) {
        double share[N_BIN];
        for (int i = 0; i < N_BIN; i++) {
            const tsr_convergence *x = &w->by_rg.share[i];
            share[i] = v == 0 ? x->mean : v == 1 ? x->q5 : x->q95;
        }
        tsr_json_numbers(j, key[v], N_BIN, share);
    }
    tsr_json_close(j);
}

static tsr_status print(const work *w, tsr_err *err)
{
    const tsr_profile_fit *fit = &w->fit.fit;
    tsr_json j = {.out = w->out, .digits = 9};
    tsr_json *json = w->o->json ? &j : NULL;
    tsr_words words;
    if (json != NULL) {
        tsr_json_object(json, NULL);
        tsr_json_members(json,
                         "conformations %d data %s n_points %d axes %d "
                         "curves_per_second %g most_probable %s chi2 %g "
                         "reduced_chi2 %g cormap_p %g",
                         w->curves.n, w->saxs->path, w->saxs->n,
                         w->curves.n_dim, w->curves.n / w->seconds,
                         w->row[w->best].name, fit->chi2, fit->reduced_chi2,
                         fit->cormap_p);
    } else
        fprintf(w->out, "pool of %d conformations, data %s: %d points\n",
                w->curves.n, tsr_text_file_name(w->saxs->path), w->saxs->n);
    print_rows(w, json);
    TSR_TRY(print_intervals(w, json, err));
    print_classes(w, json, "groups",
                  "groups of similar curves, by their typical conformation\n",
                  &w->group, w->centre);
    print_classes(w, json, "conformations_of_largest_weight",
                  "conformations of largest weight\n", &w->member, w->ranking);
    tsr_words_begin(&words);
    conclude(w, &words);
    if (json == NULL) {
        fputc('\n', w->out);
        return tsr_words_print(&words, w->out, 0, "", err);
    }
    put_distribution(w, json);
    TSR_TRY(tsr_json_lines(json, "verdict", &words, err));
    tsr_json_close(json);
    return TSR_OK;
}

/* ---- files ---- */

#define MARK "# tessera pool"

static tsr_status write_weights(const work *w, FILE *out, tsr_err *err)
{
    (void)err;
    fputs(MARK ": mean weights over all ensembles\n"
               "conformation\tfrom\trg\td_max\tgroup\tweight\n",
          out);
    for (int i = 0; i < w->curves.n; i++) {
        char text[256];
        fprintf(out, "%d\t%s\t%.3f\t%.2f\t%d\t%.6g\n", i, label_of(w, i, text),
                w->rg[i], w->d_max[i], w->group.of[i] + 1, w->mean[i]);
    }
    return TSR_OK;
}

/* The draws, with their members as conformation:weight. */
static tsr_status write_draws(const work *w, FILE *out, tsr_err *err)
{
    (void)err;
    fputs(MARK ": draws of the posterior over all ensembles\n"
               "ensemble\tlog_lik\tchi2\trg\td_max\tc1\tc2\tnoise_scale\t"
               "scale\tbackground\tmembers\n",
          out);
    for (int i = 0; i < w->n_draw; i++) {
        const int at = w->chosen[i], r = at / w->n_draw;
        const tsr_ensemble_draw *d = draw_at(w, at);
        const ensemble e = ensemble_at(w, at);
        fprintf(out,
                "%s\t%.6g\t%.6g\t%.3f\t%.2f\t%.5f\t%.5f\t%.5f\t%.6g\t%.6g\t",
                w->row[r].name, d->log_lik, d->chi2, w->value[RG][at],
                w->value[D_MAX][at], d->theta[TSR_C1], d->theta[TSR_C2],
                w->value[NOISE][at], d->scale, d->background);
        for (int j = 0; j < e.n && r > 0; j++)
            fprintf(out, "%s%d:%.5g", j > 0 ? " " : "", e.member[j],
                    e.weight[j]);
        fputc('\n', out);
    }
    return TSR_OK;
}

/* The members of a draw, each conformation once. */
static tsr_status write_members(const work *w, FILE *out, tsr_err *err)
{
    const ensemble e = ensemble_at(w, w->which);
    int number = 0;
    tsr_status status = TSR_OK;
    double *weight = calloc((size_t)w->curves.n, sizeof *weight);
    TSR_TRY(tsr_allocated(weight, err));
    for (int j = 0; j < e.n; j++)
        weight[e.member[j]] += e.weight[j];
    for (int j = 0; j < e.n && status == TSR_OK; j++) {
        const int i = e.member[j];
        int model;
        char text[256], label[300];
        double(*xyz)[3];
        tsr_model_atoms list;
        const tsr_map_models *m = find_model(w, i, &model);
        const tsr_model_spec spec = {
            .format = TSR_MODEL_PDB, .name = "members", .atoms = &list};
        if (weight[i] == 0.0)
            continue;
        snprintf(label, sizeof label, "weight %.4f, conformation %d: %s",
                 weight[i], i, label_of(w, i, text));
        weight[i] = 0.0;
        tsr_pool_array(&m->atoms->pool, xyz, m->atoms->n_atom);
        status = tsr_allocated(xyz, err);
        TSR_THEN(status, tsr_map_models_list(m, &list, err));
        TSR_THEN(status, tsr_map_models_frame(m, model, xyz, err));
        if (status == TSR_OK && number == 0)
            tsr_model_begin(&spec, "tessera: members of an ensemble", out);
        TSR_THEN(status, tsr_model_write(&spec, ++number, label,
                                         (const double(*)[3])xyz, out, err));
    }
    fputs("END\n", out);
    free(weight);
    return status;
}

/* The files of the folder, and what tells those of tessera. write: of those
 * that are printed here. */
static const struct {
    const char *name, *begins, *holds;
    tsr_status (*write)(const work *w, FILE *out, tsr_err *err);
} target[] = {{"weights.tsv", MARK, NULL, write_weights},
              {"draws.tsv", MARK, NULL, write_draws},
              {"members.pdb", "REMARK 999 tessera: ", NULL, write_members},
              {"ensemble.fit", "# SAXS profile:", ", by tessera\n", NULL},
              {"ensemble.svg", "<svg", TSR_SVG_MARK, NULL},
              {"distribution.svg", "<svg", TSR_SVG_MARK, NULL},
              {"distribution.csv", "panel,", NULL, NULL}};
enum { N_TARGET = sizeof target / sizeof *target };

/* Makes the folder, and checks before the computation that its files may be
 * written. */
static tsr_status check_folder(const work *w, const tsr_args *args,
                               tsr_err *err)
{
    const options *o = w->o;
    struct stat info;
    if (o->output == NULL)
        return TSR_OK;
    const tsr_file_target rule = {.maker = "pool",
                                  .n_input = args->n,
                                  .input = args->argument,
                                  .is_forced = o->force};
    if (mkdir(o->output, 0777) != 0 &&
        (stat(o->output, &info) != 0 || !S_ISDIR(info.st_mode)))
        return tsr_fail(err, TSR_E_IO, "cannot make the folder '%s': %s",
                        o->output, strerror(errno));
    for (int i = 0; i < N_TARGET; i++)
        TSR_TRY(tsr_file_check_target(
            &rule, tsr_path_in(o->output, target[i].name).text,
            target[i].begins, target[i].holds, err));
    return TSR_OK;
}

static tsr_status write_distribution(const work *w, tsr_err *err)
{
    enum { N = 2 * N_BIN }; /* the ends of the steps */
    double x[N], low[N], high[N], mean[N], pool[N];
    tsr_figure f = tsr_figure_new("distribution", "Rg of the ensembles",
                                  "Rg (\xc3\x85)", 650);
    for (int i = 0; i < N; i++) {
        const int bin = i / 2, edge = (i + 1) / 2;
        const tsr_convergence *share = &w->by_rg.share[bin];
        x[i] = w->range[0] + (w->range[1] - w->range[0]) * edge / N_BIN;
        low[i] = share->q5, high[i] = share->q95, mean[i] = share->mean;
        pool[i] = (double)w->by_rg.size[bin] / w->curves.n;
    }
    tsr_figure_panel(&f, "share", 0, 220);
    tsr_figure_layer(&f, TSR_LAYER_BAND, "weight, middle 90 %",
                     TSR_COLOUR_ERROR, N, x, low, high);
    tsr_figure_layer(&f, TSR_LAYER_LINE, "mean weight", TSR_COLOUR_MODEL, N, x,
                     mean, NULL);
    tsr_figure_layer(&f, TSR_LAYER_DASHES, "the pool", TSR_COLOUR_DATA, N, x,
                     pool, NULL);
    tsr_status status = tsr_figure_finish(&f, err);
    const tsr_path svg = tsr_path_in(w->o->output, "distribution.svg");
    const tsr_path csv = tsr_path_in(w->o->output, "distribution.csv");
    TSR_THEN(status, tsr_figure_write_svg(&f, svg.text, err));
    TSR_THEN(status, tsr_figure_write_csv(&f, csv.text, err));
    tsr_figure_clear(&f);
    return status;
}

static tsr_status write_files(const work *w, tsr_err *err)
{
    for (int i = 0; i < N_TARGET; i++) {
        tsr_file_writer to;
        if (target[i].write == NULL ||
            (w->best == 0 && target[i].write == write_members))
            continue;
        TSR_TRY(tsr_file_begin(
            &to, tsr_path_in(w->o->output, target[i].name).text, err));
        TSR_TRY(tsr_file_end(&to, target[i].write(w, to.out, err), err));
    }
    TSR_TRY(write_distribution(w, err));
    return tsr_profile_write_fit(tsr_path_in(w->o->output, "ensemble.fit").text,
                                 w->fit.structure.path, w->saxs, &w->fit,
                                 w->log, err);
}

/* ---- the command ---- */

static tsr_status run_pool(const tsr_args *args, FILE *out, tsr_log *log,
                           tsr_err *err)
{
    work *w = calloc(1, sizeof *w);
    TSR_TRY(tsr_allocated(w, err));
    w->o = args->options;
    w->out = out;
    w->log = log;
    tsr_status status = make_settings(w, args, err);
    TSR_THEN(status, check_folder(w, args, err));
    TSR_THEN(status, make_pool(w, args, err));
    TSR_THEN(status, tsr_ensemble_run(&w->curves, w->n_kind, w->sample,
                                      (uint64_t)w->o->seed, w->n_thread,
                                      &w->pool, err));
    TSR_THEN(status, measure_draws(w, err));
    TSR_THEN(status, weigh_rows(w, err));
    TSR_THEN(status, measure_members(w, err));
    TSR_THEN(status, bin_rg(w, err));
    TSR_THEN(status, best_fit(w, err));
    if (w->o->output != NULL)
        TSR_THEN(status, write_files(w, err));
    TSR_THEN(status, print(w, err));
    tsr_profile_result_clear(&w->fit);
    for (int k = 0; k < w->n_operator; k++)
        free(w->operator[k]);
    for (int f = 0; f < w->n_file; f++)
        tsr_map_models_clear(&w->file[f]);
    tsr_profile_maker_free(w->maker);
    tsr_pool_clear(&w->curves.pool);
    tsr_saxs_free(w->saxs);
    tsr_pool_clear(&w->pool);
    free(w);
    return status;
}

const tsr_command tsr_command_pool = {
    .name = "pool",
    .doc = "weights of given conformations, with their uncertainty, by a curve",
    .arguments = "STRUCTURE...",
    .options = fields,
    .size = sizeof(options),
    .about =
        "A pool is all models of all files (PDB, mmCIF), the frames of a "
        "trajectory, or the draws of a run (its folder), such as one with "
        "--prior-only. The posterior is over ensembles of its conformations: "
        "few members with weights of their own, or many copies with equal "
        "weights, which is maximum entropy. The evidence says how many members "
        "or copies the data ask for; weights, Rg and D_max come with 90 % "
        "intervals (docs/pools.md).",
    .run = run_pool};
