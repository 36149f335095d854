/* The verdict of tessera solve. Each sentence rests on numbers that stand
 * beside it in the JSON object. */
#include "cli/solve_report.h"

#include "core/json.h"
#include "core/text.h"

#include <math.h>
#include <stdlib.h>

/* The rigid model misses the data where residuals keep their sign for longer
 * than one time in a hundred by chance, or are this much larger than errors
 * let them be. */
static const double rare = 0.01, poor = 1.5;

int tsr_solve_gain(const tsr_solve_run *less, const tsr_solve_run *more,
                   double *gain, double *error)
{
    *gain = more->evidence.log - less->evidence.log;
    *error = hypot(less->evidence.error, more->evidence.error);
    return isfinite(*error) && *gain > fmax(1.0, 2.0 * *error);
}

/* ---- the sentences ---- */

static const char *plural(long n)
{
    return n == 1 ? "" : "s";
}

static int is_good(const tsr_profile_fit *fit)
{
    return fit->cormap_p >= rare && fit->reduced_chi2 <= poor;
}

static void say_rigid(const tsr_solve *s, tsr_words *w)
{
    for (int k = 0; k < s->n_curve; k++) {
        const tsr_profile_fit *f = &s->rigid[k].fit;
        char at[64];
        tsr_profile_bounds_text(f, at, sizeof at);
        tsr_words_say(
            w,
            "%sThe model as it is, rigid, %s %s: reduced chi2 %.3g, CorMap p "
            "%.2g, "
            "with c1 %.3f and c2 %.2f fitted%s; %s.",
            k > 0 ? " " : "", is_good(f) ? "fits" : "does not fit",
            tsr_text_file_name(s->saxs[k]->path), f->reduced_chi2, f->cormap_p,
            f->c1, f->c2, at,
            f->cormap_p < rare ? "its residuals keep their sign for longer "
                                 "than by chance"
            : is_good(f)       ? "its residuals are no larger than the errors "
                                 "let them be"
                               : "its residuals change their sign as by "
                                 "chance, but are larger than the errors say");
    }
}

static void say_motion(const tsr_solve *s, tsr_words *w)
{
    if (s->flexible == NULL) {
        tsr_words_say(w, "Nothing flexible was found in the model, so there "
                         "is nothing to sample: the rigid fit is the answer.");
        return;
    }
    tsr_words_say(w, "What moves:");
    for (int i = 0; i < s->flexible->n; i++)
        tsr_words_say(w, "%s %s", i > 0 ? "," : "", s->flexible->item[i]);
    tsr_words_say(w, "; the rest moves as rigid parts.");
}

static void say_gain(const tsr_solve *s, tsr_words *w)
{
    const tsr_solve_run *last = &s->run[s->n_run - 1];
    const tsr_solve_run *before = last - 1;
    double gain, error;
    if (tsr_solve_gain(before, last, &gain, &error))
        tsr_words_say(w,
                      "The data ask for %ld states at least: the log evidence "
                      "is %.1f +- %.1f nat above that of %ld. Whether one more "
                      "is asked for, --states %ld tells.",
                      last->states, gain, error, before->states,
                      last->states + 1);
    else
        tsr_words_say(w,
                      "The data ask for no more than %ld state%s: the log "
                      "evidence of %ld is %.1f +- %.1f nat %s, and more states "
                      "count from 1 nat and two standard deviations above.",
                      before->states, plural(before->states), last->states,
                      fabs(gain), error, gain < 0.0 ? "below" : "above");
}

static void say_states(const tsr_solve *s, tsr_words *w)
{
    const tsr_solve_run *last = &s->run[s->n_run - 1];
    int n_open = 0;
    for (int k = 0; k < s->n_run; k++)
        n_open += !s->run[k].is_converged;
    if (n_open > 0 && s->n_run > 1)
        tsr_words_say(w, "Not all runs have converged, so this may change: ");
    if (!isfinite(last->evidence.log) || !isfinite(last->evidence.error))
        tsr_words_say(w,
                      "How many states the data ask for is not known: the log "
                      "evidence of %ld is missing%s%s.",
                      last->states, last->evidence.why_not[0] ? ", " : "",
                      last->evidence.why_not);
    else if (s->n_run == 1)
        tsr_words_say(w, "Whether the data ask for more than one state was not "
                         "tried.");
    else
        say_gain(s, w);
}

static void say_size(const tsr_solve *s, tsr_words *w)
{
    const tsr_solve_run *r = &s->run[s->chosen];
    tsr_words_say(w,
                  "With %ld state%s chi2 is %.3g [%.3g, %.3g] and Rg %.1f "
                  "[%.1f, %.1f] Angstrom (mean, and 90 %% interval).",
                  r->states, plural(r->states), r->chi2.mean, r->chi2.q5,
                  r->chi2.q95, r->rg.mean, r->rg.q5, r->rg.q95);
}

static void say_convergence(const tsr_solve *s, tsr_words *w)
{
    int n = 0;
    for (int k = 0; k < s->n_run; k++)
        if (!s->run[k].is_converged)
            tsr_words_say(w, "%sNot converged: the run of %ld state%s (%s).",
                          n++ > 0 ? " " : "", s->run[k].states,
                          plural(s->run[k].states), s->run[k].worst);
    if (n == 0)
        tsr_words_say(w, "All runs have converged.");
}

/* The run that needs more draws most: the chosen one where it has not
 * converged, else the first that has not; else the chosen one, of which there
 * could be twice as many. */
static const tsr_solve_run *needy(const tsr_solve *s)
{
    const tsr_solve_run *chosen = &s->run[s->chosen];
    for (int k = 0; k < s->n_run && chosen->is_converged; k++)
        if (!s->run[k].is_converged)
            return &s->run[k];
    return chosen;
}

static void say_more(const tsr_solve *s, tsr_words *w)
{
    const tsr_solve_run *r = needy(s);
    tsr_words_say(w, "tessera resume %s --draws %ld", r->directory, r->more);
}

/* In the order in which they are told; the first two need no run. */
enum { N_RIGID = 2 };
static void (*const say[])(const tsr_solve *, tsr_words *) = {
    say_rigid, say_motion, say_states, say_size, say_convergence};

static int n_said(const tsr_solve *s)
{
    return s->n_run > 0 ? (int)(sizeof say / sizeof *say) : N_RIGID;
}

static char *said(const tsr_solve *s,
                  void (*one)(const tsr_solve *, tsr_words *), tsr_err *err)
{
    tsr_words w;
    tsr_words_begin(&w);
    one(s, &w);
    char *text = tsr_words_end(&w);
    if (text == NULL)
        (void)tsr_fail(err, TSR_E_NOMEM, "out of memory");
    return text;
}

/* ---- for people ---- */

static void print_table(const tsr_solve *s, FILE *out)
{
    fprintf(out, "\n  %-6s %20s  %24s  %24s  %s\n", "states",
            "log evidence, nat", "chi2", "Rg, Angstrom", "converged");
    for (int k = 0; k < s->n_run; k++) {
        const tsr_solve_run *r = &s->run[k];
        char evidence[64] = "not known", chi2[64], rg[64];
        if (isfinite(r->evidence.log))
            snprintf(evidence, sizeof evidence, "%.1f +- %.1f", r->evidence.log,
                     r->evidence.error);
        snprintf(chi2, sizeof chi2, "%.3g [%.3g, %.3g]", r->chi2.mean,
                 r->chi2.q5, r->chi2.q95);
        snprintf(rg, sizeof rg, "%.1f [%.1f, %.1f]", r->rg.mean, r->rg.q5,
                 r->rg.q95);
        fprintf(out, "%c %-6ld %20s  %24s  %24s  %s\n",
                k == s->chosen ? '*' : ' ', r->states, evidence, chi2, rg,
                r->is_converged ? "yes" : "no");
    }
}

tsr_status tsr_solve_print(const tsr_solve *solve, FILE *out, tsr_err *err)
{
    for (int i = 0; i < n_said(solve); i++) {
        char *text = said(solve, say[i], err);
        if (text == NULL)
            return TSR_E_NOMEM;
        fputc('\n', out);
        tsr_text_wrap(out, 0, 0, "", text);
        free(text);
    }
    if (solve->n_run == 0)
        return TSR_OK;
    print_table(solve, out);
    char *more = said(solve, say_more, err);
    if (more == NULL)
        return TSR_E_NOMEM;
    fprintf(out, "\n%s\n    %s\n",
            needy(solve)->is_converged ? "For more draws:" : "To go on:", more);
    if (isfinite(needy(solve)->seconds))
        fprintf(out, "That takes about %.0f min at most. ",
                ceil(needy(solve)->seconds / 60.0));
    fputs("The same solve command then judges anew.\n", out);
    if (solve->report != NULL)
        fprintf(out, "\nreport: %s\n", solve->report);
    free(more);
    return TSR_OK;
}

/* ---- JSON ---- */

static void put_rigid(const tsr_solve *s, tsr_json *j)
{
    tsr_json_array(j, "rigid");
    for (int k = 0; k < s->n_curve; k++) {
        const tsr_profile_result *r = &s->rigid[k];
        tsr_json_object(j, NULL);
        tsr_json_text(j, "curve", s->saxs[k]->path);
        tsr_json_truth(j, "fits", is_good(&r->fit));
        tsr_json_number(j, "chi2", r->fit.chi2);
        tsr_json_number(j, "reduced_chi2", r->fit.reduced_chi2);
        tsr_json_number(j, "cormap_p", r->fit.cormap_p);
        tsr_json_number(j, "c1", r->fit.c1);
        tsr_json_number(j, "c2", r->fit.c2);
        tsr_json_number(j, "scale", r->fit.scale);
        tsr_json_number(j, "rg_guinier", r->rg_guinier);
        tsr_json_number(j, "rg_guinier_data", s->saxs[k]->rg_guinier);
        tsr_json_close(j);
    }
    tsr_json_close(j);
}

static void put_interval(tsr_json *j, const char *name,
                         const tsr_convergence *v)
{
    tsr_json_object(j, name);
    tsr_json_number(j, "mean", v->mean);
    tsr_json_number(j, "q5", v->q5);
    tsr_json_number(j, "q95", v->q95);
    tsr_json_close(j);
}

static void put_run(const tsr_solve *s, int k, tsr_json *j)
{
    const tsr_solve_run *r = &s->run[k];
    tsr_json_object(j, NULL);
    tsr_json_integer(j, "states", r->states);
    tsr_json_text(j, "directory", r->directory);
    tsr_evidence_put(&r->evidence, "evidence", j);
    if (k > 0) {
        double gain, error;
        int counts = tsr_solve_gain(r - 1, r, &gain, &error);
        tsr_json_number(j, "gain", gain);
        tsr_json_number(j, "gain_error", error);
        tsr_json_truth(j, "gain_counts", counts);
    }
    put_interval(j, "chi2", &r->chi2);
    put_interval(j, "rg", &r->rg);
    tsr_json_truth(j, "converged", r->is_converged);
    tsr_json_text(j, "worst", r->worst);
    tsr_json_integer(j, "n_draw", r->n_draw);
    tsr_json_close(j);
}

static tsr_status put_verdict(const tsr_solve *s, tsr_json *j, tsr_err *err)
{
    tsr_status status = TSR_OK;
    tsr_json_array(j, "verdict");
    for (int i = 0; i < n_said(s) && status == TSR_OK; i++) {
        char *text = said(s, say[i], err);
        status = text == NULL ? TSR_E_NOMEM : TSR_OK;
        tsr_json_text(j, NULL, text);
        free(text);
    }
    tsr_json_close(j);
    return status;
}

tsr_status tsr_solve_print_json(const tsr_solve *solve, FILE *out, tsr_err *err)
{
    const tsr_solve *s = solve;
    tsr_json j = {.out = out};
    tsr_json_object(&j, NULL);
    tsr_status status = put_verdict(s, &j, err);
    tsr_json_text(&j, "directory", s->directory);
    tsr_json_text(&j, "model", s->model);
    tsr_json_text(&j, "bodies", s->bodies);
    put_rigid(s, &j);
    tsr_json_array(&j, "flexible");
    for (int i = 0; s->flexible != NULL && i < s->flexible->n; i++)
        tsr_json_text(&j, NULL, s->flexible->item[i]);
    tsr_json_close(&j);
    tsr_json_array(&j, "runs");
    for (int k = 0; k < s->n_run; k++)
        put_run(s, k, &j);
    tsr_json_close(&j);
    if (s->n_run > 0) {
        char *more = said(s, say_more, err);
        status = more == NULL ? TSR_E_NOMEM : status;
        tsr_json_integer(&j, "states", s->run[s->chosen].states);
        tsr_json_text(&j, "more", more);
        tsr_json_number(&j, "more_seconds", needy(s)->seconds);
        free(more);
    }
    tsr_json_text(&j, "report", s->report);
    tsr_json_close(&j);
    return status;
}
