/* tessera reweight DIR: prints every variable of the posterior before and after
 * reweighting, and the effective number of draws, which decides whether the
 * weights are reliable. */
#include "commands/command.h"
#include "session/past_run.h"

#include "analysis/loo.h"
#include "analysis/maxent.h"
#include "analysis/reweight.h"
#include "core/json.h"
#include "files/file.h"
#include "likelihood/noise.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

typedef struct {
    char *data, *noise, *output;
    double q_range[2];
    long set_number;
    double theta; /* 0: not given */
    int maxent, json, force;
} options;

static const tsr_field fields[] = {
    TSR_FIELD(STRING, "data", options, data, .argument = "FILE",
              .doc = "new curve; default: the curve of the run"),
    TSR_FIELD(PAIR, "q-range", options, q_range, .argument = "LO,HI",
              .unit = "1/Angstrom", .max = HUGE_VAL,
              .doc = "range of the points to use"),
    TSR_FIELD(STRING, "noise", options, noise, .argument = "MODEL",
              .doc = "new noise model, with its default priors"),
    TSR_FIELD(INT, "set-number", options, set_number, .argument = "N",
              .initial = "1", .min = 1, .max = 1000,
              .doc = "data set of the run to replace, counted from 1"),
    TSR_FIELD(BOOL, "maxent", options, maxent,
              .doc =
                  "weights by maximum entropy instead of importance weights"),
    TSR_FIELD(DOUBLE, "theta", options, theta, .argument = "X", .min = 1e-6,
              .max = 1e9,
              .doc = "with --maxent: penalty on changes of the weights; "
                     "default: from the L-curve"),
    TSR_FIELD(STRING, "output", options, output, .argument = "FILE",
              .doc = "output file of the weights, as CSV"),
    TSR_OPTION_JSON(options),
    TSR_OPTION_FORCE(options),
    {0}};

/* Values of a variable before and after reweighting, which show the effect of
 * the new data. */
typedef struct {
    char *name;
    int has_before;    /* 0: the run has no such variable */
    int is_drawn_anew; /* scale, background, noise: drawn for the new data,
                          not taken from the run */
    tsr_weighted before, after;
} row;

typedef struct {
    const options *o;
    tsr_log *log;
    tsr_past_run run;
    tsr_stored_curve stored; /* curves of the run that are reweighted */
    int is_smeared;          /* smeared by their instrument */
    tsr_data_set before, after;
    tsr_saxs *read;           /* the new data: from a file, */
    tsr_saxs part;            /* or the points of the run */
    tsr_reweight *importance; /* either */
    tsr_maxent *entropy;
    const double *log_weight; /* of importance or entropy */
    tsr_psis psis;
    double worth; /* number of independent draws; of importance weights */
    double interpolation;
    tsr_pool pool; /* of the rows */
    int n;
    row *row; /* [n] */
} work;

enum { NAME = 64 };

static tsr_status parse(work *r, tsr_err *err)
{
    const options *o = r->o;
    const tsr_past_run *run = &r->run;
    char key[NAME];
    if (o->theta > 0.0 && !o->maxent)
        return tsr_fail(err, TSR_E_USAGE, "--theta needs --maxent");
    if (o->noise != NULL && o->maxent)
        return tsr_fail(
            err, TSR_E_USAGE,
            "--maxent uses the errors of the file; leave --noise out");
    if (!run->has_data)
        return tsr_fail(err, TSR_E_DATA,
                        "'%s' is a run of the prior, without curves: run with "
                        "the data instead",
                        run->trace_path);
    if (!run->has_config)
        return tsr_fail(err, TSR_E_NOINPUT,
                        "config.yaml of the run is needed for its noise model; "
                        "give the folder of the run, not the trace");
    if (r->o->set_number > run->config.data.n)
        return tsr_fail(err, TSR_E_USAGE,
                        "--set-number %ld: the run has %d data set%s",
                        r->o->set_number, run->config.data.n,
                        run->config.data.n == 1 ? "" : "s");
    const tsr_term_options *data = run->config.data.item;
    const tsr_saxs_options *d = (const void *)&data[r->o->set_number - 1];
    if (!tsr_term_registry[d->kind]->is_curve)
        return tsr_fail(err, TSR_E_USAGE,
                        "--set-number %ld: that data set is of kind %s; only "
                        "curves can be replaced",
                        r->o->set_number, tsr_term_registry[d->kind]->name);
    r->is_smeared = tsr_resolution_is_requested(&d->resolution);
    r->before = d->set;
    r->before.interparticle.word = 0; /* none: the stored curves include it */
    /* Before the key background_sd existed, `infer` meant a flat prior.
     * config.yaml of a run has all keys of its version, and a key that it lacks
     * is found at the place of its section. */
    snprintf(key, sizeof key, "data.%ld.background_sd", o->set_number - 1);
    const char *place = tsr_yaml_marks_find(&run->config.marks, key);
    *strrchr(key, '.') = '\0';
    if (r->before.background.word == TSR_BACKGROUND_INFER &&
        place == tsr_yaml_marks_find(&run->config.marks, key))
        r->before.background.word = TSR_BACKGROUND_FLAT;
    r->after = r->before;
    r->after.nuisance = TSR_NUISANCE_AUTO;
    if (o->noise != NULL &&
        tsr_noise_select(&r->after.noise, o->noise, err) != TSR_OK)
        return tsr_wrap(err, TSR_E_USAGE, "--noise");
    return TSR_OK;
}

/* The run's points inside the range. */
static tsr_status select_points(work *r, tsr_err *err)
{
    const tsr_saxs *run = &r->stored.saxs;
    enum { LEAST = 5 };
    const double *range = r->o->q_range;
    const int has_range = range[1] > 0.0;
    tsr_saxs *p = &r->part;
    *p = (tsr_saxs){.path = run->path};
    tsr_pool_array(&p->pool, p->q, run->n);
    tsr_pool_array(&p->pool, p->intensity, run->n);
    tsr_pool_array(&p->pool, p->sigma, run->n);
    TSR_TRY(tsr_pool_check(&p->pool, err));
    for (int k = 0; k < run->n; k++) {
        if (has_range && (run->q[k] < range[0] || run->q[k] > range[1]))
            continue;
        p->q[p->n] = run->q[k];
        p->intensity[p->n] = run->intensity[k];
        p->sigma[p->n++] = run->sigma[k];
    }
    r->after.saxs = p;
    if (p->n >= LEAST)
        return TSR_OK;
    return tsr_fail(err, TSR_E_DATA,
                    "--q-range: %d points of the run, q = %.4g to %.4g 1/A, "
                    "are inside; %d are needed",
                    p->n, run->q[0], run->q[run->n - 1], LEAST);
}

static tsr_status read_points(work *r, tsr_err *err)
{
    if (r->o->data == NULL)
        return select_points(r, err);
    if (r->is_smeared)
        tsr_warn(r->log,
                 "the curves of the run are smeared for its own data; '%s' is "
                 "assumed to be from the same instrument",
                 r->o->data);
    tsr_status status = tsr_saxs_read(
        r->o->data, TSR_Q_AUTO, r->o->q_range[1] > 0.0 ? r->o->q_range : NULL,
        r->log, &r->read, err);
    r->after.saxs = r->read;
    return status;
}

/* ---- rows ---- */

static int is_curve_name(const char *name, const char *of, int data)
{
    char full[NAME];
    tsr_stored_curve_name(of, data, sizeof full, full);
    return strcmp(name, full) == 0;
}

/* Returns 1 where a variable belongs to the replaced data. */
static int belongs_to_data(const char *name, int data)
{
    static const char *const own[] = {"scale", "background", "chi2", NULL};
    for (int i = 0; own[i] != NULL; i++)
        if (is_curve_name(name, own[i], data))
            return 1;
    char number[NAME];
    const char *last = strrchr(name, '_');
    tsr_stored_curve_name("", data, sizeof number, number);
    return strncmp(name, "noise_", 6) == 0 &&
           (data == 0 ? strspn(last + 1, "0123456789") == 0
                      : strcmp(last, number) == 0);
}

/* Prints values before and after; either may be NULL. */
static tsr_status add_row(work *r, const char *name, const double *before,
                          const double *after, tsr_err *err)
{
    const tsr_stored_curve *s = &r->stored;
    const long n = (long)s->n_chain * s->n_draw;
    row *more =
        tsr_pool_resize(&r->pool, r->row, (size_t)r->n + 1, sizeof *more);
    char *copy = tsr_pool_text(&r->pool, name);
    TSR_TRY(tsr_pool_check(&r->pool, err));
    r->row = more;
    row *item = &r->row[r->n++];
    *item = (row){.name = copy,
                  .has_before = before != NULL,
                  .is_drawn_anew = before != after};
    if (before != NULL)
        TSR_TRY(tsr_weighted_make(n, before, NULL, &item->before, err));
    return tsr_weighted_make(n, after, r->log_weight, &item->after, err);
}

static tsr_status add_data_row(work *r, const char *name, const double *after,
                               tsr_err *err)
{
    char full[NAME];
    double *before;
    if (name == NULL || after == NULL)
        return TSR_OK;
    tsr_stored_curve_name(name, r->stored.data, sizeof full, full);
    tsr_status status = tsr_stored_curve_scalar(&r->stored, TSR_TRACE_POSTERIOR,
                                                full, &before, err);
    TSR_THEN(status, add_row(r, full, before, after, err));
    free(before);
    return status;
}

/* Fills the rows for every scalar of the posterior, with one in memory at a
 * time. */
static tsr_status make_rows(work *r, tsr_err *err)
{
    const char *const *name;
    tsr_status status = TSR_OK;
    const int n =
        tsr_trace_variables(r->stored.trace, TSR_TRACE_POSTERIOR, &name);
    for (int i = 0; i < n && status == TSR_OK; i++) {
        int n_chain, n_draw, n_each;
        double *value;
        if (belongs_to_data(name[i], r->stored.data) ||
            tsr_trace_shape(r->stored.trace, TSR_TRACE_POSTERIOR, name[i],
                            &n_chain, &n_draw, &n_each, NULL) != TSR_OK ||
            n_each != 1)
            continue;
        status = tsr_stored_curve_scalar(&r->stored, TSR_TRACE_POSTERIOR,
                                         name[i], &value, err);
        TSR_THEN(status, add_row(r, name[i], value, value, err));
        free(value);
    }
    const tsr_reweight *made = r->importance;
    if (made == NULL)
        return status;
    TSR_THEN(status, add_data_row(r, "scale", made->scale, err));
    TSR_THEN(status, add_data_row(r, "background", made->background, err));
    TSR_THEN(status, add_data_row(r, "chi2", made->chi2, err));
    for (int i = 0; i < TSR_NOISE_PARAMETERS && status == TSR_OK; i++)
        status = add_data_row(r, made->noise_name[i], made->noise[i], err);
    return status;
}

/* ---- what is told ---- */

/* Of n points, two standard deviations above what noise alone gives. */
static double chi2_limit(int n)
{
    return 1.0 + 2.0 * sqrt(2.0 / n);
}

static void add_point(tsr_table *t, const char *key, const char *mark,
                      const char *theta, const tsr_maxent_point *p)
{
    tsr_table_row(t, key);
    tsr_table_put(t,
                  "| %-2s |theta %12s theta %g chi2|chi2 %12.5g kl|KL %10.4f "
                  "effective|effective %10.4f scale %g background %g",
                  mark, theta, p->theta, p->chi2, p->kl, p->effective, p->scale,
                  p->background);
    tsr_table_end(t);
}

/* The L-curve, behind equal weights. */
static void add_theta_curve(tsr_table *t, const tsr_maxent *m)
{
    char theta[32];
    add_point(t, "equal", "", "equal", &m->start);
    if (t->json != NULL)
        tsr_json_array(t->json, "l_curve");
    for (int i = 0; i < m->n_point; i++) {
        snprintf(theta, sizeof theta, "%.4g", m->point[i].theta);
        add_point(t, NULL, i == m->chosen ? "->" : "", theta, &m->point[i]);
    }
    if (t->json != NULL)
        tsr_json_close(t->json);
}

static void add_values(tsr_table *t, const char *key, const tsr_weighted *w)
{
    if (t->json != NULL)
        tsr_json_object(t->json, key);
    tsr_table_put(t,
                  strcmp(key, "now") == 0
                      ? "mean|now:~mean %11.5g sd|sd %11.3g q5|q5 %11.5g "
                        "median|median %11.5g q95|q95 %11.5g"
                      : "mean|run:~mean %11.5g sd|sd %11.3g q5 %g median %g "
                        "q95 %g",
                  w->mean, w->sd, w->q5, w->median, w->q95);
    if (t->json != NULL)
        tsr_json_close(t->json);
}

static void add_rows(const work *r, tsr_table *t)
{
    const tsr_weighted none = {.mean = (double)NAN, .sd = (double)NAN};
    for (int i = 0; i < r->n; i++) {
        const row *item = &r->row[i];
        tsr_table_row(t, item->name);
        tsr_table_put(t, "| %-16s", item->name);
        if (item->has_before || t->json == NULL)
            add_values(t, "run", item->has_before ? &item->before : &none);
        tsr_table_put(t, "|| %1s", "|");
        add_values(t, "now", &item->after);
        tsr_table_end(t);
    }
}

static void print_curve(const tsr_maxent *m, int n_data, FILE *out)
{
    add_theta_curve(&(tsr_table){.out = out}, m);
    fprintf(out,
            "\ntheta = %.4g%s: chi2 %.4g a point (equal weights: %.4g), "
            "%.1f %% of the ensemble is used\n\n",
            m->point[m->chosen].theta,
            m->n_point > 1 ? ", at the elbow of the L-curve" : "",
            m->point[m->chosen].chi2, m->start.chi2,
            100.0 * m->point[m->chosen].effective);
    if (m->start.chi2 <= chi2_limit(n_data))
        fprintf(out,
                "equal weights fit: a chi2 of up to %.3g is within the noise "
                "of %d points, and the gain by other weights is noise\n\n",
                chi2_limit(n_data), n_data);
}

static void print(const work *r, FILE *out)
{
    const long n = (long)r->stored.n_chain * r->stored.n_draw;
    fprintf(out, "data: %s, %d points, q = %.4g to %.4g 1/A",
            r->after.saxs->path, r->after.saxs->n, r->after.saxs->q[0],
            r->after.saxs->q[r->after.saxs->n - 1]);
    if (r->importance != NULL)
        fprintf(out, "; noise model %s",
                tsr_noise_registry[r->after.noise.model]->name);
    fputc('\n', out);
    if (r->interpolation > 0.0)
        fprintf(out,
                "its q values differ from those of the run: the interpolated "
                "curve has an error of some %.1g sigma at most\n",
                r->interpolation);
    if (r->entropy != NULL)
        print_curve(r->entropy, r->after.saxs->n, out);
    fprintf(out, "effective draws: %.1f of %ld (%.1f %%)", r->psis.ess, n,
            100.0 * r->psis.ess / (double)n);
    if (r->importance != NULL && isfinite(r->psis.pareto_k))
        fprintf(out, "; Pareto k = %.2f (good below 0.7)", r->psis.pareto_k);
    else if (r->importance != NULL)
        fputs("; all weights are equal", out);
    if (r->importance != NULL && isfinite(r->psis.pareto_k))
        fprintf(out, "; worth %.1f independent draws", r->worth);
    fputs("\n\n", out);
    add_rows(r, &(tsr_table){.out = out});
}

static void print_json(const work *r, FILE *out)
{
    const tsr_maxent *m = r->entropy;
    tsr_json j = {.out = out};
    tsr_table t = {.json = &j};
    tsr_json_object(&j, NULL);
    tsr_json_members(&j, "draws %ld points %d ess %g",
                     (long)r->stored.n_chain * r->stored.n_draw,
                     r->after.saxs->n, r->psis.ess);
    if (r->importance != NULL)
        tsr_json_members(&j, "worth %g pareto_k %g recovered %g", r->worth,
                         r->psis.pareto_k, r->importance->recovered);
    tsr_json_members(&j, "interpolation %g", r->interpolation);
    if (m != NULL) {
        tsr_json_members(&j, "theta %g equal_weights_fit %i",
                         m->point[m->chosen].theta,
                         m->start.chi2 <= chi2_limit(r->after.saxs->n));
        add_theta_curve(&t, m);
    }
    tsr_json_object(&j, "variables");
    add_rows(r, &t);
    tsr_json_close(&j);
    tsr_json_close(&j);
}

/* Columns chain, draw, weight (sum 1), log_weight. */
static tsr_status write_csv(const work *r, const char *path, tsr_err *err)
{
    const tsr_stored_curve *s = &r->stored;
    tsr_file_writer to;
    tsr_status status = tsr_file_begin(&to, path, err);
    FILE *out = to.out;
    if (status != TSR_OK)
        return status;
    fputs("chain,draw,weight,log_weight\n", out);
    for (long i = 0; i < (long)s->n_chain * s->n_draw; i++) {
        fprintf(out, "%ld,%ld,%.17g,", i / s->n_draw, i % s->n_draw,
                exp(r->log_weight[i]));
        if (isfinite(r->log_weight[i]))
            fprintf(out, "%.17g", r->log_weight[i]);
        fputc('\n', out);
    }
    return tsr_file_end(&to, TSR_OK, err);
}

/* ---- the two kinds of weights ---- */

/* Weights that rest on few draws say nothing: exit status 1. */
static tsr_status check_weights(const work *r, long n, tsr_err *err)
{
    const double least = 0.1, most_k = 0.7, least_worth = 10.0;
    const tsr_psis *psis = &r->psis;
    const char *file = r->o->data != NULL ? r->o->data : "these data";
    const double share = psis->ess / (double)n;
    const int is_bad = isfinite(psis->pareto_k) && psis->pareto_k > most_k;
    char k[48] = "";
    if (is_bad)
        snprintf(k, sizeof k, ", Pareto k = %.2f (0.7 at most)",
                 psis->pareto_k);
    if (share < least || is_bad)
        return tsr_fail(
            err, TSR_E_NO,
            "the weights concentrate on %.1f of %ld draws (%.2g %%, 10 %% are "
            "needed)%s: the draws are too far from the posterior of %s; run "
            "with these data instead (tessera run CONFIG --set data.%ld...), "
            "or, for the smallest change that fits, use --maxent",
            psis->ess, n, 100.0 * share, k, file, r->o->set_number - 1);
    if (!(r->worth >= least_worth))
        return tsr_fail(err, TSR_E_NO,
                        "the weights concentrate on %.1f of %ld draws, worth "
                        "%.1f independent draws (%.0f are needed): continue "
                        "the run for more draws, or run with %s",
                        psis->ess, n, r->worth, least_worth, file);
    if (psis->pareto_k > most_k)
        return tsr_fail(
            err, TSR_E_NO,
            "%ld draws are too few to assess their largest weights (too few "
            "different draws): continue the run for more draws, or run with %s",
            n, file);
    return TSR_OK;
}

/* Weights cannot widen a posterior by much: draws beyond the run's tails were
 * not made, which neither the effective number nor k sees in time. Of normal
 * posteriors the estimate is 3 % too narrow at this ratio, and 11 % at twice
 * the width (8000 draws). */
static tsr_status check_widths(const work *r, tsr_err *err)
{
    const double most = 1.5, rounding = 1e-12;
    for (int i = 0; i < r->n; i++) {
        const row *item = &r->row[i];
        const double least = rounding * fabs(item->before.mean);
        if (item->is_drawn_anew ||
            !(item->after.sd > most * fmax(item->before.sd, least)))
            continue;
        return tsr_fail(
            err, TSR_E_NO,
            "the spread of %s grows by a factor of %.2g (at most %.2g is "
            "allowed): the draws do not cover the new posterior, and the "
            "weighted spread would be too small; run with these data instead "
            "(tessera run CONFIG --set data.%ld...)",
            item->name, item->after.sd / item->before.sd, most,
            r->o->set_number - 1);
    }
    return TSR_OK;
}

static tsr_status reweight_by_importance(work *r, tsr_err *err)
{
    const tsr_stored_curve *stored = &r->stored;
    const tsr_reweight_options o = {.stored = stored,
                                    .before = r->before,
                                    .after = r->after,
                                    .n_data = r->run.config.data.n,
                                    .seed = r->run.config.seed};
    TSR_TRY(tsr_reweight_make(&o, &r->importance, err));
    const tsr_reweight *made = r->importance;
    r->log_weight = made->log_weight;
    r->interpolation = made->interpolation;
    TSR_TRY(tsr_psis_smooth(made->n, made->log_weight, &r->psis, err));
    TSR_TRY(tsr_psis_independent_draws(stored->n_chain, stored->n_draw,
                                       made->log_weight, &r->worth, err));
    TSR_TRY(check_weights(r, made->n, err));
    if (!isnan(made->recovered))
        tsr_debug(r->log,
                  "the stored curves reproduce the log likelihood to %.2g nat",
                  made->recovered);
    TSR_TRY(make_rows(r, err));
    return check_widths(r, err);
}

static tsr_status reweight_by_entropy(work *r, tsr_err *err)
{
    const tsr_linear linear =
        tsr_linear_make(r->after.intensity_scale, r->after.background);
    TSR_TRY(tsr_maxent_make(&r->stored, r->after.saxs, &linear, r->o->theta,
                            &r->entropy, err));
    r->log_weight = r->entropy->log_weight;
    r->interpolation = r->entropy->interpolation;
    r->psis.ess = tsr_psis_ess(r->entropy->n, r->log_weight);
    return make_rows(r, err);
}

static tsr_status run_reweight(work *r, const char *directory, tsr_err *err)
{
    const options *o = r->o;
    TSR_TRY(tsr_past_run_open(directory, &r->run, r->log, err));
    TSR_TRY(parse(r, err));
    const char *const input[] = {r->run.trace_path, o->data};
    const tsr_file_target target = {.maker = "reweight",
                                    .n_input = 2,
                                    .input = input,
                                    .is_forced = o->force};
    TSR_TRY(tsr_file_check_target(&target, o->output,
                                  "chain,draw,weight,log_weight\n", NULL, err));
    const tsr_linear linear =
        tsr_linear_make(r->before.intensity_scale, r->before.background);
    const tsr_term_options *data = r->run.config.data.item;
    const int at = (int)o->set_number - 1;
    int ordinal = 0; /* index of the curve among the curves */
    for (int d = 0; d < at; d++)
        ordinal += tsr_term_registry[data[d].kind]->is_curve;
    TSR_TRY(tsr_stored_curve_open(r->run.trace, ordinal,
                                  *tsr_config_data_file(&r->run.config, at),
                                  &linear, &r->stored, err));
    r->stored.log = r->log;
    TSR_TRY(read_points(r, err));
    TSR_TRY(o->maxent ? reweight_by_entropy(r, err)
                      : reweight_by_importance(r, err));
    return o->output != NULL ? write_csv(r, o->output, err) : TSR_OK;
}

static tsr_status reweight(const tsr_args *args, FILE *out, tsr_log *log,
                           tsr_err *err)
{
    work r = {.o = args->options, .log = log};
    tsr_status status = run_reweight(&r, args->argument[0], err);
    if (status == TSR_OK && r.o->json)
        print_json(&r, out);
    else if (status == TSR_OK)
        print(&r, out);
    tsr_reweight_free(r.importance);
    tsr_maxent_free(r.entropy);
    tsr_saxs_free(r.read);
    tsr_pool_clear(&r.part.pool);
    tsr_pool_clear(&r.pool);
    tsr_stored_curve_clear(&r.stored);
    tsr_past_run_clear(&r.run);
    return status;
}

const tsr_command tsr_command_reweight = {
    .name = "reweight",
    .doc = "reweight the draws of a run for other data, errors or q",
    .arguments = "DIR",
    .options = fields,
    .size = sizeof(options),
    .about =
        "DIR is the folder of a run. Importance weights with smoothed tails "
        "(Vehtari et al. 2024) convert the stored draws to the posterior of "
        "other data; if the weights concentrate on too few draws, the exit "
        "status is 1, with the reason. The curve must lie within the q range "
        "of the run.\n--maxent: the smallest change of equal weights that fits "
        "the mean curve (Hummer & Koefinger 2015; Bottaro et al. 2020).",
    .run = reweight};
