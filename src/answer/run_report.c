/* The result of a run, as a table or as JSON, from its folder. */
#include "answer/run_report.h"

#include "analysis/summary.h"
#include "answer/verdict.h"
#include "core/json.h"

#include <math.h>
#include <stdlib.h>

/* The variable with the largest R-hat; NULL where no variable has one. */
static const tsr_summary_item *find_worst(const tsr_summary *summary)
{
    const tsr_summary_item *worst = NULL;
    for (int i = 0; i < summary->n; i++) {
        const tsr_summary_item *item = &summary->item[i];
        if (!isnan(item->value.rhat) &&
            (worst == NULL || item->value.rhat > worst->value.rhat))
            worst = item;
    }
    return worst;
}

static void print_convergence(const tsr_summary *summary, FILE *out)
{
    double ess;
    const tsr_summary_item *worst = find_worst(summary);
    const tsr_summary_item *slowest = tsr_summary_slowest(summary, &ess);
    if (worst == NULL) {
        fprintf(out, "  %-14s too few draws\n", "R-hat");
        return;
    }
    if (slowest != NULL)
        fprintf(out, "  %-14s %.0f (%s, smallest)\n", "effective", ess,
                slowest->name);
    fprintf(out, "  %-14s %.2f (%s, largest)\n", "R-hat", worst->value.rhat,
            worst->name);
}

/* If the run has not converged, warns in the log, with the command that
 * continues the run. */
static void warn_unconverged(const tsr_config *config, const tsr_advice *advice,
                             tsr_log *log)
{
    char *text = tsr_advice_text(advice);
    if (!advice->is_converged)
        tsr_warn(log, "not converged%s%s (%s); to continue: %s",
                 config->sampler.until != NULL ? " by the criterion " : "",
                 config->sampler.until != NULL ? config->sampler.until : "",
                 advice->worst[0] != '\0' ? advice->worst : "too few draws",
                 text != NULL ? text : "more draws");
    free(text);
}

static void put_convergence(tsr_json *j, const tsr_verdict *verdict,
                            const tsr_summary *summary)
{
    double ess;
    const tsr_summary_item *worst = find_worst(summary);
    const tsr_summary_item *slowest = tsr_summary_slowest(summary, &ess);
    tsr_json_members(j, "converged %i rhat %g rhat_of %s ess %g ess_of %s",
                     verdict->advice.is_converged,
                     worst == NULL ? (double)NAN : worst->value.rhat,
                     worst == NULL ? NULL : worst->name,
                     slowest == NULL ? (double)NAN : ess,
                     slowest == NULL ? NULL : slowest->name);
}

/* chi2 of the first conformation. For a single curve all other parameters are
 * fitted; otherwise they have their starting values. */
static double start_chi2(const tsr_session *s)
{
    const tsr_likelihood *l = s->setup->data.likelihood;
    return l != NULL && l->n_term == 1 && s->setup->data.rigid != NULL &&
                   s->setup->data.rigid[0].n_point > 0
               ? s->setup->data.rigid[0].chi2
               : s->progress.start_chi2;
}

/* A variable and its value at the start (NaN: not known), as a member of the
 * JSON object j or, where j is NULL, as a line of the table. */
static void put_variable(const tsr_summary *summary, const char *name,
                         const char *label, double start, tsr_json *j,
                         FILE *out)
{
    const tsr_summary_item *item = tsr_summary_find(summary, name);
    char before[32] = "-";
    if (item == NULL)
        return;
    const tsr_convergence *v = &item->value;
    if (!isnan(start))
        snprintf(before, sizeof before, "%.4g", start);
    if (j == NULL) {
        fprintf(out, "  %-14s %10s   %10.4g   [%.4g, %.4g]\n", label, before,
                v->mean, v->q5, v->q95);
        return;
    }
    tsr_json_object(j, name);
    if (!isnan(start))
        tsr_json_number(j, "start", start);
    tsr_json_members(j, "mean %g q5 %g q95 %g }", v->mean, v->q5, v->q95);
}

/* Prints chi2 of every entry of `data:`, and Rg. With several entries, chi2 of
 * the start is not known for each. */
static void put_variables(const tsr_session *s, const tsr_summary *summary,
                          tsr_json *j, FILE *out)
{
    const tsr_likelihood *l = s->setup->data.likelihood;
    char name[64];
    for (int d = 0; l != NULL && d < l->n_term; d++) {
        const tsr_term *term = l->term[d];
        tsr_term_variable(term->type, term->ordinal, "chi2", sizeof name, name);
        put_variable(summary, name, name,
                     l->n_term == 1 ? start_chi2(s) : (double)NAN, j, out);
    }
    put_variable(summary, "rg", "Rg, Angstrom", s->progress.start_rg, j, out);
}

static tsr_status print_json(const tsr_session *s, const tsr_summary *summary,
                             const tsr_verdict *verdict, FILE *out,
                             tsr_err *err)
{
    tsr_json j = {.out = out};
    tsr_json_object(&j, NULL);
    put_convergence(&j, verdict, summary);
    tsr_json_members(
        &j, "directory %s n_chain %ld n_draw %ld steps %ld seconds %g",
        s->config->output.directory, (long)s->config->sampler.chains.number,
        s->progress.draws, s->progress.steps, s->progress.seconds);
    put_variables(s, summary, &j, NULL);
    tsr_status status = tsr_verdict_put(verdict, "verdict", &j, err);
    tsr_json_close(&j);
    return status;
}

static tsr_status print_table(const tsr_session *s, const tsr_summary *summary,
                              const tsr_verdict *verdict, FILE *out,
                              tsr_err *err)
{
    const long chains = (long)s->config->sampler.chains.number;
    fputc('\n', out);
    TSR_TRY(tsr_verdict_print(verdict, out, err));
    fprintf(out, "\n  %-14s %10s   %10s   %s\n", "", "start", "posterior",
            "5 % to 95 %");
    put_variables(s, summary, NULL, out);
    fprintf(out, "  %-14s %.0f (%ld chain%s, %ld draws each, %.1f s)\n",
            "steps/s",
            (double)s->progress.steps / fmax(s->progress.seconds, 1e-9), chains,
            chains == 1 ? "" : "s", s->progress.draws, s->progress.seconds);
    fprintf(out, "  %-14s %s\n", "files", s->config->output.directory);
    print_convergence(summary, out);
    return TSR_OK;
}

tsr_status tsr_run_report(const tsr_session *s, int is_json, FILE *out,
                          tsr_err *err)
{
    tsr_past_run past = {.trace = NULL};
    tsr_summary *summary = NULL;
    tsr_verdict *verdict = NULL;
    tsr_status status =
        tsr_past_run_open(s->config->output.directory, &past, s->log, err);
    TSR_THEN(status, tsr_verdict_of_run(&past, &summary, &verdict, err));
    if (status == TSR_OK) {
        warn_unconverged(s->config, &verdict->advice, s->log);
        status =
            (is_json ? print_json : print_table)(s, summary, verdict, out, err);
    }
    if (status == TSR_OK && s->config->sampler.until != NULL &&
        !verdict->advice.is_converged)
        status = TSR_E_NO; /* the warning of warn_unconverged is the message */
    tsr_verdict_free(verdict);
    tsr_summary_free(summary);
    tsr_past_run_clear(&past);
    return status;
}
