#include "run/until.h"

#include "analysis/summary.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { N_CURVE = 12 }; /* q values of a curve that are looked at */

static tsr_status bad(const char *text, tsr_err *err)
{
    return tsr_fail(err, TSR_E_CONFIG,
                    "sampler.until: '%s'; expected rhat<NUMBER (above 1), "
                    "ess>NUMBER, or both with a comma between",
                    text);
}

tsr_status tsr_until_parse(const char *text, tsr_until *until, tsr_err *err)
{
    *until = (tsr_until){(double)INFINITY, 0.0};
    for (const char *at = text; at != NULL && *at != '\0';) {
        int rhat = strncmp(at, "rhat<", 5) == 0;
        if (!rhat && strncmp(at, "ess>", 4) != 0)
            return bad(text, err);
        at += rhat ? 5 : 4;
        char *end;
        double value = strtod(at, &end);
        if (end == at || !isfinite(value) || value <= (rhat ? 1.0 : 0.0) ||
            (*end != '\0' && *end != ','))
            return bad(text, err);
        if (rhat)
            until->rhat = value;
        else
            until->ess = value;
        at = *end == ',' ? end + 1 : end;
        if (*end == ',' && *at == '\0')
            return bad(text, err);
    }
    return TSR_OK;
}

int tsr_until_is_set(const tsr_until *until)
{
    return isfinite(until->rhat) || until->ess > 0.0;
}

/* How far a variable is from what is asked: above 1 it is not there. NaN counts
 * as far, but for what does not vary at all. */
static double distance(const tsr_until *until, const tsr_convergence *v)
{
    double far = 0.0;
    if (v->sd == 0.0)
        return 0.0;
    if (isfinite(until->rhat))
        far = isnan(v->rhat) ? (double)INFINITY
                             : (v->rhat - 1.0) / (until->rhat - 1.0);
    if (until->ess > 0.0) {
        double ess = fmin(v->ess_bulk, v->ess_tail);
        far = fmax(far, isnan(ess) ? (double)INFINITY : until->ess / ess);
    }
    return far;
}

typedef struct {
    const tsr_until *until;
    double far;
    char *worst;
} judge;

static void look(judge *j, const char *name, const tsr_convergence *v)
{
    double far = distance(j->until, v);
    if (!(far > j->far))
        return;
    j->far = far;
    snprintf(j->worst, 160, "%s: R-hat %.3f, ESS %.0f", name, v->rhat,
             fmin(v->ess_bulk, v->ess_tail));
}

static tsr_status look_at_curve(judge *j, tsr_trace_reader *reader,
                                const char *name, tsr_err *err)
{
    int n_chain, n_draw, n;
    double *value = NULL;
    tsr_status status = tsr_trace_get(reader, TSR_TRACE_POSTERIOR_PREDICTIVE,
                                      name, &n_chain, &n_draw, &n, &value, err);
    size_t rows = status == TSR_OK ? (size_t)n_chain * (size_t)n_draw : 0;
    double *one = malloc((rows + 1) * sizeof *one);
    if (status == TSR_OK && one == NULL)
        status = tsr_fail(err, TSR_E_NOMEM, "out of memory");
    for (int k = 0; k < N_CURVE && status == TSR_OK; k++) {
        size_t at = (size_t)k * (size_t)(n - 1) / (N_CURVE - 1);
        tsr_convergence v;
        char label[64];
        for (size_t i = 0; i < rows; i++)
            one[i] = value[i * (size_t)n + at];
        status = tsr_convergence_of_groups(tsr_trace_n_group(reader), n_chain,
                                           n_draw, one, &v, err);
        snprintf(label, sizeof label, "%s at point %zu", name, at);
        if (status == TSR_OK)
            look(j, label, &v);
    }
    free(one);
    free(value);
    return status;
}

tsr_status tsr_until_check(const tsr_until *until, const char *trace,
                           double *far, char worst[160], tsr_err *err)
{
    tsr_trace_reader *reader = NULL;
    tsr_summary *summary = NULL;
    judge j = {until, 0.0, worst};
    const char *const *name;
    worst[0] = '\0';
    *far = (double)INFINITY;
    tsr_status status = tsr_trace_open(trace, &reader, err);
    if (status == TSR_OK)
        status = tsr_summary_make(reader, &summary, err);
    for (int i = 0; status == TSR_OK && i < summary->n; i++)
        look(&j, summary->item[i].name, &summary->item[i].value);
    int n =
        status == TSR_OK
            ? tsr_trace_variables(reader, TSR_TRACE_POSTERIOR_PREDICTIVE, &name)
            : 0;
    for (int i = 0; i < n && status == TSR_OK; i++)
        if (strncmp(name[i], "intensity_mean", 14) == 0)
            status = look_at_curve(&j, reader, name[i], err);
    if (status == TSR_OK)
        *far = j.far;
    tsr_summary_free(summary);
    tsr_trace_reader_free(reader);
    return status;
}

double tsr_until_draws(double done, double far)
{
    const double wanted = done * fmin(far, 100.0);
    const double unit = fmax(1.0, pow(10.0, floor(log10(wanted)) - 1.0));
    return unit * ceil(wanted / unit);
}
