/* The criteria of --until. If R-hat - 1 falls and ESS grows in proportion to
 * the number of draws, a variable needs (R-hat - 1) / (criterion - 1) and
 * criterion / ESS times as many draws. The largest of these factors over all
 * variables counts. */
#include "session/until.h"

#include "analysis/diagnose.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Number of q values tested per curve: few if so many draws exist that each q
 * value costs seconds. */
enum { N_CURVE = 12, FEW = 3, MANY_DRAWS = 400000 };

static tsr_status refuse(const char *text, tsr_err *err)
{
    return tsr_fail(err, TSR_E_CONFIG,
                    "sampler.until: '%s'; expected rhat<NUMBER (above 1), "
                    "ess>NUMBER, or both separated by a comma",
                    text);
}

tsr_status tsr_until_parse(const char *text, tsr_until *until, tsr_err *err)
{
    *until = (tsr_until){(double)INFINITY, 0.0};
    for (const char *at = text; at != NULL && *at != '\0';) {
        int rhat = strncmp(at, "rhat<", 5) == 0;
        if (!rhat && strncmp(at, "ess>", 4) != 0)
            return refuse(text, err);
        at += rhat ? 5 : 4;
        char *end;
        double value = strtod(at, &end);
        if (end == at || !isfinite(value) || value <= (rhat ? 1.0 : 0.0) ||
            (*end != '\0' && *end != ','))
            return refuse(text, err);
        if (rhat)
            until->rhat = value;
        else
            until->ess = value;
        at = *end == ',' ? end + 1 : end;
        if (*end == ',' && *at == '\0')
            return refuse(text, err);
    }
    return TSR_OK;
}

int tsr_until_is_set(const tsr_until *until)
{
    return isfinite(until->rhat) || until->ess > 0.0;
}

/* Factor by which draws must grow for one variable; at most 1: its criteria
 * hold. NaN counts as infinite, but a constant variable counts as converged. */
static double needed_factor(const tsr_until *until, const tsr_convergence *v)
{
    double factor = 0.0;
    if (v->sd == 0.0)
        return 0.0;
    if (isfinite(until->rhat))
        factor = isnan(v->rhat) ? (double)INFINITY
                                : (v->rhat - 1.0) / (until->rhat - 1.0);
    if (until->ess > 0.0) {
        double ess = fmin(v->ess_bulk, v->ess_tail);
        factor = fmax(factor, isnan(ess) ? (double)INFINITY : until->ess / ess);
    }
    return factor;
}

/* Search for the variable farthest from its criterion. */
typedef struct {
    const tsr_until *until;
    double factor;
    char *worst;
    double *at_worst; /* NULL: not wanted */
} search;

static void update_worst(search *j, const char *name, const tsr_convergence *v)
{
    double factor = needed_factor(j->until, v);
    if (!(factor > j->factor))
        return;
    j->factor = factor;
    const double ess = fmin(v->ess_bulk, v->ess_tail);
    snprintf(j->worst, 160, "%s: R-hat %.3f, ESS %.0f", name, v->rhat, ess);
    if (j->at_worst != NULL) {
        j->at_worst[0] = v->rhat;
        j->at_worst[1] = ess;
    }
}

static tsr_status check_curve(search *j, tsr_trace_reader *reader,
                              const char *name, tsr_err *err)
{
    int n_chain, n_draw, n;
    tsr_curve_summary *curve = NULL;
    TSR_TRY(tsr_trace_shape(reader, TSR_TRACE_POSTERIOR_PREDICTIVE, name,
                            &n_chain, &n_draw, &n, err));
    const double rows = (double)n_chain * n_draw;
    TSR_TRY(tsr_curve_summary_make(
        reader, name, rows * (rows > MANY_DRAWS ? FEW : N_CURVE), &curve, err));
    for (int k = 0; k < curve->n; k++) {
        char label[64];
        snprintf(label, sizeof label, "%s at point %d", name, curve->at[k]);
        update_worst(j, label, &curve->point[k]);
    }
    tsr_curve_summary_free(curve);
    return TSR_OK;
}

tsr_status tsr_until_judge(const tsr_until *until, tsr_trace_reader *reader,
                           const tsr_summary *summary, double *factor,
                           char worst[160], double at_worst[2], tsr_err *err)
{
    search j = {until, 0.0, worst, at_worst};
    const char *const *name;
    worst[0] = '\0';
    *factor = (double)INFINITY;
    for (int i = 0; i < summary->n; i++)
        update_worst(&j, summary->item[i].name, &summary->item[i].value);
    const int n =
        tsr_trace_variables(reader, TSR_TRACE_POSTERIOR_PREDICTIVE, &name);
    for (int i = 0; i < n; i++)
        if (strncmp(name[i], "intensity_mean", 14) == 0)
            TSR_TRY(check_curve(&j, reader, name[i], err));
    *factor = j.factor;
    return TSR_OK;
}

tsr_status tsr_until_check(const tsr_until *until, const char *trace,
                           double *factor, char worst[160], double at_worst[2],
                           tsr_err *err)
{
    tsr_trace_reader *reader = NULL;
    tsr_summary *summary = NULL;
    worst[0] = '\0';
    *factor = (double)INFINITY;
    at_worst[0] = at_worst[1] = (double)NAN;
    tsr_status status = tsr_trace_open(trace, &reader, err);
    TSR_THEN(status, tsr_summary_make(reader, &summary, err));
    TSR_THEN(status, tsr_until_judge(until, reader, summary, factor, worst,
                                     at_worst, err));
    tsr_summary_free(summary);
    tsr_trace_reader_free(reader);
    return status;
}

double tsr_until_draws(double done, double factor)
{
    const double wanted = done * fmin(factor, 100.0);
    const double unit = fmax(1.0, pow(10.0, floor(log10(wanted)) - 1.0));
    return unit * ceil(wanted / unit);
}
