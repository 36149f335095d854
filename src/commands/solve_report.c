/* The verdict of tessera solve. Each sentence rests on numbers that stand
 * beside it in the JSON object. */
#include "commands/solve_report.h"

#include "core/json.h"
#include "core/text.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

int tsr_solve_gain(const tsr_solve_run *less, const tsr_solve_run *more,
                   double *gain, double *error)
{
    const tsr_evidence *a = &less->summary->evidence;
    const tsr_evidence *b = &more->summary->evidence;
    const int is_known = a->n_temp > 1 && b->n_temp > 1;
    *gain = is_known ? b->log - a->log : (double)NAN;
    *error = hypot(a->error, b->error);
    return isfinite(*gain) && isfinite(*error) &&
           *gain > fmax(1.0, 2.0 * *error);
}

static int is_converged(const tsr_solve_run *r)
{
    return r->verdict->advice.is_converged;
}

/* ---- the sentences ---- */

static const char *plural(long n)
{
    return n == 1 ? "" : "s";
}

static int is_good(const tsr_profile_fit *fit)
{
    return tsr_verdict_fits(fit->reduced_chi2, fit->cormap_p);
}

/* The runs fit the model by bodies instead of all atoms. What that gives is of
 * interest only where it is another answer, or another number to compare the
 * draws with. */
static void say_bodies(const tsr_solve *s, int k, tsr_words *w)
{
    const double much = 1.2;
    const tsr_profile_fit *atoms = &s->rigid[k].fit;
    const tsr_verdict *v = s->n_run > 0 ? s->run[s->chosen].verdict : NULL;
    if (v == NULL || k >= v->n_curve || v->curve[k].rigid.n_point == 0)
        return;
    const tsr_profile_fit *f = &v->curve[k].rigid;
    const double ratio = f->reduced_chi2 / atoms->reduced_chi2;
    if (is_good(f) == is_good(atoms) && ratio < much && ratio > 1.0 / much)
        return;
    tsr_words_say(
        w,
        " By the bodies of the runs, which are coarser than atoms and "
        "have another layer of water, its reduced chi2 is %.3g: the "
        "draws are to be compared with that.",
        f->reduced_chi2);
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
            "with scale, background, c1 %.3f and c2 %.2f at their best%s; "
            "%s.",
            k > 0 ? " " : "", is_good(f) ? "fits" : "does not fit",
            tsr_text_file_name(s->saxs[k]->path), f->reduced_chi2, f->cormap_p,
            f->c1, f->c2, at,
            !tsr_verdict_fits(0.0, f->cormap_p)
                ? "its residuals keep their sign for longer "
                  "than by chance"
            : is_good(f) ? "its residuals are no larger than the errors "
                           "let them be"
                         : "its residuals change their sign as by "
                           "chance, but are larger than the errors say");
        say_bodies(s, k, w);
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

/* What the points say that are left out, one after the other. */
static void say_left_out(const tsr_solve *s, tsr_words *w)
{
    const tsr_solve_run *last = &s->run[s->n_run - 1];
    const tsr_solve_run *before = last - 1;
    double gain, error;
    if (s->n_run < 2 || !tsr_loo_compare(&before->verdict->loo,
                                         &last->verdict->loo, &gain, &error))
        return;
    tsr_words_say(w,
                  " Points that are left out are foretold %s by %ld state%s "
                  "than by %ld: the expected log predictive density differs by "
                  "%.1f +- %.1f nat (PSIS-LOO).",
                  fabs(gain) < 2.0 * error ? "no better or worse"
                  : gain > 0.0             ? "better"
                                           : "worse",
                  last->states, plural(last->states), before->states, gain,
                  error);
}

static void say_states(const tsr_solve *s, tsr_words *w)
{
    const tsr_solve_run *last = &s->run[s->n_run - 1];
    const tsr_evidence *evidence = &last->summary->evidence;
    int n_open = 0;
    for (int k = 0; k < s->n_run; k++)
        n_open += !is_converged(&s->run[k]);
    if (n_open > 0 && s->n_run > 1)
        tsr_words_say(w, "Not all runs have converged, so this may change: ");
    if (evidence->n_temp < 2 || !isfinite(evidence->log) ||
        !isfinite(evidence->error))
        tsr_words_say(w,
                      "How many states the data ask for is not known: the log "
                      "evidence of %ld is missing%s%s.",
                      last->states, evidence->why_not[0] ? ", " : "",
                      evidence->why_not);
    else if (s->n_run == 1)
        tsr_words_say(w, "Whether the data ask for more than one state was not "
                         "tried.");
    else
        say_gain(s, w);
    say_left_out(s, w);
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
        if (!is_converged(&s->run[k]))
            tsr_words_say(w, "%sNot converged: the run of %ld state%s (%s).",
                          n++ > 0 ? " " : "", s->run[k].states,
                          plural(s->run[k].states),
                          s->run[k].verdict->advice.worst);
    if (n == 0)
        tsr_words_say(w, "All runs have converged.");
}

/* The run that needs more draws most: the chosen one where it has not
 * converged, else the first that has not; else the chosen one, of which there
 * could be twice as many. */
static const tsr_solve_run *needy(const tsr_solve *s)
{
    const tsr_solve_run *chosen = &s->run[s->chosen];
    for (int k = 0; k < s->n_run && is_converged(chosen); k++)
        if (!is_converged(&s->run[k]))
            return &s->run[k];
    return chosen;
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
        (void)tsr_no_memory(err);
    return text;
}

/* ---- for people ---- */

/* "2.1 +- 0.4", or "" for NaN; text [32]. */
static const char *with_error(double value, double error, char text[32])
{
    text[0] = '\0';
    if (isfinite(value))
        snprintf(text, 32, "%.1f +- %.1f", value, error);
    return text;
}

/* What the data say of each number of states, and each above the one before. */
static void print_models(const tsr_solve *s, FILE *out)
{
    fprintf(out, "\n  %-6s %17s %14s  %17s %14s\n", "states", "log evidence",
            "above before", "LOO density", "above before");
    for (int k = 0; k < s->n_run; k++) {
        const tsr_solve_run *r = &s->run[k];
        const tsr_evidence *e = &r->summary->evidence;
        const tsr_loo *loo = &r->verdict->loo;
        char text[4][32] = {"", "", "", ""};
        double gain = (double)NAN, error;
        with_error(e->n_temp > 1 ? e->log : gain, e->error, text[0]);
        with_error(loo->elpd, loo->error, text[2]);
        if (k > 0) {
            (void)tsr_solve_gain(r - 1, r, &gain, &error);
            with_error(gain, error, text[1]);
            (void)tsr_loo_compare(&r[-1].verdict->loo, loo, &gain, &error);
            with_error(gain, error, text[3]);
        }
        fprintf(out, "%c %-6ld %17s %14s  %17s %14s\n",
                k == s->chosen ? '*' : ' ', r->states,
                text[0][0] ? text[0] : "not known", text[1],
                text[2][0] ? text[2] : "not known", text[3]);
    }
    fputs("  (nat; LOO: expected log predictive density of points left out)\n",
          out);
}

static void print_table(const tsr_solve *s, FILE *out)
{
    fprintf(out, "\n  %-6s %24s  %24s  %s\n", "states", "chi2", "Rg, Angstrom",
            "converged");
    for (int k = 0; k < s->n_run; k++) {
        const tsr_solve_run *r = &s->run[k];
        char chi2[64], rg[64];
        snprintf(chi2, sizeof chi2, "%.3g [%.3g, %.3g]", r->chi2.mean,
                 r->chi2.q5, r->chi2.q95);
        snprintf(rg, sizeof rg, "%.1f [%.1f, %.1f]", r->rg.mean, r->rg.q5,
                 r->rg.q95);
        fprintf(out, "%c %-6ld %24s  %24s  %s\n", k == s->chosen ? '*' : ' ',
                r->states, chi2, rg, is_converged(r) ? "yes" : "no");
    }
}

/* The sentences of the run that the data ask for. */
static tsr_status print_chosen(const tsr_solve *s, FILE *out, tsr_err *err)
{
    const tsr_solve_run *r = &s->run[s->chosen];
    int n;
    char **text;
    TSR_TRY(tsr_verdict_sentences(r->verdict, &n, &text, err));
    fprintf(out, "\nThe run of %ld state%s, %s:\n", r->states,
            plural(r->states), r->directory);
    for (int i = 0; i < n; i++)
        tsr_text_wrap(out, 0, 2, "", text[i]);
    tsr_verdict_sentences_free(n, text);
    return TSR_OK;
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
    print_models(solve, out);
    print_table(solve, out);
    TSR_TRY(print_chosen(solve, out, err));
    char *more = tsr_advice_text(&needy(solve)->verdict->advice);
    TSR_TRY(tsr_allocated(more, err));
    fprintf(out, "\n%s\n    %s\nThe same solve command then judges anew.\n",
            is_converged(needy(solve)) ? "For more draws:" : "To go on:", more);
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
        tsr_json_number(j, "background", r->fit.background);
        tsr_json_number(j, "rg_guinier", r->rg_guinier);
        tsr_json_number(j, "rg_guinier_data", s->saxs[k]->rg_guinier);
        tsr_json_close(j);
    }
    tsr_json_close(j);
}

static void put_run(const tsr_solve *s, int k, tsr_json *j)
{
    const tsr_solve_run *r = &s->run[k];
    tsr_json_object(j, NULL);
    tsr_json_integer(j, "states", r->states);
    tsr_json_text(j, "directory", r->directory);
    if (r->summary->evidence.n_temp > 1)
        tsr_evidence_put(&r->summary->evidence, "evidence", j);
    else
        tsr_json_text(j, "evidence", NULL);
    tsr_loo_put(&r->verdict->loo, "loo", j);
    if (k > 0) {
        double gain, error;
        int counts = tsr_solve_gain(r - 1, r, &gain, &error);
        tsr_json_number(j, "gain", gain);
        tsr_json_number(j, "gain_error", error);
        tsr_json_truth(j, "gain_counts", counts);
        (void)tsr_loo_compare(&r[-1].verdict->loo, &r->verdict->loo, &gain,
                              &error);
        tsr_json_number(j, "loo_gain", gain);
        tsr_json_number(j, "loo_gain_error", error);
    }
    tsr_verdict_put_interval(j, "chi2", &r->chi2);
    tsr_verdict_put_interval(j, "rg", &r->rg);
    tsr_json_truth(j, "converged", is_converged(r));
    tsr_json_text(j, "worst", r->verdict->advice.worst);
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
        const tsr_advice *more = &needy(s)->verdict->advice;
        tsr_json_integer(&j, "states", s->run[s->chosen].states);
        TSR_THEN(status,
                 tsr_verdict_put(s->run[s->chosen].verdict, "answer", &j, err));
        tsr_json_text(&j, "more", more->command);
        tsr_json_number(&j, "more_seconds", more->seconds);
    }
    tsr_json_text(&j, "report", s->report);
    tsr_json_close(&j);
    return status;
}

/* ---- of a run ---- */

void tsr_solve_interval(const tsr_summary *summary, const char *name,
                        tsr_convergence *to)
{
    const double none = (double)NAN;
    const tsr_summary_item *item = tsr_summary_find(summary, name);
    *to = item != NULL
              ? item->value
              : (tsr_convergence){.mean = none, .q5 = none, .q95 = none};
}

void tsr_solve_name_run(const char *model, const tsr_solve_run *run, char *text,
                        size_t size)
{
    static const char plain[] = "abcdefghijklmnopqrstuvwxyz"
                                "ABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789._-";
    const char *file = tsr_text_file_name(model);
    if (file[strspn(file, plain)] != '\0')
        file = "the model";
    snprintf(text, size, "name=%.80s with %ld state%s", file, run->states,
             run->states == 1 ? "" : "s");
}
