/* tessera reweight DIR */
#include "commands/command.h"
#include "commands/reweight_report.h"
#include "session/past_run.h"

#include "analysis/loo.h"
#include "analysis/maxent.h"
#include "analysis/reweight.h"
#include "files/file.h"

#include <math.h>
#include <stdlib.h>

static const tsr_option options[] = {
    {.name = "data",
     .argument = "FILE",
     .doc = "another curve; else that of the run"},
    {.name = "q-range",
     .argument = "LO,HI",
     .unit = "1/Angstrom",
     .doc = "the points to use"},
    {.name = "noise",
     .argument = "MODEL",
     .doc = "another noise model, with its usual priors"},
    {.name = "set-number",
     .argument = "N",
     .initial = "1",
     .doc = "which data set of the run is replaced, counted from 1"},
    {.name = "maxent",
     .doc = "weights by maximum entropy instead of importance weights"},
    {.name = "theta",
     .argument = "X",
     .doc = "of --maxent: how much a change of weights costs; else from the "
            "L-curve"},
    {.name = "output", .argument = "FILE", .doc = "the weights, as CSV"},
    TSR_OPTION_JSON,
    TSR_OPTION_FORCE,
    {0}};

/* What was asked for. */
typedef struct {
    const char *file;
    int has_range;
    double range[2];
    long number; /* of the data set */
    double theta;
    int is_smeared; /* the run's curves, by their instrument */
    tsr_data_set before, after;
    tsr_saxs *read; /* of a file */
    tsr_saxs part;  /* of the run's own points */
} request;

static void request_clear(request *r)
{
    tsr_saxs_free(r->read);
    tsr_pool_clear(&r->part.pool);
}

static tsr_status parse_range(const char *text, double range[2], tsr_err *err)
{
    char *end = NULL;
    range[0] = strtod(text, &end);
    if (end != text && *end == ',') {
        const char *second = end + 1;
        range[1] = strtod(second, &end);
        if (end != second && *end == '\0' && range[0] >= 0.0 &&
            range[1] > range[0] && isfinite(range[1]))
            return TSR_OK;
    }
    return tsr_fail(err, TSR_E_USAGE,
                    "--q-range: '%s' is not two rising values of q in "
                    "1/Angstrom, such as 0.01,0.2",
                    text);
}

static tsr_status parse(const tsr_args *args, const tsr_past_run *run,
                        request *r, tsr_err *err)
{
    const char *range = tsr_args_value(args, "q-range");
    const char *noise = tsr_args_value(args, "noise");
    const int is_maxent = tsr_args_count(args, "maxent") > 0;
    r->file = tsr_args_value(args, "data");
    TSR_TRY(tsr_args_long(args, "set-number", 1.0, 1000.0, &r->number, err));
    TSR_TRY(tsr_args_double(args, "theta", 1e-6, 1e9, &r->theta, err));
    if (range != NULL) {
        r->has_range = 1;
        TSR_TRY(parse_range(range, r->range, err));
    }
    if (r->theta > 0.0 && !is_maxent)
        return tsr_fail(err, TSR_E_USAGE, "--theta belongs to --maxent");
    if (noise != NULL && is_maxent)
        return tsr_fail(err, TSR_E_USAGE,
                        "--maxent takes the errors as the file has them; "
                        "leave --noise out");
    if (!run->has_data)
        return tsr_fail(err, TSR_E_DATA,
                        "'%s' is a run of the prior alone, which keeps no "
                        "curves: run with the data instead",
                        run->trace_path);
    if (!run->has_config)
        return tsr_fail(err, TSR_E_NOINPUT,
                        "config.yaml of the run is needed to know its noise "
                        "model; name the run's folder, not the trace alone");
    if (r->number > run->config.data.n)
        return tsr_fail(
            err, TSR_E_USAGE, "--set-number %ld: the run has %d data set%s",
            r->number, run->config.data.n, run->config.data.n == 1 ? "" : "s");
    const tsr_term_options *data = run->config.data.item;
    const tsr_saxs_options *d = (const void *)&data[r->number - 1];
    if (!tsr_term_registry[d->kind]->is_curve)
        return tsr_fail(err, TSR_E_USAGE,
                        "--set-number %ld: that entry is of kind %s; curves "
                        "alone can be replaced",
                        r->number, tsr_term_registry[d->kind]->name);
    r->is_smeared = tsr_resolution_is_asked(&d->resolution);
    r->before = (tsr_data_set){.noise = d->noise,
                               .background = d->background,
                               .intensity_scale = d->intensity_scale,
                               .nuisance = d->nuisance};
    r->after = r->before;
    r->after.nuisance = TSR_NUISANCE_AUTO;
    if (noise != NULL &&
        tsr_noise_choose(&r->after.noise, noise, err) != TSR_OK)
        return tsr_wrap(err, TSR_E_USAGE, "--noise");
    return TSR_OK;
}

/* The run's points inside the range. */
static tsr_status cut(const tsr_saxs *run, request *r, tsr_err *err)
{
    enum { LEAST = 5 };
    tsr_saxs *p = &r->part;
    *p = (tsr_saxs){.path = run->path};
    tsr_pool_array(&p->pool, p->q, run->n);
    tsr_pool_array(&p->pool, p->intensity, run->n);
    tsr_pool_array(&p->pool, p->sigma, run->n);
    TSR_TRY(tsr_pool_check(&p->pool, err));
    for (int k = 0; k < run->n; k++) {
        if (r->has_range &&
            (run->q[k] < r->range[0] || run->q[k] > r->range[1]))
            continue;
        p->q[p->n] = run->q[k];
        p->intensity[p->n] = run->intensity[k];
        p->sigma[p->n++] = run->sigma[k];
    }
    r->after.saxs = p;
    if (p->n >= LEAST)
        return TSR_OK;
    return tsr_fail(err, TSR_E_DATA,
                    "--q-range: %d of the run's points, q = %.4g to %.4g 1/A, "
                    "are inside; %d are needed",
                    p->n, run->q[0], run->q[run->n - 1], LEAST);
}

static tsr_status find_points(const tsr_stored_curve *stored, request *r,
                              tsr_log *log, tsr_err *err)
{
    if (r->file == NULL)
        return cut(&stored->saxs, r, err);
    if (r->is_smeared)
        tsr_warn(log,
                 "the run's curves are smeared as its own data were; '%s' is "
                 "taken to be of the same instrument",
                 r->file);
    tsr_status status =
        tsr_saxs_read(r->file, TSR_Q_AUTO, r->has_range ? r->range : NULL, log,
                      &r->read, err);
    r->after.saxs = r->read;
    return status;
}

/* ---- the two kinds of weights ---- */

/* Weights that rest on few draws say nothing: exit status 1. */
static tsr_status refuse(const tsr_reweight_report *report, long n,
                         const request *r, tsr_err *err)
{
    const double least = 0.1, most_k = 0.7, least_worth = 10.0;
    const tsr_psis *psis = &report->psis;
    const char *file = r->file != NULL ? r->file : "that";
    const double share = psis->ess / (double)n;
    const int is_bad = isfinite(psis->pareto_k) && psis->pareto_k > most_k;
    char k[48] = "";
    if (is_bad)
        snprintf(k, sizeof k, ", Pareto k = %.2f (0.7 at most)",
                 psis->pareto_k);
    if (share < least || is_bad)
        return tsr_fail(
            err, TSR_E_NO,
            "the weights rest on %.1f of %ld draws (%.2g %%, 10 %% are "
            "needed)%s: what was drawn is too far from what %s asks for; run "
            "with that instead (tessera run CONFIG --set data.%ld...), or, for "
            "the least change that fits, --maxent",
            psis->ess, n, 100.0 * share, k, file, r->number - 1);
    if (!(report->worth >= least_worth))
        return tsr_fail(err, TSR_E_NO,
                        "the weights rest on %.1f of %ld draws, which are "
                        "worth %.1f independent ones (%.0f are needed): let "
                        "the run make more draws, or run with %s",
                        psis->ess, n, report->worth, least_worth, file);
    if (psis->pareto_k > most_k)
        return tsr_fail(err, TSR_E_NO,
                        "%ld draws are too few to tell what their largest "
                        "weights are worth (too few different ones): let the "
                        "run make more draws, or run with %s",
                        n, file);
    return TSR_OK;
}

/* Weights cannot widen a posterior by much: draws beyond the run's tails were
 * not made, which neither the effective number nor k sees in time. Of normal
 * posteriors the estimate is 3 % too narrow at this ratio, and 11 % at twice
 * the width (8000 draws). */
static tsr_status refuse_wider(const tsr_reweight_report *report,
                               const request *r, tsr_err *err)
{
    const double most = 1.5, rounding = 1e-12;
    for (int i = 0; i < report->n; i++) {
        const tsr_reweight_row *row = &report->row[i];
        const double least = rounding * fabs(row->before.mean);
        if (row->is_drawn_anew ||
            !(row->after.sd > most * fmax(row->before.sd, least)))
            continue;
        return tsr_fail(err, TSR_E_NO,
                        "the spread of %s grows %.2g times (%.2g at most): the "
                        "run drew too little of what lies outside, and weights "
                        "would make it narrower than it is; run with that data "
                        "instead (tessera run CONFIG --set data.%ld...)",
                        row->name, row->after.sd / row->before.sd, most,
                        r->number - 1);
    }
    return TSR_OK;
}

static tsr_status by_importance(const request *r,
                                const tsr_stored_curve *stored,
                                const tsr_past_run *run,
                                tsr_reweight_report *report, tsr_log *log,
                                tsr_err *err)
{
    const tsr_reweight_options o = {.stored = stored,
                                    .before = r->before,
                                    .after = r->after,
                                    .n_data = run->config.data.n,
                                    .seed = run->config.seed};
    TSR_TRY(tsr_reweight_make(&o, &report->importance, err));
    tsr_reweight *made = report->importance;
    report->log_weight = made->log_weight;
    report->interpolation = made->interpolation;
    TSR_TRY(tsr_psis_smooth(made->n, made->log_weight, &report->psis, err));
    TSR_TRY(tsr_psis_worth(stored->n_chain, stored->n_draw, made->log_weight,
                           &report->worth, err));
    TSR_TRY(refuse(report, made->n, r, err));
    if (!isnan(made->recovered))
        tsr_debug(log,
                  "the stored curves give back the log likelihood to %.2g nat",
                  made->recovered);
    return TSR_OK;
}

static tsr_status by_entropy(const request *r, const tsr_stored_curve *stored,
                             tsr_reweight_report *report, tsr_err *err)
{
    const tsr_linear linear =
        tsr_linear_make(r->after.intensity_scale, r->after.background);
    TSR_TRY(tsr_maxent_make(stored, r->after.saxs, &linear, r->theta,
                            &report->entropy, err));
    report->log_weight = report->entropy->log_weight;
    report->interpolation = report->entropy->interpolation;
    report->psis.ess = tsr_psis_ess(report->entropy->n, report->log_weight);
    return TSR_OK;
}

static tsr_status check_target(const tsr_args *args, const char *trace,
                               const char *path, tsr_err *err)
{
    const char *const input[] = {trace, tsr_args_value(args, "data")};
    const tsr_file_target target = {.maker = "reweight",
                                    .begins = "chain,draw,weight,log_weight\n",
                                    .holds = "",
                                    .n_input = 2,
                                    .input = input,
                                    .is_forced =
                                        tsr_args_count(args, "force") > 0};
    return tsr_file_check_target(&target, path, err);
}

static tsr_status reweight(const tsr_args *args, FILE *out, tsr_log *log,
                           tsr_err *err)
{
    const char *path = tsr_args_value(args, "output");
    tsr_past_run run = {.trace = NULL};
    tsr_stored_curve stored = {.trace = NULL};
    request r = {.file = NULL};
    tsr_reweight_report report = {.stored = &stored};
    tsr_status status =
        tsr_past_run_open(tsr_args_argument(args), &run, log, err);
    TSR_THEN(status, parse(args, &run, &r, err));
    if (status == TSR_OK && path != NULL)
        status = check_target(args, run.trace_path, path, err);
    if (status == TSR_OK) {
        const tsr_linear linear =
            tsr_linear_make(r.before.intensity_scale, r.before.background);
        const tsr_term_options *data = run.config.data.item;
        int ordinal = 0; /* of the curve among the curves */
        for (long d = 0; d < r.number - 1; d++)
            ordinal += tsr_term_registry[data[d].kind]->is_curve;
        status = tsr_stored_curve_open(
            run.trace, ordinal,
            *tsr_config_data_file(&run.config, (int)r.number - 1), &linear,
            &stored, err);
    }
    stored.log = log;
    TSR_THEN(status, find_points(&stored, &r, log, err));
    report.saxs = r.after.saxs;
    report.noise = tsr_noise_registry[r.after.noise.model]->name;
    TSR_THEN(status, tsr_args_count(args, "maxent") > 0
                         ? by_entropy(&r, &stored, &report, err)
                         : by_importance(&r, &stored, &run, &report, log, err));
    TSR_THEN(status, tsr_reweight_report_make(&report, err));
    if (status == TSR_OK && report.importance != NULL)
        status = refuse_wider(&report, &r, err);
    if (status == TSR_OK && path != NULL)
        status = tsr_reweight_report_csv(&report, path, err);
    if (status == TSR_OK && tsr_args_count(args, "json") > 0)
        tsr_reweight_report_json(&report, out);
    else if (status == TSR_OK)
        tsr_reweight_report_print(&report, out);
    tsr_reweight_report_clear(&report);
    request_clear(&r);
    tsr_stored_curve_clear(&stored);
    tsr_past_run_clear(&run);
    return status;
}

const tsr_command tsr_command_reweight = {
    .name = "reweight",
    .doc = "weights that fit a run's draws to other data, errors or q",
    .usage =
        {.arguments = "DIR",
         .min_arguments = 1,
         .max_arguments = 1,
         .options = options,
         .about =
             "DIR is a run's folder. Importance weights, the tail smoothed "
             "(Vehtari et al. 2024), make of the stored draws what a run with "
             "other data would have drawn; where they rest on too few draws "
             "the exit status is 1, with the reason. The curve must lie "
             "inside the run's range of q.\n"
             "--maxent: the least change of equal weights that fits the mean "
             "curve (Hummer & Koefinger 2015; Bottaro et al. 2020)."},
    .run = reweight};
