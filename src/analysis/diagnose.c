/* Asks the questions of diagnose_checks.h one after the other, and tells the
 * answers to people or, as JSON, to programs. The run has converged where no
 * answer is no and those that are needed are yes. */
#include "analysis/diagnose.h"

#include "analysis/diagnose_checks.h"
#include "core/json.h"
#include "core/text.h"

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
    free(diagnosis->advice);
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
        tsr_check_finite, tsr_check_chains,       tsr_check_rhat,
        tsr_check_ess,    tsr_check_stuck,        tsr_check_profile,
        tsr_check_halves, tsr_check_arrangements, tsr_check_exchange,
    };
    *out = NULL;
    tsr_diagnosis *d = calloc(1, sizeof *d);
    if (d == NULL)
        return tsr_fail(err, TSR_E_NOMEM, "no memory for a diagnosis");
    tsr_status status = tsr_summary_make(reader, &d->summary, err);
    TSR_THEN(status, add_curves(d, reader, err));
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
    if (d->is_converged) {
        free(d->advice);
        d->advice = NULL;
    }
    *out = d;
    return TSR_OK;
}

/* A diagnosis in words, for whoever sits before the terminal, and as JSON, for
 * programs that wait for convergence. */

static const char *const answer_name[] = {
    [TSR_CHECK_YES] = "yes",
    [TSR_CHECK_NO] = "no",
    [TSR_CHECK_UNKNOWN] = "unknown",
    [TSR_CHECK_NOT_ASKED] = "not asked",
};

void tsr_diagnosis_print(const tsr_diagnosis *diagnosis, FILE *out)
{
    enum { INDENT = 9 };
    static const char *const shown[] = {"yes", "NO", "?", "-"};
    int n_no = 0;
    for (int i = 0; i < diagnosis->n; i++) {
        const tsr_check *c = &diagnosis->check[i];
        n_no += c->answer == TSR_CHECK_NO;
        fprintf(out, "  %-*s%s\n", INDENT - 2, shown[c->answer], c->asks);
        tsr_text_wrap(out, 0, INDENT, "", c->found);
        if (c->remedy != NULL) {
            fprintf(out, "%*s-> ", INDENT, "");
            tsr_text_wrap(out, INDENT + 3, INDENT + 3, "", c->remedy);
        }
    }
    if (diagnosis->is_converged)
        fputs("\nconverged, as far as these tests can tell\n", out);
    else if (n_no > 0)
        fprintf(out, "\nnot converged: %d answer%s no\n", n_no,
                n_no == 1 ? " is" : "s are");
    else
        fputs("\nnot shown to have converged: too little to tell from\n", out);
    if (diagnosis->advice != NULL)
        fprintf(out, "To go on:\n    %s\n", diagnosis->advice);
}

static void put_check(tsr_json *j, const tsr_check *c)
{
    tsr_json_object(j, NULL);
    tsr_json_text(j, "name", c->name);
    tsr_json_text(j, "asks", c->asks);
    tsr_json_text(j, "answer", answer_name[c->answer]);
    tsr_json_number(j, "value", c->value);
    tsr_json_number(j, "limit", c->limit);
    tsr_json_text(j, "found", c->found);
    tsr_json_text(j, "remedy", c->remedy);
    tsr_json_close(j);
}

static void put_curve(tsr_json *j, const tsr_curve_summary *c)
{
    tsr_json_object(j, c->name);
    tsr_json_numbers(j, "q", c->n, c->q);
    tsr_json_array(j, "rhat");
    for (int k = 0; k < c->n; k++)
        tsr_json_number(j, NULL, c->point[k].rhat);
    tsr_json_close(j);
    tsr_json_array(j, "ess_bulk");
    for (int k = 0; k < c->n; k++)
        tsr_json_number(j, NULL, c->point[k].ess_bulk);
    tsr_json_close(j);
    tsr_json_close(j);
}

void tsr_diagnosis_print_json(const tsr_diagnosis *diagnosis, FILE *out)
{
    const tsr_summary *s = diagnosis->summary;
    tsr_json j = {.out = out};
    tsr_json_object(&j, NULL);
    tsr_json_truth(&j, "converged", diagnosis->is_converged);
    tsr_json_integer(&j, "n_chain", diagnosis->n_chain);
    tsr_json_integer(&j, "n_draw", diagnosis->n_draw);
    tsr_json_text(&j, "advice", diagnosis->advice);
    tsr_json_array(&j, "checks");
    for (int i = 0; i < diagnosis->n; i++)
        put_check(&j, &diagnosis->check[i]);
    tsr_json_close(&j);
    tsr_json_object(&j, "variables");
    for (int i = 0; i < s->n; i++) {
        tsr_json_object(&j, s->item[i].name);
        tsr_json_number(&j, "rhat", s->item[i].value.rhat);
        tsr_json_number(&j, "ess_bulk", s->item[i].value.ess_bulk);
        tsr_json_number(&j, "ess_tail", s->item[i].value.ess_tail);
        tsr_json_close(&j);
    }
    tsr_json_close(&j);
    tsr_json_object(&j, "curves");
    for (int i = 0; i < diagnosis->n_curve; i++)
        put_curve(&j, diagnosis->curve[i]);
    tsr_json_close(&j);
    tsr_json_close(&j);
}
