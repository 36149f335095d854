#include "analysis/diagnose.h"

#include "analysis/diagnose_checks.h"

#include <stdlib.h>
#include <string.h>

/* Numbers of one curve that are sorted at most: some seconds. */
static const double most_numbers = 2e7;

void tsr_diagnosis_free(tsr_diagnosis *diagnosis)
{
    if (diagnosis == NULL)
        return;
    for (int i = 0; i < diagnosis->n; i++) {
        free(diagnosis->check[i].found);
        free(diagnosis->check[i].remedy);
    }
    for (int i = 0; i < diagnosis->n_curve; i++)
        tsr_curve_summary_free(diagnosis->curve[i]);
    free(diagnosis->curve);
    tsr_summary_free(diagnosis->summary);
    free(diagnosis);
}

/* The expected curve of every data set. */
static tsr_status add_curves(tsr_diagnosis *d, tsr_trace_reader *reader,
                             tsr_err *err)
{
    const char *const *name;
    tsr_status status = TSR_OK;
    int n = tsr_trace_variables(reader, TSR_TRACE_POSTERIOR_PREDICTIVE, &name);
    d->curve = calloc((size_t)n + 1, sizeof *d->curve);
    if (d->curve == NULL)
        return tsr_fail(err, TSR_E_NOMEM, "no memory for %d curves", n);
    for (int i = 0; i < n && status == TSR_OK; i++)
        if (strncmp(name[i], "intensity_mean", 14) == 0) {
            status = tsr_curve_summary_make(reader, name[i], most_numbers,
                                            &d->curve[d->n_curve], err);
            d->n_curve += status == TSR_OK;
        }
    return status;
}

static void decide(tsr_diagnosis *d)
{
    d->is_converged = 1;
    for (int i = 0; i < d->n; i++) {
        const tsr_check *c = &d->check[i];
        const int is_needed =
            strcmp(c->name, "rhat") == 0 || strcmp(c->name, "ess") == 0;
        if (c->answer == TSR_CHECK_NO ||
            (is_needed && c->answer != TSR_CHECK_YES))
            d->is_converged = 0;
    }
}

tsr_status tsr_diagnose(tsr_trace_reader *reader,
                        const tsr_diagnose_options *options,
                        tsr_diagnosis **out, tsr_err *err)
{
    static tsr_status (*const ask[])(tsr_diagnosis *, tsr_trace_reader *,
                                     const tsr_diagnose_options *, tsr_check *,
                                     tsr_err *) = {
        tsr_check_finite, tsr_check_chains, tsr_check_rhat,
        tsr_check_ess,    tsr_check_stuck,  tsr_check_profile,
        tsr_check_halves, tsr_check_groups, tsr_check_exchange,
    };
    *out = NULL;
    tsr_diagnosis *d = calloc(1, sizeof *d);
    if (d == NULL)
        return tsr_fail(err, TSR_E_NOMEM, "no memory for a diagnosis");
    tsr_status status = tsr_summary_make(reader, &d->summary, err);
    if (status == TSR_OK)
        status = add_curves(d, reader, err);
    for (int i = 0; status == TSR_OK && i < d->summary->n; i++)
        if (d->summary->item[i].n_draw > 0 && d->n_draw == 0) {
            d->n_chain = d->summary->item[i].n_chain;
            d->n_draw = d->summary->item[i].n_draw;
        }
    for (size_t i = 0; i < sizeof ask / sizeof *ask && status == TSR_OK; i++) {
        tsr_check *check = &d->check[d->n++];
        status = ask[i](d, reader, options, check, err);
        if (status == TSR_OK && check->found == NULL)
            status = tsr_fail(err, TSR_E_NOMEM, "no memory for a diagnosis");
    }
    if (status != TSR_OK) {
        tsr_diagnosis_free(d);
        return status;
    }
    decide(d);
    *out = d;
    return TSR_OK;
}
